//! Rate limits (Discord: Rate Limits): a window of some seconds per (route, major id) and a global one.
//!
//! Invariant: a call is refused for its rate before anything is done; the answer says how long to wait, and
//! after that the same call passes. Sizes are undisclosed by Discord and change; those here are near what is seen.

use serde::Serialize;
use std::collections::BTreeMap;

/// Who is meant by a 429.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    User,
    Global,
    Shared,
}

#[derive(Debug, Clone, Copy)]
struct Window {
    began_ms: i64,
    used: i64,
}

/// What the headers of an answer say.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Standing {
    pub(super) limit: i64,
    pub(super) remaining: i64,
    pub(super) reset_ms: i64,
    pub(super) reset_after_ms: i64,
    pub(super) bucket: String,
}

/// A refusal for rate.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TooMany {
    pub(super) wait_ms: i64,
    pub(super) scope: Scope,
    pub(super) standing: Option<Standing>,
}

/// The windows of a world, and the waits it has given out.
#[derive(Debug)]
pub(super) struct Rates {
    /// Multiplies every size; 0: no limits.
    pub(super) factor: u32,
    windows: BTreeMap<String, Window>,
    /// (bot, bucket) or (bot, "") for a global one → not before.
    parked: BTreeMap<(String, String), i64>,
}

impl Default for Rates {
    fn default() -> Self {
        Self { factor: 1, windows: BTreeMap::new(), parked: BTreeMap::new() }
    }
}

/// Calls in a window and its length, by route.
fn size(route: &str) -> (i64, i64) {
    match route {
        "POST /channels/{channel}/messages" | "PATCH /channels/{channel}/messages/{message}" => (5, 5_000),
        "DELETE /channels/{channel}/messages/{message}" => (5, 1_000),
        "POST /channels/{channel}/messages/{message}/threads" | "POST /channels/{channel}/threads" => {
            (50, 300_000)
        }
        "POST /users/@me/channels" => (10, 60_000),
        "PUT /applications/{app}/commands" | "PUT /applications/{app}/guilds/{guild}/commands" => (2, 60_000),
        route if route.contains("/webhooks/") => (5, 2_000),
        "POST /interactions/{interaction}/{token}/callback" => (i64::MAX, 1_000),
        _ => (50, 1_000),
    }
}

/// The opaque name of a route's bucket.
pub(super) fn bucket(route: &str) -> String {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in route.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    format!("{hash:016x}{:016x}", hash.rotate_left(29).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// Calls on interaction tokens are outside the global limit.
pub(super) fn by_token(route: &str) -> bool {
    route.contains("/webhooks/") || route.contains("/interactions/")
}

impl Rates {
    /// Takes one call of `route` for `major` by `bot`.
    pub(super) fn take(
        &mut self,
        now_ms: i64,
        route: &str,
        major: &str,
        bot: &str,
    ) -> Result<Option<Standing>, TooMany> {
        if self.factor == 0 {
            return Ok(None);
        }
        let factor = i64::from(self.factor);
        if !by_token(route) {
            let (used, began) = self.draw(now_ms, format!("{bot} *"), 50 * factor, 1_000);
            if used.is_none() {
                let wait_ms = (began + 1_000 - now_ms).max(1);
                return Err(TooMany { wait_ms, scope: Scope::Global, standing: None });
            }
        }
        let (most, every) = size(route);
        if most == i64::MAX {
            return Ok(None);
        }
        let most = most * factor;
        let (used, began) = self.draw(now_ms, format!("{bot} {route} {major}"), most, every);
        let standing = Standing {
            limit: most,
            remaining: used.map_or(0, |used| most - used),
            reset_ms: began + every,
            reset_after_ms: (began + every - now_ms).max(1),
            bucket: bucket(route),
        };
        match used {
            Some(_) => Ok(Some(standing)),
            None => Err(TooMany {
                wait_ms: standing.reset_after_ms,
                scope: Scope::User,
                standing: Some(standing),
            }),
        }
    }

    /// The calls used in the window with this one, `None` if it was full; when the window began.
    fn draw(&mut self, now_ms: i64, key: String, most: i64, every: i64) -> (Option<i64>, i64) {
        let window = self.windows.entry(key).or_insert(Window { began_ms: now_ms, used: 0 });
        if now_ms >= window.began_ms + every || now_ms < window.began_ms {
            *window = Window { began_ms: now_ms, used: 0 };
        }
        if window.used >= most {
            return (None, window.began_ms);
        }
        window.used += 1;
        (Some(window.used), window.began_ms)
    }

    /// Remembers a wait that was given out; whole bots with an empty `key`.
    pub(super) fn park(&mut self, now_ms: i64, bot: &str, key: &str, wait_ms: i64) {
        self.parked.insert((bot.into(), key.into()), now_ms + wait_ms);
    }

    /// Whether a call comes before such a wait is over. A little early is not held against it: clocks differ.
    pub(super) fn impatient(&self, now_ms: i64, bot: &str, key: &str, by_token: bool) -> bool {
        let early = |key: &str| {
            self.parked.get(&(bot.to_owned(), key.to_owned())).is_some_and(|until| now_ms + 10 < *until)
        };
        early(key) || (!by_token && early(""))
    }
}

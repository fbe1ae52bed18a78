//! Methods, scopes and rate limits of the Web API.
//!
//! Invariant: a call is refused for its rate before its token is looked at, per method and
//! install; `chat.postMessage` per channel and per install besides. A 429 states the seconds
//! after which the same call passes, and covers nothing else. Bursts are undisclosed by Slack;
//! those here are generous enough that a client at the documented pace never meets a 429.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Which scope a method asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    None,
    One(&'static str),
    /// By kind of channel: public, private, direct.
    Channel(&'static str, &'static str, &'static str),
}

/// One method of the Web API.
#[derive(Debug, Clone, Copy)]
pub struct Method {
    pub name: &'static str,
    /// Calls a minute, and how many at once.
    pub per_minute: i64,
    pub burst: i64,
    /// Reads ignore JSON arguments.
    pub read: bool,
    pub scope: Scope,
}

const T1: (i64, i64) = (1, 5);
const T2: (i64, i64) = (20, 6);
const T3: (i64, i64) = (50, 10);
const T4: (i64, i64) = (100, 20);
const SPECIAL: (i64, i64) = (600, 100);

const READ: Scope = Scope::Channel("channels:read", "groups:read", "im:read");
const HISTORY: Scope = Scope::Channel("channels:history", "groups:history", "im:history");

const fn method(name: &'static str, tier: (i64, i64), read: bool, scope: Scope) -> Method {
    Method { name, per_minute: tier.0, burst: tier.1, read, scope }
}

static METHODS: [Method; 19] = [
    method("apps.connections.open", T3, false, Scope::None),
    method("auth.test", SPECIAL, false, Scope::None),
    method("bots.info", T3, true, Scope::One("users:read")),
    method("chat.postMessage", (300, 100), false, Scope::One("chat:write")),
    method("chat.update", T3, false, Scope::One("chat:write")),
    method("chat.postEphemeral", T4, false, Scope::One("chat:write")),
    method("chat.delete", T3, false, Scope::One("chat:write")),
    method("chat.getPermalink", SPECIAL, true, Scope::None),
    method("conversations.open", T3, false, Scope::One("im:write")),
    method("conversations.info", T3, true, READ),
    method("conversations.list", T2, true, READ),
    method("conversations.history", T3, true, HISTORY),
    method("conversations.replies", T3, true, HISTORY),
    method("users.info", T4, true, Scope::One("users:read")),
    method("usergroups.users.list", T2, true, Scope::One("usergroups:read")),
    method("views.open", T4, false, Scope::None),
    method("views.push", T4, false, Scope::None),
    method("views.update", T4, false, Scope::None),
    method("views.publish", T4, false, Scope::None),
];

/// The method of that name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Method> {
    METHODS.iter().find(|method| method.name == name)
}

/// How strictly rates are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pace {
    /// Multiplies every rate and burst; 0 switches rate limits off.
    pub factor: u32,
}

impl Default for Pace {
    fn default() -> Self {
        Self { factor: 1 }
    }
}

/// A token costs this much; a bucket gains its rate per minute every millisecond.
const TOKEN: i64 = 60_000;

#[derive(Debug, Clone, Copy)]
struct Bucket {
    level: i64,
    at_ms: i64,
}

/// A refusal for rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooMany {
    pub retry_after: u64,
}

/// The buckets of a world, and the `Retry-After` times it has given out.
#[derive(Debug, Default)]
pub struct Rates {
    pub pace: Pace,
    buckets: BTreeMap<String, Bucket>,
    parked: BTreeMap<String, i64>,
}

impl Rates {
    /// Takes one call of `method` by `install`; `channel` for posts. `scarce`: the switch that
    /// makes this method rarer is on.
    pub fn take(
        &mut self,
        now_ms: i64,
        method: &Method,
        install: &str,
        channel: Option<&str>,
        scarce: bool,
    ) -> Result<(), TooMany> {
        if self.pace.factor == 0 {
            return Ok(());
        }
        let key = format!("{install} {}", method.name);
        let rate = match method.name {
            _ if scarce && method.scope == HISTORY => (1, 1),
            "apps.connections.open" if scarce => T1,
            _ => (method.per_minute, method.burst),
        };
        self.draw(now_ms, key.clone(), rate)?;
        match channel.filter(|_| method.name == "chat.postMessage") {
            Some(channel) => self.draw(now_ms, format!("{key} {channel}"), (60, 3)),
            None => Ok(()),
        }
    }

    fn draw(&mut self, now_ms: i64, key: String, (per_minute, burst): (i64, i64)) -> Result<(), TooMany> {
        let factor = i64::from(self.pace.factor);
        let (gain, full) =
            (per_minute.saturating_mul(factor).max(1), burst.saturating_mul(factor).saturating_mul(TOKEN));
        let bucket = self.buckets.entry(key.clone()).or_insert(Bucket { level: full, at_ms: now_ms });
        let waited = now_ms.saturating_sub(bucket.at_ms).max(0);
        bucket.level = bucket.level.saturating_add(waited.saturating_mul(gain)).min(full);
        bucket.at_ms = now_ms;
        if bucket.level >= TOKEN {
            bucket.level -= TOKEN;
            return Ok(());
        }
        let wait_ms = (TOKEN - bucket.level + gain - 1) / gain;
        let retry_after = u64::try_from((wait_ms + 999) / 1_000).unwrap_or(1).max(1);
        self.parked.insert(key, now_ms + wait_ms);
        Err(TooMany { retry_after })
    }

    /// Notes a scripted 429.
    pub fn park(&mut self, now_ms: i64, method: &str, install: &str, seconds: u64) {
        let until = now_ms.saturating_add(i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(1_000));
        self.parked.insert(format!("{install} {method}"), until);
    }

    /// Whether this call comes before an earlier `Retry-After` has passed.
    #[must_use]
    pub fn impatient(&self, now_ms: i64, method: &str, install: &str, channel: Option<&str>) -> bool {
        let key = format!("{install} {method}");
        let by_channel = channel.map(|channel| format!("{key} {channel}"));
        [Some(key), by_channel]
            .into_iter()
            .flatten()
            .any(|key| self.parked.get(&key).is_some_and(|&until| now_ms < until))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn posts_are_one_a_second_per_channel_and_the_stated_wait_is_true() {
        let mut rates = Rates::default();
        let post = find("chat.postMessage").unwrap();
        for _ in 0..3 {
            assert_eq!(rates.take(0, post, "T0", Some("C1"), false), Ok(()));
        }
        assert_eq!(rates.take(0, post, "T0", Some("C1"), false), Err(TooMany { retry_after: 1 }));
        assert!(rates.impatient(500, "chat.postMessage", "T0", Some("C1")));
        assert!(!rates.impatient(500, "chat.postMessage", "T0", Some("C2")));
        assert_eq!(rates.take(0, post, "T0", Some("C2"), false), Ok(()));
        assert_eq!(rates.take(999, post, "T0", Some("C1"), false), Err(TooMany { retry_after: 1 }));
        assert_eq!(rates.take(1_000, post, "T0", Some("C1"), false), Ok(()));
    }

    #[test]
    fn tiers_refill_over_the_minute_and_can_be_raised_or_switched_off() {
        let update = find("chat.update").unwrap();
        let count = |factor, until_ms| {
            let mut rates = Rates { pace: Pace { factor }, ..Rates::default() };
            (0..until_ms).filter(|&now| rates.take(now, update, "T0", None, false).is_ok()).count()
        };
        assert_eq!(count(1, 60_001), 10 + 50);
        assert_eq!(count(10, 1), 1);
        assert_eq!(count(10, 60_001), 100 + 500);
        assert_eq!(count(0, 2_000), 2_000);
    }

    #[test]
    fn scarce_history_is_one_call_a_minute() {
        let history = find("conversations.history").unwrap();
        let mut rates = Rates::default();
        assert_eq!(rates.take(0, history, "T0", None, true), Ok(()));
        assert_eq!(rates.take(1, history, "T0", None, true), Err(TooMany { retry_after: 60 }));
        assert_eq!(rates.take(60_001, history, "T0", None, true), Ok(()));
    }
}

//! When a call may go: what Discord said of its limits, the count of refused calls, and the breaker.
//!
//! Invariant: nothing here sleeps, and no limit of Discord's is a number of ours. A call that may not go now is
//! answered with the earliest time; its durable job goes back with it. Everything is per process: with several
//! replicas Discord's 429 is the truth.
//!
//! Decisions taken:
//! - with nothing known of a bucket, one call at a time; calls in flight count against `Remaining`;
//! - a 429 waits for the longer of `Retry-After` and `retry_after`, never `Reset-After`; what is not between
//!   50 ms and an hour counts as not said;
//! - a 403 or 429 without JSON or without rate headers is a proxy's: everything but the answers to presses
//!   rests, and one call at a time finds out whether that is over.

use super::calls::{Call, Kind};
use crate::pace::Gentle;
use reqwest::header::HeaderMap;
use serde_json::Value;
use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A wait that was not said.
const UNSAID: Duration = Duration::from_secs(5);
const SHORTEST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_hours(1);
/// A call waits so long for another one of its bucket.
pub(super) const FOR_ANOTHER: Duration = Duration::from_millis(200);
/// The breaker's first and longest rest.
const REST: (Duration, Duration) = (Duration::from_secs(5), Duration::from_mins(10));
/// Refused calls are counted over this time (Discord: Rate Limits, "Invalid Request Limit": 10,000).
const WINDOW: Duration = Duration::from_mins(10);
/// From so many on, only: what is not an edit in between; presses and new cards; answers to presses.
const BRAKES: [usize; 3] = [500, 2_000, 5_000];
/// When the brake is on, a call is tried again after this.
const BRAKED: Duration = Duration::from_secs(30);
/// Buckets that are not known to be exhausted are forgotten past so many.
const MOST: usize = 4_096;
/// After so many 429s in a row operators are told.
const IN_A_ROW: u32 = 5;

/// What a call is worth when there is little left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Worth {
    /// An edit that another one will follow.
    Interim,
    Usual,
    /// A new card, and what a press needs.
    Needed,
    /// The answer to a press.
    Answer,
}

/// What Discord said of a bucket.
#[derive(Debug, Clone, Copy, Default)]
struct Bucket {
    /// Calls left until `reset`; `None`: nothing is known.
    remaining: Option<u64>,
    reset: Duration,
    in_flight: u64,
    /// 429s in a row.
    limited: u32,
}

#[derive(Debug, Default)]
struct State {
    /// The name Discord gives to the bucket of a kind of call.
    names: HashMap<Kind, String>,
    buckets: HashMap<(String, String), Bucket>,
    /// Every call of the bot rests until then.
    global: Duration,
    breaker: Option<Breaker>,
    /// Refused calls, with how many came at about that time.
    refused: VecDeque<(Duration, usize)>,
}

#[derive(Debug, Clone, Copy)]
struct Breaker {
    rest: Duration,
    until: Duration,
    probing: bool,
}

/// The gate of one install.
#[derive(Debug)]
pub(super) struct Gate {
    pace: Gentle,
    state: Mutex<State>,
}

/// A call that may go; it has to be ended.
#[derive(Debug)]
#[must_use]
pub(super) struct Pass<'g> {
    gate: &'g Gate,
    kind: Kind,
    major: String,
    probing: bool,
    ended: bool,
}

/// What an answer says of limits.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct Limits {
    bucket: Option<String>,
    remaining: Option<u64>,
    reset_after: Option<Duration>,
    retry_after: Option<Duration>,
    global: bool,
    shared: bool,
    /// There was any rate header at all.
    any: bool,
}

impl Limits {
    /// Reads leniently: what is odd counts as not said (Discord: Rate Limits, "Header Format").
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
        let number =
            |name: &str| text(name).and_then(|text| text.parse::<f64>().ok()).filter(|n| n.is_finite());
        let scope = text("x-ratelimit-scope");
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "clamped to a small range"
        )]
        let remaining = number("x-ratelimit-remaining").map(|n| n.clamp(0.0, 1e6) as u64);
        Self {
            bucket: text("x-ratelimit-bucket")
                .filter(|name| (1..=200).contains(&name.len()))
                .map(str::to_owned),
            remaining,
            reset_after: number("x-ratelimit-reset-after").and_then(sane),
            retry_after: number("retry-after").and_then(sane),
            global: text("x-ratelimit-global").is_some_and(|text| text.eq_ignore_ascii_case("true"))
                || scope == Some("global"),
            shared: scope == Some("shared"),
            any: headers.keys().any(|name| name.as_str().starts_with("x-ratelimit-"))
                || headers.contains_key("retry-after"),
        }
    }

    /// With what the body of a 429 says.
    pub(super) fn with(mut self, body: &Value) -> Self {
        let said = body.get("retry_after").and_then(Value::as_f64).and_then(sane);
        self.retry_after = self.retry_after.max(said);
        self.global |= body.get("global") == Some(&Value::Bool(true));
        self
    }

    /// Whether this can be Discord's own answer.
    pub(super) fn is_known(&self) -> bool {
        self.any
    }

    pub(super) fn wait(&self) -> Option<Duration> {
        self.retry_after
    }
}

/// Seconds that a wait may take.
fn sane(seconds: f64) -> Option<Duration> {
    let range = SHORTEST.as_secs_f64()..=LONGEST.as_secs_f64();
    range.contains(&seconds).then(|| Duration::from_secs_f64(seconds))
}

impl Gate {
    pub(super) fn new(pace: Gentle) -> Self {
        Self { pace, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes our own pace's right to a call, if Discord would let it go now.
    pub(super) fn reserve(&self, kind: Kind, major: &str, worth: Worth) -> Result<(), Duration> {
        self.closed_for(kind, major, worth)?;
        if kind.by_token() {
            return Ok(());
        }
        let in_channel = matches!(kind, Kind::PostMessage | Kind::EditMessage | Kind::DeleteMessage);
        self.pace.check(in_channel.then_some(major))
    }

    /// Whether a call may go now; if not, for how long.
    fn closed_for(&self, kind: Kind, major: &str, worth: Worth) -> Result<(), Duration> {
        let now = self.pace.now();
        let mut state = self.state();
        state.closed_for(kind, major, worth, now)
    }

    /// Lets a call go.
    pub(super) fn pass(&self, call: &Call, worth: Worth) -> Result<Pass<'_>, Duration> {
        let now = self.pace.now();
        let mut state = self.state();
        state.closed_for(call.kind, &call.major, worth, now)?;
        let mut probing = false;
        if !call.kind.by_token()
            && let Some(breaker) = &mut state.breaker
        {
            breaker.probing = true;
            probing = true;
        }
        state.bucket(call.kind, &call.major, now).in_flight += 1;
        Ok(Pass { gate: self, kind: call.kind, major: call.major.clone(), probing, ended: false })
    }

    /// Why operators should look, if they should.
    pub(super) fn trouble(&self) -> Option<String> {
        let now = self.pace.now();
        let mut state = self.state();
        let refused = state.refused_by(now);
        if refused >= BRAKES[0] {
            return Some(format!(
                "Discord has refused {refused} calls in ten minutes; only what is needed is still sent"
            ));
        }
        if let Some(breaker) = &state.breaker {
            return Some(format!(
                "something before Discord refuses our calls; they rest, now for {:?}",
                breaker.rest
            ));
        }
        let limited = state.buckets.values().any(|bucket| bucket.limited >= IN_A_ROW);
        limited.then(|| "Discord goes on limiting the same calls, although we wait as told".into())
    }
}

impl State {
    fn key(&self, kind: Kind, major: &str) -> (String, String) {
        let name = self.names.get(&kind).cloned().unwrap_or_else(|| kind.template().to_owned());
        (name, major.to_owned())
    }

    fn bucket(&mut self, kind: Kind, major: &str, now: Duration) -> &mut Bucket {
        if self.buckets.len() >= MOST {
            self.buckets.retain(|_, bucket| bucket.in_flight > 0 || bucket.reset > now || bucket.limited > 0);
        }
        let key = self.key(kind, major);
        self.buckets.entry(key).or_default()
    }

    fn refused_by(&mut self, now: Duration) -> usize {
        while self.refused.front().is_some_and(|(at, _)| now.saturating_sub(*at) > WINDOW) {
            self.refused.pop_front();
        }
        self.refused.iter().map(|(_, count)| count).sum()
    }

    fn closed_for(&mut self, kind: Kind, major: &str, worth: Worth, now: Duration) -> Result<(), Duration> {
        let refused = self.refused_by(now);
        let least = match BRAKES.iter().filter(|most| refused >= **most).count() {
            0 => Worth::Interim,
            1 => Worth::Usual,
            2 => Worth::Needed,
            _ => Worth::Answer,
        };
        if worth < least {
            return Err(BRAKED);
        }
        if !kind.by_token() {
            if self.global > now {
                return Err(self.global.saturating_sub(now));
            }
            match &self.breaker {
                Some(breaker) if breaker.until > now => return Err(breaker.until.saturating_sub(now)),
                Some(breaker) if breaker.probing => return Err(FOR_ANOTHER),
                _ => {}
            }
        }
        let bucket = self.bucket(kind, major, now);
        if bucket.reset <= now {
            // Its time is over: what is left is not known any more, and one call finds out.
            bucket.remaining = None;
            return if bucket.in_flight > 0 { Err(FOR_ANOTHER) } else { Ok(()) };
        }
        match bucket.remaining {
            Some(left) if left > bucket.in_flight => Ok(()),
            Some(0) => Err(bucket.reset.saturating_sub(now)),
            _ => Err(FOR_ANOTHER),
        }
    }
}

impl<'g> Pass<'g> {
    fn end(&mut self) -> MutexGuard<'g, State> {
        let now = self.gate.pace.now();
        let mut state = self.gate.state();
        let bucket = state.bucket(self.kind, &self.major, now);
        bucket.in_flight = bucket.in_flight.saturating_sub(1);
        self.ended = true;
        state
    }

    /// An answer of Discord's came.
    pub(super) fn answered(mut self, status: u16, limits: &Limits) {
        let (now, kind, major, probing) = (self.gate.pace.now(), self.kind, self.major.clone(), self.probing);
        let mut state = self.end();
        if probing {
            state.breaker = None;
        }
        if matches!(status, 401 | 403) || (status == 429 && !limits.shared) {
            state.count_refused(now);
        }
        if let Some(name) = &limits.bucket
            && state.names.get(&kind) != Some(name)
        {
            let before = state.key(kind, &major);
            let before = state.buckets.remove(&before).unwrap_or_default();
            state.names.insert(kind, name.clone());
            let bucket = state.bucket(kind, &major, now);
            bucket.in_flight = bucket.in_flight.max(before.in_flight);
        }
        let bucket = state.bucket(kind, &major, now);
        if status != 429 {
            bucket.limited = 0;
        }
        if let (Some(remaining), Some(after)) = (limits.remaining, limits.reset_after) {
            // An older answer may come later: within one period less is left, never more.
            bucket.remaining = match bucket.remaining {
                Some(known) if bucket.reset > now => Some(remaining.min(known)),
                _ => Some(remaining),
            };
            bucket.reset = bucket.reset.max(now + after);
        } else if limits.any && limits.remaining.is_some_and(|left| left > 0) {
            bucket.remaining = None;
        }
    }

    /// Discord said: not now. Returns the wait.
    pub(super) fn limited(mut self, limits: &Limits) -> Duration {
        let (now, kind, major, probing) = (self.gate.pace.now(), self.kind, self.major.clone(), self.probing);
        let wait = limits.wait().unwrap_or(UNSAID);
        let mut state = self.end();
        if probing {
            state.breaker = None;
        }
        if !limits.shared {
            state.count_refused(now);
        }
        if limits.global {
            state.global = state.global.max(now + wait);
            return wait;
        }
        let bucket = state.bucket(kind, &major, now);
        bucket.remaining = Some(0);
        bucket.reset = bucket.reset.max(now + wait);
        bucket.limited = bucket.limited.saturating_add(1);
        wait
    }

    /// Something before Discord refused it. Returns the rest.
    pub(super) fn blocked(mut self, jitter: Duration) -> Duration {
        let (now, by_token) = (self.gate.pace.now(), self.kind.by_token());
        let mut state = self.end();
        state.count_refused(now);
        if by_token {
            return REST.0;
        }
        let rest = match &state.breaker {
            // Another call of the same moment.
            Some(breaker) if breaker.until > now => breaker.rest,
            Some(breaker) => (breaker.rest * 2).min(REST.1),
            None => REST.0,
        };
        let until = now + rest + jitter;
        state.breaker = Some(Breaker { rest, until, probing: false });
        rest + jitter
    }
}

impl State {
    fn count_refused(&mut self, now: Duration) {
        // Counted by the second, so that the list is short.
        match self.refused.back_mut() {
            Some((at, count)) if now.saturating_sub(*at) < Duration::from_secs(1) => *count += 1,
            _ => self.refused.push_back((now, 1)),
        }
    }
}

impl Drop for Pass<'_> {
    /// No answer came, or nobody waited for it.
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        let mut state = self.end();
        if self.probing
            && let Some(breaker) = &mut state.breaker
        {
            breaker.probing = false;
        }
    }
}

#[cfg(test)]
#[path = "gate_tests.rs"]
mod tests;

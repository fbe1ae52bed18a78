//! Governors: how often we may call a chat platform.
//!
//! Invariant: nothing here sleeps. A call that may not go now is answered with the earliest time,
//! and its durable job goes back with it. What the platform said (`Retry-After`) is obeyed whatever
//! our own multiplier is; it parks one method of one install, and everything else goes on.
//!
//! Decisions taken: a cell taken from an earlier governor is not given back when a later one says
//! no (a little slower than allowed, never faster). Limits are per process; with several replicas
//! the platform's 429 is the truth. A clock that jumps back does not stop the governors: time is
//! counted on from where it was.

mod gentle;

pub use gentle::Gentle;

use crate::domain::clock::{Clock, Millis};
use crate::domain::ids::Ids;
use governor::middleware::NoOpMiddleware;
use governor::state::keyed::DashMapStateStore;
use governor::{Quota, RateLimiter};
use std::collections::HashMap;
use std::hash::Hash;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a method rests after a 429 that does not say (Slack: Rate limits).
const UNSAID: Duration = Duration::from_secs(30);
/// Longer than any real `Retry-After`; keeps sums in range.
const LONGEST: Duration = Duration::from_hours(24);
/// Old keys are dropped once in so many checks.
const TIDY: usize = 1024;

/// Slack's tiers: floors per method and workspace of 1, 20, 50 and 100 a minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tier {
    One,
    Two,
    Three,
    Four,
    /// Limited in another way or hardly at all.
    Special,
}

/// A call about to be made.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    pub install: &'a str,
    pub method: &'a str,
    pub tier: Tier,
    /// The channel of a new post, which has its own limits.
    pub post_to: Option<&'a str>,
}

type Key = (String, String);
type Limiter<K> = RateLimiter<K, DashMapStateStore<K>, Steady, NoOpMiddleware<Duration>>;

/// The governors of one platform.
pub struct Pace {
    clock: Steady,
    ids: Arc<dyn Ids>,
    tiers: [(Tier, Limiter<Key>); 4],
    channels: Limiter<Key>,
    installs: Limiter<String>,
    parked: Mutex<HashMap<Key, Duration>>,
    checks: AtomicUsize,
}

impl std::fmt::Debug for Pace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pace").finish_non_exhaustive()
    }
}

impl Pace {
    /// `factor` multiplies our own pace: 2 is twice as fast. Out-of-range values count as 1.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>, ids: Arc<dyn Ids>, factor: f64) -> Self {
        let factor = if factor.is_finite() && factor > 0.0 { factor.clamp(1e-3, 1e6) } else { 1.0 };
        let clock = Steady::new(clock);
        // Burst sizes are undisclosed; these are cautious starts.
        let quota = |every_ms: f64, burst: u32| quota(every_ms / factor, burst);
        let tier = |every_ms, burst| limiter(quota(every_ms, burst), &clock);
        Self {
            tiers: [
                (Tier::One, tier(20_000.0, 5)),
                (Tier::Two, tier(3_000.0, 3)),
                (Tier::Three, tier(1_200.0, 5)),
                (Tier::Four, tier(600.0, 10)),
            ],
            channels: limiter(quota(1_000.0, 1), &clock),
            installs: limiter(quota(300.0, 200), &clock),
            parked: Mutex::default(),
            checks: AtomicUsize::new(0),
            ids,
            clock,
        }
    }

    /// Takes the call's cells, or says how long to wait. Order: parked, channel, install, method.
    ///
    /// # Errors
    /// The time until this call may go, at the earliest.
    pub fn check(&self, call: &Call<'_>) -> Result<(), Duration> {
        if self.checks.fetch_add(1, Ordering::Relaxed) % TIDY == TIDY - 1 {
            self.retain_recent();
        }
        let method = (call.install.to_owned(), call.method.to_owned());
        if let Some(left) = self.parked_for(call.install, call.method) {
            return Err(left);
        }
        if let Some(channel) = call.post_to {
            self.cell(&self.channels, &(call.install.to_owned(), channel.to_owned()))?;
            self.cell(&self.installs, &method.0)?;
        }
        match self.tiers.iter().find(|(tier, _)| *tier == call.tier) {
            Some((_, limiter)) => self.cell(limiter, &method),
            None => Ok(()),
        }
    }

    /// Rests a method of an install after a 429, for as long as the platform said (else 30 s) and a
    /// little jitter. Returns the wait.
    pub fn park(&self, install: &str, method: &str, retry_after: Option<Duration>) -> Duration {
        let [a, b, ..] = self.ids.random();
        let jitter = Duration::from_millis(u64::from(u16::from_be_bytes([a, b])) * 500 / u64::from(u16::MAX));
        let wait = retry_after.unwrap_or(UNSAID).min(LONGEST) + jitter;
        let until = self.clock.now() + wait;
        let mut parked = self.parked();
        let entry = parked.entry((install.to_owned(), method.to_owned())).or_insert(until);
        *entry = until.max(*entry);
        wait
    }

    /// How much longer a method of an install rests after a 429.
    #[must_use]
    pub fn parked_for(&self, install: &str, method: &str) -> Option<Duration> {
        let until = *self.parked().get(&(install.to_owned(), method.to_owned()))?;
        Some(until.saturating_sub(self.clock.now())).filter(|left| !left.is_zero())
    }

    /// Forgets keys that are as good as new.
    pub fn retain_recent(&self) {
        for (_, limiter) in &self.tiers {
            limiter.retain_recent();
        }
        self.channels.retain_recent();
        self.installs.retain_recent();
        let now = self.clock.now();
        self.parked().retain(|_, until| *until > now);
    }

    fn cell<K: Clone + Hash + Eq>(&self, limiter: &Limiter<K>, key: &K) -> Result<(), Duration> {
        limiter
            .check_key(key)
            .map_err(|not_until| not_until.wait_time_from(self.clock.now()).max(Duration::from_millis(1)))
    }

    fn parked(&self) -> MutexGuard<'_, HashMap<Key, Duration>> {
        self.parked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn quota(every_ms: f64, burst: u32) -> Quota {
    let period = Duration::from_secs_f64(every_ms.clamp(0.001, 1e9) / 1000.0).max(Duration::from_nanos(1));
    let burst = NonZeroU32::new(burst).unwrap_or(NonZeroU32::MIN);
    // `None` only for a period of zero.
    Quota::with_period(period).unwrap_or_else(|| Quota::per_second(NonZeroU32::MIN)).allow_burst(burst)
}

fn limiter<K: Clone + Hash + Eq>(quota: Quota, clock: &Steady) -> Limiter<K> {
    RateLimiter::new(quota, DashMapStateStore::default(), clock.clone())
}

/// Our clock as governor wants it: never going back.
#[derive(Debug, Clone)]
struct Steady {
    clock: Arc<dyn Clock>,
    seen: Arc<Mutex<(Millis, Duration)>>,
}

impl Steady {
    fn new(clock: Arc<dyn Clock>) -> Self {
        let now = clock.now();
        // Not zero, so that governor can look back a little.
        Self { clock, seen: Arc::new(Mutex::new((now, LONGEST))) }
    }

    fn now(&self) -> Duration {
        let now = self.clock.now();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let (last, counted) = *seen;
        *seen = (now, counted + now.since(last));
        seen.1
    }
}

impl governor::clock::Clock for Steady {
    type Instant = Duration;

    fn now(&self) -> Duration {
        Steady::now(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicI64;
    use uuid::Uuid;

    #[derive(Debug, Default)]
    struct Hand(AtomicI64);

    impl Clock for Hand {
        fn now(&self) -> Millis {
            Millis(self.0.load(Ordering::Relaxed))
        }
    }

    impl Hand {
        fn ahead(&self, ms: i64) {
            self.0.fetch_add(ms, Ordering::Relaxed);
        }
    }

    #[derive(Debug)]
    struct Dice(u8);

    impl Ids for Dice {
        fn uuid(&self) -> Uuid {
            Uuid::nil()
        }
        fn random(&self) -> [u8; 16] {
            [self.0; 16]
        }
    }

    fn pace(factor: f64) -> (Arc<Hand>, Pace) {
        let hand = Arc::new(Hand::default());
        hand.ahead(1_796_000_000_000);
        (hand.clone(), Pace::new(hand, Arc::new(Dice(0)), factor))
    }

    fn post<'a>(install: &'a str, channel: &'a str) -> Call<'a> {
        Call { install, method: "chat.postMessage", tier: Tier::Special, post_to: Some(channel) }
    }

    fn update(install: &str) -> Call<'_> {
        Call { install, method: "chat.update", tier: Tier::Three, post_to: None }
    }

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn slack_case_22_one_post_a_second_and_channel_none_lost() {
        let (hand, pace) = pace(1.0);
        let (mut sent, mut elsewhere, mut ms) = (vec![], 0, 0_u64);
        while sent.len() < 120 {
            match pace.check(&post("acme", "C1")) {
                Ok(()) => sent.push(ms),
                Err(wait) => {
                    assert!(wait <= MS(1000), "{wait:?}");
                    if pace.check(&post("acme", "C2")).is_ok() {
                        elsewhere += 1;
                    }
                    hand.ahead(100);
                    ms += 100;
                }
            }
        }
        assert!(sent.windows(2).all(|w| w[1] - w[0] >= 1000), "{sent:?}");
        assert!(sent.last().unwrap() <= &125_000);
        assert!(elsewhere >= 119, "other channels go on: {elsewhere}");
    }

    #[test]
    fn an_install_posts_two_hundred_at_once_then_by_the_minute() {
        let (hand, pace) = pace(1.0);
        let channels: Vec<String> = (0..201).map(|n| format!("C{n}")).collect();
        for channel in &channels[..200] {
            assert_eq!(pace.check(&post("acme", channel)), Ok(()));
        }
        assert_eq!(pace.check(&post("acme", &channels[200])), Err(MS(300)));
        assert_eq!(pace.check(&post("other", &channels[200])), Ok(()));
        hand.ahead(1000);
        assert_eq!(pace.check(&post("acme", &channels[200])), Ok(()));
    }

    #[test]
    fn slack_case_21_a_429_parks_its_method_only() {
        let (hand, pace) = pace(1000.0);
        assert_eq!(pace.check(&update("acme")), Ok(()));
        assert_eq!(pace.park("acme", "chat.update", Some(MS(30_000))), MS(30_000));
        assert_eq!(pace.check(&post("acme", "C1")), Ok(()), "posts go on");
        assert_eq!(pace.check(&update("other")), Ok(()), "other installs go on");
        hand.ahead(29_999);
        assert_eq!(pace.check(&update("acme")), Err(MS(1)), "our multiplier does not shorten it");
        hand.ahead(1);
        assert_eq!(pace.check(&update("acme")), Ok(()));
        assert_eq!(pace.park("acme", "chat.update", None), MS(30_000), "no header: 30 s");
        assert_eq!(pace.park("acme", "chat.update", Some(MS(1000))), MS(1000));
        assert_eq!(pace.check(&update("acme")), Err(MS(30_000)), "a shorter one does not cut a longer one");
    }

    #[test]
    fn jitter_is_at_most_half_a_second() {
        let hand = Arc::new(Hand::default());
        let wait = |byte| Pace::new(hand.clone(), Arc::new(Dice(byte)), 1.0).park("a", "m", Some(MS(1000)));
        assert_eq!((wait(0), wait(255)), (MS(1000), MS(1500)));
        assert!(wait(100) > MS(1000) && wait(100) < MS(1500));
    }

    #[test]
    fn tiers_have_their_bursts_and_floors() {
        for (tier, burst, every) in
            [(Tier::One, 5, 20_000), (Tier::Two, 3, 3_000), (Tier::Three, 5, 1_200), (Tier::Four, 10, 600)]
        {
            let (hand, pace) = pace(1.0);
            let call = Call { install: "acme", method: "m", tier, post_to: None };
            for _ in 0..burst {
                assert_eq!(pace.check(&call), Ok(()));
            }
            assert_eq!(pace.check(&call), Err(MS(every)), "{tier:?}");
            hand.ahead(i64::try_from(every).unwrap());
            assert_eq!(pace.check(&call), Ok(()));
            assert!(pace.check(&call).is_err());
        }
        let (_, pace) = pace(1.0);
        let special = Call { install: "acme", method: "auth.test", tier: Tier::Special, post_to: None };
        assert!((0..1000).all(|_| pace.check(&special).is_ok()));
    }

    #[test]
    fn the_factor_multiplies_the_pace() {
        for (factor, wait) in [(10.0, 100), (0.5, 2000), (f64::NAN, 1000), (-1.0, 1000), (0.0, 1000)] {
            let (_, pace) = pace(factor);
            assert_eq!(pace.check(&post("acme", "C1")), Ok(()));
            assert_eq!(pace.check(&post("acme", "C1")), Err(MS(wait)), "{factor}");
        }
    }

    #[test]
    fn a_clock_that_jumps_back_does_not_stop_us() {
        let (hand, pace) = pace(1.0);
        assert_eq!(pace.check(&post("acme", "C1")), Ok(()));
        hand.ahead(-3_600_000);
        assert_eq!(pace.check(&post("acme", "C1")), Err(MS(1000)));
        hand.ahead(1000);
        assert_eq!(pace.check(&post("acme", "C1")), Ok(()));
    }

    #[test]
    fn old_keys_are_forgotten() {
        let (hand, pace) = pace(1.0);
        for n in 0..500 {
            let _ = pace.check(&post("acme", &format!("C{n}")));
        }
        pace.park("acme", "m", Some(MS(1000)));
        assert_eq!(pace.channels.len(), 500);
        hand.ahead(700_000);
        pace.retain_recent();
        assert_eq!((pace.channels.len(), pace.parked().len()), (0, 0));
    }
}

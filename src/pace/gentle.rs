//! Our own pace on Discord: a few messages at once in a channel, then one a second; forty calls a second in all.
//!
//! Invariant: this only smooths. What Discord says (`Remaining`, 429) is kept by whoever calls, and obeyed
//! whatever our multiplier is.

use super::{Limiter, Steady, TIDY, limiter, quota};
use crate::domain::clock::Clock;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The governors of one Discord install.
pub struct Gentle {
    clock: Steady,
    channels: Limiter<String>,
    all: Limiter<()>,
    checks: AtomicUsize,
}

impl std::fmt::Debug for Gentle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gentle").finish_non_exhaustive()
    }
}

impl Gentle {
    /// `factor` multiplies our own pace: 2 is twice as fast. Out-of-range values count as 1.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>, factor: f64) -> Self {
        let factor = if factor.is_finite() && factor > 0.0 { factor.clamp(1e-3, 1e6) } else { 1.0 };
        let clock = Steady::new(clock);
        Self {
            channels: limiter(quota(1_000.0 / factor, 5), &clock),
            all: limiter(quota(25.0 / factor, 40), &clock),
            checks: AtomicUsize::new(0),
            clock,
        }
    }

    /// Takes the right to one call, in a channel if it is one there.
    ///
    /// # Errors
    /// The time until it may go, at the earliest.
    pub fn check(&self, channel: Option<&str>) -> Result<(), Duration> {
        if self.checks.fetch_add(1, Ordering::Relaxed) % TIDY == TIDY - 1 {
            self.channels.retain_recent();
        }
        let wait = |not_until: governor::NotUntil<Duration>| {
            not_until.wait_time_from(self.clock.now()).max(Duration::from_millis(1))
        };
        if let Some(channel) = channel {
            self.channels.check_key(&channel.to_owned()).map_err(wait)?;
        }
        self.all.check_key(&()).map_err(wait)
    }

    /// A clock that never goes back; only differences mean something.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.clock.now()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::clock::Millis;
    use std::sync::atomic::AtomicI64;

    #[derive(Debug, Default)]
    struct Hand(AtomicI64);

    impl Clock for Hand {
        fn now(&self) -> Millis {
            Millis(self.0.load(Ordering::Relaxed))
        }
    }

    #[test]
    fn five_at_once_in_a_channel_then_one_a_second() {
        let hand = Arc::new(Hand::default());
        let pace = Gentle::new(hand.clone(), 1.0);
        for _ in 0..5 {
            assert_eq!(pace.check(Some("1")), Ok(()));
        }
        assert_eq!(pace.check(Some("1")), Err(Duration::from_secs(1)));
        assert_eq!(pace.check(Some("2")), Ok(()), "another channel goes on");
        hand.0.fetch_add(1000, Ordering::Relaxed);
        assert_eq!(pace.check(Some("1")), Ok(()));
        assert!(pace.check(Some("1")).is_err());
    }

    #[test]
    fn forty_a_second_in_all() {
        let hand = Arc::new(Hand::default());
        let pace = Gentle::new(hand.clone(), 1.0);
        let at_once = (0..100).filter(|n| pace.check(Some(&n.to_string())).is_ok()).count();
        assert_eq!(at_once, 40);
        hand.0.fetch_add(100, Ordering::Relaxed);
        assert_eq!((0..100).filter(|_| pace.check(None).is_ok()).count(), 4);
    }
}

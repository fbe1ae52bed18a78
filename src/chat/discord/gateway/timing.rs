//! How long everything takes, and when the gateway may be connected to again.
//!
//! Invariant: a connection that lived is replaced at once; what ends before that is followed by a wait that
//! doubles, so that a server that accepts and closes sees a few connections in a minute and not thousands.

use std::time::Duration;
use tokio::time::Instant;

/// Times of the client; tests use shorter ones.
#[derive(Debug, Clone)]
pub struct Timing {
    /// Without a frame for so long before the session stands, the connection is dead.
    pub hello: Duration,
    /// A session that stood so long ends the back-off.
    pub steady: Duration,
    /// The first wait after a failure; each next is twice as long.
    pub first_wait: Duration,
    pub longest_wait: Duration,
    /// Before a new session in place of one that Discord gave up, at least; at most five times as much.
    pub new_session: Duration,
    /// After a refusal that a person has to mend.
    pub refused: Duration,
    /// How often the sequence is saved while events come.
    pub save: Duration,
    /// How long events that were taken may still be worked off at the end.
    pub farewell: Duration,
    /// The longest heartbeat interval we believe.
    pub longest_beat: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            hello: Duration::from_secs(20),
            steady: Duration::from_secs(20),
            first_wait: Duration::from_secs(1),
            longest_wait: Duration::from_mins(1),
            new_session: Duration::from_secs(1),
            refused: Duration::from_mins(5),
            save: Duration::from_secs(5),
            farewell: Duration::from_secs(3),
            longest_beat: Duration::from_mins(2),
        }
    }
}

impl Timing {
    /// Everything that is waited for, so many times faster (tests). Time for work stays as it is.
    #[must_use]
    pub fn faster(self, times: u32) -> Self {
        let times = times.max(1);
        Self {
            steady: self.steady / times,
            first_wait: self.first_wait / times,
            longest_wait: self.longest_wait / times,
            new_session: self.new_session / times,
            refused: self.refused / times,
            save: self.save / times,
            ..self
        }
    }
}

/// When the next connection may begin.
#[derive(Debug)]
pub(super) struct Gate {
    next: Instant,
    failures: u32,
}

impl Gate {
    pub(super) fn new(now: Instant) -> Self {
        Self { next: now, failures: 0 }
    }

    /// The earliest moment for another connection.
    pub(super) fn next(&self) -> Instant {
        self.next
    }

    pub(super) fn failures(&self) -> u32 {
        self.failures
    }

    /// A connection could not be made, or ended before it had lived. `chance`: a random byte, for ±20 %.
    pub(super) fn failed(&mut self, now: Instant, timing: &Timing, chance: u8) {
        let doubled = timing.first_wait.saturating_mul(2_u32.saturating_pow(self.failures));
        self.failures = self.failures.saturating_add(1);
        let wait = doubled.min(timing.longest_wait).mul_f64(0.8 + 0.4 * f64::from(chance) / 255.0);
        self.hold(now, wait.min(timing.longest_wait));
    }

    /// Nothing is connected for so long.
    pub(super) fn hold(&mut self, now: Instant, wait: Duration) {
        self.next = self.next.max(now + wait);
    }

    /// A session has stood: what failed before counts no more.
    pub(super) fn steady(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn discord_case_70_at_most_ten_connections_in_a_minute() {
        let (start, timing) = (Instant::now(), Timing::default());
        for chance in [0, 127, 255] {
            let mut gate = Gate::new(start);
            let mut connects = vec![];
            let mut now = start;
            while now < start + Duration::from_mins(10) {
                connects.push(now);
                gate.failed(now, &timing, chance);
                now = gate.next();
            }
            let first = connects.iter().filter(|at| **at < start + Duration::from_mins(1)).count();
            assert!(first <= 8, "{first}");
            assert!(connects.len() <= 20, "{}", connects.len());
        }
    }

    #[test]
    fn a_connection_that_lived_is_replaced_at_once_and_a_longer_hold_is_not_cut_short() {
        let (now, timing) = (Instant::now(), Timing::default());
        let mut gate = Gate::new(now);
        gate.failed(now, &timing, 127);
        gate.steady();
        assert_eq!(gate.failures(), 0);
        let mut gate = Gate::new(now);
        gate.hold(now, timing.refused);
        gate.failed(now, &timing, 0);
        assert_eq!(gate.next() - now, timing.refused);
    }
}

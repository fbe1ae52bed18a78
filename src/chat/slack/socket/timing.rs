//! How long everything takes, and when the next socket may be opened.
//!
//! Invariant: one gate for all sockets of an install, so that many that fail together are not many
//! storms; whatever happens, no two openings begin within [`Timing::between_opens`].

use std::time::Duration;
use tokio::time::Instant;

/// Times of the client; tests use shorter ones.
#[derive(Debug, Clone)]
pub struct Timing {
    /// How many sockets are kept open.
    pub sockets: usize,
    /// From the call for an address to `hello`, at most.
    pub hello: Duration,
    /// How often we ping.
    pub ping: Duration,
    /// Without a frame of any kind for so long, a socket is dead.
    pub silence: Duration,
    /// How long a socket that was replaced is read on, unless Slack closes it earlier.
    pub linger: Duration,
    /// A socket that lived so long ends the back-off.
    pub steady: Duration,
    /// The first wait after a failure; each next is twice as long.
    pub first_wait: Duration,
    pub longest_wait: Duration,
    /// Between two openings, at least.
    pub between_opens: Duration,
    /// After "too many sockets".
    pub crowded: Duration,
    /// After a refusal that a person has to mend.
    pub refused: Duration,
    /// How long frames that were taken may still be worked off when a socket is left.
    pub farewell: Duration,
    /// A frame of ours that cannot be sent for so long shows a dead socket.
    pub send: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            sockets: 2,
            hello: Duration::from_secs(10),
            ping: Duration::from_secs(10),
            silence: Duration::from_secs(30),
            linger: Duration::from_secs(30),
            steady: Duration::from_secs(30),
            first_wait: Duration::from_millis(250),
            longest_wait: Duration::from_mins(1),
            between_opens: Duration::from_secs(1),
            crowded: Duration::from_mins(1),
            refused: Duration::from_mins(5),
            farewell: Duration::from_secs(3),
            send: Duration::from_secs(5),
        }
    }
}

impl Timing {
    /// Everything that is waited for, so many times faster (tests). Time for work stays as it is.
    #[must_use]
    pub fn faster(self, times: u32) -> Self {
        let times = times.max(1);
        Self {
            ping: self.ping / times,
            silence: self.silence / times,
            linger: self.linger / times,
            steady: self.steady / times,
            first_wait: self.first_wait / times,
            longest_wait: self.longest_wait / times,
            between_opens: self.between_opens / times,
            crowded: self.crowded / times,
            refused: self.refused / times,
            ..self
        }
    }
}

/// When the next socket may be opened.
#[derive(Debug)]
pub(super) struct Gate {
    next: Instant,
    failures: u32,
}

impl Gate {
    pub(super) fn new(now: Instant) -> Self {
        Self { next: now, failures: 0 }
    }

    /// The earliest moment for another opening.
    pub(super) fn next(&self) -> Instant {
        self.next
    }

    pub(super) fn failures(&self) -> u32 {
        self.failures
    }

    /// An opening begins.
    pub(super) fn opening(&mut self, now: Instant, timing: &Timing) {
        self.hold(now, timing.between_opens);
    }

    /// A socket could not be opened, or ended unasked. `chance`: a random byte, for ±20 %.
    pub(super) fn failed(&mut self, now: Instant, timing: &Timing, chance: u8) {
        let doubled = timing.first_wait.saturating_mul(2_u32.saturating_pow(self.failures));
        self.failures = self.failures.saturating_add(1);
        let wait = doubled.min(timing.longest_wait).mul_f64(0.8 + 0.4 * f64::from(chance) / 255.0);
        self.hold(now, wait.min(timing.longest_wait));
    }

    /// Nothing is opened for so long.
    pub(super) fn hold(&mut self, now: Instant, wait: Duration) {
        self.next = self.next.max(now + wait);
    }

    /// A socket has lived: what failed before counts no more.
    pub(super) fn steady(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_minute_and_openings_are_a_second_apart() {
        let (start, timing) = (Instant::now(), Timing::default());
        let mut gate = Gate::new(start);
        assert_eq!(gate.next(), start, "the first opening waits for nothing");
        let mut now = start;
        let mut waits = vec![];
        for _ in 0..12 {
            gate.opening(now, &timing);
            gate.failed(now, &timing, 127);
            waits.push((gate.next() - now).as_secs_f64().round());
            now = gate.next();
        }
        assert_eq!(waits, [1.0, 1.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0, 60.0]);
        gate.steady();
        gate.opening(now, &timing);
        gate.failed(now, &timing, 255);
        assert_eq!(gate.next() - now, timing.between_opens);
    }

    #[test]
    fn waits_are_spread_and_never_longer_than_the_longest() {
        let timing = Timing { between_opens: Duration::ZERO, ..Timing::default() };
        let now = Instant::now();
        let wait = |failures: u32, chance| {
            let mut gate = Gate { next: now, failures };
            gate.failed(now, &timing, chance);
            gate.next() - now
        };
        assert_eq!(wait(0, 0), Duration::from_millis(200));
        assert_eq!(wait(0, 255), Duration::from_millis(300));
        assert_eq!((wait(40, 255), wait(40, 0)), (Duration::from_mins(1), Duration::from_secs(48)));
    }

    #[test]
    fn a_longer_hold_is_not_cut_short() {
        let (now, timing) = (Instant::now(), Timing::default());
        let mut gate = Gate::new(now);
        gate.hold(now, timing.refused);
        gate.failed(now, &timing, 0);
        gate.opening(now, &timing);
        assert_eq!(gate.next() - now, timing.refused);
    }
}

//! The machine's own time, ids and randomness: what tests replace.

use crate::domain::clock::{Clock, Millis};
use crate::domain::ids::Ids;
use ring::rand::{SecureRandom, SystemRandom};
use std::time::{SystemTime, UNIX_EPOCH};
use uuid::Uuid;

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct MachineClock;

impl Clock for MachineClock {
    fn now(&self) -> Millis {
        #[expect(clippy::disallowed_methods, reason = "the one clock of the product")]
        let now = SystemTime::now();
        Millis(
            now.duration_since(UNIX_EPOCH)
                .map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX)),
        )
    }
}

/// The machine's randomness.
#[derive(Debug, Clone)]
pub struct MachineIds(SystemRandom);

impl Default for MachineIds {
    fn default() -> Self {
        Self(SystemRandom::new())
    }
}

impl Ids for MachineIds {
    fn uuid(&self) -> Uuid {
        #[expect(clippy::disallowed_methods, reason = "the one source of ids of the product")]
        Uuid::now_v7()
    }

    fn random(&self) -> [u8; 16] {
        let mut bytes = [0; 16];
        // Without randomness no token can be made that nobody guesses: stopping is right.
        self.0.fill(&mut bytes).expect("the operating system gives random bytes");
        bytes
    }
}

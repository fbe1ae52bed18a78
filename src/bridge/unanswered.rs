//! Presses whose first response is still on its way.
//!
//! Invariant: a private notice by the token of a press goes out after the first response to it, because the
//! platform takes none before (Discord). Kept in memory: only the process that took the press answers it. Another
//! one's notice that comes too early takes another way to the person.

use crate::domain::form::sha256_hex;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

/// The presses that are being answered, by a hash of their tokens.
#[derive(Debug, Clone, Default)]
pub struct Unanswered(Arc<Mutex<HashSet<String>>>);

/// While this lives, the press is being answered.
#[derive(Debug)]
pub struct Answering {
    of: Unanswered,
    key: String,
}

impl Unanswered {
    /// A press is about to be taken and answered.
    #[must_use]
    pub fn begin(&self, token: &str) -> Answering {
        let key = sha256_hex(token.as_bytes());
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone());
        Answering { of: self.clone(), key }
    }

    pub(super) fn has(&self, token: &str) -> bool {
        let key = sha256_hex(token.as_bytes());
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(&key)
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.of.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_press_is_being_answered_until_it_was() {
        let all = Unanswered::default();
        let one = all.begin("token");
        assert!(all.has("token") && !all.has("other"));
        assert!(!format!("{all:?}").contains("token\""));
        drop(one);
        assert!(!all.has("token"));
    }
}

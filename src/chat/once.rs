//! What a chat platform has refused once, by key, so that it is not sent again.
//!
//! Invariant: bounded and only in memory: when it is full, or after a restart, something may be refused a
//! second time.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

const MOST: usize = 4096;

/// Keys that are remembered.
#[derive(Debug, Default)]
pub(super) struct Once(Mutex<HashSet<String>>);

impl Once {
    pub(super) fn knows(&self, key: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(key)
    }

    pub(super) fn remember(&self, key: &str) {
        let mut keys = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if keys.len() >= MOST {
            keys.clear();
        }
        keys.insert(key.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_is_bounded() {
        let refused = Once::default();
        for n in 0..=MOST {
            refused.remember(&n.to_string());
        }
        assert!(refused.knows(&MOST.to_string()) && !refused.knows("0"));
    }
}

//! What an endpoint has refused to do at all, so that it is not asked for it again and again.
//!
//! Invariant: a refusal is remembered for an hour, or until the agent describes itself anew; it is
//! about the operation, never about one task.

use crate::domain::clock::Millis;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

const REMEMBERED: Duration = Duration::from_hours(1);

/// One operation that a runtime may not have.
#[derive(Debug, Default)]
pub(crate) struct Feature(Mutex<Option<(Millis, u64)>>);

impl Feature {
    /// It was refused, under this generation of the agent's description.
    pub(crate) fn refused(&self, now: Millis, generation: u64) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((now.plus(REMEMBERED), generation));
    }

    /// Whether it is worth asking.
    pub(crate) fn may_be_there(&self, now: Millis, generation: u64) -> bool {
        let refused = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        refused.is_none_or(|(until, at)| now >= until || at != generation)
    }
}

/// What is remembered of one endpoint.
#[derive(Debug, Default)]
pub(crate) struct Features {
    pub(crate) list: Feature,
    pub(crate) streams: Feature,
    pub(crate) push: Feature,
    /// Over HTTP+JSON: subscribing takes POST here (A2A 1.0 names both methods in different places).
    subscribe_by_post: AtomicBool,
}

impl Features {
    pub(crate) fn subscribes_by_post(&self) -> bool {
        self.subscribe_by_post.load(Ordering::Relaxed)
    }

    pub(crate) fn remember_method(&self, post: bool) {
        self.subscribe_by_post.store(post, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_lasts_an_hour_or_until_the_agent_describes_itself_anew() {
        let feature = Feature::default();
        assert!(feature.may_be_there(Millis(0), 1));
        feature.refused(Millis(0), 1);
        assert!(!feature.may_be_there(Millis(3_599_999), 1));
        assert!(feature.may_be_there(Millis(3_600_000), 1));
        assert!(feature.may_be_there(Millis(1), 2));
    }
}

//! Time as a parameter.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A moment, in milliseconds since 1970-01-01T00:00:00Z.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Millis(pub i64);

impl Millis {
    /// This moment and `by` later.
    #[must_use]
    pub fn plus(self, by: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(by.as_millis()).unwrap_or(i64::MAX)))
    }

    /// This moment and `by` earlier.
    #[must_use]
    pub fn minus(self, by: Duration) -> Self {
        Self(self.0.saturating_sub(i64::try_from(by.as_millis()).unwrap_or(i64::MAX)))
    }

    /// How long after `earlier` this is; zero when it is not.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// RFC 3339 in UTC with milliseconds, as the audit log prints it.
    #[must_use]
    pub fn rfc3339(self) -> String {
        jiff::Timestamp::from_millisecond(self.0).map_or_else(|_| self.0.to_string(), |at| format!("{at:.3}"))
    }
}

/// Where the time comes from: the machine in `run`, a hand-moved value in tests.
pub trait Clock: Send + Sync + std::fmt::Debug {
    fn now(&self) -> Millis;
}

//! Messages of ours that are no cards.

use crate::domain::clock::Millis;
use serde::{Deserialize, Serialize};

/// What a bulletin says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "bulletin", rename_all = "snake_case")]
pub enum Bulletin {
    /// So many requests wait for room in this place; 0: the message is not needed.
    Waiting { count: i64 },
    /// An alert stands, or (`over`) stood until then.
    Alert { key: String, text: String, since: Millis, over: Option<Millis> },
}

impl Bulletin {
    /// Nothing follows: a message that says so is the last, and none needs to be posted for it.
    #[must_use]
    pub fn is_over(&self) -> bool {
        matches!(self, Self::Waiting { count: ..=0 } | Self::Alert { over: Some(_), .. })
    }
}

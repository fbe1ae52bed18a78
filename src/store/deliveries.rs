//! Keys of deliveries that were taken, so that a copy has no second effect.
//!
//! Invariant: a key is new once; it is kept for longer than the platforms may deliver again.

use super::dialect::{exec, fetch_all};
use super::{StoreError, Tx};
use crate::domain::clock::Millis;

const NOTE: &str = "INSERT INTO deliveries (key, received_ms) VALUES ($1, $2) ON CONFLICT (key) DO NOTHING";
const KNOWN: &str = "SELECT key FROM deliveries WHERE key = $1";

impl Tx {
    /// Notes a key; whether it is new.
    pub async fn note_delivery(&mut self, key: &str, now: Millis) -> Result<bool, StoreError> {
        Ok(exec!(self, NOTE, key, now.0)? == 1)
    }

    /// Whether a key was noted before.
    pub async fn knows_delivery(&mut self, key: &str) -> Result<bool, StoreError> {
        Ok(!fetch_all!(self, (String,), KNOWN, key)?.is_empty())
    }
}

//! What operators should look at: each thing once, however often it is found.
//!
//! Invariant: one row per key; only the raise that made the row says "new", so each thing is told
//! once until it is cleared.

use super::dialect::{exec, fetch_all, fetch_optional};
use super::{StoreError, Tx};
use crate::domain::clock::Millis;

const RAISE: &str = "INSERT INTO alerts (key, text, since_ms) VALUES ($1, $2, $3) \
    ON CONFLICT (key) DO UPDATE SET text = excluded.text, times = alerts.times + 1 RETURNING times";
const CLEAR: &str = "DELETE FROM alerts WHERE key = $1";
const LIST: &str = "SELECT key, text, since_ms, times FROM alerts ORDER BY since_ms";

/// Something operators should look at.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Alert {
    pub key: String,
    pub text: String,
    pub since: Millis,
    /// How often it was found.
    pub times: i64,
}

impl Tx {
    /// Raises an alert. `true` when it is new: tell somebody.
    pub async fn raise(&mut self, key: &str, text: &str, at: Millis) -> Result<bool, StoreError> {
        let row = fetch_optional!(self, (i64,), RAISE, key, text, at.0)?;
        Ok(row.is_some_and(|(times,)| times == 1))
    }

    /// It is over. `false`: it was not raised.
    pub async fn clear(&mut self, key: &str) -> Result<bool, StoreError> {
        Ok(exec!(self, CLEAR, key)? == 1)
    }

    /// Everything raised, oldest first.
    pub async fn alerts(&mut self) -> Result<Vec<Alert>, StoreError> {
        let rows = fetch_all!(self, (String, String, i64, i64), LIST)?;
        let mut alerts: Vec<Alert> = rows
            .into_iter()
            .map(|(key, text, since, times)| Alert { key, text, since: Millis(since), times })
            .collect();
        // Texts sort by locale on one of the databases.
        alerts.sort_by(|a, b| (a.since, &a.key).cmp(&(b.since, &b.key)));
        Ok(alerts)
    }
}

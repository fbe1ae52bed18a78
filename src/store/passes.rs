//! When each runtime was last read to the end, by whichever replica watches it.
//!
//! Invariant: one row per runtime; nothing is decided from it, operators see it in `/readyz`.

use super::dialect::{exec, fetch_all};
use super::{StoreError, Tx};
use crate::domain::clock::Millis;

const PREFIX: &str = "pass:";
const NOTE: &str =
    "INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value";
const ALL: &str = "SELECT key, value FROM meta WHERE key LIKE 'pass:%'";

impl Tx {
    /// A pass over the runtime reached its end.
    pub async fn note_pass(&mut self, runtime: &str, at: Millis) -> Result<(), StoreError> {
        exec!(self, NOTE, format!("{PREFIX}{runtime}"), at.0.to_string()).map(|_| ())
    }

    /// The newest finished pass of every runtime.
    pub async fn passes(&mut self) -> Result<Vec<(String, Millis)>, StoreError> {
        Ok(fetch_all!(self, (String, String), ALL)?
            .into_iter()
            .filter_map(|(key, at)| Some((key.strip_prefix(PREFIX)?.to_owned(), Millis(at.parse().ok()?))))
            .collect())
    }
}

//! The incident stop: to which runtimes no answers are sent.
//!
//! Invariant: one row per stop; `*` stands for every runtime, also one that is configured later. A stop
//! ends only by being taken back.

use super::dialect::{exec, fetch_all, fetch_optional};
use super::{StoreError, Tx};
use crate::domain::clock::Millis;
use crate::domain::ids::AnswerId;

/// The name that stands for every runtime.
pub const EVERY: &str = "*";

const PAUSE: &str = "INSERT INTO pauses (runtime, since_ms) VALUES ($1, $2) ON CONFLICT (runtime) DO NOTHING";
const RESUME: &str = "DELETE FROM pauses WHERE runtime = $1 OR $1 = '*'";
const LIST: &str = "SELECT runtime, since_ms FROM pauses";
const HOLDS: &str = "SELECT MIN(since_ms) FROM pauses WHERE runtime = $1 OR runtime = '*'";
const OF_ANSWER: &str = "SELECT MIN(p.since_ms) FROM answers a JOIN interactions i ON i.id = a.interaction_id \
    JOIN pauses p ON p.runtime = i.runtime OR p.runtime = '*' WHERE a.id = $1";
const WAITING: &str =
    "SELECT COUNT(*) FROM interactions WHERE state = 'answering' AND ($1 = '*' OR runtime = $1)";

/// A stop that stands.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Pause {
    /// A runtime, or [`EVERY`].
    pub runtime: String,
    pub since: Millis,
}

impl Tx {
    /// Stops answers to a runtime ([`EVERY`]: to all). `false`: it was stopped already.
    pub async fn pause(&mut self, runtime: &str, at: Millis) -> Result<bool, StoreError> {
        Ok(exec!(self, PAUSE, runtime, at.0)? == 1)
    }

    /// Takes a stop back ([`EVERY`]: all of them). `false`: there was none.
    pub async fn resume(&mut self, runtime: &str) -> Result<bool, StoreError> {
        Ok(exec!(self, RESUME, runtime)? > 0)
    }

    /// Every stop that stands, by name.
    pub async fn pauses(&mut self) -> Result<Vec<Pause>, StoreError> {
        let rows = fetch_all!(self, (String, i64), LIST)?;
        let mut pauses: Vec<Pause> =
            rows.into_iter().map(|(runtime, since)| Pause { runtime, since: Millis(since) }).collect();
        // Texts sort by locale on one of the databases.
        pauses.sort_by(|a, b| a.runtime.cmp(&b.runtime));
        Ok(pauses)
    }

    /// Since when answers to this runtime are stopped, if they are.
    pub async fn paused(&mut self, runtime: &str) -> Result<Option<Millis>, StoreError> {
        Ok(fetch_optional!(self, (Option<i64>,), HOLDS, runtime)?.and_then(|(since,)| since).map(Millis))
    }

    /// The same of the runtime that an answer is for.
    pub async fn answer_paused(&mut self, answer: AnswerId) -> Result<Option<Millis>, StoreError> {
        let row = fetch_optional!(self, (Option<i64>,), OF_ANSWER, answer.0)?;
        Ok(row.and_then(|(since,)| since).map(Millis))
    }

    /// How many answers to a runtime ([`EVERY`]: to all) are on their way or wait.
    pub async fn answering(&mut self, runtime: &str) -> Result<i64, StoreError> {
        Ok(fetch_optional!(self, (i64,), WAITING, runtime)?.map_or(0, |(count,)| count))
    }
}

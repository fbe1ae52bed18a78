//! Deleting what is old, in small batches, so that nobody waits long for the writer.
//!
//! Invariants:
//! - the audit log is never touched here;
//! - an interaction goes only when it is settled and no living job is about it, its cards, its
//!   clicks or its answers; what belongs to it goes in the same transaction;
//! - an undecided click is never deleted: it was acknowledged.
//!
//! Known race: a click on a card whose interaction goes in the same instant stays without it; it is
//! told that there is nothing to answer, and goes by its own age later.

use super::dialect::{exec, fetch_all};
use super::{Store, StoreError, Tx};
use crate::domain::clock::Millis;
use futures_util::FutureExt;
use std::time::Duration;
use uuid::Uuid;

/// Rows per transaction.
const BATCH: i64 = 50;
/// An address for replies works that long on the platforms (Slack: `response_url`, 30 minutes).
pub const REPLY_LIFE: Duration = Duration::from_mins(30);
/// No platform delivers again so late.
const AGAIN_LIFE: Duration = Duration::from_hours(72);

const OLD_SETTLED: &str = "SELECT i.id FROM interactions i WHERE i.state = 'settled' AND i.settled_ms < $1 \
    AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.ref = i.id AND j.dead_ms IS NULL) \
    AND NOT EXISTS (SELECT 1 FROM cards c JOIN jobs j ON j.ref = c.id \
        WHERE c.interaction_id = i.id AND j.dead_ms IS NULL) \
    AND NOT EXISTS (SELECT 1 FROM clicks c JOIN jobs j ON j.ref = c.id \
        WHERE c.interaction_id = i.id AND j.dead_ms IS NULL) \
    AND NOT EXISTS (SELECT 1 FROM answers a JOIN jobs j ON j.ref = a.id \
        WHERE a.interaction_id = i.id AND j.dead_ms IS NULL) \
    ORDER BY i.settled_ms LIMIT $2";
/// What belongs to an interaction, in the order in which it can go.
const PARTS: [&str; 10] = [
    "DELETE FROM threads WHERE root_card IN (SELECT id FROM cards WHERE interaction_id = $1)",
    "DELETE FROM tokens WHERE card_id IN (SELECT id FROM cards WHERE interaction_id = $1)",
    "DELETE FROM openings WHERE card_id IN (SELECT id FROM cards WHERE interaction_id = $1)",
    "DELETE FROM full_views WHERE interaction_id = $1",
    "DELETE FROM copies WHERE card_id IN (SELECT id FROM cards WHERE interaction_id = $1)",
    "DELETE FROM votes WHERE interaction_id = $1",
    "DELETE FROM answers WHERE interaction_id = $1",
    "DELETE FROM clicks WHERE interaction_id = $1 AND state <> 'stored'",
    "DELETE FROM cards WHERE interaction_id = $1",
    "DELETE FROM interactions WHERE id = $1 AND state = 'settled'",
];
/// Clicks that belong to no interaction (any more).
const OLD_CLICKS: &str = "DELETE FROM clicks WHERE id IN (SELECT c.id FROM clicks c WHERE c.received_ms < $1 \
    AND c.state NOT IN ('stored', 'claimed') \
    AND NOT EXISTS (SELECT 1 FROM interactions i WHERE i.id = c.interaction_id) ORDER BY c.received_ms LIMIT $2)";
const OLD_REPLIES: &str = "UPDATE clicks SET reply = NULL WHERE id IN (SELECT id FROM clicks \
    WHERE reply IS NOT NULL AND received_ms < $1 ORDER BY received_ms LIMIT $2)";
const OLD_TASKS: &str = "DELETE FROM tasks WHERE state = 'ended' AND due_ms < $1";
/// A dead answer goes with its answer.
const OLD_JOBS: &str = "DELETE FROM jobs WHERE id IN (SELECT j.id FROM jobs j WHERE j.dead_ms < $1 \
    AND (j.kind <> 'answer' OR NOT EXISTS (SELECT 1 FROM answers a WHERE a.id = j.ref)) LIMIT $2)";
const OLD_UNREADABLE: &str =
    "DELETE FROM unreadable WHERE id IN (SELECT id FROM unreadable WHERE received_ms < $1 LIMIT $2)";
const OLD_DELIVERIES: &str = "DELETE FROM deliveries WHERE key IN (SELECT key FROM deliveries \
    WHERE received_ms < $1 ORDER BY received_ms LIMIT $2)";

/// How much went.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Swept {
    pub interactions: u64,
    pub clicks: u64,
    pub replies: u64,
    pub tasks: u64,
    pub jobs: u64,
    pub unreadable: u64,
    pub deliveries: u64,
}

impl Store {
    /// Deletes what ended more than `keep` before `now`, and forgets reply addresses that no longer
    /// work. Many short transactions.
    pub async fn sweep(&self, now: Millis, keep: Duration) -> Result<Swept, StoreError> {
        let before = now.minus(keep);
        Ok(Swept {
            interactions: self.sweep_interactions(before).await?,
            clicks: self.sweep_rows(OLD_CLICKS, before).await?,
            replies: self.sweep_rows(OLD_REPLIES, now.minus(REPLY_LIFE)).await?,
            tasks: self.write(move |tx| async move { exec!(tx, OLD_TASKS, before.0) }.boxed()).await?,
            jobs: self.sweep_rows(OLD_JOBS, before).await?,
            unreadable: self.sweep_rows(OLD_UNREADABLE, before).await?,
            deliveries: self.sweep_rows(OLD_DELIVERIES, now.minus(AGAIN_LIFE)).await?,
        })
    }

    async fn sweep_interactions(&self, before: Millis) -> Result<u64, StoreError> {
        let mut gone = 0;
        loop {
            let batch = self.write(move |tx| settled_batch(tx, before).boxed()).await?;
            gone += batch;
            if batch < BATCH.unsigned_abs() {
                return Ok(gone);
            }
        }
    }

    async fn sweep_rows(&self, sql: &'static str, before: Millis) -> Result<u64, StoreError> {
        let mut gone = 0;
        loop {
            let batch = self.write(move |tx| async move { exec!(tx, sql, before.0, BATCH) }.boxed()).await?;
            gone += batch;
            if batch < BATCH.unsigned_abs() {
                return Ok(gone);
            }
        }
    }
}

async fn settled_batch(tx: &mut Tx, before: Millis) -> Result<u64, StoreError> {
    let ids = fetch_all!(tx, (Uuid,), OLD_SETTLED, before.0, BATCH)?;
    let mut gone = 0;
    for (id,) in ids {
        let mut last = 0;
        for part in PARTS {
            last = exec!(tx, part, id)?;
        }
        if last != 1 {
            // It reopened in between; its parts come back with the transaction.
            return Err(StoreError::Conflict(format!("interaction {id} is not settled any more")));
        }
        gone += last;
    }
    Ok(gone)
}

//! Tasks that the operator's programs registered to be watched, and deliveries nobody could read.
//!
//! Invariant: a registration is idempotent; registering an ended task watches it again, and the next
//! reading says whether that was right. Which replica reads a runtime's tasks is decided by a lease,
//! so a due task is not claimed here.

use super::dialect::{exec, fetch_all, fetch_optional};
use super::{StoreError, Tx};
use crate::domain::clock::Millis;
use uuid::Uuid;

/// What is not said again is kept.
const REGISTER: &str = "INSERT INTO tasks (runtime, task, context, subject, state, registered_ms, due_ms) \
    VALUES ($1, $2, $3, $4, 'watched', $5, $5) \
    ON CONFLICT (runtime, task) DO UPDATE SET context = COALESCE(excluded.context, tasks.context), \
    subject = COALESCE(excluded.subject, tasks.subject), state = 'watched', due_ms = excluded.due_ms, \
    missing_ms = NULL";
const DUE: &str = "SELECT task, context, subject, registered_ms, missing_ms FROM tasks \
    WHERE runtime = $1 AND state = 'watched' AND due_ms <= $2 ORDER BY due_ms, task LIMIT $3";
/// Since when it is missing is said by the first reading that did not find it.
const READ: &str = "UPDATE tasks SET due_ms = $3, \
    missing_ms = CASE WHEN $4 IS NULL THEN NULL ELSE COALESCE(missing_ms, $4) END \
    WHERE runtime = $1 AND task = $2 AND state = 'watched'";
const END: &str = "UPDATE tasks SET state = 'ended', due_ms = $3, missing_ms = NULL \
    WHERE runtime = $1 AND task = $2 AND state = 'watched'";
const ONE: &str = "SELECT task, context, subject, registered_ms, missing_ms FROM tasks \
    WHERE runtime = $1 AND task = $2 AND state = 'watched'";
const HURRY: &str = "UPDATE tasks SET due_ms = $3 \
    WHERE runtime = $1 AND task = $2 AND state = 'watched' AND due_ms > $3";
const KEPT: &str = "SELECT source, body FROM unreadable ORDER BY received_ms, id LIMIT $1";
const UNREADABLE: &str = "INSERT INTO unreadable (id, source, received_ms, body) VALUES ($1, $2, $3, $4)";

/// A task to watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTask {
    pub runtime: String,
    pub task: String,
    pub context: Option<String>,
    /// Read it as this subject; `None` = the watching credential.
    pub subject: Option<String>,
}

/// A watched task whose next reading is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueTask {
    pub task: String,
    pub context: Option<String>,
    pub subject: Option<String>,
    pub registered: Millis,
    /// Since when readings do not find it.
    pub missing: Option<Millis>,
}

type Row = (String, Option<String>, Option<String>, i64, Option<i64>);

fn due((task, context, subject, registered, missing): Row) -> DueTask {
    DueTask { task, context, subject, registered: Millis(registered), missing: missing.map(Millis) }
}

impl Tx {
    /// Watches a task from now on; its first reading is due at once.
    pub async fn register_task(&mut self, new: NewTask, at: Millis) -> Result<(), StoreError> {
        let NewTask { runtime, task, context, subject } = new;
        exec!(self, REGISTER, runtime, task, context, subject, at.0)?;
        self.wakes();
        Ok(())
    }

    /// The tasks of a runtime to read now, longest due first.
    pub async fn due_tasks(
        &mut self,
        runtime: &str,
        now: Millis,
        limit: i64,
    ) -> Result<Vec<DueTask>, StoreError> {
        Ok(fetch_all!(self, Row, DUE, runtime, now.0, limit)?.into_iter().map(due).collect())
    }

    /// A registered task that is watched.
    pub async fn watched_task(&mut self, runtime: &str, task: &str) -> Result<Option<DueTask>, StoreError> {
        Ok(fetch_optional!(self, Row, ONE, runtime, task)?.map(due))
    }

    /// Its next reading is due by this moment. `false`: not watched, or due sooner.
    pub async fn hurry_task(&mut self, runtime: &str, task: &str, by: Millis) -> Result<bool, StoreError> {
        Ok(exec!(self, HURRY, runtime, task, by.0)? == 1)
    }

    /// It was read: the next reading, and the time of this one where it did not find the task (the
    /// first such time stays). `false`: not watched (any more).
    pub async fn task_read(
        &mut self,
        runtime: &str,
        task: &str,
        due: Millis,
        missing: Option<Millis>,
    ) -> Result<bool, StoreError> {
        Ok(exec!(self, READ, runtime, task, due.0, missing.map(|at| at.0))? == 1)
    }

    /// It is over: not read any more. `false`: not watched (any more).
    pub async fn task_ended(&mut self, runtime: &str, task: &str, at: Millis) -> Result<bool, StoreError> {
        Ok(exec!(self, END, runtime, task, at.0)? == 1)
    }

    /// Whether a delivery of this source was kept since a moment.
    pub async fn unreadable_since(&mut self, source: &str, since: Millis) -> Result<bool, StoreError> {
        let sql = "SELECT COUNT(*) FROM unreadable WHERE source = $1 AND received_ms > $2";
        Ok(fetch_optional!(self, (i64,), sql, source, since.0)?.is_some_and(|(count,)| count > 0))
    }

    /// Keeps a delivery that was signed and could not be read. `source` says which door it came by.
    pub async fn keep_unreadable(
        &mut self,
        id: Uuid,
        source: &str,
        received: Millis,
        body: &[u8],
    ) -> Result<(), StoreError> {
        exec!(self, UNREADABLE, id, source, received.0, body.to_vec())?;
        Ok(())
    }

    /// Deliveries that were kept, oldest first: by which door each came, and its bytes.
    pub async fn kept_deliveries(&mut self, limit: i64) -> Result<Vec<(String, Vec<u8>)>, StoreError> {
        fetch_all!(self, (String, Vec<u8>), KEPT, limit)
    }
}

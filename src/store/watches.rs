//! Tasks that are followed, and the push configurations that runtimes were given for them.
//!
//! Invariants: of a secret only its hash is here; a task has at most one configuration that is not
//! ending; a notification counts before it is acknowledged, and a reading takes away only the
//! notifications that came before it began.

use super::dialect::{exec, fetch_all, fetch_optional};
use super::{StoreError, Tx};
use crate::domain::clock::Millis;
use crate::domain::ids::{RuntimeName, Subject};

const OPEN_TASKS: &str = "SELECT task, context, seen_as FROM interactions \
    WHERE runtime = $1 AND state <> 'settled' ORDER BY id DESC LIMIT $2";
const WATCHED_TASKS: &str = "SELECT task, context, subject FROM tasks \
    WHERE runtime = $1 AND state = 'watched' ORDER BY registered_ms DESC, task LIMIT $2";
const OF_TASK: &str = "SELECT external, state FROM interactions \
    WHERE runtime = $1 AND task = $2 AND state <> 'settled'";
const INSERT: &str = "INSERT INTO watches (id, runtime, task, context, seen_as, path_hash, credential_hash, token_hash, \
    state, made_ms, due_ms) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 'new', $9, $10) ON CONFLICT DO NOTHING";
const BY_PATH: &str = "SELECT id, runtime, task, context, seen_as, credential_hash, token_hash, state, hints, made_ms \
    FROM watches WHERE path_hash = $1 AND state <> 'ending'";
const OF_RUNTIME: &str = "SELECT id, runtime, task, context, seen_as, credential_hash, token_hash, state, hints, made_ms \
    FROM watches WHERE runtime = $1 AND state <> 'ending' ORDER BY made_ms, id";
const DUE: &str = "SELECT id, runtime, task, context, seen_as, credential_hash, token_hash, state, hints, made_ms \
    FROM watches WHERE runtime = $1 AND due_ms <= $2 AND (state = 'ending') = $3 ORDER BY due_ms, id LIMIT $4";
const LIVE: &str = "UPDATE watches SET state = 'live' WHERE id = $1 AND state = 'new'";
const HINT: &str = "UPDATE watches SET hints = hints + 1, due_ms = $2 WHERE id = $1 AND state <> 'ending'";
const READ: &str = "UPDATE watches SET due_ms = $3 WHERE id = $1 AND hints = $2 AND state <> 'ending'";
const END: &str = "UPDATE watches SET state = 'ending', due_ms = $2 WHERE id = $1 AND state <> 'ending'";
const LATER: &str = "UPDATE watches SET due_ms = $2 WHERE id = $1 AND state = 'ending'";

/// A task to follow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    pub task: String,
    pub context: Option<String>,
    pub seen_as: Option<Subject>,
    /// Something in it is open.
    pub open: bool,
}

/// A new configuration; its secrets as hashes.
#[derive(Debug, Clone)]
pub struct NewHook {
    pub id: String,
    pub runtime: RuntimeName,
    pub task: String,
    pub context: Option<String>,
    pub seen_as: Option<Subject>,
    pub path_hash: String,
    pub credential_hash: String,
    pub token_hash: String,
}

/// A configuration as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookRow {
    pub id: String,
    pub runtime: RuntimeName,
    pub task: String,
    pub context: Option<String>,
    pub seen_as: Option<Subject>,
    pub credential_hash: String,
    pub token_hash: String,
    /// The runtime has confirmed it.
    pub live: bool,
    pub hints: i64,
    pub made: Millis,
}

type KnownRow = (String, Option<String>, Option<String>);
type Row = (String, String, String, Option<String>, Option<String>, String, String, String, i64, i64);

fn subject(text: Option<String>) -> Option<Subject> {
    text.and_then(|text| Subject::parse(&text).ok())
}

fn hook(row: Row) -> HookRow {
    let (id, runtime, task, context, seen_as, credential_hash, token_hash, state, hints, made) = row;
    HookRow {
        id,
        runtime: RuntimeName::new(runtime),
        task,
        context,
        seen_as: subject(seen_as),
        credential_hash,
        token_hash,
        live: state == "live",
        hints,
        made: Millis(made),
    }
}

impl Tx {
    /// The tasks of a runtime that are worth following, each once: those with something open, newest
    /// first, then the registered ones. At most `limit`.
    pub async fn tasks_to_follow(&mut self, runtime: &str, limit: i64) -> Result<Vec<Known>, StoreError> {
        let open = fetch_all!(self, KnownRow, OPEN_TASKS, runtime, limit)?;
        let registered = fetch_all!(self, KnownRow, WATCHED_TASKS, runtime, limit)?;
        let rows =
            open.into_iter().map(|row| (row, true)).chain(registered.into_iter().map(|row| (row, false)));
        let mut seen = std::collections::HashSet::new();
        let mut all = vec![];
        for ((task, context, seen_as), open) in rows {
            if i64::try_from(all.len()).is_ok_and(|count| count < limit) && seen.insert(task.clone()) {
                all.push(Known { task, context, seen_as: subject(seen_as), open });
            }
        }
        Ok(all)
    }

    /// What is not settled in a task: the runtime's id, and whether an answer is on its way.
    pub async fn unsettled_in(
        &mut self,
        runtime: &RuntimeName,
        task: &str,
    ) -> Result<Vec<(String, bool)>, StoreError> {
        let rows = fetch_all!(self, (String, String), OF_TASK, runtime.as_str(), task)?;
        Ok(rows.into_iter().map(|(external, state)| (external, state == "answering")).collect())
    }

    /// Keeps a configuration before it is asked for. `false`: the task has one.
    pub async fn insert_hook(&mut self, new: &NewHook, at: Millis, due: Millis) -> Result<bool, StoreError> {
        let rows = exec!(
            self,
            INSERT,
            &new.id,
            new.runtime.as_str(),
            &new.task,
            new.context.as_deref(),
            new.seen_as.as_ref().map(Subject::as_str),
            &new.path_hash,
            &new.credential_hash,
            &new.token_hash,
            at.0,
            due.0,
        )?;
        Ok(rows == 1)
    }

    /// The configuration whose calls come to this path.
    pub async fn hook_at(&mut self, path_hash: &str) -> Result<Option<HookRow>, StoreError> {
        Ok(fetch_optional!(self, Row, BY_PATH, path_hash)?.map(hook))
    }

    /// Every configuration of a runtime that is not ending.
    pub async fn hooks_of(&mut self, runtime: &str) -> Result<Vec<HookRow>, StoreError> {
        Ok(fetch_all!(self, Row, OF_RUNTIME, runtime)?.into_iter().map(hook).collect())
    }

    /// How many configurations of a runtime there are, ending ones too.
    pub async fn count_hooks(&mut self, runtime: &str) -> Result<i64, StoreError> {
        let sql = "SELECT COUNT(*) FROM watches WHERE runtime = $1";
        Ok(fetch_optional!(self, (i64,), sql, runtime)?.map_or(0, |(count,)| count))
    }

    /// Configurations whose task is to be read now (`ending`: that are to be deleted now).
    pub async fn due_hooks(
        &mut self,
        runtime: &str,
        now: Millis,
        ending: bool,
        limit: i64,
    ) -> Result<Vec<HookRow>, StoreError> {
        Ok(fetch_all!(self, Row, DUE, runtime, now.0, ending, limit)?.into_iter().map(hook).collect())
    }

    /// The runtime has confirmed it.
    pub async fn hook_live(&mut self, id: &str) -> Result<bool, StoreError> {
        Ok(exec!(self, LIVE, id)? == 1)
    }

    /// The runtime has called: its task is to be read now. `false`: it is ending.
    pub async fn hint(&mut self, id: &str, at: Millis) -> Result<bool, StoreError> {
        Ok(exec!(self, HINT, id, at.0)? == 1)
    }

    /// A reading begun after `hints` calls has been taken in; the next one is due then. `false`: there
    /// was another call.
    pub async fn hook_read(&mut self, id: &str, hints: i64, due: Millis) -> Result<bool, StoreError> {
        Ok(exec!(self, READ, id, hints, due.0)? == 1)
    }

    /// It is to be deleted at the runtime. `false`: it is ending already.
    pub async fn end_hook(&mut self, id: &str, at: Millis) -> Result<bool, StoreError> {
        Ok(exec!(self, END, id, at.0)? == 1)
    }

    /// It could not be deleted at the runtime yet.
    pub async fn end_hook_later(&mut self, id: &str, due: Millis) -> Result<bool, StoreError> {
        Ok(exec!(self, LATER, id, due.0)? == 1)
    }

    /// It is gone at the runtime.
    pub async fn drop_hook(&mut self, id: &str) -> Result<bool, StoreError> {
        Ok(exec!(self, "DELETE FROM watches WHERE id = $1 AND state = 'ending'", id)? == 1)
    }
}

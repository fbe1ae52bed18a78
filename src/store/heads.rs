//! The little of an interaction that tells whether anything is to be done about it.
//!
//! Invariant: nothing here is locked; whoever then writes looks again under the lock.

use super::dialect::{Sql, fetch_all, fetch_optional};
use super::{StoreError, Tx};
use crate::domain::form::Digest;
use crate::domain::ids::{InteractionId, InteractionKey, RuntimeName};
use uuid::Uuid;

/// How far an interaction is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    Open,
    Answering,
    Settled,
}

/// The little that tells whether a reading changes anything.
#[derive(Debug, Clone)]
pub struct Head {
    pub id: InteractionId,
    pub digest: Digest,
    pub phase: Phase,
    pub missing: bool,
    pub routed: bool,
    pub owner: Option<String>,
    pub owner_doubt: bool,
    pub seen_as: Option<String>,
}

#[derive(sqlx::FromRow)]
struct HeadRow {
    id: Uuid,
    digest: String,
    state: String,
    missing_ms: Option<i64>,
    routed: bool,
    owner: Option<String>,
    owner_doubt: bool,
    seen_as: Option<String>,
}

#[derive(sqlx::FromRow)]
struct KeyedHeadRow {
    #[sqlx(flatten)]
    head: HeadRow,
    task: String,
    agent: String,
    external: String,
}

impl From<HeadRow> for Head {
    fn from(row: HeadRow) -> Self {
        Self {
            id: InteractionId(row.id),
            digest: Digest::from_hex(row.digest),
            phase: match row.state.as_str() {
                "open" => Phase::Open,
                "settled" => Phase::Settled,
                _ => Phase::Answering,
            },
            missing: row.missing_ms.is_some(),
            routed: row.routed,
            owner: row.owner,
            owner_doubt: row.owner_doubt,
            seen_as: row.seen_as,
        }
    }
}

const HEAD: &str = "SELECT id, digest, state, missing_ms, routed, owner, owner_doubt, seen_as FROM interactions \
    WHERE runtime = $1 AND agent = $2 AND task = $3 AND external = $4";
const REV: &str = "SELECT rev, state FROM interactions WHERE id = $1";
macro_rules! heads_of {
    ($tasks:literal) => {
        concat!(
            "SELECT id, digest, state, missing_ms, routed, owner, owner_doubt, seen_as, task, agent, external \
             FROM interactions WHERE runtime = $1 AND (state <> 'settled' OR read_due_ms IS NOT NULL) AND task IN ",
            $tasks
        )
    };
}
const HEADS_OF: Sql = Sql {
    sqlite: heads_of!("(SELECT value FROM json_each($2))"),
    postgres: heads_of!("(SELECT jsonb_array_elements_text($2::jsonb))"),
};

impl Tx {
    /// The little that tells whether a reading changes anything; not locked.
    pub async fn head(&mut self, key: &InteractionKey) -> Result<Option<Head>, StoreError> {
        let row = fetch_optional!(
            self,
            HeadRow,
            HEAD,
            key.runtime.as_str(),
            key.agent.as_str(),
            key.task.as_str(),
            key.external.as_str(),
        )?;
        Ok(row.map(Head::from))
    }

    /// The heads of everything unsettled in these tasks, with their keys, in one statement; not locked.
    pub async fn heads_of(
        &mut self,
        runtime: &RuntimeName,
        tasks: &[&str],
    ) -> Result<Vec<(InteractionKey, Head)>, StoreError> {
        let sql = HEADS_OF.of(self);
        let tasks = serde_json::Value::from(tasks).to_string();
        let rows = fetch_all!(self, KeyedHeadRow, sql, runtime.as_str(), tasks)?;
        let keyed = |row: KeyedHeadRow| {
            let KeyedHeadRow { head, task, agent, external } = row;
            (InteractionKey { runtime: runtime.clone(), agent, task, external }, Head::from(head))
        };
        Ok(rows.into_iter().map(keyed).collect())
    }

    /// What its cards should show by now, and whether that is its end.
    pub async fn rev_of(&mut self, id: InteractionId) -> Result<Option<(i64, bool)>, StoreError> {
        let row = fetch_optional!(self, (i64, String), REV, id.0)?;
        Ok(row.map(|(rev, state)| (rev, state == "settled")))
    }
}

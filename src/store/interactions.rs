//! Interactions: loading a state machine from its rows and writing back what a step changed.
//!
//! Invariant: a machine is loaded under a lock (SQLite has one writer; PostgreSQL locks the row) and
//! written under its version, so that two steps never interleave. Read without a lock, a row and its
//! claims may be of two moments: what does not fit together is read again. The rows of votes and answers are
//! exactly the machine's: what a step drops is voided or released, never deleted.

use super::dialect::{Sql, exec, fetch_all, fetch_optional};
pub use super::heads::{Head, Phase};
use super::{StoreError, Tx};
use crate::domain::clock::Millis;
use crate::domain::form::{Digest, Form};
use crate::domain::ids::{ClickId, InteractionId, InteractionKey, RuntimeName, Subject};
use crate::domain::interaction::{Claim, Contradiction, How, Machine, State, Vote, Why};
use uuid::Uuid;

/// One interaction with all that is known of it.
#[derive(Debug, Clone)]
pub struct Interaction {
    pub id: InteractionId,
    pub key: InteractionKey,
    pub context: Option<String>,
    /// The subject whose view shows it; `None` = the watching credential.
    pub seen_as: Option<Subject>,
    pub form: Form,
    /// For whom the agent works, where known.
    pub owner: Option<Subject>,
    pub opened: Millis,
    /// A route matched and its cards are queued.
    pub routed: bool,
    /// What cards should show; rises with every visible change.
    pub rev: i64,
    /// When it asked to be read again.
    pub read_due: Option<Millis>,
    pub machine: Machine,
    /// Whose votes counted when it ended; read by [`Tx::voters`] where a card names them, else empty.
    pub voters: Vec<String>,
    version: i64,
}

/// A new open interaction.
#[derive(Debug)]
pub struct NewInteraction<'a> {
    pub id: InteractionId,
    pub key: &'a InteractionKey,
    pub context: Option<&'a str>,
    pub seen_as: Option<&'a Subject>,
    pub form: &'a Form,
    pub owner: Option<&'a Subject>,
    pub digest: &'a Digest,
    pub opened: Millis,
    pub read_at: Millis,
}

#[derive(sqlx::FromRow)]
struct Row {
    id: Uuid,
    runtime: String,
    agent: String,
    task: String,
    external: String,
    context: Option<String>,
    seen_as: Option<String>,
    form_json: String,
    digest: String,
    owner: Option<String>,
    state: String,
    how_json: Option<String>,
    settled_ms: Option<i64>,
    contra_ms: Option<i64>,
    contra_count: i64,
    claims: i64,
    opened_ms: i64,
    read_ms: i64,
    missing_ms: Option<i64>,
    read_due_ms: Option<i64>,
    routed: bool,
    rev: i64,
    version: i64,
    /// How many standing votes it has; below zero: not known.
    vote_count: i64,
}

macro_rules! select {
    ($rest:literal) => {
        select!("(SELECT COUNT(*) FROM votes v WHERE v.interaction_id = interactions.id AND v.voided IS NULL)", $rest)
    };
    ($votes:literal, $rest:literal) => {
        concat!(
            "SELECT id, runtime, agent, task, external, context, seen_as, form_json, digest, owner, state, how_json, ",
            "settled_ms, contra_ms, contra_count, claims, opened_ms, read_ms, missing_ms, read_due_ms, routed, rev, version, ",
            $votes,
            " AS vote_count FROM interactions ",
            $rest
        )
    };
}

/// How often a row that does not fit its claims is read again before it counts as unreadable.
const TORN: u32 = 5;
const LOAD: &str = select!("WHERE id = $1");
/// On PostgreSQL the row is that of after the wait for its lock, a count beside it that of before: `-1`, look.
const LOAD_LOCKED: Sql = Sql { sqlite: LOAD, postgres: select!("-1::bigint", "WHERE id = $1 FOR UPDATE") };
const VOTES: &str = "SELECT click_id, subject, digest FROM votes \
    WHERE interaction_id = $1 AND voided IS NULL ORDER BY position";
const INSERT: &str = "INSERT INTO interactions (id, runtime, agent, task, external, context, seen_as, kind, \
    form_json, digest, owner, state, opened_ms, read_ms, server, tool) \
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 'open', $12, $13, $14, $15) \
    ON CONFLICT (runtime, agent, task, external) DO NOTHING";
const UPDATE: &str = "UPDATE interactions SET digest = $3, state = $4, outcome = $5, how_json = $6, settled_ms = $7, \
    contra_ms = $8, contra_count = $9, claims = $10, read_ms = $11, missing_ms = $12, read_due_ms = $13, \
    rev = $14, version = version + 1 WHERE id = $1 AND version = $2";
const SET_FORM: &str = "UPDATE interactions SET form_json = $2, kind = $3, context = COALESCE($4, context), server = $5, tool = $6 \
    WHERE id = $1";
const ADD_VOTE: &str = "INSERT INTO votes (interaction_id, click_id, subject, digest, position) \
    VALUES ($1, $2, $3, $4, (SELECT COUNT(*) FROM votes WHERE interaction_id = $1))";
const VOID_VOTE: &str = "UPDATE votes SET voided = $2 WHERE click_id = $1 AND voided IS NULL";
const UNSETTLED_OF_TASK: &str = "SELECT id FROM interactions WHERE runtime = $1 AND task = $2 \
    AND (state <> 'settled' OR read_due_ms IS NOT NULL) ORDER BY opened_ms";
const OPEN_AFTER: &str = "SELECT id, task, context, seen_as, external FROM interactions \
    WHERE runtime = $1 AND state <> 'settled' AND id > $2 ORDER BY id LIMIT $3";
const DUE: &str = "SELECT id, task, context, seen_as, external FROM interactions \
    WHERE runtime = $1 AND read_due_ms <= $2 ORDER BY read_due_ms LIMIT $3";
const COUNT_OPEN: &str = "SELECT COUNT(*) FROM interactions WHERE runtime = $1 AND state <> 'settled'";
const WAITING: &str = "SELECT COUNT(*) FILTER (WHERE state = 'answering'), COUNT(*) FILTER (WHERE routed = FALSE) \
    FROM interactions WHERE runtime = $1 AND state <> 'settled'";
const COUNT_GONE: &str = "SELECT COUNT(*) FROM interactions WHERE runtime = $1 AND state = 'settled' \
    AND outcome = 'gone' AND settled_ms > $2";
const LIST_OPEN: &str = select!("WHERE state <> 'settled' AND id > $1 ORDER BY id LIMIT $2");
const LIST_ALL: &str = select!("WHERE id > $1 ORDER BY id LIMIT $2");
const BY_EXTERNAL: &str = "SELECT id FROM interactions WHERE external = $1 ORDER BY id DESC LIMIT 2";
const UNROUTED: &str = "SELECT id FROM interactions WHERE state <> 'settled' AND routed = FALSE AND id > $1 ORDER BY id LIMIT $2";

/// A task that some interaction lives in, to be read.
#[derive(Debug, Clone)]
pub struct OpenTask {
    pub id: InteractionId,
    pub task: String,
    pub context: Option<String>,
    pub seen_as: Option<Subject>,
    pub external: String,
}

type TaskRow = (Uuid, String, Option<String>, Option<String>, String);

fn open_task((id, task, context, seen_as, external): TaskRow) -> OpenTask {
    OpenTask {
        id: InteractionId(id),
        task,
        context,
        seen_as: seen_as.as_deref().and_then(|text| Subject::parse(text).ok()),
        external,
    }
}

/// PostgreSQL stores no U+0000.
fn column(fact: Option<&str>) -> Option<String> {
    fact.map(|text| text.replace('\0', ""))
}

fn subject(text: &str, column: &'static str, id: Uuid) -> Result<Subject, StoreError> {
    Subject::parse(text).map_err(|_| StoreError::corrupt("interactions", column, id))
}

impl Tx {
    /// Stores a new interaction; `false` when it is known already.
    pub async fn insert_interaction(&mut self, new: &NewInteraction<'_>) -> Result<bool, StoreError> {
        let form = serde_json::to_string(new.form)
            .map_err(|_| StoreError::corrupt("interactions", "form_json", new.id))?;
        let rows = exec!(
            self,
            INSERT,
            new.id.0,
            new.key.runtime.as_str(),
            new.key.agent.as_str(),
            new.key.task.as_str(),
            new.key.external.as_str(),
            new.context,
            new.seen_as.map(Subject::as_str),
            new.form.kind.as_str(),
            form.as_str(),
            new.digest.as_str(),
            new.owner.map(Subject::as_str),
            new.opened.0,
            new.read_at.0,
            column(new.form.fact("server")),
            column(new.form.fact("tool")),
        )?;
        self.shows();
        Ok(rows == 1)
    }

    /// Loads an interaction. `lock` when it will be stepped in this transaction.
    pub async fn interaction(
        &mut self,
        id: InteractionId,
        lock: bool,
    ) -> Result<Option<Interaction>, StoreError> {
        if let Some((loaded, locked)) = &self.loaded
            && loaded.id == id
            && (*locked || !lock)
        {
            return Ok(Some(loaded.clone()));
        }
        let sql = if lock { LOAD_LOCKED.of(self) } else { LOAD };
        let mut torn = 0;
        let read = loop {
            let Some(row) = fetch_optional!(self, Row, sql, id.0)? else { return Ok(None) };
            match self.assemble(row).await {
                // Read without a lock, a step may be written between the row and its claims.
                Err(StoreError::Corrupt { column: "state", .. }) if !lock && torn < TORN => torn += 1,
                read => break read?,
            }
        };
        if self.is_alone(lock) {
            self.loaded = Some((read.clone(), lock));
        }
        Ok(Some(read))
    }

    async fn assemble(&mut self, row: Row) -> Result<Interaction, StoreError> {
        let Row {
            id,
            runtime,
            agent,
            task,
            external,
            context,
            seen_as,
            form_json,
            digest,
            owner,
            state,
            how_json,
            settled_ms,
            contra_ms,
            contra_count,
            claims,
            opened_ms,
            read_ms,
            missing_ms,
            read_due_ms,
            routed,
            rev,
            version,
            vote_count,
        } = row;
        let form: Form = serde_json::from_str(&form_json)
            .map_err(|_| StoreError::corrupt("interactions", "form_json", id))?;
        let (live, candidates) = if claims > 0 { self.claims_of(id).await? } else { (None, vec![]) };
        let state = match (state.as_str(), how_json, settled_ms, live) {
            ("open", ..) => State::Open,
            ("answering", _, _, Some(claim)) => State::Answering(claim),
            ("settled", Some(how), Some(at), _) => State::Settled {
                how: serde_json::from_str::<How>(&how)
                    .map_err(|_| StoreError::corrupt("interactions", "how_json", id))?,
                at: Millis(at),
                contradiction: Contradiction {
                    first: contra_ms.map(Millis),
                    count: u32::try_from(contra_count).unwrap_or(u32::MAX),
                },
            },
            _ => return Err(StoreError::corrupt("interactions", "state", id)),
        };
        let mut votes = vec![];
        if vote_count != 0 && (state == State::Open || matches!(state, State::Answering(_))) {
            for (click, voter, digest) in fetch_all!(self, (Uuid, String, String), VOTES, id)? {
                votes.push(Vote {
                    click: ClickId(click),
                    subject: subject(&voter, "votes", id)?,
                    digest: Digest::from_hex(digest),
                });
            }
        }
        Ok(Interaction {
            id: InteractionId(id),
            key: InteractionKey { runtime: RuntimeName::new(runtime), agent, task, external },
            context,
            seen_as: seen_as.map(|text| subject(&text, "seen_as", id)).transpose()?,
            form,
            owner: owner.map(|text| subject(&text, "owner", id)).transpose()?,
            opened: Millis(opened_ms),
            routed,
            rev,
            read_due: read_due_ms.map(Millis),
            machine: Machine {
                state,
                digest: Digest::from_hex(digest),
                votes,
                candidates,
                claims: u32::try_from(claims).unwrap_or(u32::MAX),
                read_at: Millis(read_ms),
                missing_since: missing_ms.map(Millis),
            },
            voters: vec![],
            version,
        })
    }

    /// Writes what a step changed. `redraw` raises the revision that cards should show; `read_due`
    /// is when the interaction is to be read again (`None`: no special time). New claims are
    /// inserted by [`Tx::insert_answer`] **before** this.
    pub async fn save(
        &mut self,
        before: &mut Interaction,
        after: Machine,
        redraw: bool,
        read_due: Option<Millis>,
        at: Millis,
    ) -> Result<(), StoreError> {
        let (outcome, how, settled, contra) = match &after.state {
            State::Settled { how, at, contradiction } => (
                Some(how.outcome().as_str()),
                Some(
                    serde_json::to_string(how)
                        .map_err(|_| StoreError::corrupt("interactions", "how_json", before.id))?,
                ),
                Some(at.0),
                *contradiction,
            ),
            _ => (None, None, None, Contradiction::default()),
        };
        let rev = before.rev + i64::from(redraw);
        let rows = exec!(
            self,
            UPDATE,
            before.id.0,
            before.version,
            after.digest.as_str(),
            after.word(),
            outcome,
            how.as_deref(),
            settled,
            contra.first.map(|at| at.0),
            i64::from(contra.count),
            i64::from(after.claims),
            after.read_at.0,
            after.missing_since.map(|at| at.0),
            read_due.map(|at| at.0),
            rev,
        )?;
        if rows != 1 {
            return Err(StoreError::Conflict(format!("interaction {} moved on", before.id)));
        }
        if redraw {
            self.shows();
        }
        self.save_votes(before, &after).await?;
        self.save_claims(before, &after, at).await?;
        before.rev = rev;
        before.read_due = read_due;
        before.version += 1;
        before.machine = after;
        Ok(())
    }

    async fn save_votes(&mut self, before: &Interaction, after: &Machine) -> Result<(), StoreError> {
        if matches!(after.state, State::Settled { .. }) {
            // The record of who voted stays as it was when it ended.
            return Ok(());
        }
        if matches!(before.machine.state, State::Settled { .. }) {
            // Reopened: what was counted before the end does not count again.
            exec!(
                self,
                "UPDATE votes SET voided = $2 WHERE interaction_id = $1 AND voided IS NULL",
                before.id.0,
                "reopened"
            )?;
        }
        for gone in before.machine.votes.iter().filter(|vote| !after.votes.contains(vote)) {
            exec!(self, VOID_VOTE, gone.click.0, "void")?;
        }
        for new in after.votes.iter().filter(|vote| !before.machine.votes.contains(vote)) {
            exec!(self, ADD_VOTE, before.id.0, new.click.0, new.subject.as_str(), new.digest.as_str())?;
        }
        Ok(())
    }

    /// Records why a vote does not count any more (the step has voided it).
    pub async fn vote_voided(&mut self, click: ClickId, why: Why) -> Result<(), StoreError> {
        exec!(self, "UPDATE votes SET voided = $2 WHERE click_id = $1", click.0, why.as_str()).map(|_| ())
    }

    /// Replaces what is asked (the digest is the machine's business).
    pub async fn set_form(
        &mut self,
        id: InteractionId,
        form: &Form,
        context: Option<&str>,
    ) -> Result<(), StoreError> {
        let json =
            serde_json::to_string(form).map_err(|_| StoreError::corrupt("interactions", "form_json", id))?;
        let (server, tool) = (column(form.fact("server")), column(form.fact("tool")));
        self.shows();
        exec!(self, SET_FORM, id.0, json.as_str(), form.kind.as_str(), context, server, tool).map(|_| ())
    }

    /// Sets or, with `doubt`, gives up knowing for whom the agent works.
    pub async fn set_owner(
        &mut self,
        id: InteractionId,
        owner: Option<&Subject>,
        doubt: bool,
    ) -> Result<(), StoreError> {
        self.shows();
        exec!(
            self,
            "UPDATE interactions SET owner = $2, owner_doubt = $3 WHERE id = $1",
            id.0,
            owner.map(Subject::as_str),
            doubt
        )
        .map(|_| ())
    }

    /// A route matched: cards are queued.
    pub async fn set_routed(&mut self, id: InteractionId) -> Result<(), StoreError> {
        self.shows();
        exec!(self, "UPDATE interactions SET routed = TRUE WHERE id = $1", id.0).map(|_| ())
    }

    /// What a reading of a task may still change: what is not settled, and what asked to be read again.
    pub async fn unsettled_of_task(
        &mut self,
        runtime: &RuntimeName,
        task: &str,
    ) -> Result<Vec<InteractionId>, StoreError> {
        Ok(fetch_all!(self, (Uuid,), UNSETTLED_OF_TASK, runtime.as_str(), task)?
            .into_iter()
            .map(|(id,)| InteractionId(id))
            .collect())
    }

    /// What is not settled in a runtime, in pages by id.
    pub async fn open_after(
        &mut self,
        runtime: &RuntimeName,
        after: InteractionId,
        limit: i64,
    ) -> Result<Vec<OpenTask>, StoreError> {
        Ok(fetch_all!(self, TaskRow, OPEN_AFTER, runtime.as_str(), after.0, limit)?
            .into_iter()
            .map(open_task)
            .collect())
    }

    /// What asked to be read again by now.
    pub async fn due_readings(
        &mut self,
        runtime: &RuntimeName,
        now: Millis,
        limit: i64,
    ) -> Result<Vec<OpenTask>, StoreError> {
        Ok(fetch_all!(self, TaskRow, DUE, runtime.as_str(), now.0, limit)?
            .into_iter()
            .map(open_task)
            .collect())
    }

    /// Since when each unsettled interaction of a task has not been found.
    pub async fn missing_since(
        &mut self,
        runtime: &RuntimeName,
        task: &str,
    ) -> Result<Vec<Option<Millis>>, StoreError> {
        Ok(fetch_all!(
            self,
            (Option<i64>,),
            "SELECT missing_ms FROM interactions WHERE runtime = $1 AND task = $2 AND state <> 'settled'",
            runtime.as_str(),
            task
        )?
        .into_iter()
        .map(|(at,)| at.map(Millis))
        .collect())
    }

    /// How many of a runtime have an answer on its way, and how many are open and match no route.
    pub async fn waiting(&mut self, runtime: &RuntimeName) -> Result<(i64, i64), StoreError> {
        Ok(fetch_optional!(self, (i64, i64), WAITING, runtime.as_str())?.unwrap_or_default())
    }

    /// How many are not settled, and how many went as `gone` since a moment.
    pub async fn absence(&mut self, runtime: &RuntimeName, since: Millis) -> Result<(i64, i64), StoreError> {
        let open = fetch_optional!(self, (i64,), COUNT_OPEN, runtime.as_str())?.map_or(0, |(n,)| n);
        let gone = fetch_optional!(self, (i64,), COUNT_GONE, runtime.as_str(), since.0)?.map_or(0, |(n,)| n);
        Ok((open, gone))
    }

    /// Interactions in pages by id (which is the order of opening here).
    pub async fn interactions_after(
        &mut self,
        after: InteractionId,
        open_only: bool,
        limit: i64,
    ) -> Result<Vec<Interaction>, StoreError> {
        let sql = if open_only { LIST_OPEN } else { LIST_ALL };
        let rows = fetch_all!(self, Row, sql, after.0, limit)?;
        let mut all = Vec::with_capacity(rows.len());
        for row in rows {
            let id = InteractionId(row.id);
            match self.assemble(row).await {
                Err(StoreError::Corrupt { column: "state", .. }) => {
                    all.extend(self.interaction(id, false).await?);
                }
                read => all.push(read?),
            }
        }
        Ok(all)
    }

    /// Finds an interaction by our id, by the short id of a card, or by the runtime's own id.
    pub async fn find_interaction(&mut self, text: &str) -> Result<Option<InteractionId>, StoreError> {
        if let Ok(id) = Uuid::parse_str(text) {
            let row = fetch_optional!(self, (Uuid,), "SELECT id FROM interactions WHERE id = $1", id)?;
            return Ok(row.map(|(id,)| InteractionId(id)));
        }
        if let Some((id,)) = fetch_optional!(self, (Uuid,), BY_EXTERNAL, text)? {
            return Ok(Some(InteractionId(id)));
        }
        let mut after = Uuid::nil();
        loop {
            let page = fetch_all!(
                self,
                (Uuid,),
                "SELECT id FROM interactions WHERE id > $1 ORDER BY id LIMIT 500",
                after
            )?;
            let Some((last,)) = page.last() else { return Ok(None) };
            after = *last;
            if let Some((id,)) = page.iter().find(|(id,)| InteractionId(*id).short() == text) {
                return Ok(Some(InteractionId(*id)));
            }
        }
    }

    /// Open interactions that no route has taken yet, in pages by id.
    pub async fn unrouted_after(
        &mut self,
        after: InteractionId,
        limit: i64,
    ) -> Result<Vec<InteractionId>, StoreError> {
        Ok(fetch_all!(self, (Uuid,), UNROUTED, after.0, limit)?
            .into_iter()
            .map(|(id,)| InteractionId(id))
            .collect())
    }
}

impl Interaction {
    /// The live claim's or the accepted answer's id.
    pub(super) fn live_answer(machine: &Machine) -> Option<crate::domain::ids::AnswerId> {
        match &machine.state {
            State::Answering(Claim { answer, .. }) | State::Settled { how: How::Ours { answer, .. }, .. } => {
                Some(*answer)
            }
            _ => None,
        }
    }
}

//! The outbox: what is to be said to runtimes and chat platforms, as rows with leases.
//!
//! Invariants:
//! - of one group at most one job is leased at a time, and never while an earlier one is unfinished;
//! - a job is finished, put off or declared dead only by who holds its newest lease (`lease_epoch`);
//!   everybody else finds `Ok(false)` and drops the result;
//! - a card has at most one living edit row. An edit wanted while the row is leased marks it `again`:
//!   the finish of the edit under way then puts the row back instead of removing it, so that the
//!   state wanted last is always sent after every state sent before.
//!
//! Known races:
//! - a worker paused past its lease may repeat an effect: delivery is at least once, the single
//!   effect comes from keys the other side (or a search) knows;
//! - an edit wanted between the claim and the reading of the card is sent once and then looked at
//!   once more, which finds nothing to do: cheaper than a revision in the job (a Home is treated alike);
//! - `retry_now` of a dead job and a claim of a later one of its group, in the same instant on two
//!   replicas, may have both in flight; an operator's act, and each effect has its own key.

use super::dialect::{Sql, exec, fetch_all, fetch_optional};
use super::{StoreError, Tx};
use crate::domain::clock::Millis;
use std::time::Duration;
use uuid::Uuid;

/// What the `last_error` of an answer begins with that waits for operators, not for time.
pub const ATTENTION: &str = "attention: ";
/// How long a worker holds a job; it extends while it sends.
pub const LEASE: Duration = Duration::from_secs(15);

/// A living job that must wait for another one of its group (`j` is the outer row, `$1` is now).
macro_rules! blocked {
    () => {
        "EXISTS (SELECT 1 FROM jobs b WHERE b.group_key = j.group_key AND b.dead_ms IS NULL AND b.id <> j.id \
         AND (b.seq < j.seq OR (b.seq = j.seq AND b.id < j.id) OR b.lease_until_ms > $1))"
    };
}

// `+ 0`: SQLite plans a statement anew at every new value of a bare `LIMIT $n`.
macro_rules! claim {
    ($lock:literal) => {
        concat!(
            "WITH due AS MATERIALIZED (SELECT j.id FROM jobs j \
             WHERE j.dead_ms IS NULL AND j.available_ms <= $1 AND j.lease_until_ms <= $1 \
             AND $5 LIKE '%,' || j.kind || ',%' AND NOT ",
            blocked!(),
            " ORDER BY j.priority, j.available_ms, j.id LIMIT $4 + 0",
            $lock,
            ") UPDATE jobs SET lease_owner = $2, lease_until_ms = $3, lease_epoch = lease_epoch + 1, \
             attempts = attempts + 1, again = FALSE \
             WHERE id IN (SELECT id FROM due) AND dead_ms IS NULL AND lease_until_ms <= $1 \
             RETURNING id, kind, group_key, seq, priority, ref, payload_json, created_ms, available_ms, attempts, \
             lease_epoch, last_error"
        )
    };
}

const QUEUE: &str = "INSERT INTO jobs (kind, group_key, seq, priority, ref, payload_json, created_ms, available_ms) \
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8) \
    ON CONFLICT (ref) WHERE kind = 'edit' AND dead_ms IS NULL DO UPDATE SET again = TRUE, attempts = 0, \
    payload_json = excluded.payload_json, \
    priority = CASE WHEN excluded.priority < jobs.priority THEN excluded.priority ELSE jobs.priority END, \
    available_ms = CASE WHEN excluded.available_ms < jobs.available_ms THEN excluded.available_ms \
    ELSE jobs.available_ms END";
/// The same for a Home: one living row, however often it is wanted.
const QUEUE_HOME: &str = "INSERT INTO jobs (kind, group_key, seq, priority, ref, payload_json, created_ms, available_ms) \
    VALUES ('home', $1, 0, $2, $3, 'null', $4, $5) \
    ON CONFLICT (ref) WHERE kind = 'home' AND dead_ms IS NULL DO UPDATE SET again = TRUE, attempts = 0, \
    priority = CASE WHEN excluded.priority < jobs.priority THEN excluded.priority ELSE jobs.priority END, \
    available_ms = CASE WHEN excluded.available_ms < jobs.available_ms THEN excluded.available_ms \
    ELSE jobs.available_ms END";
const CLAIM: Sql = Sql { sqlite: claim!(""), postgres: claim!(" FOR UPDATE SKIP LOCKED") };
/// The fence is spelled out in each: `lease_owner` is null once a job was given back.
const DONE: &str = "DELETE FROM jobs WHERE id = $1 AND lease_epoch = $2 AND lease_owner IS NOT NULL AND dead_ms IS NULL AND NOT again";
const PUT_BACK: &str = "UPDATE jobs SET lease_owner = NULL, lease_until_ms = 0, again = FALSE, attempts = 0, \
    last_error = NULL WHERE id = $1 AND lease_epoch = $2 AND lease_owner IS NOT NULL AND dead_ms IS NULL AND again";
const RETRY: &str = "UPDATE jobs SET lease_owner = NULL, lease_until_ms = 0, again = FALSE, \
    available_ms = CASE WHEN again AND NOT $5 AND $6 < $3 THEN $6 ELSE $3 END, last_error = $4, attempts = CASE WHEN $5 OR attempts = 0 THEN attempts ELSE attempts - 1 END \
    WHERE id = $1 AND lease_epoch = $2 AND lease_owner IS NOT NULL AND dead_ms IS NULL";
const DEAD: &str = "UPDATE jobs SET lease_owner = NULL, lease_until_ms = 0, dead_ms = $3, last_error = $4 \
    WHERE id = $1 AND lease_epoch = $2 AND lease_owner IS NOT NULL AND dead_ms IS NULL AND NOT again";
const EXTEND: &str = "UPDATE jobs SET lease_until_ms = $3 \
    WHERE id = $1 AND lease_epoch = $2 AND lease_owner IS NOT NULL AND dead_ms IS NULL";
const NEXT_DUE: &str = concat!(
    "SELECT MIN(CASE WHEN j.available_ms > j.lease_until_ms THEN j.available_ms ELSE j.lease_until_ms END) \
     FROM jobs j WHERE j.dead_ms IS NULL AND $2 LIKE '%,' || j.kind || ',%' AND NOT ",
    blocked!()
);
const RELEASE: &str = "UPDATE jobs SET lease_owner = NULL, lease_until_ms = 0 \
    WHERE lease_owner IS NOT NULL AND ($1 IS NULL OR lease_owner = $1)";
const LIST: &str = "SELECT id, kind, group_key, seq, priority, ref, attempts, created_ms, available_ms, lease_owner, \
    lease_until_ms, last_error, dead_ms FROM jobs ORDER BY (dead_ms IS NULL), priority, available_ms, id LIMIT $1";
/// A dead edit stays dead while a living one of the same card exists: that one says more.
const RETRY_NOW: &str = "UPDATE jobs SET dead_ms = NULL, available_ms = $2, attempts = 0 \
    WHERE id = $1 AND lease_until_ms <= $2 AND (dead_ms IS NULL OR kind <> 'edit' OR NOT EXISTS \
    (SELECT 1 FROM jobs b WHERE b.ref = jobs.ref AND b.kind = 'edit' AND b.dead_ms IS NULL))";
const HURRY: &str = "UPDATE jobs SET available_ms = $1 WHERE kind = 'answer' AND dead_ms IS NULL \
    AND available_ms > $1 AND lease_until_ms <= $1 AND last_error LIKE 'attention: %' AND ($2 IS NULL OR ref IN \
    (SELECT a.id FROM answers a JOIN interactions i ON i.id = a.interaction_id WHERE i.runtime = $2))";
const LOOK: &str = "SELECT kind, lease_until_ms FROM jobs WHERE id = $1";
const DROP: &str = "DELETE FROM jobs WHERE id = $1 AND kind <> 'answer' AND lease_until_ms <= $2";
const COUNTS: &str = "SELECT kind, CASE WHEN dead_ms IS NOT NULL THEN 'dead' WHEN lease_until_ms > $1 THEN 'leased' \
    WHEN available_ms > $1 THEN 'waiting' ELSE 'due' END AS state, COUNT(*) FROM jobs GROUP BY 1, 2 ORDER BY 1, 2";
const PENDING: &str = "SELECT COUNT(*) FROM jobs WHERE ref = $1 AND dead_ms IS NULL";

/// What a job does. A kind stored by a newer version is left alone, and so is its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum JobKind {
    /// Decide a stored click.
    Decide,
    /// Send a claimed answer to the runtime.
    Answer,
    /// Post a card.
    Post,
    /// Bring a message of ours (a card, or a bulletin) up to date.
    Edit,
    /// Tell one person something privately.
    Notice,
    /// Look in a chat for a message whose posting has an unknown outcome.
    Search,
    /// Answer somebody who asked what waits for them.
    Asked,
    /// Bring somebody's Home up to date.
    Home,
    /// Look whether a place takes cards.
    Place,
    /// Find the people whom a group's direct messages go to.
    Spread,
}

impl JobKind {
    /// Every kind this version knows.
    pub const ALL: [Self; 10] = [
        Self::Decide,
        Self::Answer,
        Self::Post,
        Self::Edit,
        Self::Notice,
        Self::Search,
        Self::Asked,
        Self::Home,
        Self::Place,
        Self::Spread,
    ];

    /// As stored.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Decide => "decide",
            Self::Answer => "answer",
            Self::Post => "post",
            Self::Edit => "edit",
            Self::Notice => "notice",
            Self::Search => "search",
            Self::Asked => "asked",
            Self::Home => "home",
            Self::Place => "place",
            Self::Spread => "spread",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

/// A job to queue.
#[derive(Debug, Clone, PartialEq)]
pub struct NewJob {
    pub kind: JobKind,
    /// Jobs of one group are done one after the other: a card, or an interaction.
    pub group: String,
    /// The place in the group; equal ones in the order they were queued.
    pub seq: i64,
    /// Lower goes first.
    pub priority: i64,
    /// The row it is about.
    pub reference: Uuid,
    pub payload: serde_json::Value,
    /// Not before.
    pub available: Millis,
}

/// A claimed job. `epoch` is the fence: only the newest claim finishes it.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    pub id: i64,
    pub kind: JobKind,
    pub group: String,
    pub seq: i64,
    pub priority: i64,
    pub reference: Uuid,
    pub payload: serde_json::Value,
    pub created: Millis,
    pub available: Millis,
    /// This attempt included; attempts given back are not counted.
    pub attempts: i64,
    pub epoch: i64,
    /// What the attempt before ended in.
    pub last_error: Option<String>,
}

/// A row as `jobs list` shows it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct JobRow {
    pub id: i64,
    /// As stored: may be a kind of a newer version.
    pub kind: String,
    pub group: String,
    pub seq: i64,
    pub priority: i64,
    pub reference: Uuid,
    pub attempts: i64,
    pub created: Millis,
    pub available: Millis,
    pub owner: Option<String>,
    pub leased_until: Option<Millis>,
    pub last_error: Option<String>,
    pub dead: Option<Millis>,
}

/// What became of an operator's wish to drop a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dropped {
    Yes,
    Unknown,
    /// An answer is never dropped: a person gave it.
    Answer,
    /// A worker is at it.
    Leased,
}

/// How many jobs are in which state (`due`, `waiting`, `leased`, `dead`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobCount {
    pub kind: String,
    pub state: String,
    pub count: i64,
}

#[derive(sqlx::FromRow)]
struct Claimed {
    id: i64,
    kind: String,
    group_key: String,
    seq: i64,
    priority: i64,
    #[sqlx(rename = "ref")]
    reference: Uuid,
    payload_json: String,
    created_ms: i64,
    available_ms: i64,
    attempts: i64,
    lease_epoch: i64,
    last_error: Option<String>,
}

#[derive(sqlx::FromRow)]
struct Listed {
    id: i64,
    kind: String,
    group_key: String,
    seq: i64,
    priority: i64,
    #[sqlx(rename = "ref")]
    reference: Uuid,
    attempts: i64,
    created_ms: i64,
    available_ms: i64,
    lease_owner: Option<String>,
    lease_until_ms: i64,
    last_error: Option<String>,
    dead_ms: Option<i64>,
}

/// The wanted kinds as one value to bind: `,decide,answer,`.
fn list(kinds: &[JobKind]) -> String {
    kinds.iter().fold(String::from(","), |list, kind| list + kind.as_str() + ",")
}

/// PostgreSQL stores no U+0000, and a platform's error text may be long.
fn short(error: &str) -> String {
    error.chars().filter(|c| *c != '\0').take(500).collect()
}

impl Tx {
    /// Queues a job and wakes the workers at the commit. An edit joins the living edit row of its
    /// card, which then is due at the earlier time with the more urgent priority.
    pub async fn queue(&mut self, job: NewJob) -> Result<(), StoreError> {
        let NewJob { kind, group, seq, priority, reference, payload, available } = job;
        let now = self.now().await?;
        exec!(
            self,
            QUEUE,
            kind.as_str(),
            group,
            seq,
            priority,
            reference,
            payload.to_string(),
            now.0,
            available.0
        )?;
        self.wakes();
        Ok(())
    }

    /// Wants a card brought up to date: one row per card, however often it is wanted. What is sent
    /// is the card's state at the time of sending. A row under way is sent once more after it.
    pub async fn queue_edit(
        &mut self,
        card: Uuid,
        group: &str,
        seq: i64,
        priority: i64,
        available: Millis,
    ) -> Result<(), StoreError> {
        self.queue(NewJob {
            kind: JobKind::Edit,
            group: group.to_owned(),
            seq,
            priority,
            reference: card,
            payload: serde_json::Value::Null,
            available,
        })
        .await
    }

    /// Wants a Home brought up to date: one row per Home, as for edits.
    pub async fn queue_home(
        &mut self,
        home: Uuid,
        group: &str,
        priority: i64,
        available: Millis,
    ) -> Result<(), StoreError> {
        let now = self.now().await?;
        exec!(self, QUEUE_HOME, group, priority, home, now.0, available.0)?;
        self.wakes();
        Ok(())
    }

    /// Takes up to `limit` due jobs of these kinds for `lease`, most urgent first, at most one of
    /// each group. Counts the attempt.
    pub async fn claim(
        &mut self,
        owner: &str,
        kinds: &[JobKind],
        limit: usize,
        lease: Duration,
    ) -> Result<Vec<Job>, StoreError> {
        let now = self.now().await?;
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let sql = CLAIM.of(self);
        let rows = fetch_all!(self, Claimed, sql, now.0, owner, now.plus(lease).0, limit, list(kinds))?;
        let mut jobs = Vec::with_capacity(rows.len());
        for row in rows {
            let Claimed { id, kind, group_key, seq, priority, reference, payload_json, .. } = row;
            let (Some(kind), Ok(payload)) = (JobKind::parse(&kind), serde_json::from_str(&payload_json))
            else {
                // One row that cannot be read must not stop the others: it dies, visibly.
                exec!(self, DEAD, id, row.lease_epoch, now.0, "the payload cannot be read")?;
                continue;
            };
            jobs.push(Job {
                id,
                kind,
                group: group_key,
                seq,
                priority,
                reference,
                payload,
                created: Millis(row.created_ms),
                available: Millis(row.available_ms),
                attempts: row.attempts,
                epoch: row.lease_epoch,
                last_error: row.last_error,
            });
        }
        // RETURNING has no order.
        jobs.sort_by_key(|job| (job.priority, job.available, job.id));
        Ok(jobs)
    }

    /// Finished: the row goes. An edit that was wanted again meanwhile goes back and is due at once.
    /// `false`: somebody else holds the job now.
    pub async fn done(&mut self, job: &Job) -> Result<bool, StoreError> {
        if exec!(self, DONE, job.id, job.epoch)? == 1 {
            // The next of its group may be due now.
            self.wakes();
            return Ok(true);
        }
        self.put_back(job).await
    }

    /// Not yet: due again at `at`. `counted` is `false` for a job that was not tried (paced): its
    /// attempt is given back. One that was wanted again meanwhile has more to say than what `at` was
    /// chosen for: it is due at once, except after a failure. `false`: somebody else holds the job now.
    pub async fn retry(
        &mut self,
        job: &Job,
        at: Millis,
        error: &str,
        counted: bool,
    ) -> Result<bool, StoreError> {
        let now = self.now().await?;
        let rows = exec!(self, RETRY, job.id, job.epoch, at.0, short(error), counted, now.0)?;
        self.wakes();
        Ok(rows == 1)
    }

    /// Given up: it stays to be seen, and blocks its group no longer. An edit that was wanted again
    /// meanwhile gets its own try instead. `false`: somebody else holds the job now.
    pub async fn dead(&mut self, job: &Job, error: &str) -> Result<bool, StoreError> {
        let now = self.now().await?;
        if exec!(self, DEAD, job.id, job.epoch, now.0, short(error))? == 1 {
            self.wakes();
            return Ok(true);
        }
        self.put_back(job).await
    }

    async fn put_back(&mut self, job: &Job) -> Result<bool, StoreError> {
        let back = exec!(self, PUT_BACK, job.id, job.epoch)? == 1;
        if back {
            self.wakes();
        }
        Ok(back)
    }

    /// Still at it: the lease ends `lease` from now. `false`: somebody else holds the job now.
    pub async fn extend(&mut self, job: &Job, lease: Duration) -> Result<bool, StoreError> {
        let until = self.now().await?.plus(lease);
        Ok(exec!(self, EXTEND, job.id, job.epoch, until.0)? == 1)
    }

    /// When the next job of these kinds can be claimed, which may be in the past.
    pub async fn next_due(&mut self, kinds: &[JobKind]) -> Result<Option<Millis>, StoreError> {
        let now = self.now().await?;
        let row = fetch_optional!(self, (Option<i64>,), NEXT_DUE, now.0, list(kinds))?;
        Ok(row.and_then(|(due,)| due).map(Millis))
    }

    /// Ends the leases of `owner` (draining), or of everybody (start on SQLite, where nobody else
    /// can be running). How many.
    pub async fn release_jobs(&mut self, owner: Option<&str>) -> Result<u64, StoreError> {
        let released = exec!(self, RELEASE, owner)?;
        self.wakes();
        Ok(released)
    }

    /// Rows as they stand, dead ones first, then the most urgent.
    pub async fn jobs(&mut self, limit: i64) -> Result<Vec<JobRow>, StoreError> {
        let now = self.now().await?;
        let rows = fetch_all!(self, Listed, LIST, limit)?;
        Ok(rows
            .into_iter()
            .map(|row| JobRow {
                id: row.id,
                kind: row.kind,
                group: row.group_key,
                seq: row.seq,
                priority: row.priority,
                reference: row.reference,
                attempts: row.attempts,
                created: Millis(row.created_ms),
                available: Millis(row.available_ms),
                owner: row.lease_owner,
                leased_until: (row.lease_until_ms > now.0).then_some(Millis(row.lease_until_ms)),
                last_error: row.last_error,
                dead: row.dead_ms.map(Millis),
            })
            .collect())
    }

    /// Due at once with a fresh count of attempts, also when dead. `false`: there is none, a worker
    /// is at it, or it is a dead edit of a card that has a living one.
    pub async fn retry_now(&mut self, id: i64) -> Result<bool, StoreError> {
        let now = self.now().await?;
        let rows = exec!(self, RETRY_NOW, id, now.0)?;
        self.wakes();
        Ok(rows == 1)
    }

    /// Answers that wait for operators ([`ATTENTION`]) are due at once; of one runtime or of all.
    pub async fn hurry_answers(&mut self, runtime: Option<&str>, now: Millis) -> Result<(), StoreError> {
        exec!(self, HURRY, now.0, runtime)?;
        self.wakes();
        Ok(())
    }

    /// Removes a job that nobody is at. Never an answer.
    pub async fn drop_job(&mut self, id: i64) -> Result<Dropped, StoreError> {
        let now = self.now().await?;
        if exec!(self, DROP, id, now.0)? == 1 {
            self.wakes();
            return Ok(Dropped::Yes);
        }
        Ok(match fetch_optional!(self, (String, i64), LOOK, id)? {
            None => Dropped::Unknown,
            Some((kind, _)) if kind == JobKind::Answer.as_str() => Dropped::Answer,
            Some(_) => Dropped::Leased,
        })
    }

    /// How many jobs of each kind are in each state.
    pub async fn job_counts(&mut self) -> Result<Vec<JobCount>, StoreError> {
        let now = self.now().await?;
        let rows = fetch_all!(self, (String, String, i64), COUNTS, now.0)?;
        Ok(rows.into_iter().map(|(kind, state, count)| JobCount { kind, state, count }).collect())
    }

    /// How many living jobs are about this row.
    pub async fn pending_for(&mut self, reference: Uuid) -> Result<i64, StoreError> {
        Ok(fetch_optional!(self, (i64,), PENDING, reference)?.map_or(0, |(count,)| count))
    }
}

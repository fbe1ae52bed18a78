//! The workers: claim jobs, talk, complete.
//!
//! Invariant: a job is finished by the worker that holds its newest lease, or by nobody; a crash is an
//! expired lease. So delivery is at least once, and every effect has a durable key.
//!
//! Known races and the decisions taken:
//! - a worker is paused past its lease and goes on: it is not stopped in the middle, because only its own
//!   end sees what it did outside. The fence drops its result; what it did is recognised by the key
//!   (answers) or found and removed (cards);
//! - an answer that had nothing to deliver is wanted again while its job ends: the job goes only under the
//!   lock of the interaction, and stays when the answer is live.

use super::Bridge;
use super::cards::backoff;
use super::click::JobEnd;
use super::incident::due_after;
use crate::domain::clock::Millis;
use crate::domain::ids::{AnswerId, ClickId};
use crate::store::jobs::{Job, JobKind};
use crate::store::{StoreError, Tx};
use futures_util::{FutureExt, future};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// A job's lease, and how often it is extended while the job runs.
pub const LEASE: Duration = Duration::from_secs(15);
const EXTEND: Duration = Duration::from_secs(5);
/// How many jobs one process works on at once.
const AT_ONCE: usize = 32;
/// The poll that stands behind every wake-up.
const POLL: Duration = Duration::from_millis(1500);
/// The same while jobs run, whose ends look for the next.
const BUSY_POLL: Duration = Duration::from_millis(250);

impl Bridge {
    /// Claims what is due now, works on it and completes it; how many jobs that was. For tests and for
    /// scripted runs: the service uses [`Bridge::work`].
    pub async fn deliver_once(self: &Arc<Self>, kinds: &[JobKind]) -> Result<usize, StoreError> {
        let jobs = self.claim_jobs(kinds, AT_ONCE).await?;
        let count = jobs.len();
        let run = |job: Job| async move {
            let end = Box::pin(self.run(&job)).await;
            self.complete(job, end).await;
        };
        future::join_all(jobs.into_iter().map(run)).await;
        Ok(count)
    }

    async fn claim_jobs(&self, kinds: &[JobKind], limit: usize) -> Result<Vec<Job>, StoreError> {
        let (owner, kinds) = (self.owner.clone(), kinds.to_vec());
        self.store
            .write(move |tx| Box::pin(async move { tx.claim(&owner, &kinds, limit, LEASE).await }))
            .await
    }

    /// Works until told to stop; then finishes what it has begun. Each job is a task of its own: one that
    /// waits for a connection must go on while this loop waits for one too.
    pub async fn work(self: &Arc<Self>, stop: CancellationToken) {
        if let Err(error) = self.hurry_answers(None).await {
            tracing::warn!(%error, "answers that wait for operators are tried again at their time");
        }
        let mut running = JoinSet::new();
        let mut ended = vec![];
        while !stop.is_cancelled() {
            // Registered before the query, or a job committed between the two is slept over.
            let woken = self.store.wake.next();
            let free = AT_ONCE.saturating_sub(running.len());
            let turn = self.turn(std::mem::take(&mut ended), free).await;
            let pause = match &turn {
                Turn { jobs, .. } if !jobs.is_empty() => BUSY_POLL,
                Turn { due: Some(at), .. } => {
                    at.since(self.clock.now()).clamp(Duration::from_millis(5), POLL)
                }
                Turn { .. } => POLL,
            };
            let full = turn.jobs.len() == free;
            for job in turn.jobs {
                let bridge = Arc::clone(self);
                running.spawn(async move {
                    let end = Box::pin(bridge.run(&job)).await;
                    (job, end)
                });
            }
            tokio::select! {
                () = stop.cancelled() => {}
                () = woken, if !full => {}
                Some(end) = running.join_next(), if !running.is_empty() => ended.extend(end.ok()),
                () = tokio::time::sleep(pause) => {}
            }
            while let Some(end) = running.try_join_next() {
                ended.extend(end.ok());
            }
        }
        while let Some(end) = running.join_next().await {
            ended.extend(end.ok());
        }
        for (job, end) in ended {
            self.complete(job, end).await;
        }
        let owner = self.owner.clone();
        let released =
            self.store.write(move |tx| Box::pin(async move { tx.release_jobs(Some(&owner)).await })).await;
        if let Err(error) = released {
            tracing::warn!(%error, "leases were left to expire");
        }
    }

    /// One transaction: ends what was worked on, claims what is due now; when nothing is, says when the next
    /// is. Answers end by themselves: they need the lock of their interaction, which must come before any
    /// lock of a job.
    async fn turn(&self, ended: Vec<(Job, JobEnd)>, free: usize) -> Turn {
        let (answers, mut others): (Vec<_>, Vec<_>) =
            ended.into_iter().partition(|(job, end)| job.kind == JobKind::Answer && *end == JobEnd::Done);
        for (job, end) in answers {
            self.complete(job, end).await;
        }
        // In one order everywhere, as far as that goes: a step may want several of a row's jobs again.
        others.sort_by_key(|(job, _)| job.reference);
        let (owner, ends) = (self.owner.clone(), others.clone());
        let taken = self
            .store
            .write(move |tx| {
                Box::pin(async move {
                    let mut turn = Turn::default();
                    for (job, end) in ends {
                        turn.fenced.extend((!end_job(tx, &job, end).await?).then_some((job.id, job.kind)));
                    }
                    if free == 0 {
                        return Ok(turn);
                    }
                    turn.jobs = tx.claim(&owner, &JobKind::ALL, free, LEASE).await?;
                    if turn.jobs.is_empty() {
                        turn.due = tx.next_due(&JobKind::ALL).await?;
                    }
                    // What an end made due is claimed already.
                    tx.quiet();
                    Ok(turn)
                })
            })
            .await;
        match taken {
            Ok(turn) => {
                for (id, kind) in &turn.fenced {
                    was_fenced(*id, kind.as_str());
                }
                turn
            }
            Err(error) => {
                tracing::warn!(%error, "jobs could not be claimed");
                // One that cannot be ended must not hold up the others.
                for (job, end) in others {
                    self.complete(job, end).await;
                }
                Turn::default()
            }
        }
    }

    /// Runs one job under its lease.
    async fn run(self: &Arc<Self>, job: &Job) -> JobEnd {
        let end = {
            let work = AssertUnwindSafe(self.work_on(job)).catch_unwind();
            tokio::pin!(work);
            tokio::select! {
                end = &mut work => end,
                () = self.keep(job) => {
                    tracing::warn!(job = job.id, kind = job.kind.as_str(), "a job's lease was lost while it ran");
                    work.await
                }
            }
        };
        match end {
            Ok(Ok(end)) => end,
            Ok(Err(error)) if !(error.is_transient() || matches!(error, StoreError::Conflict(_))) => {
                // The same again will hardly do: seldom, and seen.
                tracing::error!(job = job.id, kind = job.kind.as_str(), %error, "a job met what it cannot read");
                JobEnd::again(self.clock.now().plus(backoff(job.attempts)), error.to_string())
            }
            Ok(Err(error)) => {
                tracing::warn!(job = job.id, kind = job.kind.as_str(), %error, "a job met the database");
                JobEnd::Retry {
                    at: self.clock.now().plus(Duration::from_secs(1)),
                    error: error.to_string(),
                    counted: false,
                }
            }
            Err(_) => {
                tracing::error!(job = job.id, kind = job.kind.as_str(), "a job panicked");
                JobEnd::again(self.clock.now().plus(Duration::from_secs(30)), "panicked")
            }
        }
    }

    /// Extends a job's lease while it runs; returns when the lease is lost.
    async fn keep(&self, job: &Job) {
        loop {
            tokio::time::sleep(EXTEND).await;
            let job = job.clone();
            let held =
                self.store.write(move |tx| Box::pin(async move { tx.extend(&job, LEASE).await })).await;
            if matches!(held, Ok(false)) {
                return;
            }
        }
    }

    /// Ends one job in a transaction of its own.
    async fn complete(&self, job: Job, end: JobEnd) {
        if end == JobEnd::Written {
            return;
        }
        let (id, kind) = (job.id, job.kind.as_str());
        match self.store.write(move |tx| Box::pin(async move { end_job(tx, &job, end).await })).await {
            Ok(true) => {}
            Ok(false) => was_fenced(id, kind),
            // The lease expires and the job runs again: its effect has a key.
            Err(error) => tracing::warn!(job = id, kind, %error, "a job's end could not be written"),
        }
    }

    async fn work_on(self: &Arc<Self>, job: &Job) -> Result<JobEnd, StoreError> {
        match job.kind {
            JobKind::Decide => self.decide(ClickId(job.reference)).await,
            JobKind::Answer => self.deliver_answer(job).await,
            JobKind::Post | JobKind::Search => self.post(job).await,
            JobKind::Edit => self.edit(job).await,
            JobKind::Notice => self.tell(job).await,
            JobKind::Asked => self.answer_asked(job).await,
            JobKind::Home => self.publish_home(job).await,
            JobKind::Place => self.look_at_place(job).await,
            JobKind::Spread => self.spread_group(job).await,
        }
    }
}

/// What a turn of the workers' loop took.
#[derive(Default)]
struct Turn {
    jobs: Vec<Job>,
    /// When the next job is due, if none was.
    due: Option<Millis>,
    /// Ended by a worker that no longer held the lease.
    fenced: Vec<(i64, JobKind)>,
}

/// Writes how a job ended; `false` when its lease had passed to another worker.
async fn end_job(tx: &mut Tx, job: &Job, end: JobEnd) -> Result<bool, StoreError> {
    match end {
        JobEnd::Written => Ok(true),
        JobEnd::Done if job.kind == JobKind::Answer => end_answer(tx, job).await,
        JobEnd::Done => tx.done(job).await,
        JobEnd::Retry { at, error, counted } => {
            let at = due_after(tx, job, &error, at).await?;
            tx.retry(job, at, &error, counted).await
        }
        JobEnd::Dead(error) => {
            tracing::error!(job = job.id, kind = job.kind.as_str(), error, "a job was given up");
            tx.dead(job, &error).await
        }
    }
}

fn was_fenced(job: i64, kind: &str) {
    metrics::counter!("countersign_jobs_fenced_total").increment(1);
    tracing::info!(job, kind, "a job's result was dropped: its lease had passed to another worker");
}

/// Ends an answer's job, unless the answer has become live again meanwhile: whoever made it so found
/// this job and queued none. Both hold the interaction's lock while they look. `false` when the lease
/// has passed to another worker.
pub async fn end_answer(tx: &mut Tx, job: &Job) -> Result<bool, StoreError> {
    let id = AnswerId(job.reference);
    if let Some(answer) = tx.answer(id).await?
        && let Some(interaction) = tx.interaction(answer.interaction, true).await?
        && interaction.machine.claim().is_some_and(|claim| claim.answer == id)
    {
        let now = tx.now().await?;
        return tx.retry(job, now, "live again", false).await;
    }
    tx.done(job).await
}

//! Delivering a claimed answer to its runtime.
//!
//! Invariants: every attempt follows a reading begun after the claim was committed; that an attempt is
//! in flight is stored before it leaves; every attempt sends the stored body; the right to answer and
//! the digest are checked in the transaction that hands the attempt out.
//!
//! Known races: the process dies with an attempt in flight: the next worker finds it so and treats it
//! as possibly received. A worker paused past its lease may send a second time: the idempotency key
//! makes that one answer, and its completion finds the lease lost.

use super::Bridge;
use super::click::JobEnd;
use super::deliver::LEASE;
use super::effects::Cause;
use super::observe::reading_of;
use super::ports::{AnswerOutcome, ConnectorError, Outgoing, TaskReading, TaskRef, TaskState};
use crate::domain::clock::Millis;
use crate::domain::ids::{AnswerId, Subject};
use crate::domain::interaction::{Action, Attempted, Claim, Effect, Event, Right, Sent};
use crate::domain::notice::Notice;
use crate::store::StoreError;
use crate::store::answers::Answer;
use crate::store::interactions::Interaction;
use crate::store::jobs::{ATTENTION, Job};
use std::sync::Arc;
use std::time::Duration;

/// Waits between the first attempts; after them once a minute.
const SCHEDULE: [u64; 4] = [2, 6, 15, 35];
const STEADY: Duration = Duration::from_mins(1);
/// How soon a registered task is read after an answer of ours.
const AFTER_AN_ANSWER: Duration = Duration::from_secs(3);
/// From this attempt on, the clicker has been told that it takes longer.
const TELL_AT: i64 = 5;

fn next_try(attempts: i64, retry_after: Option<Duration>) -> Duration {
    let planned = usize::try_from(attempts - 1)
        .ok()
        .and_then(|at| SCHEDULE.get(at))
        .map_or(STEADY, |seconds| Duration::from_secs(*seconds));
    planned.max(retry_after.unwrap_or_default())
}

impl Bridge {
    pub(super) async fn deliver_answer(self: &Arc<Self>, job: &Job) -> Result<JobEnd, StoreError> {
        let id = AnswerId(job.reference);
        let Some((answer, interaction)) = self.load_answer(id).await? else { return Ok(JobEnd::Done) };
        let Some(claim) = interaction.machine.claim().filter(|claim| claim.answer == id).cloned() else {
            return Ok(JobEnd::Done);
        };
        let runtime = interaction.key.runtime.clone();
        if super::trial::is_trial(&runtime) {
            return self.settle_trial(job).await;
        }
        let Some(connector) = self.connector(&runtime).cloned() else {
            self.alert(&format!("runtime:{runtime}"), "an answer waits for a runtime that is not configured")
                .await;
            let now = self.clock.now();
            if claim_is_over(&claim, now) {
                self.expire(&interaction, &claim, now).await?;
                return self.after_step(job, id).await;
            }
            return Ok(JobEnd::Retry {
                at: self.clock.now().plus(STEADY),
                error: attention_error("not configured"),
                counted: false,
            });
        };

        // The reading before the attempt, with the identity that sees the task.
        let task = TaskRef {
            task: interaction.key.task.clone(),
            context: interaction.context.clone(),
            seen_as: interaction.seen_as.clone(),
        };
        let reading = match connector.read(&task).await {
            Ok(reading) => reading,
            Err(error) => {
                return match self.held(job, &claim).await? {
                    Some(put_off) => Ok(put_off),
                    None => self.not_read(job, &interaction, &claim, error).await,
                };
            }
        };
        let right = self.right_of(&interaction, claim.click, &Action::Decide(claim.decision.clone())).await?;
        let checked = (right, interaction.owner.clone());
        let Some(outgoing) = self.hand_out(job, &answer, &claim, reading, checked).await? else {
            // Freed, settled, or not now.
            let end = self.after_step(job, id).await?;
            let live = matches!(end, JobEnd::Retry { .. });
            return Ok(if live { self.held(job, &claim).await?.unwrap_or(end) } else { end });
        };
        let answered = connector.answer(&outgoing).await;
        tracing::info!(
            interaction = %interaction.id, runtime = %runtime, attempt = job.attempts, said = answered.said,
            "an answer was sent"
        );
        let (result, after, wait, attention) = match answered.outcome {
            AnswerOutcome::Accepted { after } => {
                let shows_it = after.as_ref().is_some_and(|a| shows(a, &interaction.key.external));
                (Attempted::Accepted { confirmed: !shows_it }, after, None, None)
            }
            AnswerOutcome::Refused { why, after } => {
                let reading = after.as_ref().and_then(|reading| reading_of(&interaction, reading, false));
                (Attempted::Refused { why, reading }, after, None, None)
            }
            AnswerOutcome::NotSent { retry_after } => (Attempted::NotSent, None, retry_after, None),
            AnswerOutcome::Unknown { retry_after } => (Attempted::Unknown, None, retry_after, None),
            AnswerOutcome::Attention { what } => (Attempted::NotSent, None, Some(STEADY), Some(what)),
        };
        let finished = self.finish_attempt(job, result, after, answered.said).await?;
        if finished == Finished::Fenced {
            return Ok(JobEnd::Done);
        }
        match &attention {
            Some(what) => self.need_attention(job, &interaction, &claim, what).await?,
            None => self.all_clear(&format!("answers:{runtime}")).await,
        }
        if finished == Finished::Ended {
            return Ok(JobEnd::Written);
        }
        let end = self.after_step(job, id).await?;
        Ok(match (end, wait) {
            (JobEnd::Retry { error, counted, .. }, wait) => {
                if attention.is_none() {
                    self.still_trying(job, &claim).await?;
                }
                let error = attention.map_or(error, |what| attention_error(&what));
                JobEnd::Retry { at: self.clock.now().plus(next_try(job.attempts, wait)), error, counted }
            }
            (end, _) => end,
        })
    }

    /// What waits because credentials or configuration were wrong is tried again at once: after a
    /// restart (`None`: of every runtime), and when a runtime's card has changed.
    pub async fn hurry_answers(&self, runtime: Option<&str>) -> Result<(), StoreError> {
        let runtime = runtime.map(ToOwned::to_owned);
        let now = self.clock.now();
        self.store
            .write(move |tx| Box::pin(async move { tx.hurry_answers(runtime.as_deref(), now).await }))
            .await
    }

    async fn load_answer(&self, id: AnswerId) -> Result<Option<(Answer, Interaction)>, StoreError> {
        self.store
            .read(|tx| {
                Box::pin(async move {
                    let Some(answer) = tx.answer(id).await? else { return Ok(None) };
                    let Some(interaction) = tx.interaction(answer.interaction, false).await? else {
                        return Ok(None);
                    };
                    Ok(Some((answer, interaction)))
                })
            })
            .await
    }

    /// One transaction: what was in flight is lost, the reading is taken in, the attempt handed out.
    async fn hand_out(
        self: &Arc<Self>,
        job: &Job,
        answer: &Answer,
        claim: &Claim,
        reading: TaskReading,
        (right, owner): (Right, Option<Subject>),
    ) -> Result<Option<Outgoing>, StoreError> {
        let bridge = Arc::clone(self);
        let (job, answer, lost) = (job.clone(), answer.clone(), claim.in_flight);
        let now = self.clock.now();
        self.store
            .write(move |tx| {
                Box::pin(async move {
                    let cause = Cause::default();
                    // A worker that was paused past its lease sends nothing: another one has the job.
                    if !tx.extend(&job, LEASE).await? {
                        return Ok(None);
                    }
                    let Some(mut interaction) = tx.interaction(answer.interaction, true).await? else {
                        return Ok(None);
                    };
                    if lost {
                        bridge
                            .apply(tx, &mut interaction, Event::Lost { answer: answer.id }, &cause, now)
                            .await?;
                    }
                    // Closing for absence is the watcher's, which knows how much is absent at once.
                    let runtime = interaction.key.runtime.clone();
                    bridge.write_reading(tx, &runtime, &reading, true, now).await?;
                    let Some(mut interaction) = tx.interaction(answer.interaction, true).await? else {
                        return Ok(None);
                    };
                    let proves_nothing = matches!(reading.state, TaskState::NotFound | TaskState::Unclear);
                    let over = |claim: &Claim| claim.sent == Sent::Never && now > claim.deliver_until;
                    if proves_nothing
                        && interaction.machine.claim().is_some_and(|c| c.ended.is_none() && !over(c))
                    {
                        return Ok(None);
                    }
                    // The right was judged with another owner: it is judged again first.
                    let right = if interaction.owner == owner { right } else { Right::Unknown };
                    // Stopped since it was looked at: nothing leaves, and what its time ends still ends.
                    let paused = tx.paused(runtime.as_str()).await?.is_some();
                    if paused && interaction.machine.claim().is_some_and(|claim| claim.ended.is_some()) {
                        return Ok(None);
                    }
                    let right = if paused && right == Right::Allowed { Right::Unknown } else { right };
                    let event = Event::HandOut { answer: answer.id, at: now, right };
                    let effects = bridge.apply(tx, &mut interaction, event, &cause, now).await?;
                    let Some(claim) = interaction.machine.claim().filter(|claim| claim.answer == answer.id)
                    else {
                        return Ok(None);
                    };
                    if !effects.contains(&Effect::Send { answer: answer.id }) {
                        return Ok(None);
                    }
                    tx.answer_attempted(answer.id).await?;
                    Ok(Some(Outgoing {
                        key: interaction.key.clone(),
                        context: interaction.context.clone(),
                        seen_as: interaction.seen_as.clone(),
                        subject: answer.subject.clone(),
                        message_id: answer.message_id.clone(),
                        body: answer.body.clone(),
                        sent: claim.sent,
                        probe: claim.ended.is_some(),
                    }))
                })
            })
            .await
    }

    /// Writes how an attempt ended, what the runtime shows after it, and the end of the job when nothing is left
    /// to deliver.
    pub(super) async fn finish_attempt(
        self: &Arc<Self>,
        job: &Job,
        result: Attempted,
        after: Option<TaskReading>,
        said: String,
    ) -> Result<Finished, StoreError> {
        let bridge = Arc::clone(self);
        let now = self.clock.now();
        let (job, id) = (job.clone(), AnswerId(job.reference));
        self.store
            .write(move |tx| {
                Box::pin(async move {
                    // Its result is the next worker's to find out: that one may have an attempt in flight.
                    if !tx.extend(&job, LEASE).await? {
                        return Ok(Finished::Fenced);
                    }
                    let Some(answer) = tx.answer(id).await? else { return Ok(Finished::Live) };
                    let Some(mut interaction) = tx.interaction(answer.interaction, true).await? else {
                        return Ok(Finished::Live);
                    };
                    let cause = Cause { said: Some(&said), ..Cause::default() };
                    if matches!(result, Attempted::Accepted { .. }) {
                        // It may ask again at once.
                        let (runtime, task) =
                            (interaction.key.runtime.as_str(), interaction.key.task.as_str());
                        tx.hurry_task(runtime, task, now.plus(AFTER_AN_ANSWER)).await?;
                    }
                    let event = Event::Attempt { answer: id, at: now, result };
                    bridge.apply(tx, &mut interaction, event, &cause, now).await?;
                    // The task may wait for the next thing already: its card need not wait for the poll.
                    if let Some(reading) = after {
                        let runtime = interaction.key.runtime.clone();
                        bridge.write_reading(tx, &runtime, &reading, true, now).await?;
                        let Some(left) = tx.interaction(answer.interaction, true).await? else {
                            return Ok(Finished::Live);
                        };
                        interaction = left;
                    }
                    // Under the lock of the interaction nobody makes it live again meanwhile.
                    let live = interaction.machine.claim().is_some_and(|claim| claim.answer == id);
                    if live || !tx.done(&job).await? {
                        return Ok(Finished::Live);
                    }
                    Ok(Finished::Ended)
                })
            })
            .await
    }

    /// Whether this answer still has something to deliver.
    pub(super) async fn after_step(self: &Arc<Self>, job: &Job, id: AnswerId) -> Result<JobEnd, StoreError> {
        let now = self.clock.now();
        Ok(match self.load_answer(id).await? {
            Some((_, interaction)) if interaction.machine.claim().is_some_and(|claim| claim.answer == id) => {
                JobEnd::again(now.plus(next_try(job.attempts, None)), "not delivered yet")
            }
            _ => JobEnd::Done,
        })
    }

    /// The reading before an attempt failed: nothing is sent.
    async fn not_read(
        self: &Arc<Self>,
        job: &Job,
        interaction: &Interaction,
        claim: &Claim,
        error: ConnectorError,
    ) -> Result<JobEnd, StoreError> {
        let now = self.clock.now();
        // Nothing was ever sent, and the time is over: it is free again without a reading.
        if claim_is_over(claim, now) {
            self.expire(interaction, claim, now).await?;
            return self.after_step(job, claim.answer).await;
        }
        Ok(match error {
            ConnectorError::Unavailable { what, retry_after } => {
                self.still_trying(job, claim).await?;
                JobEnd::again(now.plus(next_try(job.attempts, retry_after)), what)
            }
            error @ (ConnectorError::Unauthorized { .. } | ConnectorError::Configuration { .. }) => {
                self.need_attention(job, interaction, claim, &error.to_string()).await?;
                JobEnd::again(now.plus(STEADY), attention_error(&error.to_string()))
            }
            ConnectorError::Protocol { what } => {
                self.still_trying(job, claim).await?;
                JobEnd::again(now.plus(next_try(job.attempts, None)), what)
            }
        })
    }

    async fn still_trying(self: &Arc<Self>, job: &Job, claim: &Claim) -> Result<(), StoreError> {
        if job.attempts == TELL_AT && attention_free(claim) {
            self.notify(claim, Notice::StillTrying).await?;
        }
        Ok(())
    }

    /// `deliver_within` is over and the runtime cannot be read. What was never sent is freed.
    async fn expire(
        self: &Arc<Self>,
        interaction: &Interaction,
        claim: &Claim,
        now: Millis,
    ) -> Result<(), StoreError> {
        let bridge = Arc::clone(self);
        let (id, answer) = (interaction.id, claim.answer);
        self.store
            .write(move |tx| {
                Box::pin(async move {
                    let Some(mut interaction) = tx.interaction(id, true).await? else { return Ok(()) };
                    let event = Event::HandOut { answer, at: now, right: Right::Allowed };
                    let too_late = interaction
                        .machine
                        .claim()
                        .is_some_and(|claim| claim.answer == answer && claim_is_over(claim, now));
                    if too_late {
                        bridge.apply(tx, &mut interaction, event, &Cause::default(), now).await?;
                    }
                    Ok(())
                })
            })
            .await
    }

    async fn need_attention(
        self: &Arc<Self>,
        job: &Job,
        interaction: &Interaction,
        claim: &Claim,
        what: &str,
    ) -> Result<(), StoreError> {
        let runtime = &interaction.key.runtime;
        self.alert(
            &format!("answers:{runtime}"),
            &format!("answers to runtime {runtime} are kept and not delivered: {what}"),
        )
        .await;
        // Told when it first turns out so, not at every attempt.
        let told = job
            .last_error
            .as_deref()
            .is_some_and(|error| error.starts_with(ATTENTION) && !super::incident::is_marked(error));
        let tell = attention_free(claim) && !told;
        if tell { self.notify(claim, Notice::NeedsAttention).await } else { Ok(()) }
    }

    pub(super) async fn notify(self: &Arc<Self>, claim: &Claim, notice: Notice) -> Result<(), StoreError> {
        let bridge = Arc::clone(self);
        let (click, now) = (claim.click, self.clock.now());
        self.store
            .write(move |tx| Box::pin(async move { bridge.queue_notice(tx, click, &notice, now).await }))
            .await
    }
}

/// What became of an answer's job with its attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Finished {
    /// The lease has passed to another worker, and nothing was written.
    Fenced,
    /// Nothing is left to deliver; the job is gone.
    Ended,
    /// Something may be left.
    Live,
}

/// Its time is over and nothing of it was ever sent: it may be freed without a reading.
fn claim_is_over(claim: &Claim, now: Millis) -> bool {
    now > claim.deliver_until && claim.sent == Sent::Never && !claim.in_flight && claim.ended.is_none()
}

/// Marks a job that waits for operators ([`Bridge::hurry_answers`]).
fn attention_error(what: &str) -> String {
    format!("{ATTENTION}{what}")
}

/// A candidate's clicker was told before; it is only sent to learn whose answer it was.
fn attention_free(claim: &Claim) -> bool {
    !claim.candidate
}

/// Whether a reading shows this interaction as open.
fn shows(reading: &TaskReading, external: &str) -> bool {
    matches!(&reading.state, TaskState::Waiting(seen) if seen.key.external == external)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_attempts_in_about_a_minute_then_one_a_minute() {
        let waits: Vec<u64> = (1..=7).map(|n| next_try(n, None).as_secs()).collect();
        assert_eq!(waits, [2, 6, 15, 35, 60, 60, 60]);
        assert_eq!(waits.iter().take(4).sum::<u64>(), 58);
        assert_eq!(next_try(1, Some(Duration::from_secs(30))).as_secs(), 30);
    }
}

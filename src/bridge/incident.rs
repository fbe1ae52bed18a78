//! The incident stop: answers are kept, and go out when operators take it back.
//!
//! Invariants: the stop is in the database, so it survives a restart and holds for every replica; it is
//! looked at in the transaction that hands out each attempt. Clicks are stored and decided as always, a
//! press makes its claim, and the time of `deliver_within` goes on.
//!
//! Known races: an attempt handed out in the same instant leaves (a stop calls nothing back); a job that
//! is just put off when the stop ends looks again by itself within `LOOK_AGAIN`.

use super::Bridge;
use super::click::JobEnd;
use crate::domain::audit::AuditEntry;
use crate::domain::clock::Millis;
use crate::domain::ids::{AnswerId, InteractionId};
use crate::domain::interaction::{Claim, Sent, State};
use crate::domain::notice::Notice;
use crate::store::jobs::{ATTENTION, Job};
pub use crate::store::pauses::{EVERY, Pause};
use crate::store::{StoreError, Tx};
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// How long a job is put off at most while answers are stopped.
const LOOK_AGAIN: Duration = Duration::from_secs(30);
/// Marks a job that waits for the end of a stop; `resume` hurries it like all that wait for operators.
const WHY: &str = "paused by operators";
/// Interactions that are redrawn in one page.
const PAGE: i64 = 200;

fn marked() -> String {
    format!("{ATTENTION}{WHY}")
}

/// Whether a job's last error says that it waits for the end of a stop.
pub(super) fn is_marked(error: &str) -> bool {
    error.strip_prefix(ATTENTION) == Some(WHY)
}

fn alert_key(runtime: &str) -> String {
    format!("paused:{runtime}")
}

/// What a stop or its end did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Done {
    /// `false`: it was so already.
    pub changed: bool,
    /// Answers that wait, or are on their way.
    pub answers: i64,
}

impl Bridge {
    /// Stops answers to a runtime, or to every one ([`EVERY`]).
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn pause(self: &Arc<Self>, runtime: &str) -> Result<Done, StoreError> {
        let (bridge, runtime, now) = (Arc::clone(self), runtime.to_owned(), self.clock.now());
        self.store
            .write(move |tx| {
                Box::pin(async move {
                    let changed = tx.pause(&runtime, now).await?;
                    let answers = tx.answering(&runtime).await?;
                    if changed {
                        let what = match runtime.as_str() {
                            EVERY => "answers to every runtime are paused".to_owned(),
                            one => format!("answers to runtime {one} are paused"),
                        };
                        let text = format!("{what} by operators; clicks are kept until `countersign resume`");
                        tx.raise(&alert_key(&runtime), &text, now).await?;
                        bridge.redraw_answering(tx, &runtime, now).await?;
                        bridge.record_incident(tx, "pause", &runtime, now).await?;
                        tx.wakes();
                    }
                    Ok(Done { changed, answers })
                })
            })
            .await
    }

    /// Takes a stop back, or all of them ([`EVERY`]); what waited goes out at once, also what waited for
    /// credentials or configuration.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn resume(self: &Arc<Self>, runtime: &str) -> Result<Done, StoreError> {
        let (bridge, runtime, now) = (Arc::clone(self), runtime.to_owned(), self.clock.now());
        self.store
            .write(move |tx| {
                Box::pin(async move {
                    let ended: Vec<Pause> = tx
                        .pauses()
                        .await?
                        .into_iter()
                        .filter(|pause| runtime == EVERY || pause.runtime == runtime)
                        .collect();
                    let changed = tx.resume(&runtime).await?;
                    let answers = tx.answering(&runtime).await?;
                    for pause in &ended {
                        tx.clear(&alert_key(&pause.runtime)).await?;
                    }
                    tx.hurry_answers(Some(runtime.as_str()).filter(|name| *name != EVERY), now).await?;
                    if changed {
                        bridge.redraw_answering(tx, &runtime, now).await?;
                        bridge.record_incident(tx, "resume", &runtime, now).await?;
                    }
                    tx.wakes();
                    Ok(Done { changed, answers })
                })
            })
            .await
    }

    /// The stops that stand.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn pauses(&self) -> Result<Vec<Pause>, StoreError> {
        self.store.read(|tx| Box::pin(async move { tx.pauses().await })).await
    }

    /// The cards of what is being answered say whether it waits for operators.
    async fn redraw_answering(&self, tx: &mut Tx, runtime: &str, now: Millis) -> Result<(), StoreError> {
        let mut after = InteractionId(Uuid::nil());
        loop {
            let page = tx.interactions_after(after, true, PAGE).await?;
            let Some(last) = page.last() else { return Ok(()) };
            after = last.id;
            for seen in page {
                let concerned = runtime == EVERY || seen.key.runtime.as_str() == runtime;
                if !concerned || !matches!(seen.machine.state, State::Answering(_)) {
                    continue;
                }
                let Some(mut interaction) = tx.interaction(seen.id, true).await? else { continue };
                if matches!(interaction.machine.state, State::Answering(_)) {
                    let (machine, due) = (interaction.machine.clone(), interaction.read_due);
                    tx.save(&mut interaction, machine, true, due, now).await?;
                    self.queue_redraw(tx, &interaction, true, now).await?;
                }
            }
        }
    }

    async fn record_incident(
        &self,
        tx: &mut Tx,
        event: &str,
        runtime: &str,
        now: Millis,
    ) -> Result<(), StoreError> {
        let entry = AuditEntry {
            event: event.to_owned(),
            runtime: Some(runtime.to_owned()),
            ..AuditEntry::default()
        };
        tx.record(entry, now, self.ids.random()).await.map(|_| ())
    }

    /// Whether the answer must wait: its job is put off, and its clicker told once. What the runtime has
    /// taken already, and what is over, does not wait. Asked only when nothing could be sent, so that it
    /// costs nothing on the usual way.
    pub(super) async fn held(
        self: &Arc<Self>,
        job: &Job,
        claim: &Claim,
    ) -> Result<Option<JobEnd>, StoreError> {
        let answer = claim.answer;
        let paused =
            self.store.read(|tx| Box::pin(async move { tx.answer_paused(answer).await })).await?.is_some();
        let now = self.clock.now();
        let over = now > claim.deliver_until && claim.ended.is_none();
        if !paused || over || claim.sent == Sent::Accepted {
            return Ok(None);
        }
        if !job.last_error.as_deref().is_some_and(is_marked) && !claim.candidate {
            self.notify(claim, Notice::Paused).await?;
        }
        let mut at = now.plus(LOOK_AGAIN);
        let end = claim.deliver_until.plus(Duration::from_millis(1));
        if end > now && end < at {
            at = end;
        }
        Ok(Some(JobEnd::Retry { at, error: marked(), counted: false }))
    }
}

/// When a job that was put off because of a stop is due: at once if the stop ended meanwhile.
pub(super) async fn due_after(tx: &mut Tx, job: &Job, error: &str, at: Millis) -> Result<Millis, StoreError> {
    if is_marked(error) && tx.answer_paused(AnswerId(job.reference)).await?.is_none() {
        return tx.now().await;
    }
    Ok(at)
}

//! The test card of `try`: a real card and a real click, with no runtime behind it.
//!
//! Invariants: nothing of it ever reaches a runtime, because its runtime has a name that no configuration
//! can give; whoever has a link may answer it; what is pressed ends it. What nobody presses is ended by
//! `try`, and if that was killed, by housekeeping.

use super::Bridge;
use super::click::JobEnd;
use super::effects::Cause;
use super::send::Finished;
use crate::domain::clock::Millis;
use crate::domain::form::{Form, Kind};
use crate::domain::ids::{AnswerId, InteractionId, InteractionKey, RuntimeName};
use crate::domain::interaction::{Attempted, End, Event, Reading};
use crate::domain::pattern::Pattern;
use crate::domain::place::Spot;
use crate::domain::routing::{Approver, Route, When};
use crate::store::StoreError;
use crate::store::cards::CardRow;
use crate::store::interactions::{Interaction, NewInteraction};
use crate::store::jobs::Job;
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// The runtime of test cards. `~` is in no configured name.
pub const RUNTIME: &str = "~test";
/// What nobody has pressed after this time is ended.
const LIFE: Duration = Duration::from_mins(10);

/// Whether it is a test card's.
#[must_use]
pub fn is_trial(runtime: &RuntimeName) -> bool {
    runtime.as_str() == RUNTIME
}

impl super::Rules {
    /// Adds the rule for test cards, before all others: every linked person, no place.
    pub(super) fn with_trials(mut self) -> Self {
        let when = When { runtime: Some(Pattern::new(RUNTIME)), ..When::default() };
        self.routes.insert(
            0,
            Route {
                when,
                to: vec![],
                fallback: vec![],
                mention: vec![],
                thread_by: None,
                approvers: vec![Approver::Linked],
                approvals: 1,
                self_approval: true,
                confirm: false,
                reason_on_deny: false,
            },
        );
        self
    }
}

/// How a test card is doing.
#[derive(Debug)]
pub struct Trial {
    pub interaction: Interaction,
    pub cards: Vec<CardRow>,
    /// A worker has looked at it.
    pub taken: bool,
}

impl Bridge {
    /// Stores a test card for a place; the running service posts it.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn begin_trial(
        self: &Arc<Self>,
        spot: &Spot,
        title: String,
        prompt: String,
    ) -> Result<InteractionId, StoreError> {
        let id = InteractionId(self.ids.uuid());
        let name = id.0.simple().to_string();
        let key = InteractionKey {
            runtime: RuntimeName::new(RUNTIME),
            agent: "countersign".into(),
            task: name.clone(),
            external: name,
        };
        let form = Form {
            kind: Kind::Approval,
            title,
            prompt,
            facts: vec![],
            questions: vec![],
            arguments_withheld: false,
        };
        let (bridge, now) = (Arc::clone(self), self.clock.now());
        let spot = spot.clone();
        self.store
            .write(move |tx| {
                Box::pin(async move {
                    let digest = form.digest(&key);
                    let new = NewInteraction {
                        id,
                        key: &key,
                        context: None,
                        seen_as: None,
                        form: &form,
                        owner: None,
                        digest: &digest,
                        opened: now,
                        read_at: now,
                    };
                    tx.insert_interaction(&new).await?;
                    bridge.queue_card(tx, id, &spot, false, now).await?;
                    tx.set_routed(id).await?;
                    Ok(id)
                })
            })
            .await
    }

    /// How it is doing; `None` when it is no more.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn trial(&self, id: InteractionId) -> Result<Option<Trial>, StoreError> {
        self.store
            .read(move |tx| {
                Box::pin(async move {
                    let Some(interaction) = tx.interaction(id, false).await? else { return Ok(None) };
                    let cards = tx.cards_of(id).await?;
                    let untouched = |job: &crate::store::jobs::JobRow| {
                        cards.iter().any(|card| card.id.0 == job.reference)
                            && job.attempts == 0
                            && job.last_error.is_none()
                            && job.leased_until.is_none()
                    };
                    let taken = !tx.jobs(1000).await?.iter().any(untouched);
                    Ok(Some(Trial { interaction, cards, taken }))
                })
            })
            .await
    }

    /// Ends a test card that nobody pressed.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn end_trial(self: &Arc<Self>, id: InteractionId) -> Result<(), StoreError> {
        let (bridge, now) = (Arc::clone(self), self.clock.now());
        self.store
            .write(move |tx| {
                Box::pin(async move {
                    let Some(mut interaction) = tx.interaction(id, true).await? else { return Ok(()) };
                    if super::is_settled(&interaction.machine) || interaction.machine.claim().is_some() {
                        return Ok(());
                    }
                    let reading = Reading::Ended(End::Canceled);
                    let event = Event::Read { reading, began: now, at: now };
                    bridge.apply(tx, &mut interaction, event, &Cause::default(), now).await?;
                    Ok(())
                })
            })
            .await
    }

    /// Ends what a killed `try` left behind.
    pub(super) async fn end_old_trials(self: &Arc<Self>) -> Result<(), StoreError> {
        let runtime = RuntimeName::new(RUNTIME);
        let open = self
            .store
            .read(|tx| {
                Box::pin(async move {
                    let mut open = vec![];
                    for task in tx.open_after(&runtime, InteractionId(Uuid::nil()), 100).await? {
                        open.extend(tx.interaction(task.id, false).await?);
                    }
                    Ok(open)
                })
            })
            .await?;
        let old = |opened: Millis| opened.plus(LIFE) < self.clock.now();
        for interaction in open.iter().filter(|interaction| old(interaction.opened)) {
            self.end_trial(interaction.id).await?;
        }
        Ok(())
    }

    /// What was decided on a test card ends it: there is nobody to send it to.
    pub(super) async fn settle_trial(self: &Arc<Self>, job: &Job) -> Result<JobEnd, StoreError> {
        let accepted = Attempted::Accepted { confirmed: true };
        match self.finish_attempt(job, accepted, None, "a test: nothing was sent".into()).await? {
            Finished::Fenced => Ok(JobEnd::Done),
            Finished::Ended => Ok(JobEnd::Written),
            Finished::Live => self.after_step(job, AnswerId(job.reference)).await,
        }
    }
}

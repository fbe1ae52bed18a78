//! Carrying out a step of the state machine: rows, jobs, audit, all in one transaction.
//!
//! Invariant: whatever the step says is written together or not at all; nothing is sent from here.
//! Audit rows are appended at the end of the transaction, because they lock the chain.

use super::audit::Row;
use super::{Bridge, answer_group, card_group};
use crate::bridge::ports::{Compose, Composed};
use crate::domain::clock::Millis;
use crate::domain::form::Decision;
use crate::domain::ids::{AnswerId, ClickId};
use crate::domain::interaction::{Action, Effect, Event, How, Outcome, State, Why, step};
use crate::domain::notice::Notice;
use crate::domain::policy::Rule;
use crate::store::cards::CardState;
use crate::store::clicks::{Click, ClickState, Decided};
use crate::store::interactions::Interaction;
use crate::store::jobs::{JobKind, NewJob};
use crate::store::{StoreError, Tx};
use serde_json::json;
use std::time::Duration;

/// An interim edit waits this long: when the runtime answers sooner, only the final one is sent.
const INTERIM: Duration = Duration::from_millis(1500);

/// Priorities of jobs: lower goes first.
pub(super) mod priority {
    pub(in crate::bridge) const DECIDE: i64 = 0;
    pub(in crate::bridge) const ANSWER: i64 = 0;
    pub(in crate::bridge) const POST: i64 = 1;
    pub(in crate::bridge) const FINAL: i64 = 2;
    pub(in crate::bridge) const NOTICE: i64 = 3;
    pub(in crate::bridge) const INTERIM: i64 = 4;
    pub(in crate::bridge) const HOME: i64 = 5;
}

/// What the step is about, for the rows that repeat it.
#[derive(Debug, Default)]
pub(super) struct Cause<'a> {
    /// The press that is being judged, with what policy said of it.
    pub click: Option<&'a Click>,
    pub subject: Option<&'a str>,
    pub policy: Option<&'a str>,
    /// What the runtime said.
    pub said: Option<&'a str>,
}

/// The policy rule that a reason of the state machine stands for.
fn rule_of(why: Why) -> Rule {
    match why {
        Why::Changed => Rule::Digest,
        Why::NoVote => Rule::Vote,
        Why::RightLost | Why::NotOwner | Why::Forbidden | Why::Unverified => Rule::Approvers,
        Why::Unmappable => Rule::Link,
        _ => Rule::State,
    }
}

impl Bridge {
    /// Steps an interaction that was loaded under its lock, and writes all that follows.
    pub(super) async fn apply(
        &self,
        tx: &mut Tx,
        interaction: &mut Interaction,
        event: Event,
        cause: &Cause<'_>,
        at: Millis,
    ) -> Result<Vec<Effect>, StoreError> {
        let is_reading = matches!(event, Event::Read { .. });
        let pressed = match &event {
            Event::Press(press) => Some((press.click, press.action.clone())),
            _ => None,
        };
        let (mut after, mut effects) = step(interaction.machine.clone(), event);

        // A claim's body is made with it; a subject that cannot be carried makes no claim.
        let mut composed = None;
        if let (Some(claim), true) =
            (after.claim(), effects.iter().any(|e| matches!(e, Effect::Claimed { .. })))
        {
            match self.compose(interaction, claim.number, &claim.decision, &claim.subject) {
                Ok(body) => composed = Some(body),
                Err(why) => {
                    after = interaction.machine.clone();
                    effects =
                        pressed.iter().map(|(click, _)| Effect::Refused { click: *click, why }).collect();
                }
            }
        }
        if let (Some(body), Some(claim)) = (&composed, after.claim()) {
            tx.insert_answer(interaction.id, claim, &body.message_id, &body.body, at).await?;
        }

        let redraw = effects.contains(&Effect::Redraw);
        let again = effects.iter().find_map(|effect| match effect {
            Effect::ReadAgain { after } => Some(at.plus(*after)),
            _ => None,
        });
        let read_due = if is_reading || again.is_some() { again } else { interaction.read_due };
        if after != interaction.machine || redraw || read_due != interaction.read_due {
            tx.save(interaction, after, redraw, read_due, at).await?;
        }
        for effect in &effects {
            self.jobs_for(tx, interaction, effect, at).await?;
        }
        if redraw {
            let fresh_claim = effects.iter().any(|e| matches!(e, Effect::Claimed { .. }));
            self.queue_redraw(tx, interaction, fresh_claim, at).await?;
        }
        for effect in &effects {
            let action = pressed.as_ref().map(|(_, action)| action);
            self.outcome_of(tx, interaction, effect, action, cause, at).await?;
        }
        Ok(effects)
    }

    fn compose(
        &self,
        interaction: &Interaction,
        number: u32,
        decision: &Decision,
        subject: &crate::domain::ids::Subject,
    ) -> Result<Composed, Why> {
        if super::trial::is_trial(&interaction.key.runtime) {
            return Ok(Composed { message_id: format!("{}:test", self.prefix), body: json!({}) });
        }
        let connector = self.connector(&interaction.key.runtime).ok_or(Why::Unmappable)?;
        connector.compose(&Compose {
            key: &interaction.key,
            context: interaction.context.as_deref(),
            decision,
            subject,
            prefix: &self.prefix,
            number,
        })
    }

    /// The jobs an effect asks for.
    async fn jobs_for(
        &self,
        tx: &mut Tx,
        interaction: &Interaction,
        effect: &Effect,
        at: Millis,
    ) -> Result<(), StoreError> {
        match effect {
            Effect::Claimed { answer } => self.queue_answer(tx, interaction, *answer, at).await,
            // A claim whose delivery job has ended (a candidate) gets a new one.
            Effect::Probe { answer } if tx.pending_for(answer.0).await? == 0 => {
                self.queue_answer(tx, interaction, *answer, at).await
            }
            // What had ended before it could be posted is wanted after all.
            Effect::Reopened => self.seats_again(tx, interaction.id, at).await,
            Effect::Settled => self.free_seats_of(tx, interaction.id, at).await,
            _ => Ok(()),
        }
    }

    async fn queue_answer(
        &self,
        tx: &mut Tx,
        interaction: &Interaction,
        answer: AnswerId,
        at: Millis,
    ) -> Result<(), StoreError> {
        tx.queue(NewJob {
            kind: JobKind::Answer,
            group: answer_group(interaction.id),
            seq: i64::from(interaction.machine.claims),
            priority: priority::ANSWER,
            reference: answer.0,
            payload: json!({}),
            available: at,
        })
        .await
    }

    /// Brings every card up to date: a final state before any other, an interim one a little later.
    pub(super) async fn queue_redraw(
        &self,
        tx: &mut Tx,
        interaction: &Interaction,
        fresh_claim: bool,
        at: Millis,
    ) -> Result<(), StoreError> {
        let (urgency, when) = match (&interaction.machine.state, fresh_claim) {
            (State::Settled { .. }, _) => (priority::FINAL, at),
            (_, true) => (priority::INTERIM, at.plus(INTERIM)),
            (_, false) => (priority::INTERIM, at),
        };
        for card in tx.cards_of(interaction.id).await? {
            // A queued card is drawn when it is sent; a posting one is edited once it is found. Beneath one
            // that cannot be edited the final state is put as a reply.
            let settled = super::is_settled(&interaction.machine);
            if matches!(card.state, CardState::Live | CardState::Posting)
                || (settled && card.state == CardState::Frozen)
            {
                tx.queue_edit(card.id.0, &card_group(card.id), 1, urgency, when).await?;
            }
        }
        Ok(())
    }

    /// Click outcomes, notices and audit rows.
    async fn outcome_of(
        &self,
        tx: &mut Tx,
        interaction: &Interaction,
        effect: &Effect,
        action: Option<&Action>,
        cause: &Cause<'_>,
        at: Millis,
    ) -> Result<(), StoreError> {
        match effect {
            Effect::Refused { click, why } => {
                self.press_refused(tx, interaction, *click, *why, cause, at).await
            }
            Effect::Counted { click } => {
                self.press_taken(tx, interaction, *click, ClickState::Counted, "vote", "approved", cause, at)
                    .await
            }
            Effect::Withdrawn { click, .. } => {
                self.press_taken(
                    tx,
                    interaction,
                    *click,
                    ClickState::Withdrawn,
                    "withdraw",
                    "withdrawn",
                    cause,
                    at,
                )
                .await
            }
            Effect::Claimed { .. } => {
                let (Some(click), Some(Action::Decide(decision))) = (cause.click, action) else {
                    return Ok(());
                };
                self.press_taken(
                    tx,
                    interaction,
                    click.id,
                    ClickState::Claimed,
                    "click",
                    decision.word(),
                    cause,
                    at,
                )
                .await
            }
            Effect::Voided { vote, why } => {
                tx.vote_voided(vote.click, *why).await?;
                let Some(click) = tx.click(vote.click).await? else { return Ok(()) };
                if *why != Why::AlreadyEnded && click.state == ClickState::Counted {
                    self.queue_notice(tx, vote.click, &Notice::VoteVoided { why: *why }, at).await?;
                }
                let row = Row {
                    event: "void",
                    subject: Some(vote.subject.as_str()),
                    digest: Some(&vote.digest),
                    rule: Some(rule_of(*why).as_str()),
                    policy: click.policy.as_deref(),
                    ..Row::default()
                };
                self.record(tx, Some(interaction), Some(&click), row, at);
                Ok(())
            }
            Effect::Freed { click, why, tell, .. } => {
                self.claim_freed(tx, interaction, *click, *why, *tell, cause, at).await
            }
            Effect::Delivered { answer, click } => {
                self.delivered(tx, interaction, *answer, *click, cause, at).await
            }
            Effect::Settled => {
                let State::Settled { how, .. } = &interaction.machine.state else { return Ok(()) };
                metrics::counter!("countersign_settled_total", "outcome" => how.outcome().as_str())
                    .increment(1);
                tx.clear(&format!("card:{}", interaction.id)).await?;
                let row = Row {
                    event: "settled",
                    subject: match how {
                        How::Ours { subject, .. } => Some(subject.as_str()),
                        _ => None,
                    },
                    digest: Some(&interaction.machine.digest),
                    decision: Some(how.outcome().as_str()),
                    said: cause.said,
                    ..Row::default()
                };
                self.record(tx, Some(interaction), None, row, at);
                Ok(())
            }
            Effect::Reopened => {
                let row =
                    Row { event: "reopened", digest: Some(&interaction.machine.digest), ..Row::default() };
                self.record(tx, Some(interaction), None, row, at);
                Ok(())
            }
            Effect::Send { .. }
            | Effect::Later { .. }
            | Effect::Drop { .. }
            | Effect::Probe { .. }
            | Effect::ReadAgain { .. }
            | Effect::Redraw => Ok(()),
        }
    }

    /// Draws every card anew although nothing of the interaction changed.
    pub(super) async fn redraw(
        &self,
        tx: &mut Tx,
        interaction: &mut Interaction,
        at: Millis,
    ) -> Result<(), StoreError> {
        let (machine, read_due) = (interaction.machine.clone(), interaction.read_due);
        tx.save(interaction, machine, true, read_due, at).await?;
        self.queue_redraw(tx, interaction, false, at).await
    }

    /// What is said of an interaction that has ended.
    pub(super) fn ended_notice(&self, install: &str, how: &How, at: Millis) -> Notice {
        let by = match how {
            How::Ours { subject, .. } => Some(self.person(install, subject.as_str())),
            _ => None,
        };
        Notice::AlreadyEnded { outcome: how.outcome(), by, at }
    }

    #[expect(clippy::too_many_arguments, reason = "one row's parts")]
    async fn press_taken(
        &self,
        tx: &mut Tx,
        interaction: &Interaction,
        click: ClickId,
        state: ClickState,
        event: &str,
        decision: &str,
        cause: &Cause<'_>,
        at: Millis,
    ) -> Result<(), StoreError> {
        let rule = Rule::Approvers.as_str();
        let decided = Decided {
            realm: None,
            subject: cause.subject,
            rule: Some(rule),
            why: None,
            policy: cause.policy,
        };
        if !tx.decide_click(click, state, &decided, at).await? {
            return Err(StoreError::Conflict(format!("click {click} is decided already")));
        }
        let row = Row {
            event,
            subject: cause.subject,
            digest: cause.click.and_then(|c| c.pressed.as_ref()).map(|p| &p.shown),
            decision: Some(decision),
            rule: Some(rule),
            policy: cause.policy,
            reason: cause.click.and_then(|click| click.reason.as_deref()),
            ..Row::default()
        };
        self.record(tx, Some(interaction), cause.click, row, at);
        Ok(())
    }

    async fn press_refused(
        &self,
        tx: &mut Tx,
        interaction: &Interaction,
        click: ClickId,
        why: Why,
        cause: &Cause<'_>,
        at: Millis,
    ) -> Result<(), StoreError> {
        let Some(pressed) = cause.click else { return Ok(()) };
        let install = pressed.install.as_deref().unwrap_or_default();
        let notice = match (&interaction.machine.state, why) {
            (State::Settled { how, at, .. }, Why::AlreadyEnded) => self.ended_notice(install, how, *at),
            (State::Answering(claim), Why::BeingAnswered) => {
                Notice::BeingAnswered { by: self.person(install, claim.subject.as_str()) }
            }
            (_, Why::Unverified) => Notice::CouldNotCheck,
            _ => Notice::Refused { why, by: None },
        };
        let decision = if why == Why::Unverified { "undetermined" } else { "refused" };
        self.refuse_click(
            tx,
            Some(interaction),
            pressed,
            rule_of(why),
            why.as_str(),
            decision,
            &notice,
            cause,
            at,
        )
        .await?;
        debug_assert_eq!(click, pressed.id);
        Ok(())
    }

    /// Ends a click as refused: outcome, notice, audit.
    #[expect(clippy::too_many_arguments, reason = "one row's parts")]
    pub(super) async fn refuse_click(
        &self,
        tx: &mut Tx,
        interaction: Option<&Interaction>,
        click: &Click,
        rule: Rule,
        why: &str,
        decision: &str,
        notice: &Notice,
        cause: &Cause<'_>,
        at: Millis,
    ) -> Result<(), StoreError> {
        let decided = Decided {
            realm: click.realm.as_deref(),
            subject: cause.subject,
            rule: Some(rule.as_str()),
            why: Some(why),
            policy: cause.policy,
        };
        if !tx.decide_click(click.id, ClickState::Refused, &decided, at).await? {
            return Ok(());
        }
        let notice = notice.clone().with_words(click.reason.as_deref());
        self.queue_notice(tx, click.id, &notice, at).await?;
        let row = Row {
            event: "click",
            subject: cause.subject,
            digest: click.pressed.as_ref().map(|p| &p.shown),
            decision: Some(decision),
            rule: Some(rule.as_str()),
            policy: cause.policy,
            reason: click.reason.as_deref(),
            ..Row::default()
        };
        self.record(tx, interaction, Some(click), row, at);
        Ok(())
    }

    #[expect(clippy::too_many_arguments, reason = "one row's parts")]
    async fn claim_freed(
        &self,
        tx: &mut Tx,
        interaction: &Interaction,
        click: ClickId,
        why: Why,
        tell: bool,
        cause: &Cause<'_>,
        at: Millis,
    ) -> Result<(), StoreError> {
        let Some(click) = tx.click(click).await? else { return Ok(()) };
        if tell {
            let decided =
                Decided { rule: Some(rule_of(why).as_str()), why: Some(why.as_str()), ..Decided::default() };
            tx.decide_click(click.id, ClickState::Refused, &decided, at).await?;
            let install = click.install.as_deref().unwrap_or_default();
            let notice = match &interaction.machine.state {
                State::Settled { how, at, .. } if why == Why::AlreadyEnded => {
                    self.ended_notice(install, how, *at)
                }
                State::Settled { how: How::Ours { subject, .. }, .. } => {
                    Notice::Refused { why, by: Some(self.person(install, subject.as_str())) }
                }
                _ => Notice::Refused { why, by: None },
            };
            let notice = notice.with_words(click.reason.as_deref());
            self.queue_notice(tx, click.id, &notice, at).await?;
        }
        let row = Row {
            event: "freed",
            subject: click.subject.as_deref(),
            digest: click.pressed.as_ref().map(|p| &p.shown),
            decision: Some("refused"),
            rule: Some(rule_of(why).as_str()),
            policy: click.policy.as_deref(),
            said: cause.said,
            ..Row::default()
        };
        self.record(tx, Some(interaction), Some(&click), row, at);
        Ok(())
    }

    async fn delivered(
        &self,
        tx: &mut Tx,
        interaction: &Interaction,
        answer: AnswerId,
        click: ClickId,
        cause: &Cause<'_>,
        at: Millis,
    ) -> Result<(), StoreError> {
        tx.decide_click(click, ClickState::Delivered, &Decided::default(), at).await?;
        if let Some(said) = cause.said {
            tx.answer_said(answer, said).await?;
        }
        let Some(click) = tx.click(click).await? else { return Ok(()) };
        let State::Settled { how: How::Ours { decision, .. }, .. } = &interaction.machine.state else {
            return Ok(());
        };
        metrics::counter!("countersign_answers_total", "decision" => Outcome::of(decision).as_str())
            .increment(1);
        let row = Row {
            event: "answer",
            subject: click.subject.as_deref(),
            digest: click.pressed.as_ref().map(|p| &p.shown),
            decision: Some(decision.word()),
            rule: click.rule.as_deref(),
            policy: click.policy.as_deref(),
            said: cause.said,
            reason: decision.reason(),
        };
        self.record(tx, Some(interaction), Some(&click), row, at);
        Ok(())
    }

    /// Queues a private message to the person who made a click.
    pub(super) async fn queue_notice(
        &self,
        tx: &mut Tx,
        click: ClickId,
        notice: &Notice,
        at: Millis,
    ) -> Result<(), StoreError> {
        tx.queue(NewJob {
            kind: JobKind::Notice,
            group: format!("n:{}", click.0.simple()),
            seq: 0,
            priority: priority::NOTICE,
            reference: click.0,
            payload: serde_json::to_value(notice).unwrap_or_default(),
            available: at,
        })
        .await
    }
}

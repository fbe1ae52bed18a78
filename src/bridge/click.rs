//! A press on its way: stored, then judged.
//!
//! Invariant: [`Bridge::take_press`] has committed before anything is acknowledged; here it is judged, as a
//! job of its own, because finding out who it is and whether they may takes time.
//!
//! Known race and the decision taken:
//! - the facts change between reading them and the transaction: the state and the digest are checked
//!   again inside it, the rest is checked again before the answer leaves.

use super::effects::Cause;
use super::ports::{ChatPlatform, MessageRef};
use super::{Bridge, said};
use crate::domain::card::Control;
use crate::domain::clock::Millis;
use crate::domain::form::Decision;
use crate::domain::ids::{AnswerId, ClickId, Subject};
use crate::domain::interaction::{Action, Event, Press, Right, State, Vote};
use crate::domain::notice::Notice;
use crate::domain::policy::{Judgement, Question, Rule, Standing, Verdict, judge};
use crate::domain::routing::{Approver, Route, policy_hash, route};
use crate::domain::text::says_nothing;
use crate::store::clicks::{Click, ClickState};
use crate::store::interactions::Interaction;
use crate::store::{StoreError, Tx};
use std::sync::Arc;
use std::time::Duration;

/// The alert about presses that belong to no install.
pub(super) const NOT_INSTALLED: &str = "not_installed";
/// How long "could not be checked" is tried again before the clicker is told so.
pub(super) const CHECK_FOR: Duration = Duration::from_secs(30);

/// What a job of the bridge ended in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobEnd {
    Done,
    /// The transaction that did the work has ended the job too.
    Written,
    /// Again at that time; `counted` when it was really tried.
    Retry {
        at: Millis,
        error: String,
        counted: bool,
    },
    /// Given up; operators see it.
    Dead(String),
}

impl JobEnd {
    pub(super) fn again(at: Millis, error: impl Into<String>) -> Self {
        Self::Retry { at, error: error.into(), counted: true }
    }

    pub(super) fn paced(at: Millis) -> Self {
        Self::Retry { at, error: String::new(), counted: false }
    }
}

impl Bridge {
    /// Keeps the raw bytes of a delivery that was signed and cannot be read, and alerts.
    pub async fn store_unreadable(&self, source: &str, body: &[u8]) -> Result<(), StoreError> {
        self.keep_raw(source, body).await?;
        let alert = format!("unreadable:{source}");
        self.alert(&alert, "a signed delivery could not be read; its raw bytes are kept").await;
        Ok(())
    }

    /// Judges a stored click.
    pub(super) async fn decide(self: &Arc<Self>, click: ClickId) -> Result<JobEnd, StoreError> {
        let now = self.clock.now();
        let Some(mut click) = self.store.read(|tx| Box::pin(async move { tx.click(click).await })).await?
        else {
            return Ok(JobEnd::Done);
        };
        if click.state != ClickState::Stored {
            return Ok(JobEnd::Done);
        }
        let install = click.install.clone().unwrap_or_default();
        let Some(platform) = self.platforms.get(&install).cloned() else {
            let text = "somebody pressed where no configured install of ours is known; nothing was sent";
            self.alert(NOT_INSTALLED, text).await;
            return self.refuse_early(click, Rule::Person, "not_installed", Notice::NotInstalled, now).await;
        };
        let Some(pressed) = click.pressed.clone() else {
            self.strip(&platform, &click).await;
            return self
                .refuse_early(click, Rule::State, "unknown_control", Notice::UnknownControl, now)
                .await;
        };
        let said = click.said.as_deref().and_then(|said| said::read(said, click.platform, &click.chat_user));
        if let Some(Standing::Unfit(what)) = said.map(|said| said.standing) {
            return self.refuse_early(click, Rule::Person, "person", Notice::Unfit { what }, now).await;
        }
        let Some(interaction) = self.interaction(pressed.interaction).await? else {
            return self
                .refuse_early(click, Rule::State, "unknown_control", Notice::UnknownControl, now)
                .await;
        };
        let Some(action) = action_of(&pressed.control, click.reason.as_deref()) else {
            return self
                .refuse_early(click, Rule::State, "unknown_control", Notice::UnknownControl, now)
                .await;
        };

        // Everything that is read over the network, before the transaction.
        let profile = self.clicker(&platform, &click).await;
        click.realm = profile.key.as_ref().map(|key| key.realm.clone());
        let found = route(&self.rules.routes, &interaction.key, &interaction.form).cloned();
        let (subject, standing) = self.linked(&install, &profile);
        let facts = Facts {
            subject,
            memberships: self.memberships(&platform, found.as_ref(), &click.chat_user, &profile).await,
            standing,
            install: install.clone(),
        };
        let voters = self.voters(&interaction, found.as_ref(), &action).await?;
        let undetermined_until = click.received.plus(CHECK_FOR);

        let bridge = Arc::clone(self);
        self.store
            .write(move |tx| {
                Box::pin(async move {
                    let Some(mut interaction) = tx.interaction(pressed.interaction, true).await? else {
                        // Deleted since it was read: the next run refuses the click.
                        return Ok(JobEnd::paced(now));
                    };
                    let must_view = bridge.must_view(tx, &click).await?;
                    let judged = bridge.judge_press(&interaction, &click, &action, &facts, must_view);
                    let policy = found.as_ref().map(|route| policy_hash(route, &bridge.rules.groups));
                    let cause = Cause {
                        click: Some(&click),
                        subject: facts.subject.as_ref().map(Subject::as_str),
                        policy: policy.as_deref(),
                        said: None,
                    };
                    if judged.verdict == Verdict::Undetermined && now < undetermined_until {
                        return Ok(JobEnd::again(
                            now.plus(Duration::from_secs(3)),
                            "could not be checked yet",
                        ));
                    }
                    // A vote came between: its voter is checked too, at once.
                    let unread = |vote: &Vote| !voters.iter().any(|(subject, _)| *subject == vote.subject);
                    let approvals = found.as_ref().map_or(1, |route| route.approvals.max(1));
                    if approvals > 1
                        && action == Action::Decide(Decision::Approve)
                        && interaction.machine.votes.iter().any(unread)
                    {
                        return Ok(JobEnd::paced(now));
                    }
                    let unknown = voters.iter().any(|(_, right)| *right == Right::Unknown);
                    if unknown && judged.verdict == Verdict::Allow && now < undetermined_until {
                        return Ok(JobEnd::again(
                            now.plus(Duration::from_secs(3)),
                            "a voter could not be checked yet",
                        ));
                    }
                    // The state machine names the refusals that are about the state itself.
                    let (true, Some(subject)) = (lets_the_machine_speak(&judged), facts.subject.clone())
                    else {
                        if judged.outdated || judged.rule == Rule::Reason {
                            bridge.redraw(tx, &mut interaction, now).await?;
                        }
                        let notice = bridge.refusal(&judged, &click, found.as_ref(), &interaction);
                        let decision =
                            if judged.verdict == Verdict::Undetermined { "undetermined" } else { "refused" };
                        bridge
                            .refuse_click(
                                tx,
                                Some(&interaction),
                                &click,
                                judged.rule,
                                judged.rule.as_str(),
                                decision,
                                &notice,
                                &cause,
                                now,
                            )
                            .await?;
                        return Ok(JobEnd::Done);
                    };
                    let press = Press {
                        click: click.id,
                        answer: AnswerId(bridge.ids.uuid()),
                        subject,
                        action,
                        shown: pressed.shown.clone(),
                        deliver_until: click.received.plus(bridge.rules.deliver_within),
                        approvals,
                        voters,
                    };
                    bridge.apply(tx, &mut interaction, Event::Press(press), &cause, now).await?;
                    Ok(JobEnd::Done)
                })
            })
            .await
    }

    pub(super) async fn interaction(
        &self,
        id: crate::domain::ids::InteractionId,
    ) -> Result<Option<Interaction>, StoreError> {
        self.store.read(|tx| Box::pin(async move { tx.interaction(id, false).await })).await
    }

    /// Policy's word on a press.
    fn judge_press(
        &self,
        interaction: &Interaction,
        click: &Click,
        action: &Action,
        facts: &Facts,
        must_view: bool,
    ) -> Judgement {
        let pressed = click.pressed.as_ref();
        judge(&Question {
            machine: &interaction.machine,
            form: &interaction.form,
            owner: interaction.owner.as_ref(),
            route: route(&self.rules.routes, &interaction.key, &interaction.form),
            groups: &self.rules.groups,
            subject: facts.subject.as_ref(),
            standing: facts.standing,
            memberships: &facts.memberships,
            install: Some(&facts.install),
            action,
            shown: pressed.map(|p| &p.shown),
            must_view,
            asked: Some(was_asked(click)),
            before_sending: false,
        })
    }

    /// Whether something was cut on the card that was pressed, and this person has not opened all of it.
    async fn must_view(&self, tx: &mut Tx, click: &Click) -> Result<bool, StoreError> {
        match &click.pressed {
            Some(pressed) if pressed.cut && self.rules.require_full_view => {
                Ok(!tx.has_seen_all(pressed.interaction, &pressed.shown, &click.viewer()).await?)
            }
            _ => Ok(false),
        }
    }

    /// Whether the person behind a click may still do it, with everything read anew.
    pub(super) async fn right_of(
        self: &Arc<Self>,
        interaction: &Interaction,
        click: ClickId,
        action: &Action,
    ) -> Result<Right, StoreError> {
        let bridge = Arc::clone(self);
        let read = self
            .store
            .read(move |tx| {
                Box::pin(async move {
                    let Some(click) = tx.click(click).await? else { return Ok(None) };
                    let must_view = bridge.must_view(tx, &click).await?;
                    Ok(Some((click, must_view)))
                })
            })
            .await?;
        let Some((click, must_view)) = read else { return Ok(Right::Refused) };
        let install = click.install.clone().unwrap_or_default();
        let Some(platform) = self.platforms.get(&install).cloned() else { return Ok(Right::Refused) };
        let profile = self.clicker(&platform, &click).await;
        let found = route(&self.rules.routes, &interaction.key, &interaction.form);
        let memberships = self.memberships(&platform, found, &click.chat_user, &profile).await;
        let (subject, standing) = self.linked(&install, &profile);
        // Without a realm nothing can be said of the link.
        if subject.is_none() && standing == Standing::Unknown {
            return Ok(Right::Unknown);
        }
        // Linked to somebody else by now: the click was made as the subject stored with it.
        if let (Some(now), Some(then)) = (&subject, &click.subject)
            && now.as_str() != then
        {
            return Ok(Right::Refused);
        }
        Ok(judge(&Question {
            machine: &interaction.machine,
            form: &interaction.form,
            owner: interaction.owner.as_ref(),
            route: found,
            groups: &self.rules.groups,
            subject: subject.as_ref(),
            standing,
            memberships: &memberships,
            install: Some(&install),
            action,
            shown: None,
            must_view,
            asked: Some(was_asked(&click)),
            before_sending: true,
        })
        .right())
    }

    /// The earlier voters' rights, read anew when this press may complete the number.
    async fn voters(
        self: &Arc<Self>,
        interaction: &Interaction,
        route: Option<&Route>,
        action: &Action,
    ) -> Result<Vec<(Subject, Right)>, StoreError> {
        let needed = route.map_or(1, |route| route.approvals);
        let approve = Action::Decide(Decision::Approve);
        if needed <= 1 || *action != approve {
            return Ok(vec![]);
        }
        let mut rights = vec![];
        for vote in &interaction.machine.votes {
            let right = self.right_of(interaction, vote.click, &approve).await?;
            rights.push((vote.subject.clone(), right));
        }
        Ok(rights)
    }

    /// The private words for what policy said.
    fn refusal(
        &self,
        judged: &Judgement,
        click: &Click,
        route: Option<&Route>,
        interaction: &Interaction,
    ) -> Notice {
        if judged.verdict == Verdict::Undetermined {
            return Notice::CouldNotCheck;
        }
        match judged.rule {
            Rule::Link => match judged.unfit {
                // A stranger needs no advice on linking.
                Some(what) => Notice::Unfit { what },
                None => Notice::Unlinked { user: click.chat_user.clone() },
            },
            Rule::Person => judged.unfit.map_or(Notice::CouldNotCheck, |what| Notice::Unfit { what }),
            Rule::SelfApproval => Notice::SelfApproval,
            Rule::FullView => Notice::MustView,
            Rule::Reason => Notice::NeedsReason,
            Rule::Approvers => Notice::NotAllowed {
                groups: route
                    .map(|route| {
                        route.approvers.iter().map(Approver::as_str).map(ToOwned::to_owned).collect()
                    })
                    .unwrap_or_default(),
            },
            Rule::State | Rule::Vote | Rule::Digest => match &interaction.machine.state {
                State::Settled { how, at, .. } => {
                    Notice::AlreadyEnded { outcome: how.outcome(), by: None, at: *at }
                }
                State::Answering(claim) => Notice::BeingAnswered {
                    by: self.person(click.install.as_deref().unwrap_or_default(), claim.subject.as_str()),
                },
                State::Open if judged.outdated => Notice::Outdated,
                State::Open => Notice::Refused { why: crate::domain::interaction::Why::Changed, by: None },
            },
        }
    }

    /// Refuses a click that has no interaction to be judged against.
    async fn refuse_early(
        self: &Arc<Self>,
        click: Click,
        rule: Rule,
        why: &'static str,
        notice: Notice,
        now: Millis,
    ) -> Result<JobEnd, StoreError> {
        let bridge = Arc::clone(self);
        self.store
            .write(move |tx| {
                Box::pin(async move {
                    let cause = Cause { click: Some(&click), ..Cause::default() };
                    bridge.refuse_click(tx, None, &click, rule, why, "refused", &notice, &cause, now).await?;
                    Ok(JobEnd::Done)
                })
            })
            .await
    }

    /// Takes the controls off a message of ours that no row knows any more. Best effort.
    async fn strip(&self, platform: &Arc<dyn ChatPlatform>, click: &Click) {
        let (true, Some(channel), Some(message)) = (click.own_message, &click.channel, &click.message) else {
            return;
        };
        let at = MessageRef { channel: channel.clone(), message: message.clone() };
        if let Err(error) = platform.edit(&at, &platform.draw_unknown()).await {
            tracing::info!(install = platform.install(), %error, "an unknown card could not be stripped");
        }
    }
}

/// What a stored click asks for; `None` for a control of another version, or one that decides nothing.
fn action_of(control: &str, reason: Option<&str>) -> Option<Action> {
    Some(match Control::parse(control)? {
        Control::Approve | Control::ApproveConfirmed => Action::Decide(Decision::Approve),
        Control::Deny => Action::Decide(Decision::Deny { reason: None }),
        Control::DenyReason => {
            // A field that may stay empty, left empty.
            let reason = reason.filter(|reason| !says_nothing(reason));
            Action::Decide(Decision::Deny { reason: reason.map(ToOwned::to_owned) })
        }
        Control::Withdraw => Action::Withdraw,
        Control::ShowAll => return None,
    })
}

/// Whether the platform asked once more before this click came.
fn was_asked(click: &Click) -> bool {
    let control = click.pressed.as_ref().and_then(|pressed| Control::parse(&pressed.control));
    control == Some(Control::ApproveConfirmed)
}

/// What was read about the clicker.
struct Facts {
    subject: Option<Subject>,
    standing: Standing,
    memberships: Vec<(String, String, crate::domain::policy::Membership)>,
    install: String,
}

/// The machine judges state, votes and digest itself (it names who was first); policy has the word
/// on everything about the person. So a refusal by `state`, `vote` or `digest` goes on to the machine
/// when no rule about the person refused too.
fn lets_the_machine_speak(judged: &Judgement) -> bool {
    use crate::domain::policy::Passed;
    // The machine knows nothing of drawings: what it would take, policy does not.
    if judged.outdated {
        return false;
    }
    judged.trace.iter().all(|line| {
        line.result == Passed::Pass || matches!(line.rule, Rule::State | Rule::Vote | Rule::Digest)
    })
}

//! From stored state to what a card says.
//!
//! Invariant: the same rows give the same card; nothing is remembered of what was drawn before.

use super::Bridge;
use crate::domain::card::{Card, PersonRef, Status};
use crate::domain::form::Kind;
use crate::domain::interaction::{How, Sent, State};
use crate::domain::routing::{Approver, route};
use crate::store::StoreError;
use crate::store::interactions::Interaction;

impl Bridge {
    /// A person as a card in this install names them.
    pub(super) fn person(&self, install: &str, subject: &str) -> PersonRef {
        PersonRef {
            subject: subject.to_owned(),
            mention: self.rules.people.user_in(install, subject).map(ToOwned::to_owned),
        }
    }

    /// The card of an interaction for an install.
    pub(super) async fn card_of(&self, interaction: &Interaction, install: &str) -> Result<Card, StoreError> {
        let found = route(&self.rules.routes, &interaction.key, &interaction.form);
        let mut status = self.status(interaction, install, found.map_or(1, |route| route.approvals));
        if let Status::Delivering { by, decision, accepted: false } = &status
            && self.is_paused(interaction).await?
        {
            status = Status::Paused { by: by.clone(), decision: decision.clone() };
        }
        let controls = Card::controls_for(&interaction.form.kind, &status);
        Ok(Card {
            form: interaction.form.clone(),
            agent: interaction.key.agent.clone(),
            runtime: interaction.key.runtime.as_str().to_owned(),
            owner: interaction.owner.as_ref().map(|owner| self.person(install, owner.as_str())),
            approvers: found
                .map(|route| route.approvers.iter().map(Approver::as_str).map(ToOwned::to_owned).collect())
                .unwrap_or_default(),
            opened: interaction.opened,
            short_id: interaction.id.short(),
            details_url: self.connector(&interaction.key.runtime).and_then(|connector| {
                connector.details_url(&interaction.key, interaction.context.as_deref())
            }),
            status,
            controls,
        })
    }

    async fn is_paused(&self, interaction: &Interaction) -> Result<bool, StoreError> {
        let runtime = interaction.key.runtime.clone();
        let since = self.store.read(|tx| Box::pin(async move { tx.paused(runtime.as_str()).await })).await?;
        Ok(since.is_some())
    }

    fn status(&self, interaction: &Interaction, install: &str, needed: u32) -> Status {
        match &interaction.machine.state {
            State::Open if interaction.form.kind != Kind::Approval => Status::ReadOnly,
            State::Open => Status::Open {
                votes: interaction
                    .machine
                    .votes
                    .iter()
                    .map(|vote| self.person(install, vote.subject.as_str()))
                    .collect(),
                needed,
            },
            State::Answering(claim) => Status::Delivering {
                by: self.person(install, claim.subject.as_str()),
                decision: claim.decision.word().to_owned(),
                accepted: claim.sent == Sent::Accepted,
            },
            State::Settled { how, at, .. } => {
                let (by, elsewhere_by, elsewhere_what, reason) = match how {
                    How::Ours { subject, decision, .. } => (
                        Some(self.person(install, subject.as_str())),
                        None,
                        None,
                        decision.reason().map(ToOwned::to_owned),
                    ),
                    How::Elsewhere { who, what } => (None, who.clone(), *what, None),
                    How::Canceled | How::Failed | How::Rejected | How::Gone => (None, None, None, None),
                };
                Status::Ended {
                    outcome: how.outcome(),
                    rejected: matches!(how, How::Rejected),
                    by,
                    elsewhere_by,
                    elsewhere_what,
                    at: *at,
                    reason,
                }
            }
        }
    }
}

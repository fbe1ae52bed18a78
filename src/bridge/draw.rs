//! From stored state to what a card says.
//!
//! Invariant: the same rows give the same card; nothing is remembered of what was drawn before.

use super::Bridge;
use crate::domain::card::{Asks, Card, Mention, PersonRef, Status};
use crate::domain::form::Kind;
use crate::domain::interaction::{How, Sent, State};
use crate::domain::place::Spot;
use crate::domain::routing::{Approver, Route, route};
use crate::store::StoreError;
use crate::store::cards::CardRow;
use crate::store::interactions::Interaction;

impl Bridge {
    /// A person as a card in this install names them.
    pub(super) fn person(&self, install: &str, subject: &str) -> PersonRef {
        PersonRef { subject: subject.to_owned(), mention: self.user_in(install, subject) }
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
        let asks = found.map_or_else(Asks::default, Route::asks);
        let controls = Card::controls_for(&interaction.form.kind, &status, asks);
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
            gated: self.rules.require_full_view,
            mention: Mention::default(),
        })
    }

    async fn is_paused(&self, interaction: &Interaction) -> Result<bool, StoreError> {
        let runtime = interaction.key.runtime.clone();
        let since = self.store.read(|tx| Box::pin(async move { tx.paused(runtime.as_str()).await })).await?;
        Ok(since.is_some())
    }

    /// The card of an interaction as it stands in one place. Who is pinged is named as long as it is open, so
    /// that the card does not change by itself: an edit pings nobody.
    pub(super) async fn view_of(
        &self,
        interaction: &Interaction,
        card: &CardRow,
    ) -> Result<Card, StoreError> {
        let mut view = self.card_of(interaction, &card.install).await?;
        let direct = Spot::parse(&card.place).is_ok_and(|spot| spot.target.is_direct());
        if !direct && matches!(view.status, Status::Open { .. } | Status::ReadOnly) {
            view.mention = self.mention(interaction, &card.install);
        }
        Ok(view)
    }

    /// The people of the groups that the route mentions: linked accounts of this install, and its own groups.
    fn mention(&self, interaction: &Interaction, install: &str) -> Mention {
        let mut mention = Mention::default();
        let found = route(&self.rules.routes, &interaction.key, &interaction.form);
        let names = found.map(|route| route.mention.as_slice()).unwrap_or_default();
        for group in self.rules.groups.iter().filter(|group| names.contains(&group.name)) {
            // Everybody is named who has an account there.
            for subject in &group.subjects {
                let own = self.accounts_of(subject).into_iter().filter(|(of, _)| of == install);
                mention.users.extend(own.map(|(_, user)| user));
            }
            mention.groups.extend(group.of_chat(install).map(ToOwned::to_owned));
        }
        mention.users.sort_unstable();
        mention.users.dedup();
        mention.groups.dedup();
        mention
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
                    voters: interaction
                        .voters
                        .iter()
                        .filter(|voter| by.as_ref().is_none_or(|by| by.subject != **voter))
                        .map(|voter| self.person(install, voter))
                        .collect(),
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

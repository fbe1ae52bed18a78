//! Why somebody may answer an interaction, or not: what `countersign explain` prints.
//!
//! Invariant: the same function judges here and at a click. Without a chat account every account
//! linked to the subject is tried and the best verdict counts.

use super::Bridge;
use super::ports::PressedBy;
use crate::domain::form::Decision;
use crate::domain::ids::Subject;
use crate::domain::interaction::Action;
use crate::domain::policy::{Judgement, Need, Question, Rule, Standing, Trace, Verdict, judge};
use crate::domain::routing::{policy_hash, route};
use crate::store::StoreError;
use crate::store::interactions::Interaction;
use serde::Serialize;
use std::sync::Arc;

/// The explanation, in the shape that other programs read.
#[derive(Debug, Clone, Serialize)]
pub struct Explanation {
    pub interaction: String,
    pub subject: String,
    /// `approved` or `denied`: what was asked about.
    pub decision: String,
    pub verdict: Verdict,
    pub rule: Rule,
    pub needs: Vec<Need>,
    pub policy: Option<String>,
    pub trace: Vec<Trace>,
}

/// A chat account to ask about: `(install, user)`.
pub type Account = (String, String);

impl Bridge {
    /// Judges a subject against an interaction as it stands now, pressing from one of these accounts (none:
    /// from any of theirs).
    pub async fn explain(
        self: &Arc<Self>,
        interaction: &Interaction,
        subject: &Subject,
        from: &[Account],
        deny: bool,
    ) -> Result<Explanation, StoreError> {
        let decision = if deny { Decision::Deny { reason: None } } else { Decision::Approve };
        let found = route(&self.rules.routes, &interaction.key, &interaction.form);
        let accounts = if from.is_empty() { self.accounts_of(subject) } else { from.to_vec() };
        let action = Action::Decide(decision.clone());
        let mut best: Option<Judgement> = None;
        for account in accounts {
            let judged = self.judge_account(interaction, subject, &account, &action).await?;
            if best.as_ref().is_none_or(|known| rank(judged.verdict) < rank(known.verdict)) {
                best = Some(judged);
            }
        }
        let judged = match best {
            Some(judged) => judged,
            // Linked to no chat account: nobody could press as this subject.
            None => self.judge_nobody(interaction, &action),
        };
        Ok(Explanation {
            interaction: interaction.id.short(),
            subject: subject.as_str().to_owned(),
            decision: decision.word().to_owned(),
            verdict: judged.verdict,
            rule: judged.rule,
            needs: judged.needs,
            policy: found.map(|route| policy_hash(route, &self.rules.groups)),
            trace: judged.trace,
        })
    }

    async fn judge_account(
        self: &Arc<Self>,
        interaction: &Interaction,
        subject: &Subject,
        (install, user): &Account,
        action: &Action,
    ) -> Result<Judgement, StoreError> {
        let found = route(&self.rules.routes, &interaction.key, &interaction.form);
        let Some(platform) = self.platforms.get(install).cloned() else {
            return Ok(self.judge_nobody(interaction, action));
        };
        let profile = self.profile(&platform, &PressedBy { user: user.clone(), home_team: None }).await;
        let memberships = self.memberships(&platform, found, user, &profile).await;
        let (linked, standing) = self.linked(install, &profile);
        let linked = linked.filter(|linked| linked == subject);
        let id = interaction.id;
        let cards = self.store.read(|tx| Box::pin(async move { tx.cards_of(id).await })).await?;
        let cut = cards.iter().any(|card| card.cut);
        let (digest, viewer) = (interaction.machine.digest.clone(), profile.key.clone());
        let seen = match viewer {
            Some(who) if cut => {
                self.store
                    .read(|tx| Box::pin(async move { tx.has_seen_all(id, &digest, &who).await }))
                    .await?
            }
            _ => false,
        };
        Ok(judge(&Question {
            machine: &interaction.machine,
            form: &interaction.form,
            owner: interaction.owner.as_ref(),
            route: found,
            groups: &self.rules.groups,
            subject: linked.as_ref(),
            standing,
            memberships: &memberships,
            install: Some(install),
            action,
            shown: None,
            must_view: self.rules.require_full_view && cut && !seen,
            asked: None,
            before_sending: false,
        }))
    }

    fn judge_nobody(&self, interaction: &Interaction, action: &Action) -> Judgement {
        judge(&Question {
            machine: &interaction.machine,
            form: &interaction.form,
            owner: interaction.owner.as_ref(),
            route: route(&self.rules.routes, &interaction.key, &interaction.form),
            groups: &self.rules.groups,
            subject: None,
            standing: Standing::Member,
            memberships: &[],
            install: None,
            action,
            shown: None,
            must_view: false,
            asked: None,
            before_sending: false,
        })
    }
}

/// Best first.
fn rank(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Allow => 0,
        Verdict::Undetermined => 1,
        Verdict::Refuse => 2,
    }
}

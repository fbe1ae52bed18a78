//! What is recorded about a decision.
//!
//! Invariant: every decision of a person and every end of an interaction leaves a row in the same
//! transaction that makes it so. The chain itself is the store's.

use super::Bridge;
use crate::domain::audit::AuditEntry;
use crate::domain::clock::Millis;
use crate::domain::form::Digest;
use crate::domain::ids::Platform;
use crate::store::Tx;
use crate::store::clicks::Click;
use crate::store::interactions::Interaction;

/// The parts of a row that depend on what happened.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Row<'a> {
    pub event: &'a str,
    pub subject: Option<&'a str>,
    pub digest: Option<&'a Digest>,
    pub decision: Option<&'a str>,
    pub rule: Option<&'a str>,
    pub policy: Option<&'a str>,
    pub said: Option<&'a str>,
    pub reason: Option<&'a str>,
}

/// The chat account behind a click, as the audit log writes it.
#[must_use]
pub fn clicker(click: &Click) -> String {
    let realm =
        click.realm.as_deref().or(click.home_team.as_deref()).or(click.team.as_deref()).unwrap_or_default();
    match click.platform {
        Platform::Slack => format!("slack:{realm}:{}", click.chat_user),
        // An account is the same everywhere.
        Platform::Discord => format!("discord:{}", click.chat_user),
    }
}

impl Bridge {
    /// Appends a row, at the end of its transaction.
    pub(super) fn record(
        &self,
        tx: &mut Tx,
        interaction: Option<&Interaction>,
        click: Option<&Click>,
        row: Row<'_>,
        at: Millis,
    ) {
        let text = |part: Option<&str>| part.map(ToOwned::to_owned);
        let entry = AuditEntry {
            event: row.event.to_owned(),
            runtime: interaction.map(|i| i.key.runtime.as_str().to_owned()),
            interaction: interaction.map(|i| i.key.external.clone()),
            subject: text(row.subject),
            digest: row.digest.map(|digest| digest.as_str().to_owned()),
            decision: text(row.decision),
            rule: text(row.rule),
            policy: text(row.policy),
            runtime_said: text(row.said),
            clicker: click.map(clicker),
            reason: text(row.reason),
        };
        tx.record_at_end(entry, at, self.ids.random());
    }
}

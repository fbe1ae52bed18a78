//! What operators and their programs may see and do.
//!
//! Invariant: nothing in here clicks, answers or links. Registering a task only says that it is to be
//! read; what a reading shows is believed, not what the registering program says, except for the
//! subject as whom the task is read.

pub use crate::store::StoreError;
pub use crate::store::cards::CardRow;
pub use crate::store::interactions::Interaction;

use super::Bridge;
use crate::domain::audit::AuditRow;
use crate::domain::clock::Millis;
use crate::domain::ids::{InteractionId, RuntimeName, Subject};
use crate::domain::routing::{Route, policy_hash, route};
use crate::store::tasks::NewTask;
use std::time::Duration;

/// A finished pass is stored at most this often per runtime.
const NOTE_EVERY: Duration = Duration::from_mins(1);

/// An interaction with its cards.
#[derive(Debug)]
pub struct Listed<'b> {
    pub interaction: Interaction,
    pub cards: Vec<CardRow>,
    /// The route it goes by, as configured now, and the hash of the route and its groups.
    pub route: Option<(&'b Route, String)>,
}

/// Something that keeps us from working fully.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lack {
    Database(String),
    /// An alert stands.
    Alert {
        key: String,
        text: String,
        since: Millis,
        times: i64,
    },
    /// The install has never told us who we are there.
    Identity {
        install: String,
    },
    /// No pass over the runtime has been finished since this process started, by any replica.
    NeverRead {
        runtime: String,
    },
}

impl Bridge {
    /// A page of interactions in the order of opening, after `after`.
    pub async fn list_interactions(
        &self,
        open_only: bool,
        after: InteractionId,
        limit: i64,
    ) -> Result<Vec<Listed<'_>>, StoreError> {
        let found = self
            .store
            .read(move |tx| {
                Box::pin(async move {
                    let mut found = vec![];
                    for interaction in tx.interactions_after(after, open_only, limit).await? {
                        let cards = tx.cards_of(interaction.id).await?;
                        found.push((interaction, cards));
                    }
                    Ok(found)
                })
            })
            .await?;
        Ok(found
            .into_iter()
            .map(|(interaction, cards)| {
                let route = route(&self.rules.routes, &interaction.key, &interaction.form)
                    .map(|route| (route, policy_hash(route, &self.rules.groups)));
                Listed { interaction, cards, route }
            })
            .collect())
    }

    /// Whether a runtime of this name is configured.
    #[must_use]
    pub fn knows_runtime(&self, runtime: &str) -> bool {
        self.connectors.contains_key(runtime)
    }

    /// Watches a task from now on; idempotent. `subject`: read it as this subject.
    pub async fn register_task(
        &self,
        runtime: &str,
        task: &str,
        context: Option<&str>,
        subject: Option<&Subject>,
    ) -> Result<(), StoreError> {
        let new = NewTask {
            runtime: runtime.to_owned(),
            task: task.to_owned(),
            context: context.map(str::to_owned),
            subject: subject.map(|subject| subject.as_str().to_owned()),
        };
        let now = self.clock.now();
        self.store.write(move |tx| Box::pin(async move { tx.register_task(new, now).await })).await?;
        self.tracking.hint();
        Ok(())
    }

    /// Up to `limit` rows of the audit log from `from` on, ascending.
    pub async fn audit_rows(&self, from: i64, limit: i64) -> Result<Vec<AuditRow>, StoreError> {
        self.store.read(move |tx| Box::pin(async move { tx.audit_rows(from, limit).await })).await
    }

    /// Keeps the raw bytes of a delivery that was signed and is not of use now. No alert.
    pub async fn keep_raw(&self, source: &str, body: &[u8]) -> Result<(), StoreError> {
        let (id, now) = (self.ids.uuid(), self.clock.now());
        let (source, body) = (source.to_owned(), body.to_vec());
        self.store
            .write(move |tx| Box::pin(async move { tx.keep_unreadable(id, &source, now, &body).await }))
            .await
    }

    /// Notes that a pass over a runtime reached its end.
    pub async fn note_pass(&self, runtime: &RuntimeName) -> Result<(), StoreError> {
        let now = self.clock.now();
        if !self.directory.due_note(runtime.as_str(), now, NOTE_EVERY) {
            return Ok(());
        }
        let name = runtime.as_str().to_owned();
        self.store.write(move |tx| Box::pin(async move { tx.note_pass(&name, now).await })).await
    }

    /// What is missing for working fully; empty when all is well.
    pub async fn lacks(&self) -> Vec<Lack> {
        let mut lacks: Vec<Lack> = self
            .platforms
            .keys()
            .filter(|install| self.directory.identity(install).is_none())
            .map(|install| Lack::Identity { install: install.clone() })
            .collect();
        let stored =
            self.store.read(|tx| Box::pin(async move { Ok((tx.alerts().await?, tx.passes().await?)) })).await;
        match stored {
            Ok((alerts, passes)) => {
                lacks.extend(alerts.into_iter().map(|alert| Lack::Alert {
                    key: alert.key,
                    text: alert.text,
                    since: alert.since,
                    times: alert.times,
                }));
                let read =
                    |name: &str| passes.iter().any(|(runtime, at)| runtime == name && *at >= self.started);
                lacks.extend(
                    self.connectors
                        .keys()
                        .filter(|name| !read(name))
                        .map(|name| Lack::NeverRead { runtime: name.clone() }),
                );
            }
            Err(error) => lacks.push(Lack::Database(error.to_string())),
        }
        lacks
    }
}

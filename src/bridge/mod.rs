//! The use cases: what happens between a runtime's interaction and a person's click.
//!
//! Invariant: one transaction decides and writes the jobs; workers do the talking; nothing held in
//! memory is needed to answer correctly (what is cached here is only ever re-read).

pub mod alerts;
pub mod audit;
mod bulletins;
pub mod cards;
pub mod carrier;
pub mod click;
pub mod deliver;
mod deliveries;
pub mod directory;
mod draw;
mod edits;
mod effects;
pub mod explain;
pub mod findings;
mod follow;
pub mod gateway;
pub mod heard;
pub mod home;
pub mod hooks;
pub mod incident;
pub mod notices;
pub mod observe;
pub mod operators;
pub mod places;
pub mod ports;
pub mod reconcile;
mod refused;
mod said;
mod seats;
pub mod send;
mod spread;
pub mod stops;
pub mod supervisor;
pub mod take;
pub mod trial;
pub mod unanswered;
pub mod views;
mod waiting;

use crate::domain::clock::{Clock, Millis};
use crate::domain::ids::{Ids, RuntimeName};
use crate::domain::interaction::Machine;
use crate::domain::place::Place;
use crate::domain::routing::{Group, Route};
use crate::store::{Store, StoreError};
use directory::{Directory, People};
use ports::{ChatPlatform, Connector};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// What the configuration says about who may do what, and where it goes.
#[derive(Debug, Clone)]
pub struct Rules {
    pub routes: Vec<Route>,
    pub groups: Vec<Group>,
    pub people: People,
    pub deliver_within: Duration,
    pub group_max_age: Duration,
    pub require_full_view: bool,
    /// Where runtimes may call us, up to the part that names the call; `None`: nowhere.
    pub hooks: Option<String>,
    /// Open interactions that one place shows at once; at least 1.
    pub max_open_per_place: i64,
    /// Where operators are told of alerts.
    pub alerts_to: Vec<Place>,
}

/// Everything the use cases work with.
pub struct Bridge {
    pub store: Store,
    pub clock: Arc<dyn Clock>,
    pub ids: Arc<dyn Ids>,
    pub rules: Rules,
    pub connectors: BTreeMap<String, Arc<dyn Connector>>,
    pub platforms: BTreeMap<String, Arc<dyn ChatPlatform>>,
    pub directory: Directory,
    /// This process, as the owner of leases.
    pub owner: String,
    /// The deployment's prefix of idempotency keys.
    pub prefix: String,
    /// What is followed, and how often each address is called: only makes us quicker.
    tracking: follow::Tracking,
    calls: hooks::Calls,
    /// Presses whose first response is still on its way.
    pub unanswered: unanswered::Unanswered,
    /// When this process began: posts of unknown outcome wait from here too.
    pub started: Millis,
}

impl Bridge {
    /// Puts the use cases together. The store must be migrated.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn new(
        store: Store,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn Ids>,
        rules: Rules,
        connectors: Vec<Arc<dyn Connector>>,
        platforms: Vec<Arc<dyn ChatPlatform>>,
    ) -> Result<Arc<Self>, StoreError> {
        let prefix = store.message_prefix().await?;
        let known = store.read(|tx| Box::pin(async move { tx.installs().await })).await?;
        let started = clock.now();
        let owner = ids.uuid().simple().to_string();
        Ok(Arc::new(Self {
            store,
            clock,
            ids,
            rules: rules.with_trials(),
            connectors: connectors.into_iter().map(|c| (c.runtime().as_str().to_owned(), c)).collect(),
            platforms: platforms.into_iter().map(|p| (p.install().to_owned(), p)).collect(),
            directory: Directory::new(known),
            owner,
            prefix,
            tracking: follow::Tracking::default(),
            calls: hooks::Calls::default(),
            unanswered: unanswered::Unanswered::default(),
            started,
        }))
    }

    fn connector(&self, runtime: &RuntimeName) -> Option<&Arc<dyn Connector>> {
        self.connectors.get(runtime.as_str())
    }

    /// Makes an alert stand until [`Bridge::all_clear`]: an ERROR log, a metric, a reason in `/readyz`.
    pub async fn alert(&self, key: &str, text: &str) {
        let (key, text) = (key.to_owned(), text.to_owned());
        let now = self.clock.now();
        let (log_key, log_text) = (key.clone(), text.clone());
        let fresh =
            self.store.write(move |tx| Box::pin(async move { tx.raise(&key, &text, now).await })).await;
        match fresh {
            Ok(true) => raised(&log_key, &log_text),
            Ok(false) => {}
            Err(error) => tracing::error!(alert = log_key, %error, "{log_text} (and it could not be stored)"),
        }
    }

    /// What the alert was about is well again. Said after every success, so it looks before it writes.
    pub async fn all_clear(&self, key: &str) {
        let standing = self.store.read(|tx| Box::pin(async move { tx.alerts().await })).await;
        if standing.is_ok_and(|alerts| alerts.iter().all(|alert| alert.key != key)) {
            return;
        }
        let key = key.to_owned();
        let cleared =
            self.store.write(move |tx| Box::pin(async move { tx.clear(&key).await.map(|_| ()) })).await;
        if let Err(error) = cleared {
            tracing::warn!(%error, "an alert could not be cleared");
        }
    }
}

/// An alert that did not stand before is said and counted, once it is stored.
fn raised(key: &str, text: &str) {
    metrics::counter!("countersign_alerts_total").increment(1);
    tracing::error!(alert = key, "{text}");
}

/// The group in which an interaction's answers are delivered in order.
fn answer_group(id: crate::domain::ids::InteractionId) -> String {
    format!("a:{}", id.0.simple())
}

/// The group in which a card's post and edits are sent in order.
fn card_group(id: crate::domain::ids::CardId) -> String {
    format!("c:{}", id.0.simple())
}

/// Whether nothing can happen to it any more.
fn is_settled(machine: &Machine) -> bool {
    matches!(machine.state, crate::domain::interaction::State::Settled { .. })
}

//! What happens with a delivery of Discord's that was verified and read: the same over HTTP and over the
//! gateway.
//!
//! Invariant: when [`DiscordDispatch::take`] returns [`Taken`], everything that has an effect is committed, and
//! `first` may be the first response; nothing but the database is asked before. What opens something opens in
//! that response; whoever sends it says so afterwards ([`DiscordDispatch::after`]). What verified a delivery
//! decides the application: one that names another has no effect and is in the audit log.
//!
//! Known race: two copies of one delivery at the same time. A press has a key that is taken in the transaction
//! that stores it, and opens nothing the second time. A command's key is taken before its answer.

use crate::bridge::Bridge;
use crate::bridge::heard::Said;
use crate::bridge::operators::StoreError;
use crate::bridge::ports::{ChatPlatform, Pressed, Typed};
use crate::bridge::take;
use crate::bridge::views::{Opens, Ready};
use crate::chat::discord::{Discord, Inbound, Interaction, Opening};
use crate::domain::notice::Notice;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// What opens has to be there within this.
const OPENS_WITHIN: Duration = Duration::from_secs(1);

/// What deliveries work with.
#[derive(Clone)]
pub struct DiscordDispatch {
    pub bridge: Arc<Bridge>,
}

/// An install whose key, or whose gateway, verified a delivery.
#[derive(Debug, Clone)]
pub struct DiscordApp {
    pub platform: Arc<Discord>,
}

impl DiscordApp {
    pub fn new(platform: Arc<Discord>) -> Self {
        Self { platform }
    }
}

/// Committed: to be answered.
#[derive(Debug)]
pub struct Taken {
    /// The first response.
    pub first: Value,
    pub then: Then,
}

impl Taken {
    fn with(first: Value) -> Self {
        Self { first, then: Then::Nothing }
    }
}

/// What is to be done when the first response was sent.
#[derive(Debug)]
pub enum Then {
    Nothing,
    /// Something is open now.
    Opened {
        on: Arc<Discord>,
        ready: Box<Ready>,
        opens: Box<Opens>,
    },
    /// What was announced has to be filled.
    Fill {
        ready: Box<Ready>,
        opens: Box<Opens>,
    },
}

/// Without effect.
#[derive(Debug)]
pub enum NotTaken {
    /// It names another application than the one that was verified.
    OtherApp,
    /// Its bytes are kept and operators are alerted; nobody can be answered.
    Unreadable,
    /// Nothing is stored: the person may press again.
    Store(StoreError),
}

impl From<StoreError> for NotTaken {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// Acknowledged, and nothing changes.
pub(super) fn acknowledged() -> Value {
    json!({"type": 6})
}

impl DiscordDispatch {
    /// Stores what a delivery asks for. `verified`: the installs it was verified for; `raw`: where it came from,
    /// and its bytes.
    ///
    /// # Errors
    /// When it may not be answered as taken.
    pub async fn take(
        &self,
        interaction: Interaction,
        raw: (&'static str, &[u8]),
        verified: &[DiscordApp],
    ) -> Result<Taken, NotTaken> {
        let Interaction { id, application_id, token, sent: _, what } = interaction;
        let ours = self.of_app(verified, application_id.as_deref()).await?;
        let Some(on) = ours.first().map(|app| Arc::clone(&app.platform)) else {
            return Err(NotTaken::OtherApp);
        };
        let installs: Vec<String> = ours.iter().map(|app| app.platform.install().to_owned()).collect();
        match what {
            Inbound::Ping => Ok(Taken::with(json!({"type": 1}))),
            Inbound::Pressed { pressed, opens } => self.press(&on, *pressed, opens, &installs).await,
            Inbound::Typed(typed) => {
                let keys: Vec<String> = id.iter().map(|id| format!("discord:{id}")).collect();
                self.command(&on, *typed, &keys, &installs).await
            }
            Inbound::Unreadable(what) => {
                self.unreadable(raw.0, raw.1, what).await?;
                match (id, token) {
                    (Some(_), Some(_)) => Ok(Taken::with(on.answer("unreadable"))),
                    _ => Err(NotTaken::Unreadable),
                }
            }
        }
    }

    /// The verified installs that belong to the application the delivery names.
    async fn of_app(
        &self,
        verified: &[DiscordApp],
        named: Option<&str>,
    ) -> Result<Vec<DiscordApp>, NotTaken> {
        let Some(named) = named else { return Ok(verified.to_vec()) };
        let ours: Vec<_> =
            verified.iter().filter(|app| app.platform.application() == named).cloned().collect();
        if let (true, Some(app)) = (ours.is_empty(), verified.first()) {
            self.bridge.foreign_delivery(app.platform.install()).await?;
            return Err(NotTaken::OtherApp);
        }
        Ok(ours)
    }

    /// Takes a press. `opens`: its mark says that it only opens something.
    async fn press(
        &self,
        on: &Arc<Discord>,
        press: Pressed,
        opens: bool,
        installs: &[String],
    ) -> Result<Taken, NotTaken> {
        let taken = tokio::time::timeout(OPENS_WITHIN, self.bridge.take_press(press, installs)).await;
        let repeat = match taken {
            Ok(Ok(take::Taken::Stored { new })) => !new,
            Ok(Ok(take::Taken::OpenedBefore)) => true,
            Ok(Ok(take::Taken::Opens(opens))) => return Ok(self.open(on, opens).await),
            // Nothing was decided by it.
            Ok(Err(error)) if opens => {
                tracing::error!(%error, "what a control opens could not be looked up; the person is told");
                return Ok(Taken::with(on.told(&Notice::PressAgain)));
            }
            Err(_) if opens => return Ok(Taken::with(on.told(&Notice::PressAgain))),
            Ok(Err(error)) => return Err(error.into()),
            // It is written all the same, sooner or later, and then it counts.
            Err(_) => return Err(NotTaken::Store(StoreError::Unavailable("not in time".into()))),
        };
        metrics::counter!("countersign_clicks_total", "platform" => "discord",
            "repeat" => if repeat { "true" } else { "false" })
        .increment(1);
        Ok(Taken::with(acknowledged()))
    }

    async fn open(&self, on: &Arc<Discord>, opens: Box<Opens>) -> Taken {
        let ready = match tokio::time::timeout(OPENS_WITHIN, self.bridge.ready(&opens)).await {
            Ok(Ok(ready)) => Box::new(ready),
            Ok(Err(notice)) => return Taken::with(on.told(&notice)),
            Err(_) => return Taken::with(on.told(&Notice::PressAgain)),
        };
        let on = Arc::clone(on);
        match on.opening(&ready.view, opens.turned()) {
            Opening::Response(first) => Taken { first, then: Then::Opened { on, ready, opens } },
            Opening::File { first } => Taken { first, then: Then::Fill { ready, opens } },
        }
    }

    async fn command(
        &self,
        on: &Arc<Discord>,
        typed: Typed,
        keys: &[String],
        installs: &[String],
    ) -> Result<Taken, NotTaken> {
        let later = json!({"type": 5, "data": {"flags": 64}});
        if !self.bridge.note_delivery(keys).await? {
            return Ok(Taken::with(later));
        }
        let answer = match self.bridge.command(typed, installs).await? {
            Said::Later => return Ok(Taken::with(later)),
            Said::Waiting(drawn) => return Ok(Taken::with(on.shown(&drawn))),
            Said::Help => "help",
            Said::NotKnown => "not_known",
            Said::Unlink => "unlink",
            Said::NotInstalled => "not_installed",
        };
        Ok(Taken::with(on.answer(answer)))
    }

    /// Keeps the bytes of a delivery that was verified and cannot be read, and tells operators.
    ///
    /// # Errors
    /// When they could not be kept.
    pub async fn unreadable(
        &self,
        source: &'static str,
        raw: &[u8],
        what: &'static str,
    ) -> Result<(), StoreError> {
        self.bridge.store_unreadable(source, raw).await?;
        metrics::counter!("countersign_inbound_unreadable_total", "platform" => "discord").increment(1);
        tracing::warn!(source, what, "a verified delivery could not be read; its bytes are kept");
        Ok(())
    }

    /// The first response was sent, some time ago; `taken`: Discord has said that it took it.
    pub async fn after(&self, then: Then, taken: bool) {
        match then {
            Then::Nothing => {}
            Then::Opened { on, ready, opens } => {
                if ready.is_everything() && !taken {
                    match opens.way_in() {
                        Some(way) if on.is_open(way).await => {}
                        _ => return,
                    }
                }
                self.bridge.shown(*ready).await;
            }
            Then::Fill { ready, opens } => self.bridge.fill(*opens, *ready).await,
        }
    }
}

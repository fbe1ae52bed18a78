//! What happens with a delivery of Slack's that was verified and read: the same over HTTP and over a
//! socket.
//!
//! Invariant: when [`Dispatch::take`] returns [`Taken`], everything that has an effect is committed and
//! the delivery may be acknowledged; when it returns [`NotTaken`], each way says in its own manner that
//! it was not. What verified the delivery decides the app: one that names another app has no effect. A
//! delivery that was taken before is acknowledged and has no second effect.
//!
//! Known race: two copies of one delivery at the same time. A press has a key that is taken in the
//! transaction that stores it. A command's key is taken before its answer: its second copy stays without
//! one. An event's key is written after its effect, so that a crash in between loses nothing; what an
//! event does is harmless when done twice.

use crate::bridge::Bridge;
use crate::bridge::operators::StoreError;
use crate::bridge::ports::Pressed;
use crate::bridge::take;
use crate::chat::slack::{Delivery, Event, Inbound, Interactivity, Read, Way, blank_reason};
use crate::render::Templates;
use crate::render::slack::CommandAnswer;
use serde_json::{Value, json};
use std::sync::Arc;

/// What deliveries work with.
#[derive(Clone)]
pub struct Dispatch {
    pub bridge: Arc<Bridge>,
    pub templates: Arc<Templates>,
}

/// An install whose secret, or whose socket, verified a delivery.
#[derive(Debug, Clone)]
pub struct Verified {
    pub install: String,
    /// As configured; otherwise the app is learnt from Slack.
    pub app_id: Option<String>,
}

/// Committed: to be acknowledged.
#[derive(Debug, PartialEq)]
pub enum Taken {
    Empty,
    /// With this JSON: the body over HTTP, the `payload` of the acknowledgement over a socket.
    Answer(Value),
}

/// Without effect.
#[derive(Debug)]
pub enum NotTaken {
    /// It names another app than the one whose secret or socket verified it.
    OtherApp,
    /// Its bytes are kept and operators are alerted.
    Unreadable(&'static str),
    /// Nothing is stored: the person may press again.
    Store(StoreError),
}

impl From<StoreError> for NotTaken {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl Dispatch {
    /// Stores what a delivery asks for. `verified`: the installs it was verified for; those of one app
    /// may share a secret.
    ///
    /// # Errors
    /// When it may not be acknowledged as taken.
    pub async fn take(&self, delivery: Delivery<'_>, verified: &[Verified]) -> Result<Taken, NotTaken> {
        let Delivery { way: _, raw, keys, read } = delivery;
        match read {
            Read::Interactivity(read) => self.interactivity(read, raw, &keys, verified).await,
            Read::Command(Some(command)) => {
                self.of_app(verified, command.app_id.as_deref())?;
                if self.bridge.note_delivery(&keys).await? { Ok(self.command()) } else { Ok(Taken::Empty) }
            }
            Read::Command(None) => self.unreadable(Way::Commands, raw, "no field `command`").await,
            Read::Event(event) => {
                if self.bridge.knows_delivery(&keys).await? {
                    return Ok(Taken::Empty);
                }
                let taken = self.event(event, raw, verified).await?;
                self.bridge.note_delivery(&keys).await?;
                Ok(taken)
            }
        }
    }

    /// The verified installs that belong to the app the delivery names. An install whose app is not
    /// known yet stays: its secret must do, and nothing is answered before the account could be checked.
    fn of_app(&self, verified: &[Verified], named: Option<&str>) -> Result<Vec<String>, NotTaken> {
        let belongs = |door: &&Verified| {
            let Some(named) = named else { return true };
            let learnt = || self.bridge.directory.identity(&door.install).map(|identity| identity.app_id);
            let app = door.app_id.clone().or_else(learnt).filter(|app| !app.is_empty());
            app.is_none_or(|app| app == named)
        };
        let installs: Vec<String> =
            verified.iter().filter(belongs).map(|door| door.install.clone()).collect();
        if installs.is_empty() { Err(NotTaken::OtherApp) } else { Ok(installs) }
    }

    async fn interactivity(
        &self,
        read: Interactivity,
        raw: &[u8],
        keys: &[String],
        verified: &[Verified],
    ) -> Result<Taken, NotTaken> {
        let installs = self.of_app(verified, read.app_id.as_deref())?;
        match read.what {
            Inbound::Pressed(presses) => {
                for press in presses {
                    self.press(press, &installs).await?;
                }
            }
            Inbound::Submitted(form) if form.is_blank() => {
                return Ok(Taken::Answer(blank_reason(&self.templates, &form.field)));
            }
            Inbound::Submitted(form) => self.press(form.pressed, &installs).await?,
            Inbound::Ignored => {}
            Inbound::UnknownType(_) if self.bridge.knows_delivery(keys).await? => {}
            Inbound::UnknownType(kind) => {
                self.bridge.keep_raw(Way::Interactivity.source(), raw).await?;
                self.bridge.note_delivery(keys).await?;
                tracing::warn!(?kind, "a delivery of a type this version does not know; it is kept");
            }
            Inbound::Unreadable(what) => return self.unreadable(Way::Interactivity, raw, what).await,
        }
        Ok(Taken::Empty)
    }

    /// Takes a press; what it opens is opened beside the acknowledgement, which does not wait for it.
    async fn press(&self, press: Pressed, installs: &[String]) -> Result<(), NotTaken> {
        let repeat = match self.bridge.take_press(press, installs).await? {
            take::Taken::Stored { new } => !new,
            take::Taken::OpenedBefore => true,
            take::Taken::Opens(opens) => {
                let bridge = Arc::clone(&self.bridge);
                #[expect(
                    clippy::disallowed_methods,
                    reason = "over in seconds by its deadlines; may be lost"
                )]
                tokio::spawn(async move { bridge.show(*opens).await });
                return Ok(());
            }
        };
        metrics::counter!("countersign_clicks_total", "platform" => "slack",
            "repeat" => if repeat { "true" } else { "false" })
        .increment(1);
        Ok(())
    }

    fn command(&self) -> Taken {
        let text = self.templates.render(&CommandAnswer {});
        Taken::Answer(json!({ "response_type": "ephemeral", "text": text }))
    }

    async fn event(&self, event: Event, raw: &[u8], verified: &[Verified]) -> Result<Taken, NotTaken> {
        match event {
            Event::UrlVerification { challenge } => Ok(Taken::Answer(json!({ "challenge": challenge }))),
            Event::Ignored { app_id, event_id: _ } => {
                self.of_app(verified, app_id.as_deref())?;
                Ok(Taken::Empty)
            }
            Event::Channel { app_id, team, enterprise, news } => {
                let installs = self.of_app(verified, app_id.as_deref())?;
                let (team, enterprise) = (team.as_deref(), enterprise.as_deref());
                self.bridge.channel_news_of(team, enterprise, &installs, &news).await?;
                Ok(Taken::Empty)
            }
            Event::Unreadable => self.unreadable(Way::Events, raw, "no JSON object").await,
        }
    }

    async fn unreadable(&self, way: Way, raw: &[u8], what: &'static str) -> Result<Taken, NotTaken> {
        self.bridge.store_unreadable(way.source(), raw).await?;
        metrics::counter!("countersign_inbound_unreadable_total", "platform" => "slack").increment(1);
        tracing::warn!(
            source = way.source(),
            what,
            "a verified delivery could not be read; its bytes are kept"
        );
        Err(NotTaken::Unreadable(what))
    }
}

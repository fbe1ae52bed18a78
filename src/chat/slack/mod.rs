//! The people's side on Slack: one value per install, which implements [`ChatPlatform`].
//!
//! Invariant: a card is a projection of stored state. Nothing here decides, and nothing here is
//! needed to answer correctly: what is kept in memory (who we are, refused drawings, a listing under
//! way) is asked for again after a restart.
//!
//! Pacing: the caller takes the right to post, edit, tell or find by `reserve` before it stores that
//! a call is under way; those calls then only respect a method that Slack has parked. Every other call
//! takes its own right, and says `Paced` when it may not go.

mod api;
mod blocks;
mod bulletins;
mod delivery;
mod doctor;
mod errors;
mod events;
mod home;
mod inbound;
mod limits;
mod manifest;
mod messages;
mod methods;
mod notices;
mod payload;
mod people;
mod places;
mod profile;
mod render;
mod scopes;
mod signature;
pub mod socket;
mod tell;
mod views;
mod waiting;

#[cfg(test)]
mod rules;

pub use delivery::{Delivery, Read, Way};
pub use events::{Command, Event};
pub use inbound::{Inbound, Interactivity, Submitted, is_ssl_check, parse_payload};
pub use manifest::manifest;
pub use signature::{EmptySecret, Refused, Verifier, sign};
pub use views::blank_reason;

use crate::bridge::ports::{
    Call, ChatError, ChatPlatform, Destination, Drawn, Finding, Identity, Look, Marks, MessageRef, Person,
    PressedBy, Profile, WayIn,
};
use crate::chat::once::Once;
use crate::domain::bulletin::Bulletin;
use crate::domain::card::Card;
use crate::domain::clock::{Clock, Millis};
use crate::domain::ids::{CardId, Platform};
use crate::domain::notice::Notice;
use crate::domain::place::Target;
use crate::domain::view::View;
use crate::domain::waiting::Waiting;
use crate::pace::Pace;
use crate::render::Templates;
use api::Api;
use futures_util::future::BoxFuture;
use methods::Method;
use places::{Known, Listing};
use secrecy::SecretString;
use std::sync::{Arc, RwLock};
use std::time::Duration;

/// One `[[slack]]` of the configuration.
#[derive(Debug, Clone)]
pub struct SlackSettings {
    /// The configured name.
    pub name: String,
    pub bot_token: SecretString,
    /// Given where the bot token may not read it.
    pub app_id: Option<String>,
    /// Base address of the Web API, `https://slack.com/api`.
    pub api_url: String,
}

/// One install of our Slack app.
pub struct Slack {
    api: Api,
    app_id: Option<String>,
    clock: Arc<dyn Clock>,
    templates: Arc<Templates>,
    known: RwLock<Option<Known>>,
    refused: Once,
    listing: tokio::sync::Mutex<Listing>,
    /// The Web API is on this machine (tests, the demo), so response addresses may be too.
    on_loopback: bool,
}

impl std::fmt::Debug for Slack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Slack").field("install", &self.api.install).finish_non_exhaustive()
    }
}

impl Slack {
    /// Makes the install's platform. Talks to nobody yet.
    #[must_use]
    pub fn new(
        settings: SlackSettings,
        client: reqwest::Client,
        clock: Arc<dyn Clock>,
        templates: Arc<Templates>,
        pace: Pace,
    ) -> Self {
        let SlackSettings { name, bot_token, app_id, api_url } = settings;
        let on_loopback = reqwest::Url::parse(&api_url).is_ok_and(|url| crate::net::is_loopback(&url));
        Self {
            api: Api::new(name, &api_url, bot_token, client, pace),
            app_id,
            clock,
            templates,
            known: RwLock::default(),
            refused: Once::default(),
            listing: tokio::sync::Mutex::default(),
            on_loopback,
        }
    }
}

impl ChatPlatform for Slack {
    fn install(&self) -> &str {
        &self.api.install
    }

    fn platform(&self) -> Platform {
        Platform::Slack
    }

    fn identify(&self) -> BoxFuture<'_, Result<Identity, ChatError>> {
        Box::pin(async { Ok(self.ask_who().await?.identity) })
    }

    fn resolve<'a>(&'a self, target: &'a Target) -> BoxFuture<'a, Result<String, ChatError>> {
        Box::pin(self.resolve_target(target))
    }

    fn reserve(&self, call: &Call<'_>) -> Result<(), Duration> {
        match call {
            Call::Post { channel } => self.api.reserve(Method::PostMessage, Some(channel)),
            Call::Edit { .. } => self.api.reserve(Method::Update, None),
            Call::Tell => self.api.reserve(Method::PostEphemeral, None),
            Call::Find { .. } => self.api.reserve(Method::History, None),
            Call::Home => self.api.reserve(Method::PublishView, None),
        }
    }

    fn draw(&self, card: &Card, marks: &Marks) -> Drawn {
        render::card(&self.templates, card, marks)
    }

    fn pages(&self, card: &Card) -> usize {
        views::pages(&self.templates, card)
    }

    fn open<'a>(&'a self, way: &'a WayIn, view: &'a View) -> BoxFuture<'a, Result<(), ChatError>> {
        Box::pin(self.open_view(way, view))
    }

    fn draw_unknown(&self) -> Drawn {
        render::unknown(&self.templates)
    }

    fn post<'a>(
        &'a self,
        to: &'a Destination,
        drawn: &'a Drawn,
        card: CardId,
        rev: i64,
    ) -> BoxFuture<'a, Result<MessageRef, ChatError>> {
        Box::pin(self.post_message(to, drawn, card, rev))
    }

    fn edit<'a>(&'a self, at: &'a MessageRef, drawn: &'a Drawn) -> BoxFuture<'a, Result<(), ChatError>> {
        Box::pin(self.edit_message(at, drawn))
    }

    fn find<'a>(
        &'a self,
        at: &'a Destination,
        card: CardId,
        since: Millis,
    ) -> BoxFuture<'a, Result<Vec<MessageRef>, ChatError>> {
        Box::pin(self.find_messages(at, card, since))
    }

    fn delete<'a>(&'a self, at: &'a MessageRef) -> BoxFuture<'a, Result<(), ChatError>> {
        Box::pin(self.delete_message(at))
    }

    fn tell<'a>(&'a self, to: &'a Person, notice: &'a Notice) -> BoxFuture<'a, Result<(), ChatError>> {
        Box::pin(self.tell_person(to, notice))
    }

    fn draw_waiting(&self, waiting: &Waiting) -> Drawn {
        waiting::draw(&self.templates, waiting)
    }

    fn tell_drawn<'a>(&'a self, to: &'a Person, drawn: &'a Drawn) -> BoxFuture<'a, Result<(), ChatError>> {
        Box::pin(self.show(to, &drawn.text, &drawn.body))
    }

    fn publish_home<'a>(&'a self, user: &'a str, drawn: &'a Drawn) -> BoxFuture<'a, Result<(), ChatError>> {
        Box::pin(self.publish(user, drawn))
    }

    fn link<'a>(&'a self, at: &'a MessageRef) -> BoxFuture<'a, Result<String, ChatError>> {
        Box::pin(self.permalink(at))
    }

    fn profile<'a>(&'a self, user: &'a PressedBy) -> BoxFuture<'a, Result<Profile, ChatError>> {
        Box::pin(self.read_profile(user))
    }

    fn look<'a>(&'a self, channel: &'a str, refused: &'a str) -> BoxFuture<'a, Result<Look, ChatError>> {
        Box::pin(self.look_at(channel, refused))
    }

    fn draw_bulletin(&self, says: &Bulletin) -> Drawn {
        bulletins::draw(&self.templates, says)
    }

    fn group<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Vec<String>, ChatError>> {
        Box::pin(self.group_members(id))
    }

    fn examine(&self) -> BoxFuture<'_, Vec<Finding>> {
        Box::pin(self.look_at_install())
    }

    fn examine_place<'a>(&'a self, target: &'a Target) -> BoxFuture<'a, Vec<Finding>> {
        Box::pin(self.look_at_place(target))
    }
}

#[cfg(test)]
#[path = "mod_tests.rs"]
mod tests;

//! The people's side on Discord: one value per install, which implements [`ChatPlatform`].
//!
//! Invariant: a card is a projection of stored state. Nothing here decides, and nothing here is needed to
//! answer correctly: what is kept in memory (who we are, refused drawings, begun threads, closed direct
//! messages) is asked for, or refused, again after a restart.
//!
//! Pacing: the caller takes the right to post, edit, tell or find by `reserve` before it stores that a call is
//! under way; those calls then only respect what Discord itself has closed. Every other call takes its own
//! right, and says `Paced` when it may not go.

use super::calls::Kind;
use super::gate::Worth;
use super::rest::Rest;
use super::views::Opening;
use super::{bulletins, notices, render, views, waiting};
use crate::bridge::ports::{
    Call, ChatError, ChatPlatform, Destination, Drawn, Finding, Identity, Look, Marks, MessageRef, Person,
    PressedBy, Profile, Trouble, WayIn,
};
use crate::chat::once::Once;
use crate::domain::bulletin::Bulletin;
use crate::domain::card::{Card, Control};
use crate::domain::clock::{Clock, Millis};
use crate::domain::ids::{CardId, Ids, Platform};
use crate::domain::notice::Notice;
use crate::domain::place::Target;
use crate::domain::view::View;
use crate::domain::waiting::Waiting;
use crate::pace::Gentle;
use crate::render::Templates;
use futures_util::future::BoxFuture;
use secrecy::SecretString;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

/// How long Discord is known to return the first post for a nonce ("the past few minutes").
const NONCE_LIVES: Duration = Duration::from_mins(2);

/// One `[[discord]]` of the configuration.
#[derive(Debug, Clone)]
pub struct DiscordSettings {
    /// The configured name.
    pub name: String,
    pub application_id: String,
    pub bot_token: SecretString,
    /// The server whose members click in direct messages.
    pub guild_id: Option<String>,
    /// Base address of the API.
    pub api_url: String,
    /// Clicks arrive over HTTP, signed with the key that belongs to this one; else over the gateway.
    pub public_key: Option<String>,
}

/// One install of our Discord application.
pub struct Discord {
    pub(super) rest: Rest,
    pub(super) application: String,
    pub(super) guild: Option<String>,
    pub(super) public_key: Option<String>,
    /// Where people open messages: the API's origin.
    pub(super) site: String,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) ids: Arc<dyn Ids>,
    pub(super) templates: Arc<Templates>,
    /// Refused drawings, begun threads, dead tokens.
    pub(super) once: Once,
    /// The bot's user id.
    pub(super) bot: RwLock<Option<String>>,
    /// What the last look at the application found wrong.
    pub(super) wrong: Mutex<Option<String>>,
    often: Mutex<HashMap<String, usize>>,
    /// Direct messages that were refused, by channel or user, and when.
    pub(super) closed: Mutex<HashMap<String, Millis>>,
    /// The server of a channel; `None`: a direct message.
    pub(super) servers: Mutex<HashMap<String, Option<String>>>,
}

impl std::fmt::Debug for Discord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Discord").field("install", &self.rest.install).finish_non_exhaustive()
    }
}

impl Discord {
    /// Makes the install's platform. Talks to nobody yet. `pace` multiplies our own pacing.
    #[must_use]
    pub fn new(
        settings: DiscordSettings,
        client: reqwest::Client,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn Ids>,
        templates: Arc<Templates>,
        pace: f64,
    ) -> Self {
        let DiscordSettings { name, application_id, bot_token, guild_id, api_url, public_key } = settings;
        let site = reqwest::Url::parse(&api_url).map(|url| url.origin().ascii_serialization());
        let gentle = Gentle::new(Arc::clone(&clock), pace);
        Self {
            rest: Rest::new(name, &api_url, bot_token, client, gentle, Arc::clone(&ids)),
            application: application_id,
            guild: guild_id,
            public_key,
            site: site.unwrap_or_default(),
            clock,
            ids,
            templates,
            once: Once::default(),
            bot: RwLock::default(),
            wrong: Mutex::default(),
            often: Mutex::default(),
            closed: Mutex::default(),
            servers: Mutex::default(),
        }
    }

    pub(super) fn often(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.often.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How something opens for a person: in the first response to the press. `turned`: it takes the place of
    /// what is open already.
    #[must_use]
    pub fn opening(&self, view: &View, turned: bool) -> Opening {
        views::opening(&self.templates, view, turned)
    }

    /// A private first response that tells something.
    #[must_use]
    pub fn told(&self, notice: &Notice) -> Value {
        views::private(notices::draw(&self.templates, notice), false)
    }

    /// A private first response to a command: `help`, `not_known`, `unlink`, `not_installed`, `later` or
    /// `unreadable` (what they did could not be read).
    #[must_use]
    pub fn answer(&self, answer: &'static str) -> Value {
        views::private(notices::answer(&self.templates, answer), false)
    }

    /// A private first response that shows a drawing.
    #[must_use]
    pub fn shown(&self, drawn: &Drawn) -> Value {
        views::private(drawn.body.clone(), false)
    }

    /// The server that the configuration names.
    pub fn server(&self) -> Option<&str> {
        self.guild.as_deref()
    }

    pub fn application(&self) -> &str {
        &self.application
    }
}

impl ChatPlatform for Discord {
    fn install(&self) -> &str {
        &self.rest.install
    }

    fn platform(&self) -> Platform {
        Platform::Discord
    }

    fn identify(&self) -> BoxFuture<'_, Result<Identity, ChatError>> {
        Box::pin(self.ask_who())
    }

    fn introduce<'a>(&'a self, known: Option<&'a str>) -> BoxFuture<'a, Result<Option<String>, ChatError>> {
        Box::pin(self.put_commands(known))
    }

    fn troubles(&self) -> Vec<Trouble> {
        self.what_is_wrong()
    }

    fn resolve<'a>(&'a self, target: &'a Target) -> BoxFuture<'a, Result<String, ChatError>> {
        Box::pin(self.resolve_target(target))
    }

    fn reserve(&self, call: &Call<'_>) -> Result<(), Duration> {
        let gate = &self.rest.gate;
        match call {
            Call::Post { channel } => gate.reserve(Kind::PostMessage, channel, Worth::Needed),
            Call::Edit { channel, last: true } => gate.reserve(Kind::EditMessage, channel, Worth::Usual),
            Call::Edit { channel, last: false } => gate.reserve(Kind::EditMessage, channel, Worth::Interim),
            Call::Find { channel } => gate.reserve(Kind::ReadMessages, channel, Worth::Needed),
            // By the press's token first, which has limits of its own.
            Call::Tell | Call::Home => Ok(()),
        }
    }

    fn draw(&self, card: &Card, marks: &Marks) -> Drawn {
        render::card(&self.templates, card, marks)
    }

    fn pages(&self, card: &Card) -> usize {
        views::pages(&self.templates, card)
    }

    fn opens(&self, control: Control) -> bool {
        // There is no second question of the platform's own.
        control.opens() || control == Control::ApproveConfirmed
    }

    fn open<'a>(&'a self, way: &'a WayIn, view: &'a View) -> BoxFuture<'a, Result<(), ChatError>> {
        Box::pin(self.fill_with_file(way, view))
    }

    fn draw_unknown(&self) -> Drawn {
        render::unknown(&self.templates)
    }

    fn post<'a>(
        &'a self,
        to: &'a Destination,
        drawn: &'a Drawn,
        card: CardId,
        _rev: i64,
    ) -> BoxFuture<'a, Result<MessageRef, ChatError>> {
        Box::pin(self.post_message(to, drawn, card))
    }

    fn edit<'a>(&'a self, at: &'a MessageRef, drawn: &'a Drawn) -> BoxFuture<'a, Result<(), ChatError>> {
        Box::pin(self.edit_message(at, drawn))
    }

    fn repeats_posts(&self) -> Duration {
        NONCE_LIVES
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
        Box::pin(async move { self.show(to, notices::draw(&self.templates, notice)).await })
    }

    fn draw_waiting(&self, waiting: &Waiting) -> Drawn {
        waiting::draw(&self.templates, waiting)
    }

    fn tell_drawn<'a>(&'a self, to: &'a Person, drawn: &'a Drawn) -> BoxFuture<'a, Result<(), ChatError>> {
        Box::pin(self.answer_with(to, drawn.body.clone()))
    }

    fn publish_home<'a>(&'a self, _user: &'a str, _drawn: &'a Drawn) -> BoxFuture<'a, Result<(), ChatError>> {
        Box::pin(async { Err(ChatError::SwitchedOff { code: "no_home".into() }) })
    }

    fn link<'a>(&'a self, at: &'a MessageRef) -> BoxFuture<'a, Result<String, ChatError>> {
        Box::pin(self.message_link(at))
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

    fn group<'a>(&'a self, _id: &'a str) -> BoxFuture<'a, Result<Vec<String>, ChatError>> {
        // Profiles name an account's roles; whom a role has is not asked.
        Box::pin(async { Err(ChatError::Unreadable { code: "roles_are_not_listed".into() }) })
    }

    fn examine(&self) -> BoxFuture<'_, Vec<Finding>> {
        Box::pin(self.look_at_install())
    }

    fn examine_place<'a>(&'a self, target: &'a Target) -> BoxFuture<'a, Vec<Finding>> {
        Box::pin(self.look_at_place(target))
    }
}

#[cfg(test)]
#[path = "platform_tests.rs"]
mod tests;

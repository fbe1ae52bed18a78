//! Who we are on Discord, and what our places are.
//!
//! Invariant: clicks arrive in one way per application, and Discord says nowhere that the other one gets none:
//! every time we ask who we are, that is compared with the configuration. A place is a channel or thread by id,
//! or a person's direct messages, whose failure shows only at the first message.

use super::calls::Call;
use super::fields::{flag, id, text};
use super::gate::Worth;
use super::message::nonce;
use super::platform::Discord;
use super::rest::{Body, Failed};
use crate::bridge::ports::{ChatError, Identity, Look, MessageRef, Trouble};
use crate::domain::clock::Millis;
use crate::domain::place::Target;
use serde_json::{Value, json};
use std::sync::PoisonError;
use std::time::Duration;

/// A person whose direct messages are closed to us is not written to for so long.
const CLOSED: Duration = Duration::from_hours(24);
/// Discord refuses direct messages with these.
const CLOSED_CODES: [i64; 2] = [50_007, 50_278];
/// As many channels' servers are remembered.
const MOST: usize = 4_096;

/// Kinds of channels that take cards (Discord: Channel, "Channel Types").
const TAKES_CARDS: [u64; 6] = [0, 1, 5, 10, 11, 12];

impl Discord {
    pub(super) async fn ask_who(&self) -> Result<Identity, ChatError> {
        let application = self.rest.call(Call::application(), Worth::Needed, Body::None).await?;
        if id(&application.body, "/id").as_deref() != Some(self.application.as_str()) {
            let code = "the bot token is another application's".into();
            return Err(ChatError::Auth { code, needed: "application_id".into() });
        }
        let wrong = self.wrong_way_in(&application.body);
        *self.wrong.lock().unwrap_or_else(PoisonError::into_inner) = wrong;
        let bot_user = self.ask_bot().await?;
        Ok(Identity {
            app_id: self.application.clone(),
            team: None,
            enterprise: None,
            bot_user,
            can_search: true,
        })
    }

    async fn ask_bot(&self) -> Result<String, ChatError> {
        let me = self.rest.call(Call::me(), Worth::Needed, Body::None).await?;
        let bot = id(&me.body, "/id")
            .ok_or_else(|| ChatError::Unavailable { what: "GET /users/@me: no id in the answer".into() })?;
        *self.bot.write().unwrap_or_else(PoisonError::into_inner) = Some(bot.clone());
        Ok(bot)
    }

    /// The bot's user id.
    pub(super) async fn me(&self) -> Result<String, ChatError> {
        let known = self.bot.read().unwrap_or_else(PoisonError::into_inner).clone();
        match known {
            Some(bot) => Ok(bot),
            None => self.ask_bot().await,
        }
    }

    /// What keeps clicks from arriving, as far as the application's own page says.
    pub(super) fn wrong_way_in(&self, application: &Value) -> Option<String> {
        let endpoint = text(application, "/interactions_endpoint_url");
        match (&self.public_key, endpoint) {
            (None, Some(_)) => Some(
                "the application has an Interactions Endpoint URL, so no click comes over the gateway; \
                 clear it on the application's page, or write inbound = \"http\""
                    .into(),
            ),
            (Some(_), None) => Some(
                "the application has no Interactions Endpoint URL, so no click comes over HTTP; set it to \
                 {public_url}/discord/interactions on the application's page, or write inbound = \"gateway\""
                    .into(),
            ),
            (Some(ours), Some(_)) => {
                let theirs = text(application, "/verify_key");
                theirs.is_some_and(|theirs| !theirs.eq_ignore_ascii_case(ours)).then(|| {
                    "public_key is not the application's: no request of Discord's would be taken; copy it again".into()
                })
            }
            (None, None) => None,
        }
    }

    pub(super) fn what_is_wrong(&self) -> Vec<Trouble> {
        let install = &self.rest.install;
        let wrong = self.wrong.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let one = |what: &str, text: Option<String>| Trouble {
            key: format!("{what}:{install}"),
            text: text.map(|text| format!("{install}: {text}")),
        };
        vec![one("way_in", wrong), one("limits", self.rest.gate.trouble())]
    }

    pub(super) async fn resolve_target(&self, target: &Target) -> Result<String, ChatError> {
        match target {
            Target::DiscordChannel(channel) => Ok(channel.clone()),
            Target::DiscordUser(user) => self.open_dm(user).await,
            Target::SlackName(_) | Target::SlackChannel(_) | Target::SlackUser(_) => {
                Err(ChatError::Place { code: "not_of_discord".into() })
            }
        }
    }

    /// The channel of a person's direct messages. It exists also where they refuse ours.
    pub(super) async fn open_dm(&self, user: &str) -> Result<String, ChatError> {
        if self.is_closed(user) {
            return Err(ChatError::Place { code: "50007".into() });
        }
        let body = json!({"recipient_id": user});
        let opened = self.rest.call(Call::open_dm(), Worth::Needed, Body::Json(&body)).await;
        let opened = opened.inspect_err(|failed| self.note_closed(user, failed))?;
        let channel = id(&opened.body, "/id").ok_or_else(|| ChatError::Unavailable {
            what: "POST /users/@me/channels: no id in the answer".into(),
        })?;
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        servers.insert(channel.clone(), None);
        Ok(channel)
    }

    /// Remembers that a person's direct messages were refused.
    pub(super) fn note_closed(&self, whose: &str, failed: &Failed) {
        if !CLOSED_CODES.contains(&failed.code) {
            return;
        }
        let now = self.clock.now();
        let mut closed = self.closed.lock().unwrap_or_else(PoisonError::into_inner);
        closed.retain(|_, at| now.since(*at) < CLOSED);
        closed.insert(whose.to_owned(), now);
    }

    pub(super) fn is_closed(&self, whose: &str) -> bool {
        let now = self.clock.now();
        let within = |at: &Millis| now.since(*at) < CLOSED;
        self.closed.lock().unwrap_or_else(PoisonError::into_inner).get(whose).is_some_and(within)
    }

    pub(super) async fn look_at(&self, channel: &str, refused: &str) -> Result<Look, ChatError> {
        if self.is_closed(channel) {
            return Err(ChatError::Place { code: refused.to_owned() });
        }
        let seen = self.rest.call(Call::read_channel(channel), Worth::Usual, Body::None).await?;
        takes_cards(&seen.body)?;
        if let Some(server) = id(&seen.body, "/guild_id").filter(|_| refused == "50013") {
            let thread = seen.body.get("thread_metadata").is_some_and(Value::is_object);
            return match self.missing_rights(&server, &seen.body, thread).await {
                Ok(missing) if missing.is_empty() => Ok(Look::Well),
                Ok(_) => Err(ChatError::Place { code: refused.to_owned() }),
                Err(ChatError::Paced { after }) => Err(ChatError::Paced { after }),
                Err(_) => Ok(Look::Unsure),
            };
        }
        // What else was refused cannot be seen: the next card tells.
        Ok(if refused.is_empty() { Look::Well } else { Look::Unsure })
    }

    /// The address under which people open a message.
    pub(super) async fn message_link(&self, at: &MessageRef) -> Result<String, ChatError> {
        let (channel, message) = at.message.split_once('/').unwrap_or((&at.channel, &at.message));
        let known = self.servers.lock().unwrap_or_else(PoisonError::into_inner).get(&at.channel).cloned();
        let server = if let Some(server) = known {
            server
        } else {
            let seen = self.rest.call(Call::read_channel(&at.channel), Worth::Usual, Body::None).await?;
            let server = id(&seen.body, "/guild_id");
            let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
            if servers.len() >= MOST {
                servers.clear();
            }
            servers.insert(at.channel.clone(), server.clone());
            server
        };
        let server = server.as_deref().unwrap_or("@me");
        Ok(format!("{}/channels/{server}/{channel}/{message}", self.site))
    }

    /// A nonce for a message that is no card.
    pub(super) fn fresh_nonce(&self) -> String {
        nonce(crate::domain::ids::CardId(self.ids.uuid()))
    }
}

/// Whether a channel is one in which cards can stand.
pub(super) fn takes_cards(channel: &Value) -> Result<(), ChatError> {
    let kind = channel.get("type").and_then(Value::as_u64);
    if let Some(kind) = kind.filter(|kind| !TAKES_CARDS.contains(kind)) {
        let name = match kind {
            2 | 13 => "voice channel",
            4 => "category",
            15 | 16 => "forum",
            _ => "channel of another kind",
        };
        return Err(ChatError::Place { code: format!("50008 ({name})") });
    }
    if flag(channel, "/thread_metadata/locked") {
        return Err(ChatError::Place { code: "160005 (locked thread)".into() });
    }
    Ok(())
}

//! The people's side on Discord: one value per install, which implements [`ChatPlatform`].
//!
//! Invariant: a card is a projection of stored state. Nothing here decides, and nothing here is
//! needed to answer correctly.

use crate::bridge::ports::{
    Call, ChatError, ChatPlatform, Destination, Drawn, Identity, Look, Marks, MessageRef, Person, PressedBy,
    Profile,
};
use crate::domain::bulletin::Bulletin;
use crate::domain::card::Card;
use crate::domain::clock::{Clock, Millis};
use crate::domain::ids::{CardId, Ids, Platform};
use crate::domain::notice::Notice;
use crate::domain::place::Target;
use crate::domain::waiting::Waiting;
use crate::render::Templates;
use futures_util::future::BoxFuture;
use secrecy::SecretString;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// One `[[discord]]` of the configuration.
#[derive(Debug, Clone)]
pub struct DiscordSettings {
    /// The configured name.
    pub name: String,
    pub application_id: String,
    pub bot_token: SecretString,
    /// The server whose members click in direct messages.
    pub guild_id: Option<String>,
    /// Base address of the API, `https://discord.com/api/v10`.
    pub api_url: String,
    /// Clicks arrive over HTTP; else over the gateway.
    pub over_http: bool,
}

/// One install of our Discord application.
pub struct Discord {
    settings: DiscordSettings,
    #[expect(dead_code, reason = "the calls come with the next step")]
    parts: (reqwest::Client, Arc<dyn Clock>, Arc<dyn Ids>, Arc<Templates>, f64),
}

impl std::fmt::Debug for Discord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Discord").field("install", &self.settings.name).finish_non_exhaustive()
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
        Self { settings, parts: (client, clock, ids, templates, pace) }
    }
}

fn not_yet<T>() -> Result<T, ChatError> {
    Err(ChatError::Permanent { code: "not_built_yet".into() })
}

fn nothing() -> Drawn {
    Drawn { text: String::new(), body: Value::Null, compact: Value::Null, cut: false }
}

impl ChatPlatform for Discord {
    fn install(&self) -> &str {
        &self.settings.name
    }

    fn platform(&self) -> Platform {
        Platform::Discord
    }

    fn identify(&self) -> BoxFuture<'_, Result<Identity, ChatError>> {
        Box::pin(async { not_yet() })
    }

    fn resolve<'a>(&'a self, _target: &'a Target) -> BoxFuture<'a, Result<String, ChatError>> {
        Box::pin(async { not_yet() })
    }

    fn reserve(&self, _call: &Call<'_>) -> Result<(), Duration> {
        Ok(())
    }

    fn draw(&self, _card: &Card, _marks: &Marks) -> Drawn {
        nothing()
    }

    fn draw_unknown(&self) -> Drawn {
        nothing()
    }

    fn post<'a>(
        &'a self,
        _to: &'a Destination,
        _drawn: &'a Drawn,
        _card: CardId,
        _rev: i64,
    ) -> BoxFuture<'a, Result<MessageRef, ChatError>> {
        Box::pin(async { not_yet() })
    }

    fn edit<'a>(&'a self, _at: &'a MessageRef, _drawn: &'a Drawn) -> BoxFuture<'a, Result<(), ChatError>> {
        Box::pin(async { not_yet() })
    }

    fn find<'a>(
        &'a self,
        _at: &'a Destination,
        _card: CardId,
        _since: Millis,
    ) -> BoxFuture<'a, Result<Vec<MessageRef>, ChatError>> {
        Box::pin(async { not_yet() })
    }

    fn delete<'a>(&'a self, _at: &'a MessageRef) -> BoxFuture<'a, Result<(), ChatError>> {
        Box::pin(async { not_yet() })
    }

    fn tell<'a>(&'a self, _to: &'a Person, _notice: &'a Notice) -> BoxFuture<'a, Result<(), ChatError>> {
        Box::pin(async { not_yet() })
    }

    fn draw_waiting(&self, _waiting: &Waiting) -> Drawn {
        nothing()
    }

    fn tell_drawn<'a>(&'a self, _to: &'a Person, _drawn: &'a Drawn) -> BoxFuture<'a, Result<(), ChatError>> {
        Box::pin(async { not_yet() })
    }

    fn publish_home<'a>(&'a self, _user: &'a str, _drawn: &'a Drawn) -> BoxFuture<'a, Result<(), ChatError>> {
        Box::pin(async { Err(ChatError::SwitchedOff { code: "no_home".into() }) })
    }

    fn link<'a>(&'a self, _at: &'a MessageRef) -> BoxFuture<'a, Result<String, ChatError>> {
        Box::pin(async { not_yet() })
    }

    fn profile<'a>(&'a self, _user: &'a PressedBy) -> BoxFuture<'a, Result<Profile, ChatError>> {
        Box::pin(async { not_yet() })
    }

    fn look<'a>(&'a self, _channel: &'a str, _refused: &'a str) -> BoxFuture<'a, Result<Look, ChatError>> {
        Box::pin(async { not_yet() })
    }

    fn draw_bulletin(&self, _says: &Bulletin) -> Drawn {
        nothing()
    }

    fn group<'a>(&'a self, _id: &'a str) -> BoxFuture<'a, Result<Vec<String>, ChatError>> {
        Box::pin(async { not_yet() })
    }
}

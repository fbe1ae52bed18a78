//! `[[discord]]`: one installation of our Discord application.

use super::address::Plain;
use super::check::Check;
use super::secrets::SecretRef;
use crate::domain::ids::Platform;
use crate::domain::subject_form::SubjectForm;
use schemars::JsonSchema;
use secrecy::SecretString;
use serde::Deserialize;

/// One installation of our Discord application.
#[derive(Debug, Clone)]
pub struct Discord {
    pub name: String,
    pub application_id: String,
    pub bot_token: SecretString,
    pub inbound: DiscordInbound,
    /// The server whose members click in direct messages.
    pub guild_id: Option<String>,
    /// How members are named who have no other link.
    pub subject: Option<SubjectForm>,
    /// Without a slash at its end.
    pub api_url: String,
    /// Multiplies our own pacing, nothing that Discord said.
    pub pace: f64,
}

/// How clicks arrive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DiscordInbound {
    /// A gateway connection that we open with the bot token.
    Gateway,
    /// Requests to `/discord/interactions`, signed with the key that belongs to this public key (64 hex digits).
    Http { public_key: String },
}

/// Discord's own API.
pub const DISCORD_API: &str = "https://discord.com/api/v10";

/// One installation of the Discord application.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Discord")]
pub(super) struct Raw {
    /// Its name in places (`discord:<name>:…`) and groups.
    #[schemars(required)]
    pub(super) name: Option<String>,
    /// The application's id, from its page "General Information".
    #[schemars(required)]
    application_id: Option<String>,
    /// The bot's token.
    #[schemars(required)]
    bot_token: Option<SecretRef>,
    /// The application's public key, 64 hex digits: proves that a request comes from Discord. Needed for
    /// `inbound = "http"` only.
    public_key: Option<String>,
    /// How clicks arrive: over a gateway connection that Countersign opens, or over HTTP at its public
    /// address. Default `http` when `public_key` is given, else `gateway`.
    #[schemars(extend("enum" = ["gateway", "http"]))]
    inbound: Option<String>,
    /// The server whose members and roles count for those who click in direct messages.
    guild_id: Option<String>,
    /// Members without another link answer as this subject: `discord:{user_id}`. Left out: they may not.
    subject: Option<String>,
    /// The address of Discord's API. Default `https://discord.com/api/v10`.
    api_url: Option<String>,
    /// Multiplies Countersign's own pacing (not back-off, `Retry-After` or waits). Default 1;
    /// above 1 only with an `api_url` on this machine.
    #[schemars(range(min = 0))]
    pace: Option<f64>,
}

impl Raw {
    pub(super) fn check(self, at: &str, check: &mut Check<'_>) -> Option<Discord> {
        let key = |key: &str| format!("{at}.{key}");
        let name = check.name(at, self.name);
        let application_id = check
            .required(
                at,
                "application_id",
                self.application_id,
                "add application_id = \"…\", the Application ID of the application's page",
            )
            .filter(|id| check.snowflake(&key("application_id"), id, "an application"));
        let bot_token = check
            .required(at, "bot_token", self.bot_token, "add bot_token = { env = \"DISCORD_BOT_TOKEN\" }")
            .and_then(|secret| check.token(&key("bot_token"), &secret));
        let inbound = inbound(check, at, self.inbound.as_deref(), self.public_key);
        let guild_id = self.guild_id.filter(|id| check.snowflake(&key("guild_id"), id, "a server"));
        let subject =
            self.subject.and_then(|text| check.subject_form(&key("subject"), Platform::Discord, &text));
        let api = self.api_url.unwrap_or_else(|| DISCORD_API.into());
        let api_url = check.address(&key("api_url"), &api, Plain::Loopback);
        let pace = check.pace(&key("pace"), self.pace, api_url.as_ref(), "Discord");
        Some(Discord {
            name: name?,
            application_id: application_id?,
            bot_token: bot_token?,
            inbound: inbound?,
            guild_id,
            subject,
            api_url: api_url.map(|_| api.trim_end_matches('/').to_owned())?,
            pace,
        })
    }
}

fn inbound(
    check: &mut Check<'_>,
    at: &str,
    word: Option<&str>,
    public_key: Option<String>,
) -> Option<DiscordInbound> {
    let key = |key: &str| format!("{at}.{key}");
    let good = public_key.as_deref().is_none_or(|hex| a_public_key(check, &key("public_key"), hex));
    let http = match word {
        Some("http") => true,
        Some("gateway") => false,
        Some(other) => {
            let message = format!("`{other}` is no way in");
            check.error(&key("inbound"), message, "write \"gateway\" or \"http\"".into());
            return None;
        }
        None => public_key.is_some(),
    };
    if !http {
        return good.then_some(DiscordInbound::Gateway);
    }
    if public_key.is_none() && !check.has_finding(&key("public_key")) {
        let fix = "add public_key = \"…\", the Public Key of the application's page";
        check.error(&key("public_key"), "is missing".into(), fix.into());
    }
    public_key.filter(|_| good).map(|hex| DiscordInbound::Http { public_key: hex.to_ascii_lowercase() })
}

fn a_public_key(check: &mut Check<'_>, key: &str, hex: &str) -> bool {
    let good = hex.len() == 64 && hex.bytes().all(|b| b.is_ascii_hexdigit());
    if !good {
        check.error(
            key,
            "this is no public key".into(),
            "write the Public Key of the application's page: 64 hex digits".into(),
        );
    }
    good
}

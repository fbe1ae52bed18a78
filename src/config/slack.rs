//! `[[slack]]`: one installation of our Slack app.

use super::address::Plain;
use super::check::Check;
use super::secrets::SecretRef;
use crate::domain::ids::Platform;
use crate::domain::subject_form::SubjectForm;
use schemars::JsonSchema;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

/// One installation of our Slack app.
#[derive(Debug, Clone)]
pub struct Slack {
    pub name: String,
    pub bot_token: SecretString,
    /// Only where the bot token may not read it.
    pub app_id: Option<String>,
    pub inbound: SlackInbound,
    /// How members are named who have no other link.
    pub subject: Option<SubjectForm>,
    /// Without a slash at its end.
    pub api_url: String,
    /// Multiplies our own pacing, nothing that Slack said.
    pub pace: f64,
}

/// How clicks arrive, with what proves that they are Slack's.
#[derive(Debug, Clone)]
pub enum SlackInbound {
    /// Signed requests to `/slack/interactivity`.
    Http {
        signing_secret: SecretString,
        /// Also accepted while the secret is rotated.
        previous: Option<SecretString>,
    },
    /// Socket Mode: sockets that we open with the app-level token.
    Socket { app_token: SecretString },
}

/// Slack's own Web API.
pub const SLACK_API: &str = "https://slack.com/api";

/// One installation of the Slack app.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Slack")]
pub(super) struct Raw {
    /// Its name in places (`slack:<name>:…`), groups and persons.
    #[schemars(required)]
    pub(super) name: Option<String>,
    /// The bot token, `xoxb-…`.
    #[schemars(required)]
    bot_token: Option<SecretRef>,
    /// The app-level token, `xapp-…`, with `connections:write`: for Socket Mode.
    app_token: Option<SecretRef>,
    /// The app's signing secret, which proves that a request comes from Slack. Not needed in Socket Mode.
    signing_secret: Option<SecretRef>,
    /// The signing secret before the last rotation, accepted while Slack still uses it.
    previous_signing_secret: Option<SecretRef>,
    /// The app's id, `A…`. Only when the bot token may not read it itself.
    app_id: Option<String>,
    /// How clicks arrive: over sockets that Countersign opens, or over HTTP at its public address. Needed
    /// only when both `app_token` and `signing_secret` are given.
    #[schemars(extend("enum" = ["socket", "http"]))]
    inbound: Option<String>,
    /// Members without another link answer as this subject: `slack:{team_id}:{user_id}` (the enterprise's id
    /// where the install is in one). Left out: they may not.
    subject: Option<String>,
    /// The address of the Web API. Default `https://slack.com/api`.
    api_url: Option<String>,
    /// Multiplies Countersign's own pacing (not back-off, `Retry-After` or waits). Default 1;
    /// above 1 only with an `api_url` on this machine.
    #[schemars(range(min = 0))]
    pace: Option<f64>,
}

impl Raw {
    pub(super) fn check(self, at: &str, check: &mut Check<'_>) -> Option<Slack> {
        let key = |key: &str| format!("{at}.{key}");
        let name = check.name(at, self.name);
        let bot_token = check
            .required(at, "bot_token", self.bot_token, "add bot_token = { env = \"SLACK_BOT_TOKEN\" }")
            .and_then(|secret| check.token(&key("bot_token"), &secret))
            .filter(|token| a_bot_token(check, &key("bot_token"), token));
        let mut secret = |name: &str, given: Option<SecretRef>| {
            // What could not be read is there all the same.
            let there = given.is_some() || check.has_finding(&key(name));
            (there, given.and_then(|secret| check.token(&key(name), &secret)))
        };
        let app_token = secret("app_token", self.app_token);
        let signing_secret = secret("signing_secret", self.signing_secret);
        let previous = secret("previous_signing_secret", self.previous_signing_secret);
        let word = self.inbound.as_deref();
        let inbound = inbound(check, at, word, app_token, signing_secret, previous);
        let app_id = self.app_id.filter(|id| an_app_id(check, &key("app_id"), id));
        let api = self.api_url.unwrap_or_else(|| SLACK_API.into());
        let api_url = check.address(&key("api_url"), &api, Plain::Loopback);
        let pace = check.pace(&key("pace"), self.pace, api_url.as_ref(), "Slack");
        let subject =
            self.subject.and_then(|text| check.subject_form(&key("subject"), Platform::Slack, &text));
        Some(Slack {
            name: name?,
            bot_token: bot_token?,
            app_id,
            inbound: inbound?,
            subject,
            api_url: api_url.map(|_| api.trim_end_matches('/').to_owned())?,
            pace,
        })
    }
}

/// The two mix-ups that Slack would answer with an unhelpful `invalid_auth` or `not_allowed_token_type`.
fn a_bot_token(check: &mut Check<'_>, key: &str, token: &SecretString) -> bool {
    let what = match token.expose_secret() {
        token if token.starts_with("xapp-") => "an app-level token (xapp-…)",
        token if token.starts_with("xoxp-") => "a user token (xoxp-…)",
        _ => return true,
    };
    check.error(key, format!("this is {what}"), "use the Bot User OAuth Token, xoxb-…".into());
    false
}

fn an_app_id(check: &mut Check<'_>, key: &str, id: &str) -> bool {
    let good = id.len() > 1
        && id.starts_with('A')
        && id.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit());
    if !good {
        check.error(
            key,
            format!("`{id}` is no app id"),
            "write the App ID of the app's page: \"A0COUNTER\"".into(),
        );
    }
    good
}

/// A secret: whether it is given, and its value if it could be read.
type Given = (bool, Option<SecretString>);

fn inbound(
    check: &mut Check<'_>,
    at: &str,
    word: Option<&str>,
    (has_app_token, app_token): Given,
    (has_signing_secret, signing_secret): Given,
    (has_previous, previous): Given,
) -> Option<SlackInbound> {
    let key = |key: &str| format!("{at}.{key}");
    let socket = match word {
        Some("socket") => true,
        Some("http") => false,
        Some(other) => {
            let message = format!("`{other}` is no way in");
            check.error(&key("inbound"), message, "write \"socket\" or \"http\"".into());
            return None;
        }
        None if has_app_token && has_signing_secret => {
            let message = "is missing: app_token and signing_secret are both given".into();
            check.error(&key("inbound"), message, "write \"socket\" or \"http\"".into());
            return None;
        }
        None => has_app_token,
    };
    if socket {
        if has_previous {
            let message = "is of no use in Socket Mode".into();
            check.error(&key("previous_signing_secret"), message, "remove it".into());
        }
        if !has_app_token {
            let fix = "add app_token = { env = \"SLACK_APP_TOKEN\" }";
            check.error(&key("app_token"), "is missing".into(), fix.into());
        }
        let app_token = app_token.filter(|token| an_app_token(check, &key("app_token"), token))?;
        return Some(SlackInbound::Socket { app_token });
    }
    if !has_signing_secret {
        let fix = "add signing_secret = { env = \"SLACK_SIGNING_SECRET\" }, or for Socket Mode \
            app_token = { env = \"SLACK_APP_TOKEN\" }";
        check.error(&key("signing_secret"), "is missing".into(), fix.into());
    }
    (!has_previous || previous.is_some())
        .then_some(signing_secret)?
        .map(|signing_secret| SlackInbound::Http { signing_secret, previous })
}

fn an_app_token(check: &mut Check<'_>, key: &str, token: &SecretString) -> bool {
    let good = token.expose_secret().starts_with("xapp-");
    if !good {
        let message = "this is no app-level token".into();
        let fix = "use a token of the app's page \"Basic Information\" with connections:write, xapp-…";
        check.error(key, message, fix.into());
    }
    good
}

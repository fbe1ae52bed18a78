//! What Slack sends to `/slack/events` and `/slack/commands`, after it was verified.
//!
//! Invariant: events are hints and commands are questions: neither decides anything. An event that this
//! version does not use is acknowledged, so that Slack does not switch the subscription off. An event says
//! whose install sees it (`authorizations`), never who acted.

use super::payload::{flag, id, text};
use crate::bridge::ports::{Happened, Origin, Typed};
use crate::domain::place::ChannelNews;
use serde_json::Value;

/// A signed body of `/slack/events`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Slack checks the address: answer `{"challenge": …}`.
    UrlVerification { challenge: String },
    /// Something that has an effect.
    Happened { app_id: Option<String>, origin: Origin, happened: Happened },
    /// Something happened to a channel.
    Channel { app_id: Option<String>, team: Option<String>, enterprise: Option<String>, news: ChannelNews },
    /// Acknowledge; no effect.
    Ignored { app_id: Option<String> },
    /// Keep the body, alert, answer 400.
    Unreadable,
}

/// Reads an event.
pub(super) fn parse_event(body: &[u8]) -> Event {
    match serde_json::from_slice::<Value>(body) {
        Ok(payload @ Value::Object(_)) => read_event(&payload),
        _ => Event::Unreadable,
    }
}

/// Reads an event that is a JSON object already.
pub(super) fn read_event(payload: &Value) -> Event {
    if let (Some("url_verification"), Some(challenge)) = (text(payload, "/type"), text(payload, "/challenge"))
    {
        return Event::UrlVerification { challenge: challenge.to_owned() };
    }
    let app_id = id(payload, "/api_app_id");
    match happened(payload) {
        Some(happened) => Event::Happened { app_id, origin: origin(payload), happened },
        None => match channel_news(payload) {
            Some(news) => Event::Channel {
                app_id,
                team: id(payload, "/team_id"),
                enterprise: id(payload, "/enterprise_id"),
                news,
            },
            None => Event::Ignored { app_id },
        },
    }
}

fn happened(payload: &Value) -> Option<Happened> {
    match (text(payload, "/type")?, text(payload, "/event/type")) {
        ("app_rate_limited", _) => Some(Happened::RateLimited),
        ("event_callback", Some("app_home_opened")) => {
            // Sent for the Messages tab too.
            let user = id(payload, "/event/user")?;
            (text(payload, "/event/tab") == Some("home")).then_some(Happened::HomeOpened { user })
        }
        ("event_callback", Some("app_uninstalled")) => Some(Happened::Uninstalled),
        ("event_callback", Some("tokens_revoked")) => {
            let bots = payload.pointer("/event/tokens/bot").and_then(Value::as_array);
            let bots = bots.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
            Some(Happened::TokensRevoked { bots })
        }
        _ => None,
    }
}

/// What an event says of a channel. A repeat or a late one does no harm: the channel is read.
fn channel_news(payload: &Value) -> Option<ChannelNews> {
    let field = |name: &str| id(payload, &format!("/event/{name}"));
    match text(payload, "/event/type").filter(|_| text(payload, "/type") == Some("event_callback"))? {
        "channel_archive" | "channel_unarchive" | "group_archive" | "group_unarchive" => {
            Some(ChannelNews::Changed { channel: field("channel")? })
        }
        "channel_id_changed" => {
            Some(ChannelNews::Moved { from: field("old_channel_id")?, to: field("new_channel_id")? })
        }
        "member_joined_channel" => {
            Some(ChannelNews::Joined { channel: field("channel")?, user: field("user")? })
        }
        _ => None,
    }
}

/// Where a delivery comes from.
fn origin(payload: &Value) -> Origin {
    Origin {
        team: id(payload, "/team_id"),
        enterprise: id(payload, "/enterprise_id"),
        org_install: flag(payload, "/is_enterprise_install")
            || flag(payload, "/authorizations/0/is_enterprise_install"),
        app: None,
    }
}

/// A signed body of `/slack/commands`.
#[derive(Debug)]
pub struct Command {
    pub app_id: Option<String>,
    pub typed: Typed,
}

/// Reads a command's form; `None` when it names no command.
#[cfg(test)]
fn parse_command(body: &[u8]) -> Option<Command> {
    read_command(&form(body))
}

/// The fields of a form.
pub(super) fn form(body: &[u8]) -> Value {
    let fields = url::form_urlencoded::parse(body)
        .map(|(name, value)| (name.into_owned(), Value::String(value.into_owned())));
    Value::Object(fields.collect())
}

/// Reads a command whose fields are JSON already.
pub(super) fn read_command(form: &Value) -> Option<Command> {
    text(form, "/command")?;
    Some(Command {
        app_id: id(form, "/api_app_id"),
        typed: Typed {
            origin: origin(form),
            user: id(form, "/user_id").unwrap_or_default(),
            channel: id(form, "/channel_id"),
            reply: text(form, "/response_url").filter(|url| url.len() <= 2048).map(Into::into),
            text: text(form, "/text").unwrap_or_default().to_owned(),
            said: None,
        },
    })
}

#[cfg(test)]
#[path = "events_tests.rs"]
mod tests;

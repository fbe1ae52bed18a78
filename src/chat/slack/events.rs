//! What Slack sends to `/slack/events` and `/slack/commands`, after its signature was checked.
//!
//! Invariant: both answer; neither decides anything in this version. An event or command that this
//! version does not use is acknowledged, so that Slack does not switch the subscription off.

use super::payload::{id, text};
use crate::domain::place::ChannelNews;
use serde_json::Value;

/// A signed body of `/slack/events`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Slack checks the address: answer `{"challenge": …}`.
    UrlVerification { challenge: String },
    /// Something happened to a channel.
    Channel { app_id: Option<String>, team: Option<String>, enterprise: Option<String>, news: ChannelNews },
    /// Acknowledge; no effect.
    Ignored { app_id: Option<String>, event_id: Option<String> },
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
    match (text(payload, "/type"), text(payload, "/challenge")) {
        (Some("url_verification"), Some(challenge)) => {
            Event::UrlVerification { challenge: challenge.to_owned() }
        }
        _ => match channel_news(payload) {
            Some(news) => Event::Channel {
                app_id: id(payload, "/api_app_id"),
                team: id(payload, "/team_id"),
                enterprise: id(payload, "/enterprise_id"),
                news,
            },
            None => Event::Ignored { app_id: id(payload, "/api_app_id"), event_id: id(payload, "/event_id") },
        },
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

/// A signed body of `/slack/commands`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    pub app_id: Option<String>,
    pub team: Option<String>,
    pub enterprise: Option<String>,
    pub user: Option<String>,
    /// What was typed after the command; untrusted.
    pub text: String,
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
        team: id(form, "/team_id"),
        enterprise: id(form, "/enterprise_id"),
        user: id(form, "/user_id"),
        text: text(form, "/text").unwrap_or_default().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slack_case_6_a_challenge_is_read_and_other_events_are_ignored() {
        assert_eq!(
            parse_event(br#"{"type":"url_verification","challenge":"x1"}"#),
            Event::UrlVerification { challenge: "x1".into() }
        );
        assert_eq!(
            parse_event(br#"{"type":"event_callback","api_app_id":"A1","event_id":"Ev1","event":{"type":"new_thing"}}"#),
            Event::Ignored { app_id: Some("A1".into()), event_id: Some("Ev1".into()) }
        );
        assert_eq!(parse_event(b"{}"), Event::Ignored { app_id: None, event_id: None });
        assert_eq!(parse_event(b"[1]"), Event::Unreadable);
        assert_eq!(parse_event(b"payload=x"), Event::Unreadable);
    }

    #[test]
    fn slack_case_36_and_55_what_happened_to_a_channel_is_read() {
        let news = |event: &str| {
            let body =
                format!(r#"{{"type":"event_callback","api_app_id":"A1","team_id":"T1","event":{event}}}"#);
            match parse_event(body.as_bytes()) {
                Event::Channel { news, team, .. } => Some((team, news)),
                _ => None,
            }
        };
        let of_team = |news| Some((Some("T1".to_owned()), news));
        for kind in ["channel_archive", "channel_unarchive", "group_archive", "group_unarchive"] {
            let changed = ChannelNews::Changed { channel: "C1".into() };
            assert_eq!(news(&format!(r#"{{"type":"{kind}","channel":"C1","user":"U1"}}"#)), of_team(changed));
        }
        assert_eq!(
            news(r#"{"type":"channel_id_changed","old_channel_id":"G1","new_channel_id":"C1"}"#),
            of_team(ChannelNews::Moved { from: "G1".into(), to: "C1".into() })
        );
        assert_eq!(
            news(r#"{"type":"member_joined_channel","channel":"C1","user":"U1"}"#),
            of_team(ChannelNews::Joined { channel: "C1".into(), user: "U1".into() })
        );
        for odd in [
            r#"{"type":"channel_archive"}"#,
            r#"{"type":"channel_archive","channel":{"id":"C1"}}"#,
            r#"{"type":"channel_id_changed","new_channel_id":"C1"}"#,
            r#"{"type":"channel_created","channel":"C1"}"#,
        ] {
            assert_eq!(news(odd), None, "{odd}");
        }
    }

    #[test]
    fn a_command_is_read_as_a_form() {
        let command = parse_command(b"command=%2Fcountersign&text=open+%3C!channel%3E&api_app_id=A1&team_id=T1&enterprise_id=&user_id=U1");
        assert_eq!(
            command,
            Some(Command {
                app_id: Some("A1".into()),
                team: Some("T1".into()),
                enterprise: None,
                user: Some("U1".into()),
                text: "open <!channel>".into(),
            })
        );
        assert_eq!(parse_command(b"text=open"), None);
    }
}

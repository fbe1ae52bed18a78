//! What Discord says when somebody uses a control, submits a form or types a command: the body of a request
//! whose signature was checked, or `d` of INTERACTION_CREATE. Both are the same (Discord: Receiving and
//! Responding).
//!
//! Invariant: whatever JSON comes, it is read without a panic and nothing is lost silently: what cannot be used
//! is said to be so, with what is needed to keep and to answer it. Only the first four of `id`,
//! `application_id`, `type`, `token` and the user have to be there; who may press is judged later. Meaning
//! comes only from the control's opaque token: labels and states that Discord echoes are not read.
//!
//! Known cases and the decision taken:
//! - a control of a kind we never send (a select) whose mark is ours: read as no control of ours;
//! - a form's field is found in both shapes that Discord uses, a row or a label, at any depth; without any
//!   text field the form cannot be read, so that what was typed is never taken for nothing;
//! - an application used from a person's own account (`context` 2), outside a server that installed it: the
//!   person is a stranger;
//! - a member without `roles` has none.

use super::custom_id::{self, Verb};
use crate::bridge::ports::{Origin, Pressed, PressedBy, Profile, Typed, WayIn};
use crate::domain::clock::Millis;
use crate::domain::ids::{ChatUser, Platform};
use crate::domain::policy::{Standing, Unfit};
use secrecy::SecretString;
use serde_json::Value;

/// The mark of the text field in a form of ours.
pub(super) const TEXT_FIELD: &str = "reason";
/// Our command's name.
pub(super) const COMMAND: &str = "countersign";
/// The first moment of Discord's ids, in epoch milliseconds.
const EPOCH: i64 = 1_420_070_400_000;
/// Discord's limit for what a form's field holds is 4000; beyond this it is cut.
const LONGEST_TEXT: usize = 4_000;

/// A delivery of Discord's, read.
#[derive(Debug)]
pub struct Interaction {
    pub id: Option<String>,
    /// The application it is for.
    pub application_id: Option<String>,
    /// The right to answer.
    pub token: Option<SecretString>,
    /// When Discord made it, by its own clock.
    pub sent: Option<Millis>,
    pub what: Inbound,
}

/// What it asks for.
#[derive(Debug)]
pub enum Inbound {
    /// Discord checks the address: answer with a pong.
    Ping,
    /// A button, or a form that was submitted (then with `reason`). `opens`: its mark says that it only opens
    /// something.
    Pressed {
        pressed: Box<Pressed>,
        opens: bool,
    },
    Typed(Box<Typed>),
    /// Keep it, tell operators, and tell the person if they can be answered.
    Unreadable(&'static str),
}

/// Reads a delivery. `now` tells whether a time-out of a member is over.
#[must_use]
pub fn read(payload: &Value, now: Millis) -> Interaction {
    let id = id(payload, "/id");
    let application_id = self::id(payload, "/application_id");
    let token = text(payload, "/token").filter(|token| is_token(token)).map(SecretString::from);
    let sent = id.as_deref().and_then(sent_at);
    let what = what(payload, id.as_deref(), application_id.as_deref(), token.as_ref(), now);
    Interaction { id, application_id, token, sent, what }
}

fn what(
    payload: &Value,
    id: Option<&str>,
    application: Option<&str>,
    token: Option<&SecretString>,
    now: Millis,
) -> Inbound {
    if !payload.is_object() {
        return Inbound::Unreadable("no JSON object");
    }
    let kind = payload.get("type").and_then(Value::as_u64);
    if kind == Some(1) {
        return Inbound::Ping;
    }
    let (Some(id), Some(application), Some(token)) = (id, application, token) else {
        return Inbound::Unreadable("no id, application or token");
    };
    let Some(user) = self::id(payload, "/member/user/id").or_else(|| self::id(payload, "/user/id")) else {
        return Inbound::Unreadable("no user");
    };
    let who = Who { id, application, token, user, now };
    match kind {
        Some(2) => Inbound::Typed(Box::new(typed(payload, &who))),
        Some(3) => match payload.pointer("/data/component_type").and_then(Value::as_u64) {
            // A button; a payload of a control that has no kind is taken for one.
            Some(2) | None => match text(payload, "/data/custom_id") {
                Some(mark) => {
                    let opens = custom_id::read(mark).is_some_and(|(_, verb)| verb != Verb::Do);
                    Inbound::Pressed { pressed: Box::new(pressed(payload, &who, mark, None)), opens }
                }
                None => Inbound::Unreadable("a control without its mark"),
            },
            Some(3 | 5..=8) => {
                Inbound::Pressed { pressed: Box::new(pressed(payload, &who, "", None)), opens: false }
            }
            Some(_) => Inbound::Unreadable("a control of a kind this version does not know"),
        },
        Some(5) => {
            let mark = text(payload, "/data/custom_id").unwrap_or_default();
            let fields = payload.pointer("/data/components").map(|components| field(components, 0));
            match fields.flatten() {
                Some(typed) => Inbound::Pressed {
                    pressed: Box::new(pressed(payload, &who, mark, Some(typed))),
                    opens: false,
                },
                None => Inbound::Unreadable("a form without its field"),
            }
        }
        _ => Inbound::Unreadable("a type this version does not know"),
    }
}

/// What every readable delivery has.
struct Who<'a> {
    id: &'a str,
    application: &'a str,
    token: &'a SecretString,
    user: String,
    now: Millis,
}

fn pressed(payload: &Value, who: &Who<'_>, mark: &str, typed: Option<String>) -> Pressed {
    let guild = id(payload, "/guild_id");
    Pressed {
        platform: Platform::Discord,
        dedupe_key: format!("discord:{}", who.id),
        app_id: Some(who.application.to_owned()),
        team: guild.clone(),
        enterprise: None,
        org_install: false,
        // Roles are a server's: what is known of the account there is kept under it.
        by: PressedBy { user: who.user.clone(), home_team: guild },
        token: custom_id::read(mark).map(|(token, _)| token.to_owned()).unwrap_or_default(),
        channel: id(payload, "/channel_id").or_else(|| id(payload, "/channel/id")),
        message: id(payload, "/message/id"),
        // A thread is a channel of its own.
        thread: None,
        own_message: flag(payload, "/message/author/bot"),
        reply: Some(who.token.clone()),
        way_in: Some(WayIn::Answer(who.token.clone())),
        reason: typed,
        said: Some(said(payload, &who.user, who.now)),
    }
}

fn typed(payload: &Value, who: &Who<'_>) -> Typed {
    let ours = text(payload, "/data/name") == Some(COMMAND);
    let word = text(payload, "/data/options/0/name").filter(|_| ours);
    Typed {
        origin: Origin {
            team: id(payload, "/guild_id"),
            enterprise: None,
            org_install: false,
            app: Some(who.application.to_owned()),
        },
        user: who.user.clone(),
        channel: id(payload, "/channel_id").or_else(|| id(payload, "/channel/id")),
        reply: Some(who.token.clone()),
        text: word.unwrap_or(if ours { "" } else { "?" }).to_owned(),
        said: Some(said(payload, &who.user, who.now)),
    }
}

/// What the payload itself says of the account: a member's roles there, and what keeps anybody from answering.
fn said(payload: &Value, user: &str, now: Millis) -> Profile {
    let member = payload.get("member").filter(|member| member.is_object());
    let roles = member.map(|member| {
        let roles = member.get("roles").and_then(Value::as_array);
        roles
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .filter(|id| is_id(id))
            .map(str::to_owned)
            .collect()
    });
    let timed_out = text(payload, "/member/communication_disabled_until")
        .and_then(|until| until.parse::<jiff::Timestamp>().ok())
        .is_some_and(|until| until.as_millisecond() > now.0);
    let owners = payload.get("authorizing_integration_owners").and_then(Value::as_object);
    let elsewhere = payload.get("context").and_then(Value::as_u64) == Some(2)
        || owners.is_some_and(|owners| !owners.is_empty() && !owners.contains_key("0"));
    let unfit = if flag(payload, "/member/user/bot") || flag(payload, "/user/bot") {
        Some(Unfit::Bot)
    } else if elsewhere {
        Some(Unfit::Stranger)
    } else if flag(payload, "/member/pending") {
        Some(Unfit::Invited)
    } else if timed_out {
        Some(Unfit::TimedOut)
    } else {
        None
    };
    Profile {
        key: Some(ChatUser { platform: Platform::Discord, realm: String::new(), user: user.to_owned() }),
        standing: unfit.map_or(Standing::Member, Standing::Unfit),
        groups: roles,
    }
}

/// What was typed into the text field of a form of ours; an optional one that was left empty holds nothing.
fn field(components: &Value, depth: usize) -> Option<String> {
    if depth > 4 {
        return None;
    }
    match components {
        Value::Array(list) => list.iter().find_map(|one| field(one, depth + 1)),
        Value::Object(one) => {
            if one.get("custom_id").and_then(Value::as_str) == Some(TEXT_FIELD)
                && one.get("type").is_none_or(|kind| kind.as_u64() == Some(4))
            {
                let typed = one.get("value").and_then(Value::as_str).unwrap_or_default();
                // NUL cannot be typed, and cannot be stored.
                return Some(typed.chars().take(LONGEST_TEXT).collect::<String>().replace('\0', "\u{fffd}"));
            }
            [one.get("component"), one.get("components")]
                .into_iter()
                .flatten()
                .find_map(|inner| field(inner, depth + 1))
        }
        _ => None,
    }
}

/// When an id was made.
fn sent_at(id: &str) -> Option<Millis> {
    let id: u64 = id.parse().ok()?;
    Some(Millis(EPOCH + i64::try_from(id >> 22).ok()?))
}

fn text<'a>(payload: &'a Value, pointer: &str) -> Option<&'a str> {
    payload.pointer(pointer)?.as_str().filter(|text| !text.is_empty())
}

/// An id as Discord writes them; leniently without a lower bound on its length.
fn id(payload: &Value, pointer: &str) -> Option<String> {
    text(payload, pointer).filter(|text| is_id(text)).map(str::to_owned)
}

fn is_id(text: &str) -> bool {
    (1..=20).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit())
}

/// The token stands in addresses.
fn is_token(text: &str) -> bool {
    text.len() <= 1024 && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.~=+".contains(&b))
}

fn flag(payload: &Value, pointer: &str) -> bool {
    payload.pointer(pointer) == Some(&Value::Bool(true))
}

#[cfg(test)]
#[path = "inbound_tests.rs"]
mod tests;

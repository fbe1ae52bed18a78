//! The payloads Discord sends: a pressed button, a select, a submitted form, a slash command, a ping.
//!
//! Invariant: a payload shows what Discord would show at this moment: the whole message, the person's roles and
//! their permissions in this channel. Over HTTP and over the gateway it is the same.

use super::api::{self, member_json};
use super::perms;
use super::types::{Channel, ChannelKind, Message, User};
use super::world::{Click, State};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Why a person cannot do that.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PressError {
    #[error("no such user: {0}")]
    NoUser(String),
    #[error("this person does not see the channel")]
    NotSeen,
    #[error("nothing there: the message is gone, or the form closed")]
    Nothing,
    #[error("no control {wanted:?}, there are {has:?}")]
    NoControl { wanted: String, has: Vec<String> },
    #[error("disabled: {0}")]
    Disabled(String),
    #[error("not possible: {0}")]
    Input(String),
    #[error("no application answers here")]
    NoApp,
}

/// The user, if they see this channel.
pub(super) fn seer<'s>(
    state: &'s State,
    user: &str,
    channel: &str,
    now_ms: i64,
) -> Result<(&'s User, &'s Channel), PressError> {
    let person = state.users.get(user).ok_or_else(|| PressError::NoUser(user.into()))?;
    let place = state.channels.get(channel).ok_or(PressError::Nothing)?;
    if state.sees(place, user, now_ms) { Ok((person, place)) } else { Err(PressError::NotSeen) }
}

/// A message with a person's eyes.
pub(super) fn look<'s>(
    state: &'s State,
    user: &str,
    channel: &str,
    message: &str,
    now_ms: i64,
) -> Result<&'s Message, PressError> {
    seer(state, user, channel, now_ms)?;
    let found = state.message(channel, message).ok_or(PressError::Nothing)?;
    match &found.ephemeral_for {
        Some(only) if only != user => Err(PressError::Nothing),
        _ => Ok(found),
    }
}

/// What kind of click is made, and with what.
pub(super) struct Made<'m> {
    pub(super) kind: u64,
    pub(super) app: String,
    pub(super) user: &'m str,
    pub(super) channel: &'m str,
    pub(super) message: Option<String>,
    pub(super) form: Option<String>,
    pub(super) data: Value,
}

/// Makes a click and its payload.
pub(super) fn click(state: &mut State, made: Made<'_>, now_ms: i64) -> Result<Value, PressError> {
    let (user, place) = seer(state, made.user, made.channel, now_ms)?;
    let (user, place) = (user.clone(), place.clone());
    let app = state.apps.get(&made.app).cloned().ok_or(PressError::NoApp)?;
    let id = state.next_id(now_ms).to_string();
    let token = token(&id, state.serial());
    let (may, app_may) = (state.may(&place, made.user, now_ms), state.may(&place, &app.bot_user, now_ms));
    let mut payload = json!({"id": id, "application_id": app.id, "type": made.kind, "version": 1, "token": token,
        "channel_id": place.id, "data": made.data});
    let bare = state.switches.bare_payloads;
    if let Some(guild) = place.guild.as_deref().and_then(|id| state.guilds.get(id)) {
        payload["guild_id"] = guild.id.as_str().into();
        if let Some(member) = guild.members.get(&user.id) {
            payload["member"] = member_json(state, member);
            payload["member"]["permissions"] = may.to_string().into();
        }
        payload["context"] = 0.into();
        payload["authorizing_integration_owners"] = json!({"0": guild.id});
        if !bare {
            payload["guild"] = json!({"id": guild.id, "locale": "en-US", "features": []});
            payload["guild_locale"] = "en-US".into();
        }
    } else {
        payload["user"] = user.json();
        payload["context"] = 1.into();
        payload["authorizing_integration_owners"] = json!({"0": "0"});
    }
    let message = made.message.as_deref().and_then(|id| state.message(&place.id, id));
    if let Some(message) = message {
        payload["message"] = api::shown(state, message, &app.id);
    }
    if bare {
        for key in ["context", "authorizing_integration_owners", "version"] {
            payload.as_object_mut().map(|all| all.remove(key));
        }
        if let Some(member) = payload.get_mut("member") {
            *member = json!({"user": {"id": user.id}, "roles": member["roles"]});
        }
    } else {
        payload["channel"] = api::channel_json(state, &place);
        payload["app_permissions"] = app_may.to_string().into();
        payload["locale"] = "en-US".into();
        payload["entitlements"] = json!([]);
        payload["attachment_size_limit"] = 10_485_760.into();
    }
    if state.switches.unknown_fields {
        payload["novelty"] = json!({"of": ["tomorrow"], "type": 99});
        payload["data"]["novelty"] = json!([1, null]);
    }
    let click = Click {
        id: id.clone(),
        token: token.clone(),
        app: app.id,
        kind: made.kind,
        user: user.id,
        channel: place.id,
        message: made.message,
        made_ms: now_ms,
        answered: None,
        answered_ms: 0,
        original: None,
        follow_ups: Vec::new(),
        form: made.form,
    };
    state.click_tokens.insert(token, id.clone());
    state.clicks.insert(id, click);
    Ok(payload)
}

/// An interaction token: long, and different each time.
fn token(id: &str, serial: u64) -> String {
    let mut mixed = serial ^ 0x5eed_c0de;
    let mut out = format!("aW50ZXJhY3Rpb246{id}");
    for _ in 0..10 {
        mixed = mixed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        // Writing to a String does not fail.
        let _ = write!(out, "{mixed:016x}");
    }
    out
}

/// The ping of an endpoint check.
pub(super) fn ping(state: &mut State, app: &str, now_ms: i64) -> Value {
    let id = state.next_id(now_ms).to_string();
    let token = token(&id, state.serial());
    json!({"id": id, "application_id": app, "type": 1, "token": token, "version": 1})
}

/// Which application serves a slash command here.
pub(super) fn command_of(state: &State, channel: &Channel, name: &str) -> Option<(String, Value)> {
    let guild = channel.guild.clone().unwrap_or_default();
    let found = |scope: &str| {
        let mut all = state.commands.iter().filter(|((_, of), _)| of == scope);
        all.find_map(|((app, _), commands)| {
            let command = commands.iter().find(|one| one["name"] == name && one["type"] == 1)?;
            Some((app.clone(), command.clone()))
        })
    };
    let here = |(app, command): &(String, Value)| {
        let context = u64::from(channel.kind == ChannelKind::Dm);
        let fits = command["contexts"].as_array().is_none_or(|all| all.iter().any(|one| *one == context));
        let bot = state.apps.get(app).map(|app| app.bot_user.as_str()).unwrap_or_default();
        fits && (channel.guild.is_some() || channel.recipients.iter().any(|one| one == bot))
    };
    let own = if guild.is_empty() { None } else { found(&guild) };
    own.or_else(|| found("")).filter(here)
}

/// Whether somebody may use commands here: not in archived threads.
pub(super) fn may_command(state: &State, channel: &Channel, user: &str, now_ms: i64) -> bool {
    channel.thread.as_ref().is_none_or(|thread| !thread.archived)
        && state.may(channel, user, now_ms) & perms::USE_APPLICATION_COMMANDS != 0
}

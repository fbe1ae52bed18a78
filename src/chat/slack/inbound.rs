//! What Slack sends to `/slack/interactivity`, after its signature was checked.
//!
//! Invariant: a readable press becomes a [`Pressed`], whatever is missing in it; who may press is
//! judged later. Meaning comes only from the control's opaque token: labels, values and states that
//! Slack echoes are not read. Every entry of `actions` is read.
//!
//! Known cases and the decision taken:
//! - A select, a radio button or a link button also sends a payload: acknowledged, without effect.
//! - A press without a user is a press by nobody, and is refused with that reason.
//! - A key or token that could not be stored (control characters, too long) is never one of ours: the
//!   token is read as empty, so the presser is told that the button is not known.

use super::payload::{flag, id, is_id, object_id, text};
use crate::bridge::ports::{Pressed, PressedBy, WayIn};
use crate::domain::form::sha256_hex;
use crate::domain::ids::Platform;
use crate::domain::text::says_nothing;
use serde_json::{Value, json};

/// The action id of a text field of ours.
pub(super) const TEXT_FIELD: &str = "cs.text";

/// A body that was signed by the app, read.
#[derive(Debug)]
pub struct Interactivity {
    /// The app the payload names; another one than the secret's is refused (401).
    pub app_id: Option<String>,
    pub what: Inbound,
}

/// What it asks for.
#[derive(Debug)]
pub enum Inbound {
    /// Buttons with a token: take each, then acknowledge.
    Pressed(Vec<Pressed>),
    /// A form was submitted: store it, then acknowledge, which closes the form.
    Submitted(Box<Submitted>),
    /// Nothing to do but to acknowledge.
    Ignored,
    /// A `type` this version does not know: keep the body, acknowledge with 200.
    UnknownType(String),
    /// Signed but not readable: keep the body, alert, answer 400.
    Unreadable(&'static str),
}

/// A submitted form with one field.
#[derive(Debug)]
pub struct Submitted {
    /// Its `reason` is what was typed, exactly.
    pub pressed: Pressed,
    /// The block of the field, for saying at it what is wrong.
    pub field: String,
}

impl Submitted {
    /// Nothing was typed that anybody could read.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        self.pressed.reason.as_deref().is_none_or(says_nothing)
    }
}

/// Whether this is Slack's certificate check (a form with `ssl_check=1`): answered 200 without
/// effect, also unsigned.
#[must_use]
pub fn is_ssl_check(body: &[u8]) -> bool {
    body.len() < 1024
        && url::form_urlencoded::parse(body).any(|(name, value)| name == "ssl_check" && value == "1")
        && !url::form_urlencoded::parse(body).any(|(name, _)| name == "payload" || name == "command")
}

/// Reads the form with its one field `payload`.
pub(super) fn parse_interactivity(body: &[u8]) -> Interactivity {
    let unreadable = |why| Interactivity { app_id: None, what: Inbound::Unreadable(why) };
    let mut payloads = url::form_urlencoded::parse(body).filter(|(name, _)| name == "payload");
    let (Some((_, payload)), None) = (payloads.next(), payloads.next()) else {
        return unreadable("no single field `payload`");
    };
    match serde_json::from_str::<Value>(&payload) {
        Ok(payload @ Value::Object(_)) => parse_payload(&payload),
        Ok(_) => unreadable("the payload is no object"),
        Err(_) => unreadable("the payload is not JSON"),
    }
}

/// Reads a payload that is JSON already.
#[must_use]
pub fn parse_payload(payload: &Value) -> Interactivity {
    let what = match text(payload, "/type") {
        Some("block_actions") => {
            let presses = presses(payload);
            if presses.is_empty() { Inbound::Ignored } else { Inbound::Pressed(presses) }
        }
        Some("view_submission") => submitted(payload).map_or(Inbound::Ignored, Inbound::Submitted),
        // A closing never decides anything.
        Some("view_closed") => Inbound::Ignored,
        other => Inbound::UnknownType(other.unwrap_or_default().chars().take(100).collect()),
    };
    Interactivity { app_id: id(payload, "/api_app_id"), what }
}

fn presses(payload: &Value) -> Vec<Pressed> {
    let actions = payload.get("actions").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    actions.iter().filter_map(|action| press(payload, action)).collect()
}

/// A button with a value. Selects and the like have none, link buttons of ours neither.
fn press(payload: &Value, action: &Value) -> Option<Pressed> {
    let value = text(action, "/value")?;
    if text(action, "/type").is_some_and(|kind| kind != "button") {
        return None;
    }
    // Without a time of its own, the trigger (new for every press) tells presses apart.
    let at = text(action, "/action_ts").or_else(|| text(payload, "/trigger_id"));
    Some(pressed(payload, value, &json!([text(action, "/action_id"), text(action, "/value"), at])))
}

/// A form of ours: `private_metadata` is its token. One without a text field is none.
fn submitted(payload: &Value) -> Option<Box<Submitted>> {
    let token = text(payload, "/view/private_metadata")?;
    let fields = payload.pointer("/view/state/values")?.as_object()?;
    let (field, value) = fields.iter().find_map(|(block, actions)| {
        let input = actions.as_object()?.get(TEXT_FIELD)?;
        Some((block.clone(), input.get("value").and_then(Value::as_str)))
    })?;
    // A corrected form keeps its hash and gets a new trigger.
    let at = text(payload, "/trigger_id").or_else(|| text(payload, "/view/hash"));
    let mut pressed = pressed(payload, token, &json!(["view_submission", at]));
    // NUL cannot be typed, and cannot be stored.
    pressed.reason = Some(value.unwrap_or_default().replace('\0', "\u{fffd}"));
    Some(Box::new(Submitted { pressed, field }))
}

/// What every payload says; `what` tells this press from others of the person at the same place.
fn pressed(payload: &Value, token: &str, what: &Value) -> Pressed {
    let app_id = id(payload, "/api_app_id");
    let team = object_id(payload, "/team");
    let enterprise = object_id(payload, "/enterprise");
    let org_install = flag(payload, "/is_enterprise_install");
    let user = object_id(payload, "/user").unwrap_or_default();
    let channel = object_id(payload, "/channel").or_else(|| id(payload, "/container/channel_id"));
    let message = id(payload, "/message/ts").or_else(|| id(payload, "/container/message_ts"));
    let view = id(payload, "/view/id").or_else(|| id(payload, "/container/view_id"));
    let home_team = id(payload, "/user/team_id").or_else(|| team.clone());
    let own_message = app_id.is_some() && id(payload, "/message/app_id") == app_id;
    let dedupe_key = dedupe_key(what, (&app_id, &team, &enterprise), &user, (&channel, &message, &view));
    let way_in = match &view {
        Some(view) => Some(WayIn::Instead { view: view.clone(), hash: id(payload, "/view/hash") }),
        None => text(payload, "/trigger_id")
            .filter(|trigger| is_id(trigger))
            .map(|trigger| WayIn::Trigger(trigger.into())),
    };
    Pressed {
        platform: Platform::Slack,
        dedupe_key,
        team,
        enterprise,
        org_install,
        by: PressedBy { user, home_team },
        token: if is_id(token) { token.to_owned() } else { String::new() },
        thread: id(payload, "/container/thread_ts").or_else(|| id(payload, "/message/thread_ts")),
        channel,
        message,
        own_message,
        app_id,
        reply: text(payload, "/response_url").filter(|url| url.len() <= 2048).map(Into::into),
        way_in,
        reason: None,
        said: None,
    }
}

/// The same for every delivery of one press, another for every other press: install, user, message
/// or view, action and its time. Hashed, so that it has one size and can be stored whatever came.
fn dedupe_key(
    what: &Value,
    install: (&Option<String>, &Option<String>, &Option<String>),
    user: &str,
    place: (&Option<String>, &Option<String>, &Option<String>),
) -> String {
    let key = json!([install, user, place, what]);
    format!("slack:{}", sha256_hex(key.to_string().as_bytes()))
}

#[cfg(test)]
#[path = "inbound_tests.rs"]
mod tests;

//! The payloads Slack sends: `block_actions`, `view_submission`, `view_closed`, commands, events.
//!
//! Invariant: a payload shows what Slack would show at this moment: texts escaped, emoji by name,
//! the clicker's own state, `team: null` on org-wide installs, no `message` on an ephemeral one.

use super::api;
use super::controls::{self, Control};
use super::text;
use super::types::{ChannelKind, User, UserKind};
use super::world::{Respond, State, Trigger, ts};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Where a person presses or fills in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "spot", rename_all = "snake_case", deny_unknown_fields)]
pub enum Spot {
    Message {
        channel: String,
        ts: String,
    },
    /// An ephemeral message of the person who presses.
    Ephemeral {
        channel: String,
        ts: String,
    },
    View {
        id: String,
    },
}

impl Spot {
    /// A message in a channel.
    #[must_use]
    pub fn message(channel: &str, ts: &str) -> Self {
        Self::Message { channel: channel.into(), ts: ts.into() }
    }

    pub(super) fn key(&self) -> String {
        match self {
            Self::Message { channel, ts } | Self::Ephemeral { channel, ts } => format!("{channel}/{ts}"),
            Self::View { id } => id.clone(),
        }
    }
}

/// Why a person cannot do that.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PressError {
    #[error("no such user here: {0}")]
    NoUser(String),
    #[error("this person does not see the channel")]
    NotSeen,
    #[error("nothing there to press: the message or view is gone or closed")]
    Nothing,
    #[error("no control {wanted:?}, there are {has:?}")]
    NoControl { wanted: String, has: Vec<String> },
    #[error("not possible: {0}")]
    Input(String),
    #[error("a required field is empty: {0}")]
    Required(String),
    #[error("no app is installed here")]
    NoInstall,
}

/// What stands at a spot.
pub(super) struct Seen {
    pub(super) blocks: Vec<Value>,
    pub(super) team: String,
    pub(super) install: String,
    pub(super) user: User,
}

/// Looks at a spot with a person's eyes.
pub(super) fn look(state: &State, user_id: &str, spot: &Spot) -> Result<Seen, PressError> {
    let no_user = || PressError::NoUser(user_id.into());
    match spot {
        Spot::Message { channel, ts } => {
            let place = state.channels.get(channel).ok_or(PressError::Nothing)?;
            let user = state.user(user_id, &place.team).ok_or_else(no_user)?.clone();
            let outsider =
                matches!(user.kind, UserKind::Guest | UserKind::SingleChannelGuest | UserKind::Stranger);
            if !place.members.contains(user_id) && (place.kind != ChannelKind::Public || outsider) {
                return Err(PressError::NotSeen);
            }
            let message =
                state.message(channel, ts).filter(|message| !message.deleted).ok_or(PressError::Nothing)?;
            let install = message.install.clone().ok_or(PressError::NoInstall)?;
            Ok(Seen { blocks: message.blocks.clone(), team: place.team.clone(), install, user })
        }
        Spot::Ephemeral { channel, ts } => {
            let place = state.channels.get(channel).ok_or(PressError::Nothing)?;
            let user = state.user(user_id, &place.team).ok_or_else(no_user)?.clone();
            let found =
                state.ephemerals.iter().find(|one| one.ts == *ts && one.channel == *channel && !one.gone);
            let found = found.filter(|one| one.user == user_id).ok_or(PressError::Nothing)?;
            let install = found.install.clone().ok_or(PressError::NoInstall)?;
            Ok(Seen { blocks: found.blocks.clone(), team: place.team.clone(), install, user })
        }
        Spot::View { id } => {
            // Only the modal in front can be reached.
            let covered =
                state.views.values().any(|view| view.open && view.previous.as_deref() == Some(id.as_str()));
            let view = state
                .views
                .get(id)
                .filter(|view| view.open && view.user == user_id && !covered)
                .ok_or(PressError::Nothing)?;
            let user = state.user(user_id, &view.team).ok_or_else(no_user)?.clone();
            let blocks = view.view["blocks"].as_array().cloned().unwrap_or_default();
            Ok(Seen { blocks, team: view.team.clone(), install: view.install.clone(), user })
        }
    }
}

impl State {
    fn trigger(&mut self, install: &str, team: &str, user: &str, now_ms: i64) -> String {
        let number = self.serial();
        let id =
            format!("{number}.{now_ms}.{:016x}", (now_ms.unsigned_abs() ^ 0x5eed).wrapping_mul(number | 1));
        let trigger = Trigger {
            made_ms: now_ms,
            used: false,
            install: install.into(),
            team: team.into(),
            user: user.into(),
        };
        self.triggers.insert(id.clone(), trigger);
        id
    }

    fn respond_at(&mut self, respond: Respond) -> String {
        let id = format!("r{:06}x{:08x}", self.serial(), respond.made_ms.unsigned_abs() & 0xffff_ffff);
        let url = format!("{}/slack/response/{id}", self.base_url);
        self.responds.insert(id, respond);
        url
    }
}

/// What every interactive payload starts with.
fn head(state: &State, kind: &str, seen: &Seen) -> Map<String, Value> {
    let team = state.teams.get(&seen.team);
    let enterprise = team.and_then(|team| team.enterprise.clone());
    let org = state.install_by_key(&seen.install).is_some_and(|install| install.org);
    let enterprise = enterprise.map(|id| json!({"name": state.enterprises.get(&id), "id": id}));
    let shown_team =
        if org { Value::Null } else { json!({"id": seen.team, "domain": team.map(|team| &team.domain)}) };
    let user = &seen.user;
    let body = json!({
        "type": kind, "api_app_id": state.app_id, "token": "legacy-verification-token", "team": shown_team,
        "enterprise": enterprise, "is_enterprise_install": org,
        "user": {"id": user.id, "username": user.name, "name": user.name, "team_id": user.team},
    });
    match body {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

/// `action` of a press or change; `value` is the state of the element after it.
fn action(control: &Control, value: Option<&Value>, now_ms: i64, number: u64) -> Value {
    let element = &control.element;
    let micros = now_ms.saturating_mul(1_000).saturating_add(i64::try_from(number % 1_000).unwrap_or(0));
    let mut action = json!({"type": control.kind(), "action_id": control.action_id(), "block_id": control.block_id, "action_ts": ts(micros)});
    for key in ["text", "value", "style", "url", "placeholder", "confirm"] {
        if let Some(found) = element.get(key) {
            action[key] = found.clone();
        }
    }
    if let Some(Value::Object(value)) = value {
        for (key, found) in value {
            action[key] = found.clone();
        }
    }
    action
}

/// A press of `control` (or a change of it to `value`).
pub(super) fn block_actions(
    state: &mut State,
    spot: &Spot,
    seen: &Seen,
    control: &Control,
    value: Option<&Value>,
    now_ms: i64,
) -> Value {
    let mut body = head(state, "block_actions", seen);
    let user = seen.user.id.clone();
    let filled = state.filled.get(&(user.clone(), spot.key()));
    let values = controls::state_values(&controls::all(&seen.blocks), filled);
    body.insert("trigger_id".into(), state.trigger(&seen.install, &seen.team, &user, now_ms).into());
    let respond = |channel: &str, message_ts: &str, ephemeral: bool| Respond {
        made_ms: now_ms,
        used: 0,
        install: seen.install.clone(),
        channel: channel.into(),
        user: user.clone(),
        message_ts: Some(message_ts.into()),
        ephemeral,
    };
    match spot {
        Spot::Message { channel, ts } | Spot::Ephemeral { channel, ts } => {
            let ephemeral = matches!(spot, Spot::Ephemeral { .. });
            let mut container = json!({"type": "message", "message_ts": ts, "channel_id": channel, "is_ephemeral": ephemeral});
            let name = state.channels.get(channel).map(|channel| match channel.kind {
                ChannelKind::Dm(_) => "directmessage".to_owned(),
                _ => channel.name.clone(),
            });
            if let Some(message) = state.message(channel, ts).filter(|_| !ephemeral) {
                if let Some(thread_ts) = &message.thread_ts {
                    container["thread_ts"] = thread_ts.clone().into();
                }
                body.insert("message".into(), api::shown(message, true));
            }
            body.insert("container".into(), container);
            body.insert("channel".into(), json!({"id": channel, "name": name}));
            body.insert("response_url".into(), state.respond_at(respond(channel, ts, ephemeral)).into());
        }
        Spot::View { id } => {
            body.insert("container".into(), json!({"type": "view", "view_id": id}));
            body.insert("view".into(), view_json(state, id, &values));
        }
    }
    let number = state.serial();
    body.insert("state".into(), json!({"values": text::echo_blocks(&values)}));
    body.insert("actions".into(), json!([text::echo_blocks(&action(control, value, now_ms, number))]));
    Value::Object(body)
}

fn view_json(state: &State, id: &str, values: &Value) -> Value {
    let Some(view) = state.views.get(id) else { return Value::Null };
    let mut shown = api::shown_view(state, view);
    shown["state"] = json!({"values": text::echo_blocks(values)});
    shown
}

pub(super) fn view_submission(state: &mut State, id: &str, seen: &Seen, now_ms: i64) -> Value {
    let mut body = head(state, "view_submission", seen);
    let filled = state.filled.get(&(seen.user.id.clone(), id.to_owned()));
    let values = controls::state_values(&controls::all(&seen.blocks), filled);
    let trigger = state.trigger(&seen.install, &seen.team, &seen.user.id, now_ms);
    body.insert("trigger_id".into(), trigger.into());
    body.insert("response_urls".into(), json!([]));
    body.insert("view".into(), view_json(state, id, &values));
    Value::Object(body)
}

pub(super) fn view_closed(state: &State, id: &str, seen: &Seen) -> Value {
    let mut body = head(state, "view_closed", seen);
    body.insert("view".into(), view_json(state, id, &json!({})));
    body.insert("is_cleared".into(), false.into());
    Value::Object(body)
}

/// The form fields of a slash command.
pub(super) fn command(
    state: &mut State,
    user_id: &str,
    channel_id: &str,
    command: &str,
    text: &str,
    now_ms: i64,
) -> Result<Vec<(String, String)>, PressError> {
    let channel = state.channels.get(channel_id).ok_or(PressError::Nothing)?.clone();
    let user = state.user(user_id, &channel.team).ok_or_else(|| PressError::NoUser(user_id.into()))?.clone();
    let install = state.install_of(&channel.team).ok_or(PressError::NoInstall)?.clone();
    let trigger = state.trigger(install.key(), &channel.team, user_id, now_ms);
    let response_url = state.respond_at(Respond {
        made_ms: now_ms,
        used: 0,
        install: install.key().into(),
        channel: channel_id.into(),
        user: user_id.into(),
        message_ts: None,
        ephemeral: false,
    });
    let team = state.teams.get(&channel.team);
    let name = if matches!(channel.kind, ChannelKind::Dm(_)) { "directmessage".into() } else { channel.name };
    let fields = [
        ("token", "legacy-verification-token".to_owned()),
        ("team_id", channel.team.clone()),
        ("team_domain", team.map(|team| team.domain.clone()).unwrap_or_default()),
        ("enterprise_id", team.and_then(|team| team.enterprise.clone()).unwrap_or_default()),
        ("channel_id", channel.id),
        ("channel_name", name),
        ("user_id", user.id),
        ("user_name", user.name),
        ("command", command.into()),
        ("text", text.into()),
        ("api_app_id", state.app_id.clone()),
        ("is_enterprise_install", install.org.to_string()),
        ("response_url", response_url),
        ("trigger_id", trigger),
    ];
    Ok(fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

/// An event in its wrapper, for the install that serves `team`.
pub(super) fn event(state: &mut State, team: &str, event: &Value, now_ms: i64) -> Result<Value, PressError> {
    let install = state.install_of(team).ok_or(PressError::NoInstall)?.clone();
    let number = state.serial();
    let mut event = event.clone();
    if event.get("event_ts").is_none() {
        event["event_ts"] = ts(now_ms.saturating_mul(1_000)).into();
    }
    let team_shown = (!install.org).then(|| team.to_owned());
    let enterprise = state.teams.get(team).and_then(|team| team.enterprise.clone());
    Ok(json!({
        "type": "event_callback", "token": "legacy-verification-token", "event_id": format!("Ev{number:06}"),
        "event_time": now_ms.div_euclid(1_000), "team_id": team, "enterprise_id": enterprise, "api_app_id": state.app_id,
        "authorizations": [{"enterprise_id": enterprise, "team_id": team_shown, "user_id": install.bot_user, "is_bot": true,
            "is_enterprise_install": install.org}],
        "event": event,
    }))
}

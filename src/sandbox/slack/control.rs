//! The control API under `/slack/control/`: everything a test program of another language, or the
//! demo page, needs to act as people and to see the world.
//!
//! Invariant: it is served by the stand-in only, on loopback; it gives out no token and no secret.
//! JSON in and out; unknown keys are refused. 400: unreadable body; 409: a person could not do that.
//!
//! Acting: `press {user, at, control, manner?, replace?}`, `fill {user, at, field, input}`,
//! `submit {user, view}`, `close {user, view}`, `command {user, channel, command, text?, manner?}`,
//! `event {team, event}`, `happen {what, …}`, `ask {user, at, control, accept}` (a press whose question
//! is accepted or canceled), `retries` (sends those that are due), `say {user, channel, text}`; `at` is `{"spot": "message", "channel", "ts"}`,
//! `{"spot": "ephemeral", …}` or `{"spot": "view", "id"}`. They answer `{deliveries}`.
//! Looking: `world`, `requests`, `payloads`, `deliveries`, `complaints`, `message/{channel}/{ts}`,
//! `told/{user}`, `warnings`, `changed?version=N` (waits), `validate` (`{text, blocks}` or `{view}`).
//! Setting: `faults` (POST a rule, DELETE all), `pace {factor}`, `switches`, `doors`,
//! `clock {advance_ms}`, `lock {channel, ts}` (a thread), `channel`, `user`, `group`. Sockets: see `socket/control.rs`.

use super::controls::Input;
use super::deliver::{Delivery, Doors, Manner};
use super::payload::{PressError, Spot};
use super::switches::Switches;
use super::types::UserKind;
use super::validate::{self, Rules};
use super::world::SlackWorld;
use crate::sandbox::faults::Rule;
use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

type World = State<Arc<SlackWorld>>;

pub(super) fn routes() -> Router<Arc<SlackWorld>> {
    Router::new()
        .route("/slack/control/world", get(async |State(world): World| Json(world.dump())))
        .route("/slack/control/changed", get(changed))
        .route("/slack/control/requests", get(async |State(world): World| Json(world.requests())))
        .route("/slack/control/payloads", get(async |State(world): World| Json(world.payloads())))
        .route("/slack/control/deliveries", get(async |State(world): World| Json(world.deliveries())))
        .route("/slack/control/message/{channel}/{ts}", get(message))
        .route(
            "/slack/control/told/{user}",
            get(async |State(world): World, Path(user): Path<String>| Json(world.told(&user))),
        )
        .route("/slack/control/press", post(press))
        .route("/slack/control/fill", post(fill))
        .route("/slack/control/submit", post(submit))
        .route("/slack/control/close", post(close))
        .route("/slack/control/command", post(command))
        .route("/slack/control/event", post(event))
        .route("/slack/control/happen", post(happen))
        .route("/slack/control/ask", post(ask))
        .route("/slack/control/retries", post(async |State(world): World| done(Ok(world.retry_due().await))))
        .route("/slack/control/lock", post(lock))
        .route("/slack/control/say", post(say))
        .route("/slack/control/faults", post(add_fault).delete(clear_faults))
        .route("/slack/control/pace", post(pace))
        .route("/slack/control/switches", post(switches))
        .route("/slack/control/doors", post(doors))
        .route("/slack/control/clock", post(clock))
        .route("/slack/control/validate", post(check))
        .route("/slack/control/complaints", get(async |State(world): World| Json(world.complaints())))
        .route("/slack/control/channel", post(channel))
        .route("/slack/control/user", post(user))
        .route("/slack/control/group", post(group))
        .route("/slack/control/warnings", get(async |State(world): World| Json(world.warnings())))
        .merge(super::socket::control_routes())
}

pub(super) fn read<T: DeserializeOwned>(body: &Bytes) -> Result<T, Box<Response>> {
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        (StatusCode::BAD_REQUEST, Json(json!({"error": error.to_string()}))).into_response().into()
    })
}

pub(super) fn done(delivered: Result<Vec<Delivery>, PressError>) -> Response {
    match delivered {
        Ok(deliveries) => Json(json!({"deliveries": deliveries})).into_response(),
        Err(error) => (StatusCode::CONFLICT, Json(json!({"error": error.to_string()}))).into_response(),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Since {
    version: u64,
}

/// Waits until the world is newer than `version`, at most 25 s; answers the version.
async fn changed(State(world): World, Query(since): Query<Since>) -> Response {
    let mut changed = world.changed();
    let wait = changed.wait_for(|version| *version > since.version);
    let _ = tokio::time::timeout(Duration::from_secs(25), wait).await;
    let version = *world.changed().borrow();
    Json(json!({"version": version})).into_response()
}

async fn message(State(world): World, Path((channel, ts)): Path<(String, String)>) -> Response {
    let Some(message) = world.message(&channel, &ts) else { return StatusCode::NOT_FOUND.into_response() };
    Json(json!({"message": message, "reads": world.reads(&channel, &ts), "notice": world.notice(&channel, &ts),
        "buttons": world.buttons(&channel, &ts), "fields": world.fields(&channel, &ts), "live": world.live(&channel, &ts),
        "over_time": world.read_over_time(&channel, &ts)}))
    .into_response()
}

/// `{"user": …, "at": {"spot": "message", "channel": …, "ts": …}, "control": "Approve"}`
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Press {
    user: String,
    at: Spot,
    control: String,
    #[serde(default)]
    manner: Manner,
    /// Values that replace others in the payload, by JSON pointer.
    #[serde(default)]
    replace: serde_json::Map<String, Value>,
}

async fn press(State(world): World, body: Bytes) -> Response {
    match read::<Press>(&body) {
        Err(refused) => *refused,
        Ok(press) => {
            let change = |payload: &mut Value| {
                for (pointer, value) in press.replace {
                    if let Some(found) = payload.pointer_mut(&pointer) {
                        *found = value;
                    }
                }
            };
            done(world.press_raw(&press.user, &press.at, &press.control, &press.manner, change).await)
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fill {
    user: String,
    at: Spot,
    field: String,
    input: Input,
}

async fn fill(State(world): World, body: Bytes) -> Response {
    match read::<Fill>(&body) {
        Err(refused) => *refused,
        Ok(fill) => {
            let filled = world.fill(&fill.user, &fill.at, &fill.field, &fill.input).await;
            done(filled.map(|delivery| delivery.into_iter().collect()))
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OfView {
    user: String,
    view: String,
}

async fn submit(State(world): World, body: Bytes) -> Response {
    match read::<OfView>(&body) {
        Err(refused) => *refused,
        Ok(of) => done(world.submit(&of.user, &of.view).await.map(|delivery| vec![delivery])),
    }
}

async fn close(State(world): World, body: Bytes) -> Response {
    match read::<OfView>(&body) {
        Err(refused) => *refused,
        Ok(of) => {
            done(world.close_view(&of.user, &of.view).await.map(|delivery| delivery.into_iter().collect()))
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Command {
    user: String,
    channel: String,
    #[serde(rename = "command")]
    name: String,
    #[serde(default)]
    text: String,
    #[serde(default)]
    manner: Manner,
}

async fn command(State(world): World, body: Bytes) -> Response {
    match read::<Command>(&body) {
        Err(refused) => *refused,
        Ok(one) => {
            done(world.command_raw(&one.user, &one.channel, &one.name, &one.text, &one.manner, |_| {}).await)
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Event {
    team: String,
    event: Value,
}

async fn event(State(world): World, body: Bytes) -> Response {
    match read::<Event>(&body) {
        Err(refused) => *refused,
        Ok(one) => done(world.event(&one.team, &one.event, None).await.map(|delivery| vec![delivery])),
    }
}

async fn happen(State(world): World, body: Bytes) -> Response {
    match read::<super::Happening>(&body) {
        Err(refused) => *refused,
        Ok(happening) => done(world.happens(&happening).await.map(|delivery| vec![delivery])),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    user: String,
    at: Spot,
    control: String,
    accept: bool,
}

async fn ask(State(world): World, body: Bytes) -> Response {
    match read::<Asked>(&body) {
        Err(refused) => *refused,
        Ok(one) => {
            let pressed = world.press_asked(&one.user, &one.at, &one.control, one.accept).await;
            done(pressed.map(|delivery| delivery.into_iter().collect()))
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Lock {
    channel: String,
    ts: String,
}

async fn lock(State(world): World, body: Bytes) -> Response {
    match read::<Lock>(&body) {
        Err(refused) => *refused,
        Ok(one) => {
            world.lock_thread(&one.channel, &one.ts);
            StatusCode::NO_CONTENT.into_response()
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Say {
    user: String,
    channel: String,
    text: String,
}

async fn say(State(world): World, body: Bytes) -> Response {
    match read::<Say>(&body) {
        Err(refused) => *refused,
        Ok(say) => Json(json!({"ts": world.say(&say.user, &say.channel, &say.text)})).into_response(),
    }
}

async fn add_fault(State(world): World, body: Bytes) -> Response {
    match read::<Rule>(&body) {
        Err(refused) => *refused,
        Ok(rule) => {
            world.faults().add(rule);
            StatusCode::NO_CONTENT.into_response()
        }
    }
}

async fn clear_faults(State(world): World) -> StatusCode {
    world.faults().clear();
    StatusCode::NO_CONTENT
}

async fn pace(State(world): World, body: Bytes) -> Response {
    match read::<super::limits::Pace>(&body) {
        Err(refused) => *refused,
        Ok(pace) => {
            world.pace(pace.factor);
            StatusCode::NO_CONTENT.into_response()
        }
    }
}

/// Sets all switches; those not named return to their defaults.
async fn switches(State(world): World, body: Bytes) -> Response {
    match read::<Switches>(&body) {
        Err(refused) => *refused,
        Ok(switches) => {
            world.switch(|now| *now = switches);
            StatusCode::NO_CONTENT.into_response()
        }
    }
}

async fn doors(State(world): World, body: Bytes) -> Response {
    match read::<Doors>(&body) {
        Err(refused) => *refused,
        Ok(doors) => {
            world.set_doors(doors);
            StatusCode::NO_CONTENT.into_response()
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Clock {
    advance_ms: i64,
}

async fn clock(State(world): World, body: Bytes) -> Response {
    match read::<Clock>(&body) {
        Err(refused) => *refused,
        Ok(clock) => {
            world.time().advance(clock.advance_ms);
            Json(json!({"now_ms": world.time().now_ms()})).into_response()
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EditChannel {
    id: String,
    archived: Option<bool>,
    frozen: Option<bool>,
    #[serde(default)]
    join: Vec<String>,
    #[serde(default)]
    leave: Vec<String>,
}

async fn channel(State(world): World, body: Bytes) -> Response {
    match read::<EditChannel>(&body) {
        Err(refused) => *refused,
        Ok(edit) => {
            match edit.archived {
                Some(true) => world.archive(&edit.id),
                Some(false) => world.unarchive(&edit.id),
                None => {}
            }
            world.edit_channel(&edit.id, |channel| {
                channel.frozen = edit.frozen.unwrap_or(channel.frozen);
                channel.members.retain(|member| !edit.leave.contains(member));
                channel.members.extend(edit.join);
            });
            StatusCode::NO_CONTENT.into_response()
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EditUser {
    id: String,
    deleted: Option<bool>,
    kind: Option<UserKind>,
    name: Option<String>,
    real_name: Option<String>,
}

async fn user(State(world): World, body: Bytes) -> Response {
    match read::<EditUser>(&body) {
        Err(refused) => *refused,
        Ok(edit) => {
            world.edit_user(&edit.id, |user| {
                user.deleted = edit.deleted.unwrap_or(user.deleted);
                user.kind = edit.kind.unwrap_or(user.kind);
                user.name = edit.name.clone().unwrap_or_else(|| user.name.clone());
                user.real_name = edit.real_name.clone().unwrap_or_else(|| user.real_name.clone());
            });
            StatusCode::NO_CONTENT.into_response()
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EditGroup {
    id: String,
    users: Vec<String>,
}

async fn group(State(world): World, body: Bytes) -> Response {
    match read::<EditGroup>(&body) {
        Err(refused) => *refused,
        Ok(edit) => {
            world.edit_group(&edit.id, |group| group.users = edit.users);
            StatusCode::NO_CONTENT.into_response()
        }
    }
}

/// Checks `{text, blocks}` or `{view}` without storing anything.
async fn check(State(world): World, body: Bytes) -> Response {
    match read::<Value>(&body) {
        Err(refused) => *refused,
        Ok(payload) => {
            let rules = Rules::from(&world.switches());
            let problems = match payload.get("view") {
                Some(view) => validate::view(view, rules),
                None => validate::message(&payload, rules),
            };
            Json(json!({"problems": problems})).into_response()
        }
    }
}

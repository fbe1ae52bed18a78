//! The control API under `/discord/control/`: everything a test program of another language, or the demo page, needs
//! to act as people and to see the world.
//!
//! Invariant: it is served by the stand-in only, on loopback; it gives out no token and no key. JSON in and out;
//! unknown keys are refused. 400: unreadable body; 409: a person could not do that.
//!
//! Acting: `press {user, channel, message, control, manner?, replace?}`, `choose {user, channel, message, field,
//! labels, manner?}`, `fill {user, field, input}`, `submit {user, manner?}`, `close {user}`, `command {user, channel,
//! command, manner?}`, `say {user, channel, text}`. They answer `{deliveries}`.
//! Looking: `world`, `requests`, `payloads`, `deliveries`, `complaints`, `connections`,
//! `message/{channel}/{message}`, `told/{user}`, `modal/{user}`, `changed?version=N` (waits).
//! Happening: `happen {what, …}` (see `Happening`). Setting: `endpoint {app, url, check}`, `faults` (POST a rule,
//! DELETE all), `scripts` (POST one, DELETE all), `pace {factor}`, `switches`, `clock {advance_ms}`.
//! Gateway: see `gateway/control.rs`.

use super::controls::Input;
use super::deliver::{Delivery, Manner};
use super::payload::PressError;
use super::scripts::Script;
use super::switches::Switches;
use super::world::DiscordWorld;
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

type World = State<Arc<DiscordWorld>>;

pub(super) fn routes() -> Router<Arc<DiscordWorld>> {
    Router::new()
        .route("/discord/control/world", get(async |State(world): World| Json(world.dump())))
        .route("/discord/control/changed", get(changed))
        .route("/discord/control/requests", get(async |State(world): World| Json(world.requests())))
        .route("/discord/control/payloads", get(async |State(world): World| Json(world.payloads())))
        .route("/discord/control/deliveries", get(async |State(world): World| Json(world.deliveries())))
        .route("/discord/control/complaints", get(async |State(world): World| Json(world.complaints())))
        .route("/discord/control/message/{channel}/{message}", get(message))
        .route(
            "/discord/control/told/{user}",
            get(async |State(world): World, Path(user): Path<String>| Json(world.told(&user))),
        )
        .route("/discord/control/modal/{user}", get(modal))
        .route("/discord/control/press", post(press))
        .route("/discord/control/choose", post(choose))
        .route("/discord/control/fill", post(fill))
        .route("/discord/control/submit", post(submit))
        .route("/discord/control/close", post(close))
        .route("/discord/control/command", post(command))
        .route("/discord/control/say", post(say))
        .route("/discord/control/happen", post(happen))
        .route("/discord/control/endpoint", post(endpoint))
        .route("/discord/control/faults", post(add_fault).delete(clear_faults))
        .route("/discord/control/scripts", post(add_script).delete(clear_scripts))
        .route("/discord/control/pace", post(pace))
        .route("/discord/control/switches", post(switches))
        .route("/discord/control/clock", post(clock))
        .merge(super::gateway::control_routes())
}

pub(super) fn read<T: DeserializeOwned>(body: &Bytes) -> Result<T, Box<Response>> {
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        (StatusCode::BAD_REQUEST, Json(json!({"error": error.to_string()}))).into_response().into()
    })
}

fn done(delivered: Result<Vec<Delivery>, PressError>) -> Response {
    match delivered {
        Ok(deliveries) => Json(json!({"deliveries": deliveries})).into_response(),
        Err(error) => (StatusCode::CONFLICT, Json(json!({"error": error.to_string()}))).into_response(),
    }
}

fn nothing<T>(did: Result<T, PressError>) -> Response {
    done(did.map(|_| Vec::new()))
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

async fn message(State(world): World, Path((channel, id)): Path<(String, String)>) -> Response {
    let Some(message) = world.message(&channel, &id) else { return StatusCode::NOT_FOUND.into_response() };
    Json(json!({"message": message, "reads": world.reads(&channel, &id), "notice": world.notice(&channel, &id),
        "buttons": world.buttons(&channel, &id), "fields": world.fields(&channel, &id), "live": world.live(&channel, &id),
        "over_time": world.read_over_time(&channel, &id)}))
    .into_response()
}

async fn modal(State(world): World, Path(user): Path<String>) -> Response {
    let Some(modal) = world.modal(&user) else { return StatusCode::NOT_FOUND.into_response() };
    Json(json!({"modal": modal, "reads": world.modal_reads(&user), "fields": world.modal_fields(&user)}))
        .into_response()
}

/// Values that replace others in a payload, by JSON pointer.
type Replace = serde_json::Map<String, Value>;

fn replacing(replace: Replace) -> impl FnOnce(&mut Value) {
    move |payload| {
        for (pointer, value) in replace {
            if let Some(found) = payload.pointer_mut(&pointer) {
                *found = value;
            }
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Press {
    user: String,
    channel: String,
    message: String,
    control: String,
    #[serde(default)]
    manner: Manner,
    #[serde(default)]
    replace: Replace,
}

async fn press(State(world): World, body: Bytes) -> Response {
    match read::<Press>(&body) {
        Err(refused) => *refused,
        Ok(one) => {
            let change = replacing(one.replace);
            done(
                world
                    .press_raw(&one.user, &one.channel, &one.message, &one.control, &one.manner, change)
                    .await,
            )
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Choose {
    user: String,
    channel: String,
    message: String,
    field: String,
    labels: Vec<String>,
    #[serde(default)]
    manner: Manner,
}

async fn choose(State(world): World, body: Bytes) -> Response {
    match read::<Choose>(&body) {
        Err(refused) => *refused,
        Ok(one) => {
            let labels: Vec<&str> = one.labels.iter().map(String::as_str).collect();
            let chosen = world.choose_raw(
                &one.user,
                &one.channel,
                &one.message,
                &one.field,
                &labels,
                &one.manner,
                |_| {},
            );
            done(chosen.await)
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fill {
    user: String,
    field: String,
    input: Input,
}

async fn fill(State(world): World, body: Bytes) -> Response {
    match read::<Fill>(&body) {
        Err(refused) => *refused,
        Ok(one) => nothing(world.fill(&one.user, &one.field, &one.input)),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Submit {
    user: String,
}

async fn submit(State(world): World, body: Bytes) -> Response {
    match read::<Submit>(&body) {
        Err(refused) => *refused,
        Ok(one) => done(world.submit(&one.user).await.map(|delivery| vec![delivery])),
    }
}

async fn close(State(world): World, body: Bytes) -> Response {
    match read::<Submit>(&body) {
        Err(refused) => *refused,
        Ok(one) => nothing(world.close_modal(&one.user)),
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
    manner: Manner,
}

async fn command(State(world): World, body: Bytes) -> Response {
    match read::<Command>(&body) {
        Err(refused) => *refused,
        Ok(one) => done(world.command_raw(&one.user, &one.channel, &one.name, &one.manner, |_| {}).await),
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
        Ok(say) => Json(json!({"id": world.say(&say.user, &say.channel, &say.text)})).into_response(),
    }
}

/// Something that happens beside clicks.
#[derive(Deserialize)]
#[serde(tag = "what", rename_all = "snake_case", deny_unknown_fields)]
enum Happening {
    RemoveMessage { channel: String, message: String },
    RemoveMessages { channel: String, messages: Vec<String> },
    RemoveChannel { channel: String },
    RemoveGuild { guild: String },
    Kick { guild: String, user: String },
    Outage { guild: String, on: bool },
    Archive { thread: String, archived: bool, locked: bool },
    Permit { channel: String, whom: String, bits: u64, granted: bool },
    Token { app: String, live: bool },
    Dms { user: String, closed: bool },
}

async fn happen(State(world): World, body: Bytes) -> Response {
    let happening = match read::<Happening>(&body) {
        Err(refused) => return *refused,
        Ok(happening) => happening,
    };
    match happening {
        Happening::RemoveMessage { channel, message } => world.remove_message(&channel, &message),
        Happening::RemoveMessages { channel, messages } => {
            let ids: Vec<&str> = messages.iter().map(String::as_str).collect();
            world.remove_messages(&channel, &ids);
        }
        Happening::RemoveChannel { channel } => world.remove_channel(&channel),
        Happening::RemoveGuild { guild } => world.remove_guild(&guild),
        Happening::Kick { guild, user } => world.kick(&guild, &user),
        Happening::Outage { guild, on } => world.outage(&guild, on),
        Happening::Archive { thread, archived, locked } => world.archive(&thread, archived, locked),
        Happening::Permit { channel, whom, bits, granted } => world.permit(&channel, &whom, bits, granted),
        Happening::Token { app, live } => world.token(&app, live),
        Happening::Dms { user, closed } => world.edit_user(&user, |user| user.dms_closed = closed),
    }
    StatusCode::NO_CONTENT.into_response()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Endpoint {
    app: String,
    url: Option<String>,
    #[serde(default)]
    check: bool,
}

async fn endpoint(State(world): World, body: Bytes) -> Response {
    match read::<Endpoint>(&body) {
        Err(refused) => *refused,
        Ok(one) if one.check => match world.set_endpoint(&one.app, one.url.as_deref()).await {
            Ok(()) => StatusCode::NO_CONTENT.into_response(),
            Err(error) => (StatusCode::CONFLICT, Json(json!({"error": error}))).into_response(),
        },
        Ok(one) => {
            world.set_endpoint_unchecked(&one.app, one.url.as_deref());
            StatusCode::NO_CONTENT.into_response()
        }
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

async fn add_script(State(world): World, body: Bytes) -> Response {
    match read::<Script>(&body) {
        Err(refused) => *refused,
        Ok(script) => {
            world.script(script);
            StatusCode::NO_CONTENT.into_response()
        }
    }
}

async fn clear_scripts(State(world): World) -> StatusCode {
    world.clear_scripts();
    StatusCode::NO_CONTENT
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Pace {
    factor: u32,
}

async fn pace(State(world): World, body: Bytes) -> Response {
    match read::<Pace>(&body) {
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

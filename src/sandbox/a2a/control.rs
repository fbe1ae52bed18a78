//! The control API: what a script does to the world, as JSON over HTTP.
//!
//! Invariant: it adds nothing to `script` and `world`; a request that names something absent or
//! past is answered 409, so that a test does not go on with a world it did not make.

use super::card::CardSpec;
use super::model::State as TaskState;
use super::model::{Ask, Decision};
use super::script::{Elsewhere, Open, Opened};
use super::switches::Switches;
use super::world::A2aWorld;
use crate::sandbox::faults::Rule;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;

type World = State<Arc<A2aWorld>>;

pub(super) fn router() -> Router<Arc<A2aWorld>> {
    Router::new()
        .route("/world", get(async |State(world): World| Json(world.dump())))
        .route("/open", post(open))
        .route("/ask", post(ask))
        .route("/change", post(change))
        .route("/end", post(end))
        .route("/answer", post(answer))
        .route("/delete", post(delete))
        .route("/show", post(show))
        .route("/card", post(card))
        .route("/switches", get(async |State(world): World| Json(world.switches())).post(switches))
        .route("/faults", post(fault).delete(clear_faults))
        .route("/advance", post(advance))
}

fn done(did: bool, what: &str) -> Response {
    if did {
        Json(json!({"ok": true})).into_response()
    } else {
        (StatusCode::CONFLICT, Json(json!({"ok": false, "error": what}))).into_response()
    }
}

async fn open(State(world): World, Json(body): Json<Open>) -> Json<Opened> {
    Json(world.open(body))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct AskOf {
    task_id: String,
    ask: Ask,
}

async fn ask(State(world): World, Json(body): Json<AskOf>) -> Response {
    match world.ask(&body.task_id, body.ask) {
        Some(id) => Json(json!({"ok": true, "interactionId": id})).into_response(),
        None => done(false, "the task is not there or has ended"),
    }
}

/// The members that are given change; `detail` is replaced as a whole.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ChangeOf {
    interaction_id: String,
    prompt: Option<String>,
    server: Option<String>,
    tool: Option<String>,
    reason: Option<String>,
    detail: Option<Map<String, Value>>,
}

async fn change(State(world): World, Json(body): Json<ChangeOf>) -> Response {
    let ChangeOf { interaction_id, prompt, server, tool, reason, detail } = body;
    let did = world.change(&interaction_id, |ask| {
        for (to, from) in [
            (&mut ask.prompt, prompt),
            (&mut ask.server, server),
            (&mut ask.tool, tool),
            (&mut ask.reason, reason),
        ] {
            if from.is_some() {
                *to = from;
            }
        }
        if let Some(detail) = detail {
            ask.detail = detail;
        }
    });
    done(did, "the interaction is not open")
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct EndOf {
    task_id: String,
    state: TaskState,
    text: Option<String>,
}

async fn end(State(world): World, Json(body): Json<EndOf>) -> Response {
    done(world.end(&body.task_id, body.state, body.text.as_deref()), "the task cannot go there")
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct AnswerOf {
    interaction_id: String,
    subject: String,
    decision: Decision,
    #[serde(default)]
    history: bool,
    message_id: Option<String>,
}

async fn answer(State(world): World, Json(body): Json<AnswerOf>) -> Response {
    let AnswerOf { interaction_id, subject, decision, history, message_id } = body;
    let answer = Elsewhere { subject, decision, history, message_id };
    done(world.answer_elsewhere(&interaction_id, answer), "the interaction is not open")
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct DeleteOf {
    task_id: String,
}

async fn delete(State(world): World, Json(body): Json<DeleteOf>) -> Response {
    done(world.delete(&body.task_id), "the task is not there")
}

/// What is not given ends: listed again, shown in its true state.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ShowOf {
    task_id: String,
    #[serde(default)]
    unlisted: bool,
    state: Option<String>,
}

async fn show(State(world): World, Json(body): Json<ShowOf>) -> Response {
    let did =
        world.unlist(&body.task_id, body.unlisted) && world.show_as(&body.task_id, body.state.as_deref());
    done(did, "the task is not there")
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CardOf {
    agent: String,
    card: CardSpec,
}

async fn card(State(world): World, Json(body): Json<CardOf>) -> Response {
    world.set_card(&body.agent, body.card);
    done(true, "")
}

/// The members that are given change.
async fn switches(State(world): World, Json(body): Json<Map<String, Value>>) -> Response {
    let mut wanted = match serde_json::to_value(world.switches()) {
        Ok(Value::Object(now)) => now,
        _ => Map::new(),
    };
    wanted.extend(body);
    match serde_json::from_value::<Switches>(Value::Object(wanted)) {
        Ok(switches) => {
            world.switch(|now| *now = switches.clone());
            Json(switches).into_response()
        }
        Err(error) => {
            (StatusCode::BAD_REQUEST, Json(json!({"ok": false, "error": error.to_string()}))).into_response()
        }
    }
}

async fn fault(State(world): World, Json(rule): Json<Rule>) -> Response {
    world.faults().add(rule);
    done(true, "")
}

async fn clear_faults(State(world): World) -> Response {
    world.faults().clear();
    done(true, "")
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AdvanceBy {
    ms: i64,
}

/// Moves a hand-moved clock; the machine's clock moves by itself.
async fn advance(State(world): World, Json(body): Json<AdvanceBy>) -> Response {
    world.time.advance(body.ms);
    world.touch();
    done(true, "")
}

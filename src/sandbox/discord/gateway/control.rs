//! The control API of the gateway: `GET connections`, `POST gateway {app?, order}`, `POST event {app, name, data}`,
//! `POST sessions/end {app}`.

use super::Order;
use crate::sandbox::discord::control::read;
use crate::sandbox::discord::world::DiscordWorld;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

type World = State<Arc<DiscordWorld>>;

pub(in crate::sandbox::discord) fn routes() -> Router<Arc<DiscordWorld>> {
    Router::new()
        .route("/discord/control/connections", get(async |State(world): World| Json(world.connections())))
        .route("/discord/control/gateway", post(order))
        .route("/discord/control/event", post(event))
        .route("/discord/control/sessions/end", post(end))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Ordered {
    app: Option<String>,
    order: Order,
}

async fn order(State(world): World, body: Bytes) -> Response {
    match read::<Ordered>(&body) {
        Err(refused) => *refused,
        Ok(one) => {
            Json(json!({"connections": world.gateway(one.app.as_deref(), &one.order)})).into_response()
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Event {
    app: String,
    name: String,
    data: Value,
}

async fn event(State(world): World, body: Bytes) -> Response {
    match read::<Event>(&body) {
        Err(refused) => *refused,
        Ok(one) => Json(json!({"connections": world.event(&one.app, &one.name, &one.data)})).into_response(),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Of {
    app: String,
}

async fn end(State(world): World, body: Bytes) -> Response {
    match read::<Of>(&body) {
        Err(refused) => *refused,
        Ok(one) => {
            world.end_sessions(&one.app);
            StatusCode::NO_CONTENT.into_response()
        }
    }
}

//! The control API's part for sockets, under `/slack/control/`:
//! `sockets` (GET: every socket; POST `{socket?, order: {"do": "disconnect", "reason",
//! "close_after_ms"} | {"do": "close"} | {"do": "drop"} | {"do": "half_open"} | {"do": "send", "frame": {"kind": "json",
//! "value"} | {"kind": "text", "text"} | {"kind": "binary", "bytes"} | {"kind": "ping"}}}`, without `socket` to all;
//! answers `{told}`), `envelopes` (GET), `envelopes/redeliver {envelope_id, socket?}`,
//! `envelopes/hold`, `envelopes/release {reversed?}`, `sockets/cut {every_s}` (`null` ends it).

use super::Order;
use crate::sandbox::slack::control::{done, read};
use crate::sandbox::slack::payload::PressError;
use crate::sandbox::slack::world::SlackWorld;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;

type World = State<Arc<SlackWorld>>;

pub(in crate::sandbox::slack) fn routes() -> Router<Arc<SlackWorld>> {
    Router::new()
        .route("/slack/control/sockets", get(async |State(world): World| Json(world.sockets())).post(order))
        .route("/slack/control/sockets/cut", post(cut))
        .route("/slack/control/envelopes", get(async |State(world): World| Json(world.envelopes())))
        .route("/slack/control/envelopes/redeliver", post(redeliver))
        .route(
            "/slack/control/envelopes/hold",
            post(async |State(world): World| {
                world.hold_envelopes();
                StatusCode::NO_CONTENT
            }),
        )
        .route("/slack/control/envelopes/release", post(release))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Ordered {
    socket: Option<u64>,
    order: Order,
}

async fn order(State(world): World, body: Bytes) -> Response {
    match read::<Ordered>(&body) {
        Err(refused) => *refused,
        Ok(one) => Json(json!({"told": world.socket(one.socket, &one.order)})).into_response(),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cut {
    every_s: Option<u32>,
}

async fn cut(State(world): World, body: Bytes) -> Response {
    match read::<Cut>(&body) {
        Err(refused) => *refused,
        Ok(cut) => {
            world.cut_sockets_every(cut.every_s);
            StatusCode::NO_CONTENT.into_response()
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Again {
    envelope_id: String,
    socket: Option<u64>,
}

async fn redeliver(State(world): World, body: Bytes) -> Response {
    match read::<Again>(&body) {
        Err(refused) => *refused,
        Ok(again) => {
            let delivered = world.redeliver(&again.envelope_id, again.socket).await;
            done(delivered.map(|delivery| vec![delivery]).ok_or(PressError::Nothing))
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Release {
    #[serde(default)]
    reversed: bool,
}

async fn release(State(world): World, body: Bytes) -> Response {
    match read::<Release>(&body) {
        Err(refused) => *refused,
        Ok(release) => {
            world.release_envelopes(release.reversed);
            StatusCode::NO_CONTENT.into_response()
        }
    }
}

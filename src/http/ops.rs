//! `GET /healthz`, `/readyz`, `/metrics`.
//!
//! Invariant: `/healthz` touches nothing, so that a database or a chat platform that is down does not
//! get the process restarted: it takes clicks and keeps trying. `/readyz` says whether everything
//! works; its reasons name configured things and are told on the admin address only.

use super::Http;
use super::api::authorize;
use crate::bridge::incident::EVERY;
use crate::bridge::operators::Lack;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

pub(super) const HEALTHZ: &str = "/healthz";
pub(super) const READYZ: &str = "/readyz";
pub(super) const METRICS: &str = "/metrics";

/// A database that does not answer in this time is not there.
const PATIENCE: Duration = Duration::from_secs(2);

pub(super) fn health() -> Router<Arc<Http>> {
    Router::new().route(HEALTHZ, get(async || ([(header::CONTENT_TYPE, "text/plain")], "ok\n")))
}

/// On the public address: the status without reasons, the metrics for operators only.
pub(super) fn guarded(http: &Arc<Http>) -> Router<Arc<Http>> {
    Router::new()
        .route(METRICS, get(metrics))
        .route_layer(from_fn_with_state(Arc::clone(http), authorize))
        .route(READYZ, get(async |State(http): State<Arc<Http>>| ready(&http, false).await))
}

/// On the admin address.
pub(super) fn open() -> Router<Arc<Http>> {
    Router::new()
        .route(METRICS, get(metrics))
        .route(READYZ, get(async |State(http): State<Arc<Http>>| ready(&http, true).await))
}

async fn metrics(State(http): State<Arc<Http>>) -> Response {
    // Read when asked: every replica says the same.
    if let Ok(Ok(pauses)) = tokio::time::timeout(PATIENCE, http.bridge.pauses()).await {
        for runtime in http.bridge.connectors.keys() {
            let paused = pauses.iter().any(|pause| pause.runtime == *runtime || pause.runtime == EVERY);
            metrics::gauge!("countersign_paused", "runtime" => runtime.clone())
                .set(f64::from(u8::from(paused)));
        }
    }
    let text = http.metrics.render();
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
}

async fn ready(http: &Http, reasons: bool) -> Response {
    let lacks = match tokio::time::timeout(PATIENCE, http.bridge.lacks()).await {
        Ok(lacks) => lacks,
        Err(_) => vec![Lack::Database("it does not answer".into())],
    };
    let status = if lacks.is_empty() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let mut body = json!({ "ready": lacks.is_empty() });
    if reasons {
        body["reasons"] = lacks.iter().map(reason).collect();
    }
    (status, Json(body)).into_response()
}

fn reason(lack: &Lack) -> Value {
    match lack {
        Lack::Database(error) => json!({ "reason": "database", "detail": error }),
        Lack::Alert { key, text, since, times } => json!({
            "reason": "alert", "alert": key, "detail": text, "since": since.rfc3339(), "times": times,
        }),
        Lack::Identity { install } => json!({
            "reason": "identity_unknown", "install": install,
            "detail": "the chat platform has not told us yet who we are there",
        }),
        Lack::NeverRead { runtime } => json!({
            "reason": "never_read", "runtime": runtime,
            "detail": "no full reading of this runtime since the start",
        }),
    }
}

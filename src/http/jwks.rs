//! `GET /.well-known/jwks.json`: the keys by which runtimes check our tokens (RFC 7517).
//!
//! Invariant: public halves only; at most 256 KiB, answered directly (runtimes follow no redirect). A
//! key is published before it signs, for longer than an answer of ours may be cached.

use super::Http;
use super::problem::Problem;
use axum::Router;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use std::sync::Arc;

pub(super) const ROUTE: &str = "/.well-known/jwks.json";
/// What a runtime reads of it at most.
const LARGEST: usize = 256 * 1024;

pub(super) fn routes() -> Router<Arc<Http>> {
    Router::new().route(ROUTE, get(jwks))
}

async fn jwks(State(http): State<Arc<Http>>) -> Response {
    let body = (http.jwks)(http.bridge.clock.now()).to_string();
    if body.len() > LARGEST {
        tracing::error!(bytes = body.len(), "the public keys are too many to be read by runtimes");
        return Problem::internal().into_response();
    }
    ([(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "public, max-age=60")], body)
        .into_response()
}

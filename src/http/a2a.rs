//! `POST /hooks/a2a/{watch}`: a runtime tells us that a task may have changed (A2A 1.0 §4.3.3, §13.2).
//!
//! Invariants: who calls is checked before anything of the body is read; what the body says is not taken
//! over: it only has to be about the task that this address was given out for; the hint is stored before
//! it is acknowledged, and whoever watches the runtime reads the task then.
//!
//! Refusals, in this order: 404 an address nobody was given, 401 no or another credential or another
//! token, 429 called too often, 413 a body of more than 1 MiB, 400 no notification, 404 another task.

use super::Http;
use super::problem::Problem;
use crate::runtime::a2a::told_of;
use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, FromRequest, Path, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use std::sync::Arc;
use std::time::Duration;

pub(super) const ROUTE: &str = "/hooks/a2a/{watch}";

/// Largest notification.
const LARGEST: usize = 1024 * 1024;
/// A runtime is not kept waiting for longer.
const LIMIT: Duration = Duration::from_secs(2);
/// The official server's name for the token; the specification has none.
const TOKEN: &str = "x-a2a-notification-token";

pub(super) fn routes() -> Router<Arc<Http>> {
    Router::new().route(ROUTE, post(take).layer(DefaultBodyLimit::max(LARGEST)))
}

async fn take(State(http): State<Arc<Http>>, Path(watch): Path<String>, request: Request) -> Response {
    let taken = tokio::time::timeout(LIMIT, judge(&http, &watch, request)).await;
    let response = taken.unwrap_or_else(|_| Err(Problem::slow())).unwrap_or_else(IntoResponse::into_response);
    metrics::counter!("countersign_a2a_calls_total", "status" => word(response.status())).increment(1);
    response
}

async fn judge(http: &Arc<Http>, watch: &str, request: Request) -> Result<Response, Problem> {
    let hook = http.bridge.hook_at(watch).await?.ok_or_else(Problem::not_found)?;
    let headers = request.headers();
    if !hook.admits(bearer(headers), token(headers).as_deref()) {
        return Err(Problem::no_credential());
    }
    let body = Bytes::from_request(request, &()).await.map_err(|rejected| {
        if rejected.status() == StatusCode::PAYLOAD_TOO_LARGE {
            Problem::too_big(LARGEST)
        } else {
            Problem::broken_off()
        }
    })?;
    let told = told_of(&body).ok_or_else(|| {
        Problem::malformed("body", "send one of task, message, statusUpdate, artifactUpdate, as JSON")
    })?;
    if told.as_deref() != Some(hook.task.as_str()) {
        return Err(Problem::not_found());
    }
    if !http.bridge.hook_called(&hook).await? {
        return Err(Problem::too_often());
    }
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// The one bearer credential of a request.
fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    let (scheme, credential) = value.as_bytes().split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| credential.trim_ascii())
}

/// The token, where one came; more than one is none that we gave out.
fn token(headers: &HeaderMap) -> Option<Vec<u8>> {
    let values: Vec<&[u8]> = headers.get_all(TOKEN).iter().map(axum::http::HeaderValue::as_bytes).collect();
    (!values.is_empty()).then(|| values.join(&b","[..]))
}

fn word(status: StatusCode) -> &'static str {
    match status.as_u16() {
        204 => "taken",
        401 => "refused",
        404 => "unknown",
        429 => "too_often",
        413 => "too_large",
        400 => "unreadable",
        _ => "failed",
    }
}

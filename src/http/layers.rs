//! What holds for every request: an id, a time limit, no way out for a panic, headers that keep
//! browsers from guessing, one log line and two numbers.
//!
//! Invariant: what is logged and counted of a request is the route's pattern, the method if we know it,
//! the status and the time; never the address as sent, a header or a body. The id is made here: a
//! caller's own `X-Request-Id` is not taken over.

use super::Http;
use super::problem::Problem;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderName, HeaderValue, Method, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::{Router, body::Body};
use std::any::Any;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::set_header::SetResponseHeaderLayer;
use tracing::Instrument;

/// Longest time for any answer. Slack's routes have their own, shorter one.
const LIMIT: Duration = Duration::from_secs(10);
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// On everything, where a route does not say otherwise.
const HEADERS: [(HeaderName, &str); 5] = [
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::CACHE_CONTROL, "no-store"),
    (header::CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_FRAME_OPTIONS, "DENY"),
];

pub(super) fn around(router: Router<Arc<Http>>, http: &Arc<Http>) -> Router<Arc<Http>> {
    let mut router = router.layer(from_fn(limited)).layer(CatchPanicLayer::custom(panicked));
    for (name, value) in HEADERS {
        router = router.layer(SetResponseHeaderLayer::if_not_present(name, HeaderValue::from_static(value)));
    }
    router.layer(from_fn_with_state(Arc::clone(http), observed))
}

async fn limited(request: Request, next: Next) -> Response {
    match tokio::time::timeout(LIMIT, next.run(request)).await {
        Ok(response) => response,
        Err(_) => Problem::slow().into_response(),
    }
}

/// What the panic said may hold anything; its place is on standard error already.
fn panicked(_: Box<dyn Any + Send>) -> Response<Body> {
    tracing::error!("a request's handler panicked");
    Problem::internal().into_response()
}

async fn observed(State(http): State<Arc<Http>>, request: Request, next: Next) -> Response {
    let id = http.bridge.ids.uuid().simple().to_string();
    let route = request.extensions().get::<MatchedPath>().map_or("none", known_route);
    let method = known_method(request.method());
    let began = Instant::now();
    let span = tracing::info_span!("http", request = id, method, route);
    let mut response = next.run(request).instrument(span.clone()).await;
    let took = began.elapsed();
    let status = response.status();
    span.in_scope(|| {
        tracing::trace!(status = status.as_u16(), elapsed_ms = took.as_millis(), "answered");
    });
    metrics::counter!("countersign_http_requests_total", "route" => route, "method" => method,
        "status" => class(status.as_u16()))
    .increment(1);
    metrics::histogram!("countersign_http_seconds", "route" => route).record(took.as_secs_f64());
    if let Ok(value) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    response
}

/// Every route there is, so that labels stay a fixed set.
const ROUTES: [&str; 12] = [
    super::a2a::ROUTE,
    super::slack::INTERACTIVITY,
    super::slack::COMMANDS,
    super::slack::EVENTS,
    super::jwks::ROUTE,
    super::ops::HEALTHZ,
    super::ops::READYZ,
    super::ops::METRICS,
    super::api::INTERACTIONS,
    super::api::TASKS,
    super::api::AUDIT,
    super::api::OPENAPI,
];

fn known_route(path: &MatchedPath) -> &'static str {
    ROUTES.into_iter().find(|route| *route == path.as_str()).unwrap_or("other")
}

fn known_method(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        _ => "other",
    }
}

fn class(status: u16) -> &'static str {
    match status {
        200..300 => "2xx",
        300..400 => "3xx",
        400..500 => "4xx",
        _ => "5xx",
    }
}

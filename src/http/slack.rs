//! What Slack sends: presses, commands, events.
//!
//! Invariant, in this order (Slack: Verifying requests from Slack): size; headers once each and well
//! formed; time; signature over the raw bytes against every secret; only then the body is read; the
//! secret that verified decides the app, and a body naming another app is refused; what was pressed is
//! committed; only then 200 with an empty body. A delivery is never dropped because it is a retry: it
//! may be the first that arrives. The time limit is our own, below Slack's three seconds, so that the
//! person sees a failure as one.
//!
//! Known races and the decisions taken:
//! - the same delivery twice: its key is known, so it is acknowledged without a second effect;
//! - we gave up waiting and the write is committed all the same: the person presses again, which is
//!   another click, and one of the two is told "already recorded".

mod dispatch;
mod sockets;

pub use dispatch::{Dispatch, NotTaken, Taken, Verified};
pub use sockets::SocketDoor;

use super::Http;
use crate::bridge::operators::StoreError;
use crate::chat::slack::{Delivery, EmptySecret, Refused, Verifier, Way, is_ssl_check};
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, FromRequest, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use secrecy::SecretString;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(super) const INTERACTIVITY: &str = "/slack/interactivity";
pub(super) const COMMANDS: &str = "/slack/commands";
pub(super) const EVENTS: &str = "/slack/events";

/// Larger bodies are not read.
const LARGEST: usize = 1024 * 1024;
/// Slack waits three seconds.
const LIMIT: Duration = Duration::from_secs(2);

/// One install of the Slack app that takes clicks over HTTP.
#[derive(Debug)]
pub struct SlackDoor {
    of: Verified,
    verifier: Verifier,
}

impl SlackDoor {
    /// `app_id` as configured; otherwise the app is learnt from Slack.
    ///
    /// # Errors
    /// When a secret is empty: it would let anybody in.
    pub fn new(
        install: impl Into<String>,
        app_id: Option<String>,
        secret: &SecretString,
        previous: Option<&SecretString>,
    ) -> Result<Self, EmptySecret> {
        let of = Verified { install: install.into(), app_id };
        Ok(Self { of, verifier: Verifier::new(secret, previous)? })
    }
}

/// Why a delivery is not acknowledged.
#[derive(Debug)]
enum Failed {
    TooBig,
    /// The body ended before it was complete.
    BrokenOff,
    Unverified(Refused),
    /// The body names another app than the one whose secret signed it.
    OtherApp,
    Unreadable,
    Store(StoreError),
    Slow,
}

impl From<NotTaken> for Failed {
    fn from(not: NotTaken) -> Self {
        match not {
            NotTaken::OtherApp => Self::OtherApp,
            NotTaken::Unreadable(_) => Self::Unreadable,
            NotTaken::Store(error) => Self::Store(error),
        }
    }
}

pub(super) fn routes() -> Router<Arc<Http>> {
    Router::new()
        .route(INTERACTIVITY, post(async |http, request| answer(http, Way::Interactivity, request).await))
        .route(COMMANDS, post(async |http, request| answer(http, Way::Commands, request).await))
        .route(EVENTS, post(async |http, request| answer(http, Way::Events, request).await))
        .layer(DefaultBodyLimit::max(LARGEST))
}

async fn answer(State(http): State<Arc<Http>>, way: Way, request: Request) -> Response {
    let began = Instant::now();
    let answer = tokio::time::timeout(LIMIT, take(&http, way, request)).await.unwrap_or(Err(Failed::Slow));
    let failed = match answer {
        Ok(response) => {
            metrics::histogram!("countersign_ack_seconds", "platform" => "slack")
                .record(began.elapsed().as_secs_f64());
            return response;
        }
        Err(failed) => failed,
    };
    let source = way.source();
    let (status, reason) = match failed {
        Failed::TooBig => (StatusCode::PAYLOAD_TOO_LARGE, "size"),
        Failed::BrokenOff => (StatusCode::BAD_REQUEST, "broken_off"),
        Failed::Unverified(Refused::Headers) => (StatusCode::UNAUTHORIZED, "headers"),
        Failed::Unverified(Refused::Time) => (StatusCode::UNAUTHORIZED, "time"),
        Failed::Unverified(Refused::Signature) => (StatusCode::UNAUTHORIZED, "signature"),
        Failed::OtherApp => {
            tracing::warn!(source, "a delivery names another app than its signature's; refused");
            (StatusCode::UNAUTHORIZED, "app")
        }
        Failed::Unreadable => (StatusCode::BAD_REQUEST, "unreadable"),
        Failed::Store(error) => {
            tracing::error!(source, %error, "a delivery could not be stored; the person may press again");
            (StatusCode::INTERNAL_SERVER_ERROR, "store")
        }
        Failed::Slow => {
            tracing::error!(source, "a delivery was not stored in time; the person may press again");
            (StatusCode::INTERNAL_SERVER_ERROR, "slow")
        }
    };
    metrics::counter!("countersign_inbound_refused_total", "platform" => "slack", "reason" => reason)
        .increment(1);
    status.into_response()
}

async fn take(http: &Arc<Http>, way: Way, request: Request) -> Result<Response, Failed> {
    let headers = request.headers().clone();
    let body = Bytes::from_request(request, &()).await.map_err(|rejected| {
        if rejected.status() == StatusCode::PAYLOAD_TOO_LARGE { Failed::TooBig } else { Failed::BrokenOff }
    })?;
    // Slack's certificate check has no effect and may come unsigned.
    if way != Way::Events && is_ssl_check(&body) {
        return Ok(StatusCode::OK.into_response());
    }
    let verified = verified(http, &headers, &body).map_err(Failed::Unverified)?;
    let dispatch = Dispatch { bridge: Arc::clone(&http.bridge), templates: Arc::clone(&http.templates) };
    Ok(match dispatch.take(Delivery::of_body(way, &body), &verified).await? {
        Taken::Empty => StatusCode::OK.into_response(),
        Taken::Answer(answer) => Json(answer).into_response(),
    })
}

/// The installs whose secret signed this: those of one app may share one.
fn verified(http: &Http, headers: &HeaderMap, body: &[u8]) -> Result<Vec<Verified>, Refused> {
    let now = http.bridge.clock.now();
    let mut refused = Refused::Signature;
    let mut verified = vec![];
    for door in &http.slack {
        match door.verifier.verify(headers, body, now) {
            Ok(()) => verified.push(door.of.clone()),
            Err(why) => refused = why,
        }
    }
    if verified.is_empty() { Err(refused) } else { Ok(verified) }
}

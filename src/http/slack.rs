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

use super::Http;
use crate::bridge::operators::StoreError;
use crate::chat::slack::{
    EmptySecret, Event, Inbound, Refused, Verifier, is_ssl_check, parse_command, parse_event,
    parse_interactivity,
};
use crate::render::slack::CommandAnswer;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, FromRequest, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use secrecy::SecretString;
use serde_json::json;
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
    pub install: String,
    /// As configured; otherwise the app is learnt from Slack.
    pub app_id: Option<String>,
    verifier: Verifier,
}

impl SlackDoor {
    /// # Errors
    /// When a secret is empty: it would let anybody in.
    pub fn new(
        install: impl Into<String>,
        app_id: Option<String>,
        secret: &SecretString,
        previous: Option<&SecretString>,
    ) -> Result<Self, EmptySecret> {
        Ok(Self { install: install.into(), app_id, verifier: Verifier::new(secret, previous)? })
    }
}

/// The three ways in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Interactivity,
    Commands,
    Events,
}

impl Way {
    /// How a kept body is marked.
    fn source(self) -> &'static str {
        match self {
            Self::Interactivity => "slack:interactivity",
            Self::Commands => "slack:commands",
            Self::Events => "slack:events",
        }
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
    Unreadable(&'static str),
    Store(StoreError),
    Slow,
}

impl From<StoreError> for Failed {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
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
        Failed::Unreadable(what) => {
            tracing::warn!(source, what, "a signed delivery could not be read; its bytes are kept");
            metrics::counter!("countersign_inbound_unreadable_total", "platform" => "slack").increment(1);
            (StatusCode::BAD_REQUEST, "unreadable")
        }
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
    let doors = verified(http, &headers, &body).map_err(Failed::Unverified)?;
    match way {
        Way::Interactivity => interactivity(http, &doors, &body).await,
        Way::Commands => command(http, &doors, &body).await,
        Way::Events => event(http, &doors, &body).await,
    }
}

/// The installs whose secret signed this: those of one app may share one.
fn verified<'h>(http: &'h Http, headers: &HeaderMap, body: &[u8]) -> Result<Vec<&'h SlackDoor>, Refused> {
    let now = http.bridge.clock.now();
    let mut refused = Refused::Signature;
    let mut doors = vec![];
    for door in &http.slack {
        match door.verifier.verify(headers, body, now) {
            Ok(()) => doors.push(door),
            Err(why) => refused = why,
        }
    }
    if doors.is_empty() { Err(refused) } else { Ok(doors) }
}

/// The verified installs that belong to the app the body names. An install whose app is not known yet
/// stays: its secret must do, and nothing is answered before the account could be checked.
fn of_app(http: &Http, doors: &[&SlackDoor], named: Option<&str>) -> Result<Vec<String>, Failed> {
    let belongs = |door: &&&SlackDoor| {
        let Some(named) = named else { return true };
        let learnt = || http.bridge.directory.identity(&door.install).map(|identity| identity.app_id);
        door.app_id.clone().or_else(learnt).filter(|app| !app.is_empty()).is_none_or(|app| app == named)
    };
    let installs: Vec<String> = doors.iter().filter(belongs).map(|door| door.install.clone()).collect();
    if installs.is_empty() { Err(Failed::OtherApp) } else { Ok(installs) }
}

async fn interactivity(http: &Arc<Http>, doors: &[&SlackDoor], body: &[u8]) -> Result<Response, Failed> {
    let read = parse_interactivity(body);
    let installs = of_app(http, doors, read.app_id.as_deref())?;
    match read.what {
        Inbound::Pressed(presses) => {
            for press in presses {
                let new = http.bridge.store_press(press, &installs).await?;
                metrics::counter!("countersign_clicks_total", "platform" => "slack",
                    "repeat" => if new { "false" } else { "true" })
                .increment(1);
            }
        }
        Inbound::Ignored => {}
        Inbound::UnknownType(kind) => {
            http.bridge.keep_raw(Way::Interactivity.source(), body).await?;
            tracing::warn!(?kind, "a delivery of a type this version does not know; it is kept");
        }
        Inbound::Unreadable(what) => return unreadable(http, Way::Interactivity, body, what).await,
    }
    Ok(StatusCode::OK.into_response())
}

async fn command(http: &Arc<Http>, doors: &[&SlackDoor], body: &[u8]) -> Result<Response, Failed> {
    let Some(command) = parse_command(body) else {
        return unreadable(http, Way::Commands, body, "no field `command`").await;
    };
    of_app(http, doors, command.app_id.as_deref())?;
    let text = http.templates.render(&CommandAnswer {});
    Ok(Json(json!({ "response_type": "ephemeral", "text": text })).into_response())
}

async fn event(http: &Arc<Http>, doors: &[&SlackDoor], body: &[u8]) -> Result<Response, Failed> {
    match parse_event(body) {
        Event::UrlVerification { challenge } => Ok(Json(json!({ "challenge": challenge })).into_response()),
        Event::Ignored { app_id, event_id: _ } => {
            of_app(http, doors, app_id.as_deref())?;
            Ok(StatusCode::OK.into_response())
        }
        Event::Unreadable => unreadable(http, Way::Events, body, "no JSON object").await,
    }
}

async fn unreadable(http: &Http, way: Way, body: &[u8], what: &'static str) -> Result<Response, Failed> {
    http.bridge.store_unreadable(way.source(), body).await?;
    Err(Failed::Unreadable(what))
}

//! The Web API over HTTP: reads the request, lets scripted trouble strike, records everything.
//!
//! Invariant: a fault of the kind "after" strikes when the effect is in the world; one of the kind
//! "before" leaves the world as it was. A request is recorded when it arrives, its answer when it
//! is decided.

use super::args::Args;
use super::{Refusal, Reply, answer};
use crate::sandbox::faults::Fault;
use crate::sandbox::slack::limits;
use crate::sandbox::slack::types::Recorded;
use crate::sandbox::slack::world::SlackWorld;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use serde_json::{Value, json};
use std::io;
use std::sync::Arc;
use std::time::Duration;

pub(crate) fn routes() -> Router<Arc<SlackWorld>> {
    Router::new().route("/slack/api/{method}", any(call))
}

async fn call(
    State(world): State<Arc<SlackWorld>>,
    Path(name): Path<String>,
    http: Method,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    if http != Method::GET && http != Method::POST {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    let read_only = limits::find(&name).is_some_and(|method| method.read);
    let fault = world.faults().take(&name);
    let read = Args::read(&http, &headers, query.as_deref().unwrap_or_default(), &body, read_only);
    let args = match read {
        Ok(args) => args,
        Err(error) => {
            let args = Args::unreadable();
            let seq = world.arrived(&name, http.as_str(), &args, fault.as_ref());
            let reply = Reply::refused(Refusal::new(error));
            world.answered(seq, reply.status, Some(&reply.body));
            return respond(&reply);
        }
    };
    let seq = world.arrived(&name, http.as_str(), &args, fault.as_ref());
    let Some(fault) = fault else { return respond(&world.carry_out(seq, &name, &args)) };
    struck(&world, fault, seq, &name, || world.carry_out(seq, &name, &args)).await
}

/// Lets one fault strike around `act`. [`Fault::Refuse`] with an empty code answers `ok:false`
/// without `error`.
pub(crate) async fn struck(
    world: &SlackWorld,
    fault: Fault,
    seq: u64,
    name: &str,
    act: impl Fn() -> Reply + Send + Sync,
) -> Response {
    match fault {
        Fault::Delay { ms } => {
            tokio::time::sleep(Duration::from_millis(ms)).await;
            respond(&act())
        }
        Fault::DelayAnswer { ms } => {
            let reply = act();
            tokio::time::sleep(Duration::from_millis(ms)).await;
            respond(&reply)
        }
        Fault::Status { code, retry_after, body } => {
            if let Some(seconds) = retry_after {
                world.park(seq, name, seconds);
            }
            world.answered(seq, code, None);
            status(code, retry_after, body)
        }
        Fault::StatusAfter { code } => {
            act();
            status(code, None, None)
        }
        Fault::Refuse { error } => {
            let mut reply = Reply::refused(Refusal::new(&error));
            if error.is_empty() {
                reply.body = json!({"ok": false});
            }
            world.answered(seq, 200, Some(&reply.body));
            respond(&reply)
        }
        Fault::Hang { ms } => {
            tokio::time::sleep(Duration::from_millis(ms)).await;
            broken(None)
        }
        Fault::Lost { ms } => {
            act();
            tokio::time::sleep(Duration::from_millis(ms)).await;
            broken(None)
        }
        Fault::CutAnswer => {
            let body = act().body.to_string();
            broken(Some(body))
        }
        Fault::Html => {
            world.answered(seq, 200, None);
            let page =
                "<!DOCTYPE html><html><head><title>Slack</title></head><body>Server Error</body></html>";
            ([(header::CONTENT_TYPE, "text/html; charset=utf-8")], page).into_response()
        }
        Fault::NoContent => {
            world.answered(seq, 204, None);
            StatusCode::NO_CONTENT.into_response()
        }
        Fault::Duplicate => {
            act();
            respond(&act())
        }
    }
}

fn respond(reply: &Reply) -> Response {
    let mut response =
        ([(header::CONTENT_TYPE, "application/json; charset=utf-8")], reply.body.to_string()).into_response();
    *response.status_mut() = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::OK);
    if let Some(seconds) = reply.retry_after {
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    if let Some(scopes) = reply.scopes.as_ref().and_then(|scopes| scopes.parse().ok()) {
        response.headers_mut().insert("x-oauth-scopes", scopes);
    }
    response
}

/// A bare HTTP status; an empty `body` means no content type either.
fn status(code: u16, retry_after: Option<u64>, body: Option<String>) -> Response {
    let code = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = match body {
        Some(body) if body.is_empty() => code.into_response(),
        Some(body) => (code, body).into_response(),
        None if code == StatusCode::TOO_MANY_REQUESTS => {
            let body = json!({"ok": false, "error": "ratelimited"}).to_string();
            (code, [(header::CONTENT_TYPE, "application/json; charset=utf-8")], body).into_response()
        }
        None => (code, [(header::CONTENT_TYPE, "text/html")], "<html>upstream error</html>").into_response(),
    };
    if let Some(seconds) = retry_after {
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    response
}

/// A connection that breaks: at once, or in the middle of this body.
fn broken(body: Option<String>) -> Response {
    let gone = || io::Error::new(io::ErrorKind::ConnectionReset, "scripted");
    let length = body.as_ref().map_or(100, String::len).max(2);
    let half = body.map(|body| Bytes::copy_from_slice(&body.as_bytes()[..body.len() / 2]));
    let stream = futures_util::stream::unfold((half, false), move |(half, paused)| async move {
        if let Some(half) = half {
            return Some((Ok(half), (None, true)));
        }
        if paused {
            // Lets the first half go out before the connection breaks.
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Some((Err(gone()), (None, false)))
    });
    (
        [(header::CONTENT_TYPE, "application/json".to_owned()), (header::CONTENT_LENGTH, length.to_string())],
        Body::from_stream(stream),
    )
        .into_response()
}

impl SlackWorld {
    fn carry_out(&self, seq: u64, name: &str, args: &Args) -> Reply {
        let now_ms = self.time.now_ms();
        let reply = self.change(|state| answer(state, now_ms, name, args));
        self.answered(seq, reply.status, Some(&reply.body));
        reply
    }

    /// Records a request on arrival.
    pub(crate) fn arrived(&self, name: &str, http: &str, args: &Args, fault: Option<&Fault>) -> u64 {
        let at_ms = self.time.now_ms();
        self.change(|state| {
            let install = args
                .token()
                .and_then(|token| state.installs.get(token))
                .map(|install| install.key().to_owned());
            let seq = state.forgotten + state.requests.len() as u64 + 1;
            let key = install.as_deref().unwrap_or("?");
            let impatient = state.rates.impatient(at_ms, name, key, args.text("channel"));
            let fault = fault.and_then(|fault| serde_json::to_value(fault).ok());
            state.requests.push(Recorded {
                seq,
                at_ms,
                method: name.into(),
                http: http.into(),
                encoding: args.encoding.into(),
                install,
                arguments: Value::Object(args.values.clone()),
                fault: fault.and_then(|fault| fault["fault"].as_str().map(Into::into)),
                status: None,
                response: None,
                impatient,
            });
            seq
        })
    }

    /// Records what was answered.
    pub(crate) fn answered(&self, seq: u64, status: u16, body: Option<&Value>) {
        self.change(|state| {
            if let Some(request) = state.request(seq) {
                request.status = Some(status);
                request.response = body.cloned();
            }
        });
    }

    fn park(&self, seq: u64, name: &str, seconds: u64) {
        let now_ms = self.time.now_ms();
        self.change(|state| {
            let key = state.request(seq).and_then(|request| request.install.clone());
            state.rates.park(now_ms, name, key.as_deref().unwrap_or("?"), seconds);
        });
    }
}

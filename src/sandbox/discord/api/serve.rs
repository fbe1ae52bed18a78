//! The REST interface over HTTP: reads the request, lets scripted trouble strike, records everything.
//!
//! Invariant: a fault of the kind "after" strikes when the effect is in the world; one of the kind
//! "before" leaves the world as it was. A request is recorded when it arrives, its answer when it
//! is decided. Answers are exactly `application/json`: clients take a charset suffix for text.

use super::body::{self, Body};
use super::routes::{self, Found, Route};
use super::{Answer, Call, carry_out};
use crate::sandbox::discord::error::Refusal;
use crate::sandbox::discord::limits::{Scope, Standing, TooMany};
use crate::sandbox::discord::scripts::Script;
use crate::sandbox::discord::types::Recorded;
use crate::sandbox::discord::world::{DiscordWorld, State as World};
use crate::sandbox::faults::Fault;
use axum::Router;
use axum::body::{Body as Stream, Bytes};
use axum::extract::{DefaultBodyLimit, Path, RawQuery, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use serde_json::{Value, json};
use std::io;
use std::sync::Arc;
use std::time::Duration;

const JSON: &str = "application/json";

pub(crate) fn routes() -> Router<Arc<DiscordWorld>> {
    Router::new()
        .route("/discord/api/{version}/{*path}", any(call))
        .layer(DefaultBodyLimit::max(30 * 1024 * 1024))
}

/// One request, as it came.
struct Request<'r> {
    route: Option<Route>,
    /// As recorded: known templates, else `? METHOD path`.
    name: String,
    ids: Vec<&'r str>,
    query: Vec<(String, String)>,
    bot_token: Option<String>,
    user_agent: String,
    body: Result<Body, Refusal>,
    /// Refuses whatever else it is.
    refused: Option<Refusal>,
}

/// An answer before scripted trouble.
#[derive(Debug, Clone)]
struct Reply {
    status: u16,
    body: Option<Value>,
    /// In place of `body`.
    raw: Option<String>,
    headers: Vec<(String, String)>,
}

impl Reply {
    fn refused(refusal: &Refusal) -> Self {
        Self { status: refusal.status, body: Some(refusal.body()), raw: None, headers: Vec::new() }
    }

    fn page(status: u16) -> Self {
        let script = Script::html("*", status);
        Self {
            status,
            body: None,
            raw: script.body,
            headers: vec![("content-type".into(), "text/html; charset=UTF-8".into())],
        }
    }
}

async fn call(
    State(world): State<Arc<DiscordWorld>>,
    Path((version, path)): Path<(String, String)>,
    method: Method,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    bytes: Bytes,
) -> Response {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let (route, ids, mut refused) = match routes::find(method.as_str(), &path) {
        Found::Route(route, ids) => (Some(route), ids, None),
        Found::OtherMethod => (None, Vec::new(), Some(Refusal::method())),
        Found::Unknown => (None, Vec::new(), Some(Refusal::not_found())),
    };
    if version != "v10" {
        refused = Some(Refusal { code: 50041, message: "Invalid API version".into(), ..Refusal::new(50041) });
    }
    let name = route.map_or_else(|| format!("? {method} /{path}"), |route| route.name.to_owned());
    let query = query.unwrap_or_default();
    let request = Request {
        route,
        name,
        ids,
        query: url::form_urlencoded::parse(query.as_bytes()).into_owned().collect(),
        bot_token: text(header::AUTHORIZATION).strip_prefix("Bot ").map(str::to_owned),
        user_agent: text(header::USER_AGENT).to_owned(),
        body: body::read(&headers, &bytes),
        refused,
    };
    let fault = world.faults().take(&request.name);
    let seq = world.arrived(&request, &query, fault.as_ref());
    match fault {
        None => respond(&world.answer(seq, &request)),
        Some(fault) => struck(&world, fault, seq, &request).await,
    }
}

/// Lets one fault strike.
async fn struck(world: &DiscordWorld, fault: Fault, seq: u64, request: &Request<'_>) -> Response {
    let act = || world.answer(seq, request);
    let waits = |ms: u64| tokio::time::sleep(Duration::from_millis(ms));
    match fault {
        Fault::Delay { ms } => {
            waits(ms).await;
            respond(&act())
        }
        Fault::DelayAnswer { ms } => {
            let reply = act();
            waits(ms).await;
            respond(&reply)
        }
        Fault::Status { code, retry_after, body } => {
            let reply = status(code, retry_after, body);
            world.answered(seq, &reply, request);
            respond(&reply)
        }
        Fault::StatusAfter { code } => {
            act();
            respond(&status(code, None, None))
        }
        Fault::Refuse { error } => {
            let reply = Reply::refused(&Refusal::scripted(&error));
            world.answered(seq, &reply, request);
            respond(&reply)
        }
        Fault::Hang { ms } => {
            waits(ms).await;
            broken(None)
        }
        Fault::Lost { ms } => {
            act();
            waits(ms).await;
            broken(None)
        }
        Fault::CutAnswer => {
            let body = act().body.unwrap_or_default().to_string();
            broken(Some(body))
        }
        Fault::Html => {
            let reply = Reply { status: 200, ..Reply::page(200) };
            world.answered(seq, &reply, request);
            respond(&reply)
        }
        Fault::NoContent => {
            let reply = Reply { status: 204, body: None, raw: None, headers: Vec::new() };
            world.answered(seq, &reply, request);
            respond(&reply)
        }
        Fault::Duplicate => {
            act();
            respond(&act())
        }
    }
}

/// A bare status, with Discord's words or a proxy's.
fn status(code: u16, retry_after: Option<u64>, body: Option<String>) -> Reply {
    let mut headers = Vec::new();
    if let Some(seconds) = retry_after {
        headers.push(("retry-after".to_owned(), seconds.to_string()));
    }
    match body {
        Some(raw) => {
            let kind = if raw.starts_with('{') { JSON } else { "text/html" };
            headers.push(("content-type".into(), kind.into()));
            Reply { status: code, body: None, raw: Some(raw), headers }
        }
        None if code == 429 => {
            let seconds = retry_after.unwrap_or(1);
            let body =
                json!({"message": "You are being rate limited.", "retry_after": seconds, "global": false});
            Reply { status: 429, body: Some(body), raw: None, headers }
        }
        None if code == 401 => Reply::refused(&Refusal::unauthorized()),
        None => {
            headers.push(("content-type".into(), "text/html".into()));
            Reply { status: code, body: None, raw: Some("<html>upstream error</html>".into()), headers }
        }
    }
}

fn respond(reply: &Reply) -> Response {
    let code = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = match (&reply.raw, &reply.body) {
        (Some(raw), _) => (code, raw.clone()).into_response(),
        (None, Some(body)) => (code, [(header::CONTENT_TYPE, JSON)], body.to_string()).into_response(),
        (None, None) => code.into_response(),
    };
    for (name, value) in &reply.headers {
        let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) else {
            continue;
        };
        response.headers_mut().insert(name, value);
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
        [(header::CONTENT_TYPE, JSON.to_owned()), (header::CONTENT_LENGTH, length.to_string())],
        Stream::from_stream(stream),
    )
        .into_response()
}

fn standing_headers(standing: &Standing) -> Vec<(String, String)> {
    #[expect(clippy::cast_precision_loss, reason = "milliseconds of this century fit")]
    let seconds = |ms: i64| format!("{:.3}", ms as f64 / 1_000.0);
    vec![
        ("x-ratelimit-limit".into(), standing.limit.to_string()),
        ("x-ratelimit-remaining".into(), standing.remaining.to_string()),
        ("x-ratelimit-reset".into(), seconds(standing.reset_ms)),
        ("x-ratelimit-reset-after".into(), seconds(standing.reset_after_ms)),
        ("x-ratelimit-bucket".into(), standing.bucket.clone()),
    ]
}

fn limited(many: &TooMany) -> Reply {
    #[expect(clippy::cast_precision_loss, reason = "a wait is short")]
    let seconds = many.wait_ms as f64 / 1_000.0;
    let global = many.scope == Scope::Global;
    let mut headers = many.standing.as_ref().map(standing_headers).unwrap_or_default();
    headers.push(("retry-after".into(), format!("{}", seconds.ceil())));
    headers.push(("x-ratelimit-scope".into(), if global { "global" } else { "user" }.into()));
    if global {
        headers.push(("x-ratelimit-global".into(), "true".into()));
    }
    let body = json!({"message": "You are being rate limited.", "retry_after": seconds, "global": global});
    Reply { status: 429, body: Some(body), raw: None, headers }
}

impl DiscordWorld {
    fn answer(&self, seq: u64, request: &Request<'_>) -> Reply {
        let now_ms = self.time.now_ms();
        let reply = self.change(|state| decided(state, request, now_ms));
        self.answered(seq, &reply, request);
        reply
    }

    /// Records a request on arrival.
    fn arrived(&self, request: &Request<'_>, query: &str, fault: Option<&Fault>) -> u64 {
        let at_ms = self.time.now_ms();
        self.change(|state| {
            let seq = state.forgotten + state.requests.len() as u64 + 1;
            let bot = request
                .bot_token
                .as_ref()
                .map(|token| state.tokens.get(token).cloned().unwrap_or_else(|| "?".into()));
            let by_token = request.route.is_some_and(|route| route.by_token);
            let key = bot.clone().filter(|_| !by_token).unwrap_or_default();
            let mut ids: Vec<String> = request.ids.iter().map(|&id| id.to_owned()).collect();
            let bucket = format!("{} {}", request.name, routes::major(&request.name, &request.ids));
            if by_token && let Some(token) = ids.get_mut(1) {
                *token = state.click_tokens.get(token).cloned().unwrap_or_else(|| "?".into());
            }
            let impatient = state.rates.impatient(at_ms, &key, &bucket, by_token);
            let fault = fault.and_then(|fault| serde_json::to_value(fault).ok());
            let body = request.body.as_ref().ok();
            state.requests.push(Recorded {
                seq,
                at_ms,
                route: request.name.clone(),
                ids,
                query: query.to_owned(),
                bot,
                body: body.map(|body| body.json.clone()).unwrap_or_default(),
                files: body
                    .into_iter()
                    .flat_map(|body| &body.files)
                    .map(|file| file.filename.clone())
                    .collect(),
                fault: fault.and_then(|fault| fault["fault"].as_str().map(Into::into)),
                status: None,
                response: None,
                impatient,
            });
            seq
        })
    }

    /// Records what was answered, and what it counts for.
    fn answered(&self, seq: u64, reply: &Reply, request: &Request<'_>) {
        let now_ms = self.time.now_ms();
        self.change(|state| {
            if let Some(recorded) = state.request(seq) {
                recorded.status = Some(reply.status);
                recorded.response.clone_from(&reply.body);
            }
            let header = |wanted: &str| {
                reply.headers.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str())
            };
            let scope = header("x-ratelimit-scope");
            if matches!(reply.status, 401 | 403) || (reply.status == 429 && scope != Some("shared")) {
                state.invalid.push_back(now_ms);
            }
            let Some(seconds) = header("retry-after").and_then(|seconds| seconds.parse::<f64>().ok()) else {
                return;
            };
            if reply.status != 429 || !(0.0..=3_600.0).contains(&seconds) {
                return;
            }
            let wait = reply.body.as_ref().and_then(|body| body["retry_after"].as_f64()).unwrap_or(seconds);
            #[expect(clippy::cast_possible_truncation, reason = "at most an hour")]
            let wait_ms = (wait * 1_000.0) as i64;
            let by_token = request.route.is_some_and(|route| route.by_token);
            let token = request.bot_token.as_ref().and_then(|token| state.tokens.get(token));
            let bot = token.cloned().filter(|_| !by_token).unwrap_or_default();
            let global = scope == Some("global");
            let bucket = format!("{} {}", request.name, routes::major(&request.name, &request.ids));
            state.rates.park(now_ms, &bot, if global { "" } else { &bucket }, wait_ms);
        });
    }
}

/// Decides one call: the script, the ban, then the call itself.
fn decided(state: &mut World, request: &Request<'_>, now_ms: i64) -> Reply {
    while state.invalid.front().is_some_and(|at| now_ms - at > 600_000) {
        state.invalid.pop_front();
    }
    let major = routes::major(&request.name, &request.ids);
    let script = state.scripts.take(&request.name, &major);
    let mut reply = match &script {
        Some(script) if !script.act => Reply { status: 200, body: None, raw: None, headers: Vec::new() },
        _ if state.invalid.len() >= state.switches.ban_after => Reply::page(429),
        _ => allowed(state, request, &major, now_ms),
    };
    if let Some(script) = script {
        reply.status = script.status.unwrap_or(reply.status);
        if let Some(body) = script.body {
            reply.body = serde_json::from_str(&body).ok();
            reply.raw = Some(body);
        }
        for (name, value) in script.headers {
            reply.headers.retain(|(known, _)| *known != name);
            reply.headers.extend(value.map(|value| (name, value)));
        }
    }
    reply
}

fn allowed(state: &mut World, request: &Request<'_>, major: &str, now_ms: i64) -> Reply {
    let Some(route) = request.route.filter(|_| request.refused.is_none()) else {
        return Reply::refused(request.refused.as_ref().unwrap_or(&Refusal::not_found()));
    };
    let known = request.bot_token.as_ref().and_then(|token| state.tokens.get(token)).cloned();
    let app = if route.by_token {
        let click = request.ids.get(1).and_then(|token| state.click_by_token(token));
        click.map(|click| click.app.clone()).unwrap_or_default()
    } else {
        match known.filter(|app| state.apps.get(app).is_some_and(|app| app.token_live)) {
            Some(app) => app,
            None => return Reply::refused(&Refusal::unauthorized()),
        }
    };
    if !route.by_token && state.switches.user_agent && !is_discord_bot(&request.user_agent) {
        return Reply::refused(&Refusal::new(40333));
    }
    let key = if route.by_token { String::new() } else { app.clone() };
    let standing = match state.rates.take(now_ms, route.name, major, &key) {
        Ok(standing) => standing,
        Err(many) => return limited(&many),
    };
    let answer: Answer = match &request.body {
        Err(refusal) => Err(refusal.clone()),
        Ok(body) => {
            let bot = state.apps.get(&app).map(|app| app.bot_user.clone()).unwrap_or_default();
            let call = Call { ids: &request.ids, query: &request.query, body, app, bot, now_ms };
            carry_out(state, &call, route.name)
        }
    };
    let mut reply = match answer {
        Ok((status, body)) => Reply { status, body, raw: None, headers: Vec::new() },
        Err(refusal) => Reply::refused(&refusal),
    };
    reply.headers.extend(standing.iter().flat_map(standing_headers));
    reply
}

/// `DiscordBot (URL, VERSION)`, perhaps with more behind it.
fn is_discord_bot(agent: &str) -> bool {
    let Some(rest) = agent.strip_prefix("DiscordBot (") else { return false };
    let Some((inner, _)) = rest.split_once(')') else { return false };
    inner.split_once(", ").is_some_and(|(url, version)| url.starts_with("http") && !version.trim().is_empty())
}

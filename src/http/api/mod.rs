//! `/api/v1`: what operators' programs may see and say. Bearer: `server.operator_token`.
//!
//! Invariant: nothing in here clicks, answers or links. The token is compared without telling by time
//! how much of it was right; without a configured token everybody is refused. What is not understood
//! is refused with the name of the field, never ignored.

pub mod openapi;
pub(crate) mod types;

use super::Http;
use super::problem::Problem;
use crate::bridge::operators::Listed;
use crate::domain::audit::AuditRow;
use crate::domain::audit_file::to_jsonl;
use crate::domain::ids::{InteractionId, Subject};
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, FromRequest, Request, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use ring::hmac;
use secrecy::{ExposeSecret, SecretString};
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::sync::Arc;
use types::{AuditPage, Interactions, NewTask, Registered};
use uuid::Uuid;

pub(super) const INTERACTIONS: &str = "/api/v1/interactions";
pub(super) const TASKS: &str = "/api/v1/tasks";
pub(super) const AUDIT: &str = "/api/v1/audit";
pub(super) const OPENAPI: &str = "/api/v1/openapi.json";

/// A registration is small.
const LARGEST: usize = 16 * 1024;
const PAGE: i64 = 50;
const LARGEST_PAGE: i64 = 200;
const AUDIT_PAGE: i64 = 1000;
/// Ids of tasks and contexts, in characters.
const LONGEST_ID: usize = 1024;

/// The operator token, kept as the key that recognises it.
pub struct Operator {
    key: hmac::Key,
    token: SecretString,
}

impl std::fmt::Debug for Operator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Operator")
    }
}

impl Operator {
    #[must_use]
    pub fn new(token: SecretString) -> Self {
        Self { key: hmac::Key::new(hmac::HMAC_SHA256, token.expose_secret().as_bytes()), token }
    }

    /// Compares codes of the two under the token as key: ring does that in constant time.
    fn is(&self, presented: &[u8]) -> bool {
        let code = hmac::sign(&self.key, presented);
        hmac::verify(&self.key, self.token.expose_secret().as_bytes(), code.as_ref()).is_ok()
    }
}

pub(super) fn routes(http: &Arc<Http>) -> Router<Arc<Http>> {
    Router::new()
        .route(INTERACTIONS, get(interactions))
        .route(TASKS, post(register).layer(DefaultBodyLimit::max(LARGEST)))
        .route(AUDIT, get(audit))
        .route(OPENAPI, get(async || ([(header::CONTENT_TYPE, "application/json")], openapi::CHECKED_IN)))
        .route_layer(from_fn_with_state(Arc::clone(http), authorize))
}

/// Lets operators pass.
pub(super) async fn authorize(State(http): State<Arc<Http>>, request: Request, next: Next) -> Response {
    let Some(operator) = &http.operator else { return Problem::closed().into_response() };
    let mut values = request.headers().get_all(header::AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return Problem::no_token().into_response();
    };
    let token =
        value.as_bytes().split_at_checked(7).filter(|(scheme, _)| scheme.eq_ignore_ascii_case(b"bearer "));
    match token {
        Some((_, token)) if operator.is(token.trim_ascii()) => next.run(request).await,
        _ => Problem::no_token().into_response(),
    }
}

/// `GET /api/v1/interactions?state=open|all&cursor=…&limit=1..200`: oldest first. `open` (the default)
/// is everything that has not ended, so also what is being answered.
async fn interactions(State(http): State<Arc<Http>>, uri: Uri) -> Result<Response, Problem> {
    let query = parameters(&uri, &["state", "cursor", "limit"])?;
    let open_only = match query.get("state").map(String::as_str) {
        None | Some("open") => true,
        Some("all") => false,
        Some(_) => return Err(Problem::malformed("state", "state is `open` or `all`")),
    };
    let after = match query.get("cursor") {
        None => Uuid::nil(),
        Some(text) => Uuid::parse_str(text)
            .map_err(|_| Problem::malformed("cursor", "cursor is the `next` of the page before"))?,
    };
    let limit = number(&query, "limit", PAGE, 1, LARGEST_PAGE)?;
    let found = http.bridge.list_interactions(open_only, InteractionId(after), limit).await?;
    let full = i64::try_from(found.len()) == Ok(limit);
    let next = found.last().filter(|_| full).map(|last| last.interaction.id.0.to_string());
    let interactions = found.iter().map(|Listed { interaction, cards, route }| {
        types::Interaction::new(
            interaction,
            cards,
            route.as_ref().map(|(route, hash)| (*route, hash.as_str())),
        )
    });
    Ok(Json(Interactions { interactions: interactions.collect(), next }).into_response())
}

/// `POST /api/v1/tasks {runtime, taskId, contextId, subject?}`: watches a task from now on. Idempotent.
/// With `subject`, the task is read as that subject; once such a reading has succeeded the subject
/// counts as the one for whom the agent works. On a runtime that lets every subject read every task,
/// that is the registering program's word.
async fn register(State(http): State<Arc<Http>>, request: Request) -> Result<Response, Problem> {
    let task: NewTask = json(request, LARGEST).await?;
    let NewTask { runtime, task_id, context_id, subject } = task;
    if !http.bridge.knows_runtime(&runtime) {
        let shown: String = runtime.chars().take(100).collect();
        return Err(Problem::unfit("runtime", format!("no runtime named {shown:?} is configured")));
    }
    for (field, id) in [("taskId", &task_id), ("contextId", &context_id)] {
        if id.is_empty() || id.chars().count() > LONGEST_ID || id.chars().any(char::is_control) {
            let detail = format!("{field} has 1 to {LONGEST_ID} characters, and no control characters");
            return Err(Problem::unfit(field, detail));
        }
    }
    let subject = match subject {
        None => None,
        Some(text) => {
            Some(Subject::parse(&text).map_err(|error| Problem::unfit("subject", error.to_string()))?)
        }
    };
    http.bridge.register_task(&runtime, &task_id, Some(&context_id), subject.as_ref()).await?;
    Ok((StatusCode::ACCEPTED, Json(Registered { registered: true })).into_response())
}

/// `GET /api/v1/audit?from=1&limit=1..1000`: rows from that `seq` on, ascending, as JSON Lines (what
/// `audit export` writes); as one JSON object with `Accept: application/json`. An empty answer is the
/// end; go on at the last `seq` + 1.
async fn audit(State(http): State<Arc<Http>>, uri: Uri, headers: HeaderMap) -> Result<Response, Problem> {
    let query = parameters(&uri, &["from", "limit"])?;
    let from = number(&query, "from", 1, 0, i64::MAX)?;
    let limit = number(&query, "limit", AUDIT_PAGE, 1, AUDIT_PAGE)?;
    let rows = http.bridge.audit_rows(from, limit).await?;
    let as_object = headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|kind| kind.split(';').next().is_some_and(|kind| kind.trim() == "application/json"));
    if as_object {
        let full = i64::try_from(rows.len()) == Ok(limit);
        let next = rows.last().filter(|_| full).map(|row: &AuditRow| row.seq.saturating_add(1));
        return Ok(Json(AuditPage { rows: &rows, next }).into_response());
    }
    let lines: String = rows.iter().map(to_jsonl).collect();
    Ok(([(header::CONTENT_TYPE, "application/x-ndjson")], lines).into_response())
}

/// The query's parameters: each once, and none we do not know.
fn parameters(uri: &Uri, known: &[&str]) -> Result<BTreeMap<String, String>, Problem> {
    let mut all = BTreeMap::new();
    for (name, value) in url::form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes()) {
        let short: String = name.chars().take(100).collect();
        if !known.contains(&name.as_ref()) {
            let detail = format!("no such parameter; known are {}", known.join(", "));
            return Err(Problem::malformed(&short, detail));
        }
        if all.insert(name.into_owned(), value.into_owned()).is_some() {
            return Err(Problem::malformed(&short, "the parameter is given twice"));
        }
    }
    Ok(all)
}

fn number(
    query: &BTreeMap<String, String>,
    name: &str,
    default: i64,
    least: i64,
    most: i64,
) -> Result<i64, Problem> {
    let Some(text) = query.get(name) else { return Ok(default) };
    text.parse().ok().filter(|n| (least..=most).contains(n)).ok_or_else(|| {
        let range =
            if most == i64::MAX { format!("from {least} on") } else { format!("from {least} to {most}") };
        Problem::malformed(name, format!("{name} is a whole number {range}"))
    })
}

/// A JSON body, read strictly: its type said, no unknown field, no missing one.
async fn json<T: DeserializeOwned>(request: Request, limit: usize) -> Result<T, Problem> {
    let kind = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let kind = kind.and_then(|kind| kind.split(';').next()).map(str::trim);
    if !kind.is_some_and(|kind| kind.eq_ignore_ascii_case("application/json")) {
        return Err(Problem::wrong_type());
    }
    let body = Bytes::from_request(request, &()).await.map_err(|rejected| {
        if rejected.status() == StatusCode::PAYLOAD_TOO_LARGE {
            Problem::too_big(limit)
        } else {
            Problem::broken_off()
        }
    })?;
    let mut reader = serde_json::Deserializer::from_slice(&body);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let field = error.path().to_string();
        unfit(if field == "." { "" } else { &field }, error.inner())
    })?;
    reader.end().map_err(|error| unfit("", &error))?;
    Ok(value)
}

fn unfit(field: &str, error: &serde_json::Error) -> Problem {
    if !error.is_data() {
        return Problem::not_json(error.line(), error.column());
    }
    // serde names the field in its message; it is taken out so that programs can read it.
    let message = error.to_string();
    let named = ["missing field `", "unknown field `", "duplicate field `"]
        .iter()
        .find_map(|start| message.strip_prefix(start)?.split('`').next())
        .map(|name| name.chars().take(100).collect::<String>());
    let detail: String = message.chars().take(300).collect();
    Problem::unfit(named.as_deref().unwrap_or(field), detail)
}

//! The JSON-RPC binding (A2A 1.0 §9): one object per POST, HTTP 200 for results and errors alike.
//!
//! Order of checks: content type, credential, subject, agent, envelope, version, method.

use super::auth::{Caller, Identity};
use super::error::{A2aError, Code, Refusal};
use super::hooks::When;
use super::ops::{self, Call};
use super::switches::Binding;
use super::world::A2aWorld;
use super::{INTERACTIONS_V1, faulty, record, render};
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, Uri, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};
use std::sync::Arc;

pub(super) async fn post(
    State(world): State<Arc<A2aWorld>>,
    Path(agent): Path<String>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let parsed = serde_json::from_slice::<Value>(&body).ok();
    let member = |name: &str| parsed.as_ref().and_then(|body| body.get(name));
    let method = member("method").and_then(Value::as_str).unwrap_or_default().to_owned();
    let id = member("id").filter(|id| is_id(id)).cloned().unwrap_or_default();
    let kept = parsed.clone().unwrap_or_else(|| String::from_utf8_lossy(&body).into_owned().into());
    let n = record::begin(&world, &agent, &method, format!("POST {uri}"), &headers, kept);
    let fault = world.faults().take(&method);
    record::note(&world, n, |record| record.fault.clone_from(&fault));

    let refuse = |name: &str| error(&id, &A2aError::scripted(name));
    let arrived = Arc::new(Arrived { world, agent, uri, headers, method, id: id.clone(), body: parsed, n });
    faulty::around(fault, refuse, move || Arc::clone(&arrived).answer()).await
}

fn is_id(id: &Value) -> bool {
    id.is_string() || id.is_number()
}

fn error(id: &Value, refused: &A2aError) -> Response {
    respond(&json!({"jsonrpc": "2.0", "id": id, "error": refused.to_rpc()}), false)
}

fn respond(answer: &Value, round_trip: bool) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], render::body(answer, round_trip)).into_response()
}

/// Refused below the protocol, or by it.
pub(super) enum Refused {
    Http(Refusal),
    A2a(A2aError),
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        Self::Http(refusal)
    }
}

impl From<A2aError> for Refused {
    fn from(error: A2aError) -> Self {
        Self::A2a(error)
    }
}

/// A request as far as it is read.
struct Arrived {
    world: Arc<A2aWorld>,
    agent: String,
    uri: Uri,
    headers: HeaderMap,
    method: String,
    id: Value,
    /// `None` = not JSON.
    body: Option<Value>,
    /// Its number in the record.
    n: u64,
}

impl Arrived {
    async fn answer(self: Arc<Self>) -> Response {
        self.world.run_hook(&self.method, When::Before);
        let (response, code, refusal) = match self.result().await {
            Ok(result) => {
                let answer = json!({"jsonrpc": "2.0", "id": self.id, "result": result});
                (respond(&answer, self.world.switches().round_trip), None, None)
            }
            Err(Refused::A2a(refused)) => (error(&self.id, &refused), Some(refused.code.number()), None),
            Err(Refused::Http(refused)) => {
                let code = refused.code;
                (refused.into_response(), None, Some(code))
            }
        };
        record::note(&self.world, self.n, |record| {
            record.status = Some(response.status().as_u16());
            record.error = code;
            record.refusal = refusal;
        });
        self.world.run_hook(&self.method, When::After);
        response
    }

    /// Caller, envelope, version, method.
    async fn result(&self) -> Result<Value, Refused> {
        let at = (self.agent.as_str(), Binding::JsonRpc);
        let identity = caller(&self.world, at, &self.headers, true, self.n).await?;
        let body = self.body.as_ref();
        let body = body.ok_or_else(|| A2aError::new(Code::Parse, "The body is not JSON"))?;
        let envelope = |message: &str| A2aError::new(Code::Envelope, message);
        let body = body.as_object().ok_or_else(|| envelope("Send one request object"))?;
        if body.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
            return Err(envelope("jsonrpc must be 2.0").into());
        }
        if !body.get("id").is_some_and(is_id) {
            return Err(envelope("id must be a string or a number").into());
        }
        let method = body.get("method").and_then(Value::as_str);
        let method = method.ok_or_else(|| envelope("method must be a string"))?;
        version(&self.headers, &self.uri)?;
        let empty = Map::new();
        let params = match body.get("params") {
            None | Some(Value::Null) => &empty,
            Some(Value::Object(params)) => params,
            Some(_) => return Err(A2aError::field("params", "must be an object").into()),
        };
        watches_only(&identity, method)?;
        let call = Call {
            world: &self.world,
            agent: &self.agent,
            caller: &identity.caller,
            extension: names_extension(&self.headers),
        };
        Ok(ops::run(&call, method, params).await?)
    }
}

/// Content type, credential, subject, agent: the same for both bindings.
pub(super) async fn caller(
    world: &A2aWorld,
    (agent, binding): (&str, Binding),
    headers: &HeaderMap,
    with_body: bool,
    n: u64,
) -> Result<Identity, Refusal> {
    if with_body && !is_json(headers) {
        return Err(Refusal::new(415, "content_type", "Send application/json or application/a2a+json."));
    }
    let identity = world.auth().identify(headers, world.now_ms()).await?;
    record::note_caller(world, n, &identity);
    if !world.with(|inner| inner.cards.contains_key(agent) && inner.switches.bindings.contains(&binding)) {
        return Err(Refusal::new(404, "agent_not_found", "There is no such agent."));
    }
    Ok(identity)
}

/// A credential that only watches changes nothing.
pub(super) fn watches_only(identity: &Identity, method: &str) -> Result<(), Refusal> {
    if identity.caller == Caller::Watcher && ops::changes(method) {
        return Err(Refusal::new(403, "scope_required", "This credential only watches."));
    }
    Ok(())
}

/// `application/json` or `application/a2a+json`, with or without parameters.
fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("application/json") || kind.eq_ignore_ascii_case("application/a2a+json")
}

/// `A2A-Extensions` is a comma-separated list (A2A 1.0 §3.2.6).
pub(super) fn names_extension(headers: &HeaderMap) -> bool {
    headers
        .get_all("a2a-extensions")
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|uri| uri.trim() == INTERACTIONS_V1)
}

/// `A2A-Version` as a header or in the query; missing or empty means 0.3 (A2A 1.0 §3.6). A patch
/// part is ignored.
pub(super) fn version(headers: &HeaderMap, uri: &Uri) -> Result<(), A2aError> {
    let header = headers.get("a2a-version").map(|value| value.to_str().unwrap_or("?").trim());
    let query = uri.query().unwrap_or_default().split('&').find_map(|pair| {
        let (name, value) = pair.split_once('=')?;
        name.eq_ignore_ascii_case("a2a-version").then_some(value)
    });
    let given = header.filter(|value| !value.is_empty()).or(query).unwrap_or_default();
    let mut parts = given.split('.');
    let number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let fits = parts.next() == Some("1")
        && parts.next() == Some("0")
        && parts.next().is_none_or(number)
        && parts.next().is_none();
    if fits {
        return Ok(());
    }
    let read = if given.is_empty() { "0.3" } else { given };
    Err(A2aError::new(Code::Version, "This protocol version is not supported")
        .with("requestedVersion", read)
        .with("supportedVersions", "1.0"))
}

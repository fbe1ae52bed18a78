//! The HTTP+JSON binding (A2A 1.0 §11): a path per operation, bare objects as results.
//!
//! Strict: what stands in the path may be repeated in the body only with the same value, an unknown
//! or repeated query parameter is refused, and a tenant is the first segment of the path.
//!
//! Order of checks: content type, credential, subject, agent, version, path, parameters.

use super::error::{A2aError, Code, Refusal};
use super::hooks::When;
use super::ops::Call;
use super::rpc::{Done, Refused, caller, names_extension, run, version, watches_only};
use super::stream::Wrap;
use super::switches::{Binding, SubscribeBy};
use super::world::A2aWorld;
use super::{faulty, record, render};
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value};
use std::sync::Arc;
use url::form_urlencoded;

/// An operation and what its path says.
#[derive(Debug, Default)]
struct Found {
    operation: &'static str,
    /// Parameters in the path, the tenant among them.
    held: Vec<(&'static str, String)>,
    /// It takes no body, or may leave it out.
    bodiless: bool,
}

pub(super) async fn any(
    State(world): State<Arc<A2aWorld>>,
    Path((agent, _)): Path<(String, String)>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    // /a2a/{agent}/rest/…
    let segments: Vec<String> = uri.path().split('/').skip(4).map(decode).collect();
    let found = find(&method, &segments);
    let operation = found.as_ref().map_or("", |found| found.operation);
    let kept = match serde_json::from_slice::<Value>(&body) {
        Ok(body) => body,
        Err(_) if body.is_empty() => Value::Null,
        Err(_) => String::from_utf8_lossy(&body).into_owned().into(),
    };
    let n = record::begin(&world, &agent, operation, format!("{method} {uri}"), &headers, kept);
    let fault = world.faults().take(operation);
    record::note(&world, n, |record| record.fault.clone_from(&fault));

    let scripted = Arc::clone(&world);
    let refuse = |name: &str| error(&scripted, &A2aError::scripted(name));
    let arrived = Arc::new(Arrived { world, agent, method, uri, headers, found, body, n });
    faulty::around(fault, refuse, move || Arc::clone(&arrived).answer()).await
}

fn error(world: &A2aWorld, refused: &A2aError) -> Response {
    let (status, kind, body) = refused.to_rest(world.switches().errors);
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (status, [(header::CONTENT_TYPE, kind)], body.to_string()).into_response()
}

/// The operation at a path; with one more segment in front, that is the tenant.
fn find(method: &Method, segments: &[String]) -> Option<Found> {
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    if let Some(found) = at(method.as_str(), &segments) {
        return Some(found);
    }
    let (tenant, rest) = segments.split_first()?;
    let mut found = at(method.as_str(), rest)?;
    found.held.push(("tenant", (*tenant).to_owned()));
    Some(found)
}

fn at(method: &str, segments: &[&str]) -> Option<Found> {
    let found = |operation, held: &[(&'static str, &str)], bodiless| {
        let held = held.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        Some(Found { operation, held, bodiless })
    };
    match (method, segments) {
        ("POST", ["message:send"]) => found("SendMessage", &[], false),
        ("POST", ["message:stream"]) => found("SendStreamingMessage", &[], false),
        ("GET", ["tasks"]) => found("ListTasks", &[], true),
        ("GET", ["extendedAgentCard"]) => found("GetExtendedAgentCard", &[], true),
        (_, ["tasks", task]) => match (method, task.rsplit_once(':')) {
            ("POST", Some((id, "cancel"))) => found("CancelTask", &[("id", id)], true),
            ("GET" | "POST", Some((id, "subscribe"))) => found("SubscribeToTask", &[("id", id)], true),
            ("GET", _) => found("GetTask", &[("id", task)], true),
            _ => None,
        },
        ("POST", ["tasks", task, "pushNotificationConfigs"]) => {
            found("CreateTaskPushNotificationConfig", &[("taskId", task)], false)
        }
        ("GET", ["tasks", task, "pushNotificationConfigs"]) => {
            found("ListTaskPushNotificationConfigs", &[("taskId", task)], true)
        }
        ("GET" | "DELETE", ["tasks", task, "pushNotificationConfigs", id]) => {
            let operation = if method == "GET" {
                "GetTaskPushNotificationConfig"
            } else {
                "DeleteTaskPushNotificationConfig"
            };
            found(operation, &[("taskId", task), ("id", id)], true)
        }
        _ => None,
    }
}

/// A request as far as it is read.
struct Arrived {
    world: Arc<A2aWorld>,
    agent: String,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    found: Option<Found>,
    body: Bytes,
    /// Its number in the record.
    n: u64,
}

impl Arrived {
    async fn answer(self: Arc<Self>) -> Response {
        let operation = self.found.as_ref().map_or("", |found| found.operation);
        self.world.run_hook(operation, When::Before);
        let (response, code, refusal) = match self.result().await {
            Ok(Done::Feed(feed)) => {
                let style = self.world.switches().errors;
                let wrap: Wrap =
                    Box::new(move |event| event.unwrap_or_else(|refused| refused.to_rest(style).2));
                (feed.respond(wrap), None, None)
            }
            Ok(Done::Value(result)) => {
                let body = render::body(&result, self.world.switches().round_trip);
                (([(header::CONTENT_TYPE, "application/a2a+json")], body).into_response(), None, None)
            }
            Err(Refused::A2a(refused)) => (error(&self.world, &refused), Some(refused.code.number()), None),
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
        self.world.run_hook(operation, When::After);
        response
    }

    async fn result(&self) -> Result<Done, Refused> {
        let with_body = self.method == Method::POST && !self.body.is_empty();
        let at = (self.agent.as_str(), Binding::HttpJson);
        let identity = caller(&self.world, at, &self.headers, with_body, self.n).await?;
        version(&self.headers, &self.uri)?;
        let found = self.found.as_ref();
        let found = found.ok_or_else(|| A2aError::new(Code::Method, "There is no such operation"))?;
        let by = self.world.switches().subscribe_by;
        let other = match by {
            SubscribeBy::Both => false,
            SubscribeBy::Get => self.method != Method::GET,
            SubscribeBy::Post => self.method != Method::POST,
        };
        if found.operation == "SubscribeToTask" && other {
            return Err(Refusal::new(405, "method_not_allowed", "Subscribe by the other method.").into());
        }
        let params = self.params(found)?;
        let shown = record::without_secrets(Value::Object(params.clone()));
        record::note(&self.world, self.n, |record| record.params = Some(shown));
        watches_only(&identity, found.operation)?;
        let call = Call {
            world: &self.world,
            agent: &self.agent,
            caller: &identity.caller,
            extension: names_extension(&self.headers),
        };
        run(&self.world, &call, found.operation, &params).await
    }

    /// Body, query and path as the one object that the operations read.
    fn params(&self, found: &Found) -> Result<Map<String, Value>, A2aError> {
        let mut params = if self.method != Method::POST || (found.bodiless && self.body.is_empty()) {
            Map::new()
        } else {
            match serde_json::from_slice(&self.body) {
                Ok(Value::Object(body)) => body,
                Ok(_) => return Err(A2aError::new(Code::Envelope, "Send one object")),
                Err(_) => return Err(A2aError::new(Code::Parse, "The body is not JSON")),
            }
        };
        for (name, value) in form_urlencoded::parse(self.uri.query().unwrap_or_default().as_bytes()) {
            if name.eq_ignore_ascii_case("a2a-version") {
                continue;
            }
            if self.method == Method::POST {
                return Err(A2aError::field(&name, "unknown query parameter"));
            }
            if params.insert(name.clone().into_owned(), typed(&name, &value)).is_some() {
                return Err(A2aError::field(&name, "given twice"));
            }
        }
        for (name, value) in &found.held {
            let repeated = params.insert((*name).to_owned(), value.as_str().into());
            if repeated.is_some_and(|repeated| repeated != value.as_str() && repeated != "") {
                return Err(A2aError::field(name, "is not the one of the path"));
            }
        }
        // A tenant elsewhere than in the path is none.
        if params.contains_key("tenant") && found.held.iter().all(|(name, _)| *name != "tenant") {
            return Err(A2aError::field("tenant", "stands in the path"));
        }
        Ok(params)
    }
}

/// A query parameter as the type that its field has; what does not fit is refused by the operation.
fn typed(name: &str, value: &str) -> Value {
    match name {
        "pageSize" | "historyLength" => value.parse::<i64>().map_or_else(|_| value.into(), Into::into),
        "includeArtifacts" => value.parse::<bool>().map_or_else(|_| value.into(), Into::into),
        _ => value.into(),
    }
}

/// One segment of a path (RFC 3986 §2.1); what is no escape stays as it is.
fn decode(segment: &str) -> String {
    let bytes = segment.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let escaped = (*byte == b'%')
            .then(|| segment.get(at + 1..at + 3).and_then(|hex| u8::from_str_radix(hex, 16).ok()))
            .flatten();
        out.push(escaped.unwrap_or(*byte));
        at += if escaped.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&out).into_owned()
}

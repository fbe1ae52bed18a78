//! The HTTP+JSON binding (A2A 1.0 §11): a path per operation, bare objects as results.
//!
//! Invariants: what stands in the path stands nowhere else; an error is judged by its `reason`, else
//! by the problem's `type`, else by its status, never by its text; a status that a gateway uses
//! (401, 403, 408, 429, 5xx …) wins over whatever body it has.
//!
//! Known limit: an id of dots alone cannot be written into a path and is not asked for.

use super::call::Op;
use super::card::Interface;
use super::errors::{Failure, code, fields};
use super::wire::{Reply, Wire};
use crate::domain::clock::Millis;
use reqwest::Method;
use reqwest::header::CONTENT_TYPE;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// Where an operation is, below the interface and its tenant.
struct Place<'a> {
    method: Method,
    path: Vec<Cow<'a, str>>,
    /// Parameters that the path holds, so that neither query nor body repeats them.
    held: &'static [&'static str],
}

fn place(op: Op, params: &Map<String, Value>) -> Place<'_> {
    let named = |name: &str| params.get(name).and_then(Value::as_str).unwrap_or_default();
    let (method, path, held): (_, Vec<Cow<'_, str>>, &[_]) = match op {
        Op::SendMessage => (Method::POST, vec!["message:send".into()], &[]),
        Op::GetTask => (Method::GET, vec!["tasks".into(), named("id").into()], &["id"]),
        Op::ListTasks => (Method::GET, vec!["tasks".into()], &[]),
        Op::Subscribe | Op::SubscribeByPost => {
            let method = if op == Op::Subscribe { Method::GET } else { Method::POST };
            (method, vec!["tasks".into(), format!("{}:subscribe", named("id")).into()], &["id"])
        }
        Op::CreatePushConfig => {
            let path = vec!["tasks".into(), named("taskId").into(), "pushNotificationConfigs".into()];
            (Method::POST, path, &["taskId"])
        }
        Op::DeletePushConfig => {
            let configs = "pushNotificationConfigs".into();
            let path = vec!["tasks".into(), named("taskId").into(), configs, named("id").into()];
            (Method::DELETE, path, &["taskId", "id"])
        }
    };
    Place { method, path, held }
}

pub(crate) fn request(
    wire: &Wire,
    at: &Interface,
    op: Op,
    params: &Value,
) -> Result<reqwest::RequestBuilder, Failure> {
    const UNWRITABLE: Failure = Failure::Garbled("an id that no path can hold");
    let empty = Map::new();
    let params = params.as_object().unwrap_or(&empty);
    let Place { method, path, held } = place(op, params);
    let mut url = at.url.clone();
    {
        let mut segments = url.path_segments_mut().map_err(|()| UNWRITABLE)?;
        segments.pop_if_empty();
        for segment in at.tenant.as_deref().map(Cow::Borrowed).into_iter().chain(path) {
            // These would be taken for steps in the path.
            if matches!(&*segment, "" | "." | "..") {
                return Err(UNWRITABLE);
            }
            segments.push(&segment);
        }
    }
    let rest = params.iter().filter(|(name, _)| !held.contains(&name.as_str()));
    if method == Method::POST {
        let body = Value::Object(rest.map(|(name, value)| (name.clone(), value.clone())).collect());
        let request = wire.http.request(method, url).header(CONTENT_TYPE, "application/a2a+json");
        return Ok(request.body(body.to_string()));
    }
    for (name, value) in rest {
        match value {
            Value::Null => {}
            Value::String(text) => drop(url.query_pairs_mut().append_pair(name, text)),
            other => drop(url.query_pairs_mut().append_pair(name, &other.to_string())),
        }
    }
    Ok(wire.http.request(method, url))
}

pub(crate) fn understand(reply: &Reply, op: Op, now: Millis) -> Result<Value, Failure> {
    let body = reply.json();
    if (200..300).contains(&reply.status) {
        return match body.get("error") {
            Some(error) if error.is_object() => Err(judged(reply.status, op, &body, error)
                .unwrap_or(Failure::Garbled("an error in the place of a result"))),
            _ if body.is_object() => Ok(body),
            _ => Err(Failure::Garbled("no A2A answer")),
        };
    }
    let below = || Failure::http(reply.status, &body, reply.retry_after(now));
    let of_gateway = matches!(reply.status, 300..=399 | 401 | 403 | 408 | 421 | 426 | 429 | 500..);
    let judged = match body.get("error").filter(|error| error.is_object()) {
        Some(error) => judged(reply.status, op, &body, error),
        None => problem(&body).map(|code| Failure::Rpc { code, fields: vec![] }),
    };
    Err(match judged {
        // An agent that failed says 500 or 502 itself; a gateway's retry time still counts there.
        Some(Failure::Rpc { code: code::INVALID_AGENT_RESPONSE, .. })
            if matches!(reply.status, 500 | 502) && reply.retry_after(now).is_none() =>
        {
            Failure::Rpc { code: code::INVALID_AGENT_RESPONSE, fields: vec![] }
        }
        Some(failure) if !of_gateway => failure,
        // Not everybody has a list, streams or calls: no such method there, or none yet.
        _ if !matches!(op, Op::GetTask | Op::SendMessage) && matches!(reply.status, 405 | 501) => {
            Failure::Rpc { code: code::METHOD, fields: vec![] }
        }
        _ => below(),
    })
}

/// A `google.rpc` error: by its reason, else by the status (A2A 1.0 §11.6, and its older tables).
/// `None`: the status says nothing of the protocol.
fn judged(status: u16, op: Op, body: &Value, error: &Value) -> Option<Failure> {
    let details = error.get("details").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let reason = details.iter().find_map(|detail| of_reason(detail.get("reason")?.as_str()?));
    let by_status = || match status {
        400 => Some(code::PARAMS),
        // Where a task is named, it is that one; elsewhere, the operation.
        404 if matches!(op, Op::ListTasks) => Some(code::METHOD),
        404 => Some(code::TASK_NOT_FOUND),
        409 => Some(code::TASK_NOT_CANCELABLE),
        415 => Some(code::CONTENT_TYPE),
        502 => Some(code::INVALID_AGENT_RESPONSE),
        _ => None,
    };
    let code = reason.or_else(|| problem(body)).or_else(by_status)?;
    Some(Failure::Rpc { code, fields: fields(details) })
}

/// Whether a refusal says itself what it is about, so that its status says nothing more.
pub(crate) fn names_a_reason(reply: &Reply) -> bool {
    let body = reply.json();
    let details =
        body.pointer("/error/details").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    details.iter().any(|detail| detail.get("reason").is_some()) || problem(&body).is_some()
}

/// `application/problem+json`: the last segment of its `type` (RFC 9457).
fn problem(body: &Value) -> Option<i64> {
    let name = body.get("type")?.as_str()?.trim_end_matches('/').rsplit('/').next()?;
    of_reason(&name.to_ascii_uppercase().replace('-', "_"))
}

fn of_reason(reason: &str) -> Option<i64> {
    Some(match reason {
        "TASK_NOT_FOUND" => code::TASK_NOT_FOUND,
        "TASK_NOT_CANCELABLE" => code::TASK_NOT_CANCELABLE,
        "PUSH_NOTIFICATION_NOT_SUPPORTED" => code::PUSH_NOT_SUPPORTED,
        "UNSUPPORTED_OPERATION" => code::UNSUPPORTED_OPERATION,
        "CONTENT_TYPE_NOT_SUPPORTED" => code::CONTENT_TYPE,
        "INVALID_AGENT_RESPONSE" => code::INVALID_AGENT_RESPONSE,
        "EXTENDED_AGENT_CARD_NOT_CONFIGURED" => code::EXTENDED_CARD,
        "EXTENSION_SUPPORT_REQUIRED" => code::EXTENSION_REQUIRED,
        "VERSION_NOT_SUPPORTED" => code::VERSION,
        "INVALID_PARAMS" => code::PARAMS,
        "INVALID_REQUEST" => code::REQUEST,
        "METHOD_NOT_FOUND" => code::METHOD,
        "INTERNAL_ERROR" => code::INTERNAL,
        _ => return None,
    })
}

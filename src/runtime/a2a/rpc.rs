//! The JSON-RPC binding (A2A 1.0 §9): one object per POST.
//!
//! Invariant: a refusal below the protocol (another status, another body) and one by it are told
//! apart; a status that a gateway uses (401, 403, 408, 429, 5xx …) wins over whatever body it has.

use super::call::Op;
use super::card::Interface;
use super::errors::Failure;
use super::wire::{Reply, Wire};
use crate::domain::clock::Millis;
use serde_json::{Value, json};

fn method(op: Op) -> &'static str {
    match op {
        Op::SendMessage => "SendMessage",
        Op::GetTask => "GetTask",
        Op::ListTasks => "ListTasks",
        Op::Subscribe | Op::SubscribeByPost => "SubscribeToTask",
        Op::CreatePushConfig => "CreateTaskPushNotificationConfig",
        Op::DeletePushConfig => "DeleteTaskPushNotificationConfig",
    }
}

pub(crate) fn request(wire: &Wire, at: &Interface, op: Op, params: &Value) -> reqwest::RequestBuilder {
    let mut params = params.clone();
    if let (Some(tenant), Some(fields)) = (&at.tenant, params.as_object_mut()) {
        fields.insert("tenant".into(), tenant.clone().into());
    }
    let id = wire.request_id();
    let body = json!({ "jsonrpc": "2.0", "id": id, "method": method(op), "params": params });
    wire.http.post(at.url.clone()).json(&body)
}

pub(crate) fn understand(reply: &Reply, now: Millis) -> Result<Value, Failure> {
    let mut body = reply.json();
    let refused = Failure::http(reply.status, &body, reply.retry_after(now));
    if !(200..300).contains(&reply.status) {
        let of_gateway = matches!(reply.status, 300..=399 | 401 | 403 | 408 | 415 | 421 | 426 | 429 | 500..);
        return match body.get("error") {
            // JSON-RPC codes are negative; a gateway's own object repeats the status.
            Some(error)
                if !of_gateway
                    && error.get("code").and_then(Value::as_f64).is_some_and(|code| code < 0.0) =>
            {
                Err(Failure::rpc(error))
            }
            _ => Err(refused),
        };
    }
    if let Some(error) = body.get("error").filter(|error| error.is_object()) {
        return Err(Failure::rpc(error));
    }
    match body.get_mut("result") {
        Some(result) if !result.is_null() => Ok(result.take()),
        _ => Err(Failure::Garbled("no JSON-RPC answer")),
    }
}

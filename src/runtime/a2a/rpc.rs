//! The JSON-RPC binding (A2A 1.0 §9): one object per POST.
//!
//! Invariant: a refusal below the protocol (another status, another body) and one by it are told
//! apart; a status that a gateway uses (401, 403, 408, 429, 5xx …) wins over whatever body it has.

use super::card::{Binding, Interface};
use super::errors::Failure;
use super::wire::{Reply, Wire};
use crate::domain::ids::Subject;
use serde_json::{Value, json};

/// What we ask of a runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Op {
    SendMessage,
    GetTask,
    ListTasks,
}

impl Op {
    fn method(self) -> &'static str {
        match self {
            Self::SendMessage => "SendMessage",
            Self::GetTask => "GetTask",
            Self::ListTasks => "ListTasks",
        }
    }
}

impl Wire {
    /// Calls as a subject or with the watching credential. A refused token of a subject is replaced
    /// by a fresh one, once.
    pub(crate) async fn call(
        &self,
        at: &Interface,
        op: Op,
        params: &Value,
        subject: Option<&Subject>,
    ) -> Result<Value, Failure> {
        match self.once(at, op, params, subject).await {
            Err(failure) if subject.is_some() && failure.wants_fresh_token() => {
                self.once(at, op, params, subject).await
            }
            done => done,
        }
    }

    async fn once(
        &self,
        at: &Interface,
        op: Op,
        params: &Value,
        subject: Option<&Subject>,
    ) -> Result<Value, Failure> {
        let who = self.identity(subject)?;
        match at.binding {
            Binding::JsonRpc => {
                let mut params = params.clone();
                if let (Some(tenant), Some(fields)) = (&at.tenant, params.as_object_mut()) {
                    fields.insert("tenant".into(), tenant.clone().into());
                }
                let id = self.request_id();
                let body = json!({ "jsonrpc": "2.0", "id": id, "method": op.method(), "params": params });
                let reply = self.exchange(self.http.post(at.url.clone()).json(&body), who).await?;
                understand(&reply, self)
            }
        }
    }
}

fn understand(reply: &Reply, wire: &Wire) -> Result<Value, Failure> {
    let mut body = reply.json();
    let refused = Failure::http(reply.status, &body, reply.retry_after(wire.now()));
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

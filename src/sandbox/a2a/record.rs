//! What was asked, by whom, and how it was answered.
//!
//! Invariant: a record holds no credential: `authorization` is replaced by the kind of what it
//! carried, a token's signature is left out.

use super::auth::{Caller, Identity};
use super::world::A2aWorld;
use crate::sandbox::faults::Fault;
use axum::http::{HeaderMap, header};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// One request as it arrived, and what the runtime made of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Recorded {
    /// 1, 2, 3 … in order of arrival.
    pub n: u64,
    pub at_ms: i64,
    pub agent: String,
    /// The A2A 1.0 operation, whatever the binding; `card` for the card; empty when unreadable.
    pub method: String,
    /// `POST /a2a/release?…`
    pub line: String,
    /// Lower-case names; repeated ones joined by `, `.
    pub headers: BTreeMap<String, String>,
    /// `application key`, `jwt`, `token`, `watching token`, `unknown`, `malformed`, `none`.
    pub credential: &'static str,
    /// The subject derived; none for a refused or a watching caller.
    pub subject: Option<String>,
    /// Header and claims of a verified token.
    pub jwt: Option<Value>,
    /// The body as JSON, or its text.
    pub body: Value,
    /// HTTP+JSON: the parameters of body, query and path together, once they could be read.
    pub params: Option<Value>,
    /// The HTTP status of the runtime's own answer, before any scripted trouble on its way.
    pub status: Option<u16>,
    /// The A2A error, as its JSON-RPC number.
    pub error: Option<i64>,
    /// The refusal before any operation (`subject_required`, `token_expired`, …).
    pub refusal: Option<&'static str>,
    /// What was scripted to go wrong.
    pub fault: Option<Fault>,
}

impl Recorded {
    /// A member of the operation's parameters, by JSON pointer (`/message/messageId`), whatever the binding.
    #[must_use]
    pub fn param(&self, pointer: &str) -> Option<&Value> {
        // What was refused unread has its body only, which on HTTP+JSON is the parameters.
        self.params.as_ref().or_else(|| self.body.get("params")).unwrap_or(&self.body).pointer(pointer)
    }
}

/// Remembers a request; its number.
pub(super) fn begin(
    world: &A2aWorld,
    agent: &str,
    method: &str,
    line: String,
    headers: &HeaderMap,
    body: Value,
) -> u64 {
    let credential = world.auth().kind(headers);
    let body = without_secrets(body);
    let at_ms = world.now_ms();
    let n = world.with(|inner| {
        inner.requests_seen += 1;
        let n = inner.requests_seen;
        inner.requests.push_back(Recorded {
            n,
            at_ms,
            agent: agent.to_owned(),
            method: method.to_owned(),
            line,
            headers: visible(headers, credential),
            credential,
            subject: None,
            jwt: None,
            body,
            params: None,
            status: None,
            error: None,
            refusal: None,
            fault: None,
        });
        while inner.requests.len() > world.keep_requests.max(1) {
            inner.requests.pop_front();
        }
        n
    });
    world.touch();
    n
}

/// Adds to a remembered request.
pub(super) fn note(world: &A2aWorld, n: u64, add: impl FnOnce(&mut Recorded)) {
    world.with(|inner| {
        if let Some(record) = inner.requests.iter_mut().rev().find(|record| record.n == n) {
            add(record);
        }
    });
    world.touch();
}

/// Adds the verified caller.
pub(super) fn note_caller(world: &A2aWorld, n: u64, identity: &Identity) {
    note(world, n, |record| {
        if let Caller::Subject(subject) = &identity.caller {
            record.subject = Some(subject.clone());
        }
        record.jwt.clone_from(&identity.jwt);
    });
}

/// A push configuration without what its client is recognised by.
pub(super) fn without_secrets(mut body: Value) -> Value {
    for at in ["", "/params"] {
        let Some(Value::Object(config)) = body.pointer_mut(at) else { continue };
        if !config.contains_key("taskId") {
            continue;
        }
        for secret in ["token", "authentication"] {
            if let Some(secret) = config.get_mut(secret) {
                *secret = "<secret>".into();
            }
        }
        if let Some(Value::String(url)) = config.get_mut("url") {
            let known = url.rfind('/').map_or(0, |at| at + 1);
            url.truncate(known);
        }
    }
    body
}

fn visible(headers: &HeaderMap, credential: &str) -> BTreeMap<String, String> {
    let mut out = BTreeMap::new();
    for name in headers.keys() {
        let secret = [header::AUTHORIZATION, header::PROXY_AUTHORIZATION, header::COOKIE].contains(name);
        let value = if secret {
            format!("<{credential}>")
        } else {
            let all: Vec<_> = headers
                .get_all(name)
                .iter()
                .map(|v| String::from_utf8_lossy(v.as_bytes()).into_owned())
                .collect();
            all.join(", ")
        };
        out.insert(name.as_str().to_owned(), value);
    }
    out
}

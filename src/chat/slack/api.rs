//! Calling Slack's Web API: one function, always POST, over the program's one HTTP client.
//!
//! Invariant: success means that Slack said `ok: true`. Anything else is sorted by what is known of
//! its effect: refused (a code), not now (paced), nothing sent (unavailable), or perhaps done
//! (unknown). An odd echo never turns a success into an error: callers read single fields.
//!
//! Tokens are in no error, no log line and no Debug output; bodies neither.

use super::errors::{classify, unusable};
use super::methods::Method;
use crate::bridge::ports::ChatError;
use crate::pace::{Call, Pace};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use reqwest::{Client, Response, StatusCode};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use std::time::Duration;

/// More than any answer we read; a larger body is no usable answer.
const LARGEST: usize = 8 * 1024 * 1024;

/// The Web API of one install.
pub(super) struct Api {
    pub(super) install: String,
    pub(super) client: Client,
    pub(super) pace: Pace,
    base: String,
    token: SecretString,
}

/// An answer with `ok: true`.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) body: Value,
    /// The token's scopes, from the header `X-OAuth-Scopes`.
    pub(super) scopes: Option<Vec<String>>,
    /// What time Slack says it is, in epoch milliseconds.
    pub(super) date: Option<i64>,
}

impl Answer {
    /// A text field that must be there.
    pub(super) fn need(&self, method: Method, pointer: &str) -> Result<String, ChatError> {
        super::payload::id(&self.body, pointer)
            .ok_or_else(|| unusable(method, &format!("no {pointer} in the answer")))
    }
}

impl Api {
    pub(super) fn new(install: String, base: &str, token: SecretString, client: Client, pace: Pace) -> Self {
        Self { install, client, pace, base: base.trim_end_matches('/').to_owned(), token }
    }

    /// Takes the right to make a call.
    pub(super) fn reserve(&self, method: Method, post_to: Option<&str>) -> Result<(), Duration> {
        self.pace.check(&Call { install: &self.install, method: method.name(), tier: method.tier(), post_to })
    }

    /// Takes the right to make a call, and makes it.
    pub(super) async fn call(&self, method: Method, arguments: Value) -> Result<Answer, ChatError> {
        self.reserve(method, None).map_err(|after| ChatError::Paced { after })?;
        self.send(method, arguments).await
    }

    /// The same with a deadline of its own, for what is of no use later.
    pub(super) async fn call_within(
        &self,
        method: Method,
        arguments: Value,
        deadline: Duration,
    ) -> Result<Answer, ChatError> {
        self.reserve(method, None).map_err(|after| ChatError::Paced { after })?;
        self.send_within(method, arguments, Some(deadline)).await
    }

    /// Makes a call whose right was taken before, unless the method was parked meanwhile.
    pub(super) async fn send(&self, method: Method, arguments: Value) -> Result<Answer, ChatError> {
        self.send_within(method, arguments, None).await
    }

    async fn send_within(
        &self,
        method: Method,
        arguments: Value,
        deadline: Option<Duration>,
    ) -> Result<Answer, ChatError> {
        if let Some(after) = self.pace.parked_for(&self.install, method.name()) {
            return Err(ChatError::Paced { after });
        }
        let request = self.client.post(format!("{}/{}", self.base, method.name()));
        let request = match deadline {
            Some(deadline) => request.timeout(deadline),
            None => request,
        };
        let request = match self.bearer() {
            Some(bearer) => request.header(AUTHORIZATION, bearer),
            None => return Err(ChatError::Auth { code: "token_malformed".into(), needed: String::new() }),
        };
        let request = if method.takes_json() {
            request.header(CONTENT_TYPE, "application/json; charset=utf-8").body(arguments.to_string())
        } else {
            request.form(&as_form(&arguments))
        };
        let response = request.send().await.map_err(|error| not_answered(method, &error))?;
        self.read(method, response).await
    }

    fn bearer(&self) -> Option<HeaderValue> {
        let mut value = HeaderValue::from_str(&format!("Bearer {}", self.token.expose_secret())).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    async fn read(&self, method: Method, response: Response) -> Result<Answer, ChatError> {
        let status = response.status();
        let retry_after = retry_after(response.headers());
        let scopes = scopes(response.headers());
        let date = crate::net::date(response.headers());
        if status == StatusCode::TOO_MANY_REQUESTS {
            return Err(self.parked(method, retry_after));
        }
        let Some(bytes) = limited(response).await else {
            return Err(unusable(method, "the answer broke off"));
        };
        let body = serde_json::from_slice::<Value>(&bytes).unwrap_or_default();
        let code = body.get("error").and_then(Value::as_str).filter(|code| !code.is_empty());
        match (body.get("ok").and_then(Value::as_bool), code) {
            (Some(true), _) if status.is_success() => Ok(Answer { body, scopes, date }),
            (Some(false), Some("ratelimited" | "rate_limited")) => Err(self.parked(method, retry_after)),
            (Some(false), Some(code)) if !status.is_server_error() => {
                tracing::warn!(install = self.install, method = method.name(), code, "slack refused a call");
                Err(classify(method, code, &body))
            }
            _ => Err(unusable(method, &format!("HTTP {} without a usable answer", status.as_u16()))),
        }
    }

    fn parked(&self, method: Method, retry_after: Option<Duration>) -> ChatError {
        let after = self.pace.park(&self.install, method.name(), retry_after);
        tracing::warn!(install = self.install, method = method.name(), ?after, "slack's rate limit");
        ChatError::Paced { after }
    }
}

/// Nothing was sent when the connection was never made; otherwise the request may have arrived.
fn not_answered(method: Method, error: &reqwest::Error) -> ChatError {
    if error.is_connect() || error.is_builder() {
        ChatError::Unavailable { what: format!("{}: no connection", method.name()) }
    } else if error.is_timeout() {
        unusable(method, "no answer in time")
    } else {
        unusable(method, "the connection broke")
    }
}

/// The body, unless it breaks off or is too large.
pub(super) async fn limited(mut response: Response) -> Option<Vec<u8>> {
    let mut bytes = vec![];
    while let Some(chunk) = response.chunk().await.ok()? {
        if bytes.len() + chunk.len() > LARGEST {
            return None;
        }
        bytes.extend_from_slice(&chunk);
    }
    Some(bytes)
}

/// `Retry-After` in seconds.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds: f64 = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Duration::try_from_secs_f64(seconds.ceil()).ok()
}

fn scopes(headers: &HeaderMap) -> Option<Vec<String>> {
    let list = headers.get("x-oauth-scopes")?.to_str().ok()?;
    Some(list.split(',').map(str::trim).filter(|scope| !scope.is_empty()).map(str::to_owned).collect())
}

/// Arguments as form fields: text as it is, everything else as JSON text.
fn as_form(arguments: &Value) -> Vec<(String, String)> {
    let fields = arguments.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
    fields
        .map(|(name, value)| (name.clone(), value.as_str().map_or_else(|| value.to_string(), str::to_owned)))
        .collect()
}

#[cfg(test)]
#[path = "api_tests.rs"]
mod tests;

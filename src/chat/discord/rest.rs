//! Calling Discord's REST API: one function over the program's one HTTP client.
//!
//! Invariant: a 2xx is success whatever its body: what cannot be read of it is "done, id unknown" and never made
//! again. Anything else is sorted by what is known of its effect: refused (a code), not now (paced), nothing
//! sent (unavailable), or perhaps done (unknown). No odd header or echo turns a success into an error.
//!
//! Tokens, of the bot and of presses, are in no error, no log line and no Debug output; bodies neither: a call
//! is named by its template.

use super::calls::{Call, Kind};
use super::errors::{Class, class, classify, unusable};
use super::gate::{FOR_ANOTHER, Gate, Limits, Pass, Worth};
use crate::bridge::ports::ChatError;
use crate::domain::ids::Ids;
use crate::pace::Gentle;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue, USER_AGENT};
use reqwest::{Client, RequestBuilder, Response};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// More than any answer we read; a larger body is no usable answer.
const LARGEST: usize = 8 * 1024 * 1024;
/// Of the three seconds in which a press has to be answered.
const CALLBACK: Duration = Duration::from_secs(2);
const WITH_FILE: Duration = Duration::from_secs(30);
/// So often, and so long each time, a call waits for another one of its bucket.
const PATIENCE: u32 = 40;
const STEP: Duration = Duration::from_millis(25);
/// An old message was edited too often: not one of the limits that headers tell of.
const TOO_OFTEN: i64 = 30_046;

/// Discord's API for one install.
pub(super) struct Rest {
    pub(super) install: String,
    pub(super) gate: Gate,
    client: Client,
    base: String,
    token: SecretString,
    ids: Arc<dyn Ids>,
}

/// What is sent.
#[derive(Debug, Clone, Copy)]
pub(super) enum Body<'a> {
    None,
    Json(&'a Value),
    /// JSON, and a text file beside it.
    File {
        json: &'a Value,
        name: &'a str,
        text: &'a str,
    },
}

/// Why it was not done, with Discord's own code (0: none).
#[derive(Debug)]
pub(super) struct Failed {
    pub(super) error: ChatError,
    pub(super) code: i64,
}

impl From<ChatError> for Failed {
    fn from(error: ChatError) -> Self {
        Self { error, code: 0 }
    }
}

impl From<Failed> for ChatError {
    fn from(failed: Failed) -> Self {
        failed.error
    }
}

/// A success.
#[derive(Debug)]
pub(super) struct Answer {
    /// `Null` when it could not be read.
    pub(super) body: Value,
    /// What time Discord says it is, in epoch milliseconds.
    pub(super) date: Option<i64>,
}

impl Answer {
    /// An id that must be there.
    pub(super) fn id(&self, kind: Kind, pointer: &str) -> Result<String, ChatError> {
        super::fields::id(&self.body, pointer)
            .ok_or_else(|| unusable(kind, "done, but its answer cannot be read"))
    }
}

impl Rest {
    pub(super) fn new(
        install: String,
        base: &str,
        token: SecretString,
        client: Client,
        pace: Gentle,
        ids: Arc<dyn Ids>,
    ) -> Self {
        let base = base.trim_end_matches('/').to_owned();
        Self { install, gate: Gate::new(pace), client, base, token, ids }
    }

    /// Takes the right to a call, and makes it. Where another call of its bucket is under way, it waits a little.
    pub(super) async fn call(&self, call: Call, worth: Worth, body: Body<'_>) -> Result<Answer, Failed> {
        let mut patience = PATIENCE;
        loop {
            let way = self.gate.reserve(call.kind, &call.major, worth);
            match way.and_then(|()| self.gate.pass(&call, worth)) {
                Ok(pass) => return self.carry(&call, body, pass).await,
                Err(after) if after <= FOR_ANOTHER && patience > 0 => patience -= 1,
                Err(after) => return Err(ChatError::Paced { after }.into()),
            }
            tokio::time::sleep(STEP).await;
        }
    }

    /// Makes a call whose right was taken before, unless Discord has closed the way meanwhile.
    pub(super) async fn send(&self, call: Call, worth: Worth, body: Body<'_>) -> Result<Answer, Failed> {
        let pass = self.gate.pass(&call, worth).map_err(|after| ChatError::Paced { after })?;
        self.carry(&call, body, pass).await
    }

    async fn carry(&self, call: &Call, body: Body<'_>, pass: Pass<'_>) -> Result<Answer, Failed> {
        match self.request(call, body)?.send().await {
            Ok(response) => self.read(call.kind, response, pass).await,
            Err(error) => Err(not_answered(call.kind, &error).into()),
        }
    }

    fn request(&self, call: &Call, body: Body<'_>) -> Result<RequestBuilder, ChatError> {
        let request = self.client.request(call.kind.method(), format!("{}{}", self.base, call.path));
        let request = request.header(USER_AGENT, super::USER_AGENT);
        let request = if call.kind.by_token() {
            request
        } else {
            let bearer = self
                .bearer()
                .ok_or_else(|| ChatError::Auth { code: "token_malformed".into(), needed: String::new() })?;
            request.header(AUTHORIZATION, bearer)
        };
        let request = if call.kind == Kind::Callback { request.timeout(CALLBACK) } else { request };
        Ok(match body {
            Body::None => request,
            Body::Json(json) => request.header(CONTENT_TYPE, "application/json").body(json.to_string()),
            Body::File { json, name, text } => {
                let boundary = data_encoding::HEXLOWER.encode(&self.ids.random());
                let form = format!("multipart/form-data; boundary={boundary}");
                request
                    .timeout(WITH_FILE)
                    .header(CONTENT_TYPE, form)
                    .body(multipart(&boundary, json, name, text))
            }
        })
    }

    fn bearer(&self) -> Option<HeaderValue> {
        let mut value = HeaderValue::from_str(&format!("Bot {}", self.token.expose_secret())).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    /// Up to half a second, so that many do not come back at once.
    pub(super) fn jitter(&self) -> Duration {
        let [a, b, ..] = self.ids.random();
        Duration::from_millis(u64::from(u16::from_be_bytes([a, b])) * 500 / u64::from(u16::MAX))
    }

    async fn read(&self, kind: Kind, response: Response, pass: Pass<'_>) -> Result<Answer, Failed> {
        let status = response.status().as_u16();
        let limits = Limits::of(response.headers());
        let date = crate::net::date(response.headers());
        let bytes = limited(response).await;
        let body = bytes.as_deref().map(serde_json::from_slice::<Value>);
        let body = body.and_then(Result::ok).unwrap_or_default();
        if (200..300).contains(&status) {
            pass.answered(status, &limits);
            return Ok(Answer { body, date });
        }
        let code = body.get("code").and_then(Value::as_i64).unwrap_or_default();
        let limits = if status == 429 { limits.with(&body) } else { limits };
        let strange = !body.is_object()
            || code == 40_333
            || (code == 0 && !limits.is_known() && limits.wait().is_none());
        if matches!(status, 403 | 429) && strange {
            let after = pass.blocked(self.jitter());
            tracing::error!(
                install = self.install,
                call = kind.template(),
                status,
                ?after,
                "blocked before Discord"
            );
            return Err(ChatError::Paced { after }.into());
        }
        if status == 429 && code != TOO_OFTEN {
            let after = pass.limited(&limits) + self.jitter();
            tracing::warn!(
                install = self.install,
                call = kind.template(),
                code,
                ?after,
                "discord's rate limit"
            );
            return Err(Failed { error: ChatError::Paced { after }, code });
        }
        pass.answered(status, &limits);
        if !(500..600).contains(&status) && class(kind, status, code) == Class::Done {
            return Ok(Answer { body: Value::Null, date });
        }
        let error = classify(kind, status, &body);
        tracing::warn!(
            install = self.install,
            call = kind.template(),
            status,
            code,
            "discord refused a call"
        );
        let error = match error {
            ChatError::Paced { after } => {
                ChatError::Paced { after: after.max(limits.wait().unwrap_or_default()) + self.jitter() }
            }
            error => error,
        };
        Err(Failed { error, code })
    }
}

/// Nothing was sent when the connection was never made; otherwise the request may have arrived.
fn not_answered(kind: Kind, error: &reqwest::Error) -> ChatError {
    if error.is_connect() || error.is_builder() {
        ChatError::Unavailable { what: format!("{}: no connection", kind.template()) }
    } else if error.is_timeout() {
        unusable(kind, "no answer in time")
    } else {
        unusable(kind, "the connection broke")
    }
}

/// The body, unless it breaks off or is too large.
async fn limited(mut response: Response) -> Option<Vec<u8>> {
    let mut bytes = vec![];
    while let Some(chunk) = response.chunk().await.ok()? {
        if bytes.len() + chunk.len() > LARGEST {
            return None;
        }
        bytes.extend_from_slice(&chunk);
    }
    Some(bytes)
}

/// A form of two parts (Discord: Uploading Files). `name` is ours.
fn multipart(boundary: &str, json: &Value, name: &str, text: &str) -> Vec<u8> {
    let parts = [
        ("name=\"payload_json\"".to_owned(), "application/json", json.to_string()),
        (format!("name=\"files[0]\"; filename=\"{name}\""), "text/plain; charset=utf-8", text.to_owned()),
    ];
    let mut body = String::new();
    for (disposition, kind, content) in parts {
        body.push_str("--");
        body.push_str(boundary);
        body.push_str("\r\nContent-Disposition: form-data; ");
        body.push_str(&disposition);
        body.push_str("\r\nContent-Type: ");
        body.push_str(kind);
        body.push_str("\r\n\r\n");
        body.push_str(&content);
        body.push_str("\r\n");
    }
    body.push_str("--");
    body.push_str(boundary);
    body.push_str("--\r\n");
    body.into_bytes()
}

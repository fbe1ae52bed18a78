//! One HTTP exchange with a runtime: headers, limits, and what its failure says.
//!
//! Invariants: the version and the extension are named on every request, also GET; a credential is
//! made per attempt, marked sensitive and never follows a redirect; a body over the limit is
//! dropped, not held; "not sent" is said only when no connection was made.

use super::errors::Failure;
use super::interactions::URI;
use crate::bridge::ports::Carrier;
use crate::domain::clock::{Clock, Millis};
use crate::domain::ids::Subject;
use reqwest::header::{ACCEPT, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{RequestBuilder, Response};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

/// Largest answer that is read.
pub(crate) const BODY_LIMIT: usize = 2 * 1024 * 1024;

/// Longest wait that a runtime may ask for.
const LONGEST_WAIT: Duration = Duration::from_hours(1);

/// How a runtime is called.
pub(crate) struct Wire {
    pub(crate) http: reqwest::Client,
    pub(crate) carrier: Arc<dyn Carrier>,
    pub(crate) clock: Arc<dyn Clock>,
    /// On every call.
    fixed: HeaderMap,
    deadline: Duration,
    next_id: AtomicU64,
    /// How far the runtime's clock was ahead of ours in its last answer, in milliseconds.
    skew: AtomicI64,
}

/// A whole answer.
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    /// The body as JSON; `Null` when it is none.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    pub(crate) fn header(&self, name: &HeaderName) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// `Retry-After`, in seconds or as a date (RFC 9110 §10.2.3).
    pub(crate) fn retry_after(&self, now: Millis) -> Option<Duration> {
        let text = self.header(&RETRY_AFTER)?.trim();
        if let Ok(seconds) = text.parse::<u64>() {
            return Some(Duration::from_secs(seconds).min(LONGEST_WAIT));
        }
        let at = jiff::fmt::rfc2822::parse(text).ok()?.timestamp();
        Some(Millis(at.as_millisecond()).since(now).min(LONGEST_WAIT))
    }
}

impl Wire {
    /// `Err` names the configured header that is none.
    pub(crate) fn new(
        http: reqwest::Client,
        carrier: Arc<dyn Carrier>,
        clock: Arc<dyn Clock>,
        extra: &[(String, SecretString)],
        deadline: Duration,
    ) -> Result<Self, String> {
        let mut fixed = HeaderMap::new();
        for (name, value) in extra {
            insert(&mut fixed, name, value).ok_or_else(|| name.clone())?;
        }
        // After the configured ones: these are not to be overridden.
        fixed.insert(HeaderName::from_static("a2a-version"), HeaderValue::from_static("1.0"));
        fixed.insert(HeaderName::from_static("a2a-extensions"), HeaderValue::from_static(URI));
        let accept = HeaderValue::from_static("application/json, application/a2a+json");
        fixed.insert(ACCEPT, accept);
        Ok(Self {
            http,
            carrier,
            clock,
            fixed,
            deadline,
            next_id: AtomicU64::new(1),
            skew: AtomicI64::new(i64::MIN),
        })
    }

    pub(crate) fn now(&self) -> Millis {
        self.clock.now()
    }

    /// How far the runtime's clock is ahead of ours, in milliseconds, as its last answer said.
    pub(crate) fn skew(&self) -> Option<i64> {
        Some(self.skew.load(Ordering::Relaxed)).filter(|skew| *skew != i64::MIN)
    }

    /// An id for one request, unique in this process.
    pub(crate) fn request_id(&self) -> String {
        format!("c{}", self.next_id.fetch_add(1, Ordering::Relaxed))
    }

    /// The headers that say who calls. Made anew for every attempt.
    pub(crate) fn identity(&self, subject: Option<&Subject>) -> Result<HeaderMap, Failure> {
        let carried = self.carrier.carry(subject, self.now()).map_err(Failure::Identity)?;
        let mut headers = HeaderMap::new();
        for (name, value) in &carried {
            insert(&mut headers, name, value).ok_or(Failure::Identity(
                crate::bridge::ports::CarryError::NotReady { what: "a credential is no header value".into() },
            ))?;
        }
        Ok(headers)
    }

    /// Sends one request and reads the whole answer, within the deadline.
    pub(crate) async fn exchange(&self, request: RequestBuilder, who: HeaderMap) -> Result<Reply, Failure> {
        let request = request.headers(self.fixed.clone()).headers(who).timeout(self.deadline);
        let answer = request.send().await.map_err(|error| failed(&error))?;
        if let Some(date) = crate::net::date(answer.headers()) {
            self.skew.store(date - self.now().0, Ordering::Relaxed);
        }
        read(answer).await
    }
}

async fn read(mut answer: Response) -> Result<Reply, Failure> {
    let status = answer.status().as_u16();
    let headers = answer.headers().clone();
    let mut body = vec![];
    while let Some(chunk) = answer.chunk().await.map_err(|error| failed(&error))? {
        if body.len() + chunk.len() > BODY_LIMIT {
            return Err(Failure::Garbled("the answer is too large"));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Reply { status, headers, body })
}

/// The library's errors print addresses, so only their kind is kept.
fn failed(error: &reqwest::Error) -> Failure {
    if error.is_connect() || error.is_builder() {
        Failure::NotSent("no connection")
    } else if error.is_timeout() {
        Failure::Lost("timeout")
    } else {
        Failure::Lost("connection lost")
    }
}

fn insert(headers: &mut HeaderMap, name: &str, value: &SecretString) -> Option<()> {
    let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
    let mut value = HeaderValue::from_str(value.expose_secret()).ok()?;
    value.set_sensitive(true);
    headers.insert(name, value);
    Some(())
}

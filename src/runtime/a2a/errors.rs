//! What went wrong on a call, and what follows: for a reading, for an answer.
//!
//! Invariants: judged by codes and statuses, never by message text; what may have been received is
//! never called "not sent"; a foreign text never passes through (only words of the lists below).

use crate::bridge::ports::{CarryError, ConnectorError};
use crate::domain::interaction::Why;
use serde_json::Value;
use std::time::Duration;

/// The codes of JSON-RPC and of A2A 1.0 §5.4 that are told apart.
pub(crate) mod code {
    pub(crate) const TASK_NOT_FOUND: i64 = -32001;
    pub(crate) const TASK_NOT_CANCELABLE: i64 = -32002;
    pub(crate) const PUSH_NOT_SUPPORTED: i64 = -32003;
    pub(crate) const UNSUPPORTED_OPERATION: i64 = -32004;
    pub(crate) const CONTENT_TYPE: i64 = -32005;
    pub(crate) const INVALID_AGENT_RESPONSE: i64 = -32006;
    pub(crate) const EXTENDED_CARD: i64 = -32007;
    pub(crate) const EXTENSION_REQUIRED: i64 = -32008;
    pub(crate) const VERSION: i64 = -32009;
    pub(crate) const PARSE: i64 = -32700;
    pub(crate) const REQUEST: i64 = -32600;
    pub(crate) const METHOD: i64 = -32601;
    pub(crate) const PARAMS: i64 = -32602;
    pub(crate) const INTERNAL: i64 = -32603;
}

/// Codes of HTTP-level refusals that are told apart or may be printed.
const WORDS: [&str; 14] = [
    "subject_required",
    "subject_invalid",
    "credential_required",
    "credential_invalid",
    "token_expired",
    "issuer_unavailable",
    "scope_required",
    "key_role_mismatch",
    "origin_rejected",
    "protocol_unsupported",
    "runtime_unavailable",
    "runtime_error",
    "agent_not_found",
    "rate_limited",
];

/// Why a call has no result.
#[derive(Debug, Clone)]
pub(crate) enum Failure {
    /// Nothing left this machine.
    NotSent(&'static str),
    /// It may have been received; no answer came.
    Lost(&'static str),
    /// An answer came that is none of the protocol's.
    Garbled(&'static str),
    /// Refused below the protocol.
    Http { status: u16, word: Option<&'static str>, retry_after: Option<Duration> },
    /// Refused by the protocol, under its JSON-RPC code whatever the binding, with the fields it
    /// complains about.
    Rpc { code: i64, fields: Vec<String> },
    /// The caller's identity could not be put on the call.
    Identity(CarryError),
}

impl Failure {
    /// A refusal below the protocol. `body` is searched for a known word only.
    pub(crate) fn http(status: u16, body: &Value, retry_after: Option<Duration>) -> Self {
        let said = body.get("code").or_else(|| body.get("error")).and_then(Value::as_str);
        let word = WORDS.into_iter().find(|word| said == Some(word));
        Self::Http { status, word, retry_after }
    }

    /// A JSON-RPC error object.
    pub(crate) fn rpc(error: &Value) -> Self {
        // A code that went through a double is still that code.
        #[expect(clippy::cast_possible_truncation, reason = "codes are small; the cast saturates")]
        let code = error
            .get("code")
            .and_then(|code| code.as_i64().or_else(|| code.as_f64().map(|code| code as i64)))
            .unwrap_or(0);
        let data = error.get("data").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        Self::Rpc { code, fields: fields(data) }
    }

    /// In a few fixed words: for logs and the audit.
    pub(crate) fn said(&self) -> String {
        match self {
            Self::NotSent(what) | Self::Lost(what) | Self::Garbled(what) => (*what).into(),
            Self::Http { status, word: Some(word), .. } => format!("http {status} {word}"),
            Self::Http { status, word: None, .. } => format!("http {status}"),
            Self::Rpc { code, .. } => format!("error {code}"),
            Self::Identity(error) => error.to_string(),
        }
    }

    /// Whether a fresh token may help: the credential was refused, not the issuer unreachable.
    pub(crate) fn wants_fresh_token(&self) -> bool {
        matches!(self, Self::Http { status: 401, word, .. } if *word != Some("issuer_unavailable"))
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Http { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}

/// The fields that a `google.rpc.BadRequest` among the details of an error names.
pub(crate) fn fields(details: &[Value]) -> Vec<String> {
    details
        .iter()
        .filter_map(|entry| entry.get("fieldViolations")?.as_array())
        .flatten()
        .filter_map(|violation| Some(violation.get("field")?.as_str()?.to_owned()))
        .collect()
}

/// What a failed reading means. Not found is a reading, not a failure: the caller takes it first.
pub(crate) fn of_reading(failure: &Failure) -> ConnectorError {
    let what = failure.said();
    let retry_after = failure.retry_after();
    match failure {
        Failure::NotSent(_) | Failure::Lost(_) => ConnectorError::Unavailable { what, retry_after },
        Failure::Garbled(_) => ConnectorError::Protocol { what },
        Failure::Identity(_) => ConnectorError::Configuration { what },
        Failure::Http { status, word, .. } => match (status, *word) {
            (_, Some("issuer_unavailable")) | (408 | 429 | 500.., _) => {
                ConnectorError::Unavailable { what, retry_after }
            }
            (400, Some("subject_required")) => ConnectorError::Configuration {
                what: "this runtime lists for one person at a time: set `watch_as`".into(),
            },
            (401 | 403, _) => ConnectorError::Unauthorized { what },
            (300..=399, _) => {
                ConnectorError::Configuration { what: format!("{what}: a redirect, which is not followed") }
            }
            (404 | 405 | 410 | 415 | 421 | 426, _) => ConnectorError::Configuration { what },
            _ => ConnectorError::Protocol { what },
        },
        Failure::Rpc { code, .. } => match *code {
            code::INTERNAL | code::INVALID_AGENT_RESPONSE => {
                ConnectorError::Unavailable { what, retry_after }
            }
            code::EXTENSION_REQUIRED | code::VERSION | code::METHOD => ConnectorError::Configuration { what },
            _ => ConnectorError::Protocol { what },
        },
    }
}

/// What a failed answer means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing reached the runtime.
    NotSent,
    /// It may have been received: the same body again.
    Unknown(Option<Duration>),
    /// Credentials or configuration: keep the claim, alert.
    Attention,
    /// The runtime does not take it in the task's present state: read what that is.
    NotAccepted,
    /// Not found for this subject: read whether it is there for the watcher.
    NotVisible,
    /// This key was used for an answer of another content: read how it ended.
    KeyUsed,
    /// A definite refusal of this subject or this body.
    Refused(Why),
}

/// The outcome of one attempt to answer, by what came back instead of a result.
pub(crate) fn of_answer(failure: &Failure) -> Verdict {
    let retry = failure.retry_after();
    match failure {
        Failure::NotSent(_) => Verdict::NotSent,
        Failure::Lost(_) | Failure::Garbled(_) => Verdict::Unknown(None),
        Failure::Identity(CarryError::Unmappable) => Verdict::Refused(Why::Unmappable),
        Failure::Identity(CarryError::NotReady { .. }) => Verdict::Attention,
        Failure::Http { status, word, .. } => match (status, *word) {
            // A 429 may come from a gateway after the runtime took it: never "not sent".
            (_, Some("issuer_unavailable")) | (408 | 429 | 500.., _) => Verdict::Unknown(retry),
            (400, Some("subject_invalid")) => Verdict::Refused(Why::Unmappable),
            (400, Some("subject_required"))
            | (403, Some("scope_required" | "key_role_mismatch" | "origin_rejected"))
            | (300..=399 | 401 | 405 | 410 | 415 | 421 | 426, _) => Verdict::Attention,
            (403, _) => Verdict::Refused(Why::Forbidden),
            (404, _) => Verdict::NotVisible,
            (400..=499, _) => Verdict::Refused(Why::Malformed),
            _ => Verdict::Unknown(retry),
        },
        Failure::Rpc { code, fields } => match *code {
            code::UNSUPPORTED_OPERATION | code::TASK_NOT_CANCELABLE => Verdict::NotAccepted,
            code::TASK_NOT_FOUND => Verdict::NotVisible,
            code::PARAMS if fields.iter().any(|field| field == "message.messageId") => Verdict::KeyUsed,
            code::PARAMS
            | code::CONTENT_TYPE
            | code::REQUEST
            | code::PARSE
            | code::PUSH_NOT_SUPPORTED
            | code::EXTENDED_CARD => Verdict::Refused(Why::Malformed),
            code::EXTENSION_REQUIRED | code::VERSION | code::METHOD => Verdict::Attention,
            // Internal, invalid agent response, and codes that no page names.
            _ => Verdict::Unknown(None),
        },
    }
}

/// Whether a failed `ListTasks` says that this runtime cannot list.
pub(crate) fn says_unsupported(failure: &Failure) -> bool {
    matches!(failure, Failure::Rpc { code: code::UNSUPPORTED_OPERATION | code::METHOD, .. })
}

/// Whether a failed `GetTask` says that the task does not exist for this caller. A 404 below the
/// protocol speaks of the address, not of the task.
pub(crate) fn says_not_found(failure: &Failure) -> bool {
    matches!(failure, Failure::Rpc { code: code::TASK_NOT_FOUND, .. })
}

//! Errors as `application/problem+json` (RFC 9457): all of them are made here.
//!
//! Invariant: a problem says what the caller can do about it. What went wrong inside us is logged, not
//! told; no text of another program's error, no secret and nothing of a body is repeated, except the
//! names of fields and configured things.

use crate::bridge::operators::StoreError;
use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;

/// Why a request was not carried out.
#[derive(Debug)]
pub struct Problem {
    status: StatusCode,
    detail: String,
    field: Option<String>,
    hint: Option<Hint>,
}

/// What a header says beside the body.
#[derive(Debug, Clone, Copy)]
enum Hint {
    /// Authenticate with a bearer token.
    Bearer,
    /// Try again in a second.
    Again,
}

/// The body of an error.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Problem")]
pub(super) struct Body<'a> {
    /// Always `about:blank`: the status says what kind of problem it is.
    #[serde(rename = "type")]
    kind: &'static str,
    /// The status in words.
    title: &'a str,
    status: u16,
    /// What was wrong, for the reader.
    detail: &'a str,
    /// The field, parameter or header that was wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<&'a str>,
}

impl Problem {
    fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { status, detail: detail.into(), field: None, hint: None }
    }

    fn about(self, field: impl Into<String>) -> Self {
        Self { field: Some(field.into()), ..self }
    }

    /// The request cannot be understood.
    pub(super) fn malformed(field: &str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail).about(field)
    }

    /// The body is no JSON.
    pub(super) fn not_json(line: usize, column: usize) -> Self {
        let detail = format!("the body is not JSON (line {line}, column {column})");
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    /// The body is understood and asks for something that cannot be.
    pub(super) fn unfit(field: &str, detail: impl Into<String>) -> Self {
        let problem = Self::new(StatusCode::UNPROCESSABLE_ENTITY, detail);
        if field.is_empty() { problem } else { problem.about(field) }
    }

    pub(super) fn no_token() -> Self {
        Self {
            hint: Some(Hint::Bearer),
            ..Self::new(
                StatusCode::UNAUTHORIZED,
                "send the operator token: `Authorization: Bearer …` with the value of server.operator_token",
            )
        }
        .about("Authorization")
    }

    /// A runtime's call without the credential it was given.
    pub(super) fn no_credential() -> Self {
        let detail = "send the credential and the token that this address was given out with";
        Self { hint: Some(Hint::Bearer), ..Self::new(StatusCode::UNAUTHORIZED, detail) }
            .about("Authorization")
    }

    pub(super) fn closed() -> Self {
        Self::new(StatusCode::FORBIDDEN, "no server.operator_token is configured, so nobody may use this")
    }

    pub(super) fn not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "there is nothing at this address")
    }

    pub(super) fn wrong_method() -> Self {
        Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "this address takes other methods; the Allow header names them",
        )
    }

    pub(super) fn wrong_type() -> Self {
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "send `Content-Type: application/json`")
            .about("Content-Type")
    }

    pub(super) fn too_big(limit: usize) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, format!("the body has more than {limit} bytes"))
    }

    pub(super) fn broken_off() -> Self {
        Self::new(StatusCode::BAD_REQUEST, "the body ended before it was complete")
    }

    pub(super) fn too_often() -> Self {
        let problem = Self::new(StatusCode::TOO_MANY_REQUESTS, "this address is called too often");
        Self { hint: Some(Hint::Again), ..problem }
    }

    pub(super) fn slow() -> Self {
        let problem = Self::new(StatusCode::SERVICE_UNAVAILABLE, "it took too long; try again");
        Self { hint: Some(Hint::Again), ..problem }
    }

    pub(super) fn internal() -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "something went wrong here; the log says what")
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        if error.is_transient() {
            tracing::warn!(%error, "a request met the database");
            let detail = "the database does not answer; try again";
            return Self { hint: Some(Hint::Again), ..Self::new(StatusCode::SERVICE_UNAVAILABLE, detail) };
        }
        tracing::error!(%error, "a request met the database");
        Self::internal()
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let Self { status, detail, field, hint } = self;
        let body = Body {
            kind: "about:blank",
            title: status.canonical_reason().unwrap_or_default(),
            status: status.as_u16(),
            detail: &detail,
            field: field.as_deref(),
        };
        let mut response = (status, Json(body)).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        let hint = match hint {
            None => None,
            Some(Hint::Bearer) => Some((header::WWW_AUTHENTICATE, "Bearer")),
            Some(Hint::Again) => Some((header::RETRY_AFTER, "1")),
        };
        if let Some((name, value)) = hint {
            headers.insert(name, HeaderValue::from_static(value));
        }
        response
    }
}

//! The errors of A2A 1.0 (§5.4, §9.5, §11.6) and the refusals below it, at the HTTP level.
//!
//! Invariant: the answer for a task that is not there and for one the caller may not see is built
//! by the same function from the requested id alone.

use super::switches::ErrorStyle;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

/// A2A's table of errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Code {
    TaskNotFound,
    TaskNotCancelable,
    PushNotSupported,
    Unsupported,
    ContentType,
    InvalidAgentResponse,
    ExtendedCard,
    ExtensionRequired,
    Version,
    Parse,
    Envelope,
    Method,
    Params,
    Internal,
}

impl Code {
    const ALL: [Self; 14] = [
        Self::TaskNotFound,
        Self::TaskNotCancelable,
        Self::PushNotSupported,
        Self::Unsupported,
        Self::ContentType,
        Self::InvalidAgentResponse,
        Self::ExtendedCard,
        Self::ExtensionRequired,
        Self::Version,
        Self::Parse,
        Self::Envelope,
        Self::Method,
        Self::Params,
        Self::Internal,
    ];

    /// JSON-RPC code, HTTP+JSON status, its gRPC name, and the `reason`.
    const fn row(self) -> (i64, u16, &'static str, Option<&'static str>) {
        match self {
            Self::TaskNotFound => (-32001, 404, "NOT_FOUND", Some("TASK_NOT_FOUND")),
            Self::TaskNotCancelable => (-32002, 400, "FAILED_PRECONDITION", Some("TASK_NOT_CANCELABLE")),
            Self::PushNotSupported => (-32003, 400, "UNIMPLEMENTED", Some("PUSH_NOTIFICATION_NOT_SUPPORTED")),
            Self::Unsupported => (-32004, 400, "UNIMPLEMENTED", Some("UNSUPPORTED_OPERATION")),
            Self::ContentType => (-32005, 400, "INVALID_ARGUMENT", Some("CONTENT_TYPE_NOT_SUPPORTED")),
            Self::InvalidAgentResponse => (-32006, 500, "INTERNAL", Some("INVALID_AGENT_RESPONSE")),
            Self::ExtendedCard => {
                (-32007, 400, "FAILED_PRECONDITION", Some("EXTENDED_AGENT_CARD_NOT_CONFIGURED"))
            }
            Self::ExtensionRequired => {
                (-32008, 400, "FAILED_PRECONDITION", Some("EXTENSION_SUPPORT_REQUIRED"))
            }
            Self::Version => (-32009, 400, "UNIMPLEMENTED", Some("VERSION_NOT_SUPPORTED")),
            Self::Parse => (-32700, 400, "INVALID_ARGUMENT", None),
            Self::Envelope => (-32600, 400, "INVALID_ARGUMENT", None),
            Self::Method => (-32601, 404, "NOT_FOUND", None),
            Self::Params => (-32602, 400, "INVALID_ARGUMENT", Some("INVALID_PARAMS")),
            Self::Internal => (-32603, 500, "INTERNAL", None),
        }
    }

    pub(super) const fn number(self) -> i64 {
        self.row().0
    }
}

/// One refusal of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct A2aError {
    pub(super) code: Code,
    message: String,
    metadata: Map<String, Value>,
    violations: Vec<(String, String)>,
}

impl A2aError {
    pub(super) fn new(code: Code, message: &str) -> Self {
        Self { code, message: message.to_owned(), metadata: Map::new(), violations: Vec::new() }
    }

    /// Missing, malformed or invisible: the same bytes for all three.
    pub(super) fn not_found(task_id: &str) -> Self {
        Self::new(Code::TaskNotFound, "Task not found").with("taskId", task_id)
    }

    pub(super) fn unsupported(message: &str) -> Self {
        Self::new(Code::Unsupported, message)
    }

    /// −32602 that names the field.
    pub(super) fn field(field: &str, description: &str) -> Self {
        let mut error = Self::new(Code::Params, "Invalid parameters");
        error.violations.push((field.to_owned(), description.to_owned()));
        error
    }

    pub(super) fn with(mut self, key: &str, value: &str) -> Self {
        self.metadata.insert(key.to_owned(), value.into());
        self
    }

    /// The error a script names by its number (`-32603`) or its reason.
    pub(super) fn scripted(name: &str) -> Self {
        let code = Code::ALL
            .into_iter()
            .find(|code| code.row().3 == Some(name) || code.number().to_string() == name)
            .unwrap_or(Code::Internal);
        Self::new(code, "Scripted by the sandbox")
    }

    fn details(&self, reason: Option<&str>) -> Vec<Value> {
        let mut details = Vec::new();
        if let Some(reason) = reason {
            let mut info = json!({"@type": "type.googleapis.com/google.rpc.ErrorInfo",
                "reason": reason, "domain": "a2a-protocol.org"});
            if !self.metadata.is_empty() {
                info["metadata"] = Value::Object(self.metadata.clone());
            }
            details.push(info);
        }
        if !self.violations.is_empty() {
            let violations: Vec<Value> = self
                .violations
                .iter()
                .map(|(field, description)| json!({"field": field, "description": description}))
                .collect();
            details.push(json!({"@type": "type.googleapis.com/google.rpc.BadRequest",
                "fieldViolations": violations}));
        }
        details
    }

    /// The `error` member of a JSON-RPC answer.
    pub(super) fn to_rpc(&self) -> Value {
        let mut error = json!({"code": self.code.number(), "message": self.message});
        let details = self.details(self.code.row().3);
        if !details.is_empty() {
            error["data"] = Value::Array(details);
        }
        error
    }

    /// Status, content type and body on HTTP+JSON.
    pub(super) fn to_rest(&self, style: ErrorStyle) -> (u16, &'static str, Value) {
        let (_, status, name, reason) = self.code.row();
        // Over JSON-RPC the code says it; here several share a status, and the official server names these.
        let reason = reason.or(match self.code {
            Code::Method => Some("METHOD_NOT_FOUND"),
            Code::Envelope | Code::Parse => Some("INVALID_REQUEST"),
            Code::Internal => Some("INTERNAL_ERROR"),
            _ => None,
        });
        match style {
            ErrorStyle::GoogleRpc => (
                status,
                "application/json",
                json!({"error": {"code": status, "status": name, "message": self.message,
                    "details": self.details(reason)}}),
            ),
            ErrorStyle::ProblemJson => {
                let slug = reason.unwrap_or("INTERNAL").to_ascii_lowercase().replace('_', "-");
                (
                    status,
                    "application/problem+json",
                    json!({"type": format!("https://a2a-protocol.org/errors/{slug}"),
                        "title": self.message, "status": status, "detail": self.message}),
                )
            }
        }
    }
}

/// A refusal before any operation, in the runtime's own shape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) status: u16,
    pub(super) code: &'static str,
    message: &'static str,
}

impl Refusal {
    pub(super) const fn new(status: u16, code: &'static str, message: &'static str) -> Self {
        Self { status, code, message }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let body = json!({"status": "rejected", "code": self.code, "message": self.message});
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, axum::Json(body)).into_response();
        if self.status == 401 {
            let challenge = if self.code == "credential_required" {
                HeaderValue::from_static("Bearer")
            } else {
                HeaderValue::from_static("Bearer error=\"invalid_token\"")
            };
            response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rest_bodies_name_the_reason_or_the_problem_type() {
        let error = A2aError::unsupported("No");
        let (status, kind, body) = error.to_rest(ErrorStyle::GoogleRpc);
        assert_eq!((status, kind), (400, "application/json"));
        assert_eq!(body["error"]["details"][0]["reason"], "UNSUPPORTED_OPERATION");
        let (_, kind, body) = error.to_rest(ErrorStyle::ProblemJson);
        assert_eq!(kind, "application/problem+json");
        assert_eq!(body["type"], "https://a2a-protocol.org/errors/unsupported-operation");
    }

    #[test]
    fn a_script_names_an_error_by_number_or_reason() {
        assert_eq!(A2aError::scripted("-32006").code, Code::InvalidAgentResponse);
        assert_eq!(A2aError::scripted("TASK_NOT_FOUND").code, Code::TaskNotFound);
        assert_eq!(A2aError::scripted("nonsense").code, Code::Internal);
    }
}

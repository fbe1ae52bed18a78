//! A2A 1.0 as it arrives: lenient in.
//!
//! Invariants: any JSON is either understood or left out, nothing panics and one odd field does not
//! spoil its neighbours; an absent field, `null`, `""` and `[]` mean the same (A2A 1.0 §5.5–5.7); a
//! state this version does not know is kept as "unclear", from which nothing follows. U+0000 is
//! replaced here, because not every database takes it.

use serde_json::{Map, Value};

/// Longest id of a task or an interaction that is dealt with, in bytes; longer ones do not fit a
/// database index.
pub(crate) const LONGEST_ID: usize = 512;

/// What a task is doing (A2A 1.0 §4.1.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    InputRequired,
    AuthRequired,
    /// Submitted or working.
    Running,
    Completed,
    Failed,
    Canceled,
    Rejected,
    Unclear,
}

impl State {
    pub(crate) fn parse(text: &str) -> Self {
        match text {
            "TASK_STATE_INPUT_REQUIRED" => Self::InputRequired,
            "TASK_STATE_AUTH_REQUIRED" => Self::AuthRequired,
            "TASK_STATE_SUBMITTED" | "TASK_STATE_WORKING" => Self::Running,
            "TASK_STATE_COMPLETED" => Self::Completed,
            "TASK_STATE_FAILED" => Self::Failed,
            "TASK_STATE_CANCELED" => Self::Canceled,
            "TASK_STATE_REJECTED" => Self::Rejected,
            _ => Self::Unclear,
        }
    }

    /// Whether the task waits for somebody.
    pub(crate) fn interrupted(self) -> bool {
        matches!(self, Self::InputRequired | Self::AuthRequired)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Task {
    pub(crate) id: String,
    pub(crate) context: Option<String>,
    pub(crate) state: State,
    /// When the state was entered, as the runtime wrote it.
    pub(crate) timestamp: Option<String>,
    pub(crate) message: Option<Message>,
    pub(crate) history: Vec<Message>,
}

impl Task {
    /// `None` when it has no id that can be used.
    pub(crate) fn parse(value: &Value) -> Option<Self> {
        let id = text(value, "id").filter(|id| id.len() <= LONGEST_ID)?;
        let status = value.get("status").unwrap_or(&Value::Null);
        let history = value.get("history").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        Some(Self {
            id,
            context: text(value, "contextId"),
            state: State::parse(status.get("state").and_then(Value::as_str).unwrap_or_default()),
            timestamp: text(status, "timestamp"),
            message: status.get("message").and_then(Message::parse),
            history: history.iter().filter_map(Message::parse).collect(),
        })
    }

    /// The task in what `SendMessage` returns; `None` for a message or anything else.
    pub(crate) fn of_send(result: &Value) -> Option<Self> {
        match result.get("task") {
            Some(task) if task.is_object() => Self::parse(task),
            _ if result.get("status").is_some() => Self::parse(result),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Message {
    pub(crate) id: Option<String>,
    pub(crate) from_user: bool,
    pub(crate) parts: Vec<Part>,
    pub(crate) metadata: Map<String, Value>,
}

impl Message {
    pub(crate) fn parse(value: &Value) -> Option<Self> {
        let fields = value.as_object()?;
        let parts = fields.get("parts").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        Some(Self {
            id: text(value, "messageId"),
            from_user: fields.get("role").and_then(Value::as_str) == Some("ROLE_USER"),
            parts: parts.iter().filter_map(Part::parse).collect(),
            metadata: fields.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default(),
        })
    }

    /// The text parts, one per line.
    pub(crate) fn text(&self) -> String {
        let texts: Vec<&str> = self
            .parts
            .iter()
            .filter_map(|part| match part {
                Part::Text(text) => Some(text.as_str()),
                Part::Data | Part::Other => None,
            })
            .collect();
        texts.join("\n")
    }
}

/// A part's kind is decided by which key it has, not by any other field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    Text(String),
    Data,
    /// A file, by address or by content.
    Other,
}

impl Part {
    fn parse(value: &Value) -> Option<Self> {
        let fields = value.as_object()?;
        if let Some(text) = fields.get("text").and_then(Value::as_str).filter(|text| !text.is_empty()) {
            return Some(Self::Text(clean(text)));
        }
        // A `data` key with `null` is a data part.
        if fields.contains_key("data") {
            return Some(Self::Data);
        }
        let file = ["url", "raw"].iter().any(|key| fields.get(*key).is_some_and(Value::is_string));
        file.then_some(Self::Other)
    }
}

/// A non-empty string of an object, without U+0000.
pub(crate) fn text(value: &Value, key: &str) -> Option<String> {
    value.get(key).and_then(Value::as_str).filter(|text| !text.is_empty()).map(clean)
}

pub(crate) fn clean(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

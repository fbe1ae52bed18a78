//! Tasks as they are written on the wire (A2A 1.0 §4.1, §5.5–5.7).

use super::INTERACTIONS_V1;
use super::model::{Status, TaskView};
use super::switches::Switches;
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use std::fmt::Write as _;

/// What of a task a caller is shown.
#[expect(clippy::struct_excessive_bools, reason = "each is one independent choice")]
pub(super) struct Show {
    /// `None` = the server's default, everything.
    pub(super) history: Option<usize>,
    pub(super) artifacts: bool,
    /// The extension's metadata; off for a client that did not name it where that is needed.
    pub(super) metadata: bool,
    pub(super) message_id: bool,
    /// Members without a value are written out.
    pub(super) defaults: bool,
    /// A read at this time, which may be stale; `None` = the true status.
    pub(super) read_at_ms: Option<i64>,
}

impl Show {
    pub(super) const fn new(switches: &Switches, extension_named: bool) -> Self {
        Self {
            history: None,
            artifacts: true,
            metadata: extension_named || !switches.metadata_needs_header,
            message_id: switches.status_message_id,
            defaults: switches.default_fields,
            read_at_ms: None,
        }
    }
}

/// ISO 8601 UTC with milliseconds.
pub(super) fn timestamp(ms: i64) -> String {
    Timestamp::from_millisecond(ms)
        .map_or_else(|_| String::new(), |at| at.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string())
}

/// The Task object.
pub(super) fn task(task: &TaskView, show: &Show) -> Value {
    let status = show.read_at_ms.map_or(&task.status, |now| task.read_status(now));
    let mut out =
        json!({"id": task.id, "contextId": task.context, "status": self::status(task, status, show)});
    let history = show.history.unwrap_or(usize::MAX).min(task.history.len());
    if history > 0 {
        let from = task.history.len() - history;
        out["history"] = task.history.get(from..).unwrap_or_default().into();
    }
    if show.artifacts && !task.artifacts.is_empty() {
        out["artifacts"] = task.artifacts.clone().into();
    }
    out
}

/// The TaskStatus object, with the open interaction where there is one.
pub(super) fn status(task: &TaskView, status: &Status, show: &Show) -> Value {
    let state = task.shown_as.as_deref().unwrap_or_else(|| status.state.name());
    let mut out = json!({"state": state, "timestamp": timestamp(status.at_ms)});
    let asked = status.open.as_deref().and_then(|id| task.interaction(id));
    let (id, text) = match (asked, &status.text) {
        (Some(asked), _) => (asked.id.clone(), asked.ask.wording()),
        (None, Some(text)) => (format!("{}:{}", task.id, status.at_ms), text.clone()),
        (None, None) => return out,
    };
    let mut message = json!({"role": "ROLE_AGENT", "taskId": task.id, "contextId": task.context,
        "parts": [{"text": text}]});
    if show.defaults {
        message["parts"][0]["filename"] = "".into();
        message["parts"][0]["mediaType"] = "".into();
        message["extensions"] = json!([]);
        message["referenceTaskIds"] = json!([]);
        message["metadata"] = Value::Null;
    }
    if show.message_id {
        message["messageId"] = id.into();
    }
    if let Some(asked) = asked
        && asked.ask.metadata
        && show.metadata
    {
        let mut open = Map::new();
        open.insert("interactionId".into(), asked.id.clone().into());
        open.insert("kind".into(), asked.ask.kind.clone().into());
        open.insert("prompt".into(), asked.ask.wording().into());
        if let Some(detail) = asked.ask.detail_object() {
            open.insert("detail".into(), detail);
        }
        if asked.ask.listed {
            message["extensions"] = json!([INTERACTIONS_V1]);
        }
        message["metadata"] = json!({INTERACTIONS_V1: open});
    }
    out["message"] = message;
    out
}

/// The bytes of an answer; `round_trip` writes it as a server that keeps metadata in doubles and
/// in no particular order.
pub(super) fn body(value: &Value, round_trip: bool) -> Vec<u8> {
    if !round_trip {
        return value.to_string().into_bytes();
    }
    let mut out = String::new();
    write(&mut out, value, false);
    out.into_bytes()
}

fn write(out: &mut String, value: &Value, doubles: bool) {
    match value {
        Value::Object(map) => {
            out.push('{');
            for (n, (key, member)) in map.iter().rev().enumerate() {
                if n > 0 {
                    out.push(',');
                }
                out.push_str(&Value::from(key.as_str()).to_string());
                out.push(':');
                write(out, member, doubles || key == "metadata" || key == "data");
            }
            out.push('}');
        }
        Value::Array(list) => {
            out.push('[');
            for (n, member) in list.iter().enumerate() {
                if n > 0 {
                    out.push(',');
                }
                write(out, member, doubles);
            }
            out.push(']');
        }
        Value::Number(number) if doubles => match number.as_f64() {
            // Writing to a string cannot fail.
            Some(double) => drop(write!(out, "{double:?}")),
            None => out.push_str(&number.to_string()),
        },
        other => out.push_str(&other.to_string()),
    }
}

/// Equal as JSON values: numbers by their value, members in any order.
pub(super) fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        (a, b) => a == b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_trip_changes_the_text_but_not_the_value() {
        let value = json!({"a": 1, "id": 7, "metadata": {"n": 1, "m": {"k": [2, "x"]}, "big": 1.5}});
        let text = String::from_utf8(body(&value, true)).unwrap();
        assert_eq!(text, r#"{"metadata":{"n":1.0,"m":{"k":[2.0,"x"]},"big":1.5},"id":7,"a":1}"#);
        assert!(same(&serde_json::from_str(&text).unwrap(), &value));
    }

    #[test]
    fn timestamps_are_utc_with_milliseconds() {
        assert_eq!(timestamp(1_796_029_200_120), "2026-11-30T09:00:00.120Z");
    }

    #[test]
    fn sameness_is_by_value() {
        assert!(same(&json!({"a": [1, {"b": 2}]}), &json!({"a": [1.0, {"b": 2.0}]})));
        assert!(!same(&json!({"a": 1}), &json!({"a": 1, "b": 2})));
        assert!(!same(&json!("1"), &json!(1)));
    }
}

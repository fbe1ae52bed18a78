//! Reading fields of a payload leniently.
//!
//! Slack's payloads vary: `team` may be null, an object, absent; fields come and go. So nothing is
//! deserialized into a type that could refuse the whole: each field is looked up by itself, and a
//! field of an odd shape counts as missing. Missing facts refuse later, by policy, with a reason.

use serde_json::Value;

/// A text field that is not empty.
pub(super) fn text<'a>(payload: &'a Value, pointer: &str) -> Option<&'a str> {
    payload.pointer(pointer)?.as_str().filter(|text| !text.is_empty())
}

/// A field that holds an id: visible ASCII, short enough to store and to send on.
pub(super) fn id(payload: &Value, pointer: &str) -> Option<String> {
    text(payload, pointer).filter(|text| is_id(text)).map(str::to_owned)
}

pub(super) fn is_id(text: &str) -> bool {
    (1..=255).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic())
}

/// A boolean, also written as text (commands are forms).
pub(super) fn flag(payload: &Value, pointer: &str) -> bool {
    match payload.pointer(pointer) {
        Some(Value::Bool(flag)) => *flag,
        Some(Value::String(text)) => text == "true",
        _ => false,
    }
}

/// The id in a field that is an object with an `id`, or the id itself.
pub(super) fn object_id(payload: &Value, pointer: &str) -> Option<String> {
    id(payload, &format!("{pointer}/id")).or_else(|| id(payload, pointer))
}

//! Reading fields of an answer leniently: a field of an odd shape counts as missing.

use crate::domain::place::is_snowflake;
use serde_json::Value;

/// A text field that is not empty.
pub(super) fn text<'a>(body: &'a Value, pointer: &str) -> Option<&'a str> {
    body.pointer(pointer)?.as_str().filter(|text| !text.is_empty())
}

/// One of Discord's ids.
pub(super) fn id(body: &Value, pointer: &str) -> Option<String> {
    text(body, pointer).filter(|text| is_snowflake(text)).map(str::to_owned)
}

pub(super) fn flag(body: &Value, pointer: &str) -> bool {
    body.pointer(pointer).and_then(Value::as_bool).unwrap_or_default()
}

//! Reading an answer (interactions/v1, "The answer"), with the lenient value readings the page
//! gives, and no other.
//!
//! Invariant: text never approves, whatever its metadata says.

use super::error::A2aError;
use super::model::{Ask, Decision, State};
use super::params::{Content, Message};
use super::render::same;
use serde_json::{Map, Value};

/// What `message` decides about the open interaction `id`.
///
/// # Errors
/// −32004 for text to an approval, another or a stale id, the wrong kind of answer; −32602 for a
/// data answer that does not name its interaction, or whose part contradicts its metadata.
pub(super) fn read(ask: &Ask, id: &str, message: &Message) -> Result<Decision, A2aError> {
    if !ask.metadata {
        return plain(ask, message);
    }
    match ask.kind.as_str() {
        "approval" => approval(id, message),
        "question" => question(id, message),
        "connection" => connection(id, message),
        _ => Err(A2aError::unsupported("This interaction cannot be answered here")),
    }
}

fn plain(ask: &Ask, message: &Message) -> Result<Decision, A2aError> {
    if ask.pause_state() != State::InputRequired {
        return Err(A2aError::unsupported("The task waits for an authorization, not for a message"));
    }
    Ok(Decision::Value(match &message.content {
        Content::Text(text) => text.clone().into(),
        Content::Data(data) => data.first().cloned().unwrap_or_default(),
    }))
}

/// The answer's metadata, when it names the open interaction.
fn named<'a>(id: &str, message: &'a Message) -> Result<Option<&'a Map<String, Value>>, A2aError> {
    let Some(answer) = &message.answer else { return Ok(None) };
    match answer.get("interactionId") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(named)) if named == id => Ok(Some(answer)),
        Some(Value::String(_)) => Err(A2aError::unsupported("This interaction is not open")),
        Some(_) => Err(A2aError::field("message.metadata", "interactionId must be a string")),
    }
}

fn unnamed() -> A2aError {
    A2aError::field("message.metadata", "the answer must name its interactionId")
}

fn contradiction() -> A2aError {
    A2aError::field("message.parts[0].data", "contradicts the answer in the metadata")
}

fn approved(answer: &Map<String, Value>) -> Result<Option<bool>, A2aError> {
    match answer.get("approved") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Bool(approved)) => Ok(Some(*approved)),
        Some(_) => Err(A2aError::field("message.metadata", "approved must be true or false")),
    }
}

fn approval(id: &str, message: &Message) -> Result<Decision, A2aError> {
    let Content::Data(data) = &message.content else {
        return Err(A2aError::unsupported("Text never approves"));
    };
    let answer = named(id, message)?.ok_or_else(unnamed)?;
    let value = match answer.get("value") {
        None | Some(Value::Null) => None,
        Some(Value::Bool(value)) => Some(*value),
        Some(_) if approved(answer)?.is_none() => {
            return Err(A2aError::unsupported("An approval is answered with approved"));
        }
        Some(_) => return Err(contradiction()),
    };
    let part = data.first().and_then(|part| match part {
        Value::Bool(part) => Some(*part),
        Value::Object(part) => part.get("approved").or_else(|| part.get("value")).and_then(Value::as_bool),
        _ => None,
    });
    let readings: Vec<bool> = [approved(answer)?, value, part].into_iter().flatten().collect();
    match readings.as_slice() {
        [] => Err(A2aError::field("message.metadata", "the answer decides nothing")),
        [first, rest @ ..] if rest.iter().all(|other| other == first) => Ok(Decision::Approved(*first)),
        _ => Err(contradiction()),
    }
}

/// The metadata's value: `value` as it is, else `approved` as a boolean.
fn value(answer: &Map<String, Value>) -> Result<Option<Value>, A2aError> {
    match answer.get("value") {
        Some(value) => Ok(Some(value.clone())),
        None => Ok(approved(answer)?.map(Value::Bool)),
    }
}

/// Whether a data part carries this value, bare or as `{"value": …}` or `{"approved": …}`.
fn carries(part: &Value, value: &Value) -> bool {
    same(part, value)
        || ["value", "approved"].into_iter().any(|key| part.get(key).is_some_and(|inner| same(inner, value)))
}

fn question(id: &str, message: &Message) -> Result<Decision, A2aError> {
    let from_parts = || match &message.content {
        Content::Text(text) => Value::from(text.as_str()),
        Content::Data(data) => data.first().cloned().unwrap_or_default(),
    };
    let Some(answer) = named(id, message)? else {
        // A plain reply answers too; metadata that names nothing does not.
        return if message.answer.is_none() { Ok(Decision::Value(from_parts())) } else { Err(unnamed()) };
    };
    let Some(value) = value(answer)? else { return Ok(Decision::Value(from_parts())) };
    if !carries(&from_parts(), &value) {
        return Err(contradiction());
    }
    Ok(Decision::Value(value))
}

fn connection(id: &str, message: &Message) -> Result<Decision, A2aError> {
    let answer = match (named(id, message)?, &message.content) {
        (Some(answer), _) => answer,
        (None, Content::Text(_)) => return Err(A2aError::unsupported("Text never connects")),
        (None, Content::Data(_)) => return Err(unnamed()),
    };
    let part = match &message.content {
        Content::Text(text) => Value::from(text.as_str()),
        Content::Data(data) => data.first().cloned().unwrap_or_default(),
    };
    let by_part = connected(part.get("value").or_else(|| part.get("approved")).unwrap_or(&part));
    match value(answer)? {
        Some(value) if connected(&value) != by_part => Err(contradiction()),
        _ => Ok(Decision::Connected(by_part)),
    }
}

fn connected(value: &Value) -> bool {
    *value == Value::Bool(true) || value.get("connected") == Some(&Value::Bool(true))
}

/// What the model is told.
pub(super) fn effect(ask: &Ask, decision: &Decision) -> Value {
    let app = ask.app.as_deref().unwrap_or_default();
    match decision {
        Decision::Approved(true) => "released".into(),
        Decision::Approved(false) => "tool.denied".into(),
        Decision::Value(value) => value.clone(),
        Decision::Connected(true) => format!("Connected: {app}").into(),
        Decision::Connected(false) => format!("Not connected: {app}").into(),
    }
}

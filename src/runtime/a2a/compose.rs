//! The answer as a message (interactions/v1, "The answer"): strict out, pure.
//!
//! Invariants: the same claim gives the same body and key; the metadata and the data part say the
//! same, because which of them counts is not stated; text and data are never mixed; text never
//! carries an approval; an id of ours for an interaction without one is never sent.

use super::interactions::{URI, is_plain};
use super::settings::QuestionPart;
use crate::bridge::ports::{Compose, Composed};
use crate::domain::form::{Decision, sha256_hex};
use crate::domain::interaction::Why;
use serde_json::{Map, Value, json};

/// Longest message id that runtimes take.
const LONGEST_KEY: usize = 200;

/// # Errors
/// [`Why::Malformed`] when the decision cannot be said to this interaction.
pub(crate) fn compose(answer: &Compose<'_>, question_part: QuestionPart) -> Result<Composed, Why> {
    let message_id = message_id(answer.prefix, &answer.key.external, answer.number);
    let plain = is_plain(&answer.key.external);
    let (field, value, part) = match answer.decision {
        Decision::Approve => ("approved", json!(true), json!({ "data": { "approved": true } })),
        Decision::Deny { .. } => ("approved", json!(false), json!({ "data": { "approved": false } })),
        Decision::Connected => {
            ("value", json!({ "connected": true }), json!({ "data": { "connected": true } }))
        }
        Decision::Decline => {
            ("value", json!({ "connected": false }), json!({ "data": { "connected": false } }))
        }
        Decision::Answer { values } => {
            let [value] = values.as_slice() else { return Err(Why::Malformed) };
            ("value", value.clone(), part(value, question_part))
        }
    };
    if plain && !matches!(answer.decision, Decision::Answer { .. }) {
        return Err(Why::Malformed);
    }
    let mut message = json!({
        "role": "ROLE_USER",
        "messageId": message_id,
        "taskId": answer.key.task,
        "extensions": [URI],
        "parts": [part],
    });
    if let Some(context) = answer.context {
        message["contextId"] = context.into();
    }
    if !plain {
        let mut fields = Map::new();
        fields.insert("interactionId".into(), answer.key.external.clone().into());
        fields.insert(field.into(), value);
        message["metadata"] = json!({ URI: fields });
    }
    let body = json!({
        "message": message,
        "configuration": { "returnImmediately": true, "historyLength": 0 },
    });
    Ok(Composed { message_id, body })
}

fn part(value: &Value, how: QuestionPart) -> Value {
    match (how, value) {
        // A blank text part is refused; as data it is what it is.
        (QuestionPart::Auto, Value::String(text)) if !text.trim().is_empty() => json!({ "text": text }),
        (QuestionPart::Auto | QuestionPart::DataBare, value) => json!({ "data": value }),
        (QuestionPart::DataWrapped, value) => json!({ "data": { "value": value } }),
    }
}

/// `<prefix>:<interactionId>`, then `…:2`, `…:3` for later claims; hashed where the runtime would
/// not take it (1 to 200 visible ASCII characters).
fn message_id(prefix: &str, external: &str, number: u32) -> String {
    let end = if number > 1 { format!(":{number}") } else { String::new() };
    let plain = format!("{prefix}:{external}{end}");
    if plain.len() <= LONGEST_KEY && plain.bytes().all(|byte| byte.is_ascii_graphic()) {
        return plain;
    }
    format!("{prefix}:{}{end}", sha256_hex(external.as_bytes()))
}

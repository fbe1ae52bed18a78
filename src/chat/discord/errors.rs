//! What an error of Discord means for us: one table, by code and kind of call, never by text.
//!
//! Invariant: every answer ends in one [`ChatError`] that says what to do next. A code we do not know is
//! permanent for that call and is reported; it never loops. Decided in this order: 429 (the caller), the JSON
//! code, the status; what is no JSON is the breaker's.

use super::calls::Kind;
use crate::bridge::ports::ChatError;
use serde_json::Value;
use std::time::Duration;

/// What is to be done about a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// Unknown outcome or overload.
    Transient,
    /// The bot's credentials: everything stops.
    Auth,
    /// Switched off for now.
    Later(Duration),
    Payload,
    /// The message is held back for its words.
    Withheld,
    Place,
    /// The thread takes nothing new.
    Thread,
    /// The thread is archived.
    Archived,
    /// There are too many threads.
    Crowded,
    /// The message is gone, or never was ours.
    Gone,
    NoSuchPerson,
    /// The press's token opens nothing any more.
    TooLate,
    /// It had been done before.
    Done,
    Permanent,
}

const MINUTE: Duration = Duration::from_mins(1);

/// Discord's JSON error codes (Discord: Opcodes and Status Codes, "JSON").
pub(super) const CODES: &[(Class, &[i64])] = &[
    (Class::Transient, &[130_000]),
    (Class::Auth, &[50_014, 40_001, 40_002, 40_004]),
    (Class::Later(Duration::from_mins(10)), &[40_006]),
    (Class::Later(MINUTE), &[40_003, 30_046]),
    (Class::Later(Duration::from_secs(30)), &[20_016, 20_028, 20_029]),
    (Class::Payload, &[50_006, 50_035, 40_005, 50_045]),
    (Class::Withheld, &[200_000, 240_000, 20_009]),
    (Class::Place, &[10_003, 10_004, 50_001, 50_013, 50_008, 50_024, 40_058, 50_007, 50_278]),
    (Class::Thread, &[160_005]),
    (Class::Archived, &[50_083]),
    (Class::Crowded, &[160_006, 30_033]),
    (Class::Done, &[160_004, 40_060]),
    (Class::Gone, &[10_008, 50_005]),
    (Class::NoSuchPerson, &[10_013, 50_033, 10_007]),
    (Class::TooLate, &[10_062, 10_015, 50_027, 40_094]),
    (Class::Permanent, &[30_034, 30_032, 50_109, 50_041]),
];

/// Where a call gives a code another meaning.
pub(super) const EXCEPTIONS: &[(Kind, Class, &[i64])] = &[
    (Kind::DeleteMessage, Class::Done, &[10_008, 10_003]),
    // The card went with its channel.
    (Kind::EditMessage, Class::Gone, &[10_003, 10_004]),
    // Given up: what is archived for good is not edited.
    (Kind::EditMessage, Class::Permanent, &[160_005]),
    // Not a right to unarchive.
    (Kind::EditChannel, Class::Archived, &[50_013, 50_001, 160_005]),
    // A thread without its first message.
    (Kind::BeginThread, Class::Thread, &[10_008]),
];

pub(super) fn class(kind: Kind, status: u16, code: i64) -> Class {
    let exception = EXCEPTIONS.iter().find(|(of, _, codes)| *of == kind && codes.contains(&code));
    if let Some((_, class, _)) = exception {
        return *class;
    }
    if let Some((_, (class, _))) = CODES.iter().enumerate().find(|(_, (_, codes))| codes.contains(&code)) {
        return *class;
    }
    match status {
        401 if !kind.by_token() => Class::Auth,
        401 => Class::TooLate,
        500..=599 => Class::Transient,
        _ => Class::Permanent,
    }
}

/// The error of an answer with a JSON body that is no success and no 429.
pub(super) fn classify(kind: Kind, status: u16, body: &Value) -> ChatError {
    let number = body.get("code").and_then(Value::as_i64).unwrap_or_default();
    let code = word(status, number);
    match class(kind, status, number) {
        Class::Transient => unusable(kind, &code),
        Class::Auth => ChatError::Auth { code, needed: String::new() },
        Class::Later(after) => ChatError::Paced { after },
        Class::Payload => ChatError::Payload { pointer: pointers(body), code },
        Class::Withheld => ChatError::Payload { pointer: WITHHELD.into(), code },
        Class::Place => ChatError::Place { code },
        Class::Thread => ChatError::Thread { code },
        Class::Archived | Class::Crowded => ChatError::Closed { code },
        Class::Gone => ChatError::Gone { code },
        Class::NoSuchPerson => ChatError::NoSuchPerson { code },
        Class::TooLate => ChatError::TooLate { code },
        // The caller asks for this before it asks for an error.
        Class::Done => ChatError::OutOfDate { code },
        Class::Permanent => ChatError::Permanent { code: format!("{} {code}", kind.template()) },
    }
}

/// Instead of a pointer: it was refused for what it says, not for its form.
pub(super) const WITHHELD: &str = "withheld";

/// No usable answer came, after something was sent.
pub(super) fn unusable(kind: Kind, what: &str) -> ChatError {
    let what = format!("{}: {what}", kind.template());
    if kind.writes() { ChatError::Unknown { what } } else { ChatError::Unavailable { what } }
}

/// A code as it stands in logs, alerts and what is kept about a place.
pub(super) fn word(status: u16, code: i64) -> String {
    if code == 0 { format!("http {status}") } else { code.to_string() }
}

/// Where in the body Discord found faults, flattened: `components.0.components.1.label BASE_TYPE_BAD_LENGTH`.
pub(super) fn pointers(body: &Value) -> String {
    let mut found = vec![];
    if let Some(errors) = body.get("errors") {
        flatten(errors, &mut vec![], &mut found);
    }
    found.truncate(5);
    found.join(", ")
}

fn flatten(errors: &Value, path: &mut Vec<String>, found: &mut Vec<String>) {
    let Some(map) = errors.as_object().filter(|_| path.len() < 16 && found.len() < 16) else { return };
    if let Some(list) = map.get("_errors").and_then(Value::as_array) {
        for error in list.iter().take(3) {
            let code = error.get("code").and_then(Value::as_str).unwrap_or_default();
            found.push(clean(&format!("{} {code}", path.join("."))));
        }
    }
    for (key, below) in map.iter().filter(|(key, _)| *key != "_errors") {
        path.push(key.clone());
        flatten(below, path, found);
        path.pop();
    }
}

/// Discord's own words are of this form; anything else would be somebody's text.
fn clean(text: &str) -> String {
    text.chars()
        .filter(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | ' '))
        .take(160)
        .collect::<String>()
        .trim()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_code_stands_in_one_class() {
        let mut seen = std::collections::BTreeSet::new();
        for code in CODES.iter().flat_map(|(_, codes)| codes.iter()) {
            assert!(seen.insert(*code), "{code} stands twice");
        }
    }

    #[test]
    fn what_to_do_about_each_code() {
        use Kind::{DeleteMessage, EditChannel, EditMessage, FollowUp, PostMessage};
        for (kind, status, code, expected) in [
            (PostMessage, 401, 0, Class::Auth),
            (FollowUp, 401, 0, Class::TooLate),
            (FollowUp, 401, 50_027, Class::TooLate),
            (PostMessage, 404, 10_003, Class::Place),
            (EditMessage, 404, 10_003, Class::Gone),
            (EditMessage, 404, 10_008, Class::Gone),
            (DeleteMessage, 404, 10_008, Class::Done),
            (EditMessage, 403, 50_013, Class::Place),
            (EditChannel, 403, 50_013, Class::Archived),
            (PostMessage, 400, 160_005, Class::Thread),
            (EditMessage, 400, 160_005, Class::Permanent),
            (PostMessage, 500, 0, Class::Transient),
            (PostMessage, 403, 99, Class::Permanent),
            (PostMessage, 404, 0, Class::Permanent),
            (PostMessage, 400, 0, Class::Permanent),
            (PostMessage, 405, 0, Class::Permanent),
        ] {
            assert_eq!(class(kind, status, code), expected, "{kind:?} {status} {code}");
        }
    }

    #[test]
    fn faults_are_flattened_and_hold_no_text() {
        let body = json!({"code": 50035, "message": "Invalid Form Body", "errors": {"components": {"0": {"components": {"1":
            {"label": {"_errors": [{"code": "BASE_TYPE_BAD_LENGTH", "message": "Must be between 1 and 80 in length."}]}}}}}}});
        assert_eq!(pointers(&body), "components.0.components.1.label BASE_TYPE_BAD_LENGTH");
        let foreign = json!({"errors": {"<secret>\u{e4}": {"_errors": [{"code": "x y"}]}}});
        assert_eq!(pointers(&foreign), "secret x y");
        assert_eq!(pointers(&json!({"errors": []})), "");
    }
}

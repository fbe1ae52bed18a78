//! What an error of Slack means for us: one table, by method and exact code, never by text.
//!
//! Invariant: every code ends in one [`ChatError`] that says what to do next. A code we do not know
//! is permanent for that call and is reported; it never loops. A transient code of a write is an
//! unknown outcome: Slack may have done it.

use super::methods::Method;
use crate::bridge::ports::ChatError;
use serde_json::Value;

/// What is to be done about a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    Transient,
    Payload,
    Place,
    Thread,
    Closed,
    Auth,
    Gone,
    NotEditable,
    Unreadable,
    NoSuchPerson,
    /// A trigger that opens nothing any more.
    TooLate,
    OutOfDate,
    SwitchedOff,
    Permanent,
}

/// Codes that mean the same for every method (Slack: error lists of the methods).
pub(super) const CODES: &[(Class, &[&str])] = &[
    (
        Class::Transient,
        &[
            "internal_error",
            "fatal_error",
            "service_unavailable",
            "request_timeout",
            "team_added_to_org",
            "external_channel_migrating",
            "update_failed",
            "streaming_state_conflict",
        ],
    ),
    (
        Class::Payload,
        &[
            "invalid_blocks",
            "invalid_blocks_format",
            "block_mismatch",
            "msg_blocks_too_long",
            "msg_too_long",
            "no_text",
            "too_many_attachments",
            "invalid_arguments",
            "markdown_text_conflict",
            "view_too_large",
            "invalid_metadata_format",
            "invalid_metadata_schema",
            "metadata_too_large",
            "metadata_must_be_sent_from_app",
        ],
    ),
    (
        Class::Place,
        &[
            "channel_not_found",
            "is_archived",
            "is_inactive",
            "not_in_channel",
            "messages_tab_disabled",
            "app_access_restricted",
            "ekm_access_denied",
            "team_access_not_granted",
            "posting_to_channel_denied",
            "message_limit_exceeded",
            "channel_is_limited_access",
            "user_disabled",
            "user_not_in_channel",
            "user_not_visible",
            "cannot_dm_bot",
            "method_not_supported_for_channel_type",
        ],
    ),
    (Class::Thread, &["cannot_reply_to_message", "restricted_action_thread_locked"]),
    (
        Class::Auth,
        &[
            "invalid_auth",
            "not_authed",
            "account_inactive",
            "token_revoked",
            "token_expired",
            "team_not_found",
            "no_permission",
            "missing_scope",
            "not_allowed_token_type",
        ],
    ),
    (Class::Gone, &["message_not_found"]),
    (Class::NotEditable, &["cant_update_message", "edit_window_closed", "cant_delete_message"]),
    (Class::Unreadable, &["no_such_subteam", "plan_upgrade_required", "thread_not_found"]),
    (Class::NoSuchPerson, &["users_not_found", "user_not_found"]),
];

/// Where a method gives a code another meaning.
pub(super) const EXCEPTIONS: &[(Method, Class, &[&str])] = &[
    (Method::Update, Class::Gone, &["channel_not_found"]),
    // Not for good: it is tried again when the channel is open again.
    (Method::Update, Class::Closed, &["is_archived", "is_inactive"]),
    (Method::Delete, Class::Closed, &["is_archived", "is_inactive"]),
    (Method::Delete, Class::Gone, &["channel_not_found"]),
    // Without `im:write` nobody can be written to directly; everything else works.
    (Method::OpenConversation, Class::Place, &["user_not_found", "users_not_found", "missing_scope"]),
    // A link is a convenience, whatever is wrong.
    (Method::Permalink, Class::Gone, &["channel_not_found"]),
    (
        Method::OpenView,
        Class::TooLate,
        &[
            "expired_trigger_id",
            "trigger_expired",
            "exchanged_trigger_id",
            "trigger_exchanged",
            "invalid_trigger_id",
        ],
    ),
    (Method::UpdateView, Class::Gone, &["not_found"]),
    (Method::UpdateView, Class::OutOfDate, &["hash_conflict"]),
    (Method::PublishView, Class::OutOfDate, &["hash_conflict"]),
    (Method::PublishView, Class::SwitchedOff, &["not_enabled"]),
    // A stranger whom this workspace may not see.
    (Method::UserInfo, Class::NoSuchPerson, &["user_not_visible"]),
    // We may not look there: without history everything else works.
    (
        Method::History,
        Class::Unreadable,
        &["missing_scope", "not_in_channel", "channel_not_found", "no_permission"],
    ),
    (
        Method::Replies,
        Class::Unreadable,
        &["missing_scope", "not_in_channel", "channel_not_found", "no_permission"],
    ),
];

/// Codes about the metadata alone: the same message goes without it.
pub(super) const METADATA: [&str; 4] = [
    "invalid_metadata_format",
    "invalid_metadata_schema",
    "metadata_too_large",
    "metadata_must_be_sent_from_app",
];

pub(super) fn class(method: Method, code: &str) -> Class {
    let exception = EXCEPTIONS.iter().find(|(of, _, codes)| *of == method && codes.contains(&code));
    if let Some((_, class, _)) = exception {
        return *class;
    }
    let otherwise = if code.starts_with("restricted_action") { Class::Place } else { Class::Permanent };
    CODES.iter().find(|(_, codes)| codes.contains(&code)).map_or(otherwise, |(class, _)| *class)
}

/// The error of an answer `{"ok": false, "error": code}`.
pub(super) fn classify(method: Method, code: &str, body: &Value) -> ChatError {
    let code = word(code);
    match class(method, &code) {
        Class::Transient => unusable(method, &code),
        Class::Payload => ChatError::Payload { pointer: pointer(body), code },
        Class::Place if code == "missing_scope" => {
            ChatError::Place { code: format!("{code} {}", needed(body)).trim().to_owned() }
        }
        Class::Place => ChatError::Place { code },
        Class::Thread => ChatError::Thread { code },
        Class::Closed => ChatError::Closed { code },
        Class::Auth => ChatError::Auth { code, needed: needed(body) },
        Class::Gone => ChatError::Gone { code },
        Class::NotEditable => ChatError::NotEditable { code },
        Class::Unreadable => ChatError::Unreadable { code },
        Class::NoSuchPerson => ChatError::NoSuchPerson { code },
        Class::TooLate => ChatError::TooLate { code },
        Class::OutOfDate => ChatError::OutOfDate { code },
        Class::SwitchedOff => ChatError::SwitchedOff { code },
        Class::Permanent => ChatError::Permanent { code },
    }
}

/// No usable answer came, after something was sent.
pub(super) fn unusable(method: Method, what: &str) -> ChatError {
    let what = format!("{}: {what}", method.name());
    if method.writes() { ChatError::Unknown { what } } else { ChatError::Unavailable { what } }
}

/// The scope that a call lacks.
fn needed(body: &Value) -> String {
    body.get("needed").and_then(Value::as_str).map(word).unwrap_or_default()
}

/// A code or scope as it may stand in logs and alerts: Slack's own words are of this form.
fn word(code: &str) -> String {
    let word: String = code
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | ':' | '.' | ',' | '-'))
        .take(120)
        .collect();
    if word.is_empty() { "unreadable_code".into() } else { word }
}

/// Where in the payload Slack found the fault.
fn pointer(body: &Value) -> String {
    let lists = [body.pointer("/response_metadata/messages"), body.get("errors")];
    let mut messages =
        lists.into_iter().flatten().filter_map(Value::as_array).flatten().filter_map(Value::as_str);
    messages
        .find_map(|message| {
            let (_, rest) = message.split_once("[json-pointer:")?;
            let (pointer, _) = rest.split_once(']')?;
            let clean = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '/' | '_' | '-' | '~');
            Some(pointer.chars().filter(clean).take(200).collect())
        })
        .unwrap_or_default()
}

#[cfg(test)]
#[path = "errors_tests.rs"]
mod tests;

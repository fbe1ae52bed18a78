use super::*;
use serde_json::json;

/// Reads the table the other way round, and asks for every method whose list differs.
#[test]
fn slack_case_20_and_23_every_code_has_its_class() {
    use Class::{Auth, Gone, NoSuchPerson, NotEditable, Payload, Permanent, Place, Transient, Unreadable};
    let expected = [
        (
            Method::PostMessage,
            Transient,
            "internal_error fatal_error service_unavailable request_timeout team_added_to_org external_channel_migrating",
        ),
        (Method::Update, Transient, "internal_error update_failed streaming_state_conflict"),
        (
            Method::PostMessage,
            Payload,
            "invalid_blocks invalid_blocks_format block_mismatch msg_blocks_too_long msg_too_long no_text too_many_attachments invalid_arguments markdown_text_conflict view_too_large invalid_metadata_format invalid_metadata_schema metadata_too_large metadata_must_be_sent_from_app",
        ),
        (
            Method::PostMessage,
            Place,
            "channel_not_found is_archived not_in_channel restricted_action restricted_action_read_only_channel restricted_action_thread_only_channel restricted_action_thread_locked cannot_reply_to_message messages_tab_disabled app_access_restricted ekm_access_denied team_access_not_granted posting_to_channel_denied message_limit_exceeded channel_is_limited_access",
        ),
        (
            Method::OpenConversation,
            Place,
            "user_not_found user_disabled user_not_visible method_not_supported_for_channel_type",
        ),
        (
            Method::PostMessage,
            Auth,
            "invalid_auth not_authed account_inactive token_revoked token_expired team_not_found no_permission missing_scope not_allowed_token_type",
        ),
        (Method::GroupMembers, Auth, "missing_scope"),
        (Method::Update, Gone, "message_not_found channel_not_found"),
        (Method::Delete, Gone, "message_not_found channel_not_found"),
        (Method::Update, NotEditable, "cant_update_message edit_window_closed is_inactive is_archived"),
        (Method::UserInfo, NoSuchPerson, "user_not_found users_not_found user_not_visible"),
        (Method::GroupMembers, Unreadable, "no_such_subteam plan_upgrade_required"),
        (Method::History, Unreadable, "missing_scope not_in_channel channel_not_found"),
        (Method::Replies, Unreadable, "missing_scope not_in_channel channel_not_found thread_not_found"),
        (Method::PostMessage, Permanent, "expired_trigger_id something_new hash_conflict"),
    ];
    for (method, class_expected, codes) in expected {
        for code in codes.split(' ') {
            assert_eq!(class(method, code), class_expected, "{} {code}", method.name());
        }
    }
}

#[test]
fn slack_case_20_a_transient_write_is_an_unknown_outcome() {
    let outcome = |method| classify(method, "internal_error", &Value::Null);
    for method in [Method::PostMessage, Method::Update, Method::PostEphemeral, Method::Delete] {
        assert!(matches!(outcome(method), ChatError::Unknown { .. }), "{}", method.name());
    }
    for method in [Method::UserInfo, Method::History, Method::OpenConversation, Method::AuthTest] {
        assert!(matches!(outcome(method), ChatError::Unavailable { .. }), "{}", method.name());
    }
}

#[test]
fn slack_case_35_the_pointer_is_kept_and_nothing_else_of_the_message() {
    let body = json!({"ok": false, "error": "invalid_blocks",
        "errors": ["must be less than 3001 characters [json-pointer:/blocks/0/text/text]"],
        "response_metadata": {"messages": ["[ERROR] \"secret words\" [json-pointer:/blocks/0/text/te xt]"]}});
    match classify(Method::PostMessage, "invalid_blocks", &body) {
        ChatError::Payload { code, pointer } => {
            assert_eq!((code.as_str(), pointer.as_str()), ("invalid_blocks", "/blocks/0/text/text"));
        }
        other => panic!("{other:?}"),
    }
    for odd in [json!({"errors": "x"}), json!({"errors": [1, "no pointer"]}), Value::Null] {
        assert!(
            matches!(classify(Method::Update, "msg_too_long", &odd), ChatError::Payload { pointer, .. } if pointer.is_empty())
        );
    }
}

#[test]
fn slack_case_38_the_needed_scope_is_named() {
    let body = json!({"needed": "chat:write", "provided": "commands"});
    match classify(Method::PostMessage, "missing_scope", &body) {
        ChatError::Auth { code, needed } => {
            assert_eq!((code.as_str(), needed.as_str()), ("missing_scope", "chat:write"));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_code_that_is_no_word_is_not_repeated() {
    match classify(Method::PostMessage, "<b>\u{202e}\n", &Value::Null) {
        ChatError::Permanent { code } => assert_eq!(code, "b"),
        other => panic!("{other:?}"),
    }
    assert!(
        matches!(classify(Method::PostMessage, "…", &Value::Null), ChatError::Permanent { code } if code == "unreadable_code")
    );
}

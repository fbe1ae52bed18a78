use super::*;
use serde_json::json;

/// Every method we call.
const METHODS: [Method; 17] = [
    Method::AuthTest,
    Method::BotsInfo,
    Method::PostMessage,
    Method::Update,
    Method::PostEphemeral,
    Method::Delete,
    Method::OpenConversation,
    Method::ConversationInfo,
    Method::ListConversations,
    Method::History,
    Method::Replies,
    Method::UserInfo,
    Method::GroupMembers,
    Method::Permalink,
    Method::OpenView,
    Method::UpdateView,
    Method::PublishView,
];

/// Slack's own words, each with what it means where no method says otherwise; by hand, not from the table.
const MEANS: [(Class, &str); 9] = [
    (
        Class::Transient,
        "internal_error fatal_error service_unavailable request_timeout team_added_to_org external_channel_migrating update_failed streaming_state_conflict",
    ),
    (
        Class::Payload,
        "invalid_blocks invalid_blocks_format block_mismatch msg_blocks_too_long msg_too_long no_text too_many_attachments invalid_arguments markdown_text_conflict view_too_large invalid_metadata_format invalid_metadata_schema metadata_too_large metadata_must_be_sent_from_app",
    ),
    (
        Class::Place,
        "channel_not_found is_archived is_inactive not_in_channel restricted_action restricted_action_read_only_channel restricted_action_thread_only_channel restricted_action_non_threadable_channel messages_tab_disabled app_access_restricted ekm_access_denied team_access_not_granted posting_to_channel_denied message_limit_exceeded channel_is_limited_access user_disabled user_not_visible user_not_in_channel cannot_dm_bot method_not_supported_for_channel_type",
    ),
    (
        Class::Auth,
        "invalid_auth not_authed account_inactive token_revoked token_expired team_not_found no_permission missing_scope not_allowed_token_type",
    ),
    (Class::Gone, "message_not_found"),
    (Class::NotEditable, "cant_update_message edit_window_closed cant_delete_message"),
    (Class::Thread, "restricted_action_thread_locked cannot_reply_to_message"),
    (Class::NoSuchPerson, "users_not_found user_not_found"),
    (
        Class::Permanent,
        "expired_trigger_id trigger_expired exchanged_trigger_id trigger_exchanged invalid_trigger_id hash_conflict not_found duplicate_external_id push_limit_reached not_enabled something_new",
    ),
];

/// Where a method means something else by it.
const OTHERWISE: [(Method, Class, &str); 16] = [
    (Method::Update, Class::Gone, "channel_not_found"),
    (Method::Update, Class::Closed, "is_archived is_inactive"),
    (Method::Delete, Class::Closed, "is_archived is_inactive"),
    (Method::Delete, Class::Gone, "channel_not_found"),
    (Method::Permalink, Class::Gone, "channel_not_found"),
    (Method::OpenConversation, Class::Place, "user_not_found users_not_found missing_scope"),
    (Method::UserInfo, Class::NoSuchPerson, "user_not_visible"),
    (Method::History, Class::Unreadable, "missing_scope not_in_channel channel_not_found no_permission"),
    (Method::Replies, Class::Unreadable, "missing_scope not_in_channel channel_not_found no_permission"),
    (
        Method::OpenView,
        Class::TooLate,
        "expired_trigger_id trigger_expired exchanged_trigger_id trigger_exchanged invalid_trigger_id",
    ),
    (Method::UpdateView, Class::OutOfDate, "hash_conflict"),
    (Method::UpdateView, Class::Gone, "not_found"),
    (Method::PublishView, Class::OutOfDate, "hash_conflict"),
    (Method::PublishView, Class::SwitchedOff, "not_enabled"),
    (Method::GroupMembers, Class::Unreadable, "no_such_subteam plan_upgrade_required"),
    (Method::Replies, Class::Unreadable, "thread_not_found"),
];

/// Slack cases 36, 37 and 38: what each code means, for every method.
#[test]
fn slack_case_20_and_23_every_code_has_its_class() {
    for method in METHODS {
        for (class_expected, codes) in MEANS {
            for code in codes.split(' ') {
                let otherwise = OTHERWISE
                    .iter()
                    .find(|(of, _, codes)| *of == method && codes.split(' ').any(|c| c == code));
                let expected = otherwise.map_or(class_expected, |(_, class, _)| *class);
                assert_eq!(class(method, code), expected, "{} {code}", method.name());
            }
        }
    }
    for (method, expected, codes) in OTHERWISE {
        for code in codes.split(' ') {
            assert_eq!(class(method, code), expected, "{} {code}", method.name());
        }
    }
}

/// The table has no word that the list above lacks, and no word twice.
#[test]
fn no_code_is_of_two_classes() {
    let listed: Vec<&str> = MEANS
        .iter()
        .map(|(_, codes)| *codes)
        .chain(OTHERWISE.iter().map(|(_, _, codes)| *codes))
        .flat_map(|codes| codes.split(' '))
        .collect();
    let mut seen = std::collections::BTreeSet::new();
    for (_, codes) in CODES {
        for code in *codes {
            assert!(seen.insert(*code), "{code} has two classes");
            assert!(listed.contains(code), "{code} is in no list here");
        }
    }
    for (method, _, codes) in EXCEPTIONS {
        for code in *codes {
            assert!(listed.contains(code), "{} {code} is in no list here", method.name());
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

/// A scope that only direct messages need makes those impossible, and nothing else.
#[test]
fn the_scope_for_direct_messages_stops_no_install() {
    let body = json!({"needed": "im:write"});
    let refused = classify(Method::OpenConversation, "missing_scope", &body);
    assert!(matches!(refused, ChatError::Place { code } if code == "missing_scope im:write"));
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

//! From builders to the body that is sent, in one last step.
//!
//! Invariant: every body says whom it may ping (nobody, unless it is told otherwise), holds no empty
//! `attachments` (an edit would remove files) and no null, and is held against Discord's limits before it is
//! sent: what Discord would refuse is our mistake, and is reported.

use super::limits::{MENTIONS, NONCE};
use super::rules;
use crate::domain::ids::CardId;
use crate::domain::place::is_snowflake;
use ring::digest::{SHA256, digest};
use serde::Serialize;
use serde_json::{Value, json};

/// Private to the person it is for.
pub(super) const EPHEMERAL: u64 = 64;

/// Nobody is pinged.
pub(super) fn nobody() -> Value {
    json!({"parse": []})
}

/// These accounts and roles are pinged, and nobody else.
pub(super) fn only(users: &[String], roles: &[String]) -> Value {
    let ids = |ids: &[String]| -> Vec<String> {
        ids.iter().filter(|id| is_snowflake(id)).take(MENTIONS).cloned().collect()
    };
    let mut allowed = nobody();
    for (key, ids) in [("users", ids(users)), ("roles", ids(roles))] {
        if !ids.is_empty() {
            allowed[key] = json!(ids);
        }
    }
    allowed
}

/// What a builder made, ready to be sent.
pub(super) fn finish<B: Serialize>(built: &B, allowed: Value) -> Value {
    // A builder of a library's that cannot be written is an empty body, which the rules name.
    let mut body = serde_json::to_value(built).unwrap_or_default();
    tidy(&mut body);
    if !body.is_object() {
        body = json!({});
    }
    body["allowed_mentions"] = allowed;
    for fault in rules::message(&body) {
        tracing::error!(fault, "a message of ours is not within Discord's limits");
    }
    body
}

/// Without nulls, empty `attachments`, and what builders write that says nothing.
fn tidy(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|key, value| {
                let empty_list = value.as_array().is_some_and(Vec::is_empty);
                let says_nothing = match key.as_str() {
                    "attachments" | "sticker_ids" => empty_list,
                    "tts" | "enforce_nonce" | "disabled" | "inline" => *value == Value::Bool(false),
                    _ => false,
                };
                !value.is_null() && !says_nothing
            });
            map.values_mut().for_each(tidy);
        }
        Value::Array(list) => list.iter_mut().for_each(tidy),
        _ => {}
    }
}

/// The same for every attempt to post a card, another for every other card: Discord returns the first message
/// with it instead of posting a second (Discord: Create Message, `enforce_nonce`). A card is never posted twice
/// on purpose, so its id alone is enough.
pub(super) fn nonce(card: CardId) -> String {
    let hash = digest(&SHA256, format!("card:{}", card.0.simple()).as_bytes());
    let mut text = data_encoding::BASE32_NOPAD.encode(hash.as_ref());
    text.truncate(NONCE);
    text
}

/// What our own message is found by in a channel's history: a few letters at the end of its last line.
pub(super) fn mark(card: CardId) -> String {
    let mut mark = nonce(card).to_lowercase();
    mark.truncate(8);
    mark
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn discord_case_1_a_nonce_is_the_cards_own_and_fits() {
        let of = |n: u128| nonce(CardId(Uuid::from_u128(n)));
        assert_eq!(of(7), of(7));
        assert_ne!(of(7), of(8));
        assert_eq!(of(7).len(), NONCE);
        assert_eq!(mark(CardId(Uuid::from_u128(7))).len(), 8);
    }

    #[test]
    fn nothing_is_pinged_that_was_not_named_and_nothing_is_null() {
        let ids = ["3300000000000000003".to_owned(), "everyone".to_owned()];
        assert_eq!(only(&ids, &[]), json!({"parse": [], "users": ["3300000000000000003"]}));
        let body = finish(
            &json!({"content": "x", "attachments": [], "embeds": [], "components": [], "poll": null, "tts": false}),
            nobody(),
        );
        assert_eq!(
            body,
            json!({"content": "x", "embeds": [], "components": [], "allowed_mentions": {"parse": []}})
        );
    }
}

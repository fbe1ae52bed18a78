//! Mentions: what a text names, what `allowed_mentions` lets through, whose client sounds
//! (Discord: Allowed Mentions Object).
//!
//! Invariant: without `allowed_mentions` a message by a bot token lets everything through, an answer to a click
//! people only. Everybody and a role that is not mentionable need MENTION_EVERYONE besides. A backslash or a
//! code block does not take a mention away: the strict reading.

use super::error::Problems;
use super::perms;
use super::types::{Channel, Message};
use super::world::State;
use serde_json::Value;
use std::collections::BTreeSet;

/// What may be mentioned.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Allowed {
    everyone: bool,
    all_users: bool,
    all_roles: bool,
    users: BTreeSet<String>,
    roles: BTreeSet<String>,
}

impl Allowed {
    /// Reads `allowed_mentions` of a body.
    pub(super) fn read(body: &Value, path: &str, reply: bool, problems: &mut Problems) -> Self {
        let Some(given) = body.get("allowed_mentions").filter(|given| !given.is_null()) else {
            return Self { everyone: !reply, all_users: true, all_roles: !reply, ..Self::default() };
        };
        let at =
            |key: &str| format!("{}{key}", if path.is_empty() { String::new() } else { format!("{path}.") });
        if !given.is_object() {
            problems.add(
                at("allowed_mentions"),
                "DICT_TYPE_CONVERT",
                "Only dictionaries may be used in a DictType",
            );
            return Self::default();
        }
        let mut allowed = Self::default();
        for (index, one) in given["parse"].as_array().into_iter().flatten().enumerate() {
            match one.as_str() {
                Some("everyone") => allowed.everyone = true,
                Some("users") => allowed.all_users = true,
                Some("roles") => allowed.all_roles = true,
                _ => problems.add(
                    at(&format!("allowed_mentions.parse.{index}")),
                    "BASE_TYPE_CHOICES",
                    "Value must be one of ('everyone', 'roles', 'users').",
                ),
            }
        }
        for (key, all) in [("users", allowed.all_users), ("roles", allowed.all_roles)] {
            let mut ids = BTreeSet::new();
            let list = given[key].as_array().cloned().unwrap_or_default();
            if list.len() > 100 {
                problems.add(
                    at(&format!("allowed_mentions.{key}")),
                    "BASE_TYPE_MAX_LENGTH",
                    "Must be 100 or fewer in length.",
                );
            }
            for (index, id) in list.iter().enumerate() {
                match id.as_str().filter(|id| id.parse::<u64>().is_ok()) {
                    Some(id) => drop(ids.insert(id.to_owned())),
                    None => problems.add(
                        at(&format!("allowed_mentions.{key}.{index}")),
                        "NUMBER_TYPE_COERCE",
                        format!("Value \"{id}\" is not snowflake."),
                    ),
                }
            }
            if all && !ids.is_empty() {
                problems.add(
                    at("allowed_mentions"),
                    "MESSAGE_ALLOWED_MENTIONS_PARSE_EXCLUSIVE",
                    format!("parse:[\"{key}\"] and {key}: [ids...] are mutually exclusive."),
                );
            }
            if key == "users" {
                allowed.users = ids;
            } else {
                allowed.roles = ids;
            }
        }
        allowed
    }
}

/// What a text names: people, roles, and whether everybody.
pub(super) fn named(text: &str) -> (Vec<String>, Vec<String>, bool) {
    let (mut users, mut roles) = (Vec::new(), Vec::new());
    let mut rest = text;
    while let Some((_, after)) = rest.split_once("<@") {
        rest = after;
        let Some((inner, _)) = after.split_once('>') else { continue };
        let (list, id) = match inner.strip_prefix('&') {
            Some(id) => (&mut roles, id),
            None => (&mut users, inner.strip_prefix('!').unwrap_or(inner)),
        };
        if !id.is_empty() && id.bytes().all(|b| b.is_ascii_digit()) && !list.iter().any(|one| one == id) {
            list.push(id.to_owned());
        }
    }
    (users, roles, text.contains("@everyone") || text.contains("@here"))
}

/// Resolves what `message` names, and at its posting who is called.
pub(super) fn resolve(
    state: &State,
    message: &mut Message,
    allowed: &Allowed,
    channel: &Channel,
    posting: bool,
    now_ms: i64,
) {
    let mut text = message.content.text.clone();
    shown_text(&message.content.components, &mut text);
    let (users, roles, everyone) = named(&text);
    let guild = channel.guild.as_deref().and_then(|id| state.guilds.get(id));
    let all = state.may(channel, &message.author, now_ms) & perms::MENTION_EVERYONE != 0;
    let users = users.into_iter().filter(|id| state.users.contains_key(id));
    message.mentions = users.filter(|id| allowed.all_users || allowed.users.contains(id)).collect();
    message.mention_roles = Vec::new();
    for id in roles {
        let Some(role) = guild.and_then(|guild| guild.roles.get(&id)) else { continue };
        if (allowed.all_roles || allowed.roles.contains(&id)) && (role.mentionable || all) {
            message.mention_roles.push(id);
        }
    }
    message.mention_everyone = everyone && allowed.everyone && all;
    if !posting || message.is_ephemeral() {
        return;
    }
    let mut pinged: BTreeSet<String> = message.mentions.iter().cloned().collect();
    for member in guild.into_iter().flat_map(|guild| guild.members.values()) {
        if message.mention_everyone || message.mention_roles.iter().any(|role| member.roles.contains(role)) {
            pinged.insert(member.user.clone());
        }
    }
    pinged.retain(|user| state.sees(channel, user, now_ms));
    message.pinged = pinged;
}

fn shown_text(components: &[Value], out: &mut String) {
    for one in components {
        if one["type"] == 10 {
            out.push('\n');
            out.push_str(one["content"].as_str().unwrap_or_default());
        }
        shown_text(one["components"].as_array().map_or(&[], Vec::as_slice), out);
    }
}

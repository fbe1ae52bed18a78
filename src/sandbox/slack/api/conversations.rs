//! `conversations.*`: opening direct messages, channels, history.

use super::{Answer, Call, Refusal, channel, kind_scope, sees};
use crate::sandbox::slack::types::{Channel, ChannelKind, Message, UserKind};
use crate::sandbox::slack::world::State;
use serde_json::{Value, json};

/// The direct message channel with a person and whether it was open already.
pub(super) fn direct(state: &mut State, call: &Call<'_>, user: &str) -> Result<(String, bool), Refusal> {
    let found = state.user(user, &call.install.team).cloned();
    let found = found.or_else(|| {
        let enterprise = call.install.enterprise.as_deref().filter(|_| call.install.org);
        state
            .users
            .iter()
            .find(|one| one.id == user && enterprise.is_some() && one.enterprise.as_deref() == enterprise)
            .cloned()
    });
    let Some(found) = found else { return Err(Refusal::new("user_not_found")) };
    if found.deleted {
        return Err(Refusal::new("user_disabled"));
    }
    match found.kind {
        UserKind::Stranger => return Err(Refusal::new("user_not_visible")),
        UserKind::Bot | UserKind::WorkflowBot | UserKind::ConnectorBot => {
            return Err(Refusal::new("cannot_dm_bot"));
        }
        _ => {}
    }
    let bot = &call.install.bot_user;
    let open = state.channels.values().find(|channel| {
        channel.kind == ChannelKind::Dm(user.into())
            && channel.members.contains(bot)
            && sees(state, &call.install, channel)
    });
    if let Some(open) = open {
        return Ok((open.id.clone(), true));
    }
    let mut id = format!("D{}", user.get(1..).unwrap_or_default());
    if state.channels.contains_key(&id) {
        id.push_str(&call.install.team);
    }
    let mut made = Channel::new(&id, "", &call.install.team, &[bot, user]);
    made.kind = ChannelKind::Dm(user.into());
    state.channels.insert(id.clone(), made);
    Ok((id, false))
}

pub(super) fn open(state: &mut State, call: &Call<'_>) -> Answer {
    if let Some(id) = call.args.text("channel") {
        let found = channel(state, call, id)?;
        if !matches!(found.kind, ChannelKind::Dm(_)) {
            return Err(Refusal::new("method_not_supported_for_channel_type"));
        }
        return Ok(json!({"no_op": true, "already_open": true, "channel": {"id": id}}));
    }
    let users = call.need("users")?.to_owned();
    if users.contains(',') {
        return Err(Refusal::scope("mpim:write", &call.install));
    }
    let (id, already) = direct(state, call, &users)?;
    let mut body = json!({"channel": {"id": id}});
    if already {
        body["no_op"] = true.into();
        body["already_open"] = true.into();
    }
    Ok(body)
}

pub(super) fn info(state: &mut State, call: &Call<'_>) -> Answer {
    let found = channel(state, call, call.need("channel")?)?;
    kind_scope(call, found)?;
    Ok(json!({"channel": found.json(&call.install.bot_user)}))
}

pub(super) fn list(state: &mut State, call: &Call<'_>) -> Answer {
    let types = call.args.text("types").unwrap_or("public_channel");
    let mut kinds = Vec::new();
    for kind in types.split(',').map(str::trim) {
        let scope = match kind {
            "public_channel" => "channels:read",
            "private_channel" => "groups:read",
            "im" => "im:read",
            _ => return Err(Refusal::new("invalid_types")),
        };
        if !call.install.scopes.contains(scope) {
            return Err(Refusal::scope(scope, &call.install));
        }
        kinds.push(kind);
    }
    let limit = call.args.number("limit").unwrap_or(100).clamp(1, 1_000);
    let from = cursor(call)?.unwrap_or_default();
    let wanted = |channel: &&Channel| {
        let kind = match channel.kind {
            ChannelKind::Public => "public_channel",
            ChannelKind::Private => "private_channel",
            ChannelKind::Dm(_) => "im",
        };
        kinds.contains(&kind)
            && sees(state, &call.install, channel)
            && !(call.args.flag("exclude_archived") && channel.archived)
    };
    let mut found = state.channels.values().filter(wanted).filter(|channel| channel.id > from).peekable();
    let mut page: Vec<Value> = Vec::new();
    let mut last = String::new();
    while let Some(channel) = found.next_if(|_| page.len() < limit) {
        page.push(channel.json(&call.install.bot_user));
        last.clone_from(&channel.id);
    }
    let next = if found.peek().is_some() { encode(&last) } else { String::new() };
    Ok(json!({"channels": page, "response_metadata": {"next_cursor": next}}))
}

fn encode(text: &str) -> String {
    data_encoding::BASE64.encode(text.as_bytes())
}

fn cursor(call: &Call<'_>) -> Result<Option<String>, Refusal> {
    let Some(cursor) = call.args.text("cursor") else { return Ok(None) };
    let decoded =
        data_encoding::BASE64.decode(cursor.as_bytes()).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    decoded.map(Some).ok_or_else(|| Refusal::new("invalid_cursor"))
}

/// Checks who may read and returns the channel's id.
fn readable(state: &State, call: &Call<'_>) -> Result<String, Refusal> {
    let found = channel(state, call, call.need("channel")?)?;
    kind_scope(call, found)?;
    let direct = matches!(found.kind, ChannelKind::Dm(_));
    if !direct && !found.members.contains(&call.install.bot_user) {
        return Err(Refusal::new("not_in_channel"));
    }
    Ok(found.id.clone())
}

/// A page of messages in the order given, with its cursor.
fn page<'m>(state: &State, call: &Call<'_>, messages: impl Iterator<Item = &'m Message>) -> Value {
    let most = if state.switches.scarce_history { 15 } else { 999 };
    let limit = call.args.number("limit").unwrap_or(100).clamp(1, most);
    let all_metadata = call.args.flag("include_all_metadata");
    let mut messages = messages.peekable();
    let mut rows = Vec::new();
    let mut last = String::new();
    while let Some(message) = messages.next_if(|_| rows.len() < limit) {
        last.clone_from(&message.ts);
        rows.push(with_replies(state, message, super::shown(message, all_metadata)));
    }
    let more = messages.peek().is_some();
    let next = if more { encode(&last) } else { String::new() };
    json!({"messages": rows, "has_more": more, "response_metadata": {"next_cursor": next}})
}

fn with_replies(state: &State, message: &Message, mut row: Value) -> Value {
    let all = state.messages.get(&message.channel).into_iter().flat_map(|all| all.values());
    let replies =
        all.filter(|reply| reply.thread_ts.as_deref() == Some(&message.ts) && !reply.deleted).count();
    if replies > 0 {
        row["thread_ts"] = message.ts.clone().into();
        row["reply_count"] = replies.into();
    }
    row
}

/// `oldest` and `latest`, exclusive unless `inclusive`.
fn within(call: &Call<'_>, ts: &str) -> bool {
    let inclusive = call.args.flag("inclusive");
    let after = call
        .args
        .text("oldest")
        .is_none_or(|oldest| later(ts, oldest) || (inclusive && micros(ts) == micros(oldest)));
    let before = call
        .args
        .text("latest")
        .is_none_or(|latest| later(latest, ts) || (inclusive && micros(ts) == micros(latest)));
    after && before
}

fn micros(ts: &str) -> i64 {
    let (seconds, fraction) = ts.split_once('.').unwrap_or((ts, ""));
    let fraction: String = fraction.chars().chain(std::iter::repeat('0')).take(6).collect();
    seconds
        .parse::<i64>()
        .unwrap_or(0)
        .saturating_mul(1_000_000)
        .saturating_add(fraction.parse().unwrap_or(0))
}

fn later(one: &str, other: &str) -> bool {
    micros(one) > micros(other)
}

/// Newest first, replies apart.
pub(super) fn history(state: &mut State, call: &Call<'_>) -> Answer {
    let id = readable(state, call)?;
    let before = cursor(call)?;
    let messages = state.messages.get(&id).into_iter().flat_map(|all| all.values().rev());
    let wanted = messages.filter(|message| {
        !message.deleted
            && (message.thread_ts.is_none() || message.broadcast)
            && within(call, &message.ts)
            && before.as_deref().is_none_or(|before| message.ts.as_str() < before)
    });
    Ok(page(state, call, wanted))
}

/// The root, then the replies, oldest first.
pub(super) fn replies(state: &mut State, call: &Call<'_>) -> Answer {
    let id = readable(state, call)?;
    let root = call.need("ts")?;
    if state.message(&id, root).is_none() {
        return Err(Refusal::new("thread_not_found"));
    }
    let after = cursor(call)?;
    let messages = state.messages.get(&id).into_iter().flat_map(|all| all.values());
    let wanted = messages.filter(|message| {
        let is_root = message.ts == root;
        !message.deleted
            && (is_root || message.thread_ts.as_deref() == Some(root))
            && (is_root || within(call, &message.ts))
            && after.as_deref().is_none_or(|after| message.ts.as_str() > after)
    });
    Ok(page(state, call, wanted))
}

//! Channels, threads and direct messages.

use super::Call;
use super::messages::{self, Kind, channel, shown};
use crate::sandbox::discord::error::{Problems, Refusal};
use crate::sandbox::discord::mentions;
use crate::sandbox::discord::perms;
use crate::sandbox::discord::types::{Channel, ChannelKind, Message, Thread, User};
use crate::sandbox::discord::validate::Form;
use crate::sandbox::discord::world::{State, iso};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// A channel as the interface shows it.
pub(crate) fn channel_json(state: &State, channel: &Channel) -> Value {
    let last =
        state.messages.get(&channel.id).and_then(|all| all.keys().next_back()).map(ToString::to_string);
    let mut out = json!({"id": channel.id, "type": channel.kind as u8, "last_message_id": last, "flags": 0});
    if channel.kind == ChannelKind::Dm {
        let people = channel.recipients.iter().skip(1).filter_map(|id| state.users.get(id));
        out["recipients"] = people.map(User::json).collect();
        return out;
    }
    out["guild_id"] = json!(channel.guild);
    out["parent_id"] = json!(channel.parent);
    out["name"] = channel.name.as_str().into();
    out["rate_limit_per_user"] = 0.into();
    if let Some(thread) = &channel.thread {
        out["owner_id"] = thread.owner.as_str().into();
        out["message_count"] = 0.into();
        out["member_count"] = thread.members.len().into();
        out["thread_metadata"] = json!({"archived": thread.archived, "locked": thread.locked,
            "auto_archive_duration": thread.auto_archive, "archive_timestamp": iso(thread.archived_at_ms)});
        return out;
    }
    out["position"] = 0.into();
    out["nsfw"] = false.into();
    out["topic"] = Value::Null;
    let one = |one: &crate::sandbox::discord::types::Overwrite| json!({"id": one.id, "type": u8::from(one.member), "allow": one.allow.to_string(), "deny": one.deny.to_string()});
    out["permission_overwrites"] = channel.overwrites.iter().map(one).collect();
    out
}

/// R12.
pub(super) fn get(state: &State, call: &Call<'_>) -> Result<Value, Refusal> {
    Ok(channel_json(state, channel(state, call, call.ids[0])?))
}

/// R9.
pub(super) fn open_dm(state: &mut State, call: &Call<'_>) -> Result<Value, Refusal> {
    let mut problems = Problems::default();
    let mut form = Form { value: &call.body.json, path: String::new(), problems: &mut problems };
    let to = form.text("recipient_id", 1, 20, true).unwrap_or_default().to_owned();
    problems.refuse()?;
    let user = state.users.get(&to).ok_or_else(|| Refusal::new(10013))?;
    if user.bot {
        return Err(Refusal::new(50033));
    }
    let known = state
        .channels
        .values()
        .find(|one| one.kind == ChannelKind::Dm && one.recipients == [call.bot.clone(), to.clone()]);
    if let Some(known) = known {
        return Ok(channel_json(state, known));
    }
    let most = state.switches.dm_opens;
    let opened = state.dm_opens.entry(call.bot.clone()).or_default();
    opened.retain(|at| call.now_ms - at < 600_000);
    if opened.len() >= most {
        return Err(Refusal::new(40003));
    }
    opened.push_back(call.now_ms);
    let id = state.next_id(call.now_ms).to_string();
    let made = Channel::direct(&id, &call.bot, &to);
    let shown = channel_json(state, &made);
    state.channels.insert(id, made);
    Ok(shown)
}

fn thread_form(body: &Value) -> Result<(String, u64), Refusal> {
    let mut problems = Problems::default();
    let mut form = Form { value: body, path: String::new(), problems: &mut problems };
    let name = form.text("name", 1, 100, true).unwrap_or_default().trim().to_owned();
    let minutes = form.number("auto_archive_duration", 0, 10_080).unwrap_or(1_440);
    if !matches!(minutes, 60 | 1_440 | 4_320 | 10_080) {
        form.wrong(
            "auto_archive_duration",
            "BASE_TYPE_CHOICES",
            "Value must be one of (60, 1440, 4320, 10080).",
        );
    }
    problems.refuse()?;
    Ok((name, minutes.unsigned_abs()))
}

fn may_begin(state: &State, call: &Call<'_>, parent: &Channel, bits: u64) -> Result<(), Refusal> {
    if state.may(parent, &call.bot, call.now_ms) & bits == bits { Ok(()) } else { Err(Refusal::new(50013)) }
}

fn begin(
    state: &mut State,
    call: &Call<'_>,
    id: &str,
    parent: &Channel,
    kind: ChannelKind,
    (name, auto_archive): (String, u64),
) -> Value {
    let thread = Thread {
        archived: false,
        locked: false,
        auto_archive,
        owner: call.bot.clone(),
        members: BTreeSet::from([call.bot.clone()]),
        archived_at_ms: call.now_ms,
    };
    let made = Channel {
        id: id.to_owned(),
        kind,
        name,
        guild: parent.guild.clone(),
        parent: Some(parent.id.clone()),
        overwrites: Vec::new(),
        thread: Some(thread),
        recipients: Vec::new(),
    };
    let shown = channel_json(state, &made);
    state.channels.insert(id.to_owned(), made);
    state.tell_channel("THREAD_CREATE", id);
    shown
}

/// R10.
pub(super) fn thread_of_message(state: &mut State, call: &Call<'_>) -> Result<Value, Refusal> {
    let parent = channel(state, call, call.ids[0])?.clone();
    let wanted = thread_form(&call.body.json)?;
    if !matches!(parent.kind, ChannelKind::Text | ChannelKind::Announcement) {
        return Err(Refusal::new(50024));
    }
    let id = call.ids[1];
    if state.message(&parent.id, id).is_none_or(Message::is_ephemeral) {
        return Err(Refusal::new(10008));
    }
    if state.channels.contains_key(id) {
        return Err(Refusal::new(160_004));
    }
    may_begin(state, call, &parent, perms::CREATE_PUBLIC_THREADS)?;
    Ok(begin(state, call, id, &parent, ChannelKind::PublicThread, wanted))
}

/// R11.
pub(super) fn thread(state: &mut State, call: &Call<'_>) -> Result<Value, Refusal> {
    let parent = channel(state, call, call.ids[0])?.clone();
    let body = &call.body.json;
    let wanted = thread_form(body)?;
    if parent.kind.is_forum() {
        let inner = body.get("message").cloned().unwrap_or_default();
        let allowed = messages::check(&inner, "message", Kind::Post, 0, call.body.files.len())?;
        let made = messages::content(&inner, None);
        if messages::is_empty(&made, call.body.files.len()) {
            return Err(Refusal::new(50006));
        }
        may_begin(state, call, &parent, perms::SEND_MESSAGES)?;
        let number = state.next_id(call.now_ms);
        let id = number.to_string();
        let mut shown_thread = begin(state, call, &id, &parent, ChannelKind::PublicThread, wanted);
        let mut message = Message::plain(number, &id, &call.bot, made, call.now_ms);
        message.app = Some(call.app.clone());
        if let Some(place) = state.channels.get(&id).cloned() {
            mentions::resolve(state, &mut message, &allowed, &place, true, call.now_ms);
        }
        shown_thread["message"] = shown(state, &message, &call.app);
        state.messages.entry(id.clone()).or_default().insert(number, message);
        state.tell_message("MESSAGE_CREATE", &id, &id);
        return Ok(shown_thread);
    }
    if !matches!(parent.kind, ChannelKind::Text | ChannelKind::Announcement) {
        return Err(Refusal::new(50024));
    }
    let (kind, bits) = match body["type"].as_i64() {
        Some(11) => (ChannelKind::PublicThread, perms::CREATE_PUBLIC_THREADS),
        None | Some(12) => (ChannelKind::PrivateThread, perms::CREATE_PRIVATE_THREADS),
        Some(_) => {
            return Err(crate::sandbox::discord::error::form(
                "type",
                "BASE_TYPE_CHOICES",
                "Value must be one of (10, 11, 12).",
            ));
        }
    };
    may_begin(state, call, &parent, bits)?;
    let id = state.next_id(call.now_ms).to_string();
    Ok(begin(state, call, &id, &parent, kind, wanted))
}

/// R13: archive, lock and name of a thread. Other channels are not changed here.
pub(super) fn change(state: &mut State, call: &Call<'_>) -> Result<Value, Refusal> {
    let place = channel(state, call, call.ids[0])?.clone();
    let body = &call.body.json;
    let may = state.may(&place, &call.bot, call.now_ms);
    let Some(thread) = &place.thread else {
        let right = may & perms::MANAGE_CHANNELS != 0;
        return Err(Refusal::new(if right { 50024 } else { 50013 }));
    };
    let mut problems = Problems::default();
    let mut form = Form { value: body, path: String::new(), problems: &mut problems };
    let (archived, locked) = (form.boolean("archived"), form.boolean("locked"));
    let name = form.text("name", 1, 100, false).map(str::to_owned);
    problems.refuse()?;
    let manages = may & perms::MANAGE_THREADS != 0;
    let member = thread.members.contains(&call.bot);
    let unarchives = archived == Some(false) && locked.is_none() && name.is_none();
    let allowed = manages
        || (unarchives && !thread.locked && (member || may & perms::SEND_MESSAGES_IN_THREADS != 0))
        || (!thread.locked && locked.is_none() && thread.owner == call.bot);
    if !allowed {
        return Err(Refusal::new(50013));
    }
    if thread.archived && archived != Some(false) {
        return Err(Refusal::new(50083));
    }
    state.set_thread(&place.id, archived, locked, name, call.now_ms);
    let changed = state.channels.get(&place.id).ok_or_else(|| Refusal::new(10003))?;
    Ok(channel_json(state, changed))
}

/// R14.
pub(super) fn join(state: &mut State, call: &Call<'_>) -> Result<(), Refusal> {
    let place = channel(state, call, call.ids[0])?;
    match &place.thread {
        None => return Err(Refusal::new(50024)),
        Some(thread) if thread.archived => return Err(Refusal::new(50083)),
        Some(_) => {}
    }
    if let Some(thread) = state.channels.get_mut(call.ids[0]).and_then(|channel| channel.thread.as_mut()) {
        thread.members.insert(call.bot.clone());
    }
    Ok(())
}

/// Active threads of a guild, or a channel's archived public ones, as the bot sees them.
pub(super) fn threads(state: &State, call: &Call<'_>, archived: bool) -> Result<Value, Refusal> {
    if archived {
        channel(state, call, call.ids[0])?;
    } else {
        super::directory::guild(state, call, call.ids[0])?;
    }
    let of = |one: &&Channel| {
        let here = if archived { one.parent.as_deref() } else { one.guild.as_deref() };
        here == Some(call.ids[0])
            && one.thread.as_ref().is_some_and(|thread| thread.archived == archived)
            && state.sees(one, &call.bot, call.now_ms)
    };
    let found: Vec<Value> = state.channels.values().filter(of).map(|one| channel_json(state, one)).collect();
    Ok(json!({"threads": found, "members": [], "has_more": false}))
}

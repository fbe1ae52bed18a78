//! `chat.*`: posting, editing, ephemeral messages, deleting, permalinks.

use super::{Answer, Call, Refusal, channel};
use crate::sandbox::slack::switches::TextOnlyUpdate;
use crate::sandbox::slack::text;
use crate::sandbox::slack::types::{Channel, ChannelKind, Edited, Ephemeral, Message, Via};
use crate::sandbox::slack::validate::{self, Rules, Surface};
use crate::sandbox::slack::world::{self, State};
use serde_json::{Value, json};

/// A post's `text` is cut here.
const TEXT_CUT: usize = 40_000;
/// Slack states no size; a card's metadata is far below.
const METADATA_SIZE: usize = 8_000;

/// Content of a message in the stored form.
struct Content {
    text: String,
    blocks: Option<Vec<Value>>,
    metadata: Option<Value>,
}

/// Checks and stores `text`, `blocks` and `metadata`.
fn content(state: &mut State, call: &Call<'_>, update: bool) -> Result<Content, Refusal> {
    let raw = call.args.text("text").unwrap_or_default();
    if update && raw.len() > validate::UPDATE_TEXT {
        return Err(Refusal::new("msg_too_long"));
    }
    if call.args.value("attachments").and_then(Value::as_array).is_some_and(|all| all.len() > 100) {
        return Err(Refusal::new("too_many_attachments"));
    }
    if call.args.value("markdown_text").is_some() && (!raw.is_empty() || call.args.value("blocks").is_some())
    {
        return Err(Refusal::new("markdown_text_conflict"));
    }
    let blocks = match call.args.value("blocks") {
        None => None,
        Some(Value::Array(blocks)) => Some(blocks.clone()),
        Some(_) => return Err(Refusal::new("invalid_blocks_format")),
    };
    // `blocks: []` on an update takes the blocks away; alone it is still no text.
    if raw.trim().is_empty()
        && blocks.as_ref().is_none_or(Vec::is_empty)
        && call.args.value("attachments").is_none()
    {
        return Err(Refusal::new("no_text"));
    }
    let metadata = metadata(call)?;
    let blocks = match blocks {
        None => None,
        Some(blocks) => {
            let mut blocks = Value::Array(blocks);
            let problems = validate::blocks(&blocks, Surface::Message, Rules::from(&state.switches));
            if let Some(refusal) = Refusal::problems(&problems) {
                return Err(refusal);
            }
            text::store_blocks(&mut blocks);
            filled_in(state, &mut blocks);
            match blocks {
                Value::Array(blocks) => Some(blocks),
                _ => None,
            }
        }
    };
    let mut stored = text::store_mrkdwn(raw);
    if stored.len() > TEXT_CUT {
        let mut end = TEXT_CUT;
        while !stored.is_char_boundary(end) {
            end -= 1;
        }
        stored.truncate(end);
    }
    Ok(Content { text: stored, blocks, metadata })
}

fn metadata(call: &Call<'_>) -> Result<Option<Value>, Refusal> {
    let Some(metadata) = call.args.value("metadata") else { return Ok(None) };
    let Some(object) = metadata.as_object() else { return Err(Refusal::new("invalid_metadata_format")) };
    if object.is_empty() {
        return Ok(Some(json!({})));
    }
    let name = object.get("event_type").and_then(Value::as_str).unwrap_or_default();
    let good_name =
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    let payload = object.get("event_payload").is_some_and(Value::is_object);
    if !good_name || !payload || object.len() != 2 {
        return Err(Refusal::new("invalid_metadata_format"));
    }
    if metadata.to_string().len() > METADATA_SIZE {
        return Err(Refusal::new("metadata_too_large"));
    }
    Ok(Some(metadata.clone()))
}

/// Gives every block and every interactive element without an id one of Slack's making.
pub(crate) fn filled_in(state: &mut State, blocks: &mut Value) {
    for block in blocks.as_array_mut().into_iter().flatten() {
        if block.get("block_id").is_none() {
            block["block_id"] = format!("b{:04x}", state.serial()).into();
        }
        let kind = block["type"].as_str().unwrap_or_default().to_owned();
        let elements: Vec<&mut Value> = match kind.as_str() {
            "actions" => {
                block.get_mut("elements").and_then(Value::as_array_mut).into_iter().flatten().collect()
            }
            "section" => block.get_mut("accessory").into_iter().collect(),
            "input" => block.get_mut("element").into_iter().collect(),
            _ => Vec::new(),
        };
        for element in elements {
            if element.get("action_id").is_none() && element["type"] != "image" {
                element["action_id"] = format!("a{:04x}", state.serial()).into();
            }
        }
    }
}

/// A message as the Web API and payloads show it. `all_metadata` false leaves the event type only.
pub(crate) fn shown(message: &Message, all_metadata: bool) -> Value {
    let blocks = Value::Array(message.blocks.clone());
    let mut body = json!({"type": "message", "user": message.user, "team": message.team, "ts": message.ts,
        "text": text::emoji_names(&message.text)});
    if !message.blocks.is_empty() {
        body["blocks"] = text::echo_blocks(&blocks);
    }
    if let Some(bot_id) = &message.bot_id {
        body["bot_id"] = bot_id.clone().into();
    }
    if let Some(app_id) = &message.app_id {
        body["app_id"] = app_id.clone().into();
    }
    if let Some(thread_ts) = &message.thread_ts {
        body["thread_ts"] = thread_ts.clone().into();
    }
    if let Some(edited) = &message.edited {
        body["edited"] = json!({"user": edited.user, "ts": edited.ts});
    }
    if let Some(metadata) = &message.metadata {
        body["metadata"] =
            if all_metadata { metadata.clone() } else { json!({"event_type": metadata["event_type"]}) };
    }
    body
}

/// Where a post goes: a channel id, a person's id (their direct message), or a name.
fn target(state: &mut State, call: &Call<'_>) -> Result<Channel, Refusal> {
    let wanted = call.need("channel")?.to_owned();
    if wanted.starts_with('U') || wanted.starts_with('W') {
        let (id, _) = super::conversations::direct(state, call, &wanted)?;
        return channel(state, call, &id).cloned();
    }
    if let Ok(found) = channel(state, call, &wanted) {
        return Ok(found.clone());
    }
    let name = wanted.trim_start_matches('#');
    let named = |channel: &&Channel| !channel.name.is_empty() && channel.name == name;
    let mut seen = state.channels.values().filter(|channel| super::sees(state, &call.install, channel));
    seen.find(named).cloned().ok_or_else(|| Refusal::new("channel_not_found"))
}

fn may_write(state: &State, call: &Call<'_>, channel: &Channel) -> Result<(), Refusal> {
    if matches!(channel.kind, ChannelKind::Dm(_)) {
        return if state.switches.messages_tab { Ok(()) } else { Err(Refusal::new("messages_tab_disabled")) };
    }
    if channel.archived {
        return Err(Refusal::new("is_archived"));
    }
    if channel.frozen {
        return Err(Refusal::new("restricted_action"));
    }
    let open = channel.kind == ChannelKind::Public && call.install.scopes.contains("chat:write.public");
    if channel.members.contains(&call.install.bot_user) || open {
        Ok(())
    } else {
        Err(Refusal::new("not_in_channel"))
    }
}

/// The root of the thread to reply in.
fn thread(state: &State, channel: &str, thread_ts: Option<&str>) -> Result<Option<String>, Refusal> {
    let Some(thread_ts) = thread_ts else { return Ok(None) };
    match state.message(channel, thread_ts) {
        Some(root) if state.locked_threads.contains(&(channel.to_owned(), root.ts.clone())) => {
            Err(Refusal::new("restricted_action_thread_locked"))
        }
        Some(root) if !root.deleted => Ok(Some(root.thread_ts.clone().unwrap_or_else(|| root.ts.clone()))),
        _ => Err(Refusal::new("cannot_reply_to_message")),
    }
}

pub(super) fn post(state: &mut State, call: &Call<'_>) -> Answer {
    let to = target(state, call)?;
    may_write(state, call, &to)?;
    let thread_ts = thread(state, &to.id, call.args.text("thread_ts"))?;
    let content = content(state, call, false)?;
    let ts = state.next_ts(&to.id, call.now_ms);
    let message = Message {
        channel: to.id.clone(),
        ts: ts.clone(),
        team: to.team.clone(),
        user: call.install.bot_user.clone(),
        bot_id: Some(call.install.bot_id.clone()),
        app_id: Some(call.install.app_id.clone()),
        text: content.text,
        blocks: content.blocks.unwrap_or_default(),
        metadata: content.metadata.filter(|metadata| metadata.as_object().is_some_and(|map| !map.is_empty())),
        broadcast: thread_ts.is_some() && call.args.flag("reply_broadcast"),
        thread_ts,
        edited: None,
        edits: 0,
        deleted: false,
        before: Vec::new(),
        install: Some(call.install.key().into()),
    };
    let body = json!({"channel": to.id, "ts": ts, "message": shown(&message, true)});
    state.messages.entry(to.id).or_default().insert(ts, message);
    Ok(body)
}

/// A message of the caller's own, for a change.
fn own<'s>(
    state: &'s mut State,
    call: &Call<'_>,
    id: &str,
    ts: &str,
    foreign: &str,
) -> Result<&'s mut Message, Refusal> {
    state
        .messages
        .get_mut(id)
        .and_then(|all| all.get_mut(ts))
        .filter(|message| !message.deleted)
        .ok_or_else(|| Refusal::new("message_not_found"))
        .and_then(|message| {
            let own = message.bot_id.as_deref() == Some(&call.install.bot_id);
            if own { Ok(message) } else { Err(Refusal::new(foreign)) }
        })
}

pub(super) fn update(state: &mut State, call: &Call<'_>) -> Answer {
    let (id, ts) = (call.need("channel")?.to_owned(), call.need("ts")?.to_owned());
    let to = channel(state, call, &id)?.clone();
    if to.archived || to.frozen {
        return Err(Refusal::new("is_inactive"));
    }
    if !matches!(to.kind, ChannelKind::Dm(_)) && !to.members.contains(&call.install.bot_user) {
        return Err(Refusal::new("not_in_channel"));
    }
    own(state, call, &id, &ts, "cant_update_message")?;
    let content = content(state, call, true)?;
    let edited = Edited { user: call.install.bot_user.clone(), ts: world::ts(call.now_ms * 1_000) };
    let keeps = state.switches.text_only_update == TextOnlyUpdate::KeepsBlocks;
    let text_given = call.args.value("text").is_some();
    let message = own(state, call, &id, &ts, "cant_update_message")?;
    message.before.push((message.text.clone(), message.blocks.clone()));
    if text_given {
        message.text = content.text;
    }
    match content.blocks {
        Some(blocks) => message.blocks = blocks,
        None if keeps => {}
        None => message.blocks.clear(),
    }
    match content.metadata {
        Some(metadata) if metadata.as_object().is_some_and(serde_json::Map::is_empty) => {
            message.metadata = None;
        }
        Some(metadata) => message.metadata = Some(metadata),
        None => {}
    }
    message.edited = Some(edited);
    message.edits += 1;
    Ok(
        json!({"channel": id, "ts": ts, "text": text::emoji_names(&message.text), "message": shown(message, true)}),
    )
}

pub(super) fn post_ephemeral(state: &mut State, call: &Call<'_>) -> Answer {
    let (id, user) = (call.need("channel")?.to_owned(), call.need("user")?.to_owned());
    let to = channel(state, call, &id)?.clone();
    may_write(state, call, &to)?;
    if !to.members.contains(&user) {
        return Err(Refusal::new("user_not_in_channel"));
    }
    let thread_ts = thread(state, &id, call.args.text("thread_ts"))?;
    let content = content(state, call, false)?;
    let ts = state.next_ts(&id, call.now_ms);
    state.ephemerals.push(Ephemeral {
        channel: id,
        user,
        ts: ts.clone(),
        text: content.text,
        blocks: content.blocks.unwrap_or_default(),
        thread_ts,
        via: Via::Api,
        gone: false,
        install: Some(call.install.key().into()),
    });
    Ok(json!({"message_ts": ts}))
}

pub(super) fn delete(state: &mut State, call: &Call<'_>) -> Answer {
    let (id, ts) = (call.need("channel")?.to_owned(), call.need("ts")?.to_owned());
    channel(state, call, &id)?;
    own(state, call, &id, &ts, "cant_delete_message")?.deleted = true;
    Ok(json!({"channel": id, "ts": ts}))
}

pub(super) fn permalink(state: &mut State, call: &Call<'_>) -> Answer {
    let (id, ts) = (call.need("channel")?, call.need("message_ts")?);
    let to = channel(state, call, id)?;
    let domain = state.teams.get(&to.team).map_or("acme", |team| team.domain.as_str());
    let Some(message) = state.message(id, ts).filter(|message| !message.deleted) else {
        return Err(Refusal::new("message_not_found"));
    };
    let mut permalink = format!("https://{domain}.slack.com/archives/{id}/p{}", ts.replace('.', ""));
    if let Some(root) = &message.thread_ts {
        permalink = format!("{permalink}?thread_ts={root}&cid={id}");
    }
    Ok(json!({"channel": id, "permalink": permalink}))
}

//! Messages by bot token: post, edit, delete, read; and what all messages share.
//!
//! Invariant: checks come in one order: the channel and the right to see it, its kind, the form, the right to
//! write, the thread's state, the person's will. A refusal changes nothing.

use super::Call;
use crate::sandbox::discord::error::{Problems, Refusal, form};
use crate::sandbox::discord::mentions::{self, Allowed};
use crate::sandbox::discord::perms;
use crate::sandbox::discord::types::{Attachment, Channel, ChannelKind, Content, Message, User};
use crate::sandbox::discord::validate;
use crate::sandbox::discord::world::{State, iso};
use serde_json::{Value, json};

pub(crate) const EPHEMERAL: u64 = 1 << 6;
pub(crate) const LOADING: u64 = 1 << 7;
pub(crate) const V2: u64 = 1 << 15;
const SUPPRESS_EMBEDS: u64 = 1 << 2;
const SUPPRESS_NOTIFICATIONS: u64 = 1 << 12;

/// Which body it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Post,
    Edit,
    /// An answer to a click, or a follow-up.
    Reply,
    /// An edit by interaction token.
    ReplyEdit,
}

impl Kind {
    fn is_reply(self) -> bool {
        matches!(self, Self::Reply | Self::ReplyEdit)
    }

    fn is_edit(self) -> bool {
        matches!(self, Self::Edit | Self::ReplyEdit)
    }
}

/// The channel, if `app`'s bot may see it.
pub(super) fn channel<'s>(state: &'s State, call: &Call<'_>, id: &str) -> Result<&'s Channel, Refusal> {
    let channel = state.channels.get(id).ok_or_else(|| Refusal::new(10003))?;
    if let Some(guild) = &channel.guild {
        let guild = state.guilds.get(guild).ok_or_else(|| Refusal::new(10003))?;
        if guild.unavailable {
            return Err(Refusal::new(130_000));
        }
    }
    if state.sees(channel, &call.bot, call.now_ms) { Ok(channel) } else { Err(Refusal::new(50001)) }
}

fn need(state: &State, call: &Call<'_>, channel: &Channel, bits: u64) -> Result<(), Refusal> {
    if state.may(channel, &call.bot, call.now_ms) & bits == bits { Ok(()) } else { Err(Refusal::new(50013)) }
}

/// Checks a message's form; what it may mention.
pub(crate) fn check(
    body: &Value,
    path: &str,
    kind: Kind,
    had_flags: u64,
    files: usize,
) -> Result<Allowed, Refusal> {
    let mut problems = Problems::default();
    if !body.is_object() {
        return Err(form(path, "DICT_TYPE_CONVERT", "Only dictionaries may be used in a DictType"));
    }
    let mut form = validate::Form { value: body, path: path.into(), problems: &mut problems };
    form.text("content", 0, 2000, false);
    form.boolean("tts");
    let flags = form.number("flags", 0, i64::from(u32::MAX)).map_or(0, i64::unsigned_abs);
    let may = match kind {
        Kind::Post => SUPPRESS_EMBEDS | SUPPRESS_NOTIFICATIONS | V2,
        Kind::Reply => SUPPRESS_EMBEDS | SUPPRESS_NOTIFICATIONS | V2 | EPHEMERAL,
        Kind::Edit | Kind::ReplyEdit => u64::from(u32::MAX),
    };
    if flags & !may != 0 {
        form.wrong("flags", "MESSAGE_FLAGS_INVALID", "These flags cannot be set here.");
    }
    if kind == Kind::Post {
        nonce_form(&mut form);
    }
    let listed = form.list("attachments", 0, 10);
    for (path, one) in listed {
        let id =
            one["id"].as_str().map(str::to_owned).or_else(|| one["id"].as_u64().map(|id| id.to_string()));
        let fresh = id.as_deref().is_some_and(|id| id.len() < 5);
        let index = id.as_deref().and_then(|id| id.parse::<usize>().ok());
        if id.is_none() || (fresh && index.is_none_or(|index| index >= files)) {
            problems.add(
                format!("{path}.id"),
                "ATTACHMENT_NOT_FOUND",
                "No file of that number is in the request.",
            );
        }
    }
    let v2 = (flags | had_flags) & V2 != 0;
    if v2 {
        for key in ["content", "embeds"] {
            let there = match &body[key] {
                Value::String(text) => !text.is_empty(),
                Value::Array(all) => !all.is_empty(),
                _ => false,
            };
            if there {
                problems.add(
                    validate::join(path, key),
                    "MESSAGE_CANNOT_USE_LEGACY_FIELDS_WITH_COMPONENTS_V2",
                    format!("The '{key}' field cannot be used when using MessageFlags.IS_COMPONENTS_V2"),
                );
            }
        }
    }
    validate::embeds(body, path, &mut problems);
    validate::rows(body, path, v2, &mut problems);
    let allowed = Allowed::read(body, path, kind.is_reply(), &mut problems);
    problems.refuse()?;
    Ok(allowed)
}

fn nonce_form(form: &mut validate::Form<'_, '_>) {
    match form.get("nonce") {
        Some(Value::String(text)) if text.encode_utf16().count() > 25 => {
            form.wrong("nonce", "NONCE_TYPE_TOO_LONG", "Nonce must be 25 or fewer characters.");
        }
        None | Some(Value::String(_)) => {}
        Some(Value::Number(number)) if number.is_i64() || number.is_u64() => {}
        Some(_) => form.wrong("nonce", "NONCE_TYPE_INVALID", "Nonce must be a string or an integer."),
    }
    form.boolean("enforce_nonce");
}

/// What a body says, over what stood there before.
pub(crate) fn content(body: &Value, before: Option<&Content>) -> Content {
    let empty = Content { text: String::new(), embeds: Vec::new(), components: Vec::new() };
    let mut content = before.cloned().unwrap_or(empty);
    if let Some(text) = body.get("content") {
        content.text = validate::trimmed(text.as_str().unwrap_or_default()).into();
    }
    if let Some(embeds) = body.get("embeds") {
        content.embeds = validate::normal_embeds(embeds.as_array().map_or(&[], Vec::as_slice));
    }
    if let Some(rows) = body.get("components") {
        content.components = validate::normal_components(rows.as_array().map_or(&[], Vec::as_slice));
    }
    content
}

/// Nothing a person could see.
pub(crate) fn is_empty(content: &Content, files: usize) -> bool {
    validate::blank(&content.text) && content.embeds.is_empty() && content.components.is_empty() && files == 0
}

/// Stores the files that came along.
pub(crate) fn files(state: &mut State, call: &Call<'_>) -> Vec<Attachment> {
    let sent = call.body.files.clone();
    let file = |file: super::body::File| Attachment {
        id: state.next_id(call.now_ms).to_string(),
        filename: file.filename,
        size: file.bytes.len(),
        text: String::from_utf8_lossy(&file.bytes).into_owned(),
    };
    sent.into_iter().map(file).collect()
}

/// R1.
pub(super) fn post(state: &mut State, call: &Call<'_>) -> Result<Value, Refusal> {
    let id = call.ids[0];
    let channel = channel(state, call, id)?.clone();
    if !matches!(channel.kind, ChannelKind::Text | ChannelKind::Announcement | ChannelKind::Dm)
        && !channel.kind.is_thread()
    {
        return Err(Refusal::new(50008));
    }
    let body = &call.body.json;
    let allowed = check(body, "", Kind::Post, 0, call.body.files.len())?;
    let made = content(body, None);
    if is_empty(&made, call.body.files.len()) {
        return Err(Refusal::new(50006));
    }
    may_write(state, call, &channel, &made)?;
    if let Some(found) = known_nonce(state, call)? {
        return Ok(found);
    }
    if let Some(thread) = state.channels.get_mut(id).and_then(|channel| channel.thread.as_mut()) {
        thread.archived = false;
    }
    let attachments = files(state, call);
    let number = state.next_id(call.now_ms);
    let mut message = Message::plain(number, id, &call.bot, made, call.now_ms);
    message.app = Some(call.app.clone());
    message.flags = body["flags"].as_u64().unwrap_or(0);
    message.nonce = body.get("nonce").filter(|nonce| !nonce.is_null()).cloned();
    message.attachments = attachments;
    mentions::resolve(state, &mut message, &allowed, &channel, true, call.now_ms);
    if let Some(key) = nonce_key(call) {
        state.nonces.insert(key, (call.now_ms, id.to_owned(), number));
    }
    state.messages.entry(id.into()).or_default().insert(number, message);
    state.tell_message("MESSAGE_CREATE", id, &number.to_string());
    state
        .message(id, &number.to_string())
        .map(|found| shown(state, found, &call.app))
        .ok_or_else(|| Refusal::new(10008))
}

/// The rights that a post needs, and whether the other side takes it.
pub(super) fn may_write(
    state: &State,
    call: &Call<'_>,
    channel: &Channel,
    made: &Content,
) -> Result<(), Refusal> {
    if channel.kind == ChannelKind::Dm {
        let person = channel.recipients.iter().find(|one| **one != call.bot).cloned().unwrap_or_default();
        let shares = state
            .guilds
            .values()
            .any(|guild| guild.members.contains_key(&person) && guild.members.contains_key(&call.bot));
        if !shares {
            return Err(Refusal::new(50278));
        }
        if state.users.get(&person).is_none_or(|user| user.dms_closed) {
            return Err(Refusal::new(50007));
        }
        return Ok(());
    }
    let write = if channel.kind.is_thread() { perms::SEND_MESSAGES_IN_THREADS } else { perms::SEND_MESSAGES };
    need(state, call, channel, write)?;
    if !made.embeds.is_empty() {
        need(state, call, channel, perms::EMBED_LINKS)?;
    }
    if !call.body.files.is_empty() {
        need(state, call, channel, perms::ATTACH_FILES)?;
    }
    if channel.thread.as_ref().is_some_and(|thread| thread.locked) {
        need(state, call, channel, perms::MANAGE_THREADS).map_err(|_| Refusal::new(160_005))?;
    }
    Ok(())
}

fn nonce_key(call: &Call<'_>) -> Option<(String, String)> {
    let body = &call.body.json;
    let nonce = body.get("nonce").filter(|nonce| !nonce.is_null())?;
    (body["enforce_nonce"] == true).then(|| (call.bot.clone(), nonce.to_string()))
}

/// The message this nonce has made already.
fn known_nonce(state: &State, call: &Call<'_>) -> Result<Option<Value>, Refusal> {
    let Some(key) = nonce_key(call) else { return Ok(None) };
    let Some((at_ms, channel, number)) = state.nonces.get(&key) else { return Ok(None) };
    if call.now_ms - at_ms > state.switches.nonce_window_ms {
        return Ok(None);
    }
    let found = state.message(channel, &number.to_string()).ok_or_else(|| Refusal::new(10008))?;
    Ok(Some(shown(state, found, &call.app)))
}

/// Whether a thread lets its messages be changed.
pub(super) fn thread_open(state: &State, channel: &Channel, bot: &str, now_ms: i64) -> Result<(), Refusal> {
    let Some(thread) = &channel.thread else { return Ok(()) };
    if thread.archived {
        return Err(Refusal::new(50083));
    }
    if thread.locked && state.may(channel, bot, now_ms) & perms::MANAGE_THREADS == 0 {
        return Err(Refusal::new(160_005));
    }
    Ok(())
}

/// R2.
pub(super) fn edit(state: &mut State, call: &Call<'_>) -> Result<Value, Refusal> {
    let (channel_id, id) = (call.ids[0], call.ids[1]);
    let place = channel(state, call, channel_id)?.clone();
    let found = state.message(channel_id, id).filter(|found| !found.is_ephemeral());
    let found = found.ok_or_else(|| Refusal::new(10008))?;
    if found.author != call.bot {
        return Err(Refusal::new(50005));
    }
    let (flags, at_ms) = (found.flags, found.at_ms);
    check(&call.body.json, "", Kind::Edit, flags, call.body.files.len())?;
    thread_open(state, &place, &call.bot, call.now_ms)?;
    if call.now_ms - at_ms > 3_600_000 {
        let most = state.switches.old_edits;
        let edits = state.old_edits.entry(id.to_owned()).or_default();
        edits.retain(|at| call.now_ms - at < 600_000);
        if edits.len() >= most {
            return Err(Refusal::new(30046));
        }
        edits.push_back(call.now_ms);
    }
    change(state, call, channel_id, id, &call.body.json, Kind::Edit)
}

/// Edits a message that may be edited; `body` was not checked yet for replies' paths.
pub(crate) fn change(
    state: &mut State,
    call: &Call<'_>,
    channel_id: &str,
    id: &str,
    body: &Value,
    kind: Kind,
) -> Result<Value, Refusal> {
    let place = state.channels.get(channel_id).cloned().ok_or_else(|| Refusal::new(10003))?;
    let before = state.message(channel_id, id).cloned().ok_or_else(|| Refusal::new(10008))?;
    let allowed = check(body, "", kind, before.flags, call.body.files.len())?;
    debug_assert!(kind.is_edit());
    let made = content(body, Some(&before.content));
    let mut kept = before.attachments.clone();
    if let Some(listed) = body.get("attachments").and_then(Value::as_array) {
        kept.retain(|one| listed.iter().any(|other| other["id"] == one.id.as_str()));
    }
    let added = files(state, call);
    if is_empty(&made, kept.len() + added.len()) {
        return Err(Refusal::new(50006));
    }
    kept.extend(added);
    let mut after = before.clone();
    let settable = SUPPRESS_EMBEDS | V2;
    if let Some(flags) = body["flags"].as_u64() {
        after.flags = (after.flags & !SUPPRESS_EMBEDS) | (flags & settable);
    }
    if !before.loading {
        after.before.push(before.content);
        after.edited_ms = Some(call.now_ms);
        after.edits += 1;
    }
    (after.content, after.attachments, after.loading) = (made, kept, false);
    mentions::resolve(state, &mut after, &allowed, &place, false, call.now_ms);
    if let Some(stored) = state.message_mut(channel_id, id) {
        *stored = after;
    }
    state.tell_message("MESSAGE_UPDATE", channel_id, id);
    state
        .message(channel_id, id)
        .map(|found| shown(state, found, &call.app))
        .ok_or_else(|| Refusal::new(10008))
}

/// R3.
pub(super) fn delete(state: &mut State, call: &Call<'_>) -> Result<(), Refusal> {
    let (channel_id, id) = (call.ids[0], call.ids[1]);
    let place = channel(state, call, channel_id)?.clone();
    let found = state.message(channel_id, id).filter(|found| !found.is_ephemeral());
    let found = found.ok_or_else(|| Refusal::new(10008))?;
    if found.author != call.bot {
        need(state, call, &place, perms::MANAGE_MESSAGES)?;
    }
    state.delete_message(channel_id, id);
    Ok(())
}

/// R4, one.
pub(super) fn get(state: &State, call: &Call<'_>) -> Result<Value, Refusal> {
    let place = channel(state, call, call.ids[0])?;
    need(state, call, place, perms::READ_MESSAGE_HISTORY)?;
    let found = state.message(call.ids[0], call.ids[1]).filter(|found| !found.is_ephemeral());
    Ok(shown(state, found.ok_or_else(|| Refusal::new(10008))?, &call.app))
}

/// R4, many: newest first.
pub(super) fn list(state: &State, call: &Call<'_>) -> Result<Value, Refusal> {
    let place = channel(state, call, call.ids[0])?;
    if place.kind.is_forum() || place.kind == ChannelKind::Category {
        return Err(Refusal::new(50008));
    }
    let limit = match call.query("limit") {
        None => 50,
        Some(text) => text
            .parse::<usize>()
            .ok()
            .filter(|limit| (1..=100).contains(limit))
            .ok_or_else(|| form("limit", "NUMBER_TYPE_MAX", "int value should be between 1 and 100."))?,
    };
    if state.may(place, &call.bot, call.now_ms) & perms::READ_MESSAGE_HISTORY == 0 {
        return Ok(json!([]));
    }
    let id = |key: &str| {
        let text = call.query(key)?;
        Some(
            text.parse::<u64>()
                .map_err(|_| form(key, "NUMBER_TYPE_COERCE", &format!("Value \"{text}\" is not snowflake."))),
        )
    };
    let (after, before) = (id("after").transpose()?, id("before").transpose()?);
    let all = state.messages.get(call.ids[0]);
    let there = all.into_iter().flatten().filter(|(_, one)| !one.deleted && !one.is_ephemeral());
    let mut found: Vec<&Message> = there
        .filter(|(id, _)| after.is_none_or(|after| **id > after) && before.is_none_or(|before| **id < before))
        .map(|(_, one)| one)
        .collect();
    // `after` gives those next to it, else the newest.
    if after.is_some() {
        found.truncate(limit);
    } else {
        found.drain(..found.len().saturating_sub(limit));
    }
    found.reverse();
    Ok(found.into_iter().map(|one| shown(state, one, &call.app)).collect())
}

/// A message as the interface shows it to an application.
pub(crate) fn shown(state: &State, message: &Message, app: &str) -> Value {
    let author = state.users.get(&message.author).map_or_else(|| json!({"id": message.author}), User::json);
    let users: Vec<Value> =
        message.mentions.iter().filter_map(|id| state.users.get(id)).map(User::json).collect();
    let own = message.app.as_deref() == Some(app);
    let bot = state.apps.get(app).map(|app| app.bot_user.as_str()).unwrap_or_default();
    let direct = state.channels.get(&message.channel).is_some_and(|channel| channel.guild.is_none());
    let open =
        own || direct || state.switches.message_content || message.mentions.iter().any(|one| one == bot);
    let content = open.then_some(&message.content);
    let mut flags = message.flags;
    if message.is_ephemeral() {
        flags |= EPHEMERAL;
    }
    if message.loading {
        flags |= LOADING;
    }
    let kind = match &message.answers {
        Some(answers) if answers.kind == 2 => 20,
        Some(answers) if answers.on.is_some() => 19,
        _ => 0,
    };
    let attachments: Vec<Value> = message
        .attachments
        .iter()
        .map(|one| {
            let url =
                format!("{}/discord/files/{}/{}/{}", state.base_url, message.channel, one.id, one.filename);
            json!({"id": one.id, "filename": one.filename, "size": one.size, "url": url, "proxy_url": url,
                "content_type": "text/plain; charset=utf-8"})
        })
        .collect();
    let mut out = json!({
        "id": message.id, "type": kind, "channel_id": message.channel, "author": author,
        "content": content.map_or("", |content| content.text.as_str()),
        "timestamp": iso(message.at_ms), "edited_timestamp": message.edited_ms.map(iso), "tts": false,
        "mention_everyone": message.mention_everyone, "mentions": users, "mention_roles": message.mention_roles,
        "attachments": if open { attachments } else { Vec::new() },
        "embeds": content.map_or(&[][..], |content| &content.embeds),
        "components": content.map_or(&[][..], |content| &content.components),
        "pinned": false, "flags": flags,
    });
    if let Some(nonce) = message.nonce.as_ref().filter(|_| own) {
        out["nonce"] = nonce.clone();
    }
    if let Some(answers) = &message.answers {
        out["application_id"] = json!(message.app);
        out["webhook_id"] = json!(message.app);
        let mut of = json!({"id": answers.click, "type": answers.kind, "authorizing_integration_owners": {},
            "user": state.users.get(&answers.user).map(User::json)});
        if let Some(on) = &answers.on {
            of["interacted_message_id"] = on.as_str().into();
            out["message_reference"] = json!({"type": 0, "channel_id": message.channel, "message_id": on});
        }
        out["interaction_metadata"] = of;
    }
    out
}

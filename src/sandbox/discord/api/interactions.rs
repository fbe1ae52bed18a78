//! Clicks answered: the first response, and what the interaction token is good for afterwards
//! (Discord: Receiving and Responding to Interactions).
//!
//! Invariant: a click takes one first response, within three seconds of this world's clock; its token then lives
//! for fifteen minutes. A token that was never acknowledged leads nowhere.

use super::Call;
use super::messages::{self, Kind, shown};
use crate::sandbox::discord::error::{Problems, Refusal, form};
use crate::sandbox::discord::mentions;
use crate::sandbox::discord::types::{Answers, Message, Modal};
use crate::sandbox::discord::validate;
use crate::sandbox::discord::world::{ACK_MS, Click, State, TOKEN_MS};
use serde_json::{Value, json};

/// R5: the answer to `…/callback`, `None` for 204.
pub(super) fn callback(state: &mut State, call: &Call<'_>) -> Result<Option<Value>, Refusal> {
    let (id, token) = (call.ids[0], call.ids[1]);
    let known = state.clicks.get(id).is_some_and(|click| click.token == token);
    if !known {
        return Err(Refusal::new(10062));
    }
    respond(state, call, id)?;
    Ok(matches!(call.query("with_response"), Some("true" | "1")).then(|| response(state, id)))
}

/// Answers a click with the body of `call`, over REST or as the answer to its delivery.
pub(crate) fn respond(state: &mut State, call: &Call<'_>, id: &str) -> Result<(), Refusal> {
    let click = state.clicks.get(id).cloned().ok_or_else(|| Refusal::new(10062))?;
    if click.answered.is_some() {
        return Err(Refusal::new(40060));
    }
    if call.now_ms - click.made_ms > ACK_MS {
        return Err(Refusal::new(10062));
    }
    let done = first_response(state, call, &click);
    if done.is_ok() || state.switches.bad_callback_closes {
        let kind = call.body.json["type"].as_u64().unwrap_or(0);
        if let Some(click) = state.clicks.get_mut(id) {
            (click.answered, click.answered_ms) = (Some(kind), call.now_ms);
        }
        // A submitted form closes when it is answered.
        if done.is_ok() && click.kind == 5 {
            state.close_form_of(id);
        }
    }
    done
}

fn first_response(state: &mut State, call: &Call<'_>, click: &Click) -> Result<(), Refusal> {
    let body = &call.body.json;
    let wrong = |message: &str| Err(form("type", "BASE_TYPE_CHOICES", message));
    let Some(kind) = body["type"].as_u64() else {
        return Err(form("type", "BASE_TYPE_REQUIRED", "This field is required"));
    };
    let on_component = click.message.is_some() && matches!(click.kind, 3 | 5);
    let data = body.get("data").filter(|data| !data.is_null());
    match kind {
        4 => {
            let empty = json!({});
            let data = data.unwrap_or(&empty);
            let id = reply(state, call, click, data)?;
            set_original(state, &click.id, Some(id));
        }
        5 => {
            let flags = data.map_or(0, |data| data["flags"].as_u64().unwrap_or(0));
            if flags & !messages::EPHEMERAL != 0 {
                return Err(form("data.flags", "MESSAGE_FLAGS_INVALID", "Only EPHEMERAL can be set here."));
            }
            let id = store(state, call, click, &json!({}), flags, true, None)?;
            set_original(state, &click.id, Some(id));
        }
        6 | 7 if !on_component => return wrong("Value must be one of (4, 5, 9)."),
        6 => {
            if data.is_some() {
                return Err(form("data", "INTERACTION_CALLBACK_NO_DATA", "This type carries no data."));
            }
            set_original(state, &click.id, click.message.clone());
        }
        7 => {
            let empty = json!({});
            let data = data.unwrap_or(&empty);
            check_under("data", data, Kind::ReplyEdit, call)?;
            let on = click.message.clone().unwrap_or_default();
            messages::change(state, call, &click.channel, &on, data, Kind::ReplyEdit)?;
            set_original(state, &click.id, Some(on));
        }
        9 if click.kind == 5 => return wrong("Value must be one of (4, 5, 6, 7)."),
        9 => {
            let Some(data) = data else {
                return Err(form("data", "BASE_TYPE_REQUIRED", "This field is required"));
            };
            let mut problems = Problems::default();
            validate::modal(data, "data", &mut problems);
            problems.refuse()?;
            open(state, click, data);
            let on = click.message.clone().filter(|_| state.switches.original_after_modal);
            set_original(state, &click.id, on);
        }
        _ => return wrong("Value must be one of (4, 5, 6, 7, 9)."),
    }
    Ok(())
}

fn check_under(path: &str, data: &Value, kind: Kind, call: &Call<'_>) -> Result<mentions::Allowed, Refusal> {
    messages::check(data, path, kind, 0, call.body.files.len())
}

fn set_original(state: &mut State, id: &str, original: Option<String>) {
    if let Some(click) = state.clicks.get_mut(id) {
        click.original = original;
    }
}

/// A new message in answer to a click; its id.
fn reply(state: &mut State, call: &Call<'_>, click: &Click, data: &Value) -> Result<String, Refusal> {
    let allowed = check_under("data", data, Kind::Reply, call)?;
    if messages::is_empty(&messages::content(data, None), call.body.files.len()) {
        return Err(Refusal::new(50006));
    }
    let flags = data["flags"].as_u64().unwrap_or(0);
    store(state, call, click, data, flags, false, Some(&allowed))
}

fn store(
    state: &mut State,
    call: &Call<'_>,
    click: &Click,
    data: &Value,
    flags: u64,
    loading: bool,
    allowed: Option<&mentions::Allowed>,
) -> Result<String, Refusal> {
    let place = state.channels.get(&click.channel).cloned().ok_or_else(|| Refusal::new(10003))?;
    let bot = state.apps.get(&click.app).map(|app| app.bot_user.clone()).unwrap_or_default();
    let attachments = messages::files(state, call);
    let number = state.next_id(call.now_ms);
    let made = messages::content(data, None);
    let mut message = Message::plain(number, &click.channel, &bot, made, call.now_ms);
    message.app = Some(click.app.clone());
    message.flags = flags & !messages::EPHEMERAL;
    message.ephemeral_for = (flags & messages::EPHEMERAL != 0).then(|| click.user.clone());
    (message.loading, message.attachments) = (loading, attachments);
    message.answers = Some(Answers {
        click: click.id.clone(),
        kind: click.kind,
        user: click.user.clone(),
        on: click.message.clone(),
    });
    if let Some(allowed) = allowed {
        mentions::resolve(state, &mut message, allowed, &place, true, call.now_ms);
    }
    state.messages.entry(click.channel.clone()).or_default().insert(number, message);
    state.tell_message("MESSAGE_CREATE", &click.channel, &number.to_string());
    Ok(number.to_string())
}

fn open(state: &mut State, click: &Click, data: &Value) {
    let text = |key: &str| data[key].as_str().unwrap_or_default().to_owned();
    let parts = data["components"].as_array().map_or(&[][..], Vec::as_slice);
    // A client shows one form at a time.
    for other in state.modals.values_mut().filter(|other| other.user == click.user) {
        other.open = false;
    }
    let modal = Modal {
        id: click.id.clone(),
        app: click.app.clone(),
        user: click.user.clone(),
        channel: click.channel.clone(),
        message: click.message.clone(),
        custom_id: text("custom_id"),
        title: text("title"),
        components: validate::normal_components(parts),
        open: true,
    };
    state.modals.insert(click.id.clone(), modal);
}

fn response(state: &State, id: &str) -> Value {
    let Some(click) = state.clicks.get(id) else { return Value::Null };
    let kind = click.answered.unwrap_or(0);
    let message = click.original.as_deref().and_then(|id| state.message(&click.channel, id));
    let mut body = json!({"interaction": {"id": click.id, "type": click.kind}});
    if let Some(message) = message {
        body["interaction"]["response_message_id"] = message.id.as_str().into();
        body["interaction"]["response_message_loading"] = message.loading.into();
        body["interaction"]["response_message_ephemeral"] = message.is_ephemeral().into();
    }
    body["interaction"]["channel_id"] = click.channel.as_str().into();
    body["resource"] = json!({"type": kind});
    if let Some(message) = message.filter(|_| matches!(kind, 4 | 5 | 7)) {
        body["resource"]["message"] = shown(state, message, &click.app);
    }
    body
}

/// The click that an interaction token leads to.
fn click(state: &mut State, call: &Call<'_>) -> Result<Click, Refusal> {
    let (app, token) = (call.ids[0], call.ids[1]);
    let click = state.click_by_token(token).cloned().filter(|click| click.app == app);
    let click = click.ok_or_else(|| Refusal::new(10015))?;
    if call.now_ms - click.made_ms > TOKEN_MS {
        return Err(Refusal::new(50027));
    }
    if click.answered.is_none() {
        return Err(Refusal::new(10015));
    }
    Ok(click)
}

/// The message a path means, as a token may reach it.
fn target(click: &Click, call: &Call<'_>) -> Result<String, Refusal> {
    let Some(id) = call.ids.get(2) else { return click.original.clone().ok_or_else(|| Refusal::new(10008)) };
    let own = click.original.as_deref() == Some(*id) || click.follow_ups.iter().any(|one| one == id);
    if own { Ok((*id).to_owned()) } else { Err(Refusal::new(10008)) }
}

/// R7.
pub(super) fn follow_up(state: &mut State, call: &Call<'_>) -> Result<Value, Refusal> {
    let click = click(state, call)?;
    let data = &call.body.json;
    let waiting = click.answered == Some(5) && click.follow_ups.is_empty();
    let original = click.original.clone().unwrap_or_default();
    if waiting && state.message(&click.channel, &original).is_some_and(|one| one.loading) {
        // The first follow-up after "thinking" fills the placeholder; what it is was settled then.
        messages::check(data, "", Kind::Reply, 0, call.body.files.len())?;
        return messages::change(state, call, &click.channel, &original, data, Kind::ReplyEdit);
    }
    let allowed = messages::check(data, "", Kind::Reply, 0, call.body.files.len())?;
    if messages::is_empty(&messages::content(data, None), call.body.files.len()) {
        return Err(Refusal::new(50006));
    }
    let flags = data["flags"].as_u64().unwrap_or(0);
    let id = store(state, call, &click, data, flags, false, Some(&allowed))?;
    if let Some(click) = state.clicks.get_mut(&click.id) {
        click.follow_ups.push(id.clone());
    }
    let found = state.message(&click.channel, &id).ok_or_else(|| Refusal::new(10008))?;
    Ok(shown(state, found, &click.app))
}

/// R6 and R8, reading.
pub(super) fn get(state: &mut State, call: &Call<'_>) -> Result<Value, Refusal> {
    let click = click(state, call)?;
    let id = target(&click, call)?;
    let found = state.message(&click.channel, &id).ok_or_else(|| Refusal::new(10008))?;
    Ok(shown(state, found, &click.app))
}

/// R6 and R8, editing.
pub(super) fn edit(state: &mut State, call: &Call<'_>) -> Result<Value, Refusal> {
    let click = click(state, call)?;
    let id = target(&click, call)?;
    messages::change(state, call, &click.channel, &id, &call.body.json, Kind::ReplyEdit)
}

/// R6 and R8, deleting.
pub(super) fn delete(state: &mut State, call: &Call<'_>) -> Result<(), Refusal> {
    let click = click(state, call)?;
    let id = target(&click, call)?;
    state.message(&click.channel, &id).ok_or_else(|| Refusal::new(10008))?;
    state.delete_message(&click.channel, &id);
    Ok(())
}

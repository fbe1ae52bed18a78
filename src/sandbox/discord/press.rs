//! What people do: press buttons, choose, fill in forms, submit and close them, run commands.
//!
//! Invariant: a person can do only what the client would let them: use what is there, visible and not disabled,
//! pick an option that exists, submit a form whose required fields are filled. What a client cannot do is done
//! with the `_raw` variants.

use super::controls::{self, Control, Input};
use super::deliver::{Delivery, Manner};
use super::payload::{self, Made, PressError, click, look, seer};
use super::types::Modal;
use super::world::{DiscordWorld, State};
use serde_json::{Value, json};

fn first(deliveries: Vec<Delivery>) -> Result<Delivery, PressError> {
    deliveries.into_iter().next().ok_or(PressError::Nothing)
}

fn find(controls: &[Control], wanted: &str) -> Result<Control, PressError> {
    let found = controls::find(controls, wanted).cloned().ok_or_else(|| PressError::NoControl {
        wanted: wanted.into(),
        has: controls.iter().map(|control| control.label.clone()).collect(),
    })?;
    if found.disabled() { Err(PressError::Disabled(found.label)) } else { Ok(found) }
}

impl DiscordWorld {
    /// `user` presses the button with this label (or `custom_id`) of a message, their private ones included.
    pub async fn press(
        &self,
        user: &str,
        channel: &str,
        message: &str,
        control: &str,
    ) -> Result<Delivery, PressError> {
        first(self.press_raw(user, channel, message, control, &Manner::default(), |_| {}).await?)
    }

    /// The same in any manner, with the payload changed before it is sent. Answers the delivery and its repeats.
    pub async fn press_raw(
        &self,
        user: &str,
        channel: &str,
        message: &str,
        control: &str,
        manner: &Manner,
        change: impl FnOnce(&mut Value),
    ) -> Result<Vec<Delivery>, PressError> {
        let mut payload = self.pressed(user, channel, message, control)?;
        change(&mut payload);
        Ok(self.deliver_payload(&payload, manner).await)
    }

    /// The payload of a press, not sent: for one that is on its way while something happens. Its three seconds run.
    pub fn pressed(
        &self,
        user: &str,
        channel: &str,
        message: &str,
        control: &str,
    ) -> Result<Value, PressError> {
        let now_ms = self.time.now_ms();
        self.change(|state| {
            let found = look(state, user, channel, message, now_ms)?;
            let part = find(&controls::all(&found.content.components), control)?.part;
            if part["type"] != 2 || part["style"] == 5 {
                return Err(PressError::Input(format!("{control} cannot be pressed")));
            }
            let data = json!({"id": part["id"], "component_type": 2, "custom_id": part["custom_id"]});
            on_message(state, user, channel, message, data, now_ms)
        })
    }

    /// `user` chooses these options (by label) in the select with this placeholder (or `custom_id`).
    pub async fn choose(
        &self,
        user: &str,
        channel: &str,
        message: &str,
        field: &str,
        labels: &[&str],
    ) -> Result<Delivery, PressError> {
        first(self.choose_raw(user, channel, message, field, labels, &Manner::default(), |_| {}).await?)
    }

    /// The same in any manner, with the payload changed before it is sent.
    #[expect(clippy::too_many_arguments, reason = "a choice and how it is sent")]
    pub async fn choose_raw(
        &self,
        user: &str,
        channel: &str,
        message: &str,
        field: &str,
        labels: &[&str],
        manner: &Manner,
        change: impl FnOnce(&mut Value),
    ) -> Result<Vec<Delivery>, PressError> {
        let now_ms = self.time.now_ms();
        let mut payload = self.change(|state| {
            let found = look(state, user, channel, message, now_ms)?;
            let part = find(&controls::all(&found.content.components), field)?.part;
            if part["type"] != 3 {
                return Err(PressError::Input(format!("{field} is no select")));
            }
            let labels: Vec<String> = labels.iter().map(|&label| label.into()).collect();
            let values = controls::picked(&part, &labels).map_err(PressError::Input)?;
            if (values.len() as u64) < part["min_values"].as_u64().unwrap_or(1) {
                return Err(PressError::Input("too few are picked".into()));
            }
            let data = json!({"id": part["id"], "component_type": 3, "custom_id": part["custom_id"], "values": values});
            on_message(state, user, channel, message, data, now_ms)
        })?;
        change(&mut payload);
        Ok(self.deliver_payload(&payload, manner).await)
    }

    /// `user` presses a button of the newest private message to them that has it.
    pub async fn press_ephemeral(&self, user: &str, control: &str) -> Result<Delivery, PressError> {
        let has = |one: &super::types::Message| {
            controls::find(&controls::all(&one.content.components), control).is_some()
        };
        let found = self.ephemerals(user).into_iter().rfind(has).ok_or(PressError::Nothing)?;
        self.press(user, &found.channel, &found.id, control).await
    }

    /// `user` puts something into a field of the form in front of them, by the label around it.
    pub fn fill(&self, user: &str, field: &str, input: &Input) -> Result<(), PressError> {
        self.change(|state| {
            let modal = front(state, user)?;
            let found = find(&controls::all(&modal.components), field)?;
            let value = controls::filled(&found.part, input).map_err(PressError::Input)?;
            state.filled.insert((modal.id, found.custom_id().to_owned()), value);
            Ok(())
        })
    }

    /// `user` submits the form in front of them, as the client allows it.
    pub async fn submit(&self, user: &str) -> Result<Delivery, PressError> {
        {
            let state = self.lock();
            let modal = front(&state, user)?;
            let why = controls::all(&modal.components)
                .iter()
                .find_map(|one| controls::unfit(one, &held(&state, &modal, one)));
            if let Some(why) = why {
                return Err(PressError::Input(why));
            }
        }
        first(self.submit_raw(user, &Manner::default(), |_| {}).await?)
    }

    /// The same without the client's checks, in any manner.
    pub async fn submit_raw(
        &self,
        user: &str,
        manner: &Manner,
        change: impl FnOnce(&mut Value),
    ) -> Result<Vec<Delivery>, PressError> {
        let now_ms = self.time.now_ms();
        let mut payload = self.change(|state| {
            let modal = front(state, user)?;
            let components: Vec<Value> =
                modal.components.iter().map(|one| submitted(state, &modal, one)).collect();
            let data = json!({"custom_id": modal.custom_id, "components": components});
            let made = Made {
                kind: 5,
                app: modal.app,
                user,
                channel: &modal.channel,
                message: modal.message,
                form: Some(modal.id),
                data,
            };
            click(state, made, now_ms)
        })?;
        change(&mut payload);
        Ok(self.deliver_payload(&payload, manner).await)
    }

    /// `user` closes the form in front of them; the application is not told.
    pub fn close_modal(&self, user: &str) -> Result<(), PressError> {
        self.change(|state| {
            let id = front(state, user)?.id;
            if let Some(modal) = state.modals.get_mut(&id) {
                modal.open = false;
            }
            Ok(())
        })
    }

    /// `user` runs a slash command, such as `countersign open`: the name, then subcommands.
    pub async fn command(&self, user: &str, channel: &str, command: &str) -> Result<Delivery, PressError> {
        first(self.command_raw(user, channel, command, &Manner::default(), |_| {}).await?)
    }

    /// The same in any manner, with the payload changed before it is sent.
    pub async fn command_raw(
        &self,
        user: &str,
        channel: &str,
        command: &str,
        manner: &Manner,
        change: impl FnOnce(&mut Value),
    ) -> Result<Vec<Delivery>, PressError> {
        let now_ms = self.time.now_ms();
        let mut words = command.trim().trim_start_matches('/').split_whitespace();
        let name = words.next().unwrap_or_default().to_owned();
        let rest: Vec<&str> = words.collect();
        let mut payload = self.change(|state| {
            let (_, place) = seer(state, user, channel, now_ms)?;
            let unknown = || PressError::NoControl { wanted: name.clone(), has: command_names(state) };
            if !payload::may_command(state, place, user, now_ms) {
                return Err(PressError::Input("no commands can be used here".into()));
            }
            let (app, known) = payload::command_of(state, place, &name).ok_or_else(unknown)?;
            let options = sub_options(&known, &rest)?;
            let mut data = json!({"id": known["id"], "name": name, "type": 1, "options": options});
            if let Some(guild) = known.get("guild_id") {
                data["guild_id"] = guild.clone();
            }
            click(state, Made { kind: 2, app, user, channel, message: None, form: None, data }, now_ms)
        })?;
        change(&mut payload);
        Ok(self.deliver_payload(&payload, manner).await)
    }
}

fn on_message(
    state: &mut State,
    user: &str,
    channel: &str,
    message: &str,
    data: Value,
    now_ms: i64,
) -> Result<Value, PressError> {
    let app = state.message(channel, message).and_then(|one| one.app.clone()).ok_or(PressError::NoApp)?;
    click(
        state,
        Made { kind: 3, app, user, channel, message: Some(message.into()), form: None, data },
        now_ms,
    )
}

/// The form this person has in front of them.
fn front(state: &State, user: &str) -> Result<Modal, PressError> {
    state.modals.values().find(|modal| modal.open && modal.user == user).cloned().ok_or(PressError::Nothing)
}

fn held(state: &State, modal: &Modal, control: &Control) -> Value {
    let kept = state.filled.get(&(modal.id.clone(), control.custom_id().to_owned()));
    kept.cloned().unwrap_or_else(|| controls::initial(&control.part))
}

/// A part of a form as it comes back.
fn submitted(state: &State, modal: &Modal, part: &Value) -> Value {
    let field = |inner: &Value| {
        let control = Control { part: inner.clone(), label: String::new() };
        let mut out = json!({"type": inner["type"], "id": inner["id"], "custom_id": inner["custom_id"]});
        if let Value::Object(value) = held(state, modal, &control) {
            for (key, value) in value {
                out[key] = value;
            }
        }
        out
    };
    match part["type"].as_u64() {
        Some(18) => json!({"type": 18, "id": part["id"], "component": field(&part["component"])}),
        Some(1) => {
            let inner: Vec<Value> = part["components"].as_array().into_iter().flatten().map(field).collect();
            json!({"type": 1, "id": part["id"], "components": inner})
        }
        _ => json!({"type": part["type"], "id": part["id"]}),
    }
}

fn command_names(state: &State) -> Vec<String> {
    let all = state.commands.values().flatten();
    all.filter_map(|one| one["name"].as_str().map(str::to_owned)).collect()
}

/// The options that words after a command's name choose: subcommands, then `key:value` pairs.
fn sub_options(known: &Value, words: &[&str]) -> Result<Vec<Value>, PressError> {
    let options = known["options"].as_array().cloned().unwrap_or_default();
    let subs: Vec<&Value> =
        options.iter().filter(|one| matches!(one["type"].as_u64(), Some(1 | 2))).collect();
    if subs.is_empty() {
        let mut given = Vec::new();
        for word in words {
            let (key, value) = word.split_once(':').unwrap_or((word, ""));
            let option = options.iter().find(|one| one["name"] == key);
            let option = option.ok_or_else(|| PressError::Input(format!("no option {key:?}")))?;
            given.push(json!({"name": key, "type": option["type"], "value": value}));
        }
        return Ok(given);
    }
    let has = subs.iter().filter_map(|one| one["name"].as_str().map(str::to_owned)).collect();
    let wanted = words.first().copied().unwrap_or_default();
    let sub = subs.iter().find(|one| one["name"] == wanted);
    let sub = sub.ok_or_else(|| PressError::NoControl { wanted: wanted.into(), has })?;
    let inner = sub_options(sub, words.get(1..).unwrap_or_default())?;
    Ok(vec![json!({"name": wanted, "type": sub["type"], "options": inner})])
}

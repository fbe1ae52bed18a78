//! The second pane: what one viewer sees of the Discord, and what they do in it.
//!
//! Invariant: as for the Slack, the state holds what this person could see in a real client and no more, and a press
//! goes the stand-in's own way.

use super::Page;
use crate::sandbox::company::ON_DISCORD;
use crate::sandbox::discord::{Channel, Delivery, DiscordWorld, Input, Message, PressError, acme};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The newest messages of a channel that are shown.
const MESSAGES: usize = 40;

fn account(user: &str) -> Option<&'static str> {
    ON_DISCORD.iter().find(|(slack, _)| *slack == user).map(|(_, id)| *id)
}

/// The Discord with the eyes of `user`; null without one. Somebody without an account there sees nothing of it.
pub(super) fn seen_by(page: &Page, user: &str) -> Value {
    let Some(world) = &page.discord else { return Value::Null };
    let Some(me) = account(user) else { return json!({"me": null, "places": [], "modal": null}) };
    let names: Map<String, Value> =
        world.users().iter().map(|one| (one.id.clone(), one.shown().into())).collect();
    let guilds = world.guilds();
    let roles: Map<String, Value> = guilds
        .iter()
        .flat_map(|guild| guild.roles.values())
        .map(|role| (role.id.clone(), role.name.clone().into()))
        .collect();
    let mut channels = world.channels();
    channels.retain(|channel| world.sees(me, &channel.id));
    channels
        .sort_by_key(|channel| (channel.guild.is_none(), channel.id != acme::RELEASES, channel.id.clone()));
    let channel_names: Map<String, Value> =
        channels.iter().map(|one| (one.id.clone(), one.name.clone().into())).collect();
    let places: Vec<Value> = channels.iter().map(|channel| place(world, channel, me)).collect();
    let modal = world.modal(me).map(|modal| {
        let fields: Vec<Value> = world
            .modal_fields(me)
            .into_iter()
            .map(|(label, value)| json!({"label": label, "value": value}))
            .collect();
        json!({"id": modal.id, "title": modal.title, "components": modal.components, "fields": fields})
    });
    json!({"me": me, "names": {"people": names, "roles": roles, "channels": channel_names}, "places": places, "modal": modal})
}

fn place(world: &DiscordWorld, channel: &Channel, me: &str) -> Value {
    let mut shown = world.messages(&channel.id);
    shown.retain(|one| !one.deleted && one.ephemeral_for.as_deref().is_none_or(|only| only == me));
    shown.drain(..shown.len().saturating_sub(MESSAGES));
    let messages: Vec<Value> = shown.iter().map(message).collect();
    let direct = channel.guild.is_none();
    let name = if direct { "Countersign" } else { channel.name.as_str() };
    let archived = channel.thread.as_ref().is_some_and(|thread| thread.archived);
    json!({"id": channel.id, "name": name, "direct": direct, "thread": channel.thread.is_some(), "archived": archived,
        "messages": messages})
}

fn message(message: &Message) -> Value {
    let files: Vec<Value> =
        message.attachments.iter().map(|one| json!({"name": one.filename, "text": one.text})).collect();
    json!({"id": message.id, "by": message.author, "app": message.app.is_some(), "at": message.at_ms,
        "content": message.content.text, "embeds": message.content.embeds, "components": message.content.components,
        "edited": message.edited_ms.is_some(), "private": message.is_ephemeral(), "loading": message.loading,
        "files": files})
}

/// One thing the viewer does in the Discord.
#[derive(Deserialize)]
#[serde(tag = "act", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Doing {
    /// Presses a button, by its `custom_id`.
    Press {
        channel: String,
        message: String,
        control: String,
    },
    /// Chooses options by label in a select, by its `custom_id`.
    Choose {
        channel: String,
        message: String,
        field: String,
        labels: Vec<String>,
    },
    /// Fills in a field of the form in front, by its `custom_id`.
    Fill {
        field: String,
        input: Input,
    },
    Submit,
    Close,
    /// Writes into a channel; what begins with `/` is a command.
    Say {
        channel: String,
        text: String,
    },
}

/// Does it, or says in words why not.
pub(super) async fn act(page: &Page, user: &str, what: Doing) -> Result<(), String> {
    let Some(world) = &page.discord else { return Err("There is no Discord here.".into()) };
    let Some(me) = account(user) else { return Err("This person is not on this Discord.".into()) };
    match what {
        Doing::Press { channel, message, control } => {
            told(world.press(me, &channel, &message, &control).await)
        }
        Doing::Choose { channel, message, field, labels } => {
            let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
            told(world.choose(me, &channel, &message, &field, &labels).await)
        }
        Doing::Fill { field, input } => world.fill(me, &field, &input).map_err(|error| words(&error)),
        Doing::Submit => told(world.submit(me).await),
        Doing::Close => world.close_modal(me).map_err(|error| words(&error)),
        Doing::Say { channel, text } if text.starts_with('/') => {
            told(world.command(me, &channel, &text).await)
        }
        Doing::Say { channel, text } => {
            world.say(me, &channel, &text);
            Ok(())
        }
    }
}

fn told(delivered: Result<Delivery, PressError>) -> Result<(), String> {
    match delivered {
        Ok(delivery) if delivery.acked() => Ok(()),
        Ok(_) => {
            Err("This interaction failed: Countersign did not answer within three seconds. Try again.".into())
        }
        Err(error) => Err(words(&error)),
    }
}

fn words(error: &PressError) -> String {
    match error {
        PressError::Input(why) => format!("Please look again: {why}."),
        error => format!("That is not possible now ({error})."),
    }
}

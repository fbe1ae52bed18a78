//! Looking at the world: what tests assert on and the demo page shows.

use super::controls::{self, Control};
use super::deliver::Delivery;
use super::limits;
use super::render;
use super::text;
use super::types::{App, Channel, Guild, Message, Modal, Recorded, User};
use super::world::DiscordWorld;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A body with content that reached the world, for validators.
#[derive(Debug, Clone, Serialize)]
pub struct Payload {
    /// As recorded; `answer` for a first response in the body of a delivery's answer.
    pub route: String,
    pub body: Value,
    /// Whether the stand-in took it.
    pub accepted: bool,
}

impl DiscordWorld {
    /// All messages of a channel in order, private and deleted ones included.
    pub fn messages(&self, channel: &str) -> Vec<Message> {
        self.lock().messages.get(channel).map(|all| all.values().cloned().collect()).unwrap_or_default()
    }

    /// The messages of applications that stand in a channel for all to see and answer nothing.
    pub fn cards(&self, channel: &str) -> Vec<Message> {
        let ours = |message: &Message| {
            message.app.is_some() && !message.deleted && !message.is_ephemeral() && message.answers.is_none()
        };
        self.messages(channel).into_iter().filter(ours).collect()
    }

    /// One message, deleted or not.
    pub fn message(&self, channel: &str, id: &str) -> Option<Message> {
        self.lock().any_message(channel, id).cloned()
    }

    /// What `user` got privately in channels, oldest first, without what was deleted.
    pub fn ephemerals(&self, user: &str) -> Vec<Message> {
        let state = self.lock();
        let all = state.messages.values().flat_map(BTreeMap::values);
        let mut own: Vec<Message> =
            all.filter(|one| !one.deleted && one.ephemeral_for.as_deref() == Some(user)).cloned().collect();
        own.sort_by_key(|one| one.id.parse::<u64>().unwrap_or(0));
        own
    }

    /// Everything private that `user` was told, as text: in channels, then in direct messages.
    pub fn told(&self, user: &str) -> Vec<String> {
        let private = self.ephemerals(user);
        let state = self.lock();
        let directs = state
            .channels
            .values()
            .filter(|one| one.guild.is_none() && one.recipients.iter().any(|id| id == user));
        let direct =
            directs.flat_map(|one| state.messages.get(&one.id).into_iter().flat_map(BTreeMap::values));
        let direct = direct.filter(|one| !one.deleted && !one.is_ephemeral() && one.app.is_some());
        private.iter().chain(direct).map(|one| render::message(&state, one)).collect()
    }

    /// The form `user` has in front of them.
    pub fn modal(&self, user: &str) -> Option<Modal> {
        self.lock().modals.values().find(|modal| modal.open && modal.user == user).cloned()
    }

    /// That form as they read it.
    pub fn modal_reads(&self, user: &str) -> Option<String> {
        let modal = self.modal(user)?;
        Some(render::modal(&self.lock(), &modal))
    }

    /// What stands in the fields of that form now, by label.
    pub fn modal_fields(&self, user: &str) -> Vec<(String, Value)> {
        let Some(modal) = self.modal(user) else { return Vec::new() };
        let state = self.lock();
        let held = |control: &Control| {
            let kept = state.filled.get(&(modal.id.clone(), control.custom_id().to_owned())).cloned();
            kept.unwrap_or_else(|| controls::initial(&control.part))
        };
        controls::all(&modal.components).iter().map(|one| (one.label.clone(), held(one))).collect()
    }

    /// The first response to a click, if it came.
    pub fn first_response_of(&self, click: &str) -> Option<u64> {
        self.lock().clicks.get(click)?.answered
    }

    /// The token of a click: a secret between Discord and the application.
    pub fn click_token(&self, click: &str) -> Option<String> {
        self.lock().clicks.get(click).map(|click| click.token.clone())
    }

    pub fn channels(&self) -> Vec<Channel> {
        self.lock().channels.values().cloned().collect()
    }

    pub fn channel(&self, id: &str) -> Option<Channel> {
        self.lock().channels.get(id).cloned()
    }

    pub fn users(&self) -> Vec<User> {
        self.lock().users.values().cloned().collect()
    }

    pub fn guilds(&self) -> Vec<Guild> {
        self.lock().guilds.values().cloned().collect()
    }

    pub fn app(&self, id: &str) -> Option<App> {
        self.lock().apps.get(id).cloned()
    }

    /// Whether somebody sees a channel.
    pub fn sees(&self, user: &str, channel: &str) -> bool {
        let state = self.lock();
        state.channels.get(channel).is_some_and(|one| state.sees(one, user, self.time.now_ms()))
    }

    /// The registered commands of an application, of a guild or (`None`) everywhere.
    pub fn commands(&self, app: &str, guild: Option<&str>) -> Vec<Value> {
        let scope = (app.to_owned(), guild.unwrap_or_default().to_owned());
        self.lock().commands.get(&scope).cloned().unwrap_or_default()
    }

    /// All requests in order of arrival.
    pub fn requests(&self) -> Vec<Recorded> {
        self.lock().requests.clone()
    }

    /// The requests of one route, such as `POST /channels/{channel}/messages`.
    pub fn calls(&self, route: &str) -> Vec<Recorded> {
        self.lock().requests.iter().filter(|request| request.route == route).cloned().collect()
    }

    /// How often a route was called since the last [`DiscordWorld::forget`].
    pub fn count(&self, route: &str) -> usize {
        self.lock().requests.iter().filter(|request| request.route == route).count()
    }

    /// How often each route was called.
    pub fn counts(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for request in &self.lock().requests {
            *counts.entry(request.route.clone()).or_default() += 1;
        }
        counts
    }

    /// All deliveries to applications, in order of their end.
    pub fn deliveries(&self) -> Vec<Delivery> {
        self.lock().deliveries.clone()
    }

    /// Requests that came before the time of an earlier 429 had passed.
    pub fn impatient(&self) -> Vec<Recorded> {
        self.lock().requests.iter().filter(|request| request.impatient).cloned().collect()
    }

    /// Answers in the last ten minutes that count towards the ban.
    pub fn invalid_requests(&self) -> usize {
        let now_ms = self.time.now_ms();
        self.lock().invalid.iter().filter(|at| now_ms - **at <= 600_000).count()
    }

    /// The opaque name of a route's bucket.
    pub fn bucket(route: &str) -> String {
        limits::bucket(route)
    }

    /// Every body with something to show, received so far.
    pub fn payloads(&self) -> Vec<Payload> {
        let state = self.lock();
        let shows = |request: &&Recorded| {
            request.body.is_object() && !request.route.starts_with("GET")
                || request.route.ends_with("/commands") && request.body.is_array()
        };
        let sent = state.requests.iter().filter(shows).map(|request| Payload {
            route: request.route.clone(),
            body: request.body.clone(),
            accepted: request.ok(),
        });
        let answers = state.deliveries.iter().filter(|one| one.status == 200 && one.json()["type"].is_u64());
        let answers = answers.filter(|one| state.clicks.contains_key(&one.click)).map(|one| Payload {
            route: "answer".into(),
            body: one.json(),
            accepted: one.refused.is_none(),
        });
        sent.chain(answers).collect()
    }

    /// The labels a person can press in a message, links included, top to bottom; not disabled ones.
    pub fn buttons(&self, channel: &str, id: &str) -> Vec<String> {
        self.labels(channel, id, |control| control.kind() == 2)
    }

    /// The placeholders of the selects of a message that can be used.
    pub fn fields(&self, channel: &str, id: &str) -> Vec<String> {
        self.labels(channel, id, |control| control.kind() != 2)
    }

    fn labels(&self, channel: &str, id: &str, fits: impl Fn(&Control) -> bool) -> Vec<String> {
        let Some(message) = self.message(channel, id).filter(|message| !message.deleted) else {
            return Vec::new();
        };
        let all = controls::all(&message.content.components).into_iter();
        all.filter(|one| !one.disabled() && fits(one)).map(|one| one.label).collect()
    }

    /// The options of a select of a message, by its placeholder or `custom_id`.
    pub fn options(&self, channel: &str, id: &str, field: &str) -> Vec<String> {
        let Some(message) = self.message(channel, id) else { return Vec::new() };
        let all = controls::all(&message.content.components);
        let Some(found) = controls::find(&all, field) else { return Vec::new() };
        let options = found.part["options"].as_array().cloned().unwrap_or_default();
        options.iter().map(|one| one["label"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// The message as a person reads it; empty when it is gone.
    pub fn reads(&self, channel: &str, id: &str) -> String {
        let state = self.lock();
        state.message(channel, id).map(|message| render::message(&state, message)).unwrap_or_default()
    }

    /// Everything the message has ever said, oldest first.
    pub fn read_over_time(&self, channel: &str, id: &str) -> Vec<String> {
        let state = self.lock();
        let Some(message) = state.any_message(channel, id) else { return Vec::new() };
        let guild = state.channels.get(channel).and_then(|channel| channel.guild.as_deref());
        let before = message.before.iter().map(|one| render::content(&state, guild, one).join("\n"));
        before.chain([render::message(&state, message)]).collect()
    }

    /// What the notification on a phone says: the content, without embeds.
    pub fn notice(&self, channel: &str, id: &str) -> String {
        let state = self.lock();
        let guild = state.channels.get(channel).and_then(|channel| channel.guild.as_deref());
        let message = state.any_message(channel, id);
        message.map(|message| render::markdown(&state, guild, &message.content.text)).unwrap_or_default()
    }

    /// What a client would make of a message's active texts (content, embed titles, descriptions, fields): mentions,
    /// links, times. Addresses of buttons are not text.
    pub fn live(&self, channel: &str, id: &str) -> Vec<String> {
        let Some(message) = self.message(channel, id) else { return Vec::new() };
        let mut found = text::live_in(&message.content.text);
        for embed in &message.content.embeds {
            let fields = embed["fields"].as_array().into_iter().flatten();
            let texts = [&embed["title"], &embed["description"]].into_iter();
            let texts = texts.chain(fields.flat_map(|field| [&field["name"], &field["value"]]));
            found.extend(texts.filter_map(Value::as_str).flat_map(text::live_in));
        }
        found
    }

    /// The whole world, without tokens and keys.
    pub fn dump(&self) -> Value {
        let state = self.lock();
        let messages: serde_json::Map<String, Value> = state
            .messages
            .iter()
            .map(|(channel, all)| {
                let rows = all.values().map(|message| {
                    let mut row = json!(message);
                    row["reads"] = render::message(&state, message).into();
                    row
                });
                (channel.clone(), Value::Array(rows.collect()))
            })
            .collect();
        let commands: Vec<Value> = state
            .commands
            .iter()
            .map(|((app, guild), all)| json!({"app": app, "guild": guild, "commands": all}))
            .collect();
        json!({
            "now_ms": self.time().now_ms(), "version": *self.changed().borrow(),
            "apps": state.apps.values().collect::<Vec<_>>(), "users": state.users.values().collect::<Vec<_>>(),
            "guilds": state.guilds.values().collect::<Vec<_>>(),
            "channels": state.channels.values().collect::<Vec<_>>(), "messages": messages,
            "modals": state.modals.values().collect::<Vec<_>>(), "commands": commands,
            "warnings": state.warnings, "switches": state.switches,
        })
    }
}

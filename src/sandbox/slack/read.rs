//! Looking at the world: what tests assert on and the demo page shows.

use super::controls;
use super::deliver::Delivery;
use super::render;
use super::text;
use super::types::{Channel, Ephemeral, Message, Recorded, User, View};
use super::world::SlackWorld;
use serde::Serialize;
use serde_json::{Value, json};

/// A payload with blocks or a view that reached the world, for validators.
#[derive(Debug, Clone, Serialize)]
pub struct Payload {
    pub method: String,
    /// What was sent: `{text, blocks, …}` or `{view}`.
    pub arguments: Value,
    /// Whether the stand-in took it.
    pub accepted: bool,
}

impl SlackWorld {
    /// All messages of a channel in order, replies and deleted ones included.
    pub fn messages(&self, channel: &str) -> Vec<Message> {
        self.lock().messages.get(channel).map(|all| all.values().cloned().collect()).unwrap_or_default()
    }

    /// The messages of ours that stand in a channel.
    pub fn cards(&self, channel: &str) -> Vec<Message> {
        let ours = |message: &Message| message.bot_id.is_some() && !message.deleted;
        self.messages(channel).into_iter().filter(ours).collect()
    }

    /// The messages of a channel that came after this one (empty: all), in order, for long runs.
    pub fn messages_after(&self, channel: &str, ts: &str) -> Vec<Message> {
        let newer = (std::ops::Bound::Excluded(ts), std::ops::Bound::Unbounded);
        let state = self.lock();
        let all = state.messages.get(channel);
        all.map(|all| all.range::<str, _>(newer).map(|(_, message)| message.clone()).collect())
            .unwrap_or_default()
    }

    /// How often each method was called since the last [`SlackWorld::forget`].
    pub fn counts(&self) -> std::collections::BTreeMap<String, usize> {
        let mut counts = std::collections::BTreeMap::new();
        for request in &self.lock().requests {
            *counts.entry(request.method.clone()).or_default() += 1;
        }
        counts
    }

    /// One message, deleted or not.
    pub fn message(&self, channel: &str, ts: &str) -> Option<Message> {
        self.lock().message(channel, ts).cloned()
    }

    /// What `user` got privately in channels, in order, replaced and deleted as it went.
    pub fn ephemerals(&self, user: &str) -> Vec<Ephemeral> {
        self.lock().ephemerals.iter().filter(|one| one.user == user && !one.gone).cloned().collect()
    }

    /// Everything private that `user` was told, as text: in channels, then in direct messages.
    pub fn told(&self, user: &str) -> Vec<String> {
        let state = self.lock();
        let own = state.ephemerals.iter().filter(|one| one.user == user && !one.gone);
        let private = own.map(|one| render::message(&state, &one.text, &one.blocks));
        let directs = state
            .channels
            .values()
            .filter(|channel| channel.kind == super::types::ChannelKind::Dm(user.into()));
        let direct = directs
            .flat_map(|channel| state.messages.get(&channel.id).into_iter().flat_map(|all| all.values()));
        let direct = direct.filter(|message| !message.deleted && message.bot_id.is_some());
        private.chain(direct.map(|message| render::message(&state, &message.text, &message.blocks))).collect()
    }

    /// The modal `user` has in front of them.
    pub fn front_modal(&self, user: &str) -> Option<View> {
        let open = self.modals(user);
        let covered = |view: &View| open.iter().any(|other| other.previous.as_deref() == Some(&view.id));
        open.iter().rev().find(|view| !covered(view)).cloned()
    }

    /// Modals `user` has open, oldest first.
    pub fn modals(&self, user: &str) -> Vec<View> {
        let state = self.lock();
        state
            .views
            .values()
            .filter(|view| view.open && view.user == user && view.surface == "modal")
            .cloned()
            .collect()
    }

    /// The App Home of `user`.
    pub fn home(&self, user: &str) -> Option<View> {
        self.lock().views.values().find(|view| view.user == user && view.surface == "home").cloned()
    }

    pub fn view(&self, id: &str) -> Option<View> {
        self.lock().views.get(id).cloned()
    }

    pub fn channels(&self) -> Vec<Channel> {
        self.lock().channels.values().cloned().collect()
    }

    pub fn users(&self) -> Vec<User> {
        self.lock().users.clone()
    }

    /// All requests in order of arrival.
    pub fn requests(&self) -> Vec<Recorded> {
        self.lock().requests.clone()
    }

    /// The requests of one method.
    pub fn calls(&self, method: &str) -> Vec<Recorded> {
        self.lock().requests.iter().filter(|request| request.method == method).cloned().collect()
    }

    /// How often a method was called since the last [`SlackWorld::forget`].
    pub fn count(&self, method: &str) -> usize {
        self.lock().requests.iter().filter(|request| request.method == method).count()
    }

    /// All deliveries to the app, in order of their end.
    pub fn deliveries(&self) -> Vec<Delivery> {
        self.lock().deliveries.clone()
    }

    /// Requests that came before a `Retry-After` had passed.
    pub fn impatient(&self) -> Vec<Recorded> {
        self.lock().requests.iter().filter(|request| request.impatient).cloned().collect()
    }

    /// Every payload with blocks or a view received so far.
    pub fn payloads(&self) -> Vec<Payload> {
        let state = self.lock();
        let with = |request: &&Recorded| {
            ["blocks", "view", "text"].iter().any(|key| request.arguments.get(key).is_some())
        };
        let payload = |request: &Recorded| Payload {
            method: request.method.clone(),
            arguments: request.arguments.clone(),
            accepted: request.ok(),
        };
        state.requests.iter().filter(with).map(payload).collect()
    }

    /// The labels a person can press in a message, links included, top to bottom.
    pub fn buttons(&self, channel: &str, ts: &str) -> Vec<String> {
        let Some(message) = self.message(channel, ts).filter(|message| !message.deleted) else {
            return Vec::new();
        };
        controls::all(&message.blocks)
            .into_iter()
            .filter(|control| control.kind() == "button")
            .map(|one| one.label)
            .collect()
    }

    /// The labels of fields (not buttons) of a message.
    pub fn fields(&self, channel: &str, ts: &str) -> Vec<String> {
        let Some(message) = self.message(channel, ts).filter(|message| !message.deleted) else {
            return Vec::new();
        };
        controls::all(&message.blocks)
            .into_iter()
            .filter(controls::Control::holds_state)
            .map(|one| one.label)
            .collect()
    }

    /// The message as a person reads it; empty when it is gone.
    pub fn reads(&self, channel: &str, ts: &str) -> String {
        let state = self.lock();
        let message = state.message(channel, ts).filter(|message| !message.deleted);
        message.map(|message| render::message(&state, &message.text, &message.blocks)).unwrap_or_default()
    }

    /// Everything the message has ever said, oldest first.
    pub fn read_over_time(&self, channel: &str, ts: &str) -> Vec<String> {
        let state = self.lock();
        let Some(message) = state.message(channel, ts) else { return Vec::new() };
        let before = message.before.iter().map(|(text, blocks)| render::message(&state, text, blocks));
        before.chain([render::message(&state, &message.text, &message.blocks)]).collect()
    }

    /// What the notification on a phone says: the top-level text.
    pub fn notice(&self, channel: &str, ts: &str) -> String {
        let state = self.lock();
        state.message(channel, ts).map(|message| render::mrkdwn(&state, &message.text)).unwrap_or_default()
    }

    /// What a client would make of a message's text: pings and links, bare addresses included
    /// (button addresses are not text).
    pub fn live(&self, channel: &str, ts: &str) -> Vec<String> {
        let Some(message) = self.message(channel, ts) else { return Vec::new() };
        let mut found = text::live_in(&message.text, true);
        let mut blocks = Value::Array(message.blocks);
        text::each_text(&mut blocks, &mut |kind, text| found.extend(text::live_in(text, kind == "mrkdwn")));
        found.extend(rich_live(&blocks));
        found
    }

    /// The whole world, without tokens and secrets.
    pub fn dump(&self) -> Value {
        let state = self.lock();
        let messages: serde_json::Map<String, Value> = state
            .messages
            .iter()
            .map(|(channel, all)| {
                let rows = all.values().map(|message| {
                    let mut row = json!(message);
                    row["reads"] = render::message(&state, &message.text, &message.blocks).into();
                    row["notice"] = render::mrkdwn(&state, &message.text).into();
                    row
                });
                (channel.clone(), Value::Array(rows.collect()))
            })
            .collect();
        json!({
            "now_ms": self.time().now_ms(), "version": *self.changed().borrow(), "app_id": state.app_id,
            "teams": state.teams.values().collect::<Vec<_>>(), "users": state.users,
            "channels": state.channels.values().collect::<Vec<_>>(), "groups": state.groups.values().collect::<Vec<_>>(),
            "messages": messages, "ephemerals": state.ephemerals, "views": state.views.values().collect::<Vec<_>>(),
            "switches": state.switches,
        })
    }
}

/// Links and mentions that are elements of rich text.
fn rich_live(value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    match value {
        Value::Array(items) => items.iter().for_each(|item| found.extend(rich_live(item))),
        Value::Object(object) => {
            for (kind, key) in
                [("link", "url"), ("user", "user_id"), ("usergroup", "usergroup_id"), ("broadcast", "range")]
            {
                if object.get("type").and_then(Value::as_str) == Some(kind) {
                    found.extend(object.get(key).and_then(Value::as_str).map(Into::into));
                }
            }
            object.values().for_each(|inner| found.extend(rich_live(inner)));
        }
        _ => {}
    }
    found
}

//! What one viewer sees, as JSON for the page.
//!
//! Invariant: it holds what this viewer could see in a real client and no more: their channels,
//! their own private messages, nothing of tokens. Nothing in it changes by time alone, so equal
//! states are equal texts.

use super::Page;
use crate::sandbox::a2a::{Accepted, Decision, InteractionView, TaskView};
use crate::sandbox::company::{PEOPLE, TEAM};
use crate::sandbox::slack::{Channel, ChannelKind, Ephemeral, Message};
use serde_json::{Map, Value, json};

/// The newest messages of a channel that are shown.
const MESSAGES: usize = 40;
/// The newest tasks that are shown.
const TASKS: usize = 12;

/// The world with the eyes of `user`; `None` for somebody the viewer cannot be.
pub(super) fn seen_by(page: &Page, user: &str) -> Option<Value> {
    PEOPLE.iter().find(|person| person.user == user)?;
    // An id may be another person's in another workspace; here it is ours.
    let mut users = page.slack.users();
    users.sort_by_key(|one| one.team == TEAM);
    let names: Map<String, Value> = users.iter().map(|one| (one.id.clone(), one.shown().into())).collect();
    let people: Vec<Value> = PEOPLE
        .iter()
        .filter(|one| names.contains_key(one.user))
        .map(|one| json!({"id": one.user, "name": names.get(one.user), "subject": one.subject, "about": one.about}))
        .collect();
    let mut channels = page.slack.channels();
    channels.retain(|channel| channel.members.contains(user));
    channels.sort_by_key(|channel| (matches!(channel.kind, ChannelKind::Dm(_)), rank(channel)));
    let private = page.slack.ephemerals(user);
    let places: Vec<Value> = channels
        .iter()
        .map(|channel| {
            let direct = matches!(channel.kind, ChannelKind::Dm(_));
            let name = if direct { "Countersign" } else { channel.name.as_str() };
            json!({"id": channel.id, "name": name, "direct": direct, "members": channel.members.len(),
                "messages": messages(page, &channel.id, &private)})
        })
        .collect();
    let channel_names: Map<String, Value> =
        channels.iter().map(|channel| (channel.id.clone(), channel.name.clone().into())).collect();
    let modal = page
        .slack
        .front_modal(user)
        .map(|view| json!({"id": view.id, "hash": view.hash, "view": view.view, "errors": view.errors}));
    let home = page
        .slack
        .home(user)
        .map(|view| json!({"id": view.id, "hash": view.hash, "blocks": view.view["blocks"]}));
    Some(json!({"me": user, "people": people, "names": names, "channels": channel_names, "places": places,
        "modal": modal, "home": home, "tasks": tasks(page), "discord": super::discord::seen_by(page, user)}))
}

/// Releases before the rest.
fn rank(channel: &Channel) -> (bool, String) {
    (channel.id != crate::sandbox::company::RELEASES, channel.name.clone())
}

fn messages(page: &Page, channel: &str, private: &[Ephemeral]) -> Vec<Value> {
    let shown = page.slack.messages(channel).into_iter().filter(|message| !message.deleted);
    // Replies stand below what they reply to.
    let place = |ts: &str, root: Option<&String>| (root.map_or(ts, String::as_str).to_owned(), ts.to_owned());
    let mut rows: Vec<((String, String), Value)> = shown
        .map(|message| (place(&message.ts, message.thread_ts.as_ref()), shown_message(&message)))
        .collect();
    let own = private.iter().filter(|one| one.channel == channel);
    rows.extend(own.map(|one| {
        let row = json!({"ts": one.ts, "by": crate::sandbox::slack::acme::BOT_USER, "app": true, "text": one.text,
            "blocks": one.blocks, "edited": false, "private": true, "reply": one.thread_ts.is_some()});
        (place(&one.ts, one.thread_ts.as_ref()), row)
    }));
    // Slack's message ids are texts of one width; they sort as they are.
    rows.sort_by(|a, b| a.0.cmp(&b.0));
    rows.drain(..rows.len().saturating_sub(MESSAGES));
    rows.into_iter().map(|(_, row)| row).collect()
}

fn shown_message(message: &Message) -> Value {
    json!({"ts": message.ts, "by": message.user, "app": message.bot_id.is_some(), "text": message.text,
        "blocks": message.blocks, "edited": message.edited.is_some(), "private": false,
        "reply": message.thread_ts.is_some()})
}

/// The newest tasks, newest first.
fn tasks(page: &Page) -> Vec<Value> {
    let mut tasks = page.a2a.tasks();
    tasks.sort_by_key(|task| (std::cmp::Reverse(task.opened_ms()), task.id.clone()));
    tasks.iter().take(TASKS).map(shown_task).collect()
}

fn shown_task(task: &TaskView) -> Value {
    let state = task.state();
    let word = state.name().trim_start_matches("TASK_STATE_").to_lowercase().replace('_', " ");
    json!({"id": task.id, "agent": task.agent, "owner": task.owner, "state": word, "waits": state.is_interrupted(),
        "ended": state.is_terminal(), "since": task.since_ms(), "said": task.said(),
        "interactions": task.interactions.iter().map(shown_interaction).collect::<Vec<_>>()})
}

fn shown_interaction(asked: &InteractionView) -> Value {
    let ask = &asked.ask;
    json!({"id": asked.id, "kind": ask.kind, "server": ask.server, "tool": ask.tool, "prompt": ask.wording(),
        "reason": ask.reason, "phase": asked.phase, "answers": asked.answers.iter().map(shown_answer).collect::<Vec<_>>()})
}

fn shown_answer(answer: &Accepted) -> Value {
    let decision = match &answer.decision {
        Decision::Approved(true) => "approved".to_owned(),
        Decision::Approved(false) => "denied".to_owned(),
        Decision::Connected(true) => "connected".to_owned(),
        Decision::Connected(false) => "declined".to_owned(),
        Decision::Value(value) => value.to_string(),
    };
    json!({"approvedBy": answer.approved_by, "decision": decision, "at": answer.at_ms, "elsewhere": answer.elsewhere,
        "messageId": answer.message_id})
}

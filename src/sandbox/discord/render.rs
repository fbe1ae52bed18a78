//! A message or form as a person reads it, as plain text.
//!
//! Invariant: what is invisible to a person (ids, values, markup) is not in it; what they can press is, in
//! brackets, a disabled one in double ones.

use super::text::{Piece, scan, unmarked};
use super::types::{Content, Message, Modal};
use super::world::State;
use serde_json::Value;

/// A message.
pub(super) fn message(state: &State, message: &Message) -> String {
    if message.loading {
        return "thinking…".into();
    }
    let mut lines = content(state, guild(state, &message.channel), &message.content);
    lines.extend(message.attachments.iter().map(|one| format!("(file: {})", one.filename)));
    lines.join("\n")
}

fn guild<'s>(state: &'s State, channel: &str) -> Option<&'s str> {
    state.channels.get(channel)?.guild.as_deref()
}

/// What one version of a message says, line by line.
pub(super) fn content(state: &State, guild: Option<&str>, content: &Content) -> Vec<String> {
    let mut lines = Vec::new();
    let mut add = |text: String| {
        if !text.is_empty() {
            lines.push(text);
        }
    };
    add(markdown(state, guild, &content.text));
    for embed in &content.embeds {
        let get = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        add(get(&embed["author"]["name"]));
        add(markdown(state, guild, &get(&embed["title"])));
        add(markdown(state, guild, &get(&embed["description"])));
        for field in embed["fields"].as_array().into_iter().flatten() {
            let name = markdown(state, guild, &get(&field["name"]));
            let value = markdown(state, guild, &get(&field["value"]));
            add(format!("{name}: {value}"));
        }
        add(get(&embed["footer"]["text"]));
    }
    for part in components(state, guild, &content.components) {
        add(part);
    }
    lines
}

fn components(state: &State, guild: Option<&str>, parts: &[Value]) -> Vec<String> {
    let inner = |part: &Value| part["components"].as_array().cloned().unwrap_or_default();
    parts
        .iter()
        .flat_map(|part| match part["type"].as_u64() {
            Some(1) => {
                vec![inner(part).iter().map(|one| control(state, guild, one)).collect::<Vec<_>>().join(" ")]
            }
            Some(9 | 17) => components(state, guild, &inner(part)),
            Some(10) => vec![markdown(state, guild, part["content"].as_str().unwrap_or_default())],
            Some(18) => {
                let label = part["label"].as_str().unwrap_or_default();
                let below = part["description"].as_str().map(|text| format!(" ({text})")).unwrap_or_default();
                vec![format!("{label}: {}{below}", control(state, guild, &part["component"]))]
            }
            _ => Vec::new(),
        })
        .collect()
}

fn control(state: &State, guild: Option<&str>, part: &Value) -> String {
    let controls = super::controls::all(std::slice::from_ref(part));
    let label = controls.first().map(|control| control.label.clone()).unwrap_or_default();
    let (open, close) = if part["disabled"] == true { ("[[", "]]") } else { ("[", "]") };
    match part["type"].as_u64() {
        Some(2) => format!("{open}{label}{close}"),
        Some(4) if part["label"].is_string() => format!("{label}: ____"),
        Some(4 | 19) => "____".into(),
        Some(23) => "[ ]".into(),
        Some(_) if part["options"].is_array() => {
            let all = part["options"].as_array().into_iter().flatten();
            let labels: Vec<String> = all
                .map(|one| {
                    let below =
                        one["description"].as_str().map(|text| format!(" ({text})")).unwrap_or_default();
                    format!("{}{below}", one["label"].as_str().unwrap_or_default())
                })
                .collect();
            let before = part["placeholder"].as_str().map(|text| format!("{text} ")).unwrap_or_default();
            format!("{before}( {} )", labels.join(" | "))
        }
        _ => components(state, guild, std::slice::from_ref(part)).join(" "),
    }
}

/// A form.
pub(super) fn modal(state: &State, modal: &Modal) -> String {
    let mut lines = vec![modal.title.clone()];
    lines.extend(components(state, guild(state, &modal.channel), &modal.components));
    lines.join("\n")
}

/// Markdown as it shows.
pub(super) fn markdown(state: &State, guild: Option<&str>, text: &str) -> String {
    let show = |piece: Piece| match piece {
        Piece::Plain(chars) => unmarked(&chars),
        Piece::Code(code) | Piece::Other(code) => code,
        Piece::User(id) => format!("@{}", state.name(guild, &id)),
        Piece::Role(id) => {
            let role = guild.and_then(|guild| state.guilds.get(guild)).and_then(|guild| guild.roles.get(&id));
            format!("@{}", role.map_or(id.as_str(), |role| role.name.as_str()))
        }
        Piece::Channel(id) => {
            format!("#{}", state.channels.get(&id).map_or(id.as_str(), |one| one.name.as_str()))
        }
        Piece::Time(seconds, _) => jiff::Timestamp::from_second(seconds)
            .map(|at| at.strftime("%Y-%m-%d %H:%M UTC").to_string())
            .unwrap_or_default(),
        Piece::Link { text, .. } => text,
        Piece::Bare(url) => url,
        Piece::All(whom) => format!("@{whom}"),
    };
    // Marks may stand on both sides of a mention, so they are taken away in the whole.
    let mut whole = Vec::new();
    for piece in scan(text) {
        match piece {
            Piece::Plain(chars) => whole.extend(chars),
            other => whole.extend(show(other).chars().map(|c| (c, true))),
        }
    }
    unmarked(&whole)
}

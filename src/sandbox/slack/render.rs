//! A message as a person reads it, as plain text.
//!
//! Invariant: what is invisible to a person (ids, values, markup, entities) is not in it; what
//! they can press is, in brackets. Only blocks are shown when there are any, as in the client.

use super::controls;
use super::text::unescape;
use super::world::State;
use serde_json::Value;

/// Text and blocks, stored form.
pub(super) fn message(state: &State, text: &str, blocks: &[Value]) -> String {
    if blocks.is_empty() {
        return mrkdwn(state, text);
    }
    let lines: Vec<String> =
        blocks.iter().map(|one| block(state, one)).filter(|line| !line.is_empty()).collect();
    lines.join("\n")
}

fn block(state: &State, block: &Value) -> String {
    let many = |key: &str, separator: &str| {
        let items = block[key].as_array().into_iter().flatten();
        items
            .map(|item| object(state, item))
            .filter(|text| !text.is_empty())
            .collect::<Vec<_>>()
            .join(separator)
    };
    match block["type"].as_str().unwrap_or_default() {
        "section" => {
            let parts =
                [object(state, &block["text"]), many("fields", "\n"), element(state, &block["accessory"])];
            parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
        }
        "header" => object(state, &block["text"]),
        "context" => many("elements", "  "),
        "divider" => "---".into(),
        "actions" => {
            let items = block["elements"].as_array().into_iter().flatten();
            items.map(|item| element(state, item)).collect::<Vec<_>>().join(" ")
        }
        "input" => format!("{}: {}", object(state, &block["label"]), element(state, &block["element"])),
        "rich_text" => {
            let items = block["elements"].as_array().into_iter().flatten();
            items.map(|item| rich(state, item)).collect::<Vec<_>>().join("\n")
        }
        "markdown" => mrkdwn(state, block["text"].as_str().unwrap_or_default()),
        "image" => format!("(image: {})", block["alt_text"].as_str().unwrap_or_default()),
        _ => String::new(),
    }
}

fn object(state: &State, object: &Value) -> String {
    let text = object["text"].as_str().unwrap_or_default();
    match object["type"].as_str().unwrap_or_default() {
        "mrkdwn" => mrkdwn(state, text),
        "image" => format!("(image: {})", object["alt_text"].as_str().unwrap_or_default()),
        _ => unescape(text),
    }
}

fn element(state: &State, element: &Value) -> String {
    match element["type"].as_str().unwrap_or_default() {
        "" => String::new(),
        "button" => format!("[{}]", object(state, &element["text"])),
        "image" => format!("(image: {})", element["alt_text"].as_str().unwrap_or_default()),
        _ => {
            let labels: Vec<String> =
                controls::options(element).iter().map(|one| object(state, &one["text"])).collect();
            if labels.is_empty() { "____".into() } else { format!("( {} )", labels.join(" | ")) }
        }
    }
}

fn rich(state: &State, part: &Value) -> String {
    let items = part["elements"].as_array().into_iter().flatten();
    match part["type"].as_str().unwrap_or_default() {
        "rich_text_list" => {
            items.map(|item| format!("- {}", rich(state, item))).collect::<Vec<_>>().join("\n")
        }
        _ => items.map(|item| leaf(state, item)).collect(),
    }
}

fn leaf(state: &State, leaf: &Value) -> String {
    let get = |key: &str| leaf[key].as_str().unwrap_or_default();
    match get("type") {
        "text" => unescape(get("text")),
        "link" if leaf["text"].is_string() => unescape(get("text")),
        "link" => get("url").into(),
        "emoji" => format!(":{}:", get("name")),
        "user" => mention(state, get("user_id")),
        "channel" => channel_name(state, get("channel_id")),
        "usergroup" => format!("@{}", get("usergroup_id")),
        "broadcast" => format!("@{}", get("range")),
        "date" => get("fallback").into(),
        _ => String::new(),
    }
}

fn mention(state: &State, id: &str) -> String {
    let found = state.users.iter().find(|user| user.id == id);
    format!("@{}", found.map_or(id, |user| user.shown()))
}

fn channel_name(state: &State, id: &str) -> String {
    format!("#{}", state.channels.get(id).map_or(id, |channel| channel.name.as_str()))
}

/// Stored mrkdwn: live sequences as they show, formatting marks gone.
pub(super) fn mrkdwn(state: &State, stored: &str) -> String {
    let mut out = String::new();
    let mut rest = stored;
    while let Some((before, after)) = rest.split_once('<') {
        out.push_str(&unmarked(before));
        let Some((inner, tail)) = after.split_once('>') else {
            out.push('<');
            rest = after;
            continue;
        };
        let (target, label) =
            inner.split_once('|').map_or((inner, None), |(target, label)| (target, Some(label)));
        let shown = match (target.chars().next(), label) {
            (Some('@'), _) => mention(state, &target[1..]),
            (Some('#'), _) => channel_name(state, &target[1..]),
            (Some('!'), None) => format!("@{}", &target[1..]),
            (_, Some(label)) => label.to_owned(),
            _ => target.to_owned(),
        };
        out.push_str(&shown);
        rest = tail;
    }
    out.push_str(&unmarked(rest));
    unescape(&out)
}

/// `*bold*`, `_italic_`, `~struck~` and code marks as they show: without the marks.
fn unmarked(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut open: Vec<char> = Vec::new();
    let edge = |c: Option<&char>| c.is_none_or(|c| !c.is_alphanumeric());
    for (at, &c) in chars.iter().enumerate() {
        let (before, after) = (at.checked_sub(1).and_then(|at| chars.get(at)), chars.get(at + 1));
        if "*_~`".contains(c) {
            let closes = chars[at + 1..].contains(&c);
            if open.last() == Some(&c) && edge(after) && before.is_some_and(|c| !c.is_whitespace()) {
                open.pop();
                continue;
            }
            if !open.contains(&c) && closes && edge(before) && after.is_some_and(|c| !c.is_whitespace()) {
                open.push(c);
                continue;
            }
        }
        out.push(c);
    }
    out
}

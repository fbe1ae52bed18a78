//! Our own table of what Slack refuses and common validators miss: costs after escaping, totals,
//! ids, empty things, unknown properties, markup that is not ours. For tests; every payload that any
//! test here draws is checked by it, and by the stand-in's validator, which others wrote.

use super::limits::{HEADER, MESSAGE, SECTION, TEXT, cost};
use serde_json::Value;
use std::collections::BTreeSet;

const BLOCKS: usize = 45;

/// Everything wrong with a message.
pub(super) fn check(text: &str, blocks: &Value) -> Vec<String> {
    let mut wrong = vec![];
    if text.trim().is_empty() || text.len() > TEXT || text.contains('\n') {
        wrong.push(format!("text: {} bytes", text.len()));
    }
    entities(text, "text", &mut wrong);
    if blocks.as_array().is_none_or(Vec::is_empty) {
        return vec!["no blocks".into()];
    }
    let total = check_blocks(blocks, BLOCKS, &mut wrong);
    if total > MESSAGE {
        wrong.push(format!("all text costs {total}"));
    }
    wrong
}

/// Everything wrong with a modal.
pub(super) fn check_view(view: &Value) -> Vec<String> {
    let mut wrong = vec![];
    let mut say = |what: String| wrong.push(what);
    keys(view, &["type", "callback_id", "private_metadata", "title", "submit", "close", "blocks"], &mut say);
    for key in ["title", "submit", "close"] {
        if key == "title" || view.get(key).is_some() {
            plain(&view[key], 24, &mut say);
        }
    }
    if view["private_metadata"].as_str().is_some_and(|token| token.is_empty() || token.len() > 75) {
        say("private metadata".into());
    }
    if view.to_string().len() > 200_000 {
        say("size".into());
    }
    let inputs = view["blocks"].as_array().into_iter().flatten().any(|block| block["type"] == "input");
    if inputs != view.get("submit").is_some() {
        say("a form has a button to submit it, and nothing else has".into());
    }
    check_blocks(&view["blocks"], 95, &mut wrong);
    wrong
}

/// Checks blocks; what all their text costs.
fn check_blocks(blocks: &Value, most: usize, wrong: &mut Vec<String>) -> usize {
    let all = blocks.as_array().map(Vec::as_slice).unwrap_or_default();
    if all.is_empty() || all.len() > most {
        wrong.push(format!("{} blocks", all.len()));
    }
    let mut total = 0;
    let mut ids = BTreeSet::new();
    let mut values = BTreeSet::new();
    for (at, block) in all.iter().enumerate() {
        let mut say = |what: String| wrong.push(format!("{at}: {what}"));
        if let Some(id) = block.get("block_id").and_then(Value::as_str)
            && (id.is_empty() || id.len() > 100 || !ids.insert(id.to_owned()))
        {
            say(format!("block id {id}"));
        }
        match block["type"].as_str() {
            Some("header") => {
                keys(block, &["type", "block_id", "text"], &mut say);
                total += plain(&block["text"], HEADER, &mut say);
            }
            Some("section") => {
                keys(block, &["type", "block_id", "text"], &mut say);
                total += any_text(&block["text"], SECTION, &mut say);
            }
            Some("context") => {
                keys(block, &["type", "block_id", "elements"], &mut say);
                let elements = block["elements"].as_array().map(Vec::as_slice).unwrap_or_default();
                if elements.is_empty() || elements.len() > 10 {
                    say("context elements".into());
                }
                total += elements.iter().map(|e| any_text(e, SECTION, &mut say)).sum::<usize>();
            }
            Some("rich_text") => {
                keys(block, &["type", "block_id", "elements"], &mut say);
                let spent = rich(block, &mut say);
                if spent == 0 || spent > SECTION {
                    say(format!("rich text of {spent}"));
                }
                total += spent;
            }
            Some("actions") => {
                keys(block, &["type", "block_id", "elements"], &mut say);
                let elements = block["elements"].as_array().map(Vec::as_slice).unwrap_or_default();
                if elements.is_empty() || elements.len() > 5 {
                    say("actions elements".into());
                }
                let mut actions = BTreeSet::new();
                for button in elements {
                    keys(
                        button,
                        &["type", "action_id", "text", "value", "style", "accessibility_label", "confirm"],
                        &mut say,
                    );
                    if let Some(confirm) = button.get("confirm") {
                        keys(confirm, &["title", "text", "confirm", "deny"], &mut say);
                        for (key, most) in [("title", 90), ("text", 280), ("confirm", 28), ("deny", 28)] {
                            total += plain(&confirm[key], most, &mut say);
                        }
                    }
                    total += plain(&button["text"], 70, &mut say);
                    let label = button["accessibility_label"].as_str().unwrap_or_default();
                    total += cost(label);
                    if label.is_empty() || cost(label) > 70 {
                        say(format!("label {label}"));
                    }
                    if !matches!(
                        button.get("style").map(Value::as_str),
                        None | Some(Some("primary" | "danger"))
                    ) {
                        say("style".into());
                    }
                    let action = button["action_id"].as_str().unwrap_or_default();
                    if !action.starts_with("cs.") || !actions.insert(action.to_owned()) {
                        say(format!("action id {action}"));
                    }
                    let value = button["value"].as_str().unwrap_or_default();
                    if value.is_empty() || value.len() > 75 || !values.insert(value.to_owned()) {
                        say(format!("value {value}"));
                    }
                }
            }
            Some("input") => {
                keys(block, &["type", "block_id", "label", "hint", "element", "optional"], &mut say);
                total += plain(&block["label"], 1900, &mut say) + plain(&block["hint"], 1900, &mut say);
                keys(&block["element"], &["type", "action_id", "multiline", "max_length"], &mut say);
                let longest = block["element"]["max_length"].as_u64().unwrap_or_default();
                if block["element"]["type"] != "plain_text_input"
                    || !(1..=3000).contains(&longest)
                    || block["optional"] != false
                    || block["block_id"].as_str().is_none_or(str::is_empty)
                {
                    say(format!("input {block}"));
                }
            }
            other => say(format!("type {other:?}")),
        }
    }
    total
}

fn keys(object: &Value, allowed: &[&str], say: &mut impl FnMut(String)) {
    for key in object.as_object().into_iter().flat_map(serde_json::Map::keys) {
        if !allowed.contains(&key.as_str()) {
            say(format!("unknown property {key}"));
        }
    }
}

fn plain(text: &Value, most: usize, say: &mut impl FnMut(String)) -> usize {
    keys(text, &["type", "text", "emoji"], say);
    let words = text["text"].as_str().unwrap_or_default();
    if text["type"] != "plain_text" || text["emoji"] != false || words.trim().is_empty() || cost(words) > most
    {
        say(format!("plain text of {} (at most {most})", cost(words)));
    }
    cost(words)
}

fn any_text(text: &Value, most: usize, say: &mut impl FnMut(String)) -> usize {
    if text["type"] == "plain_text" {
        return plain(text, most, say);
    }
    keys(text, &["type", "text", "verbatim"], say);
    let words = text["text"].as_str().unwrap_or_default();
    if text["type"] != "mrkdwn" || text["verbatim"] != true || words.trim().is_empty() || words.len() > most {
        say(format!("mrkdwn of {} (at most {most})", words.len()));
    }
    let mut wrong = vec![];
    entities(words, "mrkdwn", &mut wrong);
    wrong.into_iter().for_each(say);
    words.len()
}

fn rich(block: &Value, say: &mut impl FnMut(String)) -> usize {
    let mut spent = 0;
    for element in block["elements"].as_array().into_iter().flatten() {
        keys(element, &["type", "elements"], say);
        let kind = element["type"].as_str();
        for text in element["elements"].as_array().into_iter().flatten() {
            keys(text, &["type", "text", "style"], say);
            let words = text["text"].as_str().unwrap_or_default();
            if !matches!(kind, Some("rich_text_section" | "rich_text_preformatted"))
                || text["type"] != "text"
                || words.is_empty()
            {
                say(format!("rich text {element}"));
            }
            spent += cost(words);
        }
    }
    spent
}

/// In markup, `&` begins one of the three entities, and `<…>` is a mention, a date or a link of ours.
fn entities(markup: &str, place: &str, wrong: &mut Vec<String>) {
    let mut rest = markup;
    while let Some(at) = rest.find(['&', '<', '>']) {
        let here = &rest[at..];
        let entity = ["&amp;", "&lt;", "&gt;"].into_iter().find(|entity| here.starts_with(entity));
        let ours = here.starts_with('<').then(|| here.find('>')).flatten().filter(|end| {
            let inner = &here[1..*end];
            let mention =
                inner.strip_prefix("@U").is_some_and(|id| id.bytes().all(|b| b.is_ascii_alphanumeric()));
            // The one group that our tests configure as one to be mentioned.
            mention
                || inner == "!subteam^S0RELEASE"
                || inner.starts_with("!date^")
                || inner.ends_with("|Open in the runtime")
        });
        match (entity, ours) {
            (Some(entity), _) => rest = &here[entity.len()..],
            (None, Some(end)) => rest = &here[end + 1..],
            (None, None) => {
                wrong.push(format!("{place}: bare markup at {here:?}"));
                return;
            }
        }
    }
}

#[test]
fn the_table_refuses_what_it_says() {
    use serde_json::json;
    let section = |text: &str| json!([{"type": "section", "text": {"type": "plain_text", "text": text, "emoji": false}}]);
    let marked =
        |text: &str| json!([{"type": "section", "text": {"type": "mrkdwn", "text": text, "verbatim": true}}]);
    assert_eq!(check("x", &section("x")), Vec::<String>::new());
    assert_eq!(check("x", &marked("a &amp; <@U1> <!date^1^{time}|x>")), Vec::<String>::new());
    let long = "&".repeat(581);
    let button = json!({"type": "button", "action_id": "cs.a", "value": "k", "accessibility_label": "a",
        "text": {"type": "plain_text", "text": "a", "emoji": false}});
    let mut extra = section("x");
    extra[0]["accessory"] = json!({});
    let total: Vec<Value> = (0..5).map(|_| section(&"x".repeat(2900))[0].clone()).collect();
    let mut twin = [section("x")[0].clone(), section("x")[0].clone()];
    for block in &mut twin {
        block["block_id"] = json!("same");
    }
    for (name, text, blocks) in [
        ("no text", " ", section("x")),
        ("long text", &"x".repeat(3901), section("x")),
        ("open markup in text", "<!channel>", section("x")),
        ("no blocks", "x", json!([])),
        ("empty", "x", section(" ")),
        ("cost", "x", section(&long)),
        ("property", "x", extra),
        ("total", "x", json!(total)),
        ("ids", "x", json!(twin)),
        ("channel", "x", marked("<!channel>")),
        ("group", "x", marked("<!subteam^S1>")),
        ("link", "x", marked("<https://evil.test|x>")),
        ("cut entity", "x", marked("a &am")),
        ("no buttons", "x", json!([{"type": "actions", "elements": []}])),
        ("twin buttons", "x", json!([{"type": "actions", "elements": [button.clone(), button]}])),
        ("type", "x", json!([{"type": "markdown", "text": "x"}])),
    ] {
        assert_ne!(check(text, &blocks), Vec::<String>::new(), "{name}");
    }
}

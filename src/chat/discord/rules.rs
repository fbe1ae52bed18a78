//! What Discord takes (Discord: Message, Embed and Component reference), as a check of what we are about to send.
//!
//! Invariant: complete for what we send: one message format, buttons, and forms with a text field. What the
//! published schema misses is here too: empty labels, equal ids, the sum over embeds, lists beside `parse`.

use super::limits::{
    BUTTON, CONTENT, CUSTOM_ID, DESCRIPTION, EMBEDS, FIELD_NAME, FIELD_VALUE, FIELDS, FOOTER, INPUT, MODAL,
    MODAL_HINT, NONCE, TITLE, URL, units,
};
use serde_json::Value;
use std::collections::BTreeSet;

/// Faults collected on the way.
#[derive(Default)]
struct Faults {
    found: Vec<String>,
    ids: BTreeSet<String>,
}

impl Faults {
    fn add(&mut self, fault: impl Into<String>) {
        self.found.push(fault.into());
    }

    /// A text that must be there, within its limit after Discord's trimming.
    fn text(&mut self, at: &str, value: Option<&Value>, most: usize) {
        let Some(text) = value.and_then(Value::as_str) else { return self.add(format!("{at}: missing")) };
        let length = units(text.trim());
        if length == 0 {
            self.add(format!("{at}: blank"));
        } else if length > most {
            self.add(format!("{at}: {length} of {most}"));
        }
    }

    fn maybe(&mut self, at: &str, value: Option<&Value>, most: usize) {
        if value.is_some() {
            self.text(at, value, most);
        }
    }

    fn custom_id(&mut self, at: &str, value: Option<&Value>) {
        self.text(at, value, CUSTOM_ID);
        let id = value.and_then(Value::as_str).unwrap_or_default().to_owned();
        if !self.ids.insert(id) {
            self.add(format!("{at}: stands twice"));
        }
    }

    fn known(&mut self, at: &str, value: &Value, keys: &[&str]) {
        for key in value.as_object().into_iter().flat_map(serde_json::Map::keys) {
            if !keys.contains(&key.as_str()) {
                self.add(format!("{at}.{key}: not known"));
            }
        }
    }
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// What is wrong with a message.
pub(super) fn message(body: &Value) -> Vec<String> {
    let mut faults = Faults::default();
    faults.known(
        "message",
        body,
        &[
            "content",
            "embeds",
            "components",
            "allowed_mentions",
            "flags",
            "nonce",
            "enforce_nonce",
            "attachments",
        ],
    );
    let content = body.get("content").and_then(Value::as_str).unwrap_or_default();
    if units(content.trim()) > CONTENT {
        faults.add("content: too long");
    }
    let embeds = list(body, "embeds");
    if content.trim().is_empty() && embeds.is_empty() {
        faults.add("message: empty");
    }
    if embeds.len() > 10 {
        faults.add("embeds: more than 10");
    }
    let sum: usize = embeds.iter().enumerate().map(|(at, one)| embed(&mut faults, at, one)).sum();
    if sum > EMBEDS {
        faults.add(format!("embeds: {sum} of {EMBEDS} in all"));
    }
    rows(&mut faults, list(body, "components"));
    allowed(&mut faults, body.get("allowed_mentions"));
    if let Some(nonce) = body.get("nonce").and_then(Value::as_str)
        && nonce.len() > NONCE
    {
        faults.add("nonce: too long");
    }
    faults.found
}

fn embed(faults: &mut Faults, at: usize, embed: &Value) -> usize {
    let path = |key: &str| format!("embeds.{at}.{key}");
    faults.known(
        &format!("embeds.{at}"),
        embed,
        &["title", "description", "fields", "footer", "timestamp", "color", "type"],
    );
    faults.maybe(&path("title"), embed.get("title"), TITLE);
    faults.maybe(&path("description"), embed.get("description"), DESCRIPTION);
    let footer = embed.pointer("/footer/text");
    faults.maybe(&path("footer"), footer, FOOTER);
    let fields = list(embed, "fields");
    if fields.len() > FIELDS {
        faults.add(path("fields"));
    }
    let length = |value: Option<&Value>| value.and_then(Value::as_str).map_or(0, |text| units(text.trim()));
    let mut sum = length(embed.get("title")) + length(embed.get("description")) + length(footer);
    for (n, field) in fields.iter().enumerate() {
        faults.text(&format!("embeds.{at}.fields.{n}.name"), field.get("name"), FIELD_NAME);
        faults.text(&format!("embeds.{at}.fields.{n}.value"), field.get("value"), FIELD_VALUE);
        sum += length(field.get("name")) + length(field.get("value"));
    }
    sum
}

fn rows(faults: &mut Faults, rows: &[Value]) {
    if rows.len() > 5 {
        faults.add("components: more than 5 rows");
    }
    for (at, row) in rows.iter().enumerate() {
        let buttons = list(row, "components");
        if row.get("type").and_then(Value::as_u64) != Some(1) || !(1..=5).contains(&buttons.len()) {
            faults.add(format!("components.{at}: no row of 1 to 5"));
        }
        for (n, one) in buttons.iter().enumerate() {
            button(faults, &format!("components.{at}.components.{n}"), one);
        }
    }
}

fn button(faults: &mut Faults, at: &str, button: &Value) {
    faults.known(at, button, &["type", "style", "label", "custom_id", "url", "disabled"]);
    if button.get("type").and_then(Value::as_u64) != Some(2) {
        faults.add(format!("{at}: no button"));
    }
    faults.text(&format!("{at}.label"), button.get("label"), BUTTON);
    if button.get("style").and_then(Value::as_u64) == Some(5) {
        faults.text(&format!("{at}.url"), button.get("url"), URL);
        let web = button
            .get("url")
            .and_then(Value::as_str)
            .is_some_and(|url| url.starts_with("https://") || url.starts_with("http://"));
        if !web || button.get("custom_id").is_some() {
            faults.add(format!("{at}: no link"));
        }
    } else {
        faults.custom_id(&format!("{at}.custom_id"), button.get("custom_id"));
        if button.get("url").is_some() {
            faults.add(format!("{at}: a link with an id"));
        }
    }
}

fn allowed(faults: &mut Faults, allowed: Option<&Value>) {
    let Some(allowed) = allowed else { return faults.add("allowed_mentions: missing") };
    faults.known("allowed_mentions", allowed, &["parse", "users", "roles"]);
    if !list(allowed, "parse").is_empty() || allowed.get("parse").is_none() {
        faults.add("allowed_mentions.parse: not empty");
    }
    for key in ["users", "roles"] {
        if list(allowed, key).len() > 100 {
            faults.add(format!("allowed_mentions.{key}: more than 100"));
        }
    }
}

/// What is wrong with a form.
pub(super) fn modal(data: &Value) -> Vec<String> {
    let mut faults = Faults::default();
    faults.known("modal", data, &["custom_id", "title", "components"]);
    faults.custom_id("custom_id", data.get("custom_id"));
    faults.text("title", data.get("title"), MODAL);
    let parts = list(data, "components");
    if !(1..=5).contains(&parts.len()) {
        faults.add("components: not 1 to 5");
    }
    for (at, part) in parts.iter().enumerate() {
        let path = |key: &str| format!("components.{at}.{key}");
        match part.get("type").and_then(Value::as_u64) {
            Some(10) => faults.text(&path("content"), part.get("content"), INPUT),
            Some(18) => {
                faults.text(&path("label"), part.get("label"), MODAL);
                faults.maybe(&path("description"), part.get("description"), MODAL_HINT);
                faults.custom_id(&path("component.custom_id"), part.pointer("/component/custom_id"));
                let number = |key: &str| part.pointer(&format!("/component/{key}")).and_then(Value::as_u64);
                let most = number("max_length").unwrap_or(4000);
                if !(1..=4000).contains(&most) || number("min_length").unwrap_or(0) > most {
                    faults.add(path("component.max_length"));
                }
            }
            _ => faults.add(path("type")),
        }
    }
    faults.found
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn good() -> Value {
        json!({
            "content": "x", "allowed_mentions": {"parse": []}, "nonce": "a",
            "embeds": [{"title": "t", "description": "d", "fields": [{"name": "n", "value": "v"}], "footer": {"text": "f"}}],
            "components": [{"type": 1, "components": [
                {"type": 2, "style": 3, "label": "Approve", "custom_id": "c1.a.do"},
                {"type": 2, "style": 5, "label": "Open", "url": "https://app.example"}]}],
        })
    }

    #[test]
    fn discord_case_12_what_is_beyond_a_limit_is_found() {
        assert_eq!(message(&good()), Vec::<String>::new());
        let with = |pointer: &str, value: Value| {
            let mut body = good();
            *body.pointer_mut(pointer).unwrap() = value;
            message(&body)
        };
        let long = |n: usize| Value::from("x".repeat(n));
        let field = json!({"name": "n", "value": "v"});
        for (pointer, value) in [
            ("/content", long(2001)),
            ("/embeds/0/title", long(257)),
            ("/embeds/0/title", json!(" ")),
            ("/embeds/0/description", long(4097)),
            ("/embeds/0/fields/0/value", long(1025)),
            ("/embeds/0/fields/0/value", json!("")),
            ("/embeds/0/fields/0/name", json!("\n")),
            ("/embeds/0/fields", json!(vec![field; 26])),
            ("/embeds/0/footer/text", long(2049)),
            ("/embeds", json!([{"description": "x".repeat(3000)}, {"description": "x".repeat(3001)}])),
            ("/components/0/components/0/label", long(81)),
            ("/components/0/components/0/label", json!("")),
            ("/components/0/components/0/custom_id", long(101)),
            ("/components/0/components/1/url", json!("javascript:alert(1)")),
            ("/components/0/components", json!([])),
            ("/allowed_mentions", json!({})),
            ("/allowed_mentions/parse", json!(["users"])),
            ("/nonce", long(26)),
        ] {
            assert_ne!(with(pointer, value.clone()), Vec::<String>::new(), "{pointer} {value}");
        }
        let astral = Value::from("😀".repeat(1000));
        assert_eq!(with("/content", astral), Vec::<String>::new());
        assert_ne!(with("/content", Value::from("😀".repeat(1001))), Vec::<String>::new());
    }

    #[test]
    fn discord_case_15_equal_ids_are_found_also_of_disabled_twins() {
        let mut body = good();
        let twin =
            json!({"type": 2, "style": 3, "label": "Approve", "custom_id": "c1.a.do", "disabled": true});
        body["components"][0]["components"][1] = twin;
        assert_eq!(message(&body), ["components.0.components.1.custom_id: stands twice"]);
    }

    #[test]
    fn discord_case_18_forms() {
        let label = |label: &str, custom: &str| {
            json!({"type": 18, "label": label, "description": "d",
            "component": {"type": 4, "custom_id": custom, "style": 2, "max_length": 2000}})
        };
        let form = |title: &str, parts: Vec<Value>| {
            modal(&json!({"custom_id": "c1.a.form", "title": title, "components": parts}))
        };
        assert_eq!(form("t", vec![label("Reason", "reason")]), Vec::<String>::new());
        for faults in [
            form(&"x".repeat(46), vec![label("Reason", "reason")]),
            form("t", vec![label(&"x".repeat(46), "reason")]),
            form("t", vec![]),
            form("t", (0..6).map(|n| label("Reason", &n.to_string())).collect()),
            form("t", vec![label("A", "same"), label("B", "same")]),
        ] {
            assert_ne!(faults, Vec::<String>::new());
        }
    }
}

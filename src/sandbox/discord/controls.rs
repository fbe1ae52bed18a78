//! Finding the controls of a message or form, and what people put into them.
//!
//! Invariant: a control is found the way a person finds it, by its label (a select by its placeholder, a field of a
//! form by the label around it); `custom_id`s are a second way for tests. A disabled control cannot be used.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// An interactive part where it stands.
#[derive(Debug, Clone)]
pub(super) struct Control {
    pub(super) part: Value,
    pub(super) label: String,
}

impl Control {
    pub(super) fn kind(&self) -> u64 {
        self.part["type"].as_u64().unwrap_or(0)
    }

    pub(super) fn custom_id(&self) -> &str {
        self.part["custom_id"].as_str().unwrap_or_default()
    }

    pub(super) fn disabled(&self) -> bool {
        self.part["disabled"] == true
    }

    pub(super) fn required(&self) -> bool {
        self.part["required"] != false
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// What a button says: its emoji, then its label.
fn button(part: &Value) -> String {
    let emoji = part["emoji"]["name"].as_str().unwrap_or_default();
    [emoji, part["label"].as_str().unwrap_or_default()].join(" ").trim().to_owned()
}

/// Every control, top to bottom.
pub(super) fn all(components: &[Value]) -> Vec<Control> {
    let mut found = Vec::new();
    for one in components {
        match one["type"].as_u64() {
            Some(2) => found.push(Control { part: one.clone(), label: button(one) }),
            Some(3 | 5..=8) => {
                let label = one["placeholder"].as_str().unwrap_or("Make a selection");
                found.push(Control { part: one.clone(), label: label.into() });
            }
            Some(4) => found.push(Control { part: one.clone(), label: text(&one["label"]) }),
            Some(18) => {
                found.push(Control { part: one["component"].clone(), label: text(&one["label"]) });
            }
            _ => found.extend(all(one["components"].as_array().map_or(&[], Vec::as_slice))),
        }
    }
    found
}

/// The control a person means: an exact label first, then a `custom_id`.
pub(super) fn find<'c>(controls: &'c [Control], wanted: &str) -> Option<&'c Control> {
    let by_label = controls.iter().find(|control| control.label == wanted);
    by_label.or_else(|| controls.iter().find(|control| control.custom_id() == wanted))
}

/// What a person does to a field of a form.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub enum Input {
    /// Types this.
    Text { text: String },
    /// Picks exactly these options, by label.
    Choose { labels: Vec<String> },
    /// Ticks a box, or takes the tick away.
    Tick { on: bool },
}

impl Input {
    /// Types this.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self::Text { text: text.into() }
    }

    /// Picks these.
    #[must_use]
    pub fn choose(labels: &[&str]) -> Self {
        Self::Choose { labels: labels.iter().map(|&label| label.into()).collect() }
    }
}

/// The value of options picked by label, within the control's own bounds.
pub(super) fn picked(part: &Value, labels: &[String]) -> Result<Vec<String>, String> {
    let options = part["options"].as_array().cloned().unwrap_or_default();
    let has: Vec<String> = options.iter().map(|one| text(&one["label"])).collect();
    let mut values = Vec::new();
    for label in labels {
        let at = has.iter().position(|known| known == label);
        let at = at.ok_or_else(|| format!("no option {label:?}, there are {has:?}"))?;
        values.push(text(&options[at]["value"]));
    }
    let most = part["max_values"].as_u64().unwrap_or(if part["type"] == 22 { 10 } else { 1 });
    if values.len() as u64 > most {
        return Err(format!("at most {most} can be picked"));
    }
    Ok(values)
}

/// A field's value after `input`, as `filled` holds it.
pub(super) fn filled(part: &Value, input: &Input) -> Result<Value, String> {
    match (part["type"].as_u64(), input) {
        (Some(4), Input::Text { text }) => {
            let units = text.encode_utf16().count() as u64;
            let most = part["max_length"].as_u64().unwrap_or(4000);
            if units > most {
                return Err(format!("at most {most} characters can be typed"));
            }
            if part["style"] == 1 && text.contains('\n') {
                return Err("a short field has one line".into());
            }
            Ok(json!({"value": text}))
        }
        (Some(3 | 22), Input::Choose { labels }) => Ok(json!({"values": picked(part, labels)?})),
        (Some(21), Input::Choose { labels }) => {
            let values = picked(part, labels)?;
            Ok(json!({"value": values.first()}))
        }
        (Some(23), Input::Tick { on }) => Ok(json!({"value": on})),
        (kind, _) => Err(format!("a field of type {kind:?} does not take this")),
    }
}

/// What a field holds from the start.
pub(super) fn initial(part: &Value) -> Value {
    let defaults = || {
        let all = part["options"].as_array().into_iter().flatten();
        all.filter(|one| one["default"] == true).map(|one| text(&one["value"])).collect::<Vec<_>>()
    };
    match part["type"].as_u64() {
        Some(4) => json!({"value": part["value"].as_str().unwrap_or_default()}),
        Some(21) => json!({"value": defaults().first()}),
        Some(23) => json!({"value": part["default"] == true}),
        _ => json!({"values": defaults()}),
    }
}

/// Why a client would not submit this field yet.
pub(super) fn unfit(control: &Control, value: &Value) -> Option<String> {
    let part = &control.part;
    match control.kind() {
        4 => {
            let units = value["value"].as_str().unwrap_or_default().encode_utf16().count() as u64;
            let least = part["min_length"].as_u64().unwrap_or(0).max(u64::from(control.required()));
            (units < least && (units > 0 || control.required()))
                .then(|| format!("{}: too short", control.label))
        }
        21 => {
            (control.required() && value["value"].is_null()).then(|| format!("{}: pick one", control.label))
        }
        3 | 22 => {
            let count = value["values"].as_array().map_or(0, Vec::len) as u64;
            let least = part["min_values"].as_u64().unwrap_or(1);
            let least = if control.required() { least.max(1) } else { least };
            (count < least && (count > 0 || control.required()))
                .then(|| format!("{}: pick more", control.label))
        }
        _ => None,
    }
}

//! Components of messages: rows of buttons or one select, and the newer layout as far as it is counted.

use super::{Form, blank, join, only};
use crate::sandbox::discord::error::Problems;
use serde_json::{Value, json};
use std::collections::BTreeSet;

const SELECTS: [i64; 5] = [3, 5, 6, 7, 8];

/// What all components of one message share.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) custom_ids: BTreeSet<String>,
    pub(super) ids: BTreeSet<i64>,
    pub(super) count: usize,
    pub(super) text: usize,
}

/// Checks the `components` of a message; `v2` with the flag of the newer layout.
pub(in crate::sandbox::discord) fn rows(body: &Value, path: &str, v2: bool, problems: &mut Problems) {
    let mut form = Form { value: body, path: path.into(), problems };
    let most = if v2 { 40 } else { 5 };
    let mut seen = Seen::default();
    for (path, row) in form.list("components", 0, most) {
        let mut form = Form { value: row, path, problems };
        if form.is_object() {
            top(&mut form, v2, &mut seen);
        }
    }
    if seen.count > 40 {
        problems.add(join(path, "components"), "BASE_TYPE_MAX_LENGTH", "Must be 40 or fewer in length.");
    }
    if seen.text > 4000 {
        problems.add(
            join(path, "components"),
            "COMPONENT_DISPLAYABLE_TEXT_SIZE_EXCEEDED",
            "Components displayable text size exceeds maximum size of 4000",
        );
    }
}

fn top(form: &mut Form<'_, '_>, v2: bool, seen: &mut Seen) {
    number(form, seen);
    match form.value["type"].as_i64() {
        Some(1) => row(form, seen),
        Some(10) if v2 => {
            seen.text += form.text("content", 1, 4000, true).map_or(0, super::length);
        }
        Some(9 | 17) if v2 => {
            for (path, inner) in form.list("components", 1, 40) {
                top(&mut Form { value: inner, path, problems: form.problems }, true, seen);
            }
            if let Some(part) = form.get("accessory").filter(|part| part["type"] == 2) {
                let path = form.at("accessory");
                button(&mut Form { value: part, path, problems: form.problems }, seen);
            }
        }
        Some(12..=14) if v2 => {}
        _ => {
            let allowed = if v2 { "(1, 9, 10, 12, 13, 14, 17)" } else { "(1,)" };
            form.wrong(
                "type",
                "UNION_TYPE_CHOICES",
                format!("Value of field \"type\" must be one of {allowed}."),
            );
        }
    }
}

fn row(form: &mut Form<'_, '_>, seen: &mut Seen) {
    let inner = form.list("components", 1, 5);
    let selects = inner
        .iter()
        .filter(|(_, one)| one["type"].as_i64().is_some_and(|kind| SELECTS.contains(&kind)))
        .count();
    if selects > 1 || (selects == 1 && inner.len() > 1) {
        form.wrong(
            "components",
            "COMPONENT_LAYOUT_WIDTH_EXCEEDED",
            "The specified component exceeds the maximum width",
        );
    }
    for (path, one) in inner {
        let mut form = Form { value: one, path, problems: form.problems };
        if !form.is_object() {
            continue;
        }
        match one["type"].as_i64() {
            Some(2) => button(&mut form, seen),
            Some(kind) if SELECTS.contains(&kind) => {
                number(&mut form, seen);
                form.boolean("disabled");
                select(&mut form, kind, false, seen);
            }
            _ => form.wrong(
                "type",
                "UNION_TYPE_CHOICES",
                "Value of field \"type\" must be one of (2, 3, 5, 6, 7, 8).",
            ),
        }
    }
}

/// Counts a component and checks its own number.
pub(super) fn number(form: &mut Form<'_, '_>, seen: &mut Seen) {
    seen.count += 1;
    if let Some(id) = form.number("id", 0, i64::from(u32::MAX)).filter(|id| *id != 0)
        && !seen.ids.insert(id)
    {
        form.wrong("id", "COMPONENT_ID_DUPLICATED", "Component id cannot be duplicated");
    }
}

/// Checks and remembers a `custom_id`.
pub(super) fn custom_id(form: &mut Form<'_, '_>, seen: &mut Seen) {
    if let Some(id) = form.text("custom_id", 1, 100, true)
        && !seen.custom_ids.insert(id.to_owned())
    {
        form.wrong("custom_id", "COMPONENT_CUSTOM_ID_DUPLICATED", "Component custom id cannot be duplicated");
    }
}

fn emoji(form: &mut Form<'_, '_>) -> bool {
    // `"emoji": null` counts as none, `{}` does not.
    let Some(emoji) = form.get("emoji") else { return false };
    let named = emoji["name"].as_str().is_some_and(|name| !name.is_empty())
        || emoji["id"].as_str().is_some_and(|id| !id.is_empty());
    if !named {
        form.wrong("emoji.name", "BUTTON_COMPONENT_INVALID_EMOJI", "Invalid emoji");
    }
    named
}

fn button(form: &mut Form<'_, '_>, seen: &mut Seen) {
    number(form, seen);
    form.boolean("disabled");
    let label = form.text("label", 0, 80, false).is_some_and(|label| !blank(label));
    let emoji = emoji(form);
    let style = form.number("style", 1, 6);
    if style.is_none() && form.get("style").is_none() {
        form.wrong("style", "BASE_TYPE_REQUIRED", "This field is required");
    }
    match style {
        Some(5) => {
            if form.get("url").is_none() {
                form.wrong("url", "BASE_TYPE_REQUIRED", "A url is required");
            }
            form.link("url", 512);
            if form.get("custom_id").is_some() {
                form.wrong(
                    "custom_id",
                    "BUTTON_COMPONENT_CUSTOM_ID_URL_MUTUALLY_EXCLUSIVE",
                    "A custom id and url cannot both be specified",
                );
            }
        }
        Some(6) => {
            form.wrong("sku_id", "BUTTON_COMPONENT_INVALID_SKU", "A premium button is not served here");
        }
        _ => {
            custom_id(form, seen);
            if form.get("url").is_some() {
                form.wrong(
                    "url",
                    "BUTTON_COMPONENT_CUSTOM_ID_URL_MUTUALLY_EXCLUSIVE",
                    "A custom id and url cannot both be specified",
                );
            }
        }
    }
    if !label && !emoji {
        form.wrong("label", "BUTTON_COMPONENT_LABEL_OR_EMOJI_REQUIRED", "A label or an emoji is required");
    }
}

/// A select, in a message or (`modal`) under a label.
pub(super) fn select(form: &mut Form<'_, '_>, kind: i64, modal: bool, seen: &mut Seen) {
    custom_id(form, seen);
    form.text("placeholder", 0, 150, false);
    let min = form.number("min_values", 0, 25).unwrap_or(1);
    let max = form.number("max_values", 1, 25).unwrap_or(1);
    if min > max {
        form.wrong(
            "min_values",
            "SELECT_COMPONENT_MIN_ABOVE_MAX",
            "min_values cannot be more than max_values",
        );
    }
    let required = form.value["required"] != false;
    if modal && min == 0 && required && form.get("min_values").is_some() {
        form.wrong(
            "min_values",
            "SELECT_COMPONENT_REQUIRED_MIN",
            "min_values must be at least 1 when required",
        );
    }
    if kind != 3 {
        return;
    }
    let options = form.list("options", 1, 25);
    let count = i64::try_from(options.len()).unwrap_or(i64::MAX);
    for (key, number) in [("max_values", max), ("min_values", min)] {
        if number > count && form.get(key).is_some() {
            form.wrong(
                key,
                "SELECT_COMPONENT_MORE_VALUES_THAN_OPTIONS",
                format!("{key} cannot be more than the number of options"),
            );
        }
    }
    let defaults = choices(form, options, 100);
    if defaults > max {
        form.wrong("options", "SELECT_COMPONENT_TOO_MANY_DEFAULT_OPTIONS", "Too many default options");
    }
}

/// Checks options with label, value and description; how many are chosen from the start.
pub(super) fn choices(form: &mut Form<'_, '_>, options: Vec<(String, &Value)>, most: usize) -> i64 {
    let mut values = BTreeSet::new();
    let mut defaults = 0;
    for (path, option) in options {
        let mut inner = Form { value: option, path, problems: form.problems };
        if !inner.is_object() {
            continue;
        }
        inner.text("label", 1, most, true);
        inner.text("description", 0, 100, false);
        emoji(&mut inner);
        defaults += i64::from(inner.boolean("default") == Some(true));
        if let Some(value) = inner.text("value", 1, 100, true)
            && !values.insert(value.to_owned())
        {
            inner.wrong(
                "value",
                "SELECT_COMPONENT_OPTION_VALUE_DUPLICATED",
                "The specified option value is already used",
            );
        }
    }
    defaults
}

/// The stored form: known fields, and a number for each component that has none.
pub(in crate::sandbox::discord) fn normal(components: &[Value]) -> Vec<Value> {
    let mut taken = BTreeSet::new();
    for one in components {
        collect(one, &mut taken);
    }
    let mut next = 0;
    components.iter().map(|one| numbered(one, &taken, &mut next)).collect()
}

fn numbered(value: &Value, taken: &BTreeSet<u64>, next: &mut u64) -> Value {
    let mut kept = only(
        value,
        &[
            "type",
            "id",
            "custom_id",
            "style",
            "label",
            "emoji",
            "url",
            "disabled",
            "options",
            "placeholder",
            "min_values",
            "max_values",
            "min_length",
            "max_length",
            "value",
            "required",
            "description",
            "content",
            "accessory",
            "accent_color",
            "spoiler",
            "divider",
            "spacing",
            "channel_types",
            "default",
        ],
    );
    if kept["id"].as_u64().unwrap_or(0) == 0 {
        loop {
            *next += 1;
            if !taken.contains(next) {
                break;
            }
        }
        kept["id"] = json!(*next);
    }
    if matches!(kept["type"].as_i64(), Some(3 | 5..=8)) {
        for key in ["min_values", "max_values"] {
            if kept.get(key).is_none() {
                kept[key] = json!(1);
            }
        }
    }
    if let Some(options) = kept.get_mut("options").and_then(Value::as_array_mut) {
        for option in options {
            *option = only(option, &["label", "value", "description", "emoji", "default"]);
        }
    }
    if let Some(inner) = value["components"].as_array() {
        kept["components"] = inner.iter().map(|one| numbered(one, taken, next)).collect();
    }
    if value["component"].is_object() {
        kept["component"] = numbered(&value["component"], taken, next);
    }
    kept
}

fn collect(value: &Value, taken: &mut BTreeSet<u64>) {
    taken.extend(value["id"].as_u64());
    for inner in value["components"].as_array().into_iter().flatten() {
        collect(inner, taken);
    }
    if value["component"].is_object() {
        collect(&value["component"], taken);
    }
}

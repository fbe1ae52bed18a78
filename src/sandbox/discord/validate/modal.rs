//! Forms (modals): a title and one to five parts, labels around inputs or the deprecated rows.

use super::Form;
use super::components::{Seen, choices, custom_id, number, select};
use crate::sandbox::discord::error::Problems;
use serde_json::Value;

/// Checks the `data` of a callback of type 9.
pub(in crate::sandbox::discord) fn modal(data: &Value, path: &str, problems: &mut Problems) {
    let mut form = Form { value: data, path: path.into(), problems };
    if !form.is_object() {
        return;
    }
    form.text("title", 1, 45, true);
    form.text("custom_id", 1, 100, true);
    let mut seen = Seen::default();
    for (path, part) in form.list("components", 1, 5) {
        let mut form = Form { value: part, path, problems };
        if !form.is_object() {
            continue;
        }
        number(&mut form, &mut seen);
        match part["type"].as_i64() {
            Some(1) => row(&mut form, &mut seen),
            Some(10) => {
                form.text("content", 1, 4000, true);
            }
            Some(18) => label(&mut form, &mut seen),
            _ => form.wrong(
                "type",
                "UNION_TYPE_CHOICES",
                "Value of field \"type\" must be one of (1, 10, 18).",
            ),
        }
    }
}

/// The deprecated form: a row around one text input with a label of its own.
fn row(form: &mut Form<'_, '_>, seen: &mut Seen) {
    for (path, input) in form.list("components", 1, 1) {
        let mut inner = Form { value: input, path, problems: form.problems };
        if !inner.is_object() {
            continue;
        }
        if input["type"] != 4 {
            inner.wrong("type", "UNION_TYPE_CHOICES", "Value of field \"type\" must be one of (4,).");
            continue;
        }
        inner.text("label", 1, 45, true);
        text_input(&mut inner, seen);
    }
}

fn label(form: &mut Form<'_, '_>, seen: &mut Seen) {
    form.text("label", 1, 45, true);
    form.text("description", 0, 100, false);
    let Some(part) = form.get("component") else {
        return form.wrong("component", "BASE_TYPE_REQUIRED", "This field is required");
    };
    let mut inner = Form { value: part, path: form.at("component"), problems: form.problems };
    if !inner.is_object() {
        return;
    }
    inner.boolean("required");
    if inner.value["disabled"] == true {
        inner.wrong("disabled", "COMPONENT_DISABLED_IN_MODAL", "Components cannot be disabled in modals");
    }
    match part["type"].as_i64() {
        Some(4) => {
            // The label stands around it; a second, empty one is refused.
            if inner.value.get("label").is_some_and(|label| label.as_str().is_none_or(str::is_empty)) {
                inner.wrong("label", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 45 in length.");
            }
            text_input(&mut inner, seen);
        }
        Some(kind @ (3 | 5..=8)) => {
            number(&mut inner, seen);
            select(&mut inner, kind, true, seen);
        }
        Some(21) => {
            number(&mut inner, seen);
            custom_id(&mut inner, seen);
            let options = inner.list("options", 2, 10);
            if choices(&mut inner, options, 100) > 1 {
                inner.wrong("options", "RADIO_GROUP_TOO_MANY_DEFAULTS", "Only one option can be the default");
            }
        }
        Some(22) => {
            number(&mut inner, seen);
            custom_id(&mut inner, seen);
            let options = inner.list("options", 1, 10);
            let count = i64::try_from(options.len()).unwrap_or(10);
            let min = inner.number("min_values", 0, count).unwrap_or(0);
            let max = inner.number("max_values", 1, count.max(1)).unwrap_or(count);
            if min > max {
                inner.wrong(
                    "min_values",
                    "CHECKBOX_GROUP_MIN_ABOVE_MAX",
                    "min_values cannot be more than max_values",
                );
            }
            choices(&mut inner, options, 100);
        }
        Some(19 | 23) => {
            number(&mut inner, seen);
            custom_id(&mut inner, seen);
        }
        _ => inner.wrong(
            "type",
            "UNION_TYPE_CHOICES",
            "Value of field \"type\" must be one of (3, 4, 5, 6, 7, 8, 19, 21, 22, 23).",
        ),
    }
}

fn text_input(form: &mut Form<'_, '_>, seen: &mut Seen) {
    number(form, seen);
    custom_id(form, seen);
    if form.get("style").is_none() {
        form.wrong("style", "BASE_TYPE_REQUIRED", "This field is required");
    }
    form.number("style", 1, 2);
    form.boolean("required");
    let min = form.number("min_length", 0, 4000).unwrap_or(0);
    let max = form.number("max_length", 1, 4000).unwrap_or(4000);
    if min > max {
        form.wrong("min_length", "TEXT_INPUT_MIN_ABOVE_MAX", "min_length cannot be more than max_length");
    }
    form.text("placeholder", 0, 100, false);
    form.text("value", 0, usize::try_from(max).unwrap_or(4000).min(4000), false);
}

//! Application commands (Discord: Application Commands).

use super::Form;
use crate::sandbox::discord::error::Problems;
use serde_json::Value;
use std::collections::BTreeSet;

/// Checks the list of a `PUT …/commands`.
pub(in crate::sandbox::discord) fn commands(body: &Value, problems: &mut Problems) {
    let Some(list) = body.as_array() else {
        return problems.add("", "LIST_TYPE_CONVERT", "Only iterables may be used in a ListType");
    };
    let mut names = BTreeSet::new();
    for (index, command) in list.iter().enumerate() {
        let mut form = Form { value: command, path: index.to_string(), problems };
        if !form.is_object() {
            continue;
        }
        let kind = form.number("type", 1, 4).unwrap_or(1);
        name(&mut form, kind == 1);
        if kind == 1 {
            form.text("description", 1, 100, true);
            options(&mut form, 0);
        }
        for (key, max) in [("contexts", 2), ("integration_types", 1)] {
            for (path, one) in form.list(key, 0, 3) {
                if !one.as_i64().is_some_and(|number| (0..=max).contains(&number)) {
                    form.problems.add(path, "BASE_TYPE_CHOICES", "Value must be one of the known kinds.");
                }
            }
        }
        let known = (kind, command["name"].as_str().unwrap_or_default().to_owned());
        if !names.insert(known) {
            problems.add(
                index.to_string(),
                "APPLICATION_COMMANDS_DUPLICATE_NAME",
                "Application command names must be unique",
            );
        }
    }
}

fn name(form: &mut Form<'_, '_>, slash: bool) {
    let Some(name) = form.text("name", 1, 32, true) else { return };
    let fits = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '\'');
    if slash && (name.to_lowercase() != name || !name.chars().all(fits)) {
        form.wrong("name", "APPLICATION_COMMAND_INVALID_NAME", "Command name is invalid");
    }
}

fn options(form: &mut Form<'_, '_>, depth: usize) {
    let mut names = BTreeSet::new();
    for (path, option) in form.list("options", 0, 25) {
        let mut inner = Form { value: option, path, problems: form.problems };
        if !inner.is_object() {
            continue;
        }
        if inner.number("type", 1, 11).is_none() {
            inner.wrong("type", "BASE_TYPE_REQUIRED", "This field is required");
        }
        name(&mut inner, true);
        inner.text("description", 1, 100, true);
        if !names.insert(option["name"].as_str().unwrap_or_default().to_owned()) {
            inner.wrong("name", "APPLICATION_COMMAND_OPTIONS_NAME_INVALID", "Option names must be unique");
        }
        for (path, choice) in inner.list("choices", 0, 25) {
            let mut one = Form { value: choice, path, problems: inner.problems };
            if one.is_object() {
                one.text("name", 1, 100, true);
            }
        }
        if depth < 2 {
            options(&mut inner, depth + 1);
        }
    }
}

//! What a message, a form or a set of commands may look like (Discord: Message, Embed Limits, Components).
//!
//! Invariant: lengths are counted in UTF-16 units of the trimmed text, so a text that passes here passes in
//! any counting; what only looks like text (blanks, invisible characters) is empty. The stored form
//! (`normal`) has known fields only, with a number for every component.

mod commands;
mod components;
mod embeds;
mod modal;
#[cfg(test)]
mod tests;

pub(super) use commands::commands;
pub(super) use components::{normal as normal_components, rows};
pub(super) use embeds::{check as embeds, normal as normal_embeds};
pub(super) use modal::modal;

use super::error::Problems;
use serde_json::Value;

/// Text that Discord trims before it counts.
pub(super) fn trimmed(text: &str) -> &str {
    text.trim()
}

/// Length in UTF-16 units, trimmed.
pub(super) fn length(text: &str) -> usize {
    trimmed(text).encode_utf16().count()
}

/// Nothing a person could see.
pub(super) fn blank(text: &str) -> bool {
    text.chars().all(|c| {
        c.is_whitespace()
            || c.is_control()
            || matches!(c, '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
                | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{e0000}'..='\u{e0fff}')
    })
}

/// Reads one object's fields and notes what is wrong with them.
pub(super) struct Form<'v, 'p> {
    pub(super) value: &'v Value,
    pub(super) path: String,
    pub(super) problems: &'p mut Problems,
}

pub(super) fn join(path: &str, step: impl std::fmt::Display) -> String {
    if path.is_empty() { step.to_string() } else { format!("{path}.{step}") }
}

impl<'v> Form<'v, '_> {
    pub(super) fn at(&self, key: &str) -> String {
        join(&self.path, key)
    }

    pub(super) fn wrong(&mut self, key: &str, code: &'static str, message: impl Into<String>) {
        let path = self.at(key);
        self.problems.add(path, code, message);
    }

    /// A field that is there and not null.
    pub(super) fn get(&self, key: &str) -> Option<&'v Value> {
        self.value.get(key).filter(|value| !value.is_null())
    }

    /// A text of `min..=max` units; with `min` above 0 it must be there when `required`, and be visible.
    pub(super) fn text(&mut self, key: &str, min: usize, max: usize, required: bool) -> Option<&'v str> {
        let Some(found) = self.get(key) else {
            if required {
                self.wrong(key, "BASE_TYPE_REQUIRED", "This field is required");
            }
            return None;
        };
        let Some(text) = found.as_str() else {
            self.wrong(key, "STRING_TYPE_CONVERT", "Could not interpret value as string.");
            return None;
        };
        let units = length(text);
        if min > 0 && (units == 0 || blank(text)) && required {
            self.wrong(key, "BASE_TYPE_REQUIRED", "This field is required");
        } else if units > max || units < min {
            self.too_long(key, min, max);
        }
        Some(text)
    }

    fn too_long(&mut self, key: &str, min: usize, max: usize) {
        if min == 0 {
            self.wrong(key, "BASE_TYPE_MAX_LENGTH", format!("Must be {max} or fewer in length."));
        } else {
            self.wrong(key, "BASE_TYPE_BAD_LENGTH", format!("Must be between {min} and {max} in length."));
        }
    }

    /// A whole number in `min..=max`.
    pub(super) fn number(&mut self, key: &str, min: i64, max: i64) -> Option<i64> {
        let found = self.get(key)?;
        let Some(number) = found.as_i64() else {
            self.wrong(key, "NUMBER_TYPE_COERCE", format!("Value \"{found}\" is not int."));
            return None;
        };
        if number < min {
            self.wrong(
                key,
                "NUMBER_TYPE_MIN",
                format!("int value should be greater than or equal to {min}."),
            );
        } else if number > max {
            self.wrong(key, "NUMBER_TYPE_MAX", format!("int value should be less than or equal to {max}."));
        }
        Some(number)
    }

    pub(super) fn boolean(&mut self, key: &str) -> Option<bool> {
        let found = self.get(key)?;
        if found.as_bool().is_none() {
            self.wrong(key, "BOOLEAN_TYPE_CONVERT", "Must be either true or false.");
        }
        found.as_bool()
    }

    /// An http or https address.
    pub(super) fn link(&mut self, key: &str, max: usize) -> Option<&'v str> {
        let text = self.text(key, 1, max, false)?;
        match url::Url::parse(text.trim()) {
            Ok(url) if matches!(url.scheme(), "http" | "https" | "discord") && url.has_host() => {}
            Ok(url) if !matches!(url.scheme(), "http" | "https" | "discord") => self.wrong(
                key,
                "URL_TYPE_INVALID_SCHEME",
                format!(
                    "Scheme \"{}\" is not supported. Scheme must be one of ('http', 'https').",
                    url.scheme()
                ),
            ),
            _ => self.wrong(key, "URL_TYPE_INVALID_URL", "Not a well formed URL."),
        }
        Some(text)
    }

    /// A list with `min..=max` items; its items with their paths.
    pub(super) fn list(&mut self, key: &str, min: usize, max: usize) -> Vec<(String, &'v Value)> {
        let Some(found) = self.get(key) else {
            if min > 0 {
                self.wrong(key, "BASE_TYPE_REQUIRED", "This field is required");
            }
            return Vec::new();
        };
        let Some(items) = found.as_array() else {
            self.wrong(key, "LIST_TYPE_CONVERT", "Only iterables may be used in a ListType");
            return Vec::new();
        };
        if items.len() > max || items.len() < min {
            self.too_long(key, min, max);
        }
        let path = self.at(key);
        items.iter().enumerate().map(|(index, item)| (join(&path, index), item)).collect()
    }

    /// Whether this is an object at all.
    pub(super) fn is_object(&mut self) -> bool {
        if !self.value.is_object() {
            let path = self.path.clone();
            self.problems.add(path, "DICT_TYPE_CONVERT", "Only dictionaries may be used in a DictType");
        }
        self.value.is_object()
    }
}

/// Copies the named fields that are there and not null.
pub(super) fn only(value: &Value, keys: &[&str]) -> Value {
    let kept = keys.iter().filter_map(|&key| {
        let found = value.get(key).filter(|found| !found.is_null())?;
        Some((key.to_owned(), found.clone()))
    });
    Value::Object(kept.collect())
}

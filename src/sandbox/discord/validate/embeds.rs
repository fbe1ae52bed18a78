//! Embeds: lengths, and 6000 units over all of them together.

use super::{Form, blank, length, only, trimmed};
use crate::sandbox::discord::error::Problems;
use serde_json::{Value, json};

const MOST: usize = 6000;

/// Checks the `embeds` of a body.
pub(in crate::sandbox::discord) fn check(body: &Value, path: &str, problems: &mut Problems) {
    let mut form = Form { value: body, path: path.into(), problems };
    let embeds = form.list("embeds", 0, 10);
    let mut total = 0;
    for (path, embed) in embeds {
        let mut form = Form { value: embed, path: path.clone(), problems };
        if !form.is_object() {
            continue;
        }
        total += one(&mut form);
        if total > MOST {
            problems.add(
                path,
                "MAX_EMBED_SIZE_EXCEEDED",
                format!("Embed size exceeds maximum size of {MOST}"),
            );
        }
    }
}

/// Checks one embed; its size.
fn one(form: &mut Form<'_, '_>) -> usize {
    let mut size = 0;
    let mut shown = false;
    for (key, max) in [("title", 256), ("description", 4096)] {
        if let Some(text) = form.text(key, 0, max, false) {
            size += length(text);
            shown |= !blank(text);
        }
    }
    form.link("url", 2048);
    form.number("color", 0, 0xff_ffff);
    if let Some(at) = form.get("timestamp") {
        let good = at.as_str().is_some_and(|text| text.parse::<jiff::Timestamp>().is_ok());
        if !good {
            form.wrong(
                "timestamp",
                "DATE_TIME_TYPE_PARSE",
                format!("Could not parse {at}. Should be ISO8601."),
            );
        }
    }
    for (key, name, max) in [("footer", "text", 2048), ("author", "name", 256)] {
        if let Some(part) = form.get(key) {
            let mut inner = Form { value: part, path: form.at(key), problems: form.problems };
            if inner.is_object() {
                if let Some(text) = inner.text(name, 1, max, true) {
                    size += length(text);
                    shown = true;
                }
                inner.link("icon_url", 2048);
                inner.link("url", 2048);
            }
        }
    }
    for key in ["image", "thumbnail"] {
        if let Some(part) = form.get(key) {
            let mut inner = Form { value: part, path: form.at(key), problems: form.problems };
            if inner.is_object() {
                let attached = part["url"].as_str().is_some_and(|url| url.starts_with("attachment://"));
                if !attached {
                    inner.link("url", 2048);
                }
                shown = true;
            }
        }
    }
    for (path, field) in form.list("fields", 0, 25) {
        let mut inner = Form { value: field, path, problems: form.problems };
        if !inner.is_object() {
            continue;
        }
        shown = true;
        for (key, max) in [("name", 256), ("value", 1024)] {
            size += inner.text(key, 1, max, true).map_or(0, length);
        }
        inner.boolean("inline");
    }
    if !shown {
        form.wrong("description", "BASE_TYPE_REQUIRED", "This field is required");
    }
    size
}

/// The stored form.
pub(in crate::sandbox::discord) fn normal(embeds: &[Value]) -> Vec<Value> {
    embeds
        .iter()
        .map(|embed| {
            let mut kept = only(
                embed,
                &[
                    "title",
                    "description",
                    "url",
                    "timestamp",
                    "color",
                    "footer",
                    "image",
                    "thumbnail",
                    "author",
                    "fields",
                ],
            );
            kept["type"] = "rich".into();
            for key in ["title", "description"] {
                trim(&mut kept, key);
            }
            if let Some(at) = kept["timestamp"].as_str().and_then(|text| text.parse::<jiff::Timestamp>().ok())
            {
                kept["timestamp"] = super::super::world::iso(at.as_millisecond()).into();
            } else if let Some(map) = kept.as_object_mut() {
                map.remove("timestamp");
            }
            for (part, keys) in [
                ("footer", &["text", "icon_url"][..]),
                ("author", &["name", "url", "icon_url"]),
                ("image", &["url"]),
                ("thumbnail", &["url"]),
            ] {
                if kept.get(part).is_some() {
                    kept[part] = only(&kept[part], keys);
                    trim(&mut kept[part], keys[0]);
                }
            }
            if let Some(fields) = kept.get_mut("fields").and_then(Value::as_array_mut) {
                for field in fields {
                    let inline = field["inline"] == true;
                    *field = only(field, &["name", "value"]);
                    field["inline"] = json!(inline);
                    trim(field, "name");
                    trim(field, "value");
                }
            }
            kept
        })
        .collect()
}

fn trim(value: &mut Value, key: &str) {
    if let Some(text) = value.get(key).and_then(Value::as_str).map(|text| trimmed(text).to_owned()) {
        if text.is_empty() {
            value.as_object_mut().map(|map| map.remove(key));
        } else {
            value[key] = text.into();
        }
    }
}

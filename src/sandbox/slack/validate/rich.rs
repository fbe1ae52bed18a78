//! `rich_text` blocks (Slack: Block Kit, rich text block).

use super::{Checker, Object};
use serde_json::Value;

impl Checker {
    pub(super) fn rich_text(&mut self, at: &str, block: &Object) {
        self.keys(at, block, &["type", "block_id", "elements"]);
        for (index, element) in
            self.list(&format!("{at}/elements"), block.get("elements"), 1, 100).iter().enumerate()
        {
            self.rich_part(&format!("{at}/elements/{index}"), element, true);
        }
    }

    fn rich_part(&mut self, at: &str, part: &Value, lists: bool) {
        let Some(object) = self.object(at, Some(part)) else { return };
        let kind = object.get("type").and_then(Value::as_str).unwrap_or_default();
        let allowed: &[&str] = match kind {
            "rich_text_section" => &["type", "elements"],
            "rich_text_preformatted" => &["type", "elements", "border", "language"],
            "rich_text_quote" => &["type", "elements", "border"],
            "rich_text_list" if lists => &["type", "elements", "style", "indent", "offset", "border"],
            other => return self.problem(&format!("{at}/type"), format!("unsupported type: {other}")),
        };
        self.keys(at, object, allowed);
        let elements = self.list(&format!("{at}/elements"), object.get("elements"), 1, usize::MAX);
        if kind == "rich_text_list" {
            self.one_of(at, object, "style", &["bullet", "ordered"]);
            if !object.contains_key("style") {
                self.problem(&format!("{at}/style"), "missing required field: style");
            }
        }
        for (index, element) in elements.iter().enumerate() {
            let at = format!("{at}/elements/{index}");
            if kind == "rich_text_list" {
                self.rich_part(&at, element, false);
            } else {
                self.rich_leaf(&at, element, kind == "rich_text_preformatted");
            }
        }
    }

    fn rich_leaf(&mut self, at: &str, leaf: &Value, preformatted: bool) {
        let Some(object) = self.object(at, Some(leaf)) else { return };
        let kind = object.get("type").and_then(Value::as_str).unwrap_or_default();
        let allowed: &[&str] = match kind {
            "text" => &["type", "text", "style"],
            "link" => &["type", "url", "text", "unsafe", "style"],
            "emoji" if !preformatted => &["type", "name", "unicode", "style"],
            "user" if !preformatted => &["type", "user_id", "style"],
            "channel" if !preformatted => &["type", "channel_id", "style"],
            "usergroup" if !preformatted => &["type", "usergroup_id", "style"],
            "broadcast" if !preformatted => &["type", "range", "style"],
            "date" if !preformatted => &["type", "timestamp", "format", "url", "fallback", "style"],
            "color" if !preformatted => &["type", "value", "style"],
            other => return self.problem(&format!("{at}/type"), format!("unsupported type: {other}")),
        };
        self.keys(at, object, allowed);
        match kind {
            "text" => self.leaf(&format!("{at}/text"), object.get("text")),
            "link" => self.string(at, object, "url", 1, 3_000, true),
            "broadcast" => self.one_of(at, object, "range", &["here", "channel", "everyone"]),
            _ => {}
        }
        if let Some(style) = object.get("style")
            && let Some(style) = self.object(&format!("{at}/style"), Some(style))
        {
            let known =
                ["bold", "italic", "strike", "code", "underline", "highlight", "client_highlight", "unlink"];
            self.keys(&format!("{at}/style"), style, &known);
            self.booleans(&format!("{at}/style"), style, &known);
        }
    }
}

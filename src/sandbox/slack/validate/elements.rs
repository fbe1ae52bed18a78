//! Which element may stand where, and what each may carry (Slack: Block Kit, block elements).

use super::{Checker, Object, Surface};
use crate::sandbox::slack::text::store_plain;
use serde_json::Value;
use std::collections::BTreeSet;

/// Where an element stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Accessory,
    Actions,
    Input,
}

const SELECTS: [&str; 5] =
    ["static_select", "external_select", "users_select", "conversations_select", "channels_select"];
const MULTI_SELECTS: [&str; 5] = [
    "multi_static_select",
    "multi_external_select",
    "multi_users_select",
    "multi_conversations_select",
    "multi_channels_select",
];
const TYPED: [&str; 4] = ["plain_text_input", "number_input", "email_text_input", "url_text_input"];
const PICKERS: [&str; 3] = ["datepicker", "timepicker", "datetimepicker"];

impl Checker {
    pub(super) fn element(&mut self, at: &str, element: &Value, place: Place) {
        let Some(object) = self.object(at, Some(element)) else { return };
        let kind = object.get("type").and_then(Value::as_str).unwrap_or_default();
        if let Err(why) = self.placed(kind, place) {
            return self.problem(&format!("{at}/type"), why);
        }
        self.string(at, object, "action_id", 0, 255, false);
        self.booleans(at, object, &["focus_on_load"]);
        if object.get("focus_on_load") == Some(&Value::Bool(true)) {
            if self.has_focus {
                self.problem(&format!("{at}/focus_on_load"), "only one element may have focus");
            }
            self.has_focus = true;
        }
        if object.contains_key("confirm") {
            self.confirm(&format!("{at}/confirm"), object.get("confirm"));
        }
        if object.contains_key("placeholder") {
            self.text(&format!("{at}/placeholder"), object.get("placeholder"), 150, true);
        }
        match kind {
            "button" => self.button(at, object),
            "image" => {
                self.keys(at, object, &["type", "image_url", "slack_file", "alt_text"]);
                self.image(at, object);
            }
            "overflow" => {
                self.keys(at, object, &["type", "action_id", "options", "confirm"]);
                self.options(at, object, 5, true, true);
            }
            "radio_buttons" => {
                self.keys(
                    at,
                    object,
                    &["type", "action_id", "options", "initial_option", "confirm", "focus_on_load"],
                );
                self.options(at, object, 10, false, false);
            }
            "checkboxes" => {
                self.keys(
                    at,
                    object,
                    &["type", "action_id", "options", "initial_options", "confirm", "focus_on_load"],
                );
                self.options(at, object, 10, false, false);
            }
            kind if SELECTS.contains(&kind) || MULTI_SELECTS.contains(&kind) => self.select(at, kind, object),
            kind if TYPED.contains(&kind) => self.typed(at, kind, object),
            "datepicker" => {
                self.keys(
                    at,
                    object,
                    &["type", "action_id", "initial_date", "confirm", "focus_on_load", "placeholder"],
                );
            }
            "timepicker" => self.keys(
                at,
                object,
                &["type", "action_id", "initial_time", "confirm", "focus_on_load", "placeholder", "timezone"],
            ),
            "datetimepicker" => {
                self.keys(
                    at,
                    object,
                    &["type", "action_id", "initial_date_time", "confirm", "focus_on_load"],
                );
            }
            "rich_text_input" => self.keys(
                at,
                object,
                &[
                    "type",
                    "action_id",
                    "initial_value",
                    "dispatch_action_config",
                    "focus_on_load",
                    "placeholder",
                ],
            ),
            _ => self.keys(at, object, &["type", "action_id", "filetypes", "max_files"]),
        }
    }

    /// The table of places, with the measured exceptions.
    fn placed(&self, kind: &str, place: Place) -> Result<(), String> {
        let choice = SELECTS.contains(&kind)
            || PICKERS.contains(&kind)
            || ["radio_buttons", "checkboxes"].contains(&kind);
        let ok = match place {
            Place::Accessory => {
                choice || MULTI_SELECTS.contains(&kind) || ["button", "overflow", "image"].contains(&kind)
            }
            Place::Actions => {
                if MULTI_SELECTS.contains(&kind) {
                    return Err("unsupported element: multiselect".into());
                }
                choice || ["button", "overflow"].contains(&kind)
            }
            Place::Input => {
                let only_modal = ["rich_text_input", "file_input"].contains(&kind);
                choice
                    || MULTI_SELECTS.contains(&kind)
                    || TYPED.contains(&kind)
                    || (only_modal && self.surface == Surface::Modal)
            }
        };
        if ok { Ok(()) } else { Err(format!("unsupported type: {kind}")) }
    }

    fn button(&mut self, at: &str, object: &Object) {
        let allowed =
            ["type", "text", "action_id", "url", "value", "style", "confirm", "accessibility_label"];
        self.keys(at, object, &allowed);
        self.text(&format!("{at}/text"), object.get("text"), 75, true);
        self.string(at, object, "value", 0, 2_000, false);
        self.string(at, object, "url", 1, 3_000, false);
        self.string(at, object, "accessibility_label", 1, 75, false);
        self.one_of(at, object, "style", &["primary", "danger"]);
    }

    fn confirm(&mut self, at: &str, confirm: Option<&Value>) {
        let Some(object) = self.object(at, confirm) else { return };
        self.keys(at, object, &["title", "text", "confirm", "deny", "style"]);
        self.text(&format!("{at}/title"), object.get("title"), 100, true);
        self.text(&format!("{at}/text"), object.get("text"), 300, false);
        self.text(&format!("{at}/confirm"), object.get("confirm"), 30, true);
        self.text(&format!("{at}/deny"), object.get("deny"), 30, true);
        self.one_of(at, object, "style", &["primary", "danger"]);
    }

    fn select(&mut self, at: &str, kind: &str, object: &Object) {
        let multi = kind.starts_with("multi_");
        let what = kind.trim_start_matches("multi_").trim_end_matches("_select");
        let mut allowed = vec!["type", "action_id", "confirm", "focus_on_load", "placeholder"];
        if multi {
            allowed.push("max_selected_items");
        }
        allowed.extend::<&[&str]>(match (what, multi) {
            ("static", false) => &["options", "option_groups", "initial_option"],
            ("static", true) => &["options", "option_groups", "initial_options"],
            ("external", false) => &["min_query_length", "initial_option"],
            ("external", true) => &["min_query_length", "initial_options"],
            ("users", false) => &["initial_user"],
            ("users", true) => &["initial_users"],
            ("conversations", false) => {
                &["initial_conversation", "default_to_current_conversation", "response_url_enabled", "filter"]
            }
            ("conversations", true) => {
                &["initial_conversations", "default_to_current_conversation", "filter"]
            }
            (_, false) => &["initial_channel", "response_url_enabled"],
            (_, true) => &["initial_channels"],
        });
        self.keys(at, object, &allowed);
        if object.get("max_selected_items").is_some_and(|most| most.as_u64().is_none_or(|most| most == 0)) {
            self.problem(&format!("{at}/max_selected_items"), "must be a positive integer");
        }
        if what == "static" {
            self.static_options(at, object);
        }
    }

    fn static_options(&mut self, at: &str, object: &Object) {
        if object.contains_key("options") == object.contains_key("option_groups") {
            return self.problem(at, "exactly one of options and option_groups must be given");
        }
        if object.contains_key("options") {
            return self.options(at, object, 100, true, false);
        }
        let mut all = Vec::new();
        let groups = self.list(&format!("{at}/option_groups"), object.get("option_groups"), 1, 100);
        for (index, group) in groups.iter().enumerate() {
            let at = format!("{at}/option_groups/{index}");
            let Some(group) = self.object(&at, Some(group)) else { continue };
            self.keys(&at, group, &["label", "options"]);
            self.text(&format!("{at}/label"), group.get("label"), 75, true);
            all.extend(self.option_list(&at, group, 100, true, false));
        }
        self.doubtful(at, object, &all);
    }

    fn options(&mut self, at: &str, object: &Object, most: usize, plain_only: bool, url: bool) {
        let all = self.option_list(at, object, most, plain_only, url);
        self.doubtful(at, object, &all);
    }

    /// Checks the options and returns them with their pointers.
    fn option_list<'v>(
        &mut self,
        at: &str,
        object: &'v Object,
        most: usize,
        plain_only: bool,
        url: bool,
    ) -> Vec<(String, &'v Value)> {
        let options = self.list(&format!("{at}/options"), object.get("options"), 1, most);
        let mut all = Vec::with_capacity(options.len());
        for (index, option) in options.iter().enumerate() {
            let at = format!("{at}/options/{index}");
            let Some(fields) = self.object(&at, Some(option)) else { continue };
            let allowed: &[&str] = if url {
                &["text", "value", "description", "url"]
            } else {
                &["text", "value", "description"]
            };
            self.keys(&at, fields, allowed);
            self.text(&format!("{at}/text"), fields.get("text"), 75, plain_only);
            self.string(&at, fields, "value", 1, 150, true);
            if url {
                self.string(&at, fields, "url", 1, 3_000, false);
            }
            if fields.contains_key("description") {
                self.text(&format!("{at}/description"), fields.get("description"), 75, plain_only);
            }
            all.push((at, option));
        }
        all
    }

    /// What it is unknown whether Slack accepts it.
    fn doubtful(&mut self, at: &str, object: &Object, all: &[(String, &Value)]) {
        if !self.rules.refuse_doubtful_options {
            return;
        }
        let mut values = BTreeSet::new();
        for (at, option) in all {
            if let Some(value) = option.get("value").and_then(Value::as_str)
                && !values.insert(value)
            {
                self.problem(&format!("{at}/value"), format!("value already exists: {value}"));
            }
            if option.pointer("/text/text").and_then(Value::as_str).is_some_and(|text| text.contains('\n')) {
                self.problem(&format!("{at}/text/text"), "must not contain a line break");
            }
        }
        let known = |wanted: &Value| all.iter().any(|(_, option)| *option == wanted);
        if let Some(initial) = object.get("initial_option")
            && !known(initial)
        {
            self.problem(&format!("{at}/initial_option"), "must be one of the options");
        }
        if let Some(initial) = object.get("initial_options") {
            for (index, option) in
                self.list(&format!("{at}/initial_options"), Some(initial), 1, 100).iter().enumerate()
            {
                if !known(option) {
                    self.problem(&format!("{at}/initial_options/{index}"), "must be one of the options");
                }
            }
        }
    }

    fn typed(&mut self, at: &str, kind: &str, object: &Object) {
        let mut allowed = vec![
            "type",
            "action_id",
            "initial_value",
            "dispatch_action_config",
            "focus_on_load",
            "placeholder",
        ];
        match kind {
            "plain_text_input" => allowed.extend(["multiline", "min_length", "max_length"]),
            "number_input" => allowed.extend(["is_decimal_allowed", "min_value", "max_value"]),
            _ => {}
        }
        self.keys(at, object, &allowed);
        self.booleans(at, object, &["multiline", "is_decimal_allowed"]);
        if kind == "number_input" && !object.contains_key("is_decimal_allowed") {
            self.problem(&format!("{at}/is_decimal_allowed"), "missing required field: is_decimal_allowed");
        }
        for (key, least) in [("min_length", 0), ("max_length", 1)] {
            if let Some(value) = object.get(key)
                && !value.as_u64().is_some_and(|value| (least..=3_000).contains(&value))
            {
                self.problem(&format!("{at}/{key}"), format!("must be between {least} and 3000"));
            }
        }
        self.string(at, object, "initial_value", 0, 3_000, false);
        if let Some(initial) = object.get("initial_value").and_then(Value::as_str) {
            self.total += self.rules.unit.length(&store_plain(initial)).min(3_000);
        }
    }

    pub(super) fn leaf(&mut self, at: &str, text: Option<&Value>) {
        match text.and_then(Value::as_str) {
            None => self.problem(at, "missing required field: text"),
            Some("") => self.problem(at, "must be more than 0 characters"),
            // Only text of a message counts; a rich text of nothing but spaces is legal.
            Some(text) => self.total += self.rules.unit.length(&store_plain(text)),
        }
    }
}

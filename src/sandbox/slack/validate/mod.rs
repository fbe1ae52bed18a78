//! The validator: what Slack refuses in blocks, messages and views, and what it is unknown to
//! accept.
//!
//! Invariant: a payload with problems is refused whole; nothing of it is stored. Lengths are
//! judged on the stored (escaped) text. The rules are those of Slack's Block Kit reference plus
//! what live Slack was measured to refuse (multi-selects and typed inputs in `actions`); doubtful
//! things (equal option values, a line break in an option, an `initial_option` outside the
//! options) are refused unless a switch says otherwise.

mod elements;
mod rich;
#[cfg(test)]
mod tests;

use super::switches::{Switches, Unit};
use super::text::{store_mrkdwn, store_plain};
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Most text a message's blocks may carry together; above it live Slack refuses.
pub const MESSAGE_TEXT: usize = 13_000;

/// Most bytes of `text` an update may carry; measured on live Slack.
pub const UPDATE_TEXT: usize = 4_000;

/// Where blocks are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Surface {
    Message,
    Modal,
    Home,
}

/// How lengths are counted and whether doubtful things are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    pub unit: Unit,
    pub refuse_doubtful_options: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self::from(&Switches::default())
    }
}

impl From<&Switches> for Rules {
    fn from(switches: &Switches) -> Self {
        Self { unit: switches.unit, refuse_doubtful_options: switches.refuse_doubtful_options }
    }
}

/// One thing that is wrong, at a JSON pointer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Slack's error code for it.
    pub error: &'static str,
    pub pointer: String,
    pub message: String,
}

impl Problem {
    /// As in `errors` and `response_metadata.messages`.
    #[must_use]
    pub fn line(&self) -> String {
        format!("{} [json-pointer:{}]", self.message, self.pointer)
    }
}

/// Checks what `chat.postMessage`, `chat.update` or `chat.postEphemeral` would be given: `text`
/// and `blocks` (missing blocks are fine, an empty message is not).
#[must_use]
pub fn message(payload: &Value, rules: Rules) -> Vec<Problem> {
    let mut problems = Vec::new();
    let text = payload.get("text").and_then(Value::as_str).unwrap_or_default();
    let empty_blocks = payload.get("blocks").and_then(Value::as_array).is_none_or(Vec::is_empty);
    if text.trim().is_empty() && empty_blocks {
        problems.push(Problem {
            error: "no_text",
            pointer: "/text".into(),
            message: "no text provided".into(),
        });
    }
    if let Some(found) = payload.get("blocks") {
        problems.extend(blocks(found, Surface::Message, rules));
    }
    problems
}

/// Checks what `chat.update` would be given: as [`message`], and `text` within 4,000 bytes.
#[must_use]
pub fn update(payload: &Value, rules: Rules) -> Vec<Problem> {
    let mut problems = message(payload, rules);
    if payload.get("text").and_then(Value::as_str).is_some_and(|text| text.len() > UPDATE_TEXT) {
        let message = format!("must be less than {} bytes", UPDATE_TEXT + 1);
        problems.push(Problem { error: "msg_too_long", pointer: "/text".into(), message });
    }
    problems
}

/// Checks a list of blocks; pointers start with `/blocks`.
#[must_use]
pub fn blocks(blocks: &Value, surface: Surface, rules: Rules) -> Vec<Problem> {
    let mut checker = Checker::new(surface, rules);
    checker.all_blocks("/blocks", blocks);
    if surface == Surface::Message && checker.total > MESSAGE_TEXT {
        let message = format!("all text together must be less than {} characters", MESSAGE_TEXT + 1);
        checker.problems.push(Problem { error: "msg_blocks_too_long", pointer: "/blocks".into(), message });
    }
    checker.problems
}

/// Checks a view (`modal` or `home`); pointers start with `/view`.
#[must_use]
pub fn view(view: &Value, rules: Rules) -> Vec<Problem> {
    let home = view.get("type").and_then(Value::as_str) == Some("home");
    let mut checker = Checker::new(if home { Surface::Home } else { Surface::Modal }, rules);
    checker.view(view, home);
    checker.problems
}

pub(super) struct Checker {
    pub(super) surface: Surface,
    pub(super) rules: Rules,
    pub(super) problems: Vec<Problem>,
    block_ids: BTreeSet<String>,
    /// Length of all text seen.
    total: usize,
    has_input: bool,
    has_focus: bool,
}

type Object = Map<String, Value>;

impl Checker {
    fn new(surface: Surface, rules: Rules) -> Self {
        Self {
            surface,
            rules,
            problems: Vec::new(),
            block_ids: BTreeSet::new(),
            total: 0,
            has_input: false,
            has_focus: false,
        }
    }

    pub(super) fn problem(&mut self, pointer: &str, message: impl Into<String>) {
        let error = if self.surface == Surface::Message { "invalid_blocks" } else { "invalid_arguments" };
        self.problems.push(Problem { error, pointer: pointer.into(), message: message.into() });
    }

    pub(super) fn object<'v>(&mut self, at: &str, value: Option<&'v Value>) -> Option<&'v Object> {
        let object = value.and_then(Value::as_object);
        if object.is_none() {
            self.problem(at, if value.is_some() { "must be an object" } else { "missing required field" });
        }
        object
    }

    pub(super) fn keys(&mut self, at: &str, object: &Object, allowed: &[&str]) {
        for (key, value) in object {
            if !allowed.contains(&key.as_str()) {
                self.problem(&format!("{at}/{key}"), format!("invalid additional property: {key}"));
            } else if value.is_null() {
                self.problem(&format!("{at}/{key}"), "must not be null");
            }
        }
    }

    pub(super) fn booleans(&mut self, at: &str, object: &Object, keys: &[&str]) {
        for &key in keys {
            if object.get(key).is_some_and(|value| !value.is_boolean()) {
                self.problem(&format!("{at}/{key}"), "must be a boolean");
            }
        }
    }

    /// A string field of `min..=max` length that is no shown text (ids, values, addresses).
    pub(super) fn string(
        &mut self,
        at: &str,
        object: &Object,
        key: &str,
        min: usize,
        max: usize,
        required: bool,
    ) {
        let at = format!("{at}/{key}");
        match object.get(key) {
            None if required => self.problem(&at, format!("missing required field: {key}")),
            None => {}
            Some(Value::String(text)) => {
                let length = self.rules.unit.length(text);
                if length > max {
                    self.problem(&at, format!("must be less than {} characters", max + 1));
                } else if length < min {
                    self.problem(&at, format!("must be more than {} characters", min.saturating_sub(1)));
                }
            }
            Some(_) => self.problem(&at, "must be a string"),
        }
    }

    pub(super) fn one_of(&mut self, at: &str, object: &Object, key: &str, allowed: &[&str]) {
        if let Some(value) = object.get(key)
            && !value.as_str().is_some_and(|value| allowed.contains(&value))
        {
            self.problem(&format!("{at}/{key}"), format!("must be one of {}", allowed.join(", ")));
        }
    }

    /// A text object of 1 to `max` characters in the stored form.
    pub(super) fn text(&mut self, at: &str, value: Option<&Value>, max: usize, plain_only: bool) {
        let Some(object) = self.object(at, value) else { return };
        let kind = object.get("type").and_then(Value::as_str).unwrap_or_default();
        let allowed: &[&str] = match kind {
            "plain_text" => &["type", "text", "emoji"],
            "mrkdwn" if !plain_only => &["type", "text", "verbatim"],
            "mrkdwn" => return self.problem(&format!("{at}/type"), "must be plain_text"),
            _ => {
                return self
                    .problem(&format!("{at}/type"), "must be a valid text type: plain_text or mrkdwn");
            }
        };
        self.keys(at, object, allowed);
        self.booleans(at, object, &["emoji", "verbatim"]);
        let at = format!("{at}/text");
        let Some(text) = object.get("text").and_then(Value::as_str) else {
            return self.problem(&at, "missing required field: text");
        };
        let stored = if kind == "mrkdwn" { store_mrkdwn(text) } else { store_plain(text) };
        self.length(&at, &stored, max);
    }

    /// 1 to `max` characters, added to the message's total.
    pub(super) fn length(&mut self, at: &str, stored: &str, max: usize) {
        let length = self.rules.unit.length(stored);
        self.total += length;
        if stored.trim().is_empty() {
            self.problem(at, "must be more than 0 characters");
        } else if length > max {
            self.problem(at, format!("must be less than {} characters", max + 1));
        }
    }

    pub(super) fn list<'v>(
        &mut self,
        at: &str,
        value: Option<&'v Value>,
        min: usize,
        max: usize,
    ) -> &'v [Value] {
        let Some(items) = value.and_then(Value::as_array) else {
            self.problem(at, if value.is_some() { "must be an array" } else { "missing required field" });
            return &[];
        };
        if items.len() < min {
            self.problem(at, format!("no less than {min} items allowed"));
        } else if items.len() > max {
            self.problem(at, format!("no more than {max} items allowed"));
        }
        items
    }

    fn all_blocks(&mut self, at: &str, blocks: &Value) {
        let most = if self.surface == Surface::Message { 50 } else { 100 };
        for (index, block) in self.list(at, Some(blocks), 0, most).iter().enumerate() {
            self.block(&format!("{at}/{index}"), block);
        }
    }

    fn block(&mut self, at: &str, block: &Value) {
        let Some(block) = self.object(at, Some(block)) else { return };
        self.string(at, block, "block_id", 0, 255, false);
        if let Some(id) = block.get("block_id").and_then(Value::as_str)
            && !self.block_ids.insert(id.to_owned())
        {
            self.problem(&format!("{at}/block_id"), format!("block_id already exists: {id}"));
        }
        let kind = block.get("type").and_then(Value::as_str).unwrap_or_default();
        match kind {
            "section" => self.section(at, block),
            "header" => {
                self.keys(at, block, &["type", "block_id", "text"]);
                self.text(&format!("{at}/text"), block.get("text"), 150, true);
            }
            "divider" => self.keys(at, block, &["type", "block_id"]),
            "context" => self.context(at, block),
            "actions" => {
                self.keys(at, block, &["type", "block_id", "elements"]);
                let elements = self.list(&format!("{at}/elements"), block.get("elements"), 1, 25);
                let mut ids = BTreeSet::new();
                for (index, element) in elements.iter().enumerate() {
                    let at = format!("{at}/elements/{index}");
                    self.element(&at, element, elements::Place::Actions);
                    self.unique_action(&at, element, &mut ids);
                }
            }
            "input" => self.input(at, block),
            "rich_text" => self.rich_text(at, block),
            "image" => {
                self.keys(at, block, &["type", "block_id", "image_url", "slack_file", "alt_text", "title"]);
                self.image(at, block);
                if block.contains_key("title") {
                    self.text(&format!("{at}/title"), block.get("title"), 2_000, true);
                }
            }
            "markdown" if self.surface == Surface::Message => {
                self.keys(at, block, &["type", "block_id", "text"]);
                match block.get("text").and_then(Value::as_str) {
                    Some(text) => self.length(&format!("{at}/text"), &store_mrkdwn(text), 12_000),
                    None => self.problem(&format!("{at}/text"), "missing required field: text"),
                }
            }
            other => self.problem(&format!("{at}/type"), format!("unsupported type: {other}")),
        }
    }

    fn unique_action(&mut self, at: &str, element: &Value, ids: &mut BTreeSet<String>) {
        if let Some(id) = element.get("action_id").and_then(Value::as_str)
            && !ids.insert(id.to_owned())
        {
            self.problem(&format!("{at}/action_id"), format!("`action_id` must be unique: {id}"));
        }
    }

    fn section(&mut self, at: &str, block: &Object) {
        self.keys(at, block, &["type", "block_id", "text", "fields", "accessory", "expand"]);
        self.booleans(at, block, &["expand"]);
        if block.contains_key("text") {
            self.text(&format!("{at}/text"), block.get("text"), 3_000, false);
        } else if !block.contains_key("fields") {
            self.problem(at, "missing required field: text or fields");
        }
        if block.contains_key("fields") {
            for (index, field) in
                self.list(&format!("{at}/fields"), block.get("fields"), 1, 10).iter().enumerate()
            {
                self.text(&format!("{at}/fields/{index}"), Some(field), 2_000, false);
            }
        }
        if let Some(accessory) = block.get("accessory") {
            self.element(&format!("{at}/accessory"), accessory, elements::Place::Accessory);
        }
    }

    fn context(&mut self, at: &str, block: &Object) {
        self.keys(at, block, &["type", "block_id", "elements"]);
        for (index, element) in
            self.list(&format!("{at}/elements"), block.get("elements"), 1, 10).iter().enumerate()
        {
            let at = format!("{at}/elements/{index}");
            match element.as_object().filter(|element| element.get("type") == Some(&"image".into())) {
                Some(image) => {
                    self.keys(&at, image, &["type", "image_url", "slack_file", "alt_text"]);
                    self.image(&at, image);
                }
                // Slack documents no limit here; a section's is the nearest.
                None => self.text(&at, Some(element), 3_000, false),
            }
        }
    }

    pub(super) fn image(&mut self, at: &str, image: &Object) {
        self.string(at, image, "alt_text", 1, 2_000, true);
        self.string(at, image, "image_url", 1, 3_000, false);
        if !image.contains_key("image_url") && !image.contains_key("slack_file") {
            self.problem(at, "missing required field: image_url or slack_file");
        }
    }

    fn input(&mut self, at: &str, block: &Object) {
        self.has_input = true;
        self.keys(
            at,
            block,
            &["type", "block_id", "label", "element", "dispatch_action", "hint", "optional"],
        );
        self.booleans(at, block, &["dispatch_action", "optional"]);
        self.text(&format!("{at}/label"), block.get("label"), 2_000, true);
        if block.contains_key("hint") {
            self.text(&format!("{at}/hint"), block.get("hint"), 2_000, true);
        }
        match block.get("element") {
            Some(element) => self.element(&format!("{at}/element"), element, elements::Place::Input),
            None => self.problem(&format!("{at}/element"), "missing required field: element"),
        }
    }

    fn view(&mut self, view: &Value, home: bool) {
        let at = "/view";
        let Some(object) = self.object(at, Some(view)) else { return };
        let common = ["type", "blocks", "private_metadata", "callback_id", "external_id"];
        let modal = ["title", "close", "submit", "clear_on_close", "notify_on_close", "submit_disabled"];
        let mut allowed = common.to_vec();
        if !home {
            allowed.extend(modal);
        }
        self.keys(at, object, &allowed);
        self.one_of(at, object, "type", &["modal", "home"]);
        if !object.contains_key("type") {
            self.problem("/view/type", "missing required field: type");
        }
        self.booleans(at, object, &["clear_on_close", "notify_on_close", "submit_disabled"]);
        self.string(at, object, "private_metadata", 0, 3_000, false);
        self.string(at, object, "callback_id", 0, 255, false);
        self.string(at, object, "external_id", 0, 255, false);
        if !home {
            self.text("/view/title", object.get("title"), 24, true);
            for key in ["close", "submit"] {
                if object.contains_key(key) {
                    self.text(&format!("/view/{key}"), object.get(key), 24, true);
                }
            }
        }
        match object.get("blocks") {
            Some(blocks) => self.all_blocks("/view/blocks", blocks),
            None => self.problem("/view/blocks", "missing required field: blocks"),
        }
        if self.has_input && !home && !object.contains_key("submit") {
            self.problem("/view/submit", "must have a submit button if there are input blocks");
        }
        if view.to_string().len() > 250_000 {
            let message = "view size must be at most 250kb".into();
            self.problems.push(Problem { error: "view_too_large", pointer: at.into(), message });
        }
    }
}

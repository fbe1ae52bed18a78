//! Finding the controls of a message or view, and what people have filled in.
//!
//! Invariant: a control is found the way a person finds it, by its label; ids are a second way for
//! tests. What was filled in is kept per person under `block_id` and `action_id`, and survives an
//! edit that keeps both (as reported of real clients).

use super::text::unescape;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// An interactive element where it stands.
#[derive(Debug, Clone)]
pub(super) struct Control {
    pub(super) block_id: String,
    pub(super) element: Value,
    /// Inside an `input` block: silent unless `dispatch_action`.
    pub(super) input: bool,
    pub(super) dispatch: bool,
    /// Label of the `input` block, or of the button.
    pub(super) label: String,
    pub(super) optional: bool,
}

impl Control {
    pub(super) fn action_id(&self) -> &str {
        self.element["action_id"].as_str().unwrap_or_default()
    }

    pub(super) fn kind(&self) -> &str {
        self.element["type"].as_str().unwrap_or_default()
    }

    /// A button or overflow menu holds no state.
    pub(super) fn holds_state(&self) -> bool {
        !matches!(self.kind(), "button" | "overflow" | "image")
    }

    fn is(&self, wanted: &str) -> bool {
        let id = self.action_id();
        let in_block = wanted.strip_prefix(&self.block_id).and_then(|rest| rest.strip_prefix('/'));
        self.label == wanted || id == wanted || id.split(':').next() == Some(wanted) || in_block == Some(id)
    }
}

fn label(text: &Value) -> String {
    unescape(text["text"].as_str().unwrap_or_default())
}

/// Every control, top to bottom.
pub(super) fn all(blocks: &[Value]) -> Vec<Control> {
    let mut found = Vec::new();
    for block in blocks {
        let block_id = block["block_id"].as_str().unwrap_or_default().to_owned();
        let plain = |element: &Value| {
            let text = if element["text"].is_object() { &element["text"] } else { &element["placeholder"] };
            Control {
                block_id: block_id.clone(),
                element: element.clone(),
                input: false,
                dispatch: true,
                label: label(text),
                optional: true,
            }
        };
        match block["type"].as_str().unwrap_or_default() {
            "actions" => found.extend(block["elements"].as_array().into_iter().flatten().map(plain)),
            "section" if block["accessory"].is_object() && block["accessory"]["type"] != "image" => {
                found.push(plain(&block["accessory"]));
            }
            "input" => found.push(Control {
                input: true,
                dispatch: block["dispatch_action"] == true,
                label: label(&block["label"]),
                optional: block["optional"] == true,
                ..plain(&block["element"])
            }),
            _ => {}
        }
    }
    found
}

/// The control a person means by a label (or a test by an action id, or `block_id/action_id`): an
/// exact label first.
pub(super) fn find<'c>(controls: &'c [Control], wanted: &str) -> Option<&'c Control> {
    controls
        .iter()
        .find(|control| control.label == wanted)
        .or_else(|| controls.iter().find(|control| control.is(wanted)))
}

/// What a person does to a field.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub enum Input {
    /// Types this.
    Text {
        text: String,
    },
    /// Picks the option with this label.
    Choose {
        label: String,
    },
    /// Picks exactly these.
    ChooseAll {
        labels: Vec<String>,
    },
    Clear,
}

/// All options of an element, groups included.
pub(super) fn options(element: &Value) -> Vec<Value> {
    let own = element["options"].as_array().cloned().unwrap_or_default();
    let groups = element["option_groups"].as_array().cloned().unwrap_or_default();
    let grouped =
        groups.into_iter().flat_map(|group| group["options"].as_array().cloned().unwrap_or_default());
    own.into_iter().chain(grouped).collect()
}

/// The field of `state.values` that holds an element's value.
fn field(kind: &str) -> &'static str {
    match kind {
        "static_select" | "external_select" | "radio_buttons" => "selected_option",
        "multi_static_select" | "multi_external_select" | "checkboxes" => "selected_options",
        "users_select" => "selected_user",
        "multi_users_select" => "selected_users",
        "conversations_select" => "selected_conversation",
        "multi_conversations_select" => "selected_conversations",
        "channels_select" => "selected_channel",
        "multi_channels_select" => "selected_channels",
        "datepicker" => "selected_date",
        "timepicker" => "selected_time",
        "datetimepicker" => "selected_date_time",
        "rich_text_input" => "rich_text_value",
        _ => "value",
    }
}

fn untouched(element: &Value) -> Value {
    let kind = element["type"].as_str().unwrap_or_default();
    let field = field(kind);
    let initial = match field {
        "selected_option" => &element["initial_option"],
        "selected_options" => &element["initial_options"],
        "value" => &element["initial_value"],
        _ => &Value::Null,
    };
    let value = if field.ends_with('s') && initial.is_null() { json!([]) } else { initial.clone() };
    json!({"type": kind, field: value})
}

/// An element's value after a person's input; `Err` says what could not be done.
pub(super) fn filled(element: &Value, input: &Input) -> Result<Value, String> {
    let kind = element["type"].as_str().unwrap_or_default();
    let field = field(kind);
    let pick = |wanted: &str| {
        let all = options(element);
        let by_label = all.iter().find(|option| label(&option["text"]) == wanted);
        let found = by_label.or_else(|| all.iter().find(|option| option["value"] == wanted)).cloned();
        found.ok_or_else(|| {
            let labels: Vec<String> = all.iter().map(|option| label(&option["text"])).collect();
            format!("no option {wanted:?}, there are {labels:?}")
        })
    };
    let value = match input {
        Input::Clear => Value::Null,
        Input::Text { text }
            if field == "value" || field.starts_with("selected_") && options(element).is_empty() =>
        {
            let most = element["max_length"].as_u64().and_then(|most| usize::try_from(most).ok());
            if most.is_some_and(|most| text.chars().count() > most) {
                return Err("longer than max_length".into());
            }
            if text.is_empty() { Value::Null } else { text.clone().into() }
        }
        Input::Choose { label } if field == "selected_option" => pick(label)?,
        Input::Choose { label } if field == "selected_options" => json!([pick(label)?]),
        Input::ChooseAll { labels } if field == "selected_options" => {
            Value::Array(labels.iter().map(|label| pick(label)).collect::<Result<_, _>>()?)
        }
        _ => return Err(format!("{kind} does not take this")),
    };
    let value = if value.is_null() && field.ends_with('s') { json!([]) } else { value };
    Ok(json!({"type": kind, field: value}))
}

/// `state.values` of a message or view for one person.
pub(super) fn state_values(controls: &[Control], filled: Option<&Map<String, Value>>) -> Value {
    let mut values = Map::new();
    for control in controls.iter().filter(|control| control.holds_state()) {
        let kept = filled.and_then(|filled| filled.get(&control.block_id)?.get(control.action_id()));
        let kept = kept.filter(|kept| kept["type"] == control.element["type"]);
        let value = kept.cloned().unwrap_or_else(|| untouched(&control.element));
        let block = values.entry(control.block_id.clone()).or_insert_with(|| json!({}));
        block[control.action_id()] = value;
    }
    Value::Object(values)
}

/// Whether a value of `state.values` says nothing.
pub(super) fn is_empty(value: &Value) -> bool {
    let kind = value["type"].as_str().unwrap_or_default();
    match &value[field(kind)] {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::String(text) => text.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn select() -> Value {
        json!({"type": "static_select", "action_id": "pick", "options": [
            {"text": {"type": "plain_text", "text": "R&amp;D"}, "value": "1"},
            {"text": {"type": "plain_text", "text": "Ops"}, "value": "2"}]})
    }

    #[test]
    fn a_control_is_found_by_what_a_person_reads() {
        let blocks = [json!({"type": "actions", "block_id": "b", "elements": [
            {"type": "button", "action_id": "x:0", "text": {"type": "plain_text", "text": "R&amp;D"}},
            {"type": "button", "action_id": "x:1", "text": {"type": "plain_text", "text": "x"}}]})];
        let controls = all(&blocks);
        assert_eq!(find(&controls, "R&D").unwrap().action_id(), "x:0");
        assert_eq!(find(&controls, "x").unwrap().action_id(), "x:1");
        assert_eq!(find(&controls, "x:0").unwrap().action_id(), "x:0");
        assert!(find(&controls, "Approve").is_none());
    }

    #[test]
    fn options_are_picked_by_label_and_kept_under_the_same_ids_only() {
        let value = filled(&select(), &Input::Choose { label: "R&D".into() }).unwrap();
        assert_eq!(value["selected_option"]["value"], "1");
        assert!(filled(&select(), &Input::Choose { label: "Nope".into() }).unwrap_err().contains("Ops"));
        let block = |id: &str| {
            [json!({"type": "input", "block_id": id, "label": {"text": "L"}, "element": select()})]
        };
        let kept = json!({"one": {"pick": value}});
        let values = state_values(&all(&block("one")), kept.as_object());
        assert_eq!(values["one"]["pick"]["selected_option"]["value"], "1");
        let values = state_values(&all(&block("two")), kept.as_object());
        assert!(is_empty(&values["two"]["pick"]), "{values}");
    }
}

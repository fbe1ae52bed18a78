//! What a message, a form or a set of commands may look like.

use super::*;
use rstest::rstest;
use serde_json::{Value, json};

fn message(body: &Value) -> Vec<String> {
    let mut problems = Problems::default();
    let mut form = Form { value: body, path: String::new(), problems: &mut problems };
    form.text("content", 0, 2000, false);
    embeds(body, "", &mut problems);
    rows(body, "", false, &mut problems);
    problems.0.into_iter().map(|(path, code, _)| format!("{path} {code}")).collect()
}

#[expect(clippy::needless_pass_by_value, reason = "it reads better where it is called")]
fn buttons(list: Value) -> Value {
    json!({"components": [{"type": 1, "components": list}]})
}

fn button(label: &str, id: &str) -> Value {
    json!({"type": 2, "style": 1, "label": label, "custom_id": id})
}

fn options(count: usize) -> Vec<Value> {
    (0..count).map(|n| json!({"label": format!("{n}"), "value": format!("{n}")})).collect()
}

#[rstest]
#[case::too_long(json!({"content": "x".repeat(2001)}), "content BASE_TYPE_MAX_LENGTH")]
#[case::astral(json!({"content": "\u{1f600}".repeat(1001)}), "content BASE_TYPE_MAX_LENGTH")]
#[case::title(json!({"embeds": [{"title": "x".repeat(257)}]}), "embeds.0.title BASE_TYPE_MAX_LENGTH")]
#[case::blank_value(json!({"embeds": [{"fields": [{"name": "a", "value": " "}]}]}), "embeds.0.fields.0.value BASE_TYPE_REQUIRED")]
#[case::fields(json!({"embeds": [{"fields": vec![json!({"name": "a", "value": "b"}); 26]}]}), "embeds.0.fields BASE_TYPE_MAX_LENGTH")]
#[case::sum(json!({"embeds": [{"description": "x".repeat(4000)}, {"description": "x".repeat(2001)}]}), "embeds.1 MAX_EMBED_SIZE_EXCEEDED")]
#[case::empty_embed(json!({"embeds": [{}]}), "embeds.0.description BASE_TYPE_REQUIRED")]
#[case::timestamp(json!({"embeds": [{"title": "a", "timestamp": "noon"}]}), "embeds.0.timestamp DATE_TIME_TYPE_PARSE")]
#[case::rows(json!({"components": (0..6).map(|n| json!({"type": 1, "components": [button("a", &n.to_string())]})).collect::<Vec<_>>()}), "components BASE_TYPE_MAX_LENGTH")]
#[case::six_buttons(buttons((0..6).map(|n| button("a", &n.to_string())).collect()), "components.0.components BASE_TYPE_BAD_LENGTH")]
#[case::mixed(buttons(json!([button("a", "a"), {"type": 3, "custom_id": "b", "options": options(1)}])), "components.0.components COMPONENT_LAYOUT_WIDTH_EXCEEDED")]
#[case::twins(buttons(json!([button("a", "a"), {"type": 2, "style": 1, "label": "b", "custom_id": "a", "disabled": true}])), "components.0.components.1.custom_id COMPONENT_CUSTOM_ID_DUPLICATED")]
#[case::no_label(buttons(json!([button("\u{200b} ", "a")])), "components.0.components.0.label BUTTON_COMPONENT_LABEL_OR_EMOJI_REQUIRED")]
#[case::long_label(buttons(json!([button(&"x".repeat(81), "a")])), "components.0.components.0.label BASE_TYPE_MAX_LENGTH")]
#[case::empty_emoji(buttons(json!([{"type": 2, "style": 1, "label": "a", "custom_id": "a", "emoji": {}}])), "components.0.components.0.emoji.name BUTTON_COMPONENT_INVALID_EMOJI")]
#[case::long_id(buttons(json!([button("a", &"x".repeat(101))])), "components.0.components.0.custom_id BASE_TYPE_BAD_LENGTH")]
#[case::javascript(buttons(json!([{"type": 2, "style": 5, "label": "a", "url": "javascript:alert(1)"}])), "components.0.components.0.url URL_TYPE_INVALID_SCHEME")]
#[case::link_with_id(buttons(json!([{"type": 2, "style": 5, "label": "a", "url": "https://a.example", "custom_id": "a"}])), "components.0.components.0.custom_id BUTTON_COMPONENT_CUSTOM_ID_URL_MUTUALLY_EXCLUSIVE")]
#[case::no_options(buttons(json!([{"type": 3, "custom_id": "a", "options": []}])), "components.0.components.0.options BASE_TYPE_BAD_LENGTH")]
#[case::many_options(buttons(json!([{"type": 3, "custom_id": "a", "options": options(26)}])), "components.0.components.0.options BASE_TYPE_BAD_LENGTH")]
#[case::more_than_there_are(buttons(json!([{"type": 3, "custom_id": "a", "max_values": 5, "options": options(3)}])), "components.0.components.0.max_values SELECT_COMPONENT_MORE_VALUES_THAN_OPTIONS")]
#[case::equal_values(buttons(json!([{"type": 3, "custom_id": "a", "options": [{"label": "a", "value": "1"}, {"label": "b", "value": "1"}]}])), "components.0.components.0.options.1.value SELECT_COMPONENT_OPTION_VALUE_DUPLICATED")]
#[case::placeholder(buttons(json!([{"type": 3, "custom_id": "a", "placeholder": "x".repeat(151), "options": options(1)}])), "components.0.components.0.placeholder BASE_TYPE_MAX_LENGTH")]
#[case::unknown(json!({"components": [{"type": 18}]}), "components.0.type UNION_TYPE_CHOICES")]
fn what_is_wrong_is_named_by_its_path(#[case] body: Value, #[case] expected: &str) {
    assert_eq!(message(&body), [expected]);
}

#[test]
fn what_just_fits_passes() {
    assert!(message(&json!({"content": "x".repeat(2000), "novelty": 1})).is_empty());
    assert!(message(&json!({"content": format!("  {}  ", "\u{1f600}".repeat(1000))})).is_empty());
    let select =
        json!({"type": 3, "custom_id": "a", "min_values": 0, "max_values": 25, "options": options(25)});
    assert!(message(&buttons(json!([select]))).is_empty());
    assert!(
        message(&buttons(
            json!([{"type": 2, "style": 1, "custom_id": "a", "emoji": {"name": "x"}, "label": null}])
        ))
        .is_empty()
    );
}

#[test]
fn forms_have_rules_of_their_own() {
    let problems = |data: Value| {
        let mut problems = Problems::default();
        modal(&data, "data", &mut problems);
        problems.0.into_iter().map(|(path, code, _)| format!("{path} {code}")).collect::<Vec<_>>()
    };
    let form = |parts: Value| json!({"custom_id": "c", "title": "t", "components": parts});
    let input = |more: Value| {
        let mut input = json!({"type": 4, "custom_id": "r", "style": 1});
        for (key, value) in more.as_object().unwrap() {
            input[key] = value.clone();
        }
        json!([{"type": 18, "label": "L", "component": input}])
    };
    assert!(problems(form(input(json!({})))).is_empty());
    let title = json!({"custom_id": "c", "title": "x".repeat(46), "components": input(json!({}))});
    assert_eq!(problems(title), ["data.title BASE_TYPE_BAD_LENGTH"]);
    let under = |path: &str| format!("data.components.0.component.{path}");
    assert_eq!(
        problems(form(input(json!({"value": "x".repeat(4001)})))),
        [under("value BASE_TYPE_MAX_LENGTH")]
    );
    assert_eq!(
        problems(form(input(json!({"placeholder": "x".repeat(101)})))),
        [under("placeholder BASE_TYPE_MAX_LENGTH")]
    );
    assert_eq!(
        problems(form(input(json!({"min_length": 5, "max_length": 4})))),
        [under("min_length TEXT_INPUT_MIN_ABOVE_MAX")]
    );
    assert_eq!(
        problems(form(input(json!({"disabled": true})))),
        [under("disabled COMPONENT_DISABLED_IN_MODAL")]
    );
    assert_eq!(problems(form(input(json!({"label": ""})))), [under("label BASE_TYPE_BAD_LENGTH")]);
    let label = json!([{"type": 18, "label": "x".repeat(46), "component": {"type": 4, "custom_id": "r", "style": 1}}]);
    assert_eq!(problems(form(label)), ["data.components.0.label BASE_TYPE_BAD_LENGTH"]);
    let six: Vec<Value> = (0..6).map(|n| json!({"type": 18, "label": "L", "component": {"type": 4, "custom_id": format!("{n}"), "style": 1}})).collect();
    assert_eq!(problems(form(json!(six))), ["data.components BASE_TYPE_BAD_LENGTH"]);
    assert_eq!(
        problems(form(buttons(json!([button("a", "a")]))["components"].clone())),
        ["data.components.0.components.0.type UNION_TYPE_CHOICES"]
    );
    let radio = |count: usize| json!([{"type": 18, "label": "L", "component": {"type": 21, "custom_id": "r", "options": options(count)}}]);
    assert!(problems(form(radio(2))).is_empty());
    assert_eq!(problems(form(radio(1))), [under("options BASE_TYPE_BAD_LENGTH")]);
}

#[test]
fn commands_are_lower_case_and_named_once() {
    let problems = |body: Value| {
        let mut problems = Problems::default();
        commands(&body, &mut problems);
        problems.0.into_iter().map(|(path, code, _)| format!("{path} {code}")).collect::<Vec<_>>()
    };
    let one = |name: &str| json!({"name": name, "description": "d", "type": 1});
    assert!(problems(json!([one("countersign")])).is_empty());
    assert_eq!(problems(json!([one("Countersign")])), ["0.name APPLICATION_COMMAND_INVALID_NAME"]);
    assert_eq!(problems(json!([one("a"), one("a")])), ["1 APPLICATION_COMMANDS_DUPLICATE_NAME"]);
}

#[test]
fn the_stored_form_has_numbers_and_known_fields_only() {
    let body = buttons(
        json!([button("a", "a"), {"type": 2, "style": 1, "label": "b", "custom_id": "b", "id": 2, "novelty": 1, "emoji": null}]),
    );
    let stored = normal_components(body["components"].as_array().unwrap());
    assert_eq!(stored[0]["id"], 1);
    assert_eq!(stored[0]["components"][0]["id"], 3);
    assert_eq!(
        stored[0]["components"][1],
        json!({"type": 2, "id": 2, "style": 1, "label": "b", "custom_id": "b"})
    );
    let embeds = normal_embeds(&[json!({"title": " a ", "timestamp": "2026-08-12T09:41:06Z", "novelty": 1})]);
    assert_eq!(embeds[0], json!({"title": "a", "timestamp": "2026-08-12T09:41:06+00:00", "type": "rich"}));
}

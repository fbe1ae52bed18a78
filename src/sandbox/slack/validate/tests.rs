//! What the validator takes and refuses: one thing wrong at a time, and limits to the character.

use super::*;
use rstest::rstest;
use serde_json::json;

fn plain(text: &str) -> Value {
    json!({"type": "plain_text", "text": text})
}

fn option(text: &str, value: &str) -> Value {
    json!({"text": plain(text), "value": value})
}

fn actions(elements: &Value) -> Value {
    json!([{"type": "actions", "elements": elements}])
}

fn input(element: &Value) -> Value {
    json!([{"type": "input", "label": plain("Which?"), "element": element}])
}

fn button(id: &str, text: &str) -> Value {
    json!({"type": "button", "action_id": id, "text": plain(text), "value": "k"})
}

fn pointers(blocks_: &Value, surface: Surface) -> Vec<String> {
    blocks(blocks_, surface, Rules::default()).into_iter().map(|problem| problem.pointer).collect()
}

#[test]
fn a_full_card_passes() {
    let card = json!([
        {"type": "header", "block_id": "a:0", "text": {"type": "plain_text", "text": "Approval needed", "emoji": false}},
        {"type": "section", "block_id": "a:1", "text": plain("Tool: pager"), "fields": [{"type": "mrkdwn", "text": "*x*", "verbatim": true}]},
        {"type": "rich_text", "block_id": "a:2", "elements": [{"type": "rich_text_preformatted", "elements": [{"type": "text", "text": "Approve?"}]}]},
        {"type": "context", "elements": [{"type": "mrkdwn", "text": "opened <!date^1^{date}|x>"}]},
        {"type": "divider"},
        {"type": "actions", "block_id": "a:3", "elements": [button("yes", "Approve"), button("no", "Deny")]},
        {"type": "input", "label": plain("Reason"), "element": {"type": "plain_text_input", "multiline": true, "max_length": 3000}}
    ]);
    assert_eq!(blocks(&card, Surface::Message, Rules::default()), []);
}

#[rstest]
#[case::empty_actions(actions(&json!([])), "/blocks/0/elements")]
#[case::same_action_id(actions(&json!([button("a", "x"), button("a", "y")])), "/blocks/0/elements/1/action_id")]
#[case::same_block_id(json!([{"type": "divider", "block_id": ""}, {"type": "divider", "block_id": ""}]), "/blocks/1/block_id")]
#[case::multi_select_in_actions(actions(&json!([{"type": "multi_static_select", "options": [option("a", "1")]}])), "/blocks/0/elements/0/type")]
#[case::typed_input_in_actions(actions(&json!([{"type": "plain_text_input"}])), "/blocks/0/elements/0/type")]
#[case::button_in_input(input(&button("a", "x")), "/blocks/0/element/type")]
#[case::file_input_in_message(input(&json!({"type": "file_input"})), "/blocks/0/element/type")]
#[case::unknown_key(actions(&json!([{"type": "button", "text": plain("x"), "disabled": true}])), "/blocks/0/elements/0/disabled")]
#[case::emoji_on_mrkdwn(json!([{"type": "section", "text": {"type": "mrkdwn", "text": "x", "emoji": true}}]), "/blocks/0/text/emoji")]
#[case::url_on_option(input(&json!({"type": "static_select", "options": [{"text": plain("a"), "value": "1", "url": ""}]})), "/blocks/0/element/options/0/url")]
#[case::mrkdwn_option(input(&json!({"type": "static_select", "options": [{"text": {"type": "mrkdwn", "text": "a"}, "value": "1"}]})), "/blocks/0/element/options/0/text/type")]
#[case::same_value(input(&json!({"type": "radio_buttons", "options": [option("a", "1"), option("b", "1")]})), "/blocks/0/element/options/1/value")]
#[case::newline(input(&json!({"type": "radio_buttons", "options": [option("a\nb", "1")]})), "/blocks/0/element/options/0/text/text")]
#[case::initial_outside(input(&json!({"type": "radio_buttons", "options": [option("a", "1")], "initial_option": option("b", "2")})), "/blocks/0/element/initial_option")]
#[case::eleven_radios(input(&json!({"type": "radio_buttons", "options": (0..11).map(|n| option("a", &n.to_string())).collect::<Vec<_>>()})), "/blocks/0/element/options")]
#[case::no_options(input(&json!({"type": "static_select", "options": []})), "/blocks/0/element/options")]
#[case::empty_section(json!([{"type": "section", "text": plain("")}]), "/blocks/0/text/text")]
#[case::section_of_nothing(json!([{"type": "section"}]), "/blocks/0")]
#[case::mrkdwn_header(json!([{"type": "header", "text": {"type": "mrkdwn", "text": "x"}}]), "/blocks/0/text/type")]
#[case::unknown_block(json!([{"type": "card"}]), "/blocks/0/type")]
#[case::empty_rich_text(json!([{"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": [{"type": "text", "text": ""}]}]}]), "/blocks/0/elements/0/elements/0/text")]
#[case::style(actions(&json!([{"type": "button", "text": plain("x"), "style": "default"}])), "/blocks/0/elements/0/style")]
fn refused(#[case] given: Value, #[case] pointer: &str) {
    assert_eq!(pointers(&given, Surface::Message), [pointer]);
}

#[rstest]
#[case::section(3_000, |text: String| json!([{"type": "section", "text": plain(&text)}]))]
#[case::header(150, |text: String| json!([{"type": "header", "text": plain(&text)}]))]
#[case::field(2_000, |text: String| json!([{"type": "section", "fields": [plain(&text)]}]))]
#[case::button(75, |text: String| actions(&json!([button("a", &text)])))]
#[case::value(2_000, |text: String| actions(&json!([{"type": "button", "text": plain("x"), "value": text}])))]
#[case::action_id(255, |text: String| actions(&json!([button(&text, "x")])))]
#[case::option(75, |text: String| input(&json!({"type": "static_select", "options": [option(&text, "1")]})))]
#[case::option_value(150, |text: String| input(&json!({"type": "static_select", "options": [option("a", &text)]})))]
#[case::placeholder(150, |text: String| input(&json!({"type": "plain_text_input", "placeholder": plain(&text)})))]
#[case::confirm(300, |text: String| actions(&json!([{"type": "button", "text": plain("x"), "confirm":
    {"title": plain("t"), "text": plain(&text), "confirm": plain("y"), "deny": plain("n")}}])))]
fn a_limit_holds_to_the_character(#[case] most: usize, #[case] make: fn(String) -> Value) {
    assert_eq!(pointers(&make("x".repeat(most)), Surface::Message), Vec::<String>::new());
    let problems = blocks(&make("x".repeat(most + 1)), Surface::Message, Rules::default());
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert_eq!(problems[0].message, format!("must be less than {} characters", most + 1));
}

#[test]
fn lengths_are_those_of_the_stored_text() {
    let typed = format!("{}{}", "x".repeat(2_970), "&".repeat(20));
    let problems =
        blocks(&json!([{"type": "section", "text": plain(&typed)}]), Surface::Message, Rules::default());
    assert_eq!(problems[0].line(), "must be less than 3001 characters [json-pointer:/blocks/0/text/text]");
    let wide = "é".repeat(1_600);
    let count = |unit| {
        let rules = Rules { unit, refuse_doubtful_options: true };
        blocks(&json!([{"type": "section", "text": plain(&wide)}]), Surface::Message, rules).len()
    };
    assert_eq!((count(Unit::Bytes), count(Unit::Utf16), count(Unit::CodePoints)), (1, 0, 0));
}

#[test]
fn all_text_together_has_a_limit() {
    let part = |n| json!({"type": "section", "text": plain(&"x".repeat(n))});
    let mut many: Vec<Value> = (0..4).map(|_| part(3_000)).collect();
    many.push(part(1_000));
    assert_eq!(blocks(&json!(many), Surface::Message, Rules::default()), []);
    many.push(part(1));
    assert_eq!(blocks(&json!(many), Surface::Message, Rules::default())[0].error, "msg_blocks_too_long");
    let fifty_one: Vec<Value> = (0..51).map(|_| json!({"type": "divider"})).collect();
    assert_eq!(pointers(&json!(fifty_one), Surface::Message), ["/blocks"]);
}

#[test]
fn doubtful_options_pass_when_the_switch_says_so() {
    let rules = Rules { refuse_doubtful_options: false, ..Rules::default() };
    let given = input(
        &json!({"type": "radio_buttons", "options": [option("a", "1"), option("b\nc", "1")], "initial_option": option("z", "9")}),
    );
    assert_eq!(blocks(&given, Surface::Message, rules), []);
}

#[test]
fn views_have_rules_of_their_own() {
    let field = json!({"type": "input", "label": plain("Why?"), "element": {"type": "plain_text_input"}});
    let good = json!({"type": "modal", "title": plain("Deny"), "submit": plain("Send"), "close": plain("Cancel"), "blocks": [field]});
    assert_eq!(view(&good, Rules::default()), []);
    let at = |given: &Value| view(given, Rules::default()).into_iter().map(|p| p.pointer).collect::<Vec<_>>();
    assert_eq!(at(&json!({"type": "modal", "title": plain("Deny"), "blocks": [field]})), ["/view/submit"]);
    let long = plain(&"x".repeat(25));
    assert_eq!(at(&json!({"type": "modal", "title": long, "blocks": []})), ["/view/title/text"]);
    assert_eq!(at(&json!({"type": "home", "title": plain("x"), "blocks": []})), ["/view/title"]);
    assert_eq!(
        at(&json!({"type": "modal", "title": plain("x"), "blocks": [], "nonsense": 1})),
        ["/view/nonsense"]
    );
    let big =
        json!({"type": "modal", "title": plain("x"), "private_metadata": "p".repeat(3_001), "blocks": []});
    assert_eq!(at(&big), ["/view/private_metadata"]);
}

#[test]
fn a_message_needs_text_or_blocks() {
    assert_eq!(message(&json!({"text": " "}), Rules::default())[0].error, "no_text");
    assert_eq!(message(&json!({"text": "hi"}), Rules::default()), []);
    assert_eq!(update(&json!({"text": "x".repeat(4_000)}), Rules::default()), []);
    assert_eq!(update(&json!({"text": "é".repeat(2_001)}), Rules::default())[0].error, "msg_too_long");
}

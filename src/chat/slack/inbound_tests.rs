use super::*;
use crate::domain::ids::Platform;
use proptest::prelude::*;
use rstest::rstest;
use secrecy::ExposeSecret;

fn form(payload: &Value) -> Vec<u8> {
    url::form_urlencoded::Serializer::new(String::new())
        .append_pair("payload", &payload.to_string())
        .finish()
        .into_bytes()
}

fn payload() -> Value {
    json!({"type":"block_actions","api_app_id":"A0CS","team":{"id":"T0ACME","domain":"acme"},"enterprise":null,
        "is_enterprise_install":false,"user":{"id":"U0DANA","username":"dana","name":"dana","team_id":"T0ACME"},
        "trigger_id":"1.2.ab","response_url":"https://hooks.slack.com/actions/T0ACME/1/x",
        "container":{"type":"message","message_ts":"1796000001.000200","channel_id":"C0OPS","is_ephemeral":false,
            "thread_ts":"1796000000.000100"},
        "channel":{"id":"C0OPS","name":"ops"},
        "message":{"ts":"1796000001.000200","user":"U0BOT","bot_id":"B0BOT","app_id":"A0CS","text":"…","blocks":[]},
        "state":{"values":{}},
        "actions":[{"type":"button","action_id":"cs.approve","block_id":"cs:c:3:1","value":"k_7Q2","action_ts":"1796000009.500000"}]})
}

fn presses_of(payload: &Value) -> Vec<Pressed> {
    match parse_interactivity(&form(payload)).what {
        Inbound::Pressed(presses) => presses,
        other => panic!("{other:?}"),
    }
}

fn press_of(payload: &Value) -> Pressed {
    presses_of(payload).remove(0)
}

#[test]
fn a_press_is_read() {
    let read = parse_interactivity(&form(&payload()));
    assert_eq!(read.app_id.as_deref(), Some("A0CS"));
    let press = press_of(&payload());
    assert_eq!(press.platform, Platform::Slack);
    assert_eq!(press.token, "k_7Q2");
    assert_eq!(press.by, PressedBy { user: "U0DANA".into(), home_team: Some("T0ACME".into()) });
    assert_eq!(
        (press.team.as_deref(), press.enterprise.as_deref(), press.org_install),
        (Some("T0ACME"), None, false)
    );
    assert_eq!(press.channel.as_deref(), Some("C0OPS"));
    assert_eq!(press.message.as_deref(), Some("1796000001.000200"));
    assert_eq!(press.thread.as_deref(), Some("1796000000.000100"));
    assert!(press.own_message);
    assert_eq!(press.reply.unwrap().expose_secret(), "https://hooks.slack.com/actions/T0ACME/1/x");
}

#[test]
fn slack_case_51_org_wide_installs_have_no_team() {
    let mut grid = payload();
    grid["team"] = Value::Null;
    grid["enterprise"] = json!({"id": "E0ACME", "name": "Acme"});
    grid["is_enterprise_install"] = json!(true);
    grid["user"]["team_id"] = json!("T0OTHER");
    let press = press_of(&grid);
    assert_eq!((press.team, press.enterprise.as_deref(), press.org_install), (None, Some("E0ACME"), true));
    assert_eq!(press.by.home_team.as_deref(), Some("T0OTHER"));
}

#[test]
fn slack_case_54_names_are_not_read() {
    let mut renamed = payload();
    renamed["user"]["username"] = json!("kim");
    renamed["user"]["name"] = Value::Null;
    renamed["actions"][0]["text"] = json!({"type": "plain_text", "text": "Deny"});
    let (a, b) = (press_of(&payload()), press_of(&renamed));
    assert_eq!((a.by, a.dedupe_key, a.token), (b.by, b.dedupe_key, b.token));
}

#[test]
fn slack_case_50_a_press_without_a_user_is_a_press_by_nobody() {
    for user in [Value::Null, json!({}), json!({"id": null}), json!(7)] {
        let mut nobody = payload();
        nobody["user"] = user;
        assert_eq!(press_of(&nobody).by.user, "");
    }
}

#[test]
fn slack_case_5_the_key_is_the_press_not_the_delivery() {
    let key = |change: &dyn Fn(&mut Value)| {
        let mut changed = payload();
        change(&mut changed);
        press_of(&changed).dedupe_key
    };
    let same = key(&|_| ());
    // A redelivery may differ in what is not the press.
    assert_eq!(key(&|p| p["response_url"] = json!("https://hooks.slack.com/other")), same);
    assert_eq!(key(&|p| p["message"]["text"] = json!("edited")), same);
    assert_eq!(key(&|p| p["trigger_id"] = json!("9.9.zz")), same);
    for (name, other) in [
        ("user", key(&|p| p["user"]["id"] = json!("U0KIM"))),
        ("team", key(&|p| p["team"]["id"] = json!("T0TWO"))),
        ("message", key(&|p| p["message"]["ts"] = json!("1796000001.000201"))),
        ("channel", key(&|p| p["channel"]["id"] = json!("C0TWO"))),
        ("action", key(&|p| p["actions"][0]["action_id"] = json!("cs.deny"))),
        ("time", key(&|p| p["actions"][0]["action_ts"] = json!("1796000009.500001"))),
    ] {
        assert_ne!(other, same, "{name}");
    }
    // Without its own time, a second press has a new trigger.
    let untimed = |trigger: &str| {
        key(&|p| {
            p["actions"][0]["action_ts"] = Value::Null;
            p["trigger_id"] = json!(trigger);
        })
    };
    assert_ne!(untimed("1"), untimed("2"));
    assert_eq!(untimed("1"), untimed("1"));
}

#[test]
fn every_entry_of_actions_is_read_and_only_buttons_with_a_token_count() {
    let mut many = payload();
    many["actions"] = json!([
        {"type":"static_select","action_id":"cs.choice","selected_option":null,"action_ts":"1.1"},
        {"type":"button","action_id":"cs.approve","value":"k_1","action_ts":"1.1"},
        {"type":"button","action_id":"open","url":"https://app.example","action_ts":"1.1"},
        {"type":"radio_buttons","action_id":"x","value":"k_3"},
        7, null,
        {"type":"button","action_id":"cs.deny","value":"k_2","action_ts":"1.1"},
    ]);
    let tokens: Vec<String> = presses_of(&many).into_iter().map(|press| press.token).collect();
    assert_eq!(tokens, ["k_1", "k_2"]);
    many["actions"] = json!([{"type":"static_select","selected_option":null}]);
    assert!(matches!(parse_interactivity(&form(&many)).what, Inbound::Ignored));
    many["actions"] = Value::Null;
    assert!(matches!(parse_interactivity(&form(&many)).what, Inbound::Ignored));
}

#[rstest]
#[case::ephemeral(json!({"message": null, "channel": null, "container": {"type":"message","message_ts":"1.2","channel_id":"C1","is_ephemeral":true}}), Some("C1"), Some("1.2"))]
#[case::view(json!({"message": null, "channel": null, "container": {"type":"view","view_id":"V1"}, "view": {"id":"V1"}}), None, None)]
#[case::bare(json!({"message": null, "channel": null, "container": null}), None, None)]
fn presses_outside_a_message_have_no_message(
    #[case] change: Value,
    #[case] channel: Option<&str>,
    #[case] message: Option<&str>,
) {
    let mut changed = payload();
    for (key, value) in change.as_object().unwrap() {
        changed[key] = value.clone();
    }
    let press = press_of(&changed);
    assert_eq!((press.channel.as_deref(), press.message.as_deref()), (channel, message));
    assert!(!press.own_message);
}

#[test]
fn slack_case_59_the_app_is_given_and_a_foreign_message_is_not_ours() {
    let mut foreign = payload();
    foreign["message"]["app_id"] = json!("A0OTHER");
    assert!(!press_of(&foreign).own_message);
    foreign["api_app_id"] = json!("A0OTHER");
    assert_eq!(parse_interactivity(&form(&foreign)).app_id.as_deref(), Some("A0OTHER"));
    foreign["api_app_id"] = Value::Null;
    foreign["message"]["app_id"] = Value::Null;
    assert!(!press_of(&foreign).own_message);
}

#[test]
fn a_token_that_cannot_be_ours_is_empty() {
    for value in ["a\0b", "two words", "é", &"k".repeat(256)] {
        let mut odd = payload();
        odd["actions"][0]["value"] = json!(value);
        assert_eq!(press_of(&odd).token, "", "{value:?}");
    }
}

fn submission() -> Value {
    json!({"type": "view_submission", "api_app_id": "A0CS", "team": {"id": "T0ACME"}, "enterprise": null,
        "user": {"id": "U0DANA", "team_id": "T0ACME"}, "trigger_id": "1.3.cd", "response_urls": [],
        "view": {"id": "V01", "hash": "17960.bb", "callback_id": "cs.deny_reason", "private_metadata": "o_7Q2",
            "state": {"values": {"cs:1:3:in:1": {"cs.text": {"type": "plain_text_input", "value": "  ship <b>it</b>\n"}}}},
            "blocks": []}})
}

fn form_of(value: &Value) -> Option<Box<Submitted>> {
    match parse_interactivity(&form(value)).what {
        Inbound::Submitted(submitted) => Some(submitted),
        Inbound::Ignored => None,
        other => panic!("{other:?}"),
    }
}

/// Slack case 47: a form is known by its token, what was typed stays as it is, and its trigger tells one
/// submission from the next.
#[test]
fn slack_case_47_a_submitted_form() {
    let first = form_of(&submission()).unwrap();
    assert_eq!((first.pressed.token.as_str(), first.field.as_str()), ("o_7Q2", "cs:1:3:in:1"));
    assert_eq!(first.pressed.reason.as_deref(), Some("  ship <b>it</b>\n"));
    assert!(!first.is_blank());
    assert_eq!((first.pressed.by.user.as_str(), first.pressed.channel.as_deref()), ("U0DANA", None));
    let key = |change: fn(&mut Value)| {
        let mut other = submission();
        change(&mut other);
        form_of(&other).unwrap().pressed.dedupe_key
    };
    assert_eq!(key(|_| {}), first.pressed.dedupe_key);
    assert_ne!(key(|form| form["trigger_id"] = json!("1.4.ef")), first.pressed.dedupe_key);
    assert_eq!(key(|form| form["view"]["hash"] = json!("1.cc")), first.pressed.dedupe_key, "not the hash");
    assert_ne!(key(|form| form["trigger_id"] = Value::Null), first.pressed.dedupe_key);
}

#[rstest]
#[case(Value::Null)]
#[case(json!(""))]
#[case(json!(" \n\t\u{200b}\u{2800}"))]
#[case(json!(7))]
fn nothing_typed_is_blank(#[case] value: Value) {
    let mut form = submission();
    form["view"]["state"]["values"]["cs:1:3:in:1"]["cs.text"]["value"] = value;
    assert!(form_of(&form).unwrap().is_blank());
}

#[test]
fn a_form_without_token_or_field_is_acknowledged_and_nothing_else() {
    for (at, value) in
        [("private_metadata", json!("")), ("state", json!({"values": {}})), ("state", Value::Null)]
    {
        let mut form = submission();
        form["view"][at] = value;
        assert!(form_of(&form).is_none(), "{at}");
    }
    let mut nul = submission();
    nul["view"]["state"]["values"]["cs:1:3:in:1"]["cs.text"]["value"] = json!("a\0b");
    assert_eq!(
        form_of(&nul).unwrap().pressed.reason.as_deref(),
        Some("a\u{fffd}b"),
        "a database takes no NUL"
    );
}

/// What may be opened in answer: anew by the trigger of a press on a message, in the place of the view by
/// its hash for a press in one.
#[test]
fn a_press_says_how_something_can_be_opened() {
    let press = press_of(&payload());
    assert!(matches!(press.way_in, Some(WayIn::Trigger(_))), "{press:?}");
    assert!(!format!("{press:?}").contains("1.2.ab"), "a trigger is a secret");
    let mut in_view = payload();
    for key in ["channel", "message", "response_url"] {
        in_view[key] = Value::Null;
    }
    in_view["container"] = json!({"type": "view", "view_id": "V01"});
    in_view["view"] = json!({"id": "V01", "hash": "17960.bb"});
    match press_of(&in_view).way_in {
        Some(WayIn::Instead { view, hash }) => {
            assert_eq!((view.as_str(), hash.as_deref()), ("V01", Some("17960.bb")));
        }
        other => panic!("{other:?}"),
    }
}

#[rstest]
#[case::not_json(b"payload=%7Bnope".to_vec())]
#[case::no_object(b"payload=%5B1%5D".to_vec())]
#[case::no_field(b"other=1".to_vec())]
#[case::twice([form(&payload()), b"&".to_vec(), form(&payload())].concat())]
#[case::bare_json(payload().to_string().into_bytes())]
#[case::empty(vec![])]
#[case::bytes(vec![0xff, 0x00, b'=', 0xfe])]
fn slack_case_6_unreadable_bodies_are_said_so(#[case] body: Vec<u8>) {
    assert!(matches!(parse_interactivity(&body).what, Inbound::Unreadable(_)));
}

#[test]
fn slack_case_6_unknown_types_and_certificate_checks() {
    let kind = |value: Value| parse_interactivity(&form(&value)).what;
    assert!(
        matches!(kind(json!({"type":"message_action"})), Inbound::UnknownType(kind) if kind == "message_action")
    );
    assert!(matches!(kind(json!({})), Inbound::UnknownType(kind) if kind.is_empty()));
    assert!(matches!(kind(json!({"type":"view_closed","view":{"id":"V1"}})), Inbound::Ignored));
    assert!(is_ssl_check(b"ssl_check=1&token=x"));
    assert!(!is_ssl_check(b"ssl_check=0") && !is_ssl_check(b""));
    assert!(!is_ssl_check(&[form(&payload()), b"&ssl_check=1".to_vec()].concat()));
}

/// Any JSON at all in any place.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            proptest::collection::hash_map("(id|ts|type|value|team_id|app_id)", inner, 0..3)
                .prop_map(Value::from_iter),
        ]
    })
}

proptest! {
    #[test]
    fn bytes_never_panic(body in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse_interactivity(&body);
        let _ = is_ssl_check(&body);
    }

    #[test]
    fn odd_shapes_never_lose_a_press(
        key in "(team|enterprise|user|channel|message|container|state|view|trigger_id|response_url|is_enterprise_install)",
        value in any_json(),
    ) {
        let mut odd = payload();
        odd[key] = value;
        prop_assert_eq!(press_of(&odd).token, "k_7Q2");
    }
}

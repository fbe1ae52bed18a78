//! Everything Discord may send, and what nobody should.

use super::*;
use proptest::prelude::*;
use secrecy::ExposeSecret;
use serde_json::json;

const NOW: Millis = Millis(1_786_527_720_000);

fn button() -> Value {
    json!({
        "id": "1537033403105280000", "application_id": "1404800000000000001", "type": 3, "version": 1,
        "token": "aW50ZXJhY3Rpb24tdG9rZW4", "guild_id": "1404800000000000010", "channel_id": "1404800000000000020",
        "channel": {"id": "1404800000000000020", "type": 0, "name": "approvals"},
        "member": {"user": {"id": "1404800000000000077", "username": "mara.k", "global_name": "Mara"}, "nick": null,
            "roles": ["1404800000000000030"], "joined_at": "2025-02-01T09:00:00.000000+00:00", "flags": 0,
            "pending": false, "permissions": "309237763072"},
        "message": {"id": "1537033182107402241", "author": {"id": "1404800000000000002", "bot": true}},
        "data": {"id": 2, "component_type": 2, "custom_id": "c1.p7Jx0vT3mQ9a.do"},
        "locale": "de", "app_permissions": "309237763072", "entitlements": [],
        "authorizing_integration_owners": {"0": "1404800000000000010"}, "context": 0
    })
}

fn with(more: Value) -> Value {
    let mut payload = button();
    let Value::Object(more) = more else { panic!("an object") };
    for (key, value) in more {
        payload[key] = value;
    }
    payload
}

fn without(keys: &[&str]) -> Value {
    let mut payload = button();
    for key in keys {
        payload.as_object_mut().unwrap().remove(*key);
    }
    payload
}

fn press(payload: &Value) -> Pressed {
    match read(payload, NOW).what {
        Inbound::Pressed { pressed, .. } => *pressed,
        other => panic!("{other:?}"),
    }
}

fn standing(payload: &Value) -> Standing {
    press(payload).said.unwrap().standing
}

fn is_unreadable(payload: &Value) -> bool {
    matches!(read(payload, NOW).what, Inbound::Unreadable(_))
}

#[test]
fn a_button_is_read() {
    let interaction = read(&button(), NOW);
    assert_eq!(interaction.id.as_deref(), Some("1537033403105280000"));
    assert_eq!(interaction.application_id.as_deref(), Some("1404800000000000001"));
    assert_eq!(interaction.sent, Some(NOW));
    let pressed = press(&button());
    assert_eq!(pressed.dedupe_key, "discord:1537033403105280000");
    assert_eq!(pressed.by.user, "1404800000000000077");
    assert_eq!(pressed.team.as_deref(), Some("1404800000000000010"));
    assert_eq!(pressed.channel.as_deref(), Some("1404800000000000020"));
    assert_eq!(pressed.message.as_deref(), Some("1537033182107402241"));
    assert_eq!(pressed.token, "p7Jx0vT3mQ9a");
    assert!(pressed.own_message && pressed.reason.is_none());
    assert_eq!(pressed.reply.unwrap().expose_secret(), "aW50ZXJhY3Rpb24tdG9rZW4");
    let said = pressed.said.unwrap();
    assert_eq!(said.standing, Standing::Member);
    assert_eq!(said.groups.unwrap().into_iter().collect::<Vec<_>>(), ["1404800000000000030"]);
    assert_eq!(said.key.unwrap().to_string(), "discord:1404800000000000077");
}

#[test]
fn when_an_id_was_made() {
    // 1537033403105280000 >> 22 is 366457320000 ms after the first moment of 2015.
    assert_eq!(sent_at("1537033403105280000"), Some(Millis(EPOCH + 366_457_320_000)));
    assert_eq!(sent_at("99999999999999999999"), None);
}

#[test]
fn no_secret_is_in_debug_output() {
    assert!(!format!("{:?}", read(&button(), NOW)).contains("aW50ZXJh"));
}

#[test]
fn discord_case_45_without_any_optional_field_and_with_unknown_ones() {
    let bare = json!({"id": "1", "application_id": "2", "type": 3, "token": "t", "user": {"id": "7"},
        "data": {"custom_id": "c1.abc.do"}});
    let pressed = press(&bare);
    assert_eq!((pressed.token.as_str(), pressed.by.user.as_str()), ("abc", "7"));
    assert_eq!(pressed.said.unwrap().groups, None, "nobody says which roles they have");
    let odd = with(json!({"attachment_size_limit": 1, "of_2030": {"a": [1]}, "message": null, "channel": 5}));
    assert_eq!(press(&odd).token, "p7Jx0vT3mQ9a");
    for key in ["id", "application_id", "type", "token", "member", "data"] {
        let payload = without(&[key]);
        assert!(is_unreadable(&payload), "{key}");
    }
    for odd in [
        json!({"type": 42}),
        json!({"type": "3"}),
        json!({"type": 4}),
        json!({"data": {"component_type": 99, "custom_id": "c1.abc.do"}}),
        json!({"data": {"component_type": 2}}),
        json!({"data": null}),
        json!({"id": 5}),
        json!({"id": "x"}),
        json!({"token": "../../x"}),
        json!({"token": "a/b"}),
        json!({"member": {"user": {"id": ""}}}),
    ] {
        assert!(is_unreadable(&with(odd.clone())), "{odd}");
    }
    assert!(is_unreadable(&json!([])) && is_unreadable(&json!(null)) && is_unreadable(&json!("x")));
    // What is needed to answer is read all the same.
    let unknown = read(&with(json!({"type": 42})), NOW);
    assert!(unknown.id.is_some() && unknown.token.is_some());
}

#[test]
fn a_ping_needs_nothing_else() {
    assert!(matches!(read(&json!({"type": 1}), NOW).what, Inbound::Ping));
    let whole = json!({"id": "1", "application_id": "2", "type": 1, "token": "t", "version": 1});
    assert!(matches!(read(&whole, NOW).what, Inbound::Ping));
}

#[test]
fn discord_case_40_what_is_not_ours_has_no_token() {
    for mark in ["c1.p7Jx0vT3mQ9a", "c2.p7Jx0vT3mQ9a.do", "approve", "c1.\0.do"] {
        assert_eq!(press(&with(json!({"data": {"component_type": 2, "custom_id": mark}}))).token, "");
    }
    // A select: we send none, so that nothing is decided by one.
    let select = json!({"data": {"component_type": 3, "custom_id": "c1.p7Jx0vT3mQ9a.do", "values": ["9"]}});
    assert_eq!(press(&with(select)).token, "");
}

#[test]
fn discord_case_43_forms_in_both_shapes_and_an_empty_field() {
    let form = |components: Value| {
        with(json!({"type": 5, "data": {"custom_id": "c1.m8.form", "components": components}}))
    };
    let input = |value: Value| json!({"type": 4, "id": 2, "custom_id": "reason", "value": value});
    for (components, typed) in [
        (json!([{"type": 1, "id": 1, "components": [input(json!("over budget"))]}]), "over budget"),
        (json!([{"type": 18, "id": 1, "component": input(json!("über\n*budget*"))}]), "über\n*budget*"),
        (json!([{"type": 10, "id": 9}, {"type": 18, "component": input(json!(""))}]), ""),
        (json!([{"type": 18, "component": input(json!(null))}]), ""),
        (json!([{"type": 18, "component": {"custom_id": "reason", "value": "no kind"}}]), "no kind"),
        (json!([{"type": 18, "component": input(json!("a\0b"))}]), "a\u{fffd}b"),
    ] {
        let pressed = press(&form(components.clone()));
        assert_eq!(pressed.reason.as_deref(), Some(typed), "{components}");
        assert_eq!(pressed.token, "m8");
    }
    // Typed words are never taken for nothing.
    for components in
        [json!([]), json!(null), json!([{"type": 18, "component": {"type": 3, "custom_id": "scope"}}])]
    {
        assert!(is_unreadable(&form(components)));
    }
    let long = "x".repeat(5_000);
    let cut = press(&form(json!([{"type": 18, "component": input(json!(long))}])));
    assert_eq!(cut.reason.unwrap().len(), LONGEST_TEXT);
}

#[test]
fn discord_case_39_bots_strangers_and_people_who_may_not_speak() {
    let unfit = |unfit| Standing::Unfit(unfit);
    let mut bot = button();
    bot["member"]["user"]["bot"] = json!(true);
    assert_eq!(standing(&bot), unfit(Unfit::Bot));
    assert_eq!(standing(&with(json!({"context": 2}))), unfit(Unfit::Stranger));
    let own = json!({"authorizing_integration_owners": {"1": "1404800000000000077"}});
    assert_eq!(standing(&with(own)), unfit(Unfit::Stranger));
    let both = json!({"authorizing_integration_owners": {"0": "10", "1": "77"}});
    assert_eq!(standing(&with(both)), Standing::Member);
    let mut member = button();
    member["member"]["pending"] = json!(true);
    assert_eq!(standing(&member), unfit(Unfit::Invited));
    member = button();
    member["member"]["communication_disabled_until"] = json!("2026-08-12T09:42:01.000000+00:00");
    assert_eq!(standing(&member), unfit(Unfit::TimedOut));
    member["member"]["communication_disabled_until"] = json!("2026-08-12T09:41:59.000000+00:00");
    assert_eq!(standing(&member), Standing::Member, "it is over");
}

#[test]
fn a_direct_message_has_a_user_and_no_roles() {
    let direct = json!({"id": "1", "application_id": "2", "type": 3, "token": "t", "context": 1, "channel_id": "90",
        "user": {"id": "77"}, "authorizing_integration_owners": {"0": "0"},
        "data": {"component_type": 2, "custom_id": "c1.abc.do"}});
    let said = press(&direct).said.unwrap();
    assert_eq!((said.standing, said.groups), (Standing::Member, None));
    // A member without roles has none: they are known.
    let mut member = button();
    member["member"].as_object_mut().unwrap().remove("roles");
    assert_eq!(press(&member).said.unwrap().groups, Some(std::collections::BTreeSet::new()));
}

#[test]
fn discord_case_75_a_person_is_their_id_whatever_they_are_called() {
    let mut renamed = button();
    renamed["member"]["user"]["username"] = json!("dana");
    renamed["member"]["user"]["global_name"] = json!("Dana (admin)");
    renamed["member"]["nick"] = json!("dana@example.com");
    assert_eq!(press(&renamed).said, press(&button()).said);
    assert_eq!(press(&renamed).by, press(&button()).by);
}

#[test]
fn commands() {
    let command = |data: Value| match read(&with(json!({"type": 2, "data": data})), NOW).what {
        Inbound::Typed(typed) => *typed,
        other => panic!("{other:?}"),
    };
    let open = command(
        json!({"id": "5", "name": "countersign", "type": 1, "options": [{"name": "open", "type": 1, "options": []}]}),
    );
    assert_eq!(open.text, "open");
    assert_eq!(open.origin.app.as_deref(), Some("1404800000000000001"));
    assert_eq!(open.user, "1404800000000000077");
    assert_eq!(command(json!({"name": "countersign"})).text, "");
    assert_eq!(command(json!({"name": "other", "options": [{"name": "open"}]})).text, "?");
    assert_eq!(command(json!(null)).text, "?");
}

fn any_json() -> impl Strategy<Value = Value> {
    let keys = prop_oneof![
        Just("id"),
        Just("application_id"),
        Just("type"),
        Just("token"),
        Just("user"),
        Just("member"),
        Just("roles"),
        Just("data"),
        Just("custom_id"),
        Just("components"),
        Just("component"),
        Just("component_type"),
        Just("value"),
        Just("message"),
        Just("channel_id"),
        Just("guild_id"),
        Just("context"),
        Just("options"),
        Just("name"),
        Just("authorizing_integration_owners"),
        Just("author"),
        Just("communication_disabled_until"),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0_u64..20).prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[0-9]{1,25}".prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        Just(json!("c1.abc.do")),
        Just(json!("reason")),
        Just(json!("countersign")),
    ];
    leaf.prop_recursive(6, 96, 12, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((keys.clone(), inner), 0..12)
                .prop_map(|pairs| Value::Object(pairs.into_iter().map(|(k, v)| (k.to_owned(), v)).collect())),
        ]
    })
}

proptest! {
    #[test]
    fn discord_case_45_no_json_makes_it_panic(payload in any_json()) {
        let _ = read(&payload, NOW);
    }

    /// A readable delivery in which one thing is replaced by anything.
    #[test]
    fn discord_case_45_nor_does_a_spoilt_one(at in 0_usize..16, value in any_json()) {
        let mut payload = button();
        let keys: Vec<String> = payload.as_object().unwrap().keys().cloned().collect();
        payload[keys[at % keys.len()].as_str()] = value;
        let interaction = read(&payload, NOW);
        if let Inbound::Pressed { pressed, .. } = interaction.what {
            prop_assert!(!pressed.by.user.is_empty());
        }
    }
}

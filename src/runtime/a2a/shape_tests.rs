//! Pure parts: understanding, composing, judging, the card, the link.

use super::card::{Fence, origin, parse};
use super::compose::compose;
use super::errors::{Failure, Verdict, of_answer, of_reading};
use super::interactions::{URI, View, is_plain, reading};
use super::settings::QuestionPart;
use super::types::{State, Task};
use crate::bridge::ports::{CarryError, Compose, ConnectorError, Seen, TaskReading, TaskState};
use crate::domain::clock::Millis;
use crate::domain::form::{Decision, Kind};
use crate::domain::ids::{InteractionKey, RuntimeName, Subject};
use crate::domain::interaction::{End, Outcome, Why};
use proptest::prelude::*;
use rstest::rstest;
use serde_json::{Value, json};
use std::time::Duration;
use url::Url;

fn read(task: &Value) -> TaskReading {
    let runtime = RuntimeName::new("prod");
    let view = View { runtime: &runtime, agent: "release", seen_as: None, owner: None, began: Millis(1) };
    reading(&Task::parse(task).unwrap(), view)
}

fn seen(task: &Value) -> Seen {
    match read(task).state {
        TaskState::Waiting(seen) => *seen,
        other => panic!("{other:?}"),
    }
}

fn paused(state: &str, extension: &Value) -> Value {
    json!({ "id": "t1", "contextId": "rel", "status": { "state": state, "timestamp": "2026-11-30T09:00:01Z",
        "message": { "messageId": "m1", "role": "ROLE_AGENT", "parts": [{ "text": "plain words" }],
            "extensions": [URI], "metadata": { URI: extension } } } })
}

fn approval() -> Value {
    json!({ "interactionId": "eff_1", "kind": "approval", "prompt": "Approve ci / deploy?",
        "detail": { "server": "ci", "tool": "deploy", "reason": "asked by a person" } })
}

#[test]
fn a2a_case_8_an_approval_says_server_tool_and_reason() {
    let one = seen(&paused("TASK_STATE_AUTH_REQUIRED", &approval()));
    assert_eq!(one.key.external, "eff_1");
    assert_eq!(one.form.kind, Kind::Approval);
    assert_eq!(one.form.title, "ci / deploy");
    assert_eq!(one.form.prompt, "Approve ci / deploy?");
    assert_eq!(one.form.fact("server"), Some("ci"));
    assert_eq!(one.form.fact("tool"), Some("deploy"));
    assert_eq!(one.form.fact("reason"), Some("asked by a person"));
    assert!(one.form.arguments_withheld);
    assert!(one.form.questions.is_empty());
}

#[test]
fn a2a_case_9_a_question_takes_free_text() {
    let one = seen(&paused(
        "TASK_STATE_INPUT_REQUIRED",
        &json!({ "interactionId": "q1", "kind": "question", "prompt": "Which region?" }),
    ));
    assert_eq!(one.form.kind, Kind::Question);
    assert_eq!(one.form.questions.len(), 1);
    assert!(one.form.questions[0].free_text);
    assert!(!one.form.arguments_withheld);
}

#[rstest]
#[case("TASK_STATE_AUTH_REQUIRED")]
#[case("TASK_STATE_INPUT_REQUIRED")]
fn a2a_case_10_a_connection_is_one_whatever_the_state(#[case] state: &str) {
    let one = seen(&paused(
        state,
        &json!({ "interactionId": "c1", "kind": "connection", "prompt": "Connect github: to push",
            "detail": { "app": "github", "reason": "to push" } }),
    ));
    assert_eq!(one.form.kind, Kind::Connection);
    assert_eq!(one.form.title, "github");
    assert_eq!(one.form.fact("app"), Some("github"));
}

#[rstest]
#[case::unknown_kind("TASK_STATE_INPUT_REQUIRED", json!({ "interactionId": "x", "kind": "vote", "prompt": "?" }))]
#[case::no_kind("TASK_STATE_AUTH_REQUIRED", json!({ "interactionId": "x" }))]
#[case::no_id("TASK_STATE_AUTH_REQUIRED", json!({ "kind": "approval" }))]
#[case::null("TASK_STATE_AUTH_REQUIRED", Value::Null)]
#[case::empty_id("TASK_STATE_AUTH_REQUIRED", json!({ "interactionId": "", "kind": "approval" }))]
#[case::endless_id("TASK_STATE_AUTH_REQUIRED", json!({ "interactionId": "x".repeat(513), "kind": "approval" }))]
#[case::nul_id("TASK_STATE_AUTH_REQUIRED", json!({ "interactionId": "x\0", "kind": "approval" }))]
#[case::our_mark("TASK_STATE_AUTH_REQUIRED", json!({ "interactionId": "~plain:x", "kind": "approval" }))]
fn a2a_case_11_what_is_not_understood_is_read_only(#[case] state: &str, #[case] extension: Value) {
    let one = seen(&paused(state, &extension));
    assert_eq!(one.form.kind, Kind::Unknown);
    assert!(one.form.questions.is_empty());
}

#[test]
fn without_metadata_input_may_be_given_by_text_and_is_keyed_by_the_message() {
    let mut task = paused("TASK_STATE_INPUT_REQUIRED", &Value::Null);
    let one = seen(&task);
    assert_eq!((one.form.kind, one.form.prompt.as_str()), (Kind::Question, "plain words"));
    assert_eq!(one.key.external, "~plain:m1");
    task["status"]["message"]["messageId"] = Value::Null;
    let hashed = seen(&task).key.external;
    assert!(is_plain(&hashed) && hashed.len() == 7 + 64, "{hashed}");
    task["status"]["timestamp"] = "2026-11-30T09:00:02Z".into();
    assert_ne!(seen(&task).key.external, hashed);
}

#[test]
fn the_extension_counts_also_where_the_message_does_not_list_it() {
    let mut task = paused("TASK_STATE_AUTH_REQUIRED", &approval());
    task["status"]["message"]["extensions"] = Value::Null;
    assert_eq!(seen(&task).form.kind, Kind::Approval);
}

#[test]
fn a2a_case_12_numbers_and_key_order_change_nothing() {
    let text = |detail: &str| {
        let body = format!(
            r#"{{"interactionId":"e","kind":"approval","prompt":"?","detail":{detail},"extra":{{"n":1}}}}"#
        );
        let one = seen(&paused("TASK_STATE_AUTH_REQUIRED", &serde_json::from_str(&body).unwrap()));
        one.form.digest(&one.key)
    };
    let there = text(r#"{"server":"ci","tool":"deploy","n":1}"#);
    assert_eq!(there, text(r#"{"n":1.0,"tool":"deploy","server":"ci"}"#));
    assert_ne!(there, text(r#"{"server":"ci","tool":"rollback"}"#));
}

#[test]
fn u_0000_is_replaced_at_the_edge() {
    let one = seen(&paused(
        "TASK_STATE_AUTH_REQUIRED",
        &json!({ "interactionId": "e", "kind": "approval", "prompt": "a\0b", "detail": { "tool": "t\0" } }),
    ));
    assert_eq!(one.form.prompt, "a\u{fffd}b");
    assert_eq!(one.form.fact("tool"), Some("t\u{fffd}"));
}

#[rstest]
#[case("TASK_STATE_CANCELED", End::Canceled)]
#[case("TASK_STATE_FAILED", End::Failed)]
#[case("TASK_STATE_REJECTED", End::Rejected)]
fn a2a_case_49_ends_are_told_apart(#[case] state: &str, #[case] end: End) {
    let reading = read(&json!({ "id": "t", "status": { "state": state } }));
    assert!(matches!(reading.state, TaskState::Ended(one) if one == end));
}

#[test]
fn a2a_case_49_completed_is_no_decision_and_an_unknown_state_is_nothing() {
    let state = |name: &str| read(&json!({ "id": "t", "status": { "state": name } })).state;
    assert!(matches!(state("TASK_STATE_COMPLETED"), TaskState::Completed));
    assert!(matches!(state("TASK_STATE_WORKING"), TaskState::Running));
    assert!(matches!(state("TASK_STATE_SUBMITTED"), TaskState::Running));
    assert!(matches!(state("TASK_STATE_UNSPECIFIED"), TaskState::Unclear));
    assert!(matches!(state("TASK_STATE_PAUSED_FOR_LUNCH"), TaskState::Unclear));
    assert!(matches!(read(&json!({ "id": "t" })).state, TaskState::Unclear));
}

#[rstest]
#[case(Some("approval"), json!({ "approved": false }), Some(Outcome::Denied))]
#[case(Some("approval"), json!({ "value": true }), Some(Outcome::Approved))]
#[case(Some("approval"), json!({ "value": "yes" }), None)]
#[case(Some("question"), json!({ "approved": true }), Some(Outcome::Answered))]
#[case(Some("connection"), json!({ "value": { "connected": true } }), Some(Outcome::Connected))]
#[case(Some("connection"), json!({ "value": { "connected": "yes" } }), Some(Outcome::Declined))]
#[case(Some("connection"), json!({ "approved": true }), Some(Outcome::Connected))]
#[case(None, json!({ "approved": true }), Some(Outcome::Approved))]
#[case(None, json!({ "value": { "connected": false } }), Some(Outcome::Declined))]
#[case(None, json!({ "value": "eu" }), Some(Outcome::Answered))]
#[case(None, json!({ "value": true }), None)]
#[case(None, json!({}), None)]
fn a2a_case_50_the_history_tells_who_answered(
    #[case] kind: Option<&str>,
    #[case] members: Value,
    #[case] what: Option<Outcome>,
) {
    let mut answer = members;
    answer["interactionId"] = "e".into();
    let mut history = vec![];
    if let Some(kind) = kind {
        history.push(json!({ "role": "ROLE_AGENT", "parts": [{ "text": "?" }],
            "metadata": { URI: { "interactionId": "e", "kind": kind } } }));
    }
    history.push(json!({ "role": "ROLE_USER", "messageId": "answer:e", "parts": [{ "data": null }],
        "metadata": { URI: answer } }));
    let reading =
        read(&json!({ "id": "t", "status": { "state": "TASK_STATE_WORKING" }, "history": history }));
    assert_eq!(reading.history.len(), 1);
    assert_eq!(reading.history[0].external, "e");
    assert_eq!(reading.history[0].message_id.as_deref(), Some("answer:e"));
    assert_eq!(reading.history[0].what, what);
}

#[test]
fn a_part_is_what_its_key_says() {
    let text = |parts: Value| {
        let task = json!({ "id": "t", "status": { "state": "TASK_STATE_AUTH_REQUIRED",
            "message": { "role": "ROLE_AGENT", "parts": parts } } });
        seen(&task).form.prompt
    };
    assert_eq!(text(json!([{ "text": "a", "filename": "", "mediaType": "" }, { "data": null }])), "a");
    assert_eq!(text(json!([{ "text": "a" }, { "url": "https://x.example" }, { "text": "b" }])), "a\nb");
    assert_eq!(text(json!([null, 7, { "text": 7 }, { "text": null }])), "");
    assert_eq!(text(Value::Null), "");
}

// ---------------------------------------------------------------- composing

fn key(external: &str) -> InteractionKey {
    InteractionKey {
        runtime: RuntimeName::new("prod"),
        agent: "release".into(),
        task: "t1.cmVs.7f3a".into(),
        external: external.into(),
    }
}

fn composed(external: &str, decision: &Decision, number: u32, part: QuestionPart) -> Result<Value, Why> {
    let subject = Subject::parse("dana@example.com").unwrap();
    let key = key(external);
    let answer =
        Compose { key: &key, context: Some("rel"), decision, subject: &subject, prefix: "cs-eu1", number };
    compose(&answer, part).map(|composed| {
        assert_eq!(composed.body["message"]["messageId"], composed.message_id);
        composed.body
    })
}

#[test]
fn a2a_case_13_the_body_of_an_approval() {
    let body = composed("eff_7Q2", &Decision::Approve, 1, QuestionPart::Auto).unwrap();
    assert_eq!(
        body,
        json!({ "message": { "role": "ROLE_USER", "messageId": "cs-eu1:eff_7Q2", "taskId": "t1.cmVs.7f3a",
            "contextId": "rel", "extensions": [URI], "parts": [{ "data": { "approved": true } }],
            "metadata": { URI: { "interactionId": "eff_7Q2", "approved": true } } },
            "configuration": { "returnImmediately": true, "historyLength": 0 } })
    );
}

#[test]
fn a_later_claim_has_its_own_key_and_odd_ids_are_hashed() {
    let id = |external: &str, number| {
        let body = composed(external, &Decision::Approve, number, QuestionPart::Auto).unwrap();
        body["message"]["messageId"].as_str().unwrap().to_owned()
    };
    assert_eq!(id("e", 2), "cs-eu1:e:2");
    for odd in ["with space", "ünïcode", &"x".repeat(200)] {
        let hashed = id(odd, 3);
        assert!(
            hashed.starts_with("cs-eu1:") && hashed.ends_with(":3") && hashed.len() == 7 + 64 + 2,
            "{hashed}"
        );
        assert_ne!(hashed, id(odd, 2));
    }
    assert_eq!(id(&"x".repeat(193), 1).len(), 200);
}

#[rstest]
#[case(QuestionPart::Auto, json!("eu"), json!({ "text": "eu" }))]
#[case(QuestionPart::Auto, json!({ "env": "eu" }), json!({ "data": { "env": "eu" } }))]
#[case(QuestionPart::Auto, json!(" "), json!({ "data": " " }))]
#[case(QuestionPart::Auto, Value::Null, json!({ "data": null }))]
#[case(QuestionPart::DataBare, json!("eu"), json!({ "data": "eu" }))]
#[case(QuestionPart::DataWrapped, json!("eu"), json!({ "data": { "value": "eu" } }))]
fn a_question_says_its_value_twice(#[case] how: QuestionPart, #[case] value: Value, #[case] part: Value) {
    let decision = Decision::Answer { values: vec![value.clone()] };
    let body = composed("q", &decision, 1, how).unwrap();
    assert_eq!(body["message"]["parts"], json!([part]));
    assert_eq!(body["message"]["metadata"][URI], json!({ "interactionId": "q", "value": value }));
}

#[test]
fn a2a_case_11_text_never_approves() {
    for decision in
        [Decision::Approve, Decision::Deny { reason: None }, Decision::Connected, Decision::Decline]
    {
        assert_eq!(composed("~plain:m1", &decision, 1, QuestionPart::Auto), Err(Why::Malformed));
    }
    for values in [vec![], vec![json!(1), json!(2)]] {
        let decision = Decision::Answer { values };
        assert_eq!(composed("q", &decision, 1, QuestionPart::Auto), Err(Why::Malformed));
    }
}

// ---------------------------------------------------------------- judging

fn http(status: u16, code: &str) -> Failure {
    Failure::http(status, &json!({ "status": "rejected", "code": code }), None)
}

fn rpc(code: i64, field: Option<&str>) -> Failure {
    let data: Vec<Value> = field
        .map(|field| {
            json!({ "@type": "type.googleapis.com/google.rpc.BadRequest",
            "fieldViolations": [{ "field": field, "description": "no" }] })
        })
        .into_iter()
        .collect();
    Failure::rpc(&json!({ "code": code, "message": "approved: never judge me by this", "data": data }))
}

#[rstest]
#[case(rpc(-32004, None), Verdict::NotAccepted)]
#[case(rpc(-32002, None), Verdict::NotAccepted)]
#[case(rpc(-32001, None), Verdict::NotVisible)]
#[case(rpc(-32602, Some("message.messageId")), Verdict::KeyUsed)]
#[case(rpc(-32602, Some("message.contextId")), Verdict::Refused(Why::Malformed))]
#[case(rpc(-32602, None), Verdict::Refused(Why::Malformed))]
#[case(rpc(-32005, None), Verdict::Refused(Why::Malformed))]
#[case(rpc(-32600, None), Verdict::Refused(Why::Malformed))]
#[case(rpc(-32700, None), Verdict::Refused(Why::Malformed))]
#[case(rpc(-32008, None), Verdict::Attention)]
#[case(rpc(-32009, None), Verdict::Attention)]
#[case(rpc(-32601, None), Verdict::Attention)]
#[case(rpc(-32603, None), Verdict::Unknown(None))]
#[case(rpc(-32006, None), Verdict::Unknown(None))]
#[case(rpc(-32099, None), Verdict::Unknown(None))]
#[case(http(426, "protocol_unsupported"), Verdict::Attention)]
#[case(http(415, ""), Verdict::Attention)]
#[case(http(421, ""), Verdict::Attention)]
#[case(http(302, ""), Verdict::Attention)]
#[case(http(401, "credential_invalid"), Verdict::Attention)]
#[case(http(401, "issuer_unavailable"), Verdict::Unknown(None))]
#[case(http(403, "scope_required"), Verdict::Attention)]
#[case(http(403, "key_role_mismatch"), Verdict::Attention)]
#[case(http(403, "origin_rejected"), Verdict::Attention)]
#[case(http(403, "not_yours"), Verdict::Refused(Why::Forbidden))]
#[case(http(400, "subject_required"), Verdict::Attention)]
#[case(http(400, "subject_invalid"), Verdict::Refused(Why::Unmappable))]
#[case(http(404, ""), Verdict::NotVisible)]
#[case(http(413, ""), Verdict::Refused(Why::Malformed))]
#[case(http(408, ""), Verdict::Unknown(None))]
#[case(http(500, ""), Verdict::Unknown(None))]
#[case(http(503, "runtime_unavailable"), Verdict::Unknown(None))]
#[case(Failure::http(429, &Value::Null, Some(Duration::from_secs(2))), Verdict::Unknown(Some(Duration::from_secs(2))))]
#[case(Failure::NotSent("no connection"), Verdict::NotSent)]
#[case(Failure::Lost("timeout"), Verdict::Unknown(None))]
#[case(Failure::Garbled("no JSON-RPC answer"), Verdict::Unknown(None))]
#[case(Failure::Identity(CarryError::Unmappable), Verdict::Refused(Why::Unmappable))]
#[case(Failure::Identity(CarryError::NotReady { what: "x".into() }), Verdict::Attention)]
fn a2a_case_6_answers_are_judged_by_code(#[case] failure: Failure, #[case] verdict: Verdict) {
    assert_eq!(of_answer(&failure), verdict);
}

#[test]
fn a_refusal_is_printed_in_known_words_only() {
    assert_eq!(http(403, "scope_required").said(), "http 403 scope_required");
    assert_eq!(http(403, "<@everyone> approved").said(), "http 403");
    assert_eq!(rpc(-32004, Some("x")).said(), "error -32004");
    // A code that went through a double.
    assert_eq!(Failure::rpc(&json!({ "code": -32001.0 })).said(), "error -32001");
}

#[test]
fn readings_that_fail_say_what_to_do() {
    let of = |failure| of_reading(&failure);
    assert!(matches!(of(Failure::Lost("timeout")), ConnectorError::Unavailable { .. }));
    assert!(matches!(of(http(503, "")), ConnectorError::Unavailable { .. }));
    assert!(matches!(of(rpc(-32603, None)), ConnectorError::Unavailable { .. }));
    assert!(matches!(of(http(401, "token_expired")), ConnectorError::Unauthorized { .. }));
    assert!(matches!(of(http(403, "")), ConnectorError::Unauthorized { .. }));
    assert!(matches!(of(http(404, "")), ConnectorError::Configuration { .. }));
    assert!(matches!(of(http(302, "")), ConnectorError::Configuration { .. }));
    assert!(matches!(of(rpc(-32009, None)), ConnectorError::Configuration { .. }));
    assert!(matches!(of(Failure::Garbled("x")), ConnectorError::Protocol { .. }));
    let ConnectorError::Configuration { what } = of(http(400, "subject_required")) else { panic!() };
    assert!(what.contains("watch_as"), "{what}");
}

// ---------------------------------------------------------------- the card

#[test]
fn a2a_case_1_the_first_usable_interface_and_its_tenant() {
    let entry = |url: &str, binding: &str, version: &str| json!({ "url": url, "protocolBinding": binding, "protocolVersion": version });
    let mut tenant = entry("https://rt.example/a2a", "JSONRPC", "1.0.3");
    tenant["tenant"] = "acme".into();
    let card = parse(&json!({ "name": "Release", "version": "3", "supportedInterfaces": [
        entry("https://rt.example/old", "JSONRPC", "0.3"), entry("https://rt.example/grpc", "GRPC", "1.0"),
        entry("ftp://rt.example/x", "JSONRPC", "1.0"), tenant, entry("https://rt.example/b", "JSONRPC", "1.0"), 7 ] }))
    .unwrap();
    assert_eq!(card.named, 6);
    assert_eq!(card.usable[0].url.as_str(), "https://rt.example/a2a");
    assert_eq!(card.usable[0].tenant.as_deref(), Some("acme"));
    assert_eq!(card.usable[1].tenant, None);
    assert_eq!(parse(&json!({ "error": "not found" })), None);
    assert_eq!(parse(&json!([1])), None);
}

#[test]
fn a2a_case_67_another_origin_needs_to_be_listed() {
    let url = |text: &str| Url::parse(text).unwrap();
    let fence = |listed: &[&str], plain_http| Fence {
        allow_origins: listed.iter().map(|&one| one.to_owned()).collect(),
        plain_http,
    };
    let card = url("https://rt.example/.well-known/agent-card.json");
    let refused = fence(&[], false).check(&url("https://evil.example/a2a"), &card).unwrap_err();
    assert!(refused.contains("allow_origins"), "{refused}");
    assert!(fence(&[], false).check(&url("https://rt.example:8443/a2a"), &card).is_err());
    assert!(fence(&[], false).check(&url("https://rt.example:443/a2a"), &card).is_ok());
    assert!(fence(&["https://b.example"], false).check(&url("https://b.example/a2a"), &card).is_ok());
    assert!(fence(&["http://b.example"], false).check(&url("http://b.example/a2a"), &card).is_err());
    assert!(fence(&["http://b.example/"], true).check(&url("http://b.example/a2a"), &card).is_ok());
    assert!(fence(&[], false).scheme(&url("http://127.0.0.1:9/a2a")).is_ok());
    assert_eq!(origin(&card), "https://rt.example");
}

// ---------------------------------------------------------------- anything

fn any_json() -> impl Strategy<Value = Value> {
    let words = prop::sample::select(vec![
        "id",
        "status",
        "state",
        "message",
        "metadata",
        URI,
        "interactionId",
        "kind",
        "prompt",
        "detail",
        "parts",
        "text",
        "data",
        "history",
        "role",
        "ROLE_USER",
        "TASK_STATE_AUTH_REQUIRED",
        "TASK_STATE_INPUT_REQUIRED",
        "approval",
        "question",
        "supportedInterfaces",
        "url",
        "error",
        "code",
        "\0",
    ]);
    let word = prop_oneof![words.prop_map(str::to_owned), any::<String>()];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        word.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 8, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(word.clone(), inner, 0..8)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_json_is_read_without_a_panic(value in any_json(), status in any_json(), extension in any_json()) {
        let mut tasks = vec![value.clone(), json!({ "id": "t", "status": status, "history": value.clone() })];
        tasks.push(paused("TASK_STATE_AUTH_REQUIRED", &extension));
        let mut prompts = json!({ "interactionId": "e", "kind": value, "prompt": status, "detail": extension });
        tasks.push(paused("TASK_STATE_INPUT_REQUIRED", &prompts));
        prompts["kind"] = "approval".into();
        tasks.push(paused("TASK_STATE_AUTH_REQUIRED", &prompts));
        for task in &tasks {
            let _ = Task::of_send(task);
            let _ = parse(task);
            let _ = Failure::rpc(task).said();
            let _ = of_answer(&Failure::http(403, task, None));
            if Task::parse(task).is_some() {
                let reading = read(task);
                if let TaskState::Waiting(seen) = &reading.state {
                    prop_assert!(seen.key.external.len() <= 520);
                    let texts = [&seen.form.prompt, &seen.form.title];
                    prop_assert!(texts.iter().all(|text| !text.contains('\0')));
                }
            }
        }
    }

    #[test]
    fn an_id_is_always_one_a_runtime_takes(external in any::<String>(), prefix in "[a-z0-9-]{1,20}", number in 1u32..) {
        let subject = Subject::parse("dana@example.com").unwrap();
        let key = key(&external);
        let answer = Compose {
            key: &key, context: None, decision: &Decision::Approve, subject: &subject, prefix: &prefix, number,
        };
        if let Ok(composed) = compose(&answer, QuestionPart::Auto) {
            prop_assert!((1..=200).contains(&composed.message_id.len()));
            prop_assert!(composed.message_id.bytes().all(|byte| byte.is_ascii_graphic()));
        }
    }

    #[test]
    fn states_round_trip_or_are_unclear(name in any::<String>()) {
        prop_assert!(State::parse(&name) == State::Unclear || name.starts_with("TASK_STATE_"));
    }
}

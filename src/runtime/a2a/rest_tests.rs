//! The HTTP+JSON binding against the stand-in, and against what other servers say.

use super::bed_tests::{Bed, DANA, Hand, KeyCarrier, Said, Script, json as said, setup, shown, task_ref};
use super::call::Op;
use super::card::{Binding, Interface};
use super::errors::{Verdict, of_answer};
use super::rest::understand;
use super::settings::Address;
use super::wire::Reply;
use crate::bridge::ports::{AnswerOutcome, Connector, ConnectorError, TaskState};
use crate::domain::clock::Millis;
use crate::domain::form::Decision;
use crate::domain::interaction::Why;
use crate::sandbox::a2a::{Ask, Binding as Served, ErrorStyle, Open};
use reqwest::header::HeaderMap;
use rstest::rstest;
use serde_json::{Value, json};
use std::sync::Arc;

async fn bed(style: ErrorStyle) -> Bed {
    let clock = Hand::new();
    let setup = setup(&clock);
    let bed = Bed::made(clock, setup, Arc::new(KeyCarrier), |_| {}).await;
    bed.world.switch(|switches| {
        switches.bindings = vec![Served::HttpJson];
        switches.errors = style;
    });
    bed
}

fn refused(outcome: &AnswerOutcome) -> Option<Why> {
    match outcome {
        AnswerOutcome::Refused { why, .. } => Some(*why),
        _ => None,
    }
}

#[rstest]
#[tokio::test]
async fn listed_read_answered_and_refused(
    #[values(ErrorStyle::GoogleRpc, ErrorStyle::ProblemJson)] style: ErrorStyle,
) {
    let bed = bed(style).await;
    let opened = bed.world.open(Open::new(DANA, Ask::approval("ci", "deploy")));
    let listed = bed.list().await.unwrap();
    assert_eq!(
        listed.iter().map(|reading| shown(reading)).collect::<Vec<_>>(),
        [Some(opened.interaction_id.as_str())]
    );
    assert_eq!(shown(&bed.read(&opened).await), Some(opened.interaction_id.as_str()));
    let out = bed.answer_of(DANA, &opened, Decision::Approve);
    for _ in 0..2 {
        let answered = bed.send(&out).await;
        assert!(matches!(answered.outcome, AnswerOutcome::Accepted { after: Some(_) }), "{answered:?}");
    }
    assert_eq!(bed.applied(&opened), 1);
    let mut other = bed.answer_of(DANA, &opened, Decision::Deny { reason: None });
    other.message_id = "cs-eu1:second".into();
    other.body["message"]["messageId"] = "cs-eu1:second".into();
    assert_eq!(refused(&bed.send(&other).await.outcome), Some(Why::NotAccepted));
    let mut gone = task_ref(&opened);
    gone.task = "t1.a/b?c.%2e#d".into();
    let reading = bed.connector.read(&gone).await.unwrap();
    assert!(matches!(reading.state, TaskState::NotFound), "an id of any characters fits into a path");
    gone.task = "..".into();
    assert!(matches!(bed.connector.read(&gone).await, Err(ConnectorError::Protocol { .. })));
    for one in bed.world.requests() {
        assert_eq!(one.headers["a2a-version"], "1.0", "{}", one.line);
        assert!(one.headers.contains_key("a2a-extensions"), "{}", one.line);
        let kind = one.headers.get("content-type").map(String::as_str);
        assert_eq!(kind, (one.method == "SendMessage").then_some("application/a2a+json"), "{}", one.line);
    }
}

#[tokio::test]
async fn a2a_case_1_a_tenant_is_a_segment_of_the_path() {
    let script = Script::new(|asked| {
        if asked.line.contains("agent-card") {
            let url = format!("http://{}/v1/?key=a", asked.headers["host"]);
            let interface = |binding: &str| {
                json!({ "url": url, "protocolBinding": binding, "protocolVersion": "1.0", "tenant": "a/b c" })
            };
            let interfaces = [interface("GRPC"), interface("HTTP+JSON"), interface("JSONRPC")];
            return said(200, &json!({ "name": "release", "supportedInterfaces": interfaces }));
        }
        said(200, &json!({ "tasks": [], "nextPageToken": "" }))
    })
    .await;
    let connector = script.connector(&Hand::new(), |settings| {
        settings.address = Address::Card(script.url.join("/agent-card.json").unwrap());
    });
    connector.list(None).await.unwrap();
    let asked = script.asked().pop().unwrap();
    let expected = "GET /v1/a%2Fb%20c/tasks?key=a&";
    assert!(asked.line.starts_with(expected), "{}", asked.line);
    assert!(!asked.line.contains("tenant"), "{}", asked.line);
}

fn reply(status: u16, body: &Value) -> Reply {
    Reply { status, headers: HeaderMap::new(), body: body.to_string().into_bytes() }
}

fn verdict(status: u16, body: &Value) -> Verdict {
    of_answer(&understand(&reply(status, body), Op::SendMessage, Millis(0)).unwrap_err())
}

fn google(status: u16, reason: &str) -> Value {
    let info = json!({ "@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason });
    json!({ "error": { "code": status, "status": "ANY", "message": "TASK_NOT_FOUND", "details": [info] } })
}

/// A2A case 6: seven errors share 400.
#[rstest]
#[case("UNSUPPORTED_OPERATION", Verdict::NotAccepted)]
#[case("TASK_NOT_CANCELABLE", Verdict::NotAccepted)]
#[case("CONTENT_TYPE_NOT_SUPPORTED", Verdict::Refused(Why::Malformed))]
#[case("INVALID_PARAMS", Verdict::Refused(Why::Malformed))]
#[case("EXTENSION_SUPPORT_REQUIRED", Verdict::Attention)]
#[case("VERSION_NOT_SUPPORTED", Verdict::Attention)]
#[case("TASK_NOT_FOUND", Verdict::NotVisible)]
#[case("SOMETHING_ELSE", Verdict::Refused(Why::Malformed))]
fn a2a_case_6_over_rest_the_reason_tells_errors_of_one_status_apart(
    #[case] reason: &str,
    #[case] expected: Verdict,
) {
    assert_eq!(verdict(400, &google(400, reason)), expected);
}

#[test]
fn a2a_case_25_the_field_that_is_complained_about_is_read() {
    let mut body = google(400, "INVALID_PARAMS");
    let violation = json!({ "fieldViolations": [{ "field": "message.messageId", "description": "used" }] });
    body["error"]["details"].as_array_mut().unwrap().push(violation);
    assert_eq!(verdict(400, &body), Verdict::KeyUsed);
}

#[rstest]
#[case("https://a2a-protocol.org/errors/unsupported-operation", 400, Verdict::NotAccepted)]
#[case("https://a2a-protocol.org/errors/task-not-found/", 404, Verdict::NotVisible)]
#[case("task-not-cancelable", 409, Verdict::NotAccepted)]
#[case("about:blank", 400, Verdict::Refused(Why::Malformed))]
#[case("about:blank", 404, Verdict::NotVisible)]
#[case("https://a2a-protocol.org/errors/task-not-found", 503, Verdict::Unknown(None))]
#[case("https://a2a-protocol.org/errors/task-not-found", 401, Verdict::Attention)]
fn a2a_case_7_problems_are_read_by_the_end_of_their_type(
    #[case] kind: &str,
    #[case] status: u16,
    #[case] expected: Verdict,
) {
    let problem =
        json!({ "type": kind, "title": "task-not-found", "status": status, "detail": "TASK_NOT_FOUND" });
    assert_eq!(verdict(status, &problem), expected);
}

/// A2A case 7: whatever stands there, nothing panics, and it is never an acceptance.
#[rstest]
#[case(json!({ "type": 7, "error": [] }))]
#[case(json!({ "type": "" }))]
#[case(json!({ "error": {} }))]
#[case(json!({ "error": { "details": [7, {}, { "reason": 7 }] } }))]
#[case(json!([]))]
#[case(Value::Null)]
fn a2a_case_7_odd_bodies_break_nothing(#[case] body: Value) {
    for status in [200, 400, 404, 409, 415, 418, 500, 502, 503] {
        for op in [Op::SendMessage, Op::GetTask, Op::ListTasks] {
            let understood = understand(&reply(status, &body), op, Millis(0));
            // A bare object is all that a result can be told by.
            assert!(understood.is_err() || (status == 200 && body.is_object()), "{status}: {understood:?}");
        }
    }
}

/// A2A case 69: in an `error` body without a reason; without one, they are a gateway's.
#[rstest]
#[case(409, Verdict::NotAccepted, Verdict::Refused(Why::Malformed))]
#[case(415, Verdict::Refused(Why::Malformed), Verdict::Attention)]
#[case(502, Verdict::Unknown(None), Verdict::Unknown(None))]
#[case(404, Verdict::NotVisible, Verdict::NotVisible)]
#[case(429, Verdict::Unknown(None), Verdict::Unknown(None))]
#[case(403, Verdict::Refused(Why::Forbidden), Verdict::Refused(Why::Forbidden))]
fn a2a_case_69_older_statuses_without_a_reason(
    #[case] status: u16,
    #[case] by_error: Verdict,
    #[case] by_gateway: Verdict,
) {
    let error = json!({ "error": { "code": status, "status": "ANY", "message": "no" } });
    assert_eq!(verdict(status, &error), by_error);
    assert_eq!(verdict(status, &json!({ "error": "no", "code": "no" })), by_gateway);
}

#[rstest]
#[case(405, json!({}))]
#[case(501, json!({}))]
#[case(404, json!({ "error": { "code": 404, "status": "NOT_FOUND", "message": "Not Found" } }))]
#[case(400, google(400, "UNSUPPORTED_OPERATION"))]
#[tokio::test]
async fn a2a_case_38_a_server_without_a_list_is_left_alone(#[case] status: u16, #[case] body: Value) {
    let script =
        Script::new(move |asked| answer(&asked.line, &asked.headers["host"], || said(status, &body))).await;
    let connector = script.connector(&Hand::new(), |_| {});
    for _ in 0..3 {
        assert!(!connector.list(None).await.unwrap().supported);
    }
    let lists = script.asked().iter().filter(|asked| asked.line.contains("/v1/tasks")).count();
    assert_eq!(lists, 1);
}

#[tokio::test]
async fn a_404_of_a_gateway_speaks_of_the_address() {
    let script = Script::new(|asked| {
        answer(&asked.line, &asked.headers["host"], || said(404, &json!({ "message": "no route" })))
    })
    .await;
    let connector = script.connector(&Hand::new(), |_| {});
    let task = crate::bridge::ports::TaskRef { task: "t".into(), context: None, seen_as: None };
    assert!(matches!(connector.read(&task).await, Err(ConnectorError::Configuration { .. })));
    assert!(matches!(connector.list(None).await, Err(ConnectorError::Configuration { .. })));
}

/// The card of a server that speaks HTTP+JSON only, and what else it says.
fn answer(line: &str, host: &str, other: impl Fn() -> Said) -> Said {
    if !line.contains("agent-card") {
        return other();
    }
    let interface = json!({ "url": format!("http://{host}/v1"), "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0" });
    said(200, &json!({ "name": "release", "supportedInterfaces": [interface] }))
}

#[test]
fn an_endpoint_without_a_card_is_json_rpc() {
    let at = Interface::at("https://rt.example/a2a".parse().unwrap());
    assert_eq!(at.binding, Binding::JsonRpc);
}

//! The operator API.

use super::*;
use crate::bridge::ports::{Seen, TaskReading, TaskState};
use crate::domain::audit::{AuditEntry, AuditRow, Verifier};
use crate::domain::audit_file::COLUMNS;
use crate::domain::form::{Fact, Form, Kind};
use crate::domain::ids::{InteractionKey, RuntimeName, Subject};
use crate::domain::interaction::End;
use rstest::rstest;
use serde_json::json;

const TASK: &str = r#"{"runtime":"prod","taskId":"t1","contextId":"c1"}"#;

async fn opens(doors: &Doors, task: &str, tool: &str) {
    let form = Form {
        kind: Kind::Approval,
        title: format!("ci / {tool}"),
        prompt: "Approve?".into(),
        facts: vec![Fact { label: "tool".into(), value: tool.into() }],
        questions: vec![],
        arguments_withheld: true,
    };
    let key = InteractionKey {
        runtime: RuntimeName::new("prod"),
        agent: "release".into(),
        task: task.into(),
        external: format!("eff_{task}"),
    };
    let owner = Some(Subject::parse("dana@example.com").unwrap());
    reads(doors, task, TaskState::Waiting(Box::new(Seen { key, form, owner }))).await;
}

async fn reads(doors: &Doors, task: &str, state: TaskState) {
    let reading = TaskReading {
        agent: "release".into(),
        task: task.into(),
        context: Some("ctx".into()),
        seen_as: None,
        began: doors.hand.now(),
        state,
        history: vec![],
    };
    doors.http.bridge.observe(&RuntimeName::new("prod"), reading, false).await.unwrap();
}

#[tokio::test]
async fn interactions_are_listed_open_or_all_in_pages() {
    let doors = Doors::open().await;
    for task in ["t1", "t2", "t3"] {
        opens(&doors, task, "deploy").await;
    }
    reads(&doors, "t2", TaskState::Ended(End::Canceled)).await;
    let open = doors.get("/api/v1/interactions").await.json();
    assert_eq!(open["next"], Value::Null);
    let tasks = |page: &Value| -> Vec<String> {
        page["interactions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["taskId"].as_str().unwrap().into())
            .collect()
    };
    assert_eq!(tasks(&open), ["t1", "t3"]);
    let first = &open["interactions"][0];
    assert_eq!(first["interaction"], "eff_t1");
    assert_eq!(first["contextId"], "ctx");
    assert_eq!(first["state"], "open");
    assert_eq!(first["kind"], "approval");
    assert_eq!(first["owner"], "dana@example.com");
    assert_eq!(first["openedAt"], Millis(START * 1000).rfc3339());
    assert_eq!(first["facts"], json!([{"label": "tool", "value": "deploy"}]));
    assert_eq!(first["cards"][0]["place"], "slack:acme:C0OPS");
    assert_eq!(first["cards"][0]["state"], "queued");
    assert_eq!(first["route"]["approvers"], json!(["release"]));
    assert_eq!(first["route"]["policy"].as_str().map(str::len), Some(64));
    assert_eq!(
        (&first["claim"], &first["votes"], &first["outcome"]),
        (&Value::Null, &json!([]), &Value::Null)
    );

    let mut seen = vec![];
    let mut next = String::new();
    for _ in 0..4 {
        let page = doors.get(&format!("/api/v1/interactions?state=all&limit=1{next}")).await.json();
        seen.extend(tasks(&page));
        let Some(cursor) = page["next"].as_str() else { break };
        next = format!("&cursor={cursor}");
    }
    assert_eq!(seen, ["t1", "t2", "t3"]);
    let all = doors.get("/api/v1/interactions?state=all").await.json();
    assert_eq!(all["interactions"][1]["outcome"], "canceled");
    assert_eq!(all["interactions"][1]["state"], "settled");
}

#[rstest]
#[case("/api/v1/interactions?state=closed", "state")]
#[case("/api/v1/interactions?limit=0", "limit")]
#[case("/api/v1/interactions?limit=201", "limit")]
#[case("/api/v1/interactions?limit=ten", "limit")]
#[case("/api/v1/interactions?cursor=t1", "cursor")]
#[case("/api/v1/interactions?State=open", "State")]
#[case("/api/v1/interactions?state=open&state=all", "state")]
#[case("/api/v1/audit?from=-1", "from")]
#[case("/api/v1/audit?from=99999999999999999999", "from")]
#[case("/api/v1/audit?limit=1001", "limit")]
#[case("/api/v1/audit?to=3", "to")]
#[tokio::test]
async fn bad_parameters_are_named(#[case] uri: &str, #[case] field: &str) {
    let got = Doors::open().await.get(uri).await;
    assert_eq!((got.status, got.json()["field"].clone()), (StatusCode::BAD_REQUEST, json!(field)));
}

#[rstest]
#[case::registered(TASK, 202, "")]
#[case::with_subject(
    r#"{"runtime":"prod","taskId":"t1","contextId":"c1","subject":"dana@example.com"}"#,
    202,
    ""
)]
#[case::no_subject(r#"{"runtime":"prod","taskId":"t1","contextId":"c1","subject":null}"#, 202, "")]
#[case::unknown_runtime(r#"{"runtime":"test","taskId":"t1","contextId":"c1"}"#, 422, "runtime")]
#[case::missing(r#"{"runtime":"prod","contextId":"c1"}"#, 422, "taskId")]
#[case::missing_context(r#"{"runtime":"prod","taskId":"t1"}"#, 422, "contextId")]
#[case::unknown_key(r#"{"runtime":"prod","taskId":"t1","contextId":"c1","owner":"dana"}"#, 422, "owner")]
#[case::snake_case(r#"{"runtime":"prod","task_id":"t1","contextId":"c1"}"#, 422, "task_id")]
#[case::twice(r#"{"runtime":"prod","taskId":"t1","taskId":"t2","contextId":"c1"}"#, 422, "taskId")]
#[case::number(r#"{"runtime":"prod","taskId":7,"contextId":"c1"}"#, 422, "taskId")]
#[case::empty(r#"{"runtime":"prod","taskId":"","contextId":"c1"}"#, 422, "taskId")]
#[case::control(r#"{"runtime":"prod","taskId":"t\n1","contextId":"c1"}"#, 422, "taskId")]
#[case::nul(r#"{"runtime":"prod","taskId":"t1","contextId":"\u0000"}"#, 422, "contextId")]
#[case::reserved(r#"{"runtime":"prod","taskId":"t1","contextId":"c1","subject":"host"}"#, 422, "subject")]
#[case::array("[]", 422, "")]
#[case::not_json(r#"{"runtime":"prod","#, 400, "")]
#[case::two(r#"{"runtime":"prod","taskId":"t1","contextId":"c1"} {}"#, 400, "")]
#[tokio::test]
async fn tasks_are_registered_strictly(#[case] body: &str, #[case] status: u16, #[case] field: &str) {
    let doors = Doors::open().await;
    let got = doors.post("/api/v1/tasks", body).await;
    assert_eq!(got.status.as_u16(), status, "{got:?}");
    if status == 202 {
        assert_eq!(got.json(), json!({"registered": true}));
        let tasks = doors.tasks().await;
        assert_eq!((tasks.len(), tasks[0].task.as_str(), tasks[0].context.as_deref()), (1, "t1", Some("c1")));
        assert_eq!(tasks[0].subject.is_some(), body.contains("dana"));
        return;
    }
    assert_eq!(got.json()["field"].as_str().unwrap_or_default(), field, "{}", got.text());
    assert_eq!(doors.tasks().await, []);
}

#[tokio::test]
async fn a_task_is_registered_once_however_often_and_only_as_json() {
    let doors = Doors::open().await;
    for _ in 0..3 {
        assert_eq!(doors.post("/api/v1/tasks", TASK).await.status, StatusCode::ACCEPTED);
    }
    assert_eq!(doors.tasks().await.len(), 1);
    let plain = as_operator(Method::POST, "/api/v1/tasks").header("content-type", "text/plain");
    let got = doors.send(plain.body(Body::from(TASK)).unwrap()).await;
    assert_eq!(got.status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    let unknown =
        doors.post("/api/v1/tasks", r#"{"runtime":"tset","taskId":"t","contextId":"c"}"#).await.json();
    assert!(unknown["detail"].as_str().unwrap().contains("\"tset\""), "{unknown}");
    let large = format!("{{\"runtime\":\"{}\"}}", "x".repeat(20_000));
    assert_eq!(doors.post("/api/v1/tasks", &large).await.status, StatusCode::PAYLOAD_TOO_LARGE);
}

#[tokio::test]
async fn the_audit_log_is_read_as_lines_that_verify_or_as_json() {
    let doors = Doors::open().await;
    for n in 0_u8..5 {
        let entry =
            AuditEntry { event: "link".into(), clicker: Some("slack:T:U".into()), ..AuditEntry::default() };
        let write = doors
            .http
            .bridge
            .store
            .write(move |tx| Box::pin(async move { tx.record(entry, Millis(START), [n; 16]).await }));
        write.await.unwrap();
    }
    let got = doors.get("/api/v1/audit?from=1").await;
    assert_eq!(got.header("content-type"), "application/x-ndjson");
    let rows: Vec<AuditRow> = got.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut verifier = Verifier::new(None);
    for row in &rows {
        verifier.push(row).unwrap();
    }
    assert_eq!(verifier.finish().unwrap().seq, 5);
    assert_eq!(doors.get("/api/v1/audit?from=4").await.text().lines().count(), 2);
    assert_eq!(doors.get("/api/v1/audit?from=6").await.text(), "");
    let request = as_operator(Method::GET, "/api/v1/audit?limit=2").header("accept", "application/json");
    let page = doors.send(request.body(Body::empty()).unwrap()).await.json();
    assert_eq!((page["rows"].as_array().unwrap().len(), &page["next"]), (2, &json!(3)));
    assert_eq!(page["rows"][0].as_object().unwrap().len(), COLUMNS.len());
}

#[tokio::test]
async fn only_the_operator_token_opens_the_api() {
    let doors = Doors::open().await;
    let close = format!("Bearer {}", &OPERATOR[..OPERATOR.len() - 1]);
    let longer = format!("Bearer {OPERATOR}x");
    let basic = format!("Basic {OPERATOR}");
    for uri in ["/api/v1/interactions", "/api/v1/audit", "/api/v1/openapi.json", "/metrics"] {
        for value in ["", "Bearer", "Bearer ", &close, &longer, &basic, OPERATOR] {
            let got = doors
                .send(request(Method::GET, uri).header("authorization", value).body(Body::empty()).unwrap());
            let got = got.await;
            assert_eq!(got.status, StatusCode::UNAUTHORIZED, "{uri} {value}");
            assert_eq!(got.header("www-authenticate"), "Bearer");
        }
        let none = doors.send(request(Method::GET, uri).body(Body::empty()).unwrap()).await;
        assert_eq!(none.status, StatusCode::UNAUTHORIZED, "{uri}");
        let twice = as_operator(Method::GET, uri).header("authorization", format!("Bearer {OPERATOR}"));
        assert_eq!(doors.send(twice.body(Body::empty()).unwrap()).await.status, StatusCode::UNAUTHORIZED);
        let lower = request(Method::GET, uri).header("authorization", format!("bearer {OPERATOR}"));
        assert_eq!(doors.send(lower.body(Body::empty()).unwrap()).await.status, StatusCode::OK, "{uri}");
    }
    let unauthorized = request(Method::POST, "/api/v1/tasks").header("content-type", "application/json");
    assert_eq!(
        doors.send(unauthorized.body(Body::from(TASK)).unwrap()).await.status,
        StatusCode::UNAUTHORIZED
    );
    assert_eq!(doors.tasks().await, []);
    let closed = Doors::with(None).await;
    for uri in ["/api/v1/interactions", "/metrics"] {
        let got = closed.get(uri).await;
        assert_eq!(got.status, StatusCode::FORBIDDEN, "{uri}");
        assert!(got.text().contains("server.operator_token"), "{got:?}");
    }
}

#[test]
fn the_checked_in_description_is_current() {
    let current = api::openapi::text();
    if api::openapi::CHECKED_IN != current {
        let path = std::env::temp_dir().join("countersign-openapi.json");
        std::fs::write(&path, current).unwrap();
        panic!("copy {} to src/http/openapi.json", path.display());
    }
}

#[tokio::test]
async fn the_description_names_every_route_and_nothing_that_answers() {
    let document = Doors::open().await.get("/api/v1/openapi.json").await.json();
    assert_eq!(document["openapi"], "3.1.0");
    let mut routes = vec![];
    for (path, methods) in document["paths"].as_object().unwrap() {
        routes.extend(methods.as_object().unwrap().keys().map(|method| format!("{method} {path}")));
    }
    assert_eq!(
        routes,
        ["get /api/v1/audit", "get /api/v1/interactions", "get /api/v1/openapi.json", "post /api/v1/tasks"]
    );
    let text = document.to_string();
    for part in text.split("\"$ref\":\"#").skip(1) {
        let pointer = part.split('"').next().unwrap();
        assert!(document.pointer(pointer).is_some(), "{pointer} is missing");
    }
}

//! The HTTP+JSON binding over a real socket: paths, errors in both styles, and what it shares with JSON-RPC.

use super::*;
use reqwest::Method;

async fn bed() -> Bed {
    let bed = Bed::new().await;
    bed.world.switch(|switches| switches.bindings = vec![Binding::HttpJson, Binding::JsonRpc]);
    bed
}

fn request(bed: &Bed, method: Method, path: &str) -> reqwest::RequestBuilder {
    bed.client
        .request(method, format!("{}/a2a/release/rest/{path}", bed.url))
        .header("A2A-Version", "1.0")
        .header("A2A-Extensions", INTERACTIONS_V1)
        .header("Accept", "application/json, application/a2a+json")
        .bearer_auth("dana-token")
}

async fn said(request: reqwest::RequestBuilder) -> (u16, String, Value) {
    let response = request.send().await.unwrap();
    let kind = response.headers().get("content-type").map(|kind| kind.to_str().unwrap().to_owned());
    let status = response.status().as_u16();
    (status, kind.unwrap_or_default(), response.json().await.unwrap_or(Value::Null))
}

async fn get(bed: &Bed, path: &str) -> (u16, Value) {
    let (status, _, body) = said(request(bed, Method::GET, path)).await;
    (status, body)
}

async fn send(bed: &Bed, path: &str, body: &Value) -> (u16, Value) {
    let request = request(bed, Method::POST, path).header("Content-Type", "application/a2a+json");
    let (status, _, body) = said(request.body(body.to_string())).await;
    (status, body)
}

fn reason(body: &Value) -> Option<&str> {
    body["error"]["details"][0]["reason"].as_str()
}

#[tokio::test]
async fn a_card_names_what_is_served_in_its_order_and_the_rest_is_not_there() {
    let bed = bed().await;
    let card = |bed: &Bed| bed.client.get(format!("{}/a2a/release/.well-known/agent-card.json", bed.url));
    let (_, _, body) = said(card(&bed)).await;
    let named = |at: usize| body["supportedInterfaces"][at]["protocolBinding"].clone();
    assert_eq!((named(0), named(1)), (json!("HTTP+JSON"), json!("JSONRPC")));
    assert_eq!(body["supportedInterfaces"][0]["url"], format!("{}/a2a/release/rest", bed.url));
    bed.world.switch(|switches| switches.bindings = vec![Binding::JsonRpc]);
    assert_eq!(get(&bed, "tasks").await.0, 404);
    assert_eq!(get(&bed, "tasks").await.1["code"], "agent_not_found");
}

/// A2A case 4, over HTTP+JSON.
#[tokio::test]
async fn a2a_case_4_versions_over_rest() {
    let bed = bed().await;
    let opened = bed.world.open(approval());
    let ask = async |method: Method, path: &str, version: Option<&str>| {
        let mut request = bed
            .client
            .request(method, format!("{}/a2a/release/rest/{path}", bed.url))
            .bearer_auth("dana-token");
        if let Some(version) = version {
            request = request.header("A2A-Version", version);
        }
        let (status, _, body) = said(request).await;
        (status, body)
    };
    let task = format!("tasks/{}", opened.task_id);
    for (method, path) in [(Method::GET, task.as_str()), (Method::GET, "tasks"), (Method::GET, "nothing")] {
        for version in [None, Some(""), Some("0.3"), Some("1.1"), Some("2.0")] {
            let (status, body) = ask(method.clone(), path, version).await;
            assert_eq!((status, reason(&body)), (400, Some("VERSION_NOT_SUPPORTED")), "{path} {version:?}");
        }
    }
    assert_eq!(ask(Method::GET, &task, Some("1.0.1")).await.1["id"], opened.task_id);
    assert_eq!(ask(Method::GET, &format!("{task}?A2A-Version=1.0"), None).await.1["id"], opened.task_id);
}

/// A2A case 5, over HTTP+JSON.
#[tokio::test]
async fn a2a_case_5_what_is_no_request_over_rest() {
    let bed = bed().await;
    for body in ["{not json", "[]", "\"text\""] {
        let request = request(&bed, Method::POST, "message:send").header("Content-Type", "application/json");
        let (status, _, body) = said(request.body(body)).await;
        assert_eq!((status, &body["error"]["status"]), (400, &json!("INVALID_ARGUMENT")), "{body}");
    }
    for path in ["tasks/get", "tasks/x/y", "message:read", "tasks:all"] {
        let (status, body) = send(&bed, path, &json!({})).await;
        assert_eq!((status, &body["error"]["code"]), (404, &json!(404)), "{path}: {body}");
    }
    let plain = request(&bed, Method::POST, "message:send").header("Content-Type", "text/plain").body("{}");
    assert_eq!(said(plain).await.0, 415);
}

#[tokio::test]
async fn an_answer_its_repetition_and_its_refusals() {
    let bed = bed().await;
    let opened = bed.world.open(approval());
    let (status, body) = send(&bed, "message:send", &text(&opened, "m-0", "yes")).await;
    assert_eq!((status, reason(&body)), (400, Some("UNSUPPORTED_OPERATION")));
    for _ in 0..2 {
        let (status, body) = send(&bed, "message:send", &approve(&opened, "m-1")).await;
        assert_eq!((status, &body["task"]["status"]["state"]), (200, &json!("TASK_STATE_WORKING")));
    }
    let other = answer(&opened, "m-1", json!({"approved": false}), json!({"approved": false}));
    let (status, body) = send(&bed, "message:send", &other).await;
    assert_eq!((status, reason(&body)), (400, Some("INVALID_PARAMS")));
    assert_eq!(body["error"]["details"][1]["fieldViolations"][0]["field"], "message.messageId");
    assert_eq!(bed.answers(&opened).len(), 1);
    assert_eq!(bed.answers(&opened)[0].approved_by, "dana@example.com");
    let record = bed.world.requests().pop().unwrap();
    assert_eq!(record.method, "SendMessage");
    assert_eq!(record.param("/message/messageId"), Some(&json!("m-1")));
    let (status, body) = send(&bed, &format!("tasks/{}:cancel", opened.task_id), &json!({})).await;
    assert_eq!((status, &body["status"]["state"]), (200, &json!("TASK_STATE_CANCELED")));
}

#[tokio::test]
async fn queries_are_typed_known_and_given_once() {
    let bed = bed().await;
    let opened = bed.world.open(approval());
    let (status, body) =
        get(&bed, "tasks?status=TASK_STATE_AUTH_REQUIRED&pageSize=1&includeArtifacts=false&historyLength=0")
            .await;
    assert_eq!((status, &body["tasks"][0]["id"]), (200, &json!(opened.task_id)), "{body}");
    for query in ["pageSize=0", "pageSize=101", "pageSize=ten", "pageSize=1&pageSize=1", "colour=red"] {
        let (status, body) = get(&bed, &format!("tasks?{query}")).await;
        assert_eq!((status, reason(&body)), (400, Some("INVALID_PARAMS")), "{query}: {body}");
    }
    let (status, body) = get(&bed, "tasks/t1.no.such").await;
    assert_eq!((status, reason(&body)), (404, Some("TASK_NOT_FOUND")));
}

#[tokio::test]
async fn a_tenant_is_the_first_segment_of_the_path() {
    let bed = bed().await;
    let opened = bed.world.open(approval());
    bed.world.set_card("release", CardSpec { tenant: Some("a c/me".into()), ..CardSpec::default() });
    assert_eq!(get(&bed, &format!("tasks/{}", opened.task_id)).await.0, 400);
    let (_, body) = get(&bed, &format!("a%20c%2Fme/tasks/{}", opened.task_id)).await;
    assert_eq!(body["id"], opened.task_id);
    assert_eq!(get(&bed, &format!("tasks/{}?tenant=a%20c%2Fme", opened.task_id)).await.0, 400);
    let mut sent = approve(&opened, "m-1");
    sent["tenant"] = "another".into();
    assert_eq!(send(&bed, "a%20c%2Fme/message:send", &sent).await.0, 400);
    assert!(bed.answers(&opened).is_empty());
    sent["tenant"] = "a c/me".into();
    assert_eq!(send(&bed, "a%20c%2Fme/message:send", &sent).await.0, 200);
}

#[tokio::test]
async fn errors_are_problems_where_the_world_says_so() {
    let bed = bed().await;
    bed.world.switch(|switches| switches.errors = ErrorStyle::ProblemJson);
    let (status, kind, body) = said(request(&bed, Method::GET, "tasks/t1.no.such")).await;
    assert_eq!((status, kind.as_str()), (404, "application/problem+json"));
    assert_eq!(body["type"], "https://a2a-protocol.org/errors/task-not-found");
    let anybody = bed.client.get(format!("{}/a2a/release/rest/tasks", bed.url)).header("A2A-Version", "1.0");
    assert_eq!(said(anybody).await.0, 401);
}

//! The stand-in over a real socket, as a client sees it. Cases are those of the conformance list.

mod answers;
mod callers;
mod listing;
mod protocol;
mod rest;
mod scripts;
mod shapes;
mod trouble;

use super::*;
use crate::net;
use crate::sandbox::time::Time;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::task::JoinSet;

const START_MS: i64 = 1_796_029_200_000;
const KEY: &str = "6b6579";

/// A served world and a client; ends with the test.
struct Bed {
    world: Arc<A2aWorld>,
    url: String,
    client: reqwest::Client,
    _server: JoinSet<()>,
}

fn setup() -> Setup {
    Setup {
        auth: vec![
            AuthMode::Header { name: "Nylorun-Subject".into(), key: KEY.into() },
            AuthMode::Bearer { tokens: BTreeMap::from([("dana-token".into(), "dana@example.com".into())]) },
        ],
        watchers: BTreeMap::from([
            ("watch-all".into(), Watch::All),
            ("watch-dana".into(), Watch::Subject("dana@example.com".into())),
        ]),
        time: Time::manual(START_MS),
        seed: Some("s".into()),
        ..Setup::default()
    }
}

async fn serve(app: Router) -> (String, JoinSet<()>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let mut server = JoinSet::new();
    server.spawn(async move { axum::serve(listener, app).await.unwrap() });
    (url, server)
}

impl Bed {
    async fn new() -> Self {
        Self::with(setup()).await
    }

    async fn with(setup: Setup) -> Self {
        let world = A2aWorld::new(setup);
        let (url, server) = serve(router(Arc::clone(&world))).await;
        let limits = net::Limits { connect: Duration::from_secs(2), total: Duration::from_secs(20) };
        Self { world, url, client: net::client(limits).unwrap(), _server: server }
    }

    /// A POST to agent `release` as Dana, with everything right; change what the test is about.
    fn post(&self) -> reqwest::RequestBuilder {
        self.client
            .post(format!("{}/a2a/release", self.url))
            .header("A2A-Version", "1.0")
            .header("A2A-Extensions", INTERACTIONS_V1)
            .header("Content-Type", "application/json")
    }

    /// One call as a subject (by key and headers); the whole JSON-RPC answer.
    async fn call_as(&self, subject: &str, method: &str, params: Value) -> Value {
        let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
        let request = self
            .post()
            .bearer_auth(KEY)
            .header("Nylorun-Subject", subject)
            .header("Nylorun-Scopes", "sessions:own");
        let response = request.body(body.to_string()).send().await.unwrap();
        assert_eq!(response.status(), 200);
        let answer: Value = response.json().await.unwrap();
        assert_eq!(answer["id"], 7);
        answer
    }

    async fn call(&self, method: &str, params: Value) -> Value {
        self.call_as("dana@example.com", method, params).await
    }

    async fn state(&self, opened: &Opened) -> String {
        let answer = self.call("GetTask", json!({"id": opened.task_id})).await;
        answer["result"]["status"]["state"].as_str().unwrap().to_owned()
    }

    fn answers(&self, opened: &Opened) -> Vec<Accepted> {
        self.world.interaction(&opened.interaction_id).unwrap().answers
    }
}

/// An answer message: metadata members beside the id, and one data part.
fn answer(opened: &Opened, message_id: &str, members: Value, data: impl Into<Value>) -> Value {
    let mut metadata = members;
    metadata["interactionId"] = opened.interaction_id.as_str().into();
    json!({"message": {"role": "ROLE_USER", "messageId": message_id, "taskId": opened.task_id,
        "contextId": opened.context_id, "extensions": [INTERACTIONS_V1], "parts": [{"data": data.into()}],
        "metadata": {INTERACTIONS_V1: metadata}},
        "configuration": {"returnImmediately": true, "historyLength": 0}})
}

fn approve(opened: &Opened, message_id: &str) -> Value {
    answer(opened, message_id, json!({"approved": true}), json!({"approved": true}))
}

fn text(opened: &Opened, message_id: &str, text: &str) -> Value {
    json!({"message": {"role": "ROLE_USER", "messageId": message_id, "taskId": opened.task_id,
        "contextId": opened.context_id, "parts": [{"text": text}]},
        "configuration": {"returnImmediately": true}})
}

fn approval() -> Open {
    Open::new("dana@example.com", Ask::approval("pager", "close_incident"))
}

#[track_caller]
fn refused(answer: &Value, code: i64) {
    assert_eq!(answer["error"]["code"], code, "{answer}");
    assert!(answer.get("result").is_none(), "{answer}");
}

#[track_caller]
fn refused_field(answer: &Value, field: &str) {
    refused(answer, -32602);
    let details = answer["error"]["data"].as_array().unwrap();
    assert_eq!(details[0]["reason"], "INVALID_PARAMS");
    assert_eq!(details[1]["@type"], "type.googleapis.com/google.rpc.BadRequest");
    assert_eq!(details[1]["fieldViolations"][0]["field"], field, "{answer}");
}

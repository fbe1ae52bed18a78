//! What other people's programs say about ours. What they say about every Slack payload of every story is asked at
//! the end of each story (`world::outside::slackblocks_accepts`).

use crate::world::outside::{A2aSdkClient, SlackSdk};
use axum::http::HeaderMap;
use countersign::chat::slack::{Verifier, sign};
use countersign::domain::clock::Millis;
use countersign::net;
use countersign::sandbox::a2a::{
    self, A2aWorld, Ask, AuthMode, Foreign, INTERACTIONS_V1, Open, Setup, Watch,
};
use countersign::sandbox::slack::signature;
use rstest::rstest;
use secrecy::SecretString;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

const SECRET: &str = "8f742231b10e8888abcd99yyyzzz85a5";
const AT: i64 = 1_796_029_200;
/// Slack case 1: form bytes with `*`, `+` and `%20`, and text that is not ASCII.
const BODY: &str = "payload=%7B%22type%22%3A%22block_actions%22%7D&text=a*b+c%20d&name=J\u{fc}rgen";

#[test]
fn slack_sdk_accepts_what_we_and_the_stand_in_sign() {
    let mut judge = SlackSdk::start();
    let ours = sign(&SecretString::from(SECRET), AT, BODY.as_bytes());
    let stand_ins = signature(SECRET, &AT.to_string(), BODY.as_bytes());
    for signed in [&ours, &stand_ins] {
        assert!(judge.accepts(SECRET, AT, BODY, signed, AT));
        assert!(!judge.accepts(SECRET, AT, &BODY.replace('+', "%20"), signed, AT));
        assert!(!judge.accepts("another", AT, BODY, signed, AT));
    }
}

/// Slack cases 1, 2 and 3 by other hands: the same requests, the same verdicts.
#[rstest]
#[case::now(0, true)]
#[case::oldest(300, true)]
#[case::too_old(301, false)]
#[case::ahead(-300, true)]
#[case::too_far_ahead(-301, false)]
fn we_judge_as_slack_sdk_does(#[case] later: i64, #[case] accepted: bool) {
    let mut judge = SlackSdk::start();
    let signed = judge.sign(SECRET, AT, BODY);
    let verifier = Verifier::new(&SecretString::from(SECRET), None).unwrap();
    let now = AT + later;
    let ours = |signature: &str, body: &str| {
        let mut headers = HeaderMap::new();
        headers.insert("x-slack-request-timestamp", AT.to_string().parse().unwrap());
        headers.insert("x-slack-signature", signature.parse().unwrap());
        verifier.verify(&headers, body.as_bytes(), Millis(now * 1000)).is_ok()
    };
    assert_eq!(judge.accepts(SECRET, AT, BODY, &signed, now), accepted);
    assert_eq!(ours(&signed, BODY), accepted);
    let other = judge.sign("another secret", AT, BODY);
    for (signature, body) in [(other.as_str(), BODY), (&signed, "payload=%7B%7D"), (&signed[..40], BODY)] {
        assert!(!judge.accepts(SECRET, AT, body, signature, now));
        assert!(!ours(signature, body));
    }
}

/// A2A cases 13, 14, 22, 24, 25, 30 and 55, server side: the official client reads our stand-in and means the same.
#[rstest]
#[tokio::test]
async fn the_official_client_understands_our_stand_in(
    #[values(a2a::Binding::JsonRpc, a2a::Binding::HttpJson)] binding: a2a::Binding,
) {
    net::init();
    let world = A2aWorld::new(Setup {
        auth: vec![AuthMode::Header { name: "Nylorun-Subject".into(), key: "key".into() }],
        watchers: BTreeMap::from([("watch".to_owned(), Watch::All)]),
        ..Setup::default()
    });
    world.switch(|switches| {
        switches.foreign = Foreign::Allowed;
        switches.bindings = vec![binding];
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = a2a::router(Arc::clone(&world));
    #[expect(clippy::disallowed_methods, reason = "a test's own server; it ends with the test's runtime")]
    tokio::spawn(async move { axum::serve(listener, router).await });
    // The judge is a blocking child: the server needs this thread.
    tokio::task::spawn_blocking(move || {
        let named = if binding == a2a::Binding::JsonRpc { "JSONRPC" } else { "HTTP+JSON" };
        official_client(&world, &format!("http://{address}/a2a/release"), named);
    })
    .await
    .unwrap();
}

fn official_client(world: &A2aWorld, url: &str, binding: &str) {
    let mut client = A2aSdkClient::start(url, binding);
    let extension = json!({ "A2A-Extensions": INTERACTIONS_V1 });
    let with = |more: Value| {
        let mut headers = extension.clone();
        headers.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        headers
    };
    let watcher = with(json!({ "Authorization": "Bearer watch" }));
    let dana = with(json!({
        "Authorization": "Bearer key", "Nylorun-Subject": "dana@example.com", "Nylorun-Scopes": "sessions:own",
    }));
    let card = client.ask(&json!({ "do": "card" }));
    assert_eq!(card["result"]["supportedInterfaces"][0]["protocolBinding"], binding, "{card}");

    let open = world.open(Open::new("owner@example.com", Ask::approval("ci", "deploy")));
    let asked =
        json!({ "do": "list", "status": "TASK_STATE_AUTH_REQUIRED", "pageSize": 10, "headers": watcher });
    let listed = client.ask(&asked);
    let task = &listed["result"]["tasks"][0];
    assert_eq!(task["id"], open.task_id.as_str(), "{listed}");
    let shown = &task["status"]["message"]["metadata"][INTERACTIONS_V1];
    assert_eq!(shown["interactionId"], open.interaction_id.as_str());
    assert_eq!(shown["detail"]["tool"], "deploy");

    let answer = |message_id: &str, interaction: &str, approved: bool| {
        let metadata = json!({ INTERACTIONS_V1: { "interactionId": interaction, "approved": approved } });
        json!({ "do": "send", "headers": dana, "message": {
            "role": "ROLE_USER", "messageId": message_id, "taskId": open.task_id, "contextId": open.context_id,
            "extensions": [INTERACTIONS_V1], "parts": [{ "data": { "approved": approved } }], "metadata": metadata,
        }})
    };
    let said = client.ask(&answer("m1", "another", true));
    assert_eq!(said["error"]["type"], "UnsupportedOperationError", "{said}");
    for _ in 0..2 {
        let said = client.ask(&answer("m2", &open.interaction_id, true));
        assert_eq!(said["result"][0]["task"]["status"]["state"], "TASK_STATE_WORKING", "{said}");
    }
    assert_eq!(client.ask(&answer("m2", &open.interaction_id, false))["error"]["type"], "InvalidParamsError");
    assert_eq!(
        client.ask(&answer("m3", &open.interaction_id, true))["error"]["type"],
        "UnsupportedOperationError"
    );
    let unknown = client.ask(&json!({ "do": "get", "taskId": "none", "headers": watcher }));
    assert_eq!(unknown["error"]["type"], "TaskNotFoundError", "{unknown}");

    let owner = with(json!({
        "Authorization": "Bearer key", "Nylorun-Subject": "owner@example.com", "Nylorun-Scopes": "sessions:own",
    }));
    let canceled = client.ask(&json!({ "do": "cancel", "taskId": open.task_id, "headers": owner }));
    assert_eq!(canceled["result"]["status"]["state"], "TASK_STATE_CANCELED", "{canceled}");
    let late = client.ask(&answer("m4", &open.interaction_id, true));
    assert_eq!(late["error"]["type"], "UnsupportedOperationError", "{late}");
}

//! The stories that need no switch of the stand-in, against a server made with the official Python
//! `a2a-sdk`: transport and data shapes by other hands.
//!
//! This file is two modules: `story_a2a_sdk` over JSON-RPC, `story_a2a_sdk_over_rest` over HTTP+JSON.

use crate::world::database::Backend;
use crate::world::outside::A2aSdkServer;
use crate::world::story::{DANA, KIM, RELEASES, Story, Wants};
use countersign::sandbox::slack::Message;
use rstest::rstest;
use serde_json::{Value, json};
use std::time::Duration;

/// A story whose runtime is the sdk's server.
struct Sdk {
    story: Story,
    server: A2aSdkServer,
}

impl Sdk {
    async fn begin(on: Backend, foreign: &str) -> Self {
        let (binding, below) =
            if module_path!().ends_with("_over_rest") { ("HTTP+JSON", "rest") } else { ("JSONRPC", "a2a") };
        let server = A2aSdkServer::start(&["--foreign", foreign, "--binding", binding]);
        let runtime = format!(
            r#"
[[runtime]]
name = "prod"
kind = "a2a"
endpoint = "{}/{below}"
token = {{ env = "SDK_KEY" }}
agent = "release"
answer_with = "subject_header"
"#,
            server.base
        );
        let story = Story::with(on, Wants { whole_runtime: Some(runtime), ..Wants::default() }).await;
        Self { story, server }
    }

    async fn asked(&self, tool: &str) -> (Value, Message) {
        let ask = self
            .server
            .opens(json!({
                "owner": DANA, "kind": "approval", "prompt": format!("Approve ci / {tool}?"),
                "detail": { "server": "ci", "tool": tool },
            }))
            .await;
        self.story.tick().await;
        (ask, self.story.card(RELEASES))
    }

    /// Who answered an interaction, and with what, as the server recorded it.
    async fn recorded(&self, ask: &Value) -> (Option<String>, Option<bool>) {
        let dump = self.server.dump().await;
        let interaction = &dump["interactions"][ask["interactionId"].as_str().unwrap()];
        (interaction["approvedBy"].as_str().map(ToOwned::to_owned), interaction["approved"].as_bool())
    }

    async fn sent(&self) -> usize {
        let dump = self.server.dump().await;
        let requests = dump["requests"].as_array().unwrap();
        requests.iter().filter(|request| request["operation"] == "SendMessage").count()
    }
}

#[rstest]
#[tokio::test]
async fn an_approval_and_a_denial(
    #[values("allowed", "not-found")] foreign: &str,
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
) {
    let sdk = Sdk::begin(on, foreign).await;
    let (ask, card) = sdk.asked("deploy_service").await;
    sdk.story.presses("U0DANA", &card, "Approve").await;
    sdk.story.deliver().await;
    assert_eq!(sdk.recorded(&ask).await.0.as_deref(), Some(DANA), "{:#}", sdk.server.dump().await);
    assert!(sdk.story.reads(&card).contains("approved by"), "{}", sdk.story.reads(&card));
    sdk.story.pass(Duration::from_secs(2)).await;
    let (other, card) = sdk.asked("restart").await;
    sdk.story.presses("U0DANA", &card, "Deny").await;
    sdk.story.deliver().await;
    assert_eq!(sdk.recorded(&other).await.0.as_deref(), Some(DANA));
    assert!(sdk.story.reads(&card).contains("denied by"));
    assert_eq!(sdk.sent().await, 2);
    sdk.story.end().await;
}

#[rstest]
#[tokio::test]
async fn only_the_owner_may_answer_there() {
    let sdk = Sdk::begin(Backend::Sqlite, "not-found").await;
    let (ask, card) = sdk.asked("deploy_service").await;
    sdk.story.presses("U0KIM", &card, "Approve").await;
    sdk.story.deliver().await;
    sdk.story.pass(Duration::from_secs(3)).await;
    assert_eq!(sdk.recorded(&ask).await.0, None);
    assert_eq!(sdk.story.told("U0KIM").len(), 1);
    assert_eq!(sdk.story.buttons(&card), ["Approve", "Deny", "Deny with reason…"]);
    sdk.story.end().await;
}

#[rstest]
#[tokio::test]
async fn somebody_else_may_answer_there() {
    let sdk = Sdk::begin(Backend::Sqlite, "allowed").await;
    let (ask, card) = sdk.asked("deploy_service").await;
    sdk.story.presses("U0KIM", &card, "Approve").await;
    sdk.story.deliver().await;
    assert_eq!(sdk.recorded(&ask).await.0.as_deref(), Some(KIM));
    sdk.story.end().await;
}

#[rstest]
#[tokio::test]
async fn two_people_at_once_and_the_same_click_twice() {
    let sdk = Sdk::begin(Backend::Sqlite, "allowed").await;
    let (ask, card) = sdk.asked("deploy_service").await;
    tokio::join!(sdk.story.presses("U0DANA", &card, "Approve"), sdk.story.presses("U0KIM", &card, "Deny"));
    sdk.story.presses("U0DANA", &card, "Approve").await;
    sdk.story.deliver().await;
    assert_eq!(sdk.sent().await, 1);
    assert!(sdk.recorded(&ask).await.0.is_some());
    sdk.story.end().await;
}

#[rstest]
#[case("canceled", "canceled")]
#[case("failed", "failed")]
#[case("rejected", "rejected")]
#[case("completed", "elsewhere")]
#[case("working", "elsewhere")]
#[tokio::test]
async fn it_ends_there(#[case] state: &str, #[case] word: &str) {
    let sdk = Sdk::begin(Backend::Sqlite, "allowed").await;
    let (ask, card) = sdk.asked("deploy_service").await;
    sdk.server.ends(ask["taskId"].as_str().unwrap(), state).await;
    sdk.story.tick().await;
    let shown = sdk.story.reads(&card);
    assert!(shown.contains(word), "{shown}");
    assert!(sdk.story.buttons(&card).is_empty());
    sdk.story.end().await;
}

#[rstest]
#[tokio::test]
async fn canceled_while_a_click_is_under_way() {
    let sdk = Sdk::begin(Backend::Sqlite, "allowed").await;
    let (ask, card) = sdk.asked("deploy_service").await;
    sdk.story.presses("U0DANA", &card, "Approve").await;
    sdk.server.ends(ask["taskId"].as_str().unwrap(), "canceled").await;
    sdk.story.deliver().await;
    assert_eq!(sdk.recorded(&ask).await.0, None);
    assert!(sdk.story.reads(&card).contains("canceled"));
    sdk.story.end().await;
}

#[rstest]
#[tokio::test]
async fn answered_in_the_product_first() {
    let sdk = Sdk::begin(Backend::Sqlite, "allowed").await;
    let (ask, card) = sdk.asked("deploy_service").await;
    let task = ask["taskId"].as_str().unwrap();
    sdk.server
        .answers_itself(json!({ "taskId": task, "subject": "product@example.com", "approved": true }))
        .await;
    sdk.story.presses("U0DANA", &card, "Deny").await;
    sdk.story.deliver().await;
    let shown = sdk.story.reads(&card);
    assert!(!shown.contains("denied"), "{shown}");
    assert!(sdk.story.buttons(&card).is_empty());
    assert_eq!(sdk.story.told("U0DANA").len(), 1);
    sdk.story.end().await;
}

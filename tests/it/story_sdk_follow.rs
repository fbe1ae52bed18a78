//! Streams and calls of a server made with the official Python `a2a-sdk`, in both bindings.

use crate::world::database::Backend;
use crate::world::outside::A2aSdkServer;
use crate::world::story::{DANA, RELEASES, Story, Wants};
use countersign::sandbox::a2a::Opened;
use countersign::sandbox::slack::Message;
use rstest::rstest;
use serde_json::{Value, json};

struct Sdk {
    story: Story,
    server: A2aSdkServer,
}

impl Sdk {
    async fn begin(on: Backend, binding: &str, streaming: &str) -> Self {
        let server =
            A2aSdkServer::start(&["--foreign", "allowed", "--binding", binding, "--streaming", streaming]);
        let below = if binding == "JSONRPC" { "a2a" } else { "rest" };
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

    /// An interaction in a new task, or in this one.
    async fn opens(&self, tool: &str, task: Option<&str>) -> Value {
        let mut ask = json!({
            "owner": DANA, "kind": "approval", "prompt": format!("Approve ci / {tool}?"),
            "detail": { "server": "ci", "tool": tool },
        });
        if let Some(task) = task {
            ask["taskId"] = task.into();
        }
        self.server.opens(ask).await
    }

    /// Waits for a card about this tool that is open; nobody looks into the list for it.
    async fn card(&self, tool: &str) -> Message {
        let open =
            || {
                self.story.slack.cards(RELEASES).into_iter().find(|card| {
                    self.story.reads(card).contains(tool) && !self.story.buttons(card).is_empty()
                })
            };
        self.story.in_time(tool, || open().is_some()).await;
        open().unwrap()
    }

    async fn approved_by(&self, ask: &Value) -> Value {
        let dump = self.server.dump().await;
        dump["interactions"][ask["interactionId"].as_str().unwrap()]["approvedBy"].clone()
    }

    /// Whether a configuration of ours was confirmed, and how many there are.
    async fn hooks(&self) -> (usize, usize) {
        let store = &self.story.service.bridge.store;
        let hooks = store.read(|tx| Box::pin(async move { tx.hooks_of("prod").await })).await.unwrap();
        (hooks.iter().filter(|hook| hook.live).count(), hooks.len())
    }
}

/// A2A case 42: the stream tells of every question and of the end, and nothing is listed in between.
#[rstest]
#[tokio::test]
async fn a_stream_of_the_official_server(
    #[values("JSONRPC", "HTTP+JSON")] binding: &str,
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
) {
    let sdk = Sdk::begin(on, binding, "yes").await;
    let first = sdk.opens("deploy_one", None).await;
    sdk.story.tick().await;
    // Registered, it is followed for as long as it goes on.
    let text = |at: &str| first[at].as_str().unwrap().to_owned();
    let opened = Opened {
        task_id: text("taskId"),
        context_id: text("contextId"),
        interaction_id: text("interactionId"),
        queued: vec![],
    };
    sdk.story.registers(&opened, None).await;
    let following = sdk.story.follows();
    let task = first["taskId"].as_str().unwrap();
    let card = sdk.card("deploy_one").await;
    sdk.story.presses("U0DANA", &card, "Approve").await;
    sdk.story.in_time("approved", || sdk.story.reads(&card).contains("approved by")).await;
    assert_eq!(sdk.approved_by(&first).await, DANA);
    // Each is asked after the one before has been seen: the stream tells of it.
    let mut last = card;
    for tool in ["deploy_two", "deploy_three"] {
        let ask = sdk.opens(tool, Some(task)).await;
        last = sdk.card(tool).await;
        if tool == "deploy_two" {
            sdk.story.presses("U0KIM", &last, "Deny").await;
            sdk.story.in_time("denied", || sdk.story.reads(&last).contains("denied by")).await;
            assert_eq!(sdk.approved_by(&ask).await, "kim@example.com");
        }
    }
    sdk.server.ends(task, "canceled").await;
    sdk.story.in_time("canceled", || sdk.story.reads(&last).contains("canceled")).await;
    let dump = sdk.server.dump().await;
    let listed =
        dump["requests"].as_array().unwrap().iter().filter(|one| one["operation"] == "ListTasks").count();
    assert_eq!(listed, 2, "one pass at the beginning, none since");
    drop(following);
    sdk.story.end().await;
}

/// A2A cases 56, 57 and 59: asked to call, it calls with what it was given, and is asked no more after the end.
#[rstest]
#[tokio::test]
async fn calls_of_the_official_server(
    #[values("JSONRPC", "HTTP+JSON")] binding: &str,
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
) {
    let sdk = Sdk::begin(on, binding, "no").await;
    let first = sdk.opens("deploy_one", None).await;
    sdk.story.tick().await;
    let following = sdk.story.follows();
    let card = sdk.card("deploy_one").await;
    for _ in 0..500 {
        if sdk.hooks().await.0 == 1 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert_eq!(sdk.hooks().await, (1, 1));
    let task = first["taskId"].as_str().unwrap();
    sdk.server.ends(task, "failed").await;
    sdk.story.in_time("failed", || sdk.story.reads(&card).contains("failed")).await;
    let store = &sdk.story.service.bridge.store;
    for _ in 0..500 {
        if store.read(|tx| Box::pin(async move { tx.count_hooks("prod").await })).await.unwrap() == 0 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert_eq!(store.read(|tx| Box::pin(async move { tx.count_hooks("prod").await })).await.unwrap(), 0);
    drop(following);
    sdk.story.end().await;
}

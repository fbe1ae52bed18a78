//! Slack conformance cases over the whole system, one test each. On SQLite, unless the database is what matters.

mod cards;
mod inbound;
mod people;
mod sockets;

use crate::world::database::Backend;
use crate::world::story::{DANA, RELEASES, Story, Wants};
use countersign::net::Limits;
use countersign::sandbox::a2a::{Ask, Open, Opened};
use countersign::sandbox::faults::Fault;
use countersign::sandbox::slack::{Message, Spot, acme, signature};
use serde_json::Value;
use std::time::Duration;

pub(super) async fn begin() -> Story {
    Story::begin(Backend::Sqlite).await
}

pub(super) async fn with(wants: Wants) -> Story {
    Story::with(Backend::Sqlite, wants).await
}

/// Short limits, so that an answer that never comes is given up quickly in real time.
pub(super) fn hasty() -> Wants {
    Wants {
        limits: Limits { connect: Duration::from_millis(500), total: Duration::from_millis(400) },
        ..Wants::default()
    }
}

pub(super) const LOST: Fault = Fault::Lost { ms: 3000 };

pub(super) fn refuse(code: &str) -> Fault {
    Fault::Refuse { error: code.into() }
}

pub(super) fn status(code: u16) -> Fault {
    Fault::Status { code, retry_after: None, body: None }
}

/// A press of Approve by Dana, not delivered yet.
pub(super) fn press(story: &Story, card: &Message) -> Value {
    story.slack.pressed("U0DANA", &Spot::message(&card.channel, &card.ts), "Approve").unwrap()
}

/// The signature over `signed`, sent with `body`.
pub(super) async fn post(story: &Story, signed: &[u8], body: &[u8]) -> u16 {
    let timestamp = (story.now().0 / 1000).to_string();
    let signature = signature(acme::SIGNING_SECRET, &timestamp, signed);
    let headers = [
        ("content-type", "application/x-www-form-urlencoded"),
        ("x-slack-request-timestamp", timestamp.as_str()),
        ("x-slack-signature", signature.as_str()),
    ];
    story.http("POST", "/slack/interactivity", &headers, body.to_vec()).await.0
}

/// All text of a message, as Slack stores it.
pub(super) fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::Array(items) => items.iter().flat_map(texts).collect(),
        Value::Object(object) => object
            .iter()
            .flat_map(|(key, inner)| match inner {
                Value::String(text) if key == "text" => vec![text.clone()],
                _ => texts(inner),
            })
            .collect(),
        _ => vec![],
    }
}

pub(super) async fn asked_with(story: &Story, ask: Ask) -> (Opened, Message) {
    let opened = story.a2a.open(Open::new(DANA, ask));
    story.tick().await;
    (opened, story.card(RELEASES))
}

/// A second install of the same app, in another workspace.
pub(super) const BETA: &str = r#"
[[slack]]
name = "beta"
bot_token = { env = "BETA" }
signing_secret = { env = "SIGNING" }
api_url = "http://SANDBOX/slack/api"
"#;

pub(super) const BETA_ROUTES: &str = r#"
[[group]]
name = "release"
subjects = ["dana@example.com", "kim@example.com"]

[[person]]
subject = "dana@example.com"
slack = ["acme:U0DANA"]

[[person]]
subject = "ora@example.com"
slack = ["org:W0WIM"]

[[route]]
when = { runtime = "prod", tool = "beta_*" }
to = ["slack:beta:C0BETA"]
approvers = ["release"]

[[route]]
when = { runtime = "prod", tool = "org_*" }
to = ["slack:org:C0SOUTH"]
approvers = ["release"]

[[route]]
when = { runtime = "prod" }
to = ["slack:acme:#releases"]
approvers = ["release"]
"#;

/// A story with the installs `beta` and `org` beside `acme`.
pub(super) async fn three_installs() -> Story {
    let mut story = begin().await;
    let at = story.sandbox.to_string();
    let beta = BETA.replace("SANDBOX", &at);
    let org = beta.replace("beta", "org").replace("BETA", "ORG");
    let routes = BETA_ROUTES.replace("\"kim@example.com\"", "\"ora@example.com\"");
    story
        .restart_with(|config| {
            let (head, _) = config.split_once("[[group]]").unwrap();
            format!("{head}{beta}{org}{routes}")
        })
        .await;
    for install in ["beta", "org"] {
        assert!(story.service.bridge.identify_once(install).await.unwrap(), "{install}");
    }
    story
}

pub(super) const BY_USERGROUP: &str = r#"
[[group]]
name = "release"
slack_usergroups = ["acme:S0RELEASE"]

[[person]]
subject = "dana@example.com"
slack = ["acme:U0DANA"]

[[person]]
subject = "sam@example.com"
slack = ["acme:U0SAM"]

[[route]]
when = { runtime = "prod" }
to = ["slack:acme:#releases"]
approvers = ["release"]
"#;

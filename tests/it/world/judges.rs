//! Every Slack payload of every story goes before judges: the validator that nobody here wrote, and our own
//! table of the rules it misses.

use super::outside::{Slackblocks, Surface};
use countersign::sandbox::slack::SlackWorld;
use serde_json::{Value, json};
use std::sync::{Mutex, PoisonError};

static JUDGE: Mutex<Option<Slackblocks>> = Mutex::new(None);

/// Asserts that slackblocks finds nothing in what was sent to the stand-in.
pub(crate) fn approve(slack: &SlackWorld) {
    let mut judge = JUDGE.lock().unwrap_or_else(PoisonError::into_inner);
    let judge = judge.get_or_insert_with(Slackblocks::start);
    for payload in slack.payloads() {
        let surface = match payload.method.as_str() {
            "chat.postMessage" | "chat.update" | "chat.postEphemeral" => Surface::Message,
            "views.open" | "views.update" => Surface::Modal,
            "views.publish" => Surface::Home,
            _ => Surface::Response,
        };
        let sent = match surface {
            Surface::Message => json!({
                "channel": payload.arguments["channel"],
                "text": payload.arguments["text"],
                "blocks": payload.arguments["blocks"],
            }),
            Surface::Modal | Surface::Home => payload.arguments["view"].clone(),
            Surface::Response => without_nulls(&payload.arguments),
        };
        let problems = judge.problems(surface, &sent);
        assert!(problems.is_empty(), "{}: {problems:#?}\n{sent:#}", payload.method);
    }
}

fn without_nulls(value: &Value) -> Value {
    let members = value.as_object().cloned().unwrap_or_default();
    Value::Object(members.into_iter().filter(|(_, value)| !value.is_null()).collect())
}

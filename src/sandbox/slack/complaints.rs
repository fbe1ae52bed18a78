//! What Slack would hold against the app: checked over everything that reached the world.
//!
//! Invariant: a run in which the app behaves has no complaints, whatever trouble was scripted.

use super::deliver::ACK;
use super::types::Recorded;
use super::validate::{self, Problem, Rules};
use super::world::{SlackWorld, State};
use serde_json::{Value, json};

impl SlackWorld {
    /// Every breach so far, in words: deliveries acknowledged late, calls before a `Retry-After`
    /// had passed, payloads the validator refuses, posts and edits without text or blocks, and
    /// credentials in what is shown.
    pub fn complaints(&self) -> Vec<String> {
        let state = self.lock();
        let mut found = Vec::new();
        found.extend(state.sockets.complaints());
        found.extend(state.breaches.iter().cloned());
        for delivery in state.deliveries.iter().filter(|delivery| delivery.socket.is_none()) {
            if u128::from(delivery.took_ms) >= ACK.as_millis() {
                found.push(format!("a delivery to {:?} took {} ms", delivery.door, delivery.took_ms));
            }
        }
        for request in &state.requests {
            let mut complain =
                |what: &str| found.push(format!("request {} ({}): {what}", request.seq, request.method));
            if request.impatient {
                complain("came before the stated Retry-After had passed");
            }
            for problem in problems(request) {
                complain(&problem.line());
            }
            if matches!(request.method.as_str(), "chat.postMessage" | "chat.update" | "chat.postEphemeral") {
                let text = request.arguments["text"].as_str().unwrap_or_default();
                if text.trim().is_empty() {
                    complain("has no text");
                }
                if request.arguments["blocks"].as_array().is_none_or(Vec::is_empty) {
                    complain("has no blocks");
                }
            }
            if let Some(what) = credential(&state, request) {
                complain(&format!("shows {what}"));
            }
        }
        found
    }
}

fn problems(request: &Recorded) -> Vec<Problem> {
    let arguments = &request.arguments;
    let rules = Rules::default();
    match request.method.as_str() {
        "chat.update" => validate::update(arguments, rules),
        "chat.postMessage" | "chat.postEphemeral" => validate::message(arguments, rules),
        "response_url" if arguments["delete_original"] != true => validate::message(arguments, rules),
        "views.open" | "views.push" | "views.update" | "views.publish" => {
            validate::view(&arguments["view"], rules)
        }
        _ => Vec::new(),
    }
}

/// What kind of credential stands in the shown part of a request.
fn credential(state: &State, request: &Recorded) -> Option<&'static str> {
    let arguments = &request.arguments;
    let shown: Value =
        json!([arguments["text"], arguments["blocks"], arguments["view"], arguments["metadata"]]);
    let shown = shown.to_string();
    if shown.contains(&state.signing_secret) {
        return Some("the signing secret");
    }
    if state.installs.keys().chain(state.app_tokens.keys()).any(|token| shown.contains(token)) {
        return Some("a token");
    }
    if state.responds.keys().any(|id| shown.contains(id)) {
        return Some("a response_url");
    }
    state.triggers.keys().any(|id| shown.contains(id)).then_some("a trigger")
}

//! What Discord would hold against an application: checked over everything that reached the world.
//!
//! Invariant: a run in which the application behaves has no complaints, whatever trouble was scripted.

use super::world::DiscordWorld;
use serde_json::Value;

/// Where Discord would be told whom a text may mention.
const SHOWING: [&str; 8] = [
    "POST /channels/{channel}/messages",
    "PATCH /channels/{channel}/messages/{message}",
    "POST /webhooks/{app}/{token}",
    "PATCH /webhooks/{app}/{token}/messages/@original",
    "PATCH /webhooks/{app}/{token}/messages/{message}",
    "POST /interactions/{interaction}/{token}/callback",
    "POST /channels/{channel}/threads",
    "answer",
];

impl DiscordWorld {
    /// Every breach so far, in words: answers nobody could use, calls before a wait had passed, bodies that say
    /// nothing of mentions, posts without an enforced nonce, and credentials in what is shown.
    pub fn complaints(&self) -> Vec<String> {
        let payloads = self.payloads();
        let state = self.lock();
        let mut found = state.breaches.clone();
        for request in state.requests.iter().filter(|request| request.impatient) {
            found.push(format!(
                "request {} ({}) came before the stated wait had passed",
                request.seq, request.route
            ));
        }
        for request in &state.requests {
            if matches!(request.code(), Some(50035 | 50006 | 50109)) {
                let errors =
                    request.response.as_ref().map(|body| body["errors"].to_string()).unwrap_or_default();
                let strange = request.fault.is_none();
                if strange {
                    found.push(format!(
                        "request {} ({}) was a form error: {errors}",
                        request.seq, request.route
                    ));
                }
            }
            if request.route == SHOWING[0] && request.body["enforce_nonce"] != true {
                found.push(format!("request {} posts without an enforced nonce", request.seq));
            }
        }
        for payload in payloads.iter().filter(|payload| SHOWING.contains(&payload.route.as_str())) {
            let body = match payload.body["type"].as_u64() {
                Some(4 | 7) => &payload.body["data"],
                Some(_) if payload.route.contains("/interactions/") || payload.route == "answer" => continue,
                _ if payload.body["message"].is_object() => &payload.body["message"],
                _ if payload.route.ends_with("/threads") => continue,
                _ => &payload.body,
            };
            if !body["allowed_mentions"]["parse"].as_array().is_some_and(Vec::is_empty) {
                found.push(format!("{}: allowed_mentions does not say parse: []", payload.route));
            }
            if let Some(what) = credential(&state.tokens, &payload.body) {
                found.push(format!("{}: shows {what}", payload.route));
            }
        }
        found
    }
}

fn credential(tokens: &std::collections::BTreeMap<String, String>, body: &Value) -> Option<&'static str> {
    let text = body.to_string();
    tokens.keys().any(|token| text.contains(token.as_str())).then_some("a bot token")
}

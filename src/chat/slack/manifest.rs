//! The app's manifest (Slack: App manifests): what an operator pastes to create the app.
//!
//! Invariant: it asks for what this version uses and for nothing else.

use super::scopes;
use serde_json::{Value, json};

/// The events that have an effect in this version.
const EVENTS: [&str; 3] = ["app_home_opened", "app_uninstalled", "tokens_revoked"];

/// The manifest of our app. `public`: the address at which Slack reaches us over HTTP; without it, Socket
/// Mode.
#[must_use]
pub fn manifest(public: Option<&str>) -> Value {
    let at = |path: &str| public.map(|base| format!("{}/slack/{path}", base.trim_end_matches('/')));
    let mut command = json!({
        "command": "/countersign",
        "description": "What waits for you",
        "usage_hint": "open | help",
        "should_escape": false,
    });
    let mut interactivity = json!({ "is_enabled": true });
    let mut events = json!({ "bot_events": EVENTS });
    if let (Some(commands), Some(interactions), Some(happened)) =
        (at("commands"), at("interactivity"), at("events"))
    {
        command["url"] = commands.into();
        interactivity["request_url"] = interactions.into();
        events["request_url"] = happened.into();
    }
    json!({
        "display_information": {
            "name": "Countersign",
            "description": "Agents ask, people answer; every answer is signed by the person who clicked.",
        },
        "features": {
            // A direct message fails where the Messages tab is off.
            "app_home": {
                "home_tab_enabled": true,
                "messages_tab_enabled": true,
                "messages_tab_read_only_enabled": true,
            },
            "bot_user": { "display_name": "Countersign", "always_online": true },
            "slash_commands": [command],
        },
        "oauth_config": { "scopes": { "bot": scopes::all() } },
        "settings": {
            "interactivity": interactivity,
            "event_subscriptions": events,
            "org_deploy_enabled": false,
            "socket_mode_enabled": public.is_none(),
            "token_rotation_enabled": false,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn over_http_it_names_our_addresses() {
        let made = manifest(Some("https://countersign.example.com/below/"));
        let at = |pointer: &str| made.pointer(pointer).and_then(Value::as_str);
        let base = "https://countersign.example.com/below/slack";
        assert_eq!(at("/features/slash_commands/0/url"), Some(format!("{base}/commands").as_str()));
        let interactivity = format!("{base}/interactivity");
        assert_eq!(at("/settings/interactivity/request_url"), Some(interactivity.as_str()));
        assert_eq!(at("/settings/event_subscriptions/request_url"), Some(format!("{base}/events").as_str()));
        assert_eq!(made["settings"]["socket_mode_enabled"], false);
        assert_eq!(made["settings"]["interactivity"]["is_enabled"], true);
        assert_eq!(made["oauth_config"]["scopes"]["bot"], json!(scopes::all()));
    }

    #[test]
    fn in_socket_mode_it_names_no_address() {
        let made = manifest(None);
        assert_eq!(made["settings"]["socket_mode_enabled"], true);
        assert!(!made.to_string().contains("url"), "{made}");
        assert_eq!(made["features"]["app_home"]["messages_tab_enabled"], true);
    }
}

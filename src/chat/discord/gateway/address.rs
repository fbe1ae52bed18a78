//! Where the gateway is, and whether a session may be begun there (Discord: Get Gateway Bot).
//!
//! Invariant: an address leads to where the API is: an API on this machine never sends us elsewhere, and
//! another one never to a connection that others could read. The number of sessions a day is Discord's to
//! count; beyond it the bot's token would be taken away.

use serde_json::Value;
use std::time::Duration;
use url::Url;

/// Where to connect, as the API says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address {
    /// Without a slash at its end.
    pub(super) url: String,
    /// Sessions that may still be begun, and when the count begins anew; `None`: not said.
    pub(super) left: Option<(u64, Duration)>,
}

/// Reads the answer; `None` when it leads nowhere we may go.
#[must_use]
pub(super) fn read(answer: &Value, on_loopback: bool) -> Option<Address> {
    let url = leads_right(answer.get("url")?.as_str()?, on_loopback)?;
    let number = |pointer: &str| answer.pointer(pointer).and_then(Value::as_u64);
    let left = number("/session_start_limit/remaining").map(|left| {
        (left, Duration::from_millis(number("/session_start_limit/reset_after").unwrap_or_default()))
    });
    Some(Address { url, left })
}

/// An address that may be gone to, as it is connected to.
#[must_use]
pub(super) fn leads_right(url: &str, on_loopback: bool) -> Option<String> {
    let parsed = Url::parse(url).ok()?;
    parsed.host_str().filter(|host| !host.is_empty())?;
    let loopback = crate::net::is_loopback(&parsed);
    let good = match parsed.scheme() {
        "wss" => loopback == on_loopback,
        "ws" => loopback && on_loopback,
        _ => false,
    };
    // The library adds a path's end and a query.
    let bare = parsed.query().is_none() && parsed.fragment().is_none() && parsed.username().is_empty();
    (good && bare).then(|| url.trim_end_matches('/').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn discord_case_79_an_api_on_this_machine_leads_nowhere_else() {
        for (url, on_loopback, good) in [
            ("wss://gateway.discord.gg", false, true),
            ("wss://gateway-us-east1-b.discord.gg/", false, true),
            ("ws://gateway.discord.gg", false, false),
            ("wss://127.0.0.1:1", false, false),
            ("wss://gateway.discord.gg", true, false),
            ("ws://127.0.0.1:4000/ws", true, true),
            ("ws://localhost:4000", true, true),
            ("ws://10.0.0.1", true, false),
            ("https://127.0.0.1", true, false),
            ("ws://a@127.0.0.1", true, false),
            ("ws://127.0.0.1?x=1", true, false),
            ("ws://", true, false),
            ("", true, false),
            ("no url", false, false),
        ] {
            assert_eq!(leads_right(url, on_loopback).is_some(), good, "{url}");
        }
        assert_eq!(leads_right("ws://localhost:1/ws/", true).unwrap(), "ws://localhost:1/ws");
    }

    #[test]
    fn what_is_left_is_read_leniently() {
        let read = |answer| read(&answer, false);
        let url = "wss://gateway.discord.gg";
        let full = json!({"url": url, "shards": 1,
            "session_start_limit": {"total": 1000, "remaining": 0, "reset_after": 7200, "max_concurrency": 1}});
        assert_eq!(read(full).unwrap().left, Some((0, Duration::from_millis(7200))));
        assert_eq!(read(json!({"url": url})), Some(Address { url: url.into(), left: None }));
        assert_eq!(read(json!({"url": 7})), None);
        assert_eq!(read(json!([])), None);
    }
}

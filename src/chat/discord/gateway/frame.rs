//! What Discord says on the gateway (Discord: Gateway, "Payload Structure").
//!
//! Invariant: only `op` has to be there. What a frame says is read from the JSON as it came, so that an event
//! that no library knows is still seen.

use serde_json::Value;
use std::time::Duration;

/// A text frame, read.
#[derive(Debug, PartialEq)]
pub(super) enum Frame {
    Hello {
        interval: Option<Duration>,
    },
    Ready {
        session: Option<String>,
        resume_url: Option<String>,
        application: Option<String>,
    },
    Resumed,
    /// Connect again, and take the session up.
    Reconnect,
    /// The session can not be taken up again.
    SessionGone,
    /// Somebody used a control or a command: `d`.
    Interaction(Value),
    /// Any other event, by name.
    Event {
        name: String,
        data: Value,
    },
    /// Heartbeats, requests that the library serves, what a later version brings.
    Other,
    Unreadable,
}

pub(super) fn read(raw: &str) -> Frame {
    let Ok(mut frame @ Value::Object(_)) = serde_json::from_str::<Value>(raw) else {
        return Frame::Unreadable;
    };
    let Some(op) = frame.get("op").and_then(Value::as_i64) else { return Frame::Unreadable };
    let data = frame.get_mut("d").map(Value::take).unwrap_or_default();
    let text = |pointer: &str| data.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    match op {
        0 => match frame.get("t").and_then(Value::as_str) {
            Some("READY") => Frame::Ready {
                session: text("/session_id"),
                resume_url: text("/resume_gateway_url"),
                application: text("/application/id"),
            },
            Some("RESUMED") => Frame::Resumed,
            Some("INTERACTION_CREATE") => Frame::Interaction(data),
            Some(name) => Frame::Event { name: name.to_owned(), data },
            None => Frame::Unreadable,
        },
        9 if data != Value::Bool(true) => Frame::SessionGone,
        7 | 9 => Frame::Reconnect,
        10 => Frame::Hello {
            interval: data.get("heartbeat_interval").and_then(Value::as_u64).map(Duration::from_millis),
        },
        _ => Frame::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    #[rstest]
    #[case(r#"{"op":10,"d":{"heartbeat_interval":41250}}"#, Frame::Hello { interval: Some(Duration::from_millis(41250)) })]
    #[case(r#"{"op":10}"#, Frame::Hello { interval: None })]
    #[case(r#"{"op":9,"d":false}"#, Frame::SessionGone)]
    #[case(r#"{"op":9}"#, Frame::SessionGone)]
    #[case(r#"{"op":9,"d":true}"#, Frame::Reconnect)]
    #[case(r#"{"op":7,"d":null}"#, Frame::Reconnect)]
    #[case(r#"{"op":11}"#, Frame::Other)]
    #[case(r#"{"op":42,"d":{"x":1}}"#, Frame::Other)]
    #[case(r#"{"op":0,"s":1,"t":"RESUMED","d":{}}"#, Frame::Resumed)]
    #[case(r#"{"op":0,"t":"INTERACTION_CREATE","d":{"id":"1"}}"#, Frame::Interaction(json!({"id": "1"})))]
    #[case(r#"{"op":0,"s":4,"t":"OF_2030","d":[]}"#, Frame::Event { name: "OF_2030".into(), data: json!([]) })]
    #[case(r#"{"op":0,"s":4,"d":{}}"#, Frame::Unreadable)]
    #[case(r#"{"op":"0"}"#, Frame::Unreadable)]
    #[case("[1]", Frame::Unreadable)]
    #[case("{", Frame::Unreadable)]
    #[case("", Frame::Unreadable)]
    fn discord_case_71_frames_are_read_leniently(#[case] raw: &str, #[case] frame: Frame) {
        assert_eq!(read(raw), frame, "{raw}");
    }

    #[test]
    fn ready_says_where_to_go_on() {
        let ready = json!({"op": 0, "s": 1, "t": "READY", "d": {"v": 10, "session_id": "s-1",
            "resume_gateway_url": "wss://r.example", "application": {"id": "11", "flags": 0}, "guilds": []}});
        assert_eq!(
            read(&ready.to_string()),
            Frame::Ready {
                session: Some("s-1".into()),
                resume_url: Some("wss://r.example".into()),
                application: Some("11".into()),
            }
        );
        let bare = r#"{"op":0,"s":1,"t":"READY","d":null}"#;
        assert_eq!(read(bare), Frame::Ready { session: None, resume_url: None, application: None });
    }
}

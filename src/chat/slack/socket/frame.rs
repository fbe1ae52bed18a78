//! What Slack says on a socket, and what we say (Slack: Using Socket Mode).
//!
//! Invariant: only `type` has to be there; whatever else is missing or odd is tolerated, except the
//! payload of an envelope, which has to be an object. A frame that cannot be read is acknowledged only
//! if it surely holds no press: its type is readable, and it is neither `interactive` nor a command.

use super::super::delivery::Way;
use super::super::payload::{id, text};
use serde_json::{Value, json};

/// A text frame, read.
#[derive(Debug, PartialEq)]
pub(super) enum Frame {
    /// The socket is ready.
    Hello {
        app_id: Option<String>,
    },
    Disconnect(Reason),
    Envelope(Envelope),
    /// A type of a later version: acknowledged if it can be, without effect.
    Other {
        envelope: Option<String>,
    },
    /// To be kept; acknowledged under this id when it is kept.
    Unreadable {
        envelope: Option<String>,
    },
}

/// Why Slack is about to close a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    /// `warning`, `refresh_requested` and reasons of a later version: another socket is wanted.
    Refresh,
    /// Socket Mode was switched off for the app.
    Disabled,
    TooMany,
}

/// A delivery.
#[derive(Debug, PartialEq)]
pub(super) struct Envelope {
    pub(super) way: Way,
    pub(super) id: Option<String>,
    pub(super) payload: Value,
    /// Slack takes an answer with the acknowledgement; so it is unless it says otherwise.
    pub(super) takes_answer: bool,
}

pub(super) fn read(raw: &str) -> Frame {
    let Ok(mut frame @ Value::Object(_)) = serde_json::from_str::<Value>(raw) else {
        return Frame::Unreadable { envelope: None };
    };
    let Some(kind) = text(&frame, "/type") else { return Frame::Unreadable { envelope: None } };
    let envelope = text(&frame, "/envelope_id").map(str::to_owned);
    let way = match kind {
        "hello" => return Frame::Hello { app_id: id(&frame, "/connection_info/app_id") },
        "disconnect" => {
            return Frame::Disconnect(match text(&frame, "/reason") {
                Some("link_disabled") => Reason::Disabled,
                Some("too_many_websockets") => Reason::TooMany,
                _ => Reason::Refresh,
            });
        }
        "interactive" => Some(Way::Interactivity),
        "slash_commands" => Some(Way::Commands),
        "events_api" => Some(Way::Events),
        _ => None,
    };
    let payload = frame.get_mut("payload").map(Value::take);
    match (way, payload) {
        (Some(way), Some(payload @ Value::Object(_))) => {
            let refused = frame.get("accepts_response_payload") == Some(&Value::Bool(false));
            Frame::Envelope(Envelope { way, id: envelope, payload, takes_answer: !refused })
        }
        (None, None | Some(Value::Object(_))) => Frame::Other { envelope },
        (Some(Way::Interactivity | Way::Commands), _) => Frame::Unreadable { envelope: None },
        (Some(Way::Events) | None, _) => Frame::Unreadable { envelope },
    }
}

/// Our acknowledgement.
pub(super) fn acknowledgement(envelope: &str, answer: Option<&Value>) -> String {
    match answer {
        Some(answer) => json!({ "envelope_id": envelope, "payload": answer }),
        None => json!({ "envelope_id": envelope }),
    }
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn other(envelope: Option<&str>) -> Frame {
        Frame::Other { envelope: envelope.map(str::to_owned) }
    }

    fn unreadable(envelope: Option<&str>) -> Frame {
        Frame::Unreadable { envelope: envelope.map(str::to_owned) }
    }

    /// Slack case 14: fields that are missing, types that are new.
    #[rstest]
    #[case(r#"{"type":"hello"}"#, Frame::Hello { app_id: None })]
    #[case(r#"{"type":"hello","connection_info":{"app_id":"A1"},"new":1}"#, Frame::Hello { app_id: Some("A1".into()) })]
    #[case(r#"{"type":"hello","connection_info":null}"#, Frame::Hello { app_id: None })]
    #[case(r#"{"type":"disconnect"}"#, Frame::Disconnect(Reason::Refresh))]
    #[case(r#"{"type":"disconnect","reason":"warning"}"#, Frame::Disconnect(Reason::Refresh))]
    #[case(r#"{"type":"disconnect","reason":"of_2030"}"#, Frame::Disconnect(Reason::Refresh))]
    #[case(r#"{"type":"disconnect","reason":"link_disabled"}"#, Frame::Disconnect(Reason::Disabled))]
    #[case(r#"{"type":"disconnect","reason":"too_many_websockets"}"#, Frame::Disconnect(Reason::TooMany))]
    #[case(r#"{"type":"of_2030"}"#, other(None))]
    #[case(r#"{"type":"of_2030","envelope_id":"e","payload":{}}"#, other(Some("e")))]
    #[case(r#"{"type":"of_2030","envelope_id":"e","payload":[]}"#, unreadable(Some("e")))]
    #[case(r#"{"type":"events_api","envelope_id":"e","payload":"x"}"#, unreadable(Some("e")))]
    #[case(r#"{"type":"events_api","envelope_id":"e"}"#, unreadable(Some("e")))]
    #[case(r#"{"type":"interactive","envelope_id":"e","payload":null}"#, unreadable(None))]
    #[case(r#"{"type":"slash_commands","envelope_id":"e"}"#, unreadable(None))]
    #[case(r#"{"envelope_id":"e","payload":{}}"#, unreadable(None))]
    #[case(r#"{"type":7,"envelope_id":"e"}"#, unreadable(None))]
    #[case(r#"["hello"]"#, unreadable(None))]
    #[case("hello", unreadable(None))]
    #[case("", unreadable(None))]
    fn slack_case_14_frames_are_read_leniently(#[case] raw: &str, #[case] frame: Frame) {
        assert_eq!(read(raw), frame, "{raw}");
    }

    #[rstest]
    #[case("", true)]
    #[case(r#","accepts_response_payload":true"#, true)]
    #[case(r#","accepts_response_payload":false,"retry_attempt":1"#, false)]
    fn an_envelope_takes_an_answer_unless_it_says_otherwise(#[case] more: &str, #[case] takes_answer: bool) {
        let raw = format!(r#"{{"type":"slash_commands","envelope_id":"e-1","payload":{{"a":1}}{more}}}"#);
        let envelope =
            Envelope { way: Way::Commands, id: Some("e-1".into()), payload: json!({ "a": 1 }), takes_answer };
        assert_eq!(read(&raw), Frame::Envelope(envelope));
    }

    #[test]
    fn acknowledgements() {
        assert_eq!(acknowledgement("e", None), r#"{"envelope_id":"e"}"#);
        assert_eq!(
            acknowledgement("e", Some(&json!({"text": "x"}))),
            r#"{"envelope_id":"e","payload":{"text":"x"}}"#
        );
    }
}

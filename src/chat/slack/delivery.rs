//! One delivery of Slack's, read: the same whichever way it came.
//!
//! Invariant: a delivery is made of what was verified already (the signature over the bytes of an HTTP
//! request, or the socket of an app-level token). It carries its bytes as they came, so that what
//! cannot be used can be kept.

use super::events::{Command, Event, form, parse_event, read_command, read_event};
use super::inbound::{Interactivity, parse_interactivity, parse_payload};
use super::payload::{id, is_id};
use serde_json::Value;

/// What Slack sends: to an address of its own over HTTP, as a `type` of its own over a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    Interactivity,
    Commands,
    Events,
}

impl Way {
    /// How a kept body is marked.
    #[must_use]
    pub fn source(self) -> &'static str {
        match self {
            Self::Interactivity => "slack:interactivity",
            Self::Commands => "slack:commands",
            Self::Events => "slack:events",
        }
    }
}

/// A delivery, read.
#[derive(Debug)]
pub struct Delivery<'b> {
    pub way: Way,
    /// The bytes as they came.
    pub raw: &'b [u8],
    /// What every copy of this delivery has in common, whichever way it comes: the event's id, the
    /// command's trigger, the envelope's id. A press has a key of its own.
    pub keys: Vec<String>,
    pub read: Read,
}

/// What it holds.
#[derive(Debug)]
pub enum Read {
    Interactivity(Interactivity),
    /// `None`: it names no command.
    Command(Option<Command>),
    Event(Event),
}

impl<'b> Delivery<'b> {
    /// Reads the body of a request whose signature was checked.
    #[must_use]
    pub fn of_body(way: Way, body: &'b [u8]) -> Self {
        let (keys, read) = match way {
            Way::Interactivity => (vec![], Read::Interactivity(parse_interactivity(body))),
            Way::Commands => {
                let form = form(body);
                (own_key(way, &form), Read::Command(read_command(&form)))
            }
            Way::Events => {
                let event = parse_event(body);
                let payload = serde_json::from_slice(body).unwrap_or_default();
                (own_key(way, &payload), Read::Event(event))
            }
        };
        Self { way, raw: body, keys, read }
    }

    /// Reads the `payload` of an envelope that came over a socket; `frame`: the whole of it.
    #[must_use]
    pub fn of_payload(way: Way, payload: &Value, envelope: Option<&str>, frame: &'b [u8]) -> Self {
        let read = match way {
            Way::Interactivity => Read::Interactivity(parse_payload(payload)),
            Way::Commands => Read::Command(read_command(payload)),
            Way::Events => Read::Event(read_event(payload)),
        };
        let mut keys = own_key(way, payload);
        keys.extend(envelope.filter(|id| is_id(id)).map(|id| format!("slack:envelope:{id}")));
        Self { way, raw: frame, keys, read }
    }
}

/// The key that the payload itself holds.
fn own_key(way: Way, payload: &Value) -> Vec<String> {
    let key = match way {
        Way::Interactivity => None,
        Way::Commands => id(payload, "/trigger_id").map(|id| format!("slack:trigger:{id}")),
        Way::Events => id(payload, "/event_id").map(|id| format!("slack:event:{id}")),
    };
    key.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn copies_of_a_delivery_share_a_key_over_http_and_sockets() {
        let event = json!({"type": "event_callback", "event_id": "Ev1"});
        let over_http = Delivery::of_body(Way::Events, event.to_string().as_bytes()).keys;
        assert_eq!(over_http, ["slack:event:Ev1"]);
        let over_socket = Delivery::of_payload(Way::Events, &event, Some("e-1"), b"").keys;
        assert_eq!(over_socket, ["slack:event:Ev1", "slack:envelope:e-1"]);
        let command = Delivery::of_body(Way::Commands, b"command=%2Fx&trigger_id=1.2.ab").keys;
        assert_eq!(command, ["slack:trigger:1.2.ab"]);
        let press = Delivery::of_payload(Way::Interactivity, &json!({"trigger_id": "1.2"}), Some(""), b"");
        assert!(press.keys.is_empty(), "an empty id is none");
    }
}

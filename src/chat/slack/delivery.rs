//! One delivery of Slack's, read: the same whichever way it came.
//!
//! Invariant: a delivery is made of what was verified already (the signature over the bytes of an HTTP
//! request, or the socket of an app-level token). It carries its bytes as they came, so that what
//! cannot be used can be kept.

use super::events::{Command, Event, parse_command, parse_event, read_command, read_event};
use super::inbound::{Interactivity, parse_interactivity, parse_payload};
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
        let read = match way {
            Way::Interactivity => Read::Interactivity(parse_interactivity(body)),
            Way::Commands => Read::Command(parse_command(body)),
            Way::Events => Read::Event(parse_event(body)),
        };
        Self { way, raw: body, read }
    }

    /// Reads the `payload` of an envelope that came over a socket; `frame`: the whole of it.
    #[must_use]
    pub fn of_payload(way: Way, payload: &Value, frame: &'b [u8]) -> Self {
        let read = match way {
            Way::Interactivity => Read::Interactivity(parse_payload(payload)),
            Way::Commands => Read::Command(read_command(payload)),
            Way::Events => Read::Event(read_event(payload)),
        };
        Self { way, raw: frame, read }
    }
}

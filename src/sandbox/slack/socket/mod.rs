//! Socket Mode: WebSockets that the app opens, over which everything is delivered.
//!
//! Invariant: an envelope goes to one open socket (a scripted duplicate to the next one), and counts
//! as acknowledged only by an answer on the very socket it was sent on, within three seconds by this
//! world's clock or the machine's, whichever is later. A ticket opens one socket; the eleventh
//! socket is refused. Everything sent and every acknowledgement is recorded with its time.
//!
//! Known race: a socket may close between being chosen and being written to; the envelope is lost
//! with it then, as it is with Slack.

mod control;
mod envelope;
mod link;
#[cfg(test)]
mod tests;

pub(super) use control::routes as control_routes;
pub(super) use link::{connections_open, routes};

use super::deliver::ACK;
use super::world::SlackWorld;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Instant;
use tokio::sync::{mpsc, oneshot};

/// Slack lets an app have this many sockets.
const MOST: usize = 10;
/// How long a ticket waits for its connection.
const TICKET_MS: i64 = 30_000;

/// A frame that Slack would not send, or not now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Frame {
    Json { value: Value },
    Text { text: String },
    Binary { bytes: Vec<u8> },
    Ping,
}

/// What is done to an open socket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub enum Order {
    /// Sends `disconnect` with this reason (`warning`, `refresh_requested`, `link_disabled`,
    /// `too_many_websockets`), and closes the socket that much later by this world's clock;
    /// without a time it is left open.
    Disconnect {
        reason: String,
        close_after_ms: Option<i64>,
    },
    /// Closes it properly.
    Close,
    /// Breaks the connection without a word.
    Drop,
    /// It stays open and is still chosen, but nothing reaches the app any more and nothing from it is
    /// read; gone after a minute by this world's clock.
    HalfOpen,
    Send {
        frame: Frame,
    },
}

/// What became of one socket.
#[derive(Debug, Clone, Serialize)]
pub struct Socket {
    /// From 1, in the order of opening.
    pub id: u64,
    pub opened_ms: i64,
    /// When `hello` was sent.
    pub hello_ms: Option<i64>,
    pub closed_ms: Option<i64>,
    /// How it ended: `refused`, `app` (closed by it), `lost` (broken), `closed`, `dropped`.
    pub end: Option<&'static str>,
    /// Pings that the app sent.
    pub pings: u32,
    /// Envelopes that were acknowledged on it.
    pub acks: u32,
}

/// One sending of an envelope.
#[derive(Debug, Clone, Serialize)]
pub struct Envelope {
    pub envelope_id: String,
    /// `interactive`, `slash_commands` or `events_api`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub socket: u64,
    pub at_ms: i64,
    /// 1 for the first sending of this envelope.
    pub attempt: u32,
    pub accepts_payload: bool,
    pub payload: Value,
    pub acked_ms: Option<i64>,
    /// Until the acknowledgement: by this world's clock or the machine's, whichever was longer.
    pub took_ms: Option<u64>,
    /// The `payload` of the acknowledgement.
    pub answer: Value,
}

impl Envelope {
    /// Acknowledged within three seconds.
    #[must_use]
    pub fn acked(&self) -> bool {
        self.took_ms.is_some_and(|took| u128::from(took) < ACK.as_millis())
    }
}

/// What a socket's task is told.
enum Tell {
    Text(String),
    Order(Order),
    /// Breaks at this time, or no more.
    CutAt(Option<i64>),
}

struct Live {
    tell: mpsc::UnboundedSender<Tell>,
    ready: bool,
    half_open: bool,
    hello_ms: i64,
}

/// Somebody waits for this acknowledgement.
struct Waiting {
    envelope_id: String,
    socket: u64,
    answer: oneshot::Sender<Value>,
}

#[derive(Default)]
pub(super) struct Sockets {
    /// Unused tickets: when each was made.
    tickets: BTreeMap<String, i64>,
    live: BTreeMap<u64, Live>,
    all: Vec<Socket>,
    envelopes: Vec<(Envelope, Instant)>,
    waiting: Vec<Waiting>,
    /// Envelopes that are held back, with their sockets.
    held: Option<Vec<(u64, String)>>,
    /// How many sockets there were.
    count: u64,
    /// The socket that got the last envelope.
    turn: u64,
    cut_every_ms: Option<i64>,
    breaches: Vec<String>,
}

impl Sockets {
    /// The next open socket in turn, or the wanted one while it is open.
    fn choose(&mut self, wanted: Option<u64>) -> Option<u64> {
        let ready = |id: &&u64| self.live.get(id).is_some_and(|live| live.ready);
        let chosen = if let Some(id) = wanted {
            Some(id).filter(|id| ready(&id))
        } else {
            let after = self.live.range(self.turn + 1..).map(|(id, _)| id).find(ready);
            after.or_else(|| self.live.keys().find(ready)).copied()
        };
        self.turn = chosen.unwrap_or(self.turn);
        chosen
    }

    /// Whether a socket but this one is open and delivers.
    fn delivers(&self, but: Option<u64>) -> bool {
        self.live.iter().any(|(id, live)| live.ready && !live.half_open && Some(*id) != but)
    }

    fn tell(&self, socket: u64, tell: Tell) -> bool {
        self.live.get(&socket).is_some_and(|live| live.tell.send(tell).is_ok())
    }

    fn record(&mut self, id: u64) -> Option<&mut Socket> {
        self.all.iter_mut().rev().find(|socket| socket.id == id)
    }

    fn closed(&mut self, id: u64, end: &'static str, now_ms: i64) {
        self.live.remove(&id);
        // Whoever waits for an acknowledgement on it waits in vain.
        self.waiting.retain(|waiting| waiting.socket != id);
        if let Some(socket) = self.record(id) {
            (socket.end, socket.closed_ms) = (Some(end), Some(now_ms));
        }
    }

    /// An answer of the app on a socket.
    fn heard(&mut self, socket: u64, text: &str, now_ms: i64) {
        let Ok(answer) = serde_json::from_str::<Value>(text) else {
            return self.breaches.push(format!("socket {socket}: not JSON: {text:?}"));
        };
        let Some(id) = answer["envelope_id"].as_str() else {
            return self.breaches.push(format!("socket {socket}: no envelope_id: {text:?}"));
        };
        let payload = answer.get("payload").cloned().unwrap_or_default();
        let sent = self.envelopes.iter_mut().rev();
        let Some((envelope, started)) = sent
            .map(|(envelope, started)| (envelope, *started))
            .find(|(envelope, _)| envelope.envelope_id == id && envelope.socket == socket)
        else {
            return self
                .breaches
                .push(format!("socket {socket}: {id} was acknowledged here but not sent here"));
        };
        let empty = payload.is_null() || payload.as_object().is_some_and(serde_json::Map::is_empty);
        if !envelope.accepts_payload && !empty {
            self.breaches.push(format!("{id} takes no payload, but was answered {payload}"));
        }
        if envelope.acked_ms.is_some() {
            return;
        }
        let real = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let shown = u64::try_from(now_ms.saturating_sub(envelope.at_ms)).unwrap_or(0);
        (envelope.acked_ms, envelope.took_ms) = (Some(now_ms), Some(real.max(shown)));
        envelope.answer = payload.clone();
        if let Some(record) = self.record(socket) {
            record.acks += 1;
        }
        if let Some(at) =
            self.waiting.iter().position(|waiting| waiting.envelope_id == id && waiting.socket == socket)
        {
            // Nobody waits any more: it came late.
            let _ = self.waiting.swap_remove(at).answer.send(payload);
        }
    }

    /// What Slack would hold against the app: late acknowledgements, and answers to nothing.
    pub(super) fn complaints(&self) -> Vec<String> {
        let mut found = self.breaches.clone();
        for (envelope, _) in &self.envelopes {
            if envelope.acked_ms.is_some() && !envelope.acked() {
                let Envelope { envelope_id, took_ms, .. } = envelope;
                found.push(format!("envelope {envelope_id} was acknowledged after {took_ms:?} ms"));
            }
        }
        found
    }

    /// Drops what was recorded; for long runs.
    pub(super) fn forget(&mut self) {
        let waiting = &self.waiting;
        self.envelopes
            .retain(|(envelope, _)| waiting.iter().any(|one| one.envelope_id == envelope.envelope_id));
        self.all.retain(|socket| socket.closed_ms.is_none());
        self.breaches.clear();
    }
}

impl SlackWorld {
    /// Every socket so far, closed ones included.
    pub fn sockets(&self) -> Vec<Socket> {
        self.lock().sockets.all.clone()
    }

    /// The sockets that are open and have had their `hello`, in the order of opening.
    pub fn open_sockets(&self) -> Vec<u64> {
        self.lock().sockets.live.iter().filter(|(_, live)| live.ready).map(|(id, _)| *id).collect()
    }

    /// Every envelope sent so far, duplicates and redeliveries included.
    pub fn envelopes(&self) -> Vec<Envelope> {
        self.lock().sockets.envelopes.iter().map(|(envelope, _)| envelope.clone()).collect()
    }

    /// Does something to one open socket, or to all; how many it was done to.
    pub fn socket(&self, socket: Option<u64>, order: &Order) -> usize {
        self.change(|state| {
            let sockets = &mut state.sockets;
            let ids: Vec<u64> =
                sockets.live.keys().copied().filter(|id| socket.is_none_or(|one| one == *id)).collect();
            for id in &ids {
                if let (Order::HalfOpen, Some(live)) = (order, sockets.live.get_mut(id)) {
                    live.half_open = true;
                }
                sockets.tell(*id, Tell::Order(order.clone()));
            }
            ids.len()
        })
    }

    /// Every socket breaks this long after its `hello` by this world's clock, those open now
    /// included; `None` ends that.
    pub fn cut_sockets_every(&self, seconds: Option<u32>) {
        self.change(|state| {
            let every = seconds.map(|seconds| i64::from(seconds) * 1_000);
            state.sockets.cut_every_ms = every;
            for live in state.sockets.live.values() {
                let at = every.map(|every| live.hello_ms + every);
                // A task that has ended needs no telling.
                let _ = live.tell.send(Tell::CutAt(at));
            }
        });
    }

    /// Holds envelopes back from now on. Their three seconds begin all the same.
    pub fn hold_envelopes(&self) {
        self.change(|state| {
            state.sockets.held.get_or_insert_default();
        });
    }

    /// Sends what was held back, in order or the other way round, and holds no more.
    pub fn release_envelopes(&self, reversed: bool) {
        self.change(|state| {
            let mut held = state.sockets.held.take().unwrap_or_default();
            if reversed {
                held.reverse();
            }
            for (socket, text) in held {
                state.sockets.tell(socket, Tell::Text(text));
            }
        });
    }
}

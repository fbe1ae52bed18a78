//! Sending envelopes and waiting for their acknowledgement.

use super::{Envelope, Tell, Waiting};
use crate::sandbox::faults::Fault;
use crate::sandbox::slack::deliver::{ACK, Delivery, Door, Manner};
use crate::sandbox::slack::world::{SlackWorld, State};
use serde_json::{Map, Value, json};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// A redelivery waits this long, in real time, for a socket to go to.
const PATIENCE: Duration = Duration::from_secs(10);

fn kind(door: Door) -> &'static str {
    match door {
        Door::Interactivity => "interactive",
        Door::Commands => "slash_commands",
        Door::Events => "events_api",
    }
}

/// The payload of an envelope, from the body that the door would get.
fn payload(door: Door, body: &[u8]) -> Value {
    let fields = || url::form_urlencoded::parse(body);
    let read = match door {
        Door::Interactivity => fields()
            .find(|(name, _)| name == "payload")
            .and_then(|(_, payload)| serde_json::from_str(&payload).ok()),
        Door::Commands => {
            let fields = fields().map(|(name, value)| (name.into_owned(), Value::String(value.into_owned())));
            Some(Value::Object(fields.collect::<Map<_, _>>()))
        }
        Door::Events => serde_json::from_slice(body).ok(),
    };
    read.unwrap_or_else(|| String::from_utf8_lossy(body).into_owned().into())
}

/// One envelope on its way.
struct Sending {
    door: Door,
    envelope_id: String,
    payload: Value,
    /// `retry_attempt` and `retry_reason`.
    retry: Option<(u32, String)>,
}

impl Sending {
    fn accepts_payload(&self) -> bool {
        self.door == Door::Commands || self.payload["type"] == "view_submission"
    }

    fn text(&self, bare: bool) -> String {
        let mut frame =
            json!({"type": kind(self.door), "envelope_id": self.envelope_id, "payload": self.payload});
        if !bare {
            frame["accepts_response_payload"] = self.accepts_payload().into();
        }
        if let Some((attempt, reason)) = &self.retry {
            frame["retry_attempt"] = (*attempt).into();
            frame["retry_reason"] = reason.clone().into();
        }
        frame.to_string()
    }
}

impl SlackWorld {
    /// What [`SlackWorld::deliver`] does while the app is in Socket Mode.
    pub(in crate::sandbox::slack) async fn deliver_by_socket(
        &self,
        door: Door,
        body: &[u8],
        manner: &Manner,
        retry: Option<(u32, String)>,
        fault: Option<Fault>,
    ) -> Vec<Delivery> {
        let mut copies = 1 + manner.repeats;
        match fault {
            Some(Fault::Delay { ms }) => tokio::time::sleep(Duration::from_millis(ms)).await,
            Some(Fault::Duplicate) => copies += 1,
            _ => {}
        }
        let unheard = matches!(fault, Some(Fault::Lost { .. } | Fault::CutAnswer));
        let unsent = matches!(fault, Some(Fault::Hang { .. }));
        let number = self.change(State::serial);
        let sending =
            Sending { door, envelope_id: format!("{number:08x}-e"), payload: payload(door, body), retry };
        let sends = (0..copies).map(|copy| {
            let wanted = manner.socket.filter(|_| copy == 0);
            self.send_envelope(&sending, wanted, 1, unsent, unheard)
        });
        let mut done = futures_util::future::join_all(sends).await;
        let redeliver = self.switches().interactive_redelivery && door != Door::Events;
        if redeliver && !done.iter().any(Delivery::acked) {
            let but = done.last().and_then(|delivery| delivery.socket);
            let found = self.until("a socket to redeliver to", PATIENCE, |world| {
                world.lock().sockets.delivers(but).then_some(())
            });
            if found.await.is_ok() {
                done.push(self.send_envelope(&sending, None, 2, false, false).await);
            }
        }
        done
    }

    /// Sends an envelope of before once more, on this socket or the next in turn; `None` if there was none.
    pub async fn redeliver(&self, envelope_id: &str, socket: Option<u64>) -> Option<Delivery> {
        let found = self.envelopes().into_iter().rev().find(|one| one.envelope_id == envelope_id)?;
        let door = [Door::Interactivity, Door::Commands, Door::Events]
            .into_iter()
            .find(|door| kind(*door) == found.kind)?;
        let retry = (door == Door::Events).then(|| (found.attempt, "timeout".to_owned()));
        let sending = Sending { door, envelope_id: found.envelope_id, payload: found.payload, retry };
        Some(self.send_envelope(&sending, socket, found.attempt + 1, false, false).await)
    }

    async fn send_envelope(
        &self,
        sending: &Sending,
        wanted: Option<u64>,
        attempt: u32,
        unsent: bool,
        unheard: bool,
    ) -> Delivery {
        let (at_ms, started) = (self.time.now_ms(), Instant::now());
        let (socket, raw, waiting) = self.change(|state| {
            let bare = state.switches.bare_frames;
            let raw = sending.text(bare);
            let Some(socket) = state.sockets.choose(wanted).filter(|_| !unsent) else {
                return (None, raw, None);
            };
            let (answer, waiting) = oneshot::channel();
            let envelope = Envelope {
                envelope_id: sending.envelope_id.clone(),
                kind: kind(sending.door),
                socket,
                at_ms,
                attempt,
                accepts_payload: sending.accepts_payload(),
                payload: sending.payload.clone(),
                acked_ms: None,
                took_ms: None,
                answer: Value::Null,
            };
            state.sockets.envelopes.push((envelope, started));
            let envelope_id = sending.envelope_id.clone();
            state.sockets.waiting.push(Waiting { envelope_id, socket, answer });
            match &mut state.sockets.held {
                Some(held) => held.push((socket, raw.clone())),
                None => {
                    state.sockets.tell(socket, Tell::Text(raw.clone()));
                }
            }
            (Some(socket), raw, Some(waiting))
        });
        let (mut status, mut body) = match waiting {
            None if unsent => (0, "not delivered".to_owned()),
            None => (0, "no socket is open".to_owned()),
            Some(waiting) => self.answer_of(waiting, at_ms).await,
        };
        let real = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let shown = u64::try_from(self.time.now_ms().saturating_sub(at_ms)).unwrap_or(0);
        if unheard {
            (status, body) = (0, "the answer was lost".into());
        }
        let took_ms = if socket.is_some() { real.max(shown) } else { 0 };
        let envelope_id = Some(sending.envelope_id.clone());
        let door = sending.door;
        let delivery = Delivery {
            door,
            at_ms,
            status,
            body,
            took_ms,
            attempt,
            raw,
            headers: Vec::new(),
            socket,
            envelope_id,
            no_retry: false,
        };
        self.change(|state| state.deliveries.push(delivery.clone()));
        delivery
    }

    /// Waits for an acknowledgement, three seconds by both clocks.
    async fn answer_of(&self, waiting: oneshot::Receiver<Value>, at_ms: i64) -> (u16, String) {
        let limit = i64::try_from(ACK.as_millis()).unwrap_or(i64::MAX);
        tokio::select! {
            biased;
            answer = waiting => match answer {
                Ok(Value::Null) => (200, String::new()),
                Ok(payload) => (200, payload.to_string()),
                Err(_) => (0, "the socket closed".to_owned()),
            },
            () = self.time.until(at_ms + limit) => (0, "not acknowledged within three seconds".to_owned()),
            () = tokio::time::sleep(ACK) => (0, "not acknowledged within three seconds".to_owned()),
        }
    }
}

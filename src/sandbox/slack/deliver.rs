//! Delivering to the app: signed requests, scripted trouble on the way, redelivery. In Socket Mode
//! the same deliveries go as envelopes over sockets.
//!
//! Invariant: a body is built once and signed over exactly the bytes sent; a repeated delivery
//! repeats the bytes. Everything delivered is recorded with the answer and the time it took.

use super::sign::{Signing, sign};
use super::world::SlackWorld;
use crate::net;
use crate::sandbox::faults::Fault;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Slack waits this long for an acknowledgement.
pub const ACK: Duration = Duration::from_secs(3);

/// Where an app is reached; a door without address is shut.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Doors {
    pub interactivity: Option<String>,
    pub commands: Option<String>,
    pub events: Option<String>,
}

impl Doors {
    /// The three doors of an app at this root address.
    #[must_use]
    pub fn at(app: &str) -> Self {
        let door = |name: &str| Some(format!("{}/slack/{name}", app.trim_end_matches('/')));
        Self { interactivity: door("interactivity"), commands: door("commands"), events: door("events") }
    }
}

/// Which door a delivery goes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Door {
    Interactivity,
    Commands,
    Events,
}

impl Door {
    fn name(self) -> &'static str {
        match self {
            Self::Interactivity => "interactivity",
            Self::Commands => "commands",
            Self::Events => "events",
        }
    }

    fn content_type(self) -> &'static str {
        match self {
            Self::Events => "application/json",
            _ => "application/x-www-form-urlencoded",
        }
    }
}

/// How a delivery is made.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Manner {
    pub signing: Signing,
    /// The same bytes this many times more, all at once.
    pub repeats: u32,
    /// In Socket Mode: over this socket. Copies take the next ones in turn.
    pub socket: Option<u64>,
}

impl Manner {
    /// Signed this way.
    #[must_use]
    pub fn signed(signing: Signing) -> Self {
        Self { signing, ..Self::default() }
    }

    /// The same delivery twice at once.
    #[must_use]
    pub fn twice() -> Self {
        Self { repeats: 1, ..Self::default() }
    }

    /// Over this socket.
    #[must_use]
    pub fn over(socket: u64) -> Self {
        Self { socket: Some(socket), ..Self::default() }
    }
}

/// What a person sees of a delivery that failed: Slack's warning beside the control, or its answer
/// to the command.
#[derive(Debug, Clone, Serialize)]
pub struct Warning {
    pub user: String,
    pub at_ms: i64,
    pub door: Door,
    /// Where it was: `{channel}/{ts}`, a view's id, a channel.
    pub at: String,
    pub why: String,
}

/// One delivery and what came back.
#[derive(Debug, Clone, Serialize)]
pub struct Delivery {
    pub door: Door,
    pub at_ms: i64,
    /// 0: no answer (refused, timed out, broken). An acknowledged envelope: 200.
    pub status: u16,
    /// The answer's body, or the payload of the acknowledgement; why there is none.
    pub body: String,
    pub took_ms: u64,
    /// 1 for the first, more for redeliveries.
    pub attempt: u32,
    /// The raw body and the headers it was signed with; the frame, without headers.
    pub raw: String,
    pub headers: Vec<(String, String)>,
    /// In Socket Mode: where it was sent, and its envelope.
    pub socket: Option<u64>,
    pub envelope_id: Option<String>,
    /// The answer asked for no retries (`X-Slack-No-Retry`).
    pub no_retry: bool,
}

impl Delivery {
    /// Acknowledged in time.
    #[must_use]
    pub fn acked(&self) -> bool {
        self.status == 200 && u128::from(self.took_ms) < ACK.as_millis()
    }

    /// The answer's body as JSON, `null` if it is none.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }

    /// The payload that was delivered: of a form field `payload`, of the JSON body, or of the
    /// envelope.
    #[must_use]
    pub fn payload(&self) -> serde_json::Value {
        if self.envelope_id.is_some() {
            let frame: serde_json::Value = serde_json::from_str(&self.raw).unwrap_or_default();
            return frame["payload"].clone();
        }
        let form = url::form_urlencoded::parse(self.raw.as_bytes()).find(|(key, _)| key == "payload");
        let text = form.map_or_else(|| self.raw.clone(), |(_, value)| value.into_owned());
        serde_json::from_str(&text).unwrap_or_default()
    }
}

/// A form body as a browser writes it.
pub(super) fn form(fields: &[(String, String)]) -> Vec<u8> {
    let mut form = url::form_urlencoded::Serializer::new(String::new());
    form.extend_pairs(fields);
    form.finish().into_bytes()
}

impl SlackWorld {
    /// Sends a body through a door; the first delivery first, then repeats and redeliveries.
    pub(super) async fn deliver(
        &self,
        door: Door,
        body: Vec<u8>,
        manner: &Manner,
        extra: &[(&'static str, String)],
    ) -> Vec<Delivery> {
        let done = self.deliver_now(door, body, manner, extra).await;
        if door != Door::Events && !done.iter().any(Delivery::acked) {
            self.warn(&done);
        }
        done
    }

    /// The person sees that nobody answered.
    fn warn(&self, done: &[Delivery]) {
        let Some(first) = done.first() else { return };
        let form: BTreeMap<_, _> = url::form_urlencoded::parse(first.raw.as_bytes()).collect();
        let payload = first.payload();
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        let field = |name: &str| form.get(name).map(|value| value.clone().into_owned());
        let user = match &payload["user"]["id"] {
            serde_json::Value::String(user) => user.clone(),
            _ => field("user_id").unwrap_or_else(|| text(&payload["user_id"])),
        };
        let container = &payload["container"];
        let at = match (&container["message_ts"], &payload["view"]["id"]) {
            (serde_json::Value::String(ts), _) => format!("{}/{ts}", text(&container["channel_id"])),
            (_, serde_json::Value::String(view)) => view.clone(),
            _ => field("channel_id").unwrap_or_else(|| text(&payload["channel_id"])),
        };
        let why = match first.status {
            0 => first.body.clone(),
            200 => "the answer came late".to_owned(),
            status => format!("HTTP status {status}"),
        };
        let warning = Warning { user, at_ms: first.at_ms, door: first.door, at, why };
        self.change(|state| state.warnings.push(warning));
    }

    /// Every warning that somebody saw, in order.
    pub fn warnings(&self) -> Vec<Warning> {
        self.lock().warnings.clone()
    }

    async fn deliver_now(
        &self,
        door: Door,
        body: Vec<u8>,
        manner: &Manner,
        extra: &[(&'static str, String)],
    ) -> Vec<Delivery> {
        let fault = self.faults().take(door.name());
        if self.switches().socket_mode {
            let header =
                |wanted: &str| extra.iter().find(|(name, _)| *name == wanted).map(|(_, value)| value);
            let number = header("X-Slack-Retry-Num").and_then(|number| number.parse().ok());
            let reason = header("X-Slack-Retry-Reason").cloned().unwrap_or_default();
            let retry = number.map(|number| (number, reason));
            return self.deliver_by_socket(door, &body, manner, retry, fault).await;
        }
        let mut copies = 1 + manner.repeats;
        match fault {
            Some(Fault::Delay { ms }) => tokio::time::sleep(Duration::from_millis(ms)).await,
            Some(Fault::Duplicate) => copies += 1,
            _ => {}
        }
        let unheard = matches!(fault, Some(Fault::Lost { .. } | Fault::CutAnswer));
        let unsent = matches!(fault, Some(Fault::Hang { .. }));
        let sends = (0..copies).map(|_| self.send(door, &body, manner, extra, 1, unsent, unheard));
        let mut done = futures_util::future::join_all(sends).await;
        let redeliver = self.switches().interactive_redelivery && door == Door::Interactivity;
        if redeliver && !done.iter().any(Delivery::acked) {
            done.push(self.send(door, &body, manner, extra, 2, false, false).await);
        }
        done
    }

    #[expect(clippy::too_many_arguments, reason = "one private function with two callers above")]
    async fn send(
        &self,
        door: Door,
        body: &[u8],
        manner: &Manner,
        extra: &[(&'static str, String)],
        attempt: u32,
        unsent: bool,
        unheard: bool,
    ) -> Delivery {
        let at_ms = self.time.now_ms();
        let (secret, url) = {
            let state = self.lock();
            let url = match door {
                Door::Interactivity => &state.doors.interactivity,
                Door::Commands => &state.doors.commands,
                Door::Events => &state.doors.events,
            };
            (state.signing_secret.clone(), url.clone())
        };
        let mut signed = sign(&manner.signing, &secret, at_ms, body.to_vec());
        signed.headers.extend_from_slice(extra);
        let raw = String::from_utf8_lossy(&signed.body).into_owned();
        let headers =
            signed.headers.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let started = Instant::now();
        let mut no_retry = false;
        let (mut status, mut answer) = match (url, self.http()) {
            _ if unsent => (0, "not delivered".to_owned()),
            (None, _) => (0, format!("no address is set for {}", door.name())),
            (_, None) => (0, "no HTTP client".to_owned()),
            (Some(url), Some(client)) => {
                let mut request = client
                    .post(&url)
                    .header("Content-Type", door.content_type())
                    .header("User-Agent", "Slackbot 1.0 (+https://api.slack.com/robots)");
                for (name, value) in &signed.headers {
                    request = request.header(*name, value);
                }
                match request.body(signed.body).send().await {
                    Ok(response) => {
                        no_retry =
                            response.headers().get("x-slack-no-retry").is_some_and(|value| value == "1");
                        (response.status().as_u16(), response.text().await.unwrap_or_default())
                    }
                    Err(error) => (0, error.without_url().to_string()),
                }
            }
        };
        let took_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        if unheard {
            (status, answer) = (0, "the answer was lost".into());
        }
        let delivery = Delivery {
            door,
            at_ms,
            status,
            body: answer,
            took_ms,
            attempt,
            raw,
            headers,
            socket: None,
            envelope_id: None,
            no_retry,
        };
        self.change(|state| state.deliveries.push(delivery.clone()));
        delivery
    }

    fn http(&self) -> Option<&reqwest::Client> {
        let limits = net::Limits { connect: ACK, total: Duration::from_secs(10) };
        self.client.get_or_init(|| net::client(limits).ok()).as_ref()
    }
}

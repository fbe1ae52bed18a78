//! Delivering clicks to an application: signed requests to its endpoint, or dispatches over the gateway.
//!
//! Invariant: an application with an endpoint gets everything there and nothing over the gateway; one without gets
//! nothing over HTTP. A body is built once and signed over exactly the bytes sent. A click that has no first
//! response after three seconds is a failure that its person sees.

use super::api::{self, Body, Call};
use super::payload;
use super::sign::{Signing, sign};
use super::world::{ACK_MS, DiscordWorld};
use crate::net;
use crate::sandbox::faults::Fault;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::{Duration, Instant};

/// Discord waits this long for a first response.
pub const ACK: Duration = Duration::from_secs(3);

/// How a delivery is made.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Manner {
    pub signing: Signing,
    /// The same this many times more, all at once.
    pub repeats: u32,
    /// Does not wait for a first response over the gateway.
    pub nowait: bool,
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

    /// Without waiting for the answer.
    #[must_use]
    pub fn nowait() -> Self {
        Self { nowait: true, ..Self::default() }
    }
}

/// "This interaction failed", as a person saw it.
#[derive(Debug, Clone, Serialize)]
pub struct Warning {
    pub user: String,
    pub at_ms: i64,
    pub channel: String,
    pub why: String,
}

/// Which way a click went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    Endpoint,
    Gateway,
}

/// One delivery and what came of it.
#[derive(Debug, Clone, Serialize)]
pub struct Delivery {
    pub way: Way,
    pub app: String,
    /// The click's id; of a ping too.
    pub click: String,
    pub at_ms: i64,
    /// Over HTTP; 0: no answer. Over the gateway: 0 when nobody listened, else 200.
    pub status: u16,
    /// The answer's body; why there is none.
    pub body: String,
    pub content_type: String,
    pub took_ms: u64,
    /// The raw body and the headers it was signed with.
    pub raw: String,
    pub headers: Vec<(String, String)>,
    /// The type of the click's first response, when this delivery was over.
    pub answered: Option<u64>,
    /// Why the answer in the body was not taken: an error body.
    pub refused: Option<Value>,
}

impl Delivery {
    /// The click had its first response in time.
    #[must_use]
    pub fn acked(&self) -> bool {
        self.answered.is_some()
    }

    /// The answer's body as JSON, `null` if it is none.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }

    /// What was delivered.
    #[must_use]
    pub fn payload(&self) -> Value {
        serde_json::from_str(&self.raw).unwrap_or_default()
    }
}

impl DiscordWorld {
    /// Sends a payload (of [`DiscordWorld::pressed`], or one seen before) to its application; the first
    /// delivery first, then repeats.
    pub async fn deliver_payload(&self, payload: &Value, manner: &Manner) -> Vec<Delivery> {
        let app = payload["application_id"].as_str().unwrap_or_default();
        self.deliver_to(app, payload, manner).await
    }

    /// The same to an application that the payload may not name.
    pub async fn deliver_to(&self, app: &str, payload: &Value, manner: &Manner) -> Vec<Delivery> {
        let endpoint = self.lock().apps.get(app).and_then(|app| app.endpoint.clone());
        let way = if endpoint.is_some() { "endpoint" } else { "dispatch" };
        let mut copies = 1 + manner.repeats;
        let fault = self.faults().take(way);
        match &fault {
            Some(Fault::Delay { ms }) => tokio::time::sleep(Duration::from_millis(*ms)).await,
            Some(Fault::Duplicate) => copies += 1,
            _ => {}
        }
        let unsent = matches!(fault, Some(Fault::Hang { .. }));
        let unheard = matches!(fault, Some(Fault::Lost { .. } | Fault::CutAnswer));
        let done = if endpoint.is_some() {
            let body = payload.to_string().into_bytes();
            let sends = (0..copies).map(|_| self.post(app, body.clone(), manner, unsent, unheard));
            futures_util::future::join_all(sends).await
        } else {
            self.dispatch(app, payload, copies, unsent, manner.nowait).await
        };
        self.after(payload, &done, manner);
        done
    }

    /// Sends raw bytes to the endpoint of an application.
    pub async fn deliver_bytes(&self, app: &str, body: Vec<u8>, manner: &Manner) -> Delivery {
        self.post(app, body, manner, false, false).await
    }

    /// What the person sees when nobody answered.
    fn after(&self, payload: &Value, done: &[Delivery], manner: &Manner) {
        let id = payload["id"].as_str().unwrap_or_default();
        if manner.nowait || done.iter().any(Delivery::acked) {
            return;
        }
        let Some(first) = done.first() else { return };
        let why = match (first.status, &first.refused) {
            (0, _) => first.body.clone(),
            (200, Some(refused)) => format!("the answer was refused: {refused}"),
            (200 | 202, None) => "nobody answered within three seconds".to_owned(),
            (status, _) => format!("HTTP status {status}"),
        };
        let now_ms = self.time.now_ms();
        self.change(|state| {
            if let Some(click) = state.clicks.get(id) {
                let (user, channel) = (click.user.clone(), click.channel.clone());
                state.warnings.push(Warning { user, at_ms: now_ms, channel, why });
            }
        });
    }

    async fn dispatch(
        &self,
        app: &str,
        payload: &Value,
        copies: u32,
        unsent: bool,
        nowait: bool,
    ) -> Vec<Delivery> {
        let (at_ms, started) = (self.time.now_ms(), Instant::now());
        let mut heard = 0;
        if !unsent {
            self.change(|state| {
                for _ in 0..copies {
                    heard += state.dispatch(app, None, "INTERACTION_CREATE", payload);
                }
            });
        }
        let id = payload["id"].as_str().unwrap_or_default();
        // A session without a connection may come back in time.
        if !nowait && !unsent && (heard > 0 || self.lock().has_session(app)) {
            self.first_response(id).await;
        }
        let answered = self.lock().clicks.get(id).and_then(|click| click.answered);
        let one = Delivery {
            way: Way::Gateway,
            app: app.into(),
            click: id.into(),
            at_ms,
            status: if heard > 0 { 200 } else { 0 },
            body: if heard > 0 { String::new() } else { "nobody is connected to the gateway".into() },
            content_type: String::new(),
            took_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
            raw: payload.to_string(),
            headers: Vec::new(),
            answered,
            refused: None,
        };
        let all = vec![one; copies as usize];
        self.change(|state| state.deliveries.extend(all.iter().cloned()));
        all
    }

    /// Waits for the first response to a click until its three seconds are over, by either clock.
    async fn first_response(&self, id: &str) {
        let open = |world: &Self| {
            let state = world.lock();
            let click = state.clicks.get(id)?;
            (click.answered.is_none() && world.time.now_ms() - click.made_ms <= ACK_MS).then_some(())
        };
        let answered = self.until("a first response", ACK, |world| open(world).is_none().then_some(()));
        let late = async {
            loop {
                tokio::time::sleep(Duration::from_millis(20)).await;
                if open(self).is_none() {
                    return;
                }
            }
        };
        tokio::select! {
            _ = answered => {}
            () = late => {}
        }
    }

    async fn post(&self, app: &str, body: Vec<u8>, manner: &Manner, unsent: bool, unheard: bool) -> Delivery {
        let at_ms = self.time.now_ms();
        let (seed, url) = {
            let state = self.lock();
            let url = state.apps.get(app).and_then(|app| app.endpoint.clone());
            (state.seeds.get(app).copied().unwrap_or_default(), url)
        };
        let signed = sign(&manner.signing, &seed, at_ms, body);
        let raw = String::from_utf8_lossy(&signed.body).into_owned();
        let headers = signed.headers.iter();
        let headers = headers
            .map(|(name, value)| ((*name).to_owned(), String::from_utf8_lossy(value).into_owned()))
            .collect();
        let started = Instant::now();
        let (mut status, mut text, mut content_type) = (0, String::new(), String::new());
        match (url, self.http()) {
            _ if unsent => "not delivered".clone_into(&mut text),
            (None, _) => "no endpoint is set".clone_into(&mut text),
            (_, None) => "no HTTP client".clone_into(&mut text),
            (Some(url), Some(client)) => {
                let mut request = client
                    .post(&url)
                    .header("Content-Type", "application/json")
                    .header("User-Agent", "Discord-Interactions/1.0 (+https://discord.com)");
                for (name, value) in &signed.headers {
                    request = request.header(*name, value.as_slice());
                }
                match request.body(signed.body).send().await {
                    Ok(response) => {
                        status = response.status().as_u16();
                        let kind = response.headers().get("content-type").and_then(|kind| kind.to_str().ok());
                        content_type = kind.unwrap_or_default().to_owned();
                        text = response.text().await.unwrap_or_default();
                    }
                    Err(error) => text = error.without_url().to_string(),
                }
            }
        }
        let took_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        if unheard {
            (status, text) = (0, "the answer was lost".into());
        }
        let click = serde_json::from_str::<Value>(&raw).unwrap_or_default()["id"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let mut delivery = Delivery {
            way: Way::Endpoint,
            app: app.into(),
            click,
            at_ms,
            status,
            body: text,
            content_type,
            took_ms,
            raw,
            headers,
            answered: None,
            refused: None,
        };
        self.take_answer(&mut delivery).await;
        self.change(|state| state.deliveries.push(delivery.clone()));
        delivery
    }

    /// An answer in the body is the first response; 202 says it was, or will be, given over REST.
    async fn take_answer(&self, delivery: &mut Delivery) {
        let id = delivery.click.clone();
        if !self.lock().clicks.contains_key(&id) {
            return;
        }
        if delivery.status == 200 && u128::from(delivery.took_ms) < ACK.as_millis() {
            let now_ms = self.time.now_ms();
            let json =
                delivery.content_type.split(';').next().unwrap_or_default().trim() == "application/json";
            let body = Body { json: if json { delivery.json() } else { Value::Null }, files: Vec::new() };
            let taken = self.change(|state| {
                let click = state.clicks.get(&id);
                let app = click.map(|click| click.app.clone()).unwrap_or_default();
                let bot = state.apps.get(&app).map(|app| app.bot_user.clone()).unwrap_or_default();
                let call = Call { ids: &[], query: &[], body: &body, app, bot, now_ms };
                let taken = api::respond(state, &call, &id);
                if let Err(refusal) = &taken
                    && refusal.code != 40060
                {
                    state.breaches.push(format!("the answer to click {id}: {}", refusal.body()));
                }
                taken
            });
            delivery.refused = taken.err().map(|refusal| refusal.body());
        } else if delivery.status == 202 {
            if !delivery.body.is_empty() {
                self.change(|state| state.breaches.push(format!("the 202 to click {id} has a body")));
            }
            self.first_response(&id).await;
        }
        delivery.answered = self.lock().clicks.get(&id).and_then(|click| click.answered);
    }

    /// Saves an application's endpoint as its owner does in the portal: Discord pings it, well signed and badly,
    /// and does not take it when either answer is wrong. `None` takes it away.
    pub async fn set_endpoint(&self, app: &str, url: Option<&str>) -> Result<(), String> {
        let Some(url) = url else {
            self.set_endpoint_unchecked(app, None);
            return Ok(());
        };
        if !url::Url::parse(url).is_ok_and(|url| net::is_loopback(&url)) {
            return Err("this Discord reaches loopback addresses only".into());
        }
        let before = self.lock().apps.get(app).and_then(|app| app.endpoint.clone());
        self.set_endpoint_unchecked(app, Some(url));
        let checked = self.check_endpoint(app).await;
        if checked.is_err() {
            self.set_endpoint_unchecked(app, before.as_deref());
        }
        checked
    }

    /// Sets an endpoint without asking it.
    pub fn set_endpoint_unchecked(&self, app: &str, url: Option<&str>) {
        self.change(|state| {
            if let Some(app) = state.apps.get_mut(app) {
                app.endpoint = url.map(Into::into);
            }
        });
    }

    /// Discord's check at intervals: one wrong answer takes the endpoint away.
    pub async fn probe_endpoint(&self, app: &str) -> Result<(), String> {
        let checked = self.check_endpoint(app).await;
        if checked.is_err() {
            self.set_endpoint_unchecked(app, None);
        }
        checked
    }

    async fn check_endpoint(&self, app: &str) -> Result<(), String> {
        let good = self.ping(app, Signing::Good).await;
        let pong = good.status == 200 && good.json()["type"] == 1;
        if !pong || !good.content_type.starts_with("application/json") {
            return Err(format!("a ping was answered {} {:?} {}", good.status, good.content_type, good.body));
        }
        for signing in [Signing::Bad, Signing::OtherKey] {
            let bad = self.ping(app, signing).await;
            if bad.status != 401 {
                return Err(format!("a ping with a bad signature was answered {} {}", bad.status, bad.body));
            }
        }
        Ok(())
    }

    /// One ping, signed this way.
    pub async fn ping(&self, app: &str, signing: Signing) -> Delivery {
        let now_ms = self.time.now_ms();
        let ping = self.change(|state| payload::ping(state, app, now_ms));
        self.post(app, ping.to_string().into_bytes(), &Manner::signed(signing), false, false).await
    }

    /// Every failure that somebody saw, in order.
    pub fn warnings(&self) -> Vec<Warning> {
        self.lock().warnings.clone()
    }

    fn http(&self) -> Option<&reqwest::Client> {
        let limits = net::Limits { connect: ACK, total: Duration::from_secs(10) };
        self.client.get_or_init(|| net::client(limits).ok()).as_ref()
    }
}

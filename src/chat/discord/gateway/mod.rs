//! The gateway: Discord's events over a connection that we open (Discord: Gateway).
//!
//! Invariant: one connection per install, on one replica at a time; whoever runs this holds the lease and
//! stops it when it is lost. What an event asks for is committed before it is answered, events are worked on
//! at the same time, and a session is taken up again wherever that is possible, also after a restart. We never
//! close with 1000 or 1001, which would end it: a connection is dropped. Whatever fails, connections are made
//! no faster than the gate allows (`timing`), and a new session is begun only while Discord has some left.
//!
//! Known races and the decisions taken:
//! - events come twice (after a resume, after a restart with an older sequence): each has its own key in the
//!   database, and what has no key is harmless when done twice;
//! - events between a session that is gone and the next are lost: runtimes are read anyway, and whoever
//!   pressed sees that it failed and presses again;
//! - the lease is lost while events are worked on: they are finished, none is read any more, and the saved
//!   session of the new holder is not overwritten (the store asks for the lease's epoch).

mod address;
mod frame;
mod shard;
mod timing;

pub use timing::Timing;

use super::events::{self, Event};
use crate::domain::ids::Ids;
use crate::domain::session::Session;
use address::Address;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use shard::End;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use timing::Gate;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use twilight_gateway::{Config, ConfigBuilder, Intents, Session as Resumable, Shard, ShardId};

/// So many failures in a row are worth a look by a person.
const WORTH_TELLING: u32 = 5;
/// So many failures in a row, and a session is taken up at the API's address instead of its own.
const ELSEWHERE: u32 = 2;

/// The other side of the client: where events go, and what outlives it.
pub trait Desk: Send + Sync {
    /// The session of before, to be taken up again.
    fn load(&self) -> BoxFuture<'_, Option<Session>>;
    /// Keeps what is needed to go on; `false`: another replica has the lease, stop at once.
    fn save(&self, session: Option<Session>) -> BoxFuture<'_, bool>;
    /// Takes what somebody did, and answers it.
    fn interaction(&self, payload: Value) -> BoxFuture<'_, ()>;
    /// Takes an event.
    fn event(&self, event: Event) -> BoxFuture<'_, ()>;
    /// Keeps a frame that cannot be read, and tells operators.
    fn keep<'a>(&'a self, frame: &'a str) -> BoxFuture<'a, ()>;
    /// What keeps events from coming, for operators; `None`: all is well.
    fn trouble<'a>(&'a self, what: Option<&'a str>) -> BoxFuture<'a, ()>;
}

/// One install that takes its clicks over the gateway.
#[derive(Debug, Clone)]
pub struct GatewaySettings {
    /// The configured name.
    pub name: String,
    pub application_id: String,
    pub bot_token: SecretString,
    /// Without a slash at its end.
    pub api_url: String,
}

/// The client of one install.
pub struct Gateway {
    settings: GatewaySettings,
    client: reqwest::Client,
    ids: Arc<dyn Ids>,
    timing: Timing,
    /// With the system's trust store, read when it is first needed.
    config: OnceLock<Config>,
    on_loopback: bool,
}

/// Why there is no address to connect to.
enum NotThere {
    /// Not before this.
    Wait(Duration),
    /// A person has to mend this.
    Refused(String),
    /// Perhaps next time.
    Failed(&'static str),
}

impl Gateway {
    /// Makes the client. Talks to nobody yet.
    #[must_use]
    pub fn new(
        settings: GatewaySettings,
        client: reqwest::Client,
        ids: Arc<dyn Ids>,
        timing: Timing,
    ) -> Self {
        crate::net::init();
        let on_loopback = url::Url::parse(&settings.api_url).is_ok_and(|url| crate::net::is_loopback(&url));
        Self { settings, client, ids, timing, config: OnceLock::new(), on_loopback }
    }

    /// The configured name of the install.
    #[must_use]
    pub fn install(&self) -> &str {
        &self.settings.name
    }

    /// Keeps the connection and takes what comes, until told to stop: then no more is read, and what was taken
    /// is finished.
    pub async fn run(&self, desk: &dyn Desk, stop: &CancellationToken) {
        let mut watch = Watch {
            gateway: self,
            desk,
            gate: Gate::new(Instant::now()),
            session: desk.load().await,
            work: FuturesUnordered::new(),
        };
        while !stop.is_cancelled() {
            if !watch.wait(stop).await {
                break;
            }
            let shard = tokio::select! {
                () = stop.cancelled() => break,
                shard = watch.connect() => shard,
            };
            let Some(shard) = shard else { continue };
            let end = watch.serve(shard, stop).await;
            self.count(false);
            if !watch.ended(end, stop).await {
                break;
            }
        }
        let _ = timeout(self.timing.farewell, async { while watch.work.next().await.is_some() {} }).await;
    }

    /// Asks where the gateway is.
    async fn address(&self) -> Result<Address, NotThere> {
        let url = format!("{}/gateway/bot", self.settings.api_url);
        let authorization = format!("Bot {}", self.settings.bot_token.expose_secret());
        let request = self.client.get(url).header("authorization", authorization);
        let request = request.header("user-agent", super::USER_AGENT);
        let answer = request.send().await.map_err(|_| NotThere::Failed("the API does not answer"))?;
        let status = answer.status().as_u16();
        let wait =
            answer.headers().get("retry-after").and_then(|wait| wait.to_str().ok()?.parse::<f64>().ok());
        let body: Option<Value> = answer.json().await.ok();
        match (status, body) {
            (200, Some(body)) => address::read(&body, self.on_loopback)
                .ok_or_else(|| NotThere::Refused("the address of the gateway leads elsewhere".into())),
            (429, _) => {
                let wait = wait.filter(|wait| (0.0..=3600.0).contains(wait)).unwrap_or(5.0);
                Err(NotThere::Wait(Duration::from_secs_f64(wait)))
            }
            (401 | 403, Some(_)) => {
                Err(NotThere::Refused(format!("Discord refuses the bot's token ({status})")))
            }
            _ => Err(NotThere::Failed("the API gives no address of the gateway")),
        }
    }

    /// A connection that begins a session, or takes one up; nothing is sent before it is read.
    fn shard(&self, address: &Address, session: Option<&Session>, at_its_own: bool) -> Shard {
        let base = self.config.get_or_init(|| {
            let token = format!("Bot {}", self.settings.bot_token.expose_secret());
            let intents = Intents::GUILDS | Intents::GUILD_MESSAGES | Intents::DIRECT_MESSAGES;
            ConfigBuilder::new(token, intents).build()
        });
        let mut config = ConfigBuilder::from(base.clone()).proxy_url(address.url.clone());
        if let Some(session) = session {
            let seq = u64::try_from(session.seq).unwrap_or_default();
            config = config.session(Resumable::new(seq, session.id.clone()));
            if let Some(url) =
                address::leads_right(&session.resume_url, self.on_loopback).filter(|_| at_its_own)
            {
                config = config.resume_url(url);
            }
        }
        Shard::with_config(ShardId::ONE, config.build())
    }

    fn again(&self, reason: &'static str) {
        metrics::counter!("countersign_gateway_reconnects_total",
            "install" => self.settings.name.clone(), "reason" => reason)
        .increment(1);
    }

    fn count(&self, stands: bool) {
        metrics::gauge!("countersign_gateway_up", "install" => self.settings.name.clone()).set(if stands {
            1.0
        } else {
            0.0
        });
    }
}

/// The connections of one run, one after the other.
struct Watch<'g> {
    gateway: &'g Gateway,
    desk: &'g dyn Desk,
    gate: Gate,
    session: Option<Session>,
    /// What was taken and is not finished.
    work: FuturesUnordered<BoxFuture<'g, ()>>,
}

impl Watch<'_> {
    /// Waits for the gate; `false` when told to stop.
    async fn wait(&mut self, stop: &CancellationToken) -> bool {
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return false,
                Some(()) = self.work.next(), if !self.work.is_empty() => {}
                () = sleep_until(self.gate.next()) => return true,
            }
        }
    }

    /// Asks where to go, and whether a new session may be begun.
    async fn connect(&mut self) -> Option<Shard> {
        let install = self.gateway.install();
        match self.gateway.address().await {
            Ok(Address { left: Some((0, wait)), .. }) if self.session.is_none() => {
                let wait = wait.max(self.gateway.timing.first_wait);
                let what = "no sessions of the gateway are left for now; clicks do not arrive until Discord gives more";
                self.refused("no_sessions_left", what, wait).await;
                None
            }
            Ok(address) => {
                let at_its_own = self.gate.failures() < ELSEWHERE;
                Some(self.gateway.shard(&address, self.session.as_ref(), at_its_own))
            }
            Err(NotThere::Wait(wait)) => {
                self.gate.hold(Instant::now(), wait);
                self.gateway.again("paced");
                None
            }
            Err(NotThere::Refused(why)) => {
                let what = format!("the gateway cannot be connected to: {why}");
                self.refused("refused", &what, self.gateway.timing.refused).await;
                None
            }
            Err(NotThere::Failed(why)) => {
                tracing::warn!(install, why, "the gateway's address could not be read");
                self.failed("no_address").await;
                None
            }
        }
    }

    /// A person has to mend it: seldom tried again.
    async fn refused(&mut self, reason: &'static str, what: &str, wait: Duration) {
        self.gate.hold(Instant::now(), wait);
        self.gateway.again(reason);
        self.desk.trouble(Some(what)).await;
    }

    async fn failed(&mut self, reason: &'static str) {
        let [chance, ..] = self.gateway.ids.random();
        self.gate.failed(Instant::now(), &self.gateway.timing, chance);
        self.gateway.again(reason);
        if self.gate.failures() == WORTH_TELLING {
            let what = "the gateway cannot be connected to, or closes at once; clicks may not arrive";
            self.desk.trouble(Some(what)).await;
        }
    }

    /// What follows the end of a connection; `false`: nothing.
    async fn ended(&mut self, end: End, stop: &CancellationToken) -> bool {
        tracing::info!(install = self.gateway.install(), ?end, "a gateway connection has ended");
        match end {
            End::Stopped | End::Lost => return false,
            End::Dropped => self.gateway.again("dropped"),
            End::Failed(reason) => self.failed(reason).await,
            End::SessionGone => {
                let [chance, ..] = self.gateway.ids.random();
                let wait = self.gateway.timing.new_session.mul_f64(1.0 + 4.0 * f64::from(chance) / 255.0);
                self.gateway.again("session_gone");
                self.session = None;
                if !self.desk.save(None).await {
                    return false;
                }
                // A session that is gone as soon as it stands is a failure too.
                self.gate.failed(Instant::now(), &self.gateway.timing, chance);
                self.gate.hold(Instant::now(), wait);
            }
            End::Fatal(code) => {
                let why = match code {
                    4004 => "Discord refuses the bot's token",
                    4011 => "the application is in too many servers for one connection",
                    4013 | 4014 => "Discord refuses what we ask to be told of (intents)",
                    _ => "Discord refuses how we connect",
                };
                let what = format!("the gateway is closed for good ({code}): {why}; mend it and restart");
                self.gateway.again("fatal");
                self.desk.trouble(Some(&what)).await;
                while !stop.is_cancelled() {
                    tokio::select! {
                        () = stop.cancelled() => {}
                        Some(()) = self.work.next(), if !self.work.is_empty() => {}
                    }
                }
                return false;
            }
            End::Astray => {
                self.session = None;
                let what = "Discord names an address to go on at that leads elsewhere; it is not used";
                self.refused("astray", what, self.gateway.timing.refused).await;
                return self.desk.save(None).await;
            }
            End::OtherApplication(theirs) => {
                self.session = None;
                let ours = &self.gateway.settings.application_id;
                let what = format!("the bot's token is of application {theirs}, not of {ours}");
                self.refused("other_application", &what, self.gateway.timing.refused).await;
                return self.desk.save(None).await;
            }
        }
        true
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;

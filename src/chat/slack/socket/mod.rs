//! Socket Mode: Slack's deliveries over WebSockets that we open (Slack: Using Socket Mode).
//!
//! Invariant: two sockets are kept per install; a socket that Slack wants back, or that is silent, is
//! left only when another one has said `hello`. An envelope is acknowledged after it was committed
//! (`link`). Whatever fails, sockets are opened no faster than the gate allows (`timing`). Frames
//! carry no signature: what is trusted is the address, got with the app-level token (`open`).
//!
//! Known races and the decisions taken:
//! - Slack gives each delivery to any socket of the app, also of another replica: every replica serves
//!   its own sockets, and what came before is known in the database;
//! - a replacement opens while the old socket already ended: it simply takes its place.

mod frame;
mod link;
mod open;
mod timing;

pub use timing::Timing;

use super::api::Api;
use super::delivery::Delivery;
use crate::domain::ids::Ids;
use crate::pace::Pace;
use frame::Reason;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use link::{End, Fate, Link, Said};
use open::{NotOpened, Opened};
use secrecy::SecretString;
use serde_json::Value;
use std::sync::{Arc, OnceLock};
use timing::Gate;
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tokio_websockets::{Connector, MaybeTlsStream, WebSocketStream};

type Line = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// So many failures in a row are worth a look by a person.
const WORTH_TELLING: u32 = 5;

/// After "too many", fewer sockets are kept for so many of the waits that follow it.
const FEWER_FOR: u32 = 60;

/// The other side of the client: where deliveries go, and what it has to know.
pub trait Inbox: Send + Sync {
    /// The id of our app, once it is known.
    fn app_id(&self) -> Option<String>;
    /// Takes a delivery. `None`: it may not be acknowledged.
    fn take<'a>(&'a self, delivery: Delivery<'a>) -> BoxFuture<'a, Option<Acknowledged>>;
    /// Keeps a frame that cannot be read, and tells operators; whether it is kept.
    fn keep<'a>(&'a self, frame: &'a [u8]) -> BoxFuture<'a, bool>;
    /// What keeps deliveries from coming, for operators; `None`: all is well.
    fn trouble<'a>(&'a self, what: Option<&'a str>) -> BoxFuture<'a, ()>;
}

/// A delivery that was taken.
#[derive(Debug, PartialEq)]
pub enum Acknowledged {
    Bare,
    /// With an answer for the person, where Slack takes one.
    With(Value),
}

/// One install in Socket Mode.
#[derive(Debug, Clone)]
pub struct SocketSettings {
    /// The configured name.
    pub name: String,
    /// The app-level token, `xapp-…`, with `connections:write`.
    pub app_token: SecretString,
    /// Base address of the Web API.
    pub api_url: String,
}

/// The client of one install.
pub struct SocketMode {
    api: Api,
    inbox: Arc<dyn Inbox>,
    ids: Arc<dyn Ids>,
    timing: Timing,
    /// With the system's trust store, read when it is first needed.
    tls: OnceLock<Connector>,
    on_loopback: bool,
}

impl SocketMode {
    /// Makes the client. Talks to nobody yet.
    #[must_use]
    pub fn new(
        settings: SocketSettings,
        client: reqwest::Client,
        pace: Pace,
        ids: Arc<dyn Ids>,
        inbox: Arc<dyn Inbox>,
        timing: Timing,
    ) -> Self {
        crate::net::init();
        let SocketSettings { name, app_token, api_url } = settings;
        let on_loopback = reqwest::Url::parse(&api_url).is_ok_and(|url| crate::net::is_loopback(&url));
        let api = Api::new(name, &api_url, app_token, client, pace);
        Self { api, inbox, ids, timing, tls: OnceLock::new(), on_loopback }
    }

    /// The configured name of the install.
    #[must_use]
    pub fn install(&self) -> &str {
        &self.api.install
    }

    /// Keeps sockets open and takes what comes, until told to stop: then no more is read, and what was
    /// taken is acknowledged.
    pub async fn run(&self, stop: &CancellationToken) {
        let (tell, mut told) = mpsc::unbounded_channel();
        let mut crew = Crew::new(self, tell, stop.clone());
        let mut links = FuturesUnordered::new();
        let mut opening: Option<BoxFuture<'_, Result<Opened, NotOpened>>> = None;
        while !stop.is_cancelled() {
            if opening.is_none() && crew.may_open() {
                crew.gate.opening(Instant::now(), &self.timing);
                opening = Some(Box::pin(self.open()));
            }
            tokio::select! {
                () = stop.cancelled() => break,
                opened = opened(&mut opening), if opening.is_some() => {
                    opening = None;
                    match opened {
                        Ok(opened) => links.push(self.serve(crew.welcome(opened))),
                        Err(why) => crew.not_opened(why).await,
                    }
                }
                Some((number, end)) = links.next(), if !links.is_empty() => crew.ended(number, end).await,
                Some((number, said)) = told.recv() => crew.heard(number, said).await,
                () = sleep_until(crew.gate.next()), if opening.is_none() && crew.missing() > 0 => {}
            }
            crew.count();
        }
        drop(opening);
        while links.next().await.is_some() {}
        crew.members.clear();
        crew.count();
    }
}

async fn opened<T>(opening: &mut Option<BoxFuture<'_, T>>) -> T {
    match opening {
        Some(opening) => opening.await,
        None => std::future::pending().await,
    }
}

/// A socket among the others.
struct Member {
    number: u64,
    fate: watch::Sender<Fate>,
    standing: Standing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    Serving,
    /// It waits for its replacement.
    Leaving {
        silent: bool,
    },
    /// Its replacement is there.
    Replaced,
}

/// The sockets of an install, and when the next may be opened.
struct Crew<'a> {
    mode: &'a SocketMode,
    gate: Gate,
    members: Vec<Member>,
    /// How many are wanted: fewer after "too many", for a time.
    wanted: usize,
    fewer_until: Option<Instant>,
    opened: u64,
    tell: mpsc::UnboundedSender<(u64, Said)>,
    stop: CancellationToken,
}

impl<'a> Crew<'a> {
    fn new(mode: &'a SocketMode, tell: mpsc::UnboundedSender<(u64, Said)>, stop: CancellationToken) -> Self {
        let (gate, wanted) = (Gate::new(Instant::now()), mode.timing.sockets.max(1));
        Self { mode, gate, members: vec![], wanted, fewer_until: None, opened: 0, tell, stop }
    }

    fn missing(&self) -> usize {
        let serving = self.members.iter().filter(|member| member.standing == Standing::Serving).count();
        self.wanted.saturating_sub(serving)
    }

    fn may_open(&mut self) -> bool {
        if self.fewer_until.is_some_and(|until| until <= Instant::now()) {
            (self.fewer_until, self.wanted) = (None, self.mode.timing.sockets.max(1));
        }
        self.missing() > 0 && self.gate.next() <= Instant::now()
    }

    /// A socket has said `hello`: the one that waited longest for a replacement may go.
    fn welcome(&mut self, opened: Opened) -> Link {
        self.opened += 1;
        let (number, install) = (self.opened, self.mode.install());
        tracing::info!(install, number, "a socket is open");
        let linger = Fate::Until(Instant::now() + self.mode.timing.linger);
        let replaced = self.members.iter_mut().find_map(|member| match member.standing {
            Standing::Leaving { silent } => Some((member, silent)),
            _ => None,
        });
        if let Some((member, silent)) = replaced {
            member.standing = Standing::Replaced;
            let _ = member.fate.send(if silent { Fate::Drop } else { linger });
        }
        let (fate, fated) = watch::channel(Fate::Stay);
        self.members.push(Member { number, fate, standing: Standing::Serving });
        Link { number, opened, fate: fated, tell: self.tell.clone(), stop: self.stop.clone() }
    }

    async fn heard(&mut self, number: u64, said: Said) {
        let Some(member) = self.members.iter_mut().find(|member| member.number == number) else { return };
        let silent = match said {
            Said::Leaving => false,
            Said::Silent => true,
            Said::Steady => {
                self.gate.steady();
                return self.mode.inbox.trouble(None).await;
            }
        };
        match member.standing {
            Standing::Serving => self.again(if silent { "silent" } else { "refresh" }),
            // It fell silent on its way out.
            Standing::Leaving { .. } => {}
            Standing::Replaced => return,
        }
        if let Some(member) = self.members.iter_mut().find(|member| member.number == number) {
            member.standing = Standing::Leaving { silent };
        }
    }

    async fn ended(&mut self, number: u64, end: End) {
        let standing = self.members.iter().find(|member| member.number == number).map(|one| one.standing);
        self.members.retain(|member| member.number != number);
        tracing::info!(install = self.mode.install(), number, ?end, "a socket has ended");
        match end {
            End::Closed if standing == Some(Standing::Serving) => self.failed("closed").await,
            End::Stopped | End::Left | End::Closed => {}
            End::Told(reason) => self.told(reason).await,
            End::OtherApp { theirs, ours } => self.other_app(&theirs, &ours).await,
        }
    }

    async fn not_opened(&mut self, why: NotOpened) {
        match why {
            NotOpened::Wait(wait) => {
                self.gate.hold(Instant::now(), wait);
                self.again("paced");
            }
            NotOpened::Failed(why) => {
                tracing::warn!(install = self.mode.install(), why, "a socket could not be opened");
                self.failed("not_opened").await;
            }
            NotOpened::Refused(why) => {
                self.refused("refused", &format!("no socket can be opened: {why}")).await;
            }
            NotOpened::Said(reason) => self.told(reason).await,
            NotOpened::OtherApp { theirs, ours } => self.other_app(&theirs, &ours).await,
        }
    }

    async fn told(&mut self, reason: Reason) {
        match reason {
            Reason::Refresh => self.failed("closed").await,
            Reason::Disabled => {
                self.refused("disabled", "Slack has switched Socket Mode off for this app").await;
            }
            Reason::TooMany => {
                let install = self.mode.install();
                self.wanted = self.wanted.saturating_sub(1).max(1);
                tracing::warn!(install, wanted = self.wanted, "Slack says there are too many sockets");
                let now = Instant::now();
                self.gate.hold(now, self.mode.timing.crowded);
                self.fewer_until = Some(now + self.mode.timing.crowded * FEWER_FOR);
                self.again("too_many");
            }
        }
    }

    async fn other_app(&mut self, theirs: &str, ours: &str) {
        let what =
            format!("the app token is of app {theirs}, the bot token of app {ours}: one of them is wrong");
        self.refused("other_app", &what).await;
    }

    /// A person has to mend it: seldom tried again.
    async fn refused(&mut self, reason: &'static str, what: &str) {
        self.gate.hold(Instant::now(), self.mode.timing.refused);
        self.again(reason);
        self.mode.inbox.trouble(Some(what)).await;
    }

    async fn failed(&mut self, reason: &'static str) {
        let [chance, ..] = self.mode.ids.random();
        self.gate.failed(Instant::now(), &self.mode.timing, chance);
        self.again(reason);
        if self.gate.failures() == WORTH_TELLING {
            let what = "sockets cannot be opened, or close at once; clicks may not arrive";
            self.mode.inbox.trouble(Some(what)).await;
        }
    }

    fn again(&self, reason: &'static str) {
        metrics::counter!("countersign_socket_reconnects_total",
            "install" => self.mode.install().to_owned(), "reason" => reason)
        .increment(1);
    }

    fn count(&self) {
        let open = u32::try_from(self.members.len()).unwrap_or(u32::MAX);
        metrics::gauge!("countersign_sockets_open", "install" => self.mode.install().to_owned())
            .set(f64::from(open));
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;

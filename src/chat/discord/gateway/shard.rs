//! The life of one connection, and of those that take its session up: read, take, save, until it ends.
//!
//! Invariant: the library connects when it is read from, so it is not read from while the gate is closed. It
//! says nothing when a connection just breaks, and makes the next at once: that is seen by its state, and left.
//! What it says of an error may hold an event, which is in no log line.

use super::frame::{self, Frame};
use super::{Watch, address, events};
use crate::domain::session::Session;
use futures_util::{FutureExt, StreamExt};
use serde_json::Value;
use std::task::Poll;
use std::time::Duration;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use twilight_gateway::error::{ReceiveMessageError, ReceiveMessageErrorType};
use twilight_gateway::{Message, Shard, ShardState};

/// So many events are worked on at once; then nothing is read until one is done.
const AT_ONCE: usize = 512;
/// Longer than any write may take; a person has pressed again by then.
const LONGEST: Duration = Duration::from_secs(30);
/// Heartbeats come this often where nothing was said of it.
const BEAT: Duration = Duration::from_secs(45);

/// How a connection ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum End {
    Stopped,
    /// Another replica has the lease.
    Lost,
    /// Connect again, with the session if there is one.
    Failed(&'static str),
    /// The same after a session that had stood.
    Dropped,
    /// Begin a new session.
    SessionGone,
    /// Never again with this configuration.
    Fatal(u16),
    /// READY names an address that may not be gone to.
    Astray,
    OtherApplication(String),
}

/// Where a connection stands.
struct Pulse {
    heard: Instant,
    /// Silence for longer than this is death.
    limit: Duration,
    beat: Duration,
    /// Since when the session stands.
    stands: Option<Instant>,
    steady: bool,
    /// Not read from before this.
    rest: Option<Instant>,
    /// There is a connection, as far as was seen.
    connected: bool,
    /// The end of this connection was taken note of.
    leaving: bool,
}

impl Pulse {
    fn lived(&self, steady: Duration) -> bool {
        self.stands.is_some_and(|since| since.elapsed() >= steady)
    }
}

/// What is read from the library.
enum Item {
    Said(Result<Message, ReceiveMessageError>),
    /// The connection broke, and it is making another.
    Broke,
    Over,
}

async fn next(shard: &mut Shard, connected: &mut bool) -> Item {
    std::future::poll_fn(|cx| {
        let polled = shard.poll_next_unpin(cx);
        let now = !matches!(shard.state(), ShardState::Disconnected { .. });
        let before = std::mem::replace(connected, now);
        match polled {
            Poll::Ready(Some(said)) => Poll::Ready(Item::Said(said)),
            Poll::Ready(None) => Poll::Ready(Item::Over),
            Poll::Pending if before && !now => Poll::Ready(Item::Broke),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

impl Watch<'_> {
    /// Serves a connection until something has to be decided outside.
    pub(super) async fn serve(&mut self, mut shard: Shard, stop: &CancellationToken) -> End {
        let timing = &self.gateway.timing;
        let now = Instant::now();
        let mut pulse = Pulse {
            heard: now,
            limit: timing.hello,
            beat: BEAT,
            stands: None,
            steady: false,
            rest: None,
            connected: false,
            leaving: false,
        };
        let mut save_at = now + timing.save;
        loop {
            let steady_at = pulse.stands.filter(|_| !pulse.steady).map(|since| since + timing.steady);
            tokio::select! {
                () = stop.cancelled() => {
                    self.save(session_of(&shard)).await;
                    return End::Stopped;
                }
                Some(()) = self.work.next(), if !self.work.is_empty() => {}
                () = sleep_until(save_at) => {
                    save_at = Instant::now() + timing.save;
                    if !self.save(session_of(&shard)).await {
                        return End::Lost;
                    }
                }
                () = sleep_until(pulse.rest.unwrap_or(now)), if pulse.rest.is_some() => {
                    pulse.rest = None;
                    pulse.heard = Instant::now();
                }
                () = sleep_until(pulse.heard + pulse.limit), if pulse.rest.is_none() => {
                    return self.leave(session_of(&shard), End::Failed("silent")).await;
                }
                () = sleep_until(steady_at.unwrap_or(now)), if steady_at.is_some() => {
                    pulse.steady = true;
                    self.gate.steady();
                    self.desk.trouble(None).await;
                }
                item = next(&mut shard, &mut pulse.connected), if pulse.rest.is_none() && self.work.len() < AT_ONCE => {
                    pulse.heard = Instant::now();
                    let end = match item {
                        Item::Said(Ok(Message::Text(raw))) => {
                            let stood = pulse.stands;
                            match self.text(&raw, &mut pulse).await {
                                // It stands: from now on it can be taken up again.
                                None if pulse.stands.is_some() && pulse.stands != stood => {
                                    (!self.save(session_of(&shard)).await).then_some(End::Lost)
                                }
                                end => end,
                            }
                        }
                        Item::Said(Ok(Message::Close(frame))) => {
                            self.closed(frame.map(|frame| frame.code), &mut pulse).await
                        }
                        Item::Said(Err(error)) => self.odd(&error).await,
                        Item::Broke if pulse.lived(timing.steady) => Some(End::Dropped),
                        Item::Broke | Item::Over => Some(End::Failed("broke")),
                    };
                    if let Some(end) = end {
                        return self.leave(session_of(&shard), end).await;
                    }
                }
            }
        }
    }

    /// What is to be kept at the end of a connection.
    async fn leave(&mut self, session: Option<Seen>, end: End) -> End {
        let goes_on = matches!(end, End::Failed(_) | End::Dropped | End::Fatal(_));
        if goes_on && !self.save(session).await { End::Lost } else { end }
    }

    async fn text(&mut self, raw: &str, pulse: &mut Pulse) -> Option<End> {
        match frame::read(raw) {
            Frame::Hello { interval } => {
                pulse.leaving = false;
                pulse.beat = interval.unwrap_or(BEAT).min(self.gateway.timing.longest_beat);
            }
            Frame::Ready { resume_url, application, .. } => {
                let ours = &self.gateway.settings.application_id;
                if let Some(theirs) = application.filter(|theirs| theirs != ours) {
                    return Some(End::OtherApplication(theirs));
                }
                let leads = |url: String| address::leads_right(&url, self.gateway.on_loopback);
                if resume_url.and_then(leads).is_none() {
                    return Some(End::Astray);
                }
                self.stands(pulse, "ready");
            }
            Frame::Resumed => self.stands(pulse, "resumed"),
            Frame::SessionGone => return Some(End::SessionGone),
            Frame::Interaction(payload) => self.interaction(payload),
            Frame::Event { name, data } => {
                if let Some(event) = events::read(&name, &data) {
                    let taken = timeout(LONGEST, self.desk.event(event)).map(drop);
                    self.work.push(taken.boxed());
                }
            }
            Frame::Reconnect => {
                self.left(pulse).await;
                pulse.leaving = true;
            }
            Frame::Other => {}
            Frame::Unreadable => self.unreadable(raw).await,
        }
        None
    }

    fn interaction(&mut self, payload: Value) {
        self.work.push(timeout(LONGEST, self.desk.interaction(payload)).map(drop).boxed());
    }

    fn stands(&self, pulse: &mut Pulse, how: &'static str) {
        tracing::info!(install = self.gateway.install(), how, "the gateway is connected");
        pulse.stands = Some(Instant::now());
        pulse.steady = false;
        pulse.limit = pulse.beat * 2 + self.gateway.timing.hello / 2;
        self.gateway.count(true);
    }

    async fn closed(&mut self, code: Option<u16>, pulse: &mut Pulse) -> Option<End> {
        self.gateway.count(false);
        match code {
            Some(code @ (4004 | 4010..=4014)) => return Some(End::Fatal(code)),
            Some(4007 | 4009) => return Some(End::SessionGone),
            _ => {}
        }
        if !std::mem::take(&mut pulse.leaving) {
            self.left(pulse).await;
        }
        None
    }

    /// A connection has ended, or is about to: the next waits if this one had not lived.
    async fn left(&mut self, pulse: &mut Pulse) {
        if pulse.lived(self.gateway.timing.steady) {
            self.gateway.again("closed");
        } else {
            self.failed("closed_early").await;
        }
        pulse.stands = None;
        pulse.limit = self.gateway.timing.hello;
        pulse.rest = Some(self.gate.next()).filter(|next| *next > Instant::now());
    }

    /// Something the library could not use; the connection stays unless it is about the connection.
    async fn odd(&mut self, error: &ReceiveMessageError) -> Option<End> {
        match error.kind() {
            ReceiveMessageErrorType::Deserializing { event } => {
                match frame::read(event) {
                    // Without a sequence it is a press all the same.
                    Frame::Interaction(payload) => self.interaction(payload),
                    _ => self.unreadable(event).await,
                }
                None
            }
            ReceiveMessageErrorType::Reconnect => Some(End::Failed("not_connected")),
            _ => Some(End::Failed("broken")),
        }
    }

    /// Counted; kept where it may be somebody's press.
    async fn unreadable(&mut self, raw: &str) {
        let install = self.gateway.install();
        metrics::counter!("countersign_inbound_unreadable_total", "platform" => "discord").increment(1);
        tracing::warn!(install, bytes = raw.len(), "a frame of the gateway could not be read");
        if raw.contains("INTERACTION_CREATE") {
            self.desk.keep(raw).await;
        }
    }

    /// Keeps what is needed to go on; `false`: another replica has the lease.
    async fn save(&mut self, seen: Option<Seen>) -> bool {
        let Some(Seen { id, seq, resume_url }) = seen else { return true };
        let known = self.session.as_ref().filter(|known| known.id == id);
        let resume_url =
            resume_url.or_else(|| known.map(|known| known.resume_url.clone())).unwrap_or_default();
        let session = Session { id, seq, resume_url };
        if self.session.as_ref() == Some(&session) {
            return true;
        }
        self.session = Some(session.clone());
        self.desk.save(Some(session)).await
    }
}

/// A session as the library has it now.
struct Seen {
    id: String,
    seq: i64,
    /// Forgotten when a connection there failed.
    resume_url: Option<String>,
}

fn session_of(shard: &Shard) -> Option<Seen> {
    let session = shard.session()?;
    Some(Seen {
        id: session.id().to_owned(),
        seq: i64::try_from(session.sequence()).unwrap_or(i64::MAX),
        resume_url: shard.resume_url().map(str::to_owned),
    })
}

//! The life of one open socket: read, take, acknowledge, ping, until it ends or is left.
//!
//! Invariant: an envelope is acknowledged on the socket it came on, after what it asks for was
//! committed, and never otherwise. Envelopes are worked on at the same time: a slow one holds up
//! nobody's acknowledgement. A socket that is being left reads and acknowledges until its time is up.
//!
//! Known races and the decisions taken:
//! - the socket ends before an acknowledgement is sent: Slack may send the envelope again, and it is
//!   then known; what was begun is finished all the same;
//! - a socket that seemed dead says something while it is being replaced: it is left all the same.

use super::frame::{self, Envelope, Frame, Reason};
use super::open::Opened;
use super::{Acknowledged, Inbox, Line, SocketMode};
use crate::chat::slack::delivery::Delivery;
use futures_util::stream::FuturesUnordered;
use futures_util::{SinkExt, StreamExt};
use std::collections::VecDeque;
use std::future::{pending, ready};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tokio_websockets::Message;

/// So many envelopes are worked on at once; then the socket is not read until one is done.
const AT_ONCE: usize = 512;
/// Longer than any write may take; a person has pressed again by then.
const LONGEST: Duration = Duration::from_secs(30);

/// What is to become of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Stay,
    /// Read on until then, unless Slack closes it.
    Until(Instant),
    Drop,
}

/// What a socket says about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Said {
    /// Slack will close it: another one is wanted.
    Leaving,
    /// Nothing was heard for too long: another one is wanted.
    Silent,
    /// It has lived long enough.
    Steady,
}

/// How a socket ended.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum End {
    /// Slack closed it, or the connection broke.
    Closed,
    Told(Reason),
    OtherApp {
        theirs: String,
        ours: String,
    },
    /// It was replaced before.
    Left,
    Stopped,
}

/// One open socket.
pub(super) struct Link {
    pub(super) number: u64,
    pub(super) opened: Opened,
    pub(super) fate: watch::Receiver<Fate>,
    pub(super) tell: mpsc::UnboundedSender<(u64, Said)>,
    pub(super) stop: CancellationToken,
}

impl SocketMode {
    /// Serves a socket to its end. Returns its number with how it ended.
    pub(super) async fn serve(&self, link: Link) -> (u64, End) {
        let Link { number, opened: Opened { mut line, app_id, mut early }, mut fate, tell, stop } = link;
        let timing = &self.timing;
        let born = Instant::now();
        let (mut heard, mut ping_at) = (born, born + timing.ping);
        let (mut silent, mut steady, mut until) = (false, false, None);
        let mut work = FuturesUnordered::new();
        let say = |said| {
            // Nobody listens any more only when everything ends.
            let _ = tell.send((number, said));
        };
        let end = loop {
            tokio::select! {
                () = stop.cancelled() => break End::Stopped,
                message = next(&mut line, &mut early), if work.len() < AT_ONCE => {
                    let Some(message) = message.filter(|message| !message.is_close()) else { break End::Closed };
                    heard = Instant::now();
                    let Some(raw) = message.as_text() else { continue };
                    match frame::read(raw) {
                        Frame::Hello { .. } => {}
                        Frame::Disconnect(Reason::Refresh) => say(Said::Leaving),
                        Frame::Disconnect(reason) => break End::Told(reason),
                        frame => work.push(timeout(LONGEST, take(Arc::clone(&self.inbox), raw.to_owned(), frame))),
                    }
                }
                Some(done) = work.next(), if !work.is_empty() => {
                    if let Ok(Some(acknowledgement)) = done
                        && !send(&mut line, Message::text(acknowledgement), timing.send).await
                    {
                        break End::Closed;
                    }
                }
                () = sleep_until(ping_at) => {
                    ping_at = Instant::now() + timing.ping;
                    // Who we are may have become known after `hello`.
                    if let Some((theirs, ours)) = self.other_app(app_id.as_deref()) {
                        break End::OtherApp { theirs, ours };
                    }
                    if !send(&mut line, Message::ping(""), timing.send).await {
                        break End::Closed;
                    }
                }
                () = sleep_until(heard + timing.silence), if !silent => {
                    silent = true;
                    say(Said::Silent);
                }
                () = sleep_until(born + timing.steady), if !steady => {
                    steady = true;
                    say(Said::Steady);
                }
                Ok(()) = fate.changed() => match *fate.borrow_and_update() {
                    Fate::Stay => {}
                    Fate::Until(time) => until = Some(time),
                    Fate::Drop => break End::Left,
                },
                () = passed(until) => break End::Left,
            }
        };
        let _ = timeout(timing.farewell, async {
            while let Some(done) = work.next().await {
                if let (Ok(Some(acknowledgement)), true) = (done, end != End::Closed) {
                    send(&mut line, Message::text(acknowledgement), timing.send).await;
                }
            }
            line.close().await
        })
        .await;
        (number, end)
    }
}

async fn next(line: &mut Line, early: &mut VecDeque<Message>) -> Option<Message> {
    match early.pop_front() {
        Some(message) => ready(Some(message)).await,
        None => line.next().await?.ok(),
    }
}

async fn passed(until: Option<Instant>) {
    match until {
        Some(time) => sleep_until(time).await,
        None => pending().await,
    }
}

async fn send(line: &mut Line, message: Message, limit: Duration) -> bool {
    matches!(timeout(limit, line.send(message)).await, Ok(Ok(())))
}

/// Takes a frame. The acknowledgement, if it may be sent.
async fn take(inbox: Arc<dyn Inbox>, raw: String, frame: Frame) -> Option<String> {
    match frame {
        Frame::Envelope(Envelope { way, id, payload, takes_answer }) => {
            let delivery = Delivery::of_payload(way, &payload, id.as_deref(), raw.as_bytes());
            let taken = inbox.take(delivery).await?;
            let answer = match &taken {
                Acknowledged::With(answer) if takes_answer => Some(answer),
                _ => None,
            };
            Some(frame::acknowledgement(&id?, answer))
        }
        Frame::Unreadable { envelope } => {
            let kept = inbox.keep(raw.as_bytes()).await;
            envelope.filter(|_| kept).map(|id| frame::acknowledgement(&id, None))
        }
        Frame::Other { envelope } => envelope.map(|id| frame::acknowledgement(&id, None)),
        Frame::Hello { .. } | Frame::Disconnect(_) => None,
    }
}

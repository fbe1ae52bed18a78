//! `SubscribeToTask` and `SendStreamingMessage`: a task's statuses as server-sent events (A2A 1.0 §3.1.6,
//! §9.4.6, §11.7).
//!
//! Invariants: a stream begins with the task as it is and then tells every status and artifact once, in
//! order; it ends with a terminal state; what is scripted to go wrong is chosen when it is opened, or
//! happens to every stream that is open at that moment.
//!
//! Known limit: that a client has gone is noticed when its connection is, so a stream may count as open
//! for a moment after it.

use super::error::A2aError;
use super::model::TaskView;
use super::ops::{self, Call};
use super::params::Fields;
use super::render::{self, Show};
use super::switches::{StreamFault, Streaming, Switches};
use super::world::A2aWorld;
use axum::body::{Body, Bytes};
use axum::http::{HeaderName, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde_json::{Map, Value, json};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// How a binding writes one event.
pub(super) type Wrap = Box<dyn Fn(Result<Value, &A2aError>) -> Value + Send + Sync>;

/// A frame that nobody should read.
const OVERSIZE: usize = 3 * 1024 * 1024;
/// Frames of an odd shape come in pieces of so many bytes.
const PIECE: usize = 7;

/// A stream that may be opened.
pub(super) struct Feed {
    world: Arc<A2aWorld>,
    agent: String,
    task: String,
    extension: bool,
    fault: Option<StreamFault>,
}

/// Checks a call of a streaming method, and applies a message.
pub(super) fn open(
    world: &Arc<A2aWorld>,
    call: &Call<'_>,
    method: &str,
    params: &Map<String, Value>,
) -> Result<Feed, A2aError> {
    let fields = Fields::root(params);
    call.tenant_and_extension(&fields)?;
    let offered = call.world.with(|inner| {
        inner.switches.streaming != Streaming::Off
            && inner.cards.get(call.agent).is_some_and(|card| card.streaming)
    });
    if !offered {
        return Err(A2aError::unsupported("Streaming is not supported"));
    }
    let task = if method == "SubscribeToTask" {
        ops::subscribable(call, &fields)?
    } else {
        ops::accept_message(call, &fields)?
    };
    let fault = world.with(|inner| inner.stream_faults.pop_front());
    Ok(Feed {
        world: Arc::clone(world),
        agent: call.agent.to_owned(),
        task,
        extension: call.extension,
        fault,
    })
}

/// Counts an open stream for as long as it lives.
struct OpenStream {
    world: Arc<A2aWorld>,
    number: u64,
}

impl OpenStream {
    fn new(world: &Arc<A2aWorld>, task: &str) -> Self {
        let number = world.with(|inner| {
            let number = inner.next_number();
            inner.streams.insert(number, task.to_owned());
            number
        });
        world.touch();
        Self { world: Arc::clone(world), number }
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.world.with(|inner| inner.streams.remove(&self.number));
        self.world.touch();
    }
}

/// Where a stream is.
struct Running {
    feed: Feed,
    wrap: Wrap,
    changed: watch::Receiver<u64>,
    open: OpenStream,
    /// What is left to send.
    pending: VecDeque<Bytes>,
    /// Statuses and artifacts that were told; `None` before the first event.
    told: Option<(usize, usize)>,
    events: u32,
    cuts: u64,
    over: bool,
    broken: bool,
}

impl Feed {
    pub(super) fn respond(self, wrap: Wrap) -> Response {
        let open = OpenStream::new(&self.world, &self.task);
        let running = Running {
            changed: self.world.changed(),
            cuts: self.world.with(|inner| inner.stream_cuts),
            open,
            feed: self,
            wrap,
            pending: VecDeque::new(),
            told: None,
            events: 0,
            over: false,
            broken: false,
        };
        let body = Body::from_stream(stream::unfold(running, async |mut running| {
            let next = running.next().await?;
            Some((next, running))
        }));
        let headers: [(HeaderName, &str); 2] =
            [(header::CONTENT_TYPE, "text/event-stream; charset=utf-8"), (header::CACHE_CONTROL, "no-store")];
        (headers, body).into_response()
    }
}

impl Running {
    async fn next(&mut self) -> Option<io::Result<Bytes>> {
        loop {
            if let Some(bytes) = self.pending.pop_front() {
                // Each piece on its own, so that they are not read as one.
                tokio::task::yield_now().await;
                return Some(Ok(bytes));
            }
            if self.broken {
                return Some(Err(io::Error::new(io::ErrorKind::ConnectionReset, "scripted by the sandbox")));
            }
            if self.over {
                return None;
            }
            self.changed.borrow_and_update();
            if self.feed.world.with(|inner| inner.stream_cuts) != self.cuts {
                self.broken = true;
                continue;
            }
            self.look();
            if !self.pending.is_empty() || self.over || self.broken {
                continue;
            }
            let ping = self.feed.world.switches().ping_ms;
            if ping == 0 {
                let _ = self.changed.changed().await;
            } else if tokio::time::timeout(Duration::from_millis(ping), self.changed.changed()).await.is_err()
            {
                self.pending.push_back(Bytes::from_static(b": ping\n\n"));
            }
        }
    }

    /// Writes what has happened since the last look.
    fn look(&mut self) {
        let fault = self.feed.fault.clone();
        if matches!(fault, Some(StreamFault::NeverSpeaks)) {
            return;
        }
        if let Some(StreamFault::ErrorFirst { error }) = &fault {
            let event = (self.wrap)(Err(&A2aError::scripted(error)));
            self.frame(&event, &Switches::default());
            self.over = true;
            return;
        }
        let (world, id) = (Arc::clone(&self.feed.world), self.feed.task.clone());
        let silent = matches!(fault, Some(StreamFault::Silent));
        let looked = world.with(|inner| {
            let switches = inner.switches.clone();
            let mut show = Show::new(&switches, self.feed.extension);
            show.artifacts = true;
            let task = inner.tasks.get(&id).filter(|task| task.agent == self.feed.agent)?;
            let mut events = vec![];
            match self.told {
                None => events.push(json!({ "task": render::task(task, &show) })),
                Some(_) if silent => {}
                Some((statuses, artifacts)) => {
                    events.extend(later(task, statuses, artifacts, &show));
                }
            }
            let told = (task.transitions.len(), task.artifacts.len());
            let first = self.told.is_none();
            if !first {
                let lost = usize::try_from(inner.lose_events).unwrap_or(usize::MAX).min(events.len());
                inner.lose_events -= u32::try_from(lost).unwrap_or(0);
                events.drain(..lost);
            }
            let state = task.state();
            let closes = state.is_terminal()
                || (switches.streaming == Streaming::ClosesAtInterrupted && state.is_interrupted());
            Some((events, told, closes, switches))
        });
        let Some((events, told, closes, switches)) = looked else {
            self.over = true;
            return;
        };
        self.told = Some(told);
        for event in events {
            let copies = if switches.stream_duplicates && self.events > 0 { 2 } else { 1 };
            for _ in 0..copies {
                self.frame(&(self.wrap)(Ok(event.clone())), &switches);
            }
            self.events += 1;
            match &fault {
                Some(StreamFault::CutAfter { events }) if self.events >= *events => {
                    self.broken = true;
                    return;
                }
                Some(StreamFault::ErrorAfter { events, error }) if self.events >= *events => {
                    let event = (self.wrap)(Err(&A2aError::scripted(error)));
                    self.frame(&event, &switches);
                    self.over = true;
                    return;
                }
                Some(StreamFault::Oversize) => {
                    let huge = [b"data: ".to_vec(), vec![b' '; OVERSIZE], b"\n\n".to_vec()].concat();
                    self.pending.push_back(huge.into());
                    self.feed.fault = Some(StreamFault::Silent);
                    return;
                }
                _ => {}
            }
        }
        self.over = closes && !silent;
        let _ = &self.open;
    }

    fn frame(&mut self, event: &Value, switches: &Switches) {
        if !switches.odd_frames {
            let data = render::body(event, switches.round_trip);
            self.pending.push_back([b"data: ".as_slice(), &data, b"\n\n"].concat().into());
            return;
        }
        let pretty = serde_json::to_string_pretty(event).unwrap_or_default();
        let mut text = String::from(": a comment\r\nid: 1\revent: update\nretry: 5\n");
        for (nth, line) in pretty.lines().enumerate() {
            let end = ["\r\n", "\n", "\r"][nth % 3];
            for piece in ["data:", if nth % 2 == 0 { " " } else { "" }, line, end] {
                text += piece;
            }
        }
        // A lone carriage return and this line feed would be one line end.
        text += if text.ends_with('\r') { "\r" } else { "\r\n" };
        text += "\n: and another\n\n";
        let bytes = Bytes::from(text);
        let pieces = (0..bytes.len()).step_by(PIECE).map(|at| bytes.slice(at..bytes.len().min(at + PIECE)));
        self.pending.extend(pieces);
    }
}

/// The statuses and artifacts of a task after those that were told.
fn later(task: &TaskView, statuses: usize, artifacts: usize, show: &Show) -> Vec<Value> {
    let status = task.transitions.iter().skip(statuses).map(|status| {
        json!({ "statusUpdate": { "taskId": task.id, "contextId": task.context,
            "status": render::status(task, status, show) } })
    });
    let artifact = task.artifacts.iter().skip(artifacts).map(|artifact| {
        json!({ "artifactUpdate": { "taskId": task.id, "contextId": task.context, "artifact": artifact } })
    });
    artifact.chain(status).collect()
}

impl A2aWorld {
    /// The tasks of the streams that are open, one entry per stream.
    #[must_use]
    pub fn streams(&self) -> Vec<String> {
        self.with(|inner| inner.streams.values().cloned().collect())
    }

    /// The next stream that is opened goes wrong so.
    pub fn next_stream(&self, fault: StreamFault) {
        self.with(|inner| inner.stream_faults.push_back(fault));
    }

    /// Breaks every open stream; how many there were.
    pub fn cut_streams(&self) -> usize {
        let count = self.with(|inner| {
            inner.stream_cuts += 1;
            inner.streams.len()
        });
        self.touch();
        count
    }

    /// The next so many events reach nobody.
    pub fn lose_events(&self, count: u32) {
        self.with(|inner| inner.lose_events = count);
    }
}

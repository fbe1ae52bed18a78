//! Following one task: `SubscribeToTask` (A2A 1.0 §3.1.6), over either binding.
//!
//! Invariants:
//! - what comes instead of a stream (a plain error, whatever its status) is judged like any answer; an
//!   error in the first event is the same;
//! - a stream is opened once its first event is there: a server that accepts and says nothing has not
//!   opened one;
//! - what is read off an event counts from when the stream was asked for, because it may have been on
//!   its way for any time since; only an end, after which nothing can come, counts from its arrival;
//! - a frame that is too large ends the stream; frames that are not understood are signs of life.

use super::call::Op;
use super::card::{Binding, Interface};
use super::discovery::Known;
use super::errors::{self, Failure, code};
use super::interactions::{View, reading};
use super::sse::{Decoder, TooLarge};
use super::types::{Task, text};
use super::wire::{Opened, Reply, Wire};
use super::{A2aConnector, Watched, rest, rpc};
use crate::bridge::ports::{
    ConnectorError, Followed, Heard, TaskReading, TaskRef, TaskState, Tracker, Unfollowed,
};
use crate::domain::clock::{Clock, Millis};
use crate::domain::ids::{RuntimeName, Subject};
use futures_util::StreamExt;
use futures_util::stream;
use reqwest::Response;
use reqwest::header::HeaderMap;
use serde_json::{Value, json};
use std::sync::Arc;

impl A2aConnector {
    /// How a known task is followed best, as far as the agent has described itself.
    pub(crate) fn best_tracker(&self) -> Option<Tracker> {
        let known = self.discovery.peek()?;
        let (now, generation) = (self.wire.now(), self.discovery.generation());
        Some(if known.offers.streaming && self.features.streams.may_be_there(now, generation) {
            Tracker::Stream
        } else if known.offers.push && self.features.push.may_be_there(now, generation) {
            Tracker::Push
        } else {
            Tracker::Poll
        })
    }

    /// The view that shows a task: the one it was seen in, else the first of the watched that does.
    pub(crate) async fn view_of(&self, task: &TaskRef) -> Result<Option<Subject>, Unfollowed> {
        match (&task.seen_as, self.watched()) {
            (None, Watched::Subjects(subjects)) if !subjects.is_empty() => {
                let reading = self.read_task(task).await?;
                if matches!(reading.state, TaskState::NotFound) {
                    return Err(Unfollowed::Over(Box::new(reading)));
                }
                Ok(reading.seen_as)
            }
            _ => Ok(task.seen_as.clone()),
        }
    }

    pub(crate) async fn follow_task(&self, task: &TaskRef) -> Result<Followed, Unfollowed> {
        let known = self.discovery.current(&self.wire).await?;
        let generation = self.discovery.generation();
        let seen_as = self.view_of(task).await?;
        let began = self.wire.now();
        let heard = Heards {
            runtime: self.settings.name.clone(),
            known: Arc::clone(&known),
            owner: seen_as.as_ref().and_then(|subject| self.owner(&task.task, subject)),
            seen_as: seen_as.clone(),
            task: task.task.clone(),
            began,
            clock: Arc::clone(&self.wire.clock),
        };
        match self.open_stream(&known.interface, &task.task, seen_as.as_ref()).await {
            Ok((first, frames)) => {
                let first = heard.of(&first);
                let rest = stream::unfold((frames, heard), async |(mut frames, heard)| {
                    let said = match frames.next().await {
                        Next::Frame(result) => heard.of(&result),
                        Next::Alive => Heard::Alive,
                        Next::Failed(failure) => {
                            tracing::debug!(runtime = %heard.runtime, said = failure.said(), "a stream ended with an error");
                            return None;
                        }
                        Next::End => return None,
                    };
                    Some((said, (frames, heard)))
                });
                Ok(stream::once(async { first }).chain(rest).boxed())
            }
            Err(failure) if errors::says_unsupported(&failure) => {
                // It says so of ended tasks too.
                let reading = self.get_task(&task.task, seen_as.as_ref()).await?;
                if is_over(&reading) {
                    return Err(Unfollowed::Over(Box::new(reading)));
                }
                self.features.streams.refused(self.wire.now(), generation);
                Err(Unfollowed::Unsupported)
            }
            Err(failure) if errors::says_not_found(&failure) => {
                let reading = self.get_task(&task.task, seen_as.as_ref()).await?;
                if is_over(&reading) {
                    return Err(Unfollowed::Over(Box::new(reading)));
                }
                Err(ConnectorError::Protocol { what: "a task that can be read, but not followed".into() }
                    .into())
            }
            Err(failure) => Err(errors::of_reading(&failure).into()),
        }
    }

    /// Opens a stream and waits for its first event. A refused token of a subject is replaced by a fresh
    /// one, once; over HTTP+JSON the other method is tried where the first one is not there.
    async fn open_stream(
        &self,
        at: &Interface,
        id: &str,
        subject: Option<&Subject>,
    ) -> Result<(Value, Frames), Failure> {
        let params = json!({ "id": id });
        let by_post = at.binding == Binding::HttpJson && self.features.subscribes_by_post();
        let op = if by_post { Op::SubscribeByPost } else { Op::Subscribe };
        let mut opened = self.ask_for_stream(at, op, &params, subject).await;
        if opened.as_ref().is_err_and(|(failure, _)| subject.is_some() && failure.wants_fresh_token()) {
            opened = self.ask_for_stream(at, op, &params, subject).await;
        }
        match opened {
            Err((_, true)) => {
                let other = if by_post { Op::Subscribe } else { Op::SubscribeByPost };
                match self.ask_for_stream(at, other, &params, subject).await {
                    // Neither way is there.
                    Err((_, true)) => Err(Failure::Rpc { code: code::METHOD, fields: vec![] }),
                    opened => {
                        self.features.remember_method(!by_post);
                        opened.map_err(|(failure, _)| failure)
                    }
                }
            }
            opened => opened.map_err(|(failure, _)| failure),
        }
    }

    /// `Err` also says whether this method is not there at all.
    async fn ask_for_stream(
        &self,
        at: &Interface,
        op: Op,
        params: &Value,
        subject: Option<&Subject>,
    ) -> Result<(Value, Frames), (Failure, bool)> {
        let judged = |failure: Failure| (failure, false);
        let who = self.wire.identity(subject).map_err(judged)?;
        let request = self.wire.request(at, op, params).map_err(judged)?;
        let response = match self.wire.open(request, who).await.map_err(judged)? {
            Opened::Events(response) => response,
            Opened::Answer(reply) => {
                let failure = understand(at.binding, &reply, op, self.wire.now())
                    .err()
                    .unwrap_or(Failure::Garbled("no stream of events"));
                let not_this_task = !errors::says_not_found(&failure) || !rest::names_a_reason(&reply);
                let elsewhere = at.binding == Binding::HttpJson
                    && (reply.status == 405 || reply.status == 404 && not_this_task);
                return Err((failure, elsewhere));
            }
        };
        let mut frames = Frames {
            response: Some(response),
            decoder: Decoder::default(),
            binding: at.binding,
            op,
            clock: Arc::clone(&self.wire.clock),
        };
        let first = async {
            loop {
                match frames.next().await {
                    Next::Alive => {}
                    Next::Frame(result) => return Ok(result),
                    Next::Failed(failure) => return Err(failure),
                    Next::End => return Err(Failure::Lost("the stream ended before its first event")),
                }
            }
        };
        let first = tokio::time::timeout(self.settings.deadline, first).await;
        let first = first.unwrap_or(Err(Failure::Lost("no first event"))).map_err(judged)?;
        Ok((first, frames))
    }
}

pub(crate) fn is_over(reading: &TaskReading) -> bool {
    matches!(reading.state, TaskState::Completed | TaskState::Ended(_) | TaskState::NotFound)
}

fn understand(binding: Binding, reply: &Reply, op: Op, now: Millis) -> Result<Value, Failure> {
    match binding {
        Binding::JsonRpc => rpc::understand(reply, now),
        Binding::HttpJson => rest::understand(reply, op, now),
    }
}

/// What came next on a stream.
enum Next {
    /// The result in an event (A2A 1.0 §4.2: a StreamResponse).
    Frame(Value),
    /// Bytes, and no whole event.
    Alive,
    Failed(Failure),
    End,
}

/// An open stream, read frame by frame.
struct Frames {
    response: Option<Response>,
    decoder: Decoder,
    binding: Binding,
    op: Op,
    clock: Arc<dyn Clock>,
}

impl Frames {
    /// Waiting can be given up at any moment without losing what has arrived.
    async fn next(&mut self) -> Next {
        if let Some(data) = self.decoder.next() {
            // An event is an answer of its own.
            let reply = Reply { status: 200, headers: HeaderMap::new(), body: data.into_bytes() };
            return match understand(self.binding, &reply, self.op, self.clock.now()) {
                Ok(result) => Next::Frame(result),
                Err(Failure::Garbled(_)) => Next::Alive,
                Err(failure) => Next::Failed(failure),
            };
        }
        let Some(response) = &mut self.response else { return Next::End };
        let Ok(Some(bytes)) = response.chunk().await else {
            self.response = None;
            return Next::End;
        };
        if let Err(TooLarge) = self.decoder.push(&bytes) {
            self.response = None;
            tracing::warn!("a stream was left: an event is larger than is read");
        }
        Next::Alive
    }
}

/// Turns results into what was heard of one task.
struct Heards {
    runtime: RuntimeName,
    known: Arc<Known>,
    owner: Option<Subject>,
    seen_as: Option<Subject>,
    task: String,
    began: Millis,
    clock: Arc<dyn Clock>,
}

impl Heards {
    fn of(&self, result: &Value) -> Heard {
        let Some(task) = task_in(result).filter(|task| task.id == self.task) else { return Heard::Alive };
        let view = View {
            runtime: &self.runtime,
            agent: &self.known.agent,
            seen_as: self.seen_as.clone(),
            owner: self.owner.clone(),
            began: self.began,
        };
        let mut read = reading(&task, view);
        if is_over(&read) {
            read.began = self.clock.now();
        }
        Heard::Reading(Box::new(read))
    }
}

/// The task as a StreamResponse tells of it; `None` for messages and artifacts.
fn task_in(result: &Value) -> Option<Task> {
    if let Some(task) = result.get("task").filter(|task| task.is_object()) {
        return Task::parse(task);
    }
    let update = result.get("statusUpdate").filter(|update| update.is_object())?;
    Task::parse(&json!({
        "id": text(update, "taskId")?,
        "contextId": update.get("contextId"),
        "status": update.get("status"),
    }))
}

impl Wire {
    pub(crate) fn is_event_stream(response: &Response) -> bool {
        let kind = response.headers().get(reqwest::header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let kind = kind.and_then(|kind| kind.split(';').next()).unwrap_or_default();
        response.status().is_success() && kind.trim().eq_ignore_ascii_case("text/event-stream")
    }
}

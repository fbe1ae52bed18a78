//! Following known tasks: by streams where a runtime has them, by its calls to us where it has those,
//! and by readings behind both.
//!
//! Invariants:
//! - what is followed is what is open (newest first) and what operators registered, at most [`STREAMS`]
//!   at once; what has ended is followed no longer than [`LINGER`];
//! - after any end of a stream the task is read, and a silent stream is not trusted for longer than
//!   [`IDLE`]; all is read every five minutes whatever streams say;
//! - nothing here is needed to be right: it makes us quicker and reads less.
//!
//! Known races and the decisions taken:
//! - a stream tells of a moment that may be over: between what was said and its arrival here, a reading
//!   may have shown more (the answer's own reply shows the next question, and then the stream says
//!   "going on"). So what a stream says counts as read when the stream was asked for, and the state
//!   machine drops it when something newer is known. Only ends are taken at their arrival: nothing
//!   follows them;
//! - what a stream says and what is known then differ: a reading decides. It also decides whenever
//!   something open has been resolved, because only it shows the history that tells by whom;
//! - two replicas follow one task while the lease moves: both observe, and observing twice is once.

use super::Bridge;
use super::ports::{Connector, Followed, Heard, TaskReading, TaskRef, TaskState, Tracker, Unfollowed};
use super::reconcile::{Pass, Wanted};
use crate::domain::clock::Millis;
use crate::domain::ids::Subject;
use crate::store::StoreError;
use crate::store::interactions::Phase;
use crate::store::watches::Known;
use futures_util::StreamExt;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::{AbortHandle, Id, JoinSet};

/// Open streams per runtime; what is more is polled.
const STREAMS: i64 = 100;
/// Calls that a runtime was asked for, at most.
const HOOKS: i64 = 1000;
/// A stream that says nothing for so long, not even that it is there, is asked for anew.
const IDLE: Duration = Duration::from_mins(1);
/// A stream that lasted so long was well.
const STEADY: Duration = Duration::from_secs(30);
const FIRST_WAIT: Duration = Duration::from_millis(500);
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// How long a task is followed after nothing is open in it: it may ask again at once.
const LINGER: Duration = Duration::from_secs(5);
/// A task whose following ended by itself is left alone for so long.
const REST: Duration = Duration::from_secs(30);
/// How often is looked at what is to be followed, and how long hints are collected before.
const TURN: Duration = Duration::from_millis(500);
const COALESCE: Duration = Duration::from_millis(100);
/// A runtime that could not be read is not asked again for so long.
const QUIET: Duration = Duration::from_secs(5);
/// How closely waiting follows the clock.
const SLICE: Duration = Duration::from_millis(200);

/// What is being followed by this process.
#[derive(Debug, Default)]
pub(super) struct Tracking {
    /// Runtime and task of every stream that has told the task's state and goes on.
    live: Mutex<HashSet<(String, String)>>,
    /// Something may be to be followed, or to be read.
    hint: Notify,
}

impl Tracking {
    pub(super) fn is_live(&self, runtime: &str, task: &str) -> bool {
        let live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        !live.is_empty() && live.contains(&(runtime.to_owned(), task.to_owned()))
    }

    pub(super) fn hint(&self) {
        self.hint.notify_waiters();
    }
}

/// Marks a task as told of by a stream, as long as it lives.
struct Live {
    bridge: Arc<Bridge>,
    key: (String, String),
}

impl Live {
    fn new(bridge: &Arc<Bridge>, runtime: &str, task: &str) -> Self {
        let key = (runtime.to_owned(), task.to_owned());
        bridge.tracking.live.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone());
        Self { bridge: Arc::clone(bridge), key }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.bridge.tracking.live.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.key);
    }
}

/// One followed task.
struct Follow {
    handle: AbortHandle,
    /// Since when nothing asks for it.
    unwanted: Option<Millis>,
}

/// The followed tasks of one runtime. Dropping it closes every stream.
struct Follows {
    connector: Arc<dyn Connector>,
    running: JoinSet<()>,
    tasks: HashMap<String, Follow>,
    names: HashMap<Id, String>,
    /// Tasks whose following ended by itself, and until when they rest.
    resting: HashMap<String, Millis>,
    /// The runtime is not read before this.
    quiet: Millis,
    /// There may be configurations of ours at the runtime, and they are being tended.
    hooks: bool,
    tending: JoinSet<Result<bool, StoreError>>,
    /// It was said that the runtime cannot call us.
    warned: bool,
}

/// Whether nothing more can come of a task.
fn is_over(state: &TaskState) -> bool {
    matches!(state, TaskState::Completed | TaskState::Ended(_) | TaskState::NotFound)
}

impl Bridge {
    /// Follows the tasks of a runtime, and reads what is due in between, for as long as it is polled.
    pub async fn track(self: &Arc<Self>, runtime: &str) {
        let Some(connector) = self.connectors.get(runtime).cloned() else {
            return std::future::pending().await;
        };
        let mut follows = Follows {
            connector,
            running: JoinSet::new(),
            tasks: HashMap::new(),
            names: HashMap::new(),
            resting: HashMap::new(),
            quiet: Millis(0),
            hooks: true,
            tending: JoinSet::new(),
            warned: false,
        };
        loop {
            // Registered before the look, or what comes between the two waits for the next turn.
            let hint = self.tracking.hint.notified();
            tokio::pin!(hint);
            hint.as_mut().enable();
            if let Err(error) = self.track_turn(runtime, &mut follows).await {
                tracing::warn!(runtime, %error, "following met the database");
            }
            tokio::select! {
                () = hint => tokio::time::sleep(COALESCE).await,
                () = tokio::time::sleep(TURN) => {}
            }
        }
    }

    async fn track_turn(self: &Arc<Self>, runtime: &str, follows: &mut Follows) -> Result<(), StoreError> {
        let now = self.clock.now();
        if now >= follows.quiet && !self.read_due(runtime).await?.complete {
            follows.quiet = now.plus(QUIET);
        }
        let Some(kind) = follows.connector.tracker() else {
            // Until it describes itself (again), everything stays as it is.
            if let Err(error) = follows.connector.refresh().await {
                tracing::debug!(runtime, %error, "the runtime has not described itself yet");
                follows.quiet = now.plus(QUIET);
            }
            return Ok(());
        };
        let unheard = kind == Tracker::Push && self.rules.hooks.is_none();
        if unheard && !std::mem::replace(&mut follows.warned, true) {
            tracing::warn!(
                runtime,
                "the runtime could call us about its tasks, but server.public_url is no https address; they are polled"
            );
        }
        let kind = if unheard { Tracker::Poll } else { kind };
        let limit = match kind {
            Tracker::Stream => STREAMS,
            Tracker::Push => HOOKS,
            Tracker::Poll => 0,
        };
        let known = if limit == 0 {
            vec![]
        } else {
            let name = runtime.to_owned();
            self.store.read(|tx| Box::pin(async move { tx.tasks_to_follow(&name, limit).await })).await?
        };
        self.tend_streams(runtime, follows, if kind == Tracker::Stream { &known } else { &[] });
        if let Some(Ok(tended)) = follows.tending.try_join_next() {
            follows.hooks = tended?;
        }
        if follows.tending.is_empty() && (kind == Tracker::Push || follows.hooks) {
            let (bridge, connector) = (Arc::clone(self), Arc::clone(&follows.connector));
            let wanted = if kind == Tracker::Push { known } else { vec![] };
            // Beside the turns: a slow runtime must not keep its other tasks from being read.
            follows.tending.spawn(async move { bridge.tend_hooks(&connector, &wanted).await });
        }
        Ok(())
    }

    /// Begins and ends streams, so that what is wanted is followed.
    fn tend_streams(self: &Arc<Self>, runtime: &str, follows: &mut Follows, wanted: &[Known]) {
        let now = self.clock.now();
        while let Some(ended) = follows.running.try_join_next_with_id() {
            let id = match ended {
                Ok((id, ())) => id,
                Err(error) => {
                    if error.is_panic() {
                        tracing::error!(runtime, "following a task panicked");
                    }
                    error.id()
                }
            };
            if let Some(task) = follows.names.remove(&id)
                && follows.tasks.get(&task).is_some_and(|follow| follow.handle.id() == id)
            {
                follows.tasks.remove(&task);
                follows.resting.insert(task, now.plus(REST));
            }
        }
        follows.resting.retain(|_, until| now < *until);
        let names: HashSet<&str> = wanted.iter().map(|known| known.task.as_str()).collect();
        let full = wanted.len() >= usize::try_from(STREAMS).unwrap_or(usize::MAX);
        follows.tasks.retain(|task, follow| {
            if names.contains(task.as_str()) {
                follow.unwanted = None;
                return true;
            }
            let since = *follow.unwanted.get_or_insert(now);
            let stays = !full && now.since(since) < LINGER;
            if !stays {
                follow.handle.abort();
            }
            stays
        });
        for known in wanted {
            if follows.tasks.contains_key(&known.task) || follows.resting.contains_key(&known.task) {
                continue;
            }
            let (bridge, connector) = (Arc::clone(self), Arc::clone(&follows.connector));
            let (task, open) = (task_of(known), known.open);
            let handle = follows.running.spawn(async move { bridge.follow(&connector, &task, open).await });
            follows.names.insert(handle.id(), known.task.clone());
            follows.tasks.insert(known.task.clone(), Follow { handle, unwanted: None });
        }
        metrics::gauge!("countersign_streams", "runtime" => runtime.to_owned())
            .set(f64::from(u32::try_from(follows.tasks.len()).unwrap_or(u32::MAX)));
    }

    /// Follows one task until it is over, or the runtime turns out to have no streams.
    async fn follow(self: Arc<Self>, connector: &Arc<dyn Connector>, task: &TaskRef, open: bool) {
        let mut wait = FIRST_WAIT;
        loop {
            let mut silent = false;
            match connector.follow(task).await {
                Ok(events) => match self.listen_to(connector, task, open, events, &mut wait).await {
                    Listened::Over => return,
                    Listened::Silent => silent = true,
                    Listened::Ended => {}
                },
                Err(Unfollowed::Over(reading)) => {
                    self.take_in_logged(connector, task, open, *reading).await;
                    return;
                }
                Err(Unfollowed::Unsupported) => {
                    tracing::info!(runtime = %connector.runtime(), "the runtime has no streams; its tasks are polled");
                    return;
                }
                Err(Unfollowed::Failed(error)) => {
                    tracing::debug!(runtime = %connector.runtime(), %error, "a stream could not be opened");
                }
            }
            // Whatever was missed since the stream last spoke.
            match connector.read(task).await {
                Ok(reading) => {
                    let over = is_over(&reading.state);
                    self.take_in_logged(connector, task, open, reading).await;
                    if over {
                        return;
                    }
                }
                Err(error) => {
                    tracing::debug!(runtime = %connector.runtime(), %error, "a followed task could not be read");
                    silent = false;
                }
            }
            if !silent {
                self.until(self.clock.now().plus(self.spread(wait))).await;
                wait = (wait * 2).min(LONGEST_WAIT);
            }
        }
    }

    /// Takes in what a stream says, to its end.
    async fn listen_to(
        self: &Arc<Self>,
        connector: &Arc<dyn Connector>,
        task: &TaskRef,
        open: bool,
        mut events: Followed,
        wait: &mut Duration,
    ) -> Listened {
        let opened = self.clock.now();
        let mut heard = opened;
        let mut live = None;
        let listened = loop {
            let next = tokio::select! {
                next = events.next() => next,
                () = self.until(heard.plus(IDLE)) => break Listened::Silent,
            };
            heard = self.clock.now();
            match next {
                None => break Listened::Ended,
                Some(Heard::Alive) => {}
                Some(Heard::Reading(reading)) => {
                    let over = is_over(&reading.state);
                    if let Err(error) = self.take_event(connector, task, open, *reading).await {
                        tracing::warn!(runtime = %connector.runtime(), %error, "what a stream said met the database");
                        break Listened::Ended;
                    }
                    if over {
                        return Listened::Over;
                    }
                    if live.is_some() {
                        *wait = FIRST_WAIT;
                    } else {
                        live = Some(Live::new(self, connector.runtime().as_str(), &task.task));
                    }
                }
            }
        };
        if self.clock.now().since(opened) >= STEADY {
            *wait = FIRST_WAIT;
        }
        listened
    }

    /// Takes in one thing a stream said.
    async fn take_event(
        self: &Arc<Self>,
        connector: &Arc<dyn Connector>,
        task: &TaskRef,
        open: bool,
        reading: TaskReading,
    ) -> Result<(), StoreError> {
        let runtime = connector.runtime();
        let shown = match &reading.state {
            TaskState::Waiting(seen) => Some(seen.key.external.as_str()),
            _ => None,
        };
        let goes_on =
            matches!(reading.state, TaskState::Waiting(_) | TaskState::Running | TaskState::Completed);
        let (name, id) = (runtime.clone(), task.task.clone());
        let unsettled =
            self.store.read(|tx| Box::pin(async move { tx.unsettled_in(&name, &id).await })).await?;
        let resolves = goes_on
            && unsettled.iter().any(|(external, answering)| !answering && Some(external.as_str()) != shown);
        if !resolves {
            self.take_in_one(connector, task, open, reading.clone()).await?;
            if self.agrees(&reading).await? {
                return Ok(());
            }
        }
        match connector.read(task).await {
            Ok(newer) => self.take_in_one(connector, task, open, newer).await,
            Err(error) if resolves => {
                tracing::debug!(%runtime, %error, "a followed task could not be read");
                self.take_in_one(connector, task, open, reading).await
            }
            Err(error) => {
                tracing::debug!(%runtime, %error, "a followed task could not be read");
                Ok(())
            }
        }
    }

    /// Whether what is stored is what a stream has just said.
    async fn agrees(&self, reading: &TaskReading) -> Result<bool, StoreError> {
        Ok(match &reading.state {
            TaskState::Waiting(seen) => {
                let key = seen.key.clone();
                match self.store.read(|tx| Box::pin(async move { tx.head(&key).await })).await? {
                    Some(head) if head.phase == Phase::Answering => true,
                    Some(head) => !self.changes(&head, seen),
                    None => false,
                }
            }
            _ => true,
        })
    }

    /// Takes in a reading of a followed task, with all that goes with a single reading.
    pub(super) async fn take_in_one(
        self: &Arc<Self>,
        connector: &Arc<dyn Connector>,
        task: &TaskRef,
        open: bool,
        reading: TaskReading,
    ) -> Result<(), StoreError> {
        let runtime = connector.runtime();
        let (name, id) = (runtime.clone(), task.task.clone());
        let registered = self
            .store
            .read(|tx| Box::pin(async move { tx.watched_task(name.as_str(), &id).await }))
            .await?
            .filter(|row| row.subject.as_deref() == task.seen_as.as_ref().map(Subject::as_str));
        let wanted = Wanted { task: task.clone(), open, registered };
        self.take_in_singles(runtime, vec![(wanted, reading)], &mut Pass::default()).await
    }

    async fn take_in_logged(
        self: &Arc<Self>,
        connector: &Arc<dyn Connector>,
        task: &TaskRef,
        open: bool,
        reading: TaskReading,
    ) {
        if let Err(error) = self.take_in_one(connector, task, open, reading).await {
            tracing::warn!(runtime = %connector.runtime(), %error, "a reading met the database");
        }
    }

    /// Waits until the clock shows a moment.
    pub(super) async fn until(&self, at: Millis) {
        loop {
            let left = at.since(self.clock.now());
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left.min(SLICE)).await;
        }
    }
}

/// How listening to a stream ended.
enum Listened {
    /// The task is over.
    Over,
    /// Nothing came for too long.
    Silent,
    Ended,
}

pub(super) fn task_of(known: &Known) -> TaskRef {
    TaskRef { task: known.task.clone(), context: known.context.clone(), seen_as: known.seen_as.clone() }
}

//! The stand-in's whole state and the one lock around it.
//!
//! Invariant: the lock is taken by [`A2aWorld::with`] only, whose closure cannot await.

use super::auth::{Auth, AuthMode, Watch};
use super::card::CardSpec;
use super::hooks::Hooks;
use super::model::{InteractionView, State, TaskView};
use super::push::Pushes;
use super::record::Recorded;
use super::render;
use super::switches::{StreamFault, Switches};
use crate::sandbox::faults::Faults;
use crate::sandbox::time::Time;
use data_encoding::{BASE64URL_NOPAD, HEXLOWER};
use ring::rand::{SecureRandom, SystemRandom};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::watch;

/// How a world begins.
pub struct Setup {
    /// Agents with a card from the start; more come by `A2aWorld::set_card` and `open`.
    pub agents: Vec<String>,
    pub auth: Vec<AuthMode>,
    /// Watching credentials (bearer tokens) and what each may see.
    pub watchers: BTreeMap<String, Watch>,
    pub time: Time,
    /// Part of every id, so that two runs of a demo never reuse one. Default: random.
    pub seed: Option<String>,
    /// The origin written into cards; default: the `Host` of the request, over http.
    pub origin: Option<String>,
    /// How many requests are remembered.
    pub keep_requests: usize,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            agents: vec!["release".into()],
            auth: Vec::new(),
            watchers: BTreeMap::new(),
            time: Time::System,
            seed: None,
            origin: None,
            keep_requests: 10_000,
        }
    }
}

/// What a message id stands for inside one conversation of one owner.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct MessageKey {
    pub(super) agent: String,
    pub(super) owner: String,
    pub(super) context: String,
    pub(super) message_id: String,
}

/// An accepted message: a retry is compared with it.
#[derive(Debug, Clone)]
pub(super) struct Sent {
    pub(super) subject: String,
    pub(super) content: Value,
    pub(super) task_id: String,
    pub(super) interaction_id: Option<String>,
}

/// Everything behind the lock.
pub(super) struct Inner {
    pub(super) switches: Switches,
    pub(super) cards: BTreeMap<String, CardSpec>,
    pub(super) tasks: BTreeMap<String, TaskView>,
    pub(super) sent: HashMap<MessageKey, Sent>,
    pub(super) requests: VecDeque<Recorded>,
    pub(super) requests_seen: u64,
    /// Open streams and their tasks.
    pub(super) streams: BTreeMap<u64, String>,
    /// What goes wrong with the streams that are opened next.
    pub(super) stream_faults: VecDeque<StreamFault>,
    /// How often all open streams were broken.
    pub(super) stream_cuts: u64,
    /// So many events will reach nobody.
    pub(super) lose_events: u32,
    pub(super) push: Pushes,
    next_id: u64,
}

impl Inner {
    pub(super) fn next_number(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    /// The task that holds an interaction.
    pub(super) fn task_of(&mut self, interaction_id: &str) -> Option<&mut TaskView> {
        self.tasks.values_mut().find(|task| task.interaction(interaction_id).is_some())
    }
}

/// One A2A runtime in memory.
pub struct A2aWorld {
    /// The world itself, for what goes on beside its callers.
    pub(super) me: Weak<Self>,
    pub(super) time: Time,
    pub(super) origin: Option<String>,
    pub(super) keep_requests: usize,
    pub(super) hooks: Hooks,
    seed: String,
    inner: Mutex<Inner>,
    auth: Mutex<Arc<Auth>>,
    faults: Faults,
    changed: watch::Sender<u64>,
}

impl A2aWorld {
    #[must_use]
    pub fn new(setup: Setup) -> Arc<Self> {
        let cards = setup.agents.iter().map(|agent| (agent.clone(), CardSpec::default())).collect();
        let inner = Inner {
            switches: Switches::default(),
            cards,
            tasks: BTreeMap::new(),
            sent: HashMap::new(),
            requests: VecDeque::new(),
            requests_seen: 0,
            streams: BTreeMap::new(),
            stream_faults: VecDeque::new(),
            stream_cuts: 0,
            lose_events: 0,
            push: Pushes::default(),
            next_id: 0,
        };
        Arc::new_cyclic(|me| Self {
            me: Weak::clone(me),
            time: setup.time,
            origin: setup.origin,
            keep_requests: setup.keep_requests,
            hooks: Hooks::default(),
            seed: setup.seed.unwrap_or_else(random_seed),
            inner: Mutex::new(inner),
            auth: Mutex::new(Arc::new(Auth::new(setup.auth, setup.watchers))),
            faults: Faults::default(),
            changed: watch::Sender::new(0),
        })
    }

    pub(super) fn with<R>(&self, act: impl FnOnce(&mut Inner) -> R) -> R {
        act(&mut self.inner.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Tells watchers that something changed.
    pub(super) fn touch(&self) {
        self.changed.send_modify(|count| *count += 1);
    }

    pub(super) fn now_ms(&self) -> i64 {
        self.time.now_ms()
    }

    /// A fresh id; unique over runs by the seed.
    pub(super) fn id(&self, number: u64, prefix: &str) -> String {
        format!("{prefix}{}{number:04x}", self.seed)
    }

    /// `t1.<base64url(contextId)>.<turn>` (observed; clients must not parse it).
    pub(super) fn task_id(&self, number: u64, context: &str) -> String {
        format!("t1.{}.{}", BASE64URL_NOPAD.encode(context.as_bytes()), self.id(number, ""))
    }

    /// Counts every change, requests included. Subscribe before looking, then wait.
    pub fn changed(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Waits until `look` finds something, at most for `limit`; the last look decides.
    pub async fn until<T>(&self, limit: Duration, look: impl Fn(&Self) -> Option<T>) -> Option<T> {
        let mut changed = self.changed();
        let found = tokio::time::timeout(limit, async {
            loop {
                if let Some(found) = look(self) {
                    return Some(found);
                }
                changed.changed().await.ok()?;
            }
        });
        found.await.unwrap_or_else(|_| look(self))
    }

    /// The scripted trouble, by method name (`SendMessage`, `GetTask`, …, `card`).
    pub const fn faults(&self) -> &Faults {
        &self.faults
    }

    /// Changes switches.
    pub fn switch(&self, change: impl FnOnce(&mut Switches)) {
        self.with(|inner| change(&mut inner.switches));
        self.touch();
    }

    #[must_use]
    pub fn switches(&self) -> Switches {
        self.with(|inner| inner.switches.clone())
    }

    /// Replaces who may call; tokens that are no longer named are refused from now on.
    pub fn set_auth(&self, auth: Vec<AuthMode>, watchers: BTreeMap<String, Watch>) {
        let auth = Arc::new(Auth::new(auth, watchers));
        *self.auth.lock().unwrap_or_else(PoisonError::into_inner) = auth;
        self.touch();
    }

    pub(super) fn auth(&self) -> Arc<Auth> {
        Arc::clone(&self.auth.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// An agent's card from now on; makes the agent if it is new.
    pub fn set_card(&self, agent: &str, card: CardSpec) {
        self.with(|inner| inner.cards.insert(agent.to_owned(), card));
        self.touch();
    }

    /// The stand-in's clock.
    pub const fn time(&self) -> &Time {
        &self.time
    }

    /// Every task, in no order that means anything.
    #[must_use]
    pub fn tasks(&self) -> Vec<TaskView> {
        self.with(|inner| inner.tasks.values().cloned().collect())
    }

    #[must_use]
    pub fn task(&self, task_id: &str) -> Option<TaskView> {
        self.with(|inner| inner.tasks.get(task_id).cloned())
    }

    #[must_use]
    pub fn state(&self, task_id: &str) -> Option<State> {
        self.with(|inner| inner.tasks.get(task_id).map(TaskView::state))
    }

    /// One interaction with every answer applied to it.
    #[must_use]
    pub fn interaction(&self, interaction_id: &str) -> Option<InteractionView> {
        self.with(|inner| inner.task_of(interaction_id).and_then(|t| t.interaction(interaction_id).cloned()))
    }

    /// Every request so far, oldest first (the newest `keep_requests`).
    #[must_use]
    pub fn requests(&self) -> Vec<Recorded> {
        self.with(|inner| inner.requests.iter().cloned().collect())
    }

    /// The requests of one method, oldest first.
    #[must_use]
    pub fn requests_of(&self, method: &str) -> Vec<Recorded> {
        self.with(|inner| inner.requests.iter().filter(|r| r.method == method).cloned().collect())
    }

    /// The whole world for assertions and for the control API.
    #[must_use]
    pub fn dump(&self) -> Value {
        let now = render::timestamp(self.now_ms());
        self.with(|inner| {
            json!({"now": now, "switches": inner.switches, "agents": inner.cards,
                "tasks": inner.tasks.values().collect::<Vec<_>>(), "requests": inner.requests,
                "requestsSeen": inner.requests_seen})
        })
    }
}

fn random_seed() -> String {
    let mut bytes = [0_u8; 3];
    // Without randomness ids are only unique inside this run, which the stand-in survives.
    let _ = SystemRandom::new().fill(&mut bytes);
    HEXLOWER.encode(&bytes)
}

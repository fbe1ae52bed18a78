//! The world of the Slack stand-in: everything it knows, in memory, behind one lock.
//!
//! Invariant: every change happens under the lock and is followed by a new version, so whoever
//! waits on [`SlackWorld::changed`] misses nothing. The lock is never held across an await.
//! Known race: two requests that arrive together are ordered by who takes the lock first; `seq`
//! of the recorded requests is that order.

use super::deliver::{Delivery, Doors, Warning};
use super::happen::Retry;
use super::limits::{Pace, Rates};
use super::socket::Sockets;
use super::switches::Switches;
use super::types::{
    Channel, ChannelKind, Ephemeral, Group, Install, Message, Recorded, Team, TokenState, User, View,
};
use crate::sandbox::faults::Faults;
use crate::sandbox::time::Time;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// A permission to open one view, for three seconds.
#[derive(Debug, Clone)]
pub(super) struct Trigger {
    pub(super) made_ms: i64,
    pub(super) used: bool,
    pub(super) install: String,
    pub(super) team: String,
    pub(super) user: String,
}

/// What a `response_url` leads to.
#[derive(Debug, Clone)]
pub(super) struct Respond {
    pub(super) made_ms: i64,
    pub(super) used: u32,
    pub(super) install: String,
    pub(super) channel: String,
    pub(super) user: String,
    /// The message the press was on.
    pub(super) message_ts: Option<String>,
    pub(super) ephemeral: bool,
}

/// What the lock guards.
pub(super) struct State {
    pub(super) app_id: String,
    pub(super) signing_secret: String,
    pub(super) enterprises: BTreeMap<String, String>,
    pub(super) teams: BTreeMap<String, Team>,
    pub(super) users: Vec<User>,
    pub(super) channels: BTreeMap<String, Channel>,
    pub(super) groups: BTreeMap<String, Group>,
    /// By token.
    pub(super) installs: BTreeMap<String, Install>,
    /// App-level tokens and their scopes.
    pub(super) app_tokens: BTreeMap<String, BTreeSet<String>>,
    pub(super) sockets: Sockets,
    /// Where sockets lead when not to the root address.
    pub(super) socket_url: Option<String>,
    pub(super) messages: BTreeMap<String, BTreeMap<String, Message>>,
    pub(super) ephemerals: Vec<Ephemeral>,
    pub(super) views: BTreeMap<String, View>,
    pub(super) triggers: BTreeMap<String, Trigger>,
    pub(super) responds: BTreeMap<String, Respond>,
    pub(super) requests: Vec<Recorded>,
    /// How many requests were recorded before the first of these.
    pub(super) forgotten: u64,
    pub(super) deliveries: Vec<Delivery>,
    pub(super) warnings: Vec<Warning>,
    /// Answers of the app that Slack could do nothing with.
    pub(super) breaches: Vec<String>,
    pub(super) retries: Vec<Retry>,
    /// Threads closed to replies: (channel, root).
    pub(super) locked_threads: BTreeSet<(String, String)>,
    /// What each person has filled in: (user, message or view) → block_id → action_id → value.
    pub(super) filled: BTreeMap<(String, String), Map<String, Value>>,
    pub(super) rates: Rates,
    pub(super) switches: Switches,
    pub(super) base_url: String,
    pub(super) doors: Doors,
    last_micros: BTreeMap<String, i64>,
    serial: u64,
}

impl State {
    /// The next number of this world; makes ids.
    pub(super) fn serial(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    /// The next message id of a channel: from the clock, unique and increasing.
    pub(super) fn next_ts(&mut self, channel: &str, now_ms: i64) -> String {
        let last = self.last_micros.entry(channel.to_owned()).or_insert(0);
        *last = now_ms.saturating_mul(1_000).max(*last + 100);
        ts(*last)
    }

    /// The recorded request with this number, if it was not forgotten.
    pub(super) fn request(&mut self, seq: u64) -> Option<&mut Recorded> {
        let index = seq.checked_sub(self.forgotten + 1)?;
        self.requests.get_mut(usize::try_from(index).ok()?)
    }

    /// A hash for a view, new at every change.
    pub(super) fn next_hash(&mut self, now_ms: i64) -> String {
        format!("{}.{:08x}", now_ms / 1_000, self.serial())
    }

    /// The account a workspace sees under this id: of its own, of its organisation, or a stranger
    /// of a channel shared with it.
    pub(super) fn user(&self, id: &str, team: &str) -> Option<&User> {
        let enterprise = self.teams.get(team).and_then(|team| team.enterprise.as_deref());
        let own = |user: &&User| {
            user.team == team || (enterprise.is_some() && user.enterprise.as_deref() == enterprise)
        };
        let shared = |user: &&User| {
            self.channels.values().any(|channel| {
                let teams =
                    [channel.team.as_str()].into_iter().chain(channel.shared_with.iter().map(String::as_str));
                let seen: Vec<&str> = teams.collect();
                seen.contains(&team)
                    && channel.members.contains(&user.id)
                    && seen.contains(&user.team.as_str())
            })
        };
        let mut same_id = self.users.iter().filter(|user| user.id == id);
        same_id.clone().find(own).or_else(|| same_id.find(shared))
    }

    /// The install that serves a workspace: its own, or its organisation's.
    pub(super) fn install_of(&self, team: &str) -> Option<&Install> {
        let enterprise = self.teams.get(team).and_then(|team| team.enterprise.as_deref());
        let mut own = self.installs.values().filter(|install| install.app_id == self.app_id);
        own.clone()
            .find(|install| !install.org && install.team == team)
            .or_else(|| own.find(|install| install.org && install.enterprise.as_deref() == enterprise))
    }

    pub(super) fn install_by_key(&self, key: &str) -> Option<&Install> {
        self.installs.values().find(|install| install.key() == key)
    }

    pub(super) fn set_archived(&mut self, id: &str, archived: bool) {
        let bots: Vec<String> = self.installs.values().map(|install| install.bot_user.clone()).collect();
        if let Some(channel) = self.channels.get_mut(id) {
            channel.archived = archived;
            if archived {
                channel.members.retain(|member| !bots.contains(member));
            }
        }
    }

    pub(super) fn move_channel(&mut self, old: &str, new: &str) {
        if let Some(mut channel) = self.channels.remove(old) {
            channel.id = new.into();
            self.channels.insert(new.into(), channel);
        }
        let mut moved = self.messages.remove(old).unwrap_or_default();
        for message in moved.values_mut() {
            message.channel = new.into();
        }
        self.messages.insert(new.into(), moved);
    }

    fn set_app_token(&mut self, token: &str, scopes: &[&str]) {
        if scopes.is_empty() {
            self.app_tokens.remove(token);
        } else {
            self.app_tokens.insert(token.into(), scopes.iter().map(|&scope| scope.into()).collect());
        }
    }

    pub(super) fn message(&self, channel: &str, ts: &str) -> Option<&Message> {
        self.messages.get(channel)?.get(ts)
    }
}

/// Micros as Slack writes a message id.
pub(super) fn ts(micros: i64) -> String {
    format!("{:010}.{:06}", micros / 1_000_000, micros % 1_000_000)
}

/// A strict Slack: one app, its installs, its workspaces.
pub struct SlackWorld {
    pub(super) time: Time,
    pub(super) faults: Faults,
    state: Mutex<State>,
    version: watch::Sender<u64>,
    pub(super) client: OnceLock<Option<reqwest::Client>>,
}

impl SlackWorld {
    /// An empty world to fill.
    #[must_use]
    pub fn builder(time: Time, app_id: &str, signing_secret: &str) -> Builder {
        Builder(
            State {
                app_id: app_id.into(),
                signing_secret: signing_secret.into(),
                enterprises: BTreeMap::new(),
                teams: BTreeMap::new(),
                users: Vec::new(),
                channels: BTreeMap::new(),
                groups: BTreeMap::new(),
                installs: BTreeMap::new(),
                app_tokens: BTreeMap::new(),
                sockets: Sockets::default(),
                socket_url: None,
                messages: BTreeMap::new(),
                ephemerals: Vec::new(),
                views: BTreeMap::new(),
                triggers: BTreeMap::new(),
                responds: BTreeMap::new(),
                requests: Vec::new(),
                forgotten: 0,
                deliveries: Vec::new(),
                warnings: Vec::new(),
                breaches: Vec::new(),
                retries: Vec::new(),
                locked_threads: BTreeSet::new(),
                filled: BTreeMap::new(),
                rates: Rates::default(),
                switches: Switches::default(),
                base_url: "http://127.0.0.1".into(),
                doors: Doors::default(),
                last_micros: BTreeMap::new(),
                serial: 0,
            },
            time,
        )
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes something and tells whoever waits.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let out = change(&mut self.lock());
        self.version.send_modify(|version| *version += 1);
        out
    }

    /// A counter that grows with every change.
    pub fn changed(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }

    /// Waits until `look` finds something, looking again after every change; `Err` after `within`
    /// of real time, naming `what` was waited for.
    pub async fn until<T>(
        &self,
        what: &str,
        within: Duration,
        mut look: impl FnMut(&Self) -> Option<T>,
    ) -> Result<T, String> {
        let mut changed = self.changed();
        let end = Instant::now() + within;
        loop {
            changed.mark_unchanged();
            if let Some(found) = look(self) {
                return Ok(found);
            }
            let left = end.saturating_duration_since(Instant::now());
            if tokio::time::timeout(left, changed.changed()).await.is_err() {
                return Err(format!("waited {within:?} for: {what}"));
            }
        }
    }

    /// The stand-in's clock.
    pub fn time(&self) -> &Time {
        &self.time
    }

    /// Scripted trouble: by method of the Web API; `response_url`; `interactivity`, `commands` and
    /// `events` for what is delivered to the app.
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// The switches as they stand.
    pub fn switches(&self) -> Switches {
        self.lock().switches.clone()
    }

    /// Sets switches.
    pub fn switch(&self, set: impl FnOnce(&mut Switches)) {
        self.change(|state| set(&mut state.switches));
    }

    /// Multiplies all rate limits; 0 switches them off.
    pub fn pace(&self, factor: u32) {
        self.change(|state| state.rates.pace = Pace { factor });
    }

    /// This server's own root address (`http://127.0.0.1:PORT`), for `response_url`.
    pub fn set_base_url(&self, base_url: &str) {
        self.change(|state| state.base_url = base_url.trim_end_matches('/').into());
    }

    /// Where sockets lead instead (`wss://localhost:PORT`): what stands there passes everything on to the root
    /// address.
    pub fn set_socket_url(&self, socket_url: &str) {
        self.change(|state| state.socket_url = Some(socket_url.trim_end_matches('/').into()));
    }

    /// The app's address: deliveries go to `{app}/slack/{interactivity,commands,events}`.
    pub fn set_app_url(&self, app: &str) {
        self.change(|state| state.doors = Doors::at(app));
    }

    /// Sets each door by itself.
    pub fn set_doors(&self, doors: Doors) {
        self.change(|state| state.doors = doors);
    }

    /// Archives a channel, which puts the bots out of it.
    pub fn archive(&self, id: &str) {
        self.change(|state| state.set_archived(id, true));
    }

    /// Takes a channel out of the archive; the bots do not come back by themselves.
    pub fn unarchive(&self, id: &str) {
        self.change(|state| state.set_archived(id, false));
    }

    /// Gives a channel a new id, as Slack does when its kind changes; messages move along and the
    /// old id is unknown.
    pub fn migrate_channel(&self, old: &str, new: &str) {
        self.change(|state| state.move_channel(old, new));
    }

    /// Closes a thread to replies.
    pub fn lock_thread(&self, channel: &str, ts: &str) {
        self.change(|state| state.locked_threads.insert((channel.into(), ts.into())));
    }

    /// Drops the recorded requests and deliveries and what has run out of time; for long runs.
    pub fn forget(&self) {
        let old = self.time.now_ms() - 31 * 60 * 1_000;
        self.change(|state| {
            state.forgotten += state.requests.len() as u64;
            state.requests.clear();
            state.deliveries.clear();
            state.warnings.clear();
            state.breaches.clear();
            state.sockets.forget();
            state.triggers.retain(|_, trigger| trigger.made_ms > old);
            state.responds.retain(|_, respond| respond.made_ms > old);
        });
    }

    /// Changes a channel: freeze it, let people in and out.
    pub fn edit_channel(&self, id: &str, edit: impl FnOnce(&mut Channel)) {
        self.change(|state| state.channels.get_mut(id).map(edit));
    }

    /// Adds a channel to the running world.
    pub fn add_channel(&self, channel: Channel) {
        self.change(|state| state.channels.insert(channel.id.clone(), channel));
    }

    /// Changes the account with this id, in every workspace that has one.
    pub fn edit_user(&self, id: &str, mut edit: impl FnMut(&mut User)) {
        self.change(|state| state.users.iter_mut().filter(|user| user.id == id).for_each(&mut edit));
    }

    /// Changes a user group.
    pub fn edit_group(&self, id: &str, edit: impl FnOnce(&mut Group)) {
        self.change(|state| state.groups.get_mut(id).map(edit));
    }

    /// Gives an app-level token these scopes; with none it is unknown.
    pub fn app_token(&self, token: &str, scopes: &[&str]) {
        self.change(|state| state.set_app_token(token, scopes));
    }

    /// Adds a scope to a token, or takes it away.
    pub fn scope(&self, token: &str, scope: &str, granted: bool) {
        self.change(|state| {
            if let Some(install) = state.installs.get_mut(token) {
                if granted {
                    install.scopes.insert(scope.into());
                } else {
                    install.scopes.remove(scope);
                }
            }
        });
    }

    /// Lets a token live, expire, be revoked.
    pub fn token(&self, token: &str, to: TokenState) {
        self.change(|state| {
            if let Some(install) = state.installs.get_mut(token) {
                install.state = to;
            }
        });
    }

    /// A person writes a message; its `ts`. Also for a bot that is not ours.
    pub fn say(&self, user: &str, channel: &str, text: &str) -> String {
        let now = self.time.now_ms();
        self.change(|state| {
            let ts = state.next_ts(channel, now);
            let team = state.channels.get(channel).map(|channel| channel.team.clone()).unwrap_or_default();
            let message = Message {
                channel: channel.into(),
                ts: ts.clone(),
                team,
                user: user.into(),
                bot_id: None,
                app_id: None,
                text: super::text::store_plain(text),
                blocks: Vec::new(),
                metadata: None,
                thread_ts: None,
                broadcast: false,
                edited: None,
                edits: 0,
                deleted: false,
                before: Vec::new(),
                install: None,
            };
            state.messages.entry(channel.into()).or_default().insert(ts.clone(), message);
            ts
        })
    }

    /// Deletes a message as a person with the right to would.
    pub fn remove_message(&self, channel: &str, ts: &str) {
        self.change(|state| {
            if let Some(message) = state.messages.get_mut(channel).and_then(|all| all.get_mut(ts)) {
                message.deleted = true;
            }
        });
    }
}

/// Builds a world. The last of two things with one id stays.
pub struct Builder(State, Time);

impl Builder {
    #[must_use]
    pub fn enterprise(mut self, id: &str, name: &str) -> Self {
        self.0.enterprises.insert(id.into(), name.into());
        self
    }

    #[must_use]
    pub fn team(mut self, team: Team) -> Self {
        self.0.teams.insert(team.id.clone(), team);
        self
    }

    #[must_use]
    pub fn user(mut self, user: User) -> Self {
        self.0.users.retain(|other| (&other.id, &other.team) != (&user.id, &user.team));
        self.0.users.push(user);
        self
    }

    #[must_use]
    pub fn channel(mut self, channel: Channel) -> Self {
        self.0.channels.insert(channel.id.clone(), channel);
        self
    }

    #[must_use]
    pub fn archived(mut self, id: &str) -> Self {
        if let Some(channel) = self.0.channels.get_mut(id) {
            channel.archived = true;
        }
        self
    }

    #[must_use]
    pub fn frozen(mut self, id: &str) -> Self {
        if let Some(channel) = self.0.channels.get_mut(id) {
            channel.frozen = true;
        }
        self
    }

    /// A direct message channel that exists from the start.
    #[must_use]
    pub fn dm(mut self, id: &str, team: &str, bot_user: &str, user: &str) -> Self {
        let mut channel = Channel::new(id, "", team, &[bot_user, user]);
        channel.kind = ChannelKind::Dm(user.into());
        self.0.channels.insert(id.into(), channel);
        self
    }

    #[must_use]
    pub fn group(mut self, id: &str, team: &str, users: &[&str]) -> Self {
        let users = users.iter().map(|&user| user.into()).collect();
        self.0.groups.insert(id.into(), Group { id: id.into(), team: team.into(), users, disabled: false });
        self
    }

    #[must_use]
    pub fn app_token(mut self, token: &str, scopes: &[&str]) -> Self {
        self.0.set_app_token(token, scopes);
        self
    }

    #[must_use]
    pub fn install(mut self, token: &str, install: Install) -> Self {
        self.0.installs.insert(token.into(), install);
        self
    }

    #[must_use]
    pub fn build(self) -> Arc<SlackWorld> {
        Arc::new(SlackWorld {
            time: self.1,
            faults: Faults::default(),
            state: Mutex::new(self.0),
            version: watch::Sender::new(0),
            client: OnceLock::new(),
        })
    }
}

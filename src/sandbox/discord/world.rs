//! The world of the Discord stand-in: everything it knows, in memory, behind one lock.
//!
//! Invariant: every change happens under the lock and is followed by a new version, so whoever
//! waits on [`DiscordWorld::changed`] misses nothing. The lock is never held across an await.
//! Ids are made from this world's clock and only grow.
//! Known race: two requests that arrive together are ordered by who takes the lock first; `seq`
//! of the recorded requests is that order.

use super::deliver::{Delivery, Warning};
use super::gateway::Gateway;
use super::limits::Rates;
use super::perms;
use super::scripts::Scripts;
use super::switches::Switches;
use super::types::{App, Channel, ChannelKind, Guild, Message, Modal, Recorded, Role, User};
use crate::sandbox::faults::Faults;
use crate::sandbox::time::Time;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// The first millisecond of Discord's ids.
const EPOCH_MS: i64 = 1_420_070_400_000;
/// A first response must come within this time.
pub const ACK_MS: i64 = 3_000;
/// What an interaction token lives after that.
pub const TOKEN_MS: i64 = 15 * 60 * 1_000;

/// The time an id was made, in epoch ms; 0 for a text that is no id.
#[must_use]
pub fn made_ms(id: &str) -> i64 {
    id.parse::<i64>().map_or(0, |id| (id >> 22) + EPOCH_MS)
}

/// A time as Discord writes it.
pub(super) fn iso(ms: i64) -> String {
    let at = jiff::Timestamp::from_millisecond(ms).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    let plain = if ms % 1_000 == 0 { "%Y-%m-%dT%H:%M:%S+00:00" } else { "%Y-%m-%dT%H:%M:%S.%6f+00:00" };
    at.strftime(plain).to_string()
}

/// A click, form or command on its way or answered: what its token leads to.
#[derive(Debug, Clone)]
pub(super) struct Click {
    pub(super) id: String,
    pub(super) token: String,
    pub(super) app: String,
    /// 2 command, 3 control, 5 form.
    pub(super) kind: u64,
    pub(super) user: String,
    pub(super) channel: String,
    /// The message that holds the control.
    pub(super) message: Option<String>,
    pub(super) made_ms: i64,
    /// The type of the first response, once there is one.
    pub(super) answered: Option<u64>,
    pub(super) answered_ms: i64,
    /// What `@original` is.
    pub(super) original: Option<String>,
    pub(super) follow_ups: Vec<String>,
    /// Of a submitted form: the click that opened it.
    pub(super) form: Option<String>,
}

/// What the lock guards.
pub(super) struct State {
    pub(super) users: BTreeMap<String, User>,
    pub(super) guilds: BTreeMap<String, Guild>,
    pub(super) channels: BTreeMap<String, Channel>,
    pub(super) apps: BTreeMap<String, App>,
    /// By bot token: the application.
    pub(super) tokens: BTreeMap<String, String>,
    pub(super) seeds: BTreeMap<String, [u8; 32]>,
    /// By channel, in order.
    pub(super) messages: BTreeMap<String, BTreeMap<u64, Message>>,
    /// By id.
    pub(super) clicks: BTreeMap<String, Click>,
    /// Token → id.
    pub(super) click_tokens: BTreeMap<String, String>,
    pub(super) modals: BTreeMap<String, Modal>,
    /// What each person has typed and picked in a form: (form, custom_id).
    pub(super) filled: BTreeMap<(String, String), Value>,
    /// (author, nonce) → (when, channel, message).
    pub(super) nonces: BTreeMap<(String, String), (i64, String, u64)>,
    /// When a message older than an hour was edited.
    pub(super) old_edits: BTreeMap<String, VecDeque<i64>>,
    pub(super) dm_opens: BTreeMap<String, VecDeque<i64>>,
    /// Registered commands: (application, guild or "").
    pub(super) commands: BTreeMap<(String, String), Vec<Value>>,
    pub(super) command_creates: BTreeMap<String, VecDeque<i64>>,
    pub(super) requests: Vec<Recorded>,
    /// How many requests were recorded before the first of these.
    pub(super) forgotten: u64,
    pub(super) deliveries: Vec<Delivery>,
    pub(super) warnings: Vec<Warning>,
    /// Answers of the app that Discord could do nothing with.
    pub(super) breaches: Vec<String>,
    /// When an answer counted towards the ban.
    pub(super) invalid: VecDeque<i64>,
    pub(super) rates: Rates,
    pub(super) scripts: Scripts,
    pub(super) gateway: Gateway,
    pub(super) switches: Switches,
    pub(super) base_url: String,
    last_id: u64,
    serial: u64,
}

impl State {
    /// The next number of this world.
    pub(super) fn serial(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    /// The next id, from the clock.
    pub(super) fn next_id(&mut self, now_ms: i64) -> u64 {
        let from_clock = u64::try_from(now_ms - EPOCH_MS).unwrap_or(0) << 22;
        self.last_id = from_clock.max(self.last_id + 1);
        self.last_id
    }

    /// The recorded request with this number, if it was not forgotten.
    pub(super) fn request(&mut self, seq: u64) -> Option<&mut Recorded> {
        let index = seq.checked_sub(self.forgotten + 1)?;
        self.requests.get_mut(usize::try_from(index).ok()?)
    }

    /// A message that is there.
    pub(super) fn message(&self, channel: &str, id: &str) -> Option<&Message> {
        self.any_message(channel, id).filter(|message| !message.deleted)
    }

    pub(super) fn any_message(&self, channel: &str, id: &str) -> Option<&Message> {
        self.messages.get(channel)?.get(&id.parse().ok()?)
    }

    pub(super) fn message_mut(&mut self, channel: &str, id: &str) -> Option<&mut Message> {
        let found = self.messages.get_mut(channel)?.get_mut(&id.parse().ok()?)?;
        Some(found).filter(|message| !message.deleted)
    }

    /// The channel whose permissions count: a thread's parent, else itself.
    pub(super) fn holder<'s>(&'s self, channel: &'s Channel) -> &'s Channel {
        let parent = channel.parent.as_deref().filter(|_| channel.kind.is_thread());
        parent.and_then(|parent| self.channels.get(parent)).unwrap_or(channel)
    }

    /// What somebody may in a channel. In a direct message the two of it may talk.
    pub(super) fn may(&self, channel: &Channel, user: &str, now_ms: i64) -> u64 {
        let Some(guild) = &channel.guild else {
            return if channel.recipients.iter().any(|one| one == user) { perms::EVERYONE } else { 0 };
        };
        let Some(guild) = self.guilds.get(guild) else { return 0 };
        let bits = perms::in_channel(guild, self.holder(channel), user, now_ms);
        let member = channel.thread.as_ref().is_some_and(|thread| thread.members.contains(user));
        let private = channel.kind == ChannelKind::PrivateThread;
        if private && !member && bits & perms::MANAGE_THREADS == 0 { 0 } else { bits }
    }

    /// Whether somebody sees a channel.
    pub(super) fn sees(&self, channel: &Channel, user: &str, now_ms: i64) -> bool {
        self.may(channel, user, now_ms) & perms::VIEW_CHANNEL != 0
    }

    pub(super) fn app_of_bot(&self, user: &str) -> Option<&App> {
        self.apps.values().find(|app| app.bot_user == user)
    }

    /// The name by which somebody is shown in a guild.
    pub(super) fn name(&self, guild: Option<&str>, user: &str) -> String {
        let nick = guild
            .and_then(|guild| self.guilds.get(guild))
            .and_then(|guild| guild.members.get(user))
            .and_then(|member| member.nick.clone());
        nick.or_else(|| self.users.get(user).map(|user| user.shown().to_owned()))
            .unwrap_or_else(|| user.into())
    }

    pub(super) fn click_by_token(&mut self, token: &str) -> Option<&mut Click> {
        let id = self.click_tokens.get(token)?;
        self.clicks.get_mut(id)
    }
}

/// A strict Discord: its guilds, its people, the applications.
pub struct DiscordWorld {
    pub(super) time: Time,
    pub(super) faults: Faults,
    state: Mutex<State>,
    version: watch::Sender<u64>,
    pub(super) client: OnceLock<Option<reqwest::Client>>,
}

impl DiscordWorld {
    /// An empty world to fill.
    #[must_use]
    pub fn builder(time: Time) -> Builder {
        let state = State {
            users: BTreeMap::new(),
            guilds: BTreeMap::new(),
            channels: BTreeMap::new(),
            apps: BTreeMap::new(),
            tokens: BTreeMap::new(),
            seeds: BTreeMap::new(),
            messages: BTreeMap::new(),
            clicks: BTreeMap::new(),
            click_tokens: BTreeMap::new(),
            modals: BTreeMap::new(),
            filled: BTreeMap::new(),
            nonces: BTreeMap::new(),
            old_edits: BTreeMap::new(),
            dm_opens: BTreeMap::new(),
            commands: BTreeMap::new(),
            command_creates: BTreeMap::new(),
            requests: Vec::new(),
            forgotten: 0,
            deliveries: Vec::new(),
            warnings: Vec::new(),
            breaches: Vec::new(),
            invalid: VecDeque::new(),
            rates: Rates::default(),
            scripts: Scripts::default(),
            gateway: Gateway::default(),
            switches: Switches::default(),
            base_url: "http://127.0.0.1".into(),
            last_id: 0,
            serial: 0,
        };
        Builder(state, time)
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

    /// Scripted trouble: by route as recorded (`POST /channels/{channel}/messages`), `*` for any;
    /// `endpoint` for clicks sent to the app over HTTP, `gateway` for a new connection to the gateway,
    /// `dispatch` for clicks sent over it.
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
        self.change(|state| state.rates.factor = factor);
    }

    /// This server's own root address (`http://127.0.0.1:PORT`); it must be loopback, or it is not taken.
    pub fn set_base_url(&self, base_url: &str) {
        if url::Url::parse(base_url).is_ok_and(|url| crate::net::is_loopback(&url)) {
            self.change(|state| state.base_url = base_url.trim_end_matches('/').into());
        }
    }

    /// The `api_url` for this world's clients.
    pub fn api_url(&self) -> String {
        format!("{}/discord/api/v10", self.lock().base_url)
    }

    /// The address of the gateway.
    pub fn gateway_url(&self) -> String {
        self.lock().gateway_url()
    }

    /// Drops the recorded requests and deliveries and what has run out of time; for long runs.
    pub fn forget(&self) {
        let old = self.time.now_ms() - TOKEN_MS - 60_000;
        self.change(|state| {
            state.forgotten += state.requests.len() as u64;
            state.requests.clear();
            state.deliveries.clear();
            state.warnings.clear();
            state.breaches.clear();
            state.clicks.retain(|_, click| click.made_ms > old);
            let clicks = &state.clicks;
            state.click_tokens.retain(|_, id| clicks.contains_key(id));
            state.modals.retain(|_, modal| modal.open);
            state.nonces.retain(|_, (at, ..)| *at > old);
            state.gateway.forget();
        });
    }

    /// Changes an account.
    pub fn edit_user(&self, id: &str, edit: impl FnOnce(&mut User)) {
        self.change(|state| state.users.get_mut(id).map(edit));
    }

    /// Adds a channel to the running world.
    pub fn add_channel(&self, channel: Channel) {
        self.change(|state| state.channels.insert(channel.id.clone(), channel));
    }

    /// Lets a bot token be good or refused (401).
    pub fn token(&self, app: &str, live: bool) {
        self.change(|state| {
            if let Some(app) = state.apps.get_mut(app) {
                app.token_live = live;
            }
        });
    }

    /// A person writes a message; its id. Also for a bot that is not ours.
    pub fn say(&self, user: &str, channel: &str, text: &str) -> String {
        let now_ms = self.time.now_ms();
        self.change(|state| {
            let id = state.next_id(now_ms);
            let content =
                super::types::Content { text: text.into(), embeds: Vec::new(), components: Vec::new() };
            let message = Message::plain(id, channel, user, content, now_ms);
            state.messages.entry(channel.into()).or_default().insert(id, message);
            id.to_string()
        })
    }
}

impl Message {
    /// A message with nothing but content.
    pub(super) fn plain(
        id: u64,
        channel: &str,
        author: &str,
        content: super::types::Content,
        at_ms: i64,
    ) -> Self {
        Self {
            id: id.to_string(),
            channel: channel.into(),
            author: author.into(),
            app: None,
            content,
            flags: 0,
            at_ms,
            edited_ms: None,
            edits: 0,
            nonce: None,
            mentions: Vec::new(),
            mention_roles: Vec::new(),
            mention_everyone: false,
            pinged: BTreeSet::new(),
            attachments: Vec::new(),
            ephemeral_for: None,
            deleted: false,
            loading: false,
            answers: None,
            before: Vec::new(),
        }
    }
}

/// Builds a world. The last of two things with one id stays.
pub struct Builder(State, Time);

impl Builder {
    #[must_use]
    pub fn user(mut self, user: User) -> Self {
        self.0.users.insert(user.id.clone(), user);
        self
    }

    #[must_use]
    pub fn guild(mut self, guild: Guild) -> Self {
        self.0.guilds.insert(guild.id.clone(), guild);
        self
    }

    /// A role of a guild that stands already.
    #[must_use]
    pub fn role(mut self, guild: &str, role: Role) -> Self {
        if let Some(guild) = self.0.guilds.get_mut(guild) {
            guild.roles.insert(role.id.clone(), role);
        }
        self
    }

    #[must_use]
    pub fn channel(mut self, channel: Channel) -> Self {
        self.0.channels.insert(channel.id.clone(), channel);
        self
    }

    /// A direct message channel that exists from the start.
    #[must_use]
    pub fn dm(mut self, id: &str, bot_user: &str, user: &str) -> Self {
        self.0.channels.insert(id.into(), Channel::direct(id, bot_user, user));
        self
    }

    /// An application with its bot's account, its bot token and the seed of its signing key.
    #[must_use]
    pub fn app(mut self, id: &str, name: &str, bot_user: &str, token: &str, seed: [u8; 32]) -> Self {
        let app = App {
            id: id.into(),
            name: name.into(),
            bot_user: bot_user.into(),
            verify_key: super::sign::verify_key(&seed),
            endpoint: None,
            token_live: true,
        };
        self.0.tokens.insert(token.into(), id.into());
        self.0.seeds.insert(id.into(), seed);
        self.0.apps.insert(id.into(), app);
        self
    }

    #[must_use]
    pub fn build(self) -> Arc<DiscordWorld> {
        Arc::new(DiscordWorld {
            time: self.1,
            faults: Faults::default(),
            state: Mutex::new(self.0),
            version: watch::Sender::new(0),
            client: OnceLock::new(),
        })
    }
}

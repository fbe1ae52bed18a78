//! The gateway: connections that applications open, sessions that survive them, numbered events
//! (Discord: Gateway).
//!
//! Invariant: an event goes to every session of its application, numbered without gaps, and is kept for a resume.
//! A session ends when the client closes with 1000 or 1001, when a resume is refused, or when a test says so; any
//! other end leaves it to be resumed. Everything a client does is recorded.
//!
//! Known race: a connection may close between being chosen and being written to; the event is then replayed when
//! the session is resumed, as with Discord.

mod control;
mod link;
#[cfg(test)]
mod tests;

pub(super) use control::routes as control_routes;
pub(super) use link::routes;

use super::api;
use super::types::{Channel, ChannelKind};
use super::world::{DiscordWorld, State};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;
use tokio::sync::mpsc;

pub(super) const GUILDS: u64 = 1;
pub(super) const GUILD_MESSAGES: u64 = 1 << 9;
pub(super) const DIRECT_MESSAGES: u64 = 1 << 12;
/// Events kept for a resume.
const KEPT: usize = 1_000;
/// A day, in which 1000 IDENTIFYs are allowed.
const DAY_MS: i64 = 86_400_000;
const IDENTIFIES: u32 = 1_000;

/// What is done to open connections.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub enum Order {
    /// op 7: please reconnect.
    Reconnect,
    /// op 9: the session is no good; `resumable` says whether it may be tried again.
    Invalid { resumable: bool },
    /// op 1 from the server: beat now.
    Beat,
    /// Closes with this code.
    Close { code: u16 },
    /// Breaks the connection without a word.
    Drop,
    /// Heartbeats are not acknowledged any more.
    NoAcks,
    /// Nothing is sent any more, acknowledgements neither.
    Silent,
    /// Sends this text as it is.
    Send { text: String },
    /// Sends the newest event (`INTERACTION_CREATE` or any other) once more under its old number.
    Again,
}

/// A session of one application.
#[derive(Debug)]
pub(super) struct Session {
    app: String,
    intents: u64,
    seq: u64,
    kept: VecDeque<Value>,
    connection: Option<u64>,
}

/// A connection as a test sees it.
#[derive(Debug, Clone, Serialize)]
pub struct Connection {
    pub id: u64,
    pub opened_ms: i64,
    pub closed_ms: Option<i64>,
    pub app: Option<String>,
    /// The session that was begun or resumed.
    pub session: Option<String>,
    pub resumed: bool,
    /// Whether the token came with `Bot ` in front.
    pub bot_prefix: Option<bool>,
    pub intents: u64,
    pub beats: u32,
    /// How it ended: `closed` and `dropped` by the server, `app` by the client, `lost`.
    pub end: Option<String>,
    /// The client's own close code.
    pub client_code: Option<u16>,
    /// The code it was closed with by the server.
    pub server_code: Option<u16>,
    pub query: String,
}

/// What a connection is told.
#[derive(Debug, Clone)]
enum Tell {
    Event(Value),
    Order(Order),
}

/// All of the gateway.
#[derive(Debug, Default)]
pub(super) struct Gateway {
    sessions: BTreeMap<String, Session>,
    live: BTreeMap<u64, mpsc::UnboundedSender<Tell>>,
    all: Vec<Connection>,
    count: u64,
    /// When each application identified, by this world's clock and by the machine's.
    identifies: BTreeMap<String, VecDeque<(i64, Instant)>>,
}

impl Gateway {
    fn record(&mut self, id: u64) -> Option<&mut Connection> {
        self.all.iter_mut().find(|connection| connection.id == id)
    }

    pub(super) fn forget(&mut self) {
        self.all.retain(|connection| connection.closed_ms.is_none());
    }

    fn opened(&mut self, tell: mpsc::UnboundedSender<Tell>, query: String, now_ms: i64) -> u64 {
        self.count += 1;
        self.live.insert(self.count, tell);
        self.all.push(Connection {
            id: self.count,
            opened_ms: now_ms,
            closed_ms: None,
            app: None,
            session: None,
            resumed: false,
            bot_prefix: None,
            intents: 0,
            beats: 0,
            end: None,
            client_code: None,
            server_code: None,
            query,
        });
        self.count
    }

    /// A connection is over; its session stays unless the client said goodbye.
    fn closed(&mut self, id: u64, end: &str, now_ms: i64) {
        self.live.remove(&id);
        let Some(record) = self.record(id) else { return };
        (record.end, record.closed_ms) = (Some(end.into()), Some(now_ms));
        // What cannot be resumed: the client said goodbye, or was told to begin anew.
        let goodbye = matches!(record.client_code, Some(1000 | 1001))
            || matches!(record.server_code, Some(4004 | 4007 | 4009..=4014));
        let session = record.session.clone();
        let Some(key) = session else { return };
        if let Some(session) = self.sessions.get_mut(&key).filter(|session| session.connection == Some(id)) {
            session.connection = None;
            if goodbye {
                self.sessions.remove(&key);
            }
        }
    }
}

impl State {
    /// The address of the gateway.
    pub(super) fn gateway_url(&self) -> String {
        format!("{}/discord/gateway", self.base_url.replacen("http", "ws", 1))
    }

    /// What is left of the day's IDENTIFYs, and when that changes.
    pub(super) fn identify_budget(&self, app: &str, now_ms: i64) -> (u32, i64) {
        if let Some(left) = self.switches.identify_left {
            return (left, self.switches.identify_reset_ms);
        }
        let used = self
            .gateway
            .identifies
            .get(app)
            .map_or(0, |all| all.iter().filter(|(at, _)| now_ms - at < DAY_MS).count());
        let first =
            self.gateway.identifies.get(app).and_then(|all| all.front()).map_or(now_ms, |(at, _)| *at);
        (
            IDENTIFIES.saturating_sub(u32::try_from(used).unwrap_or(IDENTIFIES)),
            (first + DAY_MS - now_ms).max(0),
        )
    }

    /// Gives an event to every session of an application that wants it; how many are connected.
    pub(super) fn dispatch(&mut self, app: &str, intent: Option<u64>, name: &str, data: &Value) -> usize {
        let mut heard = 0;
        for session in self.gateway.sessions.values_mut().filter(|session| session.app == app) {
            if intent.is_some_and(|intent| session.intents & intent == 0) {
                continue;
            }
            session.seq += 1;
            let event = json!({"op": 0, "t": name, "s": session.seq, "d": data});
            session.kept.push_back(event.clone());
            if session.kept.len() > KEPT {
                session.kept.pop_front();
            }
            let tell = session.connection.and_then(|id| self.gateway.live.get(&id));
            heard += usize::from(tell.is_some_and(|tell| tell.send(Tell::Event(event)).is_ok()));
        }
        heard
    }

    /// Whether an application has a session, connected or to be resumed.
    pub(super) fn has_session(&self, app: &str) -> bool {
        self.gateway.sessions.values().any(|session| session.app == app)
    }

    /// The same to every application that is in the guild, or of the direct message.
    fn tell_all(
        &mut self,
        guild: Option<&str>,
        channel: Option<&Channel>,
        intent: u64,
        name: &str,
        data: &Value,
    ) {
        let here = |bot: &str| match guild.and_then(|guild| self.guilds.get(guild)) {
            Some(guild) => guild.members.contains_key(bot),
            None => channel.is_some_and(|channel| channel.recipients.iter().any(|one| one == bot)),
        };
        let apps: Vec<String> =
            self.apps.values().filter(|app| here(&app.bot_user)).map(|app| app.id.clone()).collect();
        for app in apps {
            self.dispatch(&app, Some(intent), name, data);
        }
    }

    /// Tells of a message that was made or changed.
    pub(super) fn tell_message(&mut self, name: &str, channel: &str, id: &str) {
        let Some(place) = self.channels.get(channel).cloned() else { return };
        let Some(message) = self.message(channel, id).filter(|message| !message.is_ephemeral()).cloned()
        else {
            return;
        };
        let intent = if place.guild.is_some() { GUILD_MESSAGES } else { DIRECT_MESSAGES };
        let apps: Vec<(String, String)> =
            self.apps.values().map(|app| (app.id.clone(), app.bot_user.clone())).collect();
        for (app, bot) in apps {
            if self.sees(&place, &bot, message.at_ms) {
                let mut data = api::shown(self, &message, &app);
                if let Some(guild) = &place.guild {
                    data["guild_id"] = guild.as_str().into();
                }
                self.dispatch(&app, Some(intent), name, &data);
            }
        }
    }

    /// Tells that messages are gone: one, or several at once.
    pub(super) fn tell_deleted(&mut self, channel: &str, ids: &[String]) {
        let Some(place) = self.channels.get(channel).cloned() else { return };
        let intent = if place.guild.is_some() { GUILD_MESSAGES } else { DIRECT_MESSAGES };
        let (name, mut data) = match ids {
            [id] => ("MESSAGE_DELETE", json!({"id": id, "channel_id": channel})),
            ids => ("MESSAGE_DELETE_BULK", json!({"ids": ids, "channel_id": channel})),
        };
        if let Some(guild) = &place.guild {
            data["guild_id"] = guild.as_str().into();
        }
        self.tell_all(place.guild.as_deref(), Some(&place), intent, name, &data);
    }

    /// Tells of a channel or thread as it is now.
    pub(super) fn tell_channel(&mut self, name: &str, id: &str) {
        let Some(place) = self.channels.get(id).cloned().filter(|one| one.kind != ChannelKind::Dm) else {
            return;
        };
        let data = api::channel_json(self, &place);
        self.tell_all(place.guild.as_deref(), Some(&place), GUILDS, name, &data);
    }

    /// Tells of a guild's matter.
    pub(super) fn tell_guild(&mut self, guild: &str, name: &str, data: &Value) {
        self.tell_all(Some(guild), None, GUILDS, name, data);
    }

    /// Everything READY promises of a guild.
    pub(super) fn guild_create(&self, id: &str, bot: &str) -> Value {
        let Some(guild) = self.guilds.get(id) else { return json!({"id": id, "unavailable": true}) };
        let mut data = api::guild_json(guild);
        let of = |threads: bool| -> Vec<Value> {
            let all = self.channels.values().filter(|one| one.guild.as_deref() == Some(id));
            let kind = all.filter(|one| one.kind.is_thread() == threads);
            kind.filter(|one| one.thread.as_ref().is_none_or(|thread| !thread.archived))
                .map(|one| api::channel_json(self, one))
                .collect()
        };
        let own = guild.members.get(bot).map(|member| api::member_json(self, member));
        data["channels"] = of(false).into();
        data["threads"] = of(true).into();
        data["members"] = own.into_iter().collect();
        data["member_count"] = guild.members.len().into();
        data["large"] = false.into();
        data["unavailable"] = false.into();
        data["joined_at"] = super::world::iso(1_738_400_400_000).into();
        for key in
            ["voice_states", "presences", "stage_instances", "guild_scheduled_events", "soundboard_sounds"]
        {
            data[key] = json!([]);
        }
        data
    }
}

impl DiscordWorld {
    /// Does something to the open connections of an application (of all without one); how many there were.
    pub fn gateway(&self, app: Option<&str>, order: &Order) -> usize {
        self.change(|state| {
            let of = |id: &u64| {
                let record = state.gateway.all.iter().find(|one| one.id == *id);
                app.is_none() || record.is_some_and(|one| one.app.as_deref() == app)
            };
            let live = state.gateway.live.iter().filter(|(id, _)| of(id));
            live.filter(|(_, tell)| tell.send(Tell::Order(order.clone())).is_ok()).count()
        })
    }

    /// Ends every session of an application, so that a resume is refused with op 9 `false`.
    pub fn end_sessions(&self, app: &str) {
        self.change(|state| state.gateway.sessions.retain(|_, session| session.app != app));
    }

    /// Sends an event of the test's making to an application's sessions; how many are connected.
    pub fn event(&self, app: &str, name: &str, data: &Value) -> usize {
        self.change(|state| state.dispatch(app, None, name, data))
    }

    /// Every connection so far, in order.
    pub fn connections(&self) -> Vec<Connection> {
        self.lock().gateway.all.clone()
    }

    /// The connections of an application that are open with a session that is ready.
    pub fn connected(&self, app: &str) -> Vec<u64> {
        let state = self.lock();
        let ready = state.gateway.sessions.values().filter(|session| session.app == app);
        ready.filter_map(|session| session.connection).collect()
    }
}

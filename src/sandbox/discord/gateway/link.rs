//! One connection to the gateway, from Hello to its end.
//!
//! Scripted trouble at `gateway` strikes a new connection: a status refuses the upgrade; "no content" closes it at
//! once, before Hello; a refusal closes it with that code when the client identifies or resumes; a delay comes
//! before Hello; a hang sends no Hello and breaks then; a cut answer breaks right after Hello; a lost answer takes
//! the IDENTIFY and never answers it.

use super::{Connection, DAY_MS, Gateway, IDENTIFIES, Order, Session, Tell};
use crate::sandbox::discord::world::{DiscordWorld, State as World};
use crate::sandbox::faults::Fault;
use axum::Router;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade};
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::time::timeout;

/// What a client may send in one frame.
const LARGEST: usize = 4_096;
/// Sends in a minute.
const SENDS: usize = 120;
/// After closing, the other side has this long to close as well.
const FAREWELL: Duration = Duration::from_secs(1);
/// Intents there are, and those that ask for a permission of Discord.
const KNOWN_INTENTS: u64 = (1 << 26) - 1;
const PRIVILEGED: u64 = (1 << 1) | (1 << 8) | (1 << 15);

pub(in crate::sandbox::discord) fn routes() -> Router<Arc<DiscordWorld>> {
    Router::new().route("/discord/gateway", get(link)).route("/discord/gateway/", get(link))
}

async fn link(
    State(world): State<Arc<DiscordWorld>>,
    RawQuery(query): RawQuery,
    upgrade: WebSocketUpgrade,
) -> Response {
    let fault = world.faults().take("gateway");
    if let Some(Fault::Status { code, .. }) = fault {
        return StatusCode::from_u16(code).unwrap_or(StatusCode::BAD_GATEWAY).into_response();
    }
    let query = query.unwrap_or_default();
    upgrade.on_upgrade(async move |ws| session(world, ws, fault, query).await)
}

/// How the talking ended.
enum End {
    /// By the server, with this code.
    Close(u16),
    Dropped,
    /// By the client, who said so.
    App,
    Lost,
}

async fn session(world: Arc<DiscordWorld>, mut ws: WebSocket, fault: Option<Fault>, query: String) {
    let (tell, told) = mpsc::unbounded_channel();
    let opened_ms = world.time.now_ms();
    let id = world.change(|state| state.gateway.opened(tell, query.clone(), opened_ms));
    let mut talk = Talk { world: &world, id, fault, sends: VecDeque::new(), acks: true, silent: false };
    let end = talk.run(&mut ws, told, &query).await;
    let how = match end {
        End::Close(code) => {
            world.change(|state| state.gateway.record(id).map(|record| record.server_code = Some(code)));
            let _ = ws.send(Message::Close(Some(CloseFrame { code, reason: "".into() }))).await;
            let drain = async { while let Some(Ok(_)) = ws.recv().await {} };
            // Broken off like this it is closed all the same.
            let _ = timeout(FAREWELL, drain).await;
            "closed"
        }
        End::Dropped => "dropped",
        End::App => "app",
        End::Lost => "lost",
    };
    drop(ws);
    let now_ms = world.time.now_ms();
    world.change(|state| state.gateway.closed(id, how, now_ms));
}

fn text(value: &Value) -> Message {
    Message::Text(value.to_string().into())
}

struct Talk<'w> {
    world: &'w DiscordWorld,
    id: u64,
    fault: Option<Fault>,
    sends: VecDeque<i64>,
    acks: bool,
    silent: bool,
}

impl Talk<'_> {
    async fn run(&mut self, ws: &mut WebSocket, mut told: mpsc::UnboundedReceiver<Tell>, query: &str) -> End {
        match &self.fault {
            Some(Fault::NoContent) => return End::Close(1000),
            Some(Fault::Delay { ms }) => tokio::time::sleep(Duration::from_millis(*ms)).await,
            Some(Fault::Hang { ms }) => {
                tokio::time::sleep(Duration::from_millis(*ms)).await;
                return End::Dropped;
            }
            _ => {}
        }
        let has = |key: &str, wanted: &str| {
            url::form_urlencoded::parse(query.as_bytes())
                .any(|(known, value)| known == key && value == wanted)
        };
        if !has("v", "10") || !has("encoding", "json") {
            return End::Close(4012);
        }
        let beat = self.world.switches().heartbeat_ms;
        if ws
            .send(text(
                &json!({"op": 10, "s": null, "t": null, "d": {"heartbeat_interval": beat, "_trace": []}}),
            ))
            .await
            .is_err()
        {
            return End::Lost;
        }
        if self.fault == Some(Fault::CutAnswer) {
            return End::Dropped;
        }
        loop {
            tokio::select! {
                got = ws.recv() => {
                    let answer = match got {
                        Some(Ok(Message::Text(heard))) => self.heard(&heard),
                        Some(Ok(Message::Binary(heard))) => self.heard(&String::from_utf8_lossy(&heard)),
                        Some(Ok(Message::Close(frame))) => {
                            let code = frame.map(|frame| frame.code);
                            self.world.change(|state| {
                                state.gateway.record(self.id).map(|record| record.client_code = code)
                            });
                            return End::App;
                        }
                        Some(Ok(_)) => continue,
                        None | Some(Err(_)) => return End::Lost,
                    };
                    match answer {
                        Err(code) => return End::Close(code),
                        Ok(frames) => for frame in frames {
                            if !self.silent && ws.send(text(&frame)).await.is_err() {
                                return End::Lost;
                            }
                        },
                    }
                }
                tell = told.recv() => {
                    let frame = match tell {
                        None => return End::Dropped,
                        Some(Tell::Event(event)) => event.to_string(),
                        Some(Tell::Order(order)) => match self.ordered(order) {
                            Ok(None) => continue,
                            Ok(Some(frame)) => frame,
                            Err(end) => return end,
                        },
                    };
                    if !self.silent && ws.send(Message::Text(frame.into())).await.is_err() {
                        return End::Lost;
                    }
                }
            }
        }
    }

    fn ordered(&mut self, order: Order) -> Result<Option<String>, End> {
        let frame = |value: Value| Ok(Some(value.to_string()));
        match order {
            Order::Reconnect => frame(json!({"op": 7, "d": null, "s": null, "t": null})),
            Order::Invalid { resumable } => {
                if !resumable {
                    self.world.change(|state| state.gateway.end(self.id));
                }
                frame(json!({"op": 9, "d": resumable, "s": null, "t": null}))
            }
            Order::Beat => frame(json!({"op": 1, "d": null, "s": null, "t": null})),
            Order::Close { code } => Err(End::Close(code)),
            Order::Drop => Err(End::Dropped),
            Order::NoAcks => {
                self.acks = false;
                Ok(None)
            }
            Order::Silent => {
                self.silent = true;
                Ok(None)
            }
            Order::Send { text } => Ok(Some(text)),
            Order::Again => {
                let newest = self.world.change(|state| {
                    let session = state.gateway.sessions.values().find(|one| one.connection == Some(self.id));
                    session.and_then(|session| session.kept.back().cloned())
                });
                Ok(newest.map(|event| event.to_string()))
            }
        }
    }

    /// A frame of the client: what to send back, or the code to close with.
    fn heard(&mut self, heard: &str) -> Result<Vec<Value>, u16> {
        let now_ms = self.world.time.now_ms();
        let frame: Value = serde_json::from_str(heard).map_err(|_| 4002_u16)?;
        if heard.len() > LARGEST {
            return Err(4002);
        }
        self.sends.push_back(now_ms);
        self.sends.retain(|at| now_ms - at < 60_000);
        if self.sends.len() > SENDS {
            return Err(4008);
        }
        let refused = match &self.fault {
            Some(Fault::Refuse { error }) => Some(error.parse::<u16>().unwrap_or(4000)),
            _ => None,
        };
        let lost = matches!(self.fault, Some(Fault::Lost { .. }));
        let op = frame["op"].as_u64();
        let (id, acks) = (self.id, self.acks);
        self.world.change(|state| {
            let begun = state.gateway.record(id).is_some_and(|record| record.session.is_some());
            match op {
                Some(1) => {
                    if let Some(record) = state.gateway.record(id) {
                        record.beats += 1;
                    }
                    let ack = json!({"op": 11, "d": null, "s": null, "t": null});
                    Ok(if acks { vec![ack] } else { Vec::new() })
                }
                Some(2 | 6) if refused.is_some() => Err(refused.unwrap_or(4000)),
                Some(2 | 6) if lost => Ok(Vec::new()),
                Some(2 | 6) if begun => Err(4005),
                Some(2) => identify(state, id, &frame["d"], now_ms),
                Some(6) => resume(state, id, &frame["d"]),
                Some(3 | 4 | 8 | 31) if begun => Ok(Vec::new()),
                Some(3 | 4 | 8 | 31) => Err(4003),
                _ => Err(4001),
            }
        })
    }
}

/// The application of a token, with or without `Bot ` in front.
fn application(state: &World, data: &Value) -> Result<(String, bool), u16> {
    let given = data["token"].as_str().unwrap_or_default();
    let (token, prefix) = given.strip_prefix("Bot ").map_or((given, false), |token| (token, true));
    let app = state.tokens.get(token).cloned().ok_or(4004_u16)?;
    if state.apps.get(&app).is_some_and(|app| app.token_live) { Ok((app, prefix)) } else { Err(4004) }
}

fn identify(state: &mut World, id: u64, data: &Value, now_ms: i64) -> Result<Vec<Value>, u16> {
    let (app, prefix) = application(state, data)?;
    let Some(intents) = data["intents"].as_u64().filter(|intents| intents & !KNOWN_INTENTS == 0) else {
        return Err(4013);
    };
    if intents & PRIVILEGED != 0 {
        return Err(4014);
    }
    if ["os", "browser", "device"].iter().any(|key| !data["properties"][*key].is_string()) {
        return Err(4002);
    }
    if let Some([shard, of]) = data["shard"].as_array().map(Vec::as_slice)
        && shard.as_u64() >= of.as_u64()
    {
        return Err(4010);
    }
    let at_once = state.switches.identify_at_once;
    let all = state.gateway.identifies.entry(app.clone()).or_default();
    all.retain(|(at, _)| now_ms - at < DAY_MS);
    // Too early only if it is so by both clocks: a hand-moved one may stand still.
    let recent = |at: &i64, then: &Instant| now_ms - at < 5_000 && then.elapsed() < Duration::from_secs(5);
    if all.iter().filter(|(at, then)| recent(at, then)).count() >= at_once {
        return Ok(vec![json!({"op": 9, "d": false, "s": null, "t": null})]);
    }
    all.push_back((now_ms, Instant::now()));
    if all.len() > IDENTIFIES as usize {
        // The token is reset, and its owner gets mail.
        if let Some(app) = state.apps.get_mut(&app) {
            app.token_live = false;
        }
        return Err(4004);
    }
    let session = format!("{:032x}", u128::from(state.serial()) << 64 | u128::from(id) ^ 0x5e55_1011);
    let bot = state.apps.get(&app).map(|app| app.bot_user.clone()).unwrap_or_default();
    let guilds: Vec<String> = state
        .guilds
        .values()
        .filter(|guild| guild.members.contains_key(&bot))
        .map(|guild| guild.id.clone())
        .collect();
    let arrive = state.switches.guilds_arrive;
    let named: Vec<Value> =
        guilds.iter().filter(|_| arrive).map(|id| json!({"id": id, "unavailable": true})).collect();
    let url = state.switches.resume_url.clone().unwrap_or_else(|| state.gateway_url());
    let ready = json!({"v": 10, "user": state.users.get(&bot).map(super::super::types::User::json), "guilds": named,
        "session_id": session, "session_type": "normal", "resume_gateway_url": url, "shard": [0, 1],
        "application": {"id": app, "flags": 0}, "private_channels": [], "relationships": [], "presences": [],
        "user_settings": {}, "geo_ordered_rtc_regions": [], "_trace": []});
    if let Some(record) = state.gateway.record(id) {
        (record.app, record.session) = (Some(app.clone()), Some(session.clone()));
        (record.bot_prefix, record.intents) = (Some(prefix), intents);
    }
    let mut new = Session { app, intents, seq: 0, kept: VecDeque::new(), connection: Some(id) };
    let mut frames = vec![new.event("READY", &ready)];
    if arrive && intents & super::GUILDS != 0 {
        for guild in guilds.iter().filter(|id| state.guilds.get(*id).is_some_and(|guild| !guild.unavailable))
        {
            frames.push(new.event("GUILD_CREATE", &state.guild_create(guild, &bot)));
        }
    }
    state.gateway.sessions.insert(session, new);
    Ok(frames)
}

fn resume(state: &mut World, id: u64, data: &Value) -> Result<Vec<Value>, u16> {
    let (app, prefix) = application(state, data)?;
    let key = data["session_id"].as_str().unwrap_or_default().to_owned();
    let from = data["seq"].as_u64().unwrap_or(0);
    let invalid = vec![json!({"op": 9, "d": false, "s": null, "t": null})];
    let Some(session) = state.gateway.sessions.get_mut(&key).filter(|session| session.app == app) else {
        return Ok(invalid);
    };
    if from > session.seq {
        return Err(4007);
    }
    let oldest = session.kept.front().and_then(|event| event["s"].as_u64()).unwrap_or(session.seq + 1);
    if from + 1 < oldest {
        state.gateway.sessions.remove(&key);
        return Ok(invalid);
    }
    session.connection = Some(id);
    let missed = session.kept.iter().filter(|event| event["s"].as_u64().is_some_and(|seq| seq > from));
    let mut frames: Vec<Value> = missed.cloned().collect();
    frames.push(session.event("RESUMED", &json!({"_trace": []})));
    let intents = session.intents;
    if let Some(record) = state.gateway.record(id) {
        (record.app, record.session, record.resumed) = (Some(app), Some(key), true);
        (record.bot_prefix, record.intents) = (Some(prefix), intents);
    }
    Ok(frames)
}

impl Session {
    /// Numbers an event and keeps it.
    fn event(&mut self, name: &str, data: &Value) -> Value {
        self.seq += 1;
        let event = json!({"op": 0, "t": name, "s": self.seq, "d": data});
        self.kept.push_back(event.clone());
        event
    }
}

impl Gateway {
    /// Ends the session of a connection.
    fn end(&mut self, id: u64) {
        self.sessions.retain(|_, session| session.connection != Some(id));
        if let Some(Connection { session, .. }) = self.record(id) {
            // The same connection may identify anew.
            *session = None;
        }
    }
}

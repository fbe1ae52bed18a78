//! Opening sockets: `apps.connections.open`, and the WebSocket behind the address it gives.
//!
//! Scripted trouble at `link` strikes a new socket: a status refuses the upgrade; a refusal sends
//! `disconnect` with that reason in place of `hello` and closes; a delay comes before `hello`; a
//! hang sends no `hello` and breaks then; "no content" closes at once; a cut answer breaks right
//! after `hello`; a lost answer leaves it half-open after `hello`.

use super::{Frame, Live, MOST, Order, Socket, Sockets, TICKET_MS, Tell};
use crate::sandbox::faults::Fault;
use crate::sandbox::slack::api::args::Args;
use crate::sandbox::slack::api::{Refusal, Reply};
use crate::sandbox::slack::limits::{Method, TooMany};
use crate::sandbox::slack::world::{SlackWorld, State as World};
use axum::Router;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;

/// Slack pings so often, in real time.
const PING: Duration = Duration::from_secs(5);
/// After closing, the other side has this long to close as well.
const FAREWELL: Duration = Duration::from_secs(1);
/// What `hello` promises, in seconds; shorter with `debug_reconnects`.
const LIFE_S: i64 = 18_060;
const DEBUG_LIFE_S: i64 = 360;
/// The warning comes so long before the end, and the end so long after the request to refresh.
const AHEAD_MS: i64 = 10_000;
/// A half-open socket is given up after this.
const HALF_OPEN_MS: i64 = 60_000;

pub(in crate::sandbox::slack) fn routes() -> Router<Arc<SlackWorld>> {
    Router::new().route("/slack/link", get(link)).route("/slack/link/", get(link))
}

/// Answers `apps.connections.open`: the address of one socket, good once.
pub(in crate::sandbox::slack) fn connections_open(
    state: &mut World,
    now_ms: i64,
    method: &Method,
    args: &Args,
) -> Reply {
    let refused = |error: &str| Reply::refused(Refusal::new(error));
    let app = state.app_id.clone();
    let scarce = state.switches.scarce_connections;
    if let Err(TooMany { retry_after }) = state.rates.take(now_ms, method, &app, None, scarce) {
        return Reply { status: 429, retry_after: Some(retry_after), ..refused("ratelimited") };
    }
    if !args.post {
        return refused("insecure_request");
    }
    // An argument `token` does not count here.
    let Some(token) = args.token().filter(|_| args.bearer) else { return refused("not_authed") };
    let Some(scopes) = state.app_tokens.get(token) else {
        let bot = state.installs.contains_key(token);
        return refused(if bot { "not_allowed_token_type" } else { "invalid_auth" });
    };
    if !scopes.contains("connections:write") {
        let mut refusal = refused("missing_scope");
        refusal.body["needed"] = "connections:write".into();
        refusal.body["provided"] = scopes.iter().cloned().collect::<Vec<_>>().join(",").into();
        return refusal;
    }
    if !state.switches.socket_mode {
        // What Slack answers is not documented; its code list knows this one for apps that may not.
        return refused("forbidden_team");
    }
    let ticket = format!("{:08x}-{:016x}", state.serial(), now_ms.unsigned_abs().wrapping_mul(0x9e37_79b9));
    let base = state.socket_url.clone().unwrap_or_else(|| state.base_url.replacen("http", "ws", 1));
    let url = format!("{base}/slack/link/?ticket={ticket}&app_id={app}");
    state.sockets.tickets.insert(ticket, now_ms);
    Reply { body: json!({"ok": true, "url": url}), ..refused("") }
}

#[derive(Deserialize)]
struct Asked {
    #[serde(default)]
    ticket: String,
    #[serde(default)]
    debug_reconnects: bool,
}

async fn link(
    State(world): State<Arc<SlackWorld>>,
    Query(asked): Query<Asked>,
    upgrade: WebSocketUpgrade,
) -> Response {
    let fault = world.faults().take("link");
    if let Some(Fault::Status { code, .. }) = fault {
        return StatusCode::from_u16(code).unwrap_or(StatusCode::BAD_GATEWAY).into_response();
    }
    let now_ms = world.time.now_ms();
    let made = world.change(|state| state.sockets.tickets.remove(&asked.ticket));
    if made.is_none_or(|made| now_ms - made > TICKET_MS) {
        return (StatusCode::FORBIDDEN, "this ticket is used or unknown\n").into_response();
    }
    let life_ms = if asked.debug_reconnects { DEBUG_LIFE_S } else { LIFE_S } * 1_000;
    upgrade.on_upgrade(async move |ws| session(world, ws, fault, life_ms).await)
}

/// What the clock will bring to a socket.
struct Due {
    cut: Option<i64>,
    close: Option<i64>,
    warn: Option<i64>,
    refresh: Option<i64>,
}

impl Due {
    fn next(&self) -> i64 {
        let all = [self.cut, self.close, self.warn, self.refresh];
        all.into_iter().flatten().min().unwrap_or(i64::MAX)
    }
}

fn text(value: &serde_json::Value) -> Message {
    Message::Text(value.to_string().into())
}

async fn session(world: Arc<SlackWorld>, mut ws: WebSocket, fault: Option<Fault>, life_ms: i64) {
    let (tell, mut told) = mpsc::unbounded_channel();
    let opened_ms = world.time.now_ms();
    let (id, room) = world.change(|state| state.sockets.opened(tell, opened_ms));
    let end = if room {
        spoken(&world, &mut ws, id, &mut told, fault, life_ms).await
    } else {
        let _ = ws.send(goodbye(&world, "too_many_websockets")).await;
        "refused"
    };
    let now_ms = world.time.now_ms();
    if end == "closed" || end == "refused" {
        // Acknowledgements that are on their way still count.
        let _ = ws.send(Message::Close(None)).await;
        let drain = async {
            while let Some(Ok(message)) = ws.recv().await {
                if let Message::Text(heard) = message {
                    world.change(|state| state.sockets.heard(id, &heard, now_ms));
                }
            }
        };
        // Broken off like this it is closed all the same.
        let _ = timeout(FAREWELL, drain).await;
    }
    drop(ws);
    world.change(|state| state.sockets.closed(id, end, now_ms));
}

/// Everything after the upgrade; how the socket ended.
async fn spoken(
    world: &SlackWorld,
    ws: &mut WebSocket,
    id: u64,
    told: &mut mpsc::UnboundedReceiver<Tell>,
    fault: Option<Fault>,
    life_ms: i64,
) -> &'static str {
    match &fault {
        Some(Fault::Refuse { error }) => {
            let _ = ws.send(goodbye(world, error)).await;
            return "closed";
        }
        Some(Fault::Delay { ms }) => tokio::time::sleep(Duration::from_millis(*ms)).await,
        Some(Fault::Hang { ms }) => {
            tokio::time::sleep(Duration::from_millis(*ms)).await;
            return "dropped";
        }
        Some(Fault::NoContent) => return "closed",
        _ => {}
    }
    if ws.send(hello(world, life_ms)).await.is_err() {
        return "lost";
    }
    if fault == Some(Fault::CutAnswer) {
        return "dropped";
    }
    let now_ms = world.time.now_ms();
    let half_open = matches!(fault, Some(Fault::Lost { .. }));
    let cut_at = world.change(|state| state.sockets.ready(id, half_open, now_ms));
    if half_open {
        return silent(world, told).await;
    }
    let end_ms = now_ms + life_ms;
    let mut due = Due { cut: cut_at, close: None, warn: Some(end_ms - AHEAD_MS), refresh: Some(end_ms) };
    let mut ping = tokio::time::interval(PING);
    loop {
        let sent = tokio::select! {
            got = ws.recv() => match got {
                Some(Ok(Message::Text(heard))) => {
                    let now_ms = world.time.now_ms();
                    world.change(|state| state.sockets.heard(id, &heard, now_ms));
                    Ok(())
                }
                Some(Ok(Message::Close(_))) => return "app",
                Some(Ok(Message::Binary(_))) => {
                    world.change(|state| state.sockets.breaches.push(format!("socket {id}: a binary frame")));
                    Ok(())
                }
                Some(Ok(Message::Ping(_))) => {
                    world.change(|state| state.sockets.record(id).map(|socket| socket.pings += 1));
                    Ok(())
                }
                Some(Ok(Message::Pong(_))) => Ok(()),
                None | Some(Err(_)) => return "lost",
            },
            tell = told.recv() => match tell {
                None | Some(Tell::Order(Order::Drop)) => return "dropped",
                Some(Tell::Text(frame)) => ws.send(Message::Text(frame.into())).await,
                Some(Tell::CutAt(at)) => {
                    due.cut = at;
                    Ok(())
                }
                Some(Tell::Order(Order::Close)) => return "closed",
                Some(Tell::Order(Order::HalfOpen)) => return silent(world, told).await,
                Some(Tell::Order(Order::Disconnect { reason, close_after_ms })) => {
                    due.close = close_after_ms.map(|after| world.time.now_ms() + after);
                    ws.send(goodbye(world, &reason)).await
                }
                Some(Tell::Order(Order::Send { frame })) => ws.send(made(frame)).await,
            },
            _ = ping.tick() => ws.send(Message::Ping("slack".into())).await,
            () = world.time.until(due.next()) => {
                let passed = |at: Option<i64>| at.is_some_and(|at| at <= world.time.now_ms());
                if passed(due.cut) {
                    return "dropped";
                }
                if passed(due.close) {
                    return "closed";
                }
                if passed(due.refresh) {
                    (due.warn, due.refresh) = (None, None);
                    due.close = Some(world.time.now_ms() + AHEAD_MS);
                    ws.send(goodbye(world, "refresh_requested")).await
                } else {
                    due.warn = None;
                    ws.send(goodbye(world, "warning")).await
                }
            }
        };
        if sent.is_err() {
            return "lost";
        }
    }
}

/// Neither reads nor writes, until it is told to end or a minute has passed.
async fn silent(world: &SlackWorld, told: &mut mpsc::UnboundedReceiver<Tell>) -> &'static str {
    let given_up = world.time.until(world.time.now_ms() + HALF_OPEN_MS);
    let ended = async {
        loop {
            match told.recv().await {
                None | Some(Tell::Order(Order::Drop | Order::Close)) => return,
                Some(_) => {}
            }
        }
    };
    tokio::select! {
        () = given_up => {}
        () = ended => {}
    }
    "dropped"
}

fn made(frame: Frame) -> Message {
    match frame {
        Frame::Json { value } => text(&value),
        Frame::Text { text } => Message::Text(text.into()),
        Frame::Binary { bytes } => Message::Binary(bytes.into()),
        Frame::Ping => Message::Ping("scripted".into()),
    }
}

fn hello(world: &SlackWorld, life_ms: i64) -> Message {
    let state = world.lock();
    if state.switches.bare_frames {
        return text(&json!({"type": "hello"}));
    }
    let app = state.switches.hello_app_id.as_ref().unwrap_or(&state.app_id);
    text(
        &json!({"type": "hello", "num_connections": state.sockets.live.len(), "connection_info": {"app_id": app},
        "debug_info": {"host": "applink-1", "build_number": 1, "approximate_connection_time": life_ms / 1_000}}),
    )
}

fn goodbye(world: &SlackWorld, reason: &str) -> Message {
    if world.lock().switches.bare_frames {
        return text(&json!({"type": "disconnect", "reason": reason}));
    }
    text(&json!({"type": "disconnect", "reason": reason, "debug_info": {"host": "applink-1"}}))
}

impl Sockets {
    /// Counts a new socket; whether there was room for it.
    fn opened(&mut self, tell: mpsc::UnboundedSender<Tell>, now_ms: i64) -> (u64, bool) {
        self.count += 1;
        let id = self.count;
        let room = self.live.len() < MOST;
        if room {
            self.live.insert(id, Live { tell, ready: false, half_open: false, hello_ms: now_ms });
        }
        self.all.push(Socket {
            id,
            opened_ms: now_ms,
            hello_ms: None,
            closed_ms: None,
            end: None,
            pings: 0,
            acks: 0,
        });
        (id, room)
    }

    /// `hello` went out; when it is to be cut, if that is scripted.
    fn ready(&mut self, id: u64, half_open: bool, now_ms: i64) -> Option<i64> {
        if let Some(live) = self.live.get_mut(&id) {
            (live.ready, live.half_open, live.hello_ms) = (true, half_open, now_ms);
        }
        if let Some(socket) = self.record(id) {
            socket.hello_ms = Some(now_ms);
        }
        self.cut_every_ms.map(|every| now_ms + every)
    }
}

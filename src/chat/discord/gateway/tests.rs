//! The client against a gateway that a test plays by hand, frame by frame.

use super::*;
use crate::cli::machine::MachineIds;
use crate::net::Limits;
use axum::extract::State;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade};
use axum::routing::{any, get};
use axum::{Json, Router};
use serde_json::json;
use std::sync::Mutex;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

const OURS: &str = "1404800000000000001";
const PATIENCE: Duration = Duration::from_secs(20);

/// Where events go in a test.
#[derive(Default)]
struct Desk_ {
    taken: Mutex<Vec<Value>>,
    events: Mutex<Vec<Event>>,
    kept: Mutex<Vec<String>>,
    troubles: Mutex<Vec<Option<String>>>,
    saved: Mutex<Option<Session>>,
    lost: Mutex<bool>,
}

impl Desk for Desk_ {
    fn load(&self) -> BoxFuture<'_, Option<Session>> {
        Box::pin(std::future::ready(self.saved.lock().unwrap().clone()))
    }

    fn save(&self, session: Option<Session>) -> BoxFuture<'_, bool> {
        let ours = !*self.lost.lock().unwrap();
        if ours {
            *self.saved.lock().unwrap() = session;
        }
        Box::pin(std::future::ready(ours))
    }

    fn interaction(&self, payload: Value) -> BoxFuture<'_, ()> {
        self.taken.lock().unwrap().push(payload);
        Box::pin(std::future::ready(()))
    }

    fn event(&self, event: Event) -> BoxFuture<'_, ()> {
        self.events.lock().unwrap().push(event);
        Box::pin(std::future::ready(()))
    }

    fn keep<'a>(&'a self, frame: &'a str) -> BoxFuture<'a, ()> {
        self.kept.lock().unwrap().push(frame.to_owned());
        Box::pin(std::future::ready(()))
    }

    fn trouble<'a>(&'a self, what: Option<&'a str>) -> BoxFuture<'a, ()> {
        self.troubles.lock().unwrap().push(what.map(str::to_owned));
        Box::pin(std::future::ready(()))
    }
}

impl Desk_ {
    fn troubles(&self) -> Vec<String> {
        self.troubles.lock().unwrap().iter().flatten().cloned().collect()
    }
}

/// Discord's side of one connection; `path`: where it was opened.
struct Peer {
    socket: WebSocket,
    path: String,
    seq: u64,
}

impl Peer {
    async fn says(&mut self, frame: Value) {
        self.socket.send(Message::text(frame.to_string())).await.unwrap();
    }

    async fn event(&mut self, name: &str, data: Value) {
        self.seq += 1;
        let seq = self.seq;
        self.says(json!({"op": 0, "s": seq, "t": name, "d": data})).await;
    }

    /// The next frame with that number, past heartbeats; `None`: the connection ended (with that code).
    async fn hears(&mut self, op: u64) -> Result<Value, Option<u16>> {
        let next = async {
            while let Some(Ok(message)) = self.socket.recv().await {
                match message {
                    Message::Text(text) => {
                        let frame: Value = serde_json::from_str(&text).unwrap();
                        if frame["op"] == op {
                            return Ok(frame["d"].clone());
                        }
                    }
                    Message::Close(frame) => return Err(frame.map(|frame| frame.code)),
                    _ => {}
                }
            }
            Err(None)
        };
        timeout(PATIENCE, next).await.expect("nothing is heard and nothing ends")
    }

    async fn hello(&mut self) {
        self.says(json!({"op": 10, "d": {"heartbeat_interval": 41_250}})).await;
    }

    async fn close(mut self, code: u16) {
        let frame = CloseFrame { code, reason: "".into() };
        self.socket.send(Message::Close(Some(frame))).await.unwrap();
        let _ = self.hears(99).await;
    }

    /// Greets, and is identified to; READY names that session.
    async fn ready(mut self, rig: &Rig, session: &str) -> Self {
        self.hello().await;
        let identify = self.hears(2).await.unwrap();
        assert_eq!(identify["token"], "Bot bot-token");
        assert_eq!(identify["intents"], 4609);
        let resume = format!("ws://{}/resume", rig.address);
        self.event(
            "READY",
            json!({"v": 10, "session_id": session, "resume_gateway_url": resume, "guilds": [],
                "user": {"id": "2"}, "application": {"id": OURS, "flags": 0}}),
        )
        .await;
        self
    }

    /// Greets, and a session is taken up; its number.
    async fn resumed(mut self, session: &str) -> (Self, u64) {
        self.hello().await;
        let resume = self.hears(6).await.unwrap();
        assert_eq!(resume["session_id"], session);
        let seq = resume["seq"].as_u64().unwrap();
        self.seq = seq;
        self.event("RESUMED", json!({})).await;
        (self, seq)
    }
}

#[derive(Clone)]
struct Server {
    tell: mpsc::UnboundedSender<(WebSocket, String)>,
    opens: Arc<Mutex<Vec<Instant>>>,
    answer: Arc<Mutex<Value>>,
}

struct Rig {
    peers: mpsc::UnboundedReceiver<(WebSocket, String)>,
    server: Server,
    address: std::net::SocketAddr,
    desk: Arc<Desk_>,
    stop: CancellationToken,
    client: Option<JoinHandle<()>>,
    timing: Timing,
}

#[expect(clippy::disallowed_methods, reason = "a test's own tasks, ended with it")]
fn spawn(task: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
    tokio::spawn(task)
}

/// Times that nothing in a test meets by chance.
fn timing() -> Timing {
    Timing { steady: Duration::from_mins(10), ..Timing::default().faster(20) }
}

impl Rig {
    async fn new(timing: Timing) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (tell, peers) = mpsc::unbounded_channel();
        let url = format!("ws://{address}/ws");
        let answer = json!({"url": url, "shards": 1,
            "session_start_limit": {"total": 1000, "remaining": 998, "reset_after": 1, "max_concurrency": 1}});
        let server = Server { tell, opens: Arc::default(), answer: Arc::new(Mutex::new(answer)) };
        let router = Router::new()
            .route(
                "/api/v10/gateway/bot",
                get(async |State(server): State<Server>| Json(server.answer.lock().unwrap().clone())),
            )
            .route("/{at}/", any(open))
            .with_state(server.clone());
        spawn(async move { axum::serve(listener, router).await.unwrap() });
        let mut rig = Self {
            peers,
            server,
            address,
            desk: Arc::default(),
            stop: CancellationToken::new(),
            client: None,
            timing,
        };
        rig.start();
        rig
    }

    /// Starts the client, also once more.
    fn start(&mut self) {
        self.stop = CancellationToken::new();
        let settings = GatewaySettings {
            name: "guild".into(),
            application_id: OURS.into(),
            bot_token: "bot-token".into(),
            api_url: format!("http://{}/api/v10", self.address),
        };
        let client = crate::net::client(Limits::default()).unwrap();
        let gateway = Gateway::new(settings, client, Arc::new(MachineIds::default()), self.timing.clone());
        let (desk, stop) = (Arc::clone(&self.desk), self.stop.clone());
        self.client = Some(spawn(async move { gateway.run(&*desk, &stop).await }));
    }

    async fn peer(&mut self) -> Peer {
        let (socket, path) =
            timeout(PATIENCE, self.peers.recv()).await.expect("no connection comes").unwrap();
        Peer { socket, path, seq: 0 }
    }

    fn opens(&self) -> usize {
        self.server.opens.lock().unwrap().len()
    }

    async fn until(&self, what: &str, done: impl Fn(&Desk_) -> bool) {
        let end = Instant::now() + PATIENCE;
        while !done(&self.desk) {
            assert!(Instant::now() < end, "never: {what}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn end(&mut self) {
        self.stop.cancel();
        timeout(PATIENCE, self.client.take().unwrap()).await.expect("it stops").unwrap();
    }
}

async fn open(
    State(server): State<Server>,
    uri: axum::http::Uri,
    upgrade: WebSocketUpgrade,
) -> axum::response::Response {
    server.opens.lock().unwrap().push(Instant::now());
    upgrade.on_upgrade(async move |socket| drop(server.tell.send((socket, uri.to_string()))))
}

#[tokio::test]
async fn interactions_and_events_are_taken_and_the_session_is_kept() {
    let mut rig = Rig::new(timing()).await;
    let mut peer = rig.peer().await.ready(&rig, "s-1").await;
    assert_eq!(peer.path, "/ws/?v=10&encoding=json");
    peer.event("INTERACTION_CREATE", json!({"id": "1", "of_2030": true})).await;
    peer.event("MESSAGE_DELETE", json!({"id": "5", "channel_id": "20"})).await;
    peer.event("TYPING_START", json!({})).await;
    rig.until("taken", |desk| {
        desk.taken.lock().unwrap().len() == 1 && desk.events.lock().unwrap().len() == 1
    })
    .await;
    assert_eq!(rig.desk.taken.lock().unwrap()[0]["id"], "1");
    rig.until("its sequence is saved", |desk| {
        desk.saved.lock().unwrap().as_ref().is_some_and(|s| s.seq == 4)
    })
    .await;
    rig.end().await;
    // (nothing says 1000 or 1001, which would end the session)
    assert!(!matches!(peer.hears(99).await, Err(Some(1000 | 1001))));
}

#[tokio::test]
async fn discord_case_66_a_session_is_taken_up_again_whatever_ended_the_connection() {
    let mut rig = Rig::new(timing()).await;
    let mut peer = rig.peer().await.ready(&rig, "s-1").await;
    peer.event("INTERACTION_CREATE", json!({"id": "1"})).await;
    // Asked to reconnect.
    peer.says(json!({"op": 7, "d": null})).await;
    let closed = peer.hears(99).await.unwrap_err();
    assert!(!matches!(closed, Some(1000 | 1001)), "{closed:?}");
    drop(peer);
    let (peer, seq) = rig.peer().await.resumed("s-1").await;
    assert_eq!((peer.path.as_str(), seq), ("/resume/?v=10&encoding=json", 2));
    // Closed with a code that may be resumed from.
    peer.close(4000).await;
    let (peer, seq) = rig.peer().await.resumed("s-1").await;
    assert_eq!(seq, 3);
    // Dropped.
    drop(peer);
    let (peer, seq) = rig.peer().await.resumed("s-1").await;
    assert_eq!(seq, 4);
    // An ordinary end from Discord's side.
    peer.close(1000).await;
    let (mut peer, _) = rig.peer().await.resumed("s-1").await;
    // A session that may still be taken up.
    peer.says(json!({"op": 9, "d": true})).await;
    drop(peer.hears(99).await);
    drop(peer);
    let (_peer, _) = rig.peer().await.resumed("s-1").await;
    rig.end().await;
}

#[tokio::test]
async fn discord_case_66_silence_is_death() {
    let mut rig = Rig::new(Timing {
        longest_beat: Duration::from_millis(100),
        hello: Duration::from_millis(400),
        ..timing()
    })
    .await;
    let peer = rig.peer().await.ready(&rig, "s-1").await;
    // Nothing comes any more, and nothing is answered.
    let (again, _) = rig.peer().await.resumed("s-1").await;
    drop((peer, again));
    rig.end().await;
}

#[tokio::test]
async fn discord_case_67_a_restart_goes_on_with_the_saved_session() {
    let mut rig = Rig::new(timing()).await;
    let mut peer = rig.peer().await.ready(&rig, "s-1").await;
    peer.event("INTERACTION_CREATE", json!({"id": "1"})).await;
    rig.until("taken", |desk| desk.taken.lock().unwrap().len() == 1).await;
    rig.end().await;
    drop(peer);
    assert_eq!(rig.desk.saved.lock().unwrap().as_ref().unwrap().seq, 2);
    rig.start();
    let (mut peer, seq) = rig.peer().await.resumed("s-1").await;
    assert_eq!((seq, peer.path.as_str()), (2, "/resume/?v=10&encoding=json"));
    // What was delivered before may come again: that it is the same is known further in.
    peer.event("INTERACTION_CREATE", json!({"id": "1"})).await;
    rig.until("handed on", |desk| desk.taken.lock().unwrap().len() == 2).await;
    rig.end().await;
}

#[tokio::test]
async fn discord_case_68_a_session_that_is_gone_is_followed_by_a_new_one_after_a_pause() {
    let new_session = Duration::from_millis(300);
    let mut rig = Rig::new(Timing { new_session, ..timing() }).await;
    let mut peer = rig.peer().await.ready(&rig, "s-1").await;
    peer.says(json!({"op": 9, "d": false})).await;
    drop(peer.hears(99).await);
    drop(peer);
    let peer = rig.peer().await.ready(&rig, "s-2").await;
    assert_eq!(peer.path, "/ws/?v=10&encoding=json", "at the API's address");
    let opens = rig.server.opens.lock().unwrap().clone();
    assert!(opens[1] - opens[0] >= new_session, "{opens:?}");
    rig.until("saved", |desk| desk.saved.lock().unwrap().as_ref().is_some_and(|s| s.id == "s-2")).await;
    rig.end().await;
}

#[tokio::test]
async fn discord_case_69_a_close_for_good_is_told_and_nothing_is_tried_again() {
    for code in [4004, 4013, 4014] {
        let mut rig = Rig::new(timing()).await;
        let mut peer = rig.peer().await;
        peer.hello().await;
        peer.hears(2).await.unwrap();
        peer.close(code).await;
        rig.until("told", |desk| !desk.troubles().is_empty()).await;
        let told = rig.desk.troubles().remove(0);
        assert!(told.contains(&code.to_string()), "{told}");
        assert!(timeout(Duration::from_millis(500), rig.peers.recv()).await.is_err(), "{code}");
        rig.end().await;
    }
}

#[tokio::test]
async fn discord_case_70_a_server_that_accepts_and_closes_makes_no_storm() {
    let first_wait = Duration::from_millis(50);
    let mut rig = Rig::new(Timing { first_wait, longest_wait: Duration::from_millis(400), ..timing() }).await;
    let began = Instant::now();
    for _ in 0..8 {
        drop(rig.peer().await);
    }
    // 50, 100, 200, 400, 400, 400, 400 ms, 20 % less at most.
    assert!(began.elapsed() >= Duration::from_millis(1500), "{:?}", began.elapsed());
    rig.until("told", |desk| !desk.troubles().is_empty()).await;
    let peer = rig.peer().await.ready(&rig, "s-1").await;
    drop(peer);
    rig.end().await;
}

#[tokio::test]
async fn discord_case_70_no_session_is_begun_when_none_is_left() {
    let mut rig = Rig::new(timing()).await;
    let peer = rig.peer().await.ready(&rig, "s-1").await;
    rig.server.answer.lock().unwrap()["session_start_limit"] = json!({"remaining": 0, "reset_after": 600});
    let mut peer = peer;
    peer.says(json!({"op": 9, "d": false})).await;
    drop(peer);
    rig.until("told", |desk| desk.troubles().iter().any(|what| what.contains("no sessions"))).await;
    assert_eq!(rig.opens(), 1);
    rig.server.answer.lock().unwrap()["session_start_limit"] = json!({"remaining": 1000});
    let _peer = rig.peer().await.ready(&rig, "s-2").await;
    rig.end().await;
}

#[tokio::test]
async fn discord_case_71_what_cannot_be_read_changes_nothing() {
    let mut rig = Rig::new(timing()).await;
    let mut peer = rig.peer().await.ready(&rig, "s-1").await;
    for frame in [
        "{broken",
        "",
        r#"{"op":0,"t":"OF_2030","d":{}}"#,
        r#"{"op":42}"#,
        r#"{"op":0,"s":9,"t":"OF_2030","d":[1]}"#,
        r#"{"t":"INTERACTION_CREATE","d":{"token":"secret"}}"#,
        // Without a sequence it is a press all the same.
        r#"{"op":0,"t":"INTERACTION_CREATE","d":{"id":"7"}}"#,
    ] {
        peer.socket.send(Message::text(frame)).await.unwrap();
    }
    rig.until("the last is taken", |desk| desk.taken.lock().unwrap().len() == 1).await;
    assert_eq!(rig.desk.kept.lock().unwrap().len(), 1, "only what may be a press is kept");
    assert_eq!(rig.opens(), 1);
    peer.event("INTERACTION_CREATE", json!({"id": "8"})).await;
    rig.until("it goes on", |desk| desk.taken.lock().unwrap().len() == 2).await;
    rig.end().await;
}

#[tokio::test]
async fn discord_case_79_ready_leads_nowhere_else() {
    let mut rig = Rig::new(timing()).await;
    let mut peer = rig.peer().await;
    peer.hello().await;
    peer.hears(2).await.unwrap();
    peer.event(
        "READY",
        json!({"session_id": "s-1", "resume_gateway_url": "wss://gateway.discord.gg", "application": {"id": OURS}}),
    )
    .await;
    drop(peer.hears(99).await);
    rig.until("told", |desk| desk.troubles().iter().any(|what| what.contains("leads elsewhere"))).await;
    assert_eq!(*rig.desk.saved.lock().unwrap(), None);
    rig.end().await;
    // Nor does the API.
    rig.server.answer.lock().unwrap()["url"] = json!("wss://gateway.discord.gg");
    rig.desk.troubles.lock().unwrap().clear();
    rig.start();
    rig.until("told", |desk| !desk.troubles().is_empty()).await;
    assert_eq!(rig.opens(), 1);
    rig.end().await;
}

#[tokio::test]
async fn the_token_of_another_application_is_told() {
    let mut rig = Rig::new(timing()).await;
    let mut peer = rig.peer().await;
    peer.hello().await;
    peer.hears(2).await.unwrap();
    let resume = format!("ws://{}/resume", rig.address);
    peer.event(
        "READY",
        json!({"session_id": "s", "resume_gateway_url": resume, "application": {"id": "99"}}),
    )
    .await;
    rig.until("told", |desk| desk.troubles().iter().any(|what| what.contains("99"))).await;
    rig.end().await;
}

#[tokio::test]
async fn who_has_lost_the_lease_stops_at_once() {
    let mut rig = Rig::new(timing()).await;
    let mut peer = rig.peer().await.ready(&rig, "s-1").await;
    rig.until("saved", |desk| desk.saved.lock().unwrap().is_some()).await;
    *rig.desk.lost.lock().unwrap() = true;
    peer.event("TYPING_START", json!({})).await;
    timeout(PATIENCE, rig.client.take().unwrap()).await.expect("it stops by itself").unwrap();
}

#[tokio::test]
async fn a_session_that_stands_ends_the_trouble() {
    let mut rig = Rig::new(Timing { steady: Duration::from_millis(100), ..timing() }).await;
    let _peer = rig.peer().await.ready(&rig, "s-1").await;
    rig.until("all is well", |desk| desk.troubles.lock().unwrap().contains(&None)).await;
    rig.end().await;
}

//! The client against a server that a test plays by hand, frame by frame.

use super::*;
use crate::cli::machine::{MachineClock, MachineIds};
use crate::net::Limits;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::routing::{any, post};
use axum::{Json, Router};
use serde_json::json;
use std::collections::HashSet;
use std::sync::Mutex;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::timeout;

const OURS: &str = "A0OURS";
const PATIENCE: Duration = Duration::from_secs(20);

/// Where deliveries go in a test.
#[derive(Default)]
struct Box_ {
    taken: Mutex<Vec<String>>,
    kept: Mutex<Vec<String>>,
    troubles: Mutex<Vec<Option<String>>>,
    /// What is taken only when the test says so.
    slow: Notify,
    app_id: Mutex<Option<String>>,
}

impl Inbox for Box_ {
    fn app_id(&self) -> Option<String> {
        self.app_id.lock().unwrap().clone()
    }

    fn take<'a>(&'a self, delivery: Delivery<'a>) -> BoxFuture<'a, Option<Acknowledged>> {
        Box::pin(async move {
            let raw = String::from_utf8(delivery.raw.to_vec()).unwrap();
            if raw.contains("slow") {
                self.slow.notified().await;
            }
            self.taken.lock().unwrap().push(raw.clone());
            match () {
                () if raw.contains("fails") => None,
                () if raw.contains("answered") => Some(Acknowledged::With(json!({ "text": "hi" }))),
                () => Some(Acknowledged::Bare),
            }
        })
    }

    fn keep<'a>(&'a self, frame: &'a [u8]) -> BoxFuture<'a, bool> {
        self.kept.lock().unwrap().push(String::from_utf8(frame.to_vec()).unwrap());
        Box::pin(std::future::ready(true))
    }

    fn trouble<'a>(&'a self, what: Option<&'a str>) -> BoxFuture<'a, ()> {
        self.troubles.lock().unwrap().push(what.map(str::to_owned));
        Box::pin(std::future::ready(()))
    }
}

impl Box_ {
    fn troubles(&self) -> Vec<String> {
        self.troubles.lock().unwrap().iter().flatten().cloned().collect()
    }
}

/// Slack's side of one socket.
struct Peer(WebSocket);

impl Peer {
    async fn says(&mut self, frame: Value) {
        self.0.send(Message::text(frame.to_string())).await.unwrap();
    }

    async fn hello(mut self) -> Self {
        self.says(json!({"type": "hello", "connection_info": {"app_id": OURS}})).await;
        self
    }

    async fn envelope(&mut self, id: &str, mark: &str) {
        let payload = json!({"type": "block_actions", "mark": mark});
        self.says(json!({"type": "interactive", "envelope_id": id, "payload": payload})).await;
    }

    /// The next thing we are told, if any comes before the socket ends.
    async fn hears(&mut self) -> Option<Value> {
        let next = async {
            while let Some(Ok(message)) = self.0.recv().await {
                match message {
                    Message::Text(text) => return Some(serde_json::from_str(&text).unwrap()),
                    Message::Close(_) => return None,
                    _ => {}
                }
            }
            None
        };
        timeout(PATIENCE, next).await.expect("nothing is heard and nothing ends")
    }

    async fn acked(&mut self) -> String {
        self.hears().await.expect("the socket ended")["envelope_id"].as_str().unwrap().to_owned()
    }
}

struct Rig {
    peers: mpsc::UnboundedReceiver<WebSocket>,
    opens: Arc<Mutex<Vec<std::time::Instant>>>,
    inbox: Arc<Box_>,
    stop: CancellationToken,
    client: JoinHandle<()>,
    server: JoinHandle<()>,
}

#[expect(clippy::disallowed_methods, reason = "a test's own tasks, ended with it")]
fn spawn(task: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
    tokio::spawn(task)
}

/// Times that nothing in a test meets by chance.
fn timing(sockets: usize) -> Timing {
    let far = Duration::from_mins(10);
    Timing { sockets, silence: far, linger: far, steady: far, ..Timing::default().faster(20) }
}

impl Rig {
    async fn new(timing: Timing) -> Self {
        crate::net::init();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (tell, peers) = mpsc::unbounded_channel();
        let opens = Arc::new(Mutex::new(vec![]));
        let seen = Arc::clone(&opens);
        let link = move |upgrade: WebSocketUpgrade| {
            let tell = tell.clone();
            async move { upgrade.on_upgrade(async move |socket| drop(tell.send(socket))) }
        };
        let open = async move || {
            seen.lock().unwrap().push(std::time::Instant::now());
            Json(json!({"ok": true, "url": format!("ws://{address}/link?ticket=x")}))
        };
        let router = Router::new().route("/api/apps.connections.open", post(open)).route("/link", any(link));
        let server = spawn(async move { axum::serve(listener, router).await.unwrap() });
        let inbox = Arc::new(Box_::default());
        *inbox.app_id.lock().unwrap() = Some(OURS.into());
        let (clock, ids) = (Arc::new(MachineClock), Arc::new(MachineIds::default()));
        let mode = SocketMode::new(
            SocketSettings {
                name: "acme".into(),
                app_token: "xapp-1".into(),
                api_url: format!("http://{address}/api"),
            },
            crate::net::client(Limits::default()).unwrap(),
            Pace::new(clock, ids.clone(), 1e6),
            ids,
            inbox.clone(),
            timing,
        );
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let client = spawn(async move { mode.run(&stopped).await });
        Self { peers, opens, inbox, stop, client, server }
    }

    async fn peer(&mut self) -> Peer {
        Peer(timeout(PATIENCE, self.peers.recv()).await.expect("a socket is opened").unwrap())
    }

    fn opens(&self) -> usize {
        self.opens.lock().unwrap().len()
    }

    async fn until(&self, what: &str, mut holds: impl FnMut(&Box_) -> bool) {
        let end = Instant::now() + PATIENCE;
        while !holds(&self.inbox) {
            assert!(Instant::now() < end, "never: {what}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn end(self) {
        self.stop.cancel();
        timeout(PATIENCE, self.client).await.expect("it stops").unwrap();
        self.server.abort();
    }
}

#[tokio::test]
async fn slack_case_15_a_slow_envelope_holds_up_no_other() {
    let mut rig = Rig::new(timing(1)).await;
    let mut peer = rig.peer().await.hello().await;
    peer.envelope("e-1", "slow").await;
    peer.envelope("e-2", "quick").await;
    assert_eq!(peer.acked().await, "e-2");
    rig.inbox.slow.notify_one();
    assert_eq!(peer.acked().await, "e-1", "the slow one too, when it is done");
    rig.end().await;
}

#[tokio::test]
async fn slack_case_7_what_is_not_taken_is_not_acknowledged() {
    let mut rig = Rig::new(timing(1)).await;
    let mut peer = rig.peer().await.hello().await;
    peer.envelope("e-1", "fails").await;
    peer.envelope("e-2", "well").await;
    assert_eq!(peer.acked().await, "e-2");
    assert_eq!(rig.inbox.taken.lock().unwrap().len(), 2);
    rig.end().await;
}

#[tokio::test]
async fn an_answer_goes_along_where_slack_takes_one() {
    let mut rig = Rig::new(timing(1)).await;
    let mut peer = rig.peer().await.hello().await;
    let command = |accepts: Option<bool>| {
        let mut frame =
            json!({"type": "slash_commands", "envelope_id": "e", "payload": {"command": "/answered"}});
        if let Some(accepts) = accepts {
            frame["accepts_response_payload"] = accepts.into();
        }
        frame
    };
    for accepts in [Some(true), None] {
        peer.says(command(accepts)).await;
        assert_eq!(peer.hears().await, Some(json!({"envelope_id": "e", "payload": {"text": "hi"}})));
    }
    peer.says(command(Some(false))).await;
    assert_eq!(peer.hears().await, Some(json!({"envelope_id": "e"})));
    rig.end().await;
}

#[tokio::test]
async fn slack_case_14_what_cannot_be_read_is_kept_and_only_safe_types_are_acknowledged() {
    let mut rig = Rig::new(timing(1)).await;
    let mut peer = rig.peer().await;
    peer.says(json!({"type": "hello"})).await;
    let frames = [
        "no json".to_owned(),
        json!({"envelope_id": "e-1", "payload": {}}).to_string(),
        json!({"type": "interactive", "envelope_id": "e-2", "payload": "x"}).to_string(),
        json!({"type": "slash_commands", "envelope_id": "e-3", "payload": []}).to_string(),
        json!({"type": "events_api", "envelope_id": "e-4", "payload": 5}).to_string(),
    ];
    for frame in &frames {
        peer.0.send(Message::text(frame.clone())).await.unwrap();
    }
    assert_eq!(peer.acked().await, "e-4");
    peer.0.send(Message::binary(vec![0, 255])).await.unwrap();
    peer.says(json!({"type": "of_2030"})).await;
    peer.says(json!({"type": "of_2030", "envelope_id": "e-5"})).await;
    assert_eq!(peer.acked().await, "e-5");
    let kept: HashSet<_> = rig.inbox.kept.lock().unwrap().iter().cloned().collect();
    assert_eq!(kept, frames.into_iter().collect());
    assert!(rig.inbox.taken.lock().unwrap().is_empty());
    rig.end().await;
}

#[tokio::test]
async fn slack_case_11_the_old_socket_works_until_the_new_one_is_ready_and_after() {
    let mut rig = Rig::new(Timing { linger: Duration::from_secs(2), ..timing(1) }).await;
    let mut old = rig.peer().await.hello().await;
    old.says(json!({"type": "disconnect", "reason": "refresh_requested"})).await;
    // It is opened, and says nothing yet.
    let new = rig.peer().await;
    old.envelope("e-1", "between").await;
    assert_eq!(old.acked().await, "e-1");
    let mut new = new.hello().await;
    old.envelope("e-2", "after").await;
    assert_eq!(old.acked().await, "e-2", "acknowledged on the socket it came on");
    new.envelope("e-3", "new").await;
    assert_eq!(new.acked().await, "e-3");
    assert_eq!(old.hears().await, None, "left when its time is up");
    assert_eq!(rig.opens(), 2);
    rig.end().await;
}

#[tokio::test]
async fn slack_case_13_a_silent_socket_is_replaced_before_it_is_dropped() {
    let silence = Duration::from_millis(300);
    let mut rig = Rig::new(Timing { silence, ping: Duration::from_millis(100), ..timing(1) }).await;
    let mut alive = rig.peer().await.hello().await;
    // Its pings are answered as long as it is read.
    let _ = timeout(silence * 3, alive.0.recv()).await;
    assert!(timeout(silence * 3, alive.0.recv()).await.is_ok_and(|frame| frame.is_some()));
    assert_eq!(rig.opens(), 1, "a socket that answers pings is not replaced");
    // Nobody reads it any more: no pong comes.
    let new = rig.peer().await;
    alive.envelope("e-1", "late").await;
    rig.until("it is still read", |inbox| inbox.taken.lock().unwrap().len() == 1).await;
    let mut new = new.hello().await;
    let ends = async { while let Some(Ok(_)) = alive.0.recv().await {} };
    timeout(PATIENCE, ends).await.expect("the silent one is dropped");
    new.envelope("e-2", "again").await;
    assert_eq!(new.acked().await, "e-2");
    rig.end().await;
}

#[tokio::test]
async fn slack_case_12_sockets_that_close_at_once_make_no_storm() {
    let between_opens = Duration::from_millis(200);
    let mut rig = Rig::new(Timing { between_opens, ..timing(2) }).await;
    for _ in 0..10 {
        drop(rig.peer().await.hello().await);
    }
    let (mut one, mut two) = (rig.peer().await.hello().await, rig.peer().await.hello().await);
    let opens = rig.opens.lock().unwrap().clone();
    assert_eq!(opens.len(), 12);
    for pair in opens.windows(2) {
        // The server's clock looks a little later than the client's.
        assert!(pair[1] - pair[0] > between_opens / 2, "{opens:?}");
    }
    assert!(opens[11] - opens[0] > between_opens * 10);
    let troubles = rig.inbox.troubles();
    assert_eq!(troubles.len(), 1, "told once: {troubles:?}");
    one.envelope("e-1", "x").await;
    assert_eq!(one.acked().await, "e-1");
    two.envelope("e-2", "x").await;
    assert_eq!(two.acked().await, "e-2");
    rig.end().await;
}

#[tokio::test]
async fn slack_case_12_a_socket_that_lives_ends_the_trouble() {
    let mut rig = Rig::new(Timing { steady: Duration::from_millis(100), ..timing(1) }).await;
    let _peer = rig.peer().await.hello().await;
    rig.until("all is well", |inbox| inbox.troubles.lock().unwrap().contains(&None)).await;
    rig.end().await;
}

#[tokio::test]
async fn slack_case_12_socket_mode_switched_off_is_told_and_seldom_tried() {
    let refused = Duration::from_millis(1500);
    let mut rig = Rig::new(Timing { refused, ..timing(1) }).await;
    let mut peer = rig.peer().await.hello().await;
    peer.says(json!({"type": "disconnect", "reason": "link_disabled"})).await;
    assert_eq!(peer.hears().await, None, "it is left");
    let mut next = rig.peer().await;
    let opens = rig.opens.lock().unwrap().clone();
    assert!(opens[1] - opens[0] > refused / 2, "{opens:?}");
    // The same in place of `hello`.
    next.says(json!({"type": "disconnect", "reason": "link_disabled"})).await;
    rig.until("told", |inbox| inbox.troubles().len() == 2).await;
    assert!(rig.inbox.troubles().iter().all(|what| what.contains("switched Socket Mode off")));
    rig.end().await;
}

#[tokio::test]
async fn slack_case_12_too_many_sockets_become_fewer() {
    let crowded = Duration::from_millis(300);
    let mut rig = Rig::new(Timing { crowded, ..timing(2) }).await;
    let mut one = rig.peer().await.hello().await;
    let mut two = rig.peer().await;
    two.says(json!({"type": "disconnect", "reason": "too_many_websockets"})).await;
    drop(two);
    one.envelope("e-1", "x").await;
    assert_eq!(one.acked().await, "e-1");
    assert!(timeout(crowded * 3, rig.peers.recv()).await.is_err(), "one is enough now");
    // The one that is left is replaced when it has to be.
    drop(one);
    let mut again = rig.peer().await.hello().await;
    again.envelope("e-2", "x").await;
    assert_eq!(again.acked().await, "e-2");
    rig.end().await;
}

#[tokio::test]
async fn slack_case_59_a_socket_of_another_app_is_closed_and_told() {
    let mut rig = Rig::new(timing(2)).await;
    let mut peer = rig.peer().await;
    peer.says(json!({"type": "hello", "connection_info": {"app_id": "A0THEIRS"}})).await;
    assert_eq!(peer.hears().await, None);
    rig.until("told", |inbox| !inbox.troubles().is_empty()).await;
    let told = rig.inbox.troubles().remove(0);
    assert!(told.contains("A0THEIRS") && told.contains(OURS), "{told}");
    assert_eq!(rig.opens(), 1, "the second waits too");
    rig.end().await;
}

#[tokio::test]
async fn slack_case_59_an_app_that_becomes_known_later_counts_as_well() {
    let mut rig = Rig::new(Timing { ping: Duration::from_millis(50), ..timing(1) }).await;
    *rig.inbox.app_id.lock().unwrap() = None;
    let mut peer = rig.peer().await.hello().await;
    peer.envelope("e-1", "x").await;
    assert_eq!(peer.acked().await, "e-1");
    *rig.inbox.app_id.lock().unwrap() = Some("A0OTHER".into());
    assert_eq!(peer.hears().await, None);
    rig.until("told", |inbox| inbox.troubles().len() == 1).await;
    rig.end().await;
}

#[tokio::test]
async fn stopping_acknowledges_what_was_taken_and_reads_no_more() {
    let mut rig = Rig::new(timing(1)).await;
    let mut peer = rig.peer().await.hello().await;
    peer.envelope("e-1", "slow").await;
    peer.envelope("e-2", "x").await;
    assert_eq!(peer.acked().await, "e-2");
    rig.stop.cancel();
    rig.inbox.slow.notify_one();
    assert_eq!(peer.acked().await, "e-1");
    assert_eq!(peer.hears().await, None);
    rig.end().await;
}

#[tokio::test]
async fn slack_that_cannot_be_reached_is_tried_again_and_told() {
    let rig = Rig::new(timing(1)).await;
    rig.server.abort();
    drop(rig.peers);
    let end = Instant::now() + PATIENCE;
    while rig.inbox.troubles().is_empty() {
        assert!(Instant::now() < end);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    rig.stop.cancel();
    timeout(PATIENCE, rig.client).await.expect("it stops").unwrap();
}

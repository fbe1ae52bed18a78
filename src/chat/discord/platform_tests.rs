//! The whole platform against answers written byte by byte, also what no strict stand-in would say.

#[path = "platform_tests/places.rs"]
mod places;

use super::super::render::tests::{marks, open_approval};
use super::super::tell::Responded;
use super::*;
use crate::domain::card::Status;
use crate::domain::interaction::Outcome;
use crate::domain::policy::{Standing, Unfit};
use crate::domain::view::{Content, Page};
use serde_json::json;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicI64, AtomicU8, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use uuid::Uuid;

const TOKEN: &str = "bot-secret";
const APP: &str = "1100000000000000001";
const BOT: &str = "1100000000000000002";
const GUILD: &str = "1100000000000000009";
const CHANNEL: &str = "4400000000000000004";
const MESSAGE: &str = "5500000000000000005";
const MARA: &str = "3300000000000000003";

#[derive(Debug, Default)]
struct Machine {
    ms: AtomicI64,
    byte: AtomicU8,
}

impl Clock for Machine {
    fn now(&self) -> Millis {
        Millis(1_796_000_000_000 + self.ms.load(Ordering::Relaxed))
    }
}

impl Ids for Machine {
    fn uuid(&self) -> Uuid {
        Uuid::from_u128(u128::from(self.byte.fetch_add(1, Ordering::Relaxed)))
    }
    fn random(&self) -> [u8; 16] {
        [0; 16]
    }
}

impl Machine {
    fn ahead(&self, time: Duration) {
        self.ms.fetch_add(i64::try_from(time.as_millis()).unwrap(), Ordering::Relaxed);
    }
}

/// What is answered to one request.
#[derive(Debug, Clone)]
enum Reply {
    Http {
        status: u16,
        headers: Vec<(&'static str, String)>,
        body: String,
    },
    /// Taken, and never answered: the connection breaks.
    Reset,
    /// Never answered.
    Silence,
}

fn reply(status: u16, body: impl Into<Value>) -> Reply {
    Reply::Http {
        status,
        headers: vec![("content-type", "application/json".into())],
        body: body.into().to_string(),
    }
}

fn error(status: u16, code: i64) -> Reply {
    reply(status, json!({"code": code, "message": "text that is nobody's business"}))
}

fn with(reply: Reply, more: &[(&'static str, &str)]) -> Reply {
    let Reply::Http { status, mut headers, body } = reply else { return reply };
    headers.extend(more.iter().map(|(name, value)| (*name, (*value).to_owned())));
    Reply::Http { status, headers, body }
}

fn html(status: u16) -> Reply {
    Reply::Http {
        status,
        headers: vec![("content-type", "text/html".into())],
        body: "<html>blocked</html>".into(),
    }
}

/// One request as it came.
#[derive(Debug, Clone)]
struct Request {
    /// `POST /api/v10/…`
    line: String,
    head: String,
    body: String,
}

impl Request {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    fn header(&self, name: &str) -> Option<String> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(": ")?;
            key.eq_ignore_ascii_case(name).then(|| value.to_owned())
        })
    }
}

struct Bed {
    discord: Discord,
    machine: Arc<Machine>,
    script: Mutex<VecDeque<Reply>>,
    requests: Mutex<Vec<Request>>,
}

impl Bed {
    fn then(&self, replies: impl IntoIterator<Item = Reply>) {
        self.script.lock().unwrap().extend(replies);
    }

    /// The requests since the last time.
    fn taken(&self) -> Vec<Request> {
        assert!(self.script.lock().unwrap().is_empty(), "not every answer was asked for");
        std::mem::take(&mut self.requests.lock().unwrap())
    }

    fn lines(&self) -> Vec<String> {
        self.taken().into_iter().map(|request| request.line.replace("/api/v10", "")).collect()
    }

    async fn serve(&self, mut socket: TcpStream) {
        let request = read(&mut socket).await;
        self.requests.lock().unwrap().push(request);
        let next = self.script.lock().unwrap().pop_front();
        match next
            .unwrap_or_else(|| panic!("nothing was to be asked: {:?}", self.requests.lock().unwrap().last()))
        {
            Reply::Http { status, headers, body } => {
                let mut head = format!("HTTP/1.1 {status} X\r\nconnection: close\r\n");
                for (name, value) in headers {
                    head += &[name, ": ", &value, "\r\n"].concat();
                }
                if status != 204 {
                    head += &["content-length: ", &body.len().to_string(), "\r\n"].concat();
                }
                socket.write_all(format!("{head}\r\n{body}").as_bytes()).await.unwrap();
                let _ = socket.shutdown().await;
            }
            Reply::Reset => drop(socket),
            Reply::Silence => std::future::pending().await,
        }
    }

    async fn post(&self) -> Result<MessageRef, ChatError> {
        let drawn = self.drawn();
        self.discord.post(&channel(), &drawn, marks().card, 3).await
    }

    fn drawn(&self) -> Drawn {
        self.discord.draw(&open_approval(), &marks())
    }
}

fn channel() -> Destination {
    Destination { channel: CHANNEL.into(), thread: None }
}

fn at() -> MessageRef {
    MessageRef { channel: CHANNEL.into(), message: MESSAGE.into() }
}

async fn read(socket: &mut TcpStream) -> Request {
    let mut bytes = vec![];
    loop {
        let mut chunk = [0; 8192];
        let read = socket.read(&mut chunk).await.unwrap();
        bytes.extend_from_slice(&chunk[..read]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
            if read == 0 || body.len() >= length.unwrap_or(0) {
                let line = head.lines().next().unwrap_or_default().trim_end_matches(" HTTP/1.1").to_owned();
                return Request { line, head: head.to_owned(), body: body.to_owned() };
            }
        }
        assert!(read > 0, "the request broke off: {text}");
    }
}

/// Serves a script, and runs a test with the platform.
async fn bed(test: impl AsyncFnOnce(&Bed)) {
    bed_with(Some(GUILD), None, test).await;
}

async fn bed_with(guild: Option<&str>, public_key: Option<&str>, test: impl AsyncFnOnce(&Bed)) {
    crate::net::init();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let limits = crate::net::Limits { connect: Duration::from_secs(1), total: Duration::from_millis(700) };
    let machine = Arc::new(Machine::default());
    let discord = Discord::new(
        DiscordSettings {
            name: "guild".into(),
            application_id: APP.into(),
            bot_token: TOKEN.into(),
            guild_id: guild.map(str::to_owned),
            api_url: format!("http://{}/api/v10", listener.local_addr().unwrap()),
            public_key: public_key.map(str::to_owned),
        },
        crate::net::client(limits).unwrap(),
        machine.clone(),
        machine.clone(),
        Arc::new(Templates::load("en", None).unwrap()),
        1000.0,
    );
    let bed = Bed { discord, machine, script: Mutex::default(), requests: Mutex::default() };
    let serve = async {
        let mut open = futures_util::stream::FuturesUnordered::new();
        loop {
            tokio::select! {
                accepted = listener.accept() => open.push(bed.serve(accepted.unwrap().0)),
                Some(()) = futures_util::StreamExt::next(&mut open), if !open.is_empty() => {}
            }
        }
    };
    tokio::select! {
        () = serve => {}
        () = test(&bed) => {}
    }
}

/// The answer to a post: what was sent, as a message.
fn posted(body: &Value) -> Reply {
    let mut message = body.clone();
    message["id"] = json!(MESSAGE);
    message["channel_id"] = json!(CHANNEL);
    reply(200, message)
}

#[tokio::test]
async fn discord_case_1_a_post_has_its_nonce_and_pings_nobody() {
    bed(async |bed| {
        bed.then([posted(&bed.drawn().body)]);
        assert_eq!(bed.post().await.unwrap(), at());
        let [request] = bed.taken().try_into().unwrap();
        assert_eq!(request.line, format!("POST /api/v10/channels/{CHANNEL}/messages"));
        assert_eq!(request.header("authorization").unwrap(), format!("Bot {TOKEN}"));
        assert!(request.header("user-agent").unwrap().starts_with("DiscordBot ("));
        assert_eq!(request.header("content-type").unwrap(), "application/json");
        let body = request.json();
        assert_eq!(body["allowed_mentions"], json!({"parse": []}));
        assert_eq!(
            (body["enforce_nonce"].as_bool(), body["nonce"].as_str().unwrap().len()),
            (Some(true), 25)
        );
    })
    .await;
}

/// Cases 2 and 3: whatever became of the first try, the second is the same, and its answer the first message.
#[tokio::test]
async fn discord_case_2_and_3_a_post_of_unknown_outcome_is_made_again_the_same() {
    bed(async |bed| {
        for first in [
            Reply::Reset,
            Reply::Silence,
            error(500, 0),
            error(503, 130_000),
            Reply::Http { status: 200, headers: vec![], body: "{\"id\": \"55".into() },
            reply(200, json!({"odd": [1]})),
        ] {
            bed.then([first.clone()]);
            let error = bed.post().await.unwrap_err();
            assert!(matches!(error, ChatError::Unknown { .. }), "{first:?}: {error}");
            bed.then([posted(&bed.drawn().body)]);
            assert_eq!(bed.post().await.unwrap(), at());
            let [first, second] = bed.taken().try_into().unwrap();
            assert_eq!(first.body, second.body);
        }
    })
    .await;
}

#[tokio::test]
async fn an_older_drawing_that_stands_there_is_brought_up_to_date() {
    bed(async |bed| {
        let mut older = bed.drawn().body;
        older["components"][0]["components"][0]["custom_id"] = json!("c1.k_older.do");
        bed.then([posted(&older), posted(&bed.drawn().body)]);
        assert_eq!(bed.post().await.unwrap(), at());
        let [_, edit] = bed.taken().try_into().unwrap();
        assert_eq!(edit.line, format!("PATCH /api/v10/channels/{CHANNEL}/messages/{MESSAGE}"));
    })
    .await;
}

#[tokio::test]
async fn discord_case_5_a_post_is_found_in_the_history() {
    bed(async |bed| {
        bed.then([posted(&bed.drawn().body)]);
        bed.post().await.unwrap();
        let [request] = bed.taken().try_into().unwrap();
        let mut ours = request.json();
        ours["id"] = json!(MESSAGE);
        ours["author"] = json!({"id": BOT});
        let mut forged = ours.clone();
        forged["author"] = json!({"id": MARA});
        forged["id"] = json!("5500000000000000004");
        bed.then([reply(200, json!({"id": BOT})), reply(200, json!([forged, ours]))]);
        let since = Millis(1_796_000_000_000);
        assert_eq!(bed.discord.find(&channel(), marks().card, since).await.unwrap(), [at()]);
        let lines = bed.lines();
        assert!(
            lines[1].starts_with(&format!("GET /channels/{CHANNEL}/messages?limit=100&after=")),
            "{lines:?}"
        );
        bed.then([error(403, 50_001)]);
        let unreadable = bed.discord.find(&channel(), marks().card, since).await;
        assert!(matches!(unreadable, Err(ChatError::Unreadable { .. })), "{unreadable:?}");
    })
    .await;
}

#[tokio::test]
async fn discord_case_6_and_48_and_49_what_an_error_means() {
    bed(async |bed| {
        let sorted = async |edit: bool, reply: Reply| -> String {
            bed.then([reply]);
            let error = if edit {
                bed.discord.edit(&at(), &bed.drawn()).await.unwrap_err()
            } else {
                bed.post().await.unwrap_err()
            };
            bed.taken();
            let shown = format!("{error:?}");
            assert!(!shown.contains("business") && !shown.contains(TOKEN), "{shown}");
            shown.split([' ', '{']).next().unwrap().to_owned()
        };
        for (edit, reply, meant) in [
            (false, error(404, 10_008), "Gone"),
            (false, error(404, 10_003), "Place"),
            (false, error(403, 50_013), "Place"),
            (false, error(400, 50_008), "Place"),
            (false, error(403, 50_007), "Place"),
            (false, error(400, 160_005), "Thread"),
            (false, error(401, 0), "Auth"),
            (false, error(403, 40_002), "Auth"),
            (false, error(400, 50_109), "Permanent"),
            (false, error(403, 99_999), "Permanent"),
            (true, error(404, 10_008), "Gone"),
            (true, error(404, 10_003), "Gone"),
            (true, error(403, 50_001), "Place"),
            (true, error(403, 50_005), "Gone"),
            (true, Reply::Silence, "Unknown"),
            (true, error(502, 0), "Unknown"),
        ] {
            assert_eq!(sorted(edit, reply.clone()).await, meant, "{reply:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn discord_case_7_a_refused_drawing_is_followed_by_a_plainer_one_once() {
    let form_error = || {
        reply(
            400,
            json!({"code": 50035, "message": "Invalid Form Body", "errors": {"components": {"0": {"components":
            {"0": {"label": {"_errors": [{"code": "BASE_TYPE_BAD_LENGTH", "message": "x"}]}}}}}}}),
        )
    };
    bed(async |bed| {
        bed.then([form_error()]);
        assert!(matches!(bed.post().await, Err(ChatError::Paced { .. })));
        bed.then([form_error()]);
        let error = bed.post().await.unwrap_err();
        let ChatError::Payload { pointer, .. } = &error else { panic!("{error}") };
        assert_eq!(pointer, "components.0.components.0.label BASE_TYPE_BAD_LENGTH");
        let [full, plain] = bed.taken().try_into().unwrap();
        assert!(
            full.json()["embeds"][0]["fields"].is_array()
                && plain.json()["embeds"][0].get("fields").is_none()
        );
        // And never again.
        assert!(matches!(bed.post().await, Err(ChatError::Payload { .. })));
        assert!(bed.taken().is_empty());
    })
    .await;
}

#[tokio::test]
async fn what_is_held_back_for_its_words_goes_without_them_and_without_controls() {
    bed(async |bed| {
        bed.then([error(400, 200_000)]);
        assert!(matches!(bed.post().await, Err(ChatError::Paced { .. })));
        bed.then([reply(200, json!({"id": MESSAGE, "components": []}))]);
        bed.post().await.unwrap();
        let [_, withheld] = bed.taken().try_into().unwrap();
        assert!(
            !withheld.body.contains("close") && withheld.json()["components"] == json!([]),
            "{withheld:?}"
        );
        bed.then([error(400, 200_000)]);
        assert!(matches!(bed.post().await, Err(ChatError::Place { .. })));
    })
    .await;
}

#[tokio::test]
async fn an_edit_pings_nobody_and_keeps_nothing_of_before() {
    bed(async |bed| {
        let mut card = open_approval();
        card.mention.users = vec![MARA.into()];
        let drawn = bed.discord.draw(&card, &marks());
        assert_eq!(drawn.body["allowed_mentions"]["users"], json!([MARA]));
        bed.then([posted(&drawn.body)]);
        bed.discord.edit(&at(), &drawn).await.unwrap();
        let [edit] = bed.taken().try_into().unwrap();
        assert_eq!(edit.json()["allowed_mentions"], json!({"parse": []}));
        card.status = Status::Ended {
            outcome: Outcome::Approved,
            rejected: false,
            by: None,
            voters: vec![],
            elsewhere_by: None,
            elsewhere_what: None,
            at: Millis(0),
            reason: None,
        };
        card.controls = vec![];
        let last = bed.discord.draw(&card, &marks());
        bed.then([posted(&last.body)]);
        bed.discord.edit(&at(), &last).await.unwrap();
        let [edit] = bed.taken().try_into().unwrap();
        assert_eq!(edit.json()["components"], json!([]), "the buttons go");
        assert!(edit.json().get("attachments").is_none() && edit.json().get("nonce").is_none());
    })
    .await;
}

#[tokio::test]
async fn discord_case_50_an_archived_thread_is_opened_once() {
    bed(async |bed| {
        let edit = async || bed.discord.edit(&at(), &bed.drawn()).await;
        bed.then([error(400, 50_083), reply(200, json!({"id": CHANNEL})), posted(&bed.drawn().body)]);
        edit().await.unwrap();
        let lines = bed.lines();
        assert_eq!(lines[1], format!("PATCH /channels/{CHANNEL}"));
        assert_eq!(lines[0], lines[2]);
        bed.then([error(400, 50_083), error(403, 50_013)]);
        assert!(matches!(edit().await, Err(ChatError::Permanent { .. })));
        bed.then([error(400, 50_083), reply(200, json!({})), error(400, 50_083)]);
        assert!(matches!(edit().await, Err(ChatError::Permanent { .. })));
        assert_eq!(bed.lines().len(), 5);
    })
    .await;
}

#[tokio::test]
async fn discord_case_51_an_old_message_rests_longer_each_time() {
    bed(async |bed| {
        let edit = async || match bed.discord.edit(&at(), &bed.drawn()).await {
            Err(ChatError::Paced { after }) => after,
            other => panic!("{other:?}"),
        };
        let too_often = || with(error(429, 30_046), &[("x-ratelimit-remaining", "3"), ("retry-after", "2")]);
        bed.then([too_often(), too_often(), too_often()]);
        assert_eq!(edit().await, Duration::from_mins(1));
        assert_eq!(edit().await, Duration::from_mins(10));
        assert_eq!(edit().await, Duration::from_mins(10));
        bed.then([posted(&bed.drawn().body)]);
        bed.discord.edit(&at(), &bed.drawn()).await.unwrap();
        bed.then([too_often()]);
        assert_eq!(edit().await, Duration::from_mins(1), "it had worked in between");
    })
    .await;
}

#[tokio::test]
async fn discord_case_53_and_54_and_55_limits_come_back_as_waits() {
    bed(async |bed| {
        let wait = async || match bed.post().await {
            Err(ChatError::Paced { after }) => after,
            other => panic!("{other:?}"),
        };
        let limited = reply(429, json!({"message": "slow down", "retry_after": 0.3, "global": false}));
        bed.then([with(limited, &[("retry-after", "1")])]);
        assert_eq!(wait().await, Duration::from_secs(1));
        assert_eq!(wait().await, Duration::from_secs(1), "nothing is sent meanwhile");
        assert_eq!(bed.lines().len(), 1);
        bed.machine.ahead(Duration::from_secs(1));
        bed.then([posted(&bed.drawn().body)]);
        bed.post().await.unwrap();
        // A proxy's page, and one that only looks like Discord.
        for blocked in [html(429), html(403), reply(429, json!({"code": 0})), error(403, 40_333)] {
            bed.machine.ahead(Duration::from_mins(30));
            bed.then([blocked]);
            assert!(wait().await >= Duration::from_secs(5));
            assert!(
                bed.discord
                    .troubles()
                    .iter()
                    .any(|trouble| trouble.key == "limits:guild" && trouble.text.is_some())
            );
            bed.then([Reply::Http { status: 204, headers: vec![], body: String::new() }]);
            let answered = bed.discord.respond("1", "t", &json!({"type": 6})).await;
            assert_eq!(answered, Responded::Yes, "presses are answered all the same");
            bed.machine.ahead(Duration::from_mins(30));
            bed.then([posted(&bed.drawn().body)]);
            bed.post().await.unwrap();
        }
        assert!(bed.discord.troubles().iter().all(|trouble| trouble.text.is_none()));
    })
    .await;
}

#[tokio::test]
async fn discord_case_33_and_34_and_36_the_first_response() {
    bed(async |bed| {
        for (reply, expected) in [
            (Reply::Http { status: 204, headers: vec![], body: String::new() }, Responded::Yes),
            (error(400, 40_060), Responded::Yes),
            (error(404, 10_062), Responded::TooLate),
            (error(401, 50_027), Responded::TooLate),
            (error(400, 50_035), Responded::Refused),
            (error(500, 0), Responded::Unknown),
            (Reply::Silence, Responded::Unknown),
        ] {
            bed.then([reply.clone()]);
            let responded = bed.discord.respond("5500000000000000005", "tok", &json!({"type": 6})).await;
            assert_eq!(responded, expected, "{reply:?}");
            let [request] = bed.taken().try_into().unwrap();
            assert_eq!(request.line, "POST /api/v10/interactions/5500000000000000005/tok/callback");
            assert_eq!(request.header("authorization"), None, "no credentials of the bot");
        }
        assert!(bed.discord.troubles().iter().all(|trouble| trouble.text.is_none()));
    })
    .await;
}

#[tokio::test]
async fn discord_case_35_a_dead_token_leads_to_a_direct_message_and_is_not_used_again() {
    bed(async |bed| {
        let to = Person {
            user: MARA.into(),
            channel: None,
            thread: None,
            reply: Some(SecretString::from("tok")),
            awaited: false,
        };
        bed.then([reply(200, json!({"id": MESSAGE}))]);
        bed.discord.tell(&to, &Notice::SelfApproval).await.unwrap();
        let [told] = bed.taken().try_into().unwrap();
        assert_eq!(told.line, format!("POST /api/v10/webhooks/{APP}/tok"));
        assert_eq!((told.json()["flags"].as_u64(), told.header("authorization")), (Some(64), None));
        for over in [error(401, 50_027), error(404, 10_015)] {
            let to = Person { reply: Some(SecretString::from(format!("tok{over:?}"))), ..to.clone() };
            let dm = || reply(200, json!({"id": "6600000000000000006", "type": 1}));
            bed.then([
                over,
                dm(),
                reply(200, json!({"id": MESSAGE})),
                dm(),
                reply(200, json!({"id": MESSAGE})),
            ]);
            bed.discord.tell(&to, &Notice::SelfApproval).await.unwrap();
            bed.discord.tell(&to, &Notice::SelfApproval).await.unwrap();
            let requests = bed.taken();
            let direct = requests[2].json();
            assert!(direct.get("flags").is_none() && direct["enforce_nonce"] == true, "{direct}");
            assert_eq!(requests[3].line, "POST /api/v10/users/@me/channels", "the token is not tried again");
        }
    })
    .await;
}

#[tokio::test]
async fn discord_case_74_closed_direct_messages_are_left_alone_for_a_day() {
    bed(async |bed| {
        let to = Person { user: MARA.into(), channel: None, thread: None, reply: None, awaited: false };
        let dm = || reply(200, json!({"id": CHANNEL, "type": 1}));
        for code in [50_007, 50_278] {
            bed.then([dm(), error(403, code)]);
            assert!(matches!(bed.discord.tell(&to, &Notice::Paused).await, Err(ChatError::Place { .. })));
            assert!(matches!(bed.discord.tell(&to, &Notice::Paused).await, Err(ChatError::Place { .. })));
            let look = bed.discord.look(CHANNEL, &code.to_string()).await;
            assert!(matches!(look, Err(ChatError::Place { .. })), "{look:?}");
            assert_eq!(bed.lines().len(), 2, "nothing more is sent");
            bed.machine.ahead(Duration::from_hours(24));
        }
        bed.then([reply(200, json!({"id": CHANNEL, "type": 1}))]);
        assert_eq!(bed.discord.look(CHANNEL, "50007").await.unwrap(), Look::Unsure);
        // The same of a card.
        bed.then([error(403, 50_007)]);
        assert!(matches!(bed.post().await, Err(ChatError::Place { .. })));
        assert!(bed.discord.look(CHANNEL, "50007").await.is_err());
    })
    .await;
}

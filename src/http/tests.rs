//! Every door, opened as `run` opens it: a real database, the real platform and connector (which are
//! not called), a clock moved by hand.

mod any_tests;
mod api_tests;
mod ops_tests;
mod slack_tests;

use super::*;
use crate::cli::machine::MachineIds;
use crate::cli::service::{Machine, Service};
use crate::config::Config;
use crate::domain::clock::Clock;
use crate::net::Limits;
use crate::store::{Store, StoreOptions};
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Method, Request, StatusCode};
use secrecy::SecretString;
use serde_json::Value;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use tempfile::TempDir;
use tower::ServiceExt;

const START: i64 = 1_796_000_000;
const OPERATOR: &str = "operator-token-of-the-tests";
const SECRET: &str = "countersign-test-secret";
const OLD_SECRET: &str = "the-secret-before";
const APP: &str = "A0COUNTER";

#[derive(Debug)]
struct Hand(AtomicI64);

impl Clock for Hand {
    fn now(&self) -> Millis {
        Millis(self.0.load(Ordering::SeqCst))
    }
}

/// The doors of one process.
struct Doors {
    http: Arc<Http>,
    public: Router,
    hand: Arc<Hand>,
    folder: TempDir,
}

/// An answer, read to its end.
#[derive(Debug)]
struct Got {
    status: StatusCode,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl Got {
    fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }

    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

const CONFIG: &str = r#"
[server]
public_url = "http://127.0.0.1:1"
[signing]
key_file = "{folder}/countersign.key"
[database]
url = "sqlite://{folder}/t.db"
[[runtime]]
name = "prod"
kind = "a2a"
endpoint = "http://127.0.0.1:1/a2a"
token = { env = "WATCH" }
agent = "release"
answer_with = "jwt"
issuer = "https://countersign.test"
audience = "prod-agents"
[[slack]]
name = "acme"
bot_token = { env = "BOT" }
signing_secret = { env = "SECRET" }
api_url = "http://127.0.0.1:1/slack/api"
[[slack]]
name = "beta"
bot_token = { env = "BOT" }
signing_secret = { env = "SECRET" }
api_url = "http://127.0.0.1:1/slack/api"
[[group]]
name = "release"
subjects = ["dana@example.com"]
[[route]]
when = { runtime = "prod" }
to = ["slack:acme:C0OPS"]
approvers = ["release"]
"#;

fn env(name: &str) -> Option<String> {
    Some(match name {
        "WATCH" => "watch-everything".into(),
        "BOT" => "xoxb-test".into(),
        "SECRET" => SECRET.into(),
        _ => return None,
    })
}

async fn store(folder: &TempDir, clock: Arc<dyn Clock>) -> Store {
    let url = format!("sqlite://{}/t.db", folder.path().display());
    Store::connect(StoreOptions { url, readers: 4, clock, bind_clock: true }).await.unwrap()
}

impl Doors {
    async fn open() -> Self {
        Self::with(Some(OPERATOR)).await
    }

    async fn with(operator: Option<&str>) -> Self {
        crate::net::init();
        let folder = tempfile::tempdir().unwrap();
        let hand = Arc::new(Hand(AtomicI64::new(START * 1000)));
        let machine = Machine {
            clock: hand.clone(),
            ids: Arc::new(MachineIds::default()),
            limits: Limits { connect: Duration::from_secs(1), total: Duration::from_secs(1) },
            bind_clock: true,
        };
        let text = CONFIG.replace("{folder}", &folder.path().display().to_string());
        let config = Config::parse(&text, &env).unwrap_or_else(|findings| panic!("{findings}"));
        let store = store(&folder, hand.clone()).await;
        store.migrate("test").await.unwrap();
        let service = Service::build(config, store, &machine).await.unwrap();
        let keys = service.keys.unwrap();
        let old = SecretString::from(OLD_SECRET);
        let slack = ["acme", "beta"]
            .map(|install| SlackDoor::new(install, Some(APP.into()), &SECRET.into(), Some(&old)).unwrap())
            .into();
        let http = Arc::new(Http {
            bridge: service.bridge,
            discord: vec![],
            slack,
            operator: operator.map(|token| Operator::new(token.into())),
            jwks: Arc::new(move |now| keys.jwks(now)),
            metrics: crate::telemetry::install_recorder(),
            templates: service.templates,
        });
        Self { public: public_router(&http, false), http, hand, folder }
    }

    async fn send(&self, request: Request<Body>) -> Got {
        send(&self.public, request).await
    }

    async fn get(&self, uri: &str) -> Got {
        self.send(as_operator(Method::GET, uri).body(Body::empty()).unwrap()).await
    }

    async fn post(&self, uri: &str, body: &str) -> Got {
        let request = as_operator(Method::POST, uri).header("content-type", "application/json");
        self.send(request.body(Body::from(body.to_owned())).unwrap()).await
    }

    /// Signed as Slack does, now.
    async fn slack(&self, uri: &str, body: &[u8]) -> Got {
        self.send(signed(uri, body, SECRET, START)).await
    }

    /// How many clicks are stored, and what was kept unread.
    async fn stored(&self) -> (i64, Vec<(String, Vec<u8>)>) {
        self.http
            .bridge
            .store
            .read(|tx| {
                Box::pin(async move {
                    let clicks = tx.count_clicks().await?.into_iter().map(|(_, n)| n).sum();
                    Ok((clicks, tx.kept_deliveries(100).await?))
                })
            })
            .await
            .unwrap()
    }

    async fn tasks(&self) -> Vec<crate::store::tasks::DueTask> {
        let tasks = self
            .http
            .bridge
            .store
            .read(|tx| Box::pin(async move { tx.due_tasks("prod", Millis(i64::MAX), 100).await }));
        tasks.await.unwrap()
    }
}

async fn send(router: &Router, request: Request<Body>) -> Got {
    let response = router.clone().oneshot(request).await.unwrap();
    let (parts, body) = response.into_parts();
    let body = to_bytes(body, usize::MAX).await.unwrap().to_vec();
    Got { status: parts.status, headers: parts.headers, body }
}

fn request(method: Method, uri: &str) -> axum::http::request::Builder {
    Request::builder().method(method).uri(uri)
}

fn as_operator(method: Method, uri: &str) -> axum::http::request::Builder {
    request(method, uri).header("authorization", format!("Bearer {OPERATOR}"))
}

fn signed(uri: &str, body: &[u8], secret: &str, at: i64) -> Request<Body> {
    let signature = crate::chat::slack::sign(&secret.into(), at, body);
    request(Method::POST, uri)
        .header("x-slack-request-timestamp", at.to_string())
        .header("x-slack-signature", signature)
        .header("content-type", "application/x-www-form-urlencoded")
        .body(Body::from(body.to_vec()))
        .unwrap()
}

/// The form of a press.
fn press(change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let mut payload = serde_json::json!({
        "type": "block_actions", "api_app_id": APP, "team": {"id": "T0ACME"}, "enterprise": null,
        "user": {"id": "U0DANA", "team_id": "T0ACME"}, "trigger_id": "1.2.secret-trigger",
        "response_url": "https://hooks.slack.com/actions/T0ACME/1/secret-reply",
        "container": {"type": "message", "message_ts": "1796000001.000200", "channel_id": "C0OPS"},
        "channel": {"id": "C0OPS"}, "message": {"ts": "1796000001.000200", "app_id": APP},
        "actions": [{"type": "button", "action_id": "cs.approve", "value": "k * + x", "action_ts": "1796000009.5"}],
    });
    change(&mut payload);
    form(&payload.to_string())
}

fn form(payload: &str) -> Vec<u8> {
    url::form_urlencoded::Serializer::new(String::new()).append_pair("payload", payload).finish().into_bytes()
}

//! Where the connector is tried: the strict stand-in, or a server that says what a test scripts.

use super::{A2aConnector, A2aSettings, Address};
use crate::bridge::ports::{
    Answered, Carrier, CarryError, Compose, Connector, ConnectorError, Outgoing, TaskReading, TaskRef,
    TaskState,
};
use crate::domain::clock::{Clock, Millis};
use crate::domain::form::Decision;
use crate::domain::ids::{InteractionKey, RuntimeName, Subject};
use crate::domain::interaction::Sent;
use crate::net;
use crate::sandbox::a2a::{A2aWorld, AuthMode, Opened, Setup, Watch as Sees, router};
use crate::sandbox::time::Time;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::response::Response;
use secrecy::SecretString;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinSet;
use url::Url;

pub(super) const START: i64 = 1_796_029_200_000;
pub(super) const KEY: &str = "5ecret0key";
pub(super) const WATCH: &str = "5ecret0watch";
pub(super) const DANA: &str = "dana@example.com";
pub(super) const ERIK: &str = "erik@example.com";

pub(super) fn subject(text: &str) -> Subject {
    Subject::parse(text).unwrap()
}

/// A clock that the stand-in and the connector share.
#[derive(Debug, Clone)]
pub(super) struct Hand(pub(super) Arc<AtomicI64>);

impl Hand {
    pub(super) fn new() -> Self {
        Self(Arc::new(AtomicI64::new(START)))
    }

    pub(super) fn advance(&self, by: Duration) {
        self.0.fetch_add(i64::try_from(by.as_millis()).unwrap(), Ordering::SeqCst);
    }
}

impl Clock for Hand {
    fn now(&self) -> Millis {
        Millis(self.0.load(Ordering::SeqCst))
    }
}

/// A key that acts for subjects, and a credential that watches.
pub(super) struct KeyCarrier;

impl Carrier for KeyCarrier {
    fn carry(&self, who: Option<&Subject>, _at: Millis) -> Result<Vec<(String, SecretString)>, CarryError> {
        let bearer =
            |token: &str| ("authorization".to_owned(), SecretString::from(format!("Bearer {token}")));
        Ok(match who {
            None => vec![bearer(WATCH)],
            Some(who) => vec![
                bearer(KEY),
                ("Nylorun-Subject".into(), who.as_str().into()),
                ("Nylorun-Scopes".into(), "sessions:own".into()),
            ],
        })
    }

    fn takes(&self, _who: &Subject) -> bool {
        true
    }
}

/// Serves on this machine until the test ends.
pub(super) async fn serve(app: Router) -> (Url, JoinSet<()>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let mut server = JoinSet::new();
    server.spawn(async move { axum::serve(listener, app).await.unwrap() });
    (url.parse().unwrap(), server)
}

pub(super) fn client() -> reqwest::Client {
    net::client(net::Limits { connect: Duration::from_secs(2), total: Duration::from_secs(20) }).unwrap()
}

/// The connector before the stand-in.
pub(super) struct Bed {
    pub(super) world: Arc<A2aWorld>,
    pub(super) clock: Hand,
    pub(super) connector: A2aConnector,
    _server: JoinSet<()>,
}

pub(super) fn setup(clock: &Hand) -> Setup {
    Setup {
        auth: vec![AuthMode::Header { name: "Nylorun-Subject".into(), key: KEY.into() }],
        watchers: BTreeMap::from([(WATCH.into(), Sees::All)]),
        time: Time::Manual(clock.0.clone()),
        seed: Some("s".into()),
        ..Setup::default()
    }
}

impl Bed {
    pub(super) async fn new() -> Self {
        Self::with(|_| {}).await
    }

    pub(super) async fn with(change: impl FnOnce(&mut A2aSettings)) -> Self {
        let clock = Hand::new();
        let setup = setup(&clock);
        Self::made(clock, setup, Arc::new(KeyCarrier), change).await
    }

    pub(super) async fn made(
        clock: Hand,
        setup: Setup,
        carrier: Arc<dyn Carrier>,
        change: impl FnOnce(&mut A2aSettings),
    ) -> Self {
        let world = A2aWorld::new(setup);
        let (url, server) = serve(router(Arc::clone(&world))).await;
        let endpoint = url.join("/a2a/release").unwrap();
        let mut settings = A2aSettings::new(RuntimeName::new("prod"), Address::Endpoint(endpoint));
        change(&mut settings);
        let connector = A2aConnector::new(settings, client(), carrier, Arc::new(clock.clone())).unwrap();
        Self { world, clock, connector, _server: server }
    }

    /// A whole pass of listing.
    pub(super) async fn list(&self) -> Result<Vec<TaskReading>, ConnectorError> {
        list(&self.connector).await
    }

    pub(super) async fn read(&self, opened: &Opened) -> TaskReading {
        self.connector.read(&task_ref(opened)).await.unwrap()
    }

    /// The answer of a person, composed as the bridge does.
    #[expect(clippy::needless_pass_by_value, reason = "so that tests read well")]
    pub(super) fn answer_of(&self, who: &str, opened: &Opened, decision: Decision) -> Outgoing {
        let key = InteractionKey {
            runtime: RuntimeName::new("prod"),
            agent: "release".into(),
            task: opened.task_id.clone(),
            external: opened.interaction_id.clone(),
        };
        let compose = Compose {
            key: &key,
            context: Some(&opened.context_id),
            decision: &decision,
            subject: &subject(who),
            prefix: "cs-eu1",
            number: 1,
        };
        let composed = self.connector.compose(&compose).unwrap();
        Outgoing {
            context: Some(opened.context_id.clone()),
            seen_as: None,
            subject: subject(who),
            message_id: composed.message_id,
            body: composed.body,
            sent: Sent::Never,
            probe: false,
            key,
        }
    }

    pub(super) async fn send(&self, out: &Outgoing) -> Answered {
        self.connector.answer(out).await
    }

    /// How often this interaction was answered.
    pub(super) fn applied(&self, opened: &Opened) -> usize {
        self.world.interaction(&opened.interaction_id).unwrap().answers.len()
    }
}

pub(super) async fn list(connector: &A2aConnector) -> Result<Vec<TaskReading>, ConnectorError> {
    let mut all = vec![];
    let mut cursor = None;
    loop {
        let page = connector.list(cursor).await?;
        all.extend(page.readings);
        cursor = page.next;
        if cursor.is_none() {
            return Ok(all);
        }
    }
}

pub(super) fn task_ref(opened: &Opened) -> TaskRef {
    TaskRef { task: opened.task_id.clone(), context: Some(opened.context_id.clone()), seen_as: None }
}

/// The id of the interaction that a reading shows.
pub(super) fn shown(reading: &TaskReading) -> Option<&str> {
    match &reading.state {
        TaskState::Waiting(seen) => Some(&seen.key.external),
        _ => None,
    }
}

/// One request as the scripted server saw it.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) line: String,
    pub(super) headers: BTreeMap<String, String>,
    pub(super) body: Value,
}

impl Asked {
    pub(super) fn method(&self) -> &str {
        self.body["method"].as_str().unwrap_or_default()
    }
}

/// Status, headers, body.
pub(super) type Said = (u16, Vec<(&'static str, String)>, String);

pub(super) fn json(status: u16, body: &Value) -> Said {
    (status, vec![("content-type", "application/json".into())], body.to_string())
}

pub(super) fn result(result: &Value) -> Said {
    json(200, &serde_json::json!({ "jsonrpc": "2.0", "id": 1, "result": result }))
}

pub(super) fn error(code: i64) -> Said {
    json(200, &serde_json::json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": code, "message": "no" } }))
}

/// A server that says what the test's function says.
pub(super) struct Script {
    pub(super) url: Url,
    asked: Arc<Mutex<Vec<Asked>>>,
    _server: JoinSet<()>,
}

impl Script {
    pub(super) async fn new(answer: impl Fn(&Asked) -> Said + Send + Sync + 'static) -> Self {
        let asked = Arc::new(Mutex::new(vec![]));
        let (seen, answer) = (asked.clone(), Arc::new(answer));
        let app = Router::new().fallback(move |request: Request| {
            let (seen, answer) = (Arc::clone(&seen), Arc::clone(&answer));
            async move {
                let (parts, body) = request.into_parts();
                let bytes = to_bytes(body, 1 << 20).await.unwrap();
                let one = Asked {
                    line: format!("{} {}", parts.method, parts.uri),
                    headers: parts
                        .headers
                        .iter()
                        .map(|(name, value)| (name.to_string(), value.to_str().unwrap_or("?").to_owned()))
                        .collect(),
                    body: serde_json::from_slice(&bytes).unwrap_or(Value::Null),
                };
                seen.lock().unwrap().push(one.clone());
                let (status, headers, body) = answer(&one);
                let mut response = Response::builder().status(status);
                for (name, value) in headers {
                    response = response.header(name, value);
                }
                response.body(Body::from(body)).unwrap()
            }
        });
        let (url, server) = serve(app).await;
        Self { url, asked, _server: server }
    }

    pub(super) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    pub(super) fn count(&self, method: &str) -> usize {
        self.asked().iter().filter(|one| one.method() == method).count()
    }

    /// A connector whose endpoint is `/rpc` here.
    pub(super) fn connector(&self, clock: &Hand, change: impl FnOnce(&mut A2aSettings)) -> A2aConnector {
        let endpoint = self.url.join("/rpc").unwrap();
        let mut settings = A2aSettings::new(RuntimeName::new("prod"), Address::Endpoint(endpoint));
        change(&mut settings);
        A2aConnector::new(settings, client(), Arc::new(KeyCarrier), Arc::new(clock.clone())).unwrap()
    }
}

//! The whole system in one process: a real database, real HTTP on loopback, a clock moved by hand.
//!
//! Workers do not run by themselves: a story ticks them, so that races are scripted. [`Story::end`]
//! asserts what must hold at rest after every story.

use super::database::Database;
pub(crate) use super::doors::{Clicks, Ground, Inbound, POSTGRES, SOCKETS, SQLITE};
use super::doors::{Gateways, Sockets};
use super::logs;
pub(crate) use super::wants::{PEOPLE_AND_ROUTES, Wants, config, env};
use countersign::chat::slack::socket::Timing;
use countersign::cli::machine::MachineIds;
use countersign::cli::service::{Machine, Service};
use countersign::config::Config;
use countersign::domain::clock::{Clock, Millis};
use countersign::net::{self, Limits};
use countersign::sandbox::a2a::{self, A2aWorld, Ask, AuthMode, Jwks, Open, Opened, Setup, Watch};
use countersign::sandbox::discord::{self, DiscordWorld};
use countersign::sandbox::slack::{self, Delivery, Message, SlackWorld};
use countersign::sandbox::time::Time;
use countersign::store::jobs::JobKind;
use countersign::store::{Store, StoreOptions};
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// When every story begins: 2026-11-30T09:00:00Z.
pub(crate) const START: i64 = 1_796_029_200_000;
pub(crate) const WATCH_TOKEN: &str = "watch-everything";
pub(crate) const OPERATOR: &str = "operator-token-of-the-tests-0123456789";
pub(crate) const PREVIOUS_SECRET: &str = "the-signing-secret-of-last-year";
pub(crate) const RELEASES: &str = "C0RELEASES";
pub(crate) const OPS: &str = "C0OPS";
pub(crate) const DANA: &str = "dana@example.com";
pub(crate) const KIM: &str = "kim@example.com";

/// The service's clock: the same hand moves the stand-ins'.
#[derive(Debug, Clone)]
pub(crate) struct HandClock(Arc<AtomicI64>);

impl Clock for HandClock {
    fn now(&self) -> Millis {
        Millis(self.0.load(Ordering::SeqCst))
    }
}

/// What a story is told with.
pub(crate) struct Story {
    pub(crate) slack: Arc<SlackWorld>,
    pub(crate) discord: Arc<DiscordWorld>,
    pub(crate) a2a: Arc<A2aWorld>,
    pub(crate) service: Service,
    pub(crate) sandbox: SocketAddr,
    pub(crate) address: SocketAddr,
    hand: Arc<AtomicI64>,
    config: String,
    database: Database,
    folder: TempDir,
    servers: Vec<JoinHandle<()>>,
    front: Option<JoinHandle<()>>,
    sockets: Option<Sockets>,
    gateways: Option<Gateways>,
    clicks: Clicks,
    timing: Timing,
}

pub(crate) async fn serve(listener: TcpListener, router: axum::Router) {
    axum::serve(listener, router.into_make_service_with_connect_info::<SocketAddr>()).await.unwrap();
}

#[expect(clippy::disallowed_methods, reason = "a test's own servers, aborted at its end")]
fn spawn(task: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
    tokio::spawn(task)
}

impl Story {
    pub(crate) async fn begin(on: impl Into<Ground>) -> Self {
        Self::with(on, Wants::default()).await
    }

    pub(crate) async fn with(on: impl Into<Ground>, mut wants: Wants) -> Self {
        let Ground { backend: on, inbound } = on.into();
        if inbound == Inbound::Socket {
            wants.inbound = inbound;
        }
        net::init();
        logs::keep();
        let hand = Arc::new(AtomicI64::new(START));
        let time = Time::Manual(Arc::clone(&hand));
        let slack = SlackWorld::acme(time.clone());
        let discord = DiscordWorld::acme(time.clone());
        let a2a = A2aWorld::new(Setup {
            time,
            seed: Some("s".into()),
            watchers: BTreeMap::from([(WATCH_TOKEN.to_owned(), Watch::All)]),
            ..Setup::default()
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let sandbox = listener.local_addr().unwrap();
        let router = slack::router(Arc::clone(&slack))
            .merge(discord::router(Arc::clone(&discord)))
            .merge(a2a::router(Arc::clone(&a2a)));
        let servers = vec![spawn(serve(listener, router))];
        let front = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = front.local_addr().unwrap();
        slack.set_base_url(&format!("http://{sandbox}"));
        discord.set_base_url(&format!("http://{sandbox}"));
        slack.set_app_url(&format!("http://{address}"));
        a2a.set_auth(
            vec![AuthMode::Jwt {
                issuer: "https://countersign.test".into(),
                audience: "prod-agents".into(),
                jwks: Jwks::Url(format!("http://{address}/.well-known/jwks.json")),
            }],
            BTreeMap::from([(WATCH_TOKEN.to_owned(), Watch::All)]),
        );
        a2a.switch(|switches| {
            switches.foreign = wants.foreign;
            switches.bindings = vec![wants.binding];
        });
        slack.switch(|switches| {
            switches.socket_mode = wants.inbound == Inbound::Socket;
            // A story's clock stands still, and so would the limit.
            switches.scarce_connections = false;
        });

        let folder = tempfile::tempdir().unwrap();
        let database = on.fresh().await;
        let config = config(&wants, sandbox, address, database.url(), &folder);
        let service = build(&config, &hand, wants.limits).await;
        let mut story = Self {
            slack,
            discord,
            a2a,
            service,
            sandbox,
            address,
            hand,
            config,
            database,
            folder,
            servers,
            front: None,
            sockets: None,
            gateways: None,
            clicks: wants.clicks,
            timing: wants.timing.clone(),
        };
        story.open_doors(front).await;
        for install in story.service.bridge.platforms.keys() {
            let known = story.service.bridge.identify_once(install).await.unwrap();
            assert!(known, "the stand-in says who we are");
        }
        story
    }

    async fn open_doors(&mut self, front: TcpListener) {
        let router = countersign::http::public_router(&self.service.http().unwrap(), false);
        self.front = Some(spawn(serve(front, router)));
        let machine = machine(&self.hand, Wants::default().limits);
        let sockets = self.service.sockets(&machine, &self.timing);
        if !sockets.is_empty() {
            self.sockets = Some(Sockets::open(sockets));
            self.until_sockets(self.timing.sockets).await;
        }
        match self.clicks {
            Clicks::None => {}
            Clicks::Endpoint => {
                let url = format!("http://{}/discord/interactions", self.address);
                self.discord.set_endpoint(discord::acme::APP, Some(&url)).await.unwrap();
            }
            Clicks::Gateway => {
                let timing = countersign::chat::discord::gateway::Timing::default().faster(10);
                self.gateways = Some(Gateways::open(self.service.gateways(&machine, &timing)));
                self.until_connected().await;
            }
        }
    }

    /// Waits until Discord's gateway has a session of ours.
    pub(crate) async fn until_connected(&self) {
        let open = || {
            let all = self.discord.connections();
            all.iter().any(|one| one.closed_ms.is_none() && one.session.is_some())
        };
        self.until("a gateway connection", open).await;
    }

    /// Another replica asks for the gateway.
    pub(crate) async fn opens_gateway_of_a_replica(&mut self) {
        let replica = self.replica().await;
        let machine = machine(&self.hand, Wants::default().limits);
        let timing = countersign::chat::discord::gateway::Timing::default().faster(10);
        self.gateways = Some(Gateways::open(replica.gateways(&machine, &timing)));
        self.until_connected().await;
    }

    /// Stops the gateway as the service does.
    pub(crate) async fn leave_gateway(&mut self) {
        if let Some(gateways) = self.gateways.take() {
            gateways.stop().await;
        }
    }

    /// Waits until so many sockets are open.
    pub(crate) async fn until_sockets(&self, count: usize) {
        self.until(&format!("{count} sockets"), || self.slack.open_sockets().len() == count).await;
    }

    /// Waits in real time for what happens between us and Slack.
    pub(crate) async fn until(&self, what: &str, holds: impl Fn() -> bool) {
        let end = std::time::Instant::now() + Duration::from_mins(1);
        while !holds() {
            assert!(std::time::Instant::now() < end, "never: {what}\n{:#?}", self.slack.sockets());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// The process dies and a new one starts on the same database and port.
    pub(crate) async fn restart(&mut self) {
        self.restart_with(|config| config).await;
    }

    /// The same with a changed configuration.
    pub(crate) async fn restart_with(&mut self, change: impl FnOnce(String) -> String) {
        if let Some(front) = self.front.take() {
            front.abort();
            let _ = front.await;
        }
        if let Some(sockets) = self.sockets.take() {
            sockets.kill().await;
        }
        if let Some(gateways) = self.gateways.take() {
            gateways.kill().await;
        }
        self.service.bridge.store.close().await;
        self.config = change(std::mem::take(&mut self.config));
        self.service = build(&self.config, &self.hand, Wants::default().limits).await;
        let service = &self.service;
        service.bridge.store.write(|tx| Box::pin(async move { tx.release_jobs(None).await })).await.unwrap();
        service.bridge.store.write(|tx| Box::pin(async move { tx.release_leases().await })).await.unwrap();
        // The workers begin with it.
        service.bridge.hurry_answers(None).await.unwrap();
        let front = TcpListener::bind(self.address).await.unwrap();
        self.open_doors(front).await;
        // An install that a story adds stays unknown until the story says otherwise.
        for install in ["acme", "guild"] {
            if self.service.bridge.platforms.contains_key(install) {
                self.service.bridge.identify_once(install).await.unwrap();
            }
        }
    }

    /// The configuration as a file, for the binary.
    pub(crate) fn config_file(&self) -> std::path::PathBuf {
        let file = self.folder.path().join("countersign.toml");
        std::fs::write(&file, &self.config).unwrap();
        file
    }

    pub(crate) fn database_url(&self) -> &str {
        self.database.url()
    }

    /// A second replica on the same database. Its doors are closed.
    pub(crate) async fn replica(&self) -> Service {
        build(&self.config, &self.hand, Wants::default().limits).await
    }

    /// The keys of the alerts that stand.
    pub(crate) async fn alert_keys(&self) -> Vec<String> {
        let alerts =
            self.service.bridge.store.read(|tx| Box::pin(async move { tx.alerts().await })).await.unwrap();
        alerts.into_iter().map(|alert| alert.key).collect()
    }

    /// Moves every clock.
    pub(crate) fn advance(&self, by: Duration) {
        self.hand.fetch_add(i64::try_from(by.as_millis()).unwrap(), Ordering::SeqCst);
    }

    /// Sets every clock to this machine's, for what another process judges by its own.
    pub(crate) fn at_the_machines_time(&self) {
        self.hand.store(countersign::cli::machine::MachineClock.now().0, Ordering::SeqCst);
    }

    pub(crate) fn now(&self) -> Millis {
        Millis(self.hand.load(Ordering::SeqCst))
    }

    /// One pass over the runtime, then everything that is due.
    pub(crate) async fn tick(&self) {
        self.watch().await;
        self.deliver().await;
    }

    /// One pass over the runtime.
    pub(crate) async fn watch(&self) {
        self.service.bridge.watch_once("prod").await.unwrap();
    }

    /// Works off everything that is due now.
    pub(crate) async fn deliver(&self) {
        self.deliver_only(&JobKind::ALL).await;
    }

    pub(crate) async fn deliver_only(&self, kinds: &[JobKind]) {
        for _ in 0..100 {
            if self.service.bridge.deliver_once(kinds).await.unwrap() == 0 {
                return;
            }
        }
        panic!("jobs are due for ever: {:#?}", self.jobs().await);
    }

    /// Time passes in steps, with everything that becomes due in it.
    pub(crate) async fn pass(&self, time: Duration) {
        let step = Duration::from_secs(1);
        let mut left = time;
        while left > Duration::ZERO {
            let by = left.min(step);
            self.advance(by);
            left -= by;
            self.deliver().await;
        }
    }

    pub(crate) async fn jobs(&self) -> Vec<countersign::store::jobs::JobRow> {
        self.service.bridge.store.read(|tx| Box::pin(async move { tx.jobs(1000).await })).await.unwrap()
    }

    /// An agent of Dana's asks for approval of a tool of server `ci`.
    pub(crate) fn asks(&self, tool: &str) -> Opened {
        self.a2a.open(Open::new(DANA, Ask::approval("ci", tool)))
    }

    /// The same, seen and posted.
    pub(crate) async fn asked(&self, tool: &str) -> (Opened, Message) {
        let opened = self.asks(tool);
        self.tick().await;
        let card = self.card(RELEASES);
        (opened, card)
    }

    /// The newest card in a channel.
    pub(crate) fn card(&self, channel: &str) -> Message {
        let cards = self.slack.cards(channel);
        cards.last().cloned().unwrap_or_else(|| panic!("no card in {channel}: {:#?}", self.slack.dump()))
    }

    /// How a message reads, in lower case.
    pub(crate) fn reads(&self, card: &Message) -> String {
        self.slack.reads(&card.channel, &card.ts).to_lowercase()
    }

    pub(crate) fn buttons(&self, card: &Message) -> Vec<String> {
        self.slack.buttons(&card.channel, &card.ts)
    }

    /// A person presses a control; the press must be acknowledged.
    pub(crate) async fn presses(&self, user: &str, card: &Message, control: &str) -> Delivery {
        let delivery = self.slack.press(user, &card.channel, &card.ts, control).await.unwrap();
        assert!(delivery.acked(), "{delivery:#?}");
        delivery
    }

    /// What a person has been told privately, oldest first.
    pub(crate) fn told(&self, user: &str) -> Vec<String> {
        self.slack.told(user)
    }

    /// Who approved it and with what, as the runtime recorded it.
    pub(crate) fn recorded(&self, opened: &Opened) -> Vec<(String, bool)> {
        self.a2a
            .interaction(&opened.interaction_id)
            .unwrap()
            .answers
            .iter()
            .map(|answer| {
                (answer.approved_by.clone(), matches!(answer.decision, a2a::Decision::Approved(true)))
            })
            .collect()
    }

    /// The alerts that stand.
    pub(crate) async fn alerts(&self) -> Vec<countersign::store::alerts::Alert> {
        self.service.bridge.store.read(|tx| Box::pin(async move { tx.alerts().await })).await.unwrap()
    }

    /// A request to our own address; the status and the body of the answer.
    pub(crate) async fn http(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Vec<u8>,
    ) -> (u16, String) {
        let limits = Limits { connect: Duration::from_secs(2), total: Duration::from_secs(5) };
        let client = net::client(limits).unwrap();
        let mut request =
            client.request(method.parse().unwrap(), format!("http://{}{path}", self.address)).body(body);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answer = request.send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    }

    /// From now on presses cannot be stored, or can be again.
    pub(crate) async fn breaks_the_database(&self, broken: bool) {
        let change = if broken {
            "ALTER TABLE clicks RENAME TO clicks_away"
        } else {
            "ALTER TABLE clicks_away RENAME TO clicks"
        };
        self.database.run(change).await;
    }

    /// From now on nothing can be opened, or can be again.
    pub(crate) async fn breaks_openings(&self, broken: bool) {
        let change = if broken {
            "ALTER TABLE openings RENAME TO openings_away"
        } else {
            "ALTER TABLE openings_away RENAME TO openings"
        };
        self.database.run(change).await;
    }

    /// Registers a task by the operator API.
    pub(crate) async fn registers(&self, opened: &Opened, subject: Option<&str>) {
        let mut body =
            serde_json::json!({"runtime": "prod", "taskId": opened.task_id, "contextId": opened.context_id});
        if let Some(subject) = subject {
            body["subject"] = subject.into();
        }
        let bearer = format!("Bearer {OPERATOR}");
        let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
        let (status, said) =
            self.http("POST", "/api/v1/tasks", &headers, body.to_string().into_bytes()).await;
        assert_eq!(status, 202, "{said}");
    }

    /// Clicks by state.
    pub(crate) async fn clicks(&self) -> BTreeMap<String, i64> {
        let counts = self
            .service
            .bridge
            .store
            .read(|tx| Box::pin(async move { tx.count_clicks().await }))
            .await
            .unwrap();
        counts.into_iter().collect()
    }

    /// The events of the audit log, in order.
    pub(crate) async fn audit(&self) -> Vec<countersign::domain::audit::AuditRow> {
        let mut rows = vec![];
        loop {
            let from = i64::try_from(rows.len()).unwrap() + 1;
            let page = self.service.bridge.store.audit_page(from).await.unwrap();
            if page.is_empty() {
                return rows;
            }
            rows.extend(page);
        }
    }

    /// What must hold at rest: the audit chain is whole, no job is due or dead, every click has an
    /// outcome, each interaction was answered at most once, no card of an ended one has a control.
    pub(crate) async fn end(mut self) {
        if let Some(sockets) = self.sockets.take() {
            sockets.stop().await;
        }
        self.leave_gateway().await;
        let store = &self.service.bridge.store;
        store.verify_audit(None).await.unwrap().expect("the audit chain is whole");
        let now = self.now();
        for job in self.jobs().await {
            assert!(job.dead.is_none(), "a dead job: {job:?}");
            assert!(job.available > now, "a job is left: {job:?}");
        }
        for state in ["stored", "claimed"] {
            assert_eq!(self.clicks().await.get(state), None, "clicks without an outcome");
        }
        for delivery in self.slack.deliveries() {
            assert!(delivery.status != 200 || delivery.acked(), "acknowledged too late: {delivery:?}");
        }
        let complaints = self.slack.complaints();
        assert!(complaints.is_empty(), "Slack has complaints: {complaints:#?}");
        let complaints = self.discord.complaints();
        assert!(complaints.is_empty(), "Discord has complaints: {complaints:#?}");
        super::outside::slackblocks_accepts(&self.slack.payloads());
        assert_eq!(self.a2a.requests_of("CancelTask").len(), 0, "Countersign never cancels a task");
        self.keeps_secrets().await;
        if let Some(front) = &self.front {
            front.abort();
        }
        for server in &self.servers {
            server.abort();
        }
        store.close().await;
        let _ = (&self.database, &self.folder, &self.sandbox);
    }
}

/// Every A2A and Slack credential of a story's configuration.
const SECRETS: [&str; 9] = [
    discord::acme::TOKEN,
    slack::acme::APP_TOKEN,
    WATCH_TOKEN,
    OPERATOR,
    PREVIOUS_SECRET,
    slack::acme::BOT_TOKEN,
    slack::acme::BETA_TOKEN,
    slack::acme::ORG_TOKEN,
    slack::acme::SIGNING_SECRET,
];

impl Story {
    /// A2A case 66, Slack case 60: no credential in a log line, in what a person reads, in what the other
    /// side is sent, or in the audit log. A press's address and trigger are credentials too.
    async fn keeps_secrets(&self) {
        let mut secrets: Vec<String> = SECRETS.map(str::to_owned).to_vec();
        // The header of every token of ours begins so.
        secrets.push("eyJ".to_owned());
        // The address of a socket lets its holder in.
        secrets.push("ticket=".to_owned());
        for delivery in self.slack.deliveries() {
            let payload = delivery.payload();
            let own = ["/response_url", "/trigger_id"].map(|at| payload.pointer(at).and_then(Value::as_str));
            secrets.extend(own.into_iter().flatten().map(str::to_owned));
        }
        let dump = self.slack.dump();
        let shown = [
            ("runtime", self.a2a.dump().to_string()),
            ("messages", dump["messages"].to_string()),
            ("Discord", self.discord.dump().to_string()),
            ("private messages", dump["ephemerals"].to_string()),
            ("views", dump["views"].to_string()),
            ("answers to Slack", self.slack.deliveries().iter().map(|one| one.body.as_str()).collect()),
            ("audit log", format!("{:?}", self.audit().await)),
        ];
        for secret in secrets.iter().filter(|secret| !secret.is_empty()) {
            for (place, text) in &shown {
                assert!(!text.contains(secret.as_str()), "a secret reached the {place}: {secret}");
            }
            let lines = logs::with(secret);
            assert!(lines.is_empty(), "a secret was logged: {lines:#?}");
        }
    }
}

fn machine(hand: &Arc<AtomicI64>, limits: Limits) -> Machine {
    Machine {
        clock: Arc::new(HandClock(Arc::clone(hand))),
        ids: Arc::new(MachineIds::default()),
        limits,
        bind_clock: true,
    }
}

async fn build(config: &str, hand: &Arc<AtomicI64>, limits: Limits) -> Service {
    let config = Config::parse(config, &env).unwrap_or_else(|findings| panic!("{findings}"));
    // On SQLite the first run would make it; replicas on PostgreSQL share one that is made beforehand.
    let keys = countersign::cli::service::key_file(&config);
    if !keys.path.exists() {
        countersign::identity::keys::rotate(&keys, Millis(START)).unwrap();
    }
    let machine = machine(hand, limits);
    let store = Store::connect(StoreOptions {
        url: config.database.url.expose().to_owned(),
        readers: 4,
        clock: Arc::clone(&machine.clock),
        bind_clock: true,
    })
    .await
    .unwrap();
    Service::build(config, store, &machine).await.unwrap()
}

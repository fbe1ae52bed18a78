//! The real binary is killed at random moments under load; what must hold is checked from outside.
//!
//! `CRASH_SEED` repeats a run, `CRASH_KILLS` makes it longer (`scripts/crash`). The stand-ins and the people
//! live in this process; the service is a child that dies by SIGKILL and starts again on its database.

use crate::world::database::{Backend, Database};
use crate::world::story::{
    DANA, Ground, Inbound, POSTGRES, RELEASES, SOCKETS, SQLITE, WATCH_TOKEN, Wants, config, env, serve,
};
use countersign::bridge::ports::Pressed;
use countersign::chat::slack::Inbound as Parsed;
use countersign::domain::clock::Millis;
use countersign::domain::ids::{CardId, InteractionId};
use countersign::domain::interaction::{How, State as Phase};
use countersign::identity::keys::{self, Keys};
use countersign::net;
use countersign::sandbox::a2a::{
    A2aWorld, Ask, AuthMode, CardSpec, Decision, Elsewhere, Jwks, Open, Setup, State, Watch,
};
use countersign::sandbox::faults::{Fault, Rule};
use countersign::sandbox::slack::{self, Delivery, Input, Manner, SlackWorld, Spot};
use countersign::sandbox::time::Time;
use countersign::store::interactions::Interaction;
use countersign::store::jobs::JobRow;
use countersign::store::{Store, StoreError, StoreOptions, Tx};
use rstest::rstest;
use sqlx::Connection;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::net::TcpListener;
use uuid::Uuid;

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_countersign");
pub(crate) const SECRETS: [&str; 5] = ["OPERATOR", "WATCH", "BOT", "SIGNING", "APP"];

/// A small generator: the run is repeated by its seed, as far as the machine's timing allows.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides.max(1)
    }
}

pub(crate) struct Rig {
    pub(crate) slack: Arc<SlackWorld>,
    pub(crate) a2a: Arc<A2aWorld>,
    database: Database,
    pub(crate) file: PathBuf,
    pub(crate) address: SocketAddr,
    pub(crate) sandbox: SocketAddr,
    pub(crate) folder: TempDir,
    child: Option<Child>,
    pub(crate) starts: u32,
}

#[derive(Default)]
pub(crate) struct Counts {
    opened: AtomicU64,
    acked: AtomicU64,
    unacked: AtomicU64,
    canceled: AtomicU64,
    elsewhere: AtomicU64,
}

#[expect(clippy::disallowed_methods, reason = "the test's own servers and people, ended with its runtime")]
pub(crate) fn spawn(task: impl Future<Output = ()> + Send + 'static) -> tokio::task::JoinHandle<()> {
    tokio::spawn(task)
}

impl Rig {
    pub(crate) async fn new(on: impl Into<Ground>) -> Self {
        Self::with(on, false).await
    }

    /// `streams`: the runtime has streams, and passes are rare: it is the streams that tell.
    pub(crate) async fn with(on: impl Into<Ground>, streams: bool) -> Self {
        let Ground { backend: on, inbound } = on.into();
        net::init();
        let slack = SlackWorld::acme(Time::System);
        slack.pace(100_000);
        slack.switch(|switches| switches.socket_mode = inbound == Inbound::Socket);
        let a2a = A2aWorld::new(Setup { keep_requests: 200_000, ..Setup::default() });
        a2a.set_card("release", CardSpec { streaming: streams, ..CardSpec::default() });
        a2a.switch(|switches| switches.stream_duplicates = streams);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let sandbox = listener.local_addr().unwrap();
        spawn(serve(
            listener,
            slack::router(Arc::clone(&slack)).merge(countersign::sandbox::a2a::router(Arc::clone(&a2a))),
        ));
        // The child listens on the same port after each death.
        let address = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        slack.set_base_url(&format!("http://{sandbox}"));
        slack.set_app_url(&format!("http://{address}"));
        let folder = tempfile::tempdir().unwrap();
        let database = on.fresh().await;
        let poll = if streams { "poll = \"3s\"" } else { "poll = \"150ms\"" };
        let wants = Wants {
            runtime: poll,
            slack: "pace = 100000",
            more: "[policy]\nmax_open_per_place = 100000",
            inbound,
            ..Wants::default()
        };
        let text = config(&wants, sandbox, address, database.url(), &folder);
        let parsed = countersign::config::Config::parse(&text, &env).unwrap();
        let key_file = countersign::cli::service::key_file(&parsed);
        keys::rotate(&key_file, Millis(0)).unwrap();
        let keys = Keys::open(key_file, false, Millis(0)).unwrap();
        a2a.set_auth(
            vec![AuthMode::Jwt {
                issuer: "https://countersign.test".into(),
                audience: "prod-agents".into(),
                jwks: Jwks::Given(keys.jwks(Millis(1))),
            }],
            BTreeMap::from([(WATCH_TOKEN.to_owned(), Watch::All)]),
        );
        let file = folder.path().join("countersign.toml");
        std::fs::write(&file, text).unwrap();
        Self { slack, a2a, database, file, address, sandbox, folder, child: None, starts: 0 }
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(BINARY);
        command.args(words).arg("--config").arg(&self.file).stdin(Stdio::null());
        for name in SECRETS {
            command.env(name, env(name).unwrap());
        }
        command
    }

    fn start(&mut self) {
        self.start_with(&[]);
    }

    /// The same with this in its environment too.
    pub(crate) fn start_with(&mut self, environment: &[(&str, &Path)]) {
        self.starts += 1;
        let log = std::fs::File::options()
            .create(true)
            .append(true)
            .open(self.folder.path().join("countersign.log"))
            .unwrap();
        let mut command = self.command(&["run"]);
        let child =
            command.envs(environment.iter().copied()).stdout(Stdio::null()).stderr(log).spawn().unwrap();
        self.child = Some(child);
    }

    pub(crate) fn kill(&mut self) {
        let mut child = self.child.take().unwrap();
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself:\n{}", self.log());
        child.kill().unwrap();
        child.wait().unwrap();
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("countersign.log")).unwrap_or_default()
    }

    async fn serving(&self) {
        let client = net::client(net::Limits::default()).unwrap();
        let end = Instant::now() + Duration::from_secs(30);
        loop {
            if client
                .get(format!("http://{}/healthz", self.address))
                .send()
                .await
                .is_ok_and(|r| r.status() == 200)
            {
                return;
            }
            assert!(Instant::now() < end, "not serving:\n{}", self.log());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn store(&self) -> Store {
        Store::connect(StoreOptions {
            url: self.database.url().to_owned(),
            readers: 2,
            clock: Arc::new(countersign::cli::machine::MachineClock),
            bind_clock: false,
        })
        .await
        .unwrap()
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Agents that ask, and sometimes think better of it.
pub(crate) async fn agents(a2a: Arc<A2aWorld>, counts: Arc<Counts>, mut dice: Dice, stop: Arc<AtomicBool>) {
    let mut open = vec![];
    while !stop.load(Ordering::Relaxed) {
        tokio::time::sleep(Duration::from_millis(20 + dice.roll(60))).await;
        let n = counts.opened.fetch_add(1, Ordering::Relaxed);
        let tool = if dice.roll(5) == 0 { format!("delete_{n}") } else { format!("deploy_{n}") };
        open.push(a2a.open(Open::new(DANA, Ask::approval("ci", &tool))));
        if dice.roll(12) == 0 {
            let one = open.swap_remove(usize::try_from(dice.roll(open.len() as u64)).unwrap());
            if a2a.state(&one.task_id) != Some(State::AuthRequired) {
                continue;
            }
            if dice.roll(2) == 0 {
                a2a.end(&one.task_id, State::Canceled, None);
                counts.canceled.fetch_add(1, Ordering::Relaxed);
            } else {
                let answer = Elsewhere {
                    subject: "product@example.com".into(),
                    decision: Decision::Approved(true),
                    history: false,
                    message_id: None,
                };
                a2a.answer_elsewhere(&one.interaction_id, answer);
                counts.elsewhere.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

/// People who press what they see; sometimes two at once, sometimes delivered twice.
pub(crate) async fn people(
    slack: Arc<SlackWorld>,
    counts: Arc<Counts>,
    mut dice: Dice,
    stop: Arc<AtomicBool>,
) {
    while !stop.load(Ordering::Relaxed) {
        tokio::time::sleep(Duration::from_millis(5 + dice.roll(15))).await;
        let cards: Vec<_> = slack
            .cards(RELEASES)
            .into_iter()
            .rev()
            .take(60)
            .filter(|card| !slack.buttons(RELEASES, &card.ts).is_empty())
            .collect();
        let Some(card) = cards.get(usize::try_from(dice.roll(cards.len() as u64)).unwrap()) else { continue };
        let user = if dice.roll(2) == 0 { "U0DANA" } else { "U0KIM" };
        let control = if dice.roll(4) == 0 { "Deny" } else { "Approve" };
        let manner = if dice.roll(10) == 0 { Manner::twice() } else { Manner::default() };
        let spot = Spot::message(RELEASES, &card.ts);
        if dice.roll(6) == 0 {
            let reason = format!("reason {}", dice.roll(1_000_000));
            for delivery in denies_with_reason(&slack, user, &spot, &reason, &manner).await {
                let to = if delivery.acked() { &counts.acked } else { &counts.unacked };
                to.fetch_add(1, Ordering::Relaxed);
            }
            continue;
        }
        let first = slack.press_raw(user, &spot, control, &manner, |_| {});
        let deliveries = if dice.roll(6) == 0 {
            let other = if user == "U0DANA" { "U0KIM" } else { "U0DANA" };
            let once = Manner::default();
            let second = slack.press_raw(other, &spot, "Deny", &once, |_| {});
            let (first, second) = tokio::join!(first, second);
            [first.unwrap_or_default(), second.unwrap_or_default()].concat()
        } else {
            first.await.unwrap_or_default()
        };
        for delivery in deliveries {
            let to = if delivery.acked() { &counts.acked } else { &counts.unacked };
            to.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Streams break every few moments, and some events reach nobody.
async fn cutter(a2a: Arc<A2aWorld>, mut dice: Dice, stop: Arc<AtomicBool>) {
    while !stop.load(Ordering::Relaxed) {
        tokio::time::sleep(Duration::from_millis(200 + dice.roll(1200))).await;
        if dice.roll(3) == 0 {
            a2a.lose_events(u32::try_from(1 + dice.roll(3)).unwrap());
        } else {
            a2a.cut_streams();
        }
    }
    a2a.lose_events(0);
    a2a.cut_streams();
}

/// Presses *Deny with reason…*, and submits what opens, if anything does.
async fn denies_with_reason(
    slack: &SlackWorld,
    user: &str,
    spot: &Spot,
    reason: &str,
    manner: &Manner,
) -> Vec<Delivery> {
    let before: Vec<String> = slack.modals(user).into_iter().map(|view| view.id).collect();
    let once = Manner::default();
    if slack.press_raw(user, spot, "Deny with reason…", &once, |_| {}).await.is_err() {
        return vec![];
    }
    let newest = |slack: &SlackWorld| slack.modals(user).into_iter().find(|view| !before.contains(&view.id));
    // A process that died opens nothing; a person presses something else then.
    let Ok(view) = slack.until("a form", Duration::from_millis(700), newest).await else { return vec![] };
    let form = Spot::View { id: view.id.clone() };
    let typed = Input::Text { text: reason.to_owned() };
    if slack.fill(user, &form, "Reason", &typed).await.is_err() {
        return vec![];
    }
    slack.submit_raw(user, &view.id, manner, |_| {}).await.unwrap_or_default()
}

pub(crate) fn number(name: &str, default: u64) -> u64 {
    #[expect(clippy::disallowed_methods, reason = "a test's own settings")]
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[rstest]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_at_random_moments(
    #[values(SQLITE, POSTGRES, SOCKETS)] on: Ground,
    #[values(false, true)] streams: bool,
) {
    let fresh = u64::from(std::process::id()) ^ Time::System.now_ms().unsigned_abs();
    let seed = number("CRASH_SEED", fresh).max(1);
    let kills = number("CRASH_KILLS", 6);
    println!("seed {seed}, {kills} kills, {on:?}, streams: {streams}");
    let mut rig = Rig::with(on, streams).await;
    let counts = Arc::new(Counts::default());
    let stop = Arc::new(AtomicBool::new(false));
    let mut dice = Dice(seed);

    rig.start();
    rig.serving().await;
    let mut load =
        vec![spawn(agents(Arc::clone(&rig.a2a), Arc::clone(&counts), Dice(seed ^ 0xa1), Arc::clone(&stop)))];
    for n in 0..3 {
        let dice = Dice(seed ^ (0xb00 + n));
        load.push(spawn(people(Arc::clone(&rig.slack), Arc::clone(&counts), dice, Arc::clone(&stop))));
    }
    if streams {
        load.push(spawn(cutter(Arc::clone(&rig.a2a), Dice(seed ^ 0xc07), Arc::clone(&stop))));
    }
    for _ in 0..kills {
        if dice.roll(3) == 0 {
            rig.a2a.faults().add(Rule::next("SendMessage", Fault::Lost { ms: 200 }));
        }
        if dice.roll(3) == 0 {
            rig.slack.faults().add(Rule::next("chat.update", Fault::StatusAfter { code: 503 }));
        }
        // When it dies is what the seed chooses.
        // On PostgreSQL watching moves when the dead one's lease runs out, so lives are longer there.
        let longest = if on.backend == Backend::Sqlite { 1200 } else { 14_000 };
        tokio::time::sleep(Duration::from_millis(150 + dice.roll(longest))).await;
        rig.kill();
        rig.start();
        rig.serving().await;
    }
    stop.store(true, Ordering::Relaxed);
    for task in load {
        task.await.unwrap();
    }
    rig.slack.faults().clear();
    rig.a2a.faults().clear();
    at_rest(&rig).await;
    if streams {
        let asked = rig.a2a.requests_of("SubscribeToTask").len();
        println!("streams asked for: {asked}");
        assert!(asked > 0, "nothing was followed");
    }
    check(&rig, &counts, kills, seed, on.backend).await;
}

/// Waits until nothing is due any more: posts of unknown outcome take the longest.
pub(crate) async fn at_rest(rig: &Rig) {
    let store = rig.store().await;
    let end = Instant::now() + Duration::from_secs(150);
    loop {
        let busy = store.read(|tx| Box::pin(async move { left_to_do(tx).await })).await.unwrap();
        let quiet = rig.a2a.dump();
        if busy.is_empty() && all_seen(rig, &store).await {
            break;
        }
        assert!(Instant::now() < end, "not at rest: {busy:#?}\n{}\n{quiet}", rig.log());
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    store.close().await;
}

/// All jobs but those that only send a card's newest state, which it shows, once more: a minute after an
/// edit of unknown outcome.
async fn left_to_do(tx: &mut Tx) -> Result<Vec<JobRow>, StoreError> {
    let mut left = vec![];
    for job in tx.jobs(5000).await? {
        if job.kind == "edit"
            && let Some(card) = tx.card(CardId(job.reference)).await?
            && let Some(interaction) = tx.interaction(card.interaction, false).await?
            && card.confirm.is_some()
            && card.shown_rev == Some(interaction.rev)
        {
            continue;
        }
        left.push(job);
    }
    Ok(left)
}

/// Every interaction of the runtime is known here in the state it has there. What ended before it was ever
/// seen is not known here.
async fn all_seen(rig: &Rig, store: &Store) -> bool {
    let mine = interactions(store).await;
    rig.a2a.dump()["tasks"].as_array().is_none_or(|tasks| {
        tasks.iter().all(|task| {
            let id = task["id"].as_str().unwrap_or_default();
            let open = rig.a2a.state(id) == Some(State::AuthRequired);
            let mut of_task = mine.iter().filter(|interaction| interaction.key.task == id).peekable();
            (!open || of_task.peek().is_some())
                && of_task.all(|interaction| open == matches!(interaction.machine.state, Phase::Open))
        })
    })
}

async fn interactions(store: &Store) -> Vec<Interaction> {
    let mut all = vec![];
    let mut after = InteractionId(Uuid::nil());
    loop {
        let page = store
            .read(|tx| Box::pin(async move { tx.interactions_after(after, false, 500).await }))
            .await
            .unwrap();
        let Some(last) = page.last() else { return all };
        after = last.id;
        all.extend(page);
    }
}

/// The outcome of every stored click by its key, read from the tables themselves.
async fn outcomes(url: &str) -> BTreeMap<String, String> {
    const SQL: &str = "SELECT dedupe_key, state FROM clicks";
    let rows: Vec<(String, String)> = if url.starts_with("sqlite") {
        let mut connection = sqlx::SqliteConnection::connect(url).await.unwrap();
        sqlx::query_as(SQL).fetch_all(&mut connection).await.unwrap()
    } else {
        let mut connection = sqlx::PgConnection::connect(url).await.unwrap();
        sqlx::query_as(SQL).fetch_all(&mut connection).await.unwrap()
    };
    rows.into_iter().collect()
}

/// The tokens of the controls that open something.
async fn openers(url: &str) -> BTreeSet<String> {
    const SQL: &str = "SELECT token FROM tokens WHERE control = 'deny_reason'";
    let rows: Vec<String> = if url.starts_with("sqlite") {
        let mut connection = sqlx::SqliteConnection::connect(url).await.unwrap();
        sqlx::query_scalar(SQL).fetch_all(&mut connection).await.unwrap()
    } else {
        let mut connection = sqlx::PgConnection::connect(url).await.unwrap();
        sqlx::query_scalar(SQL).fetch_all(&mut connection).await.unwrap()
    };
    rows.into_iter().collect()
}

/// All that is known of a card that is not as it should be.
async fn told(rig: &Rig, store: &Store, interaction: &Interaction, ts: &str) -> String {
    let id = interaction.id;
    let (cards, jobs) = store
        .read(|tx| Box::pin(async move { Ok((tx.cards_of(id).await?, tx.jobs(5000).await?)) }))
        .await
        .unwrap();
    let edits: Vec<_> = rig
        .slack
        .calls("chat.update")
        .into_iter()
        .filter(|call| call.arguments["ts"] == ts)
        .map(|call| (call.at_ms, call.arguments["text"].clone(), call.fault, call.status))
        .collect();
    let jobs: Vec<_> =
        jobs.iter().filter(|job| cards.iter().any(|card| card.id.0 == job.reference)).collect();
    format!("{interaction:#?}\n{cards:#?}\n{jobs:#?}\nnow {}\n{edits:#?}", Time::System.now_ms())
}

pub(crate) async fn check(rig: &Rig, counts: &Counts, kills: u64, seed: u64, on: Backend) {
    let store = rig.store().await;
    // No acknowledged click lost: as many outcomes as distinct clicks, none without one.
    let clicks: BTreeMap<String, i64> = store
        .read(|tx| Box::pin(async move { tx.count_clicks().await }))
        .await
        .unwrap()
        .into_iter()
        .collect();
    assert_eq!(clicks.get("stored"), None, "{clicks:?}");
    assert_eq!(clicks.get("claimed"), None, "{clicks:?}");
    let outcomes = outcomes(rig.database.url()).await;
    let openers = openers(rig.database.url()).await;
    let (mut checked, mut forms) = (0, 0);
    for delivery in rig.slack.deliveries().into_iter().filter(|delivery| delivery.status == 200) {
        let parsed = countersign::chat::slack::parse_payload(&delivery.payload());
        let presses = match parsed.what {
            Parsed::Pressed(presses) => presses,
            Parsed::Submitted(form) => {
                forms += 1;
                vec![form.pressed]
            }
            _ => continue,
        };
        // What opened a form decided nothing.
        let opens = |press: &Pressed| openers.contains(&press.token);
        for press in presses.into_iter().filter(|press| !opens(press)) {
            checked += 1;
            let state = outcomes.get(&press.dedupe_key).unwrap_or_else(|| panic!("lost: {}", delivery.raw));
            assert!(["delivered", "counted", "withdrawn", "refused"].contains(&state.as_str()), "{state}");
        }
    }

    // No answer applied twice; what we say is what the runtime recorded.
    let mine = interactions(&store).await;
    let mut answers = 0;
    let mut replays = 0;
    for interaction in &mine {
        let there = rig.a2a.interaction(&interaction.key.external).unwrap();
        assert!(there.answers.len() <= 1, "answered twice: {there:#?}");
        let ours = there.answers.iter().find(|answer| !answer.elsewhere);
        if let Phase::Settled { how, .. } = &interaction.machine.state {
            let says_ours = matches!(how, How::Ours { .. });
            assert_eq!(says_ours, ours.is_some(), "{how:?} here, {there:#?} there");
        }
        if let Some(answer) = ours {
            answers += 1;
            replays += answer.replays;
        }
    }

    // No card twice at rest, none stale.
    let mut per_interaction: BTreeMap<String, u32> = BTreeMap::new();
    for card in rig.slack.cards(RELEASES) {
        let shown = rig.slack.reads(RELEASES, &card.ts).to_lowercase();
        let interaction = mine
            .iter()
            .find(|one| shown.contains(&one.id.short()))
            .unwrap_or_else(|| panic!("a card of nobody: {shown}"));
        *per_interaction.entry(interaction.id.to_string()).or_default() += 1;
        let buttons = rig.slack.buttons(RELEASES, &card.ts);
        match &interaction.machine.state {
            Phase::Settled { how, .. } => {
                let word = how.outcome().as_str();
                let right = buttons.is_empty() && shown.contains(word);
                assert!(right, "it is {word}: {shown}\n{}", told(rig, &store, interaction, &card.ts).await);
                if let How::Ours { decision, .. } = how
                    && let Some(reason) = decision.reason()
                {
                    assert!(shown.contains(reason), "the reason is {reason}: {shown}");
                }
            }
            Phase::Open => assert!(!buttons.is_empty(), "no control on an open one: {shown}"),
            Phase::Answering(claim) => panic!("at rest with a claim: {claim:?}"),
        }
    }
    let twice: Vec<_> = per_interaction.iter().filter(|(_, count)| **count > 1).collect();
    assert!(twice.is_empty(), "cards twice at rest: {twice:?}");

    // The audit chain is whole, by the binary's own word.
    let verified = rig.command(&["audit", "verify"]).output().unwrap();
    assert_eq!(verified.status.code(), Some(0), "{}", String::from_utf8_lossy(&verified.stdout));
    let log = rig.log();
    for name in SECRETS {
        assert!(!log.contains(&env(name).unwrap()), "a secret in the log: {name}");
    }
    assert!(!log.contains("panicked"), "{log}");
    println!(
        "crash run {on:?}: seed {seed}, kills {kills}, starts {}, opened {}, acknowledged {}, not acknowledged {}, \
         acknowledged clicks checked {checked}, of them forms {forms}, canceled {}, elsewhere {}, answers {answers}, replays {replays}, cards {}, clicks {clicks:?}",
        rig.starts,
        counts.opened.load(Ordering::Relaxed),
        counts.acked.load(Ordering::Relaxed),
        counts.unacked.load(Ordering::Relaxed),
        counts.canceled.load(Ordering::Relaxed),
        counts.elsewhere.load(Ordering::Relaxed),
        per_interaction.len(),
    );
    store.close().await;
}

//! A2A conformance cases over the whole system, one test each. On SQLite: nothing here depends on the database.
//!
//! This file is two modules: `wire_a2a` over JSON-RPC, `wire_a2a_over_rest` over HTTP+JSON.

use crate::world::database::Backend;
use crate::world::logs;
use crate::world::story::{DANA, KIM, RELEASES, Story, WATCH_TOKEN, Wants, config, env};
use countersign::config::Config;
use countersign::net::Limits;
use countersign::sandbox::a2a::{
    self, Ask, AuthMode, CardSpec, Elsewhere, Foreign, INTERACTIONS_V1, Open, State, Watch, WhileWorking,
};
use countersign::sandbox::faults::{Fault, Rule};
use countersign::sandbox::slack::{Door, Manner, acme};
use countersign::store::jobs::JobKind;
use rstest::rstest;
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Duration;

/// The binding of this module.
fn binding() -> a2a::Binding {
    if module_path!().ends_with("_over_rest") { a2a::Binding::HttpJson } else { a2a::Binding::JsonRpc }
}

async fn begin() -> Story {
    with(Wants::default()).await
}

async fn with(wants: Wants) -> Story {
    on(Backend::Sqlite, wants).await
}

async fn on(backend: Backend, wants: Wants) -> Story {
    Story::with(backend, Wants { binding: binding(), ..wants }).await
}

/// Short limits, so that an answer that never comes is given up quickly in real time.
fn hasty() -> Wants {
    Wants {
        limits: Limits { connect: Duration::from_millis(500), total: Duration::from_millis(400) },
        ..Wants::default()
    }
}

const LOST: Fault = Fault::Lost { ms: 3000 };

/// Looks at the runtime every five seconds.
async fn watch_for(story: &Story, seconds: u64) {
    for _ in 0..seconds.div_ceil(5) {
        story.advance(Duration::from_secs(5));
        story.tick().await;
    }
}

/// The first interface we can speak, in card order, and its tenant in every request.
#[tokio::test]
async fn a2a_case_1_the_tenant_is_in_every_request() {
    let story = begin().await;
    story.a2a.switch(|switches| switches.bindings = vec![a2a::Binding::JsonRpc, a2a::Binding::HttpJson]);
    let at = |binding: &str, version: &str| {
        let below = if binding == "HTTP+JSON" { "/rest" } else { "" };
        let url = format!("http://{}/a2a/release{below}", story.sandbox);
        json!({"url": url, "protocolBinding": binding, "protocolVersion": version})
    };
    let (first, second) = match binding() {
        a2a::Binding::JsonRpc => ("JSONRPC", "HTTP+JSON"),
        a2a::Binding::HttpJson => ("HTTP+JSON", "JSONRPC"),
    };
    let mut chosen = at(first, "1.0.3");
    chosen["tenant"] = "blue".into();
    let mut later = at(second, "1.0");
    later["tenant"] = "red".into();
    let interfaces = json!([at("GRPC", "1.0"), at(first, "0.3"), chosen, later]);
    let tenant = Some("blue".to_owned());
    story.a2a.set_card("release", CardSpec { interfaces: Some(interfaces), tenant, ..CardSpec::default() });
    let (ask, card) = story.asked("deploy_service").await;
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver().await;
    assert_eq!(story.recorded(&ask).len(), 1);
    for method in ["ListTasks", "GetTask", "SendMessage"] {
        let sent = story.a2a.requests_of(method);
        assert!(!sent.is_empty(), "{method}");
        assert!(sent.iter().all(|one| one.param("/tenant") == Some(&json!("blue"))), "{method}: {sent:#?}");
        let by_rest = binding() == a2a::Binding::HttpJson;
        assert!(sent.iter().all(|one| one.line.contains("/release/rest/blue/") == by_rest), "{sent:#?}");
    }
    story.end().await;
}

/// Where the interface has no tenant, no request has one.
#[tokio::test]
async fn a2a_case_1_no_tenant_where_there_is_none() {
    let story = begin().await;
    let (_, card) = story.asked("deploy_service").await;
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver().await;
    assert!(story.a2a.requests().iter().all(|one| one.param("/tenant").is_none()));
    story.end().await;
}

#[tokio::test]
async fn a2a_case_3_version_and_extension_on_the_whole_way() {
    let story = begin().await;
    let (_, card) = story.asked("deploy_service").await;
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver().await;
    let requests = story.a2a.requests();
    for method in ["card", "ListTasks", "GetTask", "SendMessage"] {
        assert!(requests.iter().any(|one| one.method == method), "{method}");
    }
    for one in requests {
        assert_eq!(one.headers.get("a2a-version").map(String::as_str), Some("1.0"), "{}", one.line);
        assert_eq!(
            one.headers.get("a2a-extensions").map(String::as_str),
            Some(INTERACTIONS_V1),
            "{}",
            one.line
        );
    }
    story.end().await;
}

/// Listed, registered once and once more, and read again: one card.
#[rstest]
#[tokio::test]
async fn a2a_case_8_listed_and_registered_is_one_card(
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
    #[values(true, false)] registered_first: bool,
) {
    let story = self::on(on, Wants::default()).await;
    let ask = story.asks("deploy_service");
    if registered_first {
        story.a2a.unlist(&ask.task_id, true);
        story.registers(&ask, Some(DANA)).await;
        story.tick().await;
        assert_eq!(story.slack.cards(RELEASES).len(), 1, "found by its registration alone");
        story.a2a.unlist(&ask.task_id, false);
    } else {
        story.tick().await;
        story.registers(&ask, None).await;
    }
    story.registers(&ask, Some(DANA)).await;
    watch_for(&story, 20).await;
    assert_eq!(story.slack.cards(RELEASES).len(), 1);
    assert!(!story.a2a.requests_of("GetTask").is_empty());
    let card = story.card(RELEASES);
    let shown = story.reads(&card);
    for part in ["approve ci / deploy_service?", "ci", "deploy_service"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    story.presses("U0KIM", &card, "Approve").await;
    story.deliver().await;
    assert_eq!(story.recorded(&ask), [(KIM.to_owned(), true)]);
    story.end().await;
}

/// A question is shown, for now without controls, and says where to answer.
#[tokio::test]
async fn a2a_case_9_a_question_is_shown_read_only() {
    let story = begin().await;
    story.a2a.open(Open::new(DANA, Ask::question("Which region?")));
    story.tick().await;
    let card = story.card(RELEASES);
    let shown = story.reads(&card);
    assert!(shown.contains("which region?") && shown.contains("question"), "{shown}");
    assert!(shown.contains("cannot be answered here yet"), "{shown}");
    assert!(story.buttons(&card).is_empty());
    story.end().await;
}

/// A connection request is shown, for now without controls, and never as an approval.
#[tokio::test]
async fn a2a_case_10_a_connection_is_shown_read_only() {
    let story = begin().await;
    let ask = story.a2a.open(Open::new(DANA, Ask::connection("github", "to read issues")));
    story.tick().await;
    let card = story.card(RELEASES);
    let shown = story.reads(&card);
    assert!(shown.contains("github") && shown.contains("to read issues"), "{shown}");
    assert!(shown.contains("connection"), "{shown}");
    assert!(story.buttons(&card).is_empty());
    // It is connected in the product: the card ends.
    let elsewhere = Elsewhere {
        subject: DANA.into(),
        decision: a2a::Decision::Connected(true),
        history: false,
        message_id: None,
    };
    assert!(story.a2a.answer_elsewhere(&ask.interaction_id, elsewhere));
    watch_for(&story, 10).await;
    assert!(story.reads(&card).contains("elsewhere"), "{}", story.reads(&card));
    story.end().await;
}

/// A pause without the extension's data, and one of an unknown kind: shown, without any control.
#[rstest]
#[case(Ask::plain("Sign in to the vault first.", State::AuthRequired))]
#[case(Ask::unknown("ritual", "Sign in to the vault first.", State::AuthRequired))]
#[tokio::test]
async fn a2a_case_11_what_is_not_understood_has_no_control(#[case] ask: Ask) {
    let story = begin().await;
    story.a2a.open(Open::new(DANA, ask));
    story.tick().await;
    watch_for(&story, 10).await;
    let card = story.card(RELEASES);
    assert!(story.reads(&card).contains("sign in to the vault first."), "{}", story.reads(&card));
    assert!(story.buttons(&card).is_empty());
    assert_eq!(story.slack.cards(RELEASES).len(), 1);
    assert!(story.a2a.requests_of("SendMessage").is_empty());
    story.end().await;
}

#[tokio::test]
async fn a2a_case_12_a_round_trip_of_numbers_edits_nothing() {
    let story = begin().await;
    let ask = Ask::approval("ci", "deploy_service")
        .detail("count", json!(1))
        .detail("nested", json!({"b": 2, "a": 1}));
    story.a2a.open(Open::new(DANA, ask));
    story.tick().await;
    story.a2a.switch(|switches| switches.round_trip = true);
    watch_for(&story, 15).await;
    assert!(story.slack.calls("chat.update").is_empty());
    let card = story.card(RELEASES);
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver().await;
    assert!(story.reads(&card).contains("approved by"), "{}", story.reads(&card));
    story.end().await;
}

/// People write under a card: it is no answer, whatever they write.
#[tokio::test]
async fn a2a_case_19_what_is_written_under_a_card_is_no_answer() {
    let story = begin().await;
    let (ask, card) = story.asked("deploy_service").await;
    let question = story.a2a.open(Open::new(DANA, Ask::question("Which region?")));
    story.pass(Duration::from_secs(2)).await;
    story.tick().await;
    for text in ["approve", "yes", "eu"] {
        let ts = story.slack.say("U0DANA", RELEASES, text);
        let event = json!({"type": "message", "user": "U0DANA", "channel": RELEASES, "text": text,
            "ts": ts, "thread_ts": card.ts});
        assert!(story.slack.event(acme::TEAM, &event, None).await.unwrap().acked());
    }
    watch_for(&story, 10).await;
    assert!(story.a2a.requests_of("SendMessage").is_empty());
    assert_eq!(story.recorded(&ask), []);
    assert_eq!(story.recorded(&question), []);
    assert_eq!(story.buttons(&card), ["Approve", "Deny", "Deny with reason…"]);
    story.end().await;
}

/// The task waits for something else by now: nothing is sent for the old card, and the new one comes.
#[tokio::test]
async fn a2a_case_22_the_next_interaction_is_shown_and_the_old_one_not_answered() {
    let story = begin().await;
    let mut open = Open::new(DANA, Ask::approval("ci", "first"));
    open.queue = vec![Ask::approval("ci", "second")];
    let ask = story.a2a.open(open);
    story.tick().await;
    let first = story.card(RELEASES);
    let elsewhere = Elsewhere {
        subject: DANA.into(),
        decision: a2a::Decision::Approved(true),
        history: false,
        message_id: None,
    };
    assert!(story.a2a.answer_elsewhere(&ask.interaction_id, elsewhere));
    story.presses("U0DANA", &first, "Deny").await;
    story.deliver().await;
    watch_for(&story, 5).await;
    assert!(story.a2a.requests_of("SendMessage").is_empty());
    assert!(story.reads(&first).contains("elsewhere"), "{}", story.reads(&first));
    assert!(story.buttons(&first).is_empty());
    assert_eq!(story.told("U0DANA").len(), 1);
    let second = story.card(RELEASES);
    assert!(story.reads(&second).contains("second"));
    assert_eq!(story.buttons(&second), ["Approve", "Deny", "Deny with reason…"]);
    story.end().await;
}

/// Killed before the reply, and killed before it was sent: the same message, one application, ours.
#[rstest]
#[case(true)]
#[case(false)]
#[tokio::test]
async fn a2a_case_26_killed_before_the_reply(
    #[case] sent: bool,
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
) {
    let mut story = self::on(on, hasty()).await;
    let (ask, card) = story.asked("deploy_service").await;
    if sent {
        story.a2a.faults().add(Rule::next("SendMessage", LOST));
    }
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver_only(&[JobKind::Decide]).await;
    if sent {
        story.deliver_only(&[JobKind::Answer]).await;
        assert_eq!(story.recorded(&ask).len(), 1, "applied, and we do not know");
    }
    story.restart().await;
    story.pass(Duration::from_secs(30)).await;
    assert_eq!(story.recorded(&ask), [(DANA.to_owned(), true)]);
    assert!(story.reads(&card).contains("approved by"), "{}", story.reads(&card));
    let sends = story.a2a.requests_of("SendMessage");
    assert_eq!(sends.len(), if sent { 2 } else { 1 });
    assert!(sends.iter().all(|one| one.param("/message") == sends.first().unwrap().param("/message")));
    story.end().await;
}

/// A server that would take a repeat as something new: read first, never sent again after the end, and
/// ours only if the history says so.
#[rstest]
#[case(true)]
#[case(false)]
#[tokio::test]
async fn a2a_case_27_without_deduplication_it_is_read_first(#[case] in_history: bool) {
    let story = with(Wants { runtime: "dedupe = false", ..hasty() }).await;
    story.a2a.switch(|switches| {
        switches.dedupe = false;
        switches.while_working = WhileWorking::Accept;
        switches.approvals_in_history = in_history;
    });
    let (ask, card) = story.asked("deploy_service").await;
    story.a2a.faults().add(Rule::next("SendMessage", LOST));
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver().await;
    story.pass(Duration::from_secs(90)).await;
    story.tick().await;
    assert_eq!(story.a2a.requests_of("SendMessage").len(), 1, "never sent again after it had ended");
    assert_eq!(story.recorded(&ask).len(), 1);
    let shown = story.reads(&card);
    assert_eq!(shown.contains("approved by"), in_history, "{shown}");
    let told = story.told("U0DANA");
    assert_eq!(told.iter().any(|text| text.contains("could be confirmed")), !in_history, "{told:?}");
    assert!(story.buttons(&card).is_empty());
    story.end().await;
}

/// Nobody can be configured who could not be carried; an unlinked person is told, and nothing is sent.
#[rstest]
#[case("host".to_owned())]
#[case("installation".to_owned())]
#[case("x".repeat(201))]
#[case("dána@example.com".to_owned())]
#[tokio::test]
async fn a2a_case_33_a_subject_that_cannot_be_carried_is_refused(#[case] subject: String) {
    let folder = tempfile::tempdir().unwrap();
    let address = "127.0.0.1:9".parse().unwrap();
    let text = config(&Wants::default(), address, address, "sqlite::memory:", &folder);
    let text = text.replace("subject = \"guest@example.com\"", &format!("subject = {subject:?}"));
    let findings = Config::parse(&text, &env).unwrap_err().to_string();
    assert!(findings.contains("subject"), "{findings}");
}

#[tokio::test]
async fn a2a_case_33_an_unmapped_person_is_told_privately() {
    let story = begin().await;
    let (ask, card) = story.asked("deploy_service").await;
    story.presses("U0SAM", &card, "Approve").await;
    story.deliver().await;
    assert_eq!(story.recorded(&ask), []);
    assert!(story.a2a.requests_of("SendMessage").is_empty());
    assert_eq!(story.told("U0SAM").len(), 1);
    story.end().await;
}

/// Our tokens are refused: a fresh one at once, then operators and the presser are told, once a minute it
/// is tried again, and it arrives when the runtime trusts us.
#[tokio::test]
async fn a2a_case_35_a_refused_token_is_no_loop() {
    let story = begin().await;
    let (ask, card) = story.asked("deploy_service").await;
    let watchers = || BTreeMap::from([(WATCH_TOKEN.to_owned(), Watch::All)]);
    story.a2a.set_auth(vec![], watchers());
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver().await;
    assert_eq!(story.a2a.requests_of("SendMessage").len(), 2, "one retry with a fresh token");
    story.pass(Duration::from_secs(55)).await;
    assert_eq!(story.a2a.requests_of("SendMessage").len(), 2, "no loop");
    story.pass(Duration::from_mins(5)).await;
    let tries = story.a2a.requests_of("SendMessage").len();
    assert!((8..=14).contains(&tries), "about once a minute: {tries}");
    assert_eq!(story.alerts().await.len(), 1, "{:?}", story.alerts().await);
    let told = story.told("U0DANA");
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told.iter().all(|text| text.contains("Operators")), "{told:?}");
    assert!(story.reads(&card).contains("delivering"));
    let jwks = a2a::Jwks::Url(format!("http://{}/.well-known/jwks.json", story.address));
    let jwt =
        AuthMode::Jwt { issuer: "https://countersign.test".into(), audience: "prod-agents".into(), jwks };
    story.a2a.set_auth(vec![jwt], watchers());
    story.pass(Duration::from_secs(65)).await;
    assert_eq!(story.recorded(&ask), [(DANA.to_owned(), true)]);
    assert!(story.reads(&card).contains("approved by"));
    assert_eq!(story.alerts().await.len(), 0, "{:?}", story.alerts().await);
    story.end().await;
}

/// A runtime that cannot list: registered tasks are watched, and the list is asked for once an hour.
#[tokio::test]
async fn a2a_case_38_without_lists_registrations_are_watched() {
    let story = begin().await;
    story.a2a.switch(|switches| switches.list_tasks = false);
    let ask = story.asks("deploy_service");
    story.tick().await;
    assert_eq!(story.slack.cards(RELEASES).len(), 0);
    story.registers(&ask, None).await;
    watch_for(&story, 600).await;
    let card = story.card(RELEASES);
    let lists = story.a2a.requests_of("ListTasks").len();
    assert!(lists <= 2, "one call a state at most: {lists}");
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver().await;
    assert_eq!(story.recorded(&ask).len(), 1);
    story.advance(Duration::from_hours(1));
    story.tick().await;
    let later = story.a2a.requests_of("ListTasks").len();
    assert!(later > lists && later <= 2 * lists, "{later}");
    story.end().await;
}

/// Somebody else's answer in the history is shown, as answered elsewhere.
#[tokio::test]
async fn a2a_case_50_an_answer_in_the_history_is_shown_as_elsewhere() {
    let story = begin().await;
    let (ask, card) = story.asked("deploy_service").await;
    let elsewhere = Elsewhere {
        subject: KIM.into(),
        decision: a2a::Decision::Approved(false),
        history: true,
        message_id: None,
    };
    assert!(story.a2a.answer_elsewhere(&ask.interaction_id, elsewhere));
    story.tick().await;
    story.pass(Duration::from_secs(2)).await;
    let shown = story.reads(&card);
    assert!(shown.contains("answered elsewhere") && shown.contains("deny"), "{shown}");
    assert!(story.buttons(&card).is_empty());
    story.end().await;
}

/// Missing from the list is no end; one not-found that is followed by the task is none either, however often.
#[tokio::test]
async fn a2a_case_51_absence_that_is_contradicted_closes_nothing() {
    let story = begin().await;
    let (ask, card) = story.asked("deploy_service").await;
    story.a2a.unlist(&ask.task_id, true);
    watch_for(&story, 30).await;
    assert_eq!(story.buttons(&card), ["Approve", "Deny", "Deny with reason…"]);
    for _ in 0..3 {
        story.a2a.faults().add(Rule::next("GetTask", Fault::Refuse { error: "-32001".into() }));
        story.advance(Duration::from_secs(11));
        story.tick().await;
        story.advance(Duration::from_secs(11));
        story.tick().await;
        assert_eq!(story.buttons(&card), ["Approve", "Deny", "Deny with reason…"], "{}", story.reads(&card));
    }
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver().await;
    assert_eq!(story.recorded(&ask).len(), 1);
    story.end().await;
}

/// The runtime took our answer and goes on showing it as open: the buttons return; the truth comes later.
#[tokio::test]
async fn a2a_case_52_a_state_that_stays_old_brings_the_buttons_back() {
    let story = begin().await;
    story.a2a.switch(|switches| switches.stale_reads_ms = 120_000);
    let (ask, card) = story.asked("deploy_service").await;
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver().await;
    watch_for(&story, 20).await;
    assert!(story.buttons(&card).is_empty(), "not within 30 s: {}", story.reads(&card));
    watch_for(&story, 60).await;
    assert_eq!(story.buttons(&card), ["Approve", "Deny", "Deny with reason…"], "{}", story.reads(&card));
    let events: Vec<String> = story.audit().await.into_iter().map(|row| row.event).collect();
    assert!(events.iter().any(|event| event == "reopened"), "{events:?}");
    watch_for(&story, 60).await;
    story.pass(Duration::from_secs(5)).await;
    assert!(story.buttons(&card).is_empty(), "{}", story.reads(&card));
    assert_eq!(story.recorded(&ask), [(DANA.to_owned(), true)]);
    story.end().await;
}

#[tokio::test]
async fn a2a_case_53_a_message_in_the_place_of_a_task_is_followed_by_a_reading() {
    let story = begin().await;
    story.a2a.switch(|switches| switches.answer_with_message = true);
    let (ask, card) = story.asked("deploy_service").await;
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver().await;
    story.pass(Duration::from_secs(5)).await;
    assert_eq!(story.recorded(&ask), [(DANA.to_owned(), true)]);
    assert!(story.reads(&card).contains("approved by"), "{}", story.reads(&card));
    let methods: Vec<String> = story.a2a.requests().into_iter().map(|one| one.method).collect();
    let sent = methods.iter().position(|method| method == "SendMessage").unwrap();
    assert!(methods.iter().skip(sent).any(|method| method == "GetTask"), "{methods:?}");
    story.end().await;
}

/// A server that does not return at once: the press is acknowledged, the outcome unknown, the same message
/// goes again, and it is ours.
#[tokio::test]
async fn a2a_case_54_a_blocking_server() {
    let story = with(hasty()).await;
    story.a2a.switch(|switches| {
        switches.blocking = true;
        switches.block_ms = 1500;
    });
    let (ask, card) = story.asked("deploy_service").await;
    let pressed = story.presses("U0DANA", &card, "Approve").await;
    assert!(pressed.took_ms < 1000, "{}", pressed.took_ms);
    story.deliver().await;
    assert_eq!(story.recorded(&ask).len(), 1, "it was taken");
    assert!(story.a2a.end(&ask.task_id, State::Completed, None));
    story.pass(Duration::from_secs(40)).await;
    assert!(story.reads(&card).contains("approved by"), "{}", story.reads(&card));
    let sends = story.a2a.requests_of("SendMessage");
    assert!(sends.len() >= 2, "{}", sends.len());
    assert!(sends.iter().all(|one| one.param("/message") == sends.first().unwrap().param("/message")));
    assert_eq!(story.recorded(&ask).len(), 1);
    story.end().await;
}

#[tokio::test]
async fn a2a_case_54_too_many_requests() {
    let story = begin().await;
    let (ask, card) = story.asked("deploy_service").await;
    let fault = Fault::Status { code: 429, retry_after: Some(2), body: None };
    story.a2a.faults().add(Rule::next("SendMessage", fault));
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver().await;
    story.pass(Duration::from_secs(6)).await;
    assert_eq!(story.recorded(&ask).len(), 1);
    let sends = story.a2a.requests_of("SendMessage");
    let [first, second] = sends.as_slice() else { panic!("{}", sends.len()) };
    assert!(second.at_ms - first.at_ms >= 2000, "{}", second.at_ms - first.at_ms);
    assert_eq!(first.param("/message"), second.param("/message"));
    story.end().await;
}

/// Whatever happens, Countersign reads and answers, and asks a runtime for nothing else. [`Story::end`]
/// looks for CancelTask after every story.
#[tokio::test]
async fn a2a_case_55_only_readings_and_answers_are_sent() {
    let story = begin().await;
    let (_, denied) = story.asked("first").await;
    story.presses("U0DANA", &denied, "Deny").await;
    story.deliver().await;
    story.pass(Duration::from_secs(2)).await;
    let (gone, _) = story.asked("second").await;
    story.a2a.delete(&gone.task_id);
    watch_for(&story, 30).await;
    let asked: std::collections::BTreeSet<String> =
        story.a2a.requests().into_iter().map(|one| one.method).collect();
    let known = ["GetTask", "ListTasks", "SendMessage", "card"].map(str::to_owned);
    assert_eq!(asked, known.into_iter().collect());
    story.end().await;
}

/// The connection to the runtime is wrong: the claim stays, one alert, the presser is told once; mended, it
/// is delivered.
#[rstest]
#[case("-32008")]
#[case("-32009")]
#[case("-32601")]
#[tokio::test]
async fn a2a_case_65_a_configuration_error_keeps_the_claim(#[case] code: &str) {
    let story = begin().await;
    let (ask, card) = story.asked("deploy_service").await;
    story.a2a.faults().add(Rule::always("SendMessage", Fault::Refuse { error: code.into() }));
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver().await;
    story.pass(Duration::from_secs(200)).await;
    assert_eq!(story.recorded(&ask), []);
    let alerts = story.alerts().await;
    assert_eq!(alerts.len(), 1, "{alerts:?}");
    let told = story.told("U0DANA");
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(story.reads(&card).contains("delivering"), "{}", story.reads(&card));
    story.a2a.faults().clear();
    story.pass(Duration::from_secs(65)).await;
    assert_eq!(story.recorded(&ask), [(DANA.to_owned(), true)]);
    assert!(story.reads(&card).contains("approved by"));
    story.end().await;
}

/// Trouble with credentials on every side is logged, and no credential with it: [`Story::end`] searches
/// the logs, what people read, what was sent and the audit log after every story. Slack case 60.
#[tokio::test]
async fn a2a_case_66_trouble_is_logged_without_credentials() {
    let story = begin().await;
    let (_, card) = story.asked("deploy_service").await;
    story.a2a.set_auth(vec![], BTreeMap::new());
    story.slack.faults().add(Rule::next("chat.update", Fault::Refuse { error: "token_revoked".into() }));
    story
        .slack
        .faults()
        .add(Rule::next("response_url", Fault::Status { code: 404, retry_after: None, body: None }));
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver().await;
    story.watch().await;
    let garbled =
        story.slack.deliver_bytes(Door::Interactivity, b"payload=%7B".to_vec(), &Manner::default()).await;
    assert!(garbled.iter().all(|one| one.status == 400), "{garbled:?}");
    assert!(!logs::with("cannot be watched").is_empty());
    assert!(!logs::with("could not be read").is_empty());
    story.a2a.set_auth(vec![], BTreeMap::from([(WATCH_TOKEN.to_owned(), Watch::All)]));
    story.a2a.end(&story_task(&story), State::Canceled, None);
    watch_for(&story, 130).await;
    assert!(story.reads(&card).contains("canceled"), "{}", story.reads(&card));
    story.end().await;
}

fn story_task(story: &Story) -> String {
    story.a2a.dump()["tasks"][0]["id"].as_str().unwrap().to_owned()
}

/// Two subjects' tasks: each is listed as that subject, one card each. One who is no longer watched: the
/// open card stays until a reading shows the end.
#[tokio::test]
async fn a2a_case_70_two_watched_subjects() {
    let wants = Wants {
        foreign: Foreign::NotFound,
        runtime: "watch_as = [\"dana@example.com\", \"kim@example.com\"]",
        ..Wants::default()
    };
    let mut story = with(wants).await;
    let dana = story.a2a.open(Open::new(DANA, Ask::approval("ci", "of_dana")));
    let kim = story.a2a.open(Open::new(KIM, Ask::approval("ci", "of_kim")));
    story.tick().await;
    story.pass(Duration::from_secs(3)).await;
    let cards = story.slack.cards(RELEASES);
    assert_eq!(cards.len(), 2);
    let mut listed: Vec<_> =
        story.a2a.requests_of("ListTasks").into_iter().filter_map(|one| one.subject).collect();
    listed.sort();
    listed.dedup();
    assert_eq!(listed, [DANA, KIM]);
    let of_kim = cards.iter().find(|card| story.reads(card).contains("of_kim")).unwrap();
    story
        .restart_with(|config| {
            config.replace(
                "watch_as = [\"dana@example.com\", \"kim@example.com\"]",
                "watch_as = [\"dana@example.com\"]",
            )
        })
        .await;
    watch_for(&story, 60).await;
    assert_eq!(
        story.buttons(of_kim),
        ["Approve", "Deny", "Deny with reason…"],
        "absence closes nothing: {}",
        story.reads(of_kim)
    );
    assert!(story.a2a.end(&kim.task_id, State::Canceled, None));
    watch_for(&story, 10).await;
    assert!(story.reads(of_kim).contains("canceled"), "{}", story.reads(of_kim));
    assert_eq!(story.recorded(&dana), []);
    story.end().await;
}

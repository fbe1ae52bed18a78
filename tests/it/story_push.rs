//! Tasks about which the runtime calls us: a call is a hint, a reading is the truth.

use crate::world::database::Backend;
use crate::world::follow::Following;
use crate::world::logs;
use crate::world::story::{DANA, RELEASES, Story};
use countersign::sandbox::a2a::{Ask, Binding, Decision, Elsewhere, Open, Opened, Push, State};
use countersign::sandbox::faults::{Fault, Rule};
use countersign::sandbox::slack::Message;
use rstest::rstest;
use serde_json::json;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A story whose runtime calls, and has no streams.
async fn begin(on: Backend) -> Story {
    let story = Story::begin(on).await;
    story.offers(false, true);
    story
}

/// An interaction on a card, about whose task the runtime was asked to call.
async fn asked(story: &Story) -> (Opened, Message, Following) {
    let following = story.follows();
    let (opened, card) = story.asked("deploy_service").await;
    registered(story, &opened).await;
    (opened, card, following)
}

/// Waits until the runtime was asked to call, and the reading that goes with it is over.
async fn registered(story: &Story, opened: &Opened) {
    let task = opened.task_id.clone();
    story
        .until_worked("a configuration and a reading", || {
            story.a2a.push_configs().iter().any(|config| config.task_id == task)
                && story.count("GetTask") >= 1
        })
        .await;
}

fn reads(story: &Story, card: &Message, word: &str) -> bool {
    story.reads(card).contains(word)
}

/// How often Slack was asked to change a message.
fn edits(story: &Story) -> usize {
    story.slack.payloads().iter().filter(|payload| payload.method == "chat.update").count()
}

/// A2A cases 3, 8, 57, 59: asked to call once per task with an id of ours, it tells of the end, and is asked no more.
#[rstest]
#[case(State::Canceled, "canceled")]
#[case(State::Working, "elsewhere")]
#[tokio::test]
async fn a_call_leads_to_a_reading(
    #[case] state: State,
    #[case] word: &str,
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
) {
    let story = begin(on).await;
    let (opened, card, following) = asked(&story).await;
    story.tick().await;
    assert_eq!(story.slack.cards(RELEASES).len(), 1, "seen by list and call, one card");
    let (listed, read) = (story.count("ListTasks"), story.count("GetTask"));
    assert!(story.a2a.end(&opened.task_id, state, None));
    story.in_time(word, || reads(&story, &card, word)).await;
    assert_eq!(story.a2a.pushed(), [(opened.task_id.clone(), 204)]);
    assert_eq!((story.count("ListTasks"), story.count("GetTask")), (listed, read + 1), "one reading");
    story.until_worked("the configuration is deleted", || story.a2a.push_configs().is_empty()).await;
    story.until_worked("it was asked for", || story.count("DeleteTaskPushNotificationConfig") == 1).await;
    let created = story.a2a.requests_of("CreateTaskPushNotificationConfig");
    assert_eq!(created.len(), 1);
    assert_eq!(created[0].headers["a2a-version"], "1.0");
    assert!(created[0].headers["a2a-extensions"].contains("interactions/v1"));
    assert!(created[0].param("/id").unwrap().as_str().unwrap().starts_with("cs-"));
    drop(following);
    story.end().await;
}

/// Held calls one after another: the runtime calls, and every next question is shown at once.
#[rstest]
#[tokio::test]
async fn three_in_a_row(
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
    #[values(Binding::JsonRpc, Binding::HttpJson)] binding: Binding,
) {
    let story = begin(on).await;
    story.a2a.switch(|switches| switches.bindings = vec![binding]);
    story.a2a.switch(|switches| switches.answer_with_message = true);
    let following = story.follows();
    let mut open = Open::new(DANA, Ask::approval("ci", "one"));
    open.queue = vec![Ask::approval("ci", "two"), Ask::approval("ci", "three")];
    let opened = story.a2a.open(open);
    story.tick().await;
    registered(&story, &opened).await;
    let listed = story.count("ListTasks");
    for (nth, tool) in ["one", "two", "three"].into_iter().enumerate() {
        story.in_time(tool, || story.slack.cards(RELEASES).len() == nth + 1).await;
        let card = story.card(RELEASES);
        assert!(reads(&story, &card, tool), "{}", story.reads(&card));
        story.presses("U0DANA", &card, "Approve").await;
        story.in_time("approved", || reads(&story, &card, "approved by")).await;
    }
    assert_eq!(story.count("ListTasks"), listed);
    drop(following);
    story.end().await;
}

/// A2A case 58: copies, wrong order and lies lead to readings, and to one edit at most.
#[rstest]
#[tokio::test]
async fn repeated_reordered_and_lying(
    #[values(Push::Duplicating, Push::Reordering, Push::Lying)] push: Push,
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
) {
    let story = begin(on).await;
    let (opened, card, following) = asked(&story).await;
    story.a2a.switch(|switches| switches.push = push);
    // It is asked for other words, and back: two calls, whatever they claim.
    let before = edits(&story);
    for prompt in ["Approve it really?", "Approve ci / deploy_service?"] {
        story.a2a.change(&opened.interaction_id, |ask| ask.prompt = Some(prompt.into()));
    }
    let calls = if push == Push::Duplicating { 6 } else { 2 };
    story.until_worked("the calls", || story.a2a.pushed().len() >= calls).await;
    story.tick().await;
    assert!(story.a2a.pushed().iter().all(|(_, status)| *status == 204), "{:?}", story.a2a.pushed());
    assert_eq!(story.buttons(&card), ["Approve", "Deny", "Deny with reason…"], "GetTask says open");
    assert!(edits(&story) <= before + 2);
    let before = edits(&story);
    assert!(story.a2a.end(&opened.task_id, State::Canceled, None));
    story.in_time("canceled", || reads(&story, &card, "canceled")).await;
    story.tick().await;
    assert_eq!(edits(&story), before + 1);
    drop(following);
    story.end().await;
}

/// What the runtime was told, by looking over its shoulder.
type Told = Arc<Mutex<Vec<serde_json::Value>>>;

/// The secrets of the next configuration, caught on their way; the runtime itself then does not call.
async fn caught(story: &Story) -> (Told, tokio::task::JoinHandle<()>, String) {
    let told: Told = Arc::default();
    let (kept, sandbox) = (Arc::clone(&told), story.sandbox);
    let client = countersign::net::client(countersign::net::Limits::default()).unwrap();
    let app = axum::Router::new().fallback(move |request: axum::extract::Request| {
        let (kept, client) = (Arc::clone(&kept), client.clone());
        async move {
            let (parts, body) = request.into_parts();
            let mut body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
            if let Ok(mut json) = serde_json::from_slice::<serde_json::Value>(&body)
                && json["method"] == "CreateTaskPushNotificationConfig"
            {
                kept.lock().unwrap().push(json["params"].clone());
                json["params"]["url"] = "http://127.0.0.1:9/nobody".into();
                body = json.to_string().into_bytes().into();
            }
            let path = parts.uri.path_and_query().unwrap().as_str();
            let mut headers = parts.headers;
            headers.remove("host");
            headers.remove("content-length");
            let sent = client
                .request(parts.method, format!("http://{sandbox}{path}"))
                .headers(headers)
                .body(body)
                .send()
                .await
                .unwrap();
            let status = sent.status();
            let kind = sent.headers().get("content-type").cloned();
            let mut answer =
                axum::response::Response::new(axum::body::Body::from(sent.bytes().await.unwrap()));
            *answer.status_mut() = status;
            if let Some(kind) = kind {
                answer.headers_mut().insert("content-type", kind);
            }
            answer
        }
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    #[expect(clippy::disallowed_methods, reason = "a test's own server, aborted at its end")]
    let server = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    (told, server, address)
}

/// A2A cases 57, 58, 66: our door takes what is meant for it and refuses the rest, in order, without a reading.
#[rstest]
#[tokio::test]
async fn the_door(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let mut story = begin(on).await;
    let (told, server, address) = caught(&story).await;
    let sandbox = story.sandbox;
    story
        .restart_with(|config| {
            config.replace(
                &format!("endpoint = \"http://{sandbox}/a2a/release\""),
                &format!("endpoint = \"{address}/a2a/release\""),
            )
        })
        .await;
    // Without a card's interfaces the endpoint is used, which is the one that listens.
    let mut card = countersign::sandbox::a2a::CardSpec { push: true, ..Default::default() };
    card.interfaces = Some(json!([]));
    story.a2a.set_card("release", card);
    let (opened, card, following) = asked(&story).await;
    let config = told.lock().unwrap()[0].clone();
    let text = |at: &str| config.pointer(at).unwrap().as_str().unwrap().to_owned();
    let (url, token, credential) = (text("/url"), text("/token"), text("/authentication/credentials"));
    assert_eq!(text("/authentication/scheme"), "Bearer");
    assert_eq!((credential.len(), token.len()), (64, 64), "32 random bytes each");
    let base = format!("http://{}", story.address);
    let path = url.strip_prefix(&base).unwrap().to_owned();
    let secret = path.strip_prefix("/hooks/a2a/").unwrap().to_owned();
    assert_eq!(secret.len(), 64);
    drop(following);

    let bearer = format!("Bearer {credential}");
    let right: Vec<(&str, &str)> = vec![("authorization", &bearer), ("x-a2a-notification-token", &token)];
    let without_token: Vec<(&str, &str)> = vec![("authorization", &bearer)];
    let update = json!({"statusUpdate": {"taskId": opened.task_id, "contextId": "x",
        "status": {"state": "TASK_STATE_COMPLETED"}}})
    .to_string();
    let send = async |path: &str, headers: &[(&str, &str)], body: String| {
        story.http("POST", path, headers, body.into_bytes()).await.0
    };
    let calls = async || story.asked_for().len();
    // The reading that goes with the registration may still be to be noted.
    story.service.bridge.read_due("prod").await.unwrap();
    let before = calls().await;
    assert_eq!(send("/hooks/a2a/nobody", &right, update.clone()).await, 404);
    assert_eq!(send(&format!("{path}0"), &right, update.clone()).await, 404);
    assert_eq!(send(&path, &[], update.clone()).await, 401);
    assert_eq!(send(&path, &[("authorization", "Bearer nonsense")], update.clone()).await, 401);
    assert_eq!(send(&path, &[("authorization", &format!("Basic {credential}"))], update.clone()).await, 401);
    let wrong_token = [("authorization", bearer.as_str()), ("x-a2a-notification-token", "nonsense")];
    assert_eq!(send(&path, &wrong_token, update.clone()).await, 401);
    let large = format!("{{\"task\":{{\"id\":\"{}\"}}}}", "x".repeat(1024 * 1024));
    assert_eq!(send(&path, &right, large.clone()).await, 413);
    assert_eq!(send(&path, &[], large).await, 401, "who calls is checked before what is said");
    for bad in ["", "[]", "{}", "{\"other\":{}}"] {
        assert_eq!(send(&path, &right, bad.into()).await, 400, "{bad}");
    }
    assert_eq!(send(&path, &right, json!({"task": {"id": "another"}}).to_string()).await, 404);
    assert_eq!(send(&path, &right, json!({"message": {"parts": []}}).to_string()).await, 404);
    assert_eq!(story.http("GET", &path, &right, vec![]).await.0, 405);
    story.service.bridge.read_due("prod").await.unwrap();
    assert_eq!(calls().await, before, "nothing was read");

    // Ten of them, claiming an end that is none, on the way to one reading.
    for nth in 0..10 {
        let headers = if nth % 2 == 0 { &right } else { &without_token };
        assert_eq!(send(&path, headers, update.clone()).await, 204);
    }
    story.service.bridge.read_due("prod").await.unwrap();
    story.service.bridge.read_due("prod").await.unwrap();
    assert_eq!(calls().await, before + 1, "one reading for ten calls");
    story.deliver().await;
    assert_eq!(story.buttons(&card), ["Approve", "Deny", "Deny with reason…"]);
    // Every other kind is a hint as well, and survives a restart.
    for body in [
        json!({"task": {"id": opened.task_id}}),
        json!({"message": {"taskId": opened.task_id}}),
        json!({"artifactUpdate": {"taskId": opened.task_id}}),
    ] {
        assert_eq!(send(&path, &right, body.to_string()).await, 204);
    }
    story.a2a.end(&opened.task_id, State::Canceled, None);
    story.restart().await;
    story.service.bridge.read_due("prod").await.unwrap();
    story.deliver().await;
    assert!(reads(&story, &card, "canceled"), "{}", story.reads(&card));
    // Too many at once.
    let mut refused = 0;
    for _ in 0..80 {
        refused += usize::from(story.http("POST", &path, &right, update.clone().into_bytes()).await.0 == 429);
    }
    assert!(refused >= 10, "{refused}");

    let following = story.follows();
    story
        .until_worked("it is not to call any more", || story.count("DeleteTaskPushNotificationConfig") == 1)
        .await;
    assert_eq!(story.http("POST", &path, &right, update.into_bytes()).await.0, 404);
    drop(following);
    for secret in [&secret, &token, &credential] {
        assert!(logs::with(secret).is_empty(), "a secret was logged");
        assert!(!format!("{:?}", story.audit().await).contains(secret.as_str()));
    }
    server.abort();
    story.end().await;
}

/// A runtime without what its card promises, one that loses the request, one that refuses for a while: people
/// see and answer all the same.
#[rstest]
#[tokio::test]
async fn not_asked_to_call(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let story = begin(on).await;
    story.a2a.switch(|switches| switches.push = Push::Off);
    let following = story.follows();
    let (opened, card) = story.asked("deploy_service").await;
    story.until_worked("the refusal", || story.count("CreateTaskPushNotificationConfig") == 1).await;
    for _ in 0..5 {
        story.advance(Duration::from_mins(1));
        story.tick().await;
    }
    assert_eq!(story.count("CreateTaskPushNotificationConfig"), 1, "not again within the hour");
    assert!(story.a2a.end(&opened.task_id, State::Canceled, None));
    story.tick().await;
    assert!(reads(&story, &card, "canceled"));
    drop(following);
    story.end().await;
}

/// The answer to asking is lost: whether it was made or not, none is left over in the end, and calls arrive.
#[rstest]
#[tokio::test]
async fn asking_to_call_is_lost(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let story = begin(on).await;
    story.a2a.faults().add(Rule::next("CreateTaskPushNotificationConfig", Fault::Lost { ms: 10 }));
    story.a2a.faults().add(Rule::next(
        "DeleteTaskPushNotificationConfig",
        Fault::Status { code: 503, retry_after: None, body: None },
    ));
    let following = story.follows();
    let (opened, card) = story.asked("deploy_service").await;
    story
        .until_worked("two were asked for, one is left", || {
            story.advance(Duration::from_secs(2));
            story.count("CreateTaskPushNotificationConfig") == 2
                && story.count("DeleteTaskPushNotificationConfig") >= 2
                && story.a2a.push_configs().len() == 1
        })
        .await;
    assert!(story.a2a.answer_elsewhere(
        &opened.interaction_id,
        Elsewhere {
            subject: "p@example.com".into(),
            decision: Decision::Approved(true),
            history: true,
            message_id: None
        }
    ));
    story.in_time("elsewhere", || reads(&story, &card, "elsewhere")).await;
    story
        .until_worked("none is left", || {
            story.advance(Duration::from_secs(2));
            story.a2a.push_configs().is_empty()
        })
        .await;
    drop(following);
    story.end().await;
}

/// Calls that never come (a wrong credential, a lost delivery) are replaced by a reading a minute.
#[tokio::test]
async fn calls_that_do_not_arrive() {
    let story = begin(Backend::Sqlite).await;
    let (opened, card, following) = asked(&story).await;
    story.a2a.switch(|switches| switches.push_wrong_credential = true);
    assert!(story.a2a.end(&opened.task_id, State::Canceled, None));
    story.until_worked("a call in vain", || story.a2a.pushed() == [(opened.task_id.clone(), 401)]).await;
    assert!(!reads(&story, &card, "canceled"));
    story.advance(Duration::from_secs(61));
    story.in_time("canceled", || reads(&story, &card, "canceled")).await;
    drop(following);
    story.end().await;
}

/// What was asked for outlives a restart, and is ended after it.
#[rstest]
#[tokio::test]
async fn a_restart_in_between(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let mut story = begin(on).await;
    let (opened, card, following) = asked(&story).await;
    drop(following);
    story.restart().await;
    let following = story.follows();
    assert!(story.a2a.end(&opened.task_id, State::Failed, None));
    story.in_time("failed", || reads(&story, &card, "failed")).await;
    assert_eq!(story.count("CreateTaskPushNotificationConfig"), 1);
    story.until_worked("deleted", || story.count("DeleteTaskPushNotificationConfig") == 1).await;
    drop(following);
    story.end().await;
}

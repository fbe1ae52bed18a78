//! Trouble on either side: limits, errors, lost answers, outages. Each ends as the guarantees say.

use crate::world::database::Backend;
use crate::world::story::{DANA, OPS, RELEASES, Story, Wants};
use countersign::net::Limits;
use countersign::sandbox::faults::{Fault, Rule};
use countersign::sandbox::slack::{Manner, Spot};
use countersign::store::jobs::JobKind;
use rstest::rstest;
use std::time::Duration;

/// Short limits, so that an answer that never comes is given up quickly in real time.
fn hasty() -> Wants {
    Wants {
        limits: Limits { connect: Duration::from_millis(500), total: Duration::from_millis(400) },
        ..Wants::default()
    }
}

const LOST: Fault = Fault::Lost { ms: 3000 };

/// Slack case 17: the post was applied and its answer lost: found by its metadata, not posted again.
#[rstest]
#[tokio::test]
async fn a_post_whose_answer_is_lost(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let story = Story::with(on, hasty()).await;
    story.slack.faults().add(Rule::next("chat.postMessage", LOST));
    let ask = story.asks("deploy_service");
    story.tick().await;
    assert_eq!(story.slack.cards(RELEASES).len(), 1, "it was posted, and we do not know");
    story.pass(Duration::from_secs(70)).await;
    assert_eq!(story.slack.cards(RELEASES).len(), 1, "one card at rest");
    let card = story.card(RELEASES);
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver().await;
    assert_eq!(story.recorded(&ask).len(), 1);
    assert!(story.reads(&card).contains("approved"));
    assert_eq!(story.slack.calls("chat.postMessage").len(), 1);
    story.end().await;
}

/// Slack case 19: the post was lost before it was applied: posted once, after two empty looks.
#[rstest]
#[tokio::test]
async fn a_post_that_never_arrived(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let story = Story::with(on, hasty()).await;
    story.slack.faults().add(Rule::next("chat.postMessage", Fault::Hang { ms: 3000 }));
    story.asks("deploy_service");
    story.tick().await;
    story.pass(Duration::from_secs(20)).await;
    assert_eq!(story.slack.cards(RELEASES).len(), 0, "one empty look is not enough");
    story.pass(Duration::from_mins(1)).await;
    assert_eq!(story.slack.cards(RELEASES).len(), 1);
    assert!(story.slack.calls("conversations.history").len() >= 2);
    story.end().await;
}

/// The same, and the interaction is closed meanwhile: it is not posted at all.
#[rstest]
#[tokio::test]
async fn a_post_that_never_arrived_and_is_not_wanted_any_more(
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
) {
    let story = Story::with(on, hasty()).await;
    story.slack.faults().add(Rule::next("chat.postMessage", Fault::Hang { ms: 3000 }));
    let ask = story.asks("deploy_service");
    story.tick().await;
    story.a2a.end(&ask.task_id, countersign::sandbox::a2a::State::Canceled, None);
    story.tick().await;
    story.pass(Duration::from_secs(90)).await;
    assert_eq!(story.slack.cards(RELEASES).len(), 0);
    story.end().await;
}

/// Slack case 18, without history scope: at most one extra copy, both edited at the end.
#[rstest]
#[tokio::test]
async fn a_lost_answer_without_history_scope(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let story = Story::with(on, hasty()).await;
    for scope in ["channels:history", "groups:history", "im:history"] {
        story.slack.scope(countersign::sandbox::slack::acme::BOT_TOKEN, scope, false);
    }
    story.slack.faults().add(Rule::next("chat.postMessage", LOST));
    let ask = story.asks("deploy_service");
    story.tick().await;
    story.pass(Duration::from_secs(90)).await;
    let cards = story.slack.cards(RELEASES);
    assert_eq!(cards.len(), 2, "the extra copy is known to be possible");
    // Pressed on the copy that we know nothing of: it works, and both end alike.
    let first = cards.first().unwrap();
    story.presses("U0DANA", first, "Approve").await;
    story.deliver().await;
    story.pass(Duration::from_secs(5)).await;
    assert_eq!(story.recorded(&ask).len(), 1);
    for card in &cards {
        assert!(story.reads(card).contains("approved"), "{}", story.reads(card));
        assert!(story.buttons(card).is_empty());
    }
    story.end().await;
}

/// Slack case 16: the press comes before our post returned: resolved by its token, one card.
#[rstest]
#[tokio::test]
async fn a_press_before_the_post_returned(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let story = Story::with(on, hasty()).await;
    story.slack.faults().add(Rule::next("chat.postMessage", LOST));
    let ask = story.asks("deploy_service");
    story.tick().await;
    let card = story.card(RELEASES);
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver_only(&[JobKind::Decide, JobKind::Answer]).await;
    assert_eq!(story.recorded(&ask).len(), 1);
    story.pass(Duration::from_secs(40)).await;
    assert_eq!(story.slack.cards(RELEASES).len(), 1);
    assert!(story.reads(&card).contains("approved"));
    story.end().await;
}

/// Slack case 21: 429 parks the method for as long as it says; the newest state is sent after it.
#[rstest]
#[case(Fault::Status { code: 429, retry_after: Some(30), body: None }, 30)]
#[case(Fault::Status { code: 429, retry_after: None, body: None }, 30)]
#[case(Fault::Refuse { error: "ratelimited".into() }, 30)]
#[tokio::test]
async fn slack_says_too_many(
    #[case] fault: Fault,
    #[case] seconds: u64,
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
) {
    let story = Story::begin(on).await;
    let (ask, card) = story.asked("deploy_service").await;
    story.slack.faults().add(Rule::next("chat.update", fault));
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver().await;
    assert_eq!(story.recorded(&ask).len(), 1, "the answer does not wait for the card");
    let before = story.slack.calls("chat.update").len();
    story.pass(Duration::from_secs(seconds - 1)).await;
    assert_eq!(story.slack.calls("chat.update").len(), before, "parked");
    story.pass(Duration::from_secs(3)).await;
    assert!(story.reads(&card).contains("approved"));
    story.end().await;
}

/// Slack case 20: 5xx twice, then success: one final state, and once more a minute later because the
/// lost ones might still land.
#[rstest]
#[tokio::test]
async fn slack_fails_twice_while_editing(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let story = Story::begin(on).await;
    let (_ask, card) = story.asked("deploy_service").await;
    let fault = Fault::Status { code: 503, retry_after: None, body: None };
    story.slack.faults().add(Rule { method: "chat.update".into(), skip: 0, times: 2, fault });
    story.presses("U0DANA", &card, "Deny").await;
    story.deliver().await;
    story.pass(Duration::from_secs(10)).await;
    assert!(story.reads(&card).contains("denied"));
    story.pass(Duration::from_secs(65)).await;
    assert!(story.reads(&card).contains("denied"));
    let updates = story.slack.calls("chat.update");
    assert_eq!(updates.len(), 4, "two that failed, one that worked, one to be sure");
    story.end().await;
}

/// Slack case 36: an archived channel: the route's fallback is used, operators are told, no retry loop.
#[rstest]
#[tokio::test]
async fn the_place_is_gone(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let story = Story::begin(on).await;
    story.asked("warm_up").await;
    story.slack.edit_channel(RELEASES, |channel| channel.archived = true);
    story.pass(Duration::from_secs(2)).await;
    let ask = story.asks("deploy_service");
    story.tick().await;
    story.pass(Duration::from_secs(5)).await;
    let card = story.card(OPS);
    assert!(story.reads(&card).contains("deploy_service"));
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver().await;
    assert_eq!(story.recorded(&ask).len(), 1);
    let alerts =
        story.service.bridge.store.read(|tx| Box::pin(async move { tx.alerts().await })).await.unwrap();
    assert!(alerts.iter().any(|alert| alert.key.starts_with("place:")), "{alerts:?}");
    story.end().await;
}

/// Slack case 37: somebody deleted the card: it is not posted there again; the last one goes to the fallback.
#[rstest]
#[tokio::test]
async fn the_card_was_deleted(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let story = Story::begin(on).await;
    let (ask, card) = story.asked("deploy_service").await;
    story.slack.remove_message(RELEASES, &card.ts);
    story.a2a.change(&ask.interaction_id, |ask| ask.prompt = Some("Approve something else?".into()));
    story.tick().await;
    story.pass(Duration::from_secs(3)).await;
    assert_eq!(story.slack.cards(RELEASES).len(), 0);
    let card = story.card(OPS);
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver().await;
    assert_eq!(story.recorded(&ask).len(), 1);
    story.end().await;
}

/// A2A case 26: the runtime applied the answer and its reply was lost: the same body again, one application.
#[rstest]
#[tokio::test]
async fn an_answer_whose_reply_is_lost(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let story = Story::with(on, hasty()).await;
    let (ask, card) = story.asked("deploy_service").await;
    story.a2a.faults().add(Rule::next("SendMessage", LOST));
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver().await;
    story.pass(Duration::from_secs(30)).await;
    let interaction = story.a2a.interaction(&ask.interaction_id).unwrap();
    assert_eq!(interaction.answers.len(), 1);
    assert!(story.reads(&card).contains("approved by"), "{}", story.reads(&card));
    let sent = story.a2a.requests_of("SendMessage");
    assert_eq!(sent.len(), 2);
    assert!(
        sent.iter().all(|request| request.param("/message") == sent.first().unwrap().param("/message")),
        "the same body"
    );
    story.end().await;
}

/// The runtime is down for a minute: the click is kept, and delivered when it is back.
#[rstest]
#[tokio::test]
async fn the_runtime_is_down_for_a_minute(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let story = Story::begin(on).await;
    let (ask, card) = story.asked("deploy_service").await;
    story.a2a.faults().add(Rule::always("*", Fault::Status { code: 503, retry_after: None, body: None }));
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver().await;
    story.pass(Duration::from_mins(1)).await;
    assert_eq!(story.recorded(&ask), []);
    let shown = story.reads(&card);
    assert!(shown.contains("delivering"), "{shown}");
    assert!(!shown.contains("approved"), "{shown}");
    story.a2a.faults().clear();
    story.pass(Duration::from_secs(70)).await;
    assert_eq!(story.recorded(&ask), [(DANA.to_owned(), true)]);
    assert!(story.reads(&card).contains("approved by"));
    story.end().await;
}

/// The runtime is down for longer than `deliver_within`: nothing was ever sent, so the claim is freed, the
/// clicker is told, the buttons return.
#[rstest]
#[tokio::test]
async fn the_runtime_is_down_for_longer(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let wants = Wants { more: "[policy]\ndeliver_within = \"5m\"", ..Wants::default() };
    let story = Story::with(on, wants).await;
    let (ask, card) = story.asked("deploy_service").await;
    story.a2a.faults().add(Rule::always("*", Fault::Status { code: 503, retry_after: None, body: None }));
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver().await;
    story.pass(Duration::from_secs(400)).await;
    assert_eq!(story.buttons(&card), ["Approve", "Deny", "Deny with reason…"], "{}", story.reads(&card));
    assert!(story.told("U0DANA").len() >= 2, "still trying, then too late: {:?}", story.told("U0DANA"));
    story.a2a.faults().clear();
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver().await;
    assert_eq!(story.recorded(&ask).len(), 1);
    story.end().await;
}

/// The interaction changes under an old card: the press is refused and the card redrawn. Slack case 44.
#[rstest]
#[tokio::test]
async fn the_interaction_changes_under_a_card(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let story = Story::begin(on).await;
    let (ask, card) = story.asked("deploy_service").await;
    let old = story.slack.pressed("U0DANA", &Spot::message(RELEASES, &card.ts), "Approve").unwrap();
    story.a2a.change(&ask.interaction_id, |ask| {
        ask.prompt = Some("Approve ci / deploy_service to PRODUCTION?".into());
    });
    story.tick().await;
    story.pass(Duration::from_secs(2)).await;
    assert!(story.reads(&card).contains("production"));
    let deliveries = story.slack.deliver_payload(&old, &Manner::default()).await;
    assert!(deliveries.iter().all(countersign::sandbox::slack::Delivery::acked));
    story.deliver().await;
    assert_eq!(story.recorded(&ask), []);
    assert_eq!(story.told("U0DANA").len(), 1);
    // What is shown now can be answered.
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver().await;
    assert_eq!(story.recorded(&ask).len(), 1);
    story.end().await;
}

/// It changes between the press and our next look at the runtime: the reading before the attempt finds out.
#[rstest]
#[tokio::test]
async fn the_interaction_changes_between_press_and_sending(
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
) {
    let story = Story::begin(on).await;
    let (ask, card) = story.asked("deploy_service").await;
    story.a2a.change(&ask.interaction_id, |ask| ask.prompt = Some("Approve something worse?".into()));
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver().await;
    story.pass(Duration::from_secs(3)).await;
    assert_eq!(story.recorded(&ask), [], "what was shown is what is answered");
    assert!(story.reads(&card).contains("something worse"));
    assert_eq!(story.buttons(&card), ["Approve", "Deny", "Deny with reason…"]);
    assert_eq!(story.told("U0DANA").len(), 1);
    story.end().await;
}

/// A person loses the right between click and send: nothing leaves, the claim is freed.
#[rstest]
#[tokio::test]
async fn the_right_is_lost_before_sending(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let mut story = Story::begin(on).await;
    let (ask, card) = story.asked("both").await;
    story.presses("U0KIM", &card, "Approve").await;
    story.deliver_only(&[JobKind::Decide]).await;
    let without_kim =
        |config: String| config.replace("\"dana@example.com\", \"kim@example.com\"", "\"dana@example.com\"");
    story.restart_with(without_kim).await;
    story.deliver().await;
    story.pass(Duration::from_secs(3)).await;
    assert_eq!(story.recorded(&ask), []);
    assert_eq!(story.buttons(&card), ["Approve", "Deny", "Deny with reason…"]);
    assert_eq!(story.told("U0KIM").len(), 1);
    story.end().await;
}

/// A deactivated account is noticed before the answer leaves.
#[rstest]
#[tokio::test]
async fn deactivated_between_click_and_sending(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let story = Story::begin(on).await;
    let (ask, card) = story.asked("deploy_service").await;
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver_only(&[JobKind::Decide]).await;
    story.slack.edit_user("U0DANA", |user| user.deleted = true);
    // What was read of an account is used for five minutes at most.
    story.advance(Duration::from_secs(301));
    story.deliver().await;
    assert_eq!(story.recorded(&ask), []);
    story.pass(Duration::from_secs(3)).await;
    assert_eq!(story.buttons(&card), ["Approve", "Deny", "Deny with reason…"]);
    story.end().await;
}

/// A2A case 68: one wrong watching credential makes most tasks vanish: nothing closes, operators are told.
#[rstest]
#[tokio::test]
async fn mass_disappearance_is_doubted(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let story = Story::begin(on).await;
    let asks: Vec<_> = (0..8).map(|n| story.asks(&format!("tool_{n}"))).collect();
    story.tick().await;
    story.pass(Duration::from_secs(12)).await;
    assert_eq!(story.slack.cards(RELEASES).len(), 8);
    for ask in asks.iter().take(6) {
        story.a2a.delete(&ask.task_id);
    }
    for _ in 0..4 {
        story.advance(Duration::from_secs(11));
        story.tick().await;
    }
    for card in story.slack.cards(RELEASES) {
        assert_eq!(story.buttons(&card), ["Approve", "Deny", "Deny with reason…"], "no card changes");
    }
    let alerts =
        story.service.bridge.store.read(|tx| Box::pin(async move { tx.alerts().await })).await.unwrap();
    assert!(alerts.iter().any(|alert| alert.key == "absence:prod"), "{alerts:?}");
    // Still so an hour later: believed.
    story.advance(Duration::from_hours(1));
    story.tick().await;
    story.pass(Duration::from_secs(15)).await;
    let gone = story.slack.cards(RELEASES).iter().filter(|card| story.buttons(card).is_empty()).count();
    assert_eq!(gone, 6);
    story.end().await;
}

/// A2A case 51: two of eight not found, twice ten seconds apart: closed as no longer available. A single
/// not-found changes nothing.
#[rstest]
#[tokio::test]
async fn a_few_that_are_gone_are_closed(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let story = Story::begin(on).await;
    let asks: Vec<_> = (0..8).map(|n| story.asks(&format!("tool_{n}"))).collect();
    story.tick().await;
    story.pass(Duration::from_secs(12)).await;
    for ask in asks.iter().take(2) {
        story.a2a.delete(&ask.task_id);
    }
    story.advance(Duration::from_secs(10));
    story.tick().await;
    let closed = |story: &Story| {
        story.slack.cards(RELEASES).iter().filter(|card| story.buttons(card).is_empty()).count()
    };
    assert_eq!(closed(&story), 0, "one not-found proves nothing");
    story.advance(Duration::from_secs(11));
    story.tick().await;
    story.pass(Duration::from_secs(5)).await;
    assert_eq!(closed(&story), 2);
    story.end().await;
}

/// A2A case 52: stale reads after our answer do not bring the buttons back.
#[rstest]
#[tokio::test]
async fn stale_reads_after_an_answer(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let story = Story::begin(on).await;
    story.a2a.switch(|switches| switches.stale_reads_ms = 12_000);
    let (ask, card) = story.asked("deploy_service").await;
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver().await;
    for _ in 0..5 {
        story.advance(Duration::from_secs(5));
        story.tick().await;
        assert!(story.buttons(&card).is_empty(), "not reopened: {}", story.reads(&card));
    }
    assert_eq!(story.recorded(&ask).len(), 1);
    assert!(story.reads(&card).contains("approved by"), "{}", story.reads(&card));
    story.end().await;
}

/// Alerts end: one about an event after an hour, one about unrouted interactions when none is left.
#[rstest]
#[tokio::test]
async fn alerts_end(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    const NO_ROUTE: &str = r#"
[[person]]
subject = "dana@example.com"
slack = ["acme:U0DANA"]

[[route]]
when = { tool = "something_else" }
to = ["slack:acme:#releases"]
approvers = ["owner"]
"#;
    let story = Story::with(on, Wants { people_and_routes: NO_ROUTE, ..Wants::default() }).await;
    let ask = story.asks("deploy_service");
    story.tick().await;
    let bridge = &story.service.bridge;
    bridge.store_unreadable("slack:interactivity", b"not a payload").await.unwrap();
    let keys = async || {
        let alerts = bridge.store.read(|tx| Box::pin(async move { tx.alerts().await })).await.unwrap();
        alerts.into_iter().map(|alert| alert.key).collect::<Vec<_>>()
    };
    bridge.tend_alerts().await.unwrap();
    assert_eq!(keys().await, ["unreadable:slack:interactivity", "unrouted:prod"]);
    story.a2a.end(&ask.task_id, countersign::sandbox::a2a::State::Canceled, None);
    story.tick().await;
    bridge.tend_alerts().await.unwrap();
    assert_eq!(keys().await, ["unreadable:slack:interactivity"]);
    story.advance(Duration::from_secs(3601));
    bridge.tend_alerts().await.unwrap();
    assert_eq!(keys().await, Vec::<String>::new());
    story.end().await;
}

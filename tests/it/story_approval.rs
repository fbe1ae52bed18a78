//! One approval the whole way, and what may come between.

use crate::world::database::Backend;
use crate::world::story::{DANA, KIM, OPS, RELEASES, Story, Wants};
use countersign::sandbox::a2a::{self, Elsewhere, Foreign, State};
use rstest::rstest;
use std::time::Duration;

/// A2A cases 13 and 14; Slack case 8: from the runtime to the card, from the click to `approvedBy`.
#[rstest]
#[tokio::test]
async fn an_approval_goes_the_whole_way(
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
    #[values(Foreign::Allowed, Foreign::NotFound)] foreign: Foreign,
) {
    let story = Story::with(on, Wants { foreign, ..Wants::default() }).await;
    let (ask, card) = story.asked("deploy_service").await;
    assert_eq!(story.buttons(&card), ["Approve", "Deny", "Deny with reason…"]);

    story.presses("U0DANA", &card, "Approve").await;
    story.deliver().await;

    assert_eq!(story.recorded(&ask), [(DANA.to_owned(), true)]);
    assert_eq!(story.a2a.state(&ask.task_id), Some(State::Working));
    let shown = story.reads(&card);
    assert!(shown.contains("approved"), "{shown}");
    assert!(story.buttons(&card).is_empty(), "no control is left");
    let events: Vec<_> =
        story.audit().await.iter().map(|row| (row.event.clone(), row.decision.clone())).collect();
    let approved = Some("approved".to_owned());
    assert_eq!(
        events,
        [
            ("click".to_owned(), approved.clone()),
            ("answer".to_owned(), approved.clone()),
            ("settled".to_owned(), approved)
        ]
    );
    // One post, one edit: the interim edit was not needed.
    assert_eq!(story.slack.calls("chat.postMessage").len(), 1);
    assert_eq!(story.slack.calls("chat.update").len(), 1);
    story.end().await;
}

/// A2A case 15: a denial ends the held call, and the card says who denied.
#[rstest]
#[tokio::test]
async fn a_denial_is_delivered(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let story = Story::begin(on).await;
    let (ask, card) = story.asked("deploy_service").await;
    story.presses("U0KIM", &card, "Deny").await;
    story.deliver().await;
    assert_eq!(story.recorded(&ask), [(KIM.to_owned(), false)]);
    assert!(story.reads(&card).contains("denied"));
    story.end().await;
}

/// A2A case 31: where only the owner may answer, another approver is told so; the buttons stay, and the
/// owner can still answer.
#[rstest]
#[tokio::test]
async fn a_runtime_that_lets_only_the_owner_answer(
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
) {
    let story = Story::with(on, Wants { foreign: Foreign::NotFound, ..Wants::default() }).await;
    let (ask, card) = story.asked("deploy_service").await;
    story.presses("U0KIM", &card, "Approve").await;
    story.deliver().await;
    assert_eq!(story.recorded(&ask), []);
    story.pass(Duration::from_secs(3)).await;
    let told = story.told("U0KIM");
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(story.buttons(&card), ["Approve", "Deny", "Deny with reason…"]);

    story.presses("U0DANA", &card, "Approve").await;
    story.deliver().await;
    assert_eq!(story.recorded(&ask), [(DANA.to_owned(), true)]);
    story.end().await;
}

/// Two people press opposite buttons: one answer leaves, the other is told who was first. A2A case 28,
/// Slack case 41.
#[rstest]
#[tokio::test]
async fn two_people_press_at_once(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let story = Story::begin(on).await;
    let (ask, card) = story.asked("deploy_service").await;
    let (first, second) =
        tokio::join!(story.presses("U0DANA", &card, "Approve"), story.presses("U0KIM", &card, "Deny"));
    assert!(first.acked() && second.acked());
    story.deliver().await;
    let recorded = story.recorded(&ask);
    assert_eq!(recorded.len(), 1, "{recorded:?}");
    assert_eq!(story.a2a.requests_of("SendMessage").len(), 1);
    let told = story.told("U0DANA").len() + story.told("U0KIM").len();
    assert_eq!(told, 1, "the loser is told, nobody else");
    story.end().await;
}

/// The same click delivered twice, and the same person pressing again: one answer. Slack cases 5, 41.
#[rstest]
#[tokio::test]
async fn the_same_click_twice(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let story = Story::begin(on).await;
    let (ask, card) = story.asked("deploy_service").await;
    let spot = countersign::sandbox::slack::Spot::message(RELEASES, &card.ts);
    let twice = countersign::sandbox::slack::Manner::twice();
    let deliveries = story.slack.press_raw("U0DANA", &spot, "Approve", &twice, |_| {}).await.unwrap();
    assert_eq!(deliveries.len(), 2);
    assert!(deliveries.iter().all(countersign::sandbox::slack::Delivery::acked));
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver().await;
    assert_eq!(story.recorded(&ask).len(), 1);
    assert_eq!(story.clicks().await.values().sum::<i64>(), 2, "the repeated delivery is no click of its own");
    assert_eq!(story.told("U0DANA").len(), 1);
    story.end().await;
}

/// The task is canceled while a click is under way: nothing is approved, the card says canceled.
#[rstest]
#[tokio::test]
async fn canceled_while_a_click_is_under_way(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let story = Story::begin(on).await;
    let (ask, card) = story.asked("deploy_service").await;
    story.presses("U0DANA", &card, "Approve").await;
    assert!(story.a2a.end(&ask.task_id, State::Canceled, None));
    story.deliver().await;
    assert_eq!(story.recorded(&ask), []);
    let shown = story.reads(&card);
    assert!(shown.contains("canceled"), "{shown}");
    assert!(!shown.contains("approved"), "{shown}");
    assert_eq!(story.told("U0DANA").len(), 1);
    story.end().await;
}

/// A2A case 49: four ends, four texts; never a guess. Slack case 39.
#[rstest]
#[case(State::Canceled, "canceled")]
#[case(State::Failed, "failed")]
#[case(State::Rejected, "rejected")]
#[case(State::Completed, "elsewhere")]
#[tokio::test]
async fn an_end_without_a_click(
    #[case] end: State,
    #[case] word: &str,
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
) {
    let story = Story::begin(on).await;
    let (ask, card) = story.asked("deploy_service").await;
    assert!(story.a2a.end(&ask.task_id, end, None));
    story.tick().await;
    let shown = story.reads(&card);
    assert!(shown.contains(word), "{shown}");
    assert!(!shown.contains("approved") && !shown.contains("denied"), "{shown}");
    assert!(story.buttons(&card).is_empty());
    story.end().await;
}

/// A2A case 30: answered in the product, then pressed: told so, not shown as the clicker's.
#[rstest]
#[tokio::test]
async fn answered_in_the_product_first(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let story = Story::begin(on).await;
    let (ask, card) = story.asked("deploy_service").await;
    let elsewhere = Elsewhere {
        subject: "someone@example.com".into(),
        decision: a2a::Decision::Approved(false),
        history: false,
        message_id: None,
    };
    assert!(story.a2a.answer_elsewhere(&ask.interaction_id, elsewhere));
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver().await;
    let shown = story.reads(&card);
    assert!(shown.contains("elsewhere"), "{shown}");
    assert!(!shown.contains("dana"), "{shown}");
    assert_eq!(story.told("U0DANA").len(), 1);
    story.end().await;
}

/// A2A case 48: answered, and it pauses at once for the next thing: the first card ends, a second comes.
#[rstest]
#[tokio::test]
async fn one_after_another(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let story = Story::begin(on).await;
    let mut open = a2a::Open::new(DANA, a2a::Ask::approval("ci", "first"));
    open.queue = vec![a2a::Ask::approval("ci", "second")];
    let ask = story.a2a.open(open);
    story.tick().await;
    let first = story.card(RELEASES);
    story.presses("U0DANA", &first, "Approve").await;
    story.deliver().await;
    story.pass(Duration::from_secs(3)).await;
    assert!(story.reads(&first).contains("approved"));
    assert_eq!(story.slack.cards(RELEASES).len(), 2);
    let second = story.card(RELEASES);
    assert!(story.reads(&second).contains("second"));
    assert_eq!(story.buttons(&second), ["Approve", "Deny", "Deny with reason…"]);
    assert_eq!(story.recorded(&ask).len(), 1);
    story.end().await;
}

/// Two places, one interaction: both cards end alike.
#[rstest]
#[tokio::test]
async fn every_copy_is_edited(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let story = Story::begin(on).await;
    let (ask, card) = story.asked("both").await;
    let other = story.card(OPS);
    story.presses("U0DANA", &other, "Approve").await;
    story.deliver().await;
    assert_eq!(story.recorded(&ask).len(), 1);
    for card in [&card, &other] {
        assert!(story.buttons(card).is_empty());
        assert!(story.reads(card).contains("approved"));
    }
    story.end().await;
}

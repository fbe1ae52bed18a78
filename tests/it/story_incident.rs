//! The incident stop: while operators have paused answers, clicks are kept, and they go out when it ends.

use crate::world::database::Backend;
use crate::world::story::{DANA, KIM, Story, Wants};
use countersign::bridge::incident::EVERY;
use countersign::store::jobs::JobKind;
use rstest::rstest;
use std::time::Duration;

/// What is pressed while everything is paused is kept, told so, survives a restart, and goes out at once.
#[rstest]
#[tokio::test]
async fn a_press_while_paused_is_kept_and_goes_out_when_it_ends(
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
    #[values("prod", EVERY)] whom: &str,
) {
    let mut story = Story::begin(on).await;
    let (ask, card) = story.asked("deploy_service").await;
    assert!(story.service.bridge.pause(whom).await.unwrap().changed);
    assert!(!story.service.bridge.pause(whom).await.unwrap().changed, "once more changes nothing");
    assert_eq!(story.buttons(&card), ["Approve", "Deny", "Deny with reason…"], "people go on deciding");
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver_only(&[JobKind::Decide]).await;
    story.presses("U0KIM", &card, "Deny").await;
    story.pass(Duration::from_secs(90)).await;
    assert_eq!(story.recorded(&ask), []);
    let shown = story.reads(&card);
    assert!(shown.contains("chose approve. paused by operators"), "{shown}");
    assert!(!shown.contains("delivering"), "{shown}");
    assert!(story.buttons(&card).is_empty());
    let told = story.told("U0DANA");
    assert_eq!(told.len(), 1, "told once: {told:?}");
    assert!(told[0].contains("Operators have paused answers"), "{told:?}");
    assert_eq!(story.told("U0KIM").len(), 1, "there is one claim, and it is Dana's");
    assert_eq!(story.alert_keys().await, [format!("paused:{whom}")]);

    story.restart().await;
    story.tick().await;
    story.pass(Duration::from_secs(40)).await;
    assert_eq!(story.recorded(&ask), [], "a restart ends nothing");
    assert_eq!(story.told("U0DANA").len(), 1);

    let done = story.service.bridge.resume(whom).await.unwrap();
    assert_eq!((done.changed, done.answers), (true, 1));
    story.deliver().await;
    assert_eq!(story.recorded(&ask), [(DANA.to_owned(), true)], "at once, without waiting");
    assert!(story.reads(&card).contains("approved by"), "{}", story.reads(&card));
    assert_eq!(story.alert_keys().await, [] as [&str; 0]);
    let events: Vec<_> = story
        .audit()
        .await
        .into_iter()
        .filter(|row| ["pause", "resume"].contains(&row.event.as_str()))
        .map(|row| (row.event, row.runtime.unwrap()))
        .collect();
    assert_eq!(events, [("pause".to_owned(), whom.to_owned()), ("resume".to_owned(), whom.to_owned())]);
    story.end().await;
}

/// Given before the stop and not sent yet: it waits too, and its card says so.
#[rstest]
#[tokio::test]
async fn what_was_not_sent_yet_waits_too(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let story = Story::begin(on).await;
    let (ask, card) = story.asked("deploy_service").await;
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver_only(&[JobKind::Decide]).await;
    assert_eq!(story.service.bridge.pause(EVERY).await.unwrap().answers, 1);
    story.pass(Duration::from_secs(3)).await;
    assert!(story.reads(&card).contains("paused by operators"), "{}", story.reads(&card));
    assert_eq!(story.recorded(&ask), []);
    story.service.bridge.resume(EVERY).await.unwrap();
    story.pass(Duration::from_secs(3)).await;
    assert_eq!(story.recorded(&ask).len(), 1);
    story.end().await;
}

/// The stop and its end are another process's, as an operator's command is: the service notices.
#[rstest]
#[tokio::test]
async fn another_process_ends_it(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let story = Story::begin(on).await;
    let other = story.replica().await;
    let (ask, card) = story.asked("deploy_service").await;
    other.bridge.pause("prod").await.unwrap();
    story.presses("U0KIM", &card, "Approve").await;
    story.deliver().await;
    assert_eq!(story.recorded(&ask), []);
    other.bridge.resume("prod").await.unwrap();
    story.deliver().await;
    assert_eq!(story.recorded(&ask), [(KIM.to_owned(), true)]);
    other.bridge.store.close().await;
    story.end().await;
}

/// The time in which an answer must be delivered goes on; then it is free, and told.
#[rstest]
#[tokio::test]
async fn the_time_to_deliver_goes_on(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let wants = Wants { more: "[policy]\ndeliver_within = \"5m\"", ..Wants::default() };
    let story = Story::with(on, wants).await;
    let (ask, card) = story.asked("deploy_service").await;
    story.service.bridge.pause("prod").await.unwrap();
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver().await;
    story.pass(Duration::from_secs(305)).await;
    assert_eq!(story.buttons(&card), ["Approve", "Deny", "Deny with reason…"], "{}", story.reads(&card));
    let told = story.told("U0DANA");
    assert!(told.last().unwrap().contains("could not be delivered in time"), "{told:?}");
    story.service.bridge.resume("prod").await.unwrap();
    story.pass(Duration::from_mins(1)).await;
    assert_eq!(story.recorded(&ask), [], "what was freed is not sent after all");
    story.end().await;
}

/// Votes are counted as ever; the one that completes the number makes the claim, which waits.
#[rstest]
#[tokio::test]
async fn votes_are_counted_while_paused(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let story = Story::begin(on).await;
    let (ask, card) = story.asked("delete_database").await;
    story.service.bridge.pause(EVERY).await.unwrap();
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver().await;
    assert!(story.reads(&card).contains("1 of 2"), "{}", story.reads(&card));
    story.presses("U0KIM", &card, "Approve").await;
    story.pass(Duration::from_secs(3)).await;
    assert!(story.reads(&card).contains("paused by operators"), "{}", story.reads(&card));
    assert_eq!(story.recorded(&ask), []);
    story.service.bridge.resume(EVERY).await.unwrap();
    story.deliver().await;
    assert_eq!(story.recorded(&ask), [(KIM.to_owned(), true)]);
    story.end().await;
}

/// Ended elsewhere while it waited: nothing is sent afterwards, and the presser is told.
#[rstest]
#[tokio::test]
async fn ended_elsewhere_while_paused(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let story = Story::begin(on).await;
    let (ask, card) = story.asked("deploy_service").await;
    story.service.bridge.pause("prod").await.unwrap();
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver().await;
    story.a2a.end(&ask.task_id, countersign::sandbox::a2a::State::Canceled, None);
    for _ in 0..3 {
        story.advance(Duration::from_secs(10));
        story.tick().await;
    }
    assert!(story.reads(&card).contains("canceled"), "{}", story.reads(&card));
    story.service.bridge.resume("prod").await.unwrap();
    story.pass(Duration::from_secs(5)).await;
    assert_eq!(story.recorded(&ask), []);
    assert!(story.told("U0DANA").len() >= 2, "{:?}", story.told("U0DANA"));
    story.end().await;
}

/// `/readyz` names the stop, the metrics have it.
#[tokio::test]
async fn operators_see_that_it_stands() {
    let story = Story::begin(Backend::Sqlite).await;
    story.tick().await;
    story.service.bridge.pause("prod").await.unwrap();
    let lacks = format!("{:?}", story.service.bridge.lacks().await);
    assert!(lacks.contains("paused:prod"), "{lacks}");
    let bearer = format!("Bearer {}", crate::world::story::OPERATOR);
    let (_, metrics) = story.http("GET", "/metrics", &[("authorization", &bearer)], vec![]).await;
    assert!(metrics.contains("countersign_paused{runtime=\"prod\"} 1"), "{metrics}");
    story.service.bridge.resume("prod").await.unwrap();
    let (_, metrics) = story.http("GET", "/metrics", &[("authorization", &bearer)], vec![]).await;
    assert!(metrics.contains("countersign_paused{runtime=\"prod\"} 0"), "{metrics}");
    assert!(story.service.bridge.lacks().await.is_empty());
    story.end().await;
}

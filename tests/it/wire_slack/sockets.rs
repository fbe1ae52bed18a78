//! Socket Mode: what comes twice, sockets that are to be left, that close, that are dead, and odd frames.

use super::press;
use crate::world::story::{DANA, RELEASES, SOCKETS, Story, Wants};
use countersign::chat::slack::socket::Timing;
use countersign::sandbox::faults::{Fault, Rule};
use countersign::sandbox::slack::{Delivery, Frame, Manner, Order, Spot};
use serde_json::{Value, json};
use std::time::Duration;

const APP: &str = "inbound:acme";

async fn begin() -> Story {
    with(Timing::default().faster(10)).await
}

/// Our own pacing counts by a story's clock, which stands still.
async fn with(timing: Timing) -> Story {
    Story::with(SOCKETS, Wants { timing, slack: "pace = 100000", ..Wants::default() }).await
}

fn disconnect(reason: &str) -> Order {
    Order::Disconnect { reason: reason.into(), close_after_ms: None }
}

fn frame(value: Value) -> Order {
    Order::Send { frame: Frame::Json { value } }
}

/// Waits for an alert of this key to stand, or to stand no more.
async fn until_alert(story: &Story, key: &str, stands: bool) {
    let end = std::time::Instant::now() + Duration::from_mins(1);
    while story.alert_keys().await.iter().any(|one| one == key) != stands {
        assert!(std::time::Instant::now() < end, "{key}: {:?}", story.alerts().await);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Nothing is acknowledged that could not be stored; afterwards a new press works.
#[tokio::test]
async fn slack_case_7_without_the_database_nothing_is_acknowledged() {
    let story = begin().await;
    let (ask, card) = story.asked("deploy_service").await;
    story.breaks_the_database(true).await;
    let failed = story.slack.press("U0DANA", RELEASES, &card.ts, "Approve").await.unwrap();
    assert_eq!(failed.status, 0, "{failed:?}");
    assert_eq!(story.slack.warnings().len(), 1, "the person sees it");
    story.breaks_the_database(false).await;
    assert!(story.clicks().await.is_empty());
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver().await;
    assert_eq!(story.recorded(&ask), [(DANA.to_owned(), true)]);
    story.end().await;
}

/// The same envelope on two sockets at once, and once more later (bolt-js 2188, bolt-js 2487).
#[tokio::test]
async fn slack_case_10_an_envelope_that_comes_again() {
    let story = begin().await;
    let (ask, card) = story.asked("deploy_service").await;
    let twice = story.slack.deliver_payload(&press(&story, &card), &Manner::twice()).await;
    assert!(twice.len() == 2 && twice.iter().all(Delivery::acked), "{twice:?}");
    assert_ne!(twice[0].socket, twice[1].socket);
    story.deliver().await;
    let envelope = twice[0].envelope_id.clone().unwrap();
    let later = story.slack.redeliver(&envelope, None).await.unwrap();
    assert!(later.acked(), "{later:?}");
    story.deliver().await;
    assert_eq!(story.clicks().await.values().sum::<i64>(), 1);
    assert_eq!(story.recorded(&ask), [(DANA.to_owned(), true)]);
    // A command has its answer once.
    let command = story.slack.command("U0DANA", RELEASES, "/countersign", "open").await.unwrap();
    assert!(command.acked() && !command.body.is_empty(), "{command:?}");
    let again = story.slack.redeliver(&command.envelope_id.unwrap(), None).await.unwrap();
    assert!(again.acked() && again.body.is_empty(), "{again:?}");
    story.end().await;
}

/// A retried event may be the first that arrives; one that was seen is only acknowledged
/// (python-slack-events-api 93).
#[tokio::test]
async fn slack_case_10_events_are_known_by_their_id() {
    let story = begin().await;
    let event = json!({"type": "app_home_opened", "user": "U0DANA", "channel": "D0DANA", "tab": "messages"});
    let first = story.slack.event("T0ACME", &event, Some((1, "timeout"))).await.unwrap();
    assert!(first.acked(), "{first:?}");
    let id = first.payload()["event_id"].as_str().unwrap().to_owned();
    let known = async || {
        let keys = [format!("slack:event:{id}")];
        story.service.bridge.knows_delivery(&keys).await.unwrap()
    };
    assert!(known().await, "taken, although it is a retry");
    // In an envelope of its own.
    let again = story.slack.event_again(&first.payload(), Some((2, "timeout"))).await;
    assert!(again.iter().all(Delivery::acked), "{again:?}");
    assert_ne!(again[0].envelope_id, first.envelope_id);
    story.end().await;
}

/// The next socket is ready before the old one is left; what comes on the old one is acknowledged there
/// (python-slack-sdk 1701).
#[tokio::test]
async fn slack_case_11_a_socket_is_left_when_the_next_is_ready() {
    for reason in ["warning", "refresh_requested"] {
        let story = begin().await;
        let (ask, card) = story.asked("deploy_service").await;
        let before = story.slack.open_sockets();
        let old = before[0];
        // The next one takes its time.
        story.slack.faults().add(Rule::next("link", Fault::Delay { ms: 700 }));
        assert_eq!(story.slack.socket(Some(old), &disconnect(reason)), 1);
        story.until("another is opened", || story.slack.sockets().len() == 3).await;
        let between = story.slack.deliver_payload(&press(&story, &card), &Manner::over(old)).await;
        assert!(between.iter().all(|one| one.acked() && one.socket == Some(old)), "{between:?}");
        assert_eq!(story.slack.open_sockets(), before, "the next one is not ready yet");
        story.until_sockets(3).await;
        let after = story.slack.deliver_payload(&press(&story, &card), &Manner::over(old)).await;
        assert!(after.iter().all(Delivery::acked), "it is still read: {after:?}");
        story.until("the old one is left", || !story.slack.open_sockets().contains(&old)).await;
        assert_eq!(story.slack.open_sockets().len(), 2);
        let ended = story.slack.sockets().into_iter().find(|one| one.id == old).unwrap();
        assert_eq!(ended.end, Some("app"));
        story.deliver().await;
        assert_eq!(story.recorded(&ask), [(DANA.to_owned(), true)]);
        story.end().await;
    }
}

/// Ten sockets that close at once are no storm; operators are told, and told when it is over
/// (node-slack-sdk 1654, java-slack-sdk 1223).
#[tokio::test]
async fn slack_case_12_sockets_that_close_at_once() {
    let story = with(Timing { steady: Duration::from_millis(500), ..Timing::default().faster(10) }).await;
    let (ask, card) = story.asked("deploy_service").await;
    story.slack.faults().add(Rule { times: 10, ..Rule::next("link", Fault::CutAnswer) });
    let began = std::time::Instant::now();
    story.slack.socket(None, &Order::Drop);
    until_alert(&story, APP, true).await;
    let ten = || {
        // Our own pacing waits for a clock that goes.
        story.advance(Duration::from_millis(1));
        story.slack.sockets().len() >= 13
    };
    story.until("ten have closed", ten).await;
    assert!(began.elapsed() > Duration::from_millis(900), "at least 0.1 s lie between two");
    let two = || {
        story.advance(Duration::from_millis(1));
        story.slack.open_sockets().len() == 2
    };
    story.until("two sockets", two).await;
    story.presses("U0DANA", &card, "Approve").await;
    until_alert(&story, APP, false).await;
    story.deliver().await;
    assert_eq!(story.recorded(&ask).len(), 1);
    story.end().await;
}

#[tokio::test]
async fn slack_case_12_socket_mode_is_switched_off() {
    let refused = Duration::from_secs(2);
    let quick = Duration::from_millis(300);
    let story = with(Timing { refused, steady: quick, ..Timing::default().faster(10) }).await;
    story.slack.switch(|switches| switches.socket_mode = false);
    story.slack.socket(None, &disconnect("link_disabled"));
    story.until_sockets(0).await;
    until_alert(&story, APP, true).await;
    let opened = || story.slack.calls("apps.connections.open").len();
    let calls = opened();
    story.until("it is tried again", || opened() > calls).await;
    assert_eq!(opened(), calls + 1, "once, after a while");
    story.slack.switch(|switches| switches.socket_mode = true);
    story.until_sockets(2).await;
    until_alert(&story, APP, false).await;
    story.end().await;
}

/// Others of the same app hold all ten sockets.
#[tokio::test]
async fn slack_case_12_too_many_sockets() {
    let crowded = Duration::from_secs(1);
    let story = with(Timing { crowded, ..Timing::default().faster(10) }).await;
    let (ask, card) = story.asked("deploy_service").await;
    story.slack.faults().add(Rule::next("link", Fault::Refuse { error: "too_many_websockets".into() }));
    let gone = story.slack.open_sockets()[0];
    story.slack.socket(Some(gone), &Order::Drop);
    story.until("the third is refused", || story.slack.sockets().len() == 3).await;
    story.until_sockets(1).await;
    tokio::time::sleep(crowded * 2).await;
    assert_eq!(story.slack.sockets().len(), 3, "one is enough now");
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver().await;
    assert_eq!(story.recorded(&ask).len(), 1);
    story.end().await;
}

/// A socket that looks connected and delivers nothing is replaced; what Slack sends again is taken.
#[tokio::test]
async fn slack_case_13_a_half_open_socket() {
    let story = begin().await;
    let (ask, card) = story.asked("deploy_service").await;
    story.slack.switch(|switches| switches.interactive_redelivery = true);
    let dead = story.slack.open_sockets()[0];
    story.slack.socket(Some(dead), &Order::HalfOpen);
    let sent = story.slack.deliver_payload(&press(&story, &card), &Manner::over(dead)).await;
    assert!(!sent[0].acked(), "it went nowhere");
    assert!(sent.last().unwrap().acked(), "{sent:?}");
    story.until("it is replaced", || story.slack.sockets().len() >= 3).await;
    story.deliver().await;
    assert_eq!(story.recorded(&ask), [(DANA.to_owned(), true)]);
    story.slack.socket(Some(dead), &Order::Drop);
    story.end().await;
}

/// Frames with nothing but what has to be there, and frames of another time.
#[tokio::test]
async fn slack_case_14_bare_and_odd_frames() {
    let story = begin().await;
    let (ask, card) = story.asked("delete_service").await;
    story.slack.switch(|switches| switches.bare_frames = true);
    story.slack.socket(None, &disconnect("refresh_requested"));
    story
        .until("both are replaced", || {
            story.slack.open_sockets().len() == 2 && story.slack.open_sockets()[0] > 2
        })
        .await;
    for odd in [
        json!({"type": "of_2030", "envelope_id": "x-1"}),
        json!({"type": "hello"}),
        json!({"type": "events_api", "envelope_id": "x-2", "payload": {"type": "event_callback"}}),
        json!({"type": "interactive", "payload": {"type": "block_actions"}}),
    ] {
        story.slack.socket(Some(story.slack.open_sockets()[0]), &frame(odd));
    }
    for odd in [Frame::Binary { bytes: vec![1, 2] }, Frame::Ping, Frame::Text { text: "{".into() }] {
        story.slack.socket(None, &Order::Send { frame: odd });
    }
    until_alert(&story, "unreadable:slack:socket", true).await;
    story.presses("U0DANA", &card, "Approve").await;
    story.presses("U0KIM", &card, "Approve").await;
    let command = story.slack.command("U0DANA", RELEASES, "/countersign", "open").await.unwrap();
    assert_eq!(command.json()["response_type"], "ephemeral", "{command:?}");
    story.deliver().await;
    assert_eq!(story.recorded(&ask).len(), 1);
    // The stand-in did not send those envelopes itself.
    let ours: Vec<_> = story
        .slack
        .complaints()
        .into_iter()
        .filter(|one| !one.contains("x-1") && !one.contains("x-2"))
        .collect();
    assert!(ours.is_empty(), "{ours:?}");
    story.slack.forget();
    story.end().await;
}

/// A payload of another app has no effect; a socket of another app is not used.
#[tokio::test]
async fn slack_case_59_another_app_on_a_socket() {
    let refused = Duration::from_millis(300);
    let story = with(Timing { refused, steady: refused, ..Timing::default().faster(10) }).await;
    let (ask, card) = story.asked("deploy_service").await;
    let mut payload = press(&story, &card);
    payload["api_app_id"] = "A0OTHER".into();
    let sent = story.slack.deliver_payload(&payload, &Manner::default()).await;
    assert!(!sent.iter().any(Delivery::acked), "{sent:?}");
    until_alert(&story, "other_app:acme", true).await;
    assert!(story.clicks().await.is_empty());

    story.slack.switch(|switches| switches.hello_app_id = Some("A0OTHER".into()));
    story.slack.socket(None, &Order::Drop);
    until_alert(&story, APP, true).await;
    let alert = story.alerts().await.into_iter().find(|one| one.key == APP).unwrap();
    assert!(alert.text.contains("A0OTHER") && alert.text.contains("bot token of app A0"), "{}", alert.text);
    story.slack.switch(|switches| switches.hello_app_id = None);
    story.until_sockets(2).await;
    until_alert(&story, APP, false).await;
    let spot = Spot::message(RELEASES, &card.ts);
    let pressed =
        story.slack.press_raw("U0DANA", &spot, "Approve", &Manner::default(), |_| {}).await.unwrap();
    assert!(pressed.iter().all(Delivery::acked), "{pressed:?}");
    story.deliver().await;
    assert_eq!(story.recorded(&ask), [(DANA.to_owned(), true)]);
    story.end().await;
}

/// Sockets that are cut every two seconds, refreshed under load, deliveries doubled, reordered and repeated:
/// no acknowledged click is lost, and no approval is given twice.
#[tokio::test]
async fn chaos_over_sockets_loses_no_acknowledged_click() {
    let story = with(Timing::default().faster(50)).await;
    story.slack.pace(100_000);
    story.slack.switch(|switches| switches.interactive_redelivery = true);
    story.slack.cut_sockets_every(Some(2));
    let mut asks = vec![];
    for round in 0..12 {
        let (ask, card) = story.asked(&format!("deploy_{round}")).await;
        asks.push(ask);
        if round % 3 == 0 {
            story.slack.socket(None, &disconnect("refresh_requested"));
        }
        if round % 4 == 1 {
            story.slack.hold_envelopes();
        }
        let spot = Spot::message(RELEASES, &card.ts);
        let (twice, once) = (Manner::twice(), Manner::default());
        let dana = story.slack.press_raw("U0DANA", &spot, "Approve", &twice, |_| {});
        let kim = story.slack.press_raw("U0KIM", &spot, "Approve", &once, |_| {});
        let cut = async {
            story.advance(Duration::from_millis(700));
            story.slack.release_envelopes(round % 2 == 1);
        };
        let (dana, kim, ()) = tokio::join!(dana, kim, cut);
        let mut acked = [dana.unwrap(), kim.unwrap()].concat().iter().any(Delivery::acked);
        // Whoever sees the warning presses again.
        while !acked {
            story.until("a socket", || !story.slack.open_sockets().is_empty()).await;
            let again = story.slack.press_raw("U0DANA", &spot, "Approve", &once, |_| {}).await.unwrap();
            acked = again.iter().any(Delivery::acked);
        }
        story.deliver().await;
        story.advance(Duration::from_millis(900));
    }
    story.slack.cut_sockets_every(None);
    story.pass(Duration::from_secs(10)).await;
    for ask in &asks {
        assert_eq!(story.recorded(ask).len(), 1, "answered once: {}", ask.interaction_id);
    }
    assert!(story.slack.sockets().len() > 8, "they were really cut");
    let clicks = story.clicks().await;
    assert!(clicks.values().sum::<i64>() >= 12, "{clicks:?}");
    // Three seconds of a clock that a story moves on are soon over.
    story.slack.forget();
    story.end().await;
}

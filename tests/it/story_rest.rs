//! What is left behind: copies, replies, reopened cards, registered tasks, waiting answers, alerts. Each comes to
//! rest as the guarantees say.

use crate::world::database::Backend;
use crate::world::story::{DANA, KIM, OPS, PEOPLE_AND_ROUTES, RELEASES, Story, WATCH_TOKEN, Wants};
use countersign::bridge::deliver::end_answer;
use countersign::domain::ids::Subject;
use countersign::net::Limits;
use countersign::sandbox::a2a::{AuthMode, CardSpec, Foreign, Jwks, State, Watch};
use countersign::sandbox::faults::{Fault, Rule};
use countersign::sandbox::slack::{Manner, Spot};
use countersign::store::jobs::{JobKind, LEASE};
use rstest::rstest;
use std::collections::BTreeMap;
use std::time::Duration;

fn hasty() -> Wants {
    Wants {
        limits: Limits { connect: Duration::from_millis(500), total: Duration::from_millis(400) },
        ..Wants::default()
    }
}

const DOWN: Fault = Fault::Status { code: 503, retry_after: None, body: None };

fn no_history(story: &Story) {
    for scope in ["channels:history", "groups:history", "im:history"] {
        story.slack.scope(countersign::sandbox::slack::acme::BOT_TOKEN, scope, false);
    }
}

/// Slack case 18: a second copy whose edit fails is edited later, like the card itself.
#[rstest]
#[tokio::test]
async fn a_copy_whose_edit_fails_is_edited_later(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let story = Story::with(on, hasty()).await;
    no_history(&story);
    story.slack.faults().add(Rule::next("chat.postMessage", Fault::Lost { ms: 3000 }));
    story.asks("deploy_service");
    story.tick().await;
    story.pass(Duration::from_secs(90)).await;
    let cards = story.slack.cards(RELEASES);
    assert_eq!(cards.len(), 2);
    story.presses("U0DANA", cards.first().unwrap(), "Approve").await;
    story.deliver_only(&[JobKind::Decide, JobKind::Answer]).await;
    story.slack.faults().add(Rule { method: "chat.update".into(), skip: 1, times: 1, fault: DOWN });
    story.pass(Duration::from_secs(20)).await;
    for card in &cards {
        assert!(story.reads(card).contains("approved"), "{}", story.reads(card));
    }
    story.end().await;
}

/// A worker that lost its lease in the middle of a post ends it all the same, finds that the card is another
/// message by now, and removes its own.
#[rstest]
#[tokio::test]
async fn a_lease_lost_while_posting_leaves_one_card(
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
) {
    let slow = Limits { connect: Duration::from_secs(2), total: Duration::from_secs(20) };
    let story = Story::with(on, Wants { limits: slow, ..Wants::default() }).await;
    no_history(&story);
    story.slack.faults().add(Rule::next("chat.postMessage", Fault::DelayAnswer { ms: 7000 }));
    story.asks("deploy_service");
    story.watch().await;
    let other = story.replica().await;
    let second = async {
        let limit = Duration::from_secs(4);
        let there = |world: &countersign::sandbox::slack::SlackWorld| {
            (!world.cards(RELEASES).is_empty()).then_some(())
        };
        story.slack.until("the first post", limit, there).await.unwrap();
        for seconds in [16, 61] {
            story.advance(Duration::from_secs(seconds));
            other.bridge.deliver_once(&[JobKind::Post]).await.unwrap();
        }
        assert_eq!(story.slack.cards(RELEASES).len(), 2, "the other worker could only post again");
    };
    tokio::join!(story.deliver_only(&[JobKind::Post]), second);
    assert_eq!(story.slack.cards(RELEASES).len(), 1, "one card at rest");
    other.bridge.store.close().await;
    story.pass(Duration::from_secs(20)).await;
    story.end().await;
}

/// Slack case 40: the lost edit may be an interim one, and later edits may have worked: the final state goes
/// once more all the same.
#[rstest]
#[tokio::test]
async fn a_lost_interim_edit_is_followed_by_the_final_state_twice(
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
) {
    let story = Story::begin(on).await;
    let (_ask, card) = story.asked("deploy_service").await;
    story.a2a.faults().add(Rule::always("*", DOWN));
    story.slack.faults().add(Rule::next("chat.update", DOWN));
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver().await;
    story.pass(Duration::from_secs(8)).await;
    assert!(story.reads(&card).contains("delivering"), "{}", story.reads(&card));
    assert_eq!(story.slack.calls("chat.update").len(), 2, "one lost, one that worked");
    story.a2a.faults().clear();
    story.pass(Duration::from_mins(1)).await;
    assert!(story.reads(&card).contains("approved by"));
    story.pass(Duration::from_secs(70)).await;
    assert_eq!(story.slack.calls("chat.update").len(), 4, "the final state twice");
    story.end().await;
}

/// Slack case 37: a message that cannot be edited any more gets the outcome as one reply beneath it, also when that
/// was found out before the end.
#[rstest]
#[tokio::test]
async fn a_frozen_card_gets_its_outcome_as_a_reply(
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
) {
    let story = Story::begin(on).await;
    let (ask, card) = story.asked("deploy_service").await;
    story
        .slack
        .faults()
        .add(Rule::always("chat.update", Fault::Refuse { error: "edit_window_closed".into() }));
    story.a2a.change(&ask.interaction_id, |ask| ask.prompt = Some("Approve something else?".into()));
    story.tick().await;
    story.pass(Duration::from_secs(3)).await;
    assert_eq!(story.slack.calls("chat.update").len(), 1);
    story.a2a.end(&ask.task_id, State::Canceled, None);
    story.tick().await;
    story.pass(Duration::from_secs(70)).await;
    let posts = story.slack.calls("chat.postMessage");
    assert_eq!(posts.len(), 2, "one reply");
    assert_eq!(posts.last().unwrap().arguments["thread_ts"].as_str(), Some(card.ts.as_str()));
    assert_eq!(story.slack.calls("chat.update").len(), 1, "no further edits");
    story.end().await;
}

/// It ended (as far as could be read) before it could be posted, and then it is open after all.
#[rstest]
#[tokio::test]
async fn what_reopens_unposted_is_posted(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let story = Story::begin(on).await;
    let watchers = |watch| {
        let jwt = AuthMode::Jwt {
            issuer: "https://countersign.test".into(),
            audience: "prod-agents".into(),
            jwks: Jwks::Url(format!("http://{}/.well-known/jwks.json", story.address)),
        };
        story.a2a.set_auth(vec![jwt], BTreeMap::from([(WATCH_TOKEN.to_owned(), watch)]));
    };
    story.a2a.switch(|switches| switches.foreign = Foreign::NotFound);
    story
        .slack
        .faults()
        .add(Rule::always("chat.postMessage", Fault::Refuse { error: "invalid_auth".into() }));
    let ask = story.asks("deploy_service");
    story.tick().await;
    watchers(Watch::Subject("nobody@example.com".into()));
    for _ in 0..3 {
        story.advance(Duration::from_secs(11));
        story.tick().await;
    }
    story.slack.faults().clear();
    story.pass(Duration::from_secs(70)).await;
    assert_eq!(story.slack.cards(RELEASES).len(), 0, "it is gone, so it is not posted");
    watchers(Watch::All);
    story.a2a.switch(|switches| switches.foreign = Foreign::Allowed);
    story.tick().await;
    let card = story.card(RELEASES);
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver().await;
    assert_eq!(story.recorded(&ask).len(), 1);
    story.pass(Duration::from_secs(5)).await;
    story.end().await;
}

/// A stale reading contradicts a settled answer once and is corrected: nobody reads that task for ever after.
#[rstest]
#[tokio::test]
async fn a_settled_interaction_is_not_read_for_ever(
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
) {
    let story = Story::begin(on).await;
    let (ask, card) = story.asked("deploy_service").await;
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver().await;
    assert_eq!(story.recorded(&ask).len(), 1);
    story.advance(Duration::from_secs(5));
    story.a2a.switch(|switches| switches.stale_reads_ms = 12_000);
    story.tick().await;
    story.a2a.switch(|switches| switches.stale_reads_ms = 0);
    let reads = || story.a2a.requests_of("GetTask").len();
    for _ in 0..3 {
        story.advance(Duration::from_secs(20));
        story.tick().await;
    }
    let before = reads();
    for _ in 0..5 {
        story.advance(Duration::from_secs(20));
        story.tick().await;
    }
    assert_eq!(reads(), before, "settled, and nothing asks for it");
    story.end().await;
}

/// A registration names a subject: a reading as that subject that succeeds makes it the owner.
#[rstest]
#[tokio::test]
async fn a_registered_subject_is_the_owner(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let story = Story::begin(on).await;
    let ask = story.asks("four_eyes");
    story.a2a.unlist(&ask.task_id, true);
    story.tick().await;
    assert_eq!(story.slack.cards(RELEASES).len(), 0);
    let dana = Subject::parse(DANA).unwrap();
    story.service.bridge.register_task("prod", &ask.task_id, None, Some(&dana)).await.unwrap();
    story.tick().await;
    let card = story.card(RELEASES);
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver().await;
    assert_eq!(story.audit().await.last().unwrap().rule.as_deref(), Some("self_approval"));
    story.presses("U0KIM", &card, "Approve").await;
    story.deliver().await;
    assert_eq!(story.recorded(&ask), [(KIM.to_owned(), true)]);
    story.pass(Duration::from_secs(5)).await;
    story.end().await;
}

/// The same where it was posted before: the card is redrawn with the owner. Registered as a subject that does not
/// see it: that closes nothing and names nobody.
#[rstest]
#[tokio::test]
async fn a_registration_after_the_card(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let story = Story::with(on, Wants { foreign: Foreign::NotFound, ..Wants::default() }).await;
    let (ask, card) = story.asked("deploy_service").await;
    story.a2a.unlist(&ask.task_id, true);
    let subject = |text| Subject::parse(text).unwrap();
    let bridge = &story.service.bridge;
    bridge.register_task("prod", &ask.task_id, None, Some(&subject("eve@example.com"))).await.unwrap();
    for _ in 0..4 {
        story.advance(Duration::from_secs(11));
        story.tick().await;
    }
    assert_eq!(story.buttons(&card), ["Approve", "Deny", "Deny with reason…"], "{}", story.reads(&card));
    let before = story.reads(&card);
    bridge.register_task("prod", &ask.task_id, None, Some(&subject(DANA))).await.unwrap();
    story.tick().await;
    story.pass(Duration::from_secs(2)).await;
    assert_ne!(story.reads(&card), before, "for whom the agent works");
    story.end().await;
}

/// A registered task that nobody ever finds is not read for ever.
#[rstest]
#[tokio::test]
async fn a_registered_task_that_is_never_found(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let story = Story::begin(on).await;
    story.service.bridge.register_task("prod", "t-typo", None, None).await.unwrap();
    for _ in 0..30 {
        story.tick().await;
        story.advance(Duration::from_secs(150));
    }
    let before = story.a2a.requests_of("GetTask").len();
    assert!(before > 10);
    for _ in 0..5 {
        story.tick().await;
        story.advance(Duration::from_secs(150));
    }
    assert_eq!(story.a2a.requests_of("GetTask").len(), before);
    story.end().await;
}

/// A2A case 65: credentials or configuration are wrong: kept, alerted, told once; tried again at once after a restart.
#[rstest]
#[tokio::test]
async fn what_needs_attention_goes_out_after_a_restart(
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
) {
    let mut story = Story::begin(on).await;
    let (ask, card) = story.asked("deploy_service").await;
    story.a2a.faults().add(Rule::always("SendMessage", Fault::Refuse { error: "-32601".into() }));
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver().await;
    assert_eq!(story.told("U0DANA").len(), 1);
    assert!(story.alert_keys().await.contains(&"answers:prod".to_owned()));
    story.a2a.faults().clear();
    story.pass(Duration::from_secs(5)).await;
    assert_eq!(story.recorded(&ask), [], "once a minute");
    story.restart().await;
    story.deliver().await;
    assert_eq!(story.recorded(&ask), [(DANA.to_owned(), true)]);
    assert_eq!(story.alert_keys().await, Vec::<String>::new());
    story.pass(Duration::from_secs(5)).await;
    story.end().await;
}

/// … and after a changed agent card.
#[rstest]
#[tokio::test]
async fn what_needs_attention_goes_out_after_a_changed_card(
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
) {
    let story = Story::begin(on).await;
    let (ask, card) = story.asked("deploy_service").await;
    story.a2a.faults().add(Rule::always("SendMessage", Fault::Refuse { error: "-32601".into() }));
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver().await;
    story.advance(Duration::from_secs(290));
    story.deliver().await;
    story.a2a.faults().clear();
    story.a2a.set_card("release", CardSpec { version: "2".into(), ..CardSpec::default() });
    story.advance(Duration::from_secs(15));
    story.deliver().await;
    assert_eq!(story.recorded(&ask), [], "not its time yet");
    story.tick().await;
    assert_eq!(story.recorded(&ask), [(DANA.to_owned(), true)]);
    story.pass(Duration::from_secs(5)).await;
    story.end().await;
}

/// The runtime speaks of a state nobody knows for longer than `deliver_within`: nothing was sent, so it is freed.
#[rstest]
#[tokio::test]
async fn an_unclear_state_does_not_keep_a_claim_for_ever(
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
) {
    let wants = Wants { more: "[policy]\ndeliver_within = \"5m\"", ..Wants::default() };
    let story = Story::with(on, wants).await;
    let (ask, card) = story.asked("deploy_service").await;
    story.a2a.show_as(&ask.task_id, Some("TASK_STATE_OF_TOMORROW"));
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver().await;
    story.pass(Duration::from_secs(400)).await;
    assert_eq!(story.buttons(&card), ["Approve", "Deny", "Deny with reason…"], "{}", story.reads(&card));
    assert!(!story.told("U0DANA").is_empty());
    assert_eq!(story.recorded(&ask), []);
    story.end().await;
}

/// An answer that became live while its job was ending keeps the job: nobody else would send it.
#[rstest]
#[tokio::test]
async fn the_job_of_a_live_answer_does_not_end(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let story = Story::begin(on).await;
    let (ask, card) = story.asked("deploy_service").await;
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver_only(&[JobKind::Decide]).await;
    let store = &story.service.bridge.store;
    let ended = store
        .write(|tx| {
            Box::pin(async move {
                let jobs = tx.claim("a worker", &[JobKind::Answer], 1, LEASE).await?;
                end_answer(tx, jobs.first().unwrap()).await
            })
        })
        .await;
    assert!(ended.unwrap());
    story.deliver().await;
    assert_eq!(story.recorded(&ask), [(DANA.to_owned(), true)]);
    story.pass(Duration::from_secs(5)).await;
    story.end().await;
}

/// One workspace configured twice: the card's own install takes the press.
#[rstest]
#[tokio::test]
async fn two_installs_of_one_workspace(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let story = Story::begin(on).await;
    let mut story = story;
    story
        .restart_with(|config| {
            let at = config.find("[[slack]]").unwrap();
            let end = config.find("[[group]]").unwrap();
            let again = config[at..end].replace("name = \"acme\"", "name = \"again\"");
            let config = format!("{}{again}{}", &config[..end], &config[end..]);
            config.replace(
                "to = [\"slack:acme:#releases\"]\nfallback",
                "to = [\"slack:again:C0RELEASES\"]\nfallback",
            )
        })
        .await;
    assert!(story.service.bridge.identify_once("again").await.unwrap());
    let (ask, card) = story.asked("deploy_service").await;
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver().await;
    assert_eq!(story.recorded(&ask), [(DANA.to_owned(), true)], "{:?}", story.told("U0DANA"));
    story.pass(Duration::from_secs(5)).await;
    story.end().await;
}

/// The person's link belongs to an install that has never told who we are there: that is no "not linked".
#[rstest]
#[tokio::test]
async fn a_link_of_an_install_that_was_never_reached(
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
) {
    let mut story = Story::begin(on).await;
    story
        .restart_with(|config| {
            let at = config.find("[[slack]]").unwrap();
            let end = config.find("[[group]]").unwrap();
            let other = config[at..end].replace("name = \"acme\"", "name = \"other\"");
            let config = format!("{}{other}{}", &config[..end], &config[end..]);
            config.replace("slack = [\"acme:U0DANA\"]", "slack = [\"other:U0DANA\"]")
        })
        .await;
    let (ask, card) = story.asked("deploy_service").await;
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver().await;
    story.pass(Duration::from_secs(35)).await;
    assert_eq!(story.recorded(&ask), []);
    assert_eq!(story.audit().await.last().unwrap().decision.as_deref(), Some("undetermined"));
    // Known now: the same person may.
    assert!(story.service.bridge.identify_once("other").await.unwrap());
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver().await;
    assert_eq!(story.recorded(&ask), [(DANA.to_owned(), true)]);
    story.pass(Duration::from_secs(5)).await;
    story.end().await;
}

/// A press from a workspace where we are not installed: told by its own address, and operators are told.
#[rstest]
#[tokio::test]
async fn pressed_where_nothing_is_installed(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let story = Story::begin(on).await;
    let (ask, card) = story.asked("deploy_service").await;
    let mut payload = story.slack.pressed("U0DANA", &Spot::message(RELEASES, &card.ts), "Approve").unwrap();
    payload["team"]["id"] = "T0NOWHERE".into();
    payload["actions"][0]["value"] = "k_nobody".into();
    let deliveries = story.slack.deliver_payload(&payload, &Manner::default()).await;
    assert!(deliveries.iter().all(countersign::sandbox::slack::Delivery::acked), "{deliveries:?}");
    story.deliver().await;
    assert_eq!(story.recorded(&ask), []);
    assert_eq!(story.told("U0DANA").len(), 1);
    assert_eq!(story.alert_keys().await, ["not_installed"]);
    story.advance(Duration::from_hours(25));
    story.service.bridge.tend_alerts().await.unwrap();
    assert_eq!(story.alert_keys().await, Vec::<String>::new());
    story.end().await;
}

/// Slack case 36: a place that is usable again takes the next card, and its alert is over.
#[rstest]
#[tokio::test]
async fn a_place_that_is_usable_again(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let story = Story::begin(on).await;
    story.asked("warm_up").await;
    story.slack.edit_channel(RELEASES, |channel| channel.archived = true);
    story.pass(Duration::from_secs(2)).await;
    story.asks("first");
    story.tick().await;
    story.pass(Duration::from_secs(5)).await;
    assert!(story.reads(&story.card(OPS)).contains("first"));
    assert_eq!(story.alert_keys().await, ["place:slack:acme:#releases"]);
    story.slack.edit_channel(RELEASES, |channel| channel.archived = false);
    story.pass(Duration::from_mins(10)).await;
    story.asks("second");
    story.tick().await;
    story.pass(Duration::from_secs(5)).await;
    assert!(story.reads(&story.card(RELEASES)).contains("second"));
    assert_eq!(story.alert_keys().await, Vec::<String>::new());
    story.end().await;
}

/// What no route takes is alerted once, costs nothing while nothing changes, and the alert ends with it.
#[rstest]
#[tokio::test]
async fn what_matches_no_route(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let only = PEOPLE_AND_ROUTES.rsplit_once("[[route]]").unwrap().0;
    let story = Story::with(on, Wants { people_and_routes: only, ..Wants::default() }).await;
    let ask = story.asks("deploy_service");
    for _ in 0..3 {
        story.tick().await;
        story.advance(Duration::from_secs(10));
    }
    let alerts =
        story.service.bridge.store.read(|tx| Box::pin(async move { tx.alerts().await })).await.unwrap();
    let found: Vec<_> = alerts.iter().map(|alert| (alert.key.as_str(), alert.times)).collect();
    assert_eq!(found, [("unrouted:prod", 1)]);
    story.a2a.end(&ask.task_id, State::Canceled, None);
    story.tick().await;
    assert_eq!(story.alert_keys().await, Vec::<String>::new());
    story.end().await;
}

/// Two chat accounts linked to one subject are one voter.
#[rstest]
#[tokio::test]
async fn two_accounts_of_one_subject_have_one_vote(
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
) {
    let mut story = Story::begin(on).await;
    story
        .restart_with(|config| {
            config.replace("slack = [\"acme:U0DANA\"]", "slack = [\"acme:U0DANA\", \"acme:U0SAM\"]")
        })
        .await;
    let (ask, card) = story.asked("delete_everything").await;
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver().await;
    story.presses("U0SAM", &card, "Approve").await;
    story.deliver().await;
    assert_eq!(story.recorded(&ask), []);
    story.presses("U0KIM", &card, "Approve").await;
    story.deliver().await;
    assert_eq!(story.recorded(&ask), [(KIM.to_owned(), true)]);
    story.pass(Duration::from_secs(5)).await;
    story.end().await;
}

/// A `#name` is pinned by id: when it later means another channel, cards go on to the pinned one and
/// operators are told.
#[rstest]
#[tokio::test]
async fn a_name_that_comes_to_mean_another_channel(
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
) {
    let story = Story::begin(on).await;
    story.asked("warm_up").await;
    let bridge = &story.service.bridge;
    bridge.check_pins("acme").await.unwrap();
    assert_eq!(story.alert_keys().await, Vec::<String>::new());
    story.slack.edit_channel(RELEASES, |channel| channel.name = "old-releases".into());
    let members = ["U0BOT", "U0DANA"];
    story
        .slack
        .add_channel(countersign::sandbox::slack::Channel::new("C0NEW", "releases", "T0ACME", &members));
    story.advance(Duration::from_hours(1));
    bridge.check_pins("acme").await.unwrap();
    assert_eq!(story.alert_keys().await, ["pin:acme:#releases"]);
    story.asked("deploy_service").await;
    assert_eq!(story.slack.cards(RELEASES).len(), 2);
    assert_eq!(story.slack.cards("C0NEW").len(), 0);
    story.end().await;
}

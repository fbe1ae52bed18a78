//! Who presses what, who they are, and how they are told.

use super::{BY_USERGROUP, begin, press, refuse, status, three_installs, with};
use crate::world::story::{DANA, KIM, RELEASES, Wants};
use countersign::sandbox::faults::Rule;
use countersign::sandbox::slack::{Delivery, Manner, Spot, acme};
use countersign::store::jobs::JobKind;
use rstest::rstest;
use serde_json::Value;
use std::time::Duration;

/// Two open cards, one above the other: the pressed one is answered.
#[tokio::test]
async fn slack_case_42_the_pressed_card_is_answered() {
    let story = begin().await;
    let (first, above) = story.asked("deploy_service").await;
    story.pass(Duration::from_secs(2)).await;
    let (second, card) = story.asked("deploy_site").await;
    assert_ne!(above.ts, card.ts);
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver().await;
    assert_eq!(story.recorded(&first), []);
    assert_eq!(story.recorded(&second).len(), 1);
    assert_eq!(story.buttons(&above), ["Approve", "Deny", "Deny with reason…"]);
    story.end().await;
}

/// The runtime refuses what we claimed: the card is open again, the presser is told, the next press works.
#[tokio::test]
async fn slack_case_44_a_refusal_after_the_claim_frees_it() {
    let story = begin().await;
    let (ask, card) = story.asked("deploy_service").await;
    story.a2a.faults().add(Rule::next("SendMessage", refuse("-32004")));
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver().await;
    story.pass(Duration::from_secs(5)).await;
    assert_eq!(story.recorded(&ask), []);
    assert_eq!(story.buttons(&card), ["Approve", "Deny", "Deny with reason…"], "{}", story.reads(&card));
    let told = story.told("U0DANA");
    assert!(told.len() == 1 && told.iter().all(|text| text.contains("did not take")), "{told:?}");
    story.presses("U0KIM", &card, "Approve").await;
    story.deliver().await;
    assert_eq!(story.recorded(&ask), [(KIM.to_owned(), true)]);
    story.end().await;
}

/// The press's own address fails: ephemerally; that fails too: by direct message.
#[rstest]
#[case(None, "chat.postEphemeral")]
#[case(Some("user_not_in_channel"), "chat.postMessage")]
#[tokio::test]
async fn slack_case_48_another_way_of_telling(#[case] ephemeral: Option<&str>, #[case] by: &str) {
    let story = begin().await;
    let (_, card) = story.asked("deploy_service").await;
    story.slack.faults().add(Rule::next("response_url", status(404)));
    if let Some(code) = ephemeral {
        story.slack.faults().add(Rule::next("chat.postEphemeral", refuse(code)));
    }
    let before = story.slack.calls(by).len();
    story.presses("U0SAM", &card, "Approve").await;
    story.deliver().await;
    story.pass(Duration::from_secs(2)).await;
    assert_eq!(story.slack.calls(by).len(), before + 1);
    let told = story.told("U0SAM");
    assert!(told.len() == 1 && told.iter().all(|text| text.contains("U0SAM")), "{told:?}");
    story.end().await;
}

/// Six notices for one press's address, one more than it takes, cannot come; but six presses have six.
#[tokio::test]
async fn slack_case_48_an_address_on_a_foreign_host_is_never_called() {
    let story = begin().await;
    let (_, card) = story.asked("deploy_service").await;
    let foreign = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut payload = story.slack.pressed("U0SAM", &Spot::message(RELEASES, &card.ts), "Approve").unwrap();
    // A name that is not the loopback address, and resolves to it.
    payload["response_url"] =
        format!("http://localhost.example:{}/x", foreign.local_addr().unwrap().port()).into();
    story.slack.deliver_payload(&payload, &Manner::default()).await;
    story.deliver().await;
    assert_eq!(story.slack.calls("response_url").len(), 0);
    assert_eq!(story.slack.calls("chat.postEphemeral").len(), 1);
    assert_eq!(story.told("U0SAM").len(), 1);
    story.end().await;
}

/// Half an hour later the address is dead and nobody looks at the channel: by direct message.
#[tokio::test]
async fn slack_case_48_half_an_hour_later() {
    let story = begin().await;
    let (_, card) = story.asked("deploy_service").await;
    story.presses("U0SAM", &card, "Approve").await;
    story.deliver_only(&[JobKind::Decide]).await;
    story.advance(Duration::from_mins(31));
    story.deliver().await;
    assert_eq!(story.slack.calls("response_url").len(), 0);
    assert_eq!(story.slack.calls("chat.postEphemeral").len(), 0);
    assert_eq!(story.slack.calls("conversations.open").len(), 1);
    assert_eq!(story.told("U0SAM").len(), 1);
    story.end().await;
}

/// A press by nobody Slack names: refused, the buttons stay, and it is in the audit log.
#[tokio::test]
async fn slack_case_50_a_press_by_nobody() {
    let story = begin().await;
    let (ask, card) = story.asked("deploy_service").await;
    let mut payload = press(&story, &card);
    payload.as_object_mut().unwrap().remove("user");
    let answers = story.slack.deliver_payload(&payload, &Manner::default()).await;
    assert!(answers.iter().all(Delivery::acked));
    story.deliver().await;
    assert_eq!(story.recorded(&ask), []);
    assert_eq!(story.buttons(&card), ["Approve", "Deny", "Deny with reason…"]);
    assert_eq!(story.audit().await.last().unwrap().decision.as_deref(), Some("refused"));
    story.end().await;
}

/// An org-wide install: no team in the payload, and it is known and answered all the same.
#[tokio::test]
async fn slack_case_51_an_org_wide_install() {
    let story = three_installs().await;
    let ask = story.asks("org_deploy");
    story.tick().await;
    let card = story.card("C0SOUTH");
    let pressed = story.presses("W0WIM", &card, "Approve").await;
    assert_eq!(pressed.payload()["team"], Value::Null);
    story.deliver().await;
    assert_eq!(story.recorded(&ask), [("ora@example.com".to_owned(), true)], "{:?}", story.told("W0WIM"));
    assert!(story.reads(&card).contains("approved by"));
    story.end().await;
}

/// The same user id in an unrelated workspace is another person, linked to nobody.
#[tokio::test]
async fn slack_case_52_the_same_id_in_another_workspace() {
    let story = three_installs().await;
    let ask = story.asks("beta_deploy");
    story.tick().await;
    let card = story.card("C0BETA");
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver().await;
    assert_eq!(story.recorded(&ask), []);
    assert_eq!(story.audit().await.last().unwrap().rule.as_deref(), Some("link"));
    assert_eq!(story.buttons(&card), ["Approve", "Deny", "Deny with reason…"]);
    story.end().await;
}

/// A user group that cannot be read: could not be checked. One that can: no to those outside.
#[tokio::test]
async fn slack_case_53_the_user_group() {
    let story = with(Wants { people_and_routes: BY_USERGROUP, ..Wants::default() }).await;
    let (ask, card) = story.asked("deploy_service").await;
    story.slack.scope(acme::BOT_TOKEN, "usergroups:read", false);
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver().await;
    story.pass(Duration::from_secs(40)).await;
    assert_eq!(story.recorded(&ask), []);
    let told = story.told("U0DANA");
    assert!(told.len() == 1 && told.iter().all(|text| text.contains("could not be checked")), "{told:?}");
    assert_eq!(story.audit().await.last().unwrap().decision.as_deref(), Some("undetermined"));
    story.slack.scope(acme::BOT_TOKEN, "usergroups:read", true);
    story.presses("U0SAM", &card, "Approve").await;
    story.deliver().await;
    let told = story.told("U0SAM");
    assert!(
        told.len() == 1
            && told.iter().all(|text| text.contains("You may not answer") && text.contains("release")),
        "{told:?}"
    );
    assert_eq!(story.recorded(&ask), []);
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver().await;
    assert_eq!(story.recorded(&ask), [(DANA.to_owned(), true)]);
    story.end().await;
}

/// Kim takes Dana's name, or loses every name: the same subject as before.
#[rstest]
#[case("dana", "Dana Lee")]
#[case("", "")]
#[tokio::test]
async fn slack_case_54_another_name_is_the_same_person(#[case] name: &str, #[case] real_name: &str) {
    let story = begin().await;
    let (ask, card) = story.asked("deploy_service").await;
    story.slack.edit_user("U0KIM", |user| {
        user.name = name.to_owned();
        user.real_name = real_name.to_owned();
    });
    story.presses("U0KIM", &card, "Approve").await;
    story.deliver().await;
    assert_eq!(story.recorded(&ask), [(KIM.to_owned(), true)]);
    story.end().await;
}

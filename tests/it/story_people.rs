//! Who may answer, and what everybody else is told.

use crate::world::story::{DANA, Ground, KIM, POSTGRES, RELEASES, SOCKETS, SQLITE, Story, Wants};
use countersign::sandbox::faults::{Fault, Rule};
use countersign::sandbox::slack::{Manner, Spot};
use rstest::rstest;
use std::time::Duration;

/// Slack case 49, first part: an unlinked clicker is told privately what to do; nothing is sent.
#[rstest]
#[tokio::test]
async fn an_unlinked_clicker_is_told_what_to_do(#[values(SQLITE, POSTGRES, SOCKETS)] on: Ground) {
    let story = Story::begin(on).await;
    let (ask, card) = story.asked("deploy_service").await;
    story.presses("U0SAM", &card, "Approve").await;
    story.deliver().await;
    assert_eq!(story.recorded(&ask), []);
    let told = story.told("U0SAM");
    assert_eq!(told.len(), 1);
    assert!(told.iter().all(|text| text.contains("U0SAM")), "it names the account to be linked: {told:?}");
    assert_eq!(story.buttons(&card), ["Approve", "Deny", "Deny with reason…"]);
    let audit = story.audit().await;
    let row = audit.last().unwrap();
    assert_eq!((row.rule.as_deref(), row.decision.as_deref()), (Some("link"), Some("refused")));
    assert_eq!(row.subject, None);
    story.end().await;
}

/// Slack case 50: guests, strangers, bots, deactivated and invited accounts never answer.
#[rstest]
#[case("U0GUEST")]
#[case("U0SINGLE")]
#[case("U0ROBOT")]
#[case("U0FLOW")]
#[case("U0GONE")]
#[case("U0INVITED")]
#[case("U0STRANGER")]
#[tokio::test]
async fn never_answers(#[case] user: &str, #[values(SQLITE, POSTGRES, SOCKETS)] on: Ground) {
    let story = Story::begin(on).await;
    let (ask, card) = story.asked("deploy_service").await;
    // Not everybody can see the channel: the press is made by hand as theirs.
    let mut payload = story.slack.pressed("U0DANA", &Spot::message(RELEASES, &card.ts), "Approve").unwrap();
    payload["user"]["id"] = user.into();
    if user == "U0STRANGER" {
        payload["user"]["team_id"] = "T0ELSEWHERE".into();
    }
    let deliveries = story.slack.deliver_payload(&payload, &Manner::default()).await;
    assert!(deliveries.iter().all(countersign::sandbox::slack::Delivery::acked), "{deliveries:?}");
    story.deliver().await;
    assert_eq!(story.recorded(&ask), []);
    assert_eq!(story.buttons(&card), ["Approve", "Deny", "Deny with reason…"]);
    assert_eq!(story.clicks().await.get("refused"), Some(&1));
    assert_eq!(story.audit().await.last().unwrap().decision.as_deref(), Some("refused"));
    story.pass(Duration::from_mins(1)).await;
    story.end().await;
}

/// Default deny: a route without approvers allows nobody.
#[rstest]
#[tokio::test]
async fn a_route_without_approvers(#[values(SQLITE, POSTGRES, SOCKETS)] on: Ground) {
    let story = Story::begin(on).await;
    let (ask, card) = story.asked("lonely").await;
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver().await;
    assert_eq!(story.recorded(&ask), []);
    assert_eq!(story.told("U0DANA").len(), 1);
    story.end().await;
}

/// Slack case 53: what cannot be checked is not allowed, and not refused as forbidden: try again.
#[rstest]
#[tokio::test]
async fn could_not_be_checked(#[values(SQLITE, POSTGRES, SOCKETS)] on: Ground) {
    let story = Story::begin(on).await;
    let (ask, card) = story.asked("deploy_service").await;
    story
        .slack
        .faults()
        .add(Rule::always("users.info", Fault::Status { code: 500, retry_after: None, body: None }));
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver().await;
    story.pass(Duration::from_secs(35)).await;
    assert_eq!(story.recorded(&ask), []);
    let told = story.told("U0DANA");
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(story.audit().await.last().unwrap().decision.as_deref(), Some("undetermined"));
    story.slack.faults().clear();
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver().await;
    assert_eq!(story.recorded(&ask), [(DANA.to_owned(), true)]);
    story.end().await;
}

/// Two approvals: votes are shown with names, `Withdraw` takes one's own back, the last vote answers.
#[rstest]
#[tokio::test]
async fn two_of_two(#[values(SQLITE, POSTGRES, SOCKETS)] on: Ground) {
    let story = Story::begin(on).await;
    let (ask, card) = story.asked("delete_everything").await;
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver().await;
    story.pass(Duration::from_secs(2)).await;
    assert!(story.reads(&card).contains("1 of 2"), "{}", story.reads(&card));
    assert_eq!(story.buttons(&card), ["Approve", "Deny", "Deny with reason…", "Withdraw"]);
    // Again: recorded already. Somebody else's Withdraw: they have no vote.
    story.presses("U0DANA", &card, "Approve").await;
    story.presses("U0KIM", &card, "Withdraw").await;
    story.deliver().await;
    assert_eq!(story.told("U0DANA").len(), 1);
    assert_eq!(story.told("U0KIM").len(), 1);
    // Taken back and given again.
    story.presses("U0DANA", &card, "Withdraw").await;
    story.deliver().await;
    story.pass(Duration::from_secs(2)).await;
    assert_eq!(story.buttons(&card), ["Approve", "Deny", "Deny with reason…"]);
    assert_eq!(story.recorded(&ask), []);
    story.presses("U0DANA", &card, "Approve").await;
    story.presses("U0KIM", &card, "Approve").await;
    story.deliver().await;
    story.pass(Duration::from_secs(3)).await;
    assert_eq!(story.recorded(&ask).len(), 1, "one answer, as the one who completed the number");
    assert!(story.buttons(&card).is_empty());
    let clicks = story.clicks().await;
    assert_eq!(clicks.get("delivered"), Some(&1));
    story.end().await;
}

/// One denial denies, whatever votes there are.
#[rstest]
#[tokio::test]
async fn one_denial_denies(#[values(SQLITE, POSTGRES, SOCKETS)] on: Ground) {
    let story = Story::begin(on).await;
    let (ask, card) = story.asked("delete_everything").await;
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver().await;
    story.presses("U0KIM", &card, "Deny").await;
    story.deliver().await;
    assert_eq!(story.recorded(&ask), [(KIM.to_owned(), false)]);
    story.end().await;
}

/// Every voter is checked again at the last vote: one who lost the right does not count any more.
#[rstest]
#[tokio::test]
async fn an_earlier_voter_lost_the_right(#[values(SQLITE, POSTGRES, SOCKETS)] on: Ground) {
    let mut story = Story::begin(on).await;
    let (ask, card) = story.asked("delete_everything").await;
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver().await;
    let without_dana =
        |config: String| config.replace("\"dana@example.com\", \"kim@example.com\"", "\"kim@example.com\"");
    story.restart_with(without_dana).await;
    story.presses("U0KIM", &card, "Approve").await;
    story.deliver().await;
    story.pass(Duration::from_secs(2)).await;
    assert_eq!(story.recorded(&ask), []);
    assert!(story.reads(&card).contains("1 of 2"), "{}", story.reads(&card));
    assert_eq!(story.told("U0DANA").len(), 1, "told that the vote does not count");
    story.end().await;
}

/// `self_approval = false` where the owner is not known: could not be checked.
#[rstest]
#[tokio::test]
async fn self_approval_with_an_unknown_owner(#[values(SQLITE, POSTGRES, SOCKETS)] on: Ground) {
    let story = Story::begin(on).await;
    let (ask, card) = story.asked("four_eyes").await;
    story.presses("U0KIM", &card, "Approve").await;
    story.deliver().await;
    story.pass(Duration::from_secs(35)).await;
    assert_eq!(story.recorded(&ask), []);
    assert_eq!(story.told("U0KIM").len(), 1);
    story.end().await;
}

/// `self_approval = false` with an owner known by `watch_as`: the owner is refused, another approver answers.
#[rstest]
#[tokio::test]
async fn self_approval_with_a_known_owner(#[values(SQLITE, POSTGRES, SOCKETS)] on: Ground) {
    let wants = Wants { runtime: "watch_as = [\"dana@example.com\"]", ..Wants::default() };
    let story = Story::with(on, wants).await;
    let (ask, card) = story.asked("four_eyes").await;
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver().await;
    assert_eq!(story.recorded(&ask), []);
    assert_eq!(story.told("U0DANA").len(), 1);
    story.presses("U0KIM", &card, "Approve").await;
    story.deliver().await;
    assert_eq!(story.recorded(&ask), [(KIM.to_owned(), true)]);
    story.end().await;
}

/// Slack case 43: the control of a message nobody knows: told privately, the controls are taken off.
#[rstest]
#[tokio::test]
async fn an_unknown_token(#[values(SQLITE, POSTGRES, SOCKETS)] on: Ground) {
    let story = Story::begin(on).await;
    let (ask, card) = story.asked("deploy_service").await;
    let mut payload = story.slack.pressed("U0DANA", &Spot::message(RELEASES, &card.ts), "Approve").unwrap();
    payload["actions"][0]["value"] = "k_0000000000000000000000".into();
    story.slack.deliver_payload(&payload, &Manner::default()).await;
    story.deliver().await;
    assert_eq!(story.recorded(&ask), []);
    assert_eq!(story.told("U0DANA").len(), 1);
    assert!(story.buttons(&card).is_empty(), "its controls are gone");
    story.end().await;
}

/// Slack case 43: restarted, an old button works; an ended one is told who was first.
#[rstest]
#[tokio::test]
async fn buttons_outlive_a_restart(#[values(SQLITE, POSTGRES, SOCKETS)] on: Ground) {
    let mut story = Story::begin(on).await;
    let (ask, card) = story.asked("deploy_service").await;
    let late = story.slack.pressed("U0KIM", &Spot::message(RELEASES, &card.ts), "Deny").unwrap();
    story.restart().await;
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver().await;
    assert_eq!(story.recorded(&ask).len(), 1);
    story.slack.deliver_payload(&late, &Manner::default()).await;
    story.deliver().await;
    let told = story.told("U0KIM");
    assert_eq!(told.len(), 1);
    assert!(told.iter().all(|text| text.to_lowercase().contains("approved")), "{told:?}");
    assert_eq!(story.recorded(&ask).len(), 1);
    story.end().await;
}

/// Slack case 31 and 33: hostile text is literal everywhere.
#[rstest]
#[tokio::test]
async fn hostile_text_is_literal(#[values(SQLITE, POSTGRES, SOCKETS)] on: Ground) {
    let story = Story::begin(on).await;
    let hostile = "<!channel> <@U0KIM> <https://evil.test|Approve> evil.test/x `a` \u{202e}abc\u{200b}";
    let ask =
        countersign::sandbox::a2a::Ask::approval("ci", "deploy_<!here>").prompt(hostile).reason(hostile);
    story.a2a.open(countersign::sandbox::a2a::Open::new(DANA, ask));
    story.tick().await;
    let card = story.card(RELEASES);
    assert!(story.slack.live(RELEASES, &card.ts).is_empty(), "{:?}", story.slack.live(RELEASES, &card.ts));
    let shown = story.reads(&card);
    assert!(shown.contains("<!channel>"), "{shown}");
    assert!(!shown.contains("evil.test"), "a bare address is broken visibly: {shown}");
    assert!(!shown.contains('\u{202e}') && !shown.contains('\u{200b}'), "{shown}");
    story.end().await;
}

/// Members who are subjects by Slack's own word; Dana is configured, and so is what Sam's account would be.
const BY_PLATFORM: &str = r#"
[[group]]
name = "release"
subjects = ["slack:T0ACME:U0KIM", "slack:T0ACME:U0DANA", "slack:T0ACME:U0SAM"]

[[person]]
subject = "dana@example.com"
slack = ["acme:U0DANA"]

[[person]]
subject = "slack:T0ACME:U0SAM"
slack = ["acme:U0LEE"]

[[route]]
when = { runtime = "prod" }
to = ["slack:acme:#releases"]
approvers = ["release"]
"#;

/// Who has no other link answers as the account, and nobody is made somebody who is configured.
#[rstest]
#[tokio::test]
async fn a_member_without_another_link_answers_as_the_account(#[values(SQLITE, POSTGRES)] on: Ground) {
    let slack = "subject = \"slack:{team_id}:{user_id}\"";
    let story = Story::with(on, Wants { slack, people_and_routes: BY_PLATFORM, ..Wants::default() }).await;
    let (ask, card) = story.asked("deploy_service").await;
    // A configured link wins, and that subject is in no group.
    story.presses("U0DANA", &card, "Approve").await;
    // Somebody else is configured as what this account would be.
    story.presses("U0SAM", &card, "Approve").await;
    story.deliver().await;
    assert_eq!(story.recorded(&ask), []);
    assert_eq!(story.clicks().await.get("refused"), Some(&2));
    story.presses("U0KIM", &card, "Approve").await;
    story.deliver().await;
    assert_eq!(story.recorded(&ask), [("slack:T0ACME:U0KIM".to_owned(), true)]);
    let card = story.card(RELEASES);
    assert!(story.reads(&card).contains("kim"), "named by mention: {}", story.reads(&card));
    story.pass(Duration::from_mins(2)).await;
    story.end().await;
}

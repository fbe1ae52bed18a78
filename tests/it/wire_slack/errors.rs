//! What Slack's refusals do: installs that stop and go on, codes nobody knows, events about the install.

use super::{begin, refuse, three_installs};
use crate::world::database::Backend;
use crate::world::story::{DANA, OPS, RELEASES, Story};
use countersign::sandbox::faults::Rule;
use countersign::sandbox::slack::{TokenState, acme};
use rstest::rstest;
use serde_json::json;
use std::time::Duration;

/// A token that is taken back stops that install: its queue is kept, nothing is hammered, others go on, one
/// alert; given back, everything goes out.
#[rstest]
#[tokio::test]
async fn slack_case_38_a_token_that_is_taken_back(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let story = Story::begin(on).await;
    let (ask, card) = story.asked("delete_everything").await;
    story.slack.token(acme::BOT_TOKEN, TokenState::Revoked);
    for _ in 0..5 {
        story.asks("deploy_service");
    }
    story.tick().await;
    story.pass(Duration::from_secs(2)).await;
    let tried = story.slack.requests().len();
    story.pass(Duration::from_secs(50)).await;
    let more: Vec<_> =
        story.slack.requests().into_iter().skip(tried).map(|one| (one.at_ms, one.method)).collect();
    assert_eq!(more, [], "nothing is sent while it is stopped");
    assert_eq!(story.alert_keys().await, ["chat:acme"]);
    assert_eq!(story.slack.cards(OPS).len(), 0, "it is no place's fault");
    // Asked who we are, it still refuses.
    assert!(!story.service.bridge.identify_once("acme").await.unwrap());
    story.pass(Duration::from_mins(2)).await;
    assert_eq!(story.slack.cards(RELEASES).len(), 1);
    story.slack.token(acme::BOT_TOKEN, TokenState::Live);
    assert!(story.service.bridge.identify_once("acme").await.unwrap());
    assert_eq!(story.alert_keys().await, [] as [String; 0]);
    story.pass(Duration::from_secs(75)).await;
    assert_eq!(story.slack.cards(RELEASES).len(), 6);
    story.presses("U0DANA", &card, "Deny").await;
    story.deliver().await;
    assert_eq!(story.recorded(&ask), [(DANA.to_owned(), false)]);
    story.end().await;
}

/// The app is removed from one workspace, or its bot token is taken back: that install stops and operators are
/// told; another user's token means nothing.
#[rstest]
#[case(json!({"type": "app_uninstalled"}), true)]
#[case(json!({"type": "tokens_revoked", "tokens": {"oauth": ["U0DANA"], "bot": ["U0BOT"]}}), true)]
#[case(json!({"type": "tokens_revoked", "tokens": {"oauth": ["U0DANA"]}}), false)]
#[tokio::test]
async fn slack_case_38_the_end_of_an_install(#[case] event: serde_json::Value, #[case] ends: bool) {
    let story = three_installs().await;
    if ends {
        story.slack.token(acme::BOT_TOKEN, TokenState::Revoked);
    }
    assert!(story.slack.event("T0ACME", &event, None).await.unwrap().acked());
    assert_eq!(story.alert_keys().await.contains(&"chat:acme".to_owned()), ends);
    story.asks("deploy_service");
    story.asks("beta_deploy");
    story.tick().await;
    assert_eq!(story.slack.cards("C0BETA").len(), 1, "others go on");
    assert_eq!(story.slack.cards(RELEASES).len(), usize::from(!ends));
    // Installed again with the same token.
    story.slack.token(acme::BOT_TOKEN, TokenState::Live);
    assert!(story.service.bridge.identify_once("acme").await.unwrap());
    assert_eq!(story.alert_keys().await, [] as [String; 0]);
    story.pass(Duration::from_secs(75)).await;
    assert_eq!(story.slack.cards(RELEASES).len(), 1);
    story.end().await;
}

/// Slack drops events: operators are told, and an hour later it is over.
#[tokio::test]
async fn slack_case_38_too_many_events() {
    let story = begin().await;
    let body = json!({
        "type": "app_rate_limited", "token": "legacy", "team_id": "T0ACME", "minute_rate_limited": 1_796_029_200,
        "api_app_id": acme::APP_ID,
    });
    story.slack.event_again(&body, None).await;
    assert_eq!(story.alert_keys().await, ["rate:acme"]);
    story.advance(Duration::from_mins(61));
    story.service.bridge.tend_alerts().await.unwrap();
    assert_eq!(story.alert_keys().await, [] as [String; 0]);
    story.end().await;
}

/// A code nobody knows: never the same again there; the next place, and operators are told.
#[rstest]
#[tokio::test]
async fn slack_case_36_a_code_nobody_knows(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let story = Story::begin(on).await;
    story.slack.faults().add(Rule::next("chat.postMessage", refuse("invented_yesterday")));
    let ask = story.asks("deploy_service");
    story.tick().await;
    story.pass(Duration::from_mins(2)).await;
    assert_eq!((story.slack.cards(RELEASES).len(), story.slack.cards(OPS).len()), (0, 1));
    assert_eq!(story.slack.calls("chat.postMessage").len(), 2);
    let alerts = story.alerts().await;
    assert!(alerts.iter().any(|alert| alert.text.contains("invented_yesterday")), "{alerts:?}");
    story.presses("U0DANA", &story.card(OPS), "Approve").await;
    story.deliver().await;
    assert_eq!(story.recorded(&ask), [(DANA.to_owned(), true)]);
    story.end().await;
}

/// Slack does not take the metadata: the same card goes once without it, and is answered like any other.
#[rstest]
#[case("invalid_metadata_schema")]
#[case("metadata_too_large")]
#[tokio::test]
async fn slack_case_35_metadata_that_is_refused(#[case] code: &str) {
    let story = begin().await;
    story.slack.faults().add(Rule::next("chat.postMessage", refuse(code)));
    let ask = story.asks("deploy_service");
    story.tick().await;
    story.pass(Duration::from_secs(3)).await;
    let posts = story.slack.calls("chat.postMessage");
    assert_eq!(posts.len(), 2);
    assert!(posts[0].arguments.get("metadata").is_some() && posts[1].arguments.get("metadata").is_none());
    assert_eq!(posts[0].arguments["blocks"], posts[1].arguments["blocks"], "nothing else was at fault");
    story.presses("U0DANA", &story.card(RELEASES), "Approve").await;
    story.deliver().await;
    assert_eq!(story.recorded(&ask).len(), 1);
    story.end().await;
}

/// A channel that takes no edit now gets the final state when it does.
#[tokio::test]
async fn slack_case_36_a_place_that_takes_no_edit() {
    let story = begin().await;
    let (_, card) = story.asked("deploy_service").await;
    story.slack.faults().add(Rule::next("chat.update", refuse("restricted_action")));
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver().await;
    story.pass(Duration::from_secs(5)).await;
    assert_eq!(story.buttons(&card), ["Approve", "Deny", "Deny with reason…"]);
    assert_eq!(story.alert_keys().await, ["place:slack:acme:#releases"]);
    story.pass(Duration::from_mins(11)).await;
    assert!(story.reads(&card).contains("approved by"), "{}", story.reads(&card));
    assert_eq!(story.alert_keys().await, [] as [String; 0]);
    story.end().await;
}

/// A user group that cannot be read is told to operators, and no more once it can.
#[tokio::test]
async fn slack_case_53_an_unreadable_group_is_told_to_operators() {
    let story = super::with(crate::world::story::Wants {
        people_and_routes: super::BY_USERGROUP,
        ..crate::world::story::Wants::default()
    })
    .await;
    let (ask, card) = story.asked("deploy_service").await;
    story.slack.faults().add(Rule::next("usergroups.users.list", refuse("no_such_subteam")));
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver().await;
    assert_eq!(story.alert_keys().await, ["group:acme:S0RELEASE"]);
    story.pass(Duration::from_secs(5)).await;
    assert_eq!(story.recorded(&ask), [(DANA.to_owned(), true)]);
    assert_eq!(story.alert_keys().await, [] as [String; 0]);
    story.end().await;
}

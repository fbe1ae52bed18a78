//! What Slack sends: signatures, what is no press, other apps, and presses when something is down.

use super::{begin, hasty, post, press, with};
use crate::world::database::Backend;
use crate::world::story::{DANA, OPERATOR, PREVIOUS_SECRET, RELEASES, Story, Wants, config, env};
use countersign::config::Config;
use countersign::sandbox::faults::{Fault, Rule};
use countersign::sandbox::slack::{Delivery, Door, Manner, Signing, Spot};
use countersign::store::jobs::JobKind;
use rstest::rstest;
use serde_json::{Value, json};
use std::time::Duration;

#[tokio::test]
async fn slack_case_1_the_bytes_are_signed_and_not_their_meaning() {
    let story = begin().await;
    let (ask, card) = story.asked("deploy_service").await;
    let mut payload = press(&story, &card);
    payload["user"]["username"] = "* + %20".into();
    let plus: String = url::form_urlencoded::byte_serialize(payload.to_string().as_bytes()).collect();
    let plus = format!("payload={plus}");
    let spaces = plus.replace('+', "%20");
    assert!(plus != spaces && spaces.contains('*'));
    assert_eq!(post(&story, spaces.as_bytes(), plus.as_bytes()).await, 401);
    assert_eq!(post(&story, plus.as_bytes(), spaces.as_bytes()).await, 401);
    assert!(story.clicks().await.is_empty());
    assert_eq!(post(&story, spaces.as_bytes(), spaces.as_bytes()).await, 200);
    story.deliver().await;
    assert_eq!(story.recorded(&ask).len(), 1);
    story.end().await;
}

#[rstest]
#[case(Signing::Bad)]
#[case(Signing::Truncated)]
#[case(Signing::UpperCase)]
#[case(Signing::Missing)]
#[case(Signing::Doubled)]
#[case(Signing::ChangedBody)]
#[case(Signing::Secret { secret: "another".into() })]
#[tokio::test]
async fn slack_case_2_a_wrong_signature_stores_nothing(#[case] signing: Signing) {
    let story = begin().await;
    let (ask, card) = story.asked("deploy_service").await;
    let payload = press(&story, &card);
    let refused = story.slack.deliver_payload(&payload, &Manner::signed(signing)).await;
    assert!(refused.iter().all(|one| one.status == 401 && one.body.is_empty()), "{refused:?}");
    story.deliver().await;
    assert!(story.clicks().await.is_empty());
    assert_eq!(story.recorded(&ask), []);
    story.end().await;
}

#[rstest]
#[case(Signing::Old { seconds: 300 }, 200)]
#[case(Signing::Ahead { seconds: 300 }, 200)]
#[case(Signing::Old { seconds: 301 }, 401)]
#[case(Signing::Ahead { seconds: 301 }, 401)]
#[case(Signing::Timestamp { text: "-5".into() }, 401)]
#[case(Signing::Timestamp { text: "12a".into() }, 401)]
#[case(Signing::NoTimestamp, 401)]
#[case(Signing::DoubledTimestamp, 401)]
#[tokio::test]
async fn slack_case_3_five_minutes_to_either_side(#[case] signing: Signing, #[case] expected: u16) {
    let story = begin().await;
    let (ask, card) = story.asked("deploy_service").await;
    let payload = press(&story, &card);
    let answers = story.slack.deliver_payload(&payload, &Manner::signed(signing)).await;
    assert!(answers.iter().all(|one| one.status == expected), "{answers:?}");
    story.deliver().await;
    assert_eq!(story.recorded(&ask).len(), usize::from(expected == 200));
    story.end().await;
}

#[tokio::test]
async fn slack_case_4_both_secrets_of_a_rotation() {
    let wants = Wants { slack: "previous_signing_secret = { env = \"PREVIOUS\" }", ..Wants::default() };
    let story = with(wants).await;
    let (ask, card) = story.asked("delete_everything").await;
    let previous = Manner::signed(Signing::Secret { secret: PREVIOUS_SECRET.into() });
    let first = story.slack.deliver_payload(&press(&story, &card), &previous).await;
    assert!(first.iter().all(Delivery::acked), "{first:?}");
    story.presses("U0KIM", &card, "Approve").await;
    story.deliver().await;
    assert_eq!(story.recorded(&ask).len(), 1, "both votes counted");
    story.end().await;
}

#[rstest]
#[case("SIGNING")]
#[case("PREVIOUS")]
#[tokio::test]
async fn slack_case_4_an_empty_secret_stops_the_start(#[case] empty: &str) {
    let folder = tempfile::tempdir().unwrap();
    let address = "127.0.0.1:9".parse().unwrap();
    let wants = Wants { slack: "previous_signing_secret = { env = \"PREVIOUS\" }", ..Wants::default() };
    let text = config(&wants, address, address, "sqlite::memory:", &folder);
    let findings =
        Config::parse(&text, &|name: &str| if name == empty { Some(String::new()) } else { env(name) });
    let findings = findings.unwrap_err().to_string();
    assert!(findings.contains("signing_secret"), "{findings}");
}

/// The same signed request again, minutes later: acknowledged, without a second effect or notice.
#[tokio::test]
async fn slack_case_5_a_replay_has_no_effect() {
    let story = begin().await;
    let (ask, card) = story.asked("deploy_service").await;
    let payload = story.slack.pressed("U0SAM", &Spot::message(RELEASES, &card.ts), "Approve").unwrap();
    let at = Manner::signed(Signing::Timestamp { text: (story.now().0 / 1000).to_string() });
    for _ in 0..3 {
        let answers = story.slack.deliver_payload(&payload, &at).await;
        assert!(answers.iter().all(Delivery::acked), "{answers:?}");
        story.pass(Duration::from_secs(90)).await;
    }
    assert_eq!(story.told("U0SAM").len(), 1);
    assert_eq!(story.clicks().await.values().sum::<i64>(), 1);
    assert_eq!(story.recorded(&ask), []);
    story.end().await;
}

#[tokio::test]
async fn slack_case_6_what_is_not_a_press() {
    let story = begin().await;
    let good = Manner::default();
    let send = async |door, body: &str, manner: &Manner| {
        let answers = story.slack.deliver_bytes(door, body.as_bytes().to_vec(), manner).await;
        let first = answers.first().unwrap();
        (first.status, first.body.clone())
    };
    assert_eq!(send(Door::Interactivity, "payload=%7Bno", &good).await, (400, String::new()));
    let alerts = story.alerts().await;
    assert!(alerts.iter().any(|alert| alert.key == "unreadable:slack:interactivity"), "{alerts:?}");
    let unknown = "payload=%7B%22type%22%3A%22from_the_future%22%7D";
    assert_eq!(send(Door::Interactivity, unknown, &good).await.0, 200);
    let challenge = r#"{"type":"url_verification","challenge":"x7"}"#;
    let (code, body) = send(Door::Events, challenge, &good).await;
    assert_eq!((code, serde_json::from_str::<Value>(&body).unwrap()), (200, json!({"challenge": "x7"})));
    let unsigned = Manner::signed(Signing::Missing);
    assert_eq!(send(Door::Events, challenge, &unsigned).await, (401, String::new()));
    assert_eq!(send(Door::Commands, "ssl_check=1&token=x", &unsigned).await, (200, String::new()));
    assert!(story.clicks().await.is_empty());
    story.end().await;
}

/// When presses cannot be stored they fail where the person sees it; afterwards a new one works.
#[rstest]
#[tokio::test]
async fn slack_case_7_without_the_database(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let story = Story::begin(on).await;
    let (ask, card) = story.asked("deploy_service").await;
    story.breaks_the_database(true).await;
    let failed = story.slack.press("U0DANA", RELEASES, &card.ts, "Approve").await.unwrap();
    assert_eq!((failed.status, failed.body.as_str()), (500, ""));
    assert!(failed.took_ms < 3000);
    story.breaks_the_database(false).await;
    assert!(story.clicks().await.is_empty());
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver().await;
    assert_eq!(story.recorded(&ask), [(DANA.to_owned(), true)]);
    story.end().await;
}

/// The runtime does not answer for half a minute: acknowledged at once, the card says delivering, then the truth.
#[tokio::test]
async fn slack_case_8_a_slow_runtime() {
    let story = with(hasty()).await;
    let (ask, card) = story.asked("deploy_service").await;
    story.a2a.faults().add(Rule::always("SendMessage", Fault::Hang { ms: 3000 }));
    let pressed = story.presses("U0DANA", &card, "Approve").await;
    assert!(pressed.took_ms < 3000, "{}", pressed.took_ms);
    story.deliver().await;
    story.pass(Duration::from_secs(30)).await;
    let shown = story.reads(&card);
    assert!(shown.contains("delivering") && !shown.contains("approved"), "{shown}");
    assert!(story.buttons(&card).is_empty());
    story.a2a.faults().clear();
    story.pass(Duration::from_mins(1)).await;
    assert_eq!(story.recorded(&ask), [(DANA.to_owned(), true)]);
    assert!(story.reads(&card).contains("approved by"), "{}", story.reads(&card));
    story.end().await;
}

/// Killed after the commit and before the judgement; killed after the claim and before the answer.
#[rstest]
#[case(false)]
#[case(true)]
#[tokio::test]
async fn slack_case_9_killed_between_press_and_answer(
    #[case] claimed: bool,
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
) {
    let mut story = Story::begin(on).await;
    let (ask, card) = story.asked("deploy_service").await;
    let payload = press(&story, &card);
    story.slack.deliver_payload(&payload, &Manner::default()).await;
    if claimed {
        story.deliver_only(&[JobKind::Decide]).await;
    }
    story.restart().await;
    // Slack did not see the acknowledgement and sends it again.
    let again = story.slack.deliver_payload(&payload, &Manner::default()).await;
    assert!(again.iter().all(Delivery::acked));
    story.deliver().await;
    story.pass(Duration::from_secs(5)).await;
    assert_eq!(story.recorded(&ask), [(DANA.to_owned(), true)]);
    assert_eq!(story.a2a.requests_of("SendMessage").len(), 1);
    assert_eq!(story.clicks().await.values().sum::<i64>(), 1);
    story.end().await;
}

#[tokio::test]
async fn slack_case_57_a_command_with_hostile_text() {
    let story = begin().await;
    let hostile = "<!channel> <@U0KIM> <https://evil.test|open> `x`";
    let answer = story.slack.command("U0DANA", RELEASES, "/countersign", hostile).await.unwrap();
    assert!(answer.acked(), "{answer:?}");
    assert_eq!(answer.json()["response_type"], "ephemeral");
    for part in ["<!", "<@", "evil.test", "`x`"] {
        assert!(!answer.body.contains(part), "{part}: {}", answer.body);
    }
    assert_eq!(story.told("U0DANA").len(), 1);
    story.end().await;
}

/// A preview bot fetches what it finds, and every address of ours: nothing changes.
#[tokio::test]
async fn slack_case_58_fetching_changes_nothing() {
    let story = begin().await;
    let (ask, card) = story.asked("deploy_service").await;
    let (requests, calls) = (story.a2a.requests().len(), story.slack.requests().len());
    let ours = story.address.to_string();
    assert!(!json!(card.blocks).to_string().contains(&ours), "no link of a card leads to us");
    let bearer = format!("Bearer {OPERATOR}");
    for path in [
        "/slack/interactivity",
        "/slack/commands",
        "/slack/events",
        "/.well-known/jwks.json",
        "/healthz",
        "/readyz",
        "/metrics",
        "/api/v1/interactions",
        "/api/v1/tasks",
        "/api/v1/audit",
        "/",
    ] {
        for headers in [vec![], vec![("authorization", bearer.as_str())]] {
            let (status, _) = story.http("GET", path, &headers, vec![]).await;
            assert!(status != 500, "{path}: {status}");
        }
    }
    story.deliver().await;
    assert!(story.clicks().await.is_empty());
    assert!(story.jobs().await.is_empty());
    assert!(story.audit().await.is_empty());
    assert_eq!((story.a2a.requests().len(), story.slack.requests().len()), (requests, calls));
    assert_eq!(story.recorded(&ask), []);
    story.end().await;
}

#[tokio::test]
async fn slack_case_59_a_payload_of_another_app() {
    let story = begin().await;
    let (ask, card) = story.asked("deploy_service").await;
    let mut payload = press(&story, &card);
    payload["api_app_id"] = "A0OTHER".into();
    let answers = story.slack.deliver_payload(&payload, &Manner::default()).await;
    assert!(answers.iter().all(|one| one.status == 401 && one.body.is_empty()), "{answers:?}");
    story.deliver().await;
    assert!(story.clicks().await.is_empty());
    assert_eq!(story.recorded(&ask), []);
    story.end().await;
}

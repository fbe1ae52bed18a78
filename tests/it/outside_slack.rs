//! Signatures by other hands: `slack_sdk` takes what the stand-in signs, and we take what `slack_sdk` signs.

use crate::world::database::Backend;
use crate::world::outside::SlackSdk;
use crate::world::story::{START, Story};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use countersign::chat::slack::Verifier;
use countersign::domain::clock::Millis;
use countersign::sandbox::slack::acme::SIGNING_SECRET;
use secrecy::SecretString;

#[tokio::test]
async fn slack_sdk_takes_what_the_stand_in_signs() {
    let story = Story::begin(Backend::Sqlite).await;
    let (_ask, card) = story.asked("deploy_service").await;
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver().await;
    let mut sdk = SlackSdk::start();
    let deliveries = story.slack.deliveries();
    assert!(!deliveries.is_empty());
    for delivery in deliveries {
        let header = |name: &str| {
            let found = delivery.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
            found.map(|(_, value)| value.clone()).unwrap()
        };
        let at: i64 = header("x-slack-request-timestamp").parse().unwrap();
        let signature = header("x-slack-signature");
        assert!(sdk.accepts(SIGNING_SECRET, at, &delivery.raw, &signature, at));
        assert!(!sdk.accepts(SIGNING_SECRET, at, &format!("{} ", delivery.raw), &signature, at));
    }
    story.end().await;
}

#[test]
fn we_take_what_slack_sdk_signs() {
    let mut sdk = SlackSdk::start();
    let verifier = Verifier::new(&SecretString::from(SIGNING_SECRET), None).unwrap();
    let at = START / 1000;
    for body in ["", "payload=%7B%22t%22%3A%22*+%20%2B%22%7D", "payload=%7B%7D\n", "ü=1&b=%00"] {
        let signature = sdk.sign(SIGNING_SECRET, at, body);
        let headers = |signature: &str| {
            let mut headers = HeaderMap::new();
            let mut set = |name: &'static str, value: &str| {
                headers.insert(HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
            };
            set("x-slack-request-timestamp", &at.to_string());
            set("x-slack-signature", signature);
            headers
        };
        assert!(verifier.verify(&headers(&signature), body.as_bytes(), Millis(START)).is_ok(), "{body:?}");
        let changed = format!("{body}x");
        assert!(verifier.verify(&headers(&signature), changed.as_bytes(), Millis(START)).is_err());
        let other = sdk.sign("another secret", at, body);
        assert!(verifier.verify(&headers(&other), body.as_bytes(), Millis(START)).is_err());
    }
}

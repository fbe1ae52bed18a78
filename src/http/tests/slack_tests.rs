//! Slack's ways in: signatures, replay, unreadable bodies, the database down, other apps.

use super::*;
use rstest::rstest;
use serde_json::json;

const WAYS: [&str; 3] = ["/slack/interactivity", "/slack/commands", "/slack/events"];

#[tokio::test]
async fn slack_case_1_the_signature_is_over_the_raw_bytes() {
    let doors = Doors::open().await;
    let body = press(|_| ());
    let spaced = String::from_utf8(body.clone()).unwrap().replace('+', "%20").into_bytes();
    assert_ne!(body, spaced, "the body has a + to write otherwise");
    assert_eq!(doors.slack(WAYS[0], &body).await.status, StatusCode::OK);
    assert_eq!(doors.stored().await.0, 1);
    // The same form, written otherwise, under the first one's signature.
    for reencoded in [spaced, [body.clone(), b"\n".to_vec()].concat(), body.replace_byte(b'*', "%2A")] {
        let mut request = signed(WAYS[0], &body, SECRET, START);
        *request.body_mut() = Body::from(reencoded);
        let got = doors.send(request).await;
        assert_eq!((got.status, got.text()), (StatusCode::UNAUTHORIZED, ""));
    }
    assert_eq!(doors.stored().await, (1, vec![]));
}

trait ReplaceByte {
    fn replace_byte(&self, byte: u8, by: &str) -> Vec<u8>;
}

impl ReplaceByte for Vec<u8> {
    fn replace_byte(&self, byte: u8, by: &str) -> Vec<u8> {
        assert!(self.contains(&byte));
        self.iter().flat_map(|b| if *b == byte { by.as_bytes().to_vec() } else { vec![*b] }).collect()
    }
}

#[tokio::test]
async fn slack_case_2_whatever_is_not_signed_by_us_is_refused() {
    let doors = Doors::open().await;
    let body = press(|_| ());
    let good = crate::chat::slack::sign(&SECRET.into(), START, &body);
    let foreign = crate::chat::slack::sign(&"another".into(), START, &body);
    let upper = good.replacen("v0", "V0", 1);
    let stamp = START.to_string();
    let signatures: [&[&str]; 6] = [&[], &[&foreign], &[&good[..40]], &[&upper], &[&good, &good], &["v0="]];
    for way in WAYS {
        for headers in signatures {
            let mut request = request(Method::POST, way).header("x-slack-request-timestamp", &stamp);
            for signature in headers {
                request = request.header("x-slack-signature", *signature);
            }
            let got = doors.send(request.body(Body::from(body.clone())).unwrap()).await;
            assert_eq!((got.status, got.text()), (StatusCode::UNAUTHORIZED, ""), "{way} {headers:?}");
        }
        let mut changed = signed(way, &body, SECRET, START);
        let mut other = body.clone();
        *other.last_mut().unwrap() ^= 1;
        *changed.body_mut() = Body::from(other);
        assert_eq!(doors.send(changed).await.status, StatusCode::UNAUTHORIZED, "{way}");
    }
    assert_eq!(doors.stored().await, (0, vec![]));
}

#[rstest]
#[case(Some("300"), START, StatusCode::OK)]
#[case(Some("-300"), START, StatusCode::OK)]
#[case(Some("301"), START, StatusCode::UNAUTHORIZED)]
#[case(Some("-301"), START, StatusCode::UNAUTHORIZED)]
#[case(None, START, StatusCode::UNAUTHORIZED)]
#[tokio::test]
async fn slack_case_3_five_minutes_both_ways(
    #[case] offset: Option<&str>,
    #[case] now: i64,
    #[case] status: StatusCode,
) {
    let doors = Doors::open().await;
    let body = press(|_| ());
    let at = now + offset.map_or(0, |offset| offset.parse::<i64>().unwrap());
    let mut request = signed(WAYS[0], &body, SECRET, at);
    if offset.is_none() {
        request.headers_mut().remove("x-slack-request-timestamp");
    }
    assert_eq!(doors.send(request).await.status, status);
    assert_eq!(doors.stored().await.0, i64::from(status == StatusCode::OK));
}

#[tokio::test]
async fn slack_case_4_both_secrets_count_during_a_rotation_and_an_empty_one_stops_the_start() {
    let doors = Doors::open().await;
    let body = press(|_| ());
    for secret in [SECRET, OLD_SECRET] {
        assert_eq!(doors.send(signed(WAYS[0], &body, secret, START)).await.status, StatusCode::OK);
    }
    assert!(SlackDoor::new("acme", None, &"".into(), None).is_err());
    assert!(SlackDoor::new("acme", None, &SECRET.into(), Some(&"".into())).is_err());
}

#[tokio::test]
async fn slack_case_5_a_replay_is_acknowledged_and_stored_once() {
    let doors = Doors::open().await;
    let body = press(|_| ());
    for again in 0..3 {
        let mut request = signed(WAYS[0], &body, SECRET, START);
        // Never dropped because it is a retry: it may be the first that arrives.
        request.headers_mut().insert("x-slack-retry-num", again.to_string().parse().unwrap());
        let got = doors.send(request).await;
        assert_eq!((got.status, got.text()), (StatusCode::OK, ""));
        doors.hand.0.fetch_add(60_000, Ordering::SeqCst);
    }
    assert_eq!(doors.stored().await, (1, vec![]));
    let second = press(|payload| payload["actions"][0]["action_ts"] = json!("1796000010.1"));
    doors.slack(WAYS[0], &second).await;
    assert_eq!(doors.stored().await.0, 2);
}

#[tokio::test]
async fn slack_case_6_what_cannot_be_read_is_kept_and_said() {
    let doors = Doors::open().await;
    let bad = form("{nope");
    for (way, body, source) in [
        (WAYS[0], bad.as_slice(), "slack:interactivity"),
        (WAYS[1], b"text=open\xff\0", "slack:commands"),
        (WAYS[2], b"[1]", "slack:events"),
    ] {
        let got = doors.slack(way, body).await;
        assert_eq!((got.status, got.text()), (StatusCode::BAD_REQUEST, ""), "{way}");
        let kept = doors.stored().await.1;
        assert!(kept.contains(&(source.to_owned(), body.to_vec())), "{kept:?}");
    }
    let alerts = doors.http.bridge.store.read(|tx| Box::pin(async move { tx.alerts().await })).await.unwrap();
    assert_eq!(alerts.iter().filter(|alert| alert.key.starts_with("unreadable:slack:")).count(), 3);

    // A type of tomorrow is kept, and well.
    let unknown = form(r#"{"type":"hologram_touched","api_app_id":"A0COUNTER"}"#);
    let got = doors.slack(WAYS[0], &unknown).await;
    assert_eq!((got.status, got.text()), (StatusCode::OK, ""));
    assert_eq!(doors.stored().await.1.len(), 4);
    assert_eq!(doors.stored().await.0, 0);
}

#[tokio::test]
async fn slack_case_6_challenges_are_echoed_when_signed_and_certificate_checks_have_no_effect() {
    let doors = Doors::open().await;
    let challenge = br#"{"type":"url_verification","challenge":"c-1"}"#;
    let got = doors.slack(WAYS[2], challenge).await;
    assert_eq!((got.status, got.json()), (StatusCode::OK, json!({"challenge": "c-1"})));
    let unsigned = request(Method::POST, WAYS[2]).body(Body::from(challenge.to_vec())).unwrap();
    assert_eq!(doors.send(unsigned).await.status, StatusCode::UNAUTHORIZED);
    for way in &WAYS[..2] {
        let check = request(Method::POST, way).body(Body::from("ssl_check=1&token=x")).unwrap();
        let got = doors.send(check).await;
        assert_eq!((got.status, got.text()), (StatusCode::OK, ""), "{way}");
    }
    assert_eq!(doors.stored().await, (0, vec![]));
}

#[tokio::test]
async fn slack_case_7_a_database_that_is_down_is_said_and_a_new_press_works_later() {
    let doors = Doors::open().await;
    // Somebody else holds the one writer's lock.
    let holder = store(&doors.folder, doors.hand.clone()).await;
    let (let_go, gone) = tokio::sync::oneshot::channel::<()>();
    let (taken, took) = tokio::sync::oneshot::channel::<()>();
    let hold = holder.write(move |_| {
        Box::pin(async move {
            let _ = taken.send(());
            let _ = gone.await;
            Ok(())
        })
    });
    let meanwhile = async {
        took.await.unwrap();
        let began = std::time::Instant::now();
        let got = doors.slack(WAYS[0], &press(|_| ())).await;
        assert_eq!((got.status, got.text()), (StatusCode::INTERNAL_SERVER_ERROR, ""));
        assert!(began.elapsed() < Duration::from_millis(2900), "Slack waits 3 s: {:?}", began.elapsed());
        assert_eq!(doors.stored().await.0, 0);
        let_go.send(()).unwrap();
    };
    let (outcome, ()) = tokio::join!(hold, meanwhile);
    outcome.unwrap();
    let again = press(|payload| payload["actions"][0]["action_ts"] = json!("1796000011.1"));
    assert_eq!(doors.slack(WAYS[0], &again).await.status, StatusCode::OK);
    assert!(doors.stored().await.0 >= 1);
}

#[tokio::test]
async fn slack_case_57_a_command_is_answered_privately_and_echoes_nothing() {
    let doors = Doors::open().await;
    let body =
        b"command=%2Fcountersign&text=%3C%21channel%3E&api_app_id=A0COUNTER&team_id=T0ACME&user_id=U0DANA";
    let got = doors.slack(WAYS[1], body).await;
    let answer = got.json();
    assert_eq!((got.status, &answer["response_type"]), (StatusCode::OK, &json!("ephemeral")));
    assert!(
        answer["text"].as_str().is_some_and(|text| text.len() > 20 && !text.contains("channel")),
        "{answer}"
    );
    assert_eq!(doors.stored().await, (0, vec![]));
}

#[tokio::test]
async fn slack_case_59_another_app_than_the_secrets_is_refused() {
    let doors = Doors::open().await;
    let other = press(|payload| payload["api_app_id"] = json!("A0OTHER"));
    let command = b"command=%2Fcountersign&api_app_id=A0OTHER";
    let event = br#"{"type":"event_callback","api_app_id":"A0OTHER"}"#;
    for (way, body) in [(WAYS[0], other.as_slice()), (WAYS[1], command), (WAYS[2], event)] {
        let got = doors.slack(way, body).await;
        assert_eq!((got.status, got.text()), (StatusCode::UNAUTHORIZED, ""), "{way}");
    }
    assert_eq!(doors.stored().await, (0, vec![]));
    // Also when the app was learnt from Slack and not configured.
    let mut learnt = Doors::open().await;
    let http = Arc::get_mut(&mut learnt.http);
    assert!(http.is_none(), "the router holds it too");
    let slack = vec![SlackDoor::new("acme", None, &SECRET.into(), None).unwrap()];
    let http = Arc::new(Http {
        bridge: Arc::clone(&learnt.http.bridge),
        discord: vec![],
        slack,
        operator: None,
        jwks: Arc::clone(&learnt.http.jwks),
        metrics: learnt.http.metrics.clone(),
        templates: Arc::clone(&learnt.http.templates),
    });
    learnt.public = public_router(&http, true);
    let identity = crate::bridge::ports::Identity {
        app_id: APP.into(),
        team: Some("T0ACME".into()),
        enterprise: None,
        bot_user: "U0BOT".into(),
        can_search: false,
    };
    learnt.http.bridge.directory.set_identity("acme", identity);
    assert_eq!(learnt.slack(WAYS[0], &other).await.status, StatusCode::UNAUTHORIZED);
    assert_eq!(learnt.slack(WAYS[0], &press(|_| ())).await.status, StatusCode::OK);
    assert_eq!(learnt.stored().await.0, 1);
}

#[tokio::test]
async fn events_are_acknowledged_and_too_large_bodies_are_not_read() {
    let doors = Doors::open().await;
    let event =
        br#"{"type":"event_callback","api_app_id":"A0COUNTER","event_id":"Ev1","event":{"type":"x"}}"#;
    let got = doors.slack(WAYS[2], event).await;
    assert_eq!((got.status, got.text()), (StatusCode::OK, ""));
    let large = vec![b'a'; 1024 * 1024 + 1];
    for way in WAYS {
        let got = doors.slack(way, &large).await;
        assert_eq!((got.status, got.text()), (StatusCode::PAYLOAD_TOO_LARGE, ""), "{way}");
    }
    assert_eq!(doors.stored().await, (0, vec![]));
}

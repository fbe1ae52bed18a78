//! Discord's requests to our endpoint: signatures, age, repeats, size; and first responses that are lost.

use crate::story_discord_clicks::{CALLBACK, ONCE, asked, begin, buttons, press, settle, until_taken};
use crate::world::database::Backend;
use crate::world::story::Clicks;
use countersign::sandbox::discord::acme::{APP, KIM};
use countersign::sandbox::discord::{Manner, Script, Signing};
use rstest::rstest;
use serde_json::json;
use std::time::Duration;

#[rstest]
#[tokio::test]
async fn discord_case_61_and_62_and_64_signatures() {
    let story = begin(Backend::Sqlite, Clicks::Endpoint).await;
    let (opened, card) = asked(&story, "deploy").await;
    let ping = story.discord.ping(APP, Signing::Good).await;
    assert_eq!((ping.status, ping.json()["type"].as_i64()), (200, Some(1)));
    assert!(ping.content_type.starts_with("application/json"));
    for _ in 0..50 {
        for signing in [Signing::Bad, Signing::OtherKey] {
            assert_eq!(story.discord.ping(APP, signing).await.status, 401);
        }
    }
    assert!(story.discord.probe_endpoint(APP).await.is_ok());
    press(&story, KIM, &card, "Approve").await;
    settle(&story).await;
    assert_eq!(story.recorded(&opened).len(), 1);
    assert!(story.alert_keys().await.is_empty(), "{:?}", story.alert_keys().await);
    story.end().await;
}

#[rstest]
#[tokio::test]
async fn discord_case_63_an_old_body_is_refused_and_a_repeated_one_is_one() {
    let story = begin(Backend::Sqlite, Clicks::Endpoint).await;
    let (opened, card) = asked(&story, "deploy").await;
    let payload = story.discord.pressed(KIM, &card.channel, &card.id, "Approve").unwrap();
    let first = story.discord.deliver_payload(&payload, &ONCE).await.remove(0);
    assert!(first.acked());
    let pairs: Vec<(&str, &str)> = first.headers.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    let (path, body) = ("/discord/interactions", first.raw.clone().into_bytes());
    story.advance(Duration::from_secs(10));
    let (status, _) = story.http("POST", path, &pairs, body.clone()).await;
    assert_eq!(status, 200);
    story.advance(Duration::from_mins(10));
    let (status, said) = story.http("POST", path, &pairs, body).await;
    assert_eq!((status, said.as_str()), (401, ""));
    settle(&story).await;
    assert_eq!(story.recorded(&opened).len(), 1);
    assert_eq!(story.clicks().await.values().sum::<i64>(), 1);
    story.end().await;
}

/// Discord case 65: a click that came over HTTP is always answered in the body, never by a call of ours.
#[rstest]
#[tokio::test]
async fn discord_case_65_a_click_over_http_is_answered_in_its_body() {
    let story = begin(Backend::Sqlite, Clicks::Endpoint).await;
    let (_opened, card) = asked(&story, "deploy").await;
    for control in ["Deny with reason…", "Approve"] {
        let delivery = press(&story, KIM, &card, control).await;
        assert_eq!(delivery.status, 200);
    }
    settle(&story).await;
    assert_eq!(story.discord.count(CALLBACK), 0);
    story.end().await;
}

#[rstest]
#[tokio::test]
async fn discord_case_62_too_large_and_no_json() {
    let story = begin(Backend::Sqlite, Clicks::Endpoint).await;
    let send = async |body| story.discord.deliver_bytes(APP, body, &ONCE).await.status;
    assert_eq!(send(vec![b'x'; 1024 * 1024 + 1]).await, 413);
    assert_eq!(send(b"{no json".to_vec()).await, 400);
    assert!(story.alert_keys().await.iter().any(|key| key.starts_with("unreadable:discord")));
    story.end().await;
}

/// Discord cases 33, 34 and 36: whatever becomes of the first response, the click counts once.
#[rstest]
#[case::too_old(404, 10_062)]
#[case::answered_before(400, 40_060)]
#[case::server_error(500, 0)]
#[tokio::test]
async fn discord_case_33_and_34_and_36_a_lost_first_response_loses_no_click(
    #[case] status: u16,
    #[case] code: i64,
) {
    let story = begin(Backend::Sqlite, Clicks::Gateway).await;
    let (opened, card) = asked(&story, "deploy").await;
    story.discord.script(Script::json(CALLBACK, status, &json!({"code": code, "message": "no"})));
    story
        .discord
        .press_raw(KIM, &card.channel, &card.id, "Approve", &Manner::nowait(), |_| {})
        .await
        .unwrap();
    until_taken(&story).await;
    settle(&story).await;
    assert_eq!(story.recorded(&opened).len(), 1);
    assert!(buttons(&story, &card).is_empty());
    let calls = story.discord.count(CALLBACK);
    assert!(calls <= 2, "{calls}");
    story.end().await;
}

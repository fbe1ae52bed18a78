//! The gateway in the product: taken up again, moved to another replica, and what it tells of.

use crate::world::database::Backend;
use crate::world::story::{Clicks, Story, Wants};
use countersign::sandbox::a2a::Opened;
use countersign::sandbox::discord::acme::{APP, GUILD, KIM, OPS, RELEASES};
use countersign::sandbox::discord::{Message, Order};
use rstest::rstest;
use std::time::Duration;

const ROUTES: &str = r#"
[[group]]
name = "release"
discord_roles = ["guild:2200000000000000002"]

[[route]]
when = { runtime = "prod" }
to = ["discord:guild:4400000000000000001"]
fallback = ["discord:guild:4400000000000000002"]
approvers = ["release"]
"#;

async fn begin(on: Backend) -> Story {
    let wants = Wants {
        people_and_routes: ROUTES,
        discord: true,
        clicks: Clicks::Gateway,
        more_discord: "subject = \"discord:{user_id}\"",
        ..Wants::default()
    };
    Story::with(on, wants).await
}

async fn asked(story: &Story) -> (Opened, Message) {
    let opened = story.asks("deploy");
    story.tick().await;
    (opened, story.discord.cards(RELEASES).pop().expect("a card"))
}

async fn approves(story: &Story, card: &Message) {
    let delivery = story.discord.press(KIM, &card.channel, &card.id, "Approve").await.expect("pressed");
    assert!(delivery.acked(), "{delivery:#?}");
}

async fn settle(story: &Story) {
    story.deliver().await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    story.pass(Duration::from_secs(2)).await;
}

fn sessions(story: &Story) -> Vec<(Option<String>, bool)> {
    story.discord.connections().into_iter().map(|one| (one.session, one.resumed)).collect()
}

/// Waits until a session was taken up so often.
async fn until_resumed(story: &Story, times: usize) {
    let resumed = || {
        let all = story.discord.connections();
        all.iter().filter(|one| one.resumed).count() >= times
            && all.iter().any(|one| one.closed_ms.is_none() && one.session.is_some())
    };
    story.until("a session is taken up again", resumed).await;
}

#[rstest]
#[tokio::test]
async fn discord_case_66_and_67_resumed_whatever_happens_and_a_replay_is_one_click(
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
) {
    let story = begin(on).await;
    let (opened, card) = asked(&story).await;
    for (times, order) in
        [Order::Reconnect, Order::Drop, Order::Close { code: 4000 }, Order::Invalid { resumable: true }]
            .into_iter()
            .enumerate()
    {
        story.discord.gateway(Some(APP), &order);
        until_resumed(&story, times + 1).await;
    }
    approves(&story, &card).await;
    // The last event is replayed.
    story.discord.gateway(Some(APP), &Order::Again);
    settle(&story).await;
    assert_eq!(story.recorded(&opened).len(), 1);
    assert_eq!(story.clicks().await.values().sum::<i64>(), 1);
    assert!(story.discord.told(KIM).is_empty());
    for one in story.discord.connections() {
        assert!(!matches!(one.client_code, Some(1000 | 1001)), "{one:?}");
        assert_eq!(one.query, "v=10&encoding=json");
    }
    story.end().await;
}

#[rstest]
#[tokio::test]
async fn discord_case_67_a_restart_takes_the_session_up_and_misses_nothing(
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
) {
    let mut story = begin(on).await;
    let (opened, card) = asked(&story).await;
    let session = sessions(&story).pop().unwrap().0;
    story.leave_gateway().await;
    // Somebody presses while nobody listens.
    let press = story.discord.pressed(KIM, &card.channel, &card.id, "Approve").unwrap();
    let manner = countersign::sandbox::discord::Manner::nowait();
    story.discord.deliver_payload(&press, &manner).await;
    story.restart().await;
    until_resumed(&story, 1).await;
    let last = sessions(&story).pop().unwrap();
    assert_eq!(last, (session, true));
    for _ in 0..200 {
        if !story.clicks().await.is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    settle(&story).await;
    assert_eq!(story.recorded(&opened).len(), 1, "the press was replayed");
    story.end().await;
}

/// (Discord.Net 1982, discordapps.dev 7) READY again does nothing twice.
#[rstest]
#[tokio::test]
async fn discord_case_68_a_new_session_posts_nothing_twice() {
    let story = begin(Backend::Sqlite).await;
    let (opened, card) = asked(&story).await;
    story.discord.gateway(Some(APP), &Order::Invalid { resumable: false });
    // One session may be begun in five seconds.
    story.advance(Duration::from_secs(6));
    let again = || {
        let all = story.discord.connections();
        all.len() == 2
            && all.iter().any(|one| one.closed_ms.is_none() && one.session.is_some() && !one.resumed)
    };
    story.until("a new session on a new connection", again).await;
    story.tick().await;
    assert_eq!(story.discord.cards(RELEASES).len(), 1);
    approves(&story, &card).await;
    settle(&story).await;
    assert_eq!(story.recorded(&opened).len(), 1);
    story.end().await;
}

#[rstest]
#[tokio::test]
async fn discord_case_71_strange_frames_change_nothing() {
    let story = begin(Backend::Sqlite).await;
    let (opened, card) = asked(&story).await;
    for text in ["{broken", r#"{"op":0,"t":"OF_2030","d":{"a":1}}"#, r#"{"op":42,"d":null}"#] {
        story.discord.gateway(Some(APP), &Order::Send { text: text.to_owned() });
    }
    approves(&story, &card).await;
    settle(&story).await;
    assert_eq!(story.recorded(&opened).len(), 1);
    assert_eq!(story.discord.connections().len(), 1);
    story.end().await;
}

#[rstest]
#[tokio::test]
async fn discord_case_73_a_deleted_card_goes_to_the_fallback_once(
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
) {
    let story = begin(on).await;
    let (opened, card) = asked(&story).await;
    story.discord.remove_message(RELEASES, &card.id);
    let gone = async || {
        for _ in 0..200 {
            tokio::time::sleep(Duration::from_millis(20)).await;
            story.deliver().await;
            if !story.discord.cards(OPS).is_empty() {
                return;
            }
        }
        panic!("no card in the fallback");
    };
    gone().await;
    assert!(story.discord.cards(RELEASES).is_empty(), "not reposted there");
    let other = story.discord.cards(OPS).pop().unwrap();
    approves(&story, &other).await;
    settle(&story).await;
    assert_eq!(story.recorded(&opened).len(), 1);
    // Of a closed one nothing follows.
    story.discord.remove_messages(OPS, &[&other.id]);
    tokio::time::sleep(Duration::from_millis(300)).await;
    story.pass(Duration::from_mins(2)).await;
    assert_eq!(story.discord.cards(OPS).len() + story.discord.cards(RELEASES).len(), 0);
    story.end().await;
}

#[rstest]
#[tokio::test]
async fn discord_case_72_an_outage_pauses_and_a_removal_breaks_the_places() {
    let story = begin(Backend::Sqlite).await;
    story.discord.outage(GUILD, true);
    tokio::time::sleep(Duration::from_millis(300)).await;
    story.asks("deploy");
    story.tick().await;
    assert!(story.discord.cards(RELEASES).is_empty() && story.alert_keys().await.is_empty());
    story.discord.outage(GUILD, false);
    tokio::time::sleep(Duration::from_millis(300)).await;
    story.pass(Duration::from_secs(90)).await;
    assert_eq!(story.discord.cards(RELEASES).len(), 1);
    story.discord.remove_guild(GUILD);
    tokio::time::sleep(Duration::from_millis(300)).await;
    story.deliver().await;
    let alerts = story.alert_keys().await;
    assert!(alerts.iter().any(|key| key.starts_with("place:discord:guild:")), "{alerts:?}");
    story.end().await;
}

/// One connection for all replicas, which moves when its holder is silent.
#[rstest]
#[tokio::test]
async fn the_gateway_moves_to_another_replica() {
    let mut story = begin(Backend::Postgres).await;
    let (opened, card) = asked(&story).await;
    story.leave_gateway().await;
    story.opens_gateway_of_a_replica().await;
    until_resumed(&story, 1).await;
    approves(&story, &card).await;
    settle(&story).await;
    assert_eq!(story.recorded(&opened).len(), 1);
    story.end().await;
}

//! Refused tokens, direct messages, commands.

use super::*;

#[rstest]
#[tokio::test]
async fn discord_case_60_a_refused_token_stops_the_bot(#[values(SQLITE, POSTGRES)] on: Ground) {
    let story = begin(on).await;
    story.discord.token(APP, false);
    story.asks("deploy");
    story.tick().await;
    story.pass(Duration::from_secs(30)).await;
    assert_eq!(story.discord.count(POST), 1);
    assert!(story.alert_keys().await.contains(&"chat:guild".to_owned()));
    story.discord.token(APP, true);
    story.pass(Duration::from_mins(2)).await;
    assert_eq!(story.discord.cards(RELEASES).len(), 1);
    assert!(!story.alert_keys().await.contains(&"chat:guild".to_owned()));
    story.end().await;
}

#[rstest]
#[tokio::test]
async fn discord_case_74_closed_direct_messages_lead_to_the_fallback(#[values(SQLITE, POSTGRES)] on: Ground) {
    let story = begin(on).await;
    story.asks("closed");
    story.tick().await;
    story.pass(Duration::from_mins(1)).await;
    assert_eq!(story.discord.cards(OPS).len(), 1);
    let posts = story.discord.count(POST);
    story.asks("closed");
    story.tick().await;
    story.pass(Duration::from_mins(30)).await;
    assert_eq!(story.discord.cards(OPS).len(), 2);
    assert_eq!(story.discord.count(POST), posts + 1, "nobody who refuses is written to again");
    story.end().await;
}

#[rstest]
#[tokio::test]
async fn a_card_reaches_its_owner_directly_in_both_chats(#[values(SQLITE, POSTGRES)] on: Ground) {
    let story = begin(on).await;
    let opened = story.asks("direct");
    story.registers(&opened, Some(DANA)).await;
    story.tick().await;
    story.pass(Duration::from_secs(2)).await;
    let direct = card(&story, DM_DANA);
    assert!(buttons(&story, &direct).contains(&"Approve".to_owned()));
    cancels(&story, &opened);
    story.tick().await;
    assert!(buttons(&story, &card(&story, DM_DANA)).is_empty());
    story.end().await;
}

#[rstest]
#[tokio::test]
async fn discord_case_78_commands_are_told_when_they_change(#[values(SQLITE, POSTGRES)] on: Ground) {
    let mut story = begin(on).await;
    assert_eq!(story.discord.count(COMMANDS), 1);
    assert_eq!(story.discord.commands(APP, Some(GUILD)).len(), 1);
    story.restart().await;
    story.service.bridge.identify_once("guild").await.unwrap();
    assert_eq!(story.discord.count(COMMANDS), 1, "the same set is not put again");
    let forget = "~commands";
    story
        .service
        .bridge
        .store
        .write(move |tx| Box::pin(async move { tx.keep_mark("guild", forget, "of before", Millis(0)).await }))
        .await
        .unwrap();
    story.service.bridge.identify_once("guild").await.unwrap();
    assert_eq!(story.discord.count(COMMANDS), 2, "another set is");
    story.end().await;
}

//! Posting and editing cards: trouble on the way, limits, places, texts.

use super::{LOST, asked_with, begin, hasty, refuse, status, texts, three_installs, with};
use crate::world::database::Backend;
use crate::world::story::{DANA, KIM, OPS, RELEASES, Story};
use countersign::net::Limits;
use countersign::sandbox::a2a::{Ask, State};
use countersign::sandbox::faults::{Fault, Rule};
use countersign::sandbox::slack::{Message, acme};
use rstest::rstest;
use serde_json::json;
use std::time::Duration;

/// History may be read once a minute, fifteen rows: still one card.
#[tokio::test]
async fn slack_case_18_scarce_history() {
    let story = with(hasty()).await;
    story.slack.switch(|switches| switches.scarce_history = true);
    for n in 0..20 {
        story.slack.say("U0SAM", RELEASES, &format!("chatter {n}"));
    }
    story.slack.faults().add(Rule { method: "chat.postMessage".into(), skip: 0, times: 2, fault: LOST });
    story.asks("deploy_service");
    story.asks("deploy_site");
    story.tick().await;
    story.pass(Duration::from_secs(400)).await;
    assert_eq!(story.slack.cards(RELEASES).len(), 2);
    story.end().await;
}

/// Killed between the commit of "posting" and the call: posted once, or not at all if it ended meanwhile.
#[rstest]
#[case(false)]
#[case(true)]
#[tokio::test]
async fn slack_case_19_killed_before_the_post(
    #[case] ended: bool,
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
) {
    let mut story = Story::with(on, hasty()).await;
    story.slack.faults().add(Rule::next("chat.postMessage", Fault::Hang { ms: 3000 }));
    let ask = story.asks("deploy_service");
    story.tick().await;
    story.restart().await;
    if ended {
        assert!(story.a2a.end(&ask.task_id, State::Canceled, None));
        story.watch().await;
    }
    story.pass(Duration::from_mins(2)).await;
    assert_eq!(story.slack.cards(RELEASES).len(), usize::from(!ended));
    assert_eq!(story.slack.calls("chat.postMessage").len(), if ended { 1 } else { 2 });
    story.end().await;
}

/// A post that Slack failed at may stand there: it is looked for before it is made again.
#[rstest]
#[case(refuse("internal_error"))]
#[case(refuse("fatal_error"))]
#[case(status(503))]
#[case(Fault::StatusAfter { code: 502 })]
#[tokio::test]
async fn slack_case_20_a_failed_post_is_looked_for(#[case] fault: Fault) {
    let story = with(hasty()).await;
    story.slack.faults().add(Rule::next("chat.postMessage", fault));
    let ask = story.asks("deploy_service");
    story.tick().await;
    story.pass(Duration::from_secs(90)).await;
    assert_eq!(story.slack.cards(RELEASES).len(), 1);
    let calls: Vec<String> = story.slack.requests().into_iter().map(|one| one.method).collect();
    let posts: Vec<usize> = calls
        .iter()
        .enumerate()
        .filter(|(_, method)| *method == "chat.postMessage")
        .map(|(at, _)| at)
        .collect();
    let looked = calls.iter().position(|method| method == "conversations.history").unwrap();
    assert!(posts.iter().skip(1).all(|at| looked < *at), "{calls:?}");
    let card = story.card(RELEASES);
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver().await;
    assert_eq!(story.recorded(&ask).len(), 1);
    story.end().await;
}

/// While edits are parked posts go on, and after it each card gets its newest state once.
#[tokio::test]
async fn slack_case_21_others_go_on_and_only_the_newest_is_sent() {
    let story = begin().await;
    let mut cards = vec![];
    for n in 0..4 {
        let ask = story.asks(&format!("delete_{n}"));
        story.tick().await;
        story.pass(Duration::from_secs(2)).await;
        cards.push((ask, story.card(RELEASES)));
    }
    let parked = Fault::Status { code: 429, retry_after: Some(30), body: None };
    story.slack.faults().add(Rule::next("chat.update", parked));
    for (_, card) in &cards {
        story.presses("U0DANA", card, "Approve").await;
        story.deliver().await;
        story.presses("U0KIM", card, "Deny").await;
        story.deliver().await;
    }
    assert_eq!(story.slack.calls("chat.update").len(), 1);
    story.asks("deploy_service");
    story.watch().await;
    story.pass(Duration::from_secs(5)).await;
    assert!(story.reads(&story.card(RELEASES)).contains("deploy_service"), "a new card does not wait");
    story.pass(Duration::from_secs(24)).await;
    assert_eq!(story.slack.calls("chat.update").len(), 1, "parked");
    story.pass(Duration::from_secs(15)).await;
    for (_, card) in &cards {
        assert!(story.reads(card).contains("denied by"), "{}", story.reads(card));
    }
    assert_eq!(story.slack.calls("chat.update").len(), 1 + cards.len(), "one edit a card");
    story.end().await;
}

/// Many for one channel: one a second there, another channel does not wait, none is lost.
#[tokio::test]
async fn slack_case_22_many_cards_for_one_channel() {
    let story = begin().await;
    for n in 0..25 {
        story.asks(&format!("tool_{n}"));
    }
    story.asks("both");
    story.tick().await;
    assert_eq!(story.slack.cards(OPS).len(), 1, "another channel does not wait");
    story.pass(Duration::from_secs(40)).await;
    assert_eq!(story.slack.cards(RELEASES).len(), 26);
    let mut times: Vec<i64> = story
        .slack
        .calls("chat.postMessage")
        .iter()
        .filter(|call| call.arguments["channel"] == RELEASES)
        .map(|call| call.at_ms)
        .collect();
    times.sort_unstable();
    assert!(times.windows(2).all(|pair| pair[1] - pair[0] >= 1000), "{times:?}");
    story.end().await;
}

/// Answers that are none: never a second post without a look, and one card at rest.
#[rstest]
#[case(Fault::Html)]
#[case(Fault::NoContent)]
#[case(refuse(""))]
#[case(Fault::CutAnswer)]
#[case(Fault::Hang { ms: 3000 })]
#[case(LOST)]
#[tokio::test]
async fn slack_case_23_an_answer_that_is_none(#[case] fault: Fault) {
    let story = with(hasty()).await;
    story.slack.faults().add(Rule::next("chat.postMessage", fault));
    story.asks("deploy_service");
    story.tick().await;
    assert!(story.slack.calls("chat.postMessage").len() == 1);
    story.pass(Duration::from_secs(90)).await;
    assert_eq!(story.slack.cards(RELEASES).len(), 1);
    assert!(!story.slack.calls("conversations.history").is_empty());
    story.end().await;
}

/// Characters that grow when they are escaped: the post and the edit are taken, and the end is there.
#[tokio::test]
async fn slack_case_24_a_text_that_grows_when_escaped() {
    let story = begin().await;
    let prompt = format!("{}{}END", "&".repeat(20), "x".repeat(2967));
    assert_eq!(prompt.len(), 2990);
    let (ask, card) = asked_with(&story, Ask::approval("ci", "deploy_service").prompt(&prompt)).await;
    let shown = story.slack.reads(&card.channel, &card.ts);
    let whole = shown.contains("&&&&&&&&&&&&&&&&&&&&") && shown.contains("END");
    assert!(whole || shown.contains("does not show everything"), "{shown}");
    story.presses("U0DANA", &card, if whole { "Approve" } else { "Deny" }).await;
    story.deliver().await;
    assert_eq!(story.recorded(&ask).len(), 1);
    assert!(story.buttons(&card).is_empty());
    assert!(
        story.slack.requests().iter().all(|one| one.response.is_none() || one.ok()),
        "nothing was refused"
    );
    story.end().await;
}

/// Long in every part: within the budget together, and Approve waits for a way to see the rest.
#[tokio::test]
async fn slack_case_26_what_is_cut_cannot_be_approved() {
    let story = begin().await;
    let part = |n: usize| format!("Part {n}: {}\n", "word ".repeat(358));
    let prompt: String = (0..8).map(part).collect();
    let ask = Ask::approval("ci", "deploy_service").prompt(&prompt).reason(&part(9));
    let (ask, card) = asked_with(&story, ask).await;
    let total: usize = texts(&json!(card.blocks)).iter().map(String::len).sum();
    assert!(total <= 12_000, "{total}");
    assert!(story.reads(&card).contains("does not show everything"), "{}", story.reads(&card));
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver().await;
    assert_eq!(story.recorded(&ask), []);
    let told = story.told("U0DANA");
    assert!(told.len() == 1 && told.iter().all(|text| text.contains("does not show everything")), "{told:?}");
    assert_eq!(story.audit().await.last().unwrap().rule.as_deref(), Some("full_view"));
    assert_eq!(story.buttons(&card), ["Approve", "Deny", "Deny with reason…", "Show all"]);
    story.presses("U0DANA", &card, "Deny").await;
    story.deliver().await;
    assert_eq!(story.recorded(&ask), [(DANA.to_owned(), false)]);
    story.end().await;
}

#[rstest]
#[case("")]
#[case(" \n\t ")]
#[case("\u{200b}")]
#[tokio::test]
async fn slack_case_27_a_blank_prompt(#[case] prompt: &str) {
    let story = begin().await;
    let ask = Ask::approval("", "").prompt(prompt);
    let (ask, card) = asked_with(&story, ask).await;
    let shown = story.reads(&card);
    assert!(shown.contains("no text given") || shown.contains("\\u{200b}"), "{shown}");
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver().await;
    assert_eq!(story.recorded(&ask).len(), 1);
    story.end().await;
}

/// [`Story::end`] asks Slack's stand-in for its complaints after every story; here something is sent in each way.
#[tokio::test]
async fn slack_case_34_everything_has_text_and_blocks() {
    let story = begin().await;
    let (_, card) = story.asked("deploy_service").await;
    story.slack.faults().add(Rule::next("response_url", status(404)));
    story.presses("U0SAM", &card, "Approve").await;
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver().await;
    for method in ["chat.postMessage", "chat.update", "chat.postEphemeral", "response_url"] {
        let calls = story.slack.calls(method);
        assert!(!calls.is_empty(), "{method}");
        for call in calls {
            let text = call.arguments["text"].as_str().unwrap_or_default();
            assert!(!text.trim().is_empty(), "{method}");
            assert!(call.arguments["blocks"].as_array().is_some_and(|blocks| !blocks.is_empty()), "{method}");
        }
    }
    story.end().await;
}

/// A refused card is sent plainer; refused again, it goes to the next place and operators are told.
#[rstest]
#[case(1)]
#[case(2)]
#[tokio::test]
async fn slack_case_35_a_refused_card(#[case] times: u32) {
    let story = begin().await;
    let fault = refuse("invalid_blocks");
    story.slack.faults().add(Rule { method: "chat.postMessage".into(), skip: 0, times, fault });
    let ask = story.asks("deploy_service");
    story.tick().await;
    story.pass(Duration::from_secs(5)).await;
    let (place, other) = if times == 1 { (RELEASES, OPS) } else { (OPS, RELEASES) };
    assert_eq!((story.slack.cards(place).len(), story.slack.cards(other).len()), (1, 0));
    let card = story.card(place);
    let shown = story.reads(&card);
    assert!(shown.contains("deploy_service") && shown.contains("agent says"), "{shown}");
    if times == 1 {
        let posts = story.slack.calls("chat.postMessage");
        assert_ne!(posts.first().unwrap().arguments["blocks"], posts.last().unwrap().arguments["blocks"]);
    } else {
        let alerts = story.alerts().await;
        assert!(alerts.iter().any(|alert| alert.text.contains("invalid_blocks")), "{alerts:?}");
    }
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver().await;
    assert_eq!(story.recorded(&ask).len(), 1);
    story.end().await;
}

/// A refused final edit is sent plainer, without controls.
#[tokio::test]
async fn slack_case_35_a_refused_final_edit() {
    let story = begin().await;
    let (_, card) = story.asked("deploy_service").await;
    story.slack.faults().add(Rule::next("chat.update", refuse("msg_too_long")));
    story.presses("U0DANA", &card, "Deny").await;
    story.deliver().await;
    story.pass(Duration::from_secs(5)).await;
    assert!(story.reads(&card).contains("denied by"), "{}", story.reads(&card));
    assert!(story.buttons(&card).is_empty());
    let [first, second] = story.slack.calls("chat.update").try_into().unwrap();
    assert_ne!(first.arguments["blocks"], second.arguments["blocks"]);
    story.end().await;
}

/// A place that refuses: the fallback, one alert, one try; when it is well again it is used again.
#[rstest]
#[case("is_archived")]
#[case("not_in_channel")]
#[case("channel_not_found")]
#[case("restricted_action")]
#[tokio::test]
async fn slack_case_36_a_place_that_refuses(#[case] code: &str) {
    let story = begin().await;
    story.slack.faults().add(Rule::next("chat.postMessage", refuse(code)));
    let ask = story.asks("deploy_service");
    story.tick().await;
    story.pass(Duration::from_mins(2)).await;
    assert_eq!((story.slack.cards(RELEASES).len(), story.slack.cards(OPS).len()), (0, 1));
    let tries = story.slack.calls("chat.postMessage");
    assert_eq!(tries.iter().filter(|call| call.arguments["channel"] == RELEASES).count(), 1, "no loop");
    let alerts = story.alerts().await;
    assert_eq!(alerts.iter().filter(|alert| alert.key.starts_with("place:")).count(), 1, "{alerts:?}");
    story.presses("U0DANA", &story.card(OPS), "Approve").await;
    story.deliver().await;
    assert_eq!(story.recorded(&ask).len(), 1);
    // Well again.
    story.advance(Duration::from_mins(11));
    story.deliver().await;
    story.asks("deploy_site");
    story.tick().await;
    story.pass(Duration::from_secs(2)).await;
    assert!(story.reads(&story.card(RELEASES)).contains("deploy_site"));
    let alerts = story.alerts().await;
    assert!(!alerts.iter().any(|alert| alert.key.starts_with("place:")), "{alerts:?}");
    story.end().await;
}

/// A card that can never be edited again: no further edits, the outcome once as a reply.
#[rstest]
#[case("cant_update_message")]
#[case("edit_window_closed")]
#[tokio::test]
async fn slack_case_37_a_card_that_cannot_be_edited(#[case] code: &str) {
    let story = begin().await;
    let (ask, card) = story.asked("deploy_service").await;
    story.slack.faults().add(Rule::always("chat.update", refuse(code)));
    story.presses("U0DANA", &card, "Deny").await;
    story.deliver().await;
    story.pass(Duration::from_mins(2)).await;
    assert_eq!(story.recorded(&ask).len(), 1);
    assert_eq!(story.slack.calls("chat.update").len(), 1);
    let replies: Vec<Message> = story
        .slack
        .cards(RELEASES)
        .into_iter()
        .filter(|message| message.thread_ts.as_deref() == Some(card.ts.as_str()) && message.ts != card.ts)
        .collect();
    assert_eq!(replies.len(), 1);
    assert!(replies.iter().all(|reply| story.reads(reply).contains("denied by")));
    // A late press on it is refused.
    story.presses("U0KIM", &card, "Approve").await;
    story.deliver().await;
    assert_eq!(story.recorded(&ask).len(), 1);
    assert!(
        story.told("U0KIM").iter().any(|text| text.contains("already denied")),
        "{:?}",
        story.told("U0KIM")
    );
    story.end().await;
}

/// A missing permission stops that install, is named, and nothing is lost; others go on.
#[tokio::test]
async fn slack_case_38_a_missing_scope_stops_one_install() {
    let story = three_installs().await;
    story.slack.scope(acme::BOT_TOKEN, "chat:write", false);
    story.asks("deploy_service");
    story.asks("beta_deploy");
    story.tick().await;
    story.pass(Duration::from_secs(20)).await;
    assert_eq!(story.slack.cards(RELEASES).len(), 0);
    assert_eq!(story.slack.cards("C0BETA").len(), 1, "others work");
    let alerts = story.alerts().await;
    assert!(
        alerts.iter().any(|alert| alert.key == "chat:acme" && alert.text.contains("chat:write")),
        "{alerts:?}"
    );
    story.slack.scope(acme::BOT_TOKEN, "chat:write", true);
    story.pass(Duration::from_mins(2)).await;
    assert_eq!(story.slack.cards(RELEASES).len(), 1);
    assert_eq!(story.slack.cards(OPS).len(), 0, "it was not the place's fault");
    story.end().await;
}

/// An interim edit lands after the final one: the final state is sent once more.
#[tokio::test]
async fn slack_case_40_a_late_interim_edit() {
    let story = with(hasty()).await;
    let (ask, card) = story.asked("delete_everything").await;
    // Nobody knows what became of the vote's edit.
    story.slack.faults().add(Rule::next("chat.update", Fault::Hang { ms: 3000 }));
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver().await;
    story.pass(Duration::from_secs(2)).await;
    let late = story.slack.calls("chat.update").first().unwrap().arguments.clone();
    story.presses("U0KIM", &card, "Deny").await;
    story.deliver().await;
    story.pass(Duration::from_secs(5)).await;
    assert_eq!(story.recorded(&ask), [(KIM.to_owned(), false)]);
    assert!(story.reads(&card).contains("denied by"), "{}", story.reads(&card));
    // It lands now.
    let client =
        countersign::net::client(Limits { connect: Duration::from_secs(2), total: Duration::from_secs(2) });
    let call = client.unwrap().post(format!("http://{}/slack/api/chat.update", story.sandbox));
    let answer = call.bearer_auth(acme::BOT_TOKEN).json(&late).send().await.unwrap().text().await.unwrap();
    assert!(answer.contains("\"ok\":true"), "{answer}");
    assert!(story.reads(&card).contains("1 of 2"), "{}", story.reads(&card));
    story.pass(Duration::from_secs(65)).await;
    assert!(story.reads(&card).contains("denied by"), "{}", story.reads(&card));
    assert!(story.buttons(&card).is_empty());
    story.end().await;
}

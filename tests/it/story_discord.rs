//! Cards on Discord: posted once, kept true, through Discord's limits, errors and losses. The runtime speaks
//! throughout; nobody clicks here.

mod people;

use crate::world::story::{DANA, Ground, POSTGRES, RELEASES as SLACK_RELEASES, SQLITE, Story, Wants};
use countersign::domain::clock::Millis;
use countersign::sandbox::a2a::{Ask, Open, Opened, State};
use countersign::sandbox::discord::acme::{
    APP, ARCHIVED, BOT, DM_DANA, GUILD, KIM, OPS, PINGED, RELEASES, SECRET, THREAD,
};
use countersign::sandbox::discord::{Message, Scope, Script, perms};
use countersign::sandbox::faults::{Fault, Rule};
use countersign::store::jobs::JobKind;
use rstest::rstest;
use serde_json::{Value, json};
use std::time::Duration;

const POST: &str = "POST /channels/{channel}/messages";
const EDIT: &str = "PATCH /channels/{channel}/messages/{message}";
const READ: &str = "GET /channels/{channel}/messages";
const COMMANDS: &str = "PUT /applications/{app}/guilds/{guild}/commands";

/// Routes by tool, so that a story says where its cards go by what its agent asks.
const ROUTES: &str = r#"
[[group]]
name = "release"
subjects = ["dana@example.com", "kim@example.com"]
discord_roles = ["guild:2200000000000000004"]

[[person]]
subject = "dana@example.com"
slack = ["acme:U0DANA"]
discord = ["3300000000000000001"]

[[person]]
subject = "kim@example.com"
slack = ["acme:U0KIM"]
discord = ["3300000000000000002"]

[[route]]
when = { runtime = "prod", tool = "three" }
to = ["discord:guild:4400000000000000001", "discord:guild:4400000000000000004", "discord:guild:4400000000000000002"]
approvers = ["release"]

[[route]]
when = { runtime = "prod", tool = "both" }
to = ["slack:acme:#releases", "discord:guild:4400000000000000001"]
approvers = ["release"]
approvals = 2

[[route]]
when = { runtime = "prod", tool = "loud" }
to = ["discord:guild:4400000000000000001"]
mention = ["release"]
approvers = ["release"]

[[route]]
when = { runtime = "prod", tool = "archived" }
to = ["discord:guild:4400000000000000012"]
approvers = ["release"]

[[route]]
when = { runtime = "prod", tool = "thread" }
to = ["discord:guild:4400000000000000011"]
approvers = ["release"]

[[route]]
when = { runtime = "prod", tool = "gathered" }
to = ["discord:guild:4400000000000000001"]
approvers = ["release"]
thread_by = "context"

[[route]]
when = { runtime = "prod", tool = "closed" }
to = ["discord:guild:@3300000000000000006"]
fallback = ["discord:guild:4400000000000000002"]
approvers = ["release"]

[[route]]
when = { runtime = "prod", tool = "direct" }
to = ["dm:owner"]
approvers = ["owner"]

[[route]]
when = { runtime = "prod" }
to = ["discord:guild:4400000000000000001"]
fallback = ["discord:guild:4400000000000000002"]
approvers = ["release", "owner"]
"#;

async fn begin(on: Ground) -> Story {
    Story::with(on, Wants { people_and_routes: ROUTES, discord: true, ..Wants::default() }).await
}

/// The only card in a channel.
fn card(story: &Story, channel: &str) -> Message {
    let cards = story.discord.cards(channel);
    assert_eq!(cards.len(), 1, "{channel}: {cards:#?}");
    cards.into_iter().next().unwrap()
}

fn reads(story: &Story, card: &Message) -> String {
    story.discord.reads(&card.channel, &card.id)
}

fn buttons(story: &Story, card: &Message) -> Vec<String> {
    story.discord.buttons(&card.channel, &card.id)
}

/// What we sent of one kind.
fn bodies(story: &Story, route: &str) -> Vec<Value> {
    story.discord.calls(route).into_iter().map(|call| call.body).collect()
}

fn fault(story: &Story, route: &str, fault: Fault) {
    story.discord.faults().add(Rule::next(route, fault));
}

/// The agent's task is canceled in the runtime.
fn cancels(story: &Story, opened: &Opened) {
    assert!(story.a2a.end(&opened.task_id, State::Canceled, None));
}

fn refuse(story: &Story, route: &str, status: u16, code: i64) {
    let body = json!({"code": code, "message": "refused"});
    story.discord.script(Script::json(route, status, &body));
}

#[rstest]
#[tokio::test]
async fn discord_case_1_and_46_posted_once_and_true_to_its_end(#[values(SQLITE, POSTGRES)] on: Ground) {
    let story = begin(on).await;
    let opened = story.asks("deploy");
    story.tick().await;
    let posted = card(&story, RELEASES);
    assert_eq!(buttons(&story, &posted), ["Approve", "Deny", "Deny with reason…"]);
    let [body] = bodies(&story, POST).try_into().unwrap();
    assert_eq!(body["allowed_mentions"], json!({"parse": []}));
    assert!(body["enforce_nonce"] == true && body["nonce"].as_str().unwrap().len() <= 25, "{body}");
    story.pass(Duration::from_mins(3)).await;
    assert_eq!(story.discord.count(POST), 1);
    cancels(&story, &opened);
    story.tick().await;
    let ended = card(&story, RELEASES);
    assert_eq!(buttons(&story, &ended), Vec::<String>::new());
    assert!(reads(&story, &ended).contains("Canceled"), "{}", reads(&story, &ended));
    story.end().await;
}

/// Cases 2, 3 and 4: the post was made and its answer lost, cut or an error; or it was not made at all.
#[rstest]
#[tokio::test]
async fn discord_case_2_and_3_and_4_a_post_of_unknown_outcome_is_one_message(
    #[values(SQLITE, POSTGRES)] on: Ground,
    #[values("lost", "cut", "after", "500", "twice")] what: &str,
) {
    let story = begin(on).await;
    match what {
        "lost" => fault(&story, POST, Fault::Lost { ms: 50 }),
        "cut" => fault(&story, POST, Fault::CutAnswer),
        "after" => fault(&story, POST, Fault::StatusAfter { code: 502 }),
        _ => {
            for code in [500, 503] {
                fault(&story, POST, Fault::Status { code, retry_after: None, body: None });
            }
        }
    }
    if what == "twice" {
        // Another channel does not wait for this one.
        story.asks("three");
    }
    story.asks("deploy");
    story.tick().await;
    story.pass(Duration::from_secs(30)).await;
    assert!(story.discord.cards(RELEASES).len() == if what == "twice" { 2 } else { 1 });
    if what != "twice" {
        let bodies = bodies(&story, POST);
        assert!(bodies.len() >= 2 && bodies.windows(2).all(|pair| pair[0] == pair[1]), "{bodies:#?}");
    }
    story.pass(Duration::from_mins(5)).await;
    assert_eq!(story.discord.cards(RELEASES).len(), if what == "twice" { 2 } else { 1 }, "and stays one");
    story.discord.faults().clear();
    story.end().await;
}

#[rstest]
#[tokio::test]
async fn discord_case_4_waits_grow_and_other_channels_go_on(#[values(SQLITE, POSTGRES)] on: Ground) {
    let story = begin(on).await;
    story.discord.script(Script::json(POST, 503, &json!({"code": 0})).of(RELEASES).times(4));
    story.asks("three");
    story.tick().await;
    assert_eq!(story.discord.cards(OPS).len(), 1, "another channel is not delayed");
    story.pass(Duration::from_mins(2)).await;
    let calls: Vec<_> =
        story.discord.calls(POST).into_iter().filter(|call| call.ids[0] == RELEASES).collect();
    assert_eq!(calls.len(), 5);
    assert!(calls.iter().all(|call| call.body == calls[0].body), "the same nonce and body");
    let waits: Vec<i64> = calls.windows(2).map(|pair| pair[1].at_ms - pair[0].at_ms).collect();
    assert!(waits.windows(2).all(|pair| pair[1] > pair[0]), "{waits:?}");
    story.end().await;
}

#[rstest]
#[tokio::test]
async fn discord_case_5_found_in_the_history_after_a_restart(#[values(SQLITE, POSTGRES)] on: Ground) {
    let mut story = begin(on).await;
    fault(&story, POST, Fault::Lost { ms: 50 });
    story.asks("deploy");
    story.tick().await;
    assert_eq!(story.discord.cards(RELEASES).len(), 1);
    // Down for longer than any nonce is known.
    story.advance(Duration::from_mins(10));
    story.restart().await;
    story.pass(Duration::from_mins(2)).await;
    assert_eq!(story.discord.count(POST), 1, "not posted again");
    assert!(story.discord.count(READ) >= 1);
    let card = card(&story, RELEASES);
    assert_eq!(buttons(&story, &card), ["Approve", "Deny", "Deny with reason…"]);
    story.end().await;
}

#[rstest]
#[tokio::test]
async fn discord_case_6_deleted_before_the_retry(#[values(SQLITE, POSTGRES)] on: Ground) {
    let story = begin(on).await;
    fault(&story, POST, Fault::Lost { ms: 50 });
    story.asks("deploy");
    story.tick().await;
    let posted = card(&story, RELEASES);
    story.discord.remove_message(RELEASES, &posted.id);
    story.pass(Duration::from_mins(1)).await;
    assert!(story.discord.cards(RELEASES).is_empty(), "not reposted there");
    assert_eq!(story.discord.cards(OPS).len(), 1, "once to the fallback");
    story.end().await;
}

#[rstest]
#[tokio::test]
async fn discord_case_7_a_refused_form_goes_plainer_once(#[values(SQLITE, POSTGRES)] on: Ground) {
    let story = begin(on).await;
    let errors = json!({"components": {"0": {"components": {"0": {"label": {"_errors": [
        {"code": "BASE_TYPE_BAD_LENGTH", "message": "Must be between 1 and 80 in length."}]}}}}}});
    let refused = json!({"code": 50035, "message": "Invalid Form Body", "errors": errors});
    story.discord.script(Script::json(POST, 400, &refused));
    story.asks("deploy");
    story.tick().await;
    story.pass(Duration::from_secs(5)).await;
    let plain = card(&story, RELEASES);
    assert_eq!(buttons(&story, &plain), ["Approve", "Deny", "Deny with reason…"]);
    assert_eq!(story.discord.count(POST), 2);
    // Both refused: operators are told, and it is not tried for ever.
    story.discord.script(Script::json(POST, 400, &refused).of(RELEASES).times(10));
    story.asks("deploy");
    story.tick().await;
    story.pass(Duration::from_mins(30)).await;
    assert_eq!(story.discord.count(POST), 5, "two tries, and the fallback's");
    assert_eq!(story.discord.cards(OPS).len(), 1);
    assert!(
        story.alert_keys().await.iter().any(|key| key.contains(RELEASES)),
        "{:?}",
        story.alert_keys().await
    );
    story.discord.clear_scripts();
    // Its complaints about our forms were the test's.
    story.discord.forget();
    story.end().await;
}

#[rstest]
#[tokio::test]
async fn discord_case_8_closed_before_or_while_it_is_posted(#[values(SQLITE, POSTGRES)] on: Ground) {
    let story = begin(on).await;
    let opened = story.asks("deploy");
    story.watch().await;
    cancels(&story, &opened);
    story.tick().await;
    assert_eq!(story.discord.count(POST), 0, "closed before it left");
    fault(&story, POST, Fault::Lost { ms: 50 });
    let opened = story.asks("deploy");
    story.tick().await;
    cancels(&story, &opened);
    story.watch().await;
    story.pass(Duration::from_mins(2)).await;
    let card = card(&story, RELEASES);
    assert_eq!(buttons(&story, &card), Vec::<String>::new(), "no live button remains");
    assert!(reads(&story, &card).contains("Canceled"));
    story.end().await;
}

#[rstest]
#[tokio::test]
async fn discord_case_9_two_replicas_post_one_message() {
    let story = begin(POSTGRES).await;
    let other = story.replica().await;
    other.bridge.identify_once("guild").await.unwrap();
    for _ in 0..5 {
        story.asks("deploy");
    }
    story.watch().await;
    other.bridge.watch_once("prod").await.unwrap();
    for _ in 0..20 {
        let (a, b) = tokio::join!(
            story.service.bridge.deliver_once(&JobKind::ALL),
            other.bridge.deliver_once(&JobKind::ALL),
        );
        if a.unwrap() + b.unwrap() == 0 {
            story.advance(Duration::from_secs(1));
        }
    }
    assert_eq!(story.discord.cards(RELEASES).len(), 5);
    other.bridge.store.close().await;
    story.end().await;
}

#[rstest]
#[tokio::test]
async fn discord_case_10_and_49_a_place_that_refuses_costs_one_call(#[values(SQLITE, POSTGRES)] on: Ground) {
    let story = begin(on).await;
    story.asks("three");
    story.tick().await;
    story.pass(Duration::from_mins(1)).await;
    assert_eq!((story.discord.cards(RELEASES).len(), story.discord.cards(OPS).len()), (1, 1));
    let tried = |story: &Story| story.discord.calls(POST).iter().filter(|call| call.ids[0] == SECRET).count();
    assert_eq!(tried(&story), 1);
    let place = format!("place:discord:guild:{SECRET}");
    assert_eq!(story.alert_keys().await, std::slice::from_ref(&place));
    story.asks("three");
    story.tick().await;
    story.pass(Duration::from_mins(1)).await;
    assert_eq!(tried(&story), 1, "no second call to the bad place");
    // It lets us in: it is found well again, and what is open is posted there.
    story.discord.permit(SECRET, BOT, perms::VIEW_CHANNEL, true);
    story.pass(Duration::from_mins(11)).await;
    story.asks("three");
    story.tick().await;
    story.pass(Duration::from_mins(1)).await;
    assert!(!story.discord.cards(SECRET).is_empty());
    assert!(!story.alert_keys().await.contains(&place));
    story.end().await;
}

#[rstest]
#[tokio::test]
async fn discord_case_20_a_mentioned_role_is_pinged_once(#[values(SQLITE, POSTGRES)] on: Ground) {
    let story = begin(on).await;
    let opened = story.asks("loud");
    story.tick().await;
    let posted = card(&story, RELEASES);
    assert_eq!(posted.mention_roles, [PINGED]);
    assert!(posted.mentions.contains(&KIM.to_owned()) && !posted.mention_everyone, "{posted:#?}");
    let [body] = bodies(&story, POST).try_into().unwrap();
    assert_eq!(body["allowed_mentions"]["parse"], json!([]));
    cancels(&story, &opened);
    story.tick().await;
    for edit in bodies(&story, EDIT) {
        assert_eq!(edit["allowed_mentions"], json!({"parse": []}), "an edit pings nobody");
    }
    story.end().await;
}

/// An agent's words are words, in every place of a card and of what replaces it.
#[rstest]
#[tokio::test]
async fn discord_case_19_and_21_and_22_nothing_of_an_agent_is_alive(#[values(SQLITE, POSTGRES)] on: Ground) {
    let story = begin(on).await;
    let hostile = "@everyone @here <@1> <@&2> **x** ||x|| [ok](https://evil.example) # x\n> x ```x``` <t:0:R> </a:1>\
        \u{202e}\u{200b} https://evil.example www.evil.example";
    let opened =
        story.a2a.open(Open::new("dana@example.com", Ask::approval(hostile, hostile).prompt(hostile)));
    story.tick().await;
    let posted = card(&story, RELEASES);
    assert!(!posted.mention_everyone && posted.mentions.is_empty() && posted.mention_roles.is_empty());
    assert_eq!(story.discord.live(RELEASES, &posted.id), Vec::<String>::new());
    cancels(&story, &opened);
    story.tick().await;
    let live = story.discord.live(RELEASES, &posted.id);
    assert!(live.iter().all(|ours| ours.starts_with("<t:")), "{live:?}");
    story.end().await;
}

#[rstest]
#[tokio::test]
async fn discord_case_47_many_changes_are_few_edits_and_the_last_is_shown(
    #[values(SQLITE, POSTGRES)] on: Ground,
) {
    let story = begin(on).await;
    let opened = story.asks("both");
    story.tick().await;
    let in_slack = story.card(SLACK_RELEASES);
    story.presses("U0KIM", &in_slack, "Approve").await;
    story.deliver().await;
    story.pass(Duration::from_secs(5)).await;
    let in_slack = story.card(SLACK_RELEASES);
    let before = story.discord.count(EDIT);
    for _ in 0..15 {
        for control in ["Withdraw", "Approve"] {
            story.presses("U0KIM", &in_slack, control).await;
            // Decided and counted, and no edit goes out yet.
            story.deliver_only(&[JobKind::Decide]).await;
        }
    }
    story.deliver().await;
    story.pass(Duration::from_secs(2)).await;
    assert!(story.discord.count(EDIT) - before <= 2, "{}", story.discord.count(EDIT) - before);
    let there = card(&story, RELEASES);
    assert!(reads(&story, &there).contains("1 of 2"), "{}", reads(&story, &there));
    // The second vote comes from the other chat's side; both copies end alike.
    story.presses("U0DANA", &in_slack, "Approve").await;
    story.deliver().await;
    story.pass(Duration::from_secs(5)).await;
    let ended = card(&story, RELEASES);
    assert!(reads(&story, &ended).contains("Approved") && buttons(&story, &ended).is_empty());
    assert_eq!(story.recorded(&opened).len(), 1);
    story.pass(Duration::from_mins(2)).await;
    story.end().await;
}

#[rstest]
#[tokio::test]
async fn discord_case_48_a_deleted_card_comes_to_the_fallback_once(#[values(SQLITE, POSTGRES)] on: Ground) {
    let story = begin(on).await;
    let opened = story.asks("both");
    story.tick().await;
    let there = card(&story, RELEASES);
    story.discord.remove_message(RELEASES, &there.id);
    cancels(&story, &opened);
    story.tick().await;
    story.pass(Duration::from_mins(2)).await;
    let edits = story.discord.calls(EDIT).len();
    assert!(edits <= 1, "no retry: {edits}");
    assert!(story.discord.cards(RELEASES).is_empty() && story.discord.cards(OPS).is_empty());
    story.end().await;
}

#[rstest]
#[tokio::test]
async fn discord_case_49_a_channel_that_is_lost_under_its_card(#[values(SQLITE, POSTGRES)] on: Ground) {
    let story = begin(on).await;
    let opened = story.asks("both");
    story.tick().await;
    let in_slack = story.card(SLACK_RELEASES);
    story.discord.hide(RELEASES, BOT, true);
    story.presses("U0KIM", &in_slack, "Approve").await;
    story.deliver().await;
    story.pass(Duration::from_mins(1)).await;
    let place = format!("place:discord:guild:{RELEASES}");
    assert_eq!(story.alert_keys().await, std::slice::from_ref(&place));
    let edits = story.discord.count(EDIT);
    assert_eq!(edits, 1, "one try");
    story.discord.hide(RELEASES, BOT, false);
    story.pass(Duration::from_mins(11)).await;
    let there = card(&story, RELEASES);
    assert!(reads(&story, &there).contains("1 of 2"), "brought up to date: {}", reads(&story, &there));
    cancels(&story, &opened);
    story.tick().await;
    story.pass(Duration::from_mins(2)).await;
    assert!(buttons(&story, &card(&story, RELEASES)).is_empty());
    story.end().await;
}

#[rstest]
#[tokio::test]
async fn discord_case_50_threads_archived_and_open(#[values(SQLITE, POSTGRES)] on: Ground) {
    let story = begin(on).await;
    let opened = story.asks("thread");
    story.tick().await;
    let posted = card(&story, THREAD);
    story.discord.archive(THREAD, true, false);
    cancels(&story, &opened);
    story.tick().await;
    assert_eq!(story.discord.count("PATCH /channels/{channel}"), 1);
    assert!(reads(&story, &posted).contains("Canceled"), "{}", reads(&story, &posted));
    // Posting into an archived one opens it.
    story.asks("archived");
    story.tick().await;
    story.pass(Duration::from_secs(5)).await;
    assert_eq!(story.discord.cards(ARCHIVED).len(), 1);
    story.end().await;
}

#[rstest]
#[tokio::test]
async fn cards_of_one_context_stand_in_one_thread(#[values(SQLITE, POSTGRES)] on: Ground) {
    let story = begin(on).await;
    let first = story.asks("gathered");
    story.tick().await;
    let root = card(&story, RELEASES);
    let mut again = Open::new("dana@example.com", Ask::approval("ci", "gathered"));
    again.context_id = Some(first.context_id.clone());
    let second = story.a2a.open(again);
    story.tick().await;
    story.pass(Duration::from_secs(5)).await;
    // A thread has the id of the message it begins below.
    let reply = card(&story, &root.id);
    assert_eq!(buttons(&story, &reply), ["Approve", "Deny", "Deny with reason…"]);
    cancels(&story, &second);
    story.tick().await;
    story.pass(Duration::from_secs(5)).await;
    assert!(buttons(&story, &card(&story, &root.id)).is_empty(), "edits reach it there");
    story.end().await;
}

#[rstest]
#[tokio::test]
async fn discord_case_51_an_old_message_gets_its_final_edit_later(#[values(SQLITE, POSTGRES)] on: Ground) {
    let story = begin(on).await;
    let opened = story.asks("deploy");
    story.tick().await;
    refuse(&story, EDIT, 429, 30_046);
    refuse(&story, EDIT, 429, 30_046);
    cancels(&story, &opened);
    story.tick().await;
    story.pass(Duration::from_secs(50)).await;
    assert_eq!(story.discord.count(EDIT), 1, "no loop");
    story.pass(Duration::from_mins(13)).await;
    assert_eq!(story.discord.count(EDIT), 3);
    assert!(buttons(&story, &card(&story, RELEASES)).is_empty());
    story.end().await;
}

#[rstest]
#[tokio::test]
async fn discord_case_52_an_hour_of_errors_ends_in_the_true_state(#[values(SQLITE, POSTGRES)] on: Ground) {
    let story = begin(on).await;
    let opened = story.asks("deploy");
    story.asks("thread");
    story.tick().await;
    story.discord.script(Script::json(EDIT, 502, &json!({"code": 0})).of(RELEASES).times(10_000));
    cancels(&story, &opened);
    story.tick().await;
    for _ in 0..12 {
        story.advance(Duration::from_mins(5));
        story.deliver().await;
    }
    assert!(story.discord.count(EDIT) < 100, "{}", story.discord.count(EDIT));
    story.discord.clear_scripts();
    story.pass(Duration::from_mins(3)).await;
    assert!(buttons(&story, &card(&story, RELEASES)).is_empty());
    assert!(!buttons(&story, &card(&story, THREAD)).is_empty(), "the other card was left alone");
    story.end().await;
}

#[rstest]
#[tokio::test]
async fn discord_case_53_and_54_and_57_limits_are_waited_for(#[values(SQLITE, POSTGRES)] on: Ground) {
    let story = begin(on).await;
    story.discord.script(Script::limited(POST, Scope::User, 0.3));
    story.discord.script(Script::limited(POST, Scope::Global, 2.0));
    story.discord.script(
        Script::json(POST, 429, &json!({"message": "slow", "retry_after": -1})).header("retry-after", "1e9"),
    );
    story.asks("deploy");
    story.tick().await;
    story.pass(Duration::from_mins(1)).await;
    assert_eq!(story.discord.cards(RELEASES).len(), 1);
    assert_eq!(story.discord.count(POST), 4);
    story.end().await;
}

#[rstest]
#[tokio::test]
async fn discord_case_55_a_proxys_page_is_rested_from(#[values(SQLITE, POSTGRES)] on: Ground) {
    let story = begin(on).await;
    for status in [403, 429, 403] {
        story.discord.script(Script::html("*", status));
    }
    story.asks("deploy");
    story.tick().await;
    story.service.bridge.tend_troubles("guild").await;
    assert!(story.alert_keys().await.contains(&"limits:guild".to_owned()));
    story.pass(Duration::from_mins(2)).await;
    assert_eq!(story.discord.cards(RELEASES).len(), 1);
    story.service.bridge.tend_troubles("guild").await;
    assert!(!story.alert_keys().await.contains(&"limits:guild".to_owned()), "well again");
    story.end().await;
}

/// New cards before edits, at Discord's pace and ours, none lost.
#[rstest]
#[tokio::test]
async fn discord_case_59_many_open_while_many_close(#[values(SQLITE, POSTGRES)] on: Ground) {
    const MANY: usize = 24;
    let story = begin(on).await;
    let old: Vec<_> = (0..MANY).map(|_| story.asks("deploy")).collect();
    story.tick().await;
    story.pass(Duration::from_secs(40)).await;
    assert_eq!(story.discord.cards(RELEASES).len(), MANY);
    for opened in &old {
        cancels(&story, opened);
    }
    for _ in 0..MANY {
        story.asks("deploy");
    }
    story.tick().await;
    story.pass(Duration::from_mins(3)).await;
    let cards = story.discord.cards(RELEASES);
    assert_eq!(cards.len(), 2 * MANY);
    let alive = cards.iter().filter(|card| !buttons(&story, card).is_empty()).count();
    assert_eq!(alive, MANY);
    let last_post = story.discord.calls(POST).last().unwrap().seq;
    let early = story.discord.calls(EDIT).iter().filter(|call| call.seq < last_post).count();
    assert!(early <= MANY / 2, "new cards go first: {early} edits before the last post");
    assert!(story.discord.impatient().is_empty(), "{:#?}", story.discord.impatient());
    story.end().await;
}

//! Where cards go: direct messages, threads, mentions, full places, places that refuse, alerts.

use crate::world::database::Backend;
use crate::world::story::{DANA, KIM, OPS, RELEASES, Story, Wants};
use countersign::net::Limits;
use countersign::sandbox::a2a::{Ask, Open, Opened, State};
use countersign::sandbox::faults::{Fault, Rule};
use countersign::sandbox::slack::Message;
use rstest::rstest;
use serde_json::json;
use std::time::Duration;

const DANAS: &str = "D0DANA";
const KIMS: &str = "D0KIM";

const PEOPLE: &str = r#"
[[group]]
name = "release"
subjects = ["dana@example.com", "gone@example.com"]
slack_usergroups = ["acme:S0RELEASE"]

[[person]]
subject = "dana@example.com"
slack = ["acme:U0DANA"]

[[person]]
subject = "kim@example.com"
slack = ["acme:U0KIM"]

[[person]]
subject = "gone@example.com"
slack = ["acme:U0GONE"]
"#;

/// A story whose only route goes on so.
async fn routed(on: Backend, route: &str) -> Story {
    more(on, "", route).await
}

async fn more(on: Backend, more: &'static str, route: &str) -> Story {
    let mut story = Story::with(on, Wants { people_and_routes: PEOPLE, more, ..hasty() }).await;
    let route = format!(
        "\n[[route]]\nwhen = {{ runtime = \"prod\" }}\napprovers = [\"release\", \"owner\"]\n{route}\n"
    );
    story.restart_with(|config| config + &route).await;
    story
}

fn hasty() -> Wants {
    Wants {
        limits: Limits { connect: Duration::from_millis(500), total: Duration::from_millis(400) },
        ..Wants::default()
    }
}

fn refuse(code: &str) -> Fault {
    Fault::Refuse { error: code.into() }
}

/// An approval of a tool in a context.
fn asks_in(story: &Story, context: &str, tool: &str) -> Opened {
    let open = Open { context_id: Some(context.into()), ..Open::new(DANA, Ask::approval("ci", tool)) };
    story.a2a.open(open)
}

fn of_tool(story: &Story, channel: &str, tool: &str) -> Message {
    let cards = story.slack.cards(channel);
    let found = cards.into_iter().find(|card| story.reads(card).contains(tool));
    found.unwrap_or_else(|| panic!("no card of {tool} in {channel}: {:#?}", story.slack.dump()["messages"]))
}

/// Slack tells us of something in Acme.
async fn hears(story: &Story, event: serde_json::Value) {
    let delivery = story.slack.event("T0ACME", &event, None).await.unwrap();
    assert!(delivery.acked(), "{delivery:?}");
}

async fn settle(story: &Story, seconds: u64) {
    story.pass(Duration::from_secs(seconds)).await;
}

/// Slack case 55: a direct message: the conversation is opened first, then posts and edits go by its id.
#[rstest]
#[tokio::test]
async fn one_person_directly(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let story = routed(on, r#"to = ["slack:acme:@U0KIM"]"#).await;
    let ask = story.asks("deploy_service");
    story.tick().await;
    let card = story.card(KIMS);
    story.presses("U0KIM", &card, "Approve").await;
    story.deliver().await;
    settle(&story, 3).await;
    assert_eq!(story.recorded(&ask), [(KIM.to_owned(), true)]);
    assert!(story.reads(&card).contains("approved by"), "{}", story.reads(&card));
    let calls = story.slack.requests();
    let opened = calls.iter().position(|call| call.method == "conversations.open").unwrap();
    let posted = calls.iter().position(|call| call.method == "chat.postMessage").unwrap();
    assert!(opened < posted);
    for method in ["chat.postMessage", "chat.update"] {
        assert!(story.slack.calls(method).iter().all(|call| call.arguments["channel"] == KIMS), "{method}");
    }
    story.asks("deploy_site");
    story.tick().await;
    settle(&story, 2).await;
    assert_eq!(story.slack.count("conversations.open"), 1, "pinned");
    story.end().await;
}

/// One person by several places is one card; a group's members are its subjects and those of its user groups
/// who are linked; one who cannot be written to brings the fallback.
#[rstest]
#[tokio::test]
async fn a_group_directly(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let story = routed(
        on,
        r#"to = ["slack:acme:@U0DANA", "dm:release", "dm:owner"]
fallback = ["slack:acme:C0OPS"]"#,
    )
    .await;
    let ask = story.asks("deploy_service");
    story.registers(&ask, Some(DANA)).await;
    story.tick().await;
    settle(&story, 3).await;
    assert_eq!((story.slack.cards(DANAS).len(), story.slack.cards(KIMS).len()), (1, 1));
    assert_eq!(story.slack.cards(OPS).len(), 1, "U0GONE is deactivated");
    assert_eq!(story.alert_keys().await, ["place:slack:acme:@U0GONE"]);
    story.presses("U0KIM", &story.card(KIMS), "Approve").await;
    story.deliver().await;
    settle(&story, 3).await;
    assert_eq!(story.recorded(&ask), [(KIM.to_owned(), true)]);
    for channel in [DANAS, KIMS, OPS] {
        assert!(story.reads(&story.card(channel)).contains("approved by"), "{channel}");
    }
    story.end().await;
}

/// `dm:owner` while nobody knows for whom the agent works: the fallback; and the owner when that is known.
#[rstest]
#[tokio::test]
async fn an_owner_who_becomes_known(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let story = routed(
        on,
        r#"to = ["dm:owner"]
fallback = ["slack:acme:C0OPS"]"#,
    )
    .await;
    let ask = story.asks("deploy_service");
    story.tick().await;
    assert_eq!((story.slack.cards(DANAS).len(), story.slack.cards(OPS).len()), (0, 1));
    story.registers(&ask, Some(DANA)).await;
    settle(&story, 2).await;
    story.tick().await;
    settle(&story, 2).await;
    assert_eq!((story.slack.cards(DANAS).len(), story.slack.cards(OPS).len()), (1, 1));
    story.presses("U0DANA", &story.card(DANAS), "Deny").await;
    story.deliver().await;
    settle(&story, 3).await;
    assert_eq!(story.recorded(&ask), [(DANA.to_owned(), false)]);
    assert!(story.reads(&story.card(OPS)).contains("denied by"));
    story.end().await;
}

/// A closed direct message brings the fallback; without one operators are told.
#[rstest]
#[tokio::test]
async fn direct_messages_are_closed(
    #[values(true, false)] fallback: bool,
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
) {
    let route = if fallback {
        "to = [\"slack:acme:@U0DANA\"]\nfallback = [\"slack:acme:C0OPS\"]"
    } else {
        "to = [\"slack:acme:@U0DANA\"]"
    };
    let story = routed(on, route).await;
    story.slack.switch(|switches| switches.messages_tab = false);
    let ask = story.asks("deploy_service");
    story.tick().await;
    settle(&story, 3).await;
    assert_eq!(story.slack.cards(OPS).len(), usize::from(fallback));
    assert_eq!(story.alert_keys().await, ["place:slack:acme:@U0DANA"]);
    if !fallback {
        // Open again: what it refused is posted.
        story.slack.switch(|switches| switches.messages_tab = true);
        settle(&story, 601).await;
        assert_eq!(story.slack.cards(DANAS).len(), 1);
        assert_eq!(story.alert_keys().await, Vec::<String>::new());
        story.presses("U0DANA", &story.card(DANAS), "Approve").await;
        story.deliver().await;
        assert_eq!(story.recorded(&ask).len(), 1);
    }
    settle(&story, 3).await;
    story.end().await;
}

const THREADED: &str = "to = [\"slack:acme:#releases\"]\nthread_by = \"context\"";

/// Slack case 42: one thread for a context and place, also for two at once; each card answers its own (eve 2471).
#[rstest]
#[tokio::test]
async fn one_thread_for_a_context(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let story = routed(on, THREADED).await;
    let asks = ["deploy_one", "deploy_two", "deploy_three"].map(|tool| asks_in(&story, "ctx-7", tool));
    let other = asks_in(&story, "ctx-8", "deploy_else");
    story.tick().await;
    settle(&story, 8).await;
    let cards = story.slack.cards(RELEASES);
    assert_eq!(cards.len(), 4);
    let of_context: Vec<&Message> =
        cards.iter().filter(|card| !story.reads(card).contains("deploy_else")).collect();
    let roots: Vec<_> = of_context.iter().filter(|card| card.thread_ts.is_none()).collect();
    assert_eq!(roots.len(), 1);
    let root = roots.first().unwrap().ts.clone();
    let replies = of_context.iter().filter(|card| card.thread_ts.as_deref() == Some(&root)).count();
    assert_eq!(replies, 2);
    assert!(of_tool(&story, RELEASES, "deploy_else").thread_ts.is_none());
    let second = of_tool(&story, RELEASES, "deploy_two");
    story.presses("U0DANA", &second, "Deny").await;
    story.deliver().await;
    settle(&story, 3).await;
    let [one, two, three] = &asks;
    assert_eq!(story.recorded(two), [(DANA.to_owned(), false)]);
    for open in [one, three, &other] {
        assert_eq!(story.recorded(open), []);
    }
    assert!(story.reads(&second).contains("denied by"));
    assert_eq!(
        story.buttons(&of_tool(&story, RELEASES, "deploy_one")),
        ["Approve", "Deny", "Deny with reason…"]
    );
    story.end().await;
}

/// The root is gone, or its thread is locked: the card is posted outside and begins the thread anew.
#[rstest]
#[case::deleted(true)]
#[case::locked(false)]
#[tokio::test]
async fn a_thread_that_takes_no_replies(
    #[case] deleted: bool,
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
) {
    let story = routed(on, THREADED).await;
    asks_in(&story, "ctx-7", "deploy_one");
    story.tick().await;
    let root = story.card(RELEASES);
    if deleted {
        story.slack.remove_message(RELEASES, &root.ts);
    } else {
        settle(&story, 2).await;
        let fault = refuse("restricted_action_thread_locked");
        story.slack.faults().add(Rule::next("chat.postMessage", fault));
    }
    let ask = asks_in(&story, "ctx-7", "deploy_two");
    story.tick().await;
    settle(&story, 5).await;
    let second = of_tool(&story, RELEASES, "deploy_two");
    assert_eq!(second.thread_ts, None);
    asks_in(&story, "ctx-7", "deploy_three");
    story.tick().await;
    settle(&story, 5).await;
    assert_eq!(of_tool(&story, RELEASES, "deploy_three").thread_ts.as_deref(), Some(second.ts.as_str()));
    assert_eq!(story.alert_keys().await, Vec::<String>::new());
    story.presses("U0DANA", &second, "Approve").await;
    story.deliver().await;
    assert_eq!(story.recorded(&ask).len(), 1);
    settle(&story, 3).await;
    story.end().await;
}

/// Slack case 17: a post in a thread whose answer was lost is found among the replies and not made again.
#[rstest]
#[tokio::test]
async fn a_reply_whose_answer_is_lost(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let story = routed(on, THREADED).await;
    asks_in(&story, "ctx-7", "deploy_one");
    story.tick().await;
    settle(&story, 2).await;
    story.slack.faults().add(Rule::next("chat.postMessage", Fault::Lost { ms: 3000 }));
    let ask = asks_in(&story, "ctx-7", "deploy_two");
    story.tick().await;
    settle(&story, 60).await;
    assert_eq!(story.slack.cards(RELEASES).len(), 2);
    assert!(!story.slack.calls("conversations.replies").is_empty());
    assert_eq!(story.slack.count("chat.postMessage"), 2);
    story.presses("U0DANA", &of_tool(&story, RELEASES, "deploy_two"), "Approve").await;
    story.deliver().await;
    settle(&story, 3).await;
    assert_eq!(story.recorded(&ask).len(), 1);
    story.end().await;
}

/// The configured people are pinged by the first post, in the card and in the notification; nobody else is,
/// whatever the agent writes.
#[rstest]
#[tokio::test]
async fn who_is_pinged(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let story =
        routed(on, "to = [\"slack:acme:#releases\", \"slack:acme:@U0KIM\"]\nmention = [\"release\"]").await;
    let hostile = "<!channel> <@U0KIM> <!subteam^S0ONCALL> @here";
    let ask = Ask::approval("ci", "deploy_service").prompt(hostile);
    story.a2a.open(Open::new(DANA, ask));
    story.tick().await;
    settle(&story, 2).await;
    let card = story.card(RELEASES);
    let mut live = story.slack.live(RELEASES, &card.ts);
    live.sort();
    live.dedup();
    assert_eq!(live.len(), 3, "the group's two linked subjects and its user group: {live:?}");
    assert!(live.iter().any(|one| one.contains("U0DANA")), "{live:?}");
    assert!(live.iter().any(|one| one.contains("S0RELEASE")), "{live:?}");
    assert!(card.text.starts_with("<!subteam^S0RELEASE> <@U0DANA> <@U0GONE> "), "{}", card.text);
    let direct = story.card(KIMS);
    assert_eq!(story.slack.live(KIMS, &direct.ts), Vec::<String>::new());
    story.presses("U0DANA", &card, "Deny").await;
    story.deliver().await;
    settle(&story, 3).await;
    let live = story.slack.live(RELEASES, &card.ts);
    assert!(live.iter().all(|one| one.contains("U0DANA")), "who answered is named: {live:?}");
    story.end().await;
}

/// More than a place shows wait in the order first seen, one notice says how many, and each that ends brings
/// the next. What waits in one place is answerable in another.
#[rstest]
#[tokio::test]
async fn a_full_place(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let story = more(
        on,
        "[policy]\nmax_open_per_place = 2",
        "to = [\"slack:acme:#releases\"]\nfallback = [\"slack:acme:C0OPS\"]",
    )
    .await;
    let mut asks = vec![];
    for tool in ["tool_a", "tool_b", "tool_c", "tool_d", "tool_e"] {
        asks.push(story.asks(tool));
        story.tick().await;
        settle(&story, 2).await;
    }
    settle(&story, 12).await;
    let shown = |story: &Story| {
        let cards = story.slack.cards(RELEASES);
        let mut tools: Vec<String> = cards
            .iter()
            .filter(|card| !story.buttons(card).is_empty())
            .filter_map(|card| {
                let text = story.reads(card);
                ["tool_a", "tool_b", "tool_c", "tool_d", "tool_e"]
                    .into_iter()
                    .find(|tool| text.contains(tool))
            })
            .map(str::to_owned)
            .collect();
        tools.sort();
        tools
    };
    let notices = |story: &Story| {
        let cards = story.slack.cards(RELEASES);
        cards
            .iter()
            .map(|card| story.reads(card))
            .filter(|text| text.contains("for room"))
            .collect::<Vec<_>>()
    };
    assert_eq!(shown(&story), ["tool_a", "tool_b"]);
    let said = notices(&story);
    assert!(said.len() == 1 && said.iter().all(|text| text.contains("3 more")), "{said:?}");
    let listed = story.service.bridge.list_interactions(true, nil(), 10).await.unwrap();
    let waiting = listed.iter().flat_map(|row| &row.cards).filter(|card| card.word() == "waiting").count();
    assert_eq!((listed.len(), waiting), (5, 3));

    // One is answered, one that waits is withdrawn by the runtime.
    story.presses("U0DANA", &of_tool(&story, RELEASES, "tool_a"), "Approve").await;
    let canceled = asks.get(3).unwrap();
    story.a2a.end(&canceled.task_id, State::Canceled, None);
    story.tick().await;
    settle(&story, 3).await;
    assert_eq!(shown(&story), ["tool_b", "tool_c"]);
    settle(&story, 15).await;
    let said = notices(&story);
    assert!(said.len() == 1 && said.iter().all(|text| text.contains("one more")), "{said:?}");

    for tool in ["tool_b", "tool_c", "tool_e"] {
        story.presses("U0DANA", &of_tool(&story, RELEASES, tool), "Approve").await;
        story.deliver().await;
        settle(&story, 4).await;
    }
    settle(&story, 15).await;
    assert_eq!(shown(&story), Vec::<String>::new());
    assert_eq!(notices(&story), Vec::<String>::new());
    let answered = asks.iter().filter(|ask| story.recorded(ask).len() == 1).count();
    assert_eq!(answered, 4);
    assert_eq!(story.slack.cards(RELEASES).len(), 4, "what ended while it waited was never posted");
    assert_eq!(story.slack.cards(OPS).len(), 0);
    story.end().await;
}

/// Two replicas give the last seat once.
#[tokio::test]
async fn two_replicas_and_one_seat() {
    let story =
        more(Backend::Postgres, "[policy]\nmax_open_per_place = 3", "to = [\"slack:acme:C0RELEASES\"]").await;
    let other = story.replica().await;
    other.bridge.identify_once("acme").await.unwrap();
    for n in 0..12 {
        story.asks(&format!("tool_{n}"));
    }
    for _ in 0..12 {
        let (here, there) =
            tokio::join!(story.service.bridge.watch_once("prod"), other.bridge.watch_once("prod"));
        here.unwrap();
        there.unwrap();
        let kinds = countersign::store::jobs::JobKind::ALL;
        let (here, there) =
            tokio::join!(story.service.bridge.deliver_once(&kinds), other.bridge.deliver_once(&kinds));
        here.unwrap();
        there.unwrap();
        story.advance(Duration::from_secs(1));
    }
    settle(&story, 5).await;
    let open = story.slack.cards(RELEASES).iter().filter(|card| !story.buttons(card).is_empty()).count();
    assert_eq!(open, 3);
    story.end().await;
}

/// Slack case 36: what waits for room in a place that is closed goes to the fallback, and a place is looked at
/// as soon as the platform says that something happened to it.
#[rstest]
#[tokio::test]
async fn a_full_place_is_archived(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let story = more(
        on,
        "[policy]\nmax_open_per_place = 1",
        "to = [\"slack:acme:#releases\"]\nfallback = [\"slack:acme:C0OPS\"]",
    )
    .await;
    let first = story.asks("tool_a");
    story.tick().await;
    story.asks("tool_b");
    story.tick().await;
    settle(&story, 15).await;
    assert_eq!(story.slack.cards(OPS).len(), 0);
    story.slack.archive(RELEASES);
    hears(&story, json!({"type": "channel_archive", "channel": RELEASES, "user": "U0KIM"})).await;
    story.deliver().await;
    settle(&story, 3).await;
    assert!(story.reads(&story.card(OPS)).contains("tool_b"), "at once");
    assert_eq!(story.alert_keys().await, ["place:slack:acme:#releases"]);
    // What ends meanwhile is brought up to date when the channel is open again.
    story.a2a.end(&first.task_id, State::Canceled, None);
    story.tick().await;
    settle(&story, 5).await;
    let card = of_tool(&story, RELEASES, "tool_a");
    assert!(!story.reads(&card).contains("canceled"));
    story.slack.unarchive(RELEASES);
    hears(&story, json!({"type": "channel_unarchive", "channel": RELEASES, "user": "U0KIM"})).await;
    settle(&story, 2).await;
    assert_eq!(story.alert_keys().await, ["place:slack:acme:#releases"], "the bot is not in it");
    let looks = story.slack.count("conversations.info");
    hears(&story, json!({"type": "member_joined_channel", "channel": RELEASES, "user": "U0KIM"})).await;
    settle(&story, 2).await;
    assert_eq!(story.slack.count("conversations.info"), looks, "somebody else came in");
    story.slack.edit_channel(RELEASES, |channel| {
        channel.members.insert("U0BOT".into());
    });
    hears(&story, json!({"type": "member_joined_channel", "channel": RELEASES, "user": "U0BOT"})).await;
    settle(&story, 5).await;
    assert_eq!(story.alert_keys().await, Vec::<String>::new());
    assert!(story.reads(&card).contains("canceled"), "{}", story.reads(&card));
    story.asks("tool_c");
    story.tick().await;
    settle(&story, 3).await;
    assert!(story.reads(&story.card(RELEASES)).contains("tool_c"));
    story.end().await;
}

/// Slack case 36: without any word of the platform the place is looked at every ten minutes, and what it refused
/// and stands nowhere is posted there then.
#[rstest]
#[tokio::test]
async fn a_place_is_looked_at_again(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let story = routed(on, "to = [\"slack:acme:#releases\"]").await;
    story.asks("warm_up");
    story.tick().await;
    story.slack.archive(RELEASES);
    settle(&story, 2).await;
    let ask = story.asks("deploy_service");
    story.tick().await;
    settle(&story, 3).await;
    let posts = story.slack.count("chat.postMessage");
    story.asks("deploy_site");
    story.tick().await;
    settle(&story, 5).await;
    assert_eq!(story.slack.count("chat.postMessage"), posts, "not tried while it is marked");
    settle(&story, 610).await;
    let looks = story.slack.count("conversations.info");
    assert_eq!(looks, 1);
    story.slack.unarchive(RELEASES);
    story.slack.edit_channel(RELEASES, |channel| {
        channel.members.insert("U0BOT".into());
    });
    settle(&story, 605).await;
    assert_eq!(story.alert_keys().await, Vec::<String>::new());
    story.presses("U0DANA", &of_tool(&story, RELEASES, "deploy_service"), "Approve").await;
    story.deliver().await;
    assert_eq!(story.recorded(&ask).len(), 1);
    of_tool(&story, RELEASES, "deploy_site");
    settle(&story, 3).await;
    story.end().await;
}

/// Slack case 55: a channel that gets another id: pins, cards and threads follow it.
#[rstest]
#[case("#releases")]
#[case("C0RELEASES")]
#[tokio::test]
async fn a_channel_whose_id_changes(
    #[case] place: &str,
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
) {
    let story = routed(on, &THREADED.replace("#releases", place)).await;
    let ask = asks_in(&story, "ctx-7", "deploy_one");
    story.tick().await;
    settle(&story, 2).await;
    let root = story.card(RELEASES);
    story.slack.migrate_channel(RELEASES, "C0MOVED");
    let event =
        json!({"type": "channel_id_changed", "old_channel_id": RELEASES, "new_channel_id": "C0MOVED"});
    for _ in 0..2 {
        hears(&story, event.clone()).await;
    }
    asks_in(&story, "ctx-7", "deploy_two");
    story.tick().await;
    settle(&story, 3).await;
    let second = of_tool(&story, "C0MOVED", "deploy_two");
    assert_eq!(second.thread_ts.as_deref(), Some(root.ts.as_str()));
    let first = of_tool(&story, "C0MOVED", "deploy_one");
    story.presses("U0DANA", &first, "Deny").await;
    story.deliver().await;
    settle(&story, 3).await;
    assert_eq!(story.recorded(&ask).len(), 1);
    assert!(story.reads(&first).contains("denied by"), "{}", story.reads(&first));
    story.service.bridge.check_pins("acme").await.unwrap();
    assert_eq!(story.alert_keys().await, Vec::<String>::new());
    story.end().await;
}

/// Slack case 37: the last card of an open interaction is deleted: once to the fallback and no alert; without a
/// fallback operators are told (slack-github-action 395).
#[rstest]
#[tokio::test]
async fn the_last_card_is_deleted(
    #[values(true, false)] fallback: bool,
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
) {
    let to = "to = [\"slack:acme:#releases\"]";
    let route = if fallback { format!("{to}\nfallback = [\"slack:acme:C0OPS\"]") } else { to.to_owned() };
    let story = routed(on, &route).await;
    let (ask, card) = story.asked("deploy_service").await;
    for round in 0..2 {
        story.slack.remove_message(RELEASES, &card.ts);
        let prompt = format!("Approve something else, {round}?");
        story.a2a.change(&ask.interaction_id, |ask| ask.prompt = Some(prompt));
        story.tick().await;
        settle(&story, 4).await;
    }
    assert_eq!(story.slack.cards(RELEASES).len(), 0, "not posted there again");
    assert_eq!(story.slack.cards(OPS).len(), usize::from(fallback));
    let alerts = story.alert_keys().await;
    assert_eq!(alerts.iter().filter(|key| key.starts_with("card:")).count(), usize::from(!fallback));
    story.a2a.end(&ask.task_id, State::Canceled, None);
    story.tick().await;
    settle(&story, 3).await;
    assert_eq!(story.alert_keys().await, Vec::<String>::new());
    story.end().await;
}

/// Alerts are told where operators want them: one message each, marked when it is over, a new one the next time.
#[rstest]
#[tokio::test]
async fn alerts_are_told(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let story = more(
        on,
        "[alerts]\nto = [\"slack:acme:C0OPS\", \"slack:acme:@U0KIM\"]",
        "to = [\"slack:acme:#releases\"]",
    )
    .await;
    let bridge = &story.service.bridge;
    let tell = async || {
        for _ in 0..3 {
            bridge.tell_alerts().await.unwrap();
            settle(&story, 2).await;
        }
    };
    bridge.alert("answers:prod", "prod refuses <!channel> our credentials").await;
    tell().await;
    bridge.alert("answers:prod", "prod refuses our credentials, again").await;
    tell().await;
    for channel in [OPS, KIMS] {
        let cards = story.slack.cards(channel);
        assert_eq!(cards.len(), 1, "{channel}: repeated occurrences are one message");
        let card = story.card(channel);
        assert!(story.reads(&card).contains("prod refuses"), "{}", story.reads(&card));
        assert_eq!(story.slack.live(channel, &card.ts), Vec::<String>::new());
    }
    bridge.all_clear("answers:prod").await;
    tell().await;
    assert!(story.reads(&story.card(OPS)).contains("over:"), "{}", story.reads(&story.card(OPS)));
    bridge.alert("answers:prod", "prod refuses our credentials").await;
    tell().await;
    assert_eq!(story.slack.cards(OPS).len(), 2);
    bridge.all_clear("answers:prod").await;
    tell().await;
    story.end().await;
}

/// An alert about the very place where alerts are told does not go round in a circle, and the other place hears
/// of it. A post whose answer is lost is not made again.
#[rstest]
#[tokio::test]
async fn the_alerts_own_place_is_closed(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let story = more(
        on,
        "[alerts]\nto = [\"slack:acme:C0OPS\", \"slack:acme:@U0KIM\"]",
        "to = [\"slack:acme:#releases\"]",
    )
    .await;
    let bridge = &story.service.bridge;
    let tell = async || {
        for _ in 0..5 {
            bridge.tell_alerts().await.unwrap();
            settle(&story, 2).await;
        }
    };
    story.slack.archive(OPS);
    bridge.alert("answers:prod", "prod refuses our credentials").await;
    tell().await;
    assert_eq!(story.slack.cards(OPS).len(), 0);
    assert_eq!(story.slack.cards(KIMS).len(), 2, "both alerts");
    let tries = story.slack.calls("chat.postMessage");
    assert_eq!(tries.iter().filter(|call| call.arguments["channel"] == OPS).count(), 1);
    story.slack.unarchive(OPS);
    story.slack.edit_channel(OPS, |channel| {
        channel.members.insert("U0BOT".into());
    });
    hears(&story, json!({"type": "member_joined_channel", "channel": OPS, "user": "U0BOT"})).await;
    settle(&story, 2).await;
    story.slack.faults().add(Rule::next("chat.postMessage", Fault::Lost { ms: 3000 }));
    tell().await;
    settle(&story, 60).await;
    tell().await;
    assert_eq!(story.slack.cards(OPS).len(), 1, "the one that still stands");
    assert_eq!(story.alert_keys().await, ["answers:prod"]);
    bridge.all_clear("answers:prod").await;
    tell().await;
    story.end().await;
}

fn nil() -> countersign::domain::ids::InteractionId {
    countersign::domain::ids::InteractionId(uuid::Uuid::nil())
}

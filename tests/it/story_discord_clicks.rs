//! People click on Discord, over the endpoint and over the gateway: stored, answered at once, decided once, told
//! privately, opened in the first response.

use crate::world::database::Backend;
use crate::world::story::{Clicks, DANA as DANA_SUBJECT, Story, Wants};
use countersign::sandbox::a2a::{Ask, Open, Opened, State};
use countersign::sandbox::discord::acme::{
    APP, DANA, DM_DANA, GUILD, KIM, NOA, OPS, OTHER_APP, RELEASES, SAM,
};
use countersign::sandbox::discord::{Delivery, Input, Manner, Message};
use countersign::sandbox::faults::{Fault, Rule};
use rstest::rstest;
use serde_json::{Value, json};
use std::sync::LazyLock;
use std::time::Duration;

pub(crate) static ONCE: LazyLock<Manner> = LazyLock::new(Manner::default);
static TWICE: LazyLock<Manner> = LazyLock::new(Manner::twice);
pub(crate) const CALLBACK: &str = "POST /interactions/{interaction}/{token}/callback";

/// Roles decide here, as in a community; Dana has another identity by configuration.
const COMMUNITY: &str = r#"
[[group]]
name = "release"
discord_roles = ["guild:2200000000000000002"]

[[group]]
name = "named"
subjects = ["dana@example.com"]

[[person]]
subject = "dana@example.com"
slack = ["acme:U0DANA"]
discord = ["3300000000000000001"]

[[route]]
when = { runtime = "prod", tool = "twice" }
to = ["discord:guild:4400000000000000001"]
approvers = ["release"]
approvals = 2

[[route]]
when = { runtime = "prod", tool = "asks_again" }
to = ["discord:guild:4400000000000000001"]
approvers = ["release"]
confirm = true

[[route]]
when = { runtime = "prod", tool = "with_reason" }
to = ["discord:guild:4400000000000000001"]
approvers = ["release"]
reason_on_deny = true

[[route]]
when = { runtime = "prod", tool = "direct" }
to = ["discord:guild:@3300000000000000001"]
approvers = ["named"]

[[route]]
when = { runtime = "prod", tool = "direct_by_role" }
to = ["discord:guild:@3300000000000000001"]
approvers = ["release"]

[[route]]
when = { runtime = "prod", tool = "both_chats" }
to = ["discord:guild:4400000000000000001", "slack:acme:#releases"]
approvers = ["named", "release"]

[[route]]
when = { runtime = "prod" }
to = ["discord:guild:4400000000000000001"]
fallback = ["discord:guild:4400000000000000002"]
approvers = ["release"]
"#;

const SUBJECT: &str = "subject = \"discord:{user_id}\"";

pub(crate) async fn begin(on: Backend, clicks: Clicks) -> Story {
    let wants = Wants {
        people_and_routes: COMMUNITY,
        discord: true,
        clicks,
        more_discord: SUBJECT,
        ..Wants::default()
    };
    Story::with(on, wants).await
}

/// An agent asks for a tool, and the card stands.
pub(crate) async fn asked(story: &Story, tool: &str) -> (Opened, Message) {
    asked_in(story, tool, RELEASES).await
}

pub(crate) async fn asked_in(story: &Story, tool: &str, channel: &str) -> (Opened, Message) {
    let opened = story.asks(tool);
    story.tick().await;
    let card = story.discord.cards(channel).pop().expect("a card");
    (opened, card)
}

pub(crate) async fn press(story: &Story, user: &str, card: &Message, control: &str) -> Delivery {
    let delivery = story.discord.press(user, &card.channel, &card.id, control).await.expect("pressed");
    assert!(delivery.acked(), "{delivery:#?}");
    delivery
}

/// Past the moment in which an answer is still on its way.
pub(crate) async fn settle(story: &Story) {
    story.deliver().await;
    tokio::time::sleep(Duration::from_millis(400)).await;
    story.pass(Duration::from_secs(2)).await;
}

pub(crate) fn reads(story: &Story, card: &Message) -> String {
    story.discord.reads(&card.channel, &card.id)
}

pub(crate) fn buttons(story: &Story, card: &Message) -> Vec<String> {
    story.discord.buttons(&card.channel, &card.id)
}

pub(crate) fn told(story: &Story, user: &str) -> String {
    story.discord.told(user).join("\n")
}

pub(crate) async fn until_alert(story: &Story, key: &str) {
    for _ in 0..500 {
        if story.alert_keys().await.iter().any(|known| known == key) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("no alert {key}: {:?}", story.alert_keys().await);
}

pub(crate) async fn until_taken(story: &Story) {
    for _ in 0..500 {
        if !story.clicks().await.is_empty() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("no click is stored");
}

/// Roles as approvers, and members who are who Discord says.
#[rstest]
#[tokio::test]
async fn discord_case_24_a_member_with_the_role_approves_as_their_account(
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
    #[values(Clicks::Endpoint, Clicks::Gateway)] clicks: Clicks,
) {
    let story = begin(on, clicks).await;
    let (opened, card) = asked(&story, "deploy").await;
    let delivery = press(&story, KIM, &card, "Approve").await;
    assert_eq!(delivery.answered, Some(6));
    assert!(delivery.took_ms < 1_000, "{}", delivery.took_ms);
    settle(&story).await;
    assert_eq!(story.recorded(&opened), [(format!("discord:{KIM}"), true)]);
    let reads = reads(&story, &card).to_lowercase();
    assert!(reads.contains("approved"), "{reads}");
    assert!(buttons(&story, &card).is_empty());
    story.end().await;
}

/// Discord case 24: the runtime takes its time; (netclaw 1030, OpenClaw 16262) the person sees no failure.
#[rstest]
#[tokio::test]
async fn discord_case_24_a_slow_runtime_delays_no_acknowledgement(
    #[values(Clicks::Endpoint, Clicks::Gateway)] clicks: Clicks,
) {
    let story = begin(Backend::Sqlite, clicks).await;
    let (opened, card) = asked(&story, "deploy").await;
    story.a2a.faults().add(Rule::next("SendMessage", Fault::Delay { ms: 1_500 }));
    let working = async {
        for _ in 0..40 {
            story.deliver().await;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let (delivery, ()) = futures_util::future::join(press(&story, KIM, &card, "Approve"), working).await;
    assert!(delivery.took_ms < 1_000, "{}", delivery.took_ms);
    settle(&story).await;
    assert_eq!(story.recorded(&opened).len(), 1);
    assert!(story.discord.warnings().is_empty(), "{:?}", story.discord.warnings());
    story.end().await;
}

#[rstest]
#[tokio::test]
async fn discord_case_27_the_same_click_twice_is_one(
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
    #[values(Clicks::Endpoint, Clicks::Gateway)] clicks: Clicks,
) {
    let story = begin(on, clicks).await;
    let (opened, card) = asked(&story, "deploy").await;
    let press = story.discord.press_raw(KIM, &card.channel, &card.id, "Approve", &TWICE, |_| {});
    let deliveries = press.await.unwrap();
    assert!(deliveries.iter().all(Delivery::acked), "{deliveries:#?}");
    settle(&story).await;
    assert_eq!(story.recorded(&opened).len(), 1);
    let clicks = story.clicks().await;
    assert_eq!(clicks.values().sum::<i64>(), 1, "{clicks:?}");
    assert_eq!(told(&story, KIM), "", "no second visible reply");
    story.end().await;
}

#[rstest]
#[tokio::test]
async fn discord_case_28_and_29_and_30_of_several_clicks_one_counts(
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
    #[values(Clicks::Endpoint, Clicks::Gateway)] clicks: Clicks,
) {
    let story = begin(on, clicks).await;
    let (opened, card) = asked(&story, "deploy").await;
    press(&story, KIM, &card, "Approve").await;
    press(&story, KIM, &card, "Approve").await;
    press(&story, DANA, &card, "Deny").await;
    settle(&story).await;
    let recorded = story.recorded(&opened);
    assert_eq!(recorded.len(), 1, "{recorded:?}");
    let answers = story.clicks().await;
    assert_eq!(answers.get("refused"), Some(&2), "{answers:?}");
    let second = told(&story, if recorded[0].1 { DANA } else { KIM }).to_lowercase();
    assert!(second.contains("already") || second.contains("nothing was sent"), "{second}");
    story.end().await;
}

#[rstest]
#[tokio::test]
async fn discord_case_32_what_ended_elsewhere_is_said_and_shown(
    #[values(Clicks::Endpoint, Clicks::Gateway)] clicks: Clicks,
) {
    let story = begin(Backend::Sqlite, clicks).await;
    let (opened, card) = asked(&story, "deploy").await;
    assert!(story.a2a.end(&opened.task_id, State::Canceled, None));
    story.watch().await;
    // Its edit is still pending.
    press(&story, KIM, &card, "Approve").await;
    settle(&story).await;
    assert!(told(&story, KIM).to_lowercase().contains("canceled"), "{}", told(&story, KIM));
    assert!(buttons(&story, &card).is_empty());
    assert!(story.recorded(&opened).is_empty());
    story.end().await;
}

#[rstest]
#[tokio::test]
async fn discord_case_31_a_click_before_the_post_was_answered_tells_where_the_card_is(
    #[values(Clicks::Endpoint, Clicks::Gateway)] clicks: Clicks,
) {
    let story = begin(Backend::Sqlite, clicks).await;
    story.discord.faults().add(Rule::next("POST /channels/{channel}/messages", Fault::CutAnswer));
    let (opened, card) = asked(&story, "deploy").await;
    press(&story, KIM, &card, "Approve").await;
    settle(&story).await;
    story.pass(Duration::from_mins(1)).await;
    assert_eq!(story.recorded(&opened).len(), 1);
    assert_eq!(story.discord.cards(RELEASES).len(), 1);
    assert!(buttons(&story, &card).is_empty());
    story.end().await;
}

/// Discord case 37, and 38's first half: without a link, and without the right.
#[rstest]
#[tokio::test]
async fn discord_case_37_and_38_refused_privately_and_audited(
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
    #[values(Clicks::Endpoint, Clicks::Gateway)] clicks: Clicks,
) {
    let wants = Wants { people_and_routes: COMMUNITY, discord: true, clicks, ..Wants::default() };
    let story = Story::with(on, wants).await;
    let (opened, card) = asked(&story, "deploy").await;
    let before = reads(&story, &card);
    press(&story, KIM, &card, "Approve").await;
    settle(&story).await;
    assert!(told(&story, KIM).contains("link"), "{}", told(&story, KIM));
    assert_eq!(reads(&story, &card), before, "the card is untouched");
    assert!(story.recorded(&opened).is_empty());
    let audit = story.audit().await;
    let row = audit.iter().find(|row| row.event == "click").expect("audited");
    assert_eq!(row.rule.as_deref(), Some("link"));
    // Linked, and with the role, by configuration: it goes through.
    press(&story, DANA, &card, "Approve").await;
    settle(&story).await;
    assert_eq!(story.recorded(&opened), [(DANA_SUBJECT.to_owned(), true)]);
    story.end().await;
}

/// (AgentScope 2373) somebody without the role.
#[rstest]
#[tokio::test]
async fn discord_case_38_without_the_role_nothing_is_sent(
    #[values(Clicks::Endpoint, Clicks::Gateway)] clicks: Clicks,
) {
    let story = begin(Backend::Sqlite, clicks).await;
    let (opened, card) = asked(&story, "deploy").await;
    for user in [SAM, NOA] {
        press(&story, user, &card, "Approve").await;
    }
    settle(&story).await;
    for user in [SAM, NOA] {
        assert!(told(&story, user).contains("may not answer"), "{}", told(&story, user));
    }
    assert!(story.recorded(&opened).is_empty());
    assert!(!buttons(&story, &card).is_empty(), "it stays open for others");
    story.end().await;
}

/// A role is the server's: in direct messages it is asked for there; somebody known by name needs none.
#[rstest]
#[tokio::test]
async fn discord_case_38_in_direct_messages_roles_are_asked_for(
    #[values(Clicks::Endpoint, Clicks::Gateway)] clicks: Clicks,
) {
    let story = begin(Backend::Sqlite, clicks).await;
    let (by_name, card) = asked_in(&story, "direct", DM_DANA).await;
    press(&story, DANA, &card, "Approve").await;
    settle(&story).await;
    assert_eq!(story.recorded(&by_name), [(DANA_SUBJECT.to_owned(), true)]);
    let (by_role, card) = asked_in(&story, "direct_by_role", DM_DANA).await;
    story.discord.edit_member(GUILD, DANA, |member| member.roles.clear());
    // What was read before may be used for a while.
    story.pass(Duration::from_mins(6)).await;
    press(&story, DANA, &card, "Approve").await;
    settle(&story).await;
    assert!(story.recorded(&by_role).is_empty());
    assert!(story.discord.count("GET /guilds/{guild}/members/{user}") > 0);
    story.end().await;
}

#[rstest]
#[tokio::test]
async fn discord_case_39_from_elsewhere_nothing_is_taken(
    #[values(Clicks::Endpoint, Clicks::Gateway)] clicks: Clicks,
) {
    let story = begin(Backend::Sqlite, clicks).await;
    let (opened, card) = asked(&story, "deploy").await;
    let press = async |change: fn(&mut Value)| {
        let press = story.discord.press_raw(KIM, &card.channel, &card.id, "Approve", &ONCE, change);
        press.await.unwrap();
        settle(&story).await;
    };
    press(|payload| payload["channel_id"] = json!(OPS)).await;
    press(|payload| {
        payload["message"]["id"] = json!("1537033182107402299");
        payload["message"]["author"]["bot"] = json!(false);
    })
    .await;
    press(|payload| payload["member"]["user"]["bot"] = json!(true)).await;
    press(|payload| payload["context"] = json!(2)).await;
    press(|payload| payload["member"]["communication_disabled_until"] = json!("2030-01-01T00:00:00Z")).await;
    let refused = story.clicks().await.get("refused").copied();
    assert_eq!(refused, Some(5), "{:?}", story.clicks().await);
    let mut payload = story.discord.pressed(KIM, &card.channel, &card.id, "Approve").unwrap();
    payload["application_id"] = json!(OTHER_APP);
    story.discord.deliver_to(APP, &payload, &Manner::nowait()).await;
    until_alert(&story, "other_app:guild").await;
    assert!(story.recorded(&opened).is_empty());
    let refusals =
        story.audit().await.iter().filter(|row| row.decision.as_deref() == Some("refused")).count();
    assert_eq!(refusals, 6);
    story.end().await;
}

#[rstest]
#[case("c1.short.do")]
#[case("c2.p7Jx0vT3mQ9a.do")]
#[case("c1.p7Jx0vT3mQ9a")]
#[case("anything else")]
#[tokio::test]
async fn discord_case_40_a_control_of_nobody_is_said_to_be_unknown(#[case] mark: &'static str) {
    let story = begin(Backend::Sqlite, Clicks::Endpoint).await;
    let (opened, card) = asked(&story, "deploy").await;
    let press = story.discord.press_raw(KIM, &card.channel, &card.id, "Approve", &ONCE, |payload| {
        payload["data"]["custom_id"] = json!(mark);
        payload["message"]["author"]["bot"] = json!(false);
    });
    assert!(press.await.unwrap()[0].acked());
    settle(&story).await;
    assert!(!told(&story, KIM).is_empty());
    assert!(story.recorded(&opened).is_empty());
    story.end().await;
}

/// Discord case 41: a card two days old, after a restart; (Hermes Agent 30371) a control works as long as the
/// request is open.
#[rstest]
#[tokio::test]
async fn discord_case_41_an_old_card_works_after_a_restart(
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
    #[values(Clicks::Endpoint, Clicks::Gateway)] clicks: Clicks,
) {
    let mut story = begin(on, clicks).await;
    let (opened, card) = asked(&story, "deploy").await;
    story.advance(Duration::from_hours(48));
    story.restart().await;
    story.tick().await;
    press(&story, KIM, &card, "Approve").await;
    // The process dies between the acknowledgement and the decision: what Discord said of Kim is not lost.
    story.restart_with(|config| config.replace(&format!("guild_id = \"{GUILD}\""), "")).await;
    settle(&story).await;
    assert_eq!(story.recorded(&opened), [(format!("discord:{KIM}"), true)]);
    story.end().await;
}

#[rstest]
#[tokio::test]
async fn discord_case_43_a_reason_is_asked_for_at_once_and_kept(
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
    #[values(Clicks::Endpoint, Clicks::Gateway)] clicks: Clicks,
) {
    let story = begin(on, clicks).await;
    let (opened, card) = asked(&story, "deploy").await;
    let delivery = press(&story, KIM, &card, "Deny with reason…").await;
    assert_eq!(delivery.answered, Some(9));
    assert!(story.clicks().await.is_empty(), "opening decides nothing");
    let (field, _) = story.discord.modal_fields(KIM).remove(0);
    story.discord.fill(KIM, &field, &Input::text("over budget *today*")).unwrap();
    let submitted = story.discord.submit(KIM).await.unwrap();
    assert_eq!(submitted.answered, Some(6));
    settle(&story).await;
    assert_eq!(story.recorded(&opened), [(format!("discord:{KIM}"), false)]);
    assert!(reads(&story, &card).contains("over budget"), "{}", reads(&story, &card));
    story.end().await;
}

#[rstest]
#[tokio::test]
async fn discord_case_43_the_database_is_away_and_the_person_is_told(
    #[values(Clicks::Endpoint, Clicks::Gateway)] clicks: Clicks,
) {
    let story = begin(Backend::Sqlite, clicks).await;
    let (_opened, card) = asked(&story, "deploy").await;
    story.breaks_openings(true).await;
    let delivery = press(&story, KIM, &card, "Deny with reason…").await;
    assert_eq!(delivery.answered, Some(4));
    story.breaks_openings(false).await;
    assert!(told(&story, KIM).contains("again"), "{}", told(&story, KIM));
    story.end().await;
}

#[rstest]
#[tokio::test]
async fn discord_case_44_what_was_typed_comes_back_when_it_is_too_late(
    #[values(Clicks::Endpoint, Clicks::Gateway)] clicks: Clicks,
) {
    let story = begin(Backend::Sqlite, clicks).await;
    let (opened, card) = asked(&story, "deploy").await;
    press(&story, KIM, &card, "Deny with reason…").await;
    let (field, _) = story.discord.modal_fields(KIM).remove(0);
    story.discord.fill(KIM, &field, &Input::text("my long thoughts")).unwrap();
    // Meanwhile it ends; another person's abandoned form leaves nothing.
    press(&story, SAM, &card, "Deny with reason…").await;
    story.discord.close_modal(SAM).unwrap();
    press(&story, DANA, &card, "Approve").await;
    settle(&story).await;
    assert_eq!(story.recorded(&opened).len(), 1);
    let submitted = story.discord.submit(KIM).await.unwrap();
    assert!(submitted.acked());
    settle(&story).await;
    assert!(told(&story, KIM).contains("my long thoughts"), "{}", told(&story, KIM));
    assert_eq!(story.recorded(&opened).len(), 1);
    story.end().await;
}

#[rstest]
#[tokio::test]
async fn discord_case_45_what_cannot_be_read_is_kept_told_and_answered(
    #[values(Clicks::Endpoint, Clicks::Gateway)] clicks: Clicks,
) {
    let story = begin(Backend::Sqlite, clicks).await;
    let (opened, card) = asked(&story, "deploy").await;
    for change in [(|payload: &mut Value| payload["type"] = json!(42)) as fn(&mut Value), |payload| {
        payload["data"]["component_type"] = json!(99);
    }] {
        let press = story.discord.press_raw(KIM, &card.channel, &card.id, "Approve", &ONCE, change);
        let delivery = press.await.unwrap().remove(0);
        assert_eq!(delivery.answered, Some(4), "{delivery:#?}");
    }
    assert!(told(&story, KIM).contains("could not be read"), "{}", told(&story, KIM));
    assert!(story.alert_keys().await.iter().any(|key| key.starts_with("unreadable:discord")));
    // Bare payloads, and fields nobody knows.
    story.discord.switch(|switches| {
        switches.bare_payloads = true;
        switches.unknown_fields = true;
    });
    press(&story, KIM, &card, "Approve").await;
    settle(&story).await;
    assert_eq!(story.recorded(&opened).len(), 1);
    story.end().await;
}

/// The second question is asked by us; its button is the click.
#[rstest]
#[tokio::test]
async fn approve_asks_once_more_on_discord(#[values(Clicks::Endpoint, Clicks::Gateway)] clicks: Clicks) {
    let story = begin(Backend::Sqlite, clicks).await;
    let (opened, card) = asked(&story, "asks_again").await;
    let delivery = press(&story, KIM, &card, "Approve").await;
    assert_eq!(delivery.answered, Some(4));
    settle(&story).await;
    assert!(story.recorded(&opened).is_empty() && story.clicks().await.is_empty());
    let private = story.discord.ephemerals(KIM).pop().expect("a question");
    let button = story.discord.buttons(&private.channel, &private.id).remove(0);
    let confirmed = story.discord.press_ephemeral(KIM, &button).await.unwrap();
    assert!(confirmed.acked());
    settle(&story).await;
    assert_eq!(story.recorded(&opened), [(format!("discord:{KIM}"), true)]);
    story.end().await;
}

/// Discord case 23's second half: Approve works for who has opened everything, page by page.
#[rstest]
#[tokio::test]
async fn discord_case_23_approve_waits_for_the_last_page(
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
    #[values(Clicks::Endpoint, Clicks::Gateway)] clicks: Clicks,
) {
    let story = begin(on, clicks).await;
    let long = format!("{} and the danger is here", "a harmless line\n".repeat(700));
    let ask = Ask::approval("ci", "deploy").prompt(&long);
    let opened = story.a2a.open(Open::new(DANA_SUBJECT, ask));
    story.tick().await;
    let card = story.discord.cards(RELEASES).pop().expect("a card");
    press(&story, KIM, &card, "Approve").await;
    settle(&story).await;
    assert!(told(&story, KIM).contains("Show all"), "{}", told(&story, KIM));
    assert!(story.recorded(&opened).is_empty());
    let first = press(&story, KIM, &card, "Show all").await;
    assert_eq!(first.answered, Some(4));
    let mut turns = 0;
    let everything = loop {
        let page = story.discord.ephemerals(KIM).pop().expect("a page");
        let reads = story.discord.reads(&page.channel, &page.id);
        if reads.contains("the danger is here") {
            break true;
        }
        let turned = story.discord.press_ephemeral(KIM, "Next").await.unwrap();
        assert_eq!(turned.answered, Some(7), "{turned:#?}");
        turns += 1;
        assert!(turns < 10);
    };
    assert!(everything && turns > 0);
    settle(&story).await;
    press(&story, KIM, &card, "Approve").await;
    settle(&story).await;
    assert_eq!(story.recorded(&opened).len(), 1, "{}", told(&story, KIM));
    story.end().await;
}

/// Votes across both chats count together, and a click in one edits both.
#[rstest]
#[tokio::test]
async fn a_click_on_discord_edits_the_card_on_slack(
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
    #[values(Clicks::Endpoint, Clicks::Gateway)] clicks: Clicks,
) {
    let story = begin(on, clicks).await;
    let (opened, card) = asked(&story, "both_chats").await;
    let on_slack = story.card(crate::world::story::RELEASES);
    press(&story, KIM, &card, "Approve").await;
    settle(&story).await;
    assert_eq!(story.recorded(&opened).len(), 1);
    assert!(story.reads(&on_slack).contains("approved"));
    assert!(story.buttons(&on_slack).is_empty() && buttons(&story, &card).is_empty());
    story.end().await;
}

#[rstest]
#[tokio::test]
async fn two_members_vote_and_the_last_is_sent(#[values(Clicks::Endpoint, Clicks::Gateway)] clicks: Clicks) {
    let story = begin(Backend::Sqlite, clicks).await;
    let (opened, card) = asked(&story, "twice").await;
    press(&story, KIM, &card, "Approve").await;
    settle(&story).await;
    assert!(story.recorded(&opened).is_empty());
    press(&story, DANA, &card, "Approve").await;
    settle(&story).await;
    assert_eq!(story.recorded(&opened), [(DANA_SUBJECT.to_owned(), true)]);
    story.end().await;
}

/// A voter who has left the server since has no role any more: the vote does not count.
#[rstest]
#[tokio::test]
async fn a_vote_of_somebody_who_left_does_not_count() {
    let story = begin(Backend::Sqlite, Clicks::Endpoint).await;
    let (opened, card) = asked(&story, "twice").await;
    press(&story, KIM, &card, "Approve").await;
    settle(&story).await;
    story.discord.kick(GUILD, KIM);
    story.pass(Duration::from_mins(6)).await;
    press(&story, DANA, &card, "Approve").await;
    settle(&story).await;
    assert!(story.recorded(&opened).is_empty(), "one vote is left of two");
    story.end().await;
}

#[rstest]
#[tokio::test]
async fn commands_are_answered_in_their_place(
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
    #[values(Clicks::Endpoint, Clicks::Gateway)] clicks: Clicks,
) {
    let story = begin(on, clicks).await;
    asked(&story, "deploy").await;
    let open = story.discord.command(KIM, RELEASES, "countersign open").await.unwrap();
    assert_eq!(open.answered, Some(5));
    settle(&story).await;
    let listed = told(&story, KIM);
    assert!(listed.contains("deploy"), "{listed}");
    assert_eq!(story.discord.ephemerals(KIM).len(), 1, "the answer takes the place of what was announced");
    for (word, says) in [("unlink", "operators"), ("help", "open")] {
        let said = story.discord.command(SAM, RELEASES, &format!("countersign {word}")).await.unwrap();
        assert_eq!(said.answered, Some(4));
        assert!(story.discord.told(SAM).pop().unwrap().contains(says), "{word}");
    }
    story.end().await;
}

/// A community needs nothing but roles and the chat's own word; nobody becomes somebody configured.
#[rstest]
#[tokio::test]
async fn nobody_answers_as_a_configured_subject_by_the_chats_word() {
    let story = Story::with(
        Backend::Sqlite,
        Wants {
            people_and_routes: COMMUNITY,
            discord: true,
            clicks: Clicks::Endpoint,
            more_discord: SUBJECT,
            ..Wants::default()
        },
    )
    .await;
    let (opened, card) = asked(&story, "deploy").await;
    press(&story, DANA, &card, "Approve").await;
    settle(&story).await;
    assert_eq!(story.recorded(&opened), [(DANA_SUBJECT.to_owned(), true)], "the configured link wins");
    story.end().await;
}

//! What waits for whom: the command, the Home, and private notices that reach their person in the end.

use super::{begin, refuse, status, with};
use crate::world::database::Backend;
use crate::world::story::{OPS, RELEASES, Story, Wants};
use countersign::sandbox::faults::{Fault, Rule};
use countersign::sandbox::slack::{Delivery, Manner};
use countersign::store::jobs::JobKind;
use rstest::rstest;
use serde_json::{Value, json};
use std::time::Duration;

/// Two people who may answer different things.
const APART: &str = r#"
[[group]]
name = "release"
subjects = ["dana@example.com"]

[[group]]
name = "data"
subjects = ["kim@example.com"]

[[person]]
subject = "dana@example.com"
slack = ["acme:U0DANA"]

[[person]]
subject = "kim@example.com"
slack = ["acme:U0KIM"]

[[route]]
when = { runtime = "prod", tool = "deploy_*" }
to = ["slack:acme:#releases"]
approvers = ["release"]

[[route]]
when = { runtime = "prod", tool = "drop_*" }
to = ["slack:acme:C0OPS"]
approvers = ["data"]
"#;

async fn open(story: &Story, user: &str) -> Delivery {
    let answer = story.slack.command(user, RELEASES, "/countersign", "open").await.unwrap();
    assert!(answer.acked(), "{answer:?}");
    assert_eq!(answer.json()["response_type"], "ephemeral");
    answer
}

/// All text of a command's answer.
async fn lists(story: &Story, user: &str) -> String {
    super::texts(&open(story, user).await.json()).join("\n")
}

async fn opens_home(story: &Story, user: &str) {
    assert!(story.slack.open_home(user, "T0ACME").await.unwrap().acked());
    story.deliver().await;
}

/// What stands in a Home.
fn home(story: &Story, user: &str) -> String {
    super::texts(&story.slack.home(user).expect("a Home").view).join("\n")
}

fn publications(story: &Story) -> usize {
    story.slack.calls("views.publish").len()
}

/// Something changed and was noticed, and everything that is due was done.
async fn settles(story: &Story) {
    story.tick().await;
    story.service.bridge.refresh_homes().await.unwrap();
    story.deliver().await;
}

/// Slack case 57: what this person may answer, the oldest first, each with its link; addresses are asked for
/// once, and only when somebody looks.
#[rstest]
#[tokio::test]
async fn a_command_lists_what_waits(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let story = Story::with(on, Wants { people_and_routes: APART, ..Wants::default() }).await;
    for tool in ["deploy_first", "drop_table", "deploy_second"] {
        story.asks(tool);
        story.tick().await;
        story.pass(Duration::from_secs(2)).await;
    }
    assert_eq!(story.slack.calls("chat.getPermalink").len(), 0, "never a cost of posting");
    let listed = lists(&story, "U0DANA").await;
    let at = |text: &str| listed.find(text).unwrap_or_else(|| panic!("{text}: {listed}"));
    assert!(
        at("deploy_first") < at("deploy_second") && listed.contains("2 requests wait for you"),
        "{listed}"
    );
    assert!(!listed.contains("drop_table"), "{listed}");
    let answer = open(&story, "U0DANA").await.json();
    let links: Vec<&Value> = answer["blocks"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|block| block.pointer("/accessory/url"))
        .collect();
    assert_eq!(links.len(), 2);
    assert!(links.iter().all(|link| link.as_str().unwrap().contains("/archives/C0RELEASES/p")), "{links:?}");
    assert_eq!(story.slack.calls("chat.getPermalink").len(), 2, "once for each");
    let listed = lists(&story, "U0KIM").await;
    assert!(listed.contains("drop_table") && !listed.contains("deploy_"), "{listed}");
    // Pressing a link tells us too: acknowledged, nothing happens.
    story.presses("U0DANA", &story.card(RELEASES), "Approve").await;
    story.deliver().await;
    let listed = lists(&story, "U0DANA").await;
    assert!(listed.contains("1 request waits for you") && !listed.contains("deploy_second"), "{listed}");
    story.end().await;
}

/// Guests and strangers are told that they cannot answer, the unlinked how to link; nobody sees a request.
#[tokio::test]
async fn slack_case_57_who_cannot_answer_sees_nothing() {
    let story = begin().await;
    story.asked("deploy_service").await;
    for (user, word) in [("U0GUEST", "Guests cannot answer"), ("U0SAM", "Ask an operator to link")] {
        let listed = lists(&story, user).await;
        assert!(listed.contains(word) && !listed.contains("deploy_service"), "{user}: {listed}");
    }
    assert!(lists(&story, "U0SAM").await.contains("U0SAM"), "it names the account to be linked");
    let help = story.slack.command("U0SAM", RELEASES, "/countersign", "help").await.unwrap();
    assert!(help.body.contains("/countersign open"));
    let unlink = story.slack.command("U0DANA", RELEASES, "/countersign", "unlink").await.unwrap();
    assert!(unlink.body.contains("operators in the configuration"), "{}", unlink.body);
    story.end().await;
}

/// The same command delivered twice is answered once.
#[rstest]
#[tokio::test]
async fn slack_case_57_a_command_that_comes_twice(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let story = Story::begin(on).await;
    let answers = story
        .slack
        .command_raw("U0DANA", RELEASES, "/countersign", "open", &Manner::twice(), |_| {})
        .await
        .unwrap();
    assert!(answers.len() == 2 && answers.iter().all(Delivery::acked));
    assert_eq!(answers.iter().filter(|answer| answer.body.is_empty()).count(), 1, "{answers:#?}");
    assert_eq!(story.told("U0DANA").len(), 1);
    story.end().await;
}

/// Slack is slow: the person hears so at once, and gets the answer by the command's own address.
#[tokio::test]
async fn slack_case_57_a_slow_answer_follows() {
    let story = begin().await;
    story.asked("deploy_service").await;
    story.slack.faults().add(Rule::next("users.info", Fault::Delay { ms: 2500 }));
    let answer = open(&story, "U0DANA").await;
    assert!(answer.took_ms < 2500 && answer.body.contains("One moment"), "{answer:?}");
    story.deliver().await;
    assert_eq!(story.slack.calls("response_url").len(), 1);
    let told = story.told("U0DANA");
    assert!(told.len() == 2 && told.iter().any(|text| text.contains("deploy_service")), "{told:?}");
    story.end().await;
}

/// What somebody voted on waits for others only; more than twenty are counted.
#[tokio::test]
async fn slack_case_57_votes_and_many() {
    let story = begin().await;
    let (_, card) = story.asked("delete_everything").await;
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver().await;
    assert!(lists(&story, "U0DANA").await.contains("Nothing waits for you"));
    let listed = lists(&story, "U0KIM").await;
    assert!(listed.contains("delete_everything") && listed.contains("1 of 2"), "{listed}");
    for n in 0..24 {
        story.asks(&format!("deploy_{n:02}"));
    }
    story.asks("lonely");
    story.watch().await;
    let listed = lists(&story, "U0DANA").await;
    assert!(listed.contains("24 requests wait") && listed.contains("4 more are newer"), "{listed}");
    assert!(listed.contains("deploy_19") && !listed.contains("deploy_20"), "{listed}");
    assert!(!listed.contains("lonely"), "{listed}");
    story.pass(Duration::from_secs(40)).await;
    story.end().await;
}

/// Two people open their Homes: each sees only their own; a change is shown when ten seconds have passed.
#[rstest]
#[tokio::test]
async fn slack_case_56_everybody_sees_their_own(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let story = Story::with(on, Wants { people_and_routes: APART, ..Wants::default() }).await;
    story.asks("deploy_service");
    story.asks("drop_table");
    story.tick().await;
    for user in ["U0DANA", "U0KIM", "U0SAM"] {
        opens_home(&story, user).await;
    }
    let dana = home(&story, "U0DANA");
    assert!(dana.contains("deploy_service") && !dana.contains("drop_table"), "{dana}");
    let kim = home(&story, "U0KIM");
    assert!(kim.contains("drop_table") && !kim.contains("deploy_service"), "{kim}");
    assert!(home(&story, "U0SAM").contains("Ask an operator to link"));
    assert_eq!(publications(&story), 3);
    // Nothing new: nothing is published.
    settles(&story).await;
    story.pass(Duration::from_secs(15)).await;
    assert_eq!(publications(&story), 3);
    // Two changes within ten seconds: one publication, when they end, and only where something changed.
    opens_home(&story, "U0DANA").await;
    story.asks("deploy_second");
    settles(&story).await;
    assert_eq!(publications(&story), 4, "the first at once");
    story.asks("deploy_third");
    settles(&story).await;
    story.pass(Duration::from_secs(8)).await;
    assert_eq!(publications(&story), 4);
    story.pass(Duration::from_secs(3)).await;
    assert_eq!(publications(&story), 5);
    let dana = home(&story, "U0DANA");
    assert!(dana.contains("deploy_third") && dana.contains("3 requests wait"), "{dana}");
    story.end().await;
}

/// A day after it was opened a Home is left as it is; the Messages tab is no Home; a repeat has no effect.
#[tokio::test]
async fn slack_case_56_a_home_that_nobody_looks_at() {
    let story = begin().await;
    let messages =
        json!({"type": "app_home_opened", "user": "U0DANA", "channel": "D0DANA", "tab": "messages"});
    assert!(story.slack.event("T0ACME", &messages, None).await.unwrap().acked());
    story.deliver().await;
    assert_eq!(publications(&story), 0);
    // The retry of an event may be the first of it that comes.
    let opened = json!({"type": "app_home_opened", "user": "U0DANA", "channel": "D0DANA", "tab": "home"});
    assert!(story.slack.event("T0ACME", &opened, Some((1, "http_timeout"))).await.unwrap().acked());
    story.deliver().await;
    assert_eq!(publications(&story), 1);
    story.advance(Duration::from_hours(25));
    story.asks("deploy_service");
    settles(&story).await;
    story.pass(Duration::from_secs(15)).await;
    assert_eq!(publications(&story), 1);
    opens_home(&story, "U0DANA").await;
    assert!(home(&story, "U0DANA").contains("deploy_service"));
    story.end().await;
}

/// A newer Home stands already: ours is dropped. The Home is switched off: one alert, no more tries, until
/// somebody can open it again.
#[tokio::test]
async fn slack_case_56_conflicts_and_a_home_that_is_off() {
    let story = begin().await;
    story.slack.faults().add(Rule::next("views.publish", refuse("hash_conflict")));
    opens_home(&story, "U0DANA").await;
    assert_eq!(publications(&story), 1);
    assert!(story.jobs().await.is_empty(), "dropped");
    story.slack.switch(|switches| switches.home_tab = false);
    opens_home(&story, "U0DANA").await;
    assert_eq!(publications(&story), 2);
    assert_eq!(story.alert_keys().await, ["home:acme"]);
    story.asks("deploy_service");
    settles(&story).await;
    story.pass(Duration::from_secs(15)).await;
    assert_eq!(publications(&story), 2);
    story.slack.switch(|switches| switches.home_tab = true);
    opens_home(&story, "U0DANA").await;
    assert!(home(&story, "U0DANA").contains("deploy_service"));
    assert_eq!(story.alert_keys().await, [] as [String; 0]);
    story.end().await;
}

/// A view that Slack refuses is drawn plainer; what changes while the process is down is shown after it.
#[tokio::test]
async fn slack_case_56_a_refused_home_and_a_restart() {
    let mut story = begin().await;
    story.asked("deploy_service").await;
    story.slack.faults().add(Rule::next("views.publish", refuse("invalid_blocks")));
    opens_home(&story, "U0DANA").await;
    story.pass(Duration::from_secs(3)).await;
    assert_eq!(publications(&story), 2);
    assert!(home(&story, "U0DANA").contains("deploy_service"));
    story.asks("deploy_second");
    story.tick().await;
    story.restart().await;
    story.service.bridge.refresh_homes().await.unwrap();
    story.pass(Duration::from_secs(12)).await;
    assert!(home(&story, "U0DANA").contains("deploy_second"));
    story.end().await;
}

/// No way leads to the person: what they were to be told stands in the command's answer and in their Home, until
/// they have seen it.
#[rstest]
#[tokio::test]
async fn slack_case_48_a_notice_that_reaches_nobody_is_kept(
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
) {
    let story = Story::begin(on).await;
    let (_, card) = story.asked("deploy_service").await;
    story.slack.faults().add(Rule::next("response_url", status(404)));
    story.slack.faults().add(Rule::next("chat.postEphemeral", refuse("user_not_in_channel")));
    story.slack.switch(|switches| switches.messages_tab = false);
    story.presses("U0SAM", &card, "Approve").await;
    story.deliver().await;
    story.pass(Duration::from_secs(5)).await;
    assert_eq!(story.told("U0SAM"), [] as [String; 0]);
    assert!(story.jobs().await.is_empty());
    let told = "You could not be told this before";
    assert!(!lists(&story, "U0DANA").await.contains(told), "it is nobody else's");
    let listed = lists(&story, "U0SAM").await;
    assert!(listed.contains(told) && listed.contains("Nothing was sent"), "{listed}");
    opens_home(&story, "U0SAM").await;
    assert!(home(&story, "U0SAM").contains(told));
    story.advance(Duration::from_mins(11));
    assert!(!lists(&story, "U0SAM").await.contains(told), "seen");
    story.end().await;
}

/// The person left the channel, half an hour passed, the process started anew: the notice still comes, directly.
#[rstest]
#[case(true, Duration::ZERO, false)]
#[case(false, Duration::from_mins(31), false)]
#[case(true, Duration::from_mins(31), true)]
#[tokio::test]
async fn slack_case_48_when_an_ephemeral_is_impossible(
    #[case] leaves: bool,
    #[case] later: Duration,
    #[case] restart: bool,
) {
    let mut story = begin().await;
    let (_, card) = story.asked("deploy_service").await;
    story.slack.faults().add(Rule::next("response_url", status(404)));
    story.presses("U0SAM", &card, "Approve").await;
    story.deliver_only(&[JobKind::Decide]).await;
    if leaves {
        story.slack.edit_channel(RELEASES, |channel| {
            channel.members.remove("U0SAM");
        });
    }
    story.advance(later);
    if restart {
        story.restart().await;
    }
    story.deliver().await;
    story.pass(Duration::from_secs(3)).await;
    assert_eq!(story.slack.calls("conversations.open").len(), 1);
    let told = story.told("U0SAM");
    assert!(told.len() == 1 && told.iter().all(|text| text.contains("Nothing was sent")), "{told:?}");
    story.slack.faults().clear();
    story.end().await;
}

/// Slack case 58: pressing a link of ours tells us too, and does nothing.
#[tokio::test]
async fn a_pressed_link_does_nothing() {
    let story = begin().await;
    let (ask, _) = story.asked("deploy_service").await;
    opens_home(&story, "U0DANA").await;
    let view = story.slack.home("U0DANA").unwrap();
    let spot = countersign::sandbox::slack::Spot::View { id: view.id };
    let pressed = story.slack.press_raw("U0DANA", &spot, "Open", &Manner::default(), |_| {}).await.unwrap();
    assert!(pressed.iter().all(Delivery::acked));
    story.deliver().await;
    assert!(story.clicks().await.is_empty());
    assert_eq!(story.recorded(&ask), []);
    assert_eq!(story.slack.cards(OPS).len(), 0);
    story.end().await;
}

/// All who approved stand on the card in the end.
#[rstest]
#[tokio::test]
async fn every_approver_is_named_in_the_end(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let story = Story::begin(on).await;
    let (ask, card) = story.asked("delete_everything").await;
    for user in ["U0DANA", "U0KIM"] {
        story.presses(user, &card, "Approve").await;
        story.deliver().await;
    }
    story.pass(Duration::from_secs(3)).await;
    assert_eq!(story.recorded(&ask).len(), 1);
    let shown = story.reads(&card);
    assert!(shown.contains("approved by @dana lee and @kim ito"), "{shown}");
    story.end().await;
}

/// The runtime's own page stands on the card, with the task's ids; and who answered elsewhere, where that is told.
#[tokio::test]
async fn the_runtimes_page_is_on_the_card() {
    let url = "details_url = \"https://app.example/tasks/{taskId}?in={contextId}\"";
    let story = with(Wants { runtime: url, ..Wants::default() }).await;
    let (ask, card) = story.asked("deploy_service").await;
    let link =
        format!("<https://app.example/tasks/{}?in={}|Open in the runtime>", ask.task_id, ask.context_id);
    let escaped = link.replace('&', "&amp;");
    let shown = serde_json::to_string(&card.blocks).unwrap();
    assert!(shown.contains(&link) || shown.contains(&escaped), "{link}\n{shown}");
    story.end().await;
}

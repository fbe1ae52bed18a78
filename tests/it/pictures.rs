//! What people see most, as pictures at phone width: `target/screenshots/pictures-*.png`, to be looked at.
//!
//! The stories are told on a real service; a browser then looks at the stand-in's page as one person after the
//! other. The page says of itself what is too wide, cut or too small; the rest is for eyes.

use crate::world::database::Backend;
use crate::world::outside::browser;
use crate::world::story::{DANA, RELEASES, Story, Wants, serve};
use countersign::sandbox::a2a::{Ask, Open, Opened};
use countersign::sandbox::page::{self, Page};
use countersign::sandbox::slack::Message;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

const OFFICE: &str = r#"
[[group]]
name = "release"
subjects = ["dana@example.com", "kim@example.com"]

[[person]]
subject = "dana@example.com"
slack = ["acme:U0DANA"]

[[person]]
subject = "kim@example.com"
slack = ["acme:U0KIM"]

[[route]]
when = { runtime = "prod", tool = "delete_*" }
to = ["slack:acme:#releases"]
approvers = ["release"]
approvals = 2

[[route]]
when = { runtime = "prod", tool = "restart_*" }
to = ["slack:acme:C0PRIVATE"]
approvers = ["release"]

[[route]]
when = { runtime = "prod" }
to = ["slack:acme:#releases"]
mention = ["release"]
approvers = ["release", "owner"]
"#;

const MORE: &str = "[policy]\nmax_open_per_place = 8\n\n[alerts]\nto = [\"slack:acme:C0OPS\"]\n";

const HOSTILE: &str = "<!channel> <https://evil.test|Approve> *urgent* <b>now</b> & go to https://evil.test/x\n\
     Owner: nobody\u{202e}gnp.exe\u{200b} https://a-very-long-name-that-does-not-end-anywhere-near-the-edge.evil.test/with/a/path/that/goes/on/and/on";

impl Story {
    /// An agent of Dana's asks; it is seen and its card posted.
    async fn wants(&self, ask: Ask) -> (Opened, Message) {
        let opened = self.a2a.open(Open::new(DANA, ask));
        self.tick().await;
        self.pass(Duration::from_secs(2)).await;
        (opened, self.card(RELEASES))
    }

    async fn settles(&self) {
        self.pass(Duration::from_secs(4)).await;
        self.tick().await;
        self.pass(Duration::from_secs(4)).await;
    }
}

fn deploy(prompt: &str) -> Ask {
    Ask::approval("ci", "deploy_service").prompt(prompt)
}

fn look(name: &str, who: &str, place: &str, shows: &str) -> Value {
    json!({"name": format!("pictures-{name}"), "as": who, "place": place, "shows": shows})
}

fn with(mut look: Value, more: Value) -> Value {
    let Value::Object(more) = more else { return look };
    look.as_object_mut().unwrap().extend(more);
    look
}

/// Looks at each of these in the browser.
async fn pictures(story: &Story, looks: &[Value]) {
    let stop = CancellationToken::new();
    let _stops = stop.clone().drop_guard();
    let page = Arc::new(Page::over(Arc::clone(&story.slack), Arc::clone(&story.a2a), stop.clone()));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    #[expect(clippy::disallowed_methods, reason = "a page beside the test, aborted at its end")]
    let served = tokio::spawn(serve(listener, page::router(page)));
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/target/screenshots");
    let steps = Value::from(looks).to_string();
    let walk = tokio::task::spawn_blocking(move || {
        browser("pictures.mjs").args([&url, folder, &steps]).output().unwrap()
    });
    let output = walk.await.unwrap();
    served.abort();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("pictures taken"), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
}

/// Slack: the messages and forms people meet most.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_people_see_most() {
    let wants = Wants { people_and_routes: OFFICE, more: MORE, ..Wants::default() };
    let story = Story::with(Backend::Sqlite, wants).await;
    let mut looks = vec![];
    let bridge = &story.service.bridge;

    // Ended ones first: they stand above.
    let (_, card) = story.wants(deploy("Deploy web 2.4.0 to all servers?").reason("Planned release")).await;
    story.presses("U0DANA", &card, "Approve").await;
    story.settles().await;
    looks.push(look("approved", "Kim Ito", "releases", "Deploy web 2.4.0"));

    let (_, card) = story.wants(deploy("Deploy web 2.4.1 to all servers?").reason("Hotfix")).await;
    let form = story.opens("U0KIM", &card, "Deny with reason…").await;
    story.submits("U0KIM", &form, "Not on a Friday evening.\nAsk again on Monday, with *tests*.").await;
    story.settles().await;
    looks.push(look("denied", "Dana Lee", "releases", "Deploy web 2.4.1"));

    let (ask, _) = story.wants(deploy("Deploy web 2.4.2 to all servers?")).await;
    assert!(story.a2a.end(&ask.task_id, countersign::sandbox::a2a::State::Canceled, None));
    story.settles().await;
    looks.push(look("canceled", "Dana Lee", "releases", "Deploy web 2.4.2"));

    let wipe = Ask::approval("warehouse", "delete_backups")
        .prompt("Delete the database backups that are older than 90 days (412 GB)?")
        .reason("The backup disk is 93 % full");
    let (_, card) = story.wants(wipe.clone()).await;
    story.presses("U0DANA", &card, "Approve").await;
    story.presses("U0KIM", &card, "Approve").await;
    story.settles().await;
    looks.push(look("approved-by-two", "Dana Lee", "releases", "@Dana Lee and @Kim Ito"));

    bridge.pause("prod").await.unwrap();
    let (_, card) = story.wants(deploy("Deploy web 2.4.3 to all servers?")).await;
    story.presses("U0DANA", &card, "Approve").await;
    story.settles().await;
    looks.push(look("paused", "Kim Ito", "releases", "Deploy web 2.4.3"));

    // Open ones.
    let canary = "Deploy web 2.5.0 to the canary servers?\n\
         All 1,284 tests passed; staging has been healthy for 30 minutes.";
    let (_, card) = story.wants(deploy(canary).reason("Planned release")).await;
    looks.push(look("asked", "Kim Ito", "releases", "Deploy web 2.5.0"));
    story.presses("U0SAM", &card, "Approve").await;
    story.presses("U0GUEST", &card, "Approve").await;
    story.settles().await;
    looks.push(look("refused", "Sam Ortiz", "releases", "Only visible to you"));
    looks.push(look("refused-guest", "Gia Guest", "releases", "Only visible to you"));
    let asked = card;

    let (_, card) = story.wants(wipe).await;
    story.presses("U0DANA", &card, "Approve").await;
    story.settles().await;
    looks.push(look("one-of-two", "Kim Ito", "releases", "1 of 2:"));

    let (_, _) = story.wants(deploy(HOSTILE).reason("<!here> *see* https://evil.test")).await;
    looks.push(look("hostile", "Dana Lee", "releases", "gnp"));

    let lines = "Migration 0042 adds an index to orders (1,284,000 rows) and is done online.\n".repeat(600);
    let (_, card) = story.wants(deploy(&format!("Run these migrations?\n\n{lines}"))).await;
    looks.push(look("cut", "Kim Ito", "releases", "Run these migrations?"));
    let long = card;

    // A crowd in a small channel, what waits for Dana, and what operators are told.
    for n in 1..=10 {
        story.wants(Ask::approval("ci", &format!("restart_service_{n}"))).await;
    }
    story.settles().await;
    looks.push(look("more-wait", "Dana Lee", "leads", "more requests wait"));
    bridge
        .alert("place:slack:acme:#archive", "slack:acme:#archive (C0ARCHIVED) takes no card: is_archived")
        .await;
    for _ in 0..3 {
        bridge.tell_alerts().await.unwrap();
        story.settles().await;
    }
    bridge.all_clear("place:slack:acme:#archive").await;
    bridge.tell_alerts().await.unwrap();
    story.settles().await;
    looks.push(look("alert", "Kim Ito", "ops", "Answers are paused"));
    looks.push(look("alert-over", "Kim Ito", "ops", "Over:"));
    story.slack.open_home("U0KIM", "T0ACME").await.unwrap();
    story.settles().await;
    looks.push(look("home", "Kim Ito", "App Home", "wait for you"));
    story.slack.open_home("U0SAM", "T0ACME").await.unwrap();
    story.settles().await;
    looks.push(look("home-unlinked", "Sam Ortiz", "App Home", "Countersign"));
    story.slack.command("U0KIM", RELEASES, "/countersign", "open").await.unwrap();
    looks.push(look("open", "Kim Ito", "releases", "wait for you"));

    pictures(&story, &looks).await;

    // What is in front of a person covers the rest, so it comes last.
    story.opens("U0DANA", &asked, "Deny with reason…").await;
    story.opens("U0KIM", &long, "Show all").await;
    let front = |name: &str, who: &str, shows: &str, more: Value| {
        with(with(look(name, who, "releases", shows), json!({"within": "dialog"})), more)
    };
    let blank = json!({"typed": "   ", "says": "Write a reason"});
    let looks = [
        front("deny", "Dana Lee", "You are about to deny", json!({})),
        front("deny-error", "Dana Lee", "You are about to deny", blank),
        front("show-all", "Kim Ito", "The whole request", json!({})),
    ];
    pictures(&story, &looks).await;
}

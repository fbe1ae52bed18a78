//! Slack by other hands: an app made with `@slack/bolt` takes our stand-in for Slack, and a Slack
//! that nobody here wrote takes what our client sends.

use crate::world::outside::{BoltApp, Emulate};
use crate::world::story::serve;
use countersign::bridge::ports::{ChatError, ChatPlatform, Marks, Person, PressedBy};
use countersign::chat::slack::{Slack, SlackSettings};
use countersign::cli::machine::{MachineClock, MachineIds};
use countersign::domain::card::{Asks, Card, Control, Mention, Status};
use countersign::domain::clock::{Clock, Millis};
use countersign::domain::form::{Fact, Form, Kind};
use countersign::domain::ids::CardId;
use countersign::domain::notice::Notice;
use countersign::domain::place::{Destination, MessageRef, Target};
use countersign::domain::policy::Standing;
use countersign::net;
use countersign::pace::Pace;
use countersign::render::Templates;
use countersign::sandbox::slack::{Doors, Input, Order, SlackWorld, Spot, acme};
use countersign::sandbox::time::Time;
use rstest::rstest;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;

const SOON: Duration = Duration::from_secs(20);
const OPS: &str = "C0OPS";

/// The stand-in on loopback, by the machine's clock: Bolt checks signatures by its own.
async fn stand_in() -> (Arc<SlackWorld>, String) {
    net::init();
    let world = SlackWorld::acme(Time::System);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let root = format!("http://{}", listener.local_addr().unwrap());
    world.set_base_url(&root);
    let router = countersign::sandbox::slack::router(Arc::clone(&world));
    #[expect(clippy::disallowed_methods, reason = "a server beside the test, gone with its runtime")]
    tokio::spawn(serve(listener, router));
    (world, root)
}

#[rstest]
#[case::over_http("http")]
#[case::over_sockets("socket")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bolt_app_takes_the_stand_in_for_slack(#[case] mode: &str) {
    let (world, root) = stand_in().await;
    let sockets = mode == "socket";
    world.switch(|switches| switches.socket_mode = sockets);
    let mut app = BoltApp::start(&format!("{root}/slack/api"), mode, OPS);
    if !sockets {
        let door = Some(format!("http://127.0.0.1:{}/slack/events", app.port));
        world.set_doors(Doors { interactivity: door.clone(), commands: door.clone(), events: door });
    }
    let card = world.cards(OPS).pop().unwrap();
    assert_eq!(world.reads(OPS, &card.ts), "Deploy R&D <eu>?\n[Deny…]");

    // A press opens a modal; a submission it does not like comes back; the next one edits the card.
    let pressed = world.press("U0DANA", OPS, &card.ts, "Deny…").await.unwrap();
    assert!(pressed.acked(), "{pressed:?}");
    let modal = world.until("the modal", SOON, |world| world.modals("U0DANA").pop()).await.unwrap();
    assert_eq!(modal.view["title"]["text"], "Why not?");
    let field = Spot::View { id: modal.id.clone() };
    let say = async |text: &str| {
        let typed = Input::Text { text: text.into() };
        assert!(world.fill("U0DANA", &field, "Reason", &typed).await.unwrap().is_none());
        let submitted = world.submit("U0DANA", &modal.id).await.unwrap();
        assert!(submitted.acked(), "{submitted:?}");
    };
    say("no").await;
    assert_eq!(world.modals("U0DANA")[0].errors["why"], "Say a little more.");
    say("not on a Friday").await;
    assert!(world.modals("U0DANA").is_empty());
    let reads =
        |world: &SlackWorld| Some(world.reads(OPS, &card.ts)).filter(|text| text.starts_with("Denied"));
    assert_eq!(world.until("the edit", SOON, reads).await.unwrap(), "Denied: not on a Friday");
    assert_eq!(world.notice(OPS, &card.ts), "Denied by @Dana Lee");

    // A command is answered in the acknowledgement, and once more later.
    assert!(world.command("U0KIM", OPS, "/bolt", "open <b>").await.unwrap().acked());
    let both = |world: &SlackWorld| Some(world.told("U0KIM")).filter(|told| told.len() == 2);
    let mut told = world.until("both answers", SOON, both).await.unwrap();
    told.sort();
    assert_eq!(told, ["And later this.", "You said open <b>"]);

    // App Home, and a button in it.
    assert!(world.open_home("U0KIM", acme::TEAM).await.unwrap().acked());
    let shows = |text: &'static str| {
        move |world: &SlackWorld| {
            world.home("U0KIM").filter(|home| home.view["blocks"][0]["text"]["text"] == text)
        }
    };
    let home = world.until("the home", SOON, shows("Nothing is open.")).await.unwrap();
    let again = world.press_raw("U0KIM", &Spot::View { id: home.id }, "Again", &<_>::default(), |_| {}).await;
    assert!(again.unwrap()[0].acked());
    world.until("the other home", SOON, shows("Still nothing.")).await.unwrap();

    if sockets {
        // Slack wants the socket back: the app opens another one and goes on.
        let refresh = Order::Disconnect { reason: "refresh_requested".into(), close_after_ms: Some(2_000) };
        assert_eq!(world.socket(None, &refresh), 1);
        let other = |world: &SlackWorld| (world.open_sockets() == [2]).then_some(());
        world.until("the other socket", SOON, other).await.unwrap();
        assert!(world.command("U0KIM", OPS, "/bolt", "again").await.unwrap().acked());
        let acked = world.envelopes().iter().filter(|envelope| envelope.acked()).count();
        assert_eq!(acked, world.envelopes().len());
        // Broken without a word, it comes back as well.
        world.socket(None, &Order::Drop);
        let third = |world: &SlackWorld| (world.open_sockets() == [3]).then_some(());
        world.until("a third socket", SOON, third).await.unwrap();
    }

    let steps = [
        "posted true",
        "press by U0DANA",
        "opened true",
        "reason not on a Friday",
        "updated true",
        "command open <b>",
        "home true",
        "home again true",
    ];
    // What it says of a call it says after the call, which we may have seen before.
    let seen = tokio::task::spawn_blocking(move || {
        let end = std::time::Instant::now() + SOON;
        loop {
            let seen = app.seen();
            if steps.iter().all(|step| seen.iter().any(|line| line == step))
                || std::time::Instant::now() > end
            {
                return seen;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    let seen = seen.await.unwrap();
    println!("Bolt over {mode}: {seen:#?}");
    for step in steps {
        assert!(seen.iter().any(|line| line == step), "{step}: {seen:#?}");
    }
    assert!(!seen.iter().any(|line| line.starts_with("error")), "{seen:#?}");
    let mut complaints = world.complaints();
    complaints.retain(|line| !line.contains("has no blocks"));
    assert_eq!(complaints, Vec::<String>::new());
    assert!(world.warnings().is_empty(), "{:?}", world.warnings());
}

/// Our client for a Slack at this address.
fn client(api: &str, token: &str) -> Slack {
    let clock = Arc::new(MachineClock);
    let settings = SlackSettings {
        name: "acme".into(),
        bot_token: token.into(),
        app_id: Some("A0COUNTER".into()),
        api_url: api.into(),
    };
    let templates = Arc::new(Templates::load("en", None).unwrap());
    let pace = Pace::new(clock.clone(), Arc::new(MachineIds::default()), 100.0);
    Slack::new(settings, net::client(net::Limits::default()).unwrap(), clock, templates, pace)
}

fn drawn(slack: &Slack, card: CardId, rev: i64, prompt: &str) -> countersign::bridge::ports::Drawn {
    let status = Status::Open { votes: vec![], needed: 1 };
    let controls = Card::controls_for(&Kind::Approval, &status, Asks::default());
    let shown = Card {
        form: Form {
            kind: Kind::Approval,
            title: "ci / deploy".into(),
            prompt: prompt.into(),
            facts: vec![Fact { label: "tool".into(), value: "deploy".into() }],
            questions: vec![],
            arguments_withheld: true,
        },
        agent: "Release agent".into(),
        runtime: "prod".into(),
        owner: None,
        approvers: vec!["release".into()],
        opened: MachineClock.now(),
        short_id: "deadbeef".into(),
        details_url: None,
        status,
        controls,
        gated: true,
        mention: Mention::default(),
    };
    let tokens = vec![(Control::Approve, format!("k_a{rev}")), (Control::Deny, format!("k_d{rev}"))];
    slack.draw(&shown, &Marks { card, rev, tokens })
}

/// Posting, editing, finding, telling, deleting and reading people, against a Slack that nobody here wrote.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_client_takes_the_slack_of_emulate() {
    net::init();
    let emulate = Emulate::start();
    let http = net::client(net::Limits::default()).unwrap();
    let ask = async |method: &str, fields: &[(&str, &str)]| -> Value {
        let call =
            http.post(format!("{}/{method}", emulate.api)).bearer_auth("xoxb-countersign").form(fields);
        call.send().await.unwrap().json().await.unwrap()
    };
    let slack = client(&emulate.api, "xoxb-countersign");
    let identity = slack.identify().await.unwrap();
    assert_eq!((identity.team.as_deref(), identity.app_id.as_str()), (Some("T000000001"), "A0COUNTER"));
    let ops = slack.resolve(&Target::SlackName("ops".into())).await.unwrap();
    assert!(ops.starts_with('C'), "{ops}");

    let to = Destination { channel: ops.clone(), thread: None };
    let (card, since) = (CardId(uuid::Uuid::from_u128(7)), Millis(MachineClock.now().0 - 60_000));
    assert_eq!(slack.find(&to, card, since).await.unwrap(), []);
    let at = slack.post(&to, &drawn(&slack, card, 1, "Deploy R&D <eu>?"), card, 1).await.unwrap();
    assert_eq!(at.channel, ops);
    assert_eq!(slack.find(&to, card, since).await.unwrap(), std::slice::from_ref(&at));
    let reply_to = Destination { thread: Some(at.message.clone()), ..to.clone() };
    let reply = slack.post(&reply_to, &drawn(&slack, card, 1, "In the thread"), card, 1).await.unwrap();
    let in_thread = slack.find(&reply_to, card, since).await.unwrap();
    assert!(in_thread.contains(&reply), "{in_thread:?}");
    slack.edit(&at, &drawn(&slack, card, 2, "Deploy to us as well?")).await.unwrap();
    let history = ask("conversations.history", &[("channel", &ops), ("include_all_metadata", "true")]).await;
    let shown = history["messages"].as_array().unwrap().iter().find(|one| one["ts"] == at.message.as_str());
    let shown = shown.unwrap_or_else(|| panic!("{history}"));
    assert!(shown["blocks"].to_string().contains("Deploy to us as well?"), "{shown}");
    assert_eq!(shown["metadata"]["event_type"], "countersign_card", "{shown}");

    let people = ask("users.list", &[]).await;
    let dana = people["members"].as_array().unwrap().iter().find(|user| user["name"] == "dana").unwrap();
    let dana = dana["id"].as_str().unwrap().to_owned();
    let pressed = |user: &str| PressedBy { user: user.into(), home_team: Some("T000000001".into()) };
    let profile = slack.profile(&pressed(&dana)).await.unwrap();
    assert_eq!(profile.standing, Standing::Member);
    assert_eq!(profile.key.unwrap().user, dana);
    assert_eq!(slack.profile(&pressed("U0NOBODY")).await.unwrap().key, None);
    let person = Person { user: dana, channel: Some(ops.clone()), thread: None, reply: None, awaited: false };
    slack.tell(&person, &Notice::CouldNotCheck).await.unwrap();

    slack.delete(&reply).await.unwrap();
    let nowhere = MessageRef { channel: ops, message: "1.000001".into() };
    let gone = slack.edit(&nowhere, &drawn(&slack, card, 3, "x")).await;
    assert!(matches!(gone, Err(ChatError::Gone { .. })), "{gone:?}");
    let scopeless = client(&emulate.api, "xoxb-scopeless");
    scopeless.identify().await.unwrap();
    let refused = scopeless.profile(&pressed("U000000001")).await;
    assert!(
        matches!(&refused, Err(ChatError::Auth { code, needed }) if code == "missing_scope" && needed == "users:read"),
        "{refused:?}"
    );
}

//! Discord by other hands: an application made with `discord.js` takes our stand-in for Discord, npm's
//! `discord-interactions` verifies what it signs, and Discord's own published schemas judge bodies as it does.

use crate::world::outside::{DiscordApp, DiscordJudge, discord_accepts};
use crate::world::story::serve;
use countersign::net;
use countersign::sandbox::discord::acme::{APP, BOT, DANA, GUILD, KIM, OPS, SEED, TOKEN};
use countersign::sandbox::discord::{self, DiscordWorld, Input, Order, Way, signature, verify_key};
use countersign::sandbox::time::Time;
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::TcpListener;

const SOON: Duration = Duration::from_secs(20);

/// The stand-in on loopback, by the machine's clock.
async fn stand_in() -> (Arc<DiscordWorld>, String) {
    net::init();
    let world = DiscordWorld::acme(Time::System);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let root = format!("http://{}", listener.local_addr().unwrap());
    world.set_base_url(&root);
    let router = discord::router(Arc::clone(&world));
    #[expect(clippy::disallowed_methods, reason = "a server beside the test, gone with its runtime")]
    tokio::spawn(serve(listener, router));
    (world, root)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_discord_js_application_takes_the_stand_in_for_discord() {
    let (world, root) = stand_in().await;
    let api = format!("{root}/discord/api");
    let start = move || DiscordApp::start(&api, TOKEN, OPS);
    let mut app = tokio::task::spawn_blocking(start).await.unwrap();

    // It posted its card twice with one nonce, and it stands there once.
    let cards = world.cards(OPS);
    assert_eq!(cards.len(), 1);
    let card = cards[0].id.clone();
    let first =
        "Approval: Deploy R&D <eu>?\nDeploy\nWhere: eu\n[Approve] [Deny…]\nPick a plan ( Retry | Skip )";
    assert_eq!(world.reads(OPS, &card), first);

    // A choice, deferred and then told privately.
    let chosen = world.choose(KIM, OPS, &card, "Pick a plan", &["Skip"]).await.unwrap();
    assert_eq!((chosen.way, chosen.answered), (Way::Gateway, Some(6)));
    let told = |user: &'static str, text: &'static str| {
        move |world: &DiscordWorld| world.told(user).contains(&text.to_owned()).then_some(())
    };
    world.until("the choice", SOON, told(KIM, "You chose 1")).await.unwrap();

    // A command, answered later.
    assert_eq!(world.command(DANA, OPS, "/judge open").await.unwrap().answered, Some(5));
    world.until("the answer", SOON, told(DANA, "3 wait for you")).await.unwrap();

    // The connection breaks; it resumes and goes on.
    assert_eq!(world.gateway(Some(APP), &Order::Drop), 1);
    let resumed = |world: &DiscordWorld| world.connections().iter().any(|one| one.resumed).then_some(());
    world.until("a resume", SOON, resumed).await.unwrap();
    assert_eq!(world.gateway(Some(APP), &Order::Reconnect), 1);
    let twice = |world: &DiscordWorld| {
        let resumed = world.connections().iter().filter(|one| one.resumed).count();
        (resumed == 2 && !world.connected(APP).is_empty()).then_some(())
    };
    world.until("another resume", SOON, twice).await.unwrap();

    // A form, then the edit of the card and a private word.
    assert_eq!(world.press(DANA, OPS, &card, "Deny…").await.unwrap().answered, Some(9));
    assert_eq!(world.modal_reads(DANA).unwrap(), "Why not?\nReason: ____");
    assert!(world.submit(DANA).await.is_err(), "the reason is required");
    world.fill(DANA, "Reason", &Input::text("not on a Friday")).unwrap();
    assert_eq!(world.submit(DANA).await.unwrap().answered, Some(7));
    assert_eq!(world.reads(OPS, &card), "Denied: not on a Friday");
    world.until("the notice", SOON, told(DANA, "Recorded")).await.unwrap();

    // A press on a card edits it; a second first response is refused.
    let restored = cards[0].content.clone();
    let channel = format!("{root}/discord/api/v10/channels/{OPS}/messages/{card}");
    let body = json!({"content": restored.text, "components": restored.components, "allowed_mentions": {"parse": []}});
    let edited = net::client(net::Limits::default()).unwrap().patch(channel).json(&body);
    let edited = edited.header("Authorization", format!("Bot {TOKEN}"));
    let edited =
        edited.header("User-Agent", "DiscordBot (https://countersign.example, 0.1)").send().await.unwrap();
    assert_eq!(edited.status(), 200);
    assert_eq!(world.press(KIM, OPS, &card, "Approve").await.unwrap().answered, Some(7));
    assert_eq!(world.reads(OPS, &card), "Approved");

    let steps = [
        "posted once in ops".to_owned(),
        "chosen 1".into(),
        "command open by dana.l".into(),
        format!("form for {DANA}"),
        "reason not on a Friday".into(),
        format!("press by {KIM} with 2 roles"),
        "second answer 40060".into(),
        "resumed".into(),
    ];
    let wanted = steps.clone();
    let seen = tokio::task::spawn_blocking(move || {
        let end = Instant::now() + SOON;
        loop {
            let seen = app.seen();
            if wanted.iter().all(|step| seen.contains(step)) || Instant::now() > end {
                return seen;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    let seen = seen.await.unwrap();
    println!("discord.js: {seen:#?}");
    for step in &steps {
        assert!(seen.contains(step), "{step}: {seen:#?}");
    }
    assert!(!seen.iter().any(|line| line.starts_with("error")), "{seen:#?}");
    assert!(world.warnings().is_empty(), "{:?}", world.warnings());
    let first = &world.connections()[0];
    assert_eq!((first.app.as_deref(), first.bot_prefix), (Some(APP), Some(false)));
    assert!(world.sees(BOT, OPS) && world.app(APP).is_some_and(|app| app.endpoint.is_none()));
    discord_accepts(&world.payloads());
    assert_eq!(world.commands(APP, None)[0]["name"], "judge");
    assert!(world.guilds().iter().any(|guild| guild.id == GUILD));
}

#[test]
fn discord_interactions_verifies_what_the_stand_in_signs() {
    let mut judge = DiscordJudge::start();
    let key = verify_key(&SEED);
    let body = r#"{"id":"1","type":1,"name":"Jürgen *a+b%20c*"}"#;
    let signed = signature(&SEED, "1796000000", body.as_bytes());
    assert!(judge.verifies(body, &signed, "1796000000", &key));
    assert!(judge.verifies(body, &signed.to_uppercase(), "1796000000", &key));
    assert!(!judge.verifies(body, &signed, "1796000001", &key));
    assert!(!judge.verifies(&format!("{body} "), &signed, "1796000000", &key));
    assert!(!judge.verifies(body, &signed, "1796000000", &verify_key(&[1; 32])));
}

/// What the published schemas refuse, the stand-in refuses as well; what only they miss stands in its own tests.
#[tokio::test]
async fn the_stand_in_refuses_what_the_published_schemas_refuse() {
    let (world, root) = stand_in().await;
    world.pace(0);
    let mut judge = DiscordJudge::start();
    let http = net::client(net::Limits::default()).unwrap();
    let button = |more: serde_json::Value| {
        let mut button = json!({"type": 2, "style": 1, "label": "a", "custom_id": "a"});
        for (key, value) in more.as_object().unwrap() {
            button[key] = value.clone();
        }
        json!({"content": "x", "components": [{"type": 1, "components": [button]}]})
    };
    let bodies = [
        (json!({"content": "x"}), true),
        (button(json!({})), true),
        (json!({"content": "x".repeat(4_001)}), false),
        (button(json!({"emoji": {}})), false),
        (button(json!({"label": "x".repeat(81)})), false),
        (button(json!({"custom_id": "x".repeat(101)})), false),
        (json!({"content": "x", "embeds": [{"title": "x".repeat(257)}]}), false),
        (json!({"content": "x", "embeds": vec![json!({"title": "x"}); 11]}), false),
        (json!({"content": "x", "nonce": "n".repeat(26)}), false),
        (json!({"content": "x", "components": [{"type": 99}]}), false),
    ];
    for (body, good) in bodies {
        let problems = judge.problems("MessageCreateRequestSchema", &body);
        assert_eq!(problems.is_empty(), good, "{body}: {problems:?}");
        let sent = http.post(format!("{root}/discord/api/v10/channels/{OPS}/messages")).json(&body);
        let sent = sent.header("Authorization", format!("Bot {TOKEN}"));
        let sent =
            sent.header("User-Agent", "DiscordBot (https://countersign.example, 0.1)").send().await.unwrap();
        let status = sent.status().as_u16();
        assert_eq!(status, if good { 200 } else { 400 }, "{body}: {}", sent.text().await.unwrap());
    }
}

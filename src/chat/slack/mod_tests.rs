//! The whole platform against the strict stand-in.

use super::*;
use crate::domain::card::{Asks, Control, Mention, PersonRef, Status};
use crate::domain::form::{Fact, Form, Kind};
use crate::domain::ids::Ids;
use crate::domain::policy::{Standing, Unfit};
use crate::sandbox::faults::{Fault, Rule};
use crate::sandbox::slack::acme::{APP_ID, BOT_TOKEN, BOT_USER, ORG_TOKEN};
use crate::sandbox::slack::{SlackWorld, router};
use crate::sandbox::time::Time;
use serde_json::json;
use uuid::Uuid;

const START: i64 = 1_796_000_000_000;

#[derive(Debug)]
struct SharedTime(Time);

impl Clock for SharedTime {
    fn now(&self) -> Millis {
        Millis(self.0.now_ms())
    }
}

impl Ids for SharedTime {
    fn uuid(&self) -> Uuid {
        Uuid::nil()
    }
    fn random(&self) -> [u8; 16] {
        [0; 16]
    }
}

struct Scene {
    world: Arc<SlackWorld>,
    slack: Slack,
    time: Time,
    root: String,
}

/// Serves the world and runs a test with the platform of one install.
async fn with(token: &str, app_id: Option<&str>, test: impl AsyncFnOnce(&Scene)) {
    crate::net::init();
    let time = Time::manual(START);
    let world = SlackWorld::acme(time.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let root = format!("http://{}", listener.local_addr().unwrap());
    world.set_base_url(&root);
    let limits = crate::net::Limits { connect: Duration::from_secs(3), total: Duration::from_secs(2) };
    let clock = Arc::new(SharedTime(time.clone()));
    let slack = Slack::new(
        SlackSettings {
            name: "acme".into(),
            bot_token: token.into(),
            app_id: app_id.map(str::to_owned),
            api_url: format!("{root}/slack/api"),
        },
        crate::net::client(limits).unwrap(),
        clock.clone(),
        Arc::new(Templates::load("en", None).unwrap()),
        Pace::new(clock.clone(), clock, 1.0),
    );
    let scene = Scene { world: Arc::clone(&world), slack, time, root };
    tokio::select! {
        done = axum::serve(listener, router(world)).into_future() => panic!("{done:?}"),
        () = test(&scene) => {}
    }
}

impl Scene {
    fn drawn(&self, status: Status, rev: i64) -> Drawn {
        let controls = Card::controls_for(&Kind::Approval, &status, Asks::default());
        let card = Card {
            form: Form {
                kind: Kind::Approval,
                title: "ci / deploy".into(),
                prompt: "Deploy R&D <eu>? :fire:".into(),
                facts: vec![Fact { label: "tool".into(), value: "deploy".into() }],
                questions: vec![],
                arguments_withheld: true,
            },
            agent: "Release agent".into(),
            runtime: "prod".into(),
            owner: None,
            approvers: vec!["release".into()],
            opened: Millis(START),
            short_id: "deadbeef".into(),
            details_url: None,
            status,
            controls,
            gated: true,
            mention: Mention::default(),
        };
        let tokens = vec![(Control::Approve, format!("k_a{rev}")), (Control::Deny, format!("k_d{rev}"))];
        self.slack.draw(&card, &Marks { card: card_id(), rev, tokens })
    }

    fn open(&self) -> Drawn {
        self.drawn(Status::Open { votes: vec![], needed: 1 }, 1)
    }

    async fn post(&self) -> Result<MessageRef, ChatError> {
        self.slack.post(&ops(), &self.open(), card_id(), 1).await
    }

    fn fault(&self, method: &str, fault: Fault) {
        self.world.faults().add(Rule::next(method, fault));
    }

    fn refuse(&self, method: &str, error: &str) {
        self.fault(method, Fault::Refuse { error: error.into() });
    }
}

fn card_id() -> CardId {
    CardId(Uuid::from_u128(7))
}

fn ops() -> Destination {
    Destination { channel: "C0OPS".into(), thread: None }
}

fn pressed(user: &str, home: &str) -> PressedBy {
    PressedBy { user: user.into(), home_team: Some(home.into()) }
}

#[tokio::test]
async fn who_we_are() {
    with(BOT_TOKEN, None, async |scene| {
        let identity = scene.slack.identify().await.unwrap();
        assert_eq!((identity.app_id.as_str(), identity.bot_user.as_str()), (APP_ID, BOT_USER));
        assert_eq!((identity.team.as_deref(), identity.enterprise), (Some("T0ACME"), None));
        assert!(identity.can_search);
    })
    .await;
    with(ORG_TOKEN, Some("A0GIVEN"), async |scene| {
        let identity = scene.slack.identify().await.unwrap();
        assert_eq!((identity.app_id.as_str(), identity.team.clone()), ("A0GIVEN", None));
        assert_eq!(identity.realm(), "E0ORG");
        assert_eq!(scene.world.count("bots.info"), 0, "a given app id is not asked for");
    })
    .await;
    with("xoxb-nobody", None, async |scene| {
        assert!(matches!(scene.slack.identify().await, Err(ChatError::Auth { .. })));
    })
    .await;
}

#[tokio::test]
async fn slack_case_24_and_34_a_card_is_posted_edited_and_deleted() {
    with(BOT_TOKEN, None, async |scene| {
        let at = scene.post().await.unwrap();
        assert_eq!(at.channel, "C0OPS");
        let message = scene.world.message("C0OPS", &at.message).unwrap();
        let metadata = message.metadata.unwrap();
        assert_eq!(metadata["event_type"], "countersign_card");
        assert_eq!(metadata["event_payload"], json!({"card": card_id().to_string(), "rev": "1"}));
        assert_eq!(scene.world.buttons("C0OPS", &at.message), ["Approve", "Deny"]);
        let dana = PersonRef { subject: "dana".into(), mention: Some("U0DANA".into()) };
        let end = Status::Delivering { by: dana, decision: "approved".into(), accepted: false };
        scene.slack.edit(&at, &scene.drawn(end, 2)).await.unwrap();
        assert_eq!(scene.world.buttons("C0OPS", &at.message), Vec::<String>::new());
        assert!(scene.world.message("C0OPS", &at.message).unwrap().metadata.is_some(), "edits keep it");
        scene.slack.edit(&at, &scene.slack.draw_unknown()).await.unwrap();
        scene.slack.delete(&at).await.unwrap();
        assert!(matches!(scene.slack.delete(&at).await, Err(ChatError::Gone { .. })));
        let gone = scene.slack.edit(&at, &scene.open()).await;
        assert!(matches!(gone, Err(ChatError::Gone { .. })), "{gone:?}");
        for payload in scene.world.payloads() {
            assert!(payload.arguments["text"].as_str().is_some_and(|text| !text.is_empty()));
            assert!(!payload.arguments["blocks"].as_array().unwrap().is_empty());
            assert_eq!(payload.arguments["link_names"], false);
        }
    })
    .await;
}

#[tokio::test]
async fn slack_case_17_a_lost_post_is_found_in_channel_and_thread() {
    with(BOT_TOKEN, None, async |scene| {
        let root = scene.world.say("U0DANA", "C0OPS", "thread");
        for thread in [None, Some(root)] {
            let to = Destination { channel: "C0OPS".into(), thread };
            scene.time.advance(2000);
            let since = Millis(scene.time.now_ms());
            assert_eq!(scene.slack.find(&to, CardId(Uuid::from_u128(9)), since).await.unwrap(), vec![]);
            scene.fault("chat.postMessage", Fault::CutAnswer);
            let lost = scene.slack.post(&to, &scene.open(), card_id(), 1).await;
            assert!(matches!(lost, Err(ChatError::Unknown { .. })), "{lost:?}");
            for n in 0..40 {
                scene.world.say("U0KIM", "C0OPS", &format!("busy {n}"));
            }
            scene.time.advance(60_000);
            let found = scene.slack.find(&to, card_id(), since).await.unwrap();
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(
                scene
                    .world
                    .message("C0OPS", &found[0].message)
                    .is_some_and(|message| message.bot_id.is_some())
            );
            scene.time.advance(200_000);
        }
    })
    .await;
}

#[tokio::test]
async fn slack_case_18_without_history_nothing_is_found_and_it_says_so() {
    with(BOT_TOKEN, None, async |scene| {
        scene.slack.identify().await.unwrap();
        scene.world.scope(BOT_TOKEN, "channels:history", false);
        let since = Millis(START);
        let unreadable = scene.slack.find(&ops(), card_id(), since).await;
        assert!(matches!(unreadable, Err(ChatError::Unreadable { .. })), "{unreadable:?}");
        scene.world.scope(BOT_TOKEN, "groups:history", false);
        assert!(!scene.slack.identify().await.unwrap().can_search);
        let calls = scene.world.count("conversations.history");
        assert!(scene.slack.find(&ops(), card_id(), since).await.is_err());
        assert_eq!(scene.world.count("conversations.history"), calls, "not even asked");
    })
    .await;
}

#[tokio::test]
async fn slack_case_18_one_page_has_to_do_where_history_is_scarce() {
    with(BOT_TOKEN, None, async |scene| {
        scene.world.switch(|switches| switches.scarce_history = true);
        let at = scene.post().await.unwrap();
        for n in 0..10 {
            scene.world.say("U0KIM", "C0OPS", &format!("busy {n}"));
        }
        assert_eq!(scene.slack.find(&ops(), card_id(), Millis(START)).await.unwrap(), [at]);
        let paced = scene.slack.find(&ops(), card_id(), Millis(START)).await;
        assert!(matches!(paced, Err(ChatError::Paced { .. })), "{paced:?}");
    })
    .await;
}

#[tokio::test]
async fn slack_case_35_a_refused_drawing_is_followed_by_the_compact_one() {
    with(BOT_TOKEN, None, async |scene| {
        scene.refuse("chat.postMessage", "invalid_blocks");
        assert!(matches!(scene.post().await, Err(ChatError::Paced { .. })));
        scene.time.advance(2000);
        let at = scene.post().await.unwrap();
        let message = scene.world.message("C0OPS", &at.message).unwrap();
        assert!(message.blocks.iter().all(|block| block["type"] != "rich_text"));
        assert_eq!(scene.world.buttons("C0OPS", &at.message), ["Approve", "Deny"]);
        // The same on an edit; and a compact drawing that is refused too is an error, and not sent again.
        let end = scene.slack.draw_unknown();
        scene.refuse("chat.update", "msg_blocks_too_long");
        scene.refuse("chat.update", "msg_blocks_too_long");
        assert!(matches!(scene.slack.edit(&at, &end).await, Err(ChatError::Paced { .. })));
        assert!(matches!(scene.slack.edit(&at, &end).await, Err(ChatError::Payload { .. })));
        let calls = scene.world.count("chat.update");
        assert!(matches!(scene.slack.edit(&at, &end).await, Err(ChatError::Payload { .. })));
        assert_eq!(scene.world.count("chat.update"), calls);
    })
    .await;
}

#[tokio::test]
async fn refused_metadata_is_left_out_and_a_closed_thread_is_told() {
    with(BOT_TOKEN, None, async |scene| {
        scene.refuse("chat.postMessage", "metadata_too_large");
        assert!(matches!(scene.post().await, Err(ChatError::Paced { .. })));
        scene.time.advance(2000);
        let at = scene.post().await.unwrap();
        assert_eq!(scene.world.message("C0OPS", &at.message).unwrap().metadata, None);
        scene.time.advance(2000);
        let root = scene.world.say("U0DANA", "C0OPS", "thread");
        let to = Destination { channel: "C0OPS".into(), thread: Some(root) };
        scene.refuse("chat.postMessage", "restricted_action_thread_locked");
        let drawn = scene.open();
        let other = CardId(Uuid::from_u128(8));
        assert!(matches!(scene.slack.post(&to, &drawn, other, 1).await, Err(ChatError::Thread { .. })));
    })
    .await;
}

#[tokio::test]
async fn slack_case_36_a_look_says_whether_a_channel_takes_cards() {
    with(BOT_TOKEN, None, async |scene| {
        scene.slack.identify().await.unwrap();
        assert_eq!(scene.slack.look("C0OPS", "is_archived").await.unwrap(), Look::Well);
        assert_eq!(scene.slack.look("D0DANA", "messages_tab_disabled").await.unwrap(), Look::Unsure);
        for (channel, why) in [
            ("C0ARCHIVED", "is_archived"),
            ("C0NOBOT", "not_in_channel"),
            ("C0FROZEN", "is_frozen"),
            ("C0SECRET", "channel_not_found"),
        ] {
            scene.time.advance(2000);
            let seen = scene.slack.look(channel, "").await;
            assert!(matches!(&seen, Err(ChatError::Place { code }) if code == why), "{channel}: {seen:?}");
        }
        let dana = scene.slack.resolve(&Target::SlackUser("U0DANA".into())).await.unwrap();
        assert_eq!(dana, "D0DANA");
        let gone = scene.slack.resolve(&Target::SlackUser("U0GONE".into())).await;
        assert!(matches!(gone, Err(ChatError::Place { .. })), "{gone:?}");
    })
    .await;
}

#[tokio::test]
async fn slack_case_36_places_that_take_no_card() {
    with(BOT_TOKEN, None, async |scene| {
        for channel in ["C0ARCHIVED", "C0SECRET", "C0UNKNOWN"] {
            let to = Destination { channel: channel.into(), thread: None };
            let refused = scene.slack.post(&to, &scene.open(), card_id(), 1).await;
            assert!(matches!(refused, Err(ChatError::Place { .. })), "{channel}: {refused:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_right_is_taken_before_and_not_twice() {
    with(BOT_TOKEN, None, async |scene| {
        let post = Call::Post { channel: "C0OPS" };
        assert_eq!(scene.slack.reserve(&post), Ok(()));
        scene.post().await.unwrap();
        assert_eq!(scene.slack.reserve(&post), Err(Duration::from_secs(1)));
        scene.time.advance(1000);
        assert_eq!(scene.slack.reserve(&post), Ok(()));
        scene.fault("chat.update", Fault::Status { code: 429, retry_after: Some(30), body: None });
        let at = MessageRef { channel: "C0OPS".into(), message: "1.2".into() };
        let paced = scene.slack.edit(&at, &scene.open()).await;
        assert!(
            matches!(paced, Err(ChatError::Paced { after }) if after == Duration::from_secs(30)),
            "{paced:?}"
        );
        assert!(scene.slack.reserve(&Call::Edit { channel: "C1", last: false }).is_err());
        assert_eq!(scene.slack.reserve(&Call::Tell), Ok(()));
    })
    .await;
}

#[tokio::test]
async fn slack_case_48_a_notice_finds_its_way() {
    with(BOT_TOKEN, None, async |scene| {
        let notice = Notice::SelfApproval;
        let to = |reply: Option<String>, channel: Option<&str>| Person {
            user: "U0DANA".into(),
            channel: channel.map(str::to_owned),
            thread: None,
            reply: reply.map(Into::into),
            awaited: false,
        };
        // An address that is not Slack's is never called; the ephemeral message is used.
        scene.slack.tell(&to(Some("https://evil.test/x".into()), Some("C0OPS")), &notice).await.unwrap();
        assert_eq!(scene.world.count("chat.postEphemeral"), 1);
        // One that has expired, or never was, falls back too.
        let expired = format!("{}/slack/response/none", scene.root);
        scene.slack.tell(&to(Some(expired), Some("C0OPS")), &notice).await.unwrap();
        assert_eq!(scene.world.count("chat.postEphemeral"), 2);
        // Not in the channel: a direct message.
        scene.slack.tell(&to(None, Some("C0SINGLE")), &notice).await.unwrap();
        scene.refuse("chat.postEphemeral", "user_not_in_channel");
        scene.time.advance(2000);
        scene.slack.tell(&to(None, Some("C0OPS")), &notice).await.unwrap();
        scene.time.advance(2000);
        scene.slack.tell(&to(None, None), &notice).await.unwrap();
        assert!(scene.world.count("conversations.open") >= 2);
        let told = scene.world.told("U0DANA");
        assert!(
            told.len() >= 5 && told.iter().all(|text| text.contains("its owner may not answer")),
            "{told:?}"
        );
        // Messages tab off: it is an error, not a loop.
        scene.world.switch(|switches| switches.messages_tab = false);
        scene.time.advance(2000);
        assert!(scene.slack.tell(&to(None, None), &notice).await.is_err());
    })
    .await;
}

#[tokio::test]
async fn slack_case_48_only_slacks_own_hosts_are_called() {
    with(BOT_TOKEN, None, async |scene| {
        let hook = |address: &str| scene.slack.hook(address).is_some();
        for good in
            ["https://hooks.slack.com/actions/T/1/x", "https://hooks.slack-gov.com/x", "http://127.0.0.1:9/x"]
        {
            assert!(hook(good), "{good}");
        }
        for bad in [
            "http://hooks.slack.com/x",
            "https://hooks.slack.com:8443/x",
            "https://hooks.slack.com.evil.test/x",
            "https://evil.test/hooks.slack.com",
            "https://user@hooks.slack.com/x",
            "https://hooks.slack.com@evil.test/x",
            "file:///etc/passwd",
            "",
        ] {
            assert!(!hook(bad), "{bad}");
        }
    })
    .await;
    let clock = Arc::new(SharedTime(Time::manual(START)));
    let real = Slack::new(
        SlackSettings {
            name: "a".into(),
            bot_token: "x".into(),
            app_id: None,
            api_url: "https://slack.com/api".into(),
        },
        crate::net::client(crate::net::Limits::default()).unwrap(),
        clock.clone(),
        Arc::new(Templates::load("en", None).unwrap()),
        Pace::new(clock.clone(), clock, 1.0),
    );
    assert!(real.hook("http://127.0.0.1:9/x").is_none(), "loopback only beside a loopback Web API");
}

#[tokio::test]
async fn slack_case_50_to_53_accounts_of_the_standard_world() {
    with(BOT_TOKEN, None, async |scene| {
        let unfit = |what| Standing::Unfit(what);
        for (user, standing) in [
            ("U0DANA", Standing::Member),
            ("U0GUEST", unfit(Unfit::Guest)),
            ("U0SINGLE", unfit(Unfit::Guest)),
            ("U0ROBOT", unfit(Unfit::Bot)),
            ("U0FLOW", unfit(Unfit::Bot)),
            ("U0CONNECTOR", unfit(Unfit::Bot)),
            (BOT_USER, unfit(Unfit::Bot)),
            ("U0GONE", unfit(Unfit::Deactivated)),
            ("U0INVITED", unfit(Unfit::Invited)),
            ("U0NOSUCH", unfit(Unfit::Nobody)),
            ("", unfit(Unfit::Nobody)),
        ] {
            scene.time.advance(10_000);
            let profile = scene.slack.profile(&pressed(user, "T0ACME")).await.unwrap();
            assert_eq!(profile.standing, standing, "{user}");
        }
        let stranger = scene.slack.profile(&pressed("U0STRANGER", "T0ELSEWHERE")).await.unwrap();
        assert_eq!(stranger.standing, unfit(Unfit::Stranger));
        scene.fault("users.info", Fault::Html);
        let unknown = scene.slack.profile(&pressed("U0DANA", "T0ACME")).await.unwrap();
        assert_eq!(unknown, Profile::of(Standing::Unknown));
    })
    .await;
    with(ORG_TOKEN, None, async |scene| {
        let wim = scene.slack.profile(&pressed("W0WIM", "T0SOUTH")).await.unwrap();
        assert_eq!(wim.standing, Standing::Member);
        assert_eq!(wim.key.unwrap().to_string(), "slack:E0ORG:W0WIM");
    })
    .await;
}

#[tokio::test]
async fn slack_case_53_groups_are_read_or_said_unreadable() {
    with(BOT_TOKEN, None, async |scene| {
        let members = scene.slack.group("S0RELEASE").await.unwrap();
        assert_eq!(members, ["U0DANA", "U0KIM"]);
        let missing = scene.slack.group("S0NONE").await;
        assert!(matches!(missing, Err(ChatError::Unreadable { .. })), "{missing:?}");
        scene.world.scope(BOT_TOKEN, "usergroups:read", false);
        match scene.slack.group("S0RELEASE").await {
            Err(ChatError::Auth { needed, .. }) => assert_eq!(needed, "usergroups:read"),
            other => panic!("{other:?}"),
        }
    })
    .await;
    with(ORG_TOKEN, None, async |scene| {
        assert_eq!(scene.slack.group("T0NORTH/S0ORG").await.unwrap(), ["U0ORA", "W0WIM"]);
    })
    .await;
}

#[tokio::test]
async fn names_are_resolved_by_a_listing_that_survives_pacing() {
    with(BOT_TOKEN, None, async |scene| {
        let name = |name: &str| Target::SlackName(name.into());
        assert_eq!(scene.slack.resolve(&Target::SlackChannel("C1".into())).await.unwrap(), "C1");
        assert_eq!(scene.slack.resolve(&name("releases")).await.unwrap(), "C0RELEASES");
        let calls = scene.world.count("conversations.list");
        for unknown in ["nope", "old"] {
            let refused = scene.slack.resolve(&name(unknown)).await;
            assert!(matches!(refused, Err(ChatError::Place { .. })), "{unknown}: {refused:?}");
        }
        assert_eq!(scene.world.count("conversations.list"), calls, "a fresh listing answers further names");
        scene.time.advance(61_000);
        scene.fault("conversations.list", Fault::Status { code: 429, retry_after: Some(5), body: None });
        assert!(matches!(scene.slack.resolve(&name("ops")).await, Err(ChatError::Paced { .. })));
        scene.time.advance(6_000);
        assert_eq!(scene.slack.resolve(&name("ops")).await.unwrap(), "C0OPS");
    })
    .await;
}

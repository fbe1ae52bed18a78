//! Forms and whole texts: denying with a reason, reading everything before approving, being asked twice.

use crate::world::database::Backend;
use crate::world::story::{DANA, KIM, RELEASES, Story, Wants};
use countersign::domain::ids::{ChatUser, InteractionId, Platform, Subject};
use countersign::sandbox::a2a::{Ask, Elsewhere, Open, Opened};
use countersign::sandbox::faults::{Fault, Rule};
use countersign::sandbox::slack::{Delivery, Input, Manner, Message, Spot, View};
use rstest::rstest;
use serde_json::Value;
use std::time::{Duration, Instant};
use uuid::Uuid;

const WITHIN: Duration = Duration::from_secs(5);

/// `tool = "guarded"` asks once more and wants a reason.
const STRICT: &str = r#"
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
to = ["slack:acme:#releases"]
approvers = ["release"]
confirm = true
reason_on_deny = true
"#;

impl Story {
    /// A person presses a control that opens something; what opened.
    pub(crate) async fn opens(&self, user: &str, card: &Message, control: &str) -> View {
        let before = self.slack.modals(user).len();
        self.presses(user, card, control).await;
        let newest = |slack: &countersign::sandbox::slack::SlackWorld| {
            let modals = slack.modals(user);
            modals.last().filter(|_| modals.len() > before).cloned()
        };
        self.slack.until("a view", WITHIN, newest).await.unwrap()
    }

    /// A person turns a page.
    async fn turns(&self, user: &str, view: &View, control: &str) -> View {
        let spot = Spot::View { id: view.id.clone() };
        let pressed = self.slack.press_raw(user, &spot, control, &Manner::default(), |_| {}).await.unwrap();
        assert!(pressed.iter().all(Delivery::acked));
        let turned = |slack: &countersign::sandbox::slack::SlackWorld| {
            slack.view(&view.id).filter(|now| now.hash != view.hash)
        };
        self.slack.until("another page", WITHIN, turned).await.unwrap()
    }

    /// Waits until it is stored that a person has opened what is asked now to its end.
    async fn has_read_all(&self, user: &str) {
        let by = ChatUser { platform: Platform::Slack, realm: "T0ACME".into(), user: user.into() };
        let end = Instant::now() + WITHIN;
        loop {
            let by = by.clone();
            let seen = self.service.bridge.store.read(move |tx| {
                Box::pin(async move {
                    let all = tx.interactions_after(InteractionId(Uuid::nil()), false, 5).await?;
                    let Some(one) = all.first() else { return Ok(false) };
                    tx.has_seen_all(one.id, &one.machine.digest, &by).await
                })
            });
            if seen.await.unwrap() {
                return;
            }
            assert!(Instant::now() < end, "{user} has read to the end");
            tokio::task::yield_now().await;
        }
    }

    /// A person types a reason and submits the form.
    pub(crate) async fn submits(&self, user: &str, view: &View, reason: &str) -> Delivery {
        self.types(user, view, reason).await;
        let delivery = self.slack.submit(user, &view.id).await.unwrap();
        assert!(delivery.acked(), "{delivery:#?}");
        delivery
    }

    async fn types(&self, user: &str, view: &View, reason: &str) {
        let spot = Spot::View { id: view.id.clone() };
        self.slack.fill(user, &spot, "Reason", &Input::Text { text: reason.into() }).await.unwrap();
    }

    /// Somebody is told something privately, at once and without a click.
    async fn is_told(&self, user: &str, what: &str) -> String {
        let told = |slack: &countersign::sandbox::slack::SlackWorld| {
            slack.told(user).into_iter().find(|text| text.contains(what))
        };
        self.slack
            .until(what, WITHIN, told)
            .await
            .unwrap_or_else(|waited| panic!("{waited}: {:?}", self.told(user)))
    }

    /// An agent of Dana's asks with these words.
    async fn asked_at_length(&self, prompt: &str) -> (Opened, Message) {
        let opened = self.a2a.open(Open::new(DANA, Ask::approval("ci", "deploy_service").prompt(prompt)));
        self.tick().await;
        (opened, self.card(RELEASES))
    }

    async fn reasons(&self) -> Vec<(String, Option<String>)> {
        self.audit().await.into_iter().map(|row| (row.event, row.reason)).collect()
    }
}

fn text_of(view: &View) -> String {
    view.view["blocks"].to_string()
}

/// More than a card takes, less than two pages.
fn long() -> String {
    format!("BEGIN {} END", "word ".repeat(4000))
}

/// A denial with a reason: the form decides nothing until it is submitted; the reason stands on the card and
/// in the audit log exactly as it was typed. The runtime has no field for it.
#[rstest]
#[tokio::test]
async fn a_denial_with_a_reason(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let story = Story::begin(on).await;
    let (ask, card) = story.asked("deploy_service").await;
    let form = story.opens("U0KIM", &card, "Deny with reason…").await;
    assert_eq!(story.clicks().await.values().sum::<i64>(), 0, "opening is navigation");
    assert_eq!(story.buttons(&card), ["Approve", "Deny", "Deny with reason…"]);

    let typed = "  not on a Friday:\n<b>R&D</b> is away :fire: ";
    let answer = story.submits("U0KIM", &form, typed).await;
    assert_eq!(answer.body, "", "the form closes");
    assert!(story.slack.modals("U0KIM").is_empty());
    story.deliver().await;
    assert_eq!(story.recorded(&ask), [(KIM.to_owned(), false)]);
    let shown = story.reads(&card);
    assert!(
        shown.contains("denied") && shown.contains("reason: ") && shown.contains("not on a friday"),
        "{shown}"
    );
    assert!(story.buttons(&card).is_empty());
    let reason = Some(typed.to_owned());
    assert_eq!(
        story.reasons().await,
        [("click".to_owned(), reason.clone()), ("answer".to_owned(), reason), ("settled".to_owned(), None)]
    );
    assert!(!story.a2a.dump().to_string().contains("Friday"), "the runtime has no field for it");
    story.end().await;
}

/// Slack case 47: submitted twice (the same delivery, and another form of the same person): one answer.
#[rstest]
#[tokio::test]
async fn slack_case_47_submitted_twice(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let story = Story::begin(on).await;
    let (ask, card) = story.asked("deploy_service").await;
    let first = story.opens("U0KIM", &card, "Deny with reason…").await;
    let second = story.opens("U0KIM", &card, "Deny with reason…").await;
    assert_eq!(first.view["private_metadata"], second.view["private_metadata"], "one token a person");
    story.types("U0KIM", &first, "too early").await;
    let twice = story.slack.submit_raw("U0KIM", &first.id, &Manner::twice(), |_| {}).await.unwrap();
    assert!(twice.len() == 2 && twice.iter().all(Delivery::acked));
    story.submits("U0KIM", &second, "much too early").await;
    story.deliver().await;
    assert_eq!(story.recorded(&ask), [(KIM.to_owned(), false)]);
    assert_eq!(story.clicks().await.values().sum::<i64>(), 2, "a repeated delivery is no click");
    let told = story.told("U0KIM");
    assert!(told.len() == 1 && told[0].contains("already recorded"), "{told:?}");
    story.end().await;
}

/// Slack case 47: an expired trigger is not tried again; the person is told to press again, and the plain
/// buttons work (node-slack-sdk 1131, bolt-python 886).
#[rstest]
#[tokio::test]
async fn slack_case_47_a_trigger_that_is_over(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let story = Story::begin(on).await;
    let (ask, card) = story.asked("deploy_service").await;
    let spot = Spot::message(RELEASES, &card.ts);
    let late = story.slack.pressed("U0DANA", &spot, "Deny with reason…").unwrap();
    story.advance(Duration::from_millis(3500));
    let deliveries = story.slack.deliver_payload(&late, &Manner::default()).await;
    assert!(deliveries.iter().all(Delivery::acked));
    story.is_told("U0DANA", "press the button again").await;
    assert_eq!(story.slack.calls("views.open").len(), 1, "no second try");
    assert!(story.slack.modals("U0DANA").is_empty());
    assert_eq!(story.clicks().await.values().sum::<i64>(), 0);
    // The same press delivered again opens nothing either, and says nothing more.
    assert!(story.slack.deliver_payload(&late, &Manner::default()).await.iter().all(Delivery::acked));
    story.presses("U0DANA", &card, "Deny").await;
    story.deliver().await;
    assert_eq!(story.recorded(&ask), [(DANA.to_owned(), false)]);
    assert_eq!((story.slack.calls("views.open").len(), story.told("U0DANA").len()), (1, 1));
    story.end().await;
}

/// Whatever keeps a view from opening: acknowledged in time, told, no retry, the buttons stay.
#[rstest]
#[case::answer_lost(Fault::Lost { ms: 2500 }, "press the button again", 1)]
#[case::never_taken(Fault::Hang { ms: 2500 }, "press the button again", 0)]
#[case::refused(Fault::Refuse { error: "exchanged_trigger_id".into() }, "press the button again", 0)]
#[case::payload(Fault::Refuse { error: "invalid_arguments".into() }, "press the button again", 0)]
#[case::limited(Fault::Status { code: 429, retry_after: Some(30), body: None }, "limits how often", 0)]
#[tokio::test]
async fn a_view_that_does_not_open(#[case] fault: Fault, #[case] told: &str, #[case] there: usize) {
    let story = Story::begin(Backend::Sqlite).await;
    let (_, card) = story.asked("deploy_service").await;
    let bug = matches!(&fault, Fault::Refuse { error } if error == "invalid_arguments");
    let limited = matches!(fault, Fault::Status { .. });
    story.slack.faults().add(Rule::next("views.open", fault));
    story.presses("U0DANA", &card, "Deny with reason…").await;
    story.is_told("U0DANA", told).await;
    assert_eq!(story.slack.calls("views.open").len(), 1);
    assert_eq!(story.slack.modals("U0DANA").len(), there);
    assert_eq!(story.buttons(&card), ["Approve", "Deny", "Deny with reason…"]);
    assert_eq!(story.alert_keys().await.contains(&"views:acme".to_owned()), bug);
    if limited {
        // While it is parked nothing is sent at all.
        story.presses("U0KIM", &card, "Deny with reason…").await;
        story.is_told("U0KIM", told).await;
        assert_eq!(story.slack.calls("views.open").len(), 1);
        story.advance(Duration::from_secs(31));
    }
    story.opens("U0DANA", &card, "Deny with reason…").await;
    if bug {
        let deadline = Instant::now() + WITHIN;
        while !story.alert_keys().await.is_empty() {
            assert!(Instant::now() < deadline, "one that opens ends the alert");
            tokio::task::yield_now().await;
        }
    }
    story.end().await;
}

/// A blank reason is refused at its field, and nothing is stored; corrected, it is taken.
#[rstest]
#[tokio::test]
async fn a_blank_reason_stays_in_the_form(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let story = Story::with(on, Wants { people_and_routes: STRICT, ..Wants::default() }).await;
    let (ask, card) = story.asked("guarded").await;
    assert_eq!(story.buttons(&card), ["Approve", "Deny with reason…"], "no denial without a reason");
    let form = story.opens("U0DANA", &card, "Deny with reason…").await;
    for blank in [" \n ", "\u{200b}"] {
        let answer = story.submits("U0DANA", &form, blank).await.json();
        assert_eq!(answer["response_action"], "errors", "{answer}");
        let fields: Vec<&String> = answer["errors"].as_object().unwrap().keys().collect();
        let inputs = form.view["blocks"].as_array().unwrap().iter().filter(|block| block["type"] == "input");
        assert_eq!(fields, inputs.map(|block| block["block_id"].as_str().unwrap()).collect::<Vec<_>>());
        assert_eq!(story.slack.modals("U0DANA").len(), 1, "it stays open");
    }
    // What the client would not let through is refused as well.
    let manner = Manner::default();
    let raw = story.slack.submit_raw("U0DANA", &form.id, &manner, |payload| {
        let values = payload["view"]["state"]["values"].as_object_mut().unwrap();
        values.values_mut().for_each(|block| block["cs.text"]["value"] = Value::Null);
    });
    assert_eq!(raw.await.unwrap()[0].json()["response_action"], "errors");
    assert_eq!(story.clicks().await.values().sum::<i64>(), 0);
    story.submits("U0DANA", &form, "the tests are red").await;
    story.deliver().await;
    assert_eq!(story.recorded(&ask), [(DANA.to_owned(), false)]);
    assert!(story.reads(&card).contains("the tests are red"));
    story.end().await;
}

/// Slack case 47: the request is answered elsewhere, changes, or is decided by somebody else while a form is open.
/// Nothing is sent, and what was typed is given back.
#[rstest]
#[tokio::test]
async fn slack_case_47_it_closes_while_somebody_types(
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
) {
    let story = Story::begin(on).await;
    let typed = "  wait for <b>Ada</b> & the others";
    let (ask, card) = story.asked("deploy_service").await;
    let form = story.opens("U0KIM", &card, "Deny with reason…").await;
    let elsewhere = Elsewhere {
        subject: "someone@example.com".into(),
        decision: countersign::sandbox::a2a::Decision::Approved(true),
        history: false,
        message_id: None,
    };
    assert!(story.a2a.answer_elsewhere(&ask.interaction_id, elsewhere));
    story.tick().await;
    let answer = story.submits("U0KIM", &form, typed).await;
    assert_eq!(answer.body, "");
    story.deliver().await;
    let told = story.told("U0KIM");
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("answered elsewhere") && told[0].contains(typed), "{told:?}");
    assert_eq!(story.a2a.requests_of("SendMessage").len(), 0);
    let last = story.audit().await.pop().unwrap();
    assert_eq!((last.decision.as_deref(), last.reason.as_deref()), (Some("refused"), Some(typed)));
    story.end().await;
}

/// Two people with a form each; the first decides, the second is told who did and keeps the words.
#[rstest]
#[tokio::test]
async fn two_people_with_a_form_each(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let story = Story::begin(on).await;
    let (ask, card) = story.asked("deploy_service").await;
    let of_dana = story.opens("U0DANA", &card, "Deny with reason…").await;
    let of_kim = story.opens("U0KIM", &card, "Deny with reason…").await;
    assert_ne!(of_dana.view["private_metadata"], of_kim.view["private_metadata"], "a token is one person's");
    let (one, other) = tokio::join!(
        story.submits("U0DANA", &of_dana, "reason of Dana"),
        story.submits("U0KIM", &of_kim, "reason of Kim")
    );
    assert!(one.acked() && other.acked());
    story.deliver().await;
    let recorded = story.recorded(&ask);
    assert_eq!(recorded.len(), 1, "{recorded:?}");
    let (won, lost) = if recorded[0].0 == DANA { ("Dana", "Kim") } else { ("Kim", "Dana") };
    let told = [story.told("U0DANA"), story.told("U0KIM")].concat();
    assert!(told.len() == 1 && told[0].contains(&format!("reason of {lost}")), "{told:?}");
    let shown = story.reads(&card);
    assert!(shown.contains(&format!("reason of {won}").to_lowercase()), "{shown}");
    assert!(!shown.contains(&format!("reason of {lost}").to_lowercase()), "{shown}");
    story.end().await;
}

/// What was opened for one person answers to nobody else, and to no token that nobody knows.
#[rstest]
#[tokio::test]
async fn a_form_is_one_persons(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let story = Story::begin(on).await;
    let (ask, card) = story.asked("deploy_service").await;
    let of_dana = story.opens("U0DANA", &card, "Deny with reason…").await;
    let of_kim = story.opens("U0KIM", &card, "Deny with reason…").await;
    story.types("U0KIM", &of_kim, "as Dana").await;
    let stolen = of_dana.view["private_metadata"].clone();
    for token in [stolen, "o_nobody".into()] {
        let manner = Manner::default();
        let submitted = story.slack.submit_raw("U0KIM", &of_kim.id, &manner, |payload| {
            payload["view"]["private_metadata"] = token;
            payload["view"]["response_urls"] = Value::Null;
        });
        assert!(submitted.await.unwrap_or_default().iter().all(Delivery::acked));
    }
    story.deliver().await;
    assert_eq!(story.recorded(&ask), []);
    let told = story.told("U0KIM");
    assert!(!told.is_empty() && told.iter().all(|text| text.contains("no longer known")), "{told:?}");
    assert!(told[0].contains("as Dana"), "{told:?}");
    story.end().await;
}

/// Pressed after the end: nothing opens, the person is told, no control is left (hermes-agent 101542).
#[rstest]
#[tokio::test]
async fn nothing_opens_for_what_has_ended_or_changed(
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
) {
    let story = Story::begin(on).await;
    let (ask, card) = story.asked_at_length(&long()).await;
    let spot = Spot::message(RELEASES, &card.ts);
    let late: Vec<Value> = ["Deny with reason…", "Show all"]
        .map(|control| story.slack.pressed("U0KIM", &spot, control).unwrap())
        .into();
    story.presses("U0DANA", &card, "Deny").await;
    story.deliver().await;
    assert_eq!(story.recorded(&ask), [(DANA.to_owned(), false)]);
    for payload in &late {
        assert!(story.slack.deliver_payload(payload, &Manner::default()).await.iter().all(Delivery::acked));
    }
    let twice =
        |slack: &countersign::sandbox::slack::SlackWorld| (slack.told("U0KIM").len() == 2).then_some(());
    story.slack.until("two notices", WITHIN, twice).await.unwrap();
    assert!(
        story.told("U0KIM").iter().all(|text| text.contains("already denied")),
        "{:?}",
        story.told("U0KIM")
    );
    assert_eq!(story.slack.calls("views.open").len(), 0);
    story.deliver().await;
    assert!(story.buttons(&card).is_empty());
    story.end().await;
}

/// Slack case 26: what is cut is approved by who has opened all of it, and by nobody else (humanlayer 255).
#[rstest]
#[tokio::test]
async fn slack_case_26_approve_after_reading_everything(
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
) {
    let story = Story::begin(on).await;
    let (ask, card) = story.asked_at_length(&long()).await;
    assert_eq!(story.buttons(&card), ["Approve", "Deny", "Deny with reason…", "Show all"]);
    let all = story.opens("U0DANA", &card, "Show all").await;
    let text = text_of(&all);
    assert!(
        text.contains("BEGIN") && text.contains("END") && text.contains("Approve works for you now"),
        "{text}"
    );
    assert_eq!(story.clicks().await.values().sum::<i64>(), 0);
    story.has_read_all("U0DANA").await;

    // Kim has not opened it.
    story.presses("U0KIM", &card, "Approve").await;
    story.deliver().await;
    assert_eq!(story.recorded(&ask), []);
    assert!(story.told("U0KIM")[0].contains("Open Show all first"), "{:?}", story.told("U0KIM"));
    assert_eq!(story.audit().await.pop().unwrap().rule.as_deref(), Some("full_view"));

    story.presses("U0DANA", &card, "Approve").await;
    story.deliver().await;
    assert_eq!(story.recorded(&ask), [(DANA.to_owned(), true)]);
    assert!(story.told("U0DANA").is_empty(), "{:?}", story.told("U0DANA"));
    story.end().await;
}

/// Pages: nobody has read it before the last one; a restart forgets nothing; going back is possible.
#[rstest]
#[tokio::test]
async fn pages_are_turned_to_the_end(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let mut story = Story::begin(on).await;
    let (ask, card) = story.asked_at_length(&format!("BEGIN {} END", "word ".repeat(13_000))).await;
    let first = story.opens("U0DANA", &card, "Show all").await;
    let text = text_of(&first);
    assert!(text.contains("BEGIN") && !text.contains("END") && text.contains("Page 1 of 3"), "{text}");
    let approve = async |story: &Story| {
        story.presses("U0DANA", &card, "Approve").await;
        story.deliver().await;
        story.recorded(&ask).len()
    };
    assert_eq!(approve(&story).await, 0, "one page of three");
    let second = story.turns("U0DANA", &first, "Next").await;
    assert!(text_of(&second).contains("Page 2 of 3"), "{}", text_of(&second));
    story.restart().await;
    let back = story.turns("U0DANA", &second, "Previous").await;
    assert!(text_of(&back).contains("BEGIN"));
    let second = story.turns("U0DANA", &back, "Next").await;
    assert_eq!(approve(&story).await, 0, "two pages of three");
    // An older press of Next is dropped: the view has changed since.
    let spot = Spot::View { id: second.id.clone() };
    let stale = story.slack.pressed("U0DANA", &spot, "Next").unwrap();
    let third = story.turns("U0DANA", &second, "Next").await;
    assert!(text_of(&third).contains("END") && text_of(&third).contains("Page 3 of 3"));
    story.has_read_all("U0DANA").await;
    assert!(story.slack.deliver_payload(&stale, &Manner::default()).await.iter().all(Delivery::acked));
    let conflict = |slack: &countersign::sandbox::slack::SlackWorld| {
        slack
            .calls("views.update")
            .iter()
            .any(|call| call.response.as_ref().is_some_and(|answer| answer["error"] == "hash_conflict"))
            .then_some(())
    };
    story.slack.until("a dropped update", WITHIN, conflict).await.unwrap();
    let told_before = story.told("U0DANA").len();
    assert_eq!(approve(&story).await, 1);
    assert_eq!(story.told("U0DANA").len(), told_before, "nothing is said about the dropped one");
    story.end().await;
}

/// The page that was lost does not count: only what Slack has taken was shown.
#[rstest]
#[tokio::test]
async fn a_last_page_that_did_not_arrive_is_not_seen(
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
) {
    let story = Story::begin(on).await;
    let (ask, card) = story.asked_at_length(&long()).await;
    story.slack.faults().add(Rule::next("views.open", Fault::Hang { ms: 2500 }));
    story.presses("U0DANA", &card, "Show all").await;
    story.is_told("U0DANA", "press the button again").await;
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver().await;
    assert_eq!(story.recorded(&ask), []);
    assert_eq!(story.audit().await.pop().unwrap().rule.as_deref(), Some("full_view"));
    story.end().await;
}

/// The gate can be switched off; then a cut card is approved at once, and can still be read in full.
#[rstest]
#[tokio::test]
async fn without_the_gate_a_cut_card_is_approved_at_once(
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
) {
    let more = "[policy]\nrequire_full_view = false";
    let story = Story::with(on, Wants { more, ..Wants::default() }).await;
    let (ask, card) = story.asked_at_length(&long()).await;
    assert!(!story.reads(&card).contains("works for you once"), "{}", story.reads(&card));
    let all = story.opens("U0KIM", &card, "Show all").await;
    assert!(!text_of(&all).contains("Approve works"), "{}", text_of(&all));
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver().await;
    assert_eq!(story.recorded(&ask), [(DANA.to_owned(), true)]);
    story.end().await;
}

/// `confirm` and `reason_on_deny` set while cards stand: what an older card offers does not count, says why,
/// and the card is drawn anew with what the route asks for.
#[rstest]
#[tokio::test]
async fn an_older_card_follows_the_new_rules(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let mut story = Story::begin(on).await;
    let (ask, card) = story.asked("deploy_service").await;
    story
        .restart_with(|config| {
            config.replace(
                "approvers = [\"release\", \"owner\"]",
                "approvers = [\"release\", \"owner\"]\nconfirm = true\nreason_on_deny = true",
            )
        })
        .await;
    let spot = Spot::message(RELEASES, &card.ts);
    let deny = story.slack.pressed("U0DANA", &spot, "Deny").unwrap();
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver().await;
    assert_eq!(story.recorded(&ask), []);
    assert!(story.told("U0DANA")[0].contains("Approve asks once more now"), "{:?}", story.told("U0DANA"));
    assert_eq!(story.buttons(&card), ["Approve", "Deny with reason…"]);
    assert!(story.slack.deliver_payload(&deny, &Manner::default()).await.iter().all(Delivery::acked));
    story.deliver().await;
    assert_eq!(story.recorded(&ask), []);
    assert!(story.told("U0DANA")[1].contains("A denial needs a reason"), "{:?}", story.told("U0DANA"));
    assert_eq!(story.audit().await.pop().unwrap().rule.as_deref(), Some("reason"));

    let now = story.card(RELEASES);
    let approve = now.blocks.iter().find(|block| block["type"] == "actions").unwrap()["elements"][0].clone();
    assert!(approve["confirm"]["text"]["text"].as_str().unwrap().contains("deploy_service"), "{approve}");
    story.presses("U0DANA", &now, "Approve").await;
    story.deliver().await;
    assert_eq!(story.recorded(&ask), [(DANA.to_owned(), true)]);
    story.end().await;
}

/// Slack case 46: the request changes while somebody types and somebody else has read all of it. The card is drawn
/// anew with new ids; neither the form nor the reading counts for what it has become.
#[rstest]
#[tokio::test]
async fn slack_case_46_it_changes_while_somebody_types(
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
) {
    let story = Story::begin(on).await;
    let (ask, card) = story.asked_at_length(&long()).await;
    let form = story.opens("U0KIM", &card, "Deny with reason…").await;
    let all = story.opens("U0DANA", &card, "Show all").await;
    assert!(text_of(&all).contains("Approve works for you now"));
    story.has_read_all("U0DANA").await;
    story.a2a.change(&ask.interaction_id, |ask| ask.prompt = Some(format!("Something else. {}", long())));
    story.tick().await;
    let now = story.card(RELEASES);
    let ids = |card: &Message| card.blocks.iter().map(|block| block["block_id"].clone()).collect::<Vec<_>>();
    assert!(ids(&now).iter().all(|id| !ids(&card).contains(id)), "{:?}", ids(&now));

    story.submits("U0KIM", &form, "not this").await;
    story.presses("U0DANA", &now, "Approve").await;
    story.deliver().await;
    assert_eq!(story.recorded(&ask), []);
    let told = story.told("U0KIM");
    assert!(told.len() == 1 && told[0].contains("has changed") && told[0].contains("not this"), "{told:?}");
    assert!(story.told("U0DANA")[0].contains("Open Show all first"), "{:?}", story.told("U0DANA"));

    // What it has become is read and approved.
    let anew = story.opens("U0DANA", &now, "Show all").await;
    assert!(text_of(&anew).contains("Something else."));
    story.has_read_all("U0DANA").await;
    story.presses("U0DANA", &now, "Approve").await;
    story.deliver().await;
    assert_eq!(story.recorded(&ask), [(DANA.to_owned(), true)]);
    story.end().await;
}

/// The request changes while somebody turns pages: the next page says so instead.
#[rstest]
#[tokio::test]
async fn a_page_of_what_has_changed_is_not_shown(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let story = Story::begin(on).await;
    let (ask, card) = story.asked_at_length(&"word ".repeat(7_500)).await;
    let first = story.opens("U0DANA", &card, "Show all").await;
    story.a2a.change(&ask.interaction_id, |ask| ask.prompt = Some("short now".into()));
    story.tick().await;
    let next = story.turns("U0DANA", &first, "Next").await;
    assert!(text_of(&next).contains("has changed"), "{}", text_of(&next));
    assert!(!story.buttons(&story.card(RELEASES)).contains(&"Show all".to_owned()));
    story.presses("U0DANA", &story.card(RELEASES), "Approve").await;
    story.deliver().await;
    assert_eq!(story.recorded(&ask), [(DANA.to_owned(), true)]);
    story.end().await;
}

/// Slack case 47: a form that is closed decides nothing, and everything stays (python-slack-sdk 523).
#[rstest]
#[tokio::test]
async fn slack_case_47_a_closed_form(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let story = Story::begin(on).await;
    let (ask, card) = story.asked("deploy_service").await;
    let form = story.opens("U0DANA", &card, "Deny with reason…").await;
    story.types("U0DANA", &form, "changed my mind").await;
    story.slack.close_view("U0DANA", &form.id).await.unwrap();
    story.deliver().await;
    assert_eq!((story.clicks().await.len(), story.recorded(&ask).len()), (0, 0));
    assert_eq!(story.buttons(&card), ["Approve", "Deny", "Deny with reason…"]);
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver().await;
    assert_eq!(story.recorded(&ask), [(DANA.to_owned(), true)]);
    story.end().await;
}

/// Where several must approve, each reads it all, and one denial with a reason denies.
#[rstest]
#[tokio::test]
async fn every_voter_reads_it_all(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let story = Story::begin(on).await;
    let opened = story.a2a.open(Open::new(DANA, Ask::approval("ci", "delete_all").prompt(&long())));
    story.tick().await;
    let card = story.card(RELEASES);
    story.opens("U0DANA", &card, "Show all").await;
    story.has_read_all("U0DANA").await;
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver().await;
    assert_eq!(story.clicks().await.get("counted"), Some(&1));
    story.presses("U0KIM", &card, "Approve").await;
    story.deliver().await;
    assert!(story.told("U0KIM")[0].contains("Open Show all first"), "{:?}", story.told("U0KIM"));
    let form = story.opens("U0KIM", &card, "Deny with reason…").await;
    story.submits("U0KIM", &form, "all of them?").await;
    story.deliver().await;
    assert_eq!(story.recorded(&opened), [(KIM.to_owned(), false)]);
    assert!(story.reads(&card).contains("all of them?"));
    story.end().await;
}

/// What `explain` says a person must do first is what a click then needs.
#[rstest]
#[tokio::test]
async fn what_must_be_done_first_is_explained(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let story = Story::with(on, Wants { people_and_routes: STRICT, ..Wants::default() }).await;
    let (_, card) = story.asked_at_length(&long()).await;
    let explained = async |deny: bool| {
        let all = story.service.bridge.store.read(|tx| {
            Box::pin(async move {
                let after = InteractionId(Uuid::nil());
                tx.interactions_after(after, false, 5).await
            })
        });
        let interaction = all.await.unwrap().remove(0);
        let dana = Subject::parse(DANA).unwrap();
        let said = story.service.bridge.explain(&interaction, &dana, &[], deny).await.unwrap();
        let said = serde_json::to_value(said).unwrap();
        format!("{} {} {}", said["verdict"], said["rule"], said["needs"]).replace('"', "")
    };
    assert_eq!(explained(false).await, "refuse full_view [full_view,confirm]");
    assert_eq!(explained(true).await, "refuse reason [reason]");
    story.opens("U0DANA", &card, "Show all").await;
    story.has_read_all("U0DANA").await;
    assert_eq!(explained(false).await, "allow approvers [confirm]");
    story.end().await;
}

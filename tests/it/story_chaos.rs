//! Streams are cut every few seconds, events come twice or never, answers are lost on their way, and people press
//! what they see: no press is lost, nothing is answered twice, no card is left behind.

use crate::world::database::Backend;
use crate::world::story::{DANA, RELEASES, Story};
use countersign::domain::ids::InteractionId;
use countersign::domain::interaction::{How, State as Phase};
use countersign::sandbox::a2a::{Ask, Decision, Elsewhere, Open, Opened, State, StreamFault, Streaming};
use countersign::sandbox::faults::{Fault, Rule};
use rstest::rstest;
use std::collections::BTreeMap;
use std::time::Duration;
use uuid::Uuid;

/// A small generator: a run is repeated by its seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(sides.max(1)).unwrap()).unwrap()
    }
}

/// An agent asks once, or several times in one task.
fn asks(story: &Story, dice: &mut Dice, n: usize) -> Opened {
    let tool = if dice.roll(5) == 0 { "delete" } else { "deploy" };
    let mut open = Open::new(DANA, Ask::approval("ci", &format!("{tool}_{n}")));
    open.queue = (0..dice.roll(3)).map(|k| Ask::approval("ci", &format!("deploy_{n}_{k}"))).collect();
    story.a2a.open(open)
}

/// Somebody in the product, or the agent itself, is first.
fn ends(story: &Story, dice: &mut Dice, opened: &[Opened]) {
    let Some(one) = opened.get(dice.roll(opened.len())) else { return };
    if dice.roll(2) == 0 {
        story.a2a.end(&one.task_id, State::Canceled, None);
    } else {
        let decision = Decision::Approved(dice.roll(2) == 0);
        let subject = "product@example.com".into();
        let answer = Elsewhere { subject, decision, history: dice.roll(2) == 0, message_id: None };
        story.a2a.answer_elsewhere(&one.interaction_id, answer);
    }
}

async fn presses(story: &Story, dice: &mut Dice) {
    let cards: Vec<_> =
        story.slack.cards(RELEASES).into_iter().filter(|card| !story.buttons(card).is_empty()).collect();
    let Some(card) = cards.get(dice.roll(cards.len())) else { return };
    let user = ["U0DANA", "U0KIM"][dice.roll(2)];
    let control = if dice.roll(4) == 0 { "Deny" } else { "Approve" };
    story.presses(user, card, control).await;
}

#[rstest]
#[tokio::test]
async fn streams_are_cut_while_people_press(
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
    #[values(Streaming::On, Streaming::ClosesAtInterrupted)] streaming: Streaming,
    #[values(11, 4711)] seed: u64,
) {
    let story = Story::begin(on).await;
    story.offers(true, false);
    story.a2a.switch(|switches| {
        switches.streaming = streaming;
        switches.stream_duplicates = true;
        switches.odd_frames = true;
    });
    let mut dice = Dice(seed);
    let following = story.follows();
    let mut opened = vec![];
    let mut pressed = 0;
    for round in 0..80 {
        if dice.roll(3) == 0 {
            opened.push(asks(&story, &mut dice, round));
        }
        match dice.roll(12) {
            0 | 1 => drop(story.a2a.cut_streams()),
            2 => story.a2a.lose_events(u32::try_from(1 + dice.roll(2)).unwrap()),
            3 => story.a2a.next_stream(StreamFault::CutAfter { events: 1 }),
            4 => story.a2a.faults().add(Rule::next("SendMessage", Fault::Lost { ms: 5 })),
            5 => ends(&story, &mut dice, &opened),
            6 => story
                .a2a
                .faults()
                .add(Rule::next("GetTask", Fault::Status { code: 503, retry_after: None, body: None })),
            _ => {}
        }
        if dice.roll(2) == 0 {
            presses(&story, &mut dice).await;
            pressed += 1;
        }
        // Sometimes the events have time to arrive, sometimes a pass comes first.
        if dice.roll(8) == 0 {
            story.watch().await;
        }
        for _ in 0..3 {
            story.advance(Duration::from_millis(u64::try_from(100 + dice.roll(400)).unwrap()));
            story.deliver().await;
            tokio::task::yield_now().await;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    story.a2a.faults().clear();
    story.a2a.lose_events(0);
    let subscribed = story.count("SubscribeToTask");
    drop(following);
    // All comes to rest: answers of unknown outcome are tried again, everything is read.
    for _ in 0..8 {
        story.pass(Duration::from_secs(15)).await;
        story.watch().await;
    }
    story.pass(Duration::from_secs(70)).await;
    println!(
        "seed {seed}, {on:?}, {streaming:?}: {} tasks, {pressed} presses, {subscribed} subscriptions",
        opened.len()
    );
    assert!(subscribed >= opened.len() / 2, "hardly anything was followed");
    check(&story).await;
    story.end().await;
}

/// What we say is what the runtime recorded; each interaction has one card, and it is true.
async fn check(story: &Story) {
    let mine = story
        .service
        .bridge
        .store
        .read(|tx| {
            Box::pin(async move { tx.interactions_after(InteractionId(Uuid::nil()), false, 1000).await })
        })
        .await
        .unwrap();
    for task in story.a2a.tasks() {
        for there in &task.interactions {
            assert!(there.answers.len() <= 1, "answered twice: {there:#?}");
        }
    }
    for one in &mine {
        let there = story.a2a.interaction(&one.key.external).unwrap();
        let ours = there.answers.iter().any(|answer| !answer.elsewhere);
        match &one.machine.state {
            Phase::Settled { how, .. } => {
                assert_eq!(matches!(how, How::Ours { .. }), ours, "{how:?} here, {there:#?} there");
            }
            Phase::Open => assert_eq!(there.phase, countersign::sandbox::a2a::Phase::Open, "{there:#?}"),
            Phase::Answering(claim) => panic!("at rest with a claim: {claim:?}"),
        }
    }
    let mut shown: BTreeMap<String, u32> = BTreeMap::new();
    for card in story.slack.cards(RELEASES) {
        let text = story.reads(&card);
        let one = mine.iter().find(|one| text.contains(&one.id.short())).unwrap();
        *shown.entry(one.id.to_string()).or_default() += 1;
        match &one.machine.state {
            Phase::Settled { how, .. } => {
                assert!(story.buttons(&card).is_empty(), "{text}");
                assert!(text.contains(how.outcome().as_str()), "it is {}: {text}", how.outcome().as_str());
            }
            _ => assert!(!story.buttons(&card).is_empty(), "{text}"),
        }
    }
    assert!(shown.values().all(|count| *count == 1), "{shown:?}");
    // What waits in the runtime waits here.
    for task in story.a2a.tasks().iter().filter(|task| task.state().is_interrupted()) {
        let open =
            task.interactions.iter().find(|one| one.phase == countersign::sandbox::a2a::Phase::Open).unwrap();
        assert!(mine.iter().any(|one| one.key.external == open.id), "never seen: {open:#?}");
    }
}

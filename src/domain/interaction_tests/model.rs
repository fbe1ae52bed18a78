//! Any order of readings (also slow, repeated, lagging), presses, attempts, crashes, edits and ends:
//! what must hold after every step, and that it comes to rest when the world is kind again.

use super::world::{Fate, Flight, OPENED, World};
use super::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const PEOPLE: [&str; 4] = ["ann", "bob", "dana", "eve"];

#[derive(Debug, Clone)]
enum Deed {
    Wait(i64),
    /// A reading, by a replica that lags so much; `keep` it to tell it again later.
    Read {
        lag: i64,
        keep: bool,
    },
    /// A request that takes long: what it saw now comes later, perhaps twice.
    Begin,
    Comes(prop::sample::Index),
    NotFound {
        doubted: bool,
    },
    Press {
        who: usize,
        action: Action,
        old: bool,
        rights: [Right; 4],
    },
    Edit,
    End(End),
    /// A worker takes up delivery: what was in flight is lost, it reads, it asks.
    Work {
        right: Right,
        lag: i64,
    },
    Finish(Fate),
    /// The worker dies; the attempt's fate is that.
    Crash(Fate),
    /// A slow copy arrives.
    Arrives(prop::sample::Index),
}

fn right() -> impl Strategy<Value = Right> {
    prop_oneof![8 => Just(Right::Allowed), 1 => Just(Right::Refused), 1 => Just(Right::Unknown)]
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        4 => (prop_oneof![Just(0), 0..45_000_i64], any::<bool>()).prop_map(|(lag, read)| Fate::Answered { lag, read }),
        1 => Just(Fate::NotSent),
        1 => Just(Fate::LostOnTheWay),
        2 => Just(Fate::ResponseLost),
        2 => Just(Fate::Slow),
        1 => Just(Fate::Door),
    ]
}

fn deed() -> impl Strategy<Value = Deed> {
    let action = prop_oneof![
        5 => Just(Action::Decide(Decision::Approve)),
        2 => Just(Action::Decide(DENY)),
        1 => Just(Action::Withdraw),
    ];
    let lag = || prop_oneof![2 => Just(0), 1 => 0..45_000_i64];
    prop_oneof![
        4 => prop_oneof![6 => 0..20_000_i64, 2 => Just(70_000), 1 => Just(700_000)].prop_map(Deed::Wait),
        5 => (lag(), any::<bool>()).prop_map(|(lag, keep)| Deed::Read { lag, keep }),
        1 => Just(Deed::Begin),
        2 => any::<prop::sample::Index>().prop_map(Deed::Comes),
        1 => prop::bool::weighted(0.3).prop_map(|doubted| Deed::NotFound { doubted }),
        7 => (0..PEOPLE.len(), action, prop::bool::weighted(0.1), [right(), right(), right(), right()])
            .prop_map(|(who, action, old, rights)| Deed::Press { who, action, old, rights }),
        1 => Just(Deed::Edit),
        1 => prop_oneof![Just(RESOLVED), Just(End::Canceled), Just(End::Failed), Just(End::Rejected)].prop_map(Deed::End),
        8 => (right(), lag()).prop_map(|(right, lag)| Deed::Work { right, lag }),
        6 => fate().prop_map(Deed::Finish),
        2 => fate().prop_map(Deed::Crash),
        1 => any::<prop::sample::Index>().prop_map(Deed::Arrives),
    ]
}

/// How far a press has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    Refused,
    Counted,
    Withdrawn,
    Claimed,
    Freed,
    Delivered,
    /// Freed, and found to be ours at the end.
    Found,
}

struct Run {
    machine: Machine,
    world: World,
    approvals: u32,
    ids: u128,
    kept: Vec<(i64, Reading)>,
    jobs: BTreeSet<AnswerId>,
    presses: BTreeMap<ClickId, Ended>,
    votes: BTreeMap<Subject, ClickId>,
    /// Readings applied that contradict an accepted answer: when they began.
    against: BTreeSet<i64>,
    /// It was gone, or open again after an accepted answer: what was ours may not be known as such.
    unsure: bool,
}

impl Run {
    fn new(approvals: u32) -> Self {
        Self {
            machine: Machine::opened(digest(1), Millis(OPENED + 10)),
            world: World::new(),
            approvals,
            ids: 0,
            kept: vec![(OPENED - 5, ended(RESOLVED)), (OPENED + 3, open(1))],
            jobs: BTreeSet::new(),
            presses: BTreeMap::new(),
            votes: BTreeMap::new(),
            against: BTreeSet::new(),
            unsure: false,
        }
    }

    fn id(&mut self) -> Uuid {
        self.ids += 1;
        Uuid::from_u128(self.ids)
    }

    /// Steps, checks everything, and steps once more with the same event: nothing may come of it.
    #[expect(clippy::needless_pass_by_value, reason = "a step takes its event")]
    fn step(&mut self, event: Event) -> Vec<Effect> {
        let before = self.machine.clone();
        let (after, effects) = step(before.clone(), event.clone());
        self.machine = after;
        self.check(&before, &event, &effects);
        let (again, repeated) = step(self.machine.clone(), event.clone());
        assert_eq!(again, self.machine, "repeating {event:?} changed something");
        for effect in &repeated {
            assert!(
                matches!(
                    effect,
                    Effect::Refused { .. }
                        | Effect::Later { .. }
                        | Effect::Drop { .. }
                        | Effect::Probe { .. }
                        | Effect::ReadAgain { .. }
                        | Effect::Redraw
                ),
                "repeating {event:?} gave {effect:?}"
            );
        }
        effects
    }

    fn check(&mut self, before: &Machine, event: &Event, effects: &[Effect]) {
        self.check_presses(before, event, effects);
        self.check_votes(before, event);
        self.check_claims(before, event, effects);
        self.check_end(before, event, effects);
    }

    fn check_presses(&mut self, before: &Machine, event: &Event, effects: &[Effect]) {
        let mut outcomes = 0;
        for effect in effects {
            match effect {
                Effect::Refused { click, .. } => {
                    outcomes += 1;
                    assert_eq!(self.presses.insert(*click, Ended::Refused), None);
                }
                Effect::Counted { click } => {
                    outcomes += 1;
                    assert_eq!(self.presses.insert(*click, Ended::Counted), None);
                    let Event::Press(press) = event else { panic!("counted without a press") };
                    assert_eq!(self.votes.insert(press.subject.clone(), *click), None);
                }
                Effect::Withdrawn { click, vote } => {
                    outcomes += 1;
                    assert_eq!(self.presses.insert(*click, Ended::Withdrawn), None);
                    let Event::Press(press) = event else { panic!("withdrawn without a press") };
                    assert_eq!(self.votes.remove(&press.subject), Some(*vote), "one's own vote");
                }
                Effect::Voided { vote, .. } => {
                    assert_eq!(self.votes.remove(&vote.subject), Some(vote.click));
                }
                Effect::Claimed { .. } => {
                    outcomes += 1;
                    let Event::Press(press) = event else { panic!("claimed without a press") };
                    assert_eq!(self.presses.insert(press.click, Ended::Claimed), None);
                    self.check_claim(before, press);
                }
                Effect::Freed { click, tell, .. } => {
                    let was = self.presses.insert(*click, Ended::Freed);
                    assert_eq!(was, Some(if *tell { Ended::Claimed } else { Ended::Freed }));
                }
                Effect::Delivered { click, .. } => match self.presses.get(click) {
                    Some(Ended::Claimed) => {
                        self.presses.insert(*click, Ended::Delivered);
                    }
                    Some(Ended::Freed) => {
                        self.presses.insert(*click, Ended::Found);
                    }
                    other => panic!("delivered after {other:?}"),
                },
                _ => {}
            }
        }
        assert_eq!(outcomes, i32::from(matches!(event, Event::Press(_))), "{event:?} gave {effects:?}");
    }

    /// A claim: only from open, for what was shown and is current, with enough people behind it.
    fn check_claim(&mut self, before: &Machine, press: &Press) {
        assert_eq!(before.state, State::Open);
        assert_eq!(press.shown, before.digest);
        let claim = self.machine.claim().unwrap();
        assert_eq!((claim.answer, claim.click, &claim.digest), (press.answer, press.click, &press.shown));
        assert_eq!(claim.subject, press.subject, "nobody is answered for");
        assert_eq!(claim.number, before.claims + 1);
        if press.action == Action::Decide(Decision::Approve) && self.approvals > 1 {
            assert_eq!(self.votes.insert(press.subject.clone(), press.click), None);
            assert_eq!(self.votes.len(), self.approvals as usize, "exactly so many distinct people");
            for voter in self.votes.keys().filter(|voter| **voter != press.subject) {
                assert!(press.voters.contains(&(voter.clone(), Right::Allowed)), "checked again");
            }
        }
    }

    fn check_votes(&mut self, before: &Machine, event: &Event) {
        let machine = &self.machine;
        if matches!(machine.state, State::Settled { .. }) {
            assert!(machine.votes.is_empty());
            self.votes.clear();
            return;
        }
        let votes: BTreeMap<_, _> =
            machine.votes.iter().map(|vote| (vote.subject.clone(), vote.click)).collect();
        assert_eq!(votes.len(), machine.votes.len(), "distinct subjects");
        assert_eq!(votes, self.votes, "every change of a vote is told");
        for vote in &machine.votes {
            assert_eq!(vote.digest, machine.digest, "votes are for what is asked now");
        }
        if machine.state == State::Open {
            assert!(machine.votes.len() < self.approvals as usize, "fewer than needed while open");
        }
        if before.digest != machine.digest {
            assert!(machine.votes.is_empty(), "a changed form voids votes");
            assert!(matches!(event, Event::Read { reading: Reading::Open { .. }, .. }));
        }
    }

    fn check_claims(&mut self, before: &Machine, event: &Event, effects: &[Effect]) {
        let made = effects.iter().filter(|e| matches!(e, Effect::Claimed { .. })).count();
        assert_eq!(self.machine.claims as usize, before.claims as usize + made);
        for effect in effects {
            match effect {
                Effect::Claimed { answer } | Effect::Probe { answer } => {
                    self.jobs.insert(*answer);
                    assert_eq!(self.machine.claim().unwrap().answer, *answer);
                }
                Effect::Send { answer } => {
                    assert!(self.world.flight.is_none(), "two in flight");
                    let was = before.claim().unwrap();
                    assert!(!was.in_flight && was.answer == *answer);
                    assert!(self.machine.claim().unwrap().in_flight);
                    let Event::HandOut { right, at, .. } = event else { panic!("sent without a hand-out") };
                    // Either it answers what is asked now, by somebody who may, in time; or it only asks.
                    let answers =
                        *right == Right::Allowed && was.digest == before.digest && *at <= was.deliver_until;
                    assert!(answers || was.ended.is_some());
                }
                _ => {}
            }
        }
        let settled = effects.contains(&Effect::Settled);
        let is_settled = |machine: &Machine| matches!(machine.state, State::Settled { .. });
        assert_eq!(settled, is_settled(&self.machine) && !is_settled(before));
    }

    fn check_end(&mut self, before: &Machine, event: &Event, effects: &[Effect]) {
        if let Event::Read { reading, began, .. } = event {
            match reading {
                Reading::Open { .. } if *began >= before.read_at => {
                    self.against.insert(began.0);
                }
                Reading::Ended(End::Resolved { .. }) if *began < before.read_at => {}
                Reading::Ended(_) => self.against.clear(),
                _ => {}
            }
        }
        if let (State::Settled { how, .. }, true) = (&self.machine.state, effects.contains(&Effect::Settled))
        {
            match how {
                How::Ours { answer, .. } => {
                    assert_eq!(self.world.accepted, Some(*answer), "ours is what the runtime accepted");
                }
                How::Elsewhere { .. } => assert!(self.world.was(&ended(RESOLVED))),
                How::Canceled => assert!(self.world.was(&ended(End::Canceled))),
                How::Failed => assert!(self.world.was(&ended(End::Failed))),
                How::Rejected => assert!(self.world.was(&ended(End::Rejected))),
                How::Gone => self.unsure = true,
            }
            self.against.clear();
        }
        let reopened = effects.contains(&Effect::Reopened);
        if let State::Settled { how, at, .. } = &before.state {
            assert_eq!(reopened, !matches!(self.machine.state, State::Settled { .. }));
            if reopened {
                self.unsure = true;
                match how {
                    How::Gone => {}
                    How::Ours { .. } => self.check_contradiction(*at),
                    other => panic!("{other:?} reopened"),
                }
            }
        } else if reopened {
            let claim = before.claim().unwrap();
            assert_eq!(claim.sent, Sent::Accepted);
            self.check_contradiction(claim.accepted_at.unwrap());
        }
        if let Some((Why::Unconfirmed, true)) = freed(effects) {
            self.world.disowned.push(before.claim().unwrap().answer);
        }
    }

    fn check_contradiction(&self, since: Millis) {
        let began: Vec<i64> = self.against.iter().copied().filter(|began| *began >= since.0).collect();
        assert!(began.len() >= 3, "three readings, not {began:?}");
        assert!(began[began.len() - 1] - began[0] >= 30_000, "over thirty seconds, not {began:?}");
    }

    fn read(&mut self, reading: Reading, began: i64) {
        let at = Millis(self.world.now);
        self.step(Event::Read { reading, began: Millis(began), at });
    }

    fn press(&mut self, who: usize, action: Action, old: bool, rights: [Right; 4]) {
        let voters = PEOPLE.iter().zip(rights).map(|(name, right)| (person(name), right)).collect();
        let press = Press {
            click: ClickId(self.id()),
            answer: AnswerId(self.id()),
            subject: person(PEOPLE[who]),
            action,
            shown: if old { digest(0) } else { self.machine.digest.clone() },
            deliver_until: Millis(self.world.now).plus(Duration::from_mins(1)),
            approvals: self.approvals,
            voters,
        };
        let (before, denies) = (self.machine.clone(), press.action == Action::Decide(DENY));
        let effects = self.step(Event::Press(press));
        if denies && before.state == State::Open && !old {
            assert!(claimed(&effects), "one denial denies");
        }
        if old {
            assert!(refusal(&effects).is_some());
        }
    }

    fn work(&mut self, right: Right, lag: i64) {
        // Deliveries of one interaction come one after another.
        let Some(answer) = self.jobs.first().copied().filter(|_| self.world.flight.is_none()) else { return };
        if let Some(lost) = self.world.orphan.take() {
            self.step(Event::Lost { answer: lost });
        }
        self.read(self.world.lagging(lag), self.world.now);
        let effects = self.step(Event::HandOut { answer, at: Millis(self.world.now), right });
        if effects.contains(&Effect::Send { answer }) {
            self.world.flight = Some(Flight { answer });
        }
        if self.machine.claim().is_none_or(|claim| claim.answer != answer) {
            self.jobs.remove(&answer);
        }
    }

    fn finish(&mut self, fate: Fate) {
        let Some(Flight { answer }) = self.world.flight.take() else { return };
        let result = self.world.finish(answer, fate);
        self.step(Event::Attempt { answer, at: Millis(self.world.now), result });
    }

    fn deed(&mut self, deed: Deed) {
        self.world.now += 1;
        match deed {
            Deed::Wait(by) => self.world.now += by,
            Deed::Read { lag, keep } => {
                let (reading, began) = (self.world.lagging(lag), self.world.now);
                if keep {
                    self.kept.push((began, reading.clone()));
                }
                self.read(reading, began);
            }
            Deed::Begin => self.kept.push((self.world.now, self.world.truth().clone())),
            Deed::Comes(which) => {
                let (began, reading) = which.get(&self.kept).clone();
                self.read(reading, began);
            }
            Deed::NotFound { doubted } => self.read(Reading::NotFound { doubted }, self.world.now),
            Deed::Press { who, action, old, rights } => self.press(who, action, old, rights),
            Deed::Edit => self.world.edit(),
            Deed::End(end) => self.world.end(end),
            Deed::Work { right, lag } => self.work(right, lag),
            Deed::Finish(fate) => self.finish(fate),
            Deed::Crash(fate) => {
                if let Some(Flight { answer }) = self.world.flight.take() {
                    self.world.finish(answer, fate);
                    self.world.orphan = Some(answer);
                }
            }
            Deed::Arrives(which) => {
                if !self.world.slow.is_empty() {
                    let answer = self.world.slow.remove(which.index(self.world.slow.len()));
                    self.world.arrives(answer);
                }
            }
        }
    }

    /// The world is kind again: readings are true, attempts arrive and are answered.
    fn comes_to_rest(&mut self) {
        let kind = Fate::Answered { lag: 0, read: true };
        for _ in 0..20 {
            self.world.now += 1;
            self.finish(kind);
            self.world.now += 20_000;
            self.work(Right::Allowed, 0);
            self.finish(kind);
            self.world.now += 1;
            self.read(self.world.truth().clone(), self.world.now);
        }
        assert_eq!(self.jobs.len(), usize::from(self.machine.claim().is_some()), "no job without a claim");
        assert!(self.machine.claim().is_none(), "still answering: {:?}", self.machine);
        match (&self.machine.state, self.world.truth()) {
            (State::Open, Reading::Open { digest }) => assert_eq!(self.machine.digest, *digest),
            (State::Settled { .. }, Reading::Ended(_)) => {}
            (state, truth) => panic!("{state:?} while the runtime shows {truth:?}"),
        }
        assert!(self.presses.values().all(|ended| *ended != Ended::Claimed), "every claim has ended");
        // What the runtime accepted is shown as ours, unless it had been refused for good before.
        if let Some(answer) = self.world.accepted
            && !self.unsure
            && !self.world.disowned.contains(&answer)
        {
            let State::Settled { how, .. } = &self.machine.state else { panic!("not settled") };
            assert!(
                matches!(how, How::Ours { answer: ours, .. } if *ours == answer),
                "{answer} was accepted: {how:?}"
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_order_of_events_keeps_what_must_hold(
        approvals in 1..=3_u32,
        deeds in prop::collection::vec(deed(), 1..80),
    ) {
        let mut run = Run::new(approvals);
        for deed in deeds {
            run.deed(deed);
        }
        run.comes_to_rest();
    }
}

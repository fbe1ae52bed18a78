//! The state machine: examples by topic, and any order of events against a model of the world.

use super::*;
use uuid::Uuid;

#[path = "interaction_tests/delivery.rs"]
mod delivery;
#[path = "interaction_tests/ending.rs"]
mod ending;
#[path = "interaction_tests/model.rs"]
mod model;
#[path = "interaction_tests/press.rs"]
mod press;
#[path = "interaction_tests/reopening.rs"]
mod reopening;
#[path = "interaction_tests/world.rs"]
mod world;

const SECOND: i64 = 1000;
const START: i64 = 1_000_000;
/// `deliver_within` of these tests.
const WITHIN: Duration = Duration::from_hours(1);

fn digest(n: u64) -> Digest {
    Digest::from_hex(format!("{n:064x}"))
}

fn person(name: &str) -> Subject {
    Subject::parse(name).unwrap()
}

const DENY: Decision = Decision::Deny { reason: None };
const RESOLVED: End = End::Resolved { who: None, what: None };

fn open(n: u64) -> Reading {
    Reading::Open { digest: digest(n) }
}

fn ended(end: End) -> Reading {
    Reading::Ended(end)
}

/// One interaction and a clock.
struct Play {
    machine: Machine,
    now: i64,
    ids: u128,
    approvals: u32,
}

impl Play {
    fn new() -> Self {
        Self { machine: Machine::opened(digest(1), Millis(START)), now: START, ids: 0, approvals: 1 }
    }

    fn with_approvals(approvals: u32) -> Self {
        Self { approvals, ..Self::new() }
    }

    /// A live claim of Dana's approval.
    fn claimed() -> Self {
        let mut play = Self::new();
        play.press("dana", Decision::Approve);
        play
    }

    /// Dana's approval was sent, and nobody knows whether it arrived.
    fn maybe() -> Self {
        let mut play = Self::claimed();
        play.send();
        play.attempt(Attempted::Unknown);
        play
    }

    /// Dana's approval was perhaps received, and freed because its time was over.
    fn freed_candidate() -> Self {
        let mut play = Self::maybe();
        play.wait(3601);
        play.read(open(1));
        assert!(matches!(play.hand_out(Right::Allowed)[0], Effect::Freed { why: Why::TooLate, .. }));
        play
    }

    /// Dana's approval was accepted and seen to be.
    fn ours() -> Self {
        let mut play = Self::claimed();
        play.send();
        play.attempt(Attempted::Accepted { confirmed: true });
        play
    }

    fn wait(&mut self, seconds: i64) {
        self.now += seconds * SECOND;
    }

    fn step(&mut self, event: Event) -> Vec<Effect> {
        let (machine, effects) = step(self.machine.clone(), event);
        self.machine = machine;
        effects
    }

    fn read(&mut self, reading: Reading) -> Vec<Effect> {
        self.read_begun(reading, self.now)
    }

    fn read_begun(&mut self, reading: Reading, began: i64) -> Vec<Effect> {
        self.step(Event::Read { reading, began: Millis(began), at: Millis(self.now) })
    }

    fn id(&mut self) -> Uuid {
        self.ids += 1;
        Uuid::from_u128(self.ids)
    }

    fn the_press(&mut self, who: &str, action: Action) -> Press {
        // Every earlier voter still may.
        let voters = self.machine.votes.iter().map(|vote| (vote.subject.clone(), Right::Allowed)).collect();
        Press {
            click: ClickId(self.id()),
            answer: AnswerId(self.id()),
            subject: person(who),
            action,
            shown: self.machine.digest.clone(),
            deliver_until: Millis(self.now).plus(WITHIN),
            approvals: self.approvals,
            voters,
        }
    }

    fn press(&mut self, who: &str, decision: Decision) -> Vec<Effect> {
        let press = self.the_press(who, Action::Decide(decision));
        self.step(Event::Press(press))
    }

    fn withdraw(&mut self, who: &str) -> Vec<Effect> {
        let press = self.the_press(who, Action::Withdraw);
        self.step(Event::Press(press))
    }

    fn claim(&self) -> &Claim {
        self.machine.claim().unwrap()
    }

    fn hand_out(&mut self, right: Right) -> Vec<Effect> {
        let answer = self.claim().answer;
        self.step(Event::HandOut { answer, at: Millis(self.now), right })
    }

    fn send(&mut self) {
        let answer = self.claim().answer;
        assert_eq!(self.hand_out(Right::Allowed), [Effect::Send { answer }]);
    }

    fn attempt(&mut self, result: Attempted) -> Vec<Effect> {
        let answer = self.claim().answer;
        self.step(Event::Attempt { answer, at: Millis(self.now), result })
    }

    fn lost(&mut self) -> Vec<Effect> {
        let answer = self.claim().answer;
        self.step(Event::Lost { answer })
    }

    fn refused(&mut self, why: Why, reading: Option<Reading>) -> Vec<Effect> {
        self.attempt(Attempted::Refused { why, reading })
    }

    fn how(&self) -> &How {
        match &self.machine.state {
            State::Settled { how, .. } => how,
            other => panic!("not settled: {other:?}"),
        }
    }

    fn outcome(&self) -> Outcome {
        self.how().outcome()
    }

    fn is_open(&self) -> bool {
        self.machine.state == State::Open
    }

    fn voters(&self) -> Vec<&str> {
        self.machine.votes.iter().map(|vote| vote.subject.as_str()).collect()
    }
}

/// Why the press was refused.
fn refusal(effects: &[Effect]) -> Option<Why> {
    effects.iter().find_map(|effect| match effect {
        Effect::Refused { why, .. } => Some(*why),
        _ => None,
    })
}

/// Why the claim was freed, and whether its clicker hears of it.
fn freed(effects: &[Effect]) -> Option<(Why, bool)> {
    effects.iter().find_map(|effect| match effect {
        Effect::Freed { why, tell, .. } => Some((*why, *tell)),
        _ => None,
    })
}

fn voided(effects: &[Effect]) -> Vec<(&str, Why)> {
    effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Voided { vote, why } => Some((vote.subject.as_str(), *why)),
            _ => None,
        })
        .collect()
}

fn again(effects: &[Effect]) -> Option<Duration> {
    effects.iter().find_map(|effect| match effect {
        Effect::ReadAgain { after } => Some(*after),
        _ => None,
    })
}

fn has(effects: &[Effect], what: fn(&Effect) -> bool) -> bool {
    effects.iter().any(what)
}

fn probes(effects: &[Effect]) -> bool {
    has(effects, |effect| matches!(effect, Effect::Probe { .. }))
}

fn delivered(effects: &[Effect]) -> bool {
    has(effects, |effect| matches!(effect, Effect::Delivered { .. }))
}

fn claimed(effects: &[Effect]) -> bool {
    has(effects, |effect| matches!(effect, Effect::Claimed { .. }))
}

fn counted(effects: &[Effect]) -> bool {
    has(effects, |effect| matches!(effect, Effect::Counted { .. }))
}

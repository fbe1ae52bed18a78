//! The state machine of one interaction: `step(state, event) -> (state, effects)`.
//!
//! Invariants, whatever the order of readings, presses, attempts, crashes and repeats:
//! - at most one claim is live, and a claim exists only for the digest the clicker was shown;
//! - an attempt is handed out only for the live claim, and only one at a time;
//! - a press ends in one outcome: claimed (later delivered or freed), counted, withdrawn, refused;
//! - a settled interaction reopens in two cases only: after an accepted answer of ours that three
//!   readings over at least 30 s contradict, and from `gone` when a reading shows it open.
//!
//! Known races and the decision taken for each:
//! - a reading that began before a newer one that was applied is ignored (a slow list page must not
//!   undo it), also when it says "went on": it may tell of the time before the interaction opened.
//!   Canceled, failed and rejected are always believed: these do not revert;
//! - only [`Event::Read`] changes the digest: its caller stores the form that was read with it;
//! - a reading shows the end while an attempt is in flight: the attempt ends first;
//! - the process dies during an attempt: [`Event::Lost`] makes it "possibly sent";
//! - a claim that may have been received is freed (time over, right lost, form changed): it stays a
//!   candidate, and its body is sent once more when a reading shows the interaction ended.

mod answering;
mod outcome;
mod reading;

pub use outcome::{Contradiction, End, How, Outcome, Reading, Sent, Why};

use crate::domain::clock::Millis;
use crate::domain::form::{Decision, Digest};
use crate::domain::ids::{AnswerId, ClickId, Subject};
use std::time::Duration;

/// How long, and how often, the runtime must contradict an accepted answer before it is believed.
pub const CONTRADICTION: (Duration, u32) = (Duration::from_secs(30), 3);
/// How long after `deliver_until` it is still asked whose answer ended an interaction.
pub const ASKED_FOR: Duration = Duration::from_mins(10);
/// How long a task must stay not found, over two readings, to count as gone.
pub const MISSING: Duration = Duration::from_secs(10);
/// One decision on its way to the runtime.
#[derive(Debug, Clone, PartialEq)]
pub struct Claim {
    pub answer: AnswerId,
    /// 1 for the first claim of the interaction, then 2, 3 …: part of the idempotency key.
    pub number: u32,
    pub click: ClickId,
    pub subject: Subject,
    pub decision: Decision,
    pub digest: Digest,
    /// After this moment it is not sent any more (`deliver_within` after the click).
    pub deliver_until: Millis,
    pub sent: Sent,
    pub in_flight: bool,
    /// A reading showed the interaction ended while it was not known whose answer did it.
    pub ended: Option<End>,
    pub accepted_at: Option<Millis>,
    pub contradiction: Contradiction,
    /// It had been freed before and is only sent once more to find out whose answer ended it.
    pub candidate: bool,
}

/// An accepted press where several approvals are needed.
#[derive(Debug, Clone, PartialEq)]
pub struct Vote {
    pub click: ClickId,
    pub subject: Subject,
    pub digest: Digest,
}

#[derive(Debug, Clone, PartialEq)]
pub enum State {
    Open,
    Answering(Claim),
    Settled { how: How, at: Millis, contradiction: Contradiction },
}

/// The whole of what the machine knows of one interaction.
#[derive(Debug, Clone, PartialEq)]
pub struct Machine {
    pub state: State,
    pub digest: Digest,
    pub votes: Vec<Vote>,
    /// Freed claims that may have been received, oldest first.
    pub candidates: Vec<Claim>,
    /// How many claims there have been.
    pub claims: u32,
    /// When the newest reading applied began.
    pub read_at: Millis,
    /// When the first of the not-found answers in a row came.
    pub missing_since: Option<Millis>,
}

/// Whether a person may (still) do it, checked at the moment of the event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Right {
    Allowed,
    Refused,
    /// Could not be checked: neither yes nor no.
    Unknown,
}
/// What a person pressed.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    Decide(Decision),
    Withdraw,
}

/// A press by a person whom policy allows (the caller has checked; state and digest are checked here too).
#[derive(Debug, Clone, PartialEq)]
pub struct Press {
    pub click: ClickId,
    /// The id of the answer, should this press make the claim.
    pub answer: AnswerId,
    pub subject: Subject,
    pub action: Action,
    /// What the card showed when it was pressed.
    pub shown: Digest,
    pub deliver_until: Millis,
    /// How many distinct subjects must approve.
    pub approvals: u32,
    /// Earlier voters' rights now, as far as they were checked; an unlisted voter is `Unknown`.
    pub voters: Vec<(Subject, Right)>,
}

/// How one attempt to deliver ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Attempted {
    /// The runtime took it. `confirmed` when its answer no longer shows the interaction.
    Accepted { confirmed: bool },
    /// A definite refusal, with what a reading showed right after it (none: it could not be read).
    Refused { why: Why, reading: Option<Reading> },
    /// Nothing reached the runtime.
    NotSent,
    /// It may have been received.
    Unknown,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    Read {
        reading: Reading,
        began: Millis,
        at: Millis,
    },
    Press(Press),
    /// A worker asks whether it may send now, right after a reading.
    HandOut {
        answer: AnswerId,
        at: Millis,
        right: Right,
    },
    /// The attempt ended.
    Attempt {
        answer: AnswerId,
        at: Millis,
        result: Attempted,
    },
    /// The worker that had the attempt is gone (crash, lease lost).
    Lost {
        answer: AnswerId,
    },
}

/// What the caller must write, in the same transaction.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// The press is refused.
    Refused {
        click: ClickId,
        why: Why,
    },
    /// The press is counted as a vote.
    Counted {
        click: ClickId,
    },
    /// The press took back the vote made by `vote`.
    Withdrawn {
        click: ClickId,
        vote: ClickId,
    },
    /// A vote does not count any more.
    Voided {
        vote: Vote,
        why: Why,
    },
    /// The press made the claim: store it, queue its delivery.
    Claimed {
        answer: AnswerId,
    },
    /// The worker may send the live claim's body now.
    Send {
        answer: AnswerId,
    },
    /// Not now: the right could not be checked; try again later.
    Later {
        answer: AnswerId,
    },
    /// Nothing to send for this answer any more.
    Drop {
        answer: AnswerId,
    },
    /// The claim is free; its press is refused (once; a candidate's press was refused before).
    Freed {
        answer: AnswerId,
        click: ClickId,
        why: Why,
        tell: bool,
    },
    /// Send the claim's body once more (or look into the history) to learn whose answer ended it.
    Probe {
        answer: AnswerId,
    },
    /// The press is delivered.
    Delivered {
        answer: AnswerId,
        click: ClickId,
    },
    /// Read this interaction again, this much later.
    ReadAgain {
        after: Duration,
    },
    Settled,
    Reopened,
    /// Every card is to be drawn anew.
    Redraw,
}
/// One step. Pure: the caller loads the machine, steps, and writes state and effects in one transaction.
#[must_use]
pub fn step(mut machine: Machine, event: Event) -> (Machine, Vec<Effect>) {
    let mut effects = vec![];
    match event {
        Event::Read { reading, began, at } => reading::read(&mut machine, reading, began, at, &mut effects),
        Event::Press(press) => answering::pressed(&mut machine, &press, &mut effects),
        Event::HandOut { answer, at, right } => {
            answering::hand_out(&mut machine, answer, at, right, &mut effects);
        }
        Event::Attempt { answer, at, result } => {
            answering::attempted(&mut machine, answer, at, result, &mut effects);
        }
        Event::Lost { answer } => {
            if let State::Answering(claim) = &mut machine.state
                && claim.answer == answer
                && claim.in_flight
            {
                claim.in_flight = false;
                claim.sent = Sent::Maybe;
                if claim.ended.is_some() {
                    effects.push(Effect::Probe { answer });
                }
            }
        }
    }
    (machine, effects)
}
#[cfg(test)]
#[path = "interaction_tests.rs"]
mod tests;

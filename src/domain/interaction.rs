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

use crate::domain::clock::Millis;
use crate::domain::form::{Decision, Digest};
use crate::domain::ids::{AnswerId, ClickId, Subject};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How long, and how often, the runtime must contradict an accepted answer before it is believed.
pub const CONTRADICTION: (Duration, u32) = (Duration::from_secs(30), 3);
/// How long after `deliver_until` it is still asked whose answer ended an interaction.
pub const ASKED_FOR: Duration = Duration::from_mins(10);
/// How long a task must stay not found, over two readings, to count as gone.
pub const MISSING: Duration = Duration::from_secs(10);

/// How an interaction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Approved,
    Denied,
    Answered,
    Connected,
    Declined,
    Canceled,
    Failed,
    /// Answered elsewhere.
    Elsewhere,
    /// Ended, and no reading says how.
    Gone,
}

impl Outcome {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Approved => "approved",
            Self::Denied => "denied",
            Self::Answered => "answered",
            Self::Connected => "connected",
            Self::Declined => "declined",
            Self::Canceled => "canceled",
            Self::Failed => "failed",
            Self::Elsewhere => "elsewhere",
            Self::Gone => "gone",
        }
    }

    /// The outcome a decision leads to when the runtime accepts it.
    #[must_use]
    pub fn of(decision: &Decision) -> Self {
        match decision {
            Decision::Approve => Self::Approved,
            Decision::Deny { .. } => Self::Denied,
            Decision::Answer { .. } => Self::Answered,
            Decision::Connected => Self::Connected,
            Decision::Decline => Self::Declined,
        }
    }
}

/// An end that an authoritative reading showed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "snake_case")]
pub enum End {
    /// The runtime went on; where its history tells, by whom and with what.
    Resolved {
        who: Option<String>,
        what: Option<Outcome>,
    },
    Canceled,
    Failed,
    Rejected,
    Gone,
}

/// What one authoritative reading showed of this interaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reading {
    Open {
        digest: Digest,
    },
    Ended(End),
    /// Not found; `doubted` when the brake on mass disappearance holds it back.
    NotFound {
        doubted: bool,
    },
}

/// How a settled interaction ended, with what is known about who did it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum How {
    /// Our answer was accepted.
    Ours {
        answer: AnswerId,
        click: ClickId,
        subject: Subject,
        decision: Decision,
    },
    Elsewhere {
        who: Option<String>,
        what: Option<Outcome>,
    },
    Canceled,
    Failed,
    Rejected,
    Gone,
}

impl How {
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        match self {
            Self::Ours { decision, .. } => Outcome::of(decision),
            Self::Elsewhere { .. } => Outcome::Elsewhere,
            Self::Canceled => Outcome::Canceled,
            Self::Failed | Self::Rejected => Outcome::Failed,
            Self::Gone => Outcome::Gone,
        }
    }

    fn of(end: End) -> Self {
        match end {
            End::Resolved { who, what } => Self::Elsewhere { who, what },
            End::Canceled => Self::Canceled,
            End::Failed => Self::Failed,
            End::Rejected => Self::Rejected,
            End::Gone => Self::Gone,
        }
    }
}

/// What is known of a claim's way to the runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sent {
    /// No attempt left this machine.
    Never,
    /// An attempt may have been received.
    Maybe,
    /// The runtime accepted it, and its task still showed the interaction.
    Accepted,
    /// The runtime refused it definitely; a reading has yet to say whether it is still open.
    Refused(Why),
}

/// Readings that contradict an accepted answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Contradiction {
    pub first: Option<Millis>,
    pub count: u32,
}

impl Contradiction {
    /// Counts one more "still open" (each reading once); true when it is to be believed.
    fn seen(&mut self, began: Millis) -> bool {
        let first = *self.first.get_or_insert(began);
        self.count += 1;
        self.count >= CONTRADICTION.1 && began.since(first) >= CONTRADICTION.0
    }
}

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

/// Why a press came to nothing, or a claim was freed. The clicker's notice says it in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// Settled before the press.
    AlreadyEnded,
    /// Another person's decision is on its way.
    BeingAnswered,
    /// The same person's decision is recorded already.
    AlreadyRecorded,
    /// The interaction is not what the card showed.
    Changed,
    /// No vote of this person to take back.
    NoVote,
    /// A vote could not be checked; nothing was counted.
    Unverified,
    /// The right was lost between click and sending.
    RightLost,
    /// `deliver_within` is over.
    TooLate,
    /// The runtime lets only the owner answer.
    NotOwner,
    /// The runtime refuses this subject.
    Forbidden,
    /// The runtime did not take the answer, and still waits.
    NotAccepted,
    /// The runtime ended it before delivery could be confirmed.
    Unconfirmed,
    /// The runtime accepted it and went on showing it open.
    Contradicted,
    /// Our message was malformed for the runtime: operators are told.
    Malformed,
    /// The subject cannot be carried to this runtime.
    Unmappable,
}

impl Why {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AlreadyEnded => "already_ended",
            Self::BeingAnswered => "being_answered",
            Self::AlreadyRecorded => "already_recorded",
            Self::Changed => "changed",
            Self::NoVote => "no_vote",
            Self::Unverified => "unverified",
            Self::RightLost => "right_lost",
            Self::TooLate => "too_late",
            Self::NotOwner => "not_owner",
            Self::Forbidden => "forbidden",
            Self::NotAccepted => "not_accepted",
            Self::Unconfirmed => "unconfirmed",
            Self::Contradicted => "contradicted",
            Self::Malformed => "malformed",
            Self::Unmappable => "unmappable",
        }
    }
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

impl Machine {
    /// A newly observed open interaction.
    #[must_use]
    pub fn opened(digest: Digest, began: Millis) -> Self {
        Self {
            state: State::Open,
            digest,
            votes: vec![],
            candidates: vec![],
            claims: 0,
            read_at: began,
            missing_since: None,
        }
    }

    /// The live claim, if there is one.
    #[must_use]
    pub fn claim(&self) -> Option<&Claim> {
        match &self.state {
            State::Answering(claim) => Some(claim),
            _ => None,
        }
    }

    /// The word of the `state` column.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self.state {
            State::Open => "open",
            State::Answering(_) => "answering",
            State::Settled { .. } => "settled",
        }
    }

    fn settle(&mut self, how: How, at: Millis, effects: &mut Vec<Effect>) {
        // Votes are spent: they do not count again should it reopen.
        self.votes.clear();
        self.state = State::Settled { how, at, contradiction: Contradiction::default() };
        effects.extend([Effect::Settled, Effect::Redraw]);
    }

    /// Frees the live claim. What may have been received stays a candidate.
    fn free(&mut self, why: Why, effects: &mut Vec<Effect>) {
        let State::Answering(claim) = std::mem::replace(&mut self.state, State::Open) else { return };
        effects.push(Effect::Freed { answer: claim.answer, click: claim.click, why, tell: !claim.candidate });
        // The subject was refused, not the others: only the vote that completed the number goes.
        if let Some(at) = self.votes.iter().position(|vote| vote.subject == claim.subject) {
            let vote = self.votes.remove(at);
            effects.push(Effect::Voided { vote, why });
        }
        if matches!(claim.sent, Sent::Maybe | Sent::Accepted) {
            self.candidates.push(Claim { in_flight: false, ended: None, candidate: true, ..claim });
        }
        effects.push(Effect::Redraw);
    }

    /// The interaction ended and nothing of ours is in doubt, or each candidate is asked first.
    fn end(&mut self, end: End, at: Millis, effects: &mut Vec<Effect>) {
        if self.candidates.is_empty() {
            self.settle(How::of(end), at, effects);
        } else {
            let claim = self.candidates.remove(0);
            let answer = claim.answer;
            self.state = State::Answering(Claim {
                ended: Some(end),
                candidate: true,
                sent: Sent::Maybe,
                in_flight: false,
                ..claim
            });
            effects.push(Effect::Probe { answer });
        }
    }

    /// The live claim did not end it: its press is refused, the next candidate is asked or it settles.
    /// `said` is what the runtime refused it with, if it did.
    fn not_ours(&mut self, end: End, said: Option<Why>, at: Millis, effects: &mut Vec<Effect>) {
        let unconfirmed = said == Some(Why::Unconfirmed);
        let (end, why) = match end {
            // It may have been ours, and no reading says how it ended.
            End::Resolved { who: None, what: None } if unconfirmed => (End::Gone, Why::Unconfirmed),
            end @ End::Resolved { .. } => (end, Why::AlreadyEnded),
            end if unconfirmed => (end, Why::Unconfirmed),
            end => (end, Why::AlreadyEnded),
        };
        if let State::Answering(claim) = std::mem::replace(&mut self.state, State::Open) {
            effects.push(Effect::Freed {
                answer: claim.answer,
                click: claim.click,
                why,
                tell: !claim.candidate,
            });
        }
        self.void_votes(Why::AlreadyEnded, effects);
        self.end(end, at, effects);
    }

    fn ours(&mut self, at: Millis, effects: &mut Vec<Effect>) {
        let State::Answering(claim) = &self.state else { return };
        let how = How::Ours {
            answer: claim.answer,
            click: claim.click,
            subject: claim.subject.clone(),
            decision: claim.decision.clone(),
        };
        effects.push(Effect::Delivered { answer: claim.answer, click: claim.click });
        self.settle(how, at, effects);
    }

    fn void_votes(&mut self, why: Why, effects: &mut Vec<Effect>) {
        for vote in self.votes.drain(..) {
            effects.push(Effect::Voided { vote, why });
        }
    }

    fn change_digest(&mut self, digest: Digest, effects: &mut Vec<Effect>) {
        self.digest = digest;
        self.void_votes(Why::Changed, effects);
        effects.push(Effect::Redraw);
    }
}

/// One step. Pure: the caller loads the machine, steps, and writes state and effects in one transaction.
#[must_use]
pub fn step(mut machine: Machine, event: Event) -> (Machine, Vec<Effect>) {
    let mut effects = vec![];
    match event {
        Event::Read { reading, began, at } => read(&mut machine, reading, began, at, &mut effects),
        Event::Press(press) => pressed(&mut machine, press, &mut effects),
        Event::HandOut { answer, at, right } => hand_out(&mut machine, answer, at, right, &mut effects),
        Event::Attempt { answer, at, result } => attempted(&mut machine, answer, at, result, &mut effects),
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

fn read(machine: &mut Machine, reading: Reading, began: Millis, at: Millis, effects: &mut Vec<Effect>) {
    match reading {
        Reading::NotFound { doubted } => {
            if matches!(machine.state, State::Settled { .. }) || began < machine.read_at {
                return;
            }
            let first = *machine.missing_since.get_or_insert(began);
            if began.since(first) < MISSING {
                effects.push(Effect::ReadAgain { after: MISSING });
            } else if !doubted {
                ended(machine, End::Gone, at, effects);
            }
        }
        Reading::Ended(End::Resolved { .. }) if began < machine.read_at => {}
        Reading::Ended(end) => {
            machine.read_at = machine.read_at.max(began);
            machine.missing_since = None;
            ended(machine, end, at, effects);
        }
        Reading::Open { digest } => {
            if began < machine.read_at {
                return;
            }
            let new = began > machine.read_at;
            machine.read_at = began;
            machine.missing_since = None;
            still_open(machine, digest, (began, new), effects);
        }
    }
}

fn ended(machine: &mut Machine, end: End, at: Millis, effects: &mut Vec<Effect>) {
    match &mut machine.state {
        // A reading agrees with our accepted answer: what contradicted it before was stale.
        State::Settled { contradiction, .. } => *contradiction = Contradiction::default(),
        State::Open => {
            machine.void_votes(Why::AlreadyEnded, effects);
            machine.end(end, at, effects);
        }
        State::Answering(claim) if claim.in_flight => claim.ended = Some(end),
        State::Answering(claim) => match claim.sent {
            Sent::Accepted => machine.ours(at, effects),
            Sent::Never => machine.not_ours(end, None, at, effects),
            Sent::Refused(why) => machine.not_ours(end, Some(why), at, effects),
            Sent::Maybe => {
                let answer = claim.answer;
                if claim.ended.is_none() {
                    effects.push(Effect::Probe { answer });
                }
                claim.ended = Some(end);
            }
        },
    }
}

/// `new`: this reading began after every one applied before, so it counts as one more.
fn still_open(
    machine: &mut Machine,
    digest: Digest,
    (began, new): (Millis, bool),
    effects: &mut Vec<Effect>,
) {
    let changed = machine.digest != digest;
    match &mut machine.state {
        State::Open => {
            if changed {
                machine.change_digest(digest, effects);
            }
        }
        State::Answering(claim) => {
            // A later reading shows it open: an earlier "ended" was a stale replica's, or was undone.
            if !claim.in_flight && !claim.candidate {
                claim.ended = None;
            }
            let (in_flight, sent, candidate) = (claim.in_flight, claim.sent, claim.candidate);
            if changed {
                machine.change_digest(digest, effects);
            }
            if in_flight {
                return;
            }
            let State::Answering(claim) = &mut machine.state else { return };
            match sent {
                Sent::Refused(why) => machine.free(why, effects),
                Sent::Accepted => {
                    if new
                        && claim.accepted_at.is_none_or(|accepted| began >= accepted)
                        && claim.contradiction.seen(began)
                    {
                        effects.push(Effect::Reopened);
                        machine.free(Why::Contradicted, effects);
                    } else {
                        effects.push(Effect::ReadAgain { after: CONTRADICTION.0 / 2 });
                    }
                }
                Sent::Never | Sent::Maybe if candidate => machine.free(Why::Unconfirmed, effects),
                Sent::Never | Sent::Maybe if changed => machine.free(Why::Changed, effects),
                Sent::Never | Sent::Maybe => {}
            }
        }
        State::Settled { how, at, contradiction } => {
            let reopen = match how {
                How::Gone => began >= *at,
                How::Ours { .. } if began >= *at => {
                    let believed = new && contradiction.seen(began);
                    if !believed {
                        effects.push(Effect::ReadAgain { after: CONTRADICTION.0 / 2 });
                    }
                    believed
                }
                _ => false,
            };
            if reopen {
                machine.state = State::Open;
                effects.push(Effect::Reopened);
                machine.change_digest(digest, effects);
            }
        }
    }
}

fn pressed(machine: &mut Machine, press: Press, effects: &mut Vec<Effect>) {
    let click = press.click;
    let refuse = |why| Effect::Refused { click, why };
    match &machine.state {
        State::Settled { .. } => return effects.extend([refuse(Why::AlreadyEnded), Effect::Redraw]),
        State::Answering(claim) if claim.subject == press.subject && !claim.candidate => {
            return effects.push(refuse(Why::AlreadyRecorded));
        }
        State::Answering(_) => return effects.push(refuse(Why::BeingAnswered)),
        State::Open => {}
    }
    if press.shown != machine.digest {
        return effects.extend([refuse(Why::Changed), Effect::Redraw]);
    }
    let own_vote = machine.votes.iter().position(|vote| vote.subject == press.subject);
    match press.action {
        Action::Withdraw => match own_vote {
            Some(at) => {
                let vote = machine.votes.remove(at);
                effects.extend([Effect::Withdrawn { click, vote: vote.click }, Effect::Redraw]);
            }
            None => effects.push(refuse(Why::NoVote)),
        },
        Action::Decide(Decision::Approve) if press.approvals > 1 => {
            if own_vote.is_some() {
                return effects.push(refuse(Why::AlreadyRecorded));
            }
            vote(machine, &press, effects);
        }
        Action::Decide(ref decision) => {
            let decision = decision.clone();
            claim(machine, &press, decision, effects);
        }
    }
}

/// Counts an approval; the one that completes the number makes the claim, after every earlier
/// voter was checked again.
fn vote(machine: &mut Machine, press: &Press, effects: &mut Vec<Effect>) {
    let needed = usize::try_from(press.approvals).unwrap_or(usize::MAX);
    if machine.votes.len() + 1 >= needed {
        let right = |subject: &Subject| {
            press.voters.iter().find(|(s, _)| s == subject).map_or(Right::Unknown, |(_, right)| *right)
        };
        if machine.votes.iter().any(|vote| right(&vote.subject) == Right::Unknown) {
            return effects.push(Effect::Refused { click: press.click, why: Why::Unverified });
        }
        let (keep, lost): (Vec<_>, Vec<_>) =
            machine.votes.drain(..).partition(|vote| right(&vote.subject) == Right::Allowed);
        machine.votes = keep;
        effects.extend(lost.into_iter().map(|vote| Effect::Voided { vote, why: Why::RightLost }));
    }
    machine.votes.push(Vote {
        click: press.click,
        subject: press.subject.clone(),
        digest: press.shown.clone(),
    });
    if machine.votes.len() >= needed {
        claim(machine, press, Decision::Approve, effects);
    } else {
        effects.extend([Effect::Counted { click: press.click }, Effect::Redraw]);
    }
}

fn claim(machine: &mut Machine, press: &Press, decision: Decision, effects: &mut Vec<Effect>) {
    machine.claims += 1;
    machine.state = State::Answering(Claim {
        answer: press.answer,
        number: machine.claims,
        click: press.click,
        subject: press.subject.clone(),
        decision,
        digest: press.shown.clone(),
        deliver_until: press.deliver_until,
        sent: Sent::Never,
        in_flight: false,
        ended: None,
        accepted_at: None,
        contradiction: Contradiction::default(),
        candidate: false,
    });
    effects.extend([Effect::Claimed { answer: press.answer }, Effect::Redraw]);
}

fn hand_out(machine: &mut Machine, answer: AnswerId, at: Millis, right: Right, effects: &mut Vec<Effect>) {
    let digest = machine.digest.clone();
    let State::Answering(claim) = &mut machine.state else {
        return effects.push(Effect::Drop { answer });
    };
    if claim.answer != answer {
        return effects.push(Effect::Drop { answer });
    }
    if claim.in_flight || matches!(claim.sent, Sent::Accepted | Sent::Refused(_)) {
        // The attempt in flight, or the next reading, goes first.
        return effects.push(Effect::Later { answer });
    }
    if claim.ended.is_some() {
        if at > claim.deliver_until.plus(ASKED_FOR) && !claim.candidate {
            let end = claim.ended.clone().unwrap_or(End::Gone);
            return machine.not_ours(end, Some(Why::Unconfirmed), at, effects);
        }
        claim.in_flight = true;
        return effects.push(Effect::Send { answer });
    }
    if machine.missing_since.is_some() && claim.sent != Sent::Never {
        // The last reading did not find it: whether it is still open has to be read first.
        return effects.push(Effect::Later { answer });
    }
    let lost = if right == Right::Refused {
        Some(Why::RightLost)
    } else if claim.digest != digest {
        Some(Why::Changed)
    } else if at > claim.deliver_until {
        Some(Why::TooLate)
    } else {
        None
    };
    match (lost, right) {
        (Some(why), _) => machine.free(why, effects),
        (None, Right::Allowed) if machine.missing_since.is_none() => {
            claim.in_flight = true;
            effects.push(Effect::Send { answer });
        }
        (None, _) => effects.push(Effect::Later { answer }),
    }
}

fn attempted(
    machine: &mut Machine,
    answer: AnswerId,
    at: Millis,
    result: Attempted,
    effects: &mut Vec<Effect>,
) {
    let State::Answering(claim) = &mut machine.state else { return };
    if claim.answer != answer {
        return;
    }
    claim.in_flight = false;
    match result {
        Attempted::Accepted { confirmed } => {
            if confirmed || claim.ended.is_some() {
                machine.ours(at, effects);
            } else {
                claim.sent = Sent::Accepted;
                claim.accepted_at = Some(at);
                effects.extend([Effect::ReadAgain { after: Duration::from_secs(3) }, Effect::Redraw]);
            }
        }
        Attempted::Refused { why, reading } => {
            let end = match (claim.ended.take(), &reading) {
                (_, Some(Reading::Ended(end))) => Some(end.clone()),
                (Some(_), Some(Reading::Open { .. })) if !claim.candidate => None,
                (ended, _) => ended,
            };
            match (end, reading) {
                (Some(end), _) => machine.not_ours(end, Some(why), at, effects),
                (None, Some(Reading::Open { digest })) => {
                    if machine.digest != digest {
                        effects.push(Effect::ReadAgain { after: Duration::ZERO });
                    }
                    // A definite refusal: nothing of it can have been received, unless an earlier try was.
                    machine.refuse(why, effects);
                }
                (None, Some(Reading::NotFound { .. })) => {
                    machine.refuse(why, effects);
                    machine.missing_since.get_or_insert(at);
                    effects.push(Effect::ReadAgain { after: MISSING });
                }
                (None, _) => {
                    claim.sent = Sent::Refused(why);
                    effects.push(Effect::ReadAgain { after: Duration::from_secs(1) });
                }
            }
        }
        Attempted::NotSent => {
            if let Some(end) = claim.ended.take() {
                if claim.sent == Sent::Never {
                    machine.not_ours(end, None, at, effects);
                } else {
                    claim.ended = Some(end);
                    effects.push(Effect::Probe { answer });
                }
            }
        }
        Attempted::Unknown => {
            claim.sent = Sent::Maybe;
            if claim.ended.is_some() {
                effects.push(Effect::Probe { answer });
            }
        }
    }
}

impl Machine {
    /// Frees after a definite refusal: the runtime has said that this body did not count, so it is
    /// no candidate even when an earlier attempt's fate was unknown (a replay would have succeeded).
    fn refuse(&mut self, why: Why, effects: &mut Vec<Effect>) {
        if let State::Answering(claim) = &mut self.state {
            claim.sent = Sent::Refused(why);
        }
        self.free(why, effects);
    }
}

#[cfg(test)]
#[path = "interaction_tests.rs"]
mod tests;

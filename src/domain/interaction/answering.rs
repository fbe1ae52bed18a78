//! Presses, votes, claims and attempts: the way of a decision.
//!
//! Invariant: one live claim, one attempt at a time, and each press ends in one outcome.

use super::{ASKED_FOR, Contradiction, End, How, MISSING, Reading, Sent, Why};
use super::{Action, Attempted, Claim, Effect, Machine, Press, Right, State, Vote};
use crate::domain::clock::Millis;
use crate::domain::form::{Decision, Digest};
use crate::domain::ids::{AnswerId, Subject};
use std::time::Duration;

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

    pub(super) fn settle(&mut self, how: How, at: Millis, effects: &mut Vec<Effect>) {
        // Votes are spent: they do not count again should it reopen.
        self.votes.clear();
        self.state = State::Settled { how, at, contradiction: Contradiction::default() };
        effects.extend([Effect::Settled, Effect::Redraw]);
    }

    /// Frees the live claim. What may have been received stays a candidate.
    pub(super) fn free(&mut self, why: Why, effects: &mut Vec<Effect>) {
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
    pub(super) fn end(&mut self, end: End, at: Millis, effects: &mut Vec<Effect>) {
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
    pub(super) fn not_ours(&mut self, end: End, said: Option<Why>, at: Millis, effects: &mut Vec<Effect>) {
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

    pub(super) fn ours(&mut self, at: Millis, effects: &mut Vec<Effect>) {
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

    pub(super) fn void_votes(&mut self, why: Why, effects: &mut Vec<Effect>) {
        for vote in self.votes.drain(..) {
            effects.push(Effect::Voided { vote, why });
        }
    }

    pub(super) fn change_digest(&mut self, digest: Digest, effects: &mut Vec<Effect>) {
        self.digest = digest;
        self.void_votes(Why::Changed, effects);
        effects.push(Effect::Redraw);
    }
}

pub(super) fn pressed(machine: &mut Machine, press: &Press, effects: &mut Vec<Effect>) {
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
    match &press.action {
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
            vote(machine, press, effects);
        }
        Action::Decide(decision) => claim(machine, press, decision.clone(), effects),
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

pub(super) fn hand_out(
    machine: &mut Machine,
    answer: AnswerId,
    at: Millis,
    right: Right,
    effects: &mut Vec<Effect>,
) {
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

pub(super) fn attempted(
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
    pub(super) fn refuse(&mut self, why: Why, effects: &mut Vec<Effect>) {
        if let State::Answering(claim) = &mut self.state {
            claim.sent = Sent::Refused(why);
        }
        self.free(why, effects);
    }
}

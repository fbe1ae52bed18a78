//! What a reading does to an interaction.
//!
//! Invariant: an older reading never undoes a newer one, and one reading counts once.

use super::{CONTRADICTION, Contradiction, End, How, MISSING, Reading, Sent, Why};
use super::{Effect, Machine, State};
use crate::domain::clock::Millis;
use crate::domain::form::Digest;

pub(super) fn read(
    machine: &mut Machine,
    reading: Reading,
    began: Millis,
    at: Millis,
    effects: &mut Vec<Effect>,
) {
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

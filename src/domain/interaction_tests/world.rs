//! A model of what is outside the machine: a runtime with its truth over time, attempts on their way,
//! workers that die. It accepts one answer, replays the acceptance for the same answer, refuses others.

use super::*;

/// The moment the interaction opened in the runtime.
pub(super) const OPENED: i64 = START;

/// An attempt that a worker is making.
#[derive(Debug, Clone, Copy)]
pub(super) struct Flight {
    pub(super) answer: AnswerId,
}

/// What becomes of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// It arrives, and its response too; `lag`: what is read beside it is that old.
    Answered { lag: i64, read: bool },
    /// It never leaves.
    NotSent,
    /// It is lost on the way.
    LostOnTheWay,
    /// It arrives, its response does not.
    ResponseLost,
    /// It arrives later, and its response does not.
    Slow,
    /// Refused at the door, whatever the interaction's state.
    Door,
}

pub(super) struct World {
    pub(super) now: i64,
    /// What the runtime shows, and since when.
    log: Vec<(i64, Reading)>,
    pub(super) accepted: Option<AnswerId>,
    pub(super) flight: Option<Flight>,
    /// The worker of this attempt died; the next one notices.
    pub(super) orphan: Option<AnswerId>,
    /// Copies that are still on their way.
    pub(super) slow: Vec<AnswerId>,
    /// Refused for good, or given up, before it was accepted: it cannot be known as ours.
    pub(super) disowned: Vec<AnswerId>,
    forms: u64,
}

impl World {
    pub(super) fn new() -> Self {
        Self {
            now: OPENED + 10,
            log: vec![(i64::MIN, ended(RESOLVED)), (OPENED, open(1))],
            accepted: None,
            flight: None,
            orphan: None,
            slow: vec![],
            disowned: vec![],
            forms: 1,
        }
    }

    pub(super) fn truth(&self) -> &Reading {
        &self.log.last().unwrap().1
    }

    /// What was true at that moment.
    pub(super) fn at(&self, moment: i64) -> Reading {
        self.log.iter().rev().find(|(since, _)| *since <= moment).unwrap().1.clone()
    }

    /// A reading by a replica that lags; none lags to before the interaction opened.
    pub(super) fn lagging(&self, lag: i64) -> Reading {
        self.at((self.now - lag).max(OPENED))
    }

    pub(super) fn is_open(&self) -> bool {
        matches!(self.truth(), Reading::Open { .. })
    }

    /// Whether that was ever true since it opened.
    pub(super) fn was(&self, reading: &Reading) -> bool {
        self.log.iter().skip(1).any(|(_, shown)| shown == reading)
    }

    fn becomes(&mut self, reading: Reading) {
        self.now += 1;
        self.log.push((self.now, reading));
        self.now += 1;
    }

    /// The runtime asks something else under the same id.
    pub(super) fn edit(&mut self) {
        if self.is_open() {
            self.forms += 1;
            self.becomes(open(self.forms));
        }
    }

    /// It ends without us (a task that went on may still fail or be canceled).
    pub(super) fn end(&mut self, end: End) {
        match self.truth() {
            Reading::Open { .. } => self.becomes(ended(end)),
            Reading::Ended(End::Resolved { .. }) if end != RESOLVED => self.becomes(ended(end)),
            _ => {}
        }
    }

    /// A copy of the answer arrives: whether it is (or was) accepted.
    pub(super) fn arrives(&mut self, answer: AnswerId) -> bool {
        if self.accepted == Some(answer) {
            return true;
        }
        let fresh = self.is_open();
        if fresh {
            assert_eq!(self.accepted, None);
            self.accepted = Some(answer);
            self.becomes(ended(RESOLVED));
        }
        fresh
    }

    /// How the attempt in flight ends for the worker that made it.
    pub(super) fn finish(&mut self, answer: AnswerId, fate: Fate) -> Attempted {
        match fate {
            Fate::Answered { lag, read } => {
                if self.arrives(answer) {
                    let shown = self.lagging(lag);
                    return Attempted::Accepted { confirmed: !matches!(shown, Reading::Open { .. }) };
                }
                let reading = read.then(|| self.lagging(lag));
                let still = matches!(reading, Some(Reading::Open { .. }));
                Attempted::Refused { why: if still { Why::NotAccepted } else { Why::AlreadyEnded }, reading }
            }
            Fate::NotSent => Attempted::NotSent,
            Fate::LostOnTheWay => Attempted::Unknown,
            Fate::ResponseLost => {
                self.arrives(answer);
                Attempted::Unknown
            }
            Fate::Slow => {
                self.slow.push(answer);
                Attempted::Unknown
            }
            Fate::Door => {
                self.disowned.push(answer);
                Attempted::Refused { why: Why::Forbidden, reading: Some(self.truth().clone()) }
            }
        }
    }
}

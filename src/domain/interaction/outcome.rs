//! How interactions, readings and claims can stand: the words of the state machine.
//!
//! Invariant: nothing here decides; an outcome is named once and read back as it was written.

use super::CONTRADICTION;
use crate::domain::clock::Millis;
use crate::domain::form::{Decision, Digest};
use crate::domain::ids::{AnswerId, ClickId, Subject};
use serde::{Deserialize, Serialize};

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

    pub(super) fn of(end: End) -> Self {
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
    pub(super) fn seen(&mut self, began: Millis) -> bool {
        let first = *self.first.get_or_insert(began);
        self.count += 1;
        self.count >= CONTRADICTION.1 && began.since(first) >= CONTRADICTION.0
    }
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

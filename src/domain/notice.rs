//! What a clicker is told privately.
//!
//! Invariant: every refusal has a notice that says what to do next; the words are the templates'.
//! Names in here are raw text: the platform's renderer neutralises them.

use crate::domain::card::PersonRef;
use crate::domain::clock::Millis;
use crate::domain::interaction::{Outcome, Why};
use crate::domain::policy::Unfit;
use serde::{Deserialize, Serialize};

/// A private message to the person who pressed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "notice", rename_all = "snake_case")]
pub enum Notice {
    /// Settled before the press.
    AlreadyEnded { outcome: Outcome, by: Option<PersonRef>, at: Millis },
    /// Somebody else's decision is on its way.
    BeingAnswered { by: PersonRef },
    /// The account is linked to no subject: what to do about it.
    Unlinked { user: String },
    /// Guests, strangers, bots and the like.
    Unfit { what: Unfit },
    /// Not among those who may answer.
    NotAllowed { groups: Vec<String> },
    /// The agent works for this person and the route forbids self-approval.
    SelfApproval,
    /// A fact could not be read: try again.
    CouldNotCheck,
    /// Something on the card was cut, so it cannot be approved before all of it was opened.
    MustView,
    /// A denial needs a reason here.
    NeedsReason,
    /// The card was drawn before the route asked for what it asks now; it is drawn anew.
    Outdated,
    /// Something could not be opened in time: press again.
    PressAgain,
    /// The platform limits how often something may be opened just now.
    OpensLater,
    /// The control is of a message nobody knows any more.
    UnknownControl,
    /// No install of ours matches where it was pressed.
    NotInstalled,
    /// The state machine's reason.
    Refused { why: Why, by: Option<PersonRef> },
    /// A vote of this person does not count any more.
    VoteVoided { why: Why },
    /// Kept, and not delivered yet: the runtime does not answer.
    StillTrying,
    /// Kept, and operators must mend the connection to the runtime first.
    NeedsAttention,
    /// Kept, and sent when operators take their stop back.
    Paused,
    /// Any of these about a decision that came with words of the person's own, which are given back.
    WithWords { about: Box<Self>, words: String },
}

impl Notice {
    /// Gives back what the person had typed, so that it is not lost with the refusal.
    #[must_use]
    pub fn with_words(self, words: Option<&str>) -> Self {
        match words {
            Some(words) => Self::WithWords { about: Box::new(self), words: words.to_owned() },
            None => self,
        }
    }
}

//! What waits for one person: what `/countersign open` and the Home show.
//!
//! Invariant: an interaction is listed for a person only when policy lets that person answer it now. What
//! could not be checked is counted, never listed. Texts in here are raw: the platform's renderer
//! neutralises every one of them.

use crate::domain::clock::Millis;
use crate::domain::form::Kind;
use crate::domain::notice::Notice;
use crate::domain::policy::Unfit;

/// As many interactions are listed; the rest is counted.
pub const LISTED: usize = 20;
/// As many kept notices are shown.
pub const NOTICES: usize = 3;

/// What one chat account is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    pub what: What,
    /// Private notices that reached them in no other way, the oldest first, and since when they wait.
    pub notices: Vec<(Notice, Millis)>,
}

/// What waits, or why nothing can be said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// Guests, strangers and the like never answer.
    Unfit {
        what: Unfit,
    },
    /// The account, as an operator writes it, is linked to no subject.
    Unlinked {
        user: String,
    },
    /// The account could not be read.
    CouldNotCheck,
    Listed(List),
}

/// The interactions this person may answer, the oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct List {
    pub items: Vec<Item>,
    /// How many more there are.
    pub more: usize,
    /// For so many it could not be checked whether this person may answer.
    pub unchecked: usize,
    /// More are open than were looked through: the numbers say "at least".
    pub beyond: bool,
}

/// One interaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    pub kind: Kind,
    /// What is asked: the title, or the prompt where there is none.
    pub title: String,
    pub agent: String,
    pub runtime: String,
    pub opened: Millis,
    pub short_id: String,
    /// Votes cast, and how many are needed.
    pub voted: usize,
    pub needed: u32,
    /// The address of the nearest card's message.
    pub link: Option<String>,
    /// The channel it is in, by the platform's id.
    pub channel: Option<String>,
}

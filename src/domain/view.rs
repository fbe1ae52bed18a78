//! What opens in front of one person: a form that asks for a reason, or the whole text of a card.
//!
//! Invariant: opening and turning pages is navigation. It decides nothing and stores no click; what a
//! person does in a view comes back with its opaque token, and only then is anything judged. Texts in
//! here are raw: the platform's renderer neutralises every one of them. A platform may open a view by a
//! call of its own (Slack) or draw it into the answer to the press (Discord).

use crate::domain::card::Card;
use crate::domain::ids::CardId;
use crate::domain::notice::Notice;

/// A reason with a denial is at most this many characters: it fits on the card it ends up on.
pub const REASON_LENGTH: usize = 2_000;

/// What opens.
#[derive(Debug, Clone, PartialEq)]
pub struct View {
    pub card: CardId,
    /// The card's revision from which it was opened.
    pub rev: i64,
    /// What the card says now.
    pub about: Card,
    pub content: Content,
}

/// What it shows.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// One field for the reason of a denial; submitting it is the click.
    DenyReason { token: String },
    /// The second question before an approval counts; pressing its button is the click. Only where the platform
    /// does not ask by itself.
    Confirm { token: String },
    /// A page of everything.
    ShowAll(Page),
    /// In the place of a page: why there is nothing to read any more.
    Told(Notice),
}

/// One page of the whole text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// 1 for the first.
    pub at: usize,
    pub of: usize,
    /// The tokens of the pages beside it.
    pub previous: Option<String>,
    pub next: Option<String>,
    /// Reading to the end lets this person approve.
    pub unlocks: bool,
}

impl Page {
    /// Whoever sees this page has opened the text to its end.
    #[must_use]
    pub fn is_last(&self) -> bool {
        self.at >= self.of
    }
}

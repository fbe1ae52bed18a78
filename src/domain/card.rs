//! What a card says, neutral of any platform.
//!
//! Invariant: a card is a projection of stored state; drawing the same state twice gives the same
//! card. Texts in here are raw: the platform's renderer neutralises every one of them.

use crate::domain::clock::Millis;
use crate::domain::form::{Fact, Form, Kind};
use crate::domain::interaction::Outcome;
use serde::{Deserialize, Serialize};

/// A person as a card names them: by mention where the card's platform has an account of theirs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PersonRef {
    pub subject: String,
    /// The user id to mention in the card's own install, if they have one there.
    pub mention: Option<String>,
}

/// A control, labelled exactly so in English.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Control {
    Approve,
    /// `Approve` that the platform asks once more about before the press counts (`confirm`). It is a
    /// control of its own, so that a press of a plain `Approve` from before the route asked for it is known.
    ApproveConfirmed,
    Deny,
    /// Opens a form with one field; a denial once it is submitted.
    DenyReason,
    /// Opens the whole text. Drawn only while something is cut.
    ShowAll,
    Withdraw,
}

impl Control {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::ApproveConfirmed => "approve_confirmed",
            Self::Deny => "deny",
            Self::DenyReason => "deny_reason",
            Self::ShowAll => "show_all",
            Self::Withdraw => "withdraw",
        }
    }

    /// Pressing it opens something and decides nothing: navigation, no click.
    #[must_use]
    pub fn opens(self) -> bool {
        matches!(self, Self::DenyReason | Self::ShowAll)
    }

    /// Reads the word back; `None` for a control of another version.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "approve" => Some(Self::Approve),
            "approve_confirmed" => Some(Self::ApproveConfirmed),
            "deny" => Some(Self::Deny),
            "deny_reason" => Some(Self::DenyReason),
            "show_all" => Some(Self::ShowAll),
            "withdraw" => Some(Self::Withdraw),
            _ => None,
        }
    }
}

/// Where the interaction stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Status {
    /// Waits for a person. With `needed` above 1, `votes` names those who approved.
    Open { votes: Vec<PersonRef>, needed: u32 },
    /// Waits for a person, and cannot be answered here (a kind shown read-only).
    ReadOnly,
    /// A decision is on its way; `accepted` when the runtime took it and still shows it open.
    Delivering { by: PersonRef, decision: String, accepted: bool },
    /// A decision is kept, and goes out when operators take their stop back.
    Paused { by: PersonRef, decision: String },
    /// Over.
    Ended {
        outcome: Outcome,
        /// The task was rejected, not failed (both have outcome `failed`).
        rejected: bool,
        by: Option<PersonRef>,
        /// Who did it elsewhere, as the runtime's history says (foreign text).
        elsewhere_by: Option<String>,
        /// What was decided elsewhere, where the history tells.
        elsewhere_what: Option<Outcome>,
        at: Millis,
        reason: Option<String>,
    },
}

/// Whom a card pings when it is posted, by ids of its own install.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mention {
    pub users: Vec<String>,
    /// Groups of the chat platform.
    pub groups: Vec<String>,
}

/// One message's content.
#[derive(Debug, Clone, PartialEq)]
pub struct Card {
    pub form: Form,
    pub agent: String,
    pub runtime: String,
    /// For whom the agent works, where known.
    pub owner: Option<PersonRef>,
    /// Names of the groups that may answer, and `owner`.
    pub approvers: Vec<String>,
    pub opened: Millis,
    pub short_id: String,
    /// The runtime's own page, where configured.
    pub details_url: Option<String>,
    pub status: Status,
    pub controls: Vec<Control>,
    /// Nobody, once it is over.
    pub mention: Mention,
    /// While something is cut, `Approve` works only for who has opened all of it.
    pub gated: bool,
}

/// What a route wants of a card's controls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Asks {
    /// `Approve` asks once more.
    pub confirm: bool,
    /// There is no denial without a reason.
    pub reason_on_deny: bool,
}

impl Card {
    /// The controls of an interaction in this status. `ShowAll` is among them whenever there is something
    /// to read; whoever draws the card leaves it out while nothing is cut.
    #[must_use]
    pub fn controls_for(kind: &Kind, status: &Status, asks: Asks) -> Vec<Control> {
        match (kind, status) {
            (Kind::Approval, Status::Open { votes, needed }) => {
                let mut controls =
                    vec![if asks.confirm { Control::ApproveConfirmed } else { Control::Approve }];
                if !asks.reason_on_deny {
                    controls.push(Control::Deny);
                }
                controls.extend([Control::DenyReason, Control::ShowAll]);
                if *needed > 1 && !votes.is_empty() {
                    controls.push(Control::Withdraw);
                }
                controls
            }
            (_, Status::Open { .. } | Status::ReadOnly) => vec![Control::ShowAll],
            (_, Status::Delivering { .. } | Status::Paused { .. } | Status::Ended { .. }) => vec![],
        }
    }

    /// Somebody can decide with what stands on the card.
    #[must_use]
    pub fn is_answerable(&self) -> bool {
        self.controls.iter().any(|control| *control != Control::ShowAll)
    }

    /// The facts as shown.
    pub fn facts(&self) -> &[Fact] {
        &self.form.facts
    }

    /// Nothing changes any more.
    #[must_use]
    pub fn is_final(&self) -> bool {
        matches!(self.status, Status::Ended { .. })
    }
}

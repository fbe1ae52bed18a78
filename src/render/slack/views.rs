//! What the templates of views and of the second question are rendered with. Plain text throughout.

use super::super::Context;
use serde::Serialize;

/// What is asked once more before `Approve` counts.
#[derive(Debug, Clone, Serialize)]
pub struct Confirm {
    /// `title`, `text`, `confirm` or `cancel`.
    pub part: &'static str,
    /// What would be approved; may be nothing.
    pub about: Option<String>,
    pub agent: String,
}

impl Context for Confirm {
    const NAME: &'static str = "slack/confirm.txt";
    fn samples() -> Vec<Self> {
        let mut samples = vec![];
        for part in ["title", "text", "confirm", "cancel"] {
            for about in [None, Some("ci / deploy".to_owned())] {
                samples.push(Self { part, about, agent: "Release agent".into() });
            }
        }
        samples
    }
}

/// The words of what opens: the form for a reason, and the pages of a whole text.
#[derive(Debug, Clone, Serialize)]
pub struct ViewText {
    /// `reason_title`, `reason_about`, `reason_label`, `reason_hint`, `reason_blank`, `submit`, `cancel`;
    /// `all_title`, `told_title`, `close`, `previous`, `next`, `foot`.
    pub part: &'static str,
    pub about: Option<String>,
    /// The page, of how many.
    pub at: usize,
    pub of: usize,
    /// Opening the last page lets this person approve.
    pub unlocks: bool,
}

impl ViewText {
    /// A part without particulars.
    #[must_use]
    pub fn plain(part: &'static str) -> Self {
        Self { part, about: None, at: 1, of: 1, unlocks: false }
    }
}

impl Context for ViewText {
    const NAME: &'static str = "slack/view.txt";
    fn samples() -> Vec<Self> {
        let mut samples: Vec<Self> = [
            "reason_title",
            "reason_label",
            "reason_hint",
            "reason_blank",
            "submit",
            "cancel",
            "all_title",
            "told_title",
            "close",
            "previous",
            "next",
        ]
        .map(Self::plain)
        .into();
        for about in [None, Some("ci / deploy".to_owned())] {
            samples.push(Self { about, ..Self::plain("reason_about") });
        }
        for (at, of) in [(1, 1), (1, 3), (3, 3)] {
            for unlocks in [false, true] {
                samples.push(Self { at, of, unlocks, ..Self::plain("foot") });
            }
        }
        samples
    }
}

//! What a control of ours is marked with: `c1.<token>.<verb>` (at most 100 characters).
//!
//! Invariant: the token is opaque and everything it stands for is in the database; the verb only says what to
//! do first, and decides nothing. What was not written by [`write()`] is read as no control of ours, whatever it
//! is: another version, cut, altered.

use crate::domain::card::Control;

const VERSION: &str = "c1";
/// A token is at most so long, so that the whole is.
const LONGEST: usize = 90;

/// What a press does first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// A decision.
    Do,
    /// Opens a form or a second question; of a form itself: it is submitted.
    Form,
    /// Opens a page of everything.
    All,
}

impl Verb {
    fn word(self) -> &'static str {
        match self {
            Self::Do => "do",
            Self::Form => "form",
            Self::All => "all",
        }
    }

    /// What pressing a control does first.
    #[must_use]
    pub fn of(control: Control) -> Self {
        match control {
            Control::DenyReason | Control::ApproveConfirmed => Self::Form,
            Control::ShowAll => Self::All,
            Control::Approve | Control::Deny | Control::Withdraw => Self::Do,
        }
    }
}

/// The `custom_id` of a control.
#[must_use]
pub fn write(token: &str, verb: Verb) -> String {
    format!("{VERSION}.{token}.{}", verb.word())
}

/// The token in a `custom_id`, with its verb; `None` when it is none of ours.
#[must_use]
pub fn read(custom_id: &str) -> Option<(&str, Verb)> {
    let (token, verb) = custom_id.strip_prefix(VERSION)?.strip_prefix('.')?.split_once('.')?;
    let verb = [Verb::Do, Verb::Form, Verb::All].into_iter().find(|known| known.word() == verb)?;
    is_token(token).then_some((token, verb))
}

fn is_token(token: &str) -> bool {
    (1..=LONGEST).contains(&token.len())
        && token.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// (OpenClaw 137142, OpenClaw 25695)
        #[test]
        fn discord_case_16_what_we_write_we_read(token in "[A-Za-z0-9_-]{1,90}", form in any::<bool>(), all in any::<bool>()) {
            let verb = if form { Verb::Form } else if all { Verb::All } else { Verb::Do };
            let written = write(&token, verb);
            prop_assert!(written.len() <= 100);
            prop_assert_eq!(read(&written), Some((token.as_str(), verb)));
        }

        #[test]
        fn discord_case_40_whatever_else_comes_is_none_of_ours(text in ".{0,120}") {
            if let Some((token, verb)) = read(&text) {
                prop_assert_eq!(write(token, verb), text);
            }
        }
    }

    #[test]
    fn discord_case_40_altered_truncated_or_of_another_version() {
        for bad in [
            "",
            "c1",
            "c1.",
            "c1..do",
            "c1.p7Jx0vT3mQ9a",
            "c1.p7Jx0vT3mQ9a.",
            "c1.p7Jx0vT3mQ9a.d",
            "c1.p7Jx0vT3mQ9a.do.",
            "c1.p7Jx0vT3mQ9a.DO",
            "c2.p7Jx0vT3mQ9a.do",
            "c1.p7Jx 0vT3mQ9a.do",
            "c1.p7Jx0vT3mQ9\0.do",
            "c1.p7Jx\u{e4}.do",
            "approve",
        ] {
            assert_eq!(read(bad), None, "{bad:?}");
        }
        assert_eq!(read(&format!("c1.{}.do", "a".repeat(91))), None);
        assert_eq!(read("c1.p7Jx0vT3mQ9a.do"), Some(("p7Jx0vT3mQ9a", Verb::Do)));
    }
}

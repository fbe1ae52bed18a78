//! Drawing what one person is told privately.
//!
//! Invariant: text and blocks say the same; people are named by mention or in a code span.

use super::blocks::Blocks;
use super::limits::{LABEL, NAME, SECTION, short, split};
use super::people::{moment, person};
use crate::domain::card::PersonRef;
use crate::domain::notice::Notice;
use crate::domain::policy::Unfit;
use crate::domain::text::line;
use crate::render::slack::NoticeText;
use crate::render::{Templates, mrkdwn};
use serde_json::Value;

/// Text and blocks of a notice.
pub(super) fn draw(templates: &Templates, notice: &Notice) -> (String, Value) {
    let text = templates.render(&words(notice));
    // Only an operator's template can be longer; then it is shown as the plain text it is.
    let text = if text.len() > SECTION { short(&mrkdwn(&short(&text, SECTION / 6)), SECTION) } else { text };
    let mut blocks = Blocks::new(None);
    blocks.markup(text.clone());
    if let Notice::WithWords { words, .. } = notice {
        // Their own words in a box where nothing is markup, exactly as they were typed.
        for part in split(words, SECTION) {
            blocks.quoted(None, Some(part));
        }
    }
    (text, blocks.done())
}

fn words(notice: &Notice) -> NoticeText {
    let by = |by: &Option<PersonRef>| by.as_ref().map(person);
    match notice {
        Notice::AlreadyEnded { outcome, by: who, at } => NoticeText {
            outcome: outcome.as_str(),
            by: by(who),
            at: moment(*at),
            ..NoticeText::plain("already_ended")
        },
        Notice::BeingAnswered { by: who } => {
            NoticeText { by: Some(person(who)), ..NoticeText::plain("being_answered") }
        }
        Notice::Unlinked { user } => NoticeText {
            user: short(&line(user), NAME).replace('`', "\u{2cb}"),
            ..NoticeText::plain("unlinked")
        },
        Notice::Unfit { what } => NoticeText { unfit: unfit(*what), ..NoticeText::plain("unfit") },
        Notice::NotAllowed { groups } => NoticeText {
            groups: groups.iter().take(20).map(|group| short(&line(group), LABEL)).collect(),
            ..NoticeText::plain("not_allowed")
        },
        Notice::SelfApproval => NoticeText::plain("self_approval"),
        Notice::CouldNotCheck => NoticeText::plain("could_not_check"),
        Notice::MustView => NoticeText::plain("must_view"),
        Notice::NeedsReason => NoticeText::plain("needs_reason"),
        Notice::Outdated => NoticeText::plain("outdated"),
        Notice::PressAgain => NoticeText::plain("press_again"),
        Notice::OpensLater => NoticeText::plain("opens_later"),
        Notice::UnknownControl => NoticeText::plain("unknown_control"),
        Notice::NotInstalled => NoticeText::plain("not_installed"),
        Notice::Refused { why, by: who } => {
            NoticeText { why: why.as_str(), by: by(who), ..NoticeText::plain("refused") }
        }
        Notice::VoteVoided { why } => NoticeText { why: why.as_str(), ..NoticeText::plain("vote_voided") },
        Notice::StillTrying => NoticeText::plain("still_trying"),
        Notice::NeedsAttention => NoticeText::plain("needs_attention"),
        Notice::Paused => NoticeText::plain("paused"),
        Notice::WithWords { about, .. } => NoticeText { given_back: true, ..words(about) },
    }
}

pub(super) fn unfit(what: Unfit) -> &'static str {
    match what {
        Unfit::Guest => "guest",
        Unfit::Stranger => "stranger",
        Unfit::Bot => "bot",
        // Slack knows nobody who is timed out.
        Unfit::Deactivated | Unfit::TimedOut => "deactivated",
        Unfit::Invited => "invited",
        Unfit::Nobody => "nobody",
    }
}

#[cfg(test)]
#[path = "notices_tests.rs"]
mod tests;

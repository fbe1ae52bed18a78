//! Drawing what one person is told privately, and the answers to commands.
//!
//! Invariant: people are named by mention or escaped; what a person typed comes back exactly, where nothing is
//! markup, or escaped. Nobody is pinged.

use super::limits::{CONTENT, DESCRIPTION, LABEL, NAME, Place, short};
use super::markdown::{FENCES, block, moment, person};
use super::message::{finish, nobody};
use super::render::within;
use crate::domain::card::PersonRef;
use crate::domain::notice::Notice;
use crate::domain::policy::Unfit;
use crate::domain::text::line;
use crate::render::discord::Md;
use crate::render::slack::{CommandAnswer, NoticeText};
use crate::render::{Templates, markdown};
use serde_json::Value;
use serenity::builder::{CreateEmbed, CreateMessage};

/// A notice as a message.
pub(super) fn draw(templates: &Templates, notice: &Notice) -> Value {
    let text = within(&templates.render(&Md(words(notice))), CONTENT);
    let mut message = CreateMessage::new().content(text).components(vec![]);
    if let Notice::WithWords { words, .. } = notice {
        // Longer than what a form takes cannot be: this only keeps the limit.
        let own = short(words, DESCRIPTION - FENCES, Place::Plain);
        let own = block(&own).unwrap_or_else(|| markdown(&short(words, DESCRIPTION, Place::Markdown)));
        message = message.embed(CreateEmbed::new().description(own));
    }
    finish(&message, nobody())
}

/// The answer to a command that lists nothing: `help`, `not_known`, `unlink`, `not_installed` or `later`.
pub(super) fn answer(templates: &Templates, answer: &'static str) -> Value {
    let text = within(&templates.render(&Md(CommandAnswer { answer })), CONTENT);
    finish(&CreateMessage::new().content(text), nobody())
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
        Notice::Unlinked { user } => {
            NoticeText { user: short(&line(user), NAME, Place::Markdown), ..NoticeText::plain("unlinked") }
        }
        Notice::Unfit { what } => NoticeText { unfit: unfit(*what), ..NoticeText::plain("unfit") },
        Notice::NotAllowed { groups } => NoticeText {
            groups: groups.iter().take(20).map(|group| short(&line(group), LABEL, Place::Markdown)).collect(),
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
        Unfit::Deactivated => "deactivated",
        Unfit::Invited => "invited",
        Unfit::TimedOut => "timed_out",
        Unfit::Nobody => "nobody",
    }
}

#[cfg(test)]
#[path = "notices_tests.rs"]
mod tests;

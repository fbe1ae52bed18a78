//! Our own Markdown: mentions, moments, links, code, and the one escape for everything foreign.
//!
//! Invariant: foreign text comes through `domain::text` first (nothing invisible, addresses broken) and then
//! through exactly one of: [`crate::render::markdown`] (the templates do it), [`block`] (a block of code), or
//! a place where nothing is markup. Discord renders `<@id>` wherever Markdown is active; whom it pings is said
//! by `allowed_mentions` alone.

use super::limits::{NAME, Place, URL, short, units};
use crate::domain::card::PersonRef;
use crate::domain::clock::Millis;
use crate::domain::place::is_snowflake;
use crate::domain::text::line;
use crate::render::{Markup, markdown};
use reqwest::Url;

/// A mention where the person has an account here; else the name.
pub(super) fn person(person: &PersonRef) -> Markup {
    match person.mention.as_deref().and_then(user_mention) {
        Some(mention) => Markup::of(mention),
        None => name(&person.subject),
    }
}

/// A foreign name, escaped.
pub(super) fn name(name: &str) -> Markup {
    Markup::of(markdown(&short(&line(name), NAME, Place::Markdown)))
}

/// A mention of an account.
pub(super) fn user_mention(user: &str) -> Option<String> {
    is_snowflake(user).then(|| format!("<@{user}>"))
}

/// A mention of a role.
pub(super) fn role_mention(role: &str) -> Option<String> {
    is_snowflake(role).then(|| format!("<@&{role}>"))
}

/// A channel by its id.
pub(super) fn channel_mention(channel: &str) -> Option<Markup> {
    is_snowflake(channel).then(|| Markup::of(format!("<#{channel}>")))
}

/// A moment in the reader's own time zone (Discord: Message Formatting, "Timestamp styles").
pub(super) fn moment(at: Millis) -> Markup {
    Markup::of(format!("<t:{}:f>", at.0.div_euclid(1000)))
}

/// An address that may stand behind a link or a button of ours: http(s), without what would end the link.
pub(super) fn address(url: &str) -> Option<String> {
    let url = Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
    let url = String::from(url)
        .replace('<', "%3C")
        .replace('>', "%3E")
        .replace('(', "%28")
        .replace(')', "%29")
        .replace('\\', "%5C");
    (units(&url) <= URL).then_some(url)
}

/// A block of code, where nothing is markup; `None` for a text that could end it.
pub(super) fn block(text: &str) -> Option<String> {
    // A backtick at an end would join the fence.
    let fits = !text.contains("```") && !text.starts_with('`') && !text.ends_with('`');
    fits.then(|| format!("```\n{text}\n```"))
}

/// What a block of code costs beside its text.
pub(super) const FENCES: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ids_are_mentioned() {
        assert_eq!(user_mention("3300000000000000003").as_deref(), Some("<@3300000000000000003>"));
        assert_eq!(role_mention("2200000000000000002").as_deref(), Some("<@&2200000000000000002>"));
        for text in ["", "everyone", "1><@&2", "33000000000000000031111111"] {
            assert_eq!(user_mention(text), None);
            assert_eq!(role_mention(text), None);
        }
    }

    #[test]
    fn addresses_of_ours_cannot_leave_their_link() {
        assert_eq!(address("https://app.example/t/1").as_deref(), Some("https://app.example/t/1"));
        assert_eq!(address("https://app.example/(x)>").as_deref(), Some("https://app.example/%28x%29%3E"));
        assert_eq!(address("javascript:alert(1)"), None);
        assert_eq!(address(&format!("https://app.example/{}", "x".repeat(600))), None);
    }

    #[test]
    fn a_text_that_could_end_a_block_stands_in_none() {
        assert_eq!(block("make deploy").as_deref(), Some("```\nmake deploy\n```"));
        assert_eq!(block("a ``` b"), None);
        assert_eq!(block("a `"), None);
        assert_eq!(block("`"), None);
    }
}

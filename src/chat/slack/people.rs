//! Naming people, moments and addresses in our own markup.

use super::blocks::code;
use super::limits::{NAME, URL, cost, short};
use crate::domain::card::PersonRef;
use crate::domain::clock::Millis;
use crate::domain::text::line;
use crate::render::{Markup, mrkdwn};
use reqwest::Url;

/// A mention where the person has an account here; else the name in a code span.
pub(super) fn person(person: &PersonRef) -> Markup {
    mention(person).map_or_else(|| name(&person.subject), Markup::of)
}

/// As [`person`], for the top-level text, which has no code spans.
pub(super) fn person_in_text(person: &PersonRef) -> Markup {
    mention(person).map_or_else(|| Markup::of(mrkdwn(&short(&line(&person.subject), NAME))), Markup::of)
}

/// A foreign name in a code span.
pub(super) fn name(name: &str) -> Markup {
    Markup::of(code(&short(&line(name), NAME)))
}

fn mention(person: &PersonRef) -> Option<String> {
    user_mention(person.mention.as_deref()?)
}

/// A mention of an account.
pub(super) fn user_mention(user: &str) -> Option<String> {
    is_id(user, &['U', 'W']).then(|| format!("<@{user}>"))
}

/// A mention of a user group; one of an organisation is configured as `T…/S…`.
pub(super) fn group_mention(group: &str) -> Option<String> {
    let group = group.split_once('/').map_or(group, |(_, group)| group);
    is_id(group, &['S']).then(|| format!("<!subteam^{group}>"))
}

fn is_id(id: &str, heads: &[char]) -> bool {
    id.starts_with(heads)
        && (2..=40).contains(&id.len())
        && id.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit())
}

/// A moment in the reader's own time zone (Slack: Formatting text, "Date formatting").
pub(super) fn moment(at: Millis) -> Markup {
    let fallback = jiff::Timestamp::from_millisecond(at.0)
        .map_or_else(|_| at.rfc3339(), |at| at.strftime("%Y-%m-%d %H:%M UTC").to_string());
    let seconds = at.0.div_euclid(1000);
    Markup::of(format!("<!date^{seconds}^{{date_short_pretty}} {{time}}|{fallback}>"))
}

/// An address that may stand behind a link of ours: http(s), without what would end the link.
pub(super) fn address(url: &str) -> Option<Markup> {
    let url = Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
    let url = String::from(url).replace('|', "%7C").replace('<', "%3C").replace('>', "%3E");
    (cost(&url) <= URL).then(|| Markup::of(url))
}

//! Drawing what waits for one person, for a private answer.
//!
//! Invariant: within a message's limits whatever is listed: what does not fit is counted with what is newer.
//! Names and words of agents are escaped; only moments, channels, checked addresses and our own words are
//! markup.

use super::limits::{CONTENT, DESCRIPTION, EMBEDS, LABEL, NAME, Place, short, units};
use super::markdown::{address, channel_mention, moment, name};
use super::message::{finish, nobody};
use super::render::within;
use crate::bridge::ports::Drawn;
use crate::domain::text::line;
use crate::domain::waiting::{Item, List, Waiting, What};
use crate::render::discord::Md;
use crate::render::slack::{Head, WaitingItem, WaitingText};
use crate::render::{Templates, markdown};
use serde_json::json;
use serenity::builder::{CreateEmbed, CreateMessage};

/// What an agent asks, in a list.
const TITLE: usize = 120;
/// A kept notice.
const KEPT: usize = 500;
/// All listed items together.
const LIST: usize = DESCRIPTION - 96;

/// Draws it.
pub(super) fn draw(templates: &Templates, waiting: &Waiting) -> Drawn {
    let say = |part: WaitingText| templates.render(&Md(part));
    let mut lines = vec![];
    let mut items = vec![];
    match &waiting.what {
        What::Unfit { what } => {
            let unfit = super::notices::unfit(*what);
            lines.push(say(WaitingText { unfit, ..WaitingText::of("unfit") }));
        }
        What::Unlinked { user } => {
            let user = short(&line(user), NAME, Place::Markdown);
            lines.push(say(WaitingText { user, ..WaitingText::of("unlinked") }));
        }
        What::CouldNotCheck => lines.push(say(WaitingText::of("could_not_check"))),
        What::Listed(list) => {
            let List { items: listed, more, unchecked, beyond } = list;
            let mut room = LIST;
            for item in listed {
                let drawn = one(templates, item);
                let Some(left) = room.checked_sub(units(&drawn) + 2) else { break };
                room = left;
                items.push(drawn);
            }
            let count = listed.len() + more;
            let part = if count == 0 { "nothing" } else { "head" };
            lines.push(say(WaitingText { count, beyond: *beyond, ..WaitingText::of(part) }));
            let rest = [("more", count - items.len()), ("unchecked", *unchecked)];
            for (part, count) in rest.into_iter().filter(|(_, count)| *count > 0) {
                lines.push(say(WaitingText { count, beyond: *beyond, ..WaitingText::of(part) }));
            }
        }
    }
    let text = within(&lines.join("\n"), CONTENT);
    let mut message = CreateMessage::new().content(text.clone());
    if !items.is_empty() {
        message = message.add_embed(CreateEmbed::new().description(within(&items.join("\n\n"), DESCRIPTION)));
    }
    if !waiting.notices.is_empty() {
        let kept = waiting.notices.iter().map(|(notice, at)| {
            let told = super::notices::draw(templates, notice);
            let told = within(super::fields::text(&told, "/content").unwrap_or_default(), KEPT);
            let since = say(WaitingText { at: moment(*at), ..WaitingText::of("kept") });
            format!("{told}\n{since}")
        });
        let kept: Vec<String> = std::iter::once(say(WaitingText::of("notices"))).chain(kept).collect();
        let most = EMBEDS - DESCRIPTION;
        message = message.add_embed(CreateEmbed::new().description(within(&kept.join("\n\n"), most)));
    }
    let body = finish(&message, nobody());
    let compact = json!({ "plain": finish(&CreateMessage::new().content(text.clone()), nobody()) });
    Drawn { text, body, compact, cut: false }
}

fn one(templates: &Templates, item: &Item) -> String {
    let head = Head { kind: item.kind.as_str(), status: "open", outcome: "", agent: line(&item.agent) };
    let head = markdown(&short(&line(&templates.render(&head)), LABEL * 2, Place::Markdown));
    let label = templates.render(&Md(WaitingText::of("open")));
    let head = match item.link.as_deref().and_then(address) {
        Some(link) => format!("**{head}** · [{label}]({link})"),
        None => format!("**{head}**"),
    };
    let title = markdown(&short(&line(&item.title), TITLE, Place::Markdown));
    let about = WaitingItem {
        runtime: name(&item.runtime),
        opened: moment(item.opened),
        channel: item.channel.as_deref().and_then(channel_mention),
        voted: item.voted,
        needed: item.needed,
        short_id: short(&line(&item.short_id), LABEL, Place::Markdown),
    };
    let about = templates.render(&Md(about));
    let lines = [head, title, about];
    lines.into_iter().filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
#[path = "waiting_tests.rs"]
mod tests;

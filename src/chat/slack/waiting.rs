//! Drawing what waits for one person, for a private message and for the Home.
//!
//! Invariant: within a message's and a view's budgets whatever is listed. Names and words of agents stand in
//! plain text; only dates, channels, checked addresses and our own words are markup.

use super::blocks::Blocks;
use super::limits::{LABEL, NAME, SECTION, TEXT, short};
use super::people::{address, moment, name};
use crate::bridge::ports::Drawn;
use crate::domain::text::line;
use crate::domain::waiting::{Item, List, Waiting, What};
use crate::render::slack::{Head, WaitingItem, WaitingText};
use crate::render::{Markup, Templates};

/// What an agent asks, in a list.
const TITLE: usize = 160;
/// A kept notice.
const KEPT: usize = 400;

/// Draws it.
pub(super) fn draw(templates: &Templates, waiting: &Waiting) -> Drawn {
    let say = |part: WaitingText| templates.render(&part);
    let mut lines = vec![];
    let mut items: &[Item] = &[];
    match &waiting.what {
        What::Unfit { what } => {
            let unfit = super::notices::unfit(*what);
            lines.push(say(WaitingText { unfit, ..WaitingText::of("unfit") }));
        }
        What::Unlinked { user } => {
            let user = short(&line(user), NAME).replace('`', "\u{2cb}");
            lines.push(say(WaitingText { user, ..WaitingText::of("unlinked") }));
        }
        What::CouldNotCheck => lines.push(say(WaitingText::of("could_not_check"))),
        What::Listed(list) => {
            let List { items: listed, more, unchecked, beyond } = list;
            items = listed;
            let count = listed.len() + more;
            let part = if count == 0 { "nothing" } else { "head" };
            lines.push(say(WaitingText { count, beyond: *beyond, ..WaitingText::of(part) }));
            let rest = [("more", *more), ("unchecked", *unchecked)];
            for (part, count) in rest.into_iter().filter(|(_, count)| *count > 0) {
                lines.push(say(WaitingText { count, beyond: *beyond, ..WaitingText::of(part) }));
            }
        }
    }
    let text = lines.join(" ");
    // One block of words, two for each request and one for each notice: within what a message takes.
    let mut blocks = Blocks::new(None);
    let mut compact = Blocks::new(None);
    blocks.markup(lines.join("\n"));
    compact.markup(lines.join("\n"));
    for item in items {
        let title = title(templates, item);
        let link = item.link.as_deref().filter(|link| address(link).is_some());
        let label = short(&say(WaitingText::of("open")), LABEL);
        blocks.linked(title.clone(), link.map(|link| (label, link)));
        let about = about(templates, item);
        blocks.context(about.clone());
        compact.section(title);
        compact.context(about);
    }
    if !waiting.notices.is_empty() {
        blocks.markup(say(WaitingText::of("notices")));
        for (notice, at) in &waiting.notices {
            let (told, _) = super::notices::draw(templates, notice);
            // Only an operator's template can be longer.
            let told = if told.len() > KEPT { crate::render::mrkdwn(&short(&told, KEPT / 6)) } else { told };
            let since = say(WaitingText { at: moment(*at), ..WaitingText::of("kept") });
            blocks.markup(format!("{told}\n{since}"));
        }
    }
    let text =
        if text.len() > TEXT { short(&crate::render::mrkdwn(&short(&text, TEXT / 6)), TEXT) } else { text };
    Drawn { text, body: blocks.done(), compact: compact.done(), cut: false }
}

fn title(templates: &Templates, item: &Item) -> String {
    let head = Head { kind: item.kind.as_str(), status: "open", outcome: "", agent: line(&item.agent) };
    let head = short(&line(&templates.render(&head)), NAME);
    let title = short(&line(&item.title), TITLE);
    if title.is_empty() { head } else { format!("{head}\n{title}") }
}

fn about(templates: &Templates, item: &Item) -> String {
    let channel = item.channel.as_deref().filter(|id| {
        id.starts_with(['C', 'G']) && id.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit())
    });
    let about = WaitingItem {
        runtime: name(&item.runtime),
        opened: moment(item.opened),
        channel: channel.map(|id| Markup::of(format!("<#{id}>"))),
        voted: item.voted,
        needed: item.needed,
        short_id: short(&line(&item.short_id), LABEL).replace('`', "\u{2cb}"),
    };
    let about = templates.render(&about);
    if about.len() > SECTION / 4 { String::new() } else { about }
}

#[cfg(test)]
#[path = "waiting_tests.rs"]
mod tests;

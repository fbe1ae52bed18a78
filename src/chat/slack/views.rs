//! What opens in front of one person: the form for a reason, and the pages of a whole text.
//!
//! Invariant: a view is within Slack's limits whatever the card holds: 95 blocks, 200 kB, 2,900 a block.
//! Everything of the card is on one of its pages, neutralised as on the card; nothing is cut. A view
//! carries nothing but its token. Opening is one call with a deadline of its own: the trigger is over
//! after three seconds and counts as used after a failure, so it is never tried again.

use super::Slack;
use super::blocks::{Blocks, Button};
use super::inbound::TEXT_FIELD;
use super::limits::{BUTTON, INPUT, SECTION, VIEW_TITLE, cost, short, split};
use super::methods::Method;
use super::render::Pen;
use crate::bridge::ports::{ChatError, WayIn};
use crate::domain::card::Card;
use crate::domain::text::{is_blank, line};
use crate::domain::view::{Content, Page, REASON_LENGTH, View};
use crate::render::Templates;
use crate::render::slack::{ViewText, Words};
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use std::time::Duration;

/// Of the three seconds that a trigger lives.
const DEADLINE: Duration = Duration::from_millis(1500);
/// Blocks of text on one page: about thirty thousand characters, which a phone still turns well.
const PARTS: usize = 10;

impl Slack {
    pub(super) async fn open_view(&self, way: &WayIn, view: &View) -> Result<(), ChatError> {
        let drawn = draw(&self.templates, view);
        let (method, arguments) = match way {
            WayIn::Trigger(trigger) => {
                (Method::OpenView, json!({"trigger_id": trigger.expose_secret(), "view": drawn}))
            }
            WayIn::Answer(_) => return Err(ChatError::TooLate { code: "no_trigger".into() }),
            WayIn::Instead { view: id, hash } => {
                (Method::UpdateView, json!({"view_id": id, "hash": hash, "view": drawn}))
            }
        };
        self.api.call_within(method, arguments, DEADLINE).await.map(|_| ())
    }
}

/// The answer to a form whose field is empty: it stays open and says so at the field.
#[must_use]
pub fn blank_reason(templates: &Templates, field: &str) -> Value {
    let text = templates.render(&ViewText::plain("reason_blank"));
    json!({"response_action": "errors", "errors": {field: short(&line(&text), INPUT)}})
}

/// One block of a whole text.
enum Part {
    Facts(String),
    Words(Option<String>, Option<String>),
}

/// Everything of a card, in order.
fn parts(templates: &Templates, card: &Card) -> Vec<Part> {
    let pen = Pen { templates, card };
    let mut parts: Vec<Part> = split(&pen.facts().join("\n"), SECTION).into_iter().map(Part::Facts).collect();
    let words = pen.words();
    if is_blank(&words) {
        parts.push(Part::Words(Some(templates.render(&Words { empty: true })), None));
        return parts;
    }
    let label = templates.render(&Words { empty: false });
    let room = SECTION.saturating_sub(cost(&label)).max(SECTION / 2);
    for (at, words) in split(&words, room).into_iter().enumerate() {
        parts.push(Part::Words((at == 0).then(|| label.clone()), Some(words)));
    }
    parts
}

/// How many pages everything of a card takes.
pub(super) fn pages(templates: &Templates, card: &Card) -> usize {
    parts(templates, card).len().div_ceil(PARTS).max(1)
}

/// Draws a view.
pub(super) fn draw(templates: &Templates, view: &View) -> Value {
    let word = |part, most| short(&line(&templates.render(&ViewText::plain(part))), most);
    let title = |part| plain(&word(part, VIEW_TITLE));
    let ids = format!("cs:{}:{}", view.card, view.rev);
    match &view.content {
        Content::DenyReason { token } => json!({
            "type": "modal", "callback_id": "cs.deny_reason", "private_metadata": token,
            "title": title("reason_title"), "submit": title("submit"), "close": title("cancel"),
            "blocks": reason(templates, view, format!("{ids}:in")),
        }),
        Content::ShowAll(page) => json!({
            "type": "modal", "callback_id": "cs.show_all",
            "title": title("all_title"), "close": title("close"),
            "blocks": page_blocks(templates, view, page, format!("{ids}:p{}", page.at)),
        }),
        // Slack asks by itself, at the button.
        Content::Confirm { .. } => json!({"type": "modal", "title": title("told_title"), "blocks": []}),
        Content::Told(notice) => json!({
            "type": "modal", "callback_id": "cs.show_all",
            "title": title("told_title"), "close": title("close"),
            "blocks": super::notices::draw(templates, notice).1,
        }),
    }
}

fn reason(templates: &Templates, view: &View, ids: String) -> Value {
    let about = Pen { templates, card: &view.about }.about();
    let words = |part, about, most| {
        short(&line(&templates.render(&ViewText { about, ..ViewText::plain(part) })), most)
    };
    let mut blocks = Blocks::new(Some(ids));
    blocks.section(words("reason_about", about, SECTION));
    blocks.input(
        words("reason_label", None, INPUT),
        words("reason_hint", None, INPUT),
        TEXT_FIELD,
        REASON_LENGTH,
    );
    blocks.done()
}

fn page_blocks(templates: &Templates, view: &View, page: &Page, ids: String) -> Value {
    let mut blocks = Blocks::new(Some(ids));
    let from = page.at.saturating_sub(1) * PARTS;
    for part in parts(templates, &view.about).into_iter().skip(from).take(PARTS) {
        match part {
            Part::Facts(text) => blocks.section(text),
            Part::Words(label, words) => blocks.quoted(label, words),
        }
    }
    let foot = ViewText { at: page.at, of: page.of, unlocks: page.unlocks, ..ViewText::plain("foot") };
    blocks.section(short(&line(&templates.render(&foot)), SECTION));
    let turn = |action, part, token: &Option<String>| {
        let label = short(&line(&templates.render(&ViewText::plain(part))), BUTTON);
        token.clone().map(|token| Button {
            spoken: label.clone(),
            action,
            label,
            token,
            style: None,
            confirm: None,
        })
    };
    let turns = [turn("cs.previous", "previous", &page.previous), turn("cs.next", "next", &page.next)];
    blocks.buttons(turns.into_iter().flatten().collect());
    blocks.done()
}

fn plain(text: &str) -> Value {
    json!({"type": "plain_text", "text": text, "emoji": false})
}

#[cfg(test)]
#[path = "views_tests.rs"]
mod tests;

//! What opens in front of one person: the form for a reason, the second question, and everything of a card in
//! private pages or as a file.
//!
//! Invariant: on Discord something opens in the first response to a press, and nowhere else; so this draws
//! responses. Everything of the card is on one of its pages (or in the file), neutralised as on the card;
//! nothing is cut. What opens carries nothing but its token.

use super::custom_id::{Verb, write};
use super::inbound::TEXT_FIELD;
use super::limits::{DESCRIPTION, INPUT, MODAL, MODAL_HINT, Place, TITLE, short, split};
use super::message::{EPHEMERAL, finish, nobody};
use super::render::{Pen, button, within};
use super::rules;
use crate::domain::card::Card;
use crate::domain::text::{is_blank, line};
use crate::domain::view::{Content, Page, REASON_LENGTH, View};
use crate::render::discord::{AskAgain, Md};
use crate::render::slack::{ViewText, Words};
use crate::render::{Templates, markdown};
use serde_json::{Value, json};
use serenity::builder::{CreateActionRow, CreateEmbed, CreateEmbedFooter, CreateMessage};
use serenity::model::application::ButtonStyle;

/// Text of one page: what a phone still turns well, with room for its label.
const PAGE: usize = DESCRIPTION - 196;
/// More pages than these are a file.
const PAGES: usize = 6;

/// How something opens.
#[derive(Debug, Clone, PartialEq)]
pub enum Opening {
    /// This is the first response to the press.
    Response(Value),
    /// The first response says that something is coming; then [`WayIn::Answer`](crate::bridge::ports::WayIn)
    /// fills it with a file.
    File { first: Value },
}

/// A part of the whole text.
enum Part {
    Facts(String),
    Words { first: bool, text: String },
}

fn parts(templates: &Templates, card: &Card) -> Vec<Part> {
    let pen = Pen { templates, card };
    let facts = split(&pen.fact_lines(), PAGE, Place::Markdown).into_iter().map(Part::Facts);
    let words = pen.words();
    let words = split(&words, PAGE, Place::Markdown).into_iter().enumerate();
    facts.chain(words.map(|(at, text)| Part::Words { first: at == 0, text })).collect()
}

fn is_file(parts: &[Part]) -> bool {
    parts.len() > PAGES
}

/// How many pages everything of a card takes; a file is one.
pub(super) fn pages(templates: &Templates, card: &Card) -> usize {
    let parts = parts(templates, card);
    if is_file(&parts) { 1 } else { parts.len().max(1) }
}

/// Draws what opens. `turned`: it takes the place of what is open already.
pub(super) fn opening(templates: &Templates, view: &View, turned: bool) -> Opening {
    let response = |data| Opening::Response(private(data, turned));
    match &view.content {
        Content::DenyReason { token } => Opening::Response(reason(templates, view, token)),
        Content::Confirm { token } => response(confirm(templates, view, token)),
        Content::ShowAll(page) => {
            let parts = parts(templates, &view.about);
            if is_file(&parts) {
                return Opening::File { first: json!({"type": 5, "data": {"flags": EPHEMERAL}}) };
            }
            response(page_message(templates, page, parts))
        }
        Content::Told(notice) => response(super::notices::draw(templates, notice)),
    }
}

/// A message that only this person sees: anew, or in the place of the last.
pub(super) fn private(mut data: Value, turned: bool) -> Value {
    if turned {
        // What is not named stays.
        for key in ["embeds", "components"] {
            if data.get(key).is_none() {
                data[key] = json!([]);
            }
        }
        return json!({"type": 7, "data": data});
    }
    data["flags"] = json!(EPHEMERAL);
    json!({"type": 4, "data": data})
}

fn reason(templates: &Templates, view: &View, token: &str) -> Value {
    let about = Pen { templates, card: &view.about }.about();
    let words = |part, about, most| {
        short(&line(&templates.render(&ViewText { about, ..ViewText::plain(part) })), most, Place::Plain)
    };
    let asked = templates.render(&ViewText { about, ..ViewText::plain("reason_about") });
    let data = json!({
        "custom_id": write(token, Verb::Form),
        "title": words("reason_title", None, MODAL),
        "components": [
            {"type": 10, "content": markdown(&short(&line(&asked), INPUT / 4, Place::Markdown))},
            {"type": 18, "label": words("reason_label", None, MODAL), "description": words("reason_hint", None, MODAL_HINT),
             "component": {"type": 4, "custom_id": TEXT_FIELD, "style": 2, "min_length": 1, "max_length": REASON_LENGTH, "required": true}},
        ],
    });
    for fault in rules::modal(&data) {
        tracing::error!(fault, "a form of ours is not within Discord's limits");
    }
    json!({"type": 9, "data": data})
}

fn confirm(templates: &Templates, view: &View, token: &str) -> Value {
    let pen = Pen { templates, card: &view.about };
    let words = |part| {
        let about = pen.about().map(|about| short(&about, 200, Place::Markdown));
        let agent = short(&line(&view.about.agent), 120, Place::Markdown);
        templates.render(&AskAgain { part, about, agent })
    };
    let confirm = button(write(token, Verb::Do), &words("confirm"), ButtonStyle::Success);
    let rows = vec![CreateActionRow::Buttons(vec![confirm])];
    finish(&CreateMessage::new().content(within(&words("text"), 1900)).components(rows), nobody())
}

fn page_message(templates: &Templates, page: &Page, parts: Vec<Part>) -> Value {
    let word = |part: ViewText| templates.render(&part);
    let part = parts.into_iter().nth(page.at.saturating_sub(1));
    let text = match part {
        Some(Part::Facts(text)) => markdown(&text),
        Some(Part::Words { first: true, text }) => {
            format!("{}\n>>> {}", templates.render(&Md(Words { empty: false })), markdown(&text))
        }
        Some(Part::Words { first: false, text }) => format!(">>> {}", markdown(&text)),
        None => String::new(),
    };
    let text = if is_blank(&text) { templates.render(&Md(Words { empty: true })) } else { text };
    let foot = ViewText { at: page.at, of: page.of, unlocks: page.unlocks, ..ViewText::plain("foot") };
    let title = markdown(&short(&line(&word(ViewText::plain("all_title"))), TITLE, Place::Markdown));
    let embed = CreateEmbed::new()
        .title(title)
        .description(within(&text, DESCRIPTION))
        .footer(CreateEmbedFooter::new(short(&line(&word(foot)), 400, Place::Plain)));
    let turn = |part, token: &Option<String>| {
        let token = token.as_ref()?;
        Some(button(write(token, Verb::All), &word(ViewText::plain(part)), ButtonStyle::Secondary))
    };
    let turns: Vec<_> =
        [turn("previous", &page.previous), turn("next", &page.next)].into_iter().flatten().collect();
    let rows = if turns.is_empty() { vec![] } else { vec![CreateActionRow::Buttons(turns)] };
    finish(&CreateMessage::new().embed(embed).components(rows), nobody())
}

/// Everything of a card as a file, with the message that brings it.
pub(super) fn file(templates: &Templates, view: &View) -> (Value, String) {
    let pen = Pen { templates, card: &view.about };
    let unlocks = matches!(&view.content, Content::ShowAll(page) if page.unlocks);
    let words = |part| line(&templates.render(&ViewText { unlocks, ..ViewText::plain(part) }));
    let content = format!("**{}**\n{}", markdown(&words("all_title")), markdown(&words("foot")));
    let mut body = finish(&CreateMessage::new().content(within(&content, 1900)), nobody());
    body["attachments"] = json!([{"id": "0", "filename": FILE}]);
    let said = pen.words();
    let text = format!("{}\n\n{said}\n", pen.fact_lines());
    (body, text.trim_start().to_owned())
}

/// The file's name.
pub(super) const FILE: &str = "request.txt";

#[cfg(test)]
#[path = "views_tests.rs"]
mod tests;

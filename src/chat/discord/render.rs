//! Drawing a card as a Discord message: a short `content` (the push notification), one embed, rows of buttons.
//!
//! Invariant: drawing is pure and deterministic, and its result is within Discord's limits whatever the card
//! holds. Every foreign text is neutralised (`domain::text`), then cut, then escaped or put where nothing is
//! markup. All of a card fits into one description, so the plain drawing shows the same text with the same
//! cuts: "nothing was cut" means the same for both.
//!
//! Where foreign text stands: facts in fields, each by itself; the agent's words in a quote that nothing
//! follows; names escaped; a short piece at the end of the notification.

use super::custom_id::{Verb, write};
use super::limits::{
    BUTTON, CONTENT, DESCRIPTION, FIELD_NAME, FIELD_VALUE, FIELDS, FOOT, LABEL, PUSH_FOREIGN, Place, REASON,
    THREAD_NAME, TITLE, cap, cost, fit, short, units,
};
use super::markdown::{FENCES, address, block, moment, name, person, role_mention, user_mention};
use super::message::{finish, mark, nobody, only};
use crate::bridge::ports::{Drawn, Marks};
use crate::domain::card::{Card, Control, Mention, Status};
use crate::domain::form::Kind;
use crate::domain::interaction::Outcome;
use crate::domain::text::{is_blank, line, visible};
use crate::render::discord::{FieldName, Footer, Link, Md, ThreadName, Withheld};
use crate::render::slack::{
    Asked, AskedOption, Button as ButtonWords, Cut, Head, Notes, Ping, Reason, State, Text, Unknown, Words,
};
use crate::render::{Markup, Templates, markdown};
use serde_json::{Value, json};
use serenity::builder::{CreateActionRow, CreateButton, CreateEmbed, CreateEmbedFooter, CreateMessage};
use serenity::model::Timestamp;
use serenity::model::application::ButtonStyle;

/// Everything of one card together: as much as one description holds, with room for the notice of a cut.
const WHOLE: usize = DESCRIPTION - 96;
/// Kept free for what stands on top once it has ended, so that an edit shows as much as the post did.
const OUTCOME: usize = 850;
/// People named in one line, at most; more are counted by the number beside them.
const NAMED: usize = 10;
/// People and roles pinged by one card, at most.
const PINGED: usize = 40;
/// Less than this of a value says nothing.
const SMALLEST: usize = 48;
/// A value of so many units stands beside others.
const NARROW: usize = 30;

/// The embed's stripe, by what happened; nothing is said by colour alone.
fn colour(status: &Status) -> u32 {
    match status {
        Status::Open { .. } => 0x00e6_7e22,
        Status::ReadOnly => 0x0095_a5a6,
        Status::Delivering { .. } | Status::Paused { .. } => 0x0034_98db,
        Status::Ended { outcome, .. } => match outcome {
            Outcome::Approved | Outcome::Answered | Outcome::Connected => 0x002e_cc71,
            Outcome::Denied | Outcome::Declined | Outcome::Failed => 0x00e7_4c3c,
            Outcome::Canceled | Outcome::Elsewhere | Outcome::Gone => 0x0095_a5a6,
        },
    }
}

/// Draws a card.
pub(super) fn card(templates: &Templates, card: &Card, marks: &Marks) -> Drawn {
    let pen = Pen { templates, card };
    let head = pen.head();
    let label = templates.render(&Md(Words { empty: false }));
    let (state, reason, link) = (pen.state(), pen.reason(), pen.link());
    let footer = pen.footer(marks);
    let fixed = [&head, &label, &pen.notes(true), &link].map(|text| units(text)).iter().sum::<usize>()
        + (units(&state) + units(&reason)).max(OUTCOME);
    let rest = WHOLE.saturating_sub(fixed);
    let (facts, words) = (pen.facts(), pen.words());
    let wanted: usize = facts.iter().map(Fact::cost).sum();
    let (for_facts, for_words) = share(rest, wanted, cost(&words, Place::Markdown));
    let (fields, facts_cut) = pen.fit_facts(&facts, for_facts);
    let words = fit(&words, for_words, Place::Markdown, |count| pen.cut(count));
    let cut = facts_cut || words.cut;
    let notes = pen.notes(cut);
    let said = if is_blank(&words.text) {
        templates.render(&Md(Words { empty: true }))
    } else {
        format!("{label}\n>>> {}", markdown(&words.text))
    };
    let top: Vec<&str> = [&state, &reason, &notes, &link]
        .into_iter()
        .map(String::as_str)
        .filter(|text| !text.is_empty())
        .collect();
    let top = top.join("\n");
    let description = within([top.as_str(), &said].join("\n").trim(), DESCRIPTION);

    let mut embed = CreateEmbed::new()
        .title(within(&head, TITLE))
        .description(description)
        .colour(colour(&card.status))
        .footer(CreateEmbedFooter::new(footer.clone()));
    if let Ok(opened) = Timestamp::from_unix_timestamp(card.opened.0.div_euclid(1000)) {
        embed = embed.timestamp(opened);
    }
    for field in &fields {
        embed = embed.field(field.name.clone(), field.value.clone(), field.narrow);
    }
    let content = pen.content();
    let allowed = allowed(&card.mention);
    let rows = pen.rows(marks, cut);
    let message = |embed| {
        let built = CreateMessage::new().content(content.clone()).embed(embed).components(rows.clone());
        finish(&built, allowed.clone())
    };
    let lines: Vec<String> = fields.iter().map(|field| format!("{}: {}", field.name, field.value)).collect();
    let plain = [head.clone(), lines.join("\n"), top, said].join("\n");
    let plain = CreateEmbed::new()
        .description(within(plain.trim(), DESCRIPTION))
        .footer(CreateEmbedFooter::new(footer.clone()));
    let compact = json!({
        "plain": message(plain),
        "withheld": pen.withheld(&state, &footer),
        "thread": pen.thread_name(),
    });
    Drawn { text: content.clone(), body: message(embed), compact, cut }
}

/// Draws what replaces a card whose state nobody knows any more.
pub(super) fn unknown(templates: &Templates) -> Drawn {
    let words = |part| markdown(&short(&line(&templates.render(&Unknown { part })), 400, Place::Markdown));
    let (head, text) = (words("head"), words("body"));
    let embed = CreateEmbed::new().title(within(&head, TITLE)).description(text.clone());
    let built =
        |embed| finish(&CreateMessage::new().content(text.clone()).embed(embed).components(vec![]), nobody());
    let plain = CreateEmbed::new().description(text.clone());
    Drawn { text: text.clone(), compact: json!({"plain": built(plain)}), body: built(embed), cut: false }
}

/// Who may be pinged by the first post.
fn allowed(mention: &Mention) -> Value {
    let (roles, users) = pinged(mention);
    only(&users, &roles)
}

/// The roles and accounts that are really pinged, in the order in which they are named.
fn pinged(mention: &Mention) -> (Vec<String>, Vec<String>) {
    let roles: Vec<_> =
        mention.groups.iter().filter(|id| role_mention(id).is_some()).take(PINGED).cloned().collect();
    let users = mention.users.iter().filter(|id| user_mention(id).is_some());
    let users = users.take(PINGED - roles.len()).cloned().collect();
    (roles, users)
}

/// A text of ours that is within its limit unless an operator's template is too long.
pub(super) fn within(text: &str, most: usize) -> String {
    if units(text) <= most { text.to_owned() } else { short(text, most, Place::Plain) }
}

/// Two texts share a budget: the smaller gets what it wants, the larger the rest, at least half.
fn share(budget: usize, first: usize, second: usize) -> (usize, usize) {
    let half = budget / 2;
    if first + second <= budget {
        (first, second)
    } else if first <= half {
        (first, budget - first)
    } else if second <= half {
        (budget - second, second)
    } else {
        (half, budget - half)
    }
}

/// A label and a value, neutralised and not yet escaped.
pub(super) struct Fact {
    label: String,
    /// Our own Markdown instead of a foreign value.
    own: Option<String>,
    value: String,
    code: bool,
}

impl Fact {
    fn cost(&self) -> usize {
        // With what stands between a name and its value in the plain drawing.
        let place = if self.code { Place::Plain } else { Place::Markdown };
        let value = self.own.as_ref().map_or_else(|| cost(&self.value, place) + FENCES, |own| units(own));
        cost(&self.label, Place::Markdown) + value + 3
    }
}

struct Field {
    name: String,
    value: String,
    narrow: bool,
}

/// One card with the words for it.
pub(super) struct Pen<'a> {
    pub(super) templates: &'a Templates,
    pub(super) card: &'a Card,
}

impl Pen<'_> {
    fn status(&self) -> &'static str {
        match self.card.status {
            Status::Open { .. } => "open",
            Status::ReadOnly => "read_only",
            Status::Delivering { .. } => "delivering",
            Status::Paused { .. } => "paused",
            Status::Ended { .. } => "ended",
        }
    }

    fn outcome(&self) -> &'static str {
        match self.card.status {
            Status::Ended { outcome, .. } => outcome.as_str(),
            _ => "",
        }
    }

    fn kind(&self) -> &'static str {
        self.card.form.kind.as_str()
    }

    fn cut(&self, count: usize) -> String {
        self.templates.render(&Cut { count })
    }

    fn head(&self) -> String {
        let agent = line(&self.card.agent);
        let head = Head { kind: self.kind(), status: self.status(), outcome: self.outcome(), agent };
        markdown(&short(&line(&self.templates.render(&head)), TITLE, Place::Markdown))
    }

    /// What, by whom, in which state; before it, who is pinged.
    fn content(&self) -> String {
        let (mut by, mut decision, mut votes, mut needed) = (None, "", 0, 1);
        match &self.card.status {
            Status::Open { votes: cast, needed: of } => (votes, needed) = (cast.len(), *of),
            Status::Delivering { by: who, decision: what, .. }
            | Status::Paused { by: who, decision: what } => {
                (by, decision) = (Some(person(who)), chosen(what));
            }
            Status::Ended { by: Some(who), .. } => by = Some(person(who)),
            Status::ReadOnly | Status::Ended { .. } => {}
        }
        let subject: Vec<String> = [Some(line(&self.card.agent)), self.about_words()]
            .into_iter()
            .flatten()
            .filter(|text| !text.is_empty())
            .collect();
        let text = Text {
            kind: self.kind(),
            status: self.status(),
            outcome: self.outcome(),
            runtime: short(&line(&self.card.runtime), LABEL, Place::Markdown),
            by,
            decision,
            votes,
            needed,
            subject: short(&subject.join(": "), PUSH_FOREIGN, Place::Markdown),
        };
        let text = self.templates.render(&Md(text));
        within([self.ping(), text].join(" ").trim(), CONTENT)
    }

    fn about_words(&self) -> Option<String> {
        let about = [&self.card.form.title, &self.card.form.prompt].map(|text| line(text));
        about.into_iter().find(|text| !text.is_empty())
    }

    /// What it is about, in few words.
    pub(super) fn about(&self) -> Option<String> {
        let about = [&self.card.form.title, &self.card.agent].map(|text| line(text));
        about.into_iter().find(|text| !text.is_empty())
    }

    fn thread_name(&self) -> String {
        let part = |text: &str| short(&line(text), 60, Place::Plain);
        let name = ThreadName {
            agent: part(&self.card.agent),
            title: part(&self.about_words().unwrap_or_default()),
        };
        let name = line(&self.templates.render(&name));
        short(name.trim_end_matches([':', ' ']), THREAD_NAME, Place::Plain)
    }

    /// Title, agent, owner and the runtime's fields. A title that only repeats server and tool, which have their
    /// fields below, is left out.
    pub(super) fn facts(&self) -> Vec<Fact> {
        let form = &self.card.form;
        let repeats = match (form.fact("server"), form.fact("tool")) {
            (Some(server), Some(tool)) => form.title == format!("{server} / {tool}"),
            _ => false,
        };
        let fact = |label: &str, value: &str| {
            let name = line(&self.templates.render(&FieldName { label: line(label) }));
            Fact {
                label: if is_blank(&name) { "—".into() } else { short(&name, LABEL, Place::Markdown) },
                own: None,
                value: if is_blank(value) { "—".into() } else { visible(value) },
                code: label == "command" || value.contains('\n'),
            }
        };
        let mut facts = vec![];
        if !repeats && !is_blank(&form.title) {
            facts.push(fact("title", &form.title));
        }
        if !is_blank(&self.card.agent) {
            facts.push(fact("agent", &self.card.agent));
        }
        if let Some(owner) = &self.card.owner {
            let own = Some(person(owner).as_str().to_owned()).filter(|own| !is_blank(own));
            facts.push(Fact { own, ..fact("owner", &owner.subject) });
        }
        facts.extend(self.card.facts().iter().map(|given| fact(&given.label, &given.value)));
        facts
    }

    /// The facts as lines of plain text, for the whole text.
    pub(super) fn fact_lines(&self) -> String {
        let lines: Vec<String> =
            self.facts().iter().map(|fact| format!("{}: {}", fact.label, fact.value)).collect();
        lines.join("\n")
    }

    fn fit_facts(&self, facts: &[Fact], budget: usize) -> (Vec<Field>, bool) {
        let costs: Vec<usize> = facts.iter().map(Fact::cost).collect();
        let cap = cap(budget, &costs);
        let mut cut = facts.len() > FIELDS;
        let mut fields = vec![];
        for fact in facts.iter().take(FIELDS) {
            let name = within(&markdown(&fact.label), FIELD_NAME);
            let room = cap.saturating_sub(cost(&fact.label, Place::Markdown) + 3).min(FIELD_VALUE);
            let field = match &fact.own {
                Some(own) if units(own) <= room => Some(Field { name, value: own.clone(), narrow: true }),
                Some(_) => None,
                None => self.fit_fact(fact, name, room, &mut cut),
            };
            cut |= field.is_none();
            fields.extend(field);
        }
        (fields, cut)
    }

    /// A fact in so much room; `None` where next to nothing of it would be left.
    fn fit_fact(&self, fact: &Fact, name: String, room: usize, cut: &mut bool) -> Option<Field> {
        if room < SMALLEST && fact.cost() > room {
            return None;
        }
        if fact.code {
            let room = room.saturating_sub(FENCES);
            let fitted = fit(&fact.value, room, Place::Plain, |count| self.cut(count));
            if let Some(code) = block(&fitted.text) {
                *cut |= fitted.cut;
                return Some(Field { name, value: code, narrow: false });
            }
        }
        let fitted = fit(&fact.value, room, Place::Markdown, |count| self.cut(count));
        *cut |= fitted.cut;
        let narrow = units(&fitted.text) <= NARROW && !fitted.text.contains('\n');
        Some(Field { name, value: markdown(&fitted.text), narrow })
    }

    /// The agent's words: the prompt, and the questions of a form with all their options.
    pub(super) fn words(&self) -> String {
        let form = &self.card.form;
        let mut words = visible(&form.prompt);
        for (at, question) in form.questions.iter().enumerate() {
            let options = question.options.iter().enumerate().map(|(at, option)| AskedOption {
                number: at + 1,
                label: line(&option.label),
                description: line(&option.description),
            });
            let asked = Asked {
                number: at + 1,
                of: form.questions.len(),
                text: if question.text == form.prompt { String::new() } else { visible(&question.text) },
                options: options.collect(),
                multiple: question.multiple,
                free_text: question.free_text,
            };
            let asked = self.templates.render(&asked);
            if !words.is_empty() && !asked.is_empty() {
                words.push_str("\n\n");
            }
            words.push_str(&asked);
        }
        words
    }

    fn notes(&self, cut: bool) -> String {
        let open = matches!(self.card.status, Status::Open { .. });
        let read_only = matches!(self.card.status, Status::ReadOnly) || open && !self.card.is_answerable();
        let notes = Notes {
            arguments_withheld: self.card.form.arguments_withheld && self.card.form.kind == Kind::Approval,
            cut,
            gated: self.card.gated,
            read_only,
            open,
            kind: self.kind(),
        };
        markdown(&short(&self.templates.render(&notes), 500, Place::Markdown))
    }

    /// Votes, delivery, outcome; empty while nothing has happened.
    fn state(&self) -> String {
        let mut state = State {
            status: self.status(),
            outcome: self.outcome(),
            rejected: false,
            by: None,
            decision: "",
            accepted: false,
            at: moment(self.card.opened),
            voted: 0,
            votes: vec![],
            needed: 1,
        };
        match &self.card.status {
            Status::Open { votes, needed } if *needed > 1 => {
                state.needed = *needed;
                state.voted = votes.len();
                state.votes = votes.iter().take(NAMED).map(person).collect();
            }
            Status::Open { .. } | Status::ReadOnly => return String::new(),
            Status::Delivering { by, decision, accepted } => {
                state.by = Some(person(by));
                state.decision = chosen(decision);
                state.accepted = *accepted;
            }
            Status::Paused { by, decision } => {
                state.by = Some(person(by));
                state.decision = chosen(decision);
            }
            Status::Ended { outcome, rejected, by, voters, elsewhere_by, elsewhere_what, at, .. } => {
                state.votes = voters.iter().take(NAMED).map(person).collect();
                state.by = by.as_ref().map(person).or_else(|| elsewhere_by.as_deref().map(name));
                state.rejected = *rejected;
                state.at = moment(*at);
                if *outcome == Outcome::Elsewhere {
                    state.decision = elsewhere_what.map_or("", |what| chosen(what.as_str()));
                }
            }
        }
        self.templates.render(&Md(state))
    }

    fn reason(&self) -> String {
        match &self.card.status {
            Status::Ended { reason: Some(reason), .. } if !is_blank(reason) => {
                let reason =
                    fit(&indented(&visible(reason)), REASON, Place::Markdown, |count| self.cut(count)).text;
                self.templates.render(&Md(Reason { reason }))
            }
            _ => String::new(),
        }
    }

    fn footer(&self, marks: &Marks) -> String {
        let named = |name: &String| short(&line(name), LABEL, Place::Plain);
        let footer = Footer {
            runtime: named(&self.card.runtime),
            approvers: self.card.approvers.iter().take(NAMED).map(named).collect(),
            short_id: format!("{} {}", named(&self.card.short_id), mark(marks.card)),
        };
        within(&line(&self.templates.render(&footer)), FOOT)
    }

    /// Once nothing can be pressed: before, there is a button.
    fn link(&self) -> String {
        match self.card.details_url.as_deref().and_then(address) {
            Some(url) if self.card.is_final() => {
                self.templates.render(&Link { part: "link", url: Markup::of(url) })
            }
            _ => String::new(),
        }
    }

    /// Whom the first post pings; empty for nobody.
    fn ping(&self) -> String {
        let (roles, users) = pinged(&self.card.mention);
        if roles.is_empty() && users.is_empty() {
            return String::new();
        }
        let wanted = self.card.mention.groups.len() + self.card.mention.users.len();
        let mentions = roles
            .iter()
            .filter_map(|id| role_mention(id))
            .chain(users.iter().filter_map(|id| user_mention(id)));
        let more = wanted.saturating_sub(roles.len() + users.len());
        self.templates.render(&Md(Ping { mentions: mentions.map(Markup::of).collect(), more }))
    }

    /// Without the agent's words, and without controls: what is not shown is not answered.
    fn withheld(&self, state: &str, footer: &str) -> Value {
        let url = self.card.details_url.as_deref().and_then(address);
        let words = self.templates.render(&Withheld { details: url.is_some() });
        let link = url.map(|url| self.templates.render(&Link { part: "link", url: Markup::of(url) }));
        let description = [state, &words, link.as_deref().unwrap_or_default()].join("\n");
        let head =
            Head { kind: self.kind(), status: self.status(), outcome: self.outcome(), agent: String::new() };
        let head = self.templates.render(&head);
        let embed = CreateEmbed::new()
            .title(within(&markdown(head.trim_end_matches([':', ' '])), TITLE))
            .description(within(description.trim(), DESCRIPTION))
            .footer(CreateEmbedFooter::new(footer.to_owned()));
        finish(&CreateMessage::new().embed(embed).components(vec![]), nobody())
    }

    fn rows(&self, marks: &Marks, cut: bool) -> Vec<CreateActionRow> {
        let drawn = self.card.controls.iter().filter(|control| cut || **control != Control::ShowAll);
        let buttons: Vec<CreateButton> = drawn
            .filter_map(|control| {
                let token = marks.tokens.iter().find(|(of, _)| of == control).map(|(_, token)| token)?;
                let label = self.templates.render(&ButtonWords { control: control.as_str(), about: None });
                let style = match control {
                    Control::Approve | Control::ApproveConfirmed => ButtonStyle::Success,
                    Control::Deny => ButtonStyle::Danger,
                    Control::DenyReason | Control::ShowAll | Control::Withdraw => ButtonStyle::Secondary,
                };
                Some(button(write(token, Verb::of(*control)), &label, style))
            })
            .collect();
        let mut rows: Vec<CreateActionRow> =
            buttons.chunks(5).map(|row| CreateActionRow::Buttons(row.to_vec())).collect();
        if !self.card.is_final()
            && let Some(url) = self.card.details_url.as_deref().and_then(address)
        {
            let label = self.templates.render(&Link { part: "label", url: Markup::of(url.clone()) });
            let link = CreateButton::new_link(url).label(short(&line(&label), BUTTON, Place::Plain));
            rows.push(CreateActionRow::Buttons(vec![link]));
        }
        rows
    }
}

/// A button with a label of ours.
pub(super) fn button(custom_id: String, label: &str, style: ButtonStyle) -> CreateButton {
    CreateButton::new(custom_id).label(short(&line(label), BUTTON, Place::Plain)).style(style)
}

/// A text of several lines as a block that no line of it can leave.
fn indented(text: &str) -> String {
    if !text.contains('\n') {
        return text.to_owned();
    }
    text.split('\n').fold(String::new(), |block, line| block + "\n│ " + line)
}

/// A decision's or an outcome's word as the control that was pressed.
fn chosen(word: &str) -> &'static str {
    match word {
        "approve" | "approved" => "approve",
        "deny" | "denied" => "deny",
        "connected" => "connected",
        "decline" | "declined" => "decline",
        _ => "answer",
    }
}

#[cfg(test)]
#[path = "render_tests.rs"]
pub(super) mod tests;

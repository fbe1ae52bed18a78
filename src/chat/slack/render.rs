//! Drawing a card as Block Kit.
//!
//! Invariant: drawing is pure and deterministic, and its result is within Slack's budgets whatever
//! the card holds. Every foreign text is neutralised (`domain::text`), then cut, then escaped or put
//! where nothing is markup. The compact drawing shows the same text with the same cuts, in sections
//! of plain text only, so "nothing was cut" means the same for both.
//!
//! Where foreign text stands: facts in plain text, each on a line of its own (a line break in a
//! value is drawn so that it cannot pass for a fact); the agent's words in a box below "Agent says";
//! names in code spans; a short piece at the end of the notification's text.

use super::blocks::{Blocks, Button, Confirm};
use super::limits::{
    BUTTON, CONFIRM_BUTTON, CONFIRM_TEXT, CONFIRM_TITLE, HEADER, LABEL, MESSAGE, NAME, REASON, SECTION, TEXT,
    TEXT_FOREIGN, cap, cost, fit, share, short, split,
};
use super::people::{address, group_mention, moment, name, person, person_in_text, user_mention};
use crate::bridge::ports::{Drawn, Marks};
use crate::domain::card::{Card, Control, Mention, Status};
use crate::domain::form::{Form, Kind};
use crate::domain::interaction::Outcome;
use crate::domain::text::{is_blank, line, visible};
use crate::render::slack::{
    Asked, AskedOption, Cut, Facts, Foot, Head, Notes, Ping, Reason, State, Text, Unknown, Words,
};
use crate::render::slack::{Button as ButtonWords, Confirm as ConfirmWords};
use crate::render::{Markup, Templates};
use slack_morphism::prelude::SlackBlockButtonStyle;

/// People named in one line, at most; more are counted by the number beside them.
const NAMED: usize = 20;
/// People and groups pinged by one card, at most.
const PINGED: usize = 40;

/// Draws a card.
pub(super) fn card(templates: &Templates, card: &Card, marks: &Marks) -> Drawn {
    let pen = Pen { templates, card };
    let head = short(&pen.head(), HEADER);
    let state = pen.state();
    let reason = pen.reason();
    let foot = pen.foot();
    let ping = pen.ping();
    let label = templates.render(&Words { empty: false });
    let nothing = templates.render(&Words { empty: true });

    // What must be there comes first; facts and words share the rest.
    let fixed =
        [&head, &label, &nothing, &reason, &pen.notes(true)].map(|text| cost(text)).iter().sum::<usize>()
            + state.len()
            + foot.len()
            + ping.len()
            + pen.buttons(marks, true).iter().map(Button::cost).sum::<usize>();
    let rest = MESSAGE.saturating_sub(fixed);
    let (facts, words) = (pen.facts(), pen.words());
    let facts_cost = facts.iter().map(|fact| cost(fact) + 1).sum::<usize>();
    let (for_facts, for_words) = share(rest, facts_cost, cost(&words));
    let (facts, facts_cut) = pen.fit_facts(&facts, for_facts);
    let words = fit(&words, for_words, |count| pen.cut(count));
    let cut = facts_cut || words.cut;
    let notes = pen.notes(cut);

    let ids = format!("cs:{}:{}", marks.card, marks.rev);
    let mut body = Blocks::new(Some(ids.clone()));
    body.header(head.clone());
    body.markup(ping.clone());
    for part in split(&facts, SECTION) {
        body.section(part);
    }
    if is_blank(&words.text) {
        body.quoted(Some(nothing.clone()), None);
    } else {
        let room = SECTION - cost(&label);
        for (at, part) in split(&words.text, room).into_iter().enumerate() {
            body.quoted((at == 0).then(|| label.clone()), Some(part));
        }
    }
    body.section(notes.clone());
    body.markup(state.clone());
    body.section(reason.clone());
    body.buttons(pen.buttons(marks, cut));
    body.context(foot);

    let mut compact = Blocks::new(Some(format!("{ids}:c")));
    let plain = [head.as_str(), &facts, &notes, &reason].map(str::trim).join("\n");
    for part in split(&plain, SECTION) {
        compact.section(part);
    }
    let said = if is_blank(&words.text) { nothing } else { format!("{label}\n{}", words.text) };
    for part in split(&said, SECTION) {
        compact.section(part);
    }
    compact.markup(ping);
    compact.markup(state);
    compact.buttons(pen.buttons(marks, cut));

    Drawn { text: pen.text(), body: body.done(), compact: compact.done(), cut }
}

/// Draws what replaces a card whose state nobody knows any more.
pub(super) fn unknown(templates: &Templates) -> Drawn {
    let head = short(&line(&templates.render(&Unknown { part: "head" })), HEADER);
    let text = short(&templates.render(&Unknown { part: "body" }), SECTION);
    let mut body = Blocks::new(None);
    body.header(head);
    body.section(text.clone());
    let mut compact = Blocks::new(None);
    compact.section(text.clone());
    Drawn {
        text: short(&crate::render::mrkdwn(&text), TEXT),
        body: body.done(),
        compact: compact.done(),
        cut: false,
    }
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
        line(&self.templates.render(&head))
    }

    /// What, by whom, in which state: for phones, screen readers and search.
    fn text(&self) -> String {
        let (mut by, mut decision, mut votes, mut needed) = (None, "", 0, 1);
        match &self.card.status {
            Status::Open { votes: cast, needed: of } => (votes, needed) = (cast.len(), *of),
            Status::Delivering { by: who, decision: what, .. }
            | Status::Paused { by: who, decision: what } => {
                (by, decision) = (Some(person_in_text(who)), chosen(what));
            }
            Status::Ended { by: Some(who), .. } => by = Some(person_in_text(who)),
            Status::ReadOnly | Status::Ended { .. } => {}
        }
        let about = [&self.card.form.title, &self.card.form.prompt].map(|text| line(text));
        let about = about.iter().find(|text| !text.is_empty()).map_or("", String::as_str);
        let agent = line(&self.card.agent);
        let subject: Vec<&str> =
            [agent.as_str(), about].into_iter().filter(|text| !text.is_empty()).collect();
        let subject = subject.join(": ");
        let text = Text {
            kind: self.kind(),
            status: self.status(),
            outcome: self.outcome(),
            runtime: short(&line(&self.card.runtime), LABEL),
            by,
            decision,
            votes,
            needed,
            subject: short(&subject, TEXT_FOREIGN),
        };
        let text = [self.ping(), self.templates.render(&text)].join(" ").trim().replace('\n', " ");
        // Only an operator's template can be longer than this.
        if text.len() > TEXT { short(&crate::render::mrkdwn(&short(&text, TEXT / 6)), TEXT) } else { text }
    }

    /// Title, agent and the runtime's fields, one entry each. A title that only repeats server and tool, which
    /// have their labels below, is left out.
    pub(super) fn facts(&self) -> Vec<String> {
        let form = &self.card.form;
        let repeats = match (form.fact("server"), form.fact("tool")) {
            (Some(server), Some(tool)) => form.title == format!("{server} / {tool}"),
            _ => false,
        };
        let nothing = String::new();
        let title = if repeats { &nothing } else { &form.title };
        let own = [("title", title), ("agent", &self.card.agent)];
        let given = self.card.facts().iter().map(|fact| (fact.label.as_str(), &fact.value));
        let entries = own.into_iter().filter(|(_, value)| !is_blank(value)).chain(given);
        entries
            .map(|(label, value)| {
                let label = short(&line(label), LABEL);
                self.templates.render(&Facts { label, value: indented(&visible(value)) })
            })
            .collect()
    }

    fn fit_facts(&self, facts: &[String], budget: usize) -> (String, bool) {
        let costs: Vec<usize> = facts.iter().map(|fact| cost(fact) + 1).collect();
        let cap = cap(budget, &costs).saturating_sub(1);
        let fitted: Vec<_> = facts.iter().map(|fact| fit(fact, cap, |count| self.cut(count))).collect();
        let cut = fitted.iter().any(|fact| fact.cut);
        (fitted.into_iter().map(|fact| fact.text).collect::<Vec<_>>().join("\n"), cut)
    }

    /// The agent's words: the prompt, and the questions of a form with all their options.
    pub(super) fn words(&self) -> String {
        let Form { prompt, questions, .. } = &self.card.form;
        let mut words = visible(prompt);
        for (at, question) in questions.iter().enumerate() {
            let options = question.options.iter().enumerate().map(|(at, option)| AskedOption {
                number: at + 1,
                label: line(&option.label),
                description: line(&option.description),
            });
            let asked = Asked {
                number: at + 1,
                of: questions.len(),
                text: if question.text == *prompt { String::new() } else { visible(&question.text) },
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
        short(&self.templates.render(&notes), SECTION / 2)
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
                state.voted = voters.len();
                state.votes = voters.iter().take(NAMED).map(person).collect();
                state.by = by.as_ref().map(person).or_else(|| elsewhere_by.as_deref().map(name));
                state.rejected = *rejected;
                state.at = moment(*at);
                if *outcome == Outcome::Elsewhere {
                    state.decision = elsewhere_what.map_or("", |what| chosen(what.as_str()));
                }
            }
        }
        self.templates.render(&state)
    }

    fn reason(&self) -> String {
        match &self.card.status {
            Status::Ended { reason: Some(reason), .. } if !is_blank(reason) => {
                let reason = fit(&indented(&visible(reason)), REASON, |count| self.cut(count)).text;
                short(&self.templates.render(&Reason { reason }), SECTION)
            }
            _ => String::new(),
        }
    }

    fn foot(&self) -> String {
        let named = |name: &String| short(&line(name), LABEL);
        let foot = Foot {
            runtime: named(&self.card.runtime),
            owner: self.card.owner.as_ref().map(person),
            approvers: self.card.approvers.iter().take(NAMED).map(named).collect(),
            more: self.card.approvers.len().saturating_sub(NAMED),
            opened: moment(self.card.opened),
            short_id: named(&self.card.short_id).replace('`', "\u{2cb}"),
            details_url: self.card.details_url.as_deref().and_then(address),
        };
        self.templates.render(&foot)
    }

    /// Whom the first post pings; empty for nobody.
    fn ping(&self) -> String {
        let Mention { users, groups } = &self.card.mention;
        let found: Vec<_> = groups
            .iter()
            .filter_map(|id| group_mention(id))
            .chain(users.iter().filter_map(|id| user_mention(id)))
            .collect();
        if found.is_empty() {
            return String::new();
        }
        let more = found.len().saturating_sub(PINGED);
        let mentions = found.into_iter().take(PINGED).map(Markup::of).collect();
        self.templates.render(&Ping { mentions, more })
    }

    /// What it is about, in few words.
    pub(super) fn about(&self) -> Option<String> {
        let about = [&self.card.form.title, &self.card.agent].map(|text| line(text));
        about.into_iter().find(|text| !text.is_empty())
    }

    fn confirm(&self, about: Option<&String>) -> Confirm {
        let words = |part, most| {
            let about = about.map(|about| short(about, NAME));
            let agent = short(&line(&self.card.agent), NAME);
            short(&line(&self.templates.render(&ConfirmWords { part, about, agent })), most)
        };
        Confirm {
            title: words("title", CONFIRM_TITLE),
            text: words("text", CONFIRM_TEXT),
            yes: words("confirm", CONFIRM_BUTTON),
            no: words("cancel", CONFIRM_BUTTON),
        }
    }

    fn buttons(&self, marks: &Marks, cut: bool) -> Vec<Button> {
        let about = self.about();
        let drawn = self.card.controls.iter().filter(|control| cut || **control != Control::ShowAll);
        let controls = drawn.filter_map(|control| {
            let token = marks.tokens.iter().find(|(of, _)| of == control).map(|(_, token)| token.clone())?;
            let words = |about| self.templates.render(&ButtonWords { control: control.as_str(), about });
            let (action, style) = match control {
                Control::Approve | Control::ApproveConfirmed => {
                    ("cs.approve", Some(SlackBlockButtonStyle::Primary))
                }
                Control::Deny => ("cs.deny", Some(SlackBlockButtonStyle::Danger)),
                Control::DenyReason => ("cs.deny_reason", None),
                Control::ShowAll => ("cs.show_all", None),
                Control::Withdraw => ("cs.withdraw", None),
            };
            let label = short(&line(&words(None)), BUTTON);
            let spoken = short(&line(&words(about.clone())), BUTTON);
            let asks = *control == Control::ApproveConfirmed;
            let confirm = asks.then(|| self.confirm(about.as_ref()));
            Some(Button { action, label, spoken, token, style, confirm })
        });
        controls.collect()
    }
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

/// A value of several lines as a block that no line of it can leave.
fn indented(value: &str) -> String {
    if !value.contains('\n') {
        return value.to_owned();
    }
    value.split('\n').fold(String::new(), |block, line| block + "\n│ " + line)
}

#[cfg(test)]
#[path = "render_tests.rs"]
mod tests;

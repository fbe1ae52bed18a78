//! interactions/v1: from a paused task to a form, and from its history to past answers.
//!
//! Invariants:
//! - what a person is asked comes from `metadata[URI]`; where the runtime withholds it, the plain
//!   text stands in: read-only where an approval or a connection may be meant (text never approves),
//!   answerable by text where input is required;
//! - an id of ours for an interaction without one is marked, so that it is never sent as the
//!   runtime's own;
//! - facts come from named fields only, never from prose.

use super::types::{LONGEST_ID, Message, State, Task, clean, text};
use crate::bridge::ports::{PastAnswer, Seen, TaskReading, TaskState};
use crate::domain::clock::Millis;
use crate::domain::form::{Fact, Form, Kind, Question, sha256_hex};
use crate::domain::ids::{InteractionKey, RuntimeName, Subject};
use crate::domain::interaction::{End, Outcome};
use serde_json::{Map, Value};
use std::collections::HashMap;

/// The extension's name (interactions/v1, "URI").
pub const URI: &str = "https://docs.nylorun.com/a2a/interactions/v1";

/// Marks an interaction that has no id of the runtime's: what follows is the status message's id,
/// or a hash.
const PLAIN: &str = "~plain:";

/// Whether this is our own name for an interaction without metadata.
pub(crate) fn is_plain(external: &str) -> bool {
    external.starts_with(PLAIN)
}

/// Who reads, when and as whom.
#[derive(Debug, Clone)]
pub(crate) struct View<'a> {
    pub(crate) runtime: &'a RuntimeName,
    pub(crate) agent: &'a str,
    pub(crate) seen_as: Option<Subject>,
    pub(crate) owner: Option<Subject>,
    pub(crate) began: Millis,
}

/// What a task says, as an authoritative reading.
pub(crate) fn reading(task: &Task, view: View<'_>) -> TaskReading {
    let state = match task.state {
        State::InputRequired | State::AuthRequired => TaskState::Waiting(Box::new(seen(task, &view))),
        State::Running => TaskState::Running,
        State::Completed => TaskState::Completed,
        State::Canceled => TaskState::Ended(End::Canceled),
        State::Failed => TaskState::Ended(End::Failed),
        State::Rejected => TaskState::Ended(End::Rejected),
        State::Unclear => TaskState::Unclear,
    };
    TaskReading {
        agent: view.agent.into(),
        task: task.id.clone(),
        context: task.context.clone(),
        seen_as: view.seen_as,
        began: view.began,
        state,
        history: past_answers(&task.history),
    }
}

fn seen(task: &Task, view: &View<'_>) -> Seen {
    let asked = task.message.as_ref().and_then(asked);
    let words = task.message.as_ref().map(Message::text).unwrap_or_default();
    let (external, form) = match asked {
        Some((external, fields)) => (external, form(fields, &words)),
        None => (plain_id(task, &words), plain_form(task.state, words)),
    };
    Seen {
        key: InteractionKey {
            runtime: view.runtime.clone(),
            agent: view.agent.into(),
            task: task.id.clone(),
            external,
        },
        form,
        owner: view.owner.clone(),
    }
}

/// The extension's object of a message and its interaction id, also where `extensions` does not
/// list the extension. An id that could not be sent back unchanged is not usable.
fn asked(message: &Message) -> Option<(String, &Map<String, Value>)> {
    let fields = message.metadata.get(URI)?.as_object()?;
    let id = fields.get("interactionId")?.as_str()?;
    let usable = !id.is_empty() && id.len() <= LONGEST_ID && !id.contains('\0') && !is_plain(id);
    usable.then(|| (id.to_owned(), fields))
}

fn form(fields: &Map<String, Value>, words: &str) -> Form {
    let prompt = match fields.get("prompt").and_then(Value::as_str) {
        Some(prompt) if !prompt.is_empty() => clean(prompt),
        _ => words.to_owned(),
    };
    let kind = match fields.get("kind").and_then(Value::as_str) {
        Some("approval") => Kind::Approval,
        Some("question") => Kind::Question,
        Some("connection") => Kind::Connection,
        _ => Kind::Unknown,
    };
    let detail = fields.get("detail").unwrap_or(&Value::Null);
    let facts: Vec<Fact> = ["server", "tool", "reason", "app"]
        .into_iter()
        .filter_map(|label| Some(Fact { label: label.into(), value: text(detail, label)? }))
        .collect();
    let value = |label: &str| facts.iter().find(|fact| fact.label == label).map(|fact| fact.value.as_str());
    let title = match (value("server"), value("tool"), value("app")) {
        (Some(server), Some(tool), _) => format!("{server} / {tool}"),
        (_, Some(one), _) | (_, None, Some(one)) => one.to_owned(),
        _ => String::new(),
    };
    let questions = if kind == Kind::Question { vec![free_text(&prompt)] } else { vec![] };
    Form { arguments_withheld: kind == Kind::Approval, kind, title, prompt, facts, questions }
}

/// What is known where the runtime sends plain text only.
fn plain_form(state: State, words: String) -> Form {
    let input = state == State::InputRequired;
    Form {
        kind: if input { Kind::Question } else { Kind::Unknown },
        title: String::new(),
        facts: vec![],
        questions: if input { vec![free_text(&words)] } else { vec![] },
        prompt: words,
        arguments_withheld: false,
    }
}

/// The extension's question takes any value; it names no options.
fn free_text(prompt: &str) -> Question {
    Question { id: "answer".into(), text: prompt.into(), options: vec![], multiple: false, free_text: true }
}

fn plain_id(task: &Task, words: &str) -> String {
    let of_message = task.message.as_ref().and_then(|message| message.id.as_deref());
    of_message.filter(|id| id.len() + PLAIN.len() <= LONGEST_ID).map_or_else(
        || {
            let timestamp = task.timestamp.as_deref().unwrap_or_default();
            let hash = sha256_hex(format!("{}\0{timestamp}\0{words}", task.id).as_bytes());
            format!("{PLAIN}{hash}")
        },
        |id| format!("{PLAIN}{id}"),
    )
}

/// Answers that the history tells of: what users sent under the extension. The kind of what they
/// answered is known where the history also holds the question.
fn past_answers(history: &[Message]) -> Vec<PastAnswer> {
    let mut kinds: HashMap<String, Kind> = HashMap::new();
    let mut found = vec![];
    for message in history {
        let Some((external, fields)) = asked(message) else {
            // An answer by text names no interaction, but it may be ours.
            if message.from_user && message.id.is_some() {
                found.push(PastAnswer {
                    external: String::new(),
                    message_id: message.id.clone(),
                    who: None,
                    what: None,
                });
            }
            continue;
        };
        if message.from_user {
            let what = outcome(kinds.get(&external), fields);
            found.push(PastAnswer { external, message_id: message.id.clone(), who: None, what });
        } else {
            let words = message.text();
            kinds.insert(external, form(fields, &words).kind);
        }
    }
    found
}

/// How an answer reads for this kind (interactions/v1, "The answer"): `approved` counts as the value
/// of a question or connection, a boolean `value` as `approved` of an approval.
fn outcome(kind: Option<&Kind>, answer: &Map<String, Value>) -> Option<Outcome> {
    let approved = answer.get("approved").filter(|approved| approved.is_boolean());
    let value = answer.get("value").filter(|value| !value.is_null());
    let either = approved.or(value);
    let yes = |is: bool, yes, no| if is { yes } else { no };
    match kind {
        Some(Kind::Approval) => either?.as_bool().map(|is| yes(is, Outcome::Approved, Outcome::Denied)),
        Some(Kind::Question) => either.map(|_| Outcome::Answered),
        Some(Kind::Connection) => either.map(|value| {
            let connected = value == &Value::Bool(true) || value.get("connected") == Some(&Value::Bool(true));
            yes(connected, Outcome::Connected, Outcome::Declined)
        }),
        _ => match (approved.and_then(Value::as_bool), value) {
            (Some(is), _) => Some(yes(is, Outcome::Approved, Outcome::Denied)),
            (None, Some(Value::Object(fields))) if fields.len() == 1 && fields.contains_key("connected") => {
                let connected = fields.get("connected") == Some(&Value::Bool(true));
                Some(yes(connected, Outcome::Connected, Outcome::Declined))
            }
            // A bare boolean may answer anything: no guess.
            (None, Some(Value::Bool(_)) | None) => None,
            (None, Some(_)) => Some(Outcome::Answered),
        },
    }
}

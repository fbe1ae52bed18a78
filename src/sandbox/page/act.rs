//! What the viewer does as somebody in the chat (press, fill in, submit, close, write, open the
//! app's Home), and four things on the runtime's side.
//!
//! Invariant: a press goes the stand-in's own way, so what the app sees is what Slack would send;
//! whatever cannot be done is answered with words for the viewer, and changes nothing.

use super::Page;
use crate::sandbox::a2a::{Decision, Elsewhere, InteractionView, Phase, State as TaskState};
use crate::sandbox::company::{PEOPLE, TEAM};
use crate::sandbox::slack::{Delivery, Input, Manner, PressError, Spot};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// One thing the viewer does.
#[derive(Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", rename_all_fields = "camelCase", deny_unknown_fields)]
pub(super) enum Act {
    /// Presses a control, by `block_id/action_id`.
    Press { user: String, at: Spot, control: String },
    /// Fills in a field, by `block_id/action_id`.
    Fill { user: String, at: Spot, field: String, input: Input },
    /// Submits the modal in front.
    Submit { user: String, view: String },
    /// Closes it.
    Close { user: String, view: String },
    /// Writes into a channel; what begins with `/` is a command.
    Say { user: String, channel: String, text: String },
    /// Opens the app's Home.
    Home { user: String },
    /// Something in the Discord.
    Discord { user: String, what: super::discord::Doing },
    /// Ends a task from the runtime's side.
    Cancel { task_id: String },
    /// Approves in the product, as the person the agent works for.
    Answer { interaction_id: String },
    /// Makes an open request say something else.
    Change { interaction_id: String },
    /// Lets the agent ask for one thing more.
    Open {},
}

type Said = (StatusCode, Json<Value>);

fn done() -> Said {
    (StatusCode::OK, Json(json!({"ok": true})))
}

fn not(why: &str) -> Said {
    (StatusCode::CONFLICT, Json(json!({"ok": false, "why": why})))
}

fn done_if(did: bool, why: &str) -> Said {
    if did { done() } else { not(why) }
}

pub(super) async fn act(State(page): State<Arc<Page>>, Json(act): Json<Act>) -> Said {
    match act {
        Act::Press { user, .. }
        | Act::Fill { user, .. }
        | Act::Submit { user, .. }
        | Act::Close { user, .. }
        | Act::Say { user, .. }
        | Act::Home { user }
        | Act::Discord { user, .. }
            if !PEOPLE.iter().any(|person| person.user == user) =>
        {
            not("Nobody of that name is here.")
        }
        Act::Press { user, at, control } => {
            told(page.slack.press_raw(&user, &at, &control, &Manner::default(), |_| {}).await)
        }
        Act::Fill { user, at, field, input } => {
            let filled = page.slack.fill(&user, &at, &field, &input).await;
            told_or_silent(filled.map(|delivery| delivery.into_iter().collect()))
        }
        Act::Submit { user, view } => told(page.slack.submit(&user, &view).await.map(|one| vec![one])),
        Act::Close { user, view } => {
            let closed = page.slack.close_view(&user, &view).await;
            told_or_silent(closed.map(|delivery| delivery.into_iter().collect()))
        }
        Act::Say { user, channel, text } => match text.split_once(' ').unwrap_or((&text, "")) {
            (name, rest) if name.starts_with('/') => {
                told(page.slack.command(&user, &channel, name, rest.trim()).await.map(|one| vec![one]))
            }
            _ => {
                page.slack.say(&user, &channel, &text);
                done()
            }
        },
        Act::Home { user } => told(page.slack.open_home(&user, TEAM).await.map(|one| vec![one])),
        Act::Discord { user, what } => match super::discord::act(&page, &user, what).await {
            Ok(()) => done(),
            Err(why) => not(&why),
        },
        Act::Cancel { task_id } => {
            let text = Some("Canceled in the product.");
            done_if(page.a2a.end(&task_id, TaskState::Canceled, text), "This task has ended already.")
        }
        Act::Answer { interaction_id } => {
            let Some(owner) = owner_of(&page, &interaction_id) else {
                return not("There is no such request.");
            };
            let answer = Elsewhere {
                subject: owner,
                decision: Decision::Approved(true),
                history: true,
                message_id: None,
            };
            done_if(page.a2a.answer_elsewhere(&interaction_id, answer), "This request is not open any more.")
        }
        Act::Change { interaction_id } => {
            let number = page.changes.fetch_add(1, Ordering::Relaxed) + 1;
            let did = page.a2a.interaction(&interaction_id).is_some_and(|asked| asked.phase == Phase::Open)
                && page.a2a.change(&interaction_id, |ask| {
                    ask.reason = Some(format!("Changed after it was asked (change {number})"));
                });
            done_if(did, "This request is not open any more.")
        }
        Act::Open {} => {
            done_if(page.agent.open_next().is_some(), "Enough requests are open; answer one first.")
        }
    }
}

/// What the viewer hears of a delivery.
fn told(delivered: Result<Vec<Delivery>, PressError>) -> Said {
    match delivered {
        Ok(deliveries) if deliveries.iter().any(Delivery::acked) => done(),
        Ok(_) => {
            not("Countersign did not answer within three seconds; Slack shows a warning then. Try again.")
        }
        Err(PressError::Required(field)) => not(&format!("Please fill in: {field}")),
        Err(error) => not(&format!("That is not possible now ({error}).")),
    }
}

/// The same where Slack may have nothing to deliver.
fn told_or_silent(delivered: Result<Vec<Delivery>, PressError>) -> Said {
    match delivered {
        Ok(deliveries) if deliveries.is_empty() => done(),
        delivered => told(delivered),
    }
}

fn owner_of(page: &Page, interaction_id: &str) -> Option<String> {
    let holds = |all: &[InteractionView]| all.iter().any(|asked| asked.id == interaction_id);
    page.a2a.tasks().into_iter().find(|task| holds(&task.interactions)).map(|task| task.owner)
}

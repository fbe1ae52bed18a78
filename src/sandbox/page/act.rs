//! What the viewer does: press a control as somebody, and four things on the runtime's side.
//!
//! Invariant: a press goes the stand-in's own way, so what the app sees is what Slack would send;
//! whatever cannot be done is answered with words for the viewer, and changes nothing.

use super::Page;
use crate::sandbox::a2a::{Decision, Elsewhere, InteractionView, Phase, State as TaskState};
use crate::sandbox::company::PEOPLE;
use crate::sandbox::slack::{Delivery, Manner, Spot};
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
    /// Presses a control, by its action id.
    Press { user: String, at: Spot, control: String },
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
        Act::Press { user, at, control } => press(&page, &user, &at, &control).await,
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

async fn press(page: &Page, user: &str, at: &Spot, control: &str) -> Said {
    if !PEOPLE.iter().any(|person| person.user == user) {
        return not("Nobody of that name is here.");
    }
    match page.slack.press_raw(user, at, control, &Manner::default(), |_| {}).await {
        Ok(deliveries) if deliveries.iter().any(Delivery::acked) => done(),
        Ok(_) => {
            not("Countersign did not answer within three seconds; Slack shows a warning then. Press again.")
        }
        Err(error) => not(&format!("That is not possible now ({error}).")),
    }
}

fn owner_of(page: &Page, interaction_id: &str) -> Option<String> {
    let holds = |all: &[InteractionView]| all.iter().any(|asked| asked.id == interaction_id);
    page.a2a.tasks().into_iter().find(|task| holds(&task.interactions)).map(|task| task.owner)
}

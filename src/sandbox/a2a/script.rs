//! What a test or the demo makes agents do.
//!
//! Invariant: a script uses the same `apply` as an answer over A2A, so both leave the same world.

use super::INTERACTIONS_V1;
use super::card::CardSpec;
use super::model::{Accepted, Ask, Decision, InteractionView, Phase, State, Status, TaskView};
use super::ops;
use super::world::A2aWorld;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A task to open.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Open {
    #[serde(default = "release")]
    pub agent: String,
    /// The subject the agent works for.
    pub owner: String,
    /// Default: a fresh one.
    #[serde(default)]
    pub context_id: Option<String>,
    pub ask: Ask,
    /// Asked one after another behind it.
    #[serde(default)]
    pub queue: Vec<Ask>,
}

fn release() -> String {
    "release".into()
}

impl Open {
    /// A task of agent `release`.
    #[must_use]
    pub fn new(owner: &str, ask: Ask) -> Self {
        Self { agent: release(), owner: owner.into(), context_id: None, ask, queue: Vec::new() }
    }
}

/// Where an opened interaction is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Opened {
    pub task_id: String,
    pub context_id: String,
    pub interaction_id: String,
    /// The ids of those behind it.
    pub queued: Vec<String>,
}

/// An answer given in the product.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Elsewhere {
    pub subject: String,
    pub decision: Decision,
    /// Whether the task's history shows it.
    #[serde(default)]
    pub history: bool,
    /// Default: what the product's own client sends.
    #[serde(default)]
    pub message_id: Option<String>,
}

impl A2aWorld {
    /// Opens a task that waits; makes the agent if it is new.
    pub fn open(&self, open: Open) -> Opened {
        let now = self.now_ms();
        let opened = self.with(|inner| {
            inner.cards.entry(open.agent.clone()).or_insert_with(CardSpec::default);
            let number = inner.next_number();
            let context_id = open.context_id.unwrap_or_else(|| self.id(number, "ctx"));
            let task_id = self.task_id(number, &context_id);
            let mut task = TaskView::new(task_id.clone(), &open.agent, context_id.clone(), &open.owner, now);
            let mut ids = Vec::new();
            for ask in std::iter::once(open.ask).chain(open.queue) {
                let id = self.id(inner.next_number(), "eff_");
                ids.push(id.clone());
                task.interactions.push(InteractionView {
                    id,
                    ask,
                    phase: Phase::Queued,
                    answers: Vec::new(),
                });
            }
            task.set(Status { state: State::Working, at_ms: now, open: None, text: None });
            task.pause_at_next(now);
            inner.tasks.insert(task_id.clone(), task);
            let queued = ids.split_off(1);
            Opened { task_id, context_id, interaction_id: ids.remove(0), queued }
        });
        self.touch();
        opened
    }

    /// Asks once more in a task: at once when it is working, else behind what is open. The id, or
    /// `None` for a task that is not there or has ended.
    pub fn ask(&self, task_id: &str, ask: Ask) -> Option<String> {
        let now = self.now_ms();
        let id = self.with(|inner| {
            let number = inner.next_number();
            let task = inner.tasks.get_mut(task_id).filter(|task| !task.state().is_terminal())?;
            let id = self.id(number, "eff_");
            let asked = InteractionView { id: id.clone(), ask, phase: Phase::Queued, answers: Vec::new() };
            task.interactions.push(asked);
            if !task.state().is_interrupted() {
                task.pause_at_next(now);
            }
            Some(id)
        });
        self.touch();
        id
    }

    /// Changes what an open or queued interaction says; false when it is neither.
    pub fn change(&self, interaction_id: &str, change: impl FnOnce(&mut Ask)) -> bool {
        let now = self.now_ms();
        let changed = self.with(|inner| {
            let Some(task) = inner.task_of(interaction_id) else { return false };
            let Some(asked) = task.interaction_mut(interaction_id) else { return false };
            if !matches!(asked.phase, Phase::Open | Phase::Queued) {
                return false;
            }
            change(&mut asked.ask);
            if asked.phase == Phase::Open {
                let status = Status { at_ms: now, ..task.status.clone() };
                task.set(status);
            }
            true
        });
        self.touch();
        changed
    }

    /// Moves a task to a state without an answer: an end, or `WORKING` for a run that goes on by
    /// itself. False when it is not there, has ended, or the state is a pause.
    pub fn end(&self, task_id: &str, state: State, text: Option<&str>) -> bool {
        let now = self.now_ms();
        let ended = self.with(|inner| {
            let task = inner.tasks.get_mut(task_id).filter(|task| !task.state().is_terminal());
            let Some(task) = task.filter(|_| !state.is_interrupted()) else { return false };
            task.leave(state, text.map(str::to_owned), now);
            true
        });
        self.touch();
        ended
    }

    /// Answers an open interaction in the product; false when it is not open.
    pub fn answer_elsewhere(&self, interaction_id: &str, answer: Elsewhere) -> bool {
        let now = self.now_ms();
        let answered = self.with(|inner| {
            let stale_ms = inner.switches.stale_reads_ms;
            let Some(task) = inner.task_of(interaction_id) else { return false };
            let open = task.interaction(interaction_id).filter(|asked| asked.phase == Phase::Open);
            let Some(ask) = open.map(|asked| asked.ask.clone()) else { return false };
            let message_id = answer.message_id.unwrap_or_else(|| format!("answer:{interaction_id}"));
            if answer.history {
                task.history.push(entry(task, interaction_id, &message_id, &answer.decision));
            }
            let accepted = ops::accepted(&ask, answer.decision, &answer.subject, &message_id, now);
            ops::apply(task, interaction_id, Accepted { elsewhere: true, ..accepted }, stale_ms);
            true
        });
        self.touch();
        answered
    }

    /// Forgets a task, as an operator's reset does.
    pub fn delete(&self, task_id: &str) -> bool {
        let deleted = self.with(|inner| {
            inner.sent.retain(|_, sent| sent.task_id != task_id);
            inner.tasks.remove(task_id).is_some()
        });
        self.touch();
        deleted
    }

    /// Hides a task from lists, or shows it again; reads by id still find it.
    pub fn unlist(&self, task_id: &str, unlisted: bool) -> bool {
        self.task_mut(task_id, |task| task.unlisted = unlisted)
    }

    /// Writes another state name than the true one (`None` ends that).
    pub fn show_as(&self, task_id: &str, state: Option<&str>) -> bool {
        self.task_mut(task_id, |task| task.shown_as = state.map(str::to_owned))
    }

    /// Adds an artifact to a task.
    pub fn add_artifact(&self, task_id: &str, artifact: Value) -> bool {
        self.task_mut(task_id, |task| task.artifacts.push(artifact))
    }

    fn task_mut(&self, task_id: &str, change: impl FnOnce(&mut TaskView)) -> bool {
        let changed = self.with(|inner| inner.tasks.get_mut(task_id).map(change));
        self.touch();
        changed.is_some()
    }
}

/// The product's message as history shows it.
fn entry(task: &TaskView, interaction_id: &str, message_id: &str, decision: &Decision) -> Value {
    let (data, mut answer) = match decision {
        Decision::Approved(approved) => (json!({"approved": approved}), json!({"approved": approved})),
        Decision::Value(value) => (value.clone(), json!({"value": value})),
        Decision::Connected(connected) => {
            (json!({"connected": connected}), json!({"value": {"connected": connected}}))
        }
    };
    answer["interactionId"] = interaction_id.into();
    json!({"messageId": message_id, "role": "ROLE_USER", "taskId": task.id, "contextId": task.context,
        "parts": [{"data": data}], "extensions": [INTERACTIONS_V1], "metadata": {INTERACTIONS_V1: answer}})
}

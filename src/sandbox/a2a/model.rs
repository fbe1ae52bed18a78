//! Tasks and interactions as the stand-in holds them, and the views tests read.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Task states (A2A 1.0 §4.1.3), under their proto names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum State {
    #[serde(rename = "TASK_STATE_SUBMITTED")]
    Submitted,
    #[serde(rename = "TASK_STATE_WORKING")]
    Working,
    #[serde(rename = "TASK_STATE_INPUT_REQUIRED")]
    InputRequired,
    #[serde(rename = "TASK_STATE_AUTH_REQUIRED")]
    AuthRequired,
    #[serde(rename = "TASK_STATE_COMPLETED")]
    Completed,
    #[serde(rename = "TASK_STATE_FAILED")]
    Failed,
    #[serde(rename = "TASK_STATE_CANCELED")]
    Canceled,
    #[serde(rename = "TASK_STATE_REJECTED")]
    Rejected,
}

impl State {
    const ALL: [Self; 8] = [
        Self::Submitted,
        Self::Working,
        Self::InputRequired,
        Self::AuthRequired,
        Self::Completed,
        Self::Failed,
        Self::Canceled,
        Self::Rejected,
    ];

    /// The name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Submitted => "TASK_STATE_SUBMITTED",
            Self::Working => "TASK_STATE_WORKING",
            Self::InputRequired => "TASK_STATE_INPUT_REQUIRED",
            Self::AuthRequired => "TASK_STATE_AUTH_REQUIRED",
            Self::Completed => "TASK_STATE_COMPLETED",
            Self::Failed => "TASK_STATE_FAILED",
            Self::Canceled => "TASK_STATE_CANCELED",
            Self::Rejected => "TASK_STATE_REJECTED",
        }
    }

    /// The state of that wire name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }

    #[must_use]
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Canceled | Self::Rejected)
    }

    #[must_use]
    pub const fn is_interrupted(self) -> bool {
        matches!(self, Self::InputRequired | Self::AuthRequired)
    }
}

/// What an agent asks. One shape for tests and for the control API.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ask {
    /// `approval`, `question`, `connection`, or any other word for an unknown kind.
    pub kind: String,
    /// Default: what the runtime itself would say for the kind.
    #[serde(default)]
    pub prompt: Option<String>,
    #[serde(default)]
    pub server: Option<String>,
    #[serde(default)]
    pub tool: Option<String>,
    #[serde(default)]
    pub app: Option<String>,
    #[serde(default)]
    pub reason: Option<String>,
    /// More members of `detail`.
    #[serde(default)]
    pub detail: Map<String, Value>,
    /// Off: the status message is plain text, without the extension's metadata.
    #[serde(default = "yes")]
    pub metadata: bool,
    /// Off: the metadata is there, but `extensions` does not list it.
    #[serde(default = "yes")]
    pub listed: bool,
    /// Default: the state that belongs to the kind.
    #[serde(default)]
    pub state: Option<State>,
}

const fn yes() -> bool {
    true
}

impl Ask {
    fn of(kind: &str, prompt: Option<String>) -> Self {
        Self {
            kind: kind.to_owned(),
            prompt,
            server: None,
            tool: None,
            app: None,
            reason: None,
            detail: Map::new(),
            metadata: true,
            listed: true,
            state: None,
        }
    }

    /// A held call; the prompt is `Approve <server> / <tool>?` unless set.
    #[must_use]
    pub fn approval(server: &str, tool: &str) -> Self {
        Self { server: Some(server.into()), tool: Some(tool.into()), ..Self::of("approval", None) }
    }

    #[must_use]
    pub fn question(prompt: &str) -> Self {
        Self::of("question", Some(prompt.into()))
    }

    /// The prompt is `Connect <app>: <reason>`.
    #[must_use]
    pub fn connection(app: &str, reason: &str) -> Self {
        Self { app: Some(app.into()), reason: Some(reason.into()), ..Self::of("connection", None) }
    }

    /// A kind that no client knows, in the given state.
    #[must_use]
    pub fn unknown(kind: &str, prompt: &str, state: State) -> Self {
        Self { state: Some(state), ..Self::of(kind, Some(prompt.into())) }
    }

    /// A pause without the extension's metadata.
    #[must_use]
    pub fn plain(text: &str, state: State) -> Self {
        Self { metadata: false, state: Some(state), ..Self::of("plain", Some(text.into())) }
    }

    #[must_use]
    pub fn prompt(mut self, prompt: &str) -> Self {
        self.prompt = Some(prompt.into());
        self
    }

    #[must_use]
    pub fn reason(mut self, reason: &str) -> Self {
        self.reason = Some(reason.into());
        self
    }

    #[must_use]
    pub fn detail(mut self, key: &str, value: Value) -> Self {
        self.detail.insert(key.into(), value);
        self
    }

    /// The state a task waits in (interactions/v1, "The open interaction").
    pub(super) fn pause_state(&self) -> State {
        self.state.unwrap_or(if self.kind == "question" { State::InputRequired } else { State::AuthRequired })
    }

    /// What a person is shown.
    #[must_use]
    pub fn wording(&self) -> String {
        if let Some(prompt) = &self.prompt {
            return prompt.clone();
        }
        let of = |value: &Option<String>| value.clone().unwrap_or_default();
        match self.kind.as_str() {
            "connection" => {
                format!("Connect {}: {}", cut(&of(&self.app), 80), cut(&of(&self.reason), 280))
            }
            _ => format!("Approve {} / {}?", of(&self.server), of(&self.tool)),
        }
    }

    /// The `detail` member, if there is anything to say.
    pub(super) fn detail_object(&self) -> Option<Value> {
        let mut detail = self.detail.clone();
        let connection = self.kind == "connection";
        for (key, value, limit) in [
            ("server", &self.server, usize::MAX),
            ("tool", &self.tool, usize::MAX),
            ("app", &self.app, if connection { 80 } else { usize::MAX }),
            ("reason", &self.reason, if connection { 280 } else { usize::MAX }),
        ] {
            if let Some(value) = value {
                detail.insert(key.into(), cut(value, limit).into());
            }
        }
        (!detail.is_empty()).then_some(Value::Object(detail))
    }
}

fn cut(text: &str, limit: usize) -> String {
    text.chars().take(limit).collect()
}

/// How an answer was read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    Approved(bool),
    Value(Value),
    Connected(bool),
}

/// One application of an answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Accepted {
    pub at_ms: i64,
    /// The caller's subject.
    pub approved_by: String,
    pub decision: Decision,
    pub message_id: String,
    /// By a script, that is: in the product, not over A2A.
    pub elsewhere: bool,
    /// What the model is told: `released`, `tool.denied`, the value, `Connected: <app>`, …
    pub effect: Value,
    /// How often the same message came again and was answered with the current task.
    pub replays: u32,
}

/// Where an interaction stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Waits behind another one of its task.
    Queued,
    Open,
    Answered,
    /// The task ended before an answer.
    Ended,
}

/// One interaction, for assertions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InteractionView {
    pub id: String,
    pub ask: Ask,
    pub phase: Phase,
    /// Every application; more than one is a defect of somebody.
    pub answers: Vec<Accepted>,
}

impl InteractionView {
    /// The subject recorded with the first accepted answer.
    #[must_use]
    pub fn approved_by(&self) -> Option<&str> {
        self.answers.first().map(|answer| answer.approved_by.as_str())
    }
}

/// A task's status; the wording of a pause is looked up in its interaction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Status {
    pub(super) state: State,
    pub(super) at_ms: i64,
    pub(super) open: Option<String>,
    pub(super) text: Option<String>,
}

/// One task with everything that happened to it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TaskView {
    pub id: String,
    pub agent: String,
    pub context: String,
    pub owner: String,
    pub(super) status: Status,
    /// The name written instead of the true state's: a state no client knows.
    pub(super) shown_as: Option<String>,
    /// Reads by id find it, lists do not.
    pub(super) unlisted: bool,
    /// A lagging replica's status, and until when it is read.
    pub(super) stale: Option<(i64, Status)>,
    /// All statuses so far, oldest first; what a stream sends.
    pub(super) transitions: Vec<Status>,
    pub interactions: Vec<InteractionView>,
    pub history: Vec<Value>,
    pub artifacts: Vec<Value>,
}

impl TaskView {
    pub(super) fn new(id: String, agent: &str, context: String, owner: &str, at_ms: i64) -> Self {
        let status = Status { state: State::Submitted, at_ms, open: None, text: None };
        Self {
            id,
            agent: agent.to_owned(),
            context,
            owner: owner.to_owned(),
            transitions: vec![status.clone()],
            status,
            shown_as: None,
            unlisted: false,
            stale: None,
            interactions: Vec::new(),
            history: Vec::new(),
            artifacts: Vec::new(),
        }
    }

    /// The true state.
    #[must_use]
    pub const fn state(&self) -> State {
        self.status.state
    }

    /// Since when it has this state, in epoch milliseconds.
    #[must_use]
    pub const fn since_ms(&self) -> i64 {
        self.status.at_ms
    }

    /// When it was opened, in epoch milliseconds.
    #[must_use]
    pub fn opened_ms(&self) -> i64 {
        self.transitions.first().map_or(self.status.at_ms, |status| status.at_ms)
    }

    /// What the agent said when it ended.
    #[must_use]
    pub fn said(&self) -> Option<&str> {
        self.status.text.as_deref()
    }

    /// The status a read at `now_ms` is served.
    pub(super) fn read_status(&self, now_ms: i64) -> &Status {
        match &self.stale {
            Some((until, status)) if now_ms < *until => status,
            _ => &self.status,
        }
    }

    pub(super) fn set(&mut self, status: Status) {
        self.transitions.push(status.clone());
        self.status = status;
    }

    pub(super) fn interaction(&self, id: &str) -> Option<&InteractionView> {
        self.interactions.iter().find(|interaction| interaction.id == id)
    }

    pub(super) fn interaction_mut(&mut self, id: &str) -> Option<&mut InteractionView> {
        self.interactions.iter_mut().find(|interaction| interaction.id == id)
    }

    /// Pauses at the next queued interaction, if there is one.
    pub(super) fn pause_at_next(&mut self, at_ms: i64) {
        let Some(next) = self.interactions.iter_mut().find(|i| i.phase == Phase::Queued) else { return };
        next.phase = Phase::Open;
        let status = Status { state: next.ask.pause_state(), at_ms, open: Some(next.id.clone()), text: None };
        self.set(status);
    }

    /// Ends or resumes the task without an answer; what was open or queued has then ended.
    pub(super) fn leave(&mut self, state: State, text: Option<String>, at_ms: i64) {
        for interaction in &mut self.interactions {
            if matches!(interaction.phase, Phase::Open | Phase::Queued) {
                interaction.phase = Phase::Ended;
            }
        }
        self.set(Status { state, at_ms, open: None, text });
    }
}

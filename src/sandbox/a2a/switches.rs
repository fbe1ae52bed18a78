//! What the stand-in can be told to do differently. Defaults are the documented behaviour.

use serde::{Deserialize, Serialize};

/// Whether a subject may see and answer a task that works for somebody else (unknown of the real
/// runtime, so both exist).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Foreign {
    Allowed,
    /// The same bytes as for a task that does not exist (A2A 1.0 §3.3.2).
    NotFound,
}

/// What a message to a task that is not waiting gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WhileWorking {
    Refuse,
    /// Taken, and recorded as one more application.
    Accept,
}

/// What canceling a canceled task gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CancelAgain {
    Task,
    NotCancelable,
}

/// What an unknown filter or status name in `ListTasks` gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnknownFilter {
    Error,
    Ignored,
}

/// A way to speak to the runtime (A2A 1.0 §5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Binding {
    #[serde(rename = "JSONRPC")]
    JsonRpc,
    #[serde(rename = "HTTP+JSON")]
    HttpJson,
}

/// The shape of error bodies on HTTP+JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorStyle {
    GoogleRpc,
    ProblemJson,
}

/// All switches; change them at run time with `A2aWorld::switch`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent switch")]
pub struct Switches {
    /// What is served, in the order in which a card names it. A binding that is off is not there.
    pub bindings: Vec<Binding>,
    pub list_tasks: bool,
    /// A message id answers once; off: every copy counts as a new message.
    pub dedupe: bool,
    pub foreign: Foreign,
    pub while_working: WhileWorking,
    pub cancel_again: CancelAgain,
    pub unknown_filter: UnknownFilter,
    /// Without `A2A-Extensions` a status message is plain text.
    pub metadata_needs_header: bool,
    /// `returnImmediately` is not honoured.
    pub blocking: bool,
    /// How long a blocking call lasts at most, in real milliseconds.
    pub block_ms: u64,
    /// Reads show the status of before for so long after an answer.
    pub stale_reads_ms: i64,
    pub errors: ErrorStyle,
    /// An accepted approval appears in `history` (the real runtime lists question answers only).
    pub approvals_in_history: bool,
    /// Status messages carry a `messageId`.
    pub status_message_id: bool,
    /// Numbers of metadata pass through doubles (`1` becomes `1.0`) and keys change their order.
    pub round_trip: bool,
    /// Members without a value are written out (`filename: ""`, `extensions: []`), as some servers do.
    pub default_fields: bool,
    /// Every page of a list names the same next page.
    pub endless_pages: bool,
    /// `SendMessage` answers `{message}` instead of `{task}`.
    pub answer_with_message: bool,
}

impl Default for Switches {
    fn default() -> Self {
        Self {
            bindings: vec![Binding::JsonRpc],
            list_tasks: true,
            dedupe: true,
            foreign: Foreign::Allowed,
            while_working: WhileWorking::Refuse,
            cancel_again: CancelAgain::Task,
            unknown_filter: UnknownFilter::Error,
            metadata_needs_header: false,
            blocking: false,
            block_ms: 300_000,
            stale_reads_ms: 0,
            errors: ErrorStyle::GoogleRpc,
            approvals_in_history: false,
            status_message_id: true,
            round_trip: false,
            default_fields: false,
            endless_pages: false,
            answer_with_message: false,
        }
    }
}

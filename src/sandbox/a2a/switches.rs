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

/// Whether tasks can be subscribed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Streaming {
    Off,
    /// A stream stays open over a pause (A2A 1.0 §3.1.6).
    On,
    /// It ends there (A2A 1.0 §11.7).
    ClosesAtInterrupted,
}

/// By which method HTTP+JSON is subscribed with (A2A 1.0 names GET and POST in different places).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SubscribeBy {
    Both,
    Get,
    Post,
}

/// What is wrong with one stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "fault", rename_all = "snake_case", deny_unknown_fields)]
pub enum StreamFault {
    /// It is accepted, and nothing comes, not even the first event.
    NeverSpeaks,
    /// Nothing comes after the first event.
    Silent,
    /// The connection breaks after so many events.
    CutAfter { events: u32 },
    /// An error in the place of the first event, then the end.
    ErrorFirst { error: String },
    /// An error after so many events, then the end.
    ErrorAfter { events: u32, error: String },
    /// After the first event comes one that is larger than anybody should read, then nothing.
    Oversize,
}

/// Whether and how clients are called when a task changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Push {
    Off,
    On,
    /// Every notification comes three times.
    Duplicating,
    /// What is to be told at once is told in the wrong order.
    Reordering,
    /// Every notification claims that the task has completed.
    Lying,
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
    pub streaming: Streaming,
    pub subscribe_by: SubscribeBy,
    /// Streams say that they are there this often, in real milliseconds; 0 = never.
    pub ping_ms: u64,
    /// Every legal oddity: comments, other fields, each line end, several data lines, tiny pieces.
    pub odd_frames: bool,
    /// Every event after the first comes twice.
    pub stream_duplicates: bool,
    pub push: Push,
    /// Notifications carry another credential than the one they were given.
    pub push_wrong_credential: bool,
    /// Notifications carry no `X-A2A-Notification-Token`, which the specification does not name.
    pub push_without_token: bool,
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
            streaming: Streaming::On,
            subscribe_by: SubscribeBy::Both,
            ping_ms: 0,
            odd_frames: false,
            stream_duplicates: false,
            push: Push::On,
            push_wrong_credential: false,
            push_without_token: false,
        }
    }
}

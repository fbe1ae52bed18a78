//! What one A2A runtime's connector is made from; the command line builds it from configuration.

use crate::domain::ids::{RuntimeName, Subject};
use secrecy::SecretString;
use std::time::Duration;
use url::Url;

/// Where the runtime is.
#[derive(Debug, Clone)]
pub enum Address {
    /// The JSON-RPC interface; an agent card is looked for below it, then at its origin.
    Endpoint(Url),
    /// The agent card, which names the interface.
    Card(Url),
}

/// Whose tasks are listed.
#[derive(Debug, Clone, Default)]
pub enum Watch {
    /// Those that the watching credential sees.
    #[default]
    Credential,
    /// Those of each of these subjects.
    Subjects(Vec<Subject>),
    /// Those of everybody who has a link; told by [`crate::bridge::ports::Connector::linked`].
    Linked,
}

/// How the value of a question is put into a message part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum QuestionPart {
    /// A text part for a text, else a data part with the bare value.
    #[default]
    Auto,
    DataBare,
    /// `{"value": …}`.
    DataWrapped,
}

/// Settings of one runtime.
#[derive(Debug, Clone)]
pub struct A2aSettings {
    pub name: RuntimeName,
    pub address: Address,
    /// The agent's name; without it the card's, or else the runtime's.
    pub agent: Option<String>,
    /// Origins besides the card's own on which it may name an interface.
    pub allow_origins: Vec<String>,
    pub plain_http: bool,
    pub watch: Watch,
    /// Sent with every call.
    pub headers: Vec<(String, SecretString)>,
    /// `{taskId}`, `{contextId}`, `{interactionId}` are replaced.
    pub details_url: Option<String>,
    /// The runtime answers once per `messageId`.
    pub dedupe: bool,
    pub question_part: QuestionPart,
    /// Longest wait for one call.
    pub deadline: Duration,
}

impl A2aSettings {
    /// Settings with every default of the configuration.
    #[must_use]
    pub fn new(name: RuntimeName, address: Address) -> Self {
        Self {
            name,
            address,
            agent: None,
            allow_origins: vec![],
            plain_http: false,
            watch: Watch::Credential,
            headers: vec![],
            details_url: None,
            dedupe: true,
            question_part: QuestionPart::Auto,
            deadline: Duration::from_secs(10),
        }
    }
}

//! What is asked, and checking an answer against it.
//!
//! Invariant: the digest covers everything a person is shown that bears on the decision, and
//! nothing that changes without it (not the owner, not the rendering). Two readings that differ
//! only in number form (`1`, `1.0`) or key order have the same digest (RFC 8785).

use crate::domain::ids::InteractionKey;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::fmt;

/// What the agent waits for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Approval,
    Question,
    Connection,
    /// A kind this version does not know, or an interaction without usable metadata: shown
    /// read-only, never answered.
    Unknown,
}

impl Kind {
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Approval => "approval",
            Self::Question => "question",
            Self::Connection => "connection",
            Self::Unknown => "unknown",
        }
    }

    /// Reads the word back; a word nobody knows is [`Kind::Unknown`].
    #[must_use]
    pub fn parse(word: &str) -> Self {
        [Self::Approval, Self::Question, Self::Connection]
            .into_iter()
            .find(|kind| kind.as_str() == word)
            .unwrap_or(Self::Unknown)
    }
}

/// A label and a value from runtime fields, never from prose.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Fact {
    /// One of the runtime's field names: `server`, `tool`, `reason`, `command`, `machine`, `app`.
    pub label: String,
    pub value: String,
}

/// One question of a form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Question {
    pub id: String,
    pub text: String,
    pub options: Vec<Choice>,
    /// Several options may be chosen.
    pub multiple: bool,
    /// Free text may be given.
    pub free_text: bool,
}

/// One option of a question. Order is part of the form; equal labels are allowed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Choice {
    pub label: String,
    pub description: String,
    /// What the runtime is sent when it is chosen.
    pub value: Value,
}

/// The neutral shape of what is asked. An approval is a form with Approve and Deny.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Form {
    pub kind: Kind,
    pub title: String,
    /// The agent's words.
    pub prompt: String,
    pub facts: Vec<Fact>,
    pub questions: Vec<Question>,
    /// The runtime keeps the call's arguments to itself, and the card says so.
    pub arguments_withheld: bool,
}

/// SHA-256 over the canonical JSON of what is shown, as lower-case hex.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Digest(String);

impl Digest {
    /// Takes a digest read back from the database.
    pub fn from_hex(hex: impl Into<String>) -> Self {
        Self(hex.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Form {
    /// The value of a fact, if the runtime gave it.
    #[must_use]
    pub fn fact(&self, label: &str) -> Option<&str> {
        self.facts.iter().find(|fact| fact.label == label).map(|fact| fact.value.as_str())
    }

    /// The digest of this form for this interaction: runtime, agent, interaction id, kind, title,
    /// prompt, facts, questions.
    #[must_use]
    pub fn digest(&self, key: &InteractionKey) -> Digest {
        let shown = json!({
            "runtime": key.runtime, "agent": key.agent, "interaction": key.external,
            "kind": self.kind, "title": self.title, "prompt": self.prompt,
            "facts": self.facts, "questions": self.questions,
        });
        Digest(sha256_hex(canonical(&shown).as_bytes()))
    }

    /// Checks a decision against what is asked.
    ///
    /// # Errors
    /// When the decision is not one this kind of form takes.
    pub fn check(&self, decision: &Decision) -> Result<(), FormError> {
        match (&self.kind, decision) {
            (Kind::Approval, Decision::Approve | Decision::Deny { .. }) => Ok(()),
            _ => Err(FormError::WrongKind),
        }
    }
}

/// Why an answer does not fit the form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FormError {
    #[error("the form does not take this kind of answer")]
    WrongKind,
}

/// What a person decided.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "decision", rename_all = "snake_case")]
pub enum Decision {
    Approve,
    Deny {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Values by question, in the form's order.
    Answer {
        values: Vec<Value>,
    },
    Connected,
    Decline,
}

impl Decision {
    /// The word of the audit log.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Approve => "approved",
            Self::Deny { .. } => "denied",
            Self::Answer { .. } => "answered",
            Self::Connected => "connected",
            Self::Decline => "declined",
        }
    }

    /// A person's own words, if they gave any.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Deny { reason } => reason.as_deref(),
            _ => None,
        }
    }
}

/// RFC 8785 canonical JSON. Values that have none (a number out of the double range) cannot be
/// made from `serde_json::Value`, so the plain text stands in for them.
#[must_use]
pub fn canonical(value: &Value) -> String {
    serde_json_canonicalizer::to_string(value).unwrap_or_else(|_| value.to_string())
}

/// SHA-256 in lower-case hex.
#[must_use]
pub fn sha256_hex(bytes: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(digest(&SHA256, bytes).as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::ids::RuntimeName;

    fn key() -> InteractionKey {
        InteractionKey {
            runtime: RuntimeName::new("prod"),
            agent: "release".into(),
            task: "t1".into(),
            external: "eff_1".into(),
        }
    }

    fn form() -> Form {
        Form {
            kind: Kind::Approval,
            title: "ci / deploy".into(),
            prompt: "Approve ci / deploy?".into(),
            facts: vec![Fact { label: "tool".into(), value: "deploy".into() }],
            questions: vec![],
            arguments_withheld: true,
        }
    }

    #[test]
    fn every_shown_field_changes_the_digest() {
        let base = form().digest(&key());
        let mut changed = vec![];
        let mut f = form();
        f.title.push('x');
        changed.push(f);
        let mut f = form();
        f.prompt.push('x');
        changed.push(f);
        let mut f = form();
        f.kind = Kind::Connection;
        changed.push(f);
        let mut f = form();
        f.facts.clear();
        changed.push(f);
        let mut f = form();
        f.questions.push(Question {
            id: "q".into(),
            text: "?".into(),
            options: vec![],
            multiple: false,
            free_text: true,
        });
        changed.push(f);
        for f in changed {
            assert_ne!(f.digest(&key()), base);
        }
        let other = InteractionKey { external: "eff_2".into(), ..key() };
        assert_ne!(form().digest(&other), base);
    }

    /// A2A case 12: a number that went through a double, and reordered keys, are the same form.
    #[test]
    fn number_form_and_key_order_do_not_change_the_digest() {
        let with = |text: &str| {
            let mut f = form();
            f.questions.push(Question {
                id: "q".into(),
                text: "?".into(),
                options: vec![Choice {
                    label: "a".into(),
                    description: String::new(),
                    value: serde_json::from_str(text).unwrap(),
                }],
                multiple: false,
                free_text: false,
            });
            f.digest(&key())
        };
        assert_eq!(with(r#"{"a":1,"b":[2]}"#), with(r#"{"b":[2.0],"a":1.0}"#));
        assert_ne!(with(r#"{"a":1}"#), with(r#"{"a":1.5}"#));
    }

    #[test]
    fn an_approval_takes_approve_and_deny_only() {
        assert!(form().check(&Decision::Approve).is_ok());
        assert!(form().check(&Decision::Deny { reason: None }).is_ok());
        assert_eq!(form().check(&Decision::Connected), Err(FormError::WrongKind));
        let read_only = Form { kind: Kind::Unknown, ..form() };
        assert_eq!(read_only.check(&Decision::Approve), Err(FormError::WrongKind));
    }
}

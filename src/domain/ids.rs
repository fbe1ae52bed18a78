//! Names and identities, each its own type, parsed at the edge.
//!
//! Invariant: a value of one of these types is already valid, and no two kinds can be mixed up.

use serde::{Deserialize, Serialize};
use std::fmt;
use uuid::Uuid;

/// New ids and randomness, as a parameter so that tests fix them.
pub trait Ids: Send + Sync + std::fmt::Debug {
    /// A time-ordered id (UUID v7). Its order is not an order between replicas.
    fn uuid(&self) -> Uuid;
    /// Bytes nobody can guess.
    fn random(&self) -> [u8; 16];
}

macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

uuid_id!(
    /// Our row of a runtime's interaction.
    InteractionId
);
uuid_id!(
    /// One message showing one interaction in one place.
    CardId
);
uuid_id!(
    /// One stored decision by one chat user.
    ClickId
);
uuid_id!(
    /// One decision sent (or to be sent) to the runtime as a subject.
    AnswerId
);

impl InteractionId {
    /// The short id shown on cards: eight characters, enough to tell open ones apart, random
    /// part of the UUID (its head is only the time).
    #[must_use]
    pub fn short(&self) -> String {
        let hex = self.0.simple().to_string();
        hex.chars().skip(24).collect()
    }
}

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Takes the text as it is; the edge that read it has checked it.
            pub fn new(text: impl Into<String>) -> Self {
                Self(text.into())
            }
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

text_id!(
    /// The configured name of a runtime.
    RuntimeName
);
text_id!(
    /// The configured name of a group of approvers.
    GroupName
);

/// The identity string by which a runtime knows a person.
///
/// 1 to 200 visible ASCII characters with inner spaces allowed, and not one of the runtimes'
/// reserved words: what every runtime we speak to accepts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Subject(String);

/// Why a text is no subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SubjectError {
    #[error("a subject has 1 to 200 characters")]
    Length,
    #[error("a subject has visible ASCII characters only, without a space at either end")]
    Characters,
    #[error("`host` and `installation` are reserved and name no person")]
    Reserved,
}

impl Subject {
    /// # Errors
    /// Says which rule the text breaks.
    pub fn parse(text: &str) -> Result<Self, SubjectError> {
        if text.is_empty() || text.len() > 200 {
            return Err(SubjectError::Length);
        }
        if !text.bytes().all(|b| (0x20..0x7f).contains(&b)) || text.starts_with(' ') || text.ends_with(' ') {
            return Err(SubjectError::Characters);
        }
        if text == "host" || text == "installation" {
            return Err(SubjectError::Reserved);
        }
        Ok(Self(text.into()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<'de> Deserialize<'de> for Subject {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// How a runtime names one interaction. Everything is keyed by all four parts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct InteractionKey {
    pub runtime: RuntimeName,
    /// The agent's name, as configured or as its card says.
    pub agent: String,
    /// What pauses in the runtime: an A2A task id, a session id, an agent id.
    pub task: String,
    /// The runtime's own id of the interaction; opaque.
    pub external: String,
}

/// The chat platforms a person can click on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Platform {
    Slack,
    Discord,
}

impl Platform {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Slack => "slack",
            Self::Discord => "discord",
        }
    }
}

/// Who clicked: the immutable key of a chat account. `realm` is Slack's enterprise or team id,
/// empty on Discord. Never a name, never an address.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ChatUser {
    pub platform: Platform,
    pub realm: String,
    pub user: String,
}

impl fmt::Display for ChatUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.platform {
            Platform::Slack => write!(f, "slack:{}:{}", self.realm, self.user),
            Platform::Discord => write!(f, "discord:{}", self.user),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_is_what_every_runtime_accepts() {
        assert!(Subject::parse("dana@example.com").is_ok());
        assert!(Subject::parse("Dana Lee").is_ok());
        assert_eq!(Subject::parse("host"), Err(SubjectError::Reserved));
        assert_eq!(Subject::parse("installation"), Err(SubjectError::Reserved));
        assert_eq!(Subject::parse(""), Err(SubjectError::Length));
        assert_eq!(Subject::parse(&"x".repeat(201)), Err(SubjectError::Length));
        assert!(Subject::parse(&"x".repeat(200)).is_ok());
        assert_eq!(Subject::parse("dåna"), Err(SubjectError::Characters));
        assert_eq!(Subject::parse(" dana"), Err(SubjectError::Characters));
        assert_eq!(Subject::parse("da\nna"), Err(SubjectError::Characters));
    }

    #[test]
    fn the_short_id_is_the_random_end() {
        let id = InteractionId(Uuid::parse_str("01900000-0000-7000-8000-0000deadbeef").unwrap());
        assert_eq!(id.short(), "deadbeef");
    }
}

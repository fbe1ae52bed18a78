//! Where a message can go, and what is there.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A configured destination. Written `slack:<name>:#channel`, `slack:<name>:C…`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(into = "String")]
pub struct Place {
    /// The configured name of the chat install.
    pub install: String,
    pub target: Target,
}

/// What a place names on its platform.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// A Slack channel by name, without `#`; resolved once and pinned by id.
    SlackName(String),
    /// A Slack channel by id.
    SlackChannel(String),
}

/// Why a text is no place, with what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlaceError {
    #[error("a place is written slack:<name>:#channel or slack:<name>:C…")]
    Form,
    #[error("{0} is not part of this version yet; write slack:<name>:#channel or slack:<name>:C…")]
    NotYet(&'static str),
}

impl Place {
    /// # Errors
    /// When the text has none of the forms this version can post to.
    pub fn parse(text: &str) -> Result<Self, PlaceError> {
        let mut parts = text.splitn(3, ':');
        match (parts.next(), parts.next(), parts.next()) {
            (Some("slack"), Some(install), Some(target)) if !install.is_empty() => {
                let target = if let Some(name) = target.strip_prefix('#') {
                    if name.is_empty() {
                        return Err(PlaceError::Form);
                    }
                    Target::SlackName(name.into())
                } else if target.starts_with('@') {
                    return Err(PlaceError::NotYet("a direct message to one person"));
                } else if target.len() > 1
                    && target.starts_with(['C', 'G'])
                    && target.bytes().all(|b| b.is_ascii_alphanumeric())
                {
                    Target::SlackChannel(target.into())
                } else {
                    return Err(PlaceError::Form);
                };
                Ok(Self { install: install.into(), target })
            }
            (Some("dm"), ..) => Err(PlaceError::NotYet("a dm: place")),
            (Some("discord"), ..) => Err(PlaceError::NotYet("Discord")),
            _ => Err(PlaceError::Form),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.target {
            Target::SlackName(name) => write!(f, "slack:{}:#{name}", self.install),
            Target::SlackChannel(id) => write!(f, "slack:{}:{id}", self.install),
        }
    }
}

impl From<Place> for String {
    fn from(place: Place) -> Self {
        place.to_string()
    }
}

impl<'de> Deserialize<'de> for Place {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

/// Who we are on the platform.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    pub app_id: String,
    /// Slack team; `None` for an install of a whole organisation.
    pub team: Option<String>,
    pub enterprise: Option<String>,
    pub bot_user: String,
    /// Whether posts of unknown outcome can be looked for.
    pub can_search: bool,
}

impl Identity {
    /// The realm in which this install's members are known: the enterprise, else the team.
    #[must_use]
    pub fn realm(&self) -> &str {
        self.enterprise.as_deref().or(self.team.as_deref()).unwrap_or_default()
    }
}

/// Where to post.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    pub channel: String,
    pub thread: Option<String>,
}

/// One message on the platform.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MessageRef {
    pub channel: String,
    pub message: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_read_back_as_written() {
        for text in ["slack:acme:#releases", "slack:acme:C0OPS", "slack:acme:G0PRIV"] {
            assert_eq!(Place::parse(text).unwrap().to_string(), text);
        }
        for text in [
            "",
            "slack:acme",
            "slack::#x",
            "slack:acme:#",
            "slack:acme:ops",
            "telegram:x:y",
            "slack:acme:C0;DROP",
        ] {
            assert_eq!(Place::parse(text), Err(PlaceError::Form), "{text}");
        }
        assert!(matches!(Place::parse("dm:owner"), Err(PlaceError::NotYet(_))));
    }
}

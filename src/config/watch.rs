//! `watch_as`: as whom a runtime is watched.

use super::check::Check;
use crate::domain::ids::Subject;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

/// As whom a runtime is watched that shows each subject only its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchAs {
    /// With the watching credential alone.
    Credential,
    /// As each of these.
    Subjects(Vec<Subject>),
    /// As every subject that has a link.
    Linked,
}

/// As whom to watch: a list of subjects, or the word `linked`.
#[derive(Debug, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "WatchAs")]
pub(super) enum RawWatchAs {
    Subjects(Vec<String>),
    Word(Linked),
}

#[derive(Debug, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(super) enum Linked {
    Linked,
}

impl<'de> Deserialize<'de> for RawWatchAs {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let why = || serde::de::Error::custom("expected a list of subjects, or \"linked\"");
        match toml::Value::deserialize(from)? {
            toml::Value::String(word) if word == "linked" => Ok(Self::Word(Linked::Linked)),
            toml::Value::Array(list) => {
                let texts = list.into_iter().map(|item| match item {
                    toml::Value::String(text) => Ok(text),
                    _ => Err(why()),
                });
                texts.collect::<Result<_, _>>().map(Self::Subjects)
            }
            _ => Err(why()),
        }
    }
}

/// As whom to watch; `None` when that is faulty.
pub(super) fn watch_as(check: &mut Check<'_>, key: &str, raw: Option<RawWatchAs>) -> Option<WatchAs> {
    match raw {
        None => Some(WatchAs::Credential),
        Some(RawWatchAs::Word(Linked::Linked)) => Some(WatchAs::Linked),
        Some(RawWatchAs::Subjects(texts)) if texts.is_empty() => {
            check.error(
                key,
                "the list is empty".into(),
                "name subjects, write \"linked\", or leave the key out to watch with the token alone".into(),
            );
            None
        }
        Some(RawWatchAs::Subjects(texts)) => Some(WatchAs::Subjects(check.subjects(key, &texts))),
    }
}

//! Secrets by reference: `{ env = "X" }` or `{ file = "path" }`, never in the file itself.
//!
//! Invariant: no message made here contains the value of a secret, also when somebody wrote the
//! value where the reference belongs.

use super::check::Check;
use schemars::JsonSchema;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Deserializer};
use std::path::{Path, PathBuf};

/// A secret file larger than this is not a secret.
const LARGEST: u64 = 64 * 1024;

/// Reads environment variables; a parameter, so that tests bring their own.
pub trait Env {
    /// The variable's value; `None` when it is not set or not valid UTF-8.
    fn var(&self, name: &str) -> Option<String>;
}

impl<F: Fn(&str) -> Option<String>> Env for F {
    fn var(&self, name: &str) -> Option<String> {
        self(name)
    }
}

/// The environment of this process.
#[derive(Debug, Clone, Copy, Default)]
pub struct ProcessEnv;

impl Env for ProcessEnv {
    #[expect(clippy::disallowed_methods, reason = "the place where secrets are read from the environment")]
    fn var(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }
}

/// Where a secret is kept: the name of an environment variable, or a file (relative to the
/// working directory; a trailing line break is not part of the secret).
#[derive(Debug, Clone, JsonSchema)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub(super) enum SecretRef {
    /// The name of an environment variable.
    Env(String),
    /// The path of a file.
    File(PathBuf),
}

impl<'de> Deserialize<'de> for SecretRef {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Self::read(&toml::Value::deserialize(from)?).map_err(serde::de::Error::custom)
    }
}

const FORM: &str = "a secret is written { env = \"NAME\" } or { file = \"path\" }";
const NOT_HERE: &str =
    "a secret is never written in the file itself, but as { env = \"NAME\" } or { file = \"path\" }";

impl SecretRef {
    fn read(value: &toml::Value) -> Result<Self, &'static str> {
        let toml::Value::Table(table) = value else { return Err(NOT_HERE) };
        let mut entries = table.iter();
        match (entries.next(), entries.next()) {
            (Some((key, toml::Value::String(text))), None) if !text.is_empty() => match key.as_str() {
                "env" => Ok(Self::Env(text.clone())),
                "file" => Ok(Self::File(text.into())),
                _ => Err(FORM),
            },
            _ => Err(FORM),
        }
    }

    /// The value; or what is wrong, and what to do.
    fn fetch(&self, env: &dyn Env) -> Result<String, (String, String)> {
        let (value, fix) = match self {
            Self::Env(name) => {
                let value = env.var(name).ok_or_else(|| {
                    (
                        format!("the environment variable {name} is not set"),
                        format!("set {name} for this process, or use {{ file = \"path\" }}"),
                    )
                })?;
                (value, format!("give the environment variable {name} its value"))
            }
            Self::File(path) => {
                let value = read_file(path).map_err(|why| {
                    (
                        format!("the file {} cannot be read: {why}", path.display()),
                        "name a readable file that holds nothing but the secret".to_owned(),
                    )
                })?;
                (value, format!("write the secret into {}", path.display()))
            }
        };
        if value.trim().is_empty() {
            return Err(("the secret is empty".into(), fix));
        }
        Ok(value)
    }
}

/// A text that may be written as it is, or kept as a secret.
#[derive(Debug, Clone, JsonSchema)]
#[serde(untagged)]
pub(super) enum TextOrSecret {
    Text(String),
    Secret(SecretRef),
}

impl<'de> Deserialize<'de> for TextOrSecret {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match toml::Value::deserialize(from)? {
            toml::Value::String(text) => Ok(Self::Text(text)),
            value @ toml::Value::Table(_) => {
                SecretRef::read(&value).map(Self::Secret).map_err(serde::de::Error::custom)
            }
            _ => Err(serde::de::Error::custom(
                "expected a text in quotes, { env = \"NAME\" } or { file = \"path\" }",
            )),
        }
    }
}

impl Check<'_> {
    /// Reads a secret. What cannot be read, and an empty one, are findings.
    pub(super) fn secret(&mut self, key: &str, at: &SecretRef) -> Option<SecretString> {
        match at.fetch(self.env) {
            Ok(value) => Some(SecretString::from(value)),
            Err((message, fix)) => {
                self.error(key, message, fix);
                None
            }
        }
    }

    /// Reads a secret that is sent in a header: visible ASCII without spaces.
    pub(super) fn token(&mut self, key: &str, at: &SecretRef) -> Option<SecretString> {
        let secret = self.secret(key, at)?;
        if secret.expose_secret().bytes().all(|b| b.is_ascii_graphic()) {
            return Some(secret);
        }
        self.error(
            key,
            "the secret contains a space, a line break or another character that no token has".into(),
            "store the token alone, on one line and without quotes".into(),
        );
        None
    }

    pub(super) fn text_or_secret(&mut self, key: &str, at: &TextOrSecret) -> Option<SecretString> {
        match at {
            TextOrSecret::Text(text) => Some(SecretString::from(text.clone())),
            TextOrSecret::Secret(secret) => self.secret(key, secret),
        }
    }
}

fn read_file(path: &Path) -> Result<String, String> {
    let size = std::fs::metadata(path).map_err(|why| why.to_string())?;
    if !size.is_file() {
        return Err("it is not a file".into());
    }
    if size.len() > LARGEST {
        return Err("it is larger than 64 KiB".into());
    }
    let mut text = std::fs::read_to_string(path).map_err(|why| why.to_string())?;
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    Ok(text)
}

//! `[database]`: where everything is kept.

use super::check::Check;
use super::secrets::TextOrSecret;
use schemars::JsonSchema;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use std::fmt;

/// Where everything is kept.
#[derive(Debug, Clone)]
pub struct Database {
    pub url: DatabaseUrl,
}

/// The database's address. It may hold a password: printing it shows the rest only.
#[derive(Clone)]
pub struct DatabaseUrl(SecretString);

impl DatabaseUrl {
    pub fn new(text: impl Into<String>) -> Self {
        Self(SecretString::from(text.into()))
    }

    /// The whole address, for the driver only.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }

    pub fn is_sqlite(&self) -> bool {
        self.expose().starts_with("sqlite:")
    }
}

impl fmt::Display for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_sqlite() {
            return f.write_str(self.expose());
        }
        match url::Url::parse(self.expose()) {
            Ok(url) => {
                // Parameters may repeat the password (`?password=…`), so they are not shown.
                let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
                write!(f, "{}://{}{port}{}", url.scheme(), url.host_str().unwrap_or_default(), url.path())
            }
            Err(_) => f.write_str("(unreadable address)"),
        }
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

/// Where everything is kept.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Database")]
pub(super) struct Raw {
    /// `sqlite://<file>` for one node (the default is `sqlite://countersign.db`), or
    /// `postgres://…` for several replicas. An address with a password is best kept as a secret.
    url: Option<TextOrSecret>,
}

impl Raw {
    pub(super) fn check(self, check: &mut Check<'_>) -> Option<Database> {
        const KEY: &str = "database.url";
        const FIX: &str = "write \"sqlite://countersign.db\" or \"postgres://user@host/database\"";
        let text = match self.url {
            Some(at) => check.text_or_secret(KEY, &at)?,
            None => SecretString::from("sqlite://countersign.db"),
        };
        let url = DatabaseUrl(text);
        // The address is not repeated in a message: it may hold a password.
        let text = url.expose();
        if url.is_sqlite() {
            let rest = text.trim_start_matches("sqlite:").trim_start_matches("//");
            let (file, query) = rest.split_once('?').unwrap_or((rest, ""));
            if file == ":memory:" || query.contains("mode=memory") {
                check.error(
                    KEY,
                    "a database in memory forgets every click".into(),
                    "name a file: \"sqlite://countersign.db\"".into(),
                );
                return None;
            }
            if file.is_empty() {
                check.error(KEY, "the address names no file".into(), FIX.into());
                return None;
            }
            return Some(Database { url });
        }
        match url::Url::parse(text) {
            Ok(parsed) if matches!(parsed.scheme(), "postgres" | "postgresql") => {
                if parsed.path().trim_matches('/').is_empty() {
                    check.error(KEY, "the address names no database".into(), FIX.into());
                    return None;
                }
                Some(Database { url })
            }
            Ok(parsed) => {
                check.error(KEY, format!("`{}` is not a database we know", parsed.scheme()), FIX.into());
                None
            }
            Err(_) => {
                check.error(KEY, "this is no database address".into(), FIX.into());
                None
            }
        }
    }
}

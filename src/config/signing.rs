//! `[signing]`: the keys with which Countersign vouches for a person.

use super::check::Check;
use schemars::JsonSchema;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The keys with which Countersign vouches for a person (`answer_with = "jwt"`).
#[derive(Debug, Clone)]
pub struct Signing {
    /// A private JWK Set.
    pub key_file: PathBuf,
    /// The algorithm of keys made from now on.
    pub alg: Algorithm,
    /// How long a later key is published before it signs, and an old one after.
    pub publish_ahead: Duration,
}

/// What a signing key signs with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum Algorithm {
    #[serde(rename = "ES256")]
    Es256,
    #[serde(rename = "EdDSA")]
    EdDsa,
}

/// A new `kid` is fetched by a runtime at most once in ten minutes, with a minute to spare.
const PUBLISH_AHEAD: Duration = Duration::from_mins(11);

/// The keys with which Countersign vouches for a person.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Signing")]
pub(super) struct Raw {
    /// A file with a private JWK Set, readable by its owner only (mode 0600). Default
    /// `countersign.key`. Made on the first run on SQLite, by `countersign keys rotate` on PostgreSQL.
    key_file: Option<PathBuf>,
    /// The algorithm of keys made from now on. Default `ES256`.
    alg: Option<Algorithm>,
    /// A later key is published this long before it signs, an old one this long after. Default `11m`.
    publish_ahead: Option<String>,
}

impl Raw {
    pub(super) fn check(self, check: &mut Check<'_>) -> Signing {
        let Self { key_file, alg, publish_ahead } = self;
        let key_file = key_file.unwrap_or_else(|| "countersign.key".into());
        if let Some(mode) = mode(&key_file).filter(|mode| mode & 0o077 != 0) {
            check.error(
                "signing.key_file",
                format!("{} can be read by others (mode {mode:04o})", key_file.display()),
                format!("chmod 0600 {}", key_file.display()),
            );
        }
        let publish_ahead =
            check.duration("signing.publish_ahead", publish_ahead.as_deref(), PUBLISH_AHEAD, Duration::ZERO);
        if publish_ahead < PUBLISH_AHEAD {
            check.warn(
                "signing.publish_ahead",
                "a runtime may not yet have fetched a key that signs so soon".into(),
                "write at least \"11m\"".into(),
            );
        }
        Signing { key_file, alg: alg.unwrap_or(Algorithm::Es256), publish_ahead }
    }
}

#[cfg(unix)]
fn mode(path: &Path) -> Option<u32> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).ok().map(|file| file.permissions().mode() & 0o777)
}

#[cfg(not(unix))]
fn mode(_: &Path) -> Option<u32> {
    None
}

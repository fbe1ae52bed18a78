//! The keys that sign our tokens: a file with a private JSON Web Key Set, mode 0600.
//!
//! Invariants:
//! - the newest key whose start has come signs; before any has, the first one does;
//! - a key is in the JWKS document from `publish_ahead` before it signs until `publish_ahead` after
//!   the next one began, so that a runtime that caches the document knows every signature;
//! - the file is only ever replaced as a whole: written beside, synced, then renamed.
//!
//! Known races: two first runs at once: one file wins (it is linked, never overwritten) and both
//! read it. Two rotations at once: the second is refused. Replicas share the file and read it again
//! every few seconds; a new key waits `publish_ahead`, so all of them publish it in time. A file
//! that becomes unreadable changes nothing: the keys in memory go on, and the caller is told.

use crate::domain::clock::Millis;
use crate::identity::jwk::{Key, Written};
pub use crate::identity::jwk::{KeyError, SigningAlg};
use secrecy::SecretString;
use secrecy::zeroize::Zeroizing;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

/// What the key file is, and what may be done when there is none.
#[derive(Debug, Clone)]
pub struct KeyFile {
    pub path: PathBuf,
    /// For keys made from now on.
    pub alg: SigningAlg,
    pub publish_ahead: Duration,
}

/// The keys as read last.
#[derive(Debug)]
pub struct Keys {
    file: KeyFile,
    keys: RwLock<Arc<Vec<Key>>>,
}

/// One key, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyInfo {
    pub kid: String,
    pub alg: &'static str,
    pub starts: Millis,
    pub standing: Standing,
    pub published: bool,
}

/// What a key does now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    Waiting,
    Signing,
    Retired,
}

/// Why the keys cannot be used. Names the file and never its content.
#[derive(Debug, thiserror::Error)]
pub enum KeysError {
    #[error(
        "there is no key file {path}: make one with `countersign keys rotate`, and share it between replicas"
    )]
    Missing { path: String },
    #[error("the key file {path} can be read by others (mode {mode:03o}): chmod 600 it")]
    Mode { path: String, mode: u32 },
    #[error("the key file {path} cannot be used: {what}")]
    Unusable { path: String, what: String },
    #[error("another rotation is running, or was interrupted; if none is, remove {path}")]
    Rotating { path: String },
    #[error("the key file {path}: {what}")]
    Io { path: String, what: ErrorKind },
    #[error(transparent)]
    Key(#[from] KeyError),
}

#[derive(Serialize, Deserialize)]
struct Set {
    keys: Vec<Written>,
}

impl Keys {
    /// Reads the key file; makes it, with one key that signs at once, when there is none and
    /// `create` allows it (a single node; replicas share one file, which is made on purpose).
    ///
    /// # Errors
    /// When there is no usable key.
    pub fn open(file: KeyFile, create: bool, now: Millis) -> Result<Self, KeysError> {
        let keys = match load(&file.path) {
            Err(KeysError::Missing { .. }) if create => {
                first(&file, now)?;
                load(&file.path)?
            }
            loaded => loaded?,
        };
        Ok(Self { file, keys: RwLock::new(Arc::new(keys)) })
    }

    /// Reads the file again (to be called every few seconds); true when the keys are others now.
    ///
    /// # Errors
    /// When the file cannot be read; the keys in memory stay.
    pub fn reload(&self) -> Result<bool, KeysError> {
        let fresh = load(&self.file.path)?;
        let old = self.keys();
        let same = fresh.len() == old.len()
            && fresh.iter().zip(old.iter()).all(|(a, b)| a.kid == b.kid && a.starts == b.starts);
        if !same {
            *self.keys.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(fresh);
        }
        Ok(!same)
    }

    /// The public keys that a runtime should know now, as a JWKS document.
    #[must_use]
    pub fn jwks(&self, now: Millis) -> Value {
        let keys = self.keys();
        let ahead = self.file.publish_ahead;
        let shown: Vec<Value> = keys
            .iter()
            .enumerate()
            .filter(|(at, _)| published(&keys, *at, ahead, now))
            .map(|(_, key)| key.public())
            .collect();
        json!({ "keys": shown })
    }

    /// Signs claims with the key whose time it is.
    ///
    /// # Errors
    /// When there is no key (cannot happen after [`Keys::open`]) or it cannot sign.
    pub fn sign(&self, claims: &impl Serialize, now: Millis) -> Result<SecretString, KeysError> {
        let keys = self.keys();
        let key = signing(&keys, now)
            .and_then(|at| keys.get(at))
            .ok_or_else(|| KeysError::Missing { path: shown(&self.file.path) })?;
        Ok(key.sign(claims)?)
    }

    /// What each key does now, oldest first.
    #[must_use]
    pub fn list(&self, now: Millis) -> Vec<KeyInfo> {
        list(&self.keys(), self.file.publish_ahead, now)
    }

    fn keys(&self) -> Arc<Vec<Key>> {
        self.keys.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Adds a key that signs `publish_ahead` from now (the first one at once) and removes those that
/// nobody needs any more. Makes the file when there is none. A running service notices by itself.
///
/// # Errors
/// When the file cannot be read or replaced.
pub fn rotate(file: &KeyFile, now: Millis) -> Result<Vec<KeyInfo>, KeysError> {
    let mut keys = match load(&file.path) {
        Err(KeysError::Missing { .. }) => {
            first(file, now)?;
            return Ok(list(&load(&file.path)?, file.publish_ahead, now));
        }
        loaded => loaded?,
    };
    let beside = beside(&file.path, "new");
    let mut out = create_private(&beside).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => KeysError::Rotating { path: shown(&beside) },
        what => KeysError::Io { path: shown(&beside), what },
    })?;
    let done = (|| {
        let latest = keys.iter().map(|key| key.starts).max().unwrap_or(now);
        let starts = now.plus(file.publish_ahead).max(latest.plus(Duration::from_millis(1)));
        keys.push(Key::make(file.alg, starts)?);
        let ahead = file.publish_ahead;
        let needed: Vec<bool> = (0..keys.len())
            .map(|at| keys.get(at).is_some_and(|k| k.starts > now) || published(&keys, at, ahead, now))
            .collect();
        let mut needed = needed.into_iter();
        keys.retain(|_| needed.next().unwrap_or(true));
        write(&mut out, &keys, &beside)?;
        std::fs::rename(&beside, &file.path).map_err(|error| io(&file.path, &error))
    })();
    if let Err(error) = done {
        let _ = std::fs::remove_file(&beside);
        return Err(error);
    }
    Ok(list(&keys, file.publish_ahead, now))
}

/// Makes the file with one key that signs at once. Loses quietly against another first run.
fn first(file: &KeyFile, now: Millis) -> Result<(), KeysError> {
    let beside = beside(&file.path, &format!("{}.first", std::process::id()));
    let mut out = create_private(&beside).map_err(|error| io(&beside, &error))?;
    let made =
        write(&mut out, &[Key::make(file.alg, now)?], &beside).and_then(|()| {
            match std::fs::hard_link(&beside, &file.path) {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(io(&file.path, &error)),
                _ => Ok(()),
            }
        });
    let _ = std::fs::remove_file(&beside);
    made
}

fn signing(keys: &[Key], now: Millis) -> Option<usize> {
    keys.iter().rposition(|key| key.starts <= now).or(if keys.is_empty() { None } else { Some(0) })
}

fn published(keys: &[Key], at: usize, ahead: Duration, now: Millis) -> bool {
    let Some(key) = keys.get(at) else { return false };
    let begun = at == 0 || key.starts.minus(ahead) <= now;
    let over = keys.get(at + 1).is_some_and(|next| next.starts.plus(ahead) < now);
    (begun && !over) || signing(keys, now) == Some(at)
}

fn list(keys: &[Key], ahead: Duration, now: Millis) -> Vec<KeyInfo> {
    let active = signing(keys, now);
    let standing = |at: usize| match active {
        Some(active) if at < active => Standing::Retired,
        Some(active) if at == active => Standing::Signing,
        _ => Standing::Waiting,
    };
    keys.iter()
        .enumerate()
        .map(|(at, key)| KeyInfo {
            kid: key.kid.clone(),
            alg: key.alg.as_str(),
            starts: key.starts,
            standing: standing(at),
            published: published(keys, at, ahead, now),
        })
        .collect()
}

fn load(path: &Path) -> Result<Vec<Key>, KeysError> {
    let unusable = |what: &str| KeysError::Unusable { path: shown(path), what: what.into() };
    let text = match std::fs::read_to_string(path) {
        Ok(text) => Zeroizing::new(text),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(KeysError::Missing { path: shown(path) });
        }
        Err(error) => return Err(io(path, &error)),
    };
    private_only(path)?;
    // The parser's message would quote the file.
    let set: Set = serde_json::from_str(&text)
        .map_err(|_| unusable("it is not a private JWK Set whose keys have a `starts` time"))?;
    let mut keys: Vec<Key> = set
        .keys
        .iter()
        .map(Key::read)
        .collect::<Result<_, _>>()
        .map_err(|error| unusable(&error.to_string()))?;
    if keys.is_empty() {
        return Err(unusable("it holds no key"));
    }
    keys.sort_by_key(|key| key.starts);
    Ok(keys)
}

fn write(out: &mut std::fs::File, keys: &[Key], path: &Path) -> Result<(), KeysError> {
    let set = Set { keys: keys.iter().map(Key::write).collect() };
    let text = Zeroizing::new(serde_json::to_string_pretty(&set).map_err(|_| KeyError::Values)?);
    out.write_all(text.as_bytes())
        .and_then(|()| out.write_all(b"\n"))
        .and_then(|()| out.sync_all())
        .map_err(|error| io(path, &error))
}

#[cfg(unix)]
fn create_private(path: &Path) -> std::io::Result<std::fs::File> {
    use std::os::unix::fs::OpenOptionsExt;
    std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

#[cfg(not(unix))]
fn create_private(path: &Path) -> std::io::Result<std::fs::File> {
    std::fs::OpenOptions::new().write(true).create_new(true).open(path)
}

#[cfg(unix)]
fn private_only(path: &Path) -> Result<(), KeysError> {
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(path).map_err(|error| io(path, &error))?.permissions().mode() & 0o777;
    let others = mode & 0o077;
    if others == 0 { Ok(()) } else { Err(KeysError::Mode { path: shown(path), mode }) }
}

#[cfg(not(unix))]
fn private_only(_path: &Path) -> Result<(), KeysError> {
    Ok(())
}

fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".");
    name.push(end);
    path.with_file_name(name)
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

fn io(path: &Path, error: &std::io::Error) -> KeysError {
    KeysError::Io { path: shown(path), what: error.kind() }
}

#[cfg(test)]
#[path = "keys_tests.rs"]
mod tests;

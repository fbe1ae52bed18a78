//! The audit log's rows and their chain: making a row, checking rows.
//!
//! Invariants:
//! - `hash` covers everything of a row that must never change, and the row before it;
//! - what names a chat account (`clicker`, `reason`) is covered by `private` only, with a salt:
//!   nulling the three leaves the chain valid and the hash unguessable;
//! - a row that names no chat account has none of the four.
//!
//! What the chain cannot show by itself: rows cut off at the end, or the whole log written anew.
//! For that a head saved earlier is compared. Rows missing at the start are refused unless the head
//! right before the first row was saved. An erasure is told by its own `erase` row, not by the erased rows.

use crate::domain::clock::Millis;
use crate::domain::form::{canonical, sha256_hex};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// `prev` of the first row.
pub const BEGINNING: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// What is recorded of a decision, before it has a place in the chain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditEntry {
    /// `click`, `vote`, `withdraw`, `answer`, `settled`, `link`, `unlink`, `erase`, …
    pub event: String,
    pub runtime: Option<String>,
    /// The short or the runtime's id, as the caller chooses; opaque here.
    pub interaction: Option<String>,
    pub subject: Option<String>,
    /// Of the form that was shown.
    pub digest: Option<String>,
    /// `approved`, `denied`, `answered`, …, `refused`, `undetermined`.
    pub decision: Option<String>,
    pub rule: Option<String>,
    pub policy: Option<String>,
    pub runtime_said: Option<String>,
    /// Who clicked, as a chat account.
    pub clicker: Option<String>,
    /// The clicker's own words; kept only beside a clicker.
    pub reason: Option<String>,
}

/// One row, in the order of its columns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuditRow {
    pub seq: i64,
    pub at: String,
    pub event: String,
    #[serde(deserialize_with = "present")]
    pub runtime: Option<String>,
    #[serde(deserialize_with = "present")]
    pub interaction: Option<String>,
    #[serde(deserialize_with = "present")]
    pub subject: Option<String>,
    #[serde(deserialize_with = "present")]
    pub digest: Option<String>,
    #[serde(deserialize_with = "present")]
    pub decision: Option<String>,
    #[serde(deserialize_with = "present")]
    pub rule: Option<String>,
    #[serde(deserialize_with = "present")]
    pub policy: Option<String>,
    #[serde(deserialize_with = "present")]
    pub runtime_said: Option<String>,
    #[serde(deserialize_with = "present")]
    pub private: Option<String>,
    #[serde(deserialize_with = "present")]
    pub clicker: Option<String>,
    #[serde(deserialize_with = "present")]
    pub reason: Option<String>,
    #[serde(deserialize_with = "present")]
    pub salt: Option<String>,
    pub prev: String,
    pub hash: String,
}

/// A column that is null is there all the same; one that is missing is not a row of ours.
fn present<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    Option::deserialize(from)
}

/// Where a chain ends: the newest row, or nothing yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    pub seq: i64,
    pub hash: String,
}

impl Default for Head {
    fn default() -> Self {
        Self { seq: 0, hash: BEGINNING.into() }
    }
}

impl std::fmt::Display for Head {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.seq, self.hash)
    }
}

impl std::str::FromStr for Head {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (seq, hash) = text.split_once(':').ok_or("a head is written SEQ:HASH")?;
        let seq: i64 = seq.parse().map_err(|_| "SEQ is a number")?;
        if hash.len() != 64 || !hash.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
            return Err("HASH has 64 lower-case hexadecimal digits");
        }
        if seq < 0 {
            return Err("SEQ is not negative");
        }
        Ok(Self { seq, hash: hash.into() })
    }
}

/// What is wrong with a chain, and at which row it shows first.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("row {seq}: {flaw}")]
pub struct Broken {
    pub seq: i64,
    pub flaw: Flaw,
}

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    #[error("it cannot be read as a row of the log")]
    Unreadable,
    #[error("the first line does not name the columns of the log")]
    Columns,
    #[error("it is missing")]
    Missing,
    #[error("it is missing, and the saved head is not the one right before the first row that is there")]
    MissingAtStart,
    #[error("it does not follow the row before it")]
    Link,
    #[error("its hash does not fit its content")]
    Hash,
    #[error("who clicked and why do not fit what was recorded")]
    Private,
    #[error("it is not the row of the saved head")]
    Head,
}

/// Empty text is null, and U+0000, which not every database stores, is replaced.
fn stored(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.is_empty())
        .map(|text| if text.contains('\0') { text.replace('\0', "\u{fffd}") } else { text })
}

fn private(salt: &str, clicker: Option<&str>, reason: Option<&str>) -> String {
    sha256_hex(format!("{salt}{}", canonical(&json!({"clicker": clicker, "reason": reason}))).as_bytes())
}

impl AuditRow {
    /// The row that follows `head`. `salt` is fresh randomness, used when the entry names a clicker.
    #[must_use]
    pub fn after(head: &Head, entry: AuditEntry, at: Millis, salt: [u8; 16]) -> Self {
        let clicker = stored(entry.clicker);
        let reason = stored(entry.reason).filter(|_| clicker.is_some());
        let salt = clicker.is_some().then(|| data_encoding::HEXLOWER.encode(&salt));
        let mut row = Self {
            seq: head.seq + 1,
            at: at.rfc3339(),
            event: stored(Some(entry.event)).unwrap_or_default(),
            runtime: stored(entry.runtime),
            interaction: stored(entry.interaction),
            subject: stored(entry.subject),
            digest: stored(entry.digest),
            decision: stored(entry.decision),
            rule: stored(entry.rule),
            policy: stored(entry.policy),
            runtime_said: stored(entry.runtime_said),
            private: salt.as_deref().map(|salt| private(salt, clicker.as_deref(), reason.as_deref())),
            clicker,
            reason,
            salt,
            prev: head.hash.clone(),
            hash: String::new(),
        };
        row.hash = row.computed();
        row
    }

    /// The hash that this row should have.
    fn computed(&self) -> String {
        let Self { seq, at, event, runtime, interaction, subject, digest, decision, rule, policy, .. } = self;
        let covered = json!({
            "seq": seq, "at": at, "event": event, "runtime": runtime, "interaction": interaction,
            "subject": subject, "digest": digest, "decision": decision, "rule": rule, "policy": policy,
            "runtime_said": self.runtime_said, "private": self.private,
        });
        sha256_hex(format!("{}{}", self.prev, canonical(&covered)).as_bytes())
    }

    /// Whether `private` and what it covers belong together (or were erased together).
    fn private_fits(&self) -> bool {
        match (&self.private, &self.clicker, &self.reason, &self.salt) {
            (None | Some(_), None, None, None) => true,
            (Some(covered), Some(clicker), reason, Some(salt)) => {
                *covered == private(salt, Some(clicker), reason.as_deref())
            }
            _ => false,
        }
    }

    fn head(&self) -> Head {
        Head { seq: self.seq, hash: self.hash.clone() }
    }
}

/// Checks rows as they come, ascending.
#[derive(Debug, Clone)]
pub struct Verifier {
    last: Head,
    rows: u64,
    saved: Option<Head>,
    met: bool,
}

impl Verifier {
    /// `saved`: a head noted earlier, which these rows must contain (or follow, where only later
    /// rows are given).
    #[must_use]
    pub fn new(saved: Option<Head>) -> Self {
        let met = saved.as_ref().is_none_or(|saved| *saved == Head::default());
        Self { last: Head::default(), rows: 0, saved, met }
    }

    /// # Errors
    /// Says what is wrong with this row.
    pub fn push(&mut self, row: &AuditRow) -> Result<(), Broken> {
        let broken = |seq, flaw| Err(Broken { seq, flaw });
        if self.rows == 0 && row.seq > 1 {
            // Only the later rows are here: the head saved before the first must vouch for the others.
            match &self.saved {
                Some(saved) if saved.seq + 1 == row.seq && saved.hash == row.prev => self.met = true,
                _ => return broken(1, Flaw::MissingAtStart),
            }
            self.last = Head { seq: row.seq - 1, hash: row.prev.clone() };
        }
        let wanted = self.last.seq + 1;
        if row.seq > wanted {
            return broken(wanted, Flaw::Missing);
        }
        if row.seq < wanted || row.prev != self.last.hash {
            return broken(wanted, Flaw::Link);
        }
        if row.hash != row.computed() {
            return broken(row.seq, Flaw::Hash);
        }
        if !row.private_fits() {
            return broken(row.seq, Flaw::Private);
        }
        self.last = row.head();
        self.rows += 1;
        if let Some(saved) = self.saved.as_ref().filter(|saved| saved.seq == row.seq) {
            if saved.hash != row.hash {
                return broken(row.seq, Flaw::Head);
            }
            self.met = true;
        }
        Ok(())
    }

    /// The seq that the next row should have.
    #[must_use]
    pub fn next_seq(&self) -> i64 {
        self.last.seq + 1
    }

    /// # Errors
    /// When the saved head was not reached: rows are missing at the end.
    pub fn finish(self) -> Result<Head, Broken> {
        match self.saved {
            Some(saved) if !self.met => {
                // Rows up to before the saved head may be whole; the first missing one is named.
                let seq = if saved.seq > self.last.seq { self.last.seq + 1 } else { saved.seq };
                Err(Broken { seq, flaw: if saved.seq == 0 { Flaw::Head } else { Flaw::Missing } })
            }
            _ => Ok(self.last),
        }
    }
}

/// Checks a whole chain; the head where it is intact.
///
/// # Errors
/// Names the first bad row.
pub fn verify<'r>(rows: impl IntoIterator<Item = &'r AuditRow>, saved: Option<Head>) -> Result<Head, Broken> {
    let mut verifier = Verifier::new(saved);
    for row in rows {
        verifier.push(row)?;
    }
    verifier.finish()
}

#[cfg(test)]
#[path = "audit_tests.rs"]
mod tests;

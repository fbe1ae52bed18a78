//! The audit log in the database: appended last in the transaction of what it records.
//!
//! Invariant: rows are added at the head only, one writer at a time (the head row is locked until
//! the commit), so `seq` has no gaps and a row is there exactly when what it records is. Nothing
//! here deletes a row; erasing nulls the three columns that the chain does not cover.
//!
//! Known race: locking the head makes deciding transactions queue on PostgreSQL. Recording last
//! keeps the queue short, and taking it last by everybody means that no two wait for each other.

use super::dialect::{Sql, exec, fetch_all, fetch_optional};
use super::{Store, StoreError, Tx};
use crate::domain::audit::{AuditEntry, AuditRow, Broken, Head, Verifier};
use crate::domain::clock::Millis;
use futures_util::FutureExt;

/// How many rows one read takes.
const PAGE: i64 = 1000;

const LOCK_HEAD: Sql = Sql {
    sqlite: "SELECT seq, hash FROM audit_head WHERE id = 0",
    postgres: "SELECT seq, hash FROM audit_head WHERE id = 0 FOR UPDATE",
};
const HEAD: &str = "SELECT seq, hash FROM audit_head WHERE id = 0";
const MOVE_HEAD: &str = "UPDATE audit_head SET seq = $1, hash = $2 WHERE id = 0 AND seq = $3";
const APPEND: &str = "INSERT INTO audit (seq, at_ms, event, runtime, interaction, subject, digest, decision, rule, \
    policy, runtime_said, private, clicker, reason, salt, prev, hash) \
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)";
const ROWS: &str = "SELECT seq, at_ms, event, runtime, interaction, subject, digest, decision, rule, policy, \
    runtime_said, private, clicker, reason, salt, prev, hash FROM audit WHERE seq >= $1 ORDER BY seq LIMIT $2";
const ERASE: &str = "UPDATE audit SET clicker = NULL, reason = NULL, salt = NULL WHERE clicker = $1";

#[derive(sqlx::FromRow)]
struct Row {
    seq: i64,
    at_ms: i64,
    event: String,
    runtime: Option<String>,
    interaction: Option<String>,
    subject: Option<String>,
    digest: Option<String>,
    decision: Option<String>,
    rule: Option<String>,
    policy: Option<String>,
    runtime_said: Option<String>,
    private: Option<String>,
    clicker: Option<String>,
    reason: Option<String>,
    salt: Option<String>,
    prev: String,
    hash: String,
}

impl From<Row> for AuditRow {
    fn from(row: Row) -> Self {
        Self {
            seq: row.seq,
            at: Millis(row.at_ms).rfc3339(),
            event: row.event,
            runtime: row.runtime,
            interaction: row.interaction,
            subject: row.subject,
            digest: row.digest,
            decision: row.decision,
            rule: row.rule,
            policy: row.policy,
            runtime_said: row.runtime_said,
            private: row.private,
            clicker: row.clicker,
            reason: row.reason,
            salt: row.salt,
            prev: row.prev,
            hash: row.hash,
        }
    }
}

/// A row that waits for the commit.
pub(super) struct ToRecord {
    entry: AuditEntry,
    at: Millis,
    salt: [u8; 16],
}

impl Tx {
    /// Appends a row at the end of the transaction, so that the chain is locked last and briefly; the rows of writes
    /// that share a commit move the head once. `salt` is fresh randomness.
    pub fn record_at_end(&mut self, entry: AuditEntry, at: Millis, salt: [u8; 16]) {
        self.to_record.push(ToRecord { entry, at, salt });
    }

    /// Appends what waits.
    pub(super) async fn record_all(&mut self) -> Result<(), StoreError> {
        if self.to_record.is_empty() {
            return Ok(());
        }
        let before = self.lock_head().await?;
        let mut head = before.clone();
        for ToRecord { entry, at, salt } in std::mem::take(&mut self.to_record) {
            head = self.append(&head, entry, at, salt).await?;
        }
        self.move_head(&before, &head).await
    }

    async fn lock_head(&mut self) -> Result<Head, StoreError> {
        let sql = LOCK_HEAD.of(self);
        let (seq, hash) = fetch_optional!(self, (i64, String), sql)?
            .ok_or_else(|| StoreError::corrupt("audit_head", "id", 0))?;
        Ok(Head { seq, hash })
    }

    async fn append(
        &mut self,
        before: &Head,
        entry: AuditEntry,
        at: Millis,
        salt: [u8; 16],
    ) -> Result<Head, StoreError> {
        let row = AuditRow::after(before, entry, at, salt);
        let head = Head { seq: row.seq, hash: row.hash.clone() };
        exec!(
            self,
            APPEND,
            row.seq,
            at.0,
            row.event,
            row.runtime,
            row.interaction,
            row.subject,
            row.digest,
            row.decision,
            row.rule,
            row.policy,
            row.runtime_said,
            row.private,
            row.clicker,
            row.reason,
            row.salt,
            row.prev,
            row.hash
        )?;
        Ok(head)
    }

    async fn move_head(&mut self, before: &Head, head: &Head) -> Result<(), StoreError> {
        match exec!(self, MOVE_HEAD, head.seq, &head.hash, before.seq)? {
            1 => Ok(()),
            rows => Err(StoreError::Conflict(format!("the audit head moved ({rows} rows)"))),
        }
    }

    /// Appends a row. Call it **last** in the transaction. `salt` is fresh randomness.
    pub async fn record(
        &mut self,
        entry: AuditEntry,
        at: Millis,
        salt: [u8; 16],
    ) -> Result<Head, StoreError> {
        let before = self.lock_head().await?;
        let head = self.append(&before, entry, at, salt).await?;
        self.move_head(&before, &head).await?;
        Ok(head)
    }

    /// The newest row's place and hash; `0` and zeros before the first.
    pub async fn audit_head(&mut self) -> Result<Head, StoreError> {
        let (seq, hash) = fetch_optional!(self, (i64, String), HEAD)?
            .ok_or_else(|| StoreError::corrupt("audit_head", "id", 0))?;
        Ok(Head { seq, hash })
    }

    /// Up to `limit` rows from `from` on, ascending.
    pub async fn audit_rows(&mut self, from: i64, limit: i64) -> Result<Vec<AuditRow>, StoreError> {
        let rows = fetch_all!(self, Row, ROWS, from, limit)?;
        Ok(rows.into_iter().map(AuditRow::from).collect())
    }

    /// Erases the traces of a chat account (written as in the log's `clicker`) and records that it
    /// happened, without saying whose. How many rows lost their clicker.
    pub async fn erase_clicker(&mut self, clicker: &str, at: Millis) -> Result<u64, StoreError> {
        let erased = exec!(self, ERASE, clicker)?;
        let entry = AuditEntry { event: "erase".into(), ..AuditEntry::default() };
        self.record(entry, at, [0; 16]).await?;
        Ok(erased)
    }
}

impl Store {
    /// Rows from `from` on, a page at a time; an empty page is the end. Continue at the last `seq` + 1.
    pub async fn audit_page(&self, from: i64) -> Result<Vec<AuditRow>, StoreError> {
        self.read(move |tx| async move { tx.audit_rows(from, PAGE).await }.boxed()).await
    }

    /// Checks the whole stored log: against its own head, so that a tail cut from the table alone
    /// is found, and against `saved`, where a head was saved elsewhere. The inner error names the
    /// first bad row.
    pub async fn verify_audit(&self, saved: Option<Head>) -> Result<Result<Head, Broken>, StoreError> {
        // Read first: rows added meanwhile come after it.
        let own = self.read(|tx| async move { tx.audit_head().await }.boxed()).await?;
        let mut checks = vec![Verifier::new(Some(own))];
        checks.extend(saved.map(|saved| Verifier::new(Some(saved))));
        let mut from = 1;
        loop {
            let page = self.audit_page(from).await?;
            let Some(last) = page.last() else { break };
            from = last.seq + 1;
            for row in &page {
                for check in &mut checks {
                    if let Err(broken) = check.push(row) {
                        return Ok(Err(broken));
                    }
                }
            }
        }
        let mut head = Head::default();
        for check in checks {
            match check.finish() {
                Ok(end) => head = end,
                Err(broken) => return Ok(Err(broken)),
            }
        }
        Ok(Ok(head))
    }
}

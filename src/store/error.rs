//! What went wrong in the database, as a decision.
//!
//! Invariant: `Busy` and `Unavailable` mean that nothing was written; trying again is right.

/// Why a database call failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Locked, serialisation failure, deadlock: the same again may succeed at once.
    #[error("the database is busy ({0})")]
    Busy(String),
    /// Not reachable, shutting down, disk full.
    #[error("the database is not available ({0})")]
    Unavailable(String),
    /// A unique key or an expected row count did not hold: somebody else was first.
    #[error("conflicting write ({0})")]
    Conflict(String),
    /// A stored value cannot be read back.
    #[error("{table}.{column} of row {id} cannot be read")]
    Corrupt { table: &'static str, column: &'static str, id: String },
    /// The statement is wrong, or the schema is not ours.
    #[error("the database refused a statement ({0})")]
    Refused(String),
}

impl StoreError {
    /// Names the row that cannot be read back.
    pub(crate) fn corrupt(table: &'static str, column: &'static str, id: impl std::fmt::Display) -> Self {
        Self::Corrupt { table, column, id: id.to_string() }
    }

    /// Whether the same again may succeed.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Busy(_) | Self::Unavailable(_))
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        match &error {
            sqlx::Error::Database(db) => {
                let code = db.code().unwrap_or_default().into_owned();
                // The code only: a database's message may quote the values of the statement.
                if db.is_unique_violation() {
                    return Self::Conflict(code);
                }
                match code.as_str() {
                    "5" | "6" | "517" | "262" | "40001" | "40P01" | "55P03" | "0A000" => Self::Busy(code),
                    "57P01" | "57P02" | "57P03" | "10" | "13" | "53300" | "53100" | "53200" => {
                        Self::Unavailable(code)
                    }
                    other if other.starts_with("08") => Self::Unavailable(code),
                    _ => Self::Refused(format!("{code}: {}", db.message())),
                }
            }
            sqlx::Error::Io(_)
            | sqlx::Error::Tls(_)
            | sqlx::Error::PoolTimedOut
            | sqlx::Error::PoolClosed
            | sqlx::Error::WorkerCrashed => Self::Unavailable(kind(&error).into()),
            sqlx::Error::Protocol(_) => Self::Unavailable("protocol".into()),
            _ => Self::Refused(error.to_string()),
        }
    }
}

fn kind(error: &sqlx::Error) -> &'static str {
    match error {
        sqlx::Error::Io(_) => "connection lost",
        sqlx::Error::Tls(_) => "tls",
        sqlx::Error::PoolTimedOut => "no free connection in time",
        sqlx::Error::PoolClosed => "closed",
        _ => "worker stopped",
    }
}

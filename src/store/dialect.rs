//! The handful of differences between the two databases, side by side, and the macros that run one
//! text on both.
//!
//! Invariant: a statement is a constant; where the databases need different texts, both stand here.

/// One statement in two spellings.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sql {
    pub(super) sqlite: &'static str,
    pub(super) postgres: &'static str,
}

impl Sql {
    pub(super) fn of(self, tx: &super::Tx) -> &'static str {
        if tx.is_postgres() { self.postgres } else { self.sqlite }
    }
}

/// Runs a statement; the number of rows it touched.
macro_rules! exec {
    ($tx:expr, $sql:expr $(, $bind:expr)* $(,)?) => {{
        let sql: &'static str = $sql;
        $tx.loaded = None;
        match $tx.conn() {
            $crate::store::door::Conn::Sqlite(c) =>
                sqlx::query(sql)$(.bind($bind))*.execute(&mut **c).await.map(|done| done.rows_affected()),
            $crate::store::door::Conn::Postgres(c) =>
                sqlx::query(sql)$(.bind($bind))*.execute(&mut **c).await.map(|done| done.rows_affected()),
            $crate::store::door::Conn::PostgresTx(c) =>
                sqlx::query(sql)$(.bind($bind))*.execute(&mut **c).await.map(|done| done.rows_affected()),
        }.map_err($crate::store::StoreError::from)
    }};
}

/// Reads at most one row.
macro_rules! fetch_optional {
    ($tx:expr, $row:ty, $sql:expr $(, $bind:expr)* $(,)?) => {{
        let sql: &'static str = $sql;
        match $tx.conn() {
            $crate::store::door::Conn::Sqlite(c) =>
                sqlx::query_as::<_, $row>(sql)$(.bind($bind))*.fetch_optional(&mut **c).await,
            $crate::store::door::Conn::Postgres(c) =>
                sqlx::query_as::<_, $row>(sql)$(.bind($bind))*.fetch_optional(&mut **c).await,
            $crate::store::door::Conn::PostgresTx(c) =>
                sqlx::query_as::<_, $row>(sql)$(.bind($bind))*.fetch_optional(&mut **c).await,
        }.map_err($crate::store::StoreError::from)
    }};
}

/// Reads all rows.
macro_rules! fetch_all {
    ($tx:expr, $row:ty, $sql:expr $(, $bind:expr)* $(,)?) => {{
        let sql: &'static str = $sql;
        match $tx.conn() {
            $crate::store::door::Conn::Sqlite(c) =>
                sqlx::query_as::<_, $row>(sql)$(.bind($bind))*.fetch_all(&mut **c).await,
            $crate::store::door::Conn::Postgres(c) =>
                sqlx::query_as::<_, $row>(sql)$(.bind($bind))*.fetch_all(&mut **c).await,
            $crate::store::door::Conn::PostgresTx(c) =>
                sqlx::query_as::<_, $row>(sql)$(.bind($bind))*.fetch_all(&mut **c).await,
        }.map_err($crate::store::StoreError::from)
    }};
}

pub(super) use {exec, fetch_all, fetch_optional};

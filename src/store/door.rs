//! Connecting, migrating, and the one door for writes.
//!
//! Invariant: a value comes back from a write only after its commit. On SQLite the one writer ([`super::writer`])
//! does it; on PostgreSQL each write is a transaction on a connection of its own.

use super::StoreError;
use super::audit::ToRecord;
use super::checkpoint::Checkpoints;
use super::interactions::Interaction;
use super::kept::Kept;
use super::wake::{Announce, Wake};
use super::writer::{Door, guarded, writer_task};
use crate::domain::clock::{Clock, Millis};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{PgConnection, Postgres, Sqlite};
use std::ops::{Deref, DerefMut};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

static SQLITE: sqlx::migrate::Migrator = sqlx::migrate!("migrations/sqlite");
static POSTGRES: sqlx::migrate::Migrator = sqlx::migrate!("migrations/postgres");

/// Page cache of a reading connection (negative: KiB). The file's pages are in the system's cache anyway.
const READER_CACHE: &str = "-256";
/// Oldest PostgreSQL whose behaviour was measured (server_version_num).
const MINIMUM_POSTGRES: i64 = 130_000;

/// What the store needs to know beside the address.
#[derive(Debug, Clone)]
pub struct StoreOptions {
    /// `sqlite://path` or `postgres://…`.
    pub url: String,
    pub readers: u32,
    /// Lease times come from here on SQLite and in tests; on PostgreSQL from the database, because
    /// replicas' clocks differ.
    pub clock: Arc<dyn Clock>,
    /// Take lease times from `clock` on PostgreSQL too (tests).
    pub bind_clock: bool,
}

#[derive(Debug, Clone)]
enum Pools {
    Sqlite { read: Arc<Kept<Sqlite>>, door: Door },
    Postgres(Arc<Kept<Postgres>>),
}

/// The database.
#[derive(Debug, Clone)]
pub struct Store {
    pools: Pools,
    clock: Arc<dyn Clock>,
    bind_clock: bool,
    pub(super) announce: Arc<Announce>,
    /// Signalled after each commit that queued work.
    pub wake: Wake,
    /// Something that people see listed has changed since this was last asked. True at first: nobody knows
    /// what changed before this process began.
    changed: Arc<AtomicBool>,
}

/// One open transaction (or, in [`Store::read`], one connection).
pub struct Tx {
    pub(super) conn: Conn,
    pub(super) now: Option<Millis>,
    pub(super) wakes: bool,
    pub(super) shows: bool,
    writes: bool,
    /// What was loaded last, as long as nothing was written since.
    pub(super) loaded: Option<(Interaction, bool)>,
    /// Audit rows that are appended before the commit.
    pub(super) to_record: Vec<ToRecord>,
}

pub(super) enum Conn {
    Sqlite(PoolConnection<Sqlite>),
    /// Reading, outside a transaction.
    Postgres(PoolConnection<Postgres>),
    /// Writing.
    PostgresTx(Begun),
}

/// A connection inside a transaction. Dropped unfinished (the caller went away), it is closed, which rolls back.
pub(super) struct Begun(Option<PoolConnection<Postgres>>);

impl Begun {
    fn finished(mut self) -> Option<PoolConnection<Postgres>> {
        self.0.take()
    }
}

impl Deref for Begun {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        self.0.as_ref().expect("taken only by `finished`, which consumes it")
    }
}

impl DerefMut for Begun {
    fn deref_mut(&mut self) -> &mut PgConnection {
        self.0.as_mut().expect("taken only by `finished`, which consumes it")
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        if let Some(connection) = &mut self.0 {
            connection.close_on_drop();
        }
    }
}

impl Tx {
    fn new(conn: Conn, now: Option<Millis>, writes: bool) -> Self {
        Self { conn, now, wakes: false, shows: false, writes, loaded: None, to_record: vec![] }
    }

    pub(super) fn conn(&mut self) -> &mut Conn {
        &mut self.conn
    }

    /// Whether nobody else changes what is read here, until the end.
    pub(super) fn is_alone(&self, locked: bool) -> bool {
        match self.conn {
            Conn::Sqlite(_) => self.writes,
            Conn::Postgres(_) => false,
            Conn::PostgresTx(_) => locked,
        }
    }

    pub(super) fn is_postgres(&self) -> bool {
        !matches!(self.conn, Conn::Sqlite(_))
    }

    /// Work was queued: workers are woken after the commit.
    pub fn wakes(&mut self) {
        self.wakes = true;
    }

    /// What people see listed has changed: [`Store::take_changes`] says so after the commit.
    pub(super) fn shows(&mut self) {
        self.shows = true;
    }

    /// Nobody need be woken: who queued has looked for due work afterwards, in this transaction.
    pub fn quiet(&mut self) {
        self.wakes = false;
    }

    /// The time by which leases are measured: the database's own on PostgreSQL.
    pub async fn now(&mut self) -> Result<Millis, StoreError> {
        if let Some(now) = self.now {
            return Ok(now);
        }
        let row = super::dialect::fetch_optional!(
            self,
            (i64,),
            "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint"
        )?;
        let now = row.map(|(ms,)| Millis(ms)).ok_or_else(|| StoreError::Refused("no clock".into()))?;
        // One transaction, one time.
        self.now = Some(now);
        Ok(now)
    }
}

impl Store {
    /// Connects without changing the schema. Fails clearly when it is older or newer than ours.
    pub async fn connect(options: StoreOptions) -> Result<Self, StoreError> {
        let StoreOptions { url, readers, clock, bind_clock } = options;
        let changed = Arc::new(AtomicBool::new(true));
        let wake = Wake::default();
        let pools = if url.starts_with("sqlite:") {
            let options = SqliteConnectOptions::from_str(&url)?
                .create_if_missing(true)
                .journal_mode(SqliteJournalMode::Wal)
                .synchronous(SqliteSynchronous::Full)
                .busy_timeout(Duration::from_secs(5))
                .pragma("wal_autocheckpoint", "0")
                .statement_cache_capacity(200);
            let writer = SqlitePoolOptions::new()
                .max_connections(1)
                .idle_timeout(None)
                .max_lifetime(None)
                .connect_with(options.clone())
                .await?;
            let readers = readers.max(1);
            let options = options.pragma("cache_size", READER_CACHE);
            let read = SqlitePoolOptions::new()
                .max_connections(readers + 1)
                .idle_timeout(None)
                .max_lifetime(None)
                .test_before_acquire(false)
                .connect_lazy_with(options.clone());
            let moving = SqlitePoolOptions::new().max_connections(1).idle_timeout(None).max_lifetime(None);
            let (checkpoints, moves) = Checkpoints::new(moving.connect_lazy_with(options));
            let (door, queue) = Door::new();
            let tx = Tx::new(Conn::Sqlite(writer.acquire().await?), None, true);
            #[expect(
                clippy::disallowed_methods,
                reason = "the one writer and its helper; they end when the last Store is dropped"
            )]
            {
                tokio::spawn(writer_task(
                    tx,
                    queue,
                    checkpoints,
                    clock.clone(),
                    wake.clone(),
                    Arc::clone(&changed),
                ));
                tokio::spawn(moves);
            }
            Pools::Sqlite { read: Arc::new(Kept::new(read, readers)), door }
        } else {
            let options = PgConnectOptions::from_str(&url)?.application_name("countersign").options([
                ("statement_timeout", "15000"),
                ("lock_timeout", "5000"),
                ("idle_in_transaction_session_timeout", "15000"),
            ]);
            let most = readers.max(2);
            let pool = PgPoolOptions::new()
                .max_connections(most + 1)
                .acquire_timeout(Duration::from_secs(5))
                .connect_with(options)
                .await?;
            Pools::Postgres(Arc::new(Kept::new(pool, most)))
        };
        let store = Self { pools, clock, bind_clock, announce: Arc::default(), wake, changed };
        if let Pools::Postgres(_) = store.pools {
            let version = store
                .read(|tx| {
                    async move {
                        super::dialect::fetch_optional!(
                            tx,
                            (i64,),
                            "SELECT current_setting('server_version_num')::bigint"
                        )
                    }
                    .boxed()
                })
                .await?;
            if version.is_none_or(|(number,)| number < MINIMUM_POSTGRES) {
                return Err(StoreError::Refused("PostgreSQL 13 or newer is needed".into()));
            }
        }
        Ok(store)
    }

    /// Applies the migrations that are missing. Replicas may do this at once: an advisory lock orders
    /// them on PostgreSQL.
    pub async fn migrate(&self, prefix: &str) -> Result<(), StoreError> {
        let outcome = match &self.pools {
            Pools::Sqlite { read, .. } => {
                let mut conn = read.pool.acquire().await?;
                SQLITE.run(&mut *conn).await
            }
            Pools::Postgres(kept) => POSTGRES.run(&kept.pool).await,
        };
        outcome.map_err(|error| StoreError::Refused(format!("migration: {error}")))?;
        let prefix = prefix.to_owned();
        self.write(move |tx| {
            async move {
                super::dialect::exec!(
                    tx,
                    "INSERT INTO meta (key, value) VALUES ('message_prefix', $1) ON CONFLICT (key) DO NOTHING",
                    prefix
                )
                .map(|_| ())
            }
            .boxed()
        })
        .await
    }

    /// Whether it is SQLite (one node) or PostgreSQL.
    #[must_use]
    pub fn is_sqlite(&self) -> bool {
        matches!(self.pools, Pools::Sqlite { .. })
    }

    /// The deployment's prefix of idempotency keys, made at its first migration.
    pub async fn message_prefix(&self) -> Result<String, StoreError> {
        let row = self
            .read(|tx| {
                async move {
                    super::dialect::fetch_optional!(
                        tx,
                        (String,),
                        "SELECT value FROM meta WHERE key = 'message_prefix'"
                    )
                }
                .boxed()
            })
            .await?;
        row.map(|(prefix,)| prefix).ok_or_else(|| StoreError::Refused("the database is not migrated".into()))
    }

    /// Whether anything that people see listed was committed here since this was last asked.
    #[must_use]
    pub fn take_changes(&self) -> bool {
        self.changed.swap(false, Ordering::AcqRel)
    }

    /// Runs one transaction. The value comes back after the commit; on an error nothing is written.
    pub async fn write<T, F>(&self, write: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: for<'t> FnOnce(&'t mut Tx) -> BoxFuture<'t, Result<T, StoreError>> + Send + 'static,
    {
        self.write_as(write, false).await
    }

    /// The same for a write that somebody outside waits for: it goes before the others.
    pub async fn write_urgent<T, F>(&self, write: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: for<'t> FnOnce(&'t mut Tx) -> BoxFuture<'t, Result<T, StoreError>> + Send + 'static,
    {
        self.write_as(write, true).await
    }

    async fn write_as<T, F>(&self, write: F, urgent: bool) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: for<'t> FnOnce(&'t mut Tx) -> BoxFuture<'t, Result<T, StoreError>> + Send + 'static,
    {
        match &self.pools {
            Pools::Sqlite { door, .. } => door.write(write, urgent).await,
            Pools::Postgres(kept) => self.write_postgres(kept, write).await,
        }
    }

    async fn write_postgres<T, F>(&self, kept: &Kept<Postgres>, write: F) -> Result<T, StoreError>
    where
        F: for<'t> FnOnce(&'t mut Tx) -> BoxFuture<'t, Result<T, StoreError>> + Send,
    {
        use super::dialect::exec;
        let now = self.bind_clock.then(|| self.clock.now());
        let (mut connection, mut permit) = kept.take().await?;
        let mut again = true;
        let mut tx = loop {
            let mut tx = Tx::new(Conn::PostgresTx(Begun(Some(connection))), now, true);
            match exec!(tx, "BEGIN") {
                Ok(_) => break tx,
                // The server has ended what lay idle: a new one, before anybody has to press again.
                Err(error) if again && error.is_transient() => {
                    again = false;
                    kept.forget();
                    drop((tx, permit));
                    (connection, permit) = kept.take().await?;
                }
                Err(error) => return Err(error),
            }
        };
        let mut written = guarded(write(&mut tx)).await;
        if written.is_ok()
            && let Err(error) = tx.record_all().await
        {
            written = Err(error);
        }
        // Replicas are told by a task of its own where there is one: `NOTIFY` inside would make commits queue.
        let announce = written.is_ok() && tx.wakes && !self.announce.later();
        if announce {
            exec!(tx, "SELECT pg_notify('countersign', '')")?;
        }
        let (wakes, shows) = (tx.wakes, tx.shows);
        exec!(tx, if written.is_ok() { "COMMIT" } else { "ROLLBACK" })?;
        if let Conn::PostgresTx(begun) = tx.conn
            && let Some(connection) = begun.finished()
        {
            kept.keep(connection);
        }
        drop(permit);
        if written.is_ok() && shows {
            self.changed.store(true, Ordering::Release);
        }
        if written.is_ok() && wakes {
            self.wake.signal();
            self.announce.due();
        }
        written
    }

    /// Reads, outside any transaction of ours.
    pub async fn read<T, F>(&self, read: F) -> Result<T, StoreError>
    where
        F: for<'t> FnOnce(&'t mut Tx) -> BoxFuture<'t, Result<T, StoreError>> + Send,
    {
        match &self.pools {
            Pools::Sqlite { read: kept, .. } => {
                let (connection, _permit) = kept.take().await?;
                let mut tx = Tx::new(Conn::Sqlite(connection), Some(self.clock.now()), false);
                let value = read(&mut tx).await?;
                if let Conn::Sqlite(connection) = tx.conn {
                    kept.keep(connection);
                }
                Ok(value)
            }
            Pools::Postgres(kept) => {
                let (connection, _permit) = kept.take().await?;
                let now = self.bind_clock.then(|| self.clock.now());
                let mut tx = Tx::new(Conn::Postgres(connection), now, false);
                let value = read(&mut tx).await?;
                if let Conn::Postgres(connection) = tx.conn {
                    kept.keep(connection);
                }
                Ok(value)
            }
        }
    }

    /// Closes every connection; queued writes have been answered when it returns.
    pub async fn close(&self) {
        match &self.pools {
            Pools::Sqlite { read, .. } => read.close().await,
            Pools::Postgres(kept) => kept.close().await,
        }
    }

    pub(super) fn postgres(&self) -> Option<&PgPool> {
        match &self.pools {
            Pools::Postgres(kept) => Some(&kept.pool),
            Pools::Sqlite { .. } => None,
        }
    }
}

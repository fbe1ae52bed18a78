//! Connecting, migrating, and the one door for writes.
//!
//! Invariant: on SQLite one task owns the only writing connection. It takes every write that waits,
//! runs each in a savepoint of one immediate transaction, commits once, and only then answers. A
//! write that fails or panics loses its own savepoint, not its neighbours'.

use super::{StoreError, wake::Wake};
use crate::domain::clock::{Clock, Millis};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};
use sqlx::{Postgres, Sqlite, Transaction};
use std::panic::AssertUnwindSafe;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

static SQLITE: sqlx::migrate::Migrator = sqlx::migrate!("migrations/sqlite");
static POSTGRES: sqlx::migrate::Migrator = sqlx::migrate!("migrations/postgres");

/// How many waiting writes share one commit at most.
const BATCH: usize = 64;
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
    Sqlite { read: SqlitePool, door: mpsc::Sender<Box<dyn Work>> },
    Postgres(PgPool),
}

/// The database.
#[derive(Debug, Clone)]
pub struct Store {
    pools: Pools,
    clock: Arc<dyn Clock>,
    bind_clock: bool,
    /// Signalled after each commit that queued work.
    pub wake: Wake,
    /// Something that people see listed has changed since this was last asked. True at first: nobody knows
    /// what changed before this process began.
    changed: Arc<AtomicBool>,
}

/// One open transaction (or, in [`Store::read`], one connection).
pub struct Tx {
    conn: Conn,
    now: Option<Millis>,
    wakes: bool,
    shows: bool,
}

pub(super) enum Conn {
    Sqlite(PoolConnection<Sqlite>),
    /// Reading, outside a transaction.
    Postgres(PoolConnection<Postgres>),
    /// Writing. Dropped unfinished (the caller went away), it rolls back before it is used again.
    PostgresTx(Transaction<'static, Postgres>),
}

impl Tx {
    pub(super) fn conn(&mut self) -> &mut Conn {
        &mut self.conn
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
        row.map(|(ms,)| Millis(ms)).ok_or_else(|| StoreError::Refused("no clock".into()))
    }
}

/// A queued write with its way back.
trait Work: Send + std::fmt::Debug {
    fn run<'t>(&'t mut self, tx: &'t mut Tx) -> BoxFuture<'t, Result<(), StoreError>>;
    fn finish(self: Box<Self>, commit: Result<(), StoreError>);
}

struct Written<F, T> {
    write: Option<F>,
    value: Option<T>,
    failed: Option<StoreError>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<F, T> std::fmt::Debug for Written<F, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Written")
    }
}

impl<F, T> Work for Written<F, T>
where
    T: Send + 'static,
    F: for<'t> FnOnce(&'t mut Tx) -> BoxFuture<'t, Result<T, StoreError>> + Send,
{
    fn run<'t>(&'t mut self, tx: &'t mut Tx) -> BoxFuture<'t, Result<(), StoreError>> {
        async move {
            let Some(write) = self.write.take() else { return Ok(()) };
            match guarded(write(tx)).await {
                Ok(value) => {
                    self.value = Some(value);
                    Ok(())
                }
                Err(error) => {
                    self.failed = Some(error);
                    Err(StoreError::Refused("rolled back".into()))
                }
            }
        }
        .boxed()
    }

    fn finish(self: Box<Self>, commit: Result<(), StoreError>) {
        let answer = match (self.failed, commit, self.value) {
            (Some(error), ..) | (None, Err(error), _) => Err(error),
            (None, Ok(()), Some(value)) => Ok(value),
            (None, Ok(()), None) => Err(StoreError::Unavailable("not run".into())),
        };
        // Nobody waits any more: what was written stays written.
        let _ = self.reply.send(answer);
    }
}

/// A panic inside one write must not take the writer down with it.
async fn guarded<T>(write: BoxFuture<'_, Result<T, StoreError>>) -> Result<T, StoreError> {
    AssertUnwindSafe(write)
        .catch_unwind()
        .await
        .unwrap_or_else(|_| Err(StoreError::Refused("a write panicked".into())))
}

impl Store {
    /// Connects without changing the schema. Fails clearly when it is older or newer than ours.
    pub async fn connect(options: StoreOptions) -> Result<Self, StoreError> {
        let StoreOptions { url, readers, clock, bind_clock } = options;
        let changed = Arc::new(AtomicBool::new(true));
        let pools = if url.starts_with("sqlite:") {
            let options = SqliteConnectOptions::from_str(&url)?
                .create_if_missing(true)
                .journal_mode(SqliteJournalMode::Wal)
                .synchronous(SqliteSynchronous::Full)
                .busy_timeout(Duration::from_secs(5))
                .statement_cache_capacity(200);
            let writer = SqlitePoolOptions::new()
                .max_connections(1)
                .idle_timeout(None)
                .max_lifetime(None)
                .connect_with(options.clone())
                .await?;
            let read = SqlitePoolOptions::new().max_connections(readers.max(1)).connect_lazy_with(options);
            let (door, queue) = mpsc::channel(1024);
            let tx =
                Tx { conn: Conn::Sqlite(writer.acquire().await?), now: None, wakes: false, shows: false };
            #[expect(
                clippy::disallowed_methods,
                reason = "the one writer; it ends when the last Store is dropped"
            )]
            tokio::spawn(writer_task(tx, queue, clock.clone(), Arc::clone(&changed)));
            Pools::Sqlite { read, door }
        } else {
            let options = PgConnectOptions::from_str(&url)?.application_name("countersign").options([
                ("statement_timeout", "15000"),
                ("lock_timeout", "5000"),
                ("idle_in_transaction_session_timeout", "15000"),
            ]);
            let pool = PgPoolOptions::new()
                .max_connections(readers.max(2))
                .acquire_timeout(Duration::from_secs(5))
                .connect_with(options)
                .await?;
            Pools::Postgres(pool)
        };
        let store = Self { pools, clock, bind_clock, wake: Wake::default(), changed };
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
                let mut conn = read.acquire().await?;
                SQLITE.run(&mut *conn).await
            }
            Pools::Postgres(pool) => POSTGRES.run(pool).await,
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
        let (value, wakes) = match &self.pools {
            Pools::Sqlite { door, .. } => {
                let (reply, answer) = oneshot::channel();
                let work = Box::new(Written { write: Some(write), value: None, failed: None, reply });
                door.send(work)
                    .await
                    .map_err(|_| StoreError::Unavailable("the writer has stopped".into()))?;
                let value =
                    answer.await.map_err(|_| StoreError::Unavailable("the writer has stopped".into()))??;
                (value, true)
            }
            Pools::Postgres(pool) => {
                let now = self.bind_clock.then(|| self.clock.now());
                let mut tx =
                    Tx { conn: Conn::PostgresTx(pool.begin().await?), now, wakes: false, shows: false };
                // On an error the transaction is dropped, which rolls it back.
                let value = guarded(write(&mut tx)).await?;
                if tx.wakes {
                    super::dialect::exec!(tx, "SELECT pg_notify('countersign', '')")?;
                }
                let (wakes, shows) = (tx.wakes, tx.shows);
                if let Conn::PostgresTx(transaction) = tx.conn {
                    transaction.commit().await?;
                }
                if shows {
                    self.changed.store(true, Ordering::Release);
                }
                (value, wakes)
            }
        };
        if wakes {
            self.wake.signal();
        }
        Ok(value)
    }

    /// Reads, outside any transaction of ours.
    pub async fn read<T, F>(&self, read: F) -> Result<T, StoreError>
    where
        F: for<'t> FnOnce(&'t mut Tx) -> BoxFuture<'t, Result<T, StoreError>> + Send,
    {
        let (conn, now) = match &self.pools {
            Pools::Sqlite { read, .. } => (Conn::Sqlite(read.acquire().await?), Some(self.clock.now())),
            Pools::Postgres(pool) => {
                (Conn::Postgres(pool.acquire().await?), self.bind_clock.then(|| self.clock.now()))
            }
        };
        let mut tx = Tx { conn, now, wakes: false, shows: false };
        read(&mut tx).await
    }

    /// Closes every connection; queued writes have been answered when it returns.
    pub async fn close(&self) {
        match &self.pools {
            Pools::Sqlite { read, .. } => read.close().await,
            Pools::Postgres(pool) => pool.close().await,
        }
    }

    pub(super) fn postgres(&self) -> Option<&PgPool> {
        match &self.pools {
            Pools::Postgres(pool) => Some(pool),
            Pools::Sqlite { .. } => None,
        }
    }
}

/// Takes what waits, runs it, commits once, answers.
async fn writer_task(
    mut tx: Tx,
    mut queue: mpsc::Receiver<Box<dyn Work>>,
    clock: Arc<dyn Clock>,
    changed: Arc<AtomicBool>,
) {
    let mut batch: Vec<Box<dyn Work>> = Vec::with_capacity(BATCH);
    while queue.recv_many(&mut batch, BATCH).await > 0 {
        tx.now = Some(clock.now());
        let commit = run_batch(&mut tx, &mut batch).await;
        // Of a batch that was not written too: looking once for nothing does no harm.
        if std::mem::take(&mut tx.shows) {
            changed.store(true, Ordering::Release);
        }
        for work in batch.drain(..) {
            work.finish(match &commit {
                Ok(()) => Ok(()),
                Err(StoreError::Busy(what)) => Err(StoreError::Busy(what.clone())),
                Err(error) => Err(StoreError::Unavailable(error.to_string())),
            });
        }
    }
}

async fn run_batch(tx: &mut Tx, batch: &mut [Box<dyn Work>]) -> Result<(), StoreError> {
    use super::dialect::exec;
    exec!(tx, "BEGIN IMMEDIATE")?;
    let outcome = async {
        for work in batch.iter_mut() {
            exec!(tx, "SAVEPOINT one")?;
            if work.run(tx).await.is_err() {
                exec!(tx, "ROLLBACK TO one")?;
            }
            exec!(tx, "RELEASE one")?;
        }
        exec!(tx, "COMMIT")
    }
    .await;
    if let Err(error) = outcome {
        // Best effort: SQLite may have rolled back by itself (disk full, I/O error).
        let _ = exec!(tx, "ROLLBACK");
        return Err(error);
    }
    Ok(())
}

//! One database, a store over it, and a clock moved by hand.

use crate::world::database::{Backend, Database};
use countersign::domain::clock::{Clock, Millis};
use countersign::store::jobs::{Job, JobKind, LEASE, NewJob};
use countersign::store::{Store, StoreOptions};
use sqlx::{AssertSqlSafe, Connection, PgConnection, SqliteConnection};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use uuid::Uuid;

/// Where every test's clock begins.
pub(super) const START: Millis = Millis(1_800_000_000_000);

/// Runs `body` as one write; `tx` is the transaction. Fails the test on an error.
macro_rules! write {
    ($store:expr, |$tx:ident| $body:expr) => {
        $store
            .write(move |$tx| {
                use futures_util::FutureExt;
                async move { $body.await }.boxed()
            })
            .await
            .unwrap()
    };
}
pub(super) use write;

/// A clock that stands still until it is moved.
#[derive(Debug)]
pub(super) struct Hand(AtomicI64);

impl Clock for Hand {
    fn now(&self) -> Millis {
        Millis(self.0.load(Ordering::SeqCst))
    }
}

impl Hand {
    pub(super) fn pass(&self, time: Duration) {
        self.jump(i64::try_from(time.as_millis()).unwrap());
    }

    /// Also backwards, as a machine's clock may.
    pub(super) fn jump(&self, by: i64) {
        self.0.fetch_add(by, Ordering::SeqCst);
    }
}

#[derive(Debug)]
pub(super) struct Bench {
    pub(super) store: Store,
    pub(super) clock: Arc<Hand>,
    pub(super) database: Database,
}

impl Bench {
    pub(super) async fn new(on: Backend) -> Self {
        let database = on.fresh().await;
        let clock = Arc::new(Hand(AtomicI64::new(START.0)));
        let store = open(&database, clock.clone()).await;
        Self { store, clock, database }
    }

    /// Another replica (or a command beside the service) over the same database.
    pub(super) async fn another(&self) -> Store {
        open(&self.database, self.clock.clone()).await
    }

    pub(super) fn now(&self) -> Millis {
        self.clock.now()
    }

    /// What somebody with the database's own tools may do; `$1…` are the ids.
    pub(super) async fn behind_our_back(&self, sql: &'static str, ids: &[Uuid]) -> u64 {
        behind(&self.database, sql, ids).await
    }

    /// The rows of a query of one number.
    pub(super) async fn number(&self, sql: &str) -> i64 {
        #[expect(clippy::disallowed_methods, reason = "a query a test puts together")]
        let sql = AssertSqlSafe(sql.to_owned());
        match &self.database {
            Database::Sqlite { url, .. } => {
                let mut connection = SqliteConnection::connect(url).await.unwrap();
                sqlx::query_scalar(sql).fetch_one(&mut connection).await.unwrap()
            }
            Database::Postgres(database) => {
                let mut connection = PgConnection::connect(database.url()).await.unwrap();
                sqlx::query_scalar(sql).fetch_one(&mut connection).await.unwrap()
            }
        }
    }

    pub(super) async fn queue(&self, job: NewJob) {
        write!(self.store, |tx| tx.queue(job));
    }

    pub(super) async fn claim(&self, owner: &'static str, limit: usize) -> Vec<Job> {
        write!(self.store, |tx| tx.claim(owner, &JobKind::ALL, limit, LEASE))
    }
}

async fn open(database: &Database, clock: Arc<Hand>) -> Store {
    let options = StoreOptions { url: database.url().to_owned(), readers: 10, clock, bind_clock: true };
    Store::connect(options).await.unwrap()
}

async fn behind(database: &Database, sql: &'static str, ids: &[Uuid]) -> u64 {
    match database {
        Database::Sqlite { url, .. } => {
            let mut connection = SqliteConnection::connect(url).await.unwrap();
            let query = ids.iter().fold(sqlx::query(sql), sqlx::query::Query::bind);
            query.execute(&mut connection).await.unwrap().rows_affected()
        }
        Database::Postgres(database) => {
            let mut connection = PgConnection::connect(database.url()).await.unwrap();
            let query = ids.iter().fold(sqlx::query(sql), sqlx::query::Query::bind);
            query.execute(&mut connection).await.unwrap().rows_affected()
        }
    }
}

/// A job about `reference`, due at the start.
pub(super) fn job(kind: JobKind, group: &str, seq: i64, reference: u128) -> NewJob {
    NewJob {
        kind,
        group: group.to_owned(),
        seq,
        priority: 5,
        reference: Uuid::from_u128(reference),
        payload: serde_json::json!({"n": reference.to_string()}),
        available: START,
    }
}

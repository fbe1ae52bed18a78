//! Waking workers after a commit: in the process, and between replicas by `NOTIFY`.
//!
//! Invariant: a wake-up is a hint; the poll every second or two is the guarantee. Register (take the
//! future) before the query, or a job committed between the two is slept over.
//!
//! A process that listens tells the others from a task of its own, a moment after its commits and once for many:
//! PostgreSQL lets only one transaction at a time commit a `NOTIFY`, so inside each it would queue all commits.
//! A process that does not listen (a command of the operators) does it inside its transaction.
//!
//! Known race: what is notified while the listening connection is down is lost; so every
//! (re)connection counts as a wake-up, after `LISTEN` has taken effect.

use super::{Store, StoreError};
use futures_util::future;
use sqlx::postgres::{PgListener, PgPool, PgPoolOptions};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// The first pause before connecting again, doubled up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// Commits of this time are told at once.
const TELL_EVERY: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// A bell that every waiting worker hears.
#[derive(Debug, Clone, Default)]
pub struct Wake(Arc<Notify>);

impl Wake {
    /// Work may be due.
    pub fn signal(&self) {
        self.0.notify_waiters();
    }

    /// Resolves at the next signal after this call (the future is registered at once).
    pub fn next(&self) -> impl Future<Output = ()> + Send + 'static {
        let notify = Arc::clone(&self.0);
        // `notified_owned` is registered when created, which is what "register before the query" needs.
        notify.notified_owned()
    }
}

/// What is to be told to other replicas.
#[derive(Debug, Default)]
pub(super) struct Announce {
    /// A task of this process tells them.
    running: AtomicBool,
    due: Notify,
}

impl Announce {
    /// Whether it need not be told inside the transaction.
    pub(super) fn later(&self) -> bool {
        self.running.load(Ordering::Acquire)
    }

    /// Something was committed that wakes.
    pub(super) fn due(&self) {
        self.due.notify_one();
    }
}

impl Store {
    /// Rings [`Store::wake`] for what other replicas commit, until `stop`. On SQLite there are none,
    /// and it only waits.
    pub async fn listen(&self, stop: &CancellationToken) {
        match self.postgres() {
            Some(pool) => {
                // A connection of its own: it is held for good, and must not be one of the pool's.
                let options = PgPool::connect_options(pool).as_ref().clone();
                let own = PgPoolOptions::new().max_connections(1).connect_lazy_with(options.clone());
                let telling = PgPoolOptions::new().max_connections(1).connect_lazy_with(options);
                // What we told ourselves is no news.
                let teller = AtomicU32::new(0);
                self.announce.running.store(true, Ordering::Release);
                let both = future::join(
                    listen_on(&own, &self.wake, &teller),
                    tell_on(&telling, &self.announce, &teller),
                );
                stop.run_until_cancelled(Box::pin(both)).await;
                self.announce.running.store(false, Ordering::Release);
                own.close().await;
                telling.close().await;
            }
            None => stop.cancelled().await,
        }
    }
}

/// Never ends; connects again whenever the connection is lost.
async fn listen_on(own: &PgPool, wake: &Wake, teller: &AtomicU32) {
    let mut pause = FIRST_PAUSE;
    loop {
        let listened = listen_once(own, wake, teller).await;
        let error = match listened {
            Ok(()) => {
                pause = FIRST_PAUSE;
                "connection lost".to_owned()
            }
            Err(error) => error.to_string(),
        };
        tracing::warn!(error, "not listening for other replicas' work; the poll goes on");
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Listens until the connection is lost (`Ok`) or cannot be made (`Err`).
async fn listen_once(own: &PgPool, wake: &Wake, teller: &AtomicU32) -> Result<(), StoreError> {
    let mut listener = PgListener::connect_with(own).await?;
    listener.listen("countersign").await?;
    ring(wake, "connected");
    // `None` is a lost connection, which it would make again without saying when.
    while let Ok(Some(told)) = listener.try_recv().await {
        if told.process_id() != teller.load(Ordering::Acquire) {
            ring(wake, "notified");
        }
    }
    Ok(())
}

/// Tells other replicas of our commits. What cannot be told is found by their poll.
async fn tell_on(own: &PgPool, announce: &Announce, teller: &AtomicU32) {
    const TELL: &str = "SELECT pg_notify('countersign', '')";
    const WHO: &str = "SELECT pg_backend_pid()";
    loop {
        announce.due.notified().await;
        let told = async {
            let mut connection = own.acquire().await?;
            let (who,): (i32,) = sqlx::query_as(WHO).fetch_one(&mut *connection).await?;
            teller.store(who.unsigned_abs(), Ordering::Release);
            sqlx::query(TELL).execute(&mut *connection).await
        };
        if let Err(error) = told.await {
            tracing::debug!(%error, "other replicas were not told of work");
        }
        tokio::time::sleep(TELL_EVERY).await;
    }
}

fn ring(wake: &Wake, reason: &'static str) {
    metrics::counter!("countersign_wakeups_total", "reason" => reason).increment(1);
    wake.signal();
}

//! Waking workers after a commit: in the process, and between replicas by `NOTIFY`.
//!
//! Invariant: a wake-up is a hint; the poll every second or two is the guarantee. Register (take the
//! future) before the query, or a job committed between the two is slept over.
//!
//! Known race: what is notified while the listening connection is down is lost; so every
//! (re)connection counts as a wake-up, after `LISTEN` has taken effect.

use super::{Store, StoreError};
use sqlx::postgres::{PgListener, PgPool, PgPoolOptions};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// The first pause before connecting again, doubled up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
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

impl Store {
    /// Rings [`Store::wake`] for what other replicas commit, until `stop`. On SQLite there are none,
    /// and it only waits.
    pub async fn listen(&self, stop: &CancellationToken) {
        match self.postgres() {
            Some(pool) => {
                // A connection of its own: it is held for good, and must not be one of the pool's.
                let options = PgPool::connect_options(pool).as_ref().clone();
                let own = PgPoolOptions::new().max_connections(1).connect_lazy_with(options);
                stop.run_until_cancelled(listen_on(&own, &self.wake)).await;
                own.close().await;
            }
            None => stop.cancelled().await,
        }
    }
}

/// Never ends; connects again whenever the connection is lost.
async fn listen_on(own: &PgPool, wake: &Wake) {
    let mut pause = FIRST_PAUSE;
    loop {
        let listened = listen_once(own, wake).await;
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
async fn listen_once(own: &PgPool, wake: &Wake) -> Result<(), StoreError> {
    let mut listener = PgListener::connect_with(own).await?;
    listener.listen("countersign").await?;
    ring(wake, "connected");
    // `None` is a lost connection, which it would make again without saying when.
    while let Ok(Some(_)) = listener.try_recv().await {
        ring(wake, "notified");
    }
    Ok(())
}

fn ring(wake: &Wake, reason: &'static str) {
    metrics::counter!("countersign_wakeups_total", "reason" => reason).increment(1);
    wake.signal();
}

//! Connections that stay checked out between uses.
//!
//! Invariant: a connection is used by one caller at a time and kept only after a use that ended well; one whose use
//! failed or was abandoned goes back to the pool, which looks at it, or is closed.
//!
//! Why: the pool asks a connection whether it lives on the way out and again on the way in. For a read of one row
//! that is two thirds of the work. A kept one is asked only after it lay idle for a while. Known race: the server
//! ends a connection in that while: a transaction that cannot begin on it begins on a new one; a read fails as
//! `Unavailable`, which every caller tries again.

use super::StoreError;
use sqlx::pool::PoolConnection;
use sqlx::{Connection, Database, Pool};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, SemaphorePermit};

/// After this long a connection is asked whether it lives.
const STALE: Duration = Duration::from_secs(5);
/// How long a caller waits for a free one.
const PATIENCE: Duration = Duration::from_secs(5);

/// A few connections, most recently used first, so that no more stay open than are needed at once.
#[derive(Debug)]
pub(super) struct Kept<DB: Database> {
    pub(super) pool: Pool<DB>,
    idle: Mutex<Vec<(PoolConnection<DB>, Instant)>>,
    free: Semaphore,
}

/// The right to hold one of the connections.
pub(super) type Permit<'k> = SemaphorePermit<'k>;

impl<DB: Database> Kept<DB> {
    /// At most `most` of the pool's connections; the pool needs one more for migrations.
    pub(super) fn new(pool: Pool<DB>, most: u32) -> Self {
        let free = Semaphore::new(usize::try_from(most).unwrap_or(1));
        Self { pool, idle: Mutex::default(), free }
    }

    /// A connection, and the permit to be held as long as it is used.
    pub(super) async fn take(&self) -> Result<(PoolConnection<DB>, Permit<'_>), StoreError> {
        let waited = tokio::time::timeout(PATIENCE, self.free.acquire()).await;
        let permit = waited
            .map_err(|_| StoreError::from(sqlx::Error::PoolTimedOut))?
            .map_err(|_| StoreError::from(sqlx::Error::PoolClosed))?;
        loop {
            let kept = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let Some((mut connection, since)) = kept else { break };
            if since.elapsed() < STALE || connection.ping().await.is_ok() {
                return Ok((connection, permit));
            }
            connection.close_on_drop();
        }
        Ok((self.pool.acquire().await?, permit))
    }

    /// Keeps a connection whose use has ended well.
    pub(super) fn keep(&self, connection: PoolConnection<DB>) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.pool.is_closed() {
            idle.push((connection, Instant::now()));
        }
    }

    /// Closes what lies idle: one of them turned out to be dead.
    pub(super) fn forget(&self) {
        let idle = std::mem::take(&mut *self.idle.lock().unwrap_or_else(PoisonError::into_inner));
        for (mut connection, _) in idle {
            connection.close_on_drop();
        }
    }

    /// Closes every connection; waits for those in use.
    pub(super) async fn close(&self) {
        self.free.close();
        let closing = self.pool.close();
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
        closing.await;
    }
}

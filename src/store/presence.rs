//! Telling a dead process from a slow one, on PostgreSQL: a lock that lives as long as a connection.
//!
//! Invariant: a process takes the lock of its name before it takes any lease. So when a process that starts finds the
//! lock of a lease's owner free, that owner has died or lost the database, and its leases are ended at once instead
//! of running out. That is never more than what running out does: whoever still works finds its lease lost (the epoch
//! is the fence).
//!
//! Known race: the connection of a living process is lost, and another starts before it is back: as if it had slept
//! past its leases.

use super::dialect::{exec, fetch_all, fetch_optional};
use super::{Store, StoreError, Tx};
use futures_util::FutureExt;
use sqlx::postgres::{PgConnectOptions, PgPool};
use sqlx::{ConnectOptions, Connection, PgConnection};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How often the connection is looked at, and made again when it is lost.
const LOOK: Duration = Duration::from_secs(5);

const HOLD: &str = "SELECT pg_advisory_lock(hashtextextended('countersign:' || $1, 0))";
const IS_FREE: &str = "SELECT pg_try_advisory_xact_lock(hashtextextended('countersign:' || $1, 0))";
const OWNERS: &str = "SELECT lease_owner AS owner FROM jobs WHERE lease_owner IS NOT NULL AND lease_until_ms > $1 \
    UNION SELECT owner FROM leases WHERE until_ms > $1";
const END_LEASES: &str = "UPDATE leases SET until_ms = 0 WHERE owner = $1 AND until_ms > 0";

/// This process is there, as long as this is held.
#[derive(Debug)]
pub struct Presence {
    owner: String,
    options: PgConnectOptions,
    connection: PgConnection,
}

impl Store {
    /// Makes this process known as `owner`. `None` on SQLite, where nobody else can be running.
    pub async fn present(&self, owner: &str) -> Result<Option<Presence>, StoreError> {
        let Some(pool) = self.postgres() else { return Ok(None) };
        let options = PgPool::connect_options(pool).as_ref().clone();
        let connection = hold(&options, owner).await?;
        Ok(Some(Presence { owner: owner.to_owned(), options, connection }))
    }

    /// Ends the leases of processes that are gone; how many processes that were. On SQLite: of everybody.
    pub async fn release_dead(&self) -> Result<usize, StoreError> {
        let sqlite = self.is_sqlite();
        self.write(move |tx| {
            async move {
                if sqlite {
                    tx.release_jobs(None).await?;
                    return tx.release_leases().await.map(|_| 0);
                }
                tx.release_gone().await
            }
            .boxed()
        })
        .await
    }
}

impl Tx {
    async fn release_gone(&mut self) -> Result<usize, StoreError> {
        let now = self.now().await?;
        let mut gone = 0;
        for (owner,) in fetch_all!(self, (String,), OWNERS, now.0)? {
            let free = fetch_optional!(self, (bool,), IS_FREE, owner.as_str())?;
            if free == Some((true,)) {
                self.release_jobs(Some(&owner)).await?;
                exec!(self, END_LEASES, owner)?;
                gone += 1;
            }
        }
        Ok(gone)
    }
}

impl Presence {
    /// Keeps the lock until `stop`; takes it again when the connection was lost.
    pub async fn keep(mut self, stop: &CancellationToken) {
        while stop.run_until_cancelled(tokio::time::sleep(LOOK)).await.is_some() {
            if self.connection.ping().await.is_ok() {
                continue;
            }
            match hold(&self.options, &self.owner).await {
                Ok(connection) => self.connection = connection,
                Err(error) => tracing::debug!(%error, "not yet present again"),
            }
        }
    }
}

async fn hold(options: &PgConnectOptions, owner: &str) -> Result<PgConnection, StoreError> {
    let mut connection = options.connect().await?;
    sqlx::query(HOLD).bind(owner).execute(&mut connection).await?;
    Ok(connection)
}

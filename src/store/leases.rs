//! Named leases: what runs on one replica at a time (a runtime's watcher, a gateway shard, the
//! reconciler) and moves within 15 s when that replica dies.
//!
//! Invariant: an `epoch` is given out once, ever; the row outlives the lease. Renewing and releasing
//! ask for owner and epoch.
//!
//! Known race: a holder that was paused past its lease works beside the new one until it renews.
//! So it renews every [`RENEW`], and what it does under the lease bears being done twice.

use super::dialect::{exec, fetch_optional};
use super::{StoreError, Tx};
use std::time::Duration;

/// How long a lease is valid.
pub const LIFE: Duration = Duration::from_secs(12);
/// How often it is renewed.
pub const RENEW: Duration = Duration::from_secs(4);

const ACQUIRE: &str = "INSERT INTO leases (name, owner, until_ms, epoch) VALUES ($1, $2, $3, 1) \
    ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, until_ms = excluded.until_ms, epoch = leases.epoch + 1 \
    WHERE leases.until_ms <= $4 RETURNING epoch";
/// `until_ms` is 0 once it was given back: renewing does not bring it back to life.
const RENEW_SQL: &str =
    "UPDATE leases SET until_ms = $4 WHERE name = $1 AND owner = $2 AND epoch = $3 AND until_ms > 0";
const RELEASE: &str =
    "UPDATE leases SET until_ms = 0 WHERE name = $1 AND owner = $2 AND epoch = $3 AND until_ms > 0";
const RELEASE_ALL: &str = "UPDATE leases SET until_ms = 0 WHERE until_ms > 0";

/// A held lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    pub name: String,
    pub owner: String,
    pub epoch: i64,
}

impl Tx {
    /// Takes the lease if nobody holds it.
    pub async fn acquire_lease(
        &mut self,
        name: &str,
        owner: &str,
        life: Duration,
    ) -> Result<Option<Lease>, StoreError> {
        let now = self.now().await?;
        let row = fetch_optional!(self, (i64,), ACQUIRE, name, owner, now.plus(life).0, now.0)?;
        Ok(row.map(|(epoch,)| Lease { name: name.to_owned(), owner: owner.to_owned(), epoch }))
    }

    /// Holds it for `life` from now. `false`: lost, stop at once.
    pub async fn renew_lease(&mut self, lease: &Lease, life: Duration) -> Result<bool, StoreError> {
        let until = self.now().await?.plus(life);
        Ok(exec!(self, RENEW_SQL, &lease.name, &lease.owner, lease.epoch, until.0)? == 1)
    }

    /// Gives it back, so that another replica takes it without waiting. `false`: it was lost before.
    pub async fn release_lease(&mut self, lease: &Lease) -> Result<bool, StoreError> {
        Ok(exec!(self, RELEASE, &lease.name, &lease.owner, lease.epoch)? == 1)
    }

    /// Ends every lease (start on SQLite, where nobody else can be running). How many.
    pub async fn release_leases(&mut self) -> Result<u64, StoreError> {
        exec!(self, RELEASE_ALL)
    }
}

//! The database: SQLite for one node, PostgreSQL for several replicas. `sqlx` stays in here.
//!
//! Invariants:
//! - every write goes through one door, [`Store::write`], as one transaction; on SQLite, writes that
//!   wait share a commit (a savepoint each), because `synchronous=FULL` makes each commit an fsync;
//! - a value comes back from [`Store::write`] only after the commit;
//! - no transaction is open while anything is sent over a network.
//!
//! Known races: a caller that goes away while its write is queued does not undo it; what it wanted
//! is written all the same, and its own repeat is recognised by its durable key.

pub mod alerts;
pub mod answers;
pub mod audit;
pub mod bulletins;
pub mod cards;
mod checkpoint;
pub mod clicks;
pub mod deliveries;
mod dialect;
mod door;
mod error;
pub mod gateway;
mod heads;
pub mod homes;
pub mod interactions;
pub mod jobs;
mod kept;
pub mod leases;
pub mod openings;
pub mod passes;
pub mod pauses;
pub mod places;
pub mod presence;
pub mod retention;
pub mod seats;
pub mod tasks;
pub mod threads;
pub mod waiting;
pub mod wake;
pub mod watches;
mod writer;

pub use door::{Store, StoreOptions, Tx};
pub use error::StoreError;

//! Discord: what comes in (who signed it, what it means), and what goes out.

pub mod custom_id;
mod signature;

pub use signature::{BadKey, Refused, Verifier};

//! Discord: what comes in (who signed it, what it means), and what goes out.

pub mod custom_id;
mod platform;
mod signature;

pub use platform::{Discord, DiscordSettings};
pub use signature::{BadKey, Refused, Verifier};

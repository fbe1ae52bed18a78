//! Discord: what comes in (who signed it, what it means), and what goes out.

pub mod custom_id;
mod events;
pub mod gateway;
mod inbound;
mod platform;
mod signature;

pub use events::Event;
pub use inbound::{Inbound, Interaction, read};
pub use platform::{Discord, DiscordSettings};
pub use signature::{BadKey, Refused, Verifier};

/// Discord blocks programs that do not say who they are.
const USER_AGENT: &str =
    concat!("DiscordBot (https://github.com/countersign, ", env!("CARGO_PKG_VERSION"), ")");

//! Discord: what comes in (who signed it, what it means), and what goes out.

mod bulletins;
mod calls;
mod commands;
pub mod custom_id;
mod doctor;
mod errors;
mod events;
mod fields;
mod gate;
pub mod gateway;
mod inbound;
mod limits;
mod markdown;
mod message;
mod messages;
mod notices;
mod people;
mod places;
mod platform;
mod render;
mod rest;
mod rights;
mod rules;
mod signature;
mod tell;
mod views;
mod waiting;

pub use events::Event;
pub use inbound::{Inbound, Interaction, read};
pub use people::profile_of;
pub use platform::{Discord, DiscordSettings};
pub use signature::{BadKey, Refused, Verifier};
pub use tell::Responded;
pub use views::Opening;

/// Discord blocks programs that do not say who they are.
const USER_AGENT: &str =
    concat!("DiscordBot (https://github.com/countersign, ", env!("CARGO_PKG_VERSION"), ")");

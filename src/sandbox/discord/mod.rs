//! A strict Discord in memory: REST, signed HTTP interactions, the gateway, forms, private messages, permissions,
//! limits, errors and rate limits, with scripted trouble and a world to look at.
//!
//! Invariant: it refuses what Discord refuses, counts lengths in the strictest unit, and where Discord's behaviour
//! is unsettled takes the strict reading unless a switch says otherwise. It knows nothing of an application beyond
//! its endpoint, and reaches loopback addresses only.
//!
//! One [`DiscordWorld`] is served by [`router`] and driven by its methods (`press`, `choose`, `fill`, `submit`,
//! `command`, `gateway`, `script`) or over the control API.

pub mod acme;
mod api;
mod complaints;
mod control;
mod controls;
mod deliver;
mod error;
mod gateway;
mod happen;
mod limits;
mod mentions;
mod payload;
pub mod perms;
mod press;
mod read;
mod render;
mod scripts;
mod sign;
mod switches;
#[cfg(test)]
mod tests;
pub mod text;
mod types;
mod validate;
mod world;

pub use controls::Input;
pub use deliver::{ACK, Delivery, Manner, Warning, Way};
pub use gateway::{Connection, Order};
pub use limits::Scope;
pub use payload::PressError;
pub use read::Payload;
pub use scripts::Script;
pub use sign::{Signing, signature, verify_key};
pub use switches::Switches;
pub use types::{
    Answers, App, Attachment, Channel, ChannelKind, Content, Guild, Member, Message, Modal, Overwrite,
    Recorded, Role, Thread, User,
};
pub use world::{ACK_MS, Builder, DiscordWorld, TOKEN_MS, made_ms};

use std::sync::Arc;

/// Serves `/discord/api/v10/…`, `/discord/gateway` and `/discord/control/…`. An application's `api_url` is
/// [`DiscordWorld::api_url`]; tell the world its root with [`DiscordWorld::set_base_url`].
pub fn router(world: Arc<DiscordWorld>) -> axum::Router {
    let dated = axum::middleware::from_fn_with_state(world.time().clone(), super::time::dated);
    api::routes().merge(gateway::routes()).merge(control::routes()).layer(dated).with_state(world)
}

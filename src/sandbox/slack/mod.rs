//! A strict Slack in memory: Web API, signed HTTP interactivity, views, ephemeral messages, the
//! directory of people, limits, errors and rate limits, with scripted trouble and a world to look
//! at.
//!
//! Invariant: it refuses what Slack refuses, judges lengths on the stored form, and where Slack's
//! behaviour is unsettled takes the strict reading unless a switch says otherwise. It knows
//! nothing of the app beyond its three addresses and its signing secret.
//!
//! One [`SlackWorld`] is served by [`router`] and driven by its methods (`press`, `fill`,
//! `submit`, `command`, `event`) or over the control API.

pub mod acme;
mod api;
mod complaints;
mod control;
mod controls;
mod deliver;
mod happen;
pub mod limits;
mod payload;
mod press;
mod read;
mod render;
mod response;
mod sign;
mod socket;
mod submit;
mod switches;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_modals;
pub mod text;
mod types;
pub mod validate;
mod world;

pub use controls::Input;
pub use deliver::{ACK, Delivery, Door, Doors, Manner, Warning};
pub use happen::Happening;
pub use payload::{PressError, Spot};
pub use read::Payload;
pub use sign::{Signing, signature};
pub use socket::{Envelope, Frame, Order, Socket};
pub use switches::{Switches, TextOnlyUpdate, Unit};
pub use types::{
    Channel, ChannelKind, Edited, Ephemeral, Group, Install, Message, Recorded, Team, TokenState, User,
    UserKind, Via, View,
};
pub use world::{Builder, SlackWorld};

use std::sync::Arc;

/// Serves `/slack/api/{method}`, `/slack/response/{id}`, `/slack/link/` and `/slack/control/…`. The app's
/// `api_url` is `{root}/slack/api`; tell the world its root with [`SlackWorld::set_base_url`].
pub fn router(world: Arc<SlackWorld>) -> axum::Router {
    let dated = axum::middleware::from_fn_with_state(world.time().clone(), super::time::dated);
    let routes = api::routes().merge(response::routes()).merge(socket::routes()).merge(control::routes());
    routes.layer(dated).with_state(world)
}

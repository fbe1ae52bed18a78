//! A strict stand-in of an A2A 1.0 runtime that speaks `interactions/v1`.
//!
//! Invariants:
//! * Every change of a task happens in one critical section of the world's lock, which is never
//!   held across an await: check, apply and record of an answer cannot be interleaved with another
//!   answer, so "one accepted, one refused" holds for any race.
//! * A refusal changes nothing. What is refused here is what the documents refuse, and on top of
//!   that whatever a client of ours may never send: unknown request fields, and a data part that
//!   contradicts the metadata. A real server may be more lenient; a lenient stand-in proves nothing.
//! * A credential is recorded by its kind only, never by its text.
//!
//! Known races, with the decision taken: an answer may leave the task paused again at once (a queued
//! interaction); the answer then shows the task as it is now, not as it was for a moment. A reader
//! within `stale_reads_ms` of an answer is served the status of before (a lagging replica); the
//! answer to the sender is always current.
//!
//! Operations (`ops`) know nothing of a binding; `rpc` is the JSON-RPC one, `rest` the HTTP+JSON one.

mod answer;
mod auth;
mod card;
mod control;
mod error;
mod faulty;
mod hooks;
mod jwt;
mod list;
mod model;
mod ops;
mod params;
mod push;
mod record;
mod render;
mod rest;
mod rpc;
mod script;
mod stream;
mod switches;
mod world;

#[cfg(test)]
mod tests;

pub use auth::{AuthMode, Watch};
pub use card::CardSpec;
pub use jwt::Jwks;
pub use model::{Accepted, Ask, Decision, InteractionView, Phase, State, TaskView};
pub use push::PushConfig;
pub use record::Recorded;
pub use script::{Elsewhere, Open, Opened};
pub use switches::{
    Binding, CancelAgain, ErrorStyle, Foreign, Push, StreamFault, Streaming, SubscribeBy, Switches,
    UnknownFilter, WhileWorking,
};
pub use world::{A2aWorld, Setup};

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::{any, get, post};
use std::sync::Arc;

/// The extension's name (interactions/v1, "URI").
pub const INTERACTIONS_V1: &str = "https://docs.nylorun.com/a2a/interactions/v1";

/// Largest request body the stand-in reads.
const BODY_LIMIT: usize = 1024 * 1024;

/// The stand-in: `/a2a/{agent}` (JSON-RPC), `/a2a/{agent}/rest/…` (HTTP+JSON), the card below it, and
/// `/a2a/control/…`.
pub fn router(world: Arc<A2aWorld>) -> Router {
    let dated = axum::middleware::from_fn_with_state(world.time().clone(), super::time::dated);
    Router::new()
        .route("/a2a/{agent}", post(rpc::post))
        .route("/a2a/{agent}/rest/{*path}", any(rest::any))
        .route("/a2a/{agent}/.well-known/agent-card.json", get(card::get))
        .nest("/a2a/control", control::router())
        .layer(DefaultBodyLimit::max(BODY_LIMIT))
        .layer(dated)
        .with_state(world)
}

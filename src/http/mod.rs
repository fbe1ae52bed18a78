//! What we answer over HTTP. Every route:
//!
//! | Route | Who may | What it does |
//! |---|---|---|
//! | `POST /slack/interactivity` | Slack's signature | stores every press, then acknowledges ([`slack`]) |
//! | `POST /slack/commands` | Slack's signature | a private answer |
//! | `POST /slack/events` | Slack's signature | `url_verification`; everything else is acknowledged |
//! | `POST /discord/interactions` | Discord's signature | stores every press, and answers it ([`discord`]) |
//! | `POST /hooks/a2a/{watch}` | the credential given out with the address | a task is read ([`a2a`]) |
//! | `GET /.well-known/jwks.json` | anybody | the public keys of our tokens ([`jwks`]) |
//! | `GET /healthz` | anybody | 200 while the process serves |
//! | `GET /readyz` | anybody | 200 or 503; the reasons only on the admin address ([`ops`]) |
//! | `GET /metrics` | operator token (admin address: anybody) | Prometheus text |
//! | `GET /api/v1/interactions` | operator token | interactions with cards, votes, claim, outcome ([`api`]) |
//! | `POST /api/v1/tasks` | operator token | registers a task to be watched |
//! | `GET /api/v1/audit` | operator token | rows of the audit log |
//! | `GET /api/v1/openapi.json` | operator token | the description of the API |
//!
//! With `server.admin_listen`, `/api`, `/metrics` and `/readyz` are served there only.
//!
//! Invariants: a click is committed before it is acknowledged; nothing of a delivery is parsed before
//! its signature was checked over the raw bytes; nothing in the API clicks, answers or links; whatever
//! is sent, the answer is a clear error and never a panic; no header, body, query string or secret is
//! logged.

pub mod a2a;
pub mod api;
pub mod discord;
pub mod jwks;
mod layers;
pub mod ops;
pub mod problem;
pub mod slack;

use crate::bridge::Bridge;
use crate::domain::clock::Millis;
use crate::render::Templates;
use crate::telemetry::Metrics;
use axum::Router;
use problem::Problem;
use std::sync::Arc;

pub use api::Operator;
pub use discord::{DiscordDispatch, DiscordDoor, GatewayDesk};
pub use slack::{Dispatch, SlackDoor, SocketDoor};

/// Gives the public keys to publish at a moment, as a JWK Set.
pub type Jwks = Arc<dyn Fn(Millis) -> serde_json::Value + Send + Sync>;

/// What the routes work with.
pub struct Http {
    pub bridge: Arc<Bridge>,
    /// Every Slack install that takes clicks over HTTP.
    pub slack: Vec<SlackDoor>,
    /// Every Discord install that takes clicks over HTTP.
    pub discord: Vec<DiscordDoor>,
    /// Who may use the operator API; without a token, nobody.
    pub operator: Option<Operator>,
    pub jwks: Jwks,
    pub metrics: Metrics,
    pub templates: Arc<Templates>,
}

/// What is served on `server.listen`. `admin_elsewhere`: `server.admin_listen` is given.
pub fn public_router(http: &Arc<Http>, admin_elsewhere: bool) -> Router {
    let mut router = slack::routes()
        .merge(discord::routes())
        .merge(a2a::routes())
        .merge(jwks::routes())
        .merge(ops::health());
    if !admin_elsewhere {
        router = router.merge(ops::guarded(http)).merge(api::routes(http));
    }
    finish(router, http)
}

/// What is served on `server.admin_listen`.
pub fn admin_router(http: &Arc<Http>) -> Router {
    finish(ops::health().merge(ops::open()).merge(api::routes(http)), http)
}

/// Errors for what no route takes, and what holds for every answer.
fn finish(router: Router<Arc<Http>>, http: &Arc<Http>) -> Router {
    let router = router
        .fallback(async || Problem::not_found())
        .method_not_allowed_fallback(async || Problem::wrong_method());
    layers::around(router, http).with_state(Arc::clone(http))
}

#[cfg(test)]
mod tests;

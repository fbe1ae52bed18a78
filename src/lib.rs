//! Countersign: agents ask, people answer in chat, every answer goes back signed by the person who clicked.
//!
//! The map (dependencies point inward, `tests/it/architecture.rs` keeps it true):
//!
//! ```text
//! main -> cli -> http, bridge, sandbox; cli also builds connectors and platforms and hands them in
//! http -> bridge, chat and runtime (reading inbound bodies), identity
//! bridge -> store, identity, domain
//! runtime, chat -> bridge::ports, domain, net, render, pace
//! store -> domain            identity -> domain, net
//! sandbox -> net, telemetry
//! ```
//!
//! What must always hold is in `ARCHITECTURE.md`; each module opens with its own invariant.

pub mod bridge;
pub mod chat;
pub mod cli;
pub mod config;
pub mod domain;
pub mod http;
pub mod identity;
pub mod net;
pub mod pace;
pub mod render;
pub mod runtime;
pub mod sandbox;
pub mod store;
pub mod telemetry;

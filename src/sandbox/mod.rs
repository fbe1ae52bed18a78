//! Strict stand-ins of the chat platforms and the agent runtimes, for the demo, the tests and the
//! load benchmark: one implementation for all three.
//!
//! Invariant: a stand-in refuses what the real service refuses, and has wire types of its own, so
//! that a field misspelt in the client is not proven right by its own twin. It knows nothing of
//! the product beyond `net` and `telemetry`.

pub mod a2a;
pub mod agent;
pub mod company;
pub mod discord;
pub mod faults;
pub mod page;
pub mod serve;
pub mod slack;
pub mod time;

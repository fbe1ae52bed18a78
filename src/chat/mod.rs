//! The people's side: one folder per chat platform, each an implementation of the bridge's port.

pub mod discord;
mod once;
pub mod slack;

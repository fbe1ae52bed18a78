//! The people's side: one folder per chat platform, each an implementation of the bridge's port.

pub mod discord;
pub mod slack;

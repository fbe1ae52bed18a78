//! (being written)
pub mod discord;
pub mod slack;

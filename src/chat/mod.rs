//! (being written)
pub mod slack;

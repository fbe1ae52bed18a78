//! (being written)
pub mod a2a;

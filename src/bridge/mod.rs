//! (being written)
pub mod ports;

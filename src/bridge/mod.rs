//! (being written)
pub mod carrier;
pub mod ports;

//! Who a person is, and saying it to a runtime.
//!
//! Invariant: no credential, key or token made here appears in Debug output, errors or logs.

pub mod jwk;
pub mod jwt;
pub mod keys;
pub mod subject;

//! What the product means, without any talking: interactions, forms, cards, policy, routing.
//!
//! Invariant: nothing here reads a clock, a random source, a database or a network; the same
//! inputs give the same outputs. Imports std, serde, uuid, jiff, the digest's hash and nothing of ours.

pub mod audit;
pub mod audit_file;
pub mod bulletin;
pub mod card;
pub mod clock;
pub mod details;
pub mod form;
pub mod ids;
pub mod interaction;
pub mod notice;
pub mod pattern;
pub mod place;
pub mod policy;
pub mod routing;
pub mod session;
pub mod subject_form;
pub mod text;
pub mod view;
pub mod waiting;

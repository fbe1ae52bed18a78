//! What tests are written with. Nothing in here asserts product behaviour.

pub(crate) mod cluster;
pub(crate) mod database;
pub(crate) mod doors;
pub(crate) mod follow;
pub(crate) mod logs;
pub(crate) mod outside;
pub(crate) mod postgres;
pub(crate) mod story;
pub(crate) mod wants;

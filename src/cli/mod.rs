//! The command line (being wired).
pub mod machine;

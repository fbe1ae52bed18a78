//! The binary (being wired).
fn main() {}

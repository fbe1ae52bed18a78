//! Embedded folders must rebuild the crate when a file is added to them.
fn main() {
    for folder in ["templates", "migrations"] {
        println!("cargo:rerun-if-changed={folder}");
    }
}

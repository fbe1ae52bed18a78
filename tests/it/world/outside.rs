//! Programs that other people wrote, run as judges of what we send and of what our stand-ins serve.
//!
//! `scripts/setup` installs them under `target/outside` (`COUNTERSIGN_OUTSIDE` names another place). A missing one
//! fails the test with that advice. Every child ends with the value that holds it.

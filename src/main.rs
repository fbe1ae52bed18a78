//! The binary: parses the command line and calls the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    countersign::net::init();
    countersign::cli::main()
}

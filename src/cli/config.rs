//! `config example|schema`.

use super::End;
use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(super) enum ConfigCommand {
    /// Print a commented example file.
    Example,
    /// Print the JSON Schema of the file.
    Schema,
}

pub(super) fn run(command: &ConfigCommand) -> End {
    match command {
        ConfigCommand::Example => print!("{}", crate::config::example()),
        ConfigCommand::Schema => print!("{}", crate::config::schema()),
    }
    End::Done
}

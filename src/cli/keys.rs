//! `keys list|rotate`.

use super::End;
use super::service::{Machine, key_file};
use crate::config::Config;
use crate::identity::keys::{self, KeyInfo, Keys};
use anyhow::{Context, Result};
use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(super) enum KeysCommand {
    /// List the keys with their start times.
    List,
    /// Add a key. The first signs at once, a later one after `signing.publish_ahead`.
    Rotate,
}

pub(super) fn run(config: &Config, command: &KeysCommand) -> Result<End> {
    let now = Machine::real().clock.now();
    let file = key_file(config);
    let at = config.signing.key_file.display().to_string();
    let listed = match command {
        KeysCommand::List => Keys::open(file, false, now).with_context(|| at.clone())?.list(now),
        KeysCommand::Rotate => keys::rotate(&file, now).with_context(|| at.clone())?,
    };
    for KeyInfo { kid, alg, starts, standing, published } in listed {
        let shown = if published { "in the JWKS" } else { "not in the JWKS" };
        println!("{kid}  {alg}  signs from {}  {standing:?}, {shown}", starts.rfc3339());
    }
    Ok(End::Done)
}

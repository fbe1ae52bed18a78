//! `slack manifest`: the app's manifest from the configuration.

use super::End;
use crate::chat::slack::manifest;
use crate::config::{Config, SlackInbound};
use anyhow::Result;
use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(super) enum SlackCommand {
    /// Print the manifest to create the Slack app from (JSON), as the configuration says clicks arrive.
    Manifest {
        /// The name of the `[[slack]]`; needed only when there are several.
        install: Option<String>,
    },
}

pub(super) fn run(config: &Config, command: &SlackCommand) -> Result<End> {
    let SlackCommand::Manifest { install } = command;
    let names: Vec<&str> = config.slack.iter().map(|slack| slack.name.as_str()).collect();
    let found = match (install.as_deref(), config.slack.as_slice()) {
        (None, [only]) => Some(only),
        (None, _) => None,
        (Some(name), all) => all.iter().find(|slack| slack.name == name),
    };
    let Some(slack) = found else {
        match (install, names.as_slice()) {
            (Some(name), _) => {
                eprintln!("countersign: no [[slack]] is named `{name}`; there are: {}", names.join(", "));
            }
            (None, []) => eprintln!("countersign: the configuration has no [[slack]]"),
            (None, _) => eprintln!("countersign: say which [[slack]]: {}", names.join(", ")),
        }
        return Ok(End::Usage);
    };
    let http = matches!(slack.inbound, SlackInbound::Http { .. });
    let public = config.server.public_url.as_ref().map(|public| public.url.as_str()).filter(|_| http);
    if http && public.is_none() {
        eprintln!("countersign: server.public_url: is missing: Slack has to reach it");
        return Ok(End::Usage);
    }
    println!("{}", serde_json::to_string_pretty(&manifest(public))?);
    Ok(End::Done)
}

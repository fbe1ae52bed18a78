//! `pause|resume [runtime]`: the incident stop.
//!
//! Invariant: works beside a running service; what is stored decides, not whether a service runs.

use super::End;
use super::service::{self, Machine, Service};
use crate::bridge::incident::EVERY;
use crate::config::Config;
use anyhow::Result;
use clap::Args;

#[derive(Debug, Args)]
pub(super) struct Pause {
    /// A configured runtime; without it, every runtime, also one that is configured later.
    runtime: Option<String>,
}

pub(super) async fn run(config: Config, command: Pause, stop: bool) -> Result<End> {
    let machine = Machine::real();
    let store = service::connect(&config, &machine).await?;
    let service = Service::build(config, store, &machine).await?;
    let name = command.runtime.as_deref().unwrap_or(EVERY);
    let standing = service.bridge.pauses().await?;
    // A stop of a runtime that is configured no longer can still be taken back.
    let known = service.bridge.knows_runtime(name) || standing.iter().any(|pause| pause.runtime == name);
    let end = if name != EVERY && !known {
        eprintln!("countersign: no runtime is named `{name}`");
        End::Usage
    } else if stop {
        pause(&service, name).await?
    } else {
        resume(&service, name).await?
    };
    service.bridge.store.close().await;
    Ok(end)
}

fn whom(name: &str) -> String {
    if name == EVERY { "every runtime".to_owned() } else { format!("runtime {name}") }
}

async fn pause(service: &Service, name: &str) -> Result<End> {
    let done = service.bridge.pause(name).await?;
    let already = if done.changed { "" } else { " already" };
    println!("answers to {} are{already} paused; clicks are kept", whom(name));
    if done.answers > 0 {
        println!("{} were given before and wait, unless they were just being sent", done.answers);
    }
    Ok(End::Done)
}

async fn resume(service: &Service, name: &str) -> Result<End> {
    let done = service.bridge.resume(name).await?;
    if name != EVERY && service.bridge.pauses().await?.iter().any(|pause| pause.runtime == EVERY) {
        eprintln!(
            "countersign: every runtime is paused, {name} too; `countersign resume` without a name ends that"
        );
        return Ok(End::Failed);
    }
    if done.changed {
        println!("answers to {} are sent again; {} waited", whom(name), done.answers);
    } else {
        println!("answers to {} were not paused", whom(name));
    }
    Ok(End::Done)
}

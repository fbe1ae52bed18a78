//! `demo`: everything on this machine, without an account: stand-ins of Slack and of a runtime, a small
//! agent, and the real service on an embedded SQLite file.
//!
//! Invariant: nothing listens beyond this machine, and nothing is left behind: the database, the key and
//! every secret are made for this run and deleted at its end.

use super::End;
use super::run::{self, finish};
use super::service::Machine;
use crate::bridge::supervisor::Supervisor;
use crate::config::Config;
use crate::sandbox::company;
use crate::sandbox::serve::{Options, SandboxServer};
use anyhow::{Context, Result};
use clap::Args;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(super) struct Demo {
    /// Where the demo's page is served; on this machine only. Port 0: any free one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8666")]
    listen: SocketAddr,
    /// Without the agent that asks by itself (the page can still make it ask).
    #[arg(long)]
    quiet: bool,
}

/// A folder of this run, deleted with it.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        // Best effort: the system cleans its temporary folder too.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(super) async fn run(demo: Demo) -> Result<End> {
    let machine = Machine::real();
    let folder = folder(&machine)?;
    let sandbox = SandboxServer::bind(demo.listen, Options { agent: !demo.quiet, ..Options::default() })
        .await
        .with_context(|| format!("--listen: {} cannot be used", demo.listen))?;
    let listen = free_port().await?;
    let service = format!("http://{listen}");
    sandbox.connect(&service);
    let file = |name: &str| folder.0.join(name).display().to_string();
    let text = company::config(
        &sandbox.url(),
        &service,
        &listen.to_string(),
        &file("countersign.db"),
        &file("countersign.key"),
    );
    let config = Config::parse(&text, &|name: &str| sandbox.secret(name))
        .map_err(|findings| anyhow::anyhow!("the demo's own configuration is at fault:\n{findings}"))?;

    let tasks = Supervisor::new();
    let page = sandbox.url();
    let stop = tasks.stopping();
    // The stand-ins first: the service asks them who it is.
    tasks.start("stand-ins", async move {
        if let Err(error) = sandbox.run(stop).await {
            tracing::error!(%error, "the stand-ins ended");
        }
    });
    let running = run::start(config, &machine, &tasks).await?;
    println!("\n  Countersign demo: open {page}\n\n  Stop it with Ctrl-C; nothing is kept.\n");
    let ending = tasks.clone();
    tasks.start("signals", async move {
        run::asked_to_stop().await;
        ending.stop();
    });
    let end = finish(tasks, &running.service).await;
    drop(folder);
    end
}

fn folder(machine: &Machine) -> Result<Folder> {
    let path = std::env::temp_dir().join(format!("countersign-demo-{}", machine.ids.uuid().simple()));
    std::fs::create_dir(&path).with_context(|| format!("{} cannot be made", path.display()))?;
    Ok(Folder(path))
}

/// A port for the service, which the page's visitor never needs.
async fn free_port() -> Result<SocketAddr> {
    let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.context("no free port")?;
    Ok(listener.local_addr()?)
}

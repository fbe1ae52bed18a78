//! `run`: the service.
//!
//! Invariant: it starts, answers `/healthz` and takes clicks while chat platforms and runtimes are
//! unreachable; only a faulty configuration or database stops it. Asked to stop, it takes no new work,
//! finishes what it has begun, gives its leases back and ends with 0.

use super::End;
use super::service::{self, Machine, Service};
use crate::bridge::supervisor::Supervisor;
use crate::chat::discord::gateway;
use crate::chat::slack::socket::Timing;
use crate::config::Config;
use crate::http;
use anyhow::{Context, Result, bail};
use std::fs::File;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpListener;

/// How often the key file is read again, and collected samples are folded together.
const EVERY: Duration = Duration::from_secs(5);

/// The lock on a SQLite file: one `run` or `migrate` at a time. PostgreSQL needs none.
pub(super) fn lock(config: &Config) -> Result<Option<File>> {
    let url = config.database.url.expose();
    if !config.database.url.is_sqlite() {
        return Ok(None);
    }
    let path = url.trim_start_matches("sqlite://").trim_start_matches("sqlite:");
    let path = path.split('?').next().unwrap_or(path);
    if path.is_empty() || path.contains(":memory:") {
        bail!("database.url: a database in memory forgets every click; name a file");
    }
    let lock = format!("{path}.lock");
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&lock)
        .with_context(|| format!("{lock} cannot be opened"))?;
    if file.try_lock().is_err() {
        bail!("another countersign holds {lock}; SQLite is for one node, several need PostgreSQL");
    }
    Ok(Some(file))
}

pub(super) async fn run(config: Config) -> Result<End> {
    for warning in config.warnings() {
        tracing::warn!("{warning}");
    }
    let _lock = lock(&config)?;
    let tasks = Supervisor::new();
    let running = start(config, &Machine::real(), &tasks).await?;
    tracing::info!(listen = %running.public, version = env!("CARGO_PKG_VERSION"), "serving");
    let stop = tasks.clone();
    tasks.start("signals", async move {
        asked_to_stop().await;
        tracing::info!("asked to stop; finishing what was begun");
        stop.stop();
    });
    finish(tasks, &running.service).await
}

/// Waits for the end of every task; one that ended unasked is a failure.
pub(super) async fn finish(tasks: Supervisor, service: &Service) -> Result<End> {
    let ended = tasks.wait().await;
    service.bridge.store.close().await;
    match ended {
        Ok(()) => Ok(End::Done),
        Err(task) => {
            eprintln!("countersign: {task} ended unasked");
            Ok(End::Failed)
        }
    }
}

/// A started service and where it listens.
pub(super) struct Running {
    pub(super) service: Service,
    pub(super) public: SocketAddr,
}

/// Starts everything: the same in `run` and in the demo.
pub(super) async fn start(config: Config, machine: &Machine, tasks: &Supervisor) -> Result<Running> {
    let store = service::connect(&config, machine).await?;
    service::migrate(&store, machine).await?;
    let service = Service::build(config, store, machine).await?;
    let http = service.http()?;
    let server = &service.config.server;
    let public = bind(server.listen, "server.listen").await?;
    let address = public.local_addr()?;
    if let Some(admin) = server.admin_listen {
        let admin = bind(admin, "server.admin_listen").await?;
        serve(tasks, "admin", admin, http::admin_router(&http));
    }
    serve(tasks, "http", public, http::public_router(&http, server.admin_listen.is_some()));
    // What a dead process held is free at once; nobody may think so of us.
    let presence = service.bridge.store.present(&service.bridge.owner).await?;
    service.bridge.store.release_dead().await?;
    if let Some(presence) = presence {
        let stop = tasks.stopping();
        tasks.start("presence", async move { presence.keep(&stop).await });
    }
    service.bridge.start(tasks, service.watches.clone());
    for sockets in service.sockets(machine, &Timing::default()) {
        let stop = tasks.stopping();
        tasks.start(format!("sockets:{}", sockets.install()), async move { sockets.run(&stop).await });
    }
    for gateway in service.gateways(machine, &gateway::Timing::default()) {
        let stop = tasks.stopping();
        tasks.start(format!("gateway:{}", gateway.install()), async move { gateway.run(&stop).await });
    }
    let (keys, metrics, stop) = (service.keys.clone(), http.metrics.clone(), tasks.stopping());
    tasks.start("upkeep", async move {
        while !stop.is_cancelled() {
            tokio::select! {
                () = stop.cancelled() => {}
                () = tokio::time::sleep(EVERY) => {}
            }
            metrics.upkeep();
            if let Some(Err(error)) = keys.as_ref().map(|keys| keys.reload()) {
                tracing::error!(%error, "the key file cannot be read; the keys read before stay in use");
            }
        }
    });
    Ok(Running { service, public: address })
}

async fn bind(address: SocketAddr, key: &str) -> Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| format!("{key}: {address} cannot be listened on"))
}

/// Serves until asked to stop, then finishes the requests under way.
fn serve(tasks: &Supervisor, name: &str, listener: TcpListener, router: axum::Router) {
    let stop = tasks.stopping();
    let name = name.to_owned();
    tasks.start(name.clone(), async move {
        let served =
            axum::serve(listener, router).with_graceful_shutdown(async move { stop.cancelled().await }).await;
        if let Err(error) = served {
            tracing::error!(name, %error, "serving ended");
        }
    });
}

/// SIGTERM or SIGINT.
pub(super) async fn asked_to_stop() {
    use tokio::signal::unix::{SignalKind, signal};
    match signal(SignalKind::terminate()) {
        Ok(mut terminate) => {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = tokio::signal::ctrl_c() => {}
            }
        }
        Err(_) => {
            let _ = tokio::signal::ctrl_c().await;
        }
    }
}

//! How clicks arrive in a story: signed requests to our address, or sockets that we open.

use super::database::Backend;
use countersign::chat::slack::socket::SocketMode;
use countersign::cli::service::LeasedGateway;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// How clicks arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Inbound {
    Http,
    Socket,
}

/// What a story runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ground {
    pub(crate) backend: Backend,
    pub(crate) inbound: Inbound,
}

pub(crate) const SQLITE: Ground = Ground { backend: Backend::Sqlite, inbound: Inbound::Http };
pub(crate) const POSTGRES: Ground = Ground { backend: Backend::Postgres, inbound: Inbound::Http };
pub(crate) const SOCKETS: Ground = Ground { backend: Backend::Sqlite, inbound: Inbound::Socket };

impl From<Backend> for Ground {
    fn from(backend: Backend) -> Self {
        Self { backend, inbound: Inbound::Http }
    }
}

/// How clicks on Discord arrive in a story.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Clicks {
    /// Nobody clicks there.
    None,
    Endpoint,
    Gateway,
}

/// The running gateways of a story's service.
pub(crate) struct Gateways {
    stop: CancellationToken,
    running: Vec<JoinHandle<()>>,
}

impl Gateways {
    #[expect(clippy::disallowed_methods, reason = "a test's own tasks, ended with it")]
    pub(crate) fn open(gateways: Vec<LeasedGateway>) -> Self {
        let stop = CancellationToken::new();
        let run = |one: LeasedGateway| {
            let stop = stop.clone();
            tokio::spawn(async move { one.run(&stop).await })
        };
        Self { running: gateways.into_iter().map(run).collect(), stop }
    }

    /// As the service does it when it is asked to stop.
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        for one in self.running {
            one.await.unwrap();
        }
    }

    /// As the end of the process does it.
    pub(crate) async fn kill(self) {
        for one in self.running {
            one.abort();
            let _ = one.await;
        }
    }
}

/// The running sockets of a story's service.
pub(crate) struct Sockets {
    stop: CancellationToken,
    running: Vec<JoinHandle<()>>,
}

impl Sockets {
    #[expect(clippy::disallowed_methods, reason = "a test's own tasks, ended with it")]
    pub(crate) fn open(sockets: Vec<SocketMode>) -> Self {
        let stop = CancellationToken::new();
        let run = |one: SocketMode| {
            let stop = stop.clone();
            tokio::spawn(async move { one.run(&stop).await })
        };
        Self { running: sockets.into_iter().map(run).collect(), stop }
    }

    /// As the service does it when it is asked to stop.
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        for one in self.running {
            one.await.unwrap();
        }
    }

    /// As the end of the process does it.
    pub(crate) async fn kill(self) {
        for one in self.running {
            one.abort();
            let _ = one.await;
        }
    }
}

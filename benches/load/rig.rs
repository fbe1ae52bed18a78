//! The real `countersign run` as a process of its own, between stand-ins that live in this one.

use crate::cluster::{Cluster, programs};
use crate::figures::Process;
use anyhow::{Context, Result, bail};
use countersign::cli::service;
use countersign::config::Config;
use countersign::domain::clock::Millis;
use countersign::identity::keys::{self, Keys};
use countersign::net;
use countersign::sandbox::a2a::{self, A2aWorld, AuthMode, Foreign, Jwks, Setup, Watch};
use countersign::sandbox::slack::{self, SlackWorld, acme};
use countersign::sandbox::time::Time;
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use std::collections::BTreeMap;
use std::fs::File;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};

const BINARY: &str = env!("CARGO_BIN_EXE_countersign");
pub(crate) const CHANNEL: &str = "C0RELEASES";
const WATCH_TOKEN: &str = "watch-everything";
/// How long anything is waited for before the run is void.
pub(crate) const PATIENCE: Duration = Duration::from_mins(2);

/// Which database a run is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum On {
    Sqlite,
    Postgres,
}

/// How presses reach the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Inbound {
    /// Signed HTTP requests.
    Http,
}

/// Makes databases: files, or databases of one durable throw-away cluster.
pub(crate) struct Databases {
    on: On,
    cluster: Option<Cluster>,
    made: u32,
}

impl Databases {
    pub(crate) fn new(on: On) -> Result<Self> {
        let cluster = match on {
            On::Sqlite => None,
            On::Postgres => Some(
                Cluster::start(&programs().map_err(anyhow::Error::msg)?, true).map_err(anyhow::Error::msg)?,
            ),
        };
        if let Some(cluster) = &cluster {
            eprintln!("a durable PostgreSQL in {}", cluster.folder.display());
        }
        Ok(Self { on, cluster, made: 0 })
    }

    /// The address of a new, empty database.
    pub(crate) async fn fresh(&mut self, folder: &TempDir) -> Result<String> {
        self.made += 1;
        let name = format!("load{}", self.made);
        let Some(cluster) = self.cluster.as_ref().filter(|_| self.on == On::Postgres) else {
            return Ok(format!("sqlite://{}", folder.path().join(name).with_extension("db").display()));
        };
        let mut connection = PgConnection::connect(cluster.admin.as_str()).await?;
        #[expect(clippy::disallowed_methods, reason = "a database's name cannot be a bound value")]
        let statement = AssertSqlSafe(format!("CREATE DATABASE {name}"));
        sqlx::query(statement).execute(&mut connection).await?;
        let mut url = cluster.admin.clone();
        url.set_path(&name);
        Ok(url.into())
    }
}

/// A folder for databases and keys; `COUNTERSIGN_BENCH_DIR` chooses the disk.
pub(crate) fn folder() -> Result<TempDir> {
    #[expect(clippy::disallowed_methods, reason = "whoever runs the benchmark chooses the disk")]
    let chosen = std::env::var("COUNTERSIGN_BENCH_DIR");
    Ok(match chosen {
        Ok(parent) => tempfile::tempdir_in(parent)?,
        Err(_) => tempfile::tempdir()?,
    })
}

/// An address nobody listens on just now.
pub(crate) fn free_address() -> Result<SocketAddr> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}

/// Waits until somebody listens there.
pub(crate) async fn listening(address: SocketAddr, mut ended: impl FnMut() -> bool) -> Result<()> {
    let end = Instant::now() + PATIENCE;
    while TcpStream::connect(address).await.is_err() {
        if ended() || Instant::now() > end {
            bail!("nobody listens on {address}");
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(())
}

/// A task of the benchmark's own.
#[expect(
    clippy::disallowed_methods,
    reason = "the benchmark's own servers and people, ended with its process"
)]
pub(crate) fn spawn<T: Send + 'static>(
    task: impl Future<Output = T> + Send + 'static,
) -> tokio::task::JoinHandle<T> {
    tokio::spawn(task)
}

/// The stand-ins and the service.
pub(crate) struct Rig {
    pub(crate) slack: Arc<SlackWorld>,
    pub(crate) a2a: Arc<A2aWorld>,
    pub(crate) address: SocketAddr,
    file: PathBuf,
    folder: TempDir,
    child: Option<Child>,
}

impl Rig {
    /// Everything but the service, which [`Rig::start`] starts.
    pub(crate) async fn new(databases: &mut Databases, poll: &str) -> Result<Self> {
        let slack = SlackWorld::acme(Time::System);
        // Slack's rate limits are off: what is measured is the service.
        slack.pace(0);
        let a2a = A2aWorld::new(Setup { keep_requests: 1000, ..Setup::default() });
        a2a.switch(|switches| switches.foreign = Foreign::Allowed);
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let sandbox = listener.local_addr()?;
        let router = slack::router(Arc::clone(&slack)).merge(a2a::router(Arc::clone(&a2a)));
        spawn(async move { axum::serve(listener, router).await });
        let address = free_address()?;
        slack.set_base_url(&format!("http://{sandbox}"));
        slack.set_app_url(&format!("http://{address}"));

        let folder = folder()?;
        let database = databases.fresh(&folder).await?;
        let key_path = folder.path().join("countersign.key");
        let text = config(sandbox, address, &database, &key_path.display().to_string(), poll);
        let parsed = Config::parse(&text, &secret).map_err(|findings| anyhow::anyhow!("{findings}"))?;
        let key_file = service::key_file(&parsed);
        keys::rotate(&key_file, Millis(0))?;
        let keys = Keys::open(key_file, false, Millis(0))?;
        a2a.set_auth(
            vec![AuthMode::Jwt {
                issuer: "https://countersign.test".into(),
                audience: "prod-agents".into(),
                jwks: Jwks::Given(keys.jwks(Millis(1))),
            }],
            BTreeMap::from([(WATCH_TOKEN.to_owned(), Watch::All)]),
        );
        let file = folder.path().join("countersign.toml");
        std::fs::write(&file, text)?;
        Ok(Self { slack, a2a, address, file, folder, child: None })
    }

    /// Starts the service without waiting for it.
    pub(crate) fn start(&mut self) -> Result<()> {
        let log = File::options().create(true).append(true).open(self.log_file())?;
        let mut command = Command::new(BINARY);
        command
            .args(["run", "--config"])
            .arg(&self.file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        for name in SECRETS {
            command.env(name, secret(name).unwrap_or_default());
        }
        self.child = Some(command.spawn().context("the service cannot be started")?);
        Ok(())
    }

    /// Waits until the service listens.
    pub(crate) async fn serving(&mut self) -> Result<()> {
        let address = self.address;
        let child = &mut self.child;
        let ended = || child.as_mut().is_none_or(|child| child.try_wait().is_ok_and(|end| end.is_some()));
        let listens = listening(address, ended).await;
        listens.with_context(|| format!("the service does not start:\n{}", self.log()))
    }

    /// SIGKILL.
    pub(crate) fn kill(&mut self) -> Result<()> {
        if let Some(mut child) = self.child.take() {
            child.kill()?;
            child.wait()?;
        }
        Ok(())
    }

    /// The measured process.
    pub(crate) fn process(&self) -> Result<Process> {
        Ok(Process(self.child.as_ref().context("the service does not run")?.id()))
    }

    fn log_file(&self) -> PathBuf {
        self.folder.path().join("countersign.log")
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.log_file()).unwrap_or_default()
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}

const SECRETS: [&str; 4] = ["OPERATOR", "WATCH", "BOT", "SIGNING"];

fn secret(name: &str) -> Option<String> {
    Some(
        match name {
            "OPERATOR" => "operator-token-of-the-benchmark-0123456789",
            "WATCH" => WATCH_TOKEN,
            "BOT" => acme::BOT_TOKEN,
            "SIGNING" => acme::SIGNING_SECRET,
            _ => return None,
        }
        .to_owned(),
    )
}

/// As a team would write it, with the limits raised that would otherwise be what is measured.
fn config(sandbox: SocketAddr, address: SocketAddr, database: &str, keys: &str, poll: &str) -> String {
    format!(
        r#"
[server]
listen = "{address}"
public_url = "http://{address}"
operator_token = {{ env = "OPERATOR" }}

[signing]
key_file = "{keys}"

[database]
url = "{database}"

[policy]
max_open_per_place = 1000000

[[runtime]]
name = "prod"
kind = "a2a"
endpoint = "http://{sandbox}/a2a/release"
token = {{ env = "WATCH" }}
agent = "release"
answer_with = "jwt"
issuer = "https://countersign.test"
audience = "prod-agents"
poll = "{poll}"

[[slack]]
name = "acme"
bot_token = {{ env = "BOT" }}
signing_secret = {{ env = "SIGNING" }}
api_url = "http://{sandbox}/slack/api"
pace = 1000000

[[group]]
name = "release"
subjects = ["dana@example.com", "kim@example.com"]

[[person]]
subject = "dana@example.com"
slack = ["acme:U0DANA"]

[[person]]
subject = "kim@example.com"
slack = ["acme:U0KIM"]

[[route]]
when = {{ runtime = "prod" }}
to = ["slack:acme:{CHANNEL}"]
approvers = ["release", "owner"]
"#
    )
}

/// Makes sure that requests can be made from here.
pub(crate) fn client() -> Result<reqwest::Client> {
    Ok(net::client(net::Limits { connect: Duration::from_secs(3), total: Duration::from_secs(30) })?)
}

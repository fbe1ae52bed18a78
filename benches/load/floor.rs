//! The floor: the least a server can do that keeps the promise. It verifies Slack's signature, makes the press
//! durable with one commit per press, and answers 200.
//!
//! It is this program once more, as a process of its own, so that both are measured alike.

use crate::figures::Process;
use anyhow::{Context, Result, bail};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use countersign::sandbox::slack::signature;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{Connection, PgPool, SqliteConnection};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use tokio::net::TcpListener;
use tokio::sync::Mutex;

const CREATE: &str = "CREATE TABLE presses (id BIGINT PRIMARY KEY, body TEXT NOT NULL)";
const INSERT: &str = "INSERT INTO presses (id, body) VALUES ($1, $2)";

enum Database {
    Sqlite(Mutex<SqliteConnection>),
    Postgres(PgPool),
}

struct Floor {
    secret: String,
    number: AtomicI64,
    database: Database,
}

/// Runs the server until it is killed.
pub(crate) async fn serve(listen: SocketAddr, url: &str, secret: String) -> Result<()> {
    let database = if url.starts_with("sqlite") {
        let options = SqliteConnectOptions::from_str(url)?
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full);
        let mut connection = SqliteConnection::connect_with(&options).await?;
        sqlx::query(CREATE).execute(&mut connection).await?;
        Database::Sqlite(Mutex::new(connection))
    } else {
        let pool = sqlx::postgres::PgPoolOptions::new().max_connections(8).connect(url).await?;
        sqlx::query(CREATE).execute(&pool).await?;
        Database::Postgres(pool)
    };
    let floor = Arc::new(Floor { secret, number: AtomicI64::new(0), database });
    let router = Router::new().route("/slack/interactivity", post(press)).with_state(floor);
    axum::serve(TcpListener::bind(listen).await?, router).await?;
    Ok(())
}

async fn press(State(floor): State<Arc<Floor>>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let header = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let expected = signature(&floor.secret, header("x-slack-request-timestamp"), &body);
    // A comparison in constant time would change nothing here: nobody attacks a benchmark.
    if expected != header("x-slack-signature") {
        return StatusCode::UNAUTHORIZED;
    }
    let Ok(text) = std::str::from_utf8(&body) else { return StatusCode::BAD_REQUEST };
    let number = floor.number.fetch_add(1, Ordering::Relaxed);
    let stored = match &floor.database {
        Database::Sqlite(connection) => {
            let mut connection = connection.lock().await;
            sqlx::query(INSERT).bind(number).bind(text).execute(&mut *connection).await.map(|_| ())
        }
        Database::Postgres(pool) => {
            sqlx::query(INSERT).bind(number).bind(text).execute(pool).await.map(|_| ())
        }
    };
    if stored.is_ok() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }
}

/// The floor as a process.
pub(crate) struct FloorProcess {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl FloorProcess {
    pub(crate) async fn start(url: &str, secret: &str) -> Result<Self> {
        let address = crate::rig::free_address()?;
        let child = Command::new(std::env::current_exe()?)
            .args(["--floor", &address.to_string(), "--floor-database", url])
            .env("FLOOR_SECRET", secret)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .context("the floor cannot be started")?;
        let mut floor = Self { child, address };
        crate::rig::listening(address, || floor.child.try_wait().is_ok_and(|end| end.is_some())).await?;
        Ok(floor)
    }

    pub(crate) fn process(&self) -> Process {
        Process(self.child.id())
    }

    /// Stops it and counts what it has stored.
    pub(crate) async fn stop(mut self, url: &str) -> Result<i64> {
        const COUNT: &str = "SELECT COUNT(*) FROM presses";
        self.child.kill()?;
        self.child.wait()?;
        let count = if url.starts_with("sqlite") {
            sqlx::query_scalar(COUNT).fetch_one(&mut SqliteConnection::connect(url).await?).await?
        } else {
            sqlx::query_scalar(COUNT).fetch_one(&mut sqlx::PgConnection::connect(url).await?).await?
        };
        Ok(count)
    }
}

impl Drop for FloorProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The floor's own part of the program.
pub(crate) fn main(listen: SocketAddr, url: Option<&str>) -> Result<()> {
    let Some(url) = url else { bail!("--floor needs --floor-database") };
    #[expect(clippy::disallowed_methods, reason = "the benchmark hands its own secret to its own child")]
    let secret = std::env::var("FLOOR_SECRET")?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(serve(listen, url, secret))
}

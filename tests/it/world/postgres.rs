//! A PostgreSQL for the tests: the server at `DATABASE_URL`, else a throw-away cluster, one per test process.
//!
//! Invariants: one database per test, made from a template that was migrated once; it is dropped when the test lets
//! go of it. On a server given by `DATABASE_URL` the template of each run stays behind.
//! Nothing is skipped: without a server every test that wants one fails with what to do.

use super::cluster::{Cluster, programs};
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use tokio::sync::OnceCell;
use url::Url;

static SERVER: OnceLock<Result<Server, String>> = OnceLock::new();
static TEMPLATE: OnceCell<String> = OnceCell::const_new();
static NUMBER: AtomicU32 = AtomicU32::new(0);

struct Server {
    /// Leads to a database that is always there.
    admin: Url,
    /// `None` on a given server.
    _cluster: Option<Cluster>,
}

/// One database of one test; dropped with this value.
#[derive(Debug)]
pub(crate) struct Database {
    name: String,
    url: String,
}

impl Database {
    /// `postgres://…`, host and port on loopback unless `DATABASE_URL` says otherwise.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // Its own thread and runtime: the test's runtime may be ending, and a drop cannot wait in it.
        let statement = format!(r#"DROP DATABASE IF EXISTS "{}" WITH (FORCE)"#, self.name);
        let dropped = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.map(|runtime| runtime.block_on(execute(&statement)))
        });
        let result = dropped.join();
        if !std::thread::panicking() {
            result.expect("no panic").expect("a runtime").expect("the test's database is dropped");
        }
    }
}

/// A database with every migration applied: a copy of the template that `migrate` fills, once per process.
/// `migrate` closes its connections before it returns, or the template cannot be copied.
pub(crate) async fn fresh_database(migrate: impl AsyncFnOnce(&str)) -> Database {
    from_template(&TEMPLATE, "template", migrate).await
}

async fn from_template(
    template: &OnceCell<String>,
    suffix: &str,
    migrate: impl AsyncFnOnce(&str),
) -> Database {
    let template = template
        .get_or_init(async || {
            let name = format!("countersign_test_{}_{suffix}", std::process::id());
            execute(&format!(r#"DROP DATABASE IF EXISTS "{name}" WITH (FORCE)"#)).await.unwrap();
            execute(&format!(r#"CREATE DATABASE "{name}""#)).await.unwrap();
            migrate(&url_of(&name)).await;
            name
        })
        .await;
    create(&format!(r#"TEMPLATE "{template}""#)).await
}

/// A database without any table, for tests of the migrations themselves.
pub(crate) async fn empty_database() -> Database {
    create("").await
}

async fn create(from: &str) -> Database {
    let name = format!("countersign_test_{}_{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
    execute(&format!(r#"CREATE DATABASE "{name}" {from}"#)).await.unwrap();
    Database { url: url_of(&name), name }
}

fn url_of(database: &str) -> String {
    let mut url = server().admin.clone();
    url.set_path(database);
    url.into()
}

/// A statement outside any transaction, on a connection of its own: the pools of tests belong to their runtimes.
async fn execute(statement: &str) -> Result<(), sqlx::Error> {
    let mut connection = PgConnection::connect(server().admin.as_str()).await?;
    #[expect(clippy::disallowed_methods, reason = "a database's name cannot be a bound value")]
    let statement = AssertSqlSafe(statement);
    sqlx::query(statement).execute(&mut connection).await?;
    connection.close().await
}

fn server() -> &'static Server {
    match SERVER.get_or_init(start) {
        Ok(server) => server,
        Err(why) => panic!("no PostgreSQL for this test: {why}"),
    }
}

fn start() -> Result<Server, String> {
    #[expect(clippy::disallowed_methods, reason = "the person who runs the tests names the server here")]
    if let Ok(given) = std::env::var("DATABASE_URL") {
        let admin = Url::parse(&given).map_err(|error| format!("DATABASE_URL is no address: {error}"))?;
        return Ok(Server { admin, _cluster: None });
    }
    let cluster = Cluster::start(&programs()?, false)?;
    Ok(Server { admin: cluster.admin.clone(), _cluster: Some(cluster) })
}

#[cfg(test)]
mod tests {
    //! The tools themselves, tried once.

    use super::*;
    use sqlx::error::DatabaseError;
    use std::time::{Duration, Instant};

    async fn count(url: &str, sql: &'static str) -> Result<i64, sqlx::Error> {
        let mut connection = PgConnection::connect(url).await?;
        let counted = sqlx::query_scalar(sql).fetch_one(&mut connection).await?;
        connection.close().await?;
        Ok(counted)
    }

    #[tokio::test]
    async fn each_test_has_a_database_of_its_own_that_ends_with_it() {
        let (one, two) = (empty_database().await, empty_database().await);
        let mut connection = PgConnection::connect(one.url()).await.unwrap();
        sqlx::query("CREATE TABLE mine (id BIGINT)").execute(&mut connection).await.unwrap();
        let tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'";
        assert_eq!(count(one.url(), tables).await.unwrap(), 1);
        assert_eq!(count(two.url(), tables).await.unwrap(), 0);
        // `connection` is still open: the drop does not wait for a forgetful test.
        let gone = one.url().to_owned();
        drop(one);
        let error = count(&gone, tables).await.unwrap_err();
        assert_eq!(
            error.as_database_error().and_then(DatabaseError::code).as_deref(),
            Some("3D000"),
            "{error}"
        );
    }

    #[tokio::test]
    async fn a_template_is_filled_once_and_copied_for_every_test() {
        let filled = AtomicU32::new(0);
        let fill = async |url: &str| {
            filled.fetch_add(1, Ordering::Relaxed);
            let mut connection = PgConnection::connect(url).await.unwrap();
            sqlx::query("CREATE TABLE copied (id BIGINT)").execute(&mut connection).await.unwrap();
            connection.close().await.unwrap();
        };
        let cell = OnceCell::const_new();
        let one = from_template(&cell, "tools", fill).await;
        let two = from_template(&cell, "tools", fill).await;
        let copied = "SELECT count(*) FROM pg_tables WHERE tablename = 'copied'";
        assert_eq!(count(one.url(), copied).await.unwrap(), 1);
        assert_eq!(count(two.url(), copied).await.unwrap(), 1);
        assert_ne!(one.url(), two.url());
        assert_eq!(filled.into_inner(), 1);
    }

    #[tokio::test]
    async fn the_throw_away_server_sorts_like_people_and_ends_with_its_process() {
        let cluster = Cluster::start(&programs().unwrap(), false).unwrap();
        let admin = cluster.admin.clone();
        let sorted = "SELECT count(*) WHERE 'b' < 'C' AND 'b' > 'C' COLLATE \"C\"";
        assert_eq!(count(admin.as_str(), sorted).await.unwrap(), 1);

        let folder = cluster.folder.clone();
        assert!(folder.exists());
        drop(cluster); // closes the pipe, as the end of a process does
        let deadline = Instant::now() + Duration::from_secs(30);
        while folder.exists() {
            assert!(Instant::now() < deadline, "{} is still there", folder.display());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert!(PgConnection::connect(admin.as_str()).await.is_err());
    }
}

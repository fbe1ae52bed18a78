//! Both databases for one test text: `#[values(Backend::Sqlite, Backend::Postgres)] on: Backend`.
//!
//! Each test has a database of its own with every migration applied: a copied file on SQLite, a copy of the template
//! on PostgreSQL. It goes when the value is dropped; close the stores before.

use super::postgres;
use countersign::domain::clock::{Clock, Millis};
use countersign::store::{Store, StoreOptions};
use sqlx::{Connection, SqliteConnection};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;
use tokio::sync::OnceCell;

/// The prefix of idempotency keys in every test database.
pub(crate) const PREFIX: &str = "cs-test";

static SQLITE_TEMPLATE: OnceCell<Vec<u8>> = OnceCell::const_new();

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Backend {
    Sqlite,
    Postgres,
}

/// One database of one test.
#[derive(Debug)]
pub(crate) enum Database {
    Sqlite { url: String, _folder: TempDir },
    Postgres(postgres::Database),
}

impl Database {
    pub(crate) fn url(&self) -> &str {
        match self {
            Self::Sqlite { url, .. } => url,
            Self::Postgres(database) => database.url(),
        }
    }
}

impl Database {
    /// Runs one statement over a connection of its own.
    pub(crate) async fn run(&self, statement: &'static str) {
        match self {
            Self::Sqlite { url, .. } => {
                let mut connection = SqliteConnection::connect(url).await.unwrap();
                sqlx::query(statement).execute(&mut connection).await.unwrap();
                connection.close().await.unwrap();
            }
            Self::Postgres(database) => {
                let mut connection = sqlx::PgConnection::connect(database.url()).await.unwrap();
                sqlx::query(statement).execute(&mut connection).await.unwrap();
                connection.close().await.unwrap();
            }
        }
    }
}

impl Backend {
    /// A database with every migration applied.
    pub(crate) async fn fresh(self) -> Database {
        match self {
            Self::Sqlite => {
                let template = SQLITE_TEMPLATE.get_or_init(migrated_file).await;
                let (database, file) = sqlite();
                std::fs::write(file, template).unwrap();
                database
            }
            Self::Postgres => Database::Postgres(postgres::fresh_database(migrate).await),
        }
    }

    /// A database without any table.
    pub(crate) async fn empty(self) -> Database {
        match self {
            Self::Sqlite => sqlite().0,
            Self::Postgres => Database::Postgres(postgres::empty_database().await),
        }
    }
}

fn sqlite() -> (Database, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("countersign.db");
    (Database::Sqlite { url: url(&file), _folder: folder }, file)
}

fn url(file: &Path) -> String {
    format!("sqlite://{}", file.display())
}

async fn migrated_file() -> Vec<u8> {
    let (database, file) = sqlite();
    migrate(database.url()).await;
    // A plain copy would miss what is still in the write-ahead log.
    let whole = file.with_extension("whole");
    let mut connection = SqliteConnection::connect(database.url()).await.unwrap();
    sqlx::query("VACUUM INTO $1").bind(whole.to_str()).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    std::fs::read(whole).unwrap()
}

/// A store over `url` whose clock stands still: for looking into a database, not for stories.
async fn store(url: &str) -> Store {
    #[derive(Debug)]
    struct Still;
    impl Clock for Still {
        fn now(&self) -> Millis {
            Millis(1_800_000_000_000)
        }
    }
    let options = StoreOptions { url: url.to_owned(), readers: 1, clock: Arc::new(Still), bind_clock: true };
    Store::connect(options).await.unwrap()
}

async fn migrate(url: &str) {
    let store = store(url).await;
    store.migrate(PREFIX).await.unwrap();
    store.close().await;
}

#[cfg(test)]
mod tests {
    //! A copied template is a whole database.

    use super::*;
    use rstest::rstest;

    #[rstest]
    #[tokio::test]
    async fn fresh_is_migrated_and_empty_is_not(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
        for _ in 0..2 {
            let database = on.fresh().await;
            let store = store(database.url()).await;
            assert_eq!(store.message_prefix().await.unwrap(), PREFIX);
            store.close().await;
        }
        let database = on.empty().await;
        let store = store(database.url()).await;
        assert!(store.message_prefix().await.is_err());
        store.close().await;
    }
}

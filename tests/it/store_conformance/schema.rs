//! One schema in two spellings.

use crate::world::database::{Backend, Database};
use countersign::domain::clock::{Clock, Millis};
use countersign::store::{Store, StoreOptions};
use rstest::rstest;
use sqlx::{Connection, PgConnection, SqliteConnection};
use std::collections::BTreeSet;
use std::sync::Arc;

fn files(folder: &str) -> BTreeSet<String> {
    let folder = format!("{}/migrations/{folder}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn both_folders_have_the_same_migrations() {
    let sqlite = files("sqlite");
    assert!(sqlite.contains("0001_init.sql"));
    assert_eq!(sqlite, files("postgres"));
}

async fn strings(database: &Database, sqlite: &'static str, postgres: &'static str) -> BTreeSet<String> {
    let rows: Vec<String> = match database {
        Database::Sqlite { url, .. } => {
            let mut connection = SqliteConnection::connect(url).await.unwrap();
            sqlx::query_scalar(sqlite).fetch_all(&mut connection).await.unwrap()
        }
        Database::Postgres(database) => {
            let mut connection = PgConnection::connect(database.url()).await.unwrap();
            sqlx::query_scalar(postgres).fetch_all(&mut connection).await.unwrap()
        }
    };
    rows.into_iter().collect()
}

#[tokio::test]
async fn both_databases_end_up_with_the_same_columns_and_indexes() {
    let (one, other) = (Backend::Sqlite.fresh().await, Backend::Postgres.fresh().await);
    let columns = async |database| {
        strings(
            database,
            "SELECT t.name || '.' || c.name || CASE WHEN c.\"notnull\" = 1 OR c.pk > 0 THEN ' NOT NULL' ELSE '' END \
             FROM sqlite_master t JOIN pragma_table_info(t.name) c \
             WHERE t.type = 'table' AND t.name NOT LIKE '\\_sqlx%' ESCAPE '\\' AND t.name NOT LIKE 'sqlite%'",
            "SELECT table_name || '.' || column_name || CASE is_nullable WHEN 'NO' THEN ' NOT NULL' ELSE '' END \
             FROM information_schema.columns WHERE table_schema = 'public' AND table_name NOT LIKE '\\_sqlx%'",
        )
        .await
    };
    let (sqlite, postgres) = (columns(&one).await, columns(&other).await);
    assert!(sqlite.contains("jobs.lease_epoch NOT NULL") && sqlite.contains("jobs.last_error"), "{sqlite:?}");
    assert_eq!(sqlite, postgres);

    let indexes = async |database| {
        strings(
            database,
            "SELECT name || CASE WHEN sql LIKE 'CREATE UNIQUE%' THEN ' UNIQUE' ELSE '' END \
             || CASE WHEN sql LIKE '% WHERE %' THEN ' PARTIAL' ELSE '' END FROM sqlite_master \
             WHERE type = 'index' AND sql IS NOT NULL",
            "SELECT c.relname || CASE WHEN i.indisunique THEN ' UNIQUE' ELSE '' END \
             || CASE WHEN i.indpred IS NOT NULL THEN ' PARTIAL' ELSE '' END \
             FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_namespace n ON n.oid = c.relnamespace \
             WHERE n.nspname = 'public' AND NOT EXISTS (SELECT 1 FROM pg_constraint x WHERE x.conindid = c.oid)",
        )
        .await
    };
    let (sqlite, postgres) = (indexes(&one).await, indexes(&other).await);
    assert!(sqlite.contains("jobs_one_edit UNIQUE PARTIAL"), "{sqlite:?}");
    assert_eq!(sqlite, postgres);
}

#[derive(Debug)]
struct Still;
impl Clock for Still {
    fn now(&self) -> Millis {
        Millis(0)
    }
}

async fn store(database: &Database) -> Store {
    let url = database.url().to_owned();
    Store::connect(StoreOptions { url, readers: 2, clock: Arc::new(Still), bind_clock: true }).await.unwrap()
}

#[rstest]
#[tokio::test]
async fn migrating_is_done_once_also_by_replicas_that_start_together(
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
) {
    let database = on.empty().await;
    let (one, other) = (store(&database).await, store(&database).await);
    if on == Backend::Postgres {
        let (a, b) = tokio::join!(one.migrate("first"), other.migrate("second"));
        a.unwrap();
        b.unwrap();
        let prefix = one.message_prefix().await.unwrap();
        assert!(prefix == "first" || prefix == "second");
    } else {
        // One node only: a second process is kept out by the lock file.
        one.migrate("first").await.unwrap();
        other.migrate("second").await.unwrap();
        assert_eq!(other.message_prefix().await.unwrap(), "first");
    }
}

#[rstest]
#[tokio::test]
async fn a_schema_of_a_newer_version_is_refused(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let database = on.fresh().await;
    let sql = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) \
        SELECT 9999, 'later', success, checksum, 0 FROM _sqlx_migrations WHERE version = 1";
    let added = match &database {
        Database::Sqlite { url, .. } => {
            let mut connection = SqliteConnection::connect(url).await.unwrap();
            sqlx::query(sql).execute(&mut connection).await.unwrap().rows_affected()
        }
        Database::Postgres(database) => {
            let mut connection = PgConnection::connect(database.url()).await.unwrap();
            sqlx::query(sql).execute(&mut connection).await.unwrap().rows_affected()
        }
    };
    assert_eq!(added, 1);
    let error = store(&database).await.migrate("x").await.unwrap_err();
    assert!(error.to_string().contains("9999"), "{error}");
}

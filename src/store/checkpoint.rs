//! Moving what was committed from SQLite's write-ahead log into its file, beside the writer.
//!
//! Invariant: durability is the log's, which is synced at every commit; a checkpoint only moves what is safe already.
//! Left to SQLite, the commit that fills the log does it, and whoever waits for that commit waits for two more syncs
//! and hundreds of pages.
//!
//! Known race: under a writer that never pauses a passive checkpoint never reaches the log's end, and the log grows.
//! Past a size the writer itself is asked to stop for one that starts the log anew.

use sqlx::SqliteConnection;
use sqlx::sqlite::SqlitePool;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::mpsc;

/// How often at most.
const EVERY: Duration = Duration::from_millis(500);
/// Frames (pages of 4 KiB) in the log past which the writer stops for it: 128 MB.
const LONGEST: i64 = 32_768;
const PASSIVE: &str = "PRAGMA wal_checkpoint(PASSIVE)";
const RESTART: &str = "PRAGMA wal_checkpoint(RESTART)";

/// The writer's side.
pub(super) struct Checkpoints {
    committed: mpsc::Sender<()>,
    /// The log is too long.
    stop: Arc<AtomicBool>,
}

impl Checkpoints {
    /// The writer's side, and the work to be run beside it until the writer is gone.
    pub(super) fn new(pool: SqlitePool) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let (committed, told) = mpsc::channel(1);
        let stop = Arc::new(AtomicBool::new(false));
        (Self { committed, stop: Arc::clone(&stop) }, run(pool, told, stop))
    }

    /// Something was committed. Rarely, the writer's own connection is needed.
    pub(super) async fn committed(&self, writer: &mut SqliteConnection) {
        if self.stop.swap(false, Ordering::AcqRel)
            && let Err(error) = sqlx::query(RESTART).execute(writer).await
        {
            tracing::debug!(%error, "the write-ahead log goes on growing");
        }
        // Full: it is told already.
        let _ = self.committed.try_send(());
    }
}

async fn run(pool: SqlitePool, mut told: mpsc::Receiver<()>, stop: Arc<AtomicBool>) {
    while told.recv().await.is_some() {
        tokio::time::sleep(EVERY).await;
        let moved = async {
            let mut connection = pool.acquire().await?;
            sqlx::query_as::<_, (i64, i64, i64)>(PASSIVE).fetch_one(&mut *connection).await
        };
        match moved.await {
            Ok((_, length, _)) if length > LONGEST => stop.store(true, Ordering::Release),
            Ok(_) => {}
            Err(error) => tracing::debug!(%error, "a checkpoint was not made"),
        }
    }
    pool.close().await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use sqlx::Connection;
    use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions};

    #[tokio::test]
    async fn what_was_committed_moves_into_the_file_and_the_log_begins_anew_when_asked() {
        let folder = tempfile::tempdir().unwrap();
        let options = SqliteConnectOptions::new()
            .filename(folder.path().join("a.db"))
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .pragma("wal_autocheckpoint", "0");
        let mut writer = SqliteConnection::connect_with(&options).await.unwrap();
        let pool = SqlitePoolOptions::new().max_connections(1).connect_lazy_with(options);
        let (checkpoints, work) = Checkpoints::new(pool);
        sqlx::query("CREATE TABLE t (x)").execute(&mut writer).await.unwrap();
        sqlx::query("INSERT INTO t VALUES (1)").execute(&mut writer).await.unwrap();
        checkpoints.committed(&mut writer).await;
        let stop = Arc::clone(&checkpoints.stop);
        drop(checkpoints);
        work.await;
        // All frames had been moved: a passive one finds as many in the log as are in the file.
        let (_, length, moved): (i64, i64, i64) =
            sqlx::query_as(PASSIVE).fetch_one(&mut writer).await.unwrap();
        assert!(length > 0 && length == moved, "{length} {moved}");

        stop.store(true, Ordering::Release);
        let (committed, _told) = mpsc::channel(1);
        Checkpoints { committed, stop }.committed(&mut writer).await;
        sqlx::query("INSERT INTO t VALUES (2)").execute(&mut writer).await.unwrap();
        let (_, shorter, _): (i64, i64, i64) = sqlx::query_as(PASSIVE).fetch_one(&mut writer).await.unwrap();
        assert!(shorter < length, "{shorter} of {length}");
    }
}

//! Waking workers, in this process and in others.

use super::bench::{Bench, START, job, write};
use crate::world::database::Backend;
use countersign::store::StoreError;
use countersign::store::jobs::JobKind;
use futures_util::FutureExt;
use rstest::rstest;
use std::time::Duration;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

const SOON: Duration = Duration::from_secs(20);
const LISTENERS: &str =
    "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'";

#[rstest]
#[tokio::test]
async fn a_bell_taken_before_the_commit_is_heard_after_it(
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
) {
    let bench = Bench::new(on).await;
    let bell = bench.store.wake.next();
    bench.queue(job(JobKind::Post, "g", 1, 1)).await;
    timeout(SOON, bell).await.unwrap();
}

/// A worker looks for work in a write of its own: if that rang the bell it would never sleep.
#[rstest]
#[tokio::test]
async fn a_write_that_queued_nothing_wakes_nobody(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let bench = Bench::new(on).await;
    let bell = bench.store.wake.next();
    write!(bench.store, |tx| tx.raise("a", "x", START));
    bench.claim("me", 1).await;
    // Nor does one that has looked itself, or that failed.
    write!(bench.store, |tx| async move {
        tx.queue(job(JobKind::Post, "g", 1, 1)).await?;
        tx.quiet();
        Ok(())
    });
    let failed = bench.store.write(|tx| {
        async move {
            tx.queue(job(JobKind::Post, "g", 2, 2)).await?;
            Err::<(), _>(StoreError::Conflict("no".into()))
        }
        .boxed()
    });
    failed.await.unwrap_err();
    assert_eq!(bell.now_or_never(), None);
}

#[tokio::test]
async fn replicas_wake_each_other_and_again_after_a_lost_connection() {
    let bench = Bench::new(Backend::Postgres).await;
    let other = bench.another().await;
    let stop = CancellationToken::new();
    let listening = other.wake.next();
    let story = async {
        timeout(SOON, listening).await.unwrap();
        assert_eq!(bench.number(LISTENERS).await, 1);

        let bell = other.wake.next();
        bench.queue(job(JobKind::Post, "g", 1, 1)).await;
        timeout(SOON, bell).await.unwrap();

        // What was notified meanwhile is lost, so coming back is a wake-up of its own.
        let back = other.wake.next();
        let killed = bench
            .number(
                "SELECT COUNT(*) FROM (SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                 WHERE datname = current_database() AND query LIKE 'LISTEN%') killed",
            )
            .await;
        assert_eq!(killed, 1);
        timeout(SOON, back).await.unwrap();
        let bell = other.wake.next();
        bench.queue(job(JobKind::Post, "g", 2, 2)).await;
        timeout(SOON, bell).await.unwrap();

        // One that listens too tells the others a moment later.
        let stop_bench = CancellationToken::new();
        let tells = async {
            while bench.number(LISTENERS).await < 2 {
                tokio::task::yield_now().await;
            }
            let bell = other.wake.next();
            bench.queue(job(JobKind::Post, "g", 3, 3)).await;
            timeout(SOON, bell).await.unwrap();
            stop_bench.cancel();
        };
        tokio::join!(bench.store.listen(&stop_bench), tells);
        stop.cancel();
    };
    tokio::join!(other.listen(&stop), story);
    other.close().await;
}

#[tokio::test]
async fn on_sqlite_listening_only_waits_for_the_end() {
    let bench = Bench::new(Backend::Sqlite).await;
    let stop = CancellationToken::new();
    assert_eq!(bench.store.listen(&stop).now_or_never(), None);
    stop.cancel();
    timeout(SOON, bench.store.listen(&stop)).await.unwrap();
}

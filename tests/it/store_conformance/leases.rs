//! Named leases.

use super::bench::{Bench, job, write};
use crate::world::database::Backend;
use countersign::store::jobs::JobKind;
use countersign::store::leases::{LIFE, RENEW};
use futures_util::FutureExt;
use futures_util::future::join_all;
use rstest::rstest;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

#[rstest]
#[tokio::test]
async fn a_lease_moves_when_its_holder_is_silent_and_never_comes_back(
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
) {
    let bench = Bench::new(on).await;
    let first = write!(bench.store, |tx| tx.acquire_lease("watch:prod", "a", LIFE)).unwrap();
    assert_eq!(first.epoch, 1);
    assert_eq!(write!(bench.store, |tx| tx.acquire_lease("watch:prod", "b", LIFE)), None);
    assert_eq!(write!(bench.store, |tx| tx.acquire_lease("watch:prod", "a", LIFE)), None, "no second holder");
    assert!(write!(bench.store, |tx| tx.acquire_lease("watch:other", "b", LIFE)).is_some());

    bench.clock.pass(RENEW * 2);
    let held = first.clone();
    assert!(write!(bench.store, |tx| tx.renew_lease(&held, LIFE)));
    bench.clock.pass(LIFE.checked_sub(Duration::from_millis(1)).unwrap());
    assert_eq!(write!(bench.store, |tx| tx.acquire_lease("watch:prod", "b", LIFE)), None);
    bench.clock.jump(1);
    let second = write!(bench.store, |tx| tx.acquire_lease("watch:prod", "b", LIFE)).unwrap();
    assert_eq!(second.epoch, 2);

    let lost = first.clone();
    assert!(!write!(bench.store, |tx| tx.renew_lease(&lost, LIFE)));
    assert!(!write!(bench.store, |tx| tx.release_lease(&first)));
    let (gone, late) = (second.clone(), second);
    assert!(write!(bench.store, |tx| tx.release_lease(&gone)));
    assert!(!write!(bench.store, |tx| tx.renew_lease(&late, LIFE)), "given back is given back");
    let third = write!(bench.store, |tx| tx.acquire_lease("watch:prod", "a", LIFE)).unwrap();
    assert_eq!(third.epoch, 3, "an epoch is given once");
    assert_eq!(write!(bench.store, |tx| tx.release_leases()), 2);
    assert!(!write!(bench.store, |tx| tx.renew_lease(&third, LIFE)));
    assert!(write!(bench.store, |tx| tx.acquire_lease("watch:prod", "c", LIFE)).is_some());
}

#[rstest]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_who_ask_at_once_one_holds(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let bench = Bench::new(on).await;
    for round in 1..=5 {
        let ask = |n: usize| {
            bench
                .store
                .write(move |tx| async move { tx.acquire_lease("one", &format!("r{n}"), LIFE).await }.boxed())
        };
        let all = join_all((0..10).map(ask)).await;
        let held: Vec<_> = all.into_iter().filter_map(Result::unwrap).collect();
        assert_eq!(held.iter().map(|lease| lease.epoch).collect::<Vec<_>>(), [round]);
        bench.clock.pass(LIFE);
    }
}

/// A process that starts does not wait for the leases of one that was killed, and leaves those of a living one.
#[tokio::test]
async fn on_postgres_the_leases_of_who_is_gone_end_at_once() {
    let bench = Bench::new(Backend::Postgres).await;
    let other = bench.another().await;
    let killed = bench.store.present("killed").await.unwrap().unwrap();
    let alive = bench.store.present("alive").await.unwrap().unwrap();
    for owner in ["killed", "alive"] {
        let lease = write!(bench.store, |tx| async move { tx.acquire_lease(owner, owner, LIFE).await });
        assert!(lease.is_some());
        bench.queue(job(JobKind::Post, owner, 1, 1)).await;
        assert_eq!(bench.claim(owner, 1).await.len(), 1);
    }
    assert_eq!(other.release_dead().await.unwrap(), 0);

    drop(killed);
    let mut gone = 0;
    while gone == 0 {
        // The server needs a moment to see the end of the connection.
        gone = other.release_dead().await.unwrap();
    }
    assert_eq!(gone, 1);
    let again = bench.claim("new", 5).await;
    assert_eq!(again.iter().map(|job| job.group.as_str()).collect::<Vec<_>>(), ["killed"]);
    let lease = write!(bench.store, |tx| async move { tx.acquire_lease("killed", "new", LIFE).await });
    assert!(lease.is_some());
    let lease = write!(bench.store, |tx| async move { tx.acquire_lease("alive", "new", LIFE).await });
    assert!(lease.is_none());
    // It keeps it until it is told to stop.
    let stop = CancellationToken::new();
    stop.cancel();
    alive.keep(&stop).await;
    while other.release_dead().await.unwrap() == 0 {}
    other.close().await;

    let sqlite = Bench::new(Backend::Sqlite).await;
    assert!(sqlite.store.present("me").await.unwrap().is_none());
    sqlite.queue(job(JobKind::Post, "g", 1, 1)).await;
    sqlite.claim("before", 1).await;
    sqlite.store.release_dead().await.unwrap();
    assert_eq!(sqlite.claim("after", 1).await.len(), 1);
}

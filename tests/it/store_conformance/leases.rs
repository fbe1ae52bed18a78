//! Named leases.

use super::bench::{Bench, write};
use crate::world::database::Backend;
use countersign::store::leases::{LIFE, RENEW};
use futures_util::FutureExt;
use futures_util::future::join_all;
use rstest::rstest;
use std::time::Duration;

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

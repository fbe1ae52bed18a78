//! Many workers at one outbox.

use super::bench::{Bench, job};
use crate::world::database::Backend;
use countersign::store::jobs::{JobKind, LEASE};
use futures_util::FutureExt;
use futures_util::future::join_all;
use rstest::rstest;
use std::collections::{HashMap, HashSet};
use std::sync::Mutex;

const JOBS: usize = 1500;
const GROUPS: usize = 150;
const WORKERS: usize = 8;

#[derive(Debug, Default)]
struct Seen {
    ids: HashSet<i64>,
    in_flight: HashSet<String>,
    last: HashMap<String, i64>,
}

#[rstest]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eight_workers_take_each_job_once_and_each_group_in_order(
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
    #[values(1, 10)] batch: usize,
) {
    let bench = Bench::new(on).await;
    let written = bench
        .store
        .write(|tx| {
            async move {
                for n in 0..JOBS {
                    let group = format!("g{}", n % GROUPS);
                    let seq = i64::try_from(n / GROUPS).unwrap();
                    tx.queue(job(JobKind::Post, &group, seq, n as u128)).await?;
                }
                Ok(())
            }
            .boxed()
        })
        .await;
    written.unwrap();

    let seen = Mutex::new(Seen::default());
    let worker = async |owner: String| {
        loop {
            let owner = owner.clone();
            let claim = bench
                .store
                .write(move |tx| async move { tx.claim(&owner, &JobKind::ALL, batch, LEASE).await }.boxed());
            let jobs = claim.await.unwrap();
            assert!(jobs.len() <= batch);
            {
                let mut seen = seen.lock().unwrap();
                for job in &jobs {
                    assert!(seen.ids.insert(job.id), "{job:?} was claimed twice");
                    assert!(seen.in_flight.insert(job.group.clone()), "two of {} in flight", job.group);
                    let before = seen.last.insert(job.group.clone(), job.seq);
                    assert_eq!(before.map_or(0, |seq| seq + 1), job.seq, "order inside {}", job.group);
                }
                if jobs.is_empty() && seen.ids.len() == JOBS {
                    return;
                }
            }
            for job in jobs {
                seen.lock().unwrap().in_flight.remove(&job.group);
                let done = bench.store.write(move |tx| async move { tx.done(&job).await }.boxed());
                assert!(done.await.unwrap());
            }
        }
    };
    join_all((0..WORKERS).map(|n| worker(format!("w{n}")))).await;
    assert_eq!(bench.number("SELECT COUNT(*) FROM jobs").await, 0);
}

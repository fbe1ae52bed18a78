//! The outbox against a model of it in memory: whatever happens in whatever order, both give out the
//! same jobs and accept the same results.

use super::bench::{Bench, START, write};
use crate::world::database::Backend;
use countersign::domain::clock::Millis;
use countersign::store::jobs::{Job, JobKind, NewJob};
use futures_util::FutureExt;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use rstest::rstest;
use std::time::Duration;
use uuid::Uuid;

#[derive(Debug, Clone)]
enum Step {
    Queue {
        group: u8,
        seq: i64,
        priority: i64,
        delay: i64,
    },
    /// The card of the group.
    Edit {
        group: u8,
        priority: i64,
        delay: i64,
    },
    Claim {
        limit: usize,
        lease: u64,
    },
    Done(usize),
    Retry {
        which: usize,
        delay: i64,
        counted: bool,
    },
    Dead(usize),
    Extend {
        which: usize,
        lease: u64,
    },
    /// A worker forgets what it holds; the lease runs out by itself.
    Crash(usize),
    /// Forwards or backwards.
    Clock(i64),
    /// A start on one node.
    Release,
    RetryNow(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let which = 0..8_usize;
    prop_oneof![
        4 => (0..4_u8, 0..3_i64, 0..3_i64, -5..30_i64)
            .prop_map(|(group, seq, priority, delay)| Step::Queue { group, seq, priority, delay }),
        4 => (0..4_u8, 0..3_i64, -5..30_i64)
            .prop_map(|(group, priority, delay)| Step::Edit { group, priority, delay }),
        6 => (1..4_usize, 1..40_u64).prop_map(|(limit, lease)| Step::Claim { limit, lease }),
        4 => which.clone().prop_map(Step::Done),
        2 => (which.clone(), 0..30_i64, any::<bool>())
            .prop_map(|(which, delay, counted)| Step::Retry { which, delay, counted }),
        1 => which.clone().prop_map(Step::Dead),
        1 => (which.clone(), 1..40_u64).prop_map(|(which, lease)| Step::Extend { which, lease }),
        1 => which.clone().prop_map(Step::Crash),
        4 => prop_oneof![3 => 0..40_i64, 1 => -20..0_i64].prop_map(Step::Clock),
        1 => Just(Step::Release),
        1 => which.prop_map(Step::RetryNow),
    ]
}

#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "a row as the table has it")]
struct Row {
    id: i64,
    edit: bool,
    group: String,
    seq: i64,
    priority: i64,
    reference: Uuid,
    available: i64,
    attempts: i64,
    epoch: i64,
    held: bool,
    until: i64,
    again: bool,
    dead: bool,
}

/// The outbox, as one would write it if nothing could fail.
#[derive(Debug, Default)]
struct Model {
    rows: Vec<Row>,
    queued: u128,
}

impl Model {
    fn queue(&mut self, new: &NewJob) {
        let edit = new.kind == JobKind::Edit;
        let same = self.rows.iter_mut().find(|r| edit && r.edit && !r.dead && r.reference == new.reference);
        if let Some(row) = same {
            row.again = true;
            row.attempts = 0;
            row.priority = row.priority.min(new.priority);
            row.available = row.available.min(new.available.0);
            return;
        }
        self.rows.push(Row {
            id: 0,
            edit,
            group: new.group.clone(),
            seq: new.seq,
            priority: new.priority,
            reference: new.reference,
            available: new.available.0,
            attempts: 0,
            epoch: 0,
            held: false,
            until: 0,
            again: false,
            dead: false,
        });
    }

    fn claimable(&self, row: &Row, now: i64) -> bool {
        let place = |r: &Row| (r.seq, r.id);
        let blocked = self.rows.iter().any(|other| {
            other.group == row.group
                && !other.dead
                && other.id != row.id
                && (place(other) < place(row) || other.until > now)
        });
        !row.dead && row.available <= now && row.until <= now && !blocked
    }

    /// The ids of what is given out, in order.
    fn claim(&mut self, now: i64, limit: usize, until: i64) -> Vec<i64> {
        let mut due: Vec<Row> = self.rows.iter().filter(|row| self.claimable(row, now)).cloned().collect();
        due.sort_by_key(|row| (row.priority, row.available, row.id));
        due.truncate(limit);
        let ids: Vec<i64> = due.iter().map(|row| row.id).collect();
        for row in self.rows.iter_mut().filter(|row| ids.contains(&row.id)) {
            (row.held, row.until, row.again) = (true, until, false);
            row.epoch += 1;
            row.attempts += 1;
        }
        ids
    }

    /// The row, if this claim of it still counts.
    fn owned(&mut self, job: &Job) -> Option<&mut Row> {
        self.rows.iter_mut().find(|row| row.id == job.id && row.epoch == job.epoch && row.held && !row.dead)
    }

    fn finish(&mut self, job: &Job, dead: bool) -> bool {
        let Some(row) = self.owned(job) else { return false };
        (row.held, row.until) = (false, 0);
        if row.again {
            (row.again, row.attempts) = (false, 0);
        } else if dead {
            row.dead = true;
        } else {
            self.rows.retain(|row| row.id != job.id);
        }
        true
    }
}

async fn play(bench: &Bench, steps: &[Step]) -> Result<(), TestCaseError> {
    bench.behind_our_back("DELETE FROM jobs", &[]).await;
    let mut model = Model::default();
    let mut held: Vec<Job> = vec![];
    for step in steps {
        let now = bench.now();
        let at = |delay: i64| Millis(now.0 + delay);
        match step.clone() {
            Step::Queue { group, seq, priority, delay } => {
                model.queued += 1;
                let new = NewJob {
                    kind: JobKind::Post,
                    group: format!("g{group}"),
                    seq,
                    priority,
                    reference: Uuid::from_u128(1000 + model.queued),
                    payload: serde_json::Value::Null,
                    available: at(delay),
                };
                model.queue(&new);
                bench.queue(new).await;
            }
            Step::Edit { group, priority, delay } => {
                let new = NewJob {
                    kind: JobKind::Edit,
                    group: format!("g{group}"),
                    seq: 1,
                    priority,
                    reference: Uuid::from_u128(u128::from(group)),
                    payload: serde_json::Value::Null,
                    available: at(delay),
                };
                model.queue(&new);
                bench.queue(new).await;
            }
            Step::Claim { limit, lease } => {
                let lease = Duration::from_millis(lease);
                let jobs = write!(bench.store, |tx| tx.claim("w", &JobKind::ALL, limit, lease));
                let ids = model.claim(now.0, limit, now.plus(lease).0);
                prop_assert_eq!(jobs.iter().map(|job| job.id).collect::<Vec<_>>(), ids);
                held.extend(jobs);
            }
            Step::Done(which) => {
                let Some(job) = held.get(which).cloned() else { continue };
                let expected = model.finish(&job, false);
                prop_assert_eq!(write!(bench.store, |tx| tx.done(&job)), expected);
            }
            Step::Dead(which) => {
                let Some(job) = held.get(which).cloned() else { continue };
                let expected = model.finish(&job, true);
                prop_assert_eq!(write!(bench.store, |tx| tx.dead(&job, "x")), expected);
            }
            Step::Retry { which, delay, counted } => {
                let Some(job) = held.get(which).cloned() else { continue };
                let expected = model.owned(&job).map(|row| {
                    // Wanted again while it was put off, not tried: at once.
                    let due = if row.again && !counted { at(delay).0.min(now.0) } else { at(delay).0 };
                    (row.held, row.until, row.again, row.available) = (false, 0, false, due);
                    row.attempts = if counted { row.attempts } else { (row.attempts - 1).max(0) };
                });
                let at = at(delay);
                let ours = write!(bench.store, |tx| tx.retry(&job, at, "x", counted));
                prop_assert_eq!(ours, expected.is_some());
            }
            Step::Extend { which, lease } => {
                let Some(job) = held.get(which).cloned() else { continue };
                let lease = Duration::from_millis(lease);
                let expected = model.owned(&job).map(|row| row.until = now.plus(lease).0);
                prop_assert_eq!(write!(bench.store, |tx| tx.extend(&job, lease)), expected.is_some());
            }
            Step::Crash(which) => {
                if which < held.len() {
                    held.remove(which);
                }
            }
            Step::Clock(by) => bench.clock.jump(by),
            Step::Release => {
                for row in &mut model.rows {
                    (row.held, row.until) = (false, 0);
                }
                write!(bench.store, |tx| tx.release_jobs(None));
            }
            Step::RetryNow(which) => {
                let Some(row) = model.rows.get(which).cloned() else { continue };
                let living = |r: &Row| r.edit && !r.dead && r.reference == row.reference;
                let superseded = row.dead && row.edit && model.rows.iter().any(living);
                let expected = row.until <= now.0 && !superseded;
                if expected {
                    let row = &mut model.rows[which];
                    (row.dead, row.available, row.attempts) = (false, now.0, 0);
                }
                prop_assert_eq!(write!(bench.store, |tx| tx.retry_now(row.id)), expected);
            }
        }
        compare(bench, &mut model).await?;
    }
    Ok(())
}

/// Every row, field by field; new rows tell the model their ids.
async fn compare(bench: &Bench, model: &mut Model) -> Result<(), TestCaseError> {
    let mut rows = bench.store.read(|tx| async move { tx.jobs(1000).await }.boxed()).await.unwrap();
    rows.sort_by_key(|row| row.id);
    prop_assert_eq!(rows.len(), model.rows.len());
    for (stored, row) in rows.iter().zip(&mut model.rows) {
        if row.id == 0 {
            row.id = stored.id;
        }
        prop_assert_eq!(
            (stored.id, stored.reference, stored.priority, stored.available.0, stored.attempts),
            (row.id, row.reference, row.priority, row.available, row.attempts)
        );
        prop_assert_eq!((stored.owner.is_some(), stored.dead.is_some()), (row.held, row.dead));
    }
    Ok(())
}

#[rstest]
#[case(Backend::Sqlite, 100)]
#[case(Backend::Postgres, 30)]
fn the_outbox_does_what_its_model_does(#[case] on: Backend, #[case] cases: u32) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let bench = runtime.block_on(Bench::new(on));
    assert_eq!(bench.now(), START);
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let outcome =
        TestRunner::new(config).run(&vec(step(), 1..40), |steps| runtime.block_on(play(&bench, &steps)));
    runtime.block_on(bench.store.close());
    outcome.unwrap();
}

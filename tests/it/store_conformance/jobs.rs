//! The outbox, method by method.

use super::bench::{Bench, START, job, write};
use crate::world::database::Backend;
use countersign::domain::clock::Millis;
use countersign::store::jobs::{Dropped, Job, JobCount, JobKind, LEASE, NewJob};
use rstest::rstest;
use std::time::Duration;
use uuid::Uuid;

fn references(jobs: &[Job]) -> Vec<u128> {
    jobs.iter().map(|job| job.reference.as_u128()).collect()
}

#[rstest]
#[tokio::test]
async fn due_jobs_come_most_urgent_first_and_whole(
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
) {
    let bench = Bench::new(on).await;
    bench.queue(job(JobKind::Notice, "a", 1, 1)).await;
    bench.queue(NewJob { priority: 1, ..job(JobKind::Post, "b", 7, 2) }).await;
    bench.queue(NewJob { available: Millis(START.0 - 10), ..job(JobKind::Answer, "c", 1, 3) }).await;
    bench.queue(NewJob { available: Millis(START.0 + 1), ..job(JobKind::Answer, "d", 1, 4) }).await;
    let jobs = bench.claim("w", 10).await;
    assert_eq!(references(&jobs), [2, 3, 1]);
    let Job {
        id: _,
        kind,
        group,
        seq,
        priority,
        reference,
        payload,
        created,
        available,
        attempts,
        epoch,
        last_error,
    } = jobs[0].clone();
    assert_eq!(last_error, None);
    assert_eq!((kind, group.as_str(), seq, priority), (JobKind::Post, "b", 7, 1));
    assert_eq!((reference, payload), (Uuid::from_u128(2), serde_json::json!({"n": "2"})));
    assert_eq!((created, available, attempts, epoch), (START, START, 1, 1));
    assert_eq!(bench.claim("w", 10).await, []);
    bench.clock.jump(1);
    assert_eq!(references(&bench.claim("w", 10).await), [4]);
}

#[rstest]
#[tokio::test]
async fn a_claim_takes_its_limit_and_its_kinds_only(
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
) {
    let bench = Bench::new(on).await;
    for n in 0..6 {
        let kind = if n % 2 == 0 { JobKind::Post } else { JobKind::Decide };
        bench.queue(job(kind, &n.to_string(), 1, n)).await;
    }
    let posts = write!(bench.store, |tx| tx.claim("w", &[JobKind::Post], 2, LEASE));
    assert_eq!(references(&posts), [0, 2]);
    let rest = write!(bench.store, |tx| tx.claim("w", &[JobKind::Post, JobKind::Decide], 10, LEASE));
    assert_eq!(references(&rest), [1, 3, 4, 5]);
    assert_eq!(write!(bench.store, |tx| tx.claim("w", &[], 10, LEASE)), []);
}

#[rstest]
#[tokio::test]
async fn a_group_waits_for_its_head_until_it_is_done_or_dead(
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
) {
    let bench = Bench::new(on).await;
    for (seq, n) in [(3, 1), (1, 2), (2, 3), (2, 4)] {
        bench.queue(job(JobKind::Post, "g", seq, n)).await;
    }
    let head = bench.claim("a", 10).await;
    assert_eq!(references(&head), [2]);
    assert_eq!(bench.claim("b", 10).await, [], "the head is under way");
    let (first, later) = (head[0].clone(), Millis(START.0 + 1000));
    assert!(write!(bench.store, |tx| tx.retry(&first, later, "busy", true)));
    assert_eq!(bench.claim("b", 10).await, [], "the head failed and still blocks");
    bench.clock.jump(1000);
    let second = bench.claim("b", 10).await.remove(0);
    assert_eq!((second.reference.as_u128(), second.attempts, second.epoch), (2, 2, 2));
    assert!(write!(bench.store, |tx| tx.dead(&second, "gave up")));
    // Equal places in the order they were queued.
    for expected in [3, 4, 1] {
        let next = bench.claim("b", 10).await;
        assert_eq!(references(&next), [expected]);
        let next = next[0].clone();
        assert!(write!(bench.store, |tx| tx.done(&next)));
    }
    let rows = write!(bench.store, |tx| tx.jobs(10));
    assert_eq!(rows.len(), 1);
    assert_eq!((rows[0].dead, rows[0].last_error.as_deref()), (Some(later), Some("gave up")));
}

#[rstest]
#[tokio::test]
async fn only_the_newest_lease_finishes(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let bench = Bench::new(on).await;
    bench.queue(job(JobKind::Answer, "g", 1, 1)).await;
    let old = bench.claim("a", 1).await.remove(0);
    bench.clock.pass(LEASE.checked_sub(Duration::from_millis(1)).unwrap());
    assert_eq!(bench.claim("b", 1).await, []);
    let held = old.clone();
    assert!(write!(bench.store, |tx| tx.extend(&held, LEASE)));
    bench.clock.pass(LEASE.checked_sub(Duration::from_millis(1)).unwrap());
    assert_eq!(bench.claim("b", 1).await, [], "extended");
    bench.clock.jump(1);
    let new = bench.claim("b", 1).await.remove(0);
    assert_eq!((new.id, new.epoch, new.attempts), (old.id, 2, 2));
    let fenced = write!(bench.store, |tx| async move {
        Ok([
            tx.done(&old).await?,
            tx.retry(&old, START, "late", true).await?,
            tx.dead(&old, "late").await?,
            tx.extend(&old, LEASE).await?,
        ])
    });
    assert_eq!(fenced, [false; 4]);
    let row = write!(bench.store, |tx| tx.jobs(10)).remove(0);
    assert_eq!((row.owner.as_deref(), row.last_error, row.dead), (Some("b"), None, None));
    // Expired, but nobody else took it: its result counts.
    bench.clock.pass(LEASE * 2);
    let finished = write!(bench.store, |tx| async move { Ok([tx.done(&new).await?, tx.done(&new).await?]) });
    assert_eq!(finished, [true, false]);
}

#[rstest]
#[tokio::test]
async fn a_job_given_back_cannot_be_finished_by_who_gave_it_back(
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
) {
    let bench = Bench::new(on).await;
    bench.queue(job(JobKind::Post, "g", 1, 1)).await;
    let one = bench.claim("a", 1).await.remove(0);
    let paced = one.clone();
    assert!(write!(bench.store, |tx| tx.retry(&paced, START, "paced", false)));
    let twice = one.clone();
    assert!(!write!(bench.store, |tx| tx.done(&twice)));
    let again = bench.claim("b", 1).await.remove(0);
    assert_eq!(again.attempts, 1, "a paced job was not tried");
    assert_eq!(write!(bench.store, |tx| tx.release_jobs(Some("a"))), 0);
    assert_eq!(write!(bench.store, |tx| tx.release_jobs(Some("b"))), 1);
    assert!(!write!(bench.store, |tx| tx.done(&again)));
    assert_eq!(bench.claim("c", 1).await.len(), 1);
    assert_eq!(write!(bench.store, |tx| tx.release_jobs(None)), 1);
    let last = bench.claim("c", 1).await.remove(0);
    assert_eq!((last.epoch, last.attempts), (4, 3));
}

#[rstest]
#[tokio::test]
async fn a_card_has_one_edit_however_often_it_is_wanted(
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
) {
    let bench = Bench::new(on).await;
    let card = Uuid::from_u128(1);
    write!(bench.store, |tx| async move {
        tx.queue_edit(card, "c", 2, 5, Millis(START.0 + 500)).await?;
        tx.queue_edit(card, "c", 3, 7, Millis(START.0 + 900)).await?;
        tx.queue_edit(card, "c", 4, 2, START).await?;
        tx.queue_edit(Uuid::from_u128(2), "d", 1, 5, START).await
    });
    let jobs = bench.claim("a", 10).await;
    assert_eq!(references(&jobs), [1, 2]);
    let edit = jobs[0].clone();
    assert_eq!((edit.seq, edit.priority, edit.available), (2, 2, START));

    // Wanted again while it is sent: sent once more, at once, with attempts of its own.
    let sent = edit.clone();
    write!(bench.store, |tx| async move {
        tx.queue_edit(card, "c", 5, 1, Millis(START.0 + 300)).await?;
        assert!(tx.done(&sent).await?);
        assert_eq!(tx.pending_for(card).await?, 1);
        Ok(())
    });
    let edit = bench.claim("a", 10).await.remove(0);
    assert_eq!((edit.priority, edit.attempts, edit.epoch), (1, 1, 2));

    // The death of an edit does not take a newer wish with it.
    let failed = edit.clone();
    write!(bench.store, |tx| async move {
        tx.queue_edit(card, "c", 6, 1, START).await?;
        assert!(tx.dead(&failed, "refused").await?);
        Ok(())
    });
    let edit = bench.claim("a", 10).await.remove(0);
    assert!(write!(bench.store, |tx| tx.done(&edit)));
    assert_eq!(write!(bench.store, |tx| tx.pending_for(card)), 0);
}

#[rstest]
#[case::paced(false, true)]
#[case::failed(true, false)]
#[tokio::test]
async fn what_is_wanted_again_while_under_way_does_not_wait_for_what_was_to_come_later(
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
    #[case] counted: bool,
    #[case] at_once: bool,
) {
    let bench = Bench::new(on).await;
    let (card, later) = (Uuid::from_u128(1), Millis(START.0 + 60_000));
    write!(bench.store, |tx| tx.queue_edit(card, "c", 1, 5, START));
    let sent = bench.claim("a", 1).await.remove(0);
    write!(bench.store, |tx| async move {
        tx.queue_edit(card, "c", 1, 2, START).await?;
        assert!(tx.retry(&sent, later, "", counted).await?);
        Ok(())
    });
    let due = write!(bench.store, |tx| tx.next_due(&JobKind::ALL));
    assert_eq!(due, Some(if at_once { START } else { later }));
    if at_once {
        // Once: what is put off then waits its time.
        let again = bench.claim("a", 1).await.remove(0);
        assert!(write!(bench.store, |tx| tx.retry(&again, later, "", false)));
        assert_eq!(write!(bench.store, |tx| tx.next_due(&JobKind::ALL)), Some(later));
    }
}

#[rstest]
#[tokio::test]
async fn a_dead_edit_and_a_new_one_do_not_meet(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let bench = Bench::new(on).await;
    let card = Uuid::from_u128(1);
    write!(bench.store, |tx| tx.queue_edit(card, "c", 1, 5, START));
    let dead = bench.claim("a", 1).await.remove(0);
    let id = dead.id;
    assert!(write!(bench.store, |tx| tx.dead(&dead, "gone")));
    write!(bench.store, |tx| tx.queue_edit(card, "c", 2, 5, START));
    assert!(!write!(bench.store, |tx| tx.retry_now(id)), "the living one says more");
    let living = bench.claim("a", 1).await.remove(0);
    assert_ne!(living.id, id);
    assert!(write!(bench.store, |tx| tx.done(&living)));
    assert!(write!(bench.store, |tx| tx.retry_now(id)));
    let revived = bench.claim("a", 1).await.remove(0);
    assert_eq!((revived.id, revived.attempts), (id, 1));
}

#[rstest]
#[tokio::test]
async fn the_next_due_time_is_that_of_what_can_be_claimed(
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
) {
    let bench = Bench::new(on).await;
    assert_eq!(write!(bench.store, |tx| tx.next_due(&JobKind::ALL)), None);
    let at = |ms| Millis(START.0 + ms);
    bench.queue(NewJob { available: at(50), ..job(JobKind::Post, "g", 1, 1) }).await;
    bench.queue(NewJob { available: at(10), ..job(JobKind::Edit, "g", 2, 2) }).await;
    bench.queue(NewJob { available: at(90), ..job(JobKind::Notice, "h", 1, 3) }).await;
    assert_eq!(write!(bench.store, |tx| tx.next_due(&JobKind::ALL)), Some(at(50)));
    assert_eq!(write!(bench.store, |tx| tx.next_due(&[JobKind::Notice])), Some(at(90)));
    assert_eq!(write!(bench.store, |tx| tx.next_due(&[JobKind::Edit])), None);
    bench.clock.jump(50);
    assert_eq!(bench.claim("a", 1).await.len(), 1);
    assert_eq!(write!(bench.store, |tx| tx.next_due(&JobKind::ALL)), Some(at(90)));
    let held = write!(bench.store, |tx| tx.next_due(&[JobKind::Post]));
    assert_eq!(held, Some(at(50).plus(LEASE)), "when the lease ends");
}

#[rstest]
#[tokio::test]
async fn operators_list_retry_and_drop_but_never_an_answer(
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
) {
    let bench = Bench::new(on).await;
    bench.queue(job(JobKind::Answer, "a", 1, 1)).await;
    bench.queue(NewJob { available: Millis(START.0 + 60_000), ..job(JobKind::Post, "b", 1, 2) }).await;
    bench.queue(job(JobKind::Notice, "c", 1, 3)).await;
    let rows = write!(bench.store, |tx| tx.jobs(10));
    let id = |n: u128| rows.iter().find(|row| row.reference == Uuid::from_u128(n)).unwrap().id;
    let (answer, post, notice) = (id(1), id(2), id(3));
    assert_eq!(write!(bench.store, |tx| tx.jobs(2)).len(), 2);

    let leased = write!(bench.store, |tx| tx.claim("w", &[JobKind::Notice], 1, LEASE)).remove(0);
    let counts = write!(bench.store, |tx| tx.job_counts());
    let count = |kind: &str, state: &str| JobCount { kind: kind.into(), state: state.into(), count: 1 };
    let mut counts = counts;
    counts.sort_by(|a, b| a.kind.cmp(&b.kind));
    assert_eq!(counts, [count("answer", "due"), count("notice", "leased"), count("post", "waiting")]);
    let row = write!(bench.store, |tx| tx.jobs(10)).into_iter().find(|row| row.id == notice).unwrap();
    assert_eq!((row.owner.as_deref(), row.leased_until), (Some("w"), Some(START.plus(LEASE))));

    let dropped = write!(bench.store, |tx| async move {
        Ok([
            tx.drop_job(answer).await?,
            tx.drop_job(notice).await?,
            tx.drop_job(post).await?,
            tx.drop_job(post).await?,
        ])
    });
    assert_eq!(dropped, [Dropped::Answer, Dropped::Leased, Dropped::Yes, Dropped::Unknown]);
    assert!(!write!(bench.store, |tx| tx.retry_now(notice)), "a worker is at it");
    assert!(write!(bench.store, |tx| tx.dead(&leased, "x".repeat(9000).as_str())));
    let counts = write!(bench.store, |tx| tx.job_counts());
    assert!(counts.contains(&count("notice", "dead")), "{counts:?}");
    assert!(write!(bench.store, |tx| tx.retry_now(notice)));
    assert!(!write!(bench.store, |tx| tx.retry_now(post)));
    let row = write!(bench.store, |tx| tx.jobs(10)).into_iter().find(|row| row.id == notice).unwrap();
    assert_eq!((row.dead, row.attempts, row.last_error.map(|error| error.len())), (None, 0, Some(500)));
}

#[rstest]
#[tokio::test]
async fn rows_of_a_newer_version_and_unreadable_ones_stop_nobody(
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
) {
    let bench = Bench::new(on).await;
    for (n, group) in [(1, "new"), (2, "new"), (3, "bad"), (4, "good")] {
        bench.queue(job(JobKind::Post, group, i64::try_from(n).unwrap(), n)).await;
    }
    let id = [Uuid::from_u128(1)];
    bench.behind_our_back("UPDATE jobs SET kind = 'dance' WHERE ref = $1", &id).await;
    bench.behind_our_back("UPDATE jobs SET payload_json = '{' WHERE ref = $1", &[Uuid::from_u128(3)]).await;
    assert_eq!(references(&bench.claim("w", 10).await), [4]);
    let rows = write!(bench.store, |tx| tx.jobs(10));
    let state: Vec<_> =
        rows.iter().map(|row| (row.reference.as_u128(), row.dead.is_some(), row.attempts)).collect();
    assert_eq!(state, [(3, true, 1), (1, false, 0), (2, false, 0), (4, false, 1)]);
}

/// What waits for operators is due at once; what waits for time is not hurried.
#[rstest]
#[tokio::test]
async fn answers_that_wait_for_operators_are_hurried(
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
) {
    let bench = Bench::new(on).await;
    bench.queue(job(JobKind::Answer, "a", 1, 1)).await;
    bench.queue(job(JobKind::Answer, "b", 1, 2)).await;
    let later = START.plus(std::time::Duration::from_mins(1));
    for (job, error) in bench.claim("w", 10).await.into_iter().zip(["attention: key", "no answer"]) {
        assert!(write!(bench.store, |tx| async { tx.retry(&job, later, error, true).await }));
    }
    assert_eq!(bench.claim("w", 10).await, []);
    // Of another runtime: these belong to no answer of it.
    write!(bench.store, |tx| tx.hurry_answers(Some("other"), START));
    assert_eq!(bench.claim("w", 10).await, []);
    write!(bench.store, |tx| tx.hurry_answers(None, START));
    let hurried = bench.claim("w", 10).await;
    assert_eq!(references(&hurried), [1]);
    assert_eq!(hurried[0].last_error.as_deref(), Some("attention: key"));
}

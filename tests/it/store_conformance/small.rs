//! Alerts, registered tasks, unreadable deliveries.

use super::bench::{Bench, START, write};
use crate::world::database::Backend;
use countersign::domain::clock::Millis;
use countersign::store::alerts::Alert;
use countersign::store::tasks::{DueTask, NewTask};
use rstest::rstest;
use uuid::Uuid;

#[rstest]
#[tokio::test]
async fn an_alert_is_new_once_until_it_is_cleared(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let bench = Bench::new(on).await;
    let raised = write!(bench.store, |tx| async move {
        Ok([
            tx.raise("b", "one", START).await?,
            tx.raise("b", "two", Millis(START.0 + 5)).await?,
            tx.raise("a", "other", START).await?,
            tx.raise("C", "early", Millis(START.0 - 1)).await?,
        ])
    });
    assert_eq!(raised, [true, false, true, true]);
    let alert = |key: &str, text: &str, since: i64, times| Alert {
        key: key.into(),
        text: text.into(),
        since: Millis(START.0 + since),
        times,
    };
    let all = write!(bench.store, |tx| tx.alerts());
    assert_eq!(all, [alert("C", "early", -1, 1), alert("a", "other", 0, 1), alert("b", "two", 0, 2)]);
    assert!(write!(bench.store, |tx| tx.clear("b")));
    assert!(!write!(bench.store, |tx| tx.clear("b")));
    assert!(write!(bench.store, |tx| tx.raise("b", "again", START)));
}

fn task(name: &str) -> NewTask {
    NewTask { runtime: "prod".into(), task: name.into(), context: None, subject: None }
}

#[rstest]
#[tokio::test]
async fn a_registered_task_is_read_until_it_ends(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let bench = Bench::new(on).await;
    let later = Millis(START.0 + 10);
    write!(bench.store, |tx| async move {
        tx.register_task(task("t2"), later).await?;
        let whole = NewTask { context: Some("c".into()), subject: Some("dana".into()), ..task("t1") };
        tx.register_task(whole, START).await?;
        tx.register_task(NewTask { runtime: "other".into(), ..task("t9") }, START).await?;
        // Said again without the rest: the rest stays.
        tx.register_task(task("t1"), Millis(START.0 + 1)).await
    });
    let due = write!(bench.store, |tx| tx.due_tasks("prod", later, 10));
    assert_eq!(due.iter().map(|task| task.task.as_str()).collect::<Vec<_>>(), ["t1", "t2"]);
    let first = DueTask {
        task: "t1".into(),
        context: Some("c".into()),
        subject: Some("dana".into()),
        registered: START,
        missing: None,
    };
    assert_eq!(due[0], first);
    assert_eq!(write!(bench.store, |tx| tx.due_tasks("prod", later, 1)).len(), 1);
    assert_eq!(write!(bench.store, |tx| tx.due_tasks("prod", START, 10)), []);

    assert!(write!(bench.store, |tx| tx.task_read("prod", "t1", Millis(START.0 + 50), Some(later))));
    assert_eq!(write!(bench.store, |tx| tx.due_tasks("prod", later, 10)).len(), 1);
    let still = Millis(START.0 + 50);
    assert!(write!(bench.store, |tx| tx.task_read("prod", "t1", still, Some(still))));
    let due = write!(bench.store, |tx| tx.due_tasks("prod", Millis(START.0 + 50), 10));
    assert_eq!(due[1], DueTask { missing: Some(later), ..first });
    assert!(write!(bench.store, |tx| tx.task_read("prod", "t1", still, None)));
    let due = write!(bench.store, |tx| tx.due_tasks("prod", still, 10));
    assert_eq!(due[1].missing, None, "found again");
    assert!(write!(bench.store, |tx| tx.task_ended("prod", "t1", later)));
    assert!(!write!(bench.store, |tx| tx.task_ended("prod", "t1", later)));
    assert!(!write!(bench.store, |tx| tx.task_read("prod", "t1", later, None)));
    write!(bench.store, |tx| tx.register_task(task("t1"), later));
    let again = write!(bench.store, |tx| tx.due_tasks("prod", later, 10));
    assert_eq!(again.len(), 2, "watched again");
    assert!(again.iter().all(|task| task.missing.is_none()));
}

#[rstest]
#[tokio::test]
async fn a_delivery_nobody_could_read_is_kept_byte_for_byte(
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
) {
    let bench = Bench::new(on).await;
    write!(bench.store, |tx| tx.keep_unreadable(Uuid::from_u128(1), "slack:acme", START, b"\0\xff{"));
    let kept = bench.number("SELECT COUNT(*) FROM unreadable WHERE length(body) = 3").await;
    assert_eq!(kept, 1);
}

#[rstest]
#[tokio::test]
async fn the_newest_pass_of_each_runtime_is_kept(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let bench = Bench::new(on).await;
    for (runtime, at) in [("a", 1), ("b", 2), ("a", 3)] {
        write!(bench.store, |tx| tx.note_pass(runtime, Millis(at)));
    }
    let mut passes = write!(bench.store, |tx| tx.passes());
    passes.sort();
    assert_eq!(passes, [("a".to_owned(), Millis(3)), ("b".to_owned(), Millis(2))]);
}

#[rstest]
#[tokio::test]
async fn kept_deliveries_are_found_by_source_and_time(
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
) {
    let bench = Bench::new(on).await;
    write!(bench.store, |tx| tx.keep_unreadable(Uuid::from_u128(1), "slack:events", START, b"\0\xff"));
    assert_eq!(
        write!(bench.store, |tx| tx.kept_deliveries(5)),
        [("slack:events".to_owned(), b"\0\xff".to_vec())]
    );
    assert!(write!(bench.store, |tx| tx.unreadable_since("slack:events", Millis(START.0 - 1))));
    assert!(!write!(bench.store, |tx| tx.unreadable_since("slack:events", START)));
    assert!(!write!(bench.store, |tx| tx.unreadable_since("slack:commands", Millis(0))));
}

#[rstest]
#[tokio::test]
async fn a_delivery_is_new_once(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let bench = Bench::new(on).await;
    assert!(!write!(bench.store, |tx| tx.knows_delivery("slack:event:Ev1")));
    assert!(write!(bench.store, |tx| tx.note_delivery("slack:event:Ev1", START)));
    assert!(!write!(bench.store, |tx| tx.note_delivery("slack:event:Ev1", Millis(START.0 + 1))));
    assert!(write!(bench.store, |tx| tx.note_delivery("slack:event:ev1", START)), "case counts");
    assert!(write!(bench.store, |tx| tx.knows_delivery("slack:event:Ev1")));
}

//! The one door for writes.

use super::bench::{Bench, START, write};
use crate::world::database::{Backend, Database};
use countersign::domain::clock::{Clock, Millis};
use countersign::store::{Store, StoreError, StoreOptions, Tx};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all};
use rstest::rstest;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// Each look is a later moment. SQLite's writer looks once per commit, so the moments tell commits.
#[derive(Debug)]
struct Ticking(AtomicI64);

impl Clock for Ticking {
    fn now(&self) -> Millis {
        Millis(self.0.fetch_add(1, Ordering::SeqCst))
    }
}

#[tokio::test]
async fn on_sqlite_writes_that_wait_share_a_commit() {
    let database = Backend::Sqlite.fresh().await;
    let options = StoreOptions {
        url: database.url().to_owned(),
        readers: 1,
        clock: Arc::new(Ticking(AtomicI64::new(START.0))),
        bind_clock: true,
    };
    let store = Store::connect(options).await.unwrap();
    let write = |n: i64| {
        store.write(move |tx| {
            async move {
                tx.raise(&n.to_string(), "x", START).await?;
                tx.now().await
            }
            .boxed()
        })
    };
    let moments: HashSet<Millis> =
        join_all((0..200).map(write)).await.into_iter().map(Result::unwrap).collect();
    assert!(moments.len() <= 10, "{} commits", moments.len());
    let all = store.read(|tx| async move { tx.alerts().await }.boxed()).await.unwrap();
    assert_eq!(all.len(), 200);
}

fn raises(
    key: &'static str,
) -> impl for<'t> FnOnce(&'t mut Tx) -> BoxFuture<'t, Result<bool, StoreError>> + Send + 'static {
    move |tx| async move { tx.raise(key, "x", START).await }.boxed()
}

#[tokio::test]
async fn on_sqlite_an_urgent_write_goes_first_and_ends_the_batch_under_way() {
    let bench = Bench::new(Backend::Sqlite).await;
    let store = bench.store.clone();
    let seen = |n: usize| {
        let store = store.clone();
        bench.store.write(move |tx| {
            async move {
                if n == 3 {
                    // Queued, and its caller gone: it is written all the same.
                    assert!(store.write_urgent(raises("second")).now_or_never().is_none());
                }
                Ok(tx.alerts().await?.into_iter().map(|alert| alert.key).collect::<Vec<_>>())
            }
            .boxed()
        })
    };
    let usual = join_all((0..20).map(seen));
    let (usual, first) = tokio::join!(usual, bench.store.write_urgent(raises("first")));
    assert!(first.unwrap());
    for (n, keys) in usual.into_iter().map(Result::unwrap).enumerate() {
        let expected: &[&str] = if n <= 3 { &["first"] } else { &["first", "second"] };
        assert_eq!(keys, expected, "the {n}th");
    }
}

#[rstest]
#[tokio::test]
async fn a_write_that_fails_or_panics_loses_only_itself(
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
) {
    let bench = Bench::new(on).await;
    let write = |n: usize| {
        bench.store.write(move |tx| {
            async move {
                tx.raise(&format!("{n:03}"), "x", START).await?;
                match n % 10 {
                    3 => Err(StoreError::Conflict("no".into())),
                    // A statement that the database refuses, which on PostgreSQL spoils the transaction.
                    5 => tx.keep_unreadable(uuid::Uuid::nil(), "x", START, b"").await.map(|()| n),
                    7 => panic!("write {n} panics"),
                    _ => Ok(n),
                }
            }
            .boxed()
        })
    };
    write!(bench.store, |tx| tx.keep_unreadable(uuid::Uuid::nil(), "first", START, b""));
    let results = join_all((0..100).map(write)).await;
    for (n, result) in results.iter().enumerate() {
        match n % 10 {
            3 | 5 => assert!(matches!(result, Err(StoreError::Conflict(_))), "{n}: {result:?}"),
            7 => assert!(matches!(result, Err(StoreError::Refused(_))), "{n}: {result:?}"),
            _ => assert_eq!(*result.as_ref().unwrap(), n),
        }
    }
    let kept: Vec<usize> =
        write!(bench.store, |tx| tx.alerts()).into_iter().map(|alert| alert.key.parse().unwrap()).collect();
    let expected: Vec<usize> = (0..100).filter(|n| ![3, 5, 7].contains(&(n % 10))).collect();
    assert_eq!(kept, expected);
}

#[rstest]
#[tokio::test]
async fn a_write_is_there_for_other_connections_when_it_returns(
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
) {
    let bench = Bench::new(on).await;
    let other = bench.another().await;
    for n in 0..20 {
        write!(bench.store, |tx| async move { tx.raise(&n.to_string(), "x", START).await });
        let seen = other.read(|tx| async move { tx.alerts().await }.boxed()).await.unwrap();
        assert_eq!(seen.len(), n + 1);
    }
    match &bench.database {
        Database::Sqlite { .. } => assert!(bench.store.is_sqlite()),
        Database::Postgres(_) => assert!(!bench.store.is_sqlite()),
    }
}

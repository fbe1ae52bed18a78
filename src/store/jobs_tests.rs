use super::*;
use crate::domain::clock::Clock;
use crate::store::{Store, StoreOptions};
use futures_util::FutureExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

#[derive(Debug, Default)]
struct Hand(AtomicI64);

impl Clock for Hand {
    fn now(&self) -> Millis {
        Millis(self.0.load(Ordering::SeqCst))
    }
}

#[tokio::test]
async fn an_edit_wanted_while_one_is_under_way_is_sent_once_more() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Arc::new(Hand(AtomicI64::new(1000)));
    let store = Store::connect(StoreOptions {
        url: format!("sqlite://{}", dir.path().join("t.db").display()),
        readers: 2,
        clock: clock.clone(),
        bind_clock: true,
    })
    .await
    .unwrap();
    store.migrate("test").await.unwrap();
    let card = Uuid::from_u128(1);
    store
        .write(move |tx| {
            async move {
                tx.queue_edit(card, "c", 2, 5, Millis(1000)).await?;
                tx.queue_edit(card, "c", 3, 3, Millis(900)).await
            }
            .boxed()
        })
        .await
        .unwrap();
    let job = store
        .write(|tx| async move { tx.claim("w", &JobKind::ALL, 10, LEASE).await }.boxed())
        .await
        .unwrap()
        .remove(0);
    assert_eq!((job.priority, job.available, job.attempts), (3, Millis(900), 1));
    let again = job.clone();
    store
        .write(move |tx| {
            async move {
                tx.queue_edit(card, "c", 4, 4, Millis(1000)).await?;
                assert!(tx.done(&again).await?);
                assert_eq!(tx.pending_for(card).await?, 1);
                let next = tx.claim("w", &JobKind::ALL, 10, LEASE).await?.remove(0);
                assert!(!tx.done(&again).await?);
                assert!(tx.done(&next).await?);
                assert_eq!(tx.pending_for(card).await?, 0);
                Ok(())
            }
            .boxed()
        })
        .await
        .unwrap();
}

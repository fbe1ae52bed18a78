//! Sessions of gateways, and the cards their events are about.

use super::bench::{Bench, START, write};
use super::entities::{carded, opened};
use crate::world::database::Backend;
use countersign::domain::clock::Millis;
use countersign::domain::place::MessageRef;
use countersign::domain::session::Session;
use countersign::store::leases::LIFE;
use rstest::rstest;

#[rstest]
#[tokio::test]
async fn a_session_is_kept_by_who_holds_the_newest_lease(
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
) {
    let bench = Bench::new(on).await;
    let take = async |owner: &'static str| {
        write!(bench.store, |tx| tx.acquire_lease("gateway:guild", owner, LIFE)).unwrap()
    };
    let load = async || write!(bench.store, |tx| tx.gateway_session("guild"));
    let save = async |lease: &countersign::store::leases::Lease, session: Option<Session>| {
        let lease = lease.clone();
        write!(bench.store, |tx| async move {
            tx.save_gateway_session("guild", &lease, session.as_ref(), START).await
        })
    };
    let session = |seq| Session { id: "s-1".into(), seq, resume_url: "wss://gateway.example".into() };
    let first = take("a").await;
    assert_eq!(load().await, None);
    assert!(save(&first, Some(session(1))).await);
    assert!(save(&first, Some(session(7))).await);
    assert_eq!(load().await, Some(session(7)));
    bench.clock.pass(LIFE);
    let second = take("b").await;
    assert!(save(&second, Some(session(9))).await);
    assert!(!save(&first, Some(session(8))).await, "the lease was lost");
    assert!(!save(&first, None).await);
    assert_eq!(load().await, Some(session(9)));
    assert!(save(&second, None).await);
    assert_eq!(load().await, None);
    assert!(!save(&first, Some(session(8))).await, "also when there is none");
    assert_eq!(write!(bench.store, |tx| tx.gateway_session("other")), None);
}

#[rstest]
#[tokio::test]
async fn a_card_is_found_by_its_message_and_doubted(
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
) {
    let bench = Bench::new(on).await;
    let card = carded(&bench, 1, opened(&bench, 1).await).await;
    let at = MessageRef { channel: "20".into(), message: "99".into() };
    let seen = async |install: &'static str| {
        let at = at.clone();
        write!(bench.store, |tx| async move { tx.card_at(install, &at).await })
    };
    assert_eq!(seen("acme").await, None);
    let posted = at.clone();
    write!(bench.store, |tx| async move {
        let to = countersign::domain::place::Destination { channel: "20".into(), thread: None };
        tx.post_sent(card, START, 1, &to, false).await?;
        tx.posted(card, &posted, 1).await
    });
    assert_eq!(seen("acme").await, Some(card));
    assert_eq!(seen("other").await, None);
    let open = async || write!(bench.store, |tx| tx.open_cards_in("acme", "20", 10));
    assert_eq!(open().await, [card]);
    assert!(write!(bench.store, |tx| tx.open_cards_in("acme", "21", 10)).is_empty());
    // In a thread.
    let two = carded(&bench, 2, opened(&bench, 2).await).await;
    write!(bench.store, |tx| async move {
        let to = countersign::domain::place::Destination { channel: "20".into(), thread: Some("21".into()) };
        tx.post_sent(two, START, 1, &to, false).await?;
        tx.posted(two, &MessageRef { channel: "20".into(), message: "21/98".into() }, 1).await
    });
    assert_eq!(write!(bench.store, |tx| tx.open_cards_in("acme", "21", 10)), [two]);
    write!(bench.store, |tx| tx.doubt_card(card, Millis(START.0 + 5)));
    assert_eq!(write!(bench.store, |tx| tx.card(card)).unwrap().confirm, Some(Millis(START.0 + 5)));
}

//! Places, seats, threads and bulletins: every method on both databases.

use super::bench::{Bench, START, job, write};
use super::entities::opened;
use crate::world::database::Backend;
use countersign::domain::bulletin::Bulletin;
use countersign::domain::clock::Millis;
use countersign::domain::ids::CardId;
use countersign::domain::place::{Destination, MessageRef};
use countersign::store::bulletins::BulletinState;
use countersign::store::cards::{CardState, Slot};
use countersign::store::jobs::JobKind;
use countersign::store::threads::{Root, ThreadKey};
use rstest::rstest;
use std::time::Duration;
use uuid::Uuid;

fn card(n: u128) -> CardId {
    CardId(Uuid::from_u128(n))
}

fn after(ms: i64) -> Millis {
    Millis(START.0 + ms)
}

/// Cards 1 to `of`, each of its own interaction, in place `place`, in that order.
async fn cards(bench: &Bench, place: &'static str, of: u128) {
    for n in 1..=of {
        let interaction = opened(bench, n).await;
        let at = after(i64::try_from(n).unwrap());
        assert!(write!(bench.store, |tx| tx.insert_card(card(n), interaction, place, "acme", false, at)));
    }
}

#[rstest]
#[tokio::test]
async fn a_place_is_marked_until_it_works(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let bench = Bench::new(on).await;
    let place = "slack:acme:#ops";
    assert_eq!(write!(bench.store, |tx| tx.bad_place(place)), None);
    assert!(write!(bench.store, |tx| tx.mark_place(place, "is_archived", START)));
    assert!(!write!(bench.store, |tx| tx.mark_place(place, "not_in_channel", START)), "known already");
    assert_eq!(write!(bench.store, |tx| tx.bad_place(place)).as_deref(), Some("not_in_channel"));
    write!(bench.store, |tx| tx.doubt_place(place));
    assert_eq!(write!(bench.store, |tx| tx.bad_place(place)), None, "the next card tells");
    assert!(write!(bench.store, |tx| tx.mark_place(place, "is_archived", START)), "as new");
    assert!(write!(bench.store, |tx| tx.place_works(place)));
    assert!(!write!(bench.store, |tx| tx.place_works(place)));
}

#[rstest]
#[tokio::test]
async fn a_pin_stays_and_follows_its_channel(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let bench = Bench::new(on).await;
    assert_eq!(write!(bench.store, |tx| tx.pin("acme", "ops")), None);
    write!(bench.store, |tx| tx.set_pin("acme", "ops", "C1", START));
    write!(bench.store, |tx| tx.set_pin("acme", "ops", "C2", START));
    assert_eq!(write!(bench.store, |tx| tx.pin("acme", "ops")).as_deref(), Some("C1"), "the first pin stays");
    assert_eq!(write!(bench.store, |tx| tx.pins("acme")), [("ops".to_owned(), "C1".to_owned())]);
    for mark in ["a", "b"] {
        write!(bench.store, |tx| tx.keep_mark("beta", "~commands", mark, START));
        assert_eq!(write!(bench.store, |tx| tx.pin("beta", "~commands")).as_deref(), Some(mark));
    }

    cards(&bench, "slack:acme:#ops", 1).await;
    let (here, copy) = (MessageRef { channel: "C1".into(), message: "1.1".into() }, "1.2");
    let to = Destination { channel: "C1".into(), thread: None };
    let key = thread("C1");
    write!(bench.store, |tx| async {
        tx.post_sent(card(1), START, 1, &to, false).await?;
        tx.posted(card(1), &here, 1).await?;
        tx.insert_copy(card(1), &MessageRef { message: copy.into(), ..here }).await?;
        tx.thread_root(&key, card(1)).await
    });
    write!(bench.store, |tx| tx.move_channel("beta", "C1", "C9", START));
    assert_eq!(write!(bench.store, |tx| tx.pin("acme", "ops")).as_deref(), Some("C1"), "another install's");
    write!(bench.store, |tx| tx.move_channel("acme", "C1", "C9", START));
    assert_eq!(write!(bench.store, |tx| tx.pin("acme", "ops")).as_deref(), Some("C9"));
    assert_eq!(write!(bench.store, |tx| tx.pin("acme", "C1")).as_deref(), Some("C9"), "the id itself too");
    let row = write!(bench.store, |tx| tx.card(card(1))).unwrap();
    assert_eq!(row.at().unwrap().channel, "C9");
    assert_eq!(write!(bench.store, |tx| tx.copies_of(card(1))).first().unwrap().channel, "C9");
    let moved = thread("C9");
    let root = write!(bench.store, |tx| async { tx.peek_root(&moved, card(2)).await });
    assert_eq!(root, Root::At("1.1".into()));
}

fn thread(channel: &str) -> ThreadKey {
    ThreadKey {
        install: "acme".into(),
        channel: channel.into(),
        runtime: "prod".into(),
        agent: "release".into(),
        context: "ctx".into(),
    }
}

#[rstest]
#[tokio::test]
async fn seats_are_given_in_order(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let bench = Bench::new(on).await;
    let place = "slack:acme:#ops";
    cards(&bench, place, 4).await;
    assert_eq!(write!(bench.store, |tx| tx.unseated(place)), [card(1), card(2), card(3), card(4)]);
    write!(bench.store, |tx| async {
        tx.lock_place("acme", "C1").await?;
        tx.seat(card(1), "C1", Slot::Taken).await?;
        tx.seat(card(3), "C1", Slot::Held).await?;
        tx.seat(card(2), "C1", Slot::Held).await
    });
    assert!(!write!(bench.store, |tx| tx.has_room("acme", "C1", 1)));
    assert!(write!(bench.store, |tx| tx.has_room("acme", "C1", 2)));
    assert!(write!(bench.store, |tx| tx.has_room("acme", "C2", 1)), "another channel");
    assert_eq!(write!(bench.store, |tx| tx.first_held("acme", "C1")), Some(card(2)));
    assert_eq!(write!(bench.store, |tx| tx.held("acme", "C1")), 2);
    assert_eq!(write!(bench.store, |tx| tx.crowded()), [("acme".to_owned(), "C1".to_owned())]);
    assert_eq!(write!(bench.store, |tx| tx.unseated(place)), [card(4)]);
    let row = write!(bench.store, |tx| tx.card(card(3))).unwrap();
    assert_eq!((row.slot, row.word()), (Some(Slot::Held), "waiting"));
    write!(bench.store, |tx| async {
        tx.set_slot(card(2), None).await?;
        tx.set_slot(card(3), Some(Slot::Lost)).await
    });
    assert_eq!(write!(bench.store, |tx| tx.first_held("acme", "C1")), None);
    assert_eq!(write!(bench.store, |tx| tx.lost_at(place, 10)), [card(3)]);
    assert_eq!(write!(bench.store, |tx| tx.lost_at("slack:acme:#other", 10)), []);
    // Two places that turn out to be one channel.
    let interaction = write!(bench.store, |tx| tx.card(card(1))).unwrap().interaction;
    assert!(write!(bench.store, |tx| tx.insert_card(
        card(9),
        interaction,
        "slack:acme:C1",
        "acme",
        false,
        START
    )));
    assert_eq!(write!(bench.store, |tx| tx.twin(interaction, "acme", "C1", card(9))), Some(card(1)));
    assert_eq!(write!(bench.store, |tx| tx.twin(interaction, "acme", "C2", card(9))), None);
}

#[rstest]
#[tokio::test]
async fn one_card_begins_a_thread(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let bench = Bench::new(on).await;
    cards(&bench, "slack:acme:#ops", 3).await;
    let root = async |n: u128| {
        let key = thread("C1");
        write!(bench.store, |tx| async { tx.thread_root(&key, card(n)).await })
    };
    let peek = async |n: u128| {
        let key = thread("C1");
        write!(bench.store, |tx| async { tx.peek_root(&key, card(n)).await })
    };
    assert_eq!(peek(1).await, Root::Here);
    assert_eq!(root(1).await, Root::Here);
    assert_eq!(root(1).await, Root::Here, "said again");
    assert_eq!((root(2).await, peek(2).await), (Root::Pending, Root::Pending));
    let to = Destination { channel: "C1".into(), thread: None };
    let at = MessageRef { channel: "C1".into(), message: "1.1".into() };
    write!(bench.store, |tx| async {
        tx.post_sent(card(1), START, 1, &to, false).await?;
        tx.posted(card(1), &at, 1).await
    });
    assert_eq!((root(2).await, peek(3).await), (Root::At("1.1".into()), Root::At("1.1".into())));
    // The root takes no replies: card 2 begins anew, and is awaited by card 3.
    let key = thread("C1");
    write!(bench.store, |tx| async { tx.begin_thread(&key, card(2)).await });
    assert_eq!((root(2).await, root(3).await), (Root::Here, Root::Pending));
    // It never comes: the next one begins.
    write!(bench.store, |tx| tx.set_card_state(card(2), CardState::Failed));
    assert_eq!(peek(3).await, Root::Here);
    assert_eq!((root(3).await, root(1).await), (Root::Here, Root::Pending));
}

#[rstest]
#[tokio::test]
async fn looks_and_edits_can_be_hurried(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let bench = Bench::new(on).await;
    cards(&bench, "slack:acme:#ops", 1).await;
    assert!(!write!(bench.store, |tx| tx.hurry_group("p:x", START)));
    let mut look = job(JobKind::Place, "p:x", 0, 50);
    look.available = after(600_000);
    bench.queue(look).await;
    write!(bench.store, |tx| async {
        tx.seat(card(1), "C1", Slot::Taken).await?;
        tx.queue_edit(card(1).0, "c:1", 1, 1, after(600_000)).await
    });
    assert_eq!(bench.claim("a", 10).await, []);
    write!(bench.store, |tx| tx.hurry_edits("acme", "C2", START));
    assert_eq!(bench.claim("a", 10).await, []);
    write!(bench.store, |tx| tx.hurry_edits("acme", "C1", START));
    assert_eq!(bench.claim("a", 10).await.first().unwrap().kind, JobKind::Edit);
    assert!(write!(bench.store, |tx| tx.hurry_group("p:x", START)));
    assert_eq!(bench.claim("a", 10).await.first().unwrap().kind, JobKind::Place);
    assert!(!write!(bench.store, |tx| tx.hurry_group("p:x", START)), "a worker is at it");
}

#[rstest]
#[tokio::test]
async fn a_bulletin_has_one_message(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let bench = Bench::new(on).await;
    let alert = |over| Bulletin::Alert { key: "chat:x".into(), text: "no".into(), since: START, over };
    let (one, two) = (Uuid::from_u128(1), Uuid::from_u128(2));
    let place = "slack:acme:#ops";
    for (id, new) in [(one, true), (two, false)] {
        let says = alert(None);
        let done = write!(bench.store, |tx| async {
            tx.insert_bulletin(id, "alert:chat:x", place, "acme", None, &says).await
        });
        assert_eq!(done, new);
    }
    let load = async || write!(bench.store, |tx| tx.bulletin(one)).unwrap();
    assert_eq!((load().await.state, load().await.says), (BulletinState::Queued, alert(None)));
    assert_eq!(write!(bench.store, |tx| tx.bulletin_of("alert:chat:x", place)).unwrap().id, one);
    assert_eq!(write!(bench.store, |tx| tx.alert_bulletins()).len(), 1);

    let says = alert(None);
    assert!(write!(bench.store, |tx| async { tx.bulletin_sent(one, START, "C1", &says).await }));
    let row = load().await;
    assert_eq!(
        (row.state, row.posting, row.channel.as_deref()),
        (BulletinState::Posting, Some(START), Some("C1"))
    );
    write!(bench.store, |tx| tx.bulletin_not_found(one, START));
    write!(bench.store, |tx| tx.bulletin_not_found(one, after(9)));
    assert_eq!((load().await.looks, load().await.look), (2, Some(START)));
    write!(bench.store, |tx| tx.bulletin_not_sent(one, BulletinState::Failed));
    assert_eq!((load().await.state, load().await.posting), (BulletinState::Failed, None));
    let says = alert(None);
    assert!(write!(bench.store, |tx| async { tx.bulletin_sent(one, START, "C1", &says).await }));
    let at = MessageRef { channel: "C1".into(), message: "1.1".into() };
    for first in [true, false] {
        let at = at.clone();
        assert_eq!(write!(bench.store, |tx| async { tx.bulletin_posted(one, &at, START).await }), first);
    }
    assert_eq!((load().await.at(), load().await.shown), (Some(at), Some(alert(None))));
    let later = bench.now().plus(Duration::from_secs(5));
    let says = alert(Some(later));
    write!(bench.store, |tx| async { tx.bulletin_shown(one, &says, later).await });
    assert_eq!((load().await.shown, load().await.shown_at), (Some(alert(Some(later))), Some(later)));

    // Over: its topic is free for the next time.
    let says = alert(Some(later));
    write!(bench.store, |tx| async { tx.end_bulletin(one, &says).await });
    assert_eq!(write!(bench.store, |tx| tx.bulletin_of("alert:chat:x", place)).map(|row| row.id), None);
    let says = alert(None);
    assert!(write!(bench.store, |tx| async {
        tx.insert_bulletin(two, "alert:chat:x", place, "acme", Some("C1"), &says).await
    }));
    write!(bench.store, |tx| tx.bulletin_gone(one));
    assert_eq!(load().await.at(), None);
    write!(bench.store, |tx| tx.delete_bulletin(one));
    assert!(write!(bench.store, |tx| tx.bulletin(one)).is_none());
}

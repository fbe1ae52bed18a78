//! What was opened for whom, and who has read to the end.

use super::bench::{Bench, START, write};
use super::entities::{carded, opened};
use crate::world::database::Backend;
use countersign::domain::card::Control;
use countersign::domain::clock::Millis;
use countersign::domain::form::Digest;
use countersign::domain::ids::{CardId, ChatUser, Platform};
use countersign::store::openings::NewOpening;
use rstest::rstest;

fn dana() -> ChatUser {
    ChatUser { platform: Platform::Slack, realm: "T0ACME".into(), user: "U0DANA".into() }
}

fn digest(n: u8) -> Digest {
    Digest::from_hex(format!("{n:064x}"))
}

/// Opens under a token of its own; what the store says it is open as.
async fn open(
    bench: &Bench,
    card: CardId,
    token: &str,
    change: impl FnOnce(&mut NewOpening<'_>),
) -> Option<String> {
    let (by, digest) = (dana(), digest(1));
    let mut new = NewOpening {
        token,
        card,
        rev: 3,
        digest: &digest,
        control: Control::ShowAll,
        page: 1,
        by: &by,
        channel: Some("C1"),
        thread: None,
        opened_by: Some("press-1"),
    };
    change(&mut new);
    let new = (
        new.token.to_owned(),
        new.rev,
        new.control,
        new.page,
        new.by.clone(),
        new.channel.map(str::to_owned),
        new.opened_by.map(str::to_owned),
    );
    write!(bench.store, |tx| async {
        let (token, rev, control, page, by, channel, opened_by) = new;
        tx.open(&NewOpening {
            token: &token,
            card,
            rev,
            digest: &digest,
            control,
            page,
            by: &by,
            channel: channel.as_deref(),
            thread: None,
            opened_by: opened_by.as_deref(),
        })
        .await
    })
}

#[rstest]
#[tokio::test]
async fn the_same_thing_opens_under_the_same_token(
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
) {
    let bench = Bench::new(on).await;
    let one = opened(&bench, 1).await;
    let card = carded(&bench, 1, one).await;
    let said = async |token: &str, change: fn(&mut NewOpening<'_>)| open(&bench, card, token, change).await;
    assert_eq!(said("o_1", |_| {}).await.as_deref(), Some("o_1"));
    assert_eq!(said("o_2", |_| {}).await, None, "the same press once more opens nothing");
    assert_eq!(said("o_3", |new| new.opened_by = Some("press-2")).await.as_deref(), Some("o_1"));
    // Beside another page: it may be opened, and nothing of it is forgotten.
    let beside = said("o_4", |new| (new.opened_by, new.channel) = (None, None)).await;
    assert_eq!(beside.as_deref(), Some("o_1"));
    assert_eq!(said("o_5", |new| new.opened_by = Some("press-2")).await, None);

    assert_eq!(said("o_6", |new| new.page = 2).await.as_deref(), Some("o_6"));
    assert_eq!(said("o_7", |new| new.rev = 4).await.as_deref(), Some("o_7"));
    assert_eq!(said("o_8", |new| new.control = Control::DenyReason).await.as_deref(), Some("o_8"));

    let found = write!(bench.store, |tx| tx.opening("o_1")).unwrap();
    assert_eq!((found.card, found.interaction, found.install.as_str()), (card, one, "acme"));
    assert_eq!((found.rev, found.digest, found.page, found.by), (3, digest(1), 1, dana()));
    assert_eq!(
        (found.control.as_str(), found.channel.as_deref(), found.cut),
        ("show_all", Some("C1"), false)
    );
    assert!(write!(bench.store, |tx| tx.opening("o_2")).is_none());
}

#[rstest]
#[tokio::test]
async fn who_has_seen_all_of_which_form(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let bench = Bench::new(on).await;
    let one = opened(&bench, 1).await;
    for at in [START, Millis(START.0 + 1)] {
        write!(bench.store, |tx| async { tx.saw_all(one, &digest(1), &dana(), at).await });
    }
    let seen = async |form: u8, by: ChatUser| {
        write!(bench.store, |tx| async { tx.has_seen_all(one, &digest(form), &by).await })
    };
    assert!(seen(1, dana()).await);
    assert!(!seen(2, dana()).await, "another form needs another view");
    assert!(!seen(1, ChatUser { user: "U0KIM".into(), ..dana() }).await);
    assert!(
        !seen(1, ChatUser { realm: "T0BETA".into(), ..dana() }).await,
        "the same id elsewhere is somebody else"
    );
}

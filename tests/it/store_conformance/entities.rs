//! Interactions, answers, cards and clicks: every method on both databases.

use super::bench::{Bench, START, write};
use crate::world::database::Backend;
use countersign::domain::card::Control;
use countersign::domain::clock::Millis;
use countersign::domain::form::{Decision, Digest, Fact, Form, Kind};
use countersign::domain::ids::{
    AnswerId, CardId, ClickId, InteractionId, InteractionKey, Platform, RuntimeName, Subject,
};
use countersign::domain::interaction::{Claim, Contradiction, End, How, Machine, Sent, State, Vote, Why};
use countersign::domain::place::{Destination, Identity, MessageRef};
use countersign::store::StoreError;
use countersign::store::cards::CardState;
use countersign::store::clicks::{ClickState, ClickedControl, Decided, NewClick};
use countersign::store::interactions::{NewInteraction, Phase};
use rstest::rstest;
use serde_json::json;
use std::time::Duration;
use uuid::Uuid;

fn dana() -> Subject {
    Subject::parse("dana@example.com").unwrap()
}

pub(super) fn key(n: u128) -> InteractionKey {
    InteractionKey {
        runtime: RuntimeName::new("prod"),
        agent: "release".into(),
        task: format!("t{n}"),
        external: format!("eff_{n}"),
    }
}

pub(super) fn form() -> Form {
    Form {
        kind: Kind::Approval,
        title: "ci / deploy".into(),
        prompt: "Approve ü 🚢?".into(),
        facts: vec![Fact { label: "tool".into(), value: "deploy".into() }],
        questions: vec![],
        arguments_withheld: true,
    }
}

pub(super) fn id(n: u128) -> InteractionId {
    InteractionId(Uuid::from_u128(n))
}

/// Stores interaction `n`, open.
pub(super) async fn opened(bench: &Bench, n: u128) -> InteractionId {
    let stored = write!(bench.store, |tx| async {
        let (key, form) = (key(n), form());
        let digest = form.digest(&key);
        tx.insert_interaction(&NewInteraction {
            id: id(n),
            key: &key,
            context: Some("ctx"),
            seen_as: Some(&dana()),
            form: &form,
            owner: None,
            digest: &digest,
            opened: START,
            read_at: START,
        })
        .await
    });
    assert!(stored);
    id(n)
}

/// Queues card `n` of an interaction.
pub(super) async fn carded(bench: &Bench, n: u128, of: InteractionId) -> CardId {
    let card = CardId(Uuid::from_u128(n));
    let place = format!("slack:acme:C{n}");
    assert!(write!(bench.store, |tx| async { tx.insert_card(card, of, &place, "acme", false, START).await }));
    card
}

/// Stores click `n` on card 1 of an interaction.
async fn clicked(bench: &Bench, n: u128, on: InteractionId) -> ClickId {
    let click = ClickId(Uuid::from_u128(n));
    let new = write!(bench.store, |tx| async {
        let dedupe = format!("key-{n}");
        tx.insert_click(&NewClick {
            id: click,
            dedupe_key: &dedupe,
            install: Some("acme"),
            platform: Platform::Slack,
            chat_user: "U0DANA",
            home_team: Some("T0ACME"),
            team: Some("T0ACME"),
            enterprise: None,
            org_install: false,
            channel: Some("C1"),
            message: Some("1.000100"),
            thread: None,
            own_message: true,
            reply: Some("https://hooks.slack.com/x"),
            reason: Some("  not <b>today</b> & \u{1f642}"),
            said: Some("{\"groups\":[\"30\"]}"),
            pressed: Some(ClickedControl {
                interaction: on,
                card: CardId(Uuid::from_u128(1)),
                control: "approve".into(),
                shown: form().digest(&key(on.0.as_u128())),
                cut: false,
            }),
            received: START,
        })
        .await
    });
    assert!(new);
    click
}

fn claim(n: u32, click: ClickId, digest: &Digest) -> Claim {
    Claim {
        answer: AnswerId(Uuid::from_u128(1000 + u128::from(n))),
        number: n,
        click,
        subject: dana(),
        decision: Decision::Approve,
        digest: digest.clone(),
        deliver_until: START.plus(Duration::from_hours(1)),
        sent: Sent::Never,
        in_flight: false,
        ended: None,
        accepted_at: None,
        contradiction: Contradiction::default(),
        candidate: false,
    }
}

/// Saves `change` of an interaction's machine; what is loaded back is exactly that.
async fn saved(
    bench: &Bench,
    at: InteractionId,
    change: impl FnOnce(&mut Machine) + Send + 'static,
) -> Machine {
    let (kept, wanted) = write!(bench.store, |tx| async {
        let mut before = tx.interaction(at, true).await?.unwrap();
        let mut after = before.machine.clone();
        change(&mut after);
        if let Some(claim) = after.claim().filter(|claim| claim.number > before.machine.claims) {
            tx.insert_answer(at, claim, "cs-test:eff", &json!({ "message": { "n": 1 } }), START).await?;
        }
        tx.save(&mut before, after.clone(), true, Some(START.plus(Duration::from_secs(5))), START).await?;
        Ok::<_, StoreError>((tx.interaction(at, false).await?.unwrap(), after))
    });
    assert_eq!(kept.machine, wanted);
    assert_eq!(kept.read_due, Some(START.plus(Duration::from_secs(5))));
    kept.machine
}

#[rstest]
#[tokio::test]
async fn an_interaction_reads_back_as_it_was_stored(
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
) {
    let bench = Bench::new(on).await;
    let one = opened(&bench, 1).await;
    let loaded = write!(bench.store, |tx| tx.interaction(one, true)).unwrap();
    assert_eq!((loaded.form, loaded.key, loaded.context.as_deref()), (form(), key(1), Some("ctx")));
    assert_eq!(
        (loaded.seen_as, loaded.owner, loaded.opened, loaded.rev, loaded.routed),
        (Some(dana()), None, START, 1, false)
    );
    assert_eq!(loaded.machine, Machine::opened(form().digest(&key(1)), START));
    // Known already; nothing else of that key.
    let again = write!(bench.store, |tx| async {
        let (key, form) = (key(1), form());
        let digest = form.digest(&key);
        let new = NewInteraction {
            id: id(99),
            key: &key,
            context: None,
            seen_as: None,
            form: &form,
            owner: None,
            digest: &digest,
            opened: START,
            read_at: START,
        };
        tx.insert_interaction(&new).await
    });
    assert!(!again);
    assert!(write!(bench.store, |tx| tx.interaction(id(99), false)).is_none());

    let head = write!(bench.store, |tx| async { tx.head(&key(1)).await }).unwrap();
    assert_eq!(
        (head.id, head.phase, head.missing, head.routed, head.owner_doubt),
        (one, Phase::Open, false, false, false)
    );
    assert!(write!(bench.store, |tx| async { tx.head(&key(2)).await }).is_none());
    assert_eq!(write!(bench.store, |tx| tx.rev_of(one)), Some((1, false)));
    assert_eq!(write!(bench.store, |tx| tx.rev_of(id(99))), None);
    opened(&bench, 3).await;
    let heads = write!(bench.store, |tx| async {
        let prod = RuntimeName::new("prod");
        let other = tx.heads_of(&RuntimeName::new("other"), &["t1"]).await?;
        assert!(other.is_empty(), "{other:?}");
        tx.heads_of(&prod, &["t1", "t\"2", ""]).await
    });
    let [(found, head)] = heads.as_slice() else { panic!("{heads:?}") };
    assert_eq!((found, head.id, head.phase), (&key(1), one, Phase::Open));

    let changed = Form { prompt: "other".into(), ..form() };
    write!(bench.store, |tx| async { tx.set_form(one, &changed, Some("ctx2")).await });
    write!(bench.store, |tx| async { tx.set_owner(one, Some(&dana()), true).await });
    write!(bench.store, |tx| tx.set_routed(one));
    let loaded = write!(bench.store, |tx| tx.interaction(one, false)).unwrap();
    assert_eq!(
        (loaded.form.prompt.as_str(), loaded.context.as_deref(), loaded.routed),
        ("other", Some("ctx2"), true)
    );
    assert_eq!(loaded.owner, Some(dana()));
    assert!(write!(bench.store, |tx| async { tx.head(&key(1)).await }).unwrap().owner_doubt);
}

#[rstest]
#[tokio::test]
async fn every_state_of_the_machine_is_kept(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let bench = Bench::new(on).await;
    let one = opened(&bench, 1).await;
    let digest = form().digest(&key(1));
    let (first, second) = (clicked(&bench, 10, one).await, clicked(&bench, 11, one).await);
    let vote = Vote { click: first, subject: dana(), digest: digest.clone() };
    saved(&bench, one, {
        let vote = vote.clone();
        move |m| m.votes = vec![vote]
    })
    .await;
    saved(&bench, one, |m| m.votes.clear()).await;
    write!(bench.store, |tx| tx.vote_voided(first, Why::Changed));
    // The same person may vote again with another click.
    let again = Vote { click: second, ..vote };
    saved(&bench, one, move |m| m.votes = vec![again]).await;

    let live = claim(1, first, &digest);
    saved(&bench, one, {
        let live = live.clone();
        move |m| {
            m.claims = 1;
            m.state = State::Answering(live);
        }
    })
    .await;
    saved(&bench, one, |m| {
        let State::Answering(claim) = &mut m.state else { panic!() };
        claim.in_flight = true;
    })
    .await;
    saved(&bench, one, |m| {
        let State::Answering(claim) = &mut m.state else { panic!() };
        (claim.in_flight, claim.sent) = (false, Sent::Maybe);
        claim.ended = Some(End::Resolved { who: Some("kim".into()), what: None });
        (claim.accepted_at, claim.contradiction) =
            (Some(START), Contradiction { first: Some(START), ..Contradiction::default() });
    })
    .await;
    // Freed, possibly received: a candidate; then a second claim; then both back.
    saved(&bench, one, |m| {
        let State::Answering(claim) = std::mem::replace(&mut m.state, State::Open) else { panic!() };
        m.candidates = vec![Claim { ended: None, candidate: true, ..claim }];
    })
    .await;
    let other = claim(2, second, &digest);
    let answer = other.answer;
    saved(&bench, one, move |m| {
        m.claims = 2;
        m.state = State::Answering(other);
    })
    .await;
    let stored = write!(bench.store, |tx| tx.answer(answer)).unwrap();
    assert_eq!((stored.interaction, stored.click, stored.subject, stored.attempts), (one, second, dana(), 0));
    assert_eq!((stored.message_id.as_str(), stored.body), ("cs-test:eff", json!({ "message": { "n": 1 } })));
    write!(bench.store, |tx| tx.answer_attempted(answer));
    write!(bench.store, |tx| tx.answer_said(answer, "working"));
    assert_eq!(write!(bench.store, |tx| tx.answer(answer)).unwrap().attempts, 1);
    assert!(write!(bench.store, |tx| tx.answer(AnswerId(Uuid::nil()))).is_none());
    saved(&bench, one, move |m| {
        m.state = State::Settled {
            how: How::Ours {
                answer,
                click: second,
                subject: dana(),
                decision: Decision::Deny { reason: Some("no".into()) },
            },
            at: START,
            contradiction: Contradiction { first: Some(START), count: 2 },
        };
        (m.votes, m.candidates) = (vec![], vec![]);
    })
    .await;
    assert_eq!(write!(bench.store, |tx| async { tx.head(&key(1)).await }).unwrap().phase, Phase::Settled);
}

/// Two live claims of one interaction cannot be stored, and a machine that moved on is not overwritten.
#[rstest]
#[tokio::test]
async fn the_database_itself_holds_one_claim(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let bench = Bench::new(on).await;
    let one = opened(&bench, 1).await;
    let digest = form().digest(&key(1));
    let (first, second) = (clicked(&bench, 10, one).await, clicked(&bench, 11, one).await);
    let (a, b) = (claim(1, first, &digest), claim(2, second, &digest));
    saved(&bench, one, move |m| {
        m.claims = 1;
        m.state = State::Answering(a);
    })
    .await;
    let refused = bench
        .store
        .write(move |tx| {
            Box::pin(async move { tx.insert_answer(one, &b, "cs-test:eff:2", &json!({}), START).await })
        })
        .await;
    assert!(matches!(refused, Err(StoreError::Conflict(_))), "{refused:?}");
    let mut stale = write!(bench.store, |tx| tx.interaction(one, false)).unwrap();
    saved(&bench, one, |m| m.read_at = Millis(START.0 + 1)).await;
    let refused = bench
        .store
        .write(move |tx| {
            Box::pin(async move {
                let machine = stale.machine.clone();
                tx.save(&mut stale, machine, true, None, START).await
            })
        })
        .await;
    assert!(matches!(refused, Err(StoreError::Conflict(_))), "{refused:?}");
}

#[rstest]
#[tokio::test]
async fn interactions_are_found_by_what_is_known_of_them(
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
) {
    let bench = Bench::new(on).await;
    let prod = RuntimeName::new("prod");
    for n in 1..=3 {
        opened(&bench, n).await;
    }
    saved(&bench, id(3), |m| {
        m.state = State::Settled { how: How::Gone, at: START, contradiction: Contradiction::default() }
    })
    .await;
    saved(&bench, id(2), |m| m.missing_since = Some(START)).await;
    let ids = |found: Vec<InteractionId>| found.into_iter().map(|id| id.0.as_u128()).collect::<Vec<_>>();
    assert_eq!(
        ids(write!(bench.store, |tx| async { tx.unsettled_of_task(&RuntimeName::new("prod"), "t1").await })),
        [1]
    );
    // Ended, and asked to be read again.
    assert_eq!(
        ids(write!(bench.store, |tx| async { tx.unsettled_of_task(&RuntimeName::new("prod"), "t3").await })),
        [3]
    );
    let open = write!(bench.store, |tx| async { tx.open_after(&RuntimeName::new("prod"), id(1), 10).await });
    assert_eq!(open.iter().map(|o| (o.id.0.as_u128(), o.task.as_str())).collect::<Vec<_>>(), [(2, "t2")]);
    let due = write!(bench.store, |tx| async {
        tx.due_readings(&RuntimeName::new("prod"), START.plus(Duration::from_secs(5)), 10).await
    });
    assert!(due.iter().any(|o| o.id == id(2)), "{due:?}");
    let name = prod.clone();
    assert_eq!(write!(bench.store, |tx| async { tx.missing_since(&name, "t2").await }), [Some(START)]);
    let name = prod.clone();
    assert_eq!(write!(bench.store, |tx| async { tx.absence(&name, Millis(START.0 - 1)).await }), (2, 1));
    let name = prod.clone();
    assert_eq!(write!(bench.store, |tx| async { tx.absence(&name, START).await }), (2, 0));
    let name = prod.clone();
    let (open, answering) = write!(bench.store, |tx| async { tx.waiting(&name).await });
    assert!(open + answering >= 2, "{open} {answering}");
    let all = write!(bench.store, |tx| tx.interactions_after(id(0), false, 10));
    assert_eq!(ids(all.iter().map(|i| i.id).collect()), [1, 2, 3]);
    let open = write!(bench.store, |tx| tx.interactions_after(id(0), true, 1));
    assert_eq!(ids(open.iter().map(|i| i.id).collect()), [1]);
    assert_eq!(ids(write!(bench.store, |tx| tx.unrouted_after(id(0), 10))), [1, 2]);
    for (text, found) in [(id(2).to_string(), 2), ("eff_2".to_owned(), 2), (id(2).short(), 2)] {
        let found_id = write!(bench.store, |tx| async { tx.find_interaction(&text).await });
        assert_eq!(found_id.map(|id| id.0.as_u128()), Some(found));
    }
    assert_eq!(write!(bench.store, |tx| tx.find_interaction("nothing")), None);
}

fn at(channel: &str, thread: Option<&str>) -> Destination {
    Destination { channel: channel.into(), thread: thread.map(str::to_owned) }
}

#[rstest]
#[tokio::test]
async fn a_card_goes_its_way(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let bench = Bench::new(on).await;
    let one = opened(&bench, 1).await;
    let card = CardId(Uuid::from_u128(1));
    let place = "slack:acme:#ops";
    assert!(write!(bench.store, |tx| tx.insert_card(card, one, place, "acme", false, START)));
    let second = CardId(Uuid::from_u128(2));
    assert!(
        !write!(bench.store, |tx| tx.insert_card(second, one, place, "acme", true, START)),
        "one card a place"
    );
    let load = async || write!(bench.store, |tx| tx.card(card)).unwrap();
    assert_eq!((load().await.state, load().await.at()), (CardState::Queued, None));

    assert!(write!(bench.store, |tx| async { tx.post_sent(card, START, 3, &at("C1", None), true).await }));
    let row = load().await;
    assert_eq!(
        (row.state, row.posting, row.post_rev, row.cut),
        (CardState::Posting, Some(START), Some(3), true)
    );
    write!(bench.store, |tx| tx.post_not_found(card, START));
    write!(bench.store, |tx| tx.post_not_found(card, Millis(START.0 + 9)));
    assert_eq!((load().await.empty_reads, load().await.empty_read), (2, Some(START)));
    write!(bench.store, |tx| tx.post_not_sent(card));
    assert_eq!(load().await.state, CardState::Queued);
    assert!(write!(bench.store, |tx| async {
        tx.post_sent(card, START, 4, &at("C1", Some("0.000100")), false).await
    }));
    assert_eq!(load().await.thread.as_deref(), Some("0.000100"));
    let there = MessageRef { channel: "C1".into(), message: "1.000100".into() };
    let message = there.clone();
    assert!(write!(bench.store, |tx| async { tx.posted(card, &message, 4).await }));
    let other = MessageRef { message: "1.000200".into(), ..there.clone() };
    assert!(!write!(bench.store, |tx| async { tx.posted(card, &other, 4).await }), "live already");
    assert_eq!(
        (load().await.state, load().await.at(), load().await.shown_rev),
        (CardState::Live, Some(there.clone()), Some(4))
    );

    assert!(write!(bench.store, |tx| tx.edit_sent(card, START, false)));
    assert_eq!(load().await.editing, Some(START));
    write!(bench.store, |tx| tx.edit_not_sent(card));
    assert_eq!(load().await.editing, None);
    assert!(write!(bench.store, |tx| tx.edit_sent(card, START, false)));
    assert!(write!(bench.store, |tx| tx.edited(card, 5, Some(Millis(START.0 + 60_000)))));
    assert_eq!((load().await.shown_rev, load().await.confirm), (Some(5), Some(Millis(START.0 + 60_000))));
    assert!(!write!(bench.store, |tx| tx.edited(card, 4, None)), "an older revision overwrites nothing");

    let digest = form().digest(&key(1));
    let tokens = vec![(Control::Approve, "k_a".to_owned()), (Control::Deny, "k_d".to_owned())];
    for _ in 0..2 {
        let (digest, tokens) = (digest.clone(), tokens.clone());
        write!(bench.store, |tx| async { tx.insert_tokens(card, 5, &digest, &tokens).await });
    }
    let mut kept = write!(bench.store, |tx| tx.tokens_of(card, 5));
    kept.sort_by_key(|(_, token)| token.clone());
    assert_eq!(kept, tokens);
    let token = write!(bench.store, |tx| tx.token("k_d")).unwrap();
    assert_eq!(
        (token.card, token.interaction, token.control.as_str(), token.rev, token.digest),
        (card, one, "deny", 5, digest)
    );
    assert!(write!(bench.store, |tx| tx.token("k_nobody")).is_none());

    let copy = MessageRef { channel: "C1".into(), message: "2.000100".into() };
    for new in [true, false] {
        let copy = copy.clone();
        assert_eq!(write!(bench.store, |tx| async { tx.insert_copy(card, &copy).await }), new);
    }
    assert_eq!(write!(bench.store, |tx| tx.copies_of(card)), std::slice::from_ref(&copy));
    write!(bench.store, |tx| async { tx.delete_copy(&copy).await });
    assert_eq!(write!(bench.store, |tx| tx.copies_of(card)), []);

    write!(bench.store, |tx| tx.set_card_state(card, CardState::Frozen));
    write!(bench.store, |tx| tx.replied(card, 7));
    assert_eq!((load().await.state, load().await.shown_rev), (CardState::Frozen, Some(7)));
    assert_eq!(write!(bench.store, |tx| tx.cards_of(one)).len(), 1);

    write!(bench.store, |tx| tx.leave_thread(card));
    assert_eq!(load().await.thread.as_deref(), Some(""));
}

#[rstest]
#[tokio::test]
async fn a_click_has_one_outcome(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let bench = Bench::new(on).await;
    let one = opened(&bench, 1).await;
    let click = clicked(&bench, 10, one).await;
    let loaded = write!(bench.store, |tx| tx.click(click)).unwrap();
    assert_eq!(
        (loaded.state, loaded.chat_user.as_str(), loaded.received),
        (ClickState::Stored, "U0DANA", START)
    );
    assert_eq!(loaded.reply.as_deref(), Some("https://hooks.slack.com/x"));
    assert_eq!(loaded.said.as_deref(), Some("{\"groups\":[\"30\"]}"));
    assert_eq!(loaded.reason.as_deref(), Some("  not <b>today</b> & \u{1f642}"), "exactly as it was typed");
    assert!(!format!("{loaded:?}").contains("hooks"), "an address for answers is a secret");
    assert_eq!(loaded.pressed.unwrap().interaction, one);
    let decide = async |state| {
        let decided = Decided {
            realm: Some("T0ACME"),
            subject: Some("dana"),
            rule: Some("approvers"),
            why: None,
            policy: Some("p"),
        };
        write!(bench.store, |tx| async { tx.decide_click(click, state, &decided, START).await })
    };
    assert!(decide(ClickState::Claimed).await);
    assert!(decide(ClickState::Delivered).await);
    assert!(!decide(ClickState::Refused).await, "an outcome is written once");
    let loaded = write!(bench.store, |tx| tx.click(click)).unwrap();
    assert_eq!(
        (loaded.state, loaded.subject.as_deref(), loaded.realm.as_deref()),
        (ClickState::Delivered, Some("dana"), Some("T0ACME"))
    );
    clicked(&bench, 11, one).await;
    let mut counts = write!(bench.store, |tx| tx.count_clicks());
    counts.sort();
    assert_eq!(counts, [("delivered".to_owned(), 1), ("stored".to_owned(), 1)]);
    assert!(!write!(bench.store, |tx| tx.foreign_clicks_since(Millis(0))));

    let who = Identity {
        app_id: "A1".into(),
        team: None,
        enterprise: Some("E1".into()),
        bot_user: "U1".into(),
        can_search: false,
    };
    for app in ["A0", "A1"] {
        let who = Identity { app_id: app.into(), ..who.clone() };
        write!(bench.store, |tx| async { tx.set_install("acme", Platform::Slack, &who, START).await });
    }
    assert_eq!(write!(bench.store, |tx| tx.installs()), [("acme".to_owned(), who)]);
}

/// Which runtimes get no answers, and which answers wait because of that.
#[rstest]
#[tokio::test]
async fn stops_of_answers_stand_until_they_are_taken_back(
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
) {
    let bench = Bench::new(on).await;
    let one = opened(&bench, 1).await;
    let claim = claim(1, clicked(&bench, 10, one).await, &form().digest(&key(1)));
    let answer = claim.answer;
    saved(&bench, one, move |m| {
        m.claims = 1;
        m.state = State::Answering(claim);
    })
    .await;
    assert_eq!(write!(bench.store, |tx| tx.answering("prod")), 1);
    assert_eq!(write!(bench.store, |tx| tx.answering("*")), 1);
    assert_eq!(write!(bench.store, |tx| tx.answering("other")), 0);
    let later = Millis(START.0 + 1);
    assert!(write!(bench.store, |tx| tx.pause("other", START)));
    assert_eq!(write!(bench.store, |tx| tx.answer_paused(answer)), None);
    assert!(write!(bench.store, |tx| tx.pause("prod", later)));
    assert!(!write!(bench.store, |tx| tx.pause("prod", START)), "the first stop stands");
    assert_eq!(write!(bench.store, |tx| tx.answer_paused(answer)), Some(later));
    assert_eq!(write!(bench.store, |tx| tx.paused("prod")), Some(later));
    assert_eq!(write!(bench.store, |tx| tx.paused("new")), None);
    assert!(write!(bench.store, |tx| tx.resume("prod")));
    assert!(!write!(bench.store, |tx| tx.resume("prod")));
    assert_eq!(write!(bench.store, |tx| tx.answer_paused(answer)), None);
    assert!(write!(bench.store, |tx| tx.pause("*", later)));
    assert_eq!(write!(bench.store, |tx| tx.paused("new")), Some(later), "also one that comes later");
    assert_eq!(write!(bench.store, |tx| tx.answer_paused(answer)), Some(later));
    let standing: Vec<_> =
        write!(bench.store, |tx| tx.pauses()).into_iter().map(|pause| (pause.runtime, pause.since)).collect();
    assert_eq!(standing, [("*".to_owned(), later), ("other".to_owned(), START)]);
    assert!(write!(bench.store, |tx| tx.resume("*")), "all of them");
    assert_eq!(write!(bench.store, |tx| tx.pauses()), []);
}

/// The suite is whole: every method of the store is called in it.
#[test]
fn every_store_method_is_called_here() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |folder: &str| {
        let files = std::fs::read_dir(root.join(folder)).unwrap();
        files.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap()).collect::<Vec<_>>()
    };
    let suite = read("tests/it/store_conformance").concat();
    let mut missing = vec![];
    for source in read("src/store") {
        for part in source.split("pub async fn ").skip(1) {
            let name: String = part.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            if !suite.contains(&format!(".{name}(")) && !suite.contains(&format!("::{name}(")) {
                missing.push(name);
            }
        }
    }
    assert!(missing.is_empty(), "not in the conformance suite: {missing:?}");
}

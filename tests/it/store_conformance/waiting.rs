//! What waits for people: outlines, links, kept notices, questions and Homes.

use super::bench::{Bench, START, write};
use crate::world::database::Backend;
use countersign::domain::clock::Millis;
use countersign::domain::form::{Fact, Form, Kind};
use countersign::domain::ids::{CardId, InteractionId, InteractionKey, RuntimeName, Subject};
use countersign::domain::notice::Notice;
use countersign::store::homes::Asked;
use countersign::store::interactions::NewInteraction;
use countersign::store::jobs::JobKind;
use rstest::rstest;
use std::time::Duration;
use uuid::Uuid;

fn fact(label: &str, value: &str) -> Fact {
    Fact { label: label.into(), value: value.into() }
}

fn form(facts: Vec<Fact>) -> Form {
    Form {
        kind: Kind::Approval,
        title: "t".into(),
        prompt: "p".into(),
        facts,
        questions: vec![],
        arguments_withheld: false,
    }
}

async fn opened(bench: &Bench, n: u128, facts: Vec<Fact>) -> InteractionId {
    let key = InteractionKey {
        runtime: RuntimeName::new("prod"),
        agent: "release".into(),
        task: format!("t{n}"),
        external: format!("e{n}"),
    };
    let (id, form, owner) = (InteractionId(Uuid::from_u128(n)), form(facts), Subject::parse("dana").unwrap());
    let digest = form.digest(&key);
    assert!(write!(bench.store, |tx| async move {
        tx.insert_interaction(&NewInteraction {
            id,
            key: &key,
            context: None,
            seen_as: None,
            form: &form,
            owner: Some(&owner),
            digest: &digest,
            opened: START,
            read_at: START,
        })
        .await
    }));
    id
}

#[rstest]
#[tokio::test]
async fn open_interactions_are_looked_through_in_outline(
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
) {
    let bench = Bench::new(on).await;
    assert!(bench.store.take_changes(), "nobody knows what changed before");
    assert!(!bench.store.take_changes());
    let nil = InteractionId(Uuid::nil());
    opened(&bench, 2, vec![fact("tool", "de\0ploy"), fact("server", "ci"), fact("tool", "second")]).await;
    let first = opened(&bench, 1, vec![]).await;
    assert!(bench.store.take_changes());
    let all = write!(bench.store, |tx| tx.outlines(nil, 10));
    let tools: Vec<_> = all.iter().map(|one| (one.id.0.as_u128(), one.form.fact("tool"))).collect();
    assert_eq!(tools, [(1, None), (2, Some("deploy"))], "oldest first; no U+0000 in a column");
    assert_eq!(all[1].form.fact("server"), Some("ci"));
    assert_eq!(
        (all[1].owner.as_ref().map(Subject::as_str), &all[1].form.kind),
        (Some("dana"), &Kind::Approval)
    );
    assert_eq!(write!(bench.store, |tx| tx.outlines(nil, 1)).len(), 1);
    assert_eq!(write!(bench.store, |tx| tx.outlines(first, 10)).len(), 1);
    // Another form has other facts.
    write!(bench.store, |tx| async move { tx.set_form(first, &form(vec![fact("tool", "new")]), None).await });
    assert_eq!(write!(bench.store, |tx| tx.outlines(nil, 1))[0].form.fact("tool"), Some("new"));
    // What is not open is not looked at.
    bench
        .behind_our_back(
            "UPDATE interactions SET state = 'settled', settled_ms = 1, how_json = '{\"how\":\"gone\"}' WHERE id = $1",
            &[first.0],
        )
        .await;
    assert_eq!(write!(bench.store, |tx| tx.outlines(nil, 10)).len(), 1);
    let dana = Subject::parse("dana").unwrap();
    assert_eq!(write!(bench.store, |tx| async move { tx.voted_by(&dana).await }), []);
    assert_eq!(write!(bench.store, |tx| tx.voters(first)), [] as [String; 0]);
}

#[rstest]
#[tokio::test]
async fn the_address_of_a_message_is_kept(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let bench = Bench::new(on).await;
    let interaction = opened(&bench, 1, vec![]).await;
    let card = CardId(Uuid::from_u128(7));
    write!(bench.store, |tx| tx.insert_card(card, interaction, "slack:acme:C1", "acme", false, START));
    assert_eq!(write!(bench.store, |tx| tx.card_link(card)), None);
    write!(bench.store, |tx| tx.set_card_link(card, Some("https://x.test/p1")));
    assert_eq!(write!(bench.store, |tx| tx.card_link(card)).as_deref(), Some("https://x.test/p1"));
    write!(bench.store, |tx| tx.set_card_link(card, None));
    assert_eq!(write!(bench.store, |tx| tx.card_link(card)), None);
}

#[rstest]
#[tokio::test]
async fn a_kept_notice_stands_until_it_was_seen(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let bench = Bench::new(on).await;
    let of = ("acme", "T1", "U1");
    let (one, two) = (Uuid::from_u128(1), Uuid::from_u128(2));
    write!(bench.store, |tx| async move {
        tx.keep_notice(two, of, &Notice::MustView, Millis(START.0 + 1)).await?;
        tx.keep_notice(one, of, &Notice::SelfApproval, START).await?;
        // The same job once more.
        tx.keep_notice(one, of, &Notice::SelfApproval, Millis(START.0 + 9)).await?;
        tx.keep_notice(Uuid::from_u128(3), ("acme", "T2", "U1"), &Notice::MustView, START).await?;
        tx.keep_notice(Uuid::from_u128(4), ("beta", "T1", "U1"), &Notice::MustView, START).await
    });
    let kept = write!(bench.store, |tx| tx.kept_notices(of, START, 5));
    let ids: Vec<_> = kept.iter().map(|kept| (kept.id, kept.kept)).collect();
    assert_eq!(ids, [(one, START), (two, Millis(START.0 + 1))], "oldest first, this account's alone");
    assert_eq!(kept[0].notice, Notice::SelfApproval);
    assert_eq!(write!(bench.store, |tx| tx.kept_notices(of, START, 1)).len(), 1);
    write!(bench.store, |tx| async move {
        tx.notice_shown(one, Millis(START.0 + 50)).await?;
        tx.notice_shown(one, Millis(START.0 + 500)).await
    });
    assert_eq!(
        write!(bench.store, |tx| tx.kept_notices(of, Millis(START.0 + 49), 5)).len(),
        2,
        "for a while"
    );
    assert_eq!(write!(bench.store, |tx| tx.kept_notices(of, Millis(START.0 + 50), 5)).len(), 1);
}

#[rstest]
#[tokio::test]
async fn a_question_is_answered_once(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let bench = Bench::new(on).await;
    let id = Uuid::from_u128(1);
    let asked = Asked {
        install: "acme".into(),
        chat_user: "U1".into(),
        channel: Some("C1".into()),
        reply: Some("https://hooks.slack.com/secret".into()),
        home_team: Some("1404800000000000010".into()),
        said: Some("{}".into()),
        received: START,
    };
    assert!(!format!("{asked:?}").contains("secret"));
    let stored = asked.clone();
    write!(bench.store, |tx| async move { tx.ask(id, &stored).await });
    assert_eq!(write!(bench.store, |tx| tx.asked(id)), Some(asked));
    write!(bench.store, |tx| tx.answered(id));
    assert_eq!(write!(bench.store, |tx| tx.asked(id)), None);
}

#[rstest]
#[tokio::test]
async fn a_home_has_one_job_that_runs_again_when_it_is_wanted_meanwhile(
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
) {
    let bench = Bench::new(on).await;
    let (new, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
    let later = Millis(START.0 + 5);
    let (id, again) = write!(bench.store, |tx| async move {
        Ok((tx.open_home(new, "acme", "U1", START).await?, tx.open_home(other, "acme", "U1", later).await?))
    });
    assert_eq!((id, again), (new, new), "one for each account");
    let home = write!(bench.store, |tx| tx.home(id)).unwrap();
    assert_eq!((home.opened, home.published, home.shown), (later, None, None));
    assert_eq!(write!(bench.store, |tx| tx.homes_opened(START, Uuid::nil(), 10)).len(), 1);
    assert_eq!(write!(bench.store, |tx| tx.homes_opened(later, Uuid::nil(), 10)).len(), 0);
    write!(bench.store, |tx| tx.home_published(id, START, "hash"));
    let home = write!(bench.store, |tx| tx.home(id)).unwrap();
    assert_eq!((home.published, home.shown.as_deref()), (Some(START), Some("hash")));

    for at in [50, 10, 90] {
        write!(bench.store, |tx| tx.queue_home(id, "h:1", 5, Millis(START.0 + at)));
    }
    assert_eq!(write!(bench.store, |tx| tx.pending_for(id)), 1);
    bench.clock.pass(Duration::from_millis(10));
    let jobs = bench.claim("w", 10).await;
    assert_eq!(jobs.iter().map(|job| job.kind).collect::<Vec<_>>(), [JobKind::Home]);
    let job = jobs.into_iter().next().unwrap();
    write!(bench.store, |tx| tx.queue_home(id, "h:1", 5, Millis(START.0 + 10)));
    assert!(write!(bench.store, |tx| async { tx.done(&job).await }));
    let job = bench.claim("w", 10).await.into_iter().next().expect("wanted meanwhile");
    assert!(write!(bench.store, |tx| async { tx.done(&job).await }));
    assert_eq!(write!(bench.store, |tx| tx.pending_for(id)), 0);
}

/// Questions go after three days, the rest with everything that is old; what has a job stays.
#[rstest]
#[tokio::test]
async fn small_rows_go_with_age(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let bench = Bench::new(on).await;
    let keep = Duration::from_hours(24 * 30);
    write!(bench.store, |tx| async move {
        let id = tx.open_home(Uuid::from_u128(1), "acme", "U1", START).await?;
        tx.queue_home(id, "h:1", 5, START).await?;
        tx.open_home(Uuid::from_u128(2), "acme", "U2", START).await?;
        tx.keep_notice(Uuid::from_u128(3), ("acme", "T1", "U1"), &Notice::MustView, START).await?;
        let reply = Some("https://hooks.slack.com/x".to_owned());
        let chat_user = "U1".to_owned();
        let asked = Asked {
            install: "acme".into(),
            chat_user,
            channel: None,
            reply,
            home_team: None,
            said: None,
            received: START,
        };
        tx.ask(Uuid::from_u128(4), &asked).await
    });
    let after = |hours: u64| START.plus(Duration::from_hours(hours)).plus(Duration::from_millis(1));
    assert_eq!(bench.store.sweep(after(71), keep).await.unwrap().small, 0);
    assert_eq!(bench.store.sweep(after(72), keep).await.unwrap().small, 1, "the question");
    assert_eq!(
        bench.store.sweep(after(24 * 30), keep).await.unwrap().small,
        2,
        "the Home without a job, the notice"
    );
}

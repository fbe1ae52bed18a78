//! What goes when it is old, and what stays.

use super::bench::{Bench, START, job, write};
use crate::world::database::Backend;
use countersign::domain::audit::AuditEntry;
use countersign::domain::clock::Millis;
use countersign::store::jobs::JobKind;
use countersign::store::retention::Swept;
use countersign::store::tasks::NewTask;
use rstest::rstest;
use std::time::Duration;
use uuid::Uuid;

const DAY: Duration = Duration::from_hours(24);

/// An interaction with a card, its token and copy, a click, a vote and an answer. Ids: n * 10 …
async fn whole(bench: &Bench, n: u128, settled: bool) {
    let id = |part: u128| Uuid::from_u128(n * 10 + part);
    let state = if settled {
        "UPDATE interactions SET state = 'settled', settled_ms = 1800000000000 WHERE id = $1"
    } else {
        "UPDATE interactions SET claims = 1 WHERE id = $1"
    };
    let rows: [(&'static str, &[Uuid]); 10] = [
        (
            "INSERT INTO interactions (id, runtime, agent, task, external, kind, form_json, digest, state, opened_ms, \
             read_ms) VALUES ($1, 'prod', 'a', 't', CAST(random() AS TEXT), 'approval', '{}', 'd', 'open', \
             1800000000000, 1800000000000)",
            &[id(0)],
        ),
        (
            "INSERT INTO cards (id, interaction_id, place, install, state, created_ms) \
             VALUES ($1, $2, 'p', 'acme', 'live', 1800000000000)",
            &[id(1), id(0)],
        ),
        (
            "INSERT INTO tokens (token, card_id, rev, control, digest) \
             VALUES (CAST(random() AS TEXT), $1, 1, 'approve', 'd')",
            &[id(1)],
        ),
        ("INSERT INTO copies (card_id, channel, message) VALUES ($1, 'C', CAST(random() AS TEXT))", &[id(1)]),
        (
            "INSERT INTO clicks (id, dedupe_key, platform, chat_user, reply, interaction_id, received_ms, state) \
             VALUES ($1, CAST(random() AS TEXT), 'slack', 'U1', 'https://reply', $2, 1800000000000, 'delivered')",
            &[id(2), id(0)],
        ),
        (
            "INSERT INTO openings (token, card_id, rev, digest, control, page, platform, realm, chat_user) \
             VALUES (CAST(random() AS TEXT), $1, 1, 'd', 'show_all', 1, 'slack', 'T', 'U')",
            &[id(1)],
        ),
        (
            "INSERT INTO full_views (interaction_id, digest, platform, realm, chat_user, seen_ms) \
             VALUES ($1, 'd', 'slack', 'T', 'U', 1)",
            &[id(0)],
        ),
        (
            "INSERT INTO votes (interaction_id, click_id, subject, digest, position) VALUES ($1, $2, 's', 'd', 1)",
            &[id(0), id(2)],
        ),
        (
            "INSERT INTO answers (id, interaction_id, number, click_id, subject, decision_json, digest, message_id, \
             body_json, claimed_ms, deliver_until_ms, sent_json) \
             VALUES ($1, $2, 1, $3, 's', '{}', 'd', 'm', '{}', 1, 1, '{}')",
            &[id(3), id(0), id(2)],
        ),
        (state, &[id(0)]),
    ];
    for (sql, ids) in rows {
        assert_eq!(bench.behind_our_back(sql, ids).await, 1, "{sql}");
    }
}

async fn sweep(bench: &Bench) -> Swept {
    bench.store.sweep(bench.now(), DAY).await.unwrap()
}

#[rstest]
#[tokio::test]
async fn a_settled_interaction_goes_with_all_its_parts_and_nothing_else_does(
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
) {
    let bench = Bench::new(on).await;
    whole(&bench, 1, true).await;
    whole(&bench, 2, false).await;
    // Each of these has a job left, about one of its parts.
    for (n, part) in [(3, 0), (4, 1), (5, 2), (6, 3)] {
        whole(&bench, n, true).await;
        bench.queue(job(JobKind::Notice, &n.to_string(), 1, n * 10 + part)).await;
    }
    let entry = AuditEntry { event: "settled".into(), ..AuditEntry::default() };
    write!(bench.store, |tx| tx.record(entry, START, [0; 16]));

    bench.clock.pass(DAY);
    assert_eq!(sweep(&bench).await, Swept { replies: 6, ..Swept::default() }, "not old enough yet");
    bench.clock.jump(1);
    assert_eq!(sweep(&bench).await, Swept { interactions: 1, ..Swept::default() });
    for table in
        ["interactions", "cards", "tokens", "openings", "full_views", "copies", "clicks", "votes", "answers"]
    {
        assert_eq!(bench.number(&format!("SELECT COUNT(*) FROM {table}")).await, 5, "{table}");
    }
    let jobs = bench.claim("w", 10).await;
    assert_eq!(jobs.len(), 4);
    for job in jobs {
        write!(bench.store, |tx| tx.done(&job));
    }
    assert_eq!(sweep(&bench).await, Swept { interactions: 4, ..Swept::default() });
    assert_eq!(bench.number("SELECT COUNT(*) FROM interactions WHERE state = 'open'").await, 1);
    assert_eq!(bench.store.audit_page(1).await.unwrap().len(), 1, "the log keeps everything");
}

#[rstest]
#[tokio::test]
async fn old_rows_without_an_interaction_go_in_batches(
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
) {
    let bench = Bench::new(on).await;
    let insert = "INSERT INTO clicks (id, dedupe_key, platform, chat_user, received_ms, state) \
        VALUES ($1, CAST(random() AS TEXT), 'slack', 'U1', 1800000000000, 'refused')";
    for n in 0..120 {
        bench.behind_our_back(insert, &[Uuid::from_u128(n)]).await;
    }
    // Acknowledged and not decided: kept, however old.
    bench.behind_our_back("UPDATE clicks SET state = 'stored' WHERE id = $1", &[Uuid::from_u128(7)]).await;
    write!(bench.store, |tx| async move {
        for n in 200..320 {
            tx.keep_unreadable(Uuid::from_u128(n), "x", START, b"x").await?;
            tx.note_delivery(&format!("slack:event:{n}"), START).await?;
        }
        for name in ["ended", "watched"] {
            let task = NewTask { runtime: "r".into(), task: name.into(), context: None, subject: None };
            tx.register_task(task, START).await?;
        }
        tx.task_ended("r", "ended", START).await
    });
    bench.queue(job(JobKind::Post, "p", 1, 1)).await;
    bench.queue(job(JobKind::Notice, "q", 1, 2)).await;
    let post = write!(bench.store, |tx| tx.claim("w", &[JobKind::Post], 1, DAY)).remove(0);
    write!(bench.store, |tx| tx.dead(&post, "no"));

    assert_eq!(bench.store.sweep(START, DAY).await.unwrap(), Swept::default());
    let old = bench.store.sweep(Millis(START.plus(DAY).0 + 1), DAY).await.unwrap();
    assert_eq!(old, Swept { clicks: 119, tasks: 1, jobs: 1, unreadable: 120, ..Swept::default() });
    assert_eq!(bench.number("SELECT COUNT(*) FROM clicks").await, 1);
    assert_eq!(bench.number("SELECT COUNT(*) FROM jobs").await, 1);
    assert_eq!(bench.number("SELECT COUNT(*) FROM tasks").await, 1);
    // Copies of a delivery may come for a while.
    let days = bench.store.sweep(START.plus(DAY * 4), DAY).await.unwrap();
    assert_eq!(days, Swept { deliveries: 120, ..Swept::default() });
}

#[rstest]
#[tokio::test]
async fn a_dead_answer_stays_while_its_answer_does(
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
) {
    let bench = Bench::new(on).await;
    whole(&bench, 1, false).await;
    bench.queue(job(JobKind::Answer, "a", 1, 13)).await;
    bench.queue(job(JobKind::Answer, "b", 1, 99)).await;
    for job in bench.claim("w", 10).await {
        write!(bench.store, |tx| tx.dead(&job, "no"));
    }
    bench.clock.pass(DAY * 2);
    assert_eq!(sweep(&bench).await.jobs, 1);
    assert_eq!(write!(bench.store, |tx| tx.jobs(10))[0].reference, Uuid::from_u128(13));
}

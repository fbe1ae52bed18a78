//! The audit log in the database.

use super::bench::{Bench, START, write};
use crate::world::database::Backend;
use countersign::domain::audit::{AuditEntry, Broken, Flaw, Head, verify};
use countersign::domain::audit_file::to_jsonl;
use countersign::domain::clock::Millis;
use countersign::store::StoreError;
use futures_util::FutureExt;
use futures_util::future::join_all;
use rstest::rstest;
use std::io::Write;
use std::process::{Command, Stdio};

fn click(n: usize) -> AuditEntry {
    AuditEntry {
        event: "click".into(),
        runtime: Some("prod".into()),
        interaction: Some(format!("i{n}")),
        subject: Some("dana@example.com".into()),
        digest: Some("00ff".into()),
        decision: Some("approved".into()),
        rule: Some("approvers".into()),
        policy: Some(String::new()),
        runtime_said: None,
        clicker: Some(format!("slack:T1:U{}", n % 3)),
        reason: Some("\"why\", not\0\n".into()),
    }
}

async fn record(bench: &Bench, n: usize) {
    let at = Millis(START.0 + i64::try_from(n).unwrap());
    write!(bench.store, |tx| tx.record(click(n), at, [u8::try_from(n % 250).unwrap(); 16]));
}

#[rstest]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writers_at_once_make_one_chain_without_gaps(
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
) {
    let bench = Bench::new(on).await;
    let write = |n: usize| {
        bench.store.write(move |tx| {
            async move {
                tx.record(click(n), START, [1; 16]).await?;
                // What fails takes its row with it.
                if n.is_multiple_of(4) { Err(StoreError::Conflict("no".into())) } else { Ok(()) }
            }
            .boxed()
        })
    };
    let written = join_all((0..80).map(write)).await.into_iter().flatten().count();
    assert_eq!(written, 60);
    let rows = bench.store.audit_page(1).await.unwrap();
    let head = verify(&rows, None).unwrap();
    assert_eq!(head.seq, 60);
    assert_eq!(write!(bench.store, |tx| tx.audit_head()), head);
    assert_eq!(bench.store.verify_audit(None).await.unwrap(), Ok(head));
}

#[rstest]
#[tokio::test]
async fn rows_come_back_as_they_were_hashed(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let bench = Bench::new(on).await;
    assert_eq!(bench.store.verify_audit(None).await.unwrap(), Ok(Head::default()));
    for n in 0..5 {
        record(&bench, n).await;
    }
    write!(bench.store, |tx| tx.record(
        AuditEntry { event: "settled".into(), ..AuditEntry::default() },
        START,
        [0; 16]
    ));
    let rows = bench.store.audit_page(1).await.unwrap();
    assert_eq!(rows.len(), 6);
    assert_eq!(rows[1].at, "2027-01-15T08:00:00.001Z");
    assert_eq!(rows[1].reason.as_deref(), Some("\"why\", not\u{fffd}\n"));
    assert_eq!((rows[1].policy.as_deref(), rows[1].salt.clone()), (None, Some("01".repeat(16))));
    assert_eq!((&rows[5].private, &rows[5].salt), (&None, &None));
    assert_eq!(bench.store.audit_page(4).await.unwrap(), rows[3..]);
    assert_eq!(bench.store.audit_page(7).await.unwrap(), []);
    let two = write!(bench.store, |tx| tx.audit_rows(2, 2));
    assert_eq!(two, rows[1..3]);

    // The file a person exports, checked by somebody else's program.
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/outside/audit_check.py");
    let mut python = Command::new("python3")
        .arg(script)
        .env("PYTHONIOENCODING", "utf-8")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let text: String = rows.iter().map(to_jsonl).collect();
    python.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let said = python.wait_with_output().unwrap().stdout;
    let head = write!(bench.store, |tx| tx.audit_head());
    assert_eq!(String::from_utf8(said).unwrap().trim(), head.to_string());
}

#[rstest]
#[tokio::test]
async fn erasing_a_person_leaves_the_chain_valid_and_is_recorded(
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
) {
    let bench = Bench::new(on).await;
    for n in 0..7 {
        record(&bench, n).await;
    }
    let before = write!(bench.store, |tx| tx.audit_head());
    assert_eq!(write!(bench.store, |tx| tx.erase_clicker("slack:T1:U0", START)), 3);
    let rows = bench.store.audit_page(1).await.unwrap();
    let erased: Vec<i64> =
        rows.iter().filter(|row| row.private.is_some() && row.salt.is_none()).map(|row| row.seq).collect();
    assert_eq!(erased, [1, 4, 7]);
    assert!(erased.iter().all(|seq| {
        let row = &rows[usize::try_from(seq - 1).unwrap()];
        row.clicker.is_none() && row.reason.is_none() && row.subject.is_some()
    }));
    assert_eq!((rows[7].event.as_str(), rows[7].clicker.as_deref(), rows.len()), ("erase", None, 8));
    assert!(bench.store.verify_audit(Some(before)).await.unwrap().is_ok());
    assert_eq!(write!(bench.store, |tx| tx.erase_clicker("slack:T1:U0", START)), 0);
}

#[rstest]
#[case("UPDATE audit SET decision = 'denied' WHERE seq = 4", 4, Flaw::Hash)]
#[case("UPDATE audit SET at_ms = at_ms + 1 WHERE seq = 4", 4, Flaw::Hash)]
#[case("UPDATE audit SET clicker = 'slack:T1:U9' WHERE seq = 4", 4, Flaw::Private)]
#[case("UPDATE audit SET salt = NULL WHERE seq = 4", 4, Flaw::Private)]
#[case("UPDATE audit SET prev = hash WHERE seq = 4", 4, Flaw::Link)]
#[case("DELETE FROM audit WHERE seq = 4", 4, Flaw::Missing)]
#[case("DELETE FROM audit WHERE seq = 1", 1, Flaw::MissingAtStart)]
#[case("DELETE FROM audit WHERE seq > 5", 6, Flaw::Missing)]
#[case("DELETE FROM audit", 1, Flaw::Missing)]
#[tokio::test]
async fn what_is_changed_behind_our_back_is_found(
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
    #[case] sql: &'static str,
    #[case] seq: i64,
    #[case] flaw: Flaw,
) {
    let bench = Bench::new(on).await;
    for n in 0..7 {
        record(&bench, n).await;
    }
    assert!(bench.behind_our_back(sql, &[]).await > 0);
    assert_eq!(bench.store.verify_audit(None).await.unwrap(), Err(Broken { seq, flaw }));
}

#[rstest]
#[tokio::test]
async fn a_log_cut_with_its_head_is_found_by_a_saved_head_only(
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
) {
    let bench = Bench::new(on).await;
    for n in 0..7 {
        record(&bench, n).await;
    }
    let saved = write!(bench.store, |tx| tx.audit_head());
    bench.behind_our_back("DELETE FROM audit WHERE seq > 5", &[]).await;
    let cut = "UPDATE audit_head SET seq = 5, hash = (SELECT hash FROM audit WHERE seq = 5)";
    bench.behind_our_back(cut, &[]).await;
    assert_eq!(bench.store.verify_audit(None).await.unwrap().unwrap().seq, 5);
    let broken = Broken { seq: 6, flaw: Flaw::Missing };
    assert_eq!(bench.store.verify_audit(Some(saved)).await.unwrap(), Err(broken));
}

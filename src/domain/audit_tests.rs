use super::*;
use crate::domain::audit_file::to_jsonl;
use proptest::prelude::*;
use std::io::Write;
use std::process::{Command, Stdio};

/// Text that needs care in JSON, CSV or hashing.
fn text() -> impl Strategy<Value = Option<String>> {
    prop_oneof![
        2 => Just(None),
        1 => Just(Some(String::new())),
        3 => "[a-z\"\\\\,\n\u{0}\u{7f}\u{2028}äß€😀 =]{1,12}".prop_map(Some),
    ]
}

fn entry() -> impl Strategy<Value = (AuditEntry, i64, [u8; 16])> {
    let words = proptest::collection::vec(text(), 10);
    ("[a-z]{4,8}", words, 0..2_000_000_000_000_i64, any::<[u8; 16]>()).prop_map(|(event, words, at, salt)| {
        let [runtime, interaction, subject, digest, decision, rule, policy, runtime_said, clicker, reason] =
            words.try_into().unwrap();
        let entry = AuditEntry {
            event,
            runtime,
            interaction,
            subject,
            digest,
            decision,
            rule,
            policy,
            runtime_said,
            clicker,
            reason,
        };
        (entry, at, salt)
    })
}

fn chain(entries: Vec<(AuditEntry, i64, [u8; 16])>) -> Vec<AuditRow> {
    let mut head = Head::default();
    entries
        .into_iter()
        .map(|(entry, at, salt)| {
            let row = AuditRow::after(&head, entry, Millis(at), salt);
            head = row.head();
            row
        })
        .collect()
}

fn log() -> impl Strategy<Value = Vec<AuditRow>> {
    proptest::collection::vec(entry(), 1..8).prop_map(chain)
}

fn erase(row: &mut AuditRow) {
    (row.clicker, row.reason, row.salt) = (None, None, None);
}

/// Changes one column; `None` when the change is no change.
fn tampered(row: &AuditRow, column: usize, with: Option<&str>) -> Option<AuditRow> {
    let mut value = serde_json::to_value(row).unwrap();
    let (name, now) = value.as_object_mut().unwrap().iter_mut().nth(column).unwrap();
    if name == "seq" {
        *now = json!(row.seq + 1 + i64::try_from(with.map_or(0, str::len)).unwrap());
    } else if now.is_null() || with.is_some() || !matches!(name.as_str(), "at" | "event" | "prev" | "hash") {
        *now = json!(with);
    }
    let changed: AuditRow = serde_json::from_value(value).ok()?;
    (changed != *row).then_some(changed)
}

proptest! {
    #[test]
    fn an_untouched_log_is_intact_with_every_head_it_had(rows in log()) {
        let head = rows.last().unwrap().head();
        prop_assert_eq!(verify(&rows, None), Ok(head.clone()));
        for row in &rows {
            prop_assert_eq!(verify(&rows, Some(row.head())), Ok(head.clone()));
        }
    }

    #[test]
    fn any_change_of_any_column_is_found(
        rows in log(), at in any::<prop::sample::Index>(), column in 0..17_usize, with in text(), erased in any::<bool>(),
    ) {
        let mut rows = rows;
        let at = at.index(rows.len());
        if erased {
            erase(&mut rows[at]);
        }
        let Some(changed) = tampered(&rows[at], column, with.as_deref()) else { return Ok(()) };
        let mut gone = rows[at].clone();
        erase(&mut gone);
        // Nulling all that is left of the three is an erasure, which is what may happen.
        prop_assume!(changed != gone);
        rows[at] = changed;
        let broken = verify(&rows, None).unwrap_err();
        // Named at the row itself, except a changed hash, which may show at the next.
        prop_assert!(broken.seq == i64::try_from(at).unwrap() + 1, "{broken} for row {}", at + 1);
    }

    #[test]
    fn rows_taken_out_put_in_or_swapped_are_found(
        rows in log(), a in any::<prop::sample::Index>(), b in any::<prop::sample::Index>(),
    ) {
        let (a, b) = (a.index(rows.len()), b.index(rows.len()));
        let mut without = rows.clone();
        without.remove(a);
        if a + 1 < rows.len() {
            prop_assert_eq!(verify(&without, None).unwrap_err().seq, i64::try_from(a).unwrap() + 1);
        }
        let mut twice = rows.clone();
        twice.insert(a, rows[a].clone());
        prop_assert!(verify(&twice, None).is_err());
        if a != b {
            let mut swapped = rows.clone();
            swapped.swap(a, b);
            prop_assert_eq!(verify(&swapped, None).unwrap_err().seq, i64::try_from(a.min(b)).unwrap() + 1);
        }
    }

    #[test]
    fn erased_rows_leave_the_chain_valid(rows in log(), which in any::<u8>()) {
        let head = rows.last().unwrap().head();
        let mut rows = rows;
        for (n, row) in rows.iter_mut().enumerate() {
            if which >> n & 1 == 1 {
                erase(row);
            }
        }
        prop_assert_eq!(verify(&rows, Some(head.clone())), Ok(head));
    }

    #[test]
    fn a_cut_tail_and_a_new_log_are_found_against_a_saved_head(rows in log(), keep in any::<prop::sample::Index>()) {
        let head = rows.last().unwrap().head();
        let kept = &rows[..keep.index(rows.len())];
        prop_assert!(verify(kept, None).is_ok());
        let broken = verify(kept, Some(head.clone())).unwrap_err();
        prop_assert_eq!(broken, Broken { seq: i64::try_from(kept.len()).unwrap() + 1, flaw: Flaw::Missing });

        let entries = rows.iter().map(|row| (AuditEntry { event: "new".into(), runtime: Some(row.at.clone()), ..AuditEntry::default() }, 0, [0; 16]));
        let anew = chain(entries.collect());
        prop_assert!(verify(&anew, None).is_ok());
        prop_assert_eq!(verify(&anew, Some(head)).unwrap_err().flaw, Flaw::Head);
    }

    #[test]
    fn later_rows_alone_need_the_head_before_them(rows in log(), from in any::<prop::sample::Index>()) {
        let from = from.index(rows.len());
        prop_assume!(from > 0);
        let head = rows.last().unwrap().head();
        prop_assert_eq!(verify(&rows[from..], None), Err(Broken { seq: 1, flaw: Flaw::MissingAtStart }));
        prop_assert_eq!(verify(&rows[from..], Some(head.clone())).unwrap_err().flaw, Flaw::MissingAtStart);
        prop_assert_eq!(verify(&rows[from..], Some(rows[from - 1].head())), Ok(head));
    }
}

#[test]
fn a_row_without_a_chat_account_has_nothing_to_erase() {
    let words = |clicker: Option<&str>, reason: Option<&str>| AuditEntry {
        event: "settled".into(),
        clicker: clicker.map(Into::into),
        reason: reason.map(Into::into),
        ..AuditEntry::default()
    };
    for entry in [words(None, None), words(Some(""), Some("why")), words(None, Some("why"))] {
        let row = AuditRow::after(&Head::default(), entry, Millis(0), [1; 16]);
        assert_eq!((row.private, row.clicker, row.reason, row.salt), (None, None, None, None));
    }
    let row = AuditRow::after(&Head::default(), words(Some("discord:1"), Some("")), Millis(0), [1; 16]);
    assert!(row.private.is_some() && row.salt.is_some());
    assert_eq!(row.reason, None);
    assert_eq!(row.at, "1970-01-01T00:00:00.000Z");
}

/// The same value as computed by hand with `sha256sum`, from the documented rule.
#[test]
fn the_documented_rule_gives_this_hash() {
    let entry =
        AuditEntry { event: "click".into(), clicker: Some("discord:1".into()), ..AuditEntry::default() };
    let row = AuditRow::after(&Head::default(), entry, Millis(0), [0xab; 16]);
    let salt = "ab".repeat(16);
    assert_eq!(
        row.private,
        Some(sha256_hex(format!(r#"{salt}{{"clicker":"discord:1","reason":null}}"#).as_bytes()))
    );
    let covered = format!(
        r#"{BEGINNING}{{"at":"1970-01-01T00:00:00.000Z","decision":null,"digest":null,"event":"click","interaction":null,"policy":null,"private":"{}","rule":null,"runtime":null,"runtime_said":null,"seq":1,"subject":null}}"#,
        row.private.as_deref().unwrap()
    );
    assert_eq!(row.hash, sha256_hex(covered.as_bytes()));
}

#[test]
fn a_head_is_written_and_read_back() {
    let head = Head { seq: 12, hash: "0f".repeat(32) };
    assert_eq!(head.to_string().parse(), Ok(head));
    for bad in ["12", "x:00", "1:00", "-1:0000000000000000000000000000000000000000000000000000000000000000"] {
        assert!(bad.parse::<Head>().is_err(), "{bad}");
    }
}

/// Runs the foreign checker over a log.
fn foreign(rows: &[AuditRow]) -> (i32, String) {
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
    let out = python.wait_with_output().unwrap();
    (out.status.code().unwrap(), String::from_utf8(out.stdout).unwrap().trim().to_owned())
}

#[test]
fn a_foreign_hand_agrees() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut rows = chain(proptest::collection::vec(entry(), 200).new_tree(&mut runner).unwrap().current());
    let at = rows.iter().position(|row| row.clicker.is_some()).unwrap();
    erase(&mut rows[at]);
    assert_eq!(foreign(&rows), (0, rows.last().unwrap().head().to_string()));
    rows[99].decision = Some("approved!".into());
    assert_eq!(foreign(&rows), (10, "row 100: hash".into()));
    assert_eq!(verify(&rows, None).unwrap_err(), Broken { seq: 100, flaw: Flaw::Hash });
}

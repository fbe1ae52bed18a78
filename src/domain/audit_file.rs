//! The audit log as text: JSON Lines or CSV, one row each, and reading either back.
//!
//! Invariant: a row written is read back equal, so a file is checked without the database. An empty
//! CSV cell is null, since empty text is stored as null. CSV is RFC 4180 in forty lines of our own:
//! the writer quotes what needs it, the reader takes exactly that; a crate would bring options that
//! could let two readers see two logs.
//!
//! Cells are never altered to please spreadsheets (a reason may begin with `=`): what is written is
//! what was hashed.

use crate::domain::audit::{AuditRow, Broken, Flaw};

/// The columns, in order.
pub const COLUMNS: [&str; 17] = [
    "seq",
    "at",
    "event",
    "runtime",
    "interaction",
    "subject",
    "digest",
    "decision",
    "rule",
    "policy",
    "runtime_said",
    "private",
    "clicker",
    "reason",
    "salt",
    "prev",
    "hash",
];

/// One line of JSON, with its line end.
#[must_use]
pub fn to_jsonl(row: &AuditRow) -> String {
    // Strings and integers only: this cannot fail.
    let mut line = serde_json::to_string(row).unwrap_or_default();
    line.push('\n');
    line
}

/// The first line of a CSV file.
#[must_use]
pub fn csv_header() -> String {
    let mut line = COLUMNS.join(",");
    line.push('\n');
    line
}

/// One CSV record, with its line end.
#[must_use]
pub fn to_csv(row: &AuditRow) -> String {
    let AuditRow {
        seq,
        at,
        event,
        runtime,
        interaction,
        subject,
        digest,
        decision,
        rule,
        policy,
        runtime_said,
        private,
        clicker,
        reason,
        salt,
        prev,
        hash,
    } = row;
    let seq = seq.to_string();
    let cell = |cell: &Option<String>| quoted(cell.as_deref().unwrap_or_default());
    let mut cells = vec![quoted(&seq), quoted(at), quoted(event)];
    cells.extend(
        [
            runtime,
            interaction,
            subject,
            digest,
            decision,
            rule,
            policy,
            runtime_said,
            private,
            clicker,
            reason,
            salt,
        ]
        .map(cell),
    );
    cells.extend([quoted(prev), quoted(hash)]);
    let mut line = cells.join(",");
    line.push('\n');
    line
}

fn quoted(cell: &str) -> String {
    if cell.contains([',', '"', '\n', '\r']) || cell.starts_with(' ') || cell.ends_with(' ') {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.to_owned()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Jsonl,
    Csv,
}

/// Reads a file line by line; the first line tells the format.
#[derive(Debug, Default)]
pub struct Reader {
    format: Option<Format>,
    /// A CSV record whose quoted cell goes on in the next line.
    open: String,
}

impl Reader {
    /// Takes the next line **with** its line end; a row when one is complete.
    ///
    /// # Errors
    /// When the line is no row. `seq` is then the one that was expected.
    pub fn line(&mut self, line: &str, expected: i64) -> Result<Option<AuditRow>, Broken> {
        let broken = |flaw| Broken { seq: expected, flaw };
        let format = match self.format {
            Some(format) => format,
            None if line.starts_with('{') => *self.format.insert(Format::Jsonl),
            None if line.trim_start_matches('\u{feff}').trim_end() == csv_header().trim_end() => {
                self.format = Some(Format::Csv);
                return Ok(None);
            }
            None => return Err(broken(Flaw::Columns)),
        };
        if format == Format::Jsonl {
            return serde_json::from_str(line).map(Some).map_err(|_| broken(Flaw::Unreadable));
        }
        self.open.push_str(line);
        // Quotes come in pairs, doubled ones too: an odd number means that a cell is still open.
        if self.open.bytes().filter(|b| *b == b'"').count() % 2 == 1 {
            return Ok(None);
        }
        let record = std::mem::take(&mut self.open);
        from_csv(&record).map(Some).ok_or_else(|| broken(Flaw::Unreadable))
    }

    /// The end of the file.
    ///
    /// # Errors
    /// When a record was left open.
    pub fn finish(self, expected: i64) -> Result<(), Broken> {
        if self.open.is_empty() { Ok(()) } else { Err(Broken { seq: expected, flaw: Flaw::Unreadable }) }
    }
}

fn from_csv(record: &str) -> Option<AuditRow> {
    let cells = cells(record.strip_suffix('\n').map_or(record, |r| r.strip_suffix('\r').unwrap_or(r)))?;
    let [
        seq,
        at,
        event,
        runtime,
        interaction,
        subject,
        digest,
        decision,
        rule,
        policy,
        runtime_said,
        private,
        clicker,
        reason,
        salt,
        prev,
        hash,
    ]: [String; 17] = cells.try_into().ok()?;
    let cell = |text: String| Some(text).filter(|text| !text.is_empty());
    let number: i64 = seq.parse().ok()?;
    // One spelling per number: `+1` and `01` are not ours.
    (number.to_string() == seq).then(|| AuditRow {
        seq: number,
        at,
        event,
        runtime: cell(runtime),
        interaction: cell(interaction),
        subject: cell(subject),
        digest: cell(digest),
        decision: cell(decision),
        rule: cell(rule),
        policy: cell(policy),
        runtime_said: cell(runtime_said),
        private: cell(private),
        clicker: cell(clicker),
        reason: cell(reason),
        salt: cell(salt),
        prev,
        hash,
    })
}

/// Splits one record. `None` when a quote stands where none may.
fn cells(record: &str) -> Option<Vec<String>> {
    let mut cells = vec![];
    let mut rest = record;
    loop {
        let (cell, after) = if let Some(inner) = rest.strip_prefix('"') {
            let mut cell = String::new();
            let mut inner = inner;
            loop {
                let (text, after) = inner.split_once('"')?;
                cell.push_str(text);
                match after.strip_prefix('"') {
                    Some(more) => {
                        cell.push('"');
                        inner = more;
                    }
                    None => break (cell, after),
                }
            }
        } else {
            let end = rest.find(',').unwrap_or(rest.len());
            let (cell, after) = rest.split_at(end);
            if cell.contains(['"', '\n', '\r']) {
                return None;
            }
            (cell.to_owned(), after)
        };
        cells.push(cell);
        if after.is_empty() {
            return Some(cells);
        }
        rest = after.strip_prefix(',')?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::audit::{AuditEntry, Head};
    use crate::domain::clock::Millis;

    fn row(reason: &str) -> AuditRow {
        let entry = AuditEntry {
            event: "click".into(),
            clicker: Some("discord:1".into()),
            reason: Some(reason.into()),
            ..AuditEntry::default()
        };
        AuditRow::after(&Head::default(), entry, Millis(1_700_000_000_123), [7; 16])
    }

    fn read(text: &str) -> Result<Vec<AuditRow>, Broken> {
        let mut reader = Reader::default();
        let mut rows = vec![];
        for line in text.split_inclusive('\n') {
            rows.extend(reader.line(line, 1)?);
        }
        reader.finish(1)?;
        Ok(rows)
    }

    #[test]
    fn a_row_is_read_back_equal_from_either_format() {
        for reason in
            ["=1+1", "a,b", "say \"no\"", "two\nlines", "\"", "cr\r\nlf", " space ", "ünï", "\u{feff}"]
        {
            let row = row(reason);
            for text in [to_jsonl(&row), csv_header() + &to_csv(&row)] {
                assert_eq!(read(&text).unwrap(), std::slice::from_ref(&row), "{reason:?}");
            }
        }
    }

    #[test]
    fn a_line_that_is_no_row_is_named() {
        let good = row("no");
        let json = to_jsonl(&good);
        for text in [
            json.replace(r#""policy":null,"#, ""),
            json.replace(r#""seq":1"#, r#""seq":1.0"#),
            json.replace(r#""seq":1"#, r#""seq":1,"more":2"#),
            json.replace(r#""event":"click""#, r#""event":"click","event":"click""#),
            json[..json.len() / 2].to_owned(),
        ] {
            assert_eq!(read(&text), Err(Broken { seq: 1, flaw: Flaw::Unreadable }), "{text}");
        }
        let csv = csv_header() + &to_csv(&good);
        for text in
            [csv.replace(",no,", ",\"no,"), csv.replace(",no,", ",n\"o,"), csv.replace("\n1,", "\n01,")]
        {
            assert_ne!(text, csv);
            assert_eq!(read(&text), Err(Broken { seq: 1, flaw: Flaw::Unreadable }), "{text}");
        }
        assert_eq!(read("seq,at\n1,2\n"), Err(Broken { seq: 1, flaw: Flaw::Columns }));
    }
}

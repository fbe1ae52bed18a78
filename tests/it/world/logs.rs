//! Everything the code under test logs, kept for searching.
//!
//! One subscriber for the whole test binary: stories run at the same time and share it, so what a story looks for must
//! be a secret, which no story may log. Countersign's own events are kept down to `trace`, those of other crates from
//! `warn` on, as in `countersign run`.

use std::io::{self, Write};
use std::sync::{Mutex, Once, PoisonError};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Kept;

impl Write for Kept {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line).into_owned();
        LINES.lock().unwrap_or_else(PoisonError::into_inner).push(text);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Kept {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        Self
    }
}

/// Starts keeping, at the first call.
pub(crate) fn keep() {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        let lines = tracing_subscriber::fmt::layer().json().flatten_event(true).with_writer(|| Kept);
        let filter = EnvFilter::new("warn,countersign=trace");
        tracing_subscriber::registry().with(filter).with(lines).try_init().unwrap();
    });
}

/// The lines that hold `text`, so far.
pub(crate) fn with(text: &str) -> Vec<String> {
    let lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
    lines.iter().filter(|line| line.contains(text)).cloned().collect()
}

/// What is kept is what was logged: with its fields, from every level of ours.
#[test]
fn what_is_logged_is_kept() {
    keep();
    tracing::trace!(target: "countersign::somewhere", secret = "shown-in-a-field-7f3a", "a line");
    tracing::debug!(target: "elsewhere", "not-of-ours-7f3a");
    assert_eq!(with("shown-in-a-field-7f3a").len(), 1);
    assert_eq!(with("not-of-ours-7f3a").len(), 0);
}

//! What a look at a chat platform or a runtime found, for `check`.
//!
//! Invariant: looking changes nothing on the other side. What cannot be looked at is said, not guessed.

use serde::Serialize;

/// How much a finding matters: an error keeps something from working.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    Ok,
    Warning,
    Error,
}

impl Severity {
    /// As printed.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub severity: Severity,
    /// What is so.
    pub text: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

impl Finding {
    /// It is well.
    pub fn ok(text: impl Into<String>) -> Self {
        Self { severity: Severity::Ok, text: text.into(), fix: None }
    }

    /// It works, but not for every case.
    pub fn warning(text: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, text: text.into(), fix: Some(fix.into()) }
    }

    /// It does not work.
    pub fn error(text: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { severity: Severity::Error, text: text.into(), fix: Some(fix.into()) }
    }
}

/// A clock that is ahead of ours by `skew_ms` (behind: negative), where `most_ms` is borne by both sides.
#[must_use]
pub fn clock(whose: &str, skew_ms: i64, most_ms: i64) -> Finding {
    let seconds = skew_ms.unsigned_abs() / 1000;
    let relation = if skew_ms > 0 { "behind" } else { "ahead of" };
    let text = format!("this machine's clock is {seconds} s {relation} {whose}'s");
    let fix = "let a time service set this machine's clock";
    // The header has whole seconds, and the answer was on its way for a while.
    if skew_ms.abs() > most_ms {
        Finding::error(text, fix)
    } else if skew_ms.abs() > most_ms.min(60_000) / 2 {
        Finding::warning(text, fix)
    } else {
        Finding::ok(format!("this machine's clock agrees with {whose}'s"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_judged_by_what_both_sides_bear() {
        let severity = |skew| clock("Slack", skew, 240_000).severity;
        assert_eq!(severity(1_500), Severity::Ok);
        assert_eq!(severity(-45_000), Severity::Warning);
        assert_eq!(severity(241_000), Severity::Error);
        assert_eq!(clock("Slack", -300_000, 240_000).text, "this machine's clock is 300 s ahead of Slack's");
        assert_eq!(
            clock("the runtime", 300_000, 1).text,
            "this machine's clock is 300 s behind the runtime's"
        );
    }
}

//! Scripted trouble: what a stand-in does wrong, at which method, at which call.
//!
//! Invariant: a rule fires for exactly the calls it names; rules are consumed in the order given,
//! so a test that scripts "the second post is applied and its answer lost" gets just that.

use serde::{Deserialize, Serialize};
use std::sync::{Mutex, PoisonError};

/// What goes wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "fault", rename_all = "snake_case", deny_unknown_fields)]
pub enum Fault {
    /// Waits before doing anything, then behaves.
    Delay { ms: u64 },
    /// Does it, waits, then answers.
    DelayAnswer { ms: u64 },
    /// Answers with this HTTP status without doing anything. `body` defaults to a platform-like one.
    Status { code: u16, retry_after: Option<u64>, body: Option<String> },
    /// Answers with this HTTP status **after** doing it.
    StatusAfter { code: u16 },
    /// Refuses with the protocol's own error (a Slack error code, a JSON-RPC code as text).
    Refuse { error: String },
    /// Does not do it and never answers (the connection is held, then dropped after `ms`).
    Hang { ms: u64 },
    /// Does it and never answers (the connection is held, then dropped after `ms`): "done but lost".
    Lost { ms: u64 },
    /// Does it and cuts the answer in the middle.
    CutAnswer,
    /// HTTP 200 with an HTML page, nothing done.
    Html,
    /// HTTP 204 without a body, nothing done.
    NoContent,
    /// Does it twice (a delivery repeated by the network).
    Duplicate,
}

/// When it goes wrong: at calls of `method` (`*` = any), after `skip` calls, `times` times.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    pub method: String,
    #[serde(default)]
    pub skip: u32,
    #[serde(default = "once")]
    pub times: u32,
    pub fault: Fault,
}

fn once() -> u32 {
    1
}

impl Rule {
    /// The next call of `method` goes wrong so.
    #[must_use]
    pub fn next(method: &str, fault: Fault) -> Self {
        Self { method: method.into(), skip: 0, times: 1, fault }
    }

    /// Every call of `method` from now on, until [`Faults::clear`].
    #[must_use]
    pub fn always(method: &str, fault: Fault) -> Self {
        Self { method: method.into(), skip: 0, times: u32::MAX, fault }
    }
}

/// The rules in force.
#[derive(Debug, Default)]
pub struct Faults(Mutex<Vec<Rule>>);

impl Faults {
    /// Adds a rule behind those in force.
    pub fn add(&self, rule: Rule) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(rule);
    }

    /// Ends all trouble.
    pub fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// What goes wrong with this call of `method`, if anything; consumes the rule's turn.
    pub fn take(&self, method: &str) -> Option<Fault> {
        let mut rules = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = rules.iter().position(|rule| rule.method == "*" || rule.method == method)?;
        let rule = rules.get_mut(at)?;
        if rule.skip > 0 {
            rule.skip -= 1;
            return None;
        }
        let fault = rule.fault.clone();
        if rule.times != u32::MAX {
            rule.times -= 1;
        }
        if rule.times == 0 {
            rules.remove(at);
        }
        Some(fault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_fires_for_the_calls_it_names_and_no_other() {
        let faults = Faults::default();
        faults.add(Rule { method: "chat.update".into(), skip: 1, times: 2, fault: Fault::Html });
        assert_eq!(faults.take("chat.postMessage"), None);
        assert_eq!(faults.take("chat.update"), None);
        assert_eq!(faults.take("chat.update"), Some(Fault::Html));
        assert_eq!(faults.take("chat.update"), Some(Fault::Html));
        assert_eq!(faults.take("chat.update"), None);
    }
}

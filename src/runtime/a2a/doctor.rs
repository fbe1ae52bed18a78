//! What `check` looks at in an A2A runtime: card, binding, features, credentials, clock.
//!
//! Invariant: only readings; as somebody else only a task that cannot exist is read, so that a refused
//! credential shows and nothing of theirs is seen.

use super::A2aConnector;
use super::call::Op;
use super::card::Binding;
use super::errors::{self, Failure};
use crate::bridge::ports::{ConnectorError, Finding, Severity, clock};
use crate::domain::ids::Subject;
use serde_json::json;

/// A token is taken up to 30 s before its time.
const CLOCK_MS: i64 = 30_000;

impl A2aConnector {
    pub(super) async fn look(&self, subject: Option<&Subject>) -> Vec<Finding> {
        let known = match self.discovery.current(&self.wire).await {
            Ok(known) => known,
            Err(error) => return vec![of(&error)],
        };
        let binding = match known.interface.binding {
            Binding::JsonRpc => "JSONRPC",
            Binding::HttpJson => "HTTP+JSON",
        };
        let at = super::card::origin(&known.interface.url);
        let mut findings = vec![match known.card_at() {
            Some(_) => Finding::ok(format!("agent {}, {binding} at {at}", known.agent)),
            None => Finding::ok(format!("agent {}, {binding} at {at}; it has no agent card", known.agent)),
        }];
        findings.push(match self.list_page(None).await {
            Ok(page) if page.supported => {
                Finding::ok(format!("{} waiting on the first page", page.readings.len()))
            }
            Ok(_) => Finding::warning(
                "its tasks cannot be listed",
                "it is watched where tasks are registered: POST /api/v1/tasks",
            ),
            Err(error) => of(&error),
        });
        if let Some(subject) = subject {
            findings.extend(self.look_as(subject).await);
        }
        if let Some(skew) = self.wire.skew() {
            findings.push(clock("the runtime", skew, CLOCK_MS));
        }
        findings
    }

    /// Whether the runtime takes the credential with which answers are carried.
    async fn look_as(&self, subject: &Subject) -> Option<Finding> {
        let known = self.discovery.current(&self.wire).await.ok()?;
        let nothing = json!({ "id": "countersign-check", "historyLength": 0 });
        Some(match self.wire.call(&known.interface, Op::GetTask, &nothing, Some(subject)).await {
            Ok(_) => Finding::ok("takes the credential of answers"),
            Err(failure) if errors::says_not_found(&failure) => {
                Finding::ok("takes the credential of answers")
            }
            Err(Failure::Rpc { code, .. }) => Finding::warning(
                format!("whether it takes the credential of answers cannot be told (error {code})"),
                "press a button of `countersign try`, or of a real card",
            ),
            Err(failure) => Finding {
                text: format!("answers of {subject}: {}", errors::of_reading(&failure)),
                ..of(&errors::of_reading(&failure))
            },
        })
    }
}

fn of(error: &ConnectorError) -> Finding {
    let fix = match error {
        ConnectorError::Unavailable { .. } => "see whether this machine reaches it, and whether it runs",
        ConnectorError::Unauthorized { .. } => {
            "mend `token` or what the runtime trusts (issuer, audience, keys)"
        }
        ConnectorError::Configuration { .. } => "mend the runtime's settings as said",
        ConnectorError::Protocol { .. } => "see whether the address is that of an A2A 1.0 agent",
    };
    Finding { severity: Severity::Error, text: error.to_string(), fix: Some(fix.to_owned()) }
}

//! Sending an answer as the person who clicked, and judging what came back.
//!
//! Invariants:
//! - the stored body goes out unchanged; only the credential is made per attempt, and the tenant,
//!   which is part of the address;
//! - what may have been received is never reported as refused or not sent;
//! - after every definite refusal the task is read by the watching identity, so that the clicker is
//!   told the true state;
//! - a runtime that does not deduplicate is asked before anything is sent a second time.
//!
//! Known races: the answer is accepted and the task pauses again at once: the returned task shows
//! another interaction, which counts as accepted. A lagging replica shows the old one: the caller
//! reads again. Somebody else answers between our reading and our sending: the runtime refuses one.

use super::A2aConnector;
use super::call::Op;
use super::errors::{self, Failure, Verdict};
use super::interactions::{View, reading};
use super::types::Task;
use crate::bridge::ports::{
    AnswerOutcome, Answered, ConnectorError, Outgoing, TaskReading, TaskRef, TaskState,
};
use crate::domain::interaction::{Sent, Why};
use std::time::Duration;

/// When to look again at a runtime that does not deduplicate and shows what it showed before.
const LOOK_AGAIN: Duration = Duration::from_secs(3);

impl A2aConnector {
    pub(crate) async fn deliver(&self, out: &Outgoing) -> Answered {
        let known = match self.discovery.current(&self.wire).await {
            Ok(known) => known,
            Err(ConnectorError::Unavailable { what, retry_after }) => {
                return Answered { outcome: AnswerOutcome::NotSent { retry_after }, said: what };
            }
            Err(error) => return attention(error.to_string()),
        };
        if !self.settings.dedupe
            && (out.probe || out.sent != Sent::Never)
            && let Some(done) = self.look_first(out).await
        {
            return done;
        }
        let began = self.wire.now();
        let sent = self.wire.call(&known.interface, Op::SendMessage, &out.body, Some(&out.subject)).await;
        match sent {
            Ok(result) => {
                let task = Task::of_send(&result).filter(|task| task.id == out.key.task);
                let after = match task {
                    Some(task) => {
                        let owner = out.seen_as.as_ref().and_then(|subject| self.owner(&task.id, subject));
                        let view = View {
                            runtime: &self.settings.name,
                            agent: &known.agent,
                            seen_as: out.seen_as.clone(),
                            owner,
                            began,
                        };
                        Some(reading(&task, view))
                    }
                    // A message instead of a task: reading says what became of it.
                    None => self.after(out).await.ok(),
                };
                Answered { outcome: AnswerOutcome::Accepted { after }, said: "accepted".into() }
            }
            Err(failure) => self.judge(out, &failure).await,
        }
    }

    async fn judge(&self, out: &Outgoing, failure: &Failure) -> Answered {
        let said = failure.said();
        let refused = |why, after| AnswerOutcome::Refused { why, after };
        let outcome = match errors::of_answer(failure) {
            Verdict::NotSent => AnswerOutcome::NotSent { retry_after: None },
            Verdict::Unknown(retry_after) => AnswerOutcome::Unknown { retry_after },
            Verdict::Attention => AnswerOutcome::Attention { what: said.clone() },
            Verdict::Refused(why) => refused(why, self.after(out).await.ok()),
            Verdict::NotAccepted => refused(Why::NotAccepted, self.after(out).await.ok()),
            Verdict::KeyUsed => {
                let after = self.after(out).await.ok();
                let open = after.as_ref().is_some_and(|after| shows(after, out));
                refused(if open { Why::NotAccepted } else { Why::AlreadyEnded }, after)
            }
            Verdict::NotVisible => match self.after(out).await {
                Ok(after) if matches!(after.state, TaskState::NotFound) => {
                    refused(Why::AlreadyEnded, Some(after))
                }
                // The watcher reads it as this very subject: it is not about whose it is.
                Ok(after) if out.seen_as.as_ref() == Some(&out.subject) => {
                    refused(Why::NotAccepted, Some(after))
                }
                Ok(after) => refused(Why::NotOwner, Some(after)),
                // Nobody is answered there at all: the address is wrong.
                Err(ConnectorError::Configuration { .. }) => AnswerOutcome::Attention { what: said.clone() },
                Err(_) => refused(Why::NotOwner, None),
            },
        };
        if let AnswerOutcome::Refused { why: Why::Malformed, .. } = &outcome {
            tracing::error!(
                runtime = %self.settings.name, task = %out.key.task, %said,
                "the runtime calls our answer malformed"
            );
        }
        Answered { outcome, said }
    }

    /// A runtime that would act on a second copy: what became of the first? `None`: still open, send.
    async fn look_first(&self, out: &Outgoing) -> Option<Answered> {
        let after = match self.after(out).await {
            Ok(after) => after,
            Err(error) => {
                let retry_after = match &error {
                    ConnectorError::Unavailable { retry_after, .. } => *retry_after,
                    _ => None,
                };
                let outcome = AnswerOutcome::NotSent { retry_after };
                return Some(Answered { outcome, said: error.to_string() });
            }
        };
        let ours = after.history.iter().any(|past| past.message_id.as_deref() == Some(&out.message_id));
        if ours {
            let outcome = AnswerOutcome::Accepted { after: Some(after) };
            return Some(Answered { outcome, said: "found in the history".into() });
        }
        match after.state {
            TaskState::Waiting(_) if shows(&after, out) && !out.probe => None,
            // Read as ended before and as open now, or in a state that says nothing: wait for clarity.
            TaskState::Waiting(_) if shows(&after, out) => Some(look_again("still shown")),
            TaskState::Unclear | TaskState::NotFound => Some(look_again("not shown")),
            _ => Some(Answered {
                outcome: AnswerOutcome::Refused { why: Why::Unconfirmed, after: Some(after) },
                said: "not found in the history".into(),
            }),
        }
    }

    /// Reads the task as the watching identity.
    async fn after(&self, out: &Outgoing) -> Result<TaskReading, ConnectorError> {
        let task = TaskRef {
            task: out.key.task.clone(),
            context: out.context.clone(),
            seen_as: out.seen_as.clone(),
        };
        self.read_task(&task).await
    }
}

/// Whether a reading still shows the interaction that was answered.
fn shows(reading: &TaskReading, out: &Outgoing) -> bool {
    matches!(&reading.state, TaskState::Waiting(seen) if seen.key.external == out.key.external)
}

fn look_again(said: &str) -> Answered {
    Answered { outcome: AnswerOutcome::NotSent { retry_after: Some(LOOK_AGAIN) }, said: said.into() }
}

fn attention(what: String) -> Answered {
    Answered { outcome: AnswerOutcome::Attention { what: what.clone() }, said: what }
}

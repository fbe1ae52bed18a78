//! Asking a runtime to call us (A2A 1.0 §3.1.7–10), and reading what such a call is about.
//!
//! Invariants: a configuration always has an id of ours, because a server may else take the task's and
//! replace another one; that there is nothing to delete is success; of a call only the task's id is read.

use super::A2aConnector;
use super::call::Op;
use super::errors::{self, Failure, code};
use super::subscribe::is_over;
use crate::bridge::ports::{ConnectorError, Hook, TaskRef, Unfollowed};
use secrecy::ExposeSecret;
use serde_json::{Value, json};

impl A2aConnector {
    pub(crate) async fn ask_for_calls(&self, task: &TaskRef, hook: &Hook) -> Result<(), Unfollowed> {
        let known = self.discovery.current(&self.wire).await?;
        let generation = self.discovery.generation();
        let seen_as = self.view_of(task).await?;
        let params = json!({
            "id": hook.id,
            "taskId": task.task,
            "url": hook.url.expose_secret(),
            "token": hook.token.expose_secret(),
            "authentication": { "scheme": "Bearer", "credentials": hook.credential.expose_secret() },
        });
        match self.wire.call(&known.interface, Op::CreatePushConfig, &params, seen_as.as_ref()).await {
            // Whatever a server shows of what it has stored.
            Ok(_) | Err(Failure::Garbled(_)) => Ok(()),
            Err(failure) if says_no_push(&failure) || errors::says_not_found(&failure) => {
                // It says so of ended tasks too.
                let reading = self.get_task(&task.task, seen_as.as_ref()).await?;
                if is_over(&reading) {
                    return Err(Unfollowed::Over(Box::new(reading)));
                }
                self.features.push.refused(self.wire.now(), generation);
                Err(Unfollowed::Unsupported)
            }
            Err(failure) => Err(errors::of_reading(&failure).into()),
        }
    }

    pub(crate) async fn end_calls(&self, task: &TaskRef, id: &str) -> Result<(), ConnectorError> {
        let known = self.discovery.current(&self.wire).await?;
        let seen_as = match self.view_of(task).await {
            Ok(seen_as) => seen_as,
            // The configuration went with the task.
            Err(Unfollowed::Over(_) | Unfollowed::Unsupported) => return Ok(()),
            Err(Unfollowed::Failed(error)) => return Err(error),
        };
        let params = json!({ "taskId": task.task, "id": id });
        match self.wire.call(&known.interface, Op::DeletePushConfig, &params, seen_as.as_ref()).await {
            // The result of a deletion is empty, in more ways than one.
            Ok(_) | Err(Failure::Garbled(_)) => Ok(()),
            Err(failure) if errors::says_not_found(&failure) || says_no_push(&failure) => Ok(()),
            Err(failure) => Err(errors::of_reading(&failure)),
        }
    }
}

fn says_no_push(failure: &Failure) -> bool {
    matches!(failure, Failure::Rpc { code: code::PUSH_NOT_SUPPORTED, .. })
        || errors::says_unsupported(failure)
}

/// What a notification is about: the id of its task, where it names one. `None`: it is no notification
/// (exactly one of `task`, `message`, `statusUpdate`, `artifactUpdate`; A2A 1.0 §4.3.3).
#[must_use]
pub fn told_of(body: &[u8]) -> Option<Option<String>> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let kinds =
        [("task", "id"), ("message", "taskId"), ("statusUpdate", "taskId"), ("artifactUpdate", "taskId")];
    let mut found = kinds.into_iter().filter_map(|(kind, id)| Some((body.get(kind)?, id)));
    let (Some((said, id)), None) = (found.next(), found.next()) else { return None };
    said.is_object().then(|| said.get(id).and_then(Value::as_str).map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::told_of;

    /// A2A case 57.
    #[test]
    fn a_notification_is_one_of_four_things_and_names_its_task() {
        let told = |body: &str| told_of(body.as_bytes());
        let of = |id: &str| Some(Some(id.to_owned()));
        assert_eq!(told(r#"{"task":{"id":"t1","status":{}}}"#), of("t1"));
        assert_eq!(told(r#"{"message":{"taskId":"t1"},"more":1}"#), of("t1"));
        assert_eq!(told(r#"{"statusUpdate":{"taskId":"t1"}}"#), of("t1"));
        assert_eq!(told(r#"{"artifactUpdate":{"taskId":"t1"}}"#), of("t1"));
        assert_eq!(told(r#"{"message":{"parts":[]}}"#), Some(None));
        for bad in [
            "",
            "[]",
            "{}",
            "nonsense",
            r#"{"task":null}"#,
            r#"{"task":"t1"}"#,
            r#"{"Task":{"id":"t1"}}"#,
            r#"{"task":{"id":"a"},"message":{"taskId":"a"}}"#,
        ] {
            assert_eq!(told(bad), None, "{bad}");
        }
    }
}

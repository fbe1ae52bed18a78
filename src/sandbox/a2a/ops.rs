//! The operations, independent of any binding: parameters in, result object or [`A2aError`] out.
//!
//! Invariant: an operation checks and applies inside one `A2aWorld::with`; what follows only reads.

use super::INTERACTIONS_V1;
use super::answer;
use super::auth::Caller;
use super::error::{A2aError, Code};
use super::list;
use super::model::{Accepted, Ask, Decision, Phase, State, Status, TaskView};
use super::params::{Content, Fields, Message};
use super::push;
use super::render::{self, Show, same};
use super::switches::{CancelAgain, Foreign, WhileWorking};
use super::world::{A2aWorld, Inner, MessageKey, Sent};
use serde_json::{Map, Value, json};
use std::time::Duration;

/// One call: who, to which agent, under which extension.
pub(super) struct Call<'a> {
    pub(super) world: &'a A2aWorld,
    pub(super) agent: &'a str,
    pub(super) caller: &'a Caller,
    /// `A2A-Extensions` names interactions/v1.
    pub(super) extension: bool,
}

/// Methods that change something; a credential that only watches may not call them.
pub(super) fn changes(method: &str) -> bool {
    matches!(method, "SendMessage" | "SendStreamingMessage" | "CancelTask")
}

/// Runs a method under its A2A 1.0 name.
pub(super) async fn run(
    call: &Call<'_>,
    method: &str,
    params: &Map<String, Value>,
) -> Result<Value, A2aError> {
    let fields = Fields::root(params);
    match method {
        "SendMessage" => {
            call.tenant_and_extension(&fields)?;
            send(call, &fields).await
        }
        "GetTask" => {
            call.tenant_and_extension(&fields)?;
            get(call, &fields)
        }
        "ListTasks" => {
            call.tenant_and_extension(&fields)?;
            list::list(call, &fields)
        }
        "CancelTask" => {
            call.tenant_and_extension(&fields)?;
            cancel(call, &fields)
        }
        "CreateTaskPushNotificationConfig"
        | "GetTaskPushNotificationConfig"
        | "ListTaskPushNotificationConfigs"
        | "DeleteTaskPushNotificationConfig" => {
            call.tenant_and_extension(&fields)?;
            push::run(call, method, &fields)
        }
        "GetExtendedAgentCard" => Err(A2aError::new(Code::ExtendedCard, "There is no extended card")),
        _ => Err(A2aError::new(Code::Method, "Method not found")),
    }
}

impl Call<'_> {
    /// The interface's `tenant` is in every request; a required extension is declared.
    pub(super) fn tenant_and_extension(&self, fields: &Fields<'_>) -> Result<(), A2aError> {
        let (tenant, required) = self.world.with(|inner| {
            inner.cards.get(self.agent).map(|card| (card.tenant.clone(), card.required)).unwrap_or_default()
        });
        if required && !self.extension {
            return Err(A2aError::new(Code::ExtensionRequired, "An extension is required")
                .with("extension", INTERACTIONS_V1));
        }
        match (tenant.as_deref(), fields.text("tenant")?) {
            (Some(tenant), given) if given != Some(tenant) => {
                Err(fields.error("tenant", "must be the tenant of the card's interface"))
            }
            _ => Ok(()),
        }
    }

    /// Whether the caller may know of this task.
    pub(super) fn sees(&self, inner: &Inner, task: &TaskView) -> bool {
        task.agent == self.agent
            && match self.caller {
                Caller::Watcher => true,
                Caller::Subject(subject) => {
                    task.owner == *subject || inner.switches.foreign == Foreign::Allowed
                }
            }
    }

    pub(super) fn find<'i>(&self, inner: &'i Inner, id: &str) -> Result<&'i TaskView, A2aError> {
        inner.tasks.get(id).filter(|task| self.sees(inner, task)).ok_or_else(|| A2aError::not_found(id))
    }

    fn subject(&self) -> &str {
        match self.caller {
            Caller::Subject(subject) => subject,
            Caller::Watcher => "",
        }
    }

    pub(super) fn show(&self, inner: &Inner) -> Show {
        Show::new(&inner.switches, self.extension)
    }
}

fn required_id<'a>(fields: &Fields<'a>) -> Result<&'a str, A2aError> {
    fields.text("id")?.ok_or_else(|| fields.error("id", "is required"))
}

fn get(call: &Call<'_>, fields: &Fields<'_>) -> Result<Value, A2aError> {
    fields.only(&["tenant", "id", "historyLength"])?;
    let (id, history) = (required_id(fields)?, fields.history_length()?);
    let now = call.world.now_ms();
    call.world.with(|inner| {
        let task = call.find(inner, id)?;
        Ok(render::task(task, &Show { history, read_at_ms: Some(now), ..call.show(inner) }))
    })
}

fn cancel(call: &Call<'_>, fields: &Fields<'_>) -> Result<Value, A2aError> {
    fields.only(&["tenant", "id", "metadata"])?;
    let id = required_id(fields)?;
    let now = call.world.now_ms();
    let result = call.world.with(|inner| {
        let state = call.find(inner, id)?.state();
        match (state, inner.switches.cancel_again) {
            (State::Canceled, CancelAgain::Task) => {}
            (state, _) if state.is_terminal() => {
                return Err(A2aError::new(Code::TaskNotCancelable, "The task has ended").with("taskId", id));
            }
            _ => {
                if let Some(task) = inner.tasks.get_mut(id) {
                    task.leave(State::Canceled, None, now);
                }
            }
        }
        Ok(render::task(call.find(inner, id)?, &call.show(inner)))
    });
    call.world.touch();
    result
}

async fn send(call: &Call<'_>, fields: &Fields<'_>) -> Result<Value, A2aError> {
    let message = Message::read(fields)?;
    let now = call.world.now_ms();
    let id = call.world.with(|inner| accept(call, inner, &message, now))?;
    call.world.touch();
    let (blocking, limit) =
        call.world.with(|inner| (inner.switches.blocking, Duration::from_millis(inner.switches.block_ms)));
    if blocking || !message.return_immediately {
        let rests = |world: &A2aWorld| {
            let state = world.state(&id);
            state.is_none_or(|state| state.is_terminal() || state.is_interrupted()).then_some(())
        };
        call.world.until(limit, rests).await;
    }
    call.world.with(|inner| {
        let task = inner.tasks.get(&id).ok_or_else(|| A2aError::not_found(&id))?;
        if inner.switches.answer_with_message {
            return Ok(
                json!({"message": {"messageId": format!("reply:{}", message.id), "role": "ROLE_AGENT",
                "taskId": id, "contextId": task.context, "parts": [{"text": "Received."}]}}),
            );
        }
        let show = Show { history: message.history, ..call.show(inner) };
        Ok(json!({"task": render::task(task, &show)}))
    })
}

/// Methods whose answer is a stream of events.
pub(super) fn streams(method: &str) -> bool {
    matches!(method, "SendStreamingMessage" | "SubscribeToTask")
}

/// The task to subscribe to: one that has not ended.
pub(super) fn subscribable(call: &Call<'_>, fields: &Fields<'_>) -> Result<String, A2aError> {
    fields.only(&["tenant", "id"])?;
    let id = required_id(fields)?;
    call.world.with(|inner| match call.find(inner, id)?.state() {
        state if state.is_terminal() => Err(A2aError::unsupported("The task has ended").with("taskId", id)),
        _ => Ok(id.to_owned()),
    })
}

/// Reads, checks and applies a message; the id of its task.
pub(super) fn accept_message(call: &Call<'_>, fields: &Fields<'_>) -> Result<String, A2aError> {
    let message = Message::read(fields)?;
    let now = call.world.now_ms();
    let id = call.world.with(|inner| accept(call, inner, &message, now))?;
    call.world.touch();
    Ok(id)
}

/// Checks and applies a message; the id of its task.
fn accept(call: &Call<'_>, inner: &mut Inner, message: &Message, now: i64) -> Result<String, A2aError> {
    let Some(id) = &message.task_id else { return start(call, inner, message, now) };
    let task = call.find(inner, id)?;
    if message.context_id.as_ref().is_some_and(|context| *context != task.context) {
        return Err(A2aError::field("message.contextId", "is not the task's context"));
    }
    let key = MessageKey {
        agent: task.agent.clone(),
        owner: task.owner.clone(),
        context: task.context.clone(),
        message_id: message.id.clone(),
    };
    if inner.switches.dedupe
        && let Some(sent) = inner.sent.get(&key)
    {
        return replay(call, inner, &sent.clone(), message);
    }
    let state = task.state();
    if state.is_terminal() {
        return Err(A2aError::unsupported("The task has ended").with("taskId", id));
    }
    let interaction_id = if state.is_interrupted() {
        Some(answered(call, inner, message, now)?)
    } else if inner.switches.while_working == WhileWorking::Accept {
        answered_late(call, inner, message, now)
    } else {
        return Err(A2aError::unsupported("The task waits for nothing").with("taskId", id));
    };
    inner.sent.insert(
        key,
        Sent {
            subject: call.subject().to_owned(),
            content: message.raw.clone(),
            task_id: id.clone(),
            interaction_id,
        },
    );
    Ok(id.clone())
}

/// The same message again: the task as it is now. Anything else under its id is refused.
fn replay(call: &Call<'_>, inner: &mut Inner, sent: &Sent, message: &Message) -> Result<String, A2aError> {
    if sent.subject != call.subject() || !same(&sent.content, &message.raw) {
        return Err(A2aError::field("message.messageId", "was used for another message"));
    }
    if let Some(interaction_id) = &sent.interaction_id
        && let Some(interaction) =
            inner.tasks.get_mut(&sent.task_id).and_then(|task| task.interaction_mut(interaction_id))
        && let Some(answer) = interaction.answers.iter_mut().find(|answer| answer.message_id == message.id)
    {
        answer.replays += 1;
    }
    Ok(sent.task_id.clone())
}

/// Answers the open interaction; its id.
fn answered(call: &Call<'_>, inner: &mut Inner, message: &Message, now: i64) -> Result<String, A2aError> {
    let (stale_ms, list_approvals) = (inner.switches.stale_reads_ms, inner.switches.approvals_in_history);
    let missing = || A2aError::unsupported("The task waits for nothing");
    let task = message.task_id.as_ref().and_then(|id| inner.tasks.get_mut(id)).ok_or_else(missing)?;
    let id = task.status.open.clone().ok_or_else(missing)?;
    let ask = task.interaction(&id).map(|interaction| interaction.ask.clone()).ok_or_else(missing)?;
    let decision = answer::read(&ask, &id, message)?;
    if list_approvals || !matches!(decision, Decision::Approved(_)) {
        task.history.push(message.raw.clone());
    }
    let accepted = accepted(&ask, decision, call.subject(), &message.id, now);
    apply(task, &id, accepted, stale_ms);
    Ok(id)
}

/// A message to a running task, where the world takes one: one more application, if it names an
/// interaction.
fn answered_late(call: &Call<'_>, inner: &mut Inner, message: &Message, now: i64) -> Option<String> {
    let task = inner.tasks.get_mut(message.task_id.as_ref()?)?;
    task.history.push(message.raw.clone());
    let id = message.answer.as_ref()?.get("interactionId")?.as_str()?.to_owned();
    let ask = task.interaction(&id)?.ask.clone();
    let decision = answer::read(&ask, &id, message).unwrap_or(Decision::Value(Value::Null));
    let accepted = accepted(&ask, decision, call.subject(), &message.id, now);
    task.interaction_mut(&id)?.answers.push(accepted);
    Some(id)
}

pub(super) fn accepted(ask: &Ask, decision: Decision, subject: &str, message_id: &str, now: i64) -> Accepted {
    Accepted {
        at_ms: now,
        approved_by: subject.to_owned(),
        effect: answer::effect(ask, &decision),
        decision,
        message_id: message_id.to_owned(),
        elsewhere: false,
        replays: 0,
    }
}

/// Records an answer, lets the task work again, and pauses it at its next queued interaction.
pub(super) fn apply(task: &mut TaskView, id: &str, accepted: Accepted, stale_ms: i64) {
    let now = accepted.at_ms;
    if let Some(interaction) = task.interaction_mut(id) {
        interaction.phase = Phase::Answered;
        interaction.answers.push(accepted);
    }
    task.stale = (stale_ms > 0).then(|| (now.saturating_add(stale_ms), task.status.clone()));
    task.set(Status { state: State::Working, at_ms: now, open: None, text: None });
    task.pause_at_next(now);
}

/// A message without a task starts one, owned by the caller.
fn start(call: &Call<'_>, inner: &mut Inner, message: &Message, now: i64) -> Result<String, A2aError> {
    if matches!(message.content, Content::Data(_)) {
        return Err(A2aError::new(Code::ContentType, "A task begins with text"));
    }
    let number = inner.next_number();
    let context = message.context_id.clone().unwrap_or_else(|| call.world.id(number, "ctx"));
    if context.len() > 200 || !context.bytes().all(|b| b.is_ascii_graphic()) {
        return Err(A2aError::field("message.contextId", "must be 1 to 200 visible ASCII characters"));
    }
    let key = MessageKey {
        agent: call.agent.to_owned(),
        owner: call.subject().to_owned(),
        context: context.clone(),
        message_id: message.id.clone(),
    };
    if inner.switches.dedupe
        && let Some(sent) = inner.sent.get(&key)
    {
        return replay(call, inner, &sent.clone(), message);
    }
    let id = call.world.task_id(number, &context);
    let mut task = TaskView::new(id.clone(), call.agent, context, call.subject(), now);
    task.history.push(message.raw.clone());
    task.set(Status { state: State::Working, at_ms: now, open: None, text: None });
    inner.tasks.insert(id.clone(), task);
    let subject = call.subject().to_owned();
    inner.sent.insert(
        key,
        Sent { subject, content: message.raw.clone(), task_id: id.clone(), interaction_id: None },
    );
    Ok(id)
}

//! From a runtime's reading to stored interactions and card jobs.
//!
//! Invariant: readings are the truth, and only a reading that changes something writes anything, so
//! that watching many open interactions costs reads, not writes.
//!
//! Known races: two readings of one task arrive in either order. Each carries when its request began;
//! the state machine ignores an older "open". Two views of one interaction (two subjects see the task)
//! give one row; the owner is then not known.

use super::Bridge;
use super::effects::Cause;
use super::ports::{Seen, TaskReading, TaskState};
use crate::domain::clock::Millis;
use crate::domain::form::{Form, Kind};
use crate::domain::ids::{InteractionId, InteractionKey, RuntimeName, Subject};
use crate::domain::interaction::{Effect, End, Event, Reading};
use crate::domain::place::Place;
use crate::domain::routing::route;
use crate::store::interactions::{Head, NewInteraction, Phase};
use crate::store::{StoreError, Tx};
use futures_util::stream::{self, TryStreamExt};
use std::collections::HashMap;
use std::sync::Arc;

/// How many readings are taken in at once: fewer than the connections of PostgreSQL, which presses need too.
const AT_ONCE: usize = 4;

impl Bridge {
    /// Takes in one reading. `doubted` holds back "not found" (the brake on mass disappearance).
    pub async fn observe(
        self: &Arc<Self>,
        runtime: &RuntimeName,
        reading: TaskReading,
        doubted: bool,
    ) -> Result<(), StoreError> {
        match &reading.state {
            TaskState::Unclear => Ok(()),
            TaskState::Waiting(seen) => {
                let key = seen.key.clone();
                let head = self.store.read(|tx| Box::pin(async move { tx.head(&key).await })).await?;
                if let Some(head) = &head
                    && !self.changes(head, seen)
                    && !self.others_open(runtime, &reading.task, head.id).await?
                {
                    return Ok(());
                }
                self.take_in(runtime, reading, doubted).await
            }
            _ => {
                let (name, task) = (runtime.clone(), reading.task.clone());
                let open = self
                    .store
                    .read(|tx| Box::pin(async move { tx.unsettled_of_task(&name, &task).await }))
                    .await?;
                if open.is_empty() { Ok(()) } else { self.take_in(runtime, reading, doubted).await }
            }
        }
    }

    /// Takes in a page of readings: one look tells which of them say anything new, and those are taken in side
    /// by side, so that they share commits. Their order says nothing: each carries when it began.
    pub(super) async fn observe_page(
        self: &Arc<Self>,
        runtime: &RuntimeName,
        readings: Vec<TaskReading>,
    ) -> Result<(), StoreError> {
        let (name, tasks) = (runtime.clone(), readings.iter().map(|r| r.task.clone()).collect::<Vec<_>>());
        let known = self
            .store
            .read(|tx| {
                Box::pin(async move {
                    let tasks: Vec<&str> = tasks.iter().map(String::as_str).collect();
                    tx.heads_of(&name, &tasks).await
                })
            })
            .await?;
        let mut of_task: HashMap<&str, Vec<(&InteractionKey, &Head)>> = HashMap::new();
        for (key, head) in &known {
            of_task.entry(key.task.as_str()).or_default().push((key, head));
        }
        let says_nothing = |reading: &TaskReading| match (&reading.state, of_task.get(reading.task.as_str()))
        {
            (TaskState::Waiting(seen), Some(rows)) => match rows.as_slice() {
                [(key, head)] => **key == seen.key && !self.changes(head, seen),
                _ => false,
            },
            _ => false,
        };
        let news: Vec<_> = readings.into_iter().filter(|reading| !says_nothing(reading)).collect();
        self.observe_all(runtime, news.into_iter().map(|reading| (reading, true)).collect()).await
    }

    /// Takes in readings side by side; each with whether its "not found" is doubted.
    pub(super) async fn observe_all(
        self: &Arc<Self>,
        runtime: &RuntimeName,
        readings: Vec<(TaskReading, bool)>,
    ) -> Result<(), StoreError> {
        stream::iter(readings.into_iter().map(Ok))
            .try_for_each_concurrent(AT_ONCE, |(reading, doubted)| self.observe(runtime, reading, doubted))
            .await
    }

    /// Whether a reading says anything that its row does not.
    pub(super) fn changes(&self, head: &Head, seen: &Seen) -> bool {
        let owner = seen.owner.as_ref().map(Subject::as_str);
        head.phase != Phase::Open
            || head.missing
            || (!head.routed && route(&self.rules.routes, &seen.key, &seen.form).is_some())
            || head.digest != seen.form.digest(&seen.key)
            || (!head.owner_doubt && owner.is_some() && owner != head.owner.as_deref())
    }

    async fn others_open(
        &self,
        runtime: &RuntimeName,
        task: &str,
        this: InteractionId,
    ) -> Result<bool, StoreError> {
        let (name, task) = (runtime.clone(), task.to_owned());
        let open =
            self.store.read(|tx| Box::pin(async move { tx.unsettled_of_task(&name, &task).await })).await?;
        Ok(open.iter().any(|id| *id != this))
    }

    async fn take_in(
        self: &Arc<Self>,
        runtime: &RuntimeName,
        reading: TaskReading,
        doubted: bool,
    ) -> Result<(), StoreError> {
        let bridge = Arc::clone(self);
        let opens = matches!(reading.state, TaskState::Waiting(_));
        let runtime = runtime.clone();
        let now = self.clock.now();
        self.store
            .write(move |tx| {
                Box::pin(async move { bridge.write_reading(tx, &runtime, &reading, doubted, now).await })
            })
            .await?;
        if opens {
            self.tracking.hint();
        }
        Ok(())
    }

    /// Writes one reading, in the caller's transaction.
    pub(super) async fn write_reading(
        self: &Arc<Self>,
        tx: &mut Tx,
        runtime: &RuntimeName,
        reading: &TaskReading,
        doubted: bool,
        now: Millis,
    ) -> Result<(), StoreError> {
        let shown = match &reading.state {
            TaskState::Waiting(seen) => {
                let (id, ended) = self.write_seen(tx, seen, reading, now).await?;
                // A lagging view that still shows what has ended here says nothing of what came after it.
                if ended {
                    return Ok(());
                }
                Some(id)
            }
            _ => None,
        };
        for id in tx.unsettled_of_task(runtime, &reading.task).await? {
            if Some(id) == shown {
                continue;
            }
            let Some(mut interaction) = tx.interaction(id, true).await? else { continue };
            if let Some(seen) = reading_for(&interaction.key.external, reading, doubted) {
                let event = Event::Read { reading: seen, began: reading.began, at: now };
                self.apply(tx, &mut interaction, event, &Cause::default(), now).await?;
            }
        }
        Ok(())
    }

    /// Writes the open interaction that a reading shows; its id, and whether it has ended here.
    async fn write_seen(
        self: &Arc<Self>,
        tx: &mut Tx,
        seen: &Seen,
        reading: &TaskReading,
        now: Millis,
    ) -> Result<(InteractionId, bool), StoreError> {
        let Some(head) = tx.head(&seen.key).await? else {
            let id = InteractionId(self.ids.uuid());
            let digest = seen.form.digest(&seen.key);
            let new = NewInteraction {
                id,
                key: &seen.key,
                context: reading.context.as_deref(),
                seen_as: reading.seen_as.as_ref(),
                form: &seen.form,
                owner: seen.owner.as_ref(),
                digest: &digest,
                opened: now,
                read_at: reading.began,
            };
            if tx.insert_interaction(&new).await? {
                metrics::counter!("countersign_opened_total", "kind" => seen.form.kind.as_str()).increment(1);
                self.queue_cards(tx, id, seen, seen.owner.as_ref(), now).await?;
            }
            return Ok((id, false));
        };
        let Some(mut interaction) = tx.interaction(head.id, true).await? else {
            return Ok((head.id, false));
        };
        // Two views of one interaction: a field that one view lacks keeps its value.
        let merged = merge(&interaction.form, &seen.form);
        let digest = merged.digest(&seen.key);
        let stale = reading.began < interaction.machine.read_at;
        let known_owner = interaction.owner.clone();
        if !head.owner_doubt && !stale {
            match (&interaction.owner, &seen.owner) {
                (None, Some(owner)) => {
                    tx.set_owner(head.id, Some(owner), false).await?;
                    interaction.owner = Some(owner.clone());
                }
                (Some(known), Some(other)) if known != other => {
                    tx.set_owner(head.id, None, true).await?;
                    interaction.owner = None;
                }
                _ => {}
            }
        }
        let event = Event::Read { reading: Reading::Open { digest }, began: reading.began, at: now };
        let effects = self.apply(tx, &mut interaction, event, &Cause::default(), now).await?;
        // What has ended keeps the words that were decided about.
        let ended = super::is_settled(&interaction.machine);
        if !stale && !ended && merged != interaction.form {
            tx.set_form(head.id, &merged, reading.context.as_deref()).await?;
            interaction.form = merged;
        }
        if interaction.owner != known_owner && !ended && !effects.contains(&Effect::Redraw) {
            // For whom the agent works stands on the card.
            let (same, due) = (interaction.machine.clone(), interaction.read_due);
            tx.save(&mut interaction, same, true, due, now).await?;
            self.queue_redraw(tx, &interaction, false, now).await?;
        }
        if !interaction.routed && !super::is_settled(&interaction.machine) {
            self.queue_cards(tx, head.id, seen, interaction.owner.as_ref(), now).await?;
        } else if let (None, Some(owner), false) = (&known_owner, &interaction.owner, ended) {
            self.owner_known(tx, head.id, seen, owner, now).await?;
        }
        Ok((head.id, super::is_settled(&interaction.machine)))
    }

    /// Routes an interaction and queues a card for each of its places.
    async fn queue_cards(
        self: &Arc<Self>,
        tx: &mut Tx,
        id: InteractionId,
        seen: &Seen,
        owner: Option<&Subject>,
        now: Millis,
    ) -> Result<(), StoreError> {
        let Some(found) = route(&self.rules.routes, &seen.key, &seen.form) else {
            metrics::counter!("countersign_unrouted_total").increment(1);
            let key = format!("unrouted:{}", seen.key.runtime);
            let text = format!(
                "an interaction of runtime {} matches no route and is posted nowhere; `countersign open` lists it",
                seen.key.runtime
            );
            if tx.raise(&key, &text, now).await? {
                tracing::error!(alert = key, "{text}");
            }
            return Ok(());
        };
        if self.queue_places(tx, id, owner, &found.to, false, now).await? == 0
            && self.queue_places(tx, id, owner, &found.fallback, true, now).await? == 0
        {
            let key = format!("card:{id}");
            let text = format!("interaction {} has no place yet: nobody linked is known there", id.short());
            if tx.raise(&key, &text, now).await? {
                tracing::error!(alert = key, "{text}");
            }
        }
        tx.set_routed(id).await
    }

    /// For whom the agent works is known now: `dm:owner` has its spots.
    async fn owner_known(
        self: &Arc<Self>,
        tx: &mut Tx,
        id: InteractionId,
        seen: &Seen,
        owner: &Subject,
        now: Millis,
    ) -> Result<(), StoreError> {
        let Some(found) = route(&self.rules.routes, &seen.key, &seen.form) else { return Ok(()) };
        if found.to.contains(&Place::Owner)
            && self.queue_places(tx, id, Some(owner), &[Place::Owner], false, now).await? > 0
        {
            tx.clear(&format!("card:{id}")).await?;
        }
        Ok(())
    }
}

/// What a task's reading says of one interaction that it does not show as open.
fn reading_for(external: &str, reading: &TaskReading, doubted: bool) -> Option<Reading> {
    let resolved = || {
        // Our own answers carry our message id; what ended it elsewhere does not.
        let past = reading.history.iter().rev().find(|past| past.external == external);
        End::Resolved { who: past.and_then(|p| p.who.clone()), what: past.and_then(|p| p.what) }
    };
    match &reading.state {
        TaskState::Waiting(seen) if seen.key.external == external => None,
        TaskState::Waiting(_) | TaskState::Running | TaskState::Completed => Some(Reading::Ended(resolved())),
        TaskState::Ended(end) => Some(Reading::Ended(end.clone())),
        TaskState::NotFound => Some(Reading::NotFound { doubted }),
        TaskState::Unclear => None,
    }
}

/// The reading of one interaction as the state machine takes it.
pub(super) fn reading_of(
    interaction: &crate::store::interactions::Interaction,
    reading: &TaskReading,
    doubted: bool,
) -> Option<Reading> {
    match &reading.state {
        TaskState::Waiting(seen) if seen.key.external == interaction.key.external => {
            let digest = merge(&interaction.form, &seen.form).digest(&interaction.key);
            Some(Reading::Open { digest })
        }
        _ => reading_for(&interaction.key.external, reading, doubted),
    }
}

/// A newer view over what is known: what it lacks keeps its value.
fn merge(known: &Form, newer: &Form) -> Form {
    let keep = |old: &String, new: &String| if new.is_empty() { old.clone() } else { new.clone() };
    let mut facts = newer.facts.clone();
    for fact in &known.facts {
        if !facts.iter().any(|f| f.label == fact.label) {
            facts.push(fact.clone());
        }
    }
    // The order of facts is the first view's, so that a view that lacks one does not reorder them.
    facts.sort_by_key(|fact| known.facts.iter().position(|f| f.label == fact.label).unwrap_or(usize::MAX));
    Form {
        kind: if newer.kind == Kind::Unknown { known.kind.clone() } else { newer.kind.clone() },
        title: keep(&known.title, &newer.title),
        prompt: keep(&known.prompt, &newer.prompt),
        facts,
        questions: if newer.questions.is_empty() { known.questions.clone() } else { newer.questions.clone() },
        arguments_withheld: newer.arguments_withheld || known.arguments_withheld,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::form::Fact;

    fn form(prompt: &str, facts: &[(&str, &str)]) -> Form {
        Form {
            kind: Kind::Approval,
            title: "t".into(),
            prompt: prompt.into(),
            facts: facts.iter().map(|(l, v)| Fact { label: (*l).into(), value: (*v).into() }).collect(),
            questions: vec![],
            arguments_withheld: true,
        }
    }

    #[test]
    fn a_view_that_lacks_a_field_keeps_its_value_and_its_order() {
        let known = form("p", &[("server", "ci"), ("tool", "deploy"), ("reason", "r")]);
        assert_eq!(merge(&known, &form("", &[("tool", "deploy")])), known);
        let newer = merge(&known, &form("p2", &[("reason", "r2"), ("server", "ci")]));
        assert_eq!(newer, form("p2", &[("server", "ci"), ("tool", "deploy"), ("reason", "r2")]));
    }
}

//! Comparing with the runtimes: what is open there is open here, what ended there ends here.
//!
//! Invariant: reading is the truth and absence is doubted. What a list does not show is read by itself;
//! "not found" closes after two readings at least ten seconds apart, and not at all while it would end
//! more than half of a runtime's open interactions (and at least three) within a minute.
//!
//! Registered tasks are read as the subject they were registered with. That it is not found so says nothing
//! about an interaction that another view shows; a reading that succeeds names the owner. One that is not
//! found for an hour is not read any more.
//!
//! Known race: a pass takes longer than an interaction lives. Each reading says when it began, and the
//! state machine ignores the older of two.

use super::Bridge;
use super::ports::{ChatError, ChatPlatform, Connector, ConnectorError, TaskReading, TaskRef, TaskState};
use crate::domain::clock::Millis;
use crate::domain::ids::{InteractionId, RuntimeName, Subject};
use crate::domain::interaction::MISSING;
use crate::store::StoreError;
use crate::store::interactions::OpenTask;
use crate::store::tasks::DueTask;
use crate::store::watches::HookRow;
use futures_util::stream::{self, StreamExt};
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// Absence is believed when it is still read after this long.
const BELIEVED: Duration = Duration::from_hours(1);
/// The time over which closings count together.
const BRAKE_WINDOW: Duration = Duration::from_mins(1);
const BRAKE_LEAST: i64 = 3;
/// How many single readings go out at once.
const READS_AT_ONCE: usize = 8;
const PAGE: i64 = 500;
/// Everything is read at least so often, whatever tells of it.
pub(super) const FULL_EVERY: Duration = Duration::from_mins(5);

/// What one pass found out.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Pass {
    /// Tasks shown by the list.
    pub listed: usize,
    /// Tasks read by themselves.
    pub read: usize,
    /// "Not found" answers that were held back.
    pub doubted: usize,
    /// The runtime answered everything that was asked.
    pub complete: bool,
}

/// A task to read, as one view shows it.
pub(super) struct Wanted {
    pub(super) task: TaskRef,
    /// An interaction of this view is open or asked to be read.
    pub(super) open: bool,
    pub(super) registered: Option<DueTask>,
}

/// Tasks to read, by task and view.
type Tasks = HashMap<(String, Option<String>), Wanted>;

fn view(task: &str, seen_as: Option<&Subject>) -> (String, Option<String>) {
    (task.to_owned(), seen_as.map(|subject| subject.as_str().to_owned()))
}

fn add(tasks: &mut Tasks, open: OpenTask) {
    let OpenTask { id: _, task, context, seen_as, external: _ } = open;
    tasks.entry(view(&task, seen_as.as_ref())).or_insert(Wanted {
        task: TaskRef { task, context, seen_as },
        open: true,
        registered: None,
    });
}

fn mark(task: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    task.hash(&mut hasher);
    hasher.finish()
}

/// Under this name it is kept what an install was last told of our commands. No place is written so.
const SHOWN_OF_US: &str = "~commands";

impl Bridge {
    /// One pass over a runtime that reads everything.
    pub async fn watch_once(self: &Arc<Self>, runtime: &str) -> Result<Pass, StoreError> {
        self.pass_over(runtime, true).await
    }

    /// One pass over a runtime. Not `full`: what a stream tells of is not read by itself, where there is
    /// no list that could show it.
    pub(super) async fn pass_over(self: &Arc<Self>, runtime: &str, full: bool) -> Result<Pass, StoreError> {
        let Some(connector) = self.connectors.get(runtime).cloned() else { return Ok(Pass::default()) };
        let name = connector.runtime().clone();
        let mut pass = Pass { complete: true, ..Pass::default() };
        if let Err(error) = connector.refresh().await {
            self.watch_failed(&name, &error).await;
            pass.complete = false;
            if matches!(error, ConnectorError::Configuration { .. }) {
                return Ok(pass);
            }
        }
        if self.directory.described_anew(runtime, connector.generation()) {
            self.hurry_answers(Some(runtime)).await?;
        }
        let listed = self.walk_list(&connector, &name, &mut pass).await?;
        let tasks = self.to_read(&name, listed.as_ref(), full).await?;
        let readings = self.read_all(&connector, &name, tasks, &mut pass).await;
        self.take_in_singles(&name, readings, &mut pass).await?;
        if pass.complete {
            self.note_pass(&name).await?;
            self.clear_what_is_well(&name).await?;
        }
        Ok(pass)
    }

    /// After a whole pass: the alerts that it shows to be over.
    async fn clear_what_is_well(&self, runtime: &RuntimeName) -> Result<(), StoreError> {
        let name = runtime.clone();
        let (alerts, (answering, unrouted)) = self
            .store
            .read(|tx| Box::pin(async move { Ok((tx.alerts().await?, tx.waiting(&name).await?)) }))
            .await?;
        let well = [
            (format!("runtime:{runtime}"), true),
            (format!("answers:{runtime}"), answering == 0),
            (format!("unrouted:{runtime}"), unrouted == 0),
        ];
        for (key, _) in well.iter().filter(|(key, well)| *well && alerts.iter().any(|a| a.key == *key)) {
            self.all_clear(key).await;
        }
        Ok(())
    }

    pub(super) async fn watch_failed(&self, runtime: &RuntimeName, error: &ConnectorError) {
        metrics::counter!("countersign_watch_errors_total", "runtime" => runtime.as_str().to_owned())
            .increment(1);
        match error {
            ConnectorError::Unavailable { what, .. } | ConnectorError::Protocol { what } => {
                tracing::warn!(%runtime, what, "the runtime could not be read");
            }
            ConnectorError::Unauthorized { .. } | ConnectorError::Configuration { .. } => {
                self.alert(
                    &format!("runtime:{runtime}"),
                    &format!("runtime {runtime} cannot be watched: {error}"),
                )
                .await;
            }
        }
    }

    /// Walks the list to its end; the tasks it showed, or `None` when it was not walked to the end.
    async fn walk_list(
        self: &Arc<Self>,
        connector: &Arc<dyn Connector>,
        runtime: &RuntimeName,
        pass: &mut Pass,
    ) -> Result<Option<HashSet<u64>>, StoreError> {
        let mut shown = HashSet::new();
        let mut cursor = None;
        loop {
            let page = match connector.list(cursor).await {
                Ok(page) => page,
                Err(error) => {
                    self.watch_failed(runtime, &error).await;
                    pass.complete = false;
                    return Ok(None);
                }
            };
            if !page.supported {
                return Ok(None);
            }
            for reading in &page.readings {
                if shown.insert(mark(&reading.task)) {
                    pass.listed += 1;
                }
            }
            self.observe_page(runtime, page.readings).await?;
            match page.next {
                Some(next) => cursor = Some(next),
                None => return Ok(Some(shown)),
            }
        }
    }

    /// The tasks that must be read by themselves: those the list does not show, those that asked for
    /// it, and the registered ones whose time has come.
    async fn to_read(
        &self,
        runtime: &RuntimeName,
        listed: Option<&HashSet<u64>>,
        full: bool,
    ) -> Result<Vec<Wanted>, StoreError> {
        let mut tasks = Tasks::new();
        let mut after = InteractionId(Uuid::nil());
        loop {
            let name = runtime.clone();
            let page = self
                .store
                .read(|tx| Box::pin(async move { tx.open_after(&name, after, PAGE).await }))
                .await?;
            let Some(last) = page.last() else { break };
            after = last.id;
            for open in page {
                // Missing from a list that was walked to its end is read, whatever a stream says.
                let told = !full && listed.is_none() && self.tracking.is_live(runtime.as_str(), &open.task);
                if !told && listed.is_none_or(|listed| !listed.contains(&mark(&open.task))) {
                    add(&mut tasks, open);
                }
            }
        }
        self.add_due(runtime, &mut tasks).await?;
        Ok(tasks.into_values().collect())
    }

    /// Reads what is due by itself: what asked to be read again, the registered tasks whose time has come,
    /// and the tasks of which a runtime has told us something.
    pub async fn read_due(self: &Arc<Self>, runtime: &str) -> Result<Pass, StoreError> {
        let mut pass = Pass { complete: true, ..Pass::default() };
        let Some(connector) = self.connectors.get(runtime).cloned() else { return Ok(pass) };
        let name = connector.runtime().clone();
        let mut tasks = Tasks::new();
        self.add_due(&name, &mut tasks).await?;
        let hooks = self.add_hinted(&name, &mut tasks).await?;
        if tasks.is_empty() {
            return Ok(pass);
        }
        let readings = self.read_all(&connector, &name, tasks.into_values().collect(), &mut pass).await;
        let read: HashSet<String> = readings.iter().map(|(_, reading)| reading.task.clone()).collect();
        let complete = pass.complete;
        // Part of a pass shows no alert to be over.
        pass.complete = false;
        self.take_in_singles(&name, readings, &mut pass).await?;
        pass.complete = complete;
        self.hooks_read(hooks, &read).await?;
        Ok(pass)
    }

    async fn add_due(&self, runtime: &RuntimeName, tasks: &mut Tasks) -> Result<(), StoreError> {
        let now = self.clock.now();
        let name = runtime.clone();
        let due =
            self.store.read(|tx| Box::pin(async move { tx.due_readings(&name, now, PAGE).await })).await?;
        for open in due {
            add(tasks, open);
        }
        let name = runtime.clone();
        let registered = self
            .store
            .read(|tx| Box::pin(async move { tx.due_tasks(name.as_str(), now, PAGE).await }))
            .await?;
        for due in registered {
            let seen_as = due.subject.as_deref().and_then(|text| Subject::parse(text).ok());
            let wanted = tasks.entry(view(&due.task, seen_as.as_ref())).or_insert_with(|| Wanted {
                task: TaskRef { task: due.task.clone(), context: due.context.clone(), seen_as },
                open: false,
                registered: None,
            });
            wanted.registered = Some(due);
        }
        Ok(())
    }

    /// The tasks of which the runtime has told us something since they were read, or that are read all the
    /// same from time to time.
    async fn add_hinted(&self, runtime: &RuntimeName, tasks: &mut Tasks) -> Result<Vec<HookRow>, StoreError> {
        let now = self.clock.now();
        let name = runtime.clone();
        let hooks = self
            .store
            .read(|tx| Box::pin(async move { tx.due_hooks(name.as_str(), now, false, PAGE).await }))
            .await?;
        for hook in &hooks {
            tasks.entry(view(&hook.task, hook.seen_as.as_ref())).or_insert_with(|| Wanted {
                task: TaskRef {
                    task: hook.task.clone(),
                    context: hook.context.clone(),
                    seen_as: hook.seen_as.clone(),
                },
                open: true,
                registered: None,
            });
        }
        Ok(hooks)
    }

    async fn read_all(
        self: &Arc<Self>,
        connector: &Arc<dyn Connector>,
        runtime: &RuntimeName,
        tasks: Vec<Wanted>,
        pass: &mut Pass,
    ) -> Vec<(Wanted, TaskReading)> {
        let answers: Vec<_> = stream::iter(tasks)
            .map(|wanted| {
                let connector = Arc::clone(connector);
                async move { connector.read(&wanted.task).await.map(|reading| (wanted, reading)) }
            })
            .buffer_unordered(READS_AT_ONCE)
            .collect()
            .await;
        let mut readings = vec![];
        let mut failed = None;
        for answer in answers {
            match answer {
                Ok(reading) => readings.push(reading),
                Err(error) => failed = Some(error),
            }
        }
        pass.read = readings.len();
        if let Some(error) = failed {
            pass.complete = false;
            self.watch_failed(runtime, &error).await;
        }
        readings
    }

    /// Takes in single readings, with the brake on mass disappearance.
    pub(super) async fn take_in_singles(
        self: &Arc<Self>,
        runtime: &RuntimeName,
        singles: Vec<(Wanted, TaskReading)>,
        pass: &mut Pass,
    ) -> Result<(), StoreError> {
        let now = self.clock.now();
        let mut readings = vec![];
        for (wanted, mut reading) in singles {
            if let Some(registered) = &wanted.registered {
                self.task_seen(runtime, registered, &reading, now).await?;
                if let TaskState::Waiting(seen) = &mut reading.state {
                    seen.owner = seen.owner.take().or_else(|| wanted.task.seen_as.clone());
                }
            }
            if wanted.open || !matches!(reading.state, TaskState::NotFound) {
                readings.push(reading);
            }
        }
        let mut closing: Vec<(String, Millis)> = vec![];
        let mut absent = 0;
        for reading in readings.iter().filter(|reading| matches!(reading.state, TaskState::NotFound)) {
            let (name, task) = (runtime.clone(), reading.task.clone());
            let since =
                self.store.read(|tx| Box::pin(async move { tx.missing_since(&name, &task).await })).await?;
            absent += since.len();
            for since in since.into_iter().flatten().filter(|since| reading.began.since(*since) >= MISSING) {
                closing.push((reading.task.clone(), since));
            }
        }
        let name = runtime.clone();
        // Counted only where something is absent: this comes with every event of a stream.
        let (open, gone) = if readings.iter().any(|reading| matches!(reading.state, TaskState::NotFound)) {
            self.store
                .read(|tx| Box::pin(async move { tx.absence(&name, now.minus(BRAKE_WINDOW)).await }))
                .await?
        } else {
            (0, 0)
        };
        let would_close = i64::try_from(closing.len()).unwrap_or(i64::MAX).saturating_add(gone);
        let braked = would_close >= BRAKE_LEAST && would_close.saturating_mul(2) > open.saturating_add(gone);
        let alert = format!("absence:{runtime}");
        if braked && !closing.is_empty() {
            self.alert(
                &alert,
                &format!(
                    "{} of {open} open interactions of runtime {runtime} are not found at once; nothing is closed",
                    closing.len()
                ),
            )
            .await;
        } else if absent == 0 && pass.complete {
            self.all_clear(&alert).await;
        }
        let mut judged = vec![];
        for reading in readings {
            let long = closing
                .iter()
                .filter(|(task, _)| *task == reading.task)
                .all(|(_, since)| reading.began.since(*since) >= BELIEVED);
            let doubted = braked && !long && matches!(reading.state, TaskState::NotFound);
            pass.doubted += usize::from(doubted);
            judged.push((reading, doubted));
        }
        self.observe_all(runtime, judged).await
    }

    /// Plans the next reading of a registered task.
    async fn task_seen(
        &self,
        runtime: &RuntimeName,
        registered: &DueTask,
        reading: &TaskReading,
        now: Millis,
    ) -> Result<(), StoreError> {
        let (name, task) = (runtime.clone(), reading.task.clone());
        let told = self.tracking.is_live(runtime.as_str(), &reading.task);
        let next = match &reading.state {
            TaskState::Waiting(_) | TaskState::Running | TaskState::Unclear if told => {
                Some(now.plus(FULL_EVERY))
            }
            TaskState::Waiting(_) => Some(now.plus(Duration::from_secs(5))),
            TaskState::Running | TaskState::Unclear => Some(now.plus(Duration::from_mins(1))),
            TaskState::NotFound => match registered.missing.map(|since| now.since(since)) {
                Some(missing) if missing >= BELIEVED => None,
                Some(missing) if missing >= BRAKE_WINDOW => Some(now.plus(Duration::from_mins(1))),
                _ => Some(now.plus(MISSING)),
            },
            TaskState::Completed | TaskState::Ended(_) => None,
        };
        let missing = matches!(reading.state, TaskState::NotFound).then_some(now);
        self.store
            .write(move |tx| {
                Box::pin(async move {
                    match next {
                        Some(due) => tx.task_read(name.as_str(), &task, due, missing).await?,
                        None => tx.task_ended(name.as_str(), &task, now).await?,
                    };
                    Ok(())
                })
            })
            .await
    }

    /// Tells an install what it shows of us, when that has changed.
    async fn introduce(&self, platform: &Arc<dyn ChatPlatform>) -> Result<(), StoreError> {
        let install = platform.install().to_owned();
        let known = {
            let install = install.clone();
            self.store.read(|tx| Box::pin(async move { tx.pin(&install, SHOWN_OF_US).await })).await?
        };
        let alert = format!("commands:{install}");
        match platform.introduce(known.as_deref()).await {
            Ok(None) => {}
            Ok(Some(mark)) => {
                self.all_clear(&alert).await;
                let now = self.clock.now();
                self.store
                    .write(move |tx| {
                        Box::pin(async move { tx.keep_mark(&install, SHOWN_OF_US, &mark, now).await })
                    })
                    .await?;
            }
            Err(ChatError::Permanent { code }) => {
                let text = format!("{install} does not take our commands ({code}); those of before stay");
                self.alert(&alert, &text).await;
            }
            // The next time we ask who we are.
            Err(error) => tracing::warn!(install, %error, "our commands could not be told"),
        }
        Ok(())
    }

    /// Asks a chat install who we are there, and keeps it.
    pub async fn identify_once(self: &Arc<Self>, install: &str) -> Result<bool, StoreError> {
        let Some(platform) = self.platforms.get(install).cloned() else { return Ok(false) };
        match platform.identify().await {
            Ok(identity) => {
                self.directory.set_identity(install, identity.clone());
                let (name, now) = (install.to_owned(), self.clock.now());
                let kind = platform.platform();
                self.store
                    .write(move |tx| {
                        Box::pin(async move { tx.set_install(&name, kind, &identity, now).await })
                    })
                    .await?;
                self.recognised(install).await;
                self.introduce(&platform).await?;
                Ok(true)
            }
            Err(super::ports::ChatError::Auth { code, needed }) => {
                self.stop_install(install, &code, &needed).await;
                Ok(false)
            }
            Err(error) => {
                tracing::warn!(install, %error, "the chat platform could not be asked who we are");
                Ok(false)
            }
        }
    }
}

//! Finding tasks: `ListTasks`, per watched subject and interrupted state (A2A 1.0 §3.1.4).
//!
//! Invariants:
//! - pages shift while statuses change, so tokens are followed to the end, an interaction seen twice
//!   in a pass is given once, and a repeated token or the thousandth page ends a walk;
//! - the state of every returned task is checked again: a server may ignore a filter it does not know;
//! - a runtime that cannot list is left alone until its card changes or an hour has passed;
//! - an owner is named only where one subject is watched, or where a whole pass over all watched
//!   subjects has shown the task to exactly one of them.
//!
//! What a pass remembers is in memory: a cursor that outlived it just ends its pass.
//! One subject that is refused does not hide the others'; the pass then determines no owner.

use super::call::Op;
use super::card::Interface;
use super::errors::{self, Failure};
use super::interactions::{View, reading};
use super::types::{Task, text};
use super::{A2aConnector, Watched};
use crate::bridge::ports::{ConnectorError, Page, TaskReading, TaskState};
use crate::domain::ids::Subject;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

const STATES: [&str; 2] = ["TASK_STATE_INPUT_REQUIRED", "TASK_STATE_AUTH_REQUIRED"];
const PAGE_SIZE: u32 = 100;
const MOST_PAGES: u32 = 1000;
/// Passes that are remembered at once; more means that passes were abandoned.
const PASSES: usize = 4;

/// Where a pass is.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Cursor {
    pass: u64,
    subject: usize,
    state: usize,
    token: String,
    page: u32,
}

#[derive(Default)]
pub(crate) struct Lists {
    memory: Mutex<Memory>,
}

#[derive(Default)]
struct Memory {
    passes: BTreeMap<u64, Pass>,
    last: u64,
    /// Tasks that the last whole pass showed to exactly one subject.
    owners: HashMap<String, Subject>,
}

/// What one pass remembers.
struct Pass {
    subjects: Vec<Option<Subject>>,
    tokens: HashSet<String>,
    given: HashSet<(String, String)>,
    seen_by: HashMap<String, HashSet<usize>>,
    /// Readings whose owner is not known yet.
    ownerless: HashMap<String, TaskReading>,
    whole: bool,
    refused: Option<(usize, ConnectorError)>,
}

impl Lists {
    fn lock(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The owner of a task, as the last whole pass over several subjects showed it.
    pub(crate) fn owner(&self, task: &str, seen_as: &Subject) -> Option<Subject> {
        self.lock().owners.get(task).filter(|owner| *owner == seen_as).cloned()
    }
}

impl A2aConnector {
    /// One page of the pass.
    pub(crate) async fn list_page(&self, cursor: Option<String>) -> Result<Page, ConnectorError> {
        let known = self.discovery.current(&self.wire).await?;
        let generation = self.discovery.generation();
        let now = self.wire.now();
        let unsupported = Page { readings: vec![], next: None, supported: false };
        let ended = Page { supported: true, ..Page::default() };
        if !self.features.list.may_be_there(now, generation) {
            return Ok(unsupported);
        }
        let mut at = match cursor {
            None => match self.begin() {
                Some(at) => at,
                None => return Ok(ended),
            },
            Some(text) => match serde_json::from_str::<Cursor>(&text) {
                Ok(at) => at,
                Err(_) => return Err(ConnectorError::Protocol { what: "not a cursor of ours".into() }),
            },
        };
        let subject = {
            let memory = self.lists.lock();
            match memory.passes.get(&at.pass).and_then(|pass| pass.subjects.get(at.subject)) {
                Some(subject) => subject.clone(),
                None => return Ok(ended),
            }
        };
        let asked = self.ask(&known.interface, &at, subject.as_ref()).await;
        let (tasks, next) = match asked {
            Ok(page) => page,
            Err(failure) if errors::says_unsupported(&failure) => {
                self.features.list.refused(now, generation);
                self.lists.lock().passes.remove(&at.pass);
                return Ok(unsupported);
            }
            Err(failure) => match errors::of_reading(&failure) {
                error @ ConnectorError::Unauthorized { .. } if subject.is_some() => {
                    return self.skip(&at, error);
                }
                error => {
                    self.lists.lock().passes.remove(&at.pass);
                    return Err(error);
                }
            },
        };
        let mut readings = vec![];
        for task in tasks {
            if !task.state.interrupted() {
                continue;
            }
            let view = View {
                runtime: &self.settings.name,
                agent: &known.agent,
                owner: subject.as_ref().and_then(|subject| self.owner(&task.id, subject)),
                seen_as: subject.clone(),
                began: now,
            };
            if task.message.is_some() {
                readings.push(reading(&task, view));
            } else if let Ok(read) = self.get_task(&task.id, subject.as_ref()).await {
                // A server that lists without the status message.
                readings.push(read);
            }
        }
        let pass_id = at.pass;
        let mut memory = self.lists.lock();
        let Some(pass) = memory.passes.get_mut(&pass_id) else { return Ok(ended) };
        let mut readings: Vec<TaskReading> =
            readings.into_iter().filter(|one| pass.note(one, at.subject)).collect();
        let more = next.filter(|token| at.page + 1 < MOST_PAGES && pass.tokens.insert(token.clone()));
        if let Some(token) = more {
            at = Cursor { token, page: at.page + 1, ..at };
            return page(readings, Some(&at));
        }
        let next = pass.following(&at);
        if next.is_none() {
            readings.extend(memory.finish(pass_id));
        }
        page(readings, next.as_ref())
    }

    /// Begins a pass; `None` when nobody is watched.
    fn begin(&self) -> Option<Cursor> {
        let subjects: Vec<Option<Subject>> = match self.watched() {
            Watched::Credential => vec![None],
            Watched::Subjects(subjects) => subjects.into_iter().map(Some).collect(),
        };
        if subjects.is_empty() {
            return None;
        }
        let mut memory = self.lists.lock();
        memory.last += 1;
        let pass = memory.last;
        while memory.passes.len() >= PASSES {
            memory.passes.pop_first();
        }
        memory.passes.insert(
            pass,
            Pass {
                subjects,
                tokens: HashSet::new(),
                given: HashSet::new(),
                seen_by: HashMap::new(),
                ownerless: HashMap::new(),
                whole: true,
                refused: None,
            },
        );
        Some(Cursor { pass, subject: 0, state: 0, token: String::new(), page: 0 })
    }

    /// Goes on without a subject that is refused; when all are, the pass has failed.
    fn skip(&self, at: &Cursor, error: ConnectorError) -> Result<Page, ConnectorError> {
        let mut memory = self.lists.lock();
        let Some(pass) = memory.passes.get_mut(&at.pass) else { return Err(error) };
        tracing::warn!(runtime = %self.settings.name, %error, "one watched subject was refused");
        let refused = pass.refused.as_ref().map_or(0, |(count, _)| *count) + 1;
        let all = refused == pass.subjects.len();
        pass.refused = Some((refused, error.clone()));
        pass.whole = false;
        let next = pass.following(&Cursor { state: STATES.len(), ..at.clone() });
        if next.is_none() {
            memory.passes.remove(&at.pass);
            if all {
                return Err(error);
            }
        }
        page(vec![], next.as_ref())
    }

    async fn ask(
        &self,
        interface: &Interface,
        at: &Cursor,
        subject: Option<&Subject>,
    ) -> Result<(Vec<Task>, Option<String>), Failure> {
        let state = STATES.get(at.state).copied().unwrap_or(STATES[0]);
        let mut params = json!({
            "status": state, "pageSize": PAGE_SIZE, "historyLength": 0, "includeArtifacts": false,
        });
        if !at.token.is_empty() {
            params["pageToken"] = at.token.clone().into();
        }
        let result = self.wire.call(interface, Op::ListTasks, &params, subject).await?;
        let tasks = match result.get("tasks") {
            Some(Value::Array(tasks)) => tasks.iter().filter_map(Task::parse).collect(),
            None | Some(Value::Null) if result.is_object() => vec![],
            _ => return Err(Failure::Garbled("no list of tasks")),
        };
        Ok((tasks, text(&result, "nextPageToken")))
    }
}

impl Pass {
    /// Takes note of who saw what; whether the reading is new in this pass.
    fn note(&mut self, reading: &TaskReading, subject: usize) -> bool {
        let seen_by = self.seen_by.entry(reading.task.clone()).or_default();
        seen_by.insert(subject);
        let external = match &reading.state {
            TaskState::Waiting(seen) => seen.key.external.clone(),
            _ => String::new(),
        };
        let new = self.given.insert((reading.task.clone(), external));
        let ownerless = matches!(&reading.state, TaskState::Waiting(seen) if seen.owner.is_none());
        if new && ownerless && self.subjects.len() > 1 {
            self.ownerless.insert(reading.task.clone(), reading.clone());
        }
        new
    }

    /// The walk after this one.
    fn following(&mut self, at: &Cursor) -> Option<Cursor> {
        self.tokens.clear();
        let (subject, state) =
            if at.state + 1 < STATES.len() { (at.subject, at.state + 1) } else { (at.subject + 1, 0) };
        (subject < self.subjects.len()).then(|| Cursor {
            subject,
            state,
            token: String::new(),
            page: 0,
            pass: at.pass,
        })
    }
}

impl Memory {
    /// A pass is over: what it showed of owners, and readings that now name one.
    fn finish(&mut self, pass: u64) -> Vec<TaskReading> {
        let Some(pass) = self.passes.remove(&pass) else { return vec![] };
        if !pass.whole || pass.subjects.len() < 2 {
            return vec![];
        }
        self.owners = pass
            .seen_by
            .iter()
            .filter(|(_, by)| by.len() == 1)
            .filter_map(|(task, by)| {
                let only = by.iter().next()?;
                Some((task.clone(), pass.subjects.get(*only)?.clone()?))
            })
            .collect();
        let mut named = vec![];
        for (task, mut reading) in pass.ownerless {
            if let (Some(owner), TaskState::Waiting(seen)) = (self.owners.get(&task), &mut reading.state) {
                seen.owner = Some(owner.clone());
                named.push(reading);
            }
        }
        named
    }
}

fn page(readings: Vec<TaskReading>, next: Option<&Cursor>) -> Result<Page, ConnectorError> {
    let next = next
        .map(serde_json::to_string)
        .transpose()
        .map_err(|_| ConnectorError::Protocol { what: "a page token that cannot be kept".into() })?;
    Ok(Page { readings, next, supported: true })
}

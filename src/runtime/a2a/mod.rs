//! A2A 1.0 agents with the interactions/v1 extension.
//!
//! Invariants: what is shown comes from a reading; only the clicker's subject answers, with the body
//! that was stored; absence from a list proves nothing; a state or kind that is not known changes
//! nothing and is never answered. This connector never cancels a task.
//!
//! Parts: `card` and `discovery` say where the agent is, `wire`, `call`, `rpc` and `rest` talk, `types` and
//! `interactions` understand, `list` finds, `compose` and `answer` answer, `errors` decides.

mod answer;
mod call;
mod card;
mod compose;
mod discovery;
mod doctor;
mod errors;
mod interactions;
mod list;
mod rest;
mod rpc;
mod settings;
mod types;
mod wire;

#[cfg(test)]
mod answer_tests;
#[cfg(test)]
mod bed_tests;
#[cfg(test)]
mod discovery_tests;
#[cfg(test)]
mod jwt_tests;
#[cfg(test)]
mod list_tests;
#[cfg(test)]
mod rest_tests;
#[cfg(test)]
mod shape_tests;

pub use interactions::URI;
pub use settings::{A2aSettings, Address, QuestionPart, Watch};

use crate::bridge::ports::{
    Answered, Carrier, Compose, Composed, Connector, ConnectorError, Finding, Outgoing, Page, TaskReading,
    TaskRef, TaskState,
};
use crate::domain::clock::Clock;
use crate::domain::ids::{InteractionKey, RuntimeName, Subject};
use crate::domain::interaction::Why;
use call::Op;
use discovery::Discovery;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use interactions::View;
use list::Lists;
use serde_json::json;
use std::sync::{Arc, PoisonError, RwLock};
use types::Task;
use wire::Wire;

/// How much of a task's history is read, to find whose answer ended an interaction.
const HISTORY: u32 = 50;

/// One A2A agent.
pub struct A2aConnector {
    settings: A2aSettings,
    wire: Wire,
    discovery: Discovery,
    lists: Lists,
    linked: RwLock<Vec<Subject>>,
}

/// Whose view is read.
enum Watched {
    Credential,
    Subjects(Vec<Subject>),
}

impl A2aConnector {
    /// Makes a connector; nothing is sent yet.
    ///
    /// # Errors
    /// When a configured header is none.
    pub fn new(
        settings: A2aSettings,
        http: reqwest::Client,
        carrier: Arc<dyn Carrier>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, ConnectorError> {
        let wire = Wire::new(http, carrier, clock, &settings.headers, settings.deadline).map_err(|name| {
            ConnectorError::Configuration { what: format!("`headers`: {name} is no header") }
        })?;
        let discovery = Discovery::new(&settings);
        Ok(Self { settings, wire, discovery, lists: Lists::default(), linked: RwLock::default() })
    }

    fn watched(&self) -> Watched {
        match &self.settings.watch {
            Watch::Credential => Watched::Credential,
            Watch::Subjects(subjects) => Watched::Subjects(subjects.clone()),
            Watch::Linked => {
                Watched::Subjects(self.linked.read().unwrap_or_else(PoisonError::into_inner).clone())
            }
        }
    }

    /// For whom a task works that this subject sees, where that can be told.
    fn owner(&self, task: &str, seen_as: &Subject) -> Option<Subject> {
        match &self.settings.watch {
            Watch::Subjects(subjects) if subjects.as_slice() == std::slice::from_ref(seen_as) => {
                Some(seen_as.clone())
            }
            _ => self.lists.owner(task, seen_as),
        }
    }

    async fn read_task(&self, task: &TaskRef) -> Result<TaskReading, ConnectorError> {
        let views: Vec<Option<Subject>> = match (&task.seen_as, self.watched()) {
            (Some(subject), _) => vec![Some(subject.clone())],
            (None, Watched::Subjects(subjects)) if !subjects.is_empty() => {
                subjects.into_iter().map(Some).collect()
            }
            (None, _) => vec![None],
        };
        // Not found by all is not found; one view that could not be read leaves that open.
        let mut missing = None;
        let mut failed = None;
        for view in &views {
            match self.get_task(&task.task, view.as_ref()).await {
                Ok(reading) if matches!(reading.state, TaskState::NotFound) => missing = Some(reading),
                Ok(reading) => return Ok(reading),
                Err(error @ ConnectorError::Unauthorized { .. }) => failed = Some(error),
                Err(error) => return Err(error),
            }
        }
        match (failed, missing) {
            (Some(error), _) => Err(error),
            (None, Some(missing)) => Ok(missing),
            (None, None) => Err(ConnectorError::Configuration { what: "nobody is watched".into() }),
        }
    }

    async fn get_task(&self, id: &str, subject: Option<&Subject>) -> Result<TaskReading, ConnectorError> {
        let known = self.discovery.current(&self.wire).await?;
        let began = self.wire.now();
        let view = View {
            runtime: &self.settings.name,
            agent: &known.agent,
            seen_as: subject.cloned(),
            owner: subject.and_then(|subject| self.owner(id, subject)),
            began,
        };
        let params = json!({ "id": id, "historyLength": HISTORY });
        match self.wire.call(&known.interface, Op::GetTask, &params, subject).await {
            Ok(result) => match Task::parse(&result) {
                Some(task) if task.id == id => Ok(interactions::reading(&task, view)),
                _ => Err(ConnectorError::Protocol { what: "no task, or another one".into() }),
            },
            Err(failure) if errors::says_not_found(&failure) => Ok(TaskReading {
                agent: known.agent.clone(),
                task: id.into(),
                context: None,
                seen_as: subject.cloned(),
                began,
                state: TaskState::NotFound,
                history: vec![],
            }),
            Err(failure) => Err(errors::of_reading(&failure)),
        }
    }
}

impl Connector for A2aConnector {
    fn runtime(&self) -> &RuntimeName {
        &self.settings.name
    }

    fn list(&self, cursor: Option<String>) -> BoxFuture<'_, Result<Page, ConnectorError>> {
        self.list_page(cursor).boxed()
    }

    fn read<'a>(&'a self, task: &'a TaskRef) -> BoxFuture<'a, Result<TaskReading, ConnectorError>> {
        self.read_task(task).boxed()
    }

    fn compose(&self, answer: &Compose<'_>) -> Result<Composed, Why> {
        if !self.wire.carrier.takes(answer.subject) {
            return Err(Why::Unmappable);
        }
        compose::compose(answer, self.settings.question_part)
    }

    fn answer<'a>(&'a self, answer: &'a Outgoing) -> BoxFuture<'a, Answered> {
        self.deliver(answer).boxed()
    }

    fn details_url(&self, key: &InteractionKey, context: Option<&str>) -> Option<String> {
        crate::domain::details::fill(
            self.settings.details_url.as_deref()?,
            Some(&key.task),
            context,
            Some(&key.external),
        )
    }

    fn refresh(&self) -> BoxFuture<'_, Result<(), ConnectorError>> {
        self.discovery.refresh(&self.wire).boxed()
    }

    fn examine<'a>(&'a self, subject: Option<&'a Subject>) -> BoxFuture<'a, Vec<Finding>> {
        self.look(subject).boxed()
    }

    fn generation(&self) -> u64 {
        self.discovery.generation()
    }

    fn wants_linked(&self) -> bool {
        matches!(self.settings.watch, Watch::Linked)
    }

    fn linked(&self, subjects: Vec<Subject>) {
        *self.linked.write().unwrap_or_else(PoisonError::into_inner) = subjects;
    }
}

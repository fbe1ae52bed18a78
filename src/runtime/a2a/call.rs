//! One operation of the runtime, over whichever binding its interface has.
//!
//! Invariant: parameters and results are the same for both bindings (A2A 1.0 §5.1), so whoever calls
//! knows none; a binding only says how a request is written (`rpc`, `rest`) and what an answer means.
//!
//! An operation more is a line in [`Op`], its name in `rpc::method` and its place in `rest::place`.

use super::card::{Binding, Interface};
use super::errors::Failure;
use super::wire::Wire;
use super::{rest, rpc};
use crate::domain::ids::Subject;
use serde_json::Value;

/// What we ask of a runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Op {
    SendMessage,
    GetTask,
    ListTasks,
    Subscribe,
    /// The same over HTTP+JSON by the other method.
    SubscribeByPost,
    CreatePushConfig,
    DeletePushConfig,
}

impl Wire {
    /// Calls as a subject or with the watching credential. A refused token of a subject is replaced
    /// by a fresh one, once.
    pub(crate) async fn call(
        &self,
        at: &Interface,
        op: Op,
        params: &Value,
        subject: Option<&Subject>,
    ) -> Result<Value, Failure> {
        match self.once(at, op, params, subject).await {
            Err(failure) if subject.is_some() && failure.wants_fresh_token() => {
                self.once(at, op, params, subject).await
            }
            done => done,
        }
    }

    async fn once(
        &self,
        at: &Interface,
        op: Op,
        params: &Value,
        subject: Option<&Subject>,
    ) -> Result<Value, Failure> {
        let who = self.identity(subject)?;
        let request = self.request(at, op, params)?;
        let reply = self.exchange(request, who).await?;
        match at.binding {
            Binding::JsonRpc => rpc::understand(&reply, self.now()),
            Binding::HttpJson => rest::understand(&reply, op, self.now()),
        }
    }

    /// The request of an operation as its binding writes it, without the headers of every call.
    pub(crate) fn request(
        &self,
        at: &Interface,
        op: Op,
        params: &Value,
    ) -> Result<reqwest::RequestBuilder, Failure> {
        match at.binding {
            Binding::JsonRpc => Ok(rpc::request(self, at, op, params)),
            Binding::HttpJson => rest::request(self, at, op, params),
        }
    }
}

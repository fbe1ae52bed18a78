//! Deliveries that come over sockets, taken as those over HTTP are.
//!
//! Invariant: an acknowledgement is sent for exactly what [`Dispatch::take`] says was taken. What names
//! another app is not acknowledged and has no effect.

use super::{Dispatch, NotTaken, Taken, Verified};
use crate::chat::slack::Delivery;
use crate::chat::slack::socket::{Acknowledged, Inbox};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::time::Instant;

/// How kept frames are marked.
const SOURCE: &str = "slack:socket";

/// One install of the Slack app that takes clicks over sockets.
pub struct SocketDoor {
    dispatch: Dispatch,
    of: Verified,
}

impl SocketDoor {
    /// `app_id` as configured; otherwise the app is learnt from Slack.
    pub fn new(dispatch: Dispatch, install: impl Into<String>, app_id: Option<String>) -> Self {
        Self { dispatch, of: Verified { install: install.into(), app_id } }
    }

    async fn take_one(&self, delivery: Delivery<'_>) -> Option<Acknowledged> {
        let began = Instant::now();
        let source = delivery.way.source();
        let reason = match self.dispatch.take(delivery, std::slice::from_ref(&self.of)).await {
            Ok(taken) => {
                metrics::histogram!("countersign_ack_seconds", "platform" => "slack")
                    .record(began.elapsed().as_secs_f64());
                return Some(match taken {
                    Taken::Empty => Acknowledged::Bare,
                    Taken::Answer(answer) => Acknowledged::With(answer),
                });
            }
            Err(NotTaken::OtherApp) => {
                tracing::warn!(source, "a delivery names another app than its socket's; ignored");
                self.dispatch.bridge.other_app(&self.of.install).await;
                "app"
            }
            Err(NotTaken::Unreadable(_)) => "unreadable",
            Err(NotTaken::Store(error)) => {
                tracing::error!(source, %error, "a delivery could not be stored; the person may press again");
                "store"
            }
        };
        metrics::counter!("countersign_inbound_refused_total", "platform" => "slack", "reason" => reason)
            .increment(1);
        None
    }
}

impl Inbox for SocketDoor {
    fn app_id(&self) -> Option<String> {
        let learnt = || self.dispatch.bridge.directory.identity(&self.of.install).map(|one| one.app_id);
        self.of.app_id.clone().or_else(learnt).filter(|app| !app.is_empty())
    }

    fn take<'a>(&'a self, delivery: Delivery<'a>) -> BoxFuture<'a, Option<Acknowledged>> {
        self.take_one(delivery).boxed()
    }

    fn keep<'a>(&'a self, frame: &'a [u8]) -> BoxFuture<'a, bool> {
        async move {
            metrics::counter!("countersign_inbound_unreadable_total", "platform" => "slack").increment(1);
            match self.dispatch.bridge.store_unreadable(SOURCE, frame).await {
                Ok(()) => true,
                Err(error) => {
                    tracing::error!(source = SOURCE, %error, "a frame that cannot be read could not be kept");
                    false
                }
            }
        }
        .boxed()
    }

    fn trouble<'a>(&'a self, what: Option<&'a str>) -> BoxFuture<'a, ()> {
        self.dispatch.bridge.inbound_trouble(&self.of.install, what).boxed()
    }
}

//! Publishing a Home, and the addresses of messages.
//!
//! Invariant: a drawing that Slack refused is not sent to that Home again: its compact form goes instead, and
//! when that is refused too, nothing.

use super::Slack;
use super::messages::FALLBACK_AFTER;
use super::methods::Method;
use crate::bridge::ports::{ChatError, Drawn, MessageRef};
use serde_json::json;

impl Slack {
    pub(super) async fn publish(&self, user: &str, drawn: &Drawn) -> Result<(), ChatError> {
        let key = format!("home:{user}");
        let compact = self.refused.knows(&key);
        let blocks = if compact { &drawn.compact } else { &drawn.body };
        let view = json!({"type": "home", "blocks": blocks});
        match self.api.send(Method::PublishView, json!({"user_id": user, "view": view})).await {
            Ok(_) => Ok(()),
            Err(ChatError::Payload { code, pointer }) if !compact => {
                tracing::error!(install = self.api.install, code, pointer, "slack refused a Home");
                self.refused.remember(&key);
                Err(ChatError::Paced { after: FALLBACK_AFTER })
            }
            Err(error) => Err(error),
        }
    }

    pub(super) async fn permalink(&self, at: &MessageRef) -> Result<String, ChatError> {
        let arguments = json!({"channel": at.channel, "message_ts": at.message});
        self.api.call(Method::Permalink, arguments).await?.need(Method::Permalink, "/permalink")
    }
}

//! Posting, editing, deleting and finding our messages.
//!
//! Invariant: every post carries the card's metadata, so that a post of unknown outcome can be
//! looked for; every post and every edit carries text and blocks; nothing is pinged or unfurled.
//!
//! Races and the decisions taken:
//! - A body that Slack refused is never sent again: its hash is remembered, and the next attempt
//!   sends the compact drawing (which shows the same, plainer). After a restart it may be refused once more.
//! - A message may forge our metadata: only posts of our own bot are found.

use super::Slack;
use super::errors::{METADATA, THREAD};
use super::methods::Method;
use super::payload::{id, text};
use crate::bridge::ports::{ChatError, Destination, Drawn, MessageRef};
use crate::domain::clock::Millis;
use crate::domain::form::sha256_hex;
use crate::domain::ids::CardId;
use serde_json::{Value, json};
use std::time::Duration;

/// The type of our metadata.
const EVENT_TYPE: &str = "countersign_card";
/// How much earlier than its sending a post may stand in the history: clocks differ.
const EARLIER: Duration = Duration::from_mins(2);
/// Rows of the first page: what apps under the 1/min rule get at most.
const FIRST_PAGE: u32 = 15;
const NEXT_PAGES: u32 = 200;
const PAGES: usize = 5;
/// After a refusal of a body, its fallback goes out this much later, past the channel's governor.
const FALLBACK_AFTER: Duration = Duration::from_millis(1100);

impl Slack {
    pub(super) async fn post_message(
        &self,
        to: &Destination,
        drawn: &Drawn,
        card: CardId,
        rev: i64,
    ) -> Result<MessageRef, ChatError> {
        let blocks = self.fit_to_send(drawn);
        let mut message = json!({
            "channel": to.channel, "text": drawn.text, "blocks": blocks,
            "link_names": false, "parse": "none", "unfurl_links": false, "unfurl_media": false,
        });
        let bare = format!("metadata:{card}");
        if !self.refused.knows(&bare) {
            message["metadata"] = json!({
                "event_type": EVENT_TYPE,
                "event_payload": {"card": card.to_string(), "rev": rev.to_string()},
            });
        }
        let unthreaded = format!("thread:{}:{}", to.channel, to.thread.as_deref().unwrap_or_default());
        if let Some(thread) = to.thread.as_ref().filter(|_| !self.refused.knows(&unthreaded)) {
            message["thread_ts"] = json!(thread);
        }
        let answer = match self.api.send(Method::PostMessage, message).await {
            Ok(answer) => answer,
            Err(ChatError::Payload { code, .. })
                if METADATA.contains(&code.as_str()) && !self.refused.knows(&bare) =>
            {
                tracing::error!(%card, code, "slack refuses the metadata: this card cannot be looked for");
                return Err(self.again_without(&bare));
            }
            Err(ChatError::Place { code }) if to.thread.is_some() && THREAD.contains(&code.as_str()) => {
                return Err(self.again_without(&unthreaded));
            }
            Err(error) => return Err(self.or_compact(drawn, blocks, error)),
        };
        Ok(MessageRef {
            channel: answer.need(Method::PostMessage, "/channel")?,
            message: answer.need(Method::PostMessage, "/ts")?,
        })
    }

    pub(super) async fn edit_message(&self, at: &MessageRef, drawn: &Drawn) -> Result<(), ChatError> {
        let blocks = self.fit_to_send(drawn);
        let message = json!({
            "channel": at.channel, "ts": at.message, "text": drawn.text, "blocks": blocks,
            "link_names": false, "parse": "none",
        });
        match self.api.send(Method::Update, message).await {
            Ok(_) => Ok(()),
            Err(error) => Err(self.or_compact(drawn, blocks, error)),
        }
    }

    pub(super) async fn delete_message(&self, at: &MessageRef) -> Result<(), ChatError> {
        self.api.call(Method::Delete, json!({"channel": at.channel, "ts": at.message})).await.map(|_| ())
    }

    /// The body, or the compact drawing when Slack has refused the body before.
    fn fit_to_send<'a>(&self, drawn: &'a Drawn) -> &'a Value {
        if self.refused.knows(&key(&drawn.body)) { &drawn.compact } else { &drawn.body }
    }

    /// A refused body is followed by the compact drawing; a refused compact drawing is an error.
    fn or_compact(&self, drawn: &Drawn, sent: &Value, error: ChatError) -> ChatError {
        match error {
            ChatError::Payload { code, pointer } if !std::ptr::eq(sent, &raw const drawn.compact) => {
                tracing::error!(
                    install = self.api.install,
                    code,
                    pointer,
                    "slack refused a drawing: the compact one follows"
                );
                self.again_without(&key(&drawn.body))
            }
            other => other,
        }
    }

    fn again_without(&self, key: &str) -> ChatError {
        self.refused.remember(key);
        ChatError::Paced { after: FALLBACK_AFTER }
    }

    /// Our posts of this card since a moment, the oldest first.
    pub(super) async fn find_messages(
        &self,
        at: &Destination,
        card: CardId,
        since: Millis,
    ) -> Result<Vec<MessageRef>, ChatError> {
        let known = self.who().await?;
        if !known.identity.can_search {
            return Err(ChatError::Unreadable { code: "no_history_scope".into() });
        }
        let method = if at.thread.is_some() { Method::Replies } else { Method::History };
        let oldest = since.minus(EARLIER).0;
        let oldest = format!("{}.{:03}000", oldest.div_euclid(1000), oldest.rem_euclid(1000));
        let mut found = vec![];
        let mut cursor: Option<String> = None;
        for page in 0..PAGES {
            let arguments = json!({
                "channel": at.channel, "ts": at.thread, "oldest": oldest, "inclusive": true,
                "include_all_metadata": true, "cursor": cursor,
                "limit": if page == 0 { FIRST_PAGE } else { NEXT_PAGES },
            });
            let answer = if page == 0 {
                self.api.send(method, arguments).await
            } else {
                self.api.call(method, arguments).await
            };
            let answer = match answer {
                Ok(answer) => answer,
                // Further pages only where Slack lets us read them: else the first one has to do.
                Err(ChatError::Paced { .. }) if page > 0 => return Ok(sorted(found)),
                Err(error) => return Err(error),
            };
            let messages =
                answer.body.get("messages").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            let ours = messages.iter().filter(|message| is_ours(message, card, known.bot_id.as_deref()));
            found.extend(ours.filter_map(|message| {
                Some(MessageRef { channel: at.channel.clone(), message: id(message, "/ts")? })
            }));
            cursor = text(&answer.body, "/response_metadata/next_cursor").map(str::to_owned);
            if cursor.is_none() {
                return Ok(sorted(found));
            }
        }
        if found.is_empty() {
            Err(ChatError::Unreadable { code: "too_many_messages".into() })
        } else {
            Ok(sorted(found))
        }
    }
}

/// The lowest `ts` first; it is a text of fixed width, never a number.
fn sorted(mut found: Vec<MessageRef>) -> Vec<MessageRef> {
    found.sort_by(|a, b| (a.message.len(), &a.message).cmp(&(b.message.len(), &b.message)));
    found.dedup();
    found
}

fn is_ours(message: &Value, card: CardId, bot_id: Option<&str>) -> bool {
    let by_us = bot_id.is_none_or(|bot| text(message, "/bot_id") == Some(bot));
    by_us
        && text(message, "/metadata/event_type") == Some(EVENT_TYPE)
        && text(message, "/metadata/event_payload/card") == Some(card.to_string().as_str())
}

fn key(body: &Value) -> String {
    sha256_hex(body.to_string().as_bytes())
}

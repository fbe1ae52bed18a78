//! Posting, editing, deleting and finding our messages.
//!
//! Invariant: every post carries the card's metadata, so that a post of unknown outcome can be
//! looked for; every post and every edit carries text and blocks; nothing is pinged or unfurled.
//!
//! Races and the decisions taken:
//! - Where Slack refused a drawing, the next attempt (past the channel's governor) sends the compact
//!   one, which shows the same, plainer; a refused compact drawing is never sent there again. This is
//!   remembered per card and message, until a restart: then something may be refused once more.
//! - A message may forge our metadata: only posts of our own bot are found.

use super::Slack;
use super::errors::METADATA;
use super::methods::Method;
use super::payload::{id, text};
use crate::bridge::ports::{ChatError, Destination, Drawn, MessageRef};
use crate::domain::clock::Millis;
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
pub(super) const FALLBACK_AFTER: Duration = Duration::from_millis(1100);

impl Slack {
    pub(super) async fn post_message(
        &self,
        to: &Destination,
        drawn: &Drawn,
        card: CardId,
        rev: i64,
    ) -> Result<MessageRef, ChatError> {
        let attempt = self.attempt(format!("post:{card}"), drawn)?;
        let mut message = json!({
            "channel": to.channel, "text": drawn.text, "blocks": attempt.blocks,
            "link_names": false, "parse": "none", "unfurl_links": false, "unfurl_media": false,
        });
        let bare = format!("metadata:{card}");
        if !self.refused.knows(&bare) {
            message["metadata"] = json!({
                "event_type": EVENT_TYPE,
                "event_payload": {"card": card.to_string(), "rev": rev.to_string()},
            });
        }
        if let Some(thread) = &to.thread {
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
            Err(error) => return Err(self.refused_drawing(&attempt, error)),
        };
        Ok(MessageRef {
            channel: answer.need(Method::PostMessage, "/channel")?,
            message: answer.need(Method::PostMessage, "/ts")?,
        })
    }

    pub(super) async fn edit_message(&self, at: &MessageRef, drawn: &Drawn) -> Result<(), ChatError> {
        let attempt = self.attempt(format!("edit:{}:{}", at.channel, at.message), drawn)?;
        let message = json!({
            "channel": at.channel, "ts": at.message, "text": drawn.text, "blocks": attempt.blocks,
            "link_names": false, "parse": "none",
        });
        match self.api.send(Method::Update, message).await {
            Ok(_) => Ok(()),
            Err(error) => Err(self.refused_drawing(&attempt, error)),
        }
    }

    pub(super) async fn delete_message(&self, at: &MessageRef) -> Result<(), ChatError> {
        self.api.call(Method::Delete, json!({"channel": at.channel, "ts": at.message})).await.map(|_| ())
    }

    /// Which drawing goes there: the body, or the compact one after a refusal of the body.
    fn attempt<'a>(&self, place: String, drawn: &'a Drawn) -> Result<Attempt<'a>, ChatError> {
        let compact = self.refused.knows(&place);
        let place = if compact { format!("compact:{place}") } else { place };
        if compact && self.refused.knows(&place) {
            return Err(ChatError::Payload { code: "refused_before".into(), pointer: String::new() });
        }
        Ok(Attempt { blocks: if compact { &drawn.compact } else { &drawn.body }, compact, place })
    }

    /// A refused body is followed by the compact drawing; a refused compact drawing is an error.
    fn refused_drawing(&self, attempt: &Attempt<'_>, error: ChatError) -> ChatError {
        let ChatError::Payload { code, pointer } = &error else { return error };
        let (install, compact) = (&self.api.install, attempt.compact);
        tracing::error!(install, code, pointer, compact, "slack refused a drawing");
        let again = self.again_without(&attempt.place);
        if compact { error } else { again }
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

/// One try to show a drawing in a place.
struct Attempt<'a> {
    blocks: &'a Value,
    compact: bool,
    /// What is remembered of a refusal.
    place: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn only_our_own_bots_posts_of_this_card_are_found() {
        let card = CardId(Uuid::from_u128(7));
        let message = |bot: &str, kind: &str, of: u128| {
            json!({"ts": "1.2", "bot_id": bot, "metadata": {"event_type": kind,
                "event_payload": {"card": CardId(Uuid::from_u128(of)).to_string(), "rev": 1}}})
        };
        let ours = |message: &Value| is_ours(message, card, Some("B0BOT"));
        assert!(ours(&message("B0BOT", EVENT_TYPE, 7)));
        assert!(!ours(&message("B0EVIL", EVENT_TYPE, 7)), "forged metadata");
        assert!(!ours(&message("B0BOT", "other", 7)));
        assert!(!ours(&message("B0BOT", EVENT_TYPE, 8)));
        assert!(!ours(&json!({"ts": "1.2", "user": "U1"})));
    }

    #[test]
    fn the_oldest_is_first_and_ts_is_text() {
        let at = |ts: &str| MessageRef { channel: "C1".into(), message: ts.into() };
        let order = sorted(vec![at("1796000001.000300"), at("1796000001.000200"), at("1796000001.000200")]);
        assert_eq!(order, [at("1796000001.000200"), at("1796000001.000300")]);
    }
}

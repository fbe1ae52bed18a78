//! Posting, editing, deleting and finding our messages; threads.
//!
//! Invariant: every post carries the card's nonce, so that the same post made again is the same message; every
//! body says whom it may ping, and an edit pings nobody. A message in a thread below a channel is named
//! `<thread>/<message>` within that channel, so that the card stays in its channel's count.
//!
//! Races and the decisions taken:
//! - the post was made before and another drawing of the card is there already: Discord returns the first; it
//!   is edited to this one at once;
//! - where Discord refused a drawing, the next attempt (past the channel's pace) sends the plain one, which shows
//!   the same; where it held back the words, one without them and without controls; this is remembered per card
//!   and message, until a restart: then something may be refused once more;
//! - an archived thread is opened once for one call.

use super::calls::{Call, Kind};
use super::errors::{WITHHELD, unusable};
use super::fields::{id, text};
use super::gate::Worth;
use super::message::{mark, nobody, nonce};
use super::platform::Discord;
use super::rest::{Answer, Body};
use crate::bridge::ports::{ChatError, Destination, Drawn, MessageRef};
use crate::domain::clock::Millis;
use crate::domain::ids::CardId;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

/// How much earlier than its sending a post may stand in the history: clocks differ.
const EARLIER: Duration = Duration::from_mins(1);
const PAGES: usize = 5;
const PAGE: usize = 100;
/// After a refusal of a body, its fallback goes out this much later, past the channel's pace.
pub(super) const FALLBACK_AFTER: Duration = Duration::from_millis(1100);
/// A thread is archived after a week without messages, the longest there is.
const ARCHIVED_AFTER: u32 = 10_080;
/// A message that is edited too often rests a minute, then ten each time.
const OFTEN: [Duration; 2] = [Duration::from_mins(1), Duration::from_mins(10)];

/// Which drawing goes to a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Full,
    Plain,
    /// Without the agent's words.
    Withheld,
}

/// Where a message really is.
fn at_channel(at: &MessageRef) -> (&str, &str) {
    at.message.split_once('/').unwrap_or((at.channel.as_str(), at.message.as_str()))
}

impl Discord {
    pub(super) async fn post_message(
        &self,
        to: &Destination,
        drawn: &Drawn,
        card: CardId,
    ) -> Result<MessageRef, ChatError> {
        let channel = self.thread_or_channel(to, drawn).await?;
        let place = format!("post:{card}");
        let (stage, mut body) = self.attempt(&place, drawn)?;
        findable(&mut body, card);
        body["nonce"] = json!(nonce(card));
        body["enforce_nonce"] = json!(true);
        let sent = self.send_there(&channel, || Call::post_message(&channel), Worth::Needed, &body).await;
        let answer = match sent {
            Ok(answer) => answer,
            Err(failed) => {
                self.note_closed(&channel, &failed);
                return Err(self.refused_drawing(&place, stage, failed.error));
            }
        };
        let message = answer.id(Kind::PostMessage, "/id")?;
        let at = if channel == to.channel {
            MessageRef { channel: channel.clone(), message: message.clone() }
        } else {
            MessageRef { channel: to.channel.clone(), message: format!("{channel}/{message}") }
        };
        if is_another(&answer, &body) {
            // The first post's drawing stands there.
            let edited = self.edit_message(&at, drawn).await;
            edited.map_err(|error| {
                unusable(Kind::PostMessage, &format!("an older drawing stands there: {error}"))
            })?;
        }
        Ok(at)
    }

    /// The thread of a destination, begun if need be; else its channel.
    async fn thread_or_channel(&self, to: &Destination, drawn: &Drawn) -> Result<String, ChatError> {
        let Some(root) = &to.thread else { return Ok(to.channel.clone()) };
        let crowded = format!("crowded:{}", to.channel);
        let begun = format!("thread:{root}");
        if self.once.knows(&begun) {
            return Ok(root.clone());
        }
        let name = text(&drawn.compact, "/thread").unwrap_or("Countersign");
        let body = json!({"name": name, "auto_archive_duration": ARCHIVED_AFTER});
        let call = Call::begin_thread(&to.channel, root);
        match self.rest.call(call, Worth::Needed, Body::Json(&body)).await {
            // That it exists already is success.
            Ok(_) => {
                self.once.remember(&begun);
                Ok(root.clone())
            }
            // Too many threads: in the channel itself.
            Err(failed) if matches!(failed.code, 160_006 | 30_033) => {
                if !self.once.knows(&crowded) {
                    tracing::warn!(
                        install = self.rest.install,
                        "no more threads may be begun: cards go into the channel"
                    );
                    self.once.remember(&crowded);
                }
                Ok(to.channel.clone())
            }
            Err(failed) => Err(failed.error),
        }
    }

    pub(super) async fn edit_message(&self, at: &MessageRef, drawn: &Drawn) -> Result<(), ChatError> {
        let (channel, message) = at_channel(at);
        let often = format!("{channel}/{message}");
        let place = format!("edit:{often}");
        let (stage, mut body) = self.attempt(&place, drawn)?;
        body["allowed_mentions"] = nobody();
        for key in ["content", "embeds", "components"] {
            if body.get(key).is_none() {
                body[key] = if key == "content" { json!("") } else { json!([]) };
            }
        }
        match self.send_there(channel, || Call::edit_message(channel, message), Worth::Usual, &body).await {
            Ok(_) => {
                self.often().remove(&often);
                Ok(())
            }
            Err(failed) if failed.code == 30_046 => {
                let mut counts = self.often();
                if counts.len() > 4096 {
                    counts.clear();
                }
                let count = counts.entry(often).or_insert(0);
                let rest = OFTEN.get(*count).or(OFTEN.last()).copied().unwrap_or_default();
                *count += 1;
                Err(ChatError::Paced { after: rest + self.rest.jitter() })
            }
            Err(failed) => Err(self.refused_drawing(&place, stage, failed.error)),
        }
    }

    /// A call in a channel; an archived thread is opened for it once.
    async fn send_there(
        &self,
        channel: &str,
        call: impl Fn() -> Call,
        worth: Worth,
        body: &Value,
    ) -> Result<Answer, super::rest::Failed> {
        match self.rest.send(call(), worth, Body::Json(body)).await {
            Err(failed) if failed.code == 50_083 => {
                let open = json!({"archived": false});
                let opened = self.rest.call(Call::edit_channel(channel), worth, Body::Json(&open)).await;
                if let Err(refused) = opened {
                    let error = match refused.error {
                        paced @ (ChatError::Paced { .. } | ChatError::Auth { .. }) => paced,
                        _ => ChatError::Permanent { code: "archived_thread 50083".into() },
                    };
                    return Err(super::rest::Failed { error, code: failed.code });
                }
                self.rest.send(call(), worth, Body::Json(body)).await.map_err(|failed| {
                    let still = failed.code == 50_083;
                    let given_up = ChatError::Permanent { code: "archived_thread 50083".into() };
                    super::rest::Failed { error: if still { given_up } else { failed.error }, ..failed }
                })
            }
            other => other,
        }
    }

    pub(super) async fn delete_message(&self, at: &MessageRef) -> Result<(), ChatError> {
        let (channel, message) = at_channel(at);
        self.rest.call(Call::delete_message(channel, message), Worth::Usual, Body::None).await?;
        Ok(())
    }

    /// Which drawing goes there: the body, or a smaller one after a refusal.
    fn attempt(&self, place: &str, drawn: &Drawn) -> Result<(Stage, Value), ChatError> {
        let knows = |what: &str| self.once.knows(&format!("{what}:{place}"));
        let refused_before = || ChatError::Payload { code: "refused_before".into(), pointer: String::new() };
        let (stage, body) = if knows("gone_withheld") {
            return Err(ChatError::Place { code: "withheld".into() });
        } else if knows("withheld") {
            (Stage::Withheld, drawn.compact.get("withheld"))
        } else if knows("gone_plain") {
            return Err(refused_before());
        } else if knows("plain") {
            (Stage::Plain, drawn.compact.get("plain"))
        } else {
            (Stage::Full, Some(&drawn.body))
        };
        body.cloned().map(|body| (stage, body)).ok_or_else(refused_before)
    }

    /// A refused drawing is followed by a smaller one, until there is none.
    fn refused_drawing(&self, place: &str, stage: Stage, error: ChatError) -> ChatError {
        let ChatError::Payload { code, pointer } = &error else { return error };
        let install = &self.rest.install;
        tracing::error!(install, code, pointer, ?stage, "discord refused a drawing");
        let next = match (stage, pointer == WITHHELD) {
            (Stage::Withheld, _) => {
                self.once.remember(&format!("gone_withheld:{place}"));
                return ChatError::Place { code: code.clone() };
            }
            (_, true) => "withheld",
            (Stage::Full, false) => "plain",
            (Stage::Plain, false) => {
                self.once.remember(&format!("gone_plain:{place}"));
                return error;
            }
        };
        self.once.remember(&format!("{next}:{place}"));
        ChatError::Paced { after: FALLBACK_AFTER }
    }

    /// Our posts of this card since a moment, the oldest first.
    pub(super) async fn find_messages(
        &self,
        at: &Destination,
        card: CardId,
        since: Millis,
    ) -> Result<Vec<MessageRef>, ChatError> {
        let me = self.me().await?;
        let channel = at.thread.as_ref().unwrap_or(&at.channel);
        let mark = mark(card);
        let mut after = snowflake_at(since.minus(EARLIER));
        let mut found = vec![];
        for page in 0..PAGES {
            let call = Call::read_messages(channel, after);
            let answer = if page == 0 {
                self.rest.send(call, Worth::Needed, Body::None).await
            } else {
                self.rest.call(call, Worth::Needed, Body::None).await
            };
            let answer = match answer {
                Ok(answer) => answer,
                Err(failed) => {
                    return Err(match failed.error {
                        // It was never begun, or we may not look.
                        ChatError::Place { .. } if at.thread.is_some() => return Ok(vec![]),
                        ChatError::Place { code } | ChatError::Permanent { code } => {
                            ChatError::Unreadable { code }
                        }
                        error => error,
                    });
                }
            };
            let messages = answer.body.as_array().map(Vec::as_slice).unwrap_or_default();
            found.extend(messages.iter().filter(|message| is_ours(message, &me, &mark)).filter_map(
                |message| {
                    let message = id(message, "/id")?;
                    let message = if at.thread.is_some() { format!("{channel}/{message}") } else { message };
                    Some(MessageRef { channel: at.channel.clone(), message })
                },
            ));
            let newest =
                messages.iter().filter_map(|message| text(message, "/id")?.parse::<u64>().ok()).max();
            match newest {
                Some(newest) if messages.len() >= PAGE => after = newest,
                _ => return Ok(sorted(found)),
            }
        }
        if found.is_empty() {
            Err(ChatError::Unreadable { code: "too_many_messages".into() })
        } else {
            Ok(sorted(found))
        }
    }
}

/// The first is the oldest: an id begins with its time.
fn sorted(mut found: Vec<MessageRef>) -> Vec<MessageRef> {
    found.sort_by_key(|at| at_channel(at).1.parse::<u64>().unwrap_or(u64::MAX));
    found.dedup();
    found
}

/// The smallest id of a moment (Discord: API Reference, "Snowflakes").
pub(super) fn snowflake_at(at: Millis) -> u64 {
    const EPOCH: i64 = 1_420_070_400_000;
    u64::try_from(at.0.saturating_sub(EPOCH)).unwrap_or(0) << 22
}

fn is_ours(message: &Value, me: &str, mark: &str) -> bool {
    let marked = [text(message, "/embeds/0/footer/text"), text(message, "/content")];
    text(message, "/author/id") == Some(me)
        && marked.into_iter().flatten().any(|text| text.split_whitespace().any(|word| word == mark))
}

/// Writes the card's mark where the message has none.
fn findable(body: &mut Value, card: CardId) {
    let mark = mark(card);
    if body
        .pointer("/embeds/0/footer/text")
        .is_some_and(|foot| foot.as_str().is_some_and(|foot| foot.contains(&mark)))
    {
        return;
    }
    if let Some(embed) = body.pointer_mut("/embeds/0") {
        let foot = embed.pointer("/footer/text").and_then(Value::as_str).unwrap_or_default();
        let foot = format!("{foot} {mark}").trim().to_owned();
        embed["footer"] = json!({ "text": foot });
        return;
    }
    let content = body.get("content").and_then(Value::as_str).unwrap_or_default();
    body["content"] = json!(format!("{content}\n-# {mark}").trim());
}

/// Whether the message that came back is another drawing than the one that was sent: by its controls, or where
/// there are none, by its title.
fn is_another(answer: &Answer, sent: &Value) -> bool {
    let ids = |body: &Value| -> BTreeSet<String> {
        let rows = body.get("components").and_then(Value::as_array);
        let buttons =
            rows.into_iter().flatten().filter_map(|row| row.get("components")?.as_array()).flatten();
        buttons.filter_map(|button| text(button, "/custom_id")).map(str::to_owned).collect()
    };
    if answer.body.get("components").is_none() {
        return false;
    }
    let (there, here) = (ids(&answer.body), ids(sent));
    let titles = [&answer.body, sent].map(|body| text(body, "/embeds/0/title").map(str::trim));
    there != here || matches!(titles, [Some(there), Some(here)] if there != here)
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn only_our_own_posts_of_this_card_are_found() {
        let card = CardId(Uuid::from_u128(7));
        let of = |author: &str, foot: &str| json!({"author": {"id": author}, "embeds": [{"footer": {"text": foot}}]});
        let foot = format!("prod · may answer: release · deadbeef {} · opened", mark(card));
        assert!(is_ours(&of("1", &foot), "1", &mark(card)));
        assert!(!is_ours(&of("2", &foot), "1", &mark(card)), "somebody else's copy of it");
        assert!(!is_ours(&of("1", &foot), "1", &mark(CardId(Uuid::from_u128(8)))));
    }

    #[test]
    fn every_post_can_be_found() {
        let card = CardId(Uuid::from_u128(7));
        let found = |mut body: Value| {
            findable(&mut body, card);
            body["author"] = json!({"id": "1"});
            is_ours(&body, "1", &mark(card))
        };
        assert!(found(json!({"content": "12 more wait"})));
        assert!(found(json!({"content": "x", "embeds": [{"description": "d"}]})));
        assert!(found(json!({"content": "x", "embeds": [{"footer": {"text": "f"}}]})));
    }

    #[test]
    fn a_message_in_a_thread_is_named_within_its_channel() {
        let at = |message: &str| MessageRef { channel: "1".into(), message: message.into() };
        assert_eq!(at_channel(&at("5")), ("1", "5"));
        assert_eq!(at_channel(&at("7/5")), ("7", "5"));
        assert_eq!(sorted(vec![at("7/15"), at("7/5"), at("7/5")]), [at("7/5"), at("7/15")]);
    }

    #[test]
    fn an_id_begins_with_its_time() {
        // Of the reference's own example, 2016-04-30.
        assert_eq!(snowflake_at(Millis(1_462_015_105_796)), 175_928_847_298_985_984);
    }
}

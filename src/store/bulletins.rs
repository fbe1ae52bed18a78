//! Bulletins: messages of ours that are no cards (an alert stands, so many wait for room).
//!
//! Invariant: one row for each topic and place, and one message for each row; that a post is under way is
//! stored before it is made. A topic that is over gives its name back, so that the next time is a new message.

use super::dialect::{exec, fetch_all, fetch_optional};
use super::{StoreError, Tx};
use crate::domain::bulletin::Bulletin;
use crate::domain::clock::Millis;
use crate::domain::place::MessageRef;
use uuid::Uuid;

/// Where a bulletin's message stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BulletinState {
    /// Not posted.
    Queued,
    /// A post is under way, or its outcome is unknown.
    Posting,
    /// Posted. Without a message: somebody deleted it, and it is not posted again.
    Live,
    /// The place refused it.
    Failed,
}

impl BulletinState {
    fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Posting => "posting",
            Self::Live => "live",
            Self::Failed => "failed",
        }
    }

    fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "queued" => Self::Queued,
            "posting" => Self::Posting,
            "live" => Self::Live,
            "failed" => Self::Failed,
            _ => return None,
        })
    }
}

/// One bulletin.
#[derive(Debug, Clone)]
pub struct BulletinRow {
    pub id: Uuid,
    pub topic: String,
    pub place: String,
    pub install: String,
    pub channel: Option<String>,
    pub message: Option<String>,
    pub state: BulletinState,
    pub says: Bulletin,
    /// What the message says, as far as is known, and since when.
    pub shown: Option<Bulletin>,
    pub shown_at: Option<Millis>,
    pub posting: Option<Millis>,
    /// Looks for it that found nothing, and when the first of them was.
    pub looks: i64,
    pub look: Option<Millis>,
}

impl BulletinRow {
    /// Its message on the platform.
    #[must_use]
    pub fn at(&self) -> Option<MessageRef> {
        Some(MessageRef { channel: self.channel.clone()?, message: self.message.clone()? })
    }
}

#[derive(sqlx::FromRow)]
struct Row {
    id: Uuid,
    topic: String,
    place: String,
    install: String,
    channel: Option<String>,
    message: Option<String>,
    state: String,
    says_json: String,
    shown_json: Option<String>,
    shown_ms: Option<i64>,
    posting_ms: Option<i64>,
    looks: i64,
    look_ms: Option<i64>,
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, topic, place, install, channel, message, state, says_json, shown_json, shown_ms, ",
            "posting_ms, looks, look_ms FROM bulletins ",
            $rest
        )
    };
}

const INSERT: &str = "INSERT INTO bulletins (id, topic, place, install, channel, state, says_json) \
    VALUES ($1, $2, $3, $4, $5, 'queued', $6) ON CONFLICT (topic, place) DO NOTHING";
const SENT: &str = "UPDATE bulletins SET state = 'posting', posting_ms = $2, channel = $3, shown_json = $4, \
    looks = 0, look_ms = NULL WHERE id = $1 AND state IN ('queued', 'posting', 'failed')";
const POSTED: &str = "UPDATE bulletins SET state = 'live', channel = $2, message = $3, posting_ms = NULL, \
    shown_ms = $4 WHERE id = $1 AND state = 'posting'";

fn json(says: &Bulletin) -> Result<String, StoreError> {
    serde_json::to_string(says).map_err(|_| StoreError::corrupt("bulletins", "says_json", "new"))
}

fn read(row: Row) -> Result<BulletinRow, StoreError> {
    let Row { id, says_json, shown_json, state, .. } = &row;
    let says =
        serde_json::from_str(says_json).map_err(|_| StoreError::corrupt("bulletins", "says_json", id))?;
    // Only compared: what cannot be read is shown anew.
    let shown = shown_json.as_deref().and_then(|text| serde_json::from_str(text).ok());
    let state = BulletinState::parse(state).ok_or_else(|| StoreError::corrupt("bulletins", "state", id))?;
    Ok(BulletinRow {
        id: row.id,
        topic: row.topic,
        place: row.place,
        install: row.install,
        channel: row.channel,
        message: row.message,
        state,
        says,
        shown,
        shown_at: row.shown_ms.map(Millis),
        posting: row.posting_ms.map(Millis),
        looks: row.looks,
        look: row.look_ms.map(Millis),
    })
}

impl Tx {
    /// Adds a bulletin; `false` when the topic has one in that place.
    pub async fn insert_bulletin(
        &mut self,
        id: Uuid,
        topic: &str,
        place: &str,
        install: &str,
        channel: Option<&str>,
        says: &Bulletin,
    ) -> Result<bool, StoreError> {
        Ok(exec!(self, INSERT, id, topic, place, install, channel, json(says)?)? == 1)
    }

    pub async fn bulletin(&mut self, id: Uuid) -> Result<Option<BulletinRow>, StoreError> {
        fetch_optional!(self, Row, select!("WHERE id = $1"), id)?.map(read).transpose()
    }

    /// The bulletin of a topic in a place.
    pub async fn bulletin_of(&mut self, topic: &str, place: &str) -> Result<Option<BulletinRow>, StoreError> {
        fetch_optional!(self, Row, select!("WHERE topic = $1 AND place = $2"), topic, place)?
            .map(read)
            .transpose()
    }

    /// The bulletins of alerts that stand.
    pub async fn alert_bulletins(&mut self) -> Result<Vec<BulletinRow>, StoreError> {
        fetch_all!(self, Row, select!("WHERE topic LIKE 'alert:%'"))?.into_iter().map(read).collect()
    }

    /// What the bulletin says last; its topic is free for a new one.
    pub async fn end_bulletin(&mut self, id: Uuid, says: &Bulletin) -> Result<(), StoreError> {
        let topic = format!("over:{}", id.simple());
        exec!(self, "UPDATE bulletins SET topic = $2, says_json = $3 WHERE id = $1", id, topic, json(says)?)
            .map(|_| ())
    }

    /// A post is about to be sent that says this: stored first. `false` when it is there already.
    pub async fn bulletin_sent(
        &mut self,
        id: Uuid,
        at: Millis,
        channel: &str,
        says: &Bulletin,
    ) -> Result<bool, StoreError> {
        Ok(exec!(self, SENT, id, at.0, channel, json(says)?)? == 1)
    }

    /// The post is there. `false` when it was found before.
    pub async fn bulletin_posted(
        &mut self,
        id: Uuid,
        at: &MessageRef,
        now: Millis,
    ) -> Result<bool, StoreError> {
        Ok(exec!(self, POSTED, id, at.channel.as_str(), at.message.as_str(), now.0)? == 1)
    }

    /// The post was not made: it waits again, or its place refused it, or (live, without a message) it never
    /// will be.
    pub async fn bulletin_not_sent(&mut self, id: Uuid, state: BulletinState) -> Result<(), StoreError> {
        exec!(self, "UPDATE bulletins SET state = $2, posting_ms = NULL WHERE id = $1", id, state.as_str())
            .map(|_| ())
    }

    /// A look for the post found nothing.
    pub async fn bulletin_not_found(&mut self, id: Uuid, at: Millis) -> Result<(), StoreError> {
        exec!(
            self,
            "UPDATE bulletins SET looks = looks + 1, look_ms = COALESCE(look_ms, $2) WHERE id = $1",
            id,
            at.0
        )
        .map(|_| ())
    }

    /// The message says this now.
    pub async fn bulletin_shown(&mut self, id: Uuid, says: &Bulletin, now: Millis) -> Result<(), StoreError> {
        exec!(
            self,
            "UPDATE bulletins SET shown_json = $2, shown_ms = $3 WHERE id = $1",
            id,
            json(says)?,
            now.0
        )
        .map(|_| ())
    }

    /// Somebody deleted the message.
    pub async fn bulletin_gone(&mut self, id: Uuid) -> Result<(), StoreError> {
        exec!(self, "UPDATE bulletins SET message = NULL WHERE id = $1", id).map(|_| ())
    }

    /// Nothing is left to say.
    pub async fn delete_bulletin(&mut self, id: Uuid) -> Result<(), StoreError> {
        exec!(self, "DELETE FROM bulletins WHERE id = $1", id).map(|_| ())
    }
}

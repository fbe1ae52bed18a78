//! Questions that are answered later, and the Homes people have opened.
//!
//! Invariant: a Home has at most one living job: one wanted while the job is
//! under way marks it, and the job runs once more, so that the state wanted last is published last.

use super::dialect::{exec, fetch_all, fetch_optional};
use super::{StoreError, Tx};
use crate::domain::clock::Millis;
use uuid::Uuid;

/// A question "what waits for me?", to be answered. `reply` is a secret: it is in no Debug output.
#[derive(Clone, PartialEq, Eq)]
pub struct Asked {
    pub install: String,
    pub chat_user: String,
    pub channel: Option<String>,
    pub reply: Option<String>,
    /// The server in which it was asked, where that says who may what.
    pub home_team: Option<String>,
    /// What the platform said of the account with it, as it is kept.
    pub said: Option<String>,
    pub received: Millis,
}

impl std::fmt::Debug for Asked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Asked").field("install", &self.install).finish_non_exhaustive()
    }
}

/// One person's Home.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    pub id: Uuid,
    pub install: String,
    pub chat_user: String,
    pub opened: Millis,
    pub published: Option<Millis>,
    /// A hash of what it shows.
    pub shown: Option<String>,
}

type HomeRow = (Uuid, String, String, i64, Option<i64>, Option<String>);

fn home((id, install, chat_user, opened, published, shown): HomeRow) -> Home {
    Home { id, install, chat_user, opened: Millis(opened), published: published.map(Millis), shown }
}

const ASK: &str = "INSERT INTO asked (id, install, chat_user, channel, reply, home_team, said_json, received_ms) \
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
const ASKED: &str = "SELECT install, chat_user, channel, reply, home_team, said_json, received_ms FROM asked \
    WHERE id = $1";
const OPEN: &str = "INSERT INTO homes (id, install, chat_user, opened_ms) VALUES ($1, $2, $3, $4) \
    ON CONFLICT (install, chat_user) DO UPDATE SET opened_ms = excluded.opened_ms RETURNING id";
const LOAD: &str = "SELECT id, install, chat_user, opened_ms, published_ms, shown FROM homes WHERE id = $1";
const RECENT: &str = "SELECT id, install, chat_user, opened_ms, published_ms, shown FROM homes \
    WHERE opened_ms > $1 AND id > $2 ORDER BY id LIMIT $3";
const PUBLISHED: &str = "UPDATE homes SET published_ms = $2, shown = $3 WHERE id = $1";

impl Tx {
    /// Stores a question.
    pub async fn ask(&mut self, id: Uuid, asked: &Asked) -> Result<(), StoreError> {
        exec!(
            self,
            ASK,
            id,
            asked.install.as_str(),
            asked.chat_user.as_str(),
            asked.channel.as_deref(),
            asked.reply.as_deref(),
            asked.home_team.as_deref(),
            asked.said.as_deref(),
            asked.received.0
        )
        .map(|_| ())
    }

    pub async fn asked(&mut self, id: Uuid) -> Result<Option<Asked>, StoreError> {
        type AskedRow = (String, String, Option<String>, Option<String>, Option<String>, Option<String>, i64);
        let row = fetch_optional!(self, AskedRow, ASKED, id)?;
        Ok(row.map(|(install, chat_user, channel, reply, home_team, said, received)| Asked {
            install,
            chat_user,
            channel,
            reply,
            home_team,
            said,
            received: Millis(received),
        }))
    }

    /// A question has its answer.
    pub async fn answered(&mut self, id: Uuid) -> Result<(), StoreError> {
        exec!(self, "DELETE FROM asked WHERE id = $1", id).map(|_| ())
    }

    /// Somebody opened their Home; its id.
    pub async fn open_home(
        &mut self,
        id: Uuid,
        install: &str,
        chat_user: &str,
        at: Millis,
    ) -> Result<Uuid, StoreError> {
        let row = fetch_optional!(self, (Uuid,), OPEN, id, install, chat_user, at.0)?;
        row.map(|(id,)| id).ok_or_else(|| StoreError::Refused("a Home without id".into()))
    }

    pub async fn home(&mut self, id: Uuid) -> Result<Option<Home>, StoreError> {
        Ok(fetch_optional!(self, HomeRow, LOAD, id)?.map(home))
    }

    /// Homes opened since a moment, in pages by id.
    pub async fn homes_opened(
        &mut self,
        since: Millis,
        after: Uuid,
        limit: i64,
    ) -> Result<Vec<Home>, StoreError> {
        Ok(fetch_all!(self, HomeRow, RECENT, since.0, after, limit)?.into_iter().map(home).collect())
    }

    /// A Home shows this now.
    pub async fn home_published(&mut self, id: Uuid, at: Millis, shown: &str) -> Result<(), StoreError> {
        exec!(self, PUBLISHED, id, at.0, shown).map(|_| ())
    }
}

//! Which card began the thread of a context in a channel.
//!
//! Invariant: one row for each context and channel; who makes it, or takes it over from a card that will
//! never be there, begins the thread. So of two cards at once one is the root and the other its reply.

use super::dialect::{Sql, exec, fetch_optional};
use super::{StoreError, Tx};
use crate::domain::ids::CardId;
use uuid::Uuid;

/// What gathers cards in one thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadKey {
    pub install: String,
    pub channel: String,
    pub runtime: String,
    pub agent: String,
    pub context: String,
}

/// Where a card stands in its thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Root {
    /// It begins the thread.
    Here,
    /// It replies to this message.
    At(String),
    /// The root's own post is under way.
    Pending,
}

const LOOK: &str = "SELECT t.root_card, c.state, c.message FROM threads t LEFT JOIN cards c ON c.id = t.root_card \
    WHERE t.install = $1 AND t.channel = $2 AND t.runtime = $3 AND t.agent = $4 AND t.context = $5";
const LOOK_LOCKED: Sql = Sql {
    sqlite: LOOK,
    postgres: "SELECT t.root_card, c.state, c.message FROM threads t LEFT JOIN cards c ON c.id = t.root_card \
        WHERE t.install = $1 AND t.channel = $2 AND t.runtime = $3 AND t.agent = $4 AND t.context = $5 \
        FOR UPDATE OF t",
};
const BEGIN: &str = "INSERT INTO threads (install, channel, runtime, agent, context, root_card) \
    VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (install, channel, runtime, agent, context) DO NOTHING";
const TAKE_OVER: &str = "UPDATE threads SET root_card = $6 \
    WHERE install = $1 AND channel = $2 AND runtime = $3 AND agent = $4 AND context = $5";

type RootRow = (Uuid, Option<String>, Option<String>);

impl Tx {
    async fn root_row(&mut self, key: &ThreadKey, lock: bool) -> Result<Option<RootRow>, StoreError> {
        let sql = if lock { LOOK_LOCKED.of(self) } else { LOOK };
        fetch_optional!(
            self,
            RootRow,
            sql,
            key.install.as_str(),
            key.channel.as_str(),
            key.runtime.as_str(),
            key.agent.as_str(),
            key.context.as_str()
        )
    }

    /// Where a card would stand now; decides nothing.
    pub async fn peek_root(&mut self, key: &ThreadKey, card: CardId) -> Result<Root, StoreError> {
        Ok(self.root_row(key, false).await?.map_or(Root::Here, |row| root(row, card)))
    }

    /// Where a card stands: it begins the thread when nobody has, or when who has will never be there.
    pub async fn thread_root(&mut self, key: &ThreadKey, card: CardId) -> Result<Root, StoreError> {
        let begun = exec!(
            self,
            BEGIN,
            key.install.as_str(),
            key.channel.as_str(),
            key.runtime.as_str(),
            key.agent.as_str(),
            key.context.as_str(),
            card.0
        )? == 1;
        if begun {
            return Ok(Root::Here);
        }
        let Some(row) = self.root_row(key, true).await? else { return Ok(Root::Pending) };
        let known = row.0 == card.0;
        let root = root(row, card);
        if root == Root::Here && !known {
            self.begin_thread(key, card).await?;
        }
        Ok(root)
    }

    /// The card begins the thread anew: the root before it takes no replies.
    pub async fn begin_thread(&mut self, key: &ThreadKey, card: CardId) -> Result<(), StoreError> {
        exec!(
            self,
            TAKE_OVER,
            key.install.as_str(),
            key.channel.as_str(),
            key.runtime.as_str(),
            key.agent.as_str(),
            key.context.as_str(),
            card.0
        )
        .map(|_| ())
    }
}

fn root((root, state, message): RootRow, card: CardId) -> Root {
    if root == card.0 {
        return Root::Here;
    }
    match (state.as_deref(), message) {
        (Some("live" | "frozen"), Some(message)) => Root::At(message),
        (Some("queued" | "posting"), _) => Root::Pending,
        _ => Root::Here,
    }
}

//! How many open cards a place shows, and which wait.
//!
//! Invariant: seats of one place are given and freed under its lock (SQLite has one writer; PostgreSQL takes
//! an advisory lock until the commit), so that two replicas never give the last one twice, and what becomes
//! free is seen by whoever waits. Queries read at most as many rows as a place may show, or those that wait.

use super::cards::Slot;
use super::dialect::{exec, fetch_all, fetch_optional};
use super::{StoreError, Tx};
use crate::domain::ids::{CardId, InteractionId};
use uuid::Uuid;

// `+ 0`: SQLite plans a statement anew at every new value of a bare `LIMIT $n`.
const TAKEN: &str = "SELECT COUNT(*) FROM (SELECT 1 FROM cards WHERE install = $1 AND channel = $2 \
    AND slot = 'taken' LIMIT $3 + 0) seats";
const FIRST_HELD: &str = "SELECT id FROM cards WHERE install = $1 AND channel = $2 AND slot = 'held' \
    ORDER BY created_ms, id LIMIT 1";
const HELD: &str = "SELECT COUNT(*) FROM cards WHERE install = $1 AND channel = $2 AND slot = 'held'";
const CROWDED: &str =
    "SELECT DISTINCT install, channel FROM cards WHERE slot = 'held' AND channel IS NOT NULL";
const UNSEATED: &str = "SELECT id FROM cards WHERE place = $1 AND state = 'queued' AND slot IS NULL \
    ORDER BY created_ms, id";
const LOST: &str = "SELECT id FROM cards WHERE place = $1 AND slot = 'lost' ORDER BY created_ms, id LIMIT $2";
const TWIN: &str = "SELECT id FROM cards WHERE interaction_id = $1 AND install = $2 AND channel = $3 AND id <> $4 \
    AND (state IN ('posting', 'live') OR slot IN ('taken', 'held')) LIMIT 1";

impl Tx {
    /// Orders everybody who gives or frees a seat there, until the end of the transaction.
    pub async fn lock_place(&mut self, install: &str, channel: &str) -> Result<(), StoreError> {
        if !self.is_postgres() {
            return Ok(());
        }
        let key = format!("seat:{install}:{channel}");
        exec!(self, "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", key).map(|_| ())
    }

    /// Whether fewer than `most` seats are taken.
    pub async fn has_room(&mut self, install: &str, channel: &str, most: i64) -> Result<bool, StoreError> {
        let taken = fetch_optional!(self, (i64,), TAKEN, install, channel, most)?.map_or(0, |(n,)| n);
        Ok(taken < most)
    }

    /// Gives a card its seat in a channel.
    pub async fn seat(&mut self, card: CardId, channel: &str, slot: Slot) -> Result<(), StoreError> {
        exec!(self, "UPDATE cards SET channel = $2, slot = $3 WHERE id = $1", card.0, channel, slot.as_str())
            .map(|_| ())
    }

    /// Changes a card's seat, or (`None`) takes it away.
    pub async fn set_slot(&mut self, card: CardId, slot: Option<Slot>) -> Result<(), StoreError> {
        exec!(self, "UPDATE cards SET slot = $2 WHERE id = $1", card.0, slot.map(Slot::as_str)).map(|_| ())
    }

    /// The card that has waited longest for room there.
    pub async fn first_held(&mut self, install: &str, channel: &str) -> Result<Option<CardId>, StoreError> {
        Ok(fetch_optional!(self, (Uuid,), FIRST_HELD, install, channel)?.map(|(id,)| CardId(id)))
    }

    /// How many wait for room there.
    pub async fn held(&mut self, install: &str, channel: &str) -> Result<i64, StoreError> {
        Ok(fetch_optional!(self, (i64,), HELD, install, channel)?.map_or(0, |(n,)| n))
    }

    /// The channels where cards wait for room, by install.
    pub async fn crowded(&mut self) -> Result<Vec<(String, String)>, StoreError> {
        fetch_all!(self, (String, String), CROWDED)
    }

    /// The cards of a place that have no seat yet, in the order first seen.
    pub async fn unseated(&mut self, place: &str) -> Result<Vec<CardId>, StoreError> {
        Ok(fetch_all!(self, (Uuid,), UNSEATED, place)?.into_iter().map(|(id,)| CardId(id)).collect())
    }

    /// The cards that a place refused and that are still wanted, in the order first seen.
    pub async fn lost_at(&mut self, place: &str, limit: i64) -> Result<Vec<CardId>, StoreError> {
        Ok(fetch_all!(self, (Uuid,), LOST, place, limit)?.into_iter().map(|(id,)| CardId(id)).collect())
    }

    /// Another card of the interaction in the same channel: two places turned out to be one.
    pub async fn twin(
        &mut self,
        interaction: InteractionId,
        install: &str,
        channel: &str,
        card: CardId,
    ) -> Result<Option<CardId>, StoreError> {
        let row = fetch_optional!(self, (Uuid,), TWIN, interaction.0, install, channel, card.0)?;
        Ok(row.map(|(id,)| CardId(id)))
    }
}

//! Places: which channel a spot is, and which places take no cards.
//!
//! Invariant: a spot is resolved once and pinned by the channel's id; only the platform's word that the id
//! has changed moves it, and then everything that names the old id moves in one transaction.

use super::dialect::{exec, fetch_all, fetch_optional};
use super::{StoreError, Tx};
use crate::domain::clock::Millis;

const HURRY_GROUP: &str = "UPDATE jobs SET available_ms = CASE WHEN available_ms > $2 THEN $2 ELSE available_ms END \
    WHERE group_key = $1 AND dead_ms IS NULL AND lease_until_ms <= $2";
/// Edits of cards in a channel that wait for it to open.
const HURRY_EDITS: &str = "UPDATE jobs SET available_ms = $3 WHERE kind = 'edit' AND dead_ms IS NULL \
    AND available_ms > $3 AND lease_until_ms <= $3 \
    AND EXISTS (SELECT 1 FROM cards c WHERE c.id = jobs.ref AND c.install = $1 AND c.channel = $2)";
const MOVED: [&str; 4] = [
    "UPDATE pins SET channel = $3 WHERE install = $1 AND channel = $2",
    "UPDATE cards SET channel = $3 WHERE install = $1 AND channel = $2",
    "UPDATE threads SET channel = $3 WHERE install = $1 AND channel = $2",
    "UPDATE bulletins SET channel = $3 WHERE install = $1 AND channel = $2",
];

impl Tx {
    /// Remembers that a place took no card, until it takes one. `true`: that is new.
    pub async fn mark_place(&mut self, place: &str, code: &str, at: Millis) -> Result<bool, StoreError> {
        let new = exec!(
            self,
            "INSERT INTO bad_places (place, code, since_ms) VALUES ($1, $2, $3) \
             ON CONFLICT (place) DO UPDATE SET code = excluded.code WHERE bad_places.code = ''",
            place,
            code,
            at.0
        )? == 1;
        if !new {
            exec!(self, "UPDATE bad_places SET code = $2 WHERE place = $1", place, code)?;
        }
        Ok(new)
    }

    /// A place may take cards again: the next one tells.
    pub async fn doubt_place(&mut self, place: &str) -> Result<(), StoreError> {
        exec!(self, "UPDATE bad_places SET code = '' WHERE place = $1", place).map(|_| ())
    }

    /// A place takes cards. `true`: it was remembered as one that takes none.
    pub async fn place_works(&mut self, place: &str) -> Result<bool, StoreError> {
        Ok(exec!(self, "DELETE FROM bad_places WHERE place = $1", place)? == 1)
    }

    /// Why a place takes no cards, if it is known to take none.
    pub async fn bad_place(&mut self, place: &str) -> Result<Option<String>, StoreError> {
        let row = fetch_optional!(
            self,
            (String,),
            "SELECT code FROM bad_places WHERE place = $1 AND code <> ''",
            place
        )?;
        Ok(row.map(|(code,)| code))
    }

    /// The pinned channel of a spot.
    pub async fn pin(&mut self, install: &str, name: &str) -> Result<Option<String>, StoreError> {
        Ok(fetch_optional!(
            self,
            (String,),
            "SELECT channel FROM pins WHERE install = $1 AND name = $2",
            install,
            name
        )?
        .map(|(channel,)| channel))
    }

    /// Every pin of an install, with its channel.
    pub async fn pins(&mut self, install: &str) -> Result<Vec<(String, String)>, StoreError> {
        fetch_all!(
            self,
            (String, String),
            "SELECT name, channel FROM pins WHERE install = $1 ORDER BY name",
            install
        )
    }

    /// Pins a spot to a channel; the first pin stays.
    pub async fn set_pin(
        &mut self,
        install: &str,
        name: &str,
        channel: &str,
        at: Millis,
    ) -> Result<(), StoreError> {
        exec!(
            self,
            "INSERT INTO pins (install, name, channel, pinned_ms) VALUES ($1, $2, $3, $4) \
             ON CONFLICT (install, name) DO NOTHING",
            install,
            name,
            channel,
            at.0
        )
        .map(|_| ())
    }

    /// Keeps a text under a name of ours, in the place of what was kept before.
    pub async fn keep_mark(
        &mut self,
        install: &str,
        name: &str,
        text: &str,
        at: Millis,
    ) -> Result<(), StoreError> {
        exec!(
            self,
            "INSERT INTO pins (install, name, channel, pinned_ms) VALUES ($1, $2, $3, $4) \
             ON CONFLICT (install, name) DO UPDATE SET channel = excluded.channel, pinned_ms = excluded.pinned_ms",
            install,
            name,
            text,
            at.0
        )
        .map(|_| ())
    }

    /// A channel has another id from now on: pins, cards, copies, threads and bulletins follow it. Names that
    /// are the old id itself are pinned to the new one.
    pub async fn move_channel(
        &mut self,
        install: &str,
        from: &str,
        to: &str,
        at: Millis,
    ) -> Result<(), StoreError> {
        exec!(
            self,
            "UPDATE copies SET channel = $3 WHERE channel = $2 AND EXISTS \
             (SELECT 1 FROM cards c WHERE c.id = copies.card_id AND c.install = $1)",
            install,
            from,
            to
        )?;
        // A thread that began under the new id already stays.
        exec!(
            self,
            "DELETE FROM threads WHERE install = $1 AND channel = $2 AND EXISTS (SELECT 1 FROM threads t \
             WHERE t.install = $1 AND t.channel = $3 AND t.runtime = threads.runtime \
             AND t.agent = threads.agent AND t.context = threads.context)",
            install,
            from,
            to
        )?;
        for sql in MOVED {
            exec!(self, sql, install, from, to)?;
        }
        self.set_pin(install, from, to, at).await
    }

    /// The waiting jobs of a group are due now. `false`: there is none, or a worker is at it.
    pub async fn hurry_group(&mut self, group: &str, now: Millis) -> Result<bool, StoreError> {
        let rows = exec!(self, HURRY_GROUP, group, now.0)?;
        self.wakes();
        Ok(rows > 0)
    }

    /// Edits of cards in a channel are due now.
    pub async fn hurry_edits(&mut self, install: &str, channel: &str, now: Millis) -> Result<(), StoreError> {
        exec!(self, HURRY_EDITS, install, channel, now.0)?;
        self.wakes();
        Ok(())
    }
}

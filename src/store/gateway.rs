//! Sessions of gateways, so that they are taken up again after a restart and by another replica; and the cards
//! that an event of theirs is about.
//!
//! Invariant: the holder of the newest lease writes; who has lost it changes nothing and is told so.

use super::dialect::{exec, fetch_all, fetch_optional};
use super::leases::Lease;
use super::{StoreError, Tx};
use crate::domain::clock::Millis;
use crate::domain::ids::CardId;
use crate::domain::place::MessageRef;
use crate::domain::session::Session;
use uuid::Uuid;

const SAVE: &str = "INSERT INTO gateway_sessions (install, epoch, session, seq, resume_url, saved_ms) \
    VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (install) DO UPDATE SET epoch = excluded.epoch, \
    session = excluded.session, seq = excluded.seq, resume_url = excluded.resume_url, saved_ms = excluded.saved_ms \
    WHERE gateway_sessions.epoch <= excluded.epoch";
const LOAD: &str =
    "SELECT session, seq, resume_url FROM gateway_sessions WHERE install = $1 AND session <> ''";
const CARD_AT: &str =
    "SELECT id FROM cards WHERE channel = $2 AND message = $3 AND install = $1 AND state = 'live'";
/// A message in a thread is kept with the channel above it, as `<thread>/<message>`.
const CARD_BELOW: &str = "SELECT id FROM cards WHERE channel IN (SELECT DISTINCT channel FROM threads WHERE install = $1) \
    AND message = $2 AND install = $1 AND state = 'live'";
const OPEN_IN: &str = "SELECT c.id FROM cards c JOIN interactions i ON i.id = c.interaction_id \
    WHERE i.state <> 'settled' AND c.install = $1 AND (c.channel = $2 OR c.message LIKE $4) AND c.state = 'live' LIMIT $3";
const DOUBT: &str = "UPDATE cards SET confirm_ms = $2 WHERE id = $1 AND state = 'live'";

impl Tx {
    /// The card whose message that is; `at.channel` may be a thread.
    pub async fn card_at(&mut self, install: &str, at: &MessageRef) -> Result<Option<CardId>, StoreError> {
        let row = fetch_optional!(self, (Uuid,), CARD_AT, install, &at.channel, &at.message)?;
        let row = if let Some(row) = row {
            Some(row)
        } else {
            let below = format!("{}/{}", at.channel, at.message);
            fetch_optional!(self, (Uuid,), CARD_BELOW, install, &below)?
        };
        Ok(row.map(|(id,)| CardId(id)))
    }

    /// Cards of open interactions in a channel or thread.
    pub async fn open_cards_in(
        &mut self,
        install: &str,
        channel: &str,
        limit: i64,
    ) -> Result<Vec<CardId>, StoreError> {
        let in_thread = format!("{channel}/%");
        let rows = fetch_all!(self, (Uuid,), OPEN_IN, install, channel, limit, in_thread)?;
        Ok(rows.into_iter().map(|(id,)| CardId(id)).collect())
    }

    /// What a card shows is in doubt: its next edit is sent even if nothing has changed.
    pub async fn doubt_card(&mut self, id: CardId, now: Millis) -> Result<(), StoreError> {
        exec!(self, DOUBT, id.0, now.0).map(|_| ())
    }

    /// The session that may be taken up again.
    pub async fn gateway_session(&mut self, install: &str) -> Result<Option<Session>, StoreError> {
        let row = fetch_optional!(self, (String, i64, String), LOAD, install)?;
        Ok(row.map(|(id, seq, resume_url)| Session { id, seq, resume_url }))
    }

    /// Keeps a session, or that there is none any more. `false`: a newer lease has written.
    pub async fn save_gateway_session(
        &mut self,
        install: &str,
        lease: &Lease,
        session: Option<&Session>,
        now: Millis,
    ) -> Result<bool, StoreError> {
        let (id, seq, url) = session
            .map_or(("", 0, ""), |session| (session.id.as_str(), session.seq, session.resume_url.as_str()));
        Ok(exec!(self, SAVE, install, lease.epoch, id, seq, url, now.0)? == 1)
    }
}

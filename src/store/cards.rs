//! Cards: which message shows which interaction where, and the tokens of its controls.
//!
//! Invariant: a card's row and its tokens exist before the platform is called, and that a call is in
//! flight is stored before it is made. One card per interaction and place (a unique key says so).

use super::dialect::{exec, fetch_all, fetch_optional};
use super::{StoreError, Tx};
use crate::domain::card::Control;
use crate::domain::clock::Millis;
use crate::domain::form::Digest;
use crate::domain::ids::{CardId, InteractionId};
use crate::domain::place::{Destination, MessageRef};
use uuid::Uuid;

/// Where a card's message stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CardState {
    /// Never sent.
    Queued,
    /// A send is under way, or its outcome is unknown.
    Posting,
    Live,
    /// Deleted on the platform.
    Gone,
    /// Can never be edited again.
    Frozen,
    /// The place refused it.
    Failed,
    /// The interaction ended before it was sent.
    Unposted,
}

impl CardState {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Posting => "posting",
            Self::Live => "live",
            Self::Gone => "gone",
            Self::Frozen => "frozen",
            Self::Failed => "failed",
            Self::Unposted => "unposted",
        }
    }

    fn parse(word: &str) -> Option<Self> {
        [Self::Queued, Self::Posting, Self::Live, Self::Gone, Self::Frozen, Self::Failed, Self::Unposted]
            .into_iter()
            .find(|state| state.as_str() == word)
    }
}

/// A card's seat in its place, while its interaction is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slot {
    /// It stands there, or is about to.
    Taken,
    /// It waits for room.
    Held,
    /// The place refused it; it is wanted again when the place takes cards.
    Lost,
}

impl Slot {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Taken => "taken",
            Self::Held => "held",
            Self::Lost => "lost",
        }
    }

    fn parse(word: &str) -> Option<Self> {
        [Self::Taken, Self::Held, Self::Lost].into_iter().find(|slot| slot.as_str() == word)
    }
}

/// One card.
#[derive(Debug, Clone)]
pub struct CardRow {
    pub id: CardId,
    pub interaction: InteractionId,
    pub place: String,
    pub install: String,
    pub channel: Option<String>,
    pub message: Option<String>,
    pub thread: Option<String>,
    pub state: CardState,
    pub fallback: bool,
    /// The newest revision that is known to be shown.
    pub shown_rev: Option<i64>,
    pub cut: bool,
    /// When the post was sent whose outcome is not known yet.
    pub posting: Option<Millis>,
    pub post_rev: Option<i64>,
    /// Looks for it that found nothing, and when the first of them was.
    pub empty_reads: i64,
    pub empty_read: Option<Millis>,
    /// An edit was sent whose outcome is not known.
    pub editing: Option<Millis>,
    /// When the final state is to be sent once more.
    pub confirm: Option<Millis>,
    /// `None`: not decided yet, or nothing is open any more.
    pub slot: Option<Slot>,
}

impl CardRow {
    /// Its state for people: a card that waits for room in its place is `waiting`.
    #[must_use]
    pub fn word(&self) -> &'static str {
        if self.slot == Some(Slot::Held) { "waiting" } else { self.state.as_str() }
    }

    /// Its message on the platform, once known.
    #[must_use]
    pub fn at(&self) -> Option<MessageRef> {
        Some(MessageRef { channel: self.channel.clone()?, message: self.message.clone()? })
    }
}

/// What a pressed control is.
#[derive(Debug, Clone)]
pub struct Token {
    pub card: CardId,
    pub interaction: InteractionId,
    pub install: String,
    pub control: String,
    /// The drawing it belongs to.
    pub rev: i64,
    pub digest: Digest,
    pub cut: bool,
}

#[derive(sqlx::FromRow)]
struct Row {
    id: Uuid,
    interaction_id: Uuid,
    place: String,
    install: String,
    channel: Option<String>,
    message: Option<String>,
    thread: Option<String>,
    state: String,
    fallback: bool,
    shown_rev: Option<i64>,
    cut: bool,
    posting_ms: Option<i64>,
    post_rev: Option<i64>,
    empty_reads: i64,
    empty_read_ms: Option<i64>,
    editing_ms: Option<i64>,
    confirm_ms: Option<i64>,
    slot: Option<String>,
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, interaction_id, place, install, channel, message, thread, state, fallback, shown_rev, ",
            "cut, posting_ms, post_rev, empty_reads, empty_read_ms, editing_ms, confirm_ms, slot FROM cards ",
            $rest
        )
    };
}

const LOAD: &str = select!("WHERE id = $1");
const OF_INTERACTION: &str = select!("WHERE interaction_id = $1 ORDER BY created_ms, place");
const INSERT: &str = "INSERT INTO cards (id, interaction_id, place, install, channel, thread, state, fallback, created_ms) \
    VALUES ($1, $2, $3, $4, $5, $6, 'queued', $7, $8) ON CONFLICT (interaction_id, place) DO NOTHING";
const POST_SENT: &str = "UPDATE cards SET state = 'posting', posting_ms = $2, post_rev = $3, channel = $4, thread = $5, \
    cut = $6, empty_reads = 0, empty_read_ms = NULL WHERE id = $1 AND state IN ('queued', 'posting')";
const POSTED: &str = "UPDATE cards SET state = 'live', channel = $2, message = $3, posting_ms = NULL, \
    shown_rev = $4 WHERE id = $1 AND state IN ('queued', 'posting')";
const EDIT_SENT: &str = "UPDATE cards SET editing_ms = $2, cut = $3 WHERE id = $1 AND state = 'live'";
const EDITED: &str = "UPDATE cards SET shown_rev = $2, editing_ms = NULL, confirm_ms = $3 \
    WHERE id = $1 AND state = 'live' AND (shown_rev IS NULL OR shown_rev <= $2)";
const TOKEN: &str = "SELECT t.card_id, c.interaction_id, c.install, t.control, t.rev, t.digest, c.cut \
    FROM tokens t JOIN cards c ON c.id = t.card_id WHERE t.token = $1";

fn card(row: Row) -> Result<CardRow, StoreError> {
    let Row {
        id,
        interaction_id,
        place,
        install,
        channel,
        message,
        thread,
        state,
        fallback,
        shown_rev,
        cut,
        posting_ms,
        post_rev,
        empty_reads,
        empty_read_ms,
        editing_ms,
        confirm_ms,
        slot,
    } = row;
    Ok(CardRow {
        id: CardId(id),
        interaction: InteractionId(interaction_id),
        place,
        install,
        channel,
        message,
        thread,
        state: CardState::parse(&state).ok_or_else(|| StoreError::corrupt("cards", "state", id))?,
        fallback,
        shown_rev,
        cut,
        posting: posting_ms.map(Millis),
        post_rev,
        empty_reads,
        empty_read: empty_read_ms.map(Millis),
        editing: editing_ms.map(Millis),
        confirm: confirm_ms.map(Millis),
        slot: match slot {
            None => None,
            Some(word) => Some(Slot::parse(&word).ok_or_else(|| StoreError::corrupt("cards", "slot", id))?),
        },
    })
}

impl Tx {
    /// Adds a card for a place; `false` when that place has one already.
    pub async fn insert_card(
        &mut self,
        id: CardId,
        interaction: InteractionId,
        place: &str,
        install: &str,
        fallback: bool,
        at: Millis,
    ) -> Result<bool, StoreError> {
        let none: Option<&str> = None;
        let rows = exec!(self, INSERT, id.0, interaction.0, place, install, none, none, fallback, at.0)?;
        Ok(rows == 1)
    }

    pub async fn card(&mut self, id: CardId) -> Result<Option<CardRow>, StoreError> {
        fetch_optional!(self, Row, LOAD, id.0)?.map(card).transpose()
    }

    pub async fn cards_of(&mut self, interaction: InteractionId) -> Result<Vec<CardRow>, StoreError> {
        fetch_all!(self, Row, OF_INTERACTION, interaction.0)?.into_iter().map(card).collect()
    }

    /// A post is about to be sent: this is stored first. `false` when the card is past posting.
    pub async fn post_sent(
        &mut self,
        id: CardId,
        at: Millis,
        rev: i64,
        to: &Destination,
        cut: bool,
    ) -> Result<bool, StoreError> {
        let (channel, thread) = (to.channel.as_str(), to.thread.as_deref());
        Ok(exec!(self, POST_SENT, id.0, at.0, rev, channel, thread, cut)? == 1)
    }

    /// The post is there. `false` when the card has learnt of its message before (a press told us).
    pub async fn posted(&mut self, id: CardId, at: &MessageRef, rev: i64) -> Result<bool, StoreError> {
        Ok(exec!(self, POSTED, id.0, at.channel.as_str(), at.message.as_str(), rev)? == 1)
    }

    /// Puts a card into a state from which nothing is sent (or back to `queued`).
    pub async fn set_card_state(&mut self, id: CardId, state: CardState) -> Result<(), StoreError> {
        let rows = exec!(
            self,
            "UPDATE cards SET state = $2, posting_ms = NULL, editing_ms = NULL, confirm_ms = NULL WHERE id = $1",
            id.0,
            state.as_str()
        )?;
        if rows == 1 { Ok(()) } else { Err(StoreError::Conflict(format!("card {id} is missing"))) }
    }

    /// A look for the post found nothing.
    pub async fn post_not_found(&mut self, id: CardId, at: Millis) -> Result<(), StoreError> {
        exec!(
            self,
            "UPDATE cards SET empty_reads = empty_reads + 1, empty_read_ms = COALESCE(empty_read_ms, $2) WHERE id = $1",
            id.0,
            at.0
        )
        .map(|_| ())
    }

    /// An edit is about to be sent: that it is in flight is stored first.
    pub async fn edit_sent(&mut self, id: CardId, at: Millis, cut: bool) -> Result<bool, StoreError> {
        Ok(exec!(self, EDIT_SENT, id.0, at.0, cut)? == 1)
    }

    /// The edit is shown. `confirm` asks for the final state once more at that time.
    pub async fn edited(
        &mut self,
        id: CardId,
        rev: i64,
        confirm: Option<Millis>,
    ) -> Result<bool, StoreError> {
        Ok(exec!(self, EDITED, id.0, rev, confirm.map(|at| at.0))? == 1)
    }

    /// The final state stands beneath a card that cannot be edited.
    pub async fn replied(&mut self, id: CardId, rev: i64) -> Result<(), StoreError> {
        exec!(self, "UPDATE cards SET shown_rev = $2 WHERE id = $1 AND state = 'frozen'", id.0, rev)
            .map(|_| ())
    }

    /// A reply beneath a card that cannot be edited goes outside of its thread.
    pub async fn leave_thread(&mut self, id: CardId) -> Result<(), StoreError> {
        exec!(self, "UPDATE cards SET thread = '' WHERE id = $1", id.0).map(|_| ())
    }

    /// The post that was announced did not happen: it waits again.
    pub async fn post_not_sent(&mut self, id: CardId) -> Result<(), StoreError> {
        exec!(
            self,
            "UPDATE cards SET state = 'queued', posting_ms = NULL WHERE id = $1 AND state = 'posting'",
            id.0
        )
        .map(|_| ())
    }

    /// The edit that was announced was not sent after all.
    pub async fn edit_not_sent(&mut self, id: CardId) -> Result<(), StoreError> {
        exec!(self, "UPDATE cards SET editing_ms = NULL WHERE id = $1", id.0).map(|_| ())
    }

    /// Stores the tokens of a drawing. Repeating the same drawing stores them again without harm.
    pub async fn insert_tokens(
        &mut self,
        card: CardId,
        rev: i64,
        digest: &Digest,
        tokens: &[(Control, String)],
    ) -> Result<(), StoreError> {
        for (control, token) in tokens {
            exec!(
                self,
                "INSERT INTO tokens (token, card_id, rev, control, digest) VALUES ($1, $2, $3, $4, $5) \
                 ON CONFLICT (token) DO NOTHING",
                token.as_str(),
                card.0,
                rev,
                control.as_str(),
                digest.as_str()
            )?;
        }
        Ok(())
    }

    /// The tokens of one drawing, so that a repeated send carries the same.
    pub async fn tokens_of(&mut self, card: CardId, rev: i64) -> Result<Vec<(Control, String)>, StoreError> {
        let rows = fetch_all!(
            self,
            (String, String),
            "SELECT control, token FROM tokens WHERE card_id = $1 AND rev = $2",
            card.0,
            rev
        )?;
        Ok(rows.into_iter().filter_map(|(word, token)| Control::parse(&word).map(|c| (c, token))).collect())
    }

    /// What a pressed control is; `None` when nobody knows it.
    pub async fn token(&mut self, token: &str) -> Result<Option<Token>, StoreError> {
        type TokenRow = (Uuid, Uuid, String, String, i64, String, bool);
        Ok(fetch_optional!(self, TokenRow, TOKEN, token)?.map(
            |(card, interaction, install, control, rev, digest, cut)| Token {
                card: CardId(card),
                interaction: InteractionId(interaction),
                install,
                control,
                rev,
                digest: Digest::from_hex(digest),
                cut,
            },
        ))
    }

    /// Remembers a stray second copy of a card.
    pub async fn insert_copy(&mut self, card: CardId, at: &MessageRef) -> Result<bool, StoreError> {
        let rows = exec!(
            self,
            "INSERT INTO copies (card_id, channel, message) VALUES ($1, $2, $3) ON CONFLICT (channel, message) DO NOTHING",
            card.0,
            at.channel.as_str(),
            at.message.as_str()
        )?;
        Ok(rows == 1)
    }

    /// A copy is gone (deleted, or no longer editable).
    pub async fn delete_copy(&mut self, at: &MessageRef) -> Result<(), StoreError> {
        exec!(
            self,
            "DELETE FROM copies WHERE channel = $1 AND message = $2",
            at.channel.as_str(),
            at.message.as_str()
        )
        .map(|_| ())
    }

    pub async fn copies_of(&mut self, card: CardId) -> Result<Vec<MessageRef>, StoreError> {
        Ok(fetch_all!(
            self,
            (String, String),
            "SELECT channel, message FROM copies WHERE card_id = $1",
            card.0
        )?
        .into_iter()
        .map(|(channel, message)| MessageRef { channel, message })
        .collect())
    }
}

//! What was opened in front of one person, and who has opened a form to its end.
//!
//! Invariant: one row per card, revision, control, page and person, so that pressing again opens the same
//! thing under the same token; a delivery that is repeated finds its own key there and opens nothing.

use super::dialect::{exec, fetch_optional};
use super::{StoreError, Tx};
use crate::domain::card::Control;
use crate::domain::clock::Millis;
use crate::domain::form::Digest;
use crate::domain::ids::{CardId, ChatUser, InteractionId, Platform};
use uuid::Uuid;

/// Something about to be opened.
#[derive(Debug, Clone)]
pub struct NewOpening<'a> {
    pub token: &'a str,
    pub card: CardId,
    /// The drawing that was pressed, and what it showed.
    pub rev: i64,
    pub digest: &'a Digest,
    pub control: Control,
    /// 1 for the first; 0 where there are no pages.
    pub page: i64,
    pub by: &'a ChatUser,
    pub channel: Option<&'a str>,
    pub thread: Option<&'a str>,
    /// The platform's key of the press that opens it; `None` where it only may be opened later.
    pub opened_by: Option<&'a str>,
}

/// What a token of something opened stands for.
#[derive(Debug, Clone)]
pub struct Opening {
    pub card: CardId,
    pub interaction: InteractionId,
    pub install: String,
    pub rev: i64,
    pub digest: Digest,
    pub control: String,
    pub page: i64,
    pub by: ChatUser,
    pub channel: Option<String>,
    pub thread: Option<String>,
    /// Something was cut on the card.
    pub cut: bool,
}

#[derive(sqlx::FromRow)]
struct Row {
    card_id: Uuid,
    interaction_id: Uuid,
    install: String,
    rev: i64,
    digest: String,
    control: String,
    page: i64,
    platform: String,
    realm: String,
    chat_user: String,
    channel: Option<String>,
    thread: Option<String>,
    cut: bool,
}

const OPEN: &str = "INSERT INTO openings (token, card_id, rev, digest, control, page, platform, realm, chat_user, \
    channel, thread, opened_by) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) \
    ON CONFLICT (card_id, rev, control, page, platform, realm, chat_user) DO UPDATE SET \
    channel = COALESCE(excluded.channel, openings.channel), thread = COALESCE(excluded.thread, openings.thread), \
    opened_by = COALESCE(excluded.opened_by, openings.opened_by) \
    WHERE excluded.opened_by IS NULL OR openings.opened_by IS NULL OR openings.opened_by <> excluded.opened_by";
const TOKEN: &str = "SELECT token FROM openings WHERE card_id = $1 AND rev = $2 AND control = $3 AND page = $4 \
    AND platform = $5 AND realm = $6 AND chat_user = $7";
const LOAD: &str = "SELECT o.card_id, c.interaction_id, c.install, o.rev, o.digest, o.control, o.page, o.platform, \
    o.realm, o.chat_user, o.channel, o.thread, c.cut FROM openings o JOIN cards c ON c.id = o.card_id \
    WHERE o.token = $1";

impl Tx {
    /// The token under which this is open for this person, the new one or the one it had. `None`: this
    /// very press opened it before.
    pub async fn open(&mut self, new: &NewOpening<'_>) -> Result<Option<String>, StoreError> {
        let ChatUser { platform, realm, user } = new.by;
        let rows = exec!(
            self,
            OPEN,
            new.token,
            new.card.0,
            new.rev,
            new.digest.as_str(),
            new.control.as_str(),
            new.page,
            platform.as_str(),
            realm.as_str(),
            user.as_str(),
            new.channel,
            new.thread,
            new.opened_by,
        )?;
        if rows == 0 {
            return Ok(None);
        }
        let row = fetch_optional!(
            self,
            (String,),
            TOKEN,
            new.card.0,
            new.rev,
            new.control.as_str(),
            new.page,
            platform.as_str(),
            realm.as_str(),
            user.as_str(),
        )?;
        Ok(row.map(|(token,)| token))
    }

    /// What a token of something opened stands for; `None` when nobody knows it.
    pub async fn opening(&mut self, token: &str) -> Result<Option<Opening>, StoreError> {
        let Some(row) = fetch_optional!(self, Row, LOAD, token)? else { return Ok(None) };
        let platform = if row.platform == "discord" { Platform::Discord } else { Platform::Slack };
        Ok(Some(Opening {
            card: CardId(row.card_id),
            interaction: InteractionId(row.interaction_id),
            install: row.install,
            rev: row.rev,
            digest: Digest::from_hex(row.digest),
            control: row.control,
            page: row.page,
            by: ChatUser { platform, realm: row.realm, user: row.chat_user },
            channel: row.channel,
            thread: row.thread,
            cut: row.cut,
        }))
    }

    /// Somebody has opened a form to its end.
    pub async fn saw_all(
        &mut self,
        interaction: InteractionId,
        digest: &Digest,
        by: &ChatUser,
        at: Millis,
    ) -> Result<(), StoreError> {
        exec!(
            self,
            "INSERT INTO full_views (interaction_id, digest, platform, realm, chat_user, seen_ms) \
             VALUES ($1, $2, $3, $4, $5, $6) \
             ON CONFLICT (interaction_id, digest, platform, realm, chat_user) DO NOTHING",
            interaction.0,
            digest.as_str(),
            by.platform.as_str(),
            by.realm.as_str(),
            by.user.as_str(),
            at.0
        )
        .map(|_| ())
    }

    /// Whether somebody has opened this form to its end.
    pub async fn has_seen_all(
        &mut self,
        interaction: InteractionId,
        digest: &Digest,
        by: &ChatUser,
    ) -> Result<bool, StoreError> {
        let row = fetch_optional!(
            self,
            (i64,),
            "SELECT seen_ms FROM full_views WHERE interaction_id = $1 AND digest = $2 AND platform = $3 \
             AND realm = $4 AND chat_user = $5",
            interaction.0,
            digest.as_str(),
            by.platform.as_str(),
            by.realm.as_str(),
            by.user.as_str()
        )?;
        Ok(row.is_some())
    }
}

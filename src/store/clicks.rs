//! Clicks: stored before they are acknowledged, each ending in exactly one outcome.
//!
//! Invariant: a delivery repeated by the platform finds its key taken and changes nothing; an outcome
//! is written once (`stored` or `claimed` to an end, never from one end to another).

use super::dialect::{exec, fetch_all, fetch_optional};
use super::{StoreError, Tx};
use crate::domain::clock::Millis;
use crate::domain::form::Digest;
use crate::domain::ids::{CardId, ChatUser, ClickId, InteractionId, Platform};
use crate::domain::place::Identity;
use uuid::Uuid;

/// A click as it is stored before the acknowledgement.
#[derive(Debug)]
pub struct NewClick<'a> {
    pub id: ClickId,
    pub dedupe_key: &'a str,
    /// The install the payload names, if we have it.
    pub install: Option<&'a str>,
    pub platform: Platform,
    pub chat_user: &'a str,
    pub home_team: Option<&'a str>,
    /// Where it was pressed, as the payload says.
    pub team: Option<&'a str>,
    pub enterprise: Option<&'a str>,
    pub org_install: bool,
    pub channel: Option<&'a str>,
    pub message: Option<&'a str>,
    pub thread: Option<&'a str>,
    pub own_message: bool,
    pub reply: Option<&'a str>,
    /// What the person typed with it.
    pub reason: Option<&'a str>,
    /// What the platform said of the account with the press, as it is kept.
    pub said: Option<&'a str>,
    /// What was pressed, if the token is known.
    pub pressed: Option<ClickedControl>,
    pub received: Millis,
}

/// What a token stood for when it was pressed.
#[derive(Debug, Clone)]
pub struct ClickedControl {
    pub interaction: InteractionId,
    pub card: CardId,
    pub control: String,
    pub shown: Digest,
    pub cut: bool,
}

/// How a click ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClickState {
    Stored,
    /// It made the claim; delivery decides.
    Claimed,
    Delivered,
    Counted,
    Withdrawn,
    Refused,
}

impl ClickState {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stored => "stored",
            Self::Claimed => "claimed",
            Self::Delivered => "delivered",
            Self::Counted => "counted",
            Self::Withdrawn => "withdrawn",
            Self::Refused => "refused",
        }
    }

    fn parse(word: &str) -> Option<Self> {
        [Self::Stored, Self::Claimed, Self::Delivered, Self::Counted, Self::Withdrawn, Self::Refused]
            .into_iter()
            .find(|state| state.as_str() == word)
    }
}

/// A stored click. `reply` is a secret: it is in no Debug output.
#[derive(Clone)]
pub struct Click {
    pub id: ClickId,
    pub install: Option<String>,
    pub platform: Platform,
    pub realm: Option<String>,
    pub chat_user: String,
    pub home_team: Option<String>,
    pub team: Option<String>,
    pub enterprise: Option<String>,
    pub org_install: bool,
    pub channel: Option<String>,
    pub message: Option<String>,
    pub thread: Option<String>,
    pub own_message: bool,
    pub reply: Option<String>,
    /// What the person typed with it, exactly.
    pub reason: Option<String>,
    /// What the platform said of the account with the press, as it is kept.
    pub said: Option<String>,
    pub pressed: Option<ClickedControl>,
    pub received: Millis,
    pub state: ClickState,
    pub subject: Option<String>,
    pub rule: Option<String>,
    pub policy: Option<String>,
}

impl Click {
    /// Who pressed, by what the delivery itself says: the same person has the same key at every press,
    /// also while the platform cannot be asked who they are.
    #[must_use]
    pub fn viewer(&self) -> ChatUser {
        viewer(self.platform, self.enterprise.as_deref(), self.home_team.as_deref(), &self.chat_user)
    }
}

/// Who pressed, by what a delivery says: organisation or home team, and user.
#[must_use]
pub fn viewer(platform: Platform, enterprise: Option<&str>, home_team: Option<&str>, user: &str) -> ChatUser {
    let realm = match platform {
        Platform::Slack => enterprise.or(home_team).unwrap_or_default(),
        // An account is the same in every server.
        Platform::Discord => "",
    };
    ChatUser { platform, realm: realm.to_owned(), user: user.to_owned() }
}

impl std::fmt::Debug for Click {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Click").field("id", &self.id).field("state", &self.state).finish_non_exhaustive()
    }
}

/// What was decided about a click.
#[derive(Debug, Default)]
pub struct Decided<'a> {
    pub realm: Option<&'a str>,
    pub subject: Option<&'a str>,
    pub rule: Option<&'a str>,
    pub why: Option<&'a str>,
    pub policy: Option<&'a str>,
}

#[derive(sqlx::FromRow)]
struct Row {
    id: Uuid,
    install: Option<String>,
    platform: String,
    realm: Option<String>,
    chat_user: String,
    home_team: Option<String>,
    team: Option<String>,
    enterprise: Option<String>,
    org_install: bool,
    channel: Option<String>,
    message: Option<String>,
    thread: Option<String>,
    own_message: bool,
    reply: Option<String>,
    reason: Option<String>,
    said_json: Option<String>,
    interaction_id: Option<Uuid>,
    card_id: Option<Uuid>,
    control: Option<String>,
    shown: Option<String>,
    cut: bool,
    received_ms: i64,
    state: String,
    subject: Option<String>,
    rule: Option<String>,
    policy: Option<String>,
}

const INSERT: &str = "INSERT INTO clicks (id, dedupe_key, install, platform, chat_user, home_team, channel, message, \
    thread, own_message, reply, interaction_id, card_id, control, shown, cut, received_ms, state, team, enterprise, \
    org_install, reason, said_json) \
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, 'stored', \
    $18, $19, $20, $21, $22) \
    ON CONFLICT (dedupe_key) DO NOTHING";
const LOAD: &str = "SELECT id, install, platform, realm, chat_user, home_team, team, enterprise, org_install, channel, message, thread, own_message, \
    reply, reason, said_json, interaction_id, card_id, control, shown, cut, received_ms, state, subject, rule, policy FROM clicks WHERE id = $1";
const DECIDE: &str = "UPDATE clicks SET state = $2, realm = COALESCE($3, realm), subject = COALESCE($4, subject), \
    rule = COALESCE($5, rule), why = $6, policy = COALESCE($7, policy), decided_ms = $8 \
    WHERE id = $1 AND state IN ('stored', 'claimed')";

impl Tx {
    /// Stores a click; `false` when this delivery was stored before.
    pub async fn insert_click(&mut self, new: &NewClick<'_>) -> Result<bool, StoreError> {
        let pressed = new.pressed.as_ref();
        let rows = exec!(
            self,
            INSERT,
            new.id.0,
            new.dedupe_key,
            new.install,
            new.platform.as_str(),
            new.chat_user,
            new.home_team,
            new.channel,
            new.message,
            new.thread,
            new.own_message,
            new.reply,
            pressed.map(|p| p.interaction.0),
            pressed.map(|p| p.card.0),
            pressed.map(|p| p.control.as_str()),
            pressed.map(|p| p.shown.as_str()),
            pressed.is_some_and(|p| p.cut),
            new.received.0,
            new.team,
            new.enterprise,
            new.org_install,
            new.reason,
            new.said,
        )?;
        Ok(rows == 1)
    }

    pub async fn click(&mut self, id: ClickId) -> Result<Option<Click>, StoreError> {
        let Some(row) = fetch_optional!(self, Row, LOAD, id.0)? else { return Ok(None) };
        let Row {
            id,
            install,
            platform,
            realm,
            chat_user,
            home_team,
            team,
            enterprise,
            org_install,
            channel,
            message,
            thread,
            own_message,
            reply,
            reason,
            said_json,
            interaction_id,
            card_id,
            control,
            shown,
            cut,
            received_ms,
            state,
            subject,
            rule,
            policy,
        } = row;
        let pressed = match (interaction_id, card_id, control, shown) {
            (Some(interaction), Some(card), Some(control), Some(shown)) => Some(ClickedControl {
                interaction: InteractionId(interaction),
                card: CardId(card),
                control,
                shown: Digest::from_hex(shown),
                cut,
            }),
            _ => None,
        };
        Ok(Some(Click {
            id: ClickId(id),
            install,
            platform: if platform == "discord" { Platform::Discord } else { Platform::Slack },
            realm,
            chat_user,
            home_team,
            team,
            enterprise,
            org_install,
            channel,
            message,
            thread,
            own_message,
            reply,
            reason,
            said: said_json,
            pressed,
            received: Millis(received_ms),
            state: ClickState::parse(&state).ok_or_else(|| StoreError::corrupt("clicks", "state", id))?,
            subject,
            rule,
            policy,
        }))
    }

    /// Writes a click's outcome (or that it made the claim). `false` when it has one already.
    pub async fn decide_click(
        &mut self,
        id: ClickId,
        state: ClickState,
        decided: &Decided<'_>,
        at: Millis,
    ) -> Result<bool, StoreError> {
        let rows = exec!(
            self,
            DECIDE,
            id.0,
            state.as_str(),
            decided.realm,
            decided.subject,
            decided.rule,
            decided.why,
            decided.policy,
            at.0
        )?;
        Ok(rows == 1)
    }

    /// Whether a click that belongs to no install of ours came since a moment.
    pub async fn foreign_clicks_since(&mut self, since: Millis) -> Result<bool, StoreError> {
        let sql = "SELECT COUNT(*) FROM clicks WHERE received_ms > $1 AND install IS NULL";
        Ok(fetch_optional!(self, (i64,), sql, since.0)?.is_some_and(|(count,)| count > 0))
    }

    /// How many clicks are in each state.
    pub async fn count_clicks(&mut self) -> Result<Vec<(String, i64)>, StoreError> {
        fetch_all!(self, (String, i64), "SELECT state, COUNT(*) FROM clicks GROUP BY state")
    }

    /// Keeps what a platform said we are there.
    pub async fn set_install(
        &mut self,
        name: &str,
        platform: Platform,
        identity: &Identity,
        at: Millis,
    ) -> Result<(), StoreError> {
        exec!(
            self,
            "INSERT INTO installs (name, platform, app_id, team, enterprise, bot_user, seen_ms) \
             VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (name) DO UPDATE SET platform = excluded.platform, \
             app_id = excluded.app_id, team = excluded.team, enterprise = excluded.enterprise, \
             bot_user = excluded.bot_user, seen_ms = excluded.seen_ms",
            name,
            platform.as_str(),
            identity.app_id.as_str(),
            identity.team.as_deref(),
            identity.enterprise.as_deref(),
            identity.bot_user.as_str(),
            at.0
        )
        .map(|_| ())
    }

    /// What is known of each install: `(name, identity)`.
    pub async fn installs(&mut self) -> Result<Vec<(String, Identity)>, StoreError> {
        type InstallRow = (String, String, Option<String>, Option<String>, String);
        Ok(fetch_all!(self, InstallRow, "SELECT name, app_id, team, enterprise, bot_user FROM installs")?
            .into_iter()
            .map(|(name, app_id, team, enterprise, bot_user)| {
                (name, Identity { app_id, team, enterprise, bot_user, can_search: false })
            })
            .collect())
    }
}

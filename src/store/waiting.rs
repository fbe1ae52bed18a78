//! Looking through what is open without loading it, and the private notices that wait for their person.
//!
//! Invariant: one row of a look is small (names and facts, never a form), and a look reads open rows only,
//! by an index that holds no others. A notice is kept until it was shown where its person looks.

use super::dialect::{exec, fetch_all, fetch_optional};
use super::{StoreError, Tx};
use crate::domain::clock::Millis;
use crate::domain::form::{Digest, Fact, Form, Kind};
use crate::domain::ids::{CardId, InteractionId, InteractionKey, RuntimeName, Subject};
use crate::domain::notice::Notice;
use uuid::Uuid;

/// What routes and policy ask of an open interaction.
#[derive(Debug, Clone)]
pub struct Outline {
    pub id: InteractionId,
    pub key: InteractionKey,
    /// Kind and facts only: enough for routes, nothing to show.
    pub form: Form,
    pub owner: Option<Subject>,
    pub digest: Digest,
}

/// A notice that reached nobody.
#[derive(Debug, Clone)]
pub struct KeptNotice {
    pub id: Uuid,
    pub notice: Notice,
    pub kept: Millis,
}

#[derive(sqlx::FromRow)]
struct Row {
    id: Uuid,
    runtime: String,
    agent: String,
    task: String,
    external: String,
    kind: String,
    server: Option<String>,
    tool: Option<String>,
    owner: Option<String>,
    digest: String,
}

const OUTLINES: &str = "SELECT id, runtime, agent, task, external, kind, server, tool, owner, digest \
    FROM interactions WHERE state = 'open' AND id > $1 ORDER BY id LIMIT $2";
const VOTED: &str = "SELECT i.id FROM interactions i JOIN votes v ON v.interaction_id = i.id \
    WHERE i.state = 'open' AND v.subject = $1 AND v.voided IS NULL";
const VOTERS: &str =
    "SELECT subject FROM votes WHERE interaction_id = $1 AND voided IS NULL ORDER BY position";
const KEEP: &str = "INSERT INTO kept_notices (id, install, chat_user, realm, notice_json, kept_ms) \
    VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (id) DO NOTHING";
const KEPT: &str = "SELECT id, notice_json, kept_ms FROM kept_notices WHERE install = $1 AND chat_user = $2 \
    AND realm = $3 AND (shown_ms IS NULL OR shown_ms > $4) ORDER BY kept_ms LIMIT $5";
const SHOWN: &str = "UPDATE kept_notices SET shown_ms = $2 WHERE id = $1 AND shown_ms IS NULL";

impl Tx {
    /// Open interactions in outline, the oldest first, in pages by id.
    pub async fn outlines(&mut self, after: InteractionId, limit: i64) -> Result<Vec<Outline>, StoreError> {
        let rows = fetch_all!(self, Row, OUTLINES, after.0, limit)?;
        Ok(rows.into_iter().map(outline).collect())
    }

    /// The open interactions in which a subject's vote counts.
    pub async fn voted_by(&mut self, subject: &Subject) -> Result<Vec<InteractionId>, StoreError> {
        let rows = fetch_all!(self, (Uuid,), VOTED, subject.as_str())?;
        Ok(rows.into_iter().map(|(id,)| InteractionId(id)).collect())
    }

    /// Whose votes count, or counted when it ended.
    pub async fn voters(&mut self, id: InteractionId) -> Result<Vec<String>, StoreError> {
        Ok(fetch_all!(self, (String,), VOTERS, id.0)?.into_iter().map(|(subject,)| subject).collect())
    }

    /// The address of a card's message, if it was asked for before.
    pub async fn card_link(&mut self, card: CardId) -> Result<Option<String>, StoreError> {
        let row = fetch_optional!(self, (Option<String>,), "SELECT link FROM cards WHERE id = $1", card.0)?;
        Ok(row.and_then(|(link,)| link))
    }

    /// Keeps the address of a card's message; `None` when the message is another one now.
    pub async fn set_card_link(&mut self, card: CardId, link: Option<&str>) -> Result<(), StoreError> {
        exec!(self, "UPDATE cards SET link = $2 WHERE id = $1", card.0, link).map(|_| ())
    }

    /// Keeps a notice for one account. `id` is that of the job that could not deliver it: once.
    pub async fn keep_notice(
        &mut self,
        id: Uuid,
        (install, realm, user): (&str, &str, &str),
        notice: &Notice,
        at: Millis,
    ) -> Result<(), StoreError> {
        let json = serde_json::to_string(notice)
            .map_err(|_| StoreError::Refused("a notice that cannot be written".into()))?;
        exec!(self, KEEP, id, install, user, realm, json, at.0)?;
        self.shows();
        Ok(())
    }

    /// What is kept for an account: what was never shown, and what was first shown after `since`.
    pub async fn kept_notices(
        &mut self,
        (install, realm, user): (&str, &str, &str),
        since: Millis,
        limit: i64,
    ) -> Result<Vec<KeptNotice>, StoreError> {
        let rows = fetch_all!(self, (Uuid, String, i64), KEPT, install, user, realm, since.0, limit)?;
        // One of another version says nothing here; it goes by its age.
        let read = |(id, json, kept): (Uuid, String, i64)| {
            Some(KeptNotice { id, notice: serde_json::from_str(&json).ok()?, kept: Millis(kept) })
        };
        Ok(rows.into_iter().filter_map(read).collect())
    }

    /// A kept notice was shown; only the first time counts.
    pub async fn notice_shown(&mut self, id: Uuid, at: Millis) -> Result<(), StoreError> {
        exec!(self, SHOWN, id, at.0).map(|_| ())
    }
}

fn outline(row: Row) -> Outline {
    let Row { id, runtime, agent, task, external, kind, server, tool, owner, digest } = row;
    let fact = |label: &str, value: Option<String>| value.map(|value| Fact { label: label.into(), value });
    Outline {
        id: InteractionId(id),
        key: InteractionKey { runtime: RuntimeName::new(runtime), agent, task, external },
        form: Form {
            kind: Kind::parse(&kind),
            title: String::new(),
            prompt: String::new(),
            facts: [fact("server", server), fact("tool", tool)].into_iter().flatten().collect(),
            questions: vec![],
            arguments_withheld: false,
        },
        owner: owner.as_deref().and_then(|text| Subject::parse(text).ok()),
        digest: Digest::from_hex(digest),
    }
}

//! Answers: the decisions sent to runtimes, each with the exact body of every attempt.
//!
//! Invariant: at most one unreleased answer per interaction (a partial unique index says so); a body
//! once stored is never changed.

use super::dialect::{exec, fetch_all, fetch_optional};
use super::interactions::Interaction;
use super::{StoreError, Tx};
use crate::domain::clock::Millis;
use crate::domain::form::{Decision, Digest};
use crate::domain::ids::{AnswerId, ClickId, InteractionId, Subject};
use crate::domain::interaction::{Claim, Contradiction, End, Machine, Sent, State};
use serde_json::Value;
use uuid::Uuid;

/// A stored answer, as delivery needs it.
#[derive(Debug, Clone)]
pub struct Answer {
    pub id: AnswerId,
    pub interaction: InteractionId,
    pub click: ClickId,
    pub subject: Subject,
    pub message_id: String,
    pub body: Value,
    pub attempts: i64,
}

#[derive(sqlx::FromRow)]
struct ClaimRow {
    id: Uuid,
    number: i64,
    click_id: Uuid,
    subject: String,
    decision_json: String,
    digest: String,
    deliver_until_ms: i64,
    sent_json: String,
    in_flight: bool,
    ended_json: Option<String>,
    accepted_ms: Option<i64>,
    contra_ms: Option<i64>,
    contra_count: i64,
    candidate: bool,
    released_ms: Option<i64>,
}

const CLAIMS: &str = "SELECT id, number, click_id, subject, decision_json, digest, deliver_until_ms, sent_json, \
    in_flight, ended_json, accepted_ms, contra_ms, contra_count, candidate, released_ms FROM answers \
    WHERE interaction_id = $1 AND (released_ms IS NULL OR candidate) ORDER BY number";
const INSERT: &str = "INSERT INTO answers (id, interaction_id, number, click_id, subject, decision_json, digest, \
    message_id, body_json, claimed_ms, deliver_until_ms, sent_json) \
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, '\"never\"')";
const UPDATE: &str = "UPDATE answers SET sent_json = $2, in_flight = $3, ended_json = $4, accepted_ms = $5, \
    contra_ms = $6, contra_count = $7, candidate = $8, released_ms = $9 WHERE id = $1";
const LOAD: &str = "SELECT id, interaction_id, click_id, subject, message_id, body_json, attempts FROM answers WHERE id = $1";
const ATTEMPTED: &str = "UPDATE answers SET attempts = attempts + 1 WHERE id = $1";
const SAID: &str = "UPDATE answers SET said = $2 WHERE id = $1";

fn bad(column: &'static str, id: Uuid) -> StoreError {
    StoreError::corrupt("answers", column, id)
}

fn claim(row: ClaimRow) -> Result<(Claim, bool), StoreError> {
    let ClaimRow {
        id,
        number,
        click_id,
        subject,
        decision_json,
        digest,
        deliver_until_ms,
        sent_json,
        in_flight,
        ended_json,
        accepted_ms,
        contra_ms,
        contra_count,
        candidate,
        released_ms,
    } = row;
    let claim = Claim {
        answer: AnswerId(id),
        number: u32::try_from(number).map_err(|_| bad("number", id))?,
        click: ClickId(click_id),
        subject: Subject::parse(&subject).map_err(|_| bad("subject", id))?,
        decision: serde_json::from_str(&decision_json).map_err(|_| bad("decision_json", id))?,
        digest: Digest::from_hex(digest),
        deliver_until: Millis(deliver_until_ms),
        sent: serde_json::from_str::<Sent>(&sent_json).map_err(|_| bad("sent_json", id))?,
        in_flight,
        ended: ended_json
            .map(|json| serde_json::from_str::<End>(&json).map_err(|_| bad("ended_json", id)))
            .transpose()?,
        accepted_at: accepted_ms.map(Millis),
        contradiction: Contradiction {
            first: contra_ms.map(Millis),
            count: u32::try_from(contra_count).unwrap_or(u32::MAX),
        },
        candidate,
    };
    Ok((claim, released_ms.is_none()))
}

impl Tx {
    /// The live claim and the candidates of an interaction.
    pub(super) async fn claims_of(&mut self, id: Uuid) -> Result<(Option<Claim>, Vec<Claim>), StoreError> {
        let mut live = None;
        let mut candidates = vec![];
        for row in fetch_all!(self, ClaimRow, CLAIMS, id)? {
            match claim(row)? {
                (claim, true) => live = Some(claim),
                (claim, false) => candidates.push(claim),
            }
        }
        Ok((live, candidates))
    }

    /// Stores a new claim with its exact body. `Conflict` when another claim is live.
    pub async fn insert_answer(
        &mut self,
        interaction: InteractionId,
        claim: &Claim,
        message_id: &str,
        body: &Value,
        at: Millis,
    ) -> Result<(), StoreError> {
        let decision: String = serde_json::to_string::<Decision>(&claim.decision)
            .map_err(|_| bad("decision_json", claim.answer.0))?;
        exec!(
            self,
            INSERT,
            claim.answer.0,
            interaction.0,
            i64::from(claim.number),
            claim.click.0,
            claim.subject.as_str(),
            decision.as_str(),
            claim.digest.as_str(),
            message_id,
            body.to_string(),
            at.0,
            claim.deliver_until.0,
        )
        .map(|_| ())
    }

    /// Writes what a step changed about claims.
    pub(super) async fn save_claims(
        &mut self,
        before: &Interaction,
        after: &Machine,
        at: Millis,
    ) -> Result<(), StoreError> {
        let old_live = before.machine.claim();
        let new_live = match &after.state {
            State::Answering(claim) => Some(claim),
            _ => None,
        };
        let live_id = Interaction::live_answer(after);
        // What was live and is not: release first, the index allows one at a time.
        if let Some(old) = old_live
            && live_id != Some(old.answer)
        {
            let kept = after.candidates.iter().find(|claim| claim.answer == old.answer);
            self.write_claim(kept.unwrap_or(old), kept.is_some(), Some(at)).await?;
        }
        if let State::Settled { how: crate::domain::interaction::How::Ours { answer, .. }, .. } =
            &before.machine.state
            && live_id != Some(*answer)
        {
            exec!(
                self,
                "UPDATE answers SET released_ms = $2, candidate = TRUE WHERE id = $1",
                answer.0,
                at.0
            )?;
        }
        for gone in before.machine.candidates.iter().filter(|old| {
            live_id != Some(old.answer) && !after.candidates.iter().any(|claim| claim.answer == old.answer)
        }) {
            self.write_claim(gone, false, Some(at)).await?;
        }
        match (new_live, old_live) {
            // A claim made by this very step was inserted as it is.
            (Some(new), old) if old != Some(new) && new.number <= before.machine.claims => {
                self.write_claim(new, new.candidate, None).await?;
            }
            _ => {}
        }
        // Settled as ours: the answer stays unreleased as the record of what ended it.
        if let (None, Some(old), Some(id)) = (new_live, old_live, live_id)
            && old.answer == id
        {
            let ended = Claim { in_flight: false, sent: Sent::Accepted, ..old.clone() };
            self.write_claim(&ended, false, None).await?;
        }
        Ok(())
    }

    async fn write_claim(
        &mut self,
        claim: &Claim,
        candidate: bool,
        released: Option<Millis>,
    ) -> Result<(), StoreError> {
        let id = claim.answer.0;
        let sent = serde_json::to_string(&claim.sent).map_err(|_| bad("sent_json", id))?;
        let ended = match &claim.ended {
            Some(end) => Some(serde_json::to_string(end).map_err(|_| bad("ended_json", id))?),
            None => None,
        };
        let rows = exec!(
            self,
            UPDATE,
            id,
            sent.as_str(),
            claim.in_flight,
            ended.as_deref(),
            claim.accepted_at.map(|at| at.0),
            claim.contradiction.first.map(|at| at.0),
            i64::from(claim.contradiction.count),
            candidate,
            released.map(|at| at.0),
        )?;
        if rows == 1 { Ok(()) } else { Err(StoreError::Conflict(format!("answer {id} is missing"))) }
    }

    /// A stored answer.
    pub async fn answer(&mut self, id: AnswerId) -> Result<Option<Answer>, StoreError> {
        type Row = (Uuid, Uuid, Uuid, String, String, String, i64);
        let Some((id, interaction, click, subject, message_id, body, attempts)) =
            fetch_optional!(self, Row, LOAD, id.0)?
        else {
            return Ok(None);
        };
        Ok(Some(Answer {
            id: AnswerId(id),
            interaction: InteractionId(interaction),
            click: ClickId(click),
            subject: Subject::parse(&subject).map_err(|_| bad("subject", id))?,
            message_id,
            body: serde_json::from_str(&body).map_err(|_| bad("body_json", id))?,
            attempts,
        }))
    }

    /// Counts an attempt that is about to be made.
    pub async fn answer_attempted(&mut self, id: AnswerId) -> Result<(), StoreError> {
        exec!(self, ATTEMPTED, id.0).map(|_| ())
    }

    /// Keeps what the runtime said (codes only).
    pub async fn answer_said(&mut self, id: AnswerId, said: &str) -> Result<(), StoreError> {
        exec!(self, SAID, id.0, said).map(|_| ())
    }
}

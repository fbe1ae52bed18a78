//! Editing cards: bringing messages up to date, and what to do when one is gone or frozen.
//!
//! Invariant: a card's edits are one at a time, each drawn from the newest state, and a final state is
//! never followed by another.
//!
//! Known race: an edit's outcome is unknown (also one in flight at a crash): the newest state is sent
//! again, and once more a minute later, because the lost one may still land, also after edits that worked.

use super::cards::{Sending, Stored, backoff};
use super::click::JobEnd;
use super::ports::{Call, ChatError, ChatPlatform, Destination, Drawn, Marks, MessageRef};
use super::refused::place_alert;
use super::{Bridge, is_settled};
use crate::domain::ids::CardId;
use crate::store::StoreError;
use crate::store::cards::{CardRow, CardState};
use crate::store::interactions::Interaction;
use crate::store::jobs::Job;
use std::sync::Arc;
use std::time::Duration;

/// After an edit of unknown outcome the state of then is sent once more.
const CONFIRM_AFTER: Duration = Duration::from_mins(1);

impl Bridge {
    /// Brings a card's message up to date.
    pub(super) async fn edit(self: &Arc<Self>, job: &Job) -> Result<JobEnd, StoreError> {
        let Some((card, interaction)) = self.load_card(CardId(job.reference)).await? else {
            return self.update_bulletin(job).await;
        };
        if let Some(until) = self.stopped(&card.install) {
            return Ok(JobEnd::paced(until));
        }
        if card.state == CardState::Frozen {
            return self.reply_final(job, &card, &interaction).await;
        }
        let (CardState::Live, Some(at)) = (card.state, card.at()) else { return Ok(JobEnd::Done) };
        let Some(platform) = self.platforms.get(&card.install).cloned() else { return Ok(JobEnd::Done) };
        let now = self.clock.now();
        let rev = interaction.rev;
        let id = card.id;
        let copies = self.store.read(|tx| Box::pin(async move { tx.copies_of(id).await })).await?;
        let confirm_due = card.confirm.is_some_and(|at| at <= now);
        if card.shown_rev == Some(rev) && card.editing.is_none() && !confirm_due && copies.is_empty() {
            return match card.confirm {
                Some(at) => Ok(JobEnd::paced(at)),
                None => Ok(JobEnd::Done),
            };
        }
        if let Err(wait) =
            platform.reserve(&Call::Edit { channel: &at.channel, last: is_settled(&interaction.machine) })
        {
            return Ok(JobEnd::paced(now.plus(wait)));
        }
        let view = self.view_of(&interaction, &card).await?;
        let stored = self.draw_and_store(&platform, &card, &interaction, &view, rev, Sending::Edit).await?;
        let Stored::Edit(drawn) = stored else { return Ok(JobEnd::Done) };
        match platform.edit(&at, &drawn).await {
            Ok(()) => {
                let mut later = None;
                for copy in &copies {
                    later = later.or(self.edit_copy(job, &platform, copy, &drawn).await?);
                }
                // An earlier edit may still land after this one: what is true then goes once more. A newer
                // edit that worked does not end that doubt.
                let confirm = match card.confirm {
                    _ if confirm_due => None,
                    _ if card.editing.is_some() => Some(now.plus(CONFIRM_AFTER)),
                    pending => pending,
                };
                let alert = format!("edit:{}", card.install);
                let place = job.last_error.is_some().then(|| card.place.clone());
                let of = interaction.id;
                let newest = self
                    .store
                    .write(move |tx| {
                        Box::pin(async move {
                            tx.edited(id, rev, confirm).await?;
                            tx.clear(&alert).await?;
                            if let Some(place) = place
                                && tx.place_works(&place).await?
                            {
                                tx.clear(&place_alert(&place)).await?;
                            }
                            tx.rev_of(of).await
                        })
                    })
                    .await?;
                self.works(&card.install).await;
                let again = newest.is_some_and(|(newest, _)| newest != rev);
                Ok(match (again, later, confirm) {
                    (true, ..) => JobEnd::paced(now),
                    (false, Some(later), _) => later,
                    (false, None, Some(at)) if newest.is_some() => JobEnd::paced(at),
                    _ => JobEnd::Done,
                })
            }
            Err(error) => self.edit_failed(job, &card, &interaction, error).await,
        }
    }

    /// Edits a second copy; when to try again if it did not work.
    async fn edit_copy(
        &self,
        job: &Job,
        platform: &Arc<dyn ChatPlatform>,
        copy: &MessageRef,
        drawn: &Drawn,
    ) -> Result<Option<JobEnd>, StoreError> {
        let now = self.clock.now();
        match platform.edit(copy, drawn).await {
            Ok(()) => Ok(None),
            Err(ChatError::Gone { .. } | ChatError::NotEditable { .. }) => {
                let copy = copy.clone();
                self.store.write(move |tx| Box::pin(async move { tx.delete_copy(&copy).await })).await?;
                Ok(None)
            }
            Err(ChatError::Paced { after }) => Ok(Some(JobEnd::paced(now.plus(after)))),
            Err(
                error @ (ChatError::Unavailable { .. }
                | ChatError::Unknown { .. }
                | ChatError::Auth { .. }
                | ChatError::Closed { .. }),
            ) => Ok(Some(JobEnd::again(now.plus(backoff(job.attempts)), error.to_string()))),
            Err(error) => {
                tracing::warn!(install = platform.install(), %error, "a copy could not be edited");
                Ok(None)
            }
        }
    }

    /// A card that can never be edited again gets its final state as a reply beneath it, once.
    async fn reply_final(
        self: &Arc<Self>,
        job: &Job,
        card: &CardRow,
        interaction: &Interaction,
    ) -> Result<JobEnd, StoreError> {
        let (now, rev, id) = (self.clock.now(), interaction.rev, card.id);
        if !is_settled(&interaction.machine) || card.shown_rev == Some(rev) {
            return Ok(JobEnd::Done);
        }
        let (Some(at), Some(platform)) = (card.at(), self.platforms.get(&card.install).cloned()) else {
            return Ok(JobEnd::Done);
        };
        if let Err(wait) = platform.reserve(&Call::Post { channel: &at.channel }) {
            return Ok(JobEnd::paced(now.plus(wait)));
        }
        let view = self.view_of(interaction, card).await?;
        let drawn = platform.draw(&view, &Marks { card: id, rev, tokens: vec![] });
        // Beneath it: in the thread it stands in, or in one of its own.
        let thread = card.thread.clone().unwrap_or(at.message);
        let to = Destination { channel: at.channel, thread: Some(thread).filter(|root| !root.is_empty()) };
        match platform.post(&to, &drawn, id, rev).await {
            Err(ChatError::Paced { after }) => return Ok(JobEnd::paced(now.plus(after))),
            Err(ChatError::Unavailable { what }) => {
                return Ok(JobEnd::again(now.plus(backoff(job.attempts)), what));
            }
            Err(ChatError::Auth { code, needed }) => {
                return Ok(self.stop_install(&card.install, &code, &needed).await);
            }
            // The thread takes no replies: outside of it.
            Err(ChatError::Thread { code }) => {
                self.store.write(move |tx| Box::pin(async move { tx.leave_thread(id).await })).await?;
                return Ok(JobEnd::again(now.plus(backoff(job.attempts)), code));
            }
            // It may be there, or never will be.
            Err(error) => {
                tracing::warn!(install = card.install, %error, "the outcome could not be put into the thread");
            }
            Ok(_) => {}
        }
        self.store.write(move |tx| Box::pin(async move { tx.replied(id, rev).await })).await?;
        Ok(JobEnd::Done)
    }

    async fn edit_failed(
        self: &Arc<Self>,
        job: &Job,
        card: &CardRow,
        interaction: &Interaction,
        error: ChatError,
    ) -> Result<JobEnd, StoreError> {
        let now = self.clock.now();
        let id = card.id;
        let had_unknown = card.editing.is_some();
        match error {
            ChatError::Unknown { what } => Ok(JobEnd::again(now.plus(backoff(job.attempts)), what)),
            ChatError::Paced { after } => {
                self.nothing_edited(id, had_unknown).await?;
                Ok(JobEnd::paced(now.plus(after)))
            }
            ChatError::Unavailable { what } => {
                self.nothing_edited(id, had_unknown).await?;
                Ok(JobEnd::again(now.plus(backoff(job.attempts)), what))
            }
            ChatError::Auth { code, needed } => {
                self.nothing_edited(id, had_unknown).await?;
                Ok(self.stop_install(&card.install, &code, &needed).await)
            }
            ChatError::Gone { .. } => {
                // Under its old id nothing is there: the channel's id has changed meanwhile.
                if self.load_card(id).await?.is_some_and(|(now, _)| now.at() != card.at()) {
                    return Ok(JobEnd::paced(now));
                }
                self.card_gone(card, interaction).await?;
                Ok(JobEnd::Done)
            }
            ChatError::Closed { code } => {
                self.nothing_edited(id, had_unknown).await?;
                self.edit_waits(card, &code).await
            }
            // Nobody may reach the card there any more: it stands somewhere else from now on.
            ChatError::Place { code } => {
                self.nothing_edited(id, had_unknown).await?;
                self.stand_in(card, interaction).await?;
                self.edit_waits(card, &code).await
            }
            ChatError::NotEditable { code } => {
                tracing::warn!(install = card.install, code, "a card can never be edited again");
                self.set_state(id, CardState::Frozen).await?;
                Ok(JobEnd::paced(now))
            }
            other => {
                self.nothing_edited(id, had_unknown).await?;
                self.alert(
                    &format!("edit:{}", card.install),
                    &format!("an edit was refused for good: {other}"),
                )
                .await;
                Ok(JobEnd::Dead(other.to_string()))
            }
        }
    }

    /// The edit that was announced did not happen; one before it may still be in doubt.
    async fn nothing_edited(&self, id: CardId, had_unknown: bool) -> Result<(), StoreError> {
        if had_unknown {
            return Ok(());
        }
        self.store.write(move |tx| Box::pin(async move { tx.edit_not_sent(id).await })).await
    }
}

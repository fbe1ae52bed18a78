//! When a place takes no card, or a card's message was deleted: operators are told, and the route's fallback
//! is used.
//!
//! Invariant: an open interaction that loses its last card comes to the fallback, or operators are told that
//! it is nowhere; never silence. A place that refused for its own sake is marked: no card is tried there
//! until it was found to work again (`places`), and what it refused meanwhile is posted then, unless it stands
//! somewhere else.

use super::Bridge;
use super::click::JobEnd;
use super::effects::priority;
use super::is_settled;
use crate::domain::clock::Millis;
use crate::domain::routing::route;
use crate::store::cards::{CardRow, CardState, Slot};
use crate::store::interactions::Interaction;
use crate::store::jobs::{JobKind, NewJob};
use crate::store::{StoreError, Tx};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// A place that takes no cards is looked at this often.
pub(super) const LOOK_AGAIN: Duration = Duration::from_mins(10);

pub(super) fn place_alert(place: &str) -> String {
    format!("place:{place}")
}

/// The group of the looks at a place.
pub(super) fn place_group(place: &str) -> String {
    format!("p:{place}")
}

impl Bridge {
    /// A place takes no card: operators are told, and the route's fallback is used. `bad` when that is about
    /// the place, not about this card: it is marked until it takes one.
    pub(super) async fn place_refused(
        self: &Arc<Self>,
        card: &CardRow,
        interaction: &Interaction,
        why: &str,
        bad: bool,
    ) -> Result<JobEnd, StoreError> {
        let bridge = Arc::clone(self);
        let (id, why, now) = (card.id, why.to_owned(), self.clock.now());
        let fallback = if card.fallback { vec![] } else { self.fallback_of(interaction) };
        let interaction = interaction.id;
        let fresh = self
            .store
            .write(move |tx| {
                Box::pin(async move {
                    let Some(row) = tx.card(id).await? else { return Ok(None) };
                    let current = tx.interaction(interaction, true).await?;
                    bridge.free_seat(tx, id, now).await?;
                    tx.set_card_state(id, CardState::Failed).await?;
                    let fresh = bridge.note_refusal(tx, &row, &why, bad, now).await?;
                    let Some(current) = current.filter(|current| !is_settled(&current.machine)) else {
                        return Ok(fresh);
                    };
                    if bad {
                        tx.set_slot(id, Some(Slot::Lost)).await?;
                    }
                    let owner = current.owner.as_ref();
                    bridge.queue_places(tx, interaction, owner, &fallback, true, now).await?;
                    Ok(fresh)
                })
            })
            .await?;
        if let Some(text) = fresh {
            super::raised(&place_alert(&card.place), &text);
        }
        Ok(JobEnd::Done)
    }

    /// Raises the place's alert and, when it is `bad`, marks it. The alert's text when it is new.
    async fn note_refusal(
        &self,
        tx: &mut Tx,
        card: &CardRow,
        why: &str,
        bad: bool,
        now: Millis,
    ) -> Result<Option<String>, StoreError> {
        if bad {
            self.mark_bad(tx, &card.place, &card.install, card.channel.as_deref(), why, now).await
        } else {
            let text = format!("{} takes no card: {why}", named(&card.place, card.channel.as_deref()));
            Ok(tx.raise(&place_alert(&card.place), &text, now).await?.then_some(text))
        }
    }

    /// Remembers that a place takes no cards, and looks at it from time to time. The alert's text when it is new.
    pub(super) async fn mark_bad(
        &self,
        tx: &mut Tx,
        place: &str,
        install: &str,
        channel: Option<&str>,
        why: &str,
        now: Millis,
    ) -> Result<Option<String>, StoreError> {
        if tx.mark_place(place, why, now).await? {
            self.queue_look(tx, place, now.plus(LOOK_AGAIN)).await?;
            if let Some(channel) = channel {
                self.nobody_waits(tx, install, channel, now).await?;
            }
        }
        let text = format!("{} takes no card: {why}", named(place, channel));
        Ok(tx.raise(&place_alert(place), &text, now).await?.then_some(text))
    }

    /// Looks at a place at that time.
    pub(super) async fn queue_look(&self, tx: &mut Tx, place: &str, at: Millis) -> Result<(), StoreError> {
        tx.queue(NewJob {
            kind: JobKind::Place,
            group: place_group(place),
            seq: 0,
            priority: priority::INTERIM,
            reference: self.ids.uuid(),
            payload: json!({ "place": place }),
            available: at,
        })
        .await
    }

    /// The places that stand in for one of the route's.
    pub(super) fn fallback_of(&self, interaction: &Interaction) -> Vec<crate::domain::place::Place> {
        route(&self.rules.routes, &interaction.key, &interaction.form)
            .map(|route| route.fallback.clone())
            .unwrap_or_default()
    }

    /// A card cannot be brought up to date where it is. When no other is left of an open interaction, one is
    /// posted once to the route's fallback; operators are told of the place anyway.
    pub(super) async fn stand_in(
        self: &Arc<Self>,
        card: &CardRow,
        interaction: &Interaction,
    ) -> Result<(), StoreError> {
        let bridge = Arc::clone(self);
        let (stuck, now) = (card.id, self.clock.now());
        let fallback = if card.fallback { vec![] } else { self.fallback_of(interaction) };
        let id = interaction.id;
        self.store
            .write(move |tx| {
                Box::pin(async move {
                    let current = tx.interaction(id, true).await?;
                    let Some(current) = current.filter(|current| !is_settled(&current.machine)) else {
                        return Ok(());
                    };
                    if !stands_somewhere(&tx.cards_of(id).await?, stuck) {
                        bridge.queue_places(tx, id, current.owner.as_ref(), &fallback, true, now).await?;
                    }
                    Ok(())
                })
            })
            .await
    }

    /// A card's message is gone. When no other is left of an open interaction, it is posted once to the
    /// route's fallback; without one operators are told.
    pub(super) async fn card_gone(
        self: &Arc<Self>,
        card: &CardRow,
        interaction: &Interaction,
    ) -> Result<(), StoreError> {
        let bridge = Arc::clone(self);
        let (lost, place, now) = (card.id, card.place.clone(), self.clock.now());
        let fallback = self.fallback_of(interaction);
        let (id, short) = (interaction.id, interaction.id.short());
        let fresh = self
            .store
            .write(move |tx| {
                Box::pin(async move {
                    let current = tx.interaction(id, true).await?;
                    bridge.free_seat(tx, lost, now).await?;
                    tx.set_card_state(lost, CardState::Gone).await?;
                    let Some(current) = current.filter(|current| !is_settled(&current.machine)) else {
                        return Ok(None);
                    };
                    if stands_somewhere(&tx.cards_of(id).await?, lost) {
                        return Ok(None);
                    }
                    let owner = current.owner.as_ref();
                    if bridge.queue_places(tx, id, owner, &fallback, true, now).await? > 0 {
                        return Ok(None);
                    }
                    let text = format!("the last card of interaction {short} was deleted in {place}");
                    let key = format!("card:{id}");
                    Ok(tx.raise(&key, &text, now).await?.then_some((key, text)))
                })
            })
            .await?;
        if let Some((alert, text)) = fresh {
            super::raised(&alert, &text);
        }
        Ok(())
    }
}

/// A place with its channel, where the name does not say it.
fn named(place: &str, channel: Option<&str>) -> String {
    match channel {
        Some(channel) if !place.ends_with(channel) => format!("{place} ({channel})"),
        _ => place.to_owned(),
    }
}

/// Whether an interaction has a card, or will, beside this one.
pub(super) fn stands_somewhere(cards: &[CardRow], beside: crate::domain::ids::CardId) -> bool {
    cards.iter().any(|card| {
        card.id != beside
            && matches!(
                card.state,
                CardState::Live | CardState::Posting | CardState::Queued | CardState::Frozen
            )
    })
}

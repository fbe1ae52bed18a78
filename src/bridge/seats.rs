//! How many open cards a place shows (`max_open_per_place`), and which come next.
//!
//! Invariant: a card is posted only with a seat; who finds none waits in the order first seen, has no job
//! while it waits, and is posted by whoever frees a seat, in the same transaction. What waits for room in
//! one place is answerable in every other, and listed by `open`.
//!
//! Known races and the decisions taken:
//! - an interaction ends while its waiting card gets the seat that became free: both happen under the
//!   place's lock; the card's post job finds the end and frees the seat again;
//! - two places of a route turn out to be one channel: the second card is not posted.

use super::Bridge;
use super::effects::priority;
use crate::domain::bulletin::Bulletin;
use crate::domain::clock::Millis;
use crate::domain::ids::{CardId, InteractionId};
use crate::store::cards::{CardState, Slot};
use crate::store::{StoreError, Tx};
use std::sync::Arc;
use std::time::Duration;

/// The notice that says how many wait comes this much later, so that a burst gives one right number.
const NOTICE_AFTER: Duration = Duration::from_secs(2);
/// The topic of that notice.
pub(super) const WAITING: &str = "waiting";

/// What became of a card that asked for a seat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seat {
    Taken,
    /// It waits; nothing is to be done for it now.
    Held,
    /// The interaction has a card there already.
    Twin,
}

/// The key of a channel's bulletins.
fn channel_key(install: &str, channel: &str) -> String {
    format!("{install}:{channel}")
}

impl Bridge {
    /// Gives a card that was never posted its seat in a channel, if there is one.
    pub(super) async fn take_seat(
        &self,
        tx: &mut Tx,
        (card, interaction): (CardId, InteractionId),
        install: &str,
        channel: &str,
        at: Millis,
    ) -> Result<Seat, StoreError> {
        tx.lock_place(install, channel).await?;
        if tx.twin(interaction, install, channel, card).await?.is_some() {
            tx.set_slot(card, None).await?;
            tx.set_card_state(card, CardState::Unposted).await?;
            return Ok(Seat::Twin);
        }
        if tx.has_room(install, channel, self.rules.max_open_per_place).await? {
            tx.seat(card, channel, Slot::Taken).await?;
            return Ok(Seat::Taken);
        }
        tx.seat(card, channel, Slot::Held).await?;
        metrics::counter!("countersign_cards_held_total").increment(1);
        self.say_how_many_wait(tx, install, channel, at).await?;
        Ok(Seat::Held)
    }

    /// A place's channel has become known: its cards take their seats in the order first seen.
    pub(super) async fn seat_all(
        &self,
        tx: &mut Tx,
        place: &str,
        install: &str,
        channel: &str,
        at: Millis,
    ) -> Result<(), StoreError> {
        tx.lock_place(install, channel).await?;
        for id in tx.unseated(place).await? {
            let Some(card) = tx.card(id).await? else { continue };
            self.take_seat(tx, (id, card.interaction), install, channel, at).await?;
        }
        Ok(())
    }

    /// A card needs no seat any more; who has waited longest gets it.
    pub(super) async fn free_seat(&self, tx: &mut Tx, card: CardId, at: Millis) -> Result<(), StoreError> {
        let Some(known) = tx.card(card).await? else { return Ok(()) };
        if known.slot.is_none() {
            return Ok(());
        }
        let Some(channel) = known.channel.clone() else { return tx.set_slot(card, None).await };
        tx.lock_place(&known.install, &channel).await?;
        // Read again: it may have got a seat meanwhile.
        let Some(row) = tx.card(card).await? else { return Ok(()) };
        tx.set_slot(card, None).await?;
        match row.slot {
            Some(Slot::Taken) => self.fill_seats(tx, &known.install, &channel, at).await,
            Some(Slot::Held) => self.say_how_many_wait(tx, &known.install, &channel, at).await,
            Some(Slot::Lost) | None => Ok(()),
        }
    }

    /// Every seat of an interaction that has ended. Its cards that waited for room are not wanted any more.
    pub(super) async fn free_seats_of(
        &self,
        tx: &mut Tx,
        interaction: InteractionId,
        at: Millis,
    ) -> Result<(), StoreError> {
        let mut cards = tx.cards_of(interaction).await?;
        // Always in one order, so that two that end at once do not wait for each other.
        cards.sort_by(|a, b| (&a.install, &a.channel).cmp(&(&b.install, &b.channel)));
        for card in cards.into_iter().filter(|card| card.slot.is_some()) {
            self.free_seat(tx, card.id, at).await?;
            if card.slot == Some(Slot::Held) {
                tx.set_card_state(card.id, CardState::Unposted).await?;
            }
        }
        Ok(())
    }

    /// The interaction is open again: what stands has its seat (even one too many), the rest asks for one.
    pub(super) async fn seats_again(
        &self,
        tx: &mut Tx,
        interaction: InteractionId,
        at: Millis,
    ) -> Result<(), StoreError> {
        for card in tx.cards_of(interaction).await? {
            match (card.state, card.channel.as_deref()) {
                (CardState::Live | CardState::Posting | CardState::Frozen, Some(_)) => {
                    tx.set_slot(card.id, Some(Slot::Taken)).await?;
                }
                (CardState::Unposted, channel) => {
                    tx.set_card_state(card.id, CardState::Queued).await?;
                    let seat = match channel {
                        Some(channel) => {
                            self.take_seat(tx, (card.id, interaction), &card.install, channel, at).await?
                        }
                        None => Seat::Taken,
                    };
                    if seat == Seat::Taken {
                        self.queue_post(tx, card.id, at).await?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Gives what seats there are to those who wait. The place's lock is held.
    async fn fill_seats(
        &self,
        tx: &mut Tx,
        install: &str,
        channel: &str,
        at: Millis,
    ) -> Result<(), StoreError> {
        self.let_in(tx, install, channel, Some(self.rules.max_open_per_place), at).await
    }

    /// A place takes no cards: nobody waits for room there, each goes its way to the fallback.
    pub(super) async fn nobody_waits(
        &self,
        tx: &mut Tx,
        install: &str,
        channel: &str,
        at: Millis,
    ) -> Result<(), StoreError> {
        tx.lock_place(install, channel).await?;
        self.let_in(tx, install, channel, None, at).await
    }

    /// Lets those who wait post, in their order, while there are not `most` (`None`: all of them).
    async fn let_in(
        &self,
        tx: &mut Tx,
        install: &str,
        channel: &str,
        most: Option<i64>,
        at: Millis,
    ) -> Result<(), StoreError> {
        let mut came = false;
        while let Some(next) = tx.first_held(install, channel).await? {
            if let Some(most) = most
                && !tx.has_room(install, channel, most).await?
            {
                break;
            }
            tx.set_slot(next, Some(Slot::Taken)).await?;
            self.queue_post(tx, next, at).await?;
            came = true;
        }
        if came { self.say_how_many_wait(tx, install, channel, at).await } else { Ok(()) }
    }

    /// Looks where cards wait although there is room: after `max_open_per_place` was raised.
    pub async fn tend_seats(self: &Arc<Self>) -> Result<(), StoreError> {
        let crowded = self.store.read(|tx| Box::pin(async move { tx.crowded().await })).await?;
        for (install, channel) in crowded {
            let (bridge, now) = (Arc::clone(self), self.clock.now());
            self.store
                .write(move |tx| {
                    Box::pin(async move {
                        tx.lock_place(&install, &channel).await?;
                        bridge.fill_seats(tx, &install, &channel, now).await
                    })
                })
                .await?;
        }
        Ok(())
    }

    /// The notice in the channel is to be brought up to date.
    async fn say_how_many_wait(
        &self,
        tx: &mut Tx,
        install: &str,
        channel: &str,
        at: Millis,
    ) -> Result<(), StoreError> {
        let place = channel_key(install, channel);
        let none = Bulletin::Waiting { count: 0 };
        tx.insert_bulletin(self.ids.uuid(), WAITING, &place, install, Some(channel), &none).await?;
        let Some(notice) = tx.bulletin_of(WAITING, &place).await? else { return Ok(()) };
        let group = super::bulletins::group(notice.id);
        tx.queue_edit(notice.id, &group, 0, priority::INTERIM, at.plus(NOTICE_AFTER)).await
    }
}

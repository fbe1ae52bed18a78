//! From a route's places to spots: who is `dm:owner`, who is `dm:<group>`.
//!
//! Invariant: a card is for a spot, so that one person reached by two places gets one card. A member of a
//! group is a linked account: of its subjects everywhere, of its Slack user groups in that Slack. Whether that
//! person may answer is decided at the click, as everywhere.
//!
//! Known races and the decisions taken:
//! - the owner becomes known later: the place is posted to then; until then it counts as none;
//! - a user group cannot be read: its members are asked for again for a while, then operators are told; the
//!   group's subjects do not wait for it.

use super::Bridge;
use super::click::JobEnd;
use super::effects::priority;
use super::is_settled;
use super::seats::Seat;
use crate::domain::clock::Millis;
use crate::domain::ids::{CardId, GroupName, InteractionId, Subject};
use crate::domain::place::{Place, Spot};
use crate::domain::routing::Group;
use crate::store::jobs::{Job, JobKind, NewJob};
use crate::store::{StoreError, Tx};
use serde_json::json;
use std::sync::Arc;

/// After so many tries to read a user group operators are told, and its members get no card.
const ATTEMPTS: i64 = 8;

impl Bridge {
    /// The spots of a place that are known without asking anybody.
    pub(super) fn spots(&self, place: &Place, owner: Option<&Subject>) -> Vec<Spot> {
        match place {
            Place::At(spot) => vec![spot.clone()],
            Place::Owner => owner.map(|owner| self.spots_of(owner)).unwrap_or_default(),
            Place::Group(name) => {
                let subjects = self.group(name).map(|group| group.subjects.as_slice()).unwrap_or_default();
                subjects.iter().flat_map(|subject| self.spots_of(subject)).collect()
            }
        }
    }

    fn group(&self, name: &GroupName) -> Option<&Group> {
        self.rules.groups.iter().find(|group| group.name == *name)
    }

    /// Queues a card for each spot of these places. How many spots that is; members of user groups who are
    /// still to be asked for count as one.
    pub(super) async fn queue_places(
        &self,
        tx: &mut Tx,
        id: InteractionId,
        owner: Option<&Subject>,
        places: &[Place],
        fallback: bool,
        now: Millis,
    ) -> Result<usize, StoreError> {
        let mut found = 0;
        for place in places {
            for spot in self.spots(place, owner) {
                found += 1;
                self.queue_card(tx, id, &spot, fallback, now).await?;
            }
            if let Place::Group(name) = place
                && self.group(name).is_some_and(|group| !group.slack_usergroups.is_empty())
            {
                found += 1;
                tx.queue(NewJob {
                    kind: JobKind::Spread,
                    group: format!("s:{}", id.0.simple()),
                    seq: 0,
                    priority: priority::POST,
                    reference: id.0,
                    payload: json!({ "group": name.as_str(), "fallback": fallback }),
                    available: now,
                })
                .await?;
            }
        }
        Ok(found)
    }

    /// Queues one card for one spot; `false` when that spot has one.
    pub(super) async fn queue_card(
        &self,
        tx: &mut Tx,
        id: InteractionId,
        spot: &Spot,
        fallback: bool,
        now: Millis,
    ) -> Result<bool, StoreError> {
        let (card, place) = (CardId(self.ids.uuid()), spot.to_string());
        if !tx.insert_card(card, id, &place, &spot.install, fallback, now).await? {
            return Ok(false);
        }
        // A place that takes no cards has no room to wait for.
        if tx.bad_place(&place).await?.is_none()
            && let Some(channel) = Self::known_channel(tx, spot).await?
            && self.take_seat(tx, (card, id), &spot.install, &channel, now).await? != Seat::Taken
        {
            return Ok(true);
        }
        self.queue_post(tx, card, now).await?;
        Ok(true)
    }

    pub(super) async fn queue_post(&self, tx: &mut Tx, card: CardId, now: Millis) -> Result<(), StoreError> {
        tx.queue(NewJob {
            kind: JobKind::Post,
            group: super::card_group(card),
            seq: 0,
            priority: priority::POST,
            reference: card.0,
            payload: json!({}),
            available: now,
        })
        .await
    }

    /// The linked accounts among a group's Slack user groups; `None` when one could not be read.
    pub(super) async fn usergroup_spots(self: &Arc<Self>, name: &GroupName) -> Option<Vec<Spot>> {
        let mut spots = vec![];
        let group = self.group(name)?;
        for (install, id) in &group.slack_usergroups {
            let platform = self.platforms.get(install).cloned()?;
            let members = self.members(&platform, id).await?;
            let links = self.rules.people.links().iter();
            let linked = links.filter(|link| link.install == *install && members.contains(&link.user));
            spots.extend(linked.map(|link| Spot::direct(link.platform, install, &link.user)));
        }
        Some(spots)
    }

    /// Queues a card for each linked member of a group's Slack user groups.
    pub(super) async fn spread_group(self: &Arc<Self>, job: &Job) -> Result<JobEnd, StoreError> {
        let id = InteractionId(job.reference);
        let text = |key: &str| job.payload.get(key).and_then(serde_json::Value::as_str);
        let name = GroupName::new(text("group").unwrap_or_default());
        let fallback = job.payload.get("fallback") == Some(&json!(true));
        let Some(interaction) = self.interaction(id).await? else { return Ok(JobEnd::Done) };
        if is_settled(&interaction.machine) || self.group(&name).is_none() {
            return Ok(JobEnd::Done);
        }
        let now = self.clock.now();
        let alert = format!("group:{name}");
        let spots = match self.usergroup_spots(&name).await {
            Some(spots) => {
                self.all_clear(&alert).await;
                spots
            }
            None if job.attempts < ATTEMPTS => {
                let again = now.plus(super::cards::backoff(job.attempts));
                return Ok(JobEnd::again(again, "a user group could not be read"));
            }
            None => {
                let text =
                    format!("the user groups of {name} cannot be read: dm:{name} reaches only its subjects");
                self.alert(&alert, &text).await;
                vec![]
            }
        };
        let bridge = Arc::clone(self);
        let places = if fallback { vec![] } else { self.fallback_of(&interaction) };
        self.store
            .write(move |tx| {
                Box::pin(async move {
                    let Some(current) = tx.interaction(id, true).await? else { return Ok(()) };
                    if is_settled(&current.machine) {
                        return Ok(());
                    }
                    for spot in &spots {
                        bridge.queue_card(tx, id, spot, fallback, now).await?;
                    }
                    if tx.cards_of(id).await?.is_empty() {
                        let owner = current.owner.as_ref();
                        bridge.queue_places(tx, id, owner, &places, true, now).await?;
                    }
                    Ok(())
                })
            })
            .await?;
        Ok(JobEnd::Done)
    }
}

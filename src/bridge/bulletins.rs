//! Messages of ours that are no cards: alerts for operators, and how many requests wait for room in a place.
//!
//! Invariant: one message for each alert and place, however often it is found, marked when it is over; one
//! notice in a crowded place, taken away when nobody waits. That a post is under way is stored before it is
//! made, and a post of unknown outcome is looked for before it is made again.
//!
//! The alerts that stand are compared with the messages that say so. That comparison is all there is: nothing
//! that raises or ends an alert knows of messages, and a comparison that was missed is made by the next one.
//!
//! Known races and the decisions taken:
//! - two replicas compare at once: one topic has one row in a place;
//! - an alert ends and comes again before its message said so: the message ends, the new one is another;
//! - the alert is about the very place where it would be told, or about that place's credentials: it is not
//!   told there, so that nothing goes round in a circle;
//! - somebody deletes the message: it is not posted again.

use super::Bridge;
use super::cards::{BLIND_WAIT, LOOK_AFTER, LOOK_APART, backoff};
use super::click::JobEnd;
use super::effects::priority;
use super::ports::{Call, ChatError, ChatPlatform, Destination, MessageRef};
use super::refused::place_alert;
use super::seats::WAITING;
use crate::domain::bulletin::Bulletin;
use crate::domain::clock::Millis;
use crate::domain::ids::CardId;
use crate::domain::place::{Place, Spot};
use crate::store::alerts::Alert;
use crate::store::bulletins::{BulletinRow, BulletinState};
use crate::store::jobs::Job;
use crate::store::{StoreError, Tx};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// The notice of how many wait changes at most this often, except to go away.
const NOTICE_EVERY: Duration = Duration::from_secs(10);
/// A message that cannot be brought up to date so often is left as it is.
const ATTEMPTS: i64 = 10;

/// The group in which a bulletin's post and edits are sent in order.
pub(super) fn group(id: Uuid) -> String {
    format!("b:{}", id.simple())
}

fn topic(alert: &str) -> String {
    format!("alert:{alert}")
}

/// Whether an alert may be told in a spot: not where it says that nothing can be told.
fn may_tell(alert: &str, spot: &Spot) -> bool {
    alert != place_alert(&spot.to_string()) && alert != format!("chat:{}", spot.install)
}

impl Bridge {
    /// Compares the alerts that stand with the messages that tell of them, and queues what is missing.
    pub async fn tell_alerts(self: &Arc<Self>) -> Result<(), StoreError> {
        if self.rules.alerts_to.is_empty() {
            return Ok(());
        }
        let (alerts, told) = self
            .store
            .read(|tx| Box::pin(async move { Ok((tx.alerts().await?, tx.alert_bulletins().await?)) }))
            .await?;
        let stands = |row: &BulletinRow| alerts.iter().any(|alert| tells(row, alert));
        let over: Vec<BulletinRow> = told.iter().filter(|row| !stands(row)).cloned().collect();
        let mut spots: BTreeSet<Spot> = BTreeSet::new();
        if !alerts.is_empty() {
            for place in &self.rules.alerts_to {
                spots.extend(self.spots(place, None));
                if let Place::Group(name) = place {
                    spots.extend(self.usergroup_spots(name).await.unwrap_or_default());
                }
            }
        }
        let mut missing = vec![];
        for alert in &alerts {
            for spot in spots.iter().filter(|spot| may_tell(&alert.key, spot)) {
                let known = told.iter().any(|row| {
                    row.place == spot.to_string() && tells(row, alert) && row.state != BulletinState::Failed
                });
                if !known {
                    missing.push((alert.clone(), spot.clone()));
                }
            }
        }
        if over.is_empty() && missing.is_empty() {
            return Ok(());
        }
        let (bridge, now) = (Arc::clone(self), self.clock.now());
        self.store
            .write(move |tx| {
                Box::pin(async move {
                    for row in over {
                        bridge.end_alert_bulletin(tx, &row, now).await?;
                    }
                    for (alert, spot) in missing {
                        bridge.queue_alert(tx, &alert, &spot, now).await?;
                    }
                    Ok(())
                })
            })
            .await
    }

    async fn end_alert_bulletin(
        &self,
        tx: &mut Tx,
        row: &BulletinRow,
        now: Millis,
    ) -> Result<(), StoreError> {
        let Bulletin::Alert { key, text, since, .. } = row.says.clone() else { return Ok(()) };
        let says = Bulletin::Alert { key, text, since, over: Some(now) };
        tx.end_bulletin(row.id, &says).await?;
        tx.queue_edit(row.id, &group(row.id), 0, priority::NOTICE, now).await
    }

    async fn queue_alert(
        &self,
        tx: &mut Tx,
        alert: &Alert,
        spot: &Spot,
        now: Millis,
    ) -> Result<(), StoreError> {
        let place = spot.to_string();
        if tx.bad_place(&place).await?.is_some() {
            return Ok(());
        }
        let says = Bulletin::Alert {
            key: alert.key.clone(),
            text: alert.text.clone(),
            since: alert.since,
            over: None,
        };
        let topic = topic(&alert.key);
        tx.insert_bulletin(self.ids.uuid(), &topic, &place, &spot.install, None, &says).await?;
        let Some(row) = tx.bulletin_of(&topic, &place).await? else { return Ok(()) };
        tx.queue_edit(row.id, &group(row.id), 0, priority::NOTICE, now).await
    }

    /// Brings a bulletin's message up to date: posts it, edits it, takes it away.
    pub(super) async fn update_bulletin(self: &Arc<Self>, job: &Job) -> Result<JobEnd, StoreError> {
        let id = job.reference;
        let Some(row) = self.store.read(|tx| Box::pin(async move { tx.bulletin(id).await })).await? else {
            return Ok(JobEnd::Done);
        };
        let Some(platform) = self.platforms.get(&row.install).cloned() else { return self.forget(id).await };
        if let Some(until) = self.stopped(&row.install) {
            return Ok(JobEnd::paced(until));
        }
        let says = self.newest(&row).await?;
        let now = self.clock.now();
        match (row.state, row.posting) {
            (BulletinState::Posting, Some(sent)) => {
                self.find_bulletin(job, &platform, &row, says, sent).await
            }
            (BulletinState::Live, _) => self.edit_bulletin(job, &platform, &row, says, now).await,
            _ if says.is_over() => self.forget(id).await,
            _ => self.post_bulletin(job, &platform, &row, says).await,
        }
    }

    /// What it should say now.
    async fn newest(&self, row: &BulletinRow) -> Result<Bulletin, StoreError> {
        let (Bulletin::Waiting { .. }, Some(channel)) = (&row.says, row.channel.clone()) else {
            return Ok(row.says.clone());
        };
        let install = row.install.clone();
        let count = self.store.read(|tx| Box::pin(async move { tx.held(&install, &channel).await })).await?;
        Ok(Bulletin::Waiting { count })
    }

    async fn forget(&self, id: Uuid) -> Result<JobEnd, StoreError> {
        self.store.write(move |tx| Box::pin(async move { tx.delete_bulletin(id).await })).await?;
        Ok(JobEnd::Done)
    }

    async fn post_bulletin(
        self: &Arc<Self>,
        job: &Job,
        platform: &Arc<dyn ChatPlatform>,
        row: &BulletinRow,
        says: Bulletin,
    ) -> Result<JobEnd, StoreError> {
        let channel = match (&row.channel, Spot::parse(&row.place)) {
            (Some(channel), _) => channel.clone(),
            (None, Ok(spot)) => match self.channel_of_spot(platform, &spot).await? {
                Ok(channel) => channel,
                Err(error) => return self.bulletin_failed(job, row, error).await,
            },
            (None, Err(_)) => return self.forget(row.id).await,
        };
        if let Err(wait) = platform.reserve(&Call::Post { channel: &channel }) {
            return Ok(JobEnd::paced(self.clock.now().plus(wait)));
        }
        let drawn = platform.draw_bulletin(&says);
        let (id, now) = (row.id, self.clock.now());
        let (to, shown) = (Destination { channel: channel.clone(), thread: None }, says);
        let ours = self
            .store
            .write(move |tx| Box::pin(async move { tx.bulletin_sent(id, now, &channel, &shown).await }))
            .await?;
        if !ours {
            return Ok(JobEnd::Done);
        }
        match platform.post(&to, &drawn, CardId(id), 1).await {
            Ok(at) => self.bulletin_is_at(row, at).await,
            Err(error) => self.bulletin_failed(job, row, error).await,
        }
    }

    async fn bulletin_is_at(&self, row: &BulletinRow, at: MessageRef) -> Result<JobEnd, StoreError> {
        let (id, now, place) = (row.id, self.clock.now(), row.place.clone());
        self.store
            .write(move |tx| {
                Box::pin(async move {
                    tx.bulletin_posted(id, &at, now).await?;
                    if tx.place_works(&place).await? {
                        tx.clear(&place_alert(&place)).await?;
                    }
                    // What it should say may have changed meanwhile.
                    tx.queue_edit(id, &group(id), 0, priority::INTERIM, now).await
                })
            })
            .await?;
        self.works(&row.install).await;
        Ok(JobEnd::Done)
    }

    /// A post did not work, or nobody knows.
    async fn bulletin_failed(
        self: &Arc<Self>,
        job: &Job,
        row: &BulletinRow,
        error: ChatError,
    ) -> Result<JobEnd, StoreError> {
        let (id, now) = (row.id, self.clock.now());
        if let ChatError::Unknown { what } = error {
            return Ok(JobEnd::again(now.plus(LOOK_AFTER), what));
        }
        let state = match error {
            ChatError::Paced { .. }
            | ChatError::Auth { .. }
            | ChatError::Unavailable { .. }
            | ChatError::Unreadable { .. } => BulletinState::Queued,
            ChatError::Place { .. } | ChatError::NoSuchPerson { .. } => BulletinState::Failed,
            // Never again: as one that somebody deleted.
            _ => BulletinState::Live,
        };
        self.store.write(move |tx| Box::pin(async move { tx.bulletin_not_sent(id, state).await })).await?;
        match error {
            ChatError::Paced { after } => Ok(JobEnd::paced(now.plus(after))),
            ChatError::Auth { code, needed } => Ok(self.stop_install(&row.install, &code, &needed).await),
            ChatError::Unavailable { what } | ChatError::Unreadable { code: what } => {
                Ok(JobEnd::again(now.plus(backoff(job.attempts)), what))
            }
            error if row.topic == WAITING => {
                tracing::info!(install = row.install, %error, "a place takes no notice of how many wait");
                self.forget(id).await
            }
            ChatError::Place { code } | ChatError::NoSuchPerson { code } => {
                let bridge = Arc::clone(self);
                let (place, install) = (row.place.clone(), row.install.clone());
                let fresh = self
                    .store
                    .write(move |tx| {
                        Box::pin(async move { bridge.mark_bad(tx, &place, &install, None, &code, now).await })
                    })
                    .await?;
                if let Some(text) = fresh {
                    super::raised(&place_alert(&row.place), &text);
                }
                Ok(JobEnd::Done)
            }
            error => {
                tracing::error!(install = row.install, place = row.place, %error, "an alert could not be posted");
                Ok(JobEnd::Done)
            }
        }
    }

    /// A post of unknown outcome: look for it before it is made again.
    async fn find_bulletin(
        self: &Arc<Self>,
        job: &Job,
        platform: &Arc<dyn ChatPlatform>,
        row: &BulletinRow,
        says: Bulletin,
        sent: Millis,
    ) -> Result<JobEnd, StoreError> {
        let (id, now) = (row.id, self.clock.now());
        let begin = sent.max(self.started);
        if now < begin.plus(LOOK_AFTER) {
            return Ok(JobEnd::paced(begin.plus(LOOK_AFTER)));
        }
        let Some(channel) = row.channel.clone() else { return self.forget(id).await };
        if let Err(wait) = platform.reserve(&Call::Find { channel: &channel }) {
            return Ok(JobEnd::paced(now.plus(wait)));
        }
        let place = Destination { channel, thread: None };
        match platform.find(&place, CardId(id), sent).await {
            Ok(found) if !found.is_empty() => {
                let mut found = found.into_iter();
                if let Some(first) = found.next() {
                    self.bulletin_is_at(row, first).await?;
                }
                for copy in found {
                    if let Err(error) = platform.delete(&copy).await {
                        tracing::info!(install = row.install, %error, "a second notice could not be removed");
                    }
                }
                Ok(JobEnd::Done)
            }
            Ok(_) if row.looks >= 1 && row.look.is_some_and(|first| now.since(first) >= LOOK_APART) => {
                if says.is_over() {
                    self.forget(id).await
                } else {
                    self.post_bulletin(job, platform, row, says).await
                }
            }
            Ok(_) => {
                self.store
                    .write(move |tx| Box::pin(async move { tx.bulletin_not_found(id, now).await }))
                    .await?;
                Ok(JobEnd::paced(now.plus(LOOK_APART)))
            }
            Err(ChatError::Unreadable { .. } | ChatError::Place { .. }) if now < begin.plus(BLIND_WAIT) => {
                Ok(JobEnd::paced(begin.plus(BLIND_WAIT)))
            }
            Err(ChatError::Unreadable { .. } | ChatError::Place { .. }) => {
                if says.is_over() {
                    self.forget(id).await
                } else {
                    self.post_bulletin(job, platform, row, says).await
                }
            }
            Err(ChatError::Paced { after }) => Ok(JobEnd::paced(now.plus(after))),
            Err(error) => Ok(JobEnd::again(now.plus(backoff(job.attempts)), error.to_string())),
        }
    }

    async fn edit_bulletin(
        self: &Arc<Self>,
        job: &Job,
        platform: &Arc<dyn ChatPlatform>,
        row: &BulletinRow,
        says: Bulletin,
        now: Millis,
    ) -> Result<JobEnd, StoreError> {
        let id = row.id;
        let nothing_left = matches!(says, Bulletin::Waiting { count: ..=0 });
        let Some(at) = row.at() else {
            return if says.is_over() { self.forget(id).await } else { Ok(JobEnd::Done) };
        };
        if row.shown.as_ref() == Some(&says) {
            return if says.is_over() { self.forget(id).await } else { Ok(JobEnd::Done) };
        }
        let may = row.shown_at.map(|at| at.plus(NOTICE_EVERY));
        if let (Bulletin::Waiting { .. }, false, Some(may)) = (&says, nothing_left, may)
            && now < may
        {
            return Ok(JobEnd::paced(may));
        }
        if let Err(wait) = platform.reserve(&Call::Edit { channel: &at.channel, last: says.is_over() }) {
            return Ok(JobEnd::paced(now.plus(wait)));
        }
        let done = if nothing_left {
            platform.delete(&at).await
        } else {
            platform.edit(&at, &platform.draw_bulletin(&says)).await
        };
        if done.is_ok() {
            self.works(&row.install).await;
        }
        match done {
            Ok(()) if says.is_over() => self.forget(id).await,
            Ok(()) => {
                self.store
                    .write(move |tx| Box::pin(async move { tx.bulletin_shown(id, &says, now).await }))
                    .await?;
                Ok(JobEnd::Done)
            }
            Err(ChatError::Paced { after }) => Ok(JobEnd::paced(now.plus(after))),
            Err(ChatError::Auth { code, needed }) => {
                Ok(self.stop_install(&row.install, &code, &needed).await)
            }
            Err(ChatError::Gone { .. } | ChatError::NotEditable { .. }) => {
                if says.is_over() {
                    return self.forget(id).await;
                }
                self.store.write(move |tx| Box::pin(async move { tx.bulletin_gone(id).await })).await?;
                Ok(JobEnd::Done)
            }
            Err(error) if job.attempts >= ATTEMPTS => {
                tracing::warn!(install = row.install, %error, "a notice is left as it is");
                self.forget(id).await
            }
            Err(error) => Ok(JobEnd::again(now.plus(backoff(job.attempts)), error.to_string())),
        }
    }
}

/// Whether a message tells of this very alert, not of an earlier one of its name.
fn tells(row: &BulletinRow, alert: &Alert) -> bool {
    matches!(&row.says, Bulletin::Alert { key, since, .. } if *key == alert.key && *since == alert.since)
}

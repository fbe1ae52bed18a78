//! Places stay what they were, and whether they take cards is looked at.
//!
//! Invariant: a spot is resolved once and pinned by id. When a `#name` later means another channel, cards go
//! on to the pinned one and operators are told, because nobody can know which was meant. What a platform says
//! has happened to a channel is a hint: the channel is read, and what is read decides.
//!
//! Known races and the decisions taken:
//! - a hint comes twice, late, or before the one it followed: each only asks for a reading;
//! - a channel's id changes while a call with the old one is under way: the call's error is looked at again
//!   with the new id before anything is concluded from it (`edits`).

use super::click::JobEnd;
use super::ports::{ChatError, ChatPlatform, Look};
use super::refused::{LOOK_AGAIN, place_alert, place_group, stands_somewhere};
use super::seats::Seat;
use super::{Bridge, is_settled};
use crate::domain::place::{ChannelNews, Place, Spot, Target};
use crate::store::cards::{CardRow, CardState};
use crate::store::jobs::Job;
use crate::store::{StoreError, Tx};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Cards that a place refused and that are posted when it works again, at most so many at once.
const BACK_AT_ONCE: i64 = 200;

impl Bridge {
    /// The channel of a spot, as far as that is known without asking.
    pub(super) async fn known_channel(tx: &mut Tx, spot: &Spot) -> Result<Option<String>, StoreError> {
        let pinned = tx.pin(&spot.install, &spot.target.key()).await?;
        Ok(pinned.or_else(|| match &spot.target {
            Target::SlackChannel(id) | Target::DiscordChannel(id) => Some(id.clone()),
            Target::SlackName(_) | Target::SlackUser(_) | Target::DiscordUser(_) => None,
        }))
    }

    /// The channel of a spot: by id, or pinned at its first use.
    pub(super) async fn channel_of_spot(
        &self,
        platform: &Arc<dyn ChatPlatform>,
        spot: &Spot,
    ) -> Result<Result<String, ChatError>, StoreError> {
        let known = spot.clone();
        let known =
            self.store.read(|tx| Box::pin(async move { Self::known_channel(tx, &known).await })).await?;
        if let Some(channel) = known {
            return Ok(Ok(channel));
        }
        match platform.resolve(&spot.target).await {
            Ok(channel) => {
                let (now, pinned) = (self.clock.now(), channel.clone());
                let (install, key) = (spot.install.clone(), spot.target.key());
                self.store
                    .write(move |tx| Box::pin(async move { tx.set_pin(&install, &key, &pinned, now).await }))
                    .await?;
                Ok(Ok(channel))
            }
            Err(error) => Ok(Err(error)),
        }
    }

    pub(super) async fn channel_of(
        &self,
        platform: &Arc<dyn ChatPlatform>,
        card: &CardRow,
    ) -> Result<Result<String, ChatError>, StoreError> {
        if let Some(channel) = &card.channel {
            return Ok(Ok(channel.clone()));
        }
        let Ok(spot) = Spot::parse(&card.place) else {
            return Ok(Err(ChatError::Place { code: "unreadable_place".into() }));
        };
        self.channel_of_spot(platform, &spot).await
    }

    /// Looks whether the pinned names of an install still mean the same channels.
    pub async fn check_pins(&self, install: &str) -> Result<(), StoreError> {
        let Some(platform) = self.platforms.get(install).cloned() else { return Ok(()) };
        let wanted = install.to_owned();
        let pins = self.store.read(move |tx| Box::pin(async move { tx.pins(&wanted).await })).await?;
        let names: BTreeSet<String> = self
            .configured_spots()
            .into_iter()
            .filter(|spot| spot.install == install && matches!(spot.target, Target::SlackName(_)))
            .map(|spot| spot.target.key())
            .collect();
        for (name, pinned) in pins.into_iter().filter(|(name, _)| names.contains(name)) {
            let key = format!("pin:{install}:#{name}");
            match platform.resolve(&Target::SlackName(name.clone())).await {
                Ok(channel)
                    if channel == pinned || self.moved(install, &channel).await? == Some(pinned.clone()) =>
                {
                    self.all_clear(&key).await;
                }
                Ok(channel) => {
                    self.alert(
                        &key,
                        &format!(
                            "slack:{install}:#{name} now means {channel}; cards go on to {pinned}. \
                             Write the id of the one you mean"
                        ),
                    )
                    .await;
                }
                // Renamed, archived or not readable now: the pin is by id, so nothing changes.
                Err(error) => tracing::debug!(install, name, %error, "a pinned name could not be looked up"),
            }
        }
        Ok(())
    }

    /// The id that a channel has got instead, as the platform has told us. Its own listings may lag.
    async fn moved(&self, install: &str, channel: &str) -> Result<Option<String>, StoreError> {
        let (install, channel) = (install.to_owned(), channel.to_owned());
        self.store.read(|tx| Box::pin(async move { tx.pin(&install, &channel).await })).await
    }

    /// Every spot that the configuration names.
    pub(super) fn configured_spots(&self) -> BTreeSet<Spot> {
        let routes = self.rules.routes.iter().flat_map(|route| route.to.iter().chain(&route.fallback));
        routes
            .chain(&self.rules.alerts_to)
            .filter_map(|place| match place {
                Place::At(spot) => Some(spot.clone()),
                Place::Owner | Place::Group(_) => None,
            })
            .collect()
    }

    /// The platform says that something happened to a channel of a team; `verified_by` are the installs whose
    /// secret or socket verified it. Written before it is acknowledged.
    pub async fn channel_news_of(
        self: &Arc<Self>,
        team: Option<&str>,
        enterprise: Option<&str>,
        verified_by: &[String],
        news: &ChannelNews,
    ) -> Result<(), StoreError> {
        for install in verified_by {
            // Of an install that has not told us who it is, the channel's id says enough: it is only a hint.
            let other = self.directory.identity(install).is_some_and(|identity| match &identity.team {
                Some(own) => team.is_some() && Some(own.as_str()) != team,
                None => enterprise.is_some() && identity.enterprise.as_deref() != enterprise,
            });
            if !other {
                self.channel_news(install, news.clone()).await?;
            }
        }
        Ok(())
    }

    /// The platform says that something happened to a channel of an install. Written before it is acknowledged.
    pub async fn channel_news(self: &Arc<Self>, install: &str, news: ChannelNews) -> Result<(), StoreError> {
        let spots: Vec<Spot> =
            self.configured_spots().into_iter().filter(|spot| spot.install == install).collect();
        if let ChannelNews::Joined { user, .. } = &news
            && self.directory.identity(install).is_some_and(|identity| identity.bot_user != *user)
        {
            return Ok(());
        }
        let bridge = Arc::clone(self);
        let (install, now) = (install.to_owned(), self.clock.now());
        self.store
            .write(move |tx| {
                Box::pin(async move {
                    let channel = match news {
                        ChannelNews::Moved { from, to } => {
                            tracing::info!(install, from, to, "a channel has another id");
                            tx.move_channel(&install, &from, &to, now).await?;
                            tx.hurry_edits(&install, &to, now).await?;
                            to
                        }
                        ChannelNews::Changed { channel } | ChannelNews::Joined { channel, .. } => channel,
                    };
                    for spot in spots {
                        if Self::known_channel(tx, &spot).await?.as_deref() != Some(&channel) {
                            continue;
                        }
                        let place = spot.to_string();
                        if !tx.hurry_group(&place_group(&place), now).await? {
                            bridge.queue_look(tx, &place, now).await?;
                        }
                    }
                    Ok(())
                })
            })
            .await
    }

    /// Looks whether a place takes cards: it is marked, or well again.
    pub(super) async fn look_at_place(self: &Arc<Self>, job: &Job) -> Result<JobEnd, StoreError> {
        let place =
            job.payload.get("place").and_then(serde_json::Value::as_str).unwrap_or_default().to_owned();
        let Ok(spot) = Spot::parse(&place) else { return Ok(JobEnd::Done) };
        let Some(platform) = self.platforms.get(&spot.install).cloned() else { return Ok(JobEnd::Done) };
        let marked = {
            let place = place.clone();
            self.store.read(|tx| Box::pin(async move { tx.bad_place(&place).await })).await?
        };
        if marked.is_some() && !spot.target.is_direct() && !self.configured_spots().contains(&spot) {
            // Nobody wants it any more.
            self.store
                .write(move |tx| {
                    Box::pin(async move {
                        tx.place_works(&place).await?;
                        tx.clear(&place_alert(&place)).await
                    })
                })
                .await?;
            return Ok(JobEnd::Done);
        }
        let now = self.clock.now();
        let mut channel = None;
        let seen = match self.resolve_again(&platform, &spot).await? {
            Ok(found) => {
                channel = Some(found.clone());
                platform.look(&found, marked.as_deref().unwrap_or_default()).await
            }
            Err(error) => Err(error),
        };
        match seen {
            Ok(look) => {
                if marked.is_some() {
                    self.place_well(&spot, channel, look).await?;
                }
                Ok(JobEnd::Done)
            }
            Err(ChatError::Place { code } | ChatError::NoSuchPerson { code }) => {
                let bridge = Arc::clone(self);
                let install = spot.install.clone();
                let fresh = self
                    .store
                    .write(move |tx| {
                        Box::pin(async move {
                            // This job goes on looking: none is queued beside it.
                            if tx.mark_place(&place, &code, now).await?
                                && let Some(channel) = &channel
                            {
                                bridge.nobody_waits(tx, &install, channel, now).await?;
                            }
                            bridge.mark_bad(tx, &place, &install, channel.as_deref(), &code, now).await
                        })
                    })
                    .await?;
                if let Some(text) = fresh {
                    super::raised(&place_alert(&spot.to_string()), &text);
                }
                Ok(JobEnd::paced(now.plus(LOOK_AGAIN)))
            }
            Err(ChatError::Paced { after }) => Ok(JobEnd::paced(now.plus(after))),
            Err(ChatError::Unavailable { what } | ChatError::Unknown { what }) => {
                Ok(JobEnd::again(now.plus(super::cards::backoff(job.attempts)), what))
            }
            // We may not look: the next card is the look.
            Err(error) => {
                tracing::info!(place, %error, "a place could not be looked at");
                if marked.is_some() {
                    self.place_well(&spot, channel, Look::Unsure).await?;
                }
                Ok(JobEnd::Done)
            }
        }
    }

    /// A person is asked for again: whether they can be written to shows only then.
    async fn resolve_again(
        &self,
        platform: &Arc<dyn ChatPlatform>,
        spot: &Spot,
    ) -> Result<Result<String, ChatError>, StoreError> {
        if spot.target.is_direct() {
            return Ok(platform.resolve(&spot.target).await);
        }
        self.channel_of_spot(platform, spot).await
    }

    /// A place takes cards again, or may: what it refused is posted there, unless it stands somewhere else.
    async fn place_well(
        self: &Arc<Self>,
        spot: &Spot,
        channel: Option<String>,
        look: Look,
    ) -> Result<(), StoreError> {
        let bridge = Arc::clone(self);
        let (place, install, now) = (spot.to_string(), spot.install.clone(), self.clock.now());
        self.store
            .write(move |tx| {
                Box::pin(async move {
                    match look {
                        Look::Well => {
                            tx.place_works(&place).await?;
                            tx.clear(&place_alert(&place)).await?;
                        }
                        // The alert stands until a card is taken there.
                        Look::Unsure => tx.doubt_place(&place).await?,
                    }
                    for id in tx.lost_at(&place, BACK_AT_ONCE).await? {
                        tx.set_slot(id, None).await?;
                        let Some(card) = tx.card(id).await? else { continue };
                        let Some(interaction) = tx.interaction(card.interaction, true).await? else {
                            continue;
                        };
                        if is_settled(&interaction.machine)
                            || card.state != CardState::Failed
                            || stands_somewhere(&tx.cards_of(card.interaction).await?, id)
                        {
                            continue;
                        }
                        tx.set_card_state(id, CardState::Queued).await?;
                        let seat = match &channel {
                            Some(channel) => {
                                bridge.take_seat(tx, (id, card.interaction), &install, channel, now).await?
                            }
                            None => Seat::Taken,
                        };
                        if seat == Seat::Taken {
                            bridge.queue_post(tx, id, now).await?;
                        }
                    }
                    if let Some(channel) = &channel {
                        tx.hurry_edits(&install, channel, now).await?;
                    }
                    Ok(())
                })
            })
            .await
    }

    /// A card's channel is closed: its edits wait, and the place is looked at.
    pub(super) async fn edit_waits(
        self: &Arc<Self>,
        card: &CardRow,
        code: &str,
    ) -> Result<JobEnd, StoreError> {
        let bridge = Arc::clone(self);
        let (place, install, channel) = (card.place.clone(), card.install.clone(), card.channel.clone());
        let (why, now) = (code.to_owned(), self.clock.now());
        let fresh = self
            .store
            .write(move |tx| {
                Box::pin(
                    async move { bridge.mark_bad(tx, &place, &install, channel.as_deref(), &why, now).await },
                )
            })
            .await?;
        if let Some(text) = fresh {
            super::raised(&place_alert(&card.place), &text);
        }
        Ok(JobEnd::Retry { at: now.plus(LOOK_AGAIN), error: code.to_owned(), counted: false })
    }
}

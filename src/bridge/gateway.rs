//! What a gateway needs of us: its session kept, the lease under which it runs, and what it tells taken.
//!
//! Invariant: what it tells is a hint. A message that is said to be deleted is edited, a channel or a server of
//! which something is said is read, and only what that shows has an effect. So an event that comes twice, late
//! or out of order does no harm.

pub use crate::store::leases::Lease;

use super::effects::priority;
use super::refused::place_group;
use super::{Bridge, card_group};
use crate::domain::place::{ChannelNews, MessageRef, Spot};
use crate::domain::session::Session;
use crate::store::StoreError;
use crate::store::leases::{LIFE, RENEW};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// So many cards of a channel that is gone are looked at at once.
const CARDS_OF_A_CHANNEL: i64 = 500;
/// While a server is away nothing is sent there for so long; then it is tried again.
const AWAY: Duration = Duration::from_mins(1);

impl Bridge {
    /// Works while this process holds the lease of that name, again and again, until told to stop. `work` gets
    /// the lease and a token that fires when it is lost; it ends then by itself.
    pub async fn while_leased<F, W>(&self, name: &str, stop: &CancellationToken, work: F)
    where
        F: Fn(Lease, CancellationToken) -> W,
        W: Future<Output = ()>,
    {
        while !stop.is_cancelled() {
            if let Some(lease) = self.take_lease(name).await {
                let held = stop.child_token();
                let renewals = async {
                    loop {
                        tokio::time::sleep(RENEW).await;
                        let lease = lease.clone();
                        let renewed = self
                            .store
                            .write(move |tx| Box::pin(async move { tx.renew_lease(&lease, LIFE).await }))
                            .await;
                        if !matches!(renewed, Ok(true)) {
                            tracing::warn!(name, "a lease moved to another replica");
                            held.cancel();
                            std::future::pending::<()>().await;
                        }
                    }
                };
                tokio::select! {
                    () = work(lease.clone(), held.clone()) => {}
                    () = renewals => {}
                }
                let ended = lease.clone();
                let _ =
                    self.store.write(move |tx| Box::pin(async move { tx.release_lease(&ended).await })).await;
            }
            tokio::select! {
                () = stop.cancelled() => {}
                () = tokio::time::sleep(RENEW) => {}
            }
        }
    }

    /// The session that may be taken up again.
    pub async fn gateway_session(&self, install: &str) -> Result<Option<Session>, StoreError> {
        let install = install.to_owned();
        self.store.read(|tx| Box::pin(async move { tx.gateway_session(&install).await })).await
    }

    /// Keeps a session; `false` when a newer lease has written.
    pub async fn save_gateway_session(
        &self,
        install: &str,
        lease: &Lease,
        session: Option<Session>,
    ) -> Result<bool, StoreError> {
        let (install, lease, now) = (install.to_owned(), lease.clone(), self.clock.now());
        self.store
            .write(move |tx| {
                Box::pin(
                    async move { tx.save_gateway_session(&install, &lease, session.as_ref(), now).await },
                )
            })
            .await
    }

    /// Messages of a channel are said to be deleted: those that are cards are edited, which shows it.
    pub async fn messages_deleted(
        &self,
        install: &str,
        channel: &str,
        messages: Vec<String>,
    ) -> Result<(), StoreError> {
        let (install, channel, now) = (install.to_owned(), channel.to_owned(), self.clock.now());
        let known = {
            let (install, channel) = (install.clone(), channel.clone());
            self.store
                .read(|tx| {
                    Box::pin(async move {
                        let mut known = vec![];
                        for message in messages {
                            let at = MessageRef { channel: channel.clone(), message };
                            known.extend(tx.card_at(&install, &at).await?);
                        }
                        Ok(known)
                    })
                })
                .await?
        };
        if known.is_empty() {
            return Ok(());
        }
        self.store
            .write(move |tx| {
                Box::pin(async move {
                    for card in known {
                        tx.doubt_card(card, now).await?;
                        tx.queue_edit(card.0, &card_group(card), 1, priority::INTERIM, now).await?;
                    }
                    Ok(())
                })
            })
            .await
    }

    /// Something is said of a channel or thread: the places there are looked at, and the open cards too.
    pub async fn channel_changed(self: &Arc<Self>, install: &str, channel: &str) -> Result<(), StoreError> {
        self.channel_news(install, ChannelNews::Changed { channel: channel.to_owned() }).await?;
        let (install, channel, now) = (install.to_owned(), channel.to_owned(), self.clock.now());
        self.store
            .write(move |tx| {
                Box::pin(async move {
                    tx.hurry_edits(&install, &channel, now).await?;
                    for card in tx.open_cards_in(&install, &channel, CARDS_OF_A_CHANNEL).await? {
                        tx.doubt_card(card, now).await?;
                        tx.queue_edit(card.0, &card_group(card), 1, priority::INTERIM, now).await?;
                    }
                    Ok(())
                })
            })
            .await
    }

    /// Something is said of a whole server: the places of the install are looked at again, `all` of them or
    /// only those that take no cards.
    pub async fn server_changed(self: &Arc<Self>, install: &str, all: bool) -> Result<(), StoreError> {
        let spots: Vec<Spot> =
            self.configured_spots().into_iter().filter(|spot| spot.install == install).collect();
        let (bridge, now) = (Arc::clone(self), self.clock.now());
        self.store
            .write(move |tx| {
                Box::pin(async move {
                    for spot in spots {
                        let place = spot.to_string();
                        if (all || tx.bad_place(&place).await?.is_some())
                            && !tx.hurry_group(&place_group(&place), now).await?
                        {
                            bridge.queue_look(tx, &place, now).await?;
                        }
                    }
                    Ok(())
                })
            })
            .await
    }

    /// A server of the install has an outage: nothing is sent for a while, so that nothing is concluded from
    /// what would fail.
    pub fn server_away(&self, install: &str) {
        tracing::info!(install, "a server has an outage; nothing is sent there for a while");
        self.directory.rest_until(install, self.clock.now().plus(AWAY));
    }

    /// It is back.
    pub fn server_back(&self, install: &str) {
        self.directory.rest_until(install, crate::domain::clock::Millis(0));
    }
}

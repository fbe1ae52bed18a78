//! Posting cards, and finding posts of unknown outcome.
//!
//! Invariant: a row says "sent" before the call is made; a post of unknown outcome is looked for
//! before it is made again.
//!
//! Known races and the decisions taken:
//! - our post returns after a press has told us the message: the same message is the same card, another
//!   one is a copy and is removed;
//! - the lease was lost while posting: the completion finds the card live elsewhere and removes its own;
//! - two cards of one context at once: who stores its post first begins the thread, the other waits for it;
//! - the interaction reopens while its card is found to be no longer wanted: that is written under the
//!   interaction's lock, so that either the reopening finds the card unposted or the card stays queued.

use super::click::JobEnd;
use super::effects::priority;
use super::ports::{Call, ChatError, ChatPlatform, Destination, Drawn, Marks, MessageRef};
use super::refused::place_alert;
use super::{Bridge, card_group, is_settled};
use crate::domain::card::{Card, Control};
use crate::domain::clock::Millis;
use crate::domain::form::Decision;
use crate::domain::ids::CardId;
use crate::domain::interaction::{How, State};
use crate::domain::routing::{ThreadBy, route};
use crate::store::StoreError;
use crate::store::cards::{CardRow, CardState, Slot};
use crate::store::interactions::Interaction;
use crate::store::jobs::Job;
use crate::store::threads::{Root, ThreadKey};
use std::sync::Arc;
use std::time::Duration;

/// A post of unknown outcome is looked for this long after it was sent (or after our start).
pub(super) const LOOK_AFTER: Duration = Duration::from_secs(5);
/// Two looks that find nothing, this far apart, and it is posted again.
pub(super) const LOOK_APART: Duration = Duration::from_secs(30);
/// Where nothing can be looked for, this long, and it is posted again.
pub(super) const BLIND_WAIT: Duration = Duration::from_mins(1);
/// So often a post of unknown outcome is simply made again where the platform knows it; then it is looked for.
const REPEATS: i64 = 6;
/// A card waits this long for the post that begins its thread, and after a refused one past the channel's governor.
const ROOT_WAIT: Duration = Duration::from_millis(1100);

pub(super) fn backoff(attempts: i64) -> Duration {
    let power = u32::try_from(attempts.clamp(1, 7) - 1).unwrap_or(6);
    Duration::from_secs(2u64.pow(power).min(60))
}

impl Bridge {
    pub(super) async fn load_card(&self, id: CardId) -> Result<Option<(CardRow, Interaction)>, StoreError> {
        let loaded = self
            .store
            .read(|tx| {
                Box::pin(async move {
                    let Some(card) = tx.card(id).await? else { return Ok(None) };
                    let Some(interaction) = tx.interaction(card.interaction, false).await? else {
                        return Ok(None);
                    };
                    Ok(Some((card, interaction)))
                })
            })
            .await?;
        let Some((card, mut interaction)) = loaded else { return Ok(None) };
        // An approval of several names them all.
        let several = route(&self.rules.routes, &interaction.key, &interaction.form)
            .is_some_and(|route| route.approvals > 1);
        let approved = matches!(
            &interaction.machine.state,
            State::Settled { how: How::Ours { decision: Decision::Approve, .. }, .. }
        );
        if several && approved {
            let id = interaction.id;
            interaction.voters = self.store.read(|tx| Box::pin(async move { tx.voters(id).await })).await?;
        }
        Ok(Some((card, interaction)))
    }

    /// A wait that is up to half as long again, so that many do not come back at once.
    fn jittered(&self, wait: Duration) -> Duration {
        let [byte, ..] = self.ids.random();
        wait.mul_f64(1.0 + f64::from(byte) / 510.0)
    }

    /// Posts a card, or finds out what became of its post.
    pub(super) async fn post(self: &Arc<Self>, job: &Job) -> Result<JobEnd, StoreError> {
        let Some((card, interaction)) = self.load_card(CardId(job.reference)).await? else {
            return Ok(JobEnd::Done);
        };
        let Some(platform) = self.platforms.get(&card.install).cloned() else {
            return self.place_refused(&card, &interaction, "install not configured", false).await;
        };
        if let Some(until) = self.stopped(&card.install) {
            return Ok(JobEnd::paced(until));
        }
        match (card.state, card.posting) {
            (CardState::Queued, _) if is_settled(&interaction.machine) => self.not_wanted(&card).await,
            (CardState::Posting, Some(sent)) => {
                self.find_post(job, &platform, &card, &interaction, sent).await
            }
            (CardState::Queued, _) | (CardState::Posting, None) => {
                self.post_now(job, &platform, &card, &interaction).await
            }
            _ => Ok(JobEnd::Done),
        }
    }

    pub(super) async fn set_state(&self, card: CardId, state: CardState) -> Result<(), StoreError> {
        self.store.write(move |tx| Box::pin(async move { tx.set_card_state(card, state).await })).await
    }

    async fn post_now(
        self: &Arc<Self>,
        job: &Job,
        platform: &Arc<dyn ChatPlatform>,
        card: &CardRow,
        interaction: &Interaction,
    ) -> Result<JobEnd, StoreError> {
        let place = card.place.clone();
        if let Some(code) = self.store.read(|tx| Box::pin(async move { tx.bad_place(&place).await })).await? {
            return self.place_refused(card, interaction, &code, true).await;
        }
        let channel = match self.channel_of(platform, card).await? {
            Ok(channel) => channel,
            Err(error) => return self.post_failed(job, card, interaction, error, false).await,
        };
        if card.slot != Some(Slot::Taken) && !self.seated(card, &channel).await? {
            return Ok(JobEnd::Done);
        }
        let thread = self.thread_of(card, interaction, &channel);
        if let Some(key) = thread.clone() {
            let id = card.id;
            let root = self.store.read(|tx| Box::pin(async move { tx.peek_root(&key, id).await })).await?;
            if root == Root::Pending {
                return Ok(JobEnd::paced(self.clock.now().plus(ROOT_WAIT)));
            }
        }
        if let Err(wait) = platform.reserve(&Call::Post { channel: &channel }) {
            return Ok(JobEnd::paced(self.clock.now().plus(wait)));
        }
        let (rev, view) = (interaction.rev, self.view_of(interaction, card).await?);
        let sending = Sending::Post { channel, thread };
        let (drawn, to) = match self.draw_and_store(platform, card, interaction, &view, rev, sending).await? {
            Stored::Past | Stored::Edit(_) => return Ok(JobEnd::Done),
            Stored::RootPending => return Ok(JobEnd::paced(self.clock.now().plus(ROOT_WAIT))),
            Stored::Post(drawn, to) => (drawn, to),
        };
        match platform.post(&to, &drawn, card.id, rev).await {
            Ok(at) => {
                self.post_done(platform, card, &at, rev).await?;
                self.works(&card.install).await;
                Ok(JobEnd::Done)
            }
            Err(error) => self.post_failed(job, card, interaction, error, true).await,
        }
    }

    /// A card's place has just become a channel, or its card has none yet: whether it may be posted now.
    async fn seated(self: &Arc<Self>, card: &CardRow, channel: &str) -> Result<bool, StoreError> {
        let bridge = Arc::clone(self);
        let (id, place, install) = (card.id, card.place.clone(), card.install.clone());
        let (channel, now) = (channel.to_owned(), self.clock.now());
        self.store
            .write(move |tx| {
                Box::pin(async move {
                    bridge.seat_all(tx, &place, &install, &channel, now).await?;
                    let card = tx.card(id).await?;
                    Ok(card.is_some_and(|card| card.slot == Some(Slot::Taken)))
                })
            })
            .await
    }

    /// The thread that a card belongs to, if its route gathers cards.
    fn thread_of(&self, card: &CardRow, interaction: &Interaction, channel: &str) -> Option<ThreadKey> {
        let found = route(&self.rules.routes, &interaction.key, &interaction.form)?;
        let context = interaction.context.clone()?;
        found.thread_by.map(|ThreadBy::Context| ThreadKey {
            install: card.install.clone(),
            channel: channel.to_owned(),
            runtime: interaction.key.runtime.as_str().to_owned(),
            agent: interaction.key.agent.clone(),
            context,
        })
    }

    /// Draws a card at a revision with durable tokens, and stores that a send is under way. In the same
    /// transaction a new card finds its thread, so that of two at once only one begins it.
    pub(super) async fn draw_and_store(
        self: &Arc<Self>,
        platform: &Arc<dyn ChatPlatform>,
        card: &CardRow,
        interaction: &Interaction,
        view: &Card,
        rev: i64,
        sending: Sending,
    ) -> Result<Stored, StoreError> {
        let id = card.id;
        let known = if card.post_rev.is_some() && !view.controls.is_empty() {
            self.store.read(|tx| Box::pin(async move { tx.tokens_of(id, rev).await })).await?
        } else {
            vec![]
        };
        let tokens: Vec<(Control, String)> = view
            .controls
            .iter()
            .map(|control| {
                known
                    .iter()
                    .find(|(c, _)| c == control)
                    .cloned()
                    .unwrap_or_else(|| (*control, self.new_token("k_")))
            })
            .collect();
        let marks = Marks { card: id, rev, tokens: tokens.clone() };
        let drawn = platform.draw(view, &marks);
        let mut tokens = tokens;
        // Drawn only while something is cut; else its token is no control.
        tokens.retain(|(control, _)| drawn.cut || *control != Control::ShowAll);
        let (cut, now) = (drawn.cut, self.clock.now());
        let digest = interaction.machine.digest.clone();
        self.store
            .write(move |tx| {
                Box::pin(async move {
                    let stored = match sending {
                        Sending::Post { channel, thread } => {
                            let thread = match thread {
                                None => None,
                                Some(key) => match tx.thread_root(&key, id).await? {
                                    Root::Here => None,
                                    Root::At(root) => Some(root),
                                    Root::Pending => return Ok(Stored::RootPending),
                                },
                            };
                            let to = Destination { channel, thread };
                            if !tx.post_sent(id, now, rev, &to, cut).await? {
                                return Ok(Stored::Past);
                            }
                            Stored::Post(drawn, to)
                        }
                        Sending::Edit if tx.edit_sent(id, now, cut).await? => Stored::Edit(drawn),
                        Sending::Edit => return Ok(Stored::Past),
                    };
                    tx.insert_tokens(id, rev, &digest, &tokens).await?;
                    Ok(stored)
                })
            })
            .await
    }

    pub(super) fn new_token(&self, kind: &str) -> String {
        format!("{kind}{}", data_encoding::BASE64URL_NOPAD.encode(&self.ids.random()))
    }

    /// A post came back with its message: the card is live, or this message is a second copy.
    async fn post_done(
        self: &Arc<Self>,
        platform: &Arc<dyn ChatPlatform>,
        card: &CardRow,
        at: &MessageRef,
        rev: i64,
    ) -> Result<(), StoreError> {
        let (id, message, now) = (card.id, at.clone(), self.clock.now());
        let (place, interaction) = (card.place.clone(), card.interaction);
        let stray = self
            .store
            .write(move |tx| {
                Box::pin(async move {
                    if tx.place_works(&place).await? {
                        tx.clear(&place_alert(&place)).await?;
                    }
                    if tx.posted(id, &message, rev).await? {
                        let newer = tx.rev_of(interaction).await?.filter(|(newest, _)| *newest != rev);
                        if let Some((_, settled)) = newer {
                            let urgency = if settled { priority::FINAL } else { priority::INTERIM };
                            tx.queue_edit(id.0, &card_group(id), 1, urgency, now).await?;
                        }
                        return Ok(false);
                    }
                    let known = tx.card(id).await?.and_then(|card| card.at());
                    Ok(known.is_some_and(|known| known != message))
                })
            })
            .await?;
        if stray {
            self.remove_stray(platform, card.id, at).await?;
        }
        Ok(())
    }

    /// Deletes a second copy; one that cannot be deleted is edited like the card.
    async fn remove_stray(
        &self,
        platform: &Arc<dyn ChatPlatform>,
        card: CardId,
        at: &MessageRef,
    ) -> Result<(), StoreError> {
        match platform.delete(at).await {
            Ok(()) | Err(ChatError::Gone { .. }) => {
                let at = at.clone();
                self.store.write(move |tx| Box::pin(async move { tx.delete_copy(&at).await })).await
            }
            Err(error) => {
                tracing::warn!(%card, %error, "a second copy could not be removed; it is edited like the card");
                let (at, now) = (at.clone(), self.clock.now());
                self.store
                    .write(move |tx| {
                        Box::pin(async move {
                            if tx.insert_copy(card, &at).await? {
                                tx.queue_edit(card.0, &card_group(card), 1, priority::INTERIM, now).await?;
                            }
                            Ok(())
                        })
                    })
                    .await
            }
        }
    }

    /// A post's outcome is unknown: look for it before posting again.
    async fn find_post(
        self: &Arc<Self>,
        job: &Job,
        platform: &Arc<dyn ChatPlatform>,
        card: &CardRow,
        interaction: &Interaction,
        sent: Millis,
    ) -> Result<JobEnd, StoreError> {
        let now = self.clock.now();
        // One that has ended is not posted anew, but looked for.
        let wanted = !is_settled(&interaction.machine);
        if wanted && job.attempts <= REPEATS && now.since(sent) < platform.repeats_posts() {
            return self.post_again(job, platform, card, interaction).await;
        }
        let look_at = sent.max(self.started).plus(LOOK_AFTER);
        if now < look_at {
            return Ok(JobEnd::paced(look_at));
        }
        let Some(channel) = card.channel.clone() else {
            let id = card.id;
            self.store.write(move |tx| Box::pin(async move { tx.post_not_sent(id).await })).await?;
            return Ok(JobEnd::paced(now));
        };
        if let Err(wait) = platform.reserve(&Call::Find { channel: &channel }) {
            return Ok(JobEnd::paced(now.plus(wait)));
        }
        let place = Destination { channel, thread: card.thread.clone() };
        match platform.find(&place, card.id, sent).await {
            Ok(mut found) if !found.is_empty() => {
                // The oldest stays; a timestamp of the platform sorts as text of equal length does.
                found.sort_by(|a, b| (a.message.len(), &a.message).cmp(&(b.message.len(), &b.message)));
                let mut found = found.into_iter();
                if let Some(first) = found.next() {
                    self.post_done(platform, card, &first, card.post_rev.unwrap_or_default()).await?;
                }
                for copy in found {
                    self.remove_stray(platform, card.id, &copy).await?;
                }
                Ok(JobEnd::Done)
            }
            Ok(_)
                if card.empty_reads >= 1
                    && card.empty_read.is_some_and(|first| now.since(first) >= LOOK_APART) =>
            {
                self.post_again(job, platform, card, interaction).await
            }
            Ok(_) => {
                let id = card.id;
                self.store.write(move |tx| Box::pin(async move { tx.post_not_found(id, now).await })).await?;
                Ok(JobEnd::paced(now.plus(LOOK_APART)))
            }
            Err(ChatError::Unreadable { .. } | ChatError::Place { .. }) => {
                let again = sent.max(self.started).plus(BLIND_WAIT);
                if now < again {
                    return Ok(JobEnd::paced(again));
                }
                self.post_again(job, platform, card, interaction).await
            }
            Err(ChatError::Paced { after }) => Ok(JobEnd::paced(now.plus(after))),
            Err(ChatError::Auth { code, needed }) => {
                Ok(self.stop_install(&card.install, &code, &needed).await)
            }
            Err(error) => Ok(JobEnd::again(now.plus(backoff(job.attempts)), error.to_string())),
        }
    }

    async fn post_again(
        self: &Arc<Self>,
        job: &Job,
        platform: &Arc<dyn ChatPlatform>,
        card: &CardRow,
        interaction: &Interaction,
    ) -> Result<JobEnd, StoreError> {
        if is_settled(&interaction.machine) {
            return self.not_wanted(card).await;
        }
        self.post_now(job, platform, card, interaction).await
    }

    /// A card that was never posted is not wanted any more, unless the interaction is open again.
    async fn not_wanted(self: &Arc<Self>, card: &CardRow) -> Result<JobEnd, StoreError> {
        let bridge = Arc::clone(self);
        let (id, interaction, now) = (card.id, card.interaction, self.clock.now());
        self.store
            .write(move |tx| {
                Box::pin(async move {
                    let current = tx.interaction(interaction, true).await?;
                    if current.is_some_and(|current| !is_settled(&current.machine)) {
                        return Ok(JobEnd::paced(now));
                    }
                    bridge.free_seat(tx, id, now).await?;
                    tx.set_card_state(id, CardState::Unposted).await?;
                    Ok(JobEnd::Done)
                })
            })
            .await
    }

    /// A post did not work. `sent` when the row says that a send was under way.
    async fn post_failed(
        self: &Arc<Self>,
        job: &Job,
        card: &CardRow,
        interaction: &Interaction,
        error: ChatError,
        sent: bool,
    ) -> Result<JobEnd, StoreError> {
        let now = self.clock.now();
        if let ChatError::Unknown { what } = error {
            let repeats = self.platforms.get(&card.install).is_some_and(|p| !p.repeats_posts().is_zero());
            let wait = if repeats { self.jittered(backoff(job.attempts)) } else { LOOK_AFTER };
            return Ok(JobEnd::again(now.plus(wait), what));
        }
        // Everything else says that nothing was posted.
        if sent {
            let id = card.id;
            self.store.write(move |tx| Box::pin(async move { tx.post_not_sent(id).await })).await?;
        }
        match error {
            ChatError::Paced { after } => Ok(JobEnd::paced(now.plus(after))),
            ChatError::Auth { code, needed } => Ok(self.stop_install(&card.install, &code, &needed).await),
            ChatError::Unavailable { what } => Ok(JobEnd::again(now.plus(backoff(job.attempts)), what)),
            ChatError::Unreadable { code } => Ok(JobEnd::again(now.plus(backoff(job.attempts)), code)),
            ChatError::Thread { code } => self.begin_thread_anew(card, interaction, &code).await,
            // It had been posted, and was deleted meanwhile.
            ChatError::Gone { .. } => {
                self.card_gone(card, interaction).await?;
                Ok(JobEnd::Done)
            }
            ChatError::Place { code } | ChatError::NoSuchPerson { code } => {
                self.place_refused(card, interaction, &code, true).await
            }
            other => self.place_refused(card, interaction, &other.to_string(), false).await,
        }
    }

    /// The root of the thread takes no replies (deleted, or locked): this card begins the thread anew.
    async fn begin_thread_anew(
        self: &Arc<Self>,
        card: &CardRow,
        interaction: &Interaction,
        code: &str,
    ) -> Result<JobEnd, StoreError> {
        tracing::info!(install = card.install, card = %card.id, code, "a thread takes no replies; a new one begins");
        let key = match self.load_card(card.id).await? {
            Some((CardRow { channel: Some(channel), .. }, _)) => self.thread_of(card, interaction, &channel),
            _ => None,
        };
        if let Some(key) = key {
            let id = card.id;
            self.store.write(move |tx| Box::pin(async move { tx.begin_thread(&key, id).await })).await?;
        }
        Ok(JobEnd::paced(self.clock.now().plus(ROOT_WAIT)))
    }
}

/// What is about to be sent of a card.
pub(super) enum Sending {
    Post { channel: String, thread: Option<ThreadKey> },
    Edit,
}

/// What was stored of it.
pub(super) enum Stored {
    Post(Drawn, Destination),
    Edit(Drawn),
    /// The card is past it.
    Past,
    /// The card that begins the thread is on its way.
    RootPending,
}

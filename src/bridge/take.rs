//! A press as it arrives: a decision is stored, a control that opens something is looked up.
//!
//! Invariant: [`Bridge::take_press`] has committed before anything is acknowledged, and does no more than
//! that. What a press means is read from its token alone; a token that nobody knows is stored as a click,
//! so that the person is told. What was opened for one person answers to nobody else.
//!
//! Known races and the decisions taken:
//! - the press comes before our post returned: the row and its tokens exist already, and the press
//!   tells us the message's id;
//! - the press is on a stray second copy: the copy is remembered and edited with the rest;
//! - the same press is delivered twice: its key is known, so a second click is not stored and a second
//!   thing is not opened.

use super::directory::Directory;
use super::effects::priority;
use super::ports::{MessageRef, Pressed};
use super::views::{Opens, by_of};
use super::{Bridge, card_group, said};
use crate::domain::card::Control;
use crate::domain::clock::Millis;
use crate::domain::ids::{CardId, ClickId, Platform};
use crate::domain::policy::Standing;
use crate::store::cards::{CardState, Token};
use crate::store::clicks::{ClickedControl, NewClick};
use crate::store::jobs::{JobKind, NewJob};
use crate::store::openings::Opening;
use crate::store::{StoreError, Tx};
use serde_json::json;
use std::sync::Arc;

/// What became of a press. Either way it may be acknowledged.
#[derive(Debug)]
pub enum Taken {
    /// It is stored as a click; `new` unless it was delivered before.
    Stored { new: bool },
    /// It opens something, which [`Bridge::show`] does after the acknowledgement.
    Opens(Box<Opens>),
    /// The repeated delivery of a press that opened something.
    OpenedBefore,
}

/// What a token of ours stands for.
#[derive(Debug)]
enum Meaning {
    /// A control of a card.
    Control(Token),
    /// Something that was opened for the person who pressed.
    Opened(Opening),
    Unknown,
}

impl Meaning {
    fn install(&self) -> Option<&str> {
        match self {
            Self::Control(token) => Some(&token.install),
            Self::Opened(opening) => Some(&opening.install),
            Self::Unknown => None,
        }
    }

    /// What is stored with the click; `None` where there is nothing that could be decided by it.
    fn clicked(&self, pressed: &Pressed) -> Option<ClickedControl> {
        match self {
            Self::Control(token) => Some(ClickedControl {
                interaction: token.interaction,
                card: token.card,
                control: token.control.clone(),
                shown: token.digest.clone(),
                cut: token.cut,
            }),
            // A form that was submitted, or a second question answered.
            Self::Opened(opening) if decides(opening, pressed) => Some(ClickedControl {
                interaction: opening.interaction,
                card: opening.card,
                control: opening.control.clone(),
                shown: opening.digest.clone(),
                cut: opening.cut,
            }),
            Self::Opened(_) | Self::Unknown => None,
        }
    }
}

impl Bridge {
    /// Takes a press. `verified_by` are the installs whose secret verified the delivery.
    ///
    /// # Errors
    /// When nothing could be committed: it may not be acknowledged.
    pub async fn take_press(
        self: &Arc<Self>,
        pressed: Pressed,
        verified_by: &[String],
    ) -> Result<Taken, StoreError> {
        let now = self.clock.now();
        let verified_by = verified_by.to_vec();
        let bridge = Arc::clone(self);
        self.store
            .write_urgent(move |tx| {
                Box::pin(async move {
                    let meaning = meaning_of(tx, &pressed, &verified_by).await?;
                    let by_payload = bridge.directory.install_of(&pressed, &verified_by, meaning.install());
                    let install = by_payload.or_else(|| meaning.install().map(ToOwned::to_owned));
                    if let (Some(install), Some(said)) = (&install, &pressed.said)
                        && said.groups.is_some()
                    {
                        bridge.directory.keep_profile(install, &pressed.by, now, said);
                    }
                    // Pressed in one install with a token of another: no token there.
                    let meaning =
                        if meaning.install() == install.as_deref() { meaning } else { Meaning::Unknown };
                    let meaning = if let (Meaning::Control(token), Some(channel), Some(message)) =
                        (&meaning, pressed.channel.clone(), pressed.message.clone())
                    {
                        let at = MessageRef { channel, message };
                        if learn_message(tx, token.card, at, &pressed, now).await? {
                            meaning
                        } else {
                            tracing::warn!(card = %token.card, "a card's control was pressed on a message that is not its own; refused");
                            Meaning::Unknown
                        }
                    } else {
                        meaning
                    };
                    // Nothing opens for who may never answer: it is refused like a decision.
                    let may_open = pressed
                        .said
                        .as_ref()
                        .is_none_or(|said| !matches!(said.standing, Standing::Unfit(_)));
                    match meaning {
                        Meaning::Control(ref token) if may_open => {
                            let there = bridge.platforms.get(&token.install);
                            let opens = |control: &Control| {
                                there.map_or(control.opens(), |platform| platform.opens(*control))
                            };
                            if let Some(control) = Control::parse(&token.control).filter(opens) {
                                return bridge.opens_first(tx, &pressed, token, control, now).await;
                            }
                        }
                        Meaning::Opened(opening) if !decides(&opening, &pressed) && may_open => {
                            return bridge.opens_page(tx, &pressed, opening).await;
                        }
                        _ => {}
                    }
                    let new = bridge.store_click(tx, &pressed, &meaning, install.as_deref(), now).await?;
                    Ok(Taken::Stored { new })
                })
            })
            .await
    }

    async fn store_click(
        &self,
        tx: &mut Tx,
        pressed: &Pressed,
        meaning: &Meaning,
        install: Option<&str>,
        now: Millis,
    ) -> Result<bool, StoreError> {
        let id = ClickId(self.ids.uuid());
        // A form has no place of its own: private answers go where it was opened.
        let (channel, thread) = match meaning {
            Meaning::Opened(opening) => (opening.channel.as_deref(), opening.thread.as_deref()),
            _ => (None, None),
        };
        let said = pressed.said.as_ref().and_then(said::kept);
        let new = NewClick {
            id,
            dedupe_key: &pressed.dedupe_key,
            install,
            platform: pressed.platform,
            chat_user: &pressed.by.user,
            home_team: pressed.by.home_team.as_deref(),
            team: pressed.team.as_deref(),
            enterprise: pressed.enterprise.as_deref(),
            org_install: pressed.org_install,
            channel: pressed.channel.as_deref().or(channel),
            message: pressed.message.as_deref(),
            thread: pressed.thread.as_deref().or(thread),
            own_message: pressed.own_message,
            reply: pressed.reply.as_ref().map(secrecy::ExposeSecret::expose_secret),
            reason: pressed.reason.as_deref(),
            said: said.as_deref(),
            pressed: meaning.clicked(pressed),
            received: now,
        };
        if !tx.insert_click(&new).await? {
            return Ok(false);
        }
        tx.queue(NewJob {
            kind: JobKind::Decide,
            group: format!("k:{}", id.0.simple()),
            seq: 0,
            priority: priority::DECIDE,
            reference: id.0,
            payload: json!({}),
            available: now,
        })
        .await?;
        Ok(true)
    }
}

/// Whether pressing something that was opened is a decision: else it turns a page.
fn decides(opening: &Opening, pressed: &Pressed) -> bool {
    pressed.reason.is_some() || opening.control == Control::ApproveConfirmed.as_str()
}

/// What the token stands for. A token of an install that this secret does not speak for is no token
/// here, and what was opened for somebody else is none either.
async fn meaning_of(tx: &mut Tx, pressed: &Pressed, verified_by: &[String]) -> Result<Meaning, StoreError> {
    if let Some(token) = tx.token(&pressed.token).await? {
        let ours = verified_by.contains(&token.install);
        return Ok(if ours { Meaning::Control(token) } else { Meaning::Unknown });
    }
    let by = by_of(pressed);
    let opening = tx.opening(&pressed.token).await?;
    let theirs = opening.filter(|opening| verified_by.contains(&opening.install) && opening.by == by);
    Ok(theirs.map_or(Meaning::Unknown, Meaning::Opened))
}

/// A press tells where its card's message is: the post's answer may not have come yet, or this is
/// a second copy.
///
/// On Discord a card's channel is known before it is posted, and a message that is not ours, or in another
/// channel or thread, cannot be a copy: `false`. A thread is a channel of its own there; the card belongs to the
/// one above.
async fn learn_message(
    tx: &mut Tx,
    card: CardId,
    at: MessageRef,
    pressed: &Pressed,
    now: Millis,
) -> Result<bool, StoreError> {
    let Some(row) = tx.card(card).await? else { return Ok(true) };
    let discord = pressed.platform == Platform::Discord;
    let at = match &row.channel {
        Some(channel) if discord => at.within(channel),
        _ => at,
    };
    let at = &at;
    let known = row.at();
    let elsewhere = match &known {
        Some(known) => at.channel != known.channel || at.thread() != known.thread(),
        None => at.thread().is_some_and(|thread| row.thread.as_deref() != Some(thread)),
    };
    if discord && known.as_ref() != Some(at) && (elsewhere || !pressed.own_message) {
        return Ok(false);
    }
    match known {
        None if row.state == CardState::Posting => {
            let rev = row.post_rev.unwrap_or_default();
            tx.posted(card, at, rev).await?;
            tx.queue_edit(card.0, &card_group(card), 1, priority::INTERIM, now).await?;
        }
        Some(known) if known != *at && tx.insert_copy(card, at).await? => {
            tx.queue_edit(card.0, &card_group(card), 1, priority::INTERIM, now).await?;
        }
        _ => {}
    }
    Ok(true)
}

impl Directory {
    /// The install that a payload names, among those whose secret verified it ([`Self::install_at`]).
    /// Where several fit (one workspace configured twice), the one whose card was pressed.
    fn install_of(
        &self,
        pressed: &Pressed,
        verified_by: &[String],
        of_token: Option<&str>,
    ) -> Option<String> {
        let origin = pressed.origin();
        let pressed_there = verified_by.iter().find(|install| of_token == Some(install.as_str()));
        pressed_there
            .filter(|install| self.identity(install).is_none_or(|identity| origin.is_of(&identity)))
            .cloned()
            .or_else(|| self.install_at(&origin, verified_by))
    }
}

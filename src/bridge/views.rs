//! What opens in front of one person: the form for a reason, and everything of a card in pages.
//!
//! Invariant: opening decides nothing and needs no right; what is answered privately is only that there is
//! nothing to open it for (it has ended, it has changed). That somebody has opened the whole text is
//! written after the platform has taken its last page, never before.
//!
//! Known races and the decisions taken:
//! - the process dies between acknowledging the press and opening: nothing opens, the person presses
//!   again;
//! - it may have been opened although no answer came: the person is told to press again if nothing is
//!   there; pressing again opens the same thing;
//! - pages are turned twice at once: the platform takes the first (the view's hash), the other is dropped;
//! - the interaction ends or changes while somebody reads or types: the next page says so instead, and
//!   what is submitted is judged like every click.

use super::Bridge;
use super::ports::{ChatError, ChatPlatform, Person, Pressed, WayIn};
use super::take::Taken;
use crate::domain::card::{Card, Control, Status};
use crate::domain::clock::Millis;
use crate::domain::form::{Digest, Kind};
use crate::domain::ids::{CardId, ChatUser, InteractionId};
use crate::domain::interaction::{State, Why};
use crate::domain::notice::Notice;
use crate::domain::view::{Content, Page, View};
use crate::store::cards::Token;
use crate::store::clicks::viewer;
use crate::store::interactions::Interaction;
use crate::store::openings::{NewOpening, Opening};
use crate::store::{StoreError, Tx};
use std::sync::Arc;

/// Something that a press opens, on its way to the person who pressed.
#[derive(Debug)]
pub struct Opens {
    pub install: String,
    what: What,
    way_in: Option<WayIn>,
    person: Person,
    /// It takes the place of what is open already.
    turned: bool,
}

impl Opens {
    /// Whether it takes the place of what is open already.
    #[must_use]
    pub fn turned(&self) -> bool {
        self.turned
    }

    /// How it opens.
    #[must_use]
    pub fn way_in(&self) -> Option<&WayIn> {
        self.way_in.as_ref()
    }
}

#[derive(Debug)]
enum What {
    /// Nothing does, and why.
    Nothing(Notice),
    /// The form for a reason, with its token.
    Reason(Box<Drawing>, String),
    /// The second question, with the token of its answer.
    Confirm(Box<Drawing>, String),
    /// That page of everything.
    Page(Box<Drawing>, usize),
    /// In the place of a page, why there is none any more.
    Instead(Box<Drawing>, Notice),
}

/// The pressed drawing of a card, by whatever token.
#[derive(Debug)]
struct Drawing {
    interaction: Interaction,
    card: CardId,
    rev: i64,
    digest: Digest,
    by: ChatUser,
    cut: bool,
}

/// What opens, ready to be drawn.
#[derive(Debug)]
pub struct Ready {
    pub view: View,
    /// Whoever is shown it has opened everything.
    seen: Option<Seen>,
}

impl Ready {
    /// Whether whoever is shown it has opened everything.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        self.seen.is_some()
    }
}

#[derive(Debug, Clone)]
struct Seen {
    interaction: InteractionId,
    digest: Digest,
    by: ChatUser,
}

impl Bridge {
    /// A control of a card was pressed that opens something.
    pub(super) async fn opens_first(
        &self,
        tx: &mut Tx,
        pressed: &Pressed,
        token: &Token,
        control: Control,
        now: Millis,
    ) -> Result<Taken, StoreError> {
        let person = Person {
            user: pressed.by.user.clone(),
            channel: pressed.channel.clone(),
            thread: pressed.thread.clone(),
            reply: pressed.reply.clone(),
            awaited: false,
        };
        let opens = |what| {
            let way_in = pressed.way_in.clone();
            Taken::Opens(Box::new(Opens {
                install: token.install.clone(),
                what,
                way_in,
                person,
                turned: false,
            }))
        };
        let Some(interaction) = tx.interaction(token.interaction, false).await? else {
            return Ok(opens(What::Nothing(Notice::UnknownControl)));
        };
        if let Some(notice) = self.closed(&interaction, &token.install, &token.digest, control) {
            // The pressed message shows what is not so any more.
            if let Some(mut interaction) = tx.interaction(token.interaction, true).await? {
                self.redraw(tx, &mut interaction, now).await?;
            }
            return Ok(opens(What::Nothing(notice)));
        }
        let by = by_of(pressed);
        let name = self.new_token("o_");
        let opening = NewOpening {
            token: &name,
            card: token.card,
            rev: token.rev,
            digest: &token.digest,
            control,
            page: i64::from(control == Control::ShowAll),
            by: &by,
            channel: pressed.channel.as_deref(),
            thread: pressed.thread.as_deref(),
            opened_by: Some(&pressed.dedupe_key),
        };
        let Some(name) = tx.open(&opening).await? else { return Ok(Taken::OpenedBefore) };
        let drawing = Box::new(Drawing {
            interaction,
            card: token.card,
            rev: token.rev,
            digest: token.digest.clone(),
            by,
            cut: token.cut,
        });
        Ok(opens(match control {
            Control::ShowAll => What::Page(drawing, 1),
            Control::ApproveConfirmed => What::Confirm(drawing, name),
            _ => What::Reason(drawing, name),
        }))
    }

    /// A control of something open was pressed: a page beside the one that is shown.
    pub(super) async fn opens_page(
        &self,
        tx: &mut Tx,
        pressed: &Pressed,
        opening: Opening,
    ) -> Result<Taken, StoreError> {
        let interaction = tx.interaction(opening.interaction, false).await?;
        let what = match (interaction, Control::parse(&opening.control)) {
            (Some(interaction), Some(Control::ShowAll)) => {
                let closed = self.closed(&interaction, &opening.install, &opening.digest, Control::ShowAll);
                let drawing = Box::new(Drawing {
                    interaction,
                    card: opening.card,
                    rev: opening.rev,
                    digest: opening.digest,
                    by: opening.by,
                    cut: opening.cut,
                });
                match closed {
                    Some(notice) => What::Instead(drawing, notice),
                    None => What::Page(drawing, usize::try_from(opening.page).unwrap_or(1)),
                }
            }
            _ => What::Nothing(Notice::UnknownControl),
        };
        let person = Person {
            user: pressed.by.user.clone(),
            channel: opening.channel,
            thread: opening.thread,
            reply: None,
            awaited: false,
        };
        let way_in = pressed.way_in.clone();
        Ok(Taken::Opens(Box::new(Opens { install: opening.install, what, way_in, person, turned: true })))
    }

    /// Why there is nothing to open it for any more.
    fn closed(
        &self,
        interaction: &Interaction,
        install: &str,
        shown: &Digest,
        control: Control,
    ) -> Option<Notice> {
        match &interaction.machine.state {
            State::Settled { how, at, .. } => Some(self.ended_notice(install, how, *at)),
            _ if *shown != interaction.machine.digest => {
                Some(Notice::Refused { why: Why::Changed, by: None })
            }
            State::Answering(claim) if control != Control::ShowAll => {
                Some(Notice::BeingAnswered { by: self.person(install, claim.subject.as_str()) })
            }
            State::Open | State::Answering(_) => None,
        }
    }

    /// What opens; `Err` says why nothing does. Not part of taking the press: a whole text takes its time.
    ///
    /// # Errors
    /// What the person is to be told instead.
    pub async fn ready(self: &Arc<Self>, opens: &Opens) -> Result<Ready, Notice> {
        let drawing = match &opens.what {
            What::Nothing(notice) => return Err(notice.clone()),
            What::Reason(drawing, _)
            | What::Confirm(drawing, _)
            | What::Instead(drawing, _)
            | What::Page(drawing, _) => drawing,
        };
        let about = self.about(drawing, &opens.install).await?;
        let ready = |content, seen| Ready {
            view: View { card: drawing.card, rev: drawing.rev, about: about.clone(), content },
            seen,
        };
        match &opens.what {
            What::Nothing(notice) => Err(notice.clone()),
            What::Reason(_, token) => Ok(ready(Content::DenyReason { token: token.clone() }, None)),
            What::Confirm(_, token) => Ok(ready(Content::Confirm { token: token.clone() }, None)),
            What::Instead(_, notice) => Ok(ready(Content::Told(notice.clone()), None)),
            What::Page(_, wanted) => {
                let page = self.page(&opens.install, drawing, *wanted).await?;
                let seen = page.is_last().then(|| Seen {
                    interaction: drawing.interaction.id,
                    digest: drawing.digest.clone(),
                    by: drawing.by.clone(),
                });
                Ok(ready(Content::ShowAll(page), seen))
            }
        }
    }

    /// The card that a view is about.
    async fn about(&self, drawing: &Drawing, install: &str) -> Result<Card, Notice> {
        self.card_of(&drawing.interaction, install).await.map_err(|error| {
            tracing::error!(%error, "what a view is about could not be read");
            Notice::PressAgain
        })
    }

    /// A page of everything, with tokens for the pages beside it.
    async fn page(self: &Arc<Self>, install: &str, drawing: &Drawing, wanted: usize) -> Result<Page, Notice> {
        let platform = self.platforms.get(install).ok_or(Notice::NotInstalled)?;
        let about = self.about(drawing, install).await?;
        let of = platform.pages(&about).max(1);
        let at = wanted.clamp(1, of);
        let beside = [at.checked_sub(1).filter(|page| *page > 0), Some(at + 1).filter(|page| *page <= of)];
        let [previous, next] = self.page_tokens(drawing, beside).await.map_err(|error| {
            tracing::error!(%error, "the pages of a whole text could not be stored");
            Notice::PressAgain
        })?;
        let unlocks = self.rules.require_full_view
            && drawing.cut
            && about.form.kind == Kind::Approval
            && matches!(about.status, Status::Open { .. });
        Ok(Page { at, of, previous, next, unlocks })
    }

    async fn page_tokens(
        self: &Arc<Self>,
        drawing: &Drawing,
        pages: [Option<usize>; 2],
    ) -> Result<[Option<String>; 2], StoreError> {
        if pages == [None, None] {
            return Ok([None, None]);
        }
        let bridge = Arc::clone(self);
        let (card, rev) = (drawing.card, drawing.rev);
        let (digest, by) = (drawing.digest.clone(), drawing.by.clone());
        self.store
            .write(move |tx| {
                Box::pin(async move {
                    let mut tokens = [None, None];
                    for (token, page) in tokens.iter_mut().zip(pages) {
                        let Some(page) = page.and_then(|page| i64::try_from(page).ok()) else { continue };
                        let opening = NewOpening {
                            token: &bridge.new_token("o_"),
                            card,
                            rev,
                            digest: &digest,
                            control: Control::ShowAll,
                            page,
                            by: &by,
                            channel: None,
                            thread: None,
                            opened_by: None,
                        };
                        *token = tx.open(&opening).await?;
                    }
                    Ok(tokens)
                })
            })
            .await
    }

    /// Opens it, after the press was acknowledged. Not stored, not tried again: when it does not work,
    /// the person is told to press again.
    pub async fn show(self: &Arc<Self>, opens: Opens) {
        let Some(platform) = self.platforms.get(&opens.install).cloned() else { return };
        let ready = match self.ready(&opens).await {
            Ok(ready) => ready,
            Err(notice) => return tell_now(&platform, &opens.person, &notice).await,
        };
        self.put(&platform, &opens, ready).await;
    }

    /// Fills what the first response to a press has announced.
    pub async fn fill(self: &Arc<Self>, opens: Opens, ready: Ready) {
        let Some(platform) = self.platforms.get(&opens.install).cloned() else { return };
        self.put(&platform, &opens, ready).await;
    }

    async fn put(self: &Arc<Self>, platform: &Arc<dyn ChatPlatform>, opens: &Opens, ready: Ready) {
        let Some(way) = &opens.way_in else {
            return tell_now(platform, &opens.person, &Notice::PressAgain).await;
        };
        match platform.open(way, &ready.view).await {
            Ok(()) => {
                self.all_clear(&alert_of(&opens.install)).await;
                self.shown(ready).await;
            }
            Err(error) => self.not_opened(platform, opens, error).await,
        }
    }

    /// The platform has taken it: whoever has the last page before them has opened everything.
    pub async fn shown(&self, ready: Ready) {
        let Some(seen) = ready.seen else { return };
        let now = self.clock.now();
        let written = self
            .store
            .write(move |tx| {
                Box::pin(async move { tx.saw_all(seen.interaction, &seen.digest, &seen.by, now).await })
            })
            .await;
        if let Err(error) = written {
            tracing::error!(%error, "that somebody has opened everything could not be stored");
        }
    }

    async fn not_opened(&self, platform: &Arc<dyn ChatPlatform>, opens: &Opens, error: ChatError) {
        let install = platform.install();
        let notice = match (&error, &opens.way_in) {
            // Turned or closed meanwhile.
            (ChatError::Gone { .. } | ChatError::OutOfDate { .. }, Some(WayIn::Instead { .. })) => return,
            (ChatError::Paced { .. }, _) => Notice::OpensLater,
            _ => Notice::PressAgain,
        };
        tracing::warn!(install, %error, "something could not be opened for a person; they are told");
        if matches!(error, ChatError::Payload { .. } | ChatError::Permanent { .. } | ChatError::Auth { .. }) {
            self.alert(
                &alert_of(install),
                &format!("{install}: a form or a whole text was refused: {error}"),
            )
            .await;
        }
        tell_now(platform, &opens.person, &notice).await;
    }
}

/// The alert about views that the platform refuses for good.
fn alert_of(install: &str) -> String {
    format!("views:{install}")
}

/// Who pressed, as stored things of theirs are found again.
pub(super) fn by_of(pressed: &Pressed) -> ChatUser {
    viewer(pressed.platform, pressed.enterprise.as_deref(), pressed.by.home_team.as_deref(), &pressed.by.user)
}

/// Best effort, at once: no click is stored that a later attempt could belong to.
async fn tell_now(platform: &Arc<dyn ChatPlatform>, person: &Person, notice: &Notice) {
    if let Err(error) = platform.tell(person, notice).await {
        tracing::warn!(install = platform.install(), %error, "a private notice could not be delivered");
    }
}

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
use crate::domain::card::{Control, Status};
use crate::domain::clock::Millis;
use crate::domain::form::{Digest, Kind};
use crate::domain::ids::{ChatUser, InteractionId};
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
    /// What opens, or why nothing does.
    pub what: Result<View, Notice>,
    way_in: Option<WayIn>,
    person: Person,
    seen: Option<Seen>,
}

/// What this person has seen to its end once the page is shown.
#[derive(Debug, Clone)]
struct Seen {
    interaction: InteractionId,
    digest: Digest,
    by: ChatUser,
}

/// The pressed drawing of a card, by whatever token.
struct Drawing<'a> {
    opening: NewOpening<'a>,
    interaction: &'a Interaction,
    install: &'a str,
    cut: bool,
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
        let by = by_of(pressed);
        let mut opens = Opens {
            install: token.install.clone(),
            what: Err(Notice::UnknownControl),
            way_in: pressed.way_in.clone(),
            person: Person {
                user: pressed.by.user.clone(),
                channel: pressed.channel.clone(),
                thread: pressed.thread.clone(),
                reply: pressed.reply.clone(),
            },
            seen: None,
        };
        let Some(interaction) = tx.interaction(token.interaction, false).await? else {
            return Ok(Taken::Opens(Box::new(opens)));
        };
        if let Some(notice) = self.closed(&interaction, &token.install, &token.digest, control) {
            // The pressed message shows what is not so any more.
            if let Some(mut interaction) = tx.interaction(token.interaction, true).await? {
                self.redraw(tx, &mut interaction, now).await?;
            }
            opens.what = Err(notice);
            return Ok(Taken::Opens(Box::new(opens)));
        }
        let name = self.new_token("o_");
        let drawing = Drawing {
            opening: NewOpening {
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
            },
            interaction: &interaction,
            install: &token.install,
            cut: token.cut,
        };
        let Some(name) = tx.open(&drawing.opening).await? else { return Ok(Taken::OpenedBefore) };
        if control == Control::ShowAll {
            self.fill_page(tx, &mut opens, &drawing, 1).await?;
        } else {
            opens.what = Ok(self.view(&drawing, Content::DenyReason { token: name }));
        }
        Ok(Taken::Opens(Box::new(opens)))
    }

    /// A control of something open was pressed: a page beside the one that is shown.
    pub(super) async fn opens_page(
        &self,
        tx: &mut Tx,
        pressed: &Pressed,
        opening: &Opening,
    ) -> Result<Taken, StoreError> {
        let mut opens = Opens {
            install: opening.install.clone(),
            what: Err(Notice::UnknownControl),
            way_in: pressed.way_in.clone(),
            person: Person {
                user: pressed.by.user.clone(),
                channel: opening.channel.clone(),
                thread: opening.thread.clone(),
                reply: None,
            },
            seen: None,
        };
        let interaction = tx.interaction(opening.interaction, false).await?;
        let (Some(interaction), Some(Control::ShowAll)) = (interaction, Control::parse(&opening.control))
        else {
            return Ok(Taken::Opens(Box::new(opens)));
        };
        let drawing = Drawing {
            opening: NewOpening {
                token: "",
                card: opening.card,
                rev: opening.rev,
                digest: &opening.digest,
                control: Control::ShowAll,
                page: opening.page,
                by: &opening.by,
                channel: None,
                thread: None,
                opened_by: None,
            },
            interaction: &interaction,
            install: &opening.install,
            cut: opening.cut,
        };
        match self.closed(&interaction, &opening.install, &opening.digest, Control::ShowAll) {
            Some(notice) => opens.what = Ok(self.view(&drawing, Content::Told(notice))),
            None => {
                let page = usize::try_from(opening.page).unwrap_or(1);
                self.fill_page(tx, &mut opens, &drawing, page).await?;
            }
        }
        Ok(Taken::Opens(Box::new(opens)))
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
            State::Answering(claim) if control == Control::DenyReason => {
                Some(Notice::BeingAnswered { by: self.person(install, claim.subject.as_str()) })
            }
            State::Open | State::Answering(_) => None,
        }
    }

    fn view(&self, drawing: &Drawing<'_>, content: Content) -> View {
        View {
            card: drawing.opening.card,
            rev: drawing.opening.rev,
            about: self.card_of(drawing.interaction, drawing.install),
            content,
        }
    }

    /// A page of everything, with tokens for the pages beside it.
    async fn fill_page(
        &self,
        tx: &mut Tx,
        opens: &mut Opens,
        drawing: &Drawing<'_>,
        wanted: usize,
    ) -> Result<(), StoreError> {
        let Some(platform) = self.platforms.get(drawing.install) else {
            opens.what = Err(Notice::NotInstalled);
            return Ok(());
        };
        let about = self.card_of(drawing.interaction, drawing.install);
        let of = platform.pages(&about).max(1);
        let at = wanted.clamp(1, of);
        let previous = at.checked_sub(1).filter(|page| *page > 0);
        let next = Some(at + 1).filter(|page| *page <= of);
        let page = Page {
            at,
            of,
            previous: self.page_token(tx, drawing, previous).await?,
            next: self.page_token(tx, drawing, next).await?,
            unlocks: self.rules.require_full_view
                && drawing.cut
                && about.form.kind == Kind::Approval
                && matches!(about.status, Status::Open { .. }),
        };
        if page.is_last() {
            opens.seen = Some(Seen {
                interaction: drawing.interaction.id,
                digest: drawing.opening.digest.clone(),
                by: drawing.opening.by.clone(),
            });
        }
        opens.what = Ok(self.view(drawing, Content::ShowAll(page)));
        Ok(())
    }

    async fn page_token(
        &self,
        tx: &mut Tx,
        drawing: &Drawing<'_>,
        page: Option<usize>,
    ) -> Result<Option<String>, StoreError> {
        let Some(page) = page.and_then(|page| i64::try_from(page).ok()) else { return Ok(None) };
        let token = self.new_token("o_");
        let opening = NewOpening { token: &token, page, opened_by: None, ..drawing.opening.clone() };
        tx.open(&opening).await
    }

    /// Opens it, after the press was acknowledged. Not stored, not tried again: when it does not work,
    /// the person is told to press again.
    pub async fn show(self: &Arc<Self>, opens: Opens) {
        let Some(platform) = self.platforms.get(&opens.install).cloned() else { return };
        let view = match &opens.what {
            Ok(view) => view,
            Err(notice) => return tell_now(&platform, &opens.person, notice).await,
        };
        let Some(way) = &opens.way_in else {
            return tell_now(&platform, &opens.person, &Notice::PressAgain).await;
        };
        match platform.open(way, view).await {
            Ok(()) => {
                self.all_clear(&alert_of(&opens.install)).await;
                self.shown(&opens).await;
            }
            Err(error) => self.not_opened(&platform, &opens, error).await,
        }
    }

    /// The platform has taken it: whoever has the last page before them has opened everything.
    pub async fn shown(&self, opens: &Opens) {
        let Some(seen) = opens.seen.clone() else { return };
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

//! "What waits for me": the open interactions that one chat account may answer now.
//!
//! Invariant: the same function judges here and at a click, on facts read now; what could not be checked is
//! counted and never listed. Nothing is decided from here.
//!
//! Bounds: open interactions are looked through in outline (no forms), oldest first, at most
//! [`LOOKED_THROUGH`] of them, and judged once for each route, owner and vote; at most [`LISTED`] forms are
//! loaded. A message's address is asked for when somebody first looks, and kept: never a cost of posting.

use super::Bridge;
use super::directory::as_configured;
use super::ports::{ChatPlatform, MessageRef, PressedBy, Profile};
use crate::domain::form::{Decision, Kind};
use crate::domain::ids::{CardId, ClickId, InteractionId, Subject};
use crate::domain::interaction::{Action, Machine, State, Vote};
use crate::domain::policy::{Membership, Question, Standing, Verdict, judge};
use crate::domain::routing::route;
use crate::domain::waiting::{Item, LISTED, List, NOTICES, Waiting, What};
use crate::store::StoreError;
use crate::store::cards::{CardRow, CardState};
use crate::store::interactions::Interaction;
use crate::store::waiting::Outline;
use futures_util::future::join_all;
use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// So many open interactions are looked through for one person.
const LOOKED_THROUGH: usize = 10_000;
const PAGE: i64 = 500;
/// A kept notice stands for this long after it was first shown: the first showing may not have been seen.
const STANDS: Duration = Duration::from_mins(10);

/// What one account is shown, and the kept notices in it.
#[derive(Debug)]
pub(super) struct Looked {
    pub waiting: Waiting,
    pub notices: Vec<Uuid>,
}

/// What was judged already: `(route, kind, owner, has voted)`.
type Judged = HashMap<(usize, Kind, Option<Subject>, bool), Verdict>;

impl Bridge {
    /// What waits for an account of an install, of which `profile` is known. `patience` bounds the asking for addresses.
    pub(super) async fn waiting_for(
        self: &Arc<Self>,
        platform: &Arc<dyn ChatPlatform>,
        by: &PressedBy,
        profile: Profile,
        patience: Duration,
    ) -> Result<Looked, StoreError> {
        let (subject, standing) = self.linked(platform.install(), &profile);
        let what = match (standing, subject) {
            (Standing::Unknown, _) => What::CouldNotCheck,
            (Standing::Unfit(what), _) => What::Unfit { what },
            (Standing::Member, None) => What::Unlinked { user: as_configured(platform, &by.user) },
            (Standing::Member, Some(subject)) => {
                What::Listed(self.list_for(platform, by, &subject, &profile, patience).await?)
            }
        };
        let (install, realm, user) = (platform.install().to_owned(), realm(&profile, by), by.user.clone());
        let since = self.clock.now().minus(STANDS);
        let kept = self
            .store
            .read(|tx| {
                Box::pin(async move {
                    let limit = i64::try_from(NOTICES).unwrap_or(i64::MAX);
                    tx.kept_notices((&install, &realm, &user), since, limit).await
                })
            })
            .await?;
        let notices = kept.iter().map(|kept| kept.id).collect();
        let shown = kept.into_iter().map(|kept| (kept.notice, kept.kept)).collect();
        Ok(Looked { waiting: Waiting { what, notices: shown }, notices })
    }

    /// The kept notices in this were shown.
    pub(super) async fn notices_shown(&self, notices: Vec<Uuid>) -> Result<(), StoreError> {
        if notices.is_empty() {
            return Ok(());
        }
        let now = self.clock.now();
        self.store
            .write(move |tx| {
                Box::pin(async move {
                    for id in notices {
                        tx.notice_shown(id, now).await?;
                    }
                    Ok(())
                })
            })
            .await
    }

    async fn list_for(
        self: &Arc<Self>,
        platform: &Arc<dyn ChatPlatform>,
        by: &PressedBy,
        subject: &Subject,
        profile: &Profile,
        patience: Duration,
    ) -> Result<List, StoreError> {
        let voted = self.votes_of(subject).await?;
        let mut memberships: HashMap<usize, Vec<(String, String, Membership)>> = HashMap::new();
        let mut judged = Judged::new();
        let mut list = List::default();
        let mut listed = vec![];
        let mut after = InteractionId(Uuid::nil());
        let mut looked = 0;
        loop {
            let page = self.store.read(|tx| Box::pin(async move { tx.outlines(after, PAGE).await })).await?;
            let Some(newest) = page.last() else { break };
            after = newest.id;
            looked += page.len();
            for outline in &page {
                let routes = &self.rules.routes;
                let Some(at) = routes.iter().position(|route| route.when.fits(&outline.key, &outline.form))
                else {
                    continue;
                };
                if let Entry::Vacant(unknown) = memberships.entry(at) {
                    unknown.insert(self.memberships(platform, routes.get(at), &by.user, profile).await);
                }
                let known = memberships.get(&at).map(Vec::as_slice).unwrap_or_default();
                let has_voted = voted.contains(&outline.id);
                let key = (at, outline.form.kind.clone(), outline.owner.clone(), has_voted);
                let verdict = *judged.entry(key).or_insert_with(|| {
                    self.judge_outline(outline, at, subject, has_voted, platform.install(), known)
                });
                match verdict {
                    Verdict::Allow if listed.len() < LISTED => listed.push(outline.id),
                    Verdict::Allow => list.more += 1,
                    Verdict::Undetermined => list.unchecked += 1,
                    Verdict::Refuse => {}
                }
            }
            if looked >= LOOKED_THROUGH {
                list.beyond = true;
                break;
            }
        }
        list.items = self.items(platform, by, listed, patience).await?;
        Ok(list)
    }

    async fn votes_of(&self, subject: &Subject) -> Result<BTreeSet<InteractionId>, StoreError> {
        if self.rules.routes.iter().all(|route| route.approvals <= 1) {
            return Ok(BTreeSet::new());
        }
        let subject = subject.clone();
        let voted = self.store.read(|tx| Box::pin(async move { tx.voted_by(&subject).await })).await?;
        Ok(voted.into_iter().collect())
    }

    fn judge_outline(
        &self,
        outline: &Outline,
        at: usize,
        subject: &Subject,
        has_voted: bool,
        install: &str,
        memberships: &[(String, String, Membership)],
    ) -> Verdict {
        let vote =
            Vote { click: ClickId(Uuid::nil()), subject: subject.clone(), digest: outline.digest.clone() };
        let machine = Machine {
            state: State::Open,
            digest: outline.digest.clone(),
            votes: if has_voted { vec![vote] } else { vec![] },
            candidates: vec![],
            claims: 0,
            read_at: self.clock.now(),
            missing_since: None,
        };
        judge(&Question {
            machine: &machine,
            form: &outline.form,
            owner: outline.owner.as_ref(),
            route: self.rules.routes.get(at),
            groups: &self.rules.groups,
            subject: Some(subject),
            standing: Standing::Member,
            memberships,
            install: Some(install),
            action: &Action::Decide(Decision::Approve),
            shown: None,
            must_view: false,
            asked: None,
            before_sending: false,
        })
        .verdict
    }

    /// The listed interactions, with the address of the nearest card.
    async fn items(
        &self,
        platform: &Arc<dyn ChatPlatform>,
        by: &PressedBy,
        listed: Vec<InteractionId>,
        patience: Duration,
    ) -> Result<Vec<Item>, StoreError> {
        let (install, user) = (platform.install().to_owned(), by.user.clone());
        let found = self
            .store
            .read(|tx| {
                Box::pin(async move {
                    let mut found = vec![];
                    for id in listed {
                        let Some(interaction) = tx.interaction(id, false).await? else { continue };
                        let card = nearest(tx.cards_of(id).await?, &install, &user);
                        let link = match &card {
                            Some((card, _)) => tx.card_link(*card).await?,
                            None => None,
                        };
                        found.push((interaction, card, link));
                    }
                    Ok(found)
                })
            })
            .await?;
        let missing = found.iter().filter_map(|(_, card, link)| match (card, link) {
            (Some((card, at)), None) => Some((*card, at.clone())),
            _ => None,
        });
        let links = self.ask_links(platform, missing.collect(), patience).await?;
        Ok(found
            .into_iter()
            .map(|(interaction, card, link)| {
                let link = link.or_else(|| links.get(&card.as_ref()?.0).cloned());
                self.item(&interaction, card.map(|(_, at)| at), link)
            })
            .collect())
    }

    /// Asks for the addresses of messages, and keeps them. One that does not come is asked for next time.
    async fn ask_links(
        &self,
        platform: &Arc<dyn ChatPlatform>,
        missing: Vec<(CardId, MessageRef)>,
        patience: Duration,
    ) -> Result<HashMap<CardId, String>, StoreError> {
        let asked = missing.into_iter().map(|(card, at)| async move {
            match tokio::time::timeout(patience, platform.link(&at)).await {
                Ok(Ok(link)) => Some((card, link)),
                Ok(Err(error)) => {
                    tracing::debug!(%card, %error, "no address for a card's message");
                    None
                }
                Err(_) => None,
            }
        });
        let links: HashMap<CardId, String> = join_all(asked).await.into_iter().flatten().collect();
        if !links.is_empty() {
            let links = links.clone();
            self.store
                .write(move |tx| {
                    Box::pin(async move {
                        for (card, link) in &links {
                            tx.set_card_link(*card, Some(link)).await?;
                        }
                        Ok(())
                    })
                })
                .await?;
        }
        Ok(links)
    }

    fn item(&self, interaction: &Interaction, at: Option<MessageRef>, link: Option<String>) -> Item {
        let needed =
            route(&self.rules.routes, &interaction.key, &interaction.form).map_or(1, |route| route.approvals);
        let form = &interaction.form;
        Item {
            kind: form.kind.clone(),
            title: if form.title.is_empty() { form.prompt.clone() } else { form.title.clone() },
            agent: interaction.key.agent.clone(),
            runtime: interaction.key.runtime.as_str().to_owned(),
            opened: interaction.opened,
            short_id: interaction.id.short(),
            voted: interaction.machine.votes.len(),
            needed,
            link,
            channel: at.map(|at| at.channel),
        }
    }
}

/// The account's realm as kept notices know it: the platform's key, else the home team of the payload.
pub(super) fn realm(profile: &Profile, by: &PressedBy) -> String {
    let key = profile.key.as_ref().map(|key| key.realm.clone());
    key.or_else(|| by.home_team.clone()).unwrap_or_default()
}

/// The card to jump to: in the person's own direct messages first, then the oldest in a channel of their
/// install. Another person's direct messages are never linked to.
fn nearest(cards: Vec<CardRow>, install: &str, user: &str) -> Option<(CardId, MessageRef)> {
    let own = format!(":@{user}");
    let live = cards.into_iter().filter(|card| card.state == CardState::Live && card.install == install);
    let mut reachable: Vec<(bool, CardId, MessageRef)> = live
        .filter_map(|card| {
            let at = card.at()?;
            let direct = at.channel.starts_with('D');
            let ours = card.place.ends_with(&own);
            (!direct || ours).then_some((!ours, card.id, at))
        })
        .collect();
    reachable.sort_by_key(|(far, id, _)| (*far, *id));
    reachable.into_iter().next().map(|(_, id, at)| (id, at))
}

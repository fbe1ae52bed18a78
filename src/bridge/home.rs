//! The Home of a person: published when they open it and, for a day after that, when something changes.
//!
//! Invariant: a Home is a projection of stored state, one for each account, and shows nobody else's
//! interactions. At most one publication in `APART` for each person; a change within it is published when
//! it ends.
//!
//! Known races and the decisions taken:
//! - a change is committed while a Home is being published: the change marks every recent Home's one job,
//!   which then runs once more;
//! - the process dies between a change and the marking: after a restart every recent Home is looked at once.

use super::Bridge;
use super::click::JobEnd;
use super::effects::priority;
use super::ports::{Call, ChatError, PressedBy};
use crate::domain::clock::Millis;
use crate::domain::form::{canonical, sha256_hex};
use crate::domain::waiting::What;
use crate::store::homes::Home;
use crate::store::jobs::Job;
use crate::store::{StoreError, Tx};
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// Between two publications for one person (Slack: views.publish is limited per workspace).
const APART: Duration = Duration::from_secs(10);
/// A Home that was opened longer ago is not brought up to date.
const RECENT: Duration = Duration::from_hours(24);
const PAGE: i64 = 200;
/// Asking for messages' addresses.
const PATIENCE: Duration = Duration::from_secs(5);
const ATTEMPTS: i64 = 5;

fn off_alert(install: &str) -> String {
    format!("home:{install}")
}

/// The group of a Home's job.
fn group(home: Uuid) -> String {
    format!("h:{}", home.simple())
}

fn due(home: &Home, now: Millis) -> Millis {
    home.published.map_or(now, |at| at.plus(APART)).max(now)
}

impl Bridge {
    /// Somebody opened their Home, in the caller's transaction.
    pub(super) async fn home_opened(
        &self,
        tx: &mut Tx,
        install: &str,
        user: &str,
        now: Millis,
    ) -> Result<(), StoreError> {
        let id = tx.open_home(self.ids.uuid(), install, user, now).await?;
        let Some(home) = tx.home(id).await? else { return Ok(()) };
        tx.queue_home(id, &group(id), priority::HOME, due(&home, now)).await
    }

    /// When something has changed, every Home that was opened within a day is looked at again.
    pub async fn refresh_homes(&self) -> Result<(), StoreError> {
        if !self.store.take_changes() {
            return Ok(());
        }
        let now = self.clock.now();
        let mut after = Uuid::nil();
        loop {
            let from = after;
            let page = self
                .store
                .read(|tx| Box::pin(async move { tx.homes_opened(now.minus(RECENT), from, PAGE).await }))
                .await?;
            let Some(last) = page.last() else { return Ok(()) };
            after = last.id;
            self.store
                .write(move |tx| {
                    Box::pin(async move {
                        for home in page {
                            tx.queue_home(home.id, &group(home.id), priority::HOME, due(&home, now)).await?;
                        }
                        Ok(())
                    })
                })
                .await?;
        }
    }

    /// Publishes a Home, unless it shows all that already.
    pub(super) async fn publish_home(self: &Arc<Self>, job: &Job) -> Result<JobEnd, StoreError> {
        let (id, now) = (job.reference, self.clock.now());
        let Some(home) = self.store.read(|tx| Box::pin(async move { tx.home(id).await })).await? else {
            return Ok(JobEnd::Done);
        };
        let Some(platform) = self.platforms.get(&home.install).cloned() else { return Ok(JobEnd::Done) };
        if now.since(home.opened) > RECENT || self.directory.home_is_off(&home.install) {
            return Ok(JobEnd::Done);
        }
        if let Some(until) = self.stopped(&home.install) {
            return Ok(JobEnd::paced(until));
        }
        let due = due(&home, now);
        if due > now {
            return Ok(JobEnd::paced(due));
        }
        let by = PressedBy { user: home.chat_user.clone(), home_team: None };
        let profile = self.profile(&platform, &by).await;
        let looked = self.waiting_for(&platform, &by, profile, PATIENCE).await?;
        if looked.waiting.what == What::CouldNotCheck && job.attempts < ATTEMPTS {
            return Ok(JobEnd::again(now.plus(APART), "the account could not be read"));
        }
        let drawn = platform.draw_waiting(&looked.waiting);
        let shows = sha256_hex(canonical(&drawn.body).as_bytes());
        if home.shown.as_deref() == Some(shows.as_str()) {
            self.notices_shown(looked.notices).await?;
            return Ok(JobEnd::Done);
        }
        if let Err(wait) = platform.reserve(&Call::Home) {
            return Ok(JobEnd::paced(now.plus(wait)));
        }
        match platform.publish_home(&home.chat_user, &drawn).await {
            Ok(()) => {
                self.store
                    .write(move |tx| Box::pin(async move { tx.home_published(id, now, &shows).await }))
                    .await?;
                self.notices_shown(looked.notices).await?;
                self.works(&home.install).await;
                Ok(JobEnd::Done)
            }
            Err(error) => self.home_failed(job, &home, error).await,
        }
    }

    async fn home_failed(
        self: &Arc<Self>,
        job: &Job,
        home: &Home,
        error: ChatError,
    ) -> Result<JobEnd, StoreError> {
        let now = self.clock.now();
        let install = home.install.as_str();
        Ok(match error {
            ChatError::Paced { after } => JobEnd::paced(now.plus(after)),
            ChatError::Auth { code, needed } => self.stop_install(install, &code, &needed).await,
            ChatError::SwitchedOff { .. } => {
                self.directory.set_home_off(install, true);
                let text = format!("{install}: the app's Home tab is switched off, so no Home is published");
                self.alert(&off_alert(install), &text).await;
                JobEnd::Done
            }
            // A newer one is shown: this one is dropped.
            ChatError::OutOfDate { .. } | ChatError::NoSuchPerson { .. } | ChatError::Gone { .. } => {
                JobEnd::Done
            }
            ChatError::Unavailable { what } | ChatError::Unknown { what } if job.attempts < ATTEMPTS => {
                JobEnd::again(now.plus(APART), what)
            }
            ChatError::Unavailable { .. } | ChatError::Unknown { .. } => JobEnd::Done,
            other => {
                self.alert(&format!("edit:{install}"), &format!("a Home was refused for good: {other}"))
                    .await;
                JobEnd::Done
            }
        })
    }

    /// Homes are shown there (again): somebody could open theirs.
    pub(super) async fn home_is_on(&self, install: &str) {
        if self.directory.set_home_off(install, false) {
            self.all_clear(&off_alert(install)).await;
        }
    }
}

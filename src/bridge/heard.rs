//! What a chat platform tells us that is no press: commands and events.
//!
//! Invariant: an effect is committed before its delivery is acknowledged; repeats are told apart before they
//! come here, and one that comes all the same does no harm. What somebody typed is never repeated to anybody.
//! An answer that takes longer than `AT_ONCE` is a job of its own.
//!
//! Known race: the process dies between taking a command and its answer: the person sees the platform's own
//! warning and types it again.

use super::click::{CHECK_FOR, JobEnd};
use super::effects::priority;
use super::notices::reply_life;
use super::ports::{Call, ChatError, ChatPlatform, Drawn, Happened, Origin, Person, PressedBy, Typed};
use super::{Bridge, said};
use crate::domain::clock::Millis;
use crate::domain::ids::Platform;
use crate::domain::waiting::What;
use crate::store::StoreError;
use crate::store::homes::Asked;
use crate::store::jobs::{Job, JobKind, NewJob};
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// An answer that comes within this goes back with the acknowledgement (Slack waits three seconds).
const AT_ONCE: Duration = Duration::from_millis(1200);
/// Of it, asking for messages' addresses.
const PATIENCE: Duration = Duration::from_millis(500);
/// Later there is time.
const LATER_PATIENCE: Duration = Duration::from_secs(5);
const ATTEMPTS: i64 = 5;

/// What they are told at once, privately.
#[derive(Debug, PartialEq)]
pub enum Said {
    Help,
    /// Not one of our words.
    NotKnown,
    Unlink,
    NotInstalled,
    /// The answer comes in a moment.
    Later,
    Waiting(Drawn),
}

impl Bridge {
    /// Answers a command.
    pub async fn command(
        self: &Arc<Self>,
        command: Typed,
        verified_by: &[String],
    ) -> Result<Said, StoreError> {
        let now = self.clock.now();
        match command.text.trim().to_ascii_lowercase().as_str() {
            "" | "open" => {}
            "help" => return Ok(Said::Help),
            "unlink" => return Ok(Said::Unlink),
            _ => return Ok(Said::NotKnown),
        }
        let install = self.directory.install_at(&command.origin, verified_by);
        let Some(platform) = install.and_then(|install| self.platforms.get(&install)).cloned() else {
            return Ok(Said::NotInstalled);
        };
        if platform.platform() == Platform::Discord {
            // It says at once that an answer comes, and shows it there.
            self.ask(&platform, command, now).await?;
            return Ok(Said::Later);
        }
        let by = PressedBy { user: command.user.clone(), home_team: None };
        let at_once = async {
            let profile = self.profile(&platform, &by).await;
            self.waiting_for(&platform, &by, profile, PATIENCE).await
        };
        if let Ok(looked) = tokio::time::timeout(AT_ONCE, at_once).await {
            let looked = looked?;
            if looked.waiting.what != What::CouldNotCheck {
                let drawn = platform.draw_waiting(&looked.waiting);
                self.notices_shown(looked.notices).await?;
                return Ok(Said::Waiting(drawn));
            }
        }
        self.ask(&platform, command, now).await?;
        Ok(Said::Later)
    }

    /// Stores a question, to be answered as a job.
    async fn ask(
        &self,
        platform: &Arc<dyn ChatPlatform>,
        command: Typed,
        now: Millis,
    ) -> Result<(), StoreError> {
        let asked = Asked {
            install: platform.install().to_owned(),
            home_team: command.origin.team.filter(|_| platform.platform() == Platform::Discord),
            said: command.said.as_ref().and_then(said::kept),
            chat_user: command.user,
            channel: command.channel,
            reply: command.reply.map(|reply| reply.expose_secret().to_owned()),
            received: now,
        };
        let id = self.ids.uuid();
        self.store
            .write(move |tx| {
                Box::pin(async move {
                    tx.ask(id, &asked).await?;
                    tx.queue(NewJob {
                        kind: JobKind::Asked,
                        group: format!("q:{}", id.simple()),
                        seq: 0,
                        priority: priority::NOTICE,
                        reference: id,
                        payload: json!({}),
                        available: now,
                    })
                    .await
                })
            })
            .await
    }

    /// Answers a question that took longer.
    pub(super) async fn answer_asked(self: &Arc<Self>, job: &Job) -> Result<JobEnd, StoreError> {
        let id = job.reference;
        let Some(asked) = self.store.read(|tx| Box::pin(async move { tx.asked(id).await })).await? else {
            return Ok(JobEnd::Done);
        };
        let end = match self.platforms.get(&asked.install).cloned() {
            Some(platform) => self.answer_by(job, &platform, &asked).await?,
            None => JobEnd::Done,
        };
        if end == JobEnd::Done {
            self.store.write(move |tx| Box::pin(async move { tx.answered(id).await })).await?;
        }
        Ok(end)
    }

    async fn answer_by(
        self: &Arc<Self>,
        job: &Job,
        platform: &Arc<dyn ChatPlatform>,
        asked: &Asked,
    ) -> Result<JobEnd, StoreError> {
        let now = self.clock.now();
        if let Some(until) = self.stopped(platform.install()) {
            return Ok(JobEnd::paced(until));
        }
        let by = PressedBy { user: asked.chat_user.clone(), home_team: asked.home_team.clone() };
        let said = asked.said.as_deref().and_then(|said| said::read(said, platform.platform(), &by.user));
        let profile = self.account(platform, &by, said, asked.received).await;
        let looked = self.waiting_for(platform, &by, profile, LATER_PATIENCE).await?;
        if looked.waiting.what == What::CouldNotCheck && now < asked.received.plus(CHECK_FOR) {
            return Ok(JobEnd::paced(now.plus(Duration::from_secs(3))));
        }
        if let Err(wait) = platform.reserve(&Call::Tell) {
            return Ok(JobEnd::paced(now.plus(wait)));
        }
        let fresh = now.since(asked.received) < reply_life(platform.platform());
        let to = Person {
            user: asked.chat_user.clone(),
            channel: asked.channel.clone().filter(|_| fresh),
            thread: None,
            reply: asked.reply.clone().filter(|_| fresh).map(SecretString::from),
            awaited: platform.platform() == Platform::Discord,
        };
        match platform.tell_drawn(&to, &platform.draw_waiting(&looked.waiting)).await {
            Ok(()) => {
                self.notices_shown(looked.notices).await?;
                Ok(JobEnd::Done)
            }
            Err(ChatError::Paced { after }) => Ok(JobEnd::paced(now.plus(after))),
            Err(ChatError::Auth { code, needed }) => {
                Ok(self.stop_install(platform.install(), &code, &needed).await)
            }
            Err(ChatError::Unavailable { what } | ChatError::Unknown { what }) if job.attempts < ATTEMPTS => {
                Ok(JobEnd::again(now.plus(Duration::from_secs(5)), what))
            }
            // They can ask again, and the Home shows the same.
            Err(error) => {
                tracing::warn!(install = platform.install(), %error, "a command's answer could not be delivered");
                Ok(JobEnd::Done)
            }
        }
    }

    /// Takes an event.
    pub async fn heard(
        self: &Arc<Self>,
        origin: Origin,
        happened: Happened,
        verified_by: &[String],
    ) -> Result<(), StoreError> {
        let Some(install) = self.directory.install_at(&origin, verified_by) else { return Ok(()) };
        match happened {
            Happened::HomeOpened { user } => {
                let (bridge, now, name) = (Arc::clone(self), self.clock.now(), install.clone());
                self.store
                    .write(move |tx| Box::pin(async move { bridge.home_opened(tx, &name, &user, now).await }))
                    .await?;
                self.home_is_on(&install).await;
            }
            Happened::Uninstalled => {
                self.stop_install(&install, "app_uninstalled", "").await;
            }
            Happened::TokensRevoked { bots } => {
                let known = self.directory.identity(&install);
                if known.map_or(!bots.is_empty(), |identity| bots.contains(&identity.bot_user)) {
                    self.stop_install(&install, "tokens_revoked", "").await;
                }
            }
            Happened::RateLimited => {
                let text = format!("{install}: Slack drops events, because there are too many in an hour");
                self.alert(&format!("rate:{install}"), &text).await;
            }
        }
        Ok(())
    }
}

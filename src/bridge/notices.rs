//! Telling one person privately. The outcome of a click is stored already; a notice may, after a crash, come
//! twice, and never becomes an error to the person: where no way leads to them (not the press's own address,
//! not the channel, not a direct message) it stands in `/countersign open` and in their Home until they have
//! seen it.

use super::Bridge;
use super::click::JobEnd;
use super::ports::{Call, ChatError, ChatPlatform, Person, PressedBy};
use super::waiting::realm;
use crate::domain::ids::{ClickId, Platform};
use crate::domain::notice::Notice;
use crate::store::StoreError;
use crate::store::clicks::Click;
use crate::store::jobs::Job;
use secrecy::SecretString;
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// How long an address for private answers lives (Slack: 30 min; Discord: 15 min).
pub(super) fn reply_life(platform: Platform) -> Duration {
    match platform {
        Platform::Slack => Duration::from_mins(29),
        Platform::Discord => Duration::from_secs(14 * 60 + 30),
    }
}

const ATTEMPTS: i64 = 5;
/// A press that is still being answered is so for no longer than a moment.
const ANSWERED_SOON: Duration = Duration::from_millis(200);
/// Older news are not pushed at anybody: they stand where the person looks.
const STALE: Duration = Duration::from_hours(24);

impl Bridge {
    pub(super) async fn tell(self: &Arc<Self>, job: &Job) -> Result<JobEnd, StoreError> {
        let id = ClickId(job.reference);
        let now = self.clock.now();
        let Some(click) = self.store.read(|tx| Box::pin(async move { tx.click(id).await })).await? else {
            return Ok(JobEnd::Done);
        };
        let Ok(notice) = serde_json::from_value::<Notice>(job.payload.clone()) else {
            return Ok(JobEnd::Dead("a notice of another version".into()));
        };
        let age = now.since(click.received);
        // Where the install is not known, the press's own address is the only way, and needs no token.
        let any = || {
            let reply = click.reply.is_some() && age < reply_life(click.platform);
            self.platforms.values().find(|platform| reply && platform.platform() == click.platform)
        };
        let known = click.install.as_deref().and_then(|install| self.platforms.get(install));
        let Some(platform) = known.or_else(any).cloned() else {
            tracing::warn!(click = %id, "a private notice has no way to the person");
            return Ok(JobEnd::Done);
        };
        if age > STALE {
            return self.keep_notice(job, &platform, &click, &notice).await;
        }
        // The press's own address needs no token.
        let fresh = age < reply_life(click.platform);
        let reply = click.reply.clone().filter(|_| fresh).map(SecretString::from);
        if click.reply.as_deref().is_some_and(|token| self.unanswered.has(token)) {
            return Ok(JobEnd::paced(now.plus(ANSWERED_SOON)));
        }
        if let Some(until) = self.stopped(platform.install()).filter(|_| reply.is_none()) {
            return Ok(JobEnd::paced(until));
        }
        if let Err(wait) = platform.reserve(&Call::Tell) {
            return Ok(JobEnd::paced(now.plus(wait)));
        }
        // Later nobody looks at the channel for it any more: a direct message.
        let to = Person {
            user: click.chat_user.clone(),
            channel: click.channel.clone().filter(|_| fresh),
            thread: click.thread.clone().filter(|_| fresh),
            reply,
            awaited: false,
        };
        match platform.tell(&to, &notice).await {
            Ok(()) => Ok(JobEnd::Done),
            Err(ChatError::Paced { after }) => Ok(JobEnd::paced(now.plus(after))),
            Err(ChatError::Auth { code, needed }) => {
                Ok(self.stop_install(platform.install(), &code, &needed).await)
            }
            Err(error @ (ChatError::Unavailable { .. } | ChatError::Unknown { .. }))
                if job.attempts < ATTEMPTS =>
            {
                let wait =
                    Duration::from_secs(2u64.saturating_pow(u32::try_from(job.attempts).unwrap_or(5).min(5)));
                Ok(JobEnd::again(now.plus(wait), error.to_string()))
            }
            Err(error) => {
                tracing::warn!(
                    install = platform.install(), %error,
                    "a private notice could not be delivered; it stands where the person looks"
                );
                self.keep_notice(job, &platform, &click, &notice).await
            }
        }
    }

    /// Lets a notice stand in `/countersign open` and in the Home.
    async fn keep_notice(
        self: &Arc<Self>,
        job: &Job,
        platform: &Arc<dyn ChatPlatform>,
        click: &Click,
        notice: &Notice,
    ) -> Result<JobEnd, StoreError> {
        if click.chat_user.is_empty() || click.install.as_deref() != Some(platform.install()) {
            return Ok(JobEnd::Done);
        }
        let by = PressedBy { user: click.chat_user.clone(), home_team: click.home_team.clone() };
        let profile = self.clicker(platform, click).await;
        let realm = click.realm.clone().unwrap_or_else(|| realm(&profile, &by));
        // The same for every run of this job: kept once.
        let id = Uuid::from_u128(click.id.0.as_u128() ^ u128::from(job.id.unsigned_abs()));
        let (install, user) = (platform.install().to_owned(), click.chat_user.clone());
        let (notice, now) = (notice.clone(), self.clock.now());
        self.store
            .write(move |tx| {
                Box::pin(async move { tx.keep_notice(id, (&install, &realm, &user), &notice, now).await })
            })
            .await?;
        Ok(JobEnd::Done)
    }
}

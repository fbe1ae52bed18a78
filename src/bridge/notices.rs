//! Telling one person privately. Best effort: the outcome of a click is stored already, a notice that
//! cannot be delivered is given up after a while and may, after a crash, come twice.

use super::Bridge;
use super::click::JobEnd;
use super::ports::{Call, ChatError, Person};
use crate::domain::ids::ClickId;
use crate::domain::notice::Notice;
use crate::store::StoreError;
use crate::store::jobs::Job;
use secrecy::SecretString;
use std::sync::Arc;
use std::time::Duration;

/// How long an address for private answers lives (Slack: 30 min).
const REPLY_LIFE: Duration = Duration::from_mins(29);
const ATTEMPTS: i64 = 5;

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
        // Where the install is not known, the press's own address is the only way, and needs no token.
        let any = || {
            let reply = click.reply.is_some() && now.since(click.received) < REPLY_LIFE;
            self.platforms.values().find(|platform| reply && platform.platform() == click.platform)
        };
        let known = click.install.as_deref().and_then(|install| self.platforms.get(install));
        let Some(platform) = known.or_else(any) else {
            tracing::warn!(click = %id, "a private notice has no way to the person");
            return Ok(JobEnd::Done);
        };
        if let Err(wait) = platform.reserve(&Call::Tell) {
            return Ok(JobEnd::paced(now.plus(wait)));
        }
        // Later nobody looks at the channel for it any more: a direct message.
        let fresh = now.since(click.received) < REPLY_LIFE;
        let to = Person {
            user: click.chat_user.clone(),
            channel: click.channel.clone().filter(|_| fresh),
            thread: click.thread.clone().filter(|_| fresh),
            reply: click.reply.clone().filter(|_| fresh).map(SecretString::from),
        };
        Ok(match platform.tell(&to, &notice).await {
            Ok(()) => JobEnd::Done,
            Err(ChatError::Paced { after }) => JobEnd::paced(now.plus(after)),
            Err(error) if job.attempts >= ATTEMPTS => {
                tracing::warn!(install = platform.install(), %error, "a private notice was given up");
                JobEnd::Done
            }
            Err(
                error @ (ChatError::Unavailable { .. } | ChatError::Unknown { .. } | ChatError::Auth { .. }),
            ) => {
                let wait =
                    Duration::from_secs(2u64.saturating_pow(u32::try_from(job.attempts).unwrap_or(5).min(5)));
                JobEnd::again(now.plus(wait), error.to_string())
            }
            Err(error) => {
                tracing::warn!(install = platform.install(), %error, "a private notice could not be delivered");
                JobEnd::Done
            }
        })
    }
}

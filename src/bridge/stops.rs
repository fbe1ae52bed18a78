//! Installs that refuse our credentials: stopped, with their queue kept.
//!
//! Invariant: what stops an install is said by the platform (a refused token, a missing scope, that the app
//! was removed); other installs go on. While it is stopped nothing is sent there but one try a minute and the
//! question who we are; the first success ends it. Kept in memory only: after a restart the first refusal
//! stops it again.

use super::Bridge;
use super::click::JobEnd;
use crate::domain::clock::Millis;
use std::time::Duration;

/// How long nothing is sent to a stopped install.
const REST: Duration = Duration::from_mins(1);

/// Why an install is stopped, and until when nothing is tried.
#[derive(Debug, Clone)]
pub struct Stop {
    pub until: Millis,
    /// Only a call that needs the scope can show that it is there again.
    scope: bool,
}

fn chat_alert(install: &str) -> String {
    format!("chat:{install}")
}

impl Bridge {
    /// When an install may be tried again, if it is stopped.
    pub(super) fn stopped(&self, install: &str) -> Option<Millis> {
        let now = self.clock.now();
        let stopped = self.directory.stop(install).map(|stop| stop.until);
        stopped.max(self.directory.rests(install)).filter(|until| *until > now)
    }

    /// Whether an install is stopped, also between two tries.
    pub(super) fn is_stopped(&self, install: &str) -> bool {
        self.directory.stop(install).is_some()
    }

    /// Stops an install: operators are told once, and its jobs wait.
    pub(super) async fn stop_install(&self, install: &str, code: &str, needed: &str) -> JobEnd {
        let until = self.clock.now().plus(REST);
        self.directory.set_stop(install, Some(Stop { until, scope: code == "missing_scope" }));
        let why = [code, needed].join(" ");
        let text = format!("{install} refuses our credentials ({}); its queue is kept", why.trim());
        self.alert(&chat_alert(install), &text).await;
        JobEnd::Retry { at: until, error: format!("{code} {needed}"), counted: false }
    }

    /// A call was taken there: whatever stopped it is over.
    pub(super) async fn works(&self, install: &str) {
        if self.directory.set_stop(install, None) {
            self.all_clear(&chat_alert(install)).await;
            tracing::info!(install, "an install takes our calls again");
        }
    }

    /// The platform says who we are there: its token is good again. A scope may still be missing.
    pub(super) async fn recognised(&self, install: &str) {
        match self.directory.stop(install) {
            Some(stop) if stop.scope => {}
            Some(_) => self.works(install).await,
            // Of an earlier run.
            None => self.all_clear(&chat_alert(install)).await,
        }
    }
}

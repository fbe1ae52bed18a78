//! Starts every task and stops them all.
//!
//! Invariant: no task runs outside of here. One that ends without being asked to stops the others and
//! ends the process with an error, because a service without its worker looks alive and does nothing.
//! Watching a runtime and periodic work run on one replica at a time, under a named lease that moves
//! within 15 s when its holder dies.

use super::Bridge;
use super::reconcile::FULL_EVERY;
use crate::store::leases::Lease;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// A named lease's life, and how often it is renewed.
const LEASE: Duration = Duration::from_secs(12);
const RENEW: Duration = Duration::from_secs(4);
/// Who we are on a chat platform is asked until it is known, then again this often.
const IDENTIFY: Duration = Duration::from_mins(10);
const IDENTIFY_RETRY: Duration = Duration::from_secs(5);
/// An install that refuses our credentials is asked this often.
const IDENTIFY_STOPPED: Duration = Duration::from_mins(1);
/// Whether a Home is to be brought up to date is asked this often.
const HOMES: Duration = Duration::from_secs(2);
const HOUSEKEEPING: Duration = Duration::from_mins(1);
/// Alerts are compared with the messages that tell of them.
const TELL_ALERTS: Duration = Duration::from_secs(2);
const HOURLY: u32 = 60;
/// How long what has ended is kept (the audit log is kept for good).
const KEEP: Duration = Duration::from_hours(2160);

/// The tasks of this process.
#[derive(Debug, Clone, Default)]
pub struct Supervisor {
    tracker: TaskTracker,
    stop: CancellationToken,
    ended: Arc<Mutex<Option<String>>>,
}

impl Supervisor {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Fires when everything is to stop.
    pub fn stopping(&self) -> CancellationToken {
        self.stop.clone()
    }

    /// Starts a task that runs until it is told to stop.
    pub fn start<F>(&self, name: impl Into<String>, task: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (name, stop, ended) = (name.into(), self.stop.clone(), Arc::clone(&self.ended));
        #[expect(clippy::disallowed_methods, reason = "the one place that starts tasks")]
        tokio::spawn(self.tracker.track_future(async move {
            // Dropped on a panic too, which is an end nobody asked for.
            let _guard = EndGuard { name, stop, ended };
            task.await;
        }));
    }

    /// Asks everything to stop.
    pub fn stop(&self) {
        self.stop.cancel();
    }

    /// Waits until every task has ended. `Err` names the task that ended unasked.
    ///
    /// # Errors
    /// The name of the task that ended without being asked to.
    pub async fn wait(&self) -> Result<(), String> {
        self.stop.cancelled().await;
        self.tracker.close();
        self.tracker.wait().await;
        match self.ended.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(name) => Err(name),
            None => Ok(()),
        }
    }
}

struct EndGuard {
    name: String,
    stop: CancellationToken,
    ended: Arc<Mutex<Option<String>>>,
}

impl Drop for EndGuard {
    fn drop(&mut self) {
        if self.stop.is_cancelled() {
            return;
        }
        tracing::error!(task = self.name, "a task ended unasked; the process stops");
        *self.ended.lock().unwrap_or_else(PoisonError::into_inner) = Some(std::mem::take(&mut self.name));
        self.stop.cancel();
    }
}

/// How often a runtime is looked at.
#[derive(Debug, Clone)]
pub struct Watch {
    pub runtime: String,
    pub poll: Duration,
}

impl Bridge {
    /// Starts everything that works on its own: workers, watchers, housekeeping.
    pub fn start(self: &Arc<Self>, tasks: &Supervisor, watches: Vec<Watch>) {
        let (bridge, stop) = (Arc::clone(self), tasks.stopping());
        tasks.start("workers", async move { bridge.work(stop).await });
        for watch in watches {
            let (bridge, stop) = (Arc::clone(self), tasks.stopping());
            let name = format!("watch:{}", watch.runtime);
            tasks.start(
                name.clone(),
                async move { Box::pin(bridge.watch_leased(&name, &watch, &stop)).await },
            );
        }
        for install in self.platforms.keys().cloned().collect::<Vec<_>>() {
            let (bridge, stop) = (Arc::clone(self), tasks.stopping());
            tasks.start(
                format!("identify:{install}"),
                async move { bridge.identify_loop(&install, &stop).await },
            );
        }
        let (bridge, stop) = (Arc::clone(self), tasks.stopping());
        tasks.start("housekeeping", async move { bridge.housekeeping(&stop).await });
        let (bridge, stop) = (Arc::clone(self), tasks.stopping());
        tasks.start("homes", async move { bridge.homes(&stop).await });
        if !self.rules.alerts_to.is_empty() {
            let (bridge, stop) = (Arc::clone(self), tasks.stopping());
            tasks.start("alerts", async move { bridge.tell_alerts_loop(&stop).await });
        }
        if !self.store.is_sqlite() {
            let (bridge, stop) = (Arc::clone(self), tasks.stopping());
            tasks.start("notifications", async move { bridge.store.listen(&stop).await });
        }
    }

    /// Watches a runtime while this process holds the lease.
    async fn watch_leased(self: &Arc<Self>, name: &str, watch: &Watch, stop: &CancellationToken) {
        while !stop.is_cancelled() {
            let lease = self.take_lease(name).await;
            if let Some(lease) = lease {
                Box::pin(self.watch_while(&lease, watch, stop)).await;
                let ended = lease.clone();
                let _ =
                    self.store.write(move |tx| Box::pin(async move { tx.release_lease(&ended).await })).await;
            }
            wait(RENEW, stop).await;
        }
    }

    pub(super) async fn take_lease(&self, name: &str) -> Option<Lease> {
        let (name, owner) = (name.to_owned(), self.owner.clone());
        match self
            .store
            .write(move |tx| Box::pin(async move { tx.acquire_lease(&name, &owner, LEASE).await }))
            .await
        {
            Ok(lease) => lease,
            Err(error) => {
                tracing::warn!(%error, "a lease could not be asked for");
                None
            }
        }
    }

    /// Passes over the runtime, spread by ±20 % so that replicas and runtimes do not beat together,
    /// until the lease is lost or everything stops.
    async fn watch_while(self: &Arc<Self>, lease: &Lease, watch: &Watch, stop: &CancellationToken) {
        let passes = async {
            let mut read_all = None;
            loop {
                let began = self.clock.now();
                let full = read_all.is_none_or(|at| began.since(at) >= FULL_EVERY);
                match self.pass_over(&watch.runtime, full).await {
                    Ok(pass) if full && pass.complete => read_all = Some(began),
                    Ok(_) => {}
                    Err(error) => {
                        tracing::warn!(runtime = watch.runtime, %error, "a pass met the database");
                    }
                }
                tokio::time::sleep(self.spread(watch.poll)).await;
            }
        };
        let renewals = async {
            loop {
                tokio::time::sleep(RENEW).await;
                let lease = lease.clone();
                let held = self
                    .store
                    .write(move |tx| Box::pin(async move { tx.renew_lease(&lease, LEASE).await }))
                    .await;
                if !matches!(held, Ok(true)) {
                    break;
                }
            }
        };
        tokio::select! {
            () = passes => {}
            () = self.track(&watch.runtime) => {}
            () = renewals => tracing::warn!(runtime = watch.runtime, "the watch moved to another replica"),
            () = stop.cancelled() => {}
        }
    }

    pub(super) fn spread(&self, poll: Duration) -> Duration {
        let [first, ..] = self.ids.random();
        poll.mul_f64(0.8 + 0.4 * f64::from(first) / 255.0)
    }

    async fn identify_loop(self: &Arc<Self>, install: &str, stop: &CancellationToken) {
        while !stop.is_cancelled() {
            let known = self.identify_once(install).await.unwrap_or_else(|error| {
                tracing::warn!(install, %error, "who we are could not be stored");
                false
            });
            if known && let Err(error) = self.check_pins(install).await {
                tracing::warn!(install, %error, "pinned names could not be looked at");
            }
            self.tend_troubles(install).await;
            let pause = match (known, self.is_stopped(install)) {
                (_, true) => IDENTIFY_STOPPED,
                (true, false) => IDENTIFY,
                (false, false) => IDENTIFY_RETRY,
            };
            wait(pause, stop).await;
        }
    }

    /// Brings Homes up to date after changes.
    async fn homes(&self, stop: &CancellationToken) {
        while !stop.is_cancelled() {
            if let Err(error) = self.refresh_homes().await {
                tracing::warn!(%error, "Homes could not be looked through");
            }
            wait(HOMES, stop).await;
        }
    }

    /// Any replica may tell: a message has one row.
    async fn tell_alerts_loop(self: &Arc<Self>, stop: &CancellationToken) {
        while !stop.is_cancelled() {
            if let Err(error) = self.tell_alerts().await {
                tracing::warn!(%error, "alerts could not be told");
            }
            wait(TELL_ALERTS, stop).await;
        }
    }

    /// Deletes what is old; logs the audit head hourly, so that a cut tail can be found against it.
    async fn housekeeping(self: &Arc<Self>, stop: &CancellationToken) {
        let mut minute = 0;
        while !stop.is_cancelled() {
            for install in self.platforms.keys() {
                self.tend_troubles(install).await;
            }
            if let Some(lease) = self.take_lease("housekeeping").await {
                if let Err(error) = self.store.sweep(self.clock.now(), KEEP).await {
                    tracing::warn!(%error, "old rows could not be deleted");
                }
                if let Err(error) = self.tend_seats().await {
                    tracing::warn!(%error, "waiting cards could not be looked at");
                }
                if let Err(error) = self.tend_alerts().await {
                    tracing::warn!(%error, "alerts could not be tended");
                }
                if let Err(error) = self.end_old_trials().await {
                    tracing::warn!(%error, "test cards left behind could not be ended");
                }
                if minute % HOURLY == 0 {
                    match self.store.read(|tx| Box::pin(async move { tx.audit_head().await })).await {
                        Ok(head) => tracing::info!(seq = head.seq, hash = head.hash, "audit head"),
                        Err(error) => tracing::warn!(%error, "the audit head could not be read"),
                    }
                }
                let _ =
                    self.store.write(move |tx| Box::pin(async move { tx.release_lease(&lease).await })).await;
            }
            minute += 1;
            wait(HOUSEKEEPING, stop).await;
        }
    }
}

async fn wait(time: Duration, stop: &CancellationToken) {
    tokio::select! {
        () = stop.cancelled() => {}
        () = tokio::time::sleep(time) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_task_that_ends_unasked_stops_everything_and_is_named() {
        let tasks = Supervisor::new();
        let stop = tasks.stopping();
        tasks.start("steady", async move { stop.cancelled().await });
        tasks.start("short", async {});
        assert_eq!(tasks.wait().await, Err("short".to_owned()));
    }

    #[tokio::test]
    async fn a_panic_counts_as_an_end() {
        let tasks = Supervisor::new();
        tasks.start("broken", async { panic!("a test's panic") });
        assert_eq!(tasks.wait().await, Err("broken".to_owned()));
    }

    #[tokio::test]
    async fn an_asked_end_is_well() {
        let tasks = Supervisor::new();
        let stop = tasks.stopping();
        tasks.start("steady", async move { stop.cancelled().await });
        tasks.stop();
        assert_eq!(tasks.wait().await, Ok(()));
    }
}

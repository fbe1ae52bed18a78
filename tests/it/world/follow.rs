//! Stories in which something goes on by itself: streams and calls of the runtime.

use super::story::Story;
use countersign::domain::ids::InteractionId;
use countersign::sandbox::a2a::CardSpec;
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;
use uuid::Uuid;

/// The longest wait for what should happen at once.
const LIMIT: Duration = Duration::from_secs(20);

/// Following goes on for as long as this lives.
pub(crate) struct Following(JoinHandle<()>);

impl Drop for Following {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Story {
    /// The runtime's card from its next reading on: what it offers.
    pub(crate) fn offers(&self, streaming: bool, push: bool) {
        let card = CardSpec { streaming, push, ..CardSpec::default() };
        self.a2a.set_card("release", card);
    }

    /// From now on known tasks are followed, as the service does it.
    pub(crate) fn follows(&self) -> Following {
        let bridge = std::sync::Arc::clone(&self.service.bridge);
        #[expect(clippy::disallowed_methods, reason = "aborted with its guard")]
        Following(tokio::spawn(async move { bridge.track("prod").await }))
    }

    /// Works off what is due until `look` is content.
    pub(crate) async fn until_worked(&self, what: &str, look: impl Fn() -> bool) {
        let end = Instant::now() + LIMIT;
        loop {
            self.deliver().await;
            if look() {
                return;
            }
            if Instant::now() >= end {
                let jobs =
                    self.service.bridge.store.read(|tx| Box::pin(async move { tx.jobs(100).await })).await;
                let open = self.service.bridge.store.read(|tx| {
                    Box::pin(async move {
                        let all = tx.interactions_after(InteractionId(Uuid::nil()), false, 100).await?;
                        let mut seen = vec![];
                        for one in all {
                            let cards = tx.cards_of(one.id).await?;
                            seen.push((one.key, one.machine.state, cards));
                        }
                        Ok(seen)
                    })
                });
                panic!(
                    "waited in vain: {what}\nstreams {:?}\n{:#?}\n{:#?}\n{:#?}",
                    self.a2a.streams(),
                    self.asked_for(),
                    jobs.unwrap(),
                    open.await.unwrap()
                );
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// The same, while time passes: the chat platform's pacing lets cards through.
    pub(crate) async fn in_time(&self, what: &str, look: impl Fn() -> bool) {
        self.until_worked(what, || {
            self.advance(Duration::from_millis(50));
            look()
        })
        .await;
    }

    /// The names of all requests to the runtime, in order.
    pub(crate) fn asked_for(&self) -> Vec<String> {
        self.a2a.requests().into_iter().map(|request| request.method).collect()
    }

    /// How often the runtime was asked for this.
    pub(crate) fn count(&self, method: &str) -> usize {
        self.a2a.requests_of(method).len()
    }

    /// Waits until a stream tells of each of these tasks.
    pub(crate) async fn streams_of(&self, tasks: &[&str]) {
        self.until_worked("streams", || {
            let streams = self.a2a.streams();
            tasks.iter().all(|task| streams.iter().any(|stream| stream == task))
        })
        .await;
        // A stream tells of a time before what is read from now on.
        self.advance(Duration::from_millis(1));
    }
}

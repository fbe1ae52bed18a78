//! What comes over the gateway, taken as what comes over HTTP is; its session kept under the lease.
//!
//! Invariant: an interaction is answered after what it asks for was committed, by a call of its own, once; a
//! second try is made only while the person still waits. What is too old to be answered is taken all the same.
//!
//! Known race: our clock and Discord's differ, so that every press looks too old. That is only believed after
//! Discord itself has called one too old.

use super::dispatch::{DiscordApp, DiscordDispatch, NotTaken, Taken, Then, acknowledged};
use crate::bridge::gateway::Lease;
use crate::bridge::ports::ChatPlatform;
use crate::chat::discord::gateway::Desk;
use crate::chat::discord::{Discord, Event, Inbound, Responded, read};
use crate::domain::clock::Millis;
use crate::domain::session::Session;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use secrecy::ExposeSecret;
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Instant;

/// How kept frames are marked.
const SOURCE: &str = "discord:gateway";
/// Discord takes a first response for three seconds; later than this none is tried.
const TOO_OLD: i64 = 2_500;

/// One install that takes clicks over the gateway, while this process holds its lease.
pub struct GatewayDesk {
    dispatch: DiscordDispatch,
    of: DiscordApp,
    lease: Lease,
    ages: Ages,
}

impl GatewayDesk {
    pub fn new(dispatch: DiscordDispatch, platform: Arc<Discord>, lease: Lease) -> Self {
        Self { dispatch, of: DiscordApp::new(platform), lease, ages: Ages::default() }
    }

    fn install(&self) -> &str {
        self.of.platform.install()
    }

    async fn take_one(&self, payload: Value) {
        let began = Instant::now();
        let now = self.dispatch.bridge.clock.now();
        let interaction = read(&payload, now);
        if matches!(interaction.what, Inbound::Ping) {
            return;
        }
        let answer = interaction.id.clone().zip(interaction.token.clone());
        let sent = interaction.sent;
        let bridge = &self.dispatch.bridge;
        let _answering =
            interaction.token.as_ref().map(|token| bridge.unanswered.begin(token.expose_secret()));
        let raw = payload.to_string();
        let taken =
            self.dispatch.take(interaction, (SOURCE, raw.as_bytes()), std::slice::from_ref(&self.of)).await;
        let reason = match taken {
            Ok(Taken { first, then }) => {
                metrics::histogram!("countersign_ack_seconds", "platform" => "discord")
                    .record(began.elapsed().as_secs_f64());
                if let Some((id, token)) = answer {
                    self.answer((&id, token.expose_secret()), &first, then, sent).await;
                }
                return;
            }
            Err(NotTaken::OtherApp) => {
                tracing::warn!(
                    source = SOURCE,
                    "a delivery names another application than its gateway's; ignored"
                );
                "app"
            }
            Err(NotTaken::Unreadable) => "unreadable",
            Err(NotTaken::Store(error)) => {
                tracing::error!(source = SOURCE, %error, "a delivery could not be stored; the person may press again");
                "store"
            }
        };
        metrics::counter!("countersign_inbound_refused_total", "platform" => "discord", "reason" => reason)
            .increment(1);
    }

    async fn answer(&self, to: (&str, &str), first: &Value, then: Then, sent: Option<Millis>) {
        let age = || sent.map_or(0, |sent| self.dispatch.bridge.clock.now().0 - sent.0);
        let mut again = true;
        loop {
            let before = age();
            if !self.ages.in_time(before) {
                tracing::info!(
                    install = self.install(),
                    age = before,
                    "a press came too late to be answered; it counts"
                );
                return;
            }
            match self.of.platform.respond(to.0, to.1, first).await {
                Responded::Yes => {
                    self.ages.taken(before);
                    return self.dispatch.after(then, true).await;
                }
                Responded::TooLate => {
                    self.ages.refused(before);
                    tracing::info!(
                        install = self.install(),
                        age = before,
                        "Discord calls a press too old to be answered"
                    );
                    return;
                }
                Responded::Refused => {
                    let install = self.install();
                    let what = format!(
                        "{install}: Discord refused how a press was answered; it counts all the same"
                    );
                    self.dispatch.bridge.alert(&format!("respond:{install}"), &what).await;
                    if *first != acknowledged() {
                        self.of.platform.respond(to.0, to.1, &acknowledged()).await;
                    }
                    return;
                }
                Responded::Unknown if again => again = false,
                Responded::Unknown => {
                    tracing::warn!(
                        install = self.install(),
                        "whether a press was answered is not known; it counts"
                    );
                    return;
                }
            }
        }
    }

    async fn heard(&self, event: Event) {
        let (bridge, install) = (&self.dispatch.bridge, self.install());
        let done = match event {
            Event::Deleted { channel, messages } => {
                bridge.messages_deleted(install, &channel, messages).await
            }
            Event::Channel { channel } => bridge.channel_changed(install, &channel).await,
            Event::ServerChanged => {
                bridge.server_back(install);
                bridge.server_changed(install, false).await
            }
            Event::ServerLeft => {
                bridge.server_back(install);
                bridge.server_changed(install, true).await
            }
            Event::ServerAway { server } => {
                if self.of.platform.server().is_none_or(|ours| ours == server) {
                    bridge.server_away(install);
                }
                Ok(())
            }
        };
        if let Err(error) = done {
            tracing::warn!(install, %error, "an event could not be stored; what it tells is found by reading");
        }
    }
}

impl Desk for GatewayDesk {
    fn load(&self) -> BoxFuture<'_, Option<Session>> {
        async move {
            match self.dispatch.bridge.gateway_session(self.install()).await {
                Ok(session) => session,
                Err(error) => {
                    tracing::warn!(install = self.install(), %error, "no session could be loaded; one is begun");
                    None
                }
            }
        }
        .boxed()
    }

    fn save(&self, session: Option<Session>) -> BoxFuture<'_, bool> {
        async move {
            match self.dispatch.bridge.save_gateway_session(self.install(), &self.lease, session).await {
                Ok(ours) => ours,
                Err(error) => {
                    tracing::warn!(install = self.install(), %error, "a session could not be saved");
                    true
                }
            }
        }
        .boxed()
    }

    fn interaction(&self, payload: Value) -> BoxFuture<'_, ()> {
        self.take_one(payload).boxed()
    }

    fn event(&self, event: Event) -> BoxFuture<'_, ()> {
        self.heard(event).boxed()
    }

    fn keep<'a>(&'a self, frame: &'a str) -> BoxFuture<'a, ()> {
        async move {
            if let Err(error) = self.dispatch.bridge.store_unreadable(SOURCE, frame.as_bytes()).await {
                tracing::error!(source = SOURCE, %error, "a frame that cannot be read could not be kept");
            }
        }
        .boxed()
    }

    fn trouble<'a>(&'a self, what: Option<&'a str>) -> BoxFuture<'a, ()> {
        self.dispatch.bridge.inbound_trouble(self.install(), what).boxed()
    }
}

/// How old presses look by our clock, and what Discord says of them.
#[derive(Debug, Default)]
struct Ages {
    /// So far our clock is ahead, at least.
    ahead: AtomicI64,
    /// Discord has shown that ages can be believed.
    known: AtomicBool,
}

impl Ages {
    fn in_time(&self, age: i64) -> bool {
        age - self.ahead.load(Ordering::Relaxed) <= TOO_OLD || !self.known.load(Ordering::Relaxed)
    }

    fn taken(&self, age: i64) {
        if age - self.ahead.load(Ordering::Relaxed) > TOO_OLD {
            self.ahead.store(age, Ordering::Relaxed);
        }
        self.known.store(true, Ordering::Relaxed);
    }

    fn refused(&self, age: i64) {
        if age - self.ahead.load(Ordering::Relaxed) > TOO_OLD {
            self.known.store(true, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_believed_when_discord_has_confirmed_it() {
        let ages = Ages::default();
        assert!(ages.in_time(60_000), "nothing is known of the clocks");
        ages.taken(200);
        assert!(ages.in_time(2_500) && !ages.in_time(2_501));
        let ages = Ages::default();
        ages.refused(4_000);
        assert!(!ages.in_time(4_000));
    }

    #[test]
    fn a_clock_that_is_ahead_stops_nothing() {
        let ages = Ages::default();
        ages.taken(30_000);
        assert!(ages.in_time(31_000) && ages.in_time(29_000) && !ages.in_time(33_000));
        let ages = Ages::default();
        ages.refused(1_000);
        assert!(ages.in_time(60_000), "a press that looks young says nothing of the clocks");
    }
}

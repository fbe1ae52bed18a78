//! The demo's server: the Slack stand-in, the A2A stand-in, the agent and the page on one
//! loopback address.
//!
//! Invariant: it binds loopback only, and what a page of another site sends is refused before it
//! reaches a stand-in. Secrets are made anew for every run and never printed.

use super::a2a::{self, A2aWorld, AuthMode, CardSpec, Jwks, Setup, Watch};
use super::agent::Agent;
use super::company;
use super::discord::{self, DiscordWorld};
use super::page::{self, Page};
use super::slack::{self, SlackWorld};
use super::time::Time;
use axum::Router;
use axum::middleware;
use data_encoding::HEXLOWER;
use ring::rand::{SecureRandom, SystemRandom};
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// How a server of the demo begins.
#[derive(Debug, Clone)]
pub struct Options {
    pub time: Time,
    /// Whether the agent asks by itself; without it only the page's button makes it ask.
    pub agent: bool,
    /// With a Discord beside the Slack.
    pub discord: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { time: Time::System, agent: true, discord: false }
    }
}

/// The names under which the demo's configuration asks for its secrets.
const SECRETS: [&str; 4] =
    ["DEMO_SLACK_BOT_TOKEN", "DEMO_SLACK_SIGNING_SECRET", "DEMO_WATCH_TOKEN", "DEMO_OPERATOR_TOKEN"];

/// The bot token of the Discord, where there is one.
const DISCORD_SECRET: &str = "DEMO_DISCORD_BOT_TOKEN";

/// A bound, not yet running server.
pub struct SandboxServer {
    /// Where it listens.
    pub addr: SocketAddr,
    pub slack: Arc<SlackWorld>,
    pub discord: Option<Arc<DiscordWorld>>,
    pub a2a: Arc<A2aWorld>,
    pub agent: Arc<Agent>,
    runs_agent: bool,
    secrets: BTreeMap<&'static str, String>,
    listener: TcpListener,
}

impl SandboxServer {
    /// Binds `addr` (port 0: any free one) and makes the world.
    ///
    /// # Errors
    /// `InvalidInput` for an address that is not loopback; what the operating system says.
    pub async fn bind(addr: SocketAddr, options: Options) -> io::Result<Self> {
        if !addr.ip().is_loopback() {
            let why = format!("the demo listens on this machine only, not on {addr}: use 127.0.0.1 or [::1]");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let listener = TcpListener::bind(addr).await?;
        let addr = listener.local_addr()?;
        let mut secrets = BTreeMap::new();
        for name in SECRETS {
            let start = if name == "DEMO_SLACK_BOT_TOKEN" { "xoxb-demo-" } else { "" };
            secrets.insert(name, format!("{start}{}", random()?));
        }
        let of = |name: &str| secrets.get(name).cloned().unwrap_or_default();
        let slack = company::slack(options.time.clone(), &of(SECRETS[0]), &of(SECRETS[1]));
        slack.set_base_url(&format!("http://{addr}"));
        let watch = of(SECRETS[2]);
        let mut discord = None;
        if options.discord {
            let (token, mut seed) = (format!("demo.{}", random()?), [0; 32]);
            SystemRandom::new().fill(&mut seed).map_err(|_| io::Error::other("no randomness"))?;
            let world = company::discord(options.time.clone(), &token, seed);
            world.set_base_url(&format!("http://{addr}"));
            secrets.insert(DISCORD_SECRET, token);
            discord = Some(world);
        }
        let a2a = A2aWorld::new(Setup {
            time: options.time,
            watchers: BTreeMap::from([(watch, Watch::All)]),
            ..Setup::default()
        });
        a2a.set_card("release", CardSpec::default());
        let agent = Arc::new(Agent::new(Arc::clone(&a2a)));
        Ok(Self { addr, slack, discord, a2a, agent, runs_agent: options.agent, secrets, listener })
    }

    /// The root address, also that of the page.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// The secret the configuration of [`company::config`] asks for under this name.
    #[must_use]
    pub fn secret(&self, name: &str) -> Option<String> {
        self.secrets.get(name).cloned()
    }

    /// Makes the service at this root address the app of the Slack and the issuer the runtime trusts.
    pub fn connect(&self, service: &str) {
        let service = service.trim_end_matches('/');
        self.slack.set_app_url(service);
        let jwt = AuthMode::Jwt {
            issuer: service.into(),
            audience: company::AUDIENCE.into(),
            jwks: Jwks::Url(format!("{service}/.well-known/jwks.json")),
        };
        let watchers = self.secret(SECRETS[2]).map(|token| (token, Watch::All)).into_iter().collect();
        self.a2a.set_auth(vec![jwt], watchers);
    }

    /// Serves, and lets the agent work, until told to stop.
    ///
    /// # Errors
    /// What the operating system says of the listener.
    pub async fn run(self, stop: CancellationToken) -> io::Result<()> {
        let page = Arc::new(Page {
            slack: Arc::clone(&self.slack),
            discord: self.discord.clone(),
            a2a: Arc::clone(&self.a2a),
            agent: Arc::clone(&self.agent),
            stop: stop.clone(),
            changes: AtomicU32::new(0),
        });
        let app = Self::app(page);
        let agent = async {
            if self.runs_agent {
                self.agent.run(stop.clone()).await;
            }
        };
        let serve = axum::serve(self.listener, app).with_graceful_shutdown(stop.clone().cancelled_owned());
        let retries = async {
            tokio::select! {
                () = self.slack.keep_time() => {}
                () = stop.cancelled() => {}
            }
        };
        let (served, (), ()) = tokio::join!(async { serve.await }, agent, retries);
        served
    }

    fn app(page: Arc<Page>) -> Router {
        let discord = page.discord.clone().map(discord::router).unwrap_or_default();
        slack::router(Arc::clone(&page.slack))
            .merge(discord)
            .merge(a2a::router(Arc::clone(&page.a2a)))
            .merge(page::router(page))
            .layer(middleware::from_fn(page::own_page_only))
    }
}

fn random() -> io::Result<String> {
    let mut bytes = [0_u8; 24];
    SystemRandom::new().fill(&mut bytes).map_err(|_| io::Error::other("no randomness"))?;
    Ok(HEXLOWER.encode(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_loopback_is_bound() {
        for refused in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
            let bound = SandboxServer::bind(refused.parse().unwrap(), Options::default()).await;
            assert_eq!(bound.err().map(|error| error.kind()), Some(io::ErrorKind::InvalidInput), "{refused}");
        }
        let server = SandboxServer::bind("127.0.0.1:0".parse().unwrap(), Options::default()).await.unwrap();
        assert!(server.addr.port() != 0 && server.url().starts_with("http://127.0.0.1:"));
    }

    #[tokio::test]
    async fn every_secret_of_the_configuration_is_there_and_new() {
        let bind = || SandboxServer::bind("127.0.0.1:0".parse().unwrap(), Options::default());
        let (one, two) = (bind().await.unwrap(), bind().await.unwrap());
        let text = company::config(&one.url(), "http://127.0.0.1:1", "127.0.0.1:1", "a.db", "a.key");
        assert_eq!(text.matches("{ env = ").count(), SECRETS.len());
        for name in SECRETS {
            assert!(text.contains(&format!("\"{name}\"")), "{name}");
            assert!(one.secret(name).is_some() && one.secret(name) != two.secret(name), "{name}");
        }
    }
}

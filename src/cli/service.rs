//! Building the service from its configuration: the same way in `run`, in the other commands and in
//! the tests, which only replace time, ids and limits.
//!
//! Invariant: building talks to the database and reads files, and to nobody else; a chat platform or a
//! runtime that is down does not stop it.

use crate::bridge::directory::{Link, People};
use crate::bridge::ports::{Carrier, ChatPlatform, Connector};
use crate::bridge::supervisor::Watch;
use crate::bridge::{Bridge, Rules};
use crate::chat::discord::gateway::{self, Gateway, GatewaySettings};
use crate::chat::discord::{Discord, DiscordSettings};
use crate::chat::slack::socket::{SocketMode, SocketSettings, Timing};
use crate::chat::slack::{Slack, SlackSettings};
use crate::config::{self, AnswerWith, Config, DiscordInbound, SlackInbound, WatchAs};
use crate::domain::clock::Clock;
use crate::domain::ids::{Ids, Platform};
use crate::http::{
    DiscordDispatch, DiscordDoor, Dispatch, GatewayDesk, Http, Operator, SlackDoor, SocketDoor,
};
use crate::identity::keys::{KeyFile, Keys, SigningAlg};
use crate::identity::subject::Carry;
use crate::net::{self, Limits};
use crate::pace::Pace;
use crate::render::Templates;
use crate::runtime::a2a::{A2aConnector, A2aSettings, Address, Watch as WatchWhom};
use crate::store::{Store, StoreOptions};
use crate::telemetry;
use anyhow::{Context, Result, bail};
use serde_json::json;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// What is not in the configuration file.
#[derive(Debug, Clone)]
pub struct Machine {
    pub clock: Arc<dyn Clock>,
    pub ids: Arc<dyn Ids>,
    pub limits: Limits,
    /// Lease times from `clock` on PostgreSQL too (tests).
    pub bind_clock: bool,
}

impl Machine {
    /// The machine as it is.
    #[must_use]
    pub fn real() -> Self {
        Self {
            clock: Arc::new(super::machine::MachineClock),
            ids: Arc::new(super::machine::MachineIds::default()),
            limits: Limits::default(),
            bind_clock: false,
        }
    }
}

/// The service, ready to start.
pub struct Service {
    pub config: Config,
    pub bridge: Arc<Bridge>,
    pub keys: Option<Arc<Keys>>,
    pub templates: Arc<Templates>,
    pub watches: Vec<Watch>,
    discords: Vec<Arc<Discord>>,
    client: reqwest::Client,
}

/// Connects to the configured database without changing it.
pub async fn connect(config: &Config, machine: &Machine) -> Result<Store> {
    Store::connect(StoreOptions {
        url: config.database.url.expose().to_owned(),
        readers: 8,
        clock: Arc::clone(&machine.clock),
        bind_clock: machine.bind_clock,
    })
    .await
    .with_context(|| format!("database.url: {} cannot be used", config.database.url))
}

/// Applies missing migrations.
pub async fn migrate(store: &Store, machine: &Machine) -> Result<()> {
    let prefix =
        format!("cs-{}", data_encoding::HEXLOWER.encode(machine.ids.random().get(..4).unwrap_or_default()));
    store.migrate(&prefix).await.context("the database could not be migrated")
}

impl Service {
    /// Builds everything. The database must be migrated.
    ///
    /// # Errors
    /// Says which configuration key or file is at fault.
    pub async fn build(config: Config, store: Store, machine: &Machine) -> Result<Self> {
        let http = net::client(machine.limits).context("the system's trust store cannot be read")?;
        let templates = Templates::load(&config.templates.language, config.templates.dir.as_deref())
            .context("templates")?;
        let templates = Arc::new(templates);
        let keys = open_keys(&config, &store, machine)?;

        let mut connectors: Vec<Arc<dyn Connector>> = vec![];
        let mut watches = vec![];
        for runtime in &config.runtimes {
            let connector = connector(runtime, &http, keys.as_ref(), machine)?;
            watches.push(Watch { runtime: runtime.name.as_str().to_owned(), poll: runtime.poll });
            connectors.push(connector);
        }
        let mut platforms: Vec<Arc<dyn ChatPlatform>> = vec![];
        for slack in &config.slack {
            platforms.push(Arc::new(Slack::new(
                SlackSettings {
                    name: slack.name.clone(),
                    bot_token: slack.bot_token.clone(),
                    app_id: slack.app_id.clone(),
                    api_url: slack.api_url.clone(),
                },
                http.clone(),
                Arc::clone(&machine.clock),
                Arc::clone(&templates),
                Pace::new(Arc::clone(&machine.clock), Arc::clone(&machine.ids), slack.pace),
            )));
        }
        let mut discords = vec![];
        for discord in &config.discord {
            let platform = Arc::new(Discord::new(
                DiscordSettings {
                    name: discord.name.clone(),
                    application_id: discord.application_id.clone(),
                    bot_token: discord.bot_token.clone(),
                    guild_id: discord.guild_id.clone(),
                    api_url: discord.api_url.clone(),
                    public_key: match &discord.inbound {
                        DiscordInbound::Gateway => None,
                        DiscordInbound::Http { public_key } => Some(public_key.clone()),
                    },
                },
                http.clone(),
                Arc::clone(&machine.clock),
                Arc::clone(&machine.ids),
                Arc::clone(&templates),
                discord.pace,
            ));
            discords.push(Arc::clone(&platform));
            platforms.push(platform);
        }
        let linked: Vec<_> = config.persons.iter().map(|person| person.subject.clone()).collect();
        for connector in &connectors {
            connector.linked(linked.clone());
        }
        let rules = Rules {
            routes: config.routes.clone(),
            groups: config.groups.clone(),
            people: people(&config),
            deliver_within: config.policy.deliver_within,
            group_max_age: config.policy.group_max_age,
            require_full_view: config.policy.require_full_view,
            hooks: hooks(&config),
            max_open_per_place: i64::from(config.policy.max_open_per_place),
            alerts_to: config.alerts.to.clone(),
        };
        let bridge = Bridge::new(
            store,
            Arc::clone(&machine.clock),
            Arc::clone(&machine.ids),
            rules,
            connectors,
            platforms,
        )
        .await
        .context("the database cannot be read")?;
        Ok(Self { config, bridge, keys, templates, watches, discords, client: http })
    }
}

impl Service {
    /// What is served.
    ///
    /// # Errors
    /// When a signing secret is empty.
    pub fn http(&self) -> Result<Arc<Http>> {
        let slack = self
            .config
            .slack
            .iter()
            .filter_map(|slack| match &slack.inbound {
                SlackInbound::Socket { .. } => None,
                SlackInbound::Http { signing_secret, previous } => Some(
                    SlackDoor::new(&slack.name, slack.app_id.clone(), signing_secret, previous.as_ref())
                        .with_context(|| format!("slack {}: signing_secret", slack.name)),
                ),
            })
            .collect::<Result<Vec<_>>>()?;
        let mut discord = vec![];
        for (of, platform) in self.config.discord.iter().zip(&self.discords) {
            let DiscordInbound::Http { public_key } = &of.inbound else { continue };
            let door = DiscordDoor::new(Arc::clone(platform), public_key);
            discord.push(door.with_context(|| format!("discord {}: public_key", of.name))?);
        }
        let keys = self.keys.clone();
        Ok(Arc::new(Http {
            bridge: Arc::clone(&self.bridge),
            slack,
            discord,
            operator: self.config.server.operator_token.clone().map(Operator::new),
            jwks: Arc::new(move |now| {
                keys.as_ref().map_or_else(|| json!({ "keys": [] }), |keys| keys.jwks(now))
            }),
            metrics: telemetry::install_recorder(),
            templates: Arc::clone(&self.templates),
        }))
    }
}

impl Service {
    /// The installs in Socket Mode, ready to run.
    #[must_use]
    pub fn sockets(&self, machine: &Machine, timing: &Timing) -> Vec<SocketMode> {
        let mut sockets = vec![];
        for slack in &self.config.slack {
            let SlackInbound::Socket { app_token } = &slack.inbound else { continue };
            let dispatch =
                Dispatch { bridge: Arc::clone(&self.bridge), templates: Arc::clone(&self.templates) };
            let door = SocketDoor::new(dispatch, &slack.name, slack.app_id.clone());
            let settings = SocketSettings {
                name: slack.name.clone(),
                app_token: app_token.clone(),
                api_url: slack.api_url.clone(),
            };
            sockets.push(SocketMode::new(
                settings,
                self.client.clone(),
                Pace::new(Arc::clone(&machine.clock), Arc::clone(&machine.ids), slack.pace),
                Arc::clone(&machine.ids),
                Arc::new(door),
                timing.clone(),
            ));
        }
        sockets
    }
}

/// Whose chat accounts are whose, as configured.
fn people(config: &Config) -> People {
    let mut links = vec![];
    for person in &config.persons {
        let link = |platform, install: &String, user: &String| Link {
            subject: person.subject.clone(),
            platform,
            install: install.clone(),
            user: user.clone(),
        };
        links.extend(person.slack.iter().map(|own| link(Platform::Slack, &own.install, &own.user)));
        for discord in &config.discord {
            links.extend(person.discord.iter().map(|user| link(Platform::Discord, &discord.name, user)));
        }
    }
    let slack = config.slack.iter().map(|slack| (&slack.name, Platform::Slack, &slack.subject));
    let discord = config.discord.iter().map(|discord| (&discord.name, Platform::Discord, &discord.subject));
    let forms = slack
        .chain(discord)
        .filter_map(|(name, platform, form)| Some((name.clone(), (platform, form.clone()?))))
        .collect();
    People::new(links, forms)
}

impl Service {
    /// The installs that take their clicks over the gateway, ready to run.
    #[must_use]
    pub fn gateways(&self, machine: &Machine, timing: &gateway::Timing) -> Vec<LeasedGateway> {
        let mut gateways = vec![];
        for (of, platform) in self.config.discord.iter().zip(&self.discords) {
            if of.inbound != DiscordInbound::Gateway {
                continue;
            }
            let settings = GatewaySettings {
                name: of.name.clone(),
                application_id: of.application_id.clone(),
                bot_token: of.bot_token.clone(),
                api_url: of.api_url.clone(),
            };
            let ids = Arc::clone(&machine.ids);
            gateways.push(LeasedGateway {
                gateway: Gateway::new(settings, self.client.clone(), ids, timing.clone()),
                dispatch: DiscordDispatch { bridge: Arc::clone(&self.bridge) },
                platform: Arc::clone(platform),
            });
        }
        gateways
    }
}

/// A gateway that runs on one replica at a time.
pub struct LeasedGateway {
    gateway: Gateway,
    dispatch: DiscordDispatch,
    platform: Arc<Discord>,
}

impl LeasedGateway {
    /// The configured name of the install.
    #[must_use]
    pub fn install(&self) -> &str {
        self.gateway.install()
    }

    /// Keeps the connection whenever this process holds the lease, until told to stop.
    pub async fn run(&self, stop: &CancellationToken) {
        let name = format!("gateway:{}", self.install());
        let work = |lease, held: CancellationToken| async move {
            let desk = GatewayDesk::new(self.dispatch.clone(), Arc::clone(&self.platform), lease);
            self.gateway.run(&desk, &held).await;
        };
        Box::pin(self.dispatch.bridge.while_leased(&name, stop, work)).await;
    }
}

/// Where runtimes may call us: only where nobody on the way can read or change it.
#[must_use]
pub fn hooks(config: &Config) -> Option<String> {
    let url = config.server.public_url.as_ref()?;
    (url.url.scheme() == "https" || net::is_loopback(&url.url))
        .then(|| format!("{}/hooks/a2a/", url.url.as_str().trim_end_matches('/')))
}

/// The signing keys, when a runtime needs them. Made on the first run on SQLite; on PostgreSQL, where
/// replicas share them, by `keys rotate`.
fn open_keys(config: &Config, store: &Store, machine: &Machine) -> Result<Option<Arc<Keys>>> {
    if !config.signs() {
        return Ok(None);
    }
    let keys = Keys::open(key_file(config), store.is_sqlite(), machine.clock.now())
        .with_context(|| format!("signing.key_file: {}", config.signing.key_file.display()))?;
    Ok(Some(Arc::new(keys)))
}

/// The key file as configured.
#[must_use]
pub fn key_file(config: &Config) -> KeyFile {
    KeyFile {
        path: config.signing.key_file.clone(),
        alg: match config.signing.alg {
            config::Algorithm::Es256 => SigningAlg::Es256,
            config::Algorithm::EdDsa => SigningAlg::EdDsa,
        },
        publish_ahead: config.signing.publish_ahead,
    }
}

fn connector(
    runtime: &config::Runtime,
    http: &reqwest::Client,
    keys: Option<&Arc<Keys>>,
    machine: &Machine,
) -> Result<Arc<dyn Connector>> {
    let carry = match &runtime.answer_with {
        AnswerWith::Jwt { issuer, audience } => {
            let Some(keys) = keys else { bail!("runtime {}: no signing keys", runtime.name) };
            Carry::jwt(
                runtime.token.clone(),
                (issuer.clone(), audience.clone()),
                runtime.scopes.clone(),
                Arc::clone(keys),
                Arc::clone(&machine.ids),
            )
        }
        AnswerWith::SubjectHeader { header } => {
            Carry::header(runtime.token.clone(), header.clone(), runtime.scopes.clone())
        }
    };
    let settings = A2aSettings {
        agent: runtime.agent.clone(),
        allow_origins: runtime.allow_origins.clone(),
        plain_http: runtime.plain_http,
        watch: match &runtime.watch_as {
            WatchAs::Credential => WatchWhom::Credential,
            WatchAs::Subjects(subjects) => WatchWhom::Subjects(subjects.clone()),
            WatchAs::Linked => WatchWhom::Linked,
        },
        headers: runtime.headers.iter().map(|header| (header.name.clone(), header.value.clone())).collect(),
        details_url: runtime.details_url.as_ref().map(|url| url.as_str().to_owned()),
        dedupe: runtime.dedupe,
        deadline: machine.limits.total,
        ..A2aSettings::new(
            runtime.name.clone(),
            match &runtime.address {
                config::Address::Endpoint(url) => Address::Endpoint(url.clone()),
                config::Address::Card(url) => Address::Card(url.clone()),
            },
        )
    };
    let carrier: Arc<dyn Carrier> = Arc::new(carry);
    let connector = A2aConnector::new(settings, http.clone(), carrier, Arc::clone(&machine.clock))
        .with_context(|| format!("runtime {}", runtime.name))?;
    Ok(Arc::new(connector))
}

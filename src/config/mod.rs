//! The configuration: one TOML file, read once, complained about completely.
//!
//! Invariant: a [`Config`] that exists is valid, its references are resolved and its secrets are
//! read. Everything wrong is reported at once with the path of its key (a file that is no TOML
//! comes alone), and nothing printed here holds a secret. Paths in the file are relative to the
//! working directory.
//!
//! Decisions: a key is accepted when the part that honours it exists, not earlier; a known key of
//! a later version says so. The file is not watched: a change needs a restart, except for the
//! signing keys, which their own module reads again.

mod address;
mod alerts;
mod answer;
mod check;
mod database;
mod details;
mod discord;
mod finding;
mod group;
mod headers;
mod hints;
mod load;
mod person;
mod place;
mod platform_subjects;
mod policy;
mod route;
mod runtime;
mod schema;
mod secrets;
mod server;
mod signing;
mod slack;
mod templates;
mod warnings;
mod watch;

#[cfg(test)]
mod tests;

pub use address::Address;
pub use alerts::Alerts;
pub use answer::AnswerWith;
pub use database::{Database, DatabaseUrl};
pub use details::DetailsUrl;
pub use discord::{DISCORD_API, Discord, DiscordInbound};
pub use finding::{Finding, Findings};
pub use person::{Person, SlackAccount};
pub use policy::Policy;
pub use runtime::{Header, Runtime, RuntimeKind};
pub use secrets::{Env, ProcessEnv};
pub use server::{PublicUrl, Server};
pub use signing::{Algorithm, Signing};
pub use slack::{SLACK_API, Slack, SlackInbound};
pub use templates::Templates;
pub use watch::WatchAs;

use crate::domain::routing::{Group, Route};
use check::Check;
use std::path::Path;

const EXAMPLE: &str = include_str!("example.toml");

/// The whole configuration, valid.
#[derive(Debug, Clone)]
pub struct Config {
    pub server: Server,
    pub signing: Signing,
    pub database: Database,
    pub policy: Policy,
    pub alerts: Alerts,
    pub templates: Templates,
    pub runtimes: Vec<Runtime>,
    pub slack: Vec<Slack>,
    pub discord: Vec<Discord>,
    pub groups: Vec<Group>,
    pub persons: Vec<Person>,
    /// In the order of the file, which decides.
    pub routes: Vec<Route>,
    warnings: Vec<Finding>,
}

impl Config {
    /// Reads the file and every secret it refers to.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn load(path: &Path, env: &dyn Env) -> Result<Self, Findings> {
        let text = std::fs::read_to_string(path).map_err(|why| {
            Findings(vec![Finding {
                key: path.display().to_string(),
                message: format!("the file cannot be read: {why}"),
                fix: "name the configuration with --config; `countersign config example` prints one".into(),
            }])
        })?;
        Self::parse(&text, env)
    }

    /// Reads a configuration from its text.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn parse(text: &str, env: &dyn Env) -> Result<Self, Findings> {
        let table = text.parse::<toml::Table>().map_err(|why| Findings(vec![syntax(text, &why)]))?;
        let mut check = Check::new(env);
        let file = load::sections(table, &mut check);
        let config = build(file, &mut check);
        match config {
            Some(config) if check.findings.is_empty() => {
                Ok(Self { warnings: Findings(check.warnings).in_order().0, ..config })
            }
            _ => Err(Findings(check.findings).in_order()),
        }
    }

    /// What is doubtful but allowed, for `check` and the start-up log.
    pub fn warnings(&self) -> &[Finding] {
        &self.warnings
    }

    /// Whether any runtime is answered with tokens of ours, so that signing keys are needed.
    pub fn signs(&self) -> bool {
        self.runtimes.iter().any(|runtime| matches!(runtime.answer_with, AnswerWith::Jwt { .. }))
    }
}

/// A commented file that loads once its environment variables are set.
pub fn example() -> &'static str {
    EXAMPLE
}

/// The JSON Schema of the file, as pretty-printed JSON.
pub fn schema() -> String {
    format!("{:#}\n", schema::schema_of::<load::File>())
}

/// A file that is no TOML. Its text is not repeated: a secret may stand in it.
fn syntax(text: &str, why: &toml::de::Error) -> Finding {
    let before = why.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
    let message = why.message().trim().replace('\n', ", ");
    Finding {
        key: format!("line {line}, column {column}"),
        message: format!("this is not TOML: {message}"),
        fix: "mend this line; the rest is checked afterwards".into(),
    }
}

fn build(file: load::File, check: &mut Check<'_>) -> Option<Config> {
    let load::File {
        server,
        signing,
        database,
        policy,
        alerts,
        templates,
        runtime,
        slack,
        discord,
        group,
        person,
        route,
    } = file;
    check.names.runtimes = check.unique("runtime", runtime.iter().map(|raw| raw.name.as_deref()));
    check.names.slack = check.unique("slack", slack.iter().map(|raw| raw.name.as_deref()));
    check.names.discord = check.unique("discord", discord.iter().map(|raw| raw.name.as_deref()));
    one_name_each(check, &slack, &discord);
    check.names.groups = check.unique("group", group.iter().map(|raw| raw.name.as_deref()));

    let server = server.check(check);
    let signing = signing.check(check);
    let database = database.check(check);
    let policy = policy.check(check);
    let alerts = alerts.check(check);
    let templates = templates.check(check);
    answer::same_audience(check, &runtime);
    let public_url = server.public_url.as_ref();
    let runtimes = each("runtime", runtime, |raw, at| raw.check(at, public_url, check));
    let slack = each("slack", slack, |raw, at| raw.check(at, check));
    let discord = each("discord", discord, |raw, at| raw.check(at, check));
    let groups = each("group", group, |raw, at| raw.check(at, check));
    let mut taken = person::Taken::default();
    let persons = each("person", person, |raw, at| raw.check(at, &mut taken, check));
    let routes = each("route", route, |raw, at| Some(raw.check(at, check)));
    let config = Config {
        server,
        signing,
        database: database?,
        policy,
        alerts,
        templates,
        runtimes: runtimes?,
        slack: slack?,
        discord: discord?,
        groups: groups?,
        persons: persons?,
        routes: routes?,
        warnings: Vec::new(),
    };
    platform_subjects::check(&config, check);
    warnings::of(&config, check);
    Some(config)
}

/// Installs of both chats stand in one list: cards, seats and pins are kept by the install's name.
fn one_name_each(check: &mut Check<'_>, slack: &[slack::Raw], discord: &[discord::Raw]) {
    for (n, raw) in discord.iter().enumerate() {
        let Some(name) = raw.name.as_deref() else { continue };
        if let Some(first) = slack.iter().position(|other| other.name.as_deref() == Some(name)) {
            check.error(
                &format!("discord[{n}].name"),
                format!("`{name}` is also the name of slack[{first}]"),
                "give each [[slack]] and [[discord]] its own name".into(),
            );
        }
    }
}

/// Checks every element, also after a faulty one; `None` when one of them could not be built.
fn each<R, T>(section: &str, list: Vec<R>, mut one: impl FnMut(R, &str) -> Option<T>) -> Option<Vec<T>> {
    let built: Vec<Option<T>> =
        list.into_iter().enumerate().map(|(n, raw)| one(raw, &format!("{section}[{n}]"))).collect();
    built.into_iter().collect()
}

//! The small company of the demo: who works there, their channels, and the configuration with
//! which Countersign serves them.
//!
//! Invariant: the people here and the configuration text say the same of who is who; secrets are
//! made anew for every run and stand in neither.

use super::discord::{self, DiscordWorld, acme as guild, perms};
use super::slack::{Channel, Install, SlackWorld, Team, TokenState, User, UserKind, acme};
use super::time::Time;
use std::fmt::Write as _;
use std::sync::Arc;

/// The app id of the demo's install.
pub const APP_ID: &str = acme::APP_ID;
/// The workspace.
pub const TEAM: &str = acme::TEAM;
/// Where releases are approved.
pub const RELEASES: &str = "C0RELEASES";
/// Where deletions are approved, by two people.
pub const OPS: &str = "C0OPS";
/// The audience of tokens for the demo's runtime.
pub const AUDIENCE: &str = "demo-agents";

/// Somebody the viewer of the page can be.
#[derive(Debug, Clone, Copy)]
pub struct Person {
    /// The Slack user id.
    pub user: &'static str,
    /// The subject by which the runtime knows them; `None` for those without a link.
    pub subject: Option<&'static str>,
    /// What to expect of a click by them, for the page.
    pub about: &'static str,
}

/// Everybody the viewer can be; the first is the one the page begins with.
pub const PEOPLE: [Person; 6] = [
    Person { user: "U0DANA", subject: Some("dana@example.com"), about: "may answer everything" },
    Person { user: "U0KIM", subject: Some("kim@example.com"), about: "may answer everything" },
    Person { user: "U0SAM", subject: Some("sam@example.com"), about: "on call: deletions only" },
    Person { user: "U0NOA", subject: None, about: "a colleague without a link" },
    Person { user: "U0GUEST", subject: None, about: "a guest of the workspace" },
    Person { user: "U0STRANGER", subject: None, about: "of another company" },
];

/// The demo's Slack, with this bot token and signing secret.
#[must_use]
pub fn slack(time: Time, bot_token: &str, signing_secret: &str) -> Arc<SlackWorld> {
    let user = |id, name, real_name| User::new(id, TEAM, name, real_name);
    let mut everybody = vec![acme::BOT_USER];
    everybody.extend(PEOPLE.iter().map(|person| person.user));
    let install = Install {
        app_id: APP_ID.into(),
        team: TEAM.into(),
        enterprise: None,
        org: false,
        bot_user: acme::BOT_USER.into(),
        bot_id: acme::BOT_ID.into(),
        scopes: acme::SCOPES.iter().map(|&scope| scope.into()).collect(),
        state: TokenState::Live,
    };
    SlackWorld::builder(time, APP_ID, signing_secret)
        .team(Team::new(TEAM, "Acme"))
        .team(Team::new("T0ELSEWHERE", "Elsewhere"))
        .user(user(acme::BOT_USER, "countersign", "Countersign").kind(UserKind::Bot))
        .user(user("U0DANA", "dana", "Dana Lee"))
        .user(user("U0KIM", "kim", "Kim Ito"))
        .user(user("U0SAM", "sam", "Sam Ortiz"))
        .user(user("U0NOA", "noa", "Noa Berg"))
        .user(user("U0GUEST", "gia", "Gia Costa").kind(UserKind::Guest))
        .user(User::new("U0STRANGER", "T0ELSEWHERE", "riley", "Riley Fox").kind(UserKind::Stranger))
        .channel(Channel::new(RELEASES, "releases", TEAM, &everybody).shared("T0ELSEWHERE"))
        .channel(Channel::new(OPS, "ops", TEAM, &everybody[..6]))
        .group("S0RELEASE", TEAM, &["U0DANA", "U0KIM"])
        .install(bot_token, install)
        .build()
}

/// Who of these people is who in the demo's Discord: the Slack user, the Discord account.
pub const ON_DISCORD: [(&str, &str); 4] =
    [("U0DANA", guild::DANA), ("U0KIM", guild::KIM), ("U0SAM", guild::SAM), ("U0NOA", guild::NOA)];

/// The demo's Discord, with this bot token and the seed of the key that signs its clicks.
#[must_use]
pub fn discord(time: Time, bot_token: &str, seed: [u8; 32]) -> Arc<DiscordWorld> {
    let guild = ON_DISCORD.iter().fold(
        discord::Guild::new(guild::GUILD, "Acme", guild::OLA)
            .role(discord::Role::new(guild::RELEASE, "release"))
            .role(discord::Role::new(guild::BOT_ROLE, "countersign").permissions(perms::BOT))
            .member(guild::BOT, &[guild::BOT_ROLE]),
        |made, (user, id)| {
            let release = matches!(*user, "U0DANA" | "U0KIM");
            made.member(id, if release { &[guild::RELEASE] } else { &[] })
        },
    );
    let person = |id, username, shown| discord::User::new(id, username, shown);
    DiscordWorld::builder(time)
        .user(person(guild::BOT, "countersign", "Countersign").bot())
        .user(person(guild::DANA, "dana.l", "Dana Lee"))
        .user(person(guild::KIM, "kim.i", "Kim Ito"))
        .user(person(guild::SAM, "sam.o", "Sam Ortiz"))
        .user(person(guild::NOA, "noa.b", "Noa Berg"))
        .user(person(guild::OLA, "ola.o", "Ola Owner"))
        .app(guild::APP, "countersign", guild::BOT, bot_token, seed)
        .guild(guild)
        .channel(discord::Channel::new(guild::RELEASES, "releases", guild::GUILD))
        .channel(discord::Channel::new(guild::OPS, "ops", guild::GUILD))
        .build()
}

const CONFIG: &str = include_str!("demo_config.toml");

/// The configuration of the service of a demo. `sandbox` and `service` are root addresses such as
/// `http://127.0.0.1:8080`, `listen` is what the service binds; the secrets it names are those of
/// `SandboxServer::secret`.
#[must_use]
pub fn config(sandbox: &str, service: &str, listen: &str, db_path: &str, key_path: &str) -> String {
    let values = [
        ("SANDBOX", sandbox),
        ("SERVICE", service),
        ("LISTEN", listen),
        ("DB_PATH", db_path),
        ("KEY_PATH", key_path),
        ("AUDIENCE", AUDIENCE),
        ("APP_ID", APP_ID),
    ];
    // One pass, so that nothing inside a value is taken for a placeholder.
    let mut out = String::with_capacity(CONFIG.len());
    let mut rest = CONFIG;
    while let Some((before, after)) = rest.split_once('@') {
        out.push_str(before);
        let named = after.split_once('@').and_then(|(name, tail)| {
            values.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value, tail))
        });
        if let Some((value, tail)) = named {
            out.push_str(&quoted(value));
            rest = tail;
        } else {
            out.push('@');
            rest = after;
        }
    }
    out + rest
}

/// The inside of a basic TOML string.
fn quoted(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for c in value.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if c.is_control() => {
                // Writing to a String does not fail.
                let _ = write!(out, "\\u{:04X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn filled() -> String {
        config(
            "http://127.0.0.1:7001",
            "http://127.0.0.1:7002",
            "127.0.0.1:7002",
            "/tmp/a \"b\\@LISTEN@.db",
            "/tmp/k",
        )
    }

    #[test]
    fn the_configuration_is_accepted_as_it_is() {
        let env = |name: &str| name.starts_with("DEMO_").then(|| format!("value-of-{name}-0123456789abcdef"));
        let parsed = Config::parse(&filled(), &env);
        assert!(parsed.is_ok(), "{:?}", parsed.err());
        let warnings = format!("{:?}", parsed.unwrap().warnings());
        assert_eq!(warnings, "[]");
    }

    #[test]
    fn values_stand_as_text_and_are_not_read_again() {
        let table: toml::Table = filled().parse().unwrap();
        assert_eq!(table["database"]["url"].as_str(), Some("sqlite:///tmp/a \"b\\@LISTEN@.db"));
        assert_eq!(table["server"]["listen"].as_str(), Some("127.0.0.1:7002"));
        assert_eq!(table["slack"][0]["api_url"].as_str(), Some("http://127.0.0.1:7001/slack/api"));
    }

    #[test]
    fn people_are_the_same_in_the_world_and_in_the_configuration() {
        let table: toml::Table = filled().parse().unwrap();
        let linked: Vec<(String, String)> = table["person"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| (one["subject"].as_str().unwrap().into(), one["slack"][0].as_str().unwrap().into()))
            .collect();
        let mut expected = Vec::new();
        let world = slack(Time::manual(0), "xoxb-1", "secret");
        for person in PEOPLE {
            assert!(world.users().iter().any(|user| user.id == person.user), "{person:?}");
            if let Some(subject) = person.subject {
                expected.push((subject.to_owned(), format!("acme:{}", person.user)));
            }
        }
        assert_eq!(linked, expected);
    }
}

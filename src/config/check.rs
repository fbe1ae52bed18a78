//! The parts that checks of several sections share: names, addresses, durations, subjects.
//!
//! Invariant: a check never stops at the first fault; it notes it and goes on with what is left.

use super::finding::Finding;
use super::secrets::Env;
use crate::domain::ids::{Platform, Subject};
use crate::domain::subject_form::SubjectForm;
use jiff::fmt::friendly::SpanParser;
use std::collections::BTreeSet;
use std::time::Duration;

/// The names that other sections may refer to, as written, also those of faulty elements.
#[derive(Debug, Default)]
pub(super) struct Names {
    pub(super) runtimes: BTreeSet<String>,
    pub(super) slack: BTreeSet<String>,
    pub(super) discord: BTreeSet<String>,
    pub(super) groups: BTreeSet<String>,
}

/// One walk over one configuration.
pub(super) struct Check<'a> {
    pub(super) env: &'a dyn Env,
    pub(super) names: Names,
    pub(super) findings: Vec<Finding>,
    pub(super) warnings: Vec<Finding>,
}

impl<'a> Check<'a> {
    pub(super) fn new(env: &'a dyn Env) -> Self {
        Self { env, names: Names::default(), findings: Vec::new(), warnings: Vec::new() }
    }

    pub(super) fn error(&mut self, key: &str, message: String, fix: String) {
        self.findings.push(Finding { key: key.to_owned(), message, fix });
    }

    pub(super) fn warn(&mut self, key: &str, message: String, fix: String) {
        self.warnings.push(Finding { key: key.to_owned(), message, fix });
    }

    /// Notes a missing key, unless something is already known to be wrong with it.
    pub(super) fn required<T>(&mut self, at: &str, key: &str, value: Option<T>, fix: &str) -> Option<T> {
        let path = format!("{at}.{key}");
        if value.is_none() && !self.has_finding(&path) {
            self.error(&path, "is missing".into(), fix.to_owned());
        }
        value
    }

    /// Whether a whole section could not be read.
    pub(super) fn faulty(&self, section: &str) -> bool {
        self.findings.iter().any(|finding| finding.key == section)
    }

    /// Whether something is known to be wrong with a key or below it.
    pub(super) fn has_finding(&self, path: &str) -> bool {
        self.findings.iter().any(|finding| {
            finding.key.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        })
    }

    /// A name of our own: it stands in places, in `when` and in metrics.
    pub(super) fn name(&mut self, at: &str, name: Option<String>) -> Option<String> {
        let name =
            self.required(at, "name", name, "add name = \"…\"; other sections refer to it by this name")?;
        let good = (1..=64).contains(&name.len())
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'));
        if !good {
            self.error(
                &format!("{at}.name"),
                format!("`{name}` is no name"),
                "use 1 to 64 letters, digits, `-`, `_` and `.`".into(),
            );
            return None;
        }
        Some(name)
    }

    /// Notes every name that an earlier element of the same kind already has.
    pub(super) fn unique<'n>(
        &mut self,
        section: &str,
        names: impl Iterator<Item = Option<&'n str>>,
    ) -> BTreeSet<String> {
        let mut seen: Vec<(usize, &str)> = Vec::new();
        for (at, name) in names.enumerate() {
            let Some(name) = name else { continue };
            if let Some((first, _)) = seen.iter().find(|(_, other)| *other == name) {
                self.error(
                    &format!("{section}[{at}].name"),
                    format!("`{name}` is also the name of {section}[{first}]"),
                    format!("give each [[{section}]] its own name"),
                );
            } else {
                seen.push((at, name));
            }
        }
        seen.into_iter().map(|(_, name)| name.to_owned()).collect()
    }

    /// A duration such as `30s`. `None` when it cannot be read (noted) or is below `least`.
    pub(super) fn duration(
        &mut self,
        key: &str,
        text: Option<&str>,
        default: Duration,
        least: Duration,
    ) -> Duration {
        let Some(text) = text else { return default };
        match SpanParser::new().parse_unsigned_duration(text) {
            Ok(value) if value >= least => value,
            Ok(_) => {
                self.error(key, format!("`{text}` is too short"), format!("write at least \"{least:?}\""));
                default
            }
            Err(_) => {
                self.error(
                    key,
                    format!("`{text}` is no duration"),
                    "write a number with a unit: \"30s\", \"5m\", \"1h 30m\"".into(),
                );
                default
            }
        }
    }

    /// Notes a text that is empty.
    pub(super) fn filled(&mut self, key: &str, text: &str) -> bool {
        let filled = !text.trim().is_empty();
        if !filled {
            self.error(key, "is empty".into(), "write a text, or leave the key out".into());
        }
        filled
    }

    pub(super) fn subject(&mut self, key: &str, text: &str) -> Option<Subject> {
        match Subject::parse(text) {
            Ok(subject) => Some(subject),
            Err(why) => {
                self.error(
                    key,
                    why.to_string(),
                    "write the identity by which the runtime knows the person".into(),
                );
                None
            }
        }
    }

    /// Subjects of a list; a repeated one is noted.
    pub(super) fn subjects(&mut self, key: &str, texts: &[String]) -> Vec<Subject> {
        let mut subjects = Vec::new();
        for (at, text) in texts.iter().enumerate() {
            let path = format!("{key}[{at}]");
            let Some(subject) = self.subject(&path, text) else { continue };
            if subjects.contains(&subject) {
                self.error(&path, format!("`{text}` is named twice"), "remove one of the two".into());
            } else {
                subjects.push(subject);
            }
        }
        subjects
    }

    /// How members of an install are named who have no other link.
    pub(super) fn subject_form(&mut self, key: &str, platform: Platform, text: &str) -> Option<SubjectForm> {
        match SubjectForm::parse(platform, text) {
            Ok(form) => Some(form),
            Err(why) => {
                let sample = match platform {
                    Platform::Slack => "slack:{team_id}:{user_id}",
                    Platform::Discord => "discord:{user_id}",
                };
                self.error(key, format!("`{text}`: {why}"), format!("write \"{sample}\""));
                None
            }
        }
    }

    /// A number by which our own pacing is multiplied.
    pub(super) fn pace(
        &mut self,
        key: &str,
        pace: Option<f64>,
        api_url: Option<&url::Url>,
        platform: &str,
    ) -> f64 {
        let pace = pace.unwrap_or(1.0);
        let on_this_machine = api_url.is_some_and(crate::net::is_loopback);
        if !pace.is_finite() || pace <= 0.0 {
            let fix = "write a number above 0; 1 is the usual pace";
            self.error(key, format!("`{pace}` is no pace"), fix.into());
        } else if pace > 1.0 && !on_this_machine && api_url.is_some() {
            let fix = "write 1 or less; more is for an api_url on this machine";
            self.error(key, format!("`{pace}` is faster than {platform} allows"), fix.into());
        }
        pace
    }

    /// One of Discord's ids, a number in quotes.
    pub(super) fn snowflake(&mut self, key: &str, id: &str, what: &str) -> bool {
        let good = is_snowflake(id);
        if !good {
            self.error(
                key,
                format!("`{id}` is no id of {what}"),
                "copy the id in Discord (Developer Mode): 17 to 20 digits, in quotes".into(),
            );
        }
        good
    }

    /// `<install>:<role id>`, the install being a configured [[discord]].
    pub(super) fn discord_role(&mut self, key: &str, text: &str) -> Option<(String, String)> {
        let Some((install, role)) = text.split_once(':').filter(|(_, role)| is_snowflake(role)) else {
            self.error(
                key,
                format!("`{text}` does not name a Discord role"),
                "write the name of a [[discord]] and the role's id: \"guild:2200000000000000002\"".into(),
            );
            return None;
        };
        self.discord_install(key, install)?;
        Some((install.to_owned(), role.to_owned()))
    }

    /// `<install>:<id>`, the install being a configured [[slack]].
    pub(super) fn slack_ref(&mut self, key: &str, text: &str, id: SlackId) -> Option<(String, String)> {
        let good = |part: &str| {
            part.len() > 1
                && part.starts_with(id.heads())
                && part.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit())
        };
        let Some((install, user)) = text.split_once(':').filter(|(_, part)| good(part)) else {
            self.error(
                key,
                format!("`{text}` does not name {}", id.what()),
                format!("write the name of a [[slack]] and the id: \"{}\"", id.sample()),
            );
            return None;
        };
        self.slack_install(key, install)?;
        Some((install.to_owned(), user.to_owned()))
    }

    /// The name of a configured group, in places and mentions.
    pub(super) fn group(&mut self, key: &str, name: &str) -> Option<()> {
        if self.names.groups.contains(name) {
            return Some(());
        }
        let fix = known(&self.names.groups, "add a [[group]] with this name");
        self.error(key, format!("no [[group]] is named `{name}`"), fix);
        None
    }

    pub(super) fn discord_install(&mut self, key: &str, install: &str) -> Option<()> {
        if self.names.discord.contains(install) {
            return Some(());
        }
        let fix = known(&self.names.discord, "add a [[discord]] with this name");
        self.error(key, format!("no [[discord]] is named `{install}`"), fix);
        None
    }

    pub(super) fn slack_install(&mut self, key: &str, install: &str) -> Option<()> {
        if self.names.slack.contains(install) {
            return Some(());
        }
        let fix = known(&self.names.slack, "add a [[slack]] with this name");
        self.error(key, format!("no [[slack]] is named `{install}`"), fix);
        None
    }
}

fn is_snowflake(id: &str) -> bool {
    crate::domain::place::is_snowflake(id)
}

/// The kinds of Slack ids that the configuration names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SlackId {
    User,
    Usergroup,
}

impl SlackId {
    fn heads(self) -> &'static [char] {
        match self {
            Self::User => &['U', 'W'],
            Self::Usergroup => &['S'],
        }
    }

    fn what(self) -> &'static str {
        match self {
            Self::User => "a Slack user",
            Self::Usergroup => "a Slack user group",
        }
    }

    fn sample(self) -> &'static str {
        match self {
            Self::User => "acme:U0DANA",
            Self::Usergroup => "acme:S0RELEASE",
        }
    }
}

/// The fix for a reference to something that is not there.
pub(super) fn known(names: &BTreeSet<String>, otherwise: &str) -> String {
    if names.is_empty() {
        return otherwise.to_owned();
    }
    let list: Vec<&str> = names.iter().map(String::as_str).collect();
    format!("use one of: {}; or {otherwise}", list.join(", "))
}

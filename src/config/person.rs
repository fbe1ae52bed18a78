//! `[[person]]`: whose chat account is whose.
//!
//! Invariant: one chat account belongs to one subject.

use super::check::{Check, SlackId};
use crate::domain::ids::Subject;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

/// A configured link between a subject and chat accounts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    pub subject: Subject,
    pub slack: Vec<SlackAccount>,
    /// Discord user ids.
    pub discord: Vec<String>,
}

/// An account of one Slack install's enterprise or team.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlackAccount {
    /// The name of the `[[slack]]`.
    pub install: String,
    /// `U…` or `W…`
    pub user: String,
}

/// A configured link between a subject and chat accounts. It wins over any other.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Person")]
pub(super) struct Raw {
    /// The identity by which runtimes know the person.
    #[schemars(required)]
    subject: Option<String>,
    /// Slack accounts, `<name of the [[slack]]>:U…`.
    slack: Option<Vec<String>>,
    /// Discord accounts, by user id; they count in every `[[discord]]`.
    discord: Option<Vec<String>>,
}

/// What earlier persons took.
#[derive(Debug, Default)]
pub(super) struct Taken {
    accounts: BTreeMap<(String, String), String>,
    subjects: BTreeMap<String, String>,
}

impl Raw {
    pub(super) fn check(self, at: &str, taken: &mut Taken, check: &mut Check<'_>) -> Option<Person> {
        let subject = check
            .required(at, "subject", self.subject, "add the identity by which runtimes know the person")
            .and_then(|text| check.subject(&format!("{at}.subject"), &text));
        if let Some(subject) = &subject {
            if let Some(first) = taken.subjects.get(subject.as_str()) {
                let fix = format!("list all accounts of a person in one [[person]]: move these to {first}");
                check.error(&format!("{at}.subject"), format!("`{subject}` is also {first}"), fix);
            } else {
                taken.subjects.insert(subject.as_str().to_owned(), at.to_owned());
            }
        }
        let accounts = self.slack.unwrap_or_default();
        let discord_accounts = self.discord.unwrap_or_default();
        if accounts.is_empty() && discord_accounts.is_empty() {
            let fix = "add slack = [\"<name>:U…\"] or discord = [\"<user id>\"]";
            check.warn(at, "the person has no chat account".into(), fix.into());
        }
        let mut slack = Vec::new();
        for (n, text) in accounts.iter().enumerate() {
            let path = format!("{at}.slack[{n}]");
            let Some((install, user)) = check.slack_ref(&path, text, SlackId::User) else { continue };
            let pair = (install.clone(), user.clone());
            if let Some(first) = taken.accounts.get(&pair) {
                let message = format!("`{text}` is also in {first}; one chat account is one person");
                check.error(&path, message, "remove it from one of the two".into());
            } else {
                taken.accounts.insert(pair, at.to_owned());
                slack.push(SlackAccount { install, user });
            }
        }
        let mut discord = Vec::new();
        for (n, id) in discord_accounts.into_iter().enumerate() {
            let path = format!("{at}.discord[{n}]");
            if !check.snowflake(&path, &id, "a user") {
                continue;
            }
            // No install has an empty name: Discord accounts are the same everywhere.
            let pair = (String::new(), id.clone());
            if let Some(first) = taken.accounts.get(&pair) {
                let message = format!("`{id}` is also in {first}; one chat account is one person");
                check.error(&path, message, "remove it from one of the two".into());
            } else {
                taken.accounts.insert(pair, at.to_owned());
                discord.push(id);
            }
        }
        Some(Person { subject: subject?, slack, discord })
    }
}

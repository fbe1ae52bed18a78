//! Which places an interaction goes to: the first route that matches.
//!
//! Invariant: an interaction without a matching route is posted nowhere, and that is seen (listed
//! by `open`, counted, alerted), never silent.

use crate::domain::card::Asks;
use crate::domain::form::{Form, Kind, canonical, sha256_hex};
use crate::domain::ids::{GroupName, InteractionKey, Subject};
use crate::domain::pattern::Pattern;
use crate::domain::place::Place;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// What a route asks of an interaction. An absent pattern asks nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct When {
    pub runtime: Option<Pattern>,
    pub agent: Option<Pattern>,
    pub kind: Option<Kind>,
    pub server: Option<Pattern>,
    pub tool: Option<Pattern>,
}

/// Who may answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Approver {
    /// The subject for whom the agent works.
    Owner,
    Group(GroupName),
    /// Whoever is linked; in no configuration, for test cards.
    Linked,
}

impl Approver {
    pub fn as_str(&self) -> &str {
        match self {
            Self::Owner => "owner",
            Self::Group(name) => name.as_str(),
            Self::Linked => "any linked person",
        }
    }
}

/// A named set of people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Group {
    pub name: GroupName,
    /// Count for clicks from everywhere.
    pub subjects: Vec<Subject>,
    /// `(install, user group id)`: counts only for clicks from that install.
    pub slack_usergroups: Vec<(String, String)>,
    /// `(install, role id)`: counts only for clicks from that install.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub discord_roles: Vec<(String, String)>,
}

impl Group {
    /// The chats' own groups in it, `(install, id)`: Slack user groups and Discord roles.
    pub fn of_chats(&self) -> impl Iterator<Item = &(String, String)> {
        self.slack_usergroups.iter().chain(&self.discord_roles)
    }

    /// Those of one install.
    pub fn of_chat<'g>(&'g self, install: &'g str) -> impl Iterator<Item = &'g str> {
        self.of_chats().filter(move |(of, _)| of == install).map(|(_, id)| id.as_str())
    }
}

/// What the cards of one thread have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ThreadBy {
    /// One thread for each A2A context and place.
    Context,
}

/// Where a kind of interaction goes, and who may answer it there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Route {
    pub when: When,
    pub to: Vec<Place>,
    pub fallback: Vec<Place>,
    /// Groups whose people are pinged by a card's first post.
    pub mention: Vec<GroupName>,
    /// What gathers cards of one place in a thread.
    pub thread_by: Option<ThreadBy>,
    /// Empty: nobody may answer.
    pub approvers: Vec<Approver>,
    /// How many distinct subjects must approve; at least 1.
    pub approvals: u32,
    /// Whether the owner may answer.
    pub self_approval: bool,
    /// `Approve` asks once more.
    pub confirm: bool,
    /// A denial needs a reason.
    pub reason_on_deny: bool,
}

impl Route {
    /// What it wants of a card's controls.
    #[must_use]
    pub fn asks(&self) -> Asks {
        Asks { confirm: self.confirm, reason_on_deny: self.reason_on_deny }
    }
}

impl When {
    /// Whether the interaction fits. A pattern for a fact that the interaction lacks does not fit.
    #[must_use]
    pub fn fits(&self, key: &InteractionKey, form: &Form) -> bool {
        let text = |pattern: &Option<Pattern>, value: Option<&str>| match (pattern, value) {
            (None, _) => true,
            (Some(pattern), Some(value)) => pattern.fits(value),
            (Some(_), None) => false,
        };
        text(&self.runtime, Some(key.runtime.as_str()))
            && text(&self.agent, Some(&key.agent))
            && self.kind.as_ref().is_none_or(|kind| *kind == form.kind)
            && text(&self.server, form.fact("server"))
            && text(&self.tool, form.fact("tool"))
    }
}

/// The route of an interaction: the first that fits.
#[must_use]
pub fn route<'r>(routes: &'r [Route], key: &InteractionKey, form: &Form) -> Option<&'r Route> {
    routes.iter().find(|route| route.when.fits(key, form))
}

/// A hash of the matched route and its groups as configured: the audit log's `policy`.
#[must_use]
pub fn policy_hash(route: &Route, groups: &[Group]) -> String {
    let named: Vec<&Group> = groups
        .iter()
        .filter(|group| {
            route.approvers.iter().any(|a| matches!(a, Approver::Group(name) if *name == group.name))
        })
        .collect();
    sha256_hex(canonical(&json!({ "route": route, "groups": named })).as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::form::Fact;
    use crate::domain::ids::RuntimeName;

    fn key() -> InteractionKey {
        InteractionKey {
            runtime: RuntimeName::new("prod"),
            agent: "release".into(),
            task: "t1".into(),
            external: "e1".into(),
        }
    }

    fn form(facts: &[(&str, &str)]) -> Form {
        Form {
            kind: Kind::Approval,
            title: String::new(),
            prompt: String::new(),
            facts: facts.iter().map(|(l, v)| Fact { label: (*l).into(), value: (*v).into() }).collect(),
            questions: vec![],
            arguments_withheld: true,
        }
    }

    fn to(place: &str, when: When) -> Route {
        Route {
            when,
            to: vec![Place::parse(place).unwrap()],
            fallback: vec![],
            mention: vec![],
            thread_by: None,
            approvers: vec![],
            approvals: 1,
            self_approval: true,
            confirm: false,
            reason_on_deny: false,
        }
    }

    #[test]
    fn the_first_match_wins_and_no_match_is_none() {
        let tool = |text: &str| When { tool: Some(Pattern::new(text)), ..When::default() };
        let routes = vec![
            to("slack:acme:#prod", tool("deploy_*")),
            to("slack:acme:#any-tool", tool("*")),
            to("slack:acme:#questions", When { kind: Some(Kind::Question), ..When::default() }),
        ];
        let found = |facts: &[(&str, &str)]| {
            route(&routes, &key(), &form(facts)).map(|r| r.to.first().unwrap().to_string())
        };
        assert_eq!(found(&[("tool", "deploy_eu")]), Some("slack:acme:#prod".into()));
        assert_eq!(found(&[("tool", "restart")]), Some("slack:acme:#any-tool".into()));
        // An approval without a tool fits no route that names a tool, not even `*`.
        assert_eq!(found(&[]), None);
    }

    #[test]
    fn the_policy_hash_changes_with_the_route_and_its_groups_only() {
        let group = |name: &str, subject: &str| Group {
            name: GroupName::new(name),
            subjects: vec![Subject::parse(subject).unwrap()],
            slack_usergroups: vec![],
            discord_roles: vec![],
        };
        let mut r = to("slack:acme:#x", When::default());
        r.approvers = vec![Approver::Group(GroupName::new("a"))];
        let base = policy_hash(&r, &[group("a", "ann"), group("b", "bob")]);
        assert_eq!(policy_hash(&r, &[group("a", "ann"), group("b", "eve")]), base);
        assert_ne!(policy_hash(&r, &[group("a", "eve"), group("b", "bob")]), base);
        r.approvals = 2;
        assert_ne!(policy_hash(&r, &[group("a", "ann"), group("b", "bob")]), base);
    }
}

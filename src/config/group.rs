//! `[[group]]`: people who may approve.

use super::check::{Check, SlackId};
use crate::domain::ids::GroupName;
use crate::domain::routing::Group;
use schemars::JsonSchema;
use serde::Deserialize;

/// People who may approve, by subject or by their chat's own groups.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Group")]
pub(super) struct Raw {
    /// Its name in `approvers`.
    #[schemars(required)]
    pub(super) name: Option<String>,
    /// Members by subject; they count from every chat.
    subjects: Option<Vec<String>>,
    /// Slack user groups, `<name of the [[slack]]>:S…`; they count for clicks from there only.
    slack_usergroups: Option<Vec<String>>,
    /// Discord roles, `<name of the [[discord]]>:<role id>`; they count for clicks from there only.
    discord_roles: Option<Vec<String>>,
}

impl Raw {
    pub(super) fn check(self, at: &str, check: &mut Check<'_>) -> Option<Group> {
        let name = check.name(at, self.name);
        if name.as_deref() == Some("owner") {
            check.error(
                &format!("{at}.name"),
                "`owner` already means the person an agent works for".into(),
                "choose another name".into(),
            );
        }
        let texts = self.subjects.unwrap_or_default();
        let subjects = check.subjects(&format!("{at}.subjects"), &texts);
        let usergroups = self.slack_usergroups.unwrap_or_default();
        let roles = self.discord_roles.unwrap_or_default();
        if texts.is_empty() && usergroups.is_empty() && roles.is_empty() {
            let fix = "add `subjects`, `slack_usergroups` or `discord_roles`";
            check.warn(at, "the group has no members".into(), fix.into());
        }
        let mut slack_usergroups = Vec::new();
        for (n, text) in usergroups.iter().enumerate() {
            let path = format!("{at}.slack_usergroups[{n}]");
            if let Some(pair) = check.slack_ref(&path, text, SlackId::Usergroup) {
                slack_usergroups.push(pair);
            }
        }
        let mut discord_roles = Vec::new();
        for (n, text) in roles.iter().enumerate() {
            if let Some(pair) = check.discord_role(&format!("{at}.discord_roles[{n}]"), text) {
                discord_roles.push(pair);
            }
        }
        Some(Group { name: GroupName::new(name?), subjects, slack_usergroups, discord_roles })
    }
}

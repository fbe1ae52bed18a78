//! `[policy]`: what holds for every route.

use super::check::Check;
use schemars::JsonSchema;
use serde::Deserialize;
use std::time::Duration;

/// What holds for every route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// While something of a card is cut, Approve needs a person who has seen all of it.
    pub require_full_view: bool,
    /// How long an answer is tried, from the click on.
    pub deliver_within: Duration,
    /// Members of groups read longer ago than this are read again before they decide.
    pub group_max_age: Duration,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            require_full_view: true,
            deliver_within: Duration::from_hours(1),
            group_max_age: Duration::from_mins(5),
        }
    }
}

/// What holds for every route.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Policy")]
pub(super) struct Raw {
    /// While something of a card is cut, `Approve` works only for a person who has seen all of
    /// it. Default `true`.
    require_full_view: Option<bool>,
    /// How long an answer is tried, counted from the click. Default `1h`.
    deliver_within: Option<String>,
    /// Members of user groups that were read longer ago are read again before they decide.
    /// Default `5m`.
    group_max_age: Option<String>,
}

impl Raw {
    pub(super) fn check(self, check: &mut Check<'_>) -> Policy {
        let Self { require_full_view, deliver_within, group_max_age } = self;
        let default = Policy::default();
        let second = Duration::from_secs(1);
        Policy {
            require_full_view: require_full_view.unwrap_or(default.require_full_view),
            deliver_within: check.duration(
                "policy.deliver_within",
                deliver_within.as_deref(),
                default.deliver_within,
                second,
            ),
            group_max_age: check.duration(
                "policy.group_max_age",
                group_max_age.as_deref(),
                default.group_max_age,
                Duration::ZERO,
            ),
        }
    }
}

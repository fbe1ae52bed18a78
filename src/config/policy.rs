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
    /// How many open interactions one place shows at once; more wait.
    pub max_open_per_place: u32,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            require_full_view: true,
            deliver_within: Duration::from_hours(1),
            group_max_age: Duration::from_mins(5),
            max_open_per_place: 50,
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
    /// How many open interactions one place shows at once. More wait in the order first seen, and a notice
    /// there says how many. Default 50.
    #[schemars(range(min = 1))]
    max_open_per_place: Option<u32>,
}

impl Raw {
    pub(super) fn check(self, check: &mut Check<'_>) -> Policy {
        let Self { require_full_view, deliver_within, group_max_age, max_open_per_place } = self;
        if max_open_per_place == Some(0) {
            check.error(
                "policy.max_open_per_place",
                "no card at all could be posted".into(),
                "write 1 or more".into(),
            );
        }
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
            max_open_per_place: max_open_per_place.unwrap_or(default.max_open_per_place),
        }
    }
}

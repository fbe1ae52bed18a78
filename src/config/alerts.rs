//! `[alerts]`: where operators are told.

use super::check::Check;
use super::place;
use crate::domain::place::Place;
use schemars::JsonSchema;
use serde::Deserialize;

/// Where operators are told that something needs them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Alerts {
    pub to: Vec<Place>,
}

/// Where operators are told that something needs them. Without it an alert is an ERROR log, a metric and a
/// reason in `/readyz`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Alerts")]
pub(super) struct Raw {
    /// Places, as in a route; not `dm:owner`.
    to: Option<Vec<String>>,
}

impl Raw {
    pub(super) fn check(self, check: &mut Check<'_>) -> Alerts {
        Alerts { to: place::for_alerts(check, "alerts.to", &self.to.unwrap_or_default()) }
    }
}

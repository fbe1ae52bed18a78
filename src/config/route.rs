//! `[[route]]`: where an interaction goes and who may answer it. The first that matches wins.
//!
//! Invariant: default deny. A route without approvers is accepted, allows nobody and is a warning.

use super::check::{Check, known};
use super::runtime;
use crate::domain::form::Kind;
use crate::domain::ids::GroupName;
use crate::domain::pattern::Pattern;
use crate::domain::place::{Place, PlaceError};
use crate::domain::routing::{Approver, Route, When};
use schemars::JsonSchema;
use serde::Deserialize;

/// Where an interaction goes and who may answer it. The first route that matches wins.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Route")]
pub(super) struct Raw {
    /// What the route is for. `*` stands for any characters; a key that is left out matches
    /// everything.
    when: Option<RawWhen>,
    /// Places: `slack:<name>:#channel` or `slack:<name>:C…`.
    #[schemars(required)]
    to: Option<Vec<String>>,
    /// Places used when one of `to` is gone or refuses.
    fallback: Option<Vec<String>>,
    /// Who may answer: names of groups, and `owner` for the person the agent works for. Without
    /// it nobody may.
    approvers: Option<Vec<String>>,
    /// How many different people have to approve. Default 1.
    #[schemars(range(min = 1))]
    approvals: Option<u32>,
    /// Whether the person the agent works for may answer. Default `true`.
    self_approval: Option<bool>,
}

/// What a route is for.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
struct RawWhen {
    /// Name of the runtime.
    runtime: Option<String>,
    /// Name of the agent.
    agent: Option<String>,
    /// `approval`, `question` or `connection`.
    kind: Option<String>,
    /// The server whose tool asks.
    server: Option<String>,
    /// The tool that asks.
    tool: Option<String>,
}

const KINDS: [(&str, Kind); 3] =
    [("approval", Kind::Approval), ("question", Kind::Question), ("connection", Kind::Connection)];

impl Raw {
    pub(super) fn check(self, at: &str, check: &mut Check<'_>) -> Route {
        let when = when(check, &format!("{at}.when"), self.when.unwrap_or_default());
        let to = check
            .required(at, "to", self.to, "add a place: to = [\"slack:<name>:#channel\"]")
            .unwrap_or_default();
        let mut seen = Vec::new();
        let path = format!("{at}.to");
        let places = places(check, &path, &to, &mut seen);
        if to.is_empty() && !check.has_finding(&path) {
            check.error(&path, "names no place".into(), "add a place: \"slack:<name>:#channel\"".into());
        }
        let fallback =
            self::places(check, &format!("{at}.fallback"), &self.fallback.unwrap_or_default(), &mut seen);
        let approvers = approvers(check, at, &self.approvers.unwrap_or_default());
        let approvals = self.approvals.unwrap_or(1);
        if approvals == 0 {
            check.error(
                &format!("{at}.approvals"),
                "no approval at all is not an approval".into(),
                "write 1 or more".into(),
            );
        }
        let self_approval = self.self_approval.unwrap_or(true);
        if !self_approval && approvers == [Approver::Owner] {
            check.error(
                &format!("{at}.self_approval"),
                "only `owner` may approve here, and self_approval = false forbids it: nobody could".into(),
                "add a group to approvers, or remove self_approval".into(),
            );
        }
        Route { when, to: places, fallback, approvers, approvals, self_approval }
    }
}

fn when(check: &mut Check<'_>, at: &str, raw: RawWhen) -> When {
    let RawWhen { runtime, agent, kind, server, tool } = raw;
    for (key, text) in
        [("runtime", &runtime), ("agent", &agent), ("kind", &kind), ("server", &server), ("tool", &tool)]
    {
        if text.as_ref().is_some_and(String::is_empty) {
            let path = format!("{at}.{key}");
            check.error(
                &path,
                "an empty pattern matches nothing".into(),
                "write a name or `*`, or leave the key out".into(),
            );
        }
    }
    if let Some(name) = runtime.as_ref().filter(|name| !name.is_empty() && !name.contains('*')) {
        runtime::exists(check, &format!("{at}.runtime"), name);
    }
    let pattern = |text: Option<String>| text.filter(|text| !text.is_empty()).map(Pattern::new);
    let kind =
        kind.filter(|text| !text.is_empty()).and_then(|text| self::kind(check, &format!("{at}.kind"), &text));
    let (runtime, agent) = (pattern(runtime), pattern(agent));
    let when = When { runtime, agent, kind, server: pattern(server), tool: pattern(tool) };
    if let Some(runtime) = &when.runtime {
        let wild = runtime.as_str().contains('*');
        if wild && !check.names.runtimes.iter().any(|name| runtime.fits(name)) {
            let fix = known(&check.names.runtimes, "add a [[runtime]] that it matches");
            check.warn(
                &format!("{at}.runtime"),
                format!("`{}` matches no [[runtime]]", runtime.as_str()),
                fix,
            );
        }
    }
    when
}

/// A kind of interaction; `None` for all of them.
fn kind(check: &mut Check<'_>, key: &str, text: &str) -> Option<Kind> {
    let pattern = Pattern::new(text);
    let fitting: Vec<Kind> =
        KINDS.iter().filter(|(word, _)| pattern.fits(word)).map(|(_, kind)| kind.clone()).collect();
    match fitting.as_slice() {
        [kind] => return Some(kind.clone()),
        [_, _] => check.error(
            key,
            format!("`{text}` means two kinds of interaction"),
            "write one route for each kind, or `*` for all".into(),
        ),
        [] => check.error(
            key,
            format!("`{text}` is no kind of interaction"),
            "write \"approval\", \"question\" or \"connection\"".into(),
        ),
        _ => {}
    }
    None
}

fn places(check: &mut Check<'_>, key: &str, texts: &[String], seen: &mut Vec<Place>) -> Vec<Place> {
    let mut places = Vec::new();
    for (n, text) in texts.iter().enumerate() {
        let path = format!("{key}[{n}]");
        match Place::parse(text) {
            Ok(place) if seen.contains(&place) => {
                check.error(
                    &path,
                    format!("`{text}` is named twice in this route"),
                    "remove one of the two".into(),
                );
            }
            Ok(place) => {
                seen.push(place.clone());
                if check.slack_install(&path, &place.install).is_some() && channel_name(check, &path, text) {
                    places.push(place);
                }
            }
            Err(PlaceError::NotYet(what)) => check.error(
                &path,
                format!("`{text}`: {what} is not part of this version yet"),
                "name a channel: \"slack:<name>:#channel\" or \"slack:<name>:C…\"".into(),
            ),
            Err(PlaceError::Form) => check.error(
                &path,
                format!("`{text}` is no place"),
                "write \"slack:<name>:#channel\" or \"slack:<name>:C…\"".into(),
            ),
        }
    }
    places
}

/// Slack has no upper case, spaces or full stops in channel names: one would never be found.
fn channel_name(check: &mut Check<'_>, key: &str, text: &str) -> bool {
    let Some((_, name)) = text.split_once('#') else { return true };
    let good = name
        .chars()
        .all(|c| !c.is_whitespace() && !c.is_uppercase() && !c.is_control() && c != '.' && c != '#');
    if !good {
        check.error(
            key,
            format!("`#{name}` cannot be the name of a Slack channel"),
            "write it as Slack shows it: lower case, without spaces".into(),
        );
    }
    good
}

fn approvers(check: &mut Check<'_>, at: &str, texts: &[String]) -> Vec<Approver> {
    let mut approvers = Vec::new();
    for (n, text) in texts.iter().enumerate() {
        let path = format!("{at}.approvers[{n}]");
        let approver =
            if text == "owner" { Approver::Owner } else { Approver::Group(GroupName::new(text.as_str())) };
        if approvers.contains(&approver) {
            check.error(&path, format!("`{text}` is named twice"), "remove one of the two".into());
        } else if text != "owner" && !check.names.groups.contains(text) {
            let fix = known(
                &check.names.groups,
                "add a [[group]] with this name; \"owner\" is the person the agent works for",
            );
            check.error(&path, format!("no [[group]] is named `{text}`"), fix);
        } else {
            approvers.push(approver);
        }
    }
    approvers
}

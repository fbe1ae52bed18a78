//! `[[route]]`: where an interaction goes and who may answer it. The first that matches wins.
//!
//! Invariant: default deny. A route without approvers is accepted, allows nobody and is a warning.

use super::check::{Check, known};
use super::place::{self, Seen};
use super::runtime;
use crate::domain::form::Kind;
use crate::domain::ids::GroupName;
use crate::domain::pattern::Pattern;
use crate::domain::routing::{Approver, Route, ThreadBy, When};
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
    /// Places: `slack:<name>:#channel`, `slack:<name>:C…`, `slack:<name>:@U…` (one person),
    /// `discord:<name>:<channel or thread id>`, `discord:<name>:@<user id>` (one person), `dm:owner` (the
    /// person the agent works for) or `dm:<group>` (each linked member).
    #[schemars(required)]
    to: Option<Vec<String>>,
    /// Places used when one of `to` is gone or refuses.
    fallback: Option<Vec<String>>,
    /// Groups whose people are pinged when a card is posted.
    mention: Option<Vec<String>>,
    /// Who may answer: names of groups, and `owner` for the person the agent works for. Without
    /// it nobody may.
    approvers: Option<Vec<String>>,
    /// How many different people have to approve. Default 1.
    #[schemars(range(min = 1))]
    approvals: Option<u32>,
    /// Whether the person the agent works for may answer. Default `true`.
    self_approval: Option<bool>,
    /// Whether `Approve` asks once more before it counts. Default `false`.
    confirm: Option<bool>,
    /// Whether a denial needs a reason; `Deny` without one is then not offered. Default `false`.
    reason_on_deny: Option<bool>,
    /// `context`: one thread for each A2A context and place. Left out: every card stands by itself.
    #[schemars(extend("enum" = ["context"]))]
    thread_by: Option<String>,
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
        let mut seen = Seen::default();
        let path = format!("{at}.to");
        let places = place::list(check, &path, &to, &mut seen);
        if to.is_empty() && !check.has_finding(&path) {
            check.error(&path, "names no place".into(), "add a place: \"slack:<name>:#channel\"".into());
        }
        let fallback =
            place::list(check, &format!("{at}.fallback"), &self.fallback.unwrap_or_default(), &mut seen);
        let mention = mention(check, at, &self.mention.unwrap_or_default());
        let thread_by = thread_by(check, &format!("{at}.thread_by"), self.thread_by.as_deref());
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
        Route {
            when,
            to: places,
            fallback,
            mention,
            thread_by,
            approvers,
            approvals,
            self_approval,
            confirm: self.confirm.unwrap_or(false),
            reason_on_deny: self.reason_on_deny.unwrap_or(false),
        }
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

fn mention(check: &mut Check<'_>, at: &str, texts: &[String]) -> Vec<GroupName> {
    let mut groups = Vec::new();
    for (n, text) in texts.iter().enumerate() {
        let path = format!("{at}.mention[{n}]");
        let group = GroupName::new(text.as_str());
        if groups.contains(&group) {
            check.error(&path, format!("`{text}` is named twice"), "remove one of the two".into());
        } else if check.group(&path, text).is_some() {
            groups.push(group);
        }
    }
    groups
}

fn thread_by(check: &mut Check<'_>, key: &str, word: Option<&str>) -> Option<ThreadBy> {
    match word {
        None => None,
        Some("context") => Some(ThreadBy::Context),
        Some(other) => {
            check.error(
                key,
                format!("`{other}` gathers nothing"),
                "write \"context\", or leave the key out".into(),
            );
            None
        }
    }
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

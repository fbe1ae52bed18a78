//! What is allowed but probably not meant. Looked for in a configuration without errors.

use super::check::Check;
use super::{AnswerWith, Config};
use crate::domain::form::Kind;
use crate::domain::pattern::Pattern;
use crate::domain::place::Place;
use crate::domain::routing::{Approver, Route, When};
use std::collections::BTreeSet;

pub(super) fn of(config: &Config, check: &mut Check<'_>) {
    empty(config, check);
    for (n, route) in config.routes.iter().enumerate() {
        let at = format!("route[{n}]");
        if route.approvers.is_empty() {
            check.warn(
                &format!("{at}.approvers"),
                "the route names no approvers: nobody may answer what it posts".into(),
                "add the names of groups, or \"owner\"".into(),
            );
        }
        too_many_approvals(config, &at, route, check);
        roles_only(config, &at, route, check);
        let earlier = config.routes.iter().take(n).enumerate();
        if let Some((first, _)) = earlier.into_iter().find(|(_, other)| covers(&other.when, &route.when)) {
            check.warn(
                &at,
                format!("route[{first}] matches everything that this route does: it is never used"),
                format!("move it before route[{first}], or remove it"),
            );
        }
        if let Some((later, _)) = falls_to_weaker(config, n, route) {
            check.warn(
                &format!("{at}.when.tool"),
                format!(
                    "an approval whose runtime names no tool or server does not match here and falls to route[{later}], which asks for less"
                ),
                format!("make route[{later}] as strict, or add a strict route without `tool` before it"),
            );
        }
    }
    for (n, runtime) in config.runtimes.iter().enumerate() {
        let named = config.routes.iter().any(|route| {
            route.when.runtime.as_ref().is_none_or(|pattern| pattern.fits(runtime.name.as_str()))
        });
        if !named && !config.routes.is_empty() {
            check.warn(
                &format!("runtime[{n}]"),
                format!("no route is for `{}`: nothing of it is posted", runtime.name),
                "add a [[route]], or widen the `when` of one".into(),
            );
        }
    }
}

fn empty(config: &Config, check: &mut Check<'_>) {
    let by_platform = config.slack.iter().any(|slack| slack.subject.is_some())
        || config.discord.iter().any(|discord| discord.subject.is_some());
    for (section, is_empty, what) in [
        ("runtime", config.runtimes.is_empty(), "there is no [[runtime]]: nothing is watched"),
        (
            "slack",
            config.slack.is_empty() && config.discord.is_empty(),
            "there is no [[slack]] and no [[discord]]: nothing can be posted",
        ),
        ("route", config.routes.is_empty(), "there is no [[route]]: nothing is posted"),
        (
            "person",
            config.persons.is_empty() && !by_platform,
            "there is no [[person]]: nobody who clicks can be recognised",
        ),
    ] {
        if is_empty {
            check.warn(
                section,
                what.into(),
                format!("add a [[{section}]]; see `countersign config example`"),
            );
        }
    }
    let has_tokens = config.runtimes.iter().any(|r| matches!(r.answer_with, AnswerWith::Jwt { .. }));
    if has_tokens && config.server.public_url.is_none() {
        check.warn(
            "server.public_url",
            "is missing: runtimes cannot fetch the keys of our tokens from here".into(),
            "add it, or give the runtimes the public keys by hand".into(),
        );
    }
}

/// More approvals than there can be people. Known only where groups list subjects alone.
fn too_many_approvals(config: &Config, at: &str, route: &Route, check: &mut Check<'_>) {
    let mut people = BTreeSet::new();
    for approver in &route.approvers {
        let Approver::Group(name) = approver else { return };
        let Some(group) = config.groups.iter().find(|group| group.name == *name) else { return };
        if group.of_chats().next().is_some() {
            return;
        }
        people.extend(&group.subjects);
    }
    let needed = usize::try_from(route.approvals).unwrap_or(usize::MAX);
    if !route.approvers.is_empty() && people.len() < needed {
        check.warn(
            &format!("{at}.approvals"),
            format!("{needed} approvals are needed, but the approvers are {} in all", people.len()),
            "add people to the groups, or lower approvals".into(),
        );
    }
}

/// The members of a Discord role cannot be listed, so nobody can be written to because of one.
fn roles_only(config: &Config, at: &str, route: &Route, check: &mut Check<'_>) {
    for (key, places) in [("to", &route.to), ("fallback", &route.fallback)] {
        for (n, place) in places.iter().enumerate() {
            let Place::Group(name) = place else { continue };
            let Some(group) = config.groups.iter().find(|group| group.name == *name) else { continue };
            let listed = !group.subjects.is_empty() || !group.slack_usergroups.is_empty();
            if !group.discord_roles.is_empty() && !listed {
                check.warn(
                    &format!("{at}.{key}[{n}]"),
                    format!("nobody is reached by dm:{name}: Discord does not say who has a role"),
                    "name a channel, or list the members in `subjects`".into(),
                );
            }
        }
    }
}

/// Whether everything that fits `inner` fits `outer` as well. May miss a case, never claims one.
fn covers(outer: &When, inner: &When) -> bool {
    let kind = outer.kind.is_none() || outer.kind == inner.kind;
    kind && pairs(outer, inner).into_iter().all(|(outer, inner)| match (outer, inner) {
        (None, _) => true,
        // `*` still asks that the fact is there.
        (Some(_), None) => false,
        (Some(outer), Some(inner)) => {
            outer == inner || outer.as_str() == "*" || (literal(inner) && outer.fits(inner.as_str()))
        }
    })
}

/// Whether one interaction could fit both. May claim a case that cannot be.
fn overlap(a: Option<&Pattern>, b: Option<&Pattern>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) if literal(a) => b.fits(a.as_str()),
        (Some(a), Some(b)) if literal(b) => a.fits(b.as_str()),
        _ => true,
    }
}

fn literal(pattern: &Pattern) -> bool {
    !pattern.as_str().contains('*')
}

fn pairs<'w>(a: &'w When, b: &'w When) -> [(Option<&'w Pattern>, Option<&'w Pattern>); 4] {
    let When { runtime, agent, kind: _, server, tool } = a;
    [
        (runtime.as_ref(), b.runtime.as_ref()),
        (agent.as_ref(), b.agent.as_ref()),
        (server.as_ref(), b.server.as_ref()),
        (tool.as_ref(), b.tool.as_ref()),
    ]
}

/// The first later route that an approval without tool and server facts would take instead, if
/// it is weaker.
fn falls_to_weaker<'c>(config: &'c Config, n: usize, route: &Route) -> Option<(usize, &'c Route)> {
    let approval = |when: &When| when.kind.as_ref().is_none_or(|kind| *kind == Kind::Approval);
    if (route.when.tool.is_none() && route.when.server.is_none()) || !approval(&route.when) {
        return None;
    }
    let (later, other) = config.routes.iter().enumerate().skip(n + 1).find(|(_, other)| {
        other.when.tool.is_none()
            && other.when.server.is_none()
            && approval(&other.when)
            && overlap(route.when.runtime.as_ref(), other.when.runtime.as_ref())
            && overlap(route.when.agent.as_ref(), other.when.agent.as_ref())
    })?;
    let weaker = other.approvals < route.approvals
        || (other.self_approval && !route.self_approval)
        || other.approvers.iter().any(|approver| !route.approvers.contains(approver));
    weaker.then_some((later, other))
}

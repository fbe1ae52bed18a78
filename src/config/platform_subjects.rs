//! Where members answer as their chat account (`subject` of `[[slack]]` and `[[discord]]`): what would let one
//! person count twice.

use super::Config;
use super::check::Check;
use crate::domain::ids::Platform;
use crate::domain::place::Place;
use crate::domain::routing::Route;
use crate::domain::subject_form::SubjectForm;
use std::collections::BTreeSet;

/// The installs whose members answer as their account, with how.
fn forms(config: &Config) -> Vec<(&str, Platform, &SubjectForm)> {
    let slack = config.slack.iter().map(|slack| (slack.name.as_str(), Platform::Slack, &slack.subject));
    let discord =
        config.discord.iter().map(|discord| (discord.name.as_str(), Platform::Discord, &discord.subject));
    slack.chain(discord).filter_map(|(name, platform, form)| Some((name, platform, form.as_ref()?))).collect()
}

/// The installs to which a route may bring a card.
fn installs<'c>(config: &'c Config, route: &'c Route) -> BTreeSet<&'c str> {
    let mut found = BTreeSet::new();
    for place in route.to.iter().chain(&route.fallback) {
        match place {
            Place::At(spot) => {
                found.insert(spot.install.as_str());
            }
            // Whoever is meant, in whatever chat they are.
            Place::Owner | Place::Group(_) => found.extend(forms(config).into_iter().map(|(name, ..)| name)),
        }
    }
    found
}

pub(super) fn check(config: &Config, check: &mut Check<'_>) {
    let forms = forms(config);
    for (n, route) in config.routes.iter().enumerate().filter(|(_, route)| route.approvals > 1) {
        let reached = installs(config, route);
        let here: Vec<_> = forms.iter().filter(|(name, ..)| reached.contains(name)).collect();
        let twice = here.iter().enumerate().find_map(|(at, (first, _, form))| {
            let second = here.iter().skip(at + 1).find(|(_, _, other)| form.splits(other));
            second.map(|(second, ..)| (*first, *second))
        });
        if let Some((first, second)) = twice {
            check.error(
                &format!("route[{n}].approvals"),
                format!(
                    "one person could approve twice, as a member of `{first}` and of `{second}`, which both have `subject`"
                ),
                "keep the route's places in one of the two, link people with [[person]], or lower approvals to 1"
                    .into(),
            );
        }
    }
}

//! Places, wherever the configuration names some.
//!
//! Invariant: a place that is kept names an install and a group that are configured.

use super::check::Check;
use crate::domain::ids::Platform;
use crate::domain::place::{Place, PlaceError, Target};

/// The places of one route that were named already.
#[derive(Debug, Default)]
pub(super) struct Seen(Vec<Place>);

const FORMS: &str = "\"slack:<name>:#channel\", \"slack:<name>:C…\", \"slack:<name>:@U…\", \"discord:<name>:<channel id>\", \
    \"discord:<name>:@<user id>\", \"dm:owner\" or \"dm:<group>\"";

/// Reads a list of places; what is wrong is noted and left out.
pub(super) fn list(check: &mut Check<'_>, key: &str, texts: &[String], seen: &mut Seen) -> Vec<Place> {
    let mut places = Vec::new();
    for (n, text) in texts.iter().enumerate() {
        let path = format!("{key}[{n}]");
        match Place::parse(text) {
            Ok(place) if seen.0.contains(&place) => {
                let message = format!("`{text}` is named twice in this route");
                check.error(&path, message, "remove one of the two".into());
            }
            Ok(place) => {
                seen.0.push(place.clone());
                if exists(check, &path, text, &place) {
                    places.push(place);
                }
            }
            Err(PlaceError::Form) => {
                check.error(&path, format!("`{text}` is no place"), format!("write {FORMS}"));
            }
        }
    }
    places
}

/// `[alerts] to`: as [`list`], without the places that mean somebody else for each request.
pub(super) fn for_alerts(check: &mut Check<'_>, key: &str, texts: &[String]) -> Vec<Place> {
    let places = list(check, key, texts, &mut Seen::default());
    if let Some(n) = texts.iter().position(|text| text == "dm:owner") {
        check.error(
            &format!("{key}[{n}]"),
            "an alert has no owner".into(),
            "name a channel, a person or a group".into(),
        );
    }
    places
}

fn exists(check: &mut Check<'_>, path: &str, text: &str, place: &Place) -> bool {
    match place {
        Place::Owner => true,
        Place::Group(name) => check.group(path, name.as_str()).is_some(),
        Place::At(spot) => {
            let known = match spot.target.platform() {
                Platform::Slack => check.slack_install(path, &spot.install).is_some(),
                Platform::Discord => check.discord_install(path, &spot.install).is_some(),
            };
            match &spot.target {
                Target::SlackName(name) => known && channel_name(check, path, name),
                Target::SlackUser(user) if user.bytes().any(|b| b.is_ascii_lowercase()) => {
                    check.error(path, format!("`{text}` names no user"), "write the id: \"@U0DANA\"".into());
                    false
                }
                _ => known,
            }
        }
    }
}

/// Slack has no upper case, spaces or full stops in channel names: one would never be found.
fn channel_name(check: &mut Check<'_>, key: &str, name: &str) -> bool {
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

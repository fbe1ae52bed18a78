//! Who an account is: its immutable key and whether it may answer at all.
//!
//! Invariant: fail closed. The key is (enterprise, else home team; user id), never a name or an
//! address. An account is a member only when Slack's directory says so; what could not be read is
//! `Unknown`, which refuses as "could not be checked".

use super::Slack;
use super::methods::Method;
use super::payload::{flag, id};
use super::places::Known;
use crate::bridge::ports::{ChatError, PressedBy, Profile};
use crate::domain::ids::{ChatUser, Platform};
use crate::domain::policy::{Standing, Unfit};
use serde_json::{Value, json};

impl Slack {
    pub(super) async fn read_profile(&self, user: &PressedBy) -> Result<Profile, ChatError> {
        if user.user.is_empty() {
            return Ok(Profile::of(Standing::Unfit(Unfit::Nobody)));
        }
        let unknown = Ok(Profile::of(Standing::Unknown));
        let known = match self.who().await {
            Ok(known) => known,
            Err(ChatError::Unavailable { .. } | ChatError::Unknown { .. }) => return unknown,
            Err(error) => return Err(error),
        };
        match self.api.call(Method::UserInfo, json!({"user": user.user})).await {
            Ok(answer) => Ok(answer
                .body
                .get("user")
                .map_or_else(|| Profile::of(Standing::Unknown), |found| judge(&known, user, found))),
            // A stranger often has no profile here at all.
            Err(ChatError::NoSuchPerson { .. }) => Ok(Profile::of(missing(&known, user))),
            Err(ChatError::Unavailable { .. } | ChatError::Unknown { .. }) => unknown,
            Err(error) => Err(error),
        }
    }
}

/// Reads `users.info` against who we are.
fn judge(known: &Known, pressed: &PressedBy, found: &Value) -> Profile {
    let enterprise = id(found, "/enterprise_user/enterprise_id");
    let directory_team = id(found, "/team_id");
    let Some(home) = pressed.home_team.clone().or_else(|| directory_team.clone()) else {
        return Profile::of(Standing::Unknown);
    };
    if id(found, "/id").is_none_or(|id| id != pressed.user) {
        return Profile::of(Standing::Unknown);
    }
    let identity = &known.identity;
    let in_org = enterprise.is_some() && enterprise == identity.enterprise;
    // Without a common organisation, both the payload and the directory must name our team.
    let in_team = |team: &str| identity.team.as_deref() == Some(team);
    let in_workspace = in_team(&home) && directory_team.as_deref().is_none_or(in_team);
    let standing = if let Some(unfit) = unfit(known, pressed, found) {
        Standing::Unfit(unfit)
    } else if !in_org && !in_workspace {
        Standing::Unfit(Unfit::Stranger)
    } else {
        Standing::Member
    };
    let realm = enterprise.unwrap_or(home);
    Profile {
        key: Some(ChatUser { platform: Platform::Slack, realm, user: pressed.user.clone() }),
        standing,
        groups: None,
    }
}

/// What forbids an account to answer whatever the route says. `is_app_user` is no bot flag: it marks
/// people who have authorised an app.
fn unfit(known: &Known, pressed: &PressedBy, found: &Value) -> Option<Unfit> {
    let is = |name: &str| flag(found, &format!("/{name}"));
    let bot = is("is_bot") || is("is_workflow_bot") || is("is_connector_bot");
    if bot || pressed.user == "USLACKBOT" || pressed.user == known.identity.bot_user {
        Some(Unfit::Bot)
    } else if is("deleted") {
        Some(Unfit::Deactivated)
    } else if is("is_stranger") {
        Some(Unfit::Stranger)
    } else if is("is_restricted") || is("is_ultra_restricted") {
        Some(Unfit::Guest)
    } else if is("is_invited_user") {
        Some(Unfit::Invited)
    } else {
        None
    }
}

/// The standing of an account that Slack's directory does not have.
fn missing(known: &Known, pressed: &PressedBy) -> Standing {
    let foreign = pressed.home_team.is_some() && pressed.home_team != known.identity.team;
    Standing::Unfit(if foreign { Unfit::Stranger } else { Unfit::Nobody })
}

#[cfg(test)]
#[path = "profile_tests.rs"]
mod tests;

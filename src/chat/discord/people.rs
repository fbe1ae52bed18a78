//! Who an account is: a member of a server, with its roles.
//!
//! Invariant: the key is the user id, never a name. What cannot be read is "could not be checked", never "not
//! allowed"; roles that nobody read are no roles. The administrator and the owner of a server get nothing by
//! that.

use super::calls::Call;
use super::fields::{flag, id, text};
use super::gate::Worth;
use super::platform::Discord;
use super::rest::Body;
use crate::bridge::ports::{ChatError, PressedBy, Profile};
use crate::domain::clock::Millis;
use crate::domain::ids::{ChatUser, Platform};
use crate::domain::place::is_snowflake;
use crate::domain::policy::{Standing, Unfit};
use serde_json::Value;

impl Discord {
    pub(super) async fn read_profile(&self, pressed: &PressedBy) -> Result<Profile, ChatError> {
        let user = &pressed.user;
        if !is_snowflake(user) {
            return Ok(Profile::of(Standing::Unfit(Unfit::Nobody)));
        }
        // Where it was pressed; in direct messages the server that the configuration names.
        let Some(guild) =
            pressed.home_team.as_ref().or(self.guild.as_ref()).filter(|guild| is_snowflake(guild))
        else {
            return self.read_user(user).await;
        };
        match self.rest.call(Call::member(guild, user), Worth::Needed, Body::None).await {
            Ok(answer) => Ok(profile_of(&answer.body, Some(user), self.clock.now())),
            Err(failed) => match failed.error {
                ChatError::NoSuchPerson { .. } => {
                    Ok(Profile { key: Some(key(user)), ..Profile::of(Standing::Unfit(Unfit::Stranger)) })
                }
                ChatError::Place { .. } | ChatError::Permanent { .. } => Ok(Profile::of(Standing::Unknown)),
                error => Err(error),
            },
        }
    }

    /// An account of which no server is known: nothing can be said of its roles.
    async fn read_user(&self, user: &str) -> Result<Profile, ChatError> {
        match self.rest.call(Call::user(user), Worth::Needed, Body::None).await {
            Ok(answer) if id(&answer.body, "/id").as_deref() == Some(user) => {
                let standing =
                    if flag(&answer.body, "/bot") { Standing::Unfit(Unfit::Bot) } else { Standing::Member };
                Ok(Profile { key: Some(key(user)), ..Profile::of(standing) })
            }
            Ok(_) => Ok(Profile::of(Standing::Unknown)),
            Err(failed) => match failed.error {
                ChatError::NoSuchPerson { .. } => Ok(Profile::of(Standing::Unfit(Unfit::Nobody))),
                error => Err(error),
            },
        }
    }
}

fn key(user: &str) -> ChatUser {
    ChatUser { platform: Platform::Discord, realm: String::new(), user: user.to_owned() }
}

/// What a member object says of an account: of the API, or of a press itself. `user`: the account it must be of.
#[must_use]
pub fn profile_of(member: &Value, user: Option<&str>, now: Millis) -> Profile {
    let Some(found) = id(member, "/user/id").filter(|found| user.is_none_or(|user| user == found)) else {
        return Profile::of(Standing::Unknown);
    };
    let until =
        text(member, "/communication_disabled_until").and_then(|text| text.parse::<jiff::Timestamp>().ok());
    let standing = if flag(member, "/user/bot") {
        Standing::Unfit(Unfit::Bot)
    } else if flag(member, "/pending") {
        Standing::Unfit(Unfit::Invited)
    } else if until.is_some_and(|until| until.as_millisecond() > now.0) {
        Standing::Unfit(Unfit::TimedOut)
    } else {
        Standing::Member
    };
    let roles = member.get("roles").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let roles = roles.iter().filter_map(Value::as_str).filter(|role| is_snowflake(role)).map(str::to_owned);
    Profile { key: Some(key(&found)), standing, groups: Some(roles.collect()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const NOW: Millis = Millis(1_796_000_000_000);
    const MARA: &str = "3300000000000000003";

    fn member(change: impl Fn(&mut Value)) -> Profile {
        let mut member = json!({
            "user": {"id": MARA, "username": "mara.k", "global_name": "Dana"}, "nick": "owner",
            "roles": ["2200000000000000002", 7, "everyone"], "permissions": "8", "pending": false,
        });
        change(&mut member);
        profile_of(&member, Some(MARA), NOW)
    }

    #[test]
    fn discord_case_75_the_id_is_the_key_whatever_they_call_themselves() {
        let base = member(|_| {});
        assert_eq!(base.key.as_ref().unwrap().to_string(), format!("discord:{MARA}"));
        assert_eq!(base.groups.as_ref().unwrap().iter().collect::<Vec<_>>(), ["2200000000000000002"]);
        assert_eq!(member(|member| member["nick"] = "release".into()), base);
        assert_eq!(member(|member| member["user"]["username"] = "somebody".into()), base);
        assert_eq!(
            member(|member| member["user"]["id"] = "4400000000000000004".into()),
            Profile::of(Standing::Unknown)
        );
    }

    #[test]
    fn bots_the_not_yet_admitted_and_the_timed_out_do_not_answer() {
        let standing = |key: &str, value: Value| {
            member(|member| {
                if key == "bot" { member["user"]["bot"] = value.clone() } else { member[key] = value.clone() }
            })
            .standing
        };
        assert_eq!(standing("bot", json!(true)), Standing::Unfit(Unfit::Bot));
        assert_eq!(standing("pending", json!(true)), Standing::Unfit(Unfit::Invited));
        let until = |text: &str| standing("communication_disabled_until", json!(text));
        assert_eq!(until("2026-12-30T00:00:00.000000+00:00"), Standing::Unfit(Unfit::TimedOut));
        assert_eq!(until("2020-01-01T00:00:00+00:00"), Standing::Member);
        assert_eq!(until("soon"), Standing::Member);
        assert_eq!(standing("roles", Value::Null), Standing::Member);
        assert_eq!(
            member(|member| member["roles"] = Value::Null).groups,
            Some([].into()),
            "no roles are none"
        );
    }
}

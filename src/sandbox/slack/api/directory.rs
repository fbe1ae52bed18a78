//! Who is who: `auth.test`, `bots.info`, `users.info`, `usergroups.users.list`.

use super::{Answer, Call, Refusal};
use crate::sandbox::slack::world::State;
use serde_json::{Value, json};

pub(super) fn auth_test(state: &State, call: &Call<'_>) -> Value {
    let install = &call.install;
    let team = state.teams.get(&install.team);
    let domain = team.map_or("", |team| team.domain.as_str());
    let mut body = json!({
        "url": format!("https://{domain}.slack.com/"), "team": team.map(|team| &team.name), "user": "countersign",
        "team_id": install.team, "user_id": install.bot_user, "bot_id": install.bot_id, "is_enterprise_install": install.org,
    });
    if let Some(enterprise) = &install.enterprise {
        body["enterprise_id"] = enterprise.clone().into();
        if install.org {
            // With an org token the team is reported as the organisation.
            body["team_id"] = enterprise.clone().into();
        }
    }
    body
}

pub(super) fn bots_info(state: &State, call: &Call<'_>) -> Answer {
    let wanted = call.need("bot")?;
    let bot = state
        .installs
        .values()
        .find(|install| install.bot_id == wanted && install.key() == call.install.key());
    let Some(bot) = bot else { return Err(Refusal::new("bot_not_found")) };
    Ok(json!({"bot": {"id": bot.bot_id, "deleted": false, "name": "countersign", "app_id": bot.app_id,
        "user_id": bot.bot_user, "updated": 1_796_000_000}}))
}

pub(super) fn users_info(state: &State, call: &Call<'_>) -> Answer {
    let wanted = call.need("user")?;
    let install = &call.install;
    let enterprise = install.enterprise.as_deref().filter(|_| install.org);
    let by_org = || {
        state.users.iter().find(|user| {
            user.id == wanted && enterprise.is_some() && user.enterprise.as_deref() == enterprise
        })
    };
    match state.user(wanted, &install.team).or_else(by_org) {
        Some(user) => Ok(json!({"user": user.json()})),
        None => Err(Refusal::new("user_not_found")),
    }
}

pub(super) fn group_users(state: &State, call: &Call<'_>) -> Answer {
    let wanted = call.need("usergroup")?;
    let team = match (call.install.org, call.args.text("team_id")) {
        (false, _) => call.install.team.as_str(),
        (true, Some(team)) => team,
        (true, None) => return Err(Refusal::missing("team_id")),
    };
    let group = state.groups.get(wanted).filter(|group| group.team == team && !group.disabled);
    let Some(group) = group else { return Err(Refusal::new("no_such_subteam")) };
    let all = call.args.flag("include_disabled");
    let live = |id: &&String| all || state.user(id, team).is_none_or(|user| !user.deleted);
    Ok(json!({"users": group.users.iter().filter(live).collect::<Vec<_>>()}))
}

//! Applications, accounts, guilds, commands, and where the gateway is.

use super::Call;
use super::channels::channel_json;
use crate::sandbox::discord::error::{Problems, Refusal};
use crate::sandbox::discord::types::{Guild, Member, User};
use crate::sandbox::discord::validate;
use crate::sandbox::discord::world::{State, iso};
use serde_json::{Value, json};

/// R17.
pub(super) fn application(state: &State, call: &Call<'_>) -> Result<Value, Refusal> {
    let app = state.apps.get(&call.app).ok_or_else(Refusal::unauthorized)?;
    let bot = state.users.get(&app.bot_user).map(User::json);
    Ok(
        json!({"id": app.id, "name": app.name, "icon": null, "description": "", "type": null, "bot_public": false,
        "bot_require_code_grant": false, "verify_key": app.verify_key, "flags": 0, "bot": bot, "owner": bot,
        "interactions_endpoint_url": app.endpoint, "redirect_uris": [], "approximate_guild_count": 1}),
    )
}

/// Of `/users/@me` and `/users/{user}`.
pub(super) fn user(state: &State, id: &str) -> Result<Value, Refusal> {
    state.users.get(id).map(User::json).ok_or_else(|| Refusal::new(10013))
}

/// A guild the bot is in.
pub(super) fn guild<'s>(state: &'s State, call: &Call<'_>, id: &str) -> Result<&'s Guild, Refusal> {
    let guild = state.guilds.get(id).ok_or_else(|| Refusal::new(10004))?;
    if guild.unavailable {
        return Err(Refusal::new(130_000));
    }
    if guild.members.contains_key(&call.bot) { Ok(guild) } else { Err(Refusal::new(50001)) }
}

/// A guild as the interface shows it, without channels and members.
pub(crate) fn guild_json(guild: &Guild) -> Value {
    let roles: Vec<Value> = guild.roles.values().map(super::super::types::Role::json).collect();
    json!({"id": guild.id, "name": guild.name, "icon": null, "owner_id": guild.owner, "roles": roles, "emojis": [],
        "stickers": [], "features": [], "afk_timeout": 300, "verification_level": 0, "mfa_level": 0,
        "default_message_notifications": 0, "explicit_content_filter": 0, "premium_tier": 0, "nsfw_level": 0,
        "preferred_locale": "en-US", "system_channel_flags": 0, "premium_progress_bar_enabled": false,
        "afk_channel_id": null, "system_channel_id": null, "rules_channel_id": null, "banner": null, "splash": null,
        "discovery_splash": null, "description": null, "vanity_url_code": null, "application_id": null,
        "public_updates_channel_id": null, "safety_alerts_channel_id": null, "nsfw": false})
}

pub(crate) fn member_json(state: &State, member: &Member) -> Value {
    let user = state.users.get(&member.user).map(User::json);
    json!({"user": user, "nick": member.nick, "avatar": null, "banner": null, "roles": member.roles,
        "joined_at": iso(1_738_400_400_000), "premium_since": null, "deaf": false, "mute": false, "flags": 0,
        "pending": false, "communication_disabled_until": member.timed_out_until_ms.map(iso)})
}

pub(super) fn guilds(state: &State, call: &Call<'_>) -> Value {
    let own = state.guilds.values().filter(|guild| guild.members.contains_key(&call.bot));
    own.map(|guild| {
        json!({"id": guild.id, "name": guild.name, "icon": null, "owner": false, "features": [],
        "permissions": super::super::perms::in_guild(guild, &call.bot).to_string()})
    })
    .collect()
}

pub(super) fn channels(state: &State, call: &Call<'_>) -> Result<Value, Refusal> {
    let guild = guild(state, call, call.ids[0])?;
    let own =
        state.channels.values().filter(|one| one.guild.as_ref() == Some(&guild.id) && !one.kind.is_thread());
    Ok(own.map(|one| channel_json(state, one)).collect())
}

/// R18.
pub(super) fn member(state: &State, call: &Call<'_>) -> Result<Value, Refusal> {
    let guild = guild(state, call, call.ids[0])?;
    let id = if call.ids[1] == "@me" { &call.bot } else { call.ids[1] };
    if !state.users.contains_key(id) {
        return Err(Refusal::new(10013));
    }
    let member = guild.members.get(id).ok_or_else(|| Refusal::new(10007))?;
    Ok(member_json(state, member))
}

/// R16.
pub(super) fn gateway(state: &State, call: &Call<'_>, bot: bool) -> Value {
    let url = state.switches.gateway_url.clone().unwrap_or_else(|| state.gateway_url());
    if !bot {
        return json!({"url": url});
    }
    let (remaining, reset_after) = state.identify_budget(&call.app, call.now_ms);
    json!({"url": url, "shards": 1, "session_start_limit": {"total": 1000, "remaining": remaining,
        "reset_after": reset_after, "max_concurrency": state.switches.identify_at_once}})
}

/// R15, reading.
pub(super) fn commands(state: &State, call: &Call<'_>) -> Result<Value, Refusal> {
    let scope = scope(state, call)?;
    Ok(state.commands.get(&scope).cloned().unwrap_or_default().into())
}

fn scope(state: &State, call: &Call<'_>) -> Result<(String, String), Refusal> {
    if call.ids[0] != call.app {
        return Err(Refusal::new(20012));
    }
    if let Some(id) = call.ids.get(1) {
        guild(state, call, id)?;
    }
    Ok((call.app.clone(), call.ids.get(1).copied().unwrap_or_default().to_owned()))
}

/// R15: replaces all commands of a scope.
pub(super) fn set_commands(state: &mut State, call: &Call<'_>) -> Result<Value, Refusal> {
    let scope = scope(state, call)?;
    let mut problems = Problems::default();
    validate::commands(&call.body.json, &mut problems);
    problems.refuse()?;
    let wanted = call.body.json.as_array().cloned().unwrap_or_default();
    if wanted.len() > 100 {
        return Err(Refusal::new(30032));
    }
    let before = state.commands.get(&scope).cloned().unwrap_or_default();
    let known =
        |one: &Value| before.iter().find(|old| old["name"] == one["name"]).map(|old| old["id"].clone());
    let fresh = wanted.iter().filter(|one| known(one).is_none()).count();
    let created = state.command_creates.entry(call.app.clone()).or_default();
    created.retain(|at| call.now_ms - at < 86_400_000);
    if created.len() + fresh > 200 {
        return Err(Refusal::new(30034));
    }
    created.extend(std::iter::repeat_n(call.now_ms, fresh));
    let mut made = Vec::new();
    for one in wanted {
        let mut command = validate::only(
            &one,
            &[
                "name",
                "description",
                "options",
                "contexts",
                "integration_types",
                "default_member_permissions",
                "nsfw",
                "name_localizations",
                "description_localizations",
            ],
        );
        command["id"] = known(&one).unwrap_or_else(|| state.next_id(call.now_ms).to_string().into());
        command["type"] = json!(one["type"].as_u64().unwrap_or(1));
        command["application_id"] = call.app.as_str().into();
        command["version"] = state.next_id(call.now_ms).to_string().into();
        if !scope.1.is_empty() {
            command["guild_id"] = scope.1.as_str().into();
        }
        made.push(command);
    }
    state.commands.insert(scope, made.clone());
    Ok(made.into())
}

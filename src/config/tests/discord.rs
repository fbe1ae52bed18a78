//! What is said of Discord's installs, people and places.

use super::bad::*;
use super::*;

const DISCORD: &str =
    "[[discord]]\nname = \"guild\"\napplication_id = \"1100000000000000001\"\nbot_token = { env = \"BOT\" }";
const KEY: &str = "03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8";

#[test]
fn discord_installs() {
    let good = with("[[slack]]", &format!("{DISCORD}\n[[slack]]"));
    let config = parse(&good);
    let discord = &config.discord[0];
    assert_eq!((discord.api_url.as_str(), &discord.inbound), (DISCORD_API, &DiscordInbound::Gateway));
    assert!(discord.guild_id.is_none() && discord.subject.is_none());
    let http = good
        .replace("name = \"guild\"", &format!("name = \"guild\"\npublic_key = \"{}\"", KEY.to_uppercase()));
    assert_eq!(parse(&http).discord[0].inbound, DiscordInbound::Http { public_key: KEY.into() });
    let gateway = http.replace("public_key", "inbound = \"gateway\"\npublic_key");
    assert_eq!(parse(&gateway).discord[0].inbound, DiscordInbound::Gateway);
    for (from, to, said) in [
        (
            "application_id = \"1100000000000000001\"",
            "",
            "discord[0].application_id: is missing; add application_id = \"…\", the Application ID of the application's page",
        ),
        (
            "\"1100000000000000001\"",
            "\"guild\"",
            "discord[0].application_id: `guild` is no id of an application; copy the id in Discord (Developer Mode): 17 to 20 digits, in quotes",
        ),
        (
            "bot_token = { env = \"BOT\" }\n[[slack]]",
            "[[slack]]",
            "discord[0].bot_token: is missing; add bot_token = { env = \"DISCORD_BOT_TOKEN\" }",
        ),
        (
            "name = \"guild\"",
            "name = \"guild\"\npublic_key = \"abc\"",
            "discord[0].public_key: this is no public key; write the Public Key of the application's page: 64 hex digits",
        ),
        (
            "name = \"guild\"",
            "name = \"guild\"\ninbound = \"http\"",
            "discord[0].public_key: is missing; add public_key = \"…\", the Public Key of the application's page",
        ),
        (
            "name = \"guild\"",
            "name = \"guild\"\ninbound = \"socket\"",
            "discord[0].inbound: `socket` is no way in; write \"gateway\" or \"http\"",
        ),
        (
            "name = \"guild\"",
            "name = \"guild\"\nguild_id = \"12\"",
            "discord[0].guild_id: `12` is no id of a server; copy the id in Discord (Developer Mode): 17 to 20 digits, in quotes",
        ),
        (
            "name = \"guild\"",
            "name = \"guild\"\nsubject = \"discord:{username}\"",
            "discord[0].subject: `discord:{username}`: the user's id is not in it exactly once; write \"discord:{user_id}\"",
        ),
        (
            "name = \"guild\"",
            "name = \"guild\"\npace = 2.0",
            "discord[0].pace: `2` is faster than Discord allows; write 1 or less; more is for an api_url on this machine",
        ),
        (
            "name = \"guild\"",
            "name = \"guild\"\napi_url = \"http://discord.example\"",
            "discord[0].api_url: plain http is only for addresses of this machine; use https://",
        ),
        (
            "name = \"guild\"",
            "name = \"acme\"",
            "discord[0].name: `acme` is also the name of slack[0]; give each [[slack]] and [[discord]] its own name",
        ),
    ] {
        assert!(good.contains(from), "{from}");
        assert_eq!(findings(&good.replacen(from, to, 1)), said);
    }
}

#[test]
fn what_is_said_of_discord_people_and_places() {
    let good = with("[[slack]]", &format!("{DISCORD}\n[[slack]]"))
        .replace(MEMBERS, "discord_roles = [\"guild:2200000000000000002\"]")
        .replace(ACCOUNTS, "discord = [\"3300000000000000003\"]")
        .replace(TO, "to = [\"discord:guild:4400000000000000004\", \"discord:guild:@3300000000000000003\"]");
    let config = parse(&good);
    assert_eq!(config.warnings(), []);
    assert_eq!(config.groups[0].discord_roles, [("guild".to_owned(), "2200000000000000002".to_owned())]);
    assert_eq!(config.persons[0].discord, ["3300000000000000003"]);
    assert_eq!(config.routes[0].to[1].to_string(), "discord:guild:@3300000000000000003");
    for (from, to, said) in [
        (
            "guild:2200000000000000002",
            "gild:2200000000000000002",
            "group[0].discord_roles[0]: no [[discord]] is named `gild`; use one of: guild; or add a [[discord]] with this name",
        ),
        (
            "guild:2200000000000000002",
            "approvers",
            "group[0].discord_roles[0]: `approvers` does not name a Discord role; write the name of a [[discord]] and the role's id: \"guild:2200000000000000002\"",
        ),
        (
            "discord = [\"3300000000000000003\"]",
            "discord = [\"dana\"]",
            "person[0].discord[0]: `dana` is no id of a user; copy the id in Discord (Developer Mode): 17 to 20 digits, in quotes",
        ),
        (
            "discord = [\"3300000000000000003\"]",
            "discord = [\"3300000000000000003\", \"3300000000000000003\"]",
            "person[0].discord[1]: `3300000000000000003` is also in person[0]; one chat account is one person; remove it from one of the two",
        ),
        (
            "discord:guild:44",
            "discord:gild:44",
            "route[0].to[0]: no [[discord]] is named `gild`; use one of: guild; or add a [[discord]] with this name",
        ),
    ] {
        assert!(good.contains(from), "{from}");
        assert_eq!(findings(&good.replacen(from, to, 1)), said);
    }
    let direct = good.replace("\"discord:guild:@3300000000000000003\"", "\"dm:release\"");
    assert_eq!(
        warnings(&direct),
        [
            "route[0].to[1]: nobody is reached by dm:release: Discord does not say who has a role; name a channel, or list the members in `subjects`"
        ]
    );
}

/// A member who is a subject by the chat's own word must not be able to vote as two.
#[test]
fn nobody_counts_twice_by_two_chats() {
    let two = with("[[slack]]", &format!("{DISCORD}\nsubject = \"discord:{{user_id}}\"\n[[slack]]\nsubject = \"slack:{{team_id}}:{{user_id}}\""))
        .replace(TO, "to = [\"slack:acme:#releases\", \"discord:guild:4400000000000000004\"]")
        .replace(MEMBERS, "subjects = [\"dana@example.com\", \"lee@example.com\"]");
    assert_eq!(parse(&two).warnings(), []);
    let votes = two.replace(APPROVERS, "approvers = [\"release\"]\napprovals = 2");
    let said = "route[0].approvals: one person could approve twice, as a member of `acme` and of `guild`, which both have `subject`; keep the route's places in one of the two, link people with [[person]], or lower approvals to 1";
    assert_eq!(findings(&votes), said);
    assert_eq!(
        findings(&votes.replace("to = [", "to = [\"slack:acme:#x\"]\nfallback = [\"dm:owner\"] #")),
        said
    );
    parse(&votes.replace(", \"discord:guild:4400000000000000004\"", ""));
    parse(&votes.replace("subject = \"discord:{user_id}\"", ""));
}

//! The standard world: workspace Acme with every kind of account and channel, a second unrelated
//! workspace, and an organisation with one org-wide install.

use super::types::{Channel, Install, Team, TokenState, User, UserKind};
use super::world::SlackWorld;
use crate::sandbox::time::Time;
use std::sync::Arc;

/// The app of this world.
pub const APP_ID: &str = "A0COUNTER";
/// What its deliveries are signed with.
pub const SIGNING_SECRET: &str = "countersign-test-secret";
/// Bot token of the install in workspace Acme.
pub const BOT_TOKEN: &str = "xoxb-sandbox-acme";
/// The app-level token, with `connections:write`, of Socket Mode.
pub const APP_TOKEN: &str = "xapp-sandbox-countersign";
/// Bot token of the install in the unrelated workspace Beta.
pub const BETA_TOKEN: &str = "xoxb-sandbox-beta";
/// Bot token of the org-wide install.
pub const ORG_TOKEN: &str = "xoxb-sandbox-org";
/// Workspace Acme.
pub const TEAM: &str = "T0ACME";
/// The bot's user and bot id in Acme.
pub const BOT_USER: &str = "U0BOT";
pub const BOT_ID: &str = "B0BOT";

/// The scopes of the app's manifest.
pub const SCOPES: [&str; 11] = [
    "chat:write",
    "commands",
    "im:write",
    "users:read",
    "usergroups:read",
    "channels:read",
    "groups:read",
    "im:read",
    "channels:history",
    "groups:history",
    "im:history",
];

fn install(team: &str, enterprise: Option<&str>, org: bool, bot_user: &str, bot_id: &str) -> Install {
    Install {
        app_id: APP_ID.into(),
        team: team.into(),
        enterprise: enterprise.map(Into::into),
        org,
        bot_user: bot_user.into(),
        bot_id: bot_id.into(),
        scopes: SCOPES.iter().map(|&scope| scope.into()).collect(),
        state: TokenState::Live,
    }
}

impl SlackWorld {
    /// The standard world.
    #[must_use]
    pub fn acme(time: Time) -> Arc<Self> {
        let user = |id, name, real_name| User::new(id, TEAM, name, real_name);
        let everybody = [BOT_USER, "U0DANA", "U0KIM", "U0SAM", "U0GUEST"];
        Self::builder(time, APP_ID, SIGNING_SECRET)
            .team(Team::new(TEAM, "Acme"))
            .team(Team::new("T0BETA", "Beta"))
            .team(Team::new("T0ELSEWHERE", "Elsewhere"))
            .app_token(APP_TOKEN, &["connections:write"])
            .enterprise("E0ORG", "Org")
            .team(Team::new("T0NORTH", "North").of("E0ORG"))
            .team(Team::new("T0SOUTH", "South").of("E0ORG"))
            // Acme
            .user(user(BOT_USER, "countersign", "Countersign").kind(UserKind::Bot))
            .user(user("U0DANA", "dana", "Dana Lee"))
            .user(user("U0KIM", "kim", "Kim Ito"))
            .user(user("U0SAM", "sam", "Sam Ortiz"))
            .user(user("U0GUEST", "gia", "Gia Guest").kind(UserKind::Guest))
            .user(user("U0SINGLE", "sol", "Sol Single").kind(UserKind::SingleChannelGuest))
            .user(user("U0ROBOT", "robot", "Other Robot").kind(UserKind::Bot))
            .user(user("U0FLOW", "flow", "Flow").kind(UserKind::WorkflowBot))
            .user(user("U0CONNECTOR", "connector", "Connector").kind(UserKind::ConnectorBot))
            .user(user("U0GONE", "gone", "Gil Gone").deleted())
            .user(user("U0INVITED", "ina", "Ina Invited").kind(UserKind::Invited))
            .user(User::new("U0STRANGER", "T0ELSEWHERE", "", "").kind(UserKind::Stranger))
            .channel(Channel::new(
                "C0OPS",
                "ops",
                TEAM,
                &[&everybody[..], &["U0ROBOT", "U0FLOW", "U0CONNECTOR", "U0INVITED"]].concat(),
            ))
            .channel(Channel::new("C0RELEASES", "releases", TEAM, &everybody))
            .channel(Channel::new("C0PRIVATE", "leads", TEAM, &[BOT_USER, "U0DANA", "U0KIM"]).private())
            .channel(Channel::new("C0SECRET", "secret", TEAM, &["U0DANA"]).private())
            .channel(Channel::new("C0NOBOT", "general", TEAM, &everybody[1..]))
            .channel(Channel::new("C0SINGLE", "visitors", TEAM, &[BOT_USER, "U0DANA", "U0SINGLE"]))
            .channel(
                Channel::new(
                    "C0SHARED",
                    "with-elsewhere",
                    TEAM,
                    &[BOT_USER, "U0DANA", "U0KIM", "U0STRANGER"],
                )
                .shared("T0ELSEWHERE"),
            )
            .channel(Channel::new("C0ARCHIVED", "old", TEAM, &[BOT_USER, "U0DANA"]))
            .archived("C0ARCHIVED")
            .channel(Channel::new("C0FROZEN", "parted", TEAM, &[BOT_USER, "U0DANA"]).shared("T0ELSEWHERE"))
            .frozen("C0FROZEN")
            .dm("D0DANA", TEAM, BOT_USER, "U0DANA")
            .group("S0RELEASE", TEAM, &["U0DANA", "U0KIM", "U0GONE"])
            .group("S0ONCALL", TEAM, &["U0SAM"])
            .install(BOT_TOKEN, install(TEAM, None, false, BOT_USER, BOT_ID))
            // Beta: another Dana under the same id.
            .user(User::new("U0BOTB", "T0BETA", "countersign", "Countersign").kind(UserKind::Bot))
            .user(User::new("U0DANA", "T0BETA", "dana", "Dana Other"))
            .channel(Channel::new("C0BETA", "ops", "T0BETA", &["U0BOTB", "U0DANA"]))
            .install(BETA_TOKEN, install("T0BETA", None, false, "U0BOTB", "B0BOTB"))
            // The organisation
            .user(
                User::new("U0BOTO", "T0NORTH", "countersign", "Countersign").kind(UserKind::Bot).of("E0ORG"),
            )
            .user(User::new("U0ORA", "T0NORTH", "ora", "Ora North").of("E0ORG"))
            .user(User::new("W0WIM", "T0SOUTH", "wim", "Wim South").of("E0ORG"))
            .channel(Channel::new("C0NORTH", "north", "T0NORTH", &["U0BOTO", "U0ORA", "W0WIM"]))
            .channel(Channel::new("C0SOUTH", "south", "T0SOUTH", &["U0BOTO", "W0WIM"]))
            .group("S0ORG", "T0NORTH", &["U0ORA", "W0WIM"])
            .install(ORG_TOKEN, install("T0NORTH", Some("E0ORG"), true, "U0BOTO", "B0BOTO"))
            .build()
    }
}

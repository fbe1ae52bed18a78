//! What a Slack world is made of: workspaces, people, channels, installs, messages, views.
//!
//! Invariant: these are the stand-in's own types. A token or secret is never a field of anything
//! that can be printed or dumped.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// A workspace (`T…`), perhaps part of an organisation (`E…`).
#[derive(Debug, Clone, Serialize)]
pub struct Team {
    pub id: String,
    pub name: String,
    pub domain: String,
    pub enterprise: Option<String>,
}

impl Team {
    /// A workspace of its own.
    #[must_use]
    pub fn new(id: &str, name: &str) -> Self {
        Self { id: id.into(), name: name.into(), domain: name.to_lowercase(), enterprise: None }
    }

    /// The same workspace as part of an organisation.
    #[must_use]
    pub fn of(mut self, enterprise: &str) -> Self {
        self.enterprise = Some(enterprise.into());
        self
    }
}

/// What kind of account a user is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UserKind {
    Member,
    Guest,
    SingleChannelGuest,
    Bot,
    WorkflowBot,
    ConnectorBot,
    /// Somebody of another organisation, seen through a shared channel, without a profile.
    Stranger,
    Invited,
}

/// An account as one workspace (or organisation) sees it. The same id in two unrelated workspaces
/// is two people.
#[derive(Debug, Clone, Serialize)]
pub struct User {
    pub id: String,
    /// Home workspace.
    pub team: String,
    pub enterprise: Option<String>,
    pub name: String,
    pub real_name: String,
    pub kind: UserKind,
    pub deleted: bool,
    /// Authorised some app; says nothing about being a bot.
    pub app_user: bool,
    pub tz: String,
}

impl User {
    /// A full member.
    #[must_use]
    pub fn new(id: &str, team: &str, name: &str, real_name: &str) -> Self {
        Self {
            id: id.into(),
            team: team.into(),
            enterprise: None,
            name: name.into(),
            real_name: real_name.into(),
            kind: UserKind::Member,
            deleted: false,
            app_user: false,
            tz: "Europe/Berlin".into(),
        }
    }

    /// The same account as another kind.
    #[must_use]
    pub fn kind(mut self, kind: UserKind) -> Self {
        self.kind = kind;
        self
    }

    /// The same account in an organisation.
    #[must_use]
    pub fn of(mut self, enterprise: &str) -> Self {
        self.enterprise = Some(enterprise.into());
        self
    }

    /// The same account, deactivated.
    #[must_use]
    pub fn deleted(mut self) -> Self {
        self.deleted = true;
        self
    }

    /// The name a person sees.
    #[must_use]
    pub fn shown(&self) -> &str {
        if self.real_name.is_empty() { &self.name } else { &self.real_name }
    }

    /// As `users.info` shows it. A stranger comes without profile, names or zone.
    #[must_use]
    pub fn json(&self) -> Value {
        let kind = self.kind;
        let mut user = json!({
            "id": self.id, "team_id": self.team, "name": self.name, "deleted": self.deleted,
            "is_bot": matches!(kind, UserKind::Bot | UserKind::WorkflowBot | UserKind::ConnectorBot),
            "is_app_user": self.app_user,
            "is_restricted": matches!(kind, UserKind::Guest | UserKind::SingleChannelGuest),
            "is_ultra_restricted": kind == UserKind::SingleChannelGuest,
        });
        if kind == UserKind::Stranger {
            user["is_stranger"] = true.into();
            return user;
        }
        if kind == UserKind::Invited {
            user["is_invited_user"] = true.into();
        }
        if kind == UserKind::WorkflowBot {
            user["is_workflow_bot"] = true.into();
        }
        if kind == UserKind::ConnectorBot {
            user["is_connector_bot"] = true.into();
        }
        if let Some(enterprise) = &self.enterprise {
            user["enterprise_user"] =
                json!({"id": self.id, "enterprise_id": enterprise, "is_admin": false, "teams": [self.team]});
        }
        user["tz"] = self.tz.clone().into();
        user["real_name"] = self.real_name.clone().into();
        user["profile"] = json!({"real_name": self.real_name, "display_name": self.name});
        user
    }
}

/// Who can be in a channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ChannelKind {
    Public,
    Private,
    /// A direct message between a bot and this user.
    Dm(String),
}

/// A channel or direct message.
#[derive(Debug, Clone, Serialize)]
pub struct Channel {
    pub id: String,
    pub name: String,
    pub team: String,
    pub kind: ChannelKind,
    pub members: BTreeSet<String>,
    pub archived: bool,
    /// A shared channel whose other side has left: readable, closed to writing.
    pub frozen: bool,
    /// Other workspaces that see it (Slack Connect).
    pub shared_with: BTreeSet<String>,
    pub org_shared: bool,
}

impl Channel {
    /// A public channel with these members (the bot is a member only if named).
    #[must_use]
    pub fn new(id: &str, name: &str, team: &str, members: &[&str]) -> Self {
        Self {
            id: id.into(),
            name: name.into(),
            team: team.into(),
            kind: ChannelKind::Public,
            members: members.iter().map(|&member| member.into()).collect(),
            archived: false,
            frozen: false,
            shared_with: BTreeSet::new(),
            org_shared: false,
        }
    }

    /// The same channel, private.
    #[must_use]
    pub fn private(mut self) -> Self {
        self.kind = ChannelKind::Private;
        self
    }

    /// The same channel, shared with another workspace.
    #[must_use]
    pub fn shared(mut self, team: &str) -> Self {
        self.shared_with.insert(team.into());
        self
    }

    /// As `conversations.info` and `.list` show it to a bot.
    #[must_use]
    pub fn json(&self, bot_user: &str) -> Value {
        let member = self.members.contains(bot_user);
        if let ChannelKind::Dm(user) = &self.kind {
            return json!({"id": self.id, "is_im": true, "is_channel": false, "is_group": false, "is_private": true,
                "user": user, "is_archived": self.archived, "is_org_shared": false, "context_team_id": self.team});
        }
        let private = self.kind == ChannelKind::Private;
        let mut channel = json!({
            "id": self.id, "name": self.name, "name_normalized": self.name, "is_channel": !private, "is_group": private,
            "is_im": false, "is_mpim": false, "is_private": private, "is_archived": self.archived, "is_member": member,
            "is_ext_shared": !self.shared_with.is_empty(), "is_org_shared": self.org_shared,
            "is_shared": self.org_shared || !self.shared_with.is_empty(), "context_team_id": self.team,
            "num_members": self.members.len(),
        });
        if self.frozen {
            channel["is_frozen"] = true.into();
        }
        channel
    }
}

/// A user group.
#[derive(Debug, Clone, Serialize)]
pub struct Group {
    pub id: String,
    pub team: String,
    pub users: Vec<String>,
    pub disabled: bool,
}

/// How a bot token stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenState {
    Live,
    Revoked,
    Expired,
    /// The bot's account is deactivated.
    Inactive,
}

/// One installation of the app; the token that belongs to it is the key in the world, not a field.
#[derive(Debug, Clone, Serialize)]
pub struct Install {
    pub app_id: String,
    pub team: String,
    pub enterprise: Option<String>,
    /// Installed on the whole organisation: payloads carry `team: null`.
    pub org: bool,
    pub bot_user: String,
    pub bot_id: String,
    pub scopes: BTreeSet<String>,
    pub state: TokenState,
}

impl Install {
    /// The workspace or organisation it is counted under.
    #[must_use]
    pub fn key(&self) -> &str {
        match &self.enterprise {
            Some(enterprise) if self.org => enterprise,
            _ => &self.team,
        }
    }
}

/// The trace an edit leaves.
#[derive(Debug, Clone, Serialize)]
pub struct Edited {
    pub user: String,
    pub ts: String,
}

/// A message in a channel. `text` and `blocks` are in the stored form: escaped, ids filled in.
#[derive(Debug, Clone, Serialize)]
pub struct Message {
    pub channel: String,
    pub ts: String,
    pub team: String,
    pub user: String,
    pub bot_id: Option<String>,
    pub app_id: Option<String>,
    pub text: String,
    pub blocks: Vec<Value>,
    pub metadata: Option<Value>,
    pub thread_ts: Option<String>,
    /// A reply that is also shown in the channel.
    pub broadcast: bool,
    pub edited: Option<Edited>,
    pub edits: u32,
    pub deleted: bool,
    /// Everything it ever said, oldest first, the present state not included.
    #[serde(skip)]
    pub before: Vec<(String, Vec<Value>)>,
    /// Key of the install that posted it (`T…` or `E…`).
    #[serde(skip)]
    pub install: Option<String>,
}

/// Where an ephemeral message came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Via {
    Api,
    ResponseUrl,
    /// The body of the answer to a slash command.
    CommandAnswer,
}

/// A message only one person sees; it has a `ts` but cannot be edited by it.
#[derive(Debug, Clone, Serialize)]
pub struct Ephemeral {
    pub channel: String,
    pub user: String,
    pub ts: String,
    pub text: String,
    pub blocks: Vec<Value>,
    pub thread_ts: Option<String>,
    pub via: Via,
    pub gone: bool,
    #[serde(skip)]
    pub install: Option<String>,
}

/// A modal or an App Home.
#[derive(Debug, Clone, Serialize)]
pub struct View {
    pub id: String,
    pub hash: String,
    pub user: String,
    pub team: String,
    pub root: String,
    /// The view it was pushed onto.
    pub previous: Option<String>,
    /// `modal` or `home`.
    pub surface: String,
    /// The view as sent, in the stored form.
    pub view: Value,
    pub open: bool,
    /// Field errors of the last submission, by `block_id`.
    pub errors: Value,
    #[serde(skip)]
    pub install: String,
}

/// One request that reached the Web API or a `response_url`.
#[derive(Debug, Clone, Serialize)]
pub struct Recorded {
    /// Order of arrival, from 1.
    pub seq: u64,
    pub at_ms: i64,
    pub method: String,
    pub http: String,
    /// `query`, `form`, `json` or `none`.
    pub encoding: String,
    /// Key of the install whose token was used.
    pub install: Option<String>,
    /// Arguments with JSON texts parsed, without a token.
    pub arguments: Value,
    /// The scripted trouble that struck, if any.
    pub fault: Option<String>,
    /// HTTP status and body of the answer as decided; absent while none was.
    pub status: Option<u16>,
    pub response: Option<Value>,
    /// It came before the `Retry-After` of an earlier 429 of the same kind had passed.
    pub impatient: bool,
}

impl Recorded {
    /// Whether it was carried out.
    #[must_use]
    pub fn ok(&self) -> bool {
        self.response.as_ref().is_some_and(|body| body["ok"] == true)
    }
}

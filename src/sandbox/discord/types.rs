//! What a Discord world is made of: guilds, channels, roles, people, applications, messages.
//!
//! Invariant: these are the stand-in's own types. A bot token, an interaction token or a signing
//! key is never a field of anything that can be printed or dumped. Ids are texts.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// An account: a person or a bot.
#[derive(Debug, Clone, Serialize)]
pub struct User {
    pub id: String,
    pub username: String,
    pub global_name: Option<String>,
    pub bot: bool,
    /// Takes no direct messages from bots.
    pub dms_closed: bool,
}

impl User {
    /// A person; `global_name` is what clients show.
    #[must_use]
    pub fn new(id: &str, username: &str, global_name: &str) -> Self {
        let global_name = (!global_name.is_empty()).then(|| global_name.into());
        Self { id: id.into(), username: username.into(), global_name, bot: false, dms_closed: false }
    }

    /// The same as a bot.
    #[must_use]
    pub fn bot(mut self) -> Self {
        self.bot = true;
        self
    }

    /// The same without direct messages.
    #[must_use]
    pub fn dms_closed(mut self) -> Self {
        self.dms_closed = true;
        self
    }

    /// The name a client shows where there is no nick.
    #[must_use]
    pub fn shown(&self) -> &str {
        self.global_name.as_deref().unwrap_or(&self.username)
    }

    pub(super) fn json(&self) -> Value {
        let mut user = json!({"id": self.id, "username": self.username, "global_name": self.global_name,
            "discriminator": "0", "avatar": null, "public_flags": 0});
        if self.bot {
            user["bot"] = true.into();
        }
        user
    }
}

/// A role of a guild; the one with the guild's own id is `@everyone`.
#[derive(Debug, Clone, Serialize)]
pub struct Role {
    pub id: String,
    pub name: String,
    pub permissions: u64,
    pub mentionable: bool,
}

impl Role {
    /// A role without permissions of its own.
    #[must_use]
    pub fn new(id: &str, name: &str) -> Self {
        Self { id: id.into(), name: name.into(), permissions: 0, mentionable: false }
    }

    /// The same with these permission bits.
    #[must_use]
    pub fn permissions(mut self, bits: u64) -> Self {
        self.permissions = bits;
        self
    }

    /// The same, and everybody may mention it.
    #[must_use]
    pub fn mentionable(mut self) -> Self {
        self.mentionable = true;
        self
    }

    pub(super) fn json(&self) -> Value {
        json!({"id": self.id, "name": self.name, "color": 0, "hoist": false, "position": 1,
            "permissions": self.permissions.to_string(), "managed": false, "mentionable": self.mentionable,
            "flags": 0, "colors": {"primary_color": 0, "secondary_color": null, "tertiary_color": null}})
    }
}

/// Somebody's membership of a guild.
#[derive(Debug, Clone, Serialize)]
pub struct Member {
    pub user: String,
    pub nick: Option<String>,
    pub roles: BTreeSet<String>,
    /// Until then (epoch ms) this member may only look.
    pub timed_out_until_ms: Option<i64>,
}

/// A guild ("server").
#[derive(Debug, Clone, Serialize)]
pub struct Guild {
    pub id: String,
    pub name: String,
    pub owner: String,
    pub roles: BTreeMap<String, Role>,
    pub members: BTreeMap<String, Member>,
    /// An outage: it exists and does not answer.
    pub unavailable: bool,
}

impl Guild {
    /// A guild whose `@everyone` may look, write, read what was and see embeds.
    #[must_use]
    pub fn new(id: &str, name: &str, owner: &str) -> Self {
        let everyone = Role::new(id, "@everyone").permissions(super::perms::EVERYONE);
        let roles = BTreeMap::from([(id.to_owned(), everyone)]);
        let members = BTreeMap::new();
        Self { id: id.into(), name: name.into(), owner: owner.into(), roles, members, unavailable: false }
            .member(owner, &[])
    }

    /// The same with this role.
    #[must_use]
    pub fn role(mut self, role: Role) -> Self {
        self.roles.insert(role.id.clone(), role);
        self
    }

    /// The same with this member.
    #[must_use]
    pub fn member(mut self, user: &str, roles: &[&str]) -> Self {
        let roles = roles.iter().map(|&role| role.into()).collect();
        let member = Member { user: user.into(), nick: None, roles, timed_out_until_ms: None };
        self.members.insert(user.into(), member);
        self
    }
}

/// What kind a channel is; the number is Discord's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChannelKind {
    Text = 0,
    Dm = 1,
    Voice = 2,
    Category = 4,
    Announcement = 5,
    PublicThread = 11,
    PrivateThread = 12,
    Forum = 15,
    Media = 16,
}

impl ChannelKind {
    #[must_use]
    pub fn is_thread(self) -> bool {
        matches!(self, Self::PublicThread | Self::PrivateThread)
    }

    /// Posts stand in threads only.
    #[must_use]
    pub fn is_forum(self) -> bool {
        matches!(self, Self::Forum | Self::Media)
    }
}

/// One exception to the guild's permissions in a channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Overwrite {
    /// A role or a user.
    pub id: String,
    pub member: bool,
    #[serde(default)]
    pub allow: u64,
    #[serde(default)]
    pub deny: u64,
}

/// What a channel has if it is a thread.
#[derive(Debug, Clone, Serialize)]
pub struct Thread {
    pub archived: bool,
    pub locked: bool,
    /// Minutes.
    pub auto_archive: u64,
    pub owner: String,
    pub members: BTreeSet<String>,
    pub archived_at_ms: i64,
}

/// A channel, thread or direct message.
#[derive(Debug, Clone, Serialize)]
pub struct Channel {
    pub id: String,
    pub kind: ChannelKind,
    pub name: String,
    pub guild: Option<String>,
    pub parent: Option<String>,
    pub overwrites: Vec<Overwrite>,
    pub thread: Option<Thread>,
    /// Of a direct message: the bot, then the person.
    pub recipients: Vec<String>,
}

impl Channel {
    /// A text channel of a guild.
    #[must_use]
    pub fn new(id: &str, name: &str, guild: &str) -> Self {
        Self {
            id: id.into(),
            kind: ChannelKind::Text,
            name: name.into(),
            guild: Some(guild.into()),
            parent: None,
            overwrites: Vec::new(),
            thread: None,
            recipients: Vec::new(),
        }
    }

    /// The same of another kind; a thread needs a parent too.
    #[must_use]
    pub fn kind(mut self, kind: ChannelKind) -> Self {
        self.kind = kind;
        self
    }

    /// The same as a public thread under `parent`, begun by `owner`.
    #[must_use]
    pub fn thread(mut self, parent: &str, owner: &str) -> Self {
        self.kind = ChannelKind::PublicThread;
        self.parent = Some(parent.into());
        self.thread = Some(Thread {
            archived: false,
            locked: false,
            auto_archive: 10_080,
            owner: owner.into(),
            members: BTreeSet::from([owner.to_owned()]),
            archived_at_ms: 0,
        });
        self
    }

    /// The same thread, archived (and locked).
    #[must_use]
    pub fn archived(mut self, locked: bool) -> Self {
        if let Some(thread) = &mut self.thread {
            (thread.archived, thread.locked) = (true, locked);
        }
        self
    }

    /// The same with an exception for a role.
    #[must_use]
    pub fn role(mut self, role: &str, allow: u64, deny: u64) -> Self {
        self.overwrites.push(Overwrite { id: role.into(), member: false, allow, deny });
        self
    }

    /// The same with an exception for a member.
    #[must_use]
    pub fn user(mut self, user: &str, allow: u64, deny: u64) -> Self {
        self.overwrites.push(Overwrite { id: user.into(), member: true, allow, deny });
        self
    }

    pub(super) fn direct(id: &str, bot: &str, user: &str) -> Self {
        let mut channel = Self::new(id, "", "");
        channel.guild = None;
        channel.kind = ChannelKind::Dm;
        channel.recipients = vec![bot.into(), user.into()];
        channel
    }
}

/// An application with its bot. Its token and key are kept apart from it.
#[derive(Debug, Clone, Serialize)]
pub struct App {
    pub id: String,
    pub name: String,
    pub bot_user: String,
    /// Hex of the public key that verifies what the world signs.
    pub verify_key: String,
    /// Set: clicks go there, signed. Unset: they go over the gateway.
    pub endpoint: Option<String>,
    /// Whether its bot token is good.
    pub token_live: bool,
}

/// Content that a message had.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Content {
    pub text: String,
    pub embeds: Vec<Value>,
    pub components: Vec<Value>,
}

/// A message as it is stored.
#[derive(Debug, Clone, Serialize)]
pub struct Message {
    pub id: String,
    pub channel: String,
    pub author: String,
    /// The application that wrote it.
    pub app: Option<String>,
    pub content: Content,
    pub flags: u64,
    pub at_ms: i64,
    pub edited_ms: Option<i64>,
    pub edits: u32,
    pub nonce: Option<Value>,
    pub mentions: Vec<String>,
    pub mention_roles: Vec<String>,
    pub mention_everyone: bool,
    /// Everybody whose client made a sound when it was posted.
    pub pinged: BTreeSet<String>,
    pub attachments: Vec<Attachment>,
    /// Only this person sees it.
    pub ephemeral_for: Option<String>,
    pub deleted: bool,
    /// A deferred answer that still says "thinking".
    pub loading: bool,
    /// The click it answers: id, kind, person, and the message it was on.
    pub answers: Option<Answers>,
    /// What it said before, oldest first.
    pub before: Vec<Content>,
}

/// Which click a message answers.
#[derive(Debug, Clone, Serialize)]
pub struct Answers {
    pub click: String,
    pub kind: u64,
    pub user: String,
    pub on: Option<String>,
}

/// A file of a message.
#[derive(Debug, Clone, Serialize)]
pub struct Attachment {
    pub id: String,
    pub filename: String,
    pub size: usize,
    /// Text, with unreadable bytes replaced.
    pub text: String,
}

impl Message {
    #[must_use]
    pub fn is_ephemeral(&self) -> bool {
        self.ephemeral_for.is_some()
    }
}

/// A form that a person has in front of them.
#[derive(Debug, Clone, Serialize)]
pub struct Modal {
    /// The id of the click that opened it.
    pub id: String,
    pub app: String,
    pub user: String,
    pub channel: String,
    /// The message whose control opened it.
    pub message: Option<String>,
    pub custom_id: String,
    pub title: String,
    pub components: Vec<Value>,
    pub open: bool,
}

/// A request to the REST interface and its answer.
#[derive(Debug, Clone, Serialize)]
pub struct Recorded {
    /// Order of arrival, from 1.
    pub seq: u64,
    pub at_ms: i64,
    /// Method and template, such as `POST /channels/{channel}/messages`; `?` in front of an unknown path.
    pub route: String,
    /// What stood for the words in braces; an interaction token is replaced by its click's id.
    pub ids: Vec<String>,
    pub query: String,
    /// The application whose bot token was sent, `?` for an unknown one.
    pub bot: Option<String>,
    pub body: Value,
    /// Names of the files sent along.
    pub files: Vec<String>,
    pub fault: Option<String>,
    pub status: Option<u16>,
    pub response: Option<Value>,
    /// It came before the time of an earlier 429 had passed.
    pub impatient: bool,
}

impl Recorded {
    /// Whether it was carried out.
    #[must_use]
    pub fn ok(&self) -> bool {
        self.status.is_some_and(|status| (200..300).contains(&status))
    }

    /// The error code of a refusal.
    #[must_use]
    pub fn code(&self) -> Option<i64> {
        self.response.as_ref()?.get("code")?.as_i64()
    }
}

//! The calls of Discord's REST API that we make.
//!
//! Invariant: a log names a call by its template, never by its path (a token may stand in it). What has a nonce
//! or no effect may be made again; everything else that writes has an unknown outcome when no answer came.

use reqwest::Method;

/// One kind of call, by what limits and errors are told apart (Discord: API Reference).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    PostMessage,
    EditMessage,
    DeleteMessage,
    ReadMessages,
    /// The first answer to a press.
    Callback,
    EditOriginal,
    ReadOriginal,
    FollowUp,
    OpenDm,
    /// A thread below a message.
    BeginThread,
    ReadChannel,
    EditChannel,
    PutCommands,
    Gateway,
    Application,
    Me,
    Member,
    Roles,
    User,
}

impl Kind {
    /// The path without ids, for logs.
    pub(super) fn template(self) -> &'static str {
        match self {
            Self::PostMessage => "POST /channels/{c}/messages",
            Self::EditMessage => "PATCH /channels/{c}/messages/{m}",
            Self::DeleteMessage => "DELETE /channels/{c}/messages/{m}",
            Self::ReadMessages => "GET /channels/{c}/messages",
            Self::Callback => "POST /interactions/{id}/{token}/callback",
            Self::EditOriginal => "PATCH /webhooks/{app}/{token}/messages/@original",
            Self::ReadOriginal => "GET /webhooks/{app}/{token}/messages/@original",
            Self::FollowUp => "POST /webhooks/{app}/{token}",
            Self::OpenDm => "POST /users/@me/channels",
            Self::BeginThread => "POST /channels/{c}/messages/{m}/threads",
            Self::ReadChannel => "GET /channels/{c}",
            Self::EditChannel => "PATCH /channels/{c}",
            Self::PutCommands => "PUT /applications/{app}/commands",
            Self::Gateway => "GET /gateway/bot",
            Self::Application => "GET /applications/@me",
            Self::Me => "GET /users/@me",
            Self::Member => "GET /guilds/{g}/members/{u}",
            Self::Roles => "GET /guilds/{g}/roles",
            Self::User => "GET /users/{u}",
        }
    }

    pub(super) fn method(self) -> Method {
        match self {
            Self::PostMessage | Self::Callback | Self::FollowUp | Self::OpenDm | Self::BeginThread => {
                Method::POST
            }
            Self::EditMessage | Self::EditOriginal | Self::EditChannel => Method::PATCH,
            Self::DeleteMessage => Method::DELETE,
            Self::PutCommands => Method::PUT,
            Self::ReadMessages
            | Self::ReadOriginal
            | Self::ReadChannel
            | Self::Gateway
            | Self::Application
            | Self::Me
            | Self::Member
            | Self::Roles
            | Self::User => Method::GET,
        }
    }

    /// Without an answer it may have been done all the same.
    pub(super) fn writes(self) -> bool {
        // Opening a direct message that is open, or putting the same commands, changes nothing.
        self.method() != Method::GET && !matches!(self, Self::OpenDm | Self::PutCommands)
    }

    /// The token of a press stands in the path: no credentials of the bot, and none of its limits but its own.
    pub(super) fn by_token(self) -> bool {
        matches!(self, Self::Callback | Self::EditOriginal | Self::ReadOriginal | Self::FollowUp)
    }
}

/// One call about to be made.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) kind: Kind,
    /// Below the API's base, beginning with a slash.
    pub(super) path: String,
    /// What limits are counted for: a channel, a guild, or the token of a press.
    pub(super) major: String,
}

impl Call {
    fn at(kind: Kind, major: &str, path: String) -> Self {
        Self { kind, path, major: major.to_owned() }
    }

    pub(super) fn post_message(channel: &str) -> Self {
        Self::at(Kind::PostMessage, channel, format!("/channels/{channel}/messages"))
    }

    pub(super) fn edit_message(channel: &str, message: &str) -> Self {
        Self::at(Kind::EditMessage, channel, format!("/channels/{channel}/messages/{message}"))
    }

    pub(super) fn delete_message(channel: &str, message: &str) -> Self {
        Self::at(Kind::DeleteMessage, channel, format!("/channels/{channel}/messages/{message}"))
    }

    /// A page of a channel's messages, the oldest of those after an id.
    pub(super) fn read_messages(channel: &str, after: u64) -> Self {
        Self::at(Kind::ReadMessages, channel, format!("/channels/{channel}/messages?limit=100&after={after}"))
    }

    pub(super) fn callback(id: &str, token: &str) -> Self {
        Self::at(Kind::Callback, token, format!("/interactions/{id}/{token}/callback"))
    }

    pub(super) fn edit_original(application: &str, token: &str) -> Self {
        Self::at(Kind::EditOriginal, token, format!("/webhooks/{application}/{token}/messages/@original"))
    }

    pub(super) fn read_original(application: &str, token: &str) -> Self {
        Self::at(Kind::ReadOriginal, token, format!("/webhooks/{application}/{token}/messages/@original"))
    }

    pub(super) fn follow_up(application: &str, token: &str) -> Self {
        Self::at(Kind::FollowUp, token, format!("/webhooks/{application}/{token}"))
    }

    pub(super) fn open_dm() -> Self {
        Self::at(Kind::OpenDm, "", "/users/@me/channels".into())
    }

    pub(super) fn begin_thread(channel: &str, message: &str) -> Self {
        Self::at(Kind::BeginThread, channel, format!("/channels/{channel}/messages/{message}/threads"))
    }

    pub(super) fn read_channel(channel: &str) -> Self {
        Self::at(Kind::ReadChannel, channel, format!("/channels/{channel}"))
    }

    pub(super) fn edit_channel(channel: &str) -> Self {
        Self::at(Kind::EditChannel, channel, format!("/channels/{channel}"))
    }

    pub(super) fn put_commands(application: &str, guild: Option<&str>) -> Self {
        let path = match guild {
            Some(guild) => format!("/applications/{application}/guilds/{guild}/commands"),
            None => format!("/applications/{application}/commands"),
        };
        Self::at(Kind::PutCommands, guild.unwrap_or_default(), path)
    }

    pub(super) fn gateway() -> Self {
        Self::at(Kind::Gateway, "", "/gateway/bot".into())
    }

    pub(super) fn application() -> Self {
        Self::at(Kind::Application, "", "/applications/@me".into())
    }

    pub(super) fn me() -> Self {
        Self::at(Kind::Me, "", "/users/@me".into())
    }

    pub(super) fn member(guild: &str, user: &str) -> Self {
        Self::at(Kind::Member, guild, format!("/guilds/{guild}/members/{user}"))
    }

    pub(super) fn roles(guild: &str) -> Self {
        Self::at(Kind::Roles, guild, format!("/guilds/{guild}/roles"))
    }

    pub(super) fn user(user: &str) -> Self {
        Self::at(Kind::User, "", format!("/users/{user}"))
    }
}

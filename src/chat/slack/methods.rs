//! The Web API methods we call, and what each is like.

use crate::pace::Tier;

/// A method of Slack's Web API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Method {
    AuthTest,
    BotsInfo,
    PostMessage,
    Update,
    PostEphemeral,
    Delete,
    OpenConversation,
    ListConversations,
    History,
    Replies,
    UserInfo,
    GroupMembers,
}

impl Method {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::AuthTest => "auth.test",
            Self::BotsInfo => "bots.info",
            Self::PostMessage => "chat.postMessage",
            Self::Update => "chat.update",
            Self::PostEphemeral => "chat.postEphemeral",
            Self::Delete => "chat.delete",
            Self::OpenConversation => "conversations.open",
            Self::ListConversations => "conversations.list",
            Self::History => "conversations.history",
            Self::Replies => "conversations.replies",
            Self::UserInfo => "users.info",
            Self::GroupMembers => "usergroups.users.list",
        }
    }

    /// Whether a lost answer leaves open if something was done. Opening a conversation does nothing
    /// a second time, so it counts as a read.
    pub(super) const fn writes(self) -> bool {
        matches!(self, Self::PostMessage | Self::Update | Self::PostEphemeral | Self::Delete)
    }

    /// Slack takes JSON for writes only; reads ignore JSON arguments and get a form.
    pub(super) const fn takes_json(self) -> bool {
        self.writes() || matches!(self, Self::OpenConversation)
    }

    pub(super) const fn tier(self) -> Tier {
        match self {
            Self::AuthTest | Self::PostMessage => Tier::Special,
            Self::ListConversations | Self::GroupMembers => Tier::Two,
            Self::PostEphemeral | Self::UserInfo => Tier::Four,
            _ => Tier::Three,
        }
    }
}

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
    ConversationInfo,
    ListConversations,
    History,
    Replies,
    UserInfo,
    GroupMembers,
    Permalink,
    OpenView,
    UpdateView,
    PublishView,
    /// With the app-level token.
    OpenSocket,
}

impl Method {
    /// Every method we call.
    pub(super) const ALL: [Self; 18] = [
        Self::AuthTest,
        Self::BotsInfo,
        Self::PostMessage,
        Self::Update,
        Self::PostEphemeral,
        Self::Delete,
        Self::OpenConversation,
        Self::ConversationInfo,
        Self::ListConversations,
        Self::History,
        Self::Replies,
        Self::UserInfo,
        Self::GroupMembers,
        Self::Permalink,
        Self::OpenView,
        Self::UpdateView,
        Self::PublishView,
        Self::OpenSocket,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::AuthTest => "auth.test",
            Self::BotsInfo => "bots.info",
            Self::PostMessage => "chat.postMessage",
            Self::Update => "chat.update",
            Self::PostEphemeral => "chat.postEphemeral",
            Self::Delete => "chat.delete",
            Self::OpenConversation => "conversations.open",
            Self::ConversationInfo => "conversations.info",
            Self::ListConversations => "conversations.list",
            Self::History => "conversations.history",
            Self::Replies => "conversations.replies",
            Self::UserInfo => "users.info",
            Self::GroupMembers => "usergroups.users.list",
            Self::Permalink => "chat.getPermalink",
            Self::OpenView => "views.open",
            Self::UpdateView => "views.update",
            Self::PublishView => "views.publish",
            Self::OpenSocket => "apps.connections.open",
        }
    }

    /// Whether a lost answer leaves open if something was done. Opening a conversation or publishing the
    /// same Home does nothing a second time, so they count as reads.
    pub(super) const fn writes(self) -> bool {
        matches!(
            self,
            Self::PostMessage
                | Self::Update
                | Self::PostEphemeral
                | Self::Delete
                | Self::OpenView
                | Self::UpdateView
        )
    }

    /// Slack takes JSON for writes only; reads ignore JSON arguments and get a form.
    pub(super) const fn takes_json(self) -> bool {
        self.writes() || matches!(self, Self::OpenConversation | Self::PublishView)
    }

    pub(super) const fn tier(self) -> Tier {
        match self {
            Self::AuthTest | Self::PostMessage | Self::Permalink => Tier::Special,
            // Documented as tier 3; the official SDKs say 1.
            Self::OpenSocket => Tier::One,
            Self::ListConversations | Self::GroupMembers => Tier::Two,
            Self::PostEphemeral | Self::UserInfo | Self::OpenView | Self::UpdateView | Self::PublishView => {
                Tier::Four
            }
            _ => Tier::Three,
        }
    }
}

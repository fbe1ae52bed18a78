//! Which scopes of Slack's the methods we call need (Slack: Permission scopes).
//!
//! Invariant: what the manifest asks for is what is called, no more: the match below names every method,
//! so a new one cannot be called without its scopes being decided.

use super::methods::Method;

/// The slash command's scope; no method needs it.
const COMMANDS: &str = "commands";

/// The scopes of a method; where it reads several kinds of conversations, all of them.
const fn of(method: Method) -> &'static [&'static str] {
    match method {
        Method::AuthTest
        | Method::Permalink
        | Method::OpenView
        | Method::UpdateView
        | Method::PublishView
        // `connections:write` is the app-level token's.
        | Method::OpenSocket => &[],
        Method::BotsInfo | Method::UserInfo => &["users:read"],
        Method::PostMessage | Method::Update | Method::PostEphemeral | Method::Delete => &["chat:write"],
        Method::OpenConversation => &["im:write"],
        Method::ListConversations | Method::ConversationInfo => &["channels:read", "groups:read", "im:read"],
        Method::History | Method::Replies => &["channels:history", "groups:history", "im:history"],
        Method::GroupMembers => &["usergroups:read"],
    }
}

/// How much is lost without a scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Loss {
    /// Nothing works.
    Everything,
    /// This does not.
    Part(&'static str),
}

/// What a scope that was not granted costs.
pub(super) fn loss(scope: &str) -> Loss {
    Loss::Part(match scope {
        "channels:history" | "groups:history" | "im:history" => {
            "a post whose answer was lost is not looked for there, so an extra copy may stay"
        }
        "im:write" => "nobody can be written to directly",
        "im:read" => "direct messages cannot be looked at",
        "groups:read" => "private channels cannot be found by name",
        "channels:read" => "public channels cannot be found by name",
        "usergroups:read" => "user groups cannot be read, so approvers by user group could not be checked",
        "commands" => "the slash command does not exist",
        _ => return Loss::Everything,
    })
}

/// Every scope we use, without repetition, in a fixed order.
pub(super) fn all() -> Vec<&'static str> {
    let mut scopes = vec![];
    for scope in Method::ALL.into_iter().flat_map(of).copied().chain([COMMANDS]) {
        if !scopes.contains(&scope) {
            scopes.push(scope);
        }
    }
    scopes.sort_unstable();
    scopes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scope_we_use_is_known_and_asked_for_once() {
        assert_eq!(
            all(),
            [
                "channels:history",
                "channels:read",
                "chat:write",
                "commands",
                "groups:history",
                "groups:read",
                "im:history",
                "im:read",
                "im:write",
                "usergroups:read",
                "users:read",
            ]
        );
        assert_eq!(loss("chat:write"), Loss::Everything);
        assert_eq!(loss("users:read"), Loss::Everything);
        assert!(matches!(loss("groups:history"), Loss::Part(_)));
    }

    /// The stand-in knows each method's scopes by itself: with exactly ours it grants every call.
    #[test]
    fn the_stand_in_asks_for_the_same() {
        let granted: Vec<&str> = crate::sandbox::slack::acme::SCOPES.to_vec();
        for scope in all() {
            assert!(granted.contains(&scope), "{scope}");
        }
        assert_eq!(granted.len(), all().len());
    }
}

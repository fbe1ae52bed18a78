//! Who we are in a workspace, and which channel a configured name means.
//!
//! Invariant: `E…` ids are never taken for a team. A name is an id only when exactly one channel has it.
//!
//! Long listings survive pacing: pages read so far are kept, and the next call goes on after them.

use super::Slack;
use super::errors::unusable;
use super::methods::Method;
use super::payload::{flag, id, text};
use crate::bridge::ports::{ChatError, Identity, Look};
use crate::domain::clock::Millis;
use crate::domain::place::Target;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// How long a complete listing answers further names.
const FRESH: Duration = Duration::from_mins(1);

/// Who we are, with what only this module's siblings need.
#[derive(Debug, Clone)]
pub(super) struct Known {
    pub(super) identity: Identity,
    pub(super) bot_id: Option<String>,
    /// Scope `chat:write.public`.
    pub(super) posts_everywhere: bool,
}

/// What a place may have refused for that a look at it would show: without it the refusal is over.
const SEEN: [&str; 8] = [
    "",
    "is_archived",
    "is_inactive",
    "is_frozen",
    "not_in_channel",
    "channel_not_found",
    "channel_name_unknown",
    "user_disabled",
];

/// A listing of channels under way or done.
#[derive(Debug, Default)]
pub(super) struct Listing {
    channels: BTreeMap<String, Vec<String>>,
    cursor: Option<String>,
    done: Option<Millis>,
}

impl Slack {
    /// Who we are; asks Slack when that is not known yet.
    pub(super) async fn who(&self) -> Result<Known, ChatError> {
        let known = self.known.read().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
        match known {
            Some(known) => Ok(known),
            None => self.ask_who().await,
        }
    }

    pub(super) async fn ask_who(&self) -> Result<Known, ChatError> {
        let answer = self.api.call(Method::AuthTest, json!({})).await?;
        let body = &answer.body;
        let bot_user = answer.need(Method::AuthTest, "/user_id")?;
        let bot_id = id(body, "/bot_id");
        let (team, enterprise) = install_of(body);
        if team.is_none() && enterprise.is_none() {
            return Err(unusable(Method::AuthTest, "neither team nor enterprise"));
        }
        let app_id = match &self.app_id {
            Some(app_id) => app_id.clone(),
            None => self.ask_app(bot_id.as_deref()).await?,
        };
        // Unsaid scopes are tried; a refusal says so then.
        let can_search = answer.scopes.as_ref().is_none_or(|scopes| {
            scopes.iter().any(|s| matches!(s.as_str(), "channels:history" | "groups:history"))
        });
        let posts_everywhere =
            answer.scopes.as_ref().is_some_and(|scopes| scopes.iter().any(|s| s == "chat:write.public"));
        let identity = Identity { app_id, team, enterprise, bot_user, can_search };
        let known = Known { identity, bot_id, posts_everywhere };
        *self.known.write().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(known.clone());
        Ok(known)
    }

    pub(super) async fn ask_app(&self, bot_id: Option<&str>) -> Result<String, ChatError> {
        let unknown = || ChatError::Permanent { code: "app_id_unknown".into() };
        let bot = bot_id.ok_or_else(unknown)?;
        let answer = self.api.call(Method::BotsInfo, json!({"bot": bot})).await?;
        id(&answer.body, "/bot/app_id").ok_or_else(unknown)
    }

    pub(super) async fn resolve_target(&self, target: &Target) -> Result<String, ChatError> {
        let name = match target {
            Target::SlackChannel(channel) => return Ok(channel.clone()),
            Target::DiscordChannel(_) | Target::DiscordUser(_) => {
                return Err(ChatError::Place { code: "not_of_slack".into() });
            }
            // Posts and edits go by the id of the conversation, never of the person.
            Target::SlackUser(user) => {
                let opened = self.api.call(Method::OpenConversation, json!({"users": user})).await?;
                return opened.need(Method::OpenConversation, "/channel/id");
            }
            Target::SlackName(name) => name,
        };
        let mut listing = self.listing.lock().await;
        if listing.done.is_some_and(|at| self.clock.now().since(at) > FRESH) {
            *listing = Listing::default();
        }
        while listing.done.is_none() {
            let arguments = json!({
                "types": "public_channel,private_channel", "exclude_archived": true, "limit": 200,
                "cursor": listing.cursor,
            });
            let answer = self.api.call(Method::ListConversations, arguments).await?;
            let channels = answer.body.get("channels").and_then(Value::as_array);
            for channel in channels.into_iter().flatten() {
                if let (Some(id), Some(name)) = (id(channel, "/id"), text(channel, "/name")) {
                    listing.channels.entry(name.to_owned()).or_default().push(id);
                }
            }
            listing.cursor = text(&answer.body, "/response_metadata/next_cursor").map(str::to_owned);
            if listing.cursor.is_none() {
                listing.done = Some(self.clock.now());
            }
        }
        match listing.channels.get(name).map(Vec::as_slice) {
            Some([channel]) => Ok(channel.clone()),
            Some([_, _, ..]) => Err(ChatError::Place { code: "channel_name_ambiguous".into() }),
            _ => Err(ChatError::Place { code: "channel_name_unknown".into() }),
        }
    }

    /// Whether a channel takes our posts now (Slack: conversations.info).
    pub(super) async fn look_at(&self, channel: &str, refused: &str) -> Result<Look, ChatError> {
        let answer = self.api.call(Method::ConversationInfo, json!({"channel": channel})).await?;
        let is = |name: &str| flag(&answer.body, &format!("/channel/{name}"));
        let refuse = |code: &str| Err(ChatError::Place { code: code.into() });
        if is("is_archived") {
            return refuse("is_archived");
        }
        if is("is_frozen") {
            return refuse("is_frozen");
        }
        // Unsaid for direct messages. A public channel may be open to us all the same.
        let outside = !is("is_im") && answer.body.pointer("/channel/is_member") == Some(&Value::Bool(false));
        if outside && (is("is_private") || !self.posts_everywhere()) {
            return refuse("not_in_channel");
        }
        Ok(if SEEN.contains(&refused) { Look::Well } else { Look::Unsure })
    }

    /// The scope that lets us post to public channels that we are not in.
    fn posts_everywhere(&self) -> bool {
        let known = self.known.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        known.as_ref().is_some_and(|known| known.posts_everywhere)
    }

    pub(super) async fn group_members(&self, group: &str) -> Result<Vec<String>, ChatError> {
        let known = self.who().await?;
        // A token of a whole organisation has to say which workspace: written `T…/S…`.
        let (team, group) = match group.split_once('/') {
            Some((team, group)) => (Some(team.to_owned()), group),
            None => (known.identity.team, group),
        };
        let answer =
            self.api.call(Method::GroupMembers, json!({"usergroup": group, "team_id": team})).await?;
        let users = answer.body.get("users").and_then(Value::as_array);
        let users = users.ok_or_else(|| unusable(Method::GroupMembers, "no users in the answer"))?;
        Ok(users.iter().filter_map(Value::as_str).map(str::to_owned).collect())
    }
}

/// Team and enterprise of an install. For a whole organisation `team_id` may hold its `E…` id.
fn install_of(body: &Value) -> (Option<String>, Option<String>) {
    let named = id(body, "/team_id");
    let enterprise =
        id(body, "/enterprise_id").or_else(|| named.clone().filter(|named| named.starts_with('E')));
    let org = flag(body, "/is_enterprise_install");
    (named.filter(|named| !named.starts_with('E') && !org), enterprise)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slack_case_59_an_enterprise_id_is_kept_out_of_the_team_column() {
        let install = |body: Value| install_of(&body);
        let (t, e) = (|| Some("T1".to_owned()), || Some("E1".to_owned()));
        assert_eq!(install(json!({"team_id": "T1"})), (t(), None));
        assert_eq!(install(json!({"team_id": "T1", "enterprise_id": "E1"})), (t(), e()));
        assert_eq!(install(json!({"team_id": "E1"})), (None, e()));
        assert_eq!(
            install(json!({"team_id": "E1", "enterprise_id": "E1", "is_enterprise_install": true})),
            (None, e())
        );
        assert_eq!(
            install(json!({"team_id": "T1", "enterprise_id": "E1", "is_enterprise_install": true})),
            (None, e())
        );
        assert_eq!(install(json!({"team_id": null})), (None, None));
    }
}

//! Where a message can go, and what is there.
//!
//! A place is what the configuration says; a spot is one address in one chat. `dm:owner` and `dm:<group>`
//! come to spots only when it is known who that is, and one person is one spot, by whatever places.

use crate::domain::ids::{GroupName, Platform};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A configured destination. Written `slack:<name>:#channel`, `slack:<name>:C…`, `slack:<name>:@U…`,
/// `discord:<name>:<channel or thread id>`, `discord:<name>:@<user id>`, `dm:owner` or `dm:<group>`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(into = "String")]
pub enum Place {
    At(Spot),
    /// The person the agent works for, directly.
    Owner,
    /// Each linked member of the group, directly.
    Group(GroupName),
}

/// One address in one chat install.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Spot {
    /// The configured name of the chat install.
    pub install: String,
    pub target: Target,
}

/// What a spot names on its platform.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// A Slack channel by name, without `#`; resolved once and pinned by id.
    SlackName(String),
    /// A Slack channel by id.
    SlackChannel(String),
    /// A person on Slack by id: their direct messages with us.
    SlackUser(String),
    /// A Discord channel or thread by id.
    DiscordChannel(String),
    /// A person on Discord by id: their direct messages with us.
    DiscordUser(String),
}

/// Why a text is no place, with what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlaceError {
    #[error(
        "a place is written slack:<name>:#channel, slack:<name>:C…, slack:<name>:@U…, discord:<name>:<channel id>, \
         discord:<name>:@<user id>, dm:owner or dm:<group>"
    )]
    Form,
}

impl Target {
    /// What its resolved channel is kept under; never the same for two targets.
    #[must_use]
    pub fn key(&self) -> String {
        match self {
            Self::SlackName(name) => name.clone(),
            Self::SlackChannel(id) | Self::DiscordChannel(id) => id.clone(),
            Self::SlackUser(id) | Self::DiscordUser(id) => format!("@{id}"),
        }
    }

    #[must_use]
    pub fn platform(&self) -> Platform {
        match self {
            Self::SlackName(_) | Self::SlackChannel(_) | Self::SlackUser(_) => Platform::Slack,
            Self::DiscordChannel(_) | Self::DiscordUser(_) => Platform::Discord,
        }
    }

    /// Whether it is one person.
    #[must_use]
    pub fn is_direct(&self) -> bool {
        matches!(self, Self::SlackUser(_) | Self::DiscordUser(_))
    }
}

impl Spot {
    /// The direct messages with a person.
    #[must_use]
    pub fn direct(platform: Platform, install: &str, user: &str) -> Self {
        let user = user.to_owned();
        let target = match platform {
            Platform::Slack => Target::SlackUser(user),
            Platform::Discord => Target::DiscordUser(user),
        };
        Self { install: install.to_owned(), target }
    }

    /// # Errors
    /// When the text is no address in a chat.
    pub fn parse(text: &str) -> Result<Self, PlaceError> {
        match Place::parse(text)? {
            Place::At(spot) => Ok(spot),
            Place::Owner | Place::Group(_) => Err(PlaceError::Form),
        }
    }
}

impl Place {
    /// # Errors
    /// When the text has none of the forms this version can post to.
    pub fn parse(text: &str) -> Result<Self, PlaceError> {
        let mut parts = text.splitn(3, ':');
        match (parts.next(), parts.next(), parts.next()) {
            (Some("slack"), Some(install), Some(target)) if !install.is_empty() => {
                let target = slack_target(target).ok_or(PlaceError::Form)?;
                Ok(Self::At(Spot { install: install.into(), target }))
            }
            (Some("dm"), Some("owner"), None) => Ok(Self::Owner),
            (Some("dm"), Some(group), None) if !group.is_empty() => Ok(Self::Group(GroupName::new(group))),
            (Some("discord"), Some(install), Some(target)) if !install.is_empty() => {
                let target = discord_target(target).ok_or(PlaceError::Form)?;
                Ok(Self::At(Spot { install: install.into(), target }))
            }
            _ => Err(PlaceError::Form),
        }
    }
}

fn slack_target(text: &str) -> Option<Target> {
    let id = |id: &str, heads: &[char]| {
        id.len() > 1 && id.starts_with(heads) && id.bytes().all(|b| b.is_ascii_alphanumeric())
    };
    match (text.strip_prefix('#'), text.strip_prefix('@')) {
        (Some(name), _) => (!name.is_empty()).then(|| Target::SlackName(name.into())),
        (_, Some(user)) => id(user, &['U', 'W']).then(|| Target::SlackUser(user.into())),
        _ => id(text, &['C', 'G']).then(|| Target::SlackChannel(text.into())),
    }
}

fn discord_target(text: &str) -> Option<Target> {
    match text.strip_prefix('@') {
        Some(user) => is_snowflake(user).then(|| Target::DiscordUser(user.into())),
        None => is_snowflake(text).then(|| Target::DiscordChannel(text.into())),
    }
}

/// Whether a text is one of Discord's ids: an unsigned number of 64 bits that holds a time.
#[must_use]
pub fn is_snowflake(id: &str) -> bool {
    (17..=20).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_digit()) && id.parse::<u64>().is_ok()
}

impl fmt::Display for Spot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.target {
            Target::SlackName(name) => write!(f, "slack:{}:#{name}", self.install),
            Target::SlackChannel(id) => write!(f, "slack:{}:{id}", self.install),
            Target::SlackUser(id) => write!(f, "slack:{}:@{id}", self.install),
            Target::DiscordChannel(id) => write!(f, "discord:{}:{id}", self.install),
            Target::DiscordUser(id) => write!(f, "discord:{}:@{id}", self.install),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(spot) => spot.fmt(f),
            Self::Owner => f.write_str("dm:owner"),
            Self::Group(name) => write!(f, "dm:{name}"),
        }
    }
}

impl From<Place> for String {
    fn from(place: Place) -> Self {
        place.to_string()
    }
}

impl<'de> Deserialize<'de> for Place {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

/// What a chat platform said happened to a channel. A hint: what is true is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChannelNews {
    /// Archived, or opened again.
    Changed { channel: String },
    /// Somebody came in; that may be us.
    Joined { channel: String, user: String },
    /// It has another id from now on.
    Moved { from: String, to: String },
}

/// Who we are on the platform.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    pub app_id: String,
    /// Slack team; `None` for an install of a whole organisation.
    pub team: Option<String>,
    pub enterprise: Option<String>,
    pub bot_user: String,
    /// Whether posts of unknown outcome can be looked for.
    pub can_search: bool,
}

impl Identity {
    /// The realm in which this install's members are known: the enterprise, else the team.
    #[must_use]
    pub fn realm(&self) -> &str {
        self.enterprise.as_deref().or(self.team.as_deref()).unwrap_or_default()
    }
}

/// Where to post.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    pub channel: String,
    pub thread: Option<String>,
}

/// One message on the platform.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MessageRef {
    pub channel: String,
    pub message: String,
}

impl MessageRef {
    /// The message as it is named within a channel: one in a thread below it is `<thread>/<message>` there.
    #[must_use]
    pub fn within(self, channel: &str) -> Self {
        if self.channel == channel {
            return self;
        }
        Self { channel: channel.to_owned(), message: format!("{}/{}", self.channel, self.message) }
    }

    /// The thread below the channel in which it is, if it is in one.
    #[must_use]
    pub fn thread(&self) -> Option<&str> {
        self.message.split_once('/').map(|(thread, _)| thread)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_read_back_as_written() {
        for text in [
            "slack:acme:#releases",
            "slack:acme:C0OPS",
            "slack:acme:G0PRIV",
            "slack:acme:@U0DANA",
            "slack:acme:@W0WIM",
            "discord:guild:4400000000000000004",
            "discord:guild:@3300000000000000003",
            "dm:owner",
            "dm:release",
        ] {
            assert_eq!(Place::parse(text).unwrap().to_string(), text);
        }
        for text in [
            "",
            "slack:acme",
            "slack::#x",
            "slack:acme:#",
            "slack:acme:ops",
            "slack:acme:@dana",
            "slack:acme:@",
            "slack:acme:U0DANA",
            "telegram:x:y",
            "slack:acme:C0;DROP",
            "dm:",
            "dm",
            "dm:owner:more",
            "discord:guild:44",
            "discord:guild:#general",
            "discord:guild:99999999999999999999",
            "discord::4400000000000000004",
        ] {
            assert_eq!(Place::parse(text), Err(PlaceError::Form), "{text}");
        }
        assert_eq!(Spot::parse("dm:owner"), Err(PlaceError::Form));
    }
}

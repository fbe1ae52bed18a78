//! What `check` looks at on Discord: credentials, the way in, the clock, places.
//!
//! Invariant: nothing is posted, no gateway is opened, nothing is changed.

use super::calls::Call;
use super::fields::{id, text};
use super::gate::Worth;
use super::places::takes_cards;
use super::platform::Discord;
use super::rest::Body;
use super::rights::missing;
use crate::bridge::ports::{ChatError, Finding, clock};
use crate::domain::place::Target;
use serde_json::Value;

/// Signed requests are refused beyond five minutes; before that, ages of presses are judged by our clock.
const MOST_SKEW: i64 = 60_000;
/// Of 1000 a day; a reset of the bot token follows when they are used up.
const FEW_STARTS: u64 = 50;

impl Discord {
    pub(super) async fn look_at_install(&self) -> Vec<Finding> {
        let application = match self.rest.call(Call::application(), Worth::Needed, Body::None).await {
            Ok(answer) => answer,
            Err(failed) => return vec![refused(&failed.error)],
        };
        let mut findings = vec![];
        let name = text(&application.body, "/name").unwrap_or("?").to_owned();
        if id(&application.body, "/id").as_deref() != Some(self.application.as_str()) {
            findings.push(Finding::error(
                "the bot token is of another application than application_id",
                "copy both from the same application's page",
            ));
            return findings;
        }
        findings.push(Finding::ok(format!("the token is taken: application {}", clean(&name))));
        findings.push(match self.wrong_way_in(&application.body) {
            Some(wrong) => Finding::error(wrong, "see the application's page, \"General Information\""),
            None if self.public_key.is_some() => {
                Finding::ok("clicks come over HTTP, signed with the configured key")
            }
            None => Finding::ok(
                "clicks come over the gateway; `check` opens none, so it cannot tell whether they do",
            ),
        });
        if let Some(theirs) = application.date {
            findings.push(clock("Discord", self.clock.now().0 - theirs, MOST_SKEW));
        }
        if self.public_key.is_none() {
            findings.push(self.starts_left().await);
        }
        if self.guild.is_none() {
            findings.push(Finding::warning(
                "guild_id is not set: who clicks in direct messages has no roles there",
                "set it where people are approvers by a role",
            ));
        }
        findings
    }

    async fn starts_left(&self) -> Finding {
        match self.rest.call(Call::gateway(), Worth::Needed, Body::None).await {
            Ok(answer) => {
                let left = answer.body.pointer("/session_start_limit/remaining").and_then(Value::as_u64);
                match left {
                    Some(left) if left < FEW_STARTS => Finding::warning(
                        format!("only {left} gateway connections may be begun today"),
                        "see what begins so many: another process with this bot token?",
                    ),
                    Some(_) | None => Finding::ok("the gateway's address is given"),
                }
            }
            Err(failed) => refused(&failed.error),
        }
    }

    pub(super) async fn look_at_place(&self, target: &Target) -> Vec<Finding> {
        let channel = match target {
            Target::DiscordChannel(channel) => channel,
            Target::DiscordUser(_) => {
                return vec![Finding::ok("whether direct messages are taken shows with the first one")];
            }
            _ => {
                return vec![Finding::error(
                    "this is no place on Discord",
                    "write discord:<name>:<channel id>",
                )];
            }
        };
        match self.rest.call(Call::read_channel(channel), Worth::Needed, Body::None).await {
            Ok(seen) => match takes_cards(&seen.body) {
                Ok(()) => {
                    let name = text(&seen.body, "/name").unwrap_or("?");
                    let mut findings = vec![Finding::ok(format!("the channel is there: {}", clean(name)))];
                    findings.extend(self.rights_in(&seen.body).await);
                    findings
                }
                Err(error) => vec![Finding::error(error.to_string(), "name a text channel or a thread")],
            },
            Err(failed) => match &failed.error {
                ChatError::Place { code } if code == "10003" => {
                    vec![Finding::error("there is no such channel", "copy its id again")]
                }
                ChatError::Place { code } => vec![Finding::error(
                    format!("we do not see the channel ({code})"),
                    "give the bot View Channel, Send Messages, Embed Links, Attach Files and Read Message History there",
                )],
                error => vec![refused(error)],
            },
        }
    }
}

impl Discord {
    /// Whether we may do in a channel what cards need.
    async fn rights_in(&self, channel: &Value) -> Option<Finding> {
        let server = id(channel, "/guild_id")?;
        let thread = channel.get("thread_metadata").is_some_and(Value::is_object);
        match self.missing_rights(&server, channel, thread).await {
            Ok(missing) if missing.is_empty() => {
                Some(Finding::ok("we have every right that cards need there"))
            }
            Ok(missing) => {
                let missing = missing.join(", ");
                let fix = "give them to the bot's role, or to the bot in this channel";
                Some(Finding::error(format!("we lack rights there: {missing}"), fix))
            }
            Err(error) => {
                tracing::debug!(%error, "rights could not be looked at");
                None
            }
        }
    }

    pub(super) async fn missing_rights(
        &self,
        server: &str,
        channel: &Value,
        thread: bool,
    ) -> Result<Vec<&'static str>, ChatError> {
        let me = self.me().await?;
        let above = match id(channel, "/parent_id").filter(|_| thread) {
            Some(parent) => self.rest.call(Call::read_channel(&parent), Worth::Usual, Body::None).await?.body,
            None => channel.clone(),
        };
        let roles = self.rest.call(Call::roles(server), Worth::Usual, Body::None).await?;
        let member = self.rest.call(Call::member(server, &me), Worth::Usual, Body::None).await?;
        Ok(missing(server, &roles.body, &member.body, &above, thread))
    }
}

fn refused(error: &ChatError) -> Finding {
    match error {
        ChatError::Auth { code, .. } => Finding::error(
            format!("the bot token is refused ({code})"),
            "copy it again from the application's page",
        ),
        error => {
            Finding::error(format!("Discord did not answer: {error}"), "see whether api_url can be reached")
        }
    }
}

/// A name in a finding: it is foreign.
fn clean(name: &str) -> String {
    let name = crate::domain::text::line(name);
    super::limits::short(&name, super::limits::LABEL, super::limits::Place::Plain)
}

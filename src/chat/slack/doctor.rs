//! What `check` looks at in an install: token, scopes, app, clock, and each configured place.
//!
//! Invariant: nothing is posted and nothing opened; every finding says what to do.

use super::Slack;
use super::methods::Method;
use super::payload::flag;
use super::scopes::{self, Loss};
use crate::bridge::ports::{ChatError, Finding, clock};
use crate::domain::place::Target;
use serde_json::{Value, json};
use std::time::Duration;

/// Slack refuses our signature check's five minutes from either side; a minute is kept in hand.
const CLOCK_MS: i64 = 240_000;
/// A place is looked at when it is its turn: so long a turn, so many times.
const PATIENCE: Duration = Duration::from_secs(10);
const TURNS: usize = 5;

impl Slack {
    pub(super) async fn look_at_install(&self) -> Vec<Finding> {
        let answer = match self.api.call(Method::AuthTest, json!({})).await {
            Ok(answer) => answer,
            Err(error) => return vec![not_identified(&error)],
        };
        let mut findings = vec![];
        match &answer.scopes {
            Some(granted) => findings.extend(missing(granted)),
            None => findings.push(Finding::warning(
                "the granted scopes are not said",
                "compare them with `countersign slack manifest`",
            )),
        }
        if let Some(date) = answer.date {
            findings.push(clock("Slack", date - self.clock.now().0, CLOCK_MS));
        }
        match self.ask_who().await {
            Ok(known) => {
                let (app, realm) = (known.identity.app_id.clone(), known.identity.realm().to_owned());
                findings.insert(0, Finding::ok(format!("app {app}, realm {realm}")));
                // Configured, and perhaps another's: read where the token may.
                if let (Some(configured), Ok(read)) =
                    (&self.app_id, self.ask_app(known.bot_id.as_deref()).await)
                    && *configured != read
                {
                    findings.push(Finding::error(
                        format!("app_id is {configured}, and the bot token belongs to {read}"),
                        "every press would be refused: write the token's app, or remove app_id",
                    ));
                }
            }
            Err(ChatError::Permanent { code }) if code == "app_id_unknown" => findings.push(Finding::error(
                "the bot token may not read which app it belongs to",
                "grant users:read, or set app_id",
            )),
            Err(error) => findings.push(not_identified(&error)),
        }
        findings
    }

    /// Waits for its turn where Slack takes only so many questions a minute.
    pub(super) async fn look_at_place(&self, target: &Target) -> Vec<Finding> {
        for _ in 0..TURNS {
            match self.look_once(target).await {
                Err(ChatError::Paced { after }) if after <= PATIENCE => tokio::time::sleep(after).await,
                Err(error) => return vec![unread(&error)],
                Ok(findings) => return findings,
            }
        }
        vec![unread(&ChatError::Paced { after: PATIENCE })]
    }

    async fn look_once(&self, target: &Target) -> Result<Vec<Finding>, ChatError> {
        let channel = match self.resolve_target(target).await {
            Ok(channel) => channel,
            Err(error @ ChatError::Paced { .. }) => return Err(error),
            Err(ChatError::Place { code }) if code == "channel_name_unknown" => {
                return Ok(vec![Finding::error(
                    "no channel has this name (archived ones and private ones without the app are not seen)",
                    "mend the name, or invite the app there",
                )]);
            }
            Err(error) => {
                return Ok(vec![Finding::error(error.to_string(), "invite the app there, or mend the name")]);
            }
        };
        let answer = match self.api.call(Method::ConversationInfo, json!({ "channel": channel })).await {
            Ok(answer) => answer,
            Err(ChatError::Auth { code, needed }) => {
                return Ok(vec![Finding::warning(
                    format!("is {channel}; whether the app is in it cannot be read ({code} {needed})"),
                    format!("grant {needed}"),
                )]);
            }
            Err(error @ (ChatError::Paced { .. } | ChatError::Unavailable { .. })) => return Err(error),
            Err(error) => {
                return Ok(vec![Finding::error(
                    format!("is {channel}, which we cannot see: {error}"),
                    "invite the app there (`/invite @Countersign`), or mend the id",
                )]);
            }
        };
        let found = answer.body.get("channel").unwrap_or(&Value::Null);
        let granted = |scope: &str| {
            answer.scopes.as_ref().is_some_and(|scopes| scopes.iter().any(|granted| granted == scope))
        };
        let is = |name: &str| flag(found, &format!("/{name}"));
        Ok(vec![if is("is_archived") {
            Finding::error(format!("is {channel}, which is archived"), "unarchive it, or name another place")
        } else if is("is_im") || is("is_member") {
            Finding::ok(format!("is {channel}"))
        } else if !is("is_private") && granted("chat:write.public") {
            Finding::warning(
                format!("is {channel}, in which the app is no member"),
                "cards can be posted; invite the app so that lost posts can be looked for",
            )
        } else {
            Finding::error(
                format!("is {channel}, in which the app is no member"),
                "invite the app there: `/invite @Countersign`",
            )
        }])
    }
}

fn unread(error: &ChatError) -> Finding {
    Finding::warning(format!("whether the app is in it could not be read: {error}"), "try again")
}

fn not_identified(error: &ChatError) -> Finding {
    match error {
        ChatError::Auth { code, needed } => Finding::error(
            format!("the bot token is refused ({})", format!("{code} {needed}").trim()),
            "copy the Bot User OAuth Token of the installed app",
        ),
        error => Finding::error(error.to_string(), "see whether this machine reaches the Web API"),
    }
}

fn missing(granted: &[String]) -> Vec<Finding> {
    let fix = |scope: &str| format!("add {scope} (`countersign slack manifest`) and install the app again");
    scopes::all()
        .into_iter()
        .filter(|scope| granted.iter().all(|granted| granted != scope))
        .map(|scope| match scopes::loss(scope) {
            Loss::Everything => Finding::error(format!("the scope {scope} is missing"), fix(scope)),
            Loss::Part(what) => Finding::warning(format!("without the scope {scope}, {what}"), fix(scope)),
        })
        .collect()
}

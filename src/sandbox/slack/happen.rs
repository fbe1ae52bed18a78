//! What happens in a workspace, with the event Slack sends about it, and the retries of events.
//!
//! Invariant: an event that was not acknowledged is sent again at once, a minute and five minutes
//! after, by this world's clock, unless the answer asked for no retries; the body is the same each
//! time. Retries go out only while somebody keeps time ([`SlackWorld::keep_time`]) or asks for them
//! ([`SlackWorld::retry_due`]).

use super::deliver::Delivery;
use super::payload::{self, PressError};
use super::types::{ChannelKind, TokenState};
use super::world::{SlackWorld, State};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// How long after the first failure the retries come.
const RETRIES_MS: [i64; 3] = [0, 60_000, 300_000];

/// Something that Slack tells the app.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case", deny_unknown_fields)]
pub enum Happening {
    /// Somebody opens the app; `tab` is `home` or `messages`.
    AppHomeOpened {
        team: String,
        user: String,
        tab: String,
    },
    /// `channel_archive`, or `group_archive` of a private channel; puts the bots out of it.
    Archived {
        channel: String,
        by: String,
    },
    Unarchived {
        channel: String,
        by: String,
    },
    /// A channel gets a new id.
    ChannelIdChanged {
        old: String,
        new: String,
    },
    /// Somebody, perhaps the bot, joins a channel.
    Joined {
        channel: String,
        user: String,
    },
    /// `app_uninstalled`; the tokens of the install are dead from now on.
    AppUninstalled {
        team: String,
    },
    TokensRevoked {
        team: String,
    },
}

/// An event that is to be sent again.
pub(super) struct Retry {
    body: Value,
    /// Of the next sending, from 1.
    number: u32,
    first_ms: i64,
    reason: &'static str,
}

impl Retry {
    fn due_ms(&self) -> i64 {
        let at = usize::try_from(self.number).unwrap_or(1).saturating_sub(1);
        self.first_ms.saturating_add(RETRIES_MS.get(at).copied().unwrap_or(0))
    }
}

fn reason(delivery: &Delivery) -> &'static str {
    match delivery.status {
        _ if delivery.socket.is_some() => "timeout",
        0 if delivery.body.contains("timed out") || delivery.body.contains("timeout") => "http_timeout",
        0 => "connection_failed",
        200 => "http_timeout",
        _ => "http_error",
    }
}

impl State {
    /// Changes the world; the workspace and the event that tells of it.
    fn happen(&mut self, happening: &Happening) -> Result<(String, Value), PressError> {
        let place = |state: &Self, id: &str| {
            let found = state.channels.get(id).ok_or(PressError::Nothing)?;
            Ok((found.team.clone(), found.kind == ChannelKind::Private))
        };
        Ok(match happening {
            Happening::AppHomeOpened { team, user, tab } => {
                let channel = self.direct_of(team, user);
                let mut event =
                    json!({"type": "app_home_opened", "user": user, "channel": channel, "tab": tab});
                let key = self.install_of(team).map(|install| install.key().to_owned());
                let home = self.views.values().find(|view| {
                    view.surface == "home" && view.user == *user && Some(&view.install) == key.as_ref()
                });
                if let Some(home) = home.filter(|_| tab == "home") {
                    event["view"] = super::api::shown_view(self, home);
                }
                (team.clone(), event)
            }
            Happening::Archived { channel, by } => {
                let (team, private) = place(self, channel)?;
                self.set_archived(channel, true);
                let kind = if private { "group_archive" } else { "channel_archive" };
                (team, json!({"type": kind, "channel": channel, "user": by, "is_moved": 0}))
            }
            Happening::Unarchived { channel, by } => {
                let (team, private) = place(self, channel)?;
                self.set_archived(channel, false);
                let kind = if private { "group_unarchive" } else { "channel_unarchive" };
                (team, json!({"type": kind, "channel": channel, "user": by}))
            }
            Happening::ChannelIdChanged { old, new } => {
                let (team, _) = place(self, old)?;
                self.move_channel(old, new);
                let event =
                    json!({"type": "channel_id_changed", "old_channel_id": old, "new_channel_id": new});
                (team, event)
            }
            Happening::Joined { channel, user } => {
                let (team, private) = place(self, channel)?;
                if let Some(found) = self.channels.get_mut(channel) {
                    found.members.insert(user.clone());
                }
                let kind = if private { "G" } else { "C" };
                let event = json!({"type": "member_joined_channel", "user": user, "channel": channel,
                    "channel_type": kind, "team": team});
                (team, event)
            }
            Happening::AppUninstalled { team } => {
                self.kill_tokens(team)?;
                (team.clone(), json!({"type": "app_uninstalled"}))
            }
            Happening::TokensRevoked { team } => {
                let bot = self.kill_tokens(team)?;
                (team.clone(), json!({"type": "tokens_revoked", "tokens": {"oauth": [], "bot": [bot]}}))
            }
        })
    }

    /// The direct message of a person with the bot that serves this workspace, or the id it would get.
    pub(super) fn direct_of(&self, team: &str, user: &str) -> String {
        let bot = self.install_of(team).map(|install| install.bot_user.clone()).unwrap_or_default();
        let open = self.channels.values().find(|channel| {
            channel.kind == ChannelKind::Dm(user.to_owned()) && channel.members.contains(&bot)
        });
        open.map_or_else(|| format!("D{}", user.get(1..).unwrap_or_default()), |open| open.id.clone())
    }

    /// The install's tokens are revoked; its bot user.
    fn kill_tokens(&mut self, team: &str) -> Result<String, PressError> {
        let install = self.install_of(team).ok_or(PressError::NoInstall)?;
        let (key, bot) = (install.key().to_owned(), install.bot_user.clone());
        for install in self.installs.values_mut().filter(|install| install.key() == key) {
            install.state = TokenState::Revoked;
        }
        Ok(bot)
    }
}

impl SlackWorld {
    /// Lets something happen and tells the app.
    pub async fn happens(&self, happening: &Happening) -> Result<Delivery, PressError> {
        let now_ms = self.time.now_ms();
        let body = self.change(|state| {
            let (team, event) = state.happen(happening)?;
            payload::event(state, &team, &event, now_ms)
        })?;
        self.tell(&body).await
    }

    /// Sends an event that was made, and notes it for a retry if nobody took it.
    pub(super) async fn tell(&self, body: &Value) -> Result<Delivery, PressError> {
        let delivery = self.event_again(body, None).await.into_iter().next().ok_or(PressError::Nothing)?;
        self.note_retry(body, 1, delivery.at_ms, &delivery);
        Ok(delivery)
    }

    fn note_retry(&self, body: &Value, number: u32, first_ms: i64, delivery: &Delivery) {
        let most = u32::try_from(RETRIES_MS.len()).unwrap_or(u32::MAX);
        if delivery.acked() || delivery.no_retry || number > most || !self.switches().event_retries {
            return;
        }
        let retry = Retry { body: body.clone(), number, first_ms, reason: reason(delivery) };
        self.change(|state| state.retries.push(retry));
    }

    /// Sends the retries that are due now; what came of them.
    pub async fn retry_due(&self) -> Vec<Delivery> {
        let now_ms = self.time.now_ms();
        let due: Vec<Retry> = {
            let mut state = self.lock();
            let (due, later) =
                std::mem::take(&mut state.retries).into_iter().partition(|retry| retry.due_ms() <= now_ms);
            state.retries = later;
            due
        };
        let mut done = Vec::new();
        for retry in due {
            let Retry { body, number, first_ms, reason } = retry;
            for delivery in self.event_again(&body, Some((number, reason))).await {
                self.note_retry(&body, number + 1, first_ms, &delivery);
                done.push(delivery);
            }
        }
        done
    }

    /// Sends retries when they are due, for as long as it is awaited.
    pub async fn keep_time(&self) {
        let mut changed = self.changed();
        loop {
            changed.mark_unchanged();
            let next = self.lock().retries.iter().map(Retry::due_ms).min();
            tokio::select! {
                () = self.time.until(next.unwrap_or(i64::MAX)), if next.is_some() => {
                    self.retry_due().await;
                }
                _ = changed.changed() => {}
            }
        }
    }

    /// An event that the app sees only as a retry: its first sending was lost on the way.
    pub async fn event_missed(&self, team: &str, event: &Value) -> Result<Delivery, PressError> {
        let now_ms = self.time.now_ms();
        let body = self.change(|state| payload::event(state, team, event, now_ms))?;
        let reason = if self.switches().socket_mode { "timeout" } else { "http_timeout" };
        self.event_again(&body, Some((1, reason))).await.into_iter().next().ok_or(PressError::Nothing)
    }
}

//! Switches where Discord's true behaviour is unsettled, or depends on how a test wants it.
//!
//! Invariant: the defaults are the strict reading; a test flips a switch to see that the product
//! does not depend on it.

use serde::{Deserialize, Serialize};

/// The switches of one world.
#[expect(clippy::struct_excessive_bools, reason = "each is one independent switch")]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Switches {
    /// How long a nonce with `enforce_nonce` is remembered.
    pub nonce_window_ms: i64,
    /// A first response with a form error uses the click up.
    pub bad_callback_closes: bool,
    /// After a form was opened, `@original` is the message whose control opened it; else there is none.
    pub original_after_modal: bool,
    /// A message older than an hour takes this many edits in ten minutes; then 30046.
    pub old_edits: usize,
    /// `POST /users/@me/channels` takes this many new channels in ten minutes; then 40003.
    pub dm_opens: usize,
    /// Answers of 401, 403 and 429 (but those of scope `shared`) in ten minutes until everything is a page of HTML.
    pub ban_after: usize,
    /// Bot-token paths ask for a `User-Agent` in Discord's form.
    pub user_agent: bool,
    /// The applications see the content of other people's messages.
    pub message_content: bool,
    /// Clicks leave out every optional field.
    pub bare_payloads: bool,
    /// Clicks carry fields nobody knows.
    pub unknown_fields: bool,
    /// READY names the guilds as unavailable and sends them one by one.
    pub guilds_arrive: bool,
    /// Heartbeats are asked for so often.
    pub heartbeat_ms: u64,
    /// What `/gateway/bot` says is left of the day's IDENTIFYs, and when it is full again.
    pub identify_left: Option<u32>,
    pub identify_reset_ms: i64,
    /// IDENTIFYs in five seconds.
    pub identify_at_once: usize,
    /// Where READY sends a resuming client, in place of this server.
    pub resume_url: Option<String>,
    /// What `/gateway/bot` names, in place of this server.
    pub gateway_url: Option<String>,
}

impl Default for Switches {
    fn default() -> Self {
        Self {
            nonce_window_ms: 180_000,
            bad_callback_closes: false,
            original_after_modal: false,
            old_edits: 5,
            dm_opens: 40,
            ban_after: 10_000,
            user_agent: true,
            message_content: false,
            bare_payloads: false,
            unknown_fields: false,
            guilds_arrive: true,
            heartbeat_ms: 41_250,
            identify_left: None,
            identify_reset_ms: 86_400_000,
            identify_at_once: 1,
            resume_url: None,
            gateway_url: None,
        }
    }
}

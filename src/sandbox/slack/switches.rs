//! Switches where Slack's true behaviour is unsettled, or depends on how an app is distributed.
//!
//! Invariant: the defaults are the strict reading; a test flips a switch to see that the product
//! does not depend on it.

use serde::{Deserialize, Serialize};

/// How text lengths are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// UTF-8 bytes: the strictest.
    #[default]
    Bytes,
    Utf16,
    CodePoints,
}

impl Unit {
    /// The length of a text in this unit.
    #[must_use]
    pub fn length(self, text: &str) -> usize {
        match self {
            Self::Bytes => text.len(),
            Self::Utf16 => text.encode_utf16().count(),
            Self::CodePoints => text.chars().count(),
        }
    }
}

/// What an update with `text` but without `blocks` does to the blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TextOnlyUpdate {
    /// As documented.
    #[default]
    DropsBlocks,
    /// As reported.
    KeepsBlocks,
}

/// The switches of one world.
#[expect(clippy::struct_excessive_bools, reason = "each is one independent switch")]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Switches {
    pub text_only_update: TextOnlyUpdate,
    pub unit: Unit,
    /// Refuses two options with one value, a line break in an option, and an `initial_option`
    /// that is none of the options.
    pub refuse_doubtful_options: bool,
    /// `conversations.history` and `.replies`: one call a minute, 15 rows.
    pub scarce_history: bool,
    /// Off: no token has a `*:history` scope.
    pub history_scopes: bool,
    /// Sends an interaction once more when its acknowledgement failed.
    pub interactive_redelivery: bool,
    /// An event that was not acknowledged is sent again (at once, after a minute, after five).
    pub event_retries: bool,
    /// Deliveries go over WebSockets that the app opens; the doors are unused then.
    pub socket_mode: bool,
    /// `apps.connections.open`: the tier of the official SDK's data (one a minute), not the
    /// documented third.
    pub scarce_connections: bool,
    /// `hello` and `disconnect` carry nothing but their type and reason, envelopes no
    /// `accepts_response_payload`.
    pub bare_frames: bool,
    /// The app id that `hello` names in place of the true one.
    pub hello_app_id: Option<String>,
    /// The app's Home tab is on.
    pub home_tab: bool,
    /// The app's Messages tab is on; off: nobody can be written to directly.
    pub messages_tab: bool,
}

impl Default for Switches {
    fn default() -> Self {
        Self {
            text_only_update: TextOnlyUpdate::default(),
            unit: Unit::default(),
            refuse_doubtful_options: true,
            scarce_history: false,
            history_scopes: true,
            interactive_redelivery: false,
            event_retries: true,
            socket_mode: false,
            scarce_connections: true,
            bare_frames: false,
            hello_app_id: None,
            home_tab: true,
            messages_tab: true,
        }
    }
}

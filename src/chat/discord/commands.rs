//! Our slash commands, told to Discord when they have changed.
//!
//! Invariant: the whole set is put at once, and only when it is another than the one that was put last: creating
//! commands is limited per day. What was put last is kept by the caller.

use super::calls::Call;
use super::gate::Worth;
use super::limits::{MODAL_HINT, Place, short};
use super::platform::Discord;
use super::rest::Body;
use crate::bridge::ports::ChatError;
use crate::domain::form::{canonical, sha256_hex};
use crate::domain::text::line;
use crate::render::Templates;
use crate::render::discord::CommandText;
use serde_json::Value;
use serenity::builder::{CreateCommand, CreateCommandOption};
use serenity::model::application::{CommandOptionType, InstallationContext, InteractionContext};

/// The words after `/countersign`.
const WORDS: [&str; 3] = ["open", "unlink", "help"];

impl Discord {
    /// Puts our commands, unless `known` says that these were put before. Returns what is to be kept.
    pub(super) async fn put_commands(&self, known: Option<&str>) -> Result<Option<String>, ChatError> {
        let set = commands(&self.templates);
        let scope = self.guild.as_deref().unwrap_or("global");
        let mark = sha256_hex(format!("{scope} {}", canonical(&set)).as_bytes());
        if known == Some(mark.as_str()) {
            return Ok(None);
        }
        let call = Call::put_commands(&self.application, self.guild.as_deref());
        self.rest.call(call, Worth::Usual, Body::Json(&set)).await?;
        Ok(Some(mark))
    }
}

/// The set, as it is put.
pub(super) fn commands(templates: &Templates) -> Value {
    let words = |part| short(&line(&templates.render(&CommandText { part })), MODAL_HINT, Place::Plain);
    let mut command = CreateCommand::new("countersign")
        .description(words("countersign"))
        .contexts(vec![InteractionContext::Guild, InteractionContext::BotDm])
        .integration_types(vec![InstallationContext::Guild]);
    for word in WORDS {
        command =
            command.add_option(CreateCommandOption::new(CommandOptionType::SubCommand, word, words(word)));
    }
    serde_json::to_value([command]).unwrap_or_default()
}

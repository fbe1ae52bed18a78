//! Telling one person privately: by the press's own token while it lives, else by direct message.
//!
//! Invariant: a private message is best effort and may repeat: any failure of one way leads to the next. A token
//! that was refused is never used again; a person whose direct messages are closed is left alone for a day.

use super::calls::Call;
use super::errors::unusable;
use super::gate::Worth;
use super::message::EPHEMERAL;
use super::platform::Discord;
use super::rest::{Body, Failed};
use super::views::{FILE, file};
use crate::bridge::ports::{ChatError, Person, WayIn};
use crate::domain::form::sha256_hex;
use crate::domain::view::View;
use secrecy::ExposeSecret;
use serde_json::{Value, json};

/// What became of the first response to a press.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Responded {
    /// Taken; also when an earlier try had arrived.
    Yes,
    /// The press is too old, or not known any more: what it opens cannot open, what it decides is decided.
    TooLate,
    /// Refused as a whole: a bare acknowledgement may still be taken.
    Refused,
    /// It may have been taken.
    Unknown,
}

impl Discord {
    /// Sends the first response to a press.
    pub async fn respond(&self, id: &str, token: &str, response: &Value) -> Responded {
        match self.rest.send(Call::callback(id, token), Worth::Answer, Body::Json(response)).await {
            Ok(_) => Responded::Yes,
            Err(failed) => match failed.error {
                ChatError::TooLate { .. } => Responded::TooLate,
                ChatError::Unknown { .. } | ChatError::Unavailable { .. } | ChatError::Paced { .. } => {
                    Responded::Unknown
                }
                _ => Responded::Refused,
            },
        }
    }

    /// Whether the first response to a press was taken: what it opened is there.
    pub async fn is_open(&self, way: &WayIn) -> bool {
        let WayIn::Answer(token) = way else { return false };
        let call = Call::read_original(&self.application, token.expose_secret());
        self.rest.send(call, Worth::Answer, Body::None).await.is_ok()
    }

    /// Shows one person a drawing, in the place of the answer they wait for if there is one.
    pub(super) async fn answer_with(&self, to: &Person, message: Value) -> Result<(), ChatError> {
        if let (true, Some(token)) = (to.awaited, &to.reply) {
            let call = Call::edit_original(&self.application, token.expose_secret());
            match self.rest.send(call, Worth::Answer, Body::Json(&message)).await {
                Ok(_) => return Ok(()),
                Err(Failed {
                    error: error @ (ChatError::Unknown { .. } | ChatError::Unavailable { .. }),
                    ..
                }) => {
                    return Err(error);
                }
                Err(_) => {}
            }
        }
        self.show(to, message).await
    }

    /// Fills the private answer that is waiting with everything of a card, as a file.
    pub(super) async fn fill_with_file(&self, way: &WayIn, view: &View) -> Result<(), ChatError> {
        let WayIn::Answer(token) = way else { return Err(ChatError::TooLate { code: "no_token".into() }) };
        let (json, text) = file(&self.templates, view);
        let call = Call::edit_original(&self.application, token.expose_secret());
        let body = Body::File { json: &json, name: FILE, text: &text };
        self.rest.send(call, Worth::Answer, body).await?;
        Ok(())
    }

    /// Shows one person a message privately, by the first way that leads to them.
    pub(super) async fn show(&self, to: &Person, message: Value) -> Result<(), ChatError> {
        if let Some(token) = &to.reply
            && self.by_token(token.expose_secret(), &message, to.awaited).await
        {
            return Ok(());
        }
        self.by_dm(&to.user, message).await
    }

    /// `awaited`: in the place of the answer that says one is coming.
    async fn by_token(&self, token: &str, message: &Value, awaited: bool) -> bool {
        let dead = format!("token:{}", sha256_hex(token.as_bytes()));
        if token.is_empty() || self.once.knows(&dead) {
            return false;
        }
        let mut private = message.clone();
        if !awaited {
            private["flags"] = json!(EPHEMERAL);
        }
        for last in [false, true] {
            let call = if awaited {
                Call::edit_original(&self.application, token)
            } else {
                Call::follow_up(&self.application, token)
            };
            match self.rest.call(call, Worth::Answer, Body::Json(&private)).await {
                Ok(_) => return true,
                Err(Failed { error: ChatError::TooLate { .. } | ChatError::Permanent { .. }, .. }) => {
                    self.once.remember(&dead);
                    return false;
                }
                // A second notice is better than none.
                Err(Failed { error: ChatError::Unknown { .. } | ChatError::Unavailable { .. }, .. })
                    if !last => {}
                Err(_) => return false,
            }
        }
        false
    }

    async fn by_dm(&self, user: &str, mut message: Value) -> Result<(), ChatError> {
        if user.is_empty() {
            return Err(ChatError::NoSuchPerson { code: "nobody".into() });
        }
        let channel = self.open_dm(user).await?;
        if self.is_closed(&channel) {
            return Err(ChatError::Place { code: "50007".into() });
        }
        message["nonce"] = json!(self.fresh_nonce());
        message["enforce_nonce"] = json!(true);
        let call = Call::post_message(&channel);
        match self.rest.call(call, Worth::Usual, Body::Json(&message)).await {
            Ok(_) => Ok(()),
            Err(failed) => {
                self.note_closed(&channel, &failed);
                self.note_closed(user, &Failed { error: unusable_dm(), code: failed.code });
                Err(failed.error)
            }
        }
    }
}

fn unusable_dm() -> ChatError {
    unusable(super::calls::Kind::OpenDm, "closed")
}

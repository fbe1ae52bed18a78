//! Carrying a person's subject to a runtime.
//!
//! Invariant: where a subject is given, the call is that person's and nobody else's; a token is
//! minted per attempt, with its own `jti`. Nothing made here is stored or logged.

use crate::domain::clock::Millis;
use crate::domain::ids::{Ids, Subject};
use crate::identity::jwt::{Actor, Claims, LIFE};
use crate::identity::keys::{Keys, KeysError};
use secrecy::{ExposeSecret, SecretString};
use std::sync::Arc;

/// The actor named in our tokens.
pub const ACTOR: &str = "countersign";
/// The usual name of the header that names a person.
pub const SUBJECT_HEADER: &str = "Nylorun-Subject";
/// The header with what a call may do.
pub const SCOPES_HEADER: &str = "Nylorun-Scopes";

/// How one runtime learns who calls.
pub struct Carry {
    /// The watching credential.
    token: Option<SecretString>,
    scopes: Vec<String>,
    how: How,
}

enum How {
    Jwt { issuer: String, audience: String, keys: Arc<Keys>, ids: Arc<dyn Ids> },
    Header { name: String },
    Nobody,
}

/// Why a call cannot be made a person's.
#[derive(Debug, thiserror::Error)]
pub enum CarryError {
    #[error("this runtime has no field for a person")]
    NoWay,
    #[error("the runtime has no `token`")]
    NoCredential,
    #[error("no token can be signed: {0}")]
    Key(#[from] KeysError),
}

impl Carry {
    /// A person is named by a token that we sign; `token` is what we watch with.
    #[must_use]
    pub fn jwt(
        token: Option<SecretString>,
        (issuer, audience): (String, String),
        scopes: Vec<String>,
        keys: Arc<Keys>,
        ids: Arc<dyn Ids>,
    ) -> Self {
        Self { token, scopes, how: How::Jwt { issuer, audience, keys, ids } }
    }

    /// A person is named by a header beside the watching credential.
    #[must_use]
    pub fn header(token: Option<SecretString>, name: String, scopes: Vec<String>) -> Self {
        Self { token, scopes, how: How::Header { name } }
    }

    /// A runtime that is only watched, or that has no field for a person.
    #[must_use]
    pub fn nobody(token: Option<SecretString>) -> Self {
        Self { token, scopes: vec![], how: How::Nobody }
    }

    /// Whether a person can be named to this runtime.
    #[must_use]
    pub fn names_people(&self) -> bool {
        !matches!(self.how, How::Nobody)
    }

    /// The headers of one attempt.
    ///
    /// # Errors
    /// When the subject cannot be named, or a key or credential is missing.
    pub fn headers(
        &self,
        subject: Option<&Subject>,
        at: Millis,
    ) -> Result<Vec<(String, SecretString)>, CarryError> {
        let Some(subject) = subject else {
            return Ok(self.token.iter().map(bearer).collect());
        };
        match &self.how {
            How::Jwt { issuer, audience, keys, ids } => {
                let iat = at.0.div_euclid(1000);
                let life = i64::try_from(LIFE.as_secs()).unwrap_or(0);
                let claims = Claims {
                    iss: issuer.clone(),
                    aud: audience.clone(),
                    sub: subject.as_str().into(),
                    act: Actor { sub: ACTOR.into() },
                    scope: self.scopes.join(" "),
                    iat,
                    exp: iat.saturating_add(life),
                    jti: ids.uuid().to_string(),
                };
                // Without subject headers: a runtime refuses a token that comes with them.
                Ok(vec![bearer(&keys.sign(&claims, at)?)])
            }
            How::Header { name } => {
                let token = self.token.as_ref().ok_or(CarryError::NoCredential)?;
                Ok(vec![
                    bearer(token),
                    (name.clone(), SecretString::from(subject.as_str())),
                    (SCOPES_HEADER.into(), SecretString::from(self.scopes.join(" "))),
                ])
            }
            How::Nobody => Err(CarryError::NoWay),
        }
    }
}

fn bearer(token: &SecretString) -> (String, SecretString) {
    ("authorization".into(), SecretString::from(format!("Bearer {}", token.expose_secret())))
}

impl std::fmt::Debug for Carry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let how = match self.how {
            How::Jwt { .. } => "jwt",
            How::Header { .. } => "subject_header",
            How::Nobody => "none",
        };
        f.debug_struct("Carry").field("how", &how).field("scopes", &self.scopes).finish_non_exhaustive()
    }
}

//! Who calls: from credentials and headers to a subject, or a refusal at the HTTP level.
//!
//! Invariant: a subject comes from a verified credential only, and exactly one way of naming it
//! counts: subject headers beside a JWT are refused, not ignored.

use super::error::Refusal;
use super::jwt::{Jwks, Verifier};
use axum::http::{HeaderMap, header};
use serde_json::Value;
use std::collections::BTreeMap;

/// The scope that lets a subject act on what it owns.
pub(super) const OWN: &str = "sessions:own";
/// Scopes the stand-in knows; any other name in the header is malformed.
const KNOWN_SCOPES: [&str; 3] = [OWN, "sessions:read", "agents:read"];
const SCOPES_HEADER: &str = "nylorun-scopes";

/// One way of being somebody. Several may hold at once, as at a real runtime.
pub enum AuthMode {
    /// An application key, acting for the subject named in the header `name`.
    Header { name: String, key: String },
    /// Tokens of a trusted issuer (ES256 or EdDSA).
    Jwt { issuer: String, audience: String, jwks: Jwks },
    /// Any other server: a token is a subject.
    Bearer { tokens: BTreeMap<String, String> },
}

/// What a watching credential may see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Watch {
    /// Every task; it may change nothing.
    All,
    /// It is this subject.
    Subject(String),
}

/// Whose call it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Caller {
    Watcher,
    Subject(String),
}

/// A verified caller, and the token's content where there was one.
#[derive(Debug)]
pub(super) struct Identity {
    pub(super) caller: Caller,
    pub(super) jwt: Option<Value>,
}

enum Mode {
    Header { name: String, key: String },
    Jwt(Verifier),
    Bearer(BTreeMap<String, String>),
}

pub(super) struct Auth {
    modes: Vec<Mode>,
    watchers: BTreeMap<String, Watch>,
}

impl Auth {
    pub(super) fn new(modes: Vec<AuthMode>, watchers: BTreeMap<String, Watch>) -> Self {
        let modes = modes
            .into_iter()
            .map(|mode| match mode {
                AuthMode::Header { name, key } => Mode::Header { name: name.to_ascii_lowercase(), key },
                AuthMode::Jwt { issuer, audience, jwks } => Mode::Jwt(Verifier::new(issuer, audience, jwks)),
                AuthMode::Bearer { tokens } => Mode::Bearer(tokens),
            })
            .collect();
        Self { modes, watchers }
    }

    /// What kind of credential a request carries, for the record.
    pub(super) fn kind(&self, headers: &HeaderMap) -> &'static str {
        let Ok(token) = bearer(headers) else {
            return if headers.contains_key(header::AUTHORIZATION) { "malformed" } else { "none" };
        };
        if self.watchers.contains_key(token) {
            return "watching token";
        }
        for mode in &self.modes {
            match mode {
                Mode::Header { key, .. } if key == token => return "application key",
                Mode::Bearer(tokens) if tokens.contains_key(token) => return "token",
                _ => {}
            }
        }
        if token.split('.').count() == 3 { "jwt" } else { "unknown" }
    }

    /// The caller of a request.
    pub(super) async fn identify(&self, headers: &HeaderMap, now_ms: i64) -> Result<Identity, Refusal> {
        let token = bearer(headers)?;
        match self.watchers.get(token) {
            Some(Watch::All) => return Ok(Identity { caller: Caller::Watcher, jwt: None }),
            Some(Watch::Subject(subject)) => return Ok(subject_of(subject.clone())),
            None => {}
        }
        for mode in &self.modes {
            match mode {
                Mode::Header { name, key } if key == token => return by_headers(headers, name),
                Mode::Bearer(tokens) => {
                    if let Some(subject) = tokens.get(token) {
                        return Ok(subject_of(subject.clone()));
                    }
                }
                _ => {}
            }
        }
        let invalid = Refusal::new(401, "credential_invalid", "The credential is not valid here.");
        let verifiers: Vec<&Verifier> = self
            .modes
            .iter()
            .filter_map(|mode| if let Mode::Jwt(v) = mode { Some(v) } else { None })
            .collect();
        if verifiers.is_empty() || token.split('.').count() != 3 {
            return Err(invalid);
        }
        let subject_header = |mode: &Mode| match mode {
            Mode::Header { name, .. } => headers.contains_key(name.as_str()),
            _ => false,
        };
        if headers.contains_key("nylorun-subject")
            || headers.contains_key(SCOPES_HEADER)
            || self.modes.iter().any(subject_header)
        {
            return Err(Refusal::new(403, "key_role_mismatch", "A token names its subject itself."));
        }
        let mut refusal = invalid;
        for verifier in verifiers {
            match verifier.verify(token, now_ms).await {
                Ok(verified) => {
                    let identity = subject_of(verified.subject);
                    return Ok(Identity { jwt: Some(verified.record), ..identity });
                }
                Err(why) => refusal = why,
            }
        }
        Err(refusal)
    }
}

fn subject_of(subject: String) -> Identity {
    Identity { caller: Caller::Subject(subject), jwt: None }
}

fn bearer(headers: &HeaderMap) -> Result<&str, Refusal> {
    let mut all = headers.get_all(header::AUTHORIZATION).iter();
    let Some(first) = all.next() else {
        return Err(Refusal::new(401, "credential_required", "A credential is required."));
    };
    let malformed = Refusal::new(401, "credential_invalid", "Send one Bearer credential.");
    if all.next().is_some() {
        return Err(malformed);
    }
    first
        .to_str()
        .ok()
        .and_then(|value| value.split_once(' '))
        .filter(|(scheme, token)| scheme.eq_ignore_ascii_case("bearer") && !token.is_empty())
        .map(|(_, token)| token)
        .ok_or(malformed)
}

/// One value of a header that may come once only.
fn once<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, Refusal> {
    let mut all = headers.get_all(name).iter();
    let Some(first) = all.next() else { return Ok(None) };
    let invalid = Refusal::new(400, "subject_invalid", "Send the subject and the scopes once each.");
    if all.next().is_some() {
        return Err(invalid);
    }
    first.to_str().map(Some).map_err(|_| invalid)
}

fn by_headers(headers: &HeaderMap, name: &str) -> Result<Identity, Refusal> {
    if headers.contains_key(header::ORIGIN) {
        return Err(Refusal::new(403, "origin_rejected", "A key is not used from a browser."));
    }
    let Some(subject) = once(headers, name)? else {
        return Err(Refusal::new(400, "subject_required", "A2A calls act for a subject."));
    };
    if !is_subject(subject) {
        return Err(Refusal::new(400, "subject_invalid", "The subject is not a subject."));
    }
    let scopes: Vec<&str> = once(headers, SCOPES_HEADER)?
        .unwrap_or_default()
        .split([' ', ','])
        .filter(|scope| !scope.is_empty())
        .collect();
    if scopes.is_empty() || scopes.iter().any(|scope| !KNOWN_SCOPES.contains(scope)) {
        return Err(Refusal::new(400, "subject_invalid", "The scopes are missing or unknown."));
    }
    if !scopes.contains(&OWN) {
        return Err(Refusal::new(403, "scope_required", "sessions:own is required."));
    }
    Ok(subject_of(subject.to_owned()))
}

/// 1 to 200 visible ASCII characters, inner spaces allowed, no reserved name.
pub(super) fn is_subject(subject: &str) -> bool {
    (1..=200).contains(&subject.len())
        && subject.bytes().all(|b| b.is_ascii_graphic() || b == b' ')
        && !subject.starts_with(' ')
        && !subject.ends_with(' ')
        && subject != "host"
        && subject != "installation"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_are_visible_and_not_reserved() {
        for good in ["dana@example.com", "Dana Scully", "discord:330", &"x".repeat(200)] {
            assert!(is_subject(good), "{good}");
        }
        for bad in ["", " dana", "dana ", "host", "installation", "dän", "a\tb", &"x".repeat(201)] {
            assert!(!is_subject(bad), "{bad}");
        }
    }
}

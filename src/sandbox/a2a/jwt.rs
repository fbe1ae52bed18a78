//! Tokens of a trusted issuer: ES256 and EdDSA, verified with ring, keys from a JWK Set.
//!
//! Invariant: the algorithm comes from an allow-list and must fit the key that `kid` names; nothing
//! in a token chooses where keys come from. An unknown `kid` makes the set be read again at most
//! once a minute, so a burst of bad tokens is not a burst of requests.

use super::auth::{OWN, is_subject};
use super::error::Refusal;
use crate::net;
use data_encoding::BASE64URL_NOPAD;
use ring::signature::{self, UnparsedPublicKey};
use serde_json::{Map, Value, json};
use std::time::Duration;
use tokio::sync::Mutex;

const MAX_TOKEN: usize = 16 * 1024;
const MAX_SET: usize = 256 * 1024;
const MAX_KEYS: usize = 64;
const REFETCH_MS: i64 = 60_000;
/// A set is read again after this time even when every `kid` is known, so that removed keys end.
const KEEP_MS: i64 = 600_000;
const TOLERANCE_S: i64 = 30;
const LIFETIME_S: i64 = 60;

/// Where an issuer's keys are.
pub enum Jwks {
    /// Fetched; at most 256 KiB and 64 keys, within 5 s, without redirects.
    Url(String),
    /// A JWK Set.
    Given(Value),
}

struct Key {
    kid: String,
    alg: &'static str,
    public: UnparsedPublicKey<Vec<u8>>,
}

#[derive(Default)]
struct Cache {
    keys: Vec<Key>,
    fetched_ms: Option<i64>,
    failed: bool,
}

pub(super) struct Verifier {
    issuer: String,
    audience: String,
    url: Option<String>,
    /// Held across a fetch on purpose: two unknown keys make one request.
    cache: Mutex<Cache>,
}

/// A token that holds.
#[derive(Debug)]
pub(super) struct Verified {
    pub(super) subject: String,
    /// Header and claims for the record; the signature is left out.
    pub(super) record: Value,
}

const fn invalid(message: &'static str) -> Refusal {
    Refusal::new(401, "credential_invalid", message)
}

impl Verifier {
    pub(super) fn new(issuer: String, audience: String, jwks: Jwks) -> Self {
        let (url, cache) = match jwks {
            Jwks::Url(url) => (Some(url), Cache::default()),
            Jwks::Given(set) => (None, Cache { keys: keys(&set), ..Cache::default() }),
        };
        Self { issuer, audience, url, cache: Mutex::new(cache) }
    }

    pub(super) async fn verify(&self, token: &str, now_ms: i64) -> Result<Verified, Refusal> {
        if token.len() > MAX_TOKEN {
            return Err(invalid("The token is too long."));
        }
        let (signed, signature) = token.rsplit_once('.').ok_or(invalid("Not a token."))?;
        let (head, body) = signed.split_once('.').ok_or(invalid("Not a token."))?;
        let header = object(head).ok_or(invalid("The token's header is not readable."))?;
        let signature = BASE64URL_NOPAD
            .decode(signature.as_bytes())
            .map_err(|_| invalid("The signature is not readable."))?;
        if ["jku", "jwk", "x5u", "x5c", "crit"].iter().any(|key| header.contains_key(*key)) {
            return Err(invalid("A token does not bring its own key."));
        }
        let text = |key: &str| header.get(key).and_then(Value::as_str);
        let alg = text("alg").filter(|alg| ["ES256", "EdDSA"].contains(alg));
        let alg = alg.ok_or(invalid("The algorithm is not allowed."))?;
        let kid = text("kid").ok_or(invalid("The token names no key."))?;
        self.check(kid, alg, signed.as_bytes(), &signature, now_ms).await?;
        let claims = object(body).ok_or(invalid("The claims are not readable."))?;
        let subject = self.claims(&claims, now_ms)?;
        Ok(Verified { subject, record: json!({"header": header, "claims": claims}) })
    }

    async fn check(
        &self,
        kid: &str,
        alg: &str,
        signed: &[u8],
        signature: &[u8],
        now_ms: i64,
    ) -> Result<(), Refusal> {
        let mut cache = self.cache.lock().await;
        let known = cache.keys.iter().any(|key| key.kid == kid);
        let age = cache.fetched_ms.map(|fetched| now_ms.saturating_sub(fetched));
        let due = age.is_none_or(|age| age >= if known { KEEP_MS } else { REFETCH_MS });
        if let Some(url) = &self.url
            && due
        {
            cache.fetched_ms = Some(now_ms);
            match fetch(url).await {
                Some(set) => *cache = Cache { keys: keys(&set), fetched_ms: Some(now_ms), failed: false },
                None => cache.failed = true,
            }
        }
        let Some(key) = cache.keys.iter().find(|key| key.kid == kid) else {
            return Err(if cache.failed {
                Refusal::new(401, "issuer_unavailable", "The issuer's keys cannot be read.")
            } else {
                invalid("The key is not known.")
            });
        };
        if key.alg != alg {
            return Err(invalid("The algorithm does not fit the key."));
        }
        key.public.verify(signed, signature).map_err(|_| invalid("The signature does not hold."))
    }

    fn claims(&self, claims: &Map<String, Value>, now_ms: i64) -> Result<String, Refusal> {
        let now = now_ms.div_euclid(1000);
        let text = |key: &str| claims.get(key).and_then(Value::as_str);
        if text("iss") != Some(self.issuer.as_str()) {
            return Err(invalid("The issuer is not trusted."));
        }
        let for_us = match claims.get("aud") {
            Some(Value::String(aud)) => *aud == self.audience,
            Some(Value::Array(all)) => all.iter().any(|aud| *aud == self.audience),
            _ => false,
        };
        if !for_us {
            return Err(invalid("The token is for another audience."));
        }
        let exp = claims.get("exp").and_then(Value::as_i64).ok_or(invalid("exp is required."))?;
        if exp.saturating_add(TOLERANCE_S) < now {
            return Err(Refusal::new(401, "token_expired", "The token has expired."));
        }
        if exp > now + LIFETIME_S + TOLERANCE_S {
            return Err(invalid("The token lives too long."));
        }
        let iat = claims.get("iat").and_then(Value::as_i64).ok_or(invalid("iat is required."))?;
        if iat > now + TOLERANCE_S {
            return Err(invalid("The token was issued in the future."));
        }
        if text("jti").is_none_or(str::is_empty) {
            return Err(invalid("jti is required."));
        }
        if claims.get("act").and_then(|act| act.get("sub")).and_then(Value::as_str).is_none_or(str::is_empty)
        {
            return Err(invalid("The token names nobody who acts for the subject."));
        }
        if !text("scope").unwrap_or_default().split(' ').any(|scope| scope == OWN) {
            return Err(Refusal::new(403, "scope_required", "sessions:own is required."));
        }
        let subject = text("sub").filter(|subject| is_subject(subject));
        subject.map(str::to_owned).ok_or(invalid("The subject is not a subject."))
    }
}

fn object(part: &str) -> Option<Map<String, Value>> {
    serde_json::from_slice(&BASE64URL_NOPAD.decode(part.as_bytes()).ok()?).ok()
}

async fn fetch(url: &str) -> Option<Value> {
    let limits = net::Limits { connect: Duration::from_secs(3), total: Duration::from_secs(5) };
    let mut response = net::client(limits).ok()?.get(url).send().await.ok()?;
    if response.status() != reqwest::StatusCode::OK {
        return None;
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.ok()? {
        body.extend_from_slice(&chunk);
        if body.len() > MAX_SET {
            return None;
        }
    }
    let set: Value = serde_json::from_slice(&body).ok()?;
    (set.get("keys")?.as_array()?.len() <= MAX_KEYS).then_some(set)
}

/// The usable keys of a set; others are left out.
fn keys(set: &Value) -> Vec<Key> {
    set.get("keys").and_then(Value::as_array).into_iter().flatten().filter_map(key).collect()
}

fn key(jwk: &Value) -> Option<Key> {
    let text = |name: &str| jwk.get(name).and_then(Value::as_str);
    let bytes = |name: &str| BASE64URL_NOPAD.decode(text(name)?.as_bytes()).ok().filter(|b| b.len() == 32);
    if text("use").is_some_and(|used| used != "sig") || jwk.get("d").is_some() {
        return None;
    }
    let kid = text("kid")?.to_owned();
    let (alg, public) = match (text("kty")?, text("crv")?) {
        ("EC", "P-256") => {
            let mut point = vec![4];
            point.extend(bytes("x")?);
            point.extend(bytes("y")?);
            let algorithm: &'static dyn signature::VerificationAlgorithm =
                &signature::ECDSA_P256_SHA256_FIXED;
            ("ES256", UnparsedPublicKey::new(algorithm, point))
        }
        ("OKP", "Ed25519") => {
            let algorithm: &'static dyn signature::VerificationAlgorithm = &signature::ED25519;
            ("EdDSA", UnparsedPublicKey::new(algorithm, bytes("x")?))
        }
        _ => return None,
    };
    text("alg").is_none_or(|named| named == alg).then_some(Key { kid, alg, public })
}

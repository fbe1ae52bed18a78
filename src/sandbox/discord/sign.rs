//! Signing clicks the way Discord does, and the wrong ways a test (or Discord itself) asks for.
//!
//! Ed25519 over the timestamp header's bytes followed by the raw body (Discord: Interactions, Security and
//! Authorization). One key per application, made from a seed.

use data_encoding::{HEXLOWER, HEXUPPER};
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde::{Deserialize, Serialize};

/// The `verify_key` of this seed, hex; empty for a seed that is none.
#[must_use]
pub fn verify_key(seed: &[u8; 32]) -> String {
    key(seed).map(|pair| HEXLOWER.encode(pair.public_key().as_ref())).unwrap_or_default()
}

/// The value of `X-Signature-Ed25519`.
#[must_use]
pub fn signature(seed: &[u8; 32], timestamp: &str, body: &[u8]) -> String {
    let signed = [timestamp.as_bytes(), body].concat();
    key(seed).map(|pair| HEXLOWER.encode(pair.sign(&signed).as_ref())).unwrap_or_default()
}

fn key(seed: &[u8; 32]) -> Option<Ed25519KeyPair> {
    Ed25519KeyPair::from_seed_unchecked(seed).ok()
}

/// How a delivery is signed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "snake_case", deny_unknown_fields)]
pub enum Signing {
    #[default]
    Good,
    /// Good, with upper-case hex.
    UpperCase,
    /// One hex digit is wrong.
    Bad,
    Truncated,
    /// Not hex at all.
    NonHex,
    /// Bytes that are not ASCII.
    NonAscii,
    /// No signature header.
    Missing,
    /// No timestamp header.
    NoTimestamp,
    /// Signed, then sent with another timestamp.
    OtherTimestamp,
    /// Well signed, this many seconds ago.
    Old {
        seconds: i64,
    },
    /// Well signed, this many seconds ahead.
    Ahead {
        seconds: i64,
    },
    /// Signed with another key.
    OtherKey,
    /// Well signed, then the body written anew: the same JSON in other bytes.
    Rewritten,
}

/// The headers and body to send.
#[derive(Debug, Clone)]
pub(super) struct Signed {
    pub(super) headers: Vec<(&'static str, Vec<u8>)>,
    pub(super) body: Vec<u8>,
}

pub(super) fn sign(how: &Signing, seed: &[u8; 32], now_ms: i64, mut body: Vec<u8>) -> Signed {
    let now = now_ms.div_euclid(1_000);
    let mut timestamp = match how {
        Signing::Old { seconds } => now - seconds,
        Signing::Ahead { seconds } => now + seconds,
        _ => now,
    }
    .to_string();
    let seed = if *how == Signing::OtherKey { &[0x55; 32] } else { seed };
    let mut made = signature(seed, &timestamp, &body).into_bytes();
    match how {
        Signing::UpperCase => {
            made = HEXLOWER.decode(&made).map(|raw| HEXUPPER.encode(&raw).into_bytes()).unwrap_or(made);
        }
        Signing::Bad => {
            let last = made.pop();
            made.push(if last == Some(b'0') { b'1' } else { b'0' });
        }
        Signing::Truncated => made.truncate(40),
        Signing::NonHex => made = vec![b'z'; 128],
        Signing::NonAscii => made = vec![0xe9; 128],
        Signing::OtherTimestamp => timestamp = (now + 1).to_string(),
        Signing::Rewritten => {
            let value: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
            body = serde_json::to_vec_pretty(&value).unwrap_or(body);
        }
        _ => {}
    }
    let mut headers = Vec::new();
    if *how != Signing::Missing {
        headers.push(("X-Signature-Ed25519", made));
    }
    if *how != Signing::NoTimestamp {
        headers.push(("X-Signature-Timestamp", timestamp.into_bytes()));
    }
    Signed { headers, body }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seed() -> [u8; 32] {
        std::array::from_fn(|at| u8::try_from(at).unwrap())
    }

    #[test]
    fn known_answers_made_by_another_library() {
        assert_eq!(verify_key(&seed()), "03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8");
        let body = br#"{"id":"1","application_id":"2","type":1,"token":"t","version":1}"#;
        assert_eq!(
            signature(&seed(), "1786527720", body),
            "677fd7e24115f0196ba8844d841bcc2e5f0cb750f036c7afc02ce028a30f0793\
             69c0fa3d7715112f713284ed09e35a58f40e7d138aaa91405d124be411599803"
        );
    }

    #[test]
    fn wrong_ways_are_wrong_in_one_thing_only() {
        let made = |how: Signing| sign(&how, &seed(), 1_786_527_720_500, br#"{"a":1}"#.to_vec());
        let good = made(Signing::Good);
        assert_eq!(good.headers[1], ("X-Signature-Timestamp", b"1786527720".to_vec()));
        assert_eq!(made(Signing::UpperCase).headers[0].1, good.headers[0].1.to_ascii_uppercase());
        let bad = made(Signing::Bad);
        assert_eq!((bad.headers[0].1.len(), bad.headers[0] == good.headers[0]), (128, false));
        let rewritten = made(Signing::Rewritten);
        assert!(rewritten.headers == good.headers && rewritten.body != good.body);
        assert_eq!(made(Signing::Missing).headers.len(), 1);
    }
}

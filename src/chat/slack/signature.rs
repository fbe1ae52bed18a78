//! Who sent this: Slack's request signature, version 0 (Slack: Verifying requests from Slack).
//!
//! Invariant: nothing of a request is parsed before this has passed, and it is computed over the raw
//! bytes as they arrived. Replays inside the window are not stopped here but by the click's key.

use crate::domain::clock::Millis;
use reqwest::header::HeaderMap;
use ring::hmac;
use secrecy::{ExposeSecret, SecretString};

/// How far the sender's clock may be from ours, in seconds, both ways.
const WINDOW: i64 = 300;

/// Why a request is not Slack's. Answered 401 with an empty body; counted by word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("a signature header is missing, doubled or malformed")]
    Headers,
    #[error("the timestamp is more than five minutes away")]
    Time,
    #[error("no signing secret of ours made this signature")]
    Signature,
}

/// An empty signing secret would let anybody in: the program must not start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the signing secret is empty")]
pub struct EmptySecret;

/// The signing secrets of one app: the current one and, during a rotation, the previous one.
pub struct Verifier {
    keys: Vec<hmac::Key>,
}

impl std::fmt::Debug for Verifier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Verifier").field("secrets", &self.keys.len()).finish()
    }
}

impl Verifier {
    /// # Errors
    /// When a secret is empty.
    pub fn new(current: &SecretString, previous: Option<&SecretString>) -> Result<Self, EmptySecret> {
        let secrets = std::iter::once(current).chain(previous).map(ExposeSecret::expose_secret);
        let keys = secrets
            .map(|secret| {
                let secret = secret.trim();
                if secret.is_empty() { Err(EmptySecret) } else { Ok(key(secret)) }
            })
            .collect::<Result<_, _>>()?;
        Ok(Self { keys })
    }

    /// Checks a request. The secret that verified decides the app: the caller compares the payload's
    /// app id with this app's.
    ///
    /// # Errors
    /// When it was not signed by this app's secret, now.
    pub fn verify(&self, headers: &HeaderMap, body: &[u8], now: Millis) -> Result<(), Refused> {
        let timestamp = once(headers, "x-slack-request-timestamp")?;
        let signature = once(headers, "x-slack-signature")?;
        if timestamp.is_empty() || !timestamp.bytes().all(|b| b.is_ascii_digit()) {
            return Err(Refused::Headers);
        }
        let hex = signature.strip_prefix("v0=").filter(|hex| hex.len() == 64).ok_or(Refused::Headers)?;
        let tag = data_encoding::HEXLOWER_PERMISSIVE.decode(hex.as_bytes()).map_err(|_| Refused::Headers)?;
        // More digits than fit are a time far away.
        let sent: i64 = timestamp.parse().map_err(|_| Refused::Time)?;
        if now.0.div_euclid(1000).saturating_sub(sent).saturating_abs() > WINDOW {
            return Err(Refused::Time);
        }
        let message = message(timestamp, body);
        // ring compares in constant time.
        if self.keys.iter().any(|key| hmac::verify(key, &message, &tag).is_ok()) {
            Ok(())
        } else {
            Err(Refused::Signature)
        }
    }
}

fn key(secret: &str) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes())
}

fn message(timestamp: &str, body: &[u8]) -> Vec<u8> {
    let mut message = format!("v0:{timestamp}:").into_bytes();
    message.extend_from_slice(body);
    message
}

/// The signature header's value for a body. For the start-up check, which sends a request to our own route.
#[must_use]
pub fn sign(secret: &SecretString, timestamp: i64, body: &[u8]) -> String {
    let tag = hmac::sign(&key(secret.expose_secret().trim()), &message(&timestamp.to_string(), body));
    format!("v0={}", data_encoding::HEXLOWER.encode(tag.as_ref()))
}

/// A header that must be there exactly once.
fn once<'a>(headers: &'a HeaderMap, name: &str) -> Result<&'a str, Refused> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => value.to_str().map_err(|_| Refused::Headers),
        _ => Err(Refused::Headers),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    const SECRET: &str = "countersign-test-secret";
    const AT: i64 = 1_796_000_000;
    const BODY: &[u8] = b"payload=%7B%22t%22%3A%22*+%20%2B%22%7D";
    const OF_BODY: &str = "v0=0634fd007b347992e5c7d8f1c7960ec2bd1442e5e8e2ebfefc8c47bf7ac5c20b";
    const OF_NOTHING: &str = "v0=1c4ab5d8bed32ef509e76ad2043ca763fbc8d87d70640125f466a4544bcc0da8";

    fn verifier() -> Verifier {
        Verifier::new(&SECRET.into(), None).unwrap()
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    fn signed(timestamp: &str, signature: &str) -> HeaderMap {
        headers(&[("x-slack-request-timestamp", timestamp), ("x-slack-signature", signature)])
    }

    fn at(seconds: i64) -> Millis {
        Millis(seconds * 1000)
    }

    /// Made with slack_sdk's `SignatureVerifier`.
    #[test]
    fn slack_case_1_known_answers_over_raw_bytes() {
        assert_eq!(verifier().verify(&signed("1796000000", OF_NOTHING), b"", at(AT)), Ok(()));
        assert_eq!(verifier().verify(&signed("1796000000", OF_BODY), BODY, at(AT)), Ok(()));
        assert_eq!(sign(&SECRET.into(), AT, BODY), OF_BODY);
        for reencoded in [
            &b"payload=%7B%22t%22%3A%22*%20%20%2B%22%7D"[..],
            b"payload=%7B%22t%22%3A%22%2A+%20%2B%22%7D",
            b"payload=%7B%22t%22%3A%22*+%20%2B%22%7D\n",
        ] {
            let refused = verifier().verify(&signed("1796000000", OF_BODY), reencoded, at(AT));
            assert_eq!(refused, Err(Refused::Signature));
        }
    }

    #[rstest]
    #[case::truncated(&OF_BODY[..66], Refused::Headers)]
    #[case::capital_version(
        "V0=0634fd007b347992e5c7d8f1c7960ec2bd1442e5e8e2ebfefc8c47bf7ac5c20b",
        Refused::Headers
    )]
    #[case::not_hex("v0=z634fd007b347992e5c7d8f1c7960ec2bd1442e5e8e2ebfefc8c47bf7ac5c20b", Refused::Headers)]
    #[case::empty("", Refused::Headers)]
    #[case::other("v0=0634fd007b347992e5c7d8f1c7960ec2bd1442e5e8e2ebfefc8c47bf7ac5c20c", Refused::Signature)]
    fn slack_case_2_bad_signatures(#[case] signature: &str, #[case] refused: Refused) {
        assert_eq!(verifier().verify(&signed("1796000000", signature), BODY, at(AT)), Err(refused));
    }

    #[test]
    fn slack_case_2_missing_doubled_or_foreign() {
        let verify = |headers: &HeaderMap| verifier().verify(headers, BODY, at(AT));
        let time = ("x-slack-request-timestamp", "1796000000");
        let signature = ("x-slack-signature", OF_BODY);
        assert_eq!(verify(&headers(&[time, signature])), Ok(()));
        for bad in [
            vec![time],
            vec![signature],
            vec![],
            vec![time, time, signature],
            vec![time, signature, signature],
        ] {
            assert_eq!(verify(&headers(&bad)), Err(Refused::Headers), "{bad:?}");
        }
        let foreign = Verifier::new(&"another".into(), None).unwrap();
        assert_eq!(foreign.verify(&signed("1796000000", OF_BODY), BODY, at(AT)), Err(Refused::Signature));
    }

    #[rstest]
    #[case(AT + 300, Ok(()))]
    #[case(AT - 300, Ok(()))]
    #[case(AT + 301, Err(Refused::Time))]
    #[case(AT - 301, Err(Refused::Time))]
    fn slack_case_3_five_minutes_both_ways(#[case] now: i64, #[case] expected: Result<(), Refused>) {
        assert_eq!(verifier().verify(&signed("1796000000", OF_BODY), BODY, at(now)), expected);
        assert_eq!(
            verifier().verify(&signed("1796000000", OF_BODY), BODY, Millis(now * 1000 + 999)),
            expected
        );
    }

    #[rstest]
    #[case("-1796000000", Refused::Headers)]
    #[case("1796000000.0", Refused::Headers)]
    #[case(" 1796000000x", Refused::Headers)]
    #[case("", Refused::Headers)]
    #[case("99999999999999999999999999", Refused::Time)]
    fn slack_case_3_timestamps_are_digits(#[case] timestamp: &str, #[case] refused: Refused) {
        assert_eq!(verifier().verify(&signed(timestamp, OF_BODY), BODY, at(AT)), Err(refused));
    }

    #[test]
    fn slack_case_4_two_secrets_during_a_rotation_and_never_an_empty_one() {
        let both = Verifier::new(&"new".into(), Some(&SECRET.into())).unwrap();
        assert_eq!(both.verify(&signed("1796000000", OF_BODY), BODY, at(AT)), Ok(()));
        let by_new = sign(&"new".into(), AT, BODY);
        assert_eq!(both.verify(&signed("1796000000", &by_new), BODY, at(AT)), Ok(()));
        assert_eq!(Verifier::new(&"".into(), None).unwrap_err(), EmptySecret);
        assert_eq!(Verifier::new(&SECRET.into(), Some(&" ".into())).unwrap_err(), EmptySecret);
        assert!(!format!("{both:?}").contains(SECRET));
    }
}

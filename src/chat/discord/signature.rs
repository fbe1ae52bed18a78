//! Who sent this: Discord's request signature (Discord: Interactions Overview, "Validating Security Request Headers").
//!
//! Invariant: nothing of a request is parsed before this has passed, and it is computed over the bytes of the
//! timestamp header followed by the raw body as it arrived. Discord sends wrong signatures on purpose, when the
//! address is saved and at intervals: each is answered like any other, without a log line or an alarm. Replays
//! inside the window are not stopped here but by the click's key.

use crate::domain::clock::Millis;
use reqwest::header::HeaderMap;
use serenity::interactions_endpoint::Verifier as Ed25519;

/// How far the sender's clock may be from ours, in seconds, both ways. Discord names no limit.
const WINDOW: i64 = 300;

/// Why a request is not Discord's. Answered 401 with an empty body; counted by word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("a signature header is missing, doubled or malformed")]
    Headers,
    #[error("the timestamp is more than five minutes away")]
    Time,
    #[error("no public key of ours belongs to this signature")]
    Signature,
}

/// A public key that is none: the program must not start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the public key is not the 64 hexadecimal digits of an Ed25519 key")]
pub struct BadKey;

/// The public key of one application.
pub struct Verifier(Ed25519);

impl std::fmt::Debug for Verifier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Verifier")
    }
}

impl Verifier {
    /// `public_key`: 64 hexadecimal digits, as the application's page shows them.
    ///
    /// # Errors
    /// When it is no key.
    pub fn new(public_key: &str) -> Result<Self, BadKey> {
        let bytes =
            data_encoding::HEXLOWER_PERMISSIVE.decode(public_key.trim().as_bytes()).map_err(|_| BadKey)?;
        let bytes: [u8; 32] = bytes.try_into().map_err(|_| BadKey)?;
        Ed25519::try_new(bytes).map(Self).map_err(|_| BadKey)
    }

    /// Checks a request. The key that verified decides the application: the caller compares the payload's
    /// application id with this one's.
    ///
    /// # Errors
    /// When it was not signed by this application's key, now.
    pub fn verify(&self, headers: &HeaderMap, body: &[u8], now: Millis) -> Result<(), Refused> {
        let timestamp = once(headers, "x-signature-timestamp")?;
        let signature = once(headers, "x-signature-ed25519")?;
        if timestamp.is_empty() || !timestamp.bytes().all(|b| b.is_ascii_digit()) {
            return Err(Refused::Headers);
        }
        if signature.len() != 128 || !signature.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(Refused::Headers);
        }
        // More digits than fit are a time far away.
        let sent: i64 = timestamp.parse().map_err(|_| Refused::Time)?;
        if now.0.div_euclid(1000).saturating_sub(sent).saturating_abs() > WINDOW {
            return Err(Refused::Time);
        }
        self.0.verify(signature, timestamp, body).map_err(|()| Refused::Signature)
    }
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
    use reqwest::header::HeaderValue;
    use ring::signature::{Ed25519KeyPair, KeyPair};
    use rstest::rstest;

    // The key of the seed bytes 00…1f; the signature was made by another program.
    const KEY: &str = "03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8";
    const AT: i64 = 1_786_527_720;
    const BODY: &[u8] = br#"{"id":"1","application_id":"2","type":1,"token":"t","version":1}"#;
    const OF_BODY: &str = "677fd7e24115f0196ba8844d841bcc2e5f0cb750f036c7afc02ce028a30f079369c0fa3d7715112f713284ed09e35a58f40e7d138aaa91405d124be411599803";

    fn verifier() -> Verifier {
        Verifier::new(KEY).unwrap()
    }

    fn headers(pairs: &[(&'static str, &[u8])]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_bytes(value).unwrap());
        }
        headers
    }

    fn signed(timestamp: &str, signature: &str) -> HeaderMap {
        headers(&[
            ("x-signature-timestamp", timestamp.as_bytes()),
            ("x-signature-ed25519", signature.as_bytes()),
        ])
    }

    fn at(seconds: i64) -> Millis {
        Millis(seconds * 1000)
    }

    fn pair() -> Ed25519KeyPair {
        let seed: Vec<u8> = (0..32).collect();
        Ed25519KeyPair::from_seed_unchecked(&seed).unwrap()
    }

    fn sign(timestamp: &str, body: &[u8]) -> String {
        let mut message = timestamp.as_bytes().to_vec();
        message.extend_from_slice(body);
        data_encoding::HEXLOWER.encode(pair().sign(&message).as_ref())
    }

    #[test]
    fn discord_case_61_the_published_vector_in_either_case_of_hex() {
        let verify = |signature: &str| verifier().verify(&signed("1786527720", signature), BODY, at(AT));
        assert_eq!(verify(OF_BODY), Ok(()));
        assert_eq!(verify(&OF_BODY.to_uppercase()), Ok(()));
        assert_eq!(data_encoding::HEXLOWER.encode(pair().public_key().as_ref()), KEY);
        assert_eq!(sign("1786527720", BODY), OF_BODY, "another library signs the same");
        assert!(Verifier::new(&KEY.to_uppercase()).is_ok());
    }

    #[test]
    fn discord_case_62_everything_else_is_refused() {
        let other = format!("{}4", &OF_BODY[..127]);
        let not_hex = format!("z{}", &OF_BODY[1..]);
        let plus = format!("+{}", &OF_BODY[1..]);
        for (signature, why) in [
            ("", Refused::Headers),
            (&OF_BODY[..126], Refused::Headers),
            (not_hex.as_str(), Refused::Headers),
            // A lenient number parser would take a sign.
            (plus.as_str(), Refused::Headers),
            (other.as_str(), Refused::Signature),
        ] {
            let refused = verifier().verify(&signed("1786527720", signature), BODY, at(AT));
            assert_eq!(refused, Err(why), "{signature}");
        }
        // Another time, and a body that was parsed and written again.
        assert_eq!(verifier().verify(&signed("1786527721", OF_BODY), BODY, at(AT)), Err(Refused::Signature));
        let again = serde_json::to_vec(&serde_json::from_slice::<serde_json::Value>(BODY).unwrap()).unwrap();
        assert_ne!(again, BODY);
        assert_eq!(
            verifier().verify(&signed("1786527720", OF_BODY), &again, at(AT)),
            Err(Refused::Signature)
        );
        let time = ("x-signature-timestamp", &b"1786527720"[..]);
        let signature = ("x-signature-ed25519", OF_BODY.as_bytes());
        assert_eq!(verifier().verify(&headers(&[time, signature]), BODY, at(AT)), Ok(()));
        let foreign = ("x-signature-ed25519", &b"\xe4\xff"[..]);
        for bad in [
            vec![],
            vec![time],
            vec![signature],
            vec![time, foreign],
            vec![time, time, signature],
            vec![time, signature, signature],
        ] {
            assert_eq!(verifier().verify(&headers(&bad), BODY, at(AT)), Err(Refused::Headers), "{bad:?}");
        }
    }

    #[test]
    fn discord_case_62_a_key_of_somebody_else() {
        let other = Ed25519KeyPair::from_seed_unchecked(&[7; 32]).unwrap();
        let other = Verifier::new(&data_encoding::HEXLOWER.encode(other.public_key().as_ref())).unwrap();
        assert_eq!(other.verify(&signed("1786527720", OF_BODY), BODY, at(AT)), Err(Refused::Signature));
    }

    #[rstest]
    #[case(AT + 300, Ok(()))]
    #[case(AT - 300, Ok(()))]
    #[case(AT + 301, Err(Refused::Time))]
    #[case(AT - 301, Err(Refused::Time))]
    #[case(AT + 600, Err(Refused::Time))]
    fn discord_case_63_five_minutes_both_ways(#[case] now: i64, #[case] expected: Result<(), Refused>) {
        assert_eq!(verifier().verify(&signed("1786527720", OF_BODY), BODY, at(now)), expected);
    }

    #[rstest]
    #[case("-1786527720", Refused::Headers)]
    #[case("1786527720.0", Refused::Headers)]
    #[case("", Refused::Headers)]
    #[case("99999999999999999999999999", Refused::Time)]
    fn discord_case_63_timestamps_are_digits(#[case] timestamp: &str, #[case] refused: Refused) {
        let signature = sign(timestamp, BODY);
        assert_eq!(verifier().verify(&signed(timestamp, &signature), BODY, at(AT)), Err(refused));
    }

    #[rstest]
    #[case("")]
    #[case("03a1")]
    #[case("zza107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8")]
    // Not a point of the curve.
    #[case("0200000000000000000000000000000000000000000000000000000000000000")]
    fn a_bad_key_is_an_error_and_no_panic(#[case] key: &str) {
        assert_eq!(Verifier::new(key).unwrap_err(), BadKey);
    }
}

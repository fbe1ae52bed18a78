//! Signing deliveries the way Slack does, and the wrong ways a test asks for.
//!
//! Signature v0 (Slack: Verifying requests): hex HMAC-SHA256 over `v0:`, the timestamp header,
//! `:` and the raw body.

use data_encoding::HEXLOWER;
use ring::hmac;
use serde::{Deserialize, Serialize};

/// The value of `X-Slack-Signature`.
#[must_use]
pub fn signature(secret: &str, timestamp: &str, body: &[u8]) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let mut context = hmac::Context::with_key(&key);
    for part in [b"v0:", timestamp.as_bytes(), b":", body] {
        context.update(part);
    }
    format!("v0={}", HEXLOWER.encode(context.sign().as_ref()))
}

/// How a delivery is signed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "snake_case", deny_unknown_fields)]
pub enum Signing {
    #[default]
    Good,
    /// One hex digit is wrong.
    Bad,
    Truncated,
    /// `V0=` in place of `v0=`.
    UpperCase,
    /// No signature header.
    Missing,
    /// No timestamp header.
    NoTimestamp,
    /// The signature header twice.
    Doubled,
    /// The timestamp header twice.
    DoubledTimestamp,
    /// Well signed, this many seconds ago.
    Old {
        seconds: i64,
    },
    /// Well signed, this many seconds ahead.
    Ahead {
        seconds: i64,
    },
    /// Well signed over this timestamp text.
    Timestamp {
        text: String,
    },
    /// Signed with another secret.
    Secret {
        secret: String,
    },
    /// Well signed, then one byte of the body changed.
    ChangedBody,
}

/// The headers and body to send.
#[derive(Debug, Clone)]
pub(super) struct Signed {
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: Vec<u8>,
}

pub(super) fn sign(how: &Signing, secret: &str, now_ms: i64, mut body: Vec<u8>) -> Signed {
    let now = now_ms.div_euclid(1_000);
    let timestamp = match how {
        Signing::Old { seconds } => (now - seconds).to_string(),
        Signing::Ahead { seconds } => (now + seconds).to_string(),
        Signing::Timestamp { text } => text.clone(),
        _ => now.to_string(),
    };
    let secret = if let Signing::Secret { secret } = how { secret } else { secret };
    let mut made = signature(secret, &timestamp, &body);
    match how {
        Signing::Bad => {
            let last = made.pop();
            made.push(if last == Some('0') { '1' } else { '0' });
        }
        Signing::Truncated => made.truncate(40),
        Signing::UpperCase => made.replace_range(0..1, "V"),
        Signing::ChangedBody => {
            if let Some(last) = body.last_mut() {
                *last ^= 1;
            }
        }
        _ => {}
    }
    let (times, signatures) = match how {
        Signing::Missing => (1, 0),
        Signing::NoTimestamp => (0, 1),
        Signing::Doubled => (1, 2),
        Signing::DoubledTimestamp => (2, 1),
        _ => (1, 1),
    };
    let mut headers = vec![("X-Slack-Request-Timestamp", timestamp); times];
    headers.extend(vec![("X-Slack-Signature", made); signatures]);
    Signed { headers, body }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "countersign-test-secret";

    #[test]
    fn known_answers_made_by_another_library() {
        assert_eq!(
            signature(SECRET, "1796000000", b""),
            "v0=1c4ab5d8bed32ef509e76ad2043ca763fbc8d87d70640125f466a4544bcc0da8"
        );
        assert_eq!(
            signature(SECRET, "1796000000", b"payload=%7B%22t%22%3A%22*+%20%2B%22%7D"),
            "v0=0634fd007b347992e5c7d8f1c7960ec2bd1442e5e8e2ebfefc8c47bf7ac5c20b"
        );
    }

    #[test]
    fn wrong_ways_are_wrong_in_one_thing_only() {
        let good = sign(&Signing::Good, SECRET, 1_796_000_000_123, b"a=b".to_vec());
        assert_eq!(
            good.headers,
            [
                ("X-Slack-Request-Timestamp", "1796000000".to_owned()),
                ("X-Slack-Signature", signature(SECRET, "1796000000", b"a=b")),
            ]
        );
        let bad = sign(&Signing::Bad, SECRET, 1_796_000_000_123, b"a=b".to_vec());
        assert_eq!((bad.headers[1].1.len(), bad.headers[1] == good.headers[1]), (67, false));
        let old = sign(&Signing::Old { seconds: 301 }, SECRET, 1_796_000_000_000, b"a=b".to_vec());
        assert_eq!(old.headers[1].1, signature(SECRET, "1795999699", b"a=b"));
        let twice = sign(&Signing::Doubled, SECRET, 1_796_000_000_000, Vec::new());
        assert_eq!(twice.headers.len(), 3);
        let changed = sign(&Signing::ChangedBody, SECRET, 1_796_000_000_000, b"a=b".to_vec());
        assert_eq!((changed.body, &changed.headers), (b"a=c".to_vec(), &good.headers));
    }
}

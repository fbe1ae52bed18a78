//! Headers that a runtime is called with: what an operator may add, and what is ours alone.

use super::check::Check;
use super::runtime::Header;
use super::secrets::TextOrSecret;
use secrecy::ExposeSecret;
use std::collections::BTreeMap;

/// Set by Countersign or by the transport.
const OURS: [&str; 14] = [
    "authorization",
    "proxy-authorization",
    "nylorun-subject",
    "nylorun-scopes",
    "a2a-version",
    "a2a-extensions",
    "accept",
    "content-type",
    "content-length",
    "host",
    "connection",
    "transfer-encoding",
    "te",
    "upgrade",
];

/// RFC 9110 §5.6.2: a field name is a token.
fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

/// The fixed headers of a runtime.
pub(super) fn fixed(
    check: &mut Check<'_>,
    key: &str,
    headers: BTreeMap<String, TextOrSecret>,
    subject_header: &str,
) -> Vec<Header> {
    let mut good: Vec<Header> = Vec::new();
    for (name, at) in headers {
        let path = format!("{key}.{name}");
        if !is_name(&name) {
            check.error(&path, format!("`{name}` is no header name"), "use letters, digits and `-`".into());
        } else if name.eq_ignore_ascii_case("authorization") {
            check.error(
                &path,
                "`Authorization` is set by Countersign".into(),
                "use `token` for the credential".into(),
            );
        } else if is_ours(&name) || name.eq_ignore_ascii_case(subject_header) {
            check.error(&path, format!("`{name}` is set by Countersign"), "remove it here".into());
        } else if good.iter().any(|other| other.name.eq_ignore_ascii_case(&name)) {
            check.error(&path, format!("`{name}` is given twice"), "remove one of the two".into());
        } else if let Some(value) = check.text_or_secret(&path, &at) {
            if value.expose_secret().bytes().all(|b| b == b'\t' || (0x20..0x7f).contains(&b)) {
                good.push(Header { name, value });
            } else {
                check.error(
                    &path,
                    "the value contains a character that no header may have".into(),
                    "use visible ASCII characters and spaces, on one line".into(),
                );
            }
        }
    }
    good
}

/// Whether a name may carry the subject; noted if not.
pub(super) fn subject(check: &mut Check<'_>, key: &str, name: &str) -> bool {
    if !is_name(name) {
        check.error(
            key,
            format!("`{name}` is no header name"),
            "use letters, digits and `-`: \"Nylorun-Subject\"".into(),
        );
        return false;
    }
    if is_ours(name) && !name.eq_ignore_ascii_case("nylorun-subject") {
        check.error(
            key,
            format!("`{name}` has another meaning"),
            "choose a header of its own, such as \"Nylorun-Subject\"".into(),
        );
        return false;
    }
    true
}

fn is_ours(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    OURS.contains(&name.as_str()) || name.starts_with("a2a-")
}

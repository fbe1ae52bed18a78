//! The runtime's own page of an interaction, from a template with `{taskId}`, `{contextId}` and
//! `{interactionId}` in it.
//!
//! Invariant: ids are percent-encoded and filled in one pass, so an id that looks like a placeholder or
//! like a part of an address stays an id.

/// The address of one interaction. `None` when the template needs an id that is not known, or holds
/// something that is no placeholder.
#[must_use]
pub fn fill(
    template: &str,
    task: Option<&str>,
    context: Option<&str>,
    interaction: Option<&str>,
) -> Option<String> {
    let mut out = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let (name, after) = after.split_once('}')?;
        out.push_str(before);
        let id = match name {
            "taskId" => task?,
            "contextId" => context?,
            "interactionId" => interaction?,
            _ => return None,
        };
        encode(id, &mut out);
        rest = after;
    }
    out.push_str(rest);
    Some(out)
}

/// Everything but RFC 3986 unreserved characters.
fn encode(text: &str, out: &mut String) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push('%');
            out.push(char::from(HEX[usize::from(byte >> 4)]));
            out.push(char::from(HEX[usize::from(byte & 15)]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_encoded_once_and_a_missing_one_gives_no_link() {
        assert_eq!(
            fill(
                "https://a.example/{contextId}/{taskId}#{interactionId}",
                Some("t/1 ?{contextId}"),
                Some("c&1"),
                Some("ü")
            )
            .as_deref(),
            Some("https://a.example/c%261/t%2F1%20%3F%7BcontextId%7D#%C3%BC")
        );
        assert_eq!(fill("https://a.example/{contextId}", Some("t"), None, Some("i")), None);
        assert_eq!(fill("https://a.example/{x}", Some("t"), Some("c"), Some("i")), None);
    }
}

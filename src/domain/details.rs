//! The runtime's own page of an interaction, from a template with `{taskId}`, `{contextId}` and
//! `{interactionId}` in it.
//!
//! Invariant: ids are percent-encoded and filled in one pass, so an id that looks like a placeholder or
//! like a part of an address stays an id.

/// The address of one interaction. `None` when the template needs an id that is not known, or holds
/// something that is no placeholder.
#[must_use]
pub fn fill(template: &str, task: Option<&str>, context: Option<&str>, interaction: Option<&str>) -> Option<String> {
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

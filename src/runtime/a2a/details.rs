//! The runtime's own page of a task, from a template.

use crate::domain::ids::InteractionKey;

/// `None` when the template names a context and there is none.
pub(crate) fn details_url(template: &str, key: &InteractionKey, context: Option<&str>) -> Option<String> {
    if context.is_none() && template.contains("{contextId}") {
        return None;
    }
    // One pass, so that an id that looks like a placeholder is not replaced again.
    let mut out = String::new();
    let mut rest = template;
    while let Some(at) = rest.find('{') {
        out.push_str(&rest[..at]);
        let tail = &rest[at..];
        let known = [("{taskId}", key.task.as_str()), ("{interactionId}", key.external.as_str())]
            .into_iter()
            .chain(context.map(|context| ("{contextId}", context)))
            .find(|(name, _)| tail.starts_with(name));
        rest = if let Some((name, value)) = known {
            out.push_str(&percent_encoded(value));
            &tail[name.len()..]
        } else {
            out.push('{');
            &tail[1..]
        };
    }
    out.push_str(rest);
    Some(out)
}

/// Everything but RFC 3986 unreserved characters.
fn percent_encoded(text: &str) -> String {
    use std::fmt::Write;
    let mut out = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

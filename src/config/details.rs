//! `details_url`: the runtime's own page of an interaction.

use super::address::Plain;
use super::check::Check;
use crate::domain::details;

const PLACEHOLDERS: [&str; 3] = ["taskId", "contextId", "interactionId"];

/// An address with `{taskId}`, `{contextId}` and `{interactionId}` in it. Its host is fixed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DetailsUrl(String);

impl DetailsUrl {
    /// The template as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The address of one interaction. `None` when it needs an id that is not known.
    fn fill(&self, task: Option<&str>, context: Option<&str>, interaction: Option<&str>) -> Option<String> {
        details::fill(&self.0, task, context, interaction)
    }

    pub(super) fn check(check: &mut Check<'_>, key: &str, text: &str, plain: Plain) -> Option<Self> {
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            let name =
                rest.get(at..).and_then(|part| part.strip_prefix('{')).and_then(|part| part.split_once('}'));
            match name {
                Some((name, after)) if PLACEHOLDERS.contains(&name) => rest = after,
                Some((name, _)) if !name.contains('{') => {
                    check.error(
                        key,
                        format!("`{{{name}}}` is no placeholder"),
                        "use {taskId}, {contextId} and {interactionId}".into(),
                    );
                    return None;
                }
                _ => {
                    check.error(
                        key,
                        "a `{` or `}` stands alone".into(),
                        "write placeholders as {taskId}, {contextId} or {interactionId}".into(),
                    );
                    return None;
                }
            }
        }
        let template = Self(text.to_owned());
        let one = template.fill(Some("a"), Some("a"), Some("a"))?;
        let other = template.fill(Some("b"), Some("b"), Some("b"))?;
        let one = check.address(key, &one, plain)?;
        // An id of the runtime's must not choose the host.
        if url::Url::parse(&other).map(|url| url.origin()) != Ok(one.origin()) {
            check.error(
                key,
                "a placeholder stands in the host".into(),
                "use placeholders after the host only".into(),
            );
            return None;
        }
        Some(template)
    }
}

/// Everything but RFC 3986's unreserved characters.
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_encoded_and_a_missing_one_gives_no_link() {
        let url = DetailsUrl("https://app.example/t/{taskId}?c={contextId}".into());
        assert_eq!(
            url.fill(Some("t1.a/b?#"), Some("c d"), None).as_deref(),
            Some("https://app.example/t/t1.a%2Fb%3F%23?c=c%20d")
        );
        assert_eq!(url.fill(Some("t"), None, None), None);
    }
}

//! The one wildcard of the configuration: `*`, case-sensitive.

use serde::{Deserialize, Serialize};

/// A text in which `*` stands for any characters, also none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Pattern(String);

impl Pattern {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the whole of `text` fits. Linear in practice: each `*` is given back at most once.
    #[must_use]
    pub fn fits(&self, text: &str) -> bool {
        let mut parts = self.0.split('*');
        let Some(first) = parts.next() else { return false };
        let Some(mut rest) = text.strip_prefix(first) else { return false };
        let mut pieces: Vec<&str> = parts.collect();
        let Some(last) = pieces.pop() else { return rest.is_empty() };
        for piece in pieces {
            match rest.find(piece) {
                Some(at) => rest = rest.get(at + piece.len()..).unwrap_or_default(),
                None => return false,
            }
        }
        rest.ends_with(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_star_is_the_only_wildcard() {
        for (pattern, text, fits) in [
            ("deploy_*", "deploy_prod", true),
            ("deploy_*", "deploy_", true),
            ("deploy_*", "Deploy_prod", false),
            ("*", "", true),
            ("a*b*c", "a1b2c", true),
            ("a*b*c", "acb", false),
            ("a*a", "a", false),
            ("*ab", "aab", true),
            ("rel.ase", "release", false),
            ("release", "release2", false),
        ] {
            assert_eq!(Pattern::new(pattern).fits(text), fits, "{pattern} against {text}");
        }
    }
}

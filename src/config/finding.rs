//! What is wrong with a configuration, said so that it can be mended.
//!
//! Invariant: a finding never repeats the value of a secret.

use std::fmt;

/// One thing wrong (or, as a warning, doubtful) in the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Where: the path of the key, such as `slack[0].api_url`; elements count from 0. For a file
    /// that is no TOML, its line and column.
    pub key: String,
    /// What is wrong with it.
    pub message: String,
    /// What to do.
    pub fix: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, message, fix } = self;
        write!(f, "{key}: {message}; {fix}")
    }
}

/// Everything found wrong, in the order of the file's sections. Printed one per line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Findings(pub Vec<Finding>);

/// The order in which findings are told.
const SECTIONS: [&str; 10] =
    ["server", "signing", "database", "policy", "templates", "runtime", "slack", "group", "person", "route"];

impl Findings {
    /// Section by section and element by element; within one, as found.
    pub(super) fn in_order(mut self) -> Self {
        self.0.sort_by_key(|finding| {
            let section = finding.key.split(['.', '[']).next().unwrap_or_default();
            let element = finding.key.get(section.len()..).and_then(|rest| rest.strip_prefix('['));
            let element =
                element.and_then(|rest| rest.split(']').next()).and_then(|n| n.parse::<usize>().ok());
            (SECTIONS.iter().position(|known| *known == section).unwrap_or(SECTIONS.len()), element)
        });
        self
    }
}

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, finding) in self.0.iter().enumerate() {
            if at > 0 {
                writeln!(f)?;
            }
            finding.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for Findings {}

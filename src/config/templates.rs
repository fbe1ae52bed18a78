//! `[templates]`: the words of messages and pages.

use super::check::Check;
use schemars::JsonSchema;
use serde::Deserialize;
use std::path::PathBuf;

/// The language that is built in.
const BUILT_IN: &str = "en";

/// The words of messages and pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Templates {
    /// The folder below `templates/`.
    pub language: String,
    /// Files here replace the built-in ones.
    pub dir: Option<PathBuf>,
}

/// The words of messages and pages.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Templates")]
pub(super) struct Raw {
    /// The language of messages and pages: a folder of templates. Default `en`, the one built in.
    language: Option<String>,
    /// A directory with one folder per language; a file there replaces the built-in one.
    dir: Option<PathBuf>,
}

impl Raw {
    pub(super) fn check(self, check: &mut Check<'_>) -> Templates {
        let Self { language, dir } = self;
        let language = language.unwrap_or_else(|| BUILT_IN.into());
        let a_folder = !language.is_empty()
            && language.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
        if !a_folder {
            check.error("templates.language", format!("`{language}` is no language"), "write \"en\"".into());
        } else if language != BUILT_IN && dir.as_ref().is_none_or(|dir| !dir.join(&language).is_dir()) {
            check.error(
                "templates.language",
                format!("`{language}` is not built in"),
                format!(
                    "use \"en\", or put the folder `{language}` into the directory named by templates.dir"
                ),
            );
        }
        if let Some(dir) = dir.as_ref().filter(|dir| !dir.is_dir()) {
            check.error(
                "templates.dir",
                format!("{} is not a directory", dir.display()),
                "name an existing directory, or leave `dir` out".into(),
            );
        }
        Templates { language, dir }
    }
}

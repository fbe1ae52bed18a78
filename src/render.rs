//! The words: templates, embedded and overridable file by file.
//!
//! Invariant: wording of messages exists only in `templates/`; code passes typed contexts. Every
//! template is rendered with every sample of its context at start-up in strict mode, so a bad
//! override stops the start with file and line. If one fails later all the same (on a value no
//! sample has), the built-in English text is used and the failure is logged: a card is never empty.
//!
//! A template's extension says how values are escaped: `.mrkdwn` for Slack's markup (`&`, `<`, `>`),
//! `.md` for Discord's Markdown (a backslash before every ASCII punctuation mark), `.txt` not at all (plain text objects are not markup).

pub mod discord;
pub mod slack;

use include_dir::{Dir, include_dir};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, Value};
use minijinja::{AutoEscape, Environment, Error, Output, State, UndefinedBehavior};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

static BUILT_IN: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/templates");

/// The language every other one falls back to.
const BASE: &str = "en";

/// What a template is rendered with.
pub trait Context: Serialize + Sized {
    /// The template's path below the language folder.
    const NAME: &'static str;
    /// One value for each way through the template.
    fn samples() -> Vec<Self>;
}

/// A template file and its samples.
struct Known {
    name: &'static str,
    samples: fn() -> Vec<Value>,
}

fn known<C: Context>() -> Known {
    Known {
        name: C::NAME,
        samples: || C::samples().into_iter().map(|sample| Value::from(Serde(sample))).collect(),
    }
}

/// Every template there is.
fn all() -> Vec<Known> {
    let mut all = slack::all();
    all.extend(discord::all());
    all
}

/// Why the templates cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TemplateError {
    #[error("language `{language}` is neither built in nor a folder of the template directory")]
    UnknownLanguage { language: String },
    #[error("{}: no template has this name; expected <directory>/<language>/<one of: {expected}>", path.display())]
    UnknownFile { path: PathBuf, expected: String },
    #[error("{}: {what}", path.display())]
    Unreadable { path: PathBuf, what: String },
    #[error("{}:{line}: {what}", path.display())]
    Bad { path: PathBuf, line: usize, what: String },
}

/// All templates of one language, ready to render.
pub struct Templates {
    chosen: Environment<'static>,
    base: Environment<'static>,
}

impl std::fmt::Debug for Templates {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Templates").finish_non_exhaustive()
    }
}

impl Templates {
    /// Loads the templates of a language and tries every one. Files in `dir/<language>/` replace the
    /// built-in ones; what a language lacks is taken from English.
    ///
    /// # Errors
    /// For an unknown language or file, and for a template that cannot be read, parsed or rendered.
    pub fn load(language: &str, dir: Option<&Path>) -> Result<Self, TemplateError> {
        let known = all();
        let mut base = environment();
        let mut chosen = environment();
        let mut found = language == BASE;
        for template in &known {
            let name = template.name;
            let (english, path) = built_in(BASE, name).ok_or_else(|| TemplateError::Unreadable {
                path: PathBuf::from(BASE).join(name),
                what: "not part of this build".into(),
            })?;
            add(&mut base, name, english.clone(), &path)?;
            let (source, path) = match built_in(language, name) {
                Some(own) => {
                    found = true;
                    own
                }
                None => (english, path),
            };
            add(&mut chosen, name, source, &path)?;
        }
        if let Some(dir) = dir {
            let overrides = overrides(dir, language, &known)?;
            found |= !overrides.is_empty() || dir.join(language).is_dir();
            for (name, path) in overrides {
                let source = std::fs::read_to_string(&path).map_err(|error| TemplateError::Unreadable {
                    path: path.clone(),
                    what: error.to_string(),
                })?;
                add(&mut chosen, name, source, &path)?;
                attempt(&chosen, &known, name, &path)?;
            }
        }
        if !found {
            return Err(TemplateError::UnknownLanguage { language: language.into() });
        }
        for template in &known {
            attempt(&base, &known, template.name, &PathBuf::from(BASE).join(template.name))?;
            attempt(&chosen, &known, template.name, &PathBuf::from(language).join(template.name))?;
        }
        Ok(Self { chosen, base })
    }

    /// Renders; the end is trimmed, so that files may end with a line break.
    #[must_use]
    pub fn render<C: Context>(&self, context: &C) -> String {
        let rendered = one(&self.chosen, C::NAME, Value::from(Serde(context))).or_else(|error| {
            tracing::error!(
                template = C::NAME,
                line = error.line(),
                "template failed; the built-in text is used"
            );
            one(&self.base, C::NAME, Value::from(Serde(context)))
        });
        rendered.unwrap_or_else(|_| format!("({})", C::NAME))
    }
}

fn one(environment: &Environment<'_>, name: &str, context: Value) -> Result<String, Error> {
    Ok(environment.get_template(name)?.render(context)?.trim().to_owned())
}

fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    if let Ok(syntax) = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build() {
        environment.set_syntax(syntax);
    }
    // A template that never ends must not hold a worker.
    environment.set_recursion_limit(50);
    environment.set_auto_escape_callback(|name| match name.rsplit('.').next() {
        Some("mrkdwn") => AutoEscape::Custom("mrkdwn".into()),
        Some("md") => AutoEscape::Custom("md".into()),
        Some("html") => AutoEscape::Html,
        _ => AutoEscape::None,
    });
    environment.set_formatter(format_value);
    environment
}

fn format_value(out: &mut Output<'_>, state: &mut State<'_, '_>, value: &Value) -> Result<(), Error> {
    if let AutoEscape::Custom(markup) = state.auto_escape() {
        if value.is_undefined() {
            return Err(Error::new(minijinja::ErrorKind::UndefinedError, "undefined value"));
        }
        let text = value.to_string();
        let text = match markup.as_ref() {
            _ if value.is_safe() => text,
            "md" => markdown(&text),
            _ => mrkdwn(&text),
        };
        out.write_str(&text).map_err(Error::from)
    } else {
        minijinja::escape_formatter(out, state, value)
    }
}

/// Markup of our own making (a mention, a date, a checked address), which a template must not escape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Markup(String);

impl Markup {
    /// Takes text that is escaped where it must be.
    #[must_use]
    pub fn of(text: String) -> Self {
        Self(text)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Serialize for Markup {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        Value::from_safe_string(self.0.clone()).serialize(to)
    }
}

/// Slack's three escapes (Slack: Formatting text, "Escaping text"); the ampersand first.
#[must_use]
pub fn mrkdwn(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Discord's Markdown, escaped: a backslash before each ASCII punctuation mark, so that no marker, link,
/// mention, moment, command or emoji of it is one (Discord: Message Formatting).
#[must_use]
pub fn markdown(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if c.is_ascii_punctuation() {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

fn built_in(language: &str, name: &str) -> Option<(String, PathBuf)> {
    let path = Path::new(language).join(name);
    let file = BUILT_IN.get_file(&path)?;
    Some((file.contents_utf8()?.to_owned(), Path::new("templates").join(path)))
}

fn add(
    environment: &mut Environment<'static>,
    name: &'static str,
    source: String,
    path: &Path,
) -> Result<(), TemplateError> {
    environment.add_template_owned(name, source).map_err(|error| bad(path, &error))
}

fn attempt(
    environment: &Environment<'_>,
    known: &[Known],
    name: &str,
    path: &Path,
) -> Result<(), TemplateError> {
    let samples = known.iter().filter(|known| known.name == name).flat_map(|known| (known.samples)());
    for sample in samples {
        let text = one(environment, name, sample).map_err(|error| bad(path, &error))?;
        if text.is_empty() && !name.ends_with("notes.txt") {
            return Err(TemplateError::Bad { path: path.into(), line: 1, what: "renders to nothing".into() });
        }
    }
    Ok(())
}

fn bad(path: &Path, error: &Error) -> TemplateError {
    let what = error
        .detail()
        .map_or_else(|| error.kind().to_string(), |detail| format!("{}: {detail}", error.kind()));
    TemplateError::Bad { path: path.into(), line: error.line().unwrap_or(1), what }
}

/// The files of an operator's directory for this language. A file that no template of ours has is an
/// error in any language: its owner believes that it does something.
fn overrides(
    dir: &Path,
    language: &str,
    known: &[Known],
) -> Result<BTreeMap<&'static str, PathBuf>, TemplateError> {
    let mut files = vec![];
    collect(dir, &mut files)?;
    let mut own = BTreeMap::new();
    for path in files {
        let below = path.strip_prefix(dir).unwrap_or(&path);
        let mut parts = below.components();
        let folder = parts.next().map(|part| part.as_os_str().to_string_lossy().into_owned());
        let rest = parts.as_path().to_string_lossy().replace('\\', "/");
        let Some(template) = known.iter().find(|known| known.name == rest) else {
            let expected = known.iter().map(|known| known.name).collect::<Vec<_>>().join(", ");
            return Err(TemplateError::UnknownFile { path, expected });
        };
        if folder.as_deref() == Some(language) {
            own.insert(template.name, path);
        }
    }
    Ok(own)
}

fn collect(dir: &Path, files: &mut Vec<PathBuf>) -> Result<(), TemplateError> {
    let unreadable =
        |error: std::io::Error| TemplateError::Unreadable { path: dir.to_owned(), what: error.to_string() };
    for entry in std::fs::read_dir(dir).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        // Version control and editors keep hidden files beside the templates.
        if entry.file_name().to_string_lossy().starts_with('.') {
            continue;
        }
        if entry.path().is_dir() {
            collect(&entry.path(), files)?;
        } else {
            files.push(entry.path());
        }
    }
    files.sort();
    Ok(())
}

#[cfg(test)]
mod tests;

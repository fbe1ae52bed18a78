//! From text to sections: what is there, what is unknown, what has the wrong type.
//!
//! Invariant: one faulty key never hides another. A key that cannot be read is noted and taken
//! out, and its section is read again without it.

use super::check::Check;
use super::{EXAMPLE, database, group, person, policy, route, runtime, server, signing, slack, templates};
use schemars::{JsonSchema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use serde_path_to_error::Segment;
use std::collections::BTreeMap;
use toml::{Table, Value};

/// One TOML file. Secrets are references: an environment variable or a file.
#[derive(Debug, Default, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Countersign configuration")]
pub(super) struct File {
    #[serde(default)]
    pub(super) server: server::Raw,
    #[serde(default)]
    pub(super) signing: signing::Raw,
    #[serde(default)]
    pub(super) database: database::Raw,
    #[serde(default)]
    pub(super) policy: policy::Raw,
    #[serde(default)]
    pub(super) templates: templates::Raw,
    /// The systems that run agents.
    #[serde(default)]
    pub(super) runtime: Vec<runtime::Raw>,
    /// The installations of the Slack app.
    #[serde(default)]
    pub(super) slack: Vec<slack::Raw>,
    /// Groups of approvers.
    #[serde(default)]
    pub(super) group: Vec<group::Raw>,
    /// Whose chat account is whose.
    #[serde(default)]
    pub(super) person: Vec<person::Raw>,
    /// Where interactions go and who may answer them; the first match wins.
    #[serde(default)]
    pub(super) route: Vec<route::Raw>,
}

/// Sections and keys that belong to the product but not to this version. `section.key`, or the
/// section alone.
const NOT_YET: [&str; 20] = [
    "oidc",
    "alerts",
    "discord",
    "policy.max_open_per_place",
    "runtime.question_part",
    "runtime.connect_pages",
    "runtime.protocol",
    "runtime.org",
    "runtime.project",
    "runtime.agents",
    "runtime.native_base_path",
    "runtime.api_version",
    "slack.app_token",
    "slack.subject",
    "group.discord_roles",
    "person.discord",
    "route.mention",
    "route.confirm",
    "route.reason_on_deny",
    "route.thread_by",
];

/// Reads every section.
pub(super) fn sections(mut table: Table, check: &mut Check<'_>) -> File {
    let file = File {
        server: one(&mut table, "server", check),
        signing: one(&mut table, "signing", check),
        database: one(&mut table, "database", check),
        policy: one(&mut table, "policy", check),
        templates: one(&mut table, "templates", check),
        runtime: many(&mut table, "runtime", check),
        slack: many(&mut table, "slack", check),
        group: many(&mut table, "group", check),
        person: many(&mut table, "person", check),
        route: many(&mut table, "route", check),
    };
    let schema = schema_of::<File>();
    let known = properties(&schema);
    for name in table.keys() {
        unknown(check, "", name, name, known.keys());
    }
    file
}

fn one<T: DeserializeOwned + JsonSchema + Default>(
    table: &mut Table,
    name: &str,
    check: &mut Check<'_>,
) -> T {
    match table.remove(name) {
        None => T::default(),
        Some(Value::Table(section)) => read(section, name, name, check),
        Some(Value::Array(_)) => {
            check.error(name, "is one section, not a list".into(), format!("write [{name}] once"));
            T::default()
        }
        Some(_) => {
            check.error(
                name,
                "is a section, not a value".into(),
                format!("write [{name}] and its keys below"),
            );
            T::default()
        }
    }
}

fn many<T: DeserializeOwned + JsonSchema + Default>(
    table: &mut Table,
    name: &str,
    check: &mut Check<'_>,
) -> Vec<T> {
    let fix = || format!("write [[{name}]] and its keys below, once for each");
    let mut sections = Vec::new();
    match table.remove(name) {
        None => {}
        Some(Value::Array(list)) => {
            for (n, element) in list.into_iter().enumerate() {
                let at = format!("{name}[{n}]");
                // An element that is no table keeps its place, so that the paths of later ones stay true.
                sections.push(if let Value::Table(section) = element {
                    read(section, name, &at, check)
                } else {
                    check.error(&at, "is a section, not a value".into(), fix());
                    T::default()
                });
            }
        }
        Some(Value::Table(_)) => check.error(name, "is a list of sections".into(), fix()),
        Some(_) => check.error(name, "is a list of sections, not a value".into(), fix()),
    }
    sections
}

/// Reads one section: unknown keys first, then types, one fault at a time until none is left.
fn read<T: DeserializeOwned + JsonSchema + Default>(
    mut table: Table,
    name: &str,
    at: &str,
    check: &mut Check<'_>,
) -> T {
    strip_unknown(&mut table, &schema_of::<T>(), name, at, check);
    loop {
        let why = match serde_path_to_error::deserialize::<_, T>(Value::Table(table.clone())) {
            Ok(section) => return section,
            Err(why) => why,
        };
        let mut segments = why.path().iter();
        let first = match segments.next() {
            Some(Segment::Map { key }) if table.contains_key(key) => key.clone(),
            // No key to blame: the section itself cannot be read.
            _ => {
                check.error(
                    at,
                    why.inner().message().to_owned(),
                    format!("see the section {name} of `countersign config example`"),
                );
                return T::default();
            }
        };
        let path = segments.fold(format!("{at}.{first}"), |path, segment| match segment {
            Segment::Seq { index } => format!("{path}[{index}]"),
            Segment::Map { key } => format!("{path}.{key}"),
            Segment::Enum { .. } | Segment::Unknown => path,
        });
        let fix = match sample(name, &first) {
            Some(line) => format!("write it like `{line}`"),
            None => format!("see the section {name} of `countersign config example`"),
        };
        check.error(&path, plain(why.inner().message()), fix);
        table.remove(&first);
    }
}

/// The library's words for types, in words of the file.
fn plain(message: &str) -> String {
    [
        ("expected u32", "expected a whole number from 0 on"),
        ("expected f64", "expected a number"),
        ("expected path string", "expected a path in quotes"),
        ("expected a string", "expected a text in quotes"),
        ("expected a boolean", "expected true or false"),
        ("expected a sequence", "expected a list in [ ]"),
        ("expected a map", "expected a table in { }"),
    ]
    .iter()
    .fold(message.trim().to_owned(), |text, (from, to)| text.replace(from, to))
}

/// A section's schema. TOML has no null, so neither has the schema of an optional key.
pub(super) fn schema_of<T: JsonSchema>() -> Json {
    let mut schema = SchemaGenerator::default().into_root_schema_for::<T>().to_value();
    without_null(&mut schema);
    schema
}

fn without_null(schema: &mut Json) {
    match schema {
        Json::Array(list) => list.iter_mut().for_each(without_null),
        Json::Object(map) => {
            if let Some(Json::Array(types)) = map.get_mut("type") {
                types.retain(|name| name != "null");
                if let [only] = types.as_slice() {
                    let only = only.clone();
                    map.insert("type".into(), only);
                }
            }
            if let Some(Json::Array(forms)) = map.get_mut("anyOf") {
                forms.retain(|form| form.get("type").is_none_or(|name| name != "null"));
                if let [Json::Object(only)] = forms.as_slice() {
                    let only = only.clone();
                    map.remove("anyOf");
                    map.extend(only);
                }
            }
            map.values_mut().for_each(without_null);
        }
        _ => {}
    }
}

fn properties(schema: &Json) -> BTreeMap<&str, &Json> {
    let map = schema.get("properties").and_then(Json::as_object);
    map.into_iter().flatten().map(|(key, schema)| (key.as_str(), schema)).collect()
}

fn strip_unknown(table: &mut Table, schema: &Json, section: &str, at: &str, check: &mut Check<'_>) {
    let known = properties(schema);
    let keys: Vec<String> = table.keys().cloned().collect();
    for key in keys {
        match known.get(key.as_str()) {
            None => {
                unknown(check, at, &key, &format!("{section}.{key}"), known.keys());
                table.remove(&key);
            }
            Some(schema) => {
                if let Some(Value::Table(inner)) = table.get_mut(&key)
                    && schema.get("properties").is_some()
                {
                    strip_unknown(inner, schema, &format!("{section}.{key}"), &format!("{at}.{key}"), check);
                }
            }
        }
    }
}

fn unknown<'k>(
    check: &mut Check<'_>,
    at: &str,
    key: &str,
    id: &str,
    known: impl Iterator<Item = &'k &'k str>,
) {
    let path = if at.is_empty() { key.to_owned() } else { format!("{at}.{key}") };
    if NOT_YET.contains(&id) {
        check.error(&path, "is not part of this version yet".into(), "remove it".into());
        return;
    }
    let known: Vec<&str> = known.copied().collect();
    let near = known.iter().map(|other| (distance(key, other), *other)).min();
    let fix = match near {
        Some((far, other)) if far <= 1 + other.len() / 5 => format!("did you mean `{other}`?"),
        _ => format!("remove it; known here: {}", known.join(", ")),
    };
    check.error(&path, "is not a known key".into(), fix);
}

/// How many letters have to be added, dropped or changed, or neighbours swapped.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=b.len()).collect()];
    for (i, from) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, to) in b.iter().enumerate() {
            let mut best = (rows[i][j] + usize::from(from != to)).min(rows[i][j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && a[i - 1] == *to && b[j - 1] == *from {
                best = best.min(rows[i - 1][j - 1] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

/// How the example writes a key, its comment left out.
fn sample(section: &str, key: &str) -> Option<&'static str> {
    let heads = [format!("[{section}]"), format!("[[{section}]]")];
    EXAMPLE
        .lines()
        .map(|line| line.strip_prefix("# ").unwrap_or(line))
        .skip_while(|line| !heads.iter().any(|head| line.starts_with(head)))
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .find(|line| line.strip_prefix(key).is_some_and(|rest| rest.trim_start().starts_with('=')))
        .map(|line| line.split_once("  #").map_or(line, |(line, _)| line).trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_keys_are_found() {
        for (a, b, far) in
            [("api_ulr", "api_url", 1), ("listne", "listen", 1), ("pol", "poll", 1), ("x", "listen", 6)]
        {
            assert_eq!(distance(a, b), far, "{a} {b}");
        }
    }

    #[test]
    fn a_sample_is_a_line_of_the_example() {
        assert_eq!(sample("slack", "name"), Some("name = \"acme\""));
        assert_eq!(sample("signing", "name"), None);
    }
}

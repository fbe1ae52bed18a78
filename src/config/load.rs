//! From text to sections: what is there, what is unknown, what has the wrong type.
//!
//! Invariant: one faulty key never hides another. A key that cannot be read is noted and taken
//! out, and its section is read again without it.

use super::check::Check;
use super::hints::{plain, sample, unknown};
use super::schema::{properties, schema_of};
use super::{
    alerts, database, discord, group, person, policy, route, runtime, server, signing, slack, templates,
};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use serde_path_to_error::Segment;
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
    pub(super) alerts: alerts::Raw,
    #[serde(default)]
    pub(super) templates: templates::Raw,
    /// The systems that run agents.
    #[serde(default)]
    pub(super) runtime: Vec<runtime::Raw>,
    /// The installations of the Slack app.
    #[serde(default)]
    pub(super) slack: Vec<slack::Raw>,
    /// The installations of the Discord application.
    #[serde(default)]
    pub(super) discord: Vec<discord::Raw>,
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

/// Reads every section.
pub(super) fn sections(mut table: Table, check: &mut Check<'_>) -> File {
    let file = File {
        server: one(&mut table, "server", check),
        signing: one(&mut table, "signing", check),
        database: one(&mut table, "database", check),
        policy: one(&mut table, "policy", check),
        alerts: one(&mut table, "alerts", check),
        templates: one(&mut table, "templates", check),
        runtime: many(&mut table, "runtime", check),
        slack: many(&mut table, "slack", check),
        discord: many(&mut table, "discord", check),
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

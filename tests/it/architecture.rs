//! The rules of the crate's map (`src/lib.rs`), read off the source text: who may name whom.
//!
//! Test code inside `src/` (everything after `#[cfg(test)]`, and files named `*tests.rs`) may lean on more than the
//! code it tests; the rules are about what ships.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// For each part, the parts it may name. `a::b` allows only that module of `a`; `*` allows all.
const MAY_NAME: &[(&str, &[&str])] = &[
    ("domain", &[]),
    ("net", &[]),
    ("telemetry", &[]),
    ("render", &["domain"]),
    ("pace", &["domain"]),
    ("config", &["domain", "net"]),
    ("store", &["domain"]),
    ("identity", &["domain", "net"]),
    ("runtime", &["bridge::ports", "domain", "net", "render", "pace"]),
    ("chat", &["bridge::ports", "domain", "net", "render", "pace"]),
    ("bridge", &["store", "identity", "domain", "telemetry"]),
    ("http", &["bridge", "chat", "runtime", "identity", "domain", "render", "telemetry"]),
    ("sandbox", &["net", "telemetry"]),
    ("cli", &["*"]),
    ("main", &["cli", "net", "telemetry"]),
];

/// For each foreign crate, the only places that may name it.
const STAYS_IN: &[(&str, &[&str])] = &[
    ("sqlx", &["store"]),
    ("slack_morphism", &["chat/slack"]),
    ("tokio_websockets", &["chat/slack/socket"]),
    ("serenity", &["chat/discord"]),
    ("twilight_gateway", &["chat/discord"]),
    ("openidconnect", &["identity"]),
    ("reqwest", &["net", "runtime", "chat", "identity", "sandbox", "cli"]),
    ("axum", &["http", "sandbox", "cli"]),
    ("tower_http", &["http", "sandbox"]),
    ("governor", &["pace"]),
    ("minijinja", &["render"]),
    ("clap", &["cli", "main"]),
    ("anyhow", &["cli", "main"]),
    ("metrics_exporter_prometheus", &["telemetry"]),
    ("tracing_subscriber", &["telemetry"]),
    ("chrono", &[]),
    ("rand", &[]),
    ("rsa", &[]),
    ("oauth2", &[]),
];

/// What the pure part may not name, whatever else changes.
const NOT_IN_DOMAIN: &[&str] = &["tokio", "futures_util", "tracing", "metrics", "url", "secrecy", "rustls"];

/// Longest file, in lines that are neither blank nor comments.
const LONGEST: usize = 600;
/// Files that were longer when the rule came, with what they may have; this list only shrinks.
const LONGER: &[(&str, usize)] = &[];

#[test]
fn parts_name_only_what_the_map_allows() {
    let known: BTreeSet<&str> = MAY_NAME.iter().map(|(part, _)| *part).collect();
    let mut wrong = Vec::new();
    for source in rust_files("src") {
        let part = source.part();
        if part == "lib" {
            continue;
        }
        let Some((_, allowed)) = MAY_NAME.iter().find(|(name, _)| *name == part) else {
            wrong.push(format!("{}: add `{part}` to the map and to MAY_NAME", source.path));
            continue;
        };
        for named in source.names_of("crate").into_iter().chain(source.names_of("countersign")) {
            let top = named.split("::").next().unwrap_or_default();
            let fine = top == part
                || !known.contains(top)
                || allowed.iter().any(|one| *one == "*" || *one == top || named.starts_with(one));
            if !fine {
                wrong.push(format!("{}: `{part}` may not name `{named}`", source.path));
            }
        }
        if source.code().contains(&"super::".repeat(source.depth())) {
            wrong.push(format!("{}: write `crate::…`, so that this rule can read it", source.path));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn foreign_crates_stay_where_they_belong() {
    let mut wrong = Vec::new();
    for source in rust_files("src") {
        let inside = source.path.trim_start_matches("src/").trim_end_matches(".rs").to_owned();
        let at = |place: &&str| inside == **place || inside.starts_with(&format!("{place}/"));
        for (foreign, places) in STAYS_IN {
            if source.names_crate(foreign) && !places.iter().any(at) {
                wrong.push(format!("{}: `{foreign}` belongs in {places:?}", source.path));
            }
        }
        if source.part() == "domain" {
            let impure = NOT_IN_DOMAIN.iter().filter(|foreign| source.names_crate(foreign));
            wrong.extend(
                impure.map(|foreign| format!("{}: `domain` is pure, without `{foreign}`", source.path)),
            );
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn files_open_with_their_invariant_and_stay_readable() {
    let mut wrong = Vec::new();
    for source in rust_files("src").into_iter().chain(rust_files("tests/it")) {
        let is_code = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with("//");
        let lines = source.text.lines().filter(is_code).count();
        let is_part_of_another = source.path.ends_with("tests.rs");
        if lines > 1 && !is_part_of_another && !source.text.starts_with("//!") {
            wrong.push(format!("{}: begins without `//!`", source.path));
        }
        match LONGER.iter().find(|(path, _)| *path == source.path) {
            Some((_, had)) if lines > *had => {
                wrong.push(format!("{}: grew from {had} to {lines}", source.path));
            }
            Some(_) if lines <= LONGEST => wrong.push(format!("{}: take it off LONGER", source.path)),
            None if lines > LONGEST => {
                wrong.push(format!(
                    "{}: {lines} lines of code, more than {LONGEST}: find the second subject",
                    source.path
                ));
            }
            _ => {}
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn the_repository_speaks_only_of_itself() {
    // Written in pieces, or this file would be the first to be found.
    let foreign =
        [["../", "shared"], ["/wo", "rk/"], ["wire/", "a2a.md"], ["wire/", "slack.md"], ["HELP", "ERS.md"]]
            .map(|pieces| pieces.concat());
    let mut wrong = Vec::new();
    for path in files("", &|_| true) {
        let Ok(text) = std::fs::read_to_string(root().join(&path)) else { continue };
        for (number, line) in text.lines().enumerate() {
            if foreign.iter().any(|word| line.contains(word)) {
                wrong.push(format!("{path}:{}: {}", number + 1, line.trim()));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

struct Source {
    path: String,
    text: String,
}

impl Source {
    /// `src/chat/slack/api.rs` → `chat`; `src/net.rs` → `net`.
    fn part(&self) -> &str {
        let inside = self.path.trim_start_matches("src/");
        inside.split('/').next().unwrap_or(inside).trim_end_matches(".rs")
    }

    /// How many `super::` lead to the root of the crate.
    fn depth(&self) -> usize {
        let inside = self.path.trim_start_matches("src/").trim_end_matches(".rs").trim_end_matches("/mod");
        inside.split('/').count()
    }

    /// The text without its tests.
    fn shipped(&self) -> &str {
        if self.path.ends_with("tests.rs") {
            return "";
        }
        self.text.split("#[cfg(test)]").next().unwrap_or_default()
    }

    /// Lines of shipped code, comments cut off.
    fn code(&self) -> String {
        let cut = |line: &str| match line.find("//") {
            Some(at) if !line[..at].ends_with(':') => line[..at].to_owned(),
            _ => line.to_owned(),
        };
        self.shipped().lines().map(cut).collect::<Vec<_>>().join("\n")
    }

    /// The paths after `of::`, two segments deep; a group in braces gives one each.
    fn names_of(&self, of: &str) -> Vec<String> {
        let code = self.code();
        let mut names = Vec::new();
        for at in starts(&code, &format!("{of}::")) {
            let rest = &code[at + of.len() + 2..];
            if let Some(group) = rest.strip_prefix('{') {
                names.extend(members(group));
            } else {
                names.push(two_segments(rest));
            }
        }
        names
    }

    fn names_crate(&self, foreign: &str) -> bool {
        let code = self.code();
        let used = |word: &str| starts(&code, word).iter().any(|at| !code[..*at].ends_with("::"));
        used(&format!("{foreign}::"))
            || used(&format!("use {foreign};"))
            || used(&format!("use {foreign} as"))
    }
}

/// Where `word` begins and is not the end of a longer name.
fn starts(code: &str, word: &str) -> Vec<usize> {
    let of_a_name = |found: char| found.is_alphanumeric() || found == '_';
    code.match_indices(word).map(|(at, _)| at).filter(|at| !code[..*at].ends_with(of_a_name)).collect()
}

fn two_segments(path: &str) -> String {
    let end = path
        .find(|found: char| !found.is_alphanumeric() && found != '_' && found != ':')
        .unwrap_or(path.len());
    path[..end].trim_end_matches(':').split("::").take(2).collect::<Vec<_>>().join("::")
}

/// The members of a `use` group whose opening brace was just read; inner groups stay with their first segment.
fn members(group: &str) -> Vec<String> {
    let (mut depth, mut member, mut all) = (1, String::new(), Vec::new());
    for found in group.chars() {
        match found {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 1 => all.push(std::mem::take(&mut member)),
            _ if depth == 1 => member.push(found),
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    all.push(member);
    all.iter().map(|one| two_segments(one.trim())).filter(|one| !one.is_empty()).collect()
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn rust_files(under: &str) -> Vec<Source> {
    let is_rust = |path: &str| Path::new(path).extension().is_some_and(|extension| extension == "rs");
    let found = files(under, &is_rust);
    assert!(!found.is_empty(), "no Rust file under {under}");
    found
        .into_iter()
        .map(|path| Source { text: std::fs::read_to_string(root().join(&path)).unwrap(), path })
        .collect()
}

/// Files below a folder of the repository, relative to its root, without what is built or fetched.
fn files(under: &str, wanted: &dyn Fn(&str) -> bool) -> Vec<String> {
    let (mut found, mut folders) = (Vec::new(), vec![PathBuf::from(under)]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(root().join(&folder)).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name();
            if [".git", "target", "node_modules"].iter().any(|left_out| name == *left_out) {
                continue;
            }
            let path = folder.join(&name);
            if entry.file_type().unwrap().is_dir() {
                folders.push(path);
            } else if let Some(path) = path.to_str().filter(|path| wanted(path)) {
                found.push(path.to_owned());
            }
        }
    }
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    //! The reader of source text itself.

    use super::*;

    #[test]
    fn the_way_up_to_the_root_is_counted() {
        let depth = |path: &str| source(path, "").depth();
        assert_eq!(
            [depth("src/net.rs"), depth("src/chat/mod.rs"), depth("src/chat/slack/api.rs")],
            [1, 1, 3]
        );
    }

    fn source(path: &str, text: &str) -> Source {
        Source { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn paths_are_found_in_every_form() {
        let text = "use crate::{net, store::{Db, Tx}};\nuse crate::domain::ids::Ids;\n// crate::cli\nfn f() { crate::http::x() }\n#[cfg(test)]\nuse crate::sandbox;";
        let names = source("src/chat/slack/api.rs", text).names_of("crate");
        assert_eq!(names, ["net", "store", "domain::ids", "http::x"]);
    }

    #[test]
    fn a_crate_is_told_from_a_module_and_a_longer_name() {
        assert!(source("src/a.rs", "fn f() { sqlx::query(\"\") }").names_crate("sqlx"));
        assert!(source("src/a.rs", "use sqlx as db;").names_crate("sqlx"));
        assert!(!source("src/a.rs", "use crate::sqlx::x; use my_sqlx::y; // sqlx::z").names_crate("sqlx"));
    }
}

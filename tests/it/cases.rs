//! The lists of conformance cases (`tests/cases`) are complete, and they and the tests name each other.
//!
//! A test names its cases in its name (`a2a_case_13_…`, `slack_case_20_and_23_…`) or in a comment at or in it ("A2A
//! cases 13, 14; Slack case 8"). Tests are found in the source text, by walking the modules from `src/lib.rs` and
//! `tests/it/main.rs`: a name of the list is `lib::` or `it::` and what `cargo test` calls it.

use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The protocols, the files of their lists, and their last case.
const LISTS: [(&str, &str, u16); 3] =
    [("A2A", "a2a", 70), ("Slack", "slack", 60), ("Discord", "discord", 79)];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    case: Vec<Row>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    number: u16,
    /// What it is about, in one line.
    case: String,
    #[serde(default)]
    tests: Vec<String>,
    /// The later part it waits for, wholly or in part.
    waits: Option<String>,
    #[serde(default)]
    withdrawn: bool,
}

#[test]
fn every_case_has_its_tests_and_every_test_its_cases() {
    let tests = tests();
    assert!(tests.len() > 300, "the walk over the modules found only {} tests", tests.len());
    let mut wrong = vec![];
    for (protocol, file, last) in LISTS {
        let path = root().join("tests/cases").join(file).with_extension("toml");
        let list: List = toml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let numbers: Vec<u16> = list.case.iter().map(|row| row.number).collect();
        assert_eq!(
            numbers,
            (1..=last).collect::<Vec<_>>(),
            "{file}.toml: the numbers, in order, without gaps"
        );
        for row in list.case {
            let at = format!("{file}.toml, case {}", row.number);
            wrong.extend(row.faults().into_iter().map(|fault| format!("{at}: {fault}")));
            let listed: BTreeSet<&str> = row.tests.iter().map(String::as_str).collect();
            if listed.len() < row.tests.len() {
                wrong.push(format!("{at}: names a test twice"));
            }
            for name in &listed {
                match tests.get(*name) {
                    None => wrong.push(format!("{at}: there is no test `{name}`")),
                    Some(says) if !says.contains(&(protocol, row.number)) => wrong.push(format!(
                        "{at}: `{name}` does not name it; write \"{protocol} case {}\" there",
                        row.number
                    )),
                    Some(_) => {}
                }
            }
            for (name, says) in &tests {
                if says.contains(&(protocol, row.number)) && !listed.contains(name.as_str()) {
                    wrong.push(format!("{at}: add \"{name}\""));
                }
            }
        }
        for (name, says) in &tests {
            for (_, number) in
                says.iter().filter(|(of, number)| *of == protocol && !(1..=last).contains(number))
            {
                wrong.push(format!("`{name}` names {protocol} case {number}, which there is not"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} faults:\n{}", wrong.len(), wrong.join("\n"));
}

impl Row {
    fn faults(&self) -> Vec<&'static str> {
        let mut faults = vec![];
        if self.case.trim().is_empty() || self.case.contains('\n') {
            faults.push("say in one line what it is about");
        }
        if self.waits.as_ref().is_some_and(|part| part.trim().is_empty()) {
            faults.push("name the part it waits for");
        }
        match (self.withdrawn, self.tests.is_empty(), self.waits.is_none()) {
            (false, true, true) => faults.push("neither a test nor a part it waits for"),
            (true, tests, waits) if !(tests && waits) => faults.push("withdrawn, and yet tested or waiting"),
            _ => {}
        }
        faults
    }
}

/// Public bug reports of other projects: the file of the list, its rows and the reports in them.
const REPORTS: [(&str, usize, usize); 2] = [("bugs_slack", 40, 82), ("bugs_discord", 32, 63)];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Reports {
    report: Vec<Report>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Report {
    number: usize,
    /// Public project and number.
    reports: Vec<String>,
    /// What went wrong there, in our words.
    symptom: String,
    #[serde(default)]
    tests: Vec<String>,
    /// Why it cannot happen here.
    cannot: Option<String>,
    /// The later part whose test it waits for.
    waits: Option<String>,
}

#[test]
fn every_public_bug_report_has_a_test_or_a_reason() {
    let tests = tests();
    let mut wrong = vec![];
    for (file, rows, reports) in REPORTS {
        let path = root().join("tests/cases").join(file).with_extension("toml");
        let list: Reports = toml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let numbers: Vec<usize> = list.report.iter().map(|row| row.number).collect();
        assert_eq!(
            numbers,
            (1..=rows).collect::<Vec<_>>(),
            "{file}.toml: the numbers, in order, without gaps"
        );
        let named: Vec<&String> = list.report.iter().flat_map(|row| &row.reports).collect();
        let distinct: BTreeSet<&String> = named.iter().copied().collect();
        assert_eq!((named.len(), distinct.len()), (reports, reports), "{file}.toml: every report once");
        for row in &list.report {
            let at = format!("{file}.toml, row {}", row.number);
            let is_report = |text: &String| {
                text.rsplit_once(' ').is_some_and(|(project, number)| {
                    !project.is_empty() && number.bytes().all(|b| b.is_ascii_digit())
                })
            };
            if row.reports.is_empty() || !row.reports.iter().all(is_report) {
                wrong.push(format!("{at}: a report is written \"project number\""));
            }
            let said = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.trim().is_empty());
            if row.symptom.trim().is_empty() {
                wrong.push(format!("{at}: say what went wrong"));
            }
            match (row.tests.is_empty(), said(&row.cannot), said(&row.waits)) {
                (true, false, false) => {
                    wrong.push(format!("{at}: neither a test nor why it cannot happen here"));
                }
                (false, true, _) => wrong.push(format!("{at}: tested, and yet it cannot happen")),
                _ => {}
            }
            for name in row.tests.iter().filter(|name| !tests.contains_key(*name)) {
                wrong.push(format!("{at}: there is no test `{name}`"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} faults:\n{}", wrong.len(), wrong.join("\n"));
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A case of a protocol.
type Case = (&'static str, u16);

/// Every test of the library and of this binary, with the cases it names.
fn tests() -> BTreeMap<String, BTreeSet<Case>> {
    let mut found = BTreeMap::new();
    walk(&root().join("src/lib.rs"), "lib", &mut found);
    walk(&root().join("tests/it/main.rs"), "it", &mut found);
    // This file speaks of cases in general; and a file that is two modules is listed once.
    found.retain(|name, _| !name.starts_with("it::cases::") && !name.contains("_over_rest::"));
    found
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Collects the tests of one file and of the modules below it.
fn walk(path: &Path, module: &str, found: &mut BTreeMap<String, BTreeSet<Case>>) {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let lines: Vec<&str> = text.lines().collect();
    let mut inside: Vec<(usize, String)> = vec![];
    for (at, line) in lines.iter().enumerate() {
        let code = line.trim_start();
        if inside.last().is_some_and(|(depth, _)| *line == format!("{}}}", " ".repeat(*depth))) {
            inside.pop();
        }
        let here = inside.iter().fold(module.to_owned(), |path, (_, name)| format!("{path}::{name}"));
        if let Some(name) = after_visibility(code).strip_prefix("mod ") {
            if let Some(name) = name.strip_suffix(';') {
                walk(&file_of(path, name, &lines[..at]), &format!("{here}::{name}"), found);
            } else if let Some(name) = name.strip_suffix(" {") {
                inside.push((indent(line), name.to_owned()));
            }
        }
        if let Some(name) = function(code) {
            let before = above(&lines[..at], indent(line));
            if before
                .iter()
                .any(|line| ["#[test]", "#[tokio::test", "#[rstest"].iter().any(|mark| line.contains(mark)))
            {
                let end = format!("{}}}", " ".repeat(indent(line)));
                let body = lines[at..].iter().take_while(|line| **line != end);
                let comments = before.iter().chain(body).filter_map(|line| comment(line));
                let mut says = of_text(&comments.collect::<Vec<_>>().join(" "));
                says.extend(of_name(name));
                found.insert(format!("{here}::{name}"), says);
            }
        }
    }
}

fn after_visibility(code: &str) -> &str {
    let code = code.strip_prefix("pub(crate) ").or_else(|| code.strip_prefix("pub(super) ")).unwrap_or(code);
    code.strip_prefix("pub ").unwrap_or(code)
}

/// The name, where a line begins a function.
fn function(code: &str) -> Option<&str> {
    let code = after_visibility(code);
    let code = code.strip_prefix("async ").unwrap_or(code).strip_prefix("fn ")?;
    code.split(['(', '<']).next()
}

/// The comments and attributes right above a line that begins at `depth`.
fn above<'a>(lines: &[&'a str], depth: usize) -> Vec<&'a str> {
    let ends = |line: &&&str| line.trim().is_empty() || line.trim() == "}" || indent(line) < depth;
    let mut above: Vec<&str> = lines.iter().rev().take_while(|line| !ends(line)).copied().collect();
    above.reverse();
    above
}

fn comment(line: &str) -> Option<&str> {
    line.trim_start().strip_prefix("//").map(|text| text.trim_start_matches('/').trim())
}

/// Where `mod name;` of a file lies.
fn file_of(path: &Path, name: &str, before: &[&str]) -> PathBuf {
    let folder = path.parent().unwrap();
    let attribute =
        before.last().and_then(|line| line.trim().strip_prefix("#[path = \"")?.strip_suffix("\"]"));
    if let Some(file) = attribute {
        return folder.join(file);
    }
    let stem = path.file_stem().unwrap().to_str().unwrap();
    let folder = if ["lib", "main", "mod"].contains(&stem) { folder.to_owned() } else { folder.join(stem) };
    let file = folder.join(name).with_extension("rs");
    if file.exists() { file } else { folder.join(name).join("mod.rs") }
}

/// `a2a_case_13_…`, `slack_case_20_and_23_…`, `slack_case_50_to_53_…`.
fn of_name(name: &str) -> Vec<Case> {
    let mut cases = vec![];
    for (protocol, file, _) in LISTS {
        let Some((_, mut rest)) = name.split_once(&format!("{file}_case_")) else { continue };
        while let Some((number, after)) = number(rest) {
            cases.push((protocol, number));
            if let Some((last, _)) = after.strip_prefix("_to_").and_then(self::number) {
                cases.extend((number + 1..=last).map(|number| (protocol, number)));
            }
            let Some(after) = after.strip_prefix("_and_") else { break };
            rest = after;
        }
    }
    cases
}

/// "A2A case 13", "Slack cases 1, 2 and 3".
fn of_text(text: &str) -> BTreeSet<Case> {
    let mut cases = BTreeSet::new();
    for (protocol, _, _) in LISTS {
        for rest in text.split(&format!("{protocol} case")).skip(1) {
            let Some(mut rest) = rest.strip_prefix('s').unwrap_or(rest).strip_prefix(' ') else { continue };
            while let Some((number, after)) = number(rest) {
                cases.insert((protocol, number));
                let next = [", ", " and "].into_iter().find_map(|between| after.strip_prefix(between));
                let Some(next) = next else { break };
                rest = next;
            }
        }
    }
    cases
}

fn number(text: &str) -> Option<(u16, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    Some((text.get(..end)?.parse().ok()?, text.get(end..)?))
}

#[test]
fn cases_are_read_off_names_and_comments() {
    assert_eq!(of_name("slack_case_20_and_23_every_code"), [("Slack", 20), ("Slack", 23)]);
    assert_eq!(of_name("slack_case_5_to_7_accounts"), [("Slack", 5), ("Slack", 6), ("Slack", 7)]);
    assert_eq!(of_name("a2a_case_36_a_token"), [("A2A", 36)]);
    assert_eq!(of_name("no_case_1"), []);
    let all = of_text("A2A cases 13 and 14; Slack case 8, Slack cases 5, 41. A2A casework 3, Slack case-9");
    assert_eq!(
        all.into_iter().collect::<Vec<_>>(),
        [("A2A", 13), ("A2A", 14), ("Slack", 5), ("Slack", 8), ("Slack", 41)]
    );
    assert_eq!(function("pub(crate) async fn name(a: u8) {"), Some("name"));
}

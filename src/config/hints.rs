//! What to say about a key that is unknown, not yet known, or of the wrong type.

use super::EXAMPLE;
use super::check::Check;

/// Sections and keys that belong to the product but not to this version. `section.key`, or the
/// section alone.
const NOT_YET: [&str; 9] = [
    "oidc",
    "runtime.question_part",
    "runtime.connect_pages",
    "runtime.protocol",
    "runtime.org",
    "runtime.project",
    "runtime.agents",
    "runtime.native_base_path",
    "runtime.api_version",
];

/// Notes an unknown key at a path; `id` is its `section.key`, `known` what could stand there.
pub(super) fn unknown<'k>(
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
pub(super) fn sample(section: &str, key: &str) -> Option<&'static str> {
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

/// The library's words for types, in words of the file.
pub(super) fn plain(message: &str) -> String {
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

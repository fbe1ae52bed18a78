//! The example, the schema, and secrets kept in files.

use super::*;
use std::collections::BTreeSet;

/// The keys of the schema, as `section.key`.
fn schema_keys() -> BTreeSet<String> {
    let schema: serde_json::Value = serde_json::from_str(&schema()).unwrap();
    let mut keys = BTreeSet::new();
    for (name, section) in schema["properties"].as_object().unwrap() {
        let reference = section["$ref"].as_str().or_else(|| section["items"]["$ref"].as_str());
        let definition = match reference {
            Some(text) => &schema["$defs"][text.rsplit('/').next().unwrap()],
            None => section,
        };
        let properties =
            definition["properties"].as_object().unwrap_or_else(|| panic!("{name}: {definition}"));
        for (key, inner) in properties {
            keys.insert(format!("{name}.{key}"));
            if let Some(inner) = inner["properties"].as_object() {
                keys.extend(inner.keys().map(|inner| format!("{name}.{key}.{inner}")));
            }
        }
    }
    keys
}

/// The keys that the example shows, also in comments.
fn example_keys() -> BTreeSet<String> {
    let mut keys = BTreeSet::new();
    let mut section = String::new();
    for line in example().lines() {
        let line = line.strip_prefix("# ").unwrap_or(line);
        if let Some(name) = line.strip_prefix('[') {
            section = name.trim_start_matches('[').split(']').next().unwrap().to_owned();
        } else if let Some((key, value)) = line.split_once(" = ")
            && key.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')
        {
            keys.insert(format!("{section}.{key}"));
            if key == "when" {
                let table: toml::Table =
                    format!("v = {}", value.split("  #").next().unwrap()).parse().unwrap();
                keys.extend(
                    table["v"].as_table().unwrap().keys().map(|inner| format!("{section}.when.{inner}")),
                );
            }
        }
    }
    keys
}

#[test]
fn the_example_loads_without_a_warning() {
    assert_eq!(warnings(example()), Vec::<String>::new());
}

#[test]
fn the_example_names_every_key_and_no_other() {
    let keys = schema_keys();
    assert!(keys.len() > 45, "{keys:?}");
    assert_eq!(example_keys(), keys);
}

#[test]
fn every_optional_line_of_the_example_loads_too() {
    let mut lines = 0;
    for (n, line) in example().lines().enumerate() {
        let Some(key) =
            line.strip_prefix("# ").filter(|line| line.contains(" = ") && !line.starts_with("or "))
        else {
            continue;
        };
        let name = key.split(" = ").next().unwrap();
        if !name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_') {
            continue;
        }
        lines += 1;
        let mut text: Vec<&str> = example().lines().collect();
        text[n] = key;
        if name == "card_url" {
            text.retain(|line| !line.starts_with("endpoint = "));
        }
        let found = Config::parse(&text.join("\n"), &env);
        match (name, found) {
            // Refers to files that are not here; that is the only complaint.
            ("dir" | "previous_signing_secret", Err(findings)) => {
                assert_eq!(findings.0.len(), 1, "{findings}");
            }
            (_, Ok(_)) => {}
            (_, Err(findings)) => panic!("{key}: {findings}"),
        }
    }
    assert_eq!(lines, 11);
}

#[test]
fn the_checked_in_schema_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/config/schema.json");
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == schema(), "run `cargo run -- config schema > src/config/schema.json`");
}

#[test]
fn a_secret_file_loses_one_line_break_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("token");
    let text = with("{ env = \"SIGNING\" }", &format!("{{ file = \"{}\" }}", path.display()));
    for content in ["abc-123", "abc-123\n", "abc-123\r\n"] {
        std::fs::write(&path, content).unwrap();
        let SlackInbound::Http { signing_secret, previous: None } = &parse(&text).slack[0].inbound else {
            panic!()
        };
        assert_eq!(signing_secret.expose_secret(), "abc-123");
    }
    for (content, message) in [
        ("abc\n\n", "the secret contains a space, a line break or another character that no token has"),
        ("\n", "the secret is empty"),
        ("", "the secret is empty"),
    ] {
        std::fs::write(&path, content).unwrap();
        let found = findings(&text);
        assert!(found.starts_with(&format!("slack[0].signing_secret: {message}; ")), "{found}");
    }
    std::fs::remove_file(&path).unwrap();
    assert!(findings(&text).contains("cannot be read: No such file"), "{}", findings(&text));
    std::fs::create_dir(&path).unwrap();
    assert!(findings(&text).contains("cannot be read: it is not a file"), "{}", findings(&text));
}

#[cfg(unix)]
#[test]
fn a_key_file_that_others_can_read_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("countersign.key");
    std::fs::write(&path, "{}").unwrap();
    let text = format!("[signing]\nkey_file = \"{}\"{GOOD}", path.display());
    for (mode, good) in [(0o600, true), (0o400, true), (0o640, false), (0o604, false)] {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        if good {
            parse(&text);
        } else {
            let path = path.display();
            let line = format!(
                "signing.key_file: {path} can be read by others (mode {mode:04o}); chmod 0600 {path}"
            );
            assert_eq!(findings(&text), line);
        }
    }
}

#[test]
fn templates_come_from_an_existing_directory() {
    let dir = tempfile::tempdir().unwrap();
    let text = |language: &str| {
        format!("[templates]\nlanguage = \"{language}\"\ndir = \"{}\"{GOOD}", dir.path().display())
    };
    parse(&text("en"));
    assert!(findings(&text("de")).starts_with("templates.language: `de` is not built in; "));
    std::fs::create_dir(dir.path().join("de")).unwrap();
    assert_eq!(parse(&text("de")).templates.language, "de");
}

#[test]
fn a_file_is_loaded_and_a_missing_one_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("countersign.toml");
    let missing = Config::load(&path, &env).expect_err("there is no file").to_string();
    assert!(missing.starts_with(&format!("{}: the file cannot be read: ", path.display())), "{missing}");
    std::fs::write(&path, GOOD).unwrap();
    assert_eq!(Config::load(&path, &env).unwrap().slack[0].name, "acme");
}

proptest::proptest! {
    /// Any damage to a file gives findings or a configuration, never a panic, and no secret.
    #[test]
    fn damaged_files_are_findings(at in 0..GOOD.len(), cut in 0..40_usize, put in "[\\[\\]{}=\"'#.,a-z0-9 \\n\u{e4}]{0,6}") {
        let end = (at + cut).min(GOOD.len());
        let text = format!("{}{put}{}", &GOOD[..at], &GOOD[end..]);
        match Config::parse(&text, &env) {
            Ok(config) => {
                let shown = format!("{config:?}");
                proptest::prop_assert!(!shown.contains("sesame"));
            }
            Err(findings) => {
                proptest::prop_assert!(!findings.0.is_empty());
                proptest::prop_assert!(findings.0.iter().all(|f| !f.message.is_empty() && !f.fix.is_empty()));
                proptest::prop_assert!(!findings.to_string().contains("sesame"));
            }
        }
    }
}

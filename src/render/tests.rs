use super::slack::{Button, Cut, Foot, NoticeText};
use super::*;
use std::fs;

fn english() -> Templates {
    Templates::load("en", None).unwrap()
}

fn with(file: &str, source: &str) -> Result<Templates, TemplateError> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, source).unwrap();
    Templates::load("en", Some(dir.path()))
}

#[test]
fn every_built_in_template_renders_and_every_file_is_known() {
    fn files(dir: &Dir<'_>, names: &mut Vec<String>) {
        for file in dir.files() {
            names.push(file.path().to_string_lossy().into_owned());
        }
        for dir in dir.dirs() {
            files(dir, names);
        }
    }
    english();
    let mut names = vec![];
    files(&BUILT_IN, &mut names);
    names.retain(|name| name.starts_with("en/slack/"));
    names.sort();
    let mut known: Vec<String> = slack::all().iter().map(|known| format!("en/{}", known.name)).collect();
    known.sort();
    assert_eq!(names, known);
}

#[test]
fn values_are_escaped_once_and_our_markup_is_not() {
    let notice = NoticeText { groups: vec!["<!channel> R&D".into()], ..NoticeText::plain("not_allowed") };
    assert!(english().render(&notice).contains("&lt;!channel&gt; R&amp;D"));
    let foot = Foot { owner: Some(Markup::of("<@U1>".into())), ..Foot::samples().remove(0) };
    assert!(english().render(&foot).contains("for <@U1> ·"));
    let plain = Button { control: "approve", about: Some("R&D <x>".into()) };
    assert_eq!(english().render(&plain), "Approve R&D <x>");
}

#[test]
fn an_operators_file_replaces_one_template() {
    let templates = with("en/slack/cut.txt", "[{{ count }} left out]").unwrap();
    assert_eq!(templates.render(&Cut { count: 7 }), "[7 left out]");
    assert_eq!(templates.render(&Button { control: "deny", about: None }), "Deny");
}

#[test]
fn a_new_language_may_be_given_and_falls_back_to_english() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir_all(dir.path().join("de/slack")).unwrap();
    fs::write(dir.path().join("de/slack/cut.txt"), "[{{ count }} fehlen]").unwrap();
    let templates = Templates::load("de", Some(dir.path())).unwrap();
    assert_eq!(templates.render(&Cut { count: 7 }), "[7 fehlen]");
    assert_eq!(templates.render(&Button { control: "deny", about: None }), "Deny");
    assert!(matches!(Templates::load("fr", Some(dir.path())), Err(TemplateError::UnknownLanguage { .. })));
}

#[test]
fn a_bad_override_is_refused_with_file_and_line() {
    let line = |result: Result<Templates, TemplateError>| match result {
        Err(TemplateError::Bad { path, line, what }) => {
            assert!(path.ends_with("en/slack/cut.txt"), "{path:?}");
            (line, what)
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(line(with("en/slack/cut.txt", "ok\n{% if %}")).0, 2);
    let (at, what) = line(with("en/slack/cut.txt", "ok\n\n{{ cuont }}"));
    assert_eq!(at, 3);
    assert!(what.contains("undefined"), "{what}");
    assert_eq!(line(with("en/slack/cut.txt", " \n")).1, "renders to nothing");
    // A mistake on a way that only some samples take.
    line(with("en/slack/cut.txt", "x {% if count == 1 %}{{ nope }}{% endif %}"));
}

#[test]
fn an_unknown_file_is_named() {
    for file in ["en/slack/headd.txt", "slack/head.txt", "de/slack/nope.txt"] {
        let error = with(file, "x").unwrap_err();
        assert!(matches!(&error, TemplateError::UnknownFile { path, .. } if path.ends_with(file)), "{error}");
    }
    assert!(with(".gitignore", "x").is_ok());
}

#[test]
fn a_file_that_is_no_text_is_named() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir_all(dir.path().join("en/slack")).unwrap();
    fs::write(dir.path().join("en/slack/cut.txt"), [0xff, 0xfe]).unwrap();
    let error = Templates::load("en", Some(dir.path())).unwrap_err();
    assert!(matches!(error, TemplateError::Unreadable { .. }), "{error}");
    assert!(Templates::load("en", Some(&dir.path().join("missing"))).is_err());
}

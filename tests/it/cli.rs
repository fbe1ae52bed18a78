//! The command line as an operator meets it: the real binary, its output and its exit codes.

use crate::world::database::Backend;
use crate::world::story::{Story, Wants, env};
use countersign::domain::audit::Head;
use rstest::rstest;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

fn binary(words: &[&str], config: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_countersign"));
    command.args(words).arg("--config").arg(config).stdin(Stdio::null());
    for name in ["OPERATOR", "WATCH", "BOT", "SIGNING"] {
        command.env(name, env(name).unwrap());
    }
    command
}

/// Runs a command beside the story's service. The stand-ins answer from this test's threads.
async fn run(story: &Story, words: &[&str]) -> (i32, String, String) {
    let file = story.config_file();
    let mut command = binary(words, &file);
    let output: Output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    (
        output.status.code().unwrap(),
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

#[rstest]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_open_and_who_may_answer(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let story = Story::begin(on).await;
    assert_eq!(run(&story, &["open"]).await.1, "nothing is open\n");
    let (ask, card) = story.asked("both").await;
    let (code, out, _) = run(&story, &["open", "--json"]).await;
    assert_eq!(code, 0);
    let open: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(open[0]["interaction"], ask.interaction_id.as_str());
    assert_eq!(open[0]["approvers"][0], "release");
    let short = open[0]["id"].as_str().unwrap().to_owned();
    assert!(story.reads(&card).contains(&short), "the card shows the same short id");

    let explain = async |words: &[&str]| {
        let words = [&["explain"], words, &["--json"]].concat();
        let (code, out, err) = run(&story, &words).await;
        (code, serde_json::from_str::<Value>(&out).unwrap_or_else(|_| panic!("{out}{err}")))
    };
    let (code, said) = explain(&[&short, "--as", "dana@example.com"]).await;
    assert_eq!(
        (code, said["verdict"].as_str(), said["rule"].as_str()),
        (0, Some("allow"), Some("approvers"))
    );
    assert_eq!(said["needs"], serde_json::json!([]));
    let (code, said) = explain(&[&ask.interaction_id, "--as", "kim@example.com", "--deny"]).await;
    assert_eq!((code, said["decision"].as_str()), (0, Some("denied")));
    let (code, said) = explain(&[&short, "--as", "sam@example.com"]).await;
    assert_eq!((code, said["rule"].as_str()), (10, Some("link")));
    assert_eq!(said["needs"], serde_json::json!(["link"]));
    let (code, said) = explain(&[&short, "--as", "guest@example.com"]).await;
    assert_eq!((code, said["rule"].as_str()), (10, Some("person")));
    let (code, said) = explain(&[&short, "--as", "dana@example.com", "--from", "slack:acme:U0KIM"]).await;
    assert_eq!((code, said["rule"].as_str()), (10, Some("link")), "that account is somebody else's");
    story.slack.faults().add(countersign::sandbox::faults::Rule::always(
        "users.info",
        countersign::sandbox::faults::Fault::Status { code: 500, retry_after: None, body: None },
    ));
    let (code, said) = explain(&[&short, "--as", "dana@example.com"]).await;
    assert_eq!((code, said["verdict"].as_str()), (11, Some("undetermined")));
    story.slack.faults().clear();
    let (code, _, err) = run(&story, &["explain", "nothing", "--as", "dana@example.com"]).await;
    assert_eq!(code, 1);
    assert!(err.contains("countersign open"), "{err}");
    story.end().await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_audit_log_is_exported_and_verified(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let story = Story::begin(on).await;
    let (_ask, card) = story.asked("deploy_service").await;
    story.presses("U0SAM", &card, "Approve").await;
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver().await;
    let (code, out, _) = run(&story, &["audit", "verify"]).await;
    assert_eq!(code, 0, "{out}");
    let head: Head = out.trim().strip_prefix("intact, head ").unwrap().parse().unwrap();
    assert_eq!(head.seq, 4);
    let folder = tempfile::tempdir().unwrap();
    for format in ["jsonl", "csv"] {
        let (code, exported, _) = run(&story, &["audit", "export", "--format", format]).await;
        assert_eq!(code, 0);
        let file = folder.path().join(format);
        std::fs::write(&file, &exported).unwrap();
        let verify = |file: &Path, head: &Head| {
            let head = head.to_string();
            binary(&["audit", "verify", file.to_str().unwrap(), "--head", &head], Path::new("none"))
                .output()
                .unwrap()
        };
        assert_eq!(verify(&file, &head).status.code(), Some(0));
        // One word changed: found, and named.
        let forged = folder.path().join("forged");
        std::fs::write(&forged, exported.replacen("approved", "denied", 1)).unwrap();
        let output = verify(&forged, &head);
        assert_eq!(output.status.code(), Some(10));
        assert!(String::from_utf8_lossy(&output.stdout).starts_with("broken at row "));
        // The tail cut: found against the head.
        let cut = folder.path().join("cut");
        let lines: Vec<&str> = exported.lines().collect();
        std::fs::write(&cut, lines[..lines.len() - 1].join("\n") + "\n").unwrap();
        assert_eq!(verify(&cut, &head).status.code(), Some(10));
    }
    let (_, from, _) = run(&story, &["audit", "export", "--from", "4"]).await;
    assert_eq!(from.lines().count(), 1);
    story.end().await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn check_says_what_is_wrong(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let story = Story::begin(on).await;
    let token = countersign::sandbox::slack::acme::BOT_TOKEN;
    let lines = async || -> (i32, String) {
        story.at_the_machines_time();
        let (code, out, err) = run(&story, &["check"]).await;
        (code, out + &err)
    };
    let (code, out) = lines().await;
    assert_eq!(code, 0, "{out}");
    for line in [
        "ok       slack acme: a delivery signed like Slack's is taken at http://127.0.0.1",
        "ok       slack:acme:#releases: is C0RELEASES",
        "ok       slack acme: app A",
        "ok       runtime prod: agent release, JSONRPC at http://127.0.0.1",
        "ok       runtime prod: 0 waiting on the first page",
        "ok       runtime prod: takes the credential of answers",
    ] {
        assert!(out.contains(line), "{line}: {out}");
    }
    assert!(out.contains("route[1].approvers"), "the route without approvers is warned of: {out}");

    story.advance(Duration::from_mins(20));
    let (code, out, _) = run(&story, &["check"]).await;
    assert_eq!(code, 1, "{out}");
    assert!(out.contains("refuses our own signature"), "the service's clock is another: {out}");

    story.slack.scope(token, "usergroups:read", false);
    story.slack.scope(token, "channels:history", false);
    let (_, out) = lines().await;
    assert!(out.contains("warning  slack acme: without the scope usergroups:read, user groups"), "{out}");
    assert!(out.contains("without the scope channels:history, a post whose answer was lost"), "{out}");
    story.slack.scope(token, "chat:write", false);
    let (code, out) = lines().await;
    assert_eq!(code, 1);
    assert!(out.contains("error    slack acme: the scope chat:write is missing"), "{out}");
    story.slack.scope(token, "chat:write", true);

    story.a2a.set_auth(vec![], std::collections::BTreeMap::new());
    let (code, out) = lines().await;
    assert_eq!(code, 1);
    assert!(out.contains("error    runtime prod: the runtime refuses our credentials"), "{out}");
    story.a2a.set_card(
        "release",
        countersign::sandbox::a2a::CardSpec {
            interfaces: Some(serde_json::json!([{"url": "https://elsewhere.example/a2a",
            "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}])),
            ..countersign::sandbox::a2a::CardSpec::default()
        },
    );
    let (_, out) = lines().await;
    assert!(out.contains("allow_origins"), "{out}");

    story.slack.token(token, countersign::sandbox::slack::TokenState::Revoked);
    let (code, out) = lines().await;
    assert_eq!(code, 1);
    assert!(out.contains("error    slack acme: the bot token is refused"), "{out}");
    let (_, out, _) = run(&story, &["check", "--json"]).await;
    let found: Value = serde_json::from_str(&out).unwrap();
    let refused = found.as_array().unwrap().iter().find(|line| line["about"] == "slack acme").unwrap();
    assert_eq!(refused["severity"], "error");
    assert!(refused["fix"].is_string());
    story.end().await;
}

/// What one look of `check` says at a clock that is so much ahead: its exit code and lines.
async fn looks(story: &Story, ahead: Duration) -> (i32, Vec<String>) {
    story.at_the_machines_time();
    story.advance(ahead);
    let (code, out, err) = run(story, &["check"]).await;
    (code, (out + &err).lines().map(str::to_owned).collect())
}

/// The line about something.
fn line<'a>(lines: &'a [String], about: &str) -> &'a str {
    lines
        .iter()
        .find(|line| line.contains(about))
        .unwrap_or_else(|| panic!("nothing about {about}: {lines:#?}"))
}

/// Channels that are archived, were never entered, are private, or are none. Nobody has to ask twice because Slack
/// takes only so many questions a minute.
#[rstest]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn check_looks_at_channels(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let places = r#"
[[person]]
subject = "dana@example.com"
slack = ["acme:U0DANA"]

[[group]]
name = "release"
subjects = ["dana@example.com"]

[[route]]
when = { runtime = "prod" }
to = ["slack:acme:C0RELEASES", "slack:acme:C0ARCHIVED", "slack:acme:C0NOBOT", "slack:acme:C0SECRET"]
fallback = ["slack:acme:#old", "slack:acme:#nowhere"]
approvers = ["release"]
"#;
    let story = Story::with(on, Wants { people_and_routes: places, ..Wants::default() }).await;
    // Its clock stands while the command waits for its turn.
    story.slack.pace(0);
    let (code, lines) = looks(&story, Duration::ZERO).await;
    assert_eq!(code, 1, "{lines:#?}");
    for told in [
        "ok       slack:acme:C0RELEASES: is C0RELEASES",
        "error    slack:acme:C0ARCHIVED: is C0ARCHIVED, which is archived; unarchive it, or name another place",
        "error    slack:acme:C0NOBOT: is C0NOBOT, in which the app is no member; \
         invite the app there: `/invite @Countersign`",
        "error    slack:acme:#old: no channel has this name (archived ones and private ones without the app are \
         not seen); mend the name, or invite the app there",
    ] {
        assert!(lines.iter().any(|line| line == told), "{told}: {lines:#?}");
    }
    for place in ["slack:acme:C0SECRET:", "slack:acme:#nowhere:"] {
        assert!(line(&lines, place).starts_with("error    "), "{lines:#?}");
    }

    // A right to post everywhere is not the right to look for lost posts; let in, it is well.
    let token = countersign::sandbox::slack::acme::BOT_TOKEN;
    story.slack.scope(token, "chat:write.public", true);
    story.slack.unarchive("C0ARCHIVED");
    story.slack.edit_channel("C0ARCHIVED", |channel| {
        channel.members.insert("U0BOT".into());
    });
    let (_, lines) = looks(&story, Duration::ZERO).await;
    assert!(line(&lines, "slack:acme:C0NOBOT:").starts_with("warning  "), "{lines:#?}");
    for place in ["slack:acme:C0ARCHIVED:", "slack:acme:#old:"] {
        assert_eq!(line(&lines, place), format!("ok       {place} is C0ARCHIVED"), "{lines:#?}");
    }

    // A scope that is missing is said, and is no refusal of the place.
    story.slack.scope(token, "channels:read", false);
    let (_, lines) = looks(&story, Duration::ZERO).await;
    let unread = line(&lines, "slack:acme:C0RELEASES:");
    assert!(unread.starts_with("warning  ") && unread.ends_with("; grant channels:read"), "{unread}");
    story.end().await;
}

/// Slack bears five minutes, a token of ours thirty seconds.
#[rstest]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn check_looks_at_clocks(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let story = Story::begin(on).await;
    story.slack.pace(0);
    for (ahead, slack, runtime) in
        [(0, "ok ", "ok "), (24, "ok ", "warning "), (120, "warning ", "error "), (400, "error ", "error ")]
    {
        let (code, lines) = looks(&story, Duration::from_secs(ahead)).await;
        for (about, severity, whose) in [
            ("slack acme: this machine's clock", slack, "Slack's"),
            ("runtime prod: this machine's clock", runtime, "the runtime's"),
        ] {
            let said = line(&lines, about);
            assert!(said.starts_with(severity), "{ahead} s: {said}");
            let words = if severity == "ok " { "agrees with" } else { "s behind" };
            assert!(said.contains(&format!("{words} {whose}")), "{ahead} s: {said}");
            let fix = said.ends_with("let a time service set this machine's clock");
            assert_eq!(fix, severity != "ok ", "{said}");
        }
        assert!(ahead < 30 || code == 1, "{lines:#?}");
    }
    story.end().await;
}

/// A test card is posted by the service, takes a click of a linked person only, and reaches no runtime.
#[rstest]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_test_card_and_a_real_click(
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
    #[values(("Approve", "approved"), ("Deny", "denied"))] (button, word): (&str, &str),
) {
    let story = Story::begin(on).await;
    story.at_the_machines_time();
    let work = async {
        loop {
            story.at_the_machines_time();
            story.deliver().await;
            if let Some(card) = story.slack.cards("C0OPS").last().cloned() {
                break card;
            }
            tokio::task::yield_now().await;
        }
    };
    let press = async {
        let card = work.await;
        assert!(story.reads(&card).contains("this is a test"), "{}", story.reads(&card));
        assert_eq!(run(&story, &["open"]).await.1, "nothing is open\n", "it is no work for anybody");
        // Nobody knows Sam; that is no end of the test.
        story.presses("U0SAM", &card, button).await;
        story.deliver().await;
        assert_eq!(story.told("U0SAM").len(), 1);
        story.presses("U0KIM", &card, button).await;
        story.deliver().await;
        card
    };
    let words = ["try", "slack:acme:C0OPS", "--patience", "60"];
    let ((code, out, err), card) = tokio::join!(run(&story, &words), press);
    assert_eq!(code, 0, "{out}{err}");
    assert!(out.contains(&format!("{word} by kim@example.com")), "{out}");
    story.deliver().await;
    assert!(story.reads(&card).contains(&format!("{word} by")), "{}", story.reads(&card));
    assert!(story.buttons(&card).is_empty());
    assert!(story.a2a.requests().is_empty(), "no runtime hears of it");
    assert_eq!(story.alert_keys().await, [] as [&str; 0]);
    story.end().await;
}

/// Nobody presses, or no service runs: 1, said so, and the test is ended.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_test_card_that_nobody_presses() {
    let story = Story::begin(Backend::Sqlite).await;
    for place in ["nowhere", "slack:other:#ops"] {
        assert_eq!(run(&story, &["try", place]).await.0, 2, "{place}");
    }
    let (code, _, err) = run(&story, &["try", "slack:acme:C0OPS", "--patience", "1"]).await;
    assert_eq!(code, 1);
    assert!(err.contains("could not be posted in time"), "{err}");
    story.at_the_machines_time();
    story.deliver().await;
    assert!(story.slack.cards("C0OPS").is_empty(), "an ended test is not posted any more");
    let (code, _, err) = run(&story, &["try", "slack:acme:C0OPS"]).await;
    assert_eq!(code, 1);
    assert!(err.contains("no service has taken it"), "{err}");
    story.end().await;
}

/// The manifest says how clicks arrive, as the configuration does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_manifest_of_the_slack_app() {
    let story = Story::begin(Backend::Sqlite).await;
    let (code, out, err) = run(&story, &["slack", "manifest"]).await;
    assert_eq!(code, 0, "{err}");
    let made: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        made["settings"]["interactivity"]["request_url"],
        format!("http://{}/slack/interactivity", story.address)
    );
    assert_eq!(run(&story, &["slack", "manifest", "acme"]).await.1, out);
    let (code, _, err) = run(&story, &["slack", "manifest", "other"]).await;
    assert_eq!(code, 2);
    assert!(err.contains("there are: acme"), "{err}");
    story.end().await;
}

/// The incident stop from another process; unknown names are usage errors.
#[rstest]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_are_paused_and_resumed(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let story = Story::begin(on).await;
    for command in ["pause", "resume"] {
        let (code, _, err) = run(&story, &[command, "nobody"]).await;
        assert_eq!(code, 2, "{err}");
    }
    let (code, out, _) = run(&story, &["resume"]).await;
    assert_eq!((code, out.as_str()), (0, "answers to every runtime were not paused\n"));
    let (ask, card) = story.asked("deploy_service").await;
    let (code, out, err) = run(&story, &["pause", "prod"]).await;
    assert_eq!((code, out.as_str()), (0, "answers to runtime prod are paused; clicks are kept\n"), "{err}");
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver().await;
    assert_eq!(story.recorded(&ask), []);
    let (_, out, _) = run(&story, &["open"]).await;
    assert!(out.contains("answers to prod are paused since") && out.contains(", paused  "), "{out}");
    let (_, out, _) = run(&story, &["open", "--json"]).await;
    let open: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(open[0]["paused"], true);
    let (code, out, _) = run(&story, &["pause"]).await;
    assert_eq!(code, 0);
    assert!(out.starts_with("answers to every runtime are paused"), "{out}");
    assert!(out.contains("1 were given before and wait"), "{out}");
    assert!(run(&story, &["pause"]).await.1.contains("already paused"));
    let (code, _, err) = run(&story, &["resume", "prod"]).await;
    assert_eq!(code, 1, "every runtime still is");
    assert!(err.contains("without a name"), "{err}");
    let (code, out, _) = run(&story, &["resume"]).await;
    assert_eq!((code, out.as_str()), (0, "answers to every runtime are sent again; 1 waited\n"));
    story.pass(Duration::from_secs(31)).await;
    assert_eq!(story.recorded(&ask).len(), 1);
    story.end().await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_outbox_can_be_looked_at_and_an_answer_is_never_dropped(
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
) {
    let story = Story::begin(on).await;
    assert_eq!(run(&story, &["jobs", "list"]).await.1, "nothing waits\n");
    let (ask, card) = story.asked("deploy_service").await;
    story.presses("U0DANA", &card, "Approve").await;
    story.deliver_only(&[countersign::store::jobs::JobKind::Decide]).await;
    let (_, out, _) = run(&story, &["jobs", "list", "--json"]).await;
    let jobs: Value = serde_json::from_str(&out).unwrap();
    let answer =
        jobs.as_array().unwrap().iter().find(|job| job["kind"] == "answer").unwrap()["id"].to_string();
    let (code, _, err) = run(&story, &["jobs", "drop", &answer]).await;
    assert_eq!(code, 1);
    assert!(err.contains("never dropped"), "{err}");
    story.pass(Duration::from_secs(3)).await;
    assert_eq!(story.recorded(&ask).len(), 1);
    // A private notice may be tried again, or dropped.
    story.presses("U0SAM", &story.asked("both").await.1, "Approve").await;
    story.deliver_only(&[countersign::store::jobs::JobKind::Decide]).await;
    let (_, out, _) = run(&story, &["jobs", "list", "--json"]).await;
    let jobs: Value = serde_json::from_str(&out).unwrap();
    let notice =
        jobs.as_array().unwrap().iter().find(|job| job["kind"] == "notice").unwrap()["id"].to_string();
    assert_eq!(run(&story, &["jobs", "retry", &notice]).await.0, 0);
    assert_eq!(run(&story, &["jobs", "retry", "999999"]).await.0, 1);
    assert_eq!(run(&story, &["jobs", "drop", &notice]).await.0, 0);
    assert_eq!(run(&story, &["jobs", "drop", &notice]).await.0, 1);
    story.deliver().await;
    assert_eq!(story.told("U0SAM").len(), 0);
    story.end().await;
}

/// Faulty configuration: everything at once, each with its key and the fix; exit code 2.
#[test]
fn a_faulty_configuration_is_reported_whole() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("countersign.toml");
    std::fs::write(
        &file,
        r#"
[server]
listen = "nowhere"
[database]
url = "mysql://x"
[[slack]]
name = "acme"
bot_token = { env = "MISSING" }
signing_secret = { env = "SIGNING" }
pace = 3
[[route]]
to = ["slack:other:#ops"]
approvers = ["nobody"]
"#,
    )
    .unwrap();
    for command in [&["run"][..], &["check"], &["open"], &["migrate"], &["jobs", "list"]] {
        let output = binary(command, &file).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{command:?}");
        let said =
            String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
        for key in [
            "server.listen",
            "database.url",
            "slack[0].bot_token",
            "slack[0].pace",
            "route[0].to",
            "route[0].approvers",
        ] {
            assert!(said.contains(key), "{command:?} does not name {key}: {said}");
        }
    }
    let missing = binary(&["run"], &folder.path().join("none.toml")).output().unwrap();
    assert_eq!(missing.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("none.toml"));
}

#[test]
fn usage_errors_end_with_two_and_help_with_zero() {
    let code = |words: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_countersign")).args(words).output().unwrap().status.code().unwrap()
    };
    assert_eq!(code(&["--help"]), 0);
    assert_eq!(code(&["--version"]), 0);
    assert_eq!(code(&[]), 2);
    assert_eq!(code(&["fly"]), 2);
    assert_eq!(code(&["explain"]), 2);
    assert_eq!(code(&["explain", "x", "--as", "host"]), 2, "`host` names no person");
    assert_eq!(code(&["audit", "verify", "--head", "x"]), 2);
    assert_eq!(code(&["demo", "--listen", "0.0.0.0:0"]), 1, "the demo is for this machine only");
}

/// The printed example loads, and the printed schema is JSON.
#[test]
fn the_example_and_the_schema_are_printed() {
    let print = |what: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_countersign")).args(["config", what]).output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(print("example"), countersign::config::example());
    let schema: Value = serde_json::from_str(&print("schema")).unwrap();
    assert!(schema["properties"]["route"].is_object());
}

/// One `run` or `migrate` holds a SQLite file; a second one refuses to start, the other commands work beside it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sqlite_file_has_one_owner() {
    let story = Story::begin(Backend::Sqlite).await;
    let file = story.config_file();
    let database = story.database_url().trim_start_matches("sqlite://").to_owned();
    let lock = std::fs::File::create(format!("{database}.lock")).unwrap();
    lock.lock().unwrap();
    for command in ["run", "migrate"] {
        let mut command = binary(&[command], &file);
        let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(String::from_utf8_lossy(&output.stderr).contains("another countersign holds"));
    }
    assert_eq!(run(&story, &["open"]).await.0, 0);
    drop(lock);
    assert_eq!(run(&story, &["migrate"]).await.0, 0);
    assert_eq!(run(&story, &["keys", "list"]).await.0, 0);
    let (code, keys, _) = run(&story, &["keys", "rotate"]).await;
    assert_eq!((code, keys.lines().count()), (0, 2));
    story.end().await;
}

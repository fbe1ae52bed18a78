//! Faulty configurations: each says which key, what is wrong and what to do.

use super::*;
use secrecy::ExposeSecret;
use std::time::Duration;

mod bad;
mod discord;
mod files;
mod refs;

const GOOD: &str = r#"
[server]
public_url = "https://cs.example"

[[runtime]]
name = "prod"
kind = "a2a"
endpoint = "https://agents.example/a2a"
token = { env = "TOKEN" }
answer_with = "jwt"
audience = "prod-agents"

[[slack]]
name = "acme"
bot_token = { env = "BOT" }
signing_secret = { env = "SIGNING" }

[[group]]
name = "release"
subjects = ["dana@example.com"]

[[person]]
subject = "dana@example.com"
slack = ["acme:U0DANA"]

[[route]]
when = { runtime = "prod" }
to = ["slack:acme:#releases"]
approvers = ["release"]
"#;

fn env(name: &str) -> Option<String> {
    let value = match name {
        "BOT" => "xoxb-sesame",
        "APP" => "xapp-sesame",
        "EMPTY" => "\n",
        "TWO_LINES" => "sesame\nsesame",
        "MISSING" => return None,
        _ => "sesame-sesame-sesame",
    };
    Some(value.to_owned())
}

fn parse(text: &str) -> Config {
    Config::parse(text, &env).unwrap_or_else(|findings| panic!("{findings}"))
}

/// The good configuration with one piece of text replaced.
fn with(from: &str, to: &str) -> String {
    assert_eq!(GOOD.matches(from).count(), 1, "`{from}` has to stand once in the good configuration");
    GOOD.replace(from, to)
}

fn findings(text: &str) -> String {
    Config::parse(text, &env).expect_err("this configuration is faulty").to_string()
}

fn warnings(text: &str) -> Vec<String> {
    parse(text).warnings().iter().map(ToString::to_string).collect()
}

#[test]
fn the_good_configuration_has_the_defaults_and_no_warning() {
    let config = parse(GOOD);
    assert_eq!(config.warnings(), []);
    assert_eq!(config.server.listen.to_string(), "127.0.0.1:8080");
    assert!(config.server.admin_listen.is_none() && config.server.operator_token.is_none());
    assert_eq!(config.signing.key_file, Path::new("countersign.key"));
    assert_eq!(
        (config.signing.alg, config.signing.publish_ahead),
        (Algorithm::Es256, Duration::from_mins(11))
    );
    assert_eq!(config.database.url.expose(), "sqlite://countersign.db");
    assert_eq!(config.policy, Policy::default());
    assert_eq!(config.templates, Templates { language: "en".into(), dir: None });
    let runtime = &config.runtimes[0];
    let jwt = AnswerWith::Jwt { issuer: "https://cs.example".into(), audience: "prod-agents".into() };
    assert_eq!(runtime.answer_with, jwt);
    assert_eq!((runtime.poll, runtime.dedupe, runtime.plain_http), (Duration::from_secs(10), true, false));
    assert_eq!(
        (runtime.scopes.as_slice(), &runtime.watch_as),
        (["sessions:own".to_owned()].as_slice(), &WatchAs::Credential)
    );
    let slack = &config.slack[0];
    assert_eq!(slack.api_url, SLACK_API);
    assert!(matches!(slack.inbound, SlackInbound::Http { previous: None, .. }));
    assert_eq!(slack.bot_token.expose_secret(), "xoxb-sesame");
    let route = &config.routes[0];
    assert_eq!((route.approvals, route.self_approval, route.fallback.len()), (1, true, 0));
    assert!(!route.confirm && !route.reason_on_deny);
    assert!(config.signs());
}

#[test]
fn every_fault_is_reported_at_once() {
    let text = r#"
        colour = "red"
        [server]
        listen = "localhost"
        public_url = 5
        lisen = "x"
        [signing]
        alg = "RS256"
        publish_ahead = "5"
        [[runtime]]
        name = "prod"
        kind = "bma"
        endpoint = "http://agents.example"
        token = "sesame"
        answer_with = "none"
        [[runtime]]
        name = "prod"
        kind = "a2a"
        [[slack]]
        name = "acme"
        bot_token = { env = "MISSING" }
        app_token = { env = "SIGNING" }
        pace = 4
        [[route]]
        when = { runtime = "prod", tol = "x", agent = 5 }
        to = ["slack:guild:#x", "dm:nobody"]
        approvers = ["nobody"]
        approvals = "two"
    "#;
    insta::assert_snapshot!(findings(text), @r#"
    server.lisen: is not a known key; did you mean `listen`?
    server.public_url: invalid type: integer `5`, expected a text in quotes; write it like `public_url = "https://countersign.example.com"`
    server.listen: `localhost` is no listening address; write an IP address and a port: "127.0.0.1:8080"
    signing.alg: unknown variant `RS256`, expected `ES256` or `EdDSA`; write it like `alg = "ES256"`
    signing.publish_ahead: `5` is no duration; write a number with a unit: "30s", "5m", "1h 30m"
    runtime[0].token: a secret is never written in the file itself, but as { env = "NAME" } or { file = "path" }; write it like `token = { env = "PROD_A2A_TOKEN" }`
    runtime[0].kind: `bma` is not part of this version yet; this version has kind = "a2a" only
    runtime[0].endpoint: plain http is only for addresses of this machine; use https://, or say plain_http = true for this runtime
    runtime[0].answer_with: answering without a person is refused: this runtime can record who answered; write "jwt" or "subject_header"
    runtime[1].name: `prod` is also the name of runtime[0]; give each [[runtime]] its own name
    runtime[1].endpoint: is missing; add endpoint = "https://…" (the JSON-RPC address), or card_url
    runtime[1].answer_with: is missing; add answer_with = "jwt" or "subject_header"
    slack[0].bot_token: the environment variable MISSING is not set; set MISSING for this process, or use { file = "path" }
    slack[0].app_token: this is no app-level token; use a token of the app's page "Basic Information" with connections:write, xapp-…
    slack[0].pace: `4` is faster than Slack allows; write 1 or less; more is for an api_url on this machine
    route[0].when.tol: is not a known key; did you mean `tool`?
    route[0].approvals: invalid type: string "two", expected a whole number from 0 on; write it like `approvals = 1`
    route[0].when.agent: invalid type: integer `5`, expected a text in quotes; write it like `when = { runtime = "prod", agent = "release*", kind = "approval", server = "ci", tool = "deploy_*" }`
    route[0].to[0]: no [[slack]] is named `guild`; use one of: acme; or add a [[slack]] with this name
    route[0].to[1]: no [[group]] is named `nobody`; add a [[group]] with this name
    route[0].approvers[0]: no [[group]] is named `nobody`; add a [[group]] with this name; "owner" is the person the agent works for
    colour: is not a known key; remove it; known here: alerts, database, discord, group, person, policy, route, runtime, server, signing, slack, templates
    "#);
}

#[test]
fn a_syntax_error_comes_alone_with_its_place_and_without_the_text() {
    let text = format!("{GOOD}\ncolour = \"red\"\nbot_token = sesame");
    let found = findings(&text);
    assert!(found.starts_with("line 32, column 13: this is not TOML: "), "{found}");
    assert!(!found.contains("sesame") && found.lines().count() == 1, "{found}");
}

#[test]
fn nothing_printed_holds_a_secret() {
    let text = with("audience = \"prod-agents\"", "audience = \"a\"\nheaders = { X-Key = { env = \"KEY\" }, X-Tenant = \"acme\" }")
        .replace("[server]", "[database]\nurl = \"postgres://cs:hidden-word@db.example:5433/cs?password=hidden-word\"\n[server]\noperator_token = { env = \"OP\" }");
    let config = parse(&text);
    assert!(config.database.url.expose().contains("hidden-word"));
    let shown = format!("{config:?} {config:#?} {}", config.database.url);
    assert!(!shown.contains("sesame") && !shown.contains("hidden-word"), "{shown}");
    assert!(shown.contains("postgres://db.example:5433/cs"), "{shown}");
    // A value written where a reference belongs is not repeated either.
    for value in ["\"sesame\"", "{ env = 5, sesame = 1 }", "[\"sesame\"]", "{ value = \"sesame\" }"] {
        let found = findings(&with("{ env = \"SIGNING\" }", value));
        assert!(found.starts_with("slack[0].signing_secret: a secret is "), "{found}");
        assert!(!found.contains("sesame"), "{found}");
    }
    for url in ["mysql://cs:hidden-word@db/cs", "postgres://cs:hidden-word@db", "hidden-word"] {
        let found = findings(&format!("[database]\nurl = \"{url}\"\n{GOOD}"));
        assert!(found.starts_with("database.url: ") && !found.contains("hidden-word"), "{found}");
    }
}

#[test]
fn doubtful_things_are_warnings() {
    let approvers = "approvers = [\"release\"]";
    let cases = [
        (
            with(approvers, ""),
            "route[0].approvers: the route names no approvers: nobody may answer what it posts; add the names of groups, or \"owner\"",
        ),
        (
            with(approvers, "approvers = [\"release\"]\napprovals = 2"),
            "route[0].approvals: 2 approvals are needed, but the approvers are 1 in all; add people to the groups, or lower approvals",
        ),
        (
            with("runtime = \"prod\"", "runtime = \"test*\""),
            "route[0].when.runtime: `test*` matches no [[runtime]]; use one of: prod; or add a [[runtime]] that it matches",
        ),
        (
            with("subjects = [\"dana@example.com\"]", ""),
            "group[0]: the group has no members; add `subjects`, `slack_usergroups` or `discord_roles`",
        ),
        (
            with("slack = [\"acme:U0DANA\"]", ""),
            "person[0]: the person has no chat account; add slack = [\"<name>:U…\"] or discord = [\"<user id>\"]",
        ),
        (
            with("token = { env = \"TOKEN\" }", ""),
            "runtime[0]: neither `token` nor `watch_as` is given: only tasks registered by the operator API are seen; add token = { env = \"NAME\" }, or watch_as",
        ),
        (
            format!("[signing]\npublish_ahead = \"1m\"{GOOD}"),
            "signing.publish_ahead: a runtime may not yet have fetched a key that signs so soon; write at least \"11m\"",
        ),
        (
            with("[server]", "[server]\noperator_token = { env = \"BOT\" }"),
            "server.operator_token: the token has fewer than 16 characters and can be guessed; use a random one, such as the output of `openssl rand -hex 32`",
        ),
        (
            with("public_url = \"https://cs.example\"", "")
                .replace("audience =", "issuer = \"https://cs.example\"\naudience ="),
            "server.public_url: is missing: runtimes cannot fetch the keys of our tokens from here; add it, or give the runtimes the public keys by hand",
        ),
        (
            format!(
                "{GOOD}[[route]]\nto = [\"slack:acme:#x\"]\napprovers = [\"release\"]\nwhen = {{ runtime = \"prod\", tool = \"x\" }}"
            ),
            "route[1]: route[0] matches everything that this route does: it is never used; move it before route[0], or remove it",
        ),
        (
            with("runtime = \"prod\"", "runtime = \"other*\"").replace("\"other*\"", "\"p*x\""),
            "runtime[0]: no route is for `prod`: nothing of it is posted; add a [[route]], or widen the `when` of one",
        ),
    ];
    for (text, warning) in cases {
        let found = warnings(&text);
        assert!(found.iter().any(|line| line == warning), "{warning}\nnot in {found:#?}");
    }
    let empty = warnings("");
    assert_eq!(empty.len(), 4, "{empty:#?}");
}

#[test]
fn an_approval_without_a_tool_must_not_fall_to_a_weaker_route_unnoticed() {
    let strict =
        "approvers = [\"release\"]\napprovals = 2\nwhen = { runtime = \"prod\", tool = \"deploy_*\" }";
    let falls = |later: &str| {
        let text = with("when = { runtime = \"prod\" }", "")
            .replace(
                "approvers = [\"release\"]",
                &format!("{strict}\n[[route]]\nto = [\"slack:acme:#x\"]\n{later}"),
            )
            .replace("[\"dana@example.com\"]", "[\"dana@example.com\", \"lee@example.com\"]");
        warnings(&text)
    };
    let found = falls("approvers = [\"release\"]");
    assert!(found.len() == 1 && found[0].starts_with("route[0].when.tool: "), "{found:#?}");
    assert!(found[0].contains("falls to route[1]"), "{found:#?}");
    assert_eq!(falls("approvers = [\"release\", \"owner\"]\napprovals = 2").len(), 1);
    // As strict, or for something else: nothing to say.
    let none: Vec<String> = Vec::new();
    assert_eq!(falls("approvers = [\"release\"]\napprovals = 2"), none);
    assert_eq!(falls("approvers = [\"release\"]\nwhen = { kind = \"question\" }"), none);
}

/// Either secret says how clicks arrive; with both, `inbound` does.
#[test]
fn socket_mode_needs_the_app_token_only() {
    let signing = "signing_secret = { env = \"SIGNING\" }";
    let app = "app_token = { env = \"APP\" }";
    for text in [
        with(signing, app),
        with(signing, &format!("{app}\ninbound = \"socket\"")),
        with(signing, &format!("{app}\n{signing}\ninbound = \"socket\"")),
    ] {
        let SlackInbound::Socket { app_token } = &parse(&text).slack[0].inbound else { panic!("{text}") };
        assert_eq!(app_token.expose_secret(), "xapp-sesame");
    }
    let both = parse(&with(signing, &format!("{app}\n{signing}\ninbound = \"http\"")));
    assert!(matches!(both.slack[0].inbound, SlackInbound::Http { .. }));
}

//! Faults of runtimes, installs, people and routes, and of what they say of each other.

use super::bad::*;
use super::*;

#[test]
fn runtimes() {
    let both = format!("{ENDPOINT}\ncard_url = \"https://agents.example/card\"");
    let header = "answer_with = \"subject_header\"";
    all(&[
        (
            "kind = \"a2a\"",
            "kind = \"bma\"",
            "runtime[0].kind: `bma` is not part of this version yet; this version has kind = \"a2a\" only",
        ),
        (
            "kind = \"a2a\"",
            "kind = \"mcp\"",
            "runtime[0].kind: `mcp` is no kind of runtime; write kind = \"a2a\"",
        ),
        (
            "name = \"prod\"",
            "name = \"p:d\"",
            "runtime[0].name: `p:d` is no name; use 1 to 64 letters, digits, `-`, `_` and `.`\nroute[0].when.runtime: no [[runtime]] is named `prod`; use one of: p:d; or add a [[runtime]] with this name",
        ),
        (
            ENDPOINT,
            &both,
            "runtime[0].card_url: `endpoint` and `card_url` are both given; keep the one that leads to the agent: with `card_url` the agent card decides",
        ),
        (
            ENDPOINT,
            "endpoint = \"http://agents.example\"",
            "runtime[0].endpoint: plain http is only for addresses of this machine; use https://, or say plain_http = true for this runtime",
        ),
        (
            ENDPOINT,
            "endpoint = \"https://me:pw@agents.example\"",
            "runtime[0].endpoint: the address contains a user name or password; leave them out; credentials have keys of their own",
        ),
        (
            ENDPOINT,
            "card_url = \"ftp://agents.example\"",
            "runtime[0].card_url: `ftp:` is not spoken here; write an https:// address",
        ),
        (
            TOKEN,
            "allow_origins = [\"https://other.example/a2a\"]",
            "runtime[0].allow_origins[0]: `https://other.example/a2a` is more than an origin; write \"https://other.example\"",
        ),
        (
            ANSWER,
            "answer_with = \"none\"",
            "runtime[0].answer_with: answering without a person is refused: this runtime can record who answered; write \"jwt\" or \"subject_header\"",
        ),
        (
            ANSWER,
            "answer_with = \"actor\"",
            "runtime[0].answer_with: `actor` is not spoken by an a2a runtime; write \"jwt\" or \"subject_header\"",
        ),
        (
            ANSWER,
            "answer_with = \"magic\"",
            "runtime[0].answer_with: `magic` is no way to answer; write \"jwt\" or \"subject_header\"",
        ),
        (AUDIENCE, "audience = \" \"", "runtime[0].audience: is empty; write a text, or leave the key out"),
        (
            AUDIENCE,
            "audience = \"a\"\nissuer = \"http://cs.example\"",
            "runtime[0].issuer: plain http is only for addresses of this machine; use https://, or say plain_http = true for this runtime",
        ),
        (
            TOKEN,
            "poll = \"5\"",
            "runtime[0].poll: `5` is no duration; write a number with a unit: \"30s\", \"5m\", \"1h 30m\"",
        ),
        (
            TOKEN,
            "poll = \"100ms\"",
            "runtime[0].poll: less than a second is only for a runtime on this machine; write \"5s\" or more",
        ),
        (
            TOKEN,
            "scopes = [\"a b\"]",
            "runtime[0].scopes[0]: `a b` is no scope; write one scope per element, without spaces: [\"sessions:own\"]",
        ),
        (
            TOKEN,
            "watch_as = \"everybody\"",
            "runtime[0].watch_as: expected a list of subjects, or \"linked\"; write it like `watch_as = [\"dana@example.com\"]`",
        ),
        (
            TOKEN,
            "watch_as = []",
            "runtime[0].watch_as: the list is empty; name subjects, write \"linked\", or leave the key out to watch with the token alone",
        ),
        (
            TOKEN,
            "watch_as = [\"host\"]",
            "runtime[0].watch_as[0]: `host` and `installation` are reserved and name no person; write the identity by which the runtime knows the person",
        ),
        (
            TOKEN,
            "details_url = \"https://x.example/{task}\"",
            "runtime[0].details_url: `{task}` is no placeholder; use {taskId}, {contextId} and {interactionId}",
        ),
        (
            TOKEN,
            "details_url = \"https://x.example/{taskId\"",
            "runtime[0].details_url: a `{` or `}` stands alone; write placeholders as {taskId}, {contextId} or {interactionId}",
        ),
        (
            TOKEN,
            "details_url = \"https://{taskId}.example/\"",
            "runtime[0].details_url: a placeholder stands in the host; use placeholders after the host only",
        ),
        (
            TOKEN,
            "details_url = \"javascript:alert(1)\"",
            "runtime[0].details_url: `javascript:` is not spoken here; write an https:// address",
        ),
        (
            TOKEN,
            "headers = { authorization = \"x\" }",
            "runtime[0].headers.authorization: `Authorization` is set by Countersign; use `token` for the credential",
        ),
        (
            TOKEN,
            "headers = { Nylorun-Scopes = \"x\" }",
            "runtime[0].headers.Nylorun-Scopes: `Nylorun-Scopes` is set by Countersign; remove it here",
        ),
        (
            TOKEN,
            "headers = { A2A-Version = \"1.0\" }",
            "runtime[0].headers.A2A-Version: `A2A-Version` is set by Countersign; remove it here",
        ),
        (
            TOKEN,
            "headers = { \"X Y\" = \"1.0\" }",
            "runtime[0].headers.X Y: `X Y` is no header name; use letters, digits and `-`",
        ),
        (
            TOKEN,
            "headers = { X-Y = \"a\\nb\" }",
            "runtime[0].headers.X-Y: the value contains a character that no header may have; use visible ASCII characters and spaces, on one line",
        ),
        (
            TOKEN,
            "headers = { X-Y = \"a\", x-y = \"b\" }",
            "runtime[0].headers.x-y: `x-y` is given twice; remove one of the two",
        ),
        (
            TOKEN,
            "headers = { X-Y = { env = \"MISSING\" } }",
            "runtime[0].headers.X-Y: the environment variable MISSING is not set; set MISSING for this process, or use { file = \"path\" }",
        ),
    ]);
    let with_header = |more: &str| GOOD.replace(AUDIENCE, more).replace(ANSWER, header);
    for (more, said) in [
        (
            "subject_header = \"Authorization\"",
            "runtime[0].subject_header: `Authorization` has another meaning; choose a header of its own, such as \"Nylorun-Subject\"",
        ),
        (
            "subject_header = \"a b\"",
            "runtime[0].subject_header: `a b` is no header name; use letters, digits and `-`: \"Nylorun-Subject\"",
        ),
        (
            "scopes = []",
            "runtime[0].scopes: the list is empty, but a subject header needs a scope; write scopes = [\"sessions:own\"], or leave the key out",
        ),
        (
            "subject_header = \"X-User\"\nheaders = { x-user = \"root\" }",
            "runtime[0].headers.x-user: `x-user` is set by Countersign; remove it here",
        ),
    ] {
        assert_eq!(findings(&with_header(more)), said);
    }
    assert_eq!(
        findings(&with_header("").replace(TOKEN, "")),
        "runtime[0].token: is missing; add the application key with which to answer: token = { env = \"NAME\" }"
    );
}

#[test]
fn names_and_audiences_are_given_once() {
    let second = |name: &str, audience: &str| {
        with(
            "[[slack]]",
            &format!(
                "[[runtime]]\nname = \"{name}\"\nkind = \"a2a\"\nanswer_with = \"jwt\"\nendpoint = \"https://b.example\"\n{TOKEN}\naudience = \"{audience}\"\n[[slack]]"
            ),
        )
    };
    parse(&second("test", "test-agents"));
    assert_eq!(
        findings(&second("prod", "test-agents")),
        "runtime[1].name: `prod` is also the name of runtime[0]; give each [[runtime]] its own name"
    );
    assert_eq!(
        findings(&second("test", "prod-agents")),
        "runtime[1].audience: `prod-agents` is also the audience of runtime[0]: each could use tokens meant for the other; give each runtime its own audience"
    );
    let again = |section: &str| findings(&format!("{GOOD}\n{section}"));
    assert_eq!(
        again(&format!("[[slack]]\nname = \"acme\"\n{BOT}\n{SIGNING}")),
        "slack[1].name: `acme` is also the name of slack[0]; give each [[slack]] its own name"
    );
    assert_eq!(
        again("[[group]]\nname = \"release\"\nsubjects = [\"lee\"]"),
        "group[1].name: `release` is also the name of group[0]; give each [[group]] its own name"
    );
    assert_eq!(
        again("[[person]]\nsubject = \"lee\"\nslack = [\"acme:U0DANA\"]"),
        "person[1].slack[0]: `acme:U0DANA` is also in person[0]; one chat account is one person; remove it from one of the two"
    );
    assert_eq!(
        again("[[person]]\nsubject = \"dana@example.com\"\nslack = [\"acme:U0OTHER\"]"),
        "person[1].subject: `dana@example.com` is also person[0]; list all accounts of a person in one [[person]]: move these to person[0]"
    );
}

#[test]
fn slack_installs() {
    all(&[
        (
            BOT,
            "bot_token = { env = \"BOT\" }\ninbound = \"socket\"",
            "slack[0].app_token: is missing; add app_token = { env = \"SLACK_APP_TOKEN\" }",
        ),
        (
            BOT,
            "bot_token = { env = \"BOT\" }\ninbound = \"pigeon\"",
            "slack[0].inbound: `pigeon` is no way in; write \"socket\" or \"http\"",
        ),
        (
            BOT,
            "bot_token = { env = \"BOT\" }\napp_token = { env = \"APP\" }",
            "slack[0].inbound: is missing: app_token and signing_secret are both given; write \"socket\" or \"http\"",
        ),
        (
            SIGNING,
            "app_token = { env = \"APP\" }\ninbound = \"http\"",
            "slack[0].signing_secret: is missing; add signing_secret = { env = \"SLACK_SIGNING_SECRET\" }, or for Socket Mode app_token = { env = \"SLACK_APP_TOKEN\" }",
        ),
        (
            SIGNING,
            "app_token = { env = \"BOT\" }",
            "slack[0].app_token: this is no app-level token; use a token of the app's page \"Basic Information\" with connections:write, xapp-…",
        ),
        (
            SIGNING,
            "app_token = { env = \"APP\" }\nprevious_signing_secret = { env = \"SIGNING\" }",
            "slack[0].previous_signing_secret: is of no use in Socket Mode; remove it",
        ),
        (
            BOT,
            "bot_token = { env = \"BOT\" }\napi_url = \"http://slack.example/api\"",
            "slack[0].api_url: plain http is only for addresses of this machine; use https://",
        ),
        (
            BOT,
            "bot_token = { env = \"BOT\" }\npace = 4",
            "slack[0].pace: `4` is faster than Slack allows; write 1 or less; more is for an api_url on this machine",
        ),
        (
            BOT,
            "bot_token = { env = \"BOT\" }\npace = 0",
            "slack[0].pace: `0` is no pace; write a number above 0; 1 is the usual pace",
        ),
        (
            BOT,
            "bot_token = { env = \"BOT\" }\npace = nan",
            "slack[0].pace: `NaN` is no pace; write a number above 0; 1 is the usual pace",
        ),
        (
            BOT,
            "bot_token = { env = \"BOT\" }\napp_id = \"B0BOT\"",
            "slack[0].app_id: `B0BOT` is no app id; write the App ID of the app's page: \"A0COUNTER\"",
        ),
    ]);
    // Addresses of this machine may be plain and fast; one slash at the end is taken off.
    let local = parse(&with(
        BOT,
        "bot_token = { env = \"BOT\" }\napi_url = \"http://127.0.0.1:9/api/\"\npace = 50.5",
    ));
    assert_eq!((local.slack[0].api_url.as_str(), local.slack[0].pace), ("http://127.0.0.1:9/api", 50.5));
}

#[test]
fn people() {
    all(&[
        (
            "name = \"release\"",
            "name = \"owner\"",
            "group[0].name: `owner` already means the person an agent works for; choose another name\nroute[0].approvers[0]: no [[group]] is named `release`; use one of: owner; or add a [[group]] with this name; \"owner\" is the person the agent works for",
        ),
        (
            MEMBERS,
            "subjects = [\"dana\", \"dana\"]",
            "group[0].subjects[1]: `dana` is named twice; remove one of the two",
        ),
        (
            MEMBERS,
            "subjects = [\"d\u{e4}na\"]",
            "group[0].subjects[0]: a subject has visible ASCII characters only, without a space at either end; write the identity by which the runtime knows the person",
        ),
        (
            MEMBERS,
            "slack_usergroups = [\"acme:C0X\"]",
            "group[0].slack_usergroups[0]: `acme:C0X` does not name a Slack user group; write the name of a [[slack]] and the id: \"acme:S0RELEASE\"",
        ),
        (
            MEMBERS,
            "slack_usergroups = [\"guild:S0X\"]",
            "group[0].slack_usergroups[0]: no [[slack]] is named `guild`; use one of: acme; or add a [[slack]] with this name",
        ),
        (
            ACCOUNTS,
            "slack = [\"guild:U0DANA\"]",
            "person[0].slack[0]: no [[slack]] is named `guild`; use one of: acme; or add a [[slack]] with this name",
        ),
        (
            ACCOUNTS,
            "slack = [\"acme:dana\"]",
            "person[0].slack[0]: `acme:dana` does not name a Slack user; write the name of a [[slack]] and the id: \"acme:U0DANA\"",
        ),
    ]);
}

#[test]
fn routes() {
    let place = |text: &str| format!("to = [\"{text}\"]");
    all(&[
        (
            WHEN,
            "when = { runtime = \"prdo\" }",
            "route[0].when.runtime: no [[runtime]] is named `prdo`; use one of: prod; or add a [[runtime]] with this name",
        ),
        (
            WHEN,
            "when = { kind = \"permission\" }",
            "route[0].when.kind: `permission` is no kind of interaction; write \"approval\", \"question\" or \"connection\"",
        ),
        (
            WHEN,
            "when = { kind = \"*tion\" }",
            "route[0].when.kind: `*tion` means two kinds of interaction; write one route for each kind, or `*` for all",
        ),
        (
            WHEN,
            "when = { tool = \"\" }",
            "route[0].when.tool: an empty pattern matches nothing; write a name or `*`, or leave the key out",
        ),
        (
            TO,
            &place("slack:guild:#x"),
            "route[0].to[0]: no [[slack]] is named `guild`; use one of: acme; or add a [[slack]] with this name",
        ),
        (
            TO,
            &place("#releases"),
            "route[0].to[0]: `#releases` is no place; write \"slack:<name>:#channel\", \"slack:<name>:C…\", \"slack:<name>:@U…\", \"discord:<name>:<channel id>\", \"discord:<name>:@<user id>\", \"dm:owner\" or \"dm:<group>\"",
        ),
        (
            TO,
            &place("slack:acme:#Releases"),
            "route[0].to[0]: `#Releases` cannot be the name of a Slack channel; write it as Slack shows it: lower case, without spaces",
        ),
        (
            TO,
            &place("slack:acme:@dana"),
            "route[0].to[0]: `slack:acme:@dana` is no place; write \"slack:<name>:#channel\", \"slack:<name>:C…\", \"slack:<name>:@U…\", \"discord:<name>:<channel id>\", \"discord:<name>:@<user id>\", \"dm:owner\" or \"dm:<group>\"",
        ),
        (
            TO,
            &place("slack:acme:@U0dana"),
            "route[0].to[0]: `slack:acme:@U0dana` names no user; write the id: \"@U0DANA\"",
        ),
        (
            TO,
            &place("slack:guild:@U0DANA"),
            "route[0].to[0]: no [[slack]] is named `guild`; use one of: acme; or add a [[slack]] with this name",
        ),
        (
            TO,
            &place("dm:relaese"),
            "route[0].to[0]: no [[group]] is named `relaese`; use one of: release; or add a [[group]] with this name",
        ),
        (
            TO,
            "to = [\"dm:owner\"]\nfallback = [\"dm:owner\"]",
            "route[0].fallback[0]: `dm:owner` is named twice in this route; remove one of the two",
        ),
        (
            TO,
            &place("discord:guild:44"),
            "route[0].to[0]: `discord:guild:44` is no place; write \"slack:<name>:#channel\", \"slack:<name>:C…\", \"slack:<name>:@U…\", \"discord:<name>:<channel id>\", \"discord:<name>:@<user id>\", \"dm:owner\" or \"dm:<group>\"",
        ),
        (
            TO,
            "to = [\"slack:acme:#x\"]\nfallback = [\"slack:acme:#x\"]",
            "route[0].fallback[0]: `slack:acme:#x` is named twice in this route; remove one of the two",
        ),
        (
            APPROVERS,
            "approvers = [\"release\"]\nmention = [\"owner\"]",
            "route[0].mention[0]: no [[group]] is named `owner`; use one of: release; or add a [[group]] with this name",
        ),
        (
            APPROVERS,
            "approvers = [\"release\"]\nmention = [\"release\", \"release\"]",
            "route[0].mention[1]: `release` is named twice; remove one of the two",
        ),
        (
            APPROVERS,
            "approvers = [\"release\"]\nthread_by = \"agent\"",
            "route[0].thread_by: `agent` gathers nothing; write \"context\", or leave the key out",
        ),
        (
            "[server]",
            "[policy]\nmax_open_per_place = 0\n[server]",
            "policy.max_open_per_place: no card at all could be posted; write 1 or more",
        ),
        (
            "[server]",
            "[alerts]\nto = [\"slack:acme:#Ops\"]\n[server]",
            "alerts.to[0]: `#Ops` cannot be the name of a Slack channel; write it as Slack shows it: lower case, without spaces",
        ),
        (
            "[server]",
            "[alerts]\nto = [\"dm:owner\"]\n[server]",
            "alerts.to[0]: an alert has no owner; name a channel, a person or a group",
        ),
        (
            APPROVERS,
            "approvers = [\"relaese\"]",
            "route[0].approvers[0]: no [[group]] is named `relaese`; use one of: release; or add a [[group]] with this name; \"owner\" is the person the agent works for",
        ),
        (
            APPROVERS,
            "approvers = [\"release\", \"release\"]",
            "route[0].approvers[1]: `release` is named twice; remove one of the two",
        ),
        (
            APPROVERS,
            "approvers = [\"release\"]\napprovals = 0",
            "route[0].approvals: no approval at all is not an approval; write 1 or more",
        ),
        (
            APPROVERS,
            "approvers = [\"owner\"]\nself_approval = false",
            "route[0].self_approval: only `owner` may approve here, and self_approval = false forbids it: nobody could; add a group to approvers, or remove self_approval",
        ),
    ]);
}

#[test]
fn what_is_said_is_also_honoured() {
    let text = with(TOKEN, &format!("{TOKEN}\nwatch_as = \"linked\"\nagent = \"rel\"\nallow_origins = [\"https://b.example:8443/\"]\nplain_http = true\ndedupe = false\npoll = \"1m 30s\"\nheaders = {{ X-B = {{ env = \"B\" }}, X-A = \"a b\" }}"))
        .replace(ENDPOINT, "card_url = \"http://agents.example/card\"")
        .replace(WHEN, "when = { runtime = \"*\", kind = \"*\", tool = \"deploy_*\" }\nself_approval = false\nconfirm = true\nreason_on_deny = true");
    let config = parse(&text);
    let runtime = &config.runtimes[0];
    assert_eq!(runtime.watch_as, WatchAs::Linked);
    assert_eq!(runtime.address, Address::Card("http://agents.example/card".parse().unwrap()));
    assert_eq!(
        (runtime.agent.as_deref(), runtime.dedupe, runtime.poll),
        (Some("rel"), false, Duration::from_secs(90))
    );
    assert_eq!(runtime.allow_origins, ["https://b.example:8443"]);
    let headers: Vec<(&str, &str)> =
        runtime.headers.iter().map(|header| (header.name.as_str(), header.value.expose_secret())).collect();
    assert_eq!(headers, [("X-A", "a b"), ("X-B", "sesame-sesame-sesame")]);
    let route = &config.routes[0];
    assert_eq!((&route.when.kind, route.self_approval), (&None, false));
    assert!(route.confirm && route.reason_on_deny);
    let header = GOOD.replace(ANSWER, "answer_with = \"subject_header\"\nsubject_header = \"X-User\"");
    assert_eq!(parse(&header).runtimes[0].answer_with, AnswerWith::SubjectHeader { header: "X-User".into() });
    assert!(!parse(&header).signs());
    assert_eq!(
        warnings(&header),
        ["runtime[0].audience: means nothing with answer_with = \"subject_header\"; remove it"]
    );
}

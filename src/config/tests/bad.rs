//! One faulty configuration per kind of fault, its whole message with key and fix: keys, types,
//! secrets and the sections that stand once.

use super::*;

/// Each case: what is replaced in the good configuration, by what, and everything that is said.
pub(super) fn all(cases: &[(&str, &str, &str)]) {
    for (from, to, said) in cases {
        assert_eq!(findings(&with(from, to)), *said, "after `{from}` became `{to}`");
    }
}

pub(super) const URL: &str = "public_url = \"https://cs.example\"";
pub(super) const ENDPOINT: &str = "endpoint = \"https://agents.example/a2a\"";
pub(super) const TOKEN: &str = "token = { env = \"TOKEN\" }";
pub(super) const ANSWER: &str = "answer_with = \"jwt\"";
pub(super) const AUDIENCE: &str = "audience = \"prod-agents\"";
pub(super) const BOT: &str = "bot_token = { env = \"BOT\" }";
pub(super) const SIGNING: &str = "signing_secret = { env = \"SIGNING\" }";
pub(super) const MEMBERS: &str = "subjects = [\"dana@example.com\"]";
pub(super) const ACCOUNTS: &str = "slack = [\"acme:U0DANA\"]";
pub(super) const WHEN: &str = "when = { runtime = \"prod\" }";
pub(super) const TO: &str = "to = [\"slack:acme:#releases\"]";
pub(super) const APPROVERS: &str = "approvers = [\"release\"]";

#[test]
fn unknown_keys() {
    all(&[
        (
            "[server]",
            "[server]\npublic_ulr = \"x\"",
            "server.public_ulr: is not a known key; did you mean `public_url`?",
        ),
        ("[server]", "[sever]\n[server]", "sever: is not a known key; did you mean `server`?"),
        (
            "[[slack]]",
            "[[slack]]\ncolour = 1",
            "slack[0].colour: is not a known key; remove it; known here: api_url, app_id, app_token, bot_token, inbound, name, pace, previous_signing_secret, signing_secret, subject",
        ),
        (
            WHEN,
            "when = { runtime = \"prod\", tol = \"x\" }",
            "route[0].when.tol: is not a known key; did you mean `tool`?",
        ),
    ]);
}

#[test]
fn keys_of_later_versions() {
    let later = |key: &str| format!("{key}: is not part of this version yet; remove it");
    for (from, to, key) in [
        ("[server]", "[oidc]\nissuer = \"x\"\n[server]", "oidc"),
        (TOKEN, "token = { env = \"TOKEN\" }\nquestion_part = \"auto\"", "runtime[0].question_part"),
        (
            TOKEN,
            "token = { env = \"TOKEN\" }\nconnect_pages = { github = \"x\" }",
            "runtime[0].connect_pages",
        ),
    ] {
        assert_eq!(findings(&with(from, to)), later(key));
    }
}

#[test]
fn wrong_types_and_shapes() {
    all(&[
        (
            URL,
            "public_url = 8080",
            "server.public_url: invalid type: integer `8080`, expected a text in quotes; write it like `public_url = \"https://countersign.example.com\"`",
        ),
        (
            "[server]",
            "[policy]\nrequire_full_view = \"yes\"\n[server]",
            "policy.require_full_view: invalid type: string \"yes\", expected true or false; write it like `require_full_view = true`",
        ),
        ("[server]", "[[server]]", "server: is one section, not a list; write [server] once"),
        (
            "[[group]]",
            "[group]",
            "group: is a list of sections; write [[group]] and its keys below, once for each\nroute[0].approvers[0]: no [[group]] is named `release`; add a [[group]] with this name; \"owner\" is the person the agent works for",
        ),
        (
            "[server]",
            "templates = \"en\"\n[server]",
            "templates: is a section, not a value; write [templates] and its keys below",
        ),
        (
            TO,
            "to = \"slack:acme:#releases\"",
            "route[0].to: invalid type: string \"slack:acme:#releases\", expected a list in [ ]; write it like `to = [\"slack:acme:#releases\", \"discord:guild:4400000000000000004\", \"dm:owner\"]`",
        ),
        (
            TO,
            "to = [\"slack:acme:#releases\", 5]",
            "route[0].to[1]: invalid type: integer `5`, expected a text in quotes; write it like `to = [\"slack:acme:#releases\", \"discord:guild:4400000000000000004\", \"dm:owner\"]`",
        ),
        (
            APPROVERS,
            "approvers = [\"release\"]\napprovals = -1",
            "route[0].approvals: invalid value: integer `-1`, expected a whole number from 0 on; write it like `approvals = 1`",
        ),
    ]);
}

#[test]
fn missing_keys() {
    all(&[
        (
            "name = \"prod\"",
            "",
            "runtime[0].name: is missing; add name = \"…\"; other sections refer to it by this name\nroute[0].when.runtime: no [[runtime]] is named `prod`; add a [[runtime]] with this name",
        ),
        ("kind = \"a2a\"", "", "runtime[0].kind: is missing; add kind = \"a2a\""),
        (
            ENDPOINT,
            "",
            "runtime[0].endpoint: is missing; add endpoint = \"https://…\" (the JSON-RPC address), or card_url",
        ),
        (ANSWER, "", "runtime[0].answer_with: is missing; add answer_with = \"jwt\" or \"subject_header\""),
        (
            AUDIENCE,
            "",
            "runtime[0].audience: is missing; add the audience by which the runtime knows tokens that are for it",
        ),
        (
            URL,
            "",
            "runtime[0].issuer: is missing; add server.public_url, which is the issuer of tokens and where runtimes fetch the public keys",
        ),
        (BOT, "", "slack[0].bot_token: is missing; add bot_token = { env = \"SLACK_BOT_TOKEN\" }"),
        (
            SIGNING,
            "",
            "slack[0].signing_secret: is missing; add signing_secret = { env = \"SLACK_SIGNING_SECRET\" }, or for Socket Mode app_token = { env = \"SLACK_APP_TOKEN\" }",
        ),
        (
            "subject = \"dana@example.com\"",
            "",
            "person[0].subject: is missing; add the identity by which runtimes know the person",
        ),
        (TO, "", "route[0].to: is missing; add a place: to = [\"slack:<name>:#channel\"]"),
        (TO, "to = []", "route[0].to: names no place; add a place: \"slack:<name>:#channel\""),
    ]);
}

#[test]
fn secrets() {
    all(&[
        (
            BOT,
            "bot_token = { env = \"MISSING\" }",
            "slack[0].bot_token: the environment variable MISSING is not set; set MISSING for this process, or use { file = \"path\" }",
        ),
        (
            SIGNING,
            "signing_secret = { env = \"EMPTY\" }",
            "slack[0].signing_secret: the secret is empty; give the environment variable EMPTY its value",
        ),
        (
            TOKEN,
            "token = { env = \"TWO_LINES\" }",
            "runtime[0].token: the secret contains a space, a line break or another character that no token has; store the token alone, on one line and without quotes",
        ),
        (
            SIGNING,
            "signing_secret = \"sesame\"",
            "slack[0].signing_secret: a secret is never written in the file itself, but as { env = \"NAME\" } or { file = \"path\" }; write it like `signing_secret = { env = \"SLACK_SIGNING_SECRET\" }`",
        ),
        (
            SIGNING,
            "signing_secret = { env = \"A\", file = \"b\" }",
            "slack[0].signing_secret: a secret is written { env = \"NAME\" } or { file = \"path\" }; write it like `signing_secret = { env = \"SLACK_SIGNING_SECRET\" }`",
        ),
        (
            BOT,
            "bot_token = { env = \"APP\" }",
            "slack[0].bot_token: this is an app-level token (xapp-…); use the Bot User OAuth Token, xoxb-…",
        ),
        (
            SIGNING,
            "signing_secret = { env = \"SIGNING\" }\nprevious_signing_secret = { file = \"/nowhere/x\" }",
            "slack[0].previous_signing_secret: the file /nowhere/x cannot be read: No such file or directory (os error 2); name a readable file that holds nothing but the secret",
        ),
    ]);
}

#[test]
fn server_and_storage() {
    all(&[
        (
            "[server]",
            "[server]\nlisten = \"localhost:8080\"",
            "server.listen: `localhost:8080` is no listening address; write an IP address and a port: \"127.0.0.1:8080\"",
        ),
        (
            "[server]",
            "[server]\nadmin_listen = \"127.0.0.1:8080\"",
            "server.admin_listen: 127.0.0.1:8080 is also server.listen; choose another port, or leave admin_listen out",
        ),
        (
            URL,
            "public_url = \"http://cs.example\"",
            "server.public_url: plain http is only for addresses of this machine; use https://",
        ),
        (
            URL,
            "public_url = \"cs.example\"",
            "server.public_url: `cs.example` is no address; write a full address: \"https://host/path\"",
        ),
        (
            URL,
            "public_url = \"https://cs.example/?a=b\"",
            "server.public_url: the address contains a `?`; leave out the `?` and what follows",
        ),
        (
            "[server]",
            "[database]\nurl = \"sqlite::memory:\"\n[server]",
            "database.url: a database in memory forgets every click; name a file: \"sqlite://countersign.db\"",
        ),
        (
            "[server]",
            "[database]\nurl = \"mysql://db/cs\"\n[server]",
            "database.url: `mysql` is not a database we know; write \"sqlite://countersign.db\" or \"postgres://user@host/database\"",
        ),
        (
            "[server]",
            "[database]\nurl = \"postgres://db\"\n[server]",
            "database.url: the address names no database; write \"sqlite://countersign.db\" or \"postgres://user@host/database\"",
        ),
        (
            "[server]",
            "[policy]\ndeliver_within = \"5\"\n[server]",
            "policy.deliver_within: `5` is no duration; write a number with a unit: \"30s\", \"5m\", \"1h 30m\"",
        ),
        (
            "[server]",
            "[policy]\ndeliver_within = \"0s\"\n[server]",
            "policy.deliver_within: `0s` is too short; write at least \"1s\"",
        ),
        (
            "[server]",
            "[signing]\npublish_ahead = \"-5s\"\n[server]",
            "signing.publish_ahead: `-5s` is no duration; write a number with a unit: \"30s\", \"5m\", \"1h 30m\"",
        ),
        (
            "[server]",
            "[signing]\nalg = \"RS256\"\n[server]",
            "signing.alg: unknown variant `RS256`, expected `ES256` or `EdDSA`; write it like `alg = \"ES256\"`",
        ),
        (
            "[server]",
            "[templates]\nlanguage = \"de\"\n[server]",
            "templates.language: `de` is not built in; use \"en\", or put the folder `de` into the directory named by templates.dir",
        ),
        (
            "[server]",
            "[templates]\ndir = \"/nowhere\"\n[server]",
            "templates.dir: /nowhere is not a directory; name an existing directory, or leave `dir` out",
        ),
    ]);
}

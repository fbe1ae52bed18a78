//! Programs that other people wrote, run as judges of what we send and of what our stand-ins serve.
//!
//! `scripts/setup` installs them under `target/outside` (`COUNTERSIGN_OUTSIDE` names another place). A missing one
//! fails the test with that advice. Every child ends with the value that holds it, and with this process however it
//! goes: each ends when its standard input does.

use countersign::net;
use countersign::sandbox::discord;
use countersign::sandbox::slack::Payload;
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Where a Slack payload would be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Surface {
    /// `chat.postMessage`, `chat.update`, `chat.postEphemeral`; `channel` is in the payload.
    Message,
    /// A body for a `response_url`.
    Response,
    /// The `view` of `views.open`, `views.update`, `views.push`.
    Modal,
    /// The `view` of `views.publish`.
    Home,
}

/// What the slackblocks crate finds wrong with a payload; empty when nothing.
#[derive(Debug)]
pub(crate) struct Slackblocks(Judge);

impl Slackblocks {
    pub(crate) fn start() -> Self {
        Self(Judge::start(&mut Command::new(installed("slackblocks/debug/slackblocks-judge"))))
    }

    pub(crate) fn problems(&mut self, surface: Surface, payload: &Value) -> Vec<String> {
        let surface = match surface {
            Surface::Message => "message",
            Surface::Response => "response",
            Surface::Modal => "modal",
            Surface::Home => "home",
        };
        let problems = self.0.ask(&serde_json::json!({ "surface": surface, "payload": payload }));
        serde_json::from_value(problems).unwrap()
    }
}

/// Every payload that reached the Slack stand-in passes slackblocks; those it misses, the stand-in refuses itself.
pub(crate) fn slackblocks_accepts(payloads: &[Payload]) {
    if payloads.is_empty() {
        return;
    }
    let mut judge = Slackblocks::start();
    for Payload { method, arguments, .. } in payloads {
        let (surface, shown) = match (arguments.get("view"), arguments.get("channel")) {
            (Some(view), _) if view["type"] == "home" => (Surface::Home, view.clone()),
            (Some(view), _) => (Surface::Modal, view.clone()),
            (None, Some(_)) => (Surface::Message, only(arguments, &["channel", "text", "blocks"])),
            (None, None) => (Surface::Response, only(arguments, &["text", "blocks", "response_type"])),
        };
        let problems = judge.problems(surface, &shown);
        assert!(problems.is_empty(), "slackblocks about {method}: {problems:?}\n{arguments:#}");
    }
}

fn only(arguments: &Value, keys: &[&str]) -> Value {
    let kept = keys.iter().filter_map(|key| Some(((*key).to_owned(), arguments.get(*key)?.clone())));
    Value::Object(kept.collect())
}

/// What `discord-api-spec` and `discord-interactions` say; see `discord_judge.mjs`.
#[derive(Debug)]
pub(crate) struct DiscordJudge(Judge);

impl DiscordJudge {
    pub(crate) fn start() -> Self {
        for package in ["discord-api-spec", "discord-interactions", "zod"] {
            in_node_modules(package);
        }
        Self(Judge::start(&mut node("discord_judge.mjs")))
    }

    /// What is wrong with a body by one of the published schemas.
    pub(crate) fn problems(&mut self, schema: &str, body: &Value) -> Vec<String> {
        let problems = self.0.ask(&serde_json::json!({ "schema": schema, "body": body }));
        serde_json::from_value(problems).unwrap()
    }

    /// Whether `verifyKey` takes a signature; key and signature in hex.
    pub(crate) fn verifies(&mut self, body: &str, signature: &str, timestamp: &str, key: &str) -> bool {
        let asked = serde_json::json!({ "verify":
            { "body": body, "signature": signature, "timestamp": timestamp, "key": key } });
        self.0.ask(&asked)["valid"].as_bool().unwrap()
    }
}

/// Every body that reached the Discord stand-in passes Discord's own published schemas; what they miss, the stand-in
/// refuses itself.
pub(crate) fn discord_accepts(payloads: &[discord::Payload]) {
    if payloads.is_empty() {
        return;
    }
    let mut judge = DiscordJudge::start();
    for discord::Payload { route, body, .. } in payloads {
        let callback = match body["type"].as_u64() {
            Some(4 | 5) => "CreateMessageInteractionCallbackRequestSchema",
            Some(6 | 7) => "UpdateMessageInteractionCallbackRequestSchema",
            Some(9) => "ModalInteractionCallbackRequestSchema",
            other => {
                assert!(
                    !route.contains("/callback") && route != "answer",
                    "{route}: a first response of type {other:?}"
                );
                ""
            }
        };
        let schema = match route.as_str() {
            "POST /channels/{channel}/messages" => "MessageCreateRequestSchema",
            "PATCH /channels/{channel}/messages/{message}" => "MessageEditRequestPartialSchema",
            "POST /interactions/{interaction}/{token}/callback" | "answer" => callback,
            "POST /webhooks/{app}/{token}" => "IncomingWebhookRequestPartialSchema",
            "PATCH /webhooks/{app}/{token}/messages/@original"
            | "PATCH /webhooks/{app}/{token}/messages/{message}" => {
                "IncomingWebhookUpdateRequestPartialSchema"
            }
            route if route.ends_with("/commands") => "ApplicationCommandCreateRequestSchema",
            _ => continue,
        };
        let bodies = if schema.starts_with("ApplicationCommand") {
            body.as_array().unwrap().clone()
        } else {
            vec![body.clone()]
        };
        for body in bodies {
            let problems = judge.problems(schema, &body);
            assert!(problems.is_empty(), "discord-api-spec about {route}: {problems:?}\n{body:#}");
        }
    }
}

/// An application made with discord.js; what it does is in `discord_app.mjs`.
#[derive(Debug)]
pub(crate) struct DiscordApp(Judge);

impl DiscordApp {
    /// Connects to the gateway, posts its card to `channel`. `api`: base address without the version.
    pub(crate) fn start(api: &str, token: &str, channel: &str) -> Self {
        in_node_modules("discord.js");
        let mut judge = Judge::start(node("discord_app.mjs").args([api, token, channel]));
        let ready = judge.line();
        assert_eq!(ready.trim_end(), "ready", "the discord.js application");
        Self(judge)
    }

    /// What it has seen and done so far.
    pub(crate) fn seen(&mut self) -> Vec<String> {
        serde_json::from_value(self.0.ask(&"seen".into())).unwrap()
    }
}

/// slack_sdk's `SignatureVerifier`.
#[derive(Debug)]
pub(crate) struct SlackSdk(Judge);

impl SlackSdk {
    pub(crate) fn start() -> Self {
        Self(Judge::start(&mut python("slack_sdk_check.py")))
    }

    /// The `X-Slack-Signature` that slack_sdk makes.
    pub(crate) fn sign(&mut self, secret: &str, timestamp: i64, body: &str) -> String {
        let asked = serde_json::json!({
            "do": "sign", "secret": secret, "timestamp": timestamp.to_string(), "body": body,
        });
        self.0.ask(&asked)["signature"].as_str().unwrap().to_owned()
    }

    /// Whether slack_sdk takes the signature when its clock shows `now`; both times in seconds.
    pub(crate) fn accepts(
        &mut self,
        secret: &str,
        timestamp: i64,
        body: &str,
        signature: &str,
        now: i64,
    ) -> bool {
        let asked = serde_json::json!({
            "do": "verify", "secret": secret, "timestamp": timestamp.to_string(), "body": body,
            "signature": signature, "now": now,
        });
        self.0.ask(&asked)["valid"].as_bool().unwrap()
    }
}

/// The official a2a-sdk client, talking to one server; what it can be asked is in `a2a_sdk_client.py`.
#[derive(Debug)]
pub(crate) struct A2aSdkClient(Judge);

impl A2aSdkClient {
    /// `binding`: `JSONRPC` or `HTTP+JSON`. Reads the agent card at `url` first.
    pub(crate) fn start(url: &str, binding: &str) -> Self {
        Self(Judge::start(python("a2a_sdk_client.py").args(["--url", url, "--binding", binding])))
    }

    /// `{"result": …}` or `{"error": {"type", "message"}}`.
    pub(crate) fn ask(&mut self, asked: &Value) -> Value {
        self.0.ask(asked)
    }
}

/// A server made with the official a2a-sdk; what it does is in `a2a_sdk_server.py`.
#[derive(Debug)]
pub(crate) struct A2aSdkServer {
    _judge: Judge,
    /// `http://127.0.0.1:…`: the agent card's origin; JSON-RPC at `/a2a`, HTTP+JSON at `/rest`.
    pub(crate) base: String,
    http: reqwest::Client,
}

impl A2aSdkServer {
    /// The application key, which alone sees every task.
    pub(crate) const KEY: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    /// `more`: further arguments, such as `--foreign not-found` or `--jwks FILE --issuer I --audience A`.
    pub(crate) fn start(more: &[&str]) -> Self {
        let mut command = python("a2a_sdk_server.py");
        let mut judge = Judge::start(command.args(["--port", "0", "--app-key", Self::KEY]).args(more));
        let ready = judge.line();
        let port =
            ready.strip_prefix("ready ").unwrap_or_else(|| panic!("the a2a-sdk server said {ready:?}"));
        Self {
            base: format!("http://127.0.0.1:{}", port.trim_end()),
            _judge: judge,
            http: net::client(net::Limits::default()).unwrap(),
        }
    }

    /// Opens an interaction; returns `{taskId, contextId, interactionId, …}`.
    pub(crate) async fn opens(&self, asked: Value) -> Value {
        self.control("ask", asked).await
    }

    /// Ends a task from the runtime's side: `completed`, `failed`, `rejected`, `canceled`, or `working`.
    pub(crate) async fn ends(&self, task: &str, state: &str) {
        self.control("end", serde_json::json!({ "taskId": task, "state": state })).await;
    }

    /// The product answers itself: `{taskId, subject, approved}`.
    pub(crate) async fn answers_itself(&self, asked: Value) {
        self.control("answer", asked).await;
    }

    /// `{interactions: {id: {…, approvedBy}}, tasks: {id: {owner, state, history}}, requests: [{operation, …}]}`.
    pub(crate) async fn dump(&self) -> Value {
        let got = self.http.get(format!("{}/control/dump", self.base)).send().await.unwrap();
        got.error_for_status().unwrap().json().await.unwrap()
    }

    async fn control(&self, what: &str, asked: Value) -> Value {
        let url = format!("{}/control/{what}", self.base);
        let got = self.http.post(url).json(&asked).send().await.unwrap();
        got.error_for_status().unwrap().json().await.unwrap()
    }
}

/// An app made with `@slack/bolt`; what it does is in `bolt_app.mjs`.
#[derive(Debug)]
pub(crate) struct BoltApp {
    judge: Judge,
    /// Where it takes deliveries over HTTP; 0 in Socket Mode.
    pub(crate) port: u16,
}

impl BoltApp {
    /// `api`: base address of the Web API; `mode`: `http` or `socket`. Posts its card to `channel`.
    pub(crate) fn start(api: &str, mode: &str, channel: &str) -> Self {
        Self::start_with(&[api, mode, channel])
    }

    /// The same with a bot token and an app-level token of its own behind these.
    pub(crate) fn start_with(arguments: &[&str]) -> Self {
        let mut judge = Judge::start(node("bolt_app.mjs").args(arguments));
        let ready = judge.line();
        let port = ready.trim_end().strip_prefix("ready ").and_then(|port| port.parse().ok());
        Self { judge, port: port.unwrap_or_else(|| panic!("the Bolt app said {ready:?}")) }
    }

    /// What it has seen and done so far.
    pub(crate) fn seen(&mut self) -> Vec<String> {
        serde_json::from_value(self.judge.ask(&"seen".into())).unwrap()
    }
}

/// A TLS door of Node.js (`tls_door.mjs`): what arrives goes on, decrypted, to a port of this machine.
#[derive(Debug)]
pub(crate) struct TlsDoor {
    judge: Judge,
    pub(crate) port: u16,
}

impl TlsDoor {
    pub(crate) fn open(key: &Path, certificate: &Path, behind: u16) -> Self {
        let mut judge = Judge::start(node("tls_door.mjs").args([key, certificate]).arg(behind.to_string()));
        let ready = judge.line();
        let port = ready.trim_end().strip_prefix("ready ").and_then(|port| port.parse().ok());
        Self { judge, port: port.unwrap_or_else(|| panic!("the door said {ready:?}")) }
    }

    /// How many came in, and how many were turned away or went before they had.
    pub(crate) fn counts(&mut self) -> (u64, u64) {
        serde_json::from_value(self.judge.ask(&"counts".into())).unwrap()
    }
}

/// The Slack of `emulate`; what is in it stands in `emulate.mjs`.
#[derive(Debug)]
pub(crate) struct Emulate {
    _judge: Judge,
    /// Base address of its Web API.
    pub(crate) api: String,
}

impl Emulate {
    pub(crate) fn start() -> Self {
        let mut judge = Judge::start(&mut node("emulate.mjs"));
        let ready = judge.line();
        let api = ready.trim_end().strip_prefix("ready ");
        Self { api: api.unwrap_or_else(|| panic!("emulate said {ready:?}")).into(), _judge: judge }
    }
}

/// A Node.js script of `tests/outside/node`.
pub(crate) fn node(script: &str) -> Command {
    with_node(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/outside/node").join(script))
}

/// A walk of `tests/browser` through a page.
pub(crate) fn browser(script: &str) -> Command {
    with_node(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser").join(script))
}

/// Node.js with the packages of `tests/outside/node` and Debian's Chromium at hand.
fn with_node(script: &Path) -> Command {
    for package in ["playwright-core", "@slack/bolt", "emulate"] {
        in_node_modules(package);
    }
    let mut command = Command::new("node");
    command.arg(script).stdin(Stdio::null());
    command
}

fn in_node_modules(package: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/outside/node/node_modules").join(package);
    assert!(folder.exists(), "{} is missing: run scripts/setup", folder.display());
}

/// A script of `tests/outside` in the environment that `scripts/setup` makes.
fn python(script: &str) -> Command {
    let mut command = Command::new(installed("venv/bin/python"));
    command.arg("-u").arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/outside").join(script));
    command
}

fn installed(program: &str) -> PathBuf {
    let default = || Path::new(env!("CARGO_MANIFEST_DIR")).join("target/outside").into();
    let folder = std::env::var_os("COUNTERSIGN_OUTSIDE").unwrap_or_else(default);
    let path = Path::new(&folder).join(program);
    assert!(path.exists(), "{} is missing: run scripts/setup", path.display());
    path
}

/// A child that answers each line with a line.
#[derive(Debug)]
struct Judge {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Judge {
    fn start(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let stdin = child.stdin.take().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self { child, stdin, stdout }
    }

    fn ask(&mut self, asked: &Value) -> Value {
        writeln!(self.stdin, "{asked}").unwrap();
        let line = self.line();
        serde_json::from_str(&line)
            .unwrap_or_else(|error| panic!("{error}: the judge said {line:?} to {asked}"))
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line
    }
}

impl Drop for Judge {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    //! The judges themselves: each takes what is right and refuses what is wrong.

    use super::*;
    use rstest::rstest;
    use serde_json::json;

    #[test]
    fn slackblocks_tells_right_from_wrong() {
        let mut judge = Slackblocks::start();
        let button = json!({ "type": "button", "action_id": "a", "text": { "type": "plain_text", "text": "Approve" } });
        let right =
            json!({ "channel": "C1", "text": "x", "blocks": [{ "type": "actions", "elements": [button] }] });
        assert_eq!(judge.problems(Surface::Message, &right), Vec::<String>::new());
        let mut wrong = right.clone();
        wrong["blocks"][0]["elements"][0]["text"]["text"] = "a".repeat(76).into();
        assert_eq!(judge.problems(Surface::Message, &wrong).len(), 1);
        let title = json!({ "type": "plain_text", "text": "a title of more than twenty-four" });
        let view = json!({ "type": "modal", "title": title, "blocks": [{ "type": "divider" }] });
        assert_eq!(judge.problems(Surface::Modal, &view).len(), 1);
        assert_eq!(
            judge.problems(Surface::Home, &json!({ "type": "home", "blocks": [] })),
            Vec::<String>::new()
        );
        assert_eq!(judge.problems(Surface::Response, &json!({ "text": "no" })), Vec::<String>::new());
    }

    #[test]
    fn slack_sdk_makes_and_checks_signatures() {
        let mut judge = SlackSdk::start();
        // Slack: Verifying requests, the documented example.
        let (secret, at) = ("8f742231b10e8888abcd99yyyzzz85a5", 1_531_420_618);
        let body = "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c";
        let signature = judge.sign(secret, at, body);
        assert_eq!(signature, "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503");
        assert!(judge.accepts(secret, at, body, &signature, at + 300));
        assert!(!judge.accepts(secret, at, body, &signature, at + 301));
        assert!(!judge.accepts(secret, at, "token=other", &signature, at));
        assert!(!judge.accepts("another secret", at, body, &signature, at));
    }

    #[rstest]
    #[tokio::test]
    async fn the_sdk_server_records_who_answered(#[values("JSONRPC", "HTTP+JSON")] binding: &str) {
        const URI: &str = "https://docs.nylorun.com/a2a/interactions/v1";
        let server = A2aSdkServer::start(&["--foreign", "not-found"]);
        let mut client = A2aSdkClient::start(&server.base, binding);
        let open = server.opens(json!({ "owner": "dana@example.com", "detail": { "tool": "deploy" } })).await;
        let bearer = format!("Bearer {}", A2aSdkServer::KEY);
        let watcher = json!({ "Authorization": bearer });
        let of = |subject: &str| json!({ "Authorization": bearer, "Nylorun-Subject": subject, "Nylorun-Scopes": "sessions:own" });
        let listed =
            client.ask(&json!({ "do": "list", "status": "TASK_STATE_AUTH_REQUIRED", "headers": watcher }));
        let shown = &listed["result"]["tasks"][0]["status"]["message"]["metadata"][URI];
        assert_eq!(shown["interactionId"], open["interactionId"], "{listed}");
        assert_eq!(shown["detail"]["tool"], "deploy");

        let mut answer = json!({ "do": "send", "headers": of("bob@example.com"), "message": {
            "role": "ROLE_USER", "messageId": "cs:1", "taskId": open["taskId"], "contextId": open["contextId"],
            "extensions": [URI], "parts": [{ "data": { "approved": true } }],
            "metadata": { URI: { "interactionId": open["interactionId"], "approved": true } },
        }});
        assert_eq!(client.ask(&answer)["error"]["type"], "TaskNotFoundError");
        answer["headers"] = of("dana@example.com");
        for _ in 0..2 {
            assert_eq!(client.ask(&answer)["result"][0]["task"]["status"]["state"], "TASK_STATE_WORKING");
        }
        answer["message"]["messageId"] = "cs:2".into();
        assert_eq!(client.ask(&answer)["error"]["type"], "UnsupportedOperationError");

        server.ends(open["taskId"].as_str().unwrap(), "completed").await;
        let dump = server.dump().await;
        let recorded = &dump["interactions"][open["interactionId"].as_str().unwrap()];
        assert_eq!(recorded["approvedBy"], "dana@example.com");
        assert_eq!(recorded["messageId"], "cs:1");
        assert_eq!(dump["tasks"][open["taskId"].as_str().unwrap()]["state"], "TASK_STATE_COMPLETED");
        let again = server.opens(json!({ "owner": "dana@example.com" })).await;
        server
            .answers_itself(
                json!({ "taskId": again["taskId"], "subject": "dana@example.com", "approved": false }),
            )
            .await;
        let dump = server.dump().await;
        assert_eq!(dump["interactions"][again["interactionId"].as_str().unwrap()]["effect"], "tool.denied");
    }

    #[test]
    fn the_sdk_server_keeps_its_promises() {
        let output = python("a2a_sdk_server_check.py").output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && said.contains("as promised"),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }

    #[test]
    fn chromium_shows_a_page_and_takes_a_click() {
        let output = node("browser.mjs").output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && said.contains("works"),
            "{said}{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

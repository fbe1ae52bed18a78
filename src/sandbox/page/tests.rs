use crate::net;
use crate::sandbox::company::{OPS, RELEASES};
use crate::sandbox::serve::{Options, SandboxServer};
use crate::sandbox::time::Time;
use reqwest::{RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// A server that runs as long as this lives.
struct Running {
    base: String,
    token: String,
    slack: Arc<crate::sandbox::slack::SlackWorld>,
    discord: Arc<crate::sandbox::discord::DiscordWorld>,
    discord_token: String,
    http: reqwest::Client,
    stop: CancellationToken,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn running() -> Running {
    let options = Options { time: Time::manual(1_796_000_000_000), agent: false, discord: true };
    let server = SandboxServer::bind("127.0.0.1:0".parse().unwrap(), options).await.unwrap();
    let running = Running {
        base: server.url(),
        token: server.secret("DEMO_SLACK_BOT_TOKEN").unwrap(),
        slack: Arc::clone(&server.slack),
        discord: server.discord.clone().unwrap(),
        discord_token: server.secret("DEMO_DISCORD_BOT_TOKEN").unwrap(),
        http: net::client(net::Limits::default()).unwrap(),
        stop: CancellationToken::new(),
    };
    #[expect(clippy::disallowed_methods, reason = "a server beside the test")]
    tokio::spawn(server.run(running.stop.clone()));
    running
}

impl Running {
    fn get(&self, path: &str) -> RequestBuilder {
        self.http.get(format!("{}{path}", self.base))
    }

    fn post(&self, path: &str, body: &Value) -> RequestBuilder {
        self.http.post(format!("{}{path}", self.base)).json(body)
    }

    async fn state(&self, user: &str) -> Value {
        self.get(&format!("/page/state?as={user}")).send().await.unwrap().json().await.unwrap()
    }

    async fn act(&self, body: Value) -> (StatusCode, Value) {
        let said = self.post("/page/do", &body).send().await.unwrap();
        (said.status(), said.json().await.unwrap())
    }

    async fn slack_api(&self, method: &str, body: Value) -> Value {
        let call = self.post(&format!("/slack/api/{method}"), &body).bearer_auth(&self.token);
        call.send().await.unwrap().json().await.unwrap()
    }
}

fn messages(state: &Value, channel: &str) -> Vec<Value> {
    let places = state["places"].as_array().unwrap();
    let place = places.iter().find(|place| place["id"] == channel);
    place.map(|place| place["messages"].as_array().unwrap().clone()).unwrap_or_default()
}

#[tokio::test]
async fn the_page_loads_nothing_from_elsewhere() {
    let running = running().await;
    let page = running.get("/").send().await.unwrap();
    let header = |page: &Response, name: &str| page.headers()[name].to_str().unwrap().to_owned();
    let policy = header(&page, "content-security-policy");
    assert!(
        policy.starts_with("default-src 'none'") && policy.contains("frame-ancestors 'none'"),
        "{policy}"
    );
    assert!(!policy.contains("unsafe") && !policy.contains("http"), "{policy}");
    assert_eq!(header(&page, "content-type"), "text/html; charset=utf-8");
    let html = page.text().await.unwrap();
    assert!(
        !html.contains("<style") && !html.contains(" style=") && !html.contains("onclick"),
        "refused by the policy"
    );
    let mut named = 0;
    for part in html.split(['"', '\'']).filter(|part| part.starts_with("/page/files/")) {
        let file = running.get(part).send().await.unwrap();
        assert_eq!(file.status(), StatusCode::OK, "{part}");
        assert_eq!(header(&file, "x-content-type-options"), "nosniff");
        named += 1;
    }
    assert!(named >= 3);
    for script in ["page.js", "blocks.js", "text.js", "discord.js"] {
        let text = running.get(&format!("/page/files/{script}")).send().await.unwrap().text().await.unwrap();
        for way in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "srcdoc"] {
            assert!(!text.contains(way), "{script} uses {way}");
        }
    }
    assert_eq!(running.get("/page/files/page.rs").send().await.unwrap().status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn other_sites_and_other_names_are_refused_everywhere() {
    let running = running().await;
    let press = json!({"user": "U0DANA", "at": {"spot": "view", "id": "V1"}, "control": "x"});
    for path in ["/page/do", "/slack/control/press", "/a2a/control/open"] {
        let foreign = running.post(path, &press).header("Origin", "https://evil.test").send().await.unwrap();
        assert_eq!(foreign.status(), StatusCode::FORBIDDEN, "{path}");
        let null = running.post(path, &press).header("Origin", "null").send().await.unwrap();
        assert_eq!(null.status(), StatusCode::FORBIDDEN, "{path}");
        let renamed = running.post(path, &press).header("Host", "evil.test").send().await.unwrap();
        assert_eq!(renamed.status(), StatusCode::FORBIDDEN, "{path}");
        let own = running.post(path, &press).header("Origin", &running.base).send().await.unwrap();
        assert_ne!(own.status(), StatusCode::FORBIDDEN, "{path}");
    }
}

#[tokio::test]
async fn each_viewer_sees_what_is_theirs() {
    let running = running().await;
    let blocks = json!([{"type": "section", "text": {"type": "plain_text", "text": "<b> & co"}}]);
    let posted = running
        .slack_api("chat.postMessage", json!({"channel": RELEASES, "text": "hello", "blocks": blocks}))
        .await;
    assert_eq!(posted["ok"], true, "{posted}");
    let private = json!({"channel": RELEASES, "user": "U0GUEST", "text": "not you", "blocks": blocks});
    assert_eq!(running.slack_api("chat.postEphemeral", private).await["ok"], true);

    let guest = running.state("U0GUEST").await;
    let seen = messages(&guest, RELEASES);
    assert_eq!(seen.len(), 2, "{guest}");
    assert_eq!((&seen[0]["private"], &seen[1]["private"]), (&json!(false), &json!(true)));
    assert_eq!(seen[0]["blocks"][0]["text"]["text"], "&lt;b&gt; &amp; co");
    assert_eq!(messages(&running.state("U0DANA").await, RELEASES).len(), 1);
    let stranger = running.state("U0STRANGER").await;
    assert_eq!(stranger["places"].as_array().unwrap().len(), 1, "{stranger}");
    assert!(messages(&running.state("U0DANA").await, OPS).is_empty());
    for nobody in ["U0BOT", "", "U0DANA%27"] {
        let refused = running.get(&format!("/page/state?as={nobody}")).send().await.unwrap();
        assert_eq!(refused.status(), StatusCode::NOT_FOUND, "{nobody}");
    }
    assert!(!guest.to_string().contains(&running.token));
}

#[tokio::test]
async fn the_runtime_does_as_the_viewer_says_and_shows_who_answered() {
    let running = running().await;
    for _ in 0..2 {
        assert_eq!(running.act(json!({"do": "open"})).await.0, StatusCode::OK);
    }
    let task = |state: &Value, at: usize| state["tasks"][at].clone();
    let state = running.state("U0DANA").await;
    let (one, two) = (task(&state, 0), task(&state, 1));
    assert_eq!((&one["state"], &one["waits"]), (&json!("auth required"), &json!(true)));
    let id = |task: &Value| task["interactions"][0]["id"].clone();

    assert_eq!(running.act(json!({"do": "change", "interactionId": id(&one)})).await.0, StatusCode::OK);
    assert_eq!(running.act(json!({"do": "answer", "interactionId": id(&one)})).await.0, StatusCode::OK);
    assert_eq!(running.act(json!({"do": "cancel", "taskId": two["id"]})).await.0, StatusCode::OK);
    let state = running.state("U0DANA").await;
    let (one, two) = (task(&state, 0), task(&state, 1));
    assert!(one["interactions"][0]["reason"].as_str().unwrap().contains("Changed"), "{one}");
    let answer = &one["interactions"][0]["answers"][0];
    assert_eq!(answer["approvedBy"], one["owner"]);
    assert_eq!((&answer["decision"], &answer["elsewhere"]), (&json!("approved"), &json!(true)));
    assert_eq!((&two["state"], &two["ended"]), (&json!("canceled"), &json!(true)));

    for late in [
        json!({"do": "change", "interactionId": id(&one)}),
        json!({"do": "answer", "interactionId": id(&one)}),
        json!({"do": "cancel", "taskId": two["id"]}),
        json!({"do": "press", "user": "U0BOT", "at": {"spot": "view", "id": "V1"}, "control": "x"}),
        json!({"do": "press", "user": "U0DANA", "at": {"spot": "view", "id": "V1"}, "control": "x"}),
    ] {
        let (status, said) = running.act(late.clone()).await;
        assert_eq!(status, StatusCode::CONFLICT, "{late}");
        assert!(said["why"].as_str().is_some_and(|why| !why.is_empty()), "{said}");
    }
    let unknown = running.post("/page/do", &json!({"do": "format"})).send().await.unwrap();
    assert_eq!(unknown.status(), StatusCode::UNPROCESSABLE_ENTITY);
}

#[tokio::test]
async fn changes_arrive_by_themselves() {
    let running = running().await;
    let mut events = running.get("/page/events?as=U0DANA").send().await.unwrap();
    let mut next = async || {
        let mut text = String::new();
        while !text.ends_with("\n\n") {
            text.push_str(std::str::from_utf8(&events.chunk().await.unwrap().unwrap()).unwrap());
        }
        serde_json::from_str::<Value>(text.trim().strip_prefix("data:").unwrap()).unwrap()
    };
    assert!(messages(&next().await, RELEASES).is_empty());
    running.slack.say("U0KIM", RELEASES, "hello");
    let state = next().await;
    assert_eq!(messages(&state, RELEASES)[0]["text"], "hello");
    // A request that changes nothing of what is shown says nothing; the next event is the task.
    running.slack_api("auth.test", json!({})).await;
    running.act(json!({"do": "open"})).await;
    assert_eq!(next().await["tasks"].as_array().unwrap().len(), 1);
    let gone = running.get("/page/events?as=U0BOT").send().await.unwrap();
    assert_eq!(gone.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn the_second_pane_shows_the_discord_and_acts_in_it() {
    use crate::sandbox::discord::acme::{DANA, RELEASES};
    let running = running().await;
    let card = json!({"content": "Approval", "components": [{"type": 1, "components": [
        {"type": 2, "style": 3, "label": "Approve", "custom_id": "a"}]}], "allowed_mentions": {"parse": []}});
    let posted = running
        .post(&format!("/discord/api/v10/channels/{RELEASES}/messages"), &card)
        .header("Authorization", format!("Bot {}", running.discord_token))
        .header("User-Agent", "DiscordBot (https://countersign.example, 0.1)");
    let id = posted.send().await.unwrap().json::<Value>().await.unwrap()["id"].as_str().unwrap().to_owned();
    let state = running.state("U0DANA").await;
    assert_eq!(
        (&state["discord"]["me"], &state["discord"]["places"][0]["name"]),
        (&json!(DANA), &json!("releases"))
    );
    assert_eq!(
        state["discord"]["places"][0]["messages"][0]["components"][0]["components"][0]["label"],
        "Approve"
    );
    assert_eq!(running.state("U0GUEST").await["discord"]["me"], Value::Null);
    assert!(!state.to_string().contains(&running.discord_token));
    // Nobody is connected: the person sees a failure, in words.
    let press = json!({"do": "discord", "user": "U0DANA", "what": {"act": "press", "channel": RELEASES, "message": id, "control": "a"}});
    let (status, said) = running.act(press.clone()).await;
    assert!(
        status == StatusCode::CONFLICT && said["why"].as_str().unwrap().contains("three seconds"),
        "{said}"
    );
    let mut by_guest = press;
    by_guest["user"] = "U0GUEST".into();
    assert!(running.act(by_guest).await.1["why"].as_str().unwrap().contains("not on this Discord"));
    assert_eq!(running.discord.warnings().len(), 1);
}

//! Driving an app over loopback: presses, signatures, redelivery, views, commands, events.

use super::acme::{BOT_TOKEN, ORG_TOKEN, SIGNING_SECRET, TEAM};
use super::*;
use crate::sandbox::faults::{Fault, Rule};
use crate::sandbox::time::Time;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use std::sync::Mutex;
use std::time::Duration;

const START: i64 = 1_796_000_000_000;

/// A client of the stand-in, and the app it delivers to.
pub(super) struct Api {
    pub(super) root: String,
    http: reqwest::Client,
}

impl Api {
    pub(super) async fn post(&self, token: &str, method: &str, body: &Value) -> Value {
        let url = format!("{}/slack/api/{method}", self.root);
        let request = self.http.post(url).bearer_auth(token).json(body);
        request.send().await.unwrap().json().await.unwrap()
    }

    pub(super) async fn get(&self, token: &str, method: &str, query: &[(&str, &str)]) -> Value {
        self.get_raw(token, method, query).await.json().await.unwrap()
    }

    pub(super) async fn get_raw(
        &self,
        token: &str,
        method: &str,
        query: &[(&str, &str)],
    ) -> reqwest::Response {
        let query = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(query).finish();
        let url = format!("{}/slack/api/{method}?{query}", self.root);
        self.http.get(url).bearer_auth(token).send().await.unwrap()
    }

    pub(super) async fn form(&self, token: &str, method: &str, fields: &[(&str, &str)]) -> Value {
        let url = format!("{}/slack/api/{method}", self.root);
        self.http.post(url).bearer_auth(token).form(fields).send().await.unwrap().json().await.unwrap()
    }

    pub(super) async fn raw(&self, path: &str, body: &Value) -> reqwest::Result<reqwest::Response> {
        self.http.post(format!("{}{path}", self.root)).json(body).send().await
    }

    pub(super) async fn raw_as(
        &self,
        token: &str,
        method: &str,
        body: &Value,
    ) -> reqwest::Result<reqwest::Response> {
        self.http.post(format!("{}/slack/api/{method}", self.root)).bearer_auth(token).json(body).send().await
    }

    pub(super) async fn respond(&self, url: &str, body: &Value) -> u16 {
        self.http.post(url).json(body).send().await.unwrap().status().as_u16()
    }
}

/// What reached the app: path, headers, body.
pub(super) type Inbox = Arc<Mutex<Vec<(String, HeaderMap, Bytes)>>>;

#[derive(Clone)]
pub(super) struct App {
    pub(super) inbox: Inbox,
    pub(super) answer: Arc<Mutex<(u16, String)>>,
}

async fn inbound(
    State(app): State<App>,
    Path(door): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    app.inbox.lock().unwrap().push((door, headers, body));
    let (status, answer) = app.answer.lock().unwrap().clone();
    (StatusCode::from_u16(status).unwrap(), answer).into_response()
}

/// Serves the world and an app that keeps what it gets, while `test` runs.
pub(super) async fn served(world: &Arc<SlackWorld>, test: impl AsyncFnOnce(&Api)) {
    served_with_app(world, async |api, _| test(api).await).await;
}

pub(super) async fn served_with_app(world: &Arc<SlackWorld>, test: impl AsyncFnOnce(&Api, &App)) {
    crate::net::init();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let root = format!("http://{}", listener.local_addr().unwrap());
    let app = App { inbox: Inbox::default(), answer: Arc::new(Mutex::new((200, String::new()))) };
    world.set_base_url(&root);
    world.set_app_url(&format!("{root}/app"));
    let inbox =
        axum::Router::new().route("/app/slack/{door}", axum::routing::post(inbound)).with_state(app.clone());
    let serve = axum::serve(listener, router(Arc::clone(world)).merge(inbox));
    let http = crate::net::client(crate::net::Limits {
        connect: Duration::from_secs(3),
        total: Duration::from_secs(2),
    });
    let api = Api { root, http: http.unwrap() };
    tokio::select! {
        done = serve.into_future() => panic!("server ended: {done:?}"),
        () = test(&api, &app) => {}
    }
}

pub(super) fn world() -> Arc<SlackWorld> {
    SlackWorld::acme(Time::manual(START))
}

pub(super) fn card() -> Value {
    json!([
        {"type": "section", "block_id": "s", "text": {"type": "plain_text", "text": "Deploy R&D <eu>? 🔥"}},
        {"type": "actions", "block_id": "a", "elements": [
            {"type": "button", "action_id": "cs.approve", "value": "k1", "style": "primary", "text": {"type": "plain_text", "text": "Approve"}},
            {"type": "button", "action_id": "cs.deny", "value": "k2", "text": {"type": "plain_text", "text": "R&D <no>"}}]}])
}

pub(super) async fn posted(api: &Api, channel: &str) -> String {
    let body = json!({"channel": channel, "text": "Approval needed", "blocks": card()});
    let answer = api.post(BOT_TOKEN, "chat.postMessage", &body).await;
    assert_eq!(answer["ok"], true, "{answer}");
    answer["ts"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_press_is_signed_and_shows_what_slack_would_show() {
    let world = world();
    served_with_app(&world, async |api, app| {
        let ts = posted(api, "C0OPS").await;
        assert_eq!(world.buttons("C0OPS", &ts), ["Approve", "R&D <no>"]);
        assert_eq!(world.reads("C0OPS", &ts), "Deploy R&D <eu>? 🔥\n[Approve] [R&D <no>]");
        let delivery = world.press("U0KIM", "C0OPS", &ts, "R&D <no>").await.unwrap();
        assert!(delivery.acked(), "{delivery:?}");

        let (door, headers, body) = app.inbox.lock().unwrap().remove(0);
        assert_eq!(door, "interactivity");
        let stamp = headers["x-slack-request-timestamp"].to_str().unwrap();
        assert_eq!(stamp, "1796000000");
        assert_eq!(headers["x-slack-signature"].to_str().unwrap(), signature(SIGNING_SECRET, stamp, &body));
        let (name, payload) = url::form_urlencoded::parse(&body).next().unwrap();
        assert_eq!(name, "payload");
        let payload: Value = serde_json::from_str(&payload).unwrap();
        assert_eq!(payload["type"], "block_actions");
        assert_eq!(payload["team"]["id"], TEAM);
        assert_eq!(payload["user"]["id"], "U0KIM");
        assert_eq!(payload["container"]["message_ts"], ts.as_str());
        assert_eq!(payload["message"]["blocks"][0]["text"]["text"], "Deploy R&amp;D &lt;eu&gt;? :fire:");
        assert_eq!(payload["actions"][0]["value"], "k2");
        assert_eq!(payload["actions"][0]["text"]["text"], "R&amp;D &lt;no&gt;");
        assert!(payload["response_url"].as_str().unwrap().starts_with(&api.root));
    })
    .await;
}

#[tokio::test]
async fn people_press_only_what_they_see() {
    let world = world();
    served(&world, async |api| {
        let ts = posted(api, "C0PRIVATE").await;
        assert_eq!(world.press("U0SAM", "C0PRIVATE", &ts, "Approve").await.unwrap_err(), PressError::NotSeen);
        let missing = world.press("U0KIM", "C0PRIVATE", &ts, "Launch").await.unwrap_err();
        assert_eq!(
            missing,
            PressError::NoControl { wanted: "Launch".into(), has: vec!["Approve".into(), "R&D <no>".into()] }
        );
        world.remove_message("C0PRIVATE", &ts);
        assert_eq!(world.press("U0KIM", "C0PRIVATE", &ts, "Approve").await.unwrap_err(), PressError::Nothing);
        assert_eq!(world.deliveries().len(), 0);
    })
    .await;
}

#[tokio::test]
async fn an_org_install_sends_no_team() {
    let world = world();
    served(&world, async |api| {
        let body = json!({"channel": "C0SOUTH", "text": "hi", "blocks": card()});
        let ts = api.post(ORG_TOKEN, "chat.postMessage", &body).await["ts"].as_str().unwrap().to_owned();
        let payload = world.press("W0WIM", "C0SOUTH", &ts, "Approve").await.unwrap().payload();
        assert_eq!(payload["team"], Value::Null);
        assert_eq!(payload["enterprise"]["id"], "E0ORG");
        assert_eq!(payload["is_enterprise_install"], true);
        assert_eq!(
            payload["user"],
            json!({"id": "W0WIM", "team_id": "T0SOUTH", "name": "wim", "username": "wim"})
        );
    })
    .await;
}

#[tokio::test]
async fn a_stranger_presses_in_a_shared_channel_with_a_foreign_home() {
    let world = world();
    served(&world, async |api| {
        let ts = posted(api, "C0SHARED").await;
        let payload = world.press("U0STRANGER", "C0SHARED", &ts, "Approve").await.unwrap().payload();
        assert_eq!(
            (&payload["team"]["id"], &payload["user"]["team_id"]),
            (&json!(TEAM), &json!("T0ELSEWHERE"))
        );
        let user = api.get(BOT_TOKEN, "users.info", &[("user", "U0STRANGER")]).await;
        assert_eq!((&user["user"]["is_stranger"], user["user"].get("profile")), (&json!(true), None));
    })
    .await;
}

#[tokio::test]
async fn deliveries_are_repeated_lost_and_redelivered_as_scripted() {
    let world = world();
    served_with_app(&world, async |api, app| {
        let ts = posted(api, "C0OPS").await;
        let spot = Spot::message("C0OPS", &ts);
        let both = world.press_raw("U0KIM", &spot, "Approve", &Manner::twice(), |_| {}).await.unwrap();
        assert_eq!((both.len(), both[0].raw == both[1].raw), (2, true));
        world.faults().add(Rule::next("interactivity", Fault::Duplicate));
        world.press("U0KIM", "C0OPS", &ts, "Approve").await.unwrap();
        assert_eq!(app.inbox.lock().unwrap().len(), 4);

        world.faults().add(Rule::next("interactivity", Fault::Hang { ms: 1 }));
        assert_eq!(world.press("U0KIM", "C0OPS", &ts, "Approve").await.unwrap().status, 0);
        assert_eq!(app.inbox.lock().unwrap().len(), 4);

        world.switch(|switches| switches.interactive_redelivery = true);
        world.faults().add(Rule::next("interactivity", Fault::Lost { ms: 0 }));
        let again = world.press_raw("U0KIM", &spot, "Approve", &Manner::default(), |_| {}).await.unwrap();
        assert_eq!(again.iter().map(|one| (one.attempt, one.status)).collect::<Vec<_>>(), [(1, 0), (2, 200)]);
        assert_eq!(again[0].raw, again[1].raw);
        assert_eq!(app.inbox.lock().unwrap().len(), 6);

        *app.answer.lock().unwrap() = (500, String::new());
        let failed = world.press_raw("U0KIM", &spot, "Approve", &Manner::default(), |_| {}).await.unwrap();
        assert_eq!(failed.iter().map(|one| one.status).collect::<Vec<_>>(), [500, 500]);
    })
    .await;
}

#[tokio::test]
async fn a_payload_can_be_changed_before_it_is_signed() {
    let world = world();
    served_with_app(&world, async |api, app| {
        let ts = posted(api, "C0OPS").await;
        let manner = Manner::signed(Signing::Old { seconds: 301 });
        let change = |payload: &mut Value| payload["api_app_id"] = "A0OTHER".into();
        let sent =
            world.press_raw("U0KIM", &Spot::message("C0OPS", &ts), "Approve", &manner, change).await.unwrap();
        assert_eq!(sent[0].payload()["api_app_id"], "A0OTHER");
        let (_, headers, body) = app.inbox.lock().unwrap().remove(0);
        assert_eq!(headers["x-slack-request-timestamp"], "1795999699");
        assert_eq!(headers["x-slack-signature"], signature(SIGNING_SECRET, "1795999699", &body).as_str());
    })
    .await;
}

#[tokio::test]
async fn ephemeral_buttons_come_without_message() {
    let world = world();
    served(&world, async |api| {
        let body = json!({"channel": "C0OPS", "user": "U0KIM", "text": "Link first", "blocks": card()});
        let answer = api.post(BOT_TOKEN, "chat.postEphemeral", &body).await;
        assert_eq!(answer["ok"], true);
        assert_eq!(world.told("U0KIM"), ["Deploy R&D <eu>? 🔥\n[Approve] [R&D <no>]"]);
        assert_eq!(world.press_ephemeral("U0SAM", "Approve").await.unwrap_err(), PressError::Nothing);
        let payload = world.press_ephemeral("U0KIM", "Approve").await.unwrap().payload();
        assert_eq!((payload.get("message"), &payload["container"]["is_ephemeral"]), (None, &json!(true)));
        let edit = json!({"channel": "C0OPS", "ts": answer["message_ts"], "text": "x"});
        assert_eq!(api.post(BOT_TOKEN, "chat.update", &edit).await["error"], "message_not_found");
        let url = payload["response_url"].as_str().unwrap();
        assert_eq!(api.respond(url, &json!({"replace_original": true, "text": "Done & dusted"})).await, 200);
        assert_eq!(world.told("U0KIM"), ["Done & dusted"]);
        assert_eq!(api.respond(url, &json!({"delete_original": true})).await, 200);
        assert_eq!(world.told("U0KIM"), Vec::<String>::new());
    })
    .await;
}

#[tokio::test]
async fn a_response_url_has_five_uses_and_half_an_hour() {
    let world = world();
    served(&world, async |api| {
        let ts = posted(api, "C0OPS").await;
        let press = async || {
            let payload = world.press("U0KIM", "C0OPS", &ts, "Approve").await.unwrap().payload();
            payload["response_url"].as_str().unwrap().to_owned()
        };
        let url = press().await;
        let note = json!({"response_type": "ephemeral", "replace_original": false, "text": "Already answered by Sam"});
        for _ in 0..5 {
            assert_eq!(api.respond(&url, &note).await, 200);
        }
        assert_eq!(api.respond(&url, &note).await, 404);
        assert_eq!(world.ephemerals("U0KIM").len(), 5);
        let url = press().await;
        world.time().advance(30 * 60 * 1_000);
        assert_eq!(api.respond(&url, &note).await, 200);
        world.time().advance(1);
        assert_eq!(api.respond(&url, &note).await, 404);
        assert_eq!(api.respond(&format!("{}/slack/response/none", api.root), &note).await, 404);
    })
    .await;
}

fn modal(id: &str) -> Value {
    json!({"type": "modal", "callback_id": "cs.answer", "private_metadata": "k", "notify_on_close": true,
        "title": {"type": "plain_text", "text": "Deny"}, "submit": {"type": "plain_text", "text": "Send"},
        "blocks": [{"type": "input", "block_id": id, "label": {"type": "plain_text", "text": "Reason"},
            "element": {"type": "plain_text_input", "action_id": "cs.text", "multiline": true}}]})
}

#[tokio::test]
async fn triggers_last_three_seconds_and_one_use() {
    let world = world();
    served(&world, async |api| {
        let ts = posted(api, "C0OPS").await;
        let press = async || {
            world.press("U0KIM", "C0OPS", &ts, "Approve").await.unwrap().payload()["trigger_id"].clone()
        };
        let open = async |trigger: &Value| {
            api.post(BOT_TOKEN, "views.open", &json!({"trigger_id": trigger, "view": modal("r")})).await
        };
        let trigger = press().await;
        world.time().advance(3_000);
        assert_eq!(open(&trigger).await["ok"], true);
        assert_eq!(open(&trigger).await["error"], "exchanged_trigger_id");
        let trigger = press().await;
        world.time().advance(3_001);
        assert_eq!(open(&trigger).await["error"], "expired_trigger_id");
        assert_eq!(open(&json!("1.2.3")).await["error"], "invalid_trigger_id");
        let foreign = json!({"trigger_id": press().await, "view": modal("r")});
        assert_eq!(api.post(ORG_TOKEN, "views.open", &foreign).await["error"], "invalid_trigger_id");
    })
    .await;
}

#[tokio::test]
async fn a_view_is_filled_in_submitted_and_answered() {
    let world = world();
    served_with_app(&world, async |api, app| {
        let ts = posted(api, "C0OPS").await;
        let trigger =
            world.press("U0KIM", "C0OPS", &ts, "Approve").await.unwrap().payload()["trigger_id"].clone();
        let opened =
            api.post(BOT_TOKEN, "views.open", &json!({"trigger_id": trigger, "view": modal("r")})).await;
        let id = opened["view"]["id"].as_str().unwrap().to_owned();
        assert_eq!(world.modals("U0KIM").len(), 1);
        assert_eq!(world.submit("U0KIM", &id).await.unwrap_err(), PressError::Required("Reason".into()));
        let spot = Spot::View { id: id.clone() };
        let typed = Input::Text { text: "  because <b>".into() };
        assert!(world.fill("U0KIM", &spot, "Reason", &typed).await.unwrap().is_none());

        *app.answer.lock().unwrap() =
            (200, json!({"response_action": "errors", "errors": {"r": "too short"}}).to_string());
        let payload = world.submit("U0KIM", &id).await.unwrap().payload();
        assert_eq!(payload["view"]["state"]["values"]["r"]["cs.text"]["value"], "  because <b>");
        assert_eq!(payload["view"]["private_metadata"], "k");
        assert_eq!(world.view(&id).unwrap().errors["r"], "too short");

        let stale = json!({"view_id": id, "hash": "1.0", "view": modal("r")});
        assert_eq!(api.post(BOT_TOKEN, "views.update", &stale).await["error"], "hash_conflict");
        let fresh = json!({"view_id": id, "hash": opened["view"]["hash"], "view": modal("r2")});
        assert_eq!(api.post(BOT_TOKEN, "views.update", &fresh).await["ok"], true);
        assert_eq!(api.post(BOT_TOKEN, "views.update", &fresh).await["error"], "hash_conflict");
        // New ids: what was typed is gone.
        assert_eq!(world.submit("U0KIM", &id).await.unwrap_err(), PressError::Required("Reason".into()));

        *app.answer.lock().unwrap() = (200, String::new());
        world.fill("U0KIM", &spot, "Reason", &typed).await.unwrap();
        world.submit("U0KIM", &id).await.unwrap();
        assert_eq!(world.modals("U0KIM").len(), 0);
        let late = json!({"view_id": id, "view": modal("r3")});
        assert_eq!(api.post(BOT_TOKEN, "views.update", &late).await["error"], "not_found");
    })
    .await;
}

#[tokio::test]
async fn commands_events_and_homes() {
    let world = world();
    served_with_app(&world, async |api, app| {
        *app.answer.lock().unwrap() =
            (200, json!({"response_type": "ephemeral", "text": "Nothing open &amp; quiet"}).to_string());
        let sent = world.command("U0KIM", "C0OPS", "/countersign", "open <x>").await.unwrap();
        let fields: Vec<(String, String)> =
            url::form_urlencoded::parse(sent.raw.as_bytes()).into_owned().collect();
        assert!(fields.contains(&("text".into(), "open <x>".into())));
        assert!(fields.contains(&("is_enterprise_install".into(), "false".into())));
        assert_eq!(world.told("U0KIM"), ["Nothing open & quiet"]);

        let event = world.open_home("U0DANA", TEAM).await.unwrap().payload();
        assert_eq!((&event["type"], &event["event"]["tab"]), (&json!("event_callback"), &json!("home")));
        world.event_again(&event, Some((1, "http_timeout"))).await;
        let (door, headers, _) = app.inbox.lock().unwrap().pop().unwrap();
        assert_eq!((door.as_str(), headers["x-slack-retry-num"].to_str().unwrap()), ("events", "1"));

        let home = json!({"user_id": "U0DANA", "view": {"type": "home", "blocks": card()}});
        assert_eq!(api.post(BOT_TOKEN, "views.publish", &home).await["ok"], true);
        let spot = Spot::View { id: world.home("U0DANA").unwrap().id };
        let sent = world.press_raw("U0DANA", &spot, "Approve", &Manner::default(), |_| {}).await.unwrap();
        let payload = sent[0].payload();
        assert_eq!((&payload["container"]["type"], payload.get("response_url")), (&json!("view"), None));
        world.switch(|switches| switches.home_tab = false);
        assert_eq!(api.post(BOT_TOKEN, "views.publish", &home).await["error"], "not_enabled");
    })
    .await;
}

#[tokio::test]
async fn the_control_api_acts_and_shows_without_secrets() {
    let world = world();
    served(&world, async |api| {
        let ts = posted(api, "C0OPS").await;
        let press = json!({"user": "U0KIM", "at": {"spot": "message", "channel": "C0OPS", "ts": ts}, "control": "Approve",
            "manner": {"signing": {"how": "bad"}}, "replace": {"/team": null}});
        let done: Value = api.raw("/slack/control/press", &press).await.unwrap().json().await.unwrap();
        assert_eq!(done["deliveries"][0]["status"], 200, "{done}");
        assert_eq!(world.deliveries()[0].payload()["team"], Value::Null);
        let wrong = api.raw("/slack/control/press", &json!({"user": "U0KIM", "nonsense": 1})).await.unwrap();
        assert_eq!(wrong.status(), 400);
        let none = json!({"user": "U0KIM", "at": {"spot": "message", "channel": "C0OPS", "ts": ts}, "control": "Launch"});
        assert_eq!(api.raw("/slack/control/press", &none).await.unwrap().status(), 409);
        let rule = json!({"method": "chat.update", "fault": {"fault": "html"}});
        assert_eq!(api.raw("/slack/control/faults", &rule).await.unwrap().status(), 204);
        assert_eq!(world.faults().take("chat.update"), Some(Fault::Html));
        let dump = world.dump().to_string() + &json!(world.requests()).to_string();
        assert!(dump.contains("Approve"));
        assert!(!dump.contains("xoxb") && !dump.contains(SIGNING_SECRET), "{dump}");
    })
    .await;
}

#[tokio::test]
async fn whoever_waits_is_told_of_changes_and_of_nothing() {
    let world = world();
    let wait = world.until("a message", Duration::from_secs(5), |world| world.messages("C0OPS").pop());
    let (found, _) = tokio::join!(wait, async { world.say("U0KIM", "C0OPS", "hello <x>") });
    assert_eq!(found.unwrap().text, "hello &lt;x&gt;");
    let nothing = world.until("pigs", Duration::from_millis(20), |_| None::<()>).await;
    assert!(nothing.unwrap_err().contains("pigs"));
}

#[tokio::test]
async fn an_app_that_behaves_has_no_complaints_and_every_breach_is_named() {
    let world = world();
    served(&world, async |api| {
        posted(api, "C0OPS").await;
        assert_eq!(world.complaints(), Vec::<String>::new());
        world.faults().add(Rule::next("chat.postMessage", Fault::Status { code: 429, retry_after: Some(9), body: None }));
        api.raw_as(BOT_TOKEN, "chat.postMessage", &json!({"channel": "C0OPS", "text": "x", "blocks": card()})).await.unwrap();
        let press = world.press("U0KIM", "C0OPS", &world.messages("C0OPS")[0].ts, "Approve").await.unwrap();
        let leak = json!({"channel": "C0OPS", "text": press.payload()["response_url"], "blocks": [{"type": "actions", "elements": []}]});
        api.post(BOT_TOKEN, "chat.postMessage", &leak).await;
        api.post(BOT_TOKEN, "chat.postEphemeral", &json!({"channel": "C0OPS", "user": "U0KIM", "text": BOT_TOKEN})).await;
        let found = world.complaints().join("\n");
        for part in ["request 3 (chat.postMessage): came before", "json-pointer:/blocks/0/elements", "request 3 (chat.postMessage): shows a response_url",
            "request 4 (chat.postEphemeral): has no blocks", "request 4 (chat.postEphemeral): shows a token"] {
            assert!(found.contains(part), "{part} is not in {found}");
        }
        assert_eq!(found.lines().count(), 5, "{found}");
        world.forget();
        assert_eq!((world.complaints().len(), world.count("chat.postMessage")), (0, 0));
        world.faults().clear();
        world.pace(0);
        posted(api, "C0OPS").await;
        assert_eq!((world.requests()[0].seq, world.requests()[0].ok()), (5, true));
    })
    .await;
}

#[tokio::test]
async fn archiving_puts_the_bot_out_and_ids_can_change() {
    let world = world();
    served(&world, async |api| {
        let ts = posted(api, "C0OPS").await;
        world.archive("C0OPS");
        let post = json!({"channel": "C0OPS", "text": "x"});
        assert_eq!(api.post(BOT_TOKEN, "chat.postMessage", &post).await["error"], "is_archived");
        world.unarchive("C0OPS");
        assert_eq!(api.post(BOT_TOKEN, "chat.postMessage", &post).await["error"], "not_in_channel");
        world.edit_channel("C0OPS", |channel| {
            channel.members.insert("U0BOT".into());
        });
        world.migrate_channel("C0OPS", "C0NEW");
        let edit = |channel: &str| json!({"channel": channel, "ts": ts, "text": "x"});
        assert_eq!(api.post(BOT_TOKEN, "chat.update", &edit("C0OPS")).await["error"], "channel_not_found");
        assert_eq!(api.post(BOT_TOKEN, "chat.update", &edit("C0NEW")).await["ok"], true);
        world.faults().add(Rule::next("chat.update", Fault::Refuse { error: String::new() }));
        assert_eq!(api.post(BOT_TOKEN, "chat.update", &edit("C0NEW")).await, json!({"ok": false}));
        let group = json!({"id": "S0RELEASE", "users": ["U0SAM"]});
        api.raw("/slack/control/group", &group).await.unwrap().error_for_status().unwrap();
        let users = api.get(BOT_TOKEN, "usergroups.users.list", &[("usergroup", "S0RELEASE")]).await;
        assert_eq!(users["users"], json!(["U0SAM"]));
        let kind = json!({"id": "U0SAM", "kind": "guest"});
        api.raw("/slack/control/user", &kind).await.unwrap().error_for_status().unwrap();
        assert_eq!(
            api.get(BOT_TOKEN, "users.info", &[("user", "U0SAM")]).await["user"]["is_restricted"],
            true
        );
    })
    .await;
}

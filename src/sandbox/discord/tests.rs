//! Driving an application over loopback: posts, presses, forms, commands, signatures, the three seconds.

use super::acme::*;
use super::*;
use crate::sandbox::faults::{Fault, Rule};
use crate::sandbox::time::Time;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

pub(super) const START: i64 = 1_796_000_000_000;

pub(super) fn world() -> Arc<DiscordWorld> {
    let world = DiscordWorld::acme(Time::manual(START));
    world.pace(0);
    world
}

/// A client of the stand-in.
pub(super) struct Api {
    pub(super) root: String,
    pub(super) http: reqwest::Client,
}

impl Api {
    pub(super) fn request(&self, method: &str, path: &str) -> reqwest::RequestBuilder {
        let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
        let request = self.http.request(method, format!("{}/discord/api/v10{path}", self.root));
        request.header("User-Agent", "DiscordBot (https://countersign.example, 0.1)")
    }

    /// With the bot token; status and body, `null` for none.
    pub(super) async fn bot(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let mut request = self.request(method, path).header("Authorization", format!("Bot {TOKEN}"));
        if !body.is_null() {
            request = request.json(body);
        }
        Self::read(request.send().await.unwrap()).await
    }

    /// Without any token but that of the path.
    pub(super) async fn bare(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        Self::read(self.request(method, path).json(body).send().await.unwrap()).await
    }

    pub(super) async fn read(response: reqwest::Response) -> (u16, Value) {
        let status = response.status().as_u16();
        let text = response.text().await.unwrap();
        (
            status,
            if text.is_empty() { Value::Null } else { serde_json::from_str(&text).unwrap_or(json!(text)) },
        )
    }

    /// Posts a message; its id.
    pub(super) async fn posted(&self, channel: &str, body: Value) -> String {
        let (status, answer) = self.bot("POST", &format!("/channels/{channel}/messages"), &body).await;
        assert_eq!(status, 200, "{answer}");
        answer["id"].as_str().unwrap().to_owned()
    }

    /// Answers a click over REST.
    pub(super) async fn callback(&self, world: &DiscordWorld, click: &str, body: Value) -> (u16, Value) {
        let token = world.click_token(click).unwrap();
        self.bare("POST", &format!("/interactions/{click}/{token}/callback"), &body).await
    }
}

/// What reached the application, and what it answers: status, content type, body.
#[derive(Clone)]
pub(super) struct App {
    pub(super) inbox: Arc<Mutex<Vec<(HeaderMap, Bytes)>>>,
    pub(super) answer: Arc<Mutex<(u16, &'static str, String)>>,
}

impl App {
    pub(super) fn says(&self, status: u16, body: &Value) {
        let text = if body.is_null() { String::new() } else { body.to_string() };
        *self.answer.lock().unwrap() = (status, "application/json", text);
    }
}

async fn inbound(State(app): State<App>, headers: HeaderMap, body: Bytes) -> Response {
    app.inbox.lock().unwrap().push((headers, body));
    let (status, kind, answer) = app.answer.lock().unwrap().clone();
    (StatusCode::from_u16(status).unwrap(), [(header::CONTENT_TYPE, kind)], answer).into_response()
}

/// Serves the world while `test` runs.
pub(super) async fn served(world: &Arc<DiscordWorld>, test: impl AsyncFnOnce(&Api)) {
    served_with_app(world, async |api, _| test(api).await).await;
}

/// The same with an application at the endpoint, which is not set yet.
pub(super) async fn served_with_app(world: &Arc<DiscordWorld>, test: impl AsyncFnOnce(&Api, (&App, &str))) {
    crate::net::init();
    let inbox = Arc::new(Mutex::new(Vec::new()));
    let app = App { inbox, answer: Arc::new(Mutex::new((200, "application/json", String::new()))) };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let root = format!("http://{}", listener.local_addr().unwrap());
    world.set_base_url(&root);
    let door = axum::Router::new().route("/app", axum::routing::post(inbound)).with_state(app.clone());
    let serve = axum::serve(listener, router(Arc::clone(world)).merge(door));
    let http = crate::net::client(crate::net::Limits::default()).unwrap();
    let endpoint = format!("{root}/app");
    let api = Api { root, http };
    tokio::select! {
        served = async { serve.await } => panic!("{served:?}"),
        () = test(&api, (&app, &endpoint)) => {}
    }
}

/// A card with two buttons, a select and a link.
pub(super) fn card() -> Value {
    json!({"content": "Approval: ledger-2 asks", "embeds": [{"title": "Refund", "description": "Wants **to** pay `x`",
            "fields": [{"name": "Amount", "value": "120"}], "footer": {"text": "7Qk2"}}],
        "components": [{"type": 1, "components": [
            {"type": 2, "style": 3, "label": "Approve", "custom_id": "c1.a.do"},
            {"type": 2, "style": 4, "label": "Deny with reason…", "custom_id": "c1.b.form"},
            {"type": 2, "style": 5, "label": "Details", "url": "https://app.example/x"}]},
            {"type": 1, "components": [{"type": 3, "custom_id": "c1.s", "placeholder": "Pick", "max_values": 2,
                "options": [{"label": "One", "value": "0"}, {"label": "Two", "value": "1"}, {"label": "Three", "value": "2"}]}]}],
        "allowed_mentions": {"parse": []}})
}

#[tokio::test]
async fn a_card_is_read_as_a_person_reads_it() {
    let world = world();
    served(&world, async |api| {
        let id = api.posted(OPS, card()).await;
        assert_eq!(
            world.reads(OPS, &id),
            "Approval: ledger-2 asks\nRefund\nWants to pay x\nAmount: 120\n7Qk2\n\
             [Approve] [Deny with reason…] [Details]\nPick ( One | Two | Three )"
        );
        assert_eq!(world.buttons(OPS, &id), ["Approve", "Deny with reason…", "Details"]);
        assert_eq!(
            (world.fields(OPS, &id), world.notice(OPS, &id)),
            (vec!["Pick".to_owned()], "Approval: ledger-2 asks".into())
        );
        assert_eq!(made_ms(&id), START);
        let edit = json!({"content": "Approved", "embeds": [], "components": []});
        let (status, answer) = api.bot("PATCH", &format!("/channels/{OPS}/messages/{id}"), &edit).await;
        assert_eq!(
            (status, &answer["content"], answer["edited_timestamp"].is_string()),
            (200, &json!("Approved"), true)
        );
        assert_eq!(world.read_over_time(OPS, &id).len(), 2);
        assert!(world.buttons(OPS, &id).is_empty());
    })
    .await;
}

#[tokio::test]
async fn a_press_over_http_is_signed_and_answered_in_the_body() {
    let world = world();
    served_with_app(&world, async |api, (app, endpoint)| {
        let id = api.posted(OPS, card()).await;
        world.set_endpoint_unchecked(APP, Some(endpoint));
        app.says(200, &json!({"type": 6}));
        let pressed = world.press(DANA, OPS, &id, "Approve").await.unwrap();
        assert_eq!((pressed.way, pressed.status, pressed.answered), (Way::Endpoint, 200, Some(6)));
        let (headers, body) = app.inbox.lock().unwrap().pop().unwrap();
        let text = |name: &str| headers[name].to_str().unwrap().to_owned();
        assert_eq!(text("x-signature-ed25519"), signature(&SEED, &text("x-signature-timestamp"), &body));
        let payload: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(payload["member"]["user"]["id"], DANA);
        assert_eq!(payload["member"]["roles"], json!([RELEASE, PINGED]));
        assert_eq!(payload["data"], json!({"id": 2, "component_type": 2, "custom_id": "c1.a.do"}));
        assert_eq!(payload["message"]["components"][0]["components"][0]["label"], "Approve");
        assert_eq!((&payload["context"], &payload["guild_id"]), (&json!(0), &json!(GUILD)));
        // A private answer, which only Dana sees.
        app.says(
            200,
            &json!({"type": 4, "data": {"content": "No.", "flags": 64, "allowed_mentions": {"parse": []}}}),
        );
        world.press(DANA, OPS, &id, "Approve").await.unwrap();
        assert_eq!((world.told(DANA), world.told(KIM)), (vec!["No.".to_owned()], vec![]));
        // What Discord cannot use is a failure to the person and held against the application.
        app.says(200, &json!({"type": 4, "data": {"content": ""}}));
        assert!(!world.press(KIM, OPS, &id, "Approve").await.unwrap().acked());
        app.says(500, &Value::Null);
        assert!(!world.press(KIM, OPS, &id, "Approve").await.unwrap().acked());
        assert_eq!(world.warnings().iter().filter(|one| one.user == KIM).count(), 2);
        assert_eq!(world.complaints().len(), 3, "{:?}", world.complaints());
        // A person uses only what is there for them.
        assert!(matches!(world.pressed(DANA, OPS, &id, "Details"), Err(PressError::Input(_))));
        assert!(matches!(world.pressed(DANA, OPS, &id, "Nope"), Err(PressError::NoControl { .. })));
        assert_eq!(world.pressed(RILEY, OPS, &id, "Approve"), Err(PressError::NotSeen));
    })
    .await;
}

#[tokio::test]
async fn the_first_response_has_three_seconds_and_comes_once() {
    let world = world();
    served(&world, async |api| {
        let id = api.posted(OPS, card()).await;
        let click = |label: &str| world.pressed(DANA, OPS, &id, label).unwrap()["id"].as_str().unwrap().to_owned();
        let first = click("Approve");
        let token = world.click_token(&first).unwrap();
        let follow = format!("/webhooks/{APP}/{token}");
        assert_eq!(api.bare("POST", &follow, &json!({"content": "x"})).await.1["code"], 10015);
        assert_eq!(api.callback(&world, &first, json!({"type": 6})).await, (204, Value::Null));
        assert_eq!(api.callback(&world, &first, json!({"type": 6})).await.1["code"], 40060);
        let late = click("Approve");
        world.time().advance(ACK_MS + 1);
        assert_eq!(api.callback(&world, &late, json!({"type": 6})).await.1["code"], 10062);
        let (status, answer) = api.bare("POST", "/interactions/1/x/callback", &json!({"type": 6})).await;
        assert_eq!((status, &answer["code"]), (404, &json!(10062)));
        // The token lives on; its original is the card, and a follow-up may be private.
        let private = json!({"content": "Recorded", "flags": 64, "allowed_mentions": {"parse": []}});
        let (status, told) = api.bare("POST", &follow, &private).await;
        assert_eq!((status, &told["flags"]), (200, &json!(64)));
        let original = format!("{follow}/messages/@original");
        assert_eq!(api.bare("GET", &original, &Value::Null).await.1["id"], id.as_str());
        assert_eq!(api.bare("PATCH", &original, &json!({"content": "Done", "components": []})).await.0, 200);
        assert!(world.reads(OPS, &id).starts_with("Done"));
        let told = told["id"].as_str().unwrap();
        assert_eq!(api.bot("PATCH", &format!("/channels/{OPS}/messages/{told}"), &json!({"content": "x"})).await.1["code"], 10008);
        assert_eq!(api.bare("DELETE", &format!("{follow}/messages/{told}"), &Value::Null).await.0, 204);
        assert!(world.ephemerals(DANA).is_empty());
        world.time().advance(TOKEN_MS);
        let (status, over) = api.bare("POST", &follow, &private).await;
        assert_eq!((status, &over["code"]), (401, &json!(50027)));
        assert_eq!(api.bare("POST", &format!("/webhooks/{APP}/nope"), &private).await.1["code"], 10015);
    })
    .await;
}

#[tokio::test]
async fn a_deferred_answer_is_filled_and_an_update_changes_the_card() {
    let world = world();
    served(&world, async |api| {
        let id = api.posted(OPS, card()).await;
        let click = || world.pressed(DANA, OPS, &id, "Approve").unwrap()["id"].as_str().unwrap().to_owned();
        let update = click();
        let changed = json!({"type": 7, "data": {"content": "Changed", "components": [], "allowed_mentions": {"parse": []}}});
        assert_eq!(api.callback(&world, &update, json!({"type": 6, "data": {}})).await.1["code"], 50035);
        // (The press is of the card as it was.)
        let deferred = click();
        assert_eq!(api.callback(&world, &update, changed).await.0, 204);
        assert!(world.reads(OPS, &id).starts_with("Changed"));
        let deferral = json!({"type": 5, "data": {"flags": 64}});
        assert_eq!(api.callback(&world, &deferred, deferral).await.0, 204);
        assert_eq!(world.told(DANA), ["thinking…"]);
        let token = world.click_token(&deferred).unwrap();
        let path = format!("/webhooks/{APP}/{token}");
        let (_, filled) = api.bare("PATCH", &format!("{path}/messages/@original"), &json!({"content": "3 wait"})).await;
        assert_eq!((&filled["flags"], world.told(DANA)), (&json!(64), vec!["3 wait".to_owned()]));
        // With `with_response` the first response is described.
        let id = api.posted(OPS, card()).await;
        let last = world.pressed(DANA, OPS, &id, "Approve").unwrap();
        let (last, token) = (last["id"].as_str().unwrap(), last["token"].as_str().unwrap());
        let reply = json!({"type": 4, "data": {"content": "hi <@1>", "flags": 64}});
        let (status, body) = api.bare("POST", &format!("/interactions/{last}/{token}/callback?with_response=true"), &reply).await;
        assert_eq!((status, &body["interaction"]["response_message_ephemeral"]), (200, &json!(true)));
        assert_eq!(body["resource"]["message"]["interaction_metadata"]["interacted_message_id"], id.as_str());
    })
    .await;
}

#[tokio::test]
async fn a_form_opens_is_filled_and_closes_when_it_is_answered() {
    let world = world();
    served_with_app(&world, async |api, (app, endpoint)| {
        let id = api.posted(OPS, card()).await;
        world.set_endpoint_unchecked(APP, Some(endpoint));
        let form = json!({"type": 9, "data": {"custom_id": "c1.m", "title": "Deny refund", "components": [
            {"type": 18, "label": "Reason", "description": "Kept", "component": {"type": 4, "custom_id": "reason", "style": 2,
                "max_length": 20, "required": false}},
            {"type": 18, "label": "Scope", "component": {"type": 3, "custom_id": "scope", "options": [
                {"label": "This one", "value": "0"}, {"label": "All", "value": "1"}]}}]}});
        app.says(200, &form);
        assert!(world.press(DANA, OPS, &id, "Deny with reason…").await.unwrap().acked());
        assert_eq!(
            world.modal_reads(DANA).unwrap(),
            "Deny refund\nReason: ____ (Kept)\nScope: ( This one | All )"
        );
        assert!(world.fill(DANA, "Reason", &Input::text(&"x".repeat(21))).is_err());
        assert!(matches!(world.submit(DANA).await, Err(PressError::Input(_))), "the scope is required");
        world.fill(DANA, "Reason", &Input::text("over budget")).unwrap();
        world.fill(DANA, "Scope", &Input::choose(&["All"])).unwrap();
        app.says(500, &Value::Null);
        assert!(!world.submit(DANA).await.unwrap().acked());
        assert!(world.modal(DANA).is_some(), "it stays when nobody answers");
        app.says(200, &json!({"type": 6}));
        let submitted = world.submit(DANA).await.unwrap();
        assert!(submitted.acked() && world.modal(DANA).is_none());
        let payload = submitted.payload();
        assert_eq!(payload["type"], 5);
        assert_eq!(payload["message"]["id"], id.as_str());
        assert_eq!(
            payload["data"]["components"],
            json!([{"type": 18, "id": 1, "component": {"type": 4, "id": 2, "custom_id": "reason", "value": "over budget"}},
                {"type": 18, "id": 3, "component": {"type": 3, "id": 4, "custom_id": "scope", "values": ["1"]}}])
        );
        // A form does not open from a form, and the deprecated rows still work.
        app.says(200, &json!({"type": 9, "data": {"custom_id": "c1.m", "title": "Why", "components": [{"type": 1, "components": [
            {"type": 4, "custom_id": "reason", "style": 1, "label": "Reason", "required": false}]}]}}));
        world.press(DANA, OPS, &id, "Deny with reason…").await.unwrap();
        assert!(!world.submit(DANA).await.unwrap().acked());
        app.says(200, &json!({"type": 4, "data": {"content": "Denied", "flags": 64}}));
        let submitted = world.submit(DANA).await.unwrap();
        assert_eq!(submitted.payload()["data"]["components"][0]["components"][0]["value"], "");
        assert!(submitted.acked());
    })
    .await;
}

#[tokio::test]
async fn selects_commands_and_direct_messages() {
    let world = world();
    served_with_app(&world, async |api, (app, endpoint)| {
        let id = api.posted(OPS, card()).await;
        world.set_endpoint_unchecked(APP, Some(endpoint));
        app.says(200, &json!({"type": 6}));
        let chosen = world.choose(DANA, OPS, &id, "Pick", &["Three", "One"]).await.unwrap();
        assert_eq!(chosen.payload()["data"]["values"], json!(["2", "0"]));
        assert!(world.choose(DANA, OPS, &id, "Pick", &["One", "Two", "Three"]).await.is_err());
        assert!(world.choose(DANA, OPS, &id, "Pick", &["Four"]).await.is_err());
        let set = json!([{"name": "countersign", "type": 1, "description": "Approvals", "contexts": [0, 1],
            "options": [{"type": 1, "name": "open", "description": "What waits"}]}]);
        let (status, made) = api.bot("PUT", &format!("/applications/{APP}/commands"), &set).await;
        assert_eq!((status, made[0]["id"].is_string()), (200, true), "{made}");
        app.says(200, &json!({"type": 5, "data": {"flags": 64}}));
        let run = world.command(DANA, OPS, "/countersign open").await.unwrap();
        assert_eq!(run.payload()["data"]["options"], json!([{"name": "open", "type": 1, "options": []}]));
        assert!(run.payload().get("message").is_none());
        assert!(matches!(world.command(DANA, OPS, "/nope").await, Err(PressError::NoControl { .. })));
        assert!(world.command(DANA, ARCHIVED, "/countersign open").await.is_err());
        let direct = world.command(DANA, DM_DANA, "/countersign open").await.unwrap().payload();
        assert_eq!(
            (&direct["user"]["id"], &direct["context"], direct.get("member")),
            (&json!(DANA), &json!(1), None)
        );
    })
    .await;
}

#[tokio::test]
async fn an_endpoint_is_taken_only_when_it_tells_good_from_bad() {
    let world = world();
    served_with_app(&world, async |_, (app, endpoint)| {
        app.says(200, &json!({"type": 1}));
        let error = world.set_endpoint(APP, Some(endpoint)).await.unwrap_err();
        assert!(error.contains("bad signature"), "{error}");
        assert_eq!(world.app(APP).unwrap().endpoint, None);
        app.says(401, &Value::Null);
        assert!(world.set_endpoint(APP, Some(endpoint)).await.is_err());
        assert!(
            world.set_endpoint(APP, Some("https://example.com/x")).await.unwrap_err().contains("loopback")
        );
    })
    .await;
}

#[tokio::test]
async fn a_click_over_rest_is_answered_202_and_trouble_on_the_way_is_scripted() {
    let world = world();
    served_with_app(&world, async |api, (app, endpoint)| {
        let id = api.posted(OPS, card()).await;
        world.set_endpoint_unchecked(APP, Some(endpoint));
        app.says(202, &Value::Null);
        let payload = world.pressed(DANA, OPS, &id, "Approve").unwrap();
        let click = payload["id"].as_str().unwrap();
        assert_eq!(api.callback(&world, click, json!({"type": 6})).await.0, 204);
        assert!(world.deliver_payload(&payload, &Manner::default()).await[0].acked());
        assert_eq!(world.deliver_payload(&payload, &Manner::twice()).await.len(), 2);
        app.inbox.lock().unwrap().clear();
        world.faults().add(Rule::next("endpoint", Fault::Hang { ms: 0 }));
        assert!(!world.press(DANA, OPS, &id, "Approve").await.unwrap().acked());
        assert!(app.inbox.lock().unwrap().is_empty());
        let bad = world
            .press_raw(DANA, OPS, &id, "Approve", &Manner::signed(Signing::NonAscii), |_| {})
            .await
            .unwrap();
        assert_eq!(bad[0].status, 202);
        assert!(app.inbox.lock().unwrap()[0].0["x-signature-ed25519"].to_str().is_err());
    })
    .await;
}

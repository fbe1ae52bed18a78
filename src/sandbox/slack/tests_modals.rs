//! Modals on each other, App Homes, questions before a press, and events with their retries.

use super::acme::{BOT_TOKEN, TEAM};
use super::tests::{Api, App, posted, served, served_with_app, world};
use super::*;
use serde_json::{Value, json};

fn answer(app: &App, status: u16, body: &Value) {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    *app.answer.lock().unwrap() = (status, body);
}

fn modal(title: &str) -> Value {
    let plain = |text: &str| json!({"type": "plain_text", "text": text});
    json!({"type": "modal", "title": plain(title), "submit": plain("Send"), "notify_on_close": true, "blocks": [
        {"type": "input", "block_id": "why", "label": plain("Reason"),
            "element": {"type": "plain_text_input", "action_id": "text", "min_length": 3, "max_length": 10}},
        {"type": "input", "block_id": "n", "optional": true, "label": plain("Number"),
            "element": {"type": "number_input", "action_id": "n", "is_decimal_allowed": false, "max_value": "5"}},
        {"type": "actions", "block_id": "more", "elements": [{"type": "button", "action_id": "page", "text": plain("Next page")}]}]})
}

fn trigger(app: &App) -> String {
    let (_, _, body) = app.inbox.lock().unwrap().pop().unwrap();
    let (_, payload) = url::form_urlencoded::parse(&body).next().unwrap();
    let payload: Value = serde_json::from_str(&payload).unwrap();
    payload["trigger_id"].as_str().unwrap().to_owned()
}

async fn with_view(api: &Api, method: &str, trigger: &str, view: &Value) -> Value {
    api.post(BOT_TOKEN, method, &json!({"trigger_id": trigger, "view": view})).await
}

#[tokio::test]
async fn modals_stand_on_each_other_up_to_three() {
    let world = world();
    served_with_app(&world, async |api, app| {
        let ts = posted(api, "C0OPS").await;
        world.press("U0DANA", "C0OPS", &ts, "Approve").await.unwrap();
        let unopened = trigger(app);
        assert_eq!(with_view(api, "views.push", &unopened, &modal("One")).await["error"], "not_found");
        world.press("U0DANA", "C0OPS", &ts, "Approve").await.unwrap();
        let opened = with_view(api, "views.open", &trigger(app), &modal("One")).await;
        assert_eq!(opened["ok"], true, "{opened}");
        let mut top = opened["view"]["id"].as_str().unwrap().to_owned();
        for (title, error) in [("Two", None), ("Three", None), ("Four", Some("push_limit_reached"))] {
            let spot = Spot::View { id: top.clone() };
            world.press_raw("U0DANA", &spot, "Next page", &Manner::default(), |_| {}).await.unwrap();
            let pushed = with_view(api, "views.push", &trigger(app), &modal(title)).await;
            assert_eq!(pushed["error"].as_str(), error, "{pushed}");
            if error.is_none() {
                assert_eq!(pushed["view"]["previous_view_id"], top.as_str());
                assert_eq!(pushed["view"]["root_view_id"], opened["view"]["id"]);
                top = pushed["view"]["id"].as_str().unwrap().to_owned();
            }
        }
        // Only the one in front can be used.
        let root = opened["view"]["id"].as_str().unwrap();
        assert_eq!(world.submit("U0DANA", root).await.unwrap_err(), PressError::Nothing);
        let closed = world.close_view("U0DANA", &top).await.unwrap().unwrap();
        assert_eq!(closed.payload()["type"], "view_closed");
        assert_eq!(world.modals("U0DANA").len(), 2);

        // `hash` guards an update.
        let under = world.modals("U0DANA").pop().unwrap();
        let update = async |hash: &str| {
            let body = json!({"view_id": under.id, "hash": hash, "view": modal("New")});
            api.post(BOT_TOKEN, "views.update", &body).await
        };
        assert_eq!(update(&under.hash).await["ok"], true);
        assert_eq!(update(&under.hash).await["error"], "hash_conflict");
        let other = json!({"view_id": "V0NONE", "view": modal("New")});
        assert_eq!(api.post(BOT_TOKEN, "views.update", &other).await["error"], "not_found");
    })
    .await;
}

#[tokio::test]
async fn a_submission_is_checked_by_the_client_and_answered_by_the_app() {
    let world = world();
    served_with_app(&world, async |api, app| {
        let ts = posted(api, "C0OPS").await;
        world.press("U0DANA", "C0OPS", &ts, "Approve").await.unwrap();
        let opened = with_view(api, "views.open", &trigger(app), &modal("One")).await;
        let id = opened["view"]["id"].as_str().unwrap().to_owned();
        let spot = Spot::View { id: id.clone() };
        let fill = async |field: &str, text: &str| {
            let typed = Input::Text { text: text.into() };
            world.fill("U0DANA", &spot, field, &typed).await
        };
        let submit = async || world.submit("U0DANA", &id).await;
        assert_eq!(submit().await.unwrap_err(), PressError::Required("Reason".into()));
        assert!(fill("Reason", "far too long a text").await.is_err());
        fill("Reason", "no").await.unwrap();
        assert_eq!(submit().await.unwrap_err().to_string(), "not possible: Reason: at least 3 characters");
        fill("Reason", "because").await.unwrap();
        for (number, why) in [("x", "not a number"), ("1.5", "not a whole number"), ("6", "at most 5")] {
            fill("Number", number).await.unwrap();
            assert_eq!(submit().await.unwrap_err().to_string(), format!("not possible: Number: {why}"));
        }
        fill("Number", "5").await.unwrap();

        answer(app, 200, &json!({"response_action": "errors", "errors": {"why": "Not that."}}));
        submit().await.unwrap();
        assert_eq!(world.modals("U0DANA")[0].errors, json!({"why": "Not that."}));
        // What Slack could do nothing with: a warning, and the view stays as it is.
        for wrong in [
            json!({"response_action": "errors", "errors": {"more": "No input."}}),
            json!({"response_action": "vanish"}),
            json!({"response_action": "update", "view": {"type": "home", "blocks": []}}),
        ] {
            answer(app, 200, &wrong);
            submit().await.unwrap();
        }
        assert_eq!((world.warnings().len(), world.complaints().len()), (3, 3), "{:?}", world.complaints());
        assert_eq!(world.modals("U0DANA")[0].view["title"]["text"], "One");

        answer(app, 200, &json!({"response_action": "push", "view": modal("On top")}));
        submit().await.unwrap();
        let top = world.modals("U0DANA").pop().unwrap();
        assert_eq!(top.previous.as_deref(), Some(id.as_str()));
        answer(app, 200, &json!({"response_action": "clear"}));
        let typed = Input::Text { text: "enough".into() };
        world.fill("U0DANA", &Spot::View { id: top.id.clone() }, "Reason", &typed).await.unwrap();
        let submitted = world.submit("U0DANA", &top.id).await.unwrap();
        assert_eq!(submitted.payload()["view"]["state"]["values"]["why"]["text"]["value"], "enough");
        assert!(world.modals("U0DANA").is_empty());
    })
    .await;
}

#[tokio::test]
async fn a_button_that_asks_first_is_pressed_only_when_accepted() {
    let world = world();
    served_with_app(&world, async |api, app| {
        let plain = |text: &str| json!({"type": "plain_text", "text": text});
        let confirm = json!({"title": plain("Sure?"), "text": plain("It goes live."), "confirm": plain("Yes"), "deny": plain("No")});
        let blocks = json!([{"type": "actions", "elements": [
            {"type": "button", "action_id": "go", "value": "k", "text": plain("Go"), "confirm": confirm},
            {"type": "button", "action_id": "stop", "value": "k", "text": plain("Stop")}]}]);
        let sent = api.post(BOT_TOKEN, "chat.postMessage", &json!({"channel": "C0OPS", "text": "x", "blocks": blocks})).await;
        let spot = Spot::message("C0OPS", sent["ts"].as_str().unwrap());
        assert_eq!(world.asks_first("U0KIM", &spot, "Go").unwrap().unwrap()["title"]["text"], "Sure?");
        assert!(world.press_asked("U0KIM", &spot, "Go", false).await.unwrap().is_none());
        assert!(app.inbox.lock().unwrap().is_empty());
        let pressed = world.press_asked("U0KIM", &spot, "Go", true).await.unwrap().unwrap();
        assert_eq!(pressed.payload()["actions"][0]["confirm"]["text"]["text"], "It goes live.");
        assert!(world.press_asked("U0KIM", &spot, "Stop", true).await.is_err(), "it asks nothing");
    })
    .await;
}

#[tokio::test]
async fn threads_close_and_permalinks_name_their_thread() {
    let world = world();
    served(&world, async |api| {
        let root = posted(api, "C0OPS").await;
        let reply = json!({"channel": "C0OPS", "text": "x", "thread_ts": root});
        let replied = api.post(BOT_TOKEN, "chat.postMessage", &reply).await;
        let query = [("channel", "C0OPS"), ("message_ts", replied["ts"].as_str().unwrap())];
        let link = api.get(BOT_TOKEN, "chat.getPermalink", &query).await["permalink"].clone();
        assert!(link.as_str().unwrap().ends_with(&format!("?thread_ts={root}&cid=C0OPS")), "{link}");
        world.lock_thread("C0OPS", &root);
        let refused = api.post(BOT_TOKEN, "chat.postMessage", &reply).await;
        assert_eq!(refused["error"], "restricted_action_thread_locked");
        let nowhere = json!({"channel": "C0OPS", "text": "x", "thread_ts": "1.000001"});
        assert_eq!(
            api.post(BOT_TOKEN, "chat.postMessage", &nowhere).await["error"],
            "cannot_reply_to_message"
        );
    })
    .await;
}

#[tokio::test]
async fn what_happens_is_told_and_told_again() {
    let world = world();
    served_with_app(&world, async |api, app| {
        let told =
            async |happening: Happening| world.happens(&happening).await.unwrap().payload()["event"].clone();
        let archived = told(Happening::Archived { channel: "C0OPS".into(), by: "U0DANA".into() }).await;
        assert_eq!((&archived["type"], &archived["channel"]), (&json!("channel_archive"), &json!("C0OPS")));
        let post = json!({"channel": "C0OPS", "text": "x"});
        assert_eq!(api.post(BOT_TOKEN, "chat.postMessage", &post).await["error"], "is_archived");
        let back = told(Happening::Unarchived { channel: "C0OPS".into(), by: "U0DANA".into() }).await;
        assert_eq!(back["type"], "channel_unarchive");
        assert_eq!(api.post(BOT_TOKEN, "chat.postMessage", &post).await["error"], "not_in_channel");
        let joined = told(Happening::Joined { channel: "C0OPS".into(), user: "U0BOT".into() }).await;
        assert_eq!(
            (&joined["type"], &joined["channel_type"]),
            (&json!("member_joined_channel"), &json!("C"))
        );
        assert_eq!(api.post(BOT_TOKEN, "chat.postMessage", &post).await["ok"], true);
        let private = told(Happening::Archived { channel: "C0PRIVATE".into(), by: "U0DANA".into() }).await;
        assert_eq!(private["type"], "group_archive");
        let moved = told(Happening::ChannelIdChanged { old: "C0RELEASES".into(), new: "C0NEW".into() }).await;
        assert_eq!(
            (&moved["old_channel_id"], &moved["new_channel_id"]),
            (&json!("C0RELEASES"), &json!("C0NEW"))
        );
        let home =
            told(Happening::AppHomeOpened { team: TEAM.into(), user: "U0DANA".into(), tab: "home".into() })
                .await;
        assert_eq!((&home["tab"], &home["channel"]), (&json!("home"), &json!("D0DANA")));

        // Nobody takes it: at once, after a minute, after five, and no more; the same body each time.
        answer(app, 500, &Value::Null);
        app.inbox.lock().unwrap().clear();
        let gone = told(Happening::TokensRevoked { team: TEAM.into() }).await;
        assert_eq!(gone["tokens"]["bot"], json!(["U0BOT"]));
        assert_eq!(api.post(BOT_TOKEN, "auth.test", &json!({})).await["error"], "token_revoked");
        let mut numbers = Vec::new();
        for wait in [0, 59_999, 1, 239_999, 1, 600_000] {
            world.time().advance(wait);
            numbers.extend(world.retry_due().await.iter().map(|one| {
                one.headers
                    .iter()
                    .find(|(name, _)| name == "X-Slack-Retry-Num")
                    .map(|(_, number)| number.clone())
                    .unwrap()
            }));
            numbers.push("-".into());
        }
        assert_eq!(numbers, ["1", "-", "-", "2", "-", "-", "3", "-", "-"]);
        let bodies: Vec<_> = app
            .inbox
            .lock()
            .unwrap()
            .iter()
            .map(|(_, headers, body)| (headers.get("x-slack-retry-reason").cloned(), body.clone()))
            .collect();
        assert_eq!(bodies.len(), 4);
        assert!(bodies.iter().all(|(_, body)| *body == bodies[0].1));
        assert_eq!(bodies[1].0.as_ref().unwrap(), "http_error");

        // By itself while somebody keeps time, and ended by an answer.
        let event = json!({"type": "app_uninstalled"});
        world.event(TEAM, &event, None).await.unwrap();
        answer(app, 200, &Value::Null);
        let retried = world.until("the retry", std::time::Duration::from_secs(5), |world| {
            world.deliveries().pop().filter(Delivery::acked)
        });
        tokio::select! {
            () = world.keep_time() => unreachable!(),
            retried = retried => assert!(retried.is_ok()),
        }
        world.time().advance(600_000);
        assert!(world.retry_due().await.is_empty());
        // One whose first sending was lost.
        let missed = world.event_missed(TEAM, &event).await.unwrap();
        assert!(missed.headers.iter().any(|(name, number)| name == "X-Slack-Retry-Num" && number == "1"));
    })
    .await;
}

//! Socket Mode with a client that another hand wrote.

use super::*;
use crate::sandbox::faults::{Fault, Rule};
use crate::sandbox::slack::acme::{APP_TOKEN, BOT_TOKEN, TEAM};
use crate::sandbox::slack::tests::{Api, card, posted, served, world};
use crate::sandbox::slack::{Delivery, Input, Manner, Spot};
use futures_util::{SinkExt, StreamExt};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

type Ws = WebSocketStream<MaybeTlsStream<tokio::net::TcpStream>>;

const SECOND: Duration = Duration::from_secs(1);

async fn address(api: &Api) -> String {
    let opened = api.post(APP_TOKEN, "apps.connections.open", &json!({})).await;
    opened["url"].as_str().unwrap_or_else(|| panic!("{opened}")).to_owned()
}

async fn connect(api: &Api) -> Ws {
    tokio_tungstenite::connect_async(address(api).await).await.unwrap().0
}

/// A socket after its `hello`.
async fn ready(api: &Api) -> Ws {
    let mut ws = connect(api).await;
    let hello = next(&mut ws).await.unwrap();
    assert_eq!((&hello["type"], &hello["connection_info"]["app_id"]), (&json!("hello"), &json!("A0COUNTER")));
    ws
}

/// The next JSON frame, or `None` when the socket is closed or broken.
async fn next(ws: &mut Ws) -> Option<Value> {
    loop {
        match tokio::time::timeout(5 * SECOND, ws.next()).await.expect("a frame") {
            Some(Ok(Message::Text(text))) => return Some(serde_json::from_str(&text).unwrap()),
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
            Some(Ok(Message::Close(_)) | Err(_)) | None => return None,
            Some(Ok(other)) => panic!("{other:?}"),
        }
    }
}

async fn say(ws: &mut Ws, answer: Value) {
    ws.send(Message::Text(answer.to_string().into())).await.unwrap();
}

/// Takes one envelope and acknowledges it.
async fn ack(ws: &mut Ws) -> Value {
    let envelope = next(ws).await.unwrap();
    say(ws, json!({"envelope_id": envelope["envelope_id"]})).await;
    envelope
}

fn in_socket_mode() -> Arc<SlackWorld> {
    let world = world();
    world.switch(|switches| switches.socket_mode = true);
    world.pace(0);
    world
}

async fn press(world: &SlackWorld, ts: &str, manner: Manner) -> Vec<Delivery> {
    world.press_raw("U0DANA", &Spot::message("C0OPS", ts), "Approve", &manner, |_| {}).await.unwrap()
}

#[tokio::test]
async fn an_address_needs_the_app_token_and_opens_one_socket() {
    let world = in_socket_mode();
    served(&world, async |api| {
        let refused = async |token: &str, body: &Value| {
            api.post(token, "apps.connections.open", body).await["error"].as_str().unwrap().to_owned()
        };
        assert_eq!(refused(BOT_TOKEN, &json!({})).await, "not_allowed_token_type");
        assert_eq!(refused("xapp-unknown", &json!({})).await, "invalid_auth");
        let in_body = api.form("", "apps.connections.open", &[("token", APP_TOKEN)]).await;
        assert_eq!(in_body["error"], "not_authed");
        let by_get = api.get(APP_TOKEN, "apps.connections.open", &[]).await;
        assert_eq!(by_get["error"], "insecure_request");
        let posted = api.post(APP_TOKEN, "chat.postMessage", &json!({"channel": "C0OPS", "text": "x"})).await;
        assert_eq!(posted["error"], "not_allowed_token_type");
        world.app_token(APP_TOKEN, &["authorizations:read"]);
        let scopeless = api.post(APP_TOKEN, "apps.connections.open", &json!({})).await;
        assert_eq!(
            (&scopeless["error"], &scopeless["needed"]),
            (&json!("missing_scope"), &json!("connections:write"))
        );
        world.app_token(APP_TOKEN, &["connections:write"]);
        world.switch(|switches| switches.socket_mode = false);
        assert_eq!(refused(APP_TOKEN, &json!({})).await, "forbidden_team");
        world.switch(|switches| switches.socket_mode = true);

        let address = address(api).await;
        tokio_tungstenite::connect_async(&address).await.unwrap();
        assert!(tokio_tungstenite::connect_async(&address).await.is_err(), "a ticket is good once");

        // Scarce: five at once, then one a minute.
        world.pace(1);
        for _ in 0..5 {
            assert_eq!(api.post(APP_TOKEN, "apps.connections.open", &json!({})).await["ok"], true);
        }
        assert_eq!(refused(APP_TOKEN, &json!({})).await, "ratelimited");
        world.time().advance(60_000);
        assert_eq!(api.post(APP_TOKEN, "apps.connections.open", &json!({})).await["ok"], true);
        let shown = world.dump().to_string();
        assert!(!shown.contains(APP_TOKEN));
    })
    .await;
}

#[tokio::test]
async fn an_envelope_goes_to_one_socket_and_counts_when_acknowledged_there() {
    let world = in_socket_mode();
    served(&world, async |api| {
        let ts = posted(api, "C0OPS").await;
        let none = press(&world, &ts, Manner::default()).await;
        assert_eq!((none[0].status, none[0].body.as_str()), (0, "no socket is open"));
        assert_eq!(world.warnings()[0].at, format!("C0OPS/{ts}"));

        let (mut one, mut two) = (ready(api).await, ready(api).await);
        let sockets = world.open_sockets();
        let (first, second) = tokio::join!(async { press(&world, &ts, Manner::default()).await }, async {
            ack(&mut one).await
        });
        assert!(first[0].acked() && first[0].socket == Some(sockets[0]), "{first:?}");
        assert_eq!(
            (&second["type"], &second["accepts_response_payload"]),
            (&json!("interactive"), &json!(false))
        );
        assert_eq!(second["payload"]["actions"][0]["value"], "k1");
        assert_eq!(first[0].payload(), second["payload"]);

        // Twice: on both sockets, the same envelope.
        let (both, here, there) =
            tokio::join!(press(&world, &ts, Manner::twice()), ack(&mut one), ack(&mut two));
        assert!(both.iter().all(Delivery::acked));
        assert_eq!(here["envelope_id"], there["envelope_id"]);

        // On the wrong socket it does not count, and is complained about.
        let wrong = async {
            let envelope = next(&mut two).await.unwrap();
            say(&mut one, json!({"envelope_id": envelope["envelope_id"]})).await;
            world.until("the acknowledgement", SECOND, |world| world.complaints().pop()).await.unwrap();
            world.time().advance(3_000);
        };
        let (late, ()) = tokio::join!(press(&world, &ts, Manner::over(sockets[1])), wrong);
        assert!(!late[0].acked());
        assert!(world.complaints()[0].contains("not sent here"), "{:?}", world.complaints());
        assert_eq!(world.warnings().len(), 2);

        // Late by this world's clock: recorded, warned about, complained about.
        world.forget();
        let slow = async {
            let envelope = next(&mut two).await.unwrap();
            world.time().advance(3_100);
            say(&mut two, json!({"envelope_id": envelope["envelope_id"]})).await;
            world.until("the late one", SECOND, |world| world.envelopes().pop()?.acked_ms).await.unwrap();
        };
        let (late, ()) = tokio::join!(press(&world, &ts, Manner::over(sockets[1])), slow);
        assert!(!late[0].acked() && !world.envelopes()[0].acked());
        assert!(
            world.complaints()[0].contains("acknowledged after Some(3100) ms"),
            "{:?}",
            world.complaints()
        );
    })
    .await;
}

#[tokio::test]
async fn an_acknowledgement_with_a_payload_does_what_an_http_answer_does() {
    let world = in_socket_mode();
    served(&world, async |api| {
        let mut ws = ready(api).await;
        let answers = async {
            let envelope = next(&mut ws).await.unwrap();
            assert_eq!((&envelope["type"], &envelope["payload"]["text"]), (&json!("slash_commands"), &json!("open")));
            say(&mut ws, json!({"envelope_id": envelope["envelope_id"], "payload": {"text": "Nothing is open."}})).await;
        };
        let (command, ()) = tokio::join!(world.command("U0DANA", "C0OPS", "/countersign", "open"), answers);
        assert!(command.unwrap().acked());
        assert_eq!(world.told("U0DANA"), ["Nothing is open."]);

        let ts = posted(api, "C0OPS").await;
        let (pressed, envelope) = tokio::join!(press(&world, &ts, Manner::default()), ack(&mut ws));
        assert!(pressed[0].acked());
        let view = json!({"type": "modal", "title": {"type": "plain_text", "text": "Why"}, "submit": {"type": "plain_text", "text": "Deny"},
            "blocks": [{"type": "input", "block_id": "why", "label": {"type": "plain_text", "text": "Reason"},
                "element": {"type": "plain_text_input", "action_id": "cs.text"}}]});
        let opened = json!({"trigger_id": envelope["payload"]["trigger_id"], "view": view});
        assert_eq!(api.post(BOT_TOKEN, "views.open", &opened).await["ok"], true);
        let modal = world.modals("U0DANA")[0].id.clone();
        let spot = Spot::View { id: modal.clone() };
        let typed = Input::Text { text: "because".into() };
        assert!(world.fill("U0DANA", &spot, "Reason", &typed).await.unwrap().is_none());
        for (answer, errors) in [
            (json!({"response_action": "errors", "errors": {"why": "Say more."}}), json!({"why": "Say more."})),
            (json!({}), json!(null)),
        ] {
            let answers = async {
                let envelope = next(&mut ws).await.unwrap();
                assert_eq!(envelope["accepts_response_payload"], true);
                say(&mut ws, json!({"envelope_id": envelope["envelope_id"], "payload": answer})).await;
            };
            let (submitted, ()) = tokio::join!(world.submit("U0DANA", &modal), answers);
            assert!(submitted.unwrap().acked());
            let open = world.modals("U0DANA").pop().map(|view| view.errors);
            assert_eq!(open.unwrap_or_default(), errors);
        }
        assert_eq!(world.complaints(), Vec::<String>::new());

        // A button's envelope takes none.
        let answers = async {
            let envelope = next(&mut ws).await.unwrap();
            say(&mut ws, json!({"envelope_id": envelope["envelope_id"], "payload": {"text": "no"}})).await;
        };
        tokio::join!(press(&world, &ts, Manner::default()), answers);
        assert!(world.complaints()[0].contains("takes no payload"), "{:?}", world.complaints());
    })
    .await;
}

#[tokio::test]
async fn sockets_end_in_every_way_and_the_eleventh_is_refused() {
    let world = in_socket_mode();
    served(&world, async |api| {
        let mut ws = ready(api).await;
        let refresh = Order::Disconnect { reason: "refresh_requested".into(), close_after_ms: Some(10_000) };
        assert_eq!(world.socket(None, &refresh), 1);
        let goodbye = next(&mut ws).await.unwrap();
        assert_eq!(
            (&goodbye["type"], &goodbye["reason"]),
            (&json!("disconnect"), &json!("refresh_requested"))
        );
        // It works until it is closed.
        let ts = posted(api, "C0OPS").await;
        let (pressed, _) = tokio::join!(press(&world, &ts, Manner::default()), ack(&mut ws));
        assert!(pressed[0].acked());
        world.time().advance(10_000);
        assert_eq!(next(&mut ws).await, None);
        let ends =
            |world: &SlackWorld| world.sockets().iter().filter_map(|socket| socket.end).collect::<Vec<_>>();
        drop(ws);
        world.until("the end", SECOND, |world| (ends(world) == ["closed"]).then_some(())).await.unwrap();

        let mut ws = ready(api).await;
        world.socket(Some(2), &Order::Drop);
        assert_eq!(next(&mut ws).await, None);
        let mut ws = ready(api).await;
        world.cut_sockets_every(Some(2));
        world.time().advance(2_000);
        assert_eq!(next(&mut ws).await, None);
        world.cut_sockets_every(None);
        let ws = ready(api).await;
        drop(ws);
        world.until("the end", SECOND, |world| (ends(world).len() == 4).then_some(())).await.unwrap();
        assert_eq!(ends(&world), ["closed", "dropped", "dropped", "lost"]);

        let mut ten = Vec::new();
        for _ in 0..10 {
            ten.push(ready(api).await);
        }
        let mut eleventh = connect(api).await;
        assert_eq!(next(&mut eleventh).await.unwrap()["reason"], "too_many_websockets");
        assert_eq!(next(&mut eleventh).await, None);
        assert_eq!(world.open_sockets().len(), 10);
    })
    .await;
}

#[tokio::test]
async fn a_new_socket_meets_scripted_trouble() {
    let world = in_socket_mode();
    served(&world, async |api| {
        let script = |fault: Fault| world.faults().add(Rule::next("link", fault));
        script(Fault::Status { code: 503, retry_after: None, body: None });
        assert!(tokio_tungstenite::connect_async(address(api).await).await.is_err());
        script(Fault::Refuse { error: "link_disabled".into() });
        let mut ws = connect(api).await;
        assert_eq!(next(&mut ws).await.unwrap()["reason"], "link_disabled");
        assert_eq!(next(&mut ws).await, None);
        script(Fault::NoContent);
        assert_eq!(next(&mut connect(api).await).await, None);
        script(Fault::CutAnswer);
        assert_eq!(next(&mut ready(api).await).await, None);
        script(Fault::Hang { ms: 1 });
        assert_eq!(next(&mut connect(api).await).await, None);

        world.switch(|switches| switches.bare_frames = true);
        let mut ws = connect(api).await;
        assert_eq!(next(&mut ws).await.unwrap(), json!({"type": "hello"}));
        world.switch(|switches| {
            (switches.bare_frames, switches.hello_app_id) = (false, Some("A0OTHER".into()));
        });
        let hello = next(&mut connect(api).await).await.unwrap();
        assert_eq!(hello["connection_info"]["app_id"], "A0OTHER");
        for frame in [
            Frame::Json { value: json!({"type": "surprise"}) },
            Frame::Text { text: "{".into() },
            Frame::Binary { bytes: vec![0, 255] },
        ] {
            world.socket(Some(5), &Order::Send { frame });
        }
        assert_eq!(next(&mut ws).await.unwrap(), json!({"type": "surprise"}));
        assert_eq!(ws.next().await.unwrap().unwrap(), Message::Text("{".into()));
        assert_eq!(ws.next().await.unwrap().unwrap(), Message::Binary(vec![0, 255].into()));
    })
    .await;
}

#[tokio::test]
async fn what_a_half_open_socket_swallows_comes_again_on_another() {
    let world = in_socket_mode();
    world.switch(|switches| switches.interactive_redelivery = true);
    served(&world, async |api| {
        let ts = posted(api, "C0OPS").await;
        let _deaf = ready(api).await;
        world.socket(Some(1), &Order::HalfOpen);
        let rescue = async {
            world.until("the sending", SECOND, |world| world.envelopes().pop()).await.unwrap();
            world.time().advance(3_000);
            ack(&mut ready(api).await).await
        };
        let (pressed, _) = tokio::join!(press(&world, &ts, Manner::default()), rescue);
        let seen: Vec<_> = pressed.iter().map(|one| (one.socket, one.attempt, one.acked())).collect();
        assert_eq!(seen, [(Some(1), 1, false), (Some(2), 2, true)]);
        let ids: Vec<_> = world.envelopes().into_iter().map(|one| one.envelope_id).collect();
        assert_eq!(ids[0], ids[1]);
        world.time().advance(60_000);
        world.until("it is given up", SECOND, |world| world.sockets()[0].end).await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn envelopes_are_held_reordered_and_sent_again() {
    let world = in_socket_mode();
    served(&world, async |api| {
        let mut ws = ready(api).await;
        let event = |user: &str| json!({"type": "app_home_opened", "user": user, "tab": "home"});
        world.hold_envelopes();
        let (dana, kim) = (event("U0DANA"), event("U0KIM"));
        let taken = async {
            world.until("both", SECOND, |world| (world.envelopes().len() == 2).then_some(())).await.unwrap();
            world.release_envelopes(true);
            [ack(&mut ws).await, ack(&mut ws).await]
        };
        let (one, two, got) = tokio::join!(
            world.event(TEAM, &dana, None),
            world.event(TEAM, &kim, Some((1, "timeout"))),
            taken
        );
        assert!(one.unwrap().acked() && two.unwrap().acked());
        assert_eq!(got[0]["payload"]["event"]["user"], "U0KIM");
        assert_eq!((&got[0]["retry_attempt"], &got[0]["retry_reason"]), (&json!(1), &json!("timeout")));
        assert_eq!(
            (&got[1]["payload"]["event"]["user"], &got[1]["retry_attempt"]),
            (&json!("U0DANA"), &json!(null))
        );
        let id = got[1]["envelope_id"].as_str().unwrap();
        let (again, got) = tokio::join!(world.redeliver(id, None), ack(&mut ws));
        assert!(again.unwrap().acked());
        assert_eq!((&got["envelope_id"], &got["retry_attempt"]), (&json!(id), &json!(1)));
        // The card of the tests is one that Slack takes.
        assert!(card().is_array());
    })
    .await;
}

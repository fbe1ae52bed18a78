//! The gateway with a client that another hand wrote.

use super::Order;
use crate::sandbox::discord::acme::*;
use crate::sandbox::discord::tests::{Api, card, served, world};
use crate::sandbox::discord::{DiscordWorld, Manner};
use crate::sandbox::faults::{Fault, Rule};
use futures_util::{SinkExt, StreamExt};
use rstest::rstest;
use serde_json::{Value, json};
use std::time::Duration;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

type Ws = WebSocketStream<MaybeTlsStream<tokio::net::TcpStream>>;

async fn connect(world: &DiscordWorld) -> Ws {
    let url = format!("{}/?v=10&encoding=json", world.gateway_url());
    tokio_tungstenite::connect_async(url).await.unwrap().0
}

/// The next frame, or the code it was closed with.
async fn next(ws: &mut Ws) -> Result<Value, Option<u16>> {
    loop {
        match tokio::time::timeout(Duration::from_secs(5), ws.next()).await.expect("a frame") {
            Some(Ok(Message::Text(text))) => return Ok(serde_json::from_str(&text).unwrap()),
            Some(Ok(Message::Close(frame))) => return Err(frame.map(|frame| frame.code.into())),
            Some(Ok(_)) => {}
            Some(Err(_)) | None => return Err(None),
        }
    }
}

/// The next event of this name.
async fn event(ws: &mut Ws, name: &str) -> Value {
    loop {
        let frame = next(ws).await.unwrap();
        if frame["t"] == name {
            return frame;
        }
    }
}

async fn say(ws: &mut Ws, frame: Value) {
    ws.send(Message::Text(frame.to_string().into())).await.unwrap();
}

fn identify(token: &str) -> Value {
    json!({"op": 2, "d": {"token": token, "intents": 4609, "properties": {"os": "linux", "browser": "x", "device": "x"},
        "shard": [0, 1]}})
}

/// A connection that is ready, and its session.
async fn ready(world: &DiscordWorld) -> (Ws, String) {
    let mut ws = connect(world).await;
    assert_eq!(next(&mut ws).await.unwrap()["op"], 10);
    say(&mut ws, identify(&format!("Bot {TOKEN}"))).await;
    let ready = event(&mut ws, "READY").await;
    assert_eq!((&ready["s"], &ready["d"]["resume_gateway_url"]), (&json!(1), &json!(world.gateway_url())));
    let session = ready["d"]["session_id"].as_str().unwrap().to_owned();
    assert_eq!(event(&mut ws, "GUILD_CREATE").await["d"]["id"], GUILD);
    (ws, session)
}

async fn answer(api: &Api, click: &Value) -> u16 {
    let (id, token) = (click["d"]["id"].as_str().unwrap(), click["d"]["token"].as_str().unwrap());
    api.bare("POST", &format!("/interactions/{id}/{token}/callback"), &json!({"type": 6})).await.0
}

#[tokio::test]
async fn a_click_goes_over_the_gateway_and_is_replayed_to_who_resumes() {
    let world = world();
    served(&world, async |api| {
        let id = api.posted(OPS, card()).await;
        assert!(!world.press(DANA, OPS, &id, "Approve").await.unwrap().acked(), "nobody is connected");
        let (mut ws, session) = ready(&world).await;
        let pressed = world.press(DANA, OPS, &id, "Approve");
        let answered = async {
            let click = event(&mut ws, "INTERACTION_CREATE").await;
            assert_eq!(click["d"]["member"]["user"]["id"], DANA);
            assert_eq!(answer(api, &click).await, 204);
            click
        };
        let (pressed, click) = tokio::join!(pressed, answered);
        assert!(pressed.unwrap().acked());
        // It breaks; what came meanwhile and what was seen last are replayed.
        world.gateway(Some(APP), &Order::Drop);
        assert_eq!(next(&mut ws).await, Err(None));
        world
            .until("the end", Duration::from_secs(5), |world| world.connected(APP).is_empty().then_some(()))
            .await
            .unwrap();
        world.press_raw(KIM, OPS, &id, "Approve", &Manner::nowait(), |_| {}).await.unwrap();
        let mut ws = connect(&world).await;
        let seq = click["s"].as_u64().unwrap() - 1;
        say(&mut ws, json!({"op": 6, "d": {"token": TOKEN, "session_id": session, "seq": seq}})).await;
        assert_eq!(event(&mut ws, "INTERACTION_CREATE").await, click);
        assert_eq!(event(&mut ws, "INTERACTION_CREATE").await["d"]["member"]["user"]["id"], KIM);
        event(&mut ws, "RESUMED").await;
        let last = world.connections().pop().unwrap();
        assert_eq!((last.resumed, last.bot_prefix), (true, Some(false)));
        // A goodbye ends the session.
        ws.close(Some(CloseFrame { code: 1000.into(), reason: "".into() })).await.unwrap();
        world
            .until("the end", Duration::from_secs(5), |world| world.connected(APP).is_empty().then_some(()))
            .await
            .unwrap();
        let mut ws = connect(&world).await;
        say(&mut ws, json!({"op": 6, "d": {"token": TOKEN, "session_id": session, "seq": 1}})).await;
        next(&mut ws).await.unwrap();
        assert_eq!(next(&mut ws).await.unwrap(), json!({"op": 9, "d": false, "s": null, "t": null}));
    })
    .await;
}

#[rstest]
#[case::token(identify("wrong"), 4004)]
#[case::intents(json!({"op": 2, "d": {"token": TOKEN, "intents": 1u64 << 40, "properties": {"os": "", "browser": "", "device": ""}}}), 4013)]
#[case::privileged(json!({"op": 2, "d": {"token": TOKEN, "intents": 1 << 15, "properties": {"os": "", "browser": "", "device": ""}}}), 4014)]
#[case::unknown(json!({"op": 99}), 4001)]
#[case::too_early(json!({"op": 3, "d": {}}), 4003)]
#[case::large(json!({"op": 1, "d": "x".repeat(5_000)}), 4002)]
#[tokio::test]
async fn what_is_wrong_closes_with_its_code(#[case] frame: Value, #[case] code: u16) {
    let world = world();
    served(&world, async |_| {
        let mut ws = connect(&world).await;
        next(&mut ws).await.unwrap();
        say(&mut ws, frame).await;
        assert_eq!(next(&mut ws).await, Err(Some(code)));
        let seen = |world: &DiscordWorld| world.connections()[0].server_code;
        assert_eq!(world.until("the code", Duration::from_secs(5), seen).await.unwrap(), code);
    })
    .await;
}

#[tokio::test]
async fn orders_heartbeats_and_events() {
    let world = world();
    served(&world, async |api| {
        let (mut ws, _) = ready(&world).await;
        say(&mut ws, json!({"op": 1, "d": 2})).await;
        assert_eq!(next(&mut ws).await.unwrap()["op"], 11);
        // A second IDENTIFY within five seconds, of another connection, is too early.
        let mut second = connect(&world).await;
        say(&mut second, identify(TOKEN)).await;
        next(&mut second).await.unwrap();
        assert_eq!(next(&mut second).await.unwrap()["op"], 9);
        drop(second);
        for (order, op) in [(Order::Reconnect, 7), (Order::Beat, 1), (Order::Invalid { resumable: true }, 9)]
        {
            world.gateway(Some(APP), &order);
            assert_eq!(next(&mut ws).await.unwrap()["op"], op);
        }
        let id = api.posted(OPS, card()).await;
        assert_eq!(event(&mut ws, "MESSAGE_CREATE").await["d"]["id"], id.as_str());
        world.remove_message(OPS, &id);
        assert_eq!(
            event(&mut ws, "MESSAGE_DELETE").await["d"],
            json!({"id": id, "channel_id": OPS, "guild_id": GUILD})
        );
        world.remove_messages(OPS, &[&id, "1"]);
        assert_eq!(event(&mut ws, "MESSAGE_DELETE_BULK").await["d"]["ids"], json!([id, "1"]));
        world.archive(THREAD, true, false);
        assert_eq!(event(&mut ws, "THREAD_UPDATE").await["d"]["thread_metadata"]["archived"], true);
        world.remove_channel(THREAD);
        event(&mut ws, "THREAD_DELETE").await;
        world.edit_role(GUILD, RELEASE, |role| role.mentionable = true);
        event(&mut ws, "GUILD_ROLE_UPDATE").await;
        world.outage(GUILD, true);
        assert_eq!(event(&mut ws, "GUILD_DELETE").await["d"]["unavailable"], true);
        world.outage(GUILD, false);
        event(&mut ws, "GUILD_CREATE").await;
        world.gateway(None, &Order::Send { text: "{broken".into() });
        world.gateway(Some(APP), &Order::NoAcks);
        match ws.next().await.unwrap().unwrap() {
            Message::Text(text) => assert_eq!(text.as_str(), "{broken"),
            other => panic!("{other:?}"),
        }
        say(&mut ws, json!({"op": 1, "d": 2})).await;
        world.gateway(Some(APP), &Order::Close { code: 4000 });
        assert_eq!(next(&mut ws).await, Err(Some(4000)));
        world.faults().add(Rule::next("gateway", Fault::NoContent));
        assert_eq!(next(&mut connect(&world).await).await, Err(Some(1000)));
        world.switch(|switches| switches.identify_left = Some(0));
        let (_, at) = api.bot("GET", "/gateway/bot", &Value::Null).await;
        assert_eq!(
            (&at["url"], &at["session_start_limit"]["remaining"]),
            (&json!(world.gateway_url()), &json!(0))
        );
    })
    .await;
}

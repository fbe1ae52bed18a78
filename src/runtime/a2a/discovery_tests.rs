//! The card over a socket: caching, moving, refusing.

use super::bed_tests::{
    Asked, Bed, DANA, Hand, KeyCarrier, Said, Script, client, json as said, list, result, setup,
};
use super::{A2aConnector, A2aSettings, Address, URI};
use crate::bridge::ports::{AnswerOutcome, Connector, ConnectorError};
use crate::domain::form::Decision;
use crate::domain::ids::RuntimeName;
use crate::sandbox::a2a::{Ask, CardSpec, Open};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const CARD: &str = "GET /rpc/.well-known/agent-card.json";
const AT_ORIGIN: &str = "GET /.well-known/agent-card.json";

fn card(url: &str) -> Value {
    json!({ "name": "Release", "version": "1", "supportedInterfaces": [
        { "url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0" } ] })
}

/// A server with a card that can be changed, and empty lists.
async fn with_card(place: &'static str, headers: Vec<(&'static str, String)>) -> (Script, Arc<Mutex<Value>>) {
    let body = Arc::new(Mutex::new(Value::Null));
    let shown = Arc::clone(&body);
    let answer = move |asked: &Asked| -> Said {
        let card = shown.lock().unwrap().clone();
        match asked.line.as_str() {
            line if line == place && !card.is_null() => {
                if asked.headers.get("if-none-match").is_some_and(|tag| tag == "\"v1\"") {
                    return (304, headers.clone(), String::new());
                }
                let (status, mut all, body) = said(200, &card);
                all.extend(headers.clone());
                (status, all, body)
            }
            line if line.starts_with("GET ") => said(404, &json!({ "error": "not found" })),
            _ => result(&json!({ "tasks": [], "nextPageToken": "" })),
        }
    };
    (Script::new(answer).await, body)
}

fn cards(script: &Script) -> Vec<Asked> {
    script.asked().into_iter().filter(|asked| asked.line.starts_with("GET ")).collect()
}

#[tokio::test]
async fn a2a_case_2_a_card_is_read_again_when_it_expires_and_only_if_it_changed() {
    let (script, body) =
        with_card(CARD, vec![("etag", "\"v1\"".into()), ("cache-control", "max-age=120".into())]).await;
    *body.lock().unwrap() = card(script.url.join("/rpc").unwrap().as_str());
    let clock = Hand::new();
    let connector = script.connector(&clock, |_| {});
    connector.refresh().await.unwrap();
    clock.advance(Duration::from_secs(119));
    connector.refresh().await.unwrap();
    assert_eq!(cards(&script).len(), 1);
    clock.advance(Duration::from_secs(2));
    connector.refresh().await.unwrap();
    let asked = cards(&script);
    assert_eq!(asked.len(), 2);
    assert_eq!(asked[1].headers["if-none-match"], "\"v1\"");
    assert_eq!(connector.generation(), 1);
    list(&connector).await.unwrap();
    assert_eq!(script.asked().last().unwrap().line, "POST /rpc");
}

#[tokio::test]
async fn a_card_is_read_at_most_once_a_minute_and_at_least_every_hour() {
    for (control, seconds) in [("no-store", 60), ("max-age=1", 60), ("max-age=999999", 3600), ("public", 300)]
    {
        let (script, body) = with_card(CARD, vec![("cache-control", control.into())]).await;
        *body.lock().unwrap() = card(script.url.join("/rpc").unwrap().as_str());
        let clock = Hand::new();
        let connector = script.connector(&clock, |_| {});
        connector.refresh().await.unwrap();
        clock.advance(Duration::from_millis(seconds * 1000 - 1));
        connector.refresh().await.unwrap();
        assert_eq!(cards(&script).len(), 1, "{control}");
        clock.advance(Duration::from_millis(1));
        connector.refresh().await.unwrap();
        assert_eq!(cards(&script).len(), 2, "{control}");
    }
}

#[tokio::test]
async fn a2a_case_3_version_and_extension_are_on_every_request() {
    let (script, body) = with_card(CARD, vec![]).await;
    *body.lock().unwrap() = card(script.url.join("/rpc").unwrap().as_str());
    let connector = script.connector(&Hand::new(), |_| {});
    list(&connector).await.unwrap();
    let asked = script.asked();
    assert_eq!(asked.len(), 3);
    for one in asked {
        assert_eq!(one.headers["a2a-version"], "1.0");
        assert_eq!(one.headers["a2a-extensions"], URI);
        assert_eq!(one.headers["accept"], "application/json, application/a2a+json");
        let is_card = one.line.starts_with("GET ");
        assert_eq!(one.headers.contains_key("authorization"), !is_card);
        assert_eq!(
            one.headers.get("content-type").map(String::as_str),
            (!is_card).then_some("application/json")
        );
    }
}

#[tokio::test]
async fn without_a_card_the_endpoint_is_used() {
    let (script, _) = with_card(CARD, vec![]).await;
    let connector = script.connector(&Hand::new(), |_| {});
    list(&connector).await.unwrap();
    let lines: Vec<String> = script.asked().into_iter().map(|asked| asked.line).collect();
    assert_eq!(lines, [CARD, AT_ORIGIN, "POST /rpc", "POST /rpc"]);
}

#[tokio::test]
async fn a_card_at_the_origin_counts_unless_it_is_another_agents() {
    let (script, body) = with_card(AT_ORIGIN, vec![]).await;
    let at = |path: &str| script.url.join(path).unwrap();
    *body.lock().unwrap() = card(at("/other").as_str());
    list(&script.connector(&Hand::new(), |_| {})).await.unwrap();
    assert!(script.asked().iter().all(|asked| asked.line != "POST /other"));
    *body.lock().unwrap() = card(at("/rpc/").as_str());
    list(&script.connector(&Hand::new(), |_| {})).await.unwrap();
    assert!(script.asked().iter().any(|asked| asked.line == "POST /rpc/"));
}

#[tokio::test]
async fn a2a_case_67_another_origin_is_refused_at_the_start_and_used_when_listed() {
    let elsewhere = Script::new(|_| result(&json!({ "tasks": [] }))).await;
    let (script, body) = with_card(AT_ORIGIN, vec![]).await;
    *body.lock().unwrap() = card(elsewhere.url.join("/a2a").unwrap().as_str());
    let connector = script.connector(&Hand::new(), |_| {});
    let ConnectorError::Configuration { what } = list(&connector).await.unwrap_err() else { panic!() };
    assert!(what.contains("allow_origins"), "{what}");
    assert_eq!(elsewhere.asked().len(), 0);
    let listed = elsewhere.url.origin().ascii_serialization();
    list(&script.connector(&Hand::new(), |settings| settings.allow_origins = vec![listed])).await.unwrap();
    assert_eq!(elsewhere.count("ListTasks"), 2);
}

#[tokio::test]
async fn a2a_case_67_a_runtime_that_moves_is_stopped_and_nothing_is_sent_to_the_new_place() {
    let clock = Hand::new();
    let bed = Bed::made(clock.clone(), setup(&clock), Arc::new(KeyCarrier), |_| {}).await;
    let opened = bed.world.open(Open::new(DANA, Ask::approval("ci", "deploy")));
    bed.connector.refresh().await.unwrap();
    let before = bed.connector.generation();
    let elsewhere = Script::new(|_| result(&json!({ "task": {} }))).await;
    let interfaces = card(elsewhere.url.join("/a2a").unwrap().as_str())["supportedInterfaces"].clone();
    bed.world.set_card("release", CardSpec { interfaces: Some(interfaces), ..CardSpec::default() });
    clock.advance(Duration::from_secs(301));
    let refused = bed.connector.refresh().await;
    assert!(matches!(refused, Err(ConnectorError::Configuration { .. })), "{refused:?}");
    let answered = bed.send(&bed.answer_of(DANA, &opened, Decision::Approve)).await;
    assert!(matches!(answered.outcome, AnswerOutcome::Attention { .. }), "{answered:?}");
    assert!(bed.list().await.is_err());
    assert_eq!(elsewhere.asked().len(), 0);
    assert_eq!(bed.world.requests_of("SendMessage").len(), 0);
    // The card is as before: work goes on, and those who wait are told by the generation.
    bed.world.set_card("release", CardSpec::default());
    clock.advance(Duration::from_secs(61));
    bed.connector.refresh().await.unwrap();
    assert!(bed.connector.generation() > before);
    let answered = bed.send(&bed.answer_of(DANA, &opened, Decision::Approve)).await;
    assert!(matches!(answered.outcome, AnswerOutcome::Accepted { .. }), "{answered:?}");
}

#[tokio::test]
async fn a_runtime_that_is_down_at_the_start_is_tried_with_the_next_call() {
    let up = Arc::new(Mutex::new(false));
    let state = Arc::clone(&up);
    let script = Script::new(move |asked| match (*state.lock().unwrap(), asked.method()) {
        (false, _) => said(503, &json!({})),
        (true, "") => said(404, &json!({})),
        (true, _) => result(&json!({ "tasks": [] })),
    })
    .await;
    let connector = script.connector(&Hand::new(), |_| {});
    assert!(matches!(list(&connector).await, Err(ConnectorError::Unavailable { .. })));
    *up.lock().unwrap() = true;
    list(&connector).await.unwrap();
}

#[tokio::test]
async fn a_card_address_decides_and_must_hold_a_card_with_an_interface() {
    let (script, body) = with_card("GET /card", vec![]).await;
    let connector = |script: &Script| {
        let address = Address::Card(script.url.join("/card").unwrap());
        let settings = A2aSettings::new(RuntimeName::new("prod"), address);
        A2aConnector::new(settings, client(), Arc::new(KeyCarrier), Arc::new(Hand::new())).unwrap()
    };
    assert!(matches!(list(&connector(&script)).await, Err(ConnectorError::Configuration { .. })));
    *body.lock().unwrap() = json!({ "name": "Release" });
    assert!(matches!(list(&connector(&script)).await, Err(ConnectorError::Configuration { .. })));
    *body.lock().unwrap() = card(script.url.join("/a2a").unwrap().as_str());
    list(&connector(&script)).await.unwrap();
    assert_eq!(script.asked().last().unwrap().line, "POST /a2a");
}

#[tokio::test]
async fn a_renamed_agent_keeps_the_name_its_interactions_are_keyed_by() {
    let bed = Bed::new().await;
    let opened = bed.world.open(Open::new(DANA, Ask::approval("ci", "deploy")));
    assert_eq!(bed.read(&opened).await.agent, "release");
    let renamed = CardSpec { name: Some("Releaser".into()), version: "2".into(), ..CardSpec::default() };
    bed.world.set_card("release", renamed);
    bed.clock.advance(Duration::from_secs(301));
    bed.connector.refresh().await.unwrap();
    assert_eq!(bed.read(&opened).await.agent, "release");
}

#[tokio::test]
async fn plain_http_off_this_machine_is_refused_before_anything_is_sent() {
    let address = Address::Endpoint("http://agents.example.com/a2a".parse().unwrap());
    let settings = A2aSettings::new(RuntimeName::new("prod"), address);
    let connector =
        A2aConnector::new(settings, client(), Arc::new(KeyCarrier), Arc::new(Hand::new())).unwrap();
    let ConnectorError::Configuration { what } = list(&connector).await.unwrap_err() else { panic!() };
    assert!(what.contains("plain_http"), "{what}");
}

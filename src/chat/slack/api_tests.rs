//! Against answers written byte by byte: what the stand-in would not say.

use super::*;
use crate::domain::clock::{Clock, Millis};
use crate::domain::ids::Ids;
use rstest::rstest;
use serde_json::json;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use uuid::Uuid;

#[derive(Debug)]
struct Still;

impl Clock for Still {
    fn now(&self) -> Millis {
        Millis(1_796_000_000_000)
    }
}

impl Ids for Still {
    fn uuid(&self) -> Uuid {
        Uuid::nil()
    }
    fn random(&self) -> [u8; 16] {
        [0; 16]
    }
}

const TOKEN: &str = "xoxb-secret";

fn api(base: &str) -> Api {
    let limits = crate::net::Limits { connect: Duration::from_secs(1), total: Duration::from_millis(500) };
    let pace = Pace::new(Arc::new(Still), Arc::new(Still), 1.0);
    Api::new("acme".into(), base, TOKEN.into(), crate::net::client(limits).unwrap(), pace)
}

/// Answers one call with these bytes (`None`: never), and returns the request and the result.
async fn call(method: Method, answer: Option<&str>) -> (Api, String, Result<Answer, ChatError>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let api = api(&format!("http://{}/api/", listener.local_addr().unwrap()));
    let serve = async {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut request = vec![];
        loop {
            let mut chunk = [0; 4096];
            let read = socket.read(&mut chunk).await.unwrap();
            request.extend_from_slice(&chunk[..read]);
            let text = String::from_utf8_lossy(&request);
            let length = |head: &str| {
                head.lines().find_map(|line| {
                    line.to_lowercase().strip_prefix("content-length: ")?.parse::<usize>().ok()
                })
            };
            let whole = text
                .split_once("\r\n\r\n")
                .is_some_and(|(head, body)| length(head).unwrap_or(0) <= body.len());
            if whole || read == 0 {
                break;
            }
        }
        match answer {
            Some(answer) => socket.write_all(answer.as_bytes()).await.unwrap(),
            None => std::future::pending().await,
        }
        drop(socket);
        String::from_utf8(request).unwrap()
    };
    let arguments = json!({"channel": "C1", "blocks": [1], "limit": 15, "inclusive": true, "cursor": null});
    let (request, result) = if answer.is_some() {
        tokio::join!(serve, api.send(method, arguments))
    } else {
        tokio::select! {
            _ = serve => unreachable!(),
            result = api.send(method, arguments) => (String::new(), result),
        }
    };
    (api, request, result)
}

fn http(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
}

#[derive(Debug, PartialEq)]
enum Is {
    Ok,
    /// Perhaps done when it writes, not answered when it reads.
    Unusable,
    Paced(u64),
    Permanent,
}

fn is(method: Method, result: &Result<Answer, ChatError>) -> Is {
    match result {
        Ok(_) => Is::Ok,
        Err(ChatError::Unknown { .. }) if method.writes() => Is::Unusable,
        Err(ChatError::Unavailable { .. }) if !method.writes() => Is::Unusable,
        Err(ChatError::Paced { after }) => Is::Paced(after.as_secs()),
        Err(ChatError::Permanent { .. }) => Is::Permanent,
        Err(other) => panic!("{other:?}"),
    }
}

#[rstest]
#[case::done(
    http(
        "200 OK",
        "",
        r#"{"ok":true,"message":{"blocks":[{"type":"unheard_of"}],"metadata":{"event_payload":{"n":7}}}}"#
    ),
    Is::Ok
)]
#[case::html(http("200 OK", "content-type: text/html\r\n", "<html>proxy</html>"), Is::Unusable)]
#[case::no_error(http("200 OK", "", r#"{"ok":false}"#), Is::Unusable)]
#[case::empty_error(http("200 OK", "", r#"{"ok":false,"error":""}"#), Is::Unusable)]
#[case::no_ok(http("200 OK", "", r#"{"error":"x"}"#), Is::Unusable)]
#[case::array(http("200 OK", "", "[true]"), Is::Unusable)]
#[case::no_content("HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n".into(), Is::Unusable)]
#[case::server_error(http("503 Busy", "", r#"{"ok":false,"error":"channel_not_found"}"#), Is::Unusable)]
#[case::ok_with_a_bad_status(http("502 Bad Gateway", "", r#"{"ok":true}"#), Is::Unusable)]
#[case::redirect(http("302 Found", "location: http://127.0.0.1:1/\r\n", ""), Is::Unusable)]
#[case::broken_off("HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{\"ok\":true".into(), Is::Unusable)]
#[case::closed(String::new(), Is::Unusable)]
#[case::too_many(http("429 Too Many", "retry-after: 7\r\n", ""), Is::Paced(7))]
#[case::too_many_unsaid(http("429 Too Many", "", ""), Is::Paced(30))]
#[case::too_many_odd(http("429 Too Many", "retry-after: soon\r\n", ""), Is::Paced(30))]
#[case::rate_in_200(
    http("200 OK", "retry-after: 9\r\n", r#"{"ok":false,"error":"ratelimited"}"#),
    Is::Paced(9)
)]
#[case::rate_in_200_unsaid(http("200 OK", "", r#"{"ok":false,"error":"rate_limited"}"#), Is::Paced(30))]
#[case::unheard_of(http("200 OK", "", r#"{"ok":false,"error":"unheard_of"}"#), Is::Permanent)]
#[case::refused_with_a_status(http("400 Bad", "", r#"{"ok":false,"error":"unheard_of"}"#), Is::Permanent)]
#[tokio::test]
async fn slack_case_21_and_23_every_kind_of_answer(#[case] answer: String, #[case] expected: Is) {
    for method in [Method::PostMessage, Method::Update, Method::UserInfo] {
        let (api, _, result) = call(method, Some(&answer)).await;
        assert_eq!(is(method, &result), expected, "{}", method.name());
        let parked = api.pace.parked_for("acme", method.name());
        assert_eq!(parked.is_some(), matches!(expected, Is::Paced(_)));
        if parked.is_some() {
            // Parked: the next call is not even sent.
            assert!(matches!(api.send(method, json!({})).await, Err(ChatError::Paced { .. })));
        }
    }
}

#[tokio::test]
async fn slack_case_23_no_answer_in_time_frees_the_worker() {
    for method in [Method::PostMessage, Method::UserInfo] {
        let (_, _, result) = call(method, None).await;
        assert_eq!(is(method, &result), Is::Unusable);
    }
}

#[tokio::test]
async fn a_connection_never_made_sent_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let result = api(&format!("http://{address}")).send(Method::PostMessage, json!({})).await;
    assert!(matches!(result, Err(ChatError::Unavailable { .. })), "{result:?}");
}

#[tokio::test]
async fn writes_are_json_reads_are_forms_and_both_are_posts() {
    let done = http("200 OK", "x-oauth-scopes: chat:write, users:read\r\n", r#"{"ok":true}"#);
    let (_, request, result) = call(Method::PostMessage, Some(&done)).await;
    assert!(request.starts_with("POST /api/chat.postMessage HTTP/1.1\r\n"), "{request}");
    assert!(request.contains("content-type: application/json; charset=utf-8\r\n"));
    assert!(request.contains(&format!("authorization: Bearer {TOKEN}\r\n")));
    assert_eq!(result.unwrap().scopes.unwrap(), ["chat:write", "users:read"]);
    let (_, request, result) = call(Method::History, Some(&http("200 OK", "", r#"{"ok":true}"#))).await;
    assert!(request.starts_with("POST /api/conversations.history HTTP/1.1\r\n"));
    assert!(request.ends_with("\r\n\r\nblocks=%5B1%5D&channel=C1&inclusive=true&limit=15"), "{request}");
    assert_eq!(result.unwrap().scopes, None);
}

#[tokio::test]
async fn slack_case_60_no_error_names_the_token_or_the_address() {
    let (_, _, result) = call(Method::PostMessage, Some("garbage")).await;
    let said = format!("{0:?} {0}", result.unwrap_err());
    assert!(!said.contains(TOKEN) && !said.contains("127.0.0.1"), "{said}");
}

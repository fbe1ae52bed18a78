//! Whatever is sent to whichever route: a clear error, nothing stored, no panic.

use super::*;
use proptest::prelude::*;

const GETS: [&str; 7] = [
    "/healthz",
    "/readyz",
    "/metrics",
    "/.well-known/jwks.json",
    "/api/v1/interactions",
    "/api/v1/audit",
    "/api/v1/openapi.json",
];
const POSTS: [&str; 5] = [
    "/slack/interactivity",
    "/slack/commands",
    "/slack/events",
    "/api/v1/tasks",
    "/hooks/a2a/0123456789abcdef",
];

fn is_problem(got: &Got, status: StatusCode) {
    assert_eq!(got.status, status, "{got:?}");
    assert_eq!(got.header("content-type"), "application/problem+json");
    let problem = got.json();
    assert_eq!(problem["status"], status.as_u16());
    assert!(problem["title"].as_str().is_some_and(|title| !title.is_empty()), "{problem}");
    assert!(problem["detail"].as_str().is_some_and(|detail| detail.len() > 10), "{problem}");
}

#[tokio::test]
async fn wrong_methods_and_unknown_addresses_are_said() {
    let doors = Doors::open().await;
    for (routes, allowed) in [(&GETS[..], "GET,HEAD"), (&POSTS[..], "POST")] {
        for route in routes {
            for method in [Method::DELETE, Method::PUT, Method::POST, Method::GET] {
                if allowed.contains(method.as_str()) {
                    continue;
                }
                let got = doors.send(as_operator(method, route).body(Body::from("{}")).unwrap()).await;
                is_problem(&got, StatusCode::METHOD_NOT_ALLOWED);
                assert_eq!(got.header("allow"), allowed, "{route}");
            }
        }
    }
    for uri in
        ["/", "/slack", "/slack/interactivity/", "/api/v1", "/api/v1/interactions/1", "/%00", "/..%2f", "//"]
    {
        is_problem(&doors.get(uri).await, StatusCode::NOT_FOUND);
    }
    assert_eq!(doors.stored().await, (0, vec![]));
}

/// Bodies that no route takes, to every route that takes a body.
#[tokio::test]
async fn bad_bodies_are_refused_and_nothing_is_stored() {
    let doors = Doors::open().await;
    let deep = "[".repeat(100_000);
    let large = "x".repeat(2 * 1024 * 1024);
    let bodies: [&[u8]; 7] =
        [b"", b"not json", b"null", b"\xff\xfe\0", b"{\"a\":1}", deep.as_bytes(), large.as_bytes()];
    let kinds = ["application/json", "text/plain", "application/x-www-form-urlencoded", "", "\u{7f}\u{e9}"];
    for route in POSTS {
        for body in bodies {
            for kind in kinds {
                let request = as_operator(Method::POST, route).header(
                    "content-type",
                    axum::http::HeaderValue::from_bytes(kind.as_bytes())
                        .unwrap_or(axum::http::HeaderValue::from_static("odd/odd")),
                );
                let got = doors.send(request.body(Body::from(body.to_vec())).unwrap()).await;
                assert!(got.status.is_client_error(), "{route} {kind} {got:?}");
                if route.starts_with("/slack") {
                    assert_eq!(got.text(), "", "{route}");
                } else {
                    is_problem(&got, got.status);
                }
            }
        }
    }
    assert_eq!(doors.stored().await, (0, vec![]));
    assert_eq!(doors.tasks().await, []);
}

#[tokio::test]
async fn a_panic_is_a_problem_without_details() {
    let doors = Doors::open().await;
    let router: Router<Arc<Http>> = Router::new()
        .route("/boom", axum::routing::get(async || -> String { panic!("secret-detail") }))
        .route("/fine", axum::routing::get(async || "fine"));
    let router = finish(router, &doors.http);
    let got = send(&router, request(Method::GET, "/boom").body(Body::empty()).unwrap()).await;
    is_problem(&got, StatusCode::INTERNAL_SERVER_ERROR);
    assert!(!got.text().contains("secret-detail"));
    let got = send(&router, request(Method::GET, "/fine").body(Body::empty()).unwrap()).await;
    assert_eq!((got.status, got.text()), (StatusCode::OK, "fine"));
}

#[tokio::test]
async fn every_answer_has_an_id_of_ours_and_the_headers_for_browsers() {
    let doors = Doors::open().await;
    for uri in GETS.into_iter().chain(["/nothing"]) {
        let request = as_operator(Method::GET, uri).header("x-request-id", "theirs");
        let got = doors.send(request.body(Body::empty()).unwrap()).await;
        assert_eq!(got.header("x-content-type-options"), "nosniff", "{uri}");
        assert_eq!(
            got.header("content-security-policy"),
            "default-src 'none'; frame-ancestors 'none'",
            "{uri}"
        );
        assert_eq!(got.header("x-request-id").len(), 32, "{uri}");
        let cached = if uri == "/.well-known/jwks.json" { "public, max-age=60" } else { "no-store" };
        assert_eq!(got.header("cache-control"), cached, "{uri}");
    }
}

/// Slack case 60: what was sent is not in the log, whatever became of it.
#[test]
fn slack_case_60_no_secret_is_logged() {
    use std::sync::Mutex;
    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);
    impl std::io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let lines = Lines::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || writer.clone())
        .finish();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    tracing::subscriber::with_default(subscriber, || {
        runtime.block_on(async {
            let doors = Doors::open().await;
            doors.slack(POSTS[0], &press(|_| ())).await;
            doors.slack(POSTS[0], &press(|payload| payload["api_app_id"] = "A0OTHER".into())).await;
            doors.slack(POSTS[0], &form("{secret-text")).await;
            doors.send(signed(POSTS[0], b"payload=secret-text", "another-secret", START)).await;
            doors.get("/api/v1/interactions?cursor=secret-query").await;
            doors.get("/secret-path").await;
            doors.post("/api/v1/tasks", r#"{"secret-key":1}"#).await;
        });
    });
    let logged = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    let ours: Vec<&str> = logged.lines().filter(|line| line.contains("countersign")).collect();
    assert!(ours.iter().any(|line| line.contains("names another app")), "{logged}");
    for secret in [SECRET, OLD_SECRET, OPERATOR, "secret-", "another-secret", "v0="] {
        assert!(!logged.contains(secret), "{secret} in {logged}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// Random bytes, signed and not, with every content type, to every route.
    #[test]
    fn random_bytes_never_give_a_server_error(
        bodies in proptest::collection::vec(body(), 1..8),
        query in "[a-z0-9=&%+/_-]{0,30}",
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let doors = Doors::open().await;
            for body in bodies {
                for route in POSTS {
                    let got = doors.slack(route, &body).await;
                    assert!(!got.status.is_server_error(), "{route} {body:?} {got:?}");
                    let request = as_operator(Method::POST, route).header("content-type", "application/json");
                    let got = doors.send(request.body(Body::from(body.clone())).unwrap()).await;
                    assert!(!got.status.is_server_error(), "{route} {body:?} {got:?}");
                }
                for route in GETS {
                    let request = as_operator(Method::GET, &format!("{route}?{query}"));
                    let got = doors.send(request.body(Body::from(body.clone())).unwrap()).await;
                    assert!(!got.status.is_server_error() || route == "/readyz", "{route} {query} {got:?}");
                }
            }
        });
    }
}

fn body() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..300),
        "[\\PC]{0,80}".prop_map(|text| form(&text)),
        "\\{\"(type|runtime|taskId)\":(\"[a-z_]{0,20}\"|[0-9.e+-]{1,9}|null|\\{\\})\\}"
            .prop_map(String::into_bytes),
        "\\{\"type\":\"block_actions\",\"actions\":[\\[\\]{}a-z0-9:\",]{0,60}\\}"
            .prop_map(|text| form(&text)),
    ]
}

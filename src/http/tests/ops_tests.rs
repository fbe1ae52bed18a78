//! Health, readiness, metrics, keys, and what is served where.

use super::*;
use crate::bridge::ports::Identity;
use crate::domain::ids::RuntimeName;
use serde_json::json;

async fn ask(router: &Router, uri: &str) -> Got {
    send(router, request(Method::GET, uri).body(Body::empty()).unwrap()).await
}

#[tokio::test]
async fn readiness_tells_reasons_on_the_admin_address_only() {
    let doors = Doors::open().await;
    let admin = admin_router(&doors.http);
    let got = ask(&doors.public, "/readyz").await;
    assert_eq!((got.status, got.json()), (StatusCode::SERVICE_UNAVAILABLE, json!({"ready": false})));
    let reasons = |got: &Got| -> Vec<String> {
        let body = got.json();
        body["reasons"].as_array().unwrap().iter().map(|one| one["reason"].as_str().unwrap().into()).collect()
    };
    let got = ask(&admin, "/readyz").await;
    assert_eq!(got.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(reasons(&got), ["identity_unknown", "identity_unknown", "never_read"]);

    for install in ["acme", "beta"] {
        let identity = Identity {
            app_id: APP.into(),
            team: Some("T0ACME".into()),
            enterprise: None,
            bot_user: "U0BOT".into(),
            can_search: false,
        };
        doors.http.bridge.directory.set_identity(install, identity);
    }
    doors.http.bridge.note_pass(&RuntimeName::new("prod")).await.unwrap();
    assert_eq!(ask(&doors.public, "/readyz").await.status, StatusCode::OK);
    assert_eq!(ask(&admin, "/readyz").await.json(), json!({"ready": true, "reasons": []}));

    doors.http.bridge.alert("runtime:prod", "prod refuses our credentials").await;
    let got = ask(&admin, "/readyz").await;
    assert_eq!((got.status, reasons(&got)), (StatusCode::SERVICE_UNAVAILABLE, vec!["alert".to_owned()]));
    assert_eq!(got.json()["reasons"][0]["detail"], "prod refuses our credentials");
    doors.http.bridge.all_clear("runtime:prod").await;
    assert_eq!(ask(&admin, "/readyz").await.status, StatusCode::OK);

    doors.http.bridge.store.close().await;
    let got = ask(&admin, "/readyz").await;
    assert_eq!((got.status, reasons(&got)), (StatusCode::SERVICE_UNAVAILABLE, vec!["database".to_owned()]));
    assert_eq!(ask(&doors.public, "/healthz").await.status, StatusCode::OK, "health touches nothing");
    let got = doors.get("/api/v1/interactions").await;
    assert_eq!(got.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(got.header("retry-after"), "1");
}

#[tokio::test]
async fn with_an_admin_address_the_public_one_serves_neither_api_nor_metrics_nor_readiness() {
    let doors = Doors::open().await;
    let (public, admin) = (public_router(&doors.http, true), admin_router(&doors.http));
    for uri in ["/api/v1/interactions", "/api/v1/audit", "/api/v1/openapi.json", "/metrics", "/readyz"] {
        assert_eq!(ask(&public, uri).await.status, StatusCode::NOT_FOUND, "{uri}");
        assert_ne!(ask(&admin, uri).await.status, StatusCode::NOT_FOUND, "{uri}");
    }
    assert_eq!(ask(&admin, "/api/v1/interactions").await.status, StatusCode::UNAUTHORIZED);
    for uri in ["/.well-known/jwks.json", "/healthz"] {
        assert_eq!(ask(&public, uri).await.status, StatusCode::OK, "{uri}");
    }
    for uri in ["/.well-known/jwks.json", "/slack/interactivity"] {
        assert_eq!(ask(&admin, uri).await.status, StatusCode::NOT_FOUND, "{uri}");
    }
    let got = ask(&admin, "/metrics").await;
    assert_eq!(got.header("content-type"), "text/plain; version=0.0.4; charset=utf-8");
    let labelled = "countersign_http_requests_total{route=\"/readyz\",method=\"GET\",status=\"5xx\"}";
    assert!(got.text().contains(labelled), "{}", got.text());
}

#[tokio::test]
async fn only_public_keys_are_published() {
    let doors = Doors::open().await;
    let got = ask(&doors.public, "/.well-known/jwks.json").await;
    assert_eq!(got.header("content-type"), "application/json");
    let keys = got.json()["keys"].clone();
    assert_eq!(keys.as_array().map(Vec::len), Some(1));
    assert!(keys[0]["kid"].is_string() && keys[0].get("d").is_none(), "{keys}");
}

//! Who the caller is: keys with subject headers, tokens, JWTs, watching credentials.

use super::*;
use axum::routing::get;
use data_encoding::BASE64URL_NOPAD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _};
use std::sync::atomic::{AtomicUsize, Ordering};

const NOW_S: i64 = START_MS / 1000;

async fn status_of(request: reqwest::RequestBuilder) -> (u16, Value) {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {}}).to_string();
    let response = request.body(body).send().await.unwrap();
    let challenged = response.headers().contains_key("www-authenticate");
    let status = response.status().as_u16();
    assert_eq!(challenged, status == 401);
    let body: Value = response.json().await.unwrap();
    assert_eq!(body.get("status").is_some_and(|s| s == "rejected"), status != 200, "{body}");
    (status, body["code"].clone())
}

#[tokio::test]
async fn a2a_case_34_a_key_acts_for_a_subject() {
    let bed = Bed::new().await;
    let key = || bed.post().bearer_auth(KEY);
    let own = |request: reqwest::RequestBuilder| request.header("Nylorun-Scopes", "sessions:own");
    assert_eq!(status_of(key()).await, (400, json!("subject_required")));
    assert_eq!(status_of(own(key())).await, (400, json!("subject_required")));
    let dana = || key().header("Nylorun-Subject", "dana@example.com");
    assert_eq!(status_of(own(dana())).await.0, 200);
    assert_eq!(status_of(dana()).await, (400, json!("subject_invalid")));
    assert_eq!(
        status_of(dana().header("Nylorun-Scopes", "everything")).await,
        (400, json!("subject_invalid"))
    );
    assert_eq!(
        status_of(dana().header("Nylorun-Scopes", "sessions:read")).await,
        (403, json!("scope_required"))
    );
    assert_eq!(
        status_of(own(dana()).header("Nylorun-Subject", "lee")).await,
        (400, json!("subject_invalid"))
    );
    assert_eq!(status_of(own(dana()).header("Origin", "https://x")).await, (403, json!("origin_rejected")));
    for subject in ["host", "installation", "dän", &"x".repeat(201)] {
        let request = own(key().header("Nylorun-Subject", subject.as_bytes()));
        assert_eq!(status_of(request).await, (400, json!("subject_invalid")), "{subject}");
    }
}

#[tokio::test]
async fn missing_and_wrong_credentials_are_challenged() {
    let bed = Bed::new().await;
    assert_eq!(status_of(bed.post()).await, (401, json!("credential_required")));
    for value in ["Bearer nonsense", "Basic eDp5", "Bearer", "Bearer a.b.c"] {
        let request = bed.post().header("Authorization", value);
        assert_eq!(status_of(request).await, (401, json!("credential_invalid")), "{value}");
    }
    let plain = bed.client.post(format!("{}/a2a/release", bed.url)).bearer_auth("dana-token");
    assert_eq!(status_of(plain.header("Content-Type", "text/plain")).await.0, 415);
    let elsewhere = bed.client.post(format!("{}/a2a/nowhere", bed.url)).bearer_auth("dana-token");
    let elsewhere = elsewhere.header("Content-Type", "application/json").header("A2A-Version", "1.0");
    assert_eq!(status_of(elsewhere).await, (404, json!("agent_not_found")));
}

#[tokio::test]
async fn a_watching_credential_sees_all_or_one_subject_and_changes_nothing() {
    let bed = Bed::new().await;
    bed.world.switch(|switches| switches.foreign = Foreign::NotFound);
    let opened = bed.world.open(approval());
    bed.world.open(Open::new("lee@example.com", Ask::question("?")));
    let send = async |token: &str, method: &str, params: Value| {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let response = bed.post().bearer_auth(token).body(body).send().await.unwrap();
        (response.status().as_u16(), response.json::<Value>().await.unwrap())
    };
    let (_, all) = send("watch-all", "ListTasks", json!({})).await;
    assert_eq!(all["result"]["totalSize"], 2);
    let (_, dana) = send("watch-dana", "ListTasks", json!({})).await;
    assert_eq!(dana["result"]["totalSize"], 1);
    for (method, params) in
        [("SendMessage", approve(&opened, "m")), ("CancelTask", json!({"id": opened.task_id}))]
    {
        let (status, body) = send("watch-all", method, params).await;
        assert_eq!((status, &body["code"]), (403, &json!("scope_required")));
    }
    assert_eq!(bed.world.state(&opened.task_id), Some(State::AuthRequired));
    assert_eq!(bed.world.requests()[0].credential, "watching token");
    assert_eq!(bed.world.requests()[0].subject, None);
    assert_eq!(bed.world.requests()[1].subject.as_deref(), Some("dana@example.com"));
}

#[tokio::test]
async fn a_foreign_task_is_answered_or_looks_exactly_like_a_missing_one() {
    let bed = Bed::new().await;
    let opened = bed.world.open(approval());
    bed.world.switch(|switches| switches.foreign = Foreign::NotFound);
    for (method, params) in [
        ("GetTask", json!({"id": opened.task_id})),
        ("CancelTask", json!({"id": opened.task_id})),
        ("SendMessage", approve(&opened, "m-1")),
    ] {
        let foreign = bed.call_as("lee@example.com", method, params.clone()).await;
        refused(&foreign, -32001);
        let kept = bed.world.with(|inner| inner.tasks.remove(&opened.task_id)).unwrap();
        let missing = bed.call_as("lee@example.com", method, params).await;
        bed.world.with(|inner| inner.tasks.insert(opened.task_id.clone(), kept));
        assert_eq!(foreign.to_string(), missing.to_string());
    }
    assert!(bed.answers(&opened).is_empty());
    bed.world.switch(|switches| switches.foreign = Foreign::Allowed);
    let answer = bed.call_as("lee@example.com", "SendMessage", approve(&opened, "m-1")).await;
    assert_eq!(answer["result"]["task"]["status"]["state"], "TASK_STATE_WORKING");
}

#[tokio::test]
async fn requests_are_recorded_with_their_subject_and_without_credentials() {
    let bed = Bed::new().await;
    let opened = bed.world.open(approval());
    bed.call("SendMessage", approve(&opened, "m-1")).await;
    let request = bed.post().bearer_auth("secret-unknown").header("Cookie", "secret-cookie");
    status_of(request).await;
    let [sent, refused] = &bed.world.requests()[..] else { panic!() };
    assert_eq!((sent.n, sent.method.as_str(), sent.credential), (1, "SendMessage", "application key"));
    assert_eq!(sent.subject.as_deref(), Some("dana@example.com"));
    assert_eq!(sent.headers["a2a-version"], "1.0");
    assert_eq!(sent.headers["a2a-extensions"], INTERACTIONS_V1);
    assert_eq!(sent.param("/message/messageId"), Some(&json!("m-1")));
    assert_eq!((sent.status, sent.error, sent.refusal), (Some(200), None, None));
    assert_eq!((refused.status, refused.refusal), (Some(401), Some("credential_invalid")));
    let dump = bed.world.dump().to_string();
    for secret in [KEY, "secret-unknown", "secret-cookie"] {
        assert!(!dump.contains(secret));
    }
}

/// An issuer with one ES256 and one EdDSA key.
struct Issuer {
    es: EcdsaKeyPair,
    ed: Ed25519KeyPair,
    rng: SystemRandom,
}

impl Issuer {
    fn new() -> Self {
        let rng = SystemRandom::new();
        let es = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &rng).unwrap();
        let es = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, es.as_ref(), &rng).unwrap();
        let ed = Ed25519KeyPair::from_pkcs8(Ed25519KeyPair::generate_pkcs8(&rng).unwrap().as_ref()).unwrap();
        Self { es, ed, rng }
    }

    fn jwks(&self) -> Value {
        let (x, y) = self.es.public_key().as_ref()[1..].split_at(32);
        json!({"keys": [
            {"kty": "EC", "crv": "P-256", "kid": "es", "alg": "ES256", "use": "sig",
             "x": BASE64URL_NOPAD.encode(x), "y": BASE64URL_NOPAD.encode(y)},
            {"kty": "OKP", "crv": "Ed25519", "kid": "ed", "x": BASE64URL_NOPAD.encode(self.ed.public_key().as_ref())},
            {"kty": "RSA", "kid": "rsa", "n": "AQAB", "e": "AQAB"}]})
    }

    fn sign(&self, header: &Value, claims: &Value) -> String {
        let part = |value: &Value| BASE64URL_NOPAD.encode(value.to_string().as_bytes());
        let signed = format!("{}.{}", part(header), part(claims));
        let signature = if header["alg"] == "EdDSA" {
            self.ed.sign(signed.as_bytes()).as_ref().to_vec()
        } else {
            self.es.sign(&self.rng, signed.as_bytes()).unwrap().as_ref().to_vec()
        };
        format!("{signed}.{}", BASE64URL_NOPAD.encode(&signature))
    }
}

fn claims() -> Value {
    json!({"iss": "https://cs.example", "aud": "agents", "sub": "dana@example.com", "act": {"sub": "countersign"},
        "scope": "sessions:own", "iat": NOW_S, "exp": NOW_S + 60, "jti": "j-1"})
}

fn trusting(jwks: Jwks) -> Setup {
    let auth = AuthMode::Jwt { issuer: "https://cs.example".into(), audience: "agents".into(), jwks };
    let mut setup = setup();
    setup.auth.push(auth);
    setup
}

#[tokio::test]
async fn a_jwt_of_the_trusted_issuer_names_its_subject() {
    let issuer = Issuer::new();
    let bed = Bed::with(trusting(Jwks::Given(issuer.jwks()))).await;
    for header in [json!({"alg": "ES256", "kid": "es"}), json!({"alg": "EdDSA", "kid": "ed"})] {
        let token = issuer.sign(&header, &claims());
        assert_eq!(status_of(bed.post().bearer_auth(&token)).await.0, 200);
        let seen = bed.world.requests().pop().unwrap();
        assert_eq!((seen.credential, seen.subject.as_deref()), ("jwt", Some("dana@example.com")));
        assert_eq!(seen.jwt.as_ref().unwrap()["claims"]["act"]["sub"], "countersign");
        assert_eq!(seen.jwt.as_ref().unwrap()["header"], header);
        assert!(!bed.world.dump().to_string().contains(token.rsplit_once('.').unwrap().1));
        for extra in ["Nylorun-Subject", "Nylorun-Scopes"] {
            let request = bed.post().bearer_auth(&token).header(extra, "sessions:own");
            assert_eq!(status_of(request).await, (403, json!("key_role_mismatch")));
        }
    }
}

#[tokio::test]
async fn a_jwt_with_anything_wrong_is_refused() {
    let issuer = Issuer::new();
    let bed = Bed::with(trusting(Jwks::Given(issuer.jwks()))).await;
    let es = json!({"alg": "ES256", "kid": "es"});
    let with = |name: &str, value: Value| {
        let mut claims = claims();
        claims[name] = value;
        issuer.sign(&es, &claims)
    };
    let cases = [
        (with("iss", json!("https://other.example")), 401, "credential_invalid"),
        (with("aud", json!("other")), 401, "credential_invalid"),
        (with("aud", json!(null)), 401, "credential_invalid"),
        (with("sub", json!("host")), 401, "credential_invalid"),
        (with("act", json!({})), 401, "credential_invalid"),
        (with("jti", json!("")), 401, "credential_invalid"),
        (with("exp", json!(NOW_S - 31)), 401, "token_expired"),
        (with("exp", json!(NOW_S + 91)), 401, "credential_invalid"),
        (with("exp", json!(null)), 401, "credential_invalid"),
        (with("iat", json!(NOW_S + 31)), 401, "credential_invalid"),
        (with("scope", json!("sessions:read")), 403, "scope_required"),
        (issuer.sign(&json!({"alg": "none", "kid": "es"}), &claims()), 401, "credential_invalid"),
        (issuer.sign(&json!({"alg": "HS256", "kid": "es"}), &claims()), 401, "credential_invalid"),
        (issuer.sign(&json!({"alg": "ES256"}), &claims()), 401, "credential_invalid"),
        (issuer.sign(&json!({"alg": "ES256", "kid": "ed"}), &claims()), 401, "credential_invalid"),
        (
            issuer.sign(&json!({"alg": "ES256", "kid": "es", "jku": "x"}), &claims()),
            401,
            "credential_invalid",
        ),
        (Issuer::new().sign(&es, &claims()), 401, "credential_invalid"),
    ];
    for (n, (token, status, code)) in cases.into_iter().enumerate() {
        assert_eq!(status_of(bed.post().bearer_auth(token)).await, (status, json!(code)), "case {n}");
    }
    for good in
        [with("exp", json!(NOW_S - 29)), with("exp", json!(NOW_S + 90)), with("aud", json!(["x", "agents"]))]
    {
        assert_eq!(status_of(bed.post().bearer_auth(good)).await.0, 200);
    }
}

#[tokio::test]
async fn an_unknown_key_is_looked_up_at_most_once_a_minute() {
    let (issuer, reads) = (Issuer::new(), Arc::new(AtomicUsize::new(0)));
    let (set, count) = (issuer.jwks(), Arc::clone(&reads));
    let app = Router::new().route(
        "/jwks",
        get(async move || {
            count.fetch_add(1, Ordering::SeqCst);
            axum::Json(set)
        }),
    );
    let (address, _issuer_server) = serve(app).await;
    let bed = Bed::with(trusting(Jwks::Url(format!("{address}/jwks")))).await;
    let good = issuer.sign(&json!({"alg": "ES256", "kid": "es"}), &claims());
    let unknown = issuer.sign(&json!({"alg": "ES256", "kid": "new"}), &claims());
    assert_eq!(status_of(bed.post().bearer_auth(&good)).await.0, 200);
    for _ in 0..3 {
        let refused = status_of(bed.post().bearer_auth(&unknown)).await;
        assert_eq!(refused, (401, json!("credential_invalid")));
    }
    assert_eq!(reads.load(Ordering::SeqCst), 1);
    bed.world.time.advance(60_000);
    assert_eq!(status_of(bed.post().bearer_auth(&unknown)).await.0, 401);
    assert_eq!(reads.load(Ordering::SeqCst), 2);

    let gone = Bed::with(trusting(Jwks::Url("http://127.0.0.1:1/jwks".into()))).await;
    assert_eq!(status_of(gone.post().bearer_auth(&good)).await, (401, json!("issuer_unavailable")));
}

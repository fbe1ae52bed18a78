use super::*;
use crate::domain::ids::{Ids, Subject};
use crate::identity::jwt::{Claims, verify};
use crate::identity::subject::{Carry, CarryError, SUBJECT_HEADER};
use data_encoding::BASE64URL_NOPAD;
use jsonwebtoken::{Algorithm, DecodingKey};
use rstest::rstest;
use secrecy::ExposeSecret;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use uuid::Uuid;

const NOW: Millis = Millis(1_796_029_200_123);
const AHEAD: Duration = Duration::from_mins(11);
const ISSUER: (&str, &str) = ("https://countersign.example.com", "prod-agents");

fn file(dir: &tempfile::TempDir, alg: SigningAlg) -> KeyFile {
    KeyFile { path: dir.path().join("countersign.key"), alg, publish_ahead: AHEAD }
}

fn open(alg: SigningAlg) -> (tempfile::TempDir, KeyFile, Arc<Keys>) {
    let dir = tempfile::tempdir().unwrap();
    let file = file(&dir, alg);
    let keys = Arc::new(Keys::open(file.clone(), true, NOW).unwrap());
    (dir, file, keys)
}

fn kids(jwks: &Value) -> BTreeSet<String> {
    jwks["keys"].as_array().unwrap().iter().map(|key| key["kid"].as_str().unwrap().to_owned()).collect()
}

fn header(token: &SecretString) -> Value {
    let head = token.expose_secret().split('.').next().unwrap();
    serde_json::from_slice(&BASE64URL_NOPAD.decode(head.as_bytes()).unwrap()).unwrap()
}

fn public(jwk: &Value) -> (DecodingKey, Algorithm) {
    let text = |name: &str| jwk[name].as_str().unwrap();
    match text("kty") {
        "EC" => (DecodingKey::from_ec_components(text("x"), text("y")).unwrap(), Algorithm::ES256),
        _ => (DecodingKey::from_ed_components(text("x")).unwrap(), Algorithm::EdDSA),
    }
}

#[derive(Debug, Default)]
struct Counted(AtomicU64);

impl Ids for Counted {
    fn uuid(&self) -> Uuid {
        Uuid::from_u64_pair(7, self.0.fetch_add(1, Ordering::SeqCst))
    }
    fn random(&self) -> [u8; 16] {
        [0; 16]
    }
}

fn carry(keys: &Arc<Keys>) -> Carry {
    Carry::jwt(
        Some("watching".into()),
        (ISSUER.0.into(), ISSUER.1.into()),
        vec!["sessions:own".into()],
        Arc::clone(keys),
        Arc::new(Counted::default()),
    )
}

fn token(carry: &Carry, at: Millis) -> SecretString {
    let dana = Subject::parse("dana@example.com").unwrap();
    let headers = carry.headers(Some(&dana), at).unwrap();
    assert_eq!(headers.len(), 1, "no subject headers beside a token");
    assert_eq!(headers[0].0, "authorization");
    headers[0].1.expose_secret().strip_prefix("Bearer ").unwrap().into()
}

#[rstest]
#[case(SigningAlg::Es256, "ES256")]
#[case(SigningAlg::EdDsa, "EdDSA")]
fn a2a_case_36_a_token_says_who_acts_and_lives_a_minute(#[case] alg: SigningAlg, #[case] name: &str) {
    let (_dir, _, keys) = open(alg);
    let carry = carry(&keys);
    let token = token(&carry, NOW);
    let jwks = keys.jwks(NOW);
    assert_eq!(header(&token), json!({ "typ": "JWT", "alg": name, "kid": jwks["keys"][0]["kid"] }));
    let (key, algorithm) = public(&jwks["keys"][0]);
    let claims: Claims = verify(token.expose_secret(), &key, algorithm, ISSUER, NOW).unwrap();
    assert_eq!(
        serde_json::to_value(&claims).unwrap(),
        json!({ "iss": ISSUER.0, "aud": ISSUER.1, "sub": "dana@example.com", "act": { "sub": "countersign" },
            "scope": "sessions:own", "iat": 1_796_029_200, "exp": 1_796_029_260, "jti": claims.jti })
    );
    let again = super::tests::token(&carry, NOW);
    let second = verify(again.expose_secret(), &key, algorithm, ISSUER, NOW).unwrap();
    assert_ne!(second.jti, claims.jti);
}

#[rstest]
#[case(SigningAlg::Es256)]
#[case(SigningAlg::EdDsa)]
fn what_is_not_ours_is_refused(#[case] alg: SigningAlg) {
    let (_dir, _, keys) = open(alg);
    let (_other_dir, _, others) = open(alg);
    let token = token(&carry(&keys), NOW);
    let token = token.expose_secret();
    let (key, algorithm) = public(&keys.jwks(NOW)["keys"][0]);
    let holds = |token: &str, key: &DecodingKey, algorithm, issuer, at| {
        verify(token, key, algorithm, issuer, at).is_ok()
    };
    assert!(holds(token, &key, algorithm, ISSUER, NOW));
    let (other, _) = public(&others.jwks(NOW)["keys"][0]);
    assert!(!holds(token, &other, algorithm, ISSUER, NOW));
    assert!(!holds(token, &key, algorithm, ("https://evil.example", ISSUER.1), NOW));
    assert!(!holds(token, &key, algorithm, (ISSUER.0, "other"), NOW));
    assert!(!holds(token, &key, algorithm, ISSUER, NOW.plus(Duration::from_secs(61))));
    assert!(!holds(token, &key, algorithm, ISSUER, NOW.minus(Duration::from_mins(1))));
    let wrong = if algorithm == Algorithm::ES256 { Algorithm::EdDSA } else { Algorithm::ES256 };
    assert!(!holds(token, &key, wrong, ISSUER, NOW));
    assert!(!holds(token, &key, Algorithm::HS256, ISSUER, NOW));
    // Another subject under the same signature; no signature at all.
    let parts: Vec<&str> = token.split('.').collect();
    let body = BASE64URL_NOPAD.decode(parts[1].as_bytes()).unwrap();
    let body = String::from_utf8(body).unwrap().replace("dana@", "root@");
    let forged = format!("{}.{}.{}", parts[0], BASE64URL_NOPAD.encode(body.as_bytes()), parts[2]);
    assert!(!holds(&forged, &key, algorithm, ISSUER, NOW));
    let none = BASE64URL_NOPAD.encode(br#"{"alg":"none"}"#);
    assert!(!holds(&format!("{none}.{}.", parts[1]), &key, algorithm, ISSUER, NOW));
}

#[test]
fn the_first_key_signs_at_once_and_a_later_one_after_it_was_published() {
    let (_dir, file, keys) = open(SigningAlg::Es256);
    let first = header(&token(&carry(&keys), NOW))["kid"].as_str().unwrap().to_owned();
    let rotated = NOW.plus(Duration::from_hours(1));
    let listed = rotate(&file, rotated).unwrap();
    assert_eq!(listed.len(), 2);
    assert_eq!(listed[1].standing, Standing::Waiting);
    let second = listed[1].kid.clone();
    assert_eq!(kids(&keys.jwks(rotated)).len(), 1, "the running service has not looked yet");
    assert!(keys.reload().unwrap());
    assert!(!keys.reload().unwrap());
    let both: BTreeSet<String> = [first.clone(), second.clone()].into();
    let signs = |at: Millis| header(&token(&carry(&keys), at))["kid"].as_str().unwrap().to_owned();
    let begins = rotated.plus(AHEAD);
    let ms = Duration::from_millis(1);
    assert_eq!((kids(&keys.jwks(rotated)), signs(rotated)), (both.clone(), first.clone()));
    assert_eq!((kids(&keys.jwks(begins.minus(ms))), signs(begins.minus(ms))), (both.clone(), first.clone()));
    assert_eq!((kids(&keys.jwks(begins)), signs(begins)), (both.clone(), second.clone()));
    let over = begins.plus(AHEAD);
    assert_eq!(kids(&keys.jwks(over)), both);
    assert_eq!(kids(&keys.jwks(over.plus(ms))), [second.clone()].into());
    let standings: Vec<Standing> = keys.list(begins).into_iter().map(|key| key.standing).collect();
    assert_eq!(standings, [Standing::Retired, Standing::Signing]);
    // Nobody needs the first one any more.
    let listed = rotate(&file, over.plus(ms)).unwrap();
    assert_eq!(listed.iter().map(|key| key.kid.as_str()).filter(|kid| *kid == first).count(), 0);
    assert_eq!(listed.len(), 2);
}

#[test]
fn rotations_in_a_hurry_keep_every_key_that_signs() {
    let (_dir, file, keys) = open(SigningAlg::EdDsa);
    for _ in 0..3 {
        rotate(&file, NOW).unwrap();
    }
    keys.reload().unwrap();
    assert_eq!(keys.list(NOW).len(), 4);
    let mut at = NOW;
    while at <= NOW.plus(AHEAD + AHEAD) {
        let signing = header(&token(&carry(&keys), at))["kid"].as_str().unwrap().to_owned();
        assert!(kids(&keys.jwks(at)).contains(&signing));
        at = at.plus(Duration::from_secs(1));
    }
}

#[test]
fn the_public_set_holds_nothing_private() {
    for alg in [SigningAlg::Es256, SigningAlg::EdDsa] {
        let (_dir, file, keys) = open(alg);
        let text = std::fs::read_to_string(&file.path).unwrap();
        let written: Value = serde_json::from_str(&text).unwrap();
        let private = written["keys"][0]["d"].as_str().unwrap();
        let jwks = keys.jwks(NOW);
        assert!(jwks["keys"][0].get("d").is_none());
        for shown in [
            jwks.to_string(),
            format!("{keys:?}"),
            format!("{:?}", carry(&keys)),
            format!("{:?}", keys.list(NOW)),
        ] {
            assert!(!shown.contains(private) && !shown.contains("watching"), "{shown}");
        }
        assert_eq!(jwks["keys"][0]["kid"], written["keys"][0]["kid"]);
        assert_eq!(jwks["keys"][0]["use"], "sig");
    }
}

/// RFC 8037 appendix A.2 and A.3: a key, and its thumbprint.
#[test]
fn a_key_id_is_the_thumbprint_of_the_public_key() {
    let dir = tempfile::tempdir().unwrap();
    let file = file(&dir, SigningAlg::EdDsa);
    let mut out = create_private(&file.path).unwrap();
    out.write_all(
        br#"{"keys":[{"kty":"OKP","crv":"Ed25519","d":"nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A",
        "x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo","starts":"2026-01-01T00:00:00Z"}]}"#,
    )
    .unwrap();
    let keys = Keys::open(file, false, NOW).unwrap();
    assert_eq!(keys.list(NOW)[0].kid, "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k");
}

#[test]
fn a_missing_file_is_made_only_where_one_node_owns_it() {
    let dir = tempfile::tempdir().unwrap();
    let file = file(&dir, SigningAlg::Es256);
    let missing = Keys::open(file.clone(), false, NOW).unwrap_err();
    assert!(missing.to_string().contains("keys rotate"), "{missing}");
    let listed = rotate(&file, NOW).unwrap();
    assert_eq!((listed.len(), listed[0].standing), (1, Standing::Signing));
    assert_eq!(Keys::open(file.clone(), false, NOW).unwrap().list(NOW), listed);
    let left: Vec<_> =
        std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["countersign.key"]);
}

#[cfg(unix)]
#[test]
fn the_file_is_private_and_must_stay_so() {
    use std::os::unix::fs::PermissionsExt;
    let (_dir, file, keys) = open(SigningAlg::Es256);
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&file.path), 0o600);
    rotate(&file, NOW).unwrap();
    assert_eq!(mode(&file.path), 0o600);
    std::fs::set_permissions(&file.path, std::fs::Permissions::from_mode(0o640)).unwrap();
    assert!(matches!(keys.reload(), Err(KeysError::Mode { mode: 0o640, .. })));
    assert_eq!(keys.list(NOW).len(), 1, "what was read before stays");
}

#[rstest]
#[case::no_json("not json")]
#[case::no_set(r#"{"kty":"EC"}"#)]
#[case::empty(r#"{"keys":[]}"#)]
#[case::no_start(r#"{"keys":[{"kty":"OKP","crv":"Ed25519","d":"nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#)]
#[case::not_together(r#"{"keys":[{"kty":"OKP","crv":"Ed25519","d":"nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A","x":"AAAYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo","starts":"2026-01-01T00:00:00Z"}]}"#)]
#[case::other_kind(
    r#"{"keys":[{"kty":"oct","crv":"","d":"c2VjcmV0","x":"","starts":"2026-01-01T00:00:00Z"}]}"#
)]
fn an_unusable_file_is_named_and_not_quoted(#[case] text: &str) {
    let dir = tempfile::tempdir().unwrap();
    let file = file(&dir, SigningAlg::EdDsa);
    create_private(&file.path).unwrap().write_all(text.as_bytes()).unwrap();
    let error = Keys::open(file, true, NOW).unwrap_err();
    assert!(matches!(error, KeysError::Unusable { .. }), "{error}");
    assert!(!format!("{error} {error:?}").contains("nWGxne"), "{error}");
}

#[test]
fn a_second_rotation_at_once_is_refused() {
    let (_dir, file, _keys) = open(SigningAlg::Es256);
    let lock = create_private(&beside(&file.path, "new")).unwrap();
    let refused = rotate(&file, NOW).unwrap_err();
    assert!(matches!(refused, KeysError::Rotating { .. }), "{refused}");
    drop(lock);
    assert!(beside(&file.path, "new").exists(), "somebody else's file is left alone");
}

#[test]
fn a_header_names_the_person_beside_the_key() {
    let dana = Subject::parse("dana@example.com").unwrap();
    let scopes = || vec!["sessions:own".to_owned()];
    let carry = Carry::header(Some("key".into()), SUBJECT_HEADER.into(), scopes());
    let shown = |who| -> Vec<(String, String)> {
        let headers = carry.headers(who, NOW).unwrap();
        headers.into_iter().map(|(name, value)| (name, value.expose_secret().to_owned())).collect()
    };
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(
        shown(Some(&dana)),
        [
            pair("authorization", "Bearer key"),
            pair("Nylorun-Subject", "dana@example.com"),
            pair("Nylorun-Scopes", "sessions:own")
        ]
    );
    assert_eq!(shown(None), [pair("authorization", "Bearer key")]);
    let without = Carry::header(None, SUBJECT_HEADER.into(), scopes());
    assert!(matches!(without.headers(Some(&dana), NOW), Err(CarryError::NoCredential)));
    assert!(without.headers(None, NOW).unwrap().is_empty());
    let nobody = Carry::nobody(None);
    assert!(!nobody.names_people());
    assert!(matches!(nobody.headers(Some(&dana), NOW), Err(CarryError::NoWay)));
}

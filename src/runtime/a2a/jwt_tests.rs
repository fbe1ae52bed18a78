//! Our tokens before somebody else's verification: the stand-in's.

use super::Watch;
use super::bed_tests::{Bed, DANA, ERIK, Hand, START, WATCH, setup, subject};
use crate::bridge::ports::{AnswerOutcome, Connector};
use crate::domain::clock::{Clock, Millis};
use crate::domain::form::Decision;
use crate::domain::ids::Ids;
use crate::identity::keys::{KeyFile, Keys, SigningAlg, rotate};
use crate::identity::subject::Carry;
use crate::sandbox::a2a::{Ask, AuthMode, Foreign, Jwks, Open, State};
use crate::sandbox::faults::{Fault, Rule};
use rstest::rstest;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use uuid::Uuid;

const ISSUER: &str = "https://countersign.example.com";
const AUDIENCE: &str = "prod-agents";

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

/// A bed that trusts our keys as published at `at`, and nothing else.
async fn bed(alg: SigningAlg, rotated: bool) -> (tempfile::TempDir, Bed) {
    let clock = Hand::new();
    let dir = tempfile::tempdir().unwrap();
    let file = KeyFile { path: dir.path().join("k"), alg, publish_ahead: Duration::from_mins(11) };
    let keys = Arc::new(Keys::open(file.clone(), true, Millis(START)).unwrap());
    if rotated {
        rotate(&file, Millis(START)).unwrap();
        keys.reload().unwrap();
    }
    let jwks = Jwks::Given(keys.jwks(clock.now()));
    let mut setup = setup(&clock);
    setup.auth = vec![AuthMode::Jwt { issuer: ISSUER.into(), audience: AUDIENCE.into(), jwks }];
    let carrier = Carry::jwt(
        Some(WATCH.into()),
        (ISSUER.into(), AUDIENCE.into()),
        vec!["sessions:own".into()],
        keys,
        Arc::new(Counted::default()),
    );
    let bed = Bed::made(clock, setup, Arc::new(carrier), |settings| {
        settings.watch = Watch::Subjects(vec![subject(DANA), subject(ERIK)]);
    })
    .await;
    (dir, bed)
}

#[rstest]
#[tokio::test]
async fn a2a_case_36_our_token_is_the_person_there(
    #[values(SigningAlg::Es256, SigningAlg::EdDsa)] alg: SigningAlg,
    #[values(Foreign::Allowed, Foreign::NotFound)] foreign: Foreign,
) {
    let (_dir, bed) = bed(alg, false).await;
    bed.world.switch(|switches| switches.foreign = foreign);
    let opened = bed.world.open(Open::new(DANA, Ask::approval("ci", "deploy")));
    assert!(!bed.list().await.unwrap().is_empty());
    let answered = bed.send(&bed.answer_of(DANA, &opened, Decision::Approve)).await;
    assert!(matches!(answered.outcome, AnswerOutcome::Accepted { .. }), "{answered:?}");
    assert_eq!(bed.world.state(&opened.task_id), Some(State::Working));
    let sent = bed.world.requests_of("SendMessage").remove(0);
    assert_eq!((sent.credential, sent.subject.as_deref()), ("jwt", Some(DANA)));
    assert!(!sent.headers.contains_key("nylorun-subject"));
    let jwt = sent.jwt.unwrap().to_string();
    for part in ["\"countersign\"", "\"sessions:own\"", alg.as_str()] {
        assert!(jwt.contains(part), "{jwt}");
    }
}

#[tokio::test]
async fn every_attempt_has_a_token_of_its_own() {
    let (_dir, bed) = bed(SigningAlg::Es256, false).await;
    let opened = bed.world.open(Open::new(DANA, Ask::approval("ci", "deploy")));
    let out = bed.answer_of(DANA, &opened, Decision::Approve);
    let expired = json!({ "status": "rejected", "code": "token_expired" }).to_string();
    bed.world.faults().add(Rule::next("SendMessage", Fault::StatusAfter { code: 503 }));
    bed.world
        .faults()
        .add(Rule::next("SendMessage", Fault::Status { code: 401, retry_after: None, body: Some(expired) }));
    bed.send(&out).await;
    let answered = bed.send(&out).await;
    assert!(matches!(answered.outcome, AnswerOutcome::Accepted { .. }), "{answered:?}");
    let sent = bed.world.requests_of("SendMessage");
    assert_eq!(sent.len(), 3);
    assert_eq!(sent[0].body["params"], sent[2].body["params"]);
    assert_ne!(sent[0].jwt, sent[2].jwt);
    assert_eq!(bed.applied(&opened), 1);
}

/// The set was fetched before the new key signs, and holds after it does.
#[tokio::test]
async fn a_set_fetched_early_knows_the_later_key() {
    let (_dir, bed) = bed(SigningAlg::Es256, true).await;
    let opened = bed.world.open(Open::new(DANA, Ask::approval("ci", "deploy")));
    bed.clock.advance(Duration::from_secs(661));
    let answered = bed.send(&bed.answer_of(DANA, &opened, Decision::Approve)).await;
    assert!(matches!(answered.outcome, AnswerOutcome::Accepted { .. }), "{answered:?}");
}

#[tokio::test]
async fn a_wrong_audience_is_for_operators_not_for_the_person() {
    let (_dir, bed) = bed(SigningAlg::Es256, false).await;
    let other = vec![AuthMode::Jwt {
        issuer: ISSUER.into(),
        audience: "other".into(),
        jwks: Jwks::Given(json!({ "keys": [] })),
    }];
    bed.world.set_auth(other, BTreeMap::default());
    let opened = bed.world.open(Open::new(DANA, Ask::approval("ci", "deploy")));
    let answered = bed.connector.answer(&bed.answer_of(DANA, &opened, Decision::Approve)).await;
    assert!(matches!(answered.outcome, AnswerOutcome::Attention { .. }), "{answered:?}");
    assert_eq!(bed.world.requests_of("SendMessage").len(), 2, "one fresh token, no loop");
}

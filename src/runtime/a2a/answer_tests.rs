//! Answers before the strict stand-in, and what follows from each of its refusals.

use super::bed_tests::{
    Bed, DANA, ERIK, Script, error, json as said, result, setup, shown, subject, task_ref,
};
use super::bed_tests::{Hand, KEY, KeyCarrier, WATCH};
use super::{URI, Watch};
use crate::bridge::ports::{AnswerOutcome, Connector, Outgoing, TaskState};
use crate::domain::form::Decision;
use crate::domain::interaction::{Sent, Why};
use crate::sandbox::a2a::{Ask, Decision as Said, Elsewhere, Foreign, Open, Opened, State, WhileWorking};
use crate::sandbox::faults::{Fault, Rule};
use rstest::rstest;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

fn approval(bed: &Bed) -> Opened {
    bed.world.open(Open::new(DANA, Ask::approval("ci", "deploy")))
}

fn elsewhere(history: bool) -> Elsewhere {
    Elsewhere { subject: DANA.into(), decision: Said::Approved(false), history, message_id: None }
}

#[tokio::test]
async fn a2a_case_13_an_approval_is_one_message_as_the_person_and_the_runtime_records_her() {
    let bed = Bed::new().await;
    let opened = approval(&bed);
    let out = bed.answer_of(DANA, &opened, Decision::Approve);
    let answered = bed.send(&out).await;
    let AnswerOutcome::Accepted { after: Some(after) } = answered.outcome else { panic!("{answered:?}") };
    assert!(matches!(after.state, TaskState::Running), "{after:?}");
    let sent = bed.world.requests_of("SendMessage");
    assert_eq!(sent.len(), 1);
    assert_eq!(sent[0].subject.as_deref(), Some(DANA));
    assert_eq!(sent[0].param("/message/taskId"), Some(&json!(opened.task_id)));
    assert_eq!(sent[0].param("/message/contextId"), Some(&json!(opened.context_id)));
    assert_eq!(sent[0].param("/message/extensions"), Some(&json!([URI])));
    assert_eq!(sent[0].param("/configuration/returnImmediately"), Some(&json!(true)));
    assert_eq!(sent[0].param("/message/parts/0/data"), Some(&json!({ "approved": true })));
    let answers = bed.world.interaction(&opened.interaction_id).unwrap().answers;
    assert_eq!(answers.len(), 1);
    assert_eq!(answers[0].decision, Said::Approved(true));
    assert_eq!(bed.world.state(&opened.task_id), Some(State::Working));
}

#[rstest]
#[case::deny(Ask::approval("ci", "deploy"), Decision::Deny { reason: Some("no".into()) }, Said::Approved(false))]
#[case::connected(Ask::connection("github", "to push"), Decision::Connected, Said::Connected(true))]
#[case::decline(Ask::connection("github", "to push"), Decision::Decline, Said::Connected(false))]
#[case::text(Ask::question("Which?"), Decision::Answer { values: vec![json!("eu")] }, Said::Value(json!("eu")))]
#[case::data(
    Ask::question("Which?"),
    Decision::Answer { values: vec![json!({ "env": "eu" })] },
    Said::Value(json!({ "env": "eu" }))
)]
#[tokio::test]
async fn a2a_cases_15_17_20_every_decision_arrives_as_what_it_is(
    #[case] ask: Ask,
    #[case] decision: Decision,
    #[case] arrived: Said,
) {
    let bed = Bed::new().await;
    let opened = bed.world.open(Open::new(DANA, ask));
    let answered = bed.send(&bed.answer_of(DANA, &opened, decision)).await;
    assert!(matches!(answered.outcome, AnswerOutcome::Accepted { .. }), "{answered:?}");
    assert_eq!(bed.world.interaction(&opened.interaction_id).unwrap().answers[0].decision, arrived);
}

#[tokio::test]
async fn a_question_in_plain_text_is_answered_in_plain_text() {
    let bed = Bed::new().await;
    let opened = bed.world.open(Open::new(DANA, Ask::plain("Which region?", State::InputRequired)));
    let reading = bed.read(&opened).await;
    let TaskState::Waiting(seen) = reading.state else { panic!("{reading:?}") };
    let as_shown = Opened { interaction_id: seen.key.external, ..opened.clone() };
    let out = bed.answer_of(DANA, &as_shown, Decision::Answer { values: vec![json!("eu")] });
    assert!(out.body["message"].get("metadata").is_none());
    let answered = bed.send(&out).await;
    assert!(matches!(answered.outcome, AnswerOutcome::Accepted { .. }), "{answered:?}");
    assert_eq!(bed.applied(&opened), 1);
}

#[tokio::test]
async fn a2a_case_22_an_answer_to_what_is_no_longer_asked_is_refused_and_the_present_one_is_shown() {
    let bed = Bed::new().await;
    let mut open = Open::new(DANA, Ask::approval("ci", "deploy"));
    open.queue = vec![Ask::approval("ci", "rollback")];
    let opened = bed.world.open(open);
    let late = bed.answer_of(ERIK, &opened, Decision::Deny { reason: None });
    bed.send(&bed.answer_of(DANA, &opened, Decision::Approve)).await;
    let answered = bed
        .send(&Outgoing { message_id: late.message_id.clone() + ":2", body: renamed(&late), ..late })
        .await;
    let AnswerOutcome::Refused { after: Some(after), .. } = answered.outcome else { panic!("{answered:?}") };
    assert_eq!(shown(&after), Some(opened.queued[0].as_str()));
    assert_eq!(bed.applied(&opened), 1);
}

fn renamed(out: &Outgoing) -> serde_json::Value {
    let mut body = out.body.clone();
    body["message"]["messageId"] = format!("{}:2", out.message_id).into();
    body
}

#[rstest]
#[case::lost(Fault::Lost { ms: 0 })]
#[case::cut(Fault::CutAnswer)]
#[case::status_after(Fault::StatusAfter { code: 503 })]
#[case::not_done(Fault::Status { code: 500, retry_after: None, body: None })]
#[case::html(Fault::Html)]
#[tokio::test]
async fn a2a_case_26_an_unknown_outcome_is_sent_again_unchanged_and_applied_once(#[case] fault: Fault) {
    let bed = Bed::new().await;
    let opened = approval(&bed);
    let mut out = bed.answer_of(DANA, &opened, Decision::Approve);
    bed.world.faults().add(Rule::next("SendMessage", fault));
    let first = bed.send(&out).await;
    assert!(matches!(first.outcome, AnswerOutcome::Unknown { .. }), "{first:?}");
    out.sent = Sent::Maybe;
    let second = bed.send(&out).await;
    assert!(matches!(second.outcome, AnswerOutcome::Accepted { .. }), "{second:?}");
    assert_eq!(bed.applied(&opened), 1);
    let sent = bed.world.requests_of("SendMessage");
    assert_eq!(sent[0].body["params"], sent[1].body["params"]);
}

#[tokio::test]
async fn a2a_case_24_a_repeat_after_the_end_is_still_ours() {
    let bed = Bed::new().await;
    let opened = approval(&bed);
    let mut out = bed.answer_of(DANA, &opened, Decision::Approve);
    bed.world.faults().add(Rule::next("SendMessage", Fault::Lost { ms: 0 }));
    bed.send(&out).await;
    bed.world.end(&opened.task_id, State::Completed, None);
    (out.sent, out.probe) = (Sent::Maybe, true);
    let answered = bed.send(&out).await;
    let AnswerOutcome::Accepted { after: Some(after) } = answered.outcome else { panic!("{answered:?}") };
    assert!(matches!(after.state, TaskState::Completed));
}

#[tokio::test]
async fn a2a_case_27_without_deduplication_nothing_is_sent_twice_once_it_ended() {
    let bed = Bed::with(|settings| settings.dedupe = false).await;
    bed.world.switch(|switches| {
        switches.dedupe = false;
        switches.while_working = WhileWorking::Accept;
        switches.approvals_in_history = true;
    });
    let opened = approval(&bed);
    let mut out = bed.answer_of(DANA, &opened, Decision::Approve);
    bed.world.faults().add(Rule::next("SendMessage", Fault::Lost { ms: 0 }));
    let first = bed.send(&out).await;
    assert!(matches!(first.outcome, AnswerOutcome::Unknown { .. }), "{first:?}");
    (out.sent, out.probe) = (Sent::Maybe, true);
    let second = bed.send(&out).await;
    assert!(matches!(second.outcome, AnswerOutcome::Accepted { .. }), "{second:?}");
    assert_eq!(bed.world.requests_of("SendMessage").len(), 1);

    // Still open after an unknown outcome: sent again.
    let opened = approval(&bed);
    let mut out = bed.answer_of(DANA, &opened, Decision::Approve);
    out.sent = Sent::Maybe;
    let sent = bed.send(&out).await;
    assert!(matches!(sent.outcome, AnswerOutcome::Accepted { .. }), "{sent:?}");

    // Ended, and the history does not hold our id: not ours to claim.
    let opened = approval(&bed);
    let mut out = bed.answer_of(DANA, &opened, Decision::Approve);
    bed.world.answer_elsewhere(&opened.interaction_id, elsewhere(false));
    (out.sent, out.probe) = (Sent::Maybe, true);
    let probed = bed.send(&out).await;
    assert!(
        matches!(probed.outcome, AnswerOutcome::Refused { why: Why::Unconfirmed, after: Some(_) }),
        "{probed:?}"
    );
    assert_eq!(bed.world.requests_of("SendMessage").len(), 2);
}

#[tokio::test]
async fn a2a_case_30_answered_in_the_product_first_is_refused_with_the_true_state() {
    let bed = Bed::new().await;
    let opened = approval(&bed);
    bed.world.answer_elsewhere(&opened.interaction_id, elsewhere(true));
    let answered = bed.send(&bed.answer_of(DANA, &opened, Decision::Approve)).await;
    let AnswerOutcome::Refused { why, after: Some(after) } = answered.outcome else { panic!("{answered:?}") };
    assert_eq!(why, Why::NotAccepted);
    assert!(matches!(after.state, TaskState::Running));
    assert_eq!(bed.applied(&opened), 1);
}

#[tokio::test]
async fn a2a_case_31_a_task_of_somebody_else_is_told_apart_from_one_that_is_gone() {
    let bed = Bed::new().await;
    bed.world.switch(|switches| switches.foreign = Foreign::NotFound);
    let opened = approval(&bed);
    let out = bed.answer_of(ERIK, &opened, Decision::Approve);
    let answered = bed.send(&out).await;
    let AnswerOutcome::Refused { why: Why::NotOwner, after: Some(after) } = answered.outcome else {
        panic!("{answered:?}")
    };
    assert_eq!(shown(&after), Some(opened.interaction_id.as_str()));
    bed.world.delete(&opened.task_id);
    let answered = bed.send(&out).await;
    let AnswerOutcome::Refused { why: Why::AlreadyEnded, after: Some(after) } = answered.outcome else {
        panic!("{answered:?}")
    };
    assert!(matches!(after.state, TaskState::NotFound));
}

#[tokio::test]
async fn a_foreign_subject_may_answer_where_the_runtime_lets_it() {
    let bed = Bed::new().await;
    let opened = approval(&bed);
    let answered = bed.send(&bed.answer_of(ERIK, &opened, Decision::Approve)).await;
    assert!(matches!(answered.outcome, AnswerOutcome::Accepted { .. }), "{answered:?}");
    assert_eq!(bed.world.requests_of("SendMessage")[0].subject.as_deref(), Some(ERIK));
}

#[tokio::test]
async fn a2a_case_25_a_key_used_for_another_answer_is_already_answered() {
    let bed = Bed::new().await;
    let opened = approval(&bed);
    let deny = bed.answer_of(DANA, &opened, Decision::Deny { reason: None });
    bed.send(&bed.answer_of(DANA, &opened, Decision::Approve)).await;
    let answered = bed.send(&deny).await;
    assert!(
        matches!(answered.outcome, AnswerOutcome::Refused { why: Why::AlreadyEnded, after: Some(_) }),
        "{answered:?}"
    );
    assert_eq!(answered.said, "error -32602");
}

fn token_expired() -> Fault {
    Fault::Status {
        code: 401,
        retry_after: None,
        body: Some(json!({ "status": "rejected", "code": "token_expired" }).to_string()),
    }
}

#[tokio::test]
async fn a2a_case_35_a_refused_token_is_replaced_once_and_then_people_are_told() {
    let bed = Bed::new().await;
    let opened = approval(&bed);
    let out = bed.answer_of(DANA, &opened, Decision::Approve);
    bed.world.faults().add(Rule { method: "SendMessage".into(), skip: 0, times: 2, fault: token_expired() });
    let answered = bed.send(&out).await;
    assert!(matches!(&answered.outcome, AnswerOutcome::Attention { .. }), "{answered:?}");
    assert_eq!(bed.world.requests_of("SendMessage").len(), 2);
    bed.world.faults().add(Rule::next("SendMessage", token_expired()));
    let answered = bed.send(&out).await;
    assert!(matches!(answered.outcome, AnswerOutcome::Accepted { .. }), "{answered:?}");
}

#[tokio::test]
async fn a2a_case_53_a_message_instead_of_a_task_is_followed_by_a_reading() {
    let bed = Bed::new().await;
    bed.world.switch(|switches| switches.answer_with_message = true);
    let opened = approval(&bed);
    let answered = bed.send(&bed.answer_of(DANA, &opened, Decision::Approve)).await;
    let AnswerOutcome::Accepted { after: Some(after) } = answered.outcome else { panic!("{answered:?}") };
    assert!(matches!(after.state, TaskState::Running));
    assert_eq!(bed.world.requests_of("GetTask").len(), 1);
}

#[tokio::test]
async fn a2a_case_54_a_time_limit_and_a_429_are_unknown_outcomes() {
    let bed = Bed::with(|settings| settings.deadline = Duration::from_millis(300)).await;
    let opened = approval(&bed);
    let mut out = bed.answer_of(DANA, &opened, Decision::Approve);
    let busy = Fault::Status { code: 429, retry_after: Some(2), body: None };
    bed.world.faults().add(Rule::next("SendMessage", busy));
    let answered = bed.send(&out).await;
    let AnswerOutcome::Unknown { retry_after } = answered.outcome else { panic!("{answered:?}") };
    assert_eq!(retry_after, Some(Duration::from_secs(2)));
    bed.world.faults().add(Rule::next("SendMessage", Fault::DelayAnswer { ms: 5_000 }));
    let answered = bed.send(&out).await;
    assert!(matches!(answered.outcome, AnswerOutcome::Unknown { retry_after: None }), "{answered:?}");
    assert_eq!(answered.said, "timeout");
    out.sent = Sent::Maybe;
    let answered = bed.send(&out).await;
    assert!(matches!(answered.outcome, AnswerOutcome::Accepted { .. }), "{answered:?}");
    assert_eq!(bed.applied(&opened), 1);
}

#[tokio::test]
async fn nothing_is_sent_where_nobody_listens() {
    let bed = Bed::new().await;
    let out = bed.answer_of(DANA, &approval(&bed), Decision::Approve);
    // No kept connection, and no card.
    let script = Script::new(|_| (404, vec![("connection", "close".into())], String::new())).await;
    let connector = script.connector(&Hand::new(), |_| {});
    connector.refresh().await.unwrap();
    drop(script);
    let closed = async {
        while !matches!(connector.answer(&out).await.outcome, AnswerOutcome::NotSent { .. }) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), closed).await.unwrap();
}

#[rstest]
#[case(-32008)]
#[case(-32009)]
#[case(-32601)]
#[tokio::test]
async fn a2a_case_65_a_configuration_error_keeps_the_claim(#[case] code: i64) {
    let bed = Bed::new().await;
    let opened = approval(&bed);
    let script = Script::new(move |asked| match asked.method() {
        "SendMessage" => error(code),
        _ => said(404, &json!({})),
    })
    .await;
    let connector = script.connector(&Hand::new(), |_| {});
    let answered = connector.answer(&bed.answer_of(DANA, &opened, Decision::Approve)).await;
    assert!(matches!(answered.outcome, AnswerOutcome::Attention { .. }), "{answered:?}");
    assert_eq!(script.count("SendMessage"), 1);
}

#[tokio::test]
async fn a2a_case_52_an_accepted_answer_may_still_show_the_old_state() {
    let bed = Bed::new().await;
    let opened = approval(&bed);
    let script = {
        let (task, external) = (opened.task_id.clone(), opened.interaction_id.clone());
        Script::new(move |asked| match asked.method() {
            "SendMessage" => result(&json!({ "task": waiting(&task, &external) })),
            _ => said(404, &json!({})),
        })
        .await
    };
    let connector = script.connector(&Hand::new(), |_| {});
    let answered = connector.answer(&bed.answer_of(DANA, &opened, Decision::Approve)).await;
    let AnswerOutcome::Accepted { after: Some(after) } = answered.outcome else { panic!("{answered:?}") };
    assert_eq!(shown(&after), Some(opened.interaction_id.as_str()));
}

fn waiting(task: &str, external: &str) -> serde_json::Value {
    json!({ "id": task, "contextId": "c", "status": { "state": "TASK_STATE_AUTH_REQUIRED", "message": {
        "role": "ROLE_AGENT", "parts": [{ "text": "?" }],
        "metadata": { URI: { "interactionId": external, "kind": "approval", "prompt": "?" } } } } })
}

#[tokio::test]
async fn a2a_case_48_the_next_question_of_the_same_task_is_shown_by_the_answer() {
    let bed = Bed::new().await;
    let mut open = Open::new(DANA, Ask::approval("ci", "deploy"));
    open.queue = vec![Ask::question("Which region?")];
    let opened = bed.world.open(open);
    let answered = bed.send(&bed.answer_of(DANA, &opened, Decision::Approve)).await;
    let AnswerOutcome::Accepted { after: Some(after) } = answered.outcome else { panic!("{answered:?}") };
    assert_eq!(shown(&after), Some(opened.queued[0].as_str()));
}

#[tokio::test]
async fn a2a_case_66_no_credential_is_printed() {
    let bed = Bed::with(|settings| {
        settings.headers = vec![("X-Gateway".into(), "5ecret0gateway".into())];
        settings.watch = Watch::Subjects(vec![subject(DANA)]);
    })
    .await;
    let opened = approval(&bed);
    let out = bed.answer_of(DANA, &opened, Decision::Approve);
    let mut printed = vec![format!("{:?}", bed.connector.settings)];
    for fault in [
        token_expired(),
        Fault::Html,
        Fault::Lost { ms: 0 },
        Fault::Status { code: 403, retry_after: None, body: Some(KEY.into()) },
    ] {
        bed.world.faults().add(Rule { method: "*".into(), skip: 0, times: 2, fault });
        printed.push(format!("{:?}", bed.send(&out).await));
        printed.push(format!("{:?}", bed.connector.read(&task_ref(&opened)).await));
        bed.world.faults().clear();
    }
    assert_eq!(bed.world.requests_of("SendMessage")[0].headers["x-gateway"], "5ecret0gateway");
    for text in printed {
        assert!(!text.contains("5ecret0"), "{text}");
    }
    assert!(KEY.contains("5ecret0") && WATCH.contains("5ecret0"));
}

#[tokio::test]
async fn a_tenant_is_put_into_every_request_and_into_no_stored_body() {
    let clock = Hand::new();
    let bed = Bed::made(clock.clone(), setup(&clock), Arc::new(KeyCarrier), |_| {}).await;
    let card = crate::sandbox::a2a::CardSpec { tenant: Some("acme".into()), ..Default::default() };
    bed.world.set_card("release", card);
    let opened = approval(&bed);
    let out = bed.answer_of(DANA, &opened, Decision::Approve);
    assert!(out.body.get("tenant").is_none());
    let answered = bed.send(&out).await;
    assert!(matches!(answered.outcome, AnswerOutcome::Accepted { .. }), "{answered:?}");
    bed.list().await.unwrap();
    for request in bed.world.requests().iter().filter(|request| request.method != "card") {
        assert_eq!(request.param("/tenant"), Some(&json!("acme")), "{request:?}");
    }
}

#[tokio::test]
async fn a_wait_may_be_a_date_and_is_never_endless() {
    let bed = Bed::new().await;
    let out = bed.answer_of(DANA, &approval(&bed), Decision::Approve);
    let waits = [("Mon, 30 Nov 2026 09:00:05 GMT", Some(5)), ("99999999999", Some(3600)), ("soon", None)];
    for (text, seconds) in waits {
        let script = Script::new(move |asked| match asked.method() {
            "SendMessage" => (429, vec![("retry-after", text.to_owned())], String::new()),
            _ => said(404, &json!({})),
        })
        .await;
        let answered = script.connector(&Hand::new(), |_| {}).answer(&out).await;
        let AnswerOutcome::Unknown { retry_after } = answered.outcome else { panic!("{answered:?}") };
        assert_eq!(retry_after, seconds.map(Duration::from_secs), "{text}");
    }
}

#[tokio::test]
async fn a_404_of_a_gateway_is_not_the_tasks() {
    let bed = Bed::new().await;
    let out = bed.answer_of(DANA, &approval(&bed), Decision::Approve);
    let script =
        Script::new(|_| said(404, &json!({ "error": { "code": 404, "message": "no route" } }))).await;
    let answered = script.connector(&Hand::new(), |_| {}).answer(&out).await;
    assert!(matches!(answered.outcome, AnswerOutcome::Attention { .. }), "{answered:?}");
    // The same status with the protocol's own code is about the task.
    let script = Script::new(|asked| match asked.method() {
        "" => said(404, &json!({})),
        _ => said(404, &json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": -32001, "message": "no" } })),
    })
    .await;
    let answered = script.connector(&Hand::new(), |_| {}).answer(&out).await;
    assert!(
        matches!(answered.outcome, AnswerOutcome::Refused { why: Why::AlreadyEnded, after: Some(_) }),
        "{answered:?}"
    );
}

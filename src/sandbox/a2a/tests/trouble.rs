//! Switches and scripted faults.

use super::*;
use crate::sandbox::faults::{Fault, Rule};

/// Sends an approval and says only what a client can know of it.
async fn attempt(bed: &Bed, opened: &Opened) -> Result<(u16, String), reqwest::Error> {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": approve(opened, "m-1")});
    let request = bed.post().bearer_auth("dana-token").body(body.to_string());
    let response = request.send().await?;
    let status = response.status().as_u16();
    Ok((status, response.text().await?))
}

#[tokio::test]
async fn faults_happen_before_or_after_the_answer_is_applied() {
    let bed = Bed::new().await;
    let cases = [
        (Fault::Status { code: 429, retry_after: Some(2), body: None }, Some(429), 0),
        (Fault::Status { code: 503, retry_after: None, body: Some("down".into()) }, Some(503), 0),
        (Fault::StatusAfter { code: 502 }, Some(502), 1),
        (Fault::Refuse { error: "-32603".into() }, Some(200), 0),
        (Fault::Hang { ms: 1 }, None, 0),
        (Fault::Lost { ms: 1 }, None, 1),
        (Fault::CutAnswer, None, 1),
        (Fault::Html, Some(200), 0),
        (Fault::NoContent, Some(204), 0),
        (Fault::Delay { ms: 1 }, Some(200), 1),
        (Fault::DelayAnswer { ms: 1 }, Some(200), 1),
        (Fault::Duplicate, Some(200), 1),
    ];
    for (fault, status, applied) in cases {
        let opened = bed.world.open(approval());
        bed.world.faults().add(Rule::next("SendMessage", fault.clone()));
        let outcome = attempt(&bed, &opened).await;
        assert_eq!(outcome.as_ref().ok().map(|(status, _)| *status), status, "{fault:?} {outcome:?}");
        assert_eq!(bed.answers(&opened).len(), applied, "{fault:?}");
        assert_eq!(bed.world.requests().pop().unwrap().fault, Some(fault.clone()));
        // The same body again settles every case with one application.
        let (_, again) = attempt(&bed, &opened).await.unwrap();
        assert!(again.contains("TASK_STATE_WORKING"), "{fault:?} {again}");
        assert_eq!(bed.answers(&opened).len(), 1, "{fault:?}");
    }
}

#[tokio::test]
async fn a_scripted_refusal_and_a_429_have_their_shapes() {
    let bed = Bed::new().await;
    let opened = bed.world.open(approval());
    bed.world.faults().add(Rule::next("GetTask", Fault::Refuse { error: "INVALID_AGENT_RESPONSE".into() }));
    refused(&bed.call("GetTask", json!({"id": opened.task_id})).await, -32006);
    bed.world.faults().add(Rule::next("*", Fault::Status { code: 429, retry_after: Some(2), body: None }));
    let response = bed.post().bearer_auth("dana-token").body("{}").send().await.unwrap();
    assert_eq!(
        (response.status().as_u16(), &response.headers()["retry-after"]),
        (429, &"2".parse().unwrap())
    );
    assert_eq!(response.json::<Value>().await.unwrap()["code"], "rate_limited");
}

#[tokio::test]
async fn reads_may_lag_behind_an_answer() {
    let bed = Bed::new().await;
    let opened = bed.world.open(approval());
    bed.world.switch(|switches| switches.stale_reads_ms = 5_000);
    let answer = bed.call("SendMessage", approve(&opened, "m-1")).await;
    assert_eq!(answer["result"]["task"]["status"]["state"], "TASK_STATE_WORKING");
    let listed = async || {
        let answer = bed.call("ListTasks", json!({"status": "TASK_STATE_AUTH_REQUIRED"})).await;
        answer["result"]["totalSize"].clone()
    };
    bed.world.time.advance(4_999);
    assert_eq!(bed.state(&opened).await, "TASK_STATE_AUTH_REQUIRED");
    assert_eq!(listed().await, 1);
    refused(&bed.call("SendMessage", approve(&opened, "m-2")).await, -32004);
    bed.world.time.advance(1);
    assert_eq!(bed.state(&opened).await, "TASK_STATE_WORKING");
    assert_eq!(listed().await, 0);
}

#[tokio::test]
async fn a_blocking_call_lasts_until_the_task_rests() {
    let bed = Bed::new().await;
    let opened = bed.world.open(approval());
    bed.world.switch(|switches| switches.blocking = true);
    let ending = async {
        let answered =
            |world: &A2aWorld| (world.state(&opened.task_id) == Some(State::Working)).then_some(());
        bed.world.until(Duration::from_secs(10), answered).await.unwrap();
        assert!(bed.world.end(&opened.task_id, State::Completed, None));
    };
    let (answer, ()) = tokio::join!(bed.call("SendMessage", approve(&opened, "m-1")), ending);
    assert_eq!(answer["result"]["task"]["status"]["state"], "TASK_STATE_COMPLETED");

    bed.world.switch(|switches| (switches.blocking, switches.block_ms) = (false, 1));
    let opened = bed.world.open(approval());
    let mut params = approve(&opened, "m-2");
    params["configuration"] = json!({});
    let answer = bed.call("SendMessage", params).await;
    assert_eq!(answer["result"]["task"]["status"]["state"], "TASK_STATE_WORKING", "at most so long");
}

#[tokio::test]
async fn a_message_may_come_instead_of_a_task() {
    let bed = Bed::new().await;
    let opened = bed.world.open(approval());
    bed.world.switch(|switches| switches.answer_with_message = true);
    let answer = bed.call("SendMessage", approve(&opened, "m-1")).await;
    assert_eq!(answer["result"]["message"]["role"], "ROLE_AGENT");
    assert!(answer["result"].get("task").is_none());
    assert_eq!(bed.answers(&opened).len(), 1);
}

#[tokio::test]
async fn history_may_list_approvals_and_status_messages_may_lack_an_id() {
    let bed = Bed::new().await;
    bed.world.switch(|switches| (switches.approvals_in_history, switches.status_message_id) = (true, false));
    let opened = bed.world.open(approval());
    let answer = bed.call("GetTask", json!({"id": opened.task_id})).await;
    assert!(answer["result"]["status"]["message"].get("messageId").is_none());
    bed.call("SendMessage", approve(&opened, "m-1")).await;
    let answer = bed.call("GetTask", json!({"id": opened.task_id})).await;
    assert_eq!(answer["result"]["history"][0]["messageId"], "m-1");
}

#[tokio::test]
async fn a_client_that_hangs_up_takes_nothing_back() {
    let bed = Bed::new().await;
    let opened = bed.world.open(approval());
    bed.world.faults().add(Rule::next("SendMessage", Fault::Delay { ms: 300 }));
    let hasty = tokio::time::timeout(Duration::from_millis(100), attempt(&bed, &opened)).await;
    assert!(hasty.is_err(), "the client gave up first");
    let applied = |world: &A2aWorld| (world.state(&opened.task_id) == Some(State::Working)).then_some(());
    assert!(bed.world.until(Duration::from_secs(10), applied).await.is_some());
}

#[tokio::test]
async fn hooks_put_an_event_into_a_race() {
    let bed = Bed::new().await;
    let opened = bed.world.open(approval());
    let id = opened.interaction_id.clone();
    bed.world.before_next("SendMessage", move |world| {
        let subject = "lee@example.com".to_owned();
        let decision = Decision::Approved(false);
        assert!(
            world.answer_elsewhere(&id, Elsewhere { subject, decision, history: false, message_id: None })
        );
    });
    refused(&bed.call("SendMessage", approve(&opened, "m-1")).await, -32004);
    assert_eq!(bed.world.interaction(&opened.interaction_id).unwrap().approved_by(), Some("lee@example.com"));

    let task = opened.task_id.clone();
    bed.world.after_next("GetTask", move |world| assert!(world.end(&task, State::Completed, None)));
    assert_eq!(bed.state(&opened).await, "TASK_STATE_WORKING");
    assert_eq!(bed.state(&opened).await, "TASK_STATE_COMPLETED");
}

#[tokio::test]
async fn tasks_may_be_unlisted_shown_in_an_unknown_state_or_written_with_defaults() {
    let bed = Bed::new().await;
    let ask = Ask { listed: false, ..Ask::approval("pager", "page") };
    let opened = bed.world.open(Open::new("dana@example.com", ask));
    assert!(bed.world.unlist(&opened.task_id, true));
    assert_eq!(bed.call("ListTasks", json!({})).await["result"]["totalSize"], 0);
    bed.world.show_as(&opened.task_id, Some("TASK_STATE_DREAMING"));
    assert_eq!(bed.state(&opened).await, "TASK_STATE_DREAMING");
    bed.world.show_as(&opened.task_id, None);
    bed.world.switch(|switches| switches.default_fields = true);
    let answer = bed.call("GetTask", json!({"id": opened.task_id})).await;
    let message = &answer["result"]["status"]["message"];
    assert_eq!((&message["extensions"], &message["parts"][0]["filename"]), (&json!([]), &json!("")));
    assert_eq!(message["metadata"][INTERACTIONS_V1]["interactionId"], opened.interaction_id);
}

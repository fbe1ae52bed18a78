//! Scripts in Rust and over the control API.

use super::*;

#[tokio::test]
async fn a_script_changes_ends_answers_and_deletes() {
    let bed = Bed::new().await;
    let opened = bed.world.open(approval());
    bed.world.time.advance(1000);
    assert!(bed.world.change(&opened.interaction_id, |ask| ask.prompt = Some("Really?".into())));
    let answer = bed.call("GetTask", json!({"id": opened.task_id})).await;
    let status = &answer["result"]["status"];
    assert_eq!(status["message"]["metadata"][INTERACTIONS_V1]["prompt"], "Really?");
    assert_eq!(status["message"]["parts"][0]["text"], "Really?");
    assert_eq!(status["timestamp"], "2026-11-30T09:00:01.000Z");

    let elsewhere = Elsewhere {
        subject: "lee@example.com".into(),
        decision: Decision::Approved(false),
        history: true,
        message_id: None,
    };
    assert!(bed.world.answer_elsewhere(&opened.interaction_id, elsewhere.clone()));
    assert!(!bed.world.answer_elsewhere(&opened.interaction_id, elsewhere));
    assert!(!bed.world.change(&opened.interaction_id, |_| {}));
    let task = bed.world.task(&opened.task_id).unwrap();
    assert_eq!(task.state(), State::Working);
    assert_eq!(task.history[0]["messageId"], format!("answer:{}", opened.interaction_id));
    let [accepted] = &bed.answers(&opened)[..] else { panic!() };
    assert!(accepted.elsewhere && accepted.approved_by == "lee@example.com");
    refused(&bed.call("SendMessage", approve(&opened, "m-1")).await, -32004);

    let again = bed.world.ask(&opened.task_id, Ask::question("And now?")).unwrap();
    assert_eq!(bed.world.interaction(&again).unwrap().phase, Phase::Open);
    assert!(bed.world.end(&opened.task_id, State::Failed, Some("It broke")));
    assert!(!bed.world.end(&opened.task_id, State::Completed, None));
    assert_eq!(bed.world.ask(&opened.task_id, Ask::question("Late?")), None);
    let answer = bed.call("GetTask", json!({"id": opened.task_id})).await;
    assert_eq!(answer["result"]["status"]["message"]["parts"][0]["text"], "It broke");
    assert!(bed.world.delete(&opened.task_id));
    refused(&bed.call("GetTask", json!({"id": opened.task_id})).await, -32001);
}

#[tokio::test]
async fn a_message_without_a_task_starts_one() {
    let bed = Bed::new().await;
    let params = json!({"message": {"role": "ROLE_USER", "messageId": "n-1", "contextId": "ticket",
        "parts": [{"text": "Ship it"}]}, "configuration": {"returnImmediately": true}});
    let first = bed.call("SendMessage", params.clone()).await;
    assert_eq!(first["result"]["task"]["status"]["state"], "TASK_STATE_WORKING");
    let second = bed.call("SendMessage", params).await;
    assert_eq!(first["result"]["task"]["id"], second["result"]["task"]["id"]);
    let id = first["result"]["task"]["id"].as_str().unwrap();
    assert_eq!(bed.world.task(id).unwrap().owner, "dana@example.com");
}

#[tokio::test]
async fn the_control_api_does_what_scripts_do() {
    let bed = Bed::new().await;
    let post = async |path: &str, body: Value| {
        let request = bed.client.post(format!("{}/a2a/control/{path}", bed.url)).json(&body);
        let response = request.send().await.unwrap();
        (response.status().as_u16(), response.json::<Value>().await.unwrap())
    };
    let ask = json!({"kind": "approval", "server": "ci", "tool": "deploy", "reason": "v3"});
    let queue = json!([{"kind": "question", "prompt": "Why?"}]);
    let (_, opened) =
        post("open", json!({"owner": "dana@example.com", "contextId": "c", "ask": ask, "queue": queue}))
            .await;
    let (task, id) = (opened["taskId"].clone(), opened["interactionId"].clone());
    assert_eq!(opened["queued"].as_array().unwrap().len(), 1);
    assert_eq!(post("change", json!({"interactionId": id, "reason": "v4"})).await.0, 200);
    let decision = json!({"interactionId": id, "subject": "lee", "decision": {"approved": true}});
    assert_eq!(post("answer", decision.clone()).await.0, 200);
    assert_eq!(post("answer", decision).await.0, 409);
    assert_eq!(
        post("ask", json!({"taskId": task, "ask": {"kind": "connection", "app": "github"}})).await.0,
        200
    );
    assert_eq!(post("end", json!({"taskId": task, "state": "TASK_STATE_REJECTED"})).await.0, 200);
    let (_, switches) = post("switches", json!({"list_tasks": false, "foreign": "not_found"})).await;
    assert_eq!((&switches["list_tasks"], &switches["dedupe"]), (&json!(false), &json!(true)));
    assert_eq!(bed.world.switches().foreign, Foreign::NotFound);
    assert_eq!(post("switches", json!({"list_task": false})).await.0, 400);
    let fault = json!({"method": "GetTask", "fault": {"fault": "status", "code": 500, "retry_after": null, "body": null}});
    assert_eq!(post("faults", fault).await.0, 200);
    assert!(bed.world.faults().take("GetTask").is_some());
    post("advance", json!({"ms": 1500})).await;
    let world = bed.client.get(format!("{}/a2a/control/world", bed.url)).send().await.unwrap();
    let world: Value = world.json().await.unwrap();
    assert_eq!(world["now"], "2026-11-30T09:00:01.500Z");
    let interaction = &world["tasks"][0]["interactions"][0];
    assert_eq!(interaction["ask"]["reason"], "v4");
    assert_eq!(interaction["answers"][0]["approved_by"], "lee");
    assert_eq!(post("delete", json!({"taskId": task})).await.0, 200);
    assert_eq!(post("delete", json!({"taskId": task})).await.0, 409);
}

#[tokio::test]
async fn every_change_is_announced() {
    let bed = Bed::new().await;
    let changed = bed.world.changed();
    let opened = bed.world.open(approval());
    assert!(changed.has_changed().unwrap());
    let answered = bed.world.until(Duration::from_secs(10), |world| {
        world.interaction(&opened.interaction_id)?.approved_by().map(str::to_owned)
    });
    let (by, _) = tokio::join!(answered, bed.call("SendMessage", approve(&opened, "m-1")));
    assert_eq!(by.as_deref(), Some("dana@example.com"));
}

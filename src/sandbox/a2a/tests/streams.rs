//! Streams and push configurations, as a client sees them.

use super::*;

async fn bed() -> (Bed, Opened) {
    let bed = Bed::new().await;
    bed.world.set_card("release", CardSpec { streaming: true, push: true, ..CardSpec::default() });
    let opened = bed.world.open(approval());
    (bed, opened)
}

impl Bed {
    async fn subscribe(&self, task: &str) -> reqwest::Response {
        let body = json!({"jsonrpc": "2.0", "id": 7, "method": "SubscribeToTask", "params": {"id": task}});
        self.post().bearer_auth("dana-token").body(body.to_string()).send().await.unwrap()
    }
}

/// The results of a stream's events, to its end.
async fn results(response: reqwest::Response) -> Vec<Value> {
    assert!(response.headers()["content-type"].to_str().unwrap().starts_with("text/event-stream"));
    let text = response.text().await.unwrap();
    let events = text.split("\n\n").filter_map(|event| event.strip_prefix("data: "));
    events.map(|event| serde_json::from_str::<Value>(event).unwrap()["result"].clone()).collect()
}

/// A2A case 42, server side: first the task, then every status once, to the end.
#[tokio::test]
async fn a_stream_begins_with_the_task_and_ends_with_it() {
    let (bed, opened) = bed().await;
    let response = bed.subscribe(&opened.task_id).await;
    bed.world
        .until(Duration::from_secs(5), |world| (!world.streams().is_empty()).then_some(()))
        .await
        .unwrap();
    bed.world.ask(&opened.task_id, Ask::question("Where?")).unwrap();
    assert_eq!(bed.call("SendMessage", approve(&opened, "m1")).await.get("error"), None);
    bed.world.add_artifact(&opened.task_id, json!({"artifactId": "a"}));
    bed.world.end(&opened.task_id, State::Completed, Some("Done."));
    let events = results(response).await;
    assert_eq!(events[0]["task"]["id"], opened.task_id);
    let told: Vec<&str> = events
        .iter()
        .map(|event| {
            let state =
                event.pointer("/task/status/state").or_else(|| event.pointer("/statusUpdate/status/state"));
            state.and_then(Value::as_str).unwrap_or("artifact")
        })
        .collect();
    let position = |state: &str| told.iter().rposition(|one| *one == state);
    assert!(position("TASK_STATE_COMPLETED") == Some(told.len() - 1), "{told:?}");
    assert!(told.contains(&"artifact"), "{told:?}");
    assert!(bed.world.streams().is_empty());
    // Ended, unknown, not offered.
    for (task, code) in [(opened.task_id.as_str(), -32004), ("t9", -32001)] {
        let refused: Value = bed.subscribe(task).await.json().await.unwrap();
        assert_eq!(refused["error"]["code"], code);
    }
    bed.world.set_card("release", CardSpec::default());
    let other = bed.world.open(approval());
    let refused: Value = bed.subscribe(&other.task_id).await.json().await.unwrap();
    assert_eq!(refused["error"]["code"], -32004);
}

#[tokio::test]
async fn a_stream_may_close_at_a_pause_and_a_message_may_be_answered_by_one() {
    let (bed, opened) = bed().await;
    bed.world.switch(|switches| switches.streaming = Streaming::ClosesAtInterrupted);
    let events = results(bed.subscribe(&opened.task_id).await).await;
    assert_eq!(events.len(), 1);
    bed.world.ask(&opened.task_id, Ask::question("Where?")).unwrap();
    let mut params = approve(&opened, "m1");
    params["configuration"] = json!({});
    let body = json!({"jsonrpc": "2.0", "id": 7, "method": "SendStreamingMessage", "params": params});
    let response = bed.post().bearer_auth("dana-token").body(body.to_string()).send().await.unwrap();
    let events = results(response).await;
    assert_eq!(events[0]["task"]["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    assert_eq!(bed.answers(&opened).len(), 1);
}

fn config(opened: &Opened, id: &str) -> Value {
    json!({"taskId": opened.task_id, "id": id, "url": "http://127.0.0.1:9/x/secret", "token": "to-ken",
        "authentication": {"scheme": "Bearer", "credentials": "cre-dential"}})
}

/// A2A case 56.
#[tokio::test]
async fn a2a_case_56_push_configurations() {
    let (bed, opened) = bed().await;
    let named = |id: &str| json!({"taskId": opened.task_id, "id": id});
    let made = bed.call("CreateTaskPushNotificationConfig", config(&opened, "cs-1")).await;
    assert_eq!(made["result"]["id"], "cs-1");
    bed.call("CreateTaskPushNotificationConfig", config(&opened, "cs-2")).await;
    let got = bed.call("GetTaskPushNotificationConfig", named("cs-1")).await;
    assert_eq!(got["result"]["taskId"], opened.task_id);
    let listed = bed.call("ListTaskPushNotificationConfigs", json!({"taskId": opened.task_id})).await;
    assert_eq!(listed["result"]["configs"].as_array().unwrap().len(), 2);
    for _ in 0..2 {
        let deleted = bed.call("DeleteTaskPushNotificationConfig", named("cs-1")).await;
        assert!(deleted.get("error").is_none(), "{deleted}");
    }
    refused(&bed.call("GetTaskPushNotificationConfig", named("cs-1")).await, -32001);
    assert_eq!(bed.world.push_configs().len(), 1);
    let mut without = config(&opened, "cs-3");
    without.as_object_mut().unwrap().remove("url");
    refused_field(&bed.call("CreateTaskPushNotificationConfig", without).await, "url");
    // A secret is neither shown nor kept in the record.
    let dump = bed.world.dump().to_string();
    for secret in ["to-ken", "cre-dential", "x/secret"] {
        assert!(!dump.contains(secret), "{secret}");
    }
    bed.world.switch(|switches| switches.push = Push::Off);
    refused(&bed.call("CreateTaskPushNotificationConfig", config(&opened, "cs-4")).await, -32003);
    bed.world.switch(|switches| switches.push = Push::On);
    bed.world.end(&opened.task_id, State::Canceled, None);
    bed.world
        .until(Duration::from_secs(5), |world| world.push_configs().is_empty().then_some(()))
        .await
        .unwrap();
}

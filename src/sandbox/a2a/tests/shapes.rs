//! The JSON as the documents print it.

use super::*;

#[tokio::test]
async fn an_open_approval_is_written_as_documented() {
    let bed = Bed::new().await;
    let opened = bed.world.open(Open { context_id: Some("rel".into()), ..approval() });
    let answer = bed.call("GetTask", json!({"id": opened.task_id})).await;
    assert_eq!(
        answer,
        json!({"jsonrpc": "2.0", "id": 7, "result": {
            "id": "t1.cmVs.s0001", "contextId": "rel",
            "status": {"state": "TASK_STATE_AUTH_REQUIRED", "timestamp": "2026-11-30T09:00:00.000Z",
                "message": {"messageId": "eff_s0002", "role": "ROLE_AGENT", "taskId": "t1.cmVs.s0001",
                    "contextId": "rel", "parts": [{"text": "Approve pager / close_incident?"}],
                    "extensions": ["https://docs.nylorun.com/a2a/interactions/v1"],
                    "metadata": {"https://docs.nylorun.com/a2a/interactions/v1": {
                        "interactionId": "eff_s0002", "kind": "approval",
                        "prompt": "Approve pager / close_incident?",
                        "detail": {"server": "pager", "tool": "close_incident"}}}}}}})
    );
}

#[tokio::test]
async fn a_connection_prompt_names_app_and_reason_cut_to_their_lengths() {
    let bed = Bed::new().await;
    let ask = Ask::connection(&"a".repeat(90), &"r".repeat(300));
    let opened = bed.world.open(Open::new("dana@example.com", ask));
    let answer = bed.call("GetTask", json!({"id": opened.task_id})).await;
    let open = &answer["result"]["status"]["message"]["metadata"][INTERACTIONS_V1];
    assert_eq!(open["kind"], "connection");
    assert_eq!(open["prompt"], format!("Connect {}: {}", "a".repeat(80), "r".repeat(280)));
    assert_eq!(open["detail"], json!({"app": "a".repeat(80), "reason": "r".repeat(280)}));
    assert_eq!(answer["result"]["status"]["state"], "TASK_STATE_AUTH_REQUIRED");
}

#[tokio::test]
async fn a_question_waits_for_input_and_unknown_kinds_and_plain_pauses_show_what_they_are() {
    let bed = Bed::new().await;
    let question = bed.world.open(Open::new("dana@example.com", Ask::question("Which?")));
    assert_eq!(bed.state(&question).await, "TASK_STATE_INPUT_REQUIRED");
    let unknown = Ask::unknown("payment", "Pay?", State::AuthRequired);
    let unknown = bed.world.open(Open::new("dana@example.com", unknown));
    let answer = bed.call("GetTask", json!({"id": unknown.task_id})).await;
    assert_eq!(answer["result"]["status"]["message"]["metadata"][INTERACTIONS_V1]["kind"], "payment");
    let plain = Open::new("dana@example.com", Ask::plain("Log in first", State::AuthRequired));
    let plain = bed.world.open(plain);
    let answer = bed.call("GetTask", json!({"id": plain.task_id})).await;
    let message = &answer["result"]["status"]["message"];
    assert_eq!(message["parts"], json!([{"text": "Log in first"}]));
    assert!(message.get("metadata").is_none() && message.get("extensions").is_none());
}

#[tokio::test]
async fn an_error_carries_the_documented_details() {
    let bed = Bed::new().await;
    let answer = bed.call("GetTask", json!({"id": "t1.no.such"})).await;
    assert_eq!(
        answer["error"],
        json!({"code": -32001, "message": "Task not found", "data": [
            {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "TASK_NOT_FOUND",
             "domain": "a2a-protocol.org", "metadata": {"taskId": "t1.no.such"}}]})
    );
}

#[tokio::test]
async fn the_card_names_its_interface_and_is_revalidated() {
    let bed = Bed::new().await;
    let address = format!("{}/a2a/release/.well-known/agent-card.json", bed.url);
    let response = bed.client.get(&address).send().await.unwrap();
    assert_eq!(response.headers()["cache-control"], "public, max-age=300");
    let tag = response.headers()["etag"].clone();
    let card: Value = response.json().await.unwrap();
    assert_eq!(
        card["supportedInterfaces"],
        json!([{"url": format!("{}/a2a/release", bed.url), "protocolBinding": "JSONRPC",
            "protocolVersion": "1.0"}])
    );
    assert_eq!(card["capabilities"]["streaming"], false);
    assert_eq!(card["capabilities"]["extensions"][0]["uri"], INTERACTIONS_V1);
    for given in [tag.to_str().unwrap().to_owned(), format!("\"x\", W/{}", tag.to_str().unwrap())] {
        let again = bed.client.get(&address).header("If-None-Match", given).send().await.unwrap();
        assert_eq!(again.status(), 304);
        assert_eq!(again.headers()["etag"], tag);
        assert!(again.bytes().await.unwrap().is_empty());
    }
    bed.world.set_card("release", CardSpec { version: "2".into(), ..CardSpec::default() });
    let changed = bed.client.get(&address).header("If-None-Match", &tag).send().await.unwrap();
    assert_eq!(changed.status(), 200);
    bed.world.set_card("release", CardSpec { absent: true, ..CardSpec::default() });
    assert_eq!(bed.client.get(&address).send().await.unwrap().status(), 404);
}

#[tokio::test]
async fn history_length_limits_what_is_shown() {
    let bed = Bed::new().await;
    let opened = bed.world.open(Open::new("dana@example.com", Ask::question("Which?")));
    bed.call("SendMessage", text(&opened, "m-1", "one")).await;
    bed.world.ask(&opened.task_id, Ask::question("And?")).unwrap();
    bed.call("SendMessage", text(&opened, "m-2", "two")).await;
    let shown = async |length: Value| {
        let mut params = json!({"id": opened.task_id});
        params["historyLength"] = length;
        let answer = bed.call("GetTask", params).await;
        answer["result"]["history"].as_array().map_or(0, Vec::len)
    };
    assert_eq!(shown(json!(null)).await, 2);
    assert_eq!(shown(json!(1)).await, 1);
    assert_eq!(shown(json!(0)).await, 0);
    let answer = bed.call("GetTask", json!({"id": opened.task_id, "historyLength": -1})).await;
    refused_field(&answer, "historyLength");
}

#[tokio::test]
async fn metadata_can_pass_through_doubles_or_be_withheld() {
    let bed = Bed::new().await;
    let ask = Ask::approval("pager", "page").detail("priority", json!(1));
    let opened = bed.world.open(Open::new("dana@example.com", ask));
    bed.world.switch(|switches| switches.round_trip = true);
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": opened.task_id}});
    let send = async |named: bool| {
        let mut request = bed.client.post(format!("{}/a2a/release", bed.url)).bearer_auth("dana-token");
        request = request.header("A2A-Version", "1.0").header("Content-Type", "application/json");
        if named {
            request = request.header("A2A-Extensions", format!("https://other.example, {INTERACTIONS_V1}"));
        }
        request.body(body.to_string()).send().await.unwrap().text().await.unwrap()
    };
    let text = send(true).await;
    assert!(text.contains("\"priority\":1.0") && text.ends_with("\"id\":1}"), "{text}");
    assert!(text.find("\"result\"") < text.find("\"jsonrpc\""), "keys change their order: {text}");
    bed.world.switch(|switches| switches.metadata_needs_header = true);
    assert!(send(true).await.contains("priority"));
    let text = send(false).await;
    assert!(!text.contains("priority") && !text.contains(INTERACTIONS_V1), "{text}");
    assert!(text.contains("Approve pager / page?"));
}

//! Versions, envelopes, refused methods, parameters.

use super::*;

#[tokio::test]
async fn a2a_case_4_versions() {
    let bed = Bed::new().await;
    let opened = bed.world.open(approval());
    let send = async |method: &str, header: Option<&str>, query: &str| -> Value {
        let body = json!({"jsonrpc": "2.0", "id": "a", "method": method, "params": {"id": opened.task_id}});
        let mut request =
            bed.client.post(format!("{}/a2a/release{query}", bed.url)).bearer_auth("dana-token");
        request = request.header("Content-Type", "application/json");
        if let Some(header) = header {
            request = request.header("A2A-Version", header);
        }
        request.body(body.to_string()).send().await.unwrap().json().await.unwrap()
    };
    for method in ["GetTask", "ListTasks", "SendMessage", "CancelTask", "NoSuchMethod"] {
        for header in [None, Some(""), Some("0.3"), Some("1.1"), Some("2.0"), Some("1"), Some("1.0.x")] {
            let answer = send(method, header, "").await;
            refused(&answer, -32009);
            assert_eq!(answer["id"], "a");
            assert_eq!(answer["error"]["data"][0]["reason"], "VERSION_NOT_SUPPORTED");
        }
    }
    refused(&send("GetTask", None, "?A2A-Version=0.3").await, -32009);
    assert_eq!(bed.world.state(&opened.task_id), Some(State::AuthRequired));
    for (header, query) in [(Some("1.0"), ""), (Some("1.0.1"), ""), (None, "?A2A-Version=1.0")] {
        assert_eq!(send("GetTask", header, query).await["result"]["id"], opened.task_id);
    }
}

#[tokio::test]
async fn a2a_case_5_envelopes() {
    let bed = Bed::new().await;
    let send = async |body: &str| -> Value {
        let request = bed.post().bearer_auth("dana-token").body(body.to_owned());
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        response.json().await.unwrap()
    };
    let answer = send("{not json").await;
    refused(&answer, -32700);
    assert_eq!(answer["id"], Value::Null);
    assert_eq!(answer.get("id"), Some(&Value::Null));
    for body in [
        r#"[{"jsonrpc":"2.0","id":1,"method":"GetTask"}]"#,
        r#"{"jsonrpc":"2.0","method":"GetTask","params":{"id":"x"}}"#,
        r#"{"jsonrpc":"2.0","id":null,"method":"GetTask"}"#,
        r#"{"jsonrpc":"2.0","id":{},"method":"GetTask"}"#,
        r#"{"jsonrpc":"1.0","id":1,"method":"GetTask"}"#,
        r#"{"id":1,"method":"GetTask"}"#,
        r#"{"jsonrpc":"2.0","id":1}"#,
        r#""text""#,
    ] {
        refused(&send(body).await, -32600);
    }
    let answer = send(r#"{"jsonrpc":"2.0","id":"x","method":"tasks/get","params":{"id":"t"}}"#).await;
    refused(&answer, -32601);
    assert_eq!(answer["id"], "x");
    refused_field(&send(r#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":[]}"#).await, "params");
}

#[tokio::test]
async fn what_is_off_answers_its_documented_refusal() {
    let bed = Bed::new().await;
    for (method, code) in [
        ("SendStreamingMessage", -32004),
        ("SubscribeToTask", -32004),
        ("CreateTaskPushNotificationConfig", -32003),
        ("GetTaskPushNotificationConfig", -32003),
        ("ListTaskPushNotificationConfigs", -32003),
        ("DeleteTaskPushNotificationConfig", -32003),
        ("GetExtendedAgentCard", -32007),
        ("message/send", -32601),
    ] {
        refused(&bed.call(method, json!({"id": "x"})).await, code);
    }
}

#[tokio::test]
async fn parameters_are_checked_and_named() {
    let bed = Bed::new().await;
    let opened = bed.world.open(approval());
    let broken = async |pointer: &str, value: Value| {
        let mut params = approve(&opened, "m-1");
        *params.pointer_mut(pointer).unwrap() = value;
        bed.call("SendMessage", params).await
    };
    for id in [json!(""), json!("a b"), json!("ä"), json!("x".repeat(201)), json!(null)] {
        refused_field(&broken("/message/messageId", id).await, "message.messageId");
    }
    refused_field(&broken("/message/messageId", json!(7)).await, "message.messageId");
    for role in [json!("ROLE_AGENT"), json!("user"), json!("")] {
        refused_field(&broken("/message/role", role).await, "message.role");
    }
    for parts in [json!([]), json!(null)] {
        refused_field(&broken("/message/parts", parts).await, "message.parts");
    }
    for part in [json!({}), json!({"text": "a", "data": 1}), json!("a")] {
        refused_field(&broken("/message/parts/0", part).await, "message.parts[0]");
    }
    refused_field(&broken("/message/parts/0", json!({"text": "  "})).await, "message.parts[0].text");
    refused_field(&broken("/message", json!(null)).await, "message");
    let mut misspelt = approve(&opened, "m-1");
    misspelt["configuration"]["returnImmediatly"] = true.into();
    refused_field(&bed.call("SendMessage", misspelt).await, "configuration.returnImmediatly");
    let mut push = approve(&opened, "m-1");
    push["configuration"]["taskPushNotificationConfig"] = json!({"url": "https://x.example"});
    refused(&bed.call("SendMessage", push).await, -32003);
    refused_field(&bed.call("GetTask", json!({})).await, "id");
    assert_eq!(bed.state(&opened).await, "TASK_STATE_AUTH_REQUIRED");
    assert!(bed.answers(&opened).is_empty());
}

#[tokio::test]
async fn a_tenant_of_the_card_is_in_every_request() {
    let bed = Bed::new().await;
    let opened = bed.world.open(approval());
    bed.world.set_card("release", CardSpec { tenant: Some("acme".into()), ..CardSpec::default() });
    refused_field(&bed.call("GetTask", json!({"id": opened.task_id})).await, "tenant");
    let answer = bed.call("GetTask", json!({"id": opened.task_id, "tenant": "acme"})).await;
    assert_eq!(answer["result"]["id"], opened.task_id);
}

#[tokio::test]
async fn a_required_extension_must_be_named() {
    let bed = Bed::new().await;
    bed.world.set_card("release", CardSpec { required: true, ..CardSpec::default() });
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {}}).to_string();
    let request = bed.client.post(format!("{}/a2a/release", bed.url)).bearer_auth("dana-token");
    let request = request.header("A2A-Version", "1.0").header("Content-Type", "application/a2a+json");
    let answer: Value = request.body(body).send().await.unwrap().json().await.unwrap();
    refused(&answer, -32008);
    assert!(bed.call("ListTasks", json!({})).await["result"]["tasks"].is_array());
}

#[tokio::test]
async fn a2a_case_55_cancel() {
    let bed = Bed::new().await;
    let opened = bed.world.open(approval());
    let answer = bed.call("CancelTask", json!({"id": opened.task_id})).await;
    assert_eq!(answer["result"]["status"]["state"], "TASK_STATE_CANCELED");
    let again = bed.call("CancelTask", json!({"id": opened.task_id})).await;
    assert_eq!(again["result"]["status"]["state"], "TASK_STATE_CANCELED");
    bed.world.switch(|switches| switches.cancel_again = CancelAgain::NotCancelable);
    refused(&bed.call("CancelTask", json!({"id": opened.task_id})).await, -32002);
    assert_eq!(bed.world.interaction(&opened.interaction_id).unwrap().phase, Phase::Ended);

    let done = bed.world.open(approval());
    assert!(bed.world.end(&done.task_id, State::Completed, None));
    bed.world.switch(|switches| switches.cancel_again = CancelAgain::Task);
    refused(&bed.call("CancelTask", json!({"id": done.task_id})).await, -32002);
    refused(&bed.call("CancelTask", json!({"id": "t1.x.y"})).await, -32001);
}

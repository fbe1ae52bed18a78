//! interactions/v1: answers taken, refused, replayed, raced.

use super::*;

async fn connection_as(bed: &Bed, members: Value, data: Value) -> Decision {
    let opened = bed.world.open(Open::new("dana@example.com", Ask::connection("github", "to open a PR")));
    let result = bed.call("SendMessage", answer(&opened, "c-1", members, data)).await;
    assert_eq!(result["result"]["task"]["status"]["state"], "TASK_STATE_WORKING", "{result}");
    bed.answers(&opened)[0].decision.clone()
}

#[tokio::test]
async fn a2a_case_14_an_approval_makes_the_task_work_and_names_who() {
    let bed = Bed::new().await;
    let opened = bed.world.open(approval());
    let result = bed.call_as("lee@example.com", "SendMessage", approve(&opened, "cs:1")).await;
    let task = &result["result"]["task"];
    assert_eq!(task["id"], opened.task_id);
    assert_eq!(task["status"]["state"], "TASK_STATE_WORKING");
    assert!(task["status"].get("message").is_none());
    assert!(task.get("history").is_none(), "approvals are not in the history");
    let interaction = bed.world.interaction(&opened.interaction_id).unwrap();
    assert_eq!(interaction.approved_by(), Some("lee@example.com"));
    assert_eq!(interaction.phase, Phase::Answered);
    let [accepted] = &interaction.answers[..] else { panic!("{interaction:?}") };
    assert_eq!(accepted.decision, Decision::Approved(true));
    assert_eq!((accepted.message_id.as_str(), accepted.effect.clone()), ("cs:1", json!("released")));
}

#[tokio::test]
async fn a2a_case_15_a_denial_ends_the_call_and_the_task_goes_on() {
    let bed = Bed::new().await;
    let opened = bed.world.open(approval());
    let deny = answer(&opened, "m-1", json!({"approved": false}), json!({"approved": false}));
    let result = bed.call("SendMessage", deny).await;
    assert_eq!(result["result"]["task"]["status"]["state"], "TASK_STATE_WORKING");
    let [accepted] = &bed.answers(&opened)[..] else { panic!() };
    assert_eq!(
        (accepted.decision.clone(), accepted.effect.clone()),
        (Decision::Approved(false), json!("tool.denied"))
    );
}

#[tokio::test]
async fn a2a_case_16_values_are_read_across() {
    let bed = Bed::new().await;
    let opened = bed.world.open(approval());
    bed.call("SendMessage", answer(&opened, "m-1", json!({"value": true}), json!({"value": true}))).await;
    assert_eq!(bed.answers(&opened)[0].decision, Decision::Approved(true));
    let question = bed.world.open(Open::new("dana@example.com", Ask::question("Go?")));
    bed.call("SendMessage", approve(&question, "m-2")).await;
    assert_eq!(bed.answers(&question)[0].decision, Decision::Value(json!(true)));
}

#[tokio::test]
async fn a2a_case_17_what_connects_and_what_does_not() {
    let bed = Bed::new().await;
    let wrapped = json!({"connected": true});
    for (members, data) in [
        (json!({"value": wrapped}), wrapped.clone()),
        (json!({"value": true}), json!(true)),
        (json!({"approved": true}), json!({"approved": true})),
    ] {
        assert_eq!(connection_as(&bed, members, data).await, Decision::Connected(true));
    }
    for value in
        [json!({"connected": "yes"}), json!("ok"), json!(false), json!({"connected": false}), json!(1)]
    {
        let decision = connection_as(&bed, json!({"value": value}), value.clone()).await;
        assert_eq!(decision, Decision::Connected(false), "{value}");
    }
    assert_eq!(
        connection_as(&bed, json!({"approved": false}), json!(false)).await,
        Decision::Connected(false)
    );
}

#[tokio::test]
async fn a2a_case_18_text_never_approves() {
    let bed = Bed::new().await;
    let opened = bed.world.open(approval());
    refused(&bed.call("SendMessage", text(&opened, "m-1", "yes")).await, -32004);
    let mut dressed = approve(&opened, "m-2");
    dressed["message"]["parts"] = json!([{"text": "yes"}]);
    refused(&bed.call("SendMessage", dressed).await, -32004);
    assert_eq!(bed.state(&opened).await, "TASK_STATE_AUTH_REQUIRED");
    let connection = bed.world.open(Open::new("dana@example.com", Ask::connection("github", "x")));
    refused(&bed.call("SendMessage", text(&connection, "m-3", "connected")).await, -32004);
    assert!(bed.answers(&opened).is_empty() && bed.answers(&connection).is_empty());
}

#[tokio::test]
async fn a2a_case_20_text_or_data_answers_a_question() {
    let bed = Bed::new().await;
    let ask = || bed.world.open(Open::new("dana@example.com", Ask::question("Which?")));
    let by_text = ask();
    bed.call("SendMessage", text(&by_text, "m-1", "the blue one")).await;
    assert_eq!(bed.answers(&by_text)[0].decision, Decision::Value(json!("the blue one")));
    let by_data = ask();
    let mut params = text(&by_data, "m-2", "x");
    params["message"]["parts"] = json!([{"data": {"env": "eu"}}]);
    bed.call("SendMessage", params).await;
    assert_eq!(bed.answers(&by_data)[0].decision, Decision::Value(json!({"env": "eu"})));
    for (n, (value, part)) in [
        (json!("eu"), json!({"text": "eu"})),
        (json!({"env": "eu"}), json!({"data": {"env": "eu"}})),
        (json!(["a", 2]), json!({"data": {"value": ["a", 2]}})),
        (json!(null), json!({"data": null})),
    ]
    .into_iter()
    .enumerate()
    {
        let opened = ask();
        let mut params = answer(&opened, &format!("q-{n}"), json!({"value": value}), json!(0));
        params["message"]["parts"] = json!([part]);
        let result = bed.call("SendMessage", params).await;
        assert_eq!(result["result"]["task"]["status"]["state"], "TASK_STATE_WORKING", "{result}");
        assert_eq!(bed.answers(&opened)[0].decision, Decision::Value(value));
        assert_eq!(bed.world.task(&opened.task_id).unwrap().history.len(), 1);
    }
}

#[tokio::test]
async fn a2a_case_21_mixed_and_file_parts_are_refused() {
    let bed = Bed::new().await;
    for ask in [Ask::approval("pager", "page"), Ask::question("Which?")] {
        let opened = bed.world.open(Open::new("dana@example.com", ask));
        let before = bed.state(&opened).await;
        for parts in [
            json!([{"text": "yes"}, {"data": {"approved": true}}]),
            json!([{"url": "https://x.example/f"}]),
            json!([{"data": {"approved": true}}, {"raw": "aGk="}]),
        ] {
            let mut params = approve(&opened, "m-1");
            params["message"]["parts"] = parts;
            refused(&bed.call("SendMessage", params).await, -32005);
        }
        assert_eq!(bed.state(&opened).await, before);
        assert!(bed.answers(&opened).is_empty());
    }
}

#[tokio::test]
async fn a2a_case_22_the_interaction_is_named_rightly() {
    let bed = Bed::new().await;
    let opened = bed.world.open(approval());
    let mut wrong = approve(&opened, "m-1");
    wrong["message"]["metadata"][INTERACTIONS_V1]["interactionId"] = "eff_other".into();
    refused(&bed.call("SendMessage", wrong).await, -32004);
    let mut unnamed = approve(&opened, "m-2");
    unnamed["message"]["metadata"] = json!({INTERACTIONS_V1: {"approved": true}});
    refused_field(&bed.call("SendMessage", unnamed).await, "message.metadata");
    let mut unlisted = approve(&opened, "m-3");
    unlisted["message"]["extensions"] = json!([]);
    refused_field(&bed.call("SendMessage", unlisted).await, "message.metadata");
    let kind = answer(&opened, "m-4", json!({"value": "yes"}), json!({"value": "yes"}));
    refused(&bed.call("SendMessage", kind).await, -32004);
    let torn = answer(&opened, "m-5", json!({"approved": true}), json!({"approved": false}));
    refused_field(&bed.call("SendMessage", torn).await, "message.parts[0].data");
    assert_eq!(bed.state(&opened).await, "TASK_STATE_AUTH_REQUIRED");
    assert!(bed.answers(&opened).is_empty());
}

#[tokio::test]
async fn a2a_case_23_another_context_is_named() {
    let bed = Bed::new().await;
    let opened = bed.world.open(approval());
    let mut params = approve(&opened, "m-1");
    params["message"]["contextId"] = "other".into();
    refused_field(&bed.call("SendMessage", params).await, "message.contextId");
    assert!(bed.answers(&opened).is_empty());
}

#[tokio::test]
async fn a2a_case_24_the_same_message_answers_once() {
    let bed = Bed::new().await;
    let opened = bed.world.open(approval());
    for _ in 0..3 {
        let result = bed.call("SendMessage", approve(&opened, "m-1")).await;
        assert_eq!(result["result"]["task"]["status"]["state"], "TASK_STATE_WORKING");
    }
    assert!(bed.world.end(&opened.task_id, State::Completed, None));
    let result = bed.call("SendMessage", approve(&opened, "m-1")).await;
    assert_eq!(result["result"]["task"]["status"]["state"], "TASK_STATE_COMPLETED");
    let [accepted] = &bed.answers(&opened)[..] else { panic!() };
    assert_eq!(accepted.replays, 3);
    bed.world.switch(|switches| switches.dedupe = false);
    refused(&bed.call("SendMessage", approve(&opened, "m-1")).await, -32004);
}

#[tokio::test]
async fn a2a_case_25_the_same_id_with_other_content_is_refused() {
    let bed = Bed::new().await;
    let opened = bed.world.open(approval());
    bed.call("SendMessage", approve(&opened, "m-1")).await;
    let other = answer(&opened, "m-1", json!({"approved": false}), json!({"approved": false}));
    refused_field(&bed.call("SendMessage", other).await, "message.messageId");
    let stranger = bed.call_as("lee@example.com", "SendMessage", approve(&opened, "m-1")).await;
    refused_field(&stranger, "message.messageId");
    assert_eq!(bed.answers(&opened).len(), 1);
}

#[tokio::test]
async fn a2a_case_29_of_two_racing_answers_one_is_taken() {
    let bed = Bed::new().await;
    for round in 0..20 {
        let opened = bed.world.open(approval());
        let deny =
            answer(&opened, &format!("b-{round}"), json!({"approved": false}), json!({"approved": false}));
        let (one, two) = tokio::join!(
            bed.call_as("dana@example.com", "SendMessage", approve(&opened, &format!("a-{round}"))),
            bed.call_as("lee@example.com", "SendMessage", deny)
        );
        let taken = [&one, &two].into_iter().filter(|answer| answer.get("result").is_some()).count();
        assert_eq!(taken, 1, "{one} {two}");
        refused(if one.get("error").is_some() { &one } else { &two }, -32004);
        assert_eq!(bed.answers(&opened).len(), 1);
    }
}

#[tokio::test]
async fn ended_and_working_tasks_refuse_and_unknown_kinds_cannot_be_answered() {
    let bed = Bed::new().await;
    let opened = bed.world.open(approval());
    bed.call("SendMessage", approve(&opened, "m-1")).await;
    refused(&bed.call("SendMessage", approve(&opened, "m-2")).await, -32004);
    bed.world.switch(|switches| switches.while_working = WhileWorking::Accept);
    assert!(bed.call("SendMessage", approve(&opened, "m-3")).await.get("result").is_some());
    assert_eq!(bed.answers(&opened).len(), 2, "a second application is seen");
    for state in [State::Completed, State::Failed, State::Canceled, State::Rejected] {
        let ended = bed.world.open(approval());
        assert!(bed.world.end(&ended.task_id, state, None));
        refused(&bed.call("SendMessage", approve(&ended, "m-1")).await, -32004);
    }
    for ask in
        [Ask::unknown("payment", "Pay?", State::AuthRequired), Ask::plain("Log in", State::AuthRequired)]
    {
        let opened = bed.world.open(Open::new("dana@example.com", ask));
        refused(&bed.call("SendMessage", approve(&opened, "m-1")).await, -32004);
    }
    let plain = bed.world.open(Open::new("dana@example.com", Ask::plain("Which?", State::InputRequired)));
    bed.call("SendMessage", text(&plain, "m-9", "this")).await;
    assert_eq!(bed.answers(&plain)[0].decision, Decision::Value(json!("this")));
}

#[tokio::test]
async fn a_queued_interaction_opens_when_the_one_before_is_answered() {
    let bed = Bed::new().await;
    let queue = vec![Ask::approval("pager", "page"), Ask::question("Why?")];
    let opened = bed.world.open(Open { queue, ..approval() });
    let result = bed.call("SendMessage", approve(&opened, "m-1")).await;
    let message = &result["result"]["task"]["status"]["message"];
    assert_eq!(message["metadata"][INTERACTIONS_V1]["interactionId"], opened.queued[0]);
    refused(&bed.call("SendMessage", approve(&opened, "m-2")).await, -32004);
    let next = Opened { interaction_id: opened.queued[0].clone(), ..opened.clone() };
    bed.call("SendMessage", approve(&next, "m-3")).await;
    assert_eq!(bed.state(&opened).await, "TASK_STATE_INPUT_REQUIRED");
    assert_eq!(bed.world.interaction(&opened.queued[1]).unwrap().phase, Phase::Open);
}

//! `ListTasks`.

use super::*;

fn ids(answer: &Value) -> Vec<String> {
    let tasks = answer["result"]["tasks"].as_array().unwrap_or_else(|| panic!("{answer}"));
    tasks.iter().map(|task| task["id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a2a_case_41_page_sizes_and_the_last_token() {
    let bed = Bed::new().await;
    let mut opened = Vec::new();
    for _ in 0..5 {
        opened.push(bed.world.open(approval()).task_id);
        bed.world.time.advance(1000);
    }
    for size in [json!(0), json!(101), json!(-1), json!(1.5), json!("10")] {
        refused_field(&bed.call("ListTasks", json!({"pageSize": size})).await, "pageSize");
    }
    let whole = bed.call("ListTasks", json!({})).await;
    opened.reverse();
    assert_eq!(ids(&whole), opened, "newest status first");
    assert_eq!(whole["result"]["nextPageToken"], "");
    assert_eq!((&whole["result"]["pageSize"], &whole["result"]["totalSize"]), (&json!(50), &json!(5)));
    let (mut seen, mut token) = (Vec::new(), String::new());
    for page in 0..3 {
        let answer = bed.call("ListTasks", json!({"pageSize": 2, "pageToken": token})).await;
        assert_eq!(answer["result"]["pageSize"], 2);
        assert_eq!(answer["result"]["totalSize"], 5);
        seen.extend(ids(&answer));
        token = answer["result"]["nextPageToken"].as_str().unwrap().to_owned();
        assert_eq!(token.is_empty(), page == 2);
    }
    assert_eq!(seen, opened);
}

#[tokio::test]
async fn a_token_is_bound_to_its_filters() {
    let bed = Bed::new().await;
    bed.world.open(approval());
    bed.world.open(approval());
    let first = bed.call("ListTasks", json!({"pageSize": 1})).await;
    let token = first["result"]["nextPageToken"].clone();
    let other = json!({"pageSize": 1, "pageToken": token, "status": "TASK_STATE_WORKING"});
    refused_field(&bed.call("ListTasks", other).await, "pageToken");
    refused_field(&bed.call("ListTasks", json!({"pageToken": "nonsense"})).await, "pageToken");
}

#[tokio::test]
async fn filters_hold() {
    let bed = Bed::new().await;
    let waiting = bed.world.open(approval());
    bed.world.time.advance(1000);
    let asking = bed
        .world
        .open(Open { context_id: Some("rel".into()), ..Open::new("dana@example.com", Ask::question("?")) });
    bed.world.time.advance(1000);
    let done = bed.world.open(approval());
    bed.world.end(&done.task_id, State::Completed, None);
    let list = async |params: Value| ids(&bed.call("ListTasks", params).await);
    assert_eq!(list(json!({"status": "TASK_STATE_AUTH_REQUIRED"})).await, [waiting.task_id.as_str()]);
    assert_eq!(list(json!({"status": "TASK_STATE_INPUT_REQUIRED"})).await, [asking.task_id.as_str()]);
    assert_eq!(list(json!({"contextId": "rel"})).await, [asking.task_id.as_str()]);
    assert_eq!(
        list(json!({"statusTimestampAfter": "2026-11-30T09:00:01Z"})).await,
        [done.task_id.as_str(), asking.task_id.as_str()]
    );
    assert_eq!(list(json!({"statusTimestampAfter": "2026-11-30T10:00:01+01:00"})).await.len(), 2);
    refused_field(
        &bed.call("ListTasks", json!({"statusTimestampAfter": "noon"})).await,
        "statusTimestampAfter",
    );
    bed.world.add_artifact(&waiting.task_id, json!({"artifactId": "a", "parts": [{"text": "x"}]}));
    let answer = bed.call("ListTasks", json!({"includeArtifacts": true})).await;
    assert_eq!(answer["result"]["tasks"][2]["artifacts"][0]["artifactId"], "a");
    assert!(bed.call("ListTasks", json!({})).await["result"]["tasks"][2].get("artifacts").is_none());
}

#[tokio::test]
async fn unknown_filters_are_refused_or_ignored_and_listing_can_be_off() {
    let bed = Bed::new().await;
    bed.world.open(approval());
    refused_field(&bed.call("ListTasks", json!({"status": "waiting"})).await, "status");
    refused_field(&bed.call("ListTasks", json!({"statuses": []})).await, "statuses");
    bed.world.switch(|switches| switches.unknown_filter = UnknownFilter::Ignored);
    for params in [json!({"status": "waiting"}), json!({"statuses": []})] {
        assert_eq!(ids(&bed.call("ListTasks", params).await).len(), 1);
    }
    bed.world.switch(|switches| switches.list_tasks = false);
    refused(&bed.call("ListTasks", json!({})).await, -32004);
}

#[tokio::test]
async fn only_visible_tasks_of_this_agent_are_listed() {
    let bed = Bed::new().await;
    let mine = bed.world.open(approval());
    let theirs = bed.world.open(Open::new("lee@example.com", Ask::question("?")));
    bed.world.open(Open { agent: "billing".into(), ..approval() });
    assert_eq!(ids(&bed.call("ListTasks", json!({})).await).len(), 2);
    bed.world.switch(|switches| switches.foreign = Foreign::NotFound);
    assert_eq!(ids(&bed.call("ListTasks", json!({})).await), [mine.task_id]);
    let list = bed.call_as("lee@example.com", "ListTasks", json!({})).await;
    assert_eq!(ids(&list), [theirs.task_id]);
}

#[tokio::test]
async fn pages_can_be_endless() {
    let bed = Bed::new().await;
    for _ in 0..3 {
        bed.world.open(approval());
    }
    let first = bed.call("ListTasks", json!({"pageSize": 1})).await;
    let token = first["result"]["nextPageToken"].clone();
    bed.world.switch(|switches| switches.endless_pages = true);
    for _ in 0..2 {
        let next = bed.call("ListTasks", json!({"pageSize": 1, "pageToken": token})).await;
        assert_eq!(next["result"]["nextPageToken"], token);
    }
}

//! Finding and reading tasks.

use super::bed_tests::{
    Bed, DANA, ERIK, Hand, Script, error, json as said, list, result, shown, subject, task_ref,
};
use super::{URI, Watch};
use crate::bridge::ports::{Connector, ConnectorError, TaskRef, TaskState};
use crate::domain::ids::Subject;
use crate::sandbox::a2a::{Ask, CardSpec, Foreign, Open, State};
use crate::sandbox::faults::{Fault, Rule};
use serde_json::{Value, json};
use std::time::Duration;

fn approval(owner: &str) -> Open {
    Open::new(owner, Ask::approval("ci", "deploy"))
}

fn task(id: &str, state: &str) -> Value {
    json!({ "id": id, "contextId": "c", "status": { "state": state, "message": { "role": "ROLE_AGENT",
        "messageId": id, "parts": [{ "text": "?" }], "metadata": { URI: { "interactionId": id,
        "kind": "approval", "prompt": "?" } } } }, "extensions": [], "filename": "" })
}

/// A server whose pages a test scripts: state name and page token to a page.
async fn pages(answer: impl Fn(&str, &str) -> Value + Send + Sync + 'static) -> Script {
    Script::new(move |asked| match asked.method() {
        "ListTasks" => {
            let params = &asked.body["params"];
            let token = params["pageToken"].as_str().unwrap_or_default();
            result(&answer(params["status"].as_str().unwrap(), token))
        }
        _ => said(404, &json!({})),
    })
    .await
}

#[tokio::test]
async fn a2a_case_8_everything_that_waits_is_found() {
    let bed = Bed::new().await;
    let one = bed.world.open(approval(DANA));
    let two = bed.world.open(Open::new(ERIK, Ask::question("Which?")));
    let three = bed.world.open(approval(DANA));
    bed.world.end(&three.task_id, State::Completed, None);
    let found = bed.list().await.unwrap();
    let mut ids: Vec<&str> = found.iter().filter_map(shown).collect();
    ids.sort_unstable();
    let mut wanted = [one.interaction_id.as_str(), two.interaction_id.as_str()];
    wanted.sort_unstable();
    assert_eq!(ids, wanted);
    for request in bed.world.requests_of("ListTasks") {
        // A2A case 41.
        let size = request.param("/pageSize").and_then(Value::as_i64).unwrap();
        assert!((1..=100).contains(&size));
        assert_eq!(request.param("/historyLength"), Some(&json!(0)));
    }
}

#[tokio::test]
async fn the_list_and_a_reading_show_the_same_form() {
    let bed = Bed::new().await;
    bed.world.switch(|switches| switches.round_trip = true);
    let opened = bed.world.open(approval(DANA));
    let listed = bed.list().await.unwrap().remove(0);
    let read = bed.read(&opened).await;
    let (TaskState::Waiting(listed), TaskState::Waiting(read)) = (listed.state, read.state) else { panic!() };
    assert_eq!(listed, read);
}

#[tokio::test]
async fn a2a_case_38_a_runtime_that_cannot_list_is_asked_once_an_hour() {
    let bed = Bed::new().await;
    bed.world.switch(|switches| switches.list_tasks = false);
    for _ in 0..5 {
        let page = bed.connector.list(None).await.unwrap();
        assert!(!page.supported && page.next.is_none());
        bed.clock.advance(Duration::from_mins(10));
    }
    assert_eq!(bed.world.requests_of("ListTasks").len(), 1);
    bed.clock.advance(Duration::from_secs(601));
    bed.connector.list(None).await.unwrap();
    assert_eq!(bed.world.requests_of("ListTasks").len(), 2);
    // A new card may mean a new runtime.
    bed.world.switch(|switches| switches.list_tasks = true);
    bed.world.set_card("release", CardSpec { version: "2".into(), ..CardSpec::default() });
    bed.connector.refresh().await.unwrap();
    assert!(bed.connector.list(None).await.unwrap().supported);
}

#[tokio::test]
async fn a2a_case_39_a_task_that_moves_between_pages_is_given_once() {
    let script = pages(|state, token| match (state, token) {
        ("TASK_STATE_AUTH_REQUIRED", "") => {
            json!({ "tasks": [task("a", state), task("b", state)], "nextPageToken": "2" })
        }
        ("TASK_STATE_AUTH_REQUIRED", "2") => {
            json!({ "tasks": [task("b", state), task("c", state)], "nextPageToken": "3" })
        }
        ("TASK_STATE_AUTH_REQUIRED", "3") => json!({ "tasks": [task("a", state)], "nextPageToken": "" }),
        _ => json!({ "tasks": null }),
    })
    .await;
    let found = list(&script.connector(&Hand::new(), |_| {})).await.unwrap();
    assert_eq!(found.iter().filter_map(shown).collect::<Vec<_>>(), ["a", "b", "c"]);
}

#[tokio::test]
async fn a2a_case_39_a_repeated_token_and_endless_pages_end() {
    let script =
        pages(|_, token| json!({ "tasks": [], "nextPageToken": if token == "1" { "2" } else { "1" } })).await;
    list(&script.connector(&Hand::new(), |_| {})).await.unwrap();
    assert_eq!(script.count("ListTasks"), 2 * 3);
    let script = pages(|_, token| {
        json!({ "tasks": [], "nextPageToken": (token.parse::<u32>().unwrap_or(0) + 1).to_string() })
    })
    .await;
    list(&script.connector(&Hand::new(), |_| {})).await.unwrap();
    assert_eq!(script.count("ListTasks"), 2 * 1000);
}

#[tokio::test]
async fn a2a_case_40_a_filter_that_is_ignored_posts_nothing_that_ended() {
    let script = pages(|_, _| {
        json!({ "tasks": [task("a", "TASK_STATE_COMPLETED"), task("b", "TASK_STATE_AUTH_REQUIRED"),
            task("c", "TASK_STATE_WORKING"), task("d", "TASK_STATE_NEW"), 7, { "id": "" }] })
    })
    .await;
    let found = list(&script.connector(&Hand::new(), |_| {})).await.unwrap();
    assert_eq!(found.iter().filter_map(shown).collect::<Vec<_>>(), ["b"]);
    assert_eq!(found.len(), 1);
}

#[tokio::test]
async fn a_list_without_status_messages_is_completed_by_reading() {
    let script = Script::new(|asked| match asked.method() {
        "ListTasks" => {
            let mut listed = task("a", "TASK_STATE_AUTH_REQUIRED");
            listed["status"]["message"] = Value::Null;
            result(&json!({ "tasks": [listed] }))
        }
        "GetTask" => result(&task("a", "TASK_STATE_AUTH_REQUIRED")),
        _ => said(404, &json!({})),
    })
    .await;
    let found = list(&script.connector(&Hand::new(), |_| {})).await.unwrap();
    assert_eq!(found.iter().filter_map(shown).collect::<Vec<_>>(), ["a"]);
}

fn two(settings: &mut super::A2aSettings) {
    settings.watch = Watch::Subjects(vec![subject(DANA), subject(ERIK)]);
}

fn owners(readings: &[crate::bridge::ports::TaskReading]) -> Vec<(String, Option<Subject>)> {
    let mut all: Vec<_> = readings
        .iter()
        .filter_map(|reading| match &reading.state {
            TaskState::Waiting(seen) => Some((seen.key.external.clone(), seen.owner.clone())),
            _ => None,
        })
        .collect();
    all.sort();
    all
}

#[tokio::test]
async fn a2a_case_70_each_watched_subject_is_listed_and_owns_what_only_it_sees() {
    let bed = Bed::with(two).await;
    bed.world.switch(|switches| switches.foreign = Foreign::NotFound);
    let of_dana = bed.world.open(approval(DANA));
    let of_erik = bed.world.open(approval(ERIK));
    let first = owners(&bed.list().await.unwrap());
    for (opened, owner) in [(&of_dana, DANA), (&of_erik, ERIK)] {
        assert!(first.contains(&(opened.interaction_id.clone(), Some(subject(owner)))), "{first:?}");
    }
    // The next pass knows: each once.
    let second = owners(&bed.list().await.unwrap());
    assert_eq!(second.len(), 2);
    assert!(second.iter().all(|(_, owner)| owner.is_some()));
    let seen_as = Some(subject(ERIK));
    let read = bed.connector.read(&TaskRef { seen_as, ..task_ref(&of_erik) }).await.unwrap();
    assert_eq!(owners(&[read]), [(of_erik.interaction_id.clone(), Some(subject(ERIK)))]);
    // A registration without a subject is found by whoever sees it.
    let read = bed.connector.read(&task_ref(&of_erik)).await.unwrap();
    assert_eq!(read.seen_as, Some(subject(ERIK)));
}

#[tokio::test]
async fn a_task_that_two_watched_subjects_see_has_no_known_owner() {
    let bed = Bed::with(two).await;
    bed.world.open(approval(DANA));
    for _ in 0..2 {
        let found = owners(&bed.list().await.unwrap());
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].1, None);
    }
}

#[tokio::test]
async fn a_single_watched_subject_owns_what_it_sees() {
    let bed = Bed::with(|settings| settings.watch = Watch::Subjects(vec![subject(DANA)])).await;
    bed.world.switch(|switches| switches.foreign = Foreign::NotFound);
    let opened = bed.world.open(approval(DANA));
    assert_eq!(owners(&bed.list().await.unwrap())[0].1, Some(subject(DANA)));
    let read = bed.read(&opened).await;
    assert_eq!(
        (read.seen_as.clone(), owners(&[read])[0].1.clone()),
        (Some(subject(DANA)), Some(subject(DANA)))
    );
}

#[tokio::test]
async fn linked_people_are_watched_when_the_bridge_says_who_they_are() {
    let bed = Bed::with(|settings| settings.watch = Watch::Linked).await;
    bed.world.switch(|switches| switches.foreign = Foreign::NotFound);
    bed.world.open(approval(DANA));
    assert!(bed.connector.wants_linked());
    assert!(bed.list().await.unwrap().is_empty());
    assert_eq!(bed.world.requests_of("ListTasks").len(), 0);
    bed.connector.linked(vec![subject(DANA)]);
    assert_eq!(bed.list().await.unwrap().len(), 1);
}

#[tokio::test]
async fn one_refused_subject_does_not_hide_the_others_and_all_refused_is_an_error() {
    let bed = Bed::with(two).await;
    bed.world.switch(|switches| switches.foreign = Foreign::NotFound);
    bed.world.open(approval(ERIK));
    let refused = Fault::Status { code: 403, retry_after: None, body: None };
    bed.world.faults().add(Rule::next("ListTasks", refused.clone()));
    let found = owners(&bed.list().await.unwrap());
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].1, None, "half a pass determines no owner");
    bed.world.faults().add(Rule { method: "ListTasks".into(), skip: 0, times: 2, fault: refused });
    assert!(matches!(bed.list().await, Err(ConnectorError::Unauthorized { .. })));
}

#[tokio::test]
async fn a2a_case_51_not_found_is_a_reading_and_a_404_of_the_address_is_not() {
    let bed = Bed::new().await;
    let opened = bed.world.open(approval(DANA));
    bed.world.unlist(&opened.task_id, true);
    assert!(bed.list().await.unwrap().is_empty());
    assert_eq!(shown(&bed.read(&opened).await), Some(opened.interaction_id.as_str()));
    bed.world.delete(&opened.task_id);
    assert!(matches!(bed.read(&opened).await.state, TaskState::NotFound));
    let wrong = Fault::Status { code: 404, retry_after: None, body: None };
    bed.world.faults().add(Rule::next("GetTask", wrong));
    let read = bed.connector.read(&task_ref(&opened)).await;
    assert!(matches!(read, Err(ConnectorError::Configuration { .. })), "{read:?}");
}

#[tokio::test]
async fn another_task_than_the_one_asked_for_is_no_reading() {
    let script = Script::new(|asked| match asked.method() {
        "GetTask" => result(&task("b", "TASK_STATE_COMPLETED")),
        _ => said(404, &json!({})),
    })
    .await;
    let one = TaskRef { task: "a".into(), context: None, seen_as: None };
    let read = script.connector(&Hand::new(), |_| {}).read(&one).await;
    assert!(matches!(read, Err(ConnectorError::Protocol { .. })), "{read:?}");
}

#[tokio::test]
async fn an_unknown_state_and_a_huge_answer_conclude_nothing() {
    let bed = Bed::new().await;
    let opened = bed.world.open(approval(DANA));
    bed.world.show_as(&opened.task_id, Some("TASK_STATE_NAPPING"));
    assert!(matches!(bed.read(&opened).await.state, TaskState::Unclear));
    let script = Script::new(|asked| match asked.method() {
        "GetTask" => (200, vec![], format!("{{\"result\":\"{}\"}}", "x".repeat(3 << 20))),
        _ => error(-32001),
    })
    .await;
    let one = TaskRef { task: "a".into(), context: None, seen_as: None };
    let read = script.connector(&Hand::new(), |_| {}).read(&one).await;
    assert!(matches!(read, Err(ConnectorError::Protocol { .. })), "{read:?}");
}

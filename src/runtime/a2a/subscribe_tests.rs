//! Following tasks: against the strict stand-in, and against servers that say what a test scripts.

use super::URI;
use super::bed_tests::{Bed, DANA, Hand, Script, error, json, result, shown, subject, task_ref};
use super::sse::FRAME_LIMIT;
use crate::bridge::ports::{
    Connector, Followed, Heard, TaskReading, TaskRef, TaskState, Tracker, Unfollowed,
};
use crate::domain::interaction::End;
use crate::sandbox::a2a::{Ask, CardSpec, Open, Opened, State, StreamFault, Streaming};
use futures_util::StreamExt;
use serde_json::{Value, json};
use std::time::Duration;

async fn bed() -> (Bed, Opened) {
    let bed = Bed::new().await;
    bed.world.set_card("release", CardSpec { streaming: true, push: true, ..CardSpec::default() });
    let opened = bed.world.open(Open::new(DANA, Ask::approval("ci", "deploy")));
    (bed, opened)
}

/// The next reading; signs of life are passed over.
async fn next(events: &mut Followed) -> Option<TaskReading> {
    let wait = async {
        loop {
            match events.next().await? {
                Heard::Reading(reading) => return Some(*reading),
                Heard::Alive => {}
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(10), wait).await.expect("nothing came")
}

/// A2A case 42: first the task as it is, then every change, with the form that a status message brings.
#[tokio::test]
async fn a2a_case_42_the_first_event_is_the_task_and_then_come_its_statuses() {
    for odd in [false, true] {
        let (bed, opened) = bed().await;
        bed.world.switch(|switches| switches.odd_frames = odd);
        let began = bed.world.time().now_ms();
        let mut events = bed.connector.follow(&task_ref(&opened)).await.unwrap();
        bed.clock.advance(Duration::from_secs(7));
        let first = next(&mut events).await.unwrap();
        assert_eq!(shown(&first), Some(opened.interaction_id.as_str()));
        assert_eq!(first.context.as_deref(), Some(opened.context_id.as_str()));
        let another = bed.world.ask(&opened.task_id, Ask::approval("ci", "restart")).unwrap();
        bed.world.change(&opened.interaction_id, |ask| ask.prompt = Some("Really?".into()));
        let changed = next(&mut events).await.unwrap();
        let TaskState::Waiting(seen) = &changed.state else { panic!("{changed:?}") };
        assert_eq!(seen.form.prompt, "Really?");
        assert_eq!(seen.form.title, "ci / deploy");
        // What is on its way may be over: it counts from when the stream was asked for.
        assert_eq!(changed.began.0, began);
        bed.world.answer_elsewhere(
            &opened.interaction_id,
            crate::sandbox::a2a::Elsewhere {
                subject: "p".into(),
                decision: crate::sandbox::a2a::Decision::Approved(true),
                history: false,
                message_id: None,
            },
        );
        assert!(matches!(next(&mut events).await.unwrap().state, TaskState::Running));
        assert_eq!(shown(&next(&mut events).await.unwrap()), Some(another.as_str()));
        bed.world.end(&opened.task_id, State::Canceled, None);
        let last = next(&mut events).await.unwrap();
        assert!(matches!(last.state, TaskState::Ended(End::Canceled)));
        assert_eq!(last.began.0, began + 7000, "after an end nothing can come");
        assert!(next(&mut events).await.is_none(), "the stream ends with the task");
    }
}

/// A2A case 44: an error in the place of a stream, plain or as an event, is that error.
#[tokio::test]
async fn a2a_case_44_an_error_in_the_place_of_a_stream() {
    let (bed, opened) = bed().await;
    assert_eq!(bed.connector.tracker(), None, "nothing is known yet");
    bed.connector.refresh().await.unwrap();
    assert_eq!(bed.connector.tracker(), Some(Tracker::Stream));
    // Unknown, and ended: that says nothing of streams.
    let nobody = TaskRef { task: "t9".into(), context: None, seen_as: None };
    let refused = bed.connector.follow(&nobody).await.err().unwrap();
    assert!(matches!(&refused, Unfollowed::Over(reading) if matches!(reading.state, TaskState::NotFound)));
    let ended = bed.world.open(Open::new(DANA, Ask::approval("ci", "deploy")));
    bed.world.end(&ended.task_id, State::Failed, None);
    let refused = bed.connector.follow(&task_ref(&ended)).await.err().unwrap();
    assert!(
        matches!(&refused, Unfollowed::Over(reading) if matches!(reading.state, TaskState::Ended(End::Failed)))
    );
    assert_eq!(bed.connector.tracker(), Some(Tracker::Stream));
    bed.world.next_stream(StreamFault::ErrorFirst { error: "-32603".into() });
    assert!(matches!(bed.connector.follow(&task_ref(&opened)).await.err().unwrap(), Unfollowed::Failed(_)));
    assert_eq!(bed.connector.tracker(), Some(Tracker::Stream));
    // Refused though the task goes on: there are no streams; for an hour, or until the card changes.
    bed.world.switch(|switches| switches.streaming = Streaming::Off);
    assert!(matches!(bed.connector.follow(&task_ref(&opened)).await.err().unwrap(), Unfollowed::Unsupported));
    assert_eq!(bed.connector.tracker(), Some(Tracker::Push), "the next best");
    bed.clock.advance(Duration::from_mins(59));
    assert_eq!(bed.connector.tracker(), Some(Tracker::Push));
    bed.clock.advance(Duration::from_mins(1));
    assert_eq!(bed.connector.tracker(), Some(Tracker::Stream));
    bed.connector.follow(&task_ref(&opened)).await.err().unwrap();
    bed.world.set_card("release", CardSpec { streaming: true, version: "2".into(), ..CardSpec::default() });
    bed.connector.refresh().await.unwrap();
    assert_eq!(bed.connector.tracker(), Some(Tracker::Stream), "another version of the agent");
}

fn event(body: &Value) -> (u16, Vec<(&'static str, String)>, String) {
    (200, vec![("content-type", "Text/Event-Stream; charset=utf-8".into())], format!("data: {body}\n\n"))
}

fn card(binding: &str, url: &str) -> Value {
    json!({"name": "release", "version": "1", "capabilities": {"streaming": true},
        "supportedInterfaces": [{"url": url, "protocolBinding": binding, "protocolVersion": "1.0"}]})
}

/// A2A case 45: over HTTP+JSON the method that is there is found and remembered.
#[tokio::test]
async fn a2a_case_45_the_method_that_works_is_remembered() {
    for (taken, refusal) in [("POST", 405), ("POST", 404), ("GET", 405)] {
        let script = Script::new(move |asked| {
            if asked.line.contains("agent-card") {
                let host = format!("http://{}", asked.headers["host"]);
                return json(200, &card("HTTP+JSON", &format!("{host}/rest")));
            }
            assert!(asked.line.ends_with("/rest/tasks/t1:subscribe"), "{}", asked.line);
            assert_eq!(asked.headers["accept"], "text/event-stream");
            if asked.line.starts_with(taken) {
                event(&json!({"task": {"id": "t1", "status": {"state": "TASK_STATE_WORKING"}}}))
            } else {
                json(refusal, &json!({"detail": "no such way"}))
            }
        })
        .await;
        let connector = script.connector(&Hand::new(), |_| {});
        let task = TaskRef { task: "t1".into(), context: None, seen_as: Some(subject(DANA)) };
        for _ in 0..3 {
            let mut events = connector.follow(&task).await.unwrap();
            assert!(matches!(next(&mut events).await.unwrap().state, TaskState::Running));
        }
        let lines: Vec<String> = script.asked().iter().map(|one| one.line.clone()).collect();
        let (gets, posts) = (
            lines.iter().filter(|line| line.starts_with("GET /rest")).count(),
            lines.iter().filter(|line| line.starts_with("POST /rest")).count(),
        );
        assert_eq!((gets, posts), if taken == "POST" { (1, 3) } else { (3, 0) }, "{lines:?}");
    }
}

/// Over HTTP+JSON: neither method is there, or the task is not.
#[tokio::test]
async fn neither_method_or_no_task() {
    for (status, body, over) in [
        (405, json!({}), false),
        (404, json!({"error": {"code": 404, "details": [{"reason": "TASK_NOT_FOUND"}]}}), true),
    ] {
        let script = Script::new(move |asked| {
            if asked.line.contains("agent-card") {
                return json(200, &card("HTTP+JSON", &format!("http://{}/rest", asked.headers["host"])));
            }
            if asked.line.contains(":subscribe") || over {
                return json(status, &body);
            }
            json(200, &json!({"id": "t1", "status": {"state": "TASK_STATE_WORKING"}}))
        })
        .await;
        let connector = script.connector(&Hand::new(), |_| {});
        let task = TaskRef { task: "t1".into(), context: None, seen_as: None };
        let refused = connector.follow(&task).await.err().unwrap();
        match refused {
            Unfollowed::Over(_) => assert!(over),
            Unfollowed::Unsupported => assert!(!over),
            Unfollowed::Failed(error) => panic!("{error}"),
        }
        let subscribed = script.asked().iter().filter(|one| one.line.contains(":subscribe")).count();
        assert_eq!(subscribed, if over { 1 } else { 2 });
    }
}

/// A2A cases 44, 46: what is no stream, no task, another task, or too large.
#[tokio::test]
async fn what_a_stream_may_not_be() {
    let task = json!({"jsonrpc": "2.0", "id": 1, "result": {"task": {"id": "t1", "status": {"state": "TASK_STATE_WORKING"}}}});
    let update = |id: &str, state: &str| {
        json!({"jsonrpc": "2.0", "id": 1, "result": {"statusUpdate": {"taskId": id, "contextId": "c",
            "status": {"state": state, "message": {"parts": [{"text": "x"}], "metadata": {URI: {}}}}}}})
    };
    let text = [
        format!("data: {task}\n\n"),
        "data: not json\n\n".into(),
        "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"artifactUpdate\":{\"taskId\":\"t1\"}}}\n\n".into(),
        format!("data: {}\n\n", update("t2", "TASK_STATE_CANCELED")),
        format!("data: {}\n\n", update("t1", "TASK_STATE_OF_THE_FUTURE")),
        format!("data: {}\n\n", update("t1", "TASK_STATE_COMPLETED")),
        format!("data: {}\n\n", " ".repeat(FRAME_LIMIT)),
        format!("data: {}\n\n", update("t1", "TASK_STATE_CANCELED")),
    ]
    .concat();
    let script = Script::new(move |asked| match asked.method() {
        "SubscribeToTask" if asked.body["params"]["id"] == "t1" => {
            (200, vec![("content-type", "text/event-stream".into())], text.clone())
        }
        "SubscribeToTask" if asked.body["params"]["id"] == "empty" => {
            (200, vec![("content-type", "text/event-stream".into())], ": nothing\n\n".into())
        }
        "SubscribeToTask" => result(&json!({})),
        _ => error(-32603),
    })
    .await;
    let connector = script.connector(&Hand::new(), |_| {});
    let of = |id: &str| TaskRef { task: id.into(), context: None, seen_as: None };
    let mut events = connector.follow(&of("t1")).await.unwrap();
    assert!(matches!(next(&mut events).await.unwrap().state, TaskState::Running));
    assert!(matches!(next(&mut events).await.unwrap().state, TaskState::Unclear));
    assert!(matches!(next(&mut events).await.unwrap().state, TaskState::Completed));
    assert!(next(&mut events).await.is_none(), "left at the frame that is too large");
    for id in ["empty", "other"] {
        assert!(matches!(connector.follow(&of(id)).await.err().unwrap(), Unfollowed::Failed(_)), "{id}");
    }
}

/// The bed's credential watches all; a subject's stream is asked for as that subject.
#[tokio::test]
async fn a_stream_is_asked_for_as_who_sees_the_task() {
    let (bed, opened) = bed().await;
    let task = TaskRef { seen_as: Some(subject(DANA)), ..task_ref(&opened) };
    let mut events = bed.connector.follow(&task).await.unwrap();
    let first = next(&mut events).await.unwrap();
    assert_eq!(first.seen_as, Some(subject(DANA)));
    let asked = bed.world.requests_of("SubscribeToTask");
    assert_eq!(asked[0].subject.as_deref(), Some(DANA));
}

//! Tasks that are followed by streams: what a stream tells is shown at once, and what it does not tell is read.

use crate::world::database::Backend;
use crate::world::story::{DANA, KIM, RELEASES, Story};
use countersign::sandbox::a2a::{
    Ask, Binding, Decision, Elsewhere, Open, Opened, State, StreamFault, Streaming, SubscribeBy,
};
use countersign::sandbox::faults::{Fault, Rule};
use countersign::sandbox::slack::Message;
use rstest::rstest;
use std::time::Duration;

/// A story whose runtime has streams.
async fn begin(on: Backend) -> Story {
    let story = Story::begin(on).await;
    story.offers(true, false);
    story
}

fn elsewhere(history: bool) -> Elsewhere {
    Elsewhere {
        subject: "product@example.com".into(),
        decision: Decision::Approved(true),
        history,
        message_id: None,
    }
}

async fn reads(story: &Story, card: &Message, word: &str) {
    story.in_time(word, || story.reads(card).contains(word)).await;
    assert!(story.buttons(card).is_empty(), "{}", story.reads(card));
}

/// A2A cases 3, 42, 59: a stream tells of the end, the card shows it, the stream is gone; nothing was listed for it.
#[rstest]
#[case(State::Canceled, "canceled")]
#[case(State::Failed, "failed")]
#[case(State::Rejected, "rejected")]
#[case(State::Completed, "elsewhere")]
#[case(State::Working, "elsewhere")]
#[tokio::test]
async fn a_stream_tells_of_the_end(
    #[case] state: State,
    #[case] word: &str,
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
) {
    let story = begin(on).await;
    let (opened, card) = story.asked("deploy_service").await;
    let following = story.follows();
    story.streams_of(&[&opened.task_id]).await;
    let listed = story.count("ListTasks");
    assert!(story.a2a.end(&opened.task_id, state, None));
    reads(&story, &card, word).await;
    assert_eq!(story.count("ListTasks"), listed, "the stream told it");
    // A task that goes on is followed a little longer: it may ask again at once.
    story.in_time("the stream is closed", || story.a2a.streams().is_empty()).await;
    let asked = story.a2a.requests_of("SubscribeToTask");
    assert_eq!(asked.len(), 1);
    let headers = &asked[0].headers;
    assert_eq!(headers["accept"], "text/event-stream");
    assert_eq!(headers["a2a-version"], "1.0");
    assert!(headers["a2a-extensions"].contains("interactions/v1"));
    drop(following);
    story.end().await;
}

/// A2A cases 8, 42: seen by list and stream, and told of again and again, it is one card.
#[rstest]
#[tokio::test]
async fn seen_by_list_and_stream_is_one_card(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let story = begin(on).await;
    story.a2a.switch(|switches| {
        switches.stream_duplicates = true;
        switches.odd_frames = true;
        switches.ping_ms = 5;
    });
    let following = story.follows();
    let (opened, card) = story.asked("deploy_service").await;
    story.streams_of(&[&opened.task_id]).await;
    let edits = story.slack.cards(RELEASES).len();
    story.tick().await;
    story.a2a.change(&opened.interaction_id, |ask| ask.prompt = Some("Approve it really?".into()));
    story.in_time("the new words", || story.reads(&card).contains("approve it really?")).await;
    story.tick().await;
    assert_eq!(story.slack.cards(RELEASES).len(), edits);
    story.presses("U0DANA", &card, "Approve").await;
    reads(&story, &card, "approved by").await;
    assert_eq!(story.recorded(&opened), [(DANA.to_owned(), true)]);
    drop(following);
    story.end().await;
}

/// A2A case 48: held calls one after another, as fast as people answer, without a single pass.
#[rstest]
#[tokio::test]
async fn three_in_a_row(
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
    #[values(false, true)] message_only: bool,
) {
    let story = begin(on).await;
    // Then the answer's own reply does not show the next question: the stream does.
    story.a2a.switch(|switches| switches.answer_with_message = message_only);
    let following = story.follows();
    let mut open = Open::new(DANA, Ask::approval("ci", "one"));
    open.queue = vec![Ask::approval("ci", "two"), Ask::question("Which region?")];
    let opened = story.a2a.open(open);
    story.tick().await;
    story.streams_of(&[&opened.task_id]).await;
    let listed = story.count("ListTasks");
    let first = story.card(RELEASES);
    story.presses("U0DANA", &first, "Approve").await;
    story.in_time("the second card", || story.slack.cards(RELEASES).len() == 2).await;
    reads(&story, &first, "approved by").await;
    let second = story.card(RELEASES);
    assert!(story.reads(&second).contains("two"));
    story.presses("U0KIM", &second, "Deny").await;
    story.in_time("the third card", || story.slack.cards(RELEASES).len() == 3).await;
    reads(&story, &second, "denied by").await;
    assert!(story.reads(&story.card(RELEASES)).contains("which region?"));
    let decided = |id: &str| {
        let answers = story.a2a.interaction(id).unwrap().answers;
        answers.iter().map(|answer| (answer.approved_by.clone(), answer.decision.clone())).collect::<Vec<_>>()
    };
    assert_eq!(decided(&opened.interaction_id), [(DANA.to_owned(), Decision::Approved(true))]);
    assert_eq!(decided(&opened.queued[0]), [(KIM.to_owned(), Decision::Approved(false))]);
    assert_eq!(story.count("ListTasks"), listed, "nothing was listed in between");
    drop(following);
    story.end().await;
}

/// A2A cases 42, 48: a task that asks again after a while, answered elsewhere: the stream tells it all, and what
/// history tells is shown.
#[rstest]
#[tokio::test]
async fn answered_elsewhere_with_what_was_said(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let story = begin(on).await;
    let following = story.follows();
    let (opened, card) = story.asked("deploy_service").await;
    // Registered, it is followed for as long as it goes on.
    story.registers(&opened, None).await;
    story.streams_of(&[&opened.task_id]).await;
    assert!(story.a2a.answer_elsewhere(&opened.interaction_id, elsewhere(true)));
    reads(&story, &card, "elsewhere").await;
    assert!(story.reads(&card).contains("elsewhere with approve"), "{}", story.reads(&card));
    story.a2a.ask(&opened.task_id, Ask::approval("ci", "another")).unwrap();
    story.in_time("the next card", || story.slack.cards(RELEASES).len() == 2).await;
    drop(following);
    story.end().await;
}

/// A2A case 43: a server that closes at a pause is asked again, less and less often, and nothing is redrawn.
#[rstest]
#[tokio::test]
async fn a_stream_that_closes_at_the_pause(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let story = begin(on).await;
    story.a2a.switch(|switches| switches.streaming = Streaming::ClosesAtInterrupted);
    let following = story.follows();
    let (opened, card) = story.asked("deploy_service").await;
    let before = story.reads(&card);
    for wanted in 2..=6 {
        story
            .until_worked("another subscription", || {
                story.advance(Duration::from_millis(300));
                story.count("SubscribeToTask") >= wanted
            })
            .await;
    }
    assert!(story.count("GetTask") >= 4, "each end is followed by a reading: {:?}", story.asked_for());
    assert_eq!(story.reads(&card), before);
    assert!(story.slack.payloads().iter().all(|payload| payload.method != "chat.update"));
    assert!(story.a2a.end(&opened.task_id, State::Canceled, None));
    story
        .until_worked("canceled", || {
            story.advance(Duration::from_millis(300));
            story.reads(&card).contains("canceled")
        })
        .await;
    drop(following);
    story.end().await;
}

/// A2A case 43: the pauses between subscriptions double up to half a minute.
#[tokio::test]
async fn subscriptions_back_off() {
    let story = begin(Backend::Sqlite).await;
    story.a2a.switch(|switches| switches.streaming = Streaming::ClosesAtInterrupted);
    let following = story.follows();
    story.asked("deploy_service").await;
    let began = story.now();
    for wanted in 2..=10 {
        story
            .until_worked("another subscription", || {
                story.advance(Duration::from_millis(400));
                story.count("SubscribeToTask") >= wanted
            })
            .await;
    }
    let times: Vec<i64> = story.a2a.requests_of("SubscribeToTask").iter().map(|one| one.at_ms).collect();
    let gaps: Vec<i64> = times.windows(2).map(|two| two[1] - two[0]).collect();
    // 0.5, 1, 2, 4, 8, 16, 30, 30, 30 seconds, each by a fifth more or less, and late by what the hand moves.
    assert!(gaps[0] >= 400 && gaps[5] >= 12_800, "{gaps:?}");
    assert!(gaps[7..].iter().all(|gap| (24_000..50_000).contains(gap)), "{gaps:?}");
    assert!(story.now() > began);
    drop(following);
    story.end().await;
}

/// A2A case 44: a plain error in the place of a stream is understood; the runtime is polled from then on.
#[rstest]
#[case(Some(StreamFault::ErrorFirst { error: "-32004".into() }))]
#[case(None)]
#[tokio::test]
async fn a_runtime_that_has_no_streams_after_all(
    #[case] as_event: Option<StreamFault>,
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
) {
    let story = begin(on).await;
    match as_event {
        Some(fault) => story.a2a.next_stream(fault),
        None => story.a2a.switch(|switches| switches.streaming = Streaming::Off),
    }
    let following = story.follows();
    let (opened, card) = story.asked("deploy_service").await;
    story
        .until_worked("the refusal", || story.count("SubscribeToTask") == 1 && story.count("GetTask") == 1)
        .await;
    for _ in 0..5 {
        story.advance(Duration::from_mins(2));
        story.tick().await;
    }
    assert_eq!(story.count("SubscribeToTask"), 1, "it is not asked for again within the hour");
    assert!(story.a2a.end(&opened.task_id, State::Canceled, None));
    story.tick().await;
    assert!(story.reads(&card).contains("canceled"));
    drop(following);
    story.end().await;
}

/// A2A case 44: what has ended cannot be subscribed to; that says nothing of streams.
#[tokio::test]
async fn ended_before_it_was_subscribed_to() {
    let story = begin(Backend::Sqlite).await;
    let (opened, card) = story.asked("deploy_service").await;
    let (other, _) = story.asked("restart").await;
    assert!(story.a2a.end(&opened.task_id, State::Completed, None));
    let following = story.follows();
    reads(&story, &card, "elsewhere").await;
    story.streams_of(&[&other.task_id]).await;
    drop(following);
    story.end().await;
}

/// A2A case 46: an endless frame ends its stream, and the task is read all the same.
#[rstest]
#[tokio::test]
async fn an_endless_frame(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let story = begin(on).await;
    story.a2a.next_stream(StreamFault::Oversize);
    let following = story.follows();
    let (opened, card) = story.asked("deploy_service").await;
    story.until_worked("it is read", || story.count("GetTask") > 0).await;
    assert!(story.a2a.end(&opened.task_id, State::Canceled, None));
    story
        .until_worked("canceled", || {
            story.advance(Duration::from_millis(200));
            story.reads(&card).contains("canceled")
        })
        .await;
    drop(following);
    story.end().await;
}

/// A2A case 47: a stream that says nothing for a minute is not trusted.
#[rstest]
#[case(StreamFault::Silent)]
#[case(StreamFault::NeverSpeaks)]
#[tokio::test]
async fn a_silent_stream(
    #[case] fault: StreamFault,
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
) {
    let story = begin(on).await;
    story.a2a.next_stream(fault);
    let following = story.follows();
    let (opened, card) = story.asked("deploy_service").await;
    story.streams_of(&[&opened.task_id]).await;
    assert!(story.a2a.end(&opened.task_id, State::Canceled, None));
    story.deliver().await;
    assert!(!story.reads(&card).contains("canceled"), "nobody has told it yet");
    story.advance(Duration::from_secs(61));
    reads(&story, &card, "canceled").await;
    drop(following);
    story.end().await;
}

/// A2A case 47: what happened while no stream was there is read.
#[rstest]
#[tokio::test]
async fn an_event_is_lost_with_its_stream(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let story = begin(on).await;
    let following = story.follows();
    let (opened, card) = story.asked("deploy_service").await;
    story.streams_of(&[&opened.task_id]).await;
    story.a2a.lose_events(10);
    assert!(story.a2a.answer_elsewhere(&opened.interaction_id, elsewhere(false)));
    let next = story.a2a.ask(&opened.task_id, Ask::approval("ci", "next")).unwrap();
    story.deliver().await;
    story.a2a.lose_events(0);
    assert_eq!(story.a2a.cut_streams(), 1);
    reads(&story, &card, "elsewhere").await;
    story.in_time("the next card", || story.slack.cards(RELEASES).len() == 2).await;
    story
        .until_worked("a new stream", || {
            story.advance(Duration::from_millis(200));
            story.a2a.streams() == [opened.task_id.clone()]
        })
        .await;
    let card = story.card(RELEASES);
    story.presses("U0DANA", &card, "Approve").await;
    reads(&story, &card, "approved by").await;
    assert_eq!(story.a2a.interaction(&next).unwrap().approved_by(), Some(DANA));
    drop(following);
    story.end().await;
}

/// A2A case 47: an event is lost on a stream that goes on; everything is read every five minutes.
#[tokio::test]
async fn an_event_is_lost_and_the_stream_goes_on() {
    let story = begin(Backend::Sqlite).await;
    story.a2a.switch(|switches| {
        switches.ping_ms = 5;
        switches.list_tasks = false;
    });
    let opened = story.asks("deploy_service");
    story.registers(&opened, None).await;
    let following = story.follows();
    story.until_worked("the card", || story.slack.cards(RELEASES).len() == 1).await;
    let card = story.card(RELEASES);
    story.streams_of(&[&opened.task_id]).await;
    story.until_worked("one reading counts for long", || story.count("GetTask") >= 1).await;
    story.a2a.lose_events(1);
    assert!(story.a2a.end(&opened.task_id, State::Working, None));
    for _ in 0..4 {
        story.advance(Duration::from_secs(50));
        story.deliver().await;
    }
    assert!(!story.reads(&card).contains("elsewhere"));
    story.advance(Duration::from_secs(110));
    reads(&story, &card, "elsewhere").await;
    drop(following);
    story.end().await;
}

/// A2A cases 42 and 45: the same over HTTP+JSON, with whichever method the server takes; it is found once.
#[rstest]
#[tokio::test]
async fn streams_over_http_json(
    #[values(SubscribeBy::Both, SubscribeBy::Get, SubscribeBy::Post)] by: SubscribeBy,
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
) {
    let story = begin(on).await;
    story.a2a.switch(|switches| {
        switches.bindings = vec![Binding::HttpJson];
        switches.subscribe_by = by;
        switches.odd_frames = true;
    });
    let following = story.follows();
    let (opened, card) = story.asked("deploy_service").await;
    story.streams_of(&[&opened.task_id]).await;
    let (other, _) = story.asked("restart").await;
    story.streams_of(&[&opened.task_id, &other.task_id]).await;
    // Registered, it is followed for as long as it goes on.
    story.registers(&opened, None).await;
    story.presses("U0DANA", &card, "Approve").await;
    reads(&story, &card, "approved by").await;
    story.a2a.ask(&opened.task_id, Ask::approval("ci", "another")).unwrap();
    story.in_time("the next card", || story.slack.cards(RELEASES).len() == 3).await;
    story.a2a.end(&opened.task_id, State::Canceled, None);
    let cards = story.slack.cards(RELEASES);
    let asked_again = cards.iter().find(|card| story.reads(card).contains("another")).unwrap();
    reads(&story, asked_again, "canceled").await;
    let lines: Vec<String> =
        story.a2a.requests_of("SubscribeToTask").into_iter().map(|request| request.line).collect();
    let gets = lines.iter().filter(|line| line.starts_with("GET ")).count();
    assert_eq!(gets, if by == SubscribeBy::Post { 1 } else { lines.len() }, "{lines:?}");
    drop(following);
    story.end().await;
}

/// At most a hundred streams; what is more is polled, and the newest are followed.
#[tokio::test]
async fn more_tasks_than_streams() {
    let story = begin(Backend::Sqlite).await;
    let all: Vec<Opened> = (0..105).map(|n| story.asks(&format!("deploy_{n}"))).collect();
    story.tick().await;
    let following = story.follows();
    story.until_worked("a hundred streams", || story.a2a.streams().len() == 100).await;
    story.deliver().await;
    assert_eq!(story.a2a.streams().len(), 100);
    let (oldest, newest) = (&all[0].task_id, &all[104].task_id);
    let streams = story.a2a.streams();
    assert!(streams.contains(newest) && !streams.contains(oldest), "the newest are followed");
    for task in [oldest, newest] {
        story.a2a.end(task, State::Canceled, None);
    }
    story.until_worked("its stream ends with it", || !story.a2a.streams().contains(newest)).await;
    story.watch().await;
    let read =
        |task: &str| story.a2a.requests_of("GetTask").iter().any(|one| one.param("/id").unwrap() == task);
    assert!(read(oldest), "what has no stream is read");
    drop(following);
    story.until_worked("none is left open", || story.a2a.streams().is_empty()).await;
    story.end().await;
}

/// What a stream tells of is not read by itself in between; without its stream it is.
#[tokio::test]
async fn what_is_told_is_not_read_as_well() {
    let story = begin(Backend::Sqlite).await;
    story.a2a.switch(|switches| switches.list_tasks = false);
    let opened = story.asks("deploy_service");
    story.registers(&opened, None).await;
    let following = story.follows();
    story.until_worked("the card", || story.slack.cards(RELEASES).len() == 1).await;
    story.streams_of(&[&opened.task_id]).await;
    story
        .until_worked("it is known to be told", || {
            story.advance(Duration::from_secs(5));
            story.count("GetTask") >= 1
        })
        .await;
    let read = story.count("GetTask");
    for _ in 0..10 {
        story.advance(Duration::from_secs(5));
        story.deliver().await;
    }
    assert!(story.count("GetTask") <= read + 1, "{:?}", story.asked_for());
    drop(following);
    story.end().await;
}

/// The stream's task is told of as the subject who sees it.
#[tokio::test]
async fn a_stream_is_asked_for_as_who_sees_the_task() {
    let wants = crate::world::story::Wants {
        runtime: "watch_as = [\"dana@example.com\", \"kim@example.com\"]",
        foreign: countersign::sandbox::a2a::Foreign::NotFound,
        ..crate::world::story::Wants::default()
    };
    let story = Story::with(Backend::Sqlite, wants).await;
    story.offers(true, false);
    let kims = story.a2a.open(Open::new(KIM, Ask::approval("ci", "deploy")));
    story.tick().await;
    let following = story.follows();
    story.streams_of(&[&kims.task_id]).await;
    assert_eq!(story.a2a.requests_of("SubscribeToTask")[0].subject.as_deref(), Some(KIM));
    story.a2a.end(&kims.task_id, State::Canceled, None);
    reads(&story, &story.card(RELEASES), "canceled").await;
    drop(following);
    story.end().await;
}

/// A stream that cannot be opened is asked for again; people can answer all the while.
#[rstest]
#[tokio::test]
async fn no_stream_and_no_connection(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let story = begin(on).await;
    for fault in [Fault::Status { code: 503, retry_after: None, body: None }, Fault::Html, Fault::CutAnswer] {
        story.a2a.faults().add(Rule::next("SubscribeToTask", fault));
    }
    story.a2a.next_stream(StreamFault::CutAfter { events: 1 });
    let following = story.follows();
    let (opened, card) = story.asked("deploy_service").await;
    story
        .until_worked("it is asked for again and again", || {
            story.advance(Duration::from_millis(500));
            story.count("SubscribeToTask") >= 5
        })
        .await;
    story.presses("U0DANA", &card, "Approve").await;
    reads(&story, &card, "approved by").await;
    assert_eq!(story.recorded(&opened), [(DANA.to_owned(), true)]);
    drop(following);
    story.end().await;
}

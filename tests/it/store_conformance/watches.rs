//! Tasks to follow and push configurations.

use super::bench::{Bench, START, write};
use crate::world::database::Backend;
use countersign::domain::clock::Millis;
use countersign::domain::form::{Fact, Form, Kind};
use countersign::domain::ids::{InteractionId, InteractionKey, RuntimeName, Subject};
use countersign::store::tasks::NewTask;
use countersign::store::watches::NewHook;
use rstest::rstest;
use std::time::Duration;
use uuid::Uuid;

fn later(seconds: u64) -> Millis {
    START.plus(Duration::from_secs(seconds))
}

fn new_hook(id: &str, task: &str) -> NewHook {
    NewHook {
        id: id.into(),
        runtime: RuntimeName::new("prod"),
        task: task.into(),
        context: Some("ctx".into()),
        seen_as: Some(Subject::parse("dana@example.com").unwrap()),
        path_hash: format!("path of {id}"),
        credential_hash: "credential".into(),
        token_hash: "token".into(),
    }
}

#[rstest]
#[tokio::test]
async fn a_configuration_from_its_making_to_its_end(
    #[values(Backend::Sqlite, Backend::Postgres)] on: Backend,
) {
    let bench = Bench::new(on).await;
    let made = write!(bench.store, |tx| async move {
        let (one, twin, other) = (new_hook("a", "t1"), new_hook("b", "t1"), new_hook("c", "t2"));
        Ok([
            tx.insert_hook(&one, START, later(60)).await?,
            tx.insert_hook(&twin, START, later(60)).await?,
            tx.insert_hook(&other, later(1), later(60)).await?,
        ])
    });
    assert_eq!(made, [true, false, true], "a task has one at a time");
    let found = write!(bench.store, |tx| tx.hook_at("path of a")).unwrap();
    assert_eq!((found.id.as_str(), found.task.as_str(), found.live, found.hints), ("a", "t1", false, 0));
    assert_eq!((found.made, found.context.as_deref()), (START, Some("ctx")));
    assert_eq!(found.seen_as.as_ref().map(Subject::as_str), Some("dana@example.com"));
    assert!(write!(bench.store, |tx| tx.hook_at("path of b")).is_none());
    assert!(write!(bench.store, |tx| tx.hook_live("a")));
    assert!(!write!(bench.store, |tx| tx.hook_live("a")));
    let all = write!(bench.store, |tx| tx.hooks_of("prod"));
    assert_eq!(
        all.iter().map(|hook| (hook.id.as_str(), hook.live)).collect::<Vec<_>>(),
        [("a", true), ("c", false)]
    );
    assert!(write!(bench.store, |tx| tx.hooks_of("other")).is_empty());

    // A call makes it due; a reading that began before another call does not answer that one.
    assert!(write!(bench.store, |tx| tx.due_hooks("prod", later(59), false, 10)).is_empty());
    assert!(write!(bench.store, |tx| tx.hint("a", later(5))));
    let due = write!(bench.store, |tx| tx.due_hooks("prod", later(5), false, 10));
    assert_eq!(due.iter().map(|hook| (hook.id.as_str(), hook.hints)).collect::<Vec<_>>(), [("a", 1)]);
    assert!(write!(bench.store, |tx| tx.hint("a", later(6))));
    assert!(!write!(bench.store, |tx| tx.hook_read("a", 1, later(66))));
    assert_eq!(write!(bench.store, |tx| tx.due_hooks("prod", later(6), false, 10)).len(), 1);
    assert!(write!(bench.store, |tx| tx.hook_read("a", 2, later(66))));
    assert!(write!(bench.store, |tx| tx.due_hooks("prod", later(59), false, 10)).is_empty());
    assert_eq!(write!(bench.store, |tx| tx.due_hooks("prod", later(66), false, 1)).len(), 1);

    // Ending: nobody finds it any more, the task may have another, and it is left until it is dropped.
    assert!(write!(bench.store, |tx| tx.end_hook("a", later(70))));
    assert!(!write!(bench.store, |tx| tx.end_hook("a", later(80))));
    assert!(write!(bench.store, |tx| tx.hook_at("path of a")).is_none());
    assert!(!write!(bench.store, |tx| tx.hint("a", later(71))));
    assert!(!write!(bench.store, |tx| tx.hook_read("a", 2, later(99))));
    assert!(write!(bench.store, |tx| async move {
        let another = new_hook("d", "t1");
        tx.insert_hook(&another, later(70), later(130)).await
    }));
    let ending = write!(bench.store, |tx| tx.due_hooks("prod", later(70), true, 10));
    assert_eq!(ending.iter().map(|hook| hook.id.as_str()).collect::<Vec<_>>(), ["a"]);
    assert!(write!(bench.store, |tx| tx.end_hook_later("a", later(90))));
    assert!(!write!(bench.store, |tx| tx.end_hook_later("c", later(90))));
    assert!(write!(bench.store, |tx| tx.due_hooks("prod", later(89), true, 10)).is_empty());
    assert_eq!(write!(bench.store, |tx| tx.count_hooks("prod")), 3);
    assert!(write!(bench.store, |tx| tx.drop_hook("a")));
    assert!(!write!(bench.store, |tx| tx.drop_hook("c")), "only what is ending");
    assert_eq!(write!(bench.store, |tx| tx.count_hooks("prod")), 2);
}

/// Stores an open interaction of a task.
async fn opened(bench: &Bench, n: u128, task: &'static str) {
    write!(bench.store, |tx| async move {
        let key = InteractionKey {
            runtime: RuntimeName::new("prod"),
            agent: "release".into(),
            task: task.into(),
            external: format!("eff_{n}"),
        };
        let form = Form {
            kind: Kind::Approval,
            title: "t".into(),
            prompt: "p".into(),
            facts: vec![Fact { label: "tool".into(), value: "deploy".into() }],
            questions: vec![],
            arguments_withheld: true,
        };
        let digest = form.digest(&key);
        tx.insert_interaction(&countersign::store::interactions::NewInteraction {
            id: InteractionId(Uuid::from_u128(n)),
            key: &key,
            context: Some("ctx"),
            seen_as: None,
            form: &form,
            owner: None,
            digest: &digest,
            opened: START,
            read_at: START,
        })
        .await
    });
}

#[rstest]
#[tokio::test]
async fn what_is_worth_following(#[values(Backend::Sqlite, Backend::Postgres)] on: Backend) {
    let bench = Bench::new(on).await;
    for (n, task) in [(1, "t1"), (2, "t2"), (3, "t2"), (4, "t3")] {
        opened(&bench, n, task).await;
    }
    write!(bench.store, |tx| async move {
        for (task, at) in [("t1", 1), ("t8", 2), ("t9", 3)] {
            let new = NewTask {
                runtime: "prod".into(),
                task: task.into(),
                context: None,
                subject: Some("dana@example.com".into()),
            };
            tx.register_task(new, later(at)).await?;
        }
        tx.task_ended("prod", "t8", later(4)).await
    });
    let known = write!(bench.store, |tx| tx.tasks_to_follow("prod", 10));
    let names = |all: &[countersign::store::watches::Known]| {
        all.iter().map(|known| (known.task.clone(), known.open)).collect::<Vec<_>>()
    };
    let of = |task: &str, open| (task.to_owned(), open);
    assert_eq!(names(&known), [of("t3", true), of("t2", true), of("t1", true), of("t9", false)]);
    assert_eq!(known[3].seen_as.as_ref().map(Subject::as_str), Some("dana@example.com"));
    assert_eq!(known[2].seen_as, None, "the view that shows it open");
    assert_eq!(
        names(&write!(bench.store, |tx| tx.tasks_to_follow("prod", 2))),
        [of("t3", true), of("t2", true)]
    );
    assert!(write!(bench.store, |tx| tx.tasks_to_follow("other", 10)).is_empty());

    let runtime = RuntimeName::new("prod");
    let mut unsettled = write!(bench.store, |tx| tx.unsettled_in(&runtime, "t2"));
    unsettled.sort();
    assert_eq!(unsettled, [("eff_2".to_owned(), false), ("eff_3".to_owned(), false)]);

    let watched = write!(bench.store, |tx| tx.watched_task("prod", "t9")).unwrap();
    assert_eq!(watched.subject.as_deref(), Some("dana@example.com"));
    assert!(write!(bench.store, |tx| tx.watched_task("prod", "t8")).is_none());
    assert!(write!(bench.store, |tx| tx.hurry_task("prod", "t9", later(2))));
    assert!(!write!(bench.store, |tx| tx.hurry_task("prod", "t9", later(9))), "never later");
    assert!(!write!(bench.store, |tx| tx.hurry_task("prod", "t8", later(1))));
    let due = write!(bench.store, |tx| tx.due_tasks("prod", later(2), 10));
    assert_eq!(due.iter().map(|task| task.task.as_str()).collect::<Vec<_>>(), ["t1", "t9"]);
}

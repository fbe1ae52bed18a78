//! The demo's agent: it asks for approvals, and goes on when it has been answered.
//!
//! Invariant: it opens by itself only while fewer than [`BY_ITSELF`] of its requests are open, on
//! request only while fewer than [`AT_MOST`] are, and keeps at most [`REMEMBERED`] tasks, so a
//! demo left alone stays as it is.
//! Known race: between looking at a task and moving it, a person may end it; moving an ended task
//! does nothing.

use super::a2a::{A2aWorld, Ask, Decision, Open, Opened, State, TaskView};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Open requests up to which the agent opens more by itself.
pub const BY_ITSELF: usize = 3;
/// Open requests up to which it opens more when told to.
pub const AT_MOST: usize = 8;
/// Tasks it keeps in the runtime.
pub const REMEMBERED: usize = 40;
/// Between two requests.
const APART_MS: i64 = 6_000;
/// How long it works after an answer.
const WORKS_MS: i64 = 2_000;

/// One thing the agent wants, and what it asks next once that was approved.
struct Errand {
    owner: &'static str,
    ask: Ask,
    then: Option<Ask>,
}

/// The errands, over and over.
fn errand(number: usize) -> Errand {
    let deploy = |prompt: &str| Ask::approval("ci", "deploy_service").prompt(prompt);
    let release = 1 + number / 5;
    match number % 5 {
        0 => Errand {
            owner: "dana@example.com",
            ask: deploy(&format!(
                "Deploy web 2.4.{release} to the canary servers?\nAll 1,284 tests passed; staging has been healthy for 30 minutes."
            ))
            .reason("Planned release"),
            then: Some(
                deploy(&format!("The canary is healthy. Deploy web 2.4.{release} to all servers?"))
                    .reason("Second step of the release"),
            ),
        },
        1 => Errand {
            owner: "sam@example.com",
            ask: Ask::approval("warehouse", "delete_backups")
                .prompt("Delete the database backups that are older than 90 days (412 GB)?")
                .reason("The backup disk is 93 % full"),
            then: None,
        },
        2 => Errand {
            owner: "kim@example.com",
            ask: Ask::approval("ci", "publish_notes")
                .prompt("<!channel> <https://evil.test|Approve> *urgent* <b>now</b> & go to https://evil.test/x")
                .reason("Text of a pull request, with everything in it that chats turn into links and pings"),
            then: None,
        },
        3 => Errand {
            owner: "dana@example.com",
            ask: Ask::approval("pager", "close_incident")
                .prompt("Error rates are back to normal. Close incident 2093?")
                .reason("No alert for 20 minutes"),
            then: None,
        },
        _ => Errand {
            owner: "kim@example.com",
            ask: Ask::approval("ci", "restart_service")
                .prompt("Restart the search service? It has used 95 % of its memory for an hour.")
                .reason("Memory"),
            then: None,
        },
    }
}

struct Plan {
    next: usize,
    opens_at_ms: i64,
    open_before: usize,
    /// What to ask next, by task.
    then: BTreeMap<String, Ask>,
}

/// The agent; what it does shows in its runtime.
pub struct Agent {
    world: Arc<A2aWorld>,
    plan: Mutex<Plan>,
}

impl Agent {
    #[must_use]
    pub fn new(world: Arc<A2aWorld>) -> Self {
        let plan = Plan { next: 0, opens_at_ms: i64::MIN, open_before: 0, then: BTreeMap::new() };
        Self { world, plan: Mutex::new(plan) }
    }

    fn plan(&self) -> MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Works until told to stop.
    pub async fn run(&self, stop: CancellationToken) {
        let mut changed = self.world.changed();
        loop {
            changed.mark_unchanged();
            let wait = self.step();
            tokio::select! {
                () = stop.cancelled() => return,
                _ = changed.changed() => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    /// Opens the next request at once; `None` while too many are open.
    pub fn open_next(&self) -> Option<Opened> {
        let mut plan = self.plan();
        (open_tasks(&self.world.tasks()) < AT_MOST).then(|| self.open(&mut plan))
    }

    fn open(&self, plan: &mut Plan) -> Opened {
        let Errand { owner, ask, then } = errand(plan.next);
        plan.next += 1;
        let opened = self.world.open(Open::new(owner, ask));
        if let Some(then) = then {
            plan.then.insert(opened.task_id.clone(), then);
        }
        plan.open_before += 1;
        plan.opens_at_ms = self.world.time().now_ms().saturating_add(APART_MS);
        opened
    }

    /// Does what is due; how long until something may be due again.
    fn step(&self) -> Duration {
        let now_ms = self.world.time().now_ms();
        let mut plan = self.plan();
        let mut due_ms = now_ms.saturating_add(60_000);
        for task in self.world.tasks() {
            if task.state() != State::Working {
                continue;
            }
            let at_ms = task.since_ms().saturating_add(WORKS_MS);
            if at_ms <= now_ms {
                self.go_on(&mut plan, &task);
            } else {
                due_ms = due_ms.min(at_ms);
            }
        }
        let tasks = self.world.tasks();
        let open = open_tasks(&tasks);
        if open < plan.open_before {
            plan.opens_at_ms = plan.opens_at_ms.max(now_ms.saturating_add(APART_MS));
        }
        plan.open_before = open;
        if open < BY_ITSELF {
            if plan.opens_at_ms <= now_ms {
                self.open(&mut plan);
            }
            due_ms = due_ms.min(plan.opens_at_ms);
        }
        self.forget(&mut plan, tasks);
        Duration::from_millis(u64::try_from(due_ms.saturating_sub(now_ms)).unwrap_or(0).max(20))
    }

    /// After an answer: the next question of the errand, or its end.
    fn go_on(&self, plan: &mut Plan, task: &TaskView) {
        let answer = task.interactions.last().and_then(|asked| asked.answers.first());
        let approved = answer.is_some_and(|answer| answer.decision == Decision::Approved(true));
        match plan.then.remove(&task.id) {
            Some(then) if approved => {
                self.world.ask(&task.id, then);
            }
            _ => {
                let text = if approved { "Done." } else { "Not done: a person said no." };
                self.world.end(&task.id, State::Completed, Some(text));
            }
        }
    }

    fn forget(&self, plan: &mut Plan, mut tasks: Vec<TaskView>) {
        let over = tasks.len().saturating_sub(REMEMBERED);
        tasks.retain(|task| task.state().is_terminal());
        tasks.sort_by_key(TaskView::since_ms);
        for task in tasks.into_iter().take(over) {
            plan.then.remove(&task.id);
            self.world.delete(&task.id);
        }
    }
}

fn open_tasks(tasks: &[TaskView]) -> usize {
    tasks.iter().filter(|task| task.state().is_interrupted()).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::a2a::{Elsewhere, Phase, Setup};
    use crate::sandbox::time::Time;

    fn agent() -> Agent {
        Agent::new(A2aWorld::new(Setup { time: Time::manual(1_796_000_000_000), ..Setup::default() }))
    }

    fn pass(agent: &Agent, seconds: i64) {
        for _ in 0..seconds {
            agent.world.time().advance(1_000);
            agent.step();
        }
    }

    fn open_ids(agent: &Agent) -> Vec<String> {
        let tasks = agent.world.tasks();
        let all = tasks.iter().flat_map(|task| &task.interactions);
        all.filter(|one| one.phase == Phase::Open).map(|one| one.id.clone()).collect()
    }

    fn answer(agent: &Agent, id: &str, approved: bool) {
        let decision = Decision::Approved(approved);
        let answer =
            Elsewhere { subject: "dana@example.com".into(), decision, history: false, message_id: None };
        assert!(agent.world.answer_elsewhere(id, answer));
    }

    #[test]
    fn it_asks_at_once_then_more_and_stops_by_itself() {
        let agent = agent();
        agent.step();
        assert_eq!(open_ids(&agent).len(), 1);
        pass(&agent, 5);
        assert_eq!(open_ids(&agent).len(), 1);
        pass(&agent, 1);
        assert_eq!(open_ids(&agent).len(), 2);
        pass(&agent, 600);
        assert_eq!(open_ids(&agent).len(), BY_ITSELF);
        for _ in 0..20 {
            agent.open_next();
        }
        assert_eq!(open_ids(&agent).len(), AT_MOST);
    }

    #[test]
    fn it_goes_on_after_yes_and_ends_after_no() {
        let agent = agent();
        agent.step();
        let first = open_ids(&agent).remove(0);
        let task = agent.world.tasks().remove(0).id;
        answer(&agent, &first, true);
        pass(&agent, 1);
        assert_eq!(agent.world.state(&task), Some(State::Working));
        pass(&agent, 1);
        let next = agent.world.task(&task).unwrap().interactions[1].clone();
        assert_eq!((next.phase, next.ask.tool.as_deref()), (Phase::Open, Some("deploy_service")));
        answer(&agent, &next.id, false);
        pass(&agent, 2);
        assert_eq!(agent.world.state(&task), Some(State::Completed));
    }

    #[test]
    fn an_ended_request_is_followed_by_another_after_a_while_and_old_tasks_are_forgotten() {
        let agent = agent();
        pass(&agent, 60);
        assert!(agent.world.end(&agent.world.tasks()[0].id, State::Canceled, None));
        agent.step();
        assert_eq!(open_ids(&agent).len(), BY_ITSELF - 1);
        pass(&agent, 6);
        assert_eq!(open_ids(&agent).len(), BY_ITSELF);
        for _ in 0..100 {
            for id in open_ids(&agent) {
                answer(&agent, &id, false);
            }
            pass(&agent, 20);
        }
        assert_eq!(agent.world.tasks().len(), REMEMBERED);
        assert_eq!(open_ids(&agent).len(), BY_ITSELF);
    }
}

//! The measured parts of a run: steady load beside its floor; memory; recovery.
//!
//! Arrivals are open-loop: every press has its moment before the run begins and is counted from that moment, however
//! busy the service, the stand-ins or this generator are.

use crate::board::{Board, Checked};
use crate::figures::Times;
use crate::floor::FloorProcess;
use crate::rig::{Databases, Rig, folder};
use anyhow::{Context, Result, ensure};
use countersign::sandbox::slack::acme;
use countersign::sandbox::time::Time;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::Handle;

/// What is asked of a run.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    /// Presses, and interactions opened, per second.
    pub(crate) rate: u32,
    pub(crate) units: usize,
    /// Open interactions for the memory and recovery parts.
    pub(crate) open: [usize; 2],
    pub(crate) poll: String,
}

/// From an opening to its press: the poll, and time to post.
const THINKS: Duration = Duration::from_millis(2500);
const WARM_UP: usize = 60;
/// What changes while the service is dead, of each kind.
const MEANWHILE: usize = 20;

#[derive(Debug, Default)]
pub(crate) struct Loaded {
    pub(crate) acks: Times,
    pub(crate) floor: Times,
    pub(crate) checked: Checked,
    pub(crate) cpu: Duration,
    pub(crate) floor_cpu: Duration,
    pub(crate) floor_presses: usize,
    pub(crate) units: usize,
    pub(crate) late: usize,
    pub(crate) calls: BTreeMap<String, usize>,
    pub(crate) idle_memory: f64,
    pub(crate) memory: (f64, f64),
    pub(crate) problems: Vec<String>,
}

#[derive(Debug, Default)]
pub(crate) struct Held {
    /// Resident memory at each of [`Plan::open`], and the most until then.
    pub(crate) memory: Vec<(usize, f64, f64)>,
    pub(crate) first_ack: Duration,
    pub(crate) reconciled: Duration,
    pub(crate) acked_before: usize,
    pub(crate) problems: Vec<String>,
}

fn sleep_until(at: Instant) {
    std::thread::sleep(at.saturating_duration_since(Instant::now()));
}

/// Calls `act` at each moment of the schedule, from a thread of its own.
fn schedule<T: Send + 'static>(
    start: Instant,
    gap: Duration,
    count: usize,
    mut act: impl FnMut(usize, Instant) -> T + Send + 'static,
) -> std::thread::JoinHandle<Vec<T>> {
    std::thread::spawn(move || {
        let mut made = Vec::with_capacity(count);
        let mut at = start;
        for number in 0..count {
            sleep_until(at);
            made.push(act(number, at));
            at += gap;
        }
        made
    })
}

/// Waits for a thread without stopping this one.
async fn joined<T: Send + 'static>(thread: std::thread::JoinHandle<T>) -> Result<T> {
    let waited = tokio::task::spawn_blocking(move || thread.join()).await?;
    waited.map_err(|_| anyhow::anyhow!("a thread of the benchmark panicked"))
}

/// Units arrive, are pressed and answered at one rate.
async fn steady(
    board: &Arc<Board>,
    generator: &Handle,
    gap: Duration,
    units: usize,
    acks: &mut Times,
) -> Result<usize> {
    let first = board.len();
    let start = Instant::now() + Duration::from_millis(200);
    let opener = {
        let board = Arc::clone(board);
        schedule(start, gap, units, move |_, _| board.open())
    };
    let presser = {
        let (board, generator) = (Arc::clone(board), generator.clone());
        schedule(start + THINKS, gap, units, move |number, at| {
            generator.spawn(Arc::clone(&board).press(first + number, at))
        })
    };
    let finder = {
        let board = Arc::clone(board);
        generator.spawn(async move {
            loop {
                board.look();
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        })
    };
    joined(opener).await?;
    let mut late = 0;
    for press in joined(presser).await? {
        if let Some((ack, waited)) = press.await? {
            acks.add(ack);
            late += usize::from(waited);
        }
    }
    finder.abort();
    Ok(late)
}

/// The same presses at the same rate to the floor.
async fn floor(
    board: &Arc<Board>,
    generator: &Handle,
    gap: Duration,
    bodies: &[Vec<u8>],
    count: usize,
    at: &FloorProcess,
) -> Result<Times> {
    let presser = {
        let (board, generator, address, bodies) =
            (Arc::clone(board), generator.clone(), at.address, bodies.to_vec());
        schedule(Instant::now() + Duration::from_millis(200), gap, count, move |number, at| {
            let body = bodies[number % bodies.len()].clone();
            let board = Arc::clone(&board);
            generator.spawn(async move {
                let status = board.send(address, body).await?;
                ensure!(status == 200, "the floor answered {status}");
                Ok(at.elapsed())
            })
        })
    };
    let mut acks = Times::default();
    for press in joined(presser).await? {
        acks.add(press.await??);
    }
    Ok(acks)
}

/// Steady load, with the floor before and after it, so that what else the machine does strikes both.
pub(crate) async fn loaded(plan: &Plan, databases: &mut Databases, generator: &Handle) -> Result<Loaded> {
    let mut rig = Rig::new(databases, &plan.poll).await?;
    rig.start()?;
    rig.serving().await?;
    let board = Board::new(&rig)?;
    let gap = Duration::from_secs(1) / plan.rate.max(1);
    // It has found the runtime and Slack, and is at rest.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let mut loaded = Loaded { idle_memory: rig.process()?.memory()?.0, ..Loaded::default() };

    steady(&board, generator, gap * 2, WARM_UP, &mut Times::default()).await?;
    board.ended(0..WARM_UP).await;
    // Its presses are the floor's too: their cards are open ones that nobody presses.
    let sample = board.len();
    for _ in 0..WARM_UP {
        board.open();
    }
    board.posted(sample..sample + WARM_UP).await?;
    let mut bodies = vec![];
    for number in sample..sample + WARM_UP {
        bodies.push(board.body(number).await?.0);
    }

    let floor_folder = folder()?;
    let floor_url = databases.fresh(&floor_folder).await?;
    let floor_server = FloorProcess::start(&floor_url, acme::SIGNING_SECRET).await?;
    let half = plan.units.div_ceil(2);
    floor(&board, generator, gap, &bodies, WARM_UP, &floor_server).await?;
    let before = floor_server.process().cpu()?;
    loaded.floor = floor(&board, generator, gap, &bodies, half, &floor_server).await?;

    rig.slack.forget();
    let first = board.len();
    let cpu = rig.process()?.cpu()?;
    loaded.late = steady(&board, generator, gap, plan.units, &mut loaded.acks).await?;
    loaded.checked = board.ended(first..first + plan.units).await;
    loaded.cpu = rig.process()?.cpu()?.saturating_sub(cpu);
    loaded.units = plan.units;
    loaded.calls = rig.slack.counts();
    loaded.memory = rig.process()?.memory()?;

    let again = floor(&board, generator, gap, &bodies, half, &floor_server).await?;
    loaded.floor.join(&again);
    loaded.floor_cpu = floor_server.process().cpu()?.saturating_sub(before);
    loaded.floor_presses = half * 2;
    let stored = floor_server.stop(&floor_url).await?;
    let sent = i64::try_from(half * 2 + WARM_UP)?;
    ensure!(stored == sent, "the floor stored {stored} of {sent} presses");

    board.ended(0..board.len()).await;
    board.complaints();
    loaded.problems = board.problems();
    told_by_log(&rig, &mut loaded.problems);
    Ok(loaded)
}

/// Errors in the service's log void a run too.
fn told_by_log(rig: &Rig, problems: &mut Vec<String>) {
    let log = rig.log();
    let errors = log.lines().filter(|line| line.contains("ERROR") || line.contains("panicked"));
    problems.extend(errors.take(5).map(|line| format!("log: {line}")));
}

async fn open_until(board: &Arc<Board>, count: usize) -> Result<()> {
    let missing = count.saturating_sub(board.len());
    let opener = {
        let board = Arc::clone(board);
        schedule(Instant::now(), Duration::from_millis(2), missing, move |_, _| board.open())
    };
    joined(opener).await?;
    board.posted(0..count).await
}

/// Memory while many are open, and what a SIGKILL costs.
pub(crate) async fn held(plan: &Plan, databases: &mut Databases, generator: &Handle) -> Result<Held> {
    let mut rig = Rig::new(databases, &plan.poll).await?;
    rig.start()?;
    rig.serving().await?;
    let board = Board::new(&rig)?;
    let mut held = Held::default();
    let [few, many] = plan.open;
    ensure!(few >= MEANWHILE * 10, "--open: at least {} are killed over", MEANWHILE * 10);

    open_until(&board, few).await?;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let (now, most) = rig.process()?.memory()?;
    held.memory.push((few, now, most));

    recover(&mut rig, &board, generator, &mut held).await?;

    open_until(&board, many).await?;
    tokio::time::sleep(Duration::from_secs(15)).await;
    let (now, most) = rig.process()?.memory()?;
    held.memory.push((many, now, most));
    board.ended(0..board.len()).await;
    board.complaints();
    held.problems = board.problems();
    told_by_log(&rig, &mut held.problems);
    Ok(held)
}

/// Killed while answers are on their way; meanwhile others end and new ones open.
async fn recover(rig: &mut Rig, board: &Arc<Board>, generator: &Handle, held: &mut Held) -> Result<()> {
    let open = board.len();
    let first = open / 2;
    // At 200 a second, for 0.3 s; the service dies in the middle of it.
    let presses: Vec<_> = joined(schedule(Instant::now(), Duration::from_millis(5), MEANWHILE * 3, {
        let (board, generator) = (Arc::clone(board), generator.clone());
        move |number, _| generator.spawn(Arc::clone(&board).press_perhaps(first + number))
    }))
    .await?;
    rig.kill()?;
    for press in presses {
        held.acked_before += usize::from(press.await?);
    }
    for number in 0..MEANWHILE {
        board.cancel(number);
        board.elsewhere(MEANWHILE + number);
        board.open();
    }
    let chosen = MEANWHILE * 2;
    let (started, started_ms) = (Instant::now(), Time::System.now_ms());
    rig.start()?;
    let (body, _) = board.body(chosen).await?;
    loop {
        if matches!(board.send(board.address, body.clone()).await, Ok(200)) {
            held.first_ack = started.elapsed();
            break;
        }
        ensure!(started.elapsed() < crate::rig::PATIENCE, "it never came back:\n{}", rig.log());
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    board.acknowledged(chosen);
    // What was touched, and what is new; the others have not changed since.
    let mut last = 0;
    for part in [0..chosen + 1, first..first + MEANWHILE * 3, open..open + MEANWHILE] {
        last = last.max(board.ended(part).await.last_ms);
    }
    let took = last.checked_sub(started_ms).context("nothing was reconciled")?;
    held.reconciled = Duration::from_millis(u64::try_from(took).unwrap_or_default());
    Ok(())
}

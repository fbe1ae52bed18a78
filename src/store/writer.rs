//! SQLite's one writer.
//!
//! Invariant: it owns the only writing connection. It takes every write that waits, runs each in a savepoint of one
//! immediate transaction, commits once, and only then answers. A write that fails or panics loses its own savepoint,
//! not its neighbours'. Somebody outside waits for an urgent write: the batch under way ends early for it, and it
//! shares its commit with urgent ones only.

use super::StoreError;
use super::checkpoint::Checkpoints;
use super::dialect::exec;
use super::door::{Conn, Tx};
use super::wake::Wake;
use crate::domain::clock::Clock;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::{mpsc, oneshot};

/// How many waiting writes share one commit at most.
const BATCH: usize = 64;
/// How many writes wait at most before those who ask for them wait.
const QUEUE: usize = 1024;

/// The two ways to the writer.
#[derive(Debug, Clone)]
pub(super) struct Door {
    urgent: mpsc::Sender<Box<dyn Work>>,
    usual: mpsc::Sender<Box<dyn Work>>,
}

impl Door {
    /// The way in, and what waits behind it.
    pub(super) fn new() -> (Self, Queue) {
        let (urgent, urgent_queue) = mpsc::channel(QUEUE);
        let (usual, usual_queue) = mpsc::channel(QUEUE);
        (Self { urgent, usual }, Queue { urgent: urgent_queue, usual: usual_queue, left: vec![] })
    }

    /// Has a write done; its value comes back after the commit.
    pub(super) async fn write<T, F>(&self, write: F, urgent: bool) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: for<'t> FnOnce(&'t mut Tx) -> BoxFuture<'t, Result<T, StoreError>> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let work = Box::new(Written { write: Some(write), value: None, failed: None, reply });
        let way = if urgent { &self.urgent } else { &self.usual };
        way.send(work).await.map_err(|_| StoreError::Unavailable("the writer has stopped".into()))?;
        answer.await.map_err(|_| StoreError::Unavailable("the writer has stopped".into()))?
    }
}

/// A queued write with its way back.
trait Work: Send + std::fmt::Debug {
    fn run<'t>(&'t mut self, tx: &'t mut Tx) -> BoxFuture<'t, Result<(), StoreError>>;
    fn finish(self: Box<Self>, commit: Result<(), StoreError>);
}

struct Written<F, T> {
    write: Option<F>,
    value: Option<T>,
    failed: Option<StoreError>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<F, T> std::fmt::Debug for Written<F, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Written")
    }
}

impl<F, T> Work for Written<F, T>
where
    T: Send + 'static,
    F: for<'t> FnOnce(&'t mut Tx) -> BoxFuture<'t, Result<T, StoreError>> + Send,
{
    fn run<'t>(&'t mut self, tx: &'t mut Tx) -> BoxFuture<'t, Result<(), StoreError>> {
        async move {
            let Some(write) = self.write.take() else { return Ok(()) };
            match guarded(write(tx)).await {
                Ok(value) => {
                    self.value = Some(value);
                    Ok(())
                }
                Err(error) => {
                    self.failed = Some(error);
                    Err(StoreError::Refused("rolled back".into()))
                }
            }
        }
        .boxed()
    }

    fn finish(self: Box<Self>, commit: Result<(), StoreError>) {
        let answer = match (self.failed, commit, self.value) {
            (Some(error), ..) | (None, Err(error), _) => Err(error),
            (None, Ok(()), Some(value)) => Ok(value),
            (None, Ok(()), None) => Err(StoreError::Unavailable("not run".into())),
        };
        // Nobody waits any more: what was written stays written.
        let _ = self.reply.send(answer);
    }
}

/// A panic inside one write must not take the writer down with it.
pub(super) async fn guarded<T>(write: BoxFuture<'_, Result<T, StoreError>>) -> Result<T, StoreError> {
    AssertUnwindSafe(write)
        .catch_unwind()
        .await
        .unwrap_or_else(|_| Err(StoreError::Refused("a write panicked".into())))
}

/// What waits for the writer.
pub(super) struct Queue {
    urgent: mpsc::Receiver<Box<dyn Work>>,
    usual: mpsc::Receiver<Box<dyn Work>>,
    /// Taken and not yet run, because something urgent came.
    left: Vec<Box<dyn Work>>,
}

impl Queue {
    /// Fills an empty batch; whether with urgent work. `None` when every store is gone.
    async fn fill(&mut self, batch: &mut Vec<Box<dyn Work>>) -> Option<bool> {
        if self.urgent.is_empty() && !self.left.is_empty() {
            batch.append(&mut self.left);
            return Some(false);
        }
        let (first, is_urgent) = tokio::select! {
            biased;
            work = self.urgent.recv() => (work, true),
            work = self.usual.recv() => (work, false),
        };
        // Every store is gone: what still waits is written before the end.
        let first = match first {
            Some(work) => work,
            None => self.usual.recv().await?,
        };
        batch.push(first);
        let way = if is_urgent { &mut self.urgent } else { &mut self.usual };
        while batch.len() < BATCH
            && let Ok(work) = way.try_recv()
        {
            batch.push(work);
        }
        Some(is_urgent)
    }
}

/// Takes what waits, runs it, commits once, answers.
pub(super) async fn writer_task(
    mut tx: Tx,
    mut queue: Queue,
    checkpoints: Checkpoints,
    clock: Arc<dyn Clock>,
    wake: Wake,
    changed: Arc<AtomicBool>,
) {
    let mut batch: Vec<Box<dyn Work>> = Vec::with_capacity(BATCH);
    while let Some(is_urgent) = queue.fill(&mut batch).await {
        tx.now = Some(clock.now());
        let mut run = 0;
        let urgent = (!is_urgent).then_some(&queue.urgent);
        let commit = run_batch(&mut tx, &mut batch, &mut run, urgent).await;
        // Of a batch that was not written too: looking once for nothing does no harm.
        if std::mem::take(&mut tx.shows) {
            changed.store(true, Ordering::Release);
        }
        if commit.is_ok() && run < batch.len() {
            // A batch that can be left early is never taken while something is left.
            queue.left = batch.split_off(run);
        }
        if commit.is_ok() && tx.wakes {
            wake.signal();
        }
        for work in batch.drain(..) {
            work.finish(match &commit {
                Ok(()) => Ok(()),
                Err(StoreError::Busy(what)) => Err(StoreError::Busy(what.clone())),
                Err(error) => Err(StoreError::Unavailable(error.to_string())),
            });
        }
        // After the answers: nobody waits for it.
        if let Conn::Sqlite(connection) = &mut tx.conn {
            checkpoints.committed(connection).await;
        }
    }
}

/// Runs a batch in one transaction, as far as nothing `urgent` waits behind its first; `run` says how far.
async fn run_batch(
    tx: &mut Tx,
    batch: &mut [Box<dyn Work>],
    run: &mut usize,
    urgent: Option<&mpsc::Receiver<Box<dyn Work>>>,
) -> Result<(), StoreError> {
    let alone = batch.len() == 1;
    exec!(tx, "BEGIN IMMEDIATE")?;
    let outcome = async {
        let mut savepoint = "SAVEPOINT one";
        let mut wakes = false;
        for work in batch.iter_mut() {
            if *run > 0 && urgent.is_some_and(|urgent| !urgent.is_empty()) {
                break;
            }
            if !alone && !savepoint.is_empty() {
                exec!(tx, savepoint)?;
            }
            tx.wakes = false;
            tx.loaded = None;
            let to_record = tx.to_record.len();
            let failed = work.run(tx).await.is_err();
            if failed {
                tx.to_record.truncate(to_record);
            }
            wakes |= tx.wakes && !failed;
            *run += 1;
            savepoint = "RELEASE one; SAVEPOINT one";
            if failed && alone {
                tx.wakes = false;
                return exec!(tx, "ROLLBACK").map(|_| ());
            }
            if failed {
                // The savepoint stays, and is the next one's.
                exec!(tx, "ROLLBACK TO one")?;
                savepoint = "";
            }
        }
        tx.wakes = wakes;
        tx.record_all().await?;
        exec!(tx, "COMMIT").map(|_| ())
    }
    .await;
    tx.loaded = None;
    if outcome.is_err() {
        tx.to_record.clear();
        // Best effort: SQLite may have rolled back by itself (disk full, I/O error).
        let _ = exec!(tx, "ROLLBACK");
    }
    outcome
}

//! Waking workers after a commit: in the process, and between replicas by `NOTIFY`.
//!
//! Invariant: a wake-up is a hint; the poll every second or two is the guarantee. Register (take the
//! future) before the query, or a job committed between the two is slept over.

use std::sync::Arc;
use tokio::sync::Notify;

/// A bell that every waiting worker hears.
#[derive(Debug, Clone, Default)]
pub struct Wake(Arc<Notify>);

impl Wake {
    /// Work may be due.
    pub fn signal(&self) {
        self.0.notify_waiters();
    }

    /// Resolves at the next signal after this call (the future is registered at once).
    pub fn next(&self) -> impl Future<Output = ()> + Send + 'static {
        let notify = Arc::clone(&self.0);
        // `notified_owned` is registered when created, which is what "register before the query" needs.
        notify.notified_owned()
    }
}

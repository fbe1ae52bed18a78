//! The stand-ins' own clock: the machine's for the demo, a hand-moved one for tests.

use axum::extract::{Request, State};
use axum::http::{HeaderValue, header};
use axum::middleware::Next;
use axum::response::Response;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// A hand-moved clock is looked at this often; the hand tells nobody.
const LOOK: Duration = Duration::from_millis(5);

/// Epoch milliseconds, from the machine or from a test's hand.
#[derive(Debug, Clone)]
pub enum Time {
    System,
    Manual(Arc<AtomicI64>),
}

impl Time {
    /// A clock that moves only by [`Time::advance`].
    #[must_use]
    pub fn manual(start_ms: i64) -> Self {
        Self::Manual(Arc::new(AtomicI64::new(start_ms)))
    }

    /// Now, in epoch milliseconds.
    #[must_use]
    pub fn now_ms(&self) -> i64 {
        match self {
            #[expect(clippy::disallowed_methods, reason = "the stand-ins' own source of time")]
            Self::System => std::time::SystemTime::now()
                .duration_since(std::time::UNIX_EPOCH)
                .map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX)),
            Self::Manual(now) => now.load(Ordering::SeqCst),
        }
    }

    /// Waits until the clock shows `at_ms`.
    pub async fn until(&self, at_ms: i64) {
        loop {
            let left = at_ms.saturating_sub(self.now_ms());
            if left <= 0 {
                return;
            }
            let left = Duration::from_millis(left.unsigned_abs());
            tokio::time::sleep(if matches!(self, Self::System) { left } else { LOOK }).await;
        }
    }

    /// Moves a manual clock; the machine's clock moves by itself.
    pub fn advance(&self, by_ms: i64) {
        if let Self::Manual(now) = self {
            now.fetch_add(by_ms, Ordering::SeqCst);
        }
    }
}

/// A layer: every answer says what the stand-in's clock shows (RFC 9110 §6.6.1).
pub(super) async fn dated(State(time): State<Time>, request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let now = jiff::Timestamp::from_millisecond(time.now_ms()).unwrap_or_default();
    let printer = jiff::fmt::rfc2822::DateTimePrinter::new();
    let date = printer.timestamp_to_rfc9110_string(&now).ok();
    if let Some(date) = date.and_then(|date| HeaderValue::try_from(date).ok()) {
        response.headers_mut().insert(header::DATE, date);
    }
    response
}

//! Scripted trouble around one call.
//!
//! Invariants: what happens "after" really happens: the operation is complete before its answer is
//! held, replaced or cut. What has arrived is carried out even when its client hangs up meanwhile,
//! also when it was held on the way: a client's time limit takes nothing back. Known limit: HTTP cannot be told to drop a connection from inside a
//! handler, so a lost answer is a body that breaks at once: to a client an unknown outcome.

use crate::sandbox::faults::Fault;
use axum::body::{Body, Bytes, to_bytes};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use futures_util::stream;
use serde_json::json;
use std::io;
use std::time::Duration;

/// Runs `act` with this fault; `refuse` makes the binding's own error of a scripted name.
pub(super) async fn around<F>(
    fault: Option<Fault>,
    refuse: impl FnOnce(&str) -> Response,
    act: impl Fn() -> F + Send + 'static,
) -> Response
where
    F: Future<Output = Response> + Send + 'static,
{
    match fault {
        None => finished(act()).await,
        Some(Fault::Delay { ms }) => {
            finished(async move {
                pause(ms).await;
                act().await
            })
            .await
        }
        Some(Fault::DelayAnswer { ms }) => {
            let answer = finished(act()).await;
            pause(ms).await;
            answer
        }
        Some(Fault::Status { code, retry_after, body }) => status(code, retry_after, body),
        Some(Fault::StatusAfter { code }) => {
            finished(act()).await;
            status(code, None, None)
        }
        Some(Fault::Refuse { error }) => refuse(&error),
        Some(Fault::Hang { ms }) => {
            pause(ms).await;
            broken(Bytes::new())
        }
        Some(Fault::Lost { ms }) => {
            finished(act()).await;
            pause(ms).await;
            broken(Bytes::new())
        }
        Some(Fault::CutAnswer) => cut(finished(act()).await).await,
        Some(Fault::Html) => {
            Html("<!doctype html><title>Welcome</title><p>Nothing to see here.").into_response()
        }
        Some(Fault::NoContent) => StatusCode::NO_CONTENT.into_response(),
        Some(Fault::Duplicate) => {
            finished(act()).await;
            finished(act()).await
        }
    }
}

/// Runs to its end whether or not the client still waits.
async fn finished(act: impl Future<Output = Response> + Send + 'static) -> Response {
    #[expect(
        clippy::disallowed_methods,
        reason = "a stand-in finishes what has arrived; it has no supervisor"
    )]
    let running = tokio::spawn(act);
    running.await.unwrap_or_else(|_| StatusCode::INTERNAL_SERVER_ERROR.into_response())
}

async fn pause(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}

fn status(code: u16, retry_after: Option<u64>, body: Option<String>) -> Response {
    let status = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let word = match code {
        429 => "rate_limited",
        500..=599 => "unavailable",
        _ => "refused",
    };
    let body = body.unwrap_or_else(|| {
        json!({"status": "rejected", "code": word, "message": "Scripted by the sandbox."}).to_string()
    });
    let mut response = (status, [(header::CONTENT_TYPE, "application/json")], body).into_response();
    if let Some(seconds) = retry_after {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// The first half of an answer, then a broken connection.
async fn cut(answer: Response) -> Response {
    let (parts, body) = answer.into_parts();
    let whole = to_bytes(body, usize::MAX).await.unwrap_or_default();
    let half = whole.slice(..whole.len() / 2);
    let mut response = broken(half);
    *response.status_mut() = parts.status;
    if let Some(kind) = parts.headers.get(header::CONTENT_TYPE) {
        response.headers_mut().insert(header::CONTENT_TYPE, kind.clone());
    }
    response
}

fn broken(begin: Bytes) -> Response {
    let end = Err(io::Error::new(io::ErrorKind::ConnectionReset, "scripted by the sandbox"));
    Response::new(Body::from_stream(stream::iter([Ok(begin), end])))
}

//! What Discord sends to `POST /discord/interactions`.
//!
//! Invariant, in this order (Discord: Interactions Overview): size; headers once each and well formed; time;
//! signature over the timestamp and the raw bytes, against every configured key; only then the body is read;
//! the key that verified decides the application, and a body naming another one is refused; what was pressed is
//! committed; only then the answer, which is the first response to the press. A wrong signature is answered 401
//! without a log line or an alarm: Discord sends some on purpose. An application that takes its clicks over the
//! gateway has no key here, so that its address cannot be set to ours by mistake.
//!
//! Known races and the decisions taken:
//! - the same delivery twice: its key is known, so it is answered without a second effect;
//! - we gave up waiting and the write is committed all the same: the person presses again, which is another
//!   click, and one of the two is told "already recorded";
//! - the answer does not arrive: whether somebody has the last page of a whole text before them is asked for,
//!   not taken for granted.

mod desk;
mod dispatch;

pub use desk::GatewayDesk;
pub use dispatch::{DiscordApp, DiscordDispatch};

use super::Http;
use crate::bridge::operators::StoreError;
use crate::chat::discord::{BadKey, Discord, Refused, Verifier, read};
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, FromRequest, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use dispatch::{NotTaken, Then};
use secrecy::ExposeSecret;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(super) const INTERACTIONS: &str = "/discord/interactions";
/// How a kept body is marked.
const SOURCE: &str = "discord:interactions";
/// Larger bodies are not read.
const LARGEST: usize = 1024 * 1024;
/// Discord waits three seconds.
const LIMIT: Duration = Duration::from_secs(2);
/// Until then an answer in a body has surely arrived.
const ON_ITS_WAY: Duration = Duration::from_millis(300);

/// One install of the Discord application that takes clicks over HTTP.
#[derive(Debug)]
pub struct DiscordDoor {
    of: DiscordApp,
    verifier: Verifier,
}

impl DiscordDoor {
    /// `public_key`: of the application, 64 hexadecimal digits.
    ///
    /// # Errors
    /// When it is no key.
    pub fn new(platform: Arc<Discord>, public_key: &str) -> Result<Self, BadKey> {
        Ok(Self { of: DiscordApp::new(platform), verifier: Verifier::new(public_key)? })
    }
}

/// Why a delivery is not taken.
#[derive(Debug)]
enum Failed {
    TooBig,
    /// The body ended before it was complete.
    BrokenOff,
    Unverified(Refused),
    /// The body names another application than the one whose key signed it.
    OtherApp,
    Unreadable,
    Store(StoreError),
    Slow,
}

impl From<NotTaken> for Failed {
    fn from(not: NotTaken) -> Self {
        match not {
            NotTaken::OtherApp => Self::OtherApp,
            NotTaken::Unreadable => Self::Unreadable,
            NotTaken::Store(error) => Self::Store(error),
        }
    }
}

pub(super) fn routes() -> Router<Arc<Http>> {
    Router::new().route(INTERACTIONS, post(answer)).layer(DefaultBodyLimit::max(LARGEST))
}

async fn answer(State(http): State<Arc<Http>>, request: Request) -> Response {
    let began = Instant::now();
    let answer = tokio::time::timeout(LIMIT, take(&http, request)).await.unwrap_or(Err(Failed::Slow));
    let failed = match answer {
        Ok(response) => {
            metrics::histogram!("countersign_ack_seconds", "platform" => "discord")
                .record(began.elapsed().as_secs_f64());
            return response;
        }
        Err(failed) => failed,
    };
    let (status, reason) = match failed {
        Failed::TooBig => (StatusCode::PAYLOAD_TOO_LARGE, "size"),
        Failed::BrokenOff => (StatusCode::BAD_REQUEST, "broken_off"),
        Failed::Unverified(Refused::Headers) => (StatusCode::UNAUTHORIZED, "headers"),
        Failed::Unverified(Refused::Time) => (StatusCode::UNAUTHORIZED, "time"),
        Failed::Unverified(Refused::Signature) => (StatusCode::UNAUTHORIZED, "signature"),
        Failed::OtherApp => (StatusCode::UNAUTHORIZED, "app"),
        Failed::Unreadable => (StatusCode::BAD_REQUEST, "unreadable"),
        Failed::Store(error) => {
            tracing::error!(source = SOURCE, %error, "a delivery could not be stored; the person may press again");
            (StatusCode::INTERNAL_SERVER_ERROR, "store")
        }
        Failed::Slow => {
            tracing::error!(source = SOURCE, "a delivery was not stored in time; the person may press again");
            (StatusCode::INTERNAL_SERVER_ERROR, "slow")
        }
    };
    metrics::counter!("countersign_inbound_refused_total", "platform" => "discord", "reason" => reason)
        .increment(1);
    status.into_response()
}

async fn take(http: &Arc<Http>, request: Request) -> Result<Response, Failed> {
    let headers = request.headers().clone();
    let body = Bytes::from_request(request, &()).await.map_err(|rejected| {
        if rejected.status() == StatusCode::PAYLOAD_TOO_LARGE { Failed::TooBig } else { Failed::BrokenOff }
    })?;
    let verified = verified(http, &headers, &body).map_err(Failed::Unverified)?;
    let dispatch = DiscordDispatch { bridge: Arc::clone(&http.bridge) };
    let Ok(payload) = serde_json::from_slice(&body) else {
        dispatch.unreadable(SOURCE, &body, "no JSON").await.map_err(Failed::Store)?;
        return Err(Failed::Unreadable);
    };
    let interaction = read(&payload, http.bridge.clock.now());
    let answering =
        interaction.token.as_ref().map(|token| http.bridge.unanswered.begin(token.expose_secret()));
    let taken = dispatch.take(interaction, (SOURCE, &body), &verified).await?;
    if answering.is_some() || !matches!(taken.then, Then::Nothing) {
        #[expect(clippy::disallowed_methods, reason = "over in seconds by its deadlines; may be lost")]
        tokio::spawn(async move {
            // Our answer is on its way.
            tokio::time::sleep(ON_ITS_WAY).await;
            drop(answering);
            dispatch.after(taken.then, false).await;
        });
    }
    Ok(Json(taken.first).into_response())
}

/// The installs whose key signed this: those of one application share one.
fn verified(http: &Http, headers: &HeaderMap, body: &[u8]) -> Result<Vec<DiscordApp>, Refused> {
    let now = http.bridge.clock.now();
    let mut refused = Refused::Signature;
    let mut verified = vec![];
    for door in &http.discord {
        match door.verifier.verify(headers, body, now) {
            Ok(()) => verified.push(door.of.clone()),
            Err(why) => refused = why,
        }
    }
    if verified.is_empty() { Err(refused) } else { Ok(verified) }
}

//! The demo as a person sees it: one page with the chat, and beside it what the runtime recorded.
//!
//! Invariants:
//! * The page is three kinds of static files and this server's own JSON; its policy lets the
//!   browser load nothing else. Texts reach the document as text only.
//! * The viewer acts through the stand-ins: a press becomes a signed delivery like any other.
//! * Only this machine's own page may use it: a request that another site's page made, or one
//!   under a name that is not loopback, is refused (see `own_page_only`).
//!
//! Known race: the state may change between two looks of `events`; the versions of both worlds
//! are marked before each look, so the next look follows at once.

mod act;
mod discord;
mod state;

use super::a2a::A2aWorld;
use super::agent::Agent;
use super::discord::DiscordWorld;
use super::slack::SlackWorld;
use axum::extract::{Path, Query, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use futures_util::Stream;
use serde::Deserialize;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// What the browser may load for the page.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/// Changes within this time arrive as one.
const TOGETHER: Duration = Duration::from_millis(60);

const JS: &str = "text/javascript; charset=utf-8";
const FILES: [(&str, &str, &str); 7] = [
    ("page.css", "text/css; charset=utf-8", include_str!("page/page.css")),
    ("page.js", JS, include_str!("page/page.js")),
    ("blocks.js", JS, include_str!("page/blocks.js")),
    ("text.js", JS, include_str!("page/text.js")),
    ("discord.js", JS, include_str!("page/discord.js")),
    ("discord.css", "text/css; charset=utf-8", include_str!("page/discord.css")),
    ("icon.svg", "image/svg+xml", include_str!("page/icon.svg")),
];

/// What the page shows and acts on.
pub struct Page {
    pub(super) slack: Arc<SlackWorld>,
    /// A second pane of the page, where there is a Discord.
    pub(super) discord: Option<Arc<DiscordWorld>>,
    pub(super) a2a: Arc<A2aWorld>,
    pub(super) agent: Arc<Agent>,
    /// Ends the open event streams.
    pub(super) stop: CancellationToken,
    /// How often a request was changed; each change says something new.
    pub(super) changes: AtomicU32,
}

impl Page {
    /// A page over two worlds that somebody else runs.
    #[must_use]
    pub fn over(slack: Arc<SlackWorld>, a2a: Arc<A2aWorld>, stop: CancellationToken) -> Self {
        let agent = Arc::new(Agent::new(Arc::clone(&a2a)));
        Self { slack, discord: None, a2a, agent, stop, changes: AtomicU32::new(0) }
    }

    /// The same with a Discord in a second pane.
    #[must_use]
    pub fn with_discord(mut self, discord: Arc<DiscordWorld>) -> Self {
        self.discord = Some(discord);
        self
    }
}

/// Serves `/`, the files under `/page/`, the state, its changes, and what the viewer does.
pub fn router(page: Arc<Page>) -> Router {
    Router::new()
        .route(
            "/",
            get(async || {
                ([(header::CONTENT_TYPE, "text/html; charset=utf-8")], include_str!("page/index.html"))
            }),
        )
        .route("/page/files/{name}", get(file))
        .route("/page/state", get(now))
        .route("/page/events", get(events))
        .route("/page/do", post(act::act))
        .layer(middleware::from_fn(guarded))
        .with_state(page)
}

async fn file(Path(name): Path<String>) -> Response {
    match FILES.iter().find(|(known, ..)| *known == name) {
        Some((_, kind, content)) => ([(header::CONTENT_TYPE, *kind)], *content).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

async fn guarded(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Refuses what another site's page sends to this server (its `Origin` is another), and names that
/// were pointed at loopback from outside. Programs on this machine send no `Origin`.
pub(super) async fn own_page_only(request: Request, next: Next) -> Response {
    if is_own(request.headers(), request.uri().authority().map(axum::http::uri::Authority::as_str)) {
        return next.run(request).await;
    }
    (StatusCode::FORBIDDEN, "this demo is for its own page, on this machine\n").into_response()
}

fn is_own(headers: &HeaderMap, authority: Option<&str>) -> bool {
    let text = |name: HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or("\0"));
    let Some(host) = text(header::HOST).or(authority) else { return false };
    let Ok(root) = url::Url::parse(&format!("http://{host}/")) else { return false };
    if !crate::net::is_loopback(&root) {
        return false;
    }
    text(header::ORIGIN).is_none_or(|origin| origin == format!("http://{host}"))
}

/// Whose eyes the page looks with.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Viewer {
    #[serde(rename = "as")]
    user: String,
}

async fn now(State(page): State<Arc<Page>>, Query(viewer): Query<Viewer>) -> Response {
    match state::seen_by(&page, &viewer.user) {
        Some(state) => Json(state).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

/// The state now, and again whenever it has changed, as server-sent events.
async fn events(State(page): State<Arc<Page>>, Query(viewer): Query<Viewer>) -> Response {
    if state::seen_by(&page, &viewer.user).is_none() {
        return StatusCode::NOT_FOUND.into_response();
    }
    Sse::new(changes(page, viewer.user))
        .keep_alive(KeepAlive::new().interval(Duration::from_secs(15)))
        .into_response()
}

fn changes(page: Arc<Page>, user: String) -> impl Stream<Item = Result<Event, Infallible>> {
    // Without a Discord nothing is heard of one: its sender is kept so that it does not end.
    let (still, never) = tokio::sync::watch::channel(0);
    let discord = page.discord.as_ref().map_or(never, |discord| discord.changed());
    let seen = (page.slack.changed(), page.a2a.changed(), discord, still, String::new());
    futures_util::stream::unfold(seen, move |(mut slack, mut a2a, mut discord, still, last)| {
        let (page, user) = (Arc::clone(&page), user.clone());
        async move {
            loop {
                slack.mark_unchanged();
                a2a.mark_unchanged();
                discord.mark_unchanged();
                let state = state::seen_by(&page, &user)?.to_string();
                if state != last {
                    return Some((Ok(Event::default().data(&state)), (slack, a2a, discord, still, state)));
                }
                tokio::select! {
                    () = page.stop.cancelled() => return None,
                    changed = slack.changed() => changed.ok()?,
                    changed = a2a.changed() => changed.ok()?,
                    changed = discord.changed() => changed.ok()?,
                }
                tokio::time::sleep(TOGETHER).await;
            }
        }
    })
}

#[cfg(test)]
mod tests;

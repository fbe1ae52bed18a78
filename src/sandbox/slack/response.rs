//! `response_url`: five uses within thirty minutes of the press.
//!
//! Invariant: default is a private message to the person who pressed; a private message never
//! becomes public. Success is the status; the bodies of failures are undocumented.

use super::api::args::Args;
use super::api::{self, Refusal, Reply};
use super::text;
use super::types::{Edited, Via};
use super::validate::{self, Rules};
use super::world::{SlackWorld, State as World, ts};
use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use serde_json::{Value, json};
use std::sync::Arc;

const USES: u32 = 5;
const LIFE_MS: i64 = 30 * 60 * 1_000;

pub(super) fn routes() -> Router<Arc<SlackWorld>> {
    Router::new().route("/slack/response/{id}", post(respond))
}

async fn respond(
    State(world): State<Arc<SlackWorld>>,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let fault = world.faults().take("response_url");
    let read = Args::read(&Method::POST, &headers, "", &body, false);
    let args = read.unwrap_or_else(|_| Args::unreadable());
    let seq = world.arrived("response_url", "POST", &args, fault.as_ref());
    let act = || {
        let now_ms = world.time().now_ms();
        let reply = world.change(|state| carry_out(state, &id, &args, now_ms));
        world.answered(seq, reply.status, Some(&reply.body));
        reply
    };
    if let Some(fault) = fault {
        return api::struck(&world, fault, seq, "response_url", act).await;
    }
    let reply = act();
    let status = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::OK);
    if reply.status == 200 {
        (status, "ok").into_response()
    } else {
        (status, reply.body.to_string()).into_response()
    }
}

fn refused(status: u16, error: &str) -> Reply {
    Reply { status, ..Reply::refused(Refusal::new(error)) }
}

fn carry_out(state: &mut World, id: &str, args: &Args, now_ms: i64) -> Reply {
    let Some(respond) = state.responds.get_mut(id) else { return refused(404, "no_such_url") };
    if now_ms - respond.made_ms > LIFE_MS {
        return refused(404, "expired_url");
    }
    if respond.used >= USES {
        return refused(404, "used_url");
    }
    respond.used += 1;
    let respond = respond.clone();
    if args.encoding != "json" {
        return refused(400, "invalid_payload");
    }
    let done = Reply { status: 200, retry_after: None, scopes: None, body: json!({"ok": true}) };
    let original = respond.message_ts.as_deref().unwrap_or_default();
    if args.flag("delete_original") {
        original_of(state, &respond.channel, original, respond.ephemeral, None, now_ms);
        return done;
    }
    let payload = json!({"text": args.value("text"), "blocks": args.value("blocks").unwrap_or(&json!([]))});
    let problems = validate::message(&payload, Rules::from(&state.switches));
    if let Some(refusal) = Refusal::problems(&problems) {
        return Reply { status: 400, ..Reply::refused(refusal) };
    }
    let mut blocks = payload["blocks"].clone();
    text::store_blocks(&mut blocks);
    api::filled_in(state, &mut blocks);
    let blocks = blocks.as_array().cloned().unwrap_or_default();
    let said = text::store_mrkdwn(args.text("text").unwrap_or_default());
    if args.flag("replace_original") && respond.message_ts.is_some() {
        original_of(state, &respond.channel, original, respond.ephemeral, Some((said, blocks)), now_ms);
        return done;
    }
    let kind = args.values.get("response_type").cloned().unwrap_or(Value::Null);
    let thread_ts = args.text("thread_ts").map(Into::into);
    let (user, channel) = (&respond.user, &respond.channel);
    state.show(
        user,
        channel,
        thread_ts,
        said,
        blocks,
        &kind,
        Via::ResponseUrl,
        Some(respond.install.clone()),
        now_ms,
    );
    done
}

/// Replaces (or, with `None`, deletes) the message the press was on.
fn original_of(
    state: &mut World,
    channel: &str,
    original: &str,
    ephemeral: bool,
    new: Option<(String, Vec<Value>)>,
    now_ms: i64,
) {
    if ephemeral {
        let found = state.ephemerals.iter_mut().find(|one| one.channel == channel && one.ts == original);
        match (found, new) {
            (Some(found), Some((text, blocks))) => (found.text, found.blocks) = (text, blocks),
            (Some(found), None) => found.gone = true,
            (None, _) => {}
        }
        return;
    }
    let Some(found) = state.messages.get_mut(channel).and_then(|all| all.get_mut(original)) else { return };
    match new {
        Some((text, blocks)) => {
            found.before.push((found.text.clone(), found.blocks.clone()));
            (found.text, found.blocks) = (text, blocks);
            found.edited = Some(Edited { user: found.user.clone(), ts: ts(now_ms.saturating_mul(1_000)) });
            found.edits += 1;
        }
        None => found.deleted = true,
    }
}

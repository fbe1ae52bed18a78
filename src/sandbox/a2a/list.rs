//! `ListTasks` (A2A 1.0 §3.1.4): filters, newest status first, pages.
//!
//! Known race: pages shift while statuses change. A page token names the last task shown by status
//! time and id, so a task that moves to the front meanwhile may be missed by that walk, as on a
//! real server.

use super::error::A2aError;
use super::model::{State, TaskView};
use super::ops::Call;
use super::params::Fields;
use super::render::{self, Show};
use super::switches::UnknownFilter;
use data_encoding::BASE64URL_NOPAD;
use jiff::Timestamp;
use serde_json::{Value, json};

const KNOWN: [&str; 8] = [
    "tenant",
    "contextId",
    "status",
    "pageSize",
    "pageToken",
    "historyLength",
    "statusTimestampAfter",
    "includeArtifacts",
];

/// Where a page begins: behind this status time and id.
type Cursor = (i64, String);

pub(super) fn list(call: &Call<'_>, fields: &Fields<'_>) -> Result<Value, A2aError> {
    let switches = call.world.switches();
    if !switches.list_tasks {
        return Err(A2aError::unsupported("Listing tasks is not supported"));
    }
    let lenient = switches.unknown_filter == UnknownFilter::Ignored;
    if !lenient {
        fields.only(&KNOWN)?;
    }
    let context = fields.text("contextId")?;
    let status = match fields.text("status")? {
        None => None,
        Some(name) => match State::parse(name) {
            None if !lenient => return Err(fields.error("status", "is not a task state")),
            state => state,
        },
    };
    let page_size = fields.whole("pageSize")?.unwrap_or(50);
    let size = usize::try_from(page_size)
        .ok()
        .filter(|size| (1..=100).contains(size))
        .ok_or_else(|| fields.error("pageSize", "must be between 1 and 100"))?;
    let after_ms = fields
        .text("statusTimestampAfter")?
        .map(str::parse::<Timestamp>)
        .transpose()
        .map_err(|_| fields.error("statusTimestampAfter", "must be an ISO 8601 time"))?
        .map(Timestamp::as_millisecond);
    let filters = format!("{context:?} {status:?} {after_ms:?}");
    let cursor = fields
        .text("pageToken")?
        .map(|token| {
            read_token(token, &filters)
                .ok_or_else(|| fields.error("pageToken", "is not a token of this list"))
        })
        .transpose()?;
    let history = fields.history_length()?;
    let artifacts = fields.flag("includeArtifacts")?.unwrap_or(false);
    let now = call.world.now_ms();

    call.world.with(|inner| {
        let mut found: Vec<(&TaskView, i64)> = inner
            .tasks
            .values()
            .filter(|task| call.sees(inner, task) && !task.unlisted)
            .filter(|task| context.is_none_or(|context| task.context == context))
            .map(|task| (task, task.read_status(now)))
            .filter(|(_, read)| status.is_none_or(|status| read.state == status))
            .filter(|(_, read)| after_ms.is_none_or(|after| read.at_ms >= after))
            .map(|(task, read)| (task, read.at_ms))
            .collect();
        found.sort_by(|(a, a_ms), (b, b_ms)| b_ms.cmp(a_ms).then_with(|| a.id.cmp(&b.id)));
        let total = found.len();
        let behind = |(task, at_ms): &(&TaskView, i64)| {
            cursor.as_ref().is_none_or(|(ms, id)| at_ms < ms || (at_ms == ms && task.id > *id))
        };
        let rest: Vec<_> = found.into_iter().filter(behind).collect();
        let show = Show { history, artifacts, read_at_ms: Some(now), ..call.show(inner) };
        let page = rest.get(..size.min(rest.len())).unwrap_or_default();
        let next = match page.last() {
            Some((task, at_ms)) if rest.len() > page.len() => {
                write_token(&(*at_ms, task.id.clone()), &filters)
            }
            _ => String::new(),
        };
        let next = match fields.text("pageToken")? {
            Some(token) if switches.endless_pages => token.to_owned(),
            _ => next,
        };
        let tasks: Vec<Value> = page.iter().map(|(task, _)| render::task(task, &show)).collect();
        Ok(json!({"tasks": tasks, "nextPageToken": next, "pageSize": size, "totalSize": total}))
    })
}

fn write_token((ms, id): &Cursor, filters: &str) -> String {
    BASE64URL_NOPAD.encode(json!([ms, id, filters]).to_string().as_bytes())
}

/// A token is bound to its filters.
fn read_token(token: &str, filters: &str) -> Option<Cursor> {
    let bytes = BASE64URL_NOPAD.decode(token.as_bytes()).ok()?;
    let (ms, id, bound): (i64, String, String) = serde_json::from_slice(&bytes).ok()?;
    (bound == filters).then_some((ms, id))
}

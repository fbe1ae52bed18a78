//! Reads one JSON object a line, `{"surface": "message" | "response" | "modal" | "home", "payload": {…}}`, and prints
//! for each one line: a JSON array of what the slackblocks crate finds wrong with the payload, empty when nothing.
//!
//! It stops with an error at a line that is not such an object: a judge that skips a payload proves nothing.
//! What it does not see (measured): empty `actions`, duplicate ids, a newline in an option, an `initial_option` that
//! is no option, typed input or multi-selects in `actions`, unknown keys. It counts code points.

use serde_json::Value;
use slackblocks::{HomeTabView, MessagePayload, MessageResponse, ModalView};
use std::io::{BufRead, Error, Write};

fn main() -> Result<(), Error> {
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let problems = judge(&line?)?;
        writeln!(out, "{}", Value::from(problems))?;
    }
    out.flush()
}

fn judge(line: &str) -> Result<Vec<String>, Error> {
    let mut request: Value = serde_json::from_str(line)?;
    let payload = request["payload"].take();
    let judged = match request["surface"].as_str() {
        Some("message") => MessagePayload::try_from(payload).err(),
        Some("response") => MessageResponse::try_from(payload).err(),
        Some("modal") => ModalView::try_from(payload).err(),
        Some("home") => HomeTabView::try_from(payload).err(),
        other => return Err(Error::other(format!("unknown surface {other:?}"))),
    };
    Ok(judged.map(|problem| problem.to_string()).into_iter().collect())
}

//! Modals as the client handles them: what may be submitted, and what the app's answer does.
//!
//! Invariant: an answer that Slack could do nothing with changes nothing: the person sees a warning
//! in the modal, and the world has a complaint.

use super::api;
use super::controls;
use super::deliver::{Delivery, Door, Warning};
use super::types::View;
use super::validate::{self, Rules};
use super::world::State;
use serde_json::{Value, json};

/// What the client says to a value that does not fit its field; `None` when it fits.
pub(super) fn unfit(element: &Value, value: &Value) -> Option<String> {
    let typed = value["value"].as_str().filter(|typed| !typed.is_empty())?;
    let number = |key: &str| element[key].as_str().and_then(|text| text.parse::<f64>().ok());
    match element["type"].as_str().unwrap_or_default() {
        "plain_text_input" => {
            let least = element["min_length"].as_u64().unwrap_or(0);
            ((typed.chars().count() as u64) < least).then(|| format!("at least {least} characters"))
        }
        "number_input" => {
            let decimal = element["is_decimal_allowed"] == true;
            let Ok(given) = typed.parse::<f64>() else { return Some("not a number".into()) };
            if !decimal && typed.contains('.') {
                return Some("not a whole number".into());
            }
            let low = number("min_value").filter(|low| given < *low).map(|low| format!("at least {low}"));
            low.or_else(|| {
                number("max_value").filter(|high| given > *high).map(|high| format!("at most {high}"))
            })
        }
        "email_text_input" => {
            let (name, host) = typed.split_once('@').unwrap_or_default();
            (name.is_empty() || !host.contains('.') || typed.contains(' '))
                .then(|| "not an email address".into())
        }
        "url_text_input" => {
            let good = url::Url::parse(typed).is_ok_and(|url| url.has_host());
            (!good).then(|| "not a web address".into())
        }
        _ => None,
    }
}

/// What the answer to a submission does to the view.
pub(super) fn answered(state: &mut State, id: &str, delivery: &Delivery, now_ms: i64) {
    let answer = delivery.json();
    if let Err(why) = carry_out(state, id, &answer, now_ms) {
        state.breaches.push(format!("the answer to the submission of {id}: {why}"));
        let user = state.views.get(id).map(|view| view.user.clone()).unwrap_or_default();
        let door = Door::Interactivity;
        state.warnings.push(Warning { user, at_ms: now_ms, door, at: id.into(), why });
    }
}

fn carry_out(state: &mut State, id: &str, answer: &Value, now_ms: i64) -> Result<(), String> {
    let Some(view) = state.views.get(id).cloned() else { return Ok(()) };
    match answer["response_action"].as_str() {
        Some("errors") => {
            let blocks = view.view["blocks"].as_array().cloned().unwrap_or_default();
            let inputs: Vec<String> = controls::all(&blocks)
                .into_iter()
                .filter(|control| control.input)
                .map(|control| control.block_id)
                .collect();
            let errors = answer["errors"].as_object().filter(|errors| !errors.is_empty());
            let Some(errors) = errors else { return Err("errors names no block".into()) };
            if let Some(other) = errors.keys().find(|key| !inputs.contains(key)) {
                return Err(format!("errors names {other:?}, which is no input"));
            }
            change(state, id, |view| view.errors = answer["errors"].clone());
        }
        Some("update") => {
            let stored = given(state, answer)?;
            let hash = state.next_hash(now_ms);
            change(state, id, |view| (view.view, view.hash, view.errors) = (stored, hash, json!({})));
        }
        Some("push") => {
            let stacked = state.views.values().filter(|one| one.open && one.root == view.root).count();
            if stacked >= api::MOST_STACKED {
                return Err("too many views on each other".into());
            }
            let stored = given(state, answer)?;
            let hash = state.next_hash(now_ms);
            let pushed = View {
                id: format!("V{:06}", state.serial()),
                previous: Some(view.id.clone()),
                view: stored,
                hash,
                errors: json!({}),
                ..view
            };
            state.views.insert(pushed.id.clone(), pushed);
        }
        Some("clear") => {
            state.views.values_mut().filter(|one| one.root == view.root).for_each(|one| one.open = false);
        }
        Some(other) => return Err(format!("unknown response_action {other:?}")),
        None => change(state, id, |view| view.open = false),
    }
    Ok(())
}

fn change(state: &mut State, id: &str, change: impl FnOnce(&mut View)) {
    state.views.get_mut(id).map(change);
}

/// The `view` of an answer in the stored form, refused as `views.*` would refuse it.
fn given(state: &mut State, answer: &Value) -> Result<Value, String> {
    let view = &answer["view"];
    if view["type"] != "modal" {
        return Err("it has no modal".into());
    }
    if let Some(problem) = validate::view(view, Rules::from(&state.switches)).first() {
        return Err(problem.line());
    }
    Ok(api::store_view(state, view.clone()))
}

impl State {
    /// The modal that a person has in front of them.
    pub(super) fn top_modal(&self, user: &str, install: &str) -> Option<&View> {
        let open: Vec<&View> = self
            .views
            .values()
            .filter(|view| {
                view.open && view.surface == "modal" && view.user == user && view.install == install
            })
            .collect();
        let covered = |view: &View| open.iter().any(|other| other.previous.as_deref() == Some(&view.id));
        open.iter().rev().find(|view| !covered(view)).copied()
    }
}

//! `views.*`: modals opened by a trigger and pushed onto each other, updated under their hash, and
//! App Homes.

use super::{Answer, Call, Refusal};
use crate::sandbox::slack::text;
use crate::sandbox::slack::types::View;
use crate::sandbox::slack::validate::{self, Rules};
use crate::sandbox::slack::world::State;
use serde_json::{Value, json};

/// A trigger lives this long by Slack's clock.
const TRIGGER_MS: i64 = 3_000;
/// So many modals may stand on each other.
pub(crate) const MOST_STACKED: usize = 3;

/// The `view` argument, checked; `kind` is `modal` or `home`.
fn given(state: &State, call: &Call<'_>, kind: &str) -> Result<Value, Refusal> {
    let view = call.args.value("view").ok_or_else(|| Refusal::missing("view"))?;
    if !view.is_object() {
        return Err(Refusal::new("invalid_arguments"));
    }
    if view["type"] != kind {
        return Err(Refusal::lines(
            "invalid_arguments",
            &[format!("must be {kind} [json-pointer:/view/type]")],
        ));
    }
    match Refusal::problems(&validate::view(view, Rules::from(&state.switches))) {
        Some(refusal) => Err(refusal),
        None => Ok(view.clone()),
    }
}

/// Brings a view into the stored form.
pub(crate) fn store(state: &mut State, mut view: Value) -> Value {
    text::each_text(&mut view, &mut |kind, text| {
        *text = if kind == "mrkdwn" { text::store_mrkdwn(text) } else { text::store_plain(text) };
    });
    if let Some(blocks) = view.get_mut("blocks") {
        super::filled_in(state, blocks);
    }
    view
}

/// A view as answers and payloads show it.
pub(crate) fn shown(state: &State, view: &View) -> Value {
    let mut body = text::echo_blocks(&view.view);
    body["id"] = view.id.clone().into();
    body["team_id"] = view.team.clone().into();
    body["hash"] = view.hash.clone().into();
    body["root_view_id"] = view.root.clone().into();
    body["previous_view_id"] = view.previous.clone().into();
    let install = state.install_by_key(&view.install);
    body["app_id"] = state.app_id.clone().into();
    body["bot_id"] = install.map(|install| install.bot_id.clone()).into();
    for key in ["private_metadata", "callback_id", "external_id"] {
        if body.get(key).is_none() {
            body[key] = "".into();
        }
    }
    body["state"] = json!({"values": {}});
    body
}

fn check_external_id(state: &State, view: &Value, but: &str) -> Result<(), Refusal> {
    let Some(id) = view["external_id"].as_str().filter(|id| !id.is_empty()) else { return Ok(()) };
    let taken =
        state.views.values().any(|other| other.open && other.id != but && other.view["external_id"] == id);
    if taken { Err(Refusal::new("duplicate_external_id")) } else { Ok(()) }
}

/// Uses up the trigger of a call; its user and workspace.
fn triggered(state: &mut State, call: &Call<'_>) -> Result<(String, String), Refusal> {
    let id = call.need("trigger_id")?.to_owned();
    let Some(trigger) = state.triggers.get_mut(&id).filter(|trigger| trigger.install == call.install.key())
    else {
        return Err(Refusal::new("invalid_trigger_id"));
    };
    if trigger.used {
        return Err(Refusal::new("exchanged_trigger_id"));
    }
    if call.now_ms - trigger.made_ms > TRIGGER_MS {
        return Err(Refusal::new("expired_trigger_id"));
    }
    trigger.used = true;
    Ok((trigger.user.clone(), trigger.team.clone()))
}

pub(super) fn open(state: &mut State, call: &Call<'_>) -> Answer {
    call.need("trigger_id")?;
    let view = given(state, call, "modal")?;
    let (user, team) = triggered(state, call)?;
    check_external_id(state, &view, "")?;
    let opened = make(state, call, user, team, "modal", view);
    let body = json!({"view": shown(state, &opened)});
    state.views.insert(opened.id.clone(), opened);
    Ok(body)
}

/// Onto the modal that the person of the trigger has in front of them.
pub(super) fn push(state: &mut State, call: &Call<'_>) -> Answer {
    call.need("trigger_id")?;
    let view = given(state, call, "modal")?;
    let (user, team) = triggered(state, call)?;
    check_external_id(state, &view, "")?;
    let Some(top) = state.top_modal(&user, call.install.key()).cloned() else {
        return Err(Refusal::new("not_found"));
    };
    let stacked = state.views.values().filter(|view| view.open && view.root == top.root).count();
    if stacked >= MOST_STACKED {
        return Err(Refusal::new("push_limit_reached"));
    }
    let mut pushed = make(state, call, user, team, "modal", view);
    (pushed.root, pushed.previous) = (top.root, Some(top.id));
    let body = json!({"view": shown(state, &pushed)});
    state.views.insert(pushed.id.clone(), pushed);
    Ok(body)
}

fn make(state: &mut State, call: &Call<'_>, user: String, team: String, surface: &str, view: Value) -> View {
    let id = format!("V{:06}", state.serial());
    let view = store(state, view);
    View {
        hash: state.next_hash(call.now_ms),
        root: id.clone(),
        previous: None,
        id,
        user,
        team,
        surface: surface.into(),
        view,
        open: true,
        errors: json!({}),
        install: call.install.key().into(),
    }
}

pub(super) fn update(state: &mut State, call: &Call<'_>) -> Answer {
    let found = match (call.args.text("view_id"), call.args.text("external_id")) {
        (Some(id), _) => state.views.get(id),
        (None, Some(id)) => state.views.values().find(|view| view.open && view.view["external_id"] == id),
        (None, None) => return Err(Refusal::missing("view_id")),
    };
    let found = found.filter(|view| view.open && view.install == call.install.key()).cloned();
    let Some(mut found) = found else { return Err(Refusal::new("not_found")) };
    if call.args.text("hash").is_some_and(|hash| hash != found.hash) {
        return Err(Refusal::new("hash_conflict"));
    }
    let view = given(state, call, &found.surface)?;
    check_external_id(state, &view, &found.id)?;
    found.view = store(state, view);
    found.hash = state.next_hash(call.now_ms);
    found.errors = json!({});
    let body = json!({"view": shown(state, &found)});
    state.views.insert(found.id.clone(), found);
    Ok(body)
}

pub(super) fn publish(state: &mut State, call: &Call<'_>) -> Answer {
    let user = call.need("user_id")?.to_owned();
    if !state.switches.home_tab {
        return Err(Refusal::new("not_enabled"));
    }
    let view = given(state, call, "home")?;
    let Some(team) = state.user(&user, &call.install.team).map(|user| user.team.clone()) else {
        return Err(Refusal::new("user_not_found"));
    };
    let key = call.install.key().to_owned();
    let before =
        state.views.values().find(|view| view.surface == "home" && view.user == user && view.install == key);
    let before = before.map(|view| (view.id.clone(), view.hash.clone()));
    if let (Some(hash), Some((_, current))) = (call.args.text("hash"), &before)
        && hash != current
    {
        return Err(Refusal::new("hash_conflict"));
    }
    let mut home = make(state, call, user, team, "home", view);
    if let Some((id, _)) = before {
        home.root.clone_from(&id);
        home.id = id;
    }
    let body = json!({"view": shown(state, &home)});
    state.views.insert(home.id.clone(), home);
    Ok(body)
}

//! The Web API, one pure function over the world per method.
//!
//! Invariant: checks come in one order: scripted trouble, rate, token, scope, arguments, channel,
//! membership or archive, ownership, payload. A refusal changes nothing.

pub(super) mod args;
mod chat;
mod conversations;
mod directory;
mod serve;
#[cfg(test)]
mod tests;
mod views;

pub(super) use chat::{filled_in, shown};
pub(super) use serve::{routes, struck};
pub(super) use views::{MOST_STACKED, shown as shown_view, store as store_view};

use super::limits::{self, Method, Scope, TooMany};
use super::types::{Channel, ChannelKind, Install, TokenState};
use super::validate::Problem;
use super::world::State;
use args::Args;
use serde_json::{Map, Value, json};

/// A refusal: `ok:false` with a code and perhaps more fields.
#[derive(Debug, Clone)]
pub(super) struct Refusal {
    error: String,
    more: Map<String, Value>,
}

impl Refusal {
    pub(super) fn new(error: &str) -> Self {
        Self { error: error.into(), more: Map::new() }
    }

    fn scope(needed: &str, install: &Install) -> Self {
        let provided = install.scopes.iter().cloned().collect::<Vec<_>>().join(",");
        let mut refusal = Self::new("missing_scope");
        refusal.more.insert("needed".into(), needed.into());
        refusal.more.insert("provided".into(), provided.into());
        refusal
    }

    fn lines(error: &str, lines: &[String]) -> Self {
        let mut refusal = Self::new(error);
        let messages: Vec<String> = lines.iter().map(|line| format!("[ERROR] {line}")).collect();
        refusal.more.insert("errors".into(), json!(lines));
        refusal.more.insert("response_metadata".into(), json!({"messages": messages}));
        refusal
    }

    /// What the validator found; the first problem gives the code.
    pub(super) fn problems(problems: &[Problem]) -> Option<Self> {
        let first = problems.first()?;
        Some(Self::lines(first.error, &problems.iter().map(Problem::line).collect::<Vec<_>>()))
    }

    fn missing(argument: &str) -> Self {
        Self::lines("invalid_arguments", &[format!("missing required field: {argument}")])
    }

    pub(super) fn body(self) -> Value {
        let mut body = self.more;
        body.insert("ok".into(), false.into());
        body.insert("error".into(), self.error.into());
        Value::Object(body)
    }
}

pub(super) type Answer = Result<Value, Refusal>;

/// One call with its caller known.
struct Call<'a> {
    method: &'static Method,
    args: &'a Args,
    install: Install,
    now_ms: i64,
}

impl Call<'_> {
    /// A required text argument.
    fn need(&self, key: &str) -> Result<&str, Refusal> {
        self.args.text(key).ok_or_else(|| Refusal::missing(key))
    }
}

/// An HTTP answer of the Web API, before scripted trouble.
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) retry_after: Option<u64>,
    pub(super) scopes: Option<String>,
    pub(super) body: Value,
}

impl Reply {
    pub(super) fn refused(refusal: Refusal) -> Self {
        Self { status: 200, retry_after: None, scopes: None, body: refusal.body() }
    }
}

/// Answers one call.
pub(super) fn answer(state: &mut State, now_ms: i64, name: &str, args: &Args) -> Reply {
    let Some(method) = limits::find(name) else { return Reply::refused(Refusal::new("unknown_method")) };
    if name == "apps.connections.open" {
        return super::socket::connections_open(state, now_ms, method, args);
    }
    let known = args.token().and_then(|token| state.installs.get(token)).cloned();
    let key = known.as_ref().map_or("?", Install::key);
    let scarce = state.switches.scarce_history;
    if let Err(TooMany { retry_after }) = state.rates.take(now_ms, method, key, args.text("channel"), scarce)
    {
        let body = Refusal::new("ratelimited").body();
        return Reply { status: 429, retry_after: Some(retry_after), scopes: None, body };
    }
    let Some(mut install) = known else {
        let error = match args.token() {
            None => "not_authed",
            Some(token) if state.app_tokens.contains_key(token) => "not_allowed_token_type",
            Some(_) => "invalid_auth",
        };
        return Reply::refused(Refusal::new(error));
    };
    if !state.switches.history_scopes {
        install.scopes.retain(|scope| !scope.ends_with(":history"));
    }
    let scopes = Some(install.scopes.iter().cloned().collect::<Vec<_>>().join(","));
    let answered = match install.state {
        TokenState::Live => carry_out(state, &Call { method, args, install, now_ms }),
        TokenState::Revoked => Err(Refusal::new("token_revoked")),
        TokenState::Expired => Err(Refusal::new("token_expired")),
        TokenState::Inactive => Err(Refusal::new("account_inactive")),
    };
    let body = match answered {
        Ok(mut body) => {
            body["ok"] = true.into();
            body
        }
        Err(refusal) => refusal.body(),
    };
    Reply { status: 200, retry_after: None, scopes, body }
}

fn carry_out(state: &mut State, call: &Call<'_>) -> Answer {
    let has = |scope: &str| call.install.scopes.contains(scope);
    match call.method.scope {
        Scope::One(scope) if !has(scope) => return Err(Refusal::scope(scope, &call.install)),
        Scope::Channel(public, private, direct)
            if ![public, private, direct].iter().any(|scope| has(scope)) =>
        {
            return Err(Refusal::scope(public, &call.install));
        }
        _ => {}
    }
    match call.method.name {
        "auth.test" => Ok(directory::auth_test(state, call)),
        "bots.info" => directory::bots_info(state, call),
        "users.info" => directory::users_info(state, call),
        "usergroups.users.list" => directory::group_users(state, call),
        "chat.postMessage" => chat::post(state, call),
        "chat.update" => chat::update(state, call),
        "chat.postEphemeral" => chat::post_ephemeral(state, call),
        "chat.delete" => chat::delete(state, call),
        "chat.getPermalink" => chat::permalink(state, call),
        "conversations.open" => conversations::open(state, call),
        "conversations.info" => conversations::info(state, call),
        "conversations.list" => conversations::list(state, call),
        "conversations.history" => conversations::history(state, call),
        "conversations.replies" => conversations::replies(state, call),
        "views.open" => views::open(state, call),
        "views.push" => views::push(state, call),
        "views.update" => views::update(state, call),
        "views.publish" => views::publish(state, call),
        _ => Err(Refusal::new("unknown_method")),
    }
}

/// Whether an install sees a channel at all.
fn sees(state: &State, install: &Install, channel: &Channel) -> bool {
    let enterprise = state.teams.get(&channel.team).and_then(|team| team.enterprise.as_deref());
    let here = channel.team == install.team
        || channel.shared_with.contains(&install.team)
        || (install.org && enterprise.is_some() && enterprise == install.enterprise.as_deref());
    here && (channel.kind == ChannelKind::Public || channel.members.contains(&install.bot_user))
}

/// The channel with this id, as the caller sees it.
fn channel<'s>(state: &'s State, call: &Call<'_>, id: &str) -> Result<&'s Channel, Refusal> {
    state
        .channels
        .get(id)
        .filter(|channel| sees(state, &call.install, channel))
        .ok_or_else(|| Refusal::new("channel_not_found"))
}

/// Checks the scope that this kind of channel asks for.
fn kind_scope(call: &Call<'_>, channel: &Channel) -> Result<(), Refusal> {
    let Scope::Channel(public, private, direct) = call.method.scope else { return Ok(()) };
    let needed = match channel.kind {
        ChannelKind::Public => public,
        ChannelKind::Private => private,
        ChannelKind::Dm(_) => direct,
    };
    if call.install.scopes.contains(needed) { Ok(()) } else { Err(Refusal::scope(needed, &call.install)) }
}

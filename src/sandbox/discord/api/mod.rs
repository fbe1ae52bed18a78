//! The REST interface, one pure function over the world per route.
//!
//! Invariant: checks come in one order: scripted trouble, ban, token, user agent, rate, body, then the route's own.
//! A refusal changes nothing.

mod body;
mod channels;
mod directory;
mod interactions;
pub(super) mod messages;
mod routes;
mod serve;
#[cfg(test)]
mod tests;

pub(super) use body::Body;
pub(super) use channels::channel_json;
pub(super) use directory::{guild_json, member_json};
pub(super) use interactions::respond;
pub(super) use messages::shown;
pub(super) use serve::routes;

use super::error::Refusal;
use super::world::State;
use serde_json::Value;

/// One call with its caller known.
pub(super) struct Call<'a> {
    /// What stood for the words in braces.
    pub(super) ids: &'a [&'a str],
    pub(super) query: &'a [(String, String)],
    pub(super) body: &'a Body,
    /// The application, and its bot's account; of a token path too.
    pub(super) app: String,
    pub(super) bot: String,
    pub(super) now_ms: i64,
}

impl Call<'_> {
    fn query(&self, key: &str) -> Option<&str> {
        self.query.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
    }
}

/// What a route answers: a status, and a body or none.
type Answer = Result<(u16, Option<Value>), Refusal>;

fn carry_out(state: &mut State, call: &Call<'_>, route: &str) -> Answer {
    let ok = |body: Value| (200, Some(body));
    let made = |body: Value| (201, Some(body));
    let done = |()| (204, None);
    match route {
        routes::POST => messages::post(state, call).map(ok),
        routes::EDIT => messages::edit(state, call).map(ok),
        "DELETE /channels/{channel}/messages/{message}" => messages::delete(state, call).map(done),
        "GET /channels/{channel}/messages/{message}" => messages::get(state, call).map(ok),
        "GET /channels/{channel}/messages" => messages::list(state, call).map(ok),
        routes::CALLBACK => {
            interactions::callback(state, call).map(|body| body.map_or((204, None), |body| (200, Some(body))))
        }
        routes::FOLLOW_UP => interactions::follow_up(state, call).map(ok),
        "GET /webhooks/{app}/{token}/messages/@original"
        | "GET /webhooks/{app}/{token}/messages/{message}" => interactions::get(state, call).map(ok),
        "PATCH /webhooks/{app}/{token}/messages/@original"
        | "PATCH /webhooks/{app}/{token}/messages/{message}" => interactions::edit(state, call).map(ok),
        "DELETE /webhooks/{app}/{token}/messages/@original"
        | "DELETE /webhooks/{app}/{token}/messages/{message}" => interactions::delete(state, call).map(done),
        "POST /users/@me/channels" => channels::open_dm(state, call).map(ok),
        "POST /channels/{channel}/messages/{message}/threads" => {
            channels::thread_of_message(state, call).map(made)
        }
        "POST /channels/{channel}/threads" => channels::thread(state, call).map(made),
        "GET /channels/{channel}" => channels::get(state, call).map(ok),
        "PATCH /channels/{channel}" => channels::change(state, call).map(ok),
        "PUT /channels/{channel}/thread-members/@me" => channels::join(state, call).map(done),
        "GET /guilds/{guild}/threads/active" => channels::threads(state, call, false).map(ok),
        "GET /channels/{channel}/threads/archived/public" => channels::threads(state, call, true).map(ok),
        "POST /channels/{channel}/typing" => messages::channel(state, call, call.ids[0]).map(|_| (204, None)),
        "GET /applications/{app}/commands" | "GET /applications/{app}/guilds/{guild}/commands" => {
            directory::commands(state, call).map(ok)
        }
        "PUT /applications/{app}/commands" | "PUT /applications/{app}/guilds/{guild}/commands" => {
            directory::set_commands(state, call).map(ok)
        }
        "GET /gateway/bot" => Ok(ok(directory::gateway(state, call, true))),
        "GET /gateway" => Ok(ok(directory::gateway(state, call, false))),
        "GET /applications/@me" | "GET /oauth2/applications/@me" => {
            directory::application(state, call).map(ok)
        }
        "GET /users/@me" => directory::user(state, &call.bot).map(ok),
        "GET /users/@me/guilds" => Ok(ok(directory::guilds(state, call))),
        "GET /users/{user}" => directory::user(state, call.ids[0]).map(ok),
        "GET /guilds/{guild}" => {
            directory::guild(state, call, call.ids[0]).map(|guild| ok(guild_json(guild)))
        }
        "GET /guilds/{guild}/roles" => {
            let guild = directory::guild(state, call, call.ids[0])?;
            Ok(ok(guild.roles.values().map(super::types::Role::json).collect()))
        }
        "GET /guilds/{guild}/channels" => directory::channels(state, call).map(ok),
        "GET /guilds/{guild}/members/{user}" => directory::member(state, call).map(ok),
        _ => Err(Refusal::not_found()),
    }
}

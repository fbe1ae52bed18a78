//! The routes that are served: method and template, as requests are recorded and faults are named.

/// One route of the REST interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Route {
    /// Method and template.
    pub(crate) name: &'static str,
    /// An interaction token in the path stands for the bot token.
    pub(crate) by_token: bool,
}

pub(super) const POST: &str = "POST /channels/{channel}/messages";
pub(super) const EDIT: &str = "PATCH /channels/{channel}/messages/{message}";
pub(super) const CALLBACK: &str = "POST /interactions/{interaction}/{token}/callback";
pub(super) const FOLLOW_UP: &str = "POST /webhooks/{app}/{token}";

/// Fixed words before variable ones.
const ROUTES: [&str; 37] = [
    POST,
    EDIT,
    "DELETE /channels/{channel}/messages/{message}",
    "GET /channels/{channel}/messages/{message}",
    "GET /channels/{channel}/messages",
    CALLBACK,
    "GET /webhooks/{app}/{token}/messages/@original",
    "PATCH /webhooks/{app}/{token}/messages/@original",
    "DELETE /webhooks/{app}/{token}/messages/@original",
    FOLLOW_UP,
    "GET /webhooks/{app}/{token}/messages/{message}",
    "PATCH /webhooks/{app}/{token}/messages/{message}",
    "DELETE /webhooks/{app}/{token}/messages/{message}",
    "POST /users/@me/channels",
    "POST /channels/{channel}/messages/{message}/threads",
    "POST /channels/{channel}/threads",
    "GET /channels/{channel}",
    "PATCH /channels/{channel}",
    "PUT /channels/{channel}/thread-members/@me",
    "GET /applications/{app}/commands",
    "PUT /applications/{app}/commands",
    "GET /applications/{app}/guilds/{guild}/commands",
    "PUT /applications/{app}/guilds/{guild}/commands",
    "GET /gateway/bot",
    "GET /gateway",
    "GET /applications/@me",
    "GET /oauth2/applications/@me",
    "GET /users/@me",
    "GET /users/@me/guilds",
    "GET /users/{user}",
    "GET /guilds/{guild}",
    "GET /guilds/{guild}/roles",
    "GET /guilds/{guild}/channels",
    "GET /guilds/{guild}/members/{user}",
    "GET /guilds/{guild}/threads/active",
    "GET /channels/{channel}/threads/archived/public",
    "POST /channels/{channel}/typing",
];

/// What a request leads to.
pub(super) enum Found<'p> {
    Route(Route, Vec<&'p str>),
    /// The path is known with another method.
    OtherMethod,
    Unknown,
}

/// Finds the route of a path below the version.
pub(super) fn find<'p>(method: &str, path: &'p str) -> Found<'p> {
    let mut other = false;
    for name in ROUTES {
        let Some((of, template)) = name.split_once(' ') else { continue };
        let Some(ids) = matched(template, path) else { continue };
        if of == method {
            let by_token = template.starts_with("/webhooks") || template.starts_with("/interactions");
            return Found::Route(Route { name, by_token }, ids);
        }
        other = true;
    }
    if other { Found::OtherMethod } else { Found::Unknown }
}

fn matched<'p>(template: &str, path: &'p str) -> Option<Vec<&'p str>> {
    let (mut words, mut parts) = (template.trim_matches('/').split('/'), path.trim_matches('/').split('/'));
    let mut ids = Vec::new();
    loop {
        match (words.next(), parts.next()) {
            (None, None) => return Some(ids),
            (Some(word), Some(part)) if word.starts_with('{') && !part.is_empty() => ids.push(part),
            (Some(word), Some(part)) if word == part => {}
            _ => return None,
        }
    }
}

/// The id whose calls share a bucket: a channel, a guild, a webhook with its token.
pub(super) fn major(route: &str, ids: &[&str]) -> String {
    if route.contains("/webhooks/") || route.contains("/interactions/") {
        return ids.iter().take(2).copied().collect::<Vec<_>>().join("/");
    }
    let at = usize::from(route.contains("/applications/{app}/guilds"));
    let of = route.contains("{channel}") || route.contains("{guild}");
    ids.get(at).filter(|_| of).map(|&id| id.to_owned()).unwrap_or_default()
}

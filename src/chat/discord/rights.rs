//! What we may do in a channel, computed as Discord does (Discord: Permissions, "Permission Overwrites").
//!
//! Invariant: pure; only what was read counts. It is a look for operators, nothing is decided by it: whether a
//! message is taken is said when one is sent.

use super::fields::text;
use serde_json::Value;

const ADMINISTRATOR: u64 = 1 << 3;
const VIEW: u64 = 1 << 10;
const SEND: u64 = 1 << 11;
const SEND_IN_THREADS: u64 = 1 << 38;

/// What cards need everywhere, by the names that Discord's settings show.
const NEEDED: [(u64, &str); 4] = [
    (VIEW, "View Channel"),
    (1 << 14, "Embed Links"),
    (1 << 15, "Attach Files"),
    (1 << 16, "Read Message History"),
];

/// The rights that are missing in a channel of a server, for the member that is our bot. `above`: the channel
/// above a thread, whose rules count there.
pub(super) fn missing(
    server: &str,
    roles: &Value,
    member: &Value,
    above: &Value,
    thread: bool,
) -> Vec<&'static str> {
    let bits = rights(server, roles, member, above);
    let write = if thread { (SEND_IN_THREADS, "Send Messages in Threads") } else { (SEND, "Send Messages") };
    let needed = NEEDED.into_iter().chain([write]);
    needed.filter(|(bit, _)| bits & bit == 0).map(|(_, name)| name).collect()
}

fn number(value: &Value, key: &str) -> u64 {
    text(value, &format!("/{key}")).and_then(|text| text.parse().ok()).unwrap_or_default()
}

fn list<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value.get(key).and_then(Value::as_array).into_iter().flatten()
}

fn rights(server: &str, roles: &Value, member: &Value, channel: &Value) -> u64 {
    let own: Vec<&str> = list(member, "roles").filter_map(Value::as_str).collect();
    let has = |id: &str| id == server || own.contains(&id);
    let roles = roles.as_array().into_iter().flatten();
    let base = roles
        .filter(|role| text(role, "/id").is_some_and(has))
        .fold(0, |bits, role| bits | number(role, "permissions"));
    if base & ADMINISTRATOR != 0 {
        return u64::MAX;
    }
    let me = text(member, "/user/id").unwrap_or_default();
    // First of everybody, then of the roles together, then our own.
    let steps: [&dyn Fn(&str) -> bool; 3] =
        [&|id| id == server, &|id| own.contains(&id), &|id| !me.is_empty() && id == me];
    steps.iter().fold(base, |bits, applies| {
        let mut all =
            list(channel, "permission_overwrites").filter(|one| text(one, "/id").is_some_and(applies));
        let (allow, deny) = all
            .by_ref()
            .fold((0, 0), |(allow, deny), one| (allow | number(one, "allow"), deny | number(one, "deny")));
        (bits & !deny) | allow
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn overwrites_count_in_discords_order() {
        let roles = |everyone: u64, bot: u64| {
            json!([{"id": "9", "permissions": everyone.to_string()}, {"id": "5", "permissions": bot.to_string()},
                {"id": "6", "permissions": "8"}])
        };
        let member = json!({"user": {"id": "2"}, "roles": ["5"]});
        let with = |everyone, bot, overwrites: Value, thread| {
            missing(
                "9",
                &roles(everyone, bot),
                &member,
                &json!({"permission_overwrites": overwrites}),
                thread,
            )
        };
        let all = 309_237_763_072;
        assert_eq!(with(0, all, json!([]), false), Vec::<&str>::new());
        assert_eq!(with(0, all, json!([]), true), Vec::<&str>::new());
        assert_eq!(
            with(all, 0, json!([{"id": "9", "allow": "0", "deny": "2048"}]), false),
            ["Send Messages"]
        );
        let denied_and_let = json!([{"id": "9", "deny": "1024"}, {"id": "5", "allow": "1024"}]);
        assert_eq!(with(all, 0, denied_and_let, false), Vec::<&str>::new());
        assert_eq!(with(all, 0, json!([{"id": "2", "deny": "1024"}]), false), ["View Channel"]);
        assert_eq!(
            with(all, 0, json!([{"id": "7", "deny": "1024"}]), false),
            Vec::<&str>::new(),
            "somebody else's"
        );
        assert_eq!(
            with(0, 8, json!([{"id": "9", "deny": "1024"}]), false),
            Vec::<&str>::new(),
            "administrator"
        );
        assert_eq!(with(0, 0, json!([]), true).len(), 5);
    }
}

//! What Discord says happened, on the gateway (Discord: Gateway Events).
//!
//! Invariant: events are hints: each only asks for a look at what it names. One that this version does not use
//! has no effect; one that lacks what is needed neither.

use serde_json::Value;

/// Something that has an effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Messages were deleted.
    Deleted { channel: String, messages: Vec<String> },
    /// A channel or thread was changed, archived, locked or deleted.
    Channel { channel: String },
    /// Rights or members of a server changed, or it is back: what was refused may be taken now.
    ServerChanged,
    /// The bot was removed from a server.
    ServerLeft,
    /// A server has an outage: nothing is concluded from what fails there.
    ServerAway { server: String },
}

/// The event of that name, if it has an effect here.
pub(super) fn read(name: &str, data: &Value) -> Option<Event> {
    let id = |field: &str| {
        let text = data.get(field)?.as_str()?;
        is_id(text).then(|| text.to_owned())
    };
    match name {
        "MESSAGE_DELETE" => Some(Event::Deleted { channel: id("channel_id")?, messages: vec![id("id")?] }),
        "MESSAGE_DELETE_BULK" => {
            let ids = data.get("ids")?.as_array()?.iter().filter_map(Value::as_str);
            let messages = ids.filter(|id| is_id(id)).map(str::to_owned).collect();
            Some(Event::Deleted { channel: id("channel_id")?, messages })
        }
        "CHANNEL_DELETE" | "CHANNEL_UPDATE" | "THREAD_DELETE" | "THREAD_UPDATE" => {
            Some(Event::Channel { channel: id("id")? })
        }
        "GUILD_CREATE" | "GUILD_DELETE" if away(data) => Some(Event::ServerAway { server: id("id")? }),
        "GUILD_CREATE" | "GUILD_ROLE_UPDATE" => Some(Event::ServerChanged),
        "GUILD_DELETE" => Some(Event::ServerLeft),
        _ => None,
    }
}

fn away(data: &Value) -> bool {
    data.get("unavailable") == Some(&Value::Bool(true))
}

fn is_id(text: &str) -> bool {
    (1..=20).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn events_that_have_an_effect() {
        let deleted = |messages: &[&str]| {
            let messages = messages.iter().map(|id| (*id).to_owned()).collect();
            Some(Event::Deleted { channel: "20".into(), messages })
        };
        let away = Some(Event::ServerAway { server: "10".into() });
        let channel = |id: &str| Some(Event::Channel { channel: id.into() });
        for (name, data, event) in [
            ("MESSAGE_DELETE", json!({"id": "1", "channel_id": "20", "guild_id": "10"}), deleted(&["1"])),
            (
                "MESSAGE_DELETE_BULK",
                json!({"ids": ["1", 2, "x", "3"], "channel_id": "20"}),
                deleted(&["1", "3"]),
            ),
            ("CHANNEL_DELETE", json!({"id": "20", "type": 0}), channel("20")),
            ("THREAD_UPDATE", json!({"id": "21", "thread_metadata": {"archived": true}}), channel("21")),
            ("GUILD_ROLE_UPDATE", json!({"guild_id": "10", "role": {}}), Some(Event::ServerChanged)),
            ("GUILD_CREATE", json!({"id": "10"}), Some(Event::ServerChanged)),
            ("GUILD_CREATE", json!({"id": "10", "unavailable": true}), away.clone()),
            ("GUILD_DELETE", json!({"id": "10", "unavailable": true}), away.clone()),
            ("GUILD_DELETE", json!({"id": "10"}), Some(Event::ServerLeft)),
            ("MESSAGE_DELETE", json!({"id": "1"}), None),
            ("MESSAGE_DELETE", json!({"id": 1, "channel_id": "20"}), None),
            ("CHANNEL_UPDATE", json!(null), None),
            ("MESSAGE_CREATE", json!({"id": "1", "channel_id": "20"}), None),
            ("OF_2030", json!({}), None),
        ] {
            assert_eq!(read(name, &data), event, "{name} {data}");
        }
    }
}

//! Permissions: the bits used here and how a member's add up (Discord: Permissions).
//!
//! Invariant: the guild's owner and administrators may everything; in a channel first the exceptions for
//! `@everyone` count, then those of roles together, then the member's own. A thread has its parent's.
//! Without VIEW_CHANNEL nothing is left; while timed out only looking is.

use super::types::{Channel, Guild};

pub const MANAGE_CHANNELS: u64 = 1 << 4;
pub const ADMINISTRATOR: u64 = 1 << 3;
pub const VIEW_CHANNEL: u64 = 1 << 10;
pub const SEND_MESSAGES: u64 = 1 << 11;
pub const MANAGE_MESSAGES: u64 = 1 << 13;
pub const EMBED_LINKS: u64 = 1 << 14;
pub const ATTACH_FILES: u64 = 1 << 15;
pub const READ_MESSAGE_HISTORY: u64 = 1 << 16;
pub const MENTION_EVERYONE: u64 = 1 << 17;
pub const USE_APPLICATION_COMMANDS: u64 = 1 << 31;
pub const MANAGE_THREADS: u64 = 1 << 34;
pub const CREATE_PUBLIC_THREADS: u64 = 1 << 35;
pub const CREATE_PRIVATE_THREADS: u64 = 1 << 36;
pub const SEND_MESSAGES_IN_THREADS: u64 = 1 << 38;

/// What `@everyone` has in a new guild, as far as it matters here.
pub const EVERYONE: u64 = VIEW_CHANNEL
    | SEND_MESSAGES
    | EMBED_LINKS
    | ATTACH_FILES
    | READ_MESSAGE_HISTORY
    | USE_APPLICATION_COMMANDS
    | CREATE_PUBLIC_THREADS
    | SEND_MESSAGES_IN_THREADS;

/// What a bot is invited with: 309237763072 in an install link, with the right to begin threads.
pub const BOT: u64 = VIEW_CHANNEL
    | SEND_MESSAGES
    | EMBED_LINKS
    | ATTACH_FILES
    | READ_MESSAGE_HISTORY
    | CREATE_PUBLIC_THREADS
    | SEND_MESSAGES_IN_THREADS;

const ALL: u64 = (1 << 50) - 1;

/// What a member may in the guild, before any channel.
pub(super) fn in_guild(guild: &Guild, user: &str) -> u64 {
    let Some(member) = guild.members.get(user) else { return 0 };
    if guild.owner == user {
        return ALL;
    }
    let of = |role: &str| guild.roles.get(role).map_or(0, |role| role.permissions);
    let base = member.roles.iter().fold(of(&guild.id), |all, role| all | of(role));
    if base & ADMINISTRATOR != 0 { ALL } else { base }
}

/// What a member may in a channel; for a thread, `holder` is its parent.
pub(super) fn in_channel(guild: &Guild, holder: &Channel, user: &str, now_ms: i64) -> u64 {
    let Some(member) = guild.members.get(user) else { return 0 };
    let mut may = in_guild(guild, user);
    if may == ALL {
        return ALL;
    }
    let apply = |may: u64, allow: u64, deny: u64| (may & !deny) | allow;
    let of = |id: &str, own: bool| {
        let all = holder.overwrites.iter().filter(|one| one.member == own && one.id == id);
        all.collect::<Vec<_>>()
    };
    for one in of(&guild.id, false) {
        may = apply(may, one.allow, one.deny);
    }
    let roles = member.roles.iter().flat_map(|role| of(role, false));
    let (allow, deny) = roles.fold((0, 0), |(allow, deny), one| (allow | one.allow, deny | one.deny));
    may = apply(may, allow, deny);
    for one in of(user, true) {
        may = apply(may, one.allow, one.deny);
    }
    if may & VIEW_CHANNEL == 0 {
        return 0;
    }
    if member.timed_out_until_ms.is_some_and(|until| until > now_ms) {
        may &= VIEW_CHANNEL | READ_MESSAGE_HISTORY;
    }
    may
}

//! The standard world: guild Acme with people, roles and every kind of channel, a second guild, and two
//! applications.

use super::perms;
use super::types::{Channel, ChannelKind, Guild, Role, User};
use super::world::DiscordWorld;
use crate::sandbox::time::Time;
use std::sync::Arc;

/// The application of this world, its bot's account, its bot token and the seed of its signing key.
pub const APP: &str = "1100000000000000001";
pub const BOT: &str = "1100000000000000002";
pub const TOKEN: &str = "MTEwMDAwMDAwMDAwMDAwMDAwMQ.sandbox.countersign";
pub const SEED: [u8; 32] = [7; 32];
/// Another application in the same guild.
pub const OTHER_APP: &str = "1100000000000000003";
pub const OTHER_BOT: &str = "1100000000000000004";
pub const OTHER_TOKEN: &str = "MTEwMDAwMDAwMDAwMDAwMDAwMw.sandbox.other";
pub const OTHER_SEED: [u8; 32] = [9; 32];
/// Guild Acme, and one the bot is not in.
pub const GUILD: &str = "1100000000000000009";
pub const ELSEWHERE: &str = "1100000000000000010";
/// People: Dana and Kim are release managers, Sam is on call, Noa has no role, Riley is not a member.
pub const DANA: &str = "3300000000000000001";
pub const KIM: &str = "3300000000000000002";
pub const SAM: &str = "3300000000000000003";
pub const NOA: &str = "3300000000000000004";
pub const RILEY: &str = "3300000000000000005";
/// Somebody who owns the guild and takes no direct messages.
pub const OLA: &str = "3300000000000000006";
/// Roles; `PINGED` may be mentioned by everybody.
pub const RELEASE: &str = "2200000000000000002";
pub const ONCALL: &str = "2200000000000000003";
pub const PINGED: &str = "2200000000000000004";
pub const BOT_ROLE: &str = "2200000000000000005";
/// Text channels; `LEADS` is seen by the release role and the bot only, `SECRET` not by the bot.
pub const RELEASES: &str = "4400000000000000001";
pub const OPS: &str = "4400000000000000002";
pub const LEADS: &str = "4400000000000000003";
pub const SECRET: &str = "4400000000000000004";
pub const VOICE: &str = "4400000000000000005";
pub const CATEGORY: &str = "4400000000000000006";
pub const FORUM: &str = "4400000000000000007";
pub const NEWS: &str = "4400000000000000008";
/// Threads under `OPS`: open, archived, archived and locked; a post of the forum.
pub const THREAD: &str = "4400000000000000011";
pub const ARCHIVED: &str = "4400000000000000012";
pub const LOCKED: &str = "4400000000000000013";
pub const POSTED: &str = "4400000000000000014";
/// The bot's direct messages with Dana.
pub const DM_DANA: &str = "4400000000000000021";

impl DiscordWorld {
    /// The standard world.
    #[must_use]
    pub fn acme(time: Time) -> Arc<Self> {
        let channel = |id, name| Channel::new(id, name, GUILD);
        let guild = Guild::new(GUILD, "Acme", OLA)
            .role(Role::new(RELEASE, "release"))
            .role(Role::new(ONCALL, "oncall"))
            .role(Role::new(PINGED, "pinged").mentionable())
            .role(Role::new(BOT_ROLE, "countersign").permissions(perms::BOT))
            .member(BOT, &[BOT_ROLE])
            .member(OTHER_BOT, &[BOT_ROLE])
            .member(DANA, &[RELEASE, PINGED])
            .member(KIM, &[RELEASE])
            .member(SAM, &[ONCALL])
            .member(NOA, &[]);
        Self::builder(time)
            .user(User::new(BOT, "countersign", "").bot())
            .user(User::new(OTHER_BOT, "other", "").bot())
            .user(User::new(DANA, "dana.l", "Dana Lee"))
            .user(User::new(KIM, "kim.i", "Kim Ito"))
            .user(User::new(SAM, "sam.o", "Sam Ortiz"))
            .user(User::new(NOA, "noa.b", "Noa Berg"))
            .user(User::new(RILEY, "riley.f", "Riley Fox"))
            .user(User::new(OLA, "ola.o", "Ola Owner").dms_closed())
            .app(APP, "countersign", BOT, TOKEN, SEED)
            .app(OTHER_APP, "other", OTHER_BOT, OTHER_TOKEN, OTHER_SEED)
            .guild(guild)
            .guild(Guild::new(ELSEWHERE, "Elsewhere", RILEY))
            .channel(channel(RELEASES, "releases"))
            .channel(channel(OPS, "ops"))
            .channel(
                channel(LEADS, "leads")
                    .role(GUILD, 0, perms::VIEW_CHANNEL)
                    .role(RELEASE, perms::VIEW_CHANNEL, 0)
                    .user(BOT, perms::VIEW_CHANNEL, 0),
            )
            .channel(channel(SECRET, "secret").role(GUILD, 0, perms::VIEW_CHANNEL).role(
                RELEASE,
                perms::VIEW_CHANNEL,
                0,
            ))
            .channel(channel(VOICE, "voice").kind(ChannelKind::Voice))
            .channel(channel(CATEGORY, "work").kind(ChannelKind::Category))
            .channel(channel(FORUM, "requests").kind(ChannelKind::Forum))
            .channel(channel(NEWS, "news").kind(ChannelKind::Announcement))
            .channel(channel(THREAD, "run 41").thread(OPS, BOT))
            .channel(channel(ARCHIVED, "run 40").thread(OPS, BOT).archived(false))
            .channel(channel(LOCKED, "run 39").thread(OPS, BOT).archived(true))
            .channel(channel(POSTED, "a request").thread(FORUM, BOT))
            .dm(DM_DANA, BOT, DANA)
            .build()
    }
}

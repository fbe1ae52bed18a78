//! What happens in a Discord beside clicks: things are deleted, archived, forbidden, and the application is told.
//!
//! Invariant: every change that Discord has an event for sends it to the sessions that asked for it.

use super::perms;
use super::types::{Channel, Guild, Member, Overwrite, Role};
use super::world::{DiscordWorld, State};
use serde_json::json;

impl State {
    /// Deletes a message and tells.
    pub(super) fn delete_message(&mut self, channel: &str, id: &str) {
        let Some(message) = self.message_mut(channel, id) else { return };
        message.deleted = true;
        let private = message.is_ephemeral();
        if !private {
            self.tell_deleted(channel, &[id.to_owned()]);
        }
    }

    /// Changes a thread and tells.
    pub(super) fn set_thread(
        &mut self,
        id: &str,
        archived: Option<bool>,
        locked: Option<bool>,
        name: Option<String>,
        now_ms: i64,
    ) {
        let Some(channel) = self.channels.get_mut(id) else { return };
        channel.name = name.unwrap_or_else(|| channel.name.clone());
        if let Some(thread) = &mut channel.thread {
            thread.archived = archived.unwrap_or(thread.archived);
            thread.locked = locked.unwrap_or(thread.locked);
            thread.archived_at_ms = now_ms;
        }
        self.tell_channel("THREAD_UPDATE", id);
    }

    /// The form that a submit came from closes.
    pub(super) fn close_form_of(&mut self, submit: &str) {
        let form = self.clicks.get(submit).and_then(|click| click.form.clone());
        if let Some(modal) = form.and_then(|form| self.modals.get_mut(&form)) {
            modal.open = false;
        }
    }
}

impl DiscordWorld {
    /// Deletes a message as a person with the right to would.
    pub fn remove_message(&self, channel: &str, id: &str) {
        self.change(|state| state.delete_message(channel, id));
    }

    /// Deletes several at once.
    pub fn remove_messages(&self, channel: &str, ids: &[&str]) {
        self.change(|state| {
            for id in ids {
                if let Some(message) = state.message_mut(channel, id) {
                    message.deleted = true;
                }
            }
            let ids: Vec<String> = ids.iter().map(|&id| id.to_owned()).collect();
            state.tell_deleted(channel, &ids);
        });
    }

    /// Deletes a channel (with its threads) or a thread.
    pub fn remove_channel(&self, id: &str) {
        self.change(|state| {
            let Some(channel) = state.channels.get(id).cloned() else { return };
            let name = if channel.kind.is_thread() { "THREAD_DELETE" } else { "CHANNEL_DELETE" };
            state.tell_channel(name, id);
            state.channels.retain(|_, one| one.id != id && one.parent.as_deref() != Some(id));
            state.messages.remove(id);
        });
    }

    /// Puts a bot (or a person) out of a guild; a bot's application is told that the guild is gone.
    pub fn kick(&self, guild: &str, user: &str) {
        self.change(|state| {
            if let Some(app) = state.app_of_bot(user).map(|app| app.id.clone()) {
                state.dispatch(&app, Some(super::gateway::GUILDS), "GUILD_DELETE", &json!({"id": guild}));
            }
            state.guilds.get_mut(guild).map(|guild| guild.members.remove(user));
        });
    }

    /// Deletes a guild with its channels.
    pub fn remove_guild(&self, id: &str) {
        self.change(|state| {
            state.tell_guild(id, "GUILD_DELETE", &json!({"id": id}));
            state.guilds.remove(id);
            state.channels.retain(|_, channel| channel.guild.as_deref() != Some(id));
        });
    }

    /// Begins or ends an outage of a guild.
    pub fn outage(&self, id: &str, on: bool) {
        self.change(|state| {
            let Some(guild) = state.guilds.get_mut(id) else { return };
            guild.unavailable = on;
            if on {
                return state.tell_guild(id, "GUILD_DELETE", &json!({"id": id, "unavailable": true}));
            }
            let bots: Vec<(String, String)> =
                state.apps.values().map(|app| (app.id.clone(), app.bot_user.clone())).collect();
            for (app, bot) in bots {
                if state.guilds.get(id).is_some_and(|guild| guild.members.contains_key(&bot)) {
                    let data = state.guild_create(id, &bot);
                    state.dispatch(&app, Some(super::gateway::GUILDS), "GUILD_CREATE", &data);
                }
            }
        });
    }

    /// Changes a channel or thread, and tells.
    pub fn edit_channel(&self, id: &str, edit: impl FnOnce(&mut Channel)) {
        self.change(|state| {
            let Some(channel) = state.channels.get_mut(id) else { return };
            edit(channel);
            let name = if channel.kind.is_thread() { "THREAD_UPDATE" } else { "CHANNEL_UPDATE" };
            state.tell_channel(name, id);
        });
    }

    /// Archives a thread, or takes it out of the archive; locked, only moderators write there.
    pub fn archive(&self, thread: &str, archived: bool, locked: bool) {
        let now_ms = self.time.now_ms();
        self.change(|state| state.set_thread(thread, Some(archived), Some(locked), None, now_ms));
    }

    /// Takes permissions from somebody (or a role) in a channel, or with `granted` gives them.
    pub fn permit(&self, channel: &str, whom: &str, bits: u64, granted: bool) {
        self.change(|state| {
            let member = state.users.contains_key(whom);
            let Some(place) = state.channels.get_mut(channel) else { return };
            if !place.overwrites.iter().any(|one| one.id == whom) {
                place.overwrites.push(Overwrite { id: whom.into(), member, allow: 0, deny: 0 });
            }
            for one in place.overwrites.iter_mut().filter(|one| one.id == whom) {
                (one.allow, one.deny) = if granted {
                    (one.allow | bits, one.deny & !bits)
                } else {
                    (one.allow & !bits, one.deny | bits)
                };
            }
            state.tell_channel("CHANNEL_UPDATE", channel);
        });
    }

    /// A channel is not visible to somebody any more, or again.
    pub fn hide(&self, channel: &str, whom: &str, hidden: bool) {
        self.permit(channel, whom, perms::VIEW_CHANNEL, !hidden);
    }

    /// Changes a guild; nobody is told.
    pub fn edit_guild(&self, id: &str, edit: impl FnOnce(&mut Guild)) {
        self.change(|state| state.guilds.get_mut(id).map(edit));
    }

    /// Changes a role, and tells.
    pub fn edit_role(&self, guild: &str, role: &str, edit: impl FnOnce(&mut Role)) {
        self.change(|state| {
            let Some(found) = state.guilds.get_mut(guild).and_then(|guild| guild.roles.get_mut(role)) else {
                return;
            };
            edit(found);
            let data = json!({"guild_id": guild, "role": found.json()});
            state.tell_guild(guild, "GUILD_ROLE_UPDATE", &data);
        });
    }

    /// Changes a membership: nick, roles, time-out. Applications here do not ask for that event.
    pub fn edit_member(&self, guild: &str, user: &str, edit: impl FnOnce(&mut Member)) {
        self.change(|state| {
            state.guilds.get_mut(guild).and_then(|guild| guild.members.get_mut(user)).map(edit)
        });
    }

    /// A test's own answers and headers, in the order given.
    pub fn script(&self, script: super::Script) {
        self.change(|state| state.scripts.0.push(script));
    }

    /// Ends all scripts.
    pub fn clear_scripts(&self) {
        self.change(|state| state.scripts.0.clear());
    }
}

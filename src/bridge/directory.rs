//! Who people are: links, profiles, user groups.
//!
//! Invariant: a cache only saves calls. What is older than its limit is read again, and what cannot
//! be read is "unknown", never the old value.
//!
//! Known race: a person leaves a group between the last reading and the answer. The reading is at most
//! `group_max_age` (profiles: five minutes) old when the right is checked, which is checked again
//! before each attempt to deliver.

use super::Bridge;
use super::ports::{ChatError, ChatPlatform, Identity, Origin, PressedBy, Profile};
use super::stops::Stop;
use crate::domain::clock::Millis;
use crate::domain::ids::Subject;
use crate::domain::place::Spot;
use crate::domain::policy::{Membership, Standing};
use crate::domain::routing::{Approver, Route};
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long what a platform says of an account may be used.
const PROFILE_AGE: Duration = Duration::from_mins(5);
/// Entries a cache may hold; past that it is emptied (it only saves calls).
const CACHE_SIZE: usize = 10_000;

/// A configured link: `(install, chat user)` is this subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    pub subject: Subject,
    pub install: String,
    pub user: String,
}

/// All configured links.
#[derive(Debug, Clone, Default)]
pub struct People(Vec<Link>);

impl People {
    #[must_use]
    pub fn new(links: Vec<Link>) -> Self {
        Self(links)
    }

    pub fn links(&self) -> &[Link] {
        &self.0
    }

    /// The direct messages of a subject, one for each linked account.
    #[must_use]
    pub fn spots_of(&self, subject: &Subject) -> Vec<Spot> {
        let own = self.0.iter().filter(|link| link.subject == *subject);
        own.map(|link| Spot::slack_user(&link.install, &link.user)).collect()
    }

    /// The chat user of a subject in an install, for mentions.
    #[must_use]
    pub fn user_in(&self, install: &str, subject: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|link| link.install == install && link.subject.as_str() == subject)
            .map(|link| link.user.as_str())
    }
}

/// `(install, user group id)`.
type GroupKey = (String, String);
/// The chat users of a user group.
type Members = Arc<BTreeSet<String>>;
type ProfileKey = (String, String, Option<String>);

/// What has been read of chat platforms.
#[derive(Debug, Default)]
pub struct Directory {
    identities: Mutex<HashMap<String, Identity>>,
    profiles: Mutex<HashMap<ProfileKey, (Millis, Profile)>>,
    groups: Mutex<HashMap<GroupKey, (Millis, Members)>>,
    /// When a finished pass over a runtime was last stored by this process.
    noted: Mutex<HashMap<String, Millis>>,
    /// Which description of each runtime this process has worked with.
    generations: Mutex<HashMap<String, u64>>,
    /// Installs that refuse our credentials.
    stops: Mutex<HashMap<String, Stop>>,
    /// Installs whose Home is switched off.
    homes_off: Mutex<BTreeSet<String>>,
}

impl Directory {
    #[must_use]
    pub fn new(known: Vec<(String, Identity)>) -> Self {
        Self { identities: Mutex::new(known.into_iter().collect()), ..Self::default() }
    }

    /// Who we are in an install, if it has ever told us.
    pub fn identity(&self, install: &str) -> Option<Identity> {
        self.identities.lock().unwrap_or_else(PoisonError::into_inner).get(install).cloned()
    }

    /// Whether a finished pass is to be stored now; if so, it counts as stored.
    pub(super) fn due_note(&self, runtime: &str, now: Millis, every: Duration) -> bool {
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        if noted.get(runtime).is_some_and(|at| now.since(*at) < every) {
            return false;
        }
        noted.insert(runtime.to_owned(), now);
        true
    }

    /// Whether a runtime's self-description is another than at the last call.
    pub(super) fn described_anew(&self, runtime: &str, generation: u64) -> bool {
        let mut known = self.generations.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(runtime.to_owned(), generation).is_some_and(|before| before != generation)
    }

    /// The install a delivery comes from, among those whose secret (or socket) verified it: by enterprise for
    /// an install of a whole organisation, else by team. An install that has not yet been able to say who it
    /// is will do only where there is no other.
    pub(super) fn install_at(&self, origin: &Origin, verified_by: &[String]) -> Option<String> {
        let known: Vec<_> = verified_by.iter().map(|install| (install, self.identity(install))).collect();
        let found = known
            .iter()
            .find(|(_, identity)| identity.as_ref().is_some_and(|identity| origin.is_of(identity)));
        match (found, known.as_slice()) {
            (Some((install, _)), _) | (None, [(install, None)]) => Some((*install).clone()),
            _ => None,
        }
    }

    fn keep_group(&self, key: GroupKey, now: Millis, members: Members) {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner).insert(key, (now, members));
    }

    pub(super) fn stop(&self, install: &str) -> Option<Stop> {
        self.stops.lock().unwrap_or_else(PoisonError::into_inner).get(install).cloned()
    }

    /// Stops an install or lets it go on; whether it was stopped before.
    pub(super) fn set_stop(&self, install: &str, stop: Option<Stop>) -> bool {
        let mut stops = self.stops.lock().unwrap_or_else(PoisonError::into_inner);
        match stop {
            Some(stop) => stops.insert(install.to_owned(), stop).is_some(),
            None => stops.remove(install).is_some(),
        }
    }

    pub(super) fn home_is_off(&self, install: &str) -> bool {
        self.homes_off.lock().unwrap_or_else(PoisonError::into_inner).contains(install)
    }

    /// Whether it was off before.
    pub(super) fn set_home_off(&self, install: &str, off: bool) -> bool {
        let mut homes_off = self.homes_off.lock().unwrap_or_else(PoisonError::into_inner);
        if off { !homes_off.insert(install.to_owned()) } else { homes_off.remove(install) }
    }

    pub fn set_identity(&self, install: &str, identity: Identity) {
        self.identities.lock().unwrap_or_else(PoisonError::into_inner).insert(install.to_owned(), identity);
    }
}

fn group_alert(install: &str, group: &str) -> String {
    format!("group:{install}:{group}")
}

impl Bridge {
    /// What the platform says of an account, at most five minutes old.
    pub(super) async fn profile(&self, platform: &Arc<dyn ChatPlatform>, user: &PressedBy) -> Profile {
        let key = (platform.install().to_owned(), user.user.clone(), user.home_team.clone());
        let now = self.clock.now();
        {
            let profiles = self.directory.profiles.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((read, profile)) = profiles.get(&key)
                && now.since(*read) < PROFILE_AGE
            {
                return profile.clone();
            }
        }
        match platform.profile(user).await {
            Ok(profile) => {
                if profile.standing != Standing::Unknown {
                    let mut profiles = self.directory.profiles.lock().unwrap_or_else(PoisonError::into_inner);
                    if profiles.len() >= CACHE_SIZE {
                        profiles.clear();
                    }
                    profiles.insert(key, (now, profile.clone()));
                }
                profile
            }
            Err(error) => {
                tracing::warn!(install = platform.install(), %error, "an account could not be read");
                if let ChatError::Auth { code, needed } = error {
                    let install = platform.install();
                    let text = format!(
                        "{install} does not let us read accounts ({code} {needed}); nobody can answer there"
                    );
                    self.alert(&format!("people:{install}"), &text).await;
                }
                Profile { key: None, standing: Standing::Unknown }
            }
        }
    }

    /// The clicking account's memberships in those user groups of its own install that the route names.
    pub(super) async fn memberships(
        &self,
        platform: &Arc<dyn ChatPlatform>,
        route: Option<&Route>,
        user: &str,
    ) -> Vec<(String, String, Membership)> {
        let Some(route) = route else { return vec![] };
        let mut found = vec![];
        for approver in &route.approvers {
            let Approver::Group(name) = approver else { continue };
            for group in self.rules.groups.iter().filter(|group| group.name == *name) {
                for (install, id) in group.slack_usergroups.iter().filter(|(i, _)| i == platform.install()) {
                    let membership = self.membership(platform, id, user).await;
                    found.push((install.clone(), id.clone(), membership));
                }
            }
        }
        found
    }

    async fn membership(&self, platform: &Arc<dyn ChatPlatform>, group: &str, user: &str) -> Membership {
        match self.members(platform, group).await {
            Some(members) if members.contains(user) => Membership::Yes,
            Some(_) => Membership::No,
            None => Membership::Unknown,
        }
    }

    /// The members of a user group, at most `group_max_age` old; `None` when they cannot be read.
    pub(super) async fn members(&self, platform: &Arc<dyn ChatPlatform>, group: &str) -> Option<Members> {
        let key = (platform.install().to_owned(), group.to_owned());
        let now = self.clock.now();
        {
            let groups = self.directory.groups.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((read, members)) = groups.get(&key)
                && now.since(*read) < self.rules.group_max_age
            {
                return Some(Arc::clone(members));
            }
        }
        match platform.group(group).await {
            Ok(members) => {
                let members: Members = Arc::new(members.into_iter().collect());
                self.directory.keep_group(key, now, Arc::clone(&members));
                self.all_clear(&group_alert(platform.install(), group)).await;
                Some(members)
            }
            Err(error) => {
                let install = platform.install();
                tracing::warn!(install, group, %error, "a user group could not be read");
                // What passes by itself is no alert.
                if matches!(
                    error,
                    ChatError::Auth { .. } | ChatError::Unreadable { .. } | ChatError::Permanent { .. }
                ) {
                    let text = format!(
                        "user group {group} of {install} cannot be read: {error}; its members cannot answer by it"
                    );
                    self.alert(&group_alert(install, group), &text).await;
                }
                None
            }
        }
    }

    /// The subject that a chat account is linked to, and what can be said of the account. The account is
    /// matched by the immutable pair (enterprise or team, user), never by a name. A link whose install has
    /// not yet told who we are there may be this account's or not: then nothing can be said.
    pub(super) fn linked(&self, profile: &Profile) -> (Option<Subject>, Standing) {
        let Some(key) = profile.key.as_ref() else { return (None, profile.standing) };
        let mut standing = profile.standing;
        for link in self.rules.people.links().iter().filter(|link| link.user == key.user) {
            match self.directory.identity(&link.install) {
                Some(identity) if identity.realm() == key.realm => {
                    return (Some(link.subject.clone()), profile.standing);
                }
                None if standing == Standing::Member => standing = Standing::Unknown,
                _ => {}
            }
        }
        (None, standing)
    }
}

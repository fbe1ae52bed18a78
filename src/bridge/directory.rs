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
use crate::domain::ids::{Platform, Subject};
use crate::domain::place::Spot;
use crate::domain::policy::{Membership, Standing};
use crate::domain::routing::{Approver, Route};
use crate::domain::subject_form::SubjectForm;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long what a platform says of an account may be used.
pub(super) const PROFILE_AGE: Duration = Duration::from_mins(5);
/// Entries a cache may hold; past that it is emptied (it only saves calls).
const CACHE_SIZE: usize = 10_000;

/// A configured link: `(install, chat user)` is this subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    pub subject: Subject,
    pub platform: Platform,
    /// A Discord account, which is the same everywhere, has one for each install.
    pub install: String,
    pub user: String,
}

/// All configured links, and the installs whose members have one by the platform's own word.
#[derive(Debug, Clone, Default)]
pub struct People {
    links: Vec<Link>,
    forms: BTreeMap<String, (Platform, SubjectForm)>,
}

impl People {
    #[must_use]
    pub fn new(links: Vec<Link>, forms: BTreeMap<String, (Platform, SubjectForm)>) -> Self {
        Self { links, forms }
    }

    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// Whether a configured link names this subject: then it is nobody else's.
    fn is_configured(&self, subject: &str) -> bool {
        self.links.iter().any(|link| link.subject.as_str() == subject)
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
    /// Until when nothing is sent to an install, because a server there has an outage.
    rests: Mutex<HashMap<String, Millis>>,
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

    fn kept_profile(&self, install: &str, user: &PressedBy) -> Option<(Millis, Profile)> {
        let key = (install.to_owned(), user.user.clone(), user.home_team.clone());
        self.profiles.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned()
    }

    /// Keeps what the platform has just said of an account.
    pub(super) fn keep_profile(&self, install: &str, user: &PressedBy, now: Millis, profile: &Profile) {
        if profile.standing == Standing::Unknown {
            return;
        }
        let mut profiles = self.profiles.lock().unwrap_or_else(PoisonError::into_inner);
        if profiles.len() >= CACHE_SIZE {
            profiles.clear();
        }
        let key = (install.to_owned(), user.user.clone(), user.home_team.clone());
        profiles.insert(key, (now, profile.clone()));
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

    pub(super) fn rest_until(&self, install: &str, until: Millis) {
        self.rests.lock().unwrap_or_else(PoisonError::into_inner).insert(install.to_owned(), until);
    }

    pub(super) fn rests(&self, install: &str) -> Option<Millis> {
        self.rests.lock().unwrap_or_else(PoisonError::into_inner).get(install).copied()
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
        let now = self.clock.now();
        if let Some(profile) = self.fresh_profile(platform.install(), user) {
            return profile;
        }
        match platform.profile(user).await {
            Ok(profile) => {
                self.directory.keep_profile(platform.install(), user, now, &profile);
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
                Profile::of(Standing::Unknown)
            }
        }
    }

    /// What is known of an account and not too old.
    pub(super) fn fresh_profile(&self, install: &str, user: &PressedBy) -> Option<Profile> {
        let (read, profile) = self.directory.kept_profile(install, user)?;
        let most =
            if profile.groups.is_some() { PROFILE_AGE.min(self.rules.group_max_age) } else { PROFILE_AGE };
        (self.clock.now().since(read) < most).then_some(profile)
    }

    /// The clicking account's memberships in those groups of its own install that the route names. A profile
    /// that names the account's groups is the whole answer.
    pub(super) async fn memberships(
        &self,
        platform: &Arc<dyn ChatPlatform>,
        route: Option<&Route>,
        user: &str,
        profile: &Profile,
    ) -> Vec<(String, String, Membership)> {
        let Some(route) = route else { return vec![] };
        let mut found = vec![];
        for approver in &route.approvers {
            let Approver::Group(name) = approver else { continue };
            for group in self.rules.groups.iter().filter(|group| group.name == *name) {
                for id in group.of_chat(platform.install()) {
                    let membership = match &profile.groups {
                        Some(groups) if groups.contains(id) => Membership::Yes,
                        Some(_) => Membership::No,
                        None if platform.platform() == Platform::Discord => Membership::Unknown,
                        None => self.membership(platform, id, user).await,
                    };
                    found.push((platform.install().to_owned(), id.to_owned(), membership));
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
    /// not yet told who we are there may be this account's or not: then nothing can be said. Who has no
    /// configured link is, where the install says so, who the platform says; never somebody configured.
    pub(super) fn linked(&self, install: &str, profile: &Profile) -> (Option<Subject>, Standing) {
        let Some(key) = profile.key.as_ref() else { return (None, profile.standing) };
        let mut standing = profile.standing;
        let people = &self.rules.people;
        let own = people.links().iter().filter(|link| link.platform == key.platform && link.user == key.user);
        for link in own {
            match self.directory.identity(&link.install) {
                _ if link.platform == Platform::Discord => {
                    return (Some(link.subject.clone()), profile.standing);
                }
                Some(identity) if identity.realm() == key.realm => {
                    return (Some(link.subject.clone()), profile.standing);
                }
                None if standing == Standing::Member => standing = Standing::Unknown,
                _ => {}
            }
        }
        let by_platform = match (standing, people.forms.get(install)) {
            (Standing::Member, Some((_, form))) => form.subject(key),
            _ => None,
        };
        (by_platform.filter(|subject| !people.is_configured(subject.as_str())), standing)
    }

    /// The chat user of a subject in an install, for mentions.
    pub(super) fn user_in(&self, install: &str, subject: &str) -> Option<String> {
        let people = &self.rules.people;
        let linked =
            people.links().iter().find(|link| link.install == install && link.subject.as_str() == subject);
        linked.map(|link| link.user.clone()).or_else(|| {
            let (_, form) = people.forms.get(install)?;
            if people.is_configured(subject) {
                return None;
            }
            let realm = self.directory.identity(install).map(|identity| identity.realm().to_owned());
            form.user_of(&realm.unwrap_or_default(), subject)
        })
    }

    /// The accounts that are this subject, as `(install, user)`.
    pub(super) fn accounts_of(&self, subject: &Subject) -> Vec<(String, String)> {
        let people = &self.rules.people;
        let linked = people.links().iter().filter(|link| link.subject == *subject);
        let mut found: Vec<_> = linked.map(|link| (link.install.clone(), link.user.clone())).collect();
        if found.is_empty() {
            let by_platform = people.forms.keys();
            found.extend(
                by_platform
                    .filter_map(|install| Some((install.clone(), self.user_in(install, subject.as_str())?))),
            );
        }
        found
    }

    /// The direct messages of a subject, one for each account: a Discord account has one, in the first
    /// install that knows it.
    pub(super) fn spots_of(&self, subject: &Subject) -> Vec<Spot> {
        let mut spots: Vec<Spot> = vec![];
        for (install, user) in self.accounts_of(subject) {
            let Some(platform) = self.platforms.get(&install) else { continue };
            let spot = Spot::direct(platform.platform(), &install, &user);
            let known =
                |other: &Spot| platform.platform() == Platform::Discord && other.target == spot.target;
            if !spots.iter().any(known) {
                spots.push(spot);
            }
        }
        spots
    }
}

/// An account as an operator writes it in `[[person]]`.
pub(super) fn as_configured(platform: &Arc<dyn ChatPlatform>, user: &str) -> String {
    match platform.platform() {
        Platform::Slack => format!("{}:{user}", platform.install()),
        Platform::Discord => user.to_owned(),
    }
}

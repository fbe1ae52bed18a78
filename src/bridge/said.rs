//! What a chat says of an account together with what it did (Discord: roles, and what keeps it from answering).
//!
//! Invariant: it is kept with the click, so that a restart, or another replica, knows as much as who took it;
//! it counts for as long as anything read of an account may, and what is newer wins. Where it says that an
//! account never answers, that stands.

use super::Bridge;
use super::directory::PROFILE_AGE;
use super::ports::{ChatPlatform, PressedBy, Profile};
use crate::domain::clock::Millis;
use crate::domain::ids::{ChatUser, Platform};
use crate::domain::policy::{Standing, Unfit};
use crate::store::clicks::Click;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::sync::Arc;

#[derive(Serialize, Deserialize)]
struct Kept {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unfit: Option<Unfit>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    groups: Option<BTreeSet<String>>,
}

/// As it is kept.
pub(super) fn kept(said: &Profile) -> Option<String> {
    let unfit = match said.standing {
        Standing::Member => None,
        Standing::Unfit(what) => Some(what),
        Standing::Unknown => return None,
    };
    serde_json::to_string(&Kept { unfit, groups: said.groups.clone() }).ok()
}

/// Reads it back; `None` when another version wrote it.
pub(super) fn read(kept: &str, platform: Platform, user: &str) -> Option<Profile> {
    let kept: Map<String, Value> = serde_json::from_str(kept).ok()?;
    let Kept { unfit, groups } = serde_json::from_value(Value::Object(kept)).ok()?;
    Some(Profile {
        key: Some(ChatUser { platform, realm: String::new(), user: user.to_owned() }),
        standing: unfit.map_or(Standing::Member, Standing::Unfit),
        groups,
    })
}

impl Bridge {
    /// Who pressed: what is known of the account, from the press itself where that is the newest.
    pub(super) async fn clicker(&self, platform: &Arc<dyn ChatPlatform>, click: &Click) -> Profile {
        let by = PressedBy { user: click.chat_user.clone(), home_team: click.home_team.clone() };
        let said = click.said.as_deref().and_then(|said| read(said, click.platform, &click.chat_user));
        self.account(platform, &by, said, click.received).await
    }

    /// What is known of an account of which something was said at a moment.
    pub(super) async fn account(
        &self,
        platform: &Arc<dyn ChatPlatform>,
        by: &PressedBy,
        said: Option<Profile>,
        at: Millis,
    ) -> Profile {
        let Some(said) = said else { return self.profile(platform, by).await };
        if matches!(said.standing, Standing::Unfit(_)) {
            return said;
        }
        let most = PROFILE_AGE.min(self.rules.group_max_age);
        if said.groups.is_some() && self.clock.now().since(at) < most {
            return self.fresh_profile(platform.install(), by).unwrap_or(said);
        }
        let asked = self.profile(platform, by).await;
        // Who it is was said; which groups they are in is not known.
        if asked.standing == Standing::Unknown { Profile { groups: None, ..said } } else { asked }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_is_read_back() {
        for (standing, groups) in [
            (Standing::Member, Some(BTreeSet::from(["30".to_owned()]))),
            (Standing::Member, Some(BTreeSet::new())),
            (Standing::Member, None),
            (Standing::Unfit(Unfit::TimedOut), Some(BTreeSet::new())),
        ] {
            let key = Some(ChatUser { platform: Platform::Discord, realm: String::new(), user: "7".into() });
            let said = Profile { key, standing, groups };
            assert_eq!(read(&kept(&said).unwrap(), Platform::Discord, "7"), Some(said));
        }
        assert_eq!(kept(&Profile::of(Standing::Unknown)), None);
        assert_eq!(read("[]", Platform::Discord, "7"), None);
    }
}

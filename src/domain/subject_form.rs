//! Subjects by the chat platform's own word: `discord:{user_id}`, `slack:{team_id}:{user_id}`.
//!
//! Invariant: a subject is made of immutable ids only, so that one account is always the same subject and
//! two accounts of one install never are. What was made can be read back, for mentions and direct messages.

use crate::domain::ids::{ChatUser, Platform, Subject};

const USER: &str = "{user_id}";
const TEAM: &str = "{team_id}";

/// How an install's members are named who have no other link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubjectForm {
    platform: Platform,
    text: String,
}

/// Why a text is no such form, with what to write instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SubjectFormError {
    #[error("the user's id is not in it exactly once")]
    User,
    #[error("the team's id is not in it exactly once: users are only told apart within their team")]
    Team,
    #[error("there is something in braces that is no immutable id, or ids stand next to each other")]
    Braces,
    #[error("what comes of it is no subject")]
    Subject,
}

impl SubjectForm {
    /// # Errors
    /// When two accounts could come to one subject, or what comes of it is none.
    pub fn parse(platform: Platform, text: &str) -> Result<Self, SubjectFormError> {
        let count = |what| text.matches(what).count();
        if count(USER) != 1 {
            return Err(SubjectFormError::User);
        }
        let teams = count(TEAM);
        match platform {
            Platform::Slack if teams != 1 => return Err(SubjectFormError::Team),
            Platform::Slack | Platform::Discord => {}
        }
        let touching = text.contains("}{");
        let rest = text.replace(USER, "");
        let rest = if platform == Platform::Slack { rest.replace(TEAM, "") } else { rest };
        if touching || rest.contains(['{', '}']) {
            return Err(SubjectFormError::Braces);
        }
        let form = Self { platform, text: text.to_owned() };
        let longest = ChatUser { platform, realm: "T".repeat(20), user: "9".repeat(20) };
        form.subject(&longest).map(|_| form).ok_or(SubjectFormError::Subject)
    }

    /// The subject of an account; `None` for one of another platform or without a usable id.
    #[must_use]
    pub fn subject(&self, account: &ChatUser) -> Option<Subject> {
        let is_id = |id: &str| !id.is_empty() && id.bytes().all(|b| b.is_ascii_alphanumeric());
        let realm_fits = self.platform == Platform::Discord || is_id(&account.realm);
        if account.platform != self.platform || !is_id(&account.user) || !realm_fits {
            return None;
        }
        Subject::parse(&self.text.replace(TEAM, &account.realm).replace(USER, &account.user)).ok()
    }

    /// The account behind a subject of this form. `realm`: the install's enterprise or team, where it has one.
    #[must_use]
    pub fn user_of(&self, realm: &str, subject: &str) -> Option<String> {
        let text = self.text.replace(TEAM, realm);
        let (before, after) = text.split_once(USER)?;
        let user = subject.strip_prefix(before)?.strip_suffix(after)?;
        let account = ChatUser { platform: self.platform, realm: realm.to_owned(), user: user.to_owned() };
        self.subject(&account).filter(|made| made.as_str() == subject).map(|_| user.to_owned())
    }

    /// Whether one person could be two subjects by these two forms of two installs.
    #[must_use]
    pub fn splits(&self, other: &Self) -> bool {
        // A Discord account is the same everywhere; a Slack account is another one in each team.
        self != other || self.platform == Platform::Slack
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(platform: Platform, realm: &str, user: &str) -> ChatUser {
        ChatUser { platform, realm: realm.into(), user: user.into() }
    }

    #[test]
    fn a_subject_is_made_of_ids_and_read_back() {
        let form = SubjectForm::parse(Platform::Discord, "discord:{user_id}").unwrap();
        let mara = account(Platform::Discord, "", "3300000000000000003");
        assert_eq!(form.subject(&mara).unwrap().as_str(), "discord:3300000000000000003");
        assert_eq!(form.user_of("", "discord:3300000000000000003").as_deref(), Some("3300000000000000003"));
        assert_eq!(form.user_of("", "slack:3300000000000000003"), None);
        assert_eq!(form.user_of("", "discord:"), None);
        assert_eq!(form.subject(&account(Platform::Slack, "T1", "U1")), None);
        let form = SubjectForm::parse(Platform::Slack, "slack:{team_id}:{user_id}").unwrap();
        let dana = account(Platform::Slack, "T0ACME", "U0DANA");
        assert_eq!(form.subject(&dana).unwrap().as_str(), "slack:T0ACME:U0DANA");
        assert_eq!(form.user_of("T0ACME", "slack:T0ACME:U0DANA").as_deref(), Some("U0DANA"));
        assert_eq!(form.user_of("T0OTHER", "slack:T0ACME:U0DANA"), None);
        assert_eq!(form.subject(&account(Platform::Slack, "", "U0DANA")), None);
    }

    #[test]
    fn forms_that_could_mix_people_up_are_refused() {
        for (platform, text, why) in [
            (Platform::Discord, "discord", SubjectFormError::User),
            (Platform::Discord, "{user_id}{user_id}", SubjectFormError::User),
            (Platform::Discord, "{username}:{user_id}", SubjectFormError::Braces),
            (Platform::Discord, "d:{team_id}:{user_id}", SubjectFormError::Braces),
            (Platform::Slack, "slack:{user_id}", SubjectFormError::Team),
            (Platform::Slack, "{team_id}{user_id}", SubjectFormError::Braces),
            (Platform::Discord, " {user_id}", SubjectFormError::Subject),
            (Platform::Discord, "ü{user_id}", SubjectFormError::Subject),
        ] {
            assert_eq!(SubjectForm::parse(platform, text), Err(why), "{text}");
        }
    }

    #[test]
    fn one_discord_account_is_one_subject_by_one_form() {
        let form = |platform, text| SubjectForm::parse(platform, text).unwrap();
        let discord = form(Platform::Discord, "discord:{user_id}");
        assert!(!discord.splits(&discord));
        assert!(discord.splits(&form(Platform::Discord, "d:{user_id}")));
        let slack = form(Platform::Slack, "slack:{team_id}:{user_id}");
        assert!(slack.splits(&slack) && slack.splits(&discord));
    }
}

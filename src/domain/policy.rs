//! Who may answer, with an explanation.
//!
//! Invariant: default deny, and fail closed. "Allow" is said only when every rule passed on facts
//! that were read; a fact that could not be read gives "could not be checked", never yes and never no
//! (unless another rule says no for certain: trying again would not help).
//! One function decides for every control, for the check before sending, and for `explain`.

use crate::domain::form::{Decision, Digest, Form};
use crate::domain::ids::Subject;
use crate::domain::interaction::{Action, Machine, Right, State};
use crate::domain::routing::{Approver, Group, Route};
use crate::domain::text::says_nothing;
use serde::{Deserialize, Serialize};

/// The rules in the order in which they are asked; the first that refuses names the refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    State,
    Link,
    Person,
    Approvers,
    SelfApproval,
    Vote,
    Digest,
    FullView,
    Reason,
}

impl Rule {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::State => "state",
            Self::Link => "link",
            Self::Person => "person",
            Self::Approvers => "approvers",
            Self::SelfApproval => "self_approval",
            Self::Vote => "vote",
            Self::Digest => "digest",
            Self::FullView => "full_view",
            Self::Reason => "reason",
        }
    }
}

/// What one rule said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Passed {
    Pass,
    Fail,
    Unknown,
}

/// One line of the explanation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Trace {
    pub rule: Rule,
    pub result: Passed,
    pub why: String,
}

/// The verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Allow,
    Refuse,
    Undetermined,
}

/// What this person must do first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Need {
    Link,
    FullView,
    Confirm,
    Reason,
}

/// Why a person may never answer, whatever the route says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unfit {
    Guest,
    Stranger,
    Bot,
    Deactivated,
    /// Invited, not joined yet.
    Invited,
    /// Not allowed to speak for a time.
    TimedOut,
    /// The payload named nobody, or the platform knows no such person.
    Nobody,
}

/// What the chat platform says of the clicking account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    Member,
    Unfit(Unfit),
    /// The platform could not be asked.
    Unknown,
}

/// Whether the clicking account is in one of the chat platform's user groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Membership {
    Yes,
    No,
    Unknown,
}

/// Everything a verdict depends on, read before.
#[derive(Debug)]
pub struct Question<'a> {
    pub machine: &'a Machine,
    pub form: &'a Form,
    pub owner: Option<&'a Subject>,
    pub route: Option<&'a Route>,
    pub groups: &'a [Group],
    /// The person's subject, by a verified link.
    pub subject: Option<&'a Subject>,
    pub standing: Standing,
    /// Memberships of the clicking account: `(install, user group id, is it in there)`. An unlisted
    /// user group of the clicking install is unknown, one of another install does not count.
    pub memberships: &'a [(String, String, Membership)],
    /// The install the click comes from; `None` asks by subject alone.
    pub install: Option<&'a str>,
    pub action: &'a Action,
    /// What the card showed; `None` where no card is pressed (`explain`, the check before sending).
    pub shown: Option<&'a Digest>,
    /// Something of the form was cut on the card, and full view is required and not had.
    pub must_view: bool,
    /// Whether the platform asked once more before this press came; `None` where none came yet.
    pub asked: Option<bool>,
    /// The claim being sent is this person's own: state, vote and digest are the machine's to judge.
    pub before_sending: bool,
}

/// A verdict with its reasons.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Judgement {
    pub verdict: Verdict,
    /// The first rule that refused; else the first that could not be checked; `approvers` for an
    /// allowance.
    pub rule: Rule,
    pub needs: Vec<Need>,
    pub trace: Vec<Trace>,
    #[serde(skip)]
    pub unfit: Option<Unfit>,
    /// The card was drawn before the route asked for what it asks now; the form did not change.
    #[serde(skip)]
    pub outdated: bool,
}

impl Judgement {
    /// The right as the state machine takes it.
    #[must_use]
    pub fn right(&self) -> Right {
        match self.verdict {
            Verdict::Allow => Right::Allowed,
            Verdict::Refuse => Right::Refused,
            Verdict::Undetermined => Right::Unknown,
        }
    }
}

/// Judges. Every rule is asked, so that the trace is whole; the first that refused decides.
#[must_use]
pub fn judge(question: &Question<'_>) -> Judgement {
    let mut trace = vec![];
    let mut needs = vec![];
    let mut unfit = None;
    let mut say = |rule, result, why: String| trace.push(Trace { rule, result, why });
    let approving = matches!(question.action, Action::Decide(Decision::Approve));
    let must_ask = approving && question.route.is_some_and(|route| route.confirm);
    let unasked = must_ask && question.asked == Some(false);

    if !question.before_sending {
        match &question.machine.state {
            State::Open if !answerable(question) => {
                say(
                    Rule::State,
                    Passed::Fail,
                    "this kind is shown read-only and cannot be answered here".into(),
                );
            }
            State::Open => say(Rule::State, Passed::Pass, "the interaction is open".into()),
            State::Answering(claim) => say(
                Rule::State,
                Passed::Fail,
                format!("an answer of {} is on its way to the runtime", claim.subject),
            ),
            State::Settled { how, .. } => {
                say(Rule::State, Passed::Fail, format!("it has ended: {}", how.outcome().as_str()));
            }
        }
    }
    match question.subject {
        Some(subject) => say(Rule::Link, Passed::Pass, format!("linked to {subject}")),
        // A link is looked up by what the platform says of the account.
        None if question.standing == Standing::Unknown => {
            say(
                Rule::Link,
                Passed::Unknown,
                "the account could not be read, so its link is not known".into(),
            );
        }
        None => {
            needs.push(Need::Link);
            say(Rule::Link, Passed::Fail, "this chat account is linked to no subject".into());
        }
    }
    match question.standing {
        Standing::Member => say(Rule::Person, Passed::Pass, "a full member".into()),
        Standing::Unfit(what) => {
            unfit = Some(what);
            say(Rule::Person, Passed::Fail, format!("never answers: {what:?}").to_lowercase());
        }
        Standing::Unknown => {
            say(
                Rule::Person,
                Passed::Unknown,
                "the chat platform could not be asked about this account".into(),
            );
        }
    }
    let (result, why) = approvers(question);
    say(Rule::Approvers, result, why);
    if let Some((result, why)) = self_approval(question) {
        say(Rule::SelfApproval, result, why);
    }
    if !question.before_sending {
        let voted = question.subject.is_some_and(|s| question.machine.votes.iter().any(|v| v.subject == *s));
        match question.action {
            Action::Withdraw if !voted => {
                say(Rule::Vote, Passed::Fail, "there is no vote to take back".into());
            }
            Action::Decide(Decision::Approve) if voted => {
                say(Rule::Vote, Passed::Fail, "this subject's approval is counted already".into());
            }
            _ => say(Rule::Vote, Passed::Pass, "no earlier vote in the way".into()),
        }
        if let Some(shown) = question.shown.filter(|_| !unasked) {
            if *shown == question.machine.digest {
                say(Rule::Digest, Passed::Pass, "the card shows the interaction as it is".into());
            } else {
                say(
                    Rule::Digest,
                    Passed::Fail,
                    "the interaction has changed since the card was drawn".into(),
                );
            }
        }
    }
    if unasked {
        say(Rule::Digest, Passed::Fail, "the card was drawn before the route asked to confirm".into());
    }
    if approving && question.must_view {
        needs.push(Need::FullView);
        say(
            Rule::FullView,
            Passed::Fail,
            "the card does not show everything, and this person has not opened all of it".into(),
        );
    }
    if must_ask && question.asked != Some(true) {
        needs.push(Need::Confirm);
    }
    if let (Action::Decide(decision @ Decision::Deny { .. }), true) =
        (question.action, question.route.is_some_and(|route| route.reason_on_deny))
    {
        if decision.reason().is_none_or(says_nothing) {
            needs.push(Need::Reason);
            say(Rule::Reason, Passed::Fail, "the route wants a reason with a denial".into());
        } else {
            say(Rule::Reason, Passed::Pass, "a reason is given".into());
        }
    }

    let first = |result| trace.iter().find(|line| line.result == result).map(|line| line.rule);
    let (verdict, rule) = match (first(Passed::Fail), first(Passed::Unknown)) {
        (Some(rule), _) => (Verdict::Refuse, rule),
        (None, Some(rule)) => (Verdict::Undetermined, rule),
        (None, None) => (Verdict::Allow, Rule::Approvers),
    };
    Judgement { verdict, rule, needs, trace, unfit, outdated: unasked }
}

fn answerable(question: &Question<'_>) -> bool {
    match question.action {
        Action::Decide(decision) => question.form.check(decision).is_ok(),
        Action::Withdraw => true,
    }
}

fn approvers(question: &Question<'_>) -> (Passed, String) {
    if matches!(question.action, Action::Withdraw) {
        return (Passed::Pass, "a vote may always be taken back".into());
    }
    let Some(route) = question.route else {
        return (Passed::Fail, "no route matches this interaction, so nobody may answer it".into());
    };
    if route.approvers.is_empty() {
        return (Passed::Fail, "the route names no approvers, so nobody may answer".into());
    }
    let Some(subject) = question.subject else {
        if question.standing == Standing::Unknown {
            return (Passed::Unknown, "whose chat account this is could not be read".into());
        }
        return (Passed::Fail, "nobody is known to be in a group without a link".into());
    };
    let mut unknown = vec![];
    for approver in &route.approvers {
        match approver {
            Approver::Owner => match question.owner {
                Some(owner) if owner == subject => {
                    return (Passed::Pass, "the agent works for this subject".into());
                }
                Some(_) => {}
                None => unknown.push("the owner is not known"),
            },
            Approver::Linked => return (Passed::Pass, "linked".into()),
            Approver::Group(name) => {
                let Some(group) = question.groups.iter().find(|group| group.name == *name) else { continue };
                if group.subjects.contains(subject) {
                    return (Passed::Pass, format!("in group {name}"));
                }
                for (install, id) in group.of_chats() {
                    if question.install != Some(install.as_str()) {
                        continue;
                    }
                    let known = question.memberships.iter().find(|(i, g, _)| i == install && g == id);
                    match known.map_or(Membership::Unknown, |(_, _, membership)| *membership) {
                        Membership::Yes => {
                            return (Passed::Pass, format!("in group {name} by {id} of {install}"));
                        }
                        Membership::No => {}
                        Membership::Unknown => {
                            unknown.push("the account's groups or roles could not be read");
                        }
                    }
                }
            }
        }
    }
    let names: Vec<&str> = route.approvers.iter().map(Approver::as_str).collect();
    if unknown.is_empty() {
        (Passed::Fail, format!("not among the approvers: {}", names.join(", ")))
    } else {
        (Passed::Unknown, unknown.join("; "))
    }
}

fn self_approval(question: &Question<'_>) -> Option<(Passed, String)> {
    let route = question.route?;
    if route.self_approval || matches!(question.action, Action::Withdraw) {
        return None;
    }
    Some(match (question.owner, question.subject) {
        (Some(owner), Some(subject)) if owner == subject => {
            (Passed::Fail, "the agent works for this subject, and the route forbids self-approval".into())
        }
        (Some(_), None) => (Passed::Unknown, "the owner may not answer, and who this is is not known".into()),
        (Some(_), Some(_)) => (Passed::Pass, "the agent works for somebody else".into()),
        (None, _) => (Passed::Unknown, "the route forbids self-approval and the owner is not known".into()),
    })
}

#[cfg(test)]
#[path = "policy_tests.rs"]
mod tests;

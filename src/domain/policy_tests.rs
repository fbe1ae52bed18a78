//! Who may answer: each rule passing, failing and unknown; their order; what an unknown can never do.

use super::*;
use crate::domain::clock::Millis;
use crate::domain::form::Kind;
use crate::domain::ids::{AnswerId, ClickId, GroupName};
use crate::domain::interaction::{End, Event, Press, Reading, step};
use crate::domain::routing::When;
use proptest::prelude::*;
use uuid::Uuid;

const APPROVE: Action = Action::Decide(Decision::Approve);
const DENY: Action = Action::Decide(Decision::Deny { reason: None });

fn person(name: &str) -> Subject {
    Subject::parse(name).unwrap()
}

fn digest(n: u8) -> Digest {
    Digest::from_hex(format!("{n:064x}"))
}

/// All that a verdict depends on, owned; `ask` judges. As made, Dana of the release group may approve.
#[derive(Debug, Clone)]
struct Case {
    machine: Machine,
    form: Form,
    owner: Option<Subject>,
    route: Option<Route>,
    groups: Vec<Group>,
    subject: Option<Subject>,
    standing: Standing,
    memberships: Vec<(String, String, Membership)>,
    install: Option<&'static str>,
    action: Action,
    shown: Option<Digest>,
    must_view: bool,
    asked: Option<bool>,
    before_sending: bool,
}

impl Case {
    fn new() -> Self {
        let group = |name: &str, subjects: &[&str], slack: &[(&str, &str)]| Group {
            name: GroupName::new(name),
            subjects: subjects.iter().map(|s| person(s)).collect(),
            slack_usergroups: slack.iter().map(|(i, g)| ((*i).into(), (*g).into())).collect(),
            discord_roles: vec![],
        };
        Self {
            machine: Machine::opened(digest(1), Millis(0)),
            form: Form {
                kind: Kind::Approval,
                title: "t".into(),
                prompt: "p".into(),
                facts: vec![],
                questions: vec![],
                arguments_withheld: true,
            },
            owner: Some(person("olga")),
            route: Some(Route {
                when: When::default(),
                to: vec![],
                fallback: vec![],
                mention: vec![],
                thread_by: None,
                approvers: vec![Approver::Group(GroupName::new("release"))],
                approvals: 1,
                self_approval: true,
                confirm: false,
                reason_on_deny: false,
            }),
            groups: vec![group("release", &["dana"], &[("acme", "S0REL")]), group("other", &["paul"], &[])],
            subject: Some(person("dana")),
            standing: Standing::Member,
            memberships: vec![],
            install: Some("acme"),
            action: APPROVE,
            shown: Some(digest(1)),
            must_view: false,
            asked: Some(false),
            before_sending: false,
        }
    }

    fn with(change: impl FnOnce(&mut Self)) -> Self {
        let mut case = Self::new();
        change(&mut case);
        case
    }

    fn approvers(&mut self, approvers: &[&str]) {
        self.route.as_mut().unwrap().approvers = approvers
            .iter()
            .map(
                |name| {
                    if *name == "owner" { Approver::Owner } else { Approver::Group(GroupName::new(*name)) }
                },
            )
            .collect();
    }

    fn member_of(&mut self, install: &str, membership: Membership) {
        self.memberships.push((install.into(), "S0REL".into(), membership));
    }

    fn judge(&self) -> Judgement {
        judge(&Question {
            machine: &self.machine,
            form: &self.form,
            owner: self.owner.as_ref(),
            route: self.route.as_ref(),
            groups: &self.groups,
            subject: self.subject.as_ref(),
            standing: self.standing,
            memberships: &self.memberships,
            install: self.install,
            action: &self.action,
            shown: self.shown.as_ref(),
            must_view: self.must_view,
            asked: self.asked,
            before_sending: self.before_sending,
        })
    }

    fn ask(&self) -> (Verdict, Rule) {
        let judged = self.judge();
        (judged.verdict, judged.rule)
    }

    fn press(&mut self, subject: &str, action: Action, approvals: u32) {
        let press = Press {
            click: ClickId(Uuid::from_u128(1)),
            answer: AnswerId(Uuid::from_u128(2)),
            subject: person(subject),
            action,
            shown: self.machine.digest.clone(),
            deliver_until: Millis(1_000_000),
            approvals,
            voters: vec![],
        };
        self.machine = step(self.machine.clone(), Event::Press(press)).0;
    }

    fn ends(&mut self) {
        let event = Event::Read { reading: Reading::Ended(End::Canceled), began: Millis(5), at: Millis(5) };
        self.machine = step(self.machine.clone(), event).0;
    }
}

const ALLOWED: (Verdict, Rule) = (Verdict::Allow, Rule::Approvers);

fn refused(rule: Rule) -> (Verdict, Rule) {
    (Verdict::Refuse, rule)
}

fn unclear(rule: Rule) -> (Verdict, Rule) {
    (Verdict::Undetermined, rule)
}

#[test]
fn one_of_the_group_may_answer() {
    let judged = Case::new().judge();
    assert_eq!((judged.verdict, judged.rule), ALLOWED);
    assert!(judged.needs.is_empty());
    assert_eq!(judged.right(), Right::Allowed);
}

#[test]
fn state() {
    let case = Case::with(|c| c.press("bob", DENY, 1));
    assert_eq!(case.ask(), refused(Rule::State));
    assert!(case.judge().trace[0].why.contains("bob"));
    assert_eq!(Case::with(Case::ends).ask(), refused(Rule::State));
}

#[test]
fn link() {
    let judged = Case::with(|c| c.subject = None).judge();
    assert_eq!((judged.verdict, judged.rule), refused(Rule::Link));
    assert_eq!(judged.needs, [Need::Link]);
}

/// "Could not verify" is not "not allowed": an account that could not be read is not called unlinked.
#[test]
fn an_account_that_could_not_be_read_is_not_unlinked() {
    let judged = Case::with(|c| {
        c.subject = None;
        c.standing = Standing::Unknown;
    })
    .judge();
    assert_eq!((judged.verdict, judged.rule), unclear(Rule::Link));
    assert!(judged.needs.is_empty());
    assert_eq!(judged.right(), Right::Unknown);
}

#[test]
fn guests_strangers_bots_and_the_deactivated_never_answer() {
    for what in [Unfit::Guest, Unfit::Stranger, Unfit::Bot, Unfit::Deactivated, Unfit::Invited, Unfit::Nobody]
    {
        for before_sending in [false, true] {
            let judged = Case::with(|c| {
                c.standing = Standing::Unfit(what);
                c.before_sending = before_sending;
            })
            .judge();
            assert_eq!((judged.verdict, judged.rule), refused(Rule::Person));
            assert_eq!(judged.unfit, Some(what));
        }
    }
    assert_eq!(Case::with(|c| c.standing = Standing::Unknown).ask(), unclear(Rule::Person));
}

#[test]
fn default_deny() {
    assert_eq!(Case::with(|c| c.approvers(&[])).ask(), refused(Rule::Approvers));
    assert_eq!(Case::with(|c| c.route = None).ask(), refused(Rule::Approvers));
    assert_eq!(Case::with(|c| c.approvers(&["nosuch"])).ask(), refused(Rule::Approvers));
    assert_eq!(Case::with(|c| c.approvers(&["other"])).ask(), refused(Rule::Approvers));
    let case = Case::with(|c| {
        c.subject = Some(person("Dana"));
        c.member_of("acme", Membership::No);
    });
    assert_eq!(case.ask(), refused(Rule::Approvers), "another subject than dana");
}

#[test]
fn a_user_group_counts_only_for_clicks_from_its_install() {
    let bob = |install, memberships: &[(&str, Membership)]| {
        Case::with(|c| {
            c.subject = Some(person("bob"));
            c.install = install;
            for (install, membership) in memberships {
                c.member_of(install, *membership);
            }
        })
        .ask()
    };
    assert_eq!(bob(Some("acme"), &[("acme", Membership::Yes)]), ALLOWED);
    assert_eq!(bob(Some("acme"), &[("acme", Membership::No)]), refused(Rule::Approvers));
    assert_eq!(bob(Some("acme"), &[("acme", Membership::Unknown)]), unclear(Rule::Approvers));
    assert_eq!(bob(Some("acme"), &[]), unclear(Rule::Approvers), "not read is not known");
    // The same group id, known from another install, says nothing here.
    assert_eq!(bob(Some("beta"), &[("acme", Membership::Yes)]), refused(Rule::Approvers));
    assert_eq!(bob(Some("beta"), &[("beta", Membership::Yes)]), refused(Rule::Approvers));
    assert_eq!(bob(Some("acme"), &[("beta", Membership::Yes)]), unclear(Rule::Approvers));
    assert_eq!(bob(None, &[("acme", Membership::Yes)]), refused(Rule::Approvers));
}

#[test]
fn an_unknown_group_does_not_matter_when_another_approver_passes() {
    let case = Case::with(|c| {
        c.subject = Some(person("paul"));
        c.member_of("acme", Membership::Unknown);
        c.approvers(&["release", "other"]);
    });
    assert_eq!(case.ask(), ALLOWED);
    let case = Case::with(|c| {
        c.subject = Some(person("olga"));
        c.member_of("acme", Membership::Unknown);
        c.approvers(&["release", "owner"]);
    });
    assert_eq!(case.ask(), ALLOWED);
}

#[test]
fn the_owner() {
    let as_owner = |owner: Option<&str>, subject: &str| {
        Case::with(|c| {
            c.approvers(&["owner"]);
            c.owner = owner.map(person);
            c.subject = Some(person(subject));
        })
        .ask()
    };
    assert_eq!(as_owner(Some("olga"), "olga"), ALLOWED);
    assert_eq!(as_owner(Some("olga"), "dana"), refused(Rule::Approvers));
    assert_eq!(as_owner(None, "dana"), unclear(Rule::Approvers));
}

#[test]
fn self_approval() {
    let asked = |owner: Option<&str>, action: Action, before_sending| {
        Case::with(|c| {
            c.route.as_mut().unwrap().self_approval = false;
            c.owner = owner.map(person);
            c.action = action;
            c.before_sending = before_sending;
        })
        .ask()
    };
    for before_sending in [false, true] {
        assert_eq!(asked(Some("olga"), APPROVE, before_sending), ALLOWED);
        assert_eq!(asked(Some("dana"), APPROVE, before_sending), refused(Rule::SelfApproval));
        assert_eq!(asked(Some("dana"), DENY, before_sending), refused(Rule::SelfApproval));
        assert_eq!(asked(None, APPROVE, before_sending), unclear(Rule::SelfApproval));
    }
    let case = Case::with(|c| c.owner = None);
    assert_eq!(case.ask(), ALLOWED, "nobody asks where it is not forbidden");
}

#[test]
fn vote() {
    let voted = |subject: &str, action: Action| {
        Case::with(|c| {
            c.press("dana", APPROVE, 2);
            c.groups[0].subjects.push(person("bob"));
            c.subject = Some(person(subject));
            c.action = action;
        })
        .ask()
    };
    assert_eq!(voted("dana", APPROVE), refused(Rule::Vote));
    assert_eq!(voted("dana", DENY), ALLOWED);
    assert_eq!(voted("dana", Action::Withdraw), ALLOWED);
    assert_eq!(voted("bob", APPROVE), ALLOWED);
    assert_eq!(voted("bob", Action::Withdraw), refused(Rule::Vote));
}

#[test]
fn a_vote_may_be_taken_back_whatever_became_of_the_route() {
    for change in [
        (|c| c.approvers(&[])) as fn(&mut Case),
        |c| c.approvers(&["other"]),
        |c| c.route = None,
        |c| {
            c.owner = None;
            c.route.as_mut().unwrap().self_approval = false;
        },
        |c| c.must_view = true,
    ] {
        let case = Case::with(|c| {
            c.press("dana", APPROVE, 2);
            c.action = Action::Withdraw;
            change(c);
        });
        assert_eq!(case.ask(), ALLOWED);
    }
}

#[test]
fn a_card_that_shows_another_form() {
    assert_eq!(Case::with(|c| c.shown = Some(digest(2))).ask(), refused(Rule::Digest));
    assert_eq!(Case::with(|c| c.shown = None).ask(), ALLOWED);
}

#[test]
fn full_view_is_needed_for_approve_only() {
    let judged = Case::with(|c| c.must_view = true).judge();
    assert_eq!((judged.verdict, judged.rule), refused(Rule::FullView));
    assert_eq!(judged.needs, [Need::FullView]);
    let judged = Case::with(|c| {
        c.must_view = true;
        c.action = DENY;
    })
    .judge();
    assert_eq!((judged.verdict, judged.needs.len()), (Verdict::Allow, 0));
}

#[test]
fn before_sending_only_the_person_is_judged() {
    let case = Case::with(|c| {
        c.press("dana", APPROVE, 1);
        c.before_sending = true;
        c.shown = Some(digest(9));
    });
    let judged = case.judge();
    assert_eq!((judged.verdict, judged.rule), ALLOWED);
    let rules: Vec<Rule> = judged.trace.iter().map(|line| line.rule).collect();
    assert_eq!(rules, [Rule::Link, Rule::Person, Rule::Approvers]);
    let unseen = Case { must_view: true, ..case.clone() };
    assert_eq!(unseen.ask(), refused(Rule::FullView), "what was cut is still not seen");
    let case = Case { groups: vec![], ..case };
    assert_eq!(case.ask(), refused(Rule::Approvers), "the right was lost");
}

/// With `reason_on_deny`, a denial without one (from an older card) is refused, at the press and before it
/// is sent; nothing else needs one.
#[test]
fn a_denial_needs_a_reason_where_the_route_says_so() {
    let deny = |reason: Option<&str>| Action::Decide(Decision::Deny { reason: reason.map(Into::into) });
    for before_sending in [false, true] {
        let judged = |action: Action| {
            Case::with(|c| {
                c.route.as_mut().unwrap().reason_on_deny = true;
                c.action = action;
                c.before_sending = before_sending;
            })
            .judge()
        };
        for blank in [None, Some(""), Some(" \n\u{200b}")] {
            let judged = judged(deny(blank));
            assert_eq!((judged.verdict, judged.rule), refused(Rule::Reason), "{blank:?}");
            assert_eq!(judged.needs, [Need::Reason]);
        }
        let given = judged(deny(Some("not on a Friday")));
        assert_eq!((given.verdict, given.needs.len()), (Verdict::Allow, 0));
        let approved = judged(APPROVE);
        assert_eq!((approved.verdict, approved.needs.len()), (Verdict::Allow, 0));
    }
}

/// With `confirm`, only an Approve that the platform asked about counts; before any press it is a need.
#[test]
fn approve_is_asked_about_once_more_where_the_route_says_so() {
    for before_sending in [false, true] {
        let judged = |asked, action: Action| {
            Case::with(|c| {
                c.route.as_mut().unwrap().confirm = true;
                c.asked = asked;
                c.action = action;
                c.before_sending = before_sending;
            })
            .judge()
        };
        let unasked = judged(Some(false), APPROVE);
        assert_eq!((unasked.verdict, unasked.rule), refused(Rule::Digest));
        assert_eq!((unasked.needs, unasked.outdated), (vec![Need::Confirm], true));
        let asked = judged(Some(true), APPROVE);
        assert_eq!((asked.verdict, asked.needs, asked.outdated), (Verdict::Allow, vec![], false));
        let before = judged(None, APPROVE);
        assert_eq!((before.verdict, before.needs), (Verdict::Allow, vec![Need::Confirm]));
        assert_eq!(judged(Some(false), DENY).verdict, Verdict::Allow);
    }
}

/// Everything refuses; mending one rule after the other shows the next, in the order of the contract.
#[test]
fn the_first_rule_that_refused_is_named() {
    type Mend = fn(&mut Case);
    let mut case = Case::with(|c| {
        c.press("dana", APPROVE, 2);
        c.ends();
        c.subject = None;
        c.standing = Standing::Unfit(Unfit::Guest);
        c.approvers(&[]);
        c.route.as_mut().unwrap().self_approval = false;
        c.owner = Some(person("dana"));
        c.shown = Some(digest(2));
        c.must_view = true;
        c.route.as_mut().unwrap().confirm = true;
        c.route.as_mut().unwrap().reason_on_deny = true;
    });
    let steps: [(Rule, Mend); 10] = [
        (Rule::State, |c| {
            c.machine = Machine::opened(digest(1), Millis(0));
            c.press("dana", APPROVE, 2);
        }),
        (Rule::Link, |c| c.subject = Some(person("dana"))),
        (Rule::Person, |c| c.standing = Standing::Member),
        (Rule::Approvers, |c| c.approvers(&["release"])),
        (Rule::SelfApproval, |c| c.owner = Some(person("olga"))),
        (Rule::Vote, |c| c.machine.votes.clear()),
        (Rule::Digest, |c| c.shown = Some(digest(1))),
        (Rule::Digest, |c| c.asked = Some(true)),
        (Rule::FullView, |c| {
            c.must_view = false;
            c.action = DENY;
        }),
        (Rule::Reason, |c| c.route.as_mut().unwrap().reason_on_deny = false),
    ];
    for (rule, mend) in steps {
        assert_eq!(case.ask(), refused(rule));
        mend(&mut case);
    }
    assert_eq!(case.ask(), ALLOWED);
}

#[test]
fn what_refuses_for_certain_is_not_hidden_by_what_could_not_be_checked() {
    let case = Case::with(|c| {
        c.standing = Standing::Unknown;
        c.approvers(&["other"]);
    });
    assert_eq!(case.ask(), refused(Rule::Approvers));
}

fn any_case() -> impl Strategy<Value = Case> {
    let standing = prop_oneof![
        4 => Just(Standing::Member),
        1 => Just(Standing::Unknown),
        1 => Just(Standing::Unfit(Unfit::Guest)),
        1 => Just(Standing::Unfit(Unfit::Bot)),
    ];
    let membership = prop_oneof![Just(Membership::Yes), Just(Membership::No), Just(Membership::Unknown)];
    let who = || prop::option::weighted(0.8, prop::sample::select(vec!["dana", "olga", "bob"]));
    let approvers = prop::collection::vec(prop::sample::select(vec!["release", "other", "owner"]), 0..3);
    let action = prop_oneof![Just(APPROVE), Just(DENY), Just(Action::Withdraw)];
    let flags = (prop::bool::weighted(0.2), any::<bool>(), any::<bool>(), any::<bool>(), 0..4_u8);
    let asks = (any::<bool>(), any::<bool>(), any::<bool>());
    let who = (who(), who());
    (standing, prop::option::of(membership), who, approvers, action, flags, asks).prop_map(
        |(
            standing,
            membership,
            (subject, owner),
            approvers,
            action,
            (view, own, sending, voted, state),
            (confirm, asked, reason),
        )| {
            Case::with(|c| {
                c.approvers(&approvers);
                c.route.as_mut().unwrap().confirm = confirm;
                c.route.as_mut().unwrap().reason_on_deny = reason;
                c.asked = Some(asked);
                c.route.as_mut().unwrap().self_approval = own;
                if voted {
                    c.press("dana", APPROVE, 3);
                }
                match state {
                    0 => c.ends(),
                    1 => c.press("eve", DENY, 1),
                    _ => {}
                }
                c.standing = standing;
                c.subject = subject.map(person);
                c.owner = owner.map(person);
                c.action = action;
                c.must_view = view;
                c.before_sending = sending;
                if let Some(membership) = membership {
                    c.member_of("acme", membership);
                }
            })
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_verdict_is_what_the_trace_says(case in any_case()) {
        let judged = case.judge();
        let all = |result| judged.trace.iter().all(|line| line.result == result);
        let any = |result| judged.trace.iter().any(|line| line.result == result);
        match judged.verdict {
            Verdict::Allow => prop_assert!(all(Passed::Pass) && judged.needs.is_empty()),
            Verdict::Refuse => prop_assert!(any(Passed::Fail)),
            Verdict::Undetermined => prop_assert!(any(Passed::Unknown) && !any(Passed::Fail)),
        }
        let mut rules: Vec<Rule> = judged.trace.iter().map(|line| line.rule).collect();
        rules.dedup();
        prop_assert_eq!(rules.len(), judged.trace.len(), "each rule speaks once");
    }

    #[test]
    fn what_becomes_unknown_never_turns_a_no_into_a_yes(case in any_case(), what in 0..3_u8) {
        let before = case.ask().0;
        let mut less = case;
        match what {
            0 => less.standing = Standing::Unknown,
            1 => less.owner = None,
            _ => less.memberships.clear(),
        }
        let after = less.ask().0;
        prop_assert!(after != Verdict::Allow || before == Verdict::Allow, "{before:?} became {after:?}");
    }
}

//! What the Slack templates are rendered with.
//!
//! Texts in a `.mrkdwn` context are neutralised by the caller and escaped by the template; values
//! of type [`Markup`] (mentions, dates, checked addresses) are Slack markup of ours and stay.

mod views;

pub use views::{Confirm, ViewText};

use super::{Context, Known, Markup, known};
use serde::Serialize;

fn markup(text: String) -> Markup {
    Markup::of(text)
}

pub(super) fn all() -> Vec<Known> {
    vec![
        known::<Head>(),
        known::<Text>(),
        known::<Facts>(),
        known::<Words>(),
        known::<Asked>(),
        known::<Cut>(),
        known::<Notes>(),
        known::<State>(),
        known::<Reason>(),
        known::<Foot>(),
        known::<Button>(),
        known::<Unknown>(),
        known::<NoticeText>(),
        known::<CommandAnswer>(),
        known::<TestCard>(),
        known::<Confirm>(),
        known::<ViewText>(),
        known::<WaitingText>(),
        known::<WaitingItem>(),
        known::<CrowdedText>(),
        known::<AlertText>(),
        known::<Ping>(),
    ]
}

/// Every `status` of a card.
const STATUSES: [&str; 5] = ["open", "read_only", "delivering", "paused", "ended"];
const KINDS: [&str; 4] = ["approval", "question", "connection", "unknown"];
const OUTCOMES: [&str; 9] =
    ["approved", "denied", "answered", "connected", "declined", "canceled", "failed", "elsewhere", "gone"];
/// Every decision as a delivering card names it.
const DECISIONS: [&str; 5] = ["approve", "deny", "answer", "connected", "decline"];

/// The header line.
#[derive(Debug, Clone, Serialize)]
pub struct Head {
    pub kind: &'static str,
    pub status: &'static str,
    /// Empty unless ended.
    pub outcome: &'static str,
    pub agent: String,
}

impl Context for Head {
    const NAME: &'static str = "slack/head.txt";
    fn samples() -> Vec<Self> {
        let mut samples = vec![];
        for kind in KINDS {
            for status in STATUSES {
                for outcome in if status == "ended" { &OUTCOMES[..] } else { &[""] } {
                    samples.push(Self { kind, status, outcome, agent: "Release agent".into() });
                }
            }
        }
        samples
    }
}

/// The top-level text: notification, screen reader, search. `subject` is untrusted and stands last.
#[derive(Debug, Clone, Serialize)]
pub struct Text {
    pub kind: &'static str,
    pub status: &'static str,
    pub outcome: &'static str,
    pub runtime: String,
    pub by: Option<Markup>,
    pub decision: &'static str,
    pub votes: usize,
    pub needed: u32,
    pub subject: String,
}

impl Context for Text {
    const NAME: &'static str = "slack/text.mrkdwn";
    fn samples() -> Vec<Self> {
        let mut samples = vec![];
        for head in Head::samples() {
            for by in [None, Some(markup("<@U0DANA>".into()))] {
                for decision in
                    if ["delivering", "paused"].contains(&head.status) { &DECISIONS[..] } else { &[""] }
                {
                    samples.push(Self {
                        kind: head.kind,
                        status: head.status,
                        outcome: head.outcome,
                        runtime: "prod".into(),
                        by: by.clone(),
                        decision,
                        votes: 1,
                        needed: 2,
                        subject: "Release agent: ci / deploy".into(),
                    });
                }
            }
        }
        samples
    }
}

/// A label and a value from runtime fields.
#[derive(Debug, Clone, Serialize)]
pub struct Facts {
    /// `title`, `agent`, or the runtime's field name.
    pub label: String,
    pub value: String,
}

impl Context for Facts {
    const NAME: &'static str = "slack/fact.txt";
    fn samples() -> Vec<Self> {
        ["title", "agent", "server", "tool", "reason", "command", "machine", "app", "other"]
            .map(|label| Self { label: label.into(), value: "deploy".into() })
            .into()
    }
}

/// What stands above the agent's words; `empty` when there are none.
#[derive(Debug, Clone, Serialize)]
pub struct Words {
    pub empty: bool,
}

impl Context for Words {
    const NAME: &'static str = "slack/words.txt";
    fn samples() -> Vec<Self> {
        vec![Self { empty: false }, Self { empty: true }]
    }
}

/// One question of a form shown read-only.
#[derive(Debug, Clone, Serialize)]
pub struct Asked {
    pub number: usize,
    pub of: usize,
    pub text: String,
    pub options: Vec<AskedOption>,
    pub multiple: bool,
    pub free_text: bool,
}

/// One option of it.
#[derive(Debug, Clone, Serialize)]
pub struct AskedOption {
    pub number: usize,
    pub label: String,
    pub description: String,
}

impl Context for Asked {
    const NAME: &'static str = "slack/question.txt";
    fn samples() -> Vec<Self> {
        let option = |description: &str| AskedOption {
            number: 1,
            label: "EU".into(),
            description: description.into(),
        };
        let mut samples = vec![];
        for (of, multiple, free_text) in
            [(1, false, true), (2, true, false), (2, true, true), (1, false, false)]
        {
            samples.push(Self {
                number: 1,
                of,
                text: "Which region?".into(),
                options: vec![option(""), option("Europe")],
                multiple,
                free_text,
            });
        }
        samples
    }
}

/// The mark in the place of what did not fit.
#[derive(Debug, Clone, Serialize)]
pub struct Cut {
    /// Characters left out, as a reader counts them.
    pub count: usize,
}

impl Context for Cut {
    const NAME: &'static str = "slack/cut.txt";
    fn samples() -> Vec<Self> {
        vec![Self { count: 1 }, Self { count: 2 }, Self { count: 12_345 }]
    }
}

/// What the card says about itself; may be empty.
#[derive(Debug, Clone, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "five independent facts for one template")]
pub struct Notes {
    pub arguments_withheld: bool,
    pub cut: bool,
    /// While something is cut, Approve needs that all of it was opened.
    pub gated: bool,
    pub read_only: bool,
    /// The card still takes answers.
    pub open: bool,
    pub kind: &'static str,
}

impl Context for Notes {
    const NAME: &'static str = "slack/notes.txt";
    fn samples() -> Vec<Self> {
        let mut samples = vec![];
        for bits in 0..32_u8 {
            for kind in KINDS {
                samples.push(Self {
                    arguments_withheld: bits & 1 > 0,
                    cut: bits & 2 > 0,
                    read_only: bits & 4 > 0,
                    open: bits & 8 > 0,
                    gated: bits & 16 > 0,
                    kind,
                });
            }
        }
        samples
    }
}

/// Votes, delivery, outcome.
#[derive(Debug, Clone, Serialize)]
pub struct State {
    pub status: &'static str,
    pub outcome: &'static str,
    pub rejected: bool,
    pub by: Option<Markup>,
    /// What was chosen elsewhere, as a control's word; empty when unknown.
    pub decision: &'static str,
    pub accepted: bool,
    pub at: Markup,
    /// Votes cast; `votes` may name fewer.
    pub voted: usize,
    /// Once it has ended: those who approved before `by`, and `voted` is how many.
    pub votes: Vec<Markup>,
    pub needed: u32,
}

impl Context for State {
    const NAME: &'static str = "slack/state.mrkdwn";
    fn samples() -> Vec<Self> {
        let at = markup("<!date^1796000009^{date_short_pretty} {time}|2026-11-30 00:53 UTC>".into());
        let base = Self {
            status: "open",
            outcome: "",
            rejected: false,
            by: None,
            decision: "",
            accepted: false,
            at,
            voted: 2,
            votes: vec![markup("<@U0DANA>".into()), Markup::of("`kim`".into())],
            needed: 3,
        };
        let mut samples = vec![base.clone()];
        for by in [None, Some(markup("<@U0DANA>".into()))] {
            for accepted in [false, true] {
                for (status, decision) in
                    ["delivering", "paused"].into_iter().flat_map(|s| DECISIONS.map(|decision| (s, decision)))
                {
                    samples.push(Self { status, by: by.clone(), accepted, decision, ..base.clone() });
                }
            }
            for outcome in OUTCOMES {
                for rejected in [false, true] {
                    for decision in ["", "approve", "deny", "answer", "connected", "decline"] {
                        samples.push(Self {
                            status: "ended",
                            by: by.clone(),
                            outcome,
                            rejected,
                            decision,
                            ..base.clone()
                        });
                    }
                }
            }
        }
        samples
    }
}

/// A person's own words with a denial.
#[derive(Debug, Clone, Serialize)]
pub struct Reason {
    pub reason: String,
}

impl Context for Reason {
    const NAME: &'static str = "slack/reason.txt";
    fn samples() -> Vec<Self> {
        vec![Self { reason: "not on a Friday".into() }]
    }
}

/// Where it comes from, who may answer, since when.
#[derive(Debug, Clone, Serialize)]
pub struct Foot {
    pub runtime: String,
    pub owner: Option<Markup>,
    pub approvers: Vec<String>,
    /// So many more may answer and are not named.
    pub more: usize,
    pub opened: Markup,
    pub short_id: String,
    pub details_url: Option<Markup>,
}

impl Context for Foot {
    const NAME: &'static str = "slack/foot.mrkdwn";
    fn samples() -> Vec<Self> {
        let full = Self {
            runtime: "prod".into(),
            owner: Some(markup("<@U0DANA>".into())),
            approvers: vec!["release".into(), "owner".into()],
            more: 0,
            opened: markup("<!date^1796000000^{date_short_pretty} {time}|2026-11-30 00:53 UTC>".into()),
            short_id: "deadbeef".into(),
            details_url: Some(markup("https://app.example/tasks/t1".into())),
        };
        let crowd = Self { more: 5, ..full.clone() };
        vec![full.clone(), crowd, Self { owner: None, approvers: vec![], details_url: None, ..full }]
    }
}

/// A control's label; with `about`, the longer label for screen readers.
#[derive(Debug, Clone, Serialize)]
pub struct Button {
    pub control: &'static str,
    pub about: Option<String>,
}

impl Context for Button {
    const NAME: &'static str = "slack/button.txt";
    fn samples() -> Vec<Self> {
        let mut samples = vec![];
        for control in ["approve", "approve_confirmed", "deny", "deny_reason", "show_all", "withdraw"] {
            samples.push(Self { control, about: None });
            samples.push(Self { control, about: Some("ci / deploy".into()) });
        }
        samples
    }
}

/// What replaces a card whose state nobody knows any more.
#[derive(Debug, Clone, Serialize)]
pub struct Unknown {
    /// `head` or `body`.
    pub part: &'static str,
}

impl Context for Unknown {
    const NAME: &'static str = "slack/unknown.txt";
    fn samples() -> Vec<Self> {
        vec![Self { part: "head" }, Self { part: "body" }]
    }
}

/// What a clicker is told privately.
#[derive(Debug, Clone, Serialize)]
pub struct NoticeText {
    pub notice: &'static str,
    /// The state machine's reason, for `refused` and `vote_voided`.
    pub why: &'static str,
    pub unfit: &'static str,
    pub outcome: &'static str,
    pub by: Option<Markup>,
    pub at: Markup,
    pub groups: Vec<String>,
    /// The account as an operator writes it.
    pub user: String,
    /// What the person typed stands below.
    pub given_back: bool,
}

impl NoticeText {
    /// A notice without any of the particulars.
    #[must_use]
    pub fn plain(notice: &'static str) -> Self {
        Self {
            notice,
            why: "",
            unfit: "",
            outcome: "",
            by: None,
            at: markup(String::new()),
            groups: vec![],
            user: String::new(),
            given_back: false,
        }
    }
}

/// How many requests wait for room in a channel.
#[derive(Debug, Clone, Serialize)]
pub struct CrowdedText {
    pub count: i64,
}

impl Context for CrowdedText {
    const NAME: &'static str = "slack/crowded.mrkdwn";
    fn samples() -> Vec<Self> {
        vec![Self { count: 1 }, Self { count: 12 }]
    }
}

/// What operators are told of an alert: `text` for the notification, `body` above its particulars.
#[derive(Debug, Clone, Serialize)]
pub struct AlertText {
    pub part: &'static str,
    /// The first word of the alert's key; one that is not known here has general words.
    pub kind: String,
    pub about: String,
    pub detail: String,
    pub since: Markup,
    pub over: Option<Markup>,
}

/// The kinds of alerts that have words of their own, and one that has none.
pub(crate) const ALERTS: [&str; 20] = [
    "place",
    "chat",
    "pin",
    "card",
    "edit",
    "group",
    "unrouted",
    "unreadable",
    "not_installed",
    "runtime",
    "answers",
    "absence",
    "paused",
    "inbound",
    "other_app",
    "people",
    "views",
    "home",
    "rate",
    "another",
];

impl Context for AlertText {
    const NAME: &'static str = "slack/alert.mrkdwn";
    fn samples() -> Vec<Self> {
        let at = || markup("<!date^1796000009^{date_short_pretty} {time}|2026-11-30 00:53 UTC>".into());
        let mut samples = vec![];
        for kind in ALERTS {
            for part in ["text", "body"] {
                for over in [None, Some(at())] {
                    for about in ["", "slack:acme:#ops"] {
                        samples.push(Self {
                            part,
                            kind: kind.into(),
                            about: about.into(),
                            detail: about.into(),
                            since: at(),
                            over: over.clone(),
                        });
                    }
                }
            }
        }
        samples
    }
}

/// Who is pinged by a card's first post; `more` are not named because they did not fit.
#[derive(Debug, Clone, Serialize)]
pub struct Ping {
    pub mentions: Vec<Markup>,
    pub more: usize,
}

impl Context for Ping {
    const NAME: &'static str = "slack/ping.mrkdwn";
    fn samples() -> Vec<Self> {
        let mentions = vec![markup("<@U0DANA>".into()), markup("<!subteam^S0RELEASE>".into())];
        vec![Self { mentions: mentions.clone(), more: 0 }, Self { mentions, more: 3 }]
    }
}

/// The private answer to a slash command that lists nothing.
#[derive(Debug, Clone, Serialize)]
pub struct CommandAnswer {
    /// `help`, `not_known`, `unlink`, `not_installed`, `unreadable` or `later`.
    pub answer: &'static str,
}

impl Context for CommandAnswer {
    const NAME: &'static str = "slack/command.mrkdwn";
    fn samples() -> Vec<Self> {
        ["help", "not_known", "unlink", "not_installed", "unreadable", "later"]
            .map(|answer| Self { answer })
            .into()
    }
}

/// A line of what waits for one person.
#[derive(Debug, Clone, Serialize)]
pub struct WaitingText {
    /// `head`, `nothing`, `more`, `unchecked`, `unfit`, `unlinked`, `could_not_check`, `open` (the link's label),
    /// `notices` (the head of kept notices) or `kept` (when one was).
    pub part: &'static str,
    pub count: usize,
    /// There may be more than `count`.
    pub beyond: bool,
    pub unfit: &'static str,
    /// The account as an operator writes it.
    pub user: String,
    pub at: Markup,
}

impl WaitingText {
    /// A part without any of the particulars.
    #[must_use]
    pub fn of(part: &'static str) -> Self {
        Self { part, count: 0, beyond: false, unfit: "", user: String::new(), at: markup(String::new()) }
    }
}

impl Context for WaitingText {
    const NAME: &'static str = "slack/waiting.mrkdwn";
    fn samples() -> Vec<Self> {
        let mut samples = vec![];
        for part in ["head", "nothing", "more", "unchecked"] {
            for (count, beyond) in [(1, false), (2, false), (21, true)] {
                samples.push(Self { count, beyond, ..Self::of(part) });
            }
        }
        for unfit in ["guest", "stranger", "bot", "deactivated", "invited", "timed_out", "nobody"] {
            samples.push(Self { unfit, ..Self::of("unfit") });
        }
        samples.push(Self { user: "U0DANA".into(), ..Self::of("unlinked") });
        samples.extend(["could_not_check", "open", "notices"].map(Self::of));
        let at = markup("<!date^1796000000^{date_short_pretty} {time}|2026-11-30 00:53 UTC>".into());
        samples.push(Self { at, ..Self::of("kept") });
        samples
    }
}

/// What stands below one interaction of the list.
#[derive(Debug, Clone, Serialize)]
pub struct WaitingItem {
    pub runtime: Markup,
    pub opened: Markup,
    pub channel: Option<Markup>,
    pub voted: usize,
    pub needed: u32,
    pub short_id: String,
}

impl Context for WaitingItem {
    const NAME: &'static str = "slack/waiting_item.mrkdwn";
    fn samples() -> Vec<Self> {
        let full = Self {
            runtime: markup("`prod`".into()),
            opened: markup("<!date^1796000000^{date_short_pretty} {time}|2026-11-30 00:53 UTC>".into()),
            channel: Some(markup("<#C0OPS>".into())),
            voted: 1,
            needed: 2,
            short_id: "deadbeef".into(),
        };
        vec![full.clone(), Self { channel: None, voted: 0, needed: 1, ..full }]
    }
}

/// What a test card says in the place of an agent: its `title` or its `prompt`.
#[derive(Debug, Clone, Serialize)]
pub struct TestCard {
    pub part: &'static str,
}

impl Context for TestCard {
    const NAME: &'static str = "slack/test.txt";
    fn samples() -> Vec<Self> {
        vec![Self { part: "title" }, Self { part: "prompt" }]
    }
}

/// Every reason of the state machine, in its own words.
pub(crate) const WHYS: [&str; 15] = [
    "already_ended",
    "being_answered",
    "already_recorded",
    "changed",
    "no_vote",
    "unverified",
    "right_lost",
    "too_late",
    "not_owner",
    "forbidden",
    "not_accepted",
    "unconfirmed",
    "contradicted",
    "malformed",
    "unmappable",
];

impl Context for NoticeText {
    const NAME: &'static str = "slack/notice.mrkdwn";
    fn samples() -> Vec<Self> {
        let mut samples = vec![];
        let dana = || Some(markup("<@U0DANA>".into()));
        for outcome in OUTCOMES {
            for by in [None, dana()] {
                samples.push(Self { outcome, by, ..Self::plain("already_ended") });
            }
        }
        samples.push(Self { by: dana(), ..Self::plain("being_answered") });
        samples.push(Self { user: "slack:acme:U0DANA".into(), ..Self::plain("unlinked") });
        for unfit in ["guest", "stranger", "bot", "deactivated", "invited", "timed_out", "nobody"] {
            samples.push(Self { unfit, ..Self::plain("unfit") });
        }
        for groups in [vec![], vec!["release".to_owned(), "owner".to_owned()]] {
            samples.push(Self { groups, ..Self::plain("not_allowed") });
        }
        for notice in [
            "self_approval",
            "could_not_check",
            "must_view",
            "needs_reason",
            "outdated",
            "press_again",
            "opens_later",
            "unknown_control",
            "not_installed",
            "still_trying",
            "needs_attention",
            "paused",
        ] {
            samples.push(Self::plain(notice));
        }
        for why in WHYS {
            for by in [None, dana()] {
                samples.push(Self { why, by, ..Self::plain("refused") });
            }
            samples.push(Self { why, ..Self::plain("vote_voided") });
        }
        let given_back = |sample: &Self| Self { given_back: true, ..sample.clone() };
        let with_words: Vec<Self> = samples.iter().map(given_back).collect();
        samples.extend(with_words);
        samples
    }
}

use super::super::limits::DESCRIPTION;
use super::super::rules;
use super::*;
use crate::domain::card::{Asks, PersonRef};
use crate::domain::clock::Millis;
use crate::domain::form::{Choice, Fact as Given, Form, Question};
use crate::domain::ids::CardId;
use proptest::prelude::*;
use std::sync::LazyLock;
use uuid::Uuid;

pub(in crate::chat::discord) static WORDS: LazyLock<Templates> =
    LazyLock::new(|| Templates::load("en", None).unwrap());

const OPENED: Millis = Millis(1_796_000_000_000);
const LATER: Millis = Millis(1_796_000_600_000);
const MARA: &str = "3300000000000000003";

/// Everything that could be markup, a mention or a link in one text.
pub(in crate::chat::discord) const HOSTILE: &str = "@everyone @here <@1> <@!1> <@&2> <#3> **x** ||x|| [ok](https://evil.example) # x\n> x\n- x\n\
    1. x <t:0:R> </a:1> <id:customize> <:a:1> `x` ```x``` ~~x~~ __x__ evil.example www.evil.example";

fn someone(subject: &str, mention: Option<&str>) -> PersonRef {
    PersonRef { subject: subject.into(), mention: mention.map(str::to_owned) }
}

fn mara() -> PersonRef {
    someone("mara@example.com", Some(MARA))
}

fn fact(label: &str, value: &str) -> Given {
    Given { label: label.into(), value: value.into() }
}

fn open(votes: Vec<PersonRef>, needed: u32) -> Status {
    Status::Open { votes, needed }
}

fn ended(outcome: Outcome) -> Status {
    Status::Ended {
        outcome,
        rejected: false,
        by: None,
        voters: vec![],
        elsewhere_by: None,
        elsewhere_what: None,
        at: LATER,
        reason: None,
    }
}

pub(in crate::chat::discord) fn approval(status: Status) -> Card {
    let controls = Card::controls_for(&Kind::Approval, &status, Asks::default());
    Card {
        form: Form {
            kind: Kind::Approval,
            title: "pager / close_incident".into(),
            prompt: "Approve pager / close_incident?".into(),
            facts: vec![fact("server", "pager"), fact("tool", "close_incident")],
            questions: vec![],
            arguments_withheld: true,
        },
        agent: "Release agent".into(),
        runtime: "prod".into(),
        owner: Some(mara()),
        approvers: vec!["release".into(), "owner".into()],
        opened: OPENED,
        short_id: "deadbeef".into(),
        details_url: Some("https://app.example/tasks/t1?a=1&b=2".into()),
        status,
        controls,
        gated: true,
        mention: Mention::default(),
    }
}

pub(in crate::chat::discord) fn open_approval() -> Card {
    approval(open(vec![], 1))
}

fn question() -> Card {
    let choice = |label: &str, description: &str| Choice {
        label: label.into(),
        description: description.into(),
        value: json!(label),
    };
    let mut card = approval(Status::ReadOnly);
    card.form = Form {
        kind: Kind::Question,
        title: String::new(),
        prompt: "Which region?".into(),
        facts: vec![],
        questions: vec![Question {
            id: "q1".into(),
            text: "Which region?".into(),
            options: vec![choice("EU", "Europe"), choice("US", "")],
            multiple: false,
            free_text: true,
        }],
        arguments_withheld: false,
    };
    card.controls = vec![Control::ShowAll];
    card
}

pub(in crate::chat::discord) fn marks() -> Marks {
    let token = |control, token: &str| (control, token.to_owned());
    Marks {
        card: CardId(Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0001)),
        rev: 3,
        tokens: vec![
            token(Control::Approve, "k_approve"),
            token(Control::ApproveConfirmed, "k_confirmed"),
            token(Control::Deny, "k_deny"),
            token(Control::DenyReason, "k_reason"),
            token(Control::ShowAll, "k_all"),
            token(Control::Withdraw, "k_withdraw"),
        ],
    }
}

/// Drawn, and within every rule in all three drawings.
fn drawn(card: &Card) -> Drawn {
    let drawn = super::card(&WORDS, card, &marks());
    for body in [&drawn.body, &drawn.compact["plain"], &drawn.compact["withheld"]] {
        assert_eq!(rules::message(body), Vec::<String>::new(), "{body:#}");
    }
    assert!((1..=100).contains(&units(drawn.compact["thread"].as_str().unwrap())), "{drawn:#?}");
    drawn
}

fn text(body: &Value, pointer: &str) -> String {
    body.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn labels(body: &Value) -> Vec<String> {
    let rows = body["components"].as_array().unwrap();
    let buttons = rows.iter().flat_map(|row| row["components"].as_array().unwrap());
    buttons.map(|button| button["label"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn an_open_approval() {
    insta::assert_json_snapshot!(drawn(&open_approval()).body);
}

#[test]
fn the_plain_drawing_shows_the_same() {
    insta::assert_json_snapshot!(drawn(&open_approval()).compact);
}

#[test]
fn votes() {
    let card = approval(open(vec![mara(), someone("kim@example.com", None)], 3));
    insta::assert_json_snapshot!(drawn(&card).body);
}

#[test]
fn delivering_and_paused() {
    let by = mara();
    let status = Status::Delivering { by: by.clone(), decision: "approved".into(), accepted: false };
    let delivering = drawn(&approval(status)).body;
    assert_eq!(labels(&delivering), ["Open in the runtime"], "no controls while it is on its way");
    insta::assert_json_snapshot!([
        delivering,
        drawn(&approval(Status::Paused { by, decision: "denied".into() })).body
    ]);
}

/// The evidence stays, the controls go.
#[test]
fn approved_denied_and_elsewhere() {
    let by = |outcome, reason: Option<&str>| {
        let Status::Ended { rejected, voters, elsewhere_by, elsewhere_what, at, .. } = ended(outcome) else {
            unreachable!()
        };
        let reason = reason.map(str::to_owned);
        Status::Ended {
            outcome,
            rejected,
            by: Some(mara()),
            voters,
            elsewhere_by,
            elsewhere_what,
            at,
            reason,
        }
    };
    let approved = drawn(&approval(by(Outcome::Approved, None))).body;
    let denied = drawn(&approval(by(Outcome::Denied, Some("not on a *Friday*\nask again")))).body;
    let elsewhere = approval(Status::Ended {
        outcome: Outcome::Elsewhere,
        rejected: false,
        by: None,
        voters: vec![],
        elsewhere_by: Some("ops@example.com".into()),
        elsewhere_what: Some(Outcome::Denied),
        at: LATER,
        reason: None,
    });
    let elsewhere = drawn(&elsewhere).body;
    for body in [&approved, &denied, &elsewhere] {
        assert_eq!(body["components"], json!([]));
        assert!(
            text(body, "/embeds/0/description").contains("Approve pager \\/ close\\_incident\\?"),
            "{body:#}"
        );
    }
    insta::assert_json_snapshot!([approved, denied, elsewhere]);
}

#[test]
fn every_other_outcome_has_its_word() {
    let outcomes = [Outcome::Canceled, Outcome::Failed, Outcome::Gone, Outcome::Answered, Outcome::Connected];
    let heads: Vec<_> = outcomes
        .map(|outcome| {
            let body = drawn(&approval(ended(outcome))).body;
            format!(
                "{} | {}",
                text(&body, "/embeds/0/title"),
                text(&body, "/embeds/0/description").split('\n').next().unwrap()
            )
        })
        .into();
    insta::assert_snapshot!(heads.join("\n"));
}

#[test]
fn a_question_is_shown_and_not_answered() {
    insta::assert_json_snapshot!(drawn(&question()).body);
}

#[test]
fn what_is_drawn_for_nobody_knows_what() {
    let unknown = super::unknown(&WORDS);
    assert_eq!(rules::message(&unknown.body), Vec::<String>::new());
    insta::assert_json_snapshot!(unknown.body);
}

#[test]
fn discord_case_20_only_who_is_mentioned_is_pinged() {
    let mut card = open_approval();
    card.mention =
        Mention { users: vec![MARA.into(), "everyone".into()], groups: vec!["2200000000000000002".into()] };
    let body = drawn(&card).body;
    let allowed = json!({"parse": [], "users": [MARA], "roles": ["2200000000000000002"]});
    assert_eq!(body["allowed_mentions"], allowed);
    assert!(
        text(&body, "/content").starts_with("<@&2200000000000000002> <@3300000000000000003> and 1 more "),
        "{body}"
    );
    assert_eq!(drawn(&open_approval()).body["allowed_mentions"], json!({"parse": []}));
}

#[test]
fn discord_case_19_and_21_nothing_foreign_is_markup_mention_or_link() {
    let mut card = approval(Status::Ended {
        outcome: Outcome::Denied,
        rejected: false,
        by: Some(someone(HOSTILE, None)),
        voters: vec![someone(HOSTILE, None)],
        elsewhere_by: Some(HOSTILE.into()),
        elsewhere_what: None,
        at: LATER,
        reason: Some(HOSTILE.into()),
    });
    let all = |card: &mut Card| {
        card.form.title = HOSTILE.into();
        card.form.prompt = HOSTILE.into();
        card.form.facts = ["server", "command", HOSTILE].map(|label| fact(label, HOSTILE)).into();
        card.agent = HOSTILE.into();
        card.owner = Some(someone(HOSTILE, None));
        card.runtime = HOSTILE.into();
        card.approvers = vec![HOSTILE.into()];
        card.short_id = HOSTILE.into();
    };
    all(&mut card);
    let mut fresh = open_approval();
    all(&mut fresh);
    for card in [card, fresh] {
        let drawn = drawn(&card);
        for body in [&drawn.body, &drawn.compact["plain"], &drawn.compact["withheld"]] {
            assert_eq!(body["allowed_mentions"], json!({"parse": []}));
            for shown in active(body) {
                assert_eq!(alive(&shown), None, "{shown}");
            }
        }
    }
}

/// Every text of a message in which Markdown is active.
fn active(body: &Value) -> Vec<String> {
    let mut texts = vec![text(body, "/content")];
    for embed in body["embeds"].as_array().into_iter().flatten() {
        texts.push(text(embed, "/title"));
        texts.push(text(embed, "/description"));
        for field in embed["fields"].as_array().into_iter().flatten() {
            texts.push(text(field, "/name"));
            texts.push(text(field, "/value"));
        }
    }
    texts
}

/// What of a text would still be alive in Discord's eyes, ours taken out.
fn alive(shown: &str) -> Option<String> {
    let mut rest = shown.to_owned();
    for ours in ["**Agent says**", ">>> ", "**Denied**", "**1 of 1**"] {
        rest = rest.replace(ours, "");
    }
    // A block of code: nothing in it is alive.
    if let Some(code) = rest.strip_prefix("```\n").and_then(|code| code.strip_suffix("\n```")) {
        return code.contains("```").then(|| code.to_owned());
    }
    let mut chars = rest.chars().peekable();
    let mut plain = String::new();
    while let Some(c) = chars.next() {
        if c == '\\' {
            chars.next_if(char::is_ascii_punctuation)?;
            plain.push(' ');
        } else {
            plain.push(c);
        }
    }
    // What is left of our own markup.
    let plain = plain.replace("<t:1796000600:f>", "").replace("<@3300000000000000003>", "");
    let plain = plain.replace("[Open in the runtime](https://app.example/tasks/t1?a=1&b=2)", "");
    let bad = |c: char| matches!(c, '*' | '_' | '~' | '`' | '|' | '<' | '>' | '[' | ']' | '#' | '@' | '\\');
    plain.contains(bad).then_some(plain)
}

#[test]
fn discord_case_22_what_is_invisible_is_shown() {
    let mut card = open_approval();
    card.form.prompt = format!("a\u{202e}b\u{200b}c\u{e0100}d\0e{}f", " ".repeat(400));
    let body = drawn(&card).body;
    let shown = text(&body, "/embeds/0/description");
    for escape in ["u\\{202e\\}", "u\\{200b\\}", "u\\{e0100\\}", "u\\{0\\}", "×400"] {
        assert!(shown.contains(escape), "{escape} not in {shown}");
    }
}

#[test]
fn discord_case_11_and_23_what_does_not_fit_is_cut_in_the_middle_and_said() {
    let mut card = open_approval();
    card.form.facts = vec![fact("command", &format!("echo {} && rm -rf /", "x".repeat(5000)))];
    let whole = drawn(&card);
    assert!(whole.cut);
    let command =
        whole.body.pointer("/embeds/0/fields/3/value").or(whole.body.pointer("/embeds/0/fields/2/value"));
    let command = command.and_then(Value::as_str).unwrap().to_owned();
    assert!(command.contains("characters not shown") && command.contains("rm -rf /"), "{command}");
    assert!(
        text(&whole.body, "/embeds/0/description")
            .contains("Approve works for you once you have opened all of it")
    );
    assert_eq!(
        labels(&whole.body),
        ["Approve", "Deny", "Deny with reason…", "Show all", "Open in the runtime"]
    );
    for prompt in [
        "x".repeat(2001),
        "😀".repeat(2000),
        "a\u{301}".repeat(2000),
        "👩\u{200d}".repeat(1500),
        "*".repeat(5000),
    ] {
        let mut card = open_approval();
        card.form.prompt = prompt;
        let shown = drawn(&card);
        assert!(units(&text(&shown.body, "/embeds/0/description")) <= DESCRIPTION);
        assert_eq!(shown.cut, labels(&shown.body).contains(&"Show all".to_owned()));
    }
    // As much is shown when it has ended as when it was open.
    let mut card = approval(ended(Outcome::Approved));
    card.form.prompt = "word ".repeat(3000);
    let mut before = open_approval();
    before.form.prompt.clone_from(&card.form.prompt);
    let words = |card: &Card| {
        let shown = text(&drawn(card).body, "/embeds/0/description");
        shown.split(">>> ").nth(1).unwrap().to_owned()
    };
    assert!(words(&card).len() >= words(&before).len());
}

#[test]
fn discord_case_12_and_14_blank_and_many() {
    let mut card = open_approval();
    card.form.facts = vec![fact("command", ""), fact("machine", " "), fact("app", "\u{200b}")];
    card.form.prompt = " \n ".into();
    let body = drawn(&card).body;
    assert!(text(&body, "/embeds/0/description").ends_with("**Agent says**: (no text given)"), "{body:#}");
    card.form.facts = (0..40).map(|n| fact(&format!("fact {n}"), &"v".repeat(300))).collect();
    let many = drawn(&card);
    assert!(many.cut, "what is left out is said");
}

#[test]
fn discord_case_17_labels_fit_and_hold_no_emoji() {
    let body = drawn(&open_approval()).body;
    let shown = body.to_string();
    assert!(!shown.contains("emoji") && !shown.contains("null") && !shown.contains("attachments"), "{shown}");
    assert!(labels(&body).iter().all(|label| units(label) <= BUTTON));
}

fn any_text() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        4 => "[a-zA-Z ,.]{0,40}",
        1 => proptest::sample::select(vec![HOSTILE, "👨‍👩‍👧‍👦", "e\u{301}\u{302}", "\u{202e}", "\n\n", "```", "𠜎𠜱", "\0", "          ", "****", "\\"])
            .prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
    ];
    (proptest::collection::vec(part, 0..12), prop_oneof![4 => 1_usize..4, 1 => 1_usize..120])
        .prop_map(|(parts, times)| parts.concat().repeat(times))
}

pub(in crate::chat::discord) fn any_card() -> impl Strategy<Value = Card> {
    let facts = proptest::collection::vec((any_text(), any_text()), 0..8);
    let outcome =
        proptest::sample::select(vec![Outcome::Approved, Outcome::Denied, Outcome::Elsewhere, Outcome::Gone]);
    let status = (0..4_u8, outcome, any_text(), proptest::option::of(any_text()), 1_u32..4, any::<i64>());
    (
        status,
        [any_text(), any_text(), any_text(), any_text()],
        facts,
        proptest::collection::vec(any_text(), 0..30),
    )
        .prop_map(
            |(
                (which, outcome, name, reason, needed, at),
                [title, prompt, agent, runtime],
                facts,
                approvers,
            )| {
                let by = PersonRef { subject: name.clone(), mention: None };
                let status = match which {
                    0 => open(vec![by; usize::try_from(needed).unwrap()], needed),
                    1 => Status::ReadOnly,
                    2 => Status::Delivering { by, decision: name, accepted: true },
                    _ => Status::Ended {
                        outcome,
                        rejected: true,
                        voters: vec![by.clone(); 30],
                        by: Some(by),
                        elsewhere_by: Some(name),
                        elsewhere_what: Some(outcome),
                        at: Millis(at),
                        reason,
                    },
                };
                let mut card = approval(status);
                card.form.title = title;
                card.form.prompt = prompt;
                card.form.facts = facts.into_iter().map(|(label, value)| Given { label, value }).collect();
                card.owner = Some(PersonRef { subject: agent.clone(), mention: None });
                card.agent = agent;
                card.runtime = runtime;
                card.approvers = approvers;
                card.opened = Millis(at);
                card
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn discord_case_12_any_card_is_within_every_rule(card in any_card()) {
        let drawn = drawn(&card);
        let shown = drawn.body.to_string();
        prop_assert_eq!(drawn.cut, shown.contains("This card does not show everything"));
        prop_assert_eq!(drawn.cut, drawn.compact["plain"].to_string().contains("This card does not show everything"));
        let hidden = shown.contains(['\u{202e}', '\0']);
        prop_assert!(!hidden);
        for text in active(&drawn.body) {
            // No escape is cut open: a backslash stands before punctuation only.
            let whole = text.replace("\\\\", "");
            prop_assert!(!whole.ends_with('\\'), "{text}");
        }
    }
}

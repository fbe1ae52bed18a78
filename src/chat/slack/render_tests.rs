use super::super::rules;
use super::*;
use crate::domain::card::{Asks, Mention, PersonRef};
use crate::domain::clock::Millis;
use crate::domain::form::{Choice, Fact, Question};
use crate::domain::ids::CardId;
use crate::sandbox::slack::validate;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::sync::LazyLock;
use uuid::Uuid;

#[path = "render_tests/asks.rs"]
mod asks;
#[path = "render_tests/limits.rs"]
mod limits;
#[path = "render_tests/states.rs"]
mod states;

static WORDS: LazyLock<Templates> = LazyLock::new(|| Templates::load("en", None).unwrap());

const OPENED: Millis = Millis(1_796_000_000_000);
const LATER: Millis = Millis(1_796_000_600_000);

fn someone(subject: &str, mention: Option<&str>) -> PersonRef {
    PersonRef { subject: subject.into(), mention: mention.map(str::to_owned) }
}

fn dana() -> PersonRef {
    someone("dana@example.com", Some("U0DANA"))
}

fn kim() -> PersonRef {
    someone("kim@example.com", None)
}

fn fact(label: &str, value: &str) -> Fact {
    Fact { label: label.into(), value: value.into() }
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

fn approval(status: Status) -> Card {
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
        owner: Some(dana()),
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

fn marks() -> Marks {
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

/// Draws, and checks both drawings by our table and by the stand-in's validator.
fn drawn(card: &Card) -> Drawn {
    let drawn = super::card(&WORDS, card, &marks());
    for blocks in [&drawn.body, &drawn.compact] {
        assert_eq!(rules::check(&drawn.text, blocks), Vec::<String>::new(), "{blocks:#}");
        let payload = json!({"channel": "C1", "text": drawn.text, "blocks": blocks});
        let problems = validate::update(&payload, validate::Rules::default());
        assert!(problems.is_empty(), "{problems:?}");
    }
    drawn
}

/// A drawing as text: one line per block.
fn read(blocks: &Value) -> String {
    fn texts(value: &Value, out: &mut Vec<String>) {
        match value {
            Value::Object(map) => {
                if let Some(Value::String(text)) = map.get("text") {
                    out.push(text.clone());
                }
                let inner = ["text", "elements"].into_iter().filter_map(|key| map.get(key));
                inner.for_each(|inner| texts(inner, out));
                if let (Some(action), Some(value)) = (map.get("action_id"), map.get("value")) {
                    out.push(format!(
                        "({} {} {})",
                        action.as_str().unwrap(),
                        value.as_str().unwrap(),
                        map["accessibility_label"]
                    ));
                }
            }
            Value::Array(all) => all.iter().for_each(|one| texts(one, out)),
            _ => {}
        }
    }
    let line = |block: &Value| {
        let mut out = vec![];
        texts(block, &mut out);
        format!("{}: {}", block["type"].as_str().unwrap(), out.join(" | "))
    };
    blocks.as_array().unwrap().iter().map(line).collect::<Vec<_>>().join("\n")
}

fn whole(card: &Card) -> String {
    let drawn = drawn(card);
    format!("{}\n---\n{}", drawn.text, read(&drawn.body))
}

#[test]
fn an_open_approval() {
    insta::assert_snapshot!(whole(&approval(open(vec![], 1))), @r#"
    Approval needed (prod): Release agent: pager / close_incident
    ---
    header: Approval needed: Release agent
    section: Agent: Release agent
    Server: pager
    Tool: close_incident
    rich_text: Agent says | Approve pager / close_incident?
    section: The runtime does not show the arguments of this call.
    actions: Approve | (cs.approve k_approve "Approve pager / close_incident") | Deny | (cs.deny k_deny "Deny pager / close_incident") | Deny with reason… | (cs.deny_reason k_reason "Deny with reason… pager / close_incident")
    context: prod · for <@U0DANA> · may answer: release, owner · opened <!date^1796000000^{date_short_pretty} {time}|2026-11-30 00:53 UTC> · `deadbeef` · <https://app.example/tasks/t1?a=1&b=2|Open in the runtime>
    "#);
}

#[test]
fn the_blocks_of_an_open_approval_as_sent() {
    let card = Card { details_url: None, owner: None, ..approval(open(vec![], 1)) };
    insta::assert_json_snapshot!(drawn(&card).body, @r#"
    [
      {
        "block_id": "cs:01900000-0000-7000-8000-000000000001:3:0",
        "text": {
          "emoji": false,
          "text": "Approval needed: Release agent",
          "type": "plain_text"
        },
        "type": "header"
      },
      {
        "block_id": "cs:01900000-0000-7000-8000-000000000001:3:1",
        "text": {
          "emoji": false,
          "text": "Agent: Release agent\nServer: pager\nTool: close_incident",
          "type": "plain_text"
        },
        "type": "section"
      },
      {
        "block_id": "cs:01900000-0000-7000-8000-000000000001:3:2",
        "elements": [
          {
            "elements": [
              {
                "style": {
                  "bold": true
                },
                "text": "Agent says",
                "type": "text"
              }
            ],
            "type": "rich_text_section"
          },
          {
            "elements": [
              {
                "text": "Approve pager / close_incident?",
                "type": "text"
              }
            ],
            "type": "rich_text_preformatted"
          }
        ],
        "type": "rich_text"
      },
      {
        "block_id": "cs:01900000-0000-7000-8000-000000000001:3:3",
        "text": {
          "emoji": false,
          "text": "The runtime does not show the arguments of this call.",
          "type": "plain_text"
        },
        "type": "section"
      },
      {
        "block_id": "cs:01900000-0000-7000-8000-000000000001:3:4",
        "elements": [
          {
            "accessibility_label": "Approve pager / close_incident",
            "action_id": "cs.approve",
            "style": "primary",
            "text": {
              "emoji": false,
              "text": "Approve",
              "type": "plain_text"
            },
            "type": "button",
            "value": "k_approve"
          },
          {
            "accessibility_label": "Deny pager / close_incident",
            "action_id": "cs.deny",
            "style": "danger",
            "text": {
              "emoji": false,
              "text": "Deny",
              "type": "plain_text"
            },
            "type": "button",
            "value": "k_deny"
          },
          {
            "accessibility_label": "Deny with reason… pager / close_incident",
            "action_id": "cs.deny_reason",
            "text": {
              "emoji": false,
              "text": "Deny with reason…",
              "type": "plain_text"
            },
            "type": "button",
            "value": "k_reason"
          }
        ],
        "type": "actions"
      },
      {
        "block_id": "cs:01900000-0000-7000-8000-000000000001:3:5",
        "elements": [
          {
            "text": "prod · may answer: release, owner · opened <!date^1796000000^{date_short_pretty} {time}|2026-11-30 00:53 UTC> · `deadbeef`",
            "type": "mrkdwn",
            "verbatim": true
          }
        ],
        "type": "context"
      }
    ]
    "#);
}

#[test]
fn the_compact_drawing() {
    insta::assert_snapshot!(read(&drawn(&approval(open(vec![dana()], 2))).compact), @r#"
    section: Approval needed: Release agent
    Agent: Release agent
    Server: pager
    Tool: close_incident
    The runtime does not show the arguments of this call.

    section: Agent says
    Approve pager / close_incident?
    section: *1 of 2*: <@U0DANA>
    actions: Approve | (cs.approve k_approve "Approve pager / close_incident") | Deny | (cs.deny k_deny "Deny pager / close_incident") | Deny with reason… | (cs.deny_reason k_reason "Deny with reason… pager / close_incident") | Withdraw | (cs.withdraw k_withdraw "Withdraw your vote on pager / close_incident")
    "#);
}

#[test]
fn votes_are_named_and_can_be_withdrawn() {
    insta::assert_snapshot!(whole(&approval(open(vec![dana(), kim()], 3))), @r#"
    Approval needed (2 of 3) (prod): Release agent: pager / close_incident
    ---
    header: Approval needed: Release agent
    section: Agent: Release agent
    Server: pager
    Tool: close_incident
    rich_text: Agent says | Approve pager / close_incident?
    section: The runtime does not show the arguments of this call.
    section: *2 of 3*: <@U0DANA>, `kim[@]example[.]com`
    actions: Approve | (cs.approve k_approve "Approve pager / close_incident") | Deny | (cs.deny k_deny "Deny pager / close_incident") | Deny with reason… | (cs.deny_reason k_reason "Deny with reason… pager / close_incident") | Withdraw | (cs.withdraw k_withdraw "Withdraw your vote on pager / close_incident")
    context: prod · for <@U0DANA> · may answer: release, owner · opened <!date^1796000000^{date_short_pretty} {time}|2026-11-30 00:53 UTC> · `deadbeef` · <https://app.example/tasks/t1?a=1&b=2|Open in the runtime>
    "#);
}

#[test]
fn delivering_has_no_controls_and_no_outcome() {
    let delivering = |decision: &str, accepted| {
        approval(Status::Delivering { by: dana(), decision: decision.into(), accepted })
    };
    insta::assert_snapshot!(whole(&delivering("approved", false)), @r"
    <@U0DANA> chose Approve, delivering… (prod): Release agent: pager / close_incident
    ---
    header: Delivering an answer: Release agent
    section: Agent: Release agent
    Server: pager
    Tool: close_incident
    rich_text: Agent says | Approve pager / close_incident?
    section: The runtime does not show the arguments of this call.
    section: <@U0DANA> chose Approve, delivering…
    context: prod · for <@U0DANA> · may answer: release, owner · opened <!date^1796000000^{date_short_pretty} {time}|2026-11-30 00:53 UTC> · `deadbeef` · <https://app.example/tasks/t1?a=1&b=2|Open in the runtime>
    ");
    insta::assert_snapshot!(whole(&delivering("denied", true)), @r"
    <@U0DANA> chose Deny, delivering… (prod): Release agent: pager / close_incident
    ---
    header: Delivering an answer: Release agent
    section: Agent: Release agent
    Server: pager
    Tool: close_incident
    rich_text: Agent says | Approve pager / close_incident?
    section: The runtime does not show the arguments of this call.
    section: <@U0DANA> chose Deny, delivering… The runtime took it and still shows the request as open.
    context: prod · for <@U0DANA> · may answer: release, owner · opened <!date^1796000000^{date_short_pretty} {time}|2026-11-30 00:53 UTC> · `deadbeef` · <https://app.example/tasks/t1?a=1&b=2|Open in the runtime>
    ");
}

#[test]
fn final_states_name_outcome_person_time_and_reason() {
    let by = |outcome, by: PersonRef, reason: Option<&str>| {
        let mut status = ended(outcome);
        if let Status::Ended { by: who, reason: why, .. } = &mut status {
            (*who, *why) = (Some(by), reason.map(str::to_owned));
        }
        approval(status)
    };
    insta::assert_snapshot!(whole(&by(Outcome::Approved, dana(), None)), @r"
    Approved by <@U0DANA> (prod): Release agent: pager / close_incident
    ---
    header: Approved: Release agent
    section: Agent: Release agent
    Server: pager
    Tool: close_incident
    rich_text: Agent says | Approve pager / close_incident?
    section: The runtime does not show the arguments of this call.
    section: *Approved* by <@U0DANA> · <!date^1796000600^{date_short_pretty} {time}|2026-11-30 01:03 UTC>
    context: prod · for <@U0DANA> · may answer: release, owner · opened <!date^1796000000^{date_short_pretty} {time}|2026-11-30 00:53 UTC> · `deadbeef` · <https://app.example/tasks/t1?a=1&b=2|Open in the runtime>
    ");
    insta::assert_snapshot!(whole(&by(Outcome::Denied, kim(), Some("not on a Friday,\nask <!here> again"))), @r"
    Denied by kim[@]example[.]com (prod): Release agent: pager / close_incident
    ---
    header: Denied: Release agent
    section: Agent: Release agent
    Server: pager
    Tool: close_incident
    rich_text: Agent says | Approve pager / close_incident?
    section: The runtime does not show the arguments of this call.
    section: *Denied* by `kim[@]example[.]com` · <!date^1796000600^{date_short_pretty} {time}|2026-11-30 01:03 UTC>
    section: Reason: 
    │ not on a Friday,
    │ ask <!here> again
    context: prod · for <@U0DANA> · may answer: release, owner · opened <!date^1796000000^{date_short_pretty} {time}|2026-11-30 00:53 UTC> · `deadbeef` · <https://app.example/tasks/t1?a=1&b=2|Open in the runtime>
    ");
}

#[test]
fn slack_case_39_every_other_end_says_how() {
    let mut all = vec![];
    for outcome in [Outcome::Canceled, Outcome::Failed, Outcome::Elsewhere, Outcome::Gone] {
        all.push(whole_state(&approval(ended(outcome))));
    }
    let elsewhere = |who: Option<&str>, what| {
        let mut status = ended(Outcome::Elsewhere);
        if let Status::Ended { elsewhere_by, elsewhere_what, .. } = &mut status {
            (*elsewhere_by, *elsewhere_what) = (who.map(str::to_owned), what);
        }
        approval(status)
    };
    all.push(whole_state(&elsewhere(Some("kim `<!here>` https://evil.test"), Some(Outcome::Approved))));
    all.push(whole_state(&elsewhere(None, Some(Outcome::Denied))));
    let mut rejected = ended(Outcome::Failed);
    if let Status::Ended { rejected, .. } = &mut rejected {
        *rejected = true;
    }
    all.push(whole_state(&approval(rejected)));
    insta::assert_snapshot!(all.join("\n\n"), @r"
    Canceled (prod): Release agent: pager / close_incident
    *Canceled* · <!date^1796000600^{date_short_pretty} {time}|2026-11-30 01:03 UTC>

    Failed (prod): Release agent: pager / close_incident
    *Failed* · <!date^1796000600^{date_short_pretty} {time}|2026-11-30 01:03 UTC>

    Answered elsewhere (prod): Release agent: pager / close_incident
    *Answered elsewhere* · <!date^1796000600^{date_short_pretty} {time}|2026-11-30 01:03 UTC>

    Gone (prod): Release agent: pager / close_incident
    *Gone* · <!date^1796000600^{date_short_pretty} {time}|2026-11-30 01:03 UTC> · the runtime no longer has this request and does not say how it ended

    Answered elsewhere (prod): Release agent: pager / close_incident
    *Answered elsewhere* by `kim ˋ&lt;!here&gt;ˋ https[:]//evil[.]test`, who chose Approve · <!date^1796000600^{date_short_pretty} {time}|2026-11-30 01:03 UTC>

    Answered elsewhere (prod): Release agent: pager / close_incident
    *Answered elsewhere* with Deny · <!date^1796000600^{date_short_pretty} {time}|2026-11-30 01:03 UTC>

    Failed (prod): Release agent: pager / close_incident
    *Failed* · <!date^1796000600^{date_short_pretty} {time}|2026-11-30 01:03 UTC> · the runtime rejected the task
    ");
}

/// Notification and state line of a card.
fn whole_state(card: &Card) -> String {
    let drawn = drawn(card);
    assert!(!drawn.body.to_string().contains("\"actions\""), "no controls at the end");
    let body = drawn.body.as_array().unwrap();
    let state = body.iter().find(|block| block["text"]["type"] == "mrkdwn").unwrap();
    format!("{}\n{}", drawn.text, state["text"]["text"].as_str().unwrap())
}

/// A final card has the outcome's word and no other one.
#[test]
fn a_final_card_says_one_outcome() {
    let words = ["approved", "denied", "answered", "connected", "declined", "canceled", "failed", "gone"];
    for outcome in [
        Outcome::Approved,
        Outcome::Denied,
        Outcome::Answered,
        Outcome::Connected,
        Outcome::Declined,
        Outcome::Canceled,
        Outcome::Failed,
        Outcome::Elsewhere,
        Outcome::Gone,
    ] {
        for what in [None, Some(Outcome::Approved), Some(Outcome::Denied)] {
            let mut status = ended(outcome);
            if let Status::Ended { by, elsewhere_what, .. } = &mut status {
                (*by, *elsewhere_what) = (Some(dana()), what);
            }
            let said = whole(&approval(status)).to_lowercase();
            let own = if outcome == Outcome::Elsewhere { "answered" } else { outcome.as_str() };
            for word in words {
                assert_eq!(said.contains(word), word == own, "{word} in {said}");
            }
        }
    }
    for status in [
        open(vec![dana()], 2),
        Status::Delivering { by: dana(), decision: "approved".into(), accepted: true },
    ] {
        let said = whole(&approval(status)).to_lowercase();
        assert!(words.iter().all(|word| !said.contains(word)), "{said}");
    }
}

#[test]
fn kinds_that_cannot_be_answered_here_are_shown_and_say_so() {
    insta::assert_snapshot!(whole(&question()), @r"
    Question (prod): Release agent: Which region?
    ---
    header: Question: Release agent
    section: Agent: Release agent
    rich_text: Agent says | Which region?

    1. EU (Europe)
    2. US
    (free text may be given)
    section: Questions cannot be answered here yet. Answer in the runtime's own interface.
    context: prod · for <@U0DANA> · may answer: release, owner · opened <!date^1796000000^{date_short_pretty} {time}|2026-11-30 00:53 UTC> · `deadbeef` · <https://app.example/tasks/t1?a=1&b=2|Open in the runtime>
    ");
    let mut connection = question();
    connection.form.kind = Kind::Connection;
    connection.form.questions.clear();
    connection.form.facts = vec![fact("app", "github"), fact("reason", "to open a pull request")];
    connection.form.prompt = "Connect github: to open a pull request".into();
    insta::assert_snapshot!(whole(&connection), @r"
    Connection requested (prod): Release agent: Connect github: to open a pull request
    ---
    header: Connection requested: Release agent
    section: Agent: Release agent
    App: github
    Reason given: to open a pull request
    rich_text: Agent says | Connect github: to open a pull request
    section: Connection requests cannot be answered here yet. Answer in the runtime's own interface.
    context: prod · for <@U0DANA> · may answer: release, owner · opened <!date^1796000000^{date_short_pretty} {time}|2026-11-30 00:53 UTC> · `deadbeef` · <https://app.example/tasks/t1?a=1&b=2|Open in the runtime>
    ");
    let mut unknown = question();
    unknown.form.kind = Kind::Unknown;
    unknown.form.questions.clear();
    insta::assert_snapshot!(read(&drawn(&unknown).body), @r"
    header: Waiting for a person: Release agent
    section: Agent: Release agent
    rich_text: Agent says | Which region?
    section: This cannot be answered here. Answer in the runtime's own interface.
    context: prod · for <@U0DANA> · may answer: release, owner · opened <!date^1796000000^{date_short_pretty} {time}|2026-11-30 00:53 UTC> · `deadbeef` · <https://app.example/tasks/t1?a=1&b=2|Open in the runtime>
    ");
}

#[test]
fn an_unknown_card() {
    let drawn = super::unknown(&WORDS);
    for blocks in [&drawn.body, &drawn.compact] {
        assert_eq!(rules::check(&drawn.text, blocks), Vec::<String>::new());
    }
    insta::assert_snapshot!(format!("{}\n{}", drawn.text, read(&drawn.body)), @r"
    Countersign no longer knows this request, so it cannot be answered from this message.
    header: No longer known
    section: Countersign no longer knows this request, so it cannot be answered from this message.
    ");
}

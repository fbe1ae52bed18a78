//! What a route asks of a card's controls, and the control that opens the rest.

use super::*;

/// With `confirm`, Slack asks once more in both drawings; with `reason_on_deny`, there is no plain Deny.
#[test]
fn what_a_route_asks_for() {
    let mut card = approval(open(vec![], 1));
    card.controls =
        Card::controls_for(&Kind::Approval, &card.status, Asks { confirm: true, reason_on_deny: true });
    let drawn = drawn(&card);
    for blocks in [&drawn.body, &drawn.compact] {
        let all = blocks.as_array().unwrap();
        let actions = all.iter().find(|block| block["type"] == "actions").unwrap();
        insta::allow_duplicates! {
            insta::assert_json_snapshot!(actions["elements"], @r#"
            [
              {
                "accessibility_label": "Approve pager / close_incident",
                "action_id": "cs.approve",
                "confirm": {
                  "confirm": {
                    "emoji": false,
                    "text": "Confirm",
                    "type": "plain_text"
                  },
                  "deny": {
                    "emoji": false,
                    "text": "Cancel",
                    "type": "plain_text"
                  },
                  "text": {
                    "emoji": false,
                    "text": "You are about to approve pager / close_incident for Release agent.",
                    "type": "plain_text"
                  },
                  "title": {
                    "emoji": false,
                    "text": "Approve this?",
                    "type": "plain_text"
                  }
                },
                "style": "primary",
                "text": {
                  "emoji": false,
                  "text": "Approve",
                  "type": "plain_text"
                },
                "type": "button",
                "value": "k_confirmed"
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
            ]
            "#);
        }
    }
}

/// `Show all` stands on a card exactly while something is cut; Approve says what it needs.
#[test]
fn show_all_is_there_while_something_is_cut() {
    let labels = |drawn: &Drawn| {
        let body = read(&drawn.body);
        (body.contains("Show all | (cs.show_all k_all"), body.contains("opened all of it with Show all"))
    };
    let mut card = approval(open(vec![], 1));
    assert_eq!(labels(&drawn(&card)), (false, false));
    card.form.prompt = "word ".repeat(4000);
    assert_eq!(labels(&drawn(&card)), (true, true));
    card.gated = false;
    assert_eq!(labels(&drawn(&card)), (true, false));
    // A kind that is only shown can be read in full too; a final card has no control.
    let mut shown = question();
    shown.form.prompt = "word ".repeat(4000);
    assert_eq!(labels(&drawn(&shown)), (true, false));
    card.status = ended(Outcome::Approved);
    card.controls = Card::controls_for(&Kind::Approval, &card.status, Asks::default());
    assert_eq!(labels(&drawn(&card)), (false, false));
}

/// What is asked once more is cut after it is escaped (MCPJam inspector 3696).
#[test]
fn a_second_question_is_within_its_limits_after_escaping() {
    let mut card = approval(open(vec![], 1));
    card.controls =
        Card::controls_for(&Kind::Approval, &card.status, Asks { confirm: true, ..Asks::default() });
    for text in ["<".repeat(299), "&".repeat(5000), "é".repeat(300), "<".repeat(5) + &"x".repeat(294)] {
        card.form.title.clone_from(&text);
        card.agent = text;
        drawn(&card);
    }
}

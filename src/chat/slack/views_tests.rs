use super::super::rules;
use super::*;
use crate::domain::card::{Asks, Mention, PersonRef, Status};
use crate::domain::clock::Millis;
use crate::domain::form::{Fact, Form, Kind};
use crate::domain::ids::CardId;
use crate::domain::interaction::Why;
use crate::domain::notice::Notice;
use crate::sandbox::slack::validate;
use proptest::prelude::*;
use std::sync::LazyLock;
use uuid::Uuid;

static WORDS: LazyLock<Templates> = LazyLock::new(|| Templates::load("en", None).unwrap());

fn card(title: &str, prompt: &str, facts: &[(&str, &str)]) -> Card {
    let status = Status::Open { votes: vec![], needed: 1 };
    Card {
        controls: Card::controls_for(&Kind::Approval, &status, Asks::default()),
        form: Form {
            kind: Kind::Approval,
            title: title.into(),
            prompt: prompt.into(),
            facts: facts
                .iter()
                .map(|(label, value)| Fact { label: (*label).into(), value: (*value).into() })
                .collect(),
            questions: vec![],
            arguments_withheld: true,
        },
        agent: "Release agent".into(),
        runtime: "prod".into(),
        owner: Some(PersonRef { subject: "dana@example.com".into(), mention: None }),
        approvers: vec!["release".into()],
        opened: Millis(1_796_000_000_000),
        short_id: "deadbeef".into(),
        details_url: None,
        status,
        gated: true,
        mention: Mention::default(),
    }
}

fn view(about: Card, content: Content) -> Value {
    let view = View {
        card: CardId(Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0001)),
        rev: 3,
        about,
        content,
    };
    let drawn = draw(&WORDS, &view);
    assert_eq!(rules::check_view(&drawn), Vec::<String>::new(), "{drawn:#}");
    let problems = validate::view(&drawn, validate::Rules::default());
    assert!(problems.is_empty(), "{problems:?}");
    drawn
}

/// Every page of a card, each within every limit.
fn all_pages(card: &Card) -> Vec<Value> {
    let of = pages(&WORDS, card);
    let token = |at: usize, there: bool| there.then(|| format!("o_{at}"));
    let page = |at: usize| {
        let page =
            Page { at, of, previous: token(at - 1, at > 1), next: token(at + 1, at < of), unlocks: true };
        view(card.clone(), Content::ShowAll(page))
    };
    (1..=of).map(page).collect()
}

/// The text of facts and words, in order.
fn shown(pages: &[Value]) -> String {
    let mut out = String::new();
    let blocks = pages.iter().flat_map(|page| {
        let blocks = page["blocks"].as_array().unwrap();
        // The foot, and the controls where there are any, end a page.
        let ends = 1 + usize::from(blocks.last().unwrap()["type"] == "actions");
        blocks[..blocks.len() - ends].to_vec()
    });
    for block in blocks {
        if block["type"] == "section" {
            out.push_str(block["text"]["text"].as_str().unwrap());
        }
        for element in block["elements"].as_array().into_iter().flatten() {
            if element["type"] == "rich_text_preformatted" {
                out.push_str(element["elements"][0]["text"].as_str().unwrap());
            }
        }
    }
    out
}

#[test]
fn the_form_for_a_reason() {
    let drawn =
        view(card("pager / close_incident", "Close it?", &[]), Content::DenyReason { token: "o_1".into() });
    insta::assert_json_snapshot!(drawn, @r#"
    {
      "blocks": [
        {
          "block_id": "cs:01900000-0000-7000-8000-000000000001:3:in:0",
          "text": {
            "emoji": false,
            "text": "You are about to deny pager / close_incident.",
            "type": "plain_text"
          },
          "type": "section"
        },
        {
          "block_id": "cs:01900000-0000-7000-8000-000000000001:3:in:1",
          "element": {
            "action_id": "cs.text",
            "max_length": 2000,
            "multiline": true,
            "type": "plain_text_input"
          },
          "hint": {
            "emoji": false,
            "text": "It goes onto the card and into the audit log exactly as you type it.",
            "type": "plain_text"
          },
          "label": {
            "emoji": false,
            "text": "Reason",
            "type": "plain_text"
          },
          "optional": false,
          "type": "input"
        }
      ],
      "callback_id": "cs.deny_reason",
      "close": {
        "emoji": false,
        "text": "Cancel",
        "type": "plain_text"
      },
      "private_metadata": "o_1",
      "submit": {
        "emoji": false,
        "text": "Deny",
        "type": "plain_text"
      },
      "title": {
        "emoji": false,
        "text": "Deny with reason",
        "type": "plain_text"
      },
      "type": "modal"
    }
    "#);
}

#[test]
fn one_page_says_that_it_is_the_end() {
    let pages = all_pages(&card("pager / close_incident", "Close it?", &[("tool", "close_incident")]));
    assert_eq!(pages.len(), 1);
    let blocks = &pages[0]["blocks"];
    assert_eq!(
        blocks[0]["text"]["text"],
        "pager / close_incident\nAgent: Release agent\nTool: close_incident"
    );
    assert_eq!(blocks[1]["elements"][1]["elements"][0]["text"], "Close it?");
    assert_eq!(blocks[2]["text"]["text"], "Page 1 of 1. This is the end. Approve works for you now.");
    assert_eq!(blocks.as_array().unwrap().len(), 3, "nothing to turn");
}

#[test]
fn pages_are_turned_by_tokens_and_only_the_last_one_unlocks() {
    let pages = all_pages(&card("t", &"word ".repeat(30_000), &[]));
    assert!(pages.len() > 2, "{}", pages.len());
    for (at, page) in pages.iter().enumerate() {
        let blocks = page["blocks"].as_array().unwrap();
        let turns: Vec<(&str, &str)> = blocks.last().unwrap()["elements"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| (one["action_id"].as_str().unwrap(), one["value"].as_str().unwrap()))
            .collect();
        let (before, after) = (format!("o_{at}"), format!("o_{}", at + 2));
        let mut expected = vec![];
        if at > 0 {
            expected.push(("cs.previous", before.as_str()));
        }
        if at + 1 < pages.len() {
            expected.push(("cs.next", after.as_str()));
        }
        assert_eq!(turns, expected);
        let foot = blocks[blocks.len() - 2]["text"]["text"].as_str().unwrap();
        assert_eq!(foot.contains("Approve works for you now"), at + 1 == pages.len(), "{foot}");
    }
    let ids: Vec<&Value> = pages.iter().map(|page| &page["blocks"][0]["block_id"]).collect();
    assert_ne!(ids[0], ids[1], "new ids at every drawing");
}

#[test]
fn foreign_text_is_neutralised_as_on_the_card() {
    let evil = "<!channel> <https://evil.test|Approve> \u{202e}";
    let all = shown(&all_pages(&card(evil, evil, &[("tool", evil)])));
    assert!(!all.contains('\u{202e}') && !all.contains("https://evil.test"), "{all}");
    assert_eq!(all.matches("https[:]//evil[.]test").count(), 3, "{all}");
    let form = view(card(evil, "", &[]), Content::DenyReason { token: "o_1".into() });
    assert!(!form.to_string().contains("https://evil.test"), "{form}");
}

/// A view as text: its frame, then one line per block.
fn read(view: &Value) -> String {
    let word = |of: &Value| of["text"].as_str().unwrap_or("-").to_owned();
    let mut lines =
        vec![format!("({} | {} | {})", word(&view["title"]), word(&view["submit"]), word(&view["close"]))];
    for block in view["blocks"].as_array().unwrap() {
        let mut line = match block["type"].as_str().unwrap() {
            "actions" => {
                let all = block["elements"].as_array().unwrap().iter();
                all.map(|one| format!("[{}]", word(&one["text"]))).collect::<Vec<_>>().join(" ")
            }
            "rich_text" => {
                let all = block["elements"].as_array().unwrap().iter();
                all.map(|one| word(&one["elements"][0])).collect::<Vec<_>>().join(" | ")
            }
            _ => word(&block["text"]),
        };
        let length = line.chars().count();
        if length > 300 {
            let start: String = line.chars().take(20).collect();
            line = format!("{start}… ({length} characters)");
        }
        lines.push(line);
    }
    lines.join("\n")
}

#[test]
fn how_pages_read() {
    let pages =
        all_pages(&card("pager / close_incident", &"word ".repeat(15_000), &[("tool", "close_incident")]));
    insta::assert_snapshot!(pages.iter().map(read).collect::<Vec<_>>().join("\n\n"), @r"
    (The whole request | - | Close)
    pager / close_incident
    Agent: Release agent
    Tool: close_incident
    Agent says | word wo… (2903 characters)
    word word word word … (2890 characters)
    word word word word … (2890 characters)
    word word word word … (2890 characters)
    word word word word … (2890 characters)
    word word word word … (2890 characters)
    word word word word … (2890 characters)
    word word word word … (2890 characters)
    word word word word … (2890 characters)
    Page 1 of 3. Approve works for you once you have opened the last page.
    [Next]

    (The whole request | - | Close)
    word word word word … (2890 characters)
    word word word word … (2890 characters)
    word word word word … (2890 characters)
    word word word word … (2890 characters)
    word word word word … (2890 characters)
    word word word word … (2890 characters)
    word word word word … (2890 characters)
    word word word word … (2890 characters)
    word word word word … (2890 characters)
    word word word word … (2890 characters)
    Page 2 of 3. Approve works for you once you have opened the last page.
    [Previous] [Next]

    (The whole request | - | Close)
    word word word word … (2890 characters)
    word word word word … (2890 characters)
    word word word word … (2890 characters)
    word word word word … (2890 characters)
    word word word word … (2890 characters)
    word word word word … (2890 characters)
    word word word word … (2750 characters)
    Page 3 of 3. This is the end. Approve works for you now.
    [Previous]
    ");
    // One page, of something that has no gate, for a person without anything to do.
    let page = Page { at: 1, of: 1, previous: None, next: None, unlocks: false };
    let mut shown = card("", "", &[("command", "rm -r <build>\nTool: forged")]);
    shown.agent = String::new();
    insta::assert_snapshot!(read(&view(shown, Content::ShowAll(page))), @r"
    (The whole request | - | Close)
    Command: 
    │ rm -r <build>
    │ Tool: forged
    Agent says: (no text given)
    Page 1 of 1. This is the end.
    ");
}

#[test]
fn a_page_as_sent() {
    let pages = all_pages(&card("t", "p", &[]));
    insta::assert_json_snapshot!(pages[0], @r#"
    {
      "blocks": [
        {
          "block_id": "cs:01900000-0000-7000-8000-000000000001:3:p1:0",
          "text": {
            "emoji": false,
            "text": "t\nAgent: Release agent",
            "type": "plain_text"
          },
          "type": "section"
        },
        {
          "block_id": "cs:01900000-0000-7000-8000-000000000001:3:p1:1",
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
                  "text": "p",
                  "type": "text"
                }
              ],
              "type": "rich_text_preformatted"
            }
          ],
          "type": "rich_text"
        },
        {
          "block_id": "cs:01900000-0000-7000-8000-000000000001:3:p1:2",
          "text": {
            "emoji": false,
            "text": "Page 1 of 1. This is the end. Approve works for you now.",
            "type": "plain_text"
          },
          "type": "section"
        }
      ],
      "callback_id": "cs.show_all",
      "close": {
        "emoji": false,
        "text": "Close",
        "type": "plain_text"
      },
      "title": {
        "emoji": false,
        "text": "The whole request",
        "type": "plain_text"
      },
      "type": "modal"
    }
    "#);
}

#[test]
fn a_form_about_nothing() {
    let mut nothing = card("", "", &[]);
    nothing.agent = String::new();
    insta::assert_snapshot!(read(&view(nothing, Content::DenyReason { token: "o_1".into() })), @r"
    (Deny with reason | Deny | Cancel)
    You are about to deny this request.
    -
    ");
}

#[test]
fn in_the_place_of_a_page_stands_why_there_is_none() {
    let told = Content::Told(Notice::Refused { why: Why::Changed, by: None });
    insta::assert_snapshot!(read(&view(card("t", "p", &[]), told)), @r"
    (No longer here | - | Close)
    The request has changed since this card was drawn, so your answer does not count. Read the new card and decide again.
    ");
}

/// The answer to a blank field stays at that field.
#[test]
fn a_blank_reason_is_said_so_at_the_field() {
    insta::assert_json_snapshot!(blank_reason(&WORDS, "cs:1:3:in:1"), @r#"
    {
      "errors": {
        "cs:1:3:in:1": "Write a reason, or close this form and decide with the buttons of the card."
      },
      "response_action": "errors"
    }
    "#);
}

/// Large and nasty texts of up to a few hundred thousand characters.
fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        "(\\PC|[&<>\"]|👨‍👩‍👧|e\u{301}|\n){0,60}",
        ("(\\PC|[&<>\"\\\\]|é|\n){1,12}", 1_usize..9_000).prop_map(|(piece, times)| piece.repeat(times)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(48) })]

    /// Whatever the card holds: every page is within every limit, and all of it is there, in order.
    #[test]
    fn everything_is_on_some_page(title in any_text(), prompt in any_text(), value in any_text()) {
        let card = card(&title, &prompt, &[("command", &value)]);
        let pages = all_pages(&card);
        let pen = Pen { templates: &WORDS, card: &card };
        let words = pen.words();
        let said = if is_blank(&words) { String::new() } else { words };
        prop_assert_eq!(shown(&pages), pen.facts().join("\n") + &said);
    }

    #[test]
    fn the_form_is_within_every_limit(title in any_text(), prompt in any_text()) {
        view(card(&title, &prompt, &[]), Content::DenyReason { token: "o_1".into() });
    }
}

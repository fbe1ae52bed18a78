use super::super::rules;
use super::*;
use crate::domain::clock::Millis;
use crate::domain::form::Kind;
use crate::domain::notice::Notice;
use crate::domain::policy::Unfit;
use serde_json::Value;

fn draw_it(what: What, notices: Vec<(Notice, Millis)>) -> Drawn {
    let templates = Templates::load("en", None).unwrap();
    draw(&templates, &Waiting { what, notices })
}

fn item(title: &str) -> Item {
    Item {
        kind: Kind::Approval,
        title: title.into(),
        agent: "release".into(),
        runtime: "prod".into(),
        opened: Millis(1_796_000_000_000),
        short_id: "deadbeef".into(),
        voted: 0,
        needed: 1,
        link: Some("https://acme.slack.com/archives/C0OPS/p1796000000000100".into()),
        channel: Some("C0OPS".into()),
    }
}

fn text_of(drawn: &Drawn) -> String {
    fn walk(value: &Value, out: &mut Vec<String>) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| walk(item, out)),
            Value::Object(map) => {
                if let Some(Value::String(text)) = map.get("text") {
                    out.push(text.clone());
                }
                map.values().for_each(|inner| walk(inner, out));
            }
            _ => {}
        }
    }
    let mut out = vec![];
    walk(&drawn.body, &mut out);
    out.join("\n")
}

#[test]
fn a_list_reads_well() {
    let two = Item { voted: 1, needed: 2, link: None, ..item("db / drop") };
    let list = List { items: vec![item("ci / deploy"), two], more: 3, unchecked: 1, beyond: false };
    let drawn = draw_it(What::Listed(list), vec![(Notice::SelfApproval, Millis(1_796_000_000_000))]);
    insta::assert_snapshot!(text_of(&drawn), @r"
    *5 requests wait for you*
    The oldest are listed; 3 more are newer. Answer some of these and look again.
    For 1 more it could not be checked whether you may answer.
    Open
    Approval needed: release
    ci / deploy
    `prod` · opened <!date^1796000000^{date_short_pretty} {time}|2026-11-30 00:53 UTC> · <#C0OPS> · `deadbeef`
    Approval needed: release
    db / drop
    `prod` · opened <!date^1796000000^{date_short_pretty} {time}|2026-11-30 00:53 UTC> · <#C0OPS> · 1 of 2 · `deadbeef`
    *You could not be told this before*
    The agent works for you, and here its owner may not answer. Ask another approver.
    Since <!date^1796000000^{date_short_pretty} {time}|2026-11-30 00:53 UTC>
    ");
    assert!(drawn.text.starts_with("*5 requests wait for you* The oldest"), "{}", drawn.text);
    let button = drawn.body.pointer("/1/accessory").unwrap();
    assert_eq!(button["url"], "https://acme.slack.com/archives/C0OPS/p1796000000000100");
    assert_eq!(button["action_id"], "cs.open");
}

/// A list as it is published on a Home, its compact form, and one that is longer than what is looked through.
#[test]
fn a_home_as_sent() {
    let list = List { items: vec![item("ci / deploy")], ..List::default() };
    let drawn = draw_it(What::Listed(list), vec![]);
    insta::assert_json_snapshot!(drawn.body, @r#"
    [
      {
        "text": {
          "text": "*1 request waits for you*",
          "type": "mrkdwn",
          "verbatim": true
        },
        "type": "section"
      },
      {
        "accessory": {
          "action_id": "cs.open",
          "text": {
            "emoji": false,
            "text": "Open",
            "type": "plain_text"
          },
          "type": "button",
          "url": "https://acme.slack.com/archives/C0OPS/p1796000000000100"
        },
        "text": {
          "emoji": false,
          "text": "Approval needed: release\nci / deploy",
          "type": "plain_text"
        },
        "type": "section"
      },
      {
        "elements": [
          {
            "text": "`prod` · opened <!date^1796000000^{date_short_pretty} {time}|2026-11-30 00:53 UTC> · <#C0OPS> · `deadbeef`",
            "type": "mrkdwn",
            "verbatim": true
          }
        ],
        "type": "context"
      }
    ]
    "#);
    insta::assert_json_snapshot!(drawn.compact, @r#"
    [
      {
        "text": {
          "text": "*1 request waits for you*",
          "type": "mrkdwn",
          "verbatim": true
        },
        "type": "section"
      },
      {
        "text": {
          "emoji": false,
          "text": "Approval needed: release\nci / deploy",
          "type": "plain_text"
        },
        "type": "section"
      },
      {
        "elements": [
          {
            "text": "`prod` · opened <!date^1796000000^{date_short_pretty} {time}|2026-11-30 00:53 UTC> · <#C0OPS> · `deadbeef`",
            "type": "mrkdwn",
            "verbatim": true
          }
        ],
        "type": "context"
      }
    ]
    "#);
    let other = |kind, title: &str| Item { kind, agent: String::new(), channel: None, ..item(title) };
    let items = vec![other(Kind::Question, "Which region?"), other(Kind::Connection, "")];
    let drawn = draw_it(What::Listed(List { items, more: 19, unchecked: 2, beyond: true }), vec![]);
    insta::assert_snapshot!(text_of(&drawn), @r"
    *At least 21 requests wait for you*
    The oldest are listed; at least 19 more are newer. Answer some of these and look again.
    For 2 more it could not be checked whether you may answer.
    Open
    Question
    Which region?
    `prod` · opened <!date^1796000000^{date_short_pretty} {time}|2026-11-30 00:53 UTC> · `deadbeef`
    Open
    Connection requested
    `prod` · opened <!date^1796000000^{date_short_pretty} {time}|2026-11-30 00:53 UTC> · `deadbeef`
    ");
}

/// Slack case 57: whoever cannot answer is told so, and what to do.
#[test]
fn who_cannot_answer_is_told_so() {
    let lines = [
        What::Unfit { what: Unfit::Guest },
        What::Unfit { what: Unfit::Stranger },
        What::Unfit { what: Unfit::Bot },
        What::Unfit { what: Unfit::Deactivated },
        What::Unfit { what: Unfit::Invited },
        What::Unfit { what: Unfit::Nobody },
        What::Unlinked { user: "slack:acme:U0SAM`".into() },
        What::CouldNotCheck,
        What::Listed(List::default()),
        What::Listed(List { beyond: true, ..List::default() }),
    ]
    .map(|what| draw_it(what, vec![]).text);
    insta::assert_snapshot!(lines.join("\n"), @r"
    Guests cannot answer here, so nothing is listed. Ask a full member of this workspace.
    People from other organizations cannot answer here, so nothing is listed. Ask a member of this workspace.
    Bots and workflows cannot answer, so nothing is listed.
    Deactivated accounts cannot answer, so nothing is listed.
    Accept your invitation to this workspace first, then look again.
    Slack does not say who you are, so nothing is listed.
    Countersign does not know who you are to the runtimes, so nothing is listed. Ask an operator to link your account `slack:acme:U0SAMˋ` to you.
    It could not be checked who you are, so nothing is listed. Look again in a minute.
    Nothing waits for you.
    Nothing waits for you among the oldest requests; more are open than can be looked through here.
    ");
}

/// Every text that is read as markup.
fn collect_markup(value: &Value, into: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            if value["type"] == "mrkdwn" {
                into.push(value["text"].as_str().unwrap().to_owned());
            }
            fields.values().for_each(|inner| collect_markup(inner, into));
        }
        Value::Array(all) => all.iter().for_each(|inner| collect_markup(inner, into)),
        _ => {}
    }
}

/// Slack cases 26 and 31: the fullest list of the most hostile titles stays within the budgets, and nothing of
/// it is markup.
#[test]
fn the_fullest_list_fits_and_is_not_markup() {
    let hostile = "<!channel> <https://evil.test|Approve> & *x* `y` https://evil.test ".repeat(20);
    let items: Vec<Item> = (0..20)
        .map(|_| Item {
            agent: hostile.clone(),
            runtime: hostile.clone(),
            short_id: hostile.clone(),
            channel: Some("C0<!here>".into()),
            ..item(&hostile)
        })
        .collect();
    let notices = vec![(Notice::NotAllowed { groups: vec![hostile.clone(); 20] }, Millis(0)); 3];
    let drawn = draw_it(What::Listed(List { items, more: 9, unchecked: 9, beyond: true }), notices);
    let blocks = drawn.body.as_array().unwrap();
    assert!(blocks.len() <= 45, "{}", blocks.len());
    assert_eq!(rules::check(&drawn.text, &drawn.body), [] as [String; 0]);
    assert_eq!(rules::check(&drawn.text, &drawn.compact), [] as [String; 0]);
    // In plain text these are characters; as markup they would ping and link.
    let mut markup = vec![drawn.text.clone()];
    collect_markup(&drawn.body, &mut markup);
    collect_markup(&drawn.compact, &mut markup);
    assert!(markup.len() > 20, "{}", markup.len());
    for text in &markup {
        let live = ["<!channel>", "<!here>", "|Approve>"].into_iter().find(|live| text.contains(live));
        assert_eq!(live, None, "{text}");
    }
}

/// An address that is none of http's is no link.
#[test]
fn an_odd_address_is_no_link() {
    let odd = Item { link: Some("javascript:alert(1)".into()), ..item("x") };
    let drawn = draw_it(What::Listed(List { items: vec![odd], ..List::default() }), vec![]);
    assert_eq!(drawn.body.pointer("/1/accessory"), None);
}

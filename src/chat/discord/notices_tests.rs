use super::super::render::tests::{HOSTILE, WORDS};
use super::super::rules;
use super::*;
use crate::domain::clock::Millis;
use crate::domain::interaction::{Outcome, Why};

fn mara() -> PersonRef {
    PersonRef { subject: "mara@example.com".into(), mention: Some("3300000000000000003".into()) }
}

fn text(notice: &Notice) -> String {
    let body = draw(&WORDS, notice);
    assert_eq!(rules::message(&body), Vec::<String>::new(), "{body:#}");
    body["content"].as_str().unwrap().to_owned()
}

#[test]
fn every_notice_says_what_to_do() {
    let at = Millis(1_796_000_000_000);
    let all = [
        Notice::AlreadyEnded { outcome: Outcome::Approved, by: Some(mara()), at },
        Notice::BeingAnswered { by: mara() },
        Notice::Unlinked { user: "3300000000000000003".into() },
        Notice::Unfit { what: Unfit::Stranger },
        Notice::Unfit { what: Unfit::Bot },
        Notice::Unfit { what: Unfit::Invited },
        Notice::Unfit { what: Unfit::TimedOut },
        Notice::Unfit { what: Unfit::Nobody },
        Notice::NotAllowed { groups: vec!["release".into(), "owner".into()] },
        Notice::NotAllowed { groups: vec![] },
        Notice::SelfApproval,
        Notice::CouldNotCheck,
        Notice::MustView,
        Notice::NeedsReason,
        Notice::Outdated,
        Notice::PressAgain,
        Notice::OpensLater,
        Notice::UnknownControl,
        Notice::NotInstalled,
        Notice::Refused { why: Why::BeingAnswered, by: Some(mara()) },
        Notice::VoteVoided { why: Why::Changed },
        Notice::StillTrying,
        Notice::NeedsAttention,
        Notice::Paused,
    ];
    let said: Vec<String> = all.iter().map(text).collect();
    assert!(said.iter().all(|text| !text.contains("Slack") && !text.contains("workspace")), "{said:#?}");
    insta::assert_snapshot!(said.join("\n"));
}

/// What was typed comes back exactly, and is no markup.
#[test]
fn discord_case_44_words_are_given_back() {
    let words = "over *budget*\n@everyone [x](https://evil.example)";
    let notice = Notice::SelfApproval.with_words(Some(words));
    let body = draw(&WORDS, &notice);
    assert_eq!(body["embeds"][0]["description"], format!("```\n{words}\n```"));
    assert_eq!(body["allowed_mentions"]["parse"], serde_json::json!([]));
    let fenced = draw(&WORDS, &Notice::SelfApproval.with_words(Some("a ``` **b** ``` c")));
    let shown = fenced["embeds"][0]["description"].as_str().unwrap();
    assert_eq!(shown, "a \\`\\`\\` \\*\\*b\\*\\* \\`\\`\\` c");
    let long = "x".repeat(4000);
    assert_eq!(rules::message(&draw(&WORDS, &Notice::Paused.with_words(Some(&long)))), Vec::<String>::new());
}

#[test]
fn names_are_escaped() {
    let by = PersonRef { subject: HOSTILE.into(), mention: None };
    for notice in [
        Notice::BeingAnswered { by },
        Notice::NotAllowed { groups: vec![HOSTILE.into()] },
        Notice::Unlinked { user: HOSTILE.into() },
    ] {
        let text = text(&notice);
        assert!(!text.contains("<@1>") && !text.contains("](http"), "{text}");
    }
}

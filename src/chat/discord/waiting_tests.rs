use super::super::render::tests::{HOSTILE, WORDS};
use super::super::rules;
use super::*;
use crate::domain::clock::Millis;
use crate::domain::form::Kind;
use crate::domain::notice::Notice;
use crate::domain::policy::Unfit;

fn item(n: usize, text: &str) -> Item {
    Item {
        kind: Kind::Approval,
        title: format!("{text} {n}"),
        agent: text.into(),
        runtime: text.into(),
        opened: Millis(1_796_000_000_000),
        short_id: "deadbeef".into(),
        voted: 1,
        needed: 2,
        link: Some(
            "https://discord.com/channels/1100000000000000009/4400000000000000004/5500000000000000005".into(),
        ),
        channel: Some("4400000000000000004".into()),
    }
}

fn drawn(what: What, notices: Vec<(Notice, Millis)>) -> Drawn {
    let drawn = draw(&WORDS, &Waiting { what, notices });
    for body in [&drawn.body, &drawn.compact["plain"]] {
        assert_eq!(rules::message(body), Vec::<String>::new(), "{body:#}");
    }
    drawn
}

#[test]
fn a_list() {
    let list =
        List { items: vec![item(1, "release"), item(2, "ledger")], more: 3, unchecked: 1, beyond: false };
    let kept = vec![(Notice::SelfApproval, Millis(1_796_000_000_000))];
    insta::assert_json_snapshot!(drawn(What::Listed(list), kept).body);
}

#[test]
fn what_does_not_fit_is_counted() {
    let items: Vec<Item> = (0..20).map(|n| item(n, HOSTILE)).collect();
    let body = drawn(
        What::Listed(List { items, more: 5, unchecked: 0, beyond: true }),
        vec![(Notice::Paused, Millis(0)); 3],
    )
    .body;
    let listed = body["embeds"][0]["description"].as_str().unwrap();
    let shown = listed.split("\n\n").count();
    let content = body["content"].as_str().unwrap();
    assert!(
        shown < 20 && content.contains(&format!("at least {} more are newer", 25 - shown)),
        "{content} {shown}"
    );
    assert!(!listed.contains("<@1>") && !listed.contains("[ok]("), "{listed}");
}

#[test]
fn why_nothing_is_listed() {
    let texts: Vec<String> = [
        What::Unfit { what: Unfit::TimedOut },
        What::Unfit { what: Unfit::Stranger },
        What::Unlinked { user: "3300000000000000003".into() },
        What::CouldNotCheck,
        What::Listed(List::default()),
    ]
    .into_iter()
    .map(|what| drawn(what, vec![]).text)
    .collect();
    insta::assert_snapshot!(texts.join("\n"));
}

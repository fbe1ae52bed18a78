//! What does not fit, what is empty, what is hostile: over any card.

use super::*;

#[test]
fn slack_case_24_escaping_counts_at_post_and_at_every_edit() {
    let mut prompt = "x".repeat(2_970);
    for at in 0..20 {
        prompt.insert(at * 100, '&');
    }
    assert_eq!(prompt.chars().count(), 2_990);
    let with = |status| {
        let mut card = approval(status);
        card.form.prompt.clone_from(&prompt);
        drawn(&card)
    };
    // It fits, in two blocks: nothing is cut, at no time.
    for status in [
        open(vec![], 1),
        Status::Delivering { by: dana(), decision: "approved".into(), accepted: false },
        ended(Outcome::Approved),
    ] {
        let drawn = with(status);
        assert!(!drawn.cut);
        let shown: String = preformatted(&drawn.body).concat();
        assert_eq!(shown, prompt);
    }
    // Five times as long it does not, and every drawing says so in the place of what is missing.
    prompt = prompt.repeat(5);
    for status in [open(vec![], 1), ended(Outcome::Approved)] {
        let mut card = approval(status);
        card.form.prompt.clone_from(&prompt);
        let drawn = drawn(&card);
        assert!(drawn.cut);
        for blocks in [&drawn.body, &drawn.compact] {
            let read = read(blocks);
            assert!(
                read.contains("characters not shown …]")
                    && read.contains("This card does not show everything.")
            );
        }
    }
}

fn preformatted(blocks: &Value) -> Vec<String> {
    let elements =
        blocks.as_array().unwrap().iter().filter_map(|block| block["elements"].as_array()).flatten();
    elements
        .filter(|element| element["type"] == "rich_text_preformatted")
        .map(|element| element["elements"][0]["text"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn slack_case_26_eight_texts_that_are_legal_alone() {
    let mut card = approval(open(vec![], 1));
    card.form.facts = (0..8).map(|n| fact(&format!("field{n}"), &"lorem ipsum ".repeat(150))).collect();
    let drawn = drawn(&card);
    assert!(drawn.cut);
    let read = read(&drawn.body);
    assert_eq!(read.matches("characters not shown").count(), 8, "each says what it lacks");
    assert!(read.contains("Approve works for you once you have opened all of it with Show all."));
    assert!(read.contains("(cs.approve") && read.contains("(cs.deny"));
    assert!(read.contains("Approve pager / close_incident?"), "the agent's words keep their place");
}

#[test]
fn slack_case_27_empty_texts_invent_nothing() {
    for blank in ["", " ", "\n\t "] {
        let mut card = approval(open(vec![], 1));
        card.form.prompt = blank.into();
        card.form.title = blank.into();
        card.agent = blank.into();
        card.form.facts.clear();
        let drawn = drawn(&card);
        assert!(!drawn.cut);
        assert!(read(&drawn.body).contains("Agent says: (no text given)"), "{}", read(&drawn.body));
        assert_eq!(preformatted(&drawn.body), Vec::<String>::new());
    }
    let mut card = question();
    card.form.questions[0].options[0].label = String::new();
    card.form.questions[0].options[0].description = String::new();
    drawn(&card);
}

const HOSTILE: &str =
    "<!channel> <@U1> <https://evil.test|Approve> https://evil.test evil.test/x `*_~ &amp; dana@evil.test";

#[test]
fn slack_case_31_nothing_foreign_is_markup_mention_or_link() {
    let mut card = approval(ended(Outcome::Elsewhere));
    let form = &mut card.form;
    for text in [&mut form.title, &mut form.prompt, &mut card.agent, &mut form.facts[0].value] {
        *text = HOSTILE.into();
    }
    form.facts[1].label = HOSTILE.into();
    card.owner = Some(someone(HOSTILE, None));
    if let Status::Ended { elsewhere_by, reason, .. } = &mut card.status {
        (*elsewhere_by, *reason) = (Some(HOSTILE.into()), Some(HOSTILE.into()));
    }
    // `drawn` checks that `<` in markup is ours only.
    let drawn = drawn(&card);
    for text in [drawn.text.clone(), drawn.body.to_string(), drawn.compact.to_string()] {
        assert!(!text.contains("https://evil") && !text.contains("evil.test"), "{text}");
        assert!(text.contains("evil[.]test"));
    }
    let markup: Vec<&str> = drawn
        .body
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|b| {
            b["text"].as_object().filter(|t| t["type"] == "mrkdwn").and_then(|t| t["text"].as_str()).or_else(
                || {
                    b["elements"][0]
                        .as_object()
                        .filter(|t| t["type"] == "mrkdwn")
                        .and_then(|t| t["text"].as_str())
                },
            )
        })
        .collect();
    assert_eq!(markup.len(), 2, "state and foot");
    for text in markup {
        // What is outside code spans has no foreign word.
        let outside: String = text.split('`').step_by(2).collect();
        assert!(!outside.contains("evil") && !outside.contains("channel"), "{outside}");
    }
    insta::assert_snapshot!(drawn.text, @"Answered elsewhere (prod): &lt;!channel&gt; &lt;@U1&gt; &lt;https[:]//evil[.]test|Approve&gt; https[:]//evil[.]test evil[.]test/x `*_~ &amp;amp; dana[@]evil[.]test: &lt;!channel&gt; &lt;@U1&gt; &lt;https[:]//evil[.]test|Approve&gt; https[:]//evil[.]test evil[.]test/x `*_~ &amp;amp; dana[@]evil[.]test");
}

#[test]
fn a_mention_is_only_made_of_an_id() {
    for odd in ["U0DANA> <!channel", "u0dana", "S0GROUP", "U", ""] {
        let mut status = ended(Outcome::Approved);
        if let Status::Ended { by, .. } = &mut status {
            *by = Some(someone("dana", Some(odd)));
        }
        let card = Card { owner: None, ..approval(status) };
        assert!(!whole(&card).contains("<@"), "{odd}");
    }
}

#[test]
fn a_fact_cannot_pass_for_another_one() {
    let mut card = approval(open(vec![], 1));
    card.form.facts = vec![fact("command", "ls\nTool: harmless\n  indented"), fact("tool", "rm")];
    let read = read(&drawn(&card).body);
    assert!(read.contains("Command: \n│ ls\n│ Tool: harmless\n│   indented\nTool: rm"), "{read}");
}

#[test]
fn an_odd_details_address_is_left_out_or_encoded() {
    let with = |url: &str| whole(&Card { details_url: Some(url.into()), ..approval(open(vec![], 1)) });
    for odd in ["javascript:alert(1)", "not a url", &format!("https://a.test/{}", "x".repeat(3000))] {
        assert!(!with(odd).contains("Open in the runtime"), "{odd}");
    }
    assert!(with("https://a.test/?q=a|b>c").contains("<https://a.test/?q=a%7Cb%3Ec|Open in the runtime>"));
}

#[test]
fn slack_case_46_ids_are_new_at_every_revision_and_drawing_is_deterministic() {
    let card = approval(open(vec![], 1));
    let ids = |rev| {
        let drawn = super::card(&WORDS, &card, &Marks { rev, ..marks() });
        let both = [drawn.body, drawn.compact];
        let ids = both
            .iter()
            .flat_map(|b| b.as_array().unwrap())
            .map(|b| b["block_id"].as_str().unwrap().to_owned());
        ids.collect::<std::collections::BTreeSet<_>>()
    };
    assert!(ids(3).is_disjoint(&ids(4)));
    assert_eq!(super::card(&WORDS, &card, &marks()), super::card(&WORDS, &card, &marks()));
}

#[test]
fn a_control_without_a_token_is_not_drawn() {
    let bare = Marks { tokens: vec![(Control::Deny, "k".into())], ..marks() };
    let read = read(&super::card(&WORDS, &approval(open(vec![], 1)), &bare).body);
    assert!(read.contains("cs.deny") && !read.contains("cs.approve"));
}

/// Any text: prose, markup, entities, clusters, invisible and wide characters, and a lot of it.
fn any_text() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        4 => "[a-zA-Z ,.]{0,40}",
        1 => proptest::sample::select(vec![HOSTILE, "&&&&<<<<>>>>", "👨‍👩‍👧‍👦", "e\u{301}\u{302}", "\u{202e}", "\n\n", "```", "𠜎𠜱", "\0", "          "])
            .prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
    ];
    (proptest::collection::vec(part, 0..12), prop_oneof![4 => 1_usize..4, 1 => 1_usize..120])
        .prop_map(|(parts, times)| parts.concat().repeat(times))
}

fn any_status() -> impl Strategy<Value = Status> {
    let person = || {
        (any_text(), proptest::option::of(Just("U0DANA".to_owned())))
            .prop_map(|(subject, mention)| PersonRef { subject, mention })
    };
    let outcome = proptest::sample::select(vec![
        Outcome::Approved,
        Outcome::Denied,
        Outcome::Answered,
        Outcome::Connected,
        Outcome::Declined,
        Outcome::Canceled,
        Outcome::Failed,
        Outcome::Elsewhere,
        Outcome::Gone,
    ]);
    prop_oneof![
        (proptest::collection::vec(person(), 0..40), 1_u32..50)
            .prop_map(|(votes, needed)| open(votes, needed)),
        Just(Status::ReadOnly),
        (person(), any_text(), any::<bool>()).prop_map(|(by, decision, accepted)| Status::Delivering {
            by,
            decision,
            accepted
        }),
        (
            outcome,
            any::<bool>(),
            proptest::option::of(person()),
            proptest::option::of(any_text()),
            proptest::option::of(any_text()),
            any::<i64>()
        )
            .prop_map(|(outcome, rejected, by, elsewhere_by, reason, at)| Status::Ended {
                outcome,
                rejected,
                by,
                elsewhere_by,
                elsewhere_what: Some(outcome),
                at: Millis(at),
                reason,
            }),
    ]
}

fn any_card() -> impl Strategy<Value = Card> {
    let kind =
        proptest::sample::select(vec![Kind::Approval, Kind::Question, Kind::Connection, Kind::Unknown]);
    let facts = proptest::collection::vec(
        (any_text(), any_text()).prop_map(|(label, value)| Fact { label, value }),
        0..8,
    );
    let choice = (any_text(), any_text()).prop_map(|(label, description)| Choice {
        label,
        description,
        value: Value::Null,
    });
    let question = (any_text(), proptest::collection::vec(choice, 0..6), any::<bool>(), any::<bool>())
        .prop_map(|(text, options, multiple, free_text)| Question {
            id: "q".into(),
            text,
            options,
            multiple,
            free_text,
        });
    let form =
        (kind, any_text(), any_text(), facts, proptest::collection::vec(question, 0..4), any::<bool>())
            .prop_map(|(kind, title, prompt, facts, questions, arguments_withheld)| Form {
                kind,
                title,
                prompt,
                facts,
                questions,
                arguments_withheld,
            });
    let names = proptest::collection::vec(any_text(), 0..30);
    let asks =
        (any::<bool>(), any::<bool>()).prop_map(|(confirm, reason_on_deny)| Asks { confirm, reason_on_deny });
    (form, any_status(), names, [any_text(), any_text(), any_text(), any_text()], any::<i64>(), asks)
        .prop_map(|(form, status, approvers, [agent, runtime, short_id, url], opened, asks)| {
            let controls = Card::controls_for(&form.kind, &status, asks);
            Card {
                owner: Some(PersonRef { subject: agent.clone(), mention: None }),
                details_url: Some(format!("https://app.example/{url}")),
                form,
                agent,
                runtime,
                approvers,
                opened: Millis(opened),
                short_id,
                status,
                controls,
                mention: Mention::default(),
                gated: true,
            }
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn slack_case_25_and_34_any_card_is_within_every_rule(card in any_card()) {
        let drawn = drawn(&card);
        let shown = read(&drawn.body);
        prop_assert_eq!(drawn.cut, shown.contains("This card does not show everything."));
        let hidden = |text: &str| text.contains(['\u{202e}', '\0']);
        prop_assert!(!hidden(&shown) && !hidden(&drawn.text));
    }
}

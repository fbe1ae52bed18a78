use super::super::render::tests::{HOSTILE, WORDS, any_card, open_approval};
use super::*;
use crate::domain::ids::CardId;
use crate::domain::interaction::Outcome;
use crate::domain::notice::Notice;
use proptest::prelude::*;
use uuid::Uuid;

fn view(about: Card, content: Content) -> View {
    View { card: CardId(Uuid::from_u128(7)), rev: 1, about, content }
}

fn page(at: usize, of: usize) -> Content {
    let token =
        |page: Option<usize>| page.filter(|page| (1..=of).contains(page)).map(|page| format!("o_{page}"));
    Content::ShowAll(Page {
        at,
        of,
        previous: token(at.checked_sub(1)),
        next: token(Some(at + 1)),
        unlocks: true,
    })
}

fn response(about: Card, content: Content, turned: bool) -> Value {
    match opening(&WORDS, &view(about, content), turned) {
        Opening::Response(response) => response,
        Opening::File { first } => panic!("a file: {first}"),
    }
}

fn long(chars: usize) -> Card {
    let mut card = open_approval();
    card.form.prompt = "0123456789 ".repeat(chars / 11);
    card
}

#[test]
fn the_form_for_a_reason() {
    let form = response(open_approval(), Content::DenyReason { token: "o_form".into() }, false);
    assert_eq!(rules::modal(&form["data"]), Vec::<String>::new());
    insta::assert_json_snapshot!(form);
}

#[test]
fn the_second_question() {
    let asked = response(open_approval(), Content::Confirm { token: "o_yes".into() }, false);
    insta::assert_json_snapshot!(asked);
}

#[test]
fn a_page_opens_and_is_turned_in_its_place() {
    let card = long(9_000);
    let of = pages(&WORDS, &card);
    assert!((3..=PAGES).contains(&of), "{of}");
    let first = response(card.clone(), page(1, of), false);
    assert_eq!((first["type"].as_u64(), first["data"]["flags"].as_u64()), (Some(4), Some(EPHEMERAL)));
    let last = response(card, page(of, of), true);
    assert_eq!((last["type"].as_u64(), last["data"].get("flags")), (Some(7), None));
    let buttons = |response: &Value| response["data"]["components"].to_string();
    assert!(buttons(&first).contains("c1.o_2.all") && !buttons(&first).contains("Previous"));
    assert!(buttons(&last).contains("Previous") && !buttons(&last).contains("Next"));
    insta::assert_json_snapshot!(response(open_approval(), page(1, 2), false));
}

#[test]
fn in_the_place_of_a_page_stands_why_there_is_none() {
    let gone =
        Notice::AlreadyEnded { outcome: Outcome::Denied, by: None, at: crate::domain::clock::Millis(0) };
    let told = response(open_approval(), Content::Told(gone), true);
    assert_eq!(
        (told["type"].as_u64(), &told["data"]["components"], &told["data"]["embeds"]),
        (Some(7), &json!([]), &json!([]))
    );
}

#[test]
fn more_than_six_pages_are_a_file() {
    let card = long(100_000);
    assert_eq!(pages(&WORDS, &card), 1, "whoever has the file has all of it");
    let view = view(card.clone(), page(1, 1));
    let Opening::File { first } = opening(&WORDS, &view, false) else { panic!() };
    assert_eq!(first, json!({"type": 5, "data": {"flags": EPHEMERAL}}));
    let (body, text) = file(&WORDS, &view);
    assert!(text.contains(&card.form.prompt) && text.contains("close_incident"));
    insta::assert_json_snapshot!(body);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    /// Everything is on the pages, within the rules, whatever it is.
    #[test]
    fn discord_case_23_the_pages_hold_everything(card in any_card()) {
        let of = pages(&WORDS, &card);
        let whole = parts(&WORDS, &card);
        let text: String = whole.iter().map(|part| match part { Part::Facts(text) | Part::Words { text, .. } => text.as_str() }).collect();
        let pen = Pen { templates: &WORDS, card: &card };
        prop_assert_eq!(text, format!("{}{}", pen.fact_lines(), pen.words()));
        for at in 1..=of {
            match opening(&WORDS, &view(card.clone(), page(at, of)), at > 1) {
                Opening::Response(response) => {
                    let mut data = response["data"].clone();
                    data.as_object_mut().unwrap().remove("flags");
                    prop_assert_eq!(rules::message(&data), Vec::<String>::new());
                }
                Opening::File { .. } => prop_assert!(whole.len() > PAGES),
            }
        }
        let Opening::Response(form) = opening(&WORDS, &view(card, Content::DenyReason { token: "o".into() }), false) else { panic!() };
        prop_assert_eq!(rules::modal(&form["data"]), Vec::<String>::new());
    }
}

#[test]
fn nothing_foreign_is_markup_in_what_opens() {
    let mut card = open_approval();
    card.form.title = HOSTILE.into();
    card.form.prompt = HOSTILE.into();
    card.agent = HOSTILE.into();
    for content in [
        page(1, 3),
        page(2, 3),
        Content::Confirm { token: "o".into() },
        Content::DenyReason { token: "o".into() },
    ] {
        let shown = response(card.clone(), content, false).to_string();
        for alive in ["<@1>", "[ok](", "](https:", "||x", "<t:0"] {
            assert!(!shown.contains(alive), "{alive} in {shown}");
        }
    }
}

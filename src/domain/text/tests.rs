use super::*;
use proptest::prelude::*;
use rstest::rstest;
use unicode_properties::{GeneralCategory as Category, UnicodeGeneralCategory};

#[rstest]
#[case("a\u{202e}b", "a\\u{202e}b")]
#[case("zero\u{200b}width\u{feff}", "zero\\u{200b}width\\u{feff}")]
#[case("nul\0", "nul\\u{0}")]
#[case("line\u{2028}sep\u{2029}", "line\\u{2028}sep\\u{2029}")]
#[case("private\u{e000} unassigned\u{378}", "private\\u{e000} unassigned\\u{378}")]
#[case("fill\u{3164}er\u{115f}\u{34f}", "fill\\u{3164}er\\u{115f}\\u{34f}")]
#[case("tag\u{e0041}", "tag\\u{e0041}")]
#[case("a\r\nb\rc\td", "a\nb\\u{d}c\td")]
#[case("e\u{301}", "é")]
#[case("\u{fb01}", "\u{fb01}")] // a ligature stays: NFC, not NFKC
#[case("no\u{a0}break\u{2003}\u{2003}", "no\\u{a0}break\\u{2003}×2")]
#[case("eight        .", "eight        .")]
#[case("nine         .", "nine\\u{20}×9.")]
#[case("mixed \t \t \t \t \t.", "mixed\\u{20}\\u{9}\\u{20}\\u{9}\\u{20}\\u{9}\\u{20}\\u{9}\\u{20}\\u{9}.")]
#[case("a\n\n\n\n\n\n\n\n\n\nb", "a\\u{a}×10\nb")]
#[case("❤\u{fe0f} 1\u{fe0f}\u{20e3}", "❤\u{fe0f} 1\u{fe0f}\u{20e3}")]
#[case("a\u{fe0f}1\u{fe0f}❤\u{fe0f}\u{fe0f}", "a\\u{fe0f}1\\u{fe0f}❤\u{fe0f}\\u{fe0f}")]
#[case("葛\u{e0100}葛\u{e0100}\u{e0101}", "葛\u{e0100}葛\u{e0100}\\u{e0101}")]
#[case("👩\u{200d}💻", "👩\\u{200d}💻")]
fn slack_case_33_what_is_invisible_is_shown(#[case] raw: &str, #[case] shown: &str) {
    assert_eq!(visible(raw), shown);
}

#[rstest]
#[case("https://evil.test", "https[:]//evil[.]test")]
#[case("evil.test/x", "evil[.]test/x")]
#[case("see www.1x2.com.", "see www[.]1x2[.]com.")]
#[case("dana@example.com", "dana[@]example[.]com")]
#[case("mailto:dana@example.com", "mailto[:]dana[@]example[.]com")]
#[case("ftp://10.0.0.1/x", "ftp[:]//10.0.0.1/x")]
#[case("tel:+49123", "tel[:]+49123")]
#[case("пример.рф", "пример[.]рф")]
#[case("xn--e1afmkfd.xn--p1ai", "xn--e1afmkfd[.]xn--p1ai")]
#[case("evil。com です。次は", "evil[。]com です。次は")]
#[case("evil．com", "evil[．]com")]
#[case("v1.2.3 costs 3.14, e.g. now. Next", "v1.2.3 costs 3.14, e.g. now. Next")]
#[case("sub.evil2.example.com:8080", "sub[.]evil2[.]example[.]com:8080")]
#[case("evil.c\u{327}\u{302}om", "evil[.]ç\u{302}om")]
#[case("note:this a::b pkg@1.2.3 @channel", "note:this a::b pkg@1.2.3 @channel")]
#[case("done.Next", "done[.]Next")]
fn slack_case_31_bare_addresses_are_broken(#[case] raw: &str, #[case] shown: &str) {
    assert_eq!(visible(raw), shown);
}

#[test]
fn one_line_has_no_break_and_loses_no_word() {
    assert_eq!(line("  a\n\n b\tc \r\nd "), "a ⏎ b c ⏎ d");
    assert_eq!(line("\n \n"), "");
    assert!(is_blank(" \n\t") && !is_blank("\u{200b}"));
}

/// Text that attacks: letters, dots, colons, everything invisible, and any character at all.
fn hostile() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        3 => "[a-z]{1,4}",
        2 => proptest::sample::select(vec![
            ".", "://", "@", "www.", ".com", "mailto:", " ", "         ", "\t", "\n", "\r\n", "\u{200b}", "\u{202e}",
            "\u{fe0f}", "❤", "\u{e0100}", "葛", "\u{a0}", "\u{301}", "\u{338}", ">", "\0", "\u{2028}", "。", "．", "[", "]",
        ])
        .prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
    ];
    proptest::collection::vec(part, 0..24).prop_map(|parts| parts.concat())
}

/// What a client's link finder looks for, written apart from the code under test.
fn linkable(text: &str) -> bool {
    let chars: Vec<char> = text.chars().collect();
    text.contains("://")
        || text.to_lowercase().contains("www.a")
        || chars.windows(4).any(|w| {
            matches!(w, [a, '.', b, c] if a.is_ascii_alphanumeric() && b.is_ascii_alphabetic() && c.is_ascii_alphabetic())
        })
}

proptest! {
    #[test]
    fn visible_is_idempotent(text in hostile()) {
        let once = visible(&text);
        prop_assert_eq!(visible(&once), once);
    }

    #[test]
    fn line_is_idempotent_and_has_no_break(text in hostile()) {
        let once = line(&text);
        prop_assert!(!once.contains(['\n', '\t', '\r']));
        prop_assert_eq!(line(&once), once);
    }

    #[test]
    fn nothing_invisible_and_nothing_linkable_is_left(text in hostile()) {
        let shown = visible(&text);
        for c in shown.chars() {
            prop_assert!(!matches!(
                c.general_category(),
                Category::Format | Category::LineSeparator | Category::ParagraphSeparator
                    | Category::PrivateUse | Category::Unassigned
            ), "{c:?} in {shown:?}");
            prop_assert!(c == '\n' || c == '\t' || !c.is_control(), "{:?} in {:?}", c, shown);
            prop_assert!(c == ' ' || c.general_category() != Category::SpaceSeparator);
        }
        prop_assert!(!linkable(&shown), "{shown:?}");
    }

    #[test]
    fn plain_prose_stays_as_it_is(text in "[A-Za-z ,!?]{0,8}( [A-Za-z]{1,8}){0,8}") {
        let plain: String = text.split(' ').filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
        prop_assert_eq!(visible(&plain), plain);
    }
}

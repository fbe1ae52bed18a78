//! Which characters a reader cannot see.

use unicode_properties::{GeneralCategory as Category, UnicodeEmoji, UnicodeGeneralCategory};

/// A space that is not U+0020, and two characters that look like one.
pub(super) fn unusual_space(c: char) -> bool {
    c != ' ' && (c.general_category() == Category::SpaceSeparator || matches!(c, '\u{2800}' | '\u{1d159}'))
}

/// Whether `c` shows nothing by itself where it stands. Newline, tab and spaces are not asked for.
pub(super) fn is_hidden(before: Option<char>, c: char, after: Option<char>) -> bool {
    if variation_selector(c) {
        return !attached(before, c, after);
    }
    // Default-ignorable characters outside the categories below (Unicode: DerivedCoreProperties).
    let ignorable = matches!(
        c,
        '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{2065}' | '\u{3164}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{fff8}' | '\u{e0000}'..='\u{e0fff}'
    );
    ignorable
        || matches!(
            c.general_category(),
            Category::Control
                | Category::Format
                | Category::LineSeparator
                | Category::ParagraphSeparator
                | Category::PrivateUse
                | Category::Unassigned
                | Category::Surrogate
        )
}

fn variation_selector(c: char) -> bool {
    matches!(c, '\u{180b}'..='\u{180d}' | '\u{180f}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}')
}

/// A selector belongs to the character before it only where Unicode gives the pair a meaning: emoji
/// presentation, keycaps, ideographic variants, Mongolian letters. Elsewhere it hides data.
fn attached(before: Option<char>, selector: char, after: Option<char>) -> bool {
    let Some(before) = before else { return false };
    match selector {
        '\u{fe0e}' | '\u{fe0f}' if matches!(before, '0'..='9' | '#' | '*') => after == Some('\u{20e3}'),
        '\u{fe0e}' | '\u{fe0f}' => before.is_emoji_char(),
        '\u{e0100}'..='\u{e01ef}' => {
            matches!(before, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{20000}'..='\u{323af}')
        }
        '\u{180b}'..='\u{180d}' | '\u{180f}' => matches!(before, '\u{1820}'..='\u{18aa}'),
        _ => false,
    }
}

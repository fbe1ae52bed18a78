//! Neutralising foreign text before a platform escapes it.
//!
//! Invariant: what a reader sees is what is there. No character of the result is invisible or
//! changes the direction of others, and nothing in it has a shape that a chat client turns into a
//! link. Replacements only: nothing is dropped, so a text that looks empty is empty.
//!
//! Decisions taken:
//! - An agent may type `\u{200b}` itself, and that reads like our escape of the character. Harmless:
//!   both are shown, and answers never carry this form of a text.
//! - Clients know the list of top-level domains and we do not: every dotted name whose inner or last
//!   label begins with two letters is broken, `main.rs` too.
//! - Emoji joined by U+200D are shown with the joiner as an escape: it hides between letters as well.

mod address;
mod hidden;

use std::fmt::Write as _;
use unicode_normalization::UnicodeNormalization;

/// Runs of blanks or line breaks longer than this show their count.
const RUN: usize = 8;

/// The text as it may be shown: NFC, CRLF as LF, everything invisible as `\u{…}`, unusual spaces and
/// long runs of blanks with their count, bare addresses broken (`https[:]//evil[.]test`).
///
/// Line breaks and tabs stay. Applying it twice changes nothing more.
#[must_use]
pub fn visible(text: &str) -> String {
    let text: String = text.replace("\r\n", "\n").nfc().collect();
    address::broken(&seen(&text))
}

/// [`visible`] on one line: line breaks become ` ⏎ `, tabs a space, blanks at the ends go.
#[must_use]
pub fn line(text: &str) -> String {
    let shown = visible(text).replace('\t', " ");
    let lines: Vec<&str> = shown.split('\n').map(|line| line.trim_matches(' ')).collect();
    let full: Vec<&str> = lines.into_iter().filter(|line| !line.is_empty()).collect();
    full.join(" ⏎ ")
}

/// Whether a text has nothing to show.
#[must_use]
pub fn is_blank(text: &str) -> bool {
    text.chars().all(char::is_whitespace)
}

/// Whether a reader finds nothing in it: blanks and what cannot be seen.
#[must_use]
pub fn says_nothing(text: &str) -> bool {
    text.chars().all(|c| c.is_whitespace() || hidden::unusual_space(c) || hidden::is_hidden(None, c, None))
}

/// Replaces what cannot be seen.
fn seen(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(&c) = chars.get(at) {
        let rest = chars.get(at..).unwrap_or_default();
        if c == ' ' || c == '\t' {
            let blanks = rest.iter().take_while(|c| matches!(c, ' ' | '\t')).count();
            write_blanks(&mut out, rest.get(..blanks).unwrap_or_default());
            at += blanks;
        } else if c == '\n' {
            let breaks = rest.iter().take_while(|c| **c == '\n').count();
            if breaks > RUN {
                counted(&mut out, '\n', breaks);
                out.push('\n');
            } else {
                out.extend(std::iter::repeat_n('\n', breaks));
            }
            at += breaks;
        } else if hidden::unusual_space(c) {
            let same = rest.iter().take_while(|other| **other == c).count();
            counted(&mut out, c, same);
            at += same;
        } else {
            let before = at.checked_sub(1).and_then(|before| chars.get(before)).copied();
            if hidden::is_hidden(before, c, rest.get(1).copied()) {
                let _ = write!(out, "{}", c.escape_unicode());
            } else {
                out.push(c);
            }
            at += 1;
        }
    }
    out
}

/// Writes a run of spaces and tabs; a long one by its counts.
fn write_blanks(out: &mut String, blanks: &[char]) {
    if blanks.len() <= RUN {
        out.extend(blanks);
        return;
    }
    for group in blanks.chunk_by(|a, b| a == b) {
        if let Some(&c) = group.first() {
            counted(out, c, group.len());
        }
    }
}

fn counted(out: &mut String, c: char, count: usize) {
    // Writing to a String cannot fail.
    let _ = write!(out, "{}", c.escape_unicode());
    if count > 1 {
        let _ = write!(out, "×{count}");
    }
}

#[cfg(test)]
mod tests;

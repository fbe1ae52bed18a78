//! Breaking bare addresses visibly, so that clients do not turn them into links.
//!
//! A dot is broken as `[.]`, the colon of a scheme as `[:]`, the at sign of a mail address as `[@]`.

use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory};

/// Schemes that clients link without `//`.
const SHORT_SCHEMES: [&str; 9] =
    ["mailto", "tel", "sms", "skype", "callto", "xmpp", "magnet", "data", "javascript"];

/// Breaks every address in a text. Idempotent: what is broken has no such shape any more.
pub(super) fn broken(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len() + 16);
    let mut at = 0;
    while at < chars.len() {
        let end = name_end(&chars, at);
        if end > at {
            at = write_name(&chars, at, end, &mut out);
            continue;
        }
        let Some(&c) = chars.get(at) else { break };
        match c {
            ':' if scheme_colon(&chars, at) => out.push_str("[:]"),
            '@' if mail_sign(&chars, at) => {
                out.push('[');
                out.push(c);
                out.push(']');
            }
            _ => out.push(c),
        }
        at += 1;
    }
    out
}

/// A character that a host's label may hold, marks included (an accent hides nothing from a client).
fn in_label(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '-' | '_') || c.general_category_group() == GeneralCategoryGroup::Mark
}

fn is_letter(c: char) -> bool {
    c.is_alphabetic() || c.general_category_group() == GeneralCategoryGroup::Mark
}

fn is_dot(chars: &[char], at: usize) -> bool {
    let ascii = |at: Option<usize>| at.and_then(|at| chars.get(at)).is_some_and(char::is_ascii_alphanumeric);
    match chars.get(at) {
        Some('.' | '\u{2024}' | '\u{ff0e}' | '\u{ff61}') => true,
        // The full stop of Chinese and Japanese prose; a separator only between Latin labels.
        Some('\u{3002}') => ascii(at.checked_sub(1)) && ascii(Some(at + 1)),
        _ => false,
    }
}

/// Where the dotted name starting here ends: labels joined by single dots. `at` when none starts.
fn name_end(chars: &[char], start: usize) -> usize {
    let mut at = start;
    loop {
        let label = chars.get(at..).unwrap_or_default().iter().take_while(|c| in_label(**c)).count();
        if label == 0 {
            // A dot at the end belongs to the sentence.
            return if at > start { at - 1 } else { at };
        }
        at += label;
        if !is_dot(chars, at) {
            return at;
        }
        at += 1;
    }
}

/// Whether a dotted name could be a host: a label after the first begins with two letters, or the
/// first is `www`.
fn is_host(name: &[char]) -> bool {
    let mut labels = vec![];
    let mut from = 0;
    for at in 0..=name.len() {
        if at == name.len() || is_dot(name, at) {
            labels.push(name.get(from..at).unwrap_or_default());
            from = at + 1;
        }
    }
    let www =
        labels.first().is_some_and(|label| label.iter().collect::<String>().eq_ignore_ascii_case("www"));
    labels.len() > 1
        && (www
            || labels
                .iter()
                .skip(1)
                .any(|label| label.iter().take(2).filter(|c| is_letter(**c)).count() == 2))
}

/// Writes a name, broken if it could be a host.
fn write_name(chars: &[char], start: usize, end: usize, out: &mut String) -> usize {
    let name = chars.get(start..end).unwrap_or_default();
    let host = is_host(name);
    for (at, c) in name.iter().enumerate() {
        if host && is_dot(name, at) {
            out.push('[');
            out.push(*c);
            out.push(']');
        } else {
            out.push(*c);
        }
    }
    end
}

/// The colon of `scheme://`, or of a scheme that is linked without the slashes.
fn scheme_colon(chars: &[char], at: usize) -> bool {
    let after = |offset: usize| chars.get(at + offset).copied();
    let word: Vec<char> = chars
        .get(..at)
        .unwrap_or_default()
        .iter()
        .rev()
        .take_while(|c| c.is_ascii_alphanumeric())
        .copied()
        .collect();
    if after(1) == Some('/') && after(2) == Some('/') {
        return true;
    }
    let word: String = word.into_iter().rev().collect::<String>().to_ascii_lowercase();
    after(1).is_some_and(|c| !c.is_whitespace()) && SHORT_SCHEMES.contains(&word.as_str())
}

/// The at sign between something and a host.
fn mail_sign(chars: &[char], at: usize) -> bool {
    let local = at.checked_sub(1).and_then(|before| chars.get(before)).is_some_and(|c| {
        in_label(*c) || c.is_ascii_punctuation() && *c != '@' && !matches!(c, '(' | '<' | '[')
    });
    let end = name_end(chars, at + 1);
    local && chars.get(at + 1..end).is_some_and(is_host)
}

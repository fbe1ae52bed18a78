//! How much fits, and cutting what does not.
//!
//! Invariant: budgets are UTF-16 units after escaping (Discord says "characters" without a unit; this is never
//! less than what it counts). Text is cut before it is escaped, so never inside an escape; between graphemes,
//! so never inside a character as people see it; and what was left out is said in the place where it was.

use unicode_segmentation::UnicodeSegmentation;

/// `content` of a bot's message.
pub(super) const CONTENT: usize = 2_000;
pub(super) const TITLE: usize = 256;
pub(super) const DESCRIPTION: usize = 4_096;
/// Title, description, fields and footer of all embeds together.
pub(super) const EMBEDS: usize = 6_000;
pub(super) const FIELDS: usize = 25;
pub(super) const FIELD_NAME: usize = 256;
pub(super) const FIELD_VALUE: usize = 1_024;
pub(super) const FOOTER: usize = 2_048;
/// Of the footer, so that a whole description fits beside it.
pub(super) const FOOT: usize = 1_500;
pub(super) const BUTTON: usize = 80;
pub(super) const URL: usize = 512;
pub(super) const CUSTOM_ID: usize = 100;
/// Title of a form and label of a field of it.
pub(super) const MODAL: usize = 45;
/// What stands below a label of a form.
pub(super) const MODAL_HINT: usize = 100;
pub(super) const INPUT: usize = 4_000;
pub(super) const NONCE: usize = 25;
pub(super) const THREAD_NAME: usize = 100;
/// Accounts, and roles, that one message may ping.
pub(super) const MENTIONS: usize = 100;

/// Foreign words in the push notification.
pub(super) const PUSH_FOREIGN: usize = 300;
/// A name within a sentence.
pub(super) const NAME: usize = 60;
/// A configured name, a field's label.
pub(super) const LABEL: usize = 60;
/// A person's reason with a denial, on the card.
pub(super) const REASON: usize = 1_000;

/// A cluster longer than this is cut between its characters: marks can be stacked without end.
const CLUSTER: usize = 64;

/// What a text costs where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Where Discord's Markdown is active: every ASCII punctuation mark gets a backslash.
    Markdown,
    /// Where nothing is markup, and in blocks of code.
    Plain,
}

/// UTF-16 units of a text that is not escaped any more.
pub(super) fn units(text: &str) -> usize {
    text.encode_utf16().count()
}

/// UTF-16 units after escaping.
pub(super) fn cost(text: &str, place: Place) -> usize {
    let escapes = match place {
        Place::Plain => 0,
        Place::Markdown => text.bytes().filter(u8::is_ascii_punctuation).count(),
    };
    units(text) + escapes
}

/// The pieces between which a text may be cut.
fn pieces(text: &str) -> impl DoubleEndedIterator<Item = &str> {
    text.graphemes(true).flat_map(|cluster| {
        let whole = cluster.len() <= CLUSTER;
        let single = whole.then_some(cluster).into_iter();
        let chars = if whole { "" } else { cluster };
        single.chain(chars.split_inclusive(|_: char| true))
    })
}

/// The longest beginning that costs no more than `budget`, in bytes.
fn head(text: &str, budget: usize, place: Place) -> usize {
    let mut spent = 0;
    let mut end = 0;
    for piece in pieces(text) {
        spent += cost(piece, place);
        if spent > budget {
            break;
        }
        end += piece.len();
    }
    end
}

/// The longest end that costs no more than `budget`: where it starts, in bytes.
fn tail(text: &str, budget: usize, place: Place) -> usize {
    let mut spent = 0;
    let mut start = text.len();
    for piece in pieces(text).rev() {
        spent += cost(piece, place);
        if spent > budget {
            break;
        }
        start -= piece.len();
    }
    start
}

/// A text made to fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fitted {
    pub(super) text: String,
    pub(super) cut: bool,
}

/// The whole text if it fits; else its beginning, `mark(characters left out)`, and its end.
pub(super) fn fit(text: &str, budget: usize, place: Place, mark: impl Fn(usize) -> String) -> Fitted {
    if cost(text, place) <= budget {
        return Fitted { text: text.to_owned(), cut: false };
    }
    let characters = |text: &str| text.graphemes(true).count();
    // The mark names a number no larger than this one.
    let widest = cost(&mark(characters(text)), place) + 2;
    let room = budget.saturating_sub(widest);
    let end = head(text, room - room / 4, place);
    let start = tail(text, room / 4, place).max(end);
    let (before, left_out, after) = (
        text.get(..end).unwrap_or_default(),
        text.get(end..start).unwrap_or_default(),
        text.get(start..).unwrap_or_default(),
    );
    let mark = mark(characters(left_out));
    let whole = format!("{before} {mark} {after}").trim().to_owned();
    // A budget smaller than the mark: the mark itself is cut, and still ends in one.
    Fitted { text: short(&whole, budget, place), cut: true }
}

/// The beginning of a text, with `…` if something is missing. For names and labels.
pub(super) fn short(text: &str, budget: usize, place: Place) -> String {
    if cost(text, place) <= budget {
        return text.to_owned();
    }
    let end = head(text, budget.saturating_sub(1), place);
    format!("{}…", text.get(..end).unwrap_or_default().trim_end())
}

/// Splits a text into parts of at most `budget`, after a line break where one is near the end.
pub(super) fn split(text: &str, budget: usize, place: Place) -> Vec<String> {
    let mut parts = vec![];
    let mut rest = text;
    // The length alone tells for most of a long text, which is not gone through again and again.
    while rest.len() > budget && cost(rest.get(..ceil(rest, budget * 4)).unwrap_or(rest), place) > budget {
        let end = head(rest, budget, place).max(rest.chars().next().map_or(1, char::len_utf8));
        let window = rest.get(..end).unwrap_or_default();
        let at_break = window.rfind('\n').map(|at| at + 1).filter(|at| *at > end / 2);
        let (part, next) = rest.split_at_checked(at_break.unwrap_or(end)).unwrap_or((rest, ""));
        parts.push(part.to_owned());
        rest = next;
    }
    if cost(rest, place) > budget {
        // Short in bytes and long when escaped.
        let end = head(rest, budget, place).max(rest.chars().next().map_or(1, char::len_utf8));
        let (part, next) = rest.split_at_checked(end).unwrap_or((rest, ""));
        parts.push(part.to_owned());
        parts.extend(split(next, budget, place));
    } else if !rest.is_empty() {
        parts.push(rest.to_owned());
    }
    parts
}

/// The first character boundary at or after a byte.
fn ceil(text: &str, at: usize) -> usize {
    (at..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len())
}

/// The largest cap for each of several texts under which all fit into the budget together.
pub(super) fn cap(budget: usize, costs: &[usize]) -> usize {
    let mut sorted = costs.to_vec();
    sorted.sort_unstable();
    let mut left = budget;
    for (at, cost) in sorted.iter().enumerate() {
        let each = left / (sorted.len() - at);
        if *cost > each {
            return each;
        }
        left -= cost;
    }
    usize::MAX
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn dots(count: usize) -> String {
        format!("[… {count} characters not shown …]")
    }

    /// Discord case 11: at the limit nothing is cut, above it between characters as people see them.
    #[test]
    fn discord_case_11_cuts_are_between_characters() {
        let letters = "x".repeat(2000);
        assert_eq!(fit(&letters, CONTENT, Place::Plain, dots), Fitted { text: letters.clone(), cut: false });
        let above = fit(&"x".repeat(2001), CONTENT, Place::Plain, dots);
        assert!(above.cut && units(&above.text) <= CONTENT && above.text.contains("characters not shown"));
        let astral = fit(&"😀".repeat(2000), CONTENT, Place::Plain, dots);
        assert!(astral.cut && units(&astral.text) <= CONTENT && !astral.text.contains('\u{fffd}'));
        let marks = "a\u{301}".repeat(2000);
        let cut = fit(&marks, CONTENT, Place::Plain, dots);
        assert!(cut.cut && units(&cut.text) <= CONTENT);
        assert!(!cut.text.split_whitespace().last().unwrap().starts_with('\u{301}'));
        let joined = "👩\u{200d}".repeat(1000);
        assert!(units(&joined) >= 3000 && joined.graphemes(true).count() < 10);
        let cut = fit(&joined, CONTENT, Place::Plain, dots);
        assert!(cut.cut && units(&cut.text) <= CONTENT && !cut.text.is_empty());
    }

    #[test]
    fn escapes_count() {
        assert_eq!(cost("a*b_c", Place::Markdown), 7);
        assert_eq!(cost("a*b_c", Place::Plain), 5);
        assert_eq!(cost("😀", Place::Plain), 2);
    }

    proptest! {
        #[test]
        fn what_is_cut_fits_and_what_is_split_is_whole(text in "\\PC{0,400}", budget in 20..300_usize) {
            for place in [Place::Plain, Place::Markdown] {
                prop_assert!(cost(&fit(&text, budget, place, dots).text, place) <= budget);
                prop_assert!(cost(&short(&text, budget, place), place) <= budget);
                let parts = split(&text, budget, place);
                prop_assert_eq!(parts.concat(), text.clone());
                for part in parts {
                    // One character may be larger than a tiny budget; here none is.
                    prop_assert!(cost(&part, place) <= budget, "{part}");
                }
            }
        }
    }
}

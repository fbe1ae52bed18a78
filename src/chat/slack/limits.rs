//! How much fits, and cutting what does not.
//!
//! Invariant: budgets are costs, which are bytes after Slack's escaping: text is stored escaped, and
//! whether Slack counts characters or bytes is unsettled. Text is cut before it is escaped, so never
//! inside an entity; between graphemes, so never inside a character as people see it; and what was
//! left out is said in the place where it was.

use unicode_segmentation::UnicodeSegmentation;

/// All block text of a message together.
pub(super) const MESSAGE: usize = 12_000;
/// Text of one section or rich-text block.
pub(super) const SECTION: usize = 2_900;
pub(super) const HEADER: usize = 140;
pub(super) const BUTTON: usize = 70;
/// The top-level text.
pub(super) const TEXT: usize = 3_900;
/// Foreign words in the top-level text.
pub(super) const TEXT_FOREIGN: usize = 300;
/// A name within a sentence.
pub(super) const NAME: usize = 120;
/// A person's reason with a denial.
pub(super) const REASON: usize = 2_800;
/// A second question: its title, its text, its two buttons.
pub(super) const CONFIRM_TITLE: usize = 90;
pub(super) const CONFIRM_TEXT: usize = 280;
pub(super) const CONFIRM_BUTTON: usize = 28;
/// Title and buttons of a view.
pub(super) const VIEW_TITLE: usize = 24;
/// Label and hint of a field.
pub(super) const INPUT: usize = 1_900;
/// An address behind a link of ours.
pub(super) const URL: usize = 1_500;
/// A configured name, a field's label.
pub(super) const LABEL: usize = 60;

/// A cluster larger than this is cut between its characters: marks can be stacked without end.
const CLUSTER: usize = 64;

/// Bytes after escaping.
pub(super) fn cost(text: &str) -> usize {
    text.len()
        + text
            .bytes()
            .map(|b| match b {
                b'&' => 4,
                b'<' | b'>' => 3,
                _ => 0,
            })
            .sum::<usize>()
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
fn head(text: &str, budget: usize) -> usize {
    let mut spent = 0;
    let mut end = 0;
    for piece in pieces(text) {
        spent += cost(piece);
        if spent > budget {
            break;
        }
        end += piece.len();
    }
    end
}

/// The longest end that costs no more than `budget`: where it starts, in bytes.
fn tail(text: &str, budget: usize) -> usize {
    let mut spent = 0;
    let mut start = text.len();
    for piece in pieces(text).rev() {
        spent += cost(piece);
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
pub(super) fn fit(text: &str, budget: usize, mark: impl Fn(usize) -> String) -> Fitted {
    if cost(text) <= budget {
        return Fitted { text: text.to_owned(), cut: false };
    }
    let characters = |text: &str| text.graphemes(true).count();
    // The mark names a number no larger than this one.
    let widest = cost(&mark(characters(text))) + 2;
    let room = budget.saturating_sub(widest);
    let end = head(text, room - room / 4);
    let start = tail(text, room / 4).max(end);
    let (before, left_out, after) = (
        text.get(..end).unwrap_or_default(),
        text.get(end..start).unwrap_or_default(),
        text.get(start..).unwrap_or_default(),
    );
    let mark = mark(characters(left_out));
    let whole = format!("{before} {mark} {after}").trim().to_owned();
    // A budget smaller than the mark: the mark itself is cut, and still ends in one.
    Fitted { text: short(&whole, budget), cut: true }
}

/// The beginning of a text, with `…` if something is missing. For names and labels.
pub(super) fn short(text: &str, budget: usize) -> String {
    if cost(text) <= budget {
        return text.to_owned();
    }
    let end = head(text, budget.saturating_sub("…".len()));
    format!("{}…", text.get(..end).unwrap_or_default().trim_end())
}

/// Splits a text into parts of at most `budget`, after a line break where one is near the end.
pub(super) fn split(text: &str, budget: usize) -> Vec<String> {
    let mut parts = vec![];
    let mut rest = text;
    // The length alone tells for most of a long text, which is not gone through again and again.
    while rest.len() > budget || cost(rest) > budget {
        let end = head(rest, budget).max(rest.chars().next().map_or(1, char::len_utf8));
        let window = rest.get(..end).unwrap_or_default();
        let at_break = window.rfind('\n').map(|at| at + 1).filter(|at| *at > end / 2);
        let (part, next) = rest.split_at_checked(at_break.unwrap_or(end)).unwrap_or((rest, ""));
        parts.push(part.to_owned());
        rest = next;
    }
    if !rest.is_empty() {
        parts.push(rest.to_owned());
    }
    parts
}

/// Two texts share a budget: the smaller gets what it wants, the larger the rest, at least half.
pub(super) fn share(budget: usize, first: usize, second: usize) -> (usize, usize) {
    let half = budget / 2;
    if first + second <= budget {
        (first, second)
    } else if first <= half {
        (first, budget - first)
    } else if second <= half {
        (budget - second, second)
    } else {
        (half, budget - half)
    }
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

    #[test]
    fn slack_case_25_a_text_at_the_limit_stays_and_one_above_is_cut() {
        let at = "é".repeat(1450);
        assert_eq!(cost(&at), SECTION);
        assert_eq!(fit(&at, SECTION, dots), Fitted { text: at.clone(), cut: false });
        let above = fit(&format!("{at}x"), SECTION, dots);
        assert!(above.cut && cost(&above.text) <= SECTION && above.text.contains("characters not shown"));
        assert_eq!(cost("&<>x"), "&amp;&lt;&gt;x".len());
    }

    #[test]
    fn the_count_is_what_a_reader_counts() {
        let text = "👨🏽e\u{301}a".repeat(200);
        let fitted = fit(&text, 600, dots);
        let kept = fitted.text.graphemes(true).filter(|g| ["👨🏽", "e\u{301}", "a"].contains(g)).count();
        let named: usize = fitted.text.split(' ').find_map(|word| word.parse().ok()).unwrap();
        // "characters" of the mark has two plain a's.
        assert_eq!(kept - 2 + named, 600);
    }

    #[test]
    fn head_and_tail_are_kept() {
        let text = format!("begin {} end", "x".repeat(5000));
        let fitted = fit(&text, 1000, dots).text;
        assert!(fitted.starts_with("begin ") && fitted.ends_with(" end"), "{fitted}");
    }

    #[test]
    fn shares_and_caps() {
        assert_eq!(share(100, 30, 60), (30, 60));
        assert_eq!(share(100, 30, 90), (30, 70));
        assert_eq!(share(100, 90, 30), (70, 30));
        assert_eq!(share(100, 90, 90), (50, 50));
        assert_eq!(cap(100, &[10, 20, 30]), usize::MAX);
        assert_eq!(cap(100, &[10, 60, 80]), 45);
        assert_eq!(cap(9, &[10, 10, 10]), 3);
        assert_eq!(cap(9, &[]), usize::MAX);
    }

    proptest! {
        #[test]
        fn slack_case_25_never_above_budget_never_inside_a_character(
            text in "(\\PC|[&<>]|👨‍👩‍👧|e\u{301}|\n){0,120}", budget in 0_usize..400,
        ) {
            let fitted = fit(&text, budget, dots);
            prop_assert!(cost(&fitted.text) <= budget.max("…".len()), "{} > {budget}", cost(&fitted.text));
            prop_assert_eq!(fitted.cut, cost(&text) > budget);
            let end = head(&text, budget);
            let edges: Vec<usize> = text.grapheme_indices(true).map(|(at, _)| at).chain([text.len()]).collect();
            let huge = text.graphemes(true).any(|g| g.len() > CLUSTER);
            prop_assert!(huge || edges.contains(&end) && edges.contains(&tail(&text, budget)));
            let short = short(&text, budget);
            prop_assert!(cost(&short) <= budget.max("…".len()));
        }

        #[test]
        fn split_keeps_every_byte(text in "(\\PC|[&<>]|e\u{301}|\n){0,200}", budget in 8_usize..200) {
            let parts = split(&text, budget);
            prop_assert_eq!(parts.concat(), text);
            prop_assert!(parts.iter().all(|part| cost(part) <= budget && !part.is_empty()));
        }

        #[test]
        fn a_stack_of_marks_is_cut_too(marks in 100_usize..3000) {
            let text = format!("a{}", "\u{301}".repeat(marks));
            let fitted = fit(&text, 100, dots);
            prop_assert!(fitted.cut && cost(&fitted.text) <= 100);
        }
    }
}

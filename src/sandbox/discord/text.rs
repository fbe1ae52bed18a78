//! Discord's markdown, as far as it makes something live: mentions, links, times, code.
//!
//! Invariant: a backslash takes the meaning from the punctuation behind it, except that clients link a bare
//! address whatever stands before it; inside code nothing is live. What the scanner calls live is what a person
//! could be led, called or deceived by.

/// A part of a text as a client takes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Characters, and whether a backslash stood before each.
    Plain(Vec<(char, bool)>),
    Code(String),
    User(String),
    Role(String),
    Channel(String),
    /// Epoch seconds and the style.
    Time(i64, String),
    /// A command's mention, an `<id:…>`, an emoji of a guild.
    Other(String),
    /// A masked link.
    Link {
        text: String,
        url: String,
    },
    /// A bare address, or one in angle brackets.
    Bare(String),
    /// `everyone` or `here`.
    All(String),
}

/// Splits a text into its parts.
#[must_use]
pub fn scan(text: &str) -> Vec<Piece> {
    let chars: Vec<char> = text.chars().collect();
    let (mut out, mut plain, mut at) = (Vec::new(), Vec::new(), 0);
    while at < chars.len() {
        let rest = &chars[at..];
        if rest[0] == '\\' && rest.get(1).is_some_and(char::is_ascii_punctuation) {
            plain.push((rest[1], true));
            at += 2;
            continue;
        }
        if let Some((piece, length)) = special(rest).or_else(|| bare(&plain, rest)) {
            if !plain.is_empty() {
                out.push(Piece::Plain(std::mem::take(&mut plain)));
            }
            out.push(piece);
            at += length.max(1);
        } else {
            plain.push((rest[0], false));
            at += 1;
        }
    }
    if !plain.is_empty() {
        out.push(Piece::Plain(plain));
    }
    out
}

fn starts(rest: &[char], with: &str) -> bool {
    rest.iter().copied().zip(with.chars()).filter(|(a, b)| a == b).count() == with.chars().count()
}

fn upto(rest: &[char], from: usize, end: &str) -> Option<usize> {
    (from..rest.len()).find(|at| starts(&rest[*at..], end))
}

fn special(rest: &[char]) -> Option<(Piece, usize)> {
    let text = |from: usize, to: usize| rest[from..to].iter().collect::<String>();
    match rest[0] {
        '`' => {
            let run = rest.iter().take_while(|c| **c == '`').count();
            let fence = "`".repeat(run.min(3));
            let length = fence.len();
            let end = upto(rest, length, &fence).filter(|end| *end > length)?;
            let code = text(length, end);
            if length < 3 {
                return Some((Piece::Code(code), end + length));
            }
            // A first line that is one word names the language.
            let named =
                code.split_once('\n').filter(|(first, _)| first.chars().all(|c| c.is_ascii_alphanumeric()));
            let shown = named.map_or(code.as_str(), |(_, more)| more).trim_end_matches('\n');
            Some((Piece::Code(shown.to_owned()), end + length))
        }
        '<' => {
            let end = upto(rest, 1, ">")?;
            let inner = text(1, end);
            Some((angle(&inner)?, end + 1))
        }
        '[' => {
            let close = upto(rest, 1, "](")?;
            let end = upto(rest, close + 2, ")")?;
            let url = text(close + 2, end);
            let target =
                url.split_whitespace().next().unwrap_or_default().trim_matches(['<', '>']).to_owned();
            let known = ["http://", "https://", "discord://"].iter().any(|scheme| target.starts_with(scheme));
            known.then(|| (Piece::Link { text: text(1, close), url: target }, end + 1))
        }
        '@' => ["everyone", "here"]
            .iter()
            .find(|word| starts(&rest[1..], word))
            .map(|word| (Piece::All((*word).to_owned()), word.len() + 1)),
        _ => None,
    }
}

fn angle(inner: &str) -> Option<Piece> {
    let digits =
        |text: &str| (!text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.to_owned());
    if let Some(id) = inner.strip_prefix("@&") {
        return digits(id).map(Piece::Role);
    }
    if let Some(id) = inner.strip_prefix('@') {
        return digits(id.strip_prefix('!').unwrap_or(id)).map(Piece::User);
    }
    if let Some(id) = inner.strip_prefix('#') {
        return digits(id).map(Piece::Channel);
    }
    if let Some(time) = inner.strip_prefix("t:") {
        let (seconds, style) = time.split_once(':').unwrap_or((time, "f"));
        return seconds.parse().ok().map(|seconds| Piece::Time(seconds, style.to_owned()));
    }
    let other = inner.starts_with("id:")
        || (inner.starts_with('/') && inner.contains(':'))
        || ((inner.starts_with(':') || inner.starts_with("a:")) && inner.matches(':').count() == 2);
    if other {
        return Some(Piece::Other(format!("<{inner}>")));
    }
    ["http://", "https://"]
        .iter()
        .any(|scheme| inner.starts_with(scheme))
        .then(|| Piece::Bare(inner.to_owned()))
}

/// A bare address; backslashes inside the scheme do not save it (`plain` holds what stood before).
fn bare(plain: &[(char, bool)], rest: &[char]) -> Option<(Piece, usize)> {
    let follows_word = plain.last().is_some_and(|(c, _)| c.is_ascii_alphanumeric());
    if follows_word {
        return None;
    }
    let mut seen = String::new();
    let mut at = 0;
    while at < rest.len() && !rest[at].is_whitespace() && rest[at] != '<' && rest[at] != '>' {
        if rest[at] == '\\' && rest.get(at + 1).is_some_and(char::is_ascii_punctuation) {
            at += 1;
        }
        seen.push(rest[at]);
        at += 1;
    }
    let scheme =
        ["http://", "https://"].iter().find(|scheme| seen.to_ascii_lowercase().starts_with(**scheme))?;
    (seen.len() > scheme.len()).then_some((Piece::Bare(seen), at))
}

/// What is live in a text: mentions as written, and where links lead.
#[must_use]
pub fn live_in(text: &str) -> Vec<String> {
    let live = |piece: Piece| match piece {
        Piece::Plain(_) | Piece::Code(_) => None,
        Piece::User(id) => Some(format!("<@{id}>")),
        Piece::Role(id) => Some(format!("<@&{id}>")),
        Piece::Channel(id) => Some(format!("<#{id}>")),
        Piece::Time(at, style) => Some(format!("<t:{at}:{style}>")),
        Piece::Other(other) => Some(other),
        Piece::Link { url, .. } | Piece::Bare(url) => Some(url),
        Piece::All(whom) => Some(format!("@{whom}")),
    };
    scan(text).into_iter().filter_map(live).collect()
}

/// Characters as they show: formatting marks that come in pairs, and those at the start of a line, are gone.
pub(super) fn unmarked(chars: &[(char, bool)]) -> String {
    let mut gone = vec![false; chars.len()];
    for mark in ["**", "__", "~~", "||", "*", "_"] {
        let wanted: Vec<char> = mark.chars().collect();
        let here = |at: usize, gone: &[bool]| {
            (0..wanted.len()).all(|step| {
                chars.get(at + step).is_some_and(|(c, escaped)| *c == wanted[step] && !escaped)
                    && !gone[at + step]
            })
        };
        let word =
            |at: Option<usize>| at.and_then(|at| chars.get(at)).is_some_and(|(c, _)| c.is_alphanumeric());
        let mut open: Option<usize> = None;
        let mut at = 0;
        while at < chars.len() {
            if !here(at, &gone) {
                at += 1;
                continue;
            }
            let inside = mark == "_" && word(at.checked_sub(1)) && word(Some(at + 1));
            if let Some(begun) = open.filter(|begun| at > begun + wanted.len() && !inside) {
                for step in 0..wanted.len() {
                    (gone[begun + step], gone[at + step]) = (true, true);
                }
                open = None;
            } else if open.is_none() && !inside {
                open = Some(at);
            }
            at += wanted.len();
        }
    }
    let mut begins = true;
    let mut at = 0;
    while at < chars.len() {
        if begins {
            let line: String = chars[at..].iter().take(4).map(|(c, _)| *c).collect();
            let free = chars[at..]
                .iter()
                .take(4)
                .take_while(|(c, _)| "#>-".contains(*c))
                .all(|(_, escaped)| !escaped);
            for mark in ["### ", "## ", "# ", "-# ", "> "] {
                if free && line.starts_with(mark) {
                    gone[at..at + mark.len()].fill(true);
                    break;
                }
            }
        }
        begins = chars[at].0 == '\n';
        at += 1;
    }
    chars.iter().zip(gone).filter(|(_, gone)| !gone).map(|((c, _), _)| *c).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_live_is_found_and_what_is_code_or_escaped_is_not() {
        let text =
            "<@1> <@!2> <@&3> <#4> @everyone <t:0:R> </a:1> [ok](https://evil.example) https://x.example/a";
        let live = [
            "<@1>",
            "<@2>",
            "<@&3>",
            "<#4>",
            "@everyone",
            "<t:0:R>",
            "</a:1>",
            "https://evil.example",
            "https://x.example/a",
        ];
        assert_eq!(live_in(text), live);
        assert_eq!(
            live_in("`<@1>` ```\nhttps://x.example\n``` \\<@1\\> \\[ok\\]\\(x\\)"),
            Vec::<String>::new()
        );
        // Escaping does not keep a client from linking an address.
        assert_eq!(live_in("https\\:\\/\\/x\\.example"), ["https://x.example"]);
        assert_eq!(live_in("https[:]//x[.]example"), Vec::<String>::new());
    }

    #[test]
    fn marks_in_pairs_are_gone_and_escaped_ones_stay() {
        let shown = |text: &str| match scan(text).remove(0) {
            Piece::Plain(chars) => unmarked(&chars),
            other => panic!("{other:?}"),
        };
        assert_eq!(shown("**bold** and *it* a_b_c"), "bold and it a_b_c");
        assert_eq!(shown("\\*\\*bold\\*\\* 2 * 3"), "**bold** 2 * 3");
        assert_eq!(shown("# big\n> said\n-# small"), "big\nsaid\nsmall");
        assert_eq!(shown("\\# big\n||hidden||"), "# big\nhidden");
    }
}

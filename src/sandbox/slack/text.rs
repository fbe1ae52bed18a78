//! Slack's treatment of text: how it is stored, echoed and read.
//!
//! Invariant: stored text is escaped (`&amp;`, `&lt;`, `&gt;`); lengths are judged on it. Only
//! `mrkdwn` and top-level `text` have live sequences (`<@U…>`, `<!channel>`, `<https://…|label>`);
//! in `plain_text` and `rich_text` the same characters are literal.

use serde_json::Value;

/// Stored form of `plain_text` and of rich text: everything escaped.
#[must_use]
pub fn store_plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            c => out.push(c),
        }
    }
    out
}

/// Stored form of `mrkdwn` and top-level `text`: entities and live sequences stay, anything else
/// that needs escaping is escaped.
#[must_use]
pub fn store_mrkdwn(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let mut used = c.len_utf8();
        match c {
            '&' if ["&amp;", "&lt;", "&gt;"].iter().any(|entity| rest.starts_with(entity)) => out.push('&'),
            '&' => out.push_str("&amp;"),
            '<' => match live_sequence(rest) {
                Some(inner) => {
                    used = inner.len() + 2;
                    out.push_str(&rest[..used]);
                }
                None => out.push_str("&lt;"),
            },
            '>' => out.push_str("&gt;"),
            c => out.push(c),
        }
        rest = &rest[used..];
    }
    out
}

/// The inside of a live `<…>` at the start of `text`.
fn live_sequence(text: &str) -> Option<&str> {
    let inner = text.strip_prefix('<')?.split_once('>')?.0;
    let live = ["@U", "@W", "#C", "#G", "!"].iter().any(|start| inner.starts_with(start))
        || ["http://", "https://", "mailto:", "tel:", "slack://"]
            .iter()
            .any(|start| inner.starts_with(start));
    (live && !inner.contains('<')).then_some(inner)
}

/// What a reader sees in place of the entities.
#[must_use]
pub fn unescape(text: &str) -> String {
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

/// Calls `change` with the type and text of every text object and rich-text leaf below `value`.
pub fn each_text(value: &mut Value, change: &mut dyn FnMut(&str, &mut String)) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| each_text(item, change)),
        Value::Object(object) => {
            let kind = object.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
            if let ("plain_text" | "mrkdwn" | "text" | "link", Some(Value::String(text))) =
                (kind.as_str(), object.get_mut("text"))
            {
                change(&kind, text);
            }
            for (key, inner) in object.iter_mut() {
                if key != "text" || inner.is_object() {
                    each_text(inner, change);
                }
            }
        }
        _ => {}
    }
}

/// Brings blocks into the stored form.
pub fn store_blocks(blocks: &mut Value) {
    each_text(blocks, &mut |kind, text| {
        *text = if kind == "mrkdwn" { store_mrkdwn(text) } else { store_plain(text) };
    });
}

/// Blocks as Slack echoes them: emoji become `:names:`.
#[must_use]
pub fn echo_blocks(blocks: &Value) -> Value {
    let mut blocks = blocks.clone();
    each_text(&mut blocks, &mut |_, text| *text = emoji_names(text));
    blocks
}

const EMOJI: [(char, &str); 18] = [
    ('✅', "white_check_mark"),
    ('❌', "x"),
    ('⚠', "warning"),
    ('⏳', "hourglass_flowing_sand"),
    ('🔥', "fire"),
    ('👍', "+1"),
    ('👎', "-1"),
    ('🚀', "rocket"),
    ('🎉', "tada"),
    ('🔒', "lock"),
    ('👀', "eyes"),
    ('😀', "grinning"),
    ('❤', "heart"),
    ('⭐', "star"),
    ('🤖', "robot_face"),
    ('🛑', "octagonal_sign"),
    ('💥', "boom"),
    ('🧪', "test_tube"),
];

/// Emoji written as `:names:`, the way Slack hands text back.
#[must_use]
pub fn emoji_names(text: &str) -> String {
    if text.is_ascii() {
        return text.into();
    }
    let mut out = String::with_capacity(text.len());
    let mut after_emoji = false;
    for c in text.chars() {
        if after_emoji && c == '\u{fe0f}' {
            continue;
        }
        let name = EMOJI.iter().find(|(emoji, _)| *emoji == c).map(|(_, name)| (*name).to_owned());
        let name = name
            .or_else(|| matches!(u32::from(c), 0x1F300..=0x1FAFF).then(|| format!("u{:x}", u32::from(c))));
        after_emoji = name.is_some();
        match name {
            Some(name) => {
                out.push(':');
                out.push_str(&name);
                out.push(':');
            }
            None => out.push(c),
        }
    }
    out
}

/// What a client would make of a text: pings and links, live sequences and bare addresses alike.
/// Deliberately broad: anything in the shape of a host or mail address counts.
#[must_use]
pub fn live_in(stored: &str, mrkdwn: bool) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = stored;
    let mut bare = String::new();
    while let Some(c) = rest.chars().next() {
        let mut used = c.len_utf8();
        match live_sequence(rest).filter(|_| mrkdwn) {
            Some(inner) => {
                used = inner.len() + 2;
                if !inner.starts_with("!date^") {
                    found.push(inner.to_owned());
                }
                bare.push(' ');
            }
            None => bare.push(c),
        }
        rest = &rest[used..];
    }
    let bare = unescape(&bare);
    let breaks = |c: char| c.is_whitespace() || "<>()\"'|,;`*~[]{}".contains(c);
    for word in bare.split(breaks) {
        let word = word.trim_matches(|c: char| ".!?:".contains(c));
        let host = word.split(['/', ':', '?', '#']).next().unwrap_or_default();
        let host = host.rsplit('@').next().unwrap_or_default();
        if word.contains("://") || word.starts_with("mailto:") || is_host(host) {
            found.push(word.to_owned());
        }
    }
    found
}

fn is_host(word: &str) -> bool {
    let labels: Vec<&str> = word.split('.').collect();
    labels.len() >= 2
        && labels.iter().all(|label| {
            !label.is_empty() && label.chars().all(|c| c.is_alphanumeric() || c == '-' || c == '_')
        })
        && labels
            .last()
            .is_some_and(|last| last.chars().count() >= 2 && last.chars().all(char::is_alphabetic))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn plain_text_is_escaped_whole_and_mrkdwn_only_where_it_is_not_live() {
        assert_eq!(store_plain("a & b <!channel> &amp;"), "a &amp; b &lt;!channel&gt; &amp;amp;");
        assert_eq!(
            store_mrkdwn("a & b &amp; <!channel> <https://x.test|y> <b> 1 > 0"),
            "a &amp; b &amp; <!channel> <https://x.test|y> &lt;b&gt; 1 &gt; 0"
        );
        assert_eq!(unescape(&store_plain("&lt; < &")), "&lt; < &");
    }

    #[test]
    fn stored_blocks_escape_texts_but_not_values_or_urls() {
        let mut blocks = json!([{"type": "actions", "elements": [{"type": "button", "value": "a&b", "url": "https://x.test/?a&b",
            "text": {"type": "plain_text", "text": "R&D 🔥"}}]}]);
        store_blocks(&mut blocks);
        let button = &blocks[0]["elements"][0];
        assert_eq!(button["value"], "a&b");
        assert_eq!(button["url"], "https://x.test/?a&b");
        assert_eq!(button["text"]["text"], "R&amp;D 🔥");
        assert_eq!(echo_blocks(&blocks)[0]["elements"][0]["text"]["text"], "R&amp;D :fire:");
    }

    #[test]
    fn pings_and_links_are_seen_and_broken_addresses_are_not() {
        assert_eq!(live_in("hi <!channel> and <@U0DANA>", true), ["!channel", "@U0DANA"]);
        assert_eq!(live_in("hi &lt;!channel&gt;", true), Vec::<String>::new());
        assert_eq!(
            live_in("see evil.test/x, (www.a.example) or a@b.example.", false),
            ["evil.test/x", "www.a.example", "a@b.example"]
        );
        assert_eq!(live_in("https[:]//evil[.]test v1.2 e.g. this", false), Vec::<String>::new());
    }
}

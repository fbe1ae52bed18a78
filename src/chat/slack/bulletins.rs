//! Drawing messages that are no cards: alerts for operators, how many requests wait for room.
//!
//! Invariant: as cards: words from templates, foreign text in plain text only, within Slack's budgets. Nobody
//! is pinged and nothing can be pressed.

use super::blocks::Blocks;
use super::limits::{LABEL, SECTION, TEXT, TEXT_FOREIGN, cost, fit, short};
use super::people::moment;
use crate::bridge::ports::Drawn;
use crate::domain::bulletin::Bulletin;
use crate::domain::text::{line, visible};
use crate::render::slack::{AlertText, CrowdedText, Cut};
use crate::render::{Templates, mrkdwn};
use serde_json::Value;

/// Draws a bulletin.
pub(super) fn draw(templates: &Templates, says: &Bulletin) -> Drawn {
    match says {
        Bulletin::Waiting { count } => {
            let text = templates.render(&CrowdedText { count: *count });
            drawn(templates, &text, &text, None)
        }
        Bulletin::Alert { key, text, since, over } => {
            let (kind, about) = key.split_once(':').unwrap_or((key, ""));
            let words = |part| AlertText {
                part,
                kind: kind.to_owned(),
                about: short(&line(about), LABEL * 2),
                detail: short(&line(text), TEXT_FOREIGN),
                since: moment(*since),
                over: over.map(moment),
            };
            let (head, body) = (templates.render(&words("text")), templates.render(&words("body")));
            drawn(templates, &head, &body, Some(text))
        }
    }
}

/// One section of ours, and foreign words below it.
fn drawn(templates: &Templates, text: &str, body: &str, detail: Option<&str>) -> Drawn {
    let detail =
        detail.map(|detail| fit(&visible(detail), SECTION, |count| templates.render(&Cut { count })).text);
    let blocks = |plain: bool| -> Value {
        let mut blocks = Blocks::new(None);
        if plain {
            blocks.section(short(text, SECTION));
        } else {
            blocks.markup(body.to_owned());
        }
        if let Some(detail) = &detail {
            blocks.section(detail.clone());
        }
        blocks.done()
    };
    let line = text.replace('\n', " ");
    // Only an operator's template can be longer than this.
    let line = if cost(&line) > TEXT { short(&mrkdwn(&short(&line, TEXT / 6)), TEXT) } else { line };
    Drawn { text: line, body: blocks(false), compact: blocks(true), cut: false }
}

#[cfg(test)]
mod tests {
    use super::super::rules::check;
    use super::*;
    use crate::domain::clock::Millis;

    #[test]
    fn bulletins_are_within_the_rules_whatever_they_hold() {
        let templates = Templates::load("en", None).unwrap();
        let nasty = "<!channel> & <https://evil.test|x> ".repeat(400);
        let alert = |key: &str, text: &str, over| Bulletin::Alert {
            key: key.into(),
            text: text.into(),
            since: Millis(1_796_000_000_000),
            over,
        };
        for says in [
            Bulletin::Waiting { count: 1 },
            Bulletin::Waiting { count: 70_000 },
            alert("place:slack:acme:#ops", "slack:acme:#ops takes no card: is_archived", None),
            alert(&nasty, &nasty, Some(Millis(1_796_000_100_000))),
            alert("", "", None),
        ] {
            let drawn = draw(&templates, &says);
            assert_eq!(check(&drawn.text, &drawn.body), Vec::<String>::new(), "{drawn:#?}");
            assert_eq!(check(&drawn.text, &drawn.compact), Vec::<String>::new(), "{drawn:#?}");
        }
    }

    #[test]
    fn how_bulletins_read() {
        let templates = Templates::load("en", None).unwrap();
        let text = |says| draw(&templates, &says).text;
        let since = Millis(1_796_000_000_000);
        let alert = |over| Bulletin::Alert {
            key: "place:slack:acme:#releases".into(),
            text: "slack:acme:#releases (C0RELEASES) takes no card: is_archived".into(),
            since,
            over,
        };
        assert!(
            text(Bulletin::Waiting { count: 1 })
                .starts_with("One more request waits for room in this channel.")
        );
        assert!(text(Bulletin::Waiting { count: 12 }).starts_with("12 more requests wait for room"));
        let about = "A place takes no cards (slack:acme:#releases)";
        let detail = "slack:acme:#releases (C0RELEASES) takes no card: is_archived";
        assert_eq!(text(alert(None)), format!("Alert: {about}: {detail}"));
        assert_eq!(text(alert(Some(since))), format!("Over: {about}"));
    }
}

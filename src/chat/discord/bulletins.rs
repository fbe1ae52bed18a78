//! Drawing messages that are no cards: alerts for operators, how many requests wait for room.
//!
//! Invariant: as cards: words from templates, foreign text escaped, within Discord's limits. Nobody is pinged
//! and nothing can be pressed.

use super::limits::{CONTENT, DESCRIPTION, LABEL, PUSH_FOREIGN, Place, fit, short};
use super::markdown::moment;
use super::message::{finish, nobody};
use super::render::within;
use crate::bridge::ports::Drawn;
use crate::domain::bulletin::Bulletin;
use crate::domain::text::{line, visible};
use crate::render::discord::Md;
use crate::render::slack::{AlertText, CrowdedText, Cut};
use crate::render::{Templates, markdown};
use serde_json::json;
use serenity::builder::{CreateEmbed, CreateMessage};

/// Draws a bulletin.
pub(super) fn draw(templates: &Templates, says: &Bulletin) -> Drawn {
    match says {
        Bulletin::Waiting { count } => drawn(&templates.render(&Md(CrowdedText { count: *count })), None),
        Bulletin::Alert { key, text, since, over } => {
            let (kind, about) = key.split_once(':').unwrap_or((key, ""));
            let words = |part| AlertText {
                part,
                kind: kind.to_owned(),
                about: short(&line(about), LABEL * 2, Place::Markdown),
                detail: short(&line(text), PUSH_FOREIGN, Place::Markdown),
                since: moment(*since),
                over: over.map(moment),
            };
            let (head, body) = (templates.render(&Md(words("text"))), templates.render(&Md(words("body"))));
            let detail = fit(&visible(text), DESCRIPTION / 2, Place::Markdown, |count| {
                templates.render(&Cut { count })
            });
            drawn(&head, Some(&format!("{body}\n{}", markdown(&detail.text))))
        }
    }
}

fn drawn(text: &str, body: Option<&str>) -> Drawn {
    let text = within(&text.replace('\n', " "), CONTENT);
    let plain = CreateMessage::new().content(text.clone()).components(vec![]);
    let full = match body {
        Some(body) => plain.clone().embed(CreateEmbed::new().description(within(body.trim(), DESCRIPTION))),
        None => plain.clone(),
    };
    let compact = json!({ "plain": finish(&plain, nobody()) });
    Drawn { text, body: finish(&full, nobody()), compact, cut: false }
}

#[cfg(test)]
mod tests {
    use super::super::rules::message;
    use super::*;
    use crate::domain::clock::Millis;

    #[test]
    fn bulletins_are_within_the_rules_whatever_they_hold() {
        let templates = Templates::load("en", None).unwrap();
        let nasty = "@everyone **x** <@1> [ok](https://evil.test) ".repeat(400);
        let alert = |key: &str, text: &str, over| Bulletin::Alert {
            key: key.into(),
            text: text.into(),
            since: Millis(1_796_000_000_000),
            over,
        };
        for says in [
            Bulletin::Waiting { count: 1 },
            Bulletin::Waiting { count: 70_000 },
            alert("place:discord:guild:4400000000000000004", "takes no card: 50013", None),
            alert(&nasty, &nasty, Some(Millis(1_796_000_100_000))),
            alert("", "", None),
        ] {
            let drawn = draw(&templates, &says);
            assert_eq!(message(&drawn.body), Vec::<String>::new(), "{drawn:#?}");
            assert_eq!(message(&drawn.compact["plain"]), Vec::<String>::new(), "{drawn:#?}");
            let shown = drawn.body.to_string();
            assert!(!shown.contains("[ok](") && !shown.contains("evil.test"), "{shown}");
        }
    }

    #[test]
    fn how_bulletins_read() {
        let templates = Templates::load("en", None).unwrap();
        let alert = Bulletin::Alert {
            key: "place:discord:guild:4400000000000000004".into(),
            text: "discord:guild:4400000000000000004 takes no card: 50013".into(),
            since: Millis(1_796_000_000_000),
            over: None,
        };
        insta::assert_json_snapshot!(draw(&templates, &alert).body);
        let waiting = draw(&templates, &Bulletin::Waiting { count: 12 });
        assert!(waiting.text.starts_with("12 more requests wait for room in this channel."), "{waiting:?}");
    }
}

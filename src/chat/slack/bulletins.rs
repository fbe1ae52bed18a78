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

    /// A bulletin as text: the notification, and below it what is posted.
    fn reads(says: &Bulletin) -> String {
        let drawn = draw(&Templates::load("en", None).unwrap(), says);
        let blocks = drawn.body.as_array().unwrap().iter();
        let blocks: Vec<_> = blocks.map(|block| block["text"]["text"].as_str().unwrap().to_owned()).collect();
        format!("{}\n| {}", drawn.text, blocks.join("\n| "))
    }

    #[test]
    fn how_bulletins_read() {
        let since = Millis(1_796_000_000_000);
        let alert =
            |key: &str, text: &str, over| Bulletin::Alert { key: key.into(), text: text.into(), since, over };
        let place = "slack:acme:#releases (C0RELEASES) takes no card: is_archived";
        let all = [
            Bulletin::Waiting { count: 1 },
            Bulletin::Waiting { count: 12 },
            alert("place:slack:acme:#releases", place, None),
            alert("place:slack:acme:#releases", place, Some(Millis(1_796_000_600_000))),
            // What means something to the program only is left out.
            alert("card:0190", "the last card of interaction deadbeef was deleted in slack:acme:#ops", None),
            alert("paused:*", "answers to every runtime are paused by operators", None),
            alert("not_installed", "somebody pressed <!here>", None),
        ];
        insta::assert_snapshot!(all.each_ref().map(reads).join("\n"), @r"
        One more request waits for room in this channel. The oldest comes as soon as one above is answered. `/countersign open` lists what waits for you.
        | One more request waits for room in this channel. The oldest comes as soon as one above is answered. `/countersign open` lists what waits for you.
        12 more requests wait for room in this channel. The oldest comes as soon as one above is answered. `/countersign open` lists what waits for you.
        | 12 more requests wait for room in this channel. The oldest comes as soon as one above is answered. `/countersign open` lists what waits for you.
        Alert: A place takes no cards (slack:acme:#releases): slack:acme:#releases (C0RELEASES) takes no card: is_archived
        | *Alert:* A place takes no cards · since <!date^1796000000^{date_short_pretty} {time}|2026-11-30 00:53 UTC>
        | slack:acme:#releases (C0RELEASES) takes no card: is_archived
        Over: A place takes no cards (slack:acme:#releases)
        | *Over:* A place takes no cards · since <!date^1796000000^{date_short_pretty} {time}|2026-11-30 00:53 UTC> · over <!date^1796000600^{date_short_pretty} {time}|2026-11-30 01:03 UTC>
        | slack:acme:#releases (C0RELEASES) takes no card: is_archived
        Alert: A request is shown nowhere: the last card of interaction deadbeef was deleted in slack:acme:#ops
        | *Alert:* A request is shown nowhere · since <!date^1796000000^{date_short_pretty} {time}|2026-11-30 00:53 UTC>
        | the last card of interaction deadbeef was deleted in slack:acme:#ops
        Alert: Answers are paused: answers to every runtime are paused by operators
        | *Alert:* Answers are paused · since <!date^1796000000^{date_short_pretty} {time}|2026-11-30 00:53 UTC>
        | answers to every runtime are paused by operators
        Alert: Somebody pressed where Countersign is not installed: somebody pressed &lt;!here&gt;
        | *Alert:* Somebody pressed where Countersign is not installed · since <!date^1796000000^{date_short_pretty} {time}|2026-11-30 00:53 UTC>
        | somebody pressed <!here>
        ");
    }

    #[test]
    fn every_kind_of_alert_says_what_it_is() {
        let since = Millis(1_796_000_000_000);
        let said = crate::render::slack::ALERTS.map(|kind| {
            let alert =
                Bulletin::Alert { key: format!("{kind}:acme"), text: String::new(), since, over: None };
            reads(&alert).lines().next().unwrap().to_owned()
        });
        insta::assert_snapshot!(said.join("\n"), @r"
        Alert: A place takes no cards (acme)
        Alert: A chat refuses our credentials (acme)
        Alert: A channel's name means another channel now (acme)
        Alert: A request is shown nowhere
        Alert: Cards cannot be brought up to date (acme)
        Alert: A user group cannot be read (acme)
        Alert: A request matches no route (acme)
        Alert: A delivery could not be read (acme)
        Alert: Somebody pressed where Countersign is not installed (acme)
        Alert: A runtime is in trouble (acme)
        Alert: Answers wait for you (acme)
        Alert: Requests are missing from a runtime (acme)
        Alert: Answers are paused (acme)
        Alert: Clicks may not arrive (acme)
        Alert: A delivery names another app (acme)
        Alert: Accounts cannot be read (acme)
        Alert: Forms and whole texts cannot be opened (acme)
        Alert: The app's Home is switched off (acme)
        Alert: Slack drops events (acme)
        Alert: Something needs you (acme)
        ");
    }
}

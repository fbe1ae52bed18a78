//! What the Discord templates are rendered with: the contexts of the other chat under names of their own, and
//! what only Discord has.
//!
//! What is plain text everywhere (heads, notes, labels of controls, the words of views) is one template for
//! both chats. Values in a `.md` context are neutralised by the caller and escaped by the template; values of
//! type [`Markup`] are Discord's Markdown of ours and stay.

use super::slack::{
    AlertText, CommandAnswer, CrowdedText, NoticeText, Ping, Reason, State, Text, WaitingItem, WaitingText,
    Words,
};
use super::{Context, Known, Markup, known};
use serde::{Serialize, Serializer};

/// A context as Discord's template of it takes it.
#[derive(Debug, Clone)]
pub struct Md<C>(pub C);

impl<C: Serialize> Serialize for Md<C> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(to)
    }
}

macro_rules! md {
    ($($context:ident => $name:literal),+ $(,)?) => {
        $(impl Context for Md<$context> {
            const NAME: &'static str = $name;
            fn samples() -> Vec<Self> {
                <$context as Context>::samples().into_iter().map(Self).collect()
            }
        })+

        pub(super) fn all() -> Vec<Known> {
            vec![
                $(known::<Md<$context>>(),)+
                known::<FieldName>(),
                known::<Footer>(),
                known::<Link>(),
                known::<Withheld>(),
                known::<AskAgain>(),
                known::<ThreadName>(),
                known::<CommandText>(),
            ]
        }
    };
}

md! {
    Text => "discord/text.md",
    State => "discord/state.md",
    Reason => "discord/reason.md",
    Words => "discord/words.md",
    Ping => "discord/ping.md",
    NoticeText => "discord/notice.md",
    WaitingText => "discord/waiting.md",
    WaitingItem => "discord/waiting_item.md",
    AlertText => "discord/alert.md",
    CrowdedText => "discord/crowded.md",
    CommandAnswer => "discord/answer.md",
}

/// What stands above a value from a runtime field.
#[derive(Debug, Clone, Serialize)]
pub struct FieldName {
    /// `title`, `agent`, `owner`, or the runtime's field name.
    pub label: String,
}

impl Context for FieldName {
    const NAME: &'static str = "discord/name.txt";
    fn samples() -> Vec<Self> {
        ["title", "agent", "owner", "server", "tool", "reason", "command", "machine", "app", "other"]
            .map(|label| Self { label: label.into() })
            .into()
    }
}

/// The last line of a card, before the moment at which it opened.
#[derive(Debug, Clone, Serialize)]
pub struct Footer {
    pub runtime: String,
    pub approvers: Vec<String>,
    pub short_id: String,
}

impl Context for Footer {
    const NAME: &'static str = "discord/foot.txt";
    fn samples() -> Vec<Self> {
        let full = Self {
            runtime: "prod".into(),
            approvers: vec!["release".into(), "owner".into()],
            short_id: "deadbeef".into(),
        };
        vec![full.clone(), Self { approvers: vec![], ..full }]
    }
}

/// The way to the runtime's own page.
#[derive(Debug, Clone, Serialize)]
pub struct Link {
    /// `label` for a button, else a link.
    pub part: &'static str,
    pub url: Markup,
}

impl Context for Link {
    const NAME: &'static str = "discord/link.md";
    fn samples() -> Vec<Self> {
        let url = || Markup::of("https://app.example/tasks/t1".into());
        vec![Self { part: "label", url: url() }, Self { part: "link", url: url() }]
    }
}

/// In the place of words that Discord holds back; `details` when a way to the runtime's page follows.
#[derive(Debug, Clone, Serialize)]
pub struct Withheld {
    pub details: bool,
}

impl Context for Withheld {
    const NAME: &'static str = "discord/withheld.md";
    fn samples() -> Vec<Self> {
        vec![Self { details: false }, Self { details: true }]
    }
}

/// What is asked once more before `Approve` counts.
#[derive(Debug, Clone, Serialize)]
pub struct AskAgain {
    /// `text` or `confirm`.
    pub part: &'static str,
    pub about: Option<String>,
    pub agent: String,
}

impl Context for AskAgain {
    const NAME: &'static str = "discord/confirm.md";
    fn samples() -> Vec<Self> {
        let mut samples = vec![];
        for part in ["text", "confirm"] {
            for about in [None, Some("ci / deploy".to_owned())] {
                samples.push(Self { part, about, agent: "Release agent".into() });
            }
        }
        samples
    }
}

/// The name of a thread that gathers cards.
#[derive(Debug, Clone, Serialize)]
pub struct ThreadName {
    pub agent: String,
    pub title: String,
}

impl Context for ThreadName {
    const NAME: &'static str = "discord/thread.txt";
    fn samples() -> Vec<Self> {
        vec![Self { agent: "Release agent".into(), title: "ci / deploy".into() }]
    }
}

/// What Discord shows of our commands.
#[derive(Debug, Clone, Serialize)]
pub struct CommandText {
    /// `countersign`, `open`, `unlink` or `help`.
    pub part: &'static str,
}

impl Context for CommandText {
    const NAME: &'static str = "discord/command.txt";
    fn samples() -> Vec<Self> {
        ["countersign", "open", "unlink", "help"].map(|part| Self { part }).into()
    }
}

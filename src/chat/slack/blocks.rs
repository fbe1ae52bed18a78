//! Block Kit, as far as we use it: slack-morphism's models with every field that matters set.
//!
//! Invariant: `emoji: false` on every plain text (a `:fire:` of an agent stays as typed), `verbatim:
//! true` on every mrkdwn text (Slack links nothing by itself), ids on every block and control. The
//! models check no length; `limits` does.

use crate::render::mrkdwn;
use serde_json::Value;
use slack_morphism::prelude::{
    SlackAccessibilityLabel, SlackActionBlockElement, SlackActionId, SlackActionsBlock, SlackBlock,
    SlackBlockButtonElement, SlackBlockButtonStyle, SlackBlockConfirmItem, SlackBlockId,
    SlackBlockMarkDownText, SlackBlockPlainText, SlackBlockPlainTextInputElement, SlackContextBlock,
    SlackContextBlockElement, SlackHeaderBlock, SlackInputBlock, SlackRichTextBlock, SlackRichTextElement,
    SlackRichTextInlineElement, SlackRichTextPreformatted, SlackRichTextSection, SlackRichTextText,
    SlackSectionBlock,
};

use super::limits::{SECTION, cost, short};

/// Blocks under construction; numbers their ids.
pub(super) struct Blocks {
    /// `cs:<card>:<rev>`, or nothing for messages without controls.
    ids: Option<String>,
    blocks: Vec<SlackBlock>,
}

/// A button, ready but for its place.
pub(super) struct Button {
    pub(super) action: &'static str,
    pub(super) label: String,
    pub(super) spoken: String,
    pub(super) token: String,
    pub(super) style: Option<SlackBlockButtonStyle>,
    /// Slack asks this before it sends the press.
    pub(super) confirm: Option<Confirm>,
}

/// A second question, within its limits.
#[derive(Clone)]
pub(super) struct Confirm {
    pub(super) title: String,
    pub(super) text: String,
    pub(super) yes: String,
    pub(super) no: String,
}

impl Button {
    /// All its text.
    pub(super) fn cost(&self) -> usize {
        let asked = |confirm: &Confirm| {
            [&confirm.title, &confirm.text, &confirm.yes, &confirm.no].map(|text| cost(text)).iter().sum()
        };
        cost(&self.label) + cost(&self.spoken) + self.confirm.as_ref().map_or(0, asked)
    }
}

impl Blocks {
    /// New ids at every drawing: an edited input keeps its old value where ids stay the same.
    pub(super) fn new(ids: Option<String>) -> Self {
        Self { ids, blocks: vec![] }
    }

    fn id(&self) -> Option<SlackBlockId> {
        self.ids.as_ref().map(|ids| SlackBlockId::new(format!("{ids}:{}", self.blocks.len())))
    }

    pub(super) fn header(&mut self, text: String) {
        let mut block = SlackHeaderBlock::new(plain(text).into());
        block.block_id = self.id();
        self.blocks.push(block.into());
    }

    /// Plain text; nothing for no text.
    pub(super) fn section(&mut self, text: String) {
        if !text.trim().is_empty() {
            let mut block = SlackSectionBlock::new().with_text(plain(text).into());
            block.block_id = self.id();
            self.blocks.push(block.into());
        }
    }

    /// Our own markup, escaped already. One that is too long (an operator's template) is shown as
    /// the plain text it is, cut.
    pub(super) fn markup(&mut self, text: String) {
        if text.len() > SECTION {
            return self.section(short(&text, SECTION));
        }
        if !text.trim().is_empty() {
            let mut block = SlackSectionBlock::new().with_text(marked(text).into());
            block.block_id = self.id();
            self.blocks.push(block.into());
        }
    }

    /// Small markup of ours.
    pub(super) fn context(&mut self, text: String) {
        if text.len() > SECTION {
            return self.section(short(&text, SECTION));
        }
        if !text.trim().is_empty() {
            let mut block = SlackContextBlock::new(vec![SlackContextBlockElement::MarkDown(marked(text))]);
            block.block_id = self.id();
            self.blocks.push(block.into());
        }
    }

    /// Foreign words in a box of their own, below a label of ours.
    pub(super) fn quoted(&mut self, label: Option<String>, words: Option<String>) {
        let mut elements = vec![];
        if let Some(label) = label {
            let label = SlackRichTextText::new(label).bold();
            elements.push(SlackRichTextElement::Section(SlackRichTextSection::new(vec![
                SlackRichTextInlineElement::Text(label),
            ])));
        }
        if let Some(words) = words {
            elements.push(SlackRichTextElement::Preformatted(SlackRichTextPreformatted::new(vec![
                SlackRichTextInlineElement::Text(SlackRichTextText::new(words)),
            ])));
        }
        if !elements.is_empty() {
            let mut block = SlackRichTextBlock::new(elements);
            block.block_id = self.id();
            self.blocks.push(block.into());
        }
    }

    /// Buttons; no block for none.
    pub(super) fn buttons(&mut self, buttons: Vec<Button>) {
        if buttons.is_empty() {
            return;
        }
        let elements = buttons.into_iter().map(|button| {
            let mut element = SlackBlockButtonElement::new(plain(button.label).into())
                .with_action_id(SlackActionId::new(button.action.to_owned()))
                .with_value(button.token)
                .with_accessibility_label(SlackAccessibilityLabel::new(button.spoken));
            element.style = button.style;
            element.confirm = button.confirm.map(|confirm| SlackBlockConfirmItem {
                title: plain(confirm.title).into(),
                text: plain(confirm.text).into(),
                confirm: plain(confirm.yes).into(),
                deny: plain(confirm.no).into(),
                style: None,
            });
            SlackActionBlockElement::Button(element)
        });
        let mut block = SlackActionsBlock::new(elements.collect());
        block.block_id = self.id();
        self.blocks.push(block.into());
    }

    /// A field for text of several lines, which must be filled in.
    pub(super) fn input(&mut self, label: String, hint: String, action: &str, longest: usize) {
        let mut element = SlackBlockPlainTextInputElement::new()
            .with_action_id(SlackActionId::new(action.to_owned()))
            .with_multiline(true);
        element.max_length = u64::try_from(longest).ok();
        let mut block = SlackInputBlock::new(plain(label).into(), element.into());
        block.block_id = self.id();
        block.hint = Some(plain(hint).into());
        block.optional = Some(false);
        self.blocks.push(block.into());
    }

    /// The blocks as Slack takes them.
    pub(super) fn done(self) -> Value {
        // These models hold text, numbers and lists: nothing that JSON cannot say.
        serde_json::to_value(self.blocks).unwrap_or_default()
    }
}

fn plain(text: String) -> SlackBlockPlainText {
    SlackBlockPlainText::new(text).with_emoji(false)
}

fn marked(text: String) -> SlackBlockMarkDownText {
    SlackBlockMarkDownText::new(text).with_verbatim(true)
}

/// Foreign text inside a code span of mrkdwn: the only place where its `*`, `_`, `~` mean nothing.
/// A backtick would end the span, so it becomes U+02CB.
pub(super) fn code(text: &str) -> String {
    format!("`{}`", mrkdwn(&text.replace('`', "\u{2cb}")))
}

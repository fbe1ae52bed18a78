// Block Kit as DOM nodes: the blocks that cards use, drawn from what the app really posted.
// A block of an unknown type says so instead of vanishing.

import { dateText, el, link, mrkdwn, unescape } from './text.js';

/** A text object of either kind. */
function textOf(object, names) {
  if (!object) return [];
  return object.type === 'mrkdwn' ? mrkdwn(object.text, names) : [unescape(object.text)];
}

/** A message's content. `press(element, label)` is called for buttons. */
export function blocks(list, names, press) {
  return list.map((block) => (DRAW[block.type] ?? unknown)(block, names, press));
}

const DRAW = {
  header: (block) => el('h3', { class: 'b-header' }, unescape(block.text.text)),
  divider: () => el('hr'),
  section(block, names, press) {
    const parts = [];
    if (block.text) parts.push(el('p', {}, ...textOf(block.text, names)));
    if (block.fields) {
      parts.push(el('div', { class: 'b-fields' }, ...block.fields.map((field) => el('p', {}, ...textOf(field, names)))));
    }
    const aside = block.accessory ? element(block.accessory, names, press) : null;
    return el('div', { class: 'b-section' }, el('div', { class: 'b-text' }, ...parts), aside);
  },
  context(block, names) {
    return el('p', { class: 'b-context' }, ...block.elements.flatMap((one, at) => [
      ...(at ? [' '] : []),
      ...(one.type === 'image' ? [] : [el('span', {}, ...textOf(one, names))]),
    ]));
  },
  actions(block, names, press) {
    return el('div', { class: 'b-actions' }, ...block.elements.map((one) => element(one, names, press)));
  },
  rich_text: (block, names) => el('div', { class: 'b-rich' }, ...block.elements.map((part) => rich(part, names))),
  input(block) {
    return el('p', { class: 'b-context' }, `(field “${unescape(block.label.text)}”)`);
  },
};

function unknown(block) {
  return el('p', { class: 'b-context' }, `(a block of type ${String(block.type)}, which this page does not draw)`);
}

function element(one, names, press) {
  const label = unescape((one.text ?? one.placeholder)?.text ?? one.type);
  if (one.type !== 'button') return el('span', { class: 'b-context' }, `(${label})`);
  const style = { primary: 'go', danger: 'stop' }[one.style] ?? 'plain';
  const button = el('button', {
    type: 'button', class: style, 'aria-label': one.accessibility_label && unescape(one.accessibility_label),
    'data-action': one.action_id,
  }, label);
  button.addEventListener('click', () => press(one, label, button));
  return button;
}

function rich(part, names) {
  const inside = (part.elements ?? []).map((leaf) => richLeaf(leaf, names));
  switch (part.type) {
    case 'rich_text_preformatted': return el('pre', {}, ...inside);
    case 'rich_text_quote': return el('blockquote', {}, ...inside);
    case 'rich_text_list':
      return el(part.style === 'ordered' ? 'ol' : 'ul', {}, ...part.elements.map((item) => el('li', {}, rich(item, names))));
    case 'rich_text_section': return el('p', {}, ...inside);
    default: return unknown(part);
  }
}

function richLeaf(leaf, names) {
  switch (leaf.type) {
    case 'text': {
      let node = document.createTextNode(unescape(leaf.text));
      for (const [style, tag] of [['code', 'code'], ['strike', 's'], ['italic', 'em'], ['bold', 'strong']]) {
        if (leaf.style?.[style]) node = el(tag, {}, node);
      }
      return node;
    }
    case 'link': return /^https?:\/\//.test(leaf.url) ? link(leaf.url, unescape(leaf.text ?? leaf.url)) : unescape(leaf.text ?? leaf.url);
    case 'user': return el('span', { class: 'mention' }, `@${names.people[leaf.user_id] ?? leaf.user_id}`);
    case 'channel': return el('span', { class: 'mention' }, `#${names.channels[leaf.channel_id] ?? leaf.channel_id}`);
    case 'broadcast': return el('span', { class: 'mention' }, `@${leaf.range}`);
    case 'date': return el('time', {}, dateText(String(leaf.timestamp), leaf.format, leaf.fallback ?? ''));
    case 'emoji': return `:${leaf.name}:`;
    default: return `(${leaf.type})`;
  }
}

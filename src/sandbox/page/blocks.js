// Block Kit as DOM nodes: the blocks that cards use, drawn from what the app really posted.
// A block of an unknown type says so instead of vanishing.

import { dateText, el, link, mrkdwn, unescape } from './text.js';

/** A text object of either kind. */
function textOf(object, names) {
  if (!object) return [];
  return object.type === 'mrkdwn' ? mrkdwn(object.text, names) : [unescape(object.text)];
}

/**
 * The content of a message or view. `on.press(element, path, button)` is called for buttons,
 * `on.fill(path, input)` for fields; `on.typed` keeps what was filled in by path (`block_id/action_id`),
 * `on.errors` has what the app said of a field by `block_id`.
 */
export function blocks(list, names, on) {
  return list.map((block) => (DRAW[block.type] ?? unknown)(block, names, on));
}

const DRAW = {
  header: (block) => el('h3', { class: 'b-header' }, unescape(block.text.text)),
  divider: () => el('hr'),
  section(block, names, on) {
    const parts = [];
    if (block.text) parts.push(el('p', {}, ...textOf(block.text, names)));
    if (block.fields) {
      parts.push(el('div', { class: 'b-fields' }, ...block.fields.map((field) => el('p', {}, ...textOf(field, names)))));
    }
    const aside = block.accessory ? element(block.accessory, block, on) : null;
    return el('div', { class: 'b-section' }, el('div', { class: 'b-text' }, ...parts), aside);
  },
  context(block, names) {
    return el('p', { class: 'b-context' }, ...block.elements.flatMap((one, at) => [
      ...(at ? [' '] : []),
      ...(one.type === 'image' ? [] : [el('span', {}, ...textOf(one, names))]),
    ]));
  },
  actions(block, names, on) {
    return el('div', { class: 'b-actions' }, ...block.elements.map((one) => element(one, block, on)));
  },
  rich_text: (block, names) => el('div', { class: 'b-rich' }, ...block.elements.map((part) => rich(part, names))),
  input: (block, names, on) => field(block, names, on),
};

function unknown(block) {
  return el('p', { class: 'b-context' }, `(a block of type ${String(block.type)}, which this page does not draw)`);
}

const plain = (object, otherwise = '') => unescape(object?.text ?? otherwise);

function element(one, block, on) {
  const path = `${block.block_id}/${one.action_id}`;
  if (one.type !== 'button') {
    const drawn = control(one, path, on);
    drawn.setAttribute('aria-label', plain(one.placeholder, 'Choose'));
    return drawn;
  }
  const label = plain(one.text, one.type);
  const style = { primary: 'go', danger: 'stop' }[one.style] ?? 'plain';
  const button = el('button', {
    type: 'button', class: style, 'aria-label': one.accessibility_label && unescape(one.accessibility_label),
    'data-action': one.action_id,
  }, label);
  button.addEventListener('click', () => on.press(one, path, button));
  return button;
}

/** An `input` block: label, control, hint, and what the app said of it. */
function field(block, names, on) {
  const path = `${block.block_id}/${block.element.action_id}`;
  const id = `f-${path}`.replace(/[^\w-]/g, '-');
  const drawn = control(block.element, path, on);
  const group = drawn.matches('fieldset');
  const label = [plain(block.label), block.optional ? el('span', { class: 'b-optional' }, ' (optional)') : null];
  const error = on.errors?.[block.block_id];
  if (group) drawn.prepend(el('legend', {}, ...label.filter(Boolean)));
  else drawn.id = id;
  if (error) drawn.setAttribute('aria-describedby', `${id}-error`);
  return el('div', { class: 'b-input' },
    group ? null : el('label', { for: id }, ...label), drawn,
    block.hint ? el('p', { class: 'b-context' }, plain(block.hint)) : null,
    error ? el('p', { class: 'b-error', id: `${id}-error` }, error) : null);
}

const choices = (one) => [...(one.options ?? []), ...(one.option_groups ?? []).flatMap((group) => group.options)];

/** A control with state. What is filled in is told at once and remembered by its path. */
function control(one, path, on) {
  const many = /^multi_|^checkboxes$/.test(one.type);
  const first = many
    ? (one.initial_options ?? []).map((option) => option.value)
    : one.initial_option?.value ?? one.initial_value ?? '';
  const typed = on.typed.get(path) ?? first;
  const tell = (value) => {
    on.typed.set(path, value);
    if (many) on.fill(path, value.length ? { do: 'choose_all', labels: value } : { do: 'clear' });
    else if (value === '') on.fill(path, { do: 'clear' });
    else on.fill(path, choices(one).length ? { do: 'choose', label: value } : { do: 'text', text: value });
  };
  if (one.type === 'radio_buttons' || many) {
    const boxes = choices(one).map((option) => {
      const box = el('input', {
        type: many ? 'checkbox' : 'radio', name: path, value: option.value,
        checked: many ? typed.includes(option.value) : typed === option.value,
      });
      box.addEventListener('change', () => {
        tell(many ? boxes.filter((other) => other.checked).map((other) => other.value) : option.value);
      });
      return box;
    });
    return el('fieldset', { class: 'b-choices' }, ...choices(one).map((option, at) => el('label', {}, boxes[at], plain(option.text))));
  }
  let drawn;
  if (choices(one).length) {
    drawn = el('select', {}, el('option', { value: '' }, plain(one.placeholder, 'Choose one')),
      ...(one.options ?? []).map((option) => el('option', { value: option.value }, plain(option.text))),
      ...(one.option_groups ?? []).map((group) => el('optgroup', { label: plain(group.label) },
        ...group.options.map((option) => el('option', { value: option.value }, plain(option.text))))));
  } else if (one.type.endsWith('_input') || one.type.endsWith('picker')) {
    const kind = { email_text_input: 'email', url_text_input: 'url', datepicker: 'date', timepicker: 'time' }[one.type] ?? 'text';
    const more = { maxlength: one.max_length ?? null, placeholder: one.placeholder ? plain(one.placeholder) : null };
    drawn = one.multiline ? el('textarea', { rows: 4, ...more }) : el('input', { type: kind, autocomplete: 'off', ...more });
  } else {
    return el('span', { class: 'b-context' }, `(${one.type})`);
  }
  drawn.value = typed;
  drawn.addEventListener('change', () => tell(drawn.value));
  drawn.addEventListener('input', () => on.typed.set(path, drawn.value));
  return drawn;
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

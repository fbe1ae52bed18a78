// The second pane: Discord's messages, embeds, components and forms as DOM nodes, drawn from what the app really
// posted. Text only ever becomes text nodes; what Discord's markdown makes live becomes elements made here.

import { el, link } from './text.js';

const at = (id) => document.getElementById(id);

// --- Markdown -----------------------------------------------------------------------------------

const PUNCTUATION = /[!-/:-@[-`{-~]/;
const MARKS = [['**', 'strong'], ['__', 'u'], ['~~', 's'], ['||', 'span'], ['*', 'em'], ['_', 'em']];

/** What `<…>` shows as; null when it is nothing live. */
function angle(inner, names) {
  const mention = (text) => el('span', { class: 'mention' }, text);
  let found = /^@!?(\d+)$/.exec(inner);
  if (found) return mention(`@${names.people[found[1]] ?? found[1]}`);
  found = /^@&(\d+)$/.exec(inner);
  if (found) return mention(`@${names.roles[found[1]] ?? found[1]}`);
  found = /^#(\d+)$/.exec(inner);
  if (found) return mention(`#${names.channels[found[1]] ?? found[1]}`);
  found = /^t:(\d{1,12})(?::[tTdDfFR])?$/.exec(inner);
  if (found) {
    const date = new Date(Number(found[1]) * 1000);
    const shown = date.toLocaleString('en-GB', { day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' });
    return el('time', { datetime: date.toISOString() }, shown);
  }
  return /^https?:\/\/\S+$/.test(inner) ? link(inner, inner) : null;
}

/** Markdown of one text as nodes. */
export function markdown(text, names) {
  const nodes = [];
  let plain = '';
  const flush = () => {
    if (plain) nodes.push(plain);
    plain = '';
  };
  const push = (node) => {
    flush();
    nodes.push(node);
  };
  for (let here = 0; here < text.length; here += 1) {
    const rest = text.slice(here);
    if (rest[0] === '\\' && PUNCTUATION.test(rest[1] ?? '')) {
      plain += rest[1];
      here += 1;
      continue;
    }
    const fence = /^```(?:[a-z0-9]+\n)?\n?([\s\S]+?)```/i.exec(rest);
    const code = fence ? null : /^(`{1,2})([^`]+?)\1(?!`)/.exec(rest);
    const inAngle = /^<([^<>\s]+)>/.exec(rest);
    const masked = /^\[([^\]]+)\]\((https?:\/\/[^\s)]+)\)/.exec(rest);
    const bare = /^https?:\/\/[^\s<>]+/.exec(rest);
    const shown = inAngle && angle(inAngle[1], names);
    if (fence) {
      push(el('pre', {}, fence[1].replace(/\n$/, '')));
      here += fence[0].length - 1;
    } else if (code) {
      push(el('code', {}, code[2]));
      here += code[0].length - 1;
    } else if (shown) {
      push(shown);
      here += inAngle[0].length - 1;
    } else if (masked) {
      push(link(masked[2], masked[1]));
      here += masked[0].length - 1;
    } else if (bare) {
      push(link(bare[0], bare[0]));
      here += bare[0].length - 1;
    } else {
      const mark = MARKS.find(([sign]) => rest.startsWith(sign));
      const end = mark ? closing(rest, mark[0]) : -1;
      if (end > 0) {
        const inside = markdown(rest.slice(mark[0].length, end), names);
        push(el(mark[1], { class: mark[0] === '||' ? 'd-spoiler' : null }, ...inside));
        here += end + mark[0].length - 1;
      } else {
        plain += rest[0];
      }
    }
  }
  flush();
  return nodes;
}

/** Where a mark at the start closes; -1 when it does not. */
function closing(text, sign) {
  if (/\s/.test(text[sign.length] ?? ' ')) return -1;
  for (let here = sign.length; here < text.length; here += 1) {
    if (text[here] === '\\') here += 1;
    else if (text[here] === '`') return -1;
    else if (here > sign.length && text.startsWith(sign, here)) return here;
  }
  return -1;
}

const said = (text, names) => (text ? el('div', { class: 'd-text' }, ...markdown(text, names)) : null);

// --- Messages -----------------------------------------------------------------------------------

function embed(one, names) {
  const fields = (one.fields ?? []).map((field) => el('div', { class: field.inline ? 'd-inline' : null },
    el('dt', {}, ...markdown(field.name, names)), el('dd', { class: 'd-text' }, ...markdown(field.value, names))));
  const when = one.timestamp ? new Date(one.timestamp) : null;
  const foot = [one.footer?.text, when && when.toLocaleString('en-GB', { dateStyle: 'medium', timeStyle: 'short' })];
  const drawn = el('div', { class: 'd-embed' },
    one.author ? el('p', { class: 'd-foot' }, one.author.name) : null,
    one.title ? el('h3', {}, ...markdown(one.title, names)) : null,
    said(one.description, names),
    fields.length ? el('dl', { class: 'd-fields' }, ...fields) : null,
    foot.some(Boolean) ? el('p', { class: 'd-foot' }, foot.filter(Boolean).join(' · ')) : null);
  if (Number.isInteger(one.color)) drawn.style.borderLeftColor = `#${one.color.toString(16).padStart(6, '0')}`;
  return drawn;
}

function component(one, on) {
  if (one.type === 2 && one.style === 5) {
    return /^https?:\/\//.test(one.url) ? link(one.url, one.label ?? one.url) : el('span', {}, one.label ?? '');
  }
  if (one.type === 2) {
    const label = [one.emoji?.name, one.label].filter(Boolean).join(' ');
    const button = el('button', { type: 'button', class: `d-${one.style}`, disabled: Boolean(one.disabled), 'data-action': one.custom_id }, label);
    button.addEventListener('click', () => on.press(one, button));
    return button;
  }
  if (one.type === 3) return select(one, on);
  return el('p', { class: 'd-foot' }, `(a part of type ${one.type}, which this page does not draw)`);
}

/** A select: one choice at once, or several with a button that sends them. */
function select(one, on) {
  const name = one.placeholder ?? 'Make a selection';
  const text = (option) => (option.description ? `${option.label} (${option.description})` : option.label);
  if ((one.max_values ?? 1) === 1) {
    const drawn = el('select', { 'aria-label': name, disabled: Boolean(one.disabled) }, el('option', { value: '' }, name),
      ...one.options.map((option) => el('option', { value: option.label, selected: Boolean(option.default) }, text(option))));
    drawn.addEventListener('change', () => { if (drawn.value) on.choose(one, [drawn.value], drawn); });
    return drawn;
  }
  const boxes = one.options.map((option) => el('input', { type: 'checkbox', value: option.label, checked: Boolean(option.default) }));
  const send = el('button', { type: 'button', class: 'd-1', disabled: Boolean(one.disabled) }, 'Choose');
  send.addEventListener('click', () => on.choose(one, boxes.filter((box) => box.checked).map((box) => box.value), send));
  return el('fieldset', { class: 'd-choices' }, el('legend', {}, name),
    ...one.options.map((option, index) => el('label', {}, boxes[index], text(option))), send);
}

const initials = (name) => name.split(/\s+/).map((part) => part[0] ?? '').join('').slice(0, 2);

function messageNode(message, names, on) {
  const by = names.people[message.by] ?? message.by;
  const time = new Date(message.at);
  const rows = message.components.map((row) => el('div', { class: 'd-row' }, ...(row.components ?? []).map((one) => component(one, on))));
  const files = message.files.map((file) => el('details', { class: 'd-file' }, el('summary', {}, file.name), el('pre', {}, file.text)));
  return el('article', { class: message.private ? 'message private' : 'message', 'data-id': message.id },
    message.private ? el('p', { class: 'only' }, 'Only you can see this') : null,
    el('div', { class: message.app ? 'face app' : 'face', 'aria-hidden': 'true' }, message.app ? '✓' : initials(by)),
    el('div', { class: 'body' },
      el('p', { class: 'by' }, el('strong', {}, by), message.app ? el('span', { class: 'tag' }, 'App') : null,
        el('time', { datetime: time.toISOString() }, time.toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit' }))),
      message.loading ? el('p', { class: 'd-thinking' }, 'Countersign is thinking…') : said(message.content, names),
      ...message.embeds.map((one) => embed(one, names)), ...rows, ...files,
      message.edited ? el('p', { class: 'edited' }, '(edited)') : null));
}

// --- Forms --------------------------------------------------------------------------------------

/** A part of a form: its label, its input, what stands below it. */
function part(one, values, fill, names) {
  if (one.type === 10) return said(one.content, names);
  const inner = one.type === 18 ? one.component : one.components?.[0];
  if (!inner) return null;
  const label = one.type === 18 ? one.label : inner.label;
  const value = values.find((field) => field.label === label)?.value ?? {};
  const optional = inner.required === false ? el('span', { class: 'b-optional' }, ' (optional)') : null;
  const id = `d-${inner.custom_id}`.replace(/[^\w-]/g, '-');
  const below = one.description ? el('p', { class: 'b-context' }, one.description) : null;
  if (inner.type === 4) {
    const more = { id, maxlength: inner.max_length ?? 4000, placeholder: inner.placeholder ?? null };
    const drawn = inner.style === 2 ? el('textarea', { rows: 4, ...more }) : el('input', { autocomplete: 'off', ...more });
    drawn.value = value.value ?? '';
    drawn.addEventListener('change', () => fill(inner.custom_id, { do: 'text', text: drawn.value }));
    return el('div', { class: 'b-input' }, el('label', { for: id }, label, optional), below, drawn);
  }
  const one1 = inner.type === 21 || (inner.type === 3 && (inner.max_values ?? 1) === 1);
  const chosen = one1 ? [value.value ?? value.values?.[0]] : value.values ?? [];
  if (inner.type === 23) {
    const box = el('input', { type: 'checkbox', checked: value.value === true });
    box.addEventListener('change', () => fill(inner.custom_id, { do: 'tick', on: box.checked }));
    return el('div', { class: 'b-input' }, el('label', {}, box, ' ', label, optional), below);
  }
  const boxes = (inner.options ?? []).map((option) => el('input', {
    type: one1 ? 'radio' : 'checkbox', name: id, value: option.label, checked: chosen.includes(option.value),
  }));
  const tell = () => fill(inner.custom_id, { do: 'choose', labels: boxes.filter((box) => box.checked).map((box) => box.value) });
  boxes.forEach((box) => box.addEventListener('change', tell));
  return el('fieldset', { class: 'b-choices' }, el('legend', {}, label, optional), below,
    ...(inner.options ?? []).map((option, index) => el('label', {}, boxes[index], option.description ? `${option.label} (${option.description})` : option.label)));
}

// --- The pane -----------------------------------------------------------------------------------

/** `act(what)` sends what the viewer does; `keep(list, items)` touches only what changed. */
export function pane(act, keep) {
  let place = null;
  let state = null;
  let filling = Promise.resolve();
  const doing = (what) => act({ do: 'discord', user: state.viewer, what }, at('d-modal').open ? at('d-modal-said') : null);
  const busy = async (button, what) => {
    button.disabled = true;
    await doing(what);
    button.disabled = false;
  };
  const on = (message) => ({
    press: (one, button) => busy(button, { act: 'press', channel: place, message: message.id, control: one.custom_id }),
    choose: (one, labels, control) => busy(control, { act: 'choose', channel: place, message: message.id, field: one.custom_id, labels }),
  });

  function draw(discord, viewer) {
    const there = Boolean(discord);
    document.body.classList.toggle('with-discord', there);
    at('discord').hidden = !there;
    at('tab-discord').hidden = !there;
    if (!there) return;
    state = { ...discord, viewer };
    if (!state.places.some((one) => one.id === place)) place = state.places[0]?.id ?? null;
    const choice = at('d-place');
    keep(choice, state.places.map((one) => ({
      key: one.id, print: JSON.stringify([one.name, one.archived]),
      make: () => el('option', { value: one.id }, `${one.direct ? '' : '# '}${one.name}${one.archived ? ' (archived)' : ''}`),
    })));
    if (place) choice.value = place;
    choice.hidden = !place;
    at('d-say').hidden = !place;
    const current = state.places.find((one) => one.id === place);
    const list = at('d-messages');
    const down = list.scrollHeight - list.scrollTop - list.clientHeight < 80;
    const other = list.dataset.of !== `${viewer} ${place}`;
    list.dataset.of = `${viewer} ${place}`;
    if (other) list.replaceChildren();
    const messages = current?.messages ?? [];
    keep(list, messages.map((message) => ({
      key: message.id, print: JSON.stringify(message), make: () => messageNode(message, state.names, on(message)),
    })));
    at('d-empty').hidden = messages.length > 0;
    at('d-empty').textContent = discord.me ? 'Nothing has been asked here yet.' : 'This person is not on this Discord.';
    if (down || other) toEnd();
    drawModal();
  }

  function toEnd() {
    at('d-messages').scrollTop = at('d-messages').scrollHeight;
  }

  function drawModal() {
    const dialog = at('d-modal');
    const { modal } = state;
    if (!modal) {
      if (dialog.open) dialog.close();
      delete dialog.dataset.of;
      return;
    }
    // What is typed stays: a form is drawn once.
    const of = `${state.viewer} ${modal.id}`;
    if (dialog.open && dialog.dataset.of === of) return;
    dialog.dataset.of = of;
    const fill = (field, input) => { filling = filling.then(() => doing({ act: 'fill', field, input })); };
    at('d-modal-title').textContent = modal.title;
    at('d-modal-parts').replaceChildren(...modal.components.map((one) => part(one, modal.fields, fill, state.names)).filter(Boolean));
    at('d-modal-said').hidden = true;
    if (!dialog.open) dialog.showModal();
  }

  async function inModal(what) {
    at('d-modal-submit').disabled = true;
    await filling;
    await doing({ act: what });
    at('d-modal-submit').disabled = false;
  }

  at('d-place').addEventListener('change', (event) => {
    place = event.target.value;
    draw(state, state.viewer);
    toEnd();
  });
  at('d-modal-form').addEventListener('submit', (event) => {
    event.preventDefault();
    inModal('submit');
  });
  at('d-modal-close').addEventListener('click', () => inModal('close'));
  at('d-modal').addEventListener('cancel', (event) => {
    event.preventDefault();
    inModal('close');
  });
  at('d-say').addEventListener('submit', async (event) => {
    event.preventDefault();
    const text = at('d-say-text').value.trim();
    if (text && await doing({ act: 'say', channel: place, text })) at('d-say-text').value = '';
  });
  return { draw, toEnd };
}

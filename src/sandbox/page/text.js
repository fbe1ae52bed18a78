// Slack's texts as DOM nodes. Text only ever becomes text nodes; the few live sequences of mrkdwn
// (mentions, dates, links, marks) become elements made here.

/** Stored text as it reads: the three entities, each once. */
export function unescape(text) {
  return text.replace(/&(lt|gt|amp);/g, (_, name) => ({ lt: '<', gt: '>', amp: '&' })[name]);
}

export function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) made.setAttribute(name, '');
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined && child !== ''));
  return made;
}

const DATE_PARTS = {
  date_num: { year: 'numeric', month: '2-digit', day: '2-digit' },
  date: { year: 'numeric', month: 'long', day: 'numeric' },
  date_short: { year: 'numeric', month: 'short', day: 'numeric' },
  date_long: { weekday: 'long', year: 'numeric', month: 'long', day: 'numeric' },
  time: { hour: 'numeric', minute: '2-digit' },
  time_secs: { hour: 'numeric', minute: '2-digit', second: '2-digit' },
};

function dayWord(date) {
  const days = Math.round((new Date(date).setHours(0, 0, 0, 0) - new Date().setHours(0, 0, 0, 0)) / 86_400_000);
  return { 0: 'today', '-1': 'yesterday', 1: 'tomorrow' }[days];
}

/** `<!date^seconds^format|fallback>` in the viewer's own zone. */
export function dateText(seconds, format, fallback) {
  const date = new Date(Number(seconds) * 1000);
  if (!/^\d{1,12}$/.test(seconds) || Number.isNaN(date.getTime())) return fallback;
  return format.replace(/\{(\w+?)(_pretty)?\}/g, (whole, name, pretty) => {
    const part = DATE_PARTS[name];
    if (!part) return whole;
    return (pretty && dayWord(date)) || date.toLocaleString('en-GB', part);
  });
}

/** One inside of `<…>`; null when it is no live sequence. */
function live(inner, names) {
  const bar = inner.indexOf('|');
  const target = bar < 0 ? inner : inner.slice(0, bar);
  const label = bar < 0 ? null : unescape(inner.slice(bar + 1));
  if (/^@[UW]/.test(target)) return el('span', { class: 'mention' }, `@${names.people[target.slice(1)] ?? label ?? target.slice(1)}`);
  if (/^#[CG]/.test(target)) return el('span', { class: 'mention' }, `#${names.channels[target.slice(1)] ?? label ?? target.slice(1)}`);
  if (target.startsWith('!date^')) {
    const [, seconds, format = ''] = target.split('^');
    const iso = new Date(Number(seconds) * 1000);
    const datetime = Number.isNaN(iso.getTime()) ? null : iso.toISOString();
    return el('time', { datetime }, dateText(seconds, format, label ?? ''));
  }
  if (/^!(channel|here|everyone|subteam\^)/.test(target)) return el('span', { class: 'mention' }, label ?? `@${target.slice(1)}`);
  if (/^https?:\/\//.test(target)) return link(unescape(target), label ?? unescape(target));
  return null;
}

export function link(url, label) {
  return el('a', { href: url, rel: 'noopener noreferrer', target: '_blank' }, label);
}

const MARKS = { '*': 'strong', _: 'em', '~': 's', '`': 'code' };
const atEdge = (character) => character === undefined || !/[\p{L}\p{N}]/u.test(character);

/** Stored mrkdwn as nodes. */
export function mrkdwn(text, names) {
  const nodes = [];
  let plain = '';
  const flush = () => {
    if (plain) nodes.push(unescape(plain));
    plain = '';
  };
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at];
    if (character === '<') {
      const end = text.indexOf('>', at);
      const node = end < 0 ? null : live(text.slice(at + 1, end), names);
      if (node) {
        flush();
        nodes.push(node);
        at = end;
        continue;
      }
    } else if (text.startsWith('```', at)) {
      const end = text.indexOf('```', at + 3);
      if (end > at + 3) {
        flush();
        nodes.push(el('pre', {}, unescape(text.slice(at + 3, end).replace(/^\n/, ''))));
        at = end + 2;
        continue;
      }
    } else if (MARKS[character] && atEdge(text[at - 1]) && text[at + 1] && !/\s/.test(text[at + 1])) {
      const end = closing(text, at);
      if (end > 0) {
        flush();
        const inside = text.slice(at + 1, end);
        nodes.push(el(MARKS[character], {}, ...(character === '`' ? [unescape(inside)] : mrkdwn(inside, names))));
        at = end;
        continue;
      }
    }
    plain += character;
  }
  flush();
  return nodes;
}

/** Where the mark at `start` closes on the same line; -1 when it does not. */
function closing(text, start) {
  for (let at = start + 2; at < text.length && text[at] !== '\n'; at += 1) {
    if (text[at] === text[start] && !/\s/.test(text[at - 1]) && atEdge(text[at + 1])) return at;
  }
  return -1;
}

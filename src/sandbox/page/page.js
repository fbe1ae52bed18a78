// The page: shows the state the server sends, and sends what the viewer does.
// What has not changed is left alone in the document, so that focus and reading place stay.

import { blocks } from './blocks.js';
import { pane } from './discord.js';
import { el, mrkdwn } from './text.js';

const at = (id) => document.getElementById(id);
const remembered = (name, otherwise) => {
  try { return sessionStorage.getItem(name) ?? otherwise; } catch { return otherwise; }
};
const remember = (name, value) => {
  try { sessionStorage.setItem(name, value); } catch { /* a private window: it is only a comfort */ }
};

let viewer = remembered('viewer', 'U0DANA');
let place = remembered('place', 'C0RELEASES');
let state = null;
let source = null;
/** What the viewer has seen of each place: the count and text of its messages. */
const seen = new Map();

// --- Live updates -----------------------------------------------------------------------------

function listen() {
  source?.close();
  source = new EventSource(`/page/events?as=${encodeURIComponent(viewer)}`);
  source.addEventListener('message', (event) => {
    document.body.classList.remove('offline');
    state = JSON.parse(event.data);
    draw();
  });
  source.addEventListener('error', () => document.body.classList.add('offline'));
}

async function act(what, saidIn = at('modal').open ? at('modal-said') : null) {
  let said;
  try {
    const answer = await fetch('/page/do', {
      method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(what),
    });
    said = await answer.json();
  } catch {
    said = { ok: false, why: 'The demo does not answer. Is it still running?' };
  }
  if (!said.ok && saidIn) {
    saidIn.textContent = said.why;
    saidIn.hidden = false;
  } else if (!said.ok) {
    toast(said.why);
  }
  return said.ok;
}

let toastEnds;
function toast(text) {
  const shown = at('toast');
  shown.textContent = text;
  shown.hidden = false;
  clearTimeout(toastEnds);
  toastEnds = setTimeout(() => { shown.hidden = true; }, 6000);
}

// --- Drawing ----------------------------------------------------------------------------------

function draw() {
  const places = [...state.places, homePlace()];
  if (!places.some((one) => one.id === place)) place = places[0]?.id;
  drawPeople();
  drawPlaces(places);
  const current = places.find((one) => one.id === place);
  at('place').textContent = title(current);
  at('members').textContent = current.home ? 'what waits for you' : current.direct ? 'direct message' : `${current.members} members`;
  at('say').hidden = Boolean(current.home);
  drawMessages(current);
  drawTasks();
  drawModal();
  discord.draw(state.discord, viewer);
}

const title = (one) => (one.direct ? one.name : `# ${one.name}`);

/** The app's Home as one more place, drawn like a message of the app. */
function homePlace() {
  const home = state.home;
  const shown = home ? [{ ts: '0.0', by: 'U0BOT', app: true, text: '', blocks: home.blocks, view: home.id, hash: home.hash }] : [];
  return { id: 'home', name: 'App Home', direct: true, home: true, messages: shown };
}

function drawPeople() {
  const select = at('viewer');
  if (select.options.length !== state.people.length) {
    select.replaceChildren(...state.people.map((one) => el('option', { value: one.id }, `${one.name}, ${one.about}`)));
  }
  select.value = viewer;
  const me = state.people.find((one) => one.id === viewer);
  at('about').replaceChildren(
    el('strong', {}, me.name), el('br'), me.about, el('br'),
    me.subject ? `To the runtime: ${me.subject}` : 'Unknown to the runtime',
  );
}

function drawPlaces(places) {
  const waiting = (one) => (one.home ? [] : one.messages).filter((message) => message.blocks.some((block) => block.type === 'actions')).length;
  const print = (one) => JSON.stringify(one.messages);
  const now = places.find((one) => one.id === place);
  seen.set(`${viewer} ${now.id}`, print(now));
  keep(at('places'), places.map((one) => {
    const fresh = one.id !== place && one.messages.length > 0 && seen.get(`${viewer} ${one.id}`) !== print(one);
    const open = waiting(one);
    return {
      key: one.id, print: JSON.stringify([one.name, one.id === place, fresh, open]),
      make: () => {
        const button = el('button', { type: 'button', 'aria-current': one.id === place ? 'true' : false, class: fresh ? 'fresh' : null },
          el('span', {}, title(one)),
          open ? el('span', { class: 'count', 'aria-label': `${open} open` }, String(open)) : null);
        button.addEventListener('click', () => choose(one.id));
        return el('li', {}, button);
      },
    };
  }));
}

function choose(id) {
  place = id;
  remember('place', id);
  draw();
  toEnd();
  if (id === 'home') act({ do: 'home', user: viewer });
}

const names = () => ({ people: state.names, channels: state.channels });

function drawMessages(current) {
  at('empty').hidden = current.messages.length > 0;
  const list = at('messages');
  const down = list.scrollHeight - list.scrollTop - list.clientHeight < 80;
  const otherPlace = list.dataset.of !== `${viewer} ${current.id}`;
  list.dataset.of = `${viewer} ${current.id}`;
  if (otherPlace) list.replaceChildren();
  const changed = keep(list, current.messages.map((message) => ({
    key: message.ts, print: JSON.stringify(message), make: () => messageNode(current, message),
  })));
  if (!otherPlace && changed.length) {
    const last = current.messages.find((message) => message.ts === changed.at(-1));
    at('news').textContent = last ? el('p', {}, ...mrkdwn(last.text, names())).textContent : '';
  }
  if (down || otherPlace) toEnd();
}

function toEnd() {
  const list = at('messages');
  list.scrollTop = list.scrollHeight;
}

function clock(ts) {
  const date = new Date(Number(ts.split('.')[0]) * 1000);
  return el('time', { datetime: date.toISOString() }, date.toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit' }));
}

function messageNode(current, message) {
  const by = state.names[message.by] ?? message.by;
  const spot = message.view
    ? { spot: 'view', id: message.view }
    : { spot: message.private ? 'ephemeral' : 'message', channel: current.id, ts: message.ts };
  const content = message.blocks.length
    ? blocks(message.blocks, names(), on(spot))
    : [el('p', {}, ...mrkdwn(message.text, names()))];
  return el('article', { class: ['message', message.private && 'private', message.reply && 'reply'].filter(Boolean).join(' '), 'data-ts': message.ts },
    message.private ? el('p', { class: 'only' }, 'Only visible to you') : null,
    el('div', { class: message.app ? 'face app' : 'face', 'aria-hidden': 'true' }, message.app ? '✓' : initials(by)),
    el('div', { class: 'body' },
      el('p', { class: 'by' }, el('strong', {}, by), message.app ? el('span', { class: 'tag' }, 'App') : null, message.view ? null : clock(message.ts)),
      el('div', { class: message.app && message.blocks.length && !message.private ? 'card' : 'said' }, ...content),
      message.edited ? el('p', { class: 'edited' }, '(edited)') : null));
}

const initials = (name) => name.split(/\s+/).map((part) => part[0] ?? '').join('').slice(0, 2);

/** What people have filled in, by place and path: it outlives a redrawing that keeps the ids. */
const typed = new Map();
/** The fields that are being told of, so that a submission comes after them. */
let telling = Promise.resolve();

function on(spot, errors) {
  const key = `${viewer} ${spot.id ?? `${spot.channel} ${spot.ts}`}`;
  if (!typed.has(key)) typed.set(key, new Map());
  return {
    typed: typed.get(key), errors,
    press: (element, path, button) => press(spot, element, path, button),
    fill: (path, input) => { telling = telling.then(() => act({ do: 'fill', user: viewer, at: spot, field: path, input })); },
  };
}

async function press(spot, element, path, button) {
  if (element.confirm && !(await confirmed(element.confirm))) return;
  if (element.url && /^https?:\/\//.test(element.url)) window.open(element.url, '_blank', 'noopener,noreferrer');
  const group = [...button.parentElement.querySelectorAll('button')];
  group.forEach((one) => { one.disabled = true; });
  button.classList.add('busy');
  await telling;
  await act({ do: 'press', user: viewer, at: spot, control: path });
  button.classList.remove('busy');
  group.forEach((one) => { one.disabled = false; });
}

/** Slack's own question before a press. */
function confirmed(ask) {
  const text = (object, otherwise) => el('p', {}, ...mrkdwn(object?.text ?? otherwise, names())).textContent;
  at('confirm-title').textContent = text(ask.title, 'Are you sure?');
  at('confirm-text').textContent = text(ask.text, '');
  at('confirm-yes').textContent = text(ask.confirm, 'Yes');
  at('confirm-no').textContent = text(ask.deny, 'Cancel');
  at('confirm-yes').className = ask.style === 'danger' ? 'stop' : 'go';
  const dialog = at('confirm');
  return new Promise((resolve) => {
    const end = (yes) => { dialog.close(); resolve(yes); };
    at('confirm-yes').onclick = () => end(true);
    at('confirm-no').onclick = () => end(false);
    dialog.oncancel = () => resolve(false);
    dialog.showModal();
  });
}

/** The modal in front, as a dialog; what was typed stays while it changes under the person. */
function drawModal() {
  const dialog = at('modal');
  const modal = state.modal;
  if (!modal) {
    if (dialog.open) dialog.close();
    delete dialog.dataset.print;
    return;
  }
  const print = JSON.stringify([viewer, modal]);
  if (dialog.open && dialog.dataset.print === print) return;
  dialog.dataset.print = print;
  const { view } = modal;
  const text = (object, otherwise) => el('p', {}, ...mrkdwn(object?.text ?? otherwise, names())).textContent;
  at('modal-title').textContent = text(view.title, '');
  at('modal-blocks').replaceChildren(...blocks(view.blocks, names(), on({ spot: 'view', id: modal.id }, modal.errors)));
  at('modal-close').textContent = text(view.close, 'Close');
  at('modal-submit').textContent = text(view.submit, 'Submit');
  at('modal-submit').hidden = !view.submit;
  at('modal-said').hidden = true;
  if (!dialog.open) dialog.showModal();
}

async function inModal(what) {
  const view = state.modal?.id;
  if (!view) return;
  at('modal-submit').disabled = true;
  await telling;
  await act({ do: what, user: viewer, view });
  at('modal-submit').disabled = false;
}
at('modal-form').addEventListener('submit', (event) => {
  event.preventDefault();
  inModal('submit');
});
at('modal-close').addEventListener('click', () => inModal('close'));
at('modal').addEventListener('cancel', (event) => {
  event.preventDefault();
  inModal('close');
});
at('say').addEventListener('submit', async (event) => {
  event.preventDefault();
  const text = at('say-text').value.trim();
  if (text && await act({ do: 'say', user: viewer, channel: place, text })) at('say-text').value = '';
});

function drawTasks() {
  const waits = state.tasks.filter((task) => task.waits).length;
  at('waiting').textContent = String(waits);
  at('waiting').hidden = waits === 0;
  keep(at('tasks'), state.tasks.map((task) => ({ key: task.id, print: JSON.stringify(task), make: () => taskNode(task) })));
}

const moment = (ms) => new Date(ms).toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' });

function fact(label, ...value) {
  return [el('dt', {}, label), el('dd', {}, ...value)];
}

function taskNode(task) {
  const open = task.interactions.find((one) => one.phase === 'open');
  const act1 = (label, what, about) => {
    const button = el('button', { type: 'button', class: 'plain', 'aria-label': `${label}: ${about}` }, label);
    button.addEventListener('click', async () => {
      button.disabled = true;
      await act(what);
      button.disabled = false;
    });
    return button;
  };
  const about = open ? `${open.server} / ${open.tool}` : '';
  return el('li', { class: `task ${task.ended ? 'ended' : task.waits ? 'waits' : 'works'}`, 'data-task': task.id },
    el('p', { class: 'task-head' }, el('span', { class: `state s-${task.state.replace(' ', '-')}` }, task.state),
      el('span', { class: 'for' }, `for ${task.owner}`)),
    ...task.interactions.filter((one) => one.phase !== 'queued').map(interactionNode),
    task.said && task.ended ? el('p', { class: 'b-context' }, task.said) : null,
    open ? el('div', { class: 'b-actions' },
      act1('Cancel task', { do: 'cancel', taskId: task.id }, about),
      act1('Answer in the product', { do: 'answer', interactionId: open.id }, about),
      act1('Change the request', { do: 'change', interactionId: open.id }, about)) : null);
}

function interactionNode(one) {
  const answer = one.answers[0];
  return el('div', { class: 'interaction' },
    el('p', { class: 'what' }, `${one.server} / ${one.tool}`),
    answer
      ? el('dl', {},
        ...fact('decision', el('strong', { class: `d-${answer.decision}` }, answer.decision)),
        ...fact('approvedBy', el('code', {}, answer.approvedBy)),
        ...fact('at', moment(answer.at)),
        ...fact('by way of', answer.elsewhere ? 'the product itself' : 'an answer over A2A'))
      : el('p', { class: 'b-context' }, one.phase === 'open' ? 'waits for a person' : 'ended without an answer'));
}

/** Makes the children of `list` those of `items`, touching only what changed; the keys of what was made anew. */
function keep(list, items) {
  const known = new Map([...list.children].map((child) => [child.dataset.key, child]));
  const anew = [];
  let before = null;
  for (const item of items) {
    let node = known.get(item.key);
    known.delete(item.key);
    if (!node || node.dataset.print !== item.print) {
      const made = item.make();
      made.dataset.key = item.key;
      made.dataset.print = item.print;
      const focused = node?.contains(document.activeElement) ? document.activeElement.dataset.action ?? document.activeElement.textContent : null;
      if (node) node.replaceWith(made);
      if (focused !== null) {
        const again = [...made.querySelectorAll('button')].find((button) => (button.dataset.action ?? button.textContent) === focused);
        (again ?? at('messages')).focus({ preventScroll: true });
      }
      node = made;
      anew.push(item.key);
    }
    const wanted = before ? before.nextSibling : list.firstChild;
    if (node !== wanted) list.insertBefore(node, wanted);
    before = node;
  }
  known.forEach((child) => child.remove());
  return anew;
}

// --- What the viewer uses ---------------------------------------------------------------------

at('viewer').addEventListener('change', (event) => {
  viewer = event.target.value;
  remember('viewer', viewer);
  listen();
});
at('open').addEventListener('click', async (event) => {
  event.target.disabled = true;
  await act({ do: 'open' });
  event.target.disabled = false;
});

const discord = pane(act, keep);
const tabs = [at('tab-chat'), at('tab-discord'), at('tab-runtime')];
function show(tab) {
  tabs.forEach((one) => {
    one.setAttribute('aria-selected', String(one === tab));
    one.tabIndex = one === tab ? 0 : -1;
  });
  document.body.dataset.tab = tab.id.replace('tab-', '');
  if (tab === tabs[0]) toEnd();
  if (tab === tabs[1]) discord.toEnd();
}
tabs.forEach((tab) => {
  tab.addEventListener('click', () => show(tab));
  tab.addEventListener('keydown', (event) => {
    if (event.key !== 'ArrowLeft' && event.key !== 'ArrowRight') return;
    const shown = tabs.filter((one) => !one.hidden);
    const step = event.key === 'ArrowRight' ? 1 : -1;
    const other = shown[(shown.indexOf(tab) + step + shown.length) % shown.length];
    show(other);
    other.focus();
  });
});

document.body.dataset.tab = 'chat';
listen();

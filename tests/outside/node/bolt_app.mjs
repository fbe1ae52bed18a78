// An app made with @slack/bolt, which nobody here wrote, against the Slack stand-in.
//
//   node bolt_app.mjs <base address of the Web API> http|socket <channel> [<bot token> <app token>]
//
// Over HTTP it takes deliveries of all kinds at `/slack/events`. It posts a card, opens a modal at a press, checks what
// is submitted, edits the card, answers `/bolt` (`/bolt card` posts one more), and publishes an App Home whose button changes it. Prints
// `ready <port, or 0>`; answers each line with what it has seen so far; ends with its standard input.

import { createInterface } from 'node:readline';
import bolt from '@slack/bolt';

const [
  api, mode, channel, token = 'xoxb-sandbox-acme', appToken = 'xapp-sandbox-countersign',
] = process.argv.slice(2);
const seen = [];
const common = {
  token,
  logLevel: bolt.LogLevel.ERROR,
  clientOptions: { slackApiUrl: `${api}/` },
};
const app = mode === 'socket'
  ? new bolt.App({ ...common, socketMode: true, appToken })
  : new bolt.App({ ...common, signingSecret: 'countersign-test-secret' });

const plain = (text) => ({ type: 'plain_text', text });
const modal = {
  type: 'modal', callback_id: 'reason', title: plain('Why not?'), submit: plain('Deny'), close: plain('Cancel'),
  notify_on_close: true,
  blocks: [{
    type: 'input', block_id: 'why', label: plain('Reason'),
    element: { type: 'plain_text_input', action_id: 'text', multiline: true },
  }],
};
const home = (text) => ({
  type: 'home',
  blocks: [
    { type: 'section', text: plain(text) },
    { type: 'actions', elements: [{ type: 'button', action_id: 'again', text: plain('Again') }] },
  ],
});

async function card() {
  const posted = await app.client.chat.postMessage({
    channel, text: 'Approval needed',
    blocks: [
      { type: 'section', text: plain('Deploy R&D <eu>?') },
      { type: 'actions', elements: [{ type: 'button', style: 'danger', action_id: 'deny', value: 'k1', text: plain('Deny…') }] },
    ],
  });
  seen.push(`posted ${posted.ok}`);
}

app.action('deny', async ({ ack, body, client }) => {
  await ack();
  seen.push(`press by ${body.user.id}`);
  const opened = await client.views.open({
    trigger_id: body.trigger_id, view: { ...modal, private_metadata: `${body.channel.id} ${body.message.ts}` },
  });
  seen.push(`opened ${opened.ok}`);
});
app.view('reason', async ({ ack, body, view, client }) => {
  const reason = view.state.values.why.text.value;
  if (reason.length < 5) {
    await ack({ response_action: 'errors', errors: { why: 'Say a little more.' } });
    return;
  }
  await ack();
  seen.push(`reason ${reason}`);
  const [at, ts] = view.private_metadata.split(' ');
  const text = `Denied by <@${body.user.id}>`;
  const blocks = [{ type: 'section', text: plain(`Denied: ${reason}`) }];
  const updated = await client.chat.update({ channel: at, ts, text, blocks });
  seen.push(`updated ${updated.ok}`);
});
app.view({ callback_id: 'reason', type: 'view_closed' }, async ({ ack, body }) => {
  await ack();
  seen.push(`closed by ${body.user.id}`);
});
app.command('/bolt', async ({ ack, command, respond }) => {
  await ack({ response_type: 'ephemeral', text: `You said ${command.text}` });
  await respond({ response_type: 'ephemeral', text: 'And later this.' });
  seen.push(`command ${command.text}`);
  if (command.text === 'card') await card();
});
app.event('app_home_opened', async ({ event, client }) => {
  const published = await client.views.publish({ user_id: event.user, view: home('Nothing is open.') });
  seen.push(`home ${published.ok}`);
});
app.action('again', async ({ ack, body, client }) => {
  await ack();
  const { hash } = body.view;
  const published = await client.views.publish({ user_id: body.user.id, hash, view: home('Still nothing.') });
  seen.push(`home again ${published.ok}`);
});
app.error(async (error) => {
  seen.push(`error ${error.code ?? ''} ${error.message}`);
});

const started = await app.start(0);
await card();
const lines = createInterface({ input: process.stdin });
lines.on('line', () => console.log(JSON.stringify(seen)));
lines.on('close', () => process.exit(0));
console.log(`ready ${started?.address?.().port ?? 0}`);

// Clicks through the second pane of the demo's page as a person does, at desktop and at phone width; behind it is the
// application of `discord_app.mjs`.
//
//   node discord.mjs <address of the demo> <folder for screenshots>
//
// Ends with `the second pane works`; the first thing that is not as it should be ends it with an error.

import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { open } from '../outside/node/browser.mjs';

const [url, folder = 'target/screenshots'] = process.argv.slice(2);
mkdirSync(folder, { recursive: true });

const browser = await open();
try {
  for (const phone of [false, true]) await walk(phone);
  console.log('the second pane works');
} finally {
  await browser.close();
}

async function walk(phone) {
  const name = phone ? 'phone' : 'desktop';
  const page = await browser.page({ phone });
  page.setDefaultTimeout(20_000);
  const complaints = [];
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(String(error)));
  const picture = async (what) => {
    await page.screenshot({ path: `${folder}/discord-${name}-${what}.png` });
    const [wide, window] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    assert(wide <= window, `${what}: the page is ${wide} wide in a window of ${window}`);
  };
  const pane = page.locator('#discord');
  const be = async (person) => {
    const option = page.locator('#viewer option', { hasText: person });
    await page.locator('#viewer').selectOption(await option.getAttribute('value'));
    await page.locator('#about strong', { hasText: person }).waitFor({ state: 'attached' });
  };

  await page.goto(url);
  await be('Dana Lee');
  if (phone) await page.getByRole('tab', { name: 'Discord' }).click();
  const asked = pane.locator('.message').filter({ has: page.getByRole('button', { name: 'Approve' }) }).last();
  await asked.waitFor();
  const card = pane.locator(`.message[data-id="${await asked.getAttribute('data-id')}"]`);
  await card.getByText('Approval: Deploy R&D <eu>?').waitFor();
  await card.locator('.d-embed dd', { hasText: 'eu' }).waitFor();
  await picture('asked');
  // Buttons are large enough for a thumb, and whole.
  if (phone) {
    for (const button of await card.locator('button').all()) assert((await button.boundingBox()).height >= 44);
  }

  // A choice is told privately, and nobody else sees that.
  await card.getByLabel('Pick a plan').selectOption('Skip');
  const told = pane.locator('.message.private', { hasText: 'You chose 1' });
  await told.last().waitFor();
  await be('Kim Ito');
  await card.waitFor();
  assert.equal(await told.count(), 0);
  await be('Dana Lee');
  await told.last().waitFor();

  // A form, which asks for what is missing and says so.
  await card.getByRole('button', { name: 'Deny…' }).click();
  const form = page.locator('#d-modal');
  await form.getByRole('heading', { name: 'Why not?' }).waitFor();
  await form.getByRole('button', { name: 'Submit' }).click();
  await form.locator('#d-modal-said', { hasText: 'too short' }).waitFor();
  await form.getByLabel('Reason').fill('not on a **Friday**');
  await picture('form');
  await form.getByRole('button', { name: 'Submit' }).click();
  await form.waitFor({ state: 'hidden' });
  await card.getByText('Denied: not on a').waitFor();
  assert.equal(await card.locator('strong', { hasText: 'Friday' }).count(), 1);
  assert.equal(await card.locator('button').count(), 0);

  // A command, and the card it posts is pressed.
  await pane.getByLabel('Write a message or a command on Discord').fill('/judge card');
  await pane.getByRole('button', { name: 'Send' }).click();
  await pane.locator('.message.private', { hasText: '3 wait for you' }).last().waitFor();
  const next = pane.locator('.message').filter({ has: page.getByRole('button', { name: 'Approve' }) }).last();
  const fresh = pane.locator(`.message[data-id="${await next.getAttribute('data-id')}"]`);
  if (!phone) {
    await next.getByRole('button', { name: 'Approve' }).click();
    await fresh.getByText('Approved', { exact: true }).waitFor();
    await pane.getByLabel('Write a message or a command on Discord').fill('/judge card');
    await pane.getByRole('button', { name: 'Send' }).click();
    await pane.locator('.message').filter({ has: page.getByRole('button', { name: 'Approve' }) }).last().waitFor();
  }
  await picture('end');

  // Somebody without an account there is told so; the Slack is still beside it.
  await be('Gia Costa');
  await pane.getByText('This person is not on this Discord.').waitFor();
  if (phone) await page.getByRole('tab', { name: 'Chat' }).click();
  await page.locator('#place').waitFor({ state: 'attached' });
  assert.deepEqual(complaints.filter((text) => !text.includes('409')), []);
  await page.context().close();
  console.log(`${name}: seen`);
}

// Goes through a modal, a command and App Home of the page as a person does, at desktop and at phone width. The app
// behind it is the one of `bolt_app.mjs`.
//
//   node modals.mjs <address of the page> <folder for screenshots>
//
// Prints one line per thing seen and ends with `modals work`. Never sleeps: it waits for what should appear.

import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { open } from '../outside/node/browser.mjs';

const [url, folder = 'target/screenshots'] = process.argv.slice(2);
assert(url, 'usage: node modals.mjs <address> [folder]');
mkdirSync(folder, { recursive: true });

const browser = await open();
try {
  for (const phone of [false, true]) await walk(phone);
  console.log('modals work');
} finally {
  await browser.close();
}

async function walk(phone) {
  const name = phone ? 'phone' : 'desktop';
  const page = await browser.page({ phone });
  page.setDefaultTimeout(20_000);
  const complaints = [];
  page.on('console', (message) => {
    // The page says in words what a person cannot do; the browser notes the status of that answer.
    if (['error', 'warning'].includes(message.type()) && !/409/.test(message.text())) complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(String(error)));
  const seen = (what) => console.log(`${name}: ${what}`);
  const picture = async (what) => {
    await page.screenshot({ path: `${folder}/modals-${name}-${what}.png` });
    const [wide, window] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    assert(wide <= window, `${what}: the page is ${wide} wide in a window of ${window}`);
  };
  const write = async (text) => {
    await page.locator('#say-text').fill(text);
    await page.locator('#say-text').press('Enter');
  };
  const place = (channel) => page.locator('#places button', { hasText: channel }).click();

  await page.goto(url);
  await page.locator('#about strong', { hasText: 'Dana Lee' }).waitFor({ state: 'attached' });
  await place('releases');
  await write('/bolt card');
  await page.locator('.message.private', { hasText: 'You said card' }).last().waitFor();
  await page.locator('.message.private', { hasText: 'And later this.' }).last().waitFor();
  seen('a command is answered privately');
  const card = page.locator('.message', { hasText: 'Deploy R&D <eu>?' }).last();
  await card.waitFor();
  const ts = await card.getAttribute('data-ts');
  await card.getByRole('button', { name: 'Deny…' }).click();
  const modal = page.getByRole('dialog', { name: 'Why not?' });
  await modal.waitFor();
  await modal.getByRole('button', { name: 'Deny' }).click();
  await modal.getByText('Please fill in: Reason').waitFor();
  seen('an empty field is not sent');
  await modal.getByLabel('Reason').fill('no');
  await modal.getByRole('button', { name: 'Deny' }).click();
  await modal.getByText('Say a little more.').waitFor();
  assert.equal(await modal.getByLabel('Reason').inputValue(), 'no', 'what was typed is gone');
  await picture('refused');
  seen('the app refuses a field, and what was typed stays');
  await modal.getByLabel('Reason').fill('not on a Friday');
  await modal.getByRole('button', { name: 'Deny' }).click();
  await modal.waitFor({ state: 'hidden' });
  const same = page.locator(`.message[data-ts="${ts}"]`);
  await same.getByText('Denied: not on a Friday').waitFor();
  assert.equal(await same.getByRole('button').count(), 0);
  await picture('denied');
  seen('the card shows the reason');

  // Closed with Escape: the app is told, nothing else changes.
  await write('/bolt card');
  const other = page.locator('.message', { hasText: 'Deploy R&D <eu>?' }).last();
  await other.getByRole('button', { name: 'Deny…' }).click();
  await modal.waitFor();
  await page.keyboard.press('Escape');
  await modal.waitFor({ state: 'hidden' });
  await other.getByRole('button', { name: 'Deny…' }).waitFor();
  seen('Escape closes a modal, the card stays');

  await place('App Home');
  await page.getByText('Nothing is open.').waitFor();
  await page.getByRole('button', { name: 'Again' }).click();
  await page.getByText('Still nothing.').waitFor();
  await picture('home');
  seen('App Home is published and its button works');
  await place('releases');
  assert.deepEqual(complaints, [], 'the console is quiet');
  await page.context().close();
}

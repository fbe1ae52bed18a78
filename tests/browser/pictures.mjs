// Takes pictures of what a person sees, at phone width: one per step, of the message, form or list it names.
//
//   node pictures.mjs <address of the page> <folder for screenshots> <steps as JSON>
//
// A step: `{name, as, place, shows, within, says, typed}`. `as` looks at `place`; `shows` is in the message (the last
// such), or with `within: 'dialog'` in the form in front; `typed` is written into its field and submitted first, and
// then `says` stands there. Prints one line per picture and ends with `pictures taken`. Whatever is wider than the
// screen, cut, or too small for a finger ends it with an error.

import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { open } from '../outside/node/browser.mjs';

const [url, folder, given] = process.argv.slice(2);
assert(given, 'usage: node pictures.mjs <address> <folder> <steps>');
mkdirSync(folder, { recursive: true });
const WIDTH = 360;

const browser = await open();
try {
  const faults = [];
  for (const step of JSON.parse(given)) await take(step).catch((error) => faults.push(`${step.name}: ${error.message}`));
  assert.deepEqual(faults, []);
  console.log('pictures taken');
} finally {
  await browser.close();
}

async function take({ name, as, place, shows, within = 'message', says, typed }) {
  const page = await browser.page({ phone: true });
  await page.setViewportSize({ width: WIDTH, height: 740 });
  page.setDefaultTimeout(20_000);
  const complaints = [];
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(String(error)));

  await page.goto(url);
  const option = page.locator('#viewer option', { hasText: as });
  await page.locator('#viewer').selectOption(await option.getAttribute('value'));
  await page.locator('#about strong', { hasText: as }).waitFor({ state: 'attached' });
  // A form in front covers the channels.
  if (within !== 'dialog') await page.locator('#places button', { hasText: place }).click();
  const of = within === 'dialog' ? page.getByRole('dialog') : page.locator('.message');
  const seen = of.filter({ hasText: shows }).last();
  await seen.waitFor();
  if (typed !== undefined) {
    await seen.locator('textarea').fill(typed);
    await seen.locator('#modal-submit').click();
  }
  if (says) await seen.getByText(says).first().waitFor();
  await seen.evaluate((node) => node.scrollIntoView({ block: 'start' }));

  const found = await page.evaluate(wrong);
  // Tall ones in one piece, of endless ones the end, the rest as the screen shows it.
  const { height } = await seen.boundingBox();
  const whole = within !== 'dialog' && height > 560 && height < 2400;
  const path = `${folder}/${name}.png`;
  if (whole) await page.setViewportSize({ width: WIDTH, height: Math.ceil(height) + 260 });
  await seen.evaluate((node, block) => node.scrollIntoView({ block }), height < 2400 ? 'start' : 'end');
  await page.screenshot({ path });
  assert.deepEqual([...found, ...complaints], [], path);
  console.log(`${name}: ${path}`);
  await page.context().close();
}

/** In the page: what a thumb or an eye cannot reach. */
function wrong() {
  const found = [];
  if (document.documentElement.scrollWidth > innerWidth) found.push(`the page is ${document.documentElement.scrollWidth} wide`);
  const root = [...document.querySelectorAll('dialog[open]')].at(-1) ?? document.getElementById('messages');
  for (const node of root.querySelectorAll('*')) {
    const box = node.getBoundingClientRect();
    if (box.width === 0 || getComputedStyle(node).clipPath !== 'none') continue;
    const what = `${node.tagName.toLowerCase()} “${node.textContent.slice(0, 40)}”`;
    if (box.left < 0 || box.right > innerWidth + 0.5) found.push(`${what} ends at ${box.right} of ${innerWidth}`);
    if (node.scrollWidth > node.clientWidth + 1 && node.clientWidth > 0 && getComputedStyle(node).overflowX !== 'visible') found.push(`${what} is cut`);
    if (node.matches('button, input, select, textarea') && box.height < 40) found.push(`${what} is ${box.height} high`);
  }
  return found;
}

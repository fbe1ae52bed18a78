// Clicks through the demo as a person does, at desktop and at phone width.
//
//   node demo.mjs <address of the demo> <folder for screenshots>
//
// Prints one line per thing seen and ends with `demo works`; the first thing that is not as it should be ends it with
// an error. Never sleeps: it waits for what should appear, each time at most `PATIENCE`.

import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { open } from '../outside/node/browser.mjs';

const [url, folder = 'target/screenshots'] = process.argv.slice(2);
assert(url, 'usage: node demo.mjs <address> [folder]');
mkdirSync(folder, { recursive: true });
const PATIENCE = 30_000;

const browser = await open();
try {
  for (const phone of [false, true]) await walk(phone);
  console.log('demo works');
} finally {
  await browser.close();
}

async function walk(phone) {
  const name = phone ? 'phone' : 'desktop';
  const page = await browser.page({ phone });
  page.setDefaultTimeout(PATIENCE);
  const complaints = [];
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(String(error)));
  page.on('request', (request) => {
    if (!request.url().startsWith(new URL('/', url).href)) complaints.push(`asked ${request.url()}`);
  });

  const seen = (what) => console.log(`${name}: ${what}`);
  let pictures = 0;
  const picture = async (what) => {
    pictures += 1;
    await page.screenshot({ path: `${folder}/${name}-${pictures}-${what}.png` });
    const [wide, window] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    assert(wide <= window, `${what}: the page is ${wide} wide in a window of ${window}`);
  };
  const to = async (tab) => {
    if (phone) await page.getByRole('tab', { name: tab }).click();
  };
  const be = async (person) => {
    const option = page.locator('#viewer option', { hasText: person });
    await page.locator('#viewer').selectOption(await option.getAttribute('value'));
    await page.locator('#about strong', { hasText: person }).waitFor({ state: 'attached' });
  };
  const place = (channel) => page.locator('#places button', { hasText: channel }).click();
  // Which task of the runtime a card is about is known by what was asked, newest first in the panel.
  const task = (tool) => page.locator('.task', { has: page.locator('.what', { hasText: tool }) });
  const waiting = (tool) => page.locator('.task.waits', { has: page.locator('.what', { hasText: tool }) });
  const cards = (text) => page.locator('.message', { has: page.locator('.card'), hasText: text });
  const open = (text) => cards(text).filter({ has: page.getByRole('button', { name: /^Approve/ }) });
  /** A card that stays the same one when its text changes. */
  const pinned = async (card) => page.locator(`.message[data-ts="${await card.getAttribute('data-ts')}"]`);
  /** Opens requests until one of this tool waits, and its card is there. */
  const wanted = async (tool) => {
    for (let tries = 0; (await waiting(tool).count()) === 0; tries += 1) {
      assert(tries < 8, `no request for ${tool}`);
      await to('Runtime');
      const before = await page.locator('.task.waits').count();
      await page.getByRole('button', { name: 'Open another approval' }).click();
      await page.waitForFunction((n) => document.querySelectorAll('.task.waits').length > n, before);
    }
    await to('Chat');
    await open(tool).first().waitFor();
    return pinned(open(tool).first());
  };

  await page.goto(url);
  await be('Dana Lee');
  await place('releases');

  // Approve as Dana.
  const deploy = await wanted('deploy_service');
  await deploy.locator('[data-action="cs.deny"]').waitFor();
  await deploy.locator('[data-action="cs.deny_reason"]').waitFor();
  await picture('asked');
  seen('a card with Approve, Deny and Deny with reason');
  await deploy.evaluate((node) => { window.sameDocument = node.ownerDocument; });
  await deploy.getByRole('button', { name: /^Approve/ }).click();
  await deploy.getByText(/Approved/).first().waitFor();
  await deploy.getByText('@Dana Lee').waitFor();
  await deploy.locator('button').first().waitFor({ state: 'detached' });
  assert.equal(await deploy.locator('button').count(), 0);
  assert(await page.evaluate(() => window.sameDocument === document), 'the page was loaded again');
  await deploy.scrollIntoViewIfNeeded();
  await picture('approved');
  seen('approved by Dana, no buttons left, without a reload');
  await to('Runtime');
  const recorded = task('deploy_service').filter({ hasText: 'approved' }).first();
  await recorded.locator('dd code', { hasText: 'dana@example.com' }).first().waitFor();
  await recorded.getByText('an answer over A2A').first().waitFor();
  await recorded.scrollIntoViewIfNeeded();
  await picture('recorded');
  seen('the runtime recorded approvedBy dana@example.com');
  await to('Chat');

  // What the agent writes stays what it wrote.
  const hostile = await wanted('publish_notes');
  await hostile.locator('pre', { hasText: '<!channel>' }).waitFor();
  const written = await hostile.locator('pre').first().textContent();
  assert(written.includes('*urgent* <b>now</b> &'), written);
  assert.equal(await hostile.locator('a, b, .mention, .body script').count(), 0, 'text of an agent became markup');
  await hostile.scrollIntoViewIfNeeded();
  await picture('hostile');
  seen('hostile text is literal');

  // A guest is refused, privately.
  await be('Gia Costa');
  await open('publish_notes').first().getByRole('button', { name: /^Approve/ }).click();
  const refusal = page.locator('.message.private', { hasText: /guests/i }).last();
  await refusal.waitFor();
  await refusal.getByText('Only visible to you').waitFor();
  await refusal.scrollIntoViewIfNeeded();
  await picture('refused');
  assert((await hostile.getByRole('button', { name: /^Approve/ }).count()) > 0, 'the card lost its buttons');
  await be('Kim Ito');
  await hostile.waitFor();
  assert.equal(await page.locator('.message.private', { hasText: /guests/i }).count(), 0, 'Kim sees what the guest was told');
  seen('the guest is refused, and only the guest is told');

  // Canceled from the runtime's side.
  await to('Runtime');
  await waiting('publish_notes').first().getByRole('button', { name: /^Cancel task/ }).click();
  await task('publish_notes').filter({ hasText: 'canceled' }).first().waitFor();
  await to('Chat');
  const canceled = await pinned(cards('publish_notes').filter({ hasText: 'Canceled' }).first());
  assert.equal(await canceled.locator('button').count(), 0);
  await canceled.scrollIntoViewIfNeeded();
  await picture('canceled');
  seen('a task canceled by the runtime shows so on its card');

  // Two people for a deletion.
  await place('ops');
  const deletion = await wanted('delete_backups');
  await deletion.getByRole('button', { name: /^Approve/ }).click();
  await deletion.getByText('1 of 2').waitFor();
  await be('Sam Ortiz');
  await deletion.getByRole('button', { name: /^Approve/ }).click();
  await deletion.locator('button').first().waitFor({ state: 'detached' });
  await deletion.getByText(/Approved/).first().waitFor();
  await deletion.scrollIntoViewIfNeeded();
  await picture('two-people');
  seen('a deletion needs two people');

  // Answered in the product.
  await be('Dana Lee');
  await place('releases');
  await wanted('deploy_service');
  await to('Runtime');
  await waiting('deploy_service').first().getByRole('button', { name: /^Answer in the product/ }).click();
  await task('deploy_service').filter({ hasText: 'the product itself' }).first().waitFor();
  await to('Chat');
  const elsewhere = await pinned(cards('deploy_service').filter({ hasText: /elsewhere/i }).first());
  assert.equal(await elsewhere.locator('button').count(), 0);
  await elsewhere.scrollIntoViewIfNeeded();
  await picture('elsewhere');
  seen('an answer in the product shows on the card');

  assert.deepEqual(complaints, [], 'the console is quiet, and nothing outside was asked for');
  await page.context().close();
}

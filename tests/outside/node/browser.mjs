// Debian's Chromium, headless, driven by playwright-core; for tests that click through a page as a person does.
//
//   import { open } from './browser.mjs';
//   const browser = await open();
//   const page = await browser.page({ phone: true });   // 390 × 844; without: 1280 × 900
//   …
//   await browser.close();
//
// Run directly, it opens a page of its own, clicks and reads: `node browser.mjs` prints `chromium <version> works`.

import { chromium } from 'playwright-core';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const EXECUTABLE = process.env.CHROMIUM ?? '/usr/bin/chromium';

export async function open() {
  if (!existsSync(EXECUTABLE)) throw new Error(`${EXECUTABLE} is missing: run scripts/setup`);
  const browser = await chromium.launch({
    executablePath: EXECUTABLE,
    // No sandbox: tests may run as root, and they only load our own pages. The rest keeps it off the network.
    args: [
      '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-dev-shm-usage',
      '--disable-background-networking', '--disable-component-update', '--disable-sync',
    ],
  });
  return {
    version: browser.version(),
    async page({ phone = false } = {}) {
      const viewport = phone ? { width: 390, height: 844 } : { width: 1280, height: 900 };
      const context = await browser.newContext({
        viewport, isMobile: phone, hasTouch: phone, deviceScaleFactor: phone ? 2 : 1,
      });
      context.setDefaultTimeout(10_000);
      return context.newPage();
    },
    close: () => browser.close(),
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const browser = await open();
  try {
    const page = await browser.page({ phone: true });
    await page.setContent('<meta name=viewport content=width=device-width><button onclick="this.textContent=innerWidth">press</button>');
    await page.getByRole('button', { name: 'press' }).click();
    const width = await page.getByRole('button').textContent();
    if (width !== '390') throw new Error(`the page is ${width} wide`);
    console.log(`chromium ${browser.version} works`);
  } finally {
    await browser.close();
  }
}

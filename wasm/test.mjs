// The browser test: drives the page in headless Chromium on a software WebGPU adapter.
// `node test.mjs NATIVE.json PROMPT`: the file holds what the native binary printed with --json for the same prompt.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { chromium } from 'playwright-core';
import { serve } from './serve.mjs';

const [nativePath, prompt] = process.argv.slice(2);
const native = JSON.parse(readFileSync(nativePath, 'utf8'));
const patience = { timeout: 300_000 };
const flags = [
  '--no-sandbox', '--enable-unsafe-webgpu', '--use-webgpu-adapter=swiftshader', '--enable-features=Vulkan', '--disable-quic',
  '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync',
];

// `world`, where a case has one, runs in the page before anything else and changes what the browser offers.
const cases = [
  {
    name: 'the page writes the tokens that the native binary writes',
    async check(page, log) {
      await expectState(page, 'ready');
      assert.match(await words(page), /WebGPU/i);
      await page.fill('input', prompt);
      await page.click('button');
      await page.waitForFunction(() => document.querySelector('output').dataset.ids || document.body.dataset.state === 'failed', null, patience);
      await expectState(page, 'ready');
      const ids = (await page.getAttribute('output', 'data-ids')).split(',').map(Number);
      console.log(`  ids  ${ids}\n  text ${JSON.stringify(await page.textContent('output'))}\n  ${await words(page)}`);
      assert.deepEqual(ids, native.ids);
      assert.equal(await page.textContent('output'), prompt + native.text);
      assert.deepEqual(log.filter((line) => line.startsWith('error')), []);
    },
  },
  {
    name: 'a browser without WebGPU says so',
    world: () => Object.defineProperty(Navigator.prototype, 'gpu', { get: () => undefined }),
    async check(page) {
      await expectState(page, 'failed');
      assert.match(await words(page), /no WebGPU/);
    },
  },
  {
    name: 'an adapter without timestamps is refused in words',
    world: () => {
      const { get } = Object.getOwnPropertyDescriptor(GPUAdapter.prototype, 'features');
      const withoutTimestamps = (adapter) => new Set([...get.call(adapter)].filter((name) => name !== 'timestamp-query'));
      Object.defineProperty(GPUAdapter.prototype, 'features', { get() { return withoutTimestamps(this); } });
    },
    async check(page, log) {
      await expectState(page, 'failed');
      assert.match(await words(page), /timestamp-query/);
      assert.deepEqual(log.filter((line) => line.startsWith('error')), []);
    },
  },
];

const words = (page) => page.textContent('#status');

/** Waits until the page is ready or has failed, and expects one of the two. */
async function expectState(page, expected) {
  await page.waitForFunction(() => ['ready', 'failed'].includes(document.body.dataset.state), null, patience);
  assert.equal(await page.getAttribute('body', 'data-state'), expected, `the page says: ${await words(page)}`);
}

/** Runs one case in a page of its own; a failure is printed with the browser's console. Gives whether it passed. */
async function passes({ name, world = () => {}, check }, browser, url) {
  const page = await browser.newPage();
  const log = [];
  page.on('console', (message) => log.push(`${message.type()}: ${message.text()}`));
  page.on('pageerror', (error) => log.push(`error: ${error.stack ?? error}`));
  page.on('crash', () => log.push('error: the page crashed'));
  try {
    await page.addInitScript(world);
    await page.goto(`${url}?tokens=${native.ids.length}`);
    await check(page, log);
    console.log(`ok      ${name}`);
    return true;
  } catch (error) {
    console.log(`FAILED  ${name}\n${error.message}\nthe browser's console:\n${log.join('\n') || '(empty)'}`);
    return false;
  } finally {
    await page.close();
  }
}

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: flags });
const { server, url } = await serve(0);
let failed = 0;
for (const one of cases) failed += (await passes(one, browser, url)) ? 0 : 1;
await browser.close();
server.close();
console.log(`${cases.length - failed} passed, ${failed} failed`);
process.exitCode = failed ? 1 : 0;

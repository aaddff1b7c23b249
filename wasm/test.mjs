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
      assert.match(await words(page), /WebGPU/);
      await ask(page, prompt);
      await expectState(page, 'ready');
      console.log(`        ${await written(page)}\n        ${await page.getAttribute('output', 'data-ids')}`);
      assert.deepEqual((await page.getAttribute('output', 'data-ids')).split(',').map(Number), native.ids);
      assert.equal(await written(page), prompt + native.text);
      assert.deepEqual(errors(log), []);
    },
  },
  {
    name: 'a prompt that is too long is refused in words, and the next one is answered',
    async check(page, log) {
      await expectState(page, 'ready');
      await ask(page, prompt.repeat(1000));
      await expectState(page, 'failed');
      assert.match(await words(page), /context/);
      await ask(page, prompt);
      await expectState(page, 'ready');
      assert.equal(await written(page), prompt + native.text);
      assert.deepEqual(errors(log), []);
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
      assert.deepEqual(errors(log), []);
    },
  },
];

const words = (page) => page.textContent('#status');
const written = (page) => page.textContent('output');
const errors = (log) => log.filter((line) => line.startsWith('error'));

/** Types a prompt and has it continued; the page is busy before this returns. */
async function ask(page, text) {
  await page.fill('input', text);
  await page.click('button');
}

/** Waits until the page is ready or has failed, and expects one of the two. */
async function expectState(page, expected) {
  await page.waitForFunction(() => ['ready', 'failed'].includes(document.body.dataset.state), null, patience);
  assert.equal(await page.getAttribute('body', 'data-state'), expected, `the page says: ${await words(page)}`);
}

/** Runs one case in a page of its own; a failure is printed with the browser's console. Gives whether it passed. */
async function passes({ name, world = () => {}, check }, browser, url) {
  const page = await browser.newPage();
  page.setDefaultTimeout(patience.timeout);
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

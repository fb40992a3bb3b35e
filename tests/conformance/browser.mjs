// Pages in Chromium as clients of `kitbag serve --http`: a page of an allowed origin can use the
// server, and a page of another origin cannot read any response.
//
//     node browser.mjs KITBAG

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createServer } from 'node:http';
import { createInterface } from 'node:readline';
import { chromium } from 'playwright-core';

const [kitbag] = process.argv.slice(2);

// A web server with an empty page, and its origin.
async function site() {
  const server = createServer((_, response) => response.setHeader('Content-Type', 'text/html').end('<p>page'));
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { server, origin: `http://127.0.0.1:${server.address().port}` };
}

// Starts the server, and returns its address and its token.
async function start(origin) {
  const child = spawn(kitbag, ['serve', '--http', '127.0.0.1:0', '--allow-origin', origin], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let token;
  for await (const line of createInterface({ input: child.stderr })) {
    token ??= line.match(/^token: (.*)/)?.[1];
    const url = line.match(/^listening at (.*)/)?.[1];
    if (url) return { child, url, token };
  }
  throw new Error('the server did not start');
}

// Runs in the page: a session from its first message to its end.
async function session({ url, token }) {
  const headers = {
    Authorization: `Bearer ${token}`,
    'Content-Type': 'application/json',
    Accept: 'application/json, text/event-stream',
  };
  const send = (method, body) => fetch(url, { method, headers, body: body && JSON.stringify(body) });
  const message = async (response) => JSON.parse((await response.text()).match(/\{.*\}/)[0]);
  const params = {
    protocolVersion: '2025-11-25',
    capabilities: {},
    clientInfo: { name: 'page', version: '1' },
  };
  const begun = await send('POST', { jsonrpc: '2.0', id: 1, method: 'initialize', params });
  headers['Mcp-Session-Id'] = begun.headers.get('Mcp-Session-Id');
  headers['MCP-Protocol-Version'] = (await message(begun)).result.protocolVersion;
  await send('POST', { jsonrpc: '2.0', method: 'notifications/initialized' });
  const listed = await message(await send('POST', { jsonrpc: '2.0', id: 2, method: 'tools/list' }));
  const ended = await send('DELETE');
  const refused = await fetch(url, { method: 'POST', headers: { ...headers, Authorization: 'Bearer other' } });
  return {
    session: headers['Mcp-Session-Id'],
    tools: listed.result.tools.map(({ name }) => name),
    ended: ended.status,
    refused: (await refused.json()).error.message,
  };
}

const [own, other] = await Promise.all([site(), site()]);
const { child, url, token } = await start(own.origin);
const browser = await chromium.launch({
  executablePath: '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-component-update'],
});
try {
  const page = await browser.newPage();
  await page.goto(own.origin);
  const got = await page.evaluate(session, { url, token });
  assert.match(got.session, /./);
  assert(got.tools.includes('now'), got.tools.join());
  assert.equal(got.ended, 204);
  assert.match(got.refused, /^the token is wrong; /);
  await page.goto(other.origin);
  await assert.rejects(page.evaluate(session, { url, token }), /Failed to fetch/);
  console.log('a page of an allowed origin: all as expected; of another origin: refused');
} finally {
  await browser.close();
  child.kill();
  own.server.close();
  other.server.close();
}

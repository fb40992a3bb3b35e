// The TypeScript SDK's package `client` as a client of `kitbag serve`, in both eras.
//
//     node typescript-client.mjs KITBAG URL

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { use } from './typescript.mjs';

const [kitbag, url] = process.argv.slice(2);
const transports = {
  stdio: () => new StdioClientTransport({ command: kitbag, args: ['serve', '--log', 'warn'], env: process.env }),
  http: () => new StreamableHTTPClientTransport(new URL(url)),
};
for (const [era, mode] of [['2026', { pin: '2026-07-28' }], ['2025', 'legacy']]) {
  for (const [name, transport] of Object.entries(transports)) {
    const client = new Client(
      { name: 'typescript-client', version: '1' },
      { capabilities: { elicitation: {} }, versionNegotiation: { mode } },
    );
    const used = transport();
    await use(client, used, 'elicitation/create');
    if (name === 'http' && era === '2025') await used.terminateSession();
    await client.close();
    console.log(`${name}-${era}: all as expected`);
  }
}

// The TypeScript SDK as a client of `kitbag serve`: the revisions with a handshake.
//
//     node typescript-sdk.mjs KITBAG URL

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { use } from './typescript.mjs';

const [kitbag, url] = process.argv.slice(2);
const transports = {
  stdio: new StdioClientTransport({ command: kitbag, args: ['serve', '--log', 'warn'], env: process.env }),
  http: new StreamableHTTPClientTransport(new URL(url)),
};
for (const [name, transport] of Object.entries(transports)) {
  const client = new Client({ name: 'typescript-sdk', version: '1' }, { capabilities: { elicitation: {} } });
  await use(client, transport, ElicitRequestSchema);
  // The client also reports the end of the stream that it closes.
  client.onerror = undefined;
  if (name === 'http') await transport.terminateSession();
  await client.close();
  console.log(`${name}: all as expected`);
}

// The TypeScript SDK as a client of five servers at once behind one `kitbag serve`.
//
//     node typescript_client.mjs KITBAG ROOT

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';

const [kitbag, root] = process.argv.slice(2);
const calls = {
  everything_echo: [{ message: 'hello' }, 'hello'],
  files_read_text_file: [{ path: `${root}/data/known.txt` }, 'Everybody knows this.'],
  git_git_log: [{ repo_path: root, max_count: 1 }, 'The first commit'],
  db_read_query: [{ query: 'SELECT text FROM notes' }, 'kept'],
  memory_read_graph: [{}, 'writes programs'],
};
const transport = new StdioClientTransport({
  command: kitbag,
  args: ['serve', '--log', 'warn'],
  cwd: root,
  env: process.env,
});
const client = new Client({ name: 'typescript', version: '1' });
await client.connect(transport);
const names = new Set((await client.listTools()).tools.map((tool) => tool.name));
await Promise.all(
  Object.entries(calls).map(async ([name, [arguments_, expected]]) => {
    if (!names.has(name)) throw new Error(`not listed: ${name}`);
    const result = await client.callTool({ name, arguments: arguments_ });
    const text = result.content.map((block) => block.text ?? '').join('');
    if (result.isError || !text.includes(expected)) throw new Error(`${name}: ${text}`);
  }),
);
await client.close();
console.log(`TypeScript SDK: ${Object.keys(calls).length} servers, all as expected`);

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { prompt, resource } from '../src/items.js';
import { state } from '../src/state.js';
import { describe, run, tool } from '../src/tool.js';

const call = (name, args) => run({ root: '/', action: 'run' }, name, JSON.stringify(args), '{}');

tool({ name: 'own', run: () => '' });
prompt({
  name: 'shorten',
  arguments: { words: { description: 'The number of words' }, style: { optional: true } },
  run: ({ words, style = '' }) => `Use ${words} words. ${style}`.trimEnd(),
});
resource({ uri: 'notes://all', name: 'all', mimeType: 'text/plain', read: () => 'all' });
resource({
  uri: 'notes://one/{name}.txt',
  name: 'one',
  read: ({ name }) => (name === 'none' ? undefined : name),
});
resource({ uri: 'notes://below/{+path}', name: 'below', read: async ({ path }) => path });
resource({ uri: 'notes://bytes', name: 'bytes', mimeType: 'a/b', read: () => new Uint8Array([0, 1]) });

test('prompts and resources are described beside the tools', () => {
  const described = JSON.parse(describe());
  assert.equal(described.name, 'own');
  assert.deepEqual(described.prompts, [
    {
      name: 'shorten',
      arguments: [
        { name: 'words', required: true, description: 'The number of words' },
        { name: 'style', required: false },
      ],
    },
  ]);
  assert.deepEqual(described.resources.map(({ uri }) => uri), ['notes://all', 'notes://bytes']);
  const templates = described.resourceTemplates.map(({ uriTemplate }) => uriTemplate);
  assert.deepEqual(templates, ['notes://one/{name}.txt', 'notes://below/{+path}']);
});

test('a prompt is a text', async () => {
  assert.deepEqual(await call('prompt/shorten', { words: '9' }), { tag: 'success', val: 'Use 9 words.' });
  assert.equal((await call('prompt/none', {})).val.message, 'the component has no prompt `none`');
});

test('a resource is found by its URI', async () => {
  const read = async (uri) => (await call('resource/read', { uri })).val;
  assert.equal(await read('notes://all'), 'all');
  assert.equal(await read('notes://one/a%20b.txt'), 'a b');
  assert.equal(await read('notes://below/a/b'), 'a/b');
  for (const uri of ['notes://one/none.txt', 'notes://one/a/b.txt', 'notes://one/atxt', 'x:notes://all']) {
    assert.equal((await read(uri)).message, `the component has no resource \`${uri}\``);
  }
});

test('bytes are emitted', async () => {
  const emitted = [];
  state.emit = (content) => emitted.push(content);
  assert.deepEqual(await call('resource/read', { uri: 'notes://bytes' }), { tag: 'success', val: '' });
  assert.deepEqual(emitted.map(({ val }) => [val.uri, val.mimeType]), [['notes://bytes', 'a/b']]);
});

test('definitions that cannot work are refused', () => {
  assert.throws(() => prompt({ name: 'x' }), /a function `run`/);
  assert.throws(() => prompt({ name: 'shorten', run() {} }), /two prompts/);
  assert.throws(() => resource({ uri: 'a:b', read() {} }), /a `name`/);
  assert.throws(() => resource({ uri: 'notes://all', name: 'a', read() {} }), /two resources/);
});

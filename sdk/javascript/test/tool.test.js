import assert from 'node:assert/strict';
import { test } from 'node:test';

import * as ask from '../src/ask.js';
import { ToolError } from '../src/errors.js';
import { describe, object, run, tool } from '../src/tool.js';

const context = { root: '/', action: 'run' };
const call = (name, args = {}, answers = {}) =>
  run(context, name, JSON.stringify(args), JSON.stringify(answers));

tool({ name: 'echo', input: { text: { type: 'string' } }, run: ({ text }) => text });
tool({ name: 'ask', run: () => ask.text('name', 'Who?', { suggest: 'Ada' }) });
tool({ name: 'sum', outputSchema: { type: 'object' }, run: async () => ({ sum: 3 }) });
tool({
  name: 'busy',
  format: () => 'wait',
  run() {
    throw new ToolError('the server is busy', { transient: true });
  },
});
tool({ name: 'broken', run: () => undefined.length });

test('an argument is required without optional and default', () => {
  const schema = object({
    a: { type: 'string' },
    b: { type: 'string', optional: true },
    c: { type: 'integer', default: 3 },
  });
  assert.deepEqual(schema, {
    type: 'object',
    properties: { a: { type: 'string' }, b: { type: 'string' }, c: { type: 'integer', default: 3 } },
    additionalProperties: false,
    required: ['a'],
  });
});

test('several tools are a list', () => {
  const { tools } = JSON.parse(describe());
  assert.deepEqual(tools.map(({ name }) => name), ['echo', 'ask', 'sum', 'busy', 'broken']);
  assert.deepEqual(tools[0].inputSchema.required, ['text']);
});

test('a tool without a function or with an unknown key is refused', () => {
  assert.throws(() => tool({ name: 'x' }), /a function `run`/);
  assert.throws(() => tool({ name: 'x', run() {}, grant: {} }), /unknown key `grant`/);
  assert.throws(() => tool({ name: 'echo', run() {} }), /two tools with the name `echo`/);
});

test('a result is text, or JSON', async () => {
  assert.deepEqual(await call('echo', { text: 'a' }), { tag: 'success', val: 'a' });
  assert.deepEqual(await call('sum'), { tag: 'success', val: '{"sum":3}' });
});

test('a question ends the run until it has an answer', async () => {
  const question = { id: 'name', text: 'Who?', answerType: 'text', default: 'Ada' };
  assert.deepEqual(await call('ask'), { tag: 'needs-input', val: question });
  assert.deepEqual(await call('ask', {}, { name: 'Bo' }), { tag: 'success', val: 'Bo' });
  const { val } = await call('ask', {}, { name: 3 });
  assert.equal(val.message, 'the answer to `name` is 3, which is not a text');
});

test('answer types have options, consent and category', () => {
  const type = (action) => {
    try {
      action();
    } catch ({ question }) {
      return question.answerType;
    }
  };
  assert.equal(type(() => ask.boolean('q', '')), 'boolean');
  assert.equal(type(() => ask.consent('q', '')), '{"boolean":{},"consent":true}');
  assert.equal(type(() => ask.text('q', '', { category: 'a' })), '{"text":{},"class":"a"}');
  assert.equal(type(() => ask.select('q', '', ['a'])), '{"select":{"options":["a"]}}');
});

test('errors are failures, with a trace if they are unexpected', async () => {
  const busy = { message: 'the server is busy', trace: [], transient: true };
  assert.deepEqual(await call('busy'), { tag: 'error', val: busy });
  const { val } = await call('broken');
  assert.match(val.message, /^the tool failed: TypeError: /);
  assert.notEqual(val.trace.length, 0);
  assert.equal((await call('none')).val.message, 'the component has no tool `none`');
});

test('a call is rendered in one line', async () => {
  const render = (name, args) => run({ root: '/', action: 'format-arguments' }, name, JSON.stringify(args), '{}');
  assert.equal((await render('echo', { text: 'a' })).val, 'echo text=a');
  assert.equal((await render('busy', {})).val, 'wait');
});

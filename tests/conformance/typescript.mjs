// Shared by both TypeScript clients: list, call, answer a question and read.

import assert from 'node:assert/strict';

const known = { name: 'Ann', color: 'red' };

// `elicitation` is the client's name for the request for an answer.
export async function use(client, transport, elicitation) {
  client.onerror = (error) => console.error(error);
  client.setRequestHandler(elicitation, ({ params }) => {
    const fields = Object.keys(params.requestedSchema.properties);
    return { action: 'accept', content: Object.fromEntries(fields.map((field) => [field, known[field]])) };
  });
  await client.connect(transport);

  const { tools } = await client.listTools();
  assert.equal(tools.find(({ name }) => name === 'test_simple_text').description, 'A text.');
  const call = async (name) => (await client.callTool({ name, arguments: {} })).content;
  assert.equal((await call('test_simple_text'))[0].text, 'This is a simple text response for testing.');
  assert.equal((await call('test_input_required_result_multi_round'))[0].text, 'Ann likes red.');

  const { resources } = await client.listResources();
  assert(resources.some(({ uri }) => uri === 'kb://team/known'));
  const { contents } = await client.readResource({ uri: 'kb://team/known' });
  assert.match(contents[0].text, /Everybody knows this\./);
}

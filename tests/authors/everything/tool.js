// A tool that uses all functions of the package.
import {
  ask, config, prompt, readDirectory, readFile, report, resource, storage, tool, ToolError, tools, writeFile,
} from 'kitbag-tool';

const bytes = (...values) => new Uint8Array(values);

async function send(url, options) {
  const response = await fetch(url, options);
  return `${response.status} ${await response.text()}`;
}

const actions = {
  ask() {
    const colour = ask.select('colour', 'Which?', ['red', { value: 'blue', title: 'Blue' }], { category: 'a:b' });
    const more = ask.multiSelect('more', 'Which?', ['a', 'b']);
    const named = ask.form('name', 'Who?', [{ id: 'first', type: 'text' }]);
    const [count, ratio] = [ask.integer('count', 'How many?'), ask.number('ratio', 'How much?')];
    const sure = ask.boolean('sure', 'Sure?', { suggest: true });
    return `${colour} ${more} ${named.first} ${count} ${ratio} ${Number(sure)}`;
  },
  config: () => `[${Object.keys(config.all()).sort()}] ${config.get('none', 'absent')}`,
  content() {
    report.log('log', 'warning');
    report.progress(1, 2, 'half');
    report.image(bytes(0x89, 0x50, 0x4e, 0x47));
    report.audio(bytes(0x52, 0x49, 0x46, 0x46), 'audio/wav');
    report.document('file:///a.txt', 'text', 'text/plain');
    report.document('file:///a.bin', bytes(0, 1));
    report.link('https://example.com/', 'Example', { title: 'An example', size: 3 });
    try {
      report.image(bytes(), 'no type');
    } catch (error) {
      if (error instanceof ToolError) return 'refused';
    }
  },
  files() {
    writeFile('new.txt', 'ä');
    return `${readDirectory()} ${readFile('new.txt').length}`;
  },
  post: ({ url }) =>
    send(url, {
      method: 'POST',
      body: JSON.stringify({ a: 1 }),
      headers: { 'content-type': 'application/json', 'X-Own': 'own' },
    }),
  put: ({ url }) => send(url, { method: 'PUT', body: 'x'.repeat(10000) }),
  storage() {
    const store = storage.open();
    store.set('b', bytes(0));
    store.set('a', 'one');
    const had = store.has('a');
    store.delete('b');
    const name = (value) => (value ? 'True' : 'False');
    return `${store.getText('a')} ${name(had)} ${name(store.has('b'))} ${store.keys()}`;
  },
  tools() {
    const [listed] = tools.list();
    const found = tools.find('sum') !== undefined;
    const started = [1, 2].map((n) => tools.start('sum', { expression: `${n}+1` }));
    const answers = [tools.call('sum', { expression: '1+0' }), ...started.map((one) => one.finish())];
    const sums = answers.map(({ structured }) => structured.result).join(' ');
    try {
      tools.call('sum', { expression: '1+' });
    } catch (error) {
      if (!(error instanceof ToolError)) throw error;
    }
    return `${listed.alias} ${found ? 'True' : 'False'} ${tools.find('none') ?? 'None'} ${sums}`;
  },
};

tool({
  name: 'everything',
  description: 'Use the functions of the package.',
  input: { action: { enum: Object.keys(actions) }, url: { type: 'string', default: '' } },
  grants: { storage: true },
  run: (args) => actions[args.action](args),
});

prompt({
  name: 'shorten',
  title: 'Shorten a text',
  description: 'Shorten a text.',
  arguments: { words: { description: 'The number of words' }, style: { optional: true } },
  run: ({ words, style }) => `Shorten it to ${words} words. ${style ?? ''}`.trimEnd(),
});

resource({
  uri: 'everything://text/{name}',
  name: 'text',
  mimeType: 'text/plain',
  read: ({ name }) => (name === 'none' ? undefined : `text of ${name}`),
});

resource({
  uri: 'everything://bytes',
  name: 'data',
  mimeType: 'application/octet-stream',
  read: () => bytes(0, 1),
});

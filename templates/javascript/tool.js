import { ask, readFile, tool, ToolError } from 'kitbag-tool';

tool({
  name: 'my_tool',
  description: 'Count the words of a text file, with the title of a JSON document of the web.',
  input: {
    path: { type: 'string', description: 'File, relative to the workspace', optional: true },
    url: { type: 'string', description: 'JSON document that has a `title`', optional: true },
  },
  grants: { http: ['https://example.com/**'] },

  async run({ path, url }) {
    // Without an answer the run ends here. It starts again with the answer.
    path ??= ask.text('path', 'Which file?');
    const words = readFile(path, 'utf8').split(/\s+/).filter(Boolean);
    const count = `${path} has ${words.length} words`;
    if (url === undefined) return count;
    const response = await fetch(url);
    if (!response.ok) throw new ToolError(`\`${url}\` has status ${response.status}`);
    const { title } = await response.json();
    return `${title}: ${count}`;
  },
});

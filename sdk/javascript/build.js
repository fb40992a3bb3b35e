#!/usr/bin/env node
// Bundles a tool into one module, and makes it a component.
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

import { componentize } from '@bytecodealliance/componentize-js';
import { build } from 'esbuild';

const usage = 'usage: kitbag-tool SOURCE --out FILE.wasm';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { out: { type: 'string', short: 'o' }, help: { type: 'boolean', short: 'h' } },
});
if (values.help) {
  console.log(usage);
  process.exit();
}
if (positionals.length !== 1 || values.out === undefined) {
  console.error(usage);
  process.exit(2);
}

const source = resolve(positionals[0]);
const own = dirname(fileURLToPath(import.meta.url));
const bundle = await build({
  stdin: {
    contents: `import ${JSON.stringify(source)};\nexport { describe, run } from 'kitbag-tool/world';`,
    resolveDir: dirname(source),
    sourcefile: 'component.js',
  },
  // The project and this file must use the same copy, which holds the registered tools.
  alias: { 'kitbag-tool': resolve(own, 'src/index.js'), 'kitbag-tool/world': resolve(own, 'src/world.js') },
  bundle: true,
  external: ['kitbag:*', 'wasi:*'],
  format: 'esm',
  // The engine's stack traces name these lines.
  minify: false,
  platform: 'neutral',
  mainFields: ['module', 'main'],
  target: 'es2022',
  write: false,
}).catch(() => process.exit(1)); // esbuild has printed the errors.

const out = resolve(values.out);
await mkdir(dirname(out), { recursive: true });
const bundled = `${out.replace(/\.wasm$/, '')}.js`;
await writeFile(bundled, bundle.outputFiles[0].contents);
const { component } = await componentize({
  sourcePath: bundled,
  witPath: resolve(own, 'wit'),
  worldName: 'sdk-tool',
  // It would make the component a server.
  disableFeatures: ['fetch-event'],
});
await writeFile(out, component);

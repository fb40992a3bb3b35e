import { getDirectories } from 'wasi:filesystem/preopens@0.2.12';

import { checked, ToolError } from './errors.js';
import { state } from './state.js';

const PART = 65536;

const REASONS = {
  access: 'permission denied',
  exist: 'the file exists',
  'is-directory': 'it is a directory',
  'no-entry': 'no such file or directory',
  'not-directory': 'not a directory',
  'not-permitted': 'the tool has no grant for it',
  'read-only': 'it is read-only',
};

/** Reads a file: bytes, or text with the encoding `utf8`. */
export function readFile(path, encoding) {
  const bytes = withErrors(path, 'read', () => {
    const [directory, name] = locate(path);
    const file = directory.openAt({ symlinkFollow: true }, name, {}, { read: true });
    const parts = [];
    for (let at = 0n, end = false; !end; ) {
      let part;
      [part, end] = file.read(BigInt(PART), at);
      at += BigInt(part.length);
      parts.push(part);
    }
    return joined(parts);
  });
  if (encoding === undefined) return bytes;
  try {
    return new TextDecoder(encoding, { fatal: true }).decode(bytes);
  } catch (cause) {
    throw new ToolError(`\`${path}\` is not text in ${encoding}`, { cause });
  }
}

/** Writes a file, and replaces what was in it. */
export function writeFile(path, data) {
  const bytes = typeof data === 'string' ? new TextEncoder().encode(data) : data;
  withErrors(path, 'written', () => {
    const [directory, name] = locate(path);
    const file = directory.openAt({ symlinkFollow: true }, name, { create: true, truncate: true }, { write: true });
    for (let at = 0; at < bytes.length; ) {
      at += Number(file.write(bytes.subarray(at, at + PART), BigInt(at)));
    }
  });
}

/** Lists a directory: the names of its entries, sorted, with `/` after those of directories. */
export function readDirectory(path = '.') {
  return withErrors(path, 'listed', () => {
    const [directory, name] = locate(path);
    const listed = directory.openAt({ symlinkFollow: true }, name, { directory: true }, { read: true });
    const entries = listed.readDirectory();
    const names = [];
    for (let entry; (entry = entries.readDirectoryEntry()) !== undefined; ) {
      names.push(entry.type === 'directory' ? `${entry.name}/` : entry.name);
    }
    return names.sort();
  });
}

/** Finds the granted directory that has a path, and the path in it. */
function locate(path) {
  const parts = [];
  for (const part of (path.startsWith('/') ? path : `${state.root}/${path}`).split('/')) {
    if (part === '..') parts.pop();
    else if (part !== '' && part !== '.') parts.push(part);
  }
  const absolute = `/${parts.join('/')}`;
  let best;
  for (const [directory, name] of getDirectories()) {
    const prefix = name.endsWith('/') ? name : `${name}/`;
    if ((absolute === name || absolute.startsWith(prefix)) && !(best?.[1].length > prefix.length)) {
      best = [directory, prefix];
    }
  }
  if (best === undefined) throw new ToolError(`\`${path}\` is not in a directory that the tool may use`);
  return [best[0], absolute.slice(best[1].length) || '.'];
}

function withErrors(path, verb, action) {
  return checked(action, (code) => new ToolError(`\`${path}\` cannot be ${verb}: ${REASONS[code] ?? code}`));
}

function joined(parts) {
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

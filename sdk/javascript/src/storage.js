import * as keyvalue from 'wasi:keyvalue/store@0.2.0-draft';

import { checked, ToolError } from './errors.js';

const encode = (value) => (typeof value === 'string' ? new TextEncoder().encode(value) : value);
const with_ = (name, action) =>
  checked(action, ({ tag, val }) => new ToolError(`the store \`${name}\` failed: ${val ?? tag.replaceAll('-', ' ')}`));

/** Opens a store. */
export function open(name = 'default') {
  const bucket = with_(name, () => keyvalue.open(name));
  return {
    get: (key) => with_(name, () => bucket.get(key)),
    getText(key) {
      const value = this.get(key);
      return value === undefined ? undefined : new TextDecoder().decode(value);
    },
    set: (key, value) => with_(name, () => bucket.set(key, encode(value))),
    delete: (key) => with_(name, () => bucket.delete(key)),
    has: (key) => with_(name, () => bucket.exists(key)),
    keys() {
      const keys = [];
      let cursor;
      do {
        const page = with_(name, () => bucket.listKeys(cursor));
        keys.push(...page.keys);
        cursor = page.cursor;
      } while (cursor !== undefined);
      return keys;
    },
  };
}

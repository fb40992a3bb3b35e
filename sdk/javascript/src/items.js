import { ToolError } from './errors.js';
import { state } from './state.js';

const prompts = new Map();
const resources = new Map();

/** A variable in the URI of a template. */
const VARIABLE = /\{(\+?)(\w+)\}/g;

/** Registers a prompt, which a person chooses. */
export function prompt({ name, arguments: args = {}, run, ...description }) {
  if (typeof name !== 'string' || typeof run !== 'function') {
    throw new TypeError('a prompt has a `name` and a function `run`');
  }
  if (prompts.has(name)) throw new TypeError(`there are two prompts with the name \`${name}\``);
  const described = Object.entries(args).map(([name, { optional = false, ...about }]) => ({
    name,
    required: !optional,
    ...about,
  }));
  prompts.set(name, { description: { name, ...description, arguments: described }, run });
}

/** Registers a resource, or with variables in its URI all resources of a template. */
export function resource({ uri, name, read, ...description }) {
  if (typeof uri !== 'string' || typeof name !== 'string' || typeof read !== 'function') {
    throw new TypeError('a resource has a `uri`, a `name` and a function `read`');
  }
  if (resources.has(uri)) throw new TypeError(`there are two resources with the URI \`${uri}\``);
  const names = [...uri.matchAll(VARIABLE)].map(([, , name]) => name);
  const key = names.length > 0 ? 'uriTemplate' : 'uri';
  resources.set(uri, { description: { [key]: uri, name, ...description }, names, pattern: pattern(uri), read });
}

/** Returns the prompts and resources in the form of the contract, without empty lists. */
export function describedItems() {
  const found = [...resources.values()].map(({ description }) => description);
  const lists = {
    prompts: [...prompts.values()].map(({ description }) => description),
    resources: found.filter(({ uri }) => uri !== undefined),
    resourceTemplates: found.filter(({ uriTemplate }) => uriTemplate !== undefined),
  };
  return Object.fromEntries(Object.entries(lists).filter(([, items]) => items.length > 0));
}

export async function runPrompt(name, values) {
  const called = prompts.get(name);
  if (called === undefined) throw new ToolError(`the component has no prompt \`${name}\``);
  return text(await called.run(values));
}

export async function readResource(uri) {
  for (const { description, names, pattern, read } of resources.values()) {
    const match = pattern.exec(uri);
    if (match === null) continue;
    const variables = names.map((name, at) => [name, decodeURIComponent(match[at + 1])]);
    const content = await read(Object.fromEntries(variables));
    if (content === undefined) continue;
    if (!(content instanceof Uint8Array)) return text(content);
    state.emit({ tag: 'resource', val: { uri, mimeType: description.mimeType, body: { tag: 'blob', val: content } } });
    return '';
  }
  throw new ToolError(`the component has no resource \`${uri}\``);
}

const text = (content) => (typeof content === 'string' ? content : JSON.stringify(content ?? null));

function pattern(uri) {
  const escaped = (part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  let source = '';
  let end = 0;
  for (const match of uri.matchAll(VARIABLE)) {
    source += escaped(uri.slice(end, match.index)) + (match[1] === '+' ? '(.+)' : '([^/?#]+)');
    end = match.index + match[0].length;
  }
  return new RegExp(`^${source}${escaped(uri.slice(end))}$`, 's');
}

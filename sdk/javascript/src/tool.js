import { NeedsAnswer, ToolError } from './errors.js';
import { describedItems, readResource, runPrompt } from './items.js';
import { state } from './state.js';

const KEYS = new Set([
  'name', 'title', 'description', 'input', 'inputSchema', 'outputSchema', 'annotations', 'grants',
  'approve', 'format', 'run',
]);

const tools = new Map();

/** Registers a tool of the component. */
export function tool(definition) {
  const { name, input, inputSchema, format, run, ...description } = definition;
  if (typeof name !== 'string' || typeof run !== 'function') {
    throw new TypeError('a tool has a `name` and a function `run`');
  }
  const unknown = Object.keys(definition).find((key) => !KEYS.has(key));
  if (unknown !== undefined) throw new TypeError(`the tool \`${name}\` has an unknown key \`${unknown}\``);
  if (tools.has(name)) throw new TypeError(`there are two tools with the name \`${name}\``);
  const schema = inputSchema ?? object(input ?? {});
  tools.set(name, { description: { name, ...description, inputSchema: schema }, format, run });
}

/** Returns the schema of an object. A property is required unless it is `optional` or has a default. */
export function object(properties) {
  const schema = { type: 'object', properties: {}, additionalProperties: false };
  const required = [];
  for (const [name, { optional = false, ...property }] of Object.entries(properties)) {
    schema.properties[name] = property;
    if (!optional && property.default === undefined) required.push(name);
  }
  if (required.length > 0) schema.required = required;
  return schema;
}

export function describe() {
  const descriptions = [...tools.values()].map(({ description }) => description);
  const described = descriptions.length === 1 ? descriptions[0] : { tools: descriptions };
  return JSON.stringify({ ...described, ...describedItems() });
}

export async function run(context, name, args, answers) {
  const values = JSON.parse(args);
  if (context.action === 'format-arguments') {
    return { tag: 'success', val: find(name)?.format?.(values) ?? line(name, values) };
  }
  state.root = context.root;
  state.answers = JSON.parse(answers);
  try {
    return { tag: 'success', val: await result(name, values) };
  } catch (error) {
    if (error instanceof NeedsAnswer) return { tag: 'needs-input', val: error.question };
    if (error instanceof ToolError) return failure(error.message, error.trace, error.transient);
    // The message of the engine's `fetch`, which names no reason.
    if (error instanceof TypeError && error.message.startsWith('NetworkError')) {
      return failure('a request failed: it has no grant of `http`, or the server cannot be reached');
    }
    const trace = String(error?.stack ?? '').split('\n').filter(Boolean).slice(0, 20);
    return failure(`the tool failed: ${error}`, trace);
  }
}

/** Calls a tool or a prompt, or reads a resource. */
async function result(name, values) {
  if (name === 'resource/read') return readResource(values.uri);
  if (name.startsWith('prompt/')) return runPrompt(name.slice('prompt/'.length), values);
  const called = find(name);
  if (called === undefined) throw new ToolError(`the component has no tool \`${name}\``);
  const returned = await called.run(values);
  const isText = typeof returned === 'string' && called.description.outputSchema === undefined;
  return isText ? returned : JSON.stringify(returned ?? null);
}

// A configuration may give the only tool another name.
const find = (name) => (tools.size === 1 ? [...tools.values()][0] : tools.get(name));

function failure(message, trace = [], transient = false) {
  return { tag: 'error', val: { message, trace, transient } };
}

function line(name, values) {
  const short = (value) => {
    const shown = typeof value === 'string' && value !== '' ? value : JSON.stringify(value);
    return shown.length <= 60 ? shown : `${shown.slice(0, 59)}…`;
  };
  return [name, ...Object.entries(values).map(([key, value]) => `${key}=${short(value)}`)].join(' ');
}

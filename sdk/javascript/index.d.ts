/** A property of the arguments: JSON Schema, and whether it may be absent. */
export type Property = {
  readonly type?: 'string' | 'number' | 'integer' | 'boolean' | 'array' | 'object';
  readonly description?: string;
  readonly enum?: readonly unknown[];
  readonly items?: Property;
  readonly default?: unknown;
  /** The argument may be absent. An argument with a default may always be. */
  readonly optional?: boolean;
  readonly [keyword: string]: unknown;
};

/** The type of values of a property. */
export type Value<P> = P extends { readonly enum: readonly (infer E)[] } ? E
  : P extends { readonly type: 'string' } ? string
  : P extends { readonly type: 'number' | 'integer' } ? number
  : P extends { readonly type: 'boolean' } ? boolean
  : P extends { readonly type: 'array'; readonly items: infer Item } ? Value<Item>[]
  : P extends { readonly type: 'array' } ? unknown[]
  : P extends { readonly type: 'object' } ? Record<string, unknown>
  : unknown;

/** The arguments of a tool. */
export type Arguments<Input> = {
  [Name in keyof Input]: Input[Name] extends { readonly optional: true } ? Value<Input[Name]> | undefined
    : Value<Input[Name]>;
};

export interface Definition<Input> {
  /** The name: letters, digits, `_` and `-`. */
  name: string;
  title?: string;
  /** The purpose, for models and people. */
  description?: string;
  /** The arguments by name, each with its JSON Schema. */
  input?: Input;
  /** The whole JSON Schema of the arguments, instead of `input`. */
  inputSchema?: object;
  /** The JSON Schema of the result; a result that is not a string is sent as JSON. */
  outputSchema?: object;
  /** MCP's hints, such as `readOnlyHint`. */
  annotations?: object;
  /** The requested grants. */
  grants?: object;
  /** The calls that should need approval. */
  approve?: 'on-write' | 'always' | { when: Record<string, string> };
  /** Returns one line for the person who approves a call. */
  format?(args: Arguments<Input>): string;
  /** Runs a call. A string is the text of the answer. */
  run(args: Arguments<Input>): unknown;
}

/** Adds a tool to the component. */
export function tool<const Input extends Record<string, Property> = {}>(definition: Definition<Input>): void;

/**
 * Adds a prompt to the component, which a person chooses. `run` returns the text of a message of the
 * user. Arguments are strings.
 */
export function prompt(definition: {
  name: string;
  title?: string;
  description?: string;
  arguments?: Record<string, { title?: string; description?: string; optional?: boolean }>;
  run(args: Record<string, string | undefined>): string | Promise<string>;
}): void;

/**
 * Adds a resource to the component. A URI with variables, such as `notes://{name}`, is a template:
 * `{name}` is text without `/`, `?` and `#`, `{+path}` is any text. `read` returns the content, or
 * `undefined` if the resource does not exist.
 */
export function resource(definition: {
  uri: string;
  name: string;
  title?: string;
  description?: string;
  mimeType?: string;
  read(variables: Record<string, string>): string | Uint8Array | undefined | Promise<string | Uint8Array | undefined>;
}): void;

/** The failure of a tool: one sentence that the model can act on. */
export class ToolError extends Error {
  constructor(message: string, options?: {
    /** The same call may succeed later. */
    transient?: boolean;
    /** Further lines for the maintainer; the model does not see them. */
    trace?: string[];
    cause?: unknown;
  });
  transient: boolean;
  trace: string[];
}

/** Reads a file: bytes, or text with an encoding. */
export function readFile(path: string): Uint8Array;
export function readFile(path: string, encoding: string): string;
/** Writes a file, and replaces what was in it. */
export function writeFile(path: string, data: string | Uint8Array): void;
/** Lists a directory: the names of its entries, sorted, with `/` after those of directories. */
export function readDirectory(path?: string): string[];

/**
 * Questions for a person. Without an answer the run ends, and the tool runs again from the start with
 * the answer. So ask before you change something, and do not catch what these functions throw.
 */
export namespace ask {
  interface Options<T> {
    /** A suggestion, which is never used as an answer. */
    suggest?: T;
    /** The subject of the question for a person's rules: `db:drop`. */
    category?: string;
  }
  type Choice = string | { value: string; title: string };
  function text(id: string, question: string, options?: Options<string>): string;
  function boolean(id: string, question: string, options?: Options<boolean>): boolean;
  /** Asks for consent to a step that is hard to undo. A model can never answer. */
  function consent(id: string, question: string, options?: { category?: string }): boolean;
  function integer(id: string, question: string, options?: Options<number>): number;
  function number(id: string, question: string, options?: Options<number>): number;
  function select(id: string, question: string, choices: Choice[], options?: Options<string>): string;
  function multiSelect(id: string, question: string, choices: Choice[], options?: Options<string[]>): string[];
  /** Asks for several answers. A field is an object as in the contract: `id`, `type`, … */
  function form(id: string, question: string, fields: object[]): Record<string, unknown>;
}

/** Values that the configuration grants to the tool. */
export namespace config {
  function get(key: string): string | undefined;
  function get(key: string, otherwise: string): string;
  function all(): Record<string, string>;
}

/** Values that outlive a call, with the grant `storage`. */
export namespace storage {
  interface Store {
    get(key: string): Uint8Array | undefined;
    getText(key: string): string | undefined;
    set(key: string, value: string | Uint8Array): void;
    delete(key: string): void;
    has(key: string): boolean;
    keys(): string[];
  }
  function open(name?: string): Store;
}

/** Reports of a running tool, and content in addition to its text. */
export namespace report {
  type Level = 'debug' | 'info' | 'notice' | 'warning' | 'error' | 'critical' | 'alert' | 'emergency';
  function log(message: string, level?: Level): void;
  /** Reports the amount done and, if known, the total. The amount must rise. */
  function progress(done: number, total?: number, message?: string): void;
  function image(data: Uint8Array, mimeType?: string): void;
  function audio(data: Uint8Array, mimeType: string): void;
  function document(uri: string, content: string | Uint8Array, mimeType?: string): void;
  function link(uri: string, name: string, options?: {
    title?: string; description?: string; mimeType?: string; size?: number;
  }): void;
}

/**
 * Calls of other tools, by the aliases of the grant `tools`. A run may be repeated, so make the same
 * calls in the same order in each run.
 */
export namespace tools {
  interface Answer {
    text: string;
    /** The parsed result, if the tool has an output schema. */
    structured: unknown;
    content: unknown[];
  }
  interface Info {
    alias: string;
    description: string;
    inputSchema: object;
    outputSchema?: object;
  }
  function call(alias: string, args?: object): Answer;
  /** Starts a call. Several calls run at once. */
  function start(alias: string, args?: object): { finish(): Answer };
  function list(): Info[];
  function find(alias: string): Info | undefined;
}

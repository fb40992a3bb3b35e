import * as bindings from 'kitbag:tool/tools@0.1.0';

import { checked, ToolError } from './errors.js';

const parsed = (text) => (text === undefined ? undefined : JSON.parse(text));
const of = (action) =>
  checked(action, ({ message, trace, transient }) => new ToolError(message, { trace, transient }));
const answer = ({ text, structured, content }) => ({ text, structured: parsed(structured), content });
const info = ({ alias, description, inputSchema, outputSchema }) =>
  ({ alias, description, inputSchema: parsed(inputSchema), outputSchema: parsed(outputSchema) });

export const call = (alias, args = {}) => answer(of(() => bindings.call(alias, JSON.stringify(args))));
export const start = (alias, args = {}) => {
  const pending = of(() => bindings.start(alias, JSON.stringify(args)));
  return { finish: () => answer(of(() => pending.finish())) };
};
export const list = () => bindings.list().map(info);
export const find = (alias) => {
  const found = bindings.find(alias);
  return found === undefined ? undefined : info(found);
};

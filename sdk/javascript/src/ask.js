import { NeedsAnswer, ToolError } from './errors.js';
import { state } from './state.js';

const isOf = {
  boolean: (answer) => typeof answer === 'boolean',
  text: (answer) => typeof answer === 'string',
  integer: Number.isInteger,
  number: (answer) => typeof answer === 'number',
  select: (answer) => typeof answer === 'string',
  'multi-select': Array.isArray,
  form: (answer) => typeof answer === 'object' && answer !== null,
};

function question(id, text, kind, details, { suggest, category } = {}, consent = false) {
  const declared = { [kind]: details ?? {} };
  if (consent) declared.consent = true;
  if (category !== undefined) declared.class = category;
  const plain = details === undefined && !consent && category === undefined;
  if (!Object.hasOwn(state.answers, id)) {
    throw new NeedsAnswer({
      id,
      text,
      answerType: plain ? kind : JSON.stringify(declared),
      default: suggest === undefined || typeof suggest === 'string' ? suggest : JSON.stringify(suggest),
    });
  }
  const answer = state.answers[id];
  if (!isOf[kind](answer)) {
    throw new ToolError(`the answer to \`${id}\` is ${JSON.stringify(answer)}, which is not a ${kind}`);
  }
  return answer;
}

export const text = (id, asked, options) => question(id, asked, 'text', undefined, options);
export const boolean = (id, asked, options) => question(id, asked, 'boolean', undefined, options);
export const consent = (id, asked, { category } = {}) =>
  question(id, asked, 'boolean', undefined, { category }, true);
export const integer = (id, asked, options) => question(id, asked, 'integer', undefined, options);
export const number = (id, asked, options) => question(id, asked, 'number', undefined, options);
export const select = (id, asked, choices, options) =>
  question(id, asked, 'select', { options: choices }, options);
export const multiSelect = (id, asked, choices, options) =>
  question(id, asked, 'multi-select', { options: choices }, options);
export const form = (id, asked, fields) => question(id, asked, 'form', { fields });

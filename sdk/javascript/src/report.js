import * as host from 'kitbag:tool/host@0.1.0';

import { checked, ToolError } from './errors.js';
import { state } from './state.js';

const emit = (content) => checked(() => host.emit(content), (reason) => new ToolError(reason));
state.emit = emit;

export const log = (message, level = 'info') => host.log(level, message);
export const progress = (done, total, message) => host.progress(done, total, message);
export const image = (data, mimeType = 'image/png') => emit({ tag: 'image', val: { data, mimeType } });
export const audio = (data, mimeType) => emit({ tag: 'audio', val: { data, mimeType } });
export const document = (uri, content, mimeType) => {
  const body = { tag: typeof content === 'string' ? 'text' : 'blob', val: content };
  emit({ tag: 'resource', val: { uri, mimeType, body } });
};
export const link = (uri, name, { title, description, mimeType, size } = {}) =>
  emit({ tag: 'link', val: { uri, name, title, description, mimeType, size: size === undefined ? undefined : BigInt(size) } });
